"""After a failure that neighbours may share: look elsewhere first (routing.md section 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from smart_model_router.core.selection.selector import Candidate
from smart_model_router.domain.outcome import FailureClass, NextTarget

_SHARED_CAUSES = frozenset(
    {FailureClass.SERVER_ERROR, FailureClass.OVERLOADED, FailureClass.TRANSPORT, FailureClass.TIMEOUT}
)
_NEAR = 0.1


def elsewhere_first(
    candidates: Sequence[Candidate], failed: Candidate, cause: FailureClass, health: Mapping[str, float]
) -> list[Candidate]:
    """The same candidates, those of another failure domain first when nearly as healthy as the best.

    Overload and transport faults belong to the provider: its other keys come last.
    """
    order = list(candidates)
    if cause in _SHARED_CAUSES and order:
        best = max(health[c.id] for c in order)
        order.sort(key=lambda c: c.domain == failed.domain or health[c.id] < best - _NEAR)
    if cause.policy.next is NextTarget.OTHER_PROVIDERS_FIRST:
        order.sort(key=lambda c: c.provider == failed.provider)
    return order
