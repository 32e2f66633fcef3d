"""The IETF draft's headers: RateLimit and RateLimit-Policy, structured fields with q (quota), w (window), r, t.

Source: draft-ietf-httpapi-ratelimit-headers. Retry-After wins over them; a member that is malformed is ignored.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from smart_model_router.domain.outcome import BucketReading
from smart_model_router_providers.signals.fields import whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from smart_model_router_providers.signals.fields import Fields

_LONGEST = 2048
_MEMBER = re.compile(r'\s*(?:"([^"\\]{1,64})"|([A-Za-z*][\w*.:/-]{0,63}))((?:\s*;\s*[a-z]{1,16}=[^;,]{1,32})*)\s*')
_PARAMETER = re.compile(r";\s*([a-z]{1,16})=([^;,\s]{1,32})")


def read(fields: Fields) -> list[BucketReading]:
    """A bucket for each name of RateLimit, with the quota and window of its policy when there is one."""
    policies = dict(_members(fields, "ratelimit-policy"))
    found: list[BucketReading] = []
    for name, said in _members(fields, "ratelimit"):
        remaining, reset = whole(said.get("r", "")), whole(said.get("t", ""))
        fields.rejected += (remaining is None and "r" in said) + (reset is None and "t" in said)
        policy = policies.get(name, {})
        limit, window = whole(policy.get("q", ""), least=1), whole(policy.get("w", ""), least=1)
        if remaining is not None or reset is not None:
            found.append(BucketReading(name, limit, remaining, _seconds(reset), _seconds(window)))
    return found


def _seconds(number: int | None) -> float | None:
    return None if number is None else float(number)


def _members(fields: Fields, header: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """The members of a structured list of strings or tokens with parameters."""
    text = fields.headers.get(header)
    if text is None:
        return
    if len(text) > _LONGEST:
        fields.rejected += 1
        return
    for part in text.split(","):
        member = _MEMBER.fullmatch(part)
        if member is None:
            fields.rejected += 1
        else:
            yield member[1] or member[2], dict(_PARAMETER.findall(member[3]))
