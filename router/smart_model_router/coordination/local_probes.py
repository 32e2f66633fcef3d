"""Probes while no server can be asked: one at a time at a provider on this machine, and one an open time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from smart_model_router.coordination.shared_breakers import SAME, SharedBreaker, SharedBreakers
from smart_model_router.coordination.store_health import POLL_SECONDS
from smart_model_router.core.lease import Lease
from smart_model_router.domain.ports import ProbeLocks
from smart_model_router.domain.shared_state import LEASE_SECONDS, KeptOpen


@dataclass(slots=True)
class _Held:
    """A lock of ours: until when breakers are open by what others left there, and what is probed under it."""

    until: dict[str, tuple[float, int]]
    entries: list[SharedBreaker] = field(default_factory=list)
    calls: list[Lease] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        """True when no call is a probe any more. One whose verdict does not count is under way all the same."""
        return all(call.settled or not call.probes_breaker for call in self.calls)


class LocalProbes:
    """This process's part. Without `locks` it takes every probe. Not thread-safe: it belongs to the router's loop."""

    def __init__(self, locks: ProbeLocks | None, breakers: SharedBreakers) -> None:
        self._locks = locks
        self._breakers = breakers
        self._held: dict[str, _Held] = {}
        self._refused: dict[str, float] = {}
        """When each provider's lock was first refused since this process had it last."""

    def begin(self) -> None:
        """From now on no server can be asked: what was refused when none could before says nothing now."""
        self._refused.clear()

    def forget(self) -> None:
        """Drop what belongs to the process that forked this one."""
        self._held.clear()
        self.begin()
        if self._locks is not None:
            self._locks.forget()

    def may_probe(self, call: Lease, entries: Sequence[SharedBreaker], now: float) -> bool:
        """True when this call may probe these breakers, all of one provider.

        The open time that another process's probe ended with holds here as well. A process that has the lock for longer
        than a lease lasts may have been stopped: it keeps no other one from probing.
        """
        if self._locks is None:
            return True
        self.settle(now)
        provider = entries[0].provider
        if provider not in self._held:
            if not self._locks.take(provider):
                if now - self._refused.setdefault(provider, now) > LEASE_SECONDS:
                    return True
                for entry in entries:
                    if not entry.breaker.is_closed:
                        entry.breaker.probed_elsewhere(now + POLL_SECONDS)
                return False
            self._refused.pop(provider, None)
            left = self._locks.left(provider)
            self._held[provider] = _Held({name: (now + told.seconds, told.step) for name, told in left.items()})
        held = self._held[provider]
        longer = [entry for entry in entries if held.until.get(entry.name, (0.0, 0))[0] > entry.due_at + SAME]
        for entry in longer:
            self._breakers.adopt(entry, *held.until[entry.name], now)
        if not longer:
            held.entries.extend(entries)
            held.calls.append(call)
        self.settle(now)
        return not longer

    def accompany(self, call: Lease, entries: Sequence[SharedBreaker], now: float) -> None:
        """Take the lock for a probe that the server granted, where it is free.

        The processes of this machine may be cut off while it is under way: they find the lock, and the open time.
        """
        self.settle(now)
        provider = entries[0].provider
        if self._locks is None or provider in self._held or not self._locks.take(provider):
            return
        self._held[provider] = _Held({}, list(entries), [call])

    def settle(self, now: float, *, ending: bool = False) -> None:
        """Give the locks of probes that are over back; `ending`: all of them."""
        for provider, held in list(self._held.items()):
            if not (held.is_over or ending):
                continue
            until = held.until | {entry.name: (entry.due_at, entry.breaker.backoff_index) for entry in held.entries}
            left = {name: KeptOpen(at - now, step) for name, (at, step) in until.items() if at > now}
            if self._locks is not None:
                self._locks.let_go(provider, left)
            del self._held[provider]
