"""Simulates the real router in virtual time against simulated providers, with checkers of its promises at every step.

A simulated hour takes about a second.
"""

from __future__ import annotations

from smart_model_router.rehearsal.simulation.run import simulate
from smart_model_router.rehearsal.simulation.scenario import History, Scenario, Setting, Violation
from smart_model_router.rehearsal.simulation.scenarios import SCENARIOS

__all__ = ["SCENARIOS", "History", "Scenario", "Setting", "Violation", "simulate"]
