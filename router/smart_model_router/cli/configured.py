"""The configuration that a command works with, where it was found, and its dry run."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, replace
from pathlib import Path

from smart_model_router.assembly import assemble, load
from smart_model_router.config import RouterConfig
from smart_model_router.config.files import VARIABLE, default_file
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.router import SmartModelRouter
from smart_model_router_providers.catalog import found_in


@dataclass(frozen=True, slots=True)
class Configured:
    """A configuration and, for people, where it comes from."""

    config: RouterConfig
    source: str

    @property
    def default_model(self) -> str:
        """The model asked when none is named: `routing.default_model`, else the first. Raises ConfigurationError."""
        return required_model(self.config)


def required_model(config: RouterConfig) -> str:
    """The model asked when none is named. Raises ConfigurationError where all models are wildcards."""
    if config.default_name is None:
        wanted = "a model is needed for commands that name none (--model), as all `models` are wildcards"
        raise ConfigurationError("routing.default_model", None, wanted)
    return config.default_name


def configured(path: Path | None) -> Configured:
    """Load `path`, or what `SmartModelRouter.from_config()` finds without one. Raises ConfigurationError."""
    return Configured(load(path, given=frozenset()), _source(path))


def _source(path: Path | None) -> str:
    if path is not None:
        return str(path)
    file = default_file(os.environ)
    if file is not None:
        return f"{file} (named by ${VARIABLE})" if os.environ.get(VARIABLE) else str(file)
    variables = [variable for _, variable in found_in(os.environ)]
    if variables:
        return f"no file; keys in the environment: {', '.join(variables)}"
    return "no file and no key: the embedded model alone"


def check_router(config: RouterConfig) -> None:
    """Make the router of a configuration, and close it. Raises ConfigurationError for what no router is made of."""
    asyncio.run(SmartModelRouter(**assemble(_without_log_file(config))).aclose())


def _without_log_file(config: RouterConfig) -> RouterConfig:
    """The same with its log on stderr: to open the file would make it, and for the wrong user perhaps."""
    log = config.telemetry.log
    if log.to is None or log.to in {"stderr", "stdout"}:
        return config
    path = Path(log.to).expanduser()
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ConfigurationError("telemetry.log.to", log.to, "a file that can be written is needed")
    return replace(config, telemetry=replace(config.telemetry, log=replace(log, to="stderr")))
