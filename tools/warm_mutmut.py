"""mutmut for thousands of quick tests: they are collected once, and each mutant's process only runs them.

mutmut itself starts pytest anew for every mutant, which takes ten times as long as most of our tests.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from _pytest.config import _prepareconfig
from mutmut.__main__ import cli
from mutmut.runners.harness import PytestRunner
from mutmut.utils.file_utils import change_cwd
from mutmut.workers import isolation

# The output of a mutant's tests and the reason of their failure are not read (to find it out takes longer than most of
# them), and their order is ours: those of the module first, else the quickest.
ARGUMENTS = ("--rootdir=.", "--capture=no", "--assert=plain", "--tb=native", "-pno:randomly")


class WarmRunner(PytestRunner):
    """Collects the tests once; the processes forked afterwards have them."""

    session: pytest.Session | None = None

    def run_tests(self, *, mutant_name: str | None, tests: Iterable[str]) -> int:
        """Exit code 1 at the first test that fails; those named like the mutant's module go first."""
        session = self.session = self.session or self._collected()
        if mutant_name is not None:
            return self._run(session, tests, mutant_name.split(".")[1:-1])
        # Without a mutant they must pass, or (mutmut breaks them on purpose) fail, run as those of mutants are.
        child = os.fork()
        if not child:
            os._exit(self._run(session, tests))
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    def _run(self, session: pytest.Session, tests: Iterable[str], near: Sequence[str] = ()) -> int:
        items = {item.nodeid: item for item in session.items}
        chosen = [items[test] for test in tests] or session.items
        chosen = sorted(chosen, key=lambda item: -sum(part in item.nodeid for part in near))
        with change_cwd("mutants"):
            for item, following in zip(chosen, [*chosen[1:], None], strict=True):
                item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
                if session.testsfailed:
                    return 1
        return 0

    def _collected(self) -> pytest.Session:
        arguments = [*ARGUMENTS, *self._pytest_add_cli_args, *self._pytest_add_cli_args_test_selection]
        with change_cwd("mutants"), redirect_stdout(Path(os.devnull).open("w", encoding="utf-8")):
            config: Any = _prepareconfig(arguments)
            session = pytest.Session.from_config(config)
            config._do_configure()
            config.hook.pytest_sessionstart(session=session)
            session.perform_collect()
        gc.freeze()  # a collection in a process forked afterwards would copy all there is
        return session


if __name__ == "__main__":
    isolation.PytestRunner = WarmRunner  # type: ignore[attr-defined]  # mutmut has no setting for it
    sys.exit(cli())
