"""A dry run: a router is made of a configuration and closed at once, without writing a file."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from smart_model_router.assembly import assemble
from smart_model_router.config import RouterConfig
from smart_model_router.core.tiers import ModelRoute
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.router import SmartModelRouter


def ladders_of(config: RouterConfig) -> Mapping[str, ModelRoute]:
    """The tiers of each model, as a router would have them. Raises ConfigurationError for what no router is made of."""
    parts = assemble(_without_log_file(config))
    asyncio.run(SmartModelRouter(**parts).aclose())
    ladders: Mapping[str, ModelRoute] = parts["ladders"]
    return ladders


def _without_log_file(config: RouterConfig) -> RouterConfig:
    """The same with its log on stderr: to open the file would make it, and for the wrong user perhaps."""
    log = config.telemetry.log
    if log.to is None or log.to in {"stderr", "stdout"}:
        return config
    path = Path(log.to).expanduser()
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ConfigurationError("telemetry.log.to", log.to, "a file that can be written is needed")
    return replace(config, telemetry=replace(config.telemetry, log=replace(log, to="stderr")))
