"""Evidence from words: the features of a passage, the null that they are measured by, and the two scores."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_model_router_scoring.evidence import (
    ATTAINMENT,
    BEST,
    COSINES,
    MOST_MIDDLE,
    MOST_SPREADS,
    NEAR,
    PASSAGE,
    QUESTION,
    SOFT,
    WINDOW,
    WITH_COSINES,
    WORDS,
    EvidenceModel,
    Logistic,
    Null,
    PassageEvidence,
    QuestionTerms,
    WordEvidence,
    information,
    question_evidence,
)
from smart_model_router_scoring.explain import given as leaf
from smart_model_router_scoring.options import ConfigError

CHUNKS = 1000
COUNTS = {"open": 10, "breaker": 10, "circuit": 10, "common": 990, "unknown": 0}
"""`open`, `breaker` and `circuit` tell the same."""


def asked(*stems: str) -> QuestionTerms:
    """A question of these stems."""
    return QuestionTerms.of(stems, COUNTS, CHUNKS)


def body(*words: str | int) -> str:
    """A text of these words; a number stands for as many others."""
    return " ".join(one for word in words for one in (["x"] * word if isinstance(word, int) else [word]))


def evidence_of(question: QuestionTerms, heading: str, text: str) -> PassageEvidence:
    """The evidence of a passage of these stems."""
    return PassageEvidence(WordEvidence(question, heading, text))


def test_a_rare_word_tells_more_and_no_word_tells_less_than_nothing() -> None:
    """Information falls with the number of chunks that have the word, to 0."""
    told = [information(count, 10) for count in range(11)]
    assert told == sorted(told, reverse=True)
    assert told[-1] >= 0
    assert information(11, 10) == 0.0  # an index that changed between two looks
    assert information(2, 10) == math.log1p(8.5 / 2.5)


def test_the_window_holds_what_stands_close_together() -> None:
    """Half of the question when its words are further apart than the window, all of it when they are not."""
    question = asked("open", "breaker")
    far = evidence_of(question, "", body("open", WINDOW - 1, "breaker"))
    close = evidence_of(question, "", body("breaker", WINDOW - 2, "open"))
    assert far.features["window"] == pytest.approx(0.5)
    assert close.features["window"] == pytest.approx(1.0)
    assert (far.share, close.share) == (1.0, 1.0)


def test_a_window_of_words_that_tell_little_is_one_too() -> None:
    """Wherever it stands."""
    question = QuestionTerms.of("abc", dict.fromkeys("abc", 800), CHUNKS)
    assert question.whole < 1.0
    found = evidence_of(question, "", body(7, "a", "b", WINDOW, "c")).features
    assert found["window"] == pytest.approx(2 / 3)


def test_the_best_window_is_not_the_last_one() -> None:
    """A word that enters alone, far behind two that stand together, tells less than they do."""
    question = asked("open", "breaker", "circuit")
    found = evidence_of(question, "", body("open", "breaker", WINDOW, "circuit", "circuit"))
    assert found.features["window"] == pytest.approx(2 / 3)


def test_the_heading_is_part_of_every_window() -> None:
    """A word of it counts wherever the others stand, and once."""
    question = asked("open", "breaker")
    found = evidence_of(question, "breaker", body(WINDOW, "open", 3, "breaker")).features
    assert found["window"] == pytest.approx(1.0)
    assert found["heading"] == pytest.approx(0.5)
    assert evidence_of(question, "breaker", body(5)).features["window"] == pytest.approx(0.5)
    three = asked("open", "breaker", "circuit")
    for between, share in ((WINDOW, 2 / 3), (2, 1.0)):
        found = evidence_of(three, "circuit", body("open", between, "breaker")).features
        assert found["window"] == pytest.approx(share)


@pytest.mark.parametrize(
    ("heading", "text", "near"),
    [
        ("", body("circuit", NEAR - 1, "breaker"), 1.0),
        ("", body("breaker", "circuit"), 1.0),
        ("", body("circuit", NEAR, "breaker"), 0.0),
        ("circuit", body("breaker"), 1.0),
        ("breaker", body("circuit"), 1.0),
        ("circuit breaker", body(3), 1.0),
        ("circuit", body(3), 0.0),
        ("breaker", body(3), 0.0),
        ("", body("circuit"), 0.0),
        ("", body(9, "circuit", "breaker"), 1.0),
        ("", body("circuit", "breaker", 40, "circuit"), 1.0),
        ("", body("circuit", 40, "circuit", "breaker", 40, "circuit"), 1.0),
        ("", body("circuit", "circuit", NEAR - 1, "breaker"), 1.0),
        ("", body(4, "circuit", "circuit", NEAR, "breaker"), 0.0),
    ],
)
def test_a_pair_stands_together_in_the_text_or_has_a_word_in_the_heading(heading: str, text: str, near: float) -> None:
    """In either order, at most NEAR words apart."""
    assert evidence_of(asked("circuit", "breaker"), heading, text).features["near"] == near


def test_a_question_of_one_word_has_no_pairs() -> None:
    """Then it is near where it is at all. A repeated word makes no pair with itself."""
    for question in (asked("breaker"), asked("breaker", "breaker")):
        assert evidence_of(question, "", body("breaker")).features["near"] == 1.0
        assert evidence_of(question, "", body(3)).features["near"] == 0.0


def test_words_that_are_everywhere_prove_nothing() -> None:
    """A question without information has no share of it anywhere."""
    question = QuestionTerms.of(["a", "b"], {"a": 20, "b": 20}, 10)
    found = evidence_of(question, "a", "a b")
    assert (found.share, found.features) == (0.0, dict.fromkeys(PASSAGE, 0.0))
    assert question_evidence(question, [found])["known"] == 0.0


def test_a_question_has_the_features_of_its_best_passage_and_two_of_its_own() -> None:
    """known: the share the index has at all; breadth: the mean share of BEST passages, missing ones having none."""
    question = asked("open", "breaker", "unknown")
    passages = [evidence_of(question, "", body("open")), evidence_of(question, "", body("open", "breaker"))]
    found = question_evidence(question, passages)
    assert {name: found[name] for name in PASSAGE} == passages[1].features
    assert found["known"] == pytest.approx(question.share(["open", "breaker"], question.whole))
    assert found["breadth"] == pytest.approx((passages[0].share + passages[1].share) / BEST)
    assert question_evidence(question, [*passages, *passages[:1] * 20])["breadth"] == pytest.approx(
        (passages[0].share * (BEST - 1) + passages[1].share) / BEST
    )


def test_the_best_passage_is_not_the_one_that_has_most_words_far_apart() -> None:
    """Three of four words together tell more than all four without a window that has two."""
    question = QuestionTerms.of("abcd", dict.fromkeys("abcd", 10), CHUNKS)
    apart = evidence_of(question, "", body("a", WINDOW, "b", WINDOW, "c", WINDOW, "d"))
    together = evidence_of(question, "", "a b c")
    assert question_evidence(question, [apart, together])["window"] == pytest.approx(0.75)


def test_of_passages_that_stand_alike_the_first_is_the_best_one() -> None:
    """The order of keyword search decides; a passage of less than no cosine is better than none."""
    question = asked("open", "breaker")
    heading, text = evidence_of(question, "open", body(3)), evidence_of(question, "", "open")
    assert question_evidence(question, [heading, text])["heading"] == pytest.approx(0.5)
    assert question_evidence(question, [text, heading])["heading"] == 0.0
    four = QuestionTerms.of("abcd", dict.fromkeys("abcd", 10), CHUNKS)
    together = evidence_of(four, "", "a b")
    apart = evidence_of(four, "", body("a", WINDOW, "b", WINDOW, "c"))
    assert (together.standing, apart.standing) == (1.0, 1.0)
    assert question_evidence(four, [together, apart])["window"] == 0.5
    assert question_evidence(question, [text.with_cosines((-0.9, 0.0))])["window"] == pytest.approx(0.5)


STEMS = st.lists(st.sampled_from(["open", "breaker", "circuit", "common", "x"]), max_size=80).map(" ".join)
PASSAGES = st.lists(st.tuples(STEMS, STEMS, st.floats(-1, 1)), max_size=6)


@given(told=PASSAGES)
def test_no_passage_that_is_left_out_unread_would_have_been_the_best_one(told: list[tuple[str, str, float]]) -> None:
    """The features are those of the first passage of the greatest standing of all."""
    question = asked("open", "breaker", "circuit", "common", "open")
    passages = [evidence_of(question, heading, text).with_cosines((cosine, 0.0)) for heading, text, cosine in told]
    best = max(passages, key=lambda one: one.standing, default=None)
    found = question_evidence(question, passages)
    assert {name: found[name] for name in WORDS} == (best.words.features if best else dict.fromkeys(WORDS, 0.0))


def test_the_best_passage_is_that_of_most_words_and_meaning_and_cosines_are_the_greatest() -> None:
    """A passage without a word of the question can be the best one by its cosine; any passage gives a cosine."""
    question = asked("open", "breaker")
    words = evidence_of(question, "", "open x")
    meaning = evidence_of(question, "", "x y").with_cosines((0.9, 0.1))
    assert question_evidence(question, [words, meaning])["window"] == 0.0
    found = question_evidence(question, [words.with_cosines((0.2, 0.6)), meaning.with_cosines((0.3, 0.1))])
    assert found["window"] == pytest.approx(0.5)
    assert [found[name] for name in COSINES] == [0.3, 0.6]


def test_without_a_passage_there_is_no_evidence() -> None:
    """An unknown word is not known, and nothing else is there."""
    assert question_evidence(asked("unknown"), []) == dict.fromkeys((*PASSAGE, *QUESTION), 0.0)


def features(level: float) -> dict[str, float]:
    """The same value for every feature."""
    return dict.fromkeys((*PASSAGE, *QUESTION), level)


def test_the_null_is_the_middle_and_the_spread_of_what_unanswerable_questions_score() -> None:
    """A feature is measured in spreads above the middle, MOST_SPREADS at most."""
    null = Null.of({"one": [features(0.1), features(0.3)], "two": [features(0.1), features(0.3)]})
    assert null.dropped == ()
    assert null.spreads["window"] == pytest.approx((0.2, 0.1 + SOFT))
    assert null.above("window", 0.2) == pytest.approx(0.0)
    assert null.above("window", 0.35) == pytest.approx(1.0)
    assert null.above("window", 1.0) == MOST_SPREADS
    assert null.above("attainment", 0.5) == 0.5  # no question has that one: as it is


def test_a_subject_that_the_index_answers_is_no_part_of_the_null() -> None:
    """Else the index would judge its own questions by themselves."""
    others = {f"s{n}": [features(0.1 + n / 100), features(0.2)] for n in range(5)}
    null = Null.of({**others, "its own": [features(0.9), features(0.8)]})
    assert null.dropped == ("its own",)
    assert null.spreads == Null.of(others).spreads


@pytest.mark.parametrize(("above", "dropped"), [(0.015, ()), (0.025, ("its own",))])
def test_a_subject_hardly_above_others_that_are_all_alike_is_kept(above: float, dropped: tuple[str, ...]) -> None:
    """Where none deviates, three least deviations (0.06 of three features together) are no sign of an answer."""
    others = {f"s{n}": [features(0.2)] for n in range(5)}
    assert Null.of({**others, "its own": [features(0.2 + above)]}).dropped == dropped


def test_the_null_of_an_index_of_many_subjects_leaves_room_above_it() -> None:
    """It answers the null's questions like its own: the middle has a limit, and what it knows stays above it."""
    null = Null.of({f"s{n}": [features(1.0), features(0.9)] for n in range(5)})
    assert null.dropped == ()
    assert {name: middle for name, (middle, _) in null.spreads.items()} == pytest.approx(
        {**MOST_MIDDLE, "breadth": 0.95}
    )
    assert EvidenceModel().answers.score(features(0.95), null) > 0.9


@pytest.mark.parametrize(
    ("model", "name"),
    [
        *((EvidenceModel(), name) for name in (*WORDS, *QUESTION)),
        *((WITH_COSINES, name) for name in (*PASSAGE, *QUESTION)),
    ],
)
def test_each_feature_counts_for_the_shipped_answer(model: EvidenceModel, name: str) -> None:
    """None has the weight 0: a fit that gives one none means that the feature is to be deleted."""
    shipped = model.answers
    assert shipped.score({**features(0.2), name: 0.4}, Null()) > shipped.score(features(0.2), Null())


@pytest.mark.parametrize(
    ("model", "name"),
    [
        *((EvidenceModel(), name) for name in (*WORDS, ATTAINMENT)),
        *((WITH_COSINES, name) for name in (*PASSAGE, ATTAINMENT)),
    ],
)
def test_each_feature_counts_for_the_shipped_relevance(model: EvidenceModel, name: str) -> None:
    """As for the answer."""
    shipped, low = model.relevance, features(0.2) | {ATTAINMENT: 0.2}
    assert shipped.score({**low, name: 0.4}, Null()) > shipped.score(low, Null())


def test_the_null_survives_as_text() -> None:
    """To the bit, as the index keeps it."""
    null = Null.of({"a": [features(1 / 7), features(2 / 7)], "b": [features(3 / 7)]})
    assert Null.from_json(null.to_json()) == null


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"weights": {"window": -0.1}, "bias": 0.0}, "weights.window"),
        ({"weights": {"window": math.nan}, "bias": 0.0}, "weights.window"),
        ({"weights": {"window": 1.0}, "bias": math.inf}, "bias"),
        ({"weights": {}, "bias": 0.0}, "weights"),
    ],
)
def test_a_function_that_more_evidence_could_lower_is_refused(settings: dict[str, Any], field: str) -> None:
    """By name."""
    with pytest.raises(ConfigError) as refused:
        Logistic(**settings)
    assert refused.value.field == field


SHARES = st.floats(0, 1)
NULLS = st.fixed_dictionaries(
    {name: st.tuples(SHARES, st.floats(SOFT, 1)) for name in (*PASSAGE, *QUESTION)}
).map(Null)  # fmt: skip
CURVES = [curve for model in (EvidenceModel(), WITH_COSINES) for curve in (model.answers, model.relevance)]
FOUND = st.fixed_dictionaries(dict.fromkeys((*PASSAGE, *QUESTION, ATTAINMENT), SHARES))


@pytest.mark.parametrize("curve", CURVES)
@given(null=NULLS, found=FOUND, more=FOUND)
def test_more_evidence_never_lowers_a_score(
    curve: Logistic, null: Null, found: dict[str, float], more: dict[str, float]
) -> None:
    """In each feature, and so in all of them."""
    above = {name: max(value, more[name]) for name, value in found.items()}
    assert curve.score(above, null) >= curve.score(found, null)


@pytest.mark.parametrize("curve", CURVES)
@given(null=NULLS, found=FOUND)
def test_a_score_is_explained_term_by_term(curve: Logistic, null: Null, found: dict[str, float]) -> None:
    """Computed again from the leaves it is the same to 1e-12, also where a feature has an explanation of its own."""
    term = curve.explain("score", found, null)
    assert term.recompose() == pytest.approx(curve.score(found, null), abs=1e-12)
    name = next(iter(curve.weights))
    assert curve.explain("score", found, null, {name: leaf(name, found[name])}) == term


def test_the_explanation_of_a_score_names_each_of_its_parts() -> None:
    """As a person reads it: the bias, and of each feature weight, value, middle, spread and limit."""
    curve = Logistic(weights={"near": 2.0}, bias=-1.0)
    term = curve.explain("answers", {"near": 0.5}, Null({"near": (0.25, 0.125)}))
    assert list(term.lines()) == [
        "answers = 0.952574 (sigmoid)",
        "  evidence = 3 (sum)",
        "    bias = -1",
        "    near = 4 (product)",
        "      weight = 2",
        "      evidence of near = 2 (min)",
        "        in spreads = 2 (ratio)",
        "          above the null = 0.25 (sum)",
        "            near = 0.5",
        "            -middle = -0.25",
        "          spread = 0.125",
        "        most = 3",
    ]


def test_the_defaults_name_features_that_exist() -> None:
    """And say what their scores are."""
    for model, passage in ((EvidenceModel(), WORDS), (WITH_COSINES, PASSAGE)):
        assert set(model.answers.weights) == {*passage, *QUESTION}
        assert set(model.relevance.weights) == {*passage, ATTAINMENT}
    assert model.meaning == "fitted confidence"
    assert dataclasses.replace(model, meaning="x").meaning == "x"
