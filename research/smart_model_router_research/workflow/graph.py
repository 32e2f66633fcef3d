"""The steps of a definition as a graph: which stand before which, unknown needs, cycles, joins inside loops."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter
from typing import Any

from smart_model_router.domain.suggest import did_you_mean
from smart_model_router.domain.tree_path import Path
from smart_model_router_research.workflow.faults import WorkflowFault

_SUGGESTIONS = 20
_CYCLES = 20
Found = Iterator[WorkflowFault]


class StepGraph:
    """The steps by name, and which of them stand before which."""

    def __init__(self, steps: Sequence[Any]) -> None:
        self.steps = steps
        self.by_name = {step.name: step for step in steps if isinstance(step.name, str)}
        self._suggestions = _SUGGESTIONS
        self._before: dict[str, int] | None = None
        self._bit = {name: 1 << number for number, name in enumerate(self.by_name)}

    def faults(self) -> Found:
        """Yield unknown needs, a step that needs itself, and the cycles."""
        for number, step in enumerate(self.steps):
            path: Path = ("steps", number, "needs")
            if not isinstance(step.needs, tuple):
                yield WorkflowFault(path, step.needs, "a list of the names of steps is needed")
                continue
            for place, need in enumerate(step.needs):
                if need == step.name:
                    yield WorkflowFault((*path, place), need, "a step cannot need itself")
                elif not isinstance(need, str) or need not in self.by_name:
                    yield WorkflowFault((*path, place), need, f"no step has that name; {self.suggested(need)}")
        yield from self._cycles()

    def suggested(self, name: object) -> str:
        """Return `did you mean` for the first few names: among thousands of steps each search takes a while."""
        self._suggestions -= 1
        return did_you_mean(str(name), self.by_name) if self._suggestions >= 0 else "the name of a step is needed"

    def comes_before(self, one: object, other: object) -> bool:
        """Return whether `other` needs the step `one`, itself or through others."""
        if not isinstance(one, str) or not isinstance(other, str):
            return False
        if self._before is None:
            self._before = {}
            for name in self._order(self._needs()):
                found = 0
                for need in self._needs_of(self.by_name[name]):
                    found |= self._bit[need] | self._before.get(need, 0)
                self._before[name] = found
        return bool(self._before.get(other, 0) & self._bit.get(one, 0))

    def loop_body(self, first: object, last: object) -> tuple[str, ...]:
        """Return the steps of a loop in the order of the definition: both ends, and those between."""
        if first == last:
            return tuple(name for name in (first,) if isinstance(name, str))
        between = [name for name in self.by_name if self.comes_before(first, name) and self.comes_before(name, last)]
        return tuple(name for name in self.by_name if name in (first, last, *between))

    def joins_of_loop(self, first: object, last: object) -> Found:
        """Yield the needs of steps inside a loop that lie outside of it.

        They settle once, and the steps of a loop often: an engine of supersteps waits for ever at such a join.
        """
        body = self.loop_body(first, last)
        for number, step in enumerate(self.steps):
            for need in self._needs_of(step) if isinstance(step.name, str) and step.name in body else ():
                if step.name != first and need not in body:
                    expected = f"a step of the loop from {first!r} is needed; only {first!r} may need others"
                    yield WorkflowFault(("steps", number, "needs", step.needs.index(need)), need, expected)

    def _needs_of(self, step: Any) -> list[str]:
        needs = step.needs if isinstance(step.needs, tuple) else ()
        return [need for need in needs if isinstance(need, str) and need in self.by_name and need != step.name]

    def _needs(self) -> dict[str, list[str]]:
        return {name: self._needs_of(step) for name, step in self.by_name.items()}

    def _cycles(self) -> Found:
        """Yield some cycles that have no step in common, each with its path."""
        needs = self._needs()
        for _ in range(_CYCLES):
            try:
                TopologicalSorter(needs).prepare()
            except CycleError as error:
                cycle: list[str] = error.args[1]
                number = next(number for number, step in enumerate(self.steps) if step.name == cycle[0])
                shown = " -> ".join(cycle if len(cycle) <= 20 else [*cycle[:10], "...", *cycle[-10:]])
                yield WorkflowFault(("steps", number, "needs"), shown, "steps that do not need each other are needed")
                gone = set(cycle)
                needs = {name: [n for n in of if n not in gone] for name, of in needs.items() if name not in gone}
            else:
                return

    def _order(self, needs: Mapping[str, list[str]]) -> Iterable[str]:
        """Return the steps in an order of running; those behind a cycle are left out."""
        sorter = TopologicalSorter(needs)
        with suppress(CycleError):
            sorter.prepare()
        order: list[str] = []
        while ready := sorter.get_ready():
            order += ready
            sorter.done(*ready)
        return order
