"""Strategic discovery: capabilities whose tools are in use already, and more so those of the same neighbourhood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_model_router_scoring.explain import Term, combined, given
from smart_model_router_scoring.notes import Notes
from smart_model_router_scoring.options import check_number
from smart_model_router_scoring.tools.suggestion import Suggestions, ranked

if TYPE_CHECKING:
    from collections.abc import Iterable

    from smart_model_router_scoring.tools.incidence import IncidenceStore
    from smart_model_router_scoring.tools.spectral import SpectralClusters


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveryConfig:
    """The addition for the same spectral cluster, as a share of the overlap: 0.5 is half as much again."""

    boost: float = 0.5

    def __post_init__(self) -> None:
        check_number("boost", self.boost, 0, 10)


DEFAULT = DiscoveryConfig()


def discover(
    context: Iterable[str],
    store: IncidenceStore,
    clusters: SpectralClusters,
    config: DiscoveryConfig = DEFAULT,
    *,
    limit: int | None = None,
) -> Suggestions:
    """Rank capabilities by overlap x (1 + boost); `raw` ranks, `score` is at most 1.

    The overlap is the share of the capability's tools that the context has; the boost counts when the capability is
    in a cluster that a tool of the context is in, so one tool more in the context never lowers a score. Capabilities
    without overlap are not suggested. `clusters` may be older than the store: what they do not know has no boost.
    """
    notes = Notes()
    used = set(context)
    active = {clusters.tools[tool] for tool in used if tool in clusters.tools}
    overlaps = {name: store.overlap(name, used) for name in store.capabilities}
    for name, tools in store.capabilities.items():
        if not tools:
            notes.add("capability_without_tools", name)

    def boost(name: str) -> float:
        return config.boost if clusters.capabilities.get(name) in active else 0.0

    def explain(name: str) -> Term:
        factor = combined("factor", "sum", [given("one", 1.0), given("boost", boost(name))])
        return combined("discovery", "product", [given("overlap", overlaps[name]), factor])

    scores = {name: overlap * (1.0 + boost(name)) for name, overlap in overlaps.items() if overlap > 0}
    return ranked(scores, limit, explain, notes)
