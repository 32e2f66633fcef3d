"""Virtual keys: the client of a request, what it may ask for, and how much."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import math
import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from smart_model_router.config import GatewayKeyConfig
from smart_model_router.coordination.client_leases import LEASE_WAIT, ClientLeases
from smart_model_router.core.client_limits import ClientBudget, ClientLimit, ClientRate, micro_dollars
from smart_model_router.domain.report import RouteReport
from smart_model_router.domain.request import CRITICALITIES, Criticality, RequestOptions
from smart_model_router.http_api import ApiRequest, ProblemError
from smart_model_router.http_api.api_errors import FORBIDDEN, LIMITED, UNAUTHORIZED

Need = tuple[ClientLimit, float]
"""A limit, and what a question takes of it."""
REQUESTS, TOKENS, USD = "requests", "tokens", "usd"
_TOLD = {REQUESTS: "requests a minute", TOKENS: "tokens a minute", USD: "USD a day"}
_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[\w.-]+)(?::\d{1,5})?", re.ASCII)
"""A host with or without a port, and nothing else."""
_NO_NAME = "without keys this machine answers to localhost and to its addresses, and to no other name (gateway.keys)"
_RANKS = {criticality: rank for rank, criticality in enumerate(CRITICALITIES)}


class ApiClient:
    """One virtual key with what it has used of its limits. Instants are the loop's; not thread-safe.

    `owner` is the mark of the key, 8 hex digits of its SHA-256: its limits are named by it among processes, and what
    was made for it at a provider, no other key can refer to.
    """

    def __init__(self, name: str, config: GatewayKeyConfig, owner: str = "") -> None:
        self.name = name
        self.owner = owner
        self.admin = config.admin
        self._config = config
        self._leases: ClientLeases | None = None
        limits = {what: made for what, made in _limits(config, owner).items() if made is not None}
        self._limits: dict[str, ClientLimit] = limits
        self.counts_tokens = TOKENS in limits
        """True when it matters how many tokens a question is."""
        self.counts_usd = USD in limits
        """True when it matters what an answer may cost."""

    def continue_from(self, before: ApiClient) -> None:
        """The same key before a reload: what it has used is used, of limits that are the same."""
        for what, theirs in before._limits.items():
            ours = self._limits.get(what)
            if ours is not None and (ours.key, ours.capacity) == (theirs.key, theirs.capacity):
                self._limits[what] = theirs

    def share(self, leases: ClientLeases | None) -> None:
        """Have one limit together with the other processes, from now on."""
        self._leases = leases
        if leases is not None:
            for limit in self._limits.values():
                leases.register(limit)

    def usd_left(self, now: float) -> float:
        """Return the USD that the key may still spend in its day, as far as this process knows; inf without a limit."""
        limit = self._limits.get(USD)
        return limit.left(now) if isinstance(limit, ClientBudget) else math.inf

    def may_use(self, model: str) -> bool:
        """Return whether the key is for this public name."""
        patterns = self._config.models
        return not patterns or any(fnmatchcase(model, pattern) for pattern in patterns)

    def check(self, ask: ApiRequest) -> None:
        """Bound a question by what the key may. Raises ProblemError (403)."""
        config = self._config
        if config.models:
            for model in ask.models:
                if not self.may_use(model):
                    raise ProblemError(FORBIDDEN, f"model: the key {self.name!r} may not use {model[:100]!r}")
        self._bind(ask.options)

    def check_route(self, route: str, options: RequestOptions) -> None:
        """Bound a request that passes through, for which a route stands in the place of a model. As `check`."""
        if not self.may_use(route):
            wanted = f"`models` of the key is for it when it has {route!r}"
            raise ProblemError(FORBIDDEN, f"the key {self.name!r} may not use {route!r}: {wanted}")
        self._bind(options)

    def _bind(self, options: RequestOptions) -> None:
        options["owner"] = self.owner
        options["criticality"] = _least(options.get("criticality", "critical"), self._config.criticality)
        if self.counts_usd:
            options["priced"] = True

    async def admit(self, tokens: int, usd: float) -> UsageReservation:
        """Let a question in that will take about so much. Raises ProblemError (429) with the time to wait.

        Another process may have used the limit: without a lease at hand this waits for one, 20 ms at most. Without an
        answer in that time, and while the store is out of reach, this process decides alone.
        """
        if not self._limits:
            return _FREE
        amounts = {REQUESTS: 1.0, TOKENS: float(tokens), USD: float(max(1, micro_dollars(usd)))}
        needs = {what: (limit, amounts[what]) for what, limit in self._limits.items()}
        if TOKENS in needs:
            limit, amount = needs[TOKENS]
            needs[TOKENS] = (limit, min(amount, float(int(limit.capacity))))
        now = asyncio.get_running_loop().time()
        leased: list[Need] = []
        until = now + LEASE_WAIT
        while missing := self._missing(needs, now):  # again, when another question took what was leased
            answered_at = None if self._leases is None else await self._leases.lease(missing, until - now)
            leased = missing
            if answered_at is None:
                now = asyncio.get_running_loop().time()
                break
            now = answered_at
        self._check_due(needs, leased, now)
        for limit, amount in needs.values():
            limit.take(amount, now)
            if self._leases is not None and limit.short:
                self._leases.changed(limit)
        return UsageReservation(needs, self._leases)

    def _missing(self, needs: Mapping[str, Need], now: float) -> list[Need]:
        """Those to ask the other processes for; none when one of them is refused anyway."""
        due = [(limit.ready_at(amount, now), limit, amount) for limit, amount in needs.values()]
        if any(at is not None and at > now for at, *_ in due):
            return []
        return [(limit, amount) for at, limit, amount in due if at is None]

    def _check_due(self, needs: Mapping[str, Need], leased: Sequence[Need], now: float) -> None:
        """Raises ProblemError for the limit that comes due last."""
        last, due = "", now
        for what, (limit, amount) in needs.items():
            at = limit.ready_at(amount, now)
            at = limit.alone_at(amount, now) if at is None else at
            if at > due:
                last, due = what, at
        if not last:
            return
        if self._leases is not None:
            self._leases.release([need for need in leased if need[0].ready_at(need[1], now) == now])
        raise ProblemError(LIMITED, f"the key {self.name!r} has used up its {_TOLD[last]}", retry_after=due - now)


class UsageReservation:
    """One admitted question of a guest, to be settled when it is answered."""

    __slots__ = ("_leases", "_needs")

    def __init__(self, needs: Mapping[str, Need], leases: ClientLeases | None) -> None:
        self._needs = needs
        self._leases = leases

    def settle(self, reports: Sequence[RouteReport], now: float) -> None:
        """Charge what all attempts used, also of streams that broke off or were left; nothing without an answer."""
        for what, (limit, reserved) in self._needs.items():
            if what == REQUESTS:
                continue
            limit.settle(reserved, _used(reports) if what == TOKENS else _spent(reports), now)
            if self._leases is not None:
                self._leases.changed(limit)


def _used(reports: Sequence[RouteReport]) -> float:
    usages = [attempt.usage for report in reports for attempt in report.attempts]
    return float(sum(usage.total_tokens for usage in usages if usage is not None))


def _spent(reports: Sequence[RouteReport]) -> float:
    """In micro-dollars."""
    costs = [attempt.cost_usd for report in reports for attempt in report.attempts]
    return float(micro_dollars(sum(cost for cost in costs if cost is not None)))


_FREE = UsageReservation({}, None)


class KeyRing:
    """The guests of a gateway by the hashes of their keys; without any, everyone on this machine is the same guest."""

    def __init__(self, keys: Mapping[str, GatewayKeyConfig], *, origins: Sequence[str] = ()) -> None:
        self._origins = frozenset(origins)
        digests = {name: _digest_of(key) for name, key in keys.items()}
        self._clients = [(digest, ApiClient(name, keys[name], digest.hex()[:8])) for name, digest in digests.items()]
        self._anyone = ApiClient("anyone", GatewayKeyConfig(criticality="critical_plus", admin=True))

    def continue_from(self, before: KeyRing) -> None:
        """Take the place of the ring before a reload: a key begins where it was."""
        known = dict(before._clients)
        for digest, api_client in self._clients:
            if digest in known:
                api_client.continue_from(known[digest])

    def share(self, leases: ClientLeases | None) -> None:
        """Have one limit together with the other processes, from now on; None: there are none."""
        for _, api_client in self._clients:
            api_client.share(leases)

    @property
    def owners(self) -> Mapping[str, ApiClient]:
        """The clients by their marks (see `ApiClient.owner`)."""
        if not self._clients:
            return {self._anyone.owner: self._anyone}
        return {api_client.owner: api_client for _, api_client in self._clients}

    def api_client(self, headers: Mapping[str, str]) -> ApiClient:
        """Return the client of a request. Raises ProblemError: 401 without a known key, 403 for a foreign web page."""
        if not self._clients:
            if (origin := headers.get("origin")) not in self._origins:
                _check_origin(origin)
            check_host(headers.get("host"))
            return self._anyone
        text = _shown(headers)
        shown = hashlib.sha256(text.encode("latin-1", "replace")).digest()  # as it came, byte by byte
        found: ApiClient | None = None
        for digest, api_client in self._clients:  # all of them, always: how long it takes tells nothing
            if hmac.compare_digest(digest, shown):
                found = api_client
        if not text:
            raise ProblemError(UNAUTHORIZED, "a key of this gateway is needed (Authorization: Bearer, or x-api-key)")
        if found is None:
            raise ProblemError(UNAUTHORIZED, "the key is none of this gateway's: one of its `gateway.keys` is needed")
        return found


def is_loopback(host: str) -> bool:
    """Return whether an address can be reached from this machine alone."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _shown(headers: Mapping[str, str]) -> str:
    """The key that a client shows, "" for none or a blank one. Authorization goes before x-api-key and api-key."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token.strip():
        return token.strip()
    return headers.get("x-api-key", "").strip() or headers.get("api-key", "").strip()


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
    found = _HOST.fullmatch(host)
    if found is None:
        return False
    name = found[1].strip("[]").lower()
    try:
        return name == "localhost" or bool(ip_address(name))
    except ValueError:
        return False


def _digest_of(config: GatewayKeyConfig) -> bytes:
    if config.sha256 is not None:
        return bytes.fromhex(config.sha256)
    return hashlib.sha256(config.key.reveal().encode() if config.key is not None else b"").digest()


def _limits(config: GatewayKeyConfig, mark: str) -> dict[str, ClientLimit | None]:
    def rate(what: str, most: int | None) -> ClientRate | None:
        return None if most is None else ClientRate(f"guest {mark} {what}", most)

    day = config.usd_per_day
    usd = None if day is None else ClientBudget(f"guest {mark} {USD}", day)
    return {USD: usd, REQUESTS: rate(REQUESTS, config.rpm), TOKENS: rate(TOKENS, config.tpm)}


def _least(wanted: Criticality, most: Criticality) -> Criticality:
    """Return the criticality asked for, but no more than the key has."""
    return most if _RANKS[wanted] < _RANKS[most] else wanted
