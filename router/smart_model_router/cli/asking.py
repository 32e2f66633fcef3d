"""`smr ask`: one prompt through the router, the answer to stdout as it comes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smart_model_router.cli.conversing import as_the_gateway_said, used_for
from smart_model_router.cli.ending import ExitCode
from smart_model_router.cli.printing import print_answer, print_json, print_line
from smart_model_router.cli.telling import told
from smart_model_router.errors import SmartRouterError
from smart_model_router.report import RouteReport
from smart_model_router.request import RequestOptions
from smart_model_router.router import SmartModelRouter
from smart_model_router.wires import text_of, text_of_answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """What `smr ask` was told. `timeout` is in seconds."""

    prompt: str
    config: Path | None
    model: str | None
    tier: str | None
    timeout: float | None
    stream: bool
    explain: bool
    fail_on_degraded: bool
    as_json: bool
    url: str | None = None


def run(asking: Asking) -> int:
    """Ask and print; the exit code. Raises SmartRouterError."""
    return asyncio.run(_run(asking))


async def _run(asking: Asking) -> int:
    used = used_for(asking.url, config=asking.config, model=asking.model, tier=asking.tier)
    body = {"model": used.model, "messages": [{"role": "user", "content": asking.prompt}]}
    options: RequestOptions = {"tier": used.tier, "timeout": asking.timeout, "accept_restart": False}
    async with SmartModelRouter.from_config(used.config) as router:
        try:
            if asking.as_json or not asking.stream:
                report = await _whole(router, body, options, as_json=asking.as_json)
            else:
                report = await _streamed(router, body, options)
        except SmartRouterError as error:
            if asking.explain and error.report is not None:
                _explain(error.report)
            said = as_the_gateway_said(error, asking.url)
            if said is error:
                raise
            raise said from error
    if asking.explain:
        _explain(report)
    return ExitCode.DEGRADED if asking.fail_on_degraded and report.degraded else ExitCode.OK


async def _whole(
    router: SmartModelRouter, body: Mapping[str, Any], options: RequestOptions, *, as_json: bool
) -> RouteReport:
    reply = await router.chat(body, **options)
    text = text_of_answer(reply.body)
    if as_json:
        print_json({"text": text, "body": reply.body, "report": reply.report.to_dict()})
    else:
        print_answer(text if text.endswith("\n") else text + "\n")
    return reply.report


async def _streamed(router: SmartModelRouter, body: Mapping[str, Any], options: RequestOptions) -> RouteReport:
    async with router.stream_chat(body, **options) as stream:
        try:
            async for chunk in stream:
                print_answer(text_of("chat", chunk))
        finally:
            if stream.text and not stream.text.endswith("\n"):
                print_answer("\n")
        return stream.report


def _explain(report: RouteReport) -> None:
    for line in told(report):
        print_line(line)
