"""The rows that processes of one host share and that outlive them, and the rules for replacing one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from smart_model_router.domain.outcome import FailureClass, RestReason
from smart_model_router.domain.shared_state.clocks import ClockReading, Deadline, remaining
from smart_model_router.domain.shared_state.limits import BucketRow, BudgetRow
from smart_model_router.domain.shared_state.members import MemberRow
from smart_model_router.domain.shared_state.slots import SlotRow

BreakerKind = Literal["whole", "stream", "transport"]
SharedBreakerState = Literal["closed", "open", "half_open"]
OperatorWord = Literal["isolate", "enable"]

LEASE_SECONDS = 30.0
"""The length of a probe's lease; a holder that still probes renews it every third of that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerRow:
    """A breaker as all processes see it. `gen` grows with every change: a writer with an older one changes nothing.

    `until` is when its probe is due (open), or until when `holder` has the probe (half_open). `step` is how often the
    open time has grown. `provider` is its owner's: one probe at a time there, whichever of its breakers it is for.
    """

    owner: str
    kind: BreakerKind
    provider: str
    state: SharedBreakerState
    until: Deadline
    step: int = 0
    reason: str = ""
    holder: str = ""
    gen: int = 0

    @property
    def key(self) -> tuple[str, str]:
        """The key of the breaker."""
        return self.owner, self.kind


@dataclass(frozen=True, slots=True)
class KeptOpen:
    """The `seconds` until a breaker's probe is due. `step` is how often its open time has grown."""

    seconds: float
    step: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RestRow:
    """A cooldown, wait, wall or off period. `over` means that a success or the operator has ended it.

    `step` is how many there were in a row; `gen` grows with every change, as a breaker's.
    """

    owner: str
    reason: RestReason
    until: Deadline
    cause: FailureClass | None = None
    hinted: bool = False
    step: int = 0
    over: bool = False
    gen: int = 0

    @property
    def key(self) -> tuple[str, str]:
        """The key of the rest."""
        return self.owner, self.reason


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRow:
    """A recent call of a target: what remains of statistics after a restart. `anew`: nothing before it counts."""

    target: str
    at: ClockReading
    failure: FailureClass | None
    stream: bool
    seconds: float
    ttft_seconds: float | None = None
    completion_tokens: int | None = None
    anew: bool = False


@dataclass(frozen=True, slots=True)
class Isolation:
    """A target that the operator isolated.

    `by` names the operator, `since` is in seconds since the epoch, `why` is the reason ("" where none was given).
    """

    target: str
    by: str
    since: float
    why: str

    @property
    def told(self) -> str:
        """The operator and the reason, in words."""
        return f"by {self.by}: {self.why}" if self.why else f"by {self.by}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRow:
    """The operator's newest command for a target, given at the instant `at`; `by` and `why` are as in Isolation.

    The row stays when the target is enabled: a process that missed it must not bring the old command back. `gen` grows
    with every change, as a breaker's.
    """

    target: str
    word: OperatorWord
    by: str
    why: str
    at: ClockReading
    gen: int = 0

    @property
    def isolation(self) -> Isolation | None:
        """The same for people; None when the target is enabled."""
        return Isolation(self.target, self.by, self.at.wall, self.why) if self.word == "isolate" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class MakerRow:
    """The target that made a thing kept at its provider (an answer, an item of one, a container), and for which key.

    `thing` is the SHA-256 of the thing's id, `target` is the shared key of the target, `owner` marks the caller's key
    ("" for a caller without one), `at` is in seconds since the epoch.
    """

    thing: bytes
    target: str
    owner: str
    at: float


@dataclass(frozen=True, slots=True)
class SharedView:
    """Everything shared at one instant. A limit is as it was last written, without its refill since then."""

    breakers: tuple[BreakerRow, ...] = ()
    rests: tuple[RestRow, ...] = ()
    limits: tuple[BucketRow, ...] = ()
    words: tuple[OperatorRow, ...] = ()
    budgets: tuple[BudgetRow, ...] = ()
    slots: tuple[SlotRow, ...] = ()
    members: tuple[MemberRow, ...] = ()


@dataclass(frozen=True, slots=True)
class Restored:
    """The state at the start of a process: the view, and the newest calls of each target, oldest first."""

    view: SharedView = SharedView()
    calls: tuple[CallRow, ...] = ()


@dataclass(frozen=True, slots=True)
class Changes:
    """The rows that one process wants to write."""

    breakers: tuple[BreakerRow, ...] = ()
    rests: tuple[RestRow, ...] = ()
    calls: tuple[CallRow, ...] = ()
    words: tuple[OperatorRow, ...] = ()
    makers: tuple[MakerRow, ...] = ()
    members: tuple[MemberRow, ...] = ()


@dataclass(frozen=True, slots=True)
class Claim:
    """The probes that were granted. None: another process holds one, and `view` names it."""

    granted: tuple[BreakerRow, ...]
    view: SharedView


class SharedStateError(Exception):
    """The shared state cannot be read or written now; `reason` says why. Every process decides alone meanwhile."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def is_due(row: BreakerRow, here: ClockReading) -> bool:
    """True when a probe may be taken: the open time, or the lease of its last holder, is over."""
    return row.state != "closed" and remaining(row.until, here, math.inf) <= 0


def accepts_breaker(known: BreakerRow | None, new: BreakerRow, here: ClockReading) -> bool:
    """True when `new` may replace the known row: its writer knew the newest generation, and wrote in this boot.

    A store that lost its last writes counts its generations again, in a new boot: what a process decided before is
    about other rows.
    """
    return new.gen == 0 if known is None else new.gen == known.gen and new.until.boot == here.boot


def accepts_rest(known: RestRow | None, new: RestRow, here: ClockReading) -> bool:
    """True when `new` may replace the known rest.

    A writer that knows the newest generation may write anything. Any writer may replace a guess by a hint, or lengthen
    a rest of the same kind; it may not end one.
    """
    if known is None:
        return not new.over
    if new.gen == known.gen:
        return True
    if new.over:
        return False
    if known.over or new.hinted != known.hinted:
        return known.over or new.hinted
    return remaining(new.until, here, math.inf) > remaining(known.until, here, math.inf)


def accepts_word(known: OperatorRow | None, new: OperatorRow, here: ClockReading) -> bool:
    """True when an operator's command may replace the known one: of the newest generation, or given later."""
    return known is None or new.gen == known.gen or is_later(new.at, known.at, here)


def is_later(one: ClockReading, other: ClockReading, here: ClockReading) -> bool:
    """True when `one` was after `other`. A reading of this boot is later than one of another boot."""
    if one.boot == other.boot:
        return one.ticks > other.ticks
    if here.boot in (one.boot, other.boot):
        return one.boot == here.boot
    return one.wall > other.wall


@dataclass(frozen=True, slots=True)
class SharedKeys:
    """The names of a target, its credential and its limits among processes: with 8 hex digits of a key's SHA-256."""

    target: str
    credential: str
    limits: str
    slots: str = ""
    """The name of its provider's bulkhead; "" where each process has its own."""
    slots_of_fleet: bool = False
    """True when the bulkhead is that of all machines, not of each."""


LONGEST_CHAIN = 67_108_864
"""Bytes of a conversation that is put in the place of a reference to its last answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptResponse:
    """The answer `id` as it was delivered, for the key that `owner` marks, and what it answered.

    `input` is the request's own list of items, what they refer to in its place, and `answer` the answer, both as JSON.
    `parent` is the kept answer that the request went on from.
    """

    id: str
    owner: str
    parent: str | None
    input: bytes
    answer: bytes

    @property
    def size(self) -> int:
        """Bytes, before they are compressed."""
        return len(self.input) + len(self.answer)
