"""What a translation could not carry over: losses that are listed, and the one that changes the meaning."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Container, Mapping


_SHOWN = 200
"""Characters of an explanation: it may quote the body."""
_EMPTY: tuple[Any, ...] = ([], {})


@dataclass(frozen=True, slots=True)
class Untranslatable:
    """A loss that would change the meaning: the target is refused instead. `where` is a field of the body."""

    where: str
    why: str

    def __str__(self) -> str:
        return f"{self.where}: {self.why}"


@dataclass(slots=True)
class Losses:
    """Collects the losses of one translation, each said once however often it happens. The first refusal counts."""

    refusal: Untranslatable | None = None
    _said: dict[str, None] = field(default_factory=dict)

    @property
    def entries(self) -> tuple[str, ...]:
        """What got lost, in words, in the order it was found."""
        return tuple(self._said)

    def drop(self, where: str, why: str) -> None:
        """Something a caller may miss is left out or changed."""
        self._said.setdefault(f"{where}: {why}")

    def drop_keys(self, body: Mapping[str, Any], handled: Container[str], why: str, *, inside: str = "") -> None:
        """Every field of `body` that says something and that nothing handles is left out. `inside` is where `body` is.

        A field of None, or of an empty list or object, says nothing.
        """
        for key, value in body.items():
            if key not in handled and value is not None and value not in _EMPTY:
                self.drop(f"{inside}.{key}" if inside else key, why)

    def refuse(self, where: str, why: str) -> None:
        """Something is left out without which the request means something else."""
        if self.refusal is None:
            self.refusal = Untranslatable(where, why[:_SHOWN])
