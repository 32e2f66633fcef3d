"""What is said of an address that cannot be listened on is said of nothing else."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from smart_model_router.cli import serve
from smart_model_router.cli.app import Serve
from smart_model_router.cli.commands import Dashboard, ServeFaults

pytestmark = pytest.mark.loopback


def denied(*_: object, **__: object) -> NoReturn:
    """Fail as a file does that may not be written."""
    raise PermissionError(errno.EACCES, "Permission denied", "stats.db")


def run_serve(folder: Path) -> int:
    """Run `smr serve`."""
    file = folder / "smart-router.yaml"
    file.write_text("version: 1\nproviders: {s: {kind: scripted}}\nmodels: {m: {tiers: [{targets: [s/x]}]}}\n", "utf-8")
    return Serve(config=file, port=0, as_json=True).run()


def show(folder: Path) -> int:
    """Run `smr dashboard`."""
    return Dashboard(db=str(folder / "stats.db"), port=0, as_json=True).run()


def fail(folder: Path) -> int:
    """Run `smr fault-server`."""
    del folder
    return ServeFaults(as_json=True).run()


@pytest.mark.parametrize(
    ("command", "what"),
    [
        (run_serve, "smart_model_router.gateway.uvicorn_server.serve"),
        (show, "smart_model_router.gateway.dashboard.standalone.run"),
        (fail, "smart_model_router.cli.chaos.print_json"),
    ],
)
def test_what_fails_later_is_no_fault_of_the_port(
    command: Callable[[Path], int], what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that may not be written is told as it is, not as a port that is not yours."""
    monkeypatch.setattr(serve, "_log", lambda: None)
    monkeypatch.setattr(what, denied)
    with pytest.raises(PermissionError, match=r"stats\.db"):
        command(tmp_path)
