"""Each sentence of a report rests on supported claims and says no more than they do, or it is marked, or gone."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_model_router_research.deep import (
    ClaimGraph,
    ClaimStatus,
    Delivery,
    QuotedEvidence,
    ReportPart,
    ReportSection,
    ReportSentence,
    ResearchClaim,
    ResearchReport,
    ResearchRound,
    SentenceMark,
    SourceTier,
    as_markdown,
    completeness,
    examine_claims,
    mended,
    page_of_run,
    report_of,
)
from tests.research_runs import (
    BORLAND,
    CAPITALS,
    DOCUMENTS,
    DRAFTS,
    FACTS,
    QUESTIONS,
    border,
    claim,
    document,
    example,
    run_of_claims,
)


def known(claim_id: str, text: str, status: ClaimStatus = ClaimStatus.SUPPORTED, **rest: object) -> ResearchClaim:
    """Return a claim that was checked already."""
    evidence = (QuotedEvidence(doc_id="arland.md", quote=text, span=(0, 1)),)
    made = ResearchClaim(id=claim_id, text=text, status=status, evidence=evidence, question_id="q1")
    return replace(made, **rest)  # type: ignore[arg-type]


GRAPH = ClaimGraph(
    questions=QUESTIONS,
    claims=(
        known("river", "The longest river is the Mur."),
        known("seats", "The parliament has 120 seats.", critical=True),
        known("union", "Arland joined the union in 1994 unless the treaty failed."),
        known("guess", "Arland is the largest country.", ClaimStatus.UNSUPPORTED),
        known("half", "Arland is a kingdom.", ClaimStatus.PARTIAL),
        known("border", "The border is 447 km long.", ClaimStatus.CONTRADICTED),
        known("census", "Arland had 4 million people.", ClaimStatus.SUPERSEDED),
    ),
)


def report(*sentences: tuple[str, tuple[str, ...]]) -> ResearchReport:
    """Return a report of these sentences."""
    made = tuple(ReportSentence(text=text, claims=claims) for text, claims in sentences)
    return ResearchReport(sections=(ReportSection(part=ReportPart.ANSWER, sentences=made),))


SUPPORTED = (
    ("The longest river is the Mur.", ("river",)),
    ("the longest river is the Mur", ("river",)),
    ("The longest river is the Mur. The parliament has 120 seats.", ("river", "seats")),
    ("Unless the treaty failed, Arland joined the union in 1994.", ("union",)),
)
OFFENDING = (
    ("The longest river is the Mur.", (), "it cites no claim"),
    ("The longest river is the Mur.", ("lake",), "it cites 'lake', which is no claim of the graph"),
    ("Arland is the largest country.", ("guess",), "guess is unsupported"),
    ("Arland is a kingdom.", ("half",), "half is partial"),
    ("The border is 447 km long.", ("border",), "border is contradicted"),
    ("Arland had 4 million people.", ("census",), "census is superseded"),
    ("The parliament has 210 seats.", ("seats",), "none of its claims says 'The parliament has 210 seats.'"),
    ("The parliament has 120 safe seats.", ("seats",), "none of its claims says"),
    ("Arland joined the union in 1994.", ("union",), "none of its claims says"),
    ("The longest river is not the Mur.", ("river",), "none of its claims says"),
    ("The longest river is the Mur. It is blue.", ("river",), "none of its claims says 'It is blue.'"),
    ("The longest river is the Mur.", ("river", "seats"), "seats says nothing of it"),
    ("The longest river is the Mur and Arland is a kingdom.", ("river", "half"), "half is partial"),
    ("", ("river",), "none of its claims says ''"),
    ("x" * 100_000, ("river",), "none of its claims says"),
)


@pytest.mark.parametrize(("text", "claims"), SUPPORTED)
def test_a_sentence_that_says_what_its_claims_say_is_supported(text: str, claims: tuple[str, ...]) -> None:
    """Word by word, or after edits that change nothing."""
    found = completeness(report((text, claims)), GRAPH)

    assert found.offenders == ()
    assert found.is_complete


@pytest.mark.parametrize(("text", "claims", "reason"), OFFENDING)
def test_an_offending_sentence_is_found_with_its_reason(text: str, claims: tuple[str, ...], reason: str) -> None:
    """No citation, an unknown one, a claim that is not supported, words beyond the claims, a claim for show."""
    found = completeness(report((text, claims)), GRAPH)

    assert [offender.reason[: len(reason)] for offender in found.offenders] == [reason]


@pytest.mark.parametrize(
    ("wrong", "right", "complete"), [(1, 19, True), (1, 18, False), (0, 3, True), (0, 0, True), (1, 0, False)]
)
def test_one_in_twenty_sentences_may_offend(wrong: int, right: int, complete: bool) -> None:
    """The bound of .95 is inclusive, and holds for sentences about nothing critical."""
    sentences = [("The longest river is the Mur.", ("river",))] * right + [("Arland is a kingdom.", ("half",))] * wrong

    found = completeness(report(*sentences), GRAPH)

    assert found.is_complete is complete
    assert found.critical == 1.0
    assert found.rest == (right / (right + wrong) if right + wrong else 1.0)


@pytest.mark.parametrize(("text", "claims"), [("It has 210 seats.", ("seats",)), ("It is so.", ()), ("No.", ("lake",))])
def test_no_critical_sentence_may_offend(text: str, claims: tuple[str, ...]) -> None:
    """One about a critical claim, and one that nothing says is not: a single such offender is one too many."""
    found = completeness(report(*[SUPPORTED[0]] * 99, (text, claims)), GRAPH)

    assert found.critical == 0.0
    assert found.rest == 1.0
    assert not found.is_complete


def test_offenders_are_repaired_marked_or_removed() -> None:
    """Supported claims speak for themselves; disputed ones stay, marked; what rests on nothing is gone."""
    found = mended(
        report(
            ("The parliament has 210 seats.", ("seats", "lake")),
            ("The border is 447 km long.", ("border",)),
            ("Arland is a kingdom.", ("half",)),
            ("Arland had 4 million people.", ("census",)),
            ("The border is 999 km long.", ("border",)),
            ("Arland is the largest country.", ("guess",)),
            ("All is well.", ()),
            ("All is well.", ("lake",)),
            ("The longest river is the Mur", ("river",)),
        ),
        GRAPH,
    )

    assert [(sentence.text, sentence.mark) for sentence in found.sentences] == [
        ("The parliament has 120 seats.", None),
        ("The border is 447 km long.", SentenceMark.DISPUTED),
        ("Arland is a kingdom.", SentenceMark.UNVERIFIED),
        ("Arland had 4 million people.", SentenceMark.SUPERSEDED),
        ("The longest river is the Mur", None),
    ]


def test_a_section_without_sentences_is_gone() -> None:
    """Nothing is left of a report in which nothing is supported."""
    assert mended(report(("All is well.", ())), GRAPH) == ResearchReport()


ids = st.lists(st.sampled_from([*(each.id for each in GRAPH.claims), "lake"]), max_size=3).map(tuple)
said = st.sampled_from([*(each.text for each in GRAPH.claims), "The Mur.", "The parliament has 210 seats.", "It is."])


@given(st.lists(st.tuples(said, ids), max_size=6))
def test_after_mending_whatever_is_not_supported_is_marked(sentences: list[tuple[str, tuple[str, ...]]]) -> None:
    """X2: a sentence without a mark cites claims, all are supported, and it says no more; mending again is idle."""
    found = mended(report(*sentences), GRAPH)
    places = [sentence for section in found.sections for sentence in section.sentences]
    marked = {at for at, sentence in enumerate(places) if sentence.mark}

    assert {offender.sentence for offender in completeness(found, GRAPH).offenders} == marked
    assert mended(found, GRAPH) == found


@given(st.lists(st.tuples(said, ids), min_size=1, max_size=6))
def test_a_page_marks_each_offender_even_where_nothing_was_mended(
    sentences: list[tuple[str, tuple[str, ...]]],
) -> None:
    """X2 holds of the page, whatever report it is given."""
    base = run_of_claims([[]])
    rounds = (replace(base.rounds[0], graph=replace(GRAPH, documents=base.rounds[0].graph.documents)),)
    facts = replace(FACTS, accepted_by="a person")
    run = replace(base, report=report(*sentences), rounds=rounds, facts=facts)
    answer = as_markdown(page_of_run(run)).partition("## Answer")[2].partition("##")[0]
    lines = [line for line in answer.splitlines() if line.startswith("- ")]

    offenders = {offender.sentence for offender in run.completeness.offenders}
    assert [("**(unverified)**" in line) for line in lines] == [at in offenders for at in range(len(sentences))]


def test_an_incomplete_report_is_delivered_one_level_lower() -> None:
    """Both levels are shown, and the reason."""
    run = example()
    worse = replace(run, report=report(("The border is 447 km long.", ("c2",))))

    assert (run.delivery, worse.delivery) == (Delivery.MODERATE, Delivery.LOW)
    page = as_markdown(page_of_run(worse))
    assert "Confidence: moderate; delivered as: low." in page
    assert "Not every sentence is supported by its citations; those are marked." in page


def test_without_a_model_a_report_says_its_claims_word_by_word() -> None:
    """The answer is the first claim that covers each question, what it is computed from after it, by priority."""
    found = report_of(example().graph)

    assert [section.part for section in found.sections] == ["answer", "findings", "findings"]
    assert [sentence.claims for sentence in found.sections[0].sentences] == [("c9",), ("c4",), ("c6",)]
    assert [sentence.claims for sentence in found.sections[1].sentences] == [("c1",), ("c7",), ("c8",)]
    texts = {each.id: each.text for each in example().graph.claims}
    assert all(sentence.text == texts[sentence.claims[0]] for sentence in found.sentences)


def test_nothing_that_is_not_supported_is_in_the_report_without_a_model() -> None:
    """A graph without supported claims gives no sections, and its page says so."""
    run = run_of_claims([[claim("c1", "Arland is a kingdom.", "arland.md", "no such quote")]])
    accepted = replace(run, facts=replace(FACTS, accepted_by="a person"))

    assert run.report == ResearchReport()
    assert "Not found in these sources." in as_markdown(page_of_run(accepted))


def test_addresses_titles_and_dates_come_from_the_stored_document() -> None:
    """X1: a claim can name what it likes; the page has the stored facts, and numbers only for stored documents."""
    lying = document("borland.md", BORLAND, title="The true title", url="https://true.example/page")
    drafts = [claim("c1", "Capital: Bortown", "borland.md", "Capital: Bortown", as_of="1999", tier="B")]
    run = run_of_claims([drafts], [lying, DOCUMENTS[0]])
    page = as_markdown(page_of_run(replace(run, facts=replace(FACTS, accepted_by="a person"))))

    assert r"| S1 | [The true title](<https://true.example/page>) | Borland Office | A: official |" in page
    assert "| 2026-05-01 (meta, high) |" in page
    assert "1999" not in page
    assert r"Capital: Bortown [S1]" in page


def test_kinds_of_claims_are_told_apart() -> None:
    """Computed, quoted and single-source claims are marked."""
    page = as_markdown(page_of_run(example()))

    assert r"- The parliament has 120 seats. [S1] *(quoted)* *(single source)*" in page
    assert r"countries with a capital). [S1] [S2] [S3] *(computed)*" in page
    assert r"- Capital of Corland: Corport [S3] *(single source)*" in page


@pytest.mark.parametrize("selected", [1, 2])
def test_a_contradiction_of_any_round_is_shown(selected: int) -> None:
    """X10: with both values and their sources, whichever round is delivered."""
    borders = [each for each in example().rounds[0].graph.claims if each.id in ("c2", "c3")]
    rounds = [borders, [borders[0]]] if selected == 2 else [[borders[0]], borders]
    run = run_of_claims(rounds)

    assert run.quality["selected_round"] == selected
    table = as_markdown(page_of_run(run)).partition("## Contradictions")[2].partition("##")[0]
    assert "447 km" in table
    assert "Arland 467 km" in table
    assert "| unresolved | '447 km' and '467 km': nothing decides between them |" in table


def test_a_withheld_report_shows_no_findings_until_a_person_accepts_it() -> None:
    """Gaps, contradictions and sources are shown; the acceptance is named."""
    drafts = [DRAFTS[0], claim("c2", "Arland is a kingdom.", "arland.md", "no such quote")]
    weak = run_of_claims([drafts], [replace(DOCUMENTS[0], published=None, tier=SourceTier.B)])
    accepted = replace(weak, facts=replace(FACTS, accepted_by="Ada"))
    page, after = as_markdown(page_of_run(weak)), as_markdown(page_of_run(accepted))

    assert weak.delivery is Delivery.WITHHELD
    assert "Withheld: there is too little evidence for a report." in page
    assert "Arville" not in page
    assert "## Not found in these sources" in page
    assert "Too little evidence; shown because Ada accepted it." in after
    assert "Arville" in after


def test_a_report_without_sentences_claims_no_share_of_them() -> None:
    """Of no sentence it cannot be said that all are supported; of one it can."""
    assert "Citations:" not in as_markdown(page_of_run(run_of_claims([[]])))
    assert "- Citations: 100% of critical" in as_markdown(page_of_run(run_of_claims([CAPITALS[:2]])))


def test_a_full_delivery_has_no_warning() -> None:
    """Nothing is warned of where nothing is weak."""
    run = run_of_claims([CAPITALS[:2]], DOCUMENTS[:2], QUESTIONS[:1])
    agreeing = replace(run, config=replace(run.config, min_recent_sources=1))

    assert agreeing.delivery is Delivery.FULL
    assert ">" not in as_markdown(page_of_run(agreeing)).partition("## Sources")[0]


def test_a_question_whose_answers_differ_is_disputed_and_not_lost() -> None:
    """It is not called "not found": the contradictions have its answers."""
    drafts = [border("c2", "Arland", "Borland", "447 km"), border("c3", "Borland", "Arland", "467 km"), CAPITALS[0]]
    page = as_markdown(page_of_run(run_of_claims([drafts])))
    disputed = page.partition("## The sources disagree")[2].partition("##")[0]

    assert disputed.strip() == "- Which countries border Arland?"
    assert "Which countries border Arland?" not in page.partition("## Not found")[2].partition("##")[0]


@pytest.mark.parametrize(("name", "shown"), [("Ada", True), ("", False)])
def test_leads_are_shown_where_there_is_little_else(name: str, shown: bool) -> None:
    """Each is marked; at a higher level of delivery they are left out."""
    base = run_of_claims([[DRAFTS[0]]], [replace(DOCUMENTS[0], published=None, tier=SourceTier.B)])
    lead = known("lead", "Arland is a kingdom.", ClaimStatus.PARTIAL)
    graph = replace(base.rounds[0].graph, claims=(*base.rounds[0].graph.claims, lead, replace(lead, id="lead 2")))
    weak = replace(base, rounds=(replace(base.rounds[0], graph=graph),), facts=replace(FACTS, accepted_by=name))

    assert weak.delivery is Delivery.WITHHELD
    line = r"- Arland is a kingdom. [S1] **(unverified)**"
    assert (line in as_markdown(page_of_run(weak))) is shown
    better = example()
    last = better.rounds[1]
    rounds = (better.rounds[0], replace(last, graph=replace(last.graph, claims=(*last.graph.claims, lead))))
    moderate = replace(better, rounds=rounds)
    assert moderate.delivery is Delivery.MODERATE
    assert "kingdom" not in as_markdown(page_of_run(moderate))


def test_a_page_says_how_it_was_found() -> None:
    """Goal, costs, models, and a pass that other weights would take back."""
    facts = replace(FACTS, goal="Walk around it", models=("m1", "m2"), usage={"usd": 0.25, "input_tokens": 1234567.0})
    run = replace(run_of_claims([CAPITALS[:2]], DOCUMENTS[:2], QUESTIONS[:1]), facts=facts)
    vars(run)["quality"] = {**run.quality, "borderline": True}
    page = as_markdown(page_of_run(run))

    assert "- Goal: Walk around it" in page
    assert "- Models: m1, m2." in page
    assert r"- Spent: 1,234,567 input_tokens, 0.25 usd." in page
    assert "Borderline: with weights a little different the index is" in page


BORDERS = (
    border("c2", "Arland", "Borland", "447 km"),
    border("c3", "Borland", "Arland", "467 km"),
    border("c4", "Corland", "Arland", "307 km"),
    border("c5", "Arland", "Corland", "327 km (20 km within the Dead Sea)"),
)


@cache
def found_in_a_round(places: frozenset[int]) -> ResearchRound:
    """Return a round that found these borders, and knows of no other round."""
    return ResearchRound(graph=examine_claims([BORDERS[at] for at in sorted(places)], DOCUMENTS, QUESTIONS))


@given(st.lists(st.frozensets(st.sampled_from(range(4))), min_size=1, max_size=4))
def test_every_contradiction_of_every_round_is_shown(rounds: list[frozenset[int]]) -> None:
    """X10: whatever each round found, and whichever is delivered, both values stand in the table, each pair once."""
    base = run_of_claims([[]])
    run = replace(base, rounds=tuple(map(found_in_a_round, rounds)), report=ResearchReport())
    page = as_markdown(page_of_run(run))
    table = page.partition("## Contradictions")[2].partition("##")[0]
    pairs = [pair for pair in ({0, 1}, {2, 3}) if any(pair <= places for places in rounds)]

    assert len([line for line in table.splitlines() if line.startswith("| Land")]) == len(pairs)
    assert all(value in table for pair in pairs for value in (BORDERS[at].value.split(" (")[0] for at in pair))
