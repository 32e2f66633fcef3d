"""The prompt that uses memories, and the gate that decides which of them are good enough for it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from smart_model_router_scoring.decay import epoch_seconds
from smart_model_router_scoring.explain import Term, combined, given
from smart_model_router_scoring.options import check_number, unit
from smart_model_router_scoring.recall.memory import Hit, Memory, RecallSettings, age_rank

if TYPE_CHECKING:
    from collections.abc import Sequence

    from smart_model_router_scoring.options import Notes
    from smart_model_router_scoring.recall.memory import Timestamp

EVIDENCE = ("vector", "keyword", "metadata", "exact")
"""The components that show that a memory is about the question."""
INDEPENDENT = ("tag", "recency", "importance", "confidence", "relevance")
"""Those that would be the same for any question (of the same tags)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentWeights:
    """The most that each component adds; the founding project's figures."""

    vector: float = 0.35
    keyword: float = 0.35
    metadata: float = 0.35
    relation: float = 0.25
    tag: float = 0.20
    exact: float = 0.20
    recency: float = 0.10
    importance: float = 0.10
    confidence: float = 0.05
    relevance: float = 0.0

    def __post_init__(self) -> None:
        for field in fields(self):
            check_number(field.name, getattr(self, field.name), 0, 1_000)


NAMES = frozenset(field.name for field in fields(ComponentWeights))
DEFAULT_WEIGHTS = ComponentWeights()
DEFAULT_SETTINGS = RecallSettings()


def relevance_hit(
    memory: Memory,
    components: Mapping[str, float],
    notes: Notes,
    settings: RecallSettings = DEFAULT_SETTINGS,
    weights: ComponentWeights = DEFAULT_WEIGHTS,
    *,
    has_query: bool = True,
) -> Hit:
    """A memory scored by the weighted sum of its components, each 0 to 1.

    Evidence is the best of the components that depend on the query. When there is a query and the evidence is below
    the gate, the parts that do not depend on it are scaled by evidence / gate: a ramp, not a cliff. A component
    outside of 0 to 1 is noted and moved to the nearer end; one that has no weight is noted and left out.
    """
    values: dict[str, float] = {}
    for name, value in components.items():
        if name in NAMES:
            values[name] = unit(value, f"{memory.id}.{name}", notes)
        else:
            notes.add("unknown_component", f"{memory.id}.{name}")
    evidence = max([values[name] for name in EVIDENCE if name in values], default=0.0)
    gate = settings.relevance_gate if has_query and evidence < settings.relevance_gate else None
    shares = [
        getattr(weights, name) * value * (1.0 if gate is None or name not in INDEPENDENT else evidence / gate)
        for name, value in values.items()
    ]
    return Hit(memory, math.fsum(shares), why=partial(_why, values, weights, evidence, gate))


def _why(values: dict[str, float], weights: ComponentWeights, evidence: float, gate: float | None) -> Term:
    parts = []
    for name, value in values.items():
        factors = [given("weight", getattr(weights, name)), given(name, value)]
        if gate is not None and name in INDEPENDENT:
            factors.append(combined("damping", "ratio", [given("evidence", evidence), given("gate", gate)]))
        parts.append(combined(name, "product", factors))
    return combined("relevance", "sum", parts, evidence=evidence, gated=gate is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptOptions:
    """The form of the prompt."""

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
    return (_EPOCH + timedelta(seconds=seconds)).isoformat()
