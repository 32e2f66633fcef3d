"""A provider whose model a function plays, and which may die in mid-run."""

from __future__ import annotations

import json
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.e2e.loopback_provider import LoopbackProvider, completion
from tests.scripted_models import Reply, Shown


class ModelProvider(LoopbackProvider):
    """A provider that answers the prompts of research. From request number `dies_at` (from 0) it answers 503.

    `asked` are the names of the prompts in their order.
    """

    def __init__(self, answer: Callable[[str, Shown, int], Reply], dies_at: int | None = None) -> None:
        super().__init__()
        self.asked: list[str] = []
        self._model = answer
        self._dies_at = dies_at

    def answer(self, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        """Answer one request, as the model does, or as one that is gone."""
        name, shown = str(body["response_format"]["json_schema"]["name"]), json.loads(body["messages"][1]["content"])
        with self.lock:
            number = len(self.asked)
            self.asked.append(name)
        if self._dies_at is not None and number >= self._dies_at:
            self.send(handler, {"error": {"message": "gone", "type": "server_error"}}, 503)
            return
        said = self._model(name, shown, number)
        text = said if said is None or isinstance(said, str) else json.dumps(said)
        self.send(handler, completion(text, body["model"], 100, 20))
