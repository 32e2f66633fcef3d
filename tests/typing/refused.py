"""Mistakes of users that mypy (strict) and pyright must refuse; `make check` reads this file, and nothing runs it.

Each mistake has an `ignore`: both checkers report one that ignores nothing.
"""
# pyright: reportUnnecessaryTypeIgnoreComment=error

from __future__ import annotations

from smart_model_router import (
    EventSink,
    Failure,
    Provider,
    ProviderCall,
    RequestOptions,
    SdkProvider,
    SmartModelRouter,
    StreamEvent,
    Success,
)
from smart_model_router.core.selection import Selector
from smart_model_router.domain.ports import StatsStore, SupportsClose, SupportsDialects

BODY = {"model": "smart", "messages": [{"role": "user", "content": "Hello!"}]}


class Plain:
    """Its methods are none of those that the protocols have."""

    def call(self, call: ProviderCall) -> Success:
        """A provider awaits its calls."""
        return Success({"model": call.model}, b"{}")

    def emit(self, event: str) -> None:
        """Events are no text."""

    def observe(self) -> None:
        """An observation is missing."""

    async def close(self) -> None:
        """A sink is closed on a thread."""

    def order(self, candidates: list[str]) -> list[str]:
        """A strategy gets more than this."""
        return candidates


provider: Provider = Plain()  # type: ignore[assignment]
sink: EventSink = Plain()  # type: ignore[assignment]
store: StatsStore = Plain()  # type: ignore[assignment]
strategy: Selector = Plain()  # type: ignore[assignment]
speaks: SupportsDialects = Plain()  # type: ignore[assignment]
closing: SupportsClose = Plain()  # type: ignore[assignment]
options: RequestOptions = {"timout": 30}  # type: ignore[typeddict-unknown-key]
failure = Failure("timeout", "too late")  # type: ignore[arg-type]
event = StreamEvent("content", b"")  # type: ignore[arg-type]
call = ProviderCall(dialect="fax", model="m", payload=b"", body={})  # type: ignore[arg-type]


async def program(router: SmartModelRouter) -> None:
    """Options that do not exist, values of the wrong type, calls that are not awaited."""
    await router.chat(BODY, timout=30)  # type: ignore[call-arg]
    await router.chat(BODY, timeout="30 s")  # type: ignore[arg-type]
    await router.chat("Hello!")  # type: ignore[arg-type]
    await router.chat(BODY, criticality="high")  # type: ignore[arg-type]
    router.chat(BODY).report  # type: ignore[attr-defined]  # noqa: B018
    (await router.chat(BODY)).report = None  # type: ignore[misc, assignment]
    for _ in router.stream_chat(BODY):  # type: ignore[attr-defined]
        pass
    SmartModelRouter.from_config({}, sinks=[print])  # type: ignore[list-item]
    SmartModelRouter.from_config({}, providers={"p": SdkProvider})  # type: ignore[dict-item]
