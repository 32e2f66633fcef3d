"""Large bodies are written in steps, as they would be in one, and off the loop."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_model_router.domain import body_encoding
from smart_model_router.domain.body_encoding import LARGE_BYTES, condensed, encode, encode_large
from smart_model_router.domain.errors import AllTargetsFailed
from smart_model_router.domain.request import peek
from smart_model_router.flow.off_loop import LONG_BYTES, off_loop
from smart_model_router.http_api.api_request import read_ask
from smart_model_router.testing import FakeProvider
from tests.world import DOWN, world

texts = st.text(max_size=30) | st.sampled_from(["\ud83d", "a" * 50, '"\\' * 20, "\u2603" * 30])
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=5),
    max_leaves=20,
)


@pytest.fixture
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_encoding, "PIECE", 7)
    monkeypatch.setattr(body_encoding, "_SHORT", 3)
    monkeypatch.setattr(body_encoding, "_MEMBERS", 2)


@pytest.mark.usefixtures("_small_pieces")
@given(value=values)
def test_a_large_value_is_written_as_any_other(value: object) -> None:
    """In short pieces the same JSON comes out; a lone surrogate is an escape in both."""
    assert json.loads(encode_large(value)) == json.loads(encode(value))
    if "\\ud83d" not in json.dumps(value):
        assert encode_large(value) == encode(value)


@pytest.mark.usefixtures("_small_pieces")
@pytest.mark.parametrize("value", [{1: "a" * 9}, {None: "b" * 9, True: 1, 2.5: 2}, ["c" * 9, [], {}, ()], ("d" * 9,)])
def test_what_json_makes_of_python_is_the_same(value: object) -> None:
    """Keys that are no text, tuples, empty containers."""
    assert encode_large(value) == encode(value)


@pytest.mark.parametrize("value", [["a" * 70_000, float("nan")], ["a" * 70_000, object()]])
def test_what_is_no_json_is_refused_in_steps_too(value: object) -> None:
    """As in one step."""
    with pytest.raises((TypeError, ValueError)):
        encode_large(value)


def test_a_long_prompt_is_told_from_others_by_a_digest() -> None:
    """Every character counts; short texts stay what they are, so that a growing conversation keeps its key."""
    short = ({"role": "user", "content": "hi"}, [1, None], ("a",))
    assert condensed(short) == short
    long = {"content": [{"text": "a" * 100_000 + "b"}]}
    other = {"content": [{"text": "a" * 100_000 + "c"}]}
    assert condensed(long) != condensed(other)
    assert len(repr(condensed(long))) < 200


def test_the_key_of_a_conversation_does_not_change_when_it_grows() -> None:
    """Neither a short beginning nor a long one has another key in a longer conversation."""
    for size in (5_000, 100_000):
        said: list[dict[str, Any]] = [{"role": "user", "content": "x" * size}]
        before = peek("chat", {"model": "m", "messages": said})
        after = peek("chat", {"model": "m", "messages": [*said, {"role": "assistant", "content": "y" * 200_000}]})
        assert before.prompt_key == after.prompt_key != None  # noqa: E711 - one comparison of three


@pytest.mark.asyncio
async def test_a_large_body_is_read_and_translated_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop's thread neither decodes nor translates nor writes it."""
    seen: set[str] = set()
    encode_text = body_encoding.encode_text

    def noted(value: object) -> str:
        seen.add(threading.current_thread().name)
        return encode_text(value)

    monkeypatch.setattr(body_encoding, "encode_text", noted)
    made = world(["a/big"], replies={"a": FakeProvider(DOWN)}, kinds={"a": {"kind": "anthropic"}})
    body = {"model": "smart", "messages": [{"role": "user", "content": "x" * LARGE_BYTES}]}
    raw = json.dumps(body).encode()
    ask = await off_loop(lambda: read_ask("chat", {}, raw))
    with pytest.raises(AllTargetsFailed):
        await made.router.answer("chat", ask.body, {"timeout": 5.0}, written=raw)
    assert made.providers["a"].calls[0].dialect == "messages"
    assert seen
    assert all(name.startswith("smart-model-router large bodies") for name in seen)
    await made.router.aclose()


@pytest.mark.asyncio
async def test_the_loop_turns_while_the_thread_works() -> None:
    """Work that waits for the loop is done: they do not wait for each other. Errors come back."""
    turned = threading.Event()
    working = asyncio.ensure_future(off_loop(lambda: turned.wait(30)))
    await asyncio.sleep(0)
    turned.set()
    assert await working

    def fail() -> None:
        raise ValueError("told")

    with pytest.raises(ValueError, match="told"):
        await off_loop(fail)


@pytest.mark.asyncio
async def test_work_on_a_large_body_does_not_wait_behind_a_long_one() -> None:
    """A conversation of 300 KB is read while bodies of 30 MB are."""
    done = threading.Event()
    long = [asyncio.ensure_future(off_loop(lambda: done.wait(30), LONG_BYTES + 1)) for _ in range(3)]
    try:
        assert await asyncio.wait_for(off_loop(lambda: "read", LONG_BYTES), 20) == "read"
        assert not any(one.done() for one in long)
    finally:
        done.set()
    assert all(await asyncio.gather(*long))
