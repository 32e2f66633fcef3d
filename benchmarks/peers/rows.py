"""The libraries that are compared: a row each, with what it needs installed, its driver and its options."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from benchmarks import _environments

_NEEDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "litellm_router": ("litellm", "redis"),
        "pydantic_ai_fallback": ("pydantic-ai-slim[openai]",),
        "langchain_fallbacks": ("langchain-core", "langchain-openai"),
        "ours": (),
    }
)
"""The packages that each driver needs; none: the environment this runs in."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the comparison."""

    name: str
    driver: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def command(self) -> tuple[str, ...]:
        """The driver, by the interpreter that has what it needs."""
        return (str(_interpreter(self.driver)), "-m", f"benchmarks.peers.{self.driver}")


_TUNED = {"num_retries": 2, "allowed_fails": 1, "cooldown_time": 30}
_BEST = {
    "num_retries": 0,
    "allowed_fails": 2,
    "cooldown_time": 30,
    "enable_mid_stream_fallback_continuation": True,  # where the release has it: 1.106 has not
}
ROWS = (
    Row("smart-model-router", "ours"),
    Row("LiteLLM, default", "litellm_router"),
    Row("LiteLLM, tuned", "litellm_router", _TUNED),
    Row("LiteLLM, best", "litellm_router", _BEST),
    Row("pydantic-ai FallbackModel", "pydantic_ai_fallback"),
    Row("LangChain with_fallbacks", "langchain_fallbacks"),
)

ENVIRONMENT = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else it asks a web server for prices at import
    "LITELLM_MODE": "PRODUCTION",
    "NO_PROXY": "127.0.0.1",
    "PYTHONPATH": str(_environments.ROOT),
}


def install(drivers: Iterable[str] = _NEEDS) -> None:
    """Make the environments of these drivers that are missing."""
    for driver in drivers:
        if needs := _NEEDS[driver]:
            _environments.install(driver, *needs)


def _interpreter(driver: str) -> Path:
    return _environments.interpreter(driver) if _NEEDS[driver] else Path(sys.executable)
