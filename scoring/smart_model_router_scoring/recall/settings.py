"""The settings of recall, as a frozen object that refuses nonsense and from variables whose nonsense is noted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from smart_model_router_scoring.errors import ConfigError
from smart_model_router_scoring.options import check_choice, check_count, check_number, check_positive

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from smart_model_router_scoring.notes import Notes

RecencyBias = Literal["auto", "on", "off"]
RecencyCurve = Literal["linear", "exp"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallSettings:
    """Whatever changes a ranking is off by default."""

    recency_bias: RecencyBias = "off"
    """`on` lifts newer hits, `auto` does so for a query that asks for the present."""
    weight_temporal: float = 0.1
    """The gain of the newest hit; the oldest gains nothing."""
    recency_window_days: float = 180.0
    """`linear`: the age at which the recency component is 0; `exp`: at which it is a half."""
    recency_curve: RecencyCurve = "linear"
    tag_score_token_cap: int = 0
    """The most query tokens that the share of matched tags is taken of; 0 is all of them."""
    relevance_gate: float = 0.0
    """0 to 1: below so much evidence, parts that do not depend on the query count less; 0 is off."""

    def __post_init__(self) -> None:
        check_choice("recency_bias", self.recency_bias, ("auto", "on", "off"))
        check_number("weight_temporal", self.weight_temporal, 0, 1_000)
        check_positive("recency_window_days", self.recency_window_days)
        check_choice("recency_curve", self.recency_curve, ("linear", "exp"))
        check_count("tag_score_token_cap", self.tag_score_token_cap, 0)
        check_number("relevance_gate", self.relevance_gate, 0, 1)


def _word(text: str) -> str:
    return text.strip().lower()


def _at_least_zero(text: str) -> float:
    return max(float(text), 0.0)


VARIABLES: dict[str, tuple[str, Callable[[str], Any]]] = {
    "RECALL_RECENCY_BIAS": ("recency_bias", _word),
    "SEARCH_WEIGHT_TEMPORAL": ("weight_temporal", _at_least_zero),
    "SEARCH_RECENCY_WINDOW_DAYS": ("recency_window_days", float),
    "SEARCH_RECENCY_CURVE": ("recency_curve", _word),
    "SEARCH_TAG_SCORE_TOKEN_CAP": ("tag_score_token_cap", int),
    "RECALL_RELEVANCE_GATE": ("relevance_gate", float),
}
"""The variable of each setting, and how its text is read. Only a negative SEARCH_WEIGHT_TEMPORAL is mended: it is 0."""


def read_settings(variables: Mapping[str, str], notes: Notes) -> RecallSettings:
    """The settings that `variables` (such as an environment) give. A bad value is noted, and its default stands."""
    read: dict[str, Any] = {}
    for variable, (field, parse) in VARIABLES.items():
        if variable not in variables:
            continue
        try:
            value = parse(variables[variable])
            RecallSettings(**{field: value})
        except (ConfigError, ValueError):
            notes.add("bad_setting", variable, variables[variable])
        else:
            read[field] = value
    return RecallSettings(**read)
