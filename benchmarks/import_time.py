"""What importing the router costs: at most 1.5 times `import asyncio, dataclasses, json`, plus 60 ms.

CPU time of the import alone, in fresh interpreters, median of several taken in turn.
`python -X importtime -c "import smart_model_router"` shows where it goes.
"""

from __future__ import annotations

import statistics
import subprocess
import sys

from _measure import Figure, report

RUNS = 15
OURS = "from smart_model_router import SmartModelRouter, RouterConfig"
BASELINE = "import asyncio, dataclasses, json"
TIMES_BASELINE = 1.5
PLUS_MS = 60.0
_PROGRAM = "import time; began = time.process_time(); {}; print(time.process_time() - began)"


def import_ms(statement: str) -> float:
    """Milliseconds of CPU that `statement` takes in a new interpreter."""
    command = [sys.executable, "-c", _PROGRAM.format(statement)]
    return float(subprocess.run(command, capture_output=True, check=True).stdout) * 1e3  # noqa: S603 - our own program


def main() -> int:
    """Both imports in turn."""
    import_ms(OURS)  # byte code is written once
    pairs = [(import_ms(OURS), import_ms(BASELINE)) for _ in range(RUNS)]
    ours, baseline = (statistics.median(figures) for figures in zip(*pairs, strict=True))
    limit = TIMES_BASELINE * baseline + PLUS_MS
    return report(Figure("import_time", ours, "ms CPU", baseline, BASELINE, limit))


if __name__ == "__main__":
    sys.exit(main())
