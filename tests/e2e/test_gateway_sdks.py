"""The real SDKs talk to `smr serve` over real sockets, and never notice that it is not the provider."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import anthropic
import httpx2
import openai
import pydantic
import pytest

from smart_model_router_providers.fault import FaultServer
from tests.e2e.gateways import ECHO, MESSAGES, Served, fleet, served


@pytest.fixture(scope="module")
def upstream() -> Iterator[FaultServer]:
    """A provider that is well."""
    with FaultServer() as server:
        yield server


@pytest.fixture(scope="module")
def gateway(upstream: FaultServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A gateway before it."""
    with served(fleet(upstream), tmp_path_factory.mktemp("gateway")) as running:
        yield running


def test_a_chat_completion_names_the_model_that_was_asked_for(chatty: openai.OpenAI) -> None:
    """The answer is the provider's, under our name of the model; headers tell who gave it."""
    raw = chatty.chat.completions.with_raw_response.create(model="smart", messages=MESSAGES)
    answer = raw.parse()
    assert (answer.model, answer.choices[0].message.content) == ("smart", ECHO)
    told = {name: raw.headers[f"x-router-{name}"] for name in ("provider", "model", "tier", "attempts", "degraded")}
    assert told == {"provider": "ao", "model": "big", "tier": "frontier", "attempts": "1", "degraded": "false"}
    assert answer._request_id == raw.headers["x-request-id"]


def test_a_chat_stream_arrives_in_pieces_and_ends_with_done(chatty: openai.OpenAI) -> None:
    """Chunks arrive one by one under our name of the model; nobody who did not ask sees a usage chunk."""
    chunks = list(chatty.chat.completions.create(model="smart", messages=MESSAGES, stream=True))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == ECHO
    assert {chunk.model for chunk in chunks} == {"smart"}
    assert [chunk.usage for chunk in chunks if chunk.usage] == []


def test_who_asks_for_usage_gets_it(chatty: openai.OpenAI) -> None:
    """`stream_options.include_usage` brings the one usage chunk, last."""
    options = {"include_usage": True}
    chunks = list(
        chatty.chat.completions.create(model="smart", messages=MESSAGES, stream=True, stream_options=options)  # type: ignore[call-overload]  # a plain dict is one
    )
    assert [bool(chunk.usage) for chunk in chunks[-2:]] == [False, True]


def test_the_chat_stream_helper_works(chatty: openai.OpenAI) -> None:
    """`.stream()` puts the answer together."""
    with chatty.chat.completions.stream(model="smart", messages=MESSAGES) as stream:
        assert stream.get_final_completion().choices[0].message.content == ECHO


@pytest.mark.parametrize("model", ["smart", "claude"])
def test_legacy_completions_whole_and_streamed(chatty: openai.OpenAI, model: str) -> None:
    """The old endpoint works over a provider that speaks Chat and over one that speaks Messages; losses are told."""
    raw = chatty.completions.with_raw_response.create(model=model, prompt="hello", echo=True, best_of=3)
    answer = raw.parse()
    assert (answer.model, answer.object, answer.choices[0].text) == (model, "text_completion", "hello" + ECHO)
    assert answer.usage is not None
    assert raw.headers["x-router-lossy"].startswith("best_of: ")
    chunks = list(chatty.completions.create(model=model, prompt=["hello"], stream=True))
    assert "".join(chunk.choices[0].text for chunk in chunks) == ECHO
    assert {(chunk.model, chunk.object) for chunk in chunks} == {(model, "text_completion")}
    assert [chunk.choices[0].finish_reason for chunk in chunks][-1] == "stop"
    assert len(chunks) > 2


def test_a_completion_that_chat_cannot_mean_is_refused(chatty: openai.OpenAI, upstream: FaultServer) -> None:
    """A suffix, several prompts, numbers of tokens: a 400 with an id, and nobody is asked."""
    before = upstream.calls()
    for body in ({"prompt": "a", "suffix": "b"}, {"prompt": ["a", "b"]}, {"prompt": [1, 2]}):
        with pytest.raises(openai.BadRequestError) as told:
            chatty.post("/completions", cast_to=object, body={"model": "smart", **body})
        assert (told.value.code, bool(told.value.request_id)) == ("unsupported_feature", True)
    assert upstream.calls() == before


def test_the_trace_and_the_idempotency_key_reach_the_provider(gateway: Served, upstream: FaultServer) -> None:
    """Whole and streamed, in one dialect and across; cookies, and a trace that is none, do not."""
    trace = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "a=1"}
    sent = {**trace, "idempotency-key": "once", "cookie": "secret"}
    for model in ("smart", "claude"):
        for stream in (False, True):
            body = {"model": model, "messages": MESSAGES, "stream": stream}
            assert httpx2.post(gateway.base_url + "/v1/chat/completions", json=body, headers=sent).status_code == 200
            got = upstream.requests[-1].headers
            assert {name: got.get(name) for name in sent} == {**trace, "idempotency-key": "once", "cookie": None}
    odd = {"traceparent": "00-x", "idempotency-key": "a b"}
    body = {"model": "smart", "messages": MESSAGES}
    assert httpx2.post(gateway.base_url + "/v1/chat/completions", json=body, headers=odd).status_code == 200
    assert odd.keys() & upstream.requests[-1].headers.keys() == set()


def test_a_provider_may_say_which_dialects_it_speaks(tmp_path: Path) -> None:
    """Messages are translated to Chat for a server of a kind that has no more; `wires` says that one has."""
    with FaultServer() as server:
        config = fleet(server)
        config["providers"]["native"] = {**config["providers"]["ao"], "wires": ["chat", "messages"]}
        config["models"]["native"] = {"tiers": [{"targets": ["native/big"]}], "last_resort": []}
        with (
            served(config, tmp_path) as running,
            anthropic.Anthropic(base_url=running.base_url, api_key="k", max_retries=0) as client,
        ):
            for model in ("smart", "native"):
                message = client.messages.create(model=model, max_tokens=99, messages=MESSAGES)
                assert message.content[0].to_dict()["text"] == ECHO
        assert [request.path for request in server.requests] == ["/v1/chat/completions", "/v1/messages"]


def test_responses_whole_and_streamed(chatty: openai.OpenAI) -> None:
    """Responses works over a provider that speaks Chat and over one that speaks Messages."""
    for model in ("smart", "claude"):
        answer = chatty.responses.create(model=model, input="hello")
        assert (answer.model, answer.output_text) == (model, ECHO)
        with chatty.responses.stream(model=model, input="hello") as stream:
            assert stream.get_final_response().output_text == ECHO


def test_a_dialect_crosses_to_a_provider_of_the_other(chatty: openai.OpenAI, claudish: anthropic.Anthropic) -> None:
    """OpenAI's SDK is answered by a Messages provider, Anthropic's by a Chat provider, streams too."""
    chunks = list(chatty.chat.completions.create(model="claude", messages=MESSAGES, stream=True))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == ECHO
    with claudish.messages.stream(model="smart", max_tokens=99, messages=MESSAGES) as stream:
        assert (stream.get_final_message().model, stream.get_final_text()) == ("smart", ECHO)


def test_embeddings_of_token_numbers(chatty: openai.OpenAI) -> None:
    """Lists of token numbers are as good as text."""
    answer = chatty.embeddings.create(model="smart", input=[[1, 2, 3], [4, 5]])
    assert (len(answer.data), answer.model) == (2, "smart")
    assert len(chatty.embeddings.create(model="smart", input=[1, 2, 3]).data) == 1


def test_models_are_the_public_names(chatty: openai.OpenAI) -> None:
    """GET /v1/models lists them, GET /v1/models/{id} shows one, 404 what is none."""
    assert [model.id for model in chatty.models.list()] == ["smart", "claude"]
    assert chatty.models.retrieve("smart").id == "smart"
    with pytest.raises(openai.NotFoundError, match="no/such"):
        chatty.models.retrieve("no/such")


def test_a_message(claudish: anthropic.Anthropic) -> None:
    """Messages works alike."""
    raw = claudish.messages.with_raw_response.create(model="claude", max_tokens=99, messages=MESSAGES)
    message = raw.parse()
    assert (message.model, message.content[0].to_dict()["text"]) == ("claude", ECHO)
    assert raw.headers["x-router-provider"] == "aa"


def test_a_message_stream(claudish: anthropic.Anthropic) -> None:
    """The stream helper of Messages puts the answer together, usage and all."""
    with claudish.messages.stream(model="claude", max_tokens=99, messages=MESSAGES) as stream:
        message = stream.get_final_message()
    assert (message.model, message.content[0].to_dict()["text"]) == ("claude", ECHO)
    assert message.usage.output_tokens > 0


def test_tokens_are_counted_without_a_provider(claudish: anthropic.Anthropic, upstream: FaultServer) -> None:
    """count_tokens costs nobody a call."""
    before = upstream.calls()
    short = claudish.messages.count_tokens(model="claude", messages=MESSAGES).input_tokens
    long = claudish.messages.count_tokens(model="claude", messages=[{"role": "user", "content": "word " * 1000}])
    assert (short > 0, long.input_tokens > 1000, upstream.calls()) == (True, True, before)


def test_a_burst_of_counts_is_answered_at_once(gateway: Served, upstream: FaultServer) -> None:
    """200 counts of 75 KB from 20 connections: all answered, by nobody but the gateway, and alike."""
    body = json.dumps({"model": "claude", "messages": [{"role": "user", "content": "word " * 15_000}]}).encode()
    before = upstream.calls()

    def count(_: int) -> list[int]:
        with httpx2.Client(base_url=gateway.base_url) as client:
            return [client.post("/v1/messages/count_tokens", content=body).json()["input_tokens"] for _ in range(10)]

    with ThreadPoolExecutor(20) as threads:
        counts = [number for numbers in threads.map(count, range(20)) for number in numbers]
    assert (len(counts), len(set(counts)), upstream.calls()) == (200, 1, before)


def test_models_in_anthropics_shape(claudish: anthropic.Anthropic) -> None:
    """Whoever sends anthropic-version gets Anthropic's list."""
    assert [model.display_name for model in claudish.models.list()] == ["smart", "claude"]


def test_the_clients_key_goes_no_further(chatty: openai.OpenAI, upstream: FaultServer) -> None:
    """The provider sees its own key, and not the client's."""
    before = upstream.calls("upstream-a")
    chatty.chat.completions.create(model="smart", messages=MESSAGES)
    assert (upstream.calls("upstream-a") - before, upstream.calls("client-secret")) == (1, 0)


def test_parse_fills_a_pydantic_model(tmp_path: Path) -> None:
    """`.parse()` works through the gateway."""

    class Town(pydantic.BaseModel):
        name: str

    with (
        FaultServer(text='{"name": "Delft"}') as server,
        served(fleet(server), tmp_path) as gateway,
        openai.OpenAI(base_url=gateway.base_url + "/v1", api_key="k") as client,
    ):
        answer = client.chat.completions.parse(model="smart", messages=MESSAGES, response_format=Town)
    parsed = answer.choices[0].message.parsed
    assert parsed is not None
    assert parsed.name == "Delft"


def test_an_unknown_path_is_told_in_the_dialect(claudish: anthropic.Anthropic, chatty: openai.OpenAI) -> None:
    """404 as JSON, in the manners of who asks."""
    with pytest.raises(anthropic.NotFoundError) as told:
        claudish.post("/v1/messages/batches", cast_to=object, body={})
    assert told.value.body == {
        "type": "error",
        "error": {
            "type": "not_found_error",
            "message": "there is no POST /v1/messages/batches; batches are kept at one provider: ask it",
        },
    }
    with pytest.raises(openai.NotFoundError, match="no POST /v1/image; did you mean"):
        chatty.post("/image", cast_to=object, body={})


def test_a_stand_in_answers_when_the_name_asked_for_is_of_no_use(gateway: Served) -> None:
    """`fallbacks` are asked in turn; the array goes no further than the gateway."""
    body = {"model": "smart", "models": ["claude"], "fallbacks": [{"model": "smart"}], "messages": MESSAGES}
    answer = httpx2.post(gateway.base_url + "/v1/chat/completions", json=body)
    assert (answer.status_code, answer.json()["model"]) == (200, "smart")


def test_json_is_read_whatever_the_content_type(gateway: Served) -> None:
    """`curl -d` works as it stands, a query string makes no difference, and HEAD / is answered."""
    url = gateway.base_url + "/v1/chat/completions?beta=true"
    body = b'{"model": "smart", "messages": [{"role": "user", "content": "hello"}]}'
    answer = httpx2.post(url, content=body, headers={"content-type": "application/x-www-form-urlencoded"})
    assert answer.json()["choices"][0]["message"]["content"] == ECHO
    assert httpx2.head(gateway.base_url + "/").status_code == 200


def test_everything_is_given_back(gateway: Served, chatty: openai.OpenAI) -> None:
    """After an answer nothing is in flight."""
    chatty.chat.completions.create(model="smart", messages=MESSAGES)
    assert gateway.in_flight() == 0
