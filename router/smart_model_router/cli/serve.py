"""`smr serve`: the gateway, until it is told to stop."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from smart_model_router.assembly import load
from smart_model_router.cli.exit_codes import ExitCode
from smart_model_router.cli.hosted_tools import notice, refusing
from smart_model_router.cli.output import print_answer, print_json, print_line
from smart_model_router.cli.serve_address import listening
from smart_model_router.domain.errors import ConfigurationError

if TYPE_CHECKING:
    from ctypes import c_bool

    from smart_model_router.cli.app import Serve
    from smart_model_router.config import GatewayConfig, RouterConfig
    from smart_model_router.gateway import Gateway


def run(asked: Serve) -> int:
    """Serve until SIGINT or SIGTERM; the exit code. Raises ConfigurationError, also for a port that is taken."""
    try:
        from smart_model_router.gateway import Gateway  # noqa: PLC0415 - an extra, and only this command pays
        from smart_model_router.gateway.uvicorn_server import serve  # noqa: PLC0415 - as above
    except ModuleNotFoundError as missing:
        expected = "the gateway is an extra: pip install 'smart-model-router[gateway]'"
        raise ConfigurationError("smr serve", missing.name, expected) from None
    _log()
    if asked.server != "uvicorn":
        print_line(f"smr: --server {asked.server} is not supported any more: uvicorn serves")

    def ready(base_url: str, config: RouterConfig) -> None:
        if told := notice(refusing(config)):
            print_line(told)
        if asked.as_json:
            print_json({"base_url": base_url})
            return
        print_answer(base_url + "\n")
        print_line(f"OpenAI clients: base_url={base_url}/v1; Anthropic clients: base_url={base_url}; Ctrl-C ends it")

    if asked.workers > 1:
        return _run_several(asked, ready)
    served = Gateway(lambda: load(asked.config, given=frozenset()))
    listener, base_url = _bound(asked, served.house.config.gateway)
    with listener:
        serve(served, listener, lambda: ready(base_url, served.house.config))
    return ExitCode.OK


def _run_several(asked: Serve, ready: Callable[[str, RouterConfig], None]) -> int:
    from smart_model_router.gateway import workers  # noqa: PLC0415 - as above

    config = load(asked.config, given=frozenset())
    if config.store.path is None:
        expected = "store.path is needed: it is through the store that workers know of each other's limits and failures"
        raise ConfigurationError("--workers", asked.workers, expected)
    listener, base_url = _bound(asked, config.gateway)
    make = Making(asked.config)
    return workers.run(make, listener, asked.workers, ready=lambda: ready(base_url, config))


def _bound(asked: Serve, settings: GatewayConfig) -> tuple[socket.socket, str]:
    from smart_model_router.gateway.bind import bind  # noqa: PLC0415 - as above

    with listening(asked.host or settings.host, settings.port if asked.port is None else asked.port):
        return bind(settings, host=asked.host, port=asked.port)


@dataclass(frozen=True, slots=True)
class Making:
    """Makes the gateway of a worker, in its process."""

    config: Path | None

    def __call__(self, draining: c_bool) -> Gateway:
        """The gateway, or the end of the process with a line that says why not."""
        from smart_model_router.gateway import Gateway  # noqa: PLC0415 - as above

        _log()
        try:
            return Gateway(lambda: load(self.config, given=frozenset()), draining=draining)
        except ConfigurationError as error:
            print_line(f"smr: {error.message}")
            raise SystemExit(ExitCode.CONFIGURATION) from None


def _log() -> None:
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("smart_model_router").setLevel(logging.INFO)
