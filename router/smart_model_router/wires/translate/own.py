"""Our own seals in a body that goes out as it came: the provider would reject a signature it never made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smart_model_router.wires.translate.citations import SEARCH_ID
from smart_model_router.wires.translate.reasoning import SEAL, is_sealed
from smart_model_router.wires.values import is_list, is_object, items, mapping, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_model_router.domain.request import Dialect

_MARKS = (b'"' + SEAL.encode(), b'"' + SEARCH_ID.encode())
_SEALING: frozenset[Dialect] = frozenset({"messages", "responses"})
SEALED = "reasoning: dropped, it is signed or encrypted for another provider"


def holds_seals(dialect: Dialect, *written: bytes) -> bool:
    """Whether a body (in pieces, as JSON) may hold one: a search of bytes, for every request."""
    return dialect in _SEALING and any(mark in piece for piece in written for mark in _MARKS)


def without_seals(dialect: Dialect, body: Mapping[str, Any]) -> dict[str, Any]:
    """The body without the reasoning that other providers did."""
    if dialect == "responses":
        kept = [item for item in items(body.get("input")) if not is_sealed(mapping(item).get("encrypted_content"))]
        return {**body, "input": kept}
    return {**body, "messages": [one for message in items(body.get("messages")) for one in _cleaned(message)]}


def _cleaned(message: Any) -> list[Any]:
    """The message without seals; nothing when there was nothing else in it, which Messages would reject."""
    content = mapping(message).get("content")
    if not is_object(message) or not is_list(content):
        return [message]
    kept = [_uncited(block) for block in content if not _is_ours(mapping(block))]
    return [{**message, "content": kept}] if kept or not content else []


def _is_ours(block: Mapping[str, Any]) -> bool:
    """Whether a block was made by us: a thought of another provider, or a search that it made."""
    made = text(block.get("id")) or text(block.get("tool_use_id"))
    return is_sealed(block.get("signature")) or made.startswith(SEARCH_ID)


def _uncited(block: Any) -> Any:
    """The block without citations of another provider: Messages signs the places of its own."""
    citations = items(mapping(block).get("citations"))
    kept = [one for one in citations if not is_sealed(mapping(one).get("encrypted_index"))]
    if len(kept) == len(citations):
        return block
    return {
        **{key: value for key, value in block.items() if key != "citations"},
        **({"citations": kept} if kept else {}),
    }
