"""`smr config schema`: what an editor needs to know of smart-router.yaml."""

from __future__ import annotations

import json

from smart_model_router.cli.ending import ExitCode
from smart_model_router.cli.printing import print_answer, print_json
from smart_model_router.config.schema import json_schema


def run(*, as_json: bool) -> int:
    """Print the schema; the exit code."""
    if as_json:
        print_json(json_schema())
    else:
        print_answer(json.dumps(json_schema(), indent=2) + "\n")
    return ExitCode.OK
