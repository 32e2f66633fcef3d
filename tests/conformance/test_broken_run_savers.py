"""The promises of RunSaver see what they are there for: each is shown a saver that breaks it, and fails."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from smart_model_router.domain.errors import SmartRouterError
from smart_model_router_research.engine import MemoryRunStore, RunSaver, SupportsGraphs, graph_codec, graph_tables
from smart_model_router_research.engine.graph_codec import GraphCodec
from smart_model_router_research.engine.graph_tables import GraphTables
from tests.conformance.run_savers import RunSaverContract

Break = Callable[[pytest.MonkeyPatch], None]


def in_sql(patch: pytest.MonkeyPatch, name: str, old: str, new: str) -> None:
    """Change a statement."""
    statement = vars(graph_tables)[name]
    assert old in statement
    patch.setattr(graph_tables, name, statement.replace(old, new))


def around(patch: pytest.MonkeyPatch, owner: type, name: str, change: Callable[..., Any]) -> None:
    """Call `change` with a method in the place of the method."""
    real = getattr(owner, name)
    patch.setattr(owner, name, lambda *args, **options: change(real, *args, **options))


def lost_write(patch: pytest.MonkeyPatch) -> None:
    """The last write of a task is not kept."""
    around(patch, GraphTables, "put_writes", lambda real, *args: real(*args[:-1], args[-1][:-1]))


def later_write_wins(patch: pytest.MonkeyPatch) -> None:
    """A write that is there is replaced."""
    patch.setattr(graph_tables, "_PUT_WRITE", graph_tables._PUT_WRITE.replace("OR {}", "OR REPLACE"))


def writes_by_task(patch: pytest.MonkeyPatch) -> None:
    """The path of a task does not order its writes."""
    in_sql(patch, "_WRITES", "ORDER BY w.path, w.task", "ORDER BY w.task")


def oldest_first(patch: pytest.MonkeyPatch) -> None:
    """A list begins with the smallest id."""
    around(patch, GraphTables, "page", lambda real, *args: real(*args)[::-1])


def pages_overlap(patch: pytest.MonkeyPatch) -> None:
    """A page ends as if it had one row less."""

    def page(real: Any, self: GraphTables, *args: Any) -> Any:
        *where, after, limit = args
        return real(self, *where, after and replace(after, id=after.id + "~"), limit)

    around(patch, GraphTables, "page", page)


def parent_lost(patch: pytest.MonkeyPatch) -> None:
    """A checkpoint does not say which one it follows."""
    around(patch, GraphCodec, "new", lambda real, *args: replace(real(*args), parent=None))


def parent_assumed(patch: pytest.MonkeyPatch) -> None:
    """A checkpoint may follow one that is not there."""

    def parent(real: Any, self: GraphTables, thread: Any, new: Any) -> Any:
        return {} if thread is None else real(self, thread, new)

    around(patch, GraphTables, "_parent", parent)


def value_of_the_parent(patch: pytest.MonkeyPatch) -> None:
    """An unchanged channel has the value of the parent, whatever its version."""

    def parent(real: Any, self: GraphTables, thread: Any, new: Any) -> Any:
        return {name: (new.versions.get(name), number) for name, (_, number) in real(self, thread, new).items()}

    around(patch, GraphTables, "_parent", parent)


def value_by_version(patch: pytest.MonkeyPatch) -> None:
    """A value is that of the first one with its length in the thread, as if a version were its name."""
    patch.setattr(graph_tables, "_digest", lambda type_, content: f"{type_}{len(content)}".encode())


def prune_takes_ancestors(patch: pytest.MonkeyPatch) -> None:
    """Pruning takes what a channel begins with."""
    patch.setattr(GraphTables, "_ancestors", lambda *_: [])


def prune_takes_writes(patch: pytest.MonkeyPatch) -> None:
    """Pruning takes all writes."""
    in_sql(patch, "_PRUNE_WRITES", "checkpoint < ?", "checkpoint <= ? || '~'")


def prune_takes_all_spaces(patch: pytest.MonkeyPatch) -> None:
    """Pruning keeps the latest checkpoint of a thread only."""
    in_sql(patch, "_PRUNE_CHECKPOINTS", "space = ?", "space >= '' AND ? IS NOT NULL")


def prune_leaves_writes(patch: pytest.MonkeyPatch) -> None:
    """Pruning leaves the writes of what it deletes."""
    in_sql(patch, "_PRUNE_WRITES", "checkpoint < ?", "checkpoint < ? AND 0")


def unused_are_those_of_writes(patch: pytest.MonkeyPatch) -> None:
    """Deleting takes the values of writes."""
    in_sql(patch, "_DELETE_UNUSED", "SELECT value FROM graph_writes", "SELECT 0 FROM graph_writes")


def copy_shares_values(patch: pytest.MonkeyPatch) -> None:
    """A copy has the values of its source, and loses them with it."""
    in_sql(patch, "_COPIED", "SELECT old.number, new.number", "SELECT old.number, old.number")


def first_run_stays(patch: pytest.MonkeyPatch) -> None:
    """The first of several runs is not deleted."""
    around(patch, GraphTables, "delete_runs", lambda real, self, runs: real(self, runs[1:]))


def waiting_is_idle(patch: pytest.MonkeyPatch) -> None:
    """A thread that waits for a decision is deleted with the others."""
    in_sql(patch, "_PRUNE_IDLE", "__interrupt__", "__none__")


def any_format(patch: pytest.MonkeyPatch) -> None:
    """Every format is taken for one that is known."""
    patch.setattr(graph_codec, "NEWEST_FORMAT", 99)


def silent_types(patch: pytest.MonkeyPatch) -> None:
    """An object of an unknown type comes back as its data."""
    patch.setattr(graph_codec, "register_serde_event_listener", lambda _: lambda: None)


def empty_names(patch: pytest.MonkeyPatch) -> None:
    """A thread may be called by nothing."""
    patch.setattr(graph_codec, "thread_of", lambda thread_id: str(thread_id or ""))


def silent_past(patch: pytest.MonkeyPatch) -> None:
    """A channel whose past was deleted begins with what is left."""

    def history(real: Any, self: GraphTables, *args: Any) -> Any:
        try:
            return real(self, *args)
        except SmartRouterError:
            return {}

    around(patch, GraphTables, "history", history)


C = RunSaverContract
BROKEN: list[tuple[Break, Callable[..., Any], dict[str, Any]]] = [
    (lost_write, C.test_writes_of_tasks_are_in_langgraphs_order, {}),
    (later_write_wins, C.test_writes_of_tasks_are_in_langgraphs_order, {}),
    (writes_by_task, C.test_writes_of_tasks_are_in_langgraphs_order, {}),
    (oldest_first, C.test_checkpoints_are_in_the_order_of_their_ids, {}),
    (pages_overlap, C.test_a_long_list_is_read_in_pages_without_gaps, {}),
    (parent_lost, C.test_two_processes_that_follow_one_checkpoint_both_keep_theirs, {}),
    (parent_lost, C.test_the_history_of_a_delta_channel_is_the_one_of_the_definition, {"durability": "sync"}),
    (parent_assumed, C.test_a_checkpoint_whose_parent_is_gone_is_refused, {}),
    (value_of_the_parent, C.test_an_unchanged_channel_has_the_value_that_its_parent_has, {}),
    (value_by_version, C.test_two_processes_that_follow_one_checkpoint_both_keep_theirs, {}),
    (prune_takes_ancestors, C.test_pruning_keeps_what_a_delta_channel_begins_with, {"rounds": 6}),
    (prune_takes_writes, C.test_pruning_keeps_the_latest_of_each_namespace, {}),
    (prune_takes_all_spaces, C.test_pruning_keeps_the_latest_of_each_namespace, {}),
    (prune_leaves_writes, C.test_pruning_keeps_the_latest_of_each_namespace, {}),
    (unused_are_those_of_writes, C.test_pruning_keeps_the_latest_of_each_namespace, {}),
    (copy_shares_values, C.test_a_copy_stands_alone, {}),
    (first_run_stays, C.test_a_run_that_is_deleted_takes_its_checkpoints_only, {}),
    (waiting_is_idle, C.test_threads_that_did_not_change_for_long_are_deleted_when_it_is_asked, {}),
    (any_format, C.test_a_checkpoint_of_a_newer_langgraph_is_refused, {}),
    (silent_types, C.test_an_object_of_an_unknown_type_is_not_loaded_unless_it_is_allowed, {}),
    (empty_names, C.test_an_unfit_name_of_a_thread_is_refused, {"wrong": ""}),
    (silent_past, C.test_a_delta_channel_whose_past_was_deleted_is_an_error, {}),
]


class JudgedSaver(RunSaverContract):
    """The promises on a store in memory."""

    def __init__(self) -> None:
        self.time = 1_700_000_000.0
        self.memory = self.fresh()

    def process(self) -> SupportsGraphs:
        """Return the same store."""
        return self.memory

    def fresh(self) -> SupportsGraphs:
        """Return another one."""
        return MemoryRunStore(now=self.now, wall=self.now)


async def judge(promise: Callable[..., Any], options: dict[str, Any], patch: pytest.MonkeyPatch) -> None:
    """Test a promise."""
    if "monkeypatch" in inspect.signature(promise).parameters:
        options = options | {"monkeypatch": patch}
    found = promise(JudgedSaver(), **options)
    if inspect.isawaitable(found):
        await found


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("spoil", "promise", "options"), BROKEN, ids=[f"{each[0].__name__}-{n}" for n, each in enumerate(BROKEN)]
)
async def test_a_broken_saver_is_caught(
    spoil: Break, promise: Callable[..., Any], options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the break the promise holds."""
    await judge(promise, options, monkeypatch)
    spoil(monkeypatch)
    with pytest.raises((AssertionError, pytest.fail.Exception, SmartRouterError, LookupError, ValueError)):
        await judge(promise, options, monkeypatch)


@pytest.mark.asyncio
async def test_a_saver_without_an_extended_capability_does_not_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """LangGraph's own report says of it that it passed all."""
    base = RunSaver.__mro__[1]
    monkeypatch.setattr(RunSaver, "aprune", base.aprune)  # type: ignore[attr-defined]
    with pytest.raises(AssertionError):
        await judge(C.test_all_eight_capabilities_are_there_and_pass_langgraphs_own_suite, {}, monkeypatch)
