"""Removal of secrets from a log's lines."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

from smart_model_router.domain.redaction import Scrubber

_TEXT_LIMIT = 500
_WORDS = 2_000
_OUR_OWN = frozenset({"at", "event", "level", "request_id", "content"})
"""Fields with values of our own alone, and content, which the configuration permits as it is."""


class Redaction:
    """A structlog processor: no value keeps anything that looks like a secret, nor any of `known` secrets.

    `known` are the configuration's own: those are found even where they do not look like a key. Names recur in every
    line: the result for a text is remembered.
    """

    def __init__(self, known: tuple[str, ...] = ()) -> None:
        self._scrubber = Scrubber(known)
        self._seen: dict[str, str] = {}

    def __call__(self, _logger: object, _method: str, line: MutableMapping[str, Any]) -> Mapping[str, Any]:
        """The line without secrets."""
        seen = self._seen
        for key, value in line.items():
            if key in _OUR_OWN:
                continue
            if value.__class__ is str:
                known = seen.get(value)
                line[key] = self.clean(value) if known is None else known
            elif value and value.__class__ is not float and value.__class__ is not int:
                line[key] = self.clean(value)
        return line

    def clean(self, value: Any) -> Any:
        """A value without secrets, however deep."""
        if isinstance(value, str):
            known = self._seen.get(value)
            if known is None:
                if len(self._seen) >= _WORDS:
                    self._seen.clear()
                known = self._scrubber.text(value)[:_TEXT_LIMIT]
                if len(value) <= _TEXT_LIMIT:  # a longer one is no name, and the caller decides its length
                    self._seen[value] = known
            return known
        if isinstance(value, Mapping):
            return {key: self.clean(member) for key, member in value.items()}
        return [self.clean(member) for member in value] if isinstance(value, (list, tuple)) else value
