"""`smr serve`: the gateway, until it is told to stop."""

from __future__ import annotations

import logging
from pathlib import Path

from smart_model_router.assembly import load
from smart_model_router.cli.ending import ExitCode
from smart_model_router.cli.printing import print_answer, print_json, print_line
from smart_model_router.errors import ConfigurationError


def run(*, config: Path | None, host: str | None, port: int | None, as_json: bool) -> int:
    """Serve until SIGINT or SIGTERM; the exit code. Raises ConfigurationError, OSError for a port that is taken."""
    try:
        from smart_model_router import gateway  # noqa: PLC0415 - an extra, and only this command pays
    except ModuleNotFoundError as missing:
        expected = "the gateway is an extra: pip install 'smart-model-router[gateway]'"
        raise ConfigurationError("smr serve", missing.name, expected) from None
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("smart_model_router").setLevel(logging.INFO)

    def ready(base_url: str) -> None:
        if as_json:
            print_json({"base_url": base_url})
            return
        print_answer(base_url + "\n")
        print_line(f"OpenAI clients: base_url={base_url}/v1; Anthropic clients: base_url={base_url}; Ctrl-C ends it")

    gateway.run(gateway.Gateway(lambda: load(config, given=frozenset())), host=host, port=port, on_ready=ready)
    return ExitCode.OK
