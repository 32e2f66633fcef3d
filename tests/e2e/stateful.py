"""An upstream that speaks Responses as OpenAI does and keeps its answers, on a loopback port, for tests."""

from __future__ import annotations

import json
import secrets
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

_USAGE = {
    "input_tokens": 5,
    "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
    "output_tokens": 2,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 7,
}


@dataclass
class Stateful:
    """What it was asked, and what it keeps. `heard` is a method and a path for each request."""

    name: str
    base_url: str = ""
    heard: list[str] = field(default_factory=list)
    bodies: list[Mapping[str, Any]] = field(default_factory=list)
    kept: dict[str, dict[str, Any]] = field(default_factory=dict)
    lacks: int | None = None
    """The status of every operation but answering, in words that read as if the model were gone; 0: no answer comes."""
    released: Event = field(default_factory=Event)
    """Ends the calls that hang."""

    def answer(self, method: str, path: str, body: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        """Status and JSON of a request."""
        self.heard.append(f"{method} {path}")
        self.bodies.append(body)
        if self.lacks is not None and f"{method} {path}" != "POST /v1/responses":
            if not self.lacks:
                self.released.wait(60)
            return _missing(self.lacks or 500, f"The model does not support {method} {path}", "model_not_found")
        if path == "/v1/responses/input_tokens":
            return 200, {"object": "response.input_tokens", "input_tokens": 41}
        if path == "/v1/responses/compact":
            item = {"type": "compaction", "id": f"cmp_{secrets.token_hex(8)}", "encrypted_content": "sealed"}
            made = {"id": f"resp_{secrets.token_hex(8)}", "object": "response.compaction", "created_at": 1}
            return 200, {**made, "output": [item], "usage": _USAGE}
        if method == "POST":
            return self._create(body)
        thing = path.removeprefix("/v1/responses/")
        if thing not in self.kept:
            return _missing(404, f"Response with id '{thing}' not found.", None)
        if method == "DELETE":
            del self.kept[thing]
            return 200, {"id": thing, "object": "response", "deleted": True}
        return 200, self.kept[thing]

    def _create(self, body: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        before = body.get("previous_response_id")
        if before is not None and before not in self.kept:
            return _missing(400, f"Previous response with id '{before}' not found.", "previous_response_not_found")
        items = {item["id"] for response in self.kept.values() for item in response["output"]}
        asked = body["input"] if isinstance(body["input"], list) else []
        for item in asked:
            if item.get("type") == "item_reference" and item["id"] not in items:
                return _missing(404, f"Item with id '{item['id']}' not found.", None)
        part = {"type": "output_text", "text": f"from {self.name}", "annotations": [], "logprobs": []}
        message = {"id": f"msg_{secrets.token_hex(8)}", "type": "message", "role": "assistant", "status": "completed"}
        response: dict[str, Any] = {
            "id": f"resp_{secrets.token_hex(8)}",
            "object": "response",
            "created_at": 1,
            "status": "completed",
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "model": body["model"],
            "output": [{**message, "content": [part]}],
            "parallel_tool_calls": True,
            "previous_response_id": before,
            "store": body.get("store") is not False,
            "temperature": 1.0,
            "tool_choice": "auto",
            "tools": [],
            "top_p": 1.0,
            "usage": _USAGE,
        }
        if response["store"]:
            self.kept[response["id"]] = response
        return 200, response


def _missing(status: int, message: str, code: str | None) -> tuple[int, dict[str, Any]]:
    return status, {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}


@contextmanager
def stateful(name: str) -> Generator[Stateful]:
    """Run one until the block is left."""
    upstream = Stateful(name)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            body = json.loads(self.rfile.read(length)) if length else {}
            status, value = upstream.answer(self.command, self.path, body)
            if body.get("stream") and status == 200:
                self._stream(value)
                return
            text = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def _stream(self, response: dict[str, Any]) -> None:
            item: dict[str, Any] = response["output"][0]
            place = {"item_id": item["id"], "output_index": 0, "content_index": 0}
            events: list[dict[str, Any]] = [
                {"type": "response.created", "response": {**response, "status": "in_progress", "output": []}},
                {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
                {"type": "response.output_text.delta", **place, "delta": item["content"][0]["text"], "logprobs": []},
                {"type": "response.output_item.done", "output_index": 0, "item": item},
                {"type": "response.completed", "response": response},
            ]
            frames = [
                f"event: {event['type']}\ndata: {json.dumps({**event, 'sequence_number': number})}\n\n"
                for number, event in enumerate(events)
            ]
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("connection", "close")
            self.end_headers()
            self.wfile.write("".join(frames).encode())
            self.close_connection = True

        do_GET = do_POST = do_DELETE = _answer  # noqa: N815 - as the library calls them

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the library calls it
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    upstream.base_url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield upstream
    finally:
        upstream.released.set()
        server.shutdown()
        thread.join()
        server.server_close()
