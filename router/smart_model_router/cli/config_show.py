"""`smr config show`: the configuration in force, secrets masked, and where each value comes from."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from smart_model_router.cli.configured import configured
from smart_model_router.cli.exit_codes import ExitCode
from smart_model_router.cli.output import print_answer, print_json, print_line, print_table
from smart_model_router.config import RouterConfig
from smart_model_router.config.files import default_file, document_of
from smart_model_router.config.origins import DEFAULT, Value, plain, values_in_force
from smart_model_router.config.secret import MASK
from smart_model_router.config.tree_path import spelled
from smart_model_router_providers.catalog import kind_of

if TYPE_CHECKING:
    from smart_model_router.cli.config_commands import Show


def run(asked: Show) -> int:
    """Print the whole tree as YAML, or with `origin` a line for each value. Raises ConfigurationError."""
    found = configured(asked.config)
    if not asked.origin:
        if asked.as_json:
            print_json({"source": found.source, "config": plain(found.config)})
        else:
            print_answer(yaml.safe_dump(plain(found.config), sort_keys=False, allow_unicode=True))
        return ExitCode.OK
    values = _values(found.config, asked.config)
    if asked.as_json:
        listed = [{"key": spelled(value.path), "value": value.value, "origin": value.origin} for value in values]
        print_json({"source": found.source, "values": listed})
        return ExitCode.OK
    rows = [(spelled(value.path), _shown(value.value), value.origin) for value in values]
    print_table(("key", "value", "from"), rows, sys.stdout)
    print_line(f"configuration: {found.source}")
    return ExitCode.OK


def _values(config: RouterConfig, path: Path | None) -> list[Value]:
    file = path or default_file(os.environ)
    document = None if file is None else document_of(file)
    return [_from_variable(value, config) for value in values_in_force(config, document, str(file))]


def _from_variable(value: Value, config: RouterConfig) -> Value:
    """A key that is not configured is the first of its kind's variables that is set."""
    match value.path:
        case ("providers", str(name), "api_key", *_) if value.origin == DEFAULT:
            variables = kind_of(config.providers[name].kind).key_variables
            found = next((variable for variable in variables if os.environ.get(variable)), None)
            return value if found is None else Value(value.path, MASK, f"environment: ${found}")
        case _:
            return value


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
