"""Files become pages: which ones are read, how many bytes of them, and how a file of each kind is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from smart_model_router_scoring.retrieval.decoding import Tell, decoded
from smart_model_router_scoring.retrieval.pdf import OF_FOLDERS, PdfLimits, read_pdf
from smart_model_router_scoring.retrieval.pdf_pages import outlined_pages
from smart_model_router_scoring.retrieval.reading import READERS, Page, page_of, page_of_pdf

PDF = ".pdf"
MOST_BYTES: Mapping[str, int] = MappingProxyType({**dict.fromkeys(READERS, 5_000_000), PDF: 50_000_000})
"""By suffix: a text above it is data, not documentation; a PDF has pictures."""
INDEXED_ANYWAY = frozenset({"charset", "front_matter", "partly_read"})
"""Codes of notes on files of which something was indexed."""
_EMPTY = Page("", ())


def page_of_file(suffix: str, raw: bytes, tell: Tell, stopped: Callable[[], bool], pdf: PdfLimits = OF_FOLDERS) -> Page:
    """The page that a file with this suffix is; without chunks, and told, where it cannot be read.

    `stopped` ends the reading of a PDF, which has the limits `pdf`. Raises OSError when no process can be started for
    one.
    """
    if suffix == PDF:
        return _of_pdf(raw, tell, stopped, pdf)
    text = decoded(raw, tell)
    return _EMPTY if text is None else page_of(text, READERS[suffix](text, tell))


def _of_pdf(raw: bytes, tell: Tell, stopped: Callable[[], bool], within: PdfLimits) -> Page:
    found = read_pdf(raw, within=within, stopped=stopped)
    page = page_of_pdf(found.title, outlined_pages(found.pages))
    if found.ended and page.chunks:
        tell("partly_read", f"{len(found.pages)} pages: {found.ended}")
    elif found.ended:
        tell("pdf", found.ended)
    elif not page.chunks:
        tell("pdf", "it has no text, as scanned pages have none")
    return page
