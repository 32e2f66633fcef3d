"""Whatever is done to a thread, RunSaver reads as the saver that LangGraph has for memory."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver, ChannelVersions, Checkpoint, CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver

from smart_model_router_research.engine import MemoryRunStore, RunSaver
from tests.conformance.run_saver_parts import new, of

VALUES = (None, 0, "text", [1, {"a": b"b"}], "x" * 3_000)
CHANNELS = ("a", "b", "c", "__error__", "__interrupt__")


def actions(dice: random.Random) -> list[tuple[Any, ...]]:
    """Make thirty calls, most of them about few checkpoints of one thread."""
    made: list[tuple[Any, ...]] = []
    for _ in range(30):
        where = (dice.choice(["t", "t", "t", "u/v"]), dice.choice(["", "", "sub:1"]), dice.choice(["1", "2"]))
        kind = dice.random()
        if kind < 0.4:
            made.append(("put", *where, {name: dice.choice(VALUES) for name in "abc" if dice.random() < 0.5}))
        elif kind < 0.95:
            writes = [(dice.choice(CHANNELS), dice.choice(VALUES)) for _ in range(dice.randint(1, 3))]
            made.append(("put_writes", *where, writes, dice.choice("xy"), dice.choice(["", "~p", "~q"])))
        else:
            made.append(("delete", where[0]))
    return made


def play(saver: BaseCheckpointSaver[Any], calls: list[tuple[Any, ...]]) -> list[Any]:
    """Do as told, each checkpoint after the one before it in its namespace; returns all that can be read."""
    latest: dict[tuple[str, str], Checkpoint] = {}
    for number, (name, *told) in enumerate(calls):
        if name == "put":
            thread, space, checkpoint, changed = told
            before = latest.get((thread, space))
            if before is not None and before["id"] == checkpoint:
                continue
            made = new(checkpoint, {**(before["channel_values"] if before else {}), **changed})
            made["channel_versions"] = {
                **(before["channel_versions"] if before else {}),
                **dict.fromkeys(changed, number),
            }
            versions: ChannelVersions = dict.fromkeys(changed, number)
            saver.put(of(thread, before and before["id"], space), made, {"step": number}, versions)
            latest[thread, space] = made
        elif name == "put_writes":
            thread, space, checkpoint, writes, task, path = told
            saver.put_writes(of(thread, checkpoint, space), [(to, [number, value]) for to, value in writes], task, path)
        else:
            saver.delete_thread(told[0])
            latest = {key: made for key, made in latest.items() if key[0] != told[0]}
    found: list[CheckpointTuple | None] = []
    for thread in ("t", "u/v"):
        found += saver.list({"configurable": {"thread_id": thread}})
        found += [saver.get_tuple(of(thread, *each)) for each in product((None, "1", "2"), ("", "sub:1"))]
    return sorted((each._asdict() for each in found if each is not None), key=repr)


@pytest.mark.parametrize("seed", range(40))
def test_any_sequence_of_calls_reads_as_from_langgraphs_own_saver(seed: int) -> None:
    """Checkpoints, values, metadata, parents and writes, over threads and namespaces."""
    calls = actions(random.Random(seed))
    assert play(RunSaver(MemoryRunStore()), calls) == play(InMemorySaver(), calls)
