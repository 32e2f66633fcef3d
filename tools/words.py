"""Finds words that keep prose from being plain English, in code and in documents (house style).

A docstring does not begin with an interrogative, and things are not spoken of as persons: the subject is named. The
pronoun for persons is right for people: PEOPLE lists the nouns before it. Accepted decisions (docs/adr) keep their
text.
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("router", "providers", "stats", "scoring", "research", "tools", "benchmarks", "examples")
DOCUMENTS = (
    "*.md",
    "docs/*.md",
    "docs/adr/README.md",
    "docs/adr/references.md",
    "docs/design/*.md",
    "docs/how-to/*.md",
)
DATA = {
    "benchmarks/search/collections.py",
    "research/smart_model_router_research/deep/asked_extremes.py",
    "research/smart_model_router_research/deep/asked_relations.py",
    "research/smart_model_router_research/deep/asked_values.py",
    "research/smart_model_router_research/deep/asked_words.py",
    "research/smart_model_router_research/deep/clauses.py",
    "research/smart_model_router_research/deep/fitting.py",
    "research/smart_model_router_research/deep/offline.py",
    "research/smart_model_router_research/deep/questions.py",
    "research/smart_model_router_research/deep/sentence_answers.py",
    "scoring/smart_model_router_scoring/retrieval/null_questions.py",
    "scoring/smart_model_router_scoring/retrieval/embedders.py",
    "tools/words.py",
}
"""Files whose strings are data; their docstrings and comments are prose."""
PEOPLE = "administrators? authors? callers? developers? maintainers? operators? owners? people persons? readers? users?"
_OPENING = re.compile(r"^[rRbBuUfF]*(?:\"\"\"|'''|\"|')\s*(How|What|Whether|Which|Who|Why)\b")
_PERSON = re.compile(r"\b(who|whom|whoever|nobody|somebody|anybody|everybody)\b", re.IGNORECASE)
_OF_PEOPLE = re.compile(rf"\b(?:{PEOPLE.replace(' ', '|')}),?\s+who\b", re.IGNORECASE)
_TEXTS = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
_QUOTED = re.compile(r"^```.*?^```$|`[^`\n]*`|\"[^\"\n]*\"|\]\([^)\n]*\)", re.DOTALL | re.MULTILINE)
"""Code, quotations and the targets of links in a document."""


def findings(text: str, *, data: bool = False) -> Iterator[tuple[int, str]]:
    """Yield the line and the word of each finding in the source code `text`. `data`: its strings are no prose."""
    before = tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in _TEXTS:
            first = before in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
            if first and token.type == tokenize.STRING and (found := _OPENING.match(token.string)):
                yield token.start[0], found[1]
            if " " in token.string and (first or token.type == tokenize.COMMENT or not data):  # else a key or a label
                for line, word in persons(token.string):
                    yield token.start[0] + line, word
        if token.type not in (tokenize.NL, tokenize.COMMENT):
            before = token.type


def document_findings(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the word of each finding in the Markdown document `text`."""
    for line, word in persons(_QUOTED.sub(_blank, text)):
        yield line + 1, word


def persons(prose: str) -> Iterator[tuple[int, str]]:
    """Yield the line, from 0, and the word wherever the pronoun for a person does not follow a noun for people."""
    prose = _OF_PEOPLE.sub(_blank, prose)
    for found in _PERSON.finditer(prose):
        yield prose.count("\n", 0, found.start()), found[1]


def _blank(found: re.Match[str]) -> str:
    return " " + "\n" * found[0].count("\n")


def main() -> int:
    """Print the findings of each file; return 1 if there is one."""
    found: dict[str, list[tuple[int, str]]] = {}
    sources = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    for source in sources:
        name = source.relative_to(ROOT).as_posix()
        found[name] = [*findings(source.read_text(encoding="utf-8"), data=name in DATA)]
    for document in [path for pattern in DOCUMENTS for path in sorted(ROOT.glob(pattern))]:
        found[document.relative_to(ROOT).as_posix()] = [*document_findings(document.read_text(encoding="utf-8"))]
    for path, many in found.items():
        for line, word in many:
            print(f"{path}:{line}: {word!r}: name the subject, or say what the thing does")
    return 1 if any(found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
