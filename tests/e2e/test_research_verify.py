"""`smr research verify` as people use it, on the example folder and on what is none."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.e2e.command import Smr
from tests.research_runs import EXAMPLE


def test_a_sound_folder_prints_nothing(smr: Smr) -> None:
    """How much was looked at is said on stderr."""
    done = smr("research", "verify", str(EXAMPLE))

    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == f"{EXAMPLE}: 9 files, 2 rounds, 9 claims: sound\n"


def test_each_problem_is_a_line(smr: Smr) -> None:
    """With its place; the exit code is 1."""
    shutil.copytree(EXAMPLE, smr.folder / "run")
    (smr.folder / "run" / "final_report.md").unlink()

    done = smr("research", "verify", "run")

    assert (done.returncode, done.stdout) == (1, "final_report.md: the file is missing\n")
    assert done.stderr.endswith("1 problem\n")


def test_problems_are_an_object_with_json(smr: Smr) -> None:
    """And so is a sound result."""
    shutil.copytree(EXAMPLE, smr.folder / "run")
    sound = smr("research", "verify", "run", "--json")
    (smr.folder / "run" / "a\nb.md").write_bytes(b"")

    broken = smr("research", "verify", "run", "--json")

    assert sound.returncode == 0
    assert json.loads(sound.stdout) == {
        "folder": "run", "sound": True, "files": 9, "rounds": 2, "claims": 9, "problems": []
    }  # fmt: skip
    assert broken.returncode == 1
    assert json.loads(broken.stdout)["problems"][0] == {
        "place": "a\nb.md", "problem": "the manifest does not list this file"
    }  # fmt: skip


def test_no_folder_is_a_mistake_of_use(smr: Smr) -> None:
    """A path that is not there, and a file."""
    assert smr("research", "verify", "nothing").returncode == 2
    assert smr("research", "verify", str(EXAMPLE / "final_report.md")).returncode == 2


def test_the_documents_of_a_run_can_be_searched(smr: Smr) -> None:
    """`smr index` takes the folder as it is, and names chunks as the artefacts do."""
    rows = [json.loads(line) for line in Path(EXAMPLE / "evidence_chunks.jsonl").read_text("utf-8").splitlines()]
    assert smr("index", str(EXAMPLE / "documents"), "--db", "run.db").returncode == 0

    done = smr("query", "parliament seats", "--db", "run.db", "--json")

    found = json.loads(done.stdout)
    assert "S1.md#L10-L14" in done.stdout
    assert "S1.md#L10-L14" in {row["chunk_id"] for row in rows}
    assert found
