"""A provider that counts the requests of each idempotency key, and tells the test of each before it answers."""

from __future__ import annotations

from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.e2e.loopback_provider import LoopbackProvider, completion

TOKENS = 7
"""The prompt tokens, and those of the answer, of every request."""


class CountingProvider(LoopbackProvider):
    """Answers each prompt with itself. `asked` are step and idempotency key of the requests, in their order.

    The first word of a prompt is its step. `on_asked` and `on_answered` are called with the number of the request,
    before and after its answer is sent.
    """

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[str, str]] = []
        self.on_asked: Callable[[int], object] = int
        self.on_answered: Callable[[int], object] = int

    def answer(self, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        """Count a request, and answer it with its prompt."""
        prompt = body["messages"][-1]["content"]
        with self.lock:
            self.asked.append((prompt.split()[0], handler.headers.get("idempotency-key", "")))
            number = len(self.asked)
        self.on_asked(number)
        self.send(handler, completion(f"({prompt})", "m", TOKENS, TOKENS))
        self.on_answered(number)
