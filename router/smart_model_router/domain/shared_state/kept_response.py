"""An answer of Responses that the router made by translation, kept for requests that refer to it: a plain row."""

from __future__ import annotations

from dataclasses import dataclass

LONGEST_CHAIN = 67_108_864
"""Bytes of a conversation that is put in the place of a reference to its last answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptResponse:
    """The answer `id` as it was delivered, for the key that `owner` marks, and what it answered.

    `input` is the request's own list of items, what they refer to in its place, and `answer` the answer, both as JSON.
    `parent` is the kept answer that the request went on from.
    """

    id: str
    owner: str
    parent: str | None
    input: bytes
    answer: bytes

    @property
    def size(self) -> int:
        """Bytes, before they are compressed."""
        return len(self.input) + len(self.answer)
