"""Configuration files: YAML as the tree wants it, faults with file and line, and where a file is found."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from smart_model_router.config import RouterConfig
from smart_model_router.config.files import default_file
from smart_model_router.domain.errors import ConfigurationError

GOOD = """\
version: 1
providers:
  a: {kind: openai_compatible, base_url: "http://127.0.0.1:9001/v1", api_key: k}
models:
  smart:
    tiers:
      - {name: frontier, targets: [a/big]}
"""


def load(folder: Path, text: str | bytes) -> RouterConfig:
    """Write a file and load it."""
    path = folder / "smart-router.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return RouterConfig.load(path, environ={})


def fault(folder: Path, text: str | bytes) -> ConfigurationError:
    """Return what loading the text raises."""
    with pytest.raises(ConfigurationError) as caught:
        load(folder, text)
    return caught.value


def test_a_file_is_read(tmp_path: Path) -> None:
    """A YAML file gives the same tree as the mapping it describes."""
    given = {
        "version": 1,
        "providers": {"a": {"kind": "openai_compatible", "base_url": "http://127.0.0.1:9001/v1", "api_key": "k"}},
        "models": {"smart": {"tiers": [{"name": "frontier", "targets": ["a/big"]}]}},
    }
    assert load(tmp_path, GOOD) == RouterConfig.from_mapping(given)


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    """Editors that write one are no reason to fail."""
    assert load(tmp_path, b"\xef\xbb\xbf" + GOOD.encode()) == load(tmp_path, GOOD)


@pytest.mark.parametrize("text", ["no", "0123", "1:30", "2026-11-21", "1e3", "null-1", "0x10"])
def test_text_stays_text(tmp_path: Path, text: str) -> None:
    """Where text is wanted, YAML's own ideas of switches, numbers and dates do not apply."""
    config = load(tmp_path, GOOD.replace("api_key: k", f"api_key: {text}"))
    assert [key.reveal() for key in config.providers["a"].api_key] == [text]


def test_nothing_is_nothing_unless_in_quotes(tmp_path: Path) -> None:
    """`key:` and `key: null` leave the default; "null" in quotes is text."""
    text = GOOD.replace("api_key: k", 'region: null, failure_domain: , api_version: "null"')
    provider = load(tmp_path, text).providers["a"]
    assert (provider.region, provider.failure_domain, provider.api_version) == (None, None, "null")


def test_anchors_and_merges_work(tmp_path: Path) -> None:
    """`<<` takes what is not written next to it, from one mapping or several, the first going first."""
    text = GOOD.replace(
        "  a: {", "  x: &x {rpm: 1, tpm: 1, kind: openai}\n  y: &y {tpm: 2, region: r, kind: openai}\n  a: {"
    )
    provider = load(tmp_path, text.replace("api_key: k", "rpm: 9, <<: [*x, *y]")).providers["a"]
    assert (provider.rpm, provider.tpm, provider.region) == (9, 1, "r")
    assert provider.kind == "openai_compatible"


@pytest.mark.parametrize(
    ("old", "new", "key", "line"),
    [
        ("kind: openai_compatible", "kidn: openai", "providers.a.kidn", 3),
        ("[a/big]", "[a/big, b/big]", "models.smart.tiers[0].targets[1]", 7),
        ("[a/big]", "[]", "models.smart.tiers[0].targets", 7),
        ("version: 1", "version: 7", "version", 1),
        ("name: frontier", "nmae: frontier", "models.smart.tiers[0].nmae", 7),
        ("    tiers:", "    last_resort: [z/z]\n    tiers:", "models.smart.last_resort[0]", 6),
    ],
)
def test_a_fault_is_reported_with_its_line(tmp_path: Path, old: str, new: str, key: str, line: int) -> None:
    """A wrong value is named by its key, and by the file and line it stands on."""
    error = fault(tmp_path, GOOD.replace(old, new))
    assert error.key == key
    assert f"smart-router.yaml:{line})" in str(error)


def test_a_missing_key_is_reported_with_the_line_of_its_section(tmp_path: Path) -> None:
    """What is not there has no line of its own."""
    error = fault(tmp_path, GOOD.replace("kind: openai_compatible, ", ""))
    assert error.key == "providers.a.kind"
    assert "smart-router.yaml:3)" in str(error)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("version: 1\nproviders: {a: [}\n", ":2:"),
        ("version: 1\n  providers: 2\n", ":2:"),
        ("version: '1\n", ":2:"),
        ("version: *nobody\n", ":1:"),
        ("version: 1\n---\nversion: 1\n", ":2:"),
        ("version: 1\nversion: 1\n", ":2"),
        ("a: {b: 1, b: 2}", ":1"),
        ("? [a]\n: 1\n", ":1"),
        ("version: !!python/object/apply:os.system [ls]\n", ":1"),
        ("version: !secret x\n", ":1"),
        ("<<: 7\n", ":1"),
    ],
)
def test_what_is_not_yaml_is_reported_with_its_line(tmp_path: Path, text: str, place: str) -> None:
    """Syntax errors, keys that stand twice, tags and other surprises name file and line."""
    error = fault(tmp_path, text)
    assert f"smart-router.yaml{place}" in error.key


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"# nothing\n",
        b"- a\n",
        b"just text",
        b"\x00\x01\x02",
        b"\xff\xfe\x00\x00",
        bytes(range(256)),
        b"a: \x07",
        b'a: "\\UFFFFFFFF"',
        b"%YAML 9" + b"9" * 5000 + b".1\n--- a",
        b"[" * 100_000,
        b"{a: " * 5_000,
        b"a: &a [*a, *a]",
        b"<<: &a {<<: *a}",
        b"a: &a {b: *a}",
        b"x" * 300_000,
    ],
    ids=lambda text: repr(text[:12]),
)
def test_rubbish_is_an_error_and_nothing_else(tmp_path: Path, text: bytes) -> None:
    """Empty, binary, endless, nested beyond sense: a ConfigurationError that names the file."""
    assert "smart-router.yaml" in str(fault(tmp_path, text))


def test_a_few_lines_cannot_grow_into_gigabytes(tmp_path: Path) -> None:
    """Aliases of aliases are cut off."""
    laughs = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    laughs += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    assert "endlessly" in str(fault(tmp_path, "\n".join(laughs)))


def test_an_error_of_syntax_shows_no_secret(tmp_path: Path) -> None:
    """The text around a syntax error stays in the file."""
    key = "sk-" + "x1" * 20
    error = fault(tmp_path, f"providers: {{a: {{api_key: {key}\nversion: ]\n")
    assert key not in f"{error} {vars(error)}"


def test_what_is_no_file_is_an_error(tmp_path: Path) -> None:
    """A directory, a path that leads nowhere, a pipe: named, and nobody waits."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "nobody.yaml", tmp_path / "nobody" / "x", tmp_path / "pipe", "\0", "x" * 5000):
        with pytest.raises(ConfigurationError, match="is needed"):
            RouterConfig.load(path, environ={})


def test_no_file_anywhere_is_an_error_with_the_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a path and without a file in the default places, the places are named."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError, match=r"SMART_ROUTER_CONFIG.*smart-router\.yaml"):
        RouterConfig.load(environ={})


def test_the_default_file_is_the_named_then_the_local_then_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """$SMART_ROUTER_CONFIG, ./smart-router.yaml, the user's configuration folder: in this order."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.platform", "linux")
    users = tmp_path / "home" / ".config" / "smart-model-router" / "smart-router.yaml"
    users.parent.mkdir(parents=True)
    environ = {"HOME": str(tmp_path / "home")}
    assert default_file(environ) is None
    users.write_text(GOOD, encoding="utf-8")
    assert default_file(environ) == users
    Path("smart-router.yaml").write_text(GOOD, encoding="utf-8")
    assert default_file(environ) == Path("smart-router.yaml")
    assert default_file({**environ, "SMART_ROUTER_CONFIG": "named.yaml"}) == Path("named.yaml")
    assert RouterConfig.load(environ=environ).models["smart"].name == "smart"


@pytest.mark.parametrize(
    ("platform", "environ", "folder"),
    [
        ("linux", {"XDG_CONFIG_HOME": "conf", "HOME": "h"}, "conf"),
        ("linux", {"HOME": "h"}, "h/.config"),
        ("darwin", {"HOME": "h"}, "h/Library/Application Support"),
        ("win32", {"APPDATA": "roaming"}, "roaming"),
    ],
)
def test_the_users_folder_is_the_platforms(
    platform: str, environ: dict[str, str], folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each platform has its own place for configuration."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.platform", platform)
    path = Path(folder) / "smart-model-router" / "smart-router.yaml"
    path.parent.mkdir(parents=True)
    path.touch()
    assert default_file(environ) == path
    assert default_file({}) is None


def test_a_named_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    """What $SMART_ROUTER_CONFIG names was asked for: it is not skipped."""
    with pytest.raises(ConfigurationError, match="an existing file"):
        RouterConfig.load(environ={"SMART_ROUTER_CONFIG": str(tmp_path / "nobody.yaml")})
