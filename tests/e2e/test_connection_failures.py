"""Connections that are not made: the failure says why, and so do the error, the report and the log."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from smart_model_router import RouterUnavailable, SmartModelRouter
from smart_model_router.domain.outcome import Failure, FailureClass
from smart_model_router.domain.ports import Provider, ProviderCall
from smart_model_router.domain.request import Dialect
from smart_model_router_providers.http import HttpProvider
from smart_model_router_providers.sdk import SdkProvider
from tests.certificates import loopback_pem, serving_loopback, trusting_loopback
from tests.e2e.serving import serving

pytestmark = pytest.mark.asyncio

REASONS = {
    "unknown authority": "the certificate was not accepted: self-signed certificate",
    "another name": "the certificate was not accepted: Hostname mismatch, certificate is not valid for 'localhost'",
    "no such name": "the host name was not resolved: name or service not known",
    "refused": "the connection was refused",
}
WAYS: dict[str, tuple[Dialect, Callable[[str], Provider]]] = {
    "aiohttp": ("chat", lambda url: HttpProvider(base_url=url)),
    "openai": ("chat", lambda url: SdkProvider(openai.AsyncOpenAI(api_key="k", base_url=url))),
    "anthropic": (
        "messages",
        lambda url: SdkProvider(anthropic.AsyncAnthropic(api_key="k", base_url=url.removesuffix("/v1"))),
    ),
}


def no_such_name(monkeypatch: pytest.MonkeyPatch) -> str:
    """A host that nobody knows, without a question to the network."""
    known = socket.getaddrinfo

    def look_up(host: Any, *args: Any, **kwargs: Any) -> Any:
        if host in ("nowhere.invalid", b"nowhere.invalid"):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return known(host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return "https://nowhere.invalid/v1"


def trust_the_certificate(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients accept the certificate for what it is: that of 127.0.0.1."""
    authorities = directory / "authorities.pem"
    authorities.write_text(loopback_pem())
    monkeypatch.setenv("SSL_CERT_FILE", str(authorities))
    monkeypatch.setattr("smart_model_router_providers.http_transport._tls", trusting_loopback)


async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    """A server that says nothing."""
    await reader.read()


@asynccontextmanager
async def unreachable(what: str, directory: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[str]:
    """A base URL to which no connection is made."""
    if what == "no such name":
        yield no_such_name(monkeypatch)
    elif what == "refused":
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            yield f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
    else:
        async with serving(silent, serving_loopback(directory)) as url:
            if what == "another name":
                trust_the_certificate(directory, monkeypatch)
                yield url.replace("127.0.0.1", "localhost")
            else:
                yield url


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("what", REASONS)
async def test_a_failure_says_why(what: str, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Certificate, name or refused, and the address: over every way to a provider in the same words."""
    dialect, make = WAYS[way]
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 5}
    async with unreachable(what, tmp_path, monkeypatch) as url:
        provider = make(url)
        outcome = await provider.call(ProviderCall(dialect, "m", json.dumps(body).encode(), body, False))
        await provider.aclose()
    assert isinstance(outcome, Failure)
    assert (outcome.failure_class, outcome.unsent) == (FailureClass.TRANSPORT, True)
    address = url.partition("//")[2].partition("/")[0]
    assert outcome.reason == REASONS[what]
    assert outcome.message.startswith(f"{REASONS[what]} ({address if ':' in address else f'{address}:443'}); ")


@pytest.mark.parametrize("what", REASONS)
async def test_error_report_and_log_say_why(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads the error, its report or the log learns the same."""
    log = tmp_path / "router.log"
    async with unreachable(what, tmp_path, monkeypatch) as url:
        config = {
            "version": 1,
            "providers": {"a": {"kind": "openai_compatible", "base_url": url, "api_key": "k"}},
            "models": {"smart": {"tiers": [{"targets": ["a/x"]}], "last_resort": []}},
            "telemetry": {"log": {"to": str(log)}},
        }
        async with SmartModelRouter.from_config(config, seed=1) as router:
            body = {"model": "smart", "messages": [{"role": "user", "content": "Hi"}]}
            with pytest.raises(RouterUnavailable) as caught:
                await router.chat(body, timeout=2.0)
    assert f"a cannot be reached: {REASONS[what]} (" in str(caught.value)
    assert caught.value.report is not None
    assert caught.value.report.attempts[0].message.startswith(REASONS[what])
    assert REASONS[what] in log.read_text().replace('\\"', '"')
