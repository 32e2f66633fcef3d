"""The tool that probably comes next: what followed before, what belongs together, what was in use today."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass
from heapq import nsmallest
from itertools import islice
from operator import itemgetter
from types import MappingProxyType
from typing import TYPE_CHECKING

from smart_model_router_scoring.explain import Term, combined, given
from smart_model_router_scoring.notes import Notes
from smart_model_router_scoring.options import check_count, check_number, check_positive, is_number
from smart_model_router_scoring.tools.suggestion import Suggestions, ranked

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from smart_model_router_scoring.tools.communities import Communities
    from smart_model_router_scoring.tools.graph import ToolGraph


@dataclass(frozen=True, slots=True, kw_only=True)
class NextStepConfig:
    """The three weights, each of [0, 1], and for how many seconds a use is a recent one."""

    cooccurrence: float = 0.6
    community: float = 0.3
    recency: float = 0.1
    recency_seconds: float = 86_400.0

    def __post_init__(self) -> None:
        for field in ("cooccurrence", "community", "recency"):
            check_number(field, getattr(self, field), 0, 1)
        check_positive("recency_seconds", self.recency_seconds)


DEFAULT = NextStepConfig()


class Uses:
    """When each tool of a project was last used, in seconds of one clock. Not thread-safe.

    Kept in the order of time, so that asking for the recent ones looks at no others.
    """

    def __init__(self, last_used: Mapping[str, float] = MappingProxyType({})) -> None:
        self.notes = Notes()
        self._at: dict[str, float] = {}
        for tool, at in last_used.items():
            if is_number(at):
                self._at[tool] = float(at)
            else:
                self.notes.add("bad_time", tool, at)
        self._order = sorted((at, tool) for tool, at in self._at.items())

    def use(self, tool: str, at: float) -> None:
        """Take down a use; one that is older than the last is none. A time that is no finite number is noted."""
        if not is_number(at):
            self.notes.add("bad_time", tool, at)
            return
        last = self._at.get(tool, -math.inf)
        if at > last:
            if tool in self._at:
                del self._order[bisect_left(self._order, (last, tool))]
            self._at[tool] = float(at)
            insort(self._order, (float(at), tool))

    def after(self, instant: float) -> Iterator[str]:
        """The tools that were last used strictly after `instant`, the oldest use first."""
        return (tool for _, tool in self._order[bisect_right(self._order, instant, key=itemgetter(0)) :])

    def is_after(self, tool: str, instant: float) -> bool:
        """True when the last use of `tool` was strictly after `instant`."""
        return self._at.get(tool, -math.inf) > instant


def next_steps(
    current: str,
    graph: ToolGraph,
    communities: Communities,
    uses: Uses,
    now: float,
    config: NextStepConfig = DEFAULT,
    *,
    limit: int = 5,
) -> Suggestions:
    """The `limit` most probable tools after `current`, never `current` itself.

    A use less than `recency_seconds` before `now` is recent, one exactly so long ago is not, one in the future is. A
    tool that has nothing for it is not suggested.
    """
    check_count("limit", limit, 1)
    followers = graph.successors(current)
    since = now - config.recency_seconds
    group = communities.of.get(current)
    weigh = (config.cooccurrence, config.community, config.recency)

    def facts(tool: str) -> tuple[float, float, float]:
        together = group is not None and communities.of.get(tool) == group
        return followers.get(tool, 0.0), float(together), float(uses.is_after(tool, since))

    def score(tool: str) -> float:
        return math.fsum([weight * fact for weight, fact in zip(weigh, facts(tool), strict=True)])

    # Tools of the group that never followed score alike but for recency, which no weight makes worse: only the first
    # few ids of the recent ones, and the first few of all, can be among the best.
    known = set(followers) | {current}
    others = [tool for tool in communities.around(current) if tool not in known]
    known.update(islice((tool for tool in others if uses.is_after(tool, since)), limit))
    known.update(others[:limit])
    scores = {tool: score(tool) for tool in known - {current}}
    if sum(value > config.recency for value in scores.values()) < limit:
        for tool in nsmallest(limit, (tool for tool in uses.after(since) if tool not in known)):
            scores[tool] = score(tool)

    def explain(tool: str) -> Term:
        names = ("cooccurrence", "community", "recency")
        parts = [
            combined(name, "product", [given("weight", weight), given("value", value)])
            for name, weight, value in zip(names, weigh, facts(tool), strict=True)
        ]
        return combined("next_step", "sum", parts, after=current)

    return ranked({tool: score for tool, score in scores.items() if score > 0}, limit, explain, Notes())
