"""The garbage collector of a process that does nothing but serve."""

from __future__ import annotations

import gc

_YOUNG_OBJECTS = 10_000
"""So many new objects are looked at in one go: almost all of a request's are gone by then."""


def settle() -> None:
    """What is here now will stay: it is not searched for garbage again (docs/benchmarks.md, The gateway).

    Called again after a reload, or the configuration before it would stay, too.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS)
