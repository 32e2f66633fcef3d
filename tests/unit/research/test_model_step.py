"""Steps of kind `model`: a request through a real router, with what it costs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from smart_model_router import AllTargetsFailed, ConfigurationError, Failure, FailureClass, SmartModelRouter
from smart_model_router.testing import FakeProvider, FakeReply, LoopClock, run_virtual
from smart_model_router_research.workflow import Costs, StepInput, WorkflowError, parse_workflow
from smart_model_router_research.workflow.model_step import ask_model, costs_of

CONFIG: dict[str, Any] = {
    "version": 1,
    "providers": {"p": {"kind": "openai_compatible", "base_url": "http://127.0.0.1:9/v1", "api_key": "k"}},
    "models": {"smart": {"tiers": [{"targets": ["p/m"]}], "last_resort": []}},
}
BODY = {"model": "smart", "messages": [{"role": "user", "content": "How much is two and two?"}]}


def asked(reply: FakeReply, **options: Any) -> tuple[Any, list[Costs], FakeProvider]:
    """Ask a model that replies like this; return the outputs or the error, the charges, and the provider."""
    provider = FakeProvider(reply)
    charges: list[Costs] = []

    async def scenario() -> Any:
        router = SmartModelRouter.from_config(CONFIG, clock=LoopClock(), providers={"p": provider}, seed=1)
        given = StepInput(
            run_id="r",
            step="a",
            inputs={},
            options={"body": BODY, **options},
            services={"router": router},
            idempotency_key="key-1",
            charge=charges.append,
        )
        try:
            return await ask_model(given)
        except AllTargetsFailed as error:
            return error
        finally:
            await router.aclose()

    return run_virtual(scenario()), charges, provider


def test_the_outputs_are_the_answer_and_who_gave_it() -> None:
    """And the charge is that of the report: tokens, seconds and calls."""
    outputs, charges, provider = asked(FakeReply(seconds=2.0, pieces=("four",)))
    assert outputs == {
        "text": "four",
        "data": None,
        "message": {"role": "assistant", "content": "four"},
        "finish_reason": "stop",
        "model": "m",
        "target": "p/m",
    }
    assert charges == [Costs(tokens=30, usd=0.0, seconds=2.0, calls=1)]
    assert provider.calls[0].headers["idempotency-key"]


def test_an_answer_by_a_format_is_read_as_json() -> None:
    """One that is none gives null: a condition decides what to do then."""
    body = BODY | {"response_format": {"type": "json_object"}}
    assert asked(FakeReply(pieces=('{"passed": true}',)), body=body)[0]["data"] == {"passed": True}
    assert asked(FakeReply(pieces=("yes",)), body=body)[0]["data"] is None
    assert asked(FakeReply(pieces=('{"passed": true}',)))[0]["data"] is None


def test_options_take_the_place_of_what_the_body_says() -> None:
    """The model and the tools."""
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    body = {"model": "other", "messages": BODY["messages"]}
    _, _, provider = asked(FakeReply(), body=body, model_override="smart", tools=tools)
    assert json.loads(provider.calls[0].payload)["tools"] == tools
    assert body == {"model": "other", "messages": BODY["messages"]}


def test_a_failure_is_charged_and_raised() -> None:
    """The calls were made."""
    error, charges, provider = asked(FakeReply(failure=Failure(FailureClass.SERVER_ERROR)))
    assert isinstance(error, AllTargetsFailed)
    assert [charge.calls for charge in charges] == [len(provider.calls)]
    assert costs_of(None) == Costs()


@pytest.mark.asyncio
async def test_a_run_without_a_router_says_so() -> None:
    """Before anything is sent."""
    with pytest.raises(ConfigurationError, match=r"services\.router: missing - a router is needed for the step a"):
        await ask_model(StepInput(run_id="r", step="a", inputs={}, options={"body": BODY}))


def test_a_file_has_model_steps() -> None:
    """Their options are filled when they run, their outputs are known before."""
    text = """
    name: w
    steps:
      - {name: a, kind: model, body: {model: smart, messages: [{role: user, content: "${1 + 1}?"}]}, tier: "2"}
      - {name: b, kind: model, needs: [a], body: {model: smart, messages: ["${steps.a.outputs.text}"]}}
    """
    found = parse_workflow(text).by_name["a"]
    assert found.run is ask_model
    messages = [{"role": "user", "content": "${1 + 1}?"}]
    assert found.options == {"body": {"model": "smart", "messages": messages}, "tier": "2"}
    with pytest.raises(WorkflowError, match="declares no such output; did you mean 'text'"):
        parse_workflow(text.replace("outputs.text", "outputs.txt"))
