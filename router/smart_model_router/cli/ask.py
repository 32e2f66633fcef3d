"""`smr ask`: one prompt through the router, the answer to stdout as it comes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from smart_model_router.cli.conversation import as_the_gateway_said, used_for
from smart_model_router.cli.exit_codes import ExitCode
from smart_model_router.cli.output import print_answer, print_json, print_line
from smart_model_router.cli.report_text import told
from smart_model_router.domain.errors import SmartRouterError
from smart_model_router.domain.report import RouteReport
from smart_model_router.domain.request import RequestOptions
from smart_model_router.router import SmartModelRouter
from smart_model_router.wires import text_of, text_of_answer

if TYPE_CHECKING:
    from smart_model_router.cli.app import Ask


def run(asked: Ask) -> int:
    """Ask and print; the exit code. Raises SmartRouterError."""
    return asyncio.run(_run(asked))


async def _run(asked: Ask) -> int:
    used = used_for(asked.url, config=asked.config, model=asked.model, tier=asked.tier)
    body = {"model": used.model, "messages": [{"role": "user", "content": asked.prompt}]}
    options: RequestOptions = {"tier": used.tier, "timeout": asked.timeout, "accept_restart": False}
    async with SmartModelRouter.from_config(used.config) as router:
        try:
            if asked.as_json or not asked.stream:
                report = await _whole(router, body, options, as_json=asked.as_json)
            else:
                report = await _streamed(router, body, options)
        except SmartRouterError as error:
            if asked.explain and error.report is not None:
                _explain(error.report)
            said = as_the_gateway_said(error, asked.url)
            if said is error:
                raise
            raise said from error
    if asked.explain:
        _explain(report)
    return ExitCode.DEGRADED if asked.fail_on_degraded and report.degraded else ExitCode.OK


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
