"""`smr serve` with several workers behaves as with one, in real processes over real sockets."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest

from smart_model_router_providers.fault import Fault, FaultServer
from tests.e2e.gateways import BRIEF, ECHO, MESSAGES, Served, becomes, fleet, served

Start = Callable[..., Served]
CHAT = {"model": "smart", "messages": MESSAGES}
WORKERS = ("--workers", "2")


@pytest.fixture
def upstream() -> Iterator[FaultServer]:
    """A provider that does what a test says."""
    with FaultServer() as server:
        yield server


@pytest.fixture
def start(upstream: FaultServer, tmp_path: Path) -> Iterator[Start]:
    """Start a gateway before it, with a store."""
    with ExitStack() as stack:

        def start(arguments: tuple[str, ...], **sections: Any) -> Served:
            config = fleet(upstream, store={"path": str(tmp_path / "stats.db")})
            return stack.enter_context(served(config, tmp_path, arguments=arguments, **sections))

        yield start


def posted(path: str, body: dict[str, Any]) -> bytes:
    """A request as bytes."""
    content = json.dumps(body).encode()
    return f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(content)}\r\n\r\n".encode() + content


def test_a_head_is_that_of_a_get_without_its_body(start: Start) -> None:
    """HEAD says how long the body would be, of an error, too, and brings none."""
    running = start(())
    for path in ("/v1/models", "/v1/models/nope", "/health/liveness"):
        whole = httpx2.get(running.base_url + path)
        said = running.send(f"HEAD {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".encode())
        head, _, body = said.decode().lower().partition("\r\n\r\n")
        assert (int(head.split()[1]), body) == (whole.status_code, "")
        assert f"content-length: {len(whole.content)}" in head.split("\r\n")


def test_a_client_that_hangs_up_frees_the_provider_of_any_worker(upstream: FaultServer, start: Start) -> None:
    """A client that leaves, streaming or not, cancels the call upstream."""
    running = start(WORKERS, resilience=BRIEF)
    for stream in (False, True):
        upstream.set([Fault.stall(after=2 if stream else 0)])
        with socket.create_connection(running.address, timeout=30) as wire:
            wire.sendall(posted("/v1/chat/completions", {**CHAT, "stream": stream}))
            assert becomes(lambda: upstream.in_flight == 1)
        assert becomes(lambda: upstream.in_flight == 0)
    assert becomes(lambda: running.in_flight() == 0)


def test_workers_reload_and_drain(upstream: FaultServer, start: Start) -> None:
    """SIGHUP takes a good configuration and refuses a bad one, in every worker; SIGTERM lets a stream end, then 0."""
    upstream.set([Fault.delay(each=0.05)])
    running = start(WORKERS)
    log = running.file.parent / "gateway.log"

    def models() -> set[str]:
        asked = [httpx2.get(running.base_url + "/v1/models").json()["data"] for _ in range(8)]  # whoever answers
        return {" ".join(model["id"] for model in listed) for listed in asked}

    changed = json.loads(running.file.read_text(encoding="utf-8"))
    changed["models"]["new"] = changed["models"]["smart"]
    running.file.write_text(json.dumps(changed), encoding="utf-8")
    running.process.send_signal(signal.SIGHUP)
    assert becomes(lambda: models() == {"smart claude new"})
    running.file.write_text('{"version": 1, "modles": {}}', encoding="utf-8")
    running.process.send_signal(signal.SIGHUP)
    assert becomes(lambda: "the old one stays" in log.read_text(encoding="utf-8"))
    assert models() == {"smart claude new"}
    body = {**CHAT, "model": "new", "stream": True}
    with httpx2.stream("POST", running.base_url + "/v1/chat/completions", json=body, timeout=30) as answer:
        lines = answer.iter_lines()
        first = next(lines)
        running.process.terminate()
        data = [line.removeprefix("data: ") for line in [first, *lines] if line]
    assert data[-1] == "[DONE]"
    assert "".join(json.loads(line)["choices"][0]["delta"].get("content", "") for line in data[:-1]) == ECHO
    assert running.process.wait(30) == 0


def test_the_server_granian_is_refused_politely(start: Start) -> None:
    """`--server granian`, of an earlier release, warns and serves with uvicorn."""
    running = start(("--server", "granian"))
    assert httpx2.get(running.base_url + "/health/liveness").status_code == 200
    log = (running.file.parent / "gateway.log").read_text(encoding="utf-8")
    assert "smr: --server granian is not supported any more: uvicorn serves" in log


def workers_of(pid: int) -> set[int]:
    """The processes that a gateway's first process started to serve."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
            if parent == pid and b"spawn_main" in (folder / "cmdline").read_bytes():
                found.add(int(folder.name))
        except (FileNotFoundError, ProcessLookupError):  # it ended while we looked
            continue
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="the test finds processes in /proc")
def test_a_worker_that_dies_is_replaced_and_none_is_left_alone(upstream: FaultServer, start: Start) -> None:
    """One is killed: another takes its place. The first process is killed: the workers end by themselves."""
    running = start(WORKERS)
    before = workers_of(running.process.pid)
    victim = min(before)
    os.kill(victim, signal.SIGKILL)
    assert becomes(lambda: len(workers_of(running.process.pid) - {victim}) == 2)
    assert httpx2.post(running.base_url + "/v1/chat/completions", json=CHAT, timeout=30).status_code == 200
    left = workers_of(running.process.pid)
    running.process.kill()
    running.process.wait(30)
    assert becomes(lambda: not any(Path(f"/proc/{pid}").exists() for pid in left))


@pytest.mark.skipif(sys.platform != "linux", reason="the test finds processes in /proc")
def test_every_worker_drains_and_so_does_the_one_that_takes_a_place(start: Start) -> None:
    """Whichever worker hears it: none is ready from the answer on, a new one neither, until the operator says so."""
    running = start(WORKERS)

    def readiness() -> set[int]:
        return {httpx2.get(running.base_url + "/health/readiness").status_code for _ in range(20)}  # whoever answers

    assert readiness() == {200}
    assert httpx2.post(running.base_url + "/api/drain", json={"on": True}).json() == {"draining": True}
    assert readiness() == {503}
    before = workers_of(running.process.pid)
    os.kill(min(before), signal.SIGKILL)
    assert becomes(lambda: len(workers_of(running.process.pid) - {min(before)}) == 2)
    assert readiness() == {503}
    assert httpx2.post(running.base_url + "/api/drain", json={"on": False}).json() == {"draining": False}
    assert readiness() == {200}


def test_workers_need_a_store(tmp_path: Path, upstream: FaultServer) -> None:
    """Without one they could not know of each other: exit code 3, and one line that says so."""
    file = tmp_path / "c.yaml"
    file.write_text(json.dumps(fleet(upstream)), encoding="utf-8")
    code = "from smart_model_router.cli import main; main()"
    command = [sys.executable, "-c", code, "serve", "-c", str(file), "--workers", "2"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60, check=False)
    assert (done.returncode, done.stderr.startswith("smr: --workers: 2 - store.path is needed")) == (3, True)
