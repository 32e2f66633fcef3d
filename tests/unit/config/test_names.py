"""Model names and aliases: what a name leads to."""

from __future__ import annotations

from typing import Any

import pytest

from smart_model_router.config import RouterConfig
from smart_model_router.domain.errors import ConfigurationError, InvalidRequest


def read(aliases: dict[str, str], **routing: Any) -> RouterConfig:
    """A configuration with the models `smart` and `gpt-exact`."""
    model = {"tiers": [{"targets": ["s/m"]}]}
    return RouterConfig.from_mapping(
        {
            "version": 1,
            "providers": {"s": {"kind": "scripted"}},
            "models": {"smart": model, "gpt-exact": model},
            "aliases": aliases,
            "routing": routing,
        }
    )


ALIASES = {
    "fast": "smart",
    "gpt-*": "smart",
    "gpt-4*": "gpt-exact",
    "*-mini": "smart",
    "quick": "fast",
    "a*b*c": "quick",
}


@pytest.mark.parametrize(
    ("asked", "model"),
    [
        ("smart", "smart"),
        ("gpt-exact", "gpt-exact"),
        ("fast", "smart"),
        ("quick", "smart"),
        ("gpt-5", "smart"),
        ("gpt-4o", "gpt-exact"),
        ("gpt-4", "gpt-exact"),
        ("gpt-4-mini", "gpt-exact"),
        ("o1-mini", "smart"),
        ("abc", "smart"),
        ("a-b-b-c", "smart"),
    ],
)
def test_a_name_leads_to_its_model(asked: str, model: str) -> None:
    """Models before aliases, exact aliases before patterns, longer patterns before shorter, through chains."""
    assert read(ALIASES).resolve(asked).name == model


@pytest.mark.parametrize("asked", ["gp-5", "mini", "acb", "ab", "SMART", ""])
def test_an_unknown_name_is_the_callers_mistake(asked: str) -> None:
    """A name that leads nowhere is InvalidRequest and shows the known names."""
    with pytest.raises(InvalidRequest, match=r"did you mean|known: "):
        read(ALIASES).resolve(asked)


def test_an_unknown_name_comes_with_the_nearest_one() -> None:
    """A typo in a model name is answered with the name that was probably meant."""
    with pytest.raises(InvalidRequest, match="did you mean 'smart'"):
        read({}).resolve("smrat")


def test_the_default_model_answers_for_unknown_names() -> None:
    """With routing.default_model no name is unknown, and known names still go first."""
    config = read({"fast": "gpt-exact"}, default_model="smart")
    assert config.resolve("whatever").name == "smart"
    assert config.resolve("fast").name == "gpt-exact"


@pytest.mark.parametrize(
    ("aliases", "circle"),
    [
        ({"x": "x"}, "x -> x"),
        ({"x": "y", "y": "x"}, "x -> y -> x"),
        ({"x": "y", "y": "z", "z": "y"}, "x -> y -> z -> y"),
        ({"x-*": "x-1"}, "x-* -> x-1 -> x-1"),
        ({"a*": "bb", "b*": "aa"}, "a* -> bb -> aa -> bb"),
        ({"*": "anything"}, "* -> anything -> anything"),
    ],
)
def test_a_circle_of_aliases_is_refused(aliases: dict[str, str], circle: str) -> None:
    """Aliases that lead back to themselves, through patterns too, are an error that shows the circle."""
    with pytest.raises(ConfigurationError) as caught:
        read(aliases)
    assert f"not in a circle ({circle})" in caught.value.expected


def test_an_alias_that_leads_nowhere_is_refused() -> None:
    """The goal of an alias exists; the error has the name that was probably meant."""
    with pytest.raises(ConfigurationError, match=r"aliases\.fast.*did you mean 'smart'"):
        read({"fast": "smrt"})


def test_an_alias_does_not_hide_a_model() -> None:
    """An alias with a model's name could never be used, and is an error."""
    with pytest.raises(ConfigurationError, match=r"aliases\.smart"):
        read({"smart": "gpt-exact"})


def test_a_pattern_with_many_stars_is_quick_on_a_hostile_name() -> None:
    """Callers choose the name: matching takes time in proportion to it, whatever the pattern."""
    with pytest.raises(InvalidRequest):
        read({"*a*a*a*a*a*a*a*a*b": "smart"}).resolve("a" * 200_000)
