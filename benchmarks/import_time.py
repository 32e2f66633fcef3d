"""The cost of importing the router: at most 1.5 times `import asyncio, dataclasses, json`, plus 60 ms.

CPU time of the import alone, in fresh interpreters, median of several taken in turn.
`python -X importtime -c "import smart_model_router"` shows where it goes.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from tempfile import TemporaryDirectory

from benchmarks._measure import Figure, report

RUNS = 15
OURS = "from smart_model_router import SmartModelRouter, RouterConfig"
BASELINE = "import asyncio, dataclasses, json"
TIMES_BASELINE = 1.5
PLUS_MS = 60.0
_PROGRAM = "import time; began = time.process_time(); {}; print(time.process_time() - began)"


def import_ms(statement: str, cache: str) -> float:
    """Milliseconds of CPU that `statement` takes in a new interpreter that keeps its byte code in `cache`."""
    command = [sys.executable, "-X", f"pycache_prefix={cache}", "-c", _PROGRAM.format(statement)]
    # Wherever the variable is set, nothing is compiled beforehand, as it is where a package is installed.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, capture_output=True, check=True, env=environment)  # noqa: S603 - our own program
    return float(done.stdout) * 1e3


def main() -> int:
    """Both imports in turn."""
    with TemporaryDirectory() as cache:
        for statement in (OURS, BASELINE):
            import_ms(statement, cache)  # compiles
        pairs = [(import_ms(OURS, cache), import_ms(BASELINE, cache)) for _ in range(RUNS)]
    ours, baseline = (statistics.median(figures) for figures in zip(*pairs, strict=True))
    limit = TIMES_BASELINE * baseline + PLUS_MS
    return report(Figure("import_time", ours, "ms CPU", baseline, BASELINE, limit))


if __name__ == "__main__":
    sys.exit(main())
