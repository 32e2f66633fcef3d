"""Keeps conversations on the one of several equal targets that has their prompt in its cache (routing.md section 2).

A key's two targets are those of its two highest hashes: no table, and the same in every process. Between those the one
that served the key last goes first, else the one with less to do.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from smart_model_router.core.selection.selector import Candidate, Load
from smart_model_router.domain.outcome import Usage

REMEMBERED = 10_000
"""Keys whose home is known; the one that was used longest ago is forgotten."""
_IN_USE = 60.0
"""Seconds for which a home that was used counts as load of its target."""
_TELLING_TOKENS = 512
"""A shorter prompt tells of the way to the provider, and not of its pace."""
_PACE_ALPHA = 0.2


def rendezvous(key: str, target: str) -> bytes:
    """The weight of a target for a key (highest random weight hashing): minimal movement when targets change."""
    return hashlib.blake2b(f"{key}\x00{target}".encode("utf-8", "surrogatepass"), digest_size=8).digest()


def of_key(key: str, home: str | None, candidates: Sequence[Candidate], load: Callable[[str], Load]) -> list[Candidate]:
    """The candidates for a key: of its two the home, else the less loaded one first, then the others by hash."""
    by_hash = sorted(candidates, key=lambda c: rendezvous(key, c.id), reverse=True)
    two = sorted(by_hash[:2], key=lambda c: (c.id != home, load(c.id)))
    return two + by_hash[2:]


@dataclass(frozen=True, slots=True)
class _Home:
    target: str
    cached: int
    """Tokens of the newest prompt that the provider had in its cache."""


class Homes:
    """The target that served each key last, and the cost of leaving it. Instants are monotonic seconds."""

    __slots__ = ("_homes", "_in_use", "_pace")

    def __init__(self) -> None:
        self._homes: OrderedDict[str, _Home] = OrderedDict()
        self._in_use: dict[str, OrderedDict[str, float]] = {}
        """By target: when each key that is at home there was used, in that order."""
        self._pace: dict[str, float] = {}
        """Seconds a token of a prompt takes that is not cached, by target."""

    def __len__(self) -> int:
        return len(self._homes)

    def of(self, key: str) -> str | None:
        """The target that served the key last; None when that is not known."""
        home = self._homes.get(key)
        return None if home is None else home.target

    def served(self, key: str, target: str, now: float, usage: Usage | None) -> None:
        """The target has answered a request of this key: it is the key's home now."""
        self._leave(key)
        self._homes[key] = _Home(target, 0 if usage is None else usage.cached_prompt_tokens)
        self._in_use.setdefault(target, OrderedDict())[key] = now
        if len(self._homes) > REMEMBERED:
            self._leave(next(iter(self._homes)))

    def in_use(self, target: str, now: float) -> int:
        """The number of keys that their home `target` served in the last minute."""
        used = self._in_use.get(target)
        while used and next(iter(used.values())) <= now - _IN_USE:
            used.popitem(last=False)
        return len(used) if used else 0

    def prefilled(self, target: str, seconds: float, usage: Usage) -> None:
        """First content came after `seconds`: so long took what was not cached of the prompt."""
        tokens = usage.prompt_tokens - usage.cached_prompt_tokens
        if tokens < _TELLING_TOKENS:
            return
        pace = seconds / tokens
        before = self._pace.get(target, pace)
        self._pace[target] = before + _PACE_ALPHA * (pace - before)

    def worth(self, key: str) -> float:
        """Seconds that the cache of the key's home saves its next request: it is worth so long a wait; 0 if unknown."""
        home = self._homes.get(key)
        return 0.0 if home is None else home.cached * self._pace.get(home.target, 0.0)

    def _leave(self, key: str) -> None:
        before = self._homes.pop(key, None)
        if before is not None:
            self._in_use[before.target].pop(key, None)
