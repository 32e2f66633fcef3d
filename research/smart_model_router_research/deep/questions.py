"""Questions read by patterns: the kind of answer that is wanted, the entities, and the words to be vouched for.

No model is asked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum

from smart_model_router_research.deep.asked_phrases import in_plain_words
from smart_model_router_research.deep.matching import WORD, alternatives, stem_of


class Wanted(StrEnum):
    """The kinds of answer."""

    FACT = "fact"
    NUMBER = "number"
    DATE = "date"
    VERSION = "version"
    PERSON = "person"
    PLACE = "place"
    LIST = "list"
    DEFINITION = "definition"
    YES_NO = "yes_no"
    OPEN = "open"


class Superlative(StrEnum):
    """The extremes that can be asked for."""

    LARGEST = "largest"
    SMALLEST = "smallest"
    EARLIEST = "earliest"
    LATEST = "latest"


_KINDS = {
    Wanted.NUMBER: "number",
    Wanted.DATE: "date",
    Wanted.LIST: "list",
    Wanted.DEFINITION: "open",
    Wanted.OPEN: "open",
}


@dataclass(frozen=True, slots=True)
class QuestionTerm:
    """A word of a question that an answer has to vouch for, by its stem or one of the `others`. `weight` is 0 to 1."""

    stem: str
    others: frozenset[str]
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class QuestionPattern:
    """A question as it was read.

    `entities` are names, identifiers and quoted words, each of which an answer has to name; `numbers` have to stand in
    it as they are. `asked_noun` is the noun behind "which" or "how many". `clause` describes an entity that is to be
    found first, and `outer` is the question with a gap for it; without `is_named` the clause names nothing itself.
    `rivals` are two things that are compared.
    """

    text: str
    wanted: Wanted
    terms: tuple[QuestionTerm, ...] = ()
    entities: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    asked_noun: str = ""
    measure: str = ""
    superlative: Superlative | None = None
    clause: str = ""
    outer: str = ""
    is_named: bool = True
    rivals: tuple[str, ...] = ()
    verb: str = ""
    """The stem of the verb of "What does X VERB?"."""
    needs_number: bool = False
    """The attribute is a measure: an answer has a number."""

    @property
    def kind(self) -> str:
        """The kind of the sub-question."""
        return "comparison" if self.rivals else _KINDS.get(self.wanted, "fact")


GAP = "\N{WHITE SQUARE}"
"""Stands in `outer` for the entity that is found first."""

_PREFIXES: tuple[tuple[Wanted, re.Pattern[str]], ...] = tuple(
    (wanted, re.compile(pattern, re.IGNORECASE))
    for wanted, pattern in (
        (
            Wanted.VERSION,
            (
                r"(?:in|since|as of|from|with|by|starting (?:in|with)) (?:which|what) (?:[\w.+#-]+ )?(?:version"
                r"|release)\b(?: of [\w.+#-]+)?"
            ),
        ),
        (
            Wanted.VERSION,
            r"(?:which|what) (?:[\w.+#-]+ )?(?:version|release)\b(?: of [\w.+#-]+)?(?! (?:number )?(?:is|of)\b)",
        ),
        (
            Wanted.DATE,
            (
                r"(?:when|(?:in|on|since|during|by|until|from) (?:which|what) (?:year|date|day|month|century"
                r"|decade)|(?:which|what) (?:year|date|day|century|decade)|what (?:is|was) the (?:year"
                r"|date)(?: (?:of|in which|on which|when))?)\b"
            ),
        ),
        (
            Wanted.NUMBER,
            r"how (?:many|much|long|far|old|large|big|high|tall|deep|wide|broad|heavy|fast|often|small|hot|cold)\b",
        ),
        (Wanted.NUMBER, r"(?:what|which) (?:percentage|percent|proportion|fraction|share|number)\b(?: of)?"),
        (Wanted.NUMBER, r"what (?:is|was) the (?:number|percentage|proportion|share|amount) of\b"),
        (Wanted.PERSON, r"(?:by |to |from )?who(?:m|se)?\b(?! name)"),
        (Wanted.PLACE, r"where\b"),
        (Wanted.DEFINITION, r"(?:define|describe|what does (?=.* (?:do|mean|stand for|represent|refer to)\b))"),
        (
            Wanted.LIST,
            r"(?:list|name|enumerate|give)\b(?: all| me)?(?: the)?|what are (?:all )?the (?=\w+ )|(?:what|which) are\b",
        ),
        (Wanted.OPEN, r"(?:how (?:do|does|did|can|could|should|is|are|to)|why|explain|in what way)\b"),
        (Wanted.YES_NO, r"(?:is|are|was|were|does|do|did|can|could|has|have|had|should|must|will|may)\b"),
        (
            Wanted.FACT,
            (
                r"(?:(?:in|on|at|for|to|from|with|by|under|of|through|into) )?(?:what|which)(?:'s| is| was| are"
                r"| were| does| do| did)?\b(?: the name of| called)?"
            ),
        ),
    )
)
_NOUN = re.compile(
    r"(?:(?:in|on|at|for|to|from|with|by|under|of|through|into) )?(?:what|which|how many|how much)(?: other"
    r"| different| of the| of)? ([a-z-]+)",
    re.IGNORECASE,
)
_EXTREMES = {
    Superlative.LARGEST: "largest biggest longest highest tallest deepest widest heaviest most oldest greatest fastest "
    "maximum hottest farthest",
    Superlative.SMALLEST: "smallest shortest lowest shallowest narrowest lightest fewest least youngest slowest "
    "minimum coldest nearest",
    Superlative.EARLIEST: "earliest first",
    Superlative.LATEST: "latest newest last",
}
_EXTREME_OF = {word: extreme for extreme, words in _EXTREMES.items() for word in words.split()}
MEASURES = {
    **dict.fromkeys(("longest", "shortest"), "length"),
    **dict.fromkeys(("highest", "tallest"), "height"),
    **dict.fromkeys(("oldest", "youngest"), "age"),
    **dict.fromkeys(("fastest", "slowest"), "speed"),
    "deepest": "depth",
    "widest": "width",
    "heaviest": "weight",
}
"""The attribute that a superlative compares."""
STOP = frozenset(
    "a an the of in on at to for from by with about as into onto over under between among and or but is are "
    "was were be been "
    "being am do does did doing has have had having it its this that these those there their them they he she "
    "his her him you "
    "your we our i me my what which who whom whose when where why how can could should would will shall may "
    "might must if "
    "than then so such please tell know need want given any all each every some same own upon per via not no "
    "become became get got gets one s t don doesn isn".split()
)
SLIGHT = frozenset(
    "value values number amount name names named called kind exact exactly current currently official "
    "officially total overall used use "
    "uses using made make makes happen happened happens following various available include includes included "
    "main belong belongs "
    "country countries city cities person people thing things item items way ways word words term version "
    "release python year date "
    "according section document documentation page method function class module command option setting "
    "parameter field property "
    "different specified specify specifies provide provides provided exist exists found done work works "
    "considered described mentioned "
    "first time take takes taken short long full stand stands mean means".split()
)
_NAME = re.compile(
    r"[A-Z][\w\u2019'-]*(?:\.(?=\w)[\w]+)*(?:,? (?:(?:of|and|the|de|da|do|la|el|del|von|van|der|bin|al|y"
    r"|&) ){0,2}[A-Z][\w\u2019'-]*)*"
)
_QUOTED = re.compile(r"[`\"\u201c]([^`\"\u201c\u201d]{1,120})[`\"\u201d]|(?<!\w)'([^']{1,60})'(?!\w)")
_IDENTIFIER = re.compile(
    r"(?<![\w.])(?:--?[a-zA-Z][\w-]*|\.[a-z]\w*|/[\w./-]+|@\w+|\$\w+|%\w|[A-Za-z]\w*(?:(?:\.|::|->|/"
    r"|_)\w+)+(?:\(\))?|\w+_\w*|_\w+"
    r"|[A-Za-z]\w*\(\)|[a-z]+[A-Z]\w*|[A-Za-z]+\d[\w.-]*|[A-Z]{2,}[\w-]*)"
)
_NUMBER = re.compile(r"(?<![\w.])\d[\d.,]*(?:\d|(?=\s|$|\?))|(?<![\w.])\d(?![\w.])")
_IN_UNIT = re.compile(
    r"\b(?:measured )?in (?:(?:square|cubic) )?(?:kilomet(?:er|re)s?|met(?:er|re)s?|miles|feet|km|sq km|kilograms?|kg"
    r"|years|days|hours|minutes|seconds"
    r"|milliseconds|ms|bytes|percent|degrees|celsius|us dollars|dollars|euros)\b(?=\W*$)",
    re.IGNORECASE,
)
_CLAUSE = re.compile(
    r"\b(?:the|a|an|that) (?P<noun>(?:[a-z-]+ ){0,2}[a-z-]+) (?P<clause>(?:that|which|who|where|in which"
    r"|on which) .+|whose .+|with (?:the )?.+|named .+|called .+)$",
)
_BY = re.compile(r"\b(?:by|in terms of|in|measured by) (?:its |the |their )?(?P<by>[a-z][a-z -]{2,40})$")


_HIGH_SUM = re.compile(
    r"^how (?:high|large|big)(?= (?:is|are|was|were) .*\b(?:fees?|prices?|costs?|rents?|deposits?|fines?|charges?"
    r"|salary|wages?)\b)",
    re.IGNORECASE,
)
"""The height of a sum of money, which is no length."""


VERSION_OF = re.compile(
    r"\b(?i:which|what) (?!(?:minor|major|first|last|latest|exact|current|stable|earliest|oldest|newest|next|previous"
    r"|new|old|other) )([a-z][\w+#-]+) (?:version|release)\b"
)
"""The thing whose version is asked for, in "which kernel version"."""


def read_question(text: str) -> QuestionPattern:
    """Return what a question asks for. A statement is read as a question for what it names."""
    text = " ".join(text.split()).strip().rstrip("?!. ")
    text = in_plain_words(_HIGH_SUM.sub("How much", text))
    if text.isupper() and " " in text:  # capitals of the keyboard name nothing
        text = text.lower()
    wanted, start, head = _wanted(text)
    rest = _IN_UNIT.sub("", text[start:])
    pattern = QuestionPattern(text, wanted)
    noun = _noun_of(text, wanted)
    superlative, measure = _superlative(text)
    if (defined := _DEFINED.match(text)) is not None and superlative is None:
        wanted, pattern = Wanted.DEFINITION, replace(pattern, wanted=Wanted.DEFINITION)
        rest, noun = f"`{defined[1] or defined[2]}`", ""
    entities, without = _entities(rest)
    numbers = tuple(dict.fromkeys(found.rstrip(".,") for found in _NUMBER.findall(without)))
    without = _NUMBER.sub(" ", without)
    of_what = VERSION_OF.search(text) if wanted is Wanted.VERSION else None
    without += f" {of_what[1]}" if of_what is not None else ""
    words = [(word, True) for word in WORD.findall(head)] + [(word, False) for word in WORD.findall(without)]
    terms: dict[str, QuestionTerm] = {}
    for word, in_head in words:
        lower = word.lower()
        if lower in STOP:
            continue
        stem = stem_of(lower)
        slight = lower in SLIGHT or (in_head and lower in ("long", "much", "many", "old"))
        others = alternatives(stem)
        weight = 0.25 if slight else 0.6 if lower == noun and wanted is not Wanted.NUMBER else 1.0
        terms.setdefault(stem, QuestionTerm(stem, others, weight))
    if re.match(r"how (?:many|much|long|large|big) .*\bcan\b", text, re.IGNORECASE):
        stem = stem_of("maximum")
        terms.setdefault(stem, QuestionTerm(stem, alternatives(stem) | {stem_of("up"), stem_of("than")}))
    pattern = replace(
        pattern,
        terms=tuple(terms.values()),
        entities=entities,
        numbers=numbers,
        asked_noun=noun,
        superlative=superlative,
        measure=measure,
        rivals=_rivals(text, entities),
        verb=_verb(text),
        needs_number=wanted in (Wanted.FACT, Wanted.NUMBER) and _measures(text),
    )
    return _with_clause(pattern)


_DEFINED = re.compile(
    r"what (?:is|are) (?:an? )?[`\"']?([^\W\d][\w.-]*(?: [a-z][\w-]*)?)[`\"']?$|"
    r"what (?:does|do) (?:the )?(?:(?:word|term) )?[`\"']?([\w.-]+)[`\"']? mean$",
    re.IGNORECASE,
)
"""Questions for what a thing is, named in two words at most."""


def _wanted(text: str) -> tuple[Wanted, int, str]:
    """Return the kind of answer, where the rest of the question begins, and what its head says of the answer."""
    for wanted, prefix in _PREFIXES:
        if (match := prefix.match(text)) is not None:
            head = match[0] if wanted is Wanted.NUMBER else ""
            return wanted, match.end(), head
    for wanted, prefix in _PREFIXES[:4]:  # "X was added in which version"
        if (match := prefix.search(text)) is not None and match.start():
            return wanted, 0, ""
    return Wanted.FACT, 0, ""


_NO_NOUN = frozenset("is are was were does do did has have had can could should will would must may of the it".split())


def _noun_of(text: str, wanted: Wanted) -> str:
    """Return the noun behind "which", "what" or "how many", one word or two; "" where there is none."""
    if wanted in (Wanted.VERSION, Wanted.DATE, Wanted.DEFINITION, Wanted.OPEN, Wanted.YES_NO):
        return ""
    match = _NOUN.match(text)
    if match is None:
        return ""
    return "" if match[1].lower() in _NO_NOUN else match[1].lower()


def _superlative(text: str) -> tuple[Superlative | None, str]:
    for word in WORD.findall(text.lower()):
        if word in _EXTREME_OF:
            return _EXTREME_OF[word], word
    return None, ""


def _entities(text: str) -> tuple[tuple[str, ...], str]:
    """Return names, identifiers and quoted words, and the text without them."""
    found: list[str] = []

    def take(match: re.Match[str]) -> str:
        words = next((group for group in match.groups() if group), match[0]) if match.groups() else match[0]
        words = re.sub(r"['\u2019]s?$", "", words).removesuffix("()").strip()
        if words and words not in found:
            found.append(words)
        return " \x00 "

    text = _QUOTED.sub(take, text)
    text = _IDENTIFIER.sub(take, text)
    text = _NAME.sub(lambda match: take(match) if match[0].lower() not in STOP else match[0], text)
    return tuple(found), text.replace("\x00", " ")


def _rivals(text: str, entities: tuple[str, ...]) -> tuple[str, ...]:
    lower = text.lower()
    compared = re.search(
        r"\b(?:compare|difference|compared|versus|vs|than|larger|bigger|smaller|longer|shorter|higher|lower"
        r"|older|younger|earlier|later|more|fewer|less|both|either)\b",
        lower,
    )
    names = entities
    if len(entities) == 1 and (joined := re.match(r"(.+?) (?:and|or) (.+)$", entities[0])):
        names = (joined[1], joined[2])
    return names if compared and len(names) == 2 else ()


_DOES = re.compile(
    r"(?:(?:in|on|at|for|to|from|with|by|under|of) )?what (?:does|do|did) .+? (\w+)"
    r"(?: (?:if|when|on|in|for|to|by|with|from|about|as|at|into|after|before|while)\b.*)?$",
    re.IGNORECASE,
)
_NO_VERBS = frozenset("do mean stand for represent refer to have".split())
_MEASURED = re.compile(
    r"^(?:what|which) (?:is|are|was|were) (?:the )?(?:[\w-]+ ){0,3}?(?:maximum|minimum|max|min|size|length|width|height"
    r"|depth|weight|number|limit|range|speed|distance|duration|age|capacity|price|cost|rate|temperature|percentage|port)\b",
    re.IGNORECASE,
)


def _verb(text: str) -> str:
    """Return the stem of the verb that ends "What does X VERB"; "" where there is none."""
    match = _DOES.match(text)
    return stem_of(match[1].lower()) if match and match[1].lower() not in _NO_VERBS else ""


def _measures(text: str) -> bool:
    return _MEASURED.match(text) is not None


def _with_clause(pattern: QuestionPattern) -> QuestionPattern:
    """Split "the capital of the country that borders X" at the entity that has to be found first."""
    if re.match(r"(?:which|what) (?:one )?of\b", pattern.text, re.IGNORECASE):
        return pattern
    match = _CLAUSE.search(pattern.text)
    if match is None or match.start() < 3:
        return pattern
    outer = f"{pattern.text[: match.start()]}{GAP}"
    clause = re.sub(
        r"^(?:that|which|who|where|in which|on which|with(?: the)?|whose|named|called) ", "", match["clause"]
    )
    head = read_terms(pattern.text[: match.start()])
    if not head:
        return pattern
    is_named = bool(_entities(clause)[0] or _NUMBER.search(clause))
    return replace(pattern, clause=clause, outer=outer, is_named=is_named)


def read_terms(text: str) -> tuple[str, ...]:
    """Return the stems of the telling words of a part of a question."""
    return tuple(dict.fromkeys(stem_of(word.lower()) for word in WORD.findall(text) if word.lower() not in STOP))
