"""Documents in files that are named by the SHA-256 of their content. Blocks."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from pathlib import Path

from smart_model_router_research.engine.store_port import StoreUnavailable

_NAME = re.compile(r"[0-9a-f]{64}")


class DocumentFiles:
    """The documents of one folder, for its owner alone. Any number of processes may use it. Raises StoreUnavailable."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, content: bytes) -> str:
        """Keep a document; returns its name. It is there as a whole or not at all."""
        name = hashlib.sha256(content).hexdigest()
        path = self._path(name)
        try:
            if not path.exists():
                self._write(path, content)
        except OSError as error:
            raise StoreUnavailable(str(path), error.strerror or "it cannot be written") from error
        return name

    def get(self, name: str) -> bytes:
        """Return a document. Raises KeyError when it is not there."""
        if not _NAME.fullmatch(name):
            raise KeyError(name)
        path = self._path(name)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            raise KeyError(name) from None
        except OSError as error:
            raise StoreUnavailable(str(path), error.strerror or "it cannot be read") from error
        if hashlib.sha256(content).hexdigest() != name:
            raise StoreUnavailable(str(path), "it is damaged: its content has another SHA-256 than its name")
        return content

    def _path(self, name: str) -> Path:
        return self._folder / name[:2] / name

    def _write(self, path: Path, content: bytes) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, written = tempfile.mkstemp(dir=path.parent)  # for its owner alone
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            Path(written).replace(path)
        except BaseException:
            Path(written).unlink(missing_ok=True)
            raise
