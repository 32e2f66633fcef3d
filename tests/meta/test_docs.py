"""The Python in our documents runs, as written, against a fault server.

In a document the server is always `http://127.0.0.1:9001`; the port is replaced by that of a real one.
A block such as ```` ```yaml title="router.yaml" ```` is written to a file of that name first. A block that
cannot run is marked ```` ```python no-run: the reason ````.
"""

from __future__ import annotations

import asyncio
import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from smart_model_router_providers.fault import FaultServer
from tests.meta.repository import ROOT, documents, relative
from tests.warm import warm

FENCE = re.compile(r"^```(?P<language>\w+) *(?P<info>[^\n]*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
PLACEHOLDER = "127.0.0.1:9001"
SECONDS = 60.0


@dataclass(frozen=True)
class Block:
    """One Python block: where it stands, how it is marked, and the files its document gave before it."""

    place: str
    info: str
    code: str
    files: tuple[tuple[str, str], ...]

    @property
    def runs(self) -> bool:
        """Whether the block is meant to be executed."""
        return not self.info


def blocks_in(text: str, name: str) -> list[Block]:
    """Return the Python blocks of a document, in order."""
    found: list[Block] = []
    files: list[tuple[str, str]] = []
    for match in FENCE.finditer(text):
        title = re.search(r'title="([\w.-]+)"', match["info"])
        if title:
            files.append((title[1], match["code"]))
        elif match["language"] == "python":
            line = text.count("\n", 0, match.start()) + 1
            found.append(Block(f"{name}:{line}", match["info"].strip(), match["code"], tuple(files)))
    return found


BLOCKS = [block for path in documents() for block in blocks_in(path.read_text("utf-8"), relative(path))]


async def run(block: Block, folder: Path) -> tuple[int, str]:
    """Run a block in `folder` as a program without any provider's key; return its exit code and output."""
    async with FaultServer(seed=1) as server:
        real = urlsplit(server.base_url).netloc
        for name, text in (*block.files, ("snippet.py", block.code)):
            (folder / name).write_text(text.replace(PLACEHOLDER, real), encoding="utf-8")
        env = {key: value for key, value in os.environ.items() if not key.endswith("_API_KEY")}
        interpreter = warm("-W", "error")
        done = await asyncio.to_thread(interpreter.run, ["snippet.py"], cwd=folder, env=env, seconds=SECONDS)
        return done.returncode, done.stdout + done.stderr


@pytest.mark.loopback
@pytest.mark.asyncio
@pytest.mark.parametrize("block", [block for block in BLOCKS if block.runs], ids=lambda block: block.place)
async def test_a_python_block_runs_as_written(block: Block, tmp_path: Path) -> None:
    """A reader who copies a block gets a program that ends well, without a warning."""
    code, output = await run(block, tmp_path)
    assert code == 0, output


def test_a_block_that_does_not_run_says_why() -> None:
    """`no-run` comes with a reason; no other mark keeps a block from running."""
    marked = [block for block in BLOCKS if not block.runs]
    assert [block.place for block in marked if not re.fullmatch(r"no-run: \w.{10,}", block.info)] == []


def test_the_readme_has_something_to_run() -> None:
    """The quickstart is among the blocks that run."""
    assert any(block.runs and block.place.startswith("README.md:") for block in BLOCKS)


def test_the_readme_is_one_screen_and_shows_a_failover_first() -> None:
    """At most 80 lines beside pictures; the first program has a provider that is down."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len([line for line in text.splitlines() if line.strip() and not line.startswith("![")]) <= 80
    first = next(block for block in BLOCKS if block.place.startswith("README.md:"))
    assert '["down/big", "up/big"]' in first.code


@pytest.mark.loopback
@pytest.mark.asyncio
async def test_the_readme_shows_what_its_first_program_prints(tmp_path: Path) -> None:
    """The output below the program is its own, but for the seconds."""
    first = next(block for block in BLOCKS if block.place.startswith("README.md:"))
    code, output = await run(first, tmp_path)
    shown = next(
        found["code"]
        for found in FENCE.finditer((ROOT / "README.md").read_text("utf-8"))
        if found["language"] == "text"
    )
    assert code == 0
    assert _without_figures(shown) in _without_figures(output)


def _without_figures(text: str) -> str:
    return re.sub(r"\d+\.\d+ s", "", text).strip()


@pytest.mark.loopback
@pytest.mark.asyncio
async def test_a_block_that_fails_is_noticed(tmp_path: Path) -> None:
    """The runner writes the titled files, replaces the server's address, and reports a failing block."""
    given = f'```yaml title="a.yaml"\nurl: http://{PLACEHOLDER}/v1\n```\n'
    text = f'{given}```python\nprint(open("a.yaml").read())\n1 / 0\n```\n'
    [block] = blocks_in(text, "a.md")
    code, output = await run(block, tmp_path)
    assert code == 1
    assert block.place == "a.md:4"
    assert "http://127.0.0.1:" in output
    assert PLACEHOLDER not in output
    assert "ZeroDivisionError" in output
