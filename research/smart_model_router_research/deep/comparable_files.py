"""The artefacts of two runs compared: what two runs of one topic have in common, and what their occasion decides."""

from __future__ import annotations

from pathlib import Path

from smart_model_router_research.deep.artefact_records import MANIFEST
from smart_model_router_research.deep.canonical_json import canonical, read_json
from smart_model_router_research.deep.verifying import read_folder

_OCCASION = ("run_id", "finished_at", "engine")


def comparable_files(folder: Path) -> dict[str, bytes]:
    """Return the files of a run without times, ids and the name of the engine, nor the hash of these.

    Two runs of one topic over the same sources have the same ones. Raises OSError, ArtefactError, KeyError.
    """
    files = read_folder(folder)
    manifest = read_json(files[MANIFEST], MANIFEST)
    facts = {name: value for name, value in manifest["run"].items() if name not in _OCCASION}
    kept = {name: value for name, value in manifest.items() if name != "sha256"}
    return files | {MANIFEST: canonical({**kept, "run": facts})}
