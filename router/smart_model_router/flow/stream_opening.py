"""Opening a stream of a course: one is open when there is something of it to deliver."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

from smart_model_router.domain.outcome import Failure, StreamEvent
from smart_model_router.flow.attempt import AdmittedTarget, AttemptRunner, provider_bug
from smart_model_router.flow.detached_calls import DetachedCalls
from smart_model_router.flow.provider_stream import ProviderStreamReader
from smart_model_router.flow.stream_recovery import RecoveryState
from smart_model_router.flow.watchdog import Expired


class StreamOpener:
    """Opens the stream of a course: what `RequestExecutor.serve` performs for each admitted target.

    Under a policy of recovery (`recovery_state`) a stream is open when there is something to deliver of it.
    """

    def __init__(self, caller: AttemptRunner, recovery_state: RecoveryState | None) -> None:
        self._caller = caller
        self._recovery_state = recovery_state

    async def __call__(self, step: AdmittedTarget) -> tuple[ProviderStreamReader, Sequence[StreamEvent]] | Failure:
        """An open stream and its first events, or the failure of a head nobody saw."""
        caller = self._caller
        limit, own = caller.limit(step)
        verdicts = DetachedCalls(caller)
        if verdicts.wanted(step) and self._recovery_state is None:
            return await verdicts.performed(step, limit, self._opened, _content_is_enough)
        return await self._opened(step, limit, own)

    async def _opened(
        self, step: AdmittedTarget, limit: float, own: bool
    ) -> tuple[ProviderStreamReader, Sequence[StreamEvent]] | Failure:
        caller = self._caller
        try:
            source = await caller.watchdog_of(step).within(
                caller.provider(step).open_stream(caller.provider_call(step, caller.sent(step).request)), limit
            )
        except Expired:
            return caller.settle(step, caller.timed_out(step, own, step.lease.admitted_at))
        except asyncio.CancelledError:
            caller.settle(step, caller.given_up(step, silent_since=step.lease.admitted_at))
            raise
        except Exception as bug:  # noqa: BLE001 - a provider's own bug, see provider_bug
            return caller.settle(step, provider_bug(bug))
        if isinstance(source, Failure):
            return caller.settle(step, source)
        caller.state.heard(step.gate, step.lease, source.reading)
        live = ProviderStreamReader(caller, step, source)
        head = await live.hold(limit, own)
        if isinstance(head, Failure):
            return head
        if self._recovery_state is None:
            return live, head
        ready = await self._something_new(live, head, self._recovery_state)
        return ready if isinstance(ready, Failure) else (live, ready)

    def drop(self, served: tuple[ProviderStreamReader, Sequence[StreamEvent]]) -> Coroutine[Any, Any, None]:
        """Nobody wants this stream: everything is given back now; await the end of its connection."""
        live, _ = served
        live.abandon()
        return live.close()

    async def _something_new(
        self, live: ProviderStreamReader, got: Sequence[StreamEvent], recovery_state: RecoveryState
    ) -> list[StreamEvent] | Failure:
        """Read on until there is something the caller is to have, past what is held back or was delivered before."""
        recovery_state.attempt(asked=self._caller.sent(live.step).asked)
        until = self._caller.held_until(live.step)
        ready: list[StreamEvent] = []
        while got:
            ready += recovery_state.take(got)
            if (repeats := recovery_state.repeats()) is not None:
                return await live.refuse(repeats)
            if (ready or recovery_state.holds_a_part) and not recovery_state.undecided and not live.guard.unreadable:
                return ready
            got = await live.more(until)
        failure = await live.outcome()
        if failure is None:
            return ready + recovery_state.flush()
        recovery_state.fell_back(live.step.facts.id, failure)
        if self._caller.another_left(live.step.facts):
            self._caller.progress.retrying(live.step.facts)  # an answer is long: another target is asked first
        return failure


async def _content_is_enough(served: tuple[ProviderStreamReader, Sequence[StreamEvent]], step: AdmittedTarget) -> None:  # noqa: ARG001
    """A stream that its caller left has proved its target by its first content."""
    live, _ = served
    await live.close_proved()
