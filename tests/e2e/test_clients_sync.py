"""The drop-in OpenAI and Anthropic clients: everything the SDKs' own do, with a router instead of a network."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from typing import Any

import anthropic
import httpx
import httpx2
import openai
import pytest

from smart_model_router import SmartModelRouter
from smart_model_router.clients import Anthropic, OpenAI, RouterTransport, report_of
from smart_model_router_providers.fault import Fault, FaultServer
from smart_model_router_providers.sdk import SDKS, httpx_of
from tests.e2e.gateways import ECHO, MESSAGES, becomes, fleet

HTTPX: Any = httpx_of(SDKS["openai"])
"""What the installed SDK is built on."""
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {"name": "look", "parameters": {"type": "object", "properties": {"at": {"type": "string"}}}},
}


@pytest.fixture
def upstream() -> Iterator[FaultServer]:
    """A provider that does what a test says."""
    with FaultServer() as server:
        yield server


@pytest.fixture
def chatty(upstream: FaultServer) -> Iterator[OpenAI]:
    """The drop-in OpenAI, without retries of its own."""
    with OpenAI(fleet(upstream), max_retries=0) as client:
        yield client


@pytest.fixture
def claudish(upstream: FaultServer) -> Iterator[Anthropic]:
    """The drop-in Anthropic, without retries of its own."""
    with Anthropic(fleet(upstream), max_retries=0) as client:
        yield client


def test_they_are_the_sdks_own_classes(chatty: OpenAI, claudish: Anthropic) -> None:
    """isinstance holds, also for copies with other options."""
    assert isinstance(chatty, openai.OpenAI)
    assert isinstance(claudish, anthropic.Anthropic)
    assert isinstance(chatty.with_options(timeout=3), OpenAI)
    assert isinstance(claudish.with_options(timeout=3), Anthropic)


def test_an_answer_and_its_report(chatty: OpenAI, claudish: Anthropic) -> None:
    """The answer is the provider's, under the name that was asked for; its report says who gave it."""
    answer = chatty.chat.completions.create(model="smart", messages=MESSAGES)
    assert (answer.model, answer.choices[0].message.content, report_of(answer).target) == ("smart", ECHO, "ao/big")
    message = claudish.messages.create(model="claude", max_tokens=99, messages=MESSAGES)
    assert (message.model, report_of(message).target) == ("claude", "aa/big")


def test_raw_responses_have_the_routers_headers(chatty: OpenAI, claudish: Anthropic) -> None:
    """with_raw_response shows x-router-*, and with_options copies are routed alike."""
    raw = chatty.with_options(timeout=9).chat.completions.with_raw_response.create(model="smart", messages=MESSAGES)
    assert (raw.headers["x-router-provider"], raw.headers["x-router-degraded"]) == ("ao", "false")
    assert report_of(raw).target == "ao/big"
    message = claudish.messages.with_raw_response.create(model="claude", max_tokens=9, messages=MESSAGES)
    assert message.headers["x-router-model"] == "big"


def test_the_stream_helpers(chatty: OpenAI, claudish: Anthropic) -> None:
    """`.stream()` of both SDKs puts the answer together."""
    with chatty.chat.completions.stream(model="smart", messages=MESSAGES) as stream:
        assert stream.get_final_completion().choices[0].message.content == ECHO
        assert report_of(stream).target == "ao/big"
    with claudish.messages.stream(model="claude", max_tokens=99, messages=MESSAGES) as events:
        assert events.get_final_text() == ECHO
        assert report_of(events).target == "aa/big"


def test_tools_go_out_as_they_are(chatty: OpenAI, upstream: FaultServer) -> None:
    """The provider sees the tools as they were given."""
    chatty.chat.completions.create(model="smart", messages=MESSAGES, tools=[TOOL])  # type: ignore[list-item]  # a plain dict is one
    assert upstream.requests[-1].body["tools"] == [TOOL]


def test_embeddings_and_models(chatty: OpenAI, claudish: Anthropic) -> None:
    """What needs no chat works, too; what needs no provider asks none."""
    assert len(chatty.embeddings.create(model="smart", input=["a", "b"]).data) == 2
    assert [model.id for model in chatty.models.list()] == ["smart", "claude"]
    assert claudish.messages.count_tokens(model="claude", messages=MESSAGES).input_tokens > 0


def test_a_bad_request_is_the_sdks_own_error(chatty: OpenAI) -> None:
    """A name nobody knows, and a path nobody serves."""
    with pytest.raises(openai.NotFoundError, match="'nope' is unknown"):
        chatty.chat.completions.create(model="nope", messages=MESSAGES)
    with pytest.raises(openai.NotFoundError, match="does not answer POST /v1/images/generations"):
        chatty.images.generate(prompt="a cat")


@pytest.mark.parametrize(("asked", "retries"), [({}, 0), ({"max_retries": 1}, 1)])
def test_only_the_router_retries_unless_the_caller_asks(
    upstream: FaultServer, asked: dict[str, int], retries: int
) -> None:
    """A total outage reaches the caller when the router says so, not after the SDK's own waits."""
    upstream.set([Fault.status(401)])
    with OpenAI(fleet(upstream), **asked) as client, Anthropic(fleet(upstream), **asked) as claude:
        assert (client.max_retries, claude.max_retries) == (retries, retries)
        assert client.with_options(timeout=3).max_retries == retries
        with pytest.raises(openai.InternalServerError) as told:
            client.chat.completions.create(model="smart", messages=MESSAGES)
    assert "ao refused the key (401" in told.value.message
    assert report_of(told.value).target is None


def test_a_silent_stream_runs_into_the_clients_timeout(chatty: OpenAI, upstream: FaultServer) -> None:
    """Between two chunks the read timeout counts, too."""
    upstream.set([Fault.stall(after=2)])
    stream = chatty.with_options(timeout=1.5).chat.completions.create(model="smart", messages=MESSAGES, stream=True)
    with pytest.raises((HTTPX.ReadTimeout, openai.APITimeoutError)):
        list(stream)
    assert becomes(lambda: upstream.in_flight == 0)


def test_a_stream_left_early_frees_the_provider(chatty: OpenAI, upstream: FaultServer) -> None:
    """Closed, or simply dropped: the call upstream is cancelled."""
    upstream.set([Fault.stall(after=2)])
    with chatty.chat.completions.create(model="smart", messages=MESSAGES, stream=True) as stream:
        next(stream)
        assert upstream.in_flight == 1
    assert becomes(lambda: upstream.in_flight == 0)
    dropped = chatty.chat.completions.create(model="smart", messages=MESSAGES, stream=True)
    next(dropped)
    del dropped
    gc.collect()  # the SDK's stream refers to itself
    assert becomes(lambda: upstream.in_flight == 0)


def test_a_cut_stream_raises(chatty: OpenAI, upstream: FaultServer) -> None:
    """After content the SDK raises what the stream says, with what arrived in the report."""
    upstream.set([Fault.cut(after=3)])
    stream = chatty.chat.completions.create(model="smart", messages=MESSAGES, stream=True)
    with pytest.raises(openai.APIError, match="cut after"):
        list(stream)
    assert report_of(stream).complete is False


def test_responses(chatty: OpenAI) -> None:
    """The Responses API works as well, whole and as a stream; a cut one is a connection error."""
    answer = chatty.responses.create(model="smart", input="hello")
    assert (answer.output_text, report_of(answer).target) == (ECHO, "ao/big")
    with chatty.responses.stream(model="claude", input="hello") as stream:
        assert stream.get_final_response().output_text == ECHO


def test_a_cut_response_looks_like_a_broken_connection(chatty: OpenAI, upstream: FaultServer) -> None:
    """Where the dialect wants a cut, the SDK sees one."""
    upstream.set([Fault.cut(after=3)])
    with pytest.raises((HTTPX.RemoteProtocolError, openai.APIConnectionError)):
        list(chatty.responses.create(model="smart", input="hello", stream=True))


@pytest.mark.parametrize("http", [httpx, httpx2])
def test_a_failed_stream_is_told_and_then_cut_as_over_a_network(upstream: FaultServer, http: Any) -> None:
    """The error event of the dialect, then the transport error of the client's own httpx: never a clean end."""
    upstream.set([Fault.cut(after=3)])
    router = SmartModelRouter.from_config(fleet(upstream))
    body = {"model": "smart", "messages": MESSAGES, "stream": True}
    got: list[str] = []
    url = "http://any.invalid/v1/chat/completions"
    with (
        http.Client(transport=RouterTransport(router, owns=True)) as client,
        client.stream("POST", url, json=body) as answer,
        pytest.raises(http.RemoteProtocolError, match="cut after"),
    ):
        got.extend(answer.iter_lines())
    assert sum('"error"' in line for line in got) == 1
    assert not any("[DONE]" in line for line in got)


def test_the_sdks_of_yesterday_find_their_httpx(upstream: FaultServer) -> None:
    """The same transport answers httpx in its own terms: whole, streamed, and out of patience."""
    router = SmartModelRouter.from_config(fleet(upstream))
    url, body = "http://any.invalid/v1/chat/completions", {"model": "smart", "messages": MESSAGES}
    with httpx.Client(transport=RouterTransport(router, owns=True)) as client:
        assert client.post(url, json=body).json()["choices"][0]["message"]["content"] == ECHO
        with client.stream("POST", url, json={**body, "stream": True}) as answer:
            assert list(answer.iter_lines())[-2] == "data: [DONE]"
        upstream.set([Fault.hang()])
        with pytest.raises(httpx.ReadTimeout):
            client.post(url, json=body, timeout=0.3)


def test_a_router_given_is_not_closed_with_the_client(upstream: FaultServer) -> None:
    """Two clients of one router share its statistics; closing one leaves the other at work."""
    router = SmartModelRouter.from_config(fleet(upstream))
    with OpenAI(router) as first:
        first.chat.completions.create(model="smart", messages=MESSAGES)
    with Anthropic(router) as second:
        second.messages.create(model="claude", max_tokens=9, messages=MESSAGES)
        third = httpx2.Client(transport=RouterTransport(router))
        body = {"model": "smart", "messages": MESSAGES}
        assert third.post("http://any.invalid/v1/chat/completions", json=body).status_code == 200
        assert sum(target.successes for target in router.stats().targets.values()) == 3
    with OpenAI(router) as last:
        last.close()


def test_credentials_of_the_environment_mean_nothing(upstream: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither keys nor base URLs of the environment reach the client, and none is needed."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://elsewhere.invalid/v1")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://elsewhere.invalid")
    with OpenAI(fleet(upstream)) as client, Anthropic(fleet(upstream)) as claude:
        assert client.chat.completions.create(model="smart", messages=MESSAGES).choices
        assert claude.messages.create(model="claude", max_tokens=9, messages=MESSAGES).content


def test_a_forked_child_has_a_portal_of_its_own(upstream: FaultServer, chatty: OpenAI) -> None:
    """The thread does not survive a fork; the child starts another one, also for clients it was born with."""
    chatty.chat.completions.create(model="smart", messages=MESSAGES)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with OpenAI(fleet(upstream), max_retries=0) as client:
                for each in (client, chatty):
                    assert each.chat.completions.create(model="smart", messages=MESSAGES).model == "smart"
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0


def test_report_of_something_else_is_an_error() -> None:
    """What no router made has no report."""
    with pytest.raises(LookupError):
        report_of(object())


@pytest.mark.parametrize("model", ["smart", "claude"])
def test_one_report_spans_what_the_sdk_retried(upstream: FaultServer, model: str) -> None:
    """Each try of the SDK is a request of its own; the last one's report has those before, behind an error, too."""
    config = fleet(upstream, routing={"max_wait": 0, "degrade_after": 0})
    with OpenAI(config, max_retries=2) as chatty, Anthropic(config, max_retries=2) as claudish:

        def ask(text: str) -> Any:
            said: list[Any] = [{"role": "user", "content": text}]
            if model == "smart":
                return chatty.chat.completions.create(model=model, messages=said)
            return claudish.messages.create(model=model, max_tokens=9, messages=said)

        upstream.set([Fault.status(429, headers={"retry-after": "1"})])
        for text in ("one", "other"):
            with pytest.raises((openai.RateLimitError, anthropic.RateLimitError)) as told:
                ask(text)
            report = report_of(told.value)
            assert [each.target for each in report.earlier] == [None, None]
            assert "(asked by the SDK 3 times)" in str(report)
            assert [line for line in report.lines() if "the SDK's 2nd try" in line]
            assert [each["target"] for each in report.to_dict()["earlier"]] == [None, None]


def test_a_count_of_retries_that_is_none_breaks_nothing(chatty: OpenAI) -> None:
    """A caller may set the SDK's header to anything."""
    for count in ("9" * 5000, "-1", "one"):
        answer = chatty.chat.completions.create(
            model="smart", messages=MESSAGES, extra_headers={"x-stainless-retry-count": count}
        )
        assert report_of(answer).earlier == []
