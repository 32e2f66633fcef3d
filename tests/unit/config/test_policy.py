"""The numbers of the policy in a configuration: each refuses nonsense, and a key that is gone still loads and warns."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

from smart_model_router.config import ConfigurationWarning, RouterConfig
from smart_model_router.config.retired import RETIRED
from smart_model_router.core.breaker import BreakerConfig
from smart_model_router.core.capacity import AdaptiveConfig
from smart_model_router.domain.errors import ConfigurationError

BREAKER = "`failing_share`, `odds`, `odds_per_call` of `resilience.breaker`"
SHARE = "a ratio above 0.05, at most 1 (such as 0.5 or 50%) is needed"
RATIO = "a ratio above 0, at most 1 (such as 0.5 or 50%) is needed"
COUNT = "a whole number at least 1, at most 1e+09 (such as 60, 400k or 2M) is needed"
DURATION = "a duration in seconds above 0, at most 86400 (such as 250ms, 15s, 2m or 1h) is needed"
ANY_COUNT = "a whole number at least 0, at most 1e+09 (such as 60, 400k or 2M) is needed"
WAIT = "a duration in seconds at least 0, at most 86400 (such as 250ms, 15s, 2m or 1h) is needed"
NUMBERS = {
    "resilience.breaker.consecutive_failures": COUNT,
    "resilience.breaker.failing_share": SHARE,
    "resilience.breaker.odds": COUNT,
    "resilience.breaker.odds_per_call": COUNT,
    "resilience.breaker.open_minimum": DURATION,
    "resilience.breaker.open": DURATION,
    "resilience.breaker.open_cap": DURATION,
    "resilience.breaker.open_multiplier": "a number at least 1.1, at most 10 is needed",
    "resilience.cooldown.failing_share": SHARE,
    "resilience.cooldown.odds": COUNT,
    "resilience.cooldown.odds_per_call": COUNT,
    "resilience.cooldown.failure": DURATION,
    "resilience.cooldown.timeout": DURATION,
    "resilience.cooldown.cap": DURATION,
    "resilience.cooldown.multiplier": "a number at least 1, at most 10 is needed",
    "resilience.cooldown.brief": DURATION,
    "resilience.cooldown.rate_limit": DURATION,
    "resilience.patience.minimum": DURATION,
    "resilience.patience.stream": DURATION,
    "resilience.patience.whole": DURATION,
    "resilience.slow_start": DURATION,
    "resilience.throttle.k": "a number at least 1, at most 100 is needed",
    "resilience.throttle.minimum_requests": ANY_COUNT,
    "resilience.throttle.max_probability": RATIO,
    "resilience.timeouts.attempt": DURATION,
    "resilience.timeouts.first_content": DURATION,
    "resilience.timeouts.finish_grace": DURATION,
    "resilience.timeouts.margin": RATIO,
    "routing.attempts": COUNT,
    "routing.attempts_per_target": COUNT,
    "routing.degrade_after": WAIT,
    "routing.last_resort_after": WAIT,
    "routing.max_waiting": ANY_COUNT,
    "routing.sheddable_wait": WAIT,
    "routing.max_wait": WAIT,
}
WRITTEN = {"[]": "a list", "{}": "a mapping"}
NONSENSE: list[object] = [-1, float("nan"), float("inf"), "soon", "", True, [], {}]
CASES = [(key, wrong) for key in NUMBERS for wrong in NONSENSE]
ZEROS = [key for key, wanted in NUMBERS.items() if wanted not in {WAIT, ANY_COUNT}]


def tree(key: str, value: object) -> dict[str, Any]:
    """A whole configuration with one value of a section in it."""
    found: Any = value
    for step in reversed(key.split(".")):
        found = {step: found}
    models = {"m": {"tiers": [{"targets": ["s/x"]}]}}
    return {"version": 1, "providers": {"s": {"kind": "scripted"}}, "models": models, **found}


def read(key: str, value: object) -> RouterConfig:
    """What the configuration with this value is read as."""
    return RouterConfig.from_mapping(tree(key, value), environ={})


def fault(key: str, value: object) -> ConfigurationError:
    """What reading it raises."""
    with pytest.raises(ConfigurationError) as caught:
        read(key, value)
    return caught.value


@pytest.mark.parametrize(("key", "wrong"), CASES, ids=[f"{key}={wrong!r}" for key, wrong in CASES])
def test_a_number_of_the_policy_refuses_nonsense(key: str, wrong: object) -> None:
    """Negative, not finite, text, another type: the error names key, value and range."""
    error = fault(key, wrong)
    assert (error.key, error.expected) == (key, NUMBERS[key])
    shown = WRITTEN.get(repr(wrong), wrong)
    assert repr(error.value) == repr(shown)
    assert str(shown) in str(error)


@pytest.mark.parametrize("key", ZEROS)
def test_zero_is_refused_where_it_means_nothing(key: str) -> None:
    """Odds, shares and durations of a rest are above 0; the error names the value."""
    error = fault(key, 0)
    assert (error.key, error.value, error.expected) == (key, 0, NUMBERS[key])


@pytest.mark.parametrize("section", ["breaker", "cooldown"])
@pytest.mark.parametrize("share", [0.01, 0.05, 1.01])
def test_a_failing_share_is_above_what_every_target_is_taken_to_have(section: str, share: float) -> None:
    """A target is taken to lose 5 % of its calls: a test for that share or less could never end."""
    key = f"resilience.{section}.failing_share"
    error = fault(key, share)
    assert (error.key, error.value, error.expected) == (key, share, SHARE)


def test_a_wait_may_be_none_or_without_a_bound() -> None:
    """0 is no wait; `max_wait: null`, the default, leaves the wait to the request's deadline."""
    assert read("routing.sheddable_wait", 0).routing.sheddable_wait == 0
    assert read("routing.max_wait", 0).routing.max_wait == 0
    assert read("routing.max_wait", None).routing.max_wait is None
    assert fault("routing.sheddable_wait", None).expected == WAIT


@pytest.mark.parametrize(
    ("written", "enabled"), [(False, False), (True, True), ("off", False), (" yes", True), ("${ON}", True)], ids=repr
)
def test_a_section_with_a_switch_may_be_written_as_the_switch(written: object, enabled: bool) -> None:
    """`adaptive: false` is `adaptive: {enabled: false}`; the same holds for hedging."""
    config = RouterConfig.from_mapping(tree("resilience.adaptive", written), environ={"ON": "on"})
    assert config.resilience.adaptive == AdaptiveConfig(enabled=enabled)
    hedged = RouterConfig.from_mapping(tree("resilience.hedging", written), environ={"ON": "on"})
    assert hedged.resilience.hedging.enabled is enabled


@pytest.mark.parametrize(
    ("written", "key", "wanted"),
    [
        ("perhaps", "resilience.adaptive.enabled", "true or false is needed"),
        (1, "resilience.adaptive", "a mapping is needed"),
    ],
)
def test_a_switch_that_is_none_is_refused(written: object, key: str, wanted: str) -> None:
    """Text that is no switch, and numbers, are errors."""
    error = fault("resilience.adaptive", written)
    assert (error.key, error.expected) == (key, wanted)


@pytest.mark.parametrize(
    ("key", "replacement"),
    [
        ("resilience.breaker.window", BREAKER),
        ("resilience.breaker.window_buckets", BREAKER),
        ("resilience.breaker.failure_ratio", BREAKER),
        ("resilience.breaker.minimum_calls", BREAKER),
        ("resilience.adaptive.minimum", "only `enabled` is left"),
        ("resilience.adaptive.tolerance", "only `enabled` is left"),
        ("resilience.adaptive.decrease", "only `enabled` is left"),
    ],
)
@pytest.mark.parametrize("written", ["30s", "much", -1, float("nan"), None, [{"a": 1}], "${NOT_SET}"], ids=repr)
def test_a_key_that_is_gone_loads_with_a_warning(key: str, replacement: str, written: object) -> None:
    """Whatever its value is, the rest is read; the warning names the key and what took its place."""
    with pytest.warns(ConfigurationWarning) as told:
        config = read(key, written)
    assert config == read("routing", {})
    [warning] = told
    assert str(warning.message).startswith(f"{key}: no longer used; ")
    assert replacement in str(warning.message)
    assert warning.filename == __file__


def test_each_key_that_is_gone_is_told_and_the_others_count() -> None:
    """Two keys are two warnings; what stands beside them is read."""
    with pytest.warns(ConfigurationWarning) as told:
        config = read("resilience", {"breaker": {"failure_ratio": 0.5, "odds": 7}, "adaptive": {"minimum": 2}})
    assert [warning.message.key for warning in told if isinstance(warning.message, ConfigurationWarning)] == [
        "resilience.breaker.failure_ratio",
        "resilience.adaptive.minimum",
    ]
    assert config.resilience.breaker == BreakerConfig(odds=7)


def test_in_a_file_the_warning_names_the_line(tmp_path: Path) -> None:
    """File and line stand behind what took the key's place."""
    path = tmp_path / "smart-router.yaml"
    path.write_text(
        "version: 1\nproviders: {s: {kind: scripted}}\nmodels: {m: {tiers: [{targets: [s/x]}]}}\n"
        "resilience:\n  breaker:\n    open: 5s\n    window: 1m\n",
        encoding="utf-8",
    )
    with pytest.warns(ConfigurationWarning) as told:
        config = RouterConfig.load(path, environ={})
    assert config.resilience.breaker.open == 5.0
    assert str(told[0].message).endswith(f"({path}:7)")
    assert told[0].filename == __file__


def test_only_where_it_was_is_a_key_that_is_gone_read() -> None:
    """Elsewhere, or misspelt, it is an unknown key like any other."""
    assert "did you mean" in fault("resilience.cooldown.failure_ratio", 0.5).expected
    assert fault("resilience.breaker.failure_rato", 0.5).expected.startswith("no such key")


def test_a_key_that_is_gone_hides_no_error() -> None:
    """Beside a mistake the configuration is refused as ever, and the mistake alone is named."""
    with warnings.catch_warnings(record=True) as told:
        error = fault("resilience.breaker", {"window": "1m", "open": -1})
    assert (error.key, error.others, told) == ("resilience.breaker.open", (), [])


def test_what_is_gone_is_no_option_any_more() -> None:
    """A key that is read again is taken out of the table of retired ones."""
    assert [key for section, gone in RETIRED.items() for key in gone if hasattr(section(), key)] == []
