"""The header families by the names of the catalog: the reader of the headers, and the way limits refill."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from smart_model_router.domain.outcome import NO_READING, LimitReading
from smart_model_router_providers.catalog import KINDS, HeaderFamily
from smart_model_router_providers.signals import (
    anthropic,
    azure,
    cerebras,
    groq,
    ietf,
    mistral,
    openai,
    openrouter,
)
from smart_model_router_providers.signals.fields import Fields

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from smart_model_router.domain.outcome import BucketReading

Refill = Literal["continuous", "window"]


@dataclass(frozen=True, slots=True)
class Family:
    """One way of speaking about limits.

    `refill` is what is believed until a provider's answers show otherwise. `clock_minutes`: a window ends when the
    minute of the wall clock does, and a refusal says nothing of it.
    """

    read: Callable[[Fields], list[BucketReading]]
    refill: Refill = "continuous"
    clock_minutes: bool = False


def _nothing(fields: Fields) -> list[BucketReading]:  # noqa: ARG001 - the shape of a family's reader
    return []


_SPOKEN_BY_SOMEBODY = (azure.read, anthropic.read, cerebras.read, mistral.read, openrouter.read, ietf.read)
"""In the order in which an unknown provider is believed to speak them; azure's names include OpenAI's."""


def _any(fields: Fields) -> list[BucketReading]:
    """Whatever an unknown provider speaks: the first family that finds something."""
    if "ratelimit" in "\n".join(fields.headers):  # in any of the names
        for read in _SPOKEN_BY_SOMEBODY:
            if found := read(fields):
                return found
    return []


FAMILIES: Mapping[HeaderFamily, Family] = MappingProxyType(
    {
        "openai": Family(openai.read),
        "azure": Family(azure.read),
        "github": Family(azure.read, "window"),
        "groq": Family(groq.read),
        "anthropic": Family(anthropic.read),
        "mistral": Family(mistral.read, "window", clock_minutes=True),
        "cerebras": Family(cerebras.read, "window"),
        "openrouter": Family(openrouter.read, "window"),
        "ietf": Family(ietf.read),
        "any": Family(_any),
        "none": Family(_nothing),
    }
)


@lru_cache(maxsize=64)
def family_of(kind: str) -> Family:
    """The family a provider of this kind speaks; none for an unknown kind."""
    row = KINDS.get(kind)
    return FAMILIES["none" if row is None else row.header_family]


def read_limits(kind: str, headers: Mapping[str, str]) -> LimitReading:
    """Read the buckets of a provider of this kind from an answer's headers (lower-case names). Never raises."""
    fields = Fields(headers)
    buckets = family_of(kind).read(fields)
    return LimitReading(tuple(buckets), fields.rejected) if buckets or fields.rejected else NO_READING
