"""How long a target stays away, and how it comes back: to the instant, one call at a time, then step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from smart_model_router.outcome import FailureClass
from smart_model_router.simulation.checkers.base import Checker
from smart_model_router.simulation.reckoning import EPSILON, Account

if TYPE_CHECKING:
    from smart_model_router.core.cooldown import Cooldown
    from smart_model_router.core.gate import Gate
    from smart_model_router.core.lease import Lease
    from smart_model_router.outcome import Refusal
    from smart_model_router.runtime.state import RouterState
    from smart_model_router.simulation.history import History
    from smart_model_router.simulation.witness import BreakerShot, Held, RestShot, Settled, Shot

_LAWS = frozenset({"wait", "wall", "off"})


class Returns(Checker):
    """Rests last as long as the provider's own words and the rules say; probation and slow start follow them.

    Nobody is asked while a rest binds, and nobody is refused for one that is over: by an account of its own
    (reckoning.py) of what became of every call.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"monotonic_clock"})

    def __init__(self, state: RouterState, history: History) -> None:
        super().__init__(state, history)
        self._accounts: dict[Cooldown, Account] = {}
        self._trials: dict[Lease, tuple[Account, ...]] = {}
        self._back: dict[str, float] = {}
        gates = state.fleet.gates.values()
        self._hints = all(gate.config.measures.rate_limit_awareness for gate in gates)

    def admitted(self, held: Held, now: float) -> None:
        if held.last_resort:
            return
        gate, (own, shared) = held.gate, self._both(held.gate)
        for account in (own, shared):
            for reason, law in account.laws.items():
                if now < law.least - EPSILON and self._hints:
                    self.violate("rests", now, f"{gate.id}: asked {law.least - now:.3f} s before its {reason} ends")
        cooling = now < own.advice_until - EPSILON
        if cooling and not (held.ignores_advice or held.probing):
            self.violate("rests", now, f"{gate.id}: asked {own.advice_until - now:.3f} s before its cooldown ends")
        trials = tuple(account for account in (own, shared) if account.on_probation(now))
        if cooling and held.ignores_advice and own not in trials:
            trials = (*trials, own)
        if trials:
            if any(one is other for one in trials for on in self._trials.values() for other in on):
                self.violate("probation", now, f"{gate.id}: a second call on probation")
            self._trials[held.lease] = trials
        for name, in_flight, allowed in self._steps(gate, now):
            if in_flight > allowed + EPSILON:
                self.violate("slow_start", now, f"{name}: {in_flight} in flight, not {allowed:.2f}")

    def refused(self, gate: Gate, refusal: Refusal, before: Shot, after: Shot, now: float) -> None:  # noqa: ARG002
        reason, accounts = refusal.reason, self._both(gate)
        if reason in _LAWS:
            laws = [law for account in accounts if (law := account.laws.get(reason)) is not None]
            due = refusal.retry_at or 0.0
            if self._hints and not any(law.least - EPSILON <= due <= law.most + EPSILON for law in laws):
                self.violate("rests", now, f"{gate.id}: told to come back {due - now:.3f} s after a {reason}")
        elif reason == "cooldown" and abs((refusal.retry_at or 0.0) - accounts[0].advice_until) > EPSILON:
            self.violate("rests", now, f"{gate.id}: refused for a cooldown that is not, or not as long")
        elif reason == "probation":
            if not any(one is other for one in accounts for on in self._trials.values() for other in on):
                self.violate("probation", now, f"{gate.id}: refused though nobody is on probation")
        elif reason == "slow_start" and all(n + 1 <= allowed - EPSILON for _, n, allowed in self._steps(gate, now)):
            self.violate("slow_start", now, f"{gate.id}: refused though there is room")

    def proved(self, settled: Settled) -> None:
        self._answered(settled)
        self._compare(settled)

    def settled(self, settled: Settled) -> None:
        held, failure = settled.held, settled.failure
        if held.settlements > 1 or held.last_resort:
            return
        if failure is None:
            if not held.proven:
                self._answered(settled)
        elif failure.failure_class is not FailureClass.CANCELLED:
            self._failed(settled)
        else:
            self._breakers(settled)
        self._trials.pop(held.lease, None)
        self._compare(settled)

    def let_in(self, gate: Gate, now: float) -> None:  # noqa: ARG002
        for account in self._both(gate):
            account.forgiven()
        self._back.pop(gate.id, None)
        self._back.pop(gate.provider.name, None)

    def _answered(self, settled: Settled) -> None:
        held = settled.held
        own, shared = self._both(held.gate)
        self._breakers(settled)
        ended = own.succeeded(held.at, settled.now)
        ended = shared.succeeded(held.at, settled.now) or ended
        if self._trials.pop(held.lease, ()) and ended:
            self._back[held.gate.id] = settled.now

    def _failed(self, settled: Settled) -> None:
        held, failure, gate, now = settled.held, settled.failure, settled.held.gate, settled.now
        assert failure is not None  # noqa: S101 - the caller has looked
        self._breakers(settled)
        owner = gate.credential if failure.credential_wide else gate.cooldown
        concurrency = failure.wait is not None and failure.wait.scope == "concurrency"
        offline = gate.provider.remote and gate.provider.connectivity.offline
        until = self._of(owner).failed(
            failure,
            held.at,
            held.lease.sequence,
            now,
            advised=settled.after.own.closed and settled.after.transport.closed and not offline,
            paced=failure.failure_class is FailureClass.RATE_LIMITED and gate.limits.known and not concurrency,
        )
        if until is not None:
            for other in self.state.fleet.gates.values():
                if owner in (other.cooldown, other.credential):
                    self.history.bind(other.id, now, until)

    def _breakers(self, settled: Settled) -> None:
        gate, before, after = settled.held.gate, settled.before, settled.after
        if _opened(before.own, after.own) or _opened(before.transport, after.transport):
            self._of(gate.cooldown).tripped()
        if not before.transport.closed and after.transport.closed:
            self._back[gate.provider.name] = self._back[gate.id] = settled.now
        elif _opened(before.transport, after.transport):
            self._back.pop(gate.provider.name, None)
        if not before.own.closed and after.own.closed:
            self._back[gate.id] = settled.now

    def _compare(self, settled: Settled) -> None:
        gate = settled.held.gate
        for account, shot in zip(self._both(gate), settled.after.rests, strict=True):
            if self._hints:
                self._compare_laws(gate, account, shot, settled.now)
            if max(account.advice_until, shot.advice_until) > settled.now and (
                abs(account.advice_until - shot.advice_until) > EPSILON
            ):
                lasts, should = shot.advice_until - settled.now, account.advice_until - settled.now
                self.violate("rests", settled.now, f"{gate.id}: cools down for {lasts:.3f} s, not {should:.3f}")

    def _compare_laws(self, gate: Gate, account: Account, shot: RestShot, now: float) -> None:
        for reason in account.laws.keys() | shot.laws.keys():
            law, theirs = account.laws.get(reason), shot.laws.get(reason)
            if law is None or theirs is None or not law.least - EPSILON <= theirs.until <= law.most + EPSILON:
                should = "no such thing" if law is None else f"{law.least - now:.3f} to {law.most - now:.3f}"
                lasts = "none" if theirs is None else f"for {theirs.until - now:.3f} s"
                self.violate("rests", now, f"{gate.id}: {reason} {lasts}, not {should}")
            if law is not None and theirs is not None and law.least < law.most:
                law.least = law.most = min(max(theirs.until, law.least), law.most)

    def _steps(self, gate: Gate, now: float) -> list[tuple[str, int, float]]:
        """What is in flight, and what slow start allows, while there is one."""
        back, provider = self._back, gate.provider
        takes, slots = gate.config.slow_start, provider.bulkhead.slots
        steps = []
        if (elapsed := now - back.get(gate.id, now - takes)) < takes:
            steps.append((gate.id, self.witness.in_flight(gate), 1 + (slots - 1) * elapsed / takes))
        if (elapsed := now - back.get(provider.name, now - takes)) < takes:
            steps.append((provider.name, self.witness.at_provider(provider.name), 1 + (slots - 1) * elapsed / takes))
        return steps

    def _both(self, gate: Gate) -> tuple[Account, Account]:
        return self._of(gate.cooldown), self._of(gate.credential)

    def _of(self, rests: Cooldown) -> Account:
        account = self._accounts.get(rests)
        if account is None:
            config = next(iter(self.state.fleet.gates.values())).config.cooldown
            account = self._accounts[rests] = Account(config)
        return account


def _opened(before: BreakerShot, after: BreakerShot) -> bool:
    return after.generation != before.generation and after.open_until is not None
