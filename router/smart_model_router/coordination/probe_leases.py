"""One probe at a time in a fleet: its lease is asked for before a request probes, kept while it does, and let go."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from smart_model_router.coordination.local_probes import LocalProbes
from smart_model_router.coordination.shared_breakers import RENEW_SECONDS, SharedBreaker, SharedBreakers
from smart_model_router.coordination.store_health import POLL_SECONDS, StoreReachability
from smart_model_router.core.gate import Gate
from smart_model_router.core.lease import Lease
from smart_model_router.domain.ports import ProbeLocks, SharedState
from smart_model_router.domain.shared_state import LEASE_SECONDS, ClockReading, Deadline, SharedStateError, SharedView

if TYPE_CHECKING:
    from smart_model_router.coordination.local_router import LocalRouter

PROBE_SECONDS = 0.02
"""Seconds that a request waits for the answer whether the probe is its own."""


class ProbeLeases:
    """This router's claims. `heard` takes over the view that comes with a refused claim."""

    def __init__(
        self,
        state: LocalRouter,
        shared: SharedState,
        breakers: SharedBreakers,
        reach: StoreReachability,
        *,
        here: Callable[[], ClockReading],
        heard: Callable[[SharedView], None],
        locks: ProbeLocks | None = None,
    ) -> None:
        self._state = state
        self._shared = shared
        self._breakers = breakers
        self._reach = reach
        self._here = here
        self._heard = heard
        self.alone = LocalProbes(locks, breakers)
        self._holder = ""
        self._claims: dict[str, asyncio.Task[None]] = {}

    def begin(self, holder: str) -> None:
        """Ask in this name from now on; earlier claims belong to another loop, or process."""
        self._holder = self._breakers.holder = holder
        self.alone.forget()
        self.forget()

    def forget(self) -> None:
        """Drop the claims, which belong to another loop."""
        self._claims.clear()

    @property
    def asked(self) -> Iterable[asyncio.Task[None]]:
        """The claims that have no answer yet."""
        return [claim for claim in self._claims.values() if not claim.done()]

    async def may_probe(self, gate: Gate, lease: Lease) -> bool:
        """True when the probe that this lease is for is ours, and not another process's.

        Waits 20 ms at most. A question that is not answered by then goes on without the request, which is not to
        probe: when the probe is granted after all, the next request has it. When the store cannot answer, the
        processes of a machine decide alone.
        """
        entries = self._breakers.probed(gate, lease)
        if not entries:
            return True
        if not self._reach.reason:
            if self._granted(entries):
                return self._begins(lease, entries)
            provider = gate.provider.name
            claim = self._claims.get(provider)
            if claim is None or claim.done():
                claim = asyncio.get_running_loop().create_task(self._claim(entries))
                self._claims[provider] = claim
            await asyncio.wait({claim}, timeout=PROBE_SECONDS)
        if self._reach.reason:
            return lease.decides and self.alone.may_probe(lease, entries, self._state.clock.now())
        if self._granted(entries):
            return self._begins(lease, entries)
        until = self._state.clock.now() + POLL_SECONDS  # by then the poll has told whose it is
        for entry in entries:
            if not entry.breaker.is_closed:
                entry.breaker.probed_elsewhere(max(entry.breaker.elsewhere_until, until))
        return False

    def unused(self) -> bool:
        """True when a probe of ours is not being made, and its lease is due to be given back."""
        now = self._state.clock.now()
        return any(now >= entry.renew_at and not entry.breaker.probe_in_flight for entry in self._breakers.held)

    async def renew(self) -> None:
        """Keep the leases that are a third over, of the probes that still go on."""
        now = self._state.clock.now()
        due = [entry for entry in self._breakers.held if now >= entry.renew_at]
        for entry in due:
            entry.renew_at = now + RENEW_SECONDS
        until = Deadline.after(LEASE_SECONDS, self._here())
        rows = [replace(entry.held, until=until) for entry in due if entry.held and entry.breaker.probe_in_flight]
        for row in await self._shared.renew(rows) if rows else ():
            entry = self._breakers[row.key]
            entry.known = entry.held = row
            entry.until = now + LEASE_SECONDS

    def _begins(self, lease: Lease, entries: list[SharedBreaker]) -> bool:
        """True when the lease still has the probe that was granted; else the others have moved the breaker meanwhile.

        Then the next permit has the probe.
        """
        if lease.decides:
            self.alone.accompany(lease, entries, self._state.clock.now())
        return lease.decides

    def _granted(self, entries: list[SharedBreaker]) -> bool:
        now = self._state.clock.now()
        return all(entry.holds(now) for entry in entries)

    async def _claim(self, entries: list[SharedBreaker]) -> None:
        """Ask for the probes. Granted ones are in `held`; otherwise the view tells which process has them."""
        until = Deadline.after(LEASE_SECONDS, self._here())
        rows = [entry.row("half_open", until, self._holder) for entry in entries]
        with self._reach.patience():
            try:
                claim = await self._shared.claim(rows)
            except SharedStateError as error:
                self._reach.lose(error.reason)
                return
        now = self._state.clock.now()
        for row in claim.granted:
            entry = self._breakers[row.key]
            entry.known = entry.held = row
            entry.until = now + LEASE_SECONDS
            entry.renew_at = now + RENEW_SECONDS
            entry.breaker.probed_elsewhere(0.0)
        if claim.granted:
            self._state.pump(entries[0].provider)
        else:
            self._heard(claim.view)
