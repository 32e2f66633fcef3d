"""`smr doctor` and `smr config check` look, and leave everything as it was."""

from __future__ import annotations

import atexit
import json
from pathlib import Path
from typing import Any

import pytest

from smart_model_router.cli.app import Doctor
from smart_model_router.cli.commands import Check


def written(folder: Path, log: Path) -> Path:
    """A configuration with everything that makes files."""
    tree: dict[str, Any] = {
        "version": 1,
        "providers": {"s": {"kind": "scripted"}},
        "models": {"m": {"tiers": [{"targets": ["s/x"]}], "last_resort": []}},
        "store": {"path": str(folder / "stats.db")},
        "telemetry": {"log": {"to": str(log)}, "traces": {"enabled": True}},
    }
    file = folder / "smart-router.yaml"
    file.write_text(json.dumps(tree), "utf-8")
    return file


@pytest.mark.parametrize("check", [Doctor, Check], ids=["doctor", "config check"])
def test_a_check_leaves_no_file_and_no_hook(
    check: type[Doctor | Check], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither log nor store is made (by root, perhaps, of what a service is to write), and nothing is left open."""
    left: list[object] = []
    monkeypatch.setattr(atexit, "register", left.append)
    monkeypatch.setattr(atexit, "unregister", left.remove)
    file = written(tmp_path, tmp_path / "x.log")
    assert check(config=file, as_json=True).run() == 0
    assert list(tmp_path.iterdir()) == [file]
    assert [hook for hook in left if "smart_model_router" in str(hook)] == []


@pytest.mark.parametrize("log", [Path("nowhere/x.log"), Path()])
def test_a_log_that_could_not_be_written_is_found(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder that is missing, or a log that is one."""
    assert Check(config=written(tmp_path, tmp_path / log), as_json=True).run() == 3
    assert [problem["key"] for problem in json.loads(capsys.readouterr().out)["problems"]] == ["telemetry.log.to"]
