"""The part of `smr doctor` about the server on which machines share their state."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from smart_model_router.assembly import server_rows
from smart_model_router.cli.doctor_finding import DoctorFinding
from smart_model_router.config.server_urls import shown_url
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.shared_state import ClockReading, MemberRow, SharedStateError, is_member
from smart_model_router_stats.row_server import LONGEST_ROUND_TRIP, RowExchange
from smart_model_router_stats.server_rows import AttemptTables, KnownRows

if TYPE_CHECKING:
    from smart_model_router.config import StoreConfig
    from smart_model_router_stats.row_server import RowAnswer, RowServer, ServerFacts

_TOPIC = "shared state"
_ALONE = "each process decides alone"
_PATIENCE = 5.0
_TRIPS = 3


def shared_server_findings(store: StoreConfig) -> list[DoctorFinding]:
    """The server's version, round trip, clock and members, and what of its settings loses shared state."""
    url = "" if store.shared_url is None else shown_url(store.shared_url.reveal())
    try:
        connect = server_rows(store)
        facts, answer, trip, ahead = asyncio.run(_asked(connect()))
    except (ConfigurationError, SharedStateError, TimeoutError) as error:
        reason = error.message if isinstance(error, ConfigurationError) else f"{url}: {str(error) or 'no answer'}"
        return [DoctorFinding("problem", _TOPIC, f"{reason.rstrip('.')}: {_ALONE}")]
    members = _members(answer)
    machines = len({member.machine for member in members})
    standing = (
        f"{url}: {facts.version}, round trip {1000 * trip:.1f} ms, its clock is {abs(ahead):.2f} s "
        f"{'ahead of' if ahead >= 0 else 'behind'} ours; "
        f"namespace {store.namespace}: {_count(len(members), 'process')} on {_count(machines, 'machine')}"
    )
    far = trip > LONGEST_ROUND_TRIP
    found = [
        DoctorFinding("problem" if far else "ok", _TOPIC, f"{standing}: too far away: {_ALONE}" if far else standing)
    ]
    versions = sorted({member.version for member in members if member.version})
    if len(versions) > 1:
        found.append(DoctorFinding("note", _TOPIC, f"its processes are of several versions: {', '.join(versions)}"))
    return [*found, *(DoctorFinding("warning", _TOPIC, warning) for warning in facts.warnings)]


async def _asked(server: RowServer) -> tuple[ServerFacts, RowAnswer, float, float]:
    """Its facts, its rows, the shortest round trip, and how far its clock is ahead of ours."""
    try:
        async with asyncio.timeout(_PATIENCE):
            facts = await server.facts()
            asked = RowExchange(since=-1, epoch="", fresh="doctor")
            answer = await server.exchange(asked)
            measured = []
            for _ in range(_TRIPS):
                sent, wall = time.monotonic(), time.time()
                at = (await server.exchange(asked)).at
                trip = time.monotonic() - sent
                measured.append((trip, at - wall - trip / 2))
            return facts, answer, *min(measured)
    finally:
        with suppress(SharedStateError):
            await server.aclose()


def _count(number: int, what: str) -> str:
    """A number of things."""
    many = f"{what}es" if what.endswith("s") else f"{what}s"
    return f"{number} {what if number == 1 else many}"


def _members(answer: RowAnswer) -> list[MemberRow]:
    known = KnownRows()
    known.take(answer.epoch, answer.news, answer.last, answer.rows, full=True)
    here = ClockReading(answer.epoch, answer.at, answer.at)
    return [member for member in AttemptTables(known).members() if is_member(member, here)]
