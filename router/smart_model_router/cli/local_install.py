"""`smr local install`: the embedded model's file, fetched once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_model_router.cli.exit_codes import ExitCode
from smart_model_router.cli.output import print_answer, print_json, print_line
from smart_model_router_providers.local import install, is_ready

if TYPE_CHECKING:
    from smart_model_router.cli.app import Install


def run(asked: Install) -> int:
    """Install the model and print where it is; the exit code. Raises LocalInstallError."""
    path = install(print_line)
    readiness = is_ready()
    if asked.as_json:
        print_json({"path": str(path), "ready": readiness.ready, "reason": readiness.reason})
    else:
        print_answer(f"{path}\n")
    if not readiness.ready:
        print_line(readiness.reason)
    return ExitCode.OK
