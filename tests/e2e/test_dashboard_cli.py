"""`smr dashboard` over another process's file."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from smart_model_router import SmartModelRouter
from smart_model_router_providers.fault import Fault, FaultServer
from tests.e2e.command import Smr, program
from tests.e2e.gateways import MESSAGES, fleet


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where routers wrote."""
    return tmp_path / "stats.db"


@pytest.fixture
def shown(file: Path) -> Iterator[str]:
    """The address of a running `smr dashboard`."""
    command = [program(), "dashboard", "--db", str(file), "--port", "0", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8")
    assert process.stdout is not None
    try:
        yield json.loads(process.stdout.readline())["url"]
    finally:
        process.terminate()
        assert process.wait(30) == 0
        process.stdout.close()


@pytest_asyncio.fixture(autouse=True)
async def _written(file: Path) -> None:
    """Two targets, one of them failing, and five requests."""
    with FaultServer([Fault.status(529)]) as a, FaultServer() as b:
        config = {**fleet(a, b), "store": {"path": str(file)}}
        async with SmartModelRouter.from_config(config) as router:
            for _ in range(5):
                await router.chat({"model": "smart", "messages": MESSAGES})


def picture(address: str) -> dict[str, Any]:
    """The first picture."""
    with httpx2.stream("GET", address + "/stream", timeout=30) as reply:
        for line in reply.iter_lines():
            if line.startswith("data: ") and '"targets"' in line:
                told: dict[str, Any] = json.loads(line[6:])
                return told
    raise AssertionError("no picture came")


@pytest.mark.asyncio
async def test_the_file_of_another_process_is_shown(shown: str) -> None:
    """Who served, what failed, what moved, which requests there were; nobody can operate."""
    told = picture(shown)
    assert told["scope"] == "store"
    assert [(model["name"], model["target"]) for model in told["models"]] == [("smart", "bo/big")]
    assert {target["id"] for target in told["targets"]} == {"ao/big", "bo/big"}
    assert [line["class"] for line in told["errors"]] == ["OVERLOADED"]
    assert len(told["requests"]) == 5
    assert any(move["subject"] == "ao/big" for move in told["transitions"])
    way = httpx2.get(f"{shown}/requests/{told['requests'][0]['request_id']}").json()
    assert "counts alone" in way["note"]
    assert httpx2.get(shown).text.startswith("<!doctype html>")
    assert httpx2.get(shown + "/stream", headers={"host": "evil.example"}).status_code == 403


def test_a_file_that_goes_away_is_said_and_not_a_crash(shown: str, file: Path) -> None:
    """While it is shown: the way of a request is a 503 that says why, and the page stays."""
    request_id = picture(shown)["requests"][0]["request_id"]
    file.unlink()
    reply = httpx2.get(f"{shown}/requests/{request_id}")
    assert (reply.status_code, reply.json()["error"]["code"]) == (503, "store_unavailable")
    assert httpx2.get(shown).status_code == 200


def test_a_file_that_is_not_there_is_a_line_and_3(smr: Smr) -> None:
    """No traceback."""
    done = smr("dashboard", "--db", "no.db")
    assert done.returncode == 3
    assert "there is no such file" in done.stderr
    assert len(done.stderr.splitlines()) == 1
