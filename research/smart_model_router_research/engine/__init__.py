"""Engines for workflows, behind one protocol. Names are imported when asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_model_router.domain.lazy_names import lazy_names

if TYPE_CHECKING:
    from smart_model_router_research.engine.engine_selector import (
        KahnDAGEngine,
        KahnEngine,
        LangGraphEngine,
        Selection,
        ShadowEngine,
        select_engine,
    )
    from smart_model_router_research.engine.graph_threads import (
        CheckpointTooNew,
        SupportsGraphs,
        TypesNotAllowed,
        ValueTooLarge,
    )
    from smart_model_router_research.engine.joining import (
        consider,
        run_state,
    )
    from smart_model_router_research.engine.memory_store import MemoryRunStore
    from smart_model_router_research.engine.orchestrator import execute_as_dag
    from smart_model_router_research.engine.postgres_store import PostgresRunStore
    from smart_model_router_research.engine.protocol import (
        Approval,
        Budget,
        Capability,
        CheckpointRef,
        ExecutionContext,
        ExecutionEngine,
        ExecutionResult,
        ForkChanges,
        RunEvent,
        RunEventKind,
        RunStatus,
        SupportsCancel,
        SupportsResume,
        SupportsStream,
        SupportsTimeTravel,
        check_engine,
        required_capabilities,
    )
    from smart_model_router_research.engine.run_saver import RunSaver
    from smart_model_router_research.engine.sqlite_store import SqliteRunStore
    from smart_model_router_research.engine.states import (
        RunState,
        SkipReason,
        StepResult,
        StepState,
    )
    from smart_model_router_research.engine.store_port import (
        NewRun,
        PendingApproval,
        RunBusy,
        RunInterrupted,
        RunLease,
        RunNotFound,
        RunStore,
        StaleLease,
        StateTooLarge,
        StoredRun,
        StoredStep,
        StoreUnavailable,
        SupportsDocuments,
        TooManyRuns,
        WorkflowChanged,
    )
    from smart_model_router_research.engine.table_store import TableRunStore

__all__ = [
    "Approval",
    "Budget",
    "Capability",
    "CheckpointRef",
    "CheckpointTooNew",
    "ExecutionContext",
    "ExecutionEngine",
    "ExecutionResult",
    "ForkChanges",
    "KahnDAGEngine",
    "KahnEngine",
    "LangGraphEngine",
    "MemoryRunStore",
    "NewRun",
    "PendingApproval",
    "PostgresRunStore",
    "RunBusy",
    "RunEvent",
    "RunEventKind",
    "RunInterrupted",
    "RunLease",
    "RunNotFound",
    "RunSaver",
    "RunState",
    "RunStatus",
    "RunStore",
    "Selection",
    "ShadowEngine",
    "SkipReason",
    "SqliteRunStore",
    "StaleLease",
    "StateTooLarge",
    "StepResult",
    "StepState",
    "StoreUnavailable",
    "StoredRun",
    "StoredStep",
    "SupportsCancel",
    "SupportsDocuments",
    "SupportsGraphs",
    "SupportsResume",
    "SupportsStream",
    "SupportsTimeTravel",
    "TableRunStore",
    "TooManyRuns",
    "TypesNotAllowed",
    "ValueTooLarge",
    "WorkflowChanged",
    "check_engine",
    "consider",
    "execute_as_dag",
    "required_capabilities",
    "run_state",
    "select_engine",
]

_HOMES = {
    "smart_model_router_research.engine.graph_threads": (
        "CheckpointTooNew",
        "SupportsGraphs",
        "TypesNotAllowed",
        "ValueTooLarge",
    ),
    "smart_model_router_research.engine.joining": (
        "consider",
        "run_state",
    ),
    "smart_model_router_research.engine.engine_selector": (
        "KahnDAGEngine",
        "KahnEngine",
        "LangGraphEngine",
        "Selection",
        "ShadowEngine",
        "select_engine",
    ),
    "smart_model_router_research.engine.orchestrator": ("execute_as_dag",),
    "smart_model_router_research.engine.memory_store": ("MemoryRunStore",),
    "smart_model_router_research.engine.protocol": (
        "Approval",
        "Budget",
        "Capability",
        "ForkChanges",
        "CheckpointRef",
        "ExecutionContext",
        "ExecutionEngine",
        "ExecutionResult",
        "RunEvent",
        "RunEventKind",
        "RunStatus",
        "SupportsCancel",
        "SupportsResume",
        "SupportsStream",
        "SupportsTimeTravel",
        "check_engine",
        "required_capabilities",
    ),
    "smart_model_router_research.engine.postgres_store": ("PostgresRunStore",),
    "smart_model_router_research.engine.run_saver": ("RunSaver",),
    "smart_model_router_research.engine.sqlite_store": ("SqliteRunStore",),
    "smart_model_router_research.engine.table_store": ("TableRunStore",),
    "smart_model_router_research.engine.states": (
        "RunState",
        "SkipReason",
        "StepResult",
        "StepState",
    ),
    "smart_model_router_research.engine.store_port": (
        "NewRun",
        "PendingApproval",
        "RunBusy",
        "RunInterrupted",
        "RunLease",
        "RunNotFound",
        "RunStore",
        "StaleLease",
        "StateTooLarge",
        "StoreUnavailable",
        "StoredRun",
        "StoredStep",
        "SupportsDocuments",
        "TooManyRuns",
        "WorkflowChanged",
    ),
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES, globals())
