"""The choice of an engine for a workflow: by the capabilities that it needs. The only module that imports engines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.suggest import did_you_mean
from smart_model_router_research.engine.kahn import KahnDAGEngine, KahnEngine
from smart_model_router_research.engine.protocol import (
    Capability,
    ExecutionEngine,
    check_engine,
    required_capabilities,
)
from smart_model_router_research.engine.store_port import RunStore
from smart_model_router_research.workflow.definition import WorkflowDefinition

__all__ = ["ENGINES", "EngineMaker", "KahnDAGEngine", "KahnEngine", "Selection", "select_engine"]

EngineMaker = Callable[[RunStore | None], ExecutionEngine]
"""Makes an engine with this store, or with one of its own."""

ENGINES: Mapping[str, EngineMaker] = {"kahn": KahnEngine}
"""The engines that are installed, by name. What is heavy is imported when its engine is made."""

_DECISIVE: Mapping[Capability, str] = {
    Capability.CYCLES: "has a loop",
    Capability.HITL: "waits for decisions",
    Capability.CHECKPOINT: "requires checkpoints",
    Capability.STREAM: "requires a stream",
}
"""The capabilities that decide, the first that is needed, and what a workflow does that needs them."""
_PREFERRED = {True: ("langgraph", "kahn"), False: ("kahn", "langgraph")}
"""The engines in the order in which they are asked, by whether a workflow needs something decisive."""
_EXTRAS: Mapping[Capability, str] = {Capability.CYCLES: "langgraph"}
"""The extra of this package that brings an engine with the capability."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The engine that was chosen, and in one sentence why: `reason` names the requirement that decided."""

    engine: ExecutionEngine
    reason: str


def select_engine(
    workflow: WorkflowDefinition,
    asked: str = "auto",
    available: Mapping[str, EngineMaker] = ENGINES,
    *,
    store: RunStore | None = None,
) -> Selection:
    """Return the engine for a workflow, with its runs in `store`.

    It has all capabilities that the workflow needs. `asked` is `auto` or the name of one of those `available`. Raises
    ConfigurationError for an unknown name, when no engine will do, and for one without the methods that it declares.
    """
    needed = required_capabilities(workflow)
    decisive = next((each for each in _DECISIVE if each in needed), None)
    why = "is acyclic and requires nothing more" if decisive is None else _DECISIVE[decisive]
    if asked != "auto":
        if asked not in available:
            expected = f"`auto` or the name of an engine is needed; {did_you_mean(asked, ['auto', *available])}"
            raise ConfigurationError("engine", asked, expected)
        engine = check_engine(available[asked](store))
        if lacking := needed - engine.capabilities:
            raise ConfigurationError(
                "engine", asked, f"one with {', '.join(sorted(lacking))} is needed{_hint(lacking)}"
            )
        return Selection(engine, f"{asked} was asked for, and the workflow {why}")
    lacking = needed
    preferred = [name for name in _PREFERRED[decisive is not None] if name in available]
    for name in dict.fromkeys([*preferred, *available]):
        engine = check_engine(available[name](store))
        lacking = needed - engine.capabilities
        if not lacking:
            return Selection(engine, f"the workflow {why}, and {name} is the first engine that can run it")
    expected = f"an engine with {', '.join(sorted(lacking))} is needed: the workflow {why}{_hint(lacking)}"
    raise ConfigurationError("engine", asked, expected)


def _hint(lacking: frozenset[Capability]) -> str:
    """Return which extra brings an engine with these capabilities, as the end of a sentence."""
    extras = sorted({_EXTRAS[each] for each in lacking if each in _EXTRAS})
    return "".join(f"; the extra `{extra}` brings one" for extra in extras)
