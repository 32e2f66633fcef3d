"""The answer prompt: three forms, to the byte."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from smart_model_router_scoring.recall.memory import Hit, Memory
from smart_model_router_scoring.recall.prompt import PRESETS, PromptOptions, answer_prompt

MOVED = Hit(Memory(id="1", content="I moved to Lyon.", timestamp="2025-03-01"), 0.71234)
BORN = Hit(Memory(id="2", content="I was born in Rome.", timestamp="2024-01-02T10:00:00Z"), 0.8)
UNDATED = Hit(Memory(id="3", content="I like lakes.", timestamp="long ago"), 0.25)
HITS = [MOVED, UNDATED, BORN]

PLAIN = """\
Answer the question with what the memories below say.
If the memories do not hold the answer, say "I don't know".

Memories:
[1] (2025-03-01) I moved to Lyon.
[2] (undated) I like lakes.
[3] (2024-01-02T10:00:00Z) I was born in Rome.

Question: Where do I live?
Answer:"""

CHAIN_OF_NOTE = """\
Answer the question with what the memories below say.
First write one short note for each memory: what it has to do with the question, or that it has nothing to do with it. \
Then answer from your notes.
If the memories do not hold the answer, say "I don't know".

Memories:
[1] (2025-03-01) I moved to Lyon.
[2] (undated) I like lakes.
[3] (2024-01-02T10:00:00Z) I was born in Rome.

Asked at: 2026-01-01T00:00:00+00:00
Question: Where do I live?
Answer:"""

TEMPORAL = """\
Answer the question with what the memories below say.
The memories stand in the order of time, the oldest first; the score says how well each fits the question.
Where memories contradict each other, the most recent one holds, unless the question is about an earlier time.
Go through every memory once more before you say that you do not know: the answer is often there in other words, \
or in two memories together. If it is really not there, say so.
If the memories do not hold the answer, say "I don't know".

Memories:
[1] (undated, score 0.250) I like lakes.
[2] (2024-01-02T10:00:00Z, score 0.800) I was born in Rome.
[3] (2025-03-01, score 0.712) I moved to Lyon.

Question: Where do I live?
Answer:"""

ASKED = datetime(2026, 1, 1, tzinfo=UTC)


def test_the_plain_form() -> None:
    """The memories as given, no word about time; the default."""
    assert answer_prompt("Where do I live?", HITS) == PLAIN
    assert answer_prompt("Where do I live?", HITS, PRESETS["plain"]) == PLAIN


def test_the_chain_of_note_form() -> None:
    """Notes first; with the time of the question if it is known."""
    assert answer_prompt("Where do I live?", HITS, PRESETS["chain-of-note"], asked_at=ASKED) == CHAIN_OF_NOTE


def test_the_temporal_answer_form() -> None:
    """Oldest first with scores, guidance for conflicts and doubts, and abstention still allowed."""
    assert answer_prompt("Where do I live?", HITS, PRESETS["temporal-answer"]) == TEMPORAL


def test_the_hint_off_is_the_plain_form_to_the_byte() -> None:
    """In both forms, whatever else is said."""
    assert answer_prompt("Where do I live?", HITS, PromptOptions(temporal_answer_hint=False)) == PLAIN
    off = PromptOptions(chain_of_note=True, temporal_answer_hint=False)
    assert answer_prompt("Where do I live?", HITS, off, asked_at=ASKED) == CHAIN_OF_NOTE


def test_notes_and_hint_go_together() -> None:
    """Both instructions, the memories in the order of time."""
    both = answer_prompt("Q", HITS, PromptOptions(chain_of_note=True, temporal_answer_hint=True))
    assert both.index("First write one short note") < both.index("in the order of time") < both.index("I was born")
    assert both.index("I like lakes") < both.index("I was born") < both.index("I moved")


def test_without_memories_it_says_so() -> None:
    """The model is not left to guess."""
    assert "Memories:\n(none)\n" in answer_prompt("Q", [])


@pytest.mark.parametrize(
    ("time", "shown"),
    [
        (datetime(2025, 3, 1, 12), "2025-03-01T12:00:00+00:00"),  # noqa: DTZ001 - naive on purpose
        (86_400.0, "1970-01-02T00:00:00+00:00"),
        (1e18, "undated"),
        (" 2025-03-01 ", "2025-03-01"),
        (None, "undated"),
    ],
)
def test_times_are_shown_as_people_read_them(time: Any, shown: str) -> None:
    """Text as it was written, the rest as ISO 8601."""
    assert f"[1] ({shown}) x" in answer_prompt("Q", [Hit(Memory(id="1", content="x", timestamp=time), 0.5)])


def test_the_input_is_left_as_it_was() -> None:
    """Sorting by time happens on a copy."""
    hits = list(HITS)
    answer_prompt("Q", hits, PRESETS["temporal-answer"])
    assert hits == HITS


def test_presets_are_read_only_and_complete() -> None:
    """Three forms."""
    assert list(PRESETS) == ["plain", "chain-of-note", "temporal-answer"]
    with pytest.raises(TypeError):
        PRESETS["mine"] = PromptOptions()  # type: ignore[index]  # the point of the test
