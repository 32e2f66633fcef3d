"""Rows of the table of mistakes: the configuration, the command line, files and the machine."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import sys
from collections.abc import Callable
from typing import Any
from unittest import mock

from tests.closed_folders import closed_folder
from tests.e2e.mistakes import FILE, PROMPT, UNSET, Bench, Mistake
from tools import setup

RIGHT = """\
version: 1
providers:
  openai: {kind: openai, api_key: "${OPENAI_API_KEY}"}
models:
  smart: {targets: [openai/gpt-5]}
"""


def file_with(text: str | bytes) -> Callable[[Bench], str]:
    """Ask with this file."""

    def act(bench: Bench) -> str:
        bench.write(text)
        return bench.ask()

    return act


def changed(old: str, new: str) -> Callable[[Bench], str]:
    """Ask with the right file, of which one place is changed."""
    assert old in RIGHT
    return file_with(RIGHT.replace(old, new))


def more(line: str) -> Callable[[Bench], str]:
    """Ask with the right file and one more line."""
    return file_with(f"{RIGHT}{line}\n")


def typed(*arguments: str, stdin: str = "") -> Callable[[Bench], str]:
    """Run a command with a configuration that is right."""

    def act(bench: Bench) -> str:
        bench.write(bench.tree())
        return bench.smr(*arguments, stdin=stdin)

    return act


def variable(value: str, provider: str = "") -> Callable[[Bench], str]:
    """Ask with this value in the variable of the key."""

    def act(bench: Bench) -> str:
        bench.environ["OPENAI_API_KEY"] = value
        return bench.asked({"api_key": provider} if provider else {})

    return act


def nothing_at_all(bench: Bench) -> str:
    """No file, no key, no embedded model."""
    bench.environ["OPENAI_API_KEY"] = UNSET
    return bench.ask()


def named_file_is_gone(bench: Bench) -> str:
    """The variable names a file that is not there."""
    bench.environ["SMART_ROUTER_CONFIG"] = "gone.yaml"
    return bench.ask()


def stored(path: str) -> Callable[[Bench], str]:
    """Look at a configuration with this store."""

    def act(bench: Bench) -> str:
        (bench.folder / "folder.db").mkdir()
        (bench.folder / "plain.db").write_text("no database" * 100, "utf-8")
        bench.write(bench.tree(store={"path": path}))
        return bench.smr("doctor")

    return act


def store_without_permission(bench: Bench) -> str:
    """The folder of the database takes no file of this user."""
    bench.write(bench.tree())
    bench.smr("doctor")  # as another user Python may not read its modules any more
    tree = json.dumps(bench.tree(store={"path": "stats.db"}))
    with contextlib.chdir("/"), closed_folder({FILE: tree}) as bench.folder:
        return bench.smr("doctor")


def port_in_use(bench: Bench) -> str:
    """Another program listens there."""
    bench.write(bench.tree())
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return bench.smr("serve", "--port", str(taken.getsockname()[1]))


def port_not_permitted(bench: Bench) -> str:
    """The system refuses a low port: many machines permit all of them, so its word is played."""
    bench.write(bench.tree())
    refused = PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    with mock.patch.object(socket, "create_server", side_effect=refused):
        return bench.smr("serve", "--port", "80")


def old_python(_: Bench) -> str:
    """Set the repository up on a Python that is too old."""
    with mock.patch.object(sys, "version_info", (3, 10, 9)), mock.patch.object(sys, "version", "3.10.9"):
        try:
            setup.main()
        except SystemExit as ended:
            return str(ended.code)
    return ""


def checked(**changes: Any) -> Callable[[Bench], str]:
    """Check a configuration with these changes."""

    def act(bench: Bench) -> str:
        bench.write(bench.tree(**changes))
        return bench.smr("config", "check")

    return act


TELEMETRY: dict[str, dict[str, Any]] = {
    "structlog": {"log": {"to": "stderr"}},
    "opentelemetry": {"traces": {"enabled": True}},
}
"""The section that needs a module."""


def lacking(module: str, *arguments: str) -> Callable[[Bench], str]:
    """Run a command on a Python without a module that an extra brings."""

    def act(bench: Bench) -> str:
        bench.write(bench.tree(telemetry=TELEMETRY.get(module, {})))
        (bench.folder / "docs").mkdir()
        (bench.folder / "docs" / "bees.md").write_text("# Bees\n\nBees fly.\n", "utf-8")
        return bench.without(module, *arguments)

    return act


KEYS = {"team": {"key": "k" * 20, "usd_per_day": 5}}
UNPRICED = {"smart": {"targets": ["openai/our-own"], "last_resort": []}}
TWICE = "{tiers: [{targets: [openai/gpt-5]}, {targets: [openai/gpt-5]}]}"
SMART = "{targets: [openai/gpt-5]}"

CONFIGURATION = (
    Mistake(
        "indents with tabs", changed("  openai: {", "\topenai: {"), "yaml:3:1: .*cannot start", "indent with spaces"
    ),
    Mistake(
        "writes a key twice", more("providers: {}"), "yaml:6: 'providers' - the key stands here twice", "each key once"
    ),
    Mistake("keeps the file of LiteLLM", file_with("model_list:\n  - {}\n"), "model_list", "smr import litellm FILE"),
    Mistake("keeps a section of LiteLLM", more("litellm_settings: {}"), "litellm_settings", "smr import litellm FILE"),
    Mistake("misspells a section", more("routng: {}"), "routng.*no such key", "did you mean 'routing'"),
    Mistake("misspells a key", changed("api_key", "apikey"), r"providers\.openai\.apikey", "did you mean 'api_key'"),
    Mistake("takes a wrong unit", more("resilience: {timeouts: {attempt: 30sec}}"), "'30sec'", "such as 250ms, 15s"),
    Mistake(
        "takes a negative time", more("resilience: {timeouts: {attempt: -5}}"), "-5", "duration in seconds above 0"
    ),
    Mistake("forgets the version", changed("version: 1\n", ""), "version: missing", "1 is needed"),
    Mistake("takes another version", changed("version: 1", "version: 2"), "version: 2", "1 is needed"),
    Mistake("leaves the file empty", file_with(""), "version: missing", "1 is needed.*smr config check"),
    Mistake(
        "writes text that is no mapping",
        file_with("hello"),
        "configuration: 'text'",
        "such as version, providers, models is",
    ),
    Mistake("leaves a brace open", more("aliases: {a: b"), "yaml:7", "YAML is needed"),
    Mistake(
        "forgets quotes", changed('"${OPENAI_API_KEY}"', "${OPENAI_API_KEY}"), "yaml:3", r'"\$\{\.\.\.\}" in quotes'
    ),
    Mistake("saves as Latin-1", file_with(RIGHT.encode() + b"# caf\xe9\n"), "byte 125", "text in UTF-8 is needed"),
    Mistake("saves as UTF-16", file_with(RIGHT.encode("utf-16")), "byte 0", "text in UTF-8 is needed"),
    Mistake("aliases nothing", more("aliases: {fast: smrt}"), r"aliases\.fast: 'smrt'", "did you mean 'smart'"),
    Mistake("aliases in a circle", more("aliases: {a: b, b: a}"), "a -> b -> a", "an alias that leads to a model"),
    Mistake("leaves a tier empty", changed(SMART, "{tiers: [{targets: []}]}"), r"targets: \[\]", "at least one target"),
    Mistake("names no model", changed(f"\n  smart: {SMART}", " {}"), "models: {}", "at least one model is needed"),
    Mistake("names a model alone", changed("[openai/gpt-5]", "[gpt-5]"), "'gpt-5'", "provider/model is needed"),
    Mistake("misspells a provider", changed("[openai/", "[opnai/"), "'opnai/gpt-5'", "did you mean 'openai'"),
    Mistake("comes back to a target in a lower tier", changed(SMART, TWICE), r"tiers\[1\]", "a target not yet in this"),
    Mistake("misspells a kind", changed("kind: openai", "kind: opanai"), "kind: 'opanai'", "did you mean 'openai'"),
    Mistake("gives Azure no address", changed("kind: openai", "kind: azure"), "base_url: missing", "URL with a host"),
    Mistake(
        "forgets the scheme",
        changed("openai,", "openai, base_url: a.example/v1,"),
        "base_url",
        "https:// URL is needed",
    ),
    Mistake("names a file that is not there", typed("ask", "-c", "gone.yaml", PROMPT), "gone.yaml", "smr init writes"),
    Mistake(
        "names a folder", typed("ask", "-c", ".", PROMPT), "configuration: '.'", "a file, not a directory, is needed"
    ),
    Mistake("names a lost file by the variable", named_file_is_gone, "gone.yaml", "an existing file is needed"),
    Mistake(
        "has nothing at all", nothing_at_all, "configuration: missing", "smr init.*OPENAI_API_KEY.*smr local install"
    ),
    Mistake(
        "limits the spending on an unknown price",
        checked(gateway={"keys": KEYS}, models=UNPRICED),
        "usd_per_day.*openai/our-own: the price is unknown",
        "its `price` or set `routing.unpriced: allow`",
    ),
    Mistake(
        "keeps spans without a collector",
        checked(telemetry={"traces": {"enabled": True}}),
        "telemetry.traces.*spans go nowhere",
        "OTEL_EXPORTER_OTLP_ENDPOINT",
    ),
)

KEY = (
    Mistake(
        "does not export the variable", variable(UNSET), "OPENAI_API_KEY must be set", r"a default given: \$\{OPEN"
    ),
    Mistake("leaves the variable empty", variable(""), "OPENAI_API_KEY is empty", "it must be set"),
    Mistake(
        "names another variable", variable("sk-1", "${OPENAI_APIKEY}"), "OPENAI_APIKEY", "did you mean OPENAI_API_KEY"
    ),
    Mistake(
        "keeps a line break", variable("sk-1\n"), "has a line break at its", r"without spaces.*\(\$OPENAI_API_KEY\)"
    ),
    Mistake(
        "keeps a line break inside", variable("sk\n1"), "another sign in it", r"without spaces.*\(\$OPENAI_API_KEY\)"
    ),
    Mistake("gives a blank key", variable("  "), "this one is blank", "a key of ASCII letters"),
)

COMMANDS = (
    Mistake("misspells a command", typed("sevre"), "No such command 'sevre'", "Did you mean 'serve'"),
    Mistake(
        "misspells a command of a command", typed("config", "chek"), "No such command 'chek'", "Did you mean 'check'"
    ),
    Mistake("misspells an option", typed("ask", "--modle", "x", PROMPT), "No such option: --modle", "--model"),
    Mistake("forgets the prompt", typed("ask"), "Missing argument 'prompt'", "smr ask -h explains"),
    Mistake("forgets quotes around it", typed("ask", "how", "are", "you"), "extra argument", "is put in quotes"),
    Mistake("pipes nothing in", typed("ask", "-"), "it is empty", "'prompt'"),
    Mistake("gives no time", typed("ask", "--timeout", "0", PROMPT), "'--timeout'", "greater than or equal to 0.001"),
    Mistake(
        "misspells a model", typed("ask", "-m", "smrt", PROMPT), "model: 'smrt' is unknown", "did you mean 'smart'"
    ),
    Mistake("misspells a tier", typed("ask", "-t", "fronter", PROMPT), "tier: 'fronter'", "is none of frontier"),
    Mistake(
        "asks a gateway that is down",
        typed("ask", "--url", "http://127.0.0.1:9", PROMPT),
        "no gateway answers",
        "smr serve",
    ),
    Mistake(
        "begins where there is a file",
        typed("init"),
        "smart-router.yaml is left as it is",
        "smr init OTHER.yaml writes another",
    ),
    Mistake(
        "names a client with a space", typed("keys", "new", "our team"), "NAME: 'our team'", "letters, digits, '.'"
    ),
    Mistake("shows statistics of nothing", typed("stats"), "store.path: missing", "a statistics file is needed"),
    Mistake(
        "shows statistics that are gone", typed("stats", "--db", "gone.db"), "gone.db", "has a router with this store"
    ),
    Mistake("runs a workflow that is gone", typed("workflow", "run", "gone.yaml"), "gone.yaml", "file"),
    Mistake(
        "imports a file that is gone",
        typed("import", "litellm", "gone.yaml"),
        "gone.yaml",
        "an existing file is needed",
    ),
    Mistake("indexes a folder that is gone", typed("index", "gone"), "gone", "folder|directory"),
    Mistake(
        "isolates a target without a gateway",
        typed("targets", "isolate", "x"),
        "no gateway answers",
        "smr serve runs one",
    ),
)

MACHINE = (
    Mistake("takes a folder for a database", stored("folder.db"), "not a regular file", "until `store.path` names"),
    Mistake("takes another file for a database", stored("plain.db"), "problem.*plain.db", "until `store.path` names"),
    Mistake("keeps the database below a file", stored("plain.db/stats.db"), "problem.*stats.db", "until `store.path`"),
    Mistake("may not write the database", store_without_permission, "problem.*stats.db", "until `store.path`"),
    Mistake(
        "logs into a folder that is not there",
        checked(telemetry={"log": {"to": "no/x.log"}}),
        "telemetry.log.to",
        "can be written",
    ),
    Mistake("takes a port that is taken", port_in_use, "--port", "name another --port, or 0"),
    Mistake("takes a port that is not permitted", port_not_permitted, "--port", "one of at least 1024"),
    Mistake("takes a port that is none", typed("serve", "--port", "80000"), "'--port'", "less than or equal to 65535"),
    Mistake(
        "serves every network without keys", typed("serve", "--host", "0.0.0.0"), "gateway.host", "smr keys new NAME"
    ),
    Mistake(
        "serves by processes without a store", typed("serve", "--workers", "2"), "--workers", "store.path is needed"
    ),
    Mistake("takes a Python that is too old", old_python, "this is 3.10.9", "needs Python 3.11 or newer"),
    Mistake("lacks the extra cli", lacking("typer", "doctor"), "is an extra", r"smart-model-router\[cli\]"),
    Mistake("lacks the extra gateway", lacking("uvicorn", "serve"), "is an extra", r"smart-model-router\[gateway\]"),
    Mistake("lacks the extra local", lacking("xllamacpp", "demo"), "not installed", r"smart-model-router\[local\]"),
    Mistake("lacks the extra log", lacking("structlog", "ask", PROMPT), "is an extra", r"smart-model-router\[log\]"),
    Mistake("lacks the extra scoring", lacking("mdit_py_plugins", "index", "docs"), "installed", r"\[scoring\]"),
    Mistake("lacks the extra otel", lacking("opentelemetry", "ask", PROMPT), "are an extra", r"router\[otel\]"),
)
