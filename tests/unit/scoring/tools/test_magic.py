"""The list of constants: complete, with the founding statuses, and with the present values."""

from __future__ import annotations

from dataclasses import fields

import pytest

from smart_model_router_scoring.options import ConfigError
from smart_model_router_scoring.recall.memory import RecallSettings
from smart_model_router_scoring.tools.constants import magic_numbers
from smart_model_router_scoring.tools.suggestions import NextStepConfig, ReliabilityConfig
from tests.meta.repository import ROOT, table_rows

# The specification's numbers (scoring.md section C), written down a second time on purpose.
SPECIFIED = {
    ("hybrid search", "alpha_cold"): 1.0,
    ("hybrid search", "alpha_mature"): 0.5,
    ("hybrid search", "density_cold"): 0.01,
    ("hybrid search", "density_mature"): 0.25,
    ("hybrid search", "adamic_adar_full"): 2,
    ("next step", "cooccurrence"): 0.6,
    ("next step", "community"): 0.3,
    ("next step", "recency"): 0.1,
    ("next step", "recency_seconds"): 24 * 60 * 60,
    ("capability match", "low"): 0.5,
    ("capability match", "low_factor"): 0.1,
    ("capability match", "high"): 0.9,
    ("capability match", "high_factor"): 1.2,
    ("capability match", "min_runs"): 5,
    ("strategic discovery", "boost"): 0.5,
    ("adaptive threshold", "start"): 0.70,
    ("adaptive threshold", "low"): 0.40,
    ("adaptive threshold", "high"): 0.90,
    ("adaptive threshold", "step"): 0.05,
    ("adaptive threshold", "window"): 50,
    ("adaptive threshold", "min_records"): 20,
    ("adaptive threshold", "every"): 10,
    ("adaptive threshold", "max_false_positives"): 0.2,
    ("adaptive threshold", "max_false_negatives"): 0.3,
}
OURS = {
    ("adaptive threshold", "max_contexts"): 1_000,
    ("spectral clusters", "max_cut"): 0.5,
    ("spectral clusters", "seed"): 0,
    ("online weights", "learning_rate"): 0.1,
    ("online weights", "prior_strength"): 0.001,
    ("online weights", "window"): 200,
    ("online weights", "min_samples"): 200,
    ("online weights", "margin"): 0.01,
}


def test_every_constant_is_listed_once_with_its_present_value() -> None:
    """Those of the specification, and ours."""
    listed = {(number.algorithm, number.name): number.value for number in magic_numbers()}
    assert listed == SPECIFIED | OURS
    assert len(magic_numbers()) == len(listed)


def test_the_founding_statuses_are_kept() -> None:
    """Three numbers were validated, two were to be."""
    listed = {(number.algorithm, number.name): number.status for number in magic_numbers()}
    assert {key for key, status in listed.items() if status == "validated"} == {
        ("hybrid search", "alpha_mature"),
        ("next step", "cooccurrence"),
        ("next step", "community"),
    }
    assert {key for key, status in listed.items() if status == "to validate"} == {
        ("capability match", "low"),
        ("capability match", "high_factor"),
    }
    assert {key for key in OURS if listed[key] != "ours"} == set()


def test_every_role_is_a_phrase_of_its_own() -> None:
    """A table of repetitions would explain nothing."""
    roles = [number.role for number in magic_numbers()]
    assert all(len(role.split()) >= 2 for role in roles)
    assert len(set(roles)) == len(roles)


def test_the_present_values_are_those_in_use() -> None:
    """Given configurations are listed as they are, the others by default."""
    listed = {
        (number.algorithm, number.name): number.value
        for number in magic_numbers(NextStepConfig(recency=0.2), ReliabilityConfig(min_runs=7))
    }
    assert listed["next step", "recency"] == 0.2
    assert listed["capability match", "min_runs"] == 7
    assert listed["strategic discovery", "boost"] == 0.5


def test_two_configurations_of_one_algorithm_are_refused() -> None:
    """Neither would be the present one."""
    again = NextStepConfig(recency=0.2)
    with pytest.raises(ConfigError) as refused:
        magic_numbers(NextStepConfig(), again)
    assert str(refused.value) == f"configs: {again!r} - at most one configuration of each algorithm is needed"


def test_a_configuration_of_something_else_is_refused() -> None:
    """Recall has settings and no magic numbers."""
    with pytest.raises(ConfigError):
        magic_numbers(RecallSettings())  # type: ignore[arg-type]  # the point of the test


def test_the_list_is_in_the_order_of_the_configurations() -> None:
    """A table to print, first of all the first algorithm's."""
    names = [number.name for number in magic_numbers() if number.algorithm == "next step"]
    assert names == [field.name for field in fields(NextStepConfig)]
    assert magic_numbers()[0].algorithm == "hybrid search"


def test_the_documented_table_is_the_list() -> None:
    """Row by row: a number that changes changes the document."""
    document = (ROOT / "docs/how-to/tools-and-recall.md").read_text(encoding="utf-8")
    rows = [row for row in table_rows(document) if len(row) == 5]
    listed = [
        [number.algorithm, f"`{number.name}`", f"{number.value:g}", number.role, number.status]
        for number in magic_numbers()
    ]
    assert rows == listed
