"""The edge: HTTP in a dialect on one side, the router on the other."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from smart_model_router.domain.errors import (
    AllTargetsFailed,
    ContentBlocked,
    ContextTooLong,
    DeadlineExceeded,
    InvalidRequest,
    Overloaded,
    RequestRejected,
    RouterUnavailable,
    SmartRouterError,
    StreamInterrupted,
    TranslationRefused,
    UnsupportedFeature,
)
from smart_model_router.domain.outcome import EventKind, Failure, FailureClass, StreamEvent
from smart_model_router.domain.report import Attempt, ReportedRefusal, RouteReport
from smart_model_router.domain.request import Dialect
from smart_model_router.http_api import (
    ApiRequest,
    EdgeStream,
    Family,
    Problem,
    endpoint,
    error_frame,
    problem_of,
    read_ask,
    rendered,
    report_headers,
    serve,
)
from smart_model_router.http_api.api_errors import BAD_REQUEST, BUG, KINDS
from smart_model_router.http_api.event_stream import Relabel
from smart_model_router.http_api.handler import count_tokens, kept_thing, open_stream
from smart_model_router.testing import FakeProvider, FakeReply, chunk, usage_chunk
from tests.media_files import b64, pdf
from tests.world import BLACK_HOLE, BODY, DOWN, HandMade, virtual, world


def report(*attempts: tuple[str, FailureClass], refused: Mapping[str, str] | None = None) -> RouteReport:
    """A report with these failed attempts and refusals."""
    return RouteReport(
        "req-1",
        "smart",
        "frontier",
        attempts=[Attempt(target, 0.1, failure) for target, failure in attempts],
        refusals=[ReportedRefusal(target, reason) for target, reason in (refused or {}).items()],
    )


def ask(body: Mapping[str, Any] = BODY, /, **headers: str) -> ApiRequest:
    """A request as it would arrive (underscores of header names are dashes)."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return read_ask("chat", named, json.dumps(body).encode())


async def frames(stream: EdgeStream, into: list[bytes] | None = None) -> bytes:
    """Every frame."""
    found = [] if into is None else into
    while (frame := await stream.next_frame()) is not None:
        found.append(frame)
    return b"".join(found)


# Problems -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "openai", "anthropic"),
    [
        (InvalidRequest("x"), (400, None), (400, "invalid_request_error")),
        (ContextTooLong("x"), (400, "context_length_exceeded"), (400, "invalid_request_error")),
        (ContextTooLong("x", status=413), (413, "context_length_exceeded"), (413, "invalid_request_error")),
        (ContentBlocked("x"), (400, "content_filter"), (400, "invalid_request_error")),
        (UnsupportedFeature("x"), (400, "unsupported_feature"), (400, "invalid_request_error")),
        (TranslationRefused("x"), (400, "unsupported_feature"), (400, "invalid_request_error")),
        (Overloaded("x"), (503, "overloaded"), (529, "overloaded_error")),
        (AllTargetsFailed("x"), (503, "all_targets_failed"), (529, "overloaded_error")),
        (DeadlineExceeded("x"), (504, "deadline_exceeded"), (504, "timeout_error")),
        (StreamInterrupted("x"), (502, "stream_interrupted"), (502, "api_error")),
    ],
)
def test_each_error_has_its_status_and_its_words(
    error: SmartRouterError, openai: tuple[int, str | None], anthropic: tuple[int, str]
) -> None:
    """The table of wires.md section 3, in both manners."""
    chat, messages = rendered(problem_of(error), "openai"), rendered(problem_of(error), "anthropic")
    assert (chat.status, json.loads(chat.body)["error"]["code"]) == openai
    assert (messages.status, json.loads(messages.body)["error"]["type"]) == anthropic


def test_no_error_of_the_tree_is_without_a_row() -> None:
    """Every error that can end a request is in the table, itself and not by its base alone."""

    def leaves(kind: type[SmartRouterError]) -> set[type[SmartRouterError]]:
        below = kind.__subclasses__()
        return set().union(*map(leaves, below)) if below else {kind}

    ends = leaves(RequestRejected) | leaves(RouterUnavailable) | {StreamInterrupted}
    assert ends <= set(KINDS)
    assert problem_of(SmartRouterError("what?")).kind is BUG


@pytest.mark.parametrize(
    ("told", "limited"),
    [
        (report(("a/x", FailureClass.RATE_LIMITED)), True),
        (report(("a/x", FailureClass.RATE_LIMITED), refused={"b/x": "wait", "c/x": "filtered:tools"}), True),
        (report(("a/x", FailureClass.RATE_LIMITED), refused={"a/x": "cooldown"}), True),
        (report(refused={"a/x": "requests", "b/x": "tokens"}), True),
        (report(("a/x", FailureClass.RATE_LIMITED), ("b/x", FailureClass.SERVER_ERROR)), False),
        (report(("a/x", FailureClass.RATE_LIMITED), refused={"b/x": "open"}), False),
        (report(), False),
    ],
)
def test_only_rate_limits_everywhere_are_a_429(told: RouteReport, *, limited: bool) -> None:
    """One target that failed for another reason makes it an outage."""
    problem = problem_of(AllTargetsFailed("x", report=told, retry_after=3.0))
    assert (rendered(problem, "openai").status == 429) is limited


@pytest.mark.parametrize(
    ("after", "headers"),
    [
        (None, {"x-should-retry": "false"}),
        (0.0, {"retry-after": "0", "retry-after-ms": "0"}),
        (1.25, {"retry-after": "2", "retry-after-ms": "1250"}),
        (60.0, {"retry-after": "60", "retry-after-ms": "60000"}),
        (60.5, {"retry-after": "61", "retry-after-ms": "60500", "x-should-retry": "false"}),
    ],
)
def test_when_to_ask_again(after: float | None, headers: dict[str, str]) -> None:
    """Retry-After is real; SDKs are told not to retry only where nobody knows when, or it is beyond a minute."""
    reply = rendered(problem_of(AllTargetsFailed("x", retry_after=after)), "openai")
    assert {name: value for name, value in reply.headers.items() if "retry" in name} == headers


def test_a_request_that_is_at_fault_says_nothing_of_retries() -> None:
    """A 400 carries neither Retry-After nor x-should-retry."""
    reply = rendered(problem_of(InvalidRequest("x")), "openai")
    assert set(reply.headers) == {"content-type", "x-request-id", "request-id"}


def test_an_error_before_routing_has_an_id_of_its_own() -> None:
    """People can speak of every refusal: no two have the same id."""
    ids = {rendered(problem_of(InvalidRequest("x")), "anthropic").headers["request-id"] for _ in range(100)}
    assert len(ids) == 100


@pytest.mark.parametrize(
    ("family", "body", "as_it_is"),
    [
        ("openai", b'{"error": {"message": "no", "odd": 1}}', True),
        ("anthropic", b'{"type": "error", "error": {"type": "odd", "message": "no"}}', True),
        ("anthropic", b'{"error": {"message": "no"}}', False),
        ("openai", b'{"type": "error", "error": {"type": "odd"}}', False),
        ("openai", b"<html>no</html>", False),
        ("openai", b'{"error": "no"}', False),
    ],
)
def test_a_providers_own_words_are_kept_in_its_own_dialect(family: Family, body: bytes, *, as_it_is: bool) -> None:
    """The body and status of a provider's refusal pass unchanged where the client speaks alike, else they are ours."""
    reply = rendered(problem_of(InvalidRequest("a/x: no", status=422, body=body)), family)
    assert (reply.body == body, reply.status) == (as_it_is, 422 if as_it_is else BAD_REQUEST.status)


# Asking ---------------------------------------------------------------------------------------------------


def test_headers_become_options() -> None:
    """x-router-* and the client's session are read."""
    found = ask(
        x_router_tier="standard",
        x_router_timeout="1.5m",
        x_router_criticality="Sheddable",
        x_router_max_cost="0.25",
        session_id="abc",
    )
    assert found.options == {
        "tier": "standard",
        "timeout": 90.0,
        "criticality": "sheddable",
        "max_cost": 0.25,
        "session": "abc",
    }
    assert not found.own_deadline


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x_router_timeout", "0"),
        ("x_router_timeout", "-1"),
        ("x_router_timeout", "inf"),
        ("x_router_max_cost", "nan"),
        ("x_router_criticality", "vital"),
    ],
)
def test_a_header_of_ours_that_makes_no_sense_is_refused(name: str, value: str) -> None:
    """It is named, and what it would take."""
    with pytest.raises(InvalidRequest, match=name.replace("_", "-")):
        ask(**{name: value})


@pytest.mark.parametrize(
    ("headers", "timeout"),
    [
        ({"x_stainless_read_timeout": "600"}, 599.75),
        ({"x_stainless_timeout": "1"}, 0.9),
        ({"x_stainless_read_timeout": "30", "x_stainless_timeout": "20"}, 19.75),
        ({"x_stainless_timeout": "soon"}, None),
        ({"x_stainless_timeout": "9", "x_router_timeout": "2s"}, 2.0),
    ],
)
def test_the_clients_own_deadline_is_ours_but_a_little_sooner(headers: dict[str, str], timeout: float | None) -> None:
    """We answer before it hangs up; x-router-timeout goes before it; what is no number is nothing."""
    assert ask(**headers).options.get("timeout") == (None if timeout is None else pytest.approx(timeout))


def test_names_to_fall_back_to_are_taken_out_of_the_body() -> None:
    """`models` and `fallbacks` are ours; without `model` the first of them is it. What is no list of names stays."""
    messages = BODY["messages"]
    found = ask({"models": ["a", "b"], "fallbacks": [{"model": "c"}, "a"], "messages": messages})
    assert (found.models, found.body) == (("a", "b", "c"), {"model": "a", "messages": messages})
    assert ask({**BODY, "models": "b"}).body["models"] == "b"


# Answering ------------------------------------------------------------------------------------------------


@virtual
async def test_a_whole_answer_carries_the_name_that_was_asked_for() -> None:
    """The rest of the body is the provider's, byte for byte."""
    made = world(["p/big"])
    reply = await serve(made.router, ask())
    served = world(["p/big"], config={"routing": {"model_name": "served"}})
    real = await serve(served.router, ask())
    assert json.loads(reply.body) == {**json.loads(real.body), "model": "smart"}
    assert json.loads(real.body)["model"] == "big"
    assert reply.headers["x-router-model"] == "big"


@pytest.mark.parametrize(
    ("config", "named"),
    [({}, "small"), ({"routing": {"model_name": "asked"}}, "smart"), ({"routing": {"strategy": "weighted"}}, "smart")],
)
@virtual
async def test_an_answer_names_who_served_in_the_place_of_the_first_choice(config: dict[str, Any], named: str) -> None:
    """Unless the name asked for is wanted, or the strategy has no first choice in the tier."""
    made = world(["p/big", "q/small"], replies={"p": FakeProvider(DOWN)}, config=config)
    assert json.loads((await serve(made.router, ask())).body)["model"] == named


@virtual
async def test_an_equal_target_is_no_fallback() -> None:
    """Another key of one model serves in the name that was asked for; a lower tier does not."""
    equal = {"target": "p/big", "group": "g"}, {"target": "q/big-2", "group": "g"}
    tiers = {"smart": {"tiers": [{"targets": list(equal)}, {"targets": ["r/tiny"]}], "last_resort": []}}
    names = (["p/big", "q/big-2"], ["r/tiny"])
    made = world(*names, replies={"p": FakeProvider(DOWN)}, config={"models": tiers})
    assert json.loads((await serve(made.router, ask())).body)["model"] == "smart"
    down = {"p": FakeProvider(DOWN), "q": FakeProvider(DOWN)}
    made = world(*names, replies=down, config={"models": tiers})
    assert json.loads((await serve(made.router, ask())).body)["model"] == "tiny"


@virtual
async def test_the_next_name_is_asked_when_nobody_of_the_first_can() -> None:
    """Of two names whose targets are down the error is about the first; a third that works answers."""
    models = {name: {"tiers": [{"targets": [f"{name}/m"]}], "last_resort": []} for name in ("p", "q", "r")}
    replies = {"p": FakeProvider(DOWN), "q": FakeProvider(DOWN), "r": FakeProvider()}
    made = world(["p/m"], ["q/m"], ["r/m"], replies=replies, config={"models": models})
    body = {"model": "p", "messages": BODY["messages"]}
    assert json.loads((await serve(made.router, ask({**body, "models": ["q", "nobody", "r"]}))).body)["model"] == "m"
    with pytest.raises(AllTargetsFailed) as failed:
        await serve(made.router, ask({**body, "fallbacks": ["q"]}))
    assert failed.value.report is not None
    assert failed.value.report.model == "p"
    with pytest.raises(InvalidRequest, match="'x' is unknown"):
        await serve(made.router, ask({**body, "model": "x", "fallbacks": ["r"]}))


@pytest.mark.parametrize("fallbacks", [["q"], ["q", "r"]])
@virtual
async def test_a_deadline_that_passes_under_any_name_is_told_as_one(fallbacks: list[str]) -> None:
    """The last name as well: a client that is told of its own timeout knows that it is one."""
    models = {name: {"tiers": [{"targets": [f"{name}/m"]}], "last_resort": []} for name in ("p", "q", "r")}
    replies = {"p": FakeProvider(DOWN), "q": FakeProvider(BLACK_HOLE), "r": FakeProvider()}
    made = world(["p/m"], ["q/m"], ["r/m"], replies=replies, config={"models": models})
    body = {"model": "p", "fallbacks": fallbacks, "messages": BODY["messages"]}
    with pytest.raises(DeadlineExceeded):
        await serve(made.router, ask(body, x_router_timeout="5s"))


@virtual
async def test_a_stream_that_ends_without_its_terminator_gets_one() -> None:
    """A finish reason proves completeness; the client gets [DONE] all the same, and its usage chunk only on demand."""

    async def made() -> AsyncIterator[StreamEvent]:
        yield chunk({"content": "hi"})
        yield chunk({}, finish="stop")
        yield usage_chunk(FakeReply().usage)

    router = world(["p/big"], replies={"p": HandMade(made)}).router
    plain = await frames(await open_stream(router, ask({**BODY, "stream": True})))
    assert plain.count(b"data: ") == 3
    assert plain.endswith(b"\n\ndata: [DONE]\n\n")
    finish = json.loads(plain.split(b"\n\n")[1][6:])
    assert finish["choices"][0]["finish_reason"] == "stop"
    assert finish["router"]["notes"] == ["the transport ended before the terminator"]
    wanted = ask({**BODY, "stream": True, "stream_options": {"include_usage": True}})
    assert (await frames(await open_stream(router, wanted))).count(b"total_tokens") == 1


@virtual
async def test_a_failure_after_content_is_raised() -> None:
    """Whoever sends the frames tells of it and aborts; nothing of an end is sent before it."""
    cut = Failure(FailureClass.TRUNCATED, "cut")
    made = world(["p/big"], replies={"p": FakeProvider(FakeReply(cut=cut))})
    stream = await open_stream(made.router, ask({**BODY, "stream": True}))
    told: list[bytes] = []
    with pytest.raises(StreamInterrupted):
        await frames(stream, told)
    assert b"Hello" in b"".join(told)
    assert b"[DONE]" not in b"".join(told)


@virtual
async def test_a_finish_reason_of_a_stream_that_fails_after_all_is_not_sent() -> None:
    """Content after it makes the answer none that is whole: a client that stops at the finish must not see one."""

    async def made() -> AsyncIterator[StreamEvent]:
        yield chunk({"content": "hi"})
        yield chunk({}, finish="stop")
        yield chunk({"content": "and more"})

    router = world(["p/big"], replies={"p": HandMade(made)}).router
    stream = await open_stream(router, ask({**BODY, "stream": True}))
    told = await stream.next_frame()
    with pytest.raises(StreamInterrupted):
        await stream.next_frame()
    assert told is not None
    assert b"stop" not in told
    assert not stream.report.complete


def error_of(problem: Problem, dialect: Dialect) -> dict[str, Any] | None:
    """The data of the event that tells of a problem."""
    told = error_frame(problem, dialect)
    return None if told is None else json.loads(told.rpartition(b"data: ")[2])


def test_a_cut_is_told_in_an_event_where_clients_read_one() -> None:
    """Clients of Responses ask again after an abort, and do not after an event."""
    cut = problem_of(StreamInterrupted("cut", failure=Failure(FailureClass.TRUNCATED)))
    chat, messages = error_of(cut, "chat"), error_of(cut, "messages")
    assert chat is not None
    assert chat["error"]["code"] == "stream_interrupted"
    assert messages is not None
    assert messages["type"] == "error"
    assert error_of(cut, "responses") is None


VERDICTS = {
    FailureClass.CONTENT_FILTERED: "content_filter",
    FailureClass.CONTEXT_LENGTH: "context_length_exceeded",
    FailureClass.TOO_LARGE: "request_too_large",
}


@pytest.mark.parametrize(("failure_class", "code"), VERDICTS.items())
def test_a_verdict_on_the_request_passes_through(failure_class: FailureClass, code: str) -> None:
    """In the middle of a stream, too, and in Responses, where it is the provider's own event: it is the last word."""
    verdict = problem_of(StreamInterrupted("cut", failure=Failure(failure_class, "because")))
    for dialect in ("chat", "messages", "responses"):
        told = error_of(verdict, dialect)
        assert told is not None
        assert "because" in json.dumps(told)
        assert dialect == "messages" or code in json.dumps(told)
    native = b'event: response.failed\ndata: {"type":"response.failed","response":{"error":{"code":"x"}}}\n\n'
    problem = problem_of(StreamInterrupted("cut", failure=Failure(failure_class, raw=native)))
    assert error_frame(problem, "responses") == native


@virtual
async def test_the_router_object_stands_beside_the_finish_reason() -> None:
    """Once, whether or not usage was asked for; without `stream_report` nowhere."""
    router = world(["p/gpt-4o"], kinds={"p": {"kind": "openai"}}).router
    for more in ({}, {"stream_options": {"include_usage": True}}):
        stream = await open_stream(router, ask({**BODY, "stream": True, **more}))
        events = [json.loads(one[6:]) for one in (await frames(stream)).split(b"\n\n") if one[6:7] == b"{"]
        (told,) = [event for event in events if "router" in event]
        assert told["choices"][0]["finish_reason"] == "stop"
        assert told["router"] == {
            "request_id": stream.report.request_id,
            "complete": True,
            "provider": "p",
            "model": "gpt-4o",
            "tier": "frontier",
            "degraded": False,
            "recoveries": [],
            "cost_usd": stream.report.cost_usd,
        }
        assert stream.report.cost_usd is not None
    silent = await open_stream(router, ask({**BODY, "stream": True}), reported=False)
    assert b'"router"' not in await frames(silent)


@virtual
async def test_a_stream_keeps_its_first_model() -> None:
    """Also where answers name the provider's own: an empty name, as Azure's first chunk has, is none."""

    async def made() -> AsyncIterator[StreamEvent]:
        for name in ("", "one", "two"):
            event = chunk({"content": "hi"})
            data = {**(event.data or {}), "model": name}
            yield event._replace(data=data, raw=b"data: " + json.dumps(data).encode() + b"\n\n")
        yield chunk({}, finish="stop")

    served = {"routing": {"model_name": "served"}}
    router = world(["p/big"], replies={"p": HandMade(made)}, config=served).router
    told = await frames(await open_stream(router, ask({**BODY, "stream": True})))
    assert [json.loads(one[6:])["model"] for one in told.split(b"\n\n")[:3]] == ["big", "big", "big"]


def test_whole_answers_say_in_a_header_whether_they_are_complete() -> None:
    """A stream's head cannot know; an error says nothing of it."""
    told = report()
    assert "x-router-complete" not in report_headers(told, stream=False)
    told.target, told.notes = "a/big", ["bytes were replaced"]
    assert report_headers(told, stream=False)["x-router-complete"] == "false"
    told.complete = True
    assert report_headers(told, stream=False)["x-router-complete"] == "true"
    assert "x-router-complete" not in report_headers(told, stream=True)


@virtual
async def test_the_cost_of_a_stream_is_beside_its_finish_reason() -> None:
    """A head could not know it: the `router` object says `cost_usd` where the price is known."""
    kinds = {"p": {"kind": "openai"}}
    made = world(["p/gpt-4o"], kinds=kinds)
    wanted = ask({**BODY, "stream": True, "stream_options": {"include_usage": True}})
    stream = await open_stream(made.router, wanted)
    told = await frames(stream)
    assert stream.report.cost_usd is not None
    assert f'"cost_usd":{stream.report.cost_usd}'.encode() in told


def test_headers_say_who_answered() -> None:
    """Provider, model without its credential's number, tier; text no header can carry is replaced."""
    told = report()
    told.target, told.actual_tier, told.degraded = "a/org/model#2", "tier\n1", True
    told.cost_usd, told.losses = 0.0000125, ["größe: dropped"]
    headers = report_headers(told, stream=True)
    assert {name: value for name, value in headers.items() if name.startswith("x-router")} == {
        "x-router-provider": "a",
        "x-router-model": "org/model",
        "x-router-tier": "tier 1",
        "x-router-attempts": "1",
        "x-router-degraded": "true",
        "x-router-cost-usd": "0.00001250",
        "x-router-lossy": "gr??e: dropped",
    }


# Relabelling ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "raw",
    [
        b'{"model":"big","x":1}',
        b'{"model": "big", "x": 1}',
        b'{"x":{"model":"big"},"model":"big"}',
        b'{"x":"\\"model\\":\\"big\\"","model":"big"}',
        b'{"model":"b\\u0069g"}',
    ],
)
def test_only_the_name_of_the_model_changes(raw: bytes) -> None:
    """Whatever else holds the same letters stays as it is."""
    body = json.loads(raw)
    assert json.loads(Relabel('a "quoted" näme', "chat").whole(raw, body)) == {**body, "model": 'a "quoted" näme'}


def test_what_needs_no_change_stays_byte_for_byte() -> None:
    """A body without a model, or with the right one."""
    relabel = Relabel("smart", "chat")
    for raw in (b'{ "x" : 1 }', b'{ "model" : "smart" }', b'{ "model" : 5 }'):
        assert relabel.whole(raw, json.loads(raw)) is raw


@pytest.mark.parametrize(
    ("dialect", "data"),
    [
        ("messages", {"type": "message_start", "message": {"model": "big", "content": []}}),
        ("responses", {"type": "response.created", "response": {"id": "r", "model": "big"}}),
        ("chat", {"choices": [], "model": "big"}),
    ],
)
def test_events_name_the_model_where_their_dialect_does(dialect: Dialect, data: dict[str, Any]) -> None:
    """Messages and Responses inside the answer's head, Chat at the top; spaces in the JSON make no difference."""
    line = b"" if dialect == "chat" else f"event: {data['type']}\n".encode()
    for separators in ((",", ":"), (", ", ": ")):
        raw = line + b"data: " + json.dumps(data, separators=separators).encode() + b"\n\n"
        told = Relabel("smart", dialect).frame(raw, data)
        assert told.startswith(line + b"data: {")
        assert told.endswith(b"}\n\n")
        assert json.loads(told.rpartition(b"data: ")[2]) == json.loads(
            json.dumps(data).replace('"model": "big"', '"model": "smart"')
        )


# Answered here --------------------------------------------------------------------------------------------


def test_tokens_are_about_a_quarter_of_the_bytes() -> None:
    """Text counts, wherever it is; a picture counts as one, not by its bytes; nesting has no limit."""

    def count(content: Any, **more: Any) -> int:
        return count_tokens(json.dumps({"messages": [{"role": "user", "content": content}], **more}).encode())

    assert 240 <= count("word" * 240) <= 260
    assert count("x", system="word" * 100) - count("x") in range(100, 104)
    assert count("x", tools=[{"name": "look", "description": "word" * 100}]) > count("x") + 100
    picture = [{"type": "image", "source": {"type": "base64", "data": "A" * 100_000}}]
    assert 1500 <= count(picture) < 1550
    data = b64(pdf(10))
    document = [{"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": data}}]
    assert 25_000 <= count(document) < 25_050
    written = [{"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "word" * 500}}]
    assert 500 <= count(written) < 550
    deep: Any = "word"
    for _ in range(300):
        deep = [deep]
    assert count(deep) >= 1


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"messages": []}', b'{"messages": {}}'])
def test_what_is_no_prompt_has_no_tokens(body: bytes) -> None:
    """It is refused like a request."""
    with pytest.raises(InvalidRequest):
        count_tokens(body)


@virtual
async def test_a_ping_of_the_provider_is_passed_on() -> None:
    """It keeps the connection alive here, too."""

    async def made() -> AsyncIterator[StreamEvent]:
        yield chunk({"content": "hi"})
        yield StreamEvent(EventKind.PING, b": hello\n\n")
        yield chunk({}, finish="stop")

    router = world(["p/big"], replies={"p": HandMade(made)}).router
    assert b": hello\n\n" in await frames(await open_stream(router, ask({**BODY, "stream": True})))


@pytest.mark.parametrize(("path", "operation"), [("compact", "compact"), ("input_tokens", "count")])
def test_what_else_is_done_with_a_prompt_of_responses(path: str, operation: str) -> None:
    """A request of its dialect for another operation, which has no streams; its path is no answer's."""
    asked = endpoint(f"/v1/responses/{path}")
    assert asked is not None
    ask = read_ask(asked, {}, b'{"model": "smart", "input": "hi"}')
    assert (ask.dialect, ask.operation, ask.models) == ("responses", operation, ("smart",))
    with pytest.raises(InvalidRequest, match="have no streams"):
        read_ask(asked, {}, b'{"model": "smart", "input": "hi", "stream": true}')
    assert kept_thing(f"/v1/responses/{path}") is None


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/responses/", "/v1/responses/a/b", "/v1/models/a"])
def test_a_path_that_is_about_no_kept_answer(path: str) -> None:
    """One id and nothing after it is."""
    assert kept_thing(path) is None
    assert kept_thing("/v1/responses/resp_1") == "resp_1"
