"""Clauses told by the forms of their words: where a second one may begin, and how many verbs there are."""

from __future__ import annotations

import re
from collections.abc import Sequence

from smart_model_router_research.deep.words import Item

CONJUNCTIONS = frozenset("if when whenever while because after before until unless since although once except".split())
PREPOSITIONS = frozenset(
    "by in on at for because_of during as under within throughout upon through via with without from instead_of "
    "between beginning starting following according compared unlike".split()
)
MOVABLE = CONJUNCTIONS | PREPOSITIONS
"""Words that begin a clause or an adverbial that may stand first or last."""
FOCUS = frozenset(
    "only even just solely merely exclusively mainly mostly primarily especially particularly at_least at_most "
    "not_only also either both neither too so such then there".split()
)
"""Words that point at another one: a clause that moves past them is pointed at, or no longer."""
_TAKES_A_CLAUSE = frozenset(
    "say says said tell tells told think thinks thought believe believes believed claim claims claimed hope hopes "
    "hoped know knows knew known report reports reported announce announces announced admit admits admitted "
    "promise promises promised agree agrees agreed suggest suggests suggested deny denies denied estimate "
    "estimates estimated expect expects expected fear fears feared feel feels felt find finds found hear hears "
    "heard learn learns learned learnt see sees saw seen show shows showed shown state states stated swear swore "
    "warn warns warned wish wishes wished write writes wrote predict predicts predicted argue argues argued "
    "insist insists insisted note notes noted reckon suspect suspects suspected understand understood assume "
    "assumes assumed conclude concludes concluded confirm confirms confirmed decide decides decided declare "
    "declares declared dream dreamt guess imagine imagined mean means meant mention mentioned notice noticed "
    "realise realised realize realized recall recalled remember remembered reply replied reveal revealed rule "
    "ruled add added complain complained explain explains explained ensure ensures ensured pretend pretended "
    "propose proposed prove proves proved recommend recommends recommended request requested demand demands "
    "demanded require requires required ask asks asked order orders ordered make makes made let lets have help "
    "helps helped watch watched plan plans planned want wants wanted intend intends intended threaten threatened "
    "refuse refused offer offered vow vowed pledge pledged call calls called describe describes described".split()
)
"""Words behind which another clause may begin without any word that says so."""
AUXILIARIES = frozenset(
    "is are was were be been being has have had do does did can could may might must shall should will would".split()
)
_SAYING_NOW = frozenset(
    "saying claiming believing stating arguing thinking hoping reporting suggesting alleging fearing insisting".split()
)
_PAST = frozenset(
    "began became broke brought built bought came chose cost cut drew fell fought gave got grew held hit kept "
    "killed laid led left lost met paid put ran rose sank sat saw sent set shot sold spent stood stole swam "
    "taught took threw went won wrote written given taken known grown drawn fallen chosen broken lent rang sang "
    "spoke spoken struck wore beat born bred burnt dealt drove driven ate eaten flew flown forgot froze hid rode "
    "slept slid split spread sprang strove swept swung tore torn woke wove".split()
)
_ARTICLES = frozenset("the a an its their".split())
"""Words that no verb follows."""
DETERMINERS = frozenset("the a an its their his her this these those".split())
SAID_OF_MANY = frozenset(
    "keep lay eat grow live become begin bring build buy choose come contain create decide describe develop die fill "
    "find follow give go hear hold include join know learn lose make meet produce provide receive remain "
    "sell send serve sing sit sleep speak spend take teach tell think understand write depend consist exist belong "
    "travel arrive lead do".split()
)
"""Verbs of a plural that are no nouns."""
FINITE = frozenset(
    "is are was were has have had did became took saw began came went gave grew fell rose arose drew threw knew chose "
    "drove spoke wrote ate flew forgot broke froze hid rang rode sang sank shook shone slept sprang stole strove swam "
    "swore tore wept woke wore".split()
)
"""Forms that are no participles: a noun with one of these is a statement."""
BE = frozenset("is are was were be been being".split())
BETWEEN_VERBS = re.compile(r"not|never|also|\w+ly")
_NO_PARTICIPLES = frozenset(
    "during following king ring thing nothing something anything everything spring string morning evening "
    "building according including ceiling".split()
)


_OF_THINGS = frozenset(
    "claim claims claimed make makes made add adds added offer offers offered write writes wrote".split()
)
"""Verbs of these that rather have a thing for their object. "Ask a friend if ..." has a clause besides."""


def _takes_a_thing(items: Sequence[Item], at: int) -> bool:
    """Return whether a verb of a clause has a thing for its object: no verb can stand behind it.

    "You can claim the credit"; "the firm claims the bank owes it" has "owes".
    """
    behind = items[at + 1 :]
    starts = DETERMINERS | {"a_few", "a_little"}
    if items[at].written.lower() not in _OF_THINGS:
        return False
    if not behind or (behind[0].key not in starts and behind[0].kind != "number"):
        return False
    return verb_runs(behind) == 0 and not any(is_plural(item) or item.key in ("to", "and") for item in behind[2:])


def is_plural(item: Item | None) -> bool:
    """Return whether a word has the form of a plural, and so of no infinitive."""
    return item is not None and item.written.endswith("s") and not item.written.endswith(("ss", "us"))


def is_participle(word: str) -> bool:
    """Return whether a word has the form of a participle."""
    return word.endswith(("ed", "ing", "en")) or word in _PAST


def is_past(word: str) -> bool:
    """Return whether a word has the form of a verb's past."""
    return (word.endswith("ed") and len(word) > 3) or word in _PAST


def verb_runs(items: Sequence[Item]) -> int:
    """Return how many verbs there are, as far as their forms tell; an auxiliary and its verb are one."""
    runs, inside = 0, False
    for item, before in zip(items, [None, *items], strict=False):
        word = item.written.lower()
        is_attribute = before is None or before.key in DETERMINERS
        is_verb = word in AUXILIARIES or word in _PAST or (word.isalpha() and word.endswith("ed") and len(word) > 3)
        if item.kind == "word" and is_verb and not is_attribute:
            runs += not inside
            inside = True
        elif not BETWEEN_VERBS.fullmatch(word):
            inside = False
    return runs


def joins_or_embeds(items: Sequence[Item], *, infinitives: bool = True, participles: bool = True) -> bool:
    """Return whether another clause may begin among these items: then an adverbial may be of either.

    Infinitives behind "to" and participles count as clauses where `infinitives` and `participles` say so.
    """
    return any(
        _joins(items, at)
        or _takes_a_clause(items, at)
        or ((participles or item.written in _SAYING_NOW) and _is_participle_at(items, at))
        or (infinitives and _is_infinitive_at(items, at))
        for at, item in enumerate(items)
    )


def _joins(items: Sequence[Item], at: int) -> bool:
    """Return whether a conjunction or a relative pronoun stands here; "than 5", "all but" and "once a day" are none."""
    item, before = items[at], items[at - 1].key if at else ""
    after = items[at + 1] if at + 1 < len(items) else None
    if item.key == "than":
        return after is None or (after.kind != "number" and after.key not in DETERMINERS)
    if item.key == "once":
        return before != "than" and (after is None or after.key not in _OFTEN)
    if item.key == "but":
        return before != "all"
    is_relative = item.key in ("nor", "that", "so", "how", "not_only") or item.written.lower().startswith("wh")
    return is_relative or item.key in CONJUNCTIONS


_OFTEN = frozenset("every a per daily weekly monthly annually hourly nightly".split())


def _takes_a_clause(items: Sequence[Item], at: int) -> bool:
    """Return whether a verb stands here that may take a clause, and neither a noun nor one that has its object."""
    word = items[at].written.lower()
    if word not in _TAKES_A_CLAUSE or _takes_a_thing(items, at):
        return False
    before, after = items[at - 1].key if at else "", items[at + 1] if at + 1 < len(items) else None
    ends = after is None or after.key in PREPOSITIONS
    is_noun = before in _ARTICLES or (before in DETERMINERS and (after is None or ends or after.key in BE | {"of"}))
    is_passive = before in BE and (after is None or ends or after.key == "to" or after.written.endswith("ly"))
    is_perfect = word == "have" and after is not None and (is_participle(after.written) or after.key in _OF_PERFECTS)
    return not (is_noun or is_passive or is_perfect)


_OF_PERFECTS = frozenset("been also already not".split())


def _is_participle_at(items: Sequence[Item], at: int) -> bool:
    """Return whether a clause of a participle may begin here: "selling bread"; "the working day" has none."""
    word, before = items[at].written, items[at - 1].key if at else ""
    if not (word.islower() and word.isalpha() and word.endswith("ing") and len(word) > 4) or word in _NO_PARTICIPLES:
        return False
    is_subject = at + 1 < len(items) and items[at + 1].key in BE
    return before not in DETERMINERS | _BEFORE_NOUNS and not is_subject


_BEFORE_NOUNS = frozenset("next last first following previous new main".split())


def _is_infinitive_at(items: Sequence[Item], at: int) -> bool:
    """Return whether "to" stands here with a verb behind it, and with no name, number, article or plural."""
    if items[at].written.lower() != "to":
        return False
    after = items[at + 1] if at + 1 < len(items) else None
    if after is None:
        return True
    is_thing = after.kind != "word" or after.written[:1].isupper() or after.key in ("the", "a", "an", "its", "this")
    return not is_thing and not is_plural(after)
