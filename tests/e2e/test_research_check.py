"""`smr research check` as people use it: the commands of its document, and files that are not as they should be."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.e2e.command import Smr

DOCUMENT = (Path(__file__).parents[2] / "docs" / "how-to" / "checking.md").read_text("utf-8")


@pytest.fixture
def written(smr: Smr) -> Smr:
    """The files of the document."""
    for name, text in re.findall(r'^```json title="([^"]+)"\n(.*?)^```', DOCUMENT, re.MULTILINE | re.DOTALL):
        (smr.folder / name).write_text(text, "utf-8")
    return smr


def test_the_document_prints_what_the_command_prints(written: Smr) -> None:
    """Word for word; what was found is counted on stderr."""
    done = written("research", "check", "pairs.jsonl")

    shown = re.search(r"^```text\n(.*?)^```", DOCUMENT, re.MULTILINE | re.DOTALL)
    assert shown is not None
    assert (done.returncode, done.stdout) == (0, shown[1])
    assert done.stderr == "statements: 5: 2 supported, 2 partial, 1 unsupported; 40.0% of all supported\n"


def test_a_share_can_be_asked_for(written: Smr) -> None:
    """Below it the exit code is 5; each statement is an object."""
    assert written("research", "check", "pairs.jsonl", "--fail-below", "0.4").returncode == 0
    done = written("research", "check", "pairs.jsonl", "--fail-below", "0.41", "--json")
    assert done.returncode == 5
    first = json.loads(done.stdout.splitlines()[0])
    assert (first["id"], first["status"], first["source"]) == ("fails", "partial", 0)
    assert first["instead"] == "If the disk is full, the server fails."


def test_rows_of_other_tools_are_read_sentence_by_sentence(written: Smr) -> None:
    """From a file, and from stdin."""
    done = written("research", "check", "rows.jsonl")
    assert [line.split("  ")[:2] for line in done.stdout.splitlines() if line[0] != " "] == [
        ["1.1", "supported"],
        ["1.2", "partial"],
        ["2", "supported"],
    ]
    assert (
        written("research", "check", "-", stdin=(written.folder / "rows.jsonl").read_text("utf-8")).stdout
        == done.stdout
    )


def test_lines_that_say_nothing_are_named_and_a_file_without_any_is_refused(smr: Smr) -> None:
    """A line without a statement or a source is named with what is missing; the rest is checked."""
    bad = smr.folder / "bad.jsonl"
    bad.write_text('[1]\n{"statement": "It is.", "source": 3}\n{"statement": "It is.", "source": "It is."}\n', "utf-8")
    done = smr("research", "check", "bad.jsonl")
    assert done.returncode == 0
    assert 'line 1: left out, a JSON object a line is needed, with "statement" and "source"' in done.stderr
    assert 'line 2: left out, "source" has to be a text, or a list of texts' in done.stderr
    assert "1 supported, 0 partial, 0 unsupported, 2 left out; 33.3% of all supported" in done.stderr
    assert smr("research", "check", "bad.jsonl", "--fail-below", "0.5").returncode == 5
    bad.write_text("\n{\n", "utf-8")
    assert smr("research", "check", "bad.jsonl").returncode == 3
    bad.write_bytes("statement,source\nGrüße,x\n".encode("latin-1"))
    assert "text in UTF-8 is needed: byte 19 is none" in smr("research", "check", "bad.jsonl").stderr
    assert "a file that can be opened is needed" in smr("research", "check", "none.jsonl").stderr


def test_a_row_cannot_look_like_another(smr: Smr) -> None:
    """Line breaks and escape sequences of a statement are not printed."""
    row = {"id": "a\nb", "statement": "It is.\nfake  supported  It was.\x1b[2J", "source": "It is."}
    (smr.folder / "row.jsonl").write_text(json.dumps(row), "utf-8")
    done = smr("research", "check", "row.jsonl")
    assert done.stdout.splitlines()[0] == "a b  partial  It is. fake supported It was.[2J"
    assert "\x1b" not in done.stdout
