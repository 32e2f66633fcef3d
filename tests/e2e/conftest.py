"""What most tests of the command begin with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from smart_model_router_providers.fault import FaultServer
from tests.e2e.command import Smr


@pytest.fixture
def server() -> Iterator[FaultServer]:
    """A provider that is well until a test says otherwise."""
    with FaultServer() as server:
        yield server


@pytest.fixture
def smr(tmp_path: Path) -> Smr:
    """The installed command, in an empty folder, without keys, configuration or embedded model."""
    return Smr(tmp_path)
