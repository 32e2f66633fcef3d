"""Clauses told by the forms of their words: where a second one may begin, and how many verbs there are."""

from __future__ import annotations

import re
from collections.abc import Sequence

from smart_model_router_research.deep.words import Item

CONJUNCTIONS = frozenset("if when whenever while because after before until unless since although once except".split())
PREPOSITIONS = frozenset(
    "by in on at for because_of during as under within throughout upon through via with without from instead_of "
    "between beginning starting following according_to".split()
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
_PAST = frozenset(
    "began became broke brought built bought came chose cost cut drew fell fought gave got grew held hit kept "
    "killed laid led left lost met paid put ran rose sank sat saw sent set shot sold spent stood stole swam "
    "taught took threw went won wrote written given taken known grown drawn fallen chosen broken lent rang sang "
    "spoke spoken struck wore beat born bred burnt dealt drove driven ate eaten flew flown forgot froze hid rode "
    "slept slid split spread sprang strove swept swung tore torn woke wove".split()
)
DETERMINERS = frozenset("the a an its their his her this these those".split())
FINITE = frozenset(
    "is are was were has have had did became took saw began came went gave grew fell rose arose drew threw knew chose "
    "drove spoke wrote ate flew forgot".split()
)
"""Forms that are no participles: a noun with one of these is a statement."""
BE = frozenset("is are was were be been being".split())
BETWEEN_VERBS = re.compile(r"not|never|also|\w+ly")
_NO_PARTICIPLES = frozenset(
    "during following king ring thing nothing something anything everything spring string morning evening "
    "building according including ceiling".split()
)


def verb_runs(items: Sequence[Item]) -> int:
    """Return how many verbs there are, as far as their forms tell; an auxiliary and its verb are one."""
    runs, inside = 0, False
    for item, before in zip(items, [None, *items], strict=False):
        word = item.written.lower()
        is_attribute = before is not None and before.key in DETERMINERS
        is_verb = word in AUXILIARIES or word in _PAST or (word.isalpha() and word.endswith("ed") and len(word) > 3)
        if item.kind == "word" and is_verb and not is_attribute:
            runs += not inside
            inside = True
        elif not BETWEEN_VERBS.fullmatch(word):
            inside = False
    return runs


def joins_or_embeds(items: Sequence[Item], *, infinitives: bool = True) -> bool:
    """Return whether another clause may begin among these items: then an adverbial may be of either.

    Infinitives behind "to" count as clauses where `infinitives` says so.
    """
    for at, item in enumerate(items):
        word = item.written.lower()
        after = items[at + 1] if at + 1 < len(items) else None
        if item.key == "than" and after is not None and after.kind == "number":
            continue
        if item.key in ("but", "nor", "that", "than", "so", "how", "not_only") or word.startswith("wh"):
            return True
        is_attribute = at > 0 and items[at - 1].key in DETERMINERS
        is_noun = is_attribute and (after is None or after.key in PREPOSITIONS | BE | {"of"})
        is_passive = (
            at > 0
            and items[at - 1].key in BE
            and (after is None or after.key in PREPOSITIONS or after.written.endswith("ly"))
        )
        if (word in _TAKES_A_CLAUSE and not is_noun and not is_passive) or item.key in CONJUNCTIONS:
            return True
        is_participle = item.written.islower() and word.isalpha() and word.endswith("ing") and len(word) > 4
        if is_participle and not is_attribute and word not in _NO_PARTICIPLES:
            return True
        infinitive = infinitives and (
            after is None
            or not (
                after.kind != "word" or after.written[:1].isupper() or after.key in ("the", "a", "an", "its", "this")
            )
        )
        if word == "to" and infinitive:
            return True
    return False
