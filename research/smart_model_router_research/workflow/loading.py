"""Workflows from YAML: read, expanded into rounds, and checked; every fault at once, with file, line and column."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path as FilePath
from typing import Any

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.import_path import imported, reference_of
from smart_model_router.domain.suggest import did_you_mean
from smart_model_router.domain.tree_path import Path
from smart_model_router.domain.yaml_document import Document, DocumentLimits, parse
from smart_model_router_research.workflow.checks import MAX_STEPS
from smart_model_router_research.workflow.definition import WorkflowDefinition
from smart_model_router_research.workflow.expressions import ExpressionError, Reference, Template, parse_template
from smart_model_router_research.workflow.faults import WorkflowError, WorkflowFault
from smart_model_router_research.workflow.kinds import STEP_KINDS, StepKind
from smart_model_router_research.workflow.step import RoundScope, Run, Step, StepInput, StepLoop, WorkflowInput

LIMITS = DocumentLimits(size=1_048_576, nodes=500_000, repeated=10_000, depth=64)
ENTRY_POINTS = "smart_model_router.steps"
MAX_ROUNDS = 100
TOP_KEYS = ("name", "version", "checkpoint", "stream", "inputs", "steps", "templates", "rounds", "outputs")
INPUT_KEYS = ("type", "default", "required", "enum", "min", "max")
LOOP_KEYS = ("to", "while", "max")
ROUND_KEYS = ("template", "max")
RETRY_KEYS = ("attempts",)
_ELSEWHERE = {"budget": "a budget is given to a run: `--budget`, or ExecutionContext(budget=...)"}
_NO_FUNCTIONS = "none is registered: `--functions FILE.py`, or load_workflow(file, functions={...})"


def load_workflow(
    file: str | FilePath,
    functions: Mapping[str, Run] | None = None,
    workflows: Mapping[str, WorkflowDefinition] | None = None,
    kinds: Mapping[str, StepKind] = STEP_KINDS,
) -> WorkflowDefinition:
    """Read a workflow from a YAML file.

    `functions` are those that steps of kind `call` name; others are looked up among the entry points of the group
    `smart_model_router.steps`. `workflows` are those that steps of kind `workflow` name. Raises WorkflowError.
    """
    path = FilePath(file)
    try:
        if not path.is_file():
            raise WorkflowError([WorkflowFault((), str(file), "the path of an existing file is needed")])
        with path.open("rb") as stream:
            content = stream.read(LIMITS.size + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "not a path"
        raise WorkflowError([WorkflowFault((), str(file), f"a readable file is needed ({reason})")]) from None
    return parse_workflow(content, str(file), functions, workflows, kinds)


def parse_workflow(
    content: str | bytes,
    name: str = "workflow",
    functions: Mapping[str, Run] | None = None,
    workflows: Mapping[str, WorkflowDefinition] | None = None,
    kinds: Mapping[str, StepKind] = STEP_KINDS,
) -> WorkflowDefinition:
    """Read a workflow from YAML text. `name` is that of its file, for errors; the others are as in `load_workflow`."""
    try:
        encoded = content.encode() if isinstance(content, str) else content
        document = parse(encoded, name, LIMITS, typed=True)
    except UnicodeEncodeError:
        raise WorkflowError([WorkflowFault((), "a text", "text without lone surrogates is needed", name)]) from None
    except ConfigurationError as error:
        faults = (WorkflowFault((), each.value, each.expected, each.key) for each in (error, *error.others))
        raise WorkflowError(faults) from None
    return _Reader(document, name, functions or {}, workflows or {}, kinds).workflow(document.data, ())


@dataclass(frozen=True, slots=True)
class _Origin:
    """The place of a step in the file; `keys` leads from a field of Step to the key that gave it."""

    path: Path
    keys: Mapping[str, Path] = field(default_factory=dict)

    def of(self, rest: Path) -> Path:
        """Return where a part of the step stands."""
        for length in (2, 1):
            found = self.keys.get(".".join(map(str, rest[:length])))
            if found is not None:
                return (*self.path, *found, *rest[length:])
        return (*self.path, *rest)


_Placed = tuple[Any, _Origin]
"""A step, whose values may be of any type until the definition is checked, and its place."""


async def _nothing(_: StepInput) -> Mapping[str, Any]:  # pragma: no cover - the workflow is refused
    return {}


_NOT_THERE: Run = _nothing
"""The work of a step that is refused: everything else about it is checked."""


class _Reader:
    """One reading of a document."""

    def __init__(
        self,
        document: Document,
        file: str,
        functions: Mapping[str, Run],
        workflows: Mapping[str, WorkflowDefinition],
        kinds: Mapping[str, StepKind],
    ) -> None:
        self._document = document
        self._file = file
        self._functions = functions
        self._workflows = workflows
        self._kinds = kinds
        self._faults: list[WorkflowFault] = []
        self._known: set[tuple[str, object]] = set()

    def workflow(self, data: object, path: Path) -> WorkflowDefinition:
        """Return the workflow that stands at a path. Raises WorkflowError."""
        faults, self._faults = self._faults, []
        try:
            return self._workflow(data, path)
        finally:
            self._faults = faults

    def _workflow(self, data: object, path: Path) -> WorkflowDefinition:
        given = self._mapping(data, path, TOP_KEYS)
        if given is None:
            raise WorkflowError(self._faults)
        inputs = self._inputs(given.get("inputs"), (*path, "inputs"))
        steps = self._list(given.get("steps"), (*path, "steps"))
        rounds = self._rounds(given, path)
        if rounds is None:  # other steps may need those that are not there
            raise WorkflowError(self._in_order())
        placed = [*steps, *rounds]
        outputs = given.get("outputs")
        try:
            found = WorkflowDefinition(
                given.get("name"),  # type: ignore[arg-type]  # checked there, as all others
                [step for step, _ in placed],
                inputs,
                {} if outputs is None else outputs,
                given.get("checkpoint", "optional"),
                given.get("stream", "optional"),
            )
        except WorkflowError as error:
            for fault in error.faults:
                self._refuse(self._path_of(fault.path, path, placed), fault.value, fault.expected)
        if self._faults:
            raise WorkflowError(self._in_order())
        return found  # type: ignore[possibly-undefined]  # without a fault it is there

    def _in_order(self) -> list[WorkflowFault]:
        """Return the faults as they stand in the file."""
        return sorted(self._faults, key=lambda fault: tuple(map(int, fault.place.rsplit(":", 2)[1:])))

    @staticmethod
    def _path_of(path: Path, above: Path, placed: list[_Placed]) -> Path:
        """Return where a part of the definition stands in the file."""
        if path[0] == "steps" and len(path) > 1 and isinstance(path[1], int):
            return placed[path[1]][1].of(path[2:])
        return (*above, *path)

    def _refuse(self, path: Path, value: object, expected: str) -> None:
        line, column = self._document.place_of(path)
        place, shown = f"{self._file}:{line}:{column}", _shown(value)
        if (place, shown) not in self._known:  # the steps of each round have the faults of their template
            self._known.add((place, shown))
            self._faults.append(WorkflowFault(path, shown, expected, place))

    def _mapping(self, data: object, path: Path, keys: Collection[str] | None) -> dict[str, Any] | None:
        """Return a mapping, its unknown keys refused; None for anything else, which is refused."""
        if not isinstance(data, dict):
            self._refuse(path, data, "a mapping is needed")
            return None
        for key in data.keys() - keys if keys is not None else ():
            hint = _ELSEWHERE.get(key) if keys is TOP_KEYS else None
            self._refuse((*path, key), key, f"the key is unknown; {hint or did_you_mean(key, keys or ())}")
        return data

    # -------------------------------------------------------------------------------------------- inputs

    def _inputs(self, data: object, path: Path) -> dict[str, WorkflowInput]:
        inputs: dict[str, WorkflowInput] = {}
        for name, written in (self._mapping({} if data is None else data, path, None) or {}).items():
            given = self._mapping({} if written is None else written, (*path, name), INPUT_KEYS) or {}
            others = {"min": "minimum", "max": "maximum"}
            inputs[name] = WorkflowInput(**{others.get(key, key): given[key] for key in INPUT_KEYS if key in given})
        return inputs

    # -------------------------------------------------------------------------------------------- steps and rounds

    def _list(self, data: object, path: Path) -> list[_Placed]:
        """Return the steps of a list, as far as they can be read."""
        if data is not None and not isinstance(data, list):
            self._refuse(path, data, "a list of steps is needed")
            return []
        return [step for number, one in enumerate(data or ()) for step in self._step(one, (*path, number))]

    def _rounds(self, given: Mapping[str, Any], path: Path) -> list[_Placed] | None:
        """Return the steps of all rounds; None when the rounds are refused."""
        templates = self._mapping(given.get("templates") or {}, (*path, "templates"), None) or {}
        rounds = self._mapping(given.get("rounds") or {}, (*path, "rounds"), ROUND_KEYS) or {}
        most: Any = rounds.get("max")
        name: Any = rounds.get("template")
        known = isinstance(name, str) and name in templates
        for other in templates if known or given.get("rounds") is None else ():
            if other != name:
                self._refuse((*path, "templates", other), other, "`rounds` with this template is needed")
        if given.get("rounds") is None:
            return []
        if not isinstance(most, int) or isinstance(most, bool) or not 1 <= most <= MAX_ROUNDS:
            self._refuse((*path, "rounds", "max"), most, f"a whole number from 1 to {MAX_ROUNDS} is needed")
            most = None
        if not known:
            hint = did_you_mean(str(name), templates) or "templates are needed"
            self._refuse((*path, "rounds", "template"), name, f"the name of a template is needed; {hint}")
            return None
        here: Path = (*path, "templates", name)
        template = self._mapping(templates[name], here, ("steps",)) or {}
        members = self._list(template.get("steps"), (*here, "steps"))
        if most is not None and len(members) * most > MAX_STEPS:
            self._refuse((*path, "rounds", "max"), most, f"at most {MAX_STEPS} steps in all rounds are allowed")
            most = None
        return None if most is None else list(self._expanded(members, most))

    def _expanded(self, members: list[_Placed], rounds: int) -> Iterator[_Placed]:
        """Yield the steps of each round."""
        named = [step for step, _ in members if isinstance(step.name, str)]
        outputs: dict[str, list[str]] = {step.name: sorted(step.declared_outputs or ()) for step in named}
        declared = [(output, name) for name, each in outputs.items() for output in each]
        names, makers = list(outputs), dict(declared)
        twice = {output for output, maker in declared if makers[output] != maker}
        short = {output: maker for output, maker in makers.items() if output not in twice}
        before = {id(step): self._earlier(step, origin, names, short, twice) for step, origin in members}
        for number in range(1, rounds + 1):
            same = {name: f"{name}_r{number}" for name in names}
            scope = RoundScope(number, same)
            if number > 1:
                last = {name: [f"{name}_r{n}" for n in range(number - 1, 0, -1)] for name in names}
                prev = {name: earlier[0] for name, earlier in last.items()}
                scope = RoundScope(number, same, prev, last, short)
            for step, origin in members:
                needs = [_renamed(need, same) for need in (step.needs if isinstance(step.needs, tuple) else ())]
                for root, name in before[id(step)] if number > 1 else ():
                    needs += scope.last[name][: 1 if root == "prev" else None]
                loop = step.loop and replace(step.loop, to=_renamed(step.loop.to, same))
                own = _renamed(step.name, same)
                kept = tuple(needs) if isinstance(step.needs, tuple) else step.needs
                yield replace(step, name=own, needs=kept, loop=loop, round=scope), origin

    def _earlier(
        self, step: Step, origin: _Origin, names: list[str], short: Mapping[str, str], twice: set[str]
    ) -> list[tuple[str, str]]:
        """Return the steps of earlier rounds that a step reads: by `prev` or by `last`, and which."""
        found: dict[tuple[str, str], None] = {}
        for path, reference in _references(step):
            root, name = reference[0], reference[1] if len(reference) > 1 else ""
            if root not in ("prev", "last"):
                continue
            if name in names or name in short:
                found[root, name if name in names else short[name]] = None
            elif name in twice:
                expected = f"two steps of the template declare {name!r}; {root}.STEP.{name} is needed"
                self._refuse(origin.of(path), ".".join(reference), expected)
            else:
                expected = f"the template has no such step or output; {did_you_mean(name, [*names, *short])}"
                self._refuse(origin.of(path), ".".join(reference), expected)
        return list(found)

    # -------------------------------------------------------------------------------------------- one step

    def _step(self, data: object, path: Path) -> Iterator[_Placed]:
        """Yield the step that stands at a path as far as it can be read, and where its parts stand."""
        if (given := self._mapping(data, path, None)) is None:
            return
        kind_key = self._one_of(given, path, "kind", "agent")
        needs_key = self._one_of(given, path, "needs", "depends_on")
        kind_name = given.get(kind_key, "call")
        kind = self._kind(given, kind_name, (*path, kind_key), path)
        retry = self._mapping(given.get("retry", {}), (*path, "retry"), RETRY_KEYS) or {}
        if given.get("run", "always") != "always":
            self._refuse((*path, "run"), given["run"], "`always` is needed, or no `run`")
        self._condition(given.get("when"), (*path, "when"))
        subgraph = self._subgraph(given["workflow"], (*path, "workflow")) if "workflow" in given else None
        run: Run | None = _NOT_THERE
        if kind is None or (kind_name == "workflow" and subgraph is None):  # refused: the rest of it is still checked
            kind_name = "call"
        else:
            run = self._run(given, kind, path)
        options = {key: given[key] for key in (kind.options if kind else ()) if key in given}
        step = Step(
            given.get("name"),  # type: ignore[arg-type]  # checked in the definition, as all others
            run,
            given.get(needs_key, ()),
            given.get("when"),
            "run" in given,
            given.get("on_error", "fail"),
            given.get("timeout"),
            retry.get("attempts", 1),
            kind=kind_name,
            inputs=given.get("inputs", {}),
            outputs=given.get("outputs", kind.outputs if kind else None),
            estimate=given.get("estimate", {}),
            workflow=subgraph if kind_name == "workflow" else None,
            message=given.get("message") if kind_name == "approval" else None,
            loop=self._loop(given["loop"], (*path, "loop")) if "loop" in given else None,
            options=options,
        )
        keys = {"needs": (needs_key,), "kind": (kind_key,), "attempts": ("retry", "attempts")}
        keys |= {f"options.{key}": (key,) for key in options} | {"run": ("function",)}
        yield step, _Origin(path, keys)

    def _one_of(self, given: Mapping[str, Any], path: Path, key: str, other: str) -> str:
        """Return the key of two that is there; both are a fault."""
        if other not in given:
            return key
        if key in given:
            self._refuse((*path, other), given[other], f"`{key}` or `{other}` is needed, not both")
        return other

    def _kind(self, given: Mapping[str, Any], name: object, path: Path, step: Path) -> StepKind | None:
        kind = self._kinds.get(name) if isinstance(name, str) else None
        if kind is None:
            self._refuse(path, name, f"the kind is unknown; {did_you_mean(str(name), self._kinds)}")
            return None
        every = {key for each in self._kinds.values() for key in each.taken}
        for key in given:
            if key not in kind.taken:
                owners = sorted(other for other, each in self._kinds.items() if key in each.taken)
                near = did_you_mean(key, every)  # also a key of another kind, which is told in the next round
                hint = near if near.startswith("did") else did_you_mean(key, kind.taken)
                hint = f"it is for kind {', '.join(owners)}" if owners else hint
                self._refuse((*step, key), key, f"a step of kind {name} has no such key; {hint}")
        for key in sorted(kind.required - given.keys()):
            self._refuse(step, given.get("name"), f"a step of kind {name} needs `{key}`")
        return kind

    def _run(self, given: Mapping[str, Any], kind: StepKind, path: Path) -> Run | None:
        """Return the work of a step: that of its kind, or the function that it names."""
        if "function" not in kind.keys:
            return kind.run
        if "function" not in given:
            return _NOT_THERE
        function = given["function"]
        if not isinstance(function, str):
            self._refuse((*path, "function"), function, "the name of a function is needed")
            return _NOT_THERE
        if function in self._functions:
            return self._functions[function]
        reference = None if ":" in function else reference_of(function, ENTRY_POINTS)
        if reference is None:
            hint = did_you_mean(function, self._functions)
            expected = f"no async function is registered under this name; {hint or _NO_FUNCTIONS}"
            self._refuse((*path, "function"), function, expected)
            return _NOT_THERE
        try:
            found: Any = imported(reference)
        except Exception as error:  # noqa: BLE001 - whatever the module raises at its import
            self._refuse((*path, "function"), function, f"{reference} cannot be imported: {error!r}")
            return _NOT_THERE
        return found  # type: ignore[no-any-return]  # the definition checks that it can be called

    def _condition(self, value: object, path: Path) -> None:
        """Refuse a text that is no expression: it could never be true."""
        template = _template(value.strip()) if isinstance(value, str) else None
        if template is not None and template.alone is None:
            self._refuse(path, value, "one expression in `${...}` is needed, or true or false")

    def _loop(self, data: object, path: Path) -> Any:
        given = self._mapping(data, path, LOOP_KEYS)
        if given is None:
            return None
        self._condition(given.get("while"), (*path, "while"))
        names = {"to": "to", "while": "condition", "max": "max_passes"}
        empty: dict[str, Any] = {"to": None, "condition": None}
        return StepLoop(**{**empty, **{names[key]: given[key] for key in names if key in given}})

    def _subgraph(self, data: object, path: Path) -> Any:
        """Return the workflow that stands in the step, or that is named; None for one that is refused."""
        if isinstance(data, str):
            if data not in self._workflows:
                hint = did_you_mean(data, self._workflows) or "none is registered"
                self._refuse(path, data, f"no workflow is registered under this name; {hint}")
            return self._workflows.get(data)
        try:
            return self.workflow(data, path)
        except WorkflowError as error:
            self._faults += error.faults
            return None


def _renamed(name: Any, names: Mapping[str, str]) -> Any:
    return names.get(name, name) if isinstance(name, str) else name


def _references(step: Step) -> Iterator[tuple[Path, Reference]]:
    """Yield the references of everything in a step, as far as they can be read."""
    parts: list[tuple[Path, Any]] = [(("when",), step.when), (("message",), step.message)]
    parts += [(("inputs",), step.inputs), (("options",), step.options)]
    parts += [(("loop", "while"), step.loop and step.loop.condition)]
    while parts:
        path, value = parts.pop()
        if isinstance(value, Mapping):
            parts += [((*path, key), member) for key, member in value.items()]
        elif isinstance(value, list | tuple):
            parts += [((*path, number), member) for number, member in enumerate(value)]
        elif isinstance(value, str) and (template := _template(value)) is not None:
            yield from ((path, each) for one in template.expressions for each in one.references)


def _template(text: str) -> Template | None:
    try:
        return parse_template(text)
    except ExpressionError:  # the definition says what is wrong with it
        return None


def _shown(value: object) -> object:
    """Return a value as an error shows it: hashable, and not longer than a line."""
    shown = value if value is None or isinstance(value, str | int | float | bool) else repr(value)
    return f"{shown[:117]}..." if isinstance(shown, str) and len(shown) > 120 else shown
