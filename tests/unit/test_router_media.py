"""Pictures, documents and recordings on their way through a router: weighed by what they are, never by their base64."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from smart_model_router.testing import FakeProvider, FakeReply
from tests.media_files import b64, data_url, pdf, png, wav
from tests.world import World, virtual, world

PICTURE = {"type": "image_url", "image_url": {"url": data_url("image/png", png(2000, 1500, 4_000_000))}}
DOCUMENT = {"type": "file", "file": {"filename": "a.pdf", "file_data": data_url("application/pdf", pdf(50))}}
RECORDING = {"type": "input_audio", "input_audio": {"data": b64(wav(600, rate=8000)), "format": "wav"}}


def asking(*parts: Any, **more: Any) -> dict[str, Any]:
    """Ask about these parts."""
    content = [{"type": "text", "text": "What is it?"}, *parts]
    return {"model": "smart", "messages": [{"role": "user", "content": content}], **more}


async def estimated(w: World, body: dict[str, Any], target: str = "a/big") -> float:
    """What is reserved of a target's tokens a minute while it answers."""
    asked = asyncio.ensure_future(w.router.chat(body))
    await asyncio.sleep(1.0)
    bucket = w.gate(target).limits.tokens
    assert bucket is not None
    taken = bucket.capacity - bucket.snapshot().level
    assert (await asked).report.target == target
    return taken


@pytest.mark.parametrize(
    ("part", "least", "most"), [(PICTURE, 300, 3_000), (DOCUMENT, 5_000, 200_000), (RECORDING, 3_000, 40_000)]
)
@virtual
async def test_media_are_not_weighed_as_text(part: dict[str, Any], least: int, most: int) -> None:
    """Four megabytes of picture are a thousand tokens or so: a target of 400,000 a minute takes it at once."""
    w = world(["a/big"], kinds={"a": {"tpm": 400_000}}, replies={"a": FakeProvider([FakeReply(seconds=10)])})
    assert least < await estimated(w, asking(part, max_tokens=1)) < most
