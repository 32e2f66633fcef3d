"""A FastAPI application with one router for all of its requests: an answer, a stream, and errors with a Retry-After.

Runs without a key: the providers are fault servers, and the application is asked in this process. In yours, `lifespan`
reads `smart-router.yaml`, and a server such as uvicorn runs `app`.
"""

# /// script
# dependencies = ["smart-model-router", "fastapi>=0.130,<1", "httpx>=0.27"]
# ///

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, StreamingResponse

from smart_model_router import RouterUnavailable, SmartModelRouter
from smart_model_router_providers.fault import Fault, FaultServer


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Keep one router for as long as the application runs: its breakers and limits are of all requests."""
    async with SmartModelRouter.from_config(app.state.config) as app.state.router:
        yield


app = FastAPI(lifespan=lifespan)


@app.exception_handler(RouterUnavailable)
async def unavailable(_: Request, error: RouterUnavailable) -> JSONResponse:
    """Tell the client when to come back."""
    wait = {"Retry-After": str(math.ceil(error.retry_after))} if error.retry_after else {}
    return JSONResponse({"error": str(error)}, status_code=503, headers=wait)


def body(question: str) -> dict[str, object]:
    """Return a request in Chat Completions."""
    return {"model": "smart", "messages": [{"role": "user", "content": question}]}


@app.get("/answer")
async def answer(request: Request, question: str) -> dict[str, str]:
    """Return an answer, and which target gave it."""
    reply = await request.app.state.router.chat(body(question), timeout=60)
    return {"answer": reply.body["choices"][0]["message"]["content"], "by": str(reply.report.target)}


@app.get("/stream")
async def stream(request: Request, question: str) -> StreamingResponse:
    """Return an answer as it comes; a client that leaves ends the provider's call."""

    async def words() -> AsyncIterator[str]:
        async with request.app.state.router.stream_chat(body(question)) as chunks:
            async for chunk in chunks:
                yield chunk["choices"][0]["delta"].get("content") or ""

    return StreamingResponse(words(), media_type="text/plain")


async def main() -> None:
    """The first provider answers nothing but 503: clients of the application do not notice."""
    with FaultServer([Fault.status(503)]) as down, FaultServer([Fault.reply("A switch that opens by itself.")]) as up:
        app.state.config = {
            "version": 1,
            "providers": {
                name: {"kind": "openai_compatible", "base_url": server.base_url, "api_key": "k"}
                for name, server in (("down", down), ("up", up))
            },
            "models": {"smart": {"tiers": [{"targets": ["down/big", "up/big"]}], "last_resort": []}},
            "routing": {"max_wait": 0},
        }
        over = httpx.ASGITransport(app)
        async with lifespan(app), httpx.AsyncClient(transport=over, base_url="http://app") as client:
            asked = {"question": "What is a circuit breaker?"}
            whole = (await client.get("/answer", params=asked)).json()
            print(whole["answer"], "- by", whole["by"])
            print((await client.get("/stream", params=asked)).text)
            up.set([Fault.status(503)])
            failed = await client.get("/answer", params=asked)
            print(failed.status_code, "Retry-After:", failed.headers["Retry-After"])
    assert whole["by"] == "up/big"
    assert failed.status_code == 503
    assert down.calls() > 0


if __name__ == "__main__":
    asyncio.run(main())
