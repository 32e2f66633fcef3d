"""The YAML before a Markdown document: its title and the words that describe it. Pure: text in, values out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

import yaml

MOST_CHARACTERS = 65_536
"""Front matter of more is read as text: YAML is slow."""
DESCRIBES = ("description", "tags", "date")
"""The keys whose values are searched, in this order, beside `title`."""


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """`text` has the values of DESCRIBES, one a line."""

    title: str
    text: str


class NoFrontMatter(ValueError):
    """The text between the marks is no front matter. The message says why, in one line."""


def front_matter_of(text: str) -> FrontMatter:
    """The front matter that this YAML spells. Raises NoFrontMatter."""
    if len(text) > MOST_CHARACTERS:
        raise NoFrontMatter(f"it has more than {MOST_CHARACTERS} characters")
    try:
        told = yaml.load(text, _Loader)  # noqa: S506 - a SafeLoader
    except yaml.MarkedYAMLError as error:
        line = "" if error.problem_mark is None else f", line {error.problem_mark.line + 2} of the file"
        raise NoFrontMatter(f"it is no YAML: {error.problem}{line}") from None
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise NoFrontMatter(f"it is no YAML: {reason}") from None
    if told is None:
        return FrontMatter("", "")
    if not isinstance(told, dict):
        raise NoFrontMatter("it is YAML without keys")
    lines = (", ".join(_values(told.get(key))) for key in DESCRIBES)
    return FrontMatter(" ".join(_values(told.get("title"))), "\n".join(line for line in lines if line))


class _Loader(yaml.SafeLoader):
    """No alias is followed: some lines of them can stand for gigabytes."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """See the base class."""
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not read")
        return super().compose_node(parent, index)


def _values(value: object) -> list[str]:
    """The words of a value: of text, a number, a date, or a list of these. Others have none."""
    if isinstance(value, str | int | float | date) and not isinstance(value, bool):
        said = " ".join(str(value).encode("utf-8", "replace").decode().split())  # "\uD800" spells half a character
        return [said] if said else []
    if isinstance(value, list):
        return [said for one in value if not isinstance(one, list) for said in _values(one)]
    return []
