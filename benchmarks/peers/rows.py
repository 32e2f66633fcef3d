"""The libraries that are compared: a row each, with what it needs installed, its driver and its options."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENTS = ROOT / ".peers"
"""One virtual environment a peer. Remove it to take the newest releases again."""

_NEEDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "litellm_router": ("litellm",),
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
    "PYTHONPATH": str(ROOT),
}


def install() -> None:
    """Make the environments that are missing."""
    for driver, needs in _NEEDS.items():
        done = ENVIRONMENTS / driver / "complete"
        if not needs or done.exists():
            continue
        print(f"installing {' '.join(needs)}", file=sys.stderr)
        venv.create(ENVIRONMENTS / driver, with_pip=True, clear=True)
        pip = [str(_interpreter(driver)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *needs], check=True)  # noqa: S603 - our own list
        done.touch()


def _interpreter(driver: str) -> Path:
    if not _NEEDS[driver]:
        return Path(sys.executable)
    folder = "Scripts" if os.name == "nt" else "bin"
    return ENVIRONMENTS / driver / folder / "python"
