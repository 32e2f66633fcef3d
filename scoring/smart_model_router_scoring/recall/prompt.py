"""The prompt that asks a model to answer from memories: plain, with notes first, or with a hint about time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING

from smart_model_router_scoring.recall.sort import age_rank
from smart_model_router_scoring.times import epoch_seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from smart_model_router_scoring.recall.memory import Hit, Timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptOptions:
    """Which form the prompt has."""

    chain_of_note: bool = False
    """Ask for a note on each memory before the answer."""
    temporal_answer_hint: bool = False
    """Show the memories oldest first, with scores, and say what to do about conflicts and about doubts."""


PRESETS: Mapping[str, PromptOptions] = MappingProxyType(
    {
        "plain": PromptOptions(),
        "chain-of-note": PromptOptions(chain_of_note=True),
        "temporal-answer": PromptOptions(temporal_answer_hint=True),
    }
)

_TASK = "Answer the question with what the memories below say."
_NOTES = (
    "First write one short note for each memory: what it has to do with the question, or that it has nothing to do "
    "with it. Then answer from your notes."
)
_TEMPORAL = (
    "The memories stand in the order of time, the oldest first; the score says how well each fits the question.\n"
    "Where memories contradict each other, the most recent one holds, unless the question is about an earlier time.\n"
    "Go through every memory once more before you say that you do not know: the answer is often there in other words, "
    "or in two memories together. If it is really not there, say so."
)
_ABSTAIN = 'If the memories do not hold the answer, say "I don\'t know".'
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def answer_prompt(
    question: str, hits: Sequence[Hit], options: PromptOptions = PRESETS["plain"], *, asked_at: Timestamp = None
) -> str:
    """The prompt. Without `temporal_answer_hint` the memories stand as given and nothing in it speaks of time.

    `asked_at`, if there is one, is when the question is asked. A memory without a time is `undated`, and in the order
    of time stands first.
    """
    hint = options.temporal_answer_hint
    shown = sorted(hits, key=lambda hit: age_rank(hit.memory.timestamp)) if hint else hits
    told = [_TASK]
    if options.chain_of_note:
        told.append(_NOTES)
    if hint:
        told.append(_TEMPORAL)
    told.append(_ABSTAIN)
    lines = [
        f"[{number}] ({_date(hit.memory.timestamp)}{f', score {hit.score:.3f}' if hint else ''}) {hit.memory.content}"
        for number, hit in enumerate(shown, start=1)
    ]
    asked = "" if asked_at is None else f"Asked at: {_date(asked_at)}\n"
    memories = "\n".join(lines) if lines else "(none)"
    return "\n".join(told) + f"\n\nMemories:\n{memories}\n\n{asked}Question: {question}\nAnswer:"


def _date(time: Timestamp) -> str:
    """The time as it was written, a number of seconds as a date; `undated` for what is no time."""
    seconds = epoch_seconds(time)
    if seconds is None:
        return "undated"
    if isinstance(time, str):
        return time.strip()
    try:
        return (_EPOCH + timedelta(seconds=seconds)).isoformat()
    except OverflowError:  # a number of seconds beyond the year 9999
        return "undated"
