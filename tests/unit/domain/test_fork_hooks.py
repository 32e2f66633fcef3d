"""What a forked process does first."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref

from smart_model_router.domain import fork_hooks
from smart_model_router.domain.fork_hooks import in_children

PROGRAM = """
import os
from smart_model_router.domain.fork_hooks import before_forks, in_children

class Thing:
    def __init__(self, name): self.name = name
    def begin(self): print(self.name, os.getpid() != parent, flush=True)

class Broken:
    def begin(self): raise OSError("broken")

parent, kept, gone, broken = os.getpid(), Thing("kept"), Thing("gone"), Broken()
in_children(broken.begin)
in_children(kept.begin)
in_children(gone.begin)
before_forks(broken.begin)
before_forks(kept.begin)
del gone
child = os.fork()
if not child:
    print("then the rest", flush=True)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_child_begins_with_what_was_asked_for() -> None:
    """Before anything else, only what is still there, in the child or before it; one that raises stops no other."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == ["kept False", "kept True", "then the rest", "0"]
    assert done.stderr.count("OSError: broken") == 2


def test_nothing_is_kept_for_a_fork_that_may_never_come() -> None:
    """Neither the object nor the note about it."""

    class Thing:
        def begin(self) -> None:
            """Nothing to do."""

    thing = Thing()
    before = len(fork_hooks._METHODS)
    in_children(thing.begin)
    assert len(fork_hooks._METHODS) == before + 1
    reference = weakref.ref(thing)
    del thing
    gc.collect()
    assert reference() is None
    assert len(fork_hooks._METHODS) <= before
