"""Ids of our own for answers that were translated, and the items that a request refers to by them.

`resp_smr` and 32 characters: 12 random bytes, 4 that mark the target, and 8 of a MAC over both and the owner. The ids
of an answer's items repeat the 32 characters: `msg_smr..._0`.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from smart_model_router.domain.request import is_reference
from smart_model_router.wires.values import is_object, items, mapping, text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NONCE_BYTES = 12
_MARK_BYTES = 4
_MAC_BYTES = 8
_OURS = re.compile(r"[a-z]+_(smr[\w-]{32})(?:_\d{1,9})?", re.ASCII)
_PREFIX = "resp_"


def issue(nonce: bytes, target: str, owner: str, secret: bytes) -> str:
    """An id for an answer of `target` to `owner`. `nonce` is NONCE_BYTES of chance."""
    carried = nonce + _mark(target)
    token = base64.urlsafe_b64encode(carried + _mac(carried, owner, secret)).decode()
    return f"{_PREFIX}smr{token}"


def item_id(prefix: str, response: str, index: int) -> str:
    """The id of an answer's item: `prefix` says of which kind it is."""
    return f"{prefix}_{response.removeprefix(_PREFIX)}_{index}"


def response_of(thing: str) -> str | None:
    """The answer that an id belongs to, its own or that of an item, if it has the form of ours."""
    found = _OURS.fullmatch(thing)
    return None if found is None else _PREFIX + found[1]


def is_issued(response: str, owner: str, secret: bytes) -> bool:
    """Return whether an id of our form was issued to `owner` under this secret."""
    carried, mac = _read(response)
    return hmac.compare_digest(_mac(carried, owner, secret), mac)


def target_of(response: str, targets: Iterable[str]) -> str | None:
    """The one of `targets` that an id of our form carries."""
    mark = _read(response)[0][NONCE_BYTES:]
    return next((target for target in targets if _mark(target) == mark), None)


def _read(response: str) -> tuple[bytes, bytes]:
    raw = base64.urlsafe_b64decode(response.removeprefix(f"{_PREFIX}smr"))
    return raw[:-_MAC_BYTES], raw[-_MAC_BYTES:]


def _mark(target: str) -> bytes:
    return hashlib.sha256(target.encode()).digest()[:_MARK_BYTES]


def _mac(carried: bytes, owner: str, secret: bytes) -> bytes:
    return hmac.digest(secret, carried + owner.encode(), "sha256")[:_MAC_BYTES]


PREVIOUS = "previous_response_id"


def own_items(body: Mapping[str, Any], found: Mapping[str, Mapping[str, Any]]) -> list[Any]:
    """The items of a request's own input; those in `found` in the place of the references to them."""
    asked = body.get("input")
    if isinstance(asked, str):
        return [{"type": "message", "role": "user", "content": asked}]
    return [found.get(text(item.get("id")), item) if _refers(item) else item for item in items(asked)]


def after(body: Mapping[str, Any], history: Sequence[Any], own: Sequence[Any]) -> dict[str, Any]:
    """The request with all that it goes on from in its input, and no reference to an answer of ours."""
    rest = {key: value for key, value in body.items() if key != PREVIOUS or response_of(text(value)) is None}
    return {**rest, "input": [*history, *own]}


def items_of(answer: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The items of an answer of ours by their ids, as they go into a request: without those, which only we know."""
    return {
        text(item.get("id")): {key: value for key, value in item.items() if key not in ("id", "status")}
        for item in map(mapping, items(answer.get("output")))
    }


def _refers(item: object) -> bool:
    return is_object(item) and is_reference(item)
