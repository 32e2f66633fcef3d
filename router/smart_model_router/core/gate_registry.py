"""The fleet: every gate of a router, and what they say together (system health, being offline)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from smart_model_router.core.breaker import BreakerState
from smart_model_router.core.gate import Gate
from smart_model_router.core.ratelimit import RateLimitTracker
from smart_model_router.core.target_state import Connectivity, ProviderState


class GateRegistry:
    """All targets' gates by id, their providers by name. `counted` are the targets system health looks at."""

    def __init__(self, gates: Iterable[Gate], connectivity: Connectivity, *, uncounted: Iterable[str] = ()) -> None:
        self.gates: dict[str, Gate] = {gate.id: gate for gate in gates}
        self.providers: dict[str, ProviderState] = {g.provider.name: g.provider for g in self.gates.values()}
        self.connectivity = connectivity
        self._uncounted = frozenset(uncounted)
        self._counted = self._count()

    def continue_from(self, before: GateRegistry, *, shared: bool) -> frozenset[str]:
        """Go on where another configuration's fleet is; the ids of the targets that are configured as they were there.

        For a reload: this fleet has admitted nothing yet, the one of before admits and settles until it is drained.
        Their gates are one from now on, unless the state is `shared` among processes: then each has its own, and what
        is not shared (slots, throttles) goes on. Whatever is configured otherwise begins anew.
        """
        for name, old in before.providers.items():
            if name in self.providers and old.origin == self.providers[name].origin:
                self.providers[name].take_load_of(old)
        unchanged = self._unchanged(before)
        if not shared:
            self._take_over(before, unchanged)
        for gate in self.gates.values():
            gate.resize()
        return frozenset(unchanged)

    def add(self, gate: Gate) -> None:
        """Count in the gate of a target that a wildcard has made."""
        name = gate.provider.name
        self.gates[gate.id] = gate
        self.providers.setdefault(name, gate.provider)
        self._counted = {**self._counted, name: (*self._counted.get(name, ()), gate)}

    def remove(self, target: str) -> None:
        """Forget the gate of a target; unknown ids are ignored."""
        gate = self.gates.pop(target, None)
        if gate is not None:
            name = gate.provider.name
            gate.provider.gates.pop(target, None)
            left = tuple(member for member in self._counted.get(name, ()) if member is not gate)
            self._counted = {**self._counted, name: left}

    def targets(self, provider: str | None) -> Iterable[str]:
        """The ids of a provider's gates, or of all. A gate of the provider's own name is a guard's, its only one."""
        if provider is None:
            return tuple(self.gates)
        known = self.providers.get(provider)
        found = () if known is None else tuple(target for target in known.gates if target in self.gates)
        return (*found, provider) if provider in self.gates else found

    def make_transports_due(self, now: float) -> None:
        """The first remote success after being offline: every OPEN transport breaker may probe at once."""
        for provider in self.providers.values():
            provider.transport.make_due(now)

    def open_ratio(self, now: float) -> float:
        """OPEN providers / enabled providers, 0 when nothing is enabled (routing.md section 8)."""
        enabled = is_open = 0
        for name, gates in self._counted.items():
            active = [gate for gate in gates if gate.enabled(now)]
            if active:
                enabled += 1
                is_open += self._provider_open(self.providers[name], active, now)
        return is_open / enabled if enabled else 0.0

    def least_remaining(self, now: float) -> float | None:
        """Seconds until the first OPEN provider of the fleet may be probed; None when nothing is OPEN."""
        dues = [
            breaker.open_until - now
            for gates in self._counted.values()
            for gate in gates
            for breaker in (gate.provider.transport, *gate.breakers.values())
            if breaker.open_until is not None and breaker.open_until > now
        ]
        return min(dues, default=None)

    def _count(self) -> Mapping[str, tuple[Gate, ...]]:
        return {name: members for name in self.providers if (members := self._members(name))}

    def _members(self, provider: str) -> tuple[Gate, ...]:
        return tuple(g for g in self.gates.values() if g.provider.name == provider and g.id not in self._uncounted)

    def _unchanged(self, before: GateRegistry) -> dict[str, Gate]:
        """The gates of before, as far as they are configured as ours, with the same others in each pool of limits."""
        found: dict[str, Gate] = {}
        pools: dict[RateLimitTracker, RateLimitTracker] = {}  # one to one, looked up from either side
        for gate_id, gate in self.gates.items():
            old = before.gates.get(gate_id)
            if (
                old is not None
                and gate.continues(old)
                and pools.setdefault(gate.limits, old.limits) is old.limits
                and pools.setdefault(old.limits, gate.limits) is gate.limits
            ):
                found[gate_id] = old
        return found

    def _take_over(self, before: GateRegistry, unchanged: Mapping[str, Gate]) -> None:
        """Put the parts of before in the place of ours."""
        ours = self.providers
        stay = {
            name: old
            for name, old in before.providers.items()
            if name in ours and old.origin == ours[name].origin and old.config == ours[name].config
        }
        if not stay:
            return
        alone, self.connectivity = self.connectivity, before.connectivity
        self.connectivity.go_on(alone.remotes, stay)
        for name, old in before.providers.items():
            if name not in stay:
                old.connectivity = alone
        pools = {self.gates[gate_id].limits: old.limits for gate_id, old in unchanged.items()}
        for name, old in stay.items():
            old.take_keys_of(ours[name])
        for gate in self.gates.values():
            gate.limits = pools.get(gate.limits, gate.limits)
            if gate.provider.name in stay:
                gate.move_to(stay[gate.provider.name])
            gate.provider.connectivity = self.connectivity
        self.providers = {**ours, **stay}
        self.gates = {**self.gates, **unchanged}
        for gate in self.gates.values():
            gate.provider.gates[gate.id] = gate
        self._counted = self._count()

    def _provider_open(self, provider: ProviderState, active: list[Gate], now: float) -> bool:
        cut_off = self.connectivity.offline and provider.remote
        return (
            cut_off or provider.transport.state(now) is BreakerState.OPEN or all(gate.is_open(now) for gate in active)
        )
