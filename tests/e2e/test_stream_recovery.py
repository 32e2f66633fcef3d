"""Streams that break off, recovered over real sockets: Chat and Messages, the router, the SDKs and the gateway."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import anthropic
import httpx2
import openai
import pytest

from smart_model_router import SmartModelRouter, StreamInterrupted
from smart_model_router.clients import AsyncAnthropic, AsyncOpenAI, report_of
from smart_model_router.flow.router_stream import RouterStream
from smart_model_router_providers.fault import Fault, FaultServer
from tests.e2e.gateways import served

Kind = Literal["vllm", "mistral", "openai_compatible", "anthropic"]
TEXT = "It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness."
QUESTION: list[Any] = [{"role": "user", "content": "How does it begin?"}]
BODY = {"model": "smart", "messages": QUESTION, "max_tokens": 200}
IDLE = 1.0
DIALECTS: tuple[Kind, ...] = ("vllm", "anthropic")

BREAKS = {
    **{f"cut at byte {byte}": Fault.cut(at_byte=byte) for byte in (850, 1111, 1600, 2345, 3000)},
    "cut after a piece": Fault.cut(after=1),
    "cut before the end": Fault.cut(after=25),
    "silence": Fault.stall(after=6),
    "comments only": Fault.stall(after=9, comments=True, every=0.1),
    "an error event": Fault.error_event(after=12),
}
FAULTS = {
    **BREAKS,
    "cut in the head": Fault.cut(after=0),
    "reset in the middle": Fault.cut(after=7, reset=True),
    "reset before the head": Fault.reset(),
    "an error first": Fault.error_event(after=None),
    "no terminator": Fault.no_terminator(),
    "invalid JSON in an event": Fault.bad_json(after=4),
    "pings only": Fault.stall(after=0, comments="pings", every=0.1),
    "pings after content": Fault.stall(after=5, comments="pings", every=0.1),
    "a head without content": Fault.headers_only(),
    "no answer": Fault.hang(),
    "JSON instead of a stream": Fault.json_instead_of_stream(),
    "HTML": Fault.html(),
    "wrong JSON": Fault.wrong_json(),
    "an error as 200": Fault.error_body(),
    "no content": Fault.empty(),
    "no choices": Fault.empty("choices"),
    "no body": Fault.empty("body"),
}


def config(
    kind: Kind, *servers: FaultServer, first_content: float = 10.0, idle: float = IDLE, **model: Any
) -> dict[str, Any]:
    """A tier of a target at each server, in this order; each goes on with another's answer, or says it knows how."""
    names = "abcd"[: len(servers)]
    one = {"kind": kind, "api_key": "k"}
    targets = [
        {"target": f"{name}/x", **({"prefill": "plain"} if kind == "openai_compatible" else {})} for name in names
    ]
    return {
        "version": 1,
        "providers": {n: {**one, "base_url": s.base_url} for n, s in zip(names, servers, strict=True)},
        "models": {"smart": {"tiers": [{"targets": targets}], "strategy": "ordered", "last_resort": [], **model}},
        "resilience": {"timeouts": {"idle": idle, "first_content": first_content}},
    }


@asynccontextmanager
async def fleet(
    kind: Kind, *scripts: Sequence[Fault], first_content: float = 10.0, idle: float = IDLE
) -> AsyncGenerator[tuple[SmartModelRouter, list[FaultServer]]]:
    """A router over as many fault servers as there are scripts."""
    servers = [FaultServer(list(script), text=TEXT) for script in scripts]
    for server in servers:
        await server.start()
    try:
        given = config(kind, *servers, first_content=first_content, idle=idle)
        async with SmartModelRouter.from_config(given, seed=1) as router:
            yield router, servers
    finally:
        for server in servers:
            await server.aclose()


def ask(router: SmartModelRouter, kind: Kind, **options: Any) -> RouterStream:
    """A stream in the dialect of the kind."""
    return (router.stream_messages if kind == "anthropic" else router.stream_chat)(BODY, **options)


async def read(stream: RouterStream) -> list[Any]:
    """Every event of a stream."""
    return [data async for data in stream]


@pytest.mark.asyncio
@pytest.mark.parametrize("fault", BREAKS.values(), ids=BREAKS.keys())
@pytest.mark.parametrize("kind", ["vllm", "mistral", "openai_compatible", "anthropic"])
async def test_a_broken_stream_is_delivered_in_full_and_once(kind: Kind, fault: Fault) -> None:
    """Ten breaks of ten, wherever they are, by every sign; `openai_compatible` here says all again, and is trimmed."""
    async with fleet(kind, [fault], []) as (router, (_, b)):
        stream = ask(router, kind, recovery="continue")
        await read(stream)
        report = stream.report
        assert stream.text == TEXT
        assert (report.target, report.complete) == ("b/x", True)
        (recovery,) = report.recoveries
        assert (recovery.from_target, recovery.to_target) == ("a/x", "b/x")
        assert recovery.failure_class is report.attempts[0].failure_class
        assert 0 < recovery.kept_characters < len(TEXT)
        kept = TEXT[: recovery.kept_characters]
        seam = len(kept) - len(kept.rstrip())  # no provider takes a beginning that ends with white space
        assert recovery.trimmed_characters == (len(kept) if kind == "openai_compatible" else seam)
        assert report.usage is not None
        assert report.usage.completion_tokens == sum(a.usage.completion_tokens for a in report.attempts if a.usage)
        assert report.usage.completion_tokens >= len(TEXT) // 4
        begun = b.requests[0].body["messages"][-1]
        assert begun["role"] == "assistant"
        assert begun["content"] == kept.rstrip()


@pytest.mark.asyncio
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
@pytest.mark.parametrize("kind", DIALECTS)
async def test_buffered_hides_every_fault_of_a_stream(kind: Kind, fault: Fault) -> None:
    """Whatever goes wrong, whenever: the second server's whole answer, and nothing of the first one's."""
    async with fleet(kind, [fault], [], first_content=1.0) as (router, _):
        stream = ask(router, kind, recovery="buffered", timeout=20)
        events = await read(stream)
        assert stream.text == TEXT
        assert (stream.report.target, stream.report.complete) == ("b/x", True)
        heads = [event for event in events if event.get("type") == "message_start"]
        assert len(heads) == (kind == "anthropic")
        assert stream.report.attempts[0].failure_class is not None


@pytest.mark.asyncio
@pytest.mark.parametrize("kind", DIALECTS)
async def test_a_chain_of_breaks_is_one_answer(kind: Kind) -> None:
    """Cut, refused with 400, stalled, and whole: four servers, one text."""
    scripts: tuple[list[Fault], ...] = ([Fault.cut(after=5)], [Fault.status(400)], [Fault.stall(after=4)], [])
    async with fleet(kind, *scripts) as (router, _):
        stream = ask(router, kind, recovery="continue")
        await read(stream)
        assert stream.text == TEXT
        assert [r.to_target for r in stream.report.recoveries] == ["c/x", "d/x"]
        assert [r.kept_characters for r in stream.report.recoveries] == [20, 36]


@pytest.mark.asyncio
@pytest.mark.parametrize("kind", DIALECTS)
async def test_nobody_to_go_on_is_an_error_as_ever(kind: Kind) -> None:
    """The only other server refuses, and so does the first one then: StreamInterrupted with what arrived."""
    servers = ([Fault.cut(after=5, times=1), Fault.status(400)], [Fault.status(400)])
    async with fleet(kind, *servers, idle=60.0) as (router, _):  # five calls have to fit, on a busy machine too
        stream = ask(router, kind, recovery="continue")
        with pytest.raises(StreamInterrupted) as caught:
            await read(stream)
        assert caught.value.text == TEXT[:20]
        # Each refuses the prefill, and then the request in words.
        assert [a.target for a in stream.report.attempts] == ["a/x", "b/x", "b/x", "a/x", "a/x"]


@pytest.mark.asyncio
async def test_a_translated_stream_is_gone_on_with_by_another_dialect() -> None:
    """Asked in Chat, begun by a Messages server, gone on with by a Chat server; and the other way round."""
    async with FaultServer([Fault.cut(after=9)], text=TEXT) as a, FaultServer(text=TEXT) as b:
        for first, second in (("anthropic", "vllm"), ("vllm", "anthropic")):
            tree = config("vllm", a, b)
            tree["providers"]["a"]["kind"], tree["providers"]["b"]["kind"] = first, second
            async with SmartModelRouter.from_config(tree, seed=1) as router:
                for kind in DIALECTS:
                    stream = ask(router, kind, recovery="continue")
                    await read(stream)
                    assert stream.text == TEXT
                    assert stream.report.recoveries[0].to_target == "b/x"


@pytest.mark.asyncio
async def test_the_sdks_read_a_recovered_stream() -> None:
    """OpenAI's and Anthropic's own stream helpers put one answer together, with the usage of both attempts."""
    async with FaultServer([Fault.cut(after=9)], text=TEXT) as a, FaultServer(text=TEXT) as b:
        async with AsyncOpenAI(config("vllm", a, b, recovery="continue"), max_retries=0) as chatty:
            async with chatty.chat.completions.stream(
                model="smart", messages=QUESTION, stream_options={"include_usage": True}
            ) as chunks:
                answer = await chunks.get_final_completion()
            assert answer.choices[0].message.content == TEXT
            assert answer.usage is not None
            assert answer.usage.completion_tokens == 9 + (len(TEXT) - 36 + 3) // 4
        async with AsyncAnthropic(config("anthropic", a, b, recovery="continue"), max_retries=0) as claudish:
            async with claudish.messages.stream(model="smart", max_tokens=200, messages=QUESTION) as events:
                message = await events.get_final_message()
            assert [block.text for block in message.content if block.type == "text"] == [TEXT]
            assert message.usage.output_tokens == 9 + (len(TEXT) - 36 + 3) // 4
            assert message.stop_reason == "end_turn"
            recoveries = report_of(events).recoveries
            assert [each.to_target for each in recoveries] == ["b/x"]


def test_the_gateway_recovers_as_its_client_asks(tmp_path: Path) -> None:
    """Header by header: `none`, nothing, a restart that is understood or not, and a word that is no policy."""
    with FaultServer([Fault.cut(after=9)], text=TEXT) as a, FaultServer(text=TEXT) as b:
        tree = config("vllm", a, b)
        tree["resilience"] |= {
            "cooldown": {"failure": "1ms", "timeout": "1ms"},
            "breaker": {"consecutive_failures": 100},
        }
        tree["models"]["again"] = {**tree["models"]["smart"], "recovery": "restart"}
        with served(tree, tmp_path) as gateway:
            client = openai.OpenAI(base_url=gateway.base_url + "/v1", api_key="k", max_retries=0)

            def text(model: str = "smart", **headers: str) -> str:
                extra = {name.replace("_", "-"): value for name, value in headers.items()}
                chunks = client.chat.completions.create(
                    model=model, messages=QUESTION, stream=True, extra_headers=extra
                )
                return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)

            with pytest.raises(openai.APIError):
                text(x_router_recovery="none")
            assert text() == TEXT
            with pytest.raises(openai.APIError):
                text("again")
            assert text("again", x_router_accept_restart="true") == TEXT[:36] + TEXT
            assert text(x_router_recovery="restart") == TEXT[:36] + TEXT
            with pytest.raises(openai.BadRequestError, match="did you mean 'continue'"):
                text(x_router_recovery="continu")
            body = {"model": "again", "messages": QUESTION, "stream": True}
            raw = httpx2.post(
                gateway.base_url + "/v1/chat/completions", json=body, headers={"x-router-accept-restart": "1"}
            ).text
            client.close()
    assert raw.count("event: router.restart\n") == 1
    assert raw.rstrip().endswith("data: [DONE]")


def test_anthropics_sdk_skips_the_restart_event(tmp_path: Path) -> None:
    """A client that asked for restarts and reads by the SDK sees the second answer begin."""
    with (
        FaultServer([Fault.cut(after=9)], text=TEXT) as a,
        FaultServer(text=TEXT) as b,
        served(config("anthropic", a, b), tmp_path) as gateway,
    ):
        client = anthropic.Anthropic(base_url=gateway.base_url, api_key="k", max_retries=0)
        asked = {"x-router-recovery": "restart"}
        events = list(
            client.messages.create(model="smart", max_tokens=200, messages=QUESTION, stream=True, extra_headers=asked)
        )
        client.close()
    assert [event.type for event in events].count("message_start") == 2
    assert events[-1].type == "message_stop"
