"""`smr init` and `smr keys new`: first steps that replace nothing and show a key once."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import yaml

from smart_model_router import ConfigurationError
from smart_model_router.cli import init
from smart_model_router.cli.app import Doctor
from smart_model_router.cli.commands import Check, Init, NewKey
from smart_model_router.cli.output import OptionFault
from smart_model_router.config import RouterConfig
from smart_model_router.gateway.client_keys import KeyRing
from smart_model_router_providers.catalog import KINDS
from tests.closed_folders import closed_folder


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder, no server on this machine, no embedded model, and no key."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(init, "servers_that_answer", list)
    monkeypatch.setenv("SMART_ROUTER_DATA_DIR", str(tmp_path / "data"))
    for kind in KINDS.values():
        for variable in kind.key_variables:
            monkeypatch.delenv(variable, raising=False)


def test_a_key_in_the_environment_makes_a_file_that_every_command_takes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its path goes to stdout; what was found and the next command to stderr; check and doctor find no fault."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-secret")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    assert Init(file=None, as_json=False).run() == 0
    told = capsys.readouterr()
    assert told.out == "smart-router.yaml\n"
    assert "found: openai ($OPENAI_API_KEY), anthropic ($ANTHROPIC_API_KEY)" in told.err
    assert 'next: smr doctor --online, then smr ask "Hello"' in told.err
    assert "secret" not in told.out + told.err + Path("smart-router.yaml").read_text(encoding="utf-8")
    assert Check(config=None, as_json=True).run() == 0
    checked = json.loads(capsys.readouterr().out)
    assert (checked["problems"], checked["warnings"]) == ([], [])
    assert Doctor(config=None, as_json=True).run() == 0


def test_the_next_command_can_be_copied_for_a_path_with_spaces(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is quoted as a shell wants it."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    assert Init(file=Path("our router.yaml"), as_json=False).run() == 0
    assert "next: smr doctor --online --config 'our router.yaml', then" in capsys.readouterr().err


def test_nothing_to_begin_with_is_told_as_missing() -> None:
    """The line names what is missing and each of the ways to it, and no value of Python."""
    with pytest.raises(ConfigurationError, match=r"^providers: missing - a key in the environment.*smr local install"):
        Init(file=None, as_json=False).run()


def link(file: Path) -> None:
    """Make a link that leads nowhere."""
    file.symlink_to("nowhere")


@pytest.mark.parametrize("make", [Path.touch, Path.mkdir, link], ids=["a file", "a folder", "a link"])
def test_what_is_there_stays_as_it_is(make: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is in the place of the file."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    file = Path("smart-router.yaml")
    make(file)
    before = os.lstat(file)
    with pytest.raises(ConfigurationError, match=r"smart-router\.yaml is left as it is"):
        Init(file=None, as_json=False).run()
    assert (os.lstat(file).st_ino, os.lstat(file).st_size) == (before.st_ino, before.st_size)


def test_a_file_that_appears_meanwhile_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is made anew or not at all, also between the look and the writing."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setattr(init, "is_ready", lambda: Path("smart-router.yaml").write_text("mine") and _Ready)
    with pytest.raises(ConfigurationError, match="is left as it is"):
        Init(file=None, as_json=False).run()
    assert Path("smart-router.yaml").read_text(encoding="utf-8") == "mine"


class _Ready:
    ready = False


def test_without_anything_to_begin_with_no_file_is_written() -> None:
    """The error names the ways out."""
    with pytest.raises(ConfigurationError, match=r"OPENAI_API_KEY, .*Ollama.*smr local install"):
        Init(file=None, as_json=False).run()
    assert not Path("smart-router.yaml").exists()


@pytest.mark.parametrize("file", ["nowhere/x.yaml", "plain/x.yaml"])
def test_a_directory_that_takes_no_file_is_told(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is missing, and one that is a file."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    Path("plain").touch()
    with pytest.raises(ConfigurationError, match="a directory that can be written is needed"):
        Init(file=Path(file), as_json=False).run()


@pytest.mark.skipif(sys.platform == "win32", reason="modes and user ids of POSIX")
def test_a_directory_without_permission_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the system's own word."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    wanted = r"a file in a directory that can be written is needed \(Permission denied\)"
    with closed_folder() as folder, pytest.raises(ConfigurationError, match=wanted):
        Init(file=folder / "x.yaml", as_json=False).run()


def new_key(capsys: pytest.CaptureFixture[str], **limits: float) -> tuple[str, str]:
    """The key on stdout, and the lines on stderr."""
    given: dict[str, Any] = {"rpm": None, "tpm": None, "usd_per_day": None, **limits}
    assert NewKey(name="team", as_json=False, **given).run() == 0
    told = capsys.readouterr()
    return told.out.strip(), told.err


def test_the_printed_lines_let_the_printed_key_in(capsys: pytest.CaptureFixture[str]) -> None:
    """The configuration holds the digest alone; the gateway knows the client by the key."""
    key, lines = new_key(capsys, rpm=60, usd_per_day=2.5)
    assert key.startswith("sk-smr-")
    assert key not in lines
    section = yaml.safe_load(lines.partition("smart-router.yaml:\n")[2])
    tree = {"version": 1, "providers": {"s": {"kind": "scripted"}}, "models": {"m": {"targets": ["s/x"]}}, **section}
    made = RouterConfig.from_mapping(tree).gateway.keys["team"]
    assert (made.sha256, made.rpm, made.usd_per_day) == (sha256(key.encode()).hexdigest(), 60, 2.5)
    assert KeyRing({"team": made}).api_client({"authorization": f"Bearer {key}"}).name == "team"


def test_each_key_is_another_one(capsys: pytest.CaptureFixture[str]) -> None:
    """256 bits of chance; without limits the entry has none."""
    first, lines = new_key(capsys)
    second, _ = new_key(capsys)
    assert first != second
    assert len(first) >= 48
    assert "rpm" not in lines


def test_json_has_the_key_and_its_entry(capsys: pytest.CaptureFixture[str]) -> None:
    """One object for a script."""
    assert NewKey(name="team", rpm=5, tpm=None, usd_per_day=None, as_json=True).run() == 0
    told = json.loads(capsys.readouterr().out)
    digest = sha256(told["key"].encode()).hexdigest()
    assert told["config"] == {"gateway": {"keys": {"team": {"sha256": digest, "rpm": 5}}}}


def test_a_name_that_no_configuration_takes_is_refused() -> None:
    """Before a key is made for it."""
    with pytest.raises(OptionFault, match=r"letters, digits"):
        NewKey(name="our team", rpm=None, tpm=None, usd_per_day=None, as_json=False).run()
