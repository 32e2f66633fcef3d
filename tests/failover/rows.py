"""The rows of `make failoverbench`: primary, deadline, conditions, and the verdict on a played row. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from smart_model_router.rehearsal.chaos.scenario_context import Verdict
from tests.failover.script import ANSWER, OK, PREFILL_REFUSED, Answer, Refuse, Reset, Script, in_turn, switch_after

RECOVERY_SECONDS = 60.0
"""The primary of S15 is down for so long from its first call on."""


class End(StrEnum):
    """How a request ended for its client."""

    ANSWER = "answer"
    ERROR = "error"
    HANG = "hang"


@dataclass(frozen=True, slots=True)
class Reply:
    """The result of one request. `started`: seconds since the row's beginning."""

    end: End
    seconds: float
    started: float = 0.0
    text: str = ""
    error: str = ""
    model: str = ""
    has_usage: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """One call that reached an upstream. `at`: seconds on the upstream's clock; `served`: it sent the whole answer."""

    at: float
    served: bool = False


@dataclass(frozen=True, slots=True)
class Played:
    """Everything observed of a row. `next_served`: another model was served directly afterwards."""

    replies: Sequence[Reply]
    primary: Sequence[Call]
    fallback: Sequence[Call]
    next_served: bool = True

    @property
    def seconds(self) -> float:
        """From the row's beginning to the end of its last request."""
        return max(reply.started + reply.seconds for reply in self.replies)

    def primary_within(self, seconds: float) -> int:
        """Calls to the primary within so many seconds of the first one."""
        return sum(call.at - self.primary[0].at <= seconds for call in self.primary)

    def model(self) -> str:
        """The model that the last answer names."""
        return self.replies[-1].model


@dataclass(frozen=True, slots=True)
class Condition:
    """A check of a played row. `missed` is the report's text when it does not hold."""

    missed: str
    holds: Callable[[Played], bool]


@dataclass(frozen=True, slots=True)
class Row:
    """One failure. Each of its `requests` is sent `every_seconds` after the one before, with a deadline of its own."""

    name: str
    title: str
    primary: Script
    deadline_seconds: float
    required: tuple[Condition, ...] = ()
    advisory: tuple[Condition, ...] = ()
    error_is_ideal: bool = False
    fallback_refuses_prefill: bool = False
    requests: int = 1
    every_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict, and the reason when it is not a pass."""

    verdict: Verdict
    reason: str = ""


def judge(row: Row, played: Played) -> Judgement:
    """Judge a played row: hang, wrong answer, required conditions, error, advisory conditions, in this order."""
    if hung := sum(reply.end is End.HANG for reply in played.replies):
        return Judgement(Verdict.FAIL, f"{hung} of {row.requests} hung" if row.requests > 1 else "hung")
    for reply in played.replies:
        if reply.end is End.ANSWER and reply.text != ANSWER:
            return Judgement(Verdict.FAIL, f"{len(reply.text.split())} words shown as the answer")
    if missed := _missed(row.required, played):
        return Judgement(Verdict.FAIL, missed)
    if errors := [reply.error for reply in played.replies if reply.end is End.ERROR]:
        return Judgement(Verdict.PASS) if row.error_is_ideal else Judgement(Verdict.SAFE, f"an error: {errors[0]}")
    if row.error_is_ideal:
        return Judgement(Verdict.PARTIAL, "the error is the ideal")
    if missed := _missed(row.advisory, played):
        return Judgement(Verdict.PARTIAL, missed)
    return Judgement(Verdict.PASS)


def _missed(conditions: Sequence[Condition], played: Played) -> str:
    return ", ".join(condition.missed for condition in conditions if not condition.holds(played))


def _at_most(calls: int) -> Condition:
    return Condition(f"more than {calls} calls to the primary", lambda played: len(played.primary) <= calls)


def _at_most_within(calls: int, seconds: float) -> Condition:
    missed = f"more than {calls} calls to the primary within {seconds:g} s"
    return Condition(missed, lambda played: played.primary_within(seconds) <= calls)


def _done_within(seconds: float) -> Condition:
    return Condition(f"later than {seconds:g} s", lambda played: played.seconds <= seconds)


def _served_while_down(played: Played) -> bool:
    early = [reply for reply in played.replies if reply.started < RECOVERY_SECONDS]
    return all(reply.end is End.ANSWER for reply in early)


ASKED_ONCE = Condition("the primary was not called exactly once", lambda played: len(played.primary) == 1)
ASKED_AGAIN = Condition("the primary was not called again", lambda played: len(played.primary) > 1)
ASKED_AGAIN_IN_TIME = Condition(
    "the primary was not called again, or before 1.8 s",
    lambda played: len(played.primary) > 1 and played.primary[1].at - played.primary[0].at >= 1.8,
)
HAS_USAGE = Condition("no usage", lambda played: all(reply.has_usage for reply in played.replies))
NEXT_SERVED = Condition("the next request was not served", lambda played: played.next_served)
NO_PREFILL_ERROR = Condition(
    "the error is about a prefill that was refused",
    lambda played: not any(PREFILL_REFUSED in reply.error for reply in played.replies),
)
NAMES_THE_FALLBACK = Condition("`model` does not name the fallback", lambda played: "fb-ok" in played.model())
SERVED_WHILE_DOWN = Condition("a request of the first 60 s was not served", _served_while_down)
PRIMARY_IS_BACK = Condition(
    "the primary did not serve within 30 s of its recovery",
    lambda played: any(
        call.served and call.at - played.primary[0].at <= RECOVERY_SECONDS + 30 for call in played.primary
    ),
)

_OVERLOADED = Refuse(503, "The server is overloaded, try again later", "overloaded")
_TOO_LONG = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9631 tokens."

ROWS = (
    Row(
        "S01",
        "429 with Retry-After 2, then ok",
        in_turn(Refuse(429, "Rate limit reached", "rate_limit_exceeded", retry_after="2"), OK),
        20,
        required=(_at_most_within(2, 1.5),),
        advisory=(ASKED_AGAIN_IN_TIME,),
    ),
    Row(
        "S02",
        "always 429, no hint",
        in_turn(Refuse(429, "Rate limit reached", "rate_limit_exceeded")),
        40,
        required=(_at_most_within(4, 3), _at_most(6)),
    ),
    Row(
        "S03",
        "500, then ok",
        in_turn(Refuse(500, "Internal server error"), OK),
        20,
        advisory=(ASKED_AGAIN,),
    ),
    Row("S04", "always 503 overloaded", in_turn(_OVERLOADED), 40, required=(_at_most(6),)),
    Row("S05", "TCP reset, then ok", in_turn(Reset(), OK), 20),
    Row(
        "S06",
        "never answers",
        in_turn(Answer(delay_seconds=120, words=0)),
        130,
        required=(_done_within(100),),
        advisory=(ASKED_ONCE,),
    ),
    Row("S07", "first token after 20 s", in_turn(Answer(delay_seconds=20)), 60, advisory=(_done_within(15),)),
    Row("S08", "closes after 40 words", in_turn(Answer(words=40)), 40),
    Row(
        "S09",
        "silent after 20 words, closes 30 s later",
        in_turn(Answer(words=20, linger_seconds=30)),
        70,
        required=(_done_within(45), NEXT_SERVED),
    ),
    Row(
        "S10",
        "one event of broken JSON after 10 words",
        in_turn(Answer(broken_after=10)),
        30,
        required=(NEXT_SERVED,),
    ),
    Row(
        "S11",
        "finish reason and usage, no [DONE], stays open",
        in_turn(Answer(sends_done=False, linger_seconds=120)),
        30,
        required=(_done_within(8),),
        advisory=(HAS_USAGE,),
    ),
    Row(
        "S12",
        "400 context_length_exceeded",
        in_turn(Refuse(400, _TOO_LONG, "context_length_exceeded")),
        20,
        required=(ASKED_ONCE,),
    ),
    Row(
        "S13",
        "400 content_policy_violation",
        in_turn(Refuse(400, "Your request was rejected by our safety system", "content_policy_violation")),
        20,
        required=(ASKED_ONCE,),
        error_is_ideal=True,
    ),
    Row(
        "S14",
        "closes after 40 words; the fallback refuses prefill",
        in_turn(Answer(words=40)),
        40,
        required=(NO_PREFILL_ERROR,),
        fallback_refuses_prefill=True,
    ),
    Row(
        "S15",
        "503 for 60 s, then ok",
        switch_after(RECOVERY_SECONDS, _OVERLOADED, OK),
        30,
        required=(SERVED_WHILE_DOWN, PRIMARY_IS_BACK),
        requests=20,
        every_seconds=4,
    ),
    Row(
        "S16",
        "as S04, the answer's `model`",
        in_turn(_OVERLOADED),
        40,
        required=(NAMES_THE_FALLBACK, _at_most(6)),
        advisory=(HAS_USAGE,),
    ),
)
