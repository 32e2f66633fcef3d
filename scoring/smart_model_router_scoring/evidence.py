"""Evidence that an index answers a question, from its best passages (words, cosines); and the score that it makes.

Two numbers: how relevant one passage is, and whether the index answers the question at all. Both are logistic in
features that never lower a score, each measured in spreads above what questions score that the index cannot answer
(the null, asked when the index is made). Without the null no threshold fits two indexes.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import pairwise
from types import MappingProxyType

from smart_model_router_scoring.explain import Term, combined, given, sigmoid
from smart_model_router_scoring.options import ConfigError, check_number

WINDOW = 30
"""Stems: about two sentences."""
NEAR = 5
"""Stems between two words that belong together."""
BEST = 10
"""Passages that are looked at, in the order in which keyword search found them."""

WORDS: tuple[str, ...] = ("window", "near", "heading")
COSINES: tuple[str, ...] = ("cosine", "cosine_telling")
PASSAGE: tuple[str, ...] = (*WORDS, *COSINES)
QUESTION: tuple[str, ...] = ("known", "breadth")
ATTAINMENT = "attainment"
COSINE_COUNTS = 2.0
"""Of a cosine beside two shares, in the choice of the best passage."""
Features = Mapping[str, float]
Stems = Sequence[str]
Cosines = tuple[float, float]
"""Those of a passage with the question, and with the question's telling words."""
NO_COSINES: Cosines = (0.0, 0.0)
"""Where there are no vectors, or none that are evidence."""


def information(count: int, chunks: int) -> float:
    """The weight of a word that `count` of `chunks` have, as in BM25, but never below 0."""
    return math.log1p(max(chunks - count + 0.5, 0.0) / (count + 0.5))


@dataclass(frozen=True, slots=True)
class QuestionTerms:
    """The telling words of a question as stems, with what each tells in this index.

    `pairs` are words that follow each other; `whole`, `paired` and `known` the information of all words, of those of
    all pairs and of the words that the index has.
    """

    information: Mapping[str, float]
    pairs: tuple[tuple[str, str], ...]
    whole: float
    paired: float
    known: float

    @classmethod
    def of(cls, stems: Stems, counts: Mapping[str, int], chunks: int) -> QuestionTerms:
        """The question of these stems, in order. `counts` has the number of chunks of each."""
        told = {stem: information(counts[stem], chunks) for stem in stems}
        pairs = tuple((one, other) for one, other in pairwise(stems) if one != other)
        known = math.fsum(value for stem, value in told.items() if counts[stem])
        paired = math.fsum(told[stem] for pair in pairs for stem in pair)
        return cls(told, pairs, math.fsum(told.values()), paired, known)

    def share(self, stems: Iterable[str], of: float) -> float:
        """The information of these of its stems, as a share of `of`, which is that of these and others."""
        return math.fsum(map(self.information.__getitem__, stems)) / of if of else 0.0


class WordEvidence:
    """The words of a question that a passage has. `share`: how much of the question's information they are.

    `heading` and `body` are stems, in order, with one space between two.
    """

    def __init__(self, question: QuestionTerms, heading: str, body: str) -> None:
        told, self._framed = question.information, f" {body} "
        self._question = question
        self._above = told.keys() & heading.split()
        self._below = [stem for stem in told if stem not in self._above and f" {stem} " in self._framed]
        self._has = self._above.union(self._below)
        self.share = question.share(self._has, question.whole)

    @cached_property
    def features(self) -> Features:
        """Shares of the question's information. Computed when it is asked for: most passages are not.

        window: in its best WINDOW stems and the heading. near: in pairs of words that follow each other in the question
        and stand together here, or of which the heading has one. heading: in the heading. The share in the whole
        passage and the number of words found add nothing on other collections.
        """
        question, above, has = self._question, self._above, self._has
        places = {stem: _places(stem, self._framed) for stem in self._below} if len(self._below) > 1 else {}
        near = [stem for pair in question.pairs if _together(pair, above, has, places) for stem in pair]
        window = _best_window(question.information, above, places) if places else has
        return {
            "window": question.share(window, question.whole),
            "near": question.share(near, question.paired) if question.pairs else float(bool(has)),
            "heading": question.share(above, question.whole),
        }


@dataclass(frozen=True, slots=True)
class PassageEvidence:
    """The evidence of one passage."""

    words: WordEvidence
    cosines: Cosines = NO_COSINES

    @property
    def share(self) -> float:
        """The share of the question's information that it has."""
        return self.words.share

    @property
    def features(self) -> Features:
        """Those of its words, and its cosines."""
        return {**self.words.features, **dict(zip(COSINES, self.cosines, strict=True))}

    @property
    def standing(self) -> float:
        """Its place among the passages of a question: the greatest is the best one."""
        return self.share + self.words.features["window"] + COSINE_COUNTS * self.cosines[0]

    @property
    def most_standing(self) -> float:
        """The number that `standing` is not above, without its features: a window has no more than the passage."""
        return self.share + self.share + COSINE_COUNTS * self.cosines[0]

    def with_cosines(self, cosines: Cosines) -> PassageEvidence:
        """The same with cosines."""
        return PassageEvidence(self.words, cosines)


def _places(stem: str, framed: str) -> list[int]:
    """The places of a stem in a text of stems that begins and ends with a space. Cutting the text takes longer."""
    word, places = f" {stem} ", []
    place = last = 0
    at = framed.find(word)
    while at >= 0:
        place += framed.count(" ", last, at)
        places.append(place)
        last, at = at, framed.find(word, at + len(word) - 1)
    return places


def _together(pair: tuple[str, str], above: set[str], has: set[str], places: Mapping[str, Sequence[int]]) -> bool:
    one, other = pair
    if one not in has or other not in has:
        return False
    if one in above or other in above:
        return True
    return any(abs(mine - place) <= NEAR for mine in places[one] for place in places[other])


def _best_window(told: Mapping[str, float], above: set[str], places: Mapping[str, Sequence[int]]) -> list[str]:
    """The stems of the heading and of the WINDOW of the body that tells most. `places` are of stems of the body."""
    heading: list[str] = [*above]
    best, most = heading, 0.0
    held: dict[str, int] = {}  # the last place of each stem of the window
    for place, stem in sorted((place, one) for one, where in places.items() for place in where):
        new = held.get(stem, -WINDOW) <= place - WINDOW
        held[stem] = place
        if new:  # no window tells more than the one that ends where a stem enters
            inside = heading + [one for one, last in held.items() if last > place - WINDOW]
            value = math.fsum(map(told.__getitem__, inside))
            if value > most:
                best, most = inside, value
            if len(inside) == len(above) + len(places):
                break
    return best


def question_evidence(question: QuestionTerms, passages: Sequence[PassageEvidence]) -> Features:
    """The features of a question with its best passages: the BEST of keyword search first, then those of vectors.

    Those of words are of the best passage; cosines are the greatest ones. known: the share of the question's
    information that the index has at all; breadth: the mean share that the first BEST passages have (a passage that is
    not there has none).
    """
    best, standing = None, -math.inf
    for one in passages:
        if one.most_standing > standing and (own := one.standing) > standing:
            best, standing = one, own
    features: dict[str, float] = dict.fromkeys(PASSAGE, 0.0) if best is None else dict(best.features)
    features |= {name: max(one.cosines[at] for one in passages) for at, name in enumerate(COSINES) if passages}
    features["known"] = question.known / question.whole if question.whole else 0.0
    features["breadth"] = math.fsum(one.share for one in passages[:BEST]) / BEST
    return features


SOFT = 0.05
"""Added to every spread: a feature that is the same for all null questions must not decide alone."""
MOST_SPREADS = 3.0
"""Above the null; more proves nothing. Small indexes have narrow nulls."""
MOST_MIDDLE: Features = MappingProxyType(
    {"window": 0.3, "near": 0.3, "heading": 0.3, "known": 0.5, **dict.fromkeys(COSINES, 0.25)}
)
"""The most that the middle of the null may be. An index of many subjects answers null questions, too: without a limit
it would refuse all that it answers no better than those."""
OUTLIER = 3.0
"""Deviations of a subject's questions from the other subjects', above which the index answers that subject."""
_LEAST_DEVIATION = 0.02
_LEVEL = ("known", "window", "breadth")
"""Features that rise together where an index knows a subject."""


@dataclass(frozen=True, slots=True)
class Null:
    """The middle and the spread of each feature over questions that the index does not answer.

    `dropped` are the subjects that were left out because the index answers them. A feature that is not in `spreads` is
    taken as it is.
    """

    spreads: Mapping[str, tuple[float, float]] = field(default_factory=lambda: MappingProxyType({}))
    dropped: tuple[str, ...] = ()

    @classmethod
    def of(cls, asked: Mapping[str, Sequence[Features]]) -> Null:
        """The null of the questions of each subject."""
        level = {
            subject: statistics.fmean(math.fsum(one[name] for name in _LEVEL) for one in found)
            for subject, found in asked.items()
        }
        middle = statistics.median(level.values())
        deviation = statistics.median(abs(value - middle) for value in level.values()) + _LEAST_DEVIATION
        dropped = tuple(sorted(one for one, value in level.items() if value > middle + OUTLIER * deviation))
        kept = [one for subject, found in asked.items() if subject not in dropped for one in found]
        names = (*PASSAGE, *QUESTION)
        values = {name: [one[name] for one in kept] for name in names}
        spreads = {
            name: (min(statistics.median(of), MOST_MIDDLE.get(name, math.inf)), statistics.pstdev(of) + SOFT)
            for name, of in values.items()
        }
        return cls(MappingProxyType(spreads), dropped)

    def to_json(self) -> str:
        """Text that `from_json` reads."""
        return json.dumps(
            {"spreads": {name: list(pair) for name, pair in self.spreads.items()}, "dropped": self.dropped}
        )

    @staticmethod
    @lru_cache(maxsize=64)
    def from_json(text: str) -> Null:
        """The null that `to_json` wrote."""
        told = json.loads(text)
        spreads = {name: (float(middle), float(spread)) for name, (middle, spread) in told["spreads"].items()}
        return Null(MappingProxyType(spreads), tuple(told["dropped"]))

    def above(self, name: str, value: float) -> float:
        """The spreads by which a feature is above the null, MOST_SPREADS at most."""
        middle, spread = self.spreads.get(name, (0.0, 1.0))
        return min((value - middle) / spread, MOST_SPREADS)

    def explain(self, feature: Term) -> Term:
        """The same as a term, of that of the feature."""
        middle, spread = self.spreads.get(feature.name, (0.0, 1.0))
        over = combined("above the null", "sum", [feature, given("-middle", -middle)])
        spreads = combined("in spreads", "ratio", [over, given("spread", spread)])
        return combined(f"evidence of {feature.name}", "min", [spreads, given("most", MOST_SPREADS)])


@dataclass(frozen=True, kw_only=True)
class Logistic:
    """1 / (1 + exp(-(bias + sum of weight x feature above the null))).

    Weights are 0 or more, so more evidence never lowers the score. Raises ConfigError for others.
    """

    weights: Mapping[str, float]
    bias: float

    def __post_init__(self) -> None:
        check_number("bias", self.bias, -math.inf)
        if not self.weights:
            raise ConfigError("weights", {}, "at least one feature")
        for name, weight in self.weights.items():
            check_number(f"weights.{name}", weight, 0)
        object.__setattr__(self, "weights", MappingProxyType(dict(self.weights)))

    def score(self, features: Features, null: Null) -> float:
        """The score, 0..1."""
        return sigmoid(self.logit(features, null))

    def logit(self, features: Features, null: Null) -> float:
        """The logarithm of the odds."""
        parts = (weight * null.above(name, features[name]) for name, weight in self.weights.items())
        return math.fsum((self.bias, *parts))

    def explain(self, name: str, features: Features, null: Null, told: Mapping[str, Term] | None = None) -> Term:
        """The score as a term of this name that recomposes. `told` explains features that are computed themselves."""
        terms = {one: given(one, features[one]) for one in self.weights} | dict(told or {})
        parts = [
            combined(one, "product", [given("weight", weight), null.explain(terms[one])])
            for one, weight in self.weights.items()
        ]
        return combined(name, "sigmoid", [combined("evidence", "sum", [given("bias", self.bias), *parts])])


@dataclass(frozen=True, kw_only=True)
class EvidenceModel:
    """The two fitted functions, and what to call their scores.

    `python -m benchmarks.search.fit` prints the defaults, fitted on four collections of other people's documents.
    """

    answers: Logistic = field(
        default_factory=lambda: Logistic(
            weights={"window": 0.51, "near": 0.639, "heading": 0.14, "known": 0.882, "breadth": 0.799}, bias=-2.783
        )
    )
    relevance: Logistic = field(
        default_factory=lambda: Logistic(
            weights={"window": 0.175, "near": 0.274, "heading": 0.405, ATTAINMENT: 0.072}, bias=-0.911
        )
    )
    meaning: str = "fitted confidence"


WITH_COSINES = EvidenceModel(
    answers=Logistic(
        weights={
            "window": 0.45,
            "near": 0.393,
            "heading": 0.07,
            "cosine": 0.618,
            "cosine_telling": 0.633,
            "known": 0.611,
            "breadth": 0.595,
        },
        bias=-3.39,
    ),
    relevance=Logistic(
        weights={
            "window": 0.111,
            "near": 0.145,
            "heading": 0.451,
            "cosine": 0.341,
            "cosine_telling": 0.119,
            ATTAINMENT: 0.151,
        },
        bias=-1.247,
    ),
)
"""The default where an embedder gives cosines, fitted with those of wordllama."""
