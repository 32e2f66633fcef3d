"""Virtual keys: who a client is, what it may ask for, and how much."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from smart_model_router.config import GatewayKeyConfig
from smart_model_router.core.bucket import TokenBucket
from smart_model_router.core.options import DAY
from smart_model_router.edge import Ask, ProblemError
from smart_model_router.edge.problems import FORBIDDEN, LIMITED, UNAUTHORIZED
from smart_model_router.report import RouteReport
from smart_model_router.request import CRITICALITIES, Criticality

_MINUTE = 60.0
_NO_NAME = "without keys this machine answers to localhost and to its addresses, and to no other name (gateway.keys)"
_RANKS = {criticality: rank for rank, criticality in enumerate(CRITICALITIES)}


class Guest:
    """One virtual key with what it has used of its limits. Instants are monotonic seconds; not thread-safe."""

    def __init__(self, name: str, config: GatewayKeyConfig, owner: str = "") -> None:
        self.name = name
        self.owner = owner
        """The mark of the key: what was made for it at a provider, no other key can refer to."""
        self.admin = config.admin
        self._config = config
        self._requests = _bucket(config.rpm, _MINUTE)
        self._tokens = _bucket(config.tpm, _MINUTE)
        self._usd = _bucket(config.usd_per_day, DAY)
        self._limited = any(bucket is not None for bucket in (self._requests, self._tokens, self._usd))

    def continue_from(self, before: Guest) -> None:
        """The same key before a reload: what it has used is used, of limits that are the same."""
        ours, theirs = self._config, before._config
        if ours.rpm == theirs.rpm:
            self._requests = before._requests
        if ours.tpm == theirs.tpm:
            self._tokens = before._tokens
        if ours.usd_per_day == theirs.usd_per_day:
            self._usd = before._usd

    @property
    def counts_tokens(self) -> bool:
        """Whether it matters how many tokens a question is."""
        return self._tokens is not None

    def may_use(self, model: str) -> bool:
        """Whether the key is for this public name."""
        patterns = self._config.models
        return not patterns or any(fnmatchcase(model, pattern) for pattern in patterns)

    def admit(self, ask: Ask, tokens: int, now: float) -> Visit:
        """Let a question of about so many tokens in. Raises ProblemError: 403, or 429 with the time to wait."""
        config = self._config
        if config.models:
            for model in ask.models:
                if not self.may_use(model):
                    raise ProblemError(FORBIDDEN, f"model: the key {self.name!r} may not use {model[:100]!r}")
        ask.options["owner"] = self.owner
        ask.options["criticality"] = _least(ask.options.get("criticality", "critical"), config.criticality)
        if self._usd is not None:
            ask.options["priced"] = True
        if self._limited:
            if self._tokens is not None:
                tokens = min(tokens, int(self._tokens.capacity))
            self._wait_for(self._usd, 0.0, now, "USD a day")
            self._wait_for(self._requests, 1, now, "requests a minute")
            self._wait_for(self._tokens, tokens, now, "tokens a minute")
            for bucket, amount in ((self._requests, 1), (self._tokens, tokens)):
                if bucket is not None:
                    bucket.take(amount, now)
        return Visit(self._tokens, self._usd, tokens)

    def _wait_for(self, bucket: TokenBucket | None, amount: float, now: float, what: str) -> None:
        due = now if bucket is None else bucket.due_at(amount, now)
        if due > now:
            raise ProblemError(LIMITED, f"the key {self.name!r} has used up its {what}", retry_after=due - now)


class Visit:
    """One admitted question of a guest, to be settled when it is answered."""

    __slots__ = ("_reserved", "_tokens", "_usd")

    def __init__(self, tokens: TokenBucket | None, usd: TokenBucket | None, reserved: int) -> None:
        self._tokens = tokens
        self._usd = usd
        self._reserved = reserved

    def settle(self, reports: Sequence[RouteReport], now: float) -> None:
        """Charge what all attempts used, also of streams that broke off or were left; nothing when nobody answered."""
        if self._tokens is None and self._usd is None:
            return
        attempts = [attempt for report in reports for attempt in report.attempts]
        if self._tokens is not None:
            used = sum(attempt.usage.total_tokens for attempt in attempts if attempt.usage is not None)
            self._tokens.give_back(self._reserved - used, now)
        spent = sum(attempt.cost_usd for attempt in attempts if attempt.cost_usd is not None)
        if self._usd is not None and spent:
            self._usd.take(spent, now)


class KeyRing:
    """The guests of a gateway by the hashes of their keys; without any, everyone on this machine is the same guest."""

    def __init__(self, keys: Mapping[str, GatewayKeyConfig], *, origins: Sequence[str] = ()) -> None:
        self._origins = frozenset(origins)
        digests = {name: _digest_of(key) for name, key in keys.items()}
        self._guests = [(digest, Guest(name, keys[name], digest.hex()[:8])) for name, digest in digests.items()]
        self._anyone = Guest("anyone", GatewayKeyConfig(criticality="critical_plus", admin=True))

    def continue_from(self, before: KeyRing) -> None:
        """Take the place of the ring before a reload: a key begins where it was."""
        known = dict(before._guests)
        for digest, guest in self._guests:
            if digest in known:
                guest.continue_from(known[digest])

    def guest(self, headers: Mapping[str, str]) -> Guest:
        """Who is asking. Raises ProblemError: 401 without a known key; 403 for a web page from elsewhere."""
        if not self._guests:
            if (origin := headers.get("origin")) not in self._origins:
                _check_origin(origin)
            check_host(headers.get("host"))
            return self._anyone
        shown = hashlib.sha256(_shown(headers).encode("utf-8", "surrogateescape")).digest()
        found: Guest | None = None
        for digest, guest in self._guests:  # all of them, always: how long it takes tells nothing
            if hmac.compare_digest(digest, shown):
                found = guest
        if found is None:
            raise ProblemError(UNAUTHORIZED, "a key of this gateway is needed (Authorization: Bearer, or x-api-key)")
        return found


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine alone."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _shown(headers: Mapping[str, str]) -> str:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token.strip():
        return token.strip()
    return headers.get("x-api-key") or headers.get("api-key") or ""


def _check_origin(origin: str | None) -> None:
    """Without keys every page a browser shows could spend the owner's money: only pages of this machine may ask."""
    if origin is None:
        return
    try:
        host = urlsplit(origin).hostname or ""
    except ValueError:
        host = ""
    if not is_loopback(host):
        raise ProblemError(FORBIDDEN, "a web page from elsewhere may not use a gateway without keys")


def check_host(host: str | None) -> None:
    """Raises ProblemError (403) unless this machine was asked by an address, or a name of its own.

    Without keys a web page from elsewhere could have its own name resolved to this machine, and read what it is told:
    to the browser both are one origin. It cannot do so with an address, and no browser leaves the host out.
    """
    if host is not None and not _is_no_foreign_name(host):
        raise ProblemError(FORBIDDEN, _NO_NAME)


@lru_cache(maxsize=64)
def _is_no_foreign_name(host: str) -> bool:
    try:
        name = urlsplit(f"//{host}").hostname or ""
        if name != "localhost":
            ip_address(name)
    except ValueError:
        return False
    return True


def _digest_of(config: GatewayKeyConfig) -> bytes:
    if config.sha256 is not None:
        return bytes.fromhex(config.sha256)
    return hashlib.sha256(config.key.reveal().encode() if config.key is not None else b"").digest()


def _bucket(most: float | None, seconds: float) -> TokenBucket | None:
    return None if most is None else TokenBucket(most, most / seconds)


def _least(wanted: Criticality, most: Criticality) -> Criticality:
    """What was asked for, but no more than the key has."""
    return most if _RANKS[wanted] < _RANKS[most] else wanted
