"""The router over real sockets and in real processes: real time, real cuts, and nothing left behind."""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
import textwrap
import time
import warnings
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from smart_model_router import SmartModelRouter, SmartRouterError, StreamInterrupted
from smart_model_router.domain.outcome import FailureClass
from smart_model_router.flow.state import RouterState
from smart_model_router_providers.fault import Fault, FaultServer
from tests.e2e.descriptors import sockets
from tests.e2e.eventually import becomes

pytestmark = pytest.mark.asyncio

BODY = {"model": "smart", "messages": [{"role": "user", "content": "What is the capital of France?"}]}
GARBAGE = {
    "a web page": Fault.html(),
    "json of no dialect": Fault.wrong_json(),
    "half an answer": Fault.bad_json(),
    "an error as 200": Fault.error_body(),
    "no choices": Fault.empty("choices"),
    "no body": Fault.empty("body"),
    "a reset": Fault.reset(),
}


def config(*servers: FaultServer, last_resort: bool = False, **more: Any) -> dict[str, Any]:
    """One tier of a target at each server, in order: a/x, b/x, c/x; the last resort answers in process."""
    names = "abcdef"[: len(servers)]
    providers: dict[str, Any] = {
        name: {"kind": "openai_compatible", "base_url": server.base_url, "api_key": f"key-{name}"}
        for name, server in zip(names, servers, strict=True)
    }
    providers["l"] = {"kind": "scripted"}
    smart = {"tiers": [{"targets": [f"{name}/x" for name in names]}], "last_resort": ["l/x"] if last_resort else []}
    return {"version": 1, "providers": providers, "models": {"smart": smart}, **more}


@asynccontextmanager
async def fleet(
    *scripts: Sequence[Fault], **options: Any
) -> AsyncGenerator[tuple[SmartModelRouter, list[FaultServer]]]:
    """A router over as many fault servers as there are scripts."""
    servers = [FaultServer(list(script), text="Paris.") for script in scripts]
    for server in servers:
        await server.start()
    try:
        async with SmartModelRouter.from_config(config(*servers, **options), seed=1) as router:
            yield router, servers
    finally:
        for server in servers:
            await server.aclose()


def state_of(router: SmartModelRouter) -> RouterState:
    """The insides: tests may look."""
    return router._state


async def ask(router: SmartModelRouter, *, stream: bool = False, **options: Any) -> str | None:
    """Who served one request; None when nobody did."""
    try:
        if not stream:
            return (await router.chat(BODY, **options)).report.target
        async with router.stream_chat(BODY, **options) as chunks:
            async for _ in chunks:
                pass
            return chunks.report.target
    except SmartRouterError:
        return None


async def test_a_failing_primary_is_nobodys_problem() -> None:
    """500s at the first server: the second one answers, whole and streamed."""
    async with fleet([Fault.status(500)], []) as (router, (a, _)):
        reply = await router.chat(BODY)
        assert reply.body["choices"][0]["message"]["content"] == "Paris."
        assert reply.report.target == "b/x"
        stream = router.stream_chat(BODY)
        async for _chunk in stream:
            pass
        assert (stream.text, stream.report.target) == ("Paris.", "b/x")
        assert a.calls() <= 3


@pytest.mark.parametrize(
    ("what", "stream"),
    [(what, stream) for what in GARBAGE for stream in (False, True) if (what, stream) != ("half an answer", True)],
)  # one spoilt event of a stream is skipped and counted, not a failure
async def test_a_provider_that_answers_garbage_is_a_failure_with_a_class(what: str, stream: bool) -> None:
    """Whatever comes back: another target answers; alone, a typed error that names it, and no slot is kept."""
    async with fleet([GARBAGE[what]], []) as (router, _):
        assert await ask(router, stream=stream) == "b/x"
        alone = router.stream_chat(BODY, avoid=["b"], timeout=2.0) if stream else None
        with pytest.raises(SmartRouterError) as caught:
            await (router.chat(BODY, avoid=["b"], timeout=2.0) if alone is None else anext(alone))
        assert caught.value.report is not None
        assert all(gate.in_flight == 0 for gate in state_of(router).fleet.gates.values())


async def test_a_retry_after_is_honoured_over_the_wire() -> None:
    """429 with Retry-After 1.5: the next request arrives after that, and not after one of our own waits."""
    async with fleet([Fault.status(429, headers={"retry-after": "1.5"}, times=1)]) as (router, (a,)):
        reply = await router.chat(BODY)
        assert [attempt.failure_class for attempt in reply.report.attempts] == [FailureClass.RATE_LIMITED, None]
        first, second = a.requests
        assert 1.5 <= second.at - first.at < 15


async def test_a_cut_stream_is_told_with_what_arrived() -> None:
    """A TCP cut in the middle of an answer: StreamInterrupted carries the text."""
    async with fleet([Fault.cut(after=2)]) as (router, _):
        stream = router.stream_chat(BODY)
        with pytest.raises(StreamInterrupted) as caught:
            async for _ in stream:
                pass
        assert caught.value.text
        assert "Paris.".startswith(caught.value.text)


async def test_leaving_a_stream_early_closes_its_connection() -> None:
    """The server sees its client go: nobody pays for tokens that nobody reads."""
    async with fleet([Fault.stall(after=1)]) as (router, (a,)):
        async for chunk in router.stream_chat(BODY):
            if chunk["choices"] and chunk["choices"][0]["delta"].get("content"):
                break
        assert state_of(router).fleet.gates["a/x"].in_flight == 0
        assert await becomes(lambda: a.in_flight == 0)


async def test_a_total_outage_serves_the_first_request_from_the_last_resort() -> None:
    """Nobody listens at any port: the very first answer comes from the last resort, marked."""
    async with fleet([Fault.down()], [Fault.down()], last_resort=True) as (router, _):
        began = time.monotonic()
        reply = await router.chat(BODY)
        assert (reply.report.target, reply.report.last_resort, reply.report.degraded) == ("l/x", True, True)
        assert time.monotonic() - began < 15


async def test_two_hundred_streams_at_once_all_finish() -> None:
    """More than the slots: the rest waits its turn, everybody is served, nothing is kept."""
    async with fleet([Fault.delay(each=0.005)]) as (router, (a,)):
        served = await asyncio.gather(*(ask(router, stream=True) for _ in range(200)))
        assert served == ["a/x"] * 200
        assert a.max_in_flight() <= 20
        assert state_of(router).wait_queue.waiting == 0


async def test_a_closed_router_leaves_no_task_and_no_socket() -> None:
    """Answers, cuts, stalls, timeouts, leavers and cancellations later: exactly what was open before."""
    unreliable = [Fault.cut(after=1, probability=0.3), Fault.stall(after=1, probability=0.2)]
    async with FaultServer(unreliable, seed=3) as a, FaultServer([Fault.delay(first=0.05)]) as b:
        before_sockets, before_tasks = sockets(), asyncio.all_tasks()
        timeouts = {"timeouts": {"idle": "200ms", "first_content": "500ms"}}
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            async with SmartModelRouter.from_config(config(a, b, resilience=timeouts), seed=1) as router:
                asks = [asyncio.ensure_future(ask(router, stream=n % 2 == 0, timeout=3.0)) for n in range(60)]
                await asyncio.sleep(0.1)  # real time: some are at it by now, whichever they are
                for cancelled in asks[::5]:
                    cancelled.cancel()
                await asyncio.gather(*asks, return_exceptions=True)
                async for _ in router.stream_chat(BODY):
                    break
                half_read = router.stream_chat(BODY)
                await anext(half_read)
                await half_read.aclose()
            del router, half_read, asks
            gc.collect()
        assert await becomes(lambda: not (asyncio.all_tasks() - before_tasks - server_tasks()))
        assert await becomes(lambda: sockets() <= before_sockets)


def server_tasks() -> set[asyncio.Task[Any]]:
    """The tasks of connections that the servers still hold on this loop: not the router's."""
    return {task for task in asyncio.all_tasks() if "fault" in str(task.get_coro())}


def run_script(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program of a user of ours, in a process of its own, with every warning shown."""
    return subprocess.run(
        [sys.executable, "-W", "always", "-c", textwrap.dedent(script), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


FORGETFUL = """
    import asyncio, json, sys
    from smart_model_router import SmartModelRouter

    async def main():
        router = SmartModelRouter.from_config(json.loads(sys.argv[1]))
        body = {"model": "smart", "messages": [{"role": "user", "content": "hi"}]}
        print((await router.chat(body)).report.target)
        stream = router.stream_chat(body)
        async for chunk in stream:
            break
        kept = router.stream_chat(body)
        await anext(kept)
        globals()["kept"] = kept, router

    asyncio.run(main())
    print("end")
"""


async def test_a_router_nobody_closed_does_not_keep_its_process_alive() -> None:
    """The program ends when it is over, with exit code 0 and nothing to say on stderr."""
    async with FaultServer([Fault.delay(each=0.05)]) as server:
        began = time.monotonic()
        done = await asyncio.to_thread(run_script, FORGETFUL, json.dumps(config(server)))
    assert (done.returncode, done.stdout.split()) == (0, ["a/x", "end"])
    assert done.stderr == ""
    assert time.monotonic() - began < 20.0


async def test_an_interrupted_program_ends_at_once() -> None:
    """Ctrl-C in the middle of a call: KeyboardInterrupt, no hang, no second traceback."""
    script = """
        import asyncio, json, os, signal, sys, threading
        from smart_model_router import SmartModelRouter

        async def main():
            async with SmartModelRouter.from_config(json.loads(sys.argv[1])) as router:
                threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
                await router.chat({"model": "smart", "messages": [{"role": "user", "content": "hi"}]})

        try:
            asyncio.run(main())
        except KeyboardInterrupt:
            print("interrupted")
    """
    async with FaultServer([Fault.hang()]) as server:
        done = await asyncio.to_thread(run_script, script, json.dumps(config(server)))
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\n", "")
