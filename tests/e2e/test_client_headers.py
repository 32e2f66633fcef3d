"""What a client says in headers reaches the provider that understands it, by every way in and over real sockets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from smart_model_router import SmartModelRouter, SmartRouterError, clients
from smart_model_router_providers.fault import Fault, FaultServer, RecordedRequest
from smart_model_router_providers.sdk import SdkProvider
from tests.e2e.gateways import ECHO, MESSAGES, Served, served

NEWER = "2026-10-21"
BETAS: list[Any] = ["context-1m-2025-08-07", "fine-grained-tool-streaming-2025-05-14"]
ASKED: dict[str, Any] = {"model": "claude", "max_tokens": 50, "messages": MESSAGES}


def config(server: FaultServer) -> dict[str, Any]:
    """`claude` speaks Messages; `pinned` too, of one version and with a beta of its own; `gpt` is OpenAI's."""
    providers: dict[str, Any] = {
        "a": {"kind": "anthropic", "base_url": server.base_url, "api_key": "upstream-key"},
        "o": {"kind": "openai", "base_url": server.base_url, "api_key": "upstream-key"},
    }
    own = {"anthropic-beta": f"own-1, {BETAS[1]}", "x-own": "stays"}
    providers["p"] = {**providers["a"], "api_version": "2023-06-01", "headers": own}
    names = {"claude": "a", "pinned": "p", "gpt": "o"}
    models = {name: {"tiers": [{"targets": [f"{of}/big"]}], "last_resort": []} for name, of in names.items()}
    return {"version": 1, "providers": providers, "models": models}


@pytest.fixture(scope="module")
def upstream() -> Iterator[FaultServer]:
    """A provider that is well."""
    with FaultServer() as server:
        yield server


@pytest.fixture(scope="module")
def gateway(upstream: FaultServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A gateway before it."""
    with served(config(upstream), tmp_path_factory.mktemp("gateway")) as running:
        yield running


def last(server: FaultServer) -> RecordedRequest:
    """The newest call; the client's key is in none."""
    call = server.requests[-1]
    assert "client-secret" not in str(call)
    return call


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("way", ["gateway", "drop-in"])
def test_a_beta_call_of_the_sdk_arrives_as_one(way: str, stream: bool, gateway: Served, upstream: FaultServer) -> None:
    """Betas, version and `beta=true`, whole and streamed; the key is sent as that version has it."""
    client: anthropic.Anthropic = (
        anthropic.Anthropic(base_url=gateway.base_url, api_key="client-secret", max_retries=0)
        if way == "gateway"
        else clients.Anthropic(config(upstream), api_key="client-secret", max_retries=0)
    )
    with client:
        made = client.beta.messages.create(**ASKED, betas=BETAS, stream=stream, extra_query={"beta": "true"})
        if stream:
            list(made)
        call = last(upstream)
        assert (call.path, call.query) == ("/v1/messages", "beta=true")
        assert call.headers["anthropic-beta"] == ",".join(BETAS)
        assert call.headers["anthropic-version"] == NEWER
        assert (call.headers.get("authorization"), call.headers.get("x-api-key")) == ("***", None)
        assert call.key == "upstream-key"
        client.messages.create(**ASKED)
    call = last(upstream)
    assert (call.query, call.headers.get("anthropic-beta")) == ("", None)


def test_the_version_that_is_asked_for_decides_how_the_key_is_sent(gateway: Served, upstream: FaultServer) -> None:
    """Clients of the older version and those that name none are served as before."""
    for headers in ({"anthropic-version": "2023-06-01"}, {}, {"anthropic-version": "2020-01-01"}):
        response = httpx2.post(f"{gateway.base_url}/v1/messages", json=ASKED, headers=headers)
        assert response.status_code == 200
        call = last(upstream)
        assert call.headers["anthropic-version"] == headers.get("anthropic-version", "2023-06-01")
        assert (call.headers.get("authorization"), call.headers.get("x-api-key")) == (None, "***")


def test_the_configuration_pins_a_version_and_adds_its_betas(gateway: Served, upstream: FaultServer) -> None:
    """Each beta once; what was not sent is told."""
    headers = [("anthropic-beta", ",".join(BETAS)), ("anthropic-beta", "third"), ("anthropic-version", NEWER)]
    response = httpx2.post(f"{gateway.base_url}/v1/messages", json={**ASKED, "model": "pinned"}, headers=headers)
    call = last(upstream)
    assert call.headers["anthropic-beta"] == f"own-1,{BETAS[1]},{BETAS[0]},third"
    assert (call.headers["anthropic-version"], call.headers["x-own"]) == ("2023-06-01", "stays")
    assert response.headers["x-router-lossy"] == "anthropic-version: not sent, the provider's configuration has its own"


def test_across_dialects_a_beta_is_a_named_loss(gateway: Served, upstream: FaultServer) -> None:
    """Messages by OpenAI, Chat by Anthropic: the request is served, and the report says what was not sent."""
    headers = {"anthropic-beta": BETAS[0], "anthropic-version": NEWER}
    for path, model in (("/v1/messages", "gpt"), ("/v1/chat/completions", "claude")):
        body = {**ASKED, "model": model}
        response = httpx2.post(f"{gateway.base_url}{path}?beta=true", json=body, headers=headers)
        assert response.status_code == 200
        assert f"anthropic-beta: {BETAS[0]} not sent" in response.headers["x-router-lossy"]
        call = last(upstream)
        assert (call.query, call.headers.get("anthropic-beta")) == ("", None)


@pytest.mark.parametrize("way", ["gateway", "drop-in"])
def test_openai_s_headers_reach_openai_alone(way: str, gateway: Served, upstream: FaultServer) -> None:
    """Organization, project and betas of its SDK; Anthropic hears of none of them."""
    options: dict[str, Any] = {"organization": "org-1", "project": "proj_1", "default_headers": {"OpenAI-Beta": "x=v1"}}
    client: openai.OpenAI = (
        openai.OpenAI(base_url=f"{gateway.base_url}/v1", api_key="client-secret", max_retries=0, **options)
        if way == "gateway"
        else clients.OpenAI(config(upstream), api_key="client-secret", max_retries=0, **options)
    )
    wanted = {"openai-organization": "org-1", "openai-project": "proj_1", "openai-beta": "x=v1"}
    with client:
        client.chat.completions.create(model="gpt", messages=MESSAGES)
        assert wanted.items() <= last(upstream).headers.items()
        client.responses.create(model="gpt", input="hello")
        assert wanted.items() <= last(upstream).headers.items()
        client.chat.completions.create(model="claude", messages=MESSAGES)
    assert wanted.keys().isdisjoint(last(upstream).headers)


@pytest.mark.asyncio
async def test_a_program_says_them_as_options(upstream: FaultServer) -> None:
    """`headers=` and `query=` of router.messages, router.stream_messages, router.chat and router.responses."""
    betas = {"anthropic-beta": BETAS[0], "Anthropic-Version": NEWER}
    async with SmartModelRouter.from_config(config(upstream)) as router:
        await router.messages(ASKED, headers=betas, query="beta=true")
        whole = last(upstream)
        async for _ in router.stream_messages(ASKED, headers=betas, query="beta=true"):
            pass
        for call in (whole, last(upstream)):
            assert (call.query, call.headers["anthropic-beta"]) == ("beta=true", BETAS[0])
            assert call.headers["anthropic-version"] == NEWER
        account = {"openai-organization": "org-1"}
        await router.chat({"model": "gpt", "messages": MESSAGES}, headers=account)
        assert last(upstream).headers["openai-organization"] == "org-1"
        await router.responses({"model": "gpt", "input": "hi"}, headers=account)
        assert last(upstream).headers["openai-organization"] == "org-1"


@pytest.mark.asyncio
async def test_an_sdk_client_as_provider_gets_them_too(upstream: FaultServer) -> None:
    """Its own betas are joined; its version, which its authentication goes with, stays."""
    base_url = upstream.base_url.removesuffix("/v1")
    own = {"anthropic-beta": "own-1"}
    provider = SdkProvider(anthropic.AsyncAnthropic(api_key="upstream-key", base_url=base_url, default_headers=own))
    models = {"claude": {"tiers": [{"targets": ["sdk/big"]}], "last_resort": []}}
    tree = {"version": 1, "providers": {}, "models": models}
    async with SmartModelRouter.from_config(tree, providers={"sdk": provider}) as router:
        headers = {"anthropic-beta": BETAS[0], "anthropic-version": "2023-06-01"}
        reply = await router.messages(ASKED, headers=headers, query="beta=true")
    call = last(upstream)
    assert (call.query, call.headers["anthropic-beta"]) == ("beta=true", f"own-1,{BETAS[0]}")
    assert call.headers["anthropic-version"] == NEWER
    assert reply.report.losses == ["anthropic-version: not sent, the provider's configuration has its own"]


def test_a_hostile_header_is_a_400_in_the_clients_dialect(gateway: Served, upstream: FaultServer) -> None:
    """The error names the header, nothing is sent, and the next request is served."""
    before = upstream.calls()
    for value in (b"a b", b"x" * 200, b",".join([b"beta"] * 65), "b\u00e9ta".encode()):
        response = httpx2.post(f"{gateway.base_url}/v1/messages", json=ASKED, headers={b"anthropic-beta": value})
        assert response.status_code == 400
        error = response.json()["error"]
        assert error["type"] == "invalid_request_error"
        assert error["message"].startswith("anthropic-beta: ")
    huge = httpx2.post(f"{gateway.base_url}/v1/messages", json=ASKED, headers={"anthropic-beta": "x," * 50_000})
    assert huge.status_code == 431
    assert upstream.calls() == before
    assert ECHO in httpx2.post(f"{gateway.base_url}/v1/messages", json=ASKED).text


@pytest.mark.asyncio
async def test_what_a_client_names_for_itself_puts_no_target_to_rest() -> None:
    """A version or account that the provider does not let in fails that request alone; the next client is served."""
    refused = Fault.status(401, body=json.dumps({"error": {"message": "invalid", "type": "authentication_error"}}))
    with FaultServer({"big": [refused]}) as server:
        async with SmartModelRouter.from_config(config(server)) as router:
            for _ in range(3):
                with pytest.raises(SmartRouterError):
                    await router.messages(ASKED, headers={"anthropic-version": NEWER})
                with pytest.raises(SmartRouterError):
                    await router.chat({"model": "gpt", "messages": MESSAGES}, headers={"openai-organization": "org-9"})
            server.set({})
            assert (await router.messages(ASKED)).report.target == "a/big"
            assert (await router.chat({"model": "gpt", "messages": MESSAGES})).report.target == "o/big"


@pytest.mark.asyncio
async def test_a_version_that_has_worked_is_no_excuse_for_a_bad_key() -> None:
    """Once a call with it was answered, a 401 is about the key: the target rests."""
    with FaultServer() as server:
        async with SmartModelRouter.from_config(config(server)) as router:
            await router.messages(ASKED, headers={"anthropic-version": NEWER})
            server.set({"big": [Fault.status(401)]})
            with pytest.raises(SmartRouterError):
                await router.messages(ASKED, headers={"anthropic-version": NEWER})
            calls = server.calls()
            with pytest.raises(SmartRouterError):
                await router.messages(ASKED, headers={"anthropic-version": NEWER}, timeout=1)
            assert server.calls() == calls
