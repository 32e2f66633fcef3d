"""A provider on a loopback port, which a test plays: a thread for each connection, answers as JSON."""

from __future__ import annotations

import json
import threading
from abc import ABC, abstractmethod
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


class LoopbackProvider(ABC):
    """Chat Completions at `base_url` while its block is open. `answer` is called with the body of each request."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                provider.answer(self, body)

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

    @abstractmethod
    def answer(self, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        """Answer a request, by `send`."""

    @staticmethod
    def send(handler: BaseHTTPRequestHandler, reply: object, status: int = 200) -> None:
        """Send a reply; a client that is gone takes none."""
        content = json.dumps(reply).encode()
        try:
            handler.send_response(status)
            handler.send_header("content-type", "application/json")
            handler.send_header("content-length", str(len(content)))
            handler.end_headers()
            handler.wfile.write(content)
        except OSError:
            handler.close_connection = True


def completion(text: str | None, model: str, prompt_tokens: int, completion_tokens: int) -> dict[str, Any]:
    """Return an answer of Chat Completions."""
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens}
    message = {"role": "assistant", "content": text}
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {**usage, "total_tokens": prompt_tokens + completion_tokens},
    }
