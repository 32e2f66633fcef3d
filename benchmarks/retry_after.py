"""Capacity recovered after a 429 with Retry-After 3: its only target is asked again at the instant it named.

Seconds from the refusal to the next call the provider receives, over real sockets. The baseline is the founding rule
this project departs from, a flat cooldown of 120 s whatever the provider said: the same router with rate-limit
awareness off, in virtual time (the real one would take hours).
"""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

from benchmarks._measure import Figure, report

from smart_model_router import SmartModelRouter
from smart_model_router.domain.errors import SmartRouterError
from smart_model_router.testing import LoopClock, run_virtual
from smart_model_router_providers.fault import Fault, FaultServer, ScriptedProvider

if TYPE_CHECKING:
    from collections.abc import Sequence

    from smart_model_router_providers.fault.backend import RecordedRequest

BODY: dict[str, Any] = {"model": "smart", "messages": [{"role": "user", "content": "Hi"}]}
SCRIPT = [Fault.status(429, headers={"retry-after": "3"}, times=1)]
FACTOR = 35.0
EVERY = 0.05


def tree(base_url: str, **options: Any) -> dict[str, Any]:
    """One target and no other."""
    return {
        "version": 1,
        "providers": {"p": {"kind": "openai_compatible", "base_url": base_url, "api_key": "k"}},
        "models": {"smart": {"tiers": [{"targets": ["p/m"]}], "last_resort": []}},
        "routing": {"max_wait": "1ms"},
        **options,
    }


async def served_again(router: SmartModelRouter) -> None:
    """Ask again and again, never waiting inside the router, until the target answers."""
    while True:
        try:
            await router.chat(BODY)
        except SmartRouterError:
            await asyncio.sleep(EVERY)
        else:
            return


def gap(requests: Sequence[RecordedRequest]) -> float:
    """Seconds between the refused call and the next one."""
    refused, again = requests
    return again.at - refused.at


async def honoured() -> float:
    """The router, on a real clock and real sockets."""
    async with FaultServer(SCRIPT) as server, SmartModelRouter.from_config(tree(server.base_url), seed=1) as router:
        await served_again(router)
        return gap(server.requests)


async def flat() -> float:
    """The router that does not listen to the provider."""
    provider = ScriptedProvider(SCRIPT, clock=LoopClock())
    deaf = tree("http://p.invalid/v1", resilience={"measures": {"rate_limit_awareness": False}})
    async with SmartModelRouter.from_config(deaf, clock=LoopClock(), seed=1, providers={"p": provider}) as router:
        await served_again(router)
    return gap(provider.requests)


def measure() -> Figure:
    """Both, and the factor between them."""
    baseline = run_virtual(flat())
    seconds = asyncio.run(honoured())
    note = f"capacity recovered {baseline / seconds:.1f} times as fast, promised {FACTOR:g}"
    return Figure("retry_after", seconds, "s", baseline, "a flat cooldown of 120 s", baseline / FACTOR, note)


if __name__ == "__main__":
    sys.exit(report(measure()))
