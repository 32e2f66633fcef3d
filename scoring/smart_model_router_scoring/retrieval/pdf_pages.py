"""The pages of a PDF as text that can be read: without running heads and contents, with paragraphs and headings.

Pure: page texts in, page texts out. A PDF has lines and no structure: where its paragraphs are not told apart, what one
of them leads to would be taken for all that follows.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

_LEADERS = re.compile(r"(?:(?:\. ?){4,}|\u2026+ ?)[ ]*(?:\d+|[ivxlc]+)\s*$|(?:\. ){5,}\.?\s*$")
"""The row of points of a table of contents, before the number of a page or, where it is long, without."""
_NUMBERED = re.compile(
    r"(?P<number>\d{1,3}(?:\.\d{1,3}){1,4})\.?\s+(?P<words>[A-Z\"'\u201c\u2018(][^.!?;]{0,90}[^.!?;:\d])$"
)
"""A line such as "3.1 The package name". One number alone also begins an item of a list, and makes no heading."""
_ENDS = tuple(".!?:;)\u201d\"'")
_DIGITS = re.compile(r"\d+")
LEAST_REPEATED = 3
"""Pages on which a first or last line stands, but for its numbers, to be a running head or foot."""
_MOST_LEVEL = 6
SHORT = 0.85
"""The share of the usual width of a line below which one with the end of a sentence is the last of its paragraph."""
_NOT_OURS = re.compile(r"^ {0,3}(?=#{1,6}\s)")
"""The beginning of a comment in a program, which would be taken for a heading: behind four blanks it is none."""
LEAST_WIDTH = 40
"""Characters of the usual line below which the lines are no prose with a right margin."""
_FULL_STOP = re.compile(r"[.!?][)\u201d\"'\d]*$")


def outlined_pages(texts: Sequence[str]) -> list[str]:
    """Return the pages without running heads and feet and lines of contents; numbered headings become `## 1.2 Name`."""
    pages = [[line.rstrip() for line in text.split("\n")] for text in texts]
    edges = Counter(edge for page in pages for edge in {_shape(line) for line in _edges(page).values()})
    running = {edge for edge, count in edges.items() if count >= LEAST_REPEATED}
    bodies = [_without_running(page, running) for page in pages]
    width = _usual_width(bodies)
    return ["\n".join(_marked(body, SHORT * width if width >= LEAST_WIDTH else 0)) for body in bodies]


def _usual_width(pages: Sequence[Sequence[str]]) -> int:
    """Return the characters of the lines at the ninth decile: most lines of prose are as wide, some by chance wider."""
    widths = sorted(len(line) for page in pages for line in page if line.strip())
    return widths[len(widths) * 9 // 10] if widths else 0


def _edges(page: Sequence[str]) -> dict[int, str]:
    """Return the first and the last line with text, by their places; none where these are all there is."""
    written = [at for at, line in enumerate(page) if line.strip()]
    return {at: page[at] for at in (written[0], written[-1])} if len(written) > 2 else {}


def _shape(line: str) -> str:
    return _DIGITS.sub("#", line.strip())


def _without_running(page: Sequence[str], running: set[str]) -> list[str]:
    left_out = {at for at, line in _edges(page).items() if _shape(line) in running}
    return [line for at, line in enumerate(page) if at not in left_out]


def _marked(page: Sequence[str], least: float) -> Iterator[str]:
    lines = [_NOT_OURS.sub(r"    \g<0>", line) for line in page if not _LEADERS.search(line)]
    for at, line in enumerate(lines):
        heading = _NUMBERED.match(line.strip())
        above, below = (lines[at - 1].rstrip() if at else ""), (lines[at + 1].lstrip() if at + 1 < len(lines) else "")
        if heading is None or not _stands_between(above, below):
            yield line
            if below and _FULL_STOP.search(line) and len(line) < least and not below[0].islower():
                yield ""
            continue
        level = min(_MOST_LEVEL, heading["number"].count(".") + 1)
        yield from ("", f"{'#' * level} {heading['number']} {heading['words'].strip()}", "")


def _stands_between(above: str, below: str) -> bool:
    """Return whether the line above has ended and the line below begins anew."""
    ended = not above or above.endswith(_ENDS) or _NUMBERED.match(above.strip()) is not None
    return ended and (not below or not below[0].islower())
