"""`smr fault-server`: a provider that fails as its script says, until it is told to stop."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

from smart_model_router.cli.ending import ExitCode
from smart_model_router.cli.listening import listening
from smart_model_router.cli.printing import print_answer, print_json, print_line
from smart_model_router_providers.fault import FaultServer, load_script
from smart_model_router_providers.fault.script import Script

_STOPS = (signal.SIGINT, signal.SIGTERM)


def run(*, host: str, port: int, script: Path | None, seed: int, as_json: bool) -> int:
    """Serve until SIGINT or SIGTERM; the exit code. Raises ConfigurationError, also for a port that is taken."""
    given = None if script is None else load_script(script)
    asyncio.run(_serve(host, port, given, seed, as_json))
    return ExitCode.OK


async def _serve(host: str, port: int, script: Script, seed: int, as_json: bool) -> None:
    told, loop = asyncio.Event(), asyncio.get_running_loop()
    # Not loop.add_signal_handler: Windows has none.
    before = {number: signal.signal(number, lambda *_: loop.call_soon_threadsafe(told.set)) for number in _STOPS}
    server = FaultServer(script, seed, host=host, port=port)
    try:
        with listening(host, port):
            await server.start()
        if as_json:
            print_json({"base_url": server.base_url})
        else:
            print_answer(server.base_url + "\n")
            print_line("serving until Ctrl-C")
        await told.wait()
        print_line(f"{server.calls()} calls arrived")
    finally:
        await server.aclose()
        for number, handler in before.items():
            signal.signal(number, handler)
