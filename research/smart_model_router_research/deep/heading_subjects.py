"""Names in headings, put in where a sentence says "This option" or "The default"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from smart_model_router_research.deep.clause_forms import AUXILIARIES
from smart_model_router_research.deep.folding import fold
from smart_model_router_research.deep.idle_words import NAMED_NOUNS
from smart_model_router_research.deep.labels import is_section
from smart_model_router_research.deep.sentence_parts import Part
from smart_model_router_research.deep.sentences import MAX_CHARACTERS, split_sentences, without_marks
from smart_model_router_research.deep.words import LIGHT, Item, read_items

_DIVISIONS = frozenset("section chapter article part clause paragraph rule appendix schedule".split())
"""Nouns of numbered parts of a text: "This section" is what the heading names."""
_DEFAULTS = frozenset("default defaults value maximum minimum range unit type".split())
_IDENTIFIER = re.compile(r"[A-Za-z_$-][\w.$:-]*")


_THE = Item("word", "the", "the")


def _is_about_its_heading(before: str, names: list[str]) -> bool:
    """Return whether the text between a heading and a sentence speaks of nothing else than the heading names.

    A sentence there may not begin with another thing ("The timeout limits it"), or name another identifier.
    """
    if len(before) > MAX_CHARACTERS:
        return False
    for sentence in split_sentences(fold(before)):
        words = re.findall(r"-{0,2}\w[\w'.-]*", without_marks(sentence))
        first, second = (word.casefold() for word in (*words[:2], "", "")[:2])
        is_other = first in _DETERMINERS and second.rstrip("s") not in _OF_THE_NAMED
        is_other = is_other or (first.endswith("s") and second in AUXILIARIES)
        has_other = any(_LIKE_A_NAME.match(word.rstrip(".")) and word.rstrip(".") not in names for word in words)
        if (is_other or has_other) and not any(word.rstrip(".") in names for word in words):
            return False
    return True


_DETERMINERS = frozenset("the a an its their his her each every another some no any that these those they".split())
_OF_THE_NAMED = NAMED_NOUNS | frozenset("default value".split())
_LIKE_A_NAME = re.compile(r"-|\w+[_]|\w[a-z]+[A-Z]|\w+\.[a-z]")
_SPECIFYING = frozenset(
    "specifies sets returns controls enables disables contains determines defines gives names lists prints raises "
    "indicates limits allows causes tells configures turns selects".split()
)
"""Verbs that begin a sentence whose subject is the heading."""


def named_readings(parts: list[Part], context: tuple[str, ...], before: str) -> Iterator[list[Part]]:
    """Yield the readings in which "This option" or "The default" is of what the heading names.

    "It" and "The option" may be of the sentence before.
    """
    if not parts:
        return
    if parts[0].first == "this" and context:
        yield from _of_division(context[-1], parts)
    determiner, *behind = list(parts[0].items)
    first = determiner.written
    label = _LABEL_OF_ITEM.search(before)
    names, before = (_ways_to_write(label[1]), label[2]) if label is not None else (_names(context), before)
    if label is None and (thing := _thing_of(context)) and _tells_of(before):
        yield from _of_thing(thing, parts)
    specifies = first[:1].isupper() and first.lower() in _SPECIFYING
    if not names or not (specifies or first.lower() in ("this", "the")) or not _is_about_its_heading(before, names):
        return
    if specifies:
        for name in names:
            yield [Part((Item("identifier", name, name), determiner, *behind)), *parts[1:]]
        return
    noun = behind[0].written.lower() if behind else ""
    rest = parts[1:]
    for name in names:
        named = Item("identifier", name, name)
        if determiner.key == "this" and noun in _IN_CODE:
            for subject in ((named,), (_THE, behind[0], named), (_THE, named, behind[0])):
                yield [Part((*subject, *behind[1:])), *rest]
        elif determiner.key == "the" and noun in _DEFAULTS:
            yield from _default_of((named,), parts)


def _tells_of(before: str) -> bool:
    """Return whether each sentence between a heading in words and another one begins with what it does: "Locks it."."""
    return all(_DOES.match(without_marks(sentence)) for sentence in split_sentences(fold(before)))


_DOES = re.compile(r"[A-Z][a-z]+s (?:the|a|an|all|how|it) |This (?:function|setting|mode|feature|endpoint|command) ")


def _of_division(heading: str, parts: list[Part]) -> Iterator[list[Part]]:
    """Yield "This section" as that of the heading, by its number alone, too."""
    noun = parts[0].items[1].written.casefold() if len(parts[0].items) > 1 else ""
    if noun and noun in _DIVISIONS and heading.casefold().startswith(f"{noun} "):
        for written in (heading, " ".join(heading.split()[:2]).rstrip(".:")):
            named = tuple(item for item in read_items(written) if item.kind != "mark")
            yield [Part((*named, *parts[0].items[2:])), *parts[1:]]


def _default_of(named: Sequence[Item], parts: list[Part]) -> Iterator[list[Part]]:
    """Yield "The default", "The default time zone" and "The value" as those of something."""
    items = parts[0].items
    width = 3 if items[2:3] and items[2].written.lower() in _DEFAULTS else 2
    if items[1].key == "default":
        width = next((at for at, item in enumerate(items[:6]) if item.key in ("is", "are", "was")), width)
    for preposition in ("of", "for"):
        link = Item("word", preposition, preposition)
        yield [Part((*items[:width], link, *named, *items[width:])), *parts[1:]]


def _of_thing(thing: str, parts: list[Part]) -> Iterator[list[Part]]:
    """Yield "This setting" and "The default" as those of a heading in words."""
    determiner, *behind = parts[0].items
    noun = behind[0].written.lower() if behind else ""
    named = [item for item in read_items(thing) if item.kind != "mark"]
    nouns = _IN_CODE if thing.islower() or "/" in thing else _THINGS
    if determiner.key == "this" and (noun in nouns or (" " in thing and noun == thing.rsplit(" ", 1)[-1].lower())):
        yield [Part((*named, *behind[1:])), *parts[1:]]
        yield [Part((_THE, *named, *behind[1:])), *parts[1:]]
    if determiner.key == "the" and noun == "default":
        yield from _default_of(named, parts)


_THINGS = frozenset("mode feature setting function".split())
"""Nouns of what a heading in words names."""
_IN_CODE = NAMED_NOUNS | frozenset("endpoint statement key setting query filter".split())
"""Nouns of what a heading in code names."""
_LABEL_OF_ITEM = re.compile(
    r"(?:^|\n)[ \t]*[-*+][ \t]+(?:\*\*|`)+([a-z_-][\w.-]*)(?:\*\*|`)+:?[ \t]*(?:\([^()\n]*\))?:?([^\n]*)$"
)
"""The marked name that begins an item of a list, and what stands between it and a sentence in its line."""


def _thing_of(context: tuple[str, ...]) -> str:
    """Return the one thing that the nearest heading names in words: "Child lock", and not "App settings"."""
    heading = context[-1] if len(context) > 1 else ""
    is_one = re.fullmatch(r"[A-Za-z]+(?: [A-Za-z]+){0,2}(?<!s)|[A-Z]+ /\S+", heading) is not None
    return heading if is_one and (" " in heading or heading.islower()) and not is_section(heading) else ""


def _names(context: tuple[str, ...]) -> list[str]:
    """Return the ways to write the one identifier of the nearest heading that has any; none where it has several."""
    for heading in reversed(context):
        found = {
            item.written.strip('"').split("(")[0].rstrip(".:=")
            for item in read_items(fold(heading))
            if item.kind == "identifier" and _IDENTIFIER.match(item.written.strip('"'))
        }
        if len(found) == 1:
            return _ways_to_write(found.pop())
        if found:
            return []
    return []


def _ways_to_write(name: str) -> list[str]:
    names = [name, f"{name}()"]
    if "." in name.strip("."):
        names += [name.rsplit(".", 1)[1], f"{name.rsplit('.', 1)[1]}()"]
    return [each for each in names if each not in LIGHT]
