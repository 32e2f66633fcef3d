"""`verify` notices whatever is done to a folder of artefacts, needs nothing but the folder, and never raises.

`make test` flips some bytes of each file of the example, `make nightly` every byte of a smaller one (SMR_EVERY_BYTE).
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_model_router_research.deep import ResearchRun, VerifyResult, files_of, verify, write_artefacts
from smart_model_router_research.deep.artefact_records import CHUNKS, CITATIONS, GRAPH, HTML, MANIFEST, MARKDOWN
from smart_model_router_research.deep.canonical_json import canonical
from smart_model_router_research.deep.verifying import MAX_SHOWN
from tests.research_damage import FILES, each_kind, forged, name_of, resealed, values_in, written
from tests.research_runs import CAPITALS, DOCUMENTS, EXAMPLE, QUESTIONS, example, run_of_claims

EVERY_BYTE = bool(os.environ.get("SMR_EVERY_BYTE"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the example."""
    return Path(shutil.copytree(EXAMPLE, tmp_path / "run"))


def places(found: VerifyResult) -> str:
    """Return the problems in one text."""
    return "\n".join(f"{each.place}: {each.problem}" for each in found.problems)


def test_a_folder_is_sound_as_it_was_written(folder: Path) -> None:
    """Nothing of the run that wrote it is needed; the result says how much was looked at."""
    found = verify(folder)

    assert found == VerifyResult(folder=str(folder), files=len(FILES), claims=9, rounds=2)
    assert found.is_sound


def chosen(count: int) -> list[int]:
    """Return the first and the last place of a file, and some between; all for the nightly lane."""
    dice = random.Random(count)
    return sorted({0, count - 1, *(dice.randrange(count) for _ in range(3))})


@pytest.mark.parametrize("path", FILES)
def test_a_flipped_bit_of_any_file_is_noticed(path: str, folder: Path) -> None:
    """The problems name the file."""
    for at in chosen(len(FILES[path])):
        changed = bytearray(FILES[path])
        changed[at] ^= 1 << at % 8
        (folder / path).write_bytes(changed)

        assert path in places(verify(folder)), at


@pytest.mark.skipif(not EVERY_BYTE, reason="make nightly flips every byte")
def test_a_flip_of_every_byte_is_noticed(tmp_path: Path) -> None:
    """Of every file of a small folder."""
    folder = tmp_path / "run"
    write_artefacts(small(), folder)
    for file in [path for path in folder.rglob("*") if path.is_file()]:
        content = file.read_bytes()
        for at in range(len(content)):
            file.write_bytes(content[:at] + bytes([content[at] ^ 1 << at % 8]) + content[at + 1 :])
            assert not verify(folder).is_sound, (file.name, at)
        file.write_bytes(content)
    assert verify(folder).is_sound


def small() -> ResearchRun:
    """Return a run of one claim."""
    return run_of_claims([CAPITALS[:1]], DOCUMENTS[:1], QUESTIONS[:1])


def _swapped(content: bytes) -> bytes:
    lines = content.splitlines(keepends=True)
    return b"".join([*lines[1:], lines[0]]) if len(lines) > 1 else content[1:] + content[:1]


DAMAGE: tuple[Callable[[bytes], bytes], ...] = (
    lambda content: content[:-1],
    lambda content: content[1:],
    lambda content: content[: len(content) // 2],
    lambda content: b"",
    lambda content: content + b"\n",
    lambda content: content + b"x",
    lambda content: b" " + content,
    lambda content: content * 2,
    lambda content: content[: len(content) // 2] + content[len(content) // 2 + 1 :],
    _swapped,
)


@pytest.mark.parametrize("path", FILES)
def test_a_file_that_is_cut_stretched_or_reordered_is_noticed(path: str, folder: Path) -> None:
    """A byte more or less, half of it, nothing, rows in another order."""
    for damage in DAMAGE:
        (folder / path).write_bytes(damage(FILES[path]))

        assert path in places(verify(folder)), damage


@pytest.mark.parametrize("path", FILES)
def test_a_file_that_is_missing_is_named(path: str, folder: Path) -> None:
    """Whichever it is."""
    (folder / path).unlink()

    assert f"{path}: the file is missing" in places(verify(folder))


@pytest.mark.parametrize("path", ["notes.md", "documents/S4.md", "documents/.hidden", ".hidden"])
def test_a_file_that_is_added_is_named(path: str, folder: Path) -> None:
    """A folder of artefacts has what its manifest lists, and no more."""
    (folder / path).write_bytes(b"")

    assert f"{path}: the manifest does not list this file" in places(verify(folder))


def test_what_is_no_file_is_named(folder: Path) -> None:
    """A link could lead anywhere, and a folder hold anything."""
    (folder / MARKDOWN).unlink()
    (folder / MARKDOWN).symlink_to(EXAMPLE / MARKDOWN)
    linked = places(verify(folder))
    (folder / MARKDOWN).unlink()
    (folder / MARKDOWN).mkdir()

    assert "only files are in a folder of artefacts" in linked
    assert "only files are in a folder of artefacts" in places(verify(folder))


@pytest.mark.parametrize("path", ["", "documents", "rag_manifest.json", "no-such-folder"])
def test_any_other_path_is_a_problem_and_no_error(path: str, folder: Path, tmp_path: Path) -> None:
    """A folder of something else, a file, nothing at all."""
    (tmp_path / "documents").mkdir()
    (tmp_path / MANIFEST).write_bytes(FILES[MANIFEST])

    assert not verify(tmp_path / path).is_sound
    assert verify(folder).is_sound


def test_a_path_that_no_system_takes_is_a_problem(tmp_path: Path) -> None:
    """Not even that is an exception."""
    assert not verify(f"{tmp_path}/\0").is_sound


@pytest.mark.parametrize("depth", [10, 150, 330, 480, 700, 900, 1_000, 100_000])
@pytest.mark.parametrize("path", [MANIFEST, GRAPH, CITATIONS])
def test_any_depth_of_nesting_is_a_problem_and_no_error(path: str, depth: int, tmp_path: Path) -> None:
    """Wherever reading, writing or comparing it gives up."""
    nested = b"[" * depth + b"]" * depth
    changed = FILES[path].replace(b'{"', b'{"a":' + nested + b',"', 1)

    assert path in places(verify(written({**FILES, path: changed}, tmp_path / "run")))


def test_files_that_two_runs_wrote_do_not_mix(tmp_path: Path) -> None:
    """A whole file of another run is noticed."""
    other = files_of(small())
    for path in sorted(path for path in FILES.keys() & other.keys() if FILES[path] != other[path]):
        mixed = written({**FILES, path: other[path]}, tmp_path / path.replace("/", "-"))
        assert not verify(mixed).is_sound, path


@given(st.binary(max_size=60), st.sampled_from([MANIFEST, GRAPH, CITATIONS, CHUNKS]))
def test_no_content_is_an_error(tmp_path_factory: pytest.TempPathFactory, content: bytes, path: str) -> None:
    """Whatever a file holds, the result says where it is wrong."""
    folder = written({**FILES, path: content}, tmp_path_factory.mktemp("run"))
    assert path in places(verify(folder))


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@given(st.data())
def test_no_value_is_an_error(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Whatever stands in the place of a value, with every hash made anew: a result, never an exception."""
    path = data.draw(st.sampled_from([MANIFEST, GRAPH, CITATIONS, CHUNKS]))
    place = data.draw(st.sampled_from(values_in(path)))
    shorter = place[: data.draw(st.integers(2, len(place)))]
    files = forged(path, shorter, data.draw(values))

    found = verify(written(files, tmp_path_factory.mktemp("run")))

    assert found.is_sound is not bool(found.problems)


# ---------------------------------------------------------------- edits whose hashes were made anew


ONLY_THE_RUN_TELLS = frozenset(
    "run.run_id run.finished_at run.workflow run.workflow_hash run.engine run.config_hash run.accepted_by "
    "questions.id questions.kind questions.critical claims.score claims.method claims.round claims.question_id "
    "rounds.mode rounds.steps rounds.new_documents rounds.changed_claims citations.domain citations.retrieved_at "
    "citations.backend citations.corpus citations.origin citations.runs_words_together".split()
)
"""Facts that nothing but the hash of their file vouches for; of a question without claims its id, too."""


@pytest.mark.parametrize("path", [MANIFEST, GRAPH, CITATIONS, CHUNKS])
def test_values_that_follow_from_others_cannot_be_forged_alone(path: str, tmp_path: Path) -> None:
    """X3: one value of each kind is changed, and every hash made anew; only facts of the run itself pass."""
    passed = set[str]()
    for number, place in enumerate(each_kind(path)):
        if verify(written(forged(path, place), tmp_path / str(number))).is_sound:
            passed.add(name_of(place[1:]))

    assert passed <= ONLY_THE_RUN_TELLS


def edited(change: Callable[[dict[str, Any]], None]) -> dict[str, bytes]:
    """Return the files of the example with another claim graph and all that follows from it but claims."""
    graph = json.loads(FILES[GRAPH])
    change(graph)
    return resealed({**FILES, GRAPH: canonical(graph)})


def _claim(graph: dict[str, Any], claim_id: str) -> dict[str, Any]:
    return next(each for each in graph["claims"] if each["id"] == claim_id)


def _without_weight(graph: dict[str, Any]) -> None:
    graph["metric_inputs"].update(policy="matrix")
    graph["metric_inputs"]["metrics"].update(weights={"coverage": -1.0})


EDITS: tuple[tuple[Callable[[dict[str, Any]], Any], str], ...] = (
    (lambda graph: _claim(graph, "c6").update(text="The parliament has 210 seats."), "it is supported, and checked"),
    (lambda graph: _claim(graph, "c9").update(text="There are 4 in all."), "'c9': it is supported, and checked again"),
    (lambda graph: _claim(graph, "c2").update(status="supported"), "it is supported, and checked again contradicted"),
    (lambda graph: _claim(graph, "c6").update(critical=False), "'c6': it is critical, and does not say so"),
    (lambda graph: _claim(graph, "c1").update(as_of="2020"), "'c1': checked again it has other as_of"),
    (lambda graph: _claim(graph, "c1")["evidence"][0].update(span=[0, 4]), "'c1': checked again it has other evidence"),
    (lambda graph: _claim(graph, "c1")["evidence"][0].update(span=[4, 4]), "K2: 4 to 4 are no characters of"),
    (lambda graph: _claim(graph, "c1")["evidence"][0].update(quote="Not there"), "K2: the quote is not in"),
    (lambda graph: _claim(graph, "c1")["evidence"][0].update(doc_id="none.md"), "K1: 'none.md' is no document of its"),
    (lambda graph: _claim(graph, "c6").update(status="partial"), "claim_graph.json.rounds[0].audit.coverage"),
    (lambda graph: [each.update(contradictions=[]) for each in graph["rounds"]], "it lacks a contradiction: of 'c2'"),
    (lambda graph: graph["contradictions"][0].update(relation="resolved"), "a contradiction does not follow: of 'c2'"),
    (lambda graph: graph["contradictions"][0].update(one="c0"), "'c0' is no claim"),
    (lambda graph: graph["documents"][0].update(origin="x"), "the delivered round has another origin of it"),
    (lambda graph: graph["documents"][0].update(tier="B"), "the graph has other facts about it than are stored"),
    (lambda graph: graph["documents"][0].update(id="none.md"), "no document of this id is stored"),
    (lambda graph: graph["rounds"][0]["claims"].append(0), "its id is there twice"),
    (lambda graph: _claim(graph, "c1").update(question_id="q9"), "'q9' is no question of its round"),
    (lambda graph: graph["metric_inputs"]["metrics"].update(recency_mode="binary"), ".audit.recency"),
    (lambda graph: graph["metric_inputs"].update(min_ci=0.1), "rag_manifest.json.quality_metadata"),
    (_without_weight, "it cannot be computed again: ConfigError: weights.coverage: -1.0"),
    (lambda graph: graph["report"]["sections"][0]["sentences"][0].update(claims=[]), "completeness.critical"),
    (lambda graph: graph["report"]["sections"][0]["sentences"][0].update(text="It is."), "completeness.offenders"),
    (lambda graph: graph["report"].update(sections=[]), "final_report.md:"),
)  # fmt: skip


@pytest.mark.parametrize(("change", "problem"), EDITS)
def test_a_graph_that_does_not_follow_from_its_documents_is_noticed(
    change: Callable[[dict[str, Any]], Any], problem: str, tmp_path: Path
) -> None:
    """With every hash made anew, claims, inferences, contradictions, metrics and texts are computed again."""
    assert problem in places(verify(written(edited(change), tmp_path / "run")))


@pytest.mark.parametrize("path", ["documents/S1.md", MARKDOWN, HTML])
def test_a_text_that_is_changed_with_its_hash_is_noticed(path: str, tmp_path: Path) -> None:
    """A document is not the one that was retrieved, and a report not the one that follows."""
    text = FILES[path].replace(b"Arville", b"Bernville")
    assert text != FILES[path]

    assert path in places(verify(written(resealed({**FILES, path: text}), tmp_path / "run"))) or path.endswith("S1.md")
    assert not verify(tmp_path / "run").is_sound


def test_a_claim_that_a_model_took_down_is_sound(tmp_path: Path) -> None:
    """A status below that of the checks is nothing that a reader has to be warned of."""
    run = example()
    graph = run.rounds[0].graph
    lower = replace(graph.claims[0], status="partial", reasons=("doubtful",))  # type: ignore[arg-type]
    lowered = replace(run.rounds[0], graph=replace(graph, claims=(lower, *graph.claims[1:])))

    write_artefacts(replace(run, rounds=(lowered, run.rounds[1])), tmp_path / "run")

    assert verify(tmp_path / "run").problems == ()


def test_a_quote_that_counts_for_nothing_stands_where_it_is_said_to(tmp_path: Path) -> None:
    """Of a claim that is not supported, too."""
    run = example()
    graph = run.rounds[0].graph
    evidence = tuple(replace(each, span=(0, 3)) for each in graph.claims[0].evidence)
    lower = replace(graph.claims[0], status="partial", evidence=evidence)  # type: ignore[arg-type]
    lowered = replace(run.rounds[0], graph=replace(graph, claims=(lower, *graph.claims[1:])))

    write_artefacts(replace(run, rounds=(lowered, run.rounds[1])), tmp_path / "run")

    assert "round 1, claim 'c1': K2: its quote does not stand at [0, 3]" in places(verify(tmp_path / "run"))


def test_there_is_an_end_to_the_list_of_problems(tmp_path: Path) -> None:
    """The last one says how many are left out."""
    extra = {f"{number}.txt": b"" for number in range(MAX_SHOWN + 7)}
    found = verify(written({**FILES, **extra}, tmp_path / "run"))

    assert len(found.problems) == MAX_SHOWN + 1
    assert found.problems[-1].problem.endswith("problems more")
