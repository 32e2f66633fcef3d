"""A provider whose model a function plays: Chat Completions on a loopback port, which may die in mid-run."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from tests.scripted_models import Reply, Shown


class ModelProvider:
    """A provider that answers the prompts of research. From request number `dies_at` (from 0) it answers 503.

    `asked` are the names of the prompts in their order.
    """

    def __init__(self, answer: Callable[[str, Shown, int], Reply], dies_at: int | None = None) -> None:
        self.asked: list[str] = []
        self._answer = answer
        self._dies_at = dies_at
        self._lock = threading.Lock()
        provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                provider.serve(self)

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

    def serve(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer one request; a client that is gone takes no answer."""
        body = json.loads(handler.rfile.read(int(handler.headers["content-length"])))
        name, shown = str(body["response_format"]["json_schema"]["name"]), json.loads(body["messages"][1]["content"])
        with self._lock:
            number = len(self.asked)
            self.asked.append(name)
        is_dead = self._dies_at is not None and number >= self._dies_at
        said = None if is_dead else self._answer(name, shown, number)
        reply = {"error": {"message": "gone", "type": "server_error"}} if is_dead else _completion(said, body["model"])
        content = json.dumps(reply).encode()
        try:
            handler.send_response(503 if is_dead else 200)
            handler.send_header("content-type", "application/json")
            handler.send_header("content-length", str(len(content)))
            handler.end_headers()
            handler.wfile.write(content)
        except OSError:
            handler.close_connection = True


def _completion(said: Reply, model: str) -> dict[str, Any]:
    text = said if said is None or isinstance(said, str) else json.dumps(said)
    message = {"role": "assistant", "content": text}
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
    }
