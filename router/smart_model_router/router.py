"""SmartModelRouter: one request, top to bottom. What a step decides is in core/, how it waits is in flow/."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

from smart_model_router import _moved
from smart_model_router.config import RouterConfig
from smart_model_router.core.gate import Gate
from smart_model_router.core.passthrough_rules import route_of
from smart_model_router.core.tiers import ModelRoute, ModelSelection
from smart_model_router.domain.body_encoding import LARGE_BYTES
from smart_model_router.domain.errors import InvalidRequest, NotFound, RouterUnavailable
from smart_model_router.domain.fast_dataclass import quick
from smart_model_router.domain.report import RouteReport
from smart_model_router.domain.request import Dialect, Operation, RequestOptions, RouteRequest, peek
from smart_model_router.flow.model_list import ModelList, NamedModel
from smart_model_router.flow.off_loop import off_loop

# All of this comes with the first router, or with the first question to one: it would double what the import costs.
if TYPE_CHECKING:
    from smart_model_router.coordination.client_leases import ClientLeases
    from smart_model_router.domain.events import Event
    from smart_model_router.domain.ports import Clock, EventSink, PassedCall, Provider, StatsStore
    from smart_model_router.domain.shared_state import OperatorWord
    from smart_model_router.flow.guard import GuardLease, GuardLimits
    from smart_model_router.flow.inspection import Availability, Explanation, SystemHealth, TargetStatus
    from smart_model_router.flow.passthrough import RoutePassage
    from smart_model_router.flow.portal import Portal
    from smart_model_router.flow.router_stream import RouterStream
    from smart_model_router.flow.shutdown import Part
    from smart_model_router.flow.state import RouterState
    from smart_model_router.observability.monitor import Monitor
    from smart_model_router_stats.book import StatsBook
    from smart_model_router_stats.figures import StatsView

_OPTIONS = RequestOptions.__annotations__.keys()


@quick
@dataclass(frozen=True, slots=True)
class RouterReply:
    """A whole answer: `body` in the dialect of the request, `raw` its bytes, `report` the history of the request."""

    body: Mapping[str, Any]
    raw: bytes
    report: RouteReport


class SmartModelRouter:
    """Routes requests over the targets of a configuration. Make one with `from_config`.

    ```python
    async with SmartModelRouter.from_config("smart-router.yaml") as router:
        reply = await router.chat({"model": "smart", "messages": [{"role": "user", "content": "Hello"}]})
    ```

    Runs on one event loop, that of the first call, and may be used from every other loop and thread: calls from there
    go through `portal`. Every method that sends raises SmartRouterError only (errors.py says whose fault), and its
    exceptions carry the `report`.
    """

    def __init__(
        self, *, config: RouterConfig, state: RouterState, book: StatsBook, model_routes: Mapping[str, ModelRoute]
    ) -> None:
        from smart_model_router.flow.executor import RequestExecutor  # noqa: PLC0415
        from smart_model_router.flow.router_stream import RouterStream  # noqa: PLC0415

        self._executor = RequestExecutor
        self._router_stream = RouterStream
        self._config = config
        self._state = state
        self._book = book
        self._model_routes = model_routes
        self._names = ModelList(config, state, model_routes)

    @classmethod
    def from_config(
        cls,
        config: RouterConfig | Mapping[str, Any] | str | os.PathLike[str] | None = None,
        *,
        clock: Clock | None = None,
        seed: int | None = None,
        providers: Mapping[str, Provider] | None = None,
        store: StatsStore | None = None,
        sinks: Sequence[EventSink] = (),
    ) -> SmartModelRouter:
        """Make a router from a configuration: a path, a mapping, or a RouterConfig.

        Without one: $SMART_ROUTER_CONFIG, ./smart-router.yaml, the user's configuration directory, keys found in the
        environment, else the embedded model. `providers` (name -> Provider) replace the catalog's. `seed` makes
        chance repeatable. Raises ConfigurationError.
        """
        from smart_model_router.assembly import assemble, load  # noqa: PLC0415 - adapters only when one is made

        tree = load(config, given=frozenset(providers or ()))
        return cls(**assemble(tree, clock=clock, seed=seed, providers=providers, store=store, sinks=sinks))

    @property
    def config(self) -> RouterConfig:
        """The configuration it was made from."""
        return self._config

    @property
    def portal(self) -> Portal:
        """The way in for threads without a loop: `router.portal.run(lambda: router.chat(body))` waits for it."""
        return self._state.portal

    def transport(self) -> Any:
        """Return `smart_model_router.clients.RouterTransport(router)`. Deprecated; goes with version 0.3."""
        return _moved.transport(self)

    async def chat(self, body: Mapping[str, Any], **options: Unpack[RequestOptions]) -> RouterReply:
        """Send a Chat Completions request and return the whole answer. `options`: see RequestOptions."""
        return await self.answer("chat", body, options)

    async def messages(self, body: Mapping[str, Any], **options: Unpack[RequestOptions]) -> RouterReply:
        """Send an Anthropic Messages request and return the whole answer."""
        return await self.answer("messages", body, options)

    async def responses(self, body: Mapping[str, Any], **options: Unpack[RequestOptions]) -> RouterReply:
        """Send an OpenAI Responses request and return the whole answer."""
        return await self.answer("responses", body, options)

    async def embeddings(self, body: Mapping[str, Any], **options: Unpack[RequestOptions]) -> RouterReply:
        """Send an Embeddings request and return the answer; only targets of the same embedding space serve it."""
        return await self.answer("embeddings", body, options)

    def stream_chat(self, body: Mapping[str, Any], **options: Unpack[RequestOptions]) -> RouterStream:
        """Return a Chat Completions stream, which yields its chunks. Nothing is sent before the first one is read."""
        return self.stream("chat", body, options)

    def stream_messages(self, body: Mapping[str, Any], **options: Unpack[RequestOptions]) -> RouterStream:
        """Return an Anthropic Messages stream, which yields its events."""
        return self.stream("messages", body, options)

    def stream_responses(self, body: Mapping[str, Any], **options: Unpack[RequestOptions]) -> RouterStream:
        """Return an OpenAI Responses stream, which yields its events."""
        return self.stream("responses", body, options)

    async def kept_response(
        self, response: str, operation: Operation, options: RequestOptions, may_use: Callable[[str], bool]
    ) -> RouterReply:
        """Get (`retrieve`) or `delete` an answer of Responses that its provider keeps, or this router.

        Where its maker is not known, a target of the models that the caller `may_use` is asked. Raises NotFound for an
        answer that is not there, or that was made for another `owner`.
        """
        from smart_model_router.flow.stored_answers import kept_response  # noqa: PLC0415 - few ask

        body = {"model": "-", "previous_response_id": response}
        request, state = self._peek("responses", body, options, b"", stream=False), self._state

        def usable() -> list[ModelRoute]:
            if request.target is not None:
                state.model_routes.revive((request.target,), may_use)
            names = (*self._config.names, *state.model_routes.names)
            return [state.model_routes[name] for name in names if "*" not in name and may_use(name)]

        success, report = await state.portal.reach(lambda: kept_response(state, request, response, operation, usable()))
        return RouterReply(success.body, success.raw, report)

    async def count_input(self, body: Mapping[str, Any], options: RequestOptions) -> RouterReply:
        """Count the tokens of the prompt of a Responses request.

        A target that speaks Responses natively counts them; where the model has none, they are estimated.
        """
        from smart_model_router.flow.stored_answers import count_input  # noqa: PLC0415 - few ask

        request = self._peek("responses", body, options, b"", stream=False, operation="count")
        success, report = await self._state.portal.reach(lambda: count_input(self._state, request))
        return RouterReply(success.body, success.raw, report)

    async def answer(
        self,
        dialect: Dialect,
        body: Mapping[str, Any],
        options: RequestOptions,
        *,
        written: bytes = b"",
        operation: Operation = "create",
    ) -> RouterReply:
        """Send a request in any dialect and return the whole answer.

        `written` is the text that `body` was parsed from, if it was: a target that speaks the dialect gets that.
        """
        request = await self.read(dialect, body, options, written=written, operation=operation)
        portal = self._state.portal
        return await (self._routed(request) if portal.here else portal.reach(lambda: self._routed(request)))

    def stream(
        self, dialect: Dialect, body: Mapping[str, Any], options: RequestOptions, *, written: bytes = b""
    ) -> RouterStream:
        """Return a stream in any dialect that has streams. `written`: see `answer`."""
        return self.stream_of(self._peek(dialect, body, options, written, stream=True))

    async def read(
        self,
        dialect: Dialect,
        body: Mapping[str, Any],
        options: RequestOptions,
        *,
        written: bytes = b"",
        stream: bool = False,
        operation: Operation = "create",
    ) -> RouteRequest:
        """Parse the body of a request, a large `written` (see `answer`) off the loop. Raises InvalidRequest."""
        read = partial(self._peek, dialect, body, options, written, stream=stream, operation=operation)
        return await off_loop(read, len(written)) if len(written) > LARGE_BYTES else read()

    def stream_of(self, request: RouteRequest) -> RouterStream:
        """Return the stream of a request."""
        return self._router_stream(self.portal.call(partial(self._executor, self._state, request)))

    def guard(self, name: str, limits: GuardLimits | None = None) -> AbstractAsyncContextManager[GuardLease]:
        """Protect any awaitable by a breaker, cooldown, buckets and a bulkhead: `async with router.guard("tavily")`.

        `limits` of the first use count (later ones resize the slots). An exception inside is a failure of the
        resource; RouterUnavailable is raised when it is not admitted within `max_wait`, and by a closed router.
        """
        from smart_model_router.flow.guard import guard  # noqa: PLC0415

        self._check_open()
        return guard(self._state, name, limits, self._config.resilience.gate)

    def passage(self, call: PassedCall, options: RequestOptions) -> RoutePassage:
        """Return a request that passes through by a route of `gateway.passthrough`; nothing is sent before `open`.

        Open and read it on the router's own loop. Raises NotFound for a path without a route.
        """
        from smart_model_router.flow.passthrough import RoutePassage  # noqa: PLC0415 - few have routes

        self._check_open()
        config, route = self._config.gateway.passthrough, route_of(call.path, self._state.routes)
        if route is None:
            known = f"there are {', '.join(config.routes)}" if config.routes else "there is none"
            raise NotFound(f"gateway.passthrough.routes: none has {call.path}, so it leads to no provider; {known}")
        return RoutePassage(self._state, route, call, options, silence=config.silence)

    def get_model_for_tier(self, tier: str, model: str | None = None) -> ModelSelection:
        """The target that would serve `tier` of `model` (default: the first model) now; lower tiers are degraded.

        Higher tiers follow the lower ones where `routing.allow_escalation` lets requests use them.
        Raises AllTargetsFailed with every reason when no target would; InvalidRequest for a tier that does not exist.
        """
        from smart_model_router.flow.inspection import select  # noqa: PLC0415

        return self.portal.call(lambda: select(self._state, self._model_route(model), tier))

    def explain(self, body: Mapping[str, Any], **options: Unpack[RequestOptions]) -> Explanation:
        """Return the plan for a Chat Completions request, without sending anything."""
        from smart_model_router.flow.inspection import explain  # noqa: PLC0415

        request = self._peek("chat", body, options, b"", stream=False)
        return self.portal.call(lambda: explain(self._state, request))

    async def models(self) -> tuple[NamedModel, ...]:
        """Every name that callers may use, with its context window. Providers list the models of wildcards."""
        return await self.portal.reach(self._names.names)

    async def model(self, name: str) -> NamedModel:
        """A name that callers may use, with its context window. Raises ModelNotFound."""
        return await self.portal.reach(lambda: self._names.named(name))

    def dearest_usd(
        self, dialect: Dialect, body: Mapping[str, Any], options: RequestOptions, *, written: bytes = b"", stream: bool
    ) -> float:
        """The cost of a request at the dearest target of its plan, in USD; 0 where no price is known.

        Raises InvalidRequest for an invalid request.
        """
        from smart_model_router.flow.inspection import dearest_usd  # noqa: PLC0415

        request = self._peek(dialect, body, options, written, stream=stream)
        return self.portal.call(lambda: dearest_usd(self._state, request))

    def predict_availability(self, target: str) -> Availability:
        """Predict if `target` would admit a call now, why not, and how well recent outcomes support the answer."""
        self._gate(target)
        from smart_model_router.flow.inspection import predict_availability  # noqa: PLC0415

        return self.portal.call(lambda: predict_availability(self._state, target))

    def stats(self) -> StatsView:
        """Figures per target, model and provider, of this process."""
        return self.portal.call(lambda: self._book.figures(self._state.clock.now()))

    def system_health(self) -> SystemHealth:
        """The share of OPEN providers, and whether the router is offline or shedding."""
        from smart_model_router.flow.inspection import system_health  # noqa: PLC0415

        return self.portal.call(lambda: system_health(self._state))

    def targets(self) -> tuple[TargetStatus, ...]:
        """Every target: its state, why it would refuse a call now, and when it comes due."""
        from smart_model_router.flow.inspection import statuses  # noqa: PLC0415

        return self.portal.call(lambda: statuses(self._state))

    def events(self) -> tuple[Event, ...]:
        """The newest events, oldest first (at most 1,000)."""
        return self.portal.call(lambda: tuple(self._state.recent))

    @property
    def client_leases(self) -> ClientLeases | None:
        """The leases by which the gateway shares its clients' limits with other processes; None without a store."""
        return None if self._state.coordinator is None else self._state.coordinator.clients

    @property
    def monitor(self) -> Monitor:
        """The data for dashboards and metrics: `router.monitor.metrics()` is the text that Prometheus reads."""
        from smart_model_router.observability.monitor import Monitor  # noqa: PLC0415

        return Monitor(self._state, self._book, self._model_routes)

    def isolate(self, target: str, *, by: str = "", why: str = "") -> None:
        """Send nothing to `target` until `close`, also as a last resort. `by` is the operator (default: this process).

        With shared state every process of the host obeys within 0.25 s, and so does every later one. Raises
        InvalidRequest for a target that is not there, and for more than 100 characters of `by` or 200 of `why`.
        """
        self._speak(target, "isolate", by, why)

    def close(self, target: str, *, by: str = "", why: str = "") -> None:
        """Send to `target` again: it is not isolated, its breakers are closed, its cooldowns and walls forgotten.

        Reaches as far as `isolate`, and raises as it does.
        """
        self._speak(target, "enable", by, why)

    async def publish_word(self) -> str:
        """Wait until `isolate` and `close` have reached the shared state, a second at most.

        Returns "" when they have: the host's other processes obey soon. Else returns the reason why only this one does.
        """
        coordinator = self._state.coordinator
        return self.monitor.shared_problem if coordinator is None else await self.portal.reach(coordinator.publish_word)

    async def listen(self) -> None:
        """Begin to poll the state of the host's other processes, without waiting for the first request."""
        if self._state.coordinator is not None:
            await self.portal.reach(self._listen)

    def continue_from(self, before: SmartModelRouter) -> None:
        """Take the place of another router of this loop. Call it before the first request of this one.

        Requests in progress end at `before`. An unchanged target keeps everything: the operator's commands, breakers,
        cooldowns, limits, statistics, and calls in flight, which hold their slots in both. A changed target begins
        anew; with shared state (`store`) it gets breakers, cooldowns and limits from there.
        """
        unchanged = self._state.continue_from(before._state)
        if self._config.resilience.measures.monotonic_clock == before.config.resilience.measures.monotonic_clock:
            self._book.continue_from(before._book, unchanged, self._state.clock.now())
        self.monitor.continue_from(before.monitor)
        if before._state.guards:
            from smart_model_router.flow.guard import forget_unused  # noqa: PLC0415

            self._state.guards |= before._state.guards
            forget_unused(self._state)

    async def aclose(self) -> None:
        """End all requests and close everything, in 6 s at most; safe to call twice.

        Waiting requests, calls and streams end at once, with RouterUnavailable or StreamInterrupted. A part that
        raises, or takes longer than 5 s, keeps no other open. Raises the first error of a part.
        """
        await self.portal.reach(self._end)

    async def _end(self) -> None:
        from smart_model_router.flow.shutdown import close_parts  # noqa: PLC0415
        from smart_model_router.observability.worker import close as close_sinks  # noqa: PLC0415

        state = self._state
        first: dict[str, Part] = {f"provider {name}": provider.aclose for name, provider in state.providers.items()}
        if state.detached:
            first["a call that ran on"] = partial(asyncio.wait, tuple(state.detached))
        stores = {"the shared state": state.coordinator, "the kept responses": state.kept, "the store": state.store}
        second: dict[str, Part] = {name: store.aclose for name, store in stores.items() if store is not None}
        state.leave()
        await close_parts((first, second, {"a sink": partial(close_sinks, state.sinks)}))

    async def __aenter__(self) -> Self:
        await self.listen()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _routed(self, request: RouteRequest) -> RouterReply:
        executor = self._executor(self._state, request)
        success = await executor.answer()
        return RouterReply(success.body, success.raw, executor.report)

    async def _listen(self) -> None:
        if self._state.coordinator is not None:
            self._state.coordinator.touch()

    def _speak(self, target: str, word: OperatorWord, by: str, why: str) -> None:
        gate, state = self._gate(target), self._state

        def speak() -> None:
            state.words.speak(gate.id, word, by=by or f"process {os.getpid()}", why=why)
            if state.coordinator is not None:
                state.coordinator.spoken()

        self.portal.call(speak)

    def _peek(
        self,
        dialect: Dialect,
        body: Mapping[str, Any],
        options: RequestOptions,
        written: bytes,
        *,
        stream: bool,
        operation: Operation = "create",
    ) -> RouteRequest:
        self._check_open()
        if not options.keys() <= _OPTIONS:
            known = ", ".join(RequestOptions.__annotations__)
            raise InvalidRequest(f"{min(options.keys() - _OPTIONS)}: no such option; there are {known}")
        large = len(written) > LARGE_BYTES
        return peek(dialect, body, stream=stream, written=written, large=large, operation=operation, **options)

    def _check_open(self) -> None:
        if self._state.closed:
            raise RouterUnavailable("this router is closed")

    def _model_route(self, model: str | None) -> ModelRoute:
        if model is None and not self._model_routes:
            raise InvalidRequest("model: a name is needed, as all models of this configuration are wildcards")
        return next(iter(self._model_routes.values())) if model is None else self._state.model_routes[model]

    def _gate(self, target: str) -> Gate:
        gates = self._state.fleet.gates
        if target not in gates:
            raise InvalidRequest(f"target: {target!r} is none of {', '.join(gates)}")
        return gates[target]
