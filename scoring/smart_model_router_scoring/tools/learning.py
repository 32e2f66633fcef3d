"""Thresholds and weights that learn: from how accepted suggestions ended, and from feedback."""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from dataclasses import dataclass
from operator import mul
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from smart_model_router_scoring.explain import sigmoid
from smart_model_router_scoring.options import ConfigError, Notes, check_count, check_number, check_positive, is_number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Adaptive thresholds: how sure a suggestion must be, learned for each kind of work from how accepted ones ended.


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdConfig:
    """The start and the range of thresholds, and the shares that move them. Shares and scores are of [0, 1]."""

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


# Weights learned online from feedback: logistic regression by AdaGrad, drawn towards the static weights.
#
# It learns in the shadow. The weights in use stay what they are until `promote` finds that the learned ones foretell
# the feedback better than the static ones, and `rollback` takes that back. The comparison is fair: either sum gets a
# slope and an offset that are learned alike, so only better *proportions* of the weights can win, and both are judged
# on each sample before anything learns from it.


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningConfig:
    """The rate of learning, the pull of the static weights, and the conditions of a promotion."""

    learning_rate: float = 0.1
    prior_strength: float = 0.001
    """The pull towards the static weights with each sample, as a share of the distance."""
    window: int = 200
    """The latest samples that shadow and static weights are compared on."""
    min_samples: int = 200
    """Samples before a promotion is possible."""
    margin: float = 0.01
    """By how much the mean log loss must be lower, in nats: less is chance."""

    def __post_init__(self) -> None:
        check_positive("learning_rate", self.learning_rate)
        check_number("prior_strength", self.prior_strength, 0, 1)
        check_count("window", self.window, 1)
        check_count("min_samples", self.min_samples, 1)
        check_number("margin", self.margin, 0)


@dataclass(frozen=True, slots=True)
class Promotion:
    """The result of a promotion of learned weights, and the figures that decided it: mean log losses of the window."""

    done: bool
    samples: int
    learned_loss: float
    static_loss: float


class _Logistic:
    """A logistic regression that AdaGrad fits. Its first coefficient is the offset: the input of that is 1."""

    __slots__ = ("_prior", "_squares", "coefficients")

    def __init__(self, prior: tuple[float, ...]) -> None:
        self._prior = prior
        self._squares = [0.0] * len(prior)
        self.coefficients = list(prior)

    def learn(self, inputs: tuple[float, ...], good: bool, rate: float, pull: float) -> float:
        """Foretell, then step. Returns the log loss of what was foretold."""
        coefficients, squares = self.coefficients, self._squares
        logit = math.fsum(map(mul, coefficients, inputs))
        error = sigmoid(logit) - good
        for index, value in enumerate(inputs):
            gradient = error * value + pull * (coefficients[index] - self._prior[index])
            if gradient:
                squares[index] += gradient * gradient
                coefficients[index] -= rate * gradient / math.sqrt(squares[index])
        # ln(1 + e^-z) for a sample that was good, ln(1 + e^z) for one that was not, without overflow.
        return max(-logit if good else logit, 0.0) + math.log1p(math.exp(-abs(logit)))


class _Judge:
    """The quality of a weighted sum's predictions of the feedback, once it has the best slope and offset."""

    __slots__ = ("_fit", "_losses")

    def __init__(self, window: int) -> None:
        self._fit = _Logistic((0.0, 1.0))
        self._losses: deque[float] = deque(maxlen=window)

    def observe(self, score: float, good: bool, rate: float) -> None:
        self._losses.append(self._fit.learn((1.0, score), good, rate, 0.0))

    @property
    def loss(self) -> float:
        """The mean log loss of the window; infinite before the first sample."""
        return math.fsum(self._losses) / len(self._losses) if self._losses else math.inf


class OnlineWeights:
    """Weights of a sum, such as those of `NextStepConfig`, with static values to begin with. Not thread-safe."""

    def __init__(self, static: Mapping[str, float], config: LearningConfig | None = None) -> None:
        if not static:
            raise ConfigError("static", static, "at least one weight")
        for name, weight in static.items():
            check_positive(f"static.{name}", weight)
        self._config = config if config is not None else LearningConfig()
        self._static = MappingProxyType({name: float(weight) for name, weight in static.items()})
        self._prior = tuple(self._static.values())
        self._whole = math.fsum(self._prior)
        self._shadow = _Logistic((0.0, *self._prior))
        self._learned_judge = _Judge(self._config.window)
        self._static_judge = _Judge(self._config.window)
        self._history: list[Mapping[str, float]] = [self._static]
        self._samples = 0
        self.notes = Notes()

    @property
    def active(self) -> Mapping[str, float]:
        """The weights in use: the static ones until a promotion, and again after its rollback."""
        return self._history[-1]

    @property
    def learned(self) -> Mapping[str, float]:
        """The weights that the shadow has learned: negative ones as 0, with the sum of the static ones."""
        return MappingProxyType(dict(zip(self._static, self._proportions(), strict=True)))

    def _proportions(self) -> Sequence[float]:
        above = [max(value, 0.0) for value in self._shadow.coefficients[1:]]
        total = math.fsum(above)
        if not total:  # nothing that counts was left
            return self._prior
        # At most the whole, which rounding could exceed: a configuration would refuse a weight just above 1.
        return [min(value / total * self._whole, self._whole) for value in above]

    def update(self, features: Mapping[str, float], *, good: bool) -> bool:
        """Learn from one suggestion: its features (0 to 1; one that is missing is 0) and whether it was right.

        False, with a note, for a feature that is no number of [0, 1] or has no weight: such a sample teaches nothing.
        """
        values = [features.get(name, 0.0) for name in self._static]
        if not all(is_number(value) and 0 <= value <= 1 for value in values):
            self.notes.add("bad_feature", detail=dict(features))
            return False
        if not features.keys() <= self._static.keys():
            self.notes.add("unknown_feature", detail=sorted(features.keys() - self._static.keys()))
            return False
        inputs = tuple(map(float, values))
        rate = self._config.learning_rate
        self._learned_judge.observe(math.fsum(map(mul, self._proportions(), inputs)), good, rate)
        self._static_judge.observe(math.fsum(map(mul, self._prior, inputs)), good, rate)
        self._shadow.learn((1.0, *inputs), good, rate, self._config.prior_strength)
        self._samples += 1
        return True

    def promote(self) -> Promotion:
        """Use the learned weights from now on, if there are samples enough and they foretell better by the margin."""
        learned, static = self._learned_judge.loss, self._static_judge.loss
        done = self._samples >= self._config.min_samples and learned <= static - self._config.margin
        if done:
            self._history.append(self.learned)
        return Promotion(done, self._samples, learned, static)

    def rollback(self) -> bool:
        """Use the weights from before the last promotion again; False when there is none to take back."""
        if len(self._history) == 1:
            return False
        self._history.pop()
        return True
