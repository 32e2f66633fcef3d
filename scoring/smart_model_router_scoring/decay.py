"""Times as they come, and the effect of age: half-lives and windows by domain (docs/design/scoring.md section 4)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from smart_model_router_scoring.options import Notes, check_choice, check_positive, is_number

DAY_SECONDS = 86_400.0


def epoch_seconds(time: object) -> float | None:
    """Seconds since 1970 of a datetime, a number, or text (ISO 8601, or `2023/5/2` with a time or without).

    A naive datetime, or text without an offset, is UTC. A number is seconds since 1970, from MILLISECONDS on
    milliseconds. None for everything else, and for what is outside the years 1 to 9999.
    """
    if isinstance(time, str):
        return _of_text(time.strip())
    if isinstance(time, datetime):
        return _of_datetime(time)
    if is_number(time):
        return _of_number(float(time))
    return None


def age_days(time: object, now: datetime) -> float | None:
    """Days from `time` to `now`, at least 0 (a time to come counts as now); None when `time` is no time."""
    at = epoch_seconds(time)
    present = _of_datetime(now)
    return None if at is None else max((present - at) / DAY_SECONDS, 0.0)


def is_future(time: object, now: datetime) -> bool:
    """True when `time` is a time, and after `now`."""
    at = epoch_seconds(time)
    return at is not None and at > _of_datetime(now)


def _of_number(value: float) -> float | None:
    seconds = value / 1000 if abs(value) >= MILLISECONDS else value
    return seconds if _FIRST <= seconds < _END else None


def _of_text(text: str) -> float | None:
    slashed = _SLASHED.fullmatch(text)
    if slashed is not None:
        year, month, day, clock = slashed.groups()
        text = f"{year}-{month:0>2}-{day:0>2}" + (f"T{clock:0>5}" if clock else "")
    try:
        return _of_datetime(datetime.fromisoformat(text))
    except ValueError:
        return None


def _of_datetime(time: datetime) -> float:
    # Not `timestamp()`: arithmetic on aware datetimes is exact, and the platform's calendar is not asked.
    aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return (aware - _EPOCH).total_seconds()


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECONDS = 1e11
"""Seconds until the year 5138, milliseconds from 1973 on: JavaScript and Java count in those."""
_FIRST = _of_datetime(datetime.min.replace(tzinfo=UTC))
_END = _of_datetime(datetime.max.replace(microsecond=0, tzinfo=UTC)) + 1
_SLASHED = re.compile(r"([0-9]{4})/([0-9]{1,2})/([0-9]{1,2})(?: (?:\([^()]*\) ?)?([0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?))?")
"""`2023/5/2` and `2023/05/02 (Tue) 9:05`, as logs of conversations have it."""


DOMAIN_RECENCY_DAYS: Mapping[str, int] = MappingProxyType(
    {
        "ai_ml": 90,
        "cloud_infrastructure": 180,
        "ai_software": 120,
        "programming_languages": 365,
        "academic_research": 730,
        "default": 183,
    }
)
"""Days in which a source of a domain counts as recent; its half-life too. Read-only."""
WINDOWS_PATH = ("evaluation", "deep_research", "recency_windows")
"""Where `evaluation.yaml` has windows of its own."""
MODES = ("binary", "decay")


def get_recency_window(domain: str = "default", *, config_windows: Mapping[str, int] | None = None) -> int:
    """The days of a domain: those of `config_windows`, else ours; of an unknown domain, those of `default`."""
    windows = {**DOMAIN_RECENCY_DAYS, **(config_windows or {})}
    return windows.get(domain, windows["default"])


def load_recency_windows(eval_config: object, notes: Notes | None = None) -> Mapping[str, int]:
    """Our windows with those of `eval_config` (the contents of `evaluation.yaml`) over them, read-only.

    Domains we do not know are added. A window that is not a whole number above 0, and a section that is not a mapping,
    is ignored, with a note (`bad_window`, `bad_section`).
    """
    told = notes if notes is not None else Notes()
    section: Any = eval_config
    for depth, key in enumerate(WINDOWS_PATH):
        section = section.get(key, {}) if isinstance(section, Mapping) else section
        if not isinstance(section, Mapping):
            told.add("bad_section", ".".join(WINDOWS_PATH[: depth + 1]), repr(section))
            section = {}
    windows = dict(DOMAIN_RECENCY_DAYS)
    for domain, days in section.items():
        if isinstance(days, int) and not isinstance(days, bool) and days > 0:
            windows[str(domain)] = days
        else:
            told.add("bad_window", domain, repr(days))
    return MappingProxyType(windows)


def recency_decay(
    age_days: float,
    *,
    half_life_days: float | None = None,
    domain: str = "default",
    config_windows: Mapping[str, int] | None = None,
) -> float:
    """0.5 ** (age / half-life): 1.0 at age 0 and below it, 0.5 at one half-life; 0.0 for an age that is no number.

    The half-life is the window of the domain unless it is given. Raises ConfigError for one that is not above 0.
    """
    half_life = get_recency_window(domain, config_windows=config_windows) if half_life_days is None else half_life_days
    check_positive("half_life_days", half_life)
    if not is_number(age_days):
        return 0.0
    return 1.0 if age_days <= 0 else math.pow(0.5, age_days / half_life)


def is_recent(age_days: float, window_days: float) -> bool:
    """True when a source is within the window, its last day included; False for an age that is no number."""
    return is_number(age_days) and age_days <= window_days


def recent_source_count(
    ages_days: Iterable[float], *, domain: str = "default", config_windows: Mapping[str, int] | None = None
) -> int:
    """The number of recent sources. This is always binary, whatever the mode of `recency_score`."""
    window = get_recency_window(domain, config_windows=config_windows)
    return sum(is_recent(age, window) for age in ages_days)


def recency_score(
    ages_days: Iterable[float],
    *,
    mode: str = "binary",
    domain: str = "default",
    config_windows: Mapping[str, int] | None = None,
) -> float:
    """The metric `recency` (0..1) of a set of sources: the share that is recent, or in mode `decay` the mean decay.

    0.0 for no sources. Raises ConfigError for another mode.
    """
    check_choice("recency_mode", mode, MODES)
    ages = list(ages_days)
    if not ages:
        return 0.0
    if mode == "binary":
        return recent_source_count(ages, domain=domain, config_windows=config_windows) / len(ages)
    return math.fsum(recency_decay(age, domain=domain, config_windows=config_windows) for age in ages) / len(ages)
