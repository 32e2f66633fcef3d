"""The history of one request, with reasons: each attempt, each refusal, and the report of them all (`RouteReport`)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any

from smart_model_router.domain.fast_dataclass import quick
from smart_model_router.domain.outcome import Failure, FailureClass, Usage
from smart_model_router.domain.report_text import ProviderAdvice, headline, lines


@quick
@dataclass(frozen=True, slots=True)
class Attempt:
    """One call that reached a provider (or tried to). `failure_class` is None for a success; seconds are durations.

    `hedge`: it was made while another call was under way whose head was late; the slower of the two is CANCELLED, or
    TIMEOUT after long silence. `estimated`: the provider never said what it charges for a stream that broke off;
    `usage` is our least estimate. `code` is the provider's own, in lower case; `reason` why a connection failed. A
    provider that said when to come back is free `retry_after` seconds after the attempt, at `free_at` (epoch seconds).
    """

    target: str
    seconds: float
    failure_class: FailureClass | None = None
    message: str = ""
    status: int | None = None
    ttft_seconds: float | None = None
    usage: Usage | None = None
    cost_usd: float | None = None
    probe: bool = False
    estimated: bool = False
    hedge: bool = False
    code: str = ""
    reason: str = ""
    retry_after: float | None = None
    free_at: float | None = None


def failure_facts(failure: Failure, wall: Callable[[], float]) -> dict[str, Any]:
    """The fields of an Attempt that a failure fills. `wall` gives epoch seconds."""
    seconds = None if failure.wait is None else failure.wait.seconds
    return {
        "failure_class": failure.failure_class,
        "message": failure.message,
        "status": failure.status,
        "code": failure.code,
        "reason": failure.reason,
        "retry_after": seconds,
        "free_at": None if seconds is None else wall() + seconds,
    }


@quick
@dataclass(frozen=True, slots=True)
class ReportedRefusal:
    """A target that was not asked, and why. `retry_after` is seconds from the refusal, None when unknown.

    `free_at` is the end of these seconds, in seconds since the epoch.
    """

    target: str
    reason: str
    retry_after: float | None = None
    free_at: float | None = None


@dataclass(slots=True)
class StreamRecovery:
    """A stream that broke off after content, and its recovery. `to_target` is None while, or when, no target continued.

    `kept_characters` of text the caller has and keeps. `dropped_characters` arrived and were not delivered, or are void
    after a restart. `trimmed_characters` are repetitions by the next target, which the caller did not get twice.
    `trimmed_thinking_characters` are its thoughts, which do not belong behind the text that the caller has.
    `kept_thinking_characters` are thoughts that the caller has of the targets that broke off.
    """

    policy: str
    from_target: str
    failure_class: FailureClass
    kept_characters: int = 0
    dropped_characters: int = 0
    trimmed_characters: int = 0
    trimmed_thinking_characters: int = 0
    kept_thinking_characters: int = 0
    to_target: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "policy": self.policy,
            "from_target": self.from_target,
            "failure_class": self.failure_class.value,
            "to_target": self.to_target,
            "kept_characters": self.kept_characters,
            "dropped_characters": self.dropped_characters,
            "trimmed_characters": self.trimmed_characters,
            "trimmed_thinking_characters": self.trimmed_thinking_characters,
            "kept_thinking_characters": self.kept_thinking_characters,
        }


@dataclass(slots=True)
class RouteReport:
    """The history of one request, with reasons. Live while a stream runs, final when it ends.

    `fallback`: a target served in the place of the first choice. `ruled_out` maps each better target that did not serve
    to what ruled it out. After a recovery `target` is the last that served, and `usage` and `cost_usd` are of all
    attempts. `complete`: all of the answer that finished was delivered, in order and once, and of streams that broke
    off nothing but what `recoveries` name. `notes` are faults that did not end a stream (a missing terminator), and why
    an answer that was delivered is not complete (bytes that are not UTF-8). `choice` is the rank of `target` among the
    targets that could have served, 1 the first. `advice` says where each provider's settings stand, for remedies.
    `earlier` are the reports of the tries before, in order, where the SDK of a client retried.

    `str(report)` is one line in plain words: what happened, why, and what to do. `lines()` has the figures too.
    """

    request_id: str
    model: str
    requested_tier: str
    actual_tier: str | None = None
    target: str | None = None
    degraded: bool = False
    escalated: bool = False
    last_resort: bool = False
    fallback: bool = False
    complete: bool = False
    attempts: list[Attempt] = field(default_factory=list)
    refusals: list[ReportedRefusal] = field(default_factory=list)
    waited_seconds: float = 0.0
    seconds: float = 0.0
    ttft_seconds: float | None = None
    usage: Usage | None = None
    cost_usd: float | None = None
    malformed_events: int = 0
    notes: list[str] = field(default_factory=list)
    ruled_out: dict[str, str] = field(default_factory=dict)
    losses: list[str] = field(default_factory=list)
    recoveries: list[StreamRecovery] = field(default_factory=list)
    choice: int = 1
    advice: Mapping[str, ProviderAdvice] = field(default_factory=dict, repr=False, compare=False)
    earlier: list[RouteReport] = field(default_factory=list)

    def __str__(self) -> str:
        return headline(self)

    def lines(self) -> list[str]:
        """The request in plain words: one line as `str` has it, then a line for each attempt, refusal and loss."""
        return list(lines(self))

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        return f"<pre>{escape(chr(10).join(self.lines()))}</pre>"

    def add_up(self) -> None:
        """Set `usage` and `cost_usd` to the sums of all attempts: several had a part in the answer.

        The cost is None when the price of one of them is unknown.
        """
        billed = [attempt for attempt in self.attempts if attempt.usage is not None]
        used = [attempt.usage for attempt in billed if attempt.usage is not None]
        costs = [attempt.cost_usd for attempt in billed if attempt.cost_usd is not None]
        self.usage = Usage(
            sum(usage.prompt_tokens for usage in used),
            sum(usage.completion_tokens for usage in used),
            sum(usage.cached_prompt_tokens for usage in used),
        )
        self.cost_usd = sum(costs) if costs and len(costs) == len(billed) else None

    def to_dict(self) -> dict[str, Any]:
        """The report as plain JSON values."""
        return {**self._as_dict(), "earlier": [report._as_dict() for report in self.earlier]}

    def _as_dict(self) -> dict[str, Any]:
        """Return the report without those of earlier tries."""
        return {
            "request_id": self.request_id,
            "model": self.model,
            "target": self.target,
            "requested_tier": self.requested_tier,
            "actual_tier": self.actual_tier,
            "degraded": self.degraded,
            "escalated": self.escalated,
            "last_resort": self.last_resort,
            "fallback": self.fallback,
            "choice": self.choice,
            "complete": self.complete,
            "attempts": [
                {
                    "target": a.target,
                    "failure_class": a.failure_class.value if a.failure_class else None,
                    "message": a.message,
                    "status": a.status,
                    "code": a.code,
                    "seconds": round(a.seconds, 6),
                    "ttft_seconds": a.ttft_seconds,
                    "usage": _usage_dict(a.usage),
                    "cost_usd": a.cost_usd,
                    "probe": a.probe,
                    "hedge": a.hedge,
                    "estimated": a.estimated,
                }
                for a in self.attempts
            ],
            "refusals": [{"target": r.target, "reason": r.reason, "retry_after": r.retry_after} for r in self.refusals],
            "waited_seconds": round(self.waited_seconds, 6),
            "seconds": round(self.seconds, 6),
            "ttft_seconds": self.ttft_seconds,
            "usage": _usage_dict(self.usage),
            "cost_usd": self.cost_usd,
            "malformed_events": self.malformed_events,
            "notes": list(self.notes),
            "ruled_out": dict(self.ruled_out),
            "losses": list(self.losses),
            "recoveries": [recovery.to_dict() for recovery in self.recoveries],
        }

    def to_json(self) -> str:
        """The report as one line of JSON."""
        return json.dumps(self.to_dict(), separators=(",", ":"))


def _usage_dict(usage: Usage | None) -> dict[str, int] | None:
    if usage is None:
        return None
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cached_prompt_tokens": usage.cached_prompt_tokens,
    }
