"""The headings above a place in a document: of Markdown (`# Title`) and of text that underlines them."""

from __future__ import annotations

import re
from bisect import bisect_right

_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
_UNDERLINE = re.compile(r"([=\-~^\"'*+.:#_`])\1{2,}[ \t]*$")
_FENCE = re.compile(r" {0,3}(```+|~~~+)")
_BOLD = re.compile(r"[ \t]{0,3}(\*\*|__)([^*_\n]{1,100})\1:?[ \t]*")
_BOLD_LEVEL = 7
"""A line in bold letters is a heading below all others."""
_MARKDOWN_LEVELS = {"=": 1, "-": 2}
_MAX_HEADING = 200


class HeadingPaths:
    """The headings of a text, read once."""

    def __init__(self, text: str) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._paths: list[tuple[str, ...]] = []
        open_headings: list[tuple[int, str]] = []
        for start, end, level, heading in _headings(text):
            open_headings = [(above, words) for above, words in open_headings if above < level]
            open_headings.append((level, heading))
            self._starts.append(start)
            self._ends.append(end)
            self._paths.append(tuple(words for _, words in open_headings))

    def end_above(self, position: int) -> int:
        """Return where the nearest heading above a position ends, with the line under it; 0 where there is none."""
        found = bisect_right(self._starts, position)
        return self._ends[found - 1] if found else 0

    def begin_at(self, start: int, end: int) -> bool:
        """Return whether a heading begins within a span."""
        return bisect_right(self._starts, end - 1) > bisect_right(self._starts, start - 1)

    def at(self, position: int) -> tuple[str, ...]:
        """Return the headings above a position, the outermost first."""
        found = bisect_right(self._starts, position)
        return self._paths[found - 1] if found else ()


def _headings(text: str) -> list[tuple[int, int, int, str]]:
    """Return beginning, end, level and words of each heading.

    Underlines have levels in the order of their first use.
    """
    found: list[tuple[int, int, int, str]] = []
    levels: dict[str, int] = {}
    fence = above = ""
    position = above_at = 0
    in_front_matter = text.startswith("---\n")
    for number, line in enumerate(text.splitlines(keepends=True)):
        bare = line.rstrip("\r\n")
        if in_front_matter:
            in_front_matter = number == 0 or bare.rstrip() not in ("---", "...")
            above = ""
        elif fence:
            fence = "" if bare.strip().startswith(fence) and not bare.strip().strip(fence[0]) else fence
            above = ""
        elif (opened := _FENCE.match(bare)) is not None:
            fence, above = opened[1], ""
        elif (atx := _ATX.match(bare)) is not None:
            if atx[2]:
                found.append((position, position + len(line), len(atx[1]), atx[2][:_MAX_HEADING]))
                levels.update(_MARKDOWN_LEVELS)
            above = ""
        elif (bold := _BOLD.fullmatch(bare)) is not None:
            found.append((position, position + len(line), _BOLD_LEVEL, bold[2].strip(" :")))
            above = ""
        elif (line_under := _UNDERLINE.match(bare)) is not None and _is_heading(above, bare):
            mark = line_under[1]
            level = levels.setdefault(mark, len(levels) + 1)
            found.append((above_at, position + len(line), level, above.strip()))
            above = ""
        else:
            above = bare
        above_at = position
        position += len(line)
    return found


def _is_heading(above: str, underline: str) -> bool:
    words = above.strip()
    return bool(words) and "|" not in words and len(words) <= min(_MAX_HEADING, len(underline.rstrip()) + 2)
