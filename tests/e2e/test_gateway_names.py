"""Model names as real clients ask for them: wildcards, and one 404 for a name that leads nowhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import anthropic
import httpx2
import openai
import pytest

from smart_model_router_providers.fault import Fault, FaultServer
from tests.e2e.gateways import ECHO, MESSAGES, Served, fleet, served

TOO_LONG = {
    "error": {"message": "This model's maximum context length is 8192 tokens.", "type": "invalid_request_error"}
}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A gateway with the model `smart` and a wildcard, before a provider that is well."""
    with FaultServer() as upstream:
        config = fleet(upstream)
        config["models"]["any/*"] = {"targets": ["ao/*"], "last_resort": []}
        with served(config, tmp_path_factory.mktemp("gateway")) as running:
            yield running


def test_a_name_of_a_wildcard_reaches_the_target_of_that_name(chatty: openai.OpenAI) -> None:
    """The provider is asked for the text of the `*`, a slash in it included; the answer has the name asked for."""
    raw = chatty.chat.completions.with_raw_response.create(model="any/meta/llama-3.3", messages=MESSAGES)
    answer = raw.parse()
    assert (answer.model, answer.choices[0].message.content) == ("any/meta/llama-3.3", ECHO)
    assert raw.headers["x-router-model"] == "meta/llama-3.3"


OPENAI_CALLS: dict[str, Callable[[openai.OpenAI], object]] = {
    "chat": lambda client: client.chat.completions.create(model="smrat", messages=MESSAGES),
    "chat stream": lambda client: client.chat.completions.create(model="smrat", messages=MESSAGES, stream=True),
    "responses": lambda client: client.responses.create(model="smrat", input="hello"),
    "embeddings": lambda client: client.embeddings.create(model="smrat", input="hello"),
    "completions": lambda client: client.completions.create(model="smrat", prompt="hello"),
    "model": lambda client: client.models.retrieve("smrat"),
}


@pytest.mark.parametrize("call", OPENAI_CALLS)
def test_an_unknown_model_is_a_404_to_openais_sdk(chatty: openai.OpenAI, call: str) -> None:
    """POST and GET alike: `model_not_found`, with the name that was probably meant."""
    with pytest.raises(openai.NotFoundError) as caught:
        OPENAI_CALLS[call](chatty)
    assert caught.value.code == "model_not_found"
    assert "did you mean 'smart'?" in caught.value.message


ANTHROPIC_CALLS: dict[str, Callable[[anthropic.Anthropic], object]] = {
    "messages": lambda client: client.messages.create(model="smrat", messages=MESSAGES, max_tokens=9),
    "model": lambda client: client.models.retrieve("smrat"),
}


@pytest.mark.parametrize("call", ANTHROPIC_CALLS)
def test_an_unknown_model_is_a_404_to_anthropics_sdk(claudish: anthropic.Anthropic, call: str) -> None:
    """`not_found_error` in Anthropic's form, by POST and GET."""
    with pytest.raises(anthropic.NotFoundError) as caught:
        ANTHROPIC_CALLS[call](claudish)
    body = caught.value.body
    assert isinstance(body, dict)
    assert body["error"]["type"] == "not_found_error"
    assert "did you mean 'smart'?" in caught.value.message


def test_a_base_url_without_v1_works(gateway: Served) -> None:
    """Clients that add `/chat/completions` to the address of the server are answered."""
    with openai.OpenAI(base_url=gateway.base_url, api_key="client-secret", max_retries=0) as client:
        assert client.chat.completions.create(model="smart", messages=MESSAGES).choices[0].message.content == ECHO
        assert "smart" in [model.id for model in client.models.list()]


def test_azures_client_names_the_model_in_the_path(gateway: Served) -> None:
    """AzureOpenAI asks at `/openai/deployments/{model}/...`: the deployment is the model, whole and as a stream."""
    with openai.AzureOpenAI(
        azure_endpoint=gateway.base_url, api_key="client-secret", api_version="2024-10-21", max_retries=0
    ) as client:
        assert client.chat.completions.create(model="smart", messages=MESSAGES).choices[0].message.content == ECHO
        stream = client.chat.completions.create(model="any/x", messages=MESSAGES, stream=True)
        assert "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices) == ECHO
        with pytest.raises(openai.NotFoundError, match="did you mean 'smart'"):
            client.chat.completions.create(model="smrat", messages=MESSAGES)
    with openai.AzureOpenAI(
        azure_endpoint=gateway.base_url,
        azure_deployment="smart",
        api_key="client-secret",
        api_version="2024-10-21",
        max_retries=0,
    ) as client:
        assert client.chat.completions.create(model="", messages=MESSAGES).choices[0].message.content == ECHO
        assert client.responses.create(model="smart", input="hello").output_text == ECHO


def test_a_path_that_is_not_there_says_what_would_be_right(gateway: Served) -> None:
    """The 404 of a mistyped path names the path."""
    status, body = gateway.post("/v1/chat/completion", b"{}", "content-type: application/json")
    assert status == 404
    assert "did you mean '/v1/chat/completions'?" in body["error"]["message"]


def test_models_of_a_wildcard_are_those_its_provider_lists(chatty: openai.OpenAI) -> None:
    """The configured names, and what the provider lists under the wildcard's name; each can be retrieved and asked."""
    names = [model.id for model in chatty.models.list()]
    assert names[:2] == ["smart", "claude"]
    listed = [name for name in names if name.startswith("any/")]
    assert listed
    assert chatty.models.retrieve(listed[0]).id == listed[0]
    assert chatty.models.retrieve("any/not/listed").id == "any/not/listed"
    assert chatty.chat.completions.create(model=listed[0], messages=MESSAGES).choices[0].message.content == ECHO


def test_health_and_readiness_answer_where_there_are_wildcards(gateway: Served, chatty: openai.OpenAI) -> None:
    """Found: both were a 404 for a model named `any/*`. A name that the provider does not have says nothing of us."""
    chatty.chat.completions.create(model="any/x", messages=MESSAGES)
    told = gateway.health()
    assert told["models"] == {}
    assert "ao/x" in [target["id"] for target in told["targets"]]
    with httpx2.Client(base_url=gateway.base_url) as client:
        ready = client.get("/health/readiness")
    assert (ready.status_code, ready.json()["models"]) == (200, {})


def test_anthropics_client_lists_models(claudish: anthropic.Anthropic) -> None:
    """The same list in Anthropic's form."""
    assert "smart" in [model.id for model in claudish.models.list()]


def test_models_tell_their_context_windows(tmp_path: Path) -> None:
    """The configuration's window, else what the provider said when it refused, else the price list's."""
    with FaultServer() as upstream:
        config = fleet(upstream)
        config["providers"]["listed"] = {"kind": "openai", "base_url": upstream.base_url, "api_key": "k"}
        config["models"]["told"] = {"targets": [{"target": "ao/told", "context_tokens": 5000}], "last_resort": []}
        config["models"]["listed"] = {"targets": ["listed/gpt-4o"], "last_resort": []}
        with (
            served(config, tmp_path) as running,
            openai.OpenAI(base_url=running.base_url + "/v1", api_key="k", max_retries=0) as client,
        ):

            def windows() -> dict[str, int | None]:
                return {model.id: getattr(model, "context_window", None) for model in client.models.list()}

            found = windows()
            assert (found["told"], found["listed"], found["smart"]) == (5000, 128_000, None)
            upstream.set([Fault.status(400, body=TOO_LONG)])
            with pytest.raises(openai.BadRequestError, match="maximum context length is 8192"):
                client.chat.completions.create(model="smart", messages=MESSAGES)
            assert windows()["smart"] == 8192
            assert client.models.retrieve("smart").model_dump()["max_input_tokens"] == 8192


def test_a_prompt_too_long_is_tried_once_where_the_window_is_unknown(tmp_path: Path) -> None:
    """The next target may take it; the first is asked once."""
    with FaultServer() as small, FaultServer() as large, served(fleet(small, large), tmp_path) as running:
        small.set([Fault.status(400, body=TOO_LONG)])
        with openai.OpenAI(base_url=running.base_url + "/v1", api_key="k", max_retries=0) as client:
            assert client.chat.completions.create(model="smart", messages=MESSAGES).choices[0].message.content == ECHO
        assert (len(small.requests), len(large.requests)) == (1, 1)


def test_an_answer_of_a_fallback_names_its_model(tmp_path: Path) -> None:
    """Whole and streamed, in Chat and Messages, through the gateway; the first choice answers in the name asked for."""
    with FaultServer() as first, FaultServer() as second:
        config = fleet(first, second)
        for name, kind in (("smart", "o"), ("claude", "a")):
            config["models"][name]["tiers"] = [{"targets": [f"a{kind}/big"]}, {"targets": [f"b{kind}/small"]}]
        with (
            served(config, tmp_path) as running,
            openai.OpenAI(base_url=running.base_url + "/v1", api_key="k", max_retries=0) as chatty,
            anthropic.Anthropic(base_url=running.base_url, api_key="k", max_retries=0) as claudish,
        ):

            def names() -> list[str]:
                chat = chatty.chat.completions
                whole = chat.create(model="smart", messages=MESSAGES).model
                streamed = {chunk.model for chunk in chat.create(model="smart", messages=MESSAGES, stream=True)}
                message = claudish.messages.create(model="claude", messages=MESSAGES, max_tokens=9).model
                with claudish.messages.stream(model="claude", messages=MESSAGES, max_tokens=9) as stream:
                    return [whole, *streamed, message, stream.get_final_message().model]

            assert names() == ["smart", "smart", "claude", "claude"]
            first.set([Fault.status(500)])
            assert names() == ["small"] * 4
