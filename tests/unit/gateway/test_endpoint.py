"""Requests walked through the gateway as a server calls it: what is charged, what a head carries, what stays open."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Message

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.gateway import admin_routes
from smart_model_router.gateway.asgi_app import Gateway
from smart_model_router.http_api import family_of
from smart_model_router.observability.multiprocess import SharedMetrics
from smart_model_router.observability.registry import Sample
from smart_model_router.router import RouterReply, SmartModelRouter
from smart_model_router.testing import FakeProvider, FakeReply
from tests.world import BODY, World, virtual, world

CHAT = {"model": "smart", "messages": BODY["messages"]}
WORDS = FakeReply(pieces=("word ",) * 200, gap=1.0)
OPEN = {"host": "127.0.0.1"}
KEYED = {"authorization": "Bearer team-key"}


def gateway_over(made: World) -> Gateway:
    """A gateway whose router is the world's."""
    return Gateway(lambda: made.router.config, lambda config: made.router)


class Reply:
    """What a client got."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    @property
    def status(self) -> int:
        """Of its head."""
        return int(self.messages[0]["status"])

    @property
    def headers(self) -> dict[str, str]:
        """Of its head."""
        return {name.decode(): value.decode() for name, value in self.messages[0]["headers"]}

    @property
    def body(self) -> bytes:
        """All that was sent after its head."""
        return b"".join(message.get("body", b"") for message in self.messages[1:])


async def asked(
    gateway: Gateway,
    path: str = "/v1/chat/completions",
    body: Mapping[str, Any] = CHAT,
    *,
    method: str = "POST",
    headers: Mapping[str, str] = OPEN,
    leaves: float = float("inf"),
) -> Reply:
    """One request, of a client that leaves after so many seconds."""
    pieces: list[Message] = [{"type": "http.request", "body": json.dumps(body).encode()}]
    reply = Reply()

    async def receive() -> Message:
        if pieces:
            return pieces.pop()
        await (asyncio.Event().wait() if leaves == float("inf") else asyncio.sleep(leaves))
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        reply.messages.append(message)

    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": method, "path": path, "headers": raw, "query_string": b"", "root_path": ""}
    await gateway(scope, receive, send)
    return reply


@pytest.mark.parametrize(
    ("recovery", "words"), [("none", 100), ("buffered", 0)], ids=["as it comes", "held until it is complete"]
)
@virtual
async def test_a_stream_that_is_left_is_charged(recovery: str, words: int) -> None:
    """Who hangs up before the end has used what came: its key waits until that is worked off."""
    keys = {"team": {"key": "team-key", "tpm": 60}}
    made = world(["a/big"], replies={"a": FakeProvider(WORDS)}, config={"gateway": {"keys": keys}})
    gateway = gateway_over(made)
    headers = {**KEYED, "x-router-recovery": recovery}
    left = await asked(gateway, body={**CHAT, "stream": True}, headers=headers, leaves=100.0)
    assert left.body.count(b"word") == words
    refused = await asked(gateway, headers=KEYED)
    assert refused.status == 429
    assert int(refused.headers["retry-after"]) > 40
    made.assert_idle()


@virtual
@pytest.mark.parametrize("stream", [False, True])
async def test_an_unknown_name_tells_a_key_of_no_other_models(stream: bool) -> None:
    """The names that are near are those that the key may use."""
    keys = {"team": {"key": "team-key", "models": ["smart", "smart-#1"]}}
    config = {"gateway": {"keys": keys}, "aliases": {"smart-#2": "smart"}}
    gateway = gateway_over(world(["a/big"], config=config))
    reply = await asked(gateway, body={**CHAT, "model": "smart-#1", "stream": stream}, headers={**OPEN, **KEYED})
    assert reply.status == 404
    assert json.loads(reply.body)["error"]["message"] == "model: 'smart-#1' is unknown; did you mean 'smart'?"


@virtual
async def test_an_early_head_names_the_request() -> None:
    """A head that goes out before anybody has answered has the id under which the request is found."""
    made = world(["a/big"], replies={"a": FakeProvider(FakeReply(seconds=20.0))}, config={"gateway": {"hold_head": 5}})
    gateway = gateway_over(made)
    reply = await asked(gateway, body={**CHAT, "stream": True})
    assert b"Hello" in reply.body
    assert reply.headers["x-request-id"] == reply.headers["request-id"]
    traced = await asked(gateway, f"/dashboard/requests/{reply.headers['x-request-id']}", method="GET")
    assert traced.status == 200


@pytest.mark.parametrize("path", ["/v1/chat/completions/", "/v1/models/", "/v1/models/smart/", "/health/liveness//"])
@virtual
async def test_a_slash_at_the_end_makes_no_difference(path: str) -> None:
    """Neither to the dialects nor to anything else."""
    made = world(["a/big"])
    reply = await asked(gateway_over(made), path, method="POST" if "chat" in path else "GET")
    assert reply.status == 200


@pytest.mark.parametrize(
    ("path", "family"),
    [
        *((f"/v1/{openai}", "openai") for openai in ("chat/completions", "responses/", "embeddings", "completions")),
        *((f"/v1/{theirs}", "anthropic") for theirs in ("messages", "messages/", "messages/batches", "models", "nope")),
    ],
)
def test_the_path_of_a_dialect_says_in_whose_manners_errors_are_told(path: str, family: str) -> None:
    """`anthropic-version` decides where the path does not: of models there are two shapes."""
    assert family_of(path, {"anthropic-version": "2023-06-01"}) == family


@virtual
async def test_the_owners_mistake_is_for_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What is in a configuration is told to its owner, and not to whoever asks."""

    async def answer(*_: object, **__: object) -> RouterReply:
        raise ConfigurationError("providers.a.headers", "s3cret", "something else")

    monkeypatch.setattr(SmartModelRouter, "answer", answer)
    reply = await asked(gateway_over(world(["a/big"])))
    assert (reply.status, b"s3cret" in reply.body) == (500, False)
    assert "met a bug" in caplog.text


class Life:
    """The lifespan of an application, as a server runs it."""

    def __init__(self, gateway: Gateway) -> None:
        self._told: asyncio.Queue[Message] = asyncio.Queue()
        self._said: asyncio.Queue[Message] = asyncio.Queue()
        scope = {"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}
        self._task = asyncio.ensure_future(gateway(scope, self._told.get, self._said.put))

    async def tell(self, what: str) -> str:
        """What it says to that."""
        await self._told.put({"type": f"lifespan.{what}"})
        return str((await self._said.get())["type"])

    async def end(self) -> None:
        """However it does."""
        await asyncio.wait({self._task})
        self._task.exception()


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The section of a store, whose metrics are shared without a pause."""
    monkeypatch.setattr(admin_routes, "SHARE_SECONDS", 0)
    return {"store": {"path": str(tmp_path / "s.db")}}


@pytest.mark.asyncio
async def test_metrics_are_shared_again_after_a_bad_second(
    stored: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One failure is a line in the log and not the end of sharing."""
    loop, shared_again, calls = asyncio.get_running_loop(), asyncio.Event(), 0

    def exchange(self: SharedMetrics, samples: Sequence[Sample]) -> Sequence[Sample]:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise ValueError("one bad second")
        loop.call_soon_threadsafe(shared_again.set)
        return samples

    monkeypatch.setattr(SharedMetrics, "exchange", exchange)
    life = Life(gateway_over(world(["a/big"], config=stored)))
    await life.tell("startup")
    async with asyncio.timeout(10):
        await shared_again.wait()
    assert await life.tell("shutdown") == "lifespan.shutdown.complete"
    await life.end()
    assert "metrics could not be shared" in caplog.text


@pytest.mark.asyncio
async def test_the_router_is_closed_whatever_becomes_of_the_metrics(
    stored: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A last share that fails does not keep providers, store and sinks open."""

    def exchange(self: SharedMetrics, samples: Sequence[Sample]) -> Sequence[Sample]:
        raise ValueError("many bad seconds")

    monkeypatch.setattr(SharedMetrics, "exchange", exchange)
    made = world(["a/big"], config=stored)
    life = Life(gateway_over(made))
    await life.tell("startup")
    await life.tell("shutdown")
    await life.end()
    assert made.providers["a"].closed
