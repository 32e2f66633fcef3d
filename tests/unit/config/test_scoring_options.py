"""The section `search`, and the windows of `evaluation`: founding names, and no key without an effect."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

import smart_model_router
from smart_model_router.config import RouterConfig, SearchConfig
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router_scoring.decay import DOMAIN_RECENCY_DAYS, recency_decay

CODE = Path(smart_model_router.__file__).parent


def read(**sections: Any) -> RouterConfig:
    """A configuration with these sections."""
    model = {"tiers": [{"targets": ["s/m"]}]}
    return RouterConfig.from_mapping(
        {"version": 1, "providers": {"s": {"kind": "scripted"}}, "models": {"smart": model}, **sections}
    )


def keys(section: Any) -> Iterator[str]:
    """Every key of a section and of those within it."""
    for field in fields(section):
        yield field.name
        value = getattr(section, field.name)
        if is_dataclass(value):
            yield from keys(value)


def names_read() -> set[str]:
    """Every attribute that our code reads of anything, and every text that it may ask for by name."""
    found: set[str] = set()
    for path in CODE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                found.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
    return found


def test_the_founding_names_are_keys() -> None:
    """What the founding documents call a setting is what it is called here."""
    founding = {
        "rrf_k_constant",
        "weights",
        "score_calibration_threshold",
        "score_calibration_steepness",
        "min_confidence",
    }
    assert founding <= set(keys(SearchConfig()))


def test_every_key_is_read_by_some_code() -> None:
    """A key that nothing reads would be a setting that sets nothing."""
    known = names_read()
    assert [key for key in keys(SearchConfig()) if key not in known] == []
    assert "no_such_key_anywhere" + "_at_all" not in known


def test_configured_windows_reach_the_decay() -> None:
    """evaluation.deep_research.recency_windows over the built-in ones."""
    windows = read(evaluation={"deep_research": {"recency_windows": {"ai_ml": 30, "zoology": 7}}}).evaluation
    assert windows.recency_windows() == {**DOMAIN_RECENCY_DAYS, "ai_ml": 30, "zoology": 7}
    assert recency_decay(7, domain="zoology", config_windows=windows.recency_windows()) == 0.5
    assert read().evaluation.recency_windows() == DOMAIN_RECENCY_DAYS


@pytest.mark.parametrize("days", [0, -1, True, "soon", 1.5])
def test_a_window_that_is_none_is_refused_in_the_router_s_own_file(days: object) -> None:
    """In smart-router.yaml a mistake is an error by name; `load_recency_windows` reads other files leniently."""
    with pytest.raises(ConfigurationError, match=r"evaluation\.deep_research\.recency_windows\.ai_ml"):
        read(evaluation={"deep_research": {"recency_windows": {"ai_ml": days}}})
