"""`smr chaos`: with the defaults every scenario passes; without a measure, or without a fallback, the card says so."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from smart_model_router import RouterConfig
from smart_model_router.core.flow_config import Measures
from smart_model_router.rehearsal.chaos import MEASURES, SCENARIOS, Scorecard, Verdict, play
from smart_model_router.rehearsal.chaos.fault_fleet import NetworkGuard
from smart_model_router.rehearsal.chaos.scenario_context import ClientCall, Ending, ask, body_of
from smart_model_router.router import SmartModelRouter
from smart_model_router_providers.fault import Fault, FaultServer
from tests.e2e.command import Smr

SECONDS = 180.0
"""The whole card promises to take less."""
FLEET: Mapping[str, Any] = {
    "version": 1,
    "providers": {
        "openai": {"kind": "openai", "api_key": "sk-real"},
        "anthropic": {"kind": "anthropic", "api_key": "sk-real"},
        "groq": {"kind": "groq", "api_key": "sk-real"},
    },
    "models": {
        "smart": {
            "tiers": [
                {"targets": ["openai/gpt-5", "anthropic/claude-sonnet-5"]},
                {"targets": ["groq/openai/gpt-oss-20b"]},
            ],
            "last_resort": [],
        }
    },
}
"""Three providers and nothing else said: every rule is the default."""
ALONE: Mapping[str, Any] = {
    "version": 1,
    "providers": {"only": {"kind": "openai_compatible", "base_url": "https://models.example.com/v1"}},
    "models": {"smart": {"tiers": [{"targets": ["only/big"]}], "last_resort": []}},
}


def smr_chaos(config: Mapping[str, Any], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `smr chaos` with this configuration to its end."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "smart-router.yaml").write_text(json.dumps(config), encoding="utf-8")
        return Smr(Path(folder))("chaos", *arguments, seconds=SECONDS)


@cache
def drilled() -> tuple[int, dict[str, Any]]:
    """The whole card of the defaults, once for all tests: its exit code and what it says."""
    done = smr_chaos(FLEET, "--json")
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def play_one(scenario: str, config: Mapping[str, Any], speed: float = 10.0) -> Scorecard:
    """Play one scenario in this process."""
    tree = RouterConfig.from_mapping(config, environ={})
    row = SCENARIOS[scenario]
    return asyncio.run(play(tree, "smart", [row], speed=speed, seed=1, on_result=lambda result: None))


@pytest.mark.timeout(200)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_defaults_pass_every_scenario(scenario: str) -> None:
    """Three ordinary providers with the default rules live through it, and every promise is measured."""
    _, card = drilled()
    result = next(result for result in card["scenarios"] if result["name"] == scenario)
    assert result["verdict"] == "pass", [finding for finding in result["findings"] if not finding["kept"]]
    assert all(finding["measured"] for finding in result["findings"])


@pytest.mark.timeout(200)
def test_a_card_that_is_all_pass_exits_with_zero_and_nothing_left_the_machine() -> None:
    """The card's own sum, its exit code, and the fence's count."""
    code, card = drilled()
    assert (code, card["passed"], card["connections_refused"]) == (0, True, [])
    assert {result["name"] for result in card["scenarios"]} == set(SCENARIOS)
    assert card["seconds"] < SECONDS


@pytest.mark.parametrize("measure", MEASURES)
def test_a_measure_switched_off_is_seen_on_the_card(measure: str) -> None:
    """The scenario that passes with all measures does not without this one."""
    resilience = {"measures": {measure: False}, "timeouts": {"total": "10s"}}  # what waits for nothing ends sooner
    card = play_one(MEASURES[measure], {**FLEET, "resilience": resilience})
    assert card.results[0].verdict is not Verdict.PASS


def test_every_measure_has_its_scenario() -> None:
    """The table of measures is complete."""
    assert set(MEASURES) == {field.name for field in fields(Measures)}
    assert set(MEASURES.values()) <= set(SCENARIOS)


def test_a_configuration_without_a_fallback_is_safe_at_best() -> None:
    """With one provider nobody answers when it is gone; that is told, in the table and by the exit code."""
    impatient = {**ALONE, "resilience": {"timeouts": {"total": "10s"}}}  # a request to a dead fleet lasts as long
    done = smr_chaos(impatient, "--scenario", "unavailable_for_ever")
    assert done.returncode == 1
    row = next(line for line in done.stdout.splitlines() if line.startswith("unavailable_for_ever"))
    assert row.split()[1] == "safe"
    assert "20 unserved" in row


def test_at_speed_one_the_durations_are_as_configured() -> None:
    """A first call that fails is retried with the configured patience; the card says the speed."""
    card = play_one("one_500", FLEET, speed=1.0)
    assert card.speed == 1.0
    assert card.results[0].verdict is Verdict.PASS


def test_an_unknown_scenario_is_refused_by_name() -> None:
    """Exit code 3, and what was probably meant."""
    done = smr_chaos(FLEET, "--scenario", "thundering_heard")
    assert done.returncode == 3
    assert "thundering_herd" in done.stderr


def test_the_catalogue_is_listed() -> None:
    """Each scenario with what happens in it."""
    done = smr_chaos(FLEET, "--list")
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(SCENARIOS)


async def _asked(script: list[Fault], *, stream: bool, text: str | None = None) -> ClientCall:
    async with FaultServer(script, name="chaos", text=text) as server:
        provider = {"kind": "openai_compatible", "base_url": server.base_url}
        config = {**ALONE, "providers": {"only": provider}, "resilience": {"timeouts": {"idle": 0.5}}}
        async with SmartModelRouter.from_config(config) as router:
            return await ask(router, body_of(1, "smart"), stream=stream, timeout=5.0, grace=1.0)


@pytest.mark.parametrize(
    ("ending", "script", "stream", "text"),
    [
        pytest.param(Ending.WHOLE, [], True, None, id="a whole stream"),
        pytest.param(Ending.WHOLE, [], False, None, id="a whole answer"),
        pytest.param(Ending.CUT, [Fault.delay(each=0.3), Fault.bad_json(after=2)], True, None, id="a spoilt event"),
        pytest.param(Ending.CUT, [Fault.cut(after=3)], True, None, id="a cut stream"),
        pytest.param(Ending.REJECTED, [Fault.status(400)], False, None, id="a refusal"),
        pytest.param(Ending.UNSERVED, [Fault.status(401)], False, None, id="nobody"),
        pytest.param(Ending.WRONG, [], False, "something else", id="a wrong answer"),
        pytest.param(Ending.WRONG, [], True, "something else", id="a wrong stream"),
        pytest.param(Ending.WRONG, [Fault.cut(after=1)], True, "nothing like it was asked", id="a wrong cut stream"),
    ],
)
def test_every_ending_is_told_from_the_others(
    ending: Ending, script: list[Fault], stream: bool, text: str | None
) -> None:
    """A right answer, a part of one, a refusal, an error and a wrong answer each count as what they are."""
    assert asyncio.run(_asked(script, stream=stream, text=text)).ending is ending


def test_the_fence_sees_what_the_router_s_own_transport_does() -> None:
    """A provider that is not one of the drill's servers cannot be reached: the fence stands where the router dials."""

    async def dial() -> tuple[Ending, int]:
        async with FaultServer() as server:
            config = {**ALONE, "providers": {"only": {"kind": "openai_compatible", "base_url": server.base_url}}}
            async with SmartModelRouter.from_config(config) as router:
                asked = await ask(router, body_of(1, "smart"), stream=False, timeout=5.0, grace=1.0)
            return asked.ending, server.calls()

    with NetworkGuard() as fence:
        ending, calls = asyncio.run(dial())
    assert (ending, calls) == (Ending.UNSERVED, 0)
    assert fence.refused


@pytest.mark.parametrize(
    ("leave", "where"),
    [
        (lambda one: one.sendto(b"?", ("192.0.2.1", 53)), "192.0.2.1:53"),
        (lambda one: one.sendmsg([b"?"], [], 0, ("192.0.2.1", 53)), "192.0.2.1:53"),
        (lambda _: socket.gethostbyname("api.example.com"), "api.example.com"),
        (lambda _: socket.gethostbyname_ex("api.example.com"), "api.example.com"),
        (lambda _: socket.gethostbyaddr("192.0.2.1"), "192.0.2.1"),
        (lambda _: socket.getnameinfo(("192.0.2.1", 53), 0), "192.0.2.1"),
    ],
    ids=["sendto", "sendmsg", "gethostbyname", "gethostbyname_ex", "gethostbyaddr", "getnameinfo"],
)
def test_no_packet_and_no_question_gets_out(leave: Callable[[socket.socket], object], where: str) -> None:
    """Nor does what needs no connection: a packet, or a question for a name or an address."""
    with (
        socket.socket(type=socket.SOCK_DGRAM) as one,
        NetworkGuard() as fence,
        pytest.raises(PermissionError, match=where),
    ):
        leave(one)
    assert fence.refused == [where]


def test_a_mistake_in_the_configuration_is_told_as_one() -> None:
    """Exit code 3 and one line, as everywhere: no scenario is played."""
    wrong = {**ALONE, "providers": {"only": {"kind": "openai_compatibel"}}}
    done = smr_chaos(wrong, "--scenario", "one_500")
    assert (done.returncode, done.stdout) == (3, "")
    assert "openai_compatible" in done.stderr


def test_a_connection_elsewhere_is_refused_and_remembered() -> None:
    """Within the fence only the ports it knows can be reached; outside of it all is as before."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
        fence = NetworkGuard()
        with fence:
            with pytest.raises(PermissionError, match=f"127.0.0.1:{address[1]}"):
                socket.create_connection(address)
            with pytest.raises(PermissionError, match=r"api\.example\.com"):
                socket.getaddrinfo("api.example.com", 443)
            fence.ports.add(address[1])
            socket.create_connection(address).close()
        fence.ports.clear()
        socket.create_connection(address).close()
    assert fence.refused == [f"127.0.0.1:{address[1]}", "api.example.com"]
