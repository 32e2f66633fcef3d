"""A provider that does not answer: the connection dies, or lives and says nothing."""

from __future__ import annotations

import asyncio
import time

from smart_model_router.config.known_models import KnownTarget
from smart_model_router.rehearsal.chaos.scenario_context import ScenarioContext
from smart_model_router_providers.fault import Fault


async def reset_before_headers(arena: ScenarioContext) -> None:
    """The first choice resets every connection before its headers: the others serve, and it is left alone."""
    arena.strike(Fault.reset())
    began = time.monotonic()
    await arena.in_turn(20)
    arena.find_spared(began)


async def never_answered(arena: ScenarioContext) -> None:
    """The first choice takes every question and never answers: within the timeout another does."""
    await _silent(arena, Fault.hang())


async def headers_then_nothing(arena: ScenarioContext) -> None:
    """The first choice sends good headers and then nothing: within the timeout another answers."""
    await _silent(arena, Fault.headers_only())


async def _silent(arena: ScenarioContext, fault: Fault) -> None:
    arena.strike(fault)
    began = time.monotonic()
    timeouts = arena.rules.timeouts
    *streamed, whole = await asyncio.gather(arena.ask(stream=True), arena.ask(stream=True), arena.ask())
    providers = arena.fleet.config.providers
    mentions = (mention for tier in arena.fleet.model.tiers for mention in tier.targets)
    thinks = any(KnownTarget(mention, providers[mention.provider].kind).reasoning.value for mention in mentions)
    head = timeouts.first_content_reasoning if thinks else timeouts.first_content
    _find_left(arena, "stream", max(asked.seconds for asked in streamed), head)
    # A request that no other target can answer waits as long as it may take.
    answer = timeouts.attempt_reasoning if thinks else timeouts.attempt
    _find_left(arena, "answer", whole.seconds, answer if arena.has_others else timeouts.total)
    if arena.has_others:
        await arena.in_turn(10)
    arena.find_spared(began)


def _find_left(arena: ScenarioContext, what: str, seconds: float, timeout: float) -> None:
    bound = timeout * len(arena.targets) + arena.slack
    arena.find(f"a silent {what} is left in time", seconds <= bound, f"{seconds:.2f} s, at most {bound:.2f} s")
