"""Several processes on one socket: each a gateway of its own, with one state through the store."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from ctypes import c_bool
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from types import FrameType

from smart_model_router.gateway.asgi_app import Gateway
from smart_model_router.gateway.uvicorn_server import serve

log = logging.getLogger("smart_model_router.gateway")

RESTART_SECONDS = 1.0
"""The pause before a worker that died is replaced: one that dies at once must not keep the machine busy."""

MakeGateway = Callable[[c_bool], Gateway]
"""Makes the gateway of a worker. Its argument is shared by all of them: whether the operator has the server drain."""
_FORWARDED = ("SIGTERM", "SIGINT", "SIGHUP")


def run(make: MakeGateway, listener: socket.socket, count: int, *, ready: Callable[[], None]) -> int:
    """Serve with `count` processes until SIGINT or SIGTERM; the exit code. `make` must be importable by name.

    SIGHUP reaches every worker. One that dies is replaced; one that cannot begin ends them all, with its exit code.
    """
    pool = WorkerPool(make, listener)
    pool.hear()
    for _ in range(count):
        pool.spawn()
    if all(pool.ready(worker) for worker in pool.workers):
        ready()
        pool.watch()
    return pool.stop()


class WorkerPool:
    """The workers. Signals only set flags and wake the loop that acts on them."""

    def __init__(self, make: MakeGateway, listener: socket.socket) -> None:
        self._make = make
        self._listener = listener
        self._context = multiprocessing.get_context("spawn")
        self._heard, self._wake = socket.socketpair()
        self._draining: c_bool = self._context.RawValue(c_bool, False)
        self._stopping = False
        self._code = 0
        self.workers: list[tuple[SpawnProcess, Connection]] = []

    def hear(self) -> None:
        """Signals are for this object from now on."""
        self._wake.setblocking(False)
        for name in _FORWARDED:
            number = getattr(signal, name, None)
            if number is not None:
                signal.signal(number, self._on_signal)

    def spawn(self) -> None:
        """Start one."""
        told, tell = self._context.Pipe(duplex=False)
        worker = self._context.Process(target=_work, args=(self._make, self._draining, self._listener, tell))
        with _deaf_to_hangups():
            worker.start()
        tell.close()
        self.workers.append((worker, told))

    def ready(self, worker: tuple[SpawnProcess, Connection]) -> bool:
        """Return whether it began to serve; else its exit code is ours."""
        process, told = worker
        try:
            told.recv_bytes()
        except EOFError:
            process.join()
            self._code = 0 if self._stopping else process.exitcode or 1
            return False
        return True

    def watch(self) -> None:
        """Replace each worker that dies, until told to stop."""
        while not self._stopping:  # a signal handler sets it
            wait([self._heard, *(process.sentinel for process, _ in self.workers)])
            with suppress(BlockingIOError):
                self._heard.recv(64, socket.MSG_DONTWAIT)
            for worker in [one for one in self.workers if not one[0].is_alive()]:
                if self._told_to_stop():
                    return
                pid, code = worker[0].pid, worker[0].exitcode
                log.error("worker %s ended with exit code %s: another one takes its place", pid, code)
                self.workers.remove(worker)
                worker[1].close()
                time.sleep(RESTART_SECONDS)  # noqa: TID251 - this process does nothing else
                self.spawn()

    def stop(self) -> int:
        """Let all of them drain; the exit code."""
        self._stopping = True
        self._send(signal.SIGTERM)
        for process, told in self.workers:
            process.join()
            told.close()
        for wire in (self._listener, self._heard, self._wake):
            wire.close()
        return self._code

    def _told_to_stop(self) -> bool:
        return self._stopping

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        del frame
        hangup = getattr(signal, "SIGHUP", None)
        if number == hangup:
            self._send(number)
            return
        self._stopping = True
        self._send(signal.SIGTERM)
        with suppress(OSError):  # it is full, or all is over
            self._wake.send(b"x")

    def _send(self, number: int) -> None:
        for process, _ in self.workers:
            if process.is_alive() and process.pid is not None:
                with suppress(ProcessLookupError):
                    os.kill(process.pid, number)


@contextmanager
def _deaf_to_hangups() -> Generator[None]:
    """A process started now is not ended by a SIGHUP that comes before it knows what that means."""
    number = getattr(signal, "SIGHUP", None)
    if number is None:
        yield
        return
    before = signal.signal(number, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(number, before)


def _work(make: MakeGateway, draining: c_bool, listener: socket.socket, tell: Connection) -> None:
    """One worker, from start to end. It does not outlive the process that started it."""
    threading.Thread(target=_end_with_parent, daemon=True, name="smart-model-router parent").start()
    serve(make(draining), listener, lambda: tell.send_bytes(b"ready"))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
