"""What we claim in documents is shown by a test that exists."""

from __future__ import annotations

from pathlib import Path

from tests.meta.repository import ROOT, documents, names_a_test, node_ids, relative, table_rows
from tools.adr import FOLDER, IN_FORCE, Programme

HISTORY = {FOLDER / name for name, record in Programme.read().records.items() if record.status not in IN_FORCE}
"""Decision records that are no longer in force: the tests they name may be gone."""
CLAIMS = {
    (relative(path), node_id)
    for path in documents()
    if path not in HISTORY
    for node_id in node_ids(path.read_text("utf-8"))
}
GUARANTEES = list(table_rows((ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")))


def test_a_test_named_in_a_document_exists() -> None:
    """Wherever a document names a test, the repository has it."""
    assert sorted((document, node_id) for document, node_id in CLAIMS if not names_a_test(node_id)) == []


def test_every_guarantee_names_the_test_that_proves_it() -> None:
    """A guarantee without a test is a wish: each row of docs/guarantees.md names at least one that exists."""
    assert all(promised for promised, _ in GUARANTEES)
    assert [promised for promised, proof in GUARANTEES if not any(map(names_a_test, node_ids(proof)))] == []


def test_a_test_that_does_not_exist_is_noticed(tmp_path: Path) -> None:
    """Neither a missing file nor a missing function passes for a test; a helper function does not either."""
    here = "tests/meta/test_evidence.py"
    assert names_a_test(f"{here}::test_a_test_that_does_not_exist_is_noticed")
    assert not names_a_test(f"{here}::test_nobody_wrote")
    assert not names_a_test("tests/meta/test_no_such_file.py::test_nobody_wrote")
    assert not names_a_test("tests/meta/repository.py::names_a_test")
