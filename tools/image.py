"""The lane of the image: deploy/Dockerfile is built without a daemon, and runs as its user on a read-only root.

The base is a small Debian with Python, made of Debian's packages, in the place of python:3.13-slim. The image's root is
mounted read-only in namespaces of its own (mounts, processes, network), where its own HEALTHCHECK and a request decide.
Needs root on Debian: buildah, mmdebstrap.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tools.lanes import HOME, ROOT

PLACE = HOME / "image"
SUITE = "trixie"
BASE, IMAGE = "localhost/python-slim", "localhost/smart-model-router"
BUILDAH = ("buildah", "--storage-driver", "vfs", "--root", str(PLACE / "storage"), "--runroot", str(PLACE / "run"))
VOLUME = "/var/lib/smart-model-router"
MOST_MB = 100
KEY = "key-of-the-lane-0001"
CONFIG = f"""\
version: 1
providers:
  down: {{kind: openai_compatible, base_url: "http://127.0.0.1:9/v1"}}
  up: {{kind: scripted}}
models:
  smart: {{tiers: [{{targets: [down/big, up/big]}}], last_resort: []}}
gateway: {{host: 0.0.0.0, keys: {{team: {{key: {KEY}}}}}}}
store: {{path: /var/lib/smart-model-router/stats.db}}
"""
ASK = f"""\
import json, urllib.request
body = {{"model": "smart", "messages": [{{"role": "user", "content": "Hello"}}]}}
head = {{"Authorization": "Bearer {KEY}"}}
request = urllib.request.Request("http://127.0.0.1:8000/v1/chat/completions", json.dumps(body).encode(), head)
with urllib.request.urlopen(request, timeout=30) as answer:
    print(answer.status, "by", answer.headers["x-router-provider"])
"""


def step(*command: str | Path) -> str:
    """Return what a step prints on stdout; its failure ends the lane and says which step it was."""
    words = [str(part) for part in command]
    print("==", " ".join(words[-8:]), file=sys.stderr, flush=True)
    done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, encoding="utf-8", check=False)
    if done.returncode:
        sys.exit(f"{done.stdout}\nimage: exit code {done.returncode} of `{' '.join(words)}`")
    return done.stdout.strip()


def have_tools() -> None:
    """Install what is missing, as root on Debian; end the lane elsewhere."""
    missing = [name for name in ("buildah", "mmdebstrap") if shutil.which(name) is None]
    if missing and (shutil.which("apt-get") is None or os.geteuid() != 0):
        sys.exit(f"image: {' and '.join(missing)} are needed (or run this as root on Debian)")
    if missing:
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in (["update"], ["install", "-y", "--no-install-recommends", *missing]):
            subprocess.run(["apt-get", "-q", *command], check=True, env=quiet, stdout=sys.stderr)  # noqa: S607


def base() -> None:
    """Have the base image: Debian with Python, its venv and certificates."""
    tar = PLACE / f"{SUITE}.tar"
    if not tar.exists():
        PLACE.mkdir(parents=True, exist_ok=True)
        packages = "python3,python3-venv,ca-certificates"
        partial = tar.with_suffix(".partial.tar")
        step("mmdebstrap", "--quiet", "--variant=minbase", f"--include={packages}", SUITE, partial)
        partial.rename(tar)
    if BASE not in step(*BUILDAH, "images", "--format", "{{.Name}}"):
        container = step(*BUILDAH, "from", "scratch")
        step(*BUILDAH, "add", "--quiet", container, tar, "/")
        step(*BUILDAH, "commit", "--quiet", "--rm", "--format", "docker", container, BASE)


def build() -> None:
    """Build the wheel and the image. The build is lent the certificate authority that pip knows on this machine."""
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    step(sys.executable, "-m", "uv", "build", "--wheel", "--no-config", "--quiet", "--out-dir", ROOT / "dist")
    bud = [*BUILDAH, "bud", "--format", "docker", "--isolation", "chroot", "--build-arg", f"BASE={BASE}"]
    if authority := os.environ.get("PIP_CERT"):
        lent = PLACE / "pip.conf"
        lent.write_text("[global]\ncert = /run/authority.pem\n", encoding="utf-8")
        bud += ["--volume", f"{authority}:/run/authority.pem:ro", "--volume", f"{lent}:/etc/pip.conf:ro"]
    step(*bud, "--quiet", "--file", "deploy/Dockerfile", "--tag", IMAGE, ".")


def megabytes(folder: str) -> float:
    """Return the size of the files of a mounted image, in 10^6 bytes."""
    return int(step("du", "--summarize", "--bytes", "--one-file-system", folder).split()[0]) / 1e6


def mounted(image: str) -> tuple[str, str]:
    """Return a container of an image, and where its root is mounted."""
    container = step(*BUILDAH, "from", image)
    return container, step(*BUILDAH, "mount", container)


def inside(root: Path, settings: Mapping[str, Any]) -> None:
    """Run the image in the namespaces that this process is in; asserts are the checks."""
    for command in (
        ["ip", "link", "set", "lo", "up"],
        ["mount", "--make-rprivate", "/"],
        ["mount", "--bind", root, root],
        ["mount", "-t", "proc", "proc", root / "proc"],
        ["mount", "--rbind", "/dev", root / "dev"],
        ["mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", root / "tmp"],
        ["mount", "-t", "tmpfs", "-o", f"uid={settings['User'].split(':')[0]},mode=0700", "tmpfs", root / VOLUME[1:]],
        ["mount", "-o", "remount,ro,bind", root],
    ):
        step(*command)
    user, group = settings["User"].split(":")
    as_user = ["chroot", str(root), "setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups"]
    as_user += ["--no-new-privs", "--bounding-set=-all", "env", "-i", *settings["Env"]]

    def does(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*as_user, *command], capture_output=True, encoding="utf-8", timeout=60, check=False)

    health = settings["Healthcheck"]["Test"][1:]
    written = does("touch", "/opt/smr/x")
    _expect("the root is read-only", "Read-only file system" in written.stderr, written.stderr)
    _expect("without a server the HEALTHCHECK fails", does(*health).returncode != 0, "it passed")
    server = subprocess.Popen([*as_user, *settings["Entrypoint"], *settings["Cmd"]])
    try:
        answer = does(
            "sh", "-c", f"for _ in $(seq 100); do {shlex.join(health)} 2>/dev/null && exit; sleep 0.3; done; exit 1"
        )
        _expect("the HEALTHCHECK passes", answer.returncode == 0, answer.stderr)
        asked = does("python3", "-c", ASK)
        _expect(
            "a request falls back and is answered", asked.stdout.strip() == "200 by up", asked.stdout + asked.stderr
        )
        status = (root / "proc" / str(server.pid) / "status").read_text(encoding="utf-8")
        _expect("the server is its user", f"Uid:\t{user}\t{user}\t{user}" in status, status)
        _expect("no privilege is left", bool(re.search(r"CapEff:\s*0+\n", status)), status)
    finally:
        server.terminate()
    _expect("SIGTERM ends it with exit code 0", server.wait(60) == 0, str(server.returncode))


def _expect(claim: str, holds: bool, otherwise: str) -> None:
    if not holds:
        sys.exit(f"image: not so: {claim}: {otherwise}")
    print(f"ok      {claim}", flush=True)


def main(arguments: Sequence[str]) -> int:
    """Build, measure and run the image; the exit code is not 0 if a step or a check fails."""
    if arguments:  # in its namespaces
        inside(Path(arguments[1]), json.loads(arguments[2]))
        return 0
    have_tools()
    base()
    build()
    (before, base_root), (after, root) = mounted(BASE), mounted(IMAGE)
    try:
        settings = json.loads(step(*BUILDAH, "inspect", "--type", "image", IMAGE))["Docker"]["config"]
        added = megabytes(root) - megabytes(base_root)
        _expect(f"the image adds at most {MOST_MB} MB", added <= MOST_MB, f"{added:.1f} MB")
        print(f"        {added:.1f} MB on a base of {megabytes(base_root):.1f} MB", flush=True)
        place = Path(root) / "etc/smart-model-router"
        place.mkdir()
        (place / "smart-router.yaml").write_text(CONFIG, encoding="utf-8")
        own = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child"]
        command = [*own, sys.executable, "-m", "tools.image", "inside", root, json.dumps(settings)]
        return subprocess.run(command, cwd=ROOT, check=False).returncode
    finally:
        step(*BUILDAH, "rm", before, after)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
