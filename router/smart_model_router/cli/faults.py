"""`smr fault-server`: a provider that fails as its script says, until it is told to stop."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

from smart_model_router.cli.exit_codes import ExitCode
from smart_model_router.cli.output import print_answer, print_json, print_line
from smart_model_router.cli.serve_address import listening
from smart_model_router_providers.fault import FaultServer, load_script
from smart_model_router_providers.fault.script import Script

if TYPE_CHECKING:
    from smart_model_router.cli.rehearsal_commands import ServeFaults

_STOPS = (signal.SIGINT, signal.SIGTERM)


def run(asked: ServeFaults) -> int:
    """Serve until SIGINT or SIGTERM; the exit code. Raises ConfigurationError, also for a port that is taken."""
    asyncio.run(_serve(asked, None if asked.script is None else load_script(asked.script)))
    return ExitCode.OK


async def _serve(asked: ServeFaults, script: Script) -> None:
    told, loop = asyncio.Event(), asyncio.get_running_loop()
    # Not loop.add_signal_handler: Windows has none.
    before = {number: signal.signal(number, lambda *_: loop.call_soon_threadsafe(told.set)) for number in _STOPS}
    server = FaultServer(script, asked.seed, host=asked.host, port=asked.port)
    try:
        with listening(asked.host, asked.port):
            await server.start()
        if asked.as_json:
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
