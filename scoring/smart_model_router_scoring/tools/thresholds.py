"""Adaptive thresholds: how sure a suggestion must be, learned for each kind of work from how accepted ones ended."""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import Literal

from smart_model_router_scoring.errors import ConfigError
from smart_model_router_scoring.options import check_count, check_number, is_number


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdConfig:
    """Where thresholds start, how far they go, and what moves them. Shares and scores are of [0, 1]."""

    start: float = 0.70
    low: float = 0.40
    high: float = 0.90
    step: float = 0.05
    window: int = 50
    """The latest records that count."""
    min_records: int = 20
    """Records a window must hold before it moves anything, or speaks for its context."""
    every: int = 10
    """A threshold may move at each such record."""
    max_false_positives: float = 0.2
    """A larger share of the window that was accepted and ended badly raises the threshold."""
    max_false_negatives: float = 0.3
    """A larger share of the window that was rejected and would have been right lowers it."""
    max_contexts: int = 1_000
    """Contexts remembered; beyond, the one with the oldest latest record is forgotten."""

    def __post_init__(self) -> None:
        for field in ("start", "low", "high", "step", "max_false_positives", "max_false_negatives"):
            check_number(field, getattr(self, field), 0, 1)
        for field in ("window", "min_records", "every", "max_contexts"):
            check_count(field, getattr(self, field), 1)
        if not self.low <= self.start <= self.high:
            raise ConfigError("start", self.start, f"a number from low, {self.low}, to high, {self.high},")
        if self.min_records > self.window:
            raise ConfigError("min_records", self.min_records, f"a whole number of at most window, {self.window},")


@dataclass(frozen=True, slots=True)
class ThresholdContext:
    """The kind of work a threshold is for."""

    workflow_type: str = ""
    domain: str = ""
    complexity: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """The result of a threshold: whether a score reaches it, its value, and its source."""

    accepted: bool
    threshold: float
    source: Literal["context", "global"]


class _Window:
    """The threshold of one kind of work and the records that move it."""

    __slots__ = ("count", "recent", "threshold")

    def __init__(self, config: ThresholdConfig) -> None:
        self.threshold = config.start
        self.recent: deque[tuple[bool, bool]] = deque(maxlen=config.window)
        self.count = 0

    def record(self, accepted: bool, good: bool, config: ThresholdConfig) -> None:
        self.recent.append((accepted, good))
        self.count += 1
        if self.count % config.every == 0 and len(self.recent) >= config.min_records:
            self._move(self._direction(config) * config.step, config)

    def _direction(self, config: ThresholdConfig) -> int:
        size = len(self.recent)
        if self.recent.count((True, False)) / size > config.max_false_positives:
            return 1  # before the other: a bad suggestion costs more than one that was not made
        return -1 if self.recent.count((False, True)) / size > config.max_false_negatives else 0

    def _move(self, by: float, config: ThresholdConfig) -> None:
        # Rounded: 0.70 and four steps of 0.05 are to be 0.90, not a rounding error beside it.
        self.threshold = min(max(round(self.threshold + by, 9), config.low), config.high)


class AdaptiveThresholdManager:
    """A threshold for each context, and a global one for those that have too few records of their own.

    Every record moves the global threshold too. Not thread-safe.
    """

    def __init__(self, config: ThresholdConfig | None = None) -> None:
        self._config = config if config is not None else ThresholdConfig()
        self._global = _Window(self._config)
        self._contexts: OrderedDict[ThresholdContext, _Window] = OrderedDict()

    def get_threshold(self, context: ThresholdContext | None = None) -> float:
        """The score that is enough in `context`; None asks for the global threshold."""
        return self._speaker(context)[0].threshold

    def decide(self, score: float, context: ThresholdContext | None = None) -> Decision:
        """Accept a score at or above the threshold. One that is no finite number is never enough."""
        window, source = self._speaker(context)
        return Decision(is_number(score) and score >= window.threshold, window.threshold, source)

    def record(self, *, accepted: bool, good: bool, context: ThresholdContext | None = None) -> None:
        """Count how a decision ended: `good` when the suggestion was right, or would have been had it been made."""
        self._global.record(accepted, good, self._config)
        if context is None:
            return
        window = self._contexts.pop(context, None)
        self._contexts[context] = window if window is not None else _Window(self._config)
        self._contexts[context].record(accepted, good, self._config)
        if len(self._contexts) > self._config.max_contexts:
            self._contexts.popitem(last=False)

    def _speaker(self, context: ThresholdContext | None) -> tuple[_Window, Literal["context", "global"]]:
        window = self._contexts.get(context) if context is not None else None
        if window is None or len(window.recent) < self._config.min_records:
            return self._global, "global"
        return window, "context"
