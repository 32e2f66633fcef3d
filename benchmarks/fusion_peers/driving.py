"""The work of every driver: read jobs from stdin, fuse each, and tell what came out and what became of the input.

It runs in the peer's own environment, so it imports nothing but the standard library.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

Lists = dict[str, list[tuple[str, float]]]
"""Strategy -> (id, its own score), best first."""


@dataclass(frozen=True)
class Job:
    """Lists to fuse, what each counts (None: as the library does by itself), and the library's name of the method."""

    lists: Lists
    weights: dict[str, float] | None
    mode: str


@dataclass(frozen=True)
class Fused:
    """Ids, best first; the fused score of each where the library gives one; whether it explains one; was input kept."""

    ids: Sequence[str]
    scores: Sequence[float | None]
    explained: bool
    unmutated: bool


def drive(package: str, fuse: Callable[[Job], Fused]) -> None:
    """Do every job of stdin, and print one JSON object."""
    told: list[dict[str, Any]] = []
    for job in json.load(sys.stdin):
        lists = {name: [(key, score) for key, score in found] for name, found in job["lists"].items()}
        fused = fuse(Job(lists, job["weights"], job["mode"]))
        told.append(
            {
                "ids": list(fused.ids),
                "scores": list(fused.scores),
                "explained": fused.explained,
                "unmutated": fused.unmutated,
            }
        )
    json.dump({"version": f"{package} {version(package)}", "fused": told}, sys.stdout)
