"""Licensed edits: the changes to a sentence that cannot change what it says.

A claim follows from a sentence when its items, in order, are those of the sentence, or of one of its orders of clauses,
with parts left out that neither turn nor bound it. See `docs/design/checks.md`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from smart_model_router_research.deep.words import Item, is_english

MAX_ORDERS = 24
"""A sentence is read in at most so many orders of its clauses."""

_MOVABLE = frozenset(
    "if when whenever while by in on at for since because because_of although though after before until unless with "
    "without during as from under within throughout upon through via except instead_of between beginning starting "
    "following according_to once".split()
)
"""Words that begin a clause or an adverbial that may stand first or last."""
_BINDING = frozenset("only not even just except especially particularly mainly mostly never no or and than as".split())
"""Words that a clause cannot be moved away from."""
_COORDINATING = frozenset("and or but".split())
_EMBEDDING = frozenset(
    "that whether which where when while if because say says said claim claims claimed believe announce "
    "announces announced promise promises promised think thinks thought hope hopes hoped order orders ordered plan "
    "plans planned".split()
)
"""Words behind which an adverbial at the end belongs to another clause than one at the beginning."""
_ARTICLES = frozenset("a an the".split())
_COUNTING = frozenset(
    "number majority minority couple pair single second third fourth fifth sixth seventh eighth ninth tenth final "
    "most few little many much only first last next more less least other".split()
)
"""Words whose article says how many, or which one."""
_FOCUS = frozenset(
    "only even just solely merely exclusively mainly mostly primarily especially particularly at_least at_most".split()
)
"""Words that point at another one: a clause that moves past them is pointed at, or no longer."""
_REASONS = frozenset("because because_of since as".split())
"""Words whose clause a negation before them may deny."""
_VERBS = frozenset("is are has have was were had did".split())
_RESTRICTING = _MOVABLE | frozenset("where whether of per only not est".split())
"""Words that begin a parenthesis which says when or where the sentence holds."""
_ABOUT = frozenset("about approximately almost nearly roughly around".split())
_PAST = _ABOUT | frozenset("was were had did".split())
_ASIDE = _PAST | frozenset(
    "first last next later earlier previously formerly originally still already yet ago since during where most mostly "
    "mainly largely some many much half up down over under few".split()
)
"""Words that turn or bound a sentence, but not from within a clause of "which"."""
_DENYING = frozenset(
    "misconception claim belief rumour reject believe deny fake parody defunct repeal repealed expire expired lapse "
    "lapsed abolish abolished revoke revoked void invalid annul annulled suspend suspended loss target projection goal "
    "legend hypothesis theory allegation accusation proposal propaganda disinformation fallacy superstition".split()
)
"""Words that say of a statement that it does not, or no longer, hold."""
_SUBJECT_PRONOUNS = frozenset("it he she they we there".split())
_CLOSED_LISTS = frozenset("consist comprise sum total namely following".split())
"""Words whose list is whole: without its last item it is another."""
_CONDITIONS = frozenset("if when whenever unless until while where whether only except".split())
_SHARED = frozenset("not no never none neither both either between cannot without all any each every together".split())
"""Words whose reach goes on behind a comma."""
_FINITE = re.compile(r"^[a-z]+[^s]ed$")
"""A word in the form of a verb of the past."""
_OPENERS = frozenset(["(", "[", "{"])
_CLOSERS = frozenset([")", "]", "}"])
NAMED_NOUNS = frozenset(
    "option function method class module parameter argument variable command flag attribute property field directive "
    "operator exception setting constant decorator keyword type object macro target hook".split()
)
"""Nouns of what has an identifier for its name."""
_CUTS = frozenset([",", ";", ":", "-", "?"])


@dataclass(frozen=True, slots=True)
class Part:
    """A clause, or what stands in parentheses. `may_go` says that it can be left out."""

    items: tuple[Item, ...]
    in_parentheses: bool = False
    may_go: bool = False

    @property
    def first(self) -> object:
        """The key of its first item."""
        return self.items[0].key


def parts_of(items: Sequence[Item], *, whole: bool = False) -> list[Part]:
    """Return the parts of a sentence, cut at commas, semicolons, colons, dashes and parentheses, each marked.

    No part of a `whole` may go.
    """
    raw: list[Part] = []
    current: list[Item] = []
    depth = 0

    def cut(*, in_parentheses: bool = False) -> None:
        if current:
            raw.append(Part(tuple(current), in_parentheses))
            current.clear()

    for item in items:
        if item.kind != "mark":
            current.append(item)
        elif item.key in _OPENERS:
            if depth == 0:
                cut()
            depth += 1
        elif item.key in _CLOSERS and depth:
            depth -= 1
            if depth == 0:
                cut(in_parentheses=True)
        elif depth == 0 and item.key in _CUTS:
            cut()
    cut(in_parentheses=depth > 0)
    english = not whole and is_english(list(items))
    return [Part(part.items, part.in_parentheses, english and _may_go(raw, n)) for n, part in enumerate(raw)]


def _may_go(parts: Sequence[Part], number: int) -> bool:
    part = parts[number]
    harmless = _ABOUT if part.in_parentheses else _ASIDE if part.first == "which" else _PAST
    if number == 0 or any(item.turns and not _is_one_of(item, harmless) for item in part.items):
        return False
    if part.in_parentheses:
        return part.first in _ABOUT or (part.first not in _RESTRICTING and _explains(part.items))
    if part.first == "which":
        return not any(item.key in _DENYING or item.written.lower().strip("*_") in _DENYING for item in part.items)
    if part.first != "and" or any(not later.in_parentheses and later.first != "and" for later in parts[number + 1 :]):
        return False
    before = parts[:number]
    if not _is_clause(part, is_second=all(each.in_parentheses for each in before[1:])):
        return False
    if any(item.key in _SHARED for item in before[-1].items):
        return False
    # A condition that the part may belong to: it stands further in than the first clause, or right before.
    leading = before[0].first in _CONDITIONS and len(before) > 1 and before[-1].first not in ("and", "or")
    inner = before[1:] if leading else before
    return not any(item.key in _CONDITIONS | _CLOSED_LISTS for part in inner for item in part.items)


def _explains(items: Sequence[Item]) -> bool:
    """Return whether a parenthesis only says more of something: an abbreviation, or three words and more."""
    if len(items) == 1:
        return items[0].kind == "identifier" and items[0].written.isupper() and items[0].written.isalpha()
    return len(items) > 2 and not any(item.key in _DENYING for item in items)


def _is_one_of(item: Item, words: frozenset[str]) -> bool:
    return item.key in words or item.written.lower() in words


def _is_clause(part: Part, *, is_second: bool) -> bool:
    """Return whether a part has a verb of its own: the last item of a list is part of what the list says.

    Where the sentence has one other part alone it is no list of three, and a word in the form of a verb will do.
    """
    if len(part.items) > 2 and part.items[1].key in _SUBJECT_PRONOUNS:
        return True
    for item in part.items:
        if item.key in _VERBS or item.key == "that" or str(item.key).startswith("wh"):
            return item.key in _VERBS
    return is_second and any(_FINITE.search(item.written) for item in part.items[2:] if item.kind == "word")


def orders_of(parts: Sequence[Part]) -> Iterator[list[Part]]:
    """Yield the sentence as it is, and with a clause or adverbial of its beginning or end at the other end."""
    parts = list(parts)
    yield parts
    if not parts or any(item.key in _FOCUS for part in parts for item in part.items):
        return
    made = 1
    if len(parts) > 1:
        led = 1  # a clause with what stands in parentheses behind it
        while led < len(parts) - 1 and parts[led].in_parentheses:
            led += 1
        if parts[0].first in _MOVABLE and not parts[led].in_parentheses and not _embeds(parts[led:]):
            yield [*parts[led:], *parts[:led]]
            made += 1
        if parts[-1].first in _MOVABLE and not parts[-1].in_parentheses and not _binds(parts[:-1]):
            yield [parts[-1], *parts[:-1]]
            made += 1
    last = parts[-1]
    if last.in_parentheses or _binds(parts[:-1]):
        return
    denied = False
    for at in range(1, len(last.items)):
        denied = denied or last.items[at - 1].key in _SHARED
        if made >= MAX_ORDERS or last.items[at - 1].key in _COORDINATING | _EMBEDDING:
            return
        if denied and last.items[at].key in _REASONS:
            continue
        if last.items[at].key in _MOVABLE and last.items[at - 1].key not in _BINDING:
            head, tail = Part(last.items[:at]), Part(last.items[at:])
            yield [tail, *parts[:-1], head]
            made += 1


def _binds(parts: Sequence[Part]) -> bool:
    """Return whether an adverbial behind these clauses may belong to the last one alone."""
    return _embeds(parts) or any(item.key in _COORDINATING for part in parts for item in part.items)


def _embeds(parts: Sequence[Part]) -> bool:
    return any(item.key in _EMBEDDING or str(item.key).startswith("wh") for part in parts for item in part.items)


def follows(claim: Sequence[Item], parts: Sequence[Part]) -> bool:
    """Return whether the items of a claim, without marks, are those of the parts in order.

    Parts that may go can be left out as a whole, light words may come and go in English, and a word for "about" may
    come before a number.
    """
    flat: list[Item | Part] = []
    for part in parts:
        flat.append(part)
        flat.extend(part.items)
    light = is_english([item for part in parts for item in part.items])
    todo, seen = [(0, 0)], set[tuple[int, int]]()
    while todo:
        state = todo.pop()
        if state in seen:
            continue
        seen.add(state)
        ours, theirs = state
        source = flat[theirs] if theirs < len(flat) else None
        wanted = claim[ours] if ours < len(claim) else None
        if source is None and wanted is None:
            return True
        if isinstance(source, Part):
            todo.append((ours, theirs + 1))
            if source.may_go:
                todo.append((ours, theirs + 1 + len(source.items)))
            continue
        after = flat[theirs + 1] if theirs + 1 < len(flat) else None
        may_go = source is not None and source.is_light and not _is_bound(source, after, flat[theirs - 1])
        if source is not None and light and (may_go or _joins(flat, theirs) or _is_apposed(flat, theirs)):
            todo.append((ours, theirs + 1))
        if wanted is None:
            continue
        about = wanted.key == "about" and ours + 1 < len(claim) and claim[ours + 1].kind == "number"
        next_wanted = claim[ours + 1] if ours + 1 < len(claim) else None
        before = claim[ours - 1] if ours else None
        if (light and wanted.is_light and not _is_bound(wanted, next_wanted, before)) or about:
            todo.append((ours + 1, theirs))
        if (
            source is not None
            and wanted.same(source, about=ours > 0 and claim[ours - 1].key == "about")
            and not (_is_other_number(wanted, source) and _keeps_number(wanted, source, claim[:ours], flat[:theirs]))
        ):
            todo.append((ours + 1, theirs + 1))
    return False


def _joins(flat: Sequence[Item | Part], at: int) -> bool:
    """Return whether an item is an "and" between two clauses, for which a full stop can stand."""
    item = flat[at]
    return isinstance(item, Item) and item.key == "and" and at > 1 and isinstance(flat[at - 1], Part)


def _is_apposed(flat: Sequence[Item | Part], at: int) -> bool:
    """Return whether an item is "function" in "the function open_store()", which needs no such word."""
    item, after = flat[at], flat[at + 1] if at + 1 < len(flat) else None
    return isinstance(after, Item) and after.kind == "identifier" and isinstance(item, Item) and item.key in NAMED_NOUNS


def _is_bound(light: Item, after: Item | Part | None, before: Item | Part | None) -> bool:
    """Return whether a light word says something there: "the most", "a number of", "the then holder"."""
    if light.key == "then":
        return isinstance(before, Item) and before.key in _ARTICLES
    if light.key not in _ARTICLES or not isinstance(after, Item):
        return False
    return after.key in _COUNTING or after.written.lower() in _COUNTING


def _is_other_number(one: Item, other: Item) -> bool:
    """Return whether one of two nouns is the plural of the other."""
    mine, its = one.written.lower(), other.written.lower()
    return one.kind == other.kind == "word" and mine != its and (mine.endswith("s") != its.endswith("s"))


def _keeps_number(one: Item, other: Item, before: Sequence[Item | Part], before_other: Sequence[Item | Part]) -> bool:
    """Return whether a noun has no other number: a name (Adams is not Adam), and one with an article."""
    is_name = one.written[:1].isupper() or other.written[:1].isupper()
    return is_name or _has_article(before) or _has_article(before_other)


def _has_article(before: Sequence[Item | Part]) -> bool:
    """Return whether an article, with at most two words between, stands at the end of these."""
    for item in reversed(before[-3:]):
        if not isinstance(item, Item) or item.key in _MOVABLE | _COORDINATING | _VERBS:
            return False
        if item.key in _ARTICLES:
            return True
    return False


def unvouched(claim: Sequence[Item], source: Sequence[Item]) -> list[str]:
    """Return the words of a claim that stand nowhere in the source."""
    return [
        item.written
        for item in claim
        if not item.is_light and not any(item.same(other, about=True) for other in source)
    ]
