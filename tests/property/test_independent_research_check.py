"""The figures of research runs are those that independent code computes from the folder alone."""

from __future__ import annotations

import ast
import hashlib
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from smart_model_router_research.deep import write_artefacts
from tests.drawn_research_runs import drawn_run
from tests.research_runs import EXAMPLE
from tools import independent_research_check, independent_research_figures
from tools.independent_research_check import canonical, main, rows_of
from tools.independent_research_figures import AS_LANDED, LETTER, Readings

SEEDS = range(40)
INDEPENDENT = (independent_research_check, independent_research_figures)


def differing(folder: Path, readings: Readings = AS_LANDED) -> list[str]:
    """Return the places where the independent check computes something else than the folder says."""
    return [row.place for row in rows_of(folder, readings) if not row.agrees]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Write the runs of all seeds through the public writer."""
    base = tmp_path_factory.mktemp("drawn")
    for seed in SEEDS:
        write_artefacts(drawn_run(seed), base / str(seed))
    return [base / str(seed) for seed in SEEDS]


def changed(folder: Path, name: str, change: Callable[[Any], None]) -> None:
    """Change a file of JSON in a copy of the example and renew every hash and size, as a careful forger would."""
    shutil.copytree(EXAMPLE, folder)
    value = json.loads((folder / name).read_bytes())
    change(value)
    (folder / name).write_bytes(canonical(value))
    manifest = json.loads((folder / "rag_manifest.json").read_bytes())
    for entry in manifest["files"]:
        data = (folder / entry["path"]).read_bytes()
        entry["sha256"], entry["bytes"] = hashlib.sha256(data).hexdigest(), len(data)
    bare = {key: each for key, each in manifest.items() if key != "sha256"}
    manifest["sha256"] = hashlib.sha256(canonical(bare)).hexdigest()
    (folder / "rag_manifest.json").write_bytes(canonical(manifest))


def test_the_example_agrees() -> None:
    """Every hash, quote and figure of the example folder is what the independent check computes."""
    assert differing(EXAMPLE) == []


def test_drawn_runs_agree(drawn: list[Path]) -> None:
    """So are those of forty drawn runs, half of them judged by the checker, half with any graph."""
    assert {folder.name: found for folder in drawn if (found := differing(folder))} == {}


def test_drawn_runs_are_varied(drawn: list[Path]) -> None:
    """The drawn runs pass and fail gates, deliver in several ways, and have contradictions and several rounds."""
    manifests = [json.loads((folder / "rag_manifest.json").read_bytes()) for folder in drawn]
    graphs = [json.loads((folder / "claim_graph.json").read_bytes()) for folder in drawn]
    audits = [one_round["audit"] for graph in graphs for one_round in graph["rounds"]]
    assert {audit["gate_passed"] for audit in audits} == {True, False}
    assert {audit["nothing_compared"] for audit in audits} == {True, False}
    assert {manifest["delivery"] for manifest in manifests} >= {"moderate", "low", "withheld"}
    assert {each["relation"] for graph in graphs for each in graph["contradictions"]} >= {"resolved", "unresolved"}
    assert max(manifest["counts"]["rounds"] for manifest in manifests) == 3


@pytest.mark.parametrize("reading", LETTER)
def test_an_open_difference_is_still_open(reading: str, drawn: list[Path]) -> None:
    """By the letter of a sentence in LETTER some run has other figures; once it has not, the sentence leaves LETTER."""
    assert any(differing(folder, frozenset({reading})) for folder in drawn)


@pytest.mark.parametrize(
    ("name", "change", "place"),
    [
        ("claim_graph.json", lambda graph: graph["rounds"][1]["audit"].update(coverage=0.88), "round 2 coverage"),
        ("claim_graph.json", lambda graph: graph["claims"][0].update(status="unsupported"), "round 1 verification"),
        ("claim_graph.json", lambda graph: graph["documents"][0].update(published="2020-05-01"), "round 1 recency"),
        (
            "claim_graph.json",
            lambda graph: graph["claims"][0]["evidence"][0].update(span=[221, 237]),
            "claim c1 quote in arland.md at 221-237",
        ),
        ("claim_graph.json", lambda graph: graph["edges"].pop(), "edges"),
        ("claim_graph.json", lambda graph: graph["report"]["sections"][0].update(sentences=[]), "counts sentences"),
        ("citations.json", lambda value: value["citations"][0]["quotes"].pop(), "quotes of S1"),
        ("citations.json", lambda value: value["citations"][0].update(tier="B"), "document arland.md"),
        ("rag_manifest.json", lambda value: value.update(delivery="full"), "delivery"),
        ("rag_manifest.json", lambda value: value["counts"].update(claims=8), "counts claims"),
        (
            "rag_manifest.json",
            lambda value: value["quality_metadata"]["sensitivity"].update(max=0.81),
            "quality sensitivity max",
        ),
        (
            "rag_manifest.json",
            lambda value: value["quality_metadata"].update(confidence_level="full"),
            "quality confidence_level",
        ),
        ("rag_manifest.json", lambda value: value["completeness"].update(rest=0.96), "completeness rest"),
    ],
)
def test_a_changed_figure_is_found(name: str, change: Callable[[Any], None], place: str, tmp_path: Path) -> None:
    """A changed figure, status, date, span or edge is found although every hash was renewed."""
    changed(tmp_path / "run", name, change)
    assert place in differing(tmp_path / "run")


def test_a_changed_byte_is_found(tmp_path: Path) -> None:
    """A changed byte of a stored text is found by its hashes and by the quotes in it."""
    shutil.copytree(EXAMPLE, tmp_path / "run")
    text = tmp_path / "run" / "documents" / "S1.md"
    text.write_bytes(text.read_bytes().replace(b"447 km", b"448 km"))
    found = differing(tmp_path / "run")
    assert {"files documents/S1.md sha256", "sha256 of S1", "claim c2 quote in arland.md at 147-161"} <= set(found)


def test_the_command_prints_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command says what agrees and what differs, and exits with 0 or 1."""
    assert main([str(EXAMPLE)]) == 0
    assert capsys.readouterr().out.endswith("all agree\n")
    changed(tmp_path / "run", "rag_manifest.json", lambda value: value["counts"].update(claims=8))
    assert main([str(tmp_path / "run")]) == 1
    assert "DIFFERS counts claims" in capsys.readouterr().out


@pytest.mark.parametrize("module", INDEPENDENT, ids=lambda module: module.__name__)
def test_the_check_is_independent(module: Any) -> None:
    """Its files import the standard library and one another, and nothing of the product."""
    imported: set[str] = set()
    for node in ast.walk(ast.parse(Path(module.__file__).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            imported.add(node.module or "")
    ours = {each.__name__ for each in INDEPENDENT}
    assert {name for name in imported if name.split(".")[0] not in sys.stdlib_module_names} <= ours
    assert not {"importlib", "runpy", "subprocess"} & imported
