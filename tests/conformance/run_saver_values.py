"""The promises of RunSaver on what a checkpoint holds, what may be loaded of it, and names."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router_research.engine import (
    CheckpointTooNew,
    RunSaver,
    StoreUnavailable,
    TypesNotAllowed,
    ValueTooLarge,
    graph_codec,
)
from tests.conformance.run_saver_parts import SaverTests, ids, kept, new, of

STRANGE = ["a/b/../c", "tëst 🧵", "x" * 10_000, "'; DROP TABLE runs; --", "\n\x00", " "]
IDS = ["!", "10", "9", "a", "~" * 300, "é", "\uffff", "𝄞"]
"""In the order of their characters, which is that of their checkpoints."""


@dataclass
class Plan:
    """An object of a type that LangGraph does not know."""

    steps: int


class SaverValues(SaverTests):
    """Values, trust, names."""

    # -------------------------------------------------------------------------------------------- values

    def test_a_checkpoint_comes_back_with_all_that_it_had(self) -> None:
        """Versions of every kind, channels without a value, keys that a later LangGraph adds, and metadata."""
        saver = self.saver()
        made = new("1", {"a": [1, {"b": None}], "é": b"\x00", "none": None}, added={"by": "a later one"})
        made["channel_versions"] |= {"gone": 3, "text": "00002.5", "part": 1.5}
        made["versions_seen"] = {"node": {"a": 1, "text": "00002.5"}}
        config = {**of(), "metadata": {"user": "ann"}}
        saver.put(config, made, {"source": "input", "step": -1, "parents": {"": "x"}}, made["channel_versions"])  # type: ignore[arg-type]
        found = self.saver().get_tuple(of())
        assert found is not None
        assert found.checkpoint == made
        assert found.metadata == {"source": "input", "step": -1, "parents": {"": "x"}, "user": "ann"}
        assert (found.config, found.parent_config, found.pending_writes) == (of("t", "1"), None, [])

    def test_an_unchanged_channel_has_the_value_that_its_parent_has(self) -> None:
        """Also over many checkpoints; a branch that begins elsewhere keeps its own."""
        saver = self.saver()
        kept(saver, "1", {"a": "old", "b": "same"})
        made = new("2", {"a": "new", "b": "same"}, 2)
        made["channel_versions"]["b"] = 1
        saver.put(of("t", "1"), made, {}, {"a": 2})
        branch = new("3", {"a": "other", "b": "branched"}, 2)
        saver.put(of("t", "1"), branch, {}, {"a": 2})  # b has another version than in its parent: its value is taken
        values = [each.checkpoint["channel_values"] for each in self.saver().list(of())]
        assert values == [{"a": "other", "b": "branched"}, {"a": "new", "b": "same"}, {"a": "old", "b": "same"}]

    def test_what_was_read_can_be_changed_without_changing_the_store(self) -> None:
        """So can what was written."""
        saver, value = self.saver(), [1]
        kept(saver, "1", {"a": value})
        value.append(2)
        for _ in range(2):
            found = saver.get_tuple(of())
            assert found is not None
            assert found.checkpoint["channel_values"] == {"a": [1]}
            found.checkpoint["channel_values"]["a"].append(3)

    @pytest.mark.parametrize("wrong", [object(), 1 << 70, {"deep": lambda: None}])
    def test_a_value_that_cannot_be_stored_is_refused_and_nothing_is_written(self, wrong: object) -> None:
        """The error names thread and channel; so it is for a write of a task."""
        saver = self.saver()
        config = kept(saver, "1")
        with pytest.raises(TypeError, match=r"thread 't': channel 'a', a \w+, cannot be stored: "):
            kept(saver, "2", {"a": wrong}, "1")
        with pytest.raises(TypeError, match=r"thread 't': a write to 'a', a \w+, cannot be stored: "):
            saver.put_writes(config, [("b", 1), ("a", wrong)], "task")
        found = saver.get_tuple(of())
        assert found is not None
        assert (found.checkpoint["id"], found.pending_writes) == ("1", [])

    def test_a_value_above_the_limit_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The error says which, and how large it is."""
        monkeypatch.setattr(graph_codec, "VALUE_LIMIT", 100)
        with pytest.raises(ValueTooLarge, match="thread 't': channel 'a' has 201 bytes") as error:
            kept(self.saver(), "1", {"a": b"x" * 201})
        assert (error.value.thread_id, error.value.size) == ("t", 201)

    # -------------------------------------------------------------------------------------------- trust

    def test_an_object_of_an_unknown_type_is_not_loaded_unless_it_is_allowed(self) -> None:
        """The error names its type and the remedy, and the checkpoint stays: allowed, it is there."""
        saver = self.saver()
        config = kept(saver, "1", {"plan": Plan(3)})
        saver.put_writes(config, [("plan", Plan(4))], "task")
        with pytest.raises(
            TypesNotAllowed, match=r"thread 't': channel 'plan' of .*allowed_msgpack_modules=\["
        ) as error:
            saver.get_tuple(of())
        assert error.value.types == ((Plan.__module__, "Plan"),)
        allowed = self.saver(serde=JsonPlusSerializer(allowed_msgpack_modules=[Plan]))
        for each in (allowed, saver.with_allowlist([(Plan.__module__, "Plan")])):
            found = each.get_tuple(of())
            assert found is not None
            assert found.checkpoint["channel_values"] == {"plan": Plan(3)}
            assert found.pending_writes == [("task", "plan", Plan(4))]

    def test_a_pickle_is_not_loaded_unless_the_user_asks(self) -> None:
        """It may run any code; the error names thread, checkpoint and channel."""
        pickling = self.saver(serde=JsonPlusSerializer(pickle_fallback=True, allowed_msgpack_modules=None))
        kept(pickling, "1", {"a": 1 << 70})
        with pytest.raises(StoreUnavailable, match=r"thread 't': its channel 'a' of checkpoint '1'.*pickle"):
            self.saver().get_tuple(of())
        found = pickling.get_tuple(of())
        assert found is not None
        assert found.checkpoint["channel_values"] == {"a": 1 << 70}

    def test_a_checkpoint_of_a_newer_langgraph_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """When it is written and when it is read; the error names both formats."""
        saver = self.saver()
        with pytest.raises(CheckpointTooNew, match="'1' has format 5, and this release reads formats up to 4"):
            saver.put(of(), new("1", v=5), {}, {})
        assert saver.get_tuple(of()) is None
        with monkeypatch.context() as later:
            later.setattr(graph_codec, "NEWEST_FORMAT", 5)
            saver.put(of(), new("1", v=5), {}, {})
        for read in (lambda: saver.get_tuple(of()), lambda: list(saver.list(None))):
            with pytest.raises(CheckpointTooNew) as error:
                read()
            assert (error.value.format, error.value.newest) == (5, 4)

    # -------------------------------------------------------------------------------------------- names

    @pytest.mark.parametrize("thread_id", STRANGE, ids=range(len(STRANGE)))
    def test_a_thread_may_have_any_name(self, thread_id: str) -> None:
        """With slashes, of any script, of ten kilobytes: its own checkpoints, and no others."""
        saver = self.saver()
        config = kept(saver, "1", {"a": 1}, thread_id=thread_id)
        saver.put_writes(config, [("a", 2)], "task")
        saver.copy_thread(thread_id, "copy")
        kept(saver, "2", {"a": 3}, thread_id="other")
        (found,) = self.saver().list(of(thread_id))
        assert found.config == config == of(thread_id, "1")
        assert found.pending_writes == [("task", "a", 2)]
        saver.delete_thread(thread_id)
        assert saver.get_tuple(of(thread_id)) is None
        assert len(list(saver.list(None))) == 2

    def test_a_number_and_a_uuid_are_names_of_threads(self) -> None:
        """They are the texts of them."""
        saver, name = self.saver(), uuid.uuid4()
        for thread_id in (7, name):
            assert kept(saver, "1", thread_id=thread_id) == of(str(thread_id), "1")
            assert saver.get_tuple(of(thread_id)) == saver.get_tuple(of(str(thread_id)))

    @pytest.mark.parametrize("wrong", [None, "", True, b"t", ["t"], "half \ud83d"])
    def test_an_unfit_name_of_a_thread_is_refused(self, wrong: object) -> None:
        """An empty one is that of an unset variable, and would mix the threads of everybody."""
        saver = self.saver()
        kept(saver, "1")
        asked: Any = wrong
        for refused in (
            lambda: kept(saver, "2", thread_id=asked),
            lambda: saver.get_tuple(of(asked)),
            lambda: saver.put_writes(of(asked, "1"), [("a", 1)], "task"),
            lambda: saver.delete_thread(asked),
            lambda: saver.copy_thread("t", asked),
            lambda: saver.prune(["t", asked], strategy="delete"),
        ):
            with pytest.raises(ConfigurationError, match=r"configurable\.thread_id"):
                refused()
        with pytest.raises(ConfigurationError, match=r"configurable\.checkpoint_ns"):
            saver.get_tuple(of("t", None, "\ud83d"))
        assert ids(list(saver.list(None))) == ["1"]

    def test_writes_without_a_checkpoint_are_refused(self) -> None:
        """As are other arguments that cannot be."""
        saver = self.saver()
        with pytest.raises(ConfigurationError, match=r"configurable\.checkpoint_id"):
            saver.put_writes(of(), [("a", 1)], "task")
        with pytest.raises(ConfigurationError, match="strategy: 'all' - one of keep_latest, delete"):
            saver.prune(["t"], strategy="all")
        with pytest.raises(ConfigurationError, match="retention_days"):
            self.saver(retention_days=0)
        with pytest.raises(ConfigurationError, match="store: "):
            RunSaver("runs.db")  # type: ignore[arg-type]

    def test_checkpoints_are_in_the_order_of_their_ids(self) -> None:
        """Compared character by character, whatever their alphabet; the greatest is the latest, in any process."""
        saver = self.saver()
        for name in [*IDS[4:], *IDS[:4]]:
            kept(saver, name, {"a": name})
        assert ids(list(self.saver().list(of()))) == IDS[::-1]
        latest = saver.get_tuple(of())
        assert latest is not None
        assert latest.checkpoint["channel_values"] == {"a": IDS[-1]}
        assert ids(list(saver.list(of(), before=of("t", "a")))) == ["9", "10", "!"]
