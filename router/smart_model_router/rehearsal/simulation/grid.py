"""The grid of docs/design/routing.md section 0a as data: fleets to serve no worse than a plain loop does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import product
from typing import Any, Literal, get_args

Kind = Literal["500", "502", "hang", "slow", "reset", "cut", "cut_buffered", "empty", "529", "429", "mixed"]
"""The kinds of failing calls (see grid_provider.py). `cut_buffered` cuts after content and exists for streams only."""
Layout = Literal["tiers", "tier"]
"""One target a tier, or every target in one tier with the strategy `ordered`."""

SHARES = (0.02, 0.05, 0.10, 0.20, 0.30, 0.40, 0.60)
RATES = (1, 5, 20)
DEADLINES = (30, 600)
NAMES = "abc"
"""The providers, in written order."""
LATE_KINDS: frozenset[Kind] = frozenset({"hang", "slow", "mixed"})
"""Kinds of which some failure takes longer than a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """Providers fail every call during `seconds` of each `period`, from `start` on. One outage if `period` is None.

    Seconds, counted from the beginning. `together`: all providers at once, otherwise each in a phase of its own.
    `hinted`: each failure is a 429 that names the end, otherwise a 500.
    """

    seconds: float
    period: float | None = None
    start: float = 0.0
    together: bool = True
    hinted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """The first provider answers so many `calls` in each window of `seconds`; a 429 names the end of the window.

    `everywhere`: the other providers do so, too.
    """

    calls: int
    seconds: float
    everywhere: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One fleet and one load. `shares` is the share of calls that fail at each provider, in written order.

    `rate` is requests per second (Poisson arrivals); `deadline` and `answer` are seconds.
    """

    kind: Kind
    shares: tuple[float, ...]
    stream: bool = False
    rate: int = 5
    deadline: int = 30
    layout: Layout = "tiers"
    answer: float = 1.0
    outage: Outage | None = None
    quota: Quota | None = None
    label: str = ""

    @property
    def name(self) -> str:
        """Its name, as `2x500-30%-whole-5/s-30s`; a cell with a label is named by it."""
        if self.label:
            return self.label
        shares = "+".join(f"{share:.0%}" for share in dict.fromkeys(self.shares))
        form = "stream" if self.stream else "whole"
        layout = "-tier" if self.layout == "tier" else ""
        return f"{len(self.shares)}x{self.kind}-{shares}-{form}-{self.rate}/s-{self.deadline}s{layout}"

    @property
    def providers(self) -> tuple[str, ...]:
        """The providers' names, in written order."""
        return tuple(NAMES[: len(self.shares)])

    @property
    def recovery(self) -> str | None:
        """The recovery policy that its requests ask for."""
        return "buffered" if self.kind == "cut_buffered" else None

    @property
    def judges_first_choice(self) -> bool:
        """At most half fails, each failure comes within a second, and there is neither an outage nor a quota."""
        quick = max(self.shares) <= 0.5 and self.kind not in LATE_KINDS
        return quick and self.outage is None and self.quota is None

    @property
    def judged_from(self) -> float:
        """Seconds from the beginning: a provider's own word binds until then, which the loop does not obey."""
        binds = self.outage is not None and self.outage.hinted and self.outage.period is None
        return self.outage.start + self.outage.seconds if binds and self.outage is not None else 0.0

    def config(self, slots: int) -> dict[str, Any]:
        """The router's configuration: shipped defaults, `slots` calls in flight per provider, no last resort."""
        targets = [f"{name}/big" for name in self.providers]
        tiers = [targets] if self.layout == "tier" else [[target] for target in targets]
        return {
            "version": 1,
            "providers": {
                name: {
                    "kind": "openai_compatible",
                    "base_url": f"http://{name}.simulated.invalid/v1",
                    "bulkhead": slots,
                }
                for name in self.providers
            },
            "models": {"smart": {"tiers": [{"targets": tier} for tier in tiers], "last_resort": []}},
            "routing": {"strategy": "ordered"} if self.layout == "tier" else {},
        }


def product_cells() -> Iterator[Cell]:
    """Every combination of the grid's dimensions, one target a tier."""
    dimensions = product((1, 2, 3), get_args(Kind), SHARES, (False, True), RATES, DEADLINES)
    for count, kind, share, stream, rate, deadline in dimensions:
        if stream or kind != "cut_buffered":
            yield Cell(kind=kind, shares=(share,) * count, stream=stream, rate=rate, deadline=deadline)


_WINDOW = Outage(seconds=20, start=30, hinted=True)
_BURST = Outage(seconds=5, period=30, together=False)
SPECIAL: tuple[Cell, ...] = (
    Cell(kind="500", shares=(0.0,), outage=_BURST, label="1xbursts-5/s-30s"),
    Cell(kind="500", shares=(0.0,) * 2, outage=_BURST, label="2xbursts-5/s-30s"),
    Cell(kind="500", shares=(0.0,) * 3, rate=20, outage=_BURST, label="3xbursts-20/s-30s"),
    Cell(kind="500", shares=(0.0,) * 2, outage=replace(_BURST, together=True), label="2xcorrelated-bursts-5/s-30s"),
    Cell(kind="500", shares=(0.0,) * 3, outage=replace(_BURST, together=True), label="3xcorrelated-bursts-5/s-30s"),
    Cell(kind="500", shares=(0.5, 0.0), rate=20, label="first-loses-half-20/s-30s"),
    Cell(kind="500", shares=(0.5, 0.0), layout="tier", label="first-loses-half-5/s-30s-tier"),
    Cell(kind="500", shares=(0.1,), answer=10.0, deadline=600, label="1x500-10%-answers-10s-5/s-600s"),
    Cell(kind="500", shares=(0.2,) * 2, answer=10.0, label="2x500-20%-answers-10s-5/s-30s"),
    Cell(kind="500", shares=(0.2,), answer=10.0, stream=True, rate=1, label="1x500-20%-answers-10s-stream-1/s-30s"),
    Cell(kind="500", shares=(0.8,), rate=20, label="1x500-80%-20/s-30s"),
    Cell(kind="500", shares=(0.9,), label="1x500-90%-5/s-30s"),
    Cell(
        kind="500", shares=(0.0,), answer=12.0, outage=Outage(seconds=60, start=30), label="1xaway-60s-answers-12s-30s"
    ),
    Cell(
        kind="500",
        shares=(0.0,) * 2,
        answer=12.0,
        outage=Outage(seconds=60, start=30),
        label="2xaway-60s-answers-12s-30s",
    ),
    Cell(kind="429", shares=(0.0,), outage=_WINDOW, label="1x429-window-20s-5/s-30s"),
    Cell(kind="429", shares=(0.0,) * 2, outage=_WINDOW, label="2x429-window-20s-5/s-30s"),
    Cell(kind="429", shares=(0.0,), quota=Quota(calls=55, seconds=10), label="1x429-quota-55-in-10s-5/s-30s"),
    Cell(kind="429", shares=(0.0,) * 2, quota=Quota(calls=30, seconds=10), label="2x429-quota-30-in-10s-5/s-30s"),
    Cell(
        kind="429",
        shares=(0.0,) * 2,
        quota=Quota(calls=60, seconds=60, everywhere=False),
        label="first-has-quota-60-in-60s-5/s-30s",
    ),
)


def _cell(
    count: int, kind: Kind, share: float, form: Literal["whole", "stream"], rate: int, deadline: int, layout: Layout
) -> Cell:
    shares = (share,) * count
    return Cell(kind=kind, shares=shares, stream=form == "stream", rate=rate, deadline=deadline, layout=layout)


NAMED: tuple[Cell, ...] = (
    *SPECIAL,
    _cell(1, "500", 0.05, "whole", 5, 30, "tiers"),
    _cell(1, "500", 0.30, "whole", 5, 30, "tiers"),
    _cell(1, "500", 0.30, "whole", 20, 600, "tiers"),
    _cell(1, "500", 0.60, "stream", 20, 30, "tiers"),
    _cell(2, "500", 0.10, "whole", 20, 30, "tiers"),
    _cell(2, "500", 0.30, "stream", 5, 30, "tier"),
    _cell(2, "500", 0.40, "whole", 5, 30, "tiers"),
    _cell(3, "500", 0.40, "whole", 20, 30, "tier"),
    _cell(3, "500", 0.60, "whole", 5, 30, "tiers"),
    _cell(1, "502", 0.20, "stream", 5, 30, "tiers"),
    _cell(2, "502", 0.40, "whole", 20, 30, "tiers"),
    _cell(3, "502", 0.30, "whole", 5, 600, "tier"),
    _cell(1, "hang", 0.05, "stream", 5, 30, "tiers"),
    _cell(1, "hang", 0.30, "whole", 5, 600, "tiers"),
    _cell(2, "hang", 0.10, "whole", 5, 30, "tiers"),
    _cell(2, "hang", 0.60, "stream", 5, 600, "tiers"),
    _cell(3, "hang", 0.20, "stream", 20, 30, "tier"),
    _cell(1, "slow", 0.30, "whole", 5, 30, "tiers"),
    _cell(2, "slow", 0.10, "stream", 5, 30, "tier"),
    _cell(2, "slow", 0.60, "whole", 5, 30, "tiers"),
    _cell(3, "slow", 0.40, "whole", 1, 600, "tiers"),
    _cell(1, "reset", 0.02, "whole", 5, 30, "tiers"),
    _cell(1, "reset", 0.40, "stream", 5, 600, "tiers"),
    _cell(2, "reset", 0.30, "whole", 20, 30, "tier"),
    _cell(3, "reset", 0.60, "whole", 5, 30, "tiers"),
    _cell(1, "cut", 0.30, "stream", 20, 30, "tiers"),
    _cell(2, "cut", 0.20, "stream", 5, 30, "tier"),
    _cell(3, "cut", 0.60, "whole", 5, 600, "tiers"),
    _cell(1, "cut_buffered", 0.30, "stream", 5, 30, "tiers"),
    _cell(2, "cut_buffered", 0.20, "stream", 20, 30, "tiers"),
    _cell(3, "cut_buffered", 0.60, "stream", 5, 600, "tier"),
    _cell(1, "empty", 0.30, "whole", 5, 30, "tiers"),
    _cell(2, "empty", 0.40, "stream", 5, 30, "tiers"),
    _cell(3, "empty", 0.20, "whole", 20, 600, "tier"),
    _cell(1, "529", 0.05, "whole", 1, 600, "tiers"),
    _cell(1, "529", 0.30, "whole", 20, 30, "tiers"),
    _cell(2, "529", 0.60, "stream", 5, 30, "tiers"),
    _cell(3, "529", 0.30, "whole", 5, 30, "tier"),
    _cell(1, "429", 0.05, "whole", 5, 30, "tiers"),
    _cell(1, "429", 0.30, "stream", 20, 30, "tiers"),
    _cell(2, "429", 0.40, "whole", 5, 600, "tiers"),
    _cell(3, "429", 0.30, "whole", 5, 30, "tier"),
    _cell(1, "mixed", 0.10, "whole", 5, 30, "tiers"),
    _cell(1, "mixed", 0.40, "stream", 5, 600, "tiers"),
    _cell(2, "mixed", 0.30, "whole", 20, 30, "tiers"),
    _cell(3, "mixed", 0.60, "stream", 5, 30, "tier"),
)
"""The cells of `make test`."""


def whole_grid() -> tuple[Cell, ...]:
    """Every cell: the product, then the named cells that are not in it."""
    cells = {cell.name: cell for cell in (*product_cells(), *NAMED)}
    return tuple(cells.values())


def select(cells: tuple[Cell, ...], pattern: str | None) -> tuple[Cell, ...]:
    """The cell of the whole grid with this name, else those of `cells` whose name matches or contains `pattern`.

    All of `cells` without a pattern.
    """
    if pattern is None:
        return cells
    named = tuple(cell for cell in whole_grid() if cell.name == pattern)
    return named or tuple(cell for cell in cells if fnmatchcase(cell.name, pattern) or pattern in cell.name)
