"""The state of one stream's recovery: the delivered text, the held-back events, the joint to the next part."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from smart_model_router.core.overlap import Overlap
from smart_model_router.core.stream import HOLD_SECONDS, HoldBack, held, recoverable
from smart_model_router.domain.outcome import EventKind, Failure, FailureClass, StreamEvent, Usage
from smart_model_router.domain.recovery_policy import Recovery
from smart_model_router.domain.report import RouteReport, StreamRecovery
from smart_model_router.domain.request import Dialect, RouteRequest
from smart_model_router.wires import text_of
from smart_model_router.wires.stream_join import Joint, Told, call_check, joint, restart_event

_CONTENT: Final = EventKind.CONTENT  # as in provider_stream.py


class RecoveryState:
    """One stream under a policy that is not `none`. Every event passes through `take` on its way to the caller."""

    def __init__(self, policy: Recovery, request: RouteRequest, report: RouteReport, now: Callable[[], float]) -> None:
        self._policy = policy
        self._dialect: Dialect = request.dialect
        self._report = report
        self._now = now
        self._told = Told(request.dialect)
        self._begins_call = call_check(request.dialect)
        characters = {"buffered": math.inf, "hold_back": policy.characters}.get(policy.mode, 0)
        self._held = HoldBack(characters)
        self._holds = held(request, policy)
        self._whole_since: float | None = None
        """Since when a part that only makes sense whole is held, monotonic; None: there is none, or not any more."""
        self._gave_up = False
        """True when such a part took longer than it is held: it is delivered as it comes, and cannot be recovered."""
        self._joint: Joint | None = None
        self._overlap: Overlap | None = None
        self._broken = 0
        """Attempts of the report that were part of the answer and broke off."""

    @property
    def begun(self) -> str:
        """The text that the next target continues; "" when it answers anew."""
        return self._told.text.rstrip() if self._goes_on else ""

    @property
    def _goes_on(self) -> bool:
        return self._policy.mode != "restart" and self._told.anything

    @property
    def holds_a_part(self) -> bool:
        """True when a part that only makes sense whole is held: there may be nothing to deliver of an open stream."""
        return self._whole_since is not None

    def attempt(self, *, asked: bool) -> None:
        """Begin an attempt of a target: its events have to fit the delivered ones.

        `asked`: it is only asked in words to continue, and has to prove that it does.
        """
        self._drop()
        if not self._goes_on:
            return
        self._overlap = Overlap(self._told.text, self.begun, trusted=not asked)
        self._joint = joint(self._told, self._overlap, self._spent())

    def take(self, events: Sequence[StreamEvent]) -> Sequence[StreamEvent]:
        """Take events; return those to deliver now. Their delivery is reported by `delivered`."""
        if self._joint is not None:
            events = [fitting for event in events for fitting in self._joint.feed(event)]
            if self.repeats():
                return []
        waits = self._holds != "nothing" and self._whole_since is None and not self._gave_up
        if waits and (at := self._begin_of_part(events)) < len(events):
            before = self._passed(events[:at])
            self._whole_since = self._now()
            self._held.hold()
            return [*before, *self._passed(events[at:])]
        if self._held.passes:
            return events
        out = self._passed(events)
        if self._whole_since is not None and self._now() >= self._whole_since + HOLD_SECONDS:
            self._gave_up, self._whole_since = True, None
            return [*out, *self._held.release()]
        return out

    def _begin_of_part(self, events: Sequence[StreamEvent]) -> int:
        """The place from which on these events are held; their number where none is.

        With a call goes all before it of which nothing is delivered, unless there is content in it.
        """
        if self._holds == "all":
            return 0
        for at, event in enumerate(events):
            if not event.text and event.kind is _CONTENT and event.data is not None and self._begins_call(event.data):
                is_first = not self._told.anything and all(before.kind is not _CONTENT for before in events[:at])
                return 0 if is_first else at
        return len(events)

    def _passed(self, events: Sequence[StreamEvent]) -> list[StreamEvent]:
        """The events to deliver now: a finish reason ends the waiting for the whole part before it."""
        out: list[StreamEvent] = []
        for event in events:
            said = event.text
            if said is None:
                said = "" if event.data is None else text_of(self._dialect, event.data)
            out += self._held.take(event, len(said))
            if event.finish is not None and self._whole_since is not None:
                self._whole_since = None
                out += self._held.release()
        return out

    @property
    def undecided(self) -> bool:
        """True when all text of a continuation so far may be repetition."""
        return self._overlap is not None and not self._overlap.decided

    def flush(self) -> list[StreamEvent]:
        """Return the held-back events of a complete answer."""
        return self._held.flush()

    def delivered(self, events: Sequence[StreamEvent]) -> None:
        """Note that the caller gets these events."""
        for event in events:
            self._told.take(event)
        if self._overlap is not None and self._joint is not None:
            newest = self._report.recoveries[-1]
            newest.trimmed_characters = self._overlap.trimmed
            newest.trimmed_thinking_characters = self._joint.unthought

    def repeats(self) -> Failure | None:
        """The failure of a continuation that is another answer instead; None for a true one."""
        if self._overlap is None or not self._overlap.begun_anew:
            return None
        return Failure(FailureClass.REJECTED_BY_FALLBACK, "it began another answer instead of going on")

    def fell_back(self, target: str, failure: Failure) -> None:
        """Note that a stream broke off of which everything was held back."""
        dropped = self._drop()
        if dropped and recoverable(failure):
            self._note(target, failure, kept=len(self._told.text), dropped=dropped)

    def broke(self, target: str, failure: Failure) -> bool:
        """Note that an open stream broke off; True when another target may continue it, or begin again."""
        restart = self._policy.mode == "restart"
        if not recoverable(failure) or not self._can_be_recovered:
            return False
        self._broken = len(self._report.attempts)
        dropped, text = self._drop(), len(self._told.text)
        self._note(target, failure, kept=0 if restart else text, dropped=text if restart else dropped)
        return True

    @property
    def _can_be_recovered(self) -> bool:
        if self._policy.mode == "restart":
            return self._told.only_text
        if self._holds == "all":
            return not self._told.anything
        return self._told.can_go_on

    def _drop(self) -> int:
        """Forget the held-back events; return the number of their characters of text."""
        dropped = self._held.drop()
        if self._whole_since is not None:
            self._whole_since = None
            self._held.release()
        return dropped

    def served(self, target: str) -> StreamEvent | None:
        """Note that a target continues; return the event that the caller gets first, if any."""
        waiting = [each for each in self._report.recoveries if each.to_target is None]
        for each in waiting:
            each.to_target = target
        if self._policy.mode != "restart" or not self._told.anything:
            return None  # the first to serve
        self._told = Told(self._dialect)
        return restart_event(self._dialect, waiting[-1].to_dict())

    def _note(self, target: str, failure: Failure, *, kept: int, dropped: int) -> None:
        thoughts = 0 if self._policy.mode == "restart" else self._told.thoughts
        self._report.recoveries.append(
            StreamRecovery(
                str(self._policy),
                target,
                failure.failure_class,
                kept_characters=kept,
                dropped_characters=dropped,
                kept_thinking_characters=thoughts,
            )
        )

    def _spent(self) -> Usage:
        """The billed usage of the parts that the caller has."""
        known = [attempt.usage for attempt in self._report.attempts[: self._broken] if attempt.usage is not None]
        return Usage(
            sum(each.prompt_tokens for each in known),
            sum(each.completion_tokens for each in known),
            sum(each.cached_prompt_tokens for each in known),
        )
