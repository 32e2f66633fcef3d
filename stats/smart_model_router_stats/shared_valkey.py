"""Shared rows on a server that speaks the protocol of Valkey and Redis."""

from __future__ import annotations

import json
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlencode, urlsplit, urlunsplit

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.redaction import error_line
from smart_model_router.domain.shared_state import SharedStateError
from smart_model_router_stats.row_server import Leased, RowAnswer, RowExchange, ServerFacts
from smart_model_router_stats.server_leases import lease_request, leased
from smart_model_router_stats.server_rows import call_of_text, makers_of_texts, request_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from smart_model_router.domain.shared_state import BucketAsk, BudgetAsk, CallRow, ClockReading, MakerRow, SlotAsk

_SCHEMES = {"redis": "valkey", "rediss": "valkeys"}
"""The client knows one name for both servers."""
_CONNECTIONS = 4
_ANSWER_SECONDS = 1.0
"""No answer after that is a fault of the connection, which is closed."""


class ValkeyRows:
    """The rows of one namespace, by one loop's connections."""

    def __init__(
        self, client: Any, namespace: str, told: Callable[[BaseException], str], watchers: Sequence[Any] = ()
    ) -> None:
        self._client = client
        self._watchers = watchers
        self._told = told
        prefix = f"smr:{{{namespace}}}:"
        rows, order, expiry, news, meta = (prefix + name for name in ("rows", "order", "expiry", "news", "meta"))
        calls, makers, maker_order = (prefix + name for name in ("calls", "makers", "maker-order"))
        self._news, self._calls, self._makers = news, calls, makers
        self._exchange_keys = [rows, order, expiry, news, meta, calls, makers, maker_order]
        self._lease_keys = [rows, order, expiry, news, meta]
        self._exchange = client.register_script(_script("exchange"))
        self._lease = client.register_script(_script("lease"))

    async def newest(self) -> tuple[str, int]:
        """The epoch and the number of the newest change that others were told of."""
        found = await self._ask(self._client.get(self._news))
        epoch, _, news = (found or b" 0").decode(errors="replace").partition(" ")
        if not news.isdecimal():
            raise SharedStateError(f"the key {self._news} was not written by the router: remove it")
        return epoch, int(news)

    async def exchange(self, asked: RowExchange) -> RowAnswer:
        """Write all of it or nothing."""
        done, epoch, news, last, at, full, flat = await self._ask(
            self._exchange(keys=self._exchange_keys, args=[json.dumps(request_of(asked))])
        )
        texts = [part.decode(errors="replace") for part in flat]
        rows = []
        for name, text in zip(texts[::2], texts[1::2], strict=True):
            revision, _, body = text.partition(" ")
            if revision.isdecimal():
                rows.append((name, int(revision), body))
        return RowAnswer(
            done=bool(done), epoch=epoch.decode(), news=news, last=last, at=float(at), full=bool(full), rows=rows
        )

    async def lease(self, asks: Sequence[BucketAsk | BudgetAsk | SlotAsk], here: ClockReading, epoch: str) -> Leased:
        """Settle accounts with limits, budgets and bulkheads, in this order."""
        request = json.dumps(lease_request(asks, here, epoch))
        at, done, grants = await self._ask(self._lease(keys=self._lease_keys, args=[request]))
        return leased(asks, float(at), grants if done else None)

    async def calls(self) -> Sequence[CallRow]:
        """The calls that are kept, oldest first of each target."""
        found = await self._ask(self._client.hgetall(self._calls))
        texts = {name.decode(): text.decode(errors="replace").split("\n") for name, text in found.items()}
        rows = []
        for target, lines in texts.items():
            if not target.startswith("\n"):
                success = texts.get(f"\n{target}", [])
                rows += [*(line for line in success if line not in lines), *lines]
        return [call for line in rows if (call := call_of_text(line)) is not None]

    async def makers(self, things: Sequence[bytes]) -> Sequence[MakerRow]:
        """The makers of these things, as far as they are known."""
        if not things:
            return ()
        found = await self._ask(self._client.hmget(self._makers, [thing.hex() for thing in things]))
        return makers_of_texts(zip(things, found, strict=True))

    async def facts(self) -> ServerFacts:
        """Facts of the server, for people."""
        info = await self._ask(self._client.info("everything"))
        name = "Valkey" if "valkey_version" in info else "Redis"
        version = info.get("valkey_version") or info.get("redis_version", "")
        warnings = []
        policy = info.get("maxmemory_policy", "noeviction")
        if info.get("maxmemory") and policy != "noeviction":
            warnings.append(f"its maxmemory-policy is {policy}: limits that are evicted begin anew; take noeviction")
        if info.get("role") == "slave":
            warnings.append("it is a replica, which cannot be written: name the primary")
        return ServerFacts(f"{name} {version}", tuple(warnings))

    async def aclose(self) -> None:
        """Close the connections."""
        for client in (self._client, *self._watchers):
            await client.aclose()

    async def _ask(self, question: Any) -> Any:
        import valkey  # noqa: PLC0415 - an extra, which made the client

        try:
            return await question
        except (valkey.ValkeyError, OSError, TimeoutError, ValueError) as error:
            raise SharedStateError(self._told(error)) from error


@cache
def _script(name: str) -> str:
    folder = files("smart_model_router_stats").joinpath("lua")
    return "".join(folder.joinpath(f"{part}.lua").read_text(encoding="utf-8") for part in ("head", name))


def valkey_rows(url: str, namespace: str) -> Callable[[], ValkeyRows]:
    """Make connections to the server of this URL. Raises ConfigurationError when the extra is missing.

    `?cluster=true` in the URL speaks to a cluster, `?sentinel=NAME` asks the Sentinels at its address for the primary
    of that name.
    """
    try:
        import valkey.asyncio as client  # noqa: PLC0415 - an extra
        from valkey.asyncio.cluster import ValkeyCluster  # noqa: PLC0415 - as above
        from valkey.asyncio.sentinel import Sentinel  # noqa: PLC0415 - as above
    except ImportError:
        wanted = "Valkey and Redis are an extra: pip install 'smart-model-router[valkey]'"
        raise ConfigurationError("store.shared_url", urlsplit(url).scheme + "://…", wanted) from None
    parts = urlsplit(url)
    query = parse_qs(parts.query)
    others = {name: values for name, values in query.items() if name not in ("cluster", "sentinel")}
    scheme = _SCHEMES.get(parts.scheme, parts.scheme)
    plain = urlunsplit((scheme, *parts[1:3], urlencode(others, doseq=True), ""))
    timeouts: dict[str, Any] = {"socket_timeout": _ANSWER_SECONDS, "socket_connect_timeout": _ANSWER_SECONDS}
    secret = unquote(parts.password or "")

    try:
        sample = client.ConnectionPool.from_url(plain, **timeouts)
        sample.make_connection()  # type: ignore[no-untyped-call] # as below
    except (ValueError, TypeError) as error:  # they name an option
        fault = f"options of the URL that the client knows are needed: {error}"
        raise ConfigurationError("store.shared_url", parts.scheme + "://…", fault) from None
    is_tls = issubclass(sample.connection_class, client.SSLConnection)
    options = {name: value for name, value in sample.connection_kwargs.items() if name not in ("host", "port")}
    to_sentinels = {name: value for name, value in options.items() if name.startswith(("socket_", "ssl_"))}

    def connect() -> ValkeyRows:
        made: Any
        watchers: Sequence[Any] = ()
        if "cluster" in query:
            made = ValkeyCluster.from_url(plain, max_connections=_CONNECTIONS, **timeouts)
        elif "sentinel" in query:
            watcher: Any = Sentinel(  # type: ignore[no-untyped-call] # the library has no types there
                [(parts.hostname or "", parts.port or 26_379)], sentinel_kwargs={**to_sentinels, "ssl": is_tls}
            )
            watchers = watcher.sentinels
            made = watcher.master_for(query["sentinel"][0], ssl=is_tls, **options)
        else:
            pool = client.BlockingConnectionPool.from_url(
                plain, max_connections=_CONNECTIONS, timeout=_ANSWER_SECONDS, **timeouts
            )
            made = client.Valkey.from_pool(pool)
        return ValkeyRows(made, namespace, partial(error_line, secret=secret), watchers)

    return connect
