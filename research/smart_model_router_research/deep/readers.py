"""Documents as a run stores them: read from a corpus, from its index, or from what a web server sent.

Nothing in a document is an error: one that cannot be read is None, with the reasons.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from email.message import Message
from html import unescape
from pathlib import PurePosixPath
from types import MappingProxyType

from smart_model_router_research.deep.corpus_file import Corpus
from smart_model_router_research.deep.dates import PUBLISHED, DateSignal, DocumentDates, date_of_text, dates_of_markup
from smart_model_router_research.deep.domains import host_of, registrable_domain
from smart_model_router_research.deep.json_text import text_of_json
from smart_model_router_research.deep.page_markup import PageMarkup, take_apart, without_comments, without_invisible
from smart_model_router_research.deep.page_outline import outline_of_page
from smart_model_router_research.deep.sources import DateConfidence, StoredDocument, sha256_of
from smart_model_router_research.deep.tiers import SourcePolicy, tier_of_source
from smart_model_router_research.deep.web_text import ExtraMissing, guessed_day, main_text
from smart_model_router_scoring.retrieval import IndexedDocument, IndexNotReady, IndexStore, UnknownDocument
from smart_model_router_scoring.retrieval.decoding import Tell, decoded
from smart_model_router_scoring.retrieval.files import MOST_BYTES, PDF, page_of_file
from smart_model_router_scoring.retrieval.pdf import OF_FOLDERS, PdfLimits, can_read_pdf

_HTML = (".html", ".htm")
_MARKDOWN = (".md", ".markdown")
JSON = "application/json"
CONTENT_TYPES: Mapping[str, str] = MappingProxyType(
    {
        "text/html": ".html",
        "application/xhtml+xml": ".html",
        "text/plain": ".txt",
        "text/markdown": ".md",
        JSON: ".txt",
        "application/pdf": PDF,
    }
)
"""The types of content that are read, and the suffix of a file of each."""
PDF_OF_WEB = PdfLimits(seconds=10, memory_bytes=512 << 20, pages=200)
"""The limits for a PDF file that a server sent."""
MOST_LINKS = 500
"""Links of a page that are kept."""
_LINK = re.compile(r'<a(?: [^>]*)? href="([^"]*)"')
_NO_CHARSETS = ("utf-7", "utf7", "unicode", "raw", "punycode", "idna")
"""Codecs that are not the charset of any page, but hide letters in others."""


@dataclass(frozen=True, slots=True)
class SourceReading:
    """A document as it was read, None where it could not be, and what there is to say about it.

    `links` are the addresses that the visible part of a web page links, as they are written.
    """

    document: StoredDocument | None
    reasons: tuple[str, ...] = ()
    links: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingContext:
    """The present, the operator's policy, and facts that are written into each document."""

    as_of: datetime
    policy: SourcePolicy = field(default_factory=SourcePolicy)
    retrieved_at: str = ""
    backend: str = ""


def read_file(path: str, raw: bytes, corpus: Corpus, context: ReadingContext) -> SourceReading:
    """Read a file of a corpus; `path` is that from its folder, with slashes.

    A page loses what a reader cannot see. Raises ExtraMissing for a PDF file without the extra `pdf` or `research`.
    """
    suffix = PurePosixPath(path).suffix.lower()
    if suffix not in MOST_BYTES:
        return SourceReading(None, (f"kind: files of kind {suffix or 'none'!r} are not read",))
    text, title, reasons = _content(suffix, raw)
    if text is None:
        return SourceReading(None, tuple(reasons))
    return _of_corpus(path, text, title, corpus, context, reasons)


def read_indexed(store: IndexStore, path: str, corpus: Corpus, context: ReadingContext) -> SourceReading:
    """Read a document of a corpus from its index; one that has vanished, and an index that has, are None."""
    try:
        document = store.fetch(path)
    except (UnknownDocument, IndexNotReady) as error:
        return SourceReading(None, (f"gone: {error}",))
    return document_of_index(document, corpus, context)


def document_of_index(document: IndexedDocument, corpus: Corpus, context: ReadingContext) -> SourceReading:
    """Return a document of an index as a run stores it; its lines are those of its chunks, but for web pages."""
    title = next((chunk.heading.partition(" > ")[0] for chunk in document.chunks if chunk.heading), "")
    if not document.text.strip():
        return SourceReading(None, ("empty: the file has no text, or could not be read when it was indexed",))
    return _of_corpus(document.path, document.text, title, corpus, context, [])


def read_response(raw: bytes, url: str, headers: Mapping[str, str], context: ReadingContext) -> SourceReading:
    """Read what a server sent for an address: a page, a text, Markdown, JSON or a PDF file, by its `Content-Type`.

    The id is the address, and the publisher is its registrable domain: what a page says of itself can be false. Raises
    ExtraMissing for pages without the extra `research`, and for PDF files without `research` or `pdf`.
    """
    header = next((value for name, value in headers.items() if name.lower() == "content-type"), "text/html")
    kind, charset = _content_type(header)
    suffix = CONTENT_TYPES.get(kind)
    if suffix is None:
        return SourceReading(None, (f"kind: content of type {kind[:60]!r} is not read",))
    links: tuple[str, ...] = ()
    if suffix == PDF:
        text, title, reasons = _content(suffix, raw, PDF_OF_WEB)
        dates = date_of_text(text or "", url, context.as_of)
    else:
        text, title, dates, reasons, links = _web_text(raw, kind, charset, url, headers, context.as_of)
    if text is None or not text.strip():
        return SourceReading(None, (*reasons, "empty: it has no text"))
    domain = registrable_domain(host_of(url))
    document = StoredDocument(
        id=url, text=text, sha256="", title=title, url=url, publisher=domain, runs_words_together=suffix == PDF
    )
    return replace(_stored(document, dates, context, reasons), links=links)


def _web_text(
    raw: bytes, kind: str, charset: str, url: str, headers: Mapping[str, str], as_of: datetime
) -> tuple[str | None, str, DocumentDates, list[str], tuple[str, ...]]:
    reasons: list[str] = []
    suffix = CONTENT_TYPES[kind]
    whole = _decoded_by(raw, charset, _teller(reasons)) if _fits(suffix, raw, reasons) else None
    if whole is None:
        return None, "", DocumentDates(), reasons, ()
    if suffix not in _HTML:
        plain = without_comments(whole) if suffix in _MARKDOWN else whole
        seen = without_invisible((text_of_json(plain) if kind == JSON else None) or plain)
        return seen, _name_of(url), date_of_text(seen, url, as_of), reasons, ()
    page = take_apart(whole)
    text, reason = main_text(page)
    title = page.title or _name_of(url)
    links = tuple(dict.fromkeys(unescape(found[1]) for found in _LINK.finditer(page.html)))[:MOST_LINKS]
    return text, title, _dates_of_page(page, headers, url, as_of), [*reasons, *([reason] if reason else [])], links


def _dates_of_page(page: PageMarkup, headers: Mapping[str, str], url: str, as_of: datetime) -> DocumentDates:
    """Return the days of a page; of one that says none, htmldate may guess one."""
    dates = dates_of_markup(page, headers, url, as_of)
    if any(
        date is not None and date.confidence is not DateConfidence.LOW for date in (dates.published, dates.modified)
    ):
        return dates
    guess = guessed_day(page, as_of)
    return replace(dates, published=date_of_text("", "", as_of, more=_signals("htmldate", guess or None)).published)


def _signals(signal: str, written: object) -> list[DateSignal]:
    return [] if written is None else [DateSignal(signal, PUBLISHED, written)]


def _of_corpus(
    path: str, text: str, title: str, corpus: Corpus, context: ReadingContext, reasons: list[str]
) -> SourceReading:
    more = _signals("corpus", corpus.day_of(path))
    suffix = PurePosixPath(path).suffix.lower()
    if suffix in _HTML:
        page = take_apart(text)
        title = page.title or title
        dates = dates_of_markup(page, {}, path, context.as_of, more=more)
        text = outline_of_page(page.html)
    else:
        text = without_invisible(without_comments(text) if suffix in _MARKDOWN else text)
        dates = date_of_text(text, path, context.as_of, more=more)
    if not text.strip():
        return SourceReading(None, (*reasons, "empty: it has no text"))
    url = corpus.url_of(path)
    document = StoredDocument(
        id=f"{corpus.name}/{path}",
        text=text,
        sha256="",
        title=title or _name_of(path),
        url=url,
        publisher=corpus.publisher,
        tier=corpus.tier,
        tier_reason=f"corpus {corpus.name}",
        corpus=corpus.name,
        alone_suffices=corpus.alone_suffices,
        runs_words_together=suffix == PDF,
    )
    return _stored(document, dates, context, reasons)


def _stored(
    document: StoredDocument, dates: DocumentDates, context: ReadingContext, reasons: list[str]
) -> SourceReading:
    verdict = tier_of_source(document, context.policy)
    stored = replace(
        document,
        sha256=sha256_of(document.text),
        domain=registrable_domain(host_of(document.url)),
        tier=verdict.tier,
        tier_reason=verdict.reason,
        published=dates.published,
        modified=dates.modified,
        retrieved_at=context.retrieved_at,
        backend=context.backend or ("corpus" if document.corpus else ""),
    )
    return SourceReading(stored, (*reasons, *dates.reasons))


def _content(suffix: str, raw: bytes, pdf: PdfLimits = OF_FOLDERS) -> tuple[str | None, str, list[str]]:
    """Return the text of a file and its title by scoring's readers, which index it by the same text."""
    reasons: list[str] = []
    if not _fits(suffix, raw, reasons):
        return None, "", reasons
    if suffix == PDF and not can_read_pdf():
        raise ExtraMissing("pypdfium2", "research")
    try:
        page = page_of_file(suffix, raw, _teller(reasons), lambda: False, pdf)
    except OSError as error:
        return None, "", [*reasons, f"process: {error.strerror or error}"]
    if not page.text.strip():
        return None, "", reasons or ["empty: it has no text"]
    return page.text, page.chunks[0].heading.partition(" > ")[0] if page.chunks else "", reasons


def _fits(suffix: str, raw: bytes, reasons: list[str]) -> bool:
    most = MOST_BYTES[suffix]
    if len(raw) > most:
        reasons.append(f"too_large: {len(raw)} bytes; at most {most}")
    return len(raw) <= most


def _teller(reasons: list[str]) -> Tell:
    def tell(code: str, detail: str) -> None:
        reasons.append(f"{code}: {detail}")

    return tell


def content_type_of(header: str) -> str:
    """Return the type of a header `Content-Type`, in lower case; `text/plain` for what is none."""
    return _content_type(header)[0]


def _content_type(header: str) -> tuple[str, str]:
    message = Message()
    message["Content-Type"] = header.replace("\r", " ").replace("\n", " ")
    return message.get_content_type(), str(message.get_content_charset("") or "")


def _decoded_by(raw: bytes, charset: str, tell: Tell) -> str | None:
    """Return the text of a response: UTF-8 where its bytes are, else the charset of the header where they fit."""
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        if charset and not charset.lower().startswith(_NO_CHARSETS):
            try:
                recoded = raw.decode(codecs.lookup(charset).name)
            except (LookupError, UnicodeError):
                tell("charset", f"the header says {charset[:40]!r}, which it is not")
            else:
                return decoded(recoded.encode("utf-8", "replace"), tell)
    return decoded(raw, tell)


def _name_of(path: str) -> str:
    return PurePosixPath(path.partition("?")[0]).stem
