"""The counter of file-to-file moves (tools/walk.py)."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tools.walk import HERE, Walk, room, walk

MAIN = Path("router/smart_model_router")
FILES = {
    MAIN / "door.py": "def enter(gate, sample):\n    gate.ask(sample)\n    gate.ask(sample)\n    sample.take()\n",
    MAIN / "core/gate.py": "def ask(sample):\n    own()\n    sample.take()\n\ndef own():\n    list(map(str, 'ab'))\n",
    MAIN / "core/sample.py": "def take():\n    pass\n",
}


def made(root: Path, file: Path) -> ModuleType:
    """Write one of FILES under `root` and import it."""
    path = root / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(FILES[file], encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.asyncio
async def test_files_moves_and_moves_between_rooms_of_a_request(tmp_path: Path) -> None:
    """A move is a call in another file than the call before it; calls within a file and outside the tree are none."""
    door, gate, sample = (made(tmp_path, file) for file in FILES)

    async def request() -> None:
        door.enter(gate, sample)

    found = await walk(tmp_path, request)
    names = [file.stem for file in found.calls]
    assert names == ["door", "gate", "gate", "sample", "gate", "gate", "sample", "sample"]
    assert found.files == tuple(FILES)
    assert (found.moves, found.room_moves) == (4, 1)


def test_rooms() -> None:
    """A room is a package directly inside the main one; loose modules are one room, so is each other distribution."""
    files = (MAIN / "router.py", MAIN / "core/gate.py", MAIN / "core/selection/strategies.py")
    other = Path("providers/smart_model_router_providers/fault/script.py")
    found = [room(file) for file in (*files, other)]
    assert found == ["smart_model_router", "core", "core", "smart_model_router_providers"]
    assert Walk((*files, other)).room_moves == 2


@pytest.mark.loopback
def test_a_chat_a_stream_and_a_step_are_counted() -> None:
    """The tool serves both requests itself and prints the counts; another tree without sources is refused.

    The way of a workflow's step from one work to the next leads through ten files at most.
    """
    tool = [sys.executable, "tools/walk.py"]
    done = subprocess.run([*tool, "--files"], cwd=HERE, capture_output=True, encoding="utf-8", timeout=60, check=True)
    lines = done.stdout.splitlines()
    heads = [line.split(":")[0] for line in lines if not line.startswith(" ")]
    assert heads == ["chat", "stream", "step"]
    (files,) = (int(line.split()[1]) for line in lines if line.startswith("step: "))
    assert files <= 10
    assert lines[1] == "  router/smart_model_router/router.py"
    refused = subprocess.run([*tool, "--tree", "docs"], cwd=HERE, capture_output=True, encoding="utf-8", check=False)
    assert refused.returncode == 2
    assert "docs has no router/smart_model_router" in refused.stderr
