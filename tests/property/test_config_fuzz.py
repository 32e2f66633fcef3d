"""Whatever a configuration holds, reading it gives a tree or a ConfigurationError, and never shows a secret."""

from __future__ import annotations

import contextlib
import copy
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from smart_model_router.config import ConfigurationWarning, RouterConfig
from smart_model_router.config.conversion import number
from smart_model_router.domain.errors import ConfigurationError, InvalidRequest

SECRET = "sk-live-" + "z9" * 16
GOOD: dict[str, Any] = {
    "version": 1,
    "providers": {
        "a": {
            "kind": "openai",
            "base_url": "http://h/v1",
            "api_key": [SECRET, "k2"],
            "headers": {"x": SECRET},
            "rpm": 60,
        },
        "l": {"kind": "local"},
    },
    "models": {
        "smart": {
            "tiers": [
                {"name": "frontier", "targets": ["a/big", {"target": "a/b", "weight": 2, "tools": False}]},
                {"targets": ["a/small"]},
            ],
            "last_resort": ["l/smollm2"],
        }
    },
    "aliases": {"gpt-*": "smart", "fast": "smart"},
    "routing": {"strategy": "health", "max_wait": "1m"},
    "resilience": {"breaker": {"open": "30s", "failing_share": "99%"}, "adaptive": True, "timeouts": {"total": 600}},
    "local": {"threads": 2},
}

ODD_TEXT = st.sampled_from(
    [
        *(
            "",
            " ",
            "*",
            "a/",
            "/",
            "a/big",
            "smart",
            "gpt-1",
            "${",
            "${X}",
            "${X:-1}",
            "os.environ/",
            "file:",
            "file:/",
        ),
        *("1s", "50%", "400k", "nan", "inf", "1e999", "-0", "\x00", "\ud800", "9" * 5000, "tools", "<<", "~", SECRET),
    ]
)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([10**400, -(10**400), 2**63, 0, -1]),
    st.floats(),
    ODD_TEXT,
    st.text(max_size=20),
    st.binary(max_size=5),
)
KEYS = st.one_of(
    st.sampled_from(
        [
            *("version", "providers", "models", "tiers", "targets", "target", "name", "a", "open", "aliases", "kind"),
            *("window", "failure_ratio", "tolerance", "enabled"),
        ]
    ),
    ODD_TEXT,
    st.text(max_size=8),
)
PLAIN = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(KEYS, st.integers(), st.none()), inner, max_size=4),
        st.tuples(inner),
        st.frozensets(st.integers(), max_size=2),
    ),
    max_leaves=12,
)


def places(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every path in a tree of mappings and lists."""
    found = [path]
    members = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for step, member in members:
        found += places(member, (*path, step))
    return found


def at(path: tuple[Any, ...]) -> Any:
    """The value of the good configuration at a path."""
    found: Any = GOOD
    for step in path:
        found = found[step]
    return found


def changed(path: tuple[Any, ...], value: Any) -> Any:
    """The good configuration with one value replaced."""
    if not path:
        return value
    tree = copy.deepcopy(GOOD)
    owner = tree
    for step in path[:-1]:
        owner = owner[step]
    owner[path[-1]] = value
    return tree


def outcome(read: Callable[[], RouterConfig]) -> str:
    """What a configuration shows of itself, or of its error. Anything else escapes and fails the test."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            config = read()
        except ConfigurationError as error:
            return f"{error} {vars(error)!r}"
    with contextlib.suppress(InvalidRequest):
        config.resolve("gpt-5")
    return f"{config!r} {[one.message for one in told if issubclass(one.category, ConfigurationWarning)]}"


def read_mapping(given: object) -> str:
    """The outcome of reading plain data."""
    return outcome(lambda: RouterConfig.from_mapping(given, environ={"X": SECRET}))


@given(PLAIN)
def test_any_data_is_a_tree_or_a_configuration_error(data: object) -> None:
    """Nothing else comes out, whatever goes in."""
    assert read_mapping(data)


@given(st.sampled_from(places(GOOD)), PLAIN)
def test_any_value_in_any_place_is_a_tree_or_a_configuration_error(path: tuple[Any, ...], value: object) -> None:
    """One value of a good configuration replaced by anything: no traceback, no secret."""
    written = repr(value)
    assert SECRET not in read_mapping(changed(path, value)) or SECRET in written or "${X" in written


@given(st.sampled_from([path for path in places(GOOD) if isinstance(at(path), dict)]), KEYS, PLAIN)
def test_any_key_in_any_section_is_a_tree_or_a_configuration_error(
    path: tuple[Any, ...], key: str, value: object
) -> None:
    """One key more, or another value of one, in any section: no traceback."""
    assert read_mapping(changed(path, {**at(path), key: value}))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.one_of(st.binary(max_size=200), st.text(alphabet="ab:{}[]-*&!<>|?%\"'#~ \n\t\\0", max_size=60).map(str.encode))
)
def test_any_file_is_a_tree_or_a_configuration_error(tmp_path: Path, content: bytes) -> None:
    """Binary rubbish and YAML-like rubbish are reported, not thrown."""
    path = tmp_path / "any.yaml"
    path.write_bytes(content)
    assert "any.yaml" in outcome(lambda: RouterConfig.load(path, environ={}))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 10_000), st.binary(min_size=1, max_size=4))
def test_a_file_with_a_flipped_piece_is_a_tree_or_a_configuration_error(tmp_path: Path, at: int, piece: bytes) -> None:
    """A good file with a few bytes overwritten: read or reported."""
    good = yaml.safe_dump(GOOD).encode()
    at %= len(good)
    path = tmp_path / "any.yaml"
    path.write_bytes(good[:at] + piece + good[at + len(piece) :])
    assert outcome(lambda: RouterConfig.load(path, environ={}))


@given(st.floats(min_value=0.001, max_value=86_400, allow_nan=False))
def test_a_duration_reads_the_same_in_every_spelling(seconds: float) -> None:
    """Seconds and milliseconds of one duration are one number."""
    seconds = round(seconds, 3)
    assert math.isclose(number(f"{seconds:.3f}s", "seconds") or 0, seconds, rel_tol=1e-12)
    assert math.isclose(number(f"{seconds * 1000:.0f}ms", "seconds") or 0, seconds, rel_tol=1e-12)
    assert math.isclose(number(f"{seconds / 60:.12f}m", "seconds") or 0, seconds, rel_tol=1e-6)


@given(st.one_of(st.text(max_size=30), st.from_regex(r"\A[0-9.]{1,9}(e[0-9]{1,4})?(ms|s|k|M|%)?\Z")))
@example("1e400")
def test_any_text_is_a_finite_number_or_none(text: str) -> None:
    """Reading a number never raises and never gives nan or infinity."""
    for unit in ("seconds", "ratio", "count", None):
        read = number(text, unit)
        assert read is None or math.isfinite(read)
