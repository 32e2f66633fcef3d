"""`smr stats` and `smr top` over a file that routers write, and what they say of one that nobody can."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from smart_model_router.domain.outcome import FailureClass, Usage
from smart_model_router_stats.sqlite import SqliteStore
from tests.e2e.command import SECONDS, Smr
from tests.store_files import attempt


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with ten calls at one target and three failures at another."""
    path = tmp_path / "stats.db"

    async def fill() -> None:
        store = SqliteStore(path)
        for number in range(10):
            store.observe(attempt("a/big", seconds=1.0 + number, usage=Usage(10, 20, 4)))
        for _ in range(3):
            store.observe(attempt("b/small", FailureClass.TIMEOUT))
        await store.aclose()

    asyncio.run(fill())
    return path


def test_stats_as_a_table(smr: Smr, path: Path) -> None:
    """A line for each target on stdout, the sum of all on stderr."""
    done = smr("stats", "--db", path)
    assert done.returncode == 0
    assert [line.split()[:4] for line in done.stdout.splitlines() if "/" in line] == [
        ["a/big", "10", "100.0%", "100.0%"],
        ["b/small", "3", "0.0%", "0.0%"],
    ]
    assert "40.0%" in next(line for line in done.stdout.splitlines() if "a/big" in line)
    assert "13 calls at 2 targets" in done.stderr


def test_stats_as_json(smr: Smr, path: Path) -> None:
    """One object in the schema of `router.stats()`, of scope `store`, with what was dropped."""
    done = smr("stats", "--db", path, "--json")
    told = json.loads(done.stdout)
    assert (told["scope"], told["observed"], told["stats_dropped"], told["problem"]) == ("store", 13, 0, None)
    assert told["targets"]["b/small"]["failures"] == {"TIMEOUT": 3}
    assert told["targets"]["a/big"]["latency_15_min"]["p50"] == pytest.approx(5.0, rel=0.01)
    assert told["models"]["big"]["completion_tokens"] == told["providers"]["a"]["completion_tokens"] == 200
    assert told["models"]["big"]["cached_prompt_tokens"] == told["providers"]["a"]["cached_prompt_tokens"] == 40


def test_the_file_of_the_configuration_is_the_default(smr: Smr, path: Path, tmp_path: Path) -> None:
    """Without --db the store of the configuration is read."""
    config = {
        "version": 1,
        "providers": {"a": {"kind": "openai_compatible", "base_url": "http://127.0.0.1:9/v1"}},
        "models": {"smart": {"tiers": [{"targets": ["a/big"]}], "last_resort": []}},
    }
    (tmp_path / "with.yaml").write_text(json.dumps({**config, "store": {"path": str(path)}}))
    (tmp_path / "without.yaml").write_text(json.dumps(config))
    assert smr("stats", "-c", "with.yaml").returncode == 0
    refused = smr("stats", "-c", "without.yaml")
    assert (refused.returncode, refused.stdout) == (3, "")
    assert "store.path" in refused.stderr


def test_watch_shows_what_another_process_writes(smr: Smr, path: Path) -> None:
    """With --watch and --json there is a line a second, with what was written meanwhile, until Ctrl-C."""
    with smr.start("stats", "--db", path, "--json", "--watch") as watching:
        assert watching.stdout is not None
        first = json.loads(watching.stdout.readline())

        async def write_more() -> None:
            store = SqliteStore(path)
            store.observe(attempt("a/big"))
            await store.aclose()

        asyncio.run(write_more())
        watching.stdout.readline()  # may have been read before
        later = json.loads(watching.stdout.readline())
        watching.send_signal(signal.SIGINT)
        assert watching.wait(SECONDS) == 130
    assert (first["targets"]["a/big"]["calls"], later["targets"]["a/big"]["calls"]) == (10, 11)


def test_top_shows_every_target(smr: Smr, path: Path) -> None:
    """`smr top` draws the table, and the rate from the second look on."""
    done = smr("top", "--db", path, "--times", "2", "--seconds", "0.1")
    assert done.returncode == 0
    assert "a/big" in done.stdout
    assert "calls/s" in done.stdout
    assert "13 calls at 2 targets" in done.stdout


def test_top_as_json_is_a_line_for_each_look(smr: Smr, path: Path) -> None:
    """`smr top --json` prints what `smr stats --json` prints, once a look."""
    done = smr("top", "--db", path, "--times", "2", "--seconds", "0.1", "--json")
    assert done.returncode == 0
    assert [json.loads(line)["targets"]["a/big"]["calls"] for line in done.stdout.splitlines()] == [10, 10]


@pytest.mark.parametrize("command", ["stats", "top"])
def test_a_missing_file_exits_with_3(smr: Smr, command: str) -> None:
    """One line that says what is missing, and no traceback."""
    done = smr(command, "--db", "nowhere.db")
    assert (done.returncode, done.stdout) == (3, "")
    assert "no such file" in done.stderr


def test_a_newer_file_exits_with_3(smr: Smr, path: Path) -> None:
    """The line names the release to install."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("INSERT INTO migration VALUES (99, 'tomorrow', 0, '9.8.7')")
        connection.commit()
        connection.execute("PRAGMA user_version = 99")
    done = smr("stats", "--db", path, "--json")
    assert done.returncode == 3
    assert "install smart-model-router 9.8.7 or newer" in json.loads(done.stdout)["error"]["message"]


def test_a_damaged_file_exits_with_3(smr: Smr, tmp_path: Path) -> None:
    """Reading renames nothing and makes nothing: it says what it found."""
    path = tmp_path / "stats.db"
    path.write_bytes(b"no database" * 1_000)
    done = smr("stats", "--db", path)
    assert done.returncode == 3
    assert [file.name for file in tmp_path.iterdir()] == ["stats.db"]


def test_doctor_says_which_sqlite_it_is_and_what_ails_the_store(smr: Smr, path: Path, tmp_path: Path) -> None:
    """The version is on a line of its own; a store that cannot be used is a problem, and the exit code is 3."""
    provider = {"kind": "openai_compatible", "base_url": "http://127.0.0.1:9/v1"}
    model = {"tiers": [{"targets": ["a/big"]}], "last_resort": []}
    config = {"version": 1, "providers": {"a": provider}, "models": {"smart": model}, "store": {"path": str(path)}}
    (tmp_path / "router.yaml").write_text(json.dumps(config))
    well = smr("doctor", "-c", "router.yaml", "--json")
    path.chmod(0o666)
    ill = smr("doctor", "-c", "router.yaml", "--json")
    texts = {finding["topic"]: finding["text"] for finding in json.loads(well.stdout)["findings"]}
    assert (well.returncode, ill.returncode) == (0, 3)
    assert sqlite3.sqlite_version in texts["SQLite"]
    assert str(path) in texts["store"]
    assert "every user may write to it" in ill.stdout
