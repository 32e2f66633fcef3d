"""A provider that reads a body without looking at it, and answers in a word, or at /audio/speech in a gigabyte.

Run as a program by liveness.py and passthrough.py.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import uvicorn

PIECE = bytes(256 * 1024)
SPOKEN = 4096
_CHAT = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "fault",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "four"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6},
}
_MESSAGES = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "fault",
    "content": [{"type": "text", "text": "four"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 5, "output_tokens": 1},
}


async def sink(scope: Any, receive: Any, send: Any) -> None:
    """Read all of a body, and answer in the dialect of the path."""
    if scope["type"] != "http":
        return
    while (await receive()).get("more_body"):
        pass
    if scope["path"].endswith("/audio/speech"):
        length = str(SPOKEN * len(PIECE)).encode()
        headers = [(b"content-type", b"audio/mpeg"), (b"content-length", length)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for left in reversed(range(SPOKEN)):
            await send({"type": "http.response.body", "body": PIECE, "more_body": left > 0})
        return
    body = json.dumps(_MESSAGES if scope["path"].endswith("/messages") else _CHAT).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class Server(uvicorn.Server):
    """uvicorn's server, saying where it listens."""

    async def startup(self, sockets: Any = None) -> None:
        """Print the address on a line of its own."""
        await super().startup(sockets)
        port = self.servers[0].sockets[0].getsockname()[1]
        print(f"http://127.0.0.1:{port}", flush=True)


if __name__ == "__main__":
    Server(uvicorn.Config(sink, port=0, lifespan="off", ws="none", log_level="error", access_log=False)).run()
    sys.exit(0)
