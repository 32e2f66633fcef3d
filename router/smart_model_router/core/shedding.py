"""Load shedding: above half of the providers OPEN, requests that said they can wait are turned away."""

from __future__ import annotations

from dataclasses import dataclass

from smart_model_router.core.checked_options import Options, Ratio, Seconds
from smart_model_router.domain.request import WAITING_CRITICALITIES, Criticality


@dataclass(frozen=True, slots=True, kw_only=True)
class SheddingConfig(Options):
    """Shedding starts strictly above `threshold` and stops after `calm` seconds at or below it."""

    threshold: Ratio = 0.5
    calm: Seconds = 5.0


class Shedding:
    """Whether the router sheds. `update` is told the share of OPEN providers, `sheds` answers for one request."""

    __slots__ = ("_calm_since", "_config", "active")

    def __init__(self, config: SheddingConfig | None = None) -> None:
        self._config = config or SheddingConfig()
        self._calm_since: float | None = None
        self.active = False

    @property
    def calm(self) -> float:
        """Seconds at or below the threshold after which it stops."""
        return self._config.calm

    def update(self, open_ratio: float, now: float) -> bool:
        """Take in the share of OPEN providers; True when shedding began or ended."""
        before = self.active
        if open_ratio > self._config.threshold:
            self._calm_since = None
            self.active = True
        elif self.active:
            self._calm_since = now if self._calm_since is None else self._calm_since
            self.active = now - self._calm_since < self._config.calm
        return self.active != before

    def sheds(self, criticality: Criticality) -> bool:
        """Whether a request of this criticality is turned away now."""
        return self.active and criticality not in WAITING_CRITICALITIES
