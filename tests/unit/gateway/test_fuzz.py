"""Every endpoint of the gateway, asked anything in any way: an answer in the client's manners, and nothing is left.

The application is called as a server calls it, in virtual time; real sockets are in tests/e2e/test_gateway_hostile.py.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Message, Scope

from smart_model_router.gateway.asgi_app import Gateway
from smart_model_router.testing import FakeProvider, FakeReply, run_virtual
from tests.world import BLACK_HOLE, DOWN, limited, timers, world

HI: list[Any] = [{"role": "user", "content": "hi"}]
ASKED: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"model": "smart", "messages": HI},
    "/v1/messages": {"model": "smart", "max_tokens": 9, "messages": HI},
    "/v1/messages/count_tokens": {"model": "smart", "messages": HI},
    "/v1/responses": {"model": "smart", "input": "hi"},
    "/v1/responses/compact": {"model": "smart", "input": "hi"},
    "/v1/responses/input_tokens": {"model": "smart", "input": "hi", "previous_response_id": "resp_1"},
    "/v1/embeddings": {"model": "smart", "input": ["hi"]},
    "/v1/completions": {"model": "smart", "prompt": "hi"},
    "/query_documents": {"query": "hi"},
    "/api/drain": {"on": False},
    "/api/targets/enable": {"name": "a/big"},
    "/api/targets/isolate": {"name": "a/big"},
}
"""A body that each endpoint likes: what is wrong with it is drawn."""
RUN = ("/events", "/report", "/cancel", "/accept")
"""The paths below a run of research, which are there with `research.gateway` alone."""
PASSED = ("/v1/moderations", "/v1/rerank", "/v1/audio/speech", "/v1/images/generations")
"""Paths of `gateway.passthrough`; no route has them here."""
OPENAI = frozenset(
    path for path in (*ASKED, *PASSED) if path.startswith("/v1/") and not path.startswith("/v1/messages")
)
"""Where the path alone says in whose manners an error is told."""
LOOKED_AT = (
    "/ /v1/responses/resp_1 /v1/models /v1/models/a/b /health /health/liveness /health/readiness /metrics /api/stats \
 /api/targets /dashboard /dashboard/dashboard.js /dashboard/stream /dashboard/requests/req-1 /research \
 /research/run-1 /research/run-1/events /research/run-1/report /research/run-1/cancel /research/run-1/accept \
 /mcp /nowhere".split()
)
REPLIES = {
    "well": FakeReply(),
    "slowly": FakeReply(seconds=0.2, gap=0.5),
    "cut": FakeReply(cut=DOWN.failure),
    "down": DOWN,
    "limited": limited(90),
    "never": BLACK_HOLE,
    "a bug": FakeReply(bug=RuntimeError("oops")),
}
QUIET = 3_600.0
"""Virtual seconds after which nothing of a request may be left: longer than its default deadline."""


@dataclass
class Manner:
    """How a client sends: its body in pieces, so many seconds between two; when it leaves, if it does.

    `gone`: nothing can be sent to it from the beginning, which the server learns when it `leaves`.
    """

    pieces: Sequence[bytes]
    gap: float = 0.0
    leaves: float | None = None
    gone: bool = False


@dataclass
class Client:
    """The other end of one request, and what it got."""

    manner: Manner
    got: list[Message] = field(default_factory=list)
    _sent: int = 0

    async def receive(self) -> Message:
        """The next piece of the body; after the last one, that the client has left, when it has."""
        if self._sent < len(self.manner.pieces):
            await asyncio.sleep(self.manner.gap if self._sent else 0)
            self._sent += 1
            more = self._sent < len(self.manner.pieces)
            return {"type": "http.request", "body": self.manner.pieces[self._sent - 1], "more_body": more}
        await asyncio.sleep(QUIET if self.manner.leaves is None else self.manner.leaves)
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Take a part of the answer; a connection that is gone takes none, as uvloop's does not."""
        if self.manner.gone:
            raise RuntimeError("unable to perform operation: the handler is closed")
        self.got.append(message)

    @property
    def status(self) -> int:
        """0 when there is no answer."""
        return int(self.got[0]["status"]) if self.got else 0

    @property
    def body(self) -> bytes:
        """All of it."""
        return b"".join(message.get("body", b"") for message in self.got[1:])


def scope(method: str, path: str, headers: Sequence[tuple[bytes, bytes]]) -> Scope:
    """A request's head as a server passes it on."""
    raw = path.encode("utf-8", "surrogatepass")
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": raw,
        "query_string": b"beta=true",
        "root_path": "",
        "headers": list(headers),
        "client": ("127.0.0.1", 5),
        "server": ("127.0.0.1", 8000),
    }


async def asked(
    reply: FakeReply, method: str, path: str, headers: Sequence[tuple[bytes, bytes]], manner: Manner
) -> Client:
    """One request to a gateway of its own. Afterwards nothing of it is left."""
    made = world(["a/big"], ["b/big"], replies={"a": FakeProvider(reply), "b": FakeProvider(reply)})
    gateway = Gateway(lambda: made.router.config, lambda config: made.router)
    client = Client(manner)
    before = asyncio.all_tasks()
    try:
        await asyncio.wait_for(gateway(scope(method, path, headers), client.receive, client.send), QUIET)
    except TimeoutError:
        pytest.fail("no answer, and the client has left long ago")
    assert gateway.generation.in_flight == 0
    await made.verdicts()
    made.assert_idle()
    await made.router.aclose()
    gateway.stopping()
    await asyncio.sleep(1)
    assert asyncio.all_tasks() == before
    assert not timers()
    return client


def check(client: Client, path: str, headers: Sequence[tuple[bytes, bytes]]) -> None:
    """What came is an answer: whole or cut, of a known status; an error is told in the manners of who asked."""
    if not client.got:
        assert client.manner.leaves is not None or not client.manner.pieces
        return
    assert client.status != 500 or b"oops" not in client.body
    assert b"Traceback" not in client.body
    kinds = {name.lower(): value for name, value in client.got[0]["headers"]}
    if client.status < 400 or not kinds.get(b"content-type", b"").startswith(b"application/json"):
        return
    told = json.loads(client.body or b"{}")
    if path.startswith(("/v1/", "/api/")):  # others have manners of their own
        assert told["error"]["message"]
        by_header = path not in OPENAI and any(name == b"anthropic-version" for name, _ in headers)
        assert (told.get("type") == "error") == (path.startswith("/v1/messages") or by_header)


texts = st.text(max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
KEYS = "model models fallbacks messages input prompt stream stream_options tools tool_choice system max_tokens \
response_format text reasoning thinking metadata n stop user on name query limit filters \
previous_response_id store".split()
REFERRED = ["resp_1", "msg_1", f"resp_smr{'x' * 32}", f"msg_smr{'x' * 32}_0", "", 7, None]
"""Ids that a request may refer to: a provider's, and of the form of ours."""
ROLES = st.sampled_from(["user", "assistant", "system", "developer", "tool", "nobody"])
PARTS = st.sampled_from("text image image_url tool_use tool_result thinking function_call reasoning input_file".split())
messages = st.lists(
    st.fixed_dictionaries(
        {"role": ROLES},
        optional={
            "content": values | st.lists(st.fixed_dictionaries({"type": PARTS}, optional={"text": values}), max_size=2),
            "tool_calls": values,
            "type": PARTS,
        },
    ),
    max_size=3,
)
wrong: st.SearchStrategy[Any] = st.one_of(
    st.dictionaries(st.sampled_from(KEYS), values, max_size=3),
    st.fixed_dictionaries({"messages": messages}),
    st.fixed_dictionaries({"previous_response_id": st.sampled_from(REFERRED)}),
    st.fixed_dictionaries({"input": st.lists(st.fixed_dictionaries({"id": st.sampled_from(REFERRED)}), max_size=3)}),
)
bytes_of_none = st.binary(max_size=40) | st.sampled_from([b"[" * 50_000, b'{"a":' * 20_000, b'"\\ud800"', b"NaN", b""])
NAMES = "x-router-tier x-router-target x-router-timeout x-router-criticality x-router-max-cost x-router-session \
x-stainless-timeout anthropic-version authorization content-type content-length traceparent idempotency-key expect \
host origin".split()
heads = st.lists(
    st.tuples(st.sampled_from([name.encode() for name in NAMES]), st.binary(max_size=12)), max_size=3
) | st.just([(b"x-bomb", b"b" * 70_000)])


@st.composite
def bodies(draw: st.DrawFn, path: str) -> bytes:
    """A body with something wrong in it, or none at all."""
    if path not in ASKED or draw(st.integers(0, 4)) == 0:
        return draw(bytes_of_none)
    body = {**ASKED[path], "stream": draw(st.booleans()), **draw(wrong)}
    raw = json.dumps(body).encode()
    return raw[: draw(st.integers(0, len(raw)))] if draw(st.integers(0, 6)) == 0 else raw


@given(data=st.data())
def test_whatever_is_asked_is_answered_and_nothing_is_left(data: st.DataObject) -> None:
    """No input, no manner of sending it and no provider makes a trace, a task, a slot or a hanging client."""
    path = data.draw(st.sampled_from([*ASKED, *ASKED, *LOOKED_AT, *PASSED]), label="path")
    usual = "POST" if path in (*ASKED, *PASSED) else "GET"
    method = data.draw(st.sampled_from([usual, usual, usual, "POST", "GET", "HEAD", "DELETE", "OPTIONS"]))
    body = data.draw(bodies(path), label="body")
    at = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=2), label="pieces"))
    pieces = [body[start:stop] for start, stop in zip([0, *at], [*at, len(body)], strict=True)]
    # What a browser looks at for as long as it likes has no end of its own.
    leaving = st.sampled_from([0.0, 0.05, 0.3, 5.0])
    leaves = data.draw(leaving if path == "/dashboard/stream" else st.none() | leaving, label="leaves")
    manner = Manner(pieces, data.draw(st.sampled_from([0.0, 0.0, 1.0, 40.0]), label="gap"), leaves)
    headers = [(b"host", b"127.0.0.1"), *data.draw(heads, label="headers")]
    reply = REPLIES[data.draw(st.sampled_from(list(REPLIES)), label="reply")]
    client = run_virtual(asked(reply, method, path, headers, manner), limit=10_000)
    check(client, path, headers)


def test_every_route_is_fuzzed() -> None:
    """An endpoint that is added is asked, too."""

    async def routes() -> set[str]:
        made = world(["a/big"])
        gateway = Gateway(lambda: made.router.config, lambda config: made.router)
        found = {route.path for route in gateway._app.routes}  # type: ignore[attr-defined]  # they are Routes
        await made.router.aclose()
        return found

    templates = {
        "/v1/models/{name:path}": "/v1/models/a/b",
        "/v1/responses/{thing}": "/v1/responses/resp_1",
        "/dashboard/{file}": "/dashboard/dashboard.js",
        "/dashboard/requests/{id}": "/dashboard/requests/req-1",
        **{f"/research/{{id}}{what}": f"/research/run-1{what}" for what in ("", *RUN)},
        "/v1/audio/{path:path}": "/v1/audio/speech",
        "/v1/images/{path:path}": "/v1/images/generations",
    }
    assert {templates.get(path, path) for path in run_virtual(routes())} <= {*ASKED, *LOOKED_AT, *PASSED}


@pytest.mark.parametrize("body", [{}, {"stream": True}, {"model": "nope"}], ids=str)
@pytest.mark.parametrize(("leaves", "told"), [(0.0, False), (None, True)])
def test_nobody_is_told_who_has_left(
    caplog: pytest.LogCaptureFixture, body: dict[str, Any], leaves: float | None, *, told: bool
) -> None:
    """A connection that breaks under an answer is no bug of ours; one that breaks for a client that is there is."""
    sent = json.dumps({**ASKED["/v1/messages"], **body}).encode()
    manner = Manner([sent], leaves=leaves, gone=True)
    with suppress(RuntimeError):
        run_virtual(asked(FakeReply(), "POST", "/v1/messages", [(b"host", b"127.0.0.1")], manner))
    assert ("met a bug" in caplog.text) is told


@pytest.mark.parametrize("path", ASKED)
def test_a_body_that_comes_too_slowly_is_a_408(path: str) -> None:
    """Byte by byte is not for ever."""
    pieces = [bytes([byte]) for byte in json.dumps(ASKED[path]).encode()]
    client = run_virtual(asked(FakeReply(), "POST", path, [(b"host", b"127.0.0.1")], Manner(pieces, gap=10.0)))
    assert client.status == 408
    check(client, path, [])
