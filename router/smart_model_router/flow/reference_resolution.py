"""References of requests to things that are kept: answers of ours take their place, of others the maker is looked up.

A maker is known in this process at once, in every process of the host within a quarter of a second, and after a
restart.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from smart_model_router.domain.body_encoding import LARGE_BYTES
from smart_model_router.domain.errors import NotFound
from smart_model_router.domain.request import RouteRequest, Target, peek
from smart_model_router.domain.shared_state import MakerRow
from smart_model_router.flow.off_loop import off_loop
from smart_model_router.wires import own_ids
from smart_model_router.wires.own_ids import response_of
from smart_model_router.wires.values import decode_any, items, mapping, text

if TYPE_CHECKING:
    from smart_model_router.domain.shared_state import KeptResponse
    from smart_model_router.flow.kept_responses import KeptResponses
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


@dataclass(frozen=True, slots=True)
class ResolvedRequest:
    """A request with its references resolved, its own items among that, and the kept answer that it continues."""

    request: RouteRequest
    own: tuple[Any, ...] | None = None
    parent: str | None = None

    def items(self) -> Iterable[Any]:
        """The request's own items."""
        return self.own if self.own is not None else own_ids.own_items(_plain(self.request), {})


async def resolve(state: RouterState, request: RouteRequest) -> ResolvedRequest:
    """Put kept answers in the place of references to them, and find the makers of the other things.

    Raises NotFound, and RouterUnavailable while kept answers are out of reach.
    """
    asked = ResolvedRequest(request)
    ours = {thing: found for thing in request.state_ids if (found := response_of(thing)) is not None}
    if ours:
        if state.kept is None:
            raise not_found(min(ours))
        asked = await _with_kept(state.kept, request, ours)
    await state.makers.look_up(asked.request)
    return asked


async def _with_kept(kept: KeptResponses, request: RouteRequest, ours: dict[str, str]) -> ResolvedRequest:
    previous = text(request.body.get(own_ids.PREVIOUS))
    parent = previous if previous in ours else None
    chain = [] if parent is None else await kept.chain(parent, request.owner)
    read = {row.id: row for row in chain}
    answers = sorted({response for thing, response in ours.items() if thing != parent})
    others = [read.get(response) or await kept.answer(response, request.owner) for response in answers]

    size = request.prompt_bytes + sum(row.size for row in (*chain, *others))
    large = size > LARGE_BYTES

    def resolved() -> ResolvedRequest:
        return _in_place(request, ours, parent, chain, others, large=large)

    return await off_loop(resolved, size) if large else resolved()


def _in_place(
    request: RouteRequest,
    ours: Iterable[str],
    parent: str | None,
    chain: Sequence[KeptResponse],
    others: Iterable[KeptResponse],
    *,
    large: bool,
) -> ResolvedRequest:
    """The request after `chain` (the newest answer first), items of `others` in the place of references to them."""
    history: list[Any] = []
    for row in reversed(chain):
        history += [*items(decode_any(row.input)), *_items_of(row).values()]
    found: dict[str, dict[str, Any]] = {}
    for row in others:
        found |= _items_of(row)
    if missing := set(ours) - found.keys() - {parent}:
        raise not_found(min(missing))
    body = _plain(request)
    own = own_ids.own_items(body, found)
    made = peek(request.dialect, own_ids.after(body, history, own), stream=request.stream, large=large)
    resolved = replace(
        request,
        body=made.body,
        before=made.before,
        after=made.after,
        needs=made.needs,
        state_ids=made.state_ids,
        text_bytes=made.text_bytes,
        media=made.media,
    )
    return ResolvedRequest(resolved, tuple(own), parent)


def _items_of(row: KeptResponse) -> dict[str, dict[str, Any]]:
    return own_ids.items_of(mapping(decode_any(row.answer)))


def _plain(request: RouteRequest) -> dict[str, Any]:
    """The body as plain JSON values, whatever mapping it was."""
    return dict(mapping(decode_any(request.payload(request.model))))
