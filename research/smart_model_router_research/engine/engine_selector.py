"""The choice of an engine for a workflow: by the capabilities that it needs. The only module that imports engines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.suggest import did_you_mean
from smart_model_router_research.engine.dbos_engine import DbosEngine
from smart_model_router_research.engine.dbos_runtime import dbos_fault
from smart_model_router_research.engine.kahn import KahnDAGEngine, KahnEngine
from smart_model_router_research.engine.langgraph import LangGraphEngine, version_fault
from smart_model_router_research.engine.postgres_store import PostgresRunStore
from smart_model_router_research.engine.protocol import (
    Capability,
    ExecutionEngine,
    check_engine,
    required_capabilities,
)
from smart_model_router_research.engine.shadow import ShadowEngine
from smart_model_router_research.engine.store_port import RunStore
from smart_model_router_research.engine.stored_engine import StoredEngine
from smart_model_router_research.workflow.definition import WorkflowDefinition

__all__ = [
    "ASKED",
    "ENGINES",
    "DbosEngine",
    "EngineMaker",
    "KahnDAGEngine",
    "KahnEngine",
    "LangGraphEngine",
    "Selection",
    "ShadowEngine",
    "dbos_fault",
    "installed",
    "select_engine",
    "version_fault",
]

EngineMaker = Callable[[RunStore | None], ExecutionEngine]
"""Makes an engine with this store, or with one of its own."""

ENGINES: Mapping[str, EngineMaker] = {"kahn": KahnEngine, "langgraph": LangGraphEngine, "dbos": DbosEngine}
"""The engines of ours, by name. LangGraph and DBOS themselves are imported with the first run on them."""
SHADOW = "shadow"
ASKED = ("auto", *ENGINES, SHADOW)
"""The words by which an engine can be asked for."""

_DECISIVE: Mapping[Capability, str] = {
    Capability.CYCLES: "has a loop",
    Capability.HITL: "waits for decisions",
    Capability.CHECKPOINT: "requires checkpoints",
    Capability.STREAM: "requires a stream",
}
"""The capabilities that decide, the first that is needed, and what a workflow does that needs them."""
_PREFERRED = {True: ("dbos", "langgraph", "kahn"), False: ("dbos", "kahn", "langgraph")}
"""The engines in the order in which they are asked, by whether a workflow needs something decisive.

DBOS is there where the runs are in a database that machines share.
"""


@dataclass(frozen=True, slots=True)
class Selection:
    """The engine that was chosen, and in one sentence why: `reason` names the requirement that decided."""

    engine: ExecutionEngine
    reason: str


def installed(store: RunStore | None = None) -> Mapping[str, EngineMaker]:
    """Return the engines of ours that can be made here with runs in `store`. Nothing of theirs is imported."""
    lacking = set() if version_fault() is None else {"langgraph"}
    lacking |= set() if isinstance(store, PostgresRunStore) and dbos_fault() is None else {"dbos"}
    return {name: maker for name, maker in ENGINES.items() if name not in lacking}


def select_engine(
    workflow: WorkflowDefinition,
    asked: str = "auto",
    available: Mapping[str, EngineMaker] | None = None,
    *,
    store: RunStore | None = None,
) -> Selection:
    """Return the engine for a workflow, with its runs in `store`.

    It has all capabilities that the workflow needs. `asked` is `auto`, the name of one of those `available` (without:
    those installed), or `shadow`: the one that `auto` gives, whose runs the next one that can repeats. Raises
    ConfigurationError for an unknown name, when no engine will do, and for one without the methods that it declares.
    """
    makers = installed(store) if available is None else available
    needed = required_capabilities(workflow)
    decisive = next((each for each in _DECISIVE if each in needed), None)
    why = "is acyclic and requires nothing more" if decisive is None else _DECISIVE[decisive]
    if asked not in ("auto", SHADOW):
        engine = check_engine(_maker(asked, makers)(store))
        if lacking := needed - engine.capabilities:
            raise ConfigurationError(
                "engine", asked, f"one with {', '.join(sorted(lacking))} is needed{_hint(lacking, makers)}"
            )
        return Selection(engine, f"{asked} was asked for, and the workflow {why}")
    lacking = needed
    preferred = [name for name in _PREFERRED[decisive is not None] if name in makers]
    able: list[ExecutionEngine] = []
    for name in dict.fromkeys([*preferred, *makers]):
        engine = check_engine(makers[name](store))
        lacking = needed - engine.capabilities
        able += [] if lacking else [engine]
        if able and asked == "auto":
            shared = ", its runs are in a database of many machines" if name == "dbos" else ""
            reason = f"the workflow {why}{shared}, and {name} comes first of the engines that can run it"
            return Selection(engine, reason)
    if able:
        return _shadowed(able, makers, store, why)
    expected = f"an engine with {', '.join(sorted(lacking))} is needed: the workflow {why}{_hint(lacking, makers)}"
    raise ConfigurationError("engine", asked, expected)


def _maker(asked: str, makers: Mapping[str, EngineMaker]) -> EngineMaker:
    if asked in makers:
        return makers[asked]
    if asked in ENGINES:
        return ENGINES[asked]  # it says what is wrong with what is installed
    hint = did_you_mean(asked, ["auto", SHADOW, *makers])
    raise ConfigurationError("engine", asked, f"`auto`, `shadow` or the name of an engine is needed; {hint}")


def _shadowed(
    able: Sequence[ExecutionEngine], makers: Mapping[str, EngineMaker], store: RunStore | None, why: str
) -> Selection:
    """Return the first engine, with the second one as its shadow, where there is one."""
    primary, *others = able
    first = f"shadow was asked for: the workflow {why}, {primary.name} runs it"
    if not others or not isinstance(primary, StoredEngine):
        if len(makers) < 2:
            raise ConfigurationError("engine", SHADOW, f"two engines are needed; {version_fault()}")
        return Selection(primary, f"{first}, and no other engine can repeat it")
    second = others[0].name
    return Selection(ShadowEngine(primary, makers[second], store), f"{first}, and {second} repeats it")


def _hint(lacking: frozenset[Capability], makers: Mapping[str, EngineMaker]) -> str:
    """Return which extra brings an engine with these capabilities, as the end of a sentence."""
    if Capability.CYCLES not in lacking:
        return ""
    return "; langgraph has them" if "langgraph" in makers else f"; {version_fault() or 'langgraph has them'}"
