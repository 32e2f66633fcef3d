"""A report's page in Markdown. Whatever a source says is text: it adds no link, no heading, no table, no HTML."""

from __future__ import annotations

import re
from collections.abc import Iterator

from smart_model_router_research.deep.report_page import (
    CitedSource,
    Inline,
    Line,
    Mark,
    PageBlock,
    PageHeading,
    PageTable,
    PlainText,
    SourceLink,
)
from smart_model_router_research.deep.source_text import clean, web_address

_ACTIVE = re.compile(r"[\\`*\[\]<>&|~$^{}]|(?<![^\W_])_|_(?![^\W_])")
"""Characters that CommonMark, GitHub's tables, strikethrough, footnotes and formulas give a meaning inside a line.

Low lines inside a word have none.
"""
_AUTOLINK = re.compile(
    r"(?i)(?<=[\w\u0080-\U0010ffff])\.(?=\w*[^\W\d_])|(?<=www)\.|:(?=//)|/(?=/)|(?<=mailto):|(?<=xmpp):"
)
"""Points of host names, those of signs included, and colons of addresses: some readers make links of bare ones."""
_BEGINNING = re.compile(r"^(?:[#+=:!-]|(\d{1,9})([.)])(?=\s|$))")
"""The beginnings of blocks: headings, items, rules, underlines, definitions, admonitions."""
_CLOSING = re.compile(r"(?<!\\)#(?=#*$)")
"""The end of a heading that would be its closing sequence."""
_BACKSLASHED = r"\\\g<0>"
_ADDRESS_SIGN = re.compile(r"@(?=\w)")


def as_markdown(blocks: list[PageBlock]) -> str:
    """Return the text of a page."""
    return "\n\n".join("\n".join(_block(block)) for block in blocks) + "\n"


def escaped(text: str, fallback: str = "") -> str:
    """Return a text as Markdown that reads as that text, in one line, wherever it stands.

    Mail addresses would be links at GitHub whatever is escaped: a word joiner, which has no width, keeps them apart.
    """
    plain = _ACTIVE.sub(_BACKSLASHED, clean(text, fallback))
    plain = _ADDRESS_SIGN.sub("@\u2060", _AUTOLINK.sub(_BACKSLASHED, plain))
    return _BEGINNING.sub(_escaped_beginning, plain)


def _escaped_beginning(found: re.Match[str]) -> str:
    return f"{found[1]}\\{found[2]}" if found[1] else f"\\{found[0]}"


def _block(block: PageBlock) -> Iterator[str]:
    if isinstance(block, PageHeading):
        yield f"{'#' * block.level} {_CLOSING.sub(_BACKSLASHED, escaped(block.text, 'Untitled'))}"
    elif isinstance(block, PageTable):
        yield f"| {' | '.join(block.head)} |"
        yield f"|{'---|' * len(block.head)}"
        for row in block.rows:
            yield f"| {' | '.join(map(_line, row))} |"
    else:
        for number, line in enumerate(block.lines):
            if number and not block.is_list:
                yield "> " if block.is_warning else ""
            yield f"{'- ' if block.is_list else '> ' if block.is_warning else ''}{_line(line)}"


def _line(line: Line) -> str:
    return " ".join(part for part in map(_inline, line) if part) or "—"


def _inline(part: Inline) -> str:
    match part:
        case PlainText(text):
            return escaped(text)
        case Mark(text, strong):
            return f"**({text})**" if strong else f"*({text})*"
        case CitedSource(number):
            return f"[S{number}]"
        case SourceLink(title, url):
            if address := web_address(url):
                return f"[{escaped(title, 'Untitled')}](<{address}>)"
            return f"{escaped(title, 'Untitled')} ({escaped(url)})" if clean(url) else escaped(title, "Untitled")
