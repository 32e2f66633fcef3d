"""The parts of this process's router that the shared state reads and changes.

A protocol, because `flow/state.py` imports the modules of the shared state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from smart_model_router.core.gate import Gate
from smart_model_router.core.gate_registry import GateRegistry
from smart_model_router.core.lease import Settlement
from smart_model_router.domain.events import AttemptFinished, Event
from smart_model_router.domain.outcome import Failure
from smart_model_router.domain.ports import Clock
from smart_model_router.domain.shared_state import ClockReading, MakerRow, OperatorRow


class LocalBook(Protocol):
    """The statistics that calls of earlier processes are restored into."""

    def restore(self, event: AttemptFinished) -> None:
        """Take in a call that ended before this process began."""
        ...

    def reset_window(self, target_id: str, now: float) -> None:
        """Forget recent outcomes and latencies: the target came back."""
        ...


class LocalMakers(Protocol):
    """The makers of stored things that other processes do not know yet."""

    def take(self) -> tuple[MakerRow, ...]:
        """Return the rows that are not told yet, and count them as told."""
        ...

    def keep(self, rows: Sequence[MakerRow]) -> None:
        """Take rows back that could not be told."""
        ...


class LocalCommands(Protocol):
    """The newest operator command on each target."""

    @property
    def rows(self) -> dict[str, OperatorRow]:
        """The command by target."""
        ...

    def obey(self, row: OperatorRow, *, heard: bool) -> None:
        """Carry out a command. `heard`: it was given in another process, or before a restart."""
        ...


class LocalRouter(Protocol):
    """One router of this process, as its part in the shared state sees it."""

    @property
    def clock(self) -> Clock:
        """The monotonic clock of this router."""
        ...

    @property
    def here(self) -> Callable[[], ClockReading]:
        """Reads the clocks that other processes read as well."""
        ...

    @property
    def fleet(self) -> GateRegistry:
        """The gates of all targets."""
        ...

    @property
    def book(self) -> LocalBook:
        """The statistics in memory."""
        ...

    @property
    def makers(self) -> LocalMakers:
        """The makers of stored things."""
        ...

    @property
    def words(self) -> LocalCommands:
        """The operator's commands."""
        ...

    def apply(
        self, gate: Gate, settlement: Settlement, now: float, cause: Failure | None, *, since: float | None = None
    ) -> None:
        """Act on a change of a gate: emit events, reset statistics, wake waiters."""
        ...

    def emit(self, event: Event) -> None:
        """Tell the sinks."""
        ...

    def pump(self, provider: str | None) -> None:
        """Let the waiters of a provider's gates ask again; None: the waiters of all gates."""
        ...

    def queued(self, target: str) -> int:
        """Return how many requests wait for a target."""
        ...
