"""The interfaces between the router and its surroundings, as protocols; testing.py has a fake of each.

Optional members have a protocol of their own, named `Supports...`: an adapter that has the member supports it, and
nothing else has to be declared. All of them are read once, when a router is made.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from smart_model_router.domain.events import AttemptFinished, Event
from smart_model_router.domain.fast_dataclass import quick
from smart_model_router.domain.outcome import NO_READING, Failure, LimitReading, Outcome, StreamEvent
from smart_model_router.domain.request import Dialect, Operation
from smart_model_router.domain.shared_state import (
    BreakerRow,
    BucketAsk,
    BucketGrant,
    BudgetAsk,
    Changes,
    Claim,
    KeptOpen,
    KeptResponse,
    MakerRow,
    Restored,
    SharedView,
    SlotAsk,
    SlotGrant,
)


class TimerHandle(Protocol):
    """A timer that can be called off."""

    def cancel(self) -> None:
        """Call it off; no-op once it fired."""
        ...


class Clock(Protocol):
    """Monotonic time and the only way to wait for it."""

    def now(self) -> float:
        """Monotonic seconds. Never the wall clock."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds` (>= 0)."""
        ...

    def call_at(self, when: float, callback: Callable[[], object]) -> TimerHandle:
        """Call `callback` once at the monotonic instant `when`, on the running loop."""
        ...


class Dice(Protocol):
    """The only source of chance."""

    def roll(self) -> float:
        """A number in [0, 1)."""
        ...


@quick
@dataclass(frozen=True, slots=True)
class ProviderCall:
    """One call to make. `payload` is what goes out (JSON bytes, `model` already the provider's own name).

    `body` is the caller's object, not to be changed. `credential` numbers the provider's credentials from 0.
    `connect_timeout` is in seconds; every other timeout is the router's affair. `headers` (lower-case names) take the
    place of the provider's own; `query` is the query string of the call. `operation` is another one than "create" only
    for a provider that names it (SupportsOperations); `thing` is the answer to retrieve or delete then.
    """

    dialect: Dialect
    model: str
    payload: bytes
    body: Mapping[str, Any]
    stream: bool = False
    credential: int = 0
    connect_timeout: float = 5.0
    headers: Mapping[str, str] = field(default_factory=dict)
    query: str = ""
    operation: Operation = "create"
    thing: str = ""


class ProviderStream(Protocol):
    """An open stream: the provider answered 200 and events follow.

    Iteration ends at the end of the transport, however it came; a cut is a last event of kind ERROR. It raises
    only on a bug.
    """

    @property
    def reading(self) -> LimitReading:
        """The rate limits in the response headers."""
        return NO_READING

    def __aiter__(self) -> AsyncIterator[StreamEvent]: ...

    async def aclose(self) -> None:
        """Give the connection back or drop it; safe to call twice and after cancellation."""
        ...


class PieceStream(ProviderStream, Protocol):
    """A stream whose pieces are awaited as they come and read by plain calls: a coroutine less for each of them.

    Optional: a stream with `next_piece` is read like this instead of being iterated. The `text` of its events is
    believed (see `StreamEvent`): None is always right.
    """

    @property
    def next_piece(self) -> Callable[[], Awaitable[bytes]]:
        """Awaits what comes next; b"" is the end of the transport."""
        ...

    def read(self, piece: bytes) -> Sequence[StreamEvent]:
        """The events that a piece completes, in order; after b"" nothing more is read."""
        ...

    def cut(self, error: Exception) -> StreamEvent:
        """The event of kind ERROR that what `next_piece` raised comes to. Raises it again when it is a bug."""
        ...


@runtime_checkable
class Provider(Protocol):
    """The access to one provider. Calls return failures as values and raise only on a bug (or cancellation)."""

    async def call(self, call: ProviderCall) -> Outcome:
        """Make the call and read the whole answer."""
        ...

    async def open_stream(self, call: ProviderCall) -> ProviderStream | Failure:
        """Make the call and return once the response head is there."""
        ...

    async def aclose(self) -> None:
        """Release every connection and process; safe to call twice."""
        ...


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A model in a provider's own list. `context_tokens` is the longest prompt it takes, None where it does not say."""

    id: str
    context_tokens: int | None = None


@runtime_checkable
class SupportsModels(Protocol):
    """A provider that can say which models it has."""

    async def models(self) -> Sequence[ListedModel] | Failure:
        """Ask for the list; returns within seconds."""
        ...


@dataclass(frozen=True, slots=True)
class PassedCall:
    """A request that passes through as it came. `path` begins with `/v1/`, `query` is without its question mark.

    `headers` (lower-case names) take the place of the provider's own. `body` is read once, by one task, and what it
    raises the call raises; it has `length` bytes, or as many as come (None). `deployment` is the model where the
    provider's URLs name one. `credential` and `connect_timeout` are those of ProviderCall.
    """

    path: str
    query: str
    headers: Mapping[str, str]
    body: AsyncIterator[bytes]
    length: int | None
    deployment: str = ""
    credential: int = 0
    connect_timeout: float = 5.0


class PassedReply(Protocol):
    """An answer (2xx) whose body is not read yet. `headers` have lower-case names; the body is decoded."""

    @property
    def status(self) -> int:
        """The HTTP status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """All of them."""
        ...

    @property
    def reading(self) -> LimitReading:
        """The limits that the headers tell."""
        ...

    async def next_piece(self) -> bytes | Failure:
        """The next bytes, as they come; b"" after the last. A body that ends too early is a Failure."""
        ...

    async def aclose(self) -> None:
        """Give the connection back or drop it, and read no more of the request's body; safe to call twice."""
        ...


@runtime_checkable
class SupportsPassthrough(Protocol):
    """A provider that takes requests of other paths than the dialects'."""

    async def pass_through(self, call: PassedCall) -> PassedReply | Failure:
        """Send the request once, at most; return once the head of the answer is there."""
        ...


@runtime_checkable
class SupportsDialects(Protocol):
    """A provider that names its dialects. Others are taken to speak those that the configuration gives their kind."""

    @property
    def dialects(self) -> frozenset[Dialect]:
        """The dialects of requests that it takes as they are; the router translates others to one of these."""
        ...


@runtime_checkable
class SupportsOperations(Protocol):
    """A provider with operations of Responses beside creating them: compact, count, retrieve, delete."""

    @property
    def operations(self) -> frozenset[Operation]:
        """The operations that a ProviderCall may ask for."""
        ...


@runtime_checkable
class SupportsKind(Protocol):
    """A provider that names its kind, which decides the headers of callers that it gets (forwarded_headers.py)."""

    @property
    def kind(self) -> str:
        """A kind of the catalog; for a provider without it, the configured kind counts."""
        ...


@runtime_checkable
class SupportsClientHeaders(Protocol):
    """A provider that sends some of the forwarded headers itself."""

    @property
    def client_headers(self) -> Mapping[str, str]:
        """Its own values by lower-case name, for the router to combine with those of callers."""
        ...


@runtime_checkable
class SupportsDroppedParams(Protocol):
    """A provider that removes fields of a body before it sends it."""

    @property
    def dropped_params(self) -> Collection[str]:
        """The names of the top-level fields; a request that has one is reported as changed."""
        ...


class StatsStore(Protocol):
    """A store of observations that outlives the process, never read by a request. As an EventSink it gets events."""

    def observe(self, observation: AttemptFinished) -> None:
        """Take one observation; returns at once."""
        ...

    async def aclose(self) -> None:
        """Write what is left."""
        ...


class StoreHealth(Protocol):
    """The condition of a store."""

    @property
    def reason(self) -> str:
        """The reason why observations do not reach it, "" while they do."""
        ...


@runtime_checkable
class SupportsStatus(Protocol):
    """A store that can be out of reach for a while."""

    @property
    def status(self) -> StoreHealth:
        """The condition at present."""
        ...

    def on_change(self, listener: Callable[[str], None]) -> None:
        """Call `listener` with the reason whenever the status changes; with "" when the store is within reach again."""
        ...


@runtime_checkable
class SupportsLossCount(Protocol):
    """A store that counts the observations that it gave up."""

    @property
    def stats_dropped(self) -> int:
        """The number so far."""
        ...


class SharedState(Protocol):
    """The state that the processes of one host share, and that outlives them.

    The request path asks it for a probe only and waits 20 ms at most; a process that begins to listen waits 100 ms at
    most. Every method but `aclose` raises SharedStateError when the state cannot be read or written, and nothing else.
    A write is done whole or not at all, also when the caller is cancelled.
    """

    def restore(self) -> Restored:
        """The state at the start of a process. Blocks, a quarter of a second at most."""
        ...

    def publish_now(self, changes: Changes) -> SharedView:
        """As `publish`, where no loop runs. Blocks, a quarter of a second at most."""
        ...

    async def poll(self) -> SharedView | None:
        """Everything, when others may have changed something since the last time; else None."""
        ...

    async def claim(self, rows: Sequence[BreakerRow]) -> Claim:
        """Take the probes of all these breakers (or of none) until the `until` of each."""
        ...

    async def renew(self, rows: Sequence[BreakerRow]) -> tuple[BreakerRow, ...]:
        """Extend leases to the `until` of each; those that are still held."""
        ...

    async def publish(self, changes: Changes) -> SharedView:
        """Write the changes that the rules of `shared_state` accept; return the present rows of those keys.

        A process that writes its own row is told of all members, limits and budgets.
        """
        ...

    async def makers(self, things: Sequence[bytes]) -> tuple[MakerRow, ...]:
        """The makers of things (by the SHA-256 of their ids) that are kept at providers, as far as they are known."""
        ...

    async def lease_slots(self, asks: Sequence[SlotAsk]) -> tuple[SlotGrant | None, ...]:
        """Lease slots of bulkheads for 30 s; None where only later versions can read what is leased."""
        ...

    async def lease(self, asks: Sequence[BucketAsk | BudgetAsk]) -> tuple[BucketGrant | None, ...]:
        """Lease tokens of limits and reserve in budgets, and give back what was not used: one transaction, in order.

        None for a limit or budget that only later versions can read: each process decides alone on that one.
        """
        ...

    async def aclose(self) -> None:
        """Let go of it; safe to call twice."""
        ...


@runtime_checkable
class SupportsTraffic(Protocol):
    """A shared state on a server, which says what its answers cost."""

    @property
    def round_trip(self) -> float | None:
        """Seconds that the newest answer took; None before the first one."""
        ...

    @property
    def conflicts(self) -> int:
        """The number of writes so far that had to be repeated, because another process wrote first."""
        ...


class ProbeLocks(Protocol):
    """A lock for each provider, which the processes of one machine have in common; it ends with its process.

    No method waits or raises: where there can be no locks, every process has them.
    """

    def take(self, provider: str) -> bool:
        """Take its lock; False when another process has it."""
        ...

    def left(self, provider: str) -> Mapping[str, KeptOpen]:
        """The open times of breakers, by name, that earlier holders left with a lock that this process has."""
        ...

    def let_go(self, provider: str, left: Mapping[str, KeptOpen]) -> None:
        """Give its lock back, and leave these open times with it."""
        ...

    def forget(self) -> None:
        """Drop all locks in a forked process: they are its parent's."""
        ...


class ResponseStore(Protocol):
    """Answers of Responses that the router made by translation, kept for requests that refer to them.

    Every method but `aclose` raises SharedStateError when they cannot be had, and nothing else.
    """

    @property
    def in_memory(self) -> bool:
        """True when the answers end with the process."""
        ...

    async def secret(self) -> bytes:
        """The secret under which the ids of these answers are made, the same in every process."""
        ...

    async def add(self, rows: Sequence[KeptResponse]) -> None:
        """Keep these, each after what it goes on from; one that is kept already stays as it is."""
        ...

    async def chain(self, response: str, owner: str, generations: int | None = None) -> tuple[KeptResponse, ...]:
        """An answer and those it goes on from, the newest first; () when it is not there, or another owner's.

        It ends early where one of them is not there any more, and after so many `generations`.
        """
        ...

    async def remove(self, response: str, owner: str) -> bool:
        """Forget an answer. False when it is not there, or another owner's."""
        ...

    async def aclose(self) -> None:
        """Let go of it; safe to call twice."""
        ...


@runtime_checkable
class EventSink(Protocol):
    """A receiver of events. It is called on a thread of its own, in order, behind a queue of 10,000 events.

    So it may block; one that raises, or falls behind, is isolated and counted.
    """

    def emit(self, event: Event) -> None:
        """Take one event."""
        ...


@runtime_checkable
class SupportsInline(Protocol):
    """A sink that can do without the thread."""

    @property
    def inline(self) -> bool:
        """True promises that `emit` returns at once: it is called on the router's loop, before the request goes on."""
        ...


@runtime_checkable
class SupportsSelection(Protocol):
    """A sink behind a queue that passes most events over."""

    def wants(self, event: Event) -> bool:
        """Return True for an event to be queued. Called on the router's loop: it returns at once."""
        ...


@runtime_checkable
class SupportsBatches(Protocol):
    """A sink behind a queue that handles several events together."""

    def caught_up(self) -> None:
        """Handle what was collected: the queue is empty. Called on the sink's thread."""
        ...


@runtime_checkable
class SupportsClose(Protocol):
    """A sink behind a queue that holds something open."""

    def close(self) -> None:
        """Release it: no further event comes. Called on the sink's thread."""
        ...
