"""Finds words that keep prose from being plain English, and holds their number in each file down (house style).

A docstring does not begin with "What", "Whether" or "Who", and things are not spoken of as persons ("who", "nobody",
...): the subject is named. Of people `who` is right: PEOPLE lists the nouns before it. `tools/words.txt` has the number
that each file of older text may still have; a file that is not there may have none. `--write` writes the present
numbers there, unless their sum has grown (a renamed file takes its number along).
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("router", "providers", "stats", "scoring", "tools", "benchmarks", "examples")
ALLOWED = ROOT / "tools" / "words.txt"
PEOPLE = "administrators? authors? callers? developers? maintainers? operators? owners? people persons? readers? users?"
_OPENING = re.compile(r"^[rRbBuUfF]*(?:\"\"\"|'''|\"|')\s*(What|Whether|Who)\b")
_PERSON = re.compile(r"\b(who|whom|whoever|nobody|somebody|anybody|everybody)\b", re.IGNORECASE)
_OF_PEOPLE = re.compile(rf"\b(?:{PEOPLE.replace(' ', '|')}),?\s+who\b", re.IGNORECASE)
_TEXTS = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}


def findings(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the word of each finding in the source code `text`."""
    before = tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in _TEXTS:
            first = before in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
            if first and token.type == tokenize.STRING and (found := _OPENING.match(token.string)):
                yield token.start[0], found[1]
            if " " in token.string:  # else a key or a label, and no prose
                prose = _OF_PEOPLE.sub(lambda found: " " + "\n" * found[0].count("\n"), token.string)
                for found in _PERSON.finditer(prose):
                    yield token.start[0] + prose.count("\n", 0, found.start()), found[1]
        if token.type not in (tokenize.NL, tokenize.COMMENT):
            before = token.type


def allowed() -> dict[str, int]:
    """Return the numbers that files of older text may have."""
    lines = ALLOWED.read_text(encoding="utf-8").splitlines()
    return {path: int(number) for number, path in (line.split() for line in lines)}


def main() -> int:
    """Print the findings of each file that has more than it may; return 1 if there is one."""
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    found = {path.relative_to(ROOT).as_posix(): [*findings(path.read_text(encoding="utf-8"))] for path in paths}
    limits = allowed()
    if sys.argv[1:] == ["--write"]:
        total = sum(map(len, found.values()))
        if total > sum(limits.values()):
            sys.exit(f"{total} findings, {sum(limits.values())} before: reword the new ones")
        ALLOWED.write_text("".join(f"{len(many)} {path}\n" for path, many in found.items() if many), encoding="utf-8")
        return 0
    worse = {path: many for path, many in found.items() if len(many) > limits.get(path, 0)}
    for path, many in worse.items():
        for line, word in many:
            print(f"{path}:{line}: {word!r}: name the subject, or say what the thing does")
        print(f"{path}: {len(many)} such words, {limits.get(path, 0)} are allowed (tools/words.py)")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
