"""`smr dashboard`: the dashboard over a statistics file that other processes write."""

from __future__ import annotations

import socket
from pathlib import Path

from smart_model_router.cli.ending import ExitCode
from smart_model_router.cli.listening import listening
from smart_model_router.cli.printing import print_answer, print_json, print_line
from smart_model_router.cli.statistics import store_path
from smart_model_router.errors import ConfigurationError
from smart_model_router_stats.opening import StoreUnavailableError

_HOST = "127.0.0.1"


def run(*, db: Path | None, config: Path | None, port: int, as_json: bool) -> int:
    """Show it until SIGINT or SIGTERM; the exit code. Raises ConfigurationError when the file cannot be read."""
    try:
        from smart_model_router.gateway.dashboard import alone  # noqa: PLC0415 - an extra, and only this command pays
    except ModuleNotFoundError as missing:
        expected = "the dashboard comes with an extra: pip install 'smart-model-router[gateway]'"
        raise ConfigurationError("smr dashboard", missing.name, expected) from None

    def ready(address: str) -> None:
        if as_json:
            print_json({"url": address})
            return
        print_answer(address + "\n")
        print_line("open it in a browser on this machine; Ctrl-C ends it")

    path = store_path(db, config)
    with listening(_HOST, port):
        listener = socket.create_server((_HOST, port))
    with listener:
        try:
            alone.run(path, listener, on_ready=ready)
        except StoreUnavailableError as error:
            raise ConfigurationError("store", str(path), error.reason) from None
    return ExitCode.OK
