"""Each licensed edit of a claim, with what it must not be taken for."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from smart_model_router_research.deep.checking import SupportStatus, check_claim


def is_supported(claim: str, source: str, context: str = "Guide > Details", quote: str = "") -> bool:
    """Return whether a source supports a claim, by all of it or by a part that is quoted."""
    return check_claim(claim, quote or source, source, context).status is SupportStatus.SUPPORTED


@pytest.mark.parametrize(
    ("source", "claim"),
    [
        ("The blade cuts 25\u201375 mm.", "The blade cuts 25 to 75 mm."),
        ("The height is 25 to 75 mm.", "The height is 25\u201375 mm."),
        ("The diary is of 1811 to 1829.", "The diary is of 1811\u20131829."),
        ("It is open from 10:00 to 17:00.", "It is open from 10:00-17:00."),
        ("The shop opens at 10 a.m. on Sundays.", "The shop opens at 10am on Sundays."),
        ("The U.S. exports corn.", "The US exports corn."),
        ("It was shot in Rome & Paris.", "It was shot in Rome and Paris."),
        ("The cloth is 140 \u00d7 200 cm.", "The cloth is 140 x 200 cm."),
        ("The density is 0.874 g/cm\u00b3.", "The density is 0.874 g/cm3."),
        ("Around 9,400 sheets are here.", "About 9,400 sheets are here."),
        ("The 2nd part is a song.", "The second part is a song."),
        ("Take one tablet with food.", "Take 1 tablet with food."),
        ("It is within 21 days of the end.", "It is within twenty-one days of the end."),
        ("The parish has 9.2 km\u00b2 of wood.", "The parish has 920 hectares of wood."),
        ("The dam gives 1,860 MW.", "The dam gives 1.86 GW."),
        ("The device draws 0.85 \u00b5A.", "The device draws 850 nA."),
        ("The mass is 1.847 times that of the sun.", "The mass is 1.85 times that of the sun."),
        ("Solvane reacts with oxidisers.", "Solvane reacts with oxidizers."),
        ("The watch is water-resistant.", "The watch is water resistant."),
        ("It is kept in a well-ventilated place.", "It is kept in a well ventilated place."),
        ("The parts are cut, sanded and painted.", "The parts are cut, sanded, and painted."),
    ],
)
def test_typography_and_notation(source: str, claim: str) -> None:
    """Ranges, times of day, abbreviations, ordinals, units, endings of -ise, hyphens, a serial comma."""
    assert is_supported(claim, source)


@pytest.mark.parametrize(
    ("source", "claim"),
    [
        ("The score was 3-1.", "The score was 1-3."),
        ("The standard is ISO 8601-1.", "The standard is ISO 8601 to 1."),
        ("Take one of the tablets.", "Take 1 of the tablets."),
        ("They ran around a tree.", "They ran about a tree."),
        ("Players re-sign in May.", "Players resign in May."),
        ("The user's only file is old.", "The user only file is old."),
        ("A user's file is old.", "A user file is old."),
        ("The fee's not due.", "The fee not due."),
        ("In summer, cats and dogs sleep.", "In summer, cats, and dogs sleep."),
        ("The parts are old, most and all.", "The parts are old, most, and all."),
        ("The lake, the sea and land are deep.", "The lake, the sea, and land are deep."),
        ("He is a non-smoker.", "He is a non smoker."),
    ],
)
def test_what_typography_is_not(source: str, claim: str) -> None:
    """Another order, a name, a pronoun, a prefix, a word that turns, a list that goes on."""
    assert not is_supported(claim, source)


@pytest.mark.parametrize(
    ("source", "claim"),
    [
        ("The file that you open is locked.", "The file you open is locked."),
        ("A filter that raises an error is old.", "A filter which raises an error is old."),
        ("The town is quiet in the winter.", "The town is quiet in winter."),
        ("The town is quiet in winter.", "The town is quiet in the winter."),
        ("All of the users pay.", "All the users pay."),
        ("It tries again and then exits.", "It tries again and exits."),
        ("If it is wet, the younger one then leaves.", "The younger one leaves if it is wet."),
    ],
)
def test_light_words(source: str, claim: str) -> None:
    """The article of a season, "that" and "which", "of the" behind all, and "then" behind a condition."""
    assert is_supported(claim, source)


@pytest.mark.parametrize(
    ("source", "claim"),
    [
        ("Trains run on Sunday.", "The trains run on Sunday."),
        ("Most trains must stop.", "The most trains must stop."),
        ("The Bay Colony fell.", "The the Bay Colony fell."),
        ("It is so small that you lose it.", "It is so small you lose it."),
        ("The town is quiet in the winter of 1990.", "The town is quiet in winter of 1990."),
        ("The king and the queen are here.", "The king and queen are here."),
        ("The then holder is here.", "The holder is here."),
        ("It is then that the sun sets.", "It is that the sun sets."),
        ("Most of the samples were dry.", "Most samples were dry."),
        ("Winners receive a prize.", "Winners receive prizes."),
        ("A vote must be held on 5 May 2020.", "Votes must be held on 5 May 2020."),
        ("A (rare) bird must be fed.", "(Rare) birds must be fed."),
        ("A bridge is shut.", "Bridges are shut."),
        ("A first member must not vote.", "First members must not vote."),
        ("The first of them must pay.", "A first of them must pay."),
        ("The service has not, in a year, issued it.", "The service has not, in years, issued it."),
        ("The service has not issued a first warning.", "The service has not issued first warnings."),
        ("Er m\u00fc\u00dfte es der Bank und dem Amt sagen.", "Der m\u00fc\u00dfte es der Bank und dem Amt sagen."),
    ],
)
def test_what_light_words_are_not(source: str, claim: str) -> None:
    """Some of a kind, a degree, two persons, a time, an order, what happens once."""
    assert not is_supported(claim, source)


@pytest.mark.parametrize(
    ("source", "claim"),
    [
        ("The museum is closed in winter.", "In winter, the museum is closed."),
        ("The owl sleeps during the day.", "During the day, the owl sleeps."),
        ("The population was 4,812 at the census.", "At the census, the population was 4,812."),
        (
            "Where the stair is wide, rails must be put on both sides.",
            "Rails must be put on both sides where the stair is wide.",
        ),
        (
            "In dry years, it holds less than a tenth of the water.",
            "It holds less than a tenth of the water in dry years.",
        ),
        ("By default, it runs once every day.", "It runs once every day by default."),
        ("You can claim the credit if you are small.", "If you are small, you can claim the credit."),
        ("If it is sticky, add a little flour.", "Add a little flour if it is sticky."),
        ("In winter, there is no bus.", "There is no bus in winter."),
        ("In winter, it has only 5 rooms.", "It has only 5 rooms in winter."),
        ("According to the mayor, no deaths have been seen.", "No deaths have been seen, according to the mayor."),
        ("Unlike its rivals, it has no tone.", "It has no tone, unlike its rivals."),
        (
            "Unless a manager agrees, unused leave cannot be sold.",
            "Unused leave can't be sold unless a manager agrees.",
        ),
        ("Under the treaty, the king gave the isle to lorries.", "The king gave the isle to lorries under the treaty."),
    ],
)
def test_clauses_and_adverbials_that_move(source: str, claim: str) -> None:
    """From the beginning to the end of one clause, and back from behind its verb."""
    assert is_supported(claim, source)


@pytest.mark.parametrize(
    ("source", "claim"),
    [
        ("The group opposes elections in 2020.", "In 2020, the group opposes elections."),
        ("In 2020, the firm claims the bank owes it.", "The firm claims the bank owes it in 2020."),
        ("In 2020, the firm claims a debt and sells.", "The firm claims a debt and sells in 2020."),
        ("In 2020, both the cat and dog ran.", "Both the cat and dog ran in 2020."),
        ("The firm claims benefits if it is small.", "If it is small, the firm claims benefits."),
        ("The museum is closed in most winters.", "In most winters, the museum is closed."),
        ("In winter, the roof is seen to.", "The roof is seen to in winter."),
    ],
)
def test_what_does_not_move(source: str, claim: str) -> None:
    """An adverbial may belong to another word, or passes a word that points at one."""
    assert not is_supported(claim, source)


@pytest.mark.parametrize(
    "aside",
    [
        "(population 5,000)", "(Table 2)", '(from Latin "lupus")', "(opened in 1890)", "(now Oslo)",
        "(Ardeola palustris)", "(95% CI 6.1 to 12.7)", "(2021: 5 million)",
    ],
)  # fmt: skip
def test_parentheses_that_may_go(aside: str) -> None:
    """A size, a place to look, a name, an origin, a spread, another year."""
    assert is_supported("The thing is on the coast.", f"The thing {aside} is on the coast.")


@pytest.mark.parametrize(
    "aside",
    [
        "(population)", "(women)", "(Windows)", "(1990)", "(loss)", "(a misconception)", "(disputed)", "(its estimate)",
        "(this is denied)", "(a theory is a guess)", "(they)", "(its)", "(in theory)", "(not now)",
    ],
)  # fmt: skip
def test_parentheses_that_stay(aside: str) -> None:
    """Such a parenthesis may bound or deny, or its form says nothing."""
    assert not is_supported("The thing is on the coast.", f"The thing {aside} is on the coast.")


@pytest.mark.parametrize(
    "aside",
    [
        "which feeds two rivers", "which lies at the sea", "which was struck by lightning",
        "which joined the union", "which renamed her Hallen", "which is 1,850 metres long", "which was half the cost",
        "which is spoken on the next island", "which has a port",
    ],
)  # fmt: skip
def test_clauses_of_which(aside: str) -> None:
    """A verb that only says more may go with its clause."""
    assert is_supported("The thing is on the coast.", f"The thing, {aside}, is on the coast.")


@pytest.mark.parametrize(
    "aside",
    [
        "which the", "which is a myth", "which was repealed", "which is", "which is 5 m",
        "which rejected it", "which joined",
        "which was an estimate", "which makes it void", "which is a denied claim", "which has",
    ],
)  # fmt: skip
def test_clauses_of_which_that_stay(aside: str) -> None:
    """Such a clause takes back or estimates, or its form says nothing."""
    assert not is_supported("The thing is on the coast.", f"The thing, {aside}, is on the coast.")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("The lake is 5 km long", "the road runs along its shore"),
        ("Males turn red", "females keep their colour"),
        ("The party won 67 seats", "the union won 52 seats"),
        ("The drug caused a rash", "one patient stopped treatment"),
        ("Forgeries are common", "genuine used copies are rare"),
        ("The rate may change", "informs customers by letter"),
        ("The bank may pay the fee", "informs customers by letter"),
        ("The feed was dry in April", "it has since been sold"),
        ("Messages older than this value are kept", "a notice is written"),
        ("She wrote a quartet in 1788", "she died in 1790"),
        ("The dam began to give power", "the lock was added"),
        ("It was used 36 hours after launch", "the signal was sent"),
        ("Shares rose in early trading", "the firm has grown"),
        ("The regatta drew 14,862 guests", "the sun shone"),
    ],
)
def test_second_statements_that_may_go(first: str, second: str) -> None:
    """A last part behind ", and" with a subject and a verb of its own, by its form."""
    assert is_supported(f"{first}.", f"{first}, and {second}.")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("The fee is the sum of the base", "the town walls in the north"),
        ("The firm said that bread is sold", "the town is rich"),
        ("The firm wrote the town was rich", "the town is rich"),
        ("The fee covers the base", "the costs lost 5 years ago"),
        ("The fee covers the base", "the costs added in May"),
        ("Files are sent", "the firm stores none"),
        ("The bank pays", "cancels it"),
        ("He said saying it helps", "the town is rich"),
        ("The fee covers the base", "the running costs of it"),
        ("The fee covers the base", "costs of the town"),
    ],
)
def test_second_statements_that_stay(first: str, second: str) -> None:
    """Such a part may be a thing of a list, or its words report, deny or bound the first part."""
    assert not is_supported(f"{first}.", f"{first}, and {second}.")


@pytest.mark.parametrize(
    ("context", "source", "quote", "claim"),
    [
        ("Vento > Menu", "### Child lock\n\nLocks the keys. This function is off.", "This f", "Child lock is off."),
        ("Vento > Settings", "### Child lock\n\nThe default is on.", "The default", "The default of Child lock is on."),
        ("API > Orders", "### GET /orders/{id}\n\nThis endpoint is old.", "This", "GET /orders/{id} is old."),
        ("Guide > Strict profile", "This profile is on.", "This", "The Strict profile is on."),
        ("Shell > prune", "This command is old.", "This", "prune is old."),
        ("Lib > tide_at()", "The default zone is UTC.", "The", "The default zone of tide_at() is UTC."),
        ("Conf > ttl_seconds", "The maximum is 5.", "The", "The maximum of ttl_seconds is 5."),
        ("Lib > flush_it", "This function writes. It returns 0. This function is old.", "This function is old",
         "flush_it is old."),
        ("Search > Parameters", "- **limit**: hits. It is 25.\n- **lang** (a code): tongue. The default is it.",
         "The default is it", "The default of lang is it."),
        ("Credit > Who can claim", "The page is old.", "The", "The page is old."),
        ("Act > Section 22. Close season", "This section does not apply.", "This", "Section 22 does not apply."),
        ("Symphony No. 3 > Movements", "| Movement | Key |\n|---|---|\n| III | D |", "| III | D |",
         "The key of Movement III is D."),
    ],
)  # fmt: skip
def test_headings_and_labels_that_are_subjects(context: str, source: str, quote: str, claim: str) -> None:
    """Of what a heading names in words or in code, or a marked label of a list."""
    assert is_supported(claim, source, context, quote)


@pytest.mark.parametrize(
    ("context", "source", "quote", "claim"),
    [
        ("Vento > App settings", "This function is off.", "This", "App settings is off."),
        ("Vento > Child lock", "The fan spins. This function is off.", "This", "Child lock is off."),
        ("Vento > Child lock", "This room is off.", "This", "Child lock is off."),
        ("Vento > Details", "This function is off.", "This", "Details is off."),
        ("Vento", "This function is off.", "This", "Vento is off."),
        ("Search > Parameters", "- **limit**: hits.\n- **lang**: The wall holds it. The default is it.",
         "The default is it", "The default of lang is it."),
        ("Town > Projection", "| Ward | Heads |\n|---|---|\n| Quay | 61 |", "| Quay |", "The heads of Quay is 61."),
        ("Town > Effects in older people", "Trams run.", "Trams", "Towns run."),
    ],
)  # fmt: skip
def test_headings_that_are_no_subjects(context: str, source: str, quote: str, claim: str) -> None:
    """Of several things, of another noun, of a section, of a title, or behind a sentence about another thing."""
    assert not is_supported(claim, source, context, quote)


@pytest.mark.parametrize(
    ("context", "source", "claim"),
    [
        ("Loaf > Route card", "- Start: Gorrin", "Start of the Loaf: Gorrin"),
        ("Loaf > Definitions and fees", "- Fee: 5", "The fee of Loaf: 5"),
        ("Loaf > Chemical properties", "- Density: 5", "Density of Loaf: 5"),
        ("Ostria > Profile", "- Borders: Velmark, South Tarn", "South Tarn borders Ostria."),
        ("Ostria > Profile", "- Border countries: Velmark 5 km", "Ostria borders Velmark."),
        ("Policy > Section B > Exclusions", "- Loss of data", "Exclusions of Policy: loss of data"),
        ("Atlas", "| Country | Borders |\n|---|---|\n| Ruvia | Caspen |", "Caspen borders Ruvia."),
        ("Atlas", "| Star | Distance (pc) |\n|---|---|\n| VX | 41.8 |", "The distance of VX is 41.8 pc."),
        ("Atlas", "| Moon | Period (days) |\n|---|---|\n| Tove | 0.63 |", "The period of Tove is 0.63 days."),
        ("Atlas", "| Size | Price |\n|---|---|\n| small pie | 5 |", "The price of the small pie is 5."),
        ("Atlas", "Little Hadding is twinned with Brandau.", "Brandau is twinned with Little Hadding."),
        ("Atlas", "Ann Elk was married to the poet Jon Rhee.", "The poet Jon Rhee was married to Ann Elk."),
        ("Atlas", "Line p is parallel to line q.", "Line q is parallel to line p."),
        ("Atlas", "Orvella montana is related to Orvella stricta.", "Orvella stricta is related to Orvella montana."),
    ],
)
def test_labels_rows_and_sentences_from_either_end(context: str, source: str, claim: str) -> None:
    """Read as of the page below headings of sections, with units of the head, and as what both have in common."""
    assert is_supported(claim, source, context)


@pytest.mark.parametrize(
    ("context", "source", "claim"),
    [
        ("Pie > Vegetarian version", "- Fish: 5 g", "Fish of Pie: 5 g"),
        ("Ostria > Profile", "- Borders: Velmark, the sea", "The sea borders Ostria."),
        ("Myths > B > Exclusions", "- Loss of data", "Exclusions of Myths: loss of data"),
        ("Atlas", "| Star | Price (net) |\n|---|---|\n| VX | 41.8 |", "The price of VX is 41.8."),
        ("Atlas", "Only Mali borders Chad.", "Chad borders Mali."),
        ("Atlas", "Mali borders Chad and Togo.", "Chad borders Togo."),
        ("Atlas", "Mali borders Chad at the lake.", "Chad borders Mali at the lake."),
        ("Atlas", "Mali borders Chad and perhaps Togo.", "Togo borders Mali."),
    ],
)
def test_what_is_not_read_from_either_end(context: str, source: str, claim: str) -> None:
    """Of one of several things, of no name, below a heading that turns, under a head that bounds, of a bound name."""
    assert not is_supported(claim, source, context)


HOSTILE = Path(__file__).parents[3] / "fixtures" / "research" / "hostile_edits.jsonl"


@pytest.mark.parametrize(
    "row", [json.loads(line) for line in HOSTILE.read_text("utf-8").splitlines()], ids=lambda row: row["source"]
)
def test_edits_that_a_hostile_reviewer_had_accepted(row: dict[str, str]) -> None:
    """Other senses of synonyms, one for all, asides that bound, sections that are things, adverbials of other words."""
    assert not is_supported(row["claim"], row["source"], row["context"])


DOCUMENT = (Path(__file__).parents[4] / "docs" / "how-to" / "checking.md").read_text("utf-8")
ROWS = re.findall(r"(?m)^\| [^|]+ \| ([A-Z][^|`]*\.) \| ([A-Z][^|`]*\.) \| [^|]*\|$", DOCUMENT)


@pytest.mark.parametrize(("source", "claim"), ROWS, ids=[source for source, _ in ROWS])
def test_what_the_documentation_says_that_a_statement_may_change(source: str, claim: str) -> None:
    """Each sentence of its table becomes the one beside it."""
    for said, changed in zip(source.split(". "), claim.split(". "), strict=True):
        assert is_supported(f"{changed.rstrip('.')}.", f"{said.rstrip('.')}.", "Guide")


def test_the_documentation_has_a_table_of_what_may_change() -> None:
    """Thirteen of its rows are sentences; those of headings, tables and labels are tested above."""
    assert len(ROWS) == 13


@pytest.mark.parametrize(
    ("source", "claim"),
    [
        ("The load is 5,670 kg (about 12,500 lb).", "The load is 5,670 kg."),
        ("Heat the oven to 200 °C (390 °F).", "Heat the oven to 200 °C."),
        ("The oven is at 390 °F (199 °C).", "The oven is at 390 °F."),
        ("The gap is 3 inches (76 mm) wide.", "The gap is 3 inches wide."),
        ("They sell roots (e.g. carrots, leeks or Jersey Royals).", "They sell roots."),
        ("The Department of Roads (DoR) is old.", "The Department of Roads is old."),
        ("Gloves of nitrile butadiene rubber (NBR) are worn.", "Gloves of nitrile butadiene rubber are worn."),
        ("The court found that the mill had broken the law.", "The court found the mill had broken the law."),
        ("Her letters show that the shop also sold maps.", "Her letters show that the shop sold maps."),
        ("It closes on 15 May at 9:30 p.m.", "It closes on 15 May at 9:30 pm."),
        ("Mill Lane is also parallel to Canal Street.", "Canal Street is parallel to Mill Lane."),
        ("The hall, which is in Kent, is old.", "The hall is old."),
        ("The bell, which was cast by Ann Ware, is old.", "The bell is old."),
    ],
)
def test_what_blind_authors_left_out(source: str, claim: str) -> None:
    """Amounts in other units, examples that are things, initials, and words that tell nothing."""
    assert is_supported(claim, source, "Guide")


@pytest.mark.parametrize(
    ("source", "claim"),
    [
        ("The load is 5,670 kg (12,900 kg).", "The load is 5,670 kg."),
        ("The load is 5,670 kg (10,500 lb).", "The load is 5,670 kg."),
        ("The load is 5,670 (12,500 lb).", "The load is 5,670."),
        ("The load is heavy (12,500 lb).", "The load is heavy."),
        ("They sell roots (e.g. 5 carrots).", "They sell roots."),
        ("They sell roots (e.g.).", "They sell roots."),
        ("They sell a root (e.g. carrots).", "They sell a root."),
        ("The Department of Roads (RoD) is old.", "The Department of Roads is old."),
        (f"{'Aa ' * 60}Ab ({'A' * 29}C) is old.", f"{'Aa ' * 60}Ab is old."),  # and that in no time
        ("The report that also names the bank is void.", "The report that names the bank is void."),
        ("They say that which also sold maps.", "They say that which sold maps."),
        ("Her letters show that the shop also sold to them.", "Her letters show that the shop sold to them."),
        ("Her letters show that the largest shop also sold maps.", "Her letters show that the largest shop sold maps."),
        ("Her letters hint that the shop also sold maps.", "Her letters hint that the shop sold maps."),
        ("The coins found that the king minted are old.", "The coins found the king minted are old."),
        ("The found that the king lied.", "The found the king lied."),
        ("Alone Lenz also borders Mali.", "Mali borders Alone Lenz."),
        ("The duke killed the brewer, and the story is a legend.", "The duke killed the brewer."),
        ("The train leaves at noon, and the timetable is a draft.", "The train leaves at noon."),
        ("The firm was sold in 1990, and the state took over the firm.", "The firm was sold in 1990."),
        ("The hall, which is in ruins, is old.", "The hall is old."),
        ("Drugs (such as the ones listed below) are safe.", "Drugs are safe."),
        ("Lenz partly borders Mali.", "Mali borders Lenz partly."),
    ],
)
def test_what_bounds_is_not_left_out(source: str, claim: str) -> None:
    """Other amounts and none, examples of none or of one, initials out of order, relative clauses, other verbs."""
    assert not is_supported(claim, source, "Guide")
