"""A web page of another origin asks the gateway with `fetch` in a real browser (`make browser`)."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from smart_model_router_providers.fault import FaultServer
from tests.browser.fleet import browsing
from tests.e2e.gateways import ECHO, MESSAGES, fleet, served

pytestmark = pytest.mark.loopback
KEY = "a-key-for-the-browser"
FETCH = """async ([url, key, body]) => {
  try {
    const headers = {"content-type": "application/json", "authorization": `Bearer ${key}`};
    const response = await fetch(url, {method: "POST", headers, body});
    return [response.status, response.headers.get("x-router-tier"), await response.text()];
  } catch (error) { return [0, null, String(error)]; }
}"""


class _Page(BaseHTTPRequestHandler):
    """An empty page."""

    def do_GET(self) -> None:
        """Answer with it."""
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>an application</title>")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        """Say nothing."""


@pytest.fixture(scope="module")
def origins() -> Iterator[list[str]]:
    """Two web servers with an empty page: two origins."""
    servers = [ThreadingHTTPServer(("127.0.0.1", 0), _Page) for _ in range(2)]
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    yield [f"http://127.0.0.1:{server.server_port}" for server in servers]
    for server in servers:
        server.shutdown()
        server.server_close()


def test_a_page_of_a_configured_origin_is_answered_and_no_other(origins: list[str], tmp_path: Path) -> None:
    """Whole answers, streams, errors and the router's headers can be read by a page of `gateway.cors` alone."""
    gateway = {"cors": [origins[0]], "keys": {"browser": {"key": KEY}}}
    with (
        FaultServer() as upstream,
        served(fleet(upstream, gateway=gateway), tmp_path) as running,
        browsing() as browser,
    ):
        page: Any = browser.new_context().new_page()
        url = running.base_url + "/v1/chat/completions"

        def fetch(origin: str, key: str = KEY, **changes: Any) -> list[Any]:
            page.goto(origin)
            answer: list[Any] = page.evaluate(
                FETCH, [url, key, json.dumps({"model": "smart", "messages": MESSAGES, **changes})]
            )
            return answer

        status, tier, text = fetch(origins[0])
        assert (status, tier) == (200, "frontier")
        assert ECHO in text
        status, _, text = fetch(origins[0], stream=True)
        assert status == 200
        assert text.rstrip().endswith("data: [DONE]")
        assert fetch(origins[0], model="smrat")[0] == 404
        assert fetch(origins[0], key="another-key-entirely")[0] == 401
        assert fetch(origins[1])[0] == 0
