"""Names and identifiers in texts: whole ones only. Sudan is not South Sudan, and `copy` is not `copytree`."""

from __future__ import annotations

import re
from functools import lru_cache

_HEAD = re.compile(
    r"(?::[\w:]+:)?[`*\"'(]*(?:(?:class|async|static|abstract|final|module|exception|function|method|the|a|an) )*"
    r"(?P<name>(?:--?|[.@$%/])?[^\W_]?[\w]*(?:(?:\.|::|->|-|/)?[\w]+)*)"
)
_CALLED = re.compile(r"[^()\[\],]*?(?P<name>[\w.]*[^\W\d][\w.]*)\(")
"""A signature: the name stands right before the parenthesis, in C behind the type of the result."""
_NUMBERED = re.compile(
    r"^(?:(?:Chapter|Appendix|Section|Part) [\dA-Z]+[.:]?|\d+(?:\.\d+)+\.?|\d+\.|[A-Z](?:\.\d+)+\.?)\s+(?=\S)"
)
_VERBAL = re.compile(
    r"(?:\b(?:in|on|at|by|to|from|with|for|since|until|as)|\b\w{3,}(?<!e)ed|\b(?:born|built|made|held|led))$",
    re.IGNORECASE,
)
_ROLE = re.compile(r":[\w:]+:`([^`<]*?)(?:\s*<[^>]*>)?`")
_TITLE_WORDS = re.compile(r"[^\W_]+")
_LEADING = frozenset("the a an in of and or for with when if on at by from to as see only both between like".split())


@lru_cache(maxsize=16_384)
def head_of(heading: str) -> str:
    """Return what a heading or a signature defines: `copy` of "copy(src, dst)"; "" where it begins with no name."""
    text = _NUMBERED.sub("", _ROLE.sub(r"\1", heading.strip()).strip("`*\"' "))
    match = _CALLED.match(text) or _HEAD.match(text)
    return match["name"] if match else ""


@lru_cache(maxsize=16_384)
def bare(heading: str) -> str:
    """Return a heading without markup, and without what stands in parentheses at its end."""
    text = _ROLE.sub(r"\1", heading.strip())
    text = re.sub(r"\s*\([^()]*\)\s*$", "", _NUMBERED.sub("", text))
    return re.sub(r"[`*]", "", text).strip(" #:")


@lru_cache(maxsize=4096)
def _pattern(name: str) -> re.Pattern[str]:
    words = [re.escape(word) for word in name.split()]
    before = r"(?<![\w-])(?<!\w\.)" if name[:1].isalnum() or name[:1] == "_" else r"(?<![\w.-])"
    return re.compile(before + r"\s+".join(words) + r"(?:'s)?(?![\w]|-\w|\.\w)", re.IGNORECASE)


def is_named_in(name: str, text: str) -> bool:
    """Return whether a text names this, and not only something whose longer name it is a part of."""
    for match in _pattern(name).finditer(text):
        if not name[:1].isupper() or name.isupper():
            return True
        before = re.search(r"([A-Z][\w'-]+) $", text[max(0, match.start() - 40) : match.start()])
        after = re.match(r"(?:'s)? ([A-Z][a-z][\w'-]+)", text[match.end() : match.end() + 40])
        if (
            before is None or before[1].lower() in _LEADING or _starts(text, match.start() - len(before[0]))
        ) and not after:
            return True
        if before and before[1].lower() in _LEADING and not after:
            return True
    return False


def _starts(text: str, at: int) -> bool:
    """Return whether a sentence starts at a place, where the first word is capitalised whatever it is."""
    return at == 0 or text[:at].rstrip()[-1:] in ".!?:\n"


def _names_only(heading: str, head: str) -> bool:
    """Return whether a heading is a signature or a name with its gloss, and no phrase that begins with the word."""
    if re.search(r"[\W_\d]", head):
        return True
    behind = heading.casefold().partition(head)[2].lstrip("`*")
    return re.match(r"\s*(?:$|[(\[{<=:,;/\u2013\u2014-])", behind) is not None


def is_head(name: str, heading: str, inside: tuple[str, ...] = ()) -> bool:
    """Return whether a heading is that of the thing named; the first parts of a dotted name may stand in `inside`."""
    wanted = name.removesuffix("()").casefold()
    if re.split(r"[.:/\s]", wanted)[-1] not in heading.casefold():
        return False
    text = bare(heading).casefold()
    head = head_of(heading).casefold()
    if wanted in (text, text.removeprefix("the ")) or (wanted == head and _names_only(heading, head)):
        return True
    if "." in wanted.strip("."):
        module, _, last = wanted.rpartition(".")
        if last in (head, head.rpartition(".")[2]) and (head == last or wanted.endswith(head)):
            rest = set(_TITLE_WORDS.findall(" ".join(inside).casefold()))
            return head != last or set(_TITLE_WORDS.findall(module)) <= rest
    elif re.fullmatch(r"[\w-]+", wanted) and head.rpartition(".")[2] == wanted and "." in head:
        return True
    signatures = re.split(r"\)\s+", heading)
    if len(signatures) > 1 and any(head_of(each).casefold() == wanted for each in signatures):
        return True
    names = re.split(r",\s+|\s+/\s+|\s+or\s+", "" if "(" in heading else bare(heading))
    return len(names) > 1 and any(head_of(each).casefold() == wanted for each in names)


def is_verbal(attribute: str) -> bool:
    """Return whether the head of a column goes on from its row's name, and names no property: "born in", "joined"."""
    return _VERBAL.search(attribute.strip()) is not None
