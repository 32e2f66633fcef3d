"""The fleet: every gate of a router, and what they say together (system health, being offline)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from smart_model_router.core.breaker import BreakerState
from smart_model_router.core.gate import Gate, ProviderState
from smart_model_router.core.offline import Connectivity


class Fleet:
    """All targets' gates by id, their providers by name. `counted` are the targets system health looks at."""

    def __init__(self, gates: Iterable[Gate], connectivity: Connectivity, *, uncounted: Iterable[str] = ()) -> None:
        self.gates: dict[str, Gate] = {gate.id: gate for gate in gates}
        self.providers: dict[str, ProviderState] = {g.provider.name: g.provider for g in self.gates.values()}
        self.connectivity = connectivity
        leave_out = frozenset(uncounted)
        self._counted: Mapping[str, tuple[Gate, ...]] = {
            name: members for name in self.providers if (members := self._members(name, leave_out))
        }

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

    def _members(self, provider: str, leave_out: frozenset[str]) -> tuple[Gate, ...]:
        return tuple(g for g in self.gates.values() if g.provider.name == provider and g.id not in leave_out)

    def _provider_open(self, provider: ProviderState, active: list[Gate], now: float) -> bool:
        cut_off = self.connectivity.offline and provider.remote
        return (
            cut_off or provider.transport.state(now) is BreakerState.OPEN or all(gate.is_open(now) for gate in active)
        )
