"""The mutation lane: breaks the pure code in thousands of small ways and sees whether its tests notice.

Each mutant that no test notices must be explained in tests/mutants/NAME.toml: by itself ([[survivor]]) or, where many
live for one reason, by a [[rule]]. Exit code 1 when fewer than 95 % are killed, when a survivor is not explained, or
when an explanation has lost its survivors.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.stats import status_by_exit_code

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / ".mutants"
REQUIRED = 0.95
SOURCE_ROOTS = ("router", "providers", "stats", "scoring", "research")
NOTICED = {"killed", "timeout", "segfault", "suspicious", "caught by type check"}
# The latter two collect garbage at the end of every run: half of the time of most mutants.
COPIED = ("tests", "benchmarks")
"""Beside the packages: the tests, and what tests of scoring measure by."""
LEFT_OUT = ("cacheprovider", "unraisableexception", "threadexception")

_PROTOCOL = "tests/unit/research/test_protocol.py"
_SELECTOR = "tests/unit/research/test_engine_selector.py"


@dataclass(frozen=True, slots=True)
class Target:
    """The code to mutate (patterns below src/), and the tests that have to notice (as pytest is told)."""

    mutate: tuple[str, ...]
    tests: tuple[str, ...]
    spare: tuple[str, ...] = ()
    """The code of these patterns that is left alone."""


TARGETS = {
    "core": Target(
        mutate=("src/smart_model_router/core/*",),
        tests=("tests/unit/core",),
    ),
    "scoring": Target(
        mutate=("src/smart_model_router_scoring/*",),
        tests=(
            "tests/unit/scoring",
            "--ignore=tests/unit/scoring/retrieval",
            # mutmut stands between it and its caller
            "--deselect=tests/unit/scoring/test_fusion.py::test_the_warning_points_at_whoever_built_it",
            # reads docs/, which is not laid out
            "--deselect=tests/unit/scoring/tools/test_magic.py::test_the_documented_table_is_the_list",
        ),
        spare=("src/smart_model_router_scoring/retrieval/*",),
    ),
    "workflow": Target(
        mutate=(
            "src/smart_model_router_research/engine/joining.py",
            "src/smart_model_router_research/engine/states.py",
            "src/smart_model_router_research/engine/steps.py",
            "src/smart_model_router_research/engine/store_rules.py",
            "src/smart_model_router_research/workflow/evaluation.py",
            "src/smart_model_router_research/workflow/expressions.py",
        ),
        tests=(
            "tests/unit/research",
            *(
                f"--ignore=tests/unit/research/test_{name}.py"
                for name in ("definition", "loading", "processes", "schema", "sqlite_store")
            ),
            # a process of its own, which has not this code
            f"--deselect={_PROTOCOL}::test_the_router_and_the_command_line_do_not_import_workflows",
            f"--deselect={_SELECTOR}::test_the_selector_imports_no_engine_of_others",
            # reads pyproject.toml, which is not laid out
            f"--deselect={_SELECTOR}::test_the_versions_are_those_of_the_extra",
        ),
    ),
}


@dataclass(frozen=True, slots=True, order=True)
class Survivor:
    """A mutant that no test noticed: the function it stands in, the line as it was and as it became."""

    function: str
    before: str
    after: str


def lay_out(target: Target, work: Path, *, keep: bool) -> None:
    """Lay the packages out as mutmut knows them: all below src/, the tests beside it. `keep` what is known by now."""
    for old in (work / name for name in ("src", *COPIED)) if keep else (work,):
        shutil.rmtree(old, ignore_errors=True)
    (work / "mutants" / "mutmut-stats.json").unlink(missing_ok=True)  # which tests reach what: of new tests it knows
    for root in SOURCE_ROOTS:
        for package in (ROOT / root).glob("smart_model_router*/"):
            shutil.copytree(package, work / "src" / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in COPIED:
        shutil.copytree(ROOT / name, work / name, ignore=shutil.ignore_patterns("__pycache__"))
    settings = {
        "source_paths": ["src"],
        "only_mutate": list(target.mutate),
        "do_not_mutate": list(target.spare),
        "also_copy": list(COPIED),
        "pytest_add_cli_args": ["-q", *(f"-pno:{plugin}" for plugin in LEFT_OUT)],
        "pytest_add_cli_args_test_selection": list(target.tests),
    }
    table = "".join(f"{key} = {json.dumps(value)}\n" for key, value in settings.items())
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (work / "pyproject.toml").write_text(f"{project}\n[tool.mutmut]\n{table}", encoding="utf-8")


def mutmut(work: Path, *arguments: str) -> str:
    """Run mutmut there; its output, or the end of it and of this program when it fails."""
    # mutmut reads its own arguments before it forks, so that what the tests see of the environment is this one.
    environment = {**os.environ, "SMR_HYPOTHESIS_PROFILE": "mutants", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-P", str(ROOT / "tools" / "warm_mutmut.py"), *arguments],
        cwd=work,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"mutmut {arguments[0]} failed:\n{(done.stdout + done.stderr)[-4000:]}")
    return done.stdout


def results(work: Path) -> dict[str, str]:
    """Return the result of every mutant, by its name."""
    lines = (line.strip().rpartition(": ") for line in mutmut(work, "results", "--all", "true").splitlines())
    return {name: result for name, colon, result in lines if colon}


def forget_living(work: Path) -> None:
    """Let mutants that survived an earlier run, with older tests, be tested again."""
    for file in (work / "mutants").rglob("*.meta"):
        known = json.loads(file.read_text(encoding="utf-8"))
        codes = known["exit_code_by_key"]
        known["exit_code_by_key"] = {
            name: code if status_by_exit_code[code] in NOTICED else None for name, code in codes.items()
        }
        file.write_text(json.dumps(known, indent=4), encoding="utf-8")


def survivor(name: str, diff: str) -> Survivor:
    """Return the change of a mutant, in a form that other changes of the file leave alone."""
    module, _, mangled = name.rpartition(".")
    function = re.sub(r"__mutmut_\d+$", "", mangled).removeprefix("x").replace("ǁ", ".").lstrip("._")
    changed = [line for line in diff.splitlines()[2:] if line[:1] in {"+", "-"}]
    before = " ".join(line[1:].strip() for line in changed if line.startswith("-"))
    after = " ".join(line[1:].strip() for line in changed if line.startswith("+"))
    return Survivor(f"{module}.{function}", before, after)


@dataclass(frozen=True, slots=True)
class Explanations:
    """The reasons why known survivors may live: one by one, and by rules about `BEFORE => AFTER`."""

    survivors: dict[Survivor, str]
    rules: dict[str, str]

    def missing(self, living: set[Survivor]) -> list[Survivor]:
        """Return the survivors without an explanation."""
        return sorted(each for each in living - self.survivors.keys() if not any(_covers(r, each) for r in self.rules))

    def idle(self, living: set[Survivor]) -> list[str]:
        """Return the rules that explain no survivor, or one that another rule explains already."""
        twice = [each for each in self.survivors if any(_covers(rule, each) for rule in self.rules)]
        idle = [f"{each.function}: {change(each)}" for each in sorted({*twice, *(self.survivors.keys() - living)})]
        return idle + [f"rule {rule}" for rule in self.rules if not any(_covers(rule, each) for each in living)]


def change(each: Survivor) -> str:
    """Return the text that a rule is matched against, as a whole."""
    return f"{each.before} => {each.after}"


def _covers(rule: str, each: Survivor) -> bool:
    return re.fullmatch(rule, change(each)) is not None


def explained(written: str) -> Explanations:
    """Read a file of tests/mutants; every entry says why."""
    entries = tomllib.loads(written)
    survivors = {
        Survivor(entry["function"], entry["before"], entry["after"]): entry["why"]
        for entry in entries.get("survivor", [])
    }
    return Explanations(survivors, {entry["change"]: entry["why"] for entry in entries.get("rule", [])})


def judge(name: str, work: Path) -> bool:
    """Report on one target; whether it holds."""
    outcome = results(work)
    count = Counter(outcome.values())
    os.chdir(work)  # mutmut finds its own files from there
    alive = (mutant for mutant, result in outcome.items() if result not in NOTICED)
    living = {survivor(mutant, get_diff_for_mutant(mutant)) for mutant in alive}
    file = ROOT / "tests" / "mutants" / f"{name}.toml"
    known = explained(file.read_text(encoding="utf-8") if file.is_file() else "")
    missing, idle = known.missing(living), known.idle(living)
    share = sum(count[result] for result in NOTICED) / max(len(outcome), 1)
    print(f"{name}: {len(outcome)} mutants, {share:.1%} killed ({dict(count.most_common())})")
    for each in missing:
        print(f"  not explained: {each.function}\n    - {each.before}\n    + {each.after}")
    for explanation in idle:
        print(f"  explains nothing (any more): {explanation}")
    return share >= REQUIRED and not missing and not idle


def main() -> int:
    """Mutate, test, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*TARGETS, []], help="default: all")
    parser.add_argument("--judge", action="store_true", help="only report on the last run")
    parser.add_argument("--again", action="store_true", help="test what is new, changed or living since the last run")
    parser.add_argument("--children", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    held = True
    for name in arguments.names or TARGETS:
        work = WORK / name
        if not arguments.judge:
            lay_out(TARGETS[name], work, keep=arguments.again)
            forget_living(work)
            mutmut(work, "run", "--max-children", str(arguments.children))
        held &= judge(name, work)
    return not held


if __name__ == "__main__":
    sys.exit(main())
