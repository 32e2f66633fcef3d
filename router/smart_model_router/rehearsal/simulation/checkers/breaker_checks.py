"""Promises of breakers and cooldowns: one trip is one event, open times grow by rule, no failure shortens a rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_model_router.core.breaker import BreakerConfig
from smart_model_router.domain.events import BreakerChanged
from smart_model_router.rehearsal.simulation.scenario import Checker

if TYPE_CHECKING:
    from smart_model_router.core.breaker import BreakerSnapshot
    from smart_model_router.core.cooldown import CooldownSnapshot, LawSnapshot
    from smart_model_router.core.gate import Gate, GateSnapshot
    from smart_model_router.domain.events import Event
    from smart_model_router.domain.outcome import Failure
    from smart_model_router.flow.state import RouterState
    from smart_model_router.rehearsal.simulation.scenario import History
    from smart_model_router.rehearsal.simulation.trace import Held, Refused, Settled

_EPSILON = 1e-6
_JITTER = 1.1
"""The dice add up to a tenth (docs/design/routing.md section 3)."""
_TIMES_BASE, _TIMES_CAP, _LEAST_CAP = 10.0, 20.0, 15.0
"""D7: the open time is ten times what the probe lost a request, at most twenty times the largest loss."""
_MOST_TIMES = 100
_PAUSES = (1.0, 2.0, 4.0, 5.0)
_PAUSE_SPREAD = 0.2
"""D4: seconds between the probes of an OPEN target while no other one is free, a fifth less by dice."""

Key = tuple[str, str]


def _breakers(gate: Gate, *, stream: bool) -> tuple[Key, Key]:
    """The two breakers that a call of this kind meets, as events name them."""
    return (gate.id, "stream" if stream else "whole"), (gate.provider.name, "transport")


class OneOpening(Checker):
    """I4: one trip gives one OPEN event; late failures never extend OPEN, only its probe does."""

    def __init__(self, state: RouterState, history: History) -> None:
        super().__init__(state, history)
        self._trips: dict[Key, int] = {}
        self._told: dict[Key, int] = {}

    def settled(self, settled: Settled) -> None:
        held, before, after = settled.held, settled.before, settled.after
        own, transport = _breakers(held.gate, stream=held.lease.stream)
        self._look(own, before.own, after.own, settled, held.own)
        self._look(transport, before.transport, after.transport, settled, held.transport)

    def event(self, event: Event) -> None:
        if isinstance(event, BreakerChanged) and event.to_state == "open":
            key = (event.owner, event.kind)
            self._told[key] = self._told.get(key, 0) + 1
            if self._told[key] > self._trips.get(key, 0):
                self.violate("I4", event.at, f"{event.owner} ({event.kind}): an OPEN event without a trip")

    def finish(self) -> None:
        if self._trips != self._told:
            now = self.history.began + self.history.lasted
            self.violate("I4", now, f"trips {self._trips}, OPEN events {self._told}")

    def _look(
        self, key: Key, before: BreakerSnapshot, after: BreakerSnapshot, settled: Settled, generation: int | None
    ) -> None:
        now = settled.now
        if after.open_until is not None and after.generation != before.generation:
            self._trips[key] = self._trips.get(key, 0) + 1
        if before.open_until is None or now >= before.open_until or after.open_until == before.open_until:
            return
        if generation != before.generation:  # the probe's generation is its own: any other call is a late one
            self.violate("I4", now, f"{key[0]} ({key[1]}): a verdict moved the end of OPEN")


@dataclass(slots=True)
class _Course:
    """The outage of one breaker: `index` counts reopenings, the losses and open times are seconds.

    `least_index` stands still while the open time is at its cap: later growth begins there, or at `index`.
    """

    base: float
    index: int = 0
    least_index: int = 0
    closed_at: float = 0.0
    opened_at: float = 0.0
    probes_failed: int = 0
    largest_loss: float = 0.0
    lasted: float = 0.0


class OpenTime(Checker):
    """I5: 0 < open time <= cap, by D7 and growing with each failed probe, falling only with proven health.

    A probe comes when the open time is over, or by back-off where no other target is free.
    """

    def __init__(self, state: RouterState, history: History) -> None:
        super().__init__(state, history)
        self._courses: dict[Key, _Course] = {}

    def admitted(self, held: Held, now: float) -> None:
        if held.last_resort:
            return
        for key, shot in self._shots(held.gate, held.before, stream=held.lease.stream):
            if shot.open_until is None or now >= shot.open_until:
                continue
            course = self._of(key)
            due = course.opened_at + _pause(course.probes_failed) * (1 - _PAUSE_SPREAD)
            if held.pacing != "eager" or now < due - _EPSILON:
                early = min(shot.open_until, due if held.pacing == "eager" else shot.open_until) - now
                self.violate("I5", now, f"{key[0]} ({key[1]}): a probe {early:.3f} s before it is due")

    def refused(self, refused: Refused) -> None:
        if refused.refusal.reason != "open" or refused.pacing != "eager":
            return
        shots = self._shots(refused.gate, refused.before, stream=refused.stream)
        courses = [self._of(key) for key, shot in shots if not shot.closed]
        latest = max(course.opened_at + _pause(course.probes_failed) for course in courses)
        if (due := refused.refusal.retry_at or refused.now) > latest + _EPSILON:
            self.violate("D4", refused.now, f"{refused.gate.id}: the probe is due {due - latest:.3f} s too late")

    def settled(self, settled: Settled) -> None:
        held, before, after = settled.held, settled.before, settled.after
        own, transport = _breakers(held.gate, stream=held.lease.stream)
        self._look(own, before.own, after.own, settled)
        self._look(transport, before.transport, after.transport, settled)

    def proved(self, settled: Settled) -> None:
        self.settled(settled)

    def let_in(self, gate: Gate, now: float) -> None:
        for stream in (False, True):
            for key in _breakers(gate, stream=stream):
                self._closed(self._of(key), now)
                self._of(key).index = self._of(key).least_index = 0

    def _look(self, key: Key, before: BreakerSnapshot, after: BreakerSnapshot, settled: Settled) -> None:
        course = self._of(key)
        if after.generation == before.generation:
            return
        if after.closed:
            if not before.closed:
                self._closed(course, settled.now)
        elif after.open_until is not None:
            self._opened(key, course, settled, after.open_until - settled.now, probed=not before.closed)

    def _opened(self, key: Key, course: _Course, settled: Settled, seconds: float, *, probed: bool) -> None:
        config, now, lost = self._config(), settled.now, settled.now - settled.held.at
        if not probed:
            healthy = int((now - course.closed_at) / course.base)
            course.index, course.least_index = max(0, course.index - healthy), max(0, course.least_index - healthy)
        least_base = min(config.open_minimum, config.open)
        course.base = min(max(least_base, _TIMES_BASE * lost), config.open)
        course.largest_loss = max(course.largest_loss, lost)
        cap = self._cap(course)
        if probed:  # by the loss of this probe: an index beyond the cap would only delay the decay
            course.probes_failed += 1
            course.index += 1
            course.least_index += course.base * config.open_multiplier**course.least_index < cap
        least = max(course.lasted, min(cap, course.base * config.open_multiplier**course.least_index))
        grown = course.base * config.open_multiplier ** min(course.index, _MOST_TIMES)
        most = max(course.lasted, min(cap, grown * _JITTER))
        self.history.bind(key[0], now, now + min(seconds, most))
        if not least - _EPSILON <= seconds <= most + _EPSILON or not 0 < seconds <= config.open_cap + _EPSILON:
            self.violate("I5", now, f"{key[0]}: open for {seconds:.3f} s, not {least:.3f} to {most:.3f}")
        course.lasted, course.opened_at = seconds, now

    def _cap(self, course: _Course) -> float:
        return min(self._config().open_cap, max(_LEAST_CAP, _TIMES_CAP * course.largest_loss))

    def _closed(self, course: _Course, now: float) -> None:
        course.closed_at, course.lasted, course.largest_loss, course.probes_failed = now, 0.0, 0.0, 0

    def _shots(self, gate: Gate, shot: GateSnapshot, *, stream: bool) -> tuple[tuple[Key, BreakerSnapshot], ...]:
        own, transport = _breakers(gate, stream=stream)
        return (own, shot.own), (transport, shot.transport)

    def _of(self, key: Key) -> _Course:
        return self._courses.setdefault(key, _Course(self._config().open))

    def _config(self) -> BreakerConfig:
        return next(iter(self.state.fleet.gates.values())).config.breaker


def _pause(probes_failed: int) -> float:
    return _PAUSES[min(probes_failed, len(_PAUSES) - 1)]


class Deadlines(Checker):
    """I6: advice and law are only ever prolonged; a success of a call admitted after one began ends it."""

    def settled(self, settled: Settled) -> None:
        for before, after in zip(settled.before.rests, settled.after.rests, strict=True):
            self._advice(settled, before, after)
            for reason, law in before.laws.items():
                if law.until > settled.now:
                    self._law(settled, reason, law, after.laws.get(reason))

    def _advice(self, settled: Settled, before: CooldownSnapshot, after: CooldownSnapshot) -> None:
        if before.advice_until <= settled.now or after.advice_until >= before.advice_until:
            return
        shots = (settled.before.own, settled.after.own), (settled.before.transport, settled.after.transport)
        ended = settled.failure is None and settled.held.at >= before.advice_began
        if not ended and not any(_tripped(*shot) for shot in shots):
            self.violate("I6", settled.now, f"{settled.held.gate.id}: {_cause(settled.failure)} shortened a cooldown")

    def _law(self, settled: Settled, reason: str, before: LawSnapshot, after: LawSnapshot | None) -> None:
        failure, held = settled.failure, settled.held
        if after is None:
            if failure is not None or held.at <= before.began:
                self.violate("I6", settled.now, f"{held.gate.id}: {_cause(failure)} ended a {reason}")
            return
        if after.until >= before.until:
            return
        newer = after.hinted and (not before.hinted or held.lease.sequence > before.sent_seq)
        if failure is None or failure.wait is None or not newer:
            self.violate("I6", settled.now, f"{held.gate.id}: {_cause(failure)} shortened a {reason}")


def _tripped(before: BreakerSnapshot, after: BreakerSnapshot) -> bool:
    return after.generation != before.generation and after.open_until is not None


def _cause(failure: Failure | None) -> str:
    return "a success of an earlier call" if failure is None else failure.failure_class.value
