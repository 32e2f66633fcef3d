"""Rate-limit headers: how their fields are read, and the header families by the names of the catalog."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeVar

from smart_model_router.domain.outcome import NO_READING, BucketReading, LimitReading
from smart_model_router_providers.catalog import KINDS, HeaderFamily

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_NUMBER = re.compile(r"\d{1,15}(?:\.\d{0,15})?|\.\d{1,15}", re.ASCII)
_PART = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)(ns|us|µs|ms|s|m|h|d)", re.ASCII)
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_LONGEST_TEXT = 64
_EARLIEST_EPOCH = 1e9
"""2001. A smaller number of seconds is a duration."""


def seconds(text: str) -> float | None:
    """`1.5`, `7.66s`, `120ms`, `6m0s`, `1h2m3s` (Go's durations; a bare number is seconds)."""
    text = text.strip()
    if not text or len(text) > _LONGEST_TEXT:
        return None
    if _NUMBER.fullmatch(text):
        return float(text)
    total, at = 0.0, 0
    while at < len(text):
        part = _PART.match(text, at)
        if part is None:
            return None
        total += float(part[1]) * _UNITS[part[2]]
        at = part.end()
    return total if math.isfinite(total) else None


def until(text: str, date_header: str | None) -> float | None:
    """Seconds from the response's own Date to the instant `text` (HTTP-date or RFC 3339); a past one is 0.

    The local clock is not asked: it may be hours off, and two dates by one clock differ rightly anyway. None
    without a readable Date.
    """
    instant = _instant(text)
    now = _instant(date_header or "")
    return max(0.0, (instant - now).total_seconds()) if instant is not None and now is not None else None


def until_epoch(text: str, date_header: str | None) -> float | None:
    """Seconds from the response's own Date to `text`, an instant in seconds or milliseconds since the epoch.

    A number too small to be an instant of this century is what it looks like: seconds.
    """
    number = seconds(text) if _NUMBER.fullmatch(text.strip()) else None
    if number is None or number < _EARLIEST_EPOCH:
        return number
    now = _instant(date_header or "")
    epoch = number / 1000.0 if number >= _EARLIEST_EPOCH * 1000 else number
    return None if now is None else max(0.0, epoch - now.timestamp())


def until_next_minute(date_header: str | None) -> float | None:
    """Seconds from the response's own Date to the next full minute of the clock; None without a readable Date."""
    now = _instant(date_header or "")
    return None if now is None else 60.0 - now.second


def _instant(text: str) -> datetime | None:
    text = text.strip()
    if not text or len(text) > _LONGEST_TEXT:
        return None
    for parse in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            found = parse(text)
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
        return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    return None


_T = TypeVar("_T")
_MOST_DIGITS = 15

MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0


class Fields:
    """The headers of one answer (lower-case names). `rejected` counts the fields that were there and made no sense."""

    __slots__ = ("headers", "rejected")

    def __init__(self, headers: Mapping[str, str]) -> None:
        self.headers = headers
        self.rejected = 0

    @property
    def date(self) -> str | None:
        """The answer's own clock."""
        return self.headers.get("date")

    def whole(self, name: str, *, least: int = 0) -> int | None:
        """A whole number of at least `least`."""
        return self._read(name, lambda text: whole(text, least=least))

    def duration(self, name: str) -> float | None:
        """A duration (see durations.seconds)."""
        return self._read(name, seconds)

    def instant(self, name: str) -> float | None:
        """Seconds to a date, by the answer's own clock; a past one is 0."""
        return self._read(name, lambda text: until(text, self.date))

    def duration_or_instant(self, name: str) -> float | None:
        """A duration, or seconds to a date (RFC 9110, Retry-After)."""

        def read(text: str) -> float | None:
            found = seconds(text)
            return until(text, self.date) if found is None else found

        return self._read(name, read)

    def epoch(self, name: str) -> float | None:
        """Seconds to an instant in seconds or milliseconds since the epoch."""
        return self._read(name, lambda text: until_epoch(text, self.date))

    def share(self, name: str) -> float | None:
        """A number from 0 up, 1 being all of it."""
        return self._read(name, seconds)

    def bucket(
        self,
        name: str,
        *,
        limit: str,
        remaining: str,
        reset: str,
        read_reset: Callable[[str], float | None],
        window_seconds: float | None = None,
    ) -> list[BucketReading]:
        """The bucket three header names speak of; none when they are absent, or when no figure in them is usable."""
        if limit not in self.headers and remaining not in self.headers and reset not in self.headers:
            return []
        full_in = read_reset(reset)
        if full_in is not None and full_in > DAY:  # no window is longer: it is in another unit, or made up
            full_in = None
            self.rejected += 1
        found = BucketReading(name, self.whole(limit, least=1), self.whole(remaining), full_in, window_seconds)
        unusable = found.limit is None and found.remaining is None
        only_reset = limit not in self.headers and remaining not in self.headers and found.reset_seconds is not None
        return [] if unusable and not only_reset else [found]

    def _read(self, name: str, read: Callable[[str], _T | None]) -> _T | None:
        text = self.headers.get(name)
        if text is None:
            return None
        value = read(text)
        self.rejected += value is None
        return value


def whole(text: str, *, least: int = 0) -> int | None:
    """A whole number of at least `least`, written in ASCII digits; None for anything else."""
    text = text.strip()
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        return None
    number = int(text)
    return number if number >= least else None


# OpenAI's headers: x-ratelimit-{limit,remaining,reset}-{requests,tokens,project-tokens}; reset is until full.
#
# Source: OpenAI, "Rate limits", "Rate limits in headers".
_OPENAI_NAMES = ("requests", "tokens", "project-tokens")


def _read_openai(fields: Fields) -> list[BucketReading]:
    """Every bucket the answer speaks of."""
    return _read_named(fields, {})


def _read_named(fields: Fields, windows: Mapping[str, float]) -> list[BucketReading]:
    """The same names, used by others as well: `windows` are the seconds of those that are not a minute's."""
    found: list[BucketReading] = []
    for name in _OPENAI_NAMES:
        found += fields.bucket(
            name.replace("-", "_"),
            limit=f"x-ratelimit-limit-{name}",
            remaining=f"x-ratelimit-remaining-{name}",
            reset=f"x-ratelimit-reset-{name}",
            read_reset=fields.duration,
            window_seconds=windows.get(name),
        )
    return found


# Azure's headers: OpenAI's names, with a window length, and -1 or 0 where nothing is metered.
#
# Source: Azure OpenAI and Foundry answers; x-rate-limit-reset-tokens (an extra dash) on a 429 is a wait, see waits.py.
# GitHub Models runs on Azure and has the same.


def _read_azure(fields: Fields) -> list[BucketReading]:
    """Every bucket that is metered."""
    windows = {name: fields.duration(f"x-ratelimit-renewalperiod-{name}") for name in _OPENAI_NAMES}
    buckets = _read_named(fields, {name: window for name, window in windows.items() if window})
    return [bucket for bucket in buckets if not _unmetered(fields, bucket.name)]


def _unmetered(fields: Fields, name: str) -> bool:
    """A limit that is no limit makes the other figures of its bucket sentinels too."""
    limit = fields.headers.get(f"x-ratelimit-limit-{name.replace('_', '-')}")
    return limit is not None and whole(limit, least=1) is None


# Groq's headers: OpenAI's names, but x-ratelimit-*-requests is always requests per DAY.
#
# Source: Groq docs, "Rate Limits": a reset of 86.4 s is the spacing of 1,000 requests a day, not a wait.


def _read_groq(fields: Fields) -> list[BucketReading]:
    """Requests of the day, tokens of the minute."""
    return _read_named(fields, {"requests": DAY})


# Mistral's headers: x-ratelimit-{limit,remaining}-{req,tokens}-minute, per model and minute of the wall clock.
#
# Source: answers of api.mistral.ai. There is no reset and no retry-after: the minute ends at :00 of the answer's Date.
_MISTRAL_NAMES = {"requests": "req", "tokens": "tokens"}


def _read_mistral(fields: Fields) -> list[BucketReading]:
    """Requests and tokens of the minute."""
    found: list[BucketReading] = []
    for name, theirs in _MISTRAL_NAMES.items():
        found += fields.bucket(
            name,
            limit=f"x-ratelimit-limit-{theirs}-minute",
            remaining=f"x-ratelimit-remaining-{theirs}-minute",
            reset="",
            read_reset=lambda _: until_next_minute(fields.date),
            window_seconds=MINUTE,
        )
    return found


# Cerebras's headers: x-ratelimit-{limit,remaining,reset}-{requests,tokens}-{minute,hour,day}; float seconds.
#
# Source: Cerebras docs, "Rate Limits". On a 200 only: what a 429 says nothing of is known from the answers before.
_CEREBRAS_WINDOWS = {"minute": MINUTE, "hour": HOUR, "day": DAY}


def _read_cerebras(fields: Fields) -> list[BucketReading]:
    """Requests and tokens of every window the answer speaks of."""
    found: list[BucketReading] = []
    for name in ("requests", "tokens"):
        for window, length in _CEREBRAS_WINDOWS.items():
            found += fields.bucket(
                name,
                limit=f"x-ratelimit-limit-{name}-{window}",
                remaining=f"x-ratelimit-remaining-{name}-{window}",
                reset=f"x-ratelimit-reset-{name}-{window}",
                read_reset=fields.duration,
                window_seconds=length,
            )
    return found


# OpenRouter's headers: X-RateLimit-{Limit,Remaining,Reset}, on refusals only; reset is in epoch milliseconds.
#
# Source: OpenRouter docs, "Limits"; the same names are in the error's metadata.headers. Others send them with epoch
# seconds or plain seconds, which no instant can be mistaken for.


def _read_openrouter(fields: Fields) -> list[BucketReading]:
    """The one bucket the answer speaks of: of the minute, or of the day when it ends later than within the hour."""
    reset = fields.epoch("x-ratelimit-reset")
    return fields.bucket(
        "requests",
        limit="x-ratelimit-limit",
        remaining="x-ratelimit-remaining",
        reset="x-ratelimit-reset",
        read_reset=lambda _: reset,
        window_seconds=DAY if reset is not None and reset > HOUR else MINUTE,
    )


# Anthropic's headers for subscriptions: anthropic-ratelimit-unified-{5h,7d}-{utilization,reset}.
#
# Source: answers to subscription tokens; reset is in epoch seconds, utilization is a share. There is no figure to count
# by, so nothing is known but when a window is used up.
_UNIFIED_WINDOWS = {"5h": 5 * HOUR, "7d": 7 * DAY}


def _read_anthropic_unified(fields: Fields) -> list[BucketReading]:
    """The windows the answer speaks of; `remaining` is 0 in one that is used up, else unknown."""
    found: list[BucketReading] = []
    for name, window in _UNIFIED_WINDOWS.items():
        used = fields.share(f"anthropic-ratelimit-unified-{name}-utilization")
        reset = fields.epoch(f"anthropic-ratelimit-unified-{name}-reset")
        if used is not None or reset is not None:
            spent = 0 if used is not None and used >= 1 else None
            found.append(BucketReading(f"unified_{name}", None, spent, reset, window))
    return found


# Anthropic's headers: anthropic-ratelimit-{requests,tokens,input-tokens,output-tokens}-{limit,remaining,reset}.
#
# Source: Anthropic docs, "Rate limits", "Response headers"; reset is RFC 3339, until full, and may lie before Date.
# Subscriptions have another family beside it (`_read_anthropic_unified`).
_ANTHROPIC_NAMES = ("requests", "tokens", "input-tokens", "output-tokens")


def _read_anthropic(fields: Fields) -> list[BucketReading]:
    """Every bucket the answer speaks of."""
    found: list[BucketReading] = []
    for name in _ANTHROPIC_NAMES:
        found += fields.bucket(
            name.replace("-", "_"),
            limit=f"anthropic-ratelimit-{name}-limit",
            remaining=f"anthropic-ratelimit-{name}-remaining",
            reset=f"anthropic-ratelimit-{name}-reset",
            read_reset=fields.instant,
        )
    return found + _read_anthropic_unified(fields)


# The IETF draft's headers: RateLimit and RateLimit-Policy, structured fields with q (quota), w (window), r, t.
#
# Source: draft-ietf-httpapi-ratelimit-headers. Retry-After wins over them; a member that is malformed is ignored.
_LONGEST = 2048
_MEMBER = re.compile(r'\s*(?:"([^"\\]{1,64})"|([A-Za-z*][\w*.:/-]{0,63}))((?:\s*;\s*[a-z]{1,16}=[^;,]{1,32})*)\s*')
_PARAMETER = re.compile(r";\s*([a-z]{1,16})=([^;,\s]{1,32})")


def _read_ietf(fields: Fields) -> list[BucketReading]:
    """A bucket for each name of RateLimit, with the quota and window of its policy when there is one."""
    policies = dict(_members(fields, "ratelimit-policy"))
    found: list[BucketReading] = []
    for name, said in _members(fields, "ratelimit"):
        remaining, reset = whole(said.get("r", "")), whole(said.get("t", ""))
        fields.rejected += (remaining is None and "r" in said) + (reset is None and "t" in said)
        policy = policies.get(name, {})
        limit, window = whole(policy.get("q", ""), least=1), whole(policy.get("w", ""), least=1)
        if remaining is not None or reset is not None:
            found.append(BucketReading(name, limit, remaining, _seconds(reset), _seconds(window)))
    return found


def _seconds(number: int | None) -> float | None:
    return None if number is None else float(number)


def _members(fields: Fields, header: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """The members of a structured list of strings or tokens with parameters."""
    text = fields.headers.get(header)
    if text is None:
        return
    if len(text) > _LONGEST:
        fields.rejected += 1
        return
    for part in text.split(","):
        member = _MEMBER.fullmatch(part)
        if member is None:
            fields.rejected += 1
        else:
            yield member[1] or member[2], dict(_PARAMETER.findall(member[3]))


Refill = Literal["continuous", "window"]


@dataclass(frozen=True, slots=True)
class Family:
    """One way of speaking about limits.

    `refill` is what is believed until a provider's answers show otherwise. `clock_minutes`: a window ends when the
    minute of the wall clock does, and a refusal says nothing of it.
    """

    read: Callable[[Fields], list[BucketReading]]
    refill: Refill = "continuous"
    clock_minutes: bool = False


def _nothing(fields: Fields) -> list[BucketReading]:  # noqa: ARG001 - the shape of a family's reader
    return []


_SPOKEN_BY_SOMEBODY = (_read_azure, _read_anthropic, _read_cerebras, _read_mistral, _read_openrouter, _read_ietf)
"""In the order in which an unknown provider is believed to speak them; azure's names include OpenAI's."""


def _any(fields: Fields) -> list[BucketReading]:
    """Whatever an unknown provider speaks: the first family that finds something."""
    if "ratelimit" in "\n".join(fields.headers):  # in any of the names
        for read in _SPOKEN_BY_SOMEBODY:
            if found := read(fields):
                return found
    return []


FAMILIES: Mapping[HeaderFamily, Family] = MappingProxyType(
    {
        "openai": Family(_read_openai),
        "azure": Family(_read_azure),
        "github": Family(_read_azure, "window"),
        "groq": Family(_read_groq),
        "anthropic": Family(_read_anthropic),
        "mistral": Family(_read_mistral, "window", clock_minutes=True),
        "cerebras": Family(_read_cerebras, "window"),
        "openrouter": Family(_read_openrouter, "window"),
        "ietf": Family(_read_ietf),
        "any": Family(_any),
        "none": Family(_nothing),
    }
)


@lru_cache(maxsize=64)
def family_of(kind: str) -> Family:
    """The family a provider of this kind speaks; none for an unknown kind."""
    row = KINDS.get(kind)
    return FAMILIES["none" if row is None else row.header_family]


def read_limits(kind: str, headers: Mapping[str, str]) -> LimitReading:
    """Read the buckets of a provider of this kind from an answer's headers (lower-case names). Never raises."""
    fields = Fields(headers)
    buckets = family_of(kind).read(fields)
    return LimitReading(tuple(buckets), fields.rejected) if buckets or fields.rejected else NO_READING
