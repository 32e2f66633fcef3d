"""Servers that cannot be shared by: a sentence names what is wrong, requests are served, and no password is shown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest

from smart_model_router import SmartModelRouter
from smart_model_router.testing import FakeProvider
from tests.database_servers import PostgresServer, ValkeyServer, free_port, running
from tests.e2e.command import Smr
from tests.e2e.eventually import becomes

PASSWORD = "not-to-be-shown"
MODELS = {"m": {"tiers": [{"targets": ["a/m"]}], "last_resort": []}}


def configuration(url: str, **store: Any) -> dict[str, Any]:
    """One model at one provider, and a server."""
    providers = {"a": {"kind": "openai_compatible", "base_url": "http://127.0.0.1:9/v1", "api_key": "k"}}
    return {"version": 1, "providers": providers, "models": MODELS, "store": {"shared_url": url, **store}}


def doctor(smr: Smr, folder: Path, url: str) -> tuple[int, list[dict[str, str]]]:
    """The exit code of `smr doctor`, and its findings about the server."""
    file = folder / "config.yaml"
    file.write_text(json.dumps(configuration(url)), "utf-8")
    told = smr("doctor", "-c", file, "--json")
    assert PASSWORD not in told.stdout + told.stderr
    findings = json.loads(told.stdout)["findings"]
    return told.returncode, [finding for finding in findings if finding["topic"] == "shared state"]


async def served_alone(url: str) -> str:
    """Why the state is not shared, after a request was served all the same."""
    async with SmartModelRouter.from_config(configuration(url), providers={"a": FakeProvider()}) as router:
        assert (await router.chat({"model": "m", "messages": [{"role": "user", "content": "hi"}]})).report.target
        coordinator = router._state.coordinator
        assert coordinator is not None
        await becomes(lambda: coordinator.reason.partition(" within")[0] not in ("", "no answer"))  # at the start
        return coordinator.reason


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    """One server for the tests of this module."""
    with running(PostgresServer) as server:
        yield cast("PostgresServer", server)


@pytest.mark.asyncio
async def test_a_server_that_is_not_there(smr: Smr, tmp_path: Path) -> None:
    """Exit code 3."""
    for scheme in ("valkey", "redis", "postgresql"):
        url = f"{scheme}://user:{PASSWORD}@127.0.0.1:{free_port()}/0"
        code, (found,) = doctor(smr, tmp_path, url)
        assert (code, found["level"]) == (3, "problem")
        assert "each process decides alone" in found["text"]
        assert PASSWORD not in await served_alone(url)


@pytest.mark.asyncio
async def test_a_wrong_password_and_a_user_without_rights(smr: Smr, tmp_path: Path) -> None:
    """The server's own words, without the password."""
    with running(ValkeyServer) as server:
        valkey = cast("ValkeyServer", server)
        with valkey.client() as client:
            client.execute_command("ACL", "SETUSER", "guest", "on", f">{PASSWORD}", "~other:*", "+@all")
        wrong = f"valkey://guest:{PASSWORD}-@127.0.0.1:{valkey.port}/0"
        code, (found,) = doctor(smr, tmp_path, wrong)
        assert (code, found["level"]) == (3, "problem")
        assert "invalid username-password pair" in found["text"]
        without = f"valkey://guest:{PASSWORD}@127.0.0.1:{valkey.port}/0"
        assert "no permissions" in (await served_alone(without)).lower()


def test_the_rights_that_the_page_names_are_enough(smr: Smr, tmp_path: Path) -> None:
    """The line of docs/how-to/machines.md, as it stands there."""
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "machines.md").read_text("utf-8")
    (rights,) = [line for line in page.splitlines() if line.startswith("user smr ")]
    with running(ValkeyServer) as server:
        valkey = cast("ValkeyServer", server)
        with valkey.client() as client:
            if client.info("server").get("redis_version", "7.2") < "7.2":
                rights = rights.replace(" +client|setinfo", "")  # as the page says
            client.execute_command("ACL", "SETUSER", *rights.replace(">PASSWORD", f">{PASSWORD}").split()[1:])
        url = f"valkey://smr:{PASSWORD}@127.0.0.1:{valkey.port}/0"
        code, found = doctor(smr, tmp_path, url)
        assert (code, [finding["level"] for finding in found]) == (0, ["ok"])


def test_settings_that_lose_the_state_are_warned_of(smr: Smr, tmp_path: Path) -> None:
    """Eviction of limits, and a replica."""
    options = ("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
    with running(lambda folder: ValkeyServer(folder, options=options)) as server:
        valkey = cast("ValkeyServer", server)
        code, found = doctor(smr, tmp_path, valkey.url)
        assert (code, [finding["level"] for finding in found]) == (0, ["ok", "warning"])
        assert "allkeys-lru" in found[1]["text"]
        with running(
            lambda folder: ValkeyServer(folder, options=("--replicaof", "127.0.0.1", f"{valkey.port}"))
        ) as two:
            code, (found_there,) = doctor(smr, tmp_path, cast("ValkeyServer", two).url)
            assert (code, found_there["level"]) == (3, "problem")
            assert "replica" in found_there["text"]


@pytest.mark.asyncio
async def test_a_schema_that_others_own_or_that_is_newer(postgres: PostgresServer) -> None:
    """It is left as it is."""
    url = postgres.new_database()
    with psycopg.connect(url) as connection:
        connection.execute("CREATE SCHEMA smr_shared")
    assert "smr_shared is there and was not made by the router" in await served_alone(url)
    url = postgres.new_database()
    async with SmartModelRouter.from_config(configuration(url), providers={"a": FakeProvider()}):
        pass
    with psycopg.connect(url) as connection:
        connection.execute("INSERT INTO smr_shared.migration VALUES (99, now())")
    assert "of a later version of the router (99, not " in await served_alone(url)


@pytest.mark.asyncio
async def test_a_database_user_that_may_not_make_the_schema(postgres: PostgresServer) -> None:
    """The right that is lacking is named."""
    url = postgres.new_database()
    with psycopg.connect(url) as connection:
        connection.execute("CREATE ROLE plain LOGIN")
    reason = await served_alone(url.replace("postgres@", "plain@"))
    assert "permission denied" in reason


@pytest.mark.asyncio
async def test_no_connection_is_left(postgres: PostgresServer) -> None:
    """max_connections is reached: the process decides alone."""
    url = postgres.new_database()
    with psycopg.connect(url) as connection:
        connection.execute("CREATE ROLE single LOGIN CONNECTION LIMIT 0")
    assert "too many connections" in await served_alone(url.replace("postgres@", "single@"))


@pytest.mark.parametrize(
    ("store", "says"),
    [
        ({"shared_url": f"redis://u:{PASSWORD}@h:port/0"}, "a URL is needed"),
        ({"shared_url": "valkey://h", "namespace": "{x}", "machines": -1}, "a name of letters"),
    ],
)
def test_what_is_written_wrongly(smr: Smr, tmp_path: Path, store: dict[str, Any], says: str) -> None:
    """The key and what would be right; the command exits with 3."""
    file = tmp_path / "config.yaml"
    tree = configuration("")
    tree["store"] = store
    file.write_text(json.dumps(tree), "utf-8")
    told = smr("config", "check", "-c", file)
    assert told.returncode == 3
    assert says in told.stderr + told.stdout
    assert PASSWORD not in told.stderr + told.stdout
