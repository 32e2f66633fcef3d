"""The cost of a run of research: one question, many at once, resumed, over many documents, beside model calls.

    python -m benchmarks.research

The documents are pages about invented countries, in a folder that is indexed as `--corpus` does; runs are kept in a
file, artefacts are written. CPU is that of the whole process, threads included.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from benchmarks._measure import Figure, report

from smart_model_router_research.deep import answer_offline
from smart_model_router_research.deep.found_answers import ReadDocument
from smart_model_router_research.engine import SqliteRunStore
from smart_model_router_research.pipeline.deep_research import DeepResearch
from smart_model_router_research.pipeline.opened_corpora import open_corpora
from smart_model_router_research.pipeline.run_inputs import RunInputs
from tests.scripted_models import EMPTY, Reply, ScriptedRouter, Shown

AS_OF = "2026-07-01"
COUNTRIES = 256
DOCUMENTS = 2_000
RUNS = 9
AT_ONCE = 100
_PEAK = """
import asyncio, re, sys
from pathlib import Path
from benchmarks.research import asked
base = Path(sys.argv[1])
def most():  # not ru_maxrss, which begins with that of the process before exec
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024
before = most()
asyncio.run(asked(base, "kahn", ["What is the capital of Land7?", "Which countries border Land8?"]))
print(before, most())
"""


def pages(folder: Path, count: int) -> Path:
    """Write so many pages with 40 facts each; returns their folder."""
    folder.mkdir(parents=True)
    declared = "name: Atlas\npublisher: Atlas\ntier: A\nprimary: true\nindependence: document\nas_of: 2026-06-01\n"
    (folder / "corpus.yaml").write_text(declared)
    for number in range(count):
        before, after = (number - 1) % count, (number + 1) % count
        lines = [
            f"# Land{number}",
            f"Capital: Ville{number}",
            f"Population: {1_000_003 + 977 * number:,}",
            f"Border countries: Land{before} {100 + before} km; Land{after} {100 + number} km",
            *(f"Figure {at} of the year: {number * at + 7:,} tons of goods of kind {at}" for at in range(40)),
        ]
        (folder / f"land{number}.md").write_text("\n\n".join(lines) + "\n")
    return folder


def questions(count: int) -> Iterator[str]:
    """Yield questions that are answered in one round: 11 steps each."""
    return (f"What is the capital of Land{number}?" for number in range(1, count + 1))


def runs_over(base: Path, engine: str, store: SqliteRunStore, *corpora: Path) -> DeepResearch:
    """Return the runs of a folder with `pages`."""
    return DeepResearch(store=store, corpora=corpora or [base / "pages"], folder=base / "runs", engine=engine)


def inputs(topic: str) -> RunInputs:
    """Return the inputs of a run."""
    return RunInputs(topic=topic, as_of=AS_OF, min_recent_sources=1)


async def asked(base: Path, engine: str, topics: list[str]) -> list[float]:
    """Run topics one after another; returns the milliseconds of CPU of each."""
    store = SqliteRunStore(base / f"{engine}.db")
    taken: list[float] = []
    async with runs_over(base, engine, store) as runs:
        for topic in topics:
            start = time.process_time()
            found = await runs.run(inputs(topic))
            taken.append(1e3 * (time.process_time() - start))
            assert (found.status, found.stop_reason) == ("completed", "passed"), found
    await store.aclose()
    return taken


async def bare(base: Path) -> list[float]:
    """Answer questions without a run; returns the milliseconds of CPU of each."""
    opened = await open_corpora([base / "pages"], as_of=inputs("x").moment(), cache=base / "runs" / "indexes")
    taken: list[float] = []
    for topic in questions(RUNS):
        start = time.process_time()
        answer = await answer_offline(topic, opened.searches)
        taken.append(1e3 * (time.process_time() - start))
        assert answer.answers
    return taken


def one_question(base: Path) -> list[Figure]:
    """CPU of a question through all 11 steps, the first one and later ones, on each engine."""
    figures = []
    alone = statistics.median(asyncio.run(bare(base))[1:])
    for engine in ("kahn", "langgraph"):
        first, *later = asyncio.run(asked(base, engine, list(questions(RUNS))))
        name = f"a question through 11 steps on {engine}"
        note = f"its first one, with imports and the opening of the corpus: {first:.0f} ms"
        value = statistics.median(later)
        figures.append(Figure(name, value, "ms CPU", alone, "answer_offline", 150.0, note))
    return figures


def many(base: Path) -> Figure:
    """CPU of a run of 100 at once in one process, against the same one after another."""

    async def run(at_once: int, count: int) -> float:
        store = SqliteRunStore(base / f"many-{at_once}.db")
        gate = asyncio.Semaphore(at_once)
        async with runs_over(base, "kahn", store) as runs:

            async def one(topic: str) -> str:
                async with gate:
                    return (await runs.run(inputs(topic))).status

            start = time.process_time()
            found = await asyncio.gather(*(one(topic) for topic in questions(count)))
            taken = time.process_time() - start
        await store.aclose()
        assert set(found) == {"completed"}
        return 1e3 * taken / count

    together, apart = asyncio.run(run(AT_ONCE, AT_ONCE)), asyncio.run(run(1, AT_ONCE // 4))
    return Figure(f"a run of {AT_ONCE} at once in one process", together, "ms CPU", apart, "one after another", 150.0)


class Waiting:
    """A source that tells when it is searched, and gives nothing back until the run is cancelled."""

    def __init__(self) -> None:
        self.searched = asyncio.Event()

    async def search(self, text: str, most: int = 16) -> list[ReadDocument]:
        """Wait for ever."""
        del text, most
        self.searched.set()
        await asyncio.sleep(3_600)
        return []

    async def topics(self) -> frozenset[str]:
        """Return no names."""
        return frozenset()


def resumes(base: Path) -> Figure:
    """Wall clock from taking up a run to the work of its next step, its search, against reading the run."""

    async def resumed() -> tuple[float, float]:
        moments: list[float] = []
        reads: list[float] = []
        for _ in range(RUNS):  # the first one begins it, the others go on
            store, source = SqliteRunStore(base / "resumed.db"), Waiting()
            start = time.perf_counter()
            runs = DeepResearch(store=store, corpora=[source], folder=base / "runs", engine="kahn")
            task = asyncio.create_task(runs.run(inputs("What is the capital of Land1?"), "resumed"))
            await source.searched.wait()
            moments.append(1e3 * (time.perf_counter() - start))
            task.cancel()
            await asyncio.wait((task,))
            start = time.perf_counter()
            await store.load("resumed")
            reads.append(1e3 * (time.perf_counter() - start))
            await store.aclose()
        return statistics.median(moments[1:]), statistics.median(reads[1:])

    moment, read = asyncio.run(resumed())
    return Figure("resume to the work of the next step", moment, "ms", read, "reading the run", 1_000.0)


def memory(base: Path) -> Figure:
    """Most memory of a process that indexes 2,000 documents and runs two questions over them."""
    found = subprocess.run([sys.executable, "-c", _PEAK, str(base)], check=True, capture_output=True, text=True)  # noqa: S603 - our own program
    before, peak = map(float, found.stdout.split())
    return Figure(f"a run over {DOCUMENTS:,} documents", peak, "MB at most", before, "after its imports", 300.0)


def busy(name: str, shown: Shown, number: int) -> Reply:
    """Reply as a model that uses all that it may: eight turns, each with another search, and eight claims."""
    if name == "tree.v1":
        ids = [each["id"] for each in shown["questions"]]
        queries = [
            {"question": ids[0], "text": f"goods of kind {at} {number}", "purpose": "background"} for at in range(6)
        ]
        return {"branches": [{"hypothesis": "h", "queries": queries, "evidence": 1, "novelty": 1, "cost": 0}] * 3}
    if name == "reader.v1":
        return {"thought": "t", "action": "search", "argument": f"Land{number} goods of kind {number % 40}"}
    if name == "analyst.v2":
        rows = [(each["id"], each["text"].split("\n")[-1]) for each in shown["passages"][:8]]
        return {"claims": [{"source": source, "quote": quote, "text": quote} for source, quote in rows]}
    return EMPTY[name]


def with_model(base: Path) -> Figure:
    """CPU of a run's own work beside its model calls, where the model uses all four rounds, against none."""

    async def run(router: ScriptedRouter | None) -> tuple[float, int]:
        store = SqliteRunStore(base / f"model-{router is not None}.db")
        topic = "Why do ships of Land7 sail to Land8?"
        async with DeepResearch(router, store=store, corpora=[base / "pages"], folder=base / "runs") as runs:
            given = replace(inputs(topic), model="smart" if router else "")
            await runs.run(given, f"warm-{router is not None}")
            start = time.process_time()
            await runs.run(given, f"model-{router is not None}")
            taken = time.process_time() - start
        await store.aclose()
        return taken, len(router.asked) // 2 if router else 0

    (taken, calls), (alone, _) = asyncio.run(run(ScriptedRouter(busy))), asyncio.run(run(None))
    name = f"a run's own work beside {calls} model calls"
    return Figure(name, taken, "s CPU", alone, "the same run without a model", 2.0)


def imported() -> Figure:
    """Modules of research and of the engines' library that `import smart_model_router` brings."""
    counted = "import sys, smart_model_router; print(sum('research' in m or 'langgraph' in m for m in sys.modules))"
    found = subprocess.run([sys.executable, "-c", counted], check=True, capture_output=True, text=True)  # noqa: S603 - our own program
    return Figure("modules of research that the router imports", float(found.stdout), "modules", 0.0, "none", 0.0)


def main() -> int:
    """Measure, print, and say by the exit code whether the limits hold."""
    with tempfile.TemporaryDirectory() as name:
        base, large = Path(name) / "small", Path(name) / "large"
        pages(base / "pages", COUNTRIES)
        pages(large / "pages", DOCUMENTS)
        code: int = report(*one_question(base), many(base), resumes(base), with_model(base), memory(large), imported())
    return code


if __name__ == "__main__":
    sys.exit(main())
