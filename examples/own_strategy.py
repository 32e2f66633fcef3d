"""A routing strategy of your own: the provider with the greenest electricity first, and the rest as it was written.

A strategy is one method and one flag. `order` gets the candidates of a tier and what is known of them, and returns all
of them, best first. Targets that rest or have no free slot are passed over afterwards; a strategy need not know. The
configuration names it as `package.module:attribute`: a class that takes no arguments, or an object.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from smart_model_router import SmartModelRouter
from smart_model_router.core.selection import Candidate, View

GRAMS_PER_KWH = {"coal": 820, "wind": 11, "water": 24}
CONFIG = {
    "version": 1,
    "providers": {name: {"kind": "scripted"} for name in GRAMS_PER_KWH},
    "models": {
        "smart": {
            "strategy": f"{__name__}:GREENEST",
            "tiers": [{"targets": ["coal/big", "wind/big", "water/big"]}],
            "last_resort": [],
        }
    },
}


class Greenest:
    """By grams of CO2 for a kilowatt hour; equals keep their written order."""

    redistributes = False

    def __init__(self, grams: Mapping[str, float]) -> None:
        self._grams = grams

    def order(self, candidates: Sequence[Candidate], view: View, now: float, roll: float) -> list[Candidate]:  # noqa: ARG002 - a strategy's four
        """All candidates, best first."""
        return sorted(candidates, key=lambda one: (self._grams[one.provider], one.position))


GREENEST = Greenest(GRAMS_PER_KWH)


async def main() -> None:
    """Ask twice; the second time the greenest is switched off."""
    question = {"model": "smart", "messages": [{"role": "user", "content": "Good morning!"}]}
    async with SmartModelRouter.from_config(CONFIG) as router:
        print("answered by", (await router.chat(question)).report.target)
        router.isolate("wind/big")
        print("without wind:", (await router.chat(question)).report.target)


if __name__ == "__main__":
    asyncio.run(main())
