"""Paths that pass through the gateway, by the clients that ask them: moderations, audio, images, rerank."""

from __future__ import annotations

import contextlib
import hashlib
import json
import socket
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

from tests.e2e.eventually import PATIENCE
from tests.e2e.gateways import MESSAGES, Served, becomes, footprint, read_all, served
from tests.e2e.passing_upstream import SOUND, Handler, PassingUpstream, idle, short, silent, stalled, status, torn

KEYS: dict[str, dict[str, Any]] = {
    "app": {"key": "client-secret-long-enough"},
    "narrow": {"key": "narrow-secret-long-enough", "models": ["smart", "/v1/moderations"]},
    "slow": {"key": "slow-secret-long-enough", "rpm": 1},
    "spender": {"key": "spender-secret-long-enough", "usd_per_day": 5},
    "operator": {"key": "admin-secret-long-enough", "admin": True},
}
TIMEOUTS = {"timeouts": {"connect": "10s"}}


def fleet(*upstreams: PassingUpstream, routes: Mapping[str, list[str]], **passthrough: Any) -> dict[str, Any]:
    """A configuration over these providers, `one` and `two`, with chat and what passes through."""
    names = ("one", "two")[: len(upstreams)]
    providers = {
        name: {"kind": "openai", "base_url": upstream.base_url, "api_key": "upstream-key"}
        for name, upstream in zip(names, upstreams, strict=True)
    }
    return {
        "version": 1,
        "providers": providers,
        "models": {"smart": {"targets": ["one/big"], "last_resort": []}},
        "resilience": TIMEOUTS,
        "gateway": {"keys": KEYS, "passthrough": {"routes": routes, **passthrough}},
    }


@contextlib.contextmanager
def client_of(gateway: Served, key: str = "app") -> Generator[openai.OpenAI]:
    """OpenAI's SDK before the gateway."""
    with openai.OpenAI(base_url=gateway.base_url + "/v1", api_key=KEYS[key]["key"], max_retries=0) as client:
        yield client


@pytest.fixture(scope="module")
def upstream() -> Iterator[PassingUpstream]:
    """A provider that is well until a test says otherwise."""
    with PassingUpstream() as upstream:
        yield upstream


ALL = {"/v1/moderations": ["one/omni"], "/v1/audio/*": ["one"], "/v1/images/*": ["one"], "/v1/rerank": ["one"]}


@pytest.fixture(scope="module")
def shared(upstream: PassingUpstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A gateway for the tests that leave no trace in it."""
    config = fleet(upstream, routes=ALL, max_body=200_000_000)
    with served(config, tmp_path_factory.mktemp("gateway")) as running:
        yield running


@pytest.fixture
def gateway(shared: Served, upstream: PassingUpstream) -> Served:
    """The same, with the provider being well."""
    upstream.set(None)
    return shared


@pytest.fixture
def client(gateway: Served) -> Iterator[openai.OpenAI]:
    """OpenAI's SDK before it."""
    with client_of(gateway) as client:
        yield client


# What real clients ask --------------------------------------------------------------------------------------------


def test_moderations_pass_through(client: openai.OpenAI, upstream: PassingUpstream) -> None:
    """The body arrives as the client wrote it, under the provider's key; the answer comes back with our headers."""
    raw = client.moderations.with_raw_response.create(model="omni-moderation-latest", input="hello")
    assert raw.parse().results[0].flagged is False
    (seen,) = upstream.seen
    assert (seen.path, json.loads(seen.body)) == (
        "/v1/moderations",
        {"model": "omni-moderation-latest", "input": "hello"},
    )
    assert seen.headers["authorization"] == "Bearer upstream-key"
    assert "client-secret" not in str(seen.headers)
    assert raw.headers["x-router-provider"] == "one"
    assert raw.headers["x-router-attempts"] == "1"
    assert raw.headers["x-request-id"].startswith("req-")
    assert "x-secret" not in raw.headers


def test_an_upload_passes_through(client: openai.OpenAI, upstream: PassingUpstream) -> None:
    """A multipart body, its boundary with it, byte for byte."""
    answer = client.audio.transcriptions.create(model="whisper-1", file=("speech.wav", SOUND, "audio/wav"))
    assert answer.text == "as it was said"
    (seen,) = upstream.seen
    assert seen.path == "/v1/audio/transcriptions"
    assert seen.headers["content-type"].startswith("multipart/form-data; boundary=")
    assert SOUND in seen.body
    assert b"whisper-1" in seen.body


def test_speech_streams_through(client: openai.OpenAI) -> None:
    """An answer that is no JSON, in pieces as they come."""
    with client.audio.speech.with_streaming_response.create(model="tts-1", voice="alloy", input="hello") as answer:
        assert answer.headers["content-type"] == "audio/mpeg"
        assert b"".join(answer.iter_bytes()) == SOUND


def test_images_pass_through(client: openai.OpenAI, upstream: PassingUpstream) -> None:
    """A route with a `*`."""
    answer = client.images.generate(model="gpt-image-1", prompt="a hill")
    assert answer.data is not None
    assert answer.data[0].b64_json == "AAAA"
    assert [seen.path for seen in upstream.seen] == ["/v1/images/generations"]


def test_azures_client_passes_through(gateway: Served, upstream: PassingUpstream) -> None:
    """AzureOpenAI's paths, with the model in the path; its `api-version` is ours to read."""
    with openai.AzureOpenAI(
        azure_endpoint=gateway.base_url,
        api_key=KEYS["app"]["key"],
        api_version="2024-10-21",
        max_retries=0,
    ) as client:
        speech = client.audio.speech.create(model="a/tts", voice="alloy", input="hello")
        assert speech.read() == SOUND
        image = client.images.generate(model="dall-e-3", prompt="a hill")
        assert image.data
        told = client.audio.transcriptions.create(model="whisper", file=("a.wav", b"RIFF", "audio/wav"))
        assert told.text == "as it was said"
    assert [seen.path for seen in upstream.seen] == [
        "/v1/audio/speech",
        "/v1/images/generations",
        "/v1/audio/transcriptions",
    ]


def test_a_query_string_goes_on(gateway: Served, upstream: PassingUpstream) -> None:
    """As it came, but for the version that AzureOpenAI tells us."""
    url = f"{gateway.base_url}/audio/speech?format=mp3&api-version=1&tag=a%20b"
    assert httpx2.post(url, json={}, headers=_key("app")).content == SOUND
    assert [seen.path for seen in upstream.seen] == ["/v1/audio/speech?format=mp3&tag=a%20b"]


def test_a_body_of_unknown_length_passes_through(gateway: Served, upstream: PassingUpstream) -> None:
    """Chunks in, chunks out; what the client says of their encoding goes on."""

    def pieces() -> Iterator[bytes]:
        for _ in range(40):
            yield SOUND

    headers = {**_key("app"), "content-encoding": "x-pcm"}
    answer = httpx2.post(f"{gateway.base_url}/v1/audio/transcriptions", content=pieces(), headers=headers)
    assert answer.json() == {"text": "as it was said"}
    (seen,) = upstream.seen
    assert seen.headers["content-encoding"] == "x-pcm"
    assert (seen.size, seen.digest) == (40 * len(SOUND), hashlib.sha256(SOUND * 40).hexdigest())


def test_100_mb_pass_through_without_being_held(gateway: Served, upstream: PassingUpstream) -> None:
    """A body of 100 MB arrives whole, and the gateway's memory grows by less than 16 MB.

    benchmarks/passthrough.py has 1 GB.
    """
    httpx2.post(f"{gateway.base_url}/v1/audio/transcriptions", content=SOUND, headers=_key("app")).raise_for_status()
    upstream.set(None)
    before, count = footprint(gateway.process.pid)[1], 400

    def pieces() -> Iterator[bytes]:
        for _ in range(count):
            yield SOUND

    length = {"content-length": str(count * len(SOUND)), "content-type": "multipart/form-data; boundary=x"}
    headers = {**_key("app"), **length}
    answer = httpx2.post(
        f"{gateway.base_url}/v1/audio/transcriptions", content=pieces(), headers=headers, timeout=PATIENCE
    )
    assert answer.status_code == 200, answer.text
    (seen,) = upstream.seen
    assert (seen.size, seen.headers["content-length"]) == (count * len(SOUND), length["content-length"])
    assert seen.digest == hashlib.sha256(SOUND * count).hexdigest()
    assert peak(gateway.process.pid) - before < 16 * 1024


def _key(name: str) -> dict[str, str]:
    return {"authorization": f"Bearer {KEYS[name]['key']}"}


def peak(pid: int) -> int:
    """The most resident memory that a process ever had, in KiB."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


# Keys, limits, paths ----------------------------------------------------------------------------------------------


def test_a_key_is_needed_and_bounds_what_it_may_use(gateway: Served, upstream: PassingUpstream) -> None:
    """A route stands in the place of a model: `models` names it. Without a key nothing is sent."""
    assert httpx2.post(f"{gateway.base_url}/v1/moderations", json={}).status_code == 401
    with client_of(gateway, "narrow") as narrow:
        assert narrow.moderations.create(input="hello").results
        with pytest.raises(openai.PermissionDeniedError, match=r"/v1/images/\*"):
            narrow.images.generate(prompt="a hill")
    assert len(upstream.seen) == 1


def test_requests_a_minute_are_counted(gateway: Served) -> None:
    """`rpm` of a key, as for any call."""
    with client_of(gateway, "slow") as slow:
        assert slow.moderations.create(input="hello").results
        with pytest.raises(openai.RateLimitError) as caught:
            slow.images.generate(prompt="a hill")
    assert int(caught.value.response.headers["retry-after"]) > 0


def test_a_budget_in_usd_is_not_spent_where_the_price_is_unknown(gateway: Served, upstream: PassingUpstream) -> None:
    """What passes through has no known price: refused, with what would be right, before anything is sent."""
    with client_of(gateway, "spender") as spender, pytest.raises(openai.BadRequestError, match="unpriced: allow"):
        spender.moderations.create(input="hello")
    assert upstream.seen == []


@pytest.mark.parametrize(
    ("path", "number", "said"),
    [
        ("/v1/audio/../chat/completions", 404, "there is no POST"),
        ("/v1/audio/%2e%2e/chat/completions", 404, "there is no POST"),
        ("/v1/audio/..%2f..%2fadmin", 404, "there is no POST"),
        ("/v1/audio//speech", 404, "there is no POST"),
        ("/v1/audio/sp%00eech", 404, "there is no POST"),
        ("/v1/images/x%3fkey=1", 404, "there is no POST"),
        ("/v1/audio", 404, "there is no POST"),
        ("/v1/files", 404, "files are kept at one provider"),
    ],
)
def test_a_path_that_could_lead_elsewhere_goes_nowhere(
    gateway: Served, upstream: PassingUpstream, path: str, number: int, said: str
) -> None:
    """Dots, encoded slashes, empty segments: a 404 here, and nothing at the provider."""
    status_code, body = gateway.post(path, b"{}", f"authorization: Bearer {KEYS['app']['key']}")
    assert (status_code, upstream.seen) == (number, [])
    assert said in body["error"]["message"]


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH"])
def test_another_method_is_a_405(gateway: Served, method: str) -> None:
    """With the method that would be right."""
    answer = httpx2.request(method, f"{gateway.base_url}/v1/audio/speech", headers=_key("app"))
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert answer.json()["error"]["message"] == f"/v1/audio/speech takes no {method} (Allow: POST)"


def test_two_lengths_are_a_400(gateway: Served, upstream: PassingUpstream) -> None:
    """Where a body ends must not be in doubt."""
    head = f"POST /v1/moderations HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEYS['app']['key']}\r\n"
    for lengths in ("content-length: 2\r\ncontent-length: 3", "content-length: 2\r\ntransfer-encoding: chunked"):
        told = gateway.send(f"{head}{lengths}\r\n\r\n{{}}x".encode(), silence=2.0)
        assert told.split()[1] == b"400", told
    assert upstream.seen == []


def test_a_body_above_max_body_is_a_413(gateway: Served, upstream: PassingUpstream) -> None:
    """At once where its length is told, and where it is not as soon as it is too long: then the call ends, too."""
    head = f"POST /v1/audio/transcriptions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEYS['app']['key']}\r\n"
    told = gateway.send(f"{head}content-length: 200000001\r\n\r\n".encode())
    assert told.split()[1] == b"413"
    assert upstream.seen == []


def test_a_path_without_a_route_says_so(upstream: PassingUpstream, tmp_path: Path) -> None:
    """The key of the configuration, and the routes that are there. Nothing passes through by default."""
    upstream.set(None)
    with troubled(upstream, tmp_path, {}) as (_, client), pytest.raises(openai.NotFoundError) as caught:
        client.moderations.create(input="hello")
    assert "gateway.passthrough.routes" in caught.value.message
    assert upstream.seen == []


# Providers that fail ----------------------------------------------------------------------------------------------


@contextlib.contextmanager
def troubled(
    upstream: PassingUpstream, folder: Path, routes: Mapping[str, list[str]] = ALL, **passthrough: Any
) -> Generator[tuple[Served, openai.OpenAI]]:
    """A gateway of one's own, for what leaves a trace in it."""
    with served(fleet(upstream, routes=routes, **passthrough), folder) as running, client_of(running) as client:
        yield running, client


def chat(client: openai.OpenAI) -> str | None:
    """What the model of the same provider says."""
    return client.chat.completions.create(model="smart", messages=MESSAGES).choices[0].message.content


def speak(client: openai.OpenAI) -> bytes:
    """Speech, read whole."""
    return client.audio.speech.create(model="tts-1", voice="alloy", input="hello").read()


def state_of(gateway: Served, target: str) -> dict[str, Any]:
    """What /health says of a target."""
    told = httpx2.get(f"{gateway.base_url}/health", headers=_key("operator")).json()
    found: dict[str, Any] = next(one for one in told["targets"] if one["id"] == target)
    return found


@pytest.mark.parametrize("lie", [short, torn])
def test_a_body_that_breaks_off_is_no_whole_answer(
    upstream: PassingUpstream, tmp_path: Path, lie: Callable[..., None]
) -> None:
    """The client sees what came and then a broken connection, never a clean end; the call counts as a failure."""
    with troubled(upstream, tmp_path) as (running, client):
        upstream.set(lie)
        speaking = client.audio.speech.with_streaming_response.create(model="t", voice="a", input="x")
        with speaking as answer, pytest.raises(httpx2.HTTPError):
            answer.read()
        figures = httpx2.get(f"{running.base_url}/api/stats", headers=_key("operator")).json()["targets"]
        assert figures["one/v1/audio/speech"]["failures"] == {"TRUNCATED": 1}
        upstream.set(None)
        assert speak(client) == SOUND


def test_a_missing_path_is_passed_on_and_takes_only_its_route_off(upstream: PassingUpstream, tmp_path: Path) -> None:
    """The provider's own 404, then one of ours without a call; the other paths and the model go on."""
    with troubled(upstream, tmp_path) as (running, client):
        for number in (404, 405):
            path = "/v1/audio/speech" if number == 404 else "/v1/images/generations"
            url = running.base_url + path
            upstream.set(status(number))
            first = httpx2.post(url, json={}, headers=_key("app"))
            assert (first.status_code, first.json()["error"]["type"]) == (number, "upstream")
            upstream.set(None)
            second = httpx2.post(url, json={}, headers=_key("app"))
            assert second.status_code == 404
            assert "gateway.passthrough.routes" in second.json()["error"]["message"]
            assert upstream.seen == []
            assert state_of(running, f"one{path}")["refusal"] == "off"
        assert chat(client) == "hello"
        assert client.audio.transcriptions.create(model="w", file=("a.wav", b"x")).text == "as it was said"
        assert state_of(running, "one/big")["refusal"] is None


def test_a_path_that_only_the_client_names_takes_nothing_off(upstream: PassingUpstream, tmp_path: Path) -> None:
    """A 404 for a guess below a `*` is the client's alone; so is one for a model that the body names."""
    gone = {"error": {"message": "The model `w9` does not exist", "code": "model_not_found"}}
    with troubled(upstream, tmp_path) as (running, client):
        upstream.set(status(404))
        assert httpx2.post(f"{running.base_url}/v1/audio/voicez", json={}, headers=_key("app")).status_code == 404
        upstream.set(lambda handler: handler.tell(404, gone))
        with pytest.raises(openai.NotFoundError, match="w9"):
            client.audio.transcriptions.create(model="w9", file=("a.wav", b"x"))
        upstream.set(None)
        assert client.audio.transcriptions.create(model="w1", file=("a.wav", b"x")).text == "as it was said"
        assert httpx2.post(f"{running.base_url}/v1/audio/voices", json={}, headers=_key("app")).status_code == 200


def test_the_clients_fault_is_passed_on(upstream: PassingUpstream, tmp_path: Path) -> None:
    """A 400 with the provider's own body; it takes nothing off."""
    with troubled(upstream, tmp_path) as (_, client):
        upstream.set(status(400))
        with pytest.raises(openai.BadRequestError, match="Unknown voice"):
            speak(client)
        upstream.set(None)
        assert speak(client) == SOUND


def test_a_refused_key_takes_the_model_off_too(upstream: PassingUpstream, tmp_path: Path) -> None:
    """A 401 is about our key: no 401 to the client, no key in the error, and the model is not asked with it."""
    with troubled(upstream, tmp_path) as (running, client):
        upstream.set(status(401))
        with pytest.raises(openai.InternalServerError) as caught:
            speak(client)
        assert caught.value.status_code == 503
        assert "api_key" in caught.value.message
        assert "upstream-key" not in caught.value.message
        assert state_of(running, "one/big")["refusal"] == "off"


def test_an_account_that_the_client_names_takes_nothing_off(upstream: PassingUpstream, tmp_path: Path) -> None:
    """A 401 for the client's OpenAI-Organization is passed on; neither the path nor the model rests for it."""
    with troubled(upstream, tmp_path) as (running, client):
        upstream.set(status(401))
        with pytest.raises(openai.AuthenticationError) as caught:
            client.moderations.create(input="x", extra_headers={"openai-organization": "org-1"})
        assert "upstream-key" not in caught.value.message
        upstream.set(None)
        assert state_of(running, "one/big")["refusal"] is None
        assert not client.moderations.create(input="x").results[0].flagged
        assert chat(client) == "hello"


def test_connections_cut_in_the_middle_of_an_upload_do_not_take_the_model_off(
    upstream: PassingUpstream, tmp_path: Path
) -> None:
    """Servers reset a connection whose upload is too long for them: the path may rest, the model does not."""
    with troubled(upstream, tmp_path) as (running, client):
        upstream.set(Handler.reset)
        for _ in range(8):
            with pytest.raises(openai.InternalServerError):
                client.audio.transcriptions.create(model="w", file=("a.wav", bytes(100_000)))
        upstream.set(None)
        assert state_of(running, "one/big")["state"] == "closed"
        assert chat(client) == "hello"


def test_a_rate_limit_is_shared_with_the_target_of_the_same_name(upstream: PassingUpstream, tmp_path: Path) -> None:
    """A 429 with the time to wait, told to the client; the target waits on all its paths, other models do not."""
    routes = {"/v1/moderations": ["one/big"], "/v1/audio/speech": ["one/tts"]}
    with troubled(upstream, tmp_path, routes) as (running, client):
        upstream.set(status(429, retry_after="30"))
        with pytest.raises(openai.RateLimitError) as caught:
            client.moderations.create(input="hello")
        assert 25 <= int(caught.value.response.headers["retry-after"]) <= 30
        assert state_of(running, "one/big")["refusal"] == "wait"
        assert state_of(running, "one/big/v1/moderations")["refusal"] == "wait"
        upstream.set(None)
        assert speak(client) == SOUND


def test_a_wait_of_the_target_holds_on_its_paths(upstream: PassingUpstream, tmp_path: Path) -> None:
    """The other way round: what chat was told of its rate, the path knows; x-router-timeout bounds the wait."""
    with troubled(upstream, tmp_path, {"/v1/moderations": ["one/big"]}) as (_, client):
        upstream.set(status(429, retry_after="30"))
        with pytest.raises(openai.RateLimitError):
            client.with_options(default_headers={"x-router-timeout": "20s"}).chat.completions.create(
                model="smart", messages=MESSAGES
            )
        upstream.set(None)
        with pytest.raises(openai.RateLimitError):
            client.moderations.create(input="hello", extra_headers={"x-router-timeout": "20s"})
        assert upstream.seen == []


def test_failures_of_a_path_do_not_take_the_model_off(upstream: PassingUpstream, tmp_path: Path) -> None:
    """Thirty errors open the breaker of the route; the model's own state knows nothing of them."""
    with troubled(upstream, tmp_path) as (running, client):
        upstream.set(status(500))
        hurried = client.with_options(default_headers={"x-router-timeout": "500ms"})
        for _ in range(30):
            with pytest.raises(openai.InternalServerError):
                hurried.moderations.create(input="hello")
        assert state_of(running, "one/omni/v1/moderations")["state"] != "closed"
        assert state_of(running, "one/big")["state"] == "closed"
        upstream.set(None)
        assert chat(client) == "hello"


@pytest.mark.parametrize("lie", [silent, stalled])
def test_a_provider_that_moves_nothing_is_given_up(
    upstream: PassingUpstream, tmp_path: Path, lie: Callable[..., None]
) -> None:
    """After `silence`, before its head and in the middle of its body."""
    with troubled(upstream, tmp_path, silence="2s") as (running, client):
        upstream.set(lie)
        with pytest.raises((openai.InternalServerError, openai.APIConnectionError)):
            speak(client)
        assert upstream.gone.wait(PATIENCE)
        figures = httpx2.get(f"{running.base_url}/api/stats", headers=_key("operator")).json()["targets"]
        assert figures["one/v1/audio/speech"]["failures"] == {"TIMEOUT": 1}


def test_a_provider_that_takes_nothing_is_given_up(upstream: PassingUpstream, tmp_path: Path) -> None:
    """It does not read the body: 20 MB are not held for it, and the client is told after `silence`."""
    with troubled(upstream, tmp_path, silence="2s") as (running, _):
        upstream.set(idle, reads=False)
        answer = httpx2.post(
            f"{running.base_url}/v1/audio/transcriptions", content=SOUND * 80, headers=_key("app"), timeout=PATIENCE
        )
        assert answer.status_code == 503
        assert "neither took nor sent" in answer.json()["error"]["message"]


def test_an_early_no_reaches_a_client_that_still_sends(upstream: PassingUpstream, tmp_path: Path) -> None:
    """A provider that refuses after the head: the client gets the answer, and the rest of the body is not read."""
    with troubled(upstream, tmp_path) as (running, _):
        upstream.set(status(400), reads=False)
        head = (
            f"POST /v1/audio/transcriptions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEYS['app']['key']}\r\n"
            "content-length: 50000000\r\n\r\n"
        )
        with socket.create_connection(running.address, timeout=PATIENCE) as wire:
            wire.sendall(head.encode() + bytes(1000))
            told = read_all(wire)
        assert told.split()[1] == b"400"
        assert b"Unknown voice" in told


# Other targets ----------------------------------------------------------------------------------------------------


def test_the_next_target_takes_over_before_the_body_is_sent(upstream: PassingUpstream, tmp_path: Path) -> None:
    """A provider that is not there costs nothing: the body goes to the next one, whole."""
    upstream.set(None)
    config = fleet(upstream, routes={"/v1/audio/*": ["away", "one"]})
    config["providers"]["away"] = {"kind": "openai", "base_url": f"http://127.0.0.1:{_free_port()}/v1", "api_key": "k"}
    with served(config, tmp_path) as running, client_of(running) as client:
        raw = client.audio.transcriptions.with_raw_response.create(model="w", file=("a.wav", SOUND))
    assert raw.headers["x-router-provider"] == "one"
    assert raw.headers["x-router-attempts"] == "2"
    assert [SOUND in seen.body for seen in upstream.seen] == [True]


def test_nothing_is_repeated_once_the_body_was_sent(upstream: PassingUpstream, tmp_path: Path) -> None:
    """The first provider took the body and failed: the error says why nobody else was asked; then the other serves."""
    with PassingUpstream() as other:
        config = fleet(upstream, other, routes={"/v1/images/*": ["one", "two"]})
        with served(config, tmp_path) as running, client_of(running) as client:
            upstream.set(status(500))
            with pytest.raises(openai.InternalServerError, match="the body was sent already"):
                client.images.generate(prompt="a hill")
            assert (len(upstream.seen), len(other.seen)) == (1, 0)
            upstream.set(status(401))
            with pytest.raises(openai.InternalServerError):
                client.images.generate(prompt="a hill")
            raw = client.images.with_raw_response.generate(prompt="a hill")
            assert raw.headers["x-router-provider"] == "two"
            assert len(other.seen) == 1
            raw = client.images.with_raw_response.generate(
                prompt="a hill", extra_headers={"x-router-target": "two/v1/images/generations"}
            )
            assert raw.headers["x-router-provider"] == "two"
            with pytest.raises(openai.BadRequestError, match="two/v1/images/generations"):
                client.images.generate(prompt="a hill", extra_headers={"x-router-target": "three"})


def test_a_route_of_an_azure_provider_names_the_deployment(upstream: PassingUpstream, tmp_path: Path) -> None:
    """`azure/name`, or else the client's path; without either a clear 400. Neither can lead to another path."""
    upstream.set(lambda handler: handler.tell(200, {"text": "as it was said"}))
    routes = {"/v1/audio/transcriptions": ["az/whisper-eu"], "/v1/audio/translations": ["az"]}
    config = fleet(upstream, routes=routes)
    config["providers"]["az"] = {
        "kind": "azure",
        "base_url": upstream.base_url.removesuffix("/v1"),
        "api_key": "azure-k",
    }
    with served(config, tmp_path) as running, client_of(running) as client:
        assert client.audio.transcriptions.create(model="w", file=("a.wav", b"x")).text == "as it was said"
        assert upstream.seen[-1].path.startswith("/openai/deployments/whisper-eu/audio/transcriptions?api-version=")
        assert upstream.seen[-1].headers["api-key"] == "azure-k"
        nameless = httpx2.post(f"{running.base_url}/v1/audio/translations", content=b"x", headers=_key("app"))
        assert (nameless.status_code, "deployment" in nameless.json()["error"]["message"]) == (400, True)
        url = f"{running.base_url}/openai/deployments/%s/audio/translations"
        for name, sent in (("a%2Fb", "a%2Fb"), ("x", "x")):
            assert httpx2.post(url % name, content=b"x", headers=_key("app")).status_code == 200
            assert upstream.seen[-1].path.startswith(f"/openai/deployments/{sent}/audio/translations?api-version=")
        status_code, body = running.post(
            "/openai/deployments/../audio/translations", b"x", f"authorization: Bearer {KEYS['app']['key']}"
        )
        assert status_code == 400, body
        assert len(upstream.seen) == 3


# Clients that leave, and what is told afterwards ------------------------------------------------------------------


def test_a_client_that_leaves_ends_the_call(upstream: PassingUpstream, tmp_path: Path) -> None:
    """While it is answered, and in the middle of its own body; the provider is not blamed, nothing stays behind."""
    with troubled(upstream, tmp_path) as (running, client):
        upstream.set(silent)
        with pytest.raises(openai.APITimeoutError):
            client.with_options(timeout=0.5).moderations.create(input="hello")
        assert upstream.gone.wait(PATIENCE)
        upstream.set(None)
        head = (
            f"POST /v1/audio/transcriptions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEYS['app']['key']}\r\n"
            "content-length: 5000\r\n\r\nonly this"
        )
        with socket.create_connection(running.address, timeout=PATIENCE) as wire:
            wire.sendall(head.encode())
            assert becomes(lambda: state_of(running, "one/v1/audio/transcriptions")["in_flight"] == 1)
        assert upstream.gone.wait(PATIENCE)
        assert becomes(lambda: state_of(running, "one/v1/audio/transcriptions")["in_flight"] == 0)
        figures = httpx2.get(f"{running.base_url}/api/stats", headers=_key("operator")).json()["targets"]
        assert figures["one/v1/audio/transcriptions"]["success_rate"] == figures["one/v1/rerank"]["success_rate"]
        assert state_of(running, "one/omni/v1/moderations")["refusal"] is None


def test_a_body_that_stops_is_a_408(upstream: PassingUpstream, tmp_path: Path) -> None:
    """After `body_timeout` without a byte; the call to the provider ends with it."""
    config = fleet(upstream, routes=ALL)
    config["gateway"]["body_timeout"] = "300ms"
    upstream.set(None)
    head = (
        f"POST /v1/audio/transcriptions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEYS['app']['key']}\r\n"
        "content-length: 5000\r\n\r\nonly this"
    )
    with served(config, tmp_path) as running:
        told = running.send(head.encode(), silence=PATIENCE)
        assert told.split()[1] == b"408"
        assert b"nothing more of the body" in told
        assert upstream.gone.wait(PATIENCE)


def test_a_call_is_in_metrics_and_statistics_under_its_own_name(gateway: Served, client: openai.OpenAI) -> None:
    """The route as the model, the provider on the path as the target."""
    before = _requests(gateway)
    client.moderations.create(input="hello")
    assert becomes(lambda: _requests(gateway) == before + 1)
    told = httpx2.get(f"{gateway.base_url}/api/stats", headers=_key("operator")).json()
    assert told["targets"]["one/omni/v1/moderations"]["calls"] >= 1
    assert "one/big" in told["targets"]


def _requests(gateway: Served) -> float:
    text = httpx2.get(f"{gateway.base_url}/metrics", headers=_key("operator")).text
    lines = [
        line for line in text.splitlines() if line.startswith("smr_requests_total{") and '"/v1/moderations"' in line
    ]
    return sum(float(line.rpartition(" ")[2]) for line in lines)


def test_a_reload_takes_routes_in_and_out(upstream: PassingUpstream, tmp_path: Path) -> None:
    """What is under way ends in the old configuration; what a route learned stays with it."""
    upstream.set(status(404))
    with served(fleet(upstream, routes={"/v1/rerank": ["one"]}), tmp_path) as running, client_of(running) as client:
        with pytest.raises(openai.NotFoundError):
            client.post("/rerank", cast_to=httpx2.Response, body={})
        config = fleet(upstream, routes={"/v1/rerank": ["one"], "/v1/moderations": ["one"]})
        running.file.write_text(json.dumps(config), encoding="utf-8")
        running.process.send_signal(1)  # SIGHUP
        upstream.set(None)

        def reloaded() -> bool:
            with contextlib.suppress(openai.NotFoundError):
                return bool(client.moderations.create(input="hello").results)
            return False

        assert becomes(reloaded)
        assert state_of(running, "one/v1/rerank")["refusal"] == "off"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
