"""The documents of a run as they were stored: the text and its hash, where it came from, how far it is trusted."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from enum import StrEnum

from smart_model_router_research.deep.claims import CitedDocument, SourceTier


class DateConfidence(StrEnum):
    """The trust in a date: one of `low` or `unknown` confidence never makes a source recent."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceDate:
    """A day of a document, ISO 8601, and the signal that it was read from (`json_ld`, `meta`, `url`, ...)."""

    day: str
    signal: str
    confidence: DateConfidence


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDocument:
    """A document that a run retrieved. `sha256` is that of `text` in UTF-8, as it was when it was retrieved.

    `id` is unique in the run. `domain` is the registrable domain of `url`. `origin` is the same for near-duplicates.
    `alone_suffices` says that its corpus vouches for each of its documents by itself. `runs_words_together` says that
    spaces of the text are no guide (PDF): quotes are looked up without them.
    """

    id: str
    text: str
    sha256: str
    title: str = ""
    url: str = ""
    publisher: str = ""
    domain: str = ""
    tier: SourceTier = SourceTier.B
    tier_reason: str = ""
    published: SourceDate | None = None
    modified: SourceDate | None = None
    retrieved_at: str = ""
    backend: str = ""
    corpus: str = ""
    origin: str = ""
    alone_suffices: bool = False
    runs_words_together: bool = False

    @property
    def path(self) -> str:
        """The path inside its corpus; "" for a document of no corpus."""
        return self.id.removeprefix(f"{self.corpus}/") if self.corpus else ""

    def without_text(self) -> StoredDocument:
        """Return the document without its text, which its hash names."""
        return replace(self, text="")

    def with_text(self, text: str) -> StoredDocument:
        """Return the document with this text; `is_unchanged` says whether it is the one that was retrieved."""
        return replace(self, text=text)

    @property
    def is_unchanged(self) -> bool:
        """True while the text is still what was hashed when it was retrieved (check K1)."""
        return self.sha256 == sha256_of(self.text)

    @property
    def dated(self) -> SourceDate | None:
        """The day that recency counts from: the later of both, of the more trustworthy where they differ in trust."""
        order = list(DateConfidence)
        known = [date for date in (self.published, self.modified) if date is not None]
        return min(
            sorted(known, key=lambda date: date.day, reverse=True),
            key=lambda date: order.index(date.confidence),
            default=None,
        )

    def cited(self) -> CitedDocument:
        """Return the facts that metrics need."""
        dated = self.dated
        return CitedDocument(
            id=self.id,
            title=self.title,
            tier=self.tier,
            domain=self.domain,
            publisher=self.publisher,
            origin=self.origin,
            alone_suffices=self.alone_suffices,
            published=dated.day if dated else "",
            date_confidence=dated.confidence if dated else DateConfidence.UNKNOWN,
        )


def sha256_of(text: str) -> str:
    """Return the SHA-256 of a text in UTF-8, in hexadecimal digits; half a surrogate counts, too."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
