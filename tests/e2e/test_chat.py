"""`smr chat`, at a terminal, from a pipe and through a gateway; and `smr ask --url`."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import time
from typing import Any

from smart_model_router_providers.fault import Fault, FaultServer
from tests.e2e.command import SECONDS, Smr
from tests.e2e.gateways import fleet, served

ECHO = "fault-server: echo of the last user message: "
GATEWAY_KEY = "vk-plain-0123456789"


def told(server: FaultServer) -> list[list[str]]:
    """The contents of the messages of each request that arrived."""
    return [[message["content"] for message in request.body["messages"]] for request in server.requests]


def test_a_pipe_asks_line_by_line_and_remembers(smr: Smr, server: FaultServer) -> None:
    """Each line is a question, stdout has the answers alone, and each question goes out with what was said before."""
    smr.configure(server)
    done = smr("chat", "--system", "Be brief.", stdin="one\n\ntwo\n/clear\nthree\n/exit\nnever\n")
    assert (done.returncode, done.stdout) == (0, f"{ECHO}one\n{ECHO}two\n{ECHO}three\n")
    assert told(server) == [
        ["Be brief.", "one"],
        ["Be brief.", "one", f"{ECHO}one", "two"],
        ["Be brief.", "three"],
    ]


def test_a_failure_does_not_end_the_conversation(smr: Smr, server: FaultServer) -> None:
    """The next line is asked as if the failed one had not been; the exit code says that one failed."""
    smr.configure(server)
    server.set([Fault.status(400, times=1)])
    done = smr("chat", "--json", stdin="one\ntwo\n")
    first, second = map(json.loads, done.stdout.splitlines())
    assert done.returncode == 1
    assert (first["error"]["type"], second["text"]) == ("InvalidRequest", f"{ECHO}two")
    assert told(server)[-1] == ["two"]


def test_another_model_may_be_asked(smr: Smr, server: FaultServer) -> None:
    """`/model` names it, `/model NAME` changes it, an unknown one changes nothing."""
    smr.configure(server)
    done = smr("chat", stdin="/model\n/model nope\n/model smart\nhello\n")
    assert done.stdout == f"{ECHO}hello\n"
    assert done.stderr.count("model: smart\n") == 2
    assert "'nope' is unknown" in done.stderr


def read_until(terminal: int, wanted: str) -> str:
    """What the terminal shows, up to `wanted`."""
    shown = ""
    deadline = time.monotonic() + SECONDS
    while wanted not in shown:
        assert select.select([terminal], [], [], deadline - time.monotonic())[0], shown
        shown += os.read(terminal, 4096).decode()
    return shown


def test_ctrl_c_ends_the_answer_and_not_the_conversation(smr: Smr, server: FaultServer) -> None:
    """At a terminal Ctrl-C in a silent stream gives the prompt back; what arrived is remembered; Ctrl-D ends with 0."""
    smr.configure(server)
    server.set([Fault.stall(after=3, times=1)])
    terminal, inner = pty.openpty()
    command, where = [smr.program, "chat"], smr.folder
    with subprocess.Popen(command, cwd=where, env=smr.environment, stdin=inner, stdout=inner, stderr=inner) as process:
        try:
            os.close(inner)
            read_until(terminal, "> ")
            os.write(terminal, b"one\n")
            read_until(terminal, "fault-server")
            process.send_signal(signal.SIGINT)
            read_until(terminal, "> ")
            os.write(terminal, b"two\n")
            read_until(terminal, f"{ECHO}two\r\n> ")
            os.write(terminal, b"\x04")
            assert process.wait(SECONDS) == 0
        finally:
            process.kill()
            os.close(terminal)
    assert told(server)[-1] == ["one", ECHO[:12], "two"]


def test_through_a_gateway(smr: Smr, server: FaultServer) -> None:
    """`--url` asks the gateway with the key of the environment, its first model when none is named, once."""
    sections: dict[str, Any] = {"gateway": {"keys": {"plain": {"key": GATEWAY_KEY}}}, "routing": {"max_wait": "1s"}}
    with served(fleet(server), smr.folder, **sections) as gateway:
        smr.environment["SMART_ROUTER_GATEWAY_KEY"] = GATEWAY_KEY
        assert smr("ask", "--url", gateway.base_url, "hello").stdout == f"{ECHO}hello\n"
        assert smr("chat", "--url", f"{gateway.base_url}/v1", "-m", "smart", stdin="a\n").stdout == f"{ECHO}a\n"
        unknown = smr("ask", "--url", gateway.base_url, "--model", "nobody", "hello")
        assert (unknown.returncode, "is unknown" in unknown.stderr) == (1, True)
        server.set([Fault.status(500)])
        assert smr("ask", "--url", gateway.base_url, "--no-stream", "hello").returncode == 4
        smr.environment["SMART_ROUTER_GATEWAY_KEY"] = "wrong"
        assert smr("ask", "--url", gateway.base_url, "hello").returncode == 3
    assert smr("ask", "--url", gateway.base_url, "hello").returncode == 4
    assert smr("ask", "--url", gateway.base_url, "--fail-on-degraded", "hello").returncode == 2
