"""The rules that every store of runs keeps."""

from __future__ import annotations

import math
from dataclasses import replace
from types import MappingProxyType

import pytest

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router_research.engine import Approval, RunBusy, StateTooLarge
from smart_model_router_research.engine.store_rules import (
    STATE_LIMIT,
    Holder,
    check_state,
    decided_step,
    differing_steps,
    granted,
    is_gone,
    json_text,
    late_decision,
    readable,
)

HOLDER = Holder(host="h", boot="b", space="s", pid=7, started="100")
HERE = replace(HOLDER, pid=8, started="200")


@pytest.mark.parametrize(
    ("holder", "started", "gone"),
    [
        (HOLDER, "100", False),
        (HOLDER, None, True),
        (HOLDER, "101", True),
        (replace(HOLDER, boot="a"), "100", True),
        (replace(HOLDER, space="t"), None, False),
        (replace(HOLDER, host="g"), None, False),
        (replace(HOLDER, host="g", boot="a"), None, False),
    ],
    ids=["alive", "no process", "id used again", "machine restarted", "container", "other host", "other machine"],
)
def test_a_process_is_gone_when_this_one_can_tell(holder: Holder, started: str | None, *, gone: bool) -> None:
    """By host, boot, the space of ids, and when the process with its id started; doubt is for the holder."""
    assert is_gone(holder, HERE, started, one_host=True) is gone


def test_another_boot_tells_nothing_where_two_hosts_may_have_one_name() -> None:
    """Containers and cloned machines do; a process of this boot that has ended is gone there as well."""
    assert not is_gone(replace(HOLDER, boot="a"), HERE, None, one_host=False)
    assert is_gone(HOLDER, HERE, None, one_host=False)


@pytest.mark.parametrize(
    ("held_by", "left", "own", "gone", "new"),
    [
        ("", 10.0, False, False, True),
        ("two", 0.0, False, False, True),
        ("two", -1.0, False, False, True),
        ("two", 10.0, False, True, True),
        ("one", 10.0, True, False, False),
        ("one", -10.0, True, False, False),
        ("one", 10.0, True, True, False),
    ],
)
def test_a_lease_goes_to_whoever_may_have_it(held_by: str, left: float, *, own: bool, gone: bool, new: bool) -> None:
    """Free, over, or of a process that is gone: to a new holder. Its owner keeps it, also late."""
    assert granted("r", held_by, left, own=own, gone=gone) is new


@pytest.mark.parametrize("left", [0.001, 30.0])
def test_a_lease_that_is_held_is_refused_with_owner_and_seconds(left: float) -> None:
    """As long as there is any time left."""
    with pytest.raises(RunBusy) as error:
        granted("r", "two", left, own=False, gone=False)
    assert (error.value.run_id, error.value.owner, error.value.seconds) == ("r", "two", left)


def test_a_decision_is_about_the_step_that_it_names_or_the_only_one() -> None:
    """Otherwise the error names key, value, run and what is paused."""
    assert decided_step("r", Approval(), ["a"]) == "a"
    assert decided_step("r", Approval(step="b"), iter(["a", "b"])) == "b"
    for step in (None, "c"):
        with pytest.raises(ConfigurationError) as error:
            decided_step("r", Approval(step=step), ["a", "b"])
        assert (error.value.key, error.value.value) == ("approval.step", step)
        assert error.value.expected == "one of the steps of run r that wait for a decision is needed: a, b"
    with pytest.raises(ConfigurationError, match=r"needed: b; decided, or out of time: a, c: resume"):
        decided_step("r", Approval(step="a"), ["b"], ["c", "b", "a"])


@pytest.mark.parametrize(("approved", "said"), [(True, "approved"), (False, "rejected")])
def test_a_decision_about_a_run_that_waits_for_none_is_refused(approved: bool, said: str) -> None:
    """Whatever step it names: the run has ended, or goes on without one."""
    with pytest.raises(ConfigurationError) as error:
        decided_step("r", Approval(approved=approved, step="a"), [])
    assert error.value.message == f"approval: '{said}' - run r waits for no decision"


def test_a_decision_that_is_late_is_a_rejection_that_says_so() -> None:
    """Of the step that was asked about."""
    late = late_decision("a")
    assert (late.approved, late.payload, late.step) == (False, "no decision in time", "a")


def test_steps_differ_that_changed_are_new_or_are_gone() -> None:
    """In the order of the alphabet."""
    assert differing_steps({"z": "1", "b": "1", "a": "1"}, {"a": "1", "b": "2", "c": "1"}) == ["b", "c", "z"]


def test_a_run_holds_so_much_and_no_more() -> None:
    """The error says what would be too much, and what to do."""
    check_state("r", "its inputs", STATE_LIMIT)
    with pytest.raises(StateTooLarge, match=r"run 'r': with its inputs it would.*store a document") as error:
        check_state("r", "its inputs", STATE_LIMIT + 1)
    assert (error.value.run_id, error.value.what) == ("r", "its inputs")
    assert (error.value.size, error.value.limit) == (STATE_LIMIT + 1, STATE_LIMIT) == (1_048_577, 1_048_576)


def test_what_is_no_json_is_refused() -> None:
    """Numbers that are none, and objects; a mapping of any kind is an object of JSON."""
    assert json_text({"a": [1, None]}) == json_text(MappingProxyType({"a": [1, None]})) == '{"a": [1, null]}'
    for wrong in (math.nan, {"a": math.inf}):
        with pytest.raises(ValueError, match="JSON"):
            json_text(wrong)
    with pytest.raises(TypeError):
        json_text({"a": object()})


def test_half_a_character_is_escaped() -> None:
    """All else stays: a file holds UTF-8."""
    assert readable("caf\udce9 \ud83d é 🎈") == "caf\\udce9 \\ud83d é 🎈"
