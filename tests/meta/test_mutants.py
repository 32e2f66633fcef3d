"""The mutation lane's own rules: a survivor is known by what changed, and every one of them is explained, once."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.meta.repository import ROOT, SOURCE_ROOTS
from tools.mutants import COPIED, TARGETS, Survivor, explained, forget_living, survivor

DIFF = """--- src/smart_model_router/core/gate.py
+++ src/smart_model_router/core/gate.py
@@ -1,4 +1,4 @@
 def free(self) -> int:
     limit = self.limit
-    return max(0, limit - self.in_flight)
+    return max(1, limit - self.in_flight)
"""
WRITTEN = """
[[survivor]]
function = "core.a.f"
before = "x = 0"
after = "x = None"
why = "nobody reads it"

[[rule]]
change = 'log\\((.*)\\) => log\\(None\\)'
why = "texts for people"
"""
KNOWN = Survivor("core.a.f", "x = 0", "x = None")
RULED = Survivor("core.b.g", 'log("no")', "log(None)")
NEW = Survivor("core.b.g", "y < 1", "y <= 1")


def test_a_survivor_is_its_function_and_the_lines_that_changed() -> None:
    """Neither its number nor its place in the file: other mutants come and go."""
    before, after = "return max(0, limit - self.in_flight)", "return max(1, limit - self.in_flight)"
    method = survivor("smart_model_router.core.capacity.xǁBulkheadǁfree__mutmut_12", DIFF)
    assert method == Survivor("smart_model_router.core.capacity.Bulkhead.free", before, after)
    private = survivor("smart_model_router.core.gate.x__later__mutmut_3", DIFF)
    assert private == Survivor("smart_model_router.core.gate.later", before, after)


def test_who_lived_is_tested_again(tmp_path: Path) -> None:
    """And whoever no test reached; those that were killed or never ended stay dead."""
    file = tmp_path / "mutants" / "core" / "gate.py.meta"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"exit_code_by_key": {"dead": 1, "endless": -24, "alive": 0, "alone": 33, "new": None}}))
    forget_living(tmp_path)
    codes = {"dead": 1, "endless": -24, "alive": None, "alone": None, "new": None}
    assert json.loads(file.read_text()) == {"exit_code_by_key": codes}


def test_who_is_named_or_covered_by_a_rule_is_explained() -> None:
    """Everybody else is missing."""
    assert explained(WRITTEN).missing({KNOWN, RULED, NEW}) == [NEW]
    assert explained("").missing({KNOWN}) == [KNOWN]


def test_an_explanation_without_its_survivor_is_idle() -> None:
    """Killed meanwhile, or written otherwise: it is to be deleted."""
    known = explained(WRITTEN)
    assert known.idle({KNOWN, RULED}) == []
    assert known.idle({RULED}) == ["core.a.f: x = 0 => x = None"]
    assert known.idle({KNOWN}) == [r"rule log\((.*)\) => log\(None\)"]


def test_a_rule_matches_the_whole_change() -> None:
    """Not any line that happens to contain it."""
    longer = Survivor("core.b.g", 'log("no"); y = 1', 'log("no"); y = 2')
    assert explained(WRITTEN).missing({longer}) == [longer]


def test_nobody_is_explained_twice() -> None:
    """What a rule covers needs no entry of its own."""
    twice = (
        """
[[survivor]]
function = "core.b.g"
before = 'log("no")'
after = "log(None)"
why = "said before"
"""
        + WRITTEN
    )
    assert explained(twice).idle({KNOWN, RULED}) == ['core.b.g: log("no") => log(None)']


def _functions(file: Path, module: str) -> Iterator[tuple[str, str]]:
    """Yield the functions and methods of a file as mutants are named, each with its lines as one."""
    text = file.read_text(encoding="utf-8")
    lines = text.splitlines()
    body = ast.parse(text).body
    classes = [(f"{node.name}.", node.body) for node in body if isinstance(node, ast.ClassDef)]
    for owner, members in [("", body), *classes]:
        for node in members:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                name = f"{owner}{node.name}" if owner else node.name
                said = " ".join(line.strip() for line in lines[node.lineno - 1 : node.end_lineno])
                yield f"{module}.{name.lstrip('._')}", said


@pytest.mark.parametrize("target", TARGETS)
def test_what_the_tests_of_a_lane_import_is_laid_out(target: str) -> None:
    """Else not one of its mutants would be tested."""
    chosen = TARGETS[target].tests
    left_out = [ROOT / one.partition("=")[2] for one in chosen if one.startswith("--ignore=")]
    files = (file for one in chosen if not one.startswith("-") for file in (ROOT / one).rglob("*.py"))
    tested = [file for file in files if not any(file.is_relative_to(one) for one in left_out)]
    nodes = (node for file in tested for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
    imported = {node.module.partition(".")[0] for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
    assert tested
    assert {name for name in imported if (ROOT / name).is_dir()} <= {*COPIED}


@pytest.mark.parametrize("target", TARGETS)
def test_an_explained_mutant_is_of_a_line_that_exists(target: str) -> None:
    """A function that moved, or a line that changed, takes its explanations along."""
    functions: dict[str, list[str]] = {}
    for root in SOURCE_ROOTS:
        for file in root.rglob("*.py"):
            module = ".".join(file.relative_to(root).with_suffix("").parts)
            for name, said in _functions(file, module):
                functions.setdefault(name, []).append(said)
    written = (ROOT / "tests" / "mutants" / f"{target}.toml").read_text(encoding="utf-8")
    known = explained(written).survivors
    assert known
    lost = [each for each in known if not any(each.before in said for said in functions.get(each.function, []))]
    assert lost == []
