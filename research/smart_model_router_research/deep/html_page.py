"""A report's page in HTML: one file without scripts, in which each citation opens its quote in place."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from html import escape

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

_STYLE = """
:root{color-scheme:light dark;--edge:#8885;--soft:#8882;--warn:#b45309}
body{font:1rem/1.55 system-ui,sans-serif;max-width:46rem;margin:0 auto;padding:1rem;overflow-wrap:anywhere}
h1{font-size:1.6rem;line-height:1.2}h2{font-size:1.25rem;margin-top:2rem}h3{font-size:1.05rem}
.warning{border-left:.3rem solid var(--warn);background:var(--soft);padding:.2rem 1rem}
.table{overflow-x:auto}table{border-collapse:collapse;font-size:.9rem;overflow-wrap:break-word}
th,td{border:1px solid var(--edge);padding:.3rem .5rem;text-align:left;vertical-align:top}
details{display:inline-block}details[open]{display:block}summary{display:inline;cursor:pointer;color:LinkText;list-style:none}
summary::-webkit-details-marker{display:none}
blockquote{margin:.4rem 0;padding:.2rem .8rem;border-left:.2rem solid var(--edge);background:var(--soft)}
.mark{font-size:.85em;opacity:.85}.strong{font-weight:700;color:var(--warn);opacity:1}
"""
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_POLICY = f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; form-action 'none'"


def as_html(blocks: list[PageBlock], title: str) -> str:
    """Return a page as one file. It loads nothing, and runs nothing."""
    body = "\n".join(part for block in blocks for part in _block(block))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{_text(title, "Untitled")}</title>
<style>{_STYLE}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""


def _text(text: str, fallback: str = "") -> str:
    return escape(clean(text, fallback))


def _apart(text: str, fallback: str = "") -> str:
    """Return a text whose direction of writing reaches no other."""
    return f"<bdi>{_text(text, fallback)}</bdi>"


def _block(block: PageBlock) -> Iterator[str]:
    if isinstance(block, PageHeading):
        yield f"<h{block.level}>{_apart(block.text, 'Untitled')}</h{block.level}>"
    elif isinstance(block, PageTable):
        head = "".join(f"<th>{_text(cell)}</th>" for cell in block.head)
        yield f'<div class="table"><table><thead><tr>{head}</tr></thead><tbody>'
        for row in block.rows:
            yield f"<tr>{''.join(f'<td>{_line(cell)}</td>' for cell in row)}</tr>"
        yield "</tbody></table></div>"
    elif block.is_list:
        yield f"<ul>{''.join(f'<li>{_line(line)}</li>' for line in block.lines)}</ul>"
    else:
        kind = ' class="warning"' if block.is_warning else ""
        yield f"<div{kind}>{''.join(f'<p>{_line(line)}</p>' for line in block.lines)}</div>"


def _line(line: Line) -> str:
    return " ".join(_inline(part) for part in line)


def _inline(part: Inline) -> str:
    match part:
        case PlainText(text):
            return _apart(text)
        case Mark(text, strong):
            return f'<span class="mark{" strong" if strong else ""}">({_text(text)})</span>'
        case CitedSource(number, title, quotes):
            quoted = "".join(f"<blockquote>{_apart(quote)}</blockquote>" for quote in quotes)
            return f"<details><summary>[S{number}]</summary>{_apart(title, 'Untitled')}{quoted}</details>"
        case SourceLink(title, url):
            if address := web_address(url):
                return f'<a href="{escape(address)}" rel="noopener noreferrer nofollow">{_apart(title, "Untitled")}</a>'
            return f"{_apart(title, 'Untitled')} {_apart(url)}"
