"""Web pages by trafilatura and htmldate, the extra `research`: they are given markup that was taken apart, never a URL.

Both can download what they are given an address of; the markup of a page begins with a tag, so it is none.
"""

from __future__ import annotations

import logging
import re
from datetime import datetime

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router_research.deep.page_markup import PageMarkup
from smart_model_router_research.deep.page_outline import outline_of_page

_EMPHASIS = re.compile(
    r"</?(?:abbr|b|bdi|bdo|cite|code|del|dfn|em|font|i|ins|kbd|mark|q|s|samp|small|strong|tt|u|var)(?: [^>]*)?>"
)
_PARAGRAPH = re.compile(r"<p(?: [^>]*)?>.*?</p>", re.DOTALL)
_LINK = re.compile(r"</?a(?: [^>]*)?>")
_ESCAPED = re.compile(r"\\([\\`*_{}\[\]()#+\-.!|<>~])")
MOST_TAGS = 50_000
"""Pages of more are taken as they are seen: trafilatura needs a second of CPU for 20,000 paragraphs."""
_FIRST_OF_YEAR = "-01-01"


class ExtraMissing(ConfigurationError):
    """A package of an extra is not installed; `extra` is its name."""

    def __init__(self, package: str, extra: str) -> None:
        install = f"pip install 'smart-model-router[{extra}]'"
        super().__init__(package, "not installed", f"the extra `{extra}` is needed: {install}")
        self.extra = extra


def main_text(page: PageMarkup) -> tuple[str, str]:
    """Return the main part of a page as Markdown without emphasis, and "".

    A page of which trafilatura makes nothing is returned whole, with the reason. Raises ExtraMissing.
    """
    try:
        from trafilatura import extract  # noqa: PLC0415 - an extra, and 0.2 s
    except ImportError:
        raise ExtraMissing("trafilatura", "research") from None
    if page.html.count("<") > MOST_TAGS:
        return page.text, f"the whole page was taken: it has more than {MOST_TAGS} tags"
    logging.getLogger("trafilatura").addHandler(logging.NullHandler())
    try:
        found = extract(_document(_plain(page.html)), output_format="markdown", include_comments=False)
    except Exception as error:  # noqa: BLE001 - no page may end a run
        return page.text, f"the whole page was taken: trafilatura failed ({type(error).__name__})"
    if not found or not found.strip():
        return page.text, "the whole page was taken: no main part was found"
    if "\n" in found.strip() and "\n\n" not in found:
        # Of a short page it gives bare lines: a heading would be read as the beginning of the first sentence.
        return outline_of_page(page.html).strip(), "the whole page was taken: its main part has no paragraphs"
    return _ESCAPED.sub(r"\1", found).strip(), ""


def guessed_day(page: PageMarkup, as_of: datetime) -> str:
    """Return the day that htmldate finds in a page, ISO 8601; "" for none. Raises ExtraMissing.

    It is a guess. The first of January is no day: htmldate makes it of years, those of copyrights among them.
    """
    try:
        from htmldate import find_date  # noqa: PLC0415 - an extra
    except ImportError:
        raise ExtraMissing("htmldate", "research") from None
    if page.html.count("<") > MOST_TAGS:
        return ""
    logging.getLogger("htmldate").addHandler(logging.NullHandler())
    try:
        found = find_date(_document(page.html), original_date=True, max_date=as_of) or ""
    except Exception:  # noqa: BLE001 - no page may end a run
        return ""
    return "" if found.endswith(_FIRST_OF_YEAR) else found


def _plain(html: str) -> str:
    """Return markup without emphasis, and without links inside of paragraphs: short pages are cut at those."""
    return _PARAGRAPH.sub(lambda found: _LINK.sub("", found[0]), _EMPHASIS.sub("", html))


def _document(html: str) -> str:
    """Return markup as a document, which no library takes for an address."""
    return f"<html><body>{html}</body></html>"
