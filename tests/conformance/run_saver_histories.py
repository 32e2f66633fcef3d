"""The promises of RunSaver on lists, writes, several processes at once, and deletion."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig

from smart_model_router_research.engine import (
    StoreUnavailable,
)
from tests.conformance.run_saver_parts import SaverTests, ids, kept, new, of


class SaverHistories(SaverTests):
    """Lists, writes, several at once, deletion."""

    # -------------------------------------------------------------------------------------------- lists

    @pytest.mark.asyncio
    async def test_a_long_list_is_read_in_pages_without_gaps(self) -> None:
        """As far as it is wanted: by thread, namespace, id, metadata, an end and a limit; on a loop as without."""
        saver = self.saver()
        for number in range(1, 51):
            space, name = "" if number % 2 else "sub", f"{number:03}"
            kept(saver, name, {"n": number}, space=space, odd=number % 2, run_id=f"r{number % 3}")
            kept(saver, name, {"n": -number}, thread_id="u")
        queries: list[tuple[RunnableConfig | None, dict[str, Any], list[int]]] = [
            (of("t", None, ""), {}, [*range(49, 0, -2)]),
            ({"configurable": {"thread_id": "t"}}, {}, [*range(50, 0, -1)]),
            ({"configurable": {"thread_id": "t"}}, {"limit": 45}, [*range(50, 5, -1)]),
            ({"configurable": {"thread_id": "t"}}, {"limit": 0}, []),
            ({"configurable": {"thread_id": "t"}}, {"before": of("t", "031")}, [*range(30, 0, -1)]),
            ({"configurable": {"thread_id": "t"}}, {"filter": {"odd": 0, "run_id": "r0"}}, [*range(48, 0, -6)]),
            (of("t", "007"), {}, [7]),
            (None, {"limit": 3}, [-50, 50, -49]),
            (None, {}, [sign * n for n in range(50, 0, -1) for sign in (-1, 1)]),
        ]
        for config, options, expected in queries:
            found = list(saver.list(config, **options))
            assert [each.checkpoint["channel_values"]["n"] for each in found] == expected
            assert [each async for each in saver.alist(config, **options)] == found

    # -------------------------------------------------------------------------------------------- writes

    def test_writes_of_tasks_are_in_langgraphs_order(self) -> None:
        """By path, task and position; a write that is there stays, a special one is replaced, both from any process."""
        saver = self.saver()
        config = kept(saver, "1")
        saver.put_writes(config, [("a", 1), ("a", 2)], "z", "~1")
        saver.put_writes(config, [("a", 3), ("__interrupt__", "?")], "y", "~2")
        self.saver().put_writes(config, [("a", "late"), ("b", "late"), ("__interrupt__", "??")], "y", "~2")
        saver.put_writes(config, [("c", 4)], "x")
        found = saver.get_tuple(config)
        assert found is not None
        assert found.pending_writes == [
            ("x", "c", 4),
            ("z", "a", 1),
            ("z", "a", 2),
            ("y", "__interrupt__", "??"),
            ("y", "a", 3),
            ("y", "b", "late"),
        ]

    def test_writes_may_be_there_before_their_checkpoint(self) -> None:
        """LangGraph writes both at once."""
        saver = self.saver()
        saver.put_writes(of("t", "1"), [("a", 1)], "task")
        assert saver.get_tuple(of()) is None
        kept(saver, "1")
        found = saver.get_tuple(of())
        assert found is not None
        assert found.pending_writes == [("task", "a", 1)]

    # -------------------------------------------------------------------------------------------- several at once

    def test_two_processes_that_follow_one_checkpoint_both_keep_theirs(self) -> None:
        """Versions of the same number hold the value that each wrote: nothing is lost, nothing is mixed."""
        one, two = self.saver(), self.saver()
        kept(one, "1", {"a": 0, "b": 0})
        for saver, name in ((one, "2"), (two, "3")):
            made = new(name, {"a": name, "b": 0}, 2)
            made["channel_versions"]["b"] = 1
            saver.put(of("t", "1"), made, {}, {"a": 2})
        found = list(self.saver().list(of()))
        assert [each.checkpoint["channel_values"]["a"] for each in found] == ["3", "2", 0]
        assert [each.parent_config for each in found] == [of("t", "1"), of("t", "1"), None]

    def test_a_checkpoint_whose_parent_is_gone_is_refused(self) -> None:
        """A file or a thread that is deleted under a graph: a state without its past would pass for a whole one."""
        saver = self.saver()
        kept(saver, "1", {"a": 1})
        self.saver().delete_thread("t")
        with pytest.raises(StoreUnavailable, match="thread 't': checkpoint '1', which '2' follows, is not in it"):
            kept(saver, "2", {"a": 2}, "1")
        assert list(saver.list(None)) == []

    # -------------------------------------------------------------------------------------------- deleting

    def test_a_thread_that_is_deleted_leaves_nothing(self) -> None:
        """Of any namespace; other threads stay as they were."""
        saver = self.saver()
        saver.put_writes(kept(saver, "1", {"a": 1}), [("a", 2)], "task")
        kept(saver, "1", {"a": 1}, space="sub")
        kept(saver, "1", {"a": 1}, thread_id="u")
        before = saver.get_tuple(of("u"))
        saver.delete_thread("t")
        saver.delete_thread("unknown")
        assert list(self.saver().list(None)) == [before]
        kept(saver, "1")
        found = saver.get_tuple(of())
        assert found is not None
        assert found.pending_writes == []

    def test_pruning_keeps_the_latest_of_each_namespace(self) -> None:
        """With its values and its writes, and those of a checkpoint that is about to come; older writes go."""
        saver = self.saver()
        saver.put_writes(kept(saver, "1", {"a": "old", "b": "same"}), [("a", "gone")], "task")
        made = new("2", {"a": "new", "b": "same"}, 2)
        made["channel_versions"]["b"] = 1
        saver.put_writes(saver.put(of("t", "1"), made, {}, {"a": 2}), [("a", "stays")], "task")
        saver.put_writes(of("t", "3"), [("a", "early")], "task")
        kept(saver, "1", {"c": 1}, space="sub")
        kept(saver, "1", {"a": 1}, thread_id="u")
        latest = saver.get_tuple(of())
        for _ in range(2):
            saver.prune(["t", "unknown"])
            found = list(self.saver().list(None))
            assert [each.config for each in found] == [of("t", "2"), of("u", "1"), of("t", "1", "sub")]
            assert found[0] == latest
        kept(saver, "3", {"a": 3, "b": 3}, "2")
        kept(saver, "1")
        (third, _, first) = saver.list(of("t", None, ""))
        assert (third.pending_writes, first.pending_writes) == ([("task", "a", "early")], [])

    def test_a_run_that_is_deleted_takes_its_checkpoints_only(self) -> None:
        """In every thread and namespace; values that others have stay."""
        saver = self.saver()
        kept(saver, "1", {"a": "same"}, run_id="one")
        saver.put_writes(kept(saver, "2", {"a": "same"}, "1", run_id="two"), [("a", "same")], "task")
        kept(saver, "1", {"a": 1}, space="sub", run_id="two")
        kept(saver, "1", {"a": 1}, thread_id="u", run_id="two")
        saver.delete_for_runs(["two", "unknown"])
        (found,) = self.saver().list(None)
        assert (found.config, found.checkpoint["channel_values"]) == (of("t", "1"), {"a": "same"})
        kept(saver, "2", {"a": 2}, "1")
        (second, _) = saver.list(of())
        assert second.pending_writes == []

    def test_a_copy_stands_alone(self) -> None:
        """With every checkpoint, value, write and parent; the source can go, and both go on apart."""
        saver = self.saver()
        kept(saver, "1", {"a": "x" * 100, "b": None})
        saver.put_writes(kept(saver, "2", {"a": "y"}, "1", run_id="r"), [("a", "x" * 100)], "task", "~p")
        kept(saver, "1", {"c": 1}, space="sub")
        kept(saver, "0", {"own": 1}, thread_id="copy")
        before = list(saver.list({"configurable": {"thread_id": "t"}}))
        saver.copy_thread("t", "copy")
        saver.copy_thread("t", "t")
        saver.copy_thread("unknown", "copy")
        assert list(saver.list({"configurable": {"thread_id": "t"}})) == before
        saver.delete_thread("t")
        kept(saver, "3", {"a": "z"}, "2", thread_id="copy")
        copied = list(self.saver().list({"configurable": {"thread_id": "copy"}}))
        assert ids(copied) == ["3", "2", "1", "1", "0"]
        for old, copy in zip(before, copied[1:4], strict=True):
            assert (copy.checkpoint, copy.metadata, copy.pending_writes) == (
                old.checkpoint,
                old.metadata,
                old.pending_writes,
            )
            assert (copy.parent_config is None) == (old.parent_config is None)

    def test_threads_that_did_not_change_for_long_are_deleted_when_it_is_asked(self) -> None:
        """Ten with each new thread, the oldest first; not those that wait for a decision, and none by default."""
        saver = self.saver(retention_days=2)
        for number in range(12):
            kept(saver, "1", thread_id=f"t{number}")
            self.time += 1
        waiting = kept(saver, "1", thread_id="waiting")
        saver.put_writes(waiting, [("__interrupt__", "go on?")], "task")
        decided = kept(saver, "1", thread_id="decided")
        saver.put_writes(decided, [("__interrupt__", "go on?")], "task")
        kept(saver, "2", None, "1", thread_id="decided")
        self.time += 3 * 86_400
        kept(self.saver(), "1", thread_id="new")
        assert len(list(saver.list(None))) == 16
        left = [{"waiting", "decided", "new", "a", "t10", "t11"}, {"waiting", "new", "a", "b"}]
        for name, names in zip("ab", left, strict=True):
            kept(saver, "1", thread_id=name)
            kept(saver, "2", None, "1", thread_id=name)  # a thread that is known deletes nothing
            assert {each.config.get("configurable", {})["thread_id"] for each in saver.list(None)} == names
