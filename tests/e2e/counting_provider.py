"""A provider that counts the requests of each idempotency key, and tells the test of each before it answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

TOKENS = 7
"""The prompt tokens, and those of the answer, of every request."""


class CountingProvider:
    """Chat Completions on a loopback port. `asked` are step and idempotency key of the requests, in their order.

    The first word of a prompt is its step. `on_asked` and `on_answered` are called with the number of the request,
    before and after its answer is sent.
    """

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.on_asked: Callable[[int], object] = int
        self.on_answered: Callable[[int], object] = int
        self._lock = threading.Lock()
        provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                provider.answer(self)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.base_url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Count a request, and answer it with its prompt; a client that is gone takes none."""
        body = json.loads(handler.rfile.read(int(handler.headers["content-length"])))
        prompt = body["messages"][-1]["content"]
        with self._lock:
            self.asked.append((prompt.split()[0], handler.headers.get("idempotency-key", "")))
            number = len(self.asked)
        self.on_asked(number)
        reply = json.dumps(_completion(f"({prompt})")).encode()
        try:
            handler.send_response(200)
            handler.send_header("content-type", "application/json")
            handler.send_header("content-length", str(len(reply)))
            handler.end_headers()
            handler.wfile.write(reply)
        except OSError:
            handler.close_connection = True
        self.on_answered(number)


def _completion(text: str) -> dict[str, Any]:
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": TOKENS, "completion_tokens": TOKENS, "total_tokens": 2 * TOKENS},
    }
