"""`smr dashboard`: the dashboard over a statistics file that other processes write."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from smart_model_router.cli.exit_codes import ExitCode
from smart_model_router.cli.output import print_answer, print_json, print_line
from smart_model_router.cli.serve_address import listening
from smart_model_router.cli.statistics import store_path
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router_stats.open_db import StoreUnavailableError

if TYPE_CHECKING:
    from smart_model_router.cli.store_commands import Dashboard

_HOST = "127.0.0.1"


def run(asked: Dashboard) -> int:
    """Show it until SIGINT or SIGTERM; the exit code. Raises ConfigurationError when the file cannot be read."""
    try:
        from smart_model_router.gateway.dashboard import standalone  # noqa: PLC0415 - an extra, and only this command pays
    except ModuleNotFoundError as missing:
        expected = "the dashboard comes with an extra: pip install 'smart-model-router[gateway]'"
        raise ConfigurationError("smr dashboard", missing.name, expected) from None

    def ready(address: str) -> None:
        if asked.as_json:
            print_json({"url": address})
            return
        print_answer(address + "\n")
        print_line("open it in a browser on this machine; Ctrl-C ends it")

    path = store_path(asked.db, asked.config)
    with listening(_HOST, asked.port):
        listener = socket.create_server((_HOST, asked.port))
    with listener:
        try:
            standalone.run(path, listener, on_ready=ready)
        except StoreUnavailableError as error:
            raise ConfigurationError("store", str(path), error.reason) from None
    return ExitCode.OK
