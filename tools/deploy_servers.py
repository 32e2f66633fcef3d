"""The servers of the lane of deploy/: a gateway, nginx before it and Prometheus beside it, each with our file."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from socket import create_connection, create_server

from tools.lanes import ROOT

DEPLOY = ROOT / "deploy"
KEYS = {
    name: f"{name.lower()}-of-the-lane"
    for name in re.findall(r"^(\w+)=", (DEPLOY / "example.env").read_text("utf-8"), re.MULTILINE)
}
KEY = "key-of-the-lane-0001"
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


@contextmanager
def gateway(provider: str) -> Generator[int]:
    """Run `smr serve` with one provider and the key `KEY`; its port."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "smart-router.yaml"
        config.write_text(
            "version: 1\n"
            f'providers: {{p: {{kind: openai_compatible, base_url: "{provider}", api_key: k}}}}\n'
            "models: {smart: {tiers: [{targets: [p/any]}], last_resort: []}}\n"
            f"gateway: {{port: {port}, keys: {{team: {{key: {KEY}}}}}}}\n",
            encoding="utf-8",
        )
        smr = [str(Path(sys.executable).with_name("smr")), "serve", "--config", str(config)]
        server = subprocess.Popen(smr, stdout=sys.stderr)
        try:
            until_open(port)
            yield port
        finally:
            server.kill()
            server.wait(SECONDS)


@contextmanager
def monitor(port: int) -> Generator[str]:
    """Run Prometheus with our file on a gateway at `port`, once a second; its address."""
    own = free_port()
    with tempfile.TemporaryDirectory() as folder:
        key, config = Path(folder) / "metrics_key", Path(folder) / "prometheus.yml"
        key.write_text(KEY, encoding="utf-8")
        text = (DEPLOY / "prometheus.yml").read_text(encoding="utf-8").replace("/run/secrets/metrics_key", str(key))
        text = text.replace("router:8000", f"127.0.0.1:{port}").replace("scrape_interval: 15s", "scrape_interval: 1s")
        config.write_text(text, encoding="utf-8")
        run("promtool", "check", "config", config)
        given = [
            f"--config.file={config}",
            f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address=127.0.0.1:{own}",
        ]
        server = subprocess.Popen(["prometheus", *given, "--log.level=error"])  # noqa: S607
        try:
            until_open(own)
            yield f"http://127.0.0.1:{own}"
        finally:
            server.terminate()
            server.wait(SECONDS)


@contextmanager
def proxy(upstream: int) -> Generator[tuple[int, Path]]:
    """Run nginx with our example on another port, which is yielded with the certificate that it has."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        prefix = Path(folder)
        for name in ("certs", "logs"):
            (prefix / name).mkdir()
        subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
        pair: list[str | Path] = ["-keyout", prefix / "certs/privkey.pem", "-out", prefix / "certs/fullchain.pem"]
        run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", *subject, *pair)
        shutil.copy(DEPLOY / "nginx.conf", prefix)
        logs = f"error_log {prefix}/logs/error.log; pid {prefix}/pid;"
        given: list[str | Path] = ["-p", prefix, "-c", prefix / "nginx.conf", "-e", prefix / "logs/error.log", "-g"]
        run("nginx", "-t", *given, logs)
        text = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
        text = text.replace("listen 443", f"listen 127.0.0.1:{port}").replace("127.0.0.1:8000", f"127.0.0.1:{upstream}")
        (prefix / "nginx.conf").write_text(text, encoding="utf-8")
        server = subprocess.Popen(["nginx", *map(str, given), f"daemon off; {logs}"])  # noqa: S607
        try:
            until_open(port)
            yield port, prefix / "certs/fullchain.pem"
        finally:
            server.terminate()
            server.wait(SECONDS)


def free_port() -> int:
    """Return a port of this machine that nothing listens on."""
    with create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def until_open(port: int) -> None:
    """Wait until something listens. Raises Failed after a minute."""

    def answers() -> bool:
        try:
            create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            return False
        return True

    until(f"something listens on port {port}", answers)


def until(claim: str, holds: Callable[[], bool]) -> None:
    """Wait until `claim` holds. Raises Failed after a minute."""
    end = time.monotonic() + SECONDS
    while not holds():
        if time.monotonic() > end:
            raise Failed(f"within {SECONDS:g} s it did not come true that {claim}")
        time.sleep(0.1)  # noqa: TID251 - another process is waited for
