"""`smr top --fleet` of machines that share state on a server."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import cast

import pytest

from smart_model_router.cli.commands import Top
from smart_model_router.cli.output import ExitCode
from smart_model_router.cli.statistics import run_top
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.shared_state import BreakerRow, Changes, Deadline, MemberRow
from smart_model_router.flow.clock import here
from smart_model_router_stats.row_server import RowServer
from smart_model_router_stats.server_clock import ServerClock
from smart_model_router_stats.shared_optimistic import ServerSharedState
from smart_model_router_stats.shared_valkey import valkey_rows
from tests.database_servers import ValkeyServer, running


async def share(connect: Callable[[], RowServer]) -> None:
    """Be two machines of one process, of which one has seen a provider fail."""
    clock = ServerClock(time.monotonic, here)
    state = ServerSharedState(connect, clock, time.monotonic)
    await state.poll()
    members = (MemberRow(holder=name, machine=name, version="0.1.0", pid=7, at=clock()) for name in ("m1", "m2"))
    until = Deadline.after(600.0, clock())
    breaker = BreakerRow(owner="a/m", kind="whole", provider="a", state="open", until=until, reason="failures")
    await state.publish(Changes(breakers=(breaker,), members=tuple(members)))
    await state.aclose()


def test_it_tells_which_machines_share_a_server_and_what(capsys: pytest.CaptureFixture[str]) -> None:
    """Read by the server's clock; a server that is gone is named without its password."""
    with running(ValkeyServer) as server:
        url = cast("ValkeyServer", server).url
        asyncio.run(share(valkey_rows(url, "smr")))
        assert run_top(Top(db=url, fleet=True, times=1, as_json=True)) == ExitCode.OK
    told = json.loads(capsys.readouterr().out)
    assert [(member["machine"], member["version"]) for member in told["members"]] == [("m1", "0.1.0"), ("m2", "0.1.0")]
    ((shared),) = told["shared"]
    assert (shared["name"], shared["state"], shared["why"]) == ("a/m (whole)", "open", "failures")
    assert 500.0 < shared["seconds"] <= 600.0
    with pytest.raises(ConfigurationError) as gone:
        run_top(Top(db=url.replace("://", "://:secret@"), fleet=True, times=1))
    assert "secret" not in str(gone.value)
