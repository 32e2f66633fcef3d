"""The fault server: a provider on a loopback port that fails as its script says."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from threading import Thread, current_thread
from types import TracebackType
from typing import Self

from smart_model_router_providers.fault.backend import KEPT_REQUESTS, Backend, LoggedCalls
from smart_model_router_providers.fault.http1 import Connection, Service
from smart_model_router_providers.fault.script import Script, check

Outage = tuple[float, float | None]
"""The begin and the end (None: never) of refused connections, as instants on the loop's clock."""

BACKLOG = 2048
TICK = 1e-6  # seconds


class Door:
    """Lets clients in, except during outages: then connections are refused and open ones are reset.

    It accepts by itself. An asyncio.Server that is closed between accepting a client and making its transport
    leaks that client (CPython 3.11), and it cannot be opened again without a turn of the loop.
    """

    def __init__(self, host: str, port: int, service: Service) -> None:
        self._loop = asyncio.get_running_loop()
        self._service = service
        self._host = host
        self._socket = _bound(host, port)
        self.port: int = self._socket.getsockname()[1]
        self._open = False
        self._outages: Sequence[Outage] = ()
        self._timers: list[asyncio.TimerHandle] = []
        self._arriving: set[asyncio.Task[object]] = set()
        self._connections: set[Connection] = set()

    def watch(self, outages: Sequence[Outage]) -> None:
        """Keep to these outages and no others from now on; one that is due begins at once."""
        for timer in self._timers:
            timer.cancel()
        self._outages = outages
        instants = {instant for outage in outages for instant in outage if instant is not None}
        now = self._loop.time()
        self._timers = [self._loop.call_at(at, self._turn) for at in instants if at > now]
        self._turn()

    async def aclose(self) -> None:
        """Reset every connection and give the port back."""
        for timer in self._timers:
            timer.cancel()
        self._shut()
        self._socket.close()
        await asyncio.gather(*self._arriving)
        for connection in list(self._connections):
            await connection.lost

    def _turn(self) -> None:
        """Open or shut, whichever is due."""
        # A timer may ring a tick early: without this the outage it rings for would still be to come.
        now = self._loop.time() + TICK
        down = any(start <= now and (stop is None or now < stop) for start, stop in self._outages)
        if down and self._open:
            self._shut()
            # Bound but not listening: connections are refused, and no other program gets the port.
            self._socket = _bound(self._host, self.port)
        elif not down and not self._open:
            self._socket.listen(BACKLOG)
            self._loop.add_reader(self._socket, self._accept)
            self._open = True

    def _shut(self) -> None:
        if self._open:
            self._loop.remove_reader(self._socket)
            self._socket.close()
            self._open = False
        for connection in list(self._connections):
            connection.reset()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._socket.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            client.setblocking(False)
            arriving = self._loop.create_task(self._loop.connect_accepted_socket(self._connection, client))
            self._arriving.add(arriving)
            arriving.add_done_callback(self._arriving.discard)

    def _connection(self) -> Connection:
        return Connection(self._service, self._connections, lambda: self._open, self._loop)


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.setblocking(False)
        made.bind((host, port))
    except OSError:
        made.close()
        raise
    return made


# A provider's Date is a wall clock's; nothing of ours decides by it.
WALL: Callable[[], float] = time.time  # noqa: TID251


class FaultServer(LoggedCalls):
    """A provider that speaks Chat Completions, Messages, Responses and Embeddings over real sockets.

    `async with` runs it on the caller's event loop; a plain `with` runs it in a thread of its own, and then
    every method may be called from any thread. `seed` repeats its luck. `text` is what it answers; by
    default it echoes the last user message after its `name`. The newest `keep_requests` requests are kept
    in full. Raises ConfigurationError for a script that makes no sense, OSError when the port is taken.
    """

    def __init__(
        self,
        script: Script = None,
        seed: int = 0,
        *,
        name: str = "fault-server",
        text: str | None = None,
        models: Sequence[str] = ("fault",),
        host: str = "127.0.0.1",
        port: int = 0,
        keep_requests: int = KEPT_REQUESTS,
    ) -> None:
        self._backend = Backend(
            script,
            seed=seed,
            name=name,
            text=text,
            models=models,
            keep_requests=keep_requests,
            now=time.monotonic(),
            wall=WALL,
        )
        self._host = host
        self._port = port
        self._loop: asyncio.AbstractEventLoop | None = None
        self._door: Door | None = None
        self._thread: Thread | None = None
        self._leave: asyncio.Event | None = None

    @property
    def base_url(self) -> str:
        """The URL for clients, `http://127.0.0.1:PORT/v1`. It serves OpenAI's SDK and Anthropic's."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._port}/v1"

    @property
    def port(self) -> int:
        """The port it has, also while it is down. 0 before it first started, unless one was asked for."""
        return self._port

    @property
    def script(self) -> Script:
        """The script in force. Assigning calls `set`."""
        return self._backend.script

    @script.setter
    def script(self, script: Script) -> None:
        self.set(script)

    def set(self, script: Script) -> None:
        """Follow another script from now on; its seconds begin now. Calls under way keep their fate."""
        check(script)
        self._on_loop(lambda: self._begin_script(script))

    def reset(self) -> None:
        """Forget every call and begin the script anew. Calls under way keep their fate."""
        self._backend.forget()
        self.set(self.script)

    async def start(self) -> None:
        """Listen; the script's seconds begin now."""
        if self._loop is not None:
            raise RuntimeError("the fault server is running already")
        self._loop = asyncio.get_running_loop()
        try:
            self._door = Door(self._host, self._port, self._backend)
        except OSError:
            self._loop = None
            raise
        self._port = self._door.port
        self._begin_script(self.script)

    async def aclose(self) -> None:
        """Reset every connection and stop listening; safe to call twice."""
        door, self._door, self._loop = self._door, None, None
        if door is not None:
            await door.aclose()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __enter__(self) -> Self:
        started: Future[None] = Future()
        self._thread = Thread(target=lambda: asyncio.run(self._live(started)), name="fault-server", daemon=True)
        self._thread.start()
        started.result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        loop, leave, thread = self._loop, self._leave, self._thread
        if loop is not None and leave is not None and thread is not None:
            loop.call_soon_threadsafe(leave.set)
            thread.join()

    async def _live(self, started: Future[None]) -> None:
        """Run in the thread of a plain `with`."""
        try:
            await self.start()
        except BaseException as error:  # noqa: BLE001  the caller's thread raises it
            started.set_exception(error)
            return
        self._leave = asyncio.Event()
        started.set_result(None)
        await self._leave.wait()
        await self.aclose()

    def _begin_script(self, script: Script) -> None:
        now = time.monotonic() if self._loop is None else self._loop.time()
        self._backend.set(script, now)
        if self._door is not None:
            outages = self._backend.running.outages()
            self._door.watch([(now + start, None if stop is None else now + stop) for start, stop in outages])

    def _on_loop(self, act: Callable[[], None]) -> None:
        """Act on the server's own loop, from whichever thread, and return when it is done."""
        if self._loop is None or self._thread is None or current_thread() is self._thread:
            act()
            return
        done: Future[None] = Future()

        def acted() -> None:
            act()
            done.set_result(None)

        self._loop.call_soon_threadsafe(acted)
        done.result()


async def serve(
    script: Script = None,
    *,
    seed: int = 0,
    host: str = "127.0.0.1",
    port: int = 0,
    on_ready: Callable[[FaultServer], None],
) -> None:
    """Run a fault server until cancelled; `on_ready` is called once it listens."""
    async with FaultServer(script, seed, host=host, port=port) as server:
        on_ready(server)
        await asyncio.get_running_loop().create_future()
