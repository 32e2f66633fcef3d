"""Resolves the references of a request: our kept answers take their place, for other things the maker is looked up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from smart_model_router.domain.body_encoding import LARGE_BYTES
from smart_model_router.domain.request import RouteRequest, peek
from smart_model_router.flow.off_loop import off_loop
from smart_model_router.flow.response_makers import not_found
from smart_model_router.wires import own_ids
from smart_model_router.wires.own_ids import response_of
from smart_model_router.wires.values import decode_any, items, mapping, text

if TYPE_CHECKING:
    from smart_model_router.domain.shared_state import KeptResponse
    from smart_model_router.flow.kept_responses import KeptResponses
    from smart_model_router.flow.state import RouterState


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
