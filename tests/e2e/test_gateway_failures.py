"""When providers fail, `smr serve` answers in the client's own dialect, and gives everything back."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from smart_model_router_providers.fault import Fault, FaultServer
from tests.e2e.gateways import BRIEF, ECHO, MESSAGES, Served, becomes, cut_short, fleet, read_all, served

Start = Callable[..., Served]
CHAT = {"model": "smart", "messages": MESSAGES}
MESSAGE = {"model": "claude", "max_tokens": 99, "messages": MESSAGES}


@pytest.fixture
def upstream() -> Iterator[FaultServer]:
    """A provider that does what a test says."""
    with FaultServer() as server:
        yield server


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Start]:
    """Start a gateway before some servers."""
    with ExitStack() as stack:

        def start(*servers: FaultServer, **sections: Any) -> Served:
            return stack.enter_context(served(fleet(*servers), tmp_path, **sections))

        yield start


def chatty(gateway: Served, **options: Any) -> openai.OpenAI:
    """OpenAI's SDK without retries of its own."""
    return openai.OpenAI(base_url=gateway.base_url + "/v1", api_key="k", max_retries=0, **options)


def claudish(gateway: Served, **options: Any) -> anthropic.Anthropic:
    """Anthropic's SDK without retries of its own."""
    return anthropic.Anthropic(base_url=gateway.base_url, api_key="k", max_retries=0, **options)


def test_a_dead_primary_is_never_noticed(upstream: FaultServer, gateway: Start) -> None:
    """One provider fails, the other answers, and the header says how many were tried."""
    with FaultServer([Fault.status(500)]) as dead:
        client = chatty(gateway(dead, upstream))
        raw = client.chat.completions.with_raw_response.create(model="smart", messages=MESSAGES)
        client.close()
    assert raw.parse().choices[0].message.content == ECHO
    assert (raw.headers["x-router-provider"], int(raw.headers["x-router-attempts"]) > 1) == ("bo", True)


def test_rate_limits_everywhere_are_a_429_that_says_when(upstream: FaultServer, gateway: Start) -> None:
    """A wait longer than the router's own becomes the client's 429 with the provider's Retry-After, in each dialect."""
    upstream.set([Fault.status(429, headers={"retry-after": "90"})])
    running = gateway(upstream, routing={"max_wait": "2s"})
    with chatty(running) as client, pytest.raises(openai.RateLimitError) as told:
        client.chat.completions.create(model="smart", messages=MESSAGES)
    assert 80 < float(told.value.response.headers["retry-after"]) <= 90
    assert told.value.response.headers["x-should-retry"] == "false"
    with claudish(running) as claude, pytest.raises(anthropic.RateLimitError) as said:
        claude.messages.create(model="claude", max_tokens=9, messages=MESSAGES)
    assert said.value.type == "rate_limit_error"


def test_nobody_left_is_a_503_and_for_messages_a_529(upstream: FaultServer, gateway: Start) -> None:
    """A dead fleet is told with the status of the dialect and a Retry-After, once `max_wait` is over."""
    upstream.set([Fault.status(500)])
    running = gateway(upstream, routing={"max_wait": "1s"})
    with chatty(running) as client, pytest.raises(openai.InternalServerError) as told:
        client.chat.completions.create(model="smart", messages=MESSAGES)
    assert (told.value.status_code, told.value.code) == (503, "all_targets_failed")
    assert float(told.value.response.headers["retry-after"]) > 0
    with claudish(running) as claude, pytest.raises(anthropic.OverloadedError) as said:
        claude.messages.create(model="claude", max_tokens=9, messages=MESSAGES)
    assert (said.value.status_code, said.value.type) == (529, "overloaded_error")


def test_a_providers_own_refusal_comes_as_it_is(upstream: FaultServer, gateway: Start) -> None:
    """A 400 that is the request's own fault is handed on with the provider's body."""
    body = {"error": {"message": "top_p: no", "type": "invalid_request_error", "param": "top_p", "code": "odd"}}
    upstream.set([Fault.status(400, body=json.dumps(body))])
    with chatty(gateway(upstream)) as client, pytest.raises(openai.BadRequestError) as told:
        client.chat.completions.create(model="smart", messages=MESSAGES)
    assert (told.value.param, told.value.code) == ("top_p", "odd")


def test_the_clients_own_deadline_is_answered_before_it_hangs_up(upstream: FaultServer, gateway: Start) -> None:
    """The SDK's timeout travels in a header: what comes is a 504 that explains, not a silence.

    The SDK itself waits longer here, or a busy machine would decide which of the two is first.
    """
    upstream.set([Fault.hang()])
    brief = {"x-stainless-read-timeout": "1.0"}  # of the request: the SDK writes its own over a client's
    with chatty(gateway(upstream), timeout=60.0) as client, pytest.raises(openai.InternalServerError) as told:
        client.chat.completions.create(model="smart", messages=MESSAGES, extra_headers=brief)
    assert (told.value.status_code, told.value.code) == (504, "deadline_exceeded"), told.value.message


def test_x_router_timeout_is_the_routers(upstream: FaultServer, gateway: Start) -> None:
    """A header bounds one request; nonsense in it is a 400."""
    upstream.set([Fault.hang()])
    running = gateway(upstream)
    started = time.monotonic()
    late = httpx2.post(
        running.base_url + "/v1/chat/completions", json=CHAT, headers={"x-router-timeout": "500ms"}, timeout=30
    )
    assert (late.status_code, time.monotonic() - started < 20) == (504, True)
    odd = httpx2.post(running.base_url + "/v1/chat/completions", json=CHAT, headers={"x-router-timeout": "soon"})
    assert (odd.status_code, "x-router-timeout" in odd.json()["error"]["message"]) == (400, True)


def test_a_stream_that_is_cut_says_so_in_chat(upstream: FaultServer, gateway: Start) -> None:
    """After content a failure is an error event that the SDK raises; there is no [DONE]."""
    upstream.set([Fault.cut(after=3)])
    running = gateway(upstream, resilience={"timeouts": {"idle": "2s"}})
    with chatty(running) as client, pytest.raises(openai.APIError, match="cut after") as told:
        list(client.chat.completions.create(model="smart", messages=MESSAGES, stream=True))
    assert not isinstance(told.value, openai.APIConnectionError)
    _, raw = cut_short(running.base_url + "/v1/chat/completions", {**CHAT, "stream": True})
    assert b"[DONE]" not in raw


def test_a_stream_that_is_cut_says_so_in_messages(upstream: FaultServer, gateway: Start) -> None:
    """Messages gets its own error event, and no message_stop."""
    upstream.set([Fault.cut(after=3)])
    with (
        claudish(gateway(upstream, resilience={"timeouts": {"idle": "2s"}})) as client,
        pytest.raises(anthropic.APIStatusError, match="cut after"),
        client.messages.stream(model="claude", max_tokens=99, messages=MESSAGES) as stream,
    ):
        stream.get_final_message()


def test_a_stream_that_fails_before_its_first_word_has_a_status(upstream: FaultServer, gateway: Start) -> None:
    """While the head is held a failure is an HTTP error, not a broken stream."""
    upstream.set([Fault.status(500)])
    with (
        chatty(gateway(upstream, routing={"max_wait": "1s"})) as client,
        pytest.raises(openai.InternalServerError) as told,
    ):
        client.chat.completions.create(model="smart", messages=MESSAGES, stream=True)
    assert told.value.status_code == 503


def test_a_slow_first_word_is_waited_for_with_pings(upstream: FaultServer, gateway: Start) -> None:
    """After `hold_head` the head goes out and pings follow; a failure then is told in the stream."""
    upstream.set([Fault.delay(first=3.0, times=1), Fault.delay(first=3.0, times=1), Fault.status(500)])
    running = gateway(upstream, gateway={"hold_head": "200ms", "ping": "200ms"})
    url = running.base_url + "/v1/messages"
    with httpx2.stream("POST", url, json={**MESSAGE, "stream": True}) as answer:
        assert "x-router-provider" not in answer.headers
        events = [line for line in answer.iter_lines() if line.startswith("event: ")]
    assert events[:3] == ["event: ping"] * 3
    assert events[-1] == "event: message_stop"


def test_a_failure_after_the_head_is_told_in_the_stream(upstream: FaultServer, gateway: Start) -> None:
    """Once the head is out, the end of all hope is an error event and an abort."""
    upstream.set([Fault.hang()])
    running = gateway(upstream, gateway={"hold_head": "100ms"})
    body = {**CHAT, "stream": True}
    url = running.base_url + "/v1/chat/completions"
    status, told = cut_short(url, body, {"x-router-timeout": "600ms"})
    assert status == 200
    assert b'"code":"deadline_exceeded"' in told
    assert b"[DONE]" not in told


def test_chunks_arrive_when_they_are_made(upstream: FaultServer, gateway: Start) -> None:
    """Nothing is collected: the first word is there long before the last."""
    upstream.set([Fault.delay(each=0.2)])
    with chatty(gateway(upstream)) as client:
        arrivals = [
            time.monotonic() for _ in client.chat.completions.create(model="smart", messages=MESSAGES, stream=True)
        ]
    assert arrivals[-1] - arrivals[0] > 0.5


@pytest.mark.parametrize("stream", [False, True])
def test_who_hangs_up_frees_the_provider_within_a_second(
    upstream: FaultServer, gateway: Start, *, stream: bool
) -> None:
    """A client that leaves, streaming or not, cancels the call upstream; nothing stays in flight."""
    upstream.set([Fault.stall(after=2 if stream else 0)])
    running = gateway(upstream, resilience=BRIEF)
    body = json.dumps({**CHAT, "stream": stream}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(body)}\r\n\r\n"
    with socket.create_connection(running.address, timeout=30) as wire:
        wire.sendall(head.encode() + body)
        assert becomes(lambda: upstream.in_flight == 1)
        assert running.in_flight() > 0
    assert becomes(lambda: upstream.in_flight == 0)
    assert becomes(lambda: running.in_flight() == 0)


def test_a_stream_that_is_left_early_frees_the_provider(upstream: FaultServer, gateway: Start) -> None:
    """`break` and close in the SDK is a hang-up, too."""
    upstream.set([Fault.stall(after=2)])
    running = gateway(upstream)
    with chatty(running) as client, client.chat.completions.create(**CHAT, stream=True) as stream:  # type: ignore[call-overload]  # the body as it is sent
        next(stream)
    assert becomes(lambda: upstream.in_flight == 0 and running.in_flight() == 0)


def test_sigterm_lets_a_stream_end(upstream: FaultServer, gateway: Start) -> None:
    """Who is being answered is answered to the end; then the process ends with 0."""
    upstream.set([Fault.delay(each=0.2)])
    running = gateway(upstream)
    with chatty(running) as client:
        stream = client.chat.completions.create(model="smart", messages=MESSAGES, stream=True)
        first = next(stream).choices[0].delta.content or ""
        running.process.terminate()
        rest = "".join(chunk.choices[0].delta.content or "" for chunk in stream)
    assert first + rest == ECHO
    assert running.process.wait(30) == 0


def test_sigterm_does_not_wait_for_ever(upstream: FaultServer, gateway: Start) -> None:
    """What outlasts `drain` is cancelled: the provider is freed, and the process still ends with 0."""
    upstream.set([Fault.stall(after=2)])
    running = gateway(upstream, gateway={"drain": "1s"})
    with chatty(running) as client:
        stream = client.chat.completions.create(model="smart", messages=MESSAGES, stream=True)
        next(stream)
        running.process.terminate()
        assert running.process.wait(30) == 0
        assert becomes(lambda: upstream.in_flight == 0)
        stream.close()


def test_a_request_that_is_half_sent_is_nobodys_problem(upstream: FaultServer, gateway: Start) -> None:
    """A client that vanishes in the middle of its body leaves nothing behind."""
    running = gateway(upstream)
    with socket.create_connection(running.address, timeout=30) as wire:
        wire.sendall(b'POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 500\r\n\r\n{"model":')
    assert becomes(lambda: running.in_flight() == 0)
    assert upstream.calls() == 0


def test_responses_are_cut_rather_than_failed(upstream: FaultServer, gateway: Start) -> None:
    """Clients of Responses ask again after a cut: they get one, without an end of the chunked body."""
    upstream.set([Fault.cut(after=3)])
    running = gateway(upstream)
    body = json.dumps({"model": "smart", "input": "hello", "stream": True}).encode()
    head = f"POST /v1/responses HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(body)}\r\n\r\n"
    with socket.create_connection(running.address, timeout=30) as wire:
        wire.sendall(head.encode() + body)
        got = read_all(wire)
    assert b"response.output_text.delta" in got
    assert b"response.failed" not in got
    assert not got.endswith(b"0\r\n\r\n")
