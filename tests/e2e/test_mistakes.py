"""The table of mistakes: each is made for real; the first two printed lines say the cause and the remedy."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from smart_model_router_providers.fault import FaultServer
from tests.e2e.gateways import Served, served
from tests.e2e.mistakes import Bench, Mistake
from tests.e2e.mistakes_at_providers import ADMIN_KEY, CLIENT_KEY, GATEWAY, PROVIDER
from tests.e2e.mistakes_in_files import COMMANDS, CONFIGURATION, KEY, MACHINE

TABLE = (*CONFIGURATION, *KEY, *COMMANDS, *MACHINE, *PROVIDER, *GATEWAY)


@pytest.fixture(scope="module")
def upstream() -> Iterator[FaultServer]:
    """The provider of every row."""
    with FaultServer() as server:
        yield server


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A gateway with a key for one of its models, before a provider that is well."""
    with FaultServer() as well:
        tree = {
            "version": 1,
            "providers": {"p": {"kind": "openai", "base_url": well.base_url, "api_key": "k"}},
            "models": {name: {"targets": ["p/gpt-5"], "last_resort": []} for name in ("smart", "other")},
            "gateway": {"keys": {"team": {"key": CLIENT_KEY, "models": ["smart"]}, "all": {"key": ADMIN_KEY}}},
        }
        with served(tree, tmp_path_factory.mktemp("gateway")) as running:
            yield running


@pytest.fixture
def bench(tmp_path: Path, upstream: FaultServer, gateway: Served) -> Iterator[Bench]:
    """A clean place of work; the log is quiet again afterwards."""
    upstream.set([])
    log = logging.getLogger("smart_model_router")
    level = log.level
    with warnings.catch_warnings():
        yield Bench(tmp_path, upstream, gateway)
    log.setLevel(level)


@pytest.mark.parametrize("mistake", TABLE, ids=lambda mistake: mistake.does)
def test_a_mistake_is_told_with_its_remedy(mistake: Mistake, bench: Bench) -> None:
    """Within two lines, whatever else is printed; and never as a bug or a traceback."""
    shown = mistake.act(bench)
    assert mistake.missing(shown) == [], shown
    assert "Traceback" not in shown
    assert "this is a bug" not in shown


def test_the_table_is_long_and_names_each_mistake_once() -> None:
    """Sixty rows at least, each with a remedy to look for."""
    assert len({mistake.does for mistake in TABLE}) == len(TABLE) >= 60
    assert [mistake.does for mistake in TABLE if not mistake.remedy] == []
