"""Who may call `smr serve`, how much, and what becomes of bad input. Never a traceback, never a leak."""

from __future__ import annotations

import hashlib
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from smart_model_router_providers.fault import Fault, FaultServer
from tests.e2e.gateways import MESSAGES, Served, becomes, fleet, read_all, served

Start = Callable[..., Served]
CHAT = {"model": "smart", "messages": MESSAGES}
KEY, OTHER = "vk-first-0123456789", "vk-second-0123456789"


@pytest.fixture(scope="module")
def upstream() -> Iterator[FaultServer]:
    """A provider that is well."""
    with FaultServer() as server:
        yield server


@pytest.fixture(scope="module")
def gateway(upstream: FaultServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A gateway without keys, with small limits."""
    limits = {"body_bytes": 10_000, "head_bytes": 4096, "head_timeout": "2s", "body_timeout": "2s"}
    with served(fleet(upstream), tmp_path_factory.mktemp("gateway"), gateway=limits) as running:
        yield running


@pytest.fixture
def start(upstream: FaultServer, tmp_path: Path) -> Iterator[Start]:
    """Start another one."""
    with ExitStack() as stack:

        def start(**gateway: Any) -> Served:
            return stack.enter_context(served(fleet(upstream), tmp_path, gateway=gateway))

        yield start


def ask(gateway: Served, *, path: str = "/v1/chat/completions", body: Any = CHAT, **headers: str) -> httpx2.Response:
    """One request with headers (underscores are dashes)."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx2.post(gateway.base_url + path, json=body, headers=named)


def test_keys_are_asked_for_in_every_usual_header(start: Start) -> None:
    """Bearer, x-api-key and api-key do; nothing, and anything else, is a 401 in the dialect."""
    running = start(keys={"team": {"key": KEY}, "other": {"sha256": hashlib.sha256(OTHER.encode()).hexdigest()}})
    shown = [{"authorization": f"Bearer {KEY}"}, {"x_api_key": OTHER}, {"api_key": KEY}]
    assert [ask(running, **headers).status_code for headers in shown] == [200, 200, 200]
    wrong = [{}, {"authorization": f"Bearer {KEY}x"}, {"authorization": KEY}, {"x_api_key": ""}]
    assert [ask(running, **headers).status_code for headers in wrong] == [401] * 4
    assert ask(running, path="/v1/messages").json()["error"]["type"] == "authentication_error"
    assert ask(running).json()["error"]["code"] == "invalid_api_key"
    assert httpx2.get(running.base_url + "/v1/models").status_code == 401
    assert httpx2.get(running.base_url + "/health").status_code == 401
    assert httpx2.get(running.base_url + "/health/liveness").status_code == 200


def test_a_key_is_for_the_models_it_names(start: Start) -> None:
    """Others are a 403, and not even listed."""
    running = start(keys={"team": {"key": KEY, "models": ["cl*"]}})
    assert ask(running, x_api_key=KEY).status_code == 403
    assert ask(running, x_api_key=KEY, body={**CHAT, "model": "claude", "fallbacks": ["smart"]}).status_code == 403
    assert ask(running, x_api_key=KEY, body={**CHAT, "model": "claude"}).status_code == 200
    listed = httpx2.get(running.base_url + "/v1/models", headers={"x-api-key": KEY}).json()["data"]
    assert [model["id"] for model in listed] == ["claude"]


def test_a_key_has_its_requests_a_minute(start: Start) -> None:
    """The third of two is a 429 with a Retry-After; another key is not concerned."""
    running = start(keys={"team": {"key": KEY, "rpm": 2}, "other": {"key": OTHER}})
    assert [ask(running, x_api_key=KEY).status_code for _ in range(3)] == [200, 200, 429]
    refused = ask(running, x_api_key=KEY)
    assert 0 < int(refused.headers["retry-after"]) <= 30
    assert ask(running, x_api_key=OTHER).status_code == 200


def test_a_key_has_its_tokens_a_minute(start: Start) -> None:
    """What an answer really used is charged: the next request waits."""
    running = start(keys={"team": {"key": KEY, "tpm": 20}})
    assert [ask(running, x_api_key=KEY).status_code for _ in range(3)] == [200, 429, 429]


def test_without_keys_it_listens_on_this_machine_alone(tmp_path: Path, upstream: FaultServer) -> None:
    """To be reachable by others needs keys: exit code 3, one line."""
    file = tmp_path / "c.yaml"
    file.write_text(json.dumps(fleet(upstream)), encoding="utf-8")
    command = [sys.executable, "-m", "smart_model_router.cli", "serve", "-c", str(file), "--host", "0.0.0.0"]
    code = "from smart_model_router.cli import main; main()"
    command = [sys.executable, "-c", code, *command[3:]]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=30, check=False)
    assert done.returncode == 3
    assert done.stderr.startswith("smr: gateway.host: '0.0.0.0' - an address of this machine alone")


def test_a_web_page_from_elsewhere_may_not_spend_our_money(gateway: Served) -> None:
    """Without keys a browser's cross-site request is refused; a page of this machine is not."""
    assert ask(gateway, origin="https://evil.example").status_code == 403
    assert ask(gateway, origin="null").status_code == 403
    assert ask(gateway, origin="http://localhost:3000").status_code == 200


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "the body is empty"),
        (b"{", "the body is not JSON"),
        (b"\xff\xfe", "the body is not JSON"),
        (b"[1]", "the body must be a JSON object, not list"),
        (b"null", "the body must be a JSON object, not NoneType"),
        (b'{"model": NaN}', "the body is not JSON"),
        (b"[" * 9000, "the body is not JSON"),
        (b'{"messages": [1]}', "model: a non-empty string is needed, not None"),
        (b'{"model": "smart"}', "messages: a non-empty list is needed, not None"),
        (b'{"model": "smart", "messages": [], "stream": "yes"}', "stream: true or false is needed"),
    ],
)
def test_malformed_bodies_are_a_400_that_says_what(gateway: Served, body: bytes, said: str) -> None:
    """Each dialect is told in its own shape."""
    for path in ("/v1/chat/completions", "/v1/messages"):
        status, told = gateway.post(path, body)
        assert (status, told["error"]["type"], told["error"]["message"]) == (400, "invalid_request_error", said)


def test_a_body_that_is_too_long_is_a_413(gateway: Served) -> None:
    """Announced or not, it is refused before it is read to the end."""
    assert gateway.post("/v1/chat/completions", b'{"x": "' + b"a" * 20_000)[0] == 413
    announced = gateway.send(b"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 999999999\r\n\r\n")
    assert announced.startswith(b"HTTP/1.1 413")
    assert b'"request_too_large"' in announced
    chunk = b"2000\r\n" + b"a" * 0x2000 + b"\r\n"
    chunked = gateway.send(
        b"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\n" + chunk * 3
    )
    assert chunked.startswith(b"HTTP/1.1 413")


def test_headers_have_a_limit(gateway: Served) -> None:
    """A header bomb is refused, whether it ends or not."""
    bomb = b"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\n" + b"x-a: " + b"b" * 6000
    assert gateway.send(bomb).startswith(b"HTTP/1.1 431")
    assert gateway.send(bomb + b"\r\n\r\n").startswith(b"HTTP/1.1 431")


def test_a_slow_client_is_not_waited_for(gateway: Served) -> None:
    """A head, or a body, that does not come is a 408, and the connection is closed."""
    with socket.create_connection(gateway.address, timeout=30) as wire:
        wire.sendall(b"POST /v1/messages HTT")
        assert read_all(wire).startswith(b"HTTP/1.1 408")
    with socket.create_connection(gateway.address, timeout=30) as wire:
        wire.sendall(
            b"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\ncontent-length: 50\r\n\r\n{"
        )
        assert read_all(wire).startswith(b"HTTP/1.1 408")


def test_what_is_not_http_is_refused(gateway: Served) -> None:
    """Garbage gets a 400, and the server lives on."""
    assert gateway.send(b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n").startswith(b"HTTP/1.1 400")
    assert ask(gateway).status_code == 200


def test_a_wrong_method_is_a_405_in_the_dialect(gateway: Served) -> None:
    """GET where POST is meant."""
    answer = httpx2.get(gateway.base_url + "/v1/messages")
    assert (answer.status_code, answer.json()["type"], answer.headers["allow"]) == (405, "error", "POST")


def test_sighup_takes_a_good_configuration_and_refuses_a_bad_one(start: Start, upstream: FaultServer) -> None:
    """A valid file is in use at once; a broken one changes nothing."""
    running = start()

    def models() -> list[str]:
        listed = httpx2.get(running.base_url + "/v1/models").json()["data"]
        return [model["id"] for model in listed]

    changed = fleet(upstream)
    changed["models"]["new"] = changed["models"]["smart"]
    running.file.write_text(json.dumps(changed), encoding="utf-8")
    running.process.send_signal(signal.SIGHUP)
    assert becomes(lambda: models() == ["smart", "claude", "new"])
    running.file.write_text('{"version": 1, "modles": {}}', encoding="utf-8")
    running.process.send_signal(signal.SIGHUP)
    log = running.file.parent / "gateway.log"
    assert becomes(lambda: "the old one stays" in log.read_text(encoding="utf-8"))
    assert models() == ["smart", "claude", "new"]
    assert ask(running).status_code == 200


def test_readiness_names_the_model_nobody_serves(tmp_path: Path) -> None:
    """A dead fleet: alive, but not ready, with the reason."""
    with FaultServer([Fault.status(401)]) as dead, served(fleet(dead), tmp_path) as running:
        assert httpx2.get(running.base_url + "/health/readiness").status_code == 200
        ask(running)
        told = httpx2.get(running.base_url + "/health/readiness")
        assert (told.status_code, list(told.json()["models"])) == (503, ["smart"])
        assert httpx2.get(running.base_url + "/health/liveness").json() == {"status": "ok"}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = [
    "model",
    "models",
    "fallbacks",
    "messages",
    "prompt",
    "suffix",
    "logprobs",
    "input",
    "stream",
    "stream_options",
    "tools",
    "system",
    "max_tokens",
]
bodies = st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=6), json_values, max_size=8)
likely = st.fixed_dictionaries(
    {"model": st.sampled_from(["smart", "claude", "nope"]), "messages": st.lists(json_values, max_size=3)},
    optional={
        "prompt": json_values,
        "stream": st.booleans(),
        "tools": json_values,
        "stream_options": json_values,
        "max_tokens": json_values,
    },
)
paths = st.sampled_from(
    [
        "/v1/chat/completions",
        "/v1/messages",
        "/v1/messages/count_tokens",
        "/v1/embeddings",
        "/v1/responses",
        "/v1/completions",
        "/v1/nope",
    ]
)
NAMES = ["x-router-tier", "x-router-timeout", "x-router-criticality", "x-router-max-cost", "x-stainless-timeout"]
headers = st.dictionaries(
    st.sampled_from([*NAMES, "x-router-session", "anthropic-version", "authorization", "content-type"]),
    st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=12).map(str.strip),
    max_size=3,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(path=paths, body=bodies | likely, headers=headers)
def test_no_body_and_no_header_makes_it_fail(
    gateway: Served, path: str, body: dict[str, Any], headers: dict[str, str]
) -> None:
    """Whatever is asked, the answer is a 2xx, or a 4xx with a JSON error; never a failure of ours."""
    answer = httpx2.post(gateway.base_url + path, content=json.dumps(body), headers=headers, timeout=30)
    assert answer.status_code == 200 or 400 <= answer.status_code < 500, answer.text
    assert answer.status_code == 200 or answer.json()["error"]["message"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(path=paths, body=st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_no_bytes_make_it_fail(gateway: Served, path: str, body: bytes) -> None:
    """Bytes that are no JSON are a 4xx with a JSON error."""
    answer = httpx2.post(gateway.base_url + path, content=body)
    assert 400 <= answer.status_code < 500, answer.text
    assert answer.json()["error"]["message"]


def test_nothing_is_left_after_all_that(gateway: Served) -> None:
    """Nothing is in flight."""
    assert becomes(lambda: gateway.in_flight() == 0)
