"""Plays rows against a gateway and against the loop, each over upstreams of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.failover.client import Target, ask_in_turn
from tests.failover.gateways import GATEWAYS, Plan, Send
from tests.failover.rows import End, Judgement, Played, Reply, Row, judge
from tests.failover.script import ANSWER, OK, Script, in_turn
from tests.failover.upstream import Upstream

NEXT = "next"
"""The model of the request that directly follows each row; its provider is well."""


@dataclass(frozen=True, slots=True)
class Result:
    """A played row and the judgement on it."""

    played: Played
    judgement: Judgement


async def play(
    rows: Sequence[Row], gateway: str = "defaults", *, shared: bool = False
) -> tuple[list[Result], list[Result]]:
    """Play the rows on one of `GATEWAYS` and on the loop, both at the same time; return their results in order.

    `shared`: one row after another over one pair of providers, instead of all at once with a pair for each.
    """
    async with _upstream(rows) as ours, _upstream(rows) as theirs:
        plan, loop_plan = await _plan(ours, rows, shared=shared), await _plan(theirs, rows, shared=shared)
        with GATEWAYS[gateway](plan) as send:
            return await asyncio.gather(
                _play_all(rows, ours, send, shared=shared),
                _play_all(rows, theirs, lambda model, seconds: ask_in_turn(loop_plan[model], seconds), shared=shared),
            )


def _upstream(rows: Sequence[Row]) -> Upstream:
    """The upstream with a primary and a fallback for each row, and the target of `NEXT`."""
    scripts: dict[str, Script] = {NEXT: in_turn(OK)}
    for row in rows:
        scripts |= {_primary(row): row.primary, _fallback(row): in_turn(OK)}
    return Upstream(scripts, frozenset(_fallback(row) for row in rows if row.fallback_refuses_prefill))


def _primary(row: Row) -> str:
    """The model name of a row's primary at its provider."""
    return f"{row.name}-primary"


def _fallback(row: Row) -> str:
    """The model name of a row's fallback at its provider."""
    return f"{row.name}-fb-ok" + ("-noprefill" if row.fallback_refuses_prefill else "")


async def _plan(upstream: Upstream, rows: Sequence[Row], *, shared: bool) -> Plan:
    """`shared`: one pair of providers for all rows, not one for each."""
    plan = {NEXT: [Target(await upstream.listen(), NEXT)]}
    pair = (await upstream.listen(), await upstream.listen()) if shared else None
    for row in rows:
        first, second = pair or (await upstream.listen(), await upstream.listen())
        plan[row.name] = [Target(first, _primary(row)), Target(second, _fallback(row))]
    return plan


async def _play_all(rows: Sequence[Row], upstream: Upstream, send: Send, *, shared: bool) -> list[Result]:
    if shared:
        played = [await _play(row, send) for row in rows]
    else:
        played = await asyncio.gather(*(_play(row, send) for row in rows))
    results = []
    for row, seen in zip(rows, played, strict=True):
        # Counted at the end of the run: a call that its request left behind counts, too.
        whole = replace(seen, primary=upstream.calls[_primary(row)], fallback=upstream.calls[_fallback(row)])
        results.append(Result(whole, judge(row, whole)))
    return results


async def _play(row: Row, send: Send) -> Played:
    async def request(started: float) -> Reply:
        await asyncio.sleep(started)
        return replace(await send(row.name, row.deadline_seconds), started=started)

    replies = await asyncio.gather(*(request(number * row.every_seconds) for number in range(row.requests)))
    after = await send(NEXT, row.deadline_seconds)
    return Played(replies, (), (), next_served=after.end is End.ANSWER and after.text == ANSWER)
