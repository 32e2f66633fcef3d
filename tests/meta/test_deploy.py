"""The files of deploy/ fit each other and the router, and docs/how-to/deploy.md says what each line is for."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import yaml

from smart_model_router import RouterConfig
from smart_model_router.config.sections import GatewayConfig
from tests.meta.repository import ROOT

DEPLOY = ROOT / "deploy"
TEXTS = {
    path.relative_to(DEPLOY).as_posix(): path.read_text("utf-8") for path in sorted(DEPLOY.rglob("*")) if path.is_file()
}
PAGE = (ROOT / "docs" / "how-to" / "deploy.md").read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load(TEXTS["compose.yaml"])
ENVIRONMENT = set(re.findall(r"^(\w+)=", TEXTS["example.env"], re.MULTILINE))


def words() -> dict[str, set[str]]:
    """Return the names of the lines of each file that the page has to explain."""
    services = {key for service in COMPOSE["services"].values() for key in service}
    return {
        "Dockerfile": set(re.findall(r"^([A-Z]+) ", TEXTS["Dockerfile"], re.MULTILINE)),
        "compose.yaml": set(COMPOSE) | services,
        "smart-model-router.service": set(re.findall(r"^(\w+)=", TEXTS["smart-model-router.service"], re.MULTILINE)),
        "nginx.conf": set(re.findall(r"^ *([a-z_]+)[ {]", TEXTS["nginx.conf"], re.MULTILINE)),
        "smart-router.yaml": set(yaml.safe_load(TEXTS["smart-router.yaml"])["gateway"]["keys"]),
    }


@pytest.mark.parametrize(("file", "word"), [(file, word) for file, many in words().items() for word in sorted(many)])
def test_the_page_says_what_each_line_is_for(file: str, word: str) -> None:
    """Every directive stands in the first column of a table."""
    explained = " ".join(re.findall(r"^\| (`.*?`) \|", PAGE, re.MULTILINE))
    assert re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", explained), f"{word} of {file}"


@pytest.mark.parametrize("file", TEXTS)
def test_the_page_links_each_file(file: str) -> None:
    """A reader gets to every file."""
    assert f"(../../deploy/{file})" in PAGE


def test_the_configuration_loads_with_the_example_environment() -> None:
    """Each variable is in example.env, and the gateway may listen for other machines."""
    config = RouterConfig.from_mapping(
        yaml.safe_load(TEXTS["smart-router.yaml"]), environ={name: f"{name}-long-enough" for name in ENVIRONMENT}
    )
    assert config.gateway.host == "0.0.0.0"
    assert config.gateway.keys


def test_example_env_has_what_the_files_ask_for() -> None:
    """No more and no less."""
    asked = re.findall(r"\$\{(\w+)", TEXTS["smart-router.yaml"] + TEXTS["compose.yaml"])
    assert set(asked) == ENVIRONMENT


def test_the_files_fit_the_defaults_of_the_gateway() -> None:
    """Port, longest body, time to drain, and the folder of the store."""
    gateway = GatewayConfig()
    port = str(gateway.port)
    assert f"EXPOSE {port}\n" in TEXTS["Dockerfile"]
    assert f"('127.0.0.1', {port}, " in TEXTS["Dockerfile"]
    assert COMPOSE["services"]["router"]["ports"] == [f"127.0.0.1:{port}:{port}"]
    assert f"router:{port}" in TEXTS["prometheus.yml"]
    assert f"server 127.0.0.1:{port};" in TEXTS["nginx.conf"]
    assert f"client_max_body_size {gateway.body_bytes // 2**20}m;" in TEXTS["nginx.conf"]
    stops = [
        COMPOSE["services"]["router"]["stop_grace_period"],
        *re.findall(r"TimeoutStopSec=(\d+)", "".join(TEXTS.values())),
    ]
    assert all(int(stop.removesuffix("s")) > gateway.drain for stop in stops)
    folder = "/var/lib/smart-model-router"
    assert f'VOLUME ["{folder}"]' in TEXTS["Dockerfile"]
    assert all(folder in TEXTS[file] for file in ("smart-router.yaml", "smart-model-router.service", "compose.yaml"))


@pytest.mark.loopback
@pytest.mark.parametrize(("status", "code"), [(200, 0), (503, 1)])
def test_the_health_of_the_container_is_asked_of_itself(status: int, code: int) -> None:
    """Also where the container has a proxy in its environment; the exit code is that of a live gateway, or of none."""

    class Health(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/health/liveness" else 404)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
            """Say nothing."""

    found = re.search(r"HEALTHCHECK .*\n +CMD (\[.*\])\n", TEXTS["Dockerfile"])
    assert found is not None
    _, *arguments = json.loads(found[1])
    with ThreadingHTTPServer(("127.0.0.1", 0), Health) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        here = [part.replace(str(GatewayConfig().port), str(server.server_address[1])) for part in arguments]
        environ = {**os.environ, "http_proxy": "http://127.0.0.1:9", "no_proxy": ""}
        done = subprocess.run([sys.executable, *here], env=environ, capture_output=True, check=False)
        server.shutdown()
        thread.join()
    assert done.returncode == code, done.stderr


def test_grafana_gets_a_dashboard_that_is_there() -> None:
    """The file that compose.yaml mounts is our dashboard, in the folder that is provisioned."""
    [mount] = [line for line in COMPOSE["services"]["grafana"]["volumes"] if "dashboard.json" in line]
    file, place, _ = mount.split(":")
    assert json.loads((DEPLOY / file).read_text(encoding="utf-8"))["title"] == "smart-model-router"
    folder = yaml.safe_load(TEXTS["grafana/dashboards.yaml"])["providers"][0]["options"]["path"]
    assert place.startswith(f"{folder}/")


def test_a_build_sees_what_the_image_is_made_of_and_nothing_else() -> None:
    """.dockerignore lets the two sources of the Dockerfile through."""
    rules = [line for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if not line.startswith("#")]
    assert rules == ["*", "!dist/*.whl", "!requirements/image.txt"]
    sources = re.findall(r"source=([\w./-]+)", TEXTS["Dockerfile"])
    assert sources == ["requirements/image.txt", "dist"]
