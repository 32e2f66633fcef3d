"""Questions in everyday words, asked of short pages: what is said there answers, and what looks alike does not."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from smart_model_router_research.deep import OfflineAnswer, answer_offline
from smart_model_router_research.deep.asked_choices import settles
from smart_model_router_research.deep.asked_lists import asked_several
from smart_model_router_research.deep.asked_phrases import in_plain_words
from smart_model_router_research.deep.asked_relations import deed_of, release_asked_for
from smart_model_router_research.deep.asked_values import AskedKind, AskedValue, asked_value, values_of
from smart_model_router_research.deep.asked_words import words_of
from tests.fixtures.research.judging import FROZEN, Row, ask_all, corpus, frozen_rows, says


def asked(folder: Path, pages: dict[str, str], question: str) -> OfflineAnswer:
    """Return what a folder of these pages answers."""
    folder = folder / "pages"
    folder.mkdir()
    for name, text in pages.items():
        (folder / f"{name}.md").write_text(text, "utf-8")

    async def ask() -> OfflineAnswer:
        return await answer_offline(question, [await corpus(folder)])

    return asyncio.run(ask())


@pytest.fixture(scope="module")
def frozen(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Row, OfflineAnswer]]:
    """The frozen questions, answered."""
    folder = tmp_path_factory.mktemp("frozen") / "sqlite"
    folder.symlink_to(FROZEN / "corpus")

    async def ask() -> list[tuple[Row, OfflineAnswer]]:
        return await ask_all(frozen_rows(), [await corpus(folder)])

    return asyncio.run(ask())


def test_the_frozen_questions_meet_their_goals(frozen: list[tuple[Row, OfflineAnswer]]) -> None:
    """Of 40 that can be answered 60 % are, 90 % of those rightly; the other ten are not."""
    known = [(row, answer) for row, answer in frozen if row["kind"] != "unanswerable"]
    answered = [(row, answer) for row, answer in known if answer.answers]
    wrong = [row["id"] for row, answer in answered if not says(row, answer)]
    invented = [row["id"] for row, answer in frozen if row["kind"] == "unanswerable" and answer.answers]

    assert (len(known), invented) == (40, [])
    assert len(answered) >= 24
    assert len(wrong) <= 0.1 * len(answered), wrong


RELEASES = "# Releases\n\n| Date | Version |\n|---|---|\n| 2020-05-01 | 2.1 |\n| 2019-03-02 | 2.0 |\n"
CHANGES = "# Changes\n\nVersion 2.1 fixes a race in the lock of the queue.\n\nVersion 2.0 adds a second cache.\n"


@pytest.mark.parametrize(
    "question",
    [
        "When was the version released that fixed the race in the lock of the queue?",
        "On what date did the release appear that mended the race in the lock of the queue?",
    ],
)
def test_the_date_of_a_release_is_found_by_what_it_did(question: str, tmp_path: Path) -> None:
    """The version first, and then its date in the table of releases."""
    assert asked(tmp_path, {"releases": RELEASES, "changes": CHANGES}, question).values == ("2020-05-01",)


@pytest.mark.parametrize(
    ("pages", "question"),
    [
        ({"releases": RELEASES, "changes": CHANGES}, "When was the version released that fixed the leak of memory?"),
        (
            {"releases": RELEASES, "changes": "# Changes\n\nVersion 1.9 fixes a race in the lock of the queue.\n"},
            "When was the version released that fixed the race in the lock of the queue?",
        ),
        (
            {"changes": "# Changes\n\nThe race in the lock of the queue was known since 2004.\n"},
            "When was the version released that fixed the race in the lock of the queue?",
        ),
    ],
)
def test_without_both_steps_no_release_has_a_date(pages: dict[str, str], question: str, tmp_path: Path) -> None:
    """A deed of no release, a release without a date, and another date."""
    assert asked(tmp_path, pages, question).values == ()


LOG = (
    "# Changelog\n\n## 2.2.0 - 2025-06-12\n\n### Added\n\n- Jobs can be stored in a queue.\n\n### Fixed\n\n"
    "- A memory leak in the worker.\n\n### Removed\n\n- Support for Windows 7.\n\n## 2.1.0 - 2025-02-27\n\n"
    "### Added\n\n- A web dashboard.\n"
)


@pytest.mark.parametrize(
    ("question", "value"),
    [
        ("When was version 2.2.0 released?", "2025-06-12"),
        ("What day did version 2.1.0 come out?", "2025-02-27"),
        ("When was Changelog 2.1.0 released?", "2025-02-27"),
        ("When was Windows 2.1.0 released?", ""),
        ("When was version 2.2 released?", ""),
        ("When was the version released that fixed the memory leak in the worker?", "2025-06-12"),
        ("Since which version can I store jobs in a queue?", "2.2.0"),
        ("Which version fixed the memory leak in the worker?", "2.2.0"),
        ("Which version removed the memory leak in the worker?", ""),
        ("In which version was support for Windows 7 removed?", "2.2.0"),
        ("In which version was support for Windows 7 added?", ""),
    ],
)
def test_a_changelog_is_read_by_its_headings(question: str, value: str, tmp_path: Path) -> None:
    """The version and its date stand in a heading, what was done in the section below; the claim says the headings."""
    answer = asked(tmp_path, {"changelog": LOG}, question)
    assert answer.values == ((value,) if value else ())
    said = {claim.id: claim.text for claim in answer.claims}
    assert all(value in said[each] or "computed" in said[each] for ids in answer.answers.values() for each in ids)


def test_two_dates_of_one_release_are_none(tmp_path: Path) -> None:
    """Of two changelogs, or of two products of one folder."""
    other = LOG.replace("2025-06-12", "2024-01-01")
    assert asked(tmp_path, {"one": LOG, "two": other}, "When was version 2.2.0 released?").values == ()


def test_other_questions_ask_for_no_date_of_a_release() -> None:
    """The deed of the release is read from the question, without its end."""
    assert release_asked_for("When was the release that added a cache published?") == "added a cache"
    assert release_asked_for("When was the cache added that version 2 has?") == ""


MODES = (
    "# Modes\n\nThe server has three different queue modes:\n\n1.  **Direct**. Nothing is kept.\n\n"
    "2.  **Memory**. Messages are kept until a restart.\n\n3.  **Disk**. Messages are kept on disk.\n\n"
    "The queue mode is set in the file of the server.\n"
)


@pytest.mark.parametrize(
    "question", ["What are the queue modes of the server?", "Which queue modes does the server have?"]
)
def test_a_list_answers_as_a_whole(question: str, tmp_path: Path) -> None:
    """Each item is a claim of its own."""
    assert asked(tmp_path, {"modes": MODES}, question).values == ("Direct", "Memory", "Disk")


@pytest.mark.parametrize(
    ("text", "question"),
    [
        (MODES, "What are the colour modes of the screen?"),
        (MODES, "Which other queue modes does the server have besides Disk?"),
        (MODES.replace("has three", "has no longer these"), "What are the queue modes of the server?"),
        (
            f"{MODES}\n## More\n\nThe server has three different queue modes:\n\n- **Open**. A.\n- **Shut**. B.\n",
            "What are the queue modes of the server?",
        ),
    ],
)
def test_a_list_of_something_else_and_a_part_of_one_answer_nothing(text: str, question: str, tmp_path: Path) -> None:
    """Other modes, "other", a line that denies them, and two lists of which neither is nearer."""
    assert asked(tmp_path, {"modes": text}, question).values == ()


@pytest.mark.parametrize(
    ("question", "noun"),
    [
        ("Which settings can I give per filter?", "settings"),
        ("What kinds of filter conditions are there?", "conditions"),
        ("Name the three levels", "levels"),
        ("Which port does it use?", ""),
        ("Which program uses the port?", ""),
        ("What other modes are there?", ""),
    ],
)
def test_several_things_are_asked_for_by_a_plural(question: str, noun: str) -> None:
    """No verb in the third person is one."""
    assert asked_several(question) == noun


@pytest.mark.parametrize(
    ("text", "is_settled"),
    [
        ("The log is turned off by default.", True),
        ("By default the log is off.", True),
        ("The log is not turned off by default.", False),
        ("The log is turned off by default if it is full.", False),
        ("The log is written by default.", False),
        ("The filter is turned off by default.", False),
        ("To write the log by default, use log=on.", False),
        ("The log is off by default, and it is on in tests.", False),
    ],
)
def test_one_of_two_states_settles_which_it_is(text: str, is_settled: bool) -> None:
    """The state that a thing is said to be in, alone, without a condition and without a denial."""
    assert settles("Is the log on or off by default?", text) is is_settled


def test_words_that_are_no_opposites_are_no_states() -> None:
    """Nor is a question without two of them."""
    assert not settles("Is the log red or off?", "The log is off.")
    assert not settles("Which log is off?", "The log is off.")


@pytest.mark.parametrize(
    ("question", "plain"),
    [
        ("Out of the box, which port is used?", "as the default, which port is used?"),
        ("Is it on unless I say otherwise?", "Is it on as the default?"),
        ("How long, if I leave the defaults alone?", "How long, as the default?"),
        ("How many can run at the same time?", "How many can run simultaneously?"),
        ("What comes out of the boxes?", "What comes out of the boxes?"),
    ],
)
def test_everyday_phrases_are_read_in_words_of_documentation(question: str, plain: str) -> None:
    """Where nothing is set there is a default."""
    assert in_plain_words(question) == plain


@pytest.mark.parametrize(
    ("text", "question", "values"),
    [
        (
            "# People\n\nAda B. Lovelace wrote notes in 1843. Lovelace was born, lived and worked in London.\n",
            "Where did Ada B. Lovelace live?",
            ("in London",),
        ),
        (
            "# People\n\nAda B. Lovelace wrote notes on 1843-02-01 and more. Byron lived and worked in London.\n",
            "Where did Ada B. Lovelace live?",
            (),
        ),
        (
            "# Limits\n\nThe number of open files is limited to MAX, which is set to 20 by default.\n",
            "Out of the box, how many files can be open?",
            ("20",),
        ),
        (
            "# Speed\n\nOne archive with 5-kilobyte pictures takes about 30% less space on the disk than a folder.\n",
            "By how many percent do 5 kilobyte pictures take less space on the disk in one archive?",
            ("30",),
        ),
        (
            "# Future\n\nWe plan to support the archive until 2040. A copy has about 1000 pages.\n",
            "Until when do the developers mean to support the archive?",
            ("2040",),
        ),
        (
            "# News\n\nIn 2016, a team of engineers at Acme started the Fuzz project.\n",
            "When did Acme engineers start the Fuzz project?",
            ("2016",),
        ),
        (
            "# News\n\nSupport for nested folders was added with version 3.4.\n",
            "Since which release can I declare nested folders?",
            ("3.4",),
        ),
    ],
)
def test_everyday_questions_are_answered_by_what_is_said(
    text: str, question: str, values: tuple[str, ...], tmp_path: Path
) -> None:
    """A part of a name, a number behind its noun, a share, "we", a doer of two words, and support for a deed."""
    found = asked(tmp_path, {"page": text}, question).values
    assert tuple(value.removeprefix("version ") for value in found) == values


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("Fennel lacks these features:\n\n- caches\n- locks\n", "Which features does Fennel have?"),
        ("Fennel used to support these brokers:\n\n- Kafka\n- Redis\n", "Which brokers does Fennel support?"),
        ("Fennel supports these brokers on Linux only:\n\n- Kafka\n- Redis\n", "Which brokers does Fennel support?"),
        ("Fennel supports these brokers:\n\n- Kafka (planned)\n- Redis\n", "Which brokers does Fennel support?"),
        ("Fennel supports these brokers:\n\n- Kafka. Deprecated.\n- Redis\n", "Which brokers does Fennel support?"),
        ("Fennel has brokers from version 3 on:\n\n- Kafka\n- Redis\n", "Which brokers does Fennel have?"),
        ("Fennel has these brokers and these queues:\n\n- Kafka\n- Redis\n", "Which brokers does Fennel have?"),
        ("The page reports that the mirror is off by default.\n", "Is the page on or off by default?"),
        ("It is false that the relay is open by default.\n", "Is the relay open or closed by default?"),
        ("Support for BMP was added in version 0.4 and removed in 0.8.\n", "Since which version can I use BMP?"),
        ("Support for SVG was added to the bindings in version 0.9.\n", "Since which version can I use SVG?"),
        ("Support for reading BMP was added in version 0.4.\n", "Since which version can I send BMP?"),
        ("Peter B. Lund lived here with Erik Lund. Lund died in 1988.\n", "When did Peter B. Lund die?"),
        ("Robert B. Vance Jr. leads the team. Vance lived in Rome.\n", "Where did Robert B. Vance live?"),
        ("The number of jobs is not limited, that of queues is limited to 50.\n", "How many jobs can there be?"),
        ("In 2020, 90% used it, and 55% used it in 2021.\n", "How many percent used it in 2021?"),
        ("The server for tests listens on port 8000.\n", "Out of the box, which port does the server listen on?"),
        ("Set it to port 8000 if you like.\n", "Which port does it use unless I say otherwise?"),
        ("Editors of a group of tools are unmaintained.\n", "Which editors are supported?"),
    ],
)
def test_what_only_looks_alike_answers_nothing(text: str, question: str, tmp_path: Path) -> None:
    """Pages of a hostile reviewer: what is denied, over, bounded, of another thing, or of another person."""
    assert asked(tmp_path, {"page": f"# Page\n\n{text}"}, question).values == ()


def test_the_name_of_a_page_is_a_name(tmp_path: Path) -> None:
    """The author of another program, with a name that begins alike, is not asked for."""
    pages = {
        "netcheck": "# netcheck\n\n## History\n\nThis page of the program was first written by Ann Lee.\n",
        "netadmin": "# netadmin\n\nA program for hosts.\n",
    }
    assert asked(tmp_path, pages, "Who first wrote the netadmin program?").values == ()


TABLE = (
    "# Limits\n\n| Limit | Default value | High-security value |\n|---|---|---|\n| LENGTH | 90 | 50 |\n"
    "| DEPTH | 10 | 20 |\n| WIDTH | 70 | 30 |\n"
)


@pytest.mark.parametrize(
    ("question", "value"),
    [
        ("Which limit has the lowest high-security value?", "DEPTH"),
        ("Which limit has the highest high-security value?", "LENGTH"),
        ("Which limit has the lowest low-security value?", ""),
        ("Which limit has the lowest value?", ""),
    ],
)
def test_a_superlative_is_of_one_column(question: str, value: str, tmp_path: Path) -> None:
    """Its head has all words of what is compared; where two columns have them, none is meant."""
    found = asked(tmp_path, {"limits": TABLE}, question).values
    assert found == ((value,) if value else ())


def test_a_plural_behind_did_is_no_verb() -> None:
    """The deed of engineers is what they start."""
    deed = deed_of("When did Acme engineers start the Fuzz project?")
    assert deed is not None
    assert deed.verb == "start"


def test_kinds_of_value_are_told_by_their_nouns() -> None:
    """A day of a version is a day, an error has a name, and types of columns are several."""
    assert asked_value("What day did version 3.7 come out?").kind is AskedKind.INSTANT
    assert asked_value("Which error do I get?") == AskedValue(AskedKind.NAME, "error")
    assert asked_value("Which column types are allowed?") == AskedValue(AskedKind.SENTENCE, "types")
    assert asked_value("What kinds of filter conditions are there?") == AskedValue(AskedKind.SENTENCE, "conditions")
    assert [each.text for each in values_of(AskedValue(AskedKind.INSTANT), "It has 1000 pages since 1999.")] == ["1999"]


def test_an_initial_ends_no_sentence() -> None:
    """The name behind it is still a name; the words that a date says by itself are no words of the question."""
    words = {word.text: word.is_name for word in words_of("On what date was D. Richard Hipp born?", [])}
    assert words == {"D": True, "Richard": True, "Hipp": True, "born": False}
