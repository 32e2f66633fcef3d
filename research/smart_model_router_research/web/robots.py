"""The rules of robots.txt (RFC 9309), read by Protego, and kept for a while for each host."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from smart_model_router.domain.ports import Clock
from smart_model_router_research.deep.web_text import ExtraMissing
from smart_model_router_research.web.fetch_rules import FetchTarget

PRODUCT = "smart-model-router"
"""The name by which rules address this program."""
MOST_BYTES = 500 * 1024
"""The part of a file that is read, as RFC 9309 has it."""
KEPT_SECONDS = 86_400.0
_RETRY_SECONDS = 300.0
"""A file that could not be read is asked for again after this time."""
_MOST_KEPT = 1_000
_MOST_DELAY = 60.0


@dataclass(frozen=True, slots=True)
class RobotsFile:
    """The answer of a host for its robots.txt: its status (None: no answer) and its text."""

    status: int | None
    text: str = ""


@dataclass(frozen=True, slots=True)
class RobotsVerdict:
    """The rule for one address: why it is not to be fetched ("" where it may be), and the delay that is asked for.

    `has_answered` is False for a host that gave no answer.
    """

    refusal: str = ""
    delay: float = 0.0
    has_answered: bool = True


class RobotsRules:
    """The rules of hosts. `read` gives the file of a host; what it raises is raised by `verdict`."""

    def __init__(self, clock: Clock, read: Callable[[FetchTarget], Awaitable[RobotsFile]]) -> None:
        self._clock = clock
        self._read = read
        self._kept: OrderedDict[str, tuple[float, RobotsFile]] = OrderedDict()

    async def verdict(self, target: FetchTarget) -> RobotsVerdict:
        """Return the rule for an address.

        A host that has no file (4xx) allows all; one whose file cannot be read (5xx, no answer) allows nothing.
        """
        until, file = self._kept.get(target.place, (float("-inf"), RobotsFile(None)))
        if self._clock.now() >= until:
            file = await self._read(target)
            kept = KEPT_SECONDS if file.status is not None and file.status < 500 else _RETRY_SECONDS
            self._kept[target.place] = (self._clock.now() + kept, file)
            self._kept.move_to_end(target.place)
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        return verdict_of(file, str(target.url))


def verdict_of(file: RobotsFile, url: str) -> RobotsVerdict:
    """Return the rule of a file for an address. Raises ExtraMissing without the extra `research`."""
    if file.status is None:
        return RobotsVerdict("its host does not answer", has_answered=False)
    if file.status >= 500:
        return RobotsVerdict(f"robots.txt cannot be read ({file.status})")
    if file.status >= 400:
        return RobotsVerdict()
    try:
        from protego import Protego  # noqa: PLC0415 - an extra
    except ImportError:
        raise ExtraMissing("protego", "research") from None
    rules = Protego.parse(file.text)
    delay = rules.crawl_delay(PRODUCT) or 0.0
    refusal = "" if rules.can_fetch(url, PRODUCT) else "robots.txt of its host keeps it from programs"
    return RobotsVerdict(refusal, min(max(0.0, float(delay)), _MOST_DELAY))
