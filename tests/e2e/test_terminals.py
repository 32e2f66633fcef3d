"""`smr` in terminals that are narrow, without colours, without UTF-8 or closed: readable, and no traceback."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping

import pytest

from smart_model_router_providers.fault import Fault, FaultServer
from tests.e2e.command import Smr
from tests.warm import Program, warm

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="terminals of POSIX")

PROMPT = "How do bees find their way home?"
COMMANDS = {
    "doctor": ("doctor",),
    "config check": ("config", "check"),
    "ask": ("ask", "--explain", "--no-stream", PROMPT),
}
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]")
COLOUR = re.compile(r"\x1b\[(?:\d+;)*(?:3[0-7]|4[0-7]|9[0-7]|38|48)[;m]")


def shown(smr: Smr, arguments: tuple[str, ...], columns: int, environ: Mapping[str, str] | None = None) -> str:
    """Return the output of a command on a terminal of so many columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    env = {name: value for name, value in smr.environment.items() if name not in ("COLUMNS", "NO_COLOR", "TERM")}
    env |= {"TERM": "xterm-256color", **(environ or {})}
    argv = [smr.program, *arguments]
    process: Program | subprocess.Popen[bytes]
    if any(name.startswith("PYTHON") for name in environ or ()):
        process = subprocess.Popen(argv, cwd=smr.folder, env=env, stdin=theirs, stdout=theirs, stderr=theirs)
    else:
        process = warm().start(argv, [theirs, theirs, theirs], cwd=smr.folder, env=env)
    os.close(theirs)
    pieces: list[bytes] = []
    try:
        while piece := os.read(ours, 65_536):
            pieces.append(piece)
    except OSError:  # the terminal is closed: the command has ended
        pass
    finally:
        os.close(ours)
    process.wait(60)
    return b"".join(pieces).decode("utf-8", "strict").replace("\r\n", "\n")


@pytest.fixture
def asked(smr: Smr, server: FaultServer) -> Smr:
    """A configuration with findings, whose first answer takes two attempts."""
    smr.configure(server)
    server.set([Fault.status(500, times=1)])
    return smr


@pytest.mark.parametrize("columns", [60, 20])
@pytest.mark.parametrize("arguments", [COMMANDS["doctor"], COMMANDS["config check"]], ids=" ".join)
def test_a_narrow_table_loses_no_letter(asked: Smr, arguments: tuple[str, ...], columns: int) -> None:
    """No line of it is wider than the terminal; what does not fit goes on below, and all of it is there."""
    wide, told = (ESCAPE.sub("", shown(asked, arguments, width)) for width in (300, columns))
    table = told.partition("smart-router.yaml: 0 problems")[0]
    assert max(len(line) for line in table.splitlines()) <= columns
    assert sorted("".join(told.split())) == sorted("".join(wide.split()))
    assert "fail together" in wide


@pytest.mark.parametrize("columns", [60, 20])
def test_an_explanation_is_whole_in_a_narrow_terminal(asked: Smr, columns: int) -> None:
    """Its lines are those of a wide one: the terminal folds them, and copying gives them back."""
    told = ESCAPE.sub("", shown(asked, COMMANDS["ask"], columns))
    assert "a/big: SERVER_ERROR (HTTP 500)" in told
    assert "served by a/" in told


@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS.keys())
def test_no_colour_where_none_is_wanted(asked: Smr, arguments: tuple[str, ...]) -> None:
    """NO_COLOR takes colours away; a dumb terminal gets no escape sequence at all."""
    assert not COLOUR.search(shown(asked, arguments, 80, {"NO_COLOR": "1"}))
    assert "\x1b" not in shown(asked, arguments, 80, {"TERM": "dumb"})


@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS.keys())
def test_a_terminal_without_utf_8_gets_what_it_can_show(
    asked: Smr, server: FaultServer, arguments: tuple[str, ...]
) -> None:
    """Every byte is ASCII, and the answer is there with `?` for what it cannot show."""
    server.set([Fault.reply("Über 🐝 bees")])
    environ = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii", "PYTHONCOERCECLOCALE": "0"}
    told = shown(asked, arguments, 80, environ)
    assert told.isascii()
    assert "Traceback" not in told
    assert arguments[0] != "ask" or "?ber ? bees" in told


@pytest.mark.parametrize(
    ("arguments", "stream"),
    [*((command, 1) for command in COMMANDS.values()), (COMMANDS["ask"], 2)],
    ids=[*(f"{name}, stdout" for name in COMMANDS), "ask, stderr"],
)
def test_a_stream_that_is_closed_is_no_traceback(asked: Smr, arguments: tuple[str, ...], stream: int) -> None:
    """The exit code is that of the command, and the other stream has what belongs there."""
    argv = ["/bin/sh", "-c", f'exec "$0" "$@" {stream}>&-', asked.program, *arguments]
    done = subprocess.run(
        argv, cwd=asked.folder, env=asked.environment, capture_output=True, encoding="utf-8", timeout=60, check=False
    )
    assert done.returncode == 0
    assert "Traceback" not in done.stdout + done.stderr
    assert (done.stderr if stream == 1 else done.stdout) or arguments[0] == "doctor"


def test_a_reader_that_leaves_at_once_is_no_traceback(asked: Smr) -> None:
    """`smr doctor | head -c 0`."""
    argv = ["/bin/sh", "-c", '"$0" doctor | head -c 0; echo ended', asked.program]
    done = subprocess.run(
        argv, cwd=asked.folder, env=asked.environment, capture_output=True, encoding="utf-8", timeout=60, check=False
    )
    assert done.stdout == "ended\n"
    assert "Traceback" not in done.stderr
