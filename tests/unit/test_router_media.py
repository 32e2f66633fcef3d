"""Pictures, documents and recordings on their way through a router: weighed by what they are, never by their base64."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from smart_model_router import AllTargetsFailed, ContextTooLong, UnsupportedFeature
from smart_model_router.domain.outcome import FailureClass, Usage
from smart_model_router.testing import FakeProvider, FakeReply
from tests.media_files import b64, data_url, pdf, png, wav
from tests.unit.gateway.test_endpoint import KEYED, asked, gateway_over
from tests.world import World, failing, now, virtual, world

GOLDEN = json.loads((Path(__file__).parents[1] / "fixtures" / "media_golden.json").read_text())["rows"]
FOUR_MEGABYTES = 4_000_000


def part(medium: str, size: list[int]) -> dict[str, Any]:
    """Make a part of Chat: a picture of 4 MB, a PDF of so many pages, a recording of so many seconds."""
    if medium == "image":
        width, height = size
        return {"type": "image_url", "image_url": {"url": data_url("image/png", png(width, height, FOUR_MEGABYTES))}}
    if medium == "pdf":
        return {"type": "file", "file": {"file_data": data_url("application/pdf", pdf(size[0], filler=200_000))}}
    return {"type": "input_audio", "input_audio": {"data": b64(wav(size[0], rate=8000)), "format": "wav"}}


PICTURE, DOCUMENT, RECORDING = part("image", [3000, 2000]), part("pdf", [50]), part("audio", [600])


def asking(*parts: Any, **more: Any) -> dict[str, Any]:
    """Ask about these parts."""
    content = [{"type": "text", "text": "What is it?"}, *parts]
    return {"model": "smart", "messages": [{"role": "user", "content": content}], "max_tokens": 1, **more}


async def estimated(w: World, body: dict[str, Any]) -> float:
    """What is reserved of the one target's tokens a minute while it answers."""
    [gate] = w.state.fleet.gates.values()
    asked = asyncio.ensure_future(w.router.chat(body))
    await asyncio.sleep(1.0)
    assert gate.limits.tokens is not None
    taken = gate.limits.tokens.capacity - gate.limits.tokens.snapshot().level
    assert (await asked).report.target == gate.id
    return taken


def slow(prompt_tokens: int = 10) -> dict[str, FakeProvider]:
    """Make a provider that takes ten seconds and counts so many tokens."""
    return {"a": FakeProvider(FakeReply(seconds=10, usage=Usage(prompt_tokens, 1)))}


@pytest.mark.parametrize("row", GOLDEN, ids=lambda row: f"{row['model']}-{row['medium']}-{row['size']}")
@virtual
async def test_an_estimate_is_within_a_factor_of_two_of_what_is_documented(row: dict[str, Any]) -> None:
    """A picture of 4 MB, a PDF of 50 pages, ten minutes of sound: at once, where a minute has room for little more."""
    limits = {"kind": row["kind"], "tpm": max(10_000, 3 * row["tokens"])}
    w = world([f"a/{row['model']}"], kinds={"a": limits}, replies=slow())
    began = now()
    reserved = await estimated(w, asking(part(row["medium"], row["size"])))
    assert now() == began + 10
    assert row["tokens"] / 2 <= reserved - 30 <= row["tokens"] * 2


@pytest.mark.parametrize("medium", [PICTURE, DOCUMENT, RECORDING], ids=["picture", "document", "recording"])
@virtual
async def test_no_estimate_of_media_refuses_for_good(medium: dict[str, Any]) -> None:
    """A target of a hundred tokens a minute is asked all the same, and the next request waits for its minute."""
    w = world(["a/big"], kinds={"a": {"tpm": 100}}, replies={"a": FakeProvider(FakeReply(usage=Usage(90, 1)))})
    assert (await w.router.chat(asking(medium))).report.target == "a/big"
    began = now()
    assert (await w.router.chat(asking(medium))).report.target == "a/big"
    assert 50 < now() - began < 61


@virtual
async def test_the_providers_word_is_what_refuses() -> None:
    """It says that the prompt is too large: the next target is asked, or the caller is told in its words."""
    too_large = FakeProvider(failing(FailureClass.TOO_LARGE, 413))
    w = world(["a/big"], kinds={"a": {"tpm": 100}}, replies={"a": too_large})
    with pytest.raises(ContextTooLong, match="the request is too large"):
        await w.router.chat(asking(PICTURE))
    assert w.calls("a") == 1


@virtual
async def test_a_text_within_a_fifth_of_the_limit_is_sent_when_the_minute_is_full() -> None:
    """The estimate may be wrong by as much; a longer one is refused at once, and a picture beside it changes that."""
    w = world(["a/big"], kinds={"a": {"tpm": 1_000}}, replies={"a": FakeProvider(FakeReply(usage=Usage(900, 1)))})
    text = {"type": "text", "text": "x" * 4_500}
    assert (await w.router.chat(asking(text))).report.target == "a/big"
    with pytest.raises(AllTargetsFailed, match="takes fewer tokens a minute"):
        await w.router.chat(asking(text, text))
    assert (await w.router.chat(asking(text, text, PICTURE))).report.target == "a/big"


@virtual
async def test_the_estimate_learns_what_a_picture_costs() -> None:
    """A model nobody knows, which counts a picture at 8,000 tokens: after some of them that is what is reserved."""
    w = world(["a/big"], kinds={"a": {"tpm": 400_000}}, replies=slow(8_000))
    small = {"type": "image_url", "image_url": {"url": data_url("image/png", png(3000, 2000))}}
    first = await estimated(w, asking(small))
    for _ in range(40):
        await w.router.chat(asking(small))
    await asyncio.sleep(60)
    assert first < 4_000
    assert await estimated(w, asking(small)) == pytest.approx(8_000, rel=0.1)


HOSTILE = [
    {"type": "image_url", "image_url": {"url": data_url("image/png", png(2**31 - 1, 2**31 - 1))}},
    {"type": "image_url", "image_url": {"url": data_url("image/png", png(0, 0))}},
    {"type": "image_url", "image_url": {"url": data_url("image/png", png(10, 10)[:20])}},
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,@@@@ no base64 at all @@@@"}},
    {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
    {"type": "image_url", "image_url": None},
    {"type": "file", "file": {"file_data": data_url("application/pdf", b"%PDF-1.7 /Type/Pages/Count 999999999")}},
    {"type": "file", "file": {"file_id": "file-1"}},
    {"type": "input_audio", "input_audio": {"data": b64(wav(0.001, says=2**32 - 1)), "format": "wav"}},
]


@pytest.mark.parametrize("medium", HOSTILE)
@virtual
async def test_a_header_that_lies_loses_nothing(medium: dict[str, Any]) -> None:
    """A picture of a terabyte, one of nothing, half of one: it is sent as it came, at what a medium costs at most."""
    w = world(["a/gpt-4o"], kinds={"a": {"tpm": 400_000}}, replies=slow())
    body = asking(medium)
    assert 20 < await estimated(w, body) < 20_000
    assert w.providers["a"].calls[0].body["messages"] == body["messages"]


@pytest.mark.parametrize(
    ("medium", "need"), [(PICTURE, "images"), (DOCUMENT, "pdf"), (RECORDING, "audio")], ids=["images", "pdf", "audio"]
)
@virtual
async def test_media_go_where_they_are_understood(medium: dict[str, Any], need: str) -> None:
    """A model that is known not to is left out, by the table or by its owner's word, which is the last one."""
    tier = [{"target": "a/blind", need: False}, "b/gpt-4"]
    models = {"smart": {"tiers": [{"targets": tier}], "last_resort": []}}
    w = world(["a/blind", "b/gpt-4"], config={"models": models}, kinds={"b": {"kind": "openai"}})
    with pytest.raises(UnsupportedFeature, match=rf"a/blind cannot do .*\({need}\); b/gpt-4 cannot do .*\({need}\)"):
        await w.router.chat(asking(medium))
    tier[1] = {"target": "b/gpt-4", need: True}
    told = world(["a/blind", "b/gpt-4"], config={"models": models}, kinds={"b": {"kind": "openai"}})
    assert (await told.router.chat(asking(medium))).report.target == "b/gpt-4"


@virtual
async def test_a_prompt_too_long_goes_to_what_the_list_says_is_larger() -> None:
    """GPT-4o says that it is too long: of two others the one with a million tokens is asked, the smaller one never."""
    too_long = FakeProvider(failing(FailureClass.CONTEXT_LENGTH, 400))
    w = world(
        ["a/gpt-4o"],
        ["b/gpt-4"],
        ["c/gemini-2.5-flash"],
        kinds={"a": {"kind": "openai"}, "b": {"kind": "openai"}, "c": {"kind": "gemini"}},
        replies={"a": too_long},
    )
    assert (await w.router.chat(asking())).report.target == "c/gemini-2.5-flash"
    assert w.calls("b") == 0


@virtual
async def test_the_lists_context_alone_refuses_nothing() -> None:
    """A list ages: where no other figure is known the provider decides."""
    w = world(["a/gpt-4"], kinds={"a": {"kind": "openai"}})
    assert (await w.router.chat(asking({"type": "text", "text": "x" * 200_000}))).report.target == "a/gpt-4"


@virtual
async def test_a_picture_is_no_minute_of_a_gateway_key() -> None:
    """A key of 100,000 tokens a minute shows two pictures of 4 MB at once; by their base64 each is ten minutes."""
    gateway = {"keys": {"team": {"key": "team-key", "tpm": 100_000}}}
    served = gateway_over(world(["a/big"], config={"gateway": gateway}))
    for _ in range(2):
        assert (await asked(served, body=asking(PICTURE), headers=KEYED)).status == 200


@pytest.mark.parametrize("messages", [5, "x", ["x"], [None], [{"content": [None, {"type": ["image"]}]}]])
@virtual
async def test_a_body_that_is_no_request_is_told_so_by_a_counting_key(messages: Any) -> None:
    """Its tokens are counted before it is checked."""
    gateway = {"keys": {"team": {"key": "team-key", "tpm": 100_000}}}
    served = gateway_over(world(["a/big"], config={"gateway": gateway}))
    for path, key in (("/v1/chat/completions", "messages"), ("/v1/responses", "input")):
        reply = await asked(served, path, body={"model": "smart", key: messages}, headers=KEYED)
        assert reply.status in (200, 400)
