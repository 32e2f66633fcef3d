"""Bodies and headers out of a seeded generator, thousands of them, to one gateway: never a 500, never our insides.

`make test` plays 2,000, `make nightly` 200,000 (SMR_FUZZ_CASES). A case that fails says its seed.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections.abc import Callable, Iterator
from typing import Any

from smart_model_router.gateway.asgi_app import Gateway
from smart_model_router.testing import FakeProvider, run_virtual
from smart_model_router_providers.fault import ScriptedProvider
from tests.unit.gateway.test_fuzz import ASKED, HI, KEYS, LOOKED_AT, NAMES, Client, Manner, check, scope
from tests.world import world

CASES = int(os.environ.get("SMR_FUZZ_CASES", "2000"))
SEED = int(os.environ.get("SMR_FUZZ_SEED", "16"))
BATCH = 250
PLAIN: list[Any] = [
    None,
    True,
    0,
    -1,
    1.5,
    1e308,
    2**70,
    "",
    "a",
    "\ud800",
    "\x00",
    "<script>",
    "*",
    [],
    {},
    [[]],
    [{}],
]
PARTS = "text image_url image document tool_use tool_result thinking input_text input_image input_file file".split()
DEEP: tuple[bytes, ...] = (
    b"[" * 600 + b"]" * 600,
    b'{"a":' * 500 + b"1" + b"}" * 500,
    b"[" * 940 + b"]" * 940,
    b"[" * 5000,
)


def value(dice: random.Random, depth: int = 0) -> Any:
    """Any JSON value, small."""
    kind = dice.random()
    if depth > 2 or kind < 0.6:
        return dice.choice(PLAIN)
    if kind < 0.8:
        return [value(dice, depth + 1) for _ in range(dice.randrange(4))]
    return {dice.choice([*KEYS, *PARTS, "type", "role", "content", ""]): value(dice, depth + 1) for _ in range(3)}


def part(dice: random.Random) -> Any:
    """A part of a message, or what is none."""
    kind = dice.choice(PARTS)
    inner = {"type": kind, kind: value(dice), "text": value(dice), "source": value(dice), "id": value(dice)}
    return {key: inner[key] for key in inner if dice.random() < 0.7}


def message(dice: random.Random) -> Any:
    """A message, or what is none."""
    content: Any = [part(dice) for _ in range(dice.randrange(3))] if dice.random() < 0.5 else value(dice)
    said = {"role": dice.choice(["user", "assistant", "system", "tool", 5]), "content": content}
    extra = {"tool_calls": value(dice), "type": dice.choice(PARTS), "name": value(dice), "tool_call_id": value(dice)}
    return said | {key: one for key, one in extra.items() if dice.random() < 0.2}


def body(dice: random.Random, path: str) -> bytes:
    """A body that an endpoint likes, with something wrong in it, in its structure or its bytes."""
    told: dict[str, Any] = {**ASKED.get(path, {"name": "a/big"}), "stream": dice.random() < 0.3}
    for _ in range(dice.randrange(3)):
        told[dice.choice(KEYS)] = value(dice)
    if dice.random() < 0.4:
        key = "input" if path.endswith("responses") else "messages"
        told[key] = [message(dice) for _ in range(dice.randrange(4))]
    if dice.random() < 0.1:
        told["tools"] = [{"type": "function", "name": value(dice), "function": value(dice), "parameters": value(dice)}]
    raw = json.dumps(told, ensure_ascii=dice.random() < 0.5).encode("utf-8", "surrogatepass")
    if dice.random() < 0.03:
        raw = raw[:-1] + b', "metadata": ' + dice.choice(DEEP) + b"}"
    if dice.random() < 0.03:
        raw = raw[:-1] + b', "messages": [{"role": "user", "content": ' + dice.choice(DEEP) + b"}]}"
    for _ in range(dice.choice([0, 0, 0, 1, 3])):
        at = dice.randrange(len(raw) + 1)
        raw = raw[:at] + dice.randbytes(dice.randrange(3)) + raw[at + dice.randrange(3) :]
    return raw


def headers(dice: random.Random) -> Iterator[tuple[bytes, bytes]]:
    """A host, and others with something in them."""
    yield b"host", b"127.0.0.1" if dice.random() < 0.95 else dice.randbytes(5)
    for _ in range(dice.choice([0, 0, 1, 2])):
        name = dice.choice([*NAMES, "anthropic-beta", "x-router-target", "transfer-encoding", "x-router-recovery"])
        yield name.encode(), dice.choice([b"", b"1", b"-1", b"nan", b"1e999", b"\xff", b"chunked", dice.randbytes(9)])


PROVIDERS: tuple[tuple[str, Callable[[], Any]], ...] = (
    ("openai_compatible", FakeProvider),
    ("anthropic", FakeProvider),
    ("openai", FakeProvider),
    ("openai_compatible", ScriptedProvider),
    ("anthropic", lambda: ScriptedProvider(kind="anthropic")),
    ("openai", lambda: ScriptedProvider(kind="openai")),
)
"""Kinds of the provider that is asked, and what stands in its place: two of them read what they are sent."""


async def play(first: int, count: int) -> None:
    """So many cases against one gateway."""
    kind, provider = PROVIDERS[first // BATCH % len(PROVIDERS)]
    made = world(["a/big"], replies={"a": provider()}, kinds={"a": {"kind": kind}})
    gateway = Gateway(lambda: made.router.config, lambda config: made.router)
    for number in range(first, first + count):
        dice = random.Random(f"{SEED}-{number}")
        path = dice.choice([*ASKED, *ASKED, *LOOKED_AT])
        method = dice.choice(["POST" if path in ASKED else "GET"] * 8 + ["POST", "HEAD", "DELETE"])
        raw, head = body(dice, path), list(headers(dice))
        client = Client(Manner([raw], leaves=5.0 if path == "/dashboard/stream" else None))
        await asyncio.wait_for(gateway(scope(method, path, head), client.receive, client.send), 3_600)
        assert client.status != 500, (SEED, number, path, raw[:300], client.body[:300])
        check(client, path, head)
        for target in made.router.targets():
            if target.isolated is not None:  # as the case asked for
                made.router.close(target.id)
            else:
                assert (target.state, target.refusal) == ("closed", None), (SEED, number, path, raw[:300], target)
    assert gateway.generation.in_flight == 0
    await made.router.aclose()
    gateway.stopping()


def test_no_body_and_no_header_is_answered_with_a_500_or_harms_a_target() -> None:
    """Whatever is in them, it is that request's error: no breaker opens, and no slot is kept."""
    assert HI
    for first in range(0, CASES, BATCH):
        run_virtual(play(first, min(BATCH, CASES - first)), limit=100_000_000)
