"""The studies behind tiers, the window of recency and the order of dates.

`python -m benchmarks.sources` prints what docs/adr/0011, 0012 and 0013 decide from. Every run prints the same.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import date

from benchmarks.sources.addresses import ADDRESSES
from benchmarks.sources.pages import AS_OF, PAGES, DatedPage
from htmldate import find_date

from smart_model_router_research.deep import domains, tiers
from smart_model_router_research.deep.claims import SourceTier
from smart_model_router_research.deep.dates import date_of
from smart_model_router_research.deep.days import written_day
from smart_model_router_research.deep.sources import DateConfidence, StoredDocument
from smart_model_router_scoring.decay import recency_decay

WINDOW = 183
Order = Callable[[DatedPage], str]


def tiers_of_addresses() -> None:
    """Print how many addresses each set of rules puts in their tier, above it and below it."""
    print("| rules | right | too high | too low |\n|---|---|---|---|")
    for name, judge in (
        ("A. every source is B", lambda _: SourceTier.B),
        ("B. suffixes of institutions", _by_suffix),
        ("C. a table of domains", _by_table),
        ("D. suffixes and table", lambda url: min(_by_table(url), _by_suffix(url), key=_TRUST_OF_RULES.index)),
        ("E. D, lowered by the kind of page", _by_all),
    ):
        found = Counter(_compared(judge(url), SourceTier(tier)) for url, tier in ADDRESSES.items())
        print(f"| {name} | {found['right']} | {found['too high']} | {found['too low']} |")


_TRUST_OF_RULES = [SourceTier.C, SourceTier.A, SourceTier.B]
"""A table's C counts before a suffix's A, and B is what no rule says more of."""


def _compared(found: SourceTier, wanted: SourceTier) -> str:
    return "right" if found is wanted else "too high" if found.is_at_least(wanted) else "too low"


def _by_suffix(url: str) -> SourceTier:
    suffix = domains.public_suffix(domains.host_of(url))
    return SourceTier.A if tiers.INSTITUTIONS.fullmatch(suffix) else SourceTier.B


def _by_table(url: str) -> SourceTier:
    parents = domains.parents_of(domains.host_of(url))
    return next((tiers.DOMAINS[domain][0] for domain in parents if domain in tiers.DOMAINS), SourceTier.B)


def _by_all(url: str) -> SourceTier:
    return tiers.tier_of_source(StoredDocument(id="", text="", sha256="", url=url), tiers.SourcePolicy()).tier


def days_of_pages() -> None:
    """Print how many pages have their day under each order of signals, and how many a gate would count in error."""
    logging.disable(logging.CRITICAL)
    print(
        "| day that recency counts from | right | wrong | none, rightly | none, missed | stale pages counted recent |"
    )
    print("|---|---|---|---|---|---|")
    for name, order in (
        ("A. Last-Modified first, then as E (founding)", _last_modified_first),
        ("B. path first, then as E", _path_first),
        ("C. htmldate, the newest date", lambda page: _htmldate(page, original=False)),
        ("D. htmldate, the first date", lambda page: _htmldate(page, original=True)),
        ("E. by confidence, then by signal; low is not counted", _ours),
        ("F. E, and low is counted", lambda page: _dated(page, low=True)),
    ):
        found = Counter(_judged(order(page), page) for page in PAGES)
        stale = sum(_is_recent(order(page)) and not _is_recent(page.dated) for page in PAGES)
        counts = (found[outcome] for outcome in ("right", "wrong", "rightly none", "missed"))
        print(f"| {name} | {' | '.join(map(str, counts))} | {stale} |")


def _judged(found: str, page: DatedPage) -> str:
    if not found:
        return "missed" if page.dated else "rightly none"
    return "right" if found == page.dated else "wrong"


def _is_recent(day: str) -> bool:
    return bool(day) and (AS_OF.date() - date.fromisoformat(day)).days <= WINDOW


def _dated(page: DatedPage, *, low: bool, headers: bool = True) -> str:
    dates = date_of(page.html, page.headers if headers else {}, page.url, AS_OF)
    dated = StoredDocument(id="", text="", sha256="", published=dates.published, modified=dates.modified).dated
    return dated.day if dated is not None and (low or dated.confidence is not DateConfidence.LOW) else ""


def _ours(page: DatedPage) -> str:
    return _dated(page, low=False)


def _last_modified_first(page: DatedPage) -> str:
    named = {name.lower(): value for name, value in page.headers.items()}
    written = written_day(named.get("last-modified"))
    return written.day.isoformat() if written is not None else _ours(page)


def _path_first(page: DatedPage) -> str:
    by_path = _ours(replace(page, html="", headers={}))
    return by_path or _ours(page)


def _htmldate(page: DatedPage, *, original: bool) -> str:
    return find_date(f" {page.html}", url=page.url, original_date=original, max_date=AS_OF) or ""


def windows() -> None:
    """Print which share of a year the newest edition of a source is recent, by its rhythm and by the window."""
    rhythms = {"weekly": 7, "monthly": 30, "quarterly": 91, "half-yearly": 182, "yearly": 365, "every two years": 730}
    lengths = (30, 90, WINDOW, 365)
    print(f"| editions | {' | '.join(f'{days} days' for days in lengths)} |\n|---|{'---|' * len(lengths)}")
    for name, every in rhythms.items():
        print(f"| {name} | {' | '.join(f'{min(1.0, (days + 1) / every):.0%}' for days in lengths)} |")


def gates() -> None:
    """Print what a gate of ten recent sources makes of mixtures of ages: counted in the window, and by summed decay."""
    mixtures: Mapping[str, Iterable[int]] = {
        "10 sources of today": [0] * 10,
        "10 sources of 183 days": [183] * 10,
        "10 sources of 184 days": [184] * 10,
        "9 of today, 1 of 184 days": [0] * 9 + [184],
        "21 sources of 184 days": [184] * 21,
        "160 sources of two years": [730] * 160,
    }
    print("| sources | in the window | passes | sum of decay | would pass | mean decay |\n|---|---|---|---|---|---|")
    for name, ages in mixtures.items():
        listed = list(ages)
        recent = sum(age <= WINDOW for age in listed)
        decayed = [recency_decay(age) for age in listed]
        passes, would = ("yes" if value >= 10 else "no" for value in (recent, sum(decayed)))
        print(f"| {name} | {recent} | {passes} | {sum(decayed):.1f} | {would} | {sum(decayed) / len(decayed):.2f} |")


if __name__ == "__main__":
    for study in (tiers_of_addresses, windows, gates, days_of_pages):
        study()
        print()
