"""A request in plain words: the cause before the code, the way out beside it, the provider's own words behind."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace

import pytest

from smart_model_router.domain.outcome import REFUSAL_REASONS, Failure, FailureClass, Refusal, Usage, Wait
from smart_model_router.domain.report import Attempt, ReportedRefusal, RouteReport, failure_facts
from smart_model_router.domain.report_text import (
    ProviderAdvice,
    breaker_text,
    clock_time,
    failure_text,
    rejection_text,
    rest_text,
    unable_text,
)

F = FailureClass
ADVICE = {"acme": ProviderAdvice(("$ACME_KEY", "providers.acme.api_key[1]"), "providers.acme.base_url")}
AT = 1_700_000_000.0
CERTIFICATE = (
    "acme cannot be reached: certificate expired: check providers.acme.base_url and that $SSL_CERT_FILE has its "
    "authority"
)


def failed(target: str, kind: FailureClass, said: str = "", seconds: float = 2.0, **facts: object) -> Attempt:
    """An attempt that failed."""
    known = {"failure_class": kind, "message": said, **facts}
    return replace(Attempt(target, seconds), **known)  # type: ignore[arg-type]


def report(*attempts: Attempt, refusals: list[ReportedRefusal] | None = None, **facts: object) -> RouteReport:
    """A request with these attempts."""
    made = RouteReport("id", "smart", "frontier", attempts=list(attempts), refusals=refusals or [], advice=ADVICE)
    return replace(made, **facts)  # type: ignore[arg-type]


PAGE_REMEDY = (
    "check http, https and path of providers.acme.base_url, and whether a portal or a proxy answers in its place"
)


@pytest.mark.parametrize(
    ("attempt", "told"),
    [
        (
            failed("acme/big", F.AUTH, status=401, code="invalid_api_key"),
            "acme refused the key (401 invalid_api_key): check $ACME_KEY",
        ),
        (
            failed("acme/big#2", F.AUTH, status=403),
            "acme does not allow this with its key (403): let providers.acme.api_key[1] use 'big', or take another",
        ),
        (failed("other/x", F.AUTH, status=401), "other refused the key (401): check its key"),
        (
            failed("acme/big", F.QUOTA, status=429, code="insufficient_quota"),
            "acme says that the quota is used up (429 insufficient_quota): add credit to the account of $ACME_KEY",
        ),
        (
            failed("acme/big", F.MODEL_GONE, status=404),
            "acme has no such model for this key (404): check the name 'big', and that $ACME_KEY may use it",
        ),
        (
            failed("acme/big", F.MISCONFIGURED, status=404),
            "acme does not know this path (404): check providers.acme.base_url",
        ),
        (
            failed("other/x", F.MISCONFIGURED, status=405),
            "other cannot serve it as it is configured (405): check its address",
        ),
        (
            failed("acme/big", F.TRANSPORT, reason="certificate expired"),
            CERTIFICATE,
        ),
        (failed("other/x", F.TRANSPORT), "other cannot be reached: check the network"),
        (failed("acme/big", F.TIMEOUT, seconds=30.0), "acme timed out after 30 s"),
        (failed("acme/big", F.CANCELLED, seconds=0.61), "acme had not answered after 0.61 s"),
        (
            failed("acme/big", F.RATE_LIMITED, status=429, retry_after=90.0, free_at=AT),
            f"acme is rate limited (429) until {clock_time(AT)} (90 s)",
        ),
        (
            failed("acme/big", F.RATE_LIMITED, status=429, retry_after=2.0, free_at=AT),
            "acme is rate limited (429) for 2 s",
        ),
        (failed("acme/big", F.OVERLOADED, status=529, retry_after=400.0), "acme is overloaded (529) for 6.67 min"),
        (
            failed("acme/big", F.WARMING, status=503, retry_after=9000.0),
            "acme is still loading its model (503) for 2.5 h",
        ),
        (failed("acme/big", F.SERVER_ERROR, status=500), "acme failed (500)"),
        (failed("acme/big", F.TRUNCATED, status=200), "acme broke off its answer"),
        (failed("acme/big", F.MALFORMED, "no JSON"), "acme sent an answer that cannot be read: no JSON"),
        (failed("acme/big", F.MALFORMED), "acme sent an answer that cannot be read"),
        *(
            (
                failed("acme/big", F.MALFORMED, page),
                f"acme sent a web page in the place of an answer: {PAGE_REMEDY}",
            )
            for page in (
                "<!DOCTYPE html><html>",
                "HTTP 200 without an answer in it: \ufeff <html lang=en>",
                "HTTP 400: <html>",
                "HTTP 200 without an answer in it: a web page titled 'Sign in'",
            )
        ),
        *(
            (failed("acme/big", F.MALFORMED, cut), f"acme sent an answer that cannot be read: {cut}")
            for cut in ('HTTP 200 without an answer in it: {"content": "<html>', "use <html>", "<htmlx>")
        ),
        (failed("acme/big", F.EMPTY, status=200), "acme sent an empty answer"),
        (
            failed("acme/big", F.CONTEXT_LENGTH, status=400),
            "acme says that the prompt is too long (400): shorten it, or add a target with a larger window",
        ),
    ],
)
def test_one_cause_is_the_message(attempt: Attempt, told: str) -> None:
    """The cause before the code, and the way out where there is one."""
    assert failure_text(report(attempt)) == told
    assert str(report(attempt)) == told


@pytest.mark.parametrize("kind", list(FailureClass))
def test_no_class_is_told_as_a_code(kind: FailureClass) -> None:
    """Each has words of its own."""
    assert kind.value not in failure_text(report(failed("acme/big", kind)))


def test_several_causes_stand_in_the_order_in_which_they_came() -> None:
    """Each target once, with the count of its failures; then those that were not asked."""
    told = failure_text(
        report(
            failed("b/x", F.SERVER_ERROR, "HTTP 500: boom", status=500),
            failed("acme/big", F.AUTH, "HTTP 401: bad key", status=401),
            failed("b/x", F.SERVER_ERROR, "HTTP 500: boom", status=500),
            failed("b/x", F.CANCELLED),
            refusals=[ReportedRefusal("b/x", "open", 3.0), ReportedRefusal("c/y", "open", 30.0, AT)],
        ),
        retry_after=3.0,
    )
    assert told == (
        "no target could answer: b failed (500) (2 times); acme refused the key (401): check $ACME_KEY; "
        f"c is left alone after its failures until {clock_time(AT)} (30 s). Worth another try in 3 s. "
        'b/x said: "boom". acme/big said: "bad key"'
    )


def test_a_deadline_that_passed_is_told_first() -> None:
    """With the seconds that it was, and the way out where it was time alone that lacked."""
    late = failed("b/x", F.TIMEOUT)
    more = ": allow more time, or add a target that answers sooner"
    assert failure_text(report(late), seconds=2.5) == f"no answer within 2.5 s: b timed out after 2 s{more}"
    told = failure_text(report(late, failed("c/y", F.TRANSPORT)), seconds=2.5)
    assert more not in told
    assert failure_text(report()) == "no target could answer: no target was asked"
    assert str(report()) == "no target was asked"


def test_targets_of_one_provider_are_told_apart() -> None:
    """By the provider's name alone only where one of its targets took part."""
    told = failure_text(report(failed("b/x", F.TIMEOUT), refusals=[ReportedRefusal("b/y", "bulkhead")]))
    assert told == "no target could answer: b/x timed out after 2 s; b/y has all its slots in use"


@pytest.mark.parametrize("page", ["HTTP 502: <html><h1>Bad gateway</h1></html>", "HTTP 502: ", "reset by peer"])
def test_only_a_providers_own_words_are_quoted(page: str) -> None:
    """Neither a page of HTML nor what the router says itself."""
    assert failure_text(report(failed("b/x", F.SERVER_ERROR, page, status=502))) == "b failed (502)"


def test_at_most_three_providers_are_quoted() -> None:
    """A line stays one."""
    attempts = [failed(f"{name}/x", F.SERVER_ERROR, f"HTTP 500: {name}", status=500) for name in "abcd"]
    assert re.findall(r'said: "(.)"', failure_text(report(*attempts))) == ["a", "b", "c"]


def test_the_line_of_a_served_request_says_why_others_did_not() -> None:
    """The rank of the target that served, and the causes before it."""
    attempts = (failed("b/x", F.TIMEOUT, seconds=30.0), Attempt("c/y", 1.0))
    served = report(*attempts, target="c/y", actual_tier="frontier", complete=True, seconds=31.0, choice=3)
    refused = replace(served, refusals=[ReportedRefusal("acme/big", "wait", 90.0, AT)], waited_seconds=0.25)
    assert str(refused) == (
        "served by c/y (3rd choice) in 31.0 s, 0.2 s of it waiting: b timed out after 30 s; "
        f"acme asked to wait until {clock_time(AT)} (90 s)"
    )
    assert str(replace(served, attempts=[Attempt("c/y", 1.0)], choice=1)) == "served by c/y (1st choice) in 31.0 s"
    degraded = replace(served, attempts=[], actual_tier="economy", complete=False)
    assert str(degraded) == "served by c/y (3rd choice, tier economy in place of frontier, incomplete) in 31.0 s"
    assert str(replace(degraded, last_resort=True, complete=True)) == (
        "served by c/y (the last resort, frontier was asked for) in 31.0 s"
    )


def test_a_hedge_that_lost_to_its_own_target_is_no_cause() -> None:
    """The target did serve."""
    hedge = failed("b/x", F.CANCELLED, hedge=True)
    assert str(report(hedge, target="b/x", actual_tier="frontier", complete=True)).endswith("in 0.0 s")


@pytest.mark.parametrize("reason", sorted(REFUSAL_REASONS))
def test_every_refusal_has_words(reason: str) -> None:
    """None is told as a code."""
    told = failure_text(report(refusals=[ReportedRefusal("c/y", reason)]))
    assert told.startswith("c ")
    assert "(" not in told


def test_a_refusal_of_an_unknown_reason_is_told_with_it() -> None:
    """Rather its code than nothing."""
    assert failure_text(report(refusals=[ReportedRefusal("c/y", "odd")])) == "c was not asked (odd)"


def test_a_rejection_says_who_rejects_and_in_which_words() -> None:
    """And what to do where the prompt is too long."""
    bad = Failure(F.INVALID_REQUEST, "HTTP 400: no such field", status=400, code="unknown_parameter")
    assert rejection_text("a/x", bad) == "a/x says that the request is not valid (400 unknown_parameter): no such field"
    long = Failure(F.CONTEXT_LENGTH, "8192 tokens")
    told = "a/x says that the prompt is too long: 8192 tokens (shorten it, or add a target with a larger window)"
    assert rejection_text("a/x", long) == told


def test_a_request_that_no_target_is_fit_for_says_why() -> None:
    """Each target with what it lacks."""
    left_out = [("a/x", Refusal("filtered:context")), ("b/y", Refusal("filtered:tools"))]
    assert unable_text("smart", left_out) == (
        "no target of 'smart' can serve this request: a/x has too small a context window; "
        "b/y cannot do what the request needs (tools)"
    )


@pytest.mark.parametrize(("cached", "line"), [(0, "10 in, 5 out"), (8, "10 in (8 of them cached), 5 out")])
def test_the_lines_have_every_figure(cached: int, line: str) -> None:
    """Attempts, refusals, waits, losses, tokens: each on a line of its own."""
    told = report(
        failed("b/x", F.SERVER_ERROR, "HTTP 500: boom", status=500, probe=True),
        replace(Attempt("c/y", 1.0, hedge=True), ttft_seconds=0.5),
        refusals=[ReportedRefusal("d/z", "open", 3.0), ReportedRefusal("e/z", "off")],
        usage=Usage(10, 5, cached),
        waited_seconds=1.0,
        losses=["top_k"],
        ruled_out={"b/x": "SERVER_ERROR"},
    ).lines()
    assert told[1:] == [
        "  asked    b/x: SERVER_ERROR (HTTP 500) after 2.00 s, as a probe: HTTP 500: boom",
        "  asked    c/y: answered after 1.00 s, first words after 0.50 s, as a hedge",
        "  not yet  d/z is left alone after its failures (open), free again in 3.00 s",
        "  not yet  e/z is switched off after a permanent failure (off)",
        "  instead of b/x: SERVER_ERROR",
        "  waited 1.00 s for a target to come due",
        "  lost in translation: top_k",
        f"  tokens {line}; cost unknown",
    ]
    assert told[0].startswith("id: b failed (500); d is left alone")


def test_a_notebook_shows_the_lines_and_no_markup_of_a_provider() -> None:
    """A provider's words are text there."""
    shown = report(failed("b/x", F.SERVER_ERROR, "HTTP 500: <b>", status=500))._repr_html_()
    assert "&lt;b&gt;" in shown
    assert "<b>" not in shown


def test_an_attempt_knows_when_its_provider_is_free_again() -> None:
    """In seconds after it, and by the clock."""
    facts = failure_facts(Failure(F.RATE_LIMITED, "slow down", 429, Wait(90.0), code="tpm"), lambda: AT)
    assert (facts["retry_after"], facts["free_at"], facts["code"]) == (90.0, AT + 90.0, "tpm")
    assert failure_facts(Failure(F.EMPTY), lambda: AT)["free_at"] is None


def test_a_report_travels_to_another_process_as_it_is() -> None:
    """With its advice: a worker's error is told in the parent's words."""
    told = report(failed("acme/big", F.AUTH, status=401))
    assert str(pickle.loads(pickle.dumps(told))) == str(told)


def test_the_lines_of_transitions_say_how_long() -> None:
    """A breaker and a rest, with the time of their end where it is worth it."""
    assert breaker_text("a/x", "open", "consecutive_failures", 30.0, AT) == (
        f"a/x is left alone until {clock_time(AT)} (30 s): its breaker opened (consecutive failures)"
    )
    assert (
        breaker_text("a", "closed", "probe_succeeded", None, None) == "a is back: its breaker closed (probe succeeded)"
    )
    assert breaker_text("a", "isolated", "operator", None, None) == "a was isolated by the operator"
    assert (
        rest_text("a/x", F.AUTH, 900.0, AT) == f"a/x is not called until {clock_time(AT)} (15 min): it refused the key"
    )


@pytest.mark.parametrize(("choice", "told"), [(1, "1st"), (3, "3rd"), (4, "4th"), (12, "12th"), (21, "21st")])
def test_a_rank_is_told_as_people_say_it(choice: int, told: str) -> None:
    """Up to the largest plan."""
    assert f"({told} choice" in str(report(target="c/y", actual_tier="frontier", complete=True, choice=choice))
