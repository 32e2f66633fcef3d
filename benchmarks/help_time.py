"""The cost of `smr --help`: at most 250 ms of CPU, in a fresh interpreter, beside `python -c pass`.

Both are timed whole, from their start to their end, median of several taken in turn.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
from tempfile import TemporaryDirectory

from benchmarks._measure import Figure, report

RUNS = 15
LIMIT_MS = 250.0
HELP = ("-c", "import sys; sys.argv = ['smr', '--help']; from smart_model_router.cli import main; main()")
NOTHING = ("-c", "pass")


def cpu_ms(arguments: tuple[str, ...], cache: str) -> float:
    """Milliseconds of CPU of an interpreter with these arguments that keeps its byte code in `cache`."""
    command = [sys.executable, "-X", f"pycache_prefix={cache}", *arguments]
    # Wherever the variable is set, nothing is compiled beforehand, as it is where a package is installed.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True, env=environment)  # noqa: S603 - our own program
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) * 1e3


def main() -> int:
    """Both programs in turn."""
    with TemporaryDirectory() as cache:
        for arguments in (HELP, NOTHING):
            cpu_ms(arguments, cache)  # compiles
        pairs = [(cpu_ms(HELP, cache), cpu_ms(NOTHING, cache)) for _ in range(RUNS)]
    ours, baseline = (statistics.median(figures) for figures in zip(*pairs, strict=True))
    return report(Figure("help_time", ours, "ms CPU", baseline, "python -c pass", LIMIT_MS))


if __name__ == "__main__":
    sys.exit(main())
