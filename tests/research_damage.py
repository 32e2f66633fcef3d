"""Damage to the example folder of artefacts: values that are changed with every hash made anew."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from smart_model_router_research.deep.artefact_files import self_hash
from smart_model_router_research.deep.artefact_records import MANIFEST
from smart_model_router_research.deep.canonical_json import canonical, canonical_lines, sha256_bytes
from tests.research_runs import EXAMPLE

FILES = {path.relative_to(EXAMPLE).as_posix(): path.read_bytes() for path in sorted(EXAMPLE.rglob("*.*"))}


def written(files: dict[str, bytes], folder: Path) -> Path:
    """Write these files to a folder."""
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return folder


def resealed(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return the files with a manifest whose hashes fit them."""
    manifest = json.loads(files[MANIFEST])
    for row in manifest["files"]:
        row |= {"sha256": sha256_bytes(files[row["path"]]), "bytes": len(files[row["path"]])}
    manifest["sha256"] = self_hash(manifest)
    return {**files, MANIFEST: canonical(manifest)}


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the paths of the values of a JSON value."""
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(each, (*path, key))
    else:
        yield path


def changed(value: object) -> object:
    """Return another value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return {"A": "B", "fact": "number", "quoted": "edited", "edited": "quoted"}.get(str(value), f"{value or ''}x")


def name_of(path: tuple[str | int, ...]) -> str:
    """Return the list or object of a value, and its key."""
    names = [each for each in path if isinstance(each, str)]
    return f"{names[0]}.{names[-1]}"


def forged(path: str, place: tuple[str | int, ...], value: object = ...) -> dict[str, bytes]:
    """Return the example with one value changed, to `value` or to any other, and its hashes made anew."""
    rows = [json.loads(line) for line in FILES[path].splitlines()]
    where: Any = rows
    for each in place[:-1]:
        where = where[each]
    where[place[-1]] = changed(where[place[-1]]) if value is ... else value
    return resealed({**FILES, path: canonical_lines(rows)})


def values_in(path: str) -> list[tuple[str | int, ...]]:
    """Return the place of each value in a file of JSON, but for hashes and what the manifest says of files."""
    rows = [json.loads(line) for line in FILES[path].splitlines()]
    return [place for place in leaves(rows) if place[-1] != "sha256" and place[1] != "files"]


def each_kind(path: str) -> list[tuple[str | int, ...]]:
    """Return the place of one value of each kind: of each path without positions the last one."""
    found = {tuple(each for each in place if isinstance(each, str)): place for place in values_in(path)}
    return list(found.values())
