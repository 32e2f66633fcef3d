"""Finds what makes a test's outcome hang on the machine's speed or on a draw, in the source of a test file.

A wait for a condition ends with it, and its bound is long (tests/e2e/eventually.py). What is refused:

- a sleep of a written number of seconds, outside a loop: no number is right on every machine;
- an upper bound below LEAST_BOUND seconds on time that has really passed, or on a wait;
- a clock moved by a written number of seconds: breakers draw their open times; go to the instant that the snapshot, or
  the file, tells (`open_until`, `retry_after`, `boottime_until`).

A line that may stay ends in `# real time: <reason>`, or `# drawn time: <reason>` for a clock.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

LEAST_BOUND = 10.0
"""Seconds. A busy machine of two cores was seen to make a process wait for four."""

_CLOCKS = {"monotonic", "perf_counter", "time"}
_WAITS = {"wait_for", "wait", "timeout", "settimeout", "becomes"}
_MOVES = {"advance", "move", "shift", "travel", "leap"}
_MOVED = "a clock is moved by a written number of seconds"
_LEAST_MOVE = 1.0
_REASON = re.compile(r"# (real|drawn) time: \S+ \S+")


def findings(source: str) -> list[str]:
    """Return what is refused in this source, as `line: what`."""
    lines = source.splitlines()
    found = sorted(set(_Reader(ast.parse(source)).read()))
    return [f"{line}: {what}" for line, what in found if not _REASON.search(lines[line - 1])]


class _Reader:
    """One file: its nodes, and what each is in."""

    def __init__(self, tree: ast.Module) -> None:
        self._nodes = list(ast.walk(tree))
        self._parents = {child: node for node in self._nodes for child in ast.iter_child_nodes(node)}
        assignments = (node for node in self._nodes if isinstance(node, ast.Assign) and _is_elapsed(node.value))
        self._elapsed = {target.id for node in assignments for target in node.targets if isinstance(target, ast.Name)}

    def read(self) -> Iterator[tuple[int, str]]:
        """Yield a line and what is wrong with it."""
        for node in self._nodes:
            match node:
                case ast.Call():
                    what = self._call(node)
                case ast.Compare():
                    what = self._comparison(node)
                case ast.AugAssign(target=ast.Attribute(attr="now" | "ahead" | "boottime"), op=ast.Add(), value=value):
                    what = _MOVED if _seconds(value) else ""
                case _:
                    what = ""
            if what:
                yield node.lineno, what  # type: ignore[attr-defined]  # all of these have one

    def _call(self, node: ast.Call) -> str:
        name = _name(node.func)
        named = [keyword.value for keyword in node.keywords if keyword.arg in {"timeout", "within"}]
        seconds = max(map(_seconds, [*node.args[-1:], *named]), default=0.0)
        if not seconds:
            return ""
        if name == "sleep" or (name == "wait" and "Event" in ast.dump(node.func)):
            return "" if self._is_in_a_loop(node) else "a sleep of a written number of seconds"
        if name in _MOVES:
            return _MOVED if seconds >= _LEAST_MOVE else ""
        if name in _WAITS and seconds < LEAST_BOUND and not self._expects_silence(node):
            return f"a wait is given up after {seconds:g} s"
        return ""

    def _comparison(self, node: ast.Compare) -> str:
        sides = [node.left, *node.comparators]
        for left, operator, right in zip(sides, node.ops, sides[1:], strict=False):
            if isinstance(operator, ast.Lt | ast.LtE):
                passed, bound = left, right
            elif isinstance(operator, ast.Gt | ast.GtE):
                passed, bound = right, left
            else:
                continue
            known = isinstance(passed, ast.Name) and passed.id in self._elapsed
            if 0 < _seconds(bound) < LEAST_BOUND and (known or _is_elapsed(passed)):
                return f"less than {_seconds(bound):g} s of real time may pass"
        return ""

    def _around(self, node: ast.AST) -> Iterator[ast.AST]:
        while node in self._parents:
            node = self._parents[node]
            yield node

    def _is_in_a_loop(self, node: ast.AST) -> bool:
        """Return whether its own function repeats it."""
        for outer in self._around(node):
            if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef):
                return False
            if isinstance(outer, ast.While | ast.For | ast.AsyncFor):
                return True
        return False

    def _expects_silence(self, node: ast.AST) -> bool:
        """Return whether `pytest.raises(TimeoutError)` is around it: that nothing comes, slowness does not change."""
        blocks = (outer for outer in self._around(node) if isinstance(outer, ast.With | ast.AsyncWith))
        return any("TimeoutError" in ast.dump(item.context_expr) for block in blocks for item in block.items)


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _seconds(node: ast.expr | None) -> float:
    """Return the number that is written there, 0 for anything else."""
    value = node.value if isinstance(node, ast.Constant) else 0
    return float(value) if isinstance(value, int | float) else 0.0


def _is_elapsed(node: ast.expr) -> bool:
    """Return whether it is a difference with a real clock in it, or one of two arrivals (`.at`)."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)):
        return False
    sides = [node.left, node.right]
    if all(isinstance(side, ast.Attribute) and side.attr == "at" for side in sides):
        return True
    return any(isinstance(side, ast.Call) and _name(side.func) in _CLOCKS for side in sides)
