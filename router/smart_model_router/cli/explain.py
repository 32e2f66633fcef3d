"""`smr explain`: what would happen to a prompt, without sending it."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

from smart_model_router.cli.configured import configured
from smart_model_router.cli.exit_codes import ExitCode
from smart_model_router.cli.output import print_json, print_line, print_table
from smart_model_router.flow.inspection import Explanation
from smart_model_router.router import SmartModelRouter

if TYPE_CHECKING:
    from smart_model_router.cli.app import Explain


def run(asked: Explain) -> int:
    """Print the plan; the exit code. Raises SmartRouterError."""
    plan = asyncio.run(_plan(asked))
    if asked.as_json:
        print_json(plan.to_dict())
        return ExitCode.OK
    rows = [
        (
            "" if line.rank is None else str(line.rank),
            line.tier,
            line.target,
            "" if line.health is None else f"{line.health:.2f}",
            line.refusal or "would be asked",
        )
        for line in plan.targets
    ]
    print_table(("rank", "tier", "target", "health", "now"), rows, sys.stdout)
    degraded = " (degraded)" if plan.degraded else ""
    print_line(f"{plan.model}, tier {plan.requested_tier}, by {plan.strategy}: {plan.serves or 'no target'}{degraded}")
    return ExitCode.OK


async def _plan(asked: Explain) -> Explanation:
    found = configured(asked.config)
    body = {"model": asked.model or found.default_model, "messages": [{"role": "user", "content": asked.prompt}]}
    async with SmartModelRouter.from_config(found.config) as router:
        return router.explain(body, tier=asked.tier)
