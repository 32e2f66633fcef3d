"""`gateway.cors`: the headers by which a browser lets a page of another origin read answers."""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
import pytest

from smart_model_router_providers.fault import FaultServer
from tests.e2e.gateways import MESSAGES, Served, fleet, served

APP = "https://app.example.com"
ASK = {"model": "smart", "messages": MESSAGES}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A gateway without keys that pages of one origin may ask."""
    with FaultServer() as upstream:
        config = fleet(upstream, gateway={"cors": [APP]})
        with served(config, tmp_path_factory.mktemp("gateway")) as running:
            yield running


def preflight(gateway: Served, origin: str) -> httpx2.Response:
    """The question a browser asks before a POST with a key."""
    asked = {
        "origin": origin,
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,content-type,x-stainless-lang",
    }
    return httpx2.options(gateway.base_url + "/v1/chat/completions", headers=asked)


def test_a_preflight_is_answered_by_origin(gateway: Served) -> None:
    """The configured origin may send what SDKs send; another one is refused."""
    told = preflight(gateway, APP)
    assert told.status_code == 200
    assert told.headers["access-control-allow-origin"] == APP
    assert "x-stainless-lang" in told.headers["access-control-allow-headers"]
    other = preflight(gateway, "https://evil.example.com")
    assert other.status_code == 400
    assert "access-control-allow-origin" not in other.headers


@pytest.mark.parametrize("body", [ASK, {**ASK, "stream": True}, {**ASK, "model": "unknown"}, {}])
def test_every_answer_can_be_read_by_the_configured_origin(gateway: Served, body: dict[str, object]) -> None:
    """Whole answers, streams and errors alike, with our own headers."""
    told = httpx2.post(gateway.base_url + "/v1/chat/completions", json=body, headers={"origin": APP})
    assert told.headers["access-control-allow-origin"] == APP
    assert told.headers["access-control-expose-headers"] == "*"


def test_a_page_of_another_origin_is_refused_without_keys(gateway: Served) -> None:
    """It could spend the owner's money even if it cannot read the answer."""
    told = httpx2.post(
        gateway.base_url + "/v1/chat/completions", json=ASK, headers={"origin": "https://evil.example.com"}
    )
    assert told.status_code == 403
    assert "access-control-allow-origin" not in told.headers
