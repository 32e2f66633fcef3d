"""One request as routing sees it: what is refused by name, what goes out unchanged, which facts are read."""

from __future__ import annotations

import json
import math
from types import MappingProxyType
from typing import Any

import pytest

from smart_model_router.domain.errors import InvalidRequest
from smart_model_router.domain.outcome import FailureClass, Usage
from smart_model_router.domain.report import Attempt, ReportedRefusal, RouteReport
from smart_model_router.domain.request import Dialect, Target, peek

HELLO = [{"role": "user", "content": "hello"}]


def body(**more: Any) -> dict[str, Any]:
    """Make a small good chat body, but for what is given."""
    return {"model": "smart", "messages": HELLO, **more}


def nested(depth: int) -> Any:
    """Make a list in a list in a list."""
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


# ------------------------------------------------------------------------------------------------ bad input

BAD_BODIES: list[tuple[str, object, str]] = [
    ("none", None, "the body must be a JSON object, not NoneType"),
    ("text", "hello", "the body must be a JSON object, not str"),
    ("list", [body()], "the body must be a JSON object, not list"),
    ("bytes", b"{}", "the body must be a JSON object, not bytes"),
    ("empty", {}, "model: a non-empty string is needed, not None"),
    ("no model", {"messages": HELLO}, "model: a non-empty string is needed, not None"),
    ("blank model", body(model="  "), "model: a non-empty string is needed, not '  '"),
    ("model number", body(model=4), "model: a non-empty string is needed, not 4"),
    ("no messages", {"model": "smart"}, "messages: a non-empty list is needed, not None"),
    ("empty messages", body(messages=[]), "messages: a non-empty list is needed, not []"),
    ("messages text", body(messages="hello"), "messages: a non-empty list is needed, not 'hello'"),
    ("messages object", body(messages={"a": 1}), "messages: a non-empty list is needed, not {'a': 1}"),
    ("message text", body(messages=[*HELLO, "hi"]), "messages[1]: an object is needed, not 'hi'"),
    ("message null", body(messages=[None]), "messages[0]: an object is needed, not None"),
    ("nan", body(temperature=math.nan), "body.temperature: not JSON"),
    ("infinity", body(temperature=math.inf), "body.temperature: not JSON"),
    ("deep nan", body(tools=[{"f": {"x": [1, -math.inf]}}]), "body.tools[0].f.x[1]: not JSON"),
    ("set", body(stop={"a"}), "body.stop: not JSON"),
    ("bytes inside", body(user=b"me"), "body.user: not JSON"),
    ("odd key", body(metadata={(1, 2): 3}), "body: not JSON"),
    ("odd mapping", body(metadata=MappingProxyType({"a": 1})), "body: not JSON"),
    ("too deep", body(metadata=nested(100_000)), "the body is nested too deeply to be JSON"),
]  # fmt: skip


@pytest.mark.parametrize(("bad", "told"), [row[1:] for row in BAD_BODIES], ids=[row[0] for row in BAD_BODIES])
@pytest.mark.parametrize("dialect", ["chat", "messages"])
def test_a_bad_body_is_refused_by_name(dialect: Dialect, bad: object, told: str) -> None:
    """A typed error that says what is wrong and where; never anything else."""
    with pytest.raises(InvalidRequest) as caught:
        peek(dialect, bad)
    assert str(caught.value).startswith(told)


@pytest.mark.parametrize("given", [None, "", [], 0])
def test_embeddings_need_an_input(given: object) -> None:
    """Their prompt is `input`, not messages."""
    with pytest.raises(InvalidRequest, match="input: a non-empty string or list is needed"):
        peek("embeddings", {"model": "e", "input": given})


def test_a_body_that_contains_itself_is_refused() -> None:
    """No endless loop and no other exception."""
    circle = body()
    circle["metadata"] = circle
    with pytest.raises(InvalidRequest, match="not JSON"):
        peek("chat", circle)


def test_a_long_value_is_cut_in_the_message() -> None:
    """A prompt in the wrong place does not fill the log."""
    with pytest.raises(InvalidRequest) as caught:
        peek("chat", body(messages="x" * 10_000_000))
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("option", ["timeout", "max_cost"])
@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf, True, "10"])
def test_an_option_that_is_no_positive_number_is_refused(option: str, value: Any) -> None:
    """Timeouts and costs are above 0 and finite."""
    with pytest.raises(InvalidRequest, match=f"{option}: a number above 0, at most 1e9, is needed"):
        peek("chat", body(), **{option: value})


def test_an_unknown_criticality_is_refused() -> None:
    """The four words are told."""
    with pytest.raises(InvalidRequest, match="'urgent' is none of critical_plus, critical, sheddable_plus, sheddable"):
        peek("chat", body(), criticality="urgent")  # type: ignore[arg-type]  # what an unchecked caller sends


@pytest.mark.parametrize("avoid", [5, [5], {"a": 1}, [None], [["a"]], b"a"])
def test_avoid_is_a_list_of_names(avoid: Any) -> None:
    """Anything else is refused, not ignored."""
    with pytest.raises(InvalidRequest, match="avoid: target ids or provider names are needed"):
        peek("chat", body(), avoid=avoid)


# ------------------------------------------------------------------------------------------------ what goes out


def test_the_body_goes_out_as_it_came_but_for_its_model() -> None:
    """Unknown fields, order and unicode included; the caller's object is not changed."""
    given = body(temperature=0.5, made_up={"ä": [None, True, 1e3]}, user="Zoë")
    before = json.dumps(given)
    request = peek("chat", given)
    sent = json.loads(request.payload("gpt-x"))
    assert sent == {**given, "model": "gpt-x"}
    assert next(iter(sent)) == "model"
    assert json.dumps(given) == before
    assert "Zoë".encode() in request.payload("gpt-x")


def test_a_model_name_is_escaped() -> None:
    """A quote in a name is no injection."""
    assert json.loads(peek("chat", body()).payload('a"b\\c'))["model"] == 'a"b\\c'


def test_a_lone_surrogate_goes_out_as_an_escape() -> None:
    """Half of an emoji, as some tokenizers cut it, is legal JSON only when escaped."""
    sent = peek("chat", body(user="\ud83d")).payload("m")
    assert b"\\ud83d" in sent
    assert json.loads(sent)["user"] == "\ud83d"


def test_a_stream_says_so_and_asks_for_usage() -> None:
    """Chat needs the option, the caller's other stream options stay."""
    sent = json.loads(peek("chat", body(stream_options={"x": 1}), stream=True).payload("m"))
    assert sent["stream"] is True
    assert sent["stream_options"] == {"x": 1, "include_usage": True}
    odd = json.loads(peek("chat", body(stream_options=None), stream=True).payload("m"))
    assert odd["stream_options"] == {"include_usage": True}


def test_a_whole_answer_is_asked_without_the_options_of_streams() -> None:
    """`stream_options` without `stream` is a provider's 400."""
    sent = json.loads(peek("chat", body(stream=True, stream_options={"include_usage": True})).payload("m"))
    assert sent == json.loads(peek("chat", body()).payload("m"))


@pytest.mark.parametrize("option", ["tier", "session"])
@pytest.mark.parametrize("value", [5, ["x"], b"x"])
def test_a_name_is_text(option: str, value: Any) -> None:
    """A tier or a session that is something else is refused by name, not overlooked."""
    with pytest.raises(InvalidRequest, match=f"{option}: text is needed"):
        peek("chat", body(), **{option: value})


def test_messages_streams_have_no_stream_options() -> None:
    """That dialect does not know them."""
    sent = json.loads(peek("messages", body(), stream=True).payload("m"))
    assert sent["stream"] is True
    assert "stream_options" not in sent


def test_a_whole_answer_is_asked_for_whole() -> None:
    """`stream` in the body of a call for a whole answer is left out."""
    request = peek("chat", body(stream=True))
    assert not request.stream
    assert "stream" not in json.loads(request.payload("m"))


def test_a_ten_megabyte_prompt_is_taken() -> None:
    """Its size is the measure tokens are estimated from."""
    request = peek("chat", body(messages=[{"role": "user", "content": "x" * 10_000_000}]))
    assert 10_000_000 < request.prompt_bytes < 10_000_100


# ------------------------------------------------------------------------------------------------ the facts


def test_what_nobody_said_has_its_default() -> None:
    """Critical, no tier, nothing avoided, no session, no deadline, no price."""
    request = peek("chat", body())
    assert request.model == "smart"
    assert request.criticality == "critical"
    assert request.avoid == frozenset()
    assert (request.tier, request.session, request.timeout, request.max_cost) == (None, None, None, None)
    assert request.needs == frozenset()
    assert request.max_tokens is None
    assert request.session_key is None


def test_what_was_said_is_kept() -> None:
    """Tier, session, deadline, price, criticality; one name to avoid is a list of one."""
    request = peek(
        "chat", body(), tier="standard", avoid="a", session="s", timeout=2, max_cost=0.5, criticality="sheddable"
    )
    assert (request.tier, request.session, request.timeout, request.max_cost) == ("standard", "s", 2, 0.5)
    assert request.avoid == {"a"}
    assert request.criticality == "sheddable"
    for names in (["a", "b/big"], {"a": 1, "b/big": 2}.keys(), (name for name in ("a", "b/big"))):
        assert peek("chat", body(), avoid=names).avoid == {"a", "b/big"}


IMAGE = {"role": "user", "content": [{"type": "text", "text": "?"}, {"type": "image_url", "image_url": {}}]}


@pytest.mark.parametrize(
    ("more", "needs"),
    [
        ({"tools": [{"type": "function"}]}, {"tools"}),
        ({"tools": []}, set()),
        ({"functions": [{"name": "f"}]}, {"tools"}),
        ({"response_format": {"type": "json_schema"}}, {"schema"}),
        ({"response_format": {"type": "json_object"}}, set()),
        ({"response_format": "json_schema"}, set()),
        ({"output_config": {"format": {"type": "json_schema"}}}, {"schema"}),
        ({"output_config": {"effort": "low"}}, set()),
        ({"messages": [*HELLO, IMAGE]}, {"images"}),
        ({"messages": [{"role": "user", "content": [{"type": "image"}]}]}, {"images"}),
        ({"messages": [{"role": "user", "content": [{"type": "input_image"}]}]}, {"images"}),
        ({"messages": [{"role": "user", "content": ["image", {"type": "text"}]}]}, set()),
        (
            {"messages": [IMAGE], "tools": [{}], "response_format": {"type": "json_schema"}},
            {"tools", "images", "schema"},
        ),
    ],
)
def test_needs_are_read_from_the_body(more: dict[str, Any], needs: set[str]) -> None:
    """Tools, images and schemas rule targets out; nothing else in the body does."""
    assert peek("chat", body(**more)).needs == needs


SCREENSHOT = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}


@pytest.mark.parametrize(
    ("given", "needs"),
    [
        ([{"type": "text", "text": "done"}, SCREENSHOT], {"images"}),
        ([{"type": "text", "text": "done"}], set()),
        ("done", set()),
        (None, set()),
    ],
)
def test_a_tool_s_screenshot_is_an_image(given: object, needs: set[str]) -> None:
    """What a tool gave back to a Messages conversation goes to targets that can see it."""
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": given}]}
    assert peek("messages", body(messages=[*HELLO, result])).needs == needs


def test_a_tool_s_file_is_at_its_provider() -> None:
    """A file named in a tool's result ties the request to who has it."""
    content = [{"type": "document", "source": {"type": "file", "file_id": "file_1"}}]
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": content}]}
    assert peek("messages", body(messages=[result])).state_ids == {"file_1"}


def test_embeddings_have_no_images() -> None:
    """Whatever their body says beside the input."""
    assert peek("embeddings", {"model": "e", "input": "x", "messages": [IMAGE]}).needs == frozenset()


@pytest.mark.parametrize(
    ("more", "cap"),
    [
        ({"max_tokens": 5}, 5),
        ({"max_completion_tokens": 7, "max_tokens": 5}, 7),
        ({"max_completion_tokens": None, "max_tokens": 5}, 5),
        ({"max_tokens": 0}, None),
        ({"max_tokens": -1}, None),
        ({"max_tokens": True}, None),
        ({"max_tokens": "5"}, None),
    ],
)
def test_the_callers_cap_is_read(more: dict[str, Any], cap: int | None) -> None:
    """The newer name wins; nonsense is the provider's to refuse."""
    assert peek("chat", body(**more)).max_tokens == cap


@pytest.mark.parametrize(
    ("session", "more", "key"),
    [
        ("s", {}, "s"),
        (None, {"prompt_cache_key": "k"}, "k"),
        ("s", {"prompt_cache_key": "k"}, "s"),
        (None, {"prompt_cache_key": 5}, None),
        ("", {"prompt_cache_key": "k"}, None),
    ],
)
def test_a_session_is_given_or_read(session: str | None, more: dict[str, Any], key: str | None) -> None:
    """The session given comes before the body's own cache key."""
    assert peek("chat", body(**more), session=session).session_key == key


def test_a_target_is_its_id_provider_model_and_credential() -> None:
    """The first credential is number 0; equal targets are equal."""
    assert Target("a/big", "a", "big") == Target("a/big", "a", "big", 0)


# ------------------------------------------------------------------------------------------------ the report


def test_a_report_is_one_line_of_json_with_everything_in_it() -> None:
    """Attempts, refusals, waits and losses, in plain values."""
    report = RouteReport(
        "id",
        "smart",
        "frontier",
        actual_tier="standard",
        target="a/small",
        degraded=True,
        complete=True,
        attempts=[
            Attempt("a/big", 1.23456789, FailureClass.TIMEOUT, "slow", 408, probe=True),
            Attempt("a/small", 0.5, ttft_seconds=0.25, usage=Usage(10, 5, 2), cost_usd=0.001, hedge=True),
        ],
        refusals=[ReportedRefusal("b/big", "open", 30.0)],
        waited_seconds=2.00000049,
        seconds=4.0,
        ttft_seconds=0.25,
        usage=Usage(10, 5, 2),
        cost_usd=0.001,
        malformed_events=1,
        notes=["no terminator"],
        ruled_out={"a/big": "TIMEOUT"},
        losses=["signature"],
    )
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "cached_prompt_tokens": 2}
    line = report.to_json()
    assert "\n" not in line
    assert json.loads(line) == {
        "request_id": "id",
        "model": "smart",
        "target": "a/small",
        "requested_tier": "frontier",
        "actual_tier": "standard",
        "degraded": True,
        "escalated": False,
        "last_resort": False,
        "fallback": False,
        "choice": 1,
        "complete": True,
        "attempts": [
            {
                "target": "a/big",
                "failure_class": "TIMEOUT",
                "message": "slow",
                "status": 408,
                "code": "",
                "seconds": 1.234568,
                "ttft_seconds": None,
                "usage": None,
                "cost_usd": None,
                "probe": True,
                "hedge": False,
                "estimated": False,
            },
            {
                "target": "a/small",
                "failure_class": None,
                "message": "",
                "status": None,
                "code": "",
                "seconds": 0.5,
                "ttft_seconds": 0.25,
                "usage": usage,
                "cost_usd": 0.001,
                "probe": False,
                "hedge": True,
                "estimated": False,
            },
        ],
        "refusals": [{"target": "b/big", "reason": "open", "retry_after": 30.0}],
        "waited_seconds": 2.0,
        "seconds": 4.0,
        "ttft_seconds": 0.25,
        "usage": usage,
        "cost_usd": 0.001,
        "malformed_events": 1,
        "notes": ["no terminator"],
        "ruled_out": {"a/big": "TIMEOUT"},
        "losses": ["signature"],
        "recoveries": [],
        "earlier": [],
    }


def test_a_fresh_report_has_done_nothing() -> None:
    """No target, no attempt, not complete; and its lists are its own."""
    one, other = RouteReport("1", "smart", "frontier"), RouteReport("2", "smart", "frontier")
    one.attempts.append(Attempt("a", 1.0))
    assert other.attempts == []
    assert not other.complete
    assert other.target is None


@pytest.mark.parametrize(
    ("more", "things"),
    [
        ({}, set()),
        ({"container": "c1"}, {"c1"}),
        ({"container": {"id": "c2", "skills": []}}, {"c2"}),
        ({"container": {"skills": []}}, set()),
        ({"container": 5}, set()),
        ({"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "f1"}}]}]}, {"f1"}),
        ({"messages": [{"role": "user", "content": [{"type": "document", "source": {"file_id": "f2"}}]}]}, {"f2"}),
        ({"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_data": "x"}}, "text"]}]}, set()),
        ({"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": 5}}]}]}, set()),
        ({"messages": HELLO, "file": {"file_id": "f3"}}, set()),
    ],
)
def test_things_kept_at_a_provider_are_read_from_the_body(more: dict[str, Any], things: set[str]) -> None:
    """Containers and uploaded files: only who made them knows them."""
    assert peek("chat", body(**more)).state_ids == things


# What a conversation without a session is known by ----------------------------------------------------

LONG = "You are an agent. " * 300


def conversation(dialect: Dialect, first: str, *later: str, system: str = LONG) -> str | None:
    """The key of a conversation that began with `first`."""
    turns = [{"role": role, "content": text} for role, text in zip(("assistant", "user") * 9, later, strict=False)]
    user = {"role": "user", "content": first}
    bodies: dict[Dialect, dict[str, Any]] = {
        "chat": {"messages": [{"role": "system", "content": system}, user, *turns]},
        "messages": {"system": system, "max_tokens": 9, "messages": [user, *turns]},
        "responses": {"instructions": system, "input": [user, *turns]},
        "embeddings": {"input": [system + first]},
    }
    return peek(dialect, {"model": "m", **bodies[dialect]}).prompt_key


@pytest.mark.parametrize("dialect", ["chat", "messages", "responses"])
def test_a_conversation_is_known_by_how_it_begins(dialect: Dialect) -> None:
    """Every turn has the same key; another first message or another system prompt is another conversation."""
    key = conversation(dialect, "hello")
    assert key is not None
    assert conversation(dialect, "hello", "hi", "and now?") == key
    assert conversation(dialect, "good morning") != key
    assert conversation(dialect, "hello", system=LONG + ".") != key


def test_a_short_prompt_is_no_conversation() -> None:
    """Nothing of it is kept in a cache; nor is there one for embeddings."""
    assert conversation("chat", "hello", system="Be brief.") is None
    assert conversation("embeddings", "hello") is None


@pytest.mark.parametrize(
    "messages", [[{"role": "assistant", "content": LONG}], [{"content": LONG}], [{"role": 3, "content": LONG}]]
)
def test_a_conversation_without_a_user_has_a_key(messages: list[dict[str, Any]]) -> None:
    """Whatever the body holds, it is hashed and not judged."""
    assert peek("chat", {"model": "m", "messages": messages}).prompt_key is not None


def test_the_text_of_a_response_s_input_is_how_it_begins() -> None:
    """Text alone, halves of surrogates and all."""
    keys = {peek("responses", {"model": "m", "input": LONG + end}).prompt_key for end in ("a", "b", "\ud83d")}
    assert len(keys) == 3
    assert None not in keys
