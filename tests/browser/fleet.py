"""What the browser looks at: a real gateway over two providers that fail on command, and a page that is watched."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from smart_model_router_providers.fault import FaultServer
from tests.e2e.gateways import MESSAGES, Served, fleet, served

playwright: Any = pytest.importorskip("playwright.sync_api", reason="make browser sets itself up")

OPEN_SECONDS = 4
RESILIENCE = {"breaker": {"open": f"{OPEN_SECONDS}s"}, "cooldown": {"failure": "1s"}}


class Stage:
    """Two providers and a gateway; `primary` is preferred."""

    def __init__(self, primary: FaultServer, second: FaultServer, gateway: Served) -> None:
        self.primary = primary
        self.second = second
        self.gateway = gateway

    def ask(self, times: int = 1, *, at_once: int = 1, headers: Mapping[str, str] | None = None) -> list[int]:
        """Ask for `smart`; the statuses."""
        body = {"model": "smart", "messages": MESSAGES}

        def one(_: int) -> int:
            return client.post("/v1/chat/completions", json=body, headers=headers).status_code

        # One client: eight of them take a slow machine longer to make than the requests may be apart.
        with httpx2.Client(base_url=self.gateway.base_url, timeout=30) as client, ThreadPoolExecutor(at_once) as pool:
            return list(pool.map(one, range(times)))


@contextmanager
def stage(folder: Path, **sections: Any) -> Generator[Stage]:
    """A running stage."""
    with FaultServer(name="a") as a, FaultServer(name="b") as b:
        config = {**fleet(a, b), "resilience": RESILIENCE, **sections}
        with served(config, folder) as gateway:
            yield Stage(a, b, gateway)


class Watched:
    """A page, with everything it asked for and everything it complained of."""

    def __init__(self, context: Any, base_url: str) -> None:
        self.page = context.new_page()
        self.base_url = base_url
        self.asked: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", self._asked_back)

    def _said(self, message: Any) -> None:
        if message.type == "error":
            self.complaints.append(message.text)

    def _asked_back(self, dialog: Any) -> None:
        self.complaints.append(f"dialog {dialog.message}")
        dialog.dismiss()

    def open(self) -> Any:
        """Go there and wait for the first picture."""
        self.page.goto(self.base_url + "/dashboard")
        self.page.wait_for_selector("#targets tbody tr")
        return self.page

    def pill(self, target: str) -> Any:
        """The state pill of a target."""
        return self.page.locator(f'#targets tr[data-key="{target}"] .pill')

    def assert_clean(self) -> None:
        """Nothing was asked of another host, and nothing was complained of."""
        assert [url for url in self.asked if not url.startswith(self.base_url + "/")] == []
        assert self.complaints == [], self.complaints


@contextmanager
def browsing() -> Generator[Any]:
    """A browser."""
    with playwright.sync_playwright() as driver:
        # --no-sandbox: containers run this as root, and the pages are our own.
        browser = driver.chromium.launch(executable_path=os.environ["SMR_BROWSER"], args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()
