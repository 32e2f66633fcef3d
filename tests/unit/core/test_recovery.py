"""Which streams may be recovered, and after what."""

from __future__ import annotations

from typing import Any

import pytest

from smart_model_router.core.stream import Held, effective, held, recoverable
from smart_model_router.domain.outcome import Failure, FailureClass
from smart_model_router.domain.recovery_policy import NO_RECOVERY, Recovery, parse_recovery
from smart_model_router.domain.request import Dialect, peek

CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "x", "schema": {}}}
MODES = ["continue", "hold_back(5)", "restart"]


def policy(text: str, dialect: Dialect = "chat", *, default: str = "none", **fields: Any) -> str:
    """The effective policy of a request that asks for `text`; "" does not ask."""
    accept = fields.pop("accept_restart", True)
    request = peek(dialect, {**CHAT, "input": "hi", **fields}, recovery=text or None, accept_restart=accept)
    return str(effective(request, parse_recovery(default)))


@pytest.mark.parametrize("asked", ["none", "buffered", *MODES])
@pytest.mark.parametrize("dialect", ["chat", "messages"])
def test_free_text_is_recovered_as_asked(asked: str, dialect: Dialect) -> None:
    """Chat and Messages, one answer of text: the request's policy, or the model's when it has none."""
    assert policy(asked, dialect) == policy("", dialect, default=asked) == asked


def test_the_request_goes_before_the_model() -> None:
    """A request may also ask for nothing."""
    assert policy("none", default="continue") == "none"


@pytest.mark.parametrize("asked", MODES)
def test_what_is_more_than_one_answer_of_text_is_not_recovered(asked: str) -> None:
    """Several choices, Responses, a restart of a schema: an error as ever."""
    assert policy(asked, response_format=SCHEMA) == ("none" if asked == "restart" else asked)
    assert policy(asked, response_format={}) == policy(asked, response_format={"type": "text"}) == asked
    assert policy(asked, n=2) == "none"
    assert policy(asked, "responses") == "none"
    assert policy("buffered", response_format=SCHEMA, n=2) == policy("buffered", "responses") == "buffered"


def test_a_restart_needs_somebody_who_understands_it() -> None:
    """Who does not accept one is told of the cut."""
    assert policy("restart", accept_restart=False) == "none"
    assert policy("continue", accept_restart=False) == "continue"


CALLS = {"tools": [{"name": "f", "input_schema": {}}]}
EAGER = {"tools": [{"name": "f", "input_schema": {}, "eager_input_streaming": True}]}
BETA = {"anthropic-beta": "other-1,fine-grained-tool-streaming-2025-05-14"}


@pytest.mark.parametrize(
    ("text", "dialect", "fields", "headers", "expected"),
    [
        ("continue", "chat", {}, {}, "calls"),
        ("continue", "messages", CALLS, {"anthropic-beta": "other-1"}, "calls"),
        ("hold_back(5)", "messages", {"tools": None}, {}, "calls"),
        ("continue", "messages", EAGER, {}, "nothing"),
        ("continue", "messages", CALLS, BETA, "nothing"),
        ("continue", "chat", EAGER, BETA, "calls"),
        ("continue", "chat", {"response_format": SCHEMA}, {}, "all"),
        ("continue", "chat", {"response_format": {"type": "json_object"}}, {}, "all"),
        ("continue", "chat", {"response_format": {"type": "text"}}, {}, "calls"),
        ("continue", "chat", {"guided_json": {"type": "object"}}, {}, "all"),
        ("continue", "messages", {"output_config": {"format": {"type": "json_schema"}}}, {}, "all"),
        ("none", "chat", {"response_format": SCHEMA}, {}, "nothing"),
        ("restart", "chat", {}, {}, "nothing"),
        ("buffered", "chat", {}, {}, "nothing"),
    ],
)
def test_what_only_makes_sense_whole_is_held(
    text: str, dialect: Dialect, fields: dict[str, Any], headers: dict[str, str], expected: Held
) -> None:
    """Calls, unless the caller asks for their arguments as they are written; an answer by a schema all of it."""
    request = peek(dialect, {**CHAT, **fields}, headers=headers)
    assert held(request, parse_recovery(text)) == expected


def test_only_what_the_provider_did_is_recovered() -> None:
    """Cuts, stalls and errors; not a caller who left, a filter or a request that was refused."""
    found = {each for each in FailureClass if recoverable(Failure(each))}
    assert found == {
        FailureClass.RATE_LIMITED,
        FailureClass.OVERLOADED,
        FailureClass.WARMING,
        FailureClass.SERVER_ERROR,
        FailureClass.TRANSPORT,
        FailureClass.TIMEOUT,
        FailureClass.TRUNCATED,
        FailureClass.MALFORMED,
        FailureClass.EMPTY,
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" Continue ", Recovery("continue")),
        ("hold-back( 40 )", Recovery("hold_back", 40)),
        ("hold_back(100000)", Recovery("hold_back", 100_000)),
        ("none", NO_RECOVERY),
    ],
)
def test_a_policy_is_read_as_people_write_it(text: str, expected: Recovery) -> None:
    """Case, white space and hyphens do not matter."""
    assert parse_recovery(text) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("continu", "did you mean 'continue'?"),
        ("holdback(3)", "did you mean 'hold_back(200)'?"),
        ("hold_back", "how many characters"),
        ("hold_back(0)", "1 to 100000"),
        ("hold_back(100001)", "1 to 100000"),
        ("buffered(3)", "takes no number"),
        ("", "known: "),
        ("x" * 1000, "known: "),
        ("continue\x00", "did you mean 'continue'?"),
        ("hold_back(٣)", "hold_back"),
    ],
)
def test_what_is_no_policy_is_refused_with_what_would_be(text: str, said: str) -> None:
    """The message names the nearest policy, or all of them."""
    with pytest.raises(ValueError, match=r"hold_back|continue|buffered") as caught:
        parse_recovery(text)
    assert said in str(caught.value)
    assert len(str(caught.value)) < 300
