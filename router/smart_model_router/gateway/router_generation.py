"""One configuration at work: a router and a key ring. A reload makes a new one; the old one closes when it is empty."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext

from smart_model_router.config import RouterConfig
from smart_model_router.gateway.client_keys import KeyRing
from smart_model_router.gateway.visibility import Visible
from smart_model_router.router import SmartModelRouter


class RouterGeneration:
    """A router with its keys, and how many requests are inside."""

    def __init__(self, config: RouterConfig, router: SmartModelRouter) -> None:
        self.config = config
        self.router = router
        self.ring = KeyRing(config.gateway.keys, origins=config.gateway.cors)
        self.ring.share(router.client_leases)
        self.everything = Visible(config, bool, everything=True)
        self.in_flight = 0
        self._retired = False
        self._traces = config.telemetry.traces.enabled

    def continue_from(self, before: RouterGeneration) -> None:
        """Take the place of another one, before anybody enters."""
        self.router.continue_from(before.router)
        self.ring.continue_from(before.ring)
        self.ring.share(self.router.client_leases)

    def visible(self, headers: Mapping[str, str]) -> Visible:
        """The part of the fleet that the key in the headers may see. Raises ProblemError."""
        guest = self.ring.guest(headers)
        return Visible(self.config, guest.may_use, everything=guest.admin)

    def traced(self, headers: Mapping[str, str]) -> AbstractContextManager[object]:
        """Continue the trace of a client that sent one, as long as what is returned is open."""
        if not self._traces:
            return _UNTRACED
        from smart_model_router.observability.spans import continued  # noqa: PLC0415 - an extra

        return continued(headers)

    def enter(self) -> None:
        """A request begins."""
        self.in_flight += 1

    def leave(self) -> bool:
        """A request ended, however it did. True for the last one out of a retired house: it closes it."""
        self.in_flight -= 1
        return self._retired and self.in_flight == 0

    async def close(self) -> None:
        """Nobody is inside, and nobody will come."""
        await self.router.aclose()

    async def retire(self) -> None:
        """Nobody new will come: close as soon as nobody is inside."""
        self._retired = True
        if self.in_flight == 0:
            await self.close()


_UNTRACED = nullcontext()
