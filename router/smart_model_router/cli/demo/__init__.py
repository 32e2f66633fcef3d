"""`smr demo`: a fleet fails in turn, a real router answers every question, and everything shown was measured."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

from smart_model_router.cli.demo.demo_fleet import DemoFleet
from smart_model_router.cli.demo.narrator import Narrator
from smart_model_router.cli.demo.story import Story
from smart_model_router.cli.exit_codes import ExitCode
from smart_model_router.cli.output import print_json
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router_providers.local import is_ready

if TYPE_CHECKING:
    from smart_model_router.cli.rehearsal_commands import Demo


def run(asked: Demo) -> int:
    """Play the demo; 0 when every expectation came true. Raises ConfigurationError without the embedded model."""
    readiness = is_ready()
    if not readiness.ready:
        raise ConfigurationError("the embedded model", "missing", f"the demo needs it: {readiness.reason}")
    return asyncio.run(_play(asked.as_json))


async def _play(as_json: bool) -> int:
    narrator = Narrator(sys.stderr if as_json else sys.stdout)
    async with DemoFleet() as fleet:
        figures = await Story(fleet, narrator).play()
    narrator.summary(figures)
    if as_json:
        print_json(figures.to_dict())
    return ExitCode.OK if figures.as_promised else ExitCode.FAILED
