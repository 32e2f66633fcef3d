"""The names inside other libraries that we use or override are there: their next version may have renamed one."""

from __future__ import annotations

import asyncio
import inspect
from types import MappingProxyType
from typing import Any

import aiohttp
import pytest
import uvicorn
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http_parser import RawResponseMessage
from aiohttp.http_writer import StreamWriter
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http import httptools_impl
from uvicorn.server import ServerState
from yarl import URL

from tests.unit.gateway.test_uvicorn_server import HEAD, Wire

pytestmark = pytest.mark.asyncio

AIOHTTP = MappingProxyType(
    {
        "handler": "transport should_close read set_response_params connection_lost _payload",
        "connector": "connect close _close _conns",
        "request": "connection_key is_ssl headers",
        "payload": "readany at_eof is_eof exception set_exception",
        "connection": "protocol close release",
        "writer": "drain",
        "message": "code raw_headers",
    }
)
UVICORN = MappingProxyType(
    {
        "protocol": "connection_made connection_lost data_received on_message_begin on_headers_complete "
        "on_response_complete timeout_keep_alive_handler timeout_keep_alive server_state flow pipeline transport "
        "loop scope cycle",
        "cycle": "response_started response_complete disconnected keep_alive default_headers chunked_encoding "
        "waiting_for_100_continue message_event on_response scope",
        "flow": "write_paused resume_reading",
        "state": "total_requests",
        "module": "STATUS_LINE RequestResponseCycle HttpToolsProtocol",
        "server": "startup shutdown capture_signals handle_exit should_exit",
    }
)


def missing(objects: dict[str, Any], names: MappingProxyType[str, str]) -> list[str]:
    """Which of the names an object lacks."""
    assert objects.keys() == names.keys()
    return [f"{what}.{name}" for what in names for name in names[what].split() if not hasattr(objects[what], name)]


async def test_aiohttp_has_what_posting_uses() -> None:
    """Its connector, its parser's reader and its request are spoken to without the session that it has for that."""
    loop = asyncio.get_running_loop()
    connector = aiohttp.TCPConnector()
    objects = {
        "handler": ResponseHandler(loop),
        "connector": connector,
        "request": aiohttp.ClientRequest("POST", URL("http://h"), proxy=None, loop=loop),
        "payload": aiohttp.StreamReader,
        "connection": Connection,
        "writer": StreamWriter,
        "message": RawResponseMessage,
    }
    assert missing(objects, AIOHTTP) == []
    assert isinstance(connector._conns, dict)
    assert [*inspect.signature(connector.connect).parameters] == ["req", "traces", "timeout"]
    assert {"read_until_eof", "auto_decompress"} <= inspect.signature(
        ResponseHandler.set_response_params
    ).parameters.keys()
    await connector.close()


async def test_uvicorn_has_what_the_gateway_overrides() -> None:
    """Its protocol, its cycle and its server are those that protocol.py, server.py and stoppable.py know."""

    async def empty(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    options = uvicorn.Config(empty, lifespan="off", log_config=None)
    options.load()
    state = ServerState()
    protocol = httptools_impl.HttpToolsProtocol(config=options, server_state=state, app_state={})
    protocol.connection_made(Wire())
    protocol.data_received(HEAD)
    objects = {
        "protocol": protocol,
        "cycle": protocol.cycle,
        "flow": protocol.flow,
        "state": state,
        "module": httptools_impl,
        "server": uvicorn.Server(options),
    }
    assert missing(objects, UVICORN) == []
    assert httptools_impl.STATUS_LINE[200].startswith(b"HTTP/1.1 200 ")
    await asyncio.gather(*state.tasks)
    protocol.connection_lost(None)
