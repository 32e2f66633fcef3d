"""The work of a step of kind `model`: one Chat Completions request through the router of the run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from smart_model_router.domain.errors import ConfigurationError, SmartRouterError
from smart_model_router_research.workflow.step import Costs, StepInput

if TYPE_CHECKING:
    from smart_model_router import RouteReport

OPTIONS = ("body", "tier", "tools", "model_override")
OUTPUTS = ("text", "data", "message", "finish_reason", "model", "target")


async def ask_model(step: StepInput) -> Mapping[str, Any]:
    """Send `options["body"]` through `services["router"]`, and charge what the report says, also of a failure.

    `tools` and `model_override` take the place of the body's `tools` and `model`; `tier` is the tier to begin with.
    Outputs: `text` and the whole `message` of the answer, `data` (its text as JSON, where the body has a
    `response_format`, else null), `finish_reason`, and the `model` and `target` that served. Raises what the router
    raises.
    """
    router = step.services.get("router")
    if router is None:
        raise ConfigurationError("services.router", None, f"a router is needed for the step {step.step}")
    body = dict(step.options["body"])
    for option, key in (("tools", "tools"), ("model_override", "model")):
        if step.options.get(option) is not None:
            body[key] = step.options[option]
    headers = {"idempotency-key": step.idempotency_key} if step.idempotency_key else {}
    try:
        reply = await router.chat(body, tier=step.options.get("tier"), headers=headers)
    except SmartRouterError as error:
        step.charge(costs_of(error.report))
        raise
    step.charge(costs_of(reply.report))
    choice = reply.body["choices"][0]
    text = choice["message"].get("content")
    return {
        "text": text,
        "data": _read(text) if "response_format" in body else None,
        "message": choice["message"],
        "finish_reason": choice.get("finish_reason"),
        "model": reply.body.get("model"),
        "target": reply.report.target,
    }


def costs_of(report: RouteReport | None) -> Costs:
    """Return what a request has cost: all its attempts; nothing where there were none, or where it is not known."""
    if report is None:
        return Costs()
    tokens = report.usage.prompt_tokens + report.usage.completion_tokens if report.usage is not None else 0
    return Costs(tokens, report.cost_usd or 0.0, report.seconds, len(report.attempts))


def _read(text: object) -> Any:
    try:
        return json.loads(text) if isinstance(text, str) else None
    except ValueError:
        return None
