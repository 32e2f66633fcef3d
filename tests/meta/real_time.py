"""Finds what makes a test's outcome hang on the machine's speed or on a draw, in the source of a test file.

A wait for a condition ends with it, and its bound is long (tests/e2e/eventually.py). What is refused:

- a sleep of a written number of seconds, outside a loop: no number is right on every machine;
- an upper bound below LEAST_BOUND seconds on time, or processor time, that has really passed, or on a wait;
- such a bound plus what was measured of the machine's load, or a duration less that: no such sum is right;
- a clock moved by a written number of seconds: breakers draw their open times; go to the instant that the snapshot, or
  the file, tells (`open_until`, `retry_after`, `boottime_until`).

In a file of tests in virtual time, a loop's sleeps and time-outs take no time, and clocks of pure code draw nothing.
A line that may stay ends in `# real time: <reason>`, or `# drawn time: <reason>` for a clock.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from importlib import import_module

LEAST_BOUND = 10.0
"""Seconds. A busy machine of two cores was seen to make a process wait for four."""

_CLOCKS = {"monotonic", "perf_counter", "process_time", "thread_time", "time"}
_TAKEN = re.compile(r"(.*_)?(seconds|took|taken|elapsed|waited)")
_WAITS = {"wait_for", "wait", "timeout", "settimeout", "becomes", "result", "join"}
_MOVES = {"advance", "move", "shift", "travel", "leap"}
_MOVED = "a clock is moved by a written number of seconds"
_LEAST_MOVE = 1.0
_REASON = re.compile(r"# (real|drawn) time: \S+ \S+")
_VIRTUAL = re.compile(r"\b(run_)?virtual\b")


def findings(source: str, *, pure: bool = False) -> list[str]:
    """Return what is refused in this source, as `line: what`.

    `pure` says that it is of tests/unit, tests/property or tests/simulation: clocks are its own, and its loops' time is
    virtual if it names that.
    """
    lines = source.splitlines()
    found = sorted(set(_Reader(ast.parse(source), pure, pure and _VIRTUAL.search(source) is not None).read()))
    return [f"{line}: {what}" for line, what in found if not _REASON.search(lines[line - 1])]


class _Reader:
    """One file: its nodes, what each is in, and the names of numbers, of instants and of durations."""

    def __init__(self, tree: ast.Module, pure: bool, virtual: bool) -> None:
        self._pure, self._virtual = pure, virtual
        self._nodes = list(ast.walk(tree))
        self._parents = {child: node for node in self._nodes for child in ast.iter_child_nodes(node)}
        imports = (node for node in self._nodes if isinstance(node, ast.ImportFrom) and node.module)
        self._imports = {one.name: node.module or "" for node in imports for one in node.names if one.name.isupper()}
        self._numbers: dict[str, float] = {}
        self._instants: set[str] = set()
        self._elapsed: set[str] = set()
        self._deadlines: dict[str, float] = {}
        kept = [pair for node in self._nodes for pair in _kept(node)]
        for name, value in kept:
            self._learn(name, value)
        for name, value in kept:  # of lists that are filled after their differences were written
            self._learn(name, value)

    def _learn(self, name: str, value: ast.expr) -> None:
        if self._is_elapsed(value):
            self._elapsed.add(name)
        elif self._is_instant(value):
            self._instants.add(name)
            if isinstance(value, ast.BinOp):
                self._deadlines[name] = self._seconds(value.right)
        elif name.isupper() and (seconds := self._seconds(value)):
            self._numbers[name] = seconds

    def read(self) -> Iterator[tuple[int, str]]:
        """Yield a line and what is wrong with it."""
        for node in self._nodes:
            match node:
                case ast.Call() if not self._virtual:
                    what = self._call(node)
                case ast.Compare():
                    what = self._comparison(node)
                case ast.AugAssign(target=ast.Attribute(attr="now" | "ahead" | "boottime"), op=ast.Add(), value=value):
                    what = _MOVED if _written(value) and not self._pure else ""
                case _:
                    what = ""
            if what:
                yield node.lineno, what  # type: ignore[attr-defined]  # all of these have one

    def _call(self, node: ast.Call) -> str:
        name = _name(node.func)
        named = [keyword.value for keyword in node.keywords if keyword.arg in {"timeout", "within"}]
        seconds = max(map(self._seconds, [*node.args[-1:], *named]), default=0.0)
        if not seconds:
            return ""
        if name == "sleep" or (name == "wait" and "Event" in ast.dump(node.func)):
            return "" if self._is_in_a_loop(node) else "a sleep of a written number of seconds"
        if name in _MOVES:
            return _MOVED if max(map(_written, node.args)) >= _LEAST_MOVE and not self._pure else ""
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
            if what := self._bound(passed, bound):
                return what
        return ""

    def _bound(self, passed: ast.expr, bound: ast.expr) -> str:
        if self._is_clock(passed) and isinstance(bound, ast.Name):
            seconds = self._deadlines.get(bound.id, 0.0)
            return f"a wait is given up after {seconds:g} s" if 0 < seconds < LEAST_BOUND else ""
        taken = not self._pure and any(_TAKEN.fullmatch(_name(each)) for each in ast.walk(passed))
        if not (taken or self._is_elapsed(passed)):
            return ""
        seconds = self._seconds(bound)
        less = taken and isinstance(passed, ast.BinOp) and isinstance(passed.op, ast.Sub)
        if less or (not seconds and isinstance(bound, ast.BinOp)):
            return "a bound on real time is mended by something that was measured"
        return f"less than {seconds:g} s of real time may pass" if 0 < seconds < LEAST_BOUND else ""

    def _seconds(self, node: ast.expr | None) -> float:
        """Return the number that is written there, or named, or a sum of such ones; 0 for anything else."""
        match node:
            case ast.Constant():
                return _written(node)
            case ast.Name(id=name):
                return self._numbers.get(name) or self._imported(name)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                one, other = self._seconds(left), self._seconds(right)
                return one + other if one and other else 0.0
            case _:
                return 0.0

    def _imported(self, name: str) -> float:
        """Return the number that a constant of another module is, 0 for anything else."""
        if name not in self._imports:
            return 0.0
        value = getattr(import_module(self._imports[name]), name)
        return float(value) if isinstance(value, int | float) else 0.0

    def _is_clock(self, node: ast.AST) -> bool:
        """Return whether it reads a clock of the machine; a loop's own may be virtual."""
        if not (isinstance(node, ast.Call) and _name(node.func) in _CLOCKS):
            return False
        return not self._virtual or ast.unparse(node.func).startswith("time.")

    def _is_instant(self, node: ast.expr) -> bool:
        """Return whether it is what a clock told, or when something arrived (`.at`), or such a thing's sum."""
        match node:
            case ast.BinOp(left=left, op=ast.Add()):
                return self._is_instant(left)
            case ast.Call(func=ast.Name(id="max" | "min"), args=[one]):
                return self._is_instant(one)
            case ast.Name(id=name):
                return name in self._instants
            case ast.Subscript(value=value):
                return self._is_instant(value)
            case _:
                return self._is_clock(node)

    def _is_elapsed(self, node: ast.expr) -> bool:
        """Return whether a difference of instants is in it, or the name of one."""
        for each in ast.walk(node):
            if isinstance(each, ast.Name) and each.id in self._elapsed:
                return True
            if isinstance(each, ast.BinOp) and isinstance(each.op, ast.Sub):
                sides = [each.left, each.right]
                if any(map(self._is_clock, sides)) or all(map(self._is_instant, sides)):
                    return True
                if not self._virtual and all(isinstance(side, ast.Attribute) and side.attr == "at" for side in sides):
                    return True
        return False

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


def _kept(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names that a statement or a call gives a value to, or adds one to."""
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                pairs: Iterable[tuple[ast.expr, ast.expr]] = [(target, value)]
                if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                    pairs = zip(target.elts, value.elts, strict=False)
                yield from ((name, given) for each, given in pairs if (name := _owner(each)))
        case ast.AugAssign(target=target, value=value) if name := _owner(target):
            yield name, value
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[value]):
            yield name, value
        case _:
            pass


def _owner(target: ast.expr) -> str:
    """Return the name of a variable, also of one whose item is meant."""
    match target:
        case ast.Name(id=name) | ast.Subscript(value=ast.Name(id=name)):
            return name
        case _:
            return ""


def _written(node: ast.expr) -> float:
    """Return the number that is written there, 0 for anything else."""
    value = node.value if isinstance(node, ast.Constant) else 0
    return float(value) if isinstance(value, int | float) else 0.0


def _name(function: ast.AST) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
