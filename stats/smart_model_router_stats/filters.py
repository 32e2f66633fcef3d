"""The rules for samples of the statistics, shared by the book in memory and the stores."""

from __future__ import annotations

from smart_model_router.domain.outcome import POLICIES, BreakerCount, Usage

COUNTED = frozenset(
    failure for failure, policy in POLICIES.items() if policy.breaker in {BreakerCount.YES, BreakerCount.PROVIDER}
)
"""The failures that say something about the target's health; the others are in the counters only."""

_MOST_TOKENS = 1_000_000_000
"""Providers report usage themselves: a call of more tokens than this is a mistake, and left out."""


def plausible(usage: Usage) -> bool:
    """True when a provider's own count of tokens is plausible."""
    return 0 <= usage.prompt_tokens <= _MOST_TOKENS and 0 <= usage.completion_tokens <= _MOST_TOKENS


def cached_of(usage: Usage) -> int:
    """The cached part of a plausible prompt. A count that cannot be true costs no other figure: it is cut to fit."""
    return max(0, min(usage.cached_prompt_tokens, usage.prompt_tokens))
