"""The interface of a checker: it gets every event and records each broken promise."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from smart_model_router.core.flow_config import Measures
    from smart_model_router.core.gate import Gate
    from smart_model_router.domain.events import Event
    from smart_model_router.flow.state import RouterState
    from smart_model_router.rehearsal.simulation.history import History
    from smart_model_router.rehearsal.simulation.trace_recorder import Held, Refused, Settled, TraceRecorder
    from smart_model_router.rehearsal.simulation.workload import WorkloadRequest


class Checker:
    """One or more invariants of routing.md section 0. Every hook may be left as it is.

    `needs` are the measures without which the promise is not made.
    """

    needs: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, state: RouterState, history: History) -> None:
        self.state = state
        self.history = history
        self.witness: TraceRecorder

    @classmethod
    def applies(cls, measures: Measures) -> bool:
        """True when the promise is made under these measures."""
        return all(getattr(measures, name) for name in cls.needs)

    def admitted(self, held: Held, now: float) -> None:
        """A gate admitted a call."""

    def refused(self, refused: Refused) -> None:
        """A gate refused a call."""

    def settled(self, settled: Settled) -> None:
        """A lease was settled, or settled again."""

    def proved(self, settled: Settled) -> None:
        """A stream that was a probe or on probation counts as a success from now on, and goes on."""

    def let_in(self, gate: Gate, now: float) -> None:
        """The operator closed a gate's breakers and ended its rests."""

    def event(self, event: Event) -> None:
        """The router told an event."""

    def ended(self, asked: WorkloadRequest) -> None:
        """A request ended for its caller."""

    def finish(self) -> None:
        """The run is over and everything has ended."""

    def violate(self, promise: str, now: float, text: str) -> None:
        """Write it down."""
        self.history.violate(promise, now, text)
