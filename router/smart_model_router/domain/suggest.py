"""Did you mean: the known word nearest to an unknown one."""

from __future__ import annotations

from collections.abc import Iterable


def unknown_model(name: str, known: Iterable[str]) -> str:
    """The message about a model that `known`, the names that its caller may use, do not have."""
    return f"model: {name[:100]!r} is unknown; {did_you_mean(name, known)}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`did you mean 'x'?` when a known word is near, else the known words; empty when there are none."""
    from difflib import get_close_matches  # noqa: PLC0415 - paid for by mistakes only

    words = list(known)
    lowered = {candidate.lower(): candidate for candidate in words}
    near = get_close_matches(word.lower()[:100], lowered, n=1, cutoff=0.6)
    if near:
        return f"did you mean {lowered[near[0]]!r}?"
    shown = ", ".join(sorted(words)[:20])
    return f"known: {shown}" + (", ..." if len(words) > 20 else "") if words else ""
