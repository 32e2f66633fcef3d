"""Which configuration a command works with, and where it was found."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from smart_model_router.assembly import load
from smart_model_router.config import RouterConfig
from smart_model_router.config.files import VARIABLE, default_file
from smart_model_router.domain.errors import ConfigurationError
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
