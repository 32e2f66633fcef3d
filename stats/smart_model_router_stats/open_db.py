"""The opening of a database file: its file system, modes, pragmas and numbered migrations. Blocks: own thread."""

from __future__ import annotations

import logging
import os
import sqlite3
import stat
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

_RECORDS = """
CREATE TABLE IF NOT EXISTS migration (
  number INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  applied_at REAL NOT NULL,  -- seconds since the epoch
  needs TEXT NOT NULL        -- the first smart-model-router that has it: what a reader has to install at least
)
"""
_NOW = "(julianday('now') - 2440587.5) * 86400.0"


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of a schema, in every release from `since` on.

    `apply` executes plain statements: no transaction of its own, no executescript.
    """

    name: str
    since: str
    apply: Callable[[sqlite3.Connection], None]


class NewerSchemaError(Exception):
    """The file was written by a newer smart-model-router; the message says which one to install."""


def migrate(connection: sqlite3.Connection, migrations: Sequence[Migration]) -> None:
    """Bring the file to the newest schema. Several processes may do so at once: the file's lock orders them.

    The connection must be in autocommit mode. Raises NewerSchemaError and sqlite3.Error.
    """
    newest = len(migrations)
    while (number := check(connection, newest) + 1) <= newest:
        connection.execute("BEGIN IMMEDIATE")
        try:
            if check(connection, newest) + 1 == number:  # no other process was faster
                _apply(connection, number, migrations[number - 1])
            connection.execute("COMMIT")
        except BaseException:
            connection.rollback()
            raise


def check(connection: sqlite3.Connection, newest: int) -> int:
    """The number of the file's newest migration, 0 for an empty file. Raises NewerSchemaError beyond `newest`."""
    number: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if number > newest:
        raise NewerSchemaError(_advice(connection, number))
    return number


def _apply(connection: sqlite3.Connection, number: int, migration: Migration) -> None:
    connection.execute(_RECORDS)
    migration.apply(connection)
    connection.execute(
        f"INSERT INTO migration (number, name, applied_at, needs) VALUES (?, ?, {_NOW}, ?)",  # noqa: S608 - a constant
        (number, migration.name, migration.since),
    )
    connection.execute(f"PRAGMA user_version = {number}")


def _advice(connection: sqlite3.Connection, number: int) -> str:
    try:
        record = connection.execute("SELECT needs FROM migration ORDER BY number DESC LIMIT 1").fetchone()
    except sqlite3.DatabaseError:
        record = None
    ours = version("smart-model-router")
    if record is None or record[0] == ours:
        needed = f"a newer smart-model-router than this {ours}"
    else:
        needed = f"smart-model-router {record[0]} or newer"
    return f"its schema {number} is newer than this smart-model-router knows: install {needed}"


_LOG = logging.getLogger(__name__)

BUSY_SECONDS = 5.0
JOURNAL_BYTES = 16 * 1024 * 1024
MIB = 1024 * 1024
OLDEST_SQLITE = (3, 35, 0)
"""RETURNING, upserts and what the scripts use of JSON."""

_NETWORK = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "afpfs", "afs", "ceph", "glusterfs", "lustre", "gpfs", "beegfs", "webdav"}
    | {f"fuse.{name}" for name in ("sshfs", "glusterfs", "s3fs", "rclone", "gcsfuse", "davfs")}
)
"""WAL needs memory that all processes share (sqlite.org/wal.html): these have none between hosts."""

_MOUNTS = Path("/proc/self/mounts")
_CREATING = threading.Lock()


class StoreUnavailableError(Exception):
    """The file or the server cannot serve as a store; `reason` says why, in words for the owner.

    `path` is where it is: the file, or the server's address without secrets.
    """

    def __init__(self, path: Path | str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class GuardedConnection(sqlite3.Connection):
    """A connection that can be closed from another thread: `guard` is held while it works, and to close it."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self.guard = threading.RLock()
        super().__init__(*args, **options)

    def close(self) -> None:
        """Close it after the work that holds the guard; safe to call twice."""
        with self.guard:
            super().close()


def filesystem_of(path: Path) -> str:
    """The type of the file system that holds `path` as the system names it; "" where it does not say."""
    try:
        mounts = [line.split() for line in _MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines()]
    except OSError:
        return ""
    found = ("", "")
    for fields in mounts:
        point = fields[1].replace("\\040", " ")
        if path.is_relative_to(point) and len(point) >= len(found[0]):
            found = (point, fields[2])
    return found[1]


def open_store(
    path: Path,
    migrations: Sequence[Migration],
    *,
    busy_seconds: float = BUSY_SECONDS,
    filesystem: Callable[[Path], str] = filesystem_of,
    keep_damaged: bool = False,
) -> GuardedConnection:
    """Open (or create) a database to write to, in WAL mode, with its newest schema, in autocommit mode.

    A file that is no database is renamed aside, and a new one made; with `keep_damaged` it is an error. The connection
    may be used by any thread. Raises StoreUnavailableError and sqlite3.Error.
    """
    _check_version(path)
    refuse(path, filesystem=filesystem)
    inode = _create(path)
    try:
        return _configured(path, migrations, busy_seconds)
    except sqlite3.DatabaseError as error:
        if keep_damaged or not is_corrupt(error):
            raise
    set_aside(path, inode)
    _create(path)
    return _configured(path, migrations, busy_seconds)


def open_to_read(path: Path, migrations: Sequence[Migration]) -> sqlite3.Connection:
    """Open a database that other processes write. Raises StoreUnavailableError."""
    _check_version(path)
    refuse(path)
    if not path.exists():
        raise StoreUnavailableError(path, "there is no such file: has a router with this store run?")
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=BUSY_SECONDS)
        try:
            if check(connection, len(migrations)) == 0:
                raise StoreUnavailableError(path, "it has none of our tables in it")
        except BaseException:
            connection.close()
            raise
    except NewerSchemaError as error:
        raise StoreUnavailableError(path, str(error)) from None
    except sqlite3.Error as error:
        raise StoreUnavailableError(path, f"it cannot be read: {error}") from None
    return connection


def refuse(path: Path, *, filesystem: Callable[[Path], str] = filesystem_of) -> None:
    """Raise StoreUnavailableError when the file, or where it would be, cannot be trusted with a store."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        found = None
    except OSError as error:
        raise StoreUnavailableError(path, error.strerror or "cannot be looked at") from None
    if found is not None:
        if stat.S_ISLNK(found.st_mode):
            raise StoreUnavailableError(path, "it is a symbolic link: name the file itself")
        if not stat.S_ISREG(found.st_mode):
            raise StoreUnavailableError(path, "it is not a regular file")
        if found.st_mode & stat.S_IWOTH:
            raise StoreUnavailableError(path, f"every user may write to it (mode {stat.S_IMODE(found.st_mode):o})")
        if hasattr(os, "geteuid") and os.geteuid() not in {0, found.st_uid}:
            raise StoreUnavailableError(path, "it belongs to another user")
    kind = filesystem(path.parent.resolve())
    if kind in _NETWORK:
        raise StoreUnavailableError(path, f"it is on a network file system ({kind}): name a local file")


def writable_problem(path: Path) -> str | None:
    """Return the reason why the store cannot be written (or made) at present, None when it can."""
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    try:
        found = os.statvfs(folder)
    except OSError as error:
        return error.strerror or "its folder cannot be looked at"
    places = (folder, path) if path.exists() else (folder,)
    if found.f_flag & os.ST_RDONLY or not all(os.access(place, os.W_OK) for place in places):
        return "it is read-only"
    return "the disk is full" if found.f_bavail * found.f_frsize < MIB else None


def has_wal_reset_bug(version: tuple[int, ...]) -> bool:
    """True when a checkpoint that meets a writer beginning the WAL anew may lose writes (sqlite.org/wal.html)."""
    return (3, 7, 0) <= version <= (3, 51, 2)


def is_corrupt(error: sqlite3.Error) -> bool:
    """True when the file itself is damaged, or no database at all."""
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def is_busy(error: sqlite3.Error) -> bool:
    """True when another connection holds the lock: trying again may succeed."""
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


def set_aside(path: Path, inode: int) -> Path | None:
    """Rename the damaged file `inode`, and the files beside it. The new name; None when another process did so."""
    with suppress(FileNotFoundError), path.open("rb") as damaged:
        if sys.platform != "win32":
            import fcntl  # noqa: PLC0415 - not everywhere

            fcntl.flock(damaged, fcntl.LOCK_EX)
        if not os.fstat(damaged.fileno()).st_ino == inode == path.stat().st_ino:
            return None
        number = 1
        while (aside := path.with_name(f"{path.name}.corrupt-{number}")).exists():
            number += 1
        path.rename(aside)
        for suffix in ("-wal", "-shm"):
            with suppress(FileNotFoundError):
                path.with_name(path.name + suffix).rename(aside.with_name(aside.name + suffix))
        _LOG.warning("%s is damaged: it was renamed to %s, and a new one begun", path, aside.name)
        return aside
    return None


def _create(path: Path) -> int:
    """Make sure that there is a file; its inode.

    One that is there is not opened: to close it again would end all locks that this process has on it, those of
    another connection of ours included (sqlite.org/howtocorrupt.html, 2.2), and the next process to leave would
    remove the write-ahead log under it.
    """
    try:
        with _CREATING:
            if not path.exists():
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                # Readable for the owner alone; SQLite gives the files beside it the same mode.
                with suppress(FileExistsError):
                    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            return path.stat().st_ino
    except OSError as error:
        raise StoreUnavailableError(path, error.strerror or "it cannot be created") from None


def _check_version(path: Path) -> None:
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        oldest = ".".join(map(str, OLDEST_SQLITE))
        raise StoreUnavailableError(path, f"SQLite {sqlite3.sqlite_version} is too old: {oldest} is needed")


def _configured(path: Path, migrations: Sequence[Migration], busy_seconds: float) -> GuardedConnection:
    connection = sqlite3.connect(
        path, timeout=busy_seconds, isolation_level=None, check_same_thread=False, factory=GuardedConnection
    )
    try:
        _wal(connection, busy_seconds)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA journal_size_limit = {JOURNAL_BYTES}")
        connection.execute("PRAGMA temp_store = MEMORY")
        # One elected process makes checkpoints (housekeeping.py): up to 3.51.2 one that runs while another
        # connection begins the WAL anew can lose what was written (sqlite.org/wal.html, "the WAL-reset bug").
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        migrate(connection, migrations)
        # Tables that another process has just made are noticed when the file is read, but not by a statement that
        # only a trigger leads there.
        connection.execute("SELECT 1 FROM sqlite_schema").fetchone()
    except NewerSchemaError as error:
        connection.close()
        raise StoreUnavailableError(path, str(error)) from None
    except BaseException:
        connection.close()
        raise
    return connection


def _wal(connection: sqlite3.Connection, seconds: float) -> None:
    """Turn WAL on. While another process does the same, SQLite says busy at once, whatever the timeout."""
    pause, attempts = 0.02, max(1, round(seconds / 0.02))
    for attempt in range(attempts):
        try:
            mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        except sqlite3.OperationalError as error:
            if not is_busy(error) or attempt == attempts - 1:
                raise
            threading.Event().wait(pause)
        else:
            if mode != "wal":
                raise sqlite3.OperationalError(f"write-ahead logging is not possible here (mode {mode})")
            return
