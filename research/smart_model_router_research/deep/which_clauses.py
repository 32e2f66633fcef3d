"""Clauses of "which" behind a comma that may be left out: they only say more."""

from __future__ import annotations

import re
from collections.abc import Sequence

from smart_model_router_research.deep.clause_forms import AUXILIARIES, DETERMINERS, PREPOSITIONS
from smart_model_router_research.deep.words import Item

_SETTLED = frozenset(
    "allowed allows granted grants led leads resulted results contains contained consists consist_of consists_of "
    "consisted includes included belongs belonged separates separated brought brings won wins gained "
    "gains occupied occupies boosted ushered enabled enables stands stood flows borders connects serves served "
    "opened cost improved culminated maintains improves saw accepted formed houses comprises supports acts "
    "triggered suppressed reached recalled conferred references defines feeds rises crosses weighs lists "
    "describes explains produces employs sells supplies carries meets protects drained "
    "lay united replenished surrounds began took governed".split()
)
"""Verbs of asides that only say more: "which belongs to the ministry"."""
_MADE = frozenset(
    "known called named founded located situated built owned run managed published released "
    "established created introduced discovered designed formed referred included cooked opened operated painted "
    "printed produced developed inherited copied wrapped occupied marred exhausted supplied spoken worn grown eaten "
    "sold kept stored drawn dug woven baked boiled shared linked connected surrounded bordered fed drained planted "
    "listed described explained displayed updated maintained repaired restored renovated decorated equipped fitted "
    "cast laid brewed carved moulded engraved bottled knitted sewn donated inaugurated excavated "
    "attached mounted installed celebrated visited inhabited caught bred taught edited financed "
    "funded elected appointed chosen composed refined served struck".split()
)
"""Participles of asides that only say more: "which was built by his son"."""


def only_adds(items: Sequence[Item]) -> bool:
    """Return whether a clause of "which" only says more: by a verb that settles nothing of the rest."""
    words = [item for item in items[1:] if item.key == "not" or not _IN_ASIDES.fullmatch(item.written)]
    if [item.written for item in words] in (["is", "the", "default"], ["are", "the", "default"]):
        return True
    if not words or any(item.turns and item.key not in AUXILIARIES | _HARMLESS_IN_ASIDES for item in words):
        return False
    verb = words[0].written.lower()
    if _has_bad_name(words[1:]):
        return False
    if verb in ("makes", "made"):
        return _SUPERLATIVE.match(" ".join(item.written for item in words[1:])) is not None
    said = words[1].written if len(words) > 1 else ""
    if verb in ("is", "are", "was", "were"):
        if len(words) > 2 and words[1].kind == "number":
            return words[2].written in ("long", "wide", "high", "deep", "old", "thick")
        is_plain = said in _NAMED or not any(item.key in _QUALIFYING for item in words[2:3])
        place = words[2].written if len(words) > 2 else ""
        is_place = said in ("in", "at", "on", "near") and place[:1].isupper()
        return said == "half" or is_place or (said in _MADE and is_plain)
    if verb in ("became", "becomes", "joined", "renamed"):
        return len(words) > 1 and words[1].key in DETERMINERS | {"her", "him", "them"}
    if verb == "lies":
        return bool(said) and (words[1].key in PREPOSITIONS or words[1].kind == "number")
    if verb in ("has", "have", "had"):
        return len(words) > 1 and words[1].key in DETERMINERS
    return verb in _SETTLED


_NAMED = frozenset("referred known called copied".split())
_QUALIFYING = frozenset("to out off apart as a an be have".split())
"""Words behind a participle that make another thing of it: "made to fail", "sold as gold"."""


def _has_bad_name(items: Sequence[Item]) -> bool:
    """Return whether one of these words is a name of what is not so: "myth", "estimate"."""
    return any(item.written in _BAD_NAMES for item in items)


_BAD_NAMES = frozenset(
    "myth hoax lie joke mistake error misconception fiction legend rumour rumor claim guess estimate forecast goal "
    "target dream hope proposal draft fallacy superstition theory hypothesis opinion exception case maximum minimum "
    "limit loss lies lot part fraction misprint flaw flaws errors mistakes exemptions exceptions forger ruins mice "
    "rats drafts estimates forecasts children".split()
)
_SUPERLATIVE = re.compile(r"(?:it|them|him|her) the \w+est\b")
_IN_ASIDES = re.compile(r"also|then|since|\w+ly")
_HARMLESS_IN_ASIDES = frozenset(
    "first last during since both some many most large still about up over next every all lies below half".split()
)
