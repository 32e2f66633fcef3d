"""Notes of sinks on requests that are not over: bounded, however many never end."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")
REQUESTS = 4096
NOTES = 100


class OpenRequests(Generic[T]):
    """Notes by request. Beyond REQUESTS the oldest one is forgotten; of each the first NOTES are kept."""

    __slots__ = ("_notes",)

    def __init__(self) -> None:
        self._notes: dict[str, list[T]] = {}

    def note(self, request_id: str, what: T) -> None:
        """Remember a note for its request; the id "" is no request."""
        notes = self._notes
        known = notes.get(request_id)
        if known is not None:
            if len(known) < NOTES:
                known.append(what)
        elif request_id:
            notes[request_id] = [what]
            if len(notes) > REQUESTS:
                del notes[next(iter(notes))]

    def take(self, request_id: str) -> list[T]:
        """Return the notes of a request that has ended, and forget them."""
        return self._notes.pop(request_id, None) or []
