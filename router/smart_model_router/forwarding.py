"""Headers of a caller that go on to the provider: which, and how they must look."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from types import MappingProxyType

IDEMPOTENCY_KEY = "idempotency-key"

FORWARDED: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        "traceparent": re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"),
        "tracestate": re.compile(r"[\x20-\x7e]{1,512}"),
        IDEMPOTENCY_KEY: re.compile(r"[\x21-\x7e]{1,255}"),
    }
)
"""Header -> its form. Source: W3C Trace Context, sections 3.2 and 3.3; IETF draft "Idempotency-Key" (its length is
ours). All else that a client sends ends here: keys and cookies are no provider's business."""

_MARK_DIGITS = 12


def readable(headers: Mapping[str, str]) -> dict[str, str]:
    """Those of `headers` (lower-case names) that go on; what is malformed is as if it had not come."""
    found = {
        name: headers[name] for name, form in FORWARDED.items() if name in headers and form.fullmatch(headers[name])
    }
    if "traceparent" not in found:
        found.pop("tracestate", None)  # says nothing alone (section 3.3)
    return found


def sent_to(target: str, first: str, headers: Mapping[str, str]) -> Mapping[str, str]:
    """What `target` gets when `first` was asked before it (or is the same).

    A key stands for one body at one place: a further target gets a key of its own, always the same one, or a provider
    of both would take its request for a forged repetition of the first.
    """
    if target == first or IDEMPOTENCY_KEY not in headers:
        return headers
    mark = hashlib.sha256(target.encode()).hexdigest()[:_MARK_DIGITS]
    return {**headers, IDEMPOTENCY_KEY: f"{headers[IDEMPOTENCY_KEY]}-{mark}"}
