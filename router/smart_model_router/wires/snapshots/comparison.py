"""How a snapshot compares with the deltas before it."""

from __future__ import annotations

from smart_model_router.domain.outcome import EventKind, Failure, FailureClass, StreamEvent
from smart_model_router.wires.values import decode_text


def missing_text(told: str, whole: str) -> str | None:
    """The end of `whole` that the deltas did not tell; None when they told another text.

    Some servers strip spaces from a snapshot, or leave it empty: one that is shorter than its deltas adds nothing.
    """
    if whole.startswith(told):
        return whole[len(told) :]
    if told.strip().startswith(whole.strip()):
        return ""
    begun, rest = told.lstrip(), whole.lstrip()
    return rest[len(begun) :] if rest.startswith(begun) else None


def missing_arguments(told: str, whole: str) -> str | None:
    """The same of a call's arguments, which may be written with other spaces."""
    rest = missing_text(told, whole)
    if (rest is None or rest) and told.strip() and is_same_json(told, whole):
        return ""
    return rest


def is_same_json(one: str, other: object) -> bool:
    """Whether a text is JSON of a value, given as itself or as another text."""
    try:
        return bool(decode_text(one) == (decode_text(other) if isinstance(other, str) else other))
    except (ValueError, RecursionError):
        return False


def contradiction(event: StreamEvent, what: str) -> StreamEvent:
    """What a snapshot is read as that contradicts its deltas. Its usage still counts."""
    failure = Failure(FailureClass.MALFORMED, f"{what} contradicts the deltas before it")
    return StreamEvent(EventKind.MALFORMED, event.raw, usage=event.usage, failure=failure)
