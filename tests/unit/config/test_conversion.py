"""Where values come from: variables, files, and what is shown of secrets."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from smart_model_router.config import RouterConfig, Secret
from smart_model_router.domain.errors import ConfigurationError

KEY = "sk-proj-" + "a1" * 12


def read(provider: dict[str, Any], environ: dict[str, str] | None = None, **changes: Any) -> RouterConfig:
    """A configuration whose one provider is given."""
    given = {
        "version": 1,
        "providers": {"a": {"kind": "openai_compatible", **provider}},
        "models": {"smart": {"tiers": [{"targets": ["a/x"]}]}},
        **changes,
    }
    return RouterConfig.from_mapping(given, environ=environ or {})


def keys(config: RouterConfig) -> list[str]:
    """The keys of the provider."""
    return [key.reveal() for key in config.providers["a"].api_key]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("${KEY}", "secret"),
        ("${KEY:-other}", "secret"),
        ("${NONE:-other}", "other"),
        ("${EMPTY:-other}", "other"),
        ("os.environ/KEY", "secret"),
        ("<${KEY}-${KEY}>", "<secret-secret>"),
        ("$${KEY}", "${KEY}"),
        ("$KEY", "$KEY"),
        ("${REFERENCE}", "${KEY}"),
        ("${NONE:-a:-b}", "a:-b"),
    ],
)
def test_a_variable_is_put_in_its_place(written: str, value: str) -> None:
    """${VAR}, its default, os.environ/VAR; $$ escapes; what was put in is not read for references again."""
    environ = {"KEY": "secret", "EMPTY": "", "REFERENCE": "${KEY}"}
    assert keys(read({"api_key": written}, environ)) == [value]


def test_a_variable_may_hold_a_number() -> None:
    """What a variable holds is read by the key it stands under."""
    config = read({"rpm": "${RPM}", "bulkhead": "${N:-7}"}, {"RPM": "1k"})
    assert (config.providers["a"].rpm, config.providers["a"].bulkhead) == (1000, 7)


def test_an_empty_default_is_no_key() -> None:
    """`${KEY:-}` is for keys that need not be there."""
    assert keys(read({"api_key": "${NONE:-}"})) == []


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("${NONE}", "the environment variable NONE must be set"),
        ("${EMPTY}", "the environment variable EMPTY is empty: it must be set"),
        ("os.environ/NONE", "the environment variable NONE must be set"),
        ("${not a name}", "the name of an environment variable"),
        ("${}", "the name of an environment variable"),
        ("os.environ/", "the name of an environment variable"),
        ("${A:-${B}}", "a default without"),
        ("file:", "an existing file"),
        ("file:/no/such/file", "an existing file"),
        ("file:\0", "file"),
    ],
)
def test_a_reference_to_nothing_is_named(written: str, expected: str) -> None:
    """A reference that cannot be followed names its key and what is missing."""
    with pytest.raises(ConfigurationError) as caught:
        read({"base_url": written}, {"EMPTY": ""})
    assert caught.value.key == "providers.a.base_url"
    assert expected in caught.value.expected


def test_a_file_is_put_in_its_place(tmp_path: Path) -> None:
    """file: takes the text of a file without the blanks and line ends around it."""
    secret = tmp_path / "key"
    secret.write_text("from the file\n", encoding="utf-8")
    assert keys(read({"api_key": f"file:{secret}"})) == ["from the file"]


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"x" * 70_000])
def test_a_file_that_holds_no_secret_is_refused(tmp_path: Path, content: bytes) -> None:
    """Binary files and endless ones are named, not read."""
    secret = tmp_path / "key"
    secret.write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"providers\.a\.region"):
        read({"region": f"file:{secret}"})


def test_a_directory_is_no_secret(tmp_path: Path) -> None:
    """file: with a directory is an error at its key."""
    with pytest.raises(ConfigurationError, match=r"providers\.a\.region"):
        read({"region": f"file:{tmp_path}"})


def test_a_secret_shows_itself_nowhere() -> None:
    """Text, repr, format and the tree as a dictionary show stars; JSON and pickle refuse."""
    config = read({"api_key": KEY, "headers": {"authorization": KEY}})
    secret = config.providers["a"].api_key[0]
    tree = dataclasses.asdict(config)
    shown = f"{config} {config!r} {secret} {secret!r} {tree}"
    assert KEY not in shown
    assert "***" in shown
    assert KEY not in json.dumps(tree, default=str)
    with pytest.raises(TypeError, match="not JSON serializable"):
        json.dumps(tree)
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(config)


def test_a_secret_is_compared_and_copied_as_its_value() -> None:
    """A reload can tell whether a key changed."""
    assert Secret("a") == Secret("a")
    assert Secret("a") != Secret("b")
    assert len({Secret("a"), Secret("a"), Secret("b")}) == 2
    assert copy.copy(Secret("a")).reveal() == copy.deepcopy(Secret("a")).reveal() == "a"


@pytest.mark.parametrize(
    "provider",
    [
        {"api_key": [KEY, 7]},
        {"apikey": KEY},
        {"api_key": {"value": KEY}},
        {"base_url": f"https://user:{KEY}@host/v1"},
        {"base_url": KEY},
        {"rpm": KEY},
        {"headers": {"x": [KEY]}},
        {"headers": KEY},
        {"headers": {KEY: 7}},
        {"rpm": "${SECRET}"},
        {"base_url": "${SECRET}"},
        {KEY: 1},
        KEY,
        [KEY],
    ],
)
def test_an_error_shows_no_secret(provider: Any) -> None:
    """A key in the wrong place is an error that does not repeat it: neither in its text nor in its facts."""
    wrong = {"version": 1, "providers": {"a": provider}, "models": {"m": {"tiers": [{"targets": ["a/x"]}]}}}
    with pytest.raises(ConfigurationError) as caught:
        RouterConfig.from_mapping(wrong, environ={"SECRET": KEY})
    assert KEY not in f"{caught.value} {caught.value!r} {vars(caught.value)}"


@pytest.mark.parametrize("provider", [{"api_key": [20261121]}, {"headers": {"x": 20261121}}])
def test_an_error_shows_no_secret_that_is_a_number(provider: dict[str, Any]) -> None:
    """A key that is a number in Python is refused, and not shown either."""
    with pytest.raises(ConfigurationError, match="text is needed") as caught:
        read(provider)
    assert "20261121" not in f"{caught.value} {vars(caught.value)}"
