"""Questions of each kind are answered from a small corpus of every form, and near misses are not answered."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from smart_model_router_research.deep import (
    OfflineAnswer,
    answer_offline,
    compare_claims,
    find_contradictions,
    plan_questions,
)
from smart_model_router_research.deep.claims import Relation
from smart_model_router_research.deep.corpus_file import parse_corpus
from smart_model_router_research.deep.corpus_search import CorpusSearch
from smart_model_router_research.deep.questions import Wanted, read_question
from smart_model_router_research.deep.statements import statements_of
from smart_model_router_research.deep.vouching import points_back
from tests.fixtures.research.judging import READ, corpus

PAGES = {
    "vardo.md": """# Vardo

Capital: Lind

Area: 1,200 sq km

Border countries: Ostia 300 km; Merra 45 km

Population: 90,000 (2024 est.)
""",
    "ostia.md": """# Ostia

Capital: Port Hale

Area: 800 sq km

Border countries: Vardo 310 km

Population: 2 million (2024 est.)
""",
    "merra.md": """# Merra

Capital: Tolm

Area: 15 sq km

Border countries: Vardo 45 km

The lighthouse of Tolm was built in 1871 by Ada Quist.
""",
    "server.md": """# Server

The server listens on port 8080 by default.

## Options

`--retries`
  The number of times that a call is repeated. The default is 3.

`--log-level`
  Sets the detail of the log.

| code | meaning |
| --- | --- |
| 17 | the disk is full |
| 23 | the key has expired |

## 1.4.0

- Added `--retries`.
""",
    "news.md": """# News

Acme bought Atlas in 2020. It has 300 employees. It was founded by Jane Roe.

The mayor of Nice was John Doe until 2020.

The default speed of Borea is 9200 rpm.
""",
    "tea.html": "<h1>Tea</h1><p>Oolong is a partly oxidised tea.</p><p>High-mountain tea (HMT) grows high.</p>",
}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> CorpusSearch:
    """A corpus of six pages."""
    folder = tmp_path_factory.mktemp("small") / "pages"
    folder.mkdir()
    for name, text in PAGES.items():
        (folder / name).write_text(text, encoding="utf-8")
    return asyncio.run(corpus(folder))


def ask(question: str, corpora: CorpusSearch) -> OfflineAnswer:
    """Ask one question."""
    return asyncio.run(answer_offline(question, [corpora]))


@pytest.mark.parametrize(
    ("question", "value"),
    [
        ("What is the capital of Vardo?", "Lind"),
        ("How large is Vardo?", "1,200 sq km"),
        ("How many people live in Vardo?", "90,000"),
        ("Which port does the server listen on by default?", "8080"),
        ("What is the default of --retries?", "3"),
        ("Which option sets the detail of the log?", "--log-level"),
        ("What does code 23 mean?", "the key has expired"),
        ("In which version was --retries added?", "1.4.0"),
        ("Who built the lighthouse of Tolm?", "Ada Quist"),
        ("When was the lighthouse of Tolm built?", "1871"),
        ("What is oolong?", "a partly oxidised tea"),
        ("What does HMT stand for?", "High-mountain tea"),
        ("What is the capital of the country that borders Merra and Ostia?", "Lind"),
        ("What is the population of the country whose capital is Port Hale?", "2 million"),
        ("With which country does Vardo share its longest border?", "Ostia"),
        ("Which of the countries that border Vardo is the largest by area?", "Ostia"),
        ("Which is larger by area, Vardo or Merra?", "Vardo"),
        ("How many countries border Vardo?", "2"),
        ("How many employees does Acme have?", "300"),
        ("What is the default speed of Borea?", "9200"),
        ("What is the difference in area between Vardo and Ostia?", "400"),
    ],
)
def test_each_kind_of_question_is_answered(small: CorpusSearch, question: str, value: str) -> None:
    """Single facts, reversed ones, versions, persons, years, abbreviations, two steps, extremes, counts."""
    assert value in " ".join(ask(question, small).values)


@pytest.mark.parametrize(
    "question",
    [
        "What is the capital of Varda?",
        "What is the capital of South Vardo?",
        "What is the currency of Vardo?",
        "What was the population of Vardo in 1990?",
        "What is the default of --timeout?",
        "What does code 24 mean?",
        "In which version was --retries removed?",
        "Who painted the lighthouse of Tolm?",
        "How long is the border between Ostia and Merra?",
        "What is the capital of the country that borders Merra and Lind?",
        "Which of the countries that border Atlantis is the largest by area?",
        "How many lighthouses are there in Vardo?",
        "How many employees does Atlas have?",
        "Who founded Atlas?",
        "Who is the mayor of Nice?",
    ],
)
def test_what_is_nearly_there_is_not_found(small: CorpusSearch, question: str) -> None:
    """Another name, attribute, year, number, verb, subject or time than the sources have is no answer."""
    answer = ask(question, small)

    assert (answer.values, answer.not_found) == ((), ("q1",))


def test_both_values_of_a_contradiction_are_claimed(small: CorpusSearch) -> None:
    """The two ends of a border say two lengths: neither is left out."""
    assert sorted(ask("How long is the border between Vardo and Ostia?", small).values) == ["300 km", "310 km"]


def test_things_that_differ_in_their_number_are_not_one(tmp_path: Path) -> None:
    """Sentences about Town 1 and Town 2 do not contradict each other."""
    for number in (1, 2):
        (tmp_path / f"{number}.md").write_text(f"# Town {number}\n\nThe population of Town {number} is {number}700.\n")
    search = asyncio.run(corpus(tmp_path))
    claims = ask("What is the population of Town 1? What is the population of Town 2?", search).claims

    assert [(claim.entity, claim.value) for claim in claims] == [("Town 1", "1700"), ("Town 2", "2700")]
    assert compare_claims(*claims).relation is Relation.UNRELATED


def test_an_answer_in_two_steps_cites_both(small: CorpusSearch) -> None:
    """The claim that joins names its premises, which are claims with quotes of their own."""
    answer = ask("What is the population of the country whose capital is Lind?", small)
    joined = next(claim for claim in answer.claims if claim.operation == "join")

    assert set(joined.premises) <= {claim.id for claim in answer.claims}
    assert len(joined.evidence) == 2


def test_a_value_has_the_date_that_stands_beside_it_or_that_of_its_corpus(small: CorpusSearch) -> None:
    """A year in parentheses is the value's own date; a corpus gives its day to the rest."""
    declared = parse_corpus(b"name: pages\npublisher: us\ntier: A\nas_of: 2025-10-01\n")
    dated = CorpusSearch(small.index, declared, READ)

    assert [claim.as_of for claim in ask("What is the population of Vardo?", dated).claims] == ["2024-07-01"]
    assert [claim.as_of for claim in ask("What is the capital of Vardo?", dated).claims] == ["2025-10-01"]


def test_a_topic_is_cut_into_questions() -> None:
    """Each sentence is a question, the first the most important; numbers, dates and versions are critical."""
    questions = plan_questions("What is tea? How many cups are there; when was it found? " + "Why is it so? " * 20)

    assert [(one.text, one.kind, one.priority, one.critical) for one in questions] == [
        ("What is tea?", "open", 1, False),
        ("How many cups are there", "number", 2, True),
        ("when was it found?", "date", 2, True),
        ("Why is it so?", "open", 2, False),
    ]
    assert len(plan_questions(". ".join(f"Name part {n}" for n in range(40)))) == 12


@pytest.mark.parametrize(
    ("question", "wanted", "entities"),
    [
        ("In which version of Python was shutil.copy() added?", Wanted.VERSION, ("shutil.copy", "Python")),
        ("Who wrote `Emma`?", Wanted.PERSON, ("Emma",)),
        ("Where is Lake Como?", Wanted.PLACE, ("Lake Como",)),
        ("List the members of NATO", Wanted.LIST, ("NATO",)),
        ("Does --force delete files?", Wanted.YES_NO, ("--force",)),
        ("Why does it fail?", Wanted.OPEN, ()),
    ],
)
def test_kinds_and_names_of_questions(question: str, wanted: Wanted, entities: tuple[str, ...]) -> None:
    """The beginning of a question says what is wanted; names, identifiers and quoted words have to be named."""
    pattern = read_question(question)

    assert (pattern.wanted, set(pattern.entities) <= set(entities)) == (wanted, True)


@pytest.mark.parametrize(
    "topic",
    [
        "x" * 100_000,
        "a " * 60_000,
        "🙂 what? 🙂",
        "What is " + "(" * 5_000,
        "`" * 3_000 + "x",
        "Which of the " * 300,
        "\x00 \ud800 what",
    ],
)
def test_whatever_a_topic_is_it_is_asked_or_refused(small: CorpusSearch, topic: str) -> None:
    """Long, odd and broken topics are read as far as they go, and nothing is found for them."""
    assert ask(topic, small).values == ()


def test_the_sentence_before_names_only_what_a_pronoun_points_to() -> None:
    """A sentence that begins with "the" and names something else is not about the subject of the sentence before."""
    assert points_back("It lasts 12 hours.")
    assert points_back("The battery lasts 12 hours.")
    assert not points_back("The battery of the Kite lasts 9 hours.")


@pytest.mark.parametrize(
    "sentence",
    [
        "The platform team owns Courier.",
        "The platform team owns Courier since 2024.",
        "Our platform team now owns Courier.",
        "The platform team has owned Courier since 2024.",
        "Courier is owned by the platform team.",
    ],
)
def test_a_group_with_a_common_name_answers_who(tmp_path: Path, sentence: str) -> None:
    """A team owns, keeps and leads as a person does; the team of another thing is not taken for it."""
    (tmp_path / "courier.md").write_text(f"# Courier\n\nCourier is a message bus. {sentence}\n", encoding="utf-8")
    (tmp_path / "ledger.md").write_text("# Ledger\n\nThe payments team owns Ledger.\n", encoding="utf-8")
    assert ask("Who owns Courier?", asyncio.run(corpus(tmp_path))).values == ("platform team",)


@pytest.mark.parametrize(
    "sentence",
    [
        "The platform team no longer owns Courier.",
        "The platform team owned Courier.",
        "The platform team does not own Courier.",
        "If the platform team owns Courier, it may change the schema.",
        "Courier is not owned by the platform team.",
        "Courier was owned by the platform team until 2024.",
        "Courier was handed over by the platform team.",
        "Courier owns the queue of the platform team.",
        "The platform team owns Courier tests.",
        "No platform team owns Courier.",
        "The tests of Courier are owned by the platform team.",
        "Courier tests are owned by the platform team.",
    ],
)
def test_a_group_that_does_something_else_answers_nothing(tmp_path: Path, sentence: str) -> None:
    """A statement that is denied, over, supposed or about another thing names no owner."""
    (tmp_path / "courier.md").write_text(f"# Courier\n\nCourier is a message bus. {sentence}\n", encoding="utf-8")
    assert not ask("Who owns Courier?", asyncio.run(corpus(tmp_path))).values


@pytest.mark.parametrize(
    "other",
    [
        "Courier is owned by the data team.",
        "Ada Berg has owned Courier since March 2026.",
        "In March 2026 the ownership of Courier moved to the data team.",
        "| service | owner |\n|---|---|\n| Courier | Data team |",
    ],
)
def test_the_owner_that_another_page_names_is_a_rival(tmp_path: Path, other: str) -> None:
    """In the active and the passive form, as a move, and in a table: two values stand where two are said."""
    (tmp_path / "courier.md").write_text("# Courier\n\nThe platform team owns Courier.\n", encoding="utf-8")
    (tmp_path / "notes.md").write_text(f"# Notes\n\n{other}\n", encoding="utf-8")
    assert len(set(ask("Who owns Courier?", asyncio.run(corpus(tmp_path))).values)) == 2


@pytest.mark.parametrize(
    ("question", "near", "answer"),
    [
        (
            "What is the default port of PostgreSQL?",
            "Once Postgrey is installed, it listens on the default port 10023.",
            "Once PostgreSQL is installed, it listens on the default port 5432.",
        ),
        (
            "In which version was the nftables backend added?",
            "## 14.2.4. Rules\n\nThe nftables backend was added to the rules of the guide.",
            "## 14.2.4 (2024-05-01)\n\nThe nftables backend was added.",
        ),
        (
            "Which kernel version did Lenny ship?",
            "Lenny began to ship point releases: the first release of Lenny is 5.0.1.",
            "Lenny shipped with version 2.6.26 of the kernel.",
        ),
        (
            "What is the most complete scanner?",
            "Nikto is a scanner of ports (most of its complete lists are old).",
            "Nessus is the most complete scanner of ports.",
        ),
        (
            "Who maintains the Pgsql client these days?",
            "Lara Jones was the first who maintained the Pgsql client.",
            "Lara Jones maintains the Pgsql client.",
        ),
        (
            "Which mode do new home directories get?",
            "New home directories below $HOME get a mode that each user tunes.",
            "The mode of new home directories is `0755`.",
        ),
        (
            "Who made the NTLM patch?",
            "The NTLM patch was refused by Jo Marsh.",
            "The NTLM patch by Jo Marsh is refused.",
        ),
        (
            "Which port does approx use if I don't say anything?",
            "If I say so, approx uses port 9999.",
            "approx runs by default on port 9999, and uses it.",
        ),
        (
            "Where are announcements forwarded to?",
            "All announcements are not forwarded to mutt-users now.",
            "All announcements are forwarded to mutt-users now.",
        ),
    ],
)
def test_what_only_sounds_alike_is_not_found(tmp_path: Path, question: str, near: str, answer: str) -> None:
    """Another name, the number of a chapter, another thing's version, "most" of something, what was, its own word."""
    for name, text in (("near", near), ("answer", answer)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "page.md").write_text(f"# Page\n\n{text}\n", encoding="utf-8")
    assert not ask(question, asyncio.run(corpus(tmp_path / "near"))).values
    assert ask(question, asyncio.run(corpus(tmp_path / "answer"))).values


@pytest.mark.parametrize(
    ("topic", "questions"),
    [
        ("Who wrote Dune? When was it published?", ["Who wrote Dune?", "When was Dune published?"]),
        ("Acme pays a firm for support; whose firm is that?", ["Acme pays a firm for support whose firm is that?"]),
        ("Who leads Debian? What is the budget of that?", ["Who leads Debian?", "What is the budget of Debian?"]),
        ("Who wrote Dune? When was he born?", ["Who wrote Dune?", "When was he born?"]),
        ("What is Acme? Why does Acme do this?", ["What is Acme? Why does Acme do this?"]),
        ("How many cups are there; when was it found?", ["How many cups are there", "when was it found?"]),
    ],
)
def test_a_question_that_points_back_is_asked_with_what_it_points_to(topic: str, questions: list[str]) -> None:
    """Its one name, or else, where the question is nothing without it, all that was said before."""
    assert [each.text for each in plan_questions(topic)] == questions


@pytest.mark.parametrize(
    ("sentence", "is_rival"),
    [
        ("The genocide ended when the army formed a government of Rwanda.", False),
        ("The government of Rwanda does not have the form of a republic.", True),
    ],
)
def test_a_sentence_that_only_has_the_words_disputes_no_label(tmp_path: Path, sentence: str, is_rival: bool) -> None:
    """One that denies it does: then neither is the answer."""
    text = f"# Rwanda\n\n- Form of government: presidential republic\n\n{sentence}\n"
    (tmp_path / "rwanda.md").write_text(text, encoding="utf-8")
    values = ask("Which form of government does Rwanda have?", asyncio.run(corpus(tmp_path))).values
    assert values == (() if is_rival else ("presidential republic",))


@pytest.mark.parametrize(
    ("question", "text", "value"),
    [
        ("How many messages are cached?", "Mutt has cached the recent messages (usually 10) of a folder.", "10"),
        ("Which option keeps the input?", "In all cases the input is kept by the option --in-put alone.", "--in-put"),
        (
            "Which university hosts the exim.org website?",
            "These services, and the exim.org website, are hosted at the University of Cambridge.",
            "Cambridge",
        ),
        ("Where are announcements forwarded to?", "All announcements are forwarded to mutt-users now.", "mutt-users"),
        (
            "Who helped to write the first MIME parsing code?",
            "Kari Hurtta <kari.hurtta@fmi.fi> co-developed the original MIME parsing code back in the old days.",
            "Kari Hurtta",
        ),
        (
            "How many packets may be sent at most in one burst?",
            "No more than eight packets are sent in a burst.",
            "eight",
        ),
        (
            "Which port does approx use if I don't say anything?",
            "approx runs by default on port 9999, and uses it.",
            "9999",
        ),
        ("Where does apt keep its keys?", "The keys are kept in apt's own ring (/etc/apt/trusted.gpg).", "/etc/apt/"),
        (
            "Where does the printer keep the size of the letter paper?",
            "The printer prints. It keeps the size of the letter paper in the file /etc/papersize.",
            "/etc/papersize",
        ),
        ("Who made the NTLM patch?", "There is a patch by Grant Edwards to add NTLM authentication.", "Grant Edwards"),
        (
            "Roughly how many ferns are there in the glasshouse?",
            "In the glasshouse there are many ferns (more than 450).",
            "450",
        ),
        (
            "Where does the mill keep its trusted gpg keys?",
            (
                "The program mill-key manages rings of gpg keys. The ring is kept in the file /etc/mill/trusted.gpg."
                "\n\nThe gpg keys are kept by the mill, and managing the trusted keys is where the safe mill comes in."
            ),
            "/etc/mill/trusted.gpg",
        ),
        (
            "Which FTPd developer did the patch that stops people typing their SSH account into anonymous FTP?",
            (
                "Users of anonymous FTP might try to log in. To avoid that, FTPd developer Jo Marsh has created a "
                "patch that prevents people typing into the anonymous FTP server a valid SSH account."
            ),
            "Jo Marsh",
        ),
        (
            "Where is the AIDE database file?",
            (
                "The AIDE tool checks files against an image of the system. This image is stored as a database "
                "(/var/lib/aide/aide.db) with the facts on all files.\n\nSince AIDE uses a local database to compare "
                "the states of the files, the worth of its results is that of the database."
            ),
            "/var/lib/aide/aide.db",
        ),
        (
            "Which base do the numbers in a message id use on Mac OS X?",
            "In the Darwin operating system (Mac OS X), base 36 is used for the message id and its numbers.",
            "base 36",
        ),
        (
            "Which runlevel does Kiwi boot into by default?",
            (
                "## The boot of Kiwi\n\nLike most systems, Kiwi has 7 runlevels to boot into:\n\n- 0 (halt),\n\n"
                "Kiwi comes with id=2, which tells that the default runlevel will be '2' when the state of many users "
                "is entered."
            ),
            "2",
        ),
        (
            "Which environment variable has lookups with several addresses?",
            "For lookups with several addresses have the RESOLV_MULTI environment variable set:",
            "RESOLV_MULTI",
        ),
    ],
)
def test_values_are_read_from_prose(tmp_path: Path, question: str, text: str, value: str) -> None:
    """In parentheses, of the question's letters, behind "to" and "by", with an address, before a colon, by default.

    A clause is no place, a sentence without a place disputes none, and one sentence can say both steps of a question.
    """
    (tmp_path / "page.md").write_text(f"# Page\n\n{text}\n", encoding="utf-8")
    answer = ask(question, asyncio.run(corpus(tmp_path)))
    assert value in " ".join(answer.values)
    assert not find_contradictions(answer.claims)


@pytest.mark.parametrize(
    ("another", "is_answered"),
    [
        ("The daemon of the printer writes its log once a day.", True),
        ("You can allow people access to crontab by groups, in which you list the only users that are allowed.", False),
    ],
)
def test_of_hundreds_of_statements_one_that_stands_alone_may_say_less(
    tmp_path: Path, another: str, is_answered: bool
) -> None:
    """It answers with less of the question's words, where no other one comes close."""
    text = (
        "You can restrict access to crontab by creating an explicit file (whitelist) in /etc/cron.allow, in which you "
        "indicate the only users that are allowed to schedule commands."
    )
    others = "\n\n".join(f"The town number {at} lies on the river, and has a mill." for at in range(300))
    (tmp_path / "page.md").write_text(f"# Page\n\n{text}\n\n{others}\n\n{another}\n", encoding="utf-8")
    answer = ask("How can I allow only a handful of people to use crontab?", asyncio.run(corpus(tmp_path)))
    assert answer.values == ((text,) if is_answered else ())


PLANS = """# Offer

- Basic plan
  - price: 10 euros
  - 5 users
- Pro plan:
  - price: 30 euros
  - 50 users
  - extras
    - backups: daily
"""


@pytest.mark.parametrize(
    ("question", "claims"),
    [
        ("What is the price of the Pro plan?", ["Pro plan: price: 30 euros"]),
        ("What is the price of the Basic plan?", ["Basic plan: price: 10 euros"]),
        ("How many users has the Pro plan?", ["Pro plan: 50 users"]),
        ("What is the price of the Team plan?", []),
        ("What is the price?", []),
    ],
)
def test_a_part_of_an_item_is_said_with_the_item(tmp_path: Path, question: str, claims: list[str]) -> None:
    """Two plans have a price each: neither price is that of the offer."""
    (tmp_path / "offer.md").write_text(PLANS, encoding="utf-8")
    found = ask(question, asyncio.run(corpus(tmp_path))).claims
    assert list(dict.fromkeys(claim.text for claim in found)) == claims


def test_parts_of_items_know_all_that_they_are_parts_of() -> None:
    """The outermost first; what stands beside them, and what follows the list, does not."""
    text = f"{PLANS}\nOther offers:\n\n- none\n"
    assert [(each.text, each.lead_in) for each in statements_of(text)] == [
        ("Basic plan", ""),
        ("price: 10 euros", "Basic plan"),
        ("5 users", "Basic plan"),
        ("Pro plan:", ""),
        ("price: 30 euros", "Pro plan"),
        ("50 users", "Pro plan"),
        ("extras", "Pro plan"),
        ("backups: daily", "Pro plan: extras"),
        ("Other offers:", ""),
        ("none", "Other offers:"),
    ]


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (
            "What is the most complicated part of Postbox?",
            "The queue manager is by far the most complex part of Postbox.",
        ),
        (
            "What is the oldest tool for automated shipping of Borea stones?",
            "Vor is probably the oldest automated system for shipping Borea stones.",
        ),
        ("What is the oldest tool for Borea?", "Fia is probably the oldest automated tool for Borea."),
        ("Is a string search or a pattern search faster?", "A pattern search is slower than a string search."),
        ("Which external transports are there?", "The external transports are smtp, lmtp and pipe."),
        ("What is the newest tool for Borea?", None),
        ("Is a string search or a tree search faster?", None),
        ("Which internal ways are there?", None),
    ],
)
def test_extremes_and_choices_are_answered_by_a_sentence(tmp_path: Path, question: str, answer: str | None) -> None:
    """One that says the extreme, compares both things, or has several where several are asked for."""
    sentences = (
        "The queue manager is by far the most complex part of Postbox.",
        "Fia is probably the oldest automated tool for Borea.",
        "A pattern search is slower than a string search.",
        "A tree search is another thing.",
        "The external transports are smtp, lmtp and pipe.",
        "Vor is probably the oldest automated system for shipping Borea stones.",
        "One of the internal ways is a queue in any case.",
    )
    (tmp_path / "page.md").write_text("# Page\n\n" + "\n\n".join(sentences) + "\n", encoding="utf-8")
    found = ask(question, asyncio.run(corpus(tmp_path))).claims
    assert {claim.text for claim in found} == ({answer} if answer else set())
