"""The error of retrieval without an index."""

from __future__ import annotations


class IndexNotReady(IndexError):
    """There is no index, or none that this version can read. The message names the command that makes one.

    An IndexError because the founding contract says so; over HTTP it is a 503.
    """

    def __init__(self, path: object, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}; `smr index DIR` makes an index of a folder"


class IndexBusy(OSError):
    """Another process is writing to the index and did not end in time."""


class ForeignIndex(ValueError):
    """The index is of another folder: writing would remove everything of that one."""
