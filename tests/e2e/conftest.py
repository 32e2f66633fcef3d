"""What most tests of the command begin with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import anthropic
import openai
import pytest

from smart_model_router_providers.fault import FaultServer
from tests.e2e.command import STARTED, Smr
from tests.e2e.gateways import Served


@pytest.fixture(autouse=True)
def _no_program_outlives_its_test() -> Iterator[None]:
    yield
    while STARTED:
        program = STARTED.pop()
        program.kill()
        program.communicate()


@pytest.fixture
def server() -> Iterator[FaultServer]:
    """A provider that is well until a test says otherwise."""
    with FaultServer() as server:
        yield server


@pytest.fixture
def smr(tmp_path: Path) -> Smr:
    """The installed command, in an empty folder, without keys, configuration or embedded model."""
    return Smr(tmp_path)


@pytest.fixture
def chatty(gateway: Served) -> Iterator[openai.OpenAI]:
    """OpenAI's SDK before the gateway of the test's own module."""
    with openai.OpenAI(base_url=gateway.base_url + "/v1", api_key="client-secret", max_retries=0) as client:
        yield client


@pytest.fixture
def claudish(gateway: Served) -> Iterator[anthropic.Anthropic]:
    """Anthropic's SDK before the same."""
    with anthropic.Anthropic(base_url=gateway.base_url, api_key="client-secret", max_retries=0) as client:
        yield client
