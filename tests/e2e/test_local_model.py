"""The real embedded model: it answers, streams, is interrupted, dies, comes back, leaves nothing behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from smart_model_router import SmartModelRouter, SmartRouterError
from smart_model_router.domain.outcome import EventKind, Failure, FailureClass, Outcome, StreamEvent, Success
from smart_model_router.domain.ports import ProviderCall, ProviderStream
from smart_model_router.domain.request import Dialect
from smart_model_router.wires.untooled import TOOLS_LEFT_OUT
from smart_model_router_providers.local import install
from smart_model_router_providers.local.provider import LocalProvider

pytestmark = pytest.mark.alone
reads_proc = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

QUESTION = "What is the capital of France?"
LONG_STORY = "Write a very long story about a dragon."
# 3,000 tokens take 30 s and more; a call after an interrupted one must not have waited for them.
ENDLESS: dict[str, Any] = {"max_tokens": 3000, "ignore_eos": True}
INTERRUPTED_SECONDS = 15.0

STARTS_THE_MODEL = """
import asyncio, os, time
from smart_model_router_providers.local.provider import LocalProvider

provider = LocalProvider(start_timeout=100)

async def main():
    assert await provider.prepare() is None
    print(provider.pid, flush=True)

asyncio.run(main())
"""
IS_KILLED = STARTS_THE_MODEL + "os.kill(os.getpid(), 9)"
IS_KILLED_BUT_LEFT_A_COPY = STARTS_THE_MODEL + "os.fork() and os.kill(os.getpid(), 9)\ntime.sleep(30)"

A_COPY_USES_IT_TOO = (
    STARTS_THE_MODEL
    + """
original = provider.pid
copy = os.fork()
asyncio.run(main())
assert (provider.pid == original) == bool(copy), "the copy has a model of its own, the original keeps its own"
if copy:
    assert os.waitpid(copy, 0)[1] == 0
    asyncio.run(main())
    assert provider.pid == original, "the copy's end leaves the original's model alone"
"""
)


@pytest.fixture(scope="session", autouse=True)
def _installed() -> None:
    """The model's file is in the user's data directory; where it cannot be had the tests fail and say why."""
    install(print)


@pytest_asyncio.fixture
async def provider() -> AsyncIterator[LocalProvider]:
    """A provider whose model is loaded; closed afterwards."""
    provider = LocalProvider(max_tokens=ENDLESS["max_tokens"], start_timeout=100)
    assert await provider.prepare() is None
    yield provider
    await provider.aclose()


def loaded(**options: Any) -> Iterator[LocalProvider]:
    """A provider whose model is loaded once for several tests; each uses it on a loop of its own."""
    provider = LocalProvider(start_timeout=100, **options)
    assert asyncio.run(provider.prepare()) is None
    yield provider
    asyncio.run(provider.aclose())


@pytest.fixture(scope="module")
def shared() -> Iterator[LocalProvider]:
    """A provider for tests that leave its child alive; closed after all of them."""
    yield from loaded(max_tokens=ENDLESS["max_tokens"])


@pytest.fixture(scope="module")
def short() -> Iterator[LocalProvider]:
    """A provider whose answers are short."""
    yield from loaded(default_max_tokens=12, max_tokens=20)


def ask(text: str = QUESTION, *, dialect: Dialect = "chat", stream: bool = False, **more: Any) -> ProviderCall:
    """A call that asks `text`."""
    body = {"model": "smollm2", "messages": [{"role": "user", "content": text}], "temperature": 0, **more}
    if stream:
        body["stream"] = True
    return ProviderCall(dialect=dialect, model="smollm2", payload=json.dumps(body).encode(), body=body, stream=stream)


def success(outcome: Outcome) -> Success:
    """The outcome, which must be a success."""
    assert isinstance(outcome, Success), outcome
    return outcome


def failure(outcome: Outcome) -> Failure:
    """The outcome, which must be a failure."""
    assert isinstance(outcome, Failure)
    return outcome


async def opened(provider: LocalProvider, call: ProviderCall) -> ProviderStream:
    """The stream, which must have been opened."""
    stream = await provider.open_stream(call)
    assert not isinstance(stream, Failure), stream
    return stream


def child_of(provider: LocalProvider) -> int:
    """The child's process id; there must be one."""
    assert provider.pid is not None
    return provider.pid


async def kill_child(provider: LocalProvider) -> None:
    """Kill the child as the kernel would when memory runs out, and return once its death is known."""
    process = provider._process
    assert process is not None
    os.kill(child_of(provider), signal.SIGKILL)
    await asyncio.wrap_future(process.ended)


def of_process(pid: int, file: str) -> str:
    """What Linux says of a process. Raises FileNotFoundError when there is none (a zombie is one)."""
    return Path(f"/proc/{pid}/{file}").read_text(errors="replace")


def is_gone(pid: int, within_seconds: float) -> bool:
    """Whether a process ends in time. A zombie is gone: whether somebody reaps it is the machine's affair."""
    deadline = time.monotonic() + within_seconds
    while time.monotonic() < deadline:
        try:
            if of_process(pid, "stat").rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        threading.Event().wait(0.02)
    return False


def run(script: str) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, which must come."""
    command = [sys.executable, "-c", script]
    return subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)


@pytest.mark.asyncio
@pytest.mark.parametrize("dialect", ["chat", "messages"])
async def test_it_answers_a_question(shared: LocalProvider, dialect: Dialect) -> None:
    """A real answer in either dialect, with its tokens counted."""
    answer = success(await shared.call(ask(dialect=dialect, max_tokens=32)))
    assert "Paris" in answer.raw.decode()
    assert answer.usage is not None
    assert answer.usage.completion_tokens > 0


@pytest.mark.asyncio
async def test_the_first_call_starts_the_model_by_itself() -> None:
    """Nobody need prepare anything, and no process runs before it is needed."""
    provider = LocalProvider(start_timeout=100)
    assert provider.pid is None
    answer = success(await provider.call(ask(max_tokens=8)))
    await provider.aclose()
    assert answer.body["choices"][0]["message"]["content"].strip()


@pytest.mark.asyncio
@pytest.mark.parametrize("dialect", ["chat", "messages"])
async def test_it_streams_as_it_writes(shared: LocalProvider, dialect: Dialect) -> None:
    """Content comes in many events, spread over the time of writing, and the stream has its terminator."""
    stream = await opened(shared, ask(LONG_STORY, dialect=dialect, stream=True, max_tokens=40))
    events: list[tuple[float, StreamEvent]] = [(time.monotonic(), event) async for event in stream]
    await stream.aclose()
    content = [at for at, event in events if event.kind is EventKind.CONTENT]
    assert len(content) > 20
    assert content[-1] - content[0] > 0.1
    assert events[-1][1].kind is EventKind.END


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("asked", "tokens"),
    [
        ({}, 12),
        ({"max_tokens": 7}, 7),
        ({"max_completion_tokens": 7}, 7),
        ({"max_tokens": 5000}, 20),
        ({"n_predict": -1}, 12),
        ({"max_tokens": 7, "n_predict": 5000}, 7),
    ],
)
async def test_an_answer_has_its_length(short: LocalProvider, asked: dict[str, Any], tokens: int) -> None:
    """The caller's own length up to the cap, ours when it names none; no field gets past the cap."""
    answer = success(await short.call(ask(LONG_STORY, ignore_eos=True, **asked)))
    assert answer.usage is not None
    assert answer.usage.completion_tokens == tokens


@pytest.mark.asyncio
@pytest.mark.parametrize("dialect", ["chat", "messages"])
async def test_a_prompt_over_the_cap_is_refused_by_its_tokens(shared: LocalProvider, dialect: Dialect) -> None:
    """2,500 digits are few bytes and many tokens: refused, although the model's context would hold them."""
    got = failure(await shared.call(ask("7" * 2500, dialect=dialect, max_tokens=1)))
    assert got.failure_class is FailureClass.CONTEXT_LENGTH
    assert "tokens, the embedded model takes 1500" in got.message


@pytest.mark.asyncio
@reads_proc
async def test_a_long_prompt_under_the_cap_is_served_in_little_memory(provider: LocalProvider) -> None:
    """6 KB of plain English are served, and the child stays below 450 MB."""
    text = "The quick brown fox jumps over the lazy dog. " * 140
    answer = success(await provider.call(ask(text, max_tokens=4)))
    peak_kb = int(of_process(child_of(provider), "status").partition("VmHWM:")[2].split()[0])
    assert answer.usage is not None
    assert answer.usage.prompt_tokens > 1400
    assert peak_kb < 450_000


@pytest.mark.asyncio
async def test_an_agent_is_answered_without_its_tools_when_all_is_down() -> None:
    """`last_resort.tools: answer_without`, by the real model: words, no call, and the loss named; before it refused."""
    nothing = "http://127.0.0.1:9/v1"  # the port that discards: no server is there
    tree: dict[str, Any] = {
        "version": 1,
        "providers": {"a": {"kind": "openai", "api_key": "k", "base_url": nothing}, "l": {"kind": "local"}},
        "models": {"smart": {"targets": ["a/gpt-5"], "last_resort": ["l/smollm2"]}},
        "routing": {"last_resort_after": 0},
        "local": {"start_timeout": 100, "default_max_tokens": 12},
    }
    called = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    body = {
        "model": "smart",
        "messages": [
            {"role": "user", "content": QUESTION},
            {"role": "assistant", "content": None, "tool_calls": [called]},
            {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
        ],
        "tools": [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}],
    }
    async with SmartModelRouter.from_config(tree) as router:
        with pytest.raises(SmartRouterError):
            await router.chat(body, timeout=5)
    async with SmartModelRouter.from_config({**tree, "last_resort": {"tools": "answer_without"}}) as router:
        reply = await router.chat(body, timeout=120)
    message = reply.body["choices"][0]["message"]
    assert (bool(message["content"]), message.get("tool_calls")) == (True, None)
    assert (reply.report.target, reply.report.degraded, reply.report.losses) == ("l/smollm2", True, [TOOLS_LEFT_OUT])


@pytest.mark.asyncio
async def test_a_cancelled_call_stops_the_model(shared: LocalProvider) -> None:
    """The one slot is free again at once: the next call does not wait for an answer that nobody wants."""
    call = asyncio.create_task(shared.call(ask(LONG_STORY, **ENDLESS)))
    await asyncio.sleep(0.5)  # real time: it writes by now; the same holds if it does not yet
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    started = time.monotonic()
    success(await shared.call(ask(max_tokens=1)))
    assert time.monotonic() - started < INTERRUPTED_SECONDS


@pytest.mark.asyncio
async def test_a_closed_stream_stops_the_model(shared: LocalProvider) -> None:
    """Whoever leaves a stream after its first content frees the slot at once."""
    stream = await opened(shared, ask(LONG_STORY, stream=True, **ENDLESS))
    events = aiter(stream)
    await anext(events)
    await stream.aclose()
    started = time.monotonic()
    success(await shared.call(ask(max_tokens=1)))
    assert time.monotonic() - started < INTERRUPTED_SECONDS


@pytest.mark.asyncio
async def test_a_killed_child_is_replaced(provider: LocalProvider) -> None:
    """The call after the death is served, by another process."""
    first = child_of(provider)
    await kill_child(provider)
    success(await provider.call(ask(max_tokens=8)))
    assert child_of(provider) != first


@pytest.mark.asyncio
async def test_a_child_killed_while_it_answers_is_a_failure_value(provider: LocalProvider) -> None:
    """The call it was serving comes back as a transport failure, and the next one is served."""
    call = asyncio.create_task(provider.call(ask(LONG_STORY, **ENDLESS)))
    await asyncio.sleep(0.5)  # real time: it writes by now; the same holds if it does not yet
    await kill_child(provider)
    lost = failure(await call)
    success(await provider.call(ask(max_tokens=8)))
    assert lost.failure_class is FailureClass.TRANSPORT


@pytest.mark.asyncio
async def test_a_child_killed_while_it_streams_ends_the_stream_with_an_error(provider: LocalProvider) -> None:
    """What had arrived stays, the last event says that it was cut, and the next call is served."""
    stream = await opened(provider, ask(LONG_STORY, stream=True, **ENDLESS))
    events = aiter(stream)
    seen = [await anext(events) for _ in range(5)]
    await kill_child(provider)
    seen += [event async for event in events]
    await stream.aclose()
    success(await provider.call(ask(max_tokens=8)))
    assert seen[-1].failure is not None
    assert seen[-1].failure.failure_class is FailureClass.TRUNCATED


@reads_proc
@pytest.mark.parametrize("script", [IS_KILLED, IS_KILLED_BUT_LEFT_A_COPY], ids=["alone", "forked"])
def test_the_child_dies_with_a_killed_parent(script: str) -> None:
    """kill -9 of the router's process takes the model along, even if a forked copy lives on."""
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    with parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert parent.wait(30) == -signal.SIGKILL
        assert is_gone(child, within_seconds=20)


@reads_proc
def test_a_provider_that_nobody_closed_keeps_no_process_alive() -> None:
    """The program ends by itself, with exit code 0 and without a word, and the model's process is gone."""
    done = run(STARTS_THE_MODEL)
    assert (done.returncode, done.stderr) == (0, "")
    assert is_gone(int(done.stdout), within_seconds=20)


@reads_proc
def test_a_forked_copy_leaves_the_original_its_model() -> None:
    """Two processes after a fork are two providers: neither talks to the other's child or ends it."""
    done = run(A_COPY_USES_IT_TOO)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.asyncio
@reads_proc
async def test_aclose_ends_and_reaps_the_child_in_a_second(provider: LocalProvider) -> None:
    """Closing is quick, complete (no zombie is left), and harmless when repeated."""
    child = child_of(provider)
    started = time.monotonic()
    await provider.aclose()
    await provider.aclose()
    assert time.monotonic() - started < 15
    with pytest.raises(FileNotFoundError):
        of_process(child, "stat")


@pytest.mark.asyncio
@reads_proc
async def test_the_key_is_shown_nowhere_and_needed_everywhere(shared: LocalProvider) -> None:
    """Other users of the machine see the port, but neither in arguments nor environment the key to it."""
    connection = shared._connection
    assert connection is not None
    child = child_of(shared)
    shown = of_process(child, "cmdline") + of_process(child, "environ")
    async with httpx.AsyncClient() as stranger:
        answer = await stranger.post(f"{connection.state.url}/v1/chat/completions", json=ask().body)
    assert connection.state.api_key not in shown
    assert connection.state.api_key not in repr(connection.state)
    assert answer.status_code == 401


@pytest.mark.asyncio
@reads_proc
async def test_the_child_gives_way_to_others(shared: LocalProvider) -> None:
    """The model computes ten steps nicer than its parent: what the machine is there for goes first."""
    ours = os.getpriority(os.PRIO_PROCESS, 0)
    assert os.getpriority(os.PRIO_PROCESS, child_of(shared)) == min(19, ours + 10)


def test_one_child_serves_one_loop_after_another() -> None:
    """A provider that outlives its event loop goes on with the next one, and with the same child."""
    provider = LocalProvider(start_timeout=100)

    async def once() -> int:
        success(await provider.call(ask(max_tokens=4)))
        return child_of(provider)

    async def last() -> int:
        child = await once()
        await provider.aclose()
        return child

    assert asyncio.run(once()) == asyncio.run(last())
