"""A provider of the paths that pass through, on a loopback port: it keeps what it was sent, and may lie."""

from __future__ import annotations

import hashlib
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

_KEPT = 1024 * 1024
_PIECE = 65_536
_RESET = struct.pack("ii", 1, 0)
SOUND = bytes(range(256)) * 1024
"""256 KiB that are no text."""
ERRORS: Mapping[int, str] = {
    400: "Unknown voice",
    401: "Incorrect API key provided: upstream-key",
    402: "Payment required",
    404: "Invalid URL (POST /v1/audio/speech)",
    405: "Method not allowed",
    429: "Rate limit reached",
    500: "The server had an error",
}


@dataclass(frozen=True)
class Seen:
    """A request as it arrived; of a long body the beginning, with the size and the SHA-256 of all of it."""

    path: str
    headers: Mapping[str, str]
    body: bytes
    size: int
    digest: str


@dataclass
class _State:
    answer: Callable[[Handler], None] | None = None
    reads: bool = True
    seen: list[Seen] = field(default_factory=list)
    arrived: threading.Event = field(default_factory=threading.Event)
    gone: threading.Event = field(default_factory=threading.Event)
    """A connection ended while its answer was not there."""
    release: threading.Event = field(default_factory=threading.Event)


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    state: _State

    def do_POST(self) -> None:
        """Take the body, then answer as the test says, or as a provider that is well."""
        state = self.state
        if state.reads:
            state.seen.append(self._read())
            state.arrived.set()
        well = WELL.get(self.path.partition("?")[0].removeprefix("/v1"), _fine)
        try:
            (state.answer or well)(self)
        except OSError:
            state.gone.set()
            self.close_connection = True

    def tell(self, status: int, body: object, **headers: str) -> None:
        """Answer with JSON."""
        self.send_whole(status, json.dumps(body).encode(), "application/json", **headers)

    def send_whole(self, status: int, raw: bytes, kind: str, **headers: str) -> None:
        """Answer with these bytes."""
        self.begin(status, kind, **{"content-length": str(len(raw)), **headers})
        self.wfile.write(raw)

    def begin(self, status: int, kind: str, **headers: str) -> None:
        """Send the head alone."""
        self.send_response(status)
        for name, value in {"content-type": kind, "x-secret": "of the provider", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as the library has it
        """Say nothing."""

    def wait_until_left(self) -> None:
        """Wait until the other side closes; `gone` tells."""
        try:
            while self.connection.recv(_PIECE):
                pass
        except OSError:
            pass
        self.state.gone.set()
        self.close_connection = True

    def reset(self) -> None:
        """End the connection by a reset."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.close_connection = True

    def _read(self) -> Seen:
        kept, size, digest = b"", 0, hashlib.sha256()
        try:
            for piece in self._pieces():
                size += len(piece)
                digest.update(piece)
                kept += piece[: _KEPT - len(kept)]
        except OSError:
            self.state.gone.set()
            self.close_connection = True
        headers = {name.lower(): value for name, value in self.headers.items()}
        return Seen(self.path, headers, kept, size, digest.hexdigest())

    def _pieces(self) -> Iterator[bytes]:
        if self.headers.get("transfer-encoding") == "chunked":
            while size := int(self.rfile.readline(), 16):
                yield self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return
        left = int(self.headers.get("content-length", 0))
        while left:
            piece = self.rfile.read1(min(left, _PIECE))
            if not piece:
                self.state.gone.set()
                self.close_connection = True
                return
            left -= len(piece)
            yield piece


def _fine(handler: Handler) -> None:
    handler.tell(200, {"ok": True})


def _speech(handler: Handler) -> None:
    handler.begin(200, "audio/mpeg", **{"transfer-encoding": "chunked"})
    for at in range(0, len(SOUND), _PIECE):
        piece = SOUND[at : at + _PIECE]
        handler.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
    handler.wfile.write(b"0\r\n\r\n")


WELL: Mapping[str, Callable[[Handler], None]] = {
    "/moderations": lambda one: one.tell(
        200, {"id": "modr-1", "model": "omni", "results": [{"flagged": False, "categories": {}}]}
    ),
    "/audio/speech": _speech,
    "/audio/transcriptions": lambda one: one.tell(200, {"text": "as it was said"}),
    "/images/generations": lambda one: one.tell(200, {"created": 1, "data": [{"b64_json": "AAAA"}]}),
    "/chat/completions": lambda one: one.tell(
        200,
        {
            "id": "c",
            "object": "chat.completion",
            "created": 1,
            "model": "big",
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hello"}}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        },
    ),
}


def status(number: int, **headers: str) -> Callable[[Handler], None]:
    """An error of this status."""
    told = {"error": {"message": ERRORS[number], "type": "upstream", "code": None}}
    return lambda handler: handler.tell(number, told, **headers)


def short(handler: Handler) -> None:
    """A body that ends before the length it was to have."""
    handler.begin(200, "audio/mpeg", **{"content-length": "1000"})
    handler.wfile.write(b"only this")
    handler.close_connection = True


def torn(handler: Handler) -> None:
    """A body that ends in a reset."""
    handler.begin(200, "audio/mpeg", **{"content-length": "1000"})
    handler.wfile.write(b"only this")
    handler.wfile.flush()
    handler.reset()


def idle(handler: Handler) -> None:
    """Nothing is read and nothing is said until the test is over."""
    handler.state.release.wait()
    handler.close_connection = True


def silent(handler: Handler) -> None:
    """No answer at all."""
    handler.wait_until_left()


def stalled(handler: Handler) -> None:
    """A head, a beginning, and nothing more."""
    handler.begin(200, "audio/mpeg", **{"content-length": "1000"})
    handler.wfile.write(b"only this")
    handler.wfile.flush()
    handler.wait_until_left()


class PassingUpstream:
    """The provider. `answer` takes the place of its usual answers; None is well."""

    def __init__(self) -> None:
        self._state = _State()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"state": self._state}))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._state.release.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def base_url(self) -> str:
        """What a client is given."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def seen(self) -> list[Seen]:
        """The requests, oldest first."""
        return self._state.seen

    @property
    def gone(self) -> threading.Event:
        """Set when the other side ended a connection before its answer."""
        return self._state.gone

    @property
    def arrived(self) -> threading.Event:
        """Set when a whole request is there."""
        return self._state.arrived

    def set(self, answer: Callable[[Handler], None] | None, *, reads: bool = True) -> None:
        """Answer like this from now on; `reads` False: without reading the body."""
        self._state.answer, self._state.reads = answer, reads
        self._state.seen.clear()
        self._state.arrived.clear()
        self._state.gone.clear()
