"""The tables of graphs in a database, and every read and write of them. Blocks: in a transaction."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from smart_model_router_research.engine.graph_threads import (
    ChannelHistory,
    GraphValue,
    GraphWrite,
    NewCheckpoint,
    StoredCheckpoint,
    Version,
    shown_thread,
)
from smart_model_router_research.engine.store_port import StoreUnavailable

_COLUMNS = """
SELECT t.id, c.space, c.id, c.parent, c.format, c.channels, c.body_type, c.body, c.metadata_type, c.metadata
FROM graph_checkpoints c JOIN graph_threads t ON t.number = c.thread
"""
_PUT_THREAD = """
INSERT INTO graph_threads (id, changed_at) VALUES (?, ?)
ON CONFLICT (id) DO UPDATE SET changed_at = excluded.changed_at RETURNING number
"""
_WRITES = """
SELECT w.task, w.channel, v.digest, v.type, v.content
FROM graph_writes w LEFT JOIN graph_values v ON v.number = w.value AND v.thread = w.thread
WHERE w.thread = ? AND w.space = ? AND w.checkpoint = ? ORDER BY w.path, w.task, w.position
"""
_VALUES = """
SELECT number, digest, type, content FROM graph_values
WHERE number IN (SELECT value FROM json_each(?)) AND +thread = ?  -- by number, not by the index of the thread's values
"""
_PUT_WRITE = "INSERT OR {} INTO graph_writes VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
# A thread that waits for a decision has an interrupt at the latest checkpoint of a namespace.
_PRUNE_IDLE = """
DELETE FROM graph_threads WHERE number IN (
  SELECT number FROM graph_threads t WHERE changed_at < ? AND NOT EXISTS (
    SELECT 1 FROM graph_writes w WHERE w.thread = t.number AND w.channel = '__interrupt__' AND w.checkpoint =
      (SELECT max(id) FROM graph_checkpoints c WHERE c.thread = w.thread AND c.space = w.space)
  ) ORDER BY changed_at LIMIT 10
)
"""
_DELETE_UNUSED = """
DELETE FROM graph_values WHERE thread = :thread
AND number NOT IN (SELECT value FROM graph_writes WHERE thread = :thread)
AND number NOT IN (
  SELECT json_extract(e.value, '$[1]') FROM graph_checkpoints c, json_each(c.channels) e
  WHERE c.thread = :thread AND json_extract(e.value, '$[1]') IS NOT NULL
)
"""
_DELETE_EMPTY = """
DELETE FROM graph_threads WHERE number = :thread
AND NOT EXISTS (SELECT 1 FROM graph_checkpoints WHERE thread = :thread)
AND NOT EXISTS (SELECT 1 FROM graph_writes WHERE thread = :thread)
"""
_PRUNE_CHECKPOINTS = """
DELETE FROM graph_checkpoints
WHERE thread = ? AND space = ? AND id < ? AND id NOT IN (SELECT value FROM json_each(?))
"""
_PRUNE_WRITES = """
DELETE FROM graph_writes
WHERE thread = ? AND space = ? AND checkpoint < ? AND checkpoint NOT IN (SELECT value FROM json_each(?))
"""
_COPY_VALUES = """
INSERT INTO graph_values (thread, digest, type, content)
SELECT :target, digest, type, content FROM graph_values WHERE thread = :source
ON CONFLICT (thread, digest) DO NOTHING
"""
_COPIED = """
SELECT old.number, new.number FROM graph_values old JOIN graph_values new ON new.digest = old.digest
WHERE old.thread = ? AND new.thread = ?
"""
_COPY_CHECKPOINTS = """
INSERT OR REPLACE INTO graph_checkpoints
SELECT :target, space, id, parent, run, format, channels, deltas, body_type, body, metadata_type, metadata
FROM graph_checkpoints WHERE thread = :source
"""
_COPY_WRITES = """
INSERT OR REPLACE INTO graph_writes
SELECT :target, w.space, w.checkpoint, w.path, w.task, w.position, w.channel, new.number
FROM graph_writes w LEFT JOIN graph_values old ON old.number = w.value
LEFT JOIN graph_values new ON new.digest = old.digest AND new.thread = :target WHERE w.thread = :source
"""


class GraphTables:
    """The tables within one transaction, at the time `now`, seconds since 1970.

    What is not to be read raises StoreUnavailable, which names the file, `place`.
    """

    def __init__(self, connection: sqlite3.Connection, place: str, now: float) -> None:
        self._execute = connection.execute
        self._many = connection.executemany
        self._place = place
        self._now = now

    # ------------------------------------------------------------------------------------------------ writing

    def put(self, new: NewCheckpoint, retention_days: float | None) -> None:
        """Keep a checkpoint; one of the same id is replaced."""
        known = self._number(new.thread_id)
        if known is None and retention_days is not None:
            self._execute(_PRUNE_IDLE, (self._now - retention_days * 86_400,))
        before = self._parent(known, new)
        thread = self._touched(new.thread_id)
        channels: dict[str, tuple[Version, int | None]] = {}
        for name, version in new.versions.items():
            if name in new.changed:
                value = new.values.get(name)
            elif (found := before.get(name)) is not None and found[0] == version:
                channels[name] = found
                continue
            else:
                value = new.unchanged(name)
            channels[name] = (version, None if value is None else self._put_value(thread, value))
        self._execute(
            "INSERT OR REPLACE INTO graph_checkpoints VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                thread,
                new.space,
                new.id,
                new.parent,
                new.run,
                new.format,
                json.dumps(channels),
                json.dumps(list(new.deltas)),
                new.body.type,
                new.body.content,
                new.metadata.type,
                new.metadata.content,
            ),
        )

    def put_writes(
        self, thread_id: str, space: str, checkpoint: str, task: str, path: str, writes: Sequence[GraphWrite]
    ) -> None:
        """Keep writes of a task. One that is there stays, but for special ones."""
        thread = self._touched(thread_id)
        for write in writes:
            row = (thread, space, checkpoint, path, task, write.position, write.channel)
            put = _PUT_WRITE.format("IGNORE" if write.position >= 0 else "REPLACE")
            self._execute(put, (*row, self._put_value(thread, write.value)))

    # ------------------------------------------------------------------------------------------------ reading

    def find(self, thread_id: str, space: str, checkpoint: str | None) -> StoredCheckpoint | None:
        """Return a checkpoint, by default the one with the greatest id; None when it is not there."""
        found = self._bare(thread_id, space, checkpoint)
        return None if found is None else self.filled(found)

    def page(
        self,
        thread_id: str | None,
        space: str | None,
        checkpoint: str | None,
        before: str | None,
        after: StoredCheckpoint | None,
        limit: int,
    ) -> list[StoredCheckpoint]:
        """Return checkpoints, without values and writes, the greatest id first; those that follow `after`."""
        wanted = {"t.id = ?": thread_id, "c.space = ?": space, "c.id = ?": checkpoint, "c.id < ?": before}
        asked = {clause: value for clause, value in wanted.items() if value is not None}
        clauses, values = list(asked), [*asked.values()]
        if after is not None:
            clauses.append("(c.id, t.id, c.space) < (?, ?, ?)")
            values += [after.id, after.thread_id, after.space]
        where = f" WHERE {' AND '.join(clauses)}" if clauses else ""
        order = " ORDER BY c.id DESC, t.id DESC, c.space DESC LIMIT ?"
        return [self._stored(row) for row in self._execute(_COLUMNS + where + order, (*values, limit)).fetchall()]

    def filled(self, found: StoredCheckpoint) -> StoredCheckpoint:
        """Return a checkpoint with its values and writes."""
        thread = self._number(found.thread_id)
        return replace(found, values=self._values(thread, found, found.channels), writes=self._writes(thread, found))

    def history(
        self, thread_id: str, space: str, checkpoint: str | None, channels: Sequence[str]
    ) -> Mapping[str, ChannelHistory]:
        """Return the values of channels as they follow from the ancestors of a checkpoint, in their order."""
        thread = self._number(thread_id)
        open_, seeds = set(channels), dict[str, GraphValue]()
        collected: dict[str, list[tuple[str, GraphValue]]] = {name: [] for name in channels}
        at = self._bare(thread_id, space, checkpoint)
        while at is not None and at.parent is not None and open_:
            child, at = at, self._bare(thread_id, space, at.parent)
            if at is None:
                reason = f"{shown_thread(thread_id)}: checkpoint {child.parent!r}, at which {sorted(open_)} go on"
                raise StoreUnavailable(self._place, f"{reason}, is no longer in it: was its run deleted?")
            for task, name, value in reversed(self._writes(thread, at)):
                if name in open_:
                    collected[name].append((task, value))
            found = self._values(thread, at, open_)
            seeds |= found
            open_ -= found.keys()
        return {name: ChannelHistory(seed=seeds.get(name), writes=collected[name][::-1]) for name in channels}

    # ------------------------------------------------------------------------------------------------ deleting

    def delete_thread(self, thread_id: str) -> None:
        """Delete a thread, if there is one."""
        self._execute("DELETE FROM graph_threads WHERE id = ?", (thread_id,))

    def delete_runs(self, runs: Sequence[str]) -> None:
        """Delete the checkpoints that runs have written, in every thread."""
        query = "SELECT thread, space, id FROM graph_checkpoints WHERE run IN (SELECT value FROM json_each(?))"
        found = self._execute(query, (json.dumps(list(runs)),)).fetchall()
        self._many("DELETE FROM graph_checkpoints WHERE thread = ? AND space = ? AND id = ?", found)
        self._many("DELETE FROM graph_writes WHERE thread = ? AND space = ? AND checkpoint = ?", found)
        self._tidy({thread for thread, _, _ in found})

    def copy_thread(self, source: str, target: str) -> None:
        """Copy a thread; checkpoints of the target that have an id of the source are replaced."""
        old = self._number(source)
        if old is None or source == target:
            return
        both = {"source": old, "target": (new := self._touched(target))}
        for statement in (_COPY_VALUES, _COPY_CHECKPOINTS, _COPY_WRITES):
            self._execute(statement, both)
        numbers = {None: None, **dict(self._execute(_COPIED, (old, new)).fetchall())}
        query = "SELECT space, id, channels FROM graph_checkpoints WHERE thread = ?"
        for space, checkpoint, text in self._execute(query, (old,)).fetchall():
            with self._reading(source, f"checkpoint {checkpoint!r}"):
                kept = self._channels(source, f"checkpoint {checkpoint!r}", text)
                channels = {name: (version, numbers[number]) for name, (version, number) in kept.items()}
            self._execute(
                "UPDATE graph_checkpoints SET channels = ? WHERE thread = ? AND space = ? AND id = ?",
                (json.dumps(channels), new, space, checkpoint),
            )

    def prune(self, thread_id: str) -> None:
        """Delete all checkpoints of a thread but the latest of each namespace, and those that its channels begin at."""
        thread = self._number(thread_id)
        if thread is None:
            return
        query = "SELECT space, max(id) FROM graph_checkpoints WHERE thread = ? GROUP BY space"
        for space, latest in self._execute(query, (thread,)).fetchall():
            ancestors = json.dumps(self._ancestors(thread_id, thread, space, latest))
            for statement in (_PRUNE_CHECKPOINTS, _PRUNE_WRITES):
                self._execute(statement, (thread, space, latest, ancestors))
        self._tidy({thread})

    def _ancestors(self, thread_id: str, thread: int, space: str, latest: str) -> list[str]:
        """Return the ancestors in which the value of a channel of a checkpoint begins and goes on."""
        where = "SELECT deltas FROM graph_checkpoints WHERE thread = ? AND space = ? AND id = ?"
        with self._reading(thread_id, f"checkpoint {latest!r}"):
            open_ = set(json.loads(self._execute(where, (thread, space, latest)).fetchone()[0]))
        kept, at = list[str](), self._bare(thread_id, space, latest)
        while at is not None:
            open_ -= {name for name, (_, number) in at.channels.items() if number is not None}
            if not open_ or at.parent is None:
                break
            kept.append(at.parent)
            at = self._bare(thread_id, space, at.parent)
        return kept

    def _tidy(self, threads: Iterable[int]) -> None:
        """Delete the values of threads that no checkpoint and no write has any more, and a thread without either."""
        for thread in threads:
            self._execute(_DELETE_UNUSED, {"thread": thread})
            self._execute(_DELETE_EMPTY, {"thread": thread})

    # ------------------------------------------------------------------------------------------------ rows

    def _number(self, thread_id: str) -> int | None:
        found = self._execute("SELECT number FROM graph_threads WHERE id = ?", (thread_id,)).fetchone()
        return None if found is None else int(found[0])

    def _touched(self, thread_id: str) -> int:
        """Return the number of a thread that changes now, a new one where there is none."""
        ((number,),) = self._execute(_PUT_THREAD, (thread_id, self._now)).fetchall()
        return int(number)

    def _parent(self, thread: int | None, new: NewCheckpoint) -> Mapping[str, tuple[Version, int | None]]:
        """Return the channels of the checkpoint that a new one follows."""
        if new.parent is None:
            return {}
        query = "SELECT channels FROM graph_checkpoints WHERE thread = ? AND space = ? AND id = ?"
        found = self._execute(query, (thread, new.space, new.parent)).fetchone()
        if found is None:
            reason = f"{shown_thread(new.thread_id)}: checkpoint {new.parent!r}, which {new.id!r} follows"
            raise StoreUnavailable(self._place, f"{reason}, is not in it: was the file, or the thread, deleted?")
        return self._channels(new.thread_id, f"checkpoint {new.parent!r}", found[0])

    def _put_value(self, thread: int, value: GraphValue) -> int:
        digest = _digest(value.type, value.content)
        query = "SELECT number FROM graph_values WHERE thread = ? AND digest = ?"
        found = self._execute(query, (thread, digest)).fetchone()
        if found is None:
            put = "INSERT INTO graph_values (thread, digest, type, content) VALUES (?, ?, ?, ?) RETURNING number"
            (found,) = self._execute(put, (thread, digest, value.type, value.content)).fetchall()
        return int(found[0])

    def _values(self, thread: int | None, found: StoredCheckpoint, names: Collection[str]) -> dict[str, GraphValue]:
        """Return the values that a checkpoint has of these channels."""
        wanted = {name: number for name, (_, number) in found.channels.items() if number is not None and name in names}
        rows = {number: row for number, *row in self._execute(_VALUES, (json.dumps(list(wanted.values())), thread))}
        where = f"of checkpoint {found.id!r}"
        return {
            name: self._value(found.thread_id, f"channel {name!r} {where}", *rows.get(number, (None, None, None)))
            for name, number in wanted.items()
        }

    def _writes(self, thread: int | None, found: StoredCheckpoint) -> list[tuple[str, str, GraphValue]]:
        where = f"of checkpoint {found.id!r}"
        return [
            (task, name, self._value(found.thread_id, f"write to {name!r} {where}", *value))
            for task, name, *value in self._execute(_WRITES, (thread, found.space, found.id)).fetchall()
        ]

    def _bare(self, thread_id: str, space: str, checkpoint: str | None) -> StoredCheckpoint | None:
        found = self.page(thread_id, space, checkpoint, None, None, 1)
        return found[0] if found else None

    def _stored(self, row: Sequence[object]) -> StoredCheckpoint:
        thread_id, space, checkpoint, parent, format_, channels, body_type, body, metadata_type, metadata = row
        what = f"checkpoint {checkpoint!r}"
        with self._reading(str(thread_id), what):
            return StoredCheckpoint(
                thread_id=str(thread_id),
                space=str(space),
                id=str(checkpoint),
                parent=None if parent is None else str(parent),
                format=int(str(format_)),
                channels=self._channels(str(thread_id), what, channels),
                body=_read_value(body_type, body),
                metadata=_read_value(metadata_type, metadata),
            )

    def _channels(self, thread_id: str, what: str, text: object) -> dict[str, tuple[Version, int | None]]:
        with self._reading(thread_id, what):
            return {name: (version, number) for name, (version, number) in json.loads(str(text)).items()}

    def _value(self, thread_id: str, what: str, digest: object, type_: object, content: object) -> GraphValue:
        try:  # for each value of a checkpoint: a context manager would cost more than the rest
            value = _read_value(type_, content)
        except TypeError as error:
            raise self._unreadable(thread_id, what, error) from error
        if digest != _digest(value.type, value.content):
            raise self._unreadable(thread_id, what, ValueError("its content has another SHA-256 than its row"))
        return value

    @contextmanager
    def _reading(self, thread_id: str, what: str) -> Generator[None]:
        """Raise StoreUnavailable for what a row cannot have."""
        try:
            yield
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise self._unreadable(thread_id, what, error) from error

    def _unreadable(self, thread_id: str, what: str, error: Exception) -> StoreUnavailable:
        reason = f"{shown_thread(thread_id)}: its {what} cannot be read: {type(error).__name__}: {error}"
        return StoreUnavailable(self._place, reason)


def _digest(type_: str, content: bytes) -> bytes:
    return hashlib.sha256(type_.encode() + b"\0" + content).digest()


def _read_value(type_: object, content: object) -> GraphValue:
    if not isinstance(type_, str) or not isinstance(content, bytes):
        raise TypeError(
            "it is not there" if content is None else f"its content is no bytes but {type(content).__name__}"
        )
    return GraphValue(type_, content)
