"""The folder of artefacts: the format that docs/design/artefacts.md describes, written as a whole or not at all."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from smart_model_router_research.deep import (
    ArtefactError,
    ResearchRun,
    artefact_schemas,
    files_of,
    run_of,
    verify,
    write_artefacts,
)
from smart_model_router_research.deep.artefact_records import CHUNKS, CITATIONS, GRAPH, MANIFEST
from smart_model_router_research.deep.canonical_json import canonical
from tests.research_runs import DOCUMENTS, EXAMPLE, claim, document, example, run_of_claims


@pytest.fixture(scope="module")
def run() -> ResearchRun:
    """The run of the example folder."""
    return example()


@pytest.fixture(scope="module")
def files(run: ResearchRun) -> dict[str, bytes]:
    """The artefacts of the example."""
    return files_of(run)


def test_the_example_folder_is_what_is_written(files: dict[str, bytes]) -> None:
    """The folder in the repository has these bytes (`python -m tests.research_runs` writes it anew)."""
    found = {path.relative_to(EXAMPLE).as_posix(): path.read_bytes() for path in EXAMPLE.rglob("*") if path.is_file()}
    assert found == files


def test_artefacts_read_as_the_run_that_they_were_written_of(run: ResearchRun, files: dict[str, bytes]) -> None:
    """Nothing is lost: the run that is read writes the same bytes."""
    again = run_of(files)
    assert again.rounds == run.rounds
    assert again.documents == run.documents
    assert files_of(again) == files


@pytest.mark.parametrize("name", sorted(artefact_schemas()))
def test_each_file_is_valid_by_its_schema(name: str, files: dict[str, bytes]) -> None:
    """The published schemas admit what is written."""
    judge = jsonschema_rs.validator_for(artefact_schemas()[name])
    for line in files[name].splitlines() if name == CHUNKS else [files[name]]:
        judge.validate(json.loads(line))


def keys_of(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Return the path of each key of the objects in a JSON value, of lists those of the first item."""
    if isinstance(value, list):
        return keys_of(value[0], (*path, 0)) if value else []
    if not isinstance(value, dict):
        return []
    return [each for key in value for each in ((*path, key), *keys_of(value[key], (*path, key)))]


OPEN = {"audit", "counts", "floors", "weights", "usage", "prompts", "failing_metrics", "passing_metrics"}
"""Objects whose keys are names of the run's own."""


@pytest.mark.parametrize("name", sorted(artefact_schemas()))
def test_a_schema_asks_for_each_field_and_admits_no_other(name: str, files: dict[str, bytes]) -> None:
    """Taking a field away, or adding one, is not valid."""
    judge = jsonschema_rs.validator_for(artefact_schemas()[name])
    content = files[name].splitlines()[0]
    closed = [path for path in keys_of(json.loads(content)) if not OPEN & set(path[:-1])]
    assert len(closed) > 5
    for path in closed:
        for changed in (without(json.loads(content), path), with_another(json.loads(content), path)):
            assert not judge.is_valid(changed), path


def without(value: Any, path: tuple[str | int, ...]) -> Any:
    """Return a JSON value without the key at the end of the path."""
    place = value
    for each in path[:-1]:
        place = place[each]
    del place[path[-1]]
    return value


def with_another(value: Any, path: tuple[str | int, ...]) -> Any:
    """Return a JSON value with a key beside the one at the end of the path."""
    place = value
    for each in path[:-1]:
        place = place[each]
    place["another"] = 1
    return value


def test_a_written_folder_is_sound_and_complete(run: ResearchRun, tmp_path: Path) -> None:
    """Nothing but the artefacts is in the place where they were written."""
    write_artefacts(run, tmp_path / "new" / "run")

    assert verify(tmp_path / "new" / "run").problems == ()
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["run"]


def test_an_empty_folder_is_written_to(run: ResearchRun, tmp_path: Path) -> None:
    """A folder that somebody made for the artefacts is taken."""
    (tmp_path / "run").mkdir()

    write_artefacts(run, tmp_path / "run")

    assert verify(tmp_path / "run").is_sound


def test_an_existing_folder_is_left_alone(run: ResearchRun, tmp_path: Path) -> None:
    """The error names the folder, and what is in it stays."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine").write_text("x", encoding="utf-8")

    with pytest.raises(ArtefactError, match=r"run: it is there already"):
        write_artefacts(run, tmp_path / "run")

    assert [path.name for path in tmp_path.rglob("*")] == ["run", "mine"]


@pytest.mark.parametrize("broken_at", range(12))
def test_a_full_disk_leaves_nothing_behind(
    run: ResearchRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken_at: int
) -> None:
    """Whichever file does not reach the disk: a clear error, and no folder, not even a part of one."""
    calls = iter(range(100))
    real = os.fsync

    def fsync(handle: int) -> None:
        if next(calls) == broken_at:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)

    with pytest.raises(ArtefactError, match=r"it cannot be written: No space left on device"):
        write_artefacts(run, tmp_path / "run")

    assert list(tmp_path.iterdir()) == []


def test_a_run_that_does_not_hold_together_is_not_written(run: ResearchRun, tmp_path: Path) -> None:
    """A document that is not what was hashed is refused, by its name."""
    changed = replace(DOCUMENTS[0], text="another text " * 100)
    documents = {**run.documents, changed.id: changed}

    with pytest.raises(ArtefactError, match=r"arland.md.*K1"):
        write_artefacts(replace(run, documents=documents), tmp_path / "run")

    assert list(tmp_path.iterdir()) == []


BROKEN = (
    (MANIFEST, b"", "it is no JSON"),
    (MANIFEST, b"[" * 100_000, "it is nested too deeply"),
    (MANIFEST, b'{"a":1,"a":1}\n', "it has the key 'a' twice"),
    (GRAPH, b'{"a":NaN}\n', "NaN is no JSON"),
    (GRAPH, b'{"a":1e999}\n', "1e999 is no finite number"),
    (GRAPH, b'{"a": 1}\n', "it is no canonical JSON: byte 5 "),
    (GRAPH, b"\xff\n", "it is not UTF-8 (byte 0)"),
    (GRAPH, b"[]\n", "[] - an object is needed"),
    (GRAPH, b'{"schema_version":2}\n', "2 is no version that can be read; 1 is the one that is known here"),
    (GRAPH, b'{"schema_version":true}\n', "True is no version that can be read"),
    (GRAPH, b'{"schema_version":1}\n', "the key 'questions' is missing"),
    (CHUNKS, b"{}\n", "the key 'chunk_id' is missing"),
    (CITATIONS, b'{"citations":{},"schema_version":1}\n', "an object of schema_version and citations, a list, is"),
    (
        CITATIONS,
        b'{"citations":[],"more":1,"schema_version":1}\n',
        "an object of schema_version and citations, a list,",
    ),
    (CITATIONS, b'{"citations":[[]],"schema_version":1}\n', "[] - an object is needed"),
)


@pytest.mark.parametrize(("name", "content", "problem"), BROKEN)
def test_a_broken_file_is_named_with_what_is_wrong(
    files: dict[str, bytes], name: str, content: bytes, problem: str
) -> None:
    """The error has the file as its place, and says what is wrong there."""
    with pytest.raises(ArtefactError) as caught:
        run_of({**files, name: content})

    assert caught.value.place.startswith(name)
    assert caught.value.problem.startswith(problem)


CHANGES: tuple[tuple[tuple[str | int, ...], object, str, str], ...] = (
    (("claims", 0, "text"), 7, "claims[0].text", "7 - a text is needed"),
    (("claims", 0, "critical"), 1, "claims[0].critical", "1 - true or false is needed"),
    (("claims", 0, "status"), "true", "claims[0].status", "'true' - one of supported, partial"),
    (("claims", 0, "evidence"), {}, "claims[0].evidence", "{} - a list is needed"),
    (("claims", 0, "evidence", 0, "span"), [1], "claims[0].evidence[0].span", "[1] - a list of 2 is needed"),
    (("claims", 0, "evidence", 0, "span", 1), 1.5, "claims[0].evidence[0].span[1]", "1.5 - a whole number is needed"),
    (("claims", 0, "statu"), "", "claims[0]", "the key 'statu' is unknown; did you mean 'status'?"),
    (("rounds", 0, "claims", 0), 99, "rounds[0].claims[0]", "99 is no position in a list of 9"),
    (("rounds",), [], "rounds", "a run has a round at least"),
    (("metric_inputs", "policy"), "none", "metric_inputs.policy", "'none' - one of two_tier, matrix is needed"),
    (("metric_inputs", "floors"), 1, "metric_inputs.floors", "1 - an object is needed"),
    (("metric_inputs", "metrics", "as_of"), "now", "metric_inputs.metrics.as_of", "'now' - a moment with its zone"),
    (("metric_inputs", "metrics", "window_days"), "x", "metric_inputs.metrics.window_days", "'x' - a whole number"),
    (("report", "sections", 0, "sentences", 0, "mark"), "x", "report.sections[0].sentences[0].mark", "'x' - one of"),
)


@pytest.mark.parametrize(("path", "value", "place", "problem"), CHANGES)
def test_a_wrong_value_is_named_with_its_place(
    files: dict[str, bytes], path: tuple[str | int, ...], value: object, place: str, problem: str
) -> None:
    """The error has the path of the value, and says what would be right."""
    graph = json.loads(files[GRAPH])
    where = graph
    for each in path[:-1]:
        where = where[each]
    where[path[-1]] = value

    with pytest.raises(ArtefactError) as caught:
        run_of({**files, GRAPH: canonical(graph)})

    assert caught.value.place == f"{GRAPH}.{place}"
    assert caught.value.problem.startswith(problem)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"doc_id": "borland.md"}, "'borland.md' is there twice"),
        ({"text": "of my own"}, "the text of a document is in its file alone"),
        ({"file": "documents/none.md"}, "the file is missing"),
        ({"titel": "x"}, "the key 'titel' is unknown; did you mean 'title'?"),
        ({"tier": "D"}, "'D' - one of A, B, C is needed"),
        ({"published": {"day": 7, "signal": "", "confidence": "high"}}, "7 - a text is needed"),
    ],
)
def test_a_wrong_citation_is_named(files: dict[str, bytes], change: dict[str, object], problem: str) -> None:
    """A document stands there once, with the fields of a document, and its text in its file."""
    found = json.loads(files[CITATIONS])
    found["citations"].append({**found["citations"][0], "doc_id": "new", **change})

    with pytest.raises(ArtefactError) as caught:
        run_of({**files, CITATIONS: canonical(found)})

    assert caught.value.problem.startswith(problem)


def test_texts_of_any_kind_are_kept_as_they_are(tmp_path: Path) -> None:
    """Half a surrogate, ends of lines of every system, characters that no text should have, and no text at all."""
    texts = ("a\ud800b", "one\r\ntwo\rthree\n\n# Heading\r\n\r\nlast", "\ufeffmark", "nul\0", "\x85\u2028\x0c", "")
    documents = [document(f"d{number}.md", text) for number, text in enumerate(texts)]
    quote = claim("c1", "last", "d1.md", "last")
    run = run_of_claims([[quote]], documents)

    write_artefacts(run, tmp_path / "run")

    assert verify(tmp_path / "run").problems == ()
    found = {f"documents/{path.name}": path.read_bytes() for path in (tmp_path / "run" / "documents").iterdir()}
    assert {run_of(files_of(run)).documents[each.id].text for each in documents} == set(texts)
    assert len(found) == len(texts)


def test_a_claim_that_changed_between_rounds_keeps_each_version() -> None:
    """Every round reads as its audit saw it."""
    draft = claim("c1", "The parliament has 120 seats.", "arland.md", "The parliament has 210 seats.")
    better = claim("c1", "The parliament has 120 seats.", "arland.md", "The parliament has 120 seats.")
    run = run_of_claims([[draft], [better], [better]])

    files = files_of(run)

    assert [each["status"] for each in json.loads(files[GRAPH])["claims"]] == ["unsupported", "supported"]
    assert run_of(files).rounds == run.rounds


def test_a_value_that_is_superseded_has_an_edge_to_it() -> None:
    """From the newer one; other contradictions are edges of their own kind."""
    older = document("borland.md", "Population: 4,000,000\n", title="Arland")
    newer = document("arland.md", "Population: 5,000,000\n", title="Arland")
    drafts = [
        claim(
            claim_id, f"Population: {value}", doc_id, f"Population: {value}",
            entity="Arland", attribute="population", value=value, as_of=day,
        )
        for claim_id, value, doc_id, day in (
            ("old", "4,000,000", "borland.md", "2024-05-01"), ("new", "5,000,000", "arland.md", "2026-05-01")
        )
    ]  # fmt: skip
    dated = replace(older, published=replace(DOCUMENTS[0].published, day="2024-05-01"))  # type: ignore[type-var]
    edges = json.loads(files_of(run_of_claims([drafts], [dated, newer]))[GRAPH])["edges"]

    assert {"kind": "supersedes", "source": "new", "target": "old"} in edges


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"rounds": ()}, "rounds: a run has a round at least"),
        ({"documents": {"other": DOCUMENTS[0]}}, "document 'other': its id is 'arland.md'"),
    ],
)
def test_a_run_without_what_it_refers_to_is_not_written(
    run: ResearchRun, tmp_path: Path, change: dict[str, Any], problem: str
) -> None:
    """The error names what is wrong."""
    with pytest.raises(ArtefactError, match=problem):
        write_artefacts(replace(run, **change), tmp_path / "run")


def test_a_cancelled_writing_leaves_nothing_behind(
    run: ResearchRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C goes on as it came."""

    def fsync(handle: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", fsync)

    with pytest.raises(KeyboardInterrupt):
        write_artefacts(run, tmp_path / "run")

    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_to_is_named(run: ResearchRun, tmp_path: Path) -> None:
    """A file where a folder should be."""
    (tmp_path / "file").write_bytes(b"")

    with pytest.raises(ArtefactError, match=r"run: it cannot be written: "):
        write_artefacts(run, tmp_path / "file" / "run")
