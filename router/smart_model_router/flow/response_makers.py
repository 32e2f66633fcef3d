"""The makers of things that are kept at providers: answers and their items, conversations, containers.

A maker is known in this process at once, in every process of the host within a quarter of a second, and after a
restart.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from smart_model_router.domain.errors import NotFound
from smart_model_router.domain.request import RouteRequest, Target
from smart_model_router.domain.shared_state import MakerRow

if TYPE_CHECKING:
    from smart_model_router.flow.state import RouterState

REMEMBERED = 10_000
LOOKS = (0.0, 0.1, 0.2)
"""Pauses, in seconds, before each look for a thing that is not found: its maker's process tells of it meanwhile."""
AGAIN = 5.0
"""Seconds until a thing that was not found is looked for again, once: its maker's process could not write till then."""
_LONGEST = 256
"""Characters. No provider's id is longer."""
_AT_ONCE = 500
"""The number of things in one look-up: other processes ask the same file meanwhile."""
_FILES = "file"
"""The beginning of the ids of uploaded files. No answer makes one: there is nothing to look for."""


@dataclass(frozen=True, slots=True)
class Made:
    """The target that made a thing (None where it is not configured here), and the owner it was made for."""

    target: Target | None
    owner: str


class ResponseMakers:
    """By the ids of things; the oldest are forgotten. Not thread-safe: it belongs to the router's loop."""

    def __init__(self, state: RouterState) -> None:
        self._state = state
        self._known: dict[str, Made] = {}
        self._untold: dict[bytes, MakerRow] = {}
        self._sought: dict[str, float] = {}
        """By thing, the instant of the last look that did not find it."""

    def continue_from(self, before: ResponseMakers) -> None:
        """Take over the makers of the router that this one replaces."""
        self._known, self._untold, self._sought = before._known, before._untold, before._sought

    def of(self, thing: str) -> Target | None:
        """The target that made it."""
        made = self._known.get(thing)
        return None if made is None else made.target

    def note(self, target: Target, owner: str, made: Iterable[str]) -> None:
        """Note the maker of things in an answer (or an event of one) that later requests may refer to."""
        things = [thing for thing in made if self.of(thing) is None]
        if not things:
            return
        for thing in things:
            self._keep(thing, Made(target, owner))
        coordinator = self._state.coordinator
        name = None if coordinator is None else coordinator.name_of(target.id)
        if coordinator is None or name is None:
            return
        for thing in things:
            digest = _digest(thing)
            self._untold[digest] = MakerRow(thing=digest, target=name, owner=owner, at=self._state.wall())
        _bound(self._untold)
        coordinator.pressed()

    def forget(self, thing: str) -> None:
        """Forget a thing that was deleted where it was kept; other processes find out from there."""
        self._known.pop(thing, None)

    def take(self) -> tuple[MakerRow, ...]:
        """Take the rows to write for other processes."""
        rows = tuple(self._untold.values())
        self._untold.clear()
        return rows

    def keep(self, rows: Iterable[MakerRow]) -> None:
        """Take rows back that could not be written."""
        kept = {row.thing: row for row in rows}
        newer = dict(self._untold)
        self._untold.clear()
        self._untold.update(kept | newer)
        _bound(self._untold)

    async def look_up(self, request: RouteRequest) -> None:
        """Find the makers of the things that the request refers to. Raises NotFound for those of another owner."""
        sought = (thing for thing in request.state_ids if len(thing) <= _LONGEST and not thing.startswith(_FILES))
        await self._find(sought)
        for thing in request.state_ids:
            made = self._known.get(thing)
            if made is not None and made.target is not None and made.owner != request.owner:
                raise not_found(thing)

    async def _find(self, things: Iterable[str]) -> None:
        coordinator = self._state.coordinator
        now, sought_at = self._state.clock.now(), self._sought
        missing = {
            _digest(thing): thing
            for thing in things
            if thing not in self._known and (thing not in sought_at or now >= sought_at[thing] + AGAIN)
        }
        if coordinator is None or not missing:
            return
        is_new = any(thing not in sought_at for thing in missing.values())
        for pause in LOOKS if is_new else LOOKS[:1]:
            if pause:
                await self._state.clock.sleep(pause)
            sought = tuple(missing)
            for at in range(0, len(sought), _AT_ONCE):
                rows = await coordinator.makers(sought[at : at + _AT_ONCE])
                if rows is None:
                    return
                for row in rows:
                    thing = missing.pop(row.thing)
                    self._keep(thing, Made(coordinator.target_named(row.target), row.owner))
            if not missing:
                return
        for thing in missing.values():
            sought_at.pop(thing, None)
            sought_at[thing] = now
        _bound(sought_at)

    def _keep(self, thing: str, made: Made) -> None:
        self._known[thing] = made
        _bound(self._known)


def not_found(thing: str) -> NotFound:
    """The error for a thing that is not there for this owner: whether it is there for another one is not said."""
    return NotFound(f"{thing[:100]!r} was not found: no such response or item is kept for this key")


def _digest(thing: str) -> bytes:
    return hashlib.sha256(thing.encode("utf-8", "surrogatepass")).digest()


def _bound(things: dict[Any, Any]) -> None:
    while len(things) > REMEMBERED:
        del things[next(iter(things))]
