"""Keeps the tables of docs/configuration.md true: keys, defaults and ranges come from the dataclasses.

Run it to write them anew (the column of meanings is kept); `--check` only says whether they are true.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

from smart_model_router.config import RouterConfig
from smart_model_router.config.hints import Hint, fields_of, key_field

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "configuration.md"
_TABLE = re.compile(r"(<!-- keys of (?P<section>[\w.<>\[\]]+) -->\n)(?P<rows>.*?)(<!-- end -->)", re.DOTALL)
_ROW = re.compile(r"^\| `(?P<key>\w+)` \|.*\| (?P<meaning>[^|]*) \|$", re.MULTILINE)
_HEAD = "| Key | Default | Takes | Meaning |\n| --- | --- | --- | --- |\n"
_HELD_BY_NAME = "<name>"


def sections(section: Any = RouterConfig, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every section of the tree as (path, dataclass), each dataclass once."""
    yield path or "configuration", section
    for key, hint in fields_of(section).items():
        member, step = hint, key
        while member.inner is not None:
            step += f".{_HELD_BY_NAME}" if member.base is dict else "[]"
            member = member.inner
        if member.is_section and (key != "last_resort" or not path):  # a model's has the same targets as a tier
            yield from sections(member.base, f"{path}.{step}" if path else step)


def rows(section: Any) -> dict[str, tuple[str, str]]:
    """Return for each key of a section its default and what it takes."""
    given = {field.name: field for field in fields(section)}
    own = key_field(section)
    return {key: (_default(given[key], hint), _takes(hint)) for key, hint in fields_of(section).items() if key != own}


def rendered(text: str) -> str:
    """Return the document with every table as the tree has it now."""
    known = dict(sections())

    def table(found: re.Match[str]) -> str:
        meanings = dict(_ROW.findall(found["rows"]))
        lines = (
            f"| `{key}` | {default} | {takes} | {meanings.get(key, '')} |\n"
            for key, (default, takes) in rows(known[found["section"]]).items()
        )
        return f"{found[1]}{_HEAD}{''.join(lines)}{found[4]}"

    return _TABLE.sub(table, text)


def described(text: str) -> dict[str, dict[str, str]]:
    """Return for each section that the document has a table of its keys with their meanings."""
    return {found["section"]: dict(_ROW.findall(found["rows"])) for found in _TABLE.finditer(text)}


def _default(field: Field[Any], hint: Hint) -> str:
    if field.default is MISSING and field.default_factory is MISSING:
        return "required"
    if hint.is_section and field.default is not None:
        return "its defaults"
    if field.default is MISSING or field.default in (None, "", ()):
        return "-"
    if isinstance(field.default, tuple):
        return ", ".join(map(str, field.default))
    if hint.base is bool:
        return str(field.default).lower()
    if hint.unit == "ratio":
        return f"{field.default:.0%}"
    if isinstance(field.default, float):
        return f"{field.default:g}" + (" s" if hint.unit == "seconds" else "")
    return str(field.default)


def _takes(hint: Hint) -> str:
    if hint.inner is None:
        return "a section" if hint.is_section else hint.describe().partition(" (such")[0]
    of = "a section" if hint.inner.is_section else hint.inner.describe()
    return f"names, each with {of}" if hint.base is dict else f"a list of {of}"


def main() -> int:
    """Write the tables, or with --check return 1 when they are not true."""
    text = DOCUMENT.read_text(encoding="utf-8")
    new = rendered(text)
    if "--check" in sys.argv[1:]:
        if new != text:
            print("docs/configuration.md is not what the code says: python tools/config_docs.py", file=sys.stderr)
        return int(new != text)
    DOCUMENT.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
