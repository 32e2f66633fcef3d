"""Sources that mislead, as a cold review wrote them: none of it is accepted."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from smart_model_router_research.deep import (
    ClaimExaminer,
    ClaimKind,
    ClaimStatus,
    InferenceError,
    Operation,
    ResearchClaim,
    check_claim,
    compare_claims,
    date_of,
    infer,
    verify,
    write_artefacts,
)
from smart_model_router_research.deep.folding import FoldedText
from smart_model_router_research.deep.markdown_page import escaped
from smart_model_router_research.deep.pairs import SearchedText, check_statement
from smart_model_router_research.deep.repair import quotation
from tests.research_runs import claim, document, run_of_claims


def accepted(text: str, source: str) -> bool:
    """Return whether any way to check it finds the claim supported by the source."""
    return "supported" in (
        check_claim(text, source.strip(), source).status.value,
        check_statement(text, [SearchedText(source)]).status.value,
    )


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("The rate is <5 %.", "The rate is 5 %."),
        ("The latency is > 5 ms.", "The latency is 5 ms."),
        ("Drop support for node <18", "Drop support for node 18"),
        ("Python < 3.8 is supported.", "Python 3.8 is supported."),
        ("The test passes when x <= 5.", "The test passes when x = 5."),
        ("The temperature is \u2212 5 \u00b0C.", "The temperature is 5 \u00b0C."),
        ("| Year | Net income |\n|---|---|\n| 2023 | (1,200) |\n", "The net income of 2023 is 1,200."),
        ("| Name | Birth |\n|---|---|\n| Bob | 1450? |\n", "The birth of Bob is 1450."),
        ("Columbus was born in Genoa (?).", "Columbus was born in Genoa."),
        ("The earth is flat?!", "The earth is flat."),
    ],
)
def test_signs_that_turn_a_number_or_a_sentence_are_kept(source: str, text: str) -> None:
    """Less than, more than, minus, accountants' parentheses and question marks are no typography (K4, K5)."""
    assert not accepted(text, source)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("The house costs $5m.", "The house costs \u00a35m."),
        ("The firm is worth $5B.", "The firm is worth \u20ac5B."),
        ("The pipe is 5\u2032 long.", "The pipe is 5\u2033 long."),
    ],
)
def test_currencies_and_marks_of_units_are_compared(source: str, text: str) -> None:
    """Dollars are not pounds when an m or a B follows, feet are not inches (K5)."""
    assert not accepted(text, source)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (
            "Einstein published the theory that was proved in 1919.",
            "In 1919 Einstein published the theory that was proved.",
        ),
        ("In 2010, Reuters reported that the bank failed.", "Reuters reported that the bank failed in 2010."),
        ("In 1990, Bob met the woman who killed her husband.", "Bob met the woman who killed her husband in 1990."),
        ("The firm said that sales of cars fell in the US.", "In the US the firm said that sales of cars fell."),
    ],
)
def test_an_adverbial_does_not_change_its_verb(source: str, text: str) -> None:
    """A clause moves to the other end only when it belongs to the same verb there: not past that, who or a report."""
    assert not accepted(text, source)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("Vaccines cause autism, which is a misconception.", "Vaccines cause autism."),
        ("Vaccines cause autism, which is a claim that scientists reject.", "Vaccines cause autism."),
        ("Smoking is good for the lungs, which is **not true**.", "Smoking is good for the lungs."),
        ("Smoking is good for the lungs (a misconception).", "Smoking is good for the lungs."),
        ("The law, which is repealed, bans guns.", "The law bans guns."),
        ("The function raises an error (Windows).", "The function raises an error."),
        ("The life expectancy is 83 years (women).", "The life expectancy is 83 years."),
        ("The population is 80 million (1990).", "The population is 80 million."),
        ("The profit was 5 million (loss).", "The profit was 5 million."),
    ],
)
def test_an_aside_that_turns_or_bounds_is_not_left_out(source: str, text: str) -> None:
    """Asides go "unless they turn, bound or hedge something, or say where or when" (docs/design/checks.md, 3)."""
    assert not accepted(text, source)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("It is not true that Gov. Smith lost the election.", "Smith lost the election."),
        ("No evidence suggests that Capt. Cook discovered Hawaii.", "Cook discovered Hawaii."),
        ("It is false that Mt. Everest is in India.", "Everest is in India."),
        ("It is a myth that Yahoo! Mail is slow.", "Mail is slow."),
        ("If the disk is full... The server fails.", "The server fails."),
        ("If the condition a || b || c holds,\nthe server fails.", "The server fails."),
    ],
)
def test_a_sentence_is_not_cut_where_it_goes_on(source: str, text: str) -> None:
    """Words before an abbreviation, a name with "!", an ellipsis or a line with pipes are part of the sentence."""
    assert not accepted(text, source)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("# G\n\n## If the disk is full\n\nThe server fails.\n", "The server fails."),
        ("# G\n\n## Claim\n\nVaccines cause autism.\n\n## Verdict\n\nFalse.\n", "Vaccines cause autism."),
        ("# Facts\n\n## Vaccines cause autism\n\nFalse. They do not.\n", "Vaccines cause autism."),
        ("# G\n\n## What the tool cannot do\n\nThe tool reads PDF files.\n", "The tool reads PDF files."),
        ("**Common myths**\n\nThe earth is flat.\n", "The earth is flat."),
        ("None of the following is true.\n\n- The earth is flat.\n- It is hollow.\n", "The earth is flat."),
        ("Contents:\n\n- Common myths\n  - The earth is flat.\n", "The earth is flat."),
        ("Notes:\n\n- When the disk is full\n  - The server fails.\n", "The server fails."),
        ("Critics make these false claims:\n\nThe vaccine is old.\n\nThe vaccine kills.\n", "The vaccine kills."),
        ("These are false:\n\n" + "- One is odd.\n" * 210 + "- The moon is cheese.\n", "The moon is cheese."),
        ("Use it.\n\n```\nThe limit is 5.\n```\n", "The limit is 5."),
        ("Use it.\n\n<!-- The limit is 5. -->\n", "The limit is 5."),
        ("Use it.\n\n~~The limit is 5.~~\n", "The limit is 5."),
        ("# G\n\n## On Windows\n\nThe limit is 5.\n", "The limit is 5."),
        ("# G\n\n## Discontinued\n\nThe limit is 5.\n", "The limit is 5."),
        ("The limit is 5. However, this claim has been rejected.", "The limit is 5."),
        ("Wrong prices.\n\n| Item | Price |\n|---|---|\n| tea | 5 |\n", "The price of tea is 5."),
    ],
)
def test_what_a_statement_stands_under_turns_it(source: str, text: str) -> None:
    """A condition or a denial in a heading, a parent item, a caption or a far lead-in is part of what is said (K4)."""
    assert not accepted(text, source)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ('"The earth is flat. It is hollow," said the fool.', "The earth is flat."),
        ('The fool spoke: "I am one.\n\n"The earth is flat.\n\n"It is hollow."\n', "The earth is flat."),
        ("The minister said \u2018The tax will rise. The rich will pay.\u2019", "The rich will pay."),
        ("Flat-earthers wrote:\n\n> The earth is flat.\n", "The earth is flat."),
        ("Bob, says Alice, is a liar.", "Bob says Alice is a liar."),
    ],
)
def test_what_a_source_only_quotes_is_not_what_it_says(source: str, text: str) -> None:
    """Quotations of two sentences, of several paragraphs, in single marks and in blocks are other people's words."""
    assert not accepted(text, source)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("# France\n\nIts neighbour Germany has:\n\n- Capital: Berlin\n", "The capital of France is Berlin."),
        ("# France\n\nNeighbours:\n\n- Germany\n  - Capital: Berlin\n", "The capital of France is Berlin."),
        ("# France\n\n**Germany**\n\nCapital: Berlin\n", "The capital of France is Berlin."),
        ("# France\n\nLargest city: Paris, Lyon, Nice.\n", "The largest city of France is Lyon."),
        ("# --color\n\nThe --verbose option prints more. This option is old.\n", "The option --color is old."),
        ("# max_size\n\nThe timeout limits the wait. The default is 5.\n", "The default of max_size is 5."),
        ("Only Mali borders Chad.", "Chad borders only Mali."),
    ],
)
def test_a_value_belongs_to_what_it_stands_under(source: str, text: str) -> None:
    """A label, "This option" and "The default" are of the nearest thing named, not of the title above it."""
    assert not accepted(text, source)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (
            "| Country | Sex | Life expectancy |\n|---|---|---|\n| Chad | male | 52 |\n| Chad | female | 55 |\n",
            "The life expectancy of Chad is 52.",
        ),
        (
            "| Country | Year | Population |\n|---|---|---|\n| Chad | 2010 | 11 million |\n| Chad | 2020 | 16 m |\n",
            "The population of Chad is 11 million.",
        ),
        (
            "| Function | Status |\n|---|---|\n| **Removed in 3.0** | |\n| foo() | stable |\n",
            "The status of foo() is stable.",
        ),
    ],
)
def test_a_row_is_read_by_its_first_cell_only_where_that_names_it(source: str, text: str) -> None:
    """Where two rows have one first cell, or a row divides the table, "COLUMN of ROW is CELL" says another thing."""
    assert not accepted(text, source)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("Adams wrote the letter.", "Adam wrote the letter."),
        ("The Times reported the theft.", "Time reported the theft."),
        ("Hepatitis A is spread by dirty water.", "Hepatitis is spread by dirty water."),
        ("Ohio voted for Clinton.", "Ohio elected Clinton."),
        ("The then president of France met Bob.", "The president of France met Bob."),
        ("There is little hope.", "There is small hope."),
    ],
)
def test_names_and_what_turns_are_no_plurals_articles_or_synonyms(source: str, text: str) -> None:
    """Entities match whole names (K5), and no synonym is polar: Adams is not Adam, hepatitis A not any hepatitis."""
    assert not accepted(text, source)


def test_a_pronoun_of_a_statement_is_of_the_sentence_before_it() -> None:
    """Two sentences, each true of another thing in another source, are not one true statement."""
    sources = [
        SearchedText("The port of FTP is 21. It is encrypted by no one."),
        SearchedText("SSH is old. It is safe."),
    ]

    assert check_statement("The port of FTP is 21. It is safe.", sources).status.value != "supported"
    assert not accepted("Bob was born in Rome. In 1990 he died.", "Bob was born in Rome. Carl fought. In 1990 he died.")


def test_inferences_rest_on_values_that_their_claims_state_of_that_entity_and_attribute() -> None:
    """Entity and value of two halves of a sentence, a free attribute and a denied value found no inference."""
    said = "Chad has 16 million people, Mali has 20 million people."
    denied = "Bamako is not the capital of Chad."
    examiner = ClaimExaminer([document("x.md", said, title="Africa"), document("n.md", denied, title="Chad")])

    def premise(claim_id: str, text: str, entity: str, value: str, attribute: str) -> ResearchClaim:
        doc_id = "x.md" if text == said else "n.md"
        draft = claim(claim_id, text, doc_id, text, entity=entity, value=value, attribute=attribute)
        return examiner.examine(draft)

    swapped = [
        premise("a", said, "Chad", "20 million", "population"),
        premise("b", said, "Mali", "16 million", "population"),
    ]
    for premises in (
        swapped,
        [premise("a", said, "Chad", "16 million", "area"), premise("b", said, "Mali", "20 million", "area")],
    ):
        with pytest.raises(InferenceError):
            infer(Operation.LARGEST, premises, "these", claim_id="i")
    assert premise("n", denied, "Chad", "Bamako", "capital").value == ""


def test_inferences_keep_units_and_eras_apart() -> None:
    """Fathoms are not leagues, degrees Celsius not Fahrenheit, 300 BC is before 200, and a link is what it is."""

    def stated(claim_id: str, entity: str, attribute: str, value: str, other: str = "") -> ResearchClaim:
        return ResearchClaim(
            id=claim_id, text="x", entity=entity, attribute=attribute, value=value, other=other,
            kind=ClaimKind.NUMBER, status=ClaimStatus.SUPPORTED,
        )  # fmt: skip

    for operation, one, other in (
        (Operation.SUM, "5 \u00b0C", "5 \u00b0F"),
        (Operation.LARGEST, "5 leagues", "6 fathoms"),
    ):
        with pytest.raises(InferenceError):
            infer(operation, [stated("1", "A", "depth", one), stated("2", "B", "depth", other)], "these", claim_id="i")
    founded = [stated("1", "A", "year", "300 BC"), stated("2", "B", "year", "200")]
    with suppress(InferenceError):
        assert "that of A" in infer(Operation.EARLIEST, founded, "these", claim_id="i").text
    border = stated("1", "Chad", "border length", "5 km", "Mali")
    with pytest.raises(InferenceError):
        infer(Operation.JOIN, [border, stated("2", "Mali", "capital", "Bamako")], "these", claim_id="i")


@pytest.mark.parametrize(
    ("one", "other"),
    [("100 million", "149 million"), ("1,000 km", "1,499 km"), ("5 GB", "5 GiB"), ("< 5 km", "> 5 km")],
)
def test_values_apart_beyond_rounding_do_not_agree(one: str, other: str) -> None:
    """Numbers apart beyond rounding are compared as contradictions; a noughts-only number is not one digit."""
    claims = [
        ResearchClaim(id=name, text="x", entity="X", attribute="size", value=value, status=ClaimStatus.SUPPORTED)
        for name, value in (("a", one), ("b", other))
    ]

    assert compare_claims(*claims).relation.value != "agrees"


def test_a_number_of_thirty_digits_is_no_error() -> None:
    """`check_claim` and `check_statement` never raise."""
    assert check_claim("The sun has 1e30 kg.", "The sun has 2e30 kg.", "The sun has 2e30 kg.").reasons
    assert check_statement("The sun has 1e30 kg.", [SearchedText("The sun has 2e30 kg.")]).reasons


def test_a_run_with_a_quote_that_is_nowhere_verifies(tmp_path: Path) -> None:
    """Claims that were refused for their quotes are honest content of a run; its folder verifies."""
    run = run_of_claims([[claim("c1", "Bread is good.", "arland.md", "no such quote")]])
    write_artefacts(run, tmp_path / "run")

    assert verify(tmp_path / "run").problems == ()


@pytest.mark.parametrize("text", ["i\u2764.ws", "\U0001f600.com", "evil\u200d.com", "user@\u2764.ws", "ex\u0301.com"])
def test_no_text_of_a_source_becomes_a_link(text: str) -> None:
    """No source can add a link: hosts of signs that are no letters are linked by readers, too."""
    tokens = MarkdownIt("gfm-like", {"linkify": True}).parse(f"- {escaped(text)}\n")
    children = [child.type for token in tokens if token.type == "inline" for child in token.children or ()]

    assert "link_open" not in children


def test_a_repair_keeps_what_its_sentence_needs() -> None:
    """A repair is quoted with its heading path where it has a condition there or speaks of something said before."""
    page = FoldedText(
        "# G\n\n## If the disk is full\n\nThe server fails.\n\nAnn ran. Bob stole. The latter was jailed.\n"
    )

    assert quotation("The server always fails.", "The server fails.", page) != "The server fails."
    assert quotation("The latter was shot.", "The latter was jailed.", page) != "The latter was jailed."


@pytest.mark.parametrize(
    "html",
    [
        "<body><article><p>The rival site said: 'last updated 5 May 2026'.</p></article></body>",
        "<body><article><p>The law was last updated on 5 May 2026 by parliament.</p></article></body>",
        "<body><article><p>His novel was published 5 May 2026 in Paris.</p></article></body>",
        "<body><article><p>The concert is on <time datetime='2026-06-30'>Tuesday</time>.</p></article></body>",
        '<script type="application/ld+json">{"@type":"Article","datePublished":"2026-06-01","url":"https://o.org"}</script>',
        '<script type="application/ld+json">{"@type":"NewsArticle","datePublished":20260601}</script>',
        "<body><article><p>In Paris, on <time>2026-06-01</time>, it rained.</p></article></body>",
    ],
)
def test_a_day_of_something_else_is_not_the_day_of_the_page(html: str) -> None:
    """A law, a novel, a concert, another page's article and a number that is no moment date no page confidently."""
    found = date_of(html, {}, "https://e.org/x", datetime(2026, 7, 1, tzinfo=UTC))

    assert all(each is None or each.confidence.value == "low" for each in (found.published, found.modified))
