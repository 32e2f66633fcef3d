"""What is seen from outside of a running gateway: health, metrics, statistics, the dashboard's stream."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from smart_model_router.gateway.dashboard.dashboard_routes import MOST_LOOKERS
from smart_model_router_providers.fault import Fault, FaultServer
from tests.e2e.gateways import MESSAGES, SECONDS, Served, becomes, fleet, served

CHAT = {"model": "smart", "messages": MESSAGES}
KEYS = {"team": {"key": "plain-key-0123456789"}, "boss": {"key": "admin-key-0123456789", "admin": True}}


@pytest.fixture
def upstream() -> Iterator[FaultServer]:
    """A provider that is well until it is told otherwise."""
    with FaultServer() as server:
        yield server


def ask(gateway: Served, **headers: str) -> httpx2.Response:
    """One request."""
    return httpx2.post(gateway.base_url + "/v1/chat/completions", json=CHAT, headers=headers, timeout=SECONDS)


def get(gateway: Served, path: str, **headers: str) -> httpx2.Response:
    """One look."""
    return httpx2.get(gateway.base_url + path, headers=headers, timeout=SECONDS)


def counted(gateway: Served) -> float:
    """How many requests /metrics knows of."""
    families = text_string_to_metric_families(get(gateway, "/metrics").text)
    return sum(sample.value for family in families for sample in family.samples if sample.name == "smr_requests_total")


def pictures(
    gateway: Served, wanted: int = 1, headers: Mapping[str, str] | None = None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The stream's events, until so many snapshots came."""
    with httpx2.stream("GET", gateway.base_url + "/dashboard/stream", headers=headers, timeout=SECONDS) as reply:
        assert reply.status_code == 200
        seen = 0
        event = ""
        for line in reply.iter_lines():
            if line.startswith("event: "):
                event = line[7:]
            if line.startswith("data: "):
                yield event, json.loads(line[6:])
                seen += event == "snapshot"
                if seen == wanted:
                    return


def test_readiness_says_which_model_nobody_serves(upstream: FaultServer, tmp_path: Path) -> None:
    """Alive all the time; ready while each model has somebody, and while nobody drains it."""
    with served(fleet(upstream), tmp_path) as running:
        assert get(running, "/health/readiness").json() == {"status": "ok", "models": {}, "store": "ok"}
        httpx2.post(running.base_url + "/api/targets/isolate", json={"name": "ao/big"})
        told = get(running, "/health/readiness")
        assert told.status_code == 503
        assert list(told.json()["models"]) == ["smart"]
        assert "isolated" in told.json()["models"]["smart"]
        assert get(running, "/health/liveness").status_code == 200
        httpx2.post(running.base_url + "/api/targets/enable", json={"name": "ao/big"})
        assert httpx2.post(running.base_url + "/api/drain", json={"on": True}).json() == {"draining": True}
        assert get(running, "/health/readiness").status_code == 503
        assert ask(running).status_code == 200
        httpx2.post(running.base_url + "/api/drain", json={"on": False})
        assert get(running, "/health/readiness").status_code == 200
        assert upstream.calls() == 1


def test_two_workers_report_one_truth(upstream: FaultServer, tmp_path: Path) -> None:
    """Whichever of two gateways on one store is asked; what one that was killed had counted stays."""
    store = {"store": {"path": str(tmp_path / "stats.db")}}
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    with ExitStack() as stack:
        one, two = (stack.enter_context(served({**fleet(upstream), **store}, folder)) for folder in folders)
        for _ in range(5):
            ask(one)
            ask(two)
        assert becomes(lambda: counted(one) == counted(two) == 10)
        two.process.kill()
        two.process.wait(SECONDS)
        ask(one)
        assert counted(one) == 11


def test_statistics_have_one_schema_in_both_scopes(upstream: FaultServer, tmp_path: Path) -> None:
    """GET /api/stats is router.stats() of the process, or the same of every process on the store."""
    with served(fleet(upstream), tmp_path, store={"path": str(tmp_path / "stats.db")}) as running:
        ask(running)
        here = get(running, "/api/stats").json()
        assert here["scope"] == "process"
        assert here["targets"]["ao/big"]["calls"] == 1

        def stored() -> dict[str, Any]:
            told: dict[str, Any] = get(running, "/api/stats?scope=store").json()
            return told

        assert becomes(lambda: "ao/big" in stored().get("targets", {}))
        there = stored()
        assert there["scope"] == "store"
        assert there["targets"]["ao/big"].keys() == here["targets"]["ao/big"].keys()
        assert get(running, "/api/stats?scope=moon").status_code == 400


def test_only_who_may_call_may_look(upstream: FaultServer, tmp_path: Path) -> None:
    """Without a key a 401 everywhere but for the empty page; draining needs an administrator's."""
    with served(fleet(upstream), tmp_path, gateway={"keys": KEYS}) as running:
        paths = ["/metrics", "/health", "/api/stats", "/dashboard/stream", "/dashboard/requests/x"]
        assert {get(running, path).status_code for path in paths} == {401}
        assert get(running, "/dashboard").status_code == 200
        plain = {"authorization": "Bearer plain-key-0123456789"}
        assert get(running, "/metrics", **plain).status_code == 200
        drain = running.base_url + "/api/drain"
        assert httpx2.post(drain, json={"on": True}, headers=plain).status_code == 403
        boss = {"authorization": "Bearer admin-key-0123456789"}
        assert httpx2.post(drain, json={"on": True}, headers=boss).status_code == 200
        for path in ("/dashboard/stream", "/dashboard/requests/x"):  # the requests of every key
            assert get(running, path, **plain).status_code == 403
        pictured = pictures(running, headers=boss)
        assert next(pictured)[1]["admin"] is True
        assert next(pictured)[0] == "snapshot"


def test_a_page_from_elsewhere_sees_nothing(upstream: FaultServer, tmp_path: Path) -> None:
    """Without keys: no other origin, and no other name for this machine."""
    with served(fleet(upstream), tmp_path) as running:
        assert get(running, "/dashboard/stream", origin="https://evil.example").status_code == 403
        for path in ("/dashboard/stream", "/health", "/metrics", "/api/stats", "/api/targets", "/v1/models"):
            assert get(running, path, host="evil.example").status_code == 403
        for probe in ("/health/liveness", "/health/readiness"):
            assert get(running, probe, host="gateway-7d9f.default.svc").status_code == 200
        assert get(running, "/health", host="10.1.2.3:8080").status_code == 200


def test_a_transition_comes_at_once(upstream: FaultServer, tmp_path: Path) -> None:
    """Before the next picture, which has it, too."""
    with served(fleet(upstream), tmp_path) as running:
        stream = pictures(running, wanted=20)
        while next(stream)[0] != "snapshot":
            pass
        httpx2.post(running.base_url + "/api/targets/isolate", json={"name": "ao/big"})
        event, data = next(stream)
        while event != "transition":
            assert event != "snapshot" or data["targets"][0]["state"] == "closed"
            event, data = next(stream)
        assert (data["subject"], data["state"]) == ("ao/big", "isolated")
        for event, picture in stream:
            if event == "snapshot" and picture["targets"][0]["state"] == "isolated":
                break
        else:
            pytest.fail("the picture does not have it")


def test_the_way_of_a_request_is_remembered(upstream: FaultServer, tmp_path: Path) -> None:
    """Its calls with their failures, in seconds from its beginning."""
    with FaultServer([Fault.status(529)]) as broken, served(fleet(broken, upstream), tmp_path) as running:
        request_id = ask(running).headers["x-request-id"]
        way = get(running, f"/dashboard/requests/{request_id}").json()
        assert [(step["target"], step["failure"], step["status"]) for step in way["steps"]] == [
            ("ao/big", "OVERLOADED", 529),
            ("bo/big", None, None),
        ]
        assert get(running, "/dashboard/requests/req-none").status_code == 404


def test_browsers_that_never_read_and_a_thousand_dashboards_are_bounded(upstream: FaultServer, tmp_path: Path) -> None:
    """A hundred may look, others are asked to come back; requests are answered meanwhile, and the end is prompt."""
    with served(fleet(upstream), tmp_path, gateway={"drain": "200s"}) as running, ExitStack() as stack:
        head = b"GET /dashboard/stream HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
        statuses = []
        for _ in range(MOST_LOOKERS + 20):
            wire = stack.enter_context(socket.create_connection(running.address, timeout=SECONDS))
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            wire.sendall(head)
            statuses.append(wire.recv(12).split()[1])
        assert statuses.count(b"200") == MOST_LOOKERS
        assert statuses.count(b"503") == 20
        for _ in range(5):
            assert ask(running).status_code == 200
        assert running.stop() == 0


def test_a_looker_that_leaves_makes_room(upstream: FaultServer, tmp_path: Path) -> None:
    """Streams that were closed are not counted."""
    with served(fleet(upstream), tmp_path) as running:
        with ExitStack() as stack:
            for _ in range(MOST_LOOKERS):
                wire = stack.enter_context(socket.create_connection(running.address, timeout=SECONDS))
                wire.sendall(b"GET /dashboard/stream HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
                assert wire.recv(12).split()[1] == b"200"
            assert get_status(running) == 503
        assert becomes(lambda: get_status(running) == 200)


def get_status(gateway: Served) -> int:
    """What another one who would look gets."""
    with httpx2.stream("GET", gateway.base_url + "/dashboard/stream", timeout=SECONDS) as reply:
        return reply.status_code


def test_a_reload_goes_on_counting(upstream: FaultServer, tmp_path: Path) -> None:
    """Counters and the dashboard's past are the process's, not the configuration's."""
    import signal

    with served(fleet(upstream), tmp_path) as running:
        ask(running)
        pid = running.process.pid
        log = tmp_path / "gateway.log"
        running.process.send_signal(signal.SIGHUP)
        assert becomes(lambda: "the new configuration is in use" in log.read_text(encoding="utf-8"))
        ask(running)
        assert running.process.pid == pid
        assert counted(running) == 2
        [picture] = [data for event, data in pictures(running) if event == "snapshot"]
        assert len(picture["requests"]) == 2
