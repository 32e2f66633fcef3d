"""The configuration of the workers of `smr serve`."""

from __future__ import annotations

import json
from ctypes import c_bool
from pathlib import Path
from typing import Any

import pytest

from smart_model_router import ConfigurationError
from smart_model_router.cli.serve import Making


def written(folder: Path, **store: Any) -> Path:
    """A file with a provider of six requests a minute, and a store that shares no state."""
    config = {
        "version": 1,
        "providers": {"p": {"kind": "openai", "base_url": "http://fake.invalid", "api_key": "k", "rpm": 6}},
        "models": {"smart": {"tiers": [{"targets": ["p/m"]}], "last_resort": []}},
        "store": {"path": str(folder / "stats.db"), "shared_state": False, **store},
    }
    file = folder / "c.json"
    file.write_text(json.dumps(config), encoding="utf-8")
    return file


@pytest.mark.parametrize(("configured", "processes"), [({}, 3), ({"processes": 2}, 3), ({"processes": 6}, 6)])
def test_workers_are_processes_that_use_the_same_keys(
    tmp_path: Path, configured: dict[str, int], processes: int
) -> None:
    """Without shared state each has its part of a limit; the configuration may know of more than these."""
    gateway = Making(written(tmp_path, **configured), workers=3)(c_bool(False))
    assert gateway.generation.config.store.processes == processes


def test_more_workers_than_requests_a_minute_are_refused(tmp_path: Path) -> None:
    """A part below one request a minute serves nothing."""
    with pytest.raises(ConfigurationError, match=r"store.processes: 7 - at most 6 without a store that shares"):
        Making(written(tmp_path), workers=7).load()
