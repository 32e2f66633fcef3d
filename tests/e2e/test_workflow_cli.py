"""`smr workflow` as people use it: the commands of its document, faults, an interrupted run, two processes."""

from __future__ import annotations

import json
import re
import shlex
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from smart_model_router_providers.fault import FaultServer
from tests.e2e.command import SECONDS, Smr, one_line

DOCUMENT = (Path(__file__).parents[2] / "docs" / "how-to" / "workflows.md").read_text("utf-8")
CODES = {"resume letter-2": 1, "run compare": 7, "fork letter-1@1": 7}
"""The exit codes of its commands that are not 0, by their beginnings."""
FUNCTIONS = """\
async def slow(step):
    import asyncio
    print("slow began", flush=True)
    await asyncio.sleep(60)
    return {}

async def quick(step):
    return {"given": step.inputs.get("x")}

def not_async(step): return {}
"""
INTERRUPTED = """\
name: interrupted
inputs: {x: {type: string}, n: {type: integer, default: 1}}
steps:
  - {name: before, function: quick, inputs: {x: "${inputs.x}"}}
  - {name: under_way, function: slow, needs: [before]}
outputs: {given: "${steps.before.outputs.given}"}
"""


def commands() -> Iterator[list[str]]:
    """The lines `$ smr ...` of the document, as words."""
    for block in re.findall(r"^```console\n(.*?)^```", DOCUMENT, re.MULTILINE | re.DOTALL):
        yield from (shlex.split(line)[2:] for line in block.splitlines() if line.startswith("$ smr "))


@pytest.fixture
def written(smr: Smr, server: FaultServer) -> Smr:
    """The files of the document, with the address of a real server."""
    for name, text in re.findall(r'^```\w+ title="([^"]+)"\n(.*?)^```', DOCUMENT, re.MULTILINE | re.DOTALL):
        (smr.folder / name).write_text(text.replace("http://127.0.0.1:9001/v1", server.base_url), "utf-8")
    return smr


def test_the_commands_of_the_document_do_what_it_says(written: Smr) -> None:
    """Each as it stands there, in its order; what they print is what it promises."""
    printed = {}
    for words in commands():
        done = written(*words)
        line = " ".join(words)
        expected = next((code for start, code in CODES.items() if line.startswith(f"workflow {start}")), 0)
        assert done.returncode == expected, (line, done.stdout, done.stderr)
        printed[line.removeprefix("workflow ")] = done
    asked = next(done for line, done in printed.items() if line.startswith("run compare"))
    assert asked.stderr.startswith("run letter-1\n")
    assert "to decide: smr workflow resume letter-1 --approve, or --reject" in asked.stderr
    assert json.loads(printed["resume letter-1 --approve"].stdout)["letter"].startswith("fault-server: echo")
    assert "letter-1@4" in printed["history letter-1"].stdout
    assert "letter (skipped" not in printed["resume letter-1 --approve"].stderr
    assert "release: failed (rejected)" in printed["resume letter-2 --reject"].stderr
    assert "${steps.draft_r1.outputs.text}" in printed["expand rounds.yaml"].stdout


def test_every_fault_of_a_file_is_told_with_line_and_column(smr: Smr) -> None:
    """By `check` and by whatever would use it, in the same words."""
    text = INTERRUPTED.replace("quick", "quik").replace("inputs.x", "inputs.y")
    (smr.folder / "w.yaml").write_text(text, "utf-8")
    (smr.folder / "f.py").write_text(FUNCTIONS, "utf-8")
    told = json.loads(smr("workflow", "check", "w.yaml", "--functions", "f.py", "--json").stdout)
    assert [(fault["place"], fault["key"]) for fault in told["faults"]] == [
        ("w.yaml:4:20", "steps[0].function"),
        ("w.yaml:4:45", "steps[0].inputs.x"),
    ]
    assert "did you mean 'quick'?" in told["faults"][0]["expected"]
    for words in (("check",), ("graph",), ("expand",), ("run",)):
        done = smr("workflow", *words, "w.yaml", "--functions", "f.py")
        assert (done.returncode, done.stdout.count("w.yaml:4:")) == (3, 2)


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("run", "w.yaml", "--functions", "f.py", "--input", "x"), 3, "--input: 'x' - NAME=VALUE is needed"),
        (
            ("run", "w.yaml", "--functions", "f.py", "--input", "n=many"),
            3,
            "inputs.n: 'many' - a value of type integer is needed",
        ),
        (
            ("run", "w.yaml", "--functions", "f.py", "--budget", "usd=much"),
            3,
            "--budget usd: 'much' - a number is needed",
        ),
        (
            ("run", "w.yaml", "--functions", "f.py", "--budget", "eur=1"),
            3,
            "one of tokens, usd, seconds, calls is needed",
        ),
        (
            ("run", "w.yaml", "--functions", "f.py", "--input", "n=" + "[" * 50_000),
            3,
            "a value of type integer is needed",
        ),
        (
            ("run", "w.yaml", "--functions", "exits.py"),
            3,
            "a Python file with async functions is needed: SystemExit: 0",
        ),
        (("run", "w.yaml", "--functions", "none.py"), 3, "a Python file with async functions is needed"),
        (("run", "w.yaml", "--functions", "plain.py"), 3, "is needed: it has no public `async def`"),
        (("run", "w.yaml", "--functions", "f.py", "--id", "a b"), 3, "letters, digits"),
        (("resume", "nobody"), 1, "nobody"),
        (("fork", "nobody"), 3, "RUN@NUMBER is needed"),
        (("resume", "nobody", "--approve", "--reject"), 2, "--reject goes with neither"),
        (("resume", "nobody", "--payload", "{"), 1, "nobody"),
    ],
)
def test_wrong_words_are_told_in_a_line(smr: Smr, words: tuple[str, ...], code: int, told: str) -> None:
    """With what would be right."""
    (smr.folder / "w.yaml").write_text(INTERRUPTED, "utf-8")
    (smr.folder / "f.py").write_text(FUNCTIONS, "utf-8")
    (smr.folder / "plain.py").write_text("def quick(step): return {}\nasync def _hidden(step): return {}\n", "utf-8")
    (smr.folder / "exits.py").write_text("raise SystemExit(0)\n", "utf-8")
    done = smr("workflow", *words)
    assert done.returncode == code, done.stderr
    assert told in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("engine", ["kahn", "langgraph"])
def test_ctrl_c_stops_a_run_so_that_it_can_go_on(smr: Smr, engine: str) -> None:
    """On each engine. It prints the command that does; another process is told who has the run, and cannot take it."""
    (smr.folder / "w.yaml").write_text(INTERRUPTED, "utf-8")
    (smr.folder / "f.py").write_text(FUNCTIONS, "utf-8")
    words = ("--functions", "f.py", "--id", "one", "-i", "x=1", "--engine", engine)
    running = smr.start("workflow", "run", "w.yaml", *words)
    assert running.stdout is not None
    assert running.stdout.readline() == b"slow began\n"
    busy = smr("workflow", "resume", "one")
    assert (busy.returncode, one_line(busy.stderr.removeprefix("run one\n"))) == (8, True)
    assert re.search(r"for \d+(\.\d+)? s", busy.stderr), busy.stderr
    running.send_signal(signal.SIGINT)
    _, told = running.communicate(timeout=SECONDS)
    assert running.returncode == 130
    assert b"interrupted; to go on: smr workflow resume one" in told
    assert "interrupted; to go on: smr workflow resume one" in smr("workflow", "runs").stdout
    (smr.folder / "f.py").write_text(FUNCTIONS.replace("asyncio.sleep(60)", "asyncio.sleep(0)"), "utf-8")
    done = smr("workflow", "resume", "one", "--out", "out.json", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert (found["state"], found["steps"]["before"]["attempts"]) == ("completed", 1)
    assert json.loads((smr.folder / "out.json").read_text("utf-8")) == {"given": "1"} == found["outputs"]
    listed = json.loads(smr("workflow", "history", "one", "--json").stdout)["checkpoints"]
    assert [(each["step"], each["state"]) for each in listed] == [("before", "succeeded"), ("under_way", "succeeded")]


CONFIGURATION = """\
version: 1
providers: {s: {kind: scripted}}
models: {smart: {tiers: [{targets: [s/any]}]}}
workflows: {heartbeat: 2s}
"""
ASKING = """\
name: asking
inputs: {x: {type: string, required: true}, n: {type: integer}}
steps:
  - {name: before, function: quick, inputs: {x: "${inputs.x}"}, estimate: {calls: 2}}
  - {name: go, kind: approval, needs: [before], message: "Send ${inputs.x}?"}
  - {name: stay, kind: approval, needs: [before], message: "Keep it?"}
  - {name: after, function: quick, needs: [go], inputs: {x: "${inputs.n}"}}
outputs: {given: "${steps.after.outputs.given}"}
"""


@pytest.fixture
def asking(smr: Smr) -> Smr:
    """A run `one` that waits for two decisions."""
    (smr.folder / "w.yaml").write_text(ASKING, "utf-8")
    (smr.folder / "f.py").write_text(FUNCTIONS, "utf-8")
    begun = smr("workflow", "run", "w.yaml", "--functions", "f.py", "--id", "one", "-i", "x=tea", "-i", "n=1")
    assert begun.returncode == 7, begun.stderr
    return smr


def test_an_id_that_is_taken_is_not_another_run(asking: Smr) -> None:
    """With the inputs that it began with the run goes on; with others its outputs would pass for those of these."""
    words = ("workflow", "run", "w.yaml", "--functions", "f.py", "--id", "one", "-i", "n=1", "-i")
    assert asking(*words, "x=tea").returncode == 7
    done = asking(*words, "x=milk")
    assert (done.returncode, one_line(done.stderr)) == (3, True)
    assert "that run began with another x; `resume` goes on with it" in done.stderr


def test_a_run_that_waits_says_for_what_each_time(asking: Smr) -> None:
    """Also to a process that comes later: each question, and the command that decides it, with the configuration."""
    (asking.folder / "c.yaml").write_text(CONFIGURATION, "utf-8")
    for words in (("resume", "one"), ("resume", "one", "--config", "c.yaml")):
        told = asking("workflow", *words).stderr
        given = " --config c.yaml" if len(words) > 2 else ""
        assert "  go: waits for a decision: Send tea?\n  stay: waits for a decision: Keep it?\n" in told
        for step in ("go", "stay"):
            assert f"to decide: smr workflow resume one{given} --step {step} --approve, or --reject\n" in told


def test_a_run_goes_on_with_functions_that_were_moved_and_another_budget(asking: Smr) -> None:
    """`resume` and `fork` take both anew: without, the run asks for the file that it began with."""
    (asking.folder / "f.py").rename(asking.folder / "moved.py")
    lost = asking("workflow", "resume", "one", "--step", "go", "--approve")
    assert (lost.returncode, "f.py' - a Python file with async functions is needed" in lost.stderr) == (3, True)
    done = asking("workflow", "resume", "one", "--step", "go", "--approve", "--functions", "moved.py")
    assert "  after: succeeded\n" in done.stderr
    words = ("fork", "one@0", "--functions", "moved.py", "--budget", "calls=1", "--id", "two")
    assert "  before: skipped (budget)\n" in asking("workflow", *words).stderr
    assert "skipped (budget)" in asking("workflow", "history", "two").stdout


def test_a_run_that_never_began_has_no_id(asking: Smr) -> None:
    """Inputs that are wrong are told a line each, and nothing else is: there is nothing to resume."""
    done = asking("workflow", "run", "w.yaml", "--functions", "f.py", "-i", "n=many", "-i", "z=1")
    assert (done.returncode, done.stderr.splitlines()) == (
        3,
        [
            "smr: inputs.z: 1 - the workflow has no such input; known: n, x",
            "smr: inputs.x: missing - the input is required: a value of type string",
            "smr: inputs.n: 'many' - a value of type integer is needed",
        ],
    )


def test_a_run_that_is_not_known_is_told_with_the_file(asking: Smr) -> None:
    """As another folder may have another configuration."""
    for words in (("resume", "three"), ("history", "three"), ("cancel", "three"), ("fork", "three@1")):
        done = asking("workflow", *words)
        assert (done.returncode, one_line(done.stderr)) == (1, True)
        assert re.search(r"run 'three' is not known in /\S+runs\.db; `smr workflow runs`", done.stderr), done


ONE_STEP = """\
name: _one
steps: [{{name: only, function: {function}}}]
outputs: {{y: "${{steps.only.outputs.y}}"}}
"""
HARD = r"""
import sys
async def half(step): return {"y": "\ud83d"}
async def leaves(step): sys.exit(0)
async def odd_file(step): raise OSError("caf\udce9")
"""


@pytest.mark.parametrize(
    ("function", "code", "told"),
    [
        ("half", 0, "completed"),
        ("leaves", 1, "failed: step only failed: RuntimeError: SystemExit: 0"),
        ("odd_file", 1, r"failed: step only failed: OSError: caf"),
    ],
)
def test_a_run_ends_whatever_its_functions_do(smr: Smr, function: str, code: int, told: str) -> None:
    """sys.exit(0) in one is no success, and half a character comes out as JSON has it."""
    (smr.folder / "w.yaml").write_text(ONE_STEP.format(function=function), "utf-8")
    (smr.folder / "f.py").write_text(HARD, "utf-8")
    done = smr("workflow", "run", "w.yaml", "--functions", "f.py", "--out", "out.json")
    assert (done.returncode, told in done.stderr) == (code, True), done.stderr
    expected = {"y": "\ud83d" if code == 0 else None}
    assert json.loads(done.stdout) == json.loads((smr.folder / "out.json").read_text("utf-8")) == expected


def test_outputs_that_cannot_be_written_are_not_lost(smr: Smr) -> None:
    """A folder that is not there is refused before anything is paid for; a full disk, with the command that helps."""
    (smr.folder / "w.yaml").write_text(INTERRUPTED, "utf-8")
    (smr.folder / "f.py").write_text(FUNCTIONS.replace("asyncio.sleep(60)", "asyncio.sleep(0)"), "utf-8")
    words = ("workflow", "run", "w.yaml", "--functions", "f.py", "--id", "one", "-i", "x=1")
    for wrong in ("none/out.json", "."):
        refused = smr(*words, "--out", wrong)
        assert (refused.returncode, "a file in a folder that exists is needed" in refused.stderr) == (3, True)
    full = smr(*words, "--out", "/dev/full")
    assert full.returncode == 1
    assert "the outputs are kept with the run: smr workflow resume one --out FILE" in full.stderr
    assert '"given": "1"' in full.stdout
    done = smr("workflow", "resume", "one", "--out", "out.json")
    assert (done.returncode, json.loads((smr.folder / "out.json").read_text("utf-8"))) == (0, {"given": "1"})


LOOP = """\
name: loop
steps:
  - {name: draft, function: draft, inputs: {n: "${prev.draft.n}"}}
  - {name: check, function: check, needs: [draft], loop: {to: draft, while: "${steps.draft.outputs.n < 3}", max: 5}}
outputs: {n: "${steps.draft.outputs.n}"}
"""
LOOPED = """\
import os, pathlib, signal

async def draft(step):
    with open("drafts", "a") as file:
        print(step.step, file=file)
    return {"n": (step.inputs["n"] or 0) + 1}

async def check(step):
    if step.step == "check#2" and not pathlib.Path("killed").exists():
        pathlib.Path("killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return {}
"""


def test_a_loop_that_was_killed_in_its_second_pass_goes_on_there(smr: Smr) -> None:
    """On the engine that has loops, which `check` names; on the other one it is refused, with what is missing."""
    (smr.folder / "w.yaml").write_text(LOOP, "utf-8")
    (smr.folder / "f.py").write_text(LOOPED, "utf-8")
    checked = smr("workflow", "check", "w.yaml", "--functions", "f.py")
    assert "the workflow has a loop, and langgraph comes first of the engines that can run it" in checked.stderr
    killed = smr("workflow", "run", "w.yaml", "--functions", "f.py", "--id", "one")
    assert killed.returncode == -signal.SIGKILL
    refused = smr("workflow", "resume", "one", "--engine", "kahn")
    assert (refused.returncode, one_line(refused.stderr)) == (3, True)
    assert "'kahn' - one with cycles is needed; langgraph has them" in refused.stderr
    done = smr("workflow", "resume", "one", "--engine", "langgraph")
    assert (done.returncode, json.loads(done.stdout)) == (0, {"n": 3})
    assert (smr.folder / "drafts").read_text("utf-8").split() == ["draft", "draft#2", "draft#3"]
    told = smr("workflow", "history", "one").stdout
    assert "check#3" in told


def test_a_shadow_tells_nothing_where_nothing_differs(smr: Smr) -> None:
    """The result is that of the engine that ran it; the configuration asks for a shadow as the option does."""
    (smr.folder / "w.yaml").write_text(INTERRUPTED.replace("function: slow", "function: quick"), "utf-8")
    (smr.folder / "f.py").write_text(FUNCTIONS, "utf-8")
    (smr.folder / "c.yaml").write_text(CONFIGURATION.replace("heartbeat: 2s", "engine: shadow"), "utf-8")
    words = ("workflow", "run", "w.yaml", "--functions", "f.py", "-i", "x=1", "--json")
    for more in (("--engine", "shadow"), ("--config", "c.yaml")):
        done = smr(*words, *more)
        found = json.loads(done.stdout)
        assert (done.returncode, found["engine"], found["outputs"]) == (0, "kahn", {"given": "1"})
        assert found["engine_reason"].endswith("kahn runs it, and langgraph repeats it")
        assert "shadow:" not in done.stderr
    wrong = smr("workflow", "run", "w.yaml", "--functions", "f.py", "-i", "x=1", "--engine", "langgrph")
    assert (wrong.returncode, one_line(wrong.stderr)) == (3, True)
    assert "did you mean 'langgraph'?" in wrong.stderr
