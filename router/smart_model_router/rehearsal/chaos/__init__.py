"""A drill for a user's own configuration: fault servers in the place of its providers, and a scorecard."""

from __future__ import annotations

from smart_model_router.rehearsal.chaos.chaos_scenarios import MEASURES, SCENARIOS, Scenario
from smart_model_router.rehearsal.chaos.scenario_context import Finding, Verdict
from smart_model_router.rehearsal.chaos.scorecard import Result, Scorecard, play

__all__ = ["MEASURES", "SCENARIOS", "Finding", "Result", "Scenario", "Scorecard", "Verdict", "play"]
