"""What one stream's recovery needs to remember: what its caller has, what is held back, how the next part joins on."""

from __future__ import annotations

import math
from collections.abc import Sequence

from smart_model_router.core.holdback import HoldBack
from smart_model_router.core.overlap import Overlap
from smart_model_router.core.recovery import recoverable
from smart_model_router.outcome import Failure, FailureClass, StreamEvent, Usage
from smart_model_router.recovery import Recovery
from smart_model_router.report import RouteReport, StreamRecovery
from smart_model_router.request import Dialect
from smart_model_router.wires import text_of
from smart_model_router.wires.joining import Joint, Told, joint, restart_event


class Salvage:
    """One stream under a policy that is not `none`. Every event passes through `take` on its way to the caller."""

    def __init__(self, policy: Recovery, dialect: Dialect, report: RouteReport) -> None:
        self._policy = policy
        self._dialect: Dialect = dialect
        self._report = report
        self._told = Told(dialect)
        held = {"buffered": math.inf, "hold_back": policy.characters}.get(policy.mode, 0)
        self._held = HoldBack(held)
        self._joint: Joint | None = None
        self._overlap: Overlap | None = None
        self._broken = 0
        """Attempts of the report that were part of the answer and broke off."""

    @property
    def begun(self) -> str:
        """What the next target is to go on from; "" when it answers anew."""
        return self._told.text.rstrip() if self._goes_on else ""

    @property
    def _goes_on(self) -> bool:
        return self._policy.mode != "restart" and self._told.anything

    def attempt(self) -> None:
        """A target begins to answer: its events are to fit what the caller has."""
        self._held.drop()
        if not self._goes_on:
            return
        self._overlap = Overlap(self._told.text, self.begun)
        self._joint = joint(self._told, self._overlap, self._spent())

    def take(self, events: Sequence[StreamEvent]) -> list[StreamEvent]:
        """What the caller is to get for these events now; `delivered` is told when it does."""
        out: list[StreamEvent] = []
        for event in events:
            for fitting in (event,) if self._joint is None else self._joint.feed(event):
                said = "" if fitting.data is None else text_of(self._dialect, fitting.data)
                out += self._held.take(fitting, len(said))
        return [] if self.repeats() else out

    @property
    def undecided(self) -> bool:
        """Whether what a continuation said so far may all be repetition."""
        return self._overlap is not None and not self._overlap.decided

    def flush(self) -> list[StreamEvent]:
        """The answer is complete: what was held back."""
        return self._held.flush()

    def delivered(self, events: Sequence[StreamEvent]) -> Sequence[StreamEvent]:
        """The caller gets these."""
        for event in events:
            self._told.take(event)
        if self._overlap is not None and self._joint is not None:
            newest = self._report.recoveries[-1]
            newest.trimmed_characters = self._overlap.trimmed
            newest.trimmed_thinking_characters = self._joint.unthought
        return events

    def repeats(self) -> Failure | None:
        """The failure of a continuation that is none."""
        if self._overlap is None or not self._overlap.begun_anew:
            return None
        return Failure(FailureClass.REJECTED_BY_FALLBACK, "it began another answer instead of going on")

    def fell_back(self, target: str, failure: Failure) -> None:
        """A stream broke off, and all that came of it was held back."""
        dropped = self._held.drop()
        if dropped and recoverable(failure):
            self._note(target, failure, kept=len(self._told.text), dropped=dropped)

    def broke(self, target: str, failure: Failure) -> bool:
        """A stream broke off of which the caller has a part; whether somebody else may go on, or begin again."""
        restart = self._policy.mode == "restart"
        if not recoverable(failure) or not (self._told.only_text if restart else self._told.can_go_on):
            return False
        self._broken = len(self._report.attempts)
        dropped, text = self._held.drop(), len(self._told.text)
        self._note(target, failure, kept=0 if restart else text, dropped=text if restart else dropped)
        return True

    def served(self, target: str) -> StreamEvent | None:
        """Somebody serves on; what the caller is to be told first."""
        waiting = [each for each in self._report.recoveries if each.to_target is None]
        for each in waiting:
            each.to_target = target
        if self._policy.mode != "restart" or not self._told.anything:
            return None  # the first to serve
        self._told = Told(self._dialect)
        return restart_event(self._dialect, waiting[-1].to_dict())

    def _note(self, target: str, failure: Failure, *, kept: int, dropped: int) -> None:
        self._report.recoveries.append(StreamRecovery(str(self._policy), target, failure.failure_class, kept, dropped))

    def _spent(self) -> Usage:
        """What the parts that the caller has were billed."""
        known = [attempt.usage for attempt in self._report.attempts[: self._broken] if attempt.usage is not None]
        return Usage(
            sum(each.prompt_tokens for each in known),
            sum(each.completion_tokens for each in known),
            sum(each.cached_prompt_tokens for each in known),
        )
