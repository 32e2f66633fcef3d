"""The garbage collector and the turns of threads in a process that does nothing but serve."""

from __future__ import annotations

import gc
import sys

_YOUNG_OBJECTS = 10_000
"""So many new objects are looked at in one go: almost all of a request's are gone by then."""

_TURN_SECONDS = 0.001
"""So long the thread that reads large bodies keeps the loop waiting for its turn; Python's own is 5 ms."""


def settle() -> None:
    """What is here now will stay: it is not searched for garbage again (docs/benchmarks.md, The gateway).

    Called again after a reload, or the configuration before it would stay, too.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS)
    sys.setswitchinterval(_TURN_SECONDS)
