"""A stored document keeps its hash and says from when it is."""

from __future__ import annotations

import pytest

from smart_model_router_research.deep.sources import DateConfidence, SourceDate, StoredDocument, sha256_of


def date(day: str, confidence: DateConfidence) -> SourceDate:
    """Return a date of this trust."""
    return SourceDate(day=day, signal="meta", confidence=confidence)


OLD = date("2019-01-01", DateConfidence.HIGH)
NEW = date("2025-01-01", DateConfidence.HIGH)
GUESSED = date("2026-01-01", DateConfidence.LOW)


def test_a_changed_text_is_noticed() -> None:
    """A text that is not what was hashed is changed, also by one letter, also with half a surrogate."""
    for text in ("plain", "half \ud800"):
        assert StoredDocument(id="d", text=text, sha256=sha256_of(text)).is_unchanged
        assert not StoredDocument(id="d", text=text + "!", sha256=sha256_of(text)).is_unchanged


@pytest.mark.parametrize(
    ("published", "modified", "wanted"),
    [(OLD, NEW, NEW), (NEW, OLD, NEW), (OLD, GUESSED, OLD), (None, GUESSED, GUESSED), (None, None, None)],
)
def test_recency_counts_from_the_later_trusted_day(
    published: SourceDate | None, modified: SourceDate | None, wanted: SourceDate | None
) -> None:
    """The better trusted day counts, and of two that are trusted alike the later one."""
    document = StoredDocument(id="d", text="", sha256="", published=published, modified=modified)

    assert document.dated == wanted
    assert document.cited().published == (wanted.day if wanted else "")
    assert document.cited().date_confidence == (wanted.confidence if wanted else "unknown")
