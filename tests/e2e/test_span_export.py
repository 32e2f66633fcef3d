"""`smr serve` exports its spans as OTEL_* variables say, and says at its start when they go nowhere."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx2
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from smart_model_router.observability.span_export import why_lost
from smart_model_router_providers.fault import FaultServer
from tests.e2e.gateways import MESSAGES, fleet, served

TRACES = {"traces": {"enabled": True}}


@contextmanager
def collector() -> Generator[tuple[str, list[tuple[str, bytes]]]]:
    """A collector on loopback: its address, and the path and body of what it got."""
    got: list[tuple[str, bytes]] = []

    class Take(BaseHTTPRequestHandler):
        """Takes whatever is posted."""

        def do_POST(self) -> None:
            got.append((self.path, self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Take) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", got
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("arguments", [(), ("--workers", "2")], ids=["one process", "workers"])
def test_spans_reach_the_collector_that_the_environment_names(
    arguments: tuple[str, ...], server: FaultServer, tmp_path: Path
) -> None:
    """Under the service's name, for each request and each call; those that wait at the end are sent then."""
    with collector() as (address, got):
        environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": address, "OTEL_SERVICE_NAME": "our-gateway"}
        config = fleet(server, store={"path": str(tmp_path / "stats.db")}, telemetry=TRACES)
        with served(config, tmp_path, environ=environ, arguments=arguments) as gateway:
            asked = {"model": "smart", "messages": MESSAGES}
            assert httpx2.post(f"{gateway.base_url}/v1/chat/completions", json=asked).status_code == 200
            gateway.stop()
            assert "spans go nowhere" not in (tmp_path / "gateway.log").read_text(encoding="utf-8")
    assert {path for path, _ in got} == {"/v1/traces"}
    sent = [each for _, body in got for each in ExportTraceServiceRequest.FromString(body).resource_spans]
    names = {a.value.string_value for each in sent for a in each.resource.attributes if a.key == "service.name"}
    assert names == {"our-gateway"}
    spans = [span.name for each in sent for scope in each.scope_spans for span in scope.spans]
    assert spans == ["chat smart", "chat big"] or sorted(spans) == ["chat big", "chat smart"]


def test_spans_that_go_nowhere_are_told_once_at_the_start(server: FaultServer, tmp_path: Path) -> None:
    """One line with the way out."""
    with served(fleet(server), tmp_path, telemetry=TRACES):
        said = (tmp_path / "gateway.log").read_text(encoding="utf-8").splitlines()
    (line,) = [line for line in said if "spans go nowhere" in line]
    assert line.startswith("WARNING smart_model_router.gateway: telemetry.traces: spans go nowhere: ")
    assert "OTEL_EXPORTER_OTLP_ENDPOINT" in line


def test_each_exporter_of_a_list_gets_the_spans(server: FaultServer, tmp_path: Path) -> None:
    """Also the second one, after the console."""
    with collector() as (address, got):
        environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": address, "OTEL_TRACES_EXPORTER": "console,otlp"}
        with served(fleet(server), tmp_path, environ=environ, telemetry=TRACES) as gateway:
            asked = {"model": "smart", "messages": MESSAGES}
            assert httpx2.post(f"{gateway.base_url}/v1/chat/completions", json=asked).status_code == 200
            gateway.stop()
    assert [path for path, _ in got] == ["/v1/traces"]


@pytest.mark.parametrize(
    "wrong",
    [{"OTEL_BSP_MAX_QUEUE_SIZE": "10"}, {"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "-5"}],
    ids=["a queue below a batch", "a negative limit"],
)
def test_variables_that_the_sdk_refuses_end_no_gateway(
    wrong: dict[str, str], server: FaultServer, tmp_path: Path
) -> None:
    """It serves without spans, and the log says why."""
    environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", **wrong}
    with served(fleet(server), tmp_path, environ=environ, telemetry=TRACES) as gateway:
        asked = {"model": "smart", "messages": MESSAGES}
        assert httpx2.post(f"{gateway.base_url}/v1/chat/completions", json=asked).status_code == 200
        said = (tmp_path / "gateway.log").read_text(encoding="utf-8")
    assert "spans go nowhere: the OTEL_* variables are not taken: ValueError: " in said


def test_a_malformed_header_with_a_key_is_not_logged(server: FaultServer, tmp_path: Path) -> None:
    """That it is malformed is."""
    environ = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9",
        "OTEL_EXPORTER_OTLP_HEADERS": "authorization Bearer sk-collector",
    }
    with served(fleet(server), tmp_path, environ=environ, telemetry=TRACES):
        said = (tmp_path / "gateway.log").read_text(encoding="utf-8")
    assert "Header format invalid" in said
    assert "sk-collector" not in said


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({}, "there is no OTEL_EXPORTER_OTLP_ENDPOINT"),
        (
            {"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"},
            "OTEL_TRACES_EXPORTER is none",
        ),
        ({"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, "OTEL_SDK_DISABLED is true"),
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "the exporter zipkin is not installed"),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            "the exporter otlp_proto_grpc is not installed",
        ),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, ""),
        ({"OTEL_TRACES_EXPORTER": "console"}, ""),
        ({"OTEL_TRACES_EXPORTER": "otlp, console"}, ""),
        ({"OTEL_TRACES_EXPORTER": "console,zipkin"}, "the exporter zipkin is not installed"),
    ],
)
def test_each_reason_is_named(environ: dict[str, str], said: str) -> None:
    """The variable that prevents an export is named."""
    assert why_lost(environ).startswith(said)
    assert bool(why_lost(environ)) is bool(said)
