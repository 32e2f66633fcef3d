"""Legacy Completions asked as Chat, and Chat answers written as Completions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types import Completion as SdkCompletion

from smart_model_router.wires.completions import Completion, PromptError
from smart_model_router.wires.translate import Untranslatable


def chat(*choices: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A whole Chat answer."""
    return {"id": "c-1", "object": "chat.completion", "created": 1, "model": "m", "choices": list(choices), **more}


def said(content: Any, index: int = 0, finish: str = "stop", **more: Any) -> dict[str, Any]:
    """One choice of it."""
    return {"index": index, "finish_reason": finish, "message": {"role": "assistant", "content": content}, **more}


def delta(content: str | None, index: int = 0, finish: str | None = None, **more: Any) -> dict[str, Any]:
    """One chunk of a Chat stream with one choice."""
    spoken = {} if content is None else {"content": content}
    return chat({"index": index, "finish_reason": finish, "delta": spoken, **more})


def test_what_means_the_same_goes_through_as_it_came() -> None:
    """The prompt becomes the one message; caps, stops, seeds and fields nobody knows are not touched."""
    body = {"model": "m", "prompt": "hi", "max_tokens": 5, "stop": ["\n"], "n": 2, "seed": 1, "min_p": 0.1}
    rest = {key: value for key, value in body.items() if key != "prompt"}
    read = Completion(body)
    assert read.body == {**rest, "messages": [{"role": "user", "content": "hi"}]}
    assert (read.losses, read.refusal) == ((), None)


def test_a_list_of_one_prompt_is_that_prompt() -> None:
    """LangChain sends it so."""
    assert Completion({"prompt": ["hi"]}).body["messages"][0]["content"] == "hi"


@pytest.mark.parametrize(
    ("more", "where"),
    [
        ({"prompt": ["a", "b"]}, "prompt"),
        ({"prompt": [1, 2]}, "prompt"),
        ({"prompt": [[1, 2], [3]]}, "prompt"),
        ({"suffix": "end"}, "suffix"),
    ],
)
def test_what_chat_cannot_mean_is_refused(more: dict[str, Any], where: str) -> None:
    """Several prompts, numbers of tokens and a suffix would be another request."""
    refusal = Completion({"prompt": "hi", **more}).refusal
    assert isinstance(refusal, Untranslatable)
    assert refusal.where == where


@pytest.mark.parametrize(
    "body", [{}, {"prompt": None}, {"prompt": 3}, {"prompt": []}, {"prompt": [True]}, {"prompt": "x", "logprobs": "y"}]
)
def test_what_is_no_request_is_told(body: dict[str, Any]) -> None:
    """The message names the field."""
    with pytest.raises(PromptError, match=r"prompt|logprobs"):
        Completion(body)


def test_losses_are_listed() -> None:
    """`best_of`, the prompt's own logprobs, and reasoning in the answer."""
    read = Completion({"prompt": "hi", "best_of": 3, "echo": True, "logprobs": 1})
    read.whole(chat(said("x") | {"message": {"content": "x", "reasoning_content": "hm"}}))
    assert [loss.partition(":")[0] for loss in read.losses] == ["best_of", "logprobs", "reasoning_content"]
    assert Completion({"prompt": "hi", "best_of": 1}).losses == ()
    assert Completion({"prompt": "hi", "best_of": 2, "n": 2}).losses == ()


def test_a_whole_answer_is_one_the_sdk_can_read() -> None:
    """Every choice keeps its index, its text and its reason; usage and unknown fields stay."""
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    answer = Completion({"prompt": "hi", "n": 2}).whole(
        chat(said("a"), said([{"type": "text", "text": "b"}], 1, "length"), usage=usage, odd=1)
    )
    parsed = SdkCompletion.model_validate(answer, strict=True)
    assert [(choice.index, choice.text, choice.finish_reason) for choice in parsed.choices] == [
        (0, "a", "stop"),
        (1, "b", "length"),
    ]
    assert (answer["object"], answer["usage"], answer["odd"]) == ("text_completion", usage, 1)


def test_a_refusal_is_the_text_and_foreign_reasons_become_stop() -> None:
    """A Completion has no other place for words, and three reasons."""
    answer = Completion({"prompt": "hi"}).whole(
        chat({"index": 0, "finish_reason": "tool_calls", "message": {"content": None, "refusal": "No."}})
    )
    assert (answer["choices"][0]["text"], answer["choices"][0]["finish_reason"]) == ("No.", "stop")


def test_echo_comes_before_the_answer_once_a_choice() -> None:
    """Whole and streamed."""
    assert Completion({"prompt": "hi", "echo": True}).whole(chat(said(" you")))["choices"][0]["text"] == "hi you"
    read = Completion({"prompt": "hi", "echo": True})
    texts = [read.chunk(piece) for piece in (delta(" a"), delta(" b", 1), delta(" c"), delta(None, 1, finish="stop"))]
    assert [piece["choices"][0]["text"] for piece in texts if piece] == ["hi a", "hi b", " c", ""]


def test_a_chunk_that_says_nothing_is_left_out() -> None:
    """The role of the first Chat chunk has no meaning here; usage and the end have."""
    read = Completion({"prompt": "hi"})
    assert read.chunk(delta(None)) is None
    assert read.chunk(delta(None, finish="length")) is not None
    assert read.chunk(chat(usage={"prompt_tokens": 1})) is not None


def test_logprobs_are_asked_for_and_told_in_the_old_form() -> None:
    """Offsets count the characters of the answer so far, after the echo."""
    read = Completion({"prompt": "hi", "logprobs": 2, "echo": True})
    assert (read.body["logprobs"], read.body["top_logprobs"]) == (True, 2)
    assert Completion({"prompt": "hi", "logprobs": 0}).body.keys() == {"messages", "logprobs"}
    content = [{"token": " you", "logprob": -0.5, "top_logprobs": [{"token": " me", "logprob": -1.0}]}]
    first = read.chunk(delta(" you", logprobs={"content": content}))
    second = read.chunk(delta("!", logprobs={"content": [{"token": "!", "logprob": -0.1, "top_logprobs": []}]}))
    assert first is not None
    assert second is not None
    assert first["choices"][0]["logprobs"] == {
        "tokens": [" you"],
        "token_logprobs": [-0.5],
        "top_logprobs": [{" me": -1.0}],
        "text_offset": [2],
    }
    assert second["choices"][0]["logprobs"]["text_offset"] == [6]


values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
asked = st.dictionaries(
    st.sampled_from(["prompt", "suffix", "echo", "best_of", "logprobs", "n"]) | st.text(max_size=4), values, max_size=6
)
answered = st.fixed_dictionaries(
    {},
    optional={
        "choices": st.lists(
            st.fixed_dictionaries({}, optional=dict.fromkeys(("index", "message", "delta", "logprobs"), values))
            | values,
            max_size=3,
        )
        | values,
        "usage": values,
    },
)


@given(body=asked, answer=answered)
def test_nothing_but_a_prompt_error_is_raised(body: dict[str, Any], answer: dict[str, Any]) -> None:
    """Whatever a client asks and a provider answers."""
    try:
        read = Completion(body)
    except PromptError:
        return
    assert read.whole(answer)["object"] == "text_completion"
    read.chunk(answer)
