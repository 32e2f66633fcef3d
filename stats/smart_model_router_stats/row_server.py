"""The port of a server that keeps shared rows: it compares revisions and writes, and decides nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from smart_model_router.domain.shared_state import (
        BucketAsk,
        BucketGrant,
        BudgetAsk,
        CallRow,
        ClockReading,
        MakerRow,
        SlotAsk,
        SlotGrant,
    )

SCHEMA = 1
"""The version of what is kept on servers. A server with a newer one is neither read nor written."""
KEPT_SECONDS = 86_400.0
"""Rows are removed that long after their last write, or after the deadline that they hold."""
LONGEST_ROUND_TRIP = 0.2
"""Seconds. Of a server that is further away the time is not known well enough."""


@dataclass(frozen=True, slots=True)
class RowWrite:
    """The new text of the row `id`. The server removes it after `keep` seconds; None: never."""

    id: str
    text: str
    keep: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowExchange:
    """One question to the server. Nothing is written unless all conditions hold.

    The caller has seen the rows up to revision `since` (-1: none) of `epoch` ("": of none). A server whose clock has
    `stepped` begins a new epoch, which it names after `fresh`. `expected` are the revisions of rows (0: there is none
    of that id), `news` is the number of the newest change that others were told of; None: whichever. `tells`: others
    are to hear of these `writes`.
    """

    since: int
    epoch: str
    fresh: str
    stepped: bool = False
    expected: Mapping[str, int] = field(default_factory=dict)
    news: int | None = None
    writes: Sequence[RowWrite] = ()
    tells: bool = False
    calls: Sequence[CallRow] = ()
    makers: Sequence[MakerRow] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RowAnswer:
    """The answer. Not `done`: a condition did not hold, and nothing was written.

    `rows` are those of later revisions than `since`, the written ones included, as id, revision and text; all there are
    when it is `full`. `last` is the newest revision, `at` the server's time in seconds since the epoch of Unix.
    """

    done: bool
    epoch: str
    news: int
    last: int
    at: float
    full: bool
    rows: Sequence[tuple[str, int, str]]


@dataclass(frozen=True, slots=True)
class Leased:
    """The answer to a lease; no `grants`: the server has begun another epoch, and nothing was leased.

    The grant of a limit, budget or bulkhead whose row is of a later version of the router is None.
    """

    at: float
    grants: tuple[BucketGrant | SlotGrant | None, ...] | None


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """The name and version of a server, and each of its settings that loses shared state, in words."""

    version: str
    warnings: tuple[str, ...] = ()


class RowServer(Protocol):
    """A server, as one loop of one process speaks to it. Every method raises SharedStateError, and nothing else."""

    async def newest(self) -> tuple[str, int]:
        """The epoch and the number of the newest change that others were told of, ("", 0) where there is nothing."""
        ...

    async def exchange(self, asked: RowExchange) -> RowAnswer:
        """Write all of it or nothing, in one round trip."""
        ...

    async def lease(self, asks: Sequence[BucketAsk | BudgetAsk | SlotAsk], here: ClockReading, epoch: str) -> Leased:
        """Settle accounts with limits, budgets and bulkheads where their rows are held, in this order."""
        ...

    async def calls(self) -> Sequence[CallRow]:
        """The calls that are kept, oldest first."""
        ...

    async def makers(self, things: Sequence[bytes]) -> Sequence[MakerRow]:
        """The makers of these things, as far as they are known."""
        ...

    async def facts(self) -> ServerFacts:
        """Facts of the server, for people."""
        ...

    async def aclose(self) -> None:
        """Close the connections; safe to call twice."""
        ...
