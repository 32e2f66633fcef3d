"""`smr demo`: a fleet fails in turn, a real router answers every question, and everything shown was measured."""

from __future__ import annotations

import asyncio
import sys

from smart_model_router.cli.demo.fleet import Fleet
from smart_model_router.cli.demo.narrator import Narrator
from smart_model_router.cli.demo.story import Story
from smart_model_router.cli.ending import ExitCode
from smart_model_router.cli.printing import print_json, print_line
from smart_model_router_providers.local import is_ready


def run(*, as_json: bool) -> int:
    """Play the demo; 0 when every expectation came true, 3 when the embedded model is not installed."""
    readiness = is_ready()
    if not readiness.ready:
        print_line(f"smr: the demo needs the embedded model: {readiness.reason}")
        return ExitCode.CONFIGURATION
    return asyncio.run(_play(as_json))


async def _play(as_json: bool) -> int:
    narrator = Narrator(sys.stderr if as_json else sys.stdout)
    async with Fleet() as fleet:
        figures = await Story(fleet, narrator).play()
    narrator.summary(figures)
    if as_json:
        print_json(figures.to_dict())
    return ExitCode.OK if figures.as_promised else ExitCode.FAILED
