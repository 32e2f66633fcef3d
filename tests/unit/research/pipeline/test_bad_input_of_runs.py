"""Bad input of runs of research: a typed error that names the place, or a visible partial result; nothing is lost."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router_research.deep import SourceTier, verify
from smart_model_router_research.deep.corpus_file import CorpusError
from smart_model_router_research.engine import (
    MemoryRunStore,
    RunBusy,
    RunEvent,
    RunEventKind,
    RunInterrupted,
    SqliteRunStore,
    StoreUnavailable,
)
from smart_model_router_research.pipeline import deep_research
from smart_model_router_research.pipeline.deep_research import DeepResearch, ResearchResult
from smart_model_router_research.pipeline.opened_corpora import OpenedCorpora, open_corpora
from smart_model_router_research.pipeline.run_inputs import AnalystRole
from smart_model_router_scoring.options import ConfigError
from tests.research_worlds import PAGES, ListedSearch, SlowSearch, inputs, page, research

ASKED = "What is the capital of Arland?"
SPAM = "name: Spam\npublisher: Spam\nbase_url: https://spam.example/\n"
RIGHT = ("Capital of Arland: Arville",)
T = TypeVar("T")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A folder of pages without dates."""
    folder = tmp_path / "pages"
    folder.mkdir()
    for name, text in PAGES.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def within(corpus: Path, work: Callable[[DeepResearch], Awaitable[T]]) -> T:
    """Return what is done with runs over a folder."""

    async def main() -> T:
        async with DeepResearch(corpora=[corpus], folder=corpus.parent / "runs") as runs:
            return await work(runs)

    return asyncio.run(main())


def run(corpus: Path, topic: str, **others: Any) -> ResearchResult:
    """Return the result of a run over a folder."""
    return within(corpus, lambda runs: runs.run(inputs(topic, **others), "run"))


@pytest.mark.parametrize("topic", ["", " \n ", "🎉🌍", "?!", "x" * 100_000, "\0", "What is \udcff?"])
def test_a_topic_that_is_none_is_refused(topic: str) -> None:
    """Empty, without a letter, 100 KB: the error names the input."""
    with pytest.raises(ConfigError) as caught:
        inputs(topic)

    assert caught.value.field == "topic"


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"max_rounds": 0}, "max_rounds"),
        ({"max_rounds": 5}, "max_rounds"),
        ({"max_rounds": True}, "max_rounds"),
        ({"min_ci": float("nan")}, "min_ci"),
        ({"as_of": "2026-02-30"}, "as_of"),
        ({"analysts": ()}, "analysts"),
        ({"analysts": (AnalystRole(name="a"), AnalystRole(name="a"))}, "analysts"),
        ({"backends": ("tavily", "tavily")}, "backends"),
        ({"backends": ("",)}, "backends"),
        ({"egress": "none"}, "egress"),
        ({"egress": "local_only", "backends": ("corpus", "tavily")}, "backends"),
        ({"egress": "local_only", "seed_urls": ("https://a.example/",)}, "seed_urls"),
        ({"seed_urls": ("ftp://a.example/",)}, "seed_urls"),
        ({"seed_urls": ("http://a.example:8080/",)}, "seed_urls"),
        ({"seed_urls": tuple(f"http://a.example/{n}" for n in range(10_000))}, "seed_urls"),
        ({"block": ("a.example",), "tiers": {"www.a.example": "A"}}, "tiers.www.a.example"),
    ],
)
def test_limits_that_cannot_be_are_refused(given: dict[str, Any], field: str) -> None:
    """Rounds out of range, a day that is none, a tier for a domain that is blocked."""
    with pytest.raises(ConfigError) as caught:
        inputs(ASKED, **given)

    assert caught.value.field == field


@pytest.mark.parametrize(
    "topic",
    [
        "Tell me the capital of Arland.",
        "capital of Arland",
        "WHAT IS THE CAPITAL OF ARLAND",
        "🎉 What is the capital of Arland? 🎉",
        "What is\u00a0the   capital\nof Arland ?",
    ],
)
def test_a_question_in_another_form_is_answered(corpus: Path, topic: str) -> None:
    """An imperative, a fragment, capitals, other characters around it."""
    assert run(corpus, topic).answers == RIGHT


@pytest.mark.parametrize(
    "topic",
    [
        "Quelle est la capitale de Borland ?",
        "Was ist die Hauptstadt von Arland?",
        "阿兰的首都是什么?",
        "Арланд столица?",
        "What is the captial of Arland?",
        "what is the capital of Arlnad?",
    ],
)
def test_a_question_that_is_not_understood_is_not_found(corpus: Path, topic: str) -> None:
    """Another language than that of the sources, and typos: nothing is invented, and the question is named."""
    found = run(corpus, topic)

    assert (found.status, found.delivery, found.answers) == ("completed", "withheld", ())
    assert [each.sentence for each in found.unanswered] == [f"Not found in these sources: {topic}"]


@pytest.mark.parametrize("limits", [{"min_ci": 1.0}, {"min_recent_sources": 1_000}, {"allow": ("a.example",)}])
def test_a_gate_that_cannot_be_passed_is_named(corpus: Path, limits: dict[str, Any]) -> None:
    """The findings are delivered, one level lower, with the reason."""
    found = run(corpus, ASKED, **limits)

    assert (found.delivery, found.answers) == ("moderate", RIGHT)
    assert "gate was not passed" in found.report


def test_a_corpus_that_claims_a_tier_for_a_blocked_domain_is_refused(corpus: Path) -> None:
    """The error names its file, the line, and the domain that the operator blocks."""
    (corpus / "corpus.yaml").write_text(f"{SPAM}tier: A\n")

    with pytest.raises(CorpusError, match=r"corpus\.yaml:4:1 tier: 'A' - .* the operator blocks spam\.example"):
        run(corpus, ASKED, block=("spam.example",))


def test_each_run_has_the_policy_of_its_own(corpus: Path) -> None:
    """A second run of the same object blocks what the first one read."""
    (corpus / "corpus.yaml").write_text(f"{SPAM}tier: A\n")

    async def both(runs: DeepResearch) -> ResearchResult:
        first = await runs.run(inputs(ASKED))
        with pytest.raises(CorpusError):
            await runs.run(inputs(ASKED, block=("spam.example",)))
        return first

    assert within(corpus, both).answers == RIGHT


def test_a_line_of_10_mb_is_left_out_and_named(corpus: Path) -> None:
    """The file is named with its size; the others are searched."""
    (corpus / "long.md").write_text("# Long\n\n" + "word " * 2_000_000)

    async def both(runs: DeepResearch) -> tuple[ResearchResult, tuple[str, ...]]:
        return await runs.run(inputs(ASKED)), runs.skipped

    found, skipped = within(corpus, both)

    assert found.answers == RIGHT
    assert [("long.md" in line, "too large" in line) for line in skipped] == [(True, True)]


def test_runs_at_once_open_their_corpora_once(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty runs that begin together do not wait for one another's index."""
    opened: list[object] = []

    async def counted(*arguments: Any, **options: Any) -> OpenedCorpora:
        opened.append(arguments)
        return await open_corpora(*arguments, **options)

    monkeypatch.setattr(deep_research, "open_corpora", counted)

    async def many(runs: DeepResearch) -> list[ResearchResult]:
        return await asyncio.gather(*(runs.run(inputs(ASKED)) for _ in range(20)))

    assert {each.answers for each in within(corpus, many)} == {RIGHT}
    assert len(opened) == 1


def test_a_folder_that_vanishes_takes_nothing_from_its_runs(corpus: Path) -> None:
    """Its texts are in the index."""

    async def vanishing(runs: DeepResearch) -> ResearchResult:
        await runs.run(inputs("What is the capital of Borland?"), "before")
        shutil.rmtree(corpus)
        return await runs.run(inputs(ASKED), "run")

    assert within(corpus, vanishing).answers == RIGHT


def test_an_index_that_vanishes_leaves_a_partial_result(corpus: Path) -> None:
    """The run ends, and says that its source could not be searched."""

    async def vanishing(runs: DeepResearch) -> ResearchResult:
        await runs.run(inputs("What is the capital of Borland?"), "before")
        shutil.rmtree(corpus.parent / "runs" / ".indexes")
        return await runs.run(inputs(ASKED), "run")

    found = within(corpus, vanishing)

    assert (found.status, found.stop_reason, found.answers) == ("partial", "failed", ())
    assert "failed: IndexNotReady" in " ".join(found.problems)
    assert "IndexNotReady" not in found.report


def test_a_run_whose_folder_vanished_is_finished_with_what_it_had_read(corpus: Path) -> None:
    """It was interrupted before its second question: the first is answered, the second was not looked for."""
    topic = f"{ASKED} What is the currency of Borland?"

    async def main() -> tuple[ResearchResult, tuple[str, ...]]:
        store = MemoryRunStore()

        def broken(event: RunEvent) -> None:
            if event.step == "retrieval_react_r1" and event.kind is RunEventKind.STEP_SETTLED:
                task.cancel()

        folder = corpus.parent / "runs"
        runs = DeepResearch(corpora=[corpus], folder=folder, store=store, observers=[broken])
        task = asyncio.create_task(runs.run(inputs(topic), "run"))
        await asyncio.wait([task])
        shutil.rmtree(corpus)
        with pytest.raises(CorpusError):
            await DeepResearch(corpora=[corpus], folder=folder, store=store).run(inputs(topic), "other")
        again = DeepResearch(corpora=[corpus], folder=folder, store=store)
        return await again.resume("run"), again.skipped

    found, skipped = asyncio.run(main())

    assert (found.status, found.answers) == ("partial", RIGHT)
    assert str(corpus) in skipped[0]
    assert "the run goes on with what it has read" in skipped[0]
    assert any("not there" in each for each in found.problems)
    assert verify(corpus.parent / "runs" / "run").is_sound


def test_the_folder_of_another_run_is_left_alone(tmp_path: Path) -> None:
    """Of the same id, in another store of runs: the error names the folder, before anything runs."""
    asyncio.run(research(tmp_path).run(inputs(ASKED), "run"))
    before = (tmp_path / "run" / "rag_manifest.json").read_bytes()

    with pytest.raises(ConfigurationError, match=f"{tmp_path / 'run'} is of another run"):
        asyncio.run(research(tmp_path).run(inputs("What is the capital of Borland?"), "run"))

    assert (tmp_path / "run" / "rag_manifest.json").read_bytes() == before


def test_no_run_touches_what_another_is_writing(tmp_path: Path) -> None:
    """An id that begins like another one, and one like the folder of indexes, are ids like any other."""
    (tmp_path / ".v1.2~abc").mkdir(parents=True)
    asyncio.run(research(tmp_path).run(inputs(ASKED), "v1"))
    assert (tmp_path / ".v1.2~abc").exists()

    found = asyncio.run(research(tmp_path).run(inputs(ASKED), "indexes"))
    assert (found.status, found.answers) == ("completed", RIGHT)


def test_a_run_cannot_be_called_indexes_by_chance(corpus: Path) -> None:
    """The indexes of a DeepResearch have a name that no run can have."""
    assert within(corpus, lambda runs: runs.run(inputs(ASKED), "indexes")).answers == RIGHT


@pytest.mark.parametrize("paths", [("/nowhere",), ("pages", "other")])
def test_inputs_that_name_other_sources_are_refused(corpus: Path, paths: tuple[str, ...]) -> None:
    """The report would name what was never searched; the same sources in other words are the same."""
    named = tuple(str(corpus.parent / path) for path in paths)

    with pytest.raises(ConfigError) as caught:
        run(corpus, ASKED, corpora=named)

    assert caught.value.field == "corpora"
    assert run(corpus, ASKED, corpora=(f"{corpus}/../pages",)).answers == RIGHT


def test_the_policy_counts_for_a_source_that_does_not_know_it(tmp_path: Path) -> None:
    """A document that the operator blocks is read from no search; the operator's tier is the one that is cited."""
    search = ListedSearch([page("arland.md", PAGES["arland.md"], url="https://a.example/x", tier=SourceTier.B)])
    blocked = asyncio.run(research(tmp_path, search=search).run(inputs(ASKED, block=("a.example",)), "blocked"))
    tiers = {"a.example": SourceTier.A}
    raised = asyncio.run(research(tmp_path, search=search).run(inputs(ASKED, tiers=tiers), "raised"))

    assert (blocked.answers, blocked.usage["documents"]) == ((), 0.0)
    assert "A: the operator puts a\\.example in tier A" in raised.report


@pytest.mark.parametrize("engine", ["kahn", "langgraph"])
def test_a_disk_that_is_full_at_the_end_breaks_the_run_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    """The error names the folder, nothing half-written is left, and the run goes on once there is room."""
    real = os.fsync
    calls = iter(range(100))

    def fsync(handle: int) -> None:
        if next(calls) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    runs = tmp_path / "runs"

    async def main() -> ResearchResult:
        store = MemoryRunStore()
        with pytest.raises(RunInterrupted, match=f"{runs / 'run'}: .*No space left on device"):
            await research(runs, engine, store=store).run(inputs(ASKED), "run")
        assert list(runs.iterdir()) == []
        return await research(runs, engine, store=store).resume("run")

    found = asyncio.run(main())

    assert (found.status, found.delivery, found.answers) == ("completed", "full", RIGHT)
    assert verify(runs / "run").is_sound


def test_a_store_of_a_newer_schema_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    """The error names the file."""
    path = tmp_path / "runs.db"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA user_version = 999")
    before = path.read_bytes()

    async def main() -> None:
        store = SqliteRunStore(path)
        try:
            await research(tmp_path / "runs", store=store).run(inputs(ASKED), "run")
        finally:
            await store.aclose()

    with pytest.raises(StoreUnavailable) as caught:
        asyncio.run(main())
    assert caught.value.place == str(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("engine", ["kahn", "langgraph"])
def test_of_two_that_go_on_at_once_one_is_told_who_has_the_run(tmp_path: Path, engine: str) -> None:
    """The other one ends it."""

    async def main() -> list[ResearchResult | BaseException]:
        store, search = MemoryRunStore(), SlowSearch(seconds=0.05)
        both = [research(tmp_path, engine, search, store) for _ in range(2)]
        return await asyncio.gather(*(runs.run(inputs(ASKED), "run") for runs in both), return_exceptions=True)

    ends = asyncio.run(main())
    (busy,) = [each for each in ends if isinstance(each, RunBusy)]
    (found,) = [each for each in ends if isinstance(each, ResearchResult)]

    assert (busy.run_id, busy.seconds > 0) == ("run", True)
    assert (found.status, found.answers) == ("completed", RIGHT)
