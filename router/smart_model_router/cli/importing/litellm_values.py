"""Values of a LiteLLM configuration, written as ours: references, figures, switches."""

from __future__ import annotations

from typing import Any

from smart_model_router.config import conversion
from smart_model_router.config.hints import Hint
from smart_model_router.core.checked_options import within

_ENVIRON = "os.environ/"


def text(raw: str) -> str:
    """Text with its reference as we write it: `os.environ/X` is `${X}`, and what looks like one of ours is none."""
    if raw.startswith(_ENVIRON):
        return f"${{{raw.removeprefix(_ENVIRON)}}}"
    return raw.replace("${", "$${")


def switch(raw: object) -> bool:
    """True when a switch is on."""
    return isinstance(raw, str) and conversion.switch(raw) is True


def figure(raw: object) -> int | float | None:
    """A plain number; None for anything else."""
    return conversion.number(raw, "seconds") if isinstance(raw, str) else None


def fitting(raw: object, hint: Hint) -> Any:
    """The value for a key that takes `hint`; None when it takes no such value."""
    if not isinstance(raw, str):
        return None
    if raw.startswith(_ENVIRON):
        return text(raw)
    if hint.base is bool:
        return conversion.switch(raw)
    if hint.base in (int, float):
        found = conversion.number(raw, hint.unit)
        whole = hint.base is not int or isinstance(found, int)
        return found if found is not None and whole and hint.interval and within(found, hint.interval) else None
    return text(raw)
