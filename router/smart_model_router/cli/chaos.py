"""`smr chaos` and `smr fault-server`: failures over real sockets, and a card of what held."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from smart_model_router.cli.configured import configured
from smart_model_router.cli.output import ExitCode, print_answer, print_json, print_line, print_listed, print_table
from smart_model_router.cli.serve import listening
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.suggest import did_you_mean
from smart_model_router.rehearsal.chaos import SCENARIOS, Result, Scorecard, Verdict, play
from smart_model_router_providers.fault import FaultServer, load_script
from smart_model_router_providers.fault.script import Script

if TYPE_CHECKING:
    from smart_model_router.cli.commands import Chaos, ServeFaults


def run_chaos(asked: Chaos) -> int:
    """Play the drill; 1 unless every scenario passes. Raises ConfigurationError."""
    scenario = asked.scenario
    if asked.list_only:
        print_listed([{"name": row.name, "about": row.about} for row in SCENARIOS.values()], as_json=asked.as_json)
        return ExitCode.OK
    if scenario is not None and scenario not in SCENARIOS:
        raise ConfigurationError("scenario", scenario, did_you_mean(scenario, SCENARIOS))
    found = configured(asked.config)
    chosen = list(SCENARIOS.values()) if scenario is None else [SCENARIOS[scenario]]
    print_line(
        f"{len(chosen)} scenarios against {found.source}; nothing leaves this machine; "
        f"durations are divided by {asked.speed:g}, a provider's Retry-After is not"
    )
    model = asked.model or found.default_model
    card = asyncio.run(play(found.config, model, chosen, speed=asked.speed, seed=asked.seed, on_result=_told))
    if asked.as_json:
        print_json(card.to_dict())
    else:
        _show(card)
    return ExitCode.OK if card.passed else ExitCode.FAILED


def _told(result: Result) -> None:
    print_line(f"{result.verdict.value:8} {result.scenario} ({result.seconds:.1f} s)")


def _show(card: Scorecard) -> None:
    print_table(("scenario", "verdict", "measured"), [_row(result) for result in card.results], sys.stdout)
    count = {verdict: sum(result.verdict is verdict for result in card.results) for verdict in Verdict}
    tally = ", ".join(f"{number} {verdict.value}" for verdict, number in count.items() if number)
    lag = max(result.lag for result in card.results)
    print_answer(f"\n{tally}; model {card.model}, speed {card.speed:g}, {card.seconds:.0f} s\n")
    print_answer(f"connections that wanted to leave: {', '.join(card.refused) or 'none'}\n")
    print_line(f"this machine was late by at most {lag:.2f} s; bounds of time are that much wider")


def _row(result: Result) -> tuple[str, str, str]:
    return result.scenario, result.verdict.value, "\n".join(_lines(result))


def _lines(result: Result) -> Iterator[str]:
    """Yield the broken promises, else the measured ones."""
    missed = [finding for finding in result.findings if not finding.kept]
    for finding in missed or result.findings:
        yield f"{'NOT ' if not finding.kept else ''}{finding.promise}: {finding.measured}"


_STOPS = (signal.SIGINT, signal.SIGTERM)


def run_fault_server(asked: ServeFaults) -> int:
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
