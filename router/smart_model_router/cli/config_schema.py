"""`smr config schema`: the JSON Schema of smart-router.yaml, for editors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from smart_model_router.cli.exit_codes import ExitCode
from smart_model_router.cli.output import print_answer, print_json
from smart_model_router.config.schema import json_schema

if TYPE_CHECKING:
    from smart_model_router.cli.config_commands import Schema


def run(asked: Schema) -> int:
    """Print the schema; the exit code."""
    if asked.as_json:
        print_json(json_schema())
    else:
        print_answer(json.dumps(json_schema(), indent=2) + "\n")
    return ExitCode.OK
