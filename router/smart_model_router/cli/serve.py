"""`smr serve`: the gateway, until it is told to stop."""

from __future__ import annotations

import errno
import logging
import os
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from smart_model_router.assembly import load
from smart_model_router.cli.output import ExitCode, print_answer, print_json, print_line
from smart_model_router.domain.errors import ConfigurationError

if TYPE_CHECKING:
    from ctypes import c_bool

    from smart_model_router.cli.app import Serve
    from smart_model_router.config import GatewayConfig, RouterConfig
    from smart_model_router.gateway import Gateway

# The errors of an address that a command cannot listen on.
_WHY = MappingProxyType(
    {
        errno.EADDRINUSE: "another program listens there: name another --port, or 0 for a free one",
        errno.EADDRNOTAVAIL: "an address of this machine is needed for --host",
        errno.EACCES: "this port is not yours: name one of at least 1024, or 0 for a free one",
    }
)


@contextmanager
def listening(host: str, port: int) -> Generator[None]:
    """Turn the error of an address that cannot be listened on into a ConfigurationError that says what to do."""
    try:
        yield
    except socket.gaierror as error:
        raise ConfigurationError("--host", host, f"an address of this machine is needed ({error.strerror})") from None
    except OSError as error:
        why = _WHY.get(error.errno or 0)
        if why is None:
            raise
        raise ConfigurationError("--port", f"{host}:{port}", why) from None


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

    def ready(base_url: str) -> None:
        if asked.as_json:
            print_json({"base_url": base_url})
            return
        print_answer(base_url + "\n")
        print_line(f"OpenAI clients: base_url={base_url}/v1; Anthropic clients: base_url={base_url}; Ctrl-C ends it")

    if asked.workers > 1:
        return _run_several(asked, ready)
    served = Gateway(lambda: _loaded(asked.config))
    listener, base_url = _bound(asked, served.generation.config.gateway)
    with listener:
        serve(served, listener, lambda: ready(base_url))
    return ExitCode.OK


def _loaded(path: Path | None) -> RouterConfig:
    """Load the configuration; spans are exported from the first one on that has traces, as OTEL_* variables say."""
    config = load(path, given=frozenset())
    if config.telemetry.traces.enabled:
        from smart_model_router.observability.span_export import set_up  # noqa: PLC0415 - traces are an extra

        set_up(os.environ)
    return config


def _run_several(asked: Serve, ready: Callable[[str], None]) -> int:
    from smart_model_router.gateway import workers  # noqa: PLC0415 - as above
    from smart_model_router.gateway.asgi_app import log_findings  # noqa: PLC0415 - as above

    make = Making(asked.config, asked.workers)
    config = make.load()
    if config.store.path is None and config.store.shared_url is None:
        named = "store.path is needed (store.shared_url on many machines)"
        expected = f"{named}: it is through the store that workers know of each other's limits and failures"
        raise ConfigurationError("--workers", asked.workers, expected)
    listener, base_url = _bound(asked, config.gateway)
    log_findings(config)
    return workers.run(make, listener, asked.workers, ready=lambda: ready(base_url))


def _bound(asked: Serve, settings: GatewayConfig) -> tuple[socket.socket, str]:
    from smart_model_router.gateway.uvicorn_server import bind  # noqa: PLC0415 - as above

    with listening(asked.host or settings.host, settings.port if asked.port is None else asked.port):
        return bind(settings, host=asked.host, port=asked.port)


@dataclass(frozen=True, slots=True)
class Making:
    """Makes the gateway of one of `workers` processes, in its process."""

    config: Path | None
    workers: int

    def load(self) -> RouterConfig:
        """Return the configuration of a worker: where state is not shared, it has its part of what all may use."""
        config = _loaded(self.config)
        processes = max(self.workers, config.store.processes)
        return replace(config, store=replace(config.store, processes=processes))

    def __call__(self, draining: c_bool) -> Gateway:
        """The gateway, or the end of the process with a line that says why not."""
        from smart_model_router.gateway import Gateway  # noqa: PLC0415 - as above

        _log()
        try:
            return Gateway(self.load, draining=draining)
        except ConfigurationError as error:
            print_line(f"smr: {error.message}")
            raise SystemExit(ExitCode.CONFIGURATION) from None


def _log() -> None:
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("smart_model_router").setLevel(logging.INFO)
