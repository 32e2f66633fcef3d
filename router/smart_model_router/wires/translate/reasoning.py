"""Reasoning and its signatures, carried through dialects that have no word for them and given back to their maker.

In Chat a thought is `reasoning_content` (its text) and `reasoning_details` (the thought with its signature or its
encrypted form, as OpenRouter writes them). Where a dialect has one opaque string only - a signature in Messages,
`encrypted_content` in Responses - the details are sealed into it with the name of the family they belong to. A seal is
no secret and proves nothing; it is only recognised again.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any

from smart_model_router.wires.values import decode_object, dumps, is_object, items, mapping, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_model_router.wires.translate.translation import Losses

SEAL = "smr1."
ANTHROPIC = "anthropic-claude-v1"
OPENAI = "openai-responses-v1"
"""OpenRouter's names of the two forms."""

FIELDS = frozenset(("reasoning_content", "reasoning", "reasoning_details"))
"""Where a Chat message or delta holds reasoning."""

_FOREIGN = "dropped, it is signed or encrypted for another provider"


def seal(family: str, details: list[Any]) -> str:
    """An opaque string that holds `details`."""
    return (
        SEAL
        + base64.urlsafe_b64encode(
            dumps({"family": family, "details": details}).encode(errors="backslashreplace")
        ).decode()
    )


def unseal(value: object, family: str) -> list[dict[str, Any]] | None:
    """The details in a seal made for `family`; None for anything else."""
    if not is_sealed(value):
        return None
    try:
        held = decode_object(base64.urlsafe_b64decode(text(value)[len(SEAL) :]))
    except (binascii.Error, ValueError):
        return None
    if held is None or held.get("family") != family:
        return None
    return [detail for detail in items(held.get("details")) if is_object(detail)]


def is_sealed(value: object) -> bool:
    """Return whether a string is one of our seals, for any family."""
    return isinstance(value, str) and value.startswith(SEAL)


def text_of(message: Mapping[str, Any]) -> str:
    """The reasoning that a Chat message or delta shows, in whichever field the provider uses."""
    return text(message.get("reasoning_content")) or text(message.get("reasoning"))


def signed_detail(thought: str, signature: str, index: int) -> dict[str, Any]:
    """Messages' thinking block as a detail."""
    return {"type": "reasoning.text", "format": ANTHROPIC, "index": index, "text": thought, "signature": signature}


def encrypted_detail(data: str, index: int, form: str = ANTHROPIC, **more: str) -> dict[str, Any]:
    """A redacted thinking block, or an encrypted reasoning item, as a detail."""
    return {"type": "reasoning.encrypted", "format": form, "index": index, "data": data, **more}


def thinking_blocks(message: Mapping[str, Any], losses: Losses) -> list[dict[str, Any]]:
    """Messages' thinking blocks of a Chat message: those it signed. Unsigned reasoning would be rejected there."""
    blocks: list[dict[str, Any]] = []
    for detail in map(mapping, items(message.get("reasoning_details"))):
        if detail.get("format") != ANTHROPIC:
            losses.drop("reasoning", _FOREIGN)
        elif detail.get("type") == "reasoning.encrypted" and text(detail.get("data")):
            blocks.append({"type": "redacted_thinking", "data": detail["data"]})
        elif text(detail.get("signature")):
            blocks.append({"type": "thinking", "thinking": text(detail.get("text")), "signature": detail["signature"]})
        else:
            losses.drop("reasoning", _FOREIGN)
    if not blocks and text_of(message):
        losses.drop("reasoning", _FOREIGN)
    return blocks


def reasoning_items(message: Mapping[str, Any], losses: Losses) -> list[dict[str, Any]]:
    """Responses' encrypted reasoning items of a Chat message: those it encrypted."""
    out: list[dict[str, Any]] = []
    for detail in map(mapping, items(message.get("reasoning_details"))):
        if detail.get("format") == OPENAI and text(detail.get("data")):
            named = {"id": detail["id"]} if text(detail.get("id")) else {}
            out.append({"type": "reasoning", **named, "summary": [], "encrypted_content": detail["data"]})
        else:
            losses.drop("reasoning", _FOREIGN)
    if not out and text_of(message):
        losses.drop("reasoning", _FOREIGN)
    return out


def unsealed_fields(thoughts: list[tuple[str, object]], family: str, losses: Losses) -> dict[str, Any]:
    """The reasoning fields of a Chat message made of (text, opaque string) pairs: those that were sealed for it."""
    shown: list[str] = []
    details: list[dict[str, Any]] = []
    for thought, opaque in thoughts:
        held = unseal(opaque, family)
        if held is None:
            losses.drop("reasoning", _FOREIGN)
            continue
        shown.append(thought)
        details += held
    out: dict[str, Any] = {}
    if "".join(shown):
        out["reasoning_content"] = "".join(shown)
    if details:
        out["reasoning_details"] = details
    return out


def merged(details: list[dict[str, Any]], arrived: list[Any]) -> list[dict[str, Any]]:
    """The details of a stream so far: pieces of one (same type and index) are joined, the newest other field counts."""
    for detail in map(mapping, arrived):
        known = next((one for one in details if _same(one, detail)), None)
        if known is None:
            details.append(dict(detail))
            continue
        for key, value in detail.items():
            known[key] = text(known.get(key)) + value if key in _PIECES and isinstance(value, str) else value
    return details


_PIECES = ("text", "summary", "data")


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    index = other.get("index")
    return index is not None and one.get("index") == index and one.get("type") == other.get("type")
