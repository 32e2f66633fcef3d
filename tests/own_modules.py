"""A distribution of a user's own in a folder: modules to import by path, and entry points."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest


def install(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *, name: str, source: str, group: str, entries: Mapping[str, str]
) -> None:
    """Install `own_NAME` with `source`, `broken_NAME`, which raises at its import, and the entry points of `group`."""
    module = f"own_{name}"
    (folder / f"{module}.py").write_text(source, encoding="utf-8")
    (folder / f"broken_{name}.py").write_text("raise RuntimeError('no licence')", encoding="utf-8")
    made = folder / f"{module}-1.dist-info"
    made.mkdir()
    metadata = f"Metadata-Version: 2.1\nName: own-{name}\nVersion: 1\n"
    (made / "METADATA").write_text(metadata, encoding="utf-8")
    lines = "".join(f"{entry} = {where}\n" for entry, where in entries.items())
    (made / "entry_points.txt").write_text(f"[{group}]\n{lines}", encoding="utf-8")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, module, raising=False)
