"""A proxy that lets nobody through and remembers who was asked for: what a client wanted beyond the gateway."""

from __future__ import annotations

import socketserver
from threading import Thread
from typing import Self


class Elsewhere:
    """Runs in a thread of its own, until the block is left. `asked` are the hosts that clients wanted."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        asked = self.asked

        class Refusing(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                asked.append(self.rfile.readline(1000).decode("latin-1").strip())
                self.wfile.write(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Refusing)
        self._server.daemon_threads = True
        self._thread = Thread(target=self._server.serve_forever, name="elsewhere", daemon=True)

    def variables(self) -> dict[str, str]:
        """What tells a client to go through it, but for this machine's own addresses."""
        url = f"http://127.0.0.1:{self._server.server_address[1]}"
        direct = "127.0.0.1,localhost"
        names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
        proxied = dict.fromkeys([*names, *map(str.lower, names)], url)
        return {**proxied, "NO_PROXY": direct, "no_proxy": direct}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
