"""A body goes out as it came wherever only the model's name has to change, and means the same wherever not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_model_router.domain import body_encoding
from smart_model_router.domain.request import Dialect, peek
from smart_model_router.wires.values import decode_object

MESSAGES = [{"role": "user", "content": "hi"}]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(["metadata", "model", "stream", "stream_options", "user", "tools"]) | st.text(max_size=6)
INSIDE = st.dictionaries(KEYS, JSON | st.sampled_from(["model", "stream", '"model":"smart"']), max_size=3)


def sent(written: str, *, dialect: Dialect = "chat", stream: bool = False) -> bytes:
    """What goes out for a body that came as this text."""
    body = decode_object(written.encode())
    return peek(dialect, body, stream=stream, written=written.encode()).payload("m1")


def anew(written: str, *, dialect: Dialect = "chat", stream: bool = False) -> Any:
    """What it means, where the body is written anew."""
    return json.loads(peek(dialect, decode_object(written.encode()), stream=stream).payload("m1"))


@pytest.mark.parametrize(
    "written",
    [
        '{"model":"smart","messages":[{"role":"user","content":"h\\u00e9 é"}],"n":1.50}',
        '{ "messages": [{"role":"user","content":"hi"}],\r\n\t"model" : "smart"  }\n',
        '{"messages":[{"role":"user","content":"\\"model\\":\\"smart\\""}],"model":"smart"}',
    ],
)
def test_only_the_name_changes(written: str) -> None:
    """Spaces, escapes, the order of keys and the digits of numbers stay, wherever the model's name stands."""
    before, name, after = written.rpartition('"smart"')
    assert name
    assert sent(written).decode() == f'{before}"m1"{after}'


@pytest.mark.parametrize("step", [1, 6, 7, 8, 1000])
@pytest.mark.parametrize(
    "written",
    [
        '{"model":"smart","messages":[{"role":"user","content":"h\\u00e9 é"}],"n":1.50}',
        '{"messages":[{"role":"user","content":"hi","model":"x"}],"model":"smart"}',
        '{"messages":[{"role":"user","content":"hi"}],"mod\\u0065l":"smart", "model" :"smart"}',
        '{"messages":[{"role":"user","content":"hi"}],"model":"smart","stream":true,"stream_options":{}}',
    ],
)
def test_a_large_text_is_searched_in_steps_with_the_same_result(
    written: str, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever a step ends, inside a key too; one that stands twice or is escaped is found in any of them."""
    expected = sent(written)
    monkeypatch.setattr(body_encoding, "LARGE_BYTES", 0)
    monkeypatch.setattr(body_encoding, "_STEP", step)
    assert sent(written) == expected


def test_a_stream_of_another_dialect_goes_out_as_it_came() -> None:
    """Only Chat has to be asked for its usage."""
    written = '{"model": "smart", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}], "stream": true}'
    assert sent(written, dialect="messages", stream=True).decode() == written.replace('"smart"', '"m1"')


def test_a_chat_stream_is_asked_for_its_usage() -> None:
    """At the end of the text that came; not where it is asked for already."""
    written = '{"model": "smart", "messages": [{"role": "user", "content": "hi"}], "stream": true'
    asked = sent(written + " } ", stream=True).decode()
    usage = ',"stream_options":{"include_usage":true}}'
    assert asked == written.replace('"smart"', '"m1"') + " " + usage
    told = written + ', "stream_options": {"include_usage": true}}'
    assert sent(told, stream=True).decode() == told.replace('"smart"', '"m1"')


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "more",
    [
        '"metadata":{"model":"smart"}',  # another key of that name
        '"user":"model"',  # a text like it
        '"mod\\u0065l":"smart"',  # the same key, once more
        '"st\\u0072eam":true',
        '"model":"smart"',
        '"stream":false',
        '"stream":true,"stream":true',
        '"stream_options":{"include_usage":false}',
        '"stream_options":null',
        '"stream_options":{"include_usage":true},"stream_options":{"include_usage":true}',
    ],
)
def test_doubt_means_writing_it_anew(more: str, stream: bool) -> None:
    """Names that occur twice, or as escapes, and what has to be changed itself."""
    written = f'{{"model":"smart","messages":[{{"role":"user","content":"hi"}}],{more}}}'
    got = json.loads(sent(written, stream=stream))
    assert got == anew(written, stream=stream)
    assert got.get("stream") is (True if stream else None)
    assert ("stream_options" in got) is stream


def test_a_text_of_another_body_is_not_sent() -> None:
    """A fallback asks under another name than the text has."""
    written = json.dumps({"model": "smart", "messages": MESSAGES}).encode()
    request = peek("chat", {"model": "other", "messages": MESSAGES, "n": 1}, written=written)
    assert json.loads(request.payload("m1")) == {"model": "m1", "messages": MESSAGES, "n": 1}


@given(
    inside=INSIDE,
    stream=st.booleans(),
    dialect=st.sampled_from(["chat", "messages"]),
    ascii_only=st.booleans(),
    indent=st.sampled_from([None, 0, 2]),
    first=st.booleans(),
)
def test_it_means_the_same(
    inside: dict[str, Any], stream: bool, dialect: Dialect, ascii_only: bool, indent: int | None, first: bool
) -> None:
    """Whatever a body holds and however it is written: as it came it says what it says when it is written anew."""
    own: dict[str, Any] = {"model": "smart", "messages": MESSAGES, **({"stream": True} if stream else {})}
    body = {**own, **inside, **own} if first else {**inside, **own}
    try:
        written = json.dumps(body, ensure_ascii=ascii_only, indent=indent)
        written.encode()
    except UnicodeEncodeError:
        written = json.dumps(body, indent=indent)
    assert json.loads(sent(written, dialect=dialect, stream=stream)) == anew(written, dialect=dialect, stream=stream)
