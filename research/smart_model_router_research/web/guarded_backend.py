"""A back-end behind its limits: calls one after another, rests after failures, and the waits that it asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from smart_model_router.domain.ports import Clock
from smart_model_router_research.web.backends import SearchBackend, SearchFailed, SearchHit, SearchQuery, shortened
from smart_model_router_research.web.host_turns import HostTurns

FAILURES = 3
"""Failures in a row after which a back-end rests."""
REST_SECONDS = 30.0
LASTING_SECONDS = 3_600.0
"""The rest after a failure that another query would get as well."""
WAIT_SECONDS = 10.0
"""A wait that a back-end asks for is waited out up to this; a longer one is a failure, and a rest."""


@dataclass
class BackendRest:
    """The rest of a back-end, by what it answered. Pure: `now` is monotonic seconds."""

    until: float = float("-inf")
    failures: int = 0
    reason: str = ""

    def refusal(self, now: float) -> str:
        """Return why it is not asked now; "" where it may be. After a rest one call shows how it stands."""
        return f"rests for {self.until - now:.0f} s more ({self.reason})" if now < self.until else ""

    def succeeded(self) -> None:
        """Forget failures."""
        self.failures = 0

    def failed(self, error: SearchFailed, now: float) -> None:
        """Count a failure; rest after one that is lasting or says when to come again, and after several."""
        self.failures += 1
        self.reason = error.reason
        if error.is_lasting:
            self.until = now + LASTING_SECONDS
        elif error.retry_after is not None:
            self.until = now + min(error.retry_after, LASTING_SECONDS)
        elif self.failures >= FAILURES:
            self.until = now + REST_SECONDS


class GuardedBackend:
    """A back-end, asked within its limits."""

    def __init__(self, backend: SearchBackend, clock: Clock) -> None:
        self.backend = backend
        self.rest = BackendRest()
        self._clock = clock
        self._turns = HostTurns(clock)

    @property
    def name(self) -> str:
        """The name of the back-end."""
        return self.backend.name

    async def search(self, query: SearchQuery) -> list[SearchHit]:
        """Return the hits of a query, whose text is cut to what the back-end takes. Raises SearchFailed alone."""
        asked = replace(query, text=shortened(query.text, self.backend.caps.max_query_chars))
        async with self._turns.turn("", self.backend.caps.seconds_apart):
            if refusal := self.rest.refusal(self._clock.now()):
                raise SearchFailed(self.name, refusal)
            try:
                return await self._asked(asked)
            except SearchFailed as error:
                if error.retry_after is None or error.retry_after > WAIT_SECONDS:
                    raise
                await self._clock.sleep(error.retry_after)
            return await self._asked(asked)

    async def _asked(self, query: SearchQuery) -> list[SearchHit]:
        try:
            found: Sequence[object] = await self.backend.search(query)
            hits = [hit for hit in found if isinstance(hit, SearchHit)][: query.k]
        except SearchFailed as error:
            self.rest.failed(error, self._clock.now())
            raise
        except Exception as error:  # a plug-in raises what it likes
            failure = SearchFailed(self.name, type(error).__name__)
            self.rest.failed(failure, self._clock.now())
            raise failure from error
        self.rest.succeeded()
        return hits
