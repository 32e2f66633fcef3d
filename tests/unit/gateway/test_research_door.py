"""The way to research where parts of it are not installed: what is missing is named."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Message

from smart_model_router.cli.research_commands import ServeResearch
from smart_model_router.cli.research_mcp import run_mcp
from smart_model_router.config import RouterConfig
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.gateway.asgi_app import Gateway

HERE = "smart_model_router.gateway.research"
CONFIG: dict[str, Any] = {
    "version": 1,
    "providers": {"p": {"kind": "openai_compatible", "base_url": "http://127.0.0.1:9/v1", "api_key": "k"}},
    "models": {"m": {"targets": ["p/m"]}},
    "research": {"gateway": True},
}


def gateway(**research: Any) -> Gateway:
    """Return a gateway with research."""
    config = RouterConfig.from_mapping({**CONFIG, "research": {**CONFIG["research"], **research}})
    return Gateway(lambda: config)


async def asked(gateway: Gateway) -> tuple[int, str]:
    """Return status and message of the answer to a request of MCP."""
    got: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"{}"}

    async def send(message: Message) -> None:
        got.append(message)

    headers = [(b"host", b"127.0.0.1")]
    scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": headers, "query_string": b"", "root_path": ""}
    await gateway(scope, receive, send)
    return int(got[0]["status"]), json.loads(b"".join(each.get("body", b"") for each in got))["error"]["message"]


def test_a_configuration_that_wants_research_is_refused_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the start, with the extra that brings it."""
    monkeypatch.setitem(sys.modules, f"{HERE}.research_routes", None)
    with pytest.raises(ConfigurationError, match=r"research needs an extra: pip install .*gateway,scoring"):
        gateway()


@pytest.mark.asyncio
async def test_without_its_extra_mcp_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is research; without research it is a path that does not exist."""
    monkeypatch.setitem(sys.modules, f"{HERE}.mcp_endpoint", None)
    assert await asked(gateway()) == (404, "MCP needs an extra: pip install 'smart-model-router[mcp]'")
    status, message = await asked(gateway(gateway=False))
    assert (status, message.partition(";")[0]) == (404, "there is no POST /mcp")


def test_the_command_says_so_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Before it looks at anything else."""
    monkeypatch.setitem(sys.modules, "smart_model_router_research.mcp_tools", None)
    with pytest.raises(ConfigurationError, match=r"MCP is an extra: pip install .*\[mcp\]"):
        run_mcp(ServeResearch(corpus=[str(tmp_path)], config=None, as_json=False))
