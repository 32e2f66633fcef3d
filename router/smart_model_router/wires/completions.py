"""Legacy Completions, which clients still ask: read as Chat, and Chat answers written as Completions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smart_model_router.wires.chat import visible
from smart_model_router.wires.translate.translation import Losses, Untranslatable
from smart_model_router.wires.values import is_list, items, mapping, text

if TYPE_CHECKING:
    from collections.abc import Mapping

_OURS = frozenset({"prompt", "suffix", "echo", "best_of", "logprobs"})
"""The fields that Chat names otherwise or lacks; all others go through as they came."""
_FINISHES = frozenset({"stop", "length", "content_filter"})
_LOST = ("reasoning_content", "reasoning", "reasoning_details", "annotations", "audio")


class PromptError(ValueError):
    """A body that is no Completions request; the message names the field."""


class Completion:
    """One Completions request. `body` is it as Chat; `refusal` is why it cannot be; `losses` grow with the answer.

    Raises PromptError. Source: OpenAI's API reference, "Completions (legacy)".
    """

    def __init__(self, body: Mapping[str, Any]) -> None:
        self._losses = Losses()
        prompt = self._prompt(body.get("prompt"))
        self._echo = prompt if body.get("echo") is True else ""
        self._echoed: set[int] = set()
        self._offsets: dict[int, int] = {}
        self.body = {key: value for key, value in body.items() if key not in _OURS}
        self.body["messages"] = [{"role": "user", "content": prompt}]
        if body.get("suffix"):
            self._losses.refuse("suffix", "Chat has no way to write what lies between two texts")
        if body.get("best_of") not in (None, body.get("n") or 1):
            self._losses.drop("best_of", "Chat has no choice of the best; the first answers are given")
        self._ask_logprobs(body.get("logprobs"))

    @property
    def refusal(self) -> Untranslatable | None:
        """The field of the request that Chat has no equal for, with the reason; None when there is none."""
        return self._losses.refusal

    @property
    def losses(self) -> tuple[str, ...]:
        """The losses so far, in words."""
        return self._losses.entries

    def whole(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        """A whole Chat answer as a Completion."""
        return self._written(answer, "message")

    def chunk(self, data: Mapping[str, Any]) -> dict[str, Any] | None:
        """One chunk of a Chat stream as one of a Completion; None for one that says nothing in it."""
        written = self._written(data, "delta")
        told = any(choice["text"] or choice["finish_reason"] for choice in written["choices"])
        return written if told or data.get("usage") else None

    def _prompt(self, prompt: object) -> str:
        if is_list(prompt) and len(prompt) == 1:  # LangChain sends every prompt in a list
            prompt = prompt[0]
        if isinstance(prompt, str):
            return prompt
        if is_list(prompt) and prompt:
            if all(isinstance(one, str) for one in prompt):
                self._losses.refuse("prompt", "several prompts in one request; ask them one by one")
                return ""
            if all(isinstance(one, (int, list)) and not isinstance(one, bool) for one in prompt):
                self._losses.refuse("prompt", "numbers of tokens, which only the model they were made for can read")
                return ""
        raise PromptError("prompt: text is needed, or a list with one text")

    def _ask_logprobs(self, most: object) -> None:
        if most is None:
            return
        if not isinstance(most, int) or isinstance(most, bool) or most < 0:
            raise PromptError("logprobs: a whole number from 0 is needed")
        self.body["logprobs"] = True
        if most:
            self.body["top_logprobs"] = most
        if self._echo:
            self._losses.drop("logprobs", "Chat tells none of the prompt; those of the answer are given")

    def _written(self, data: Mapping[str, Any], holder: str) -> dict[str, Any]:
        choices = [self._choice(mapping(choice), holder) for choice in items(data.get("choices"))]
        return {**data, "object": "text_completion", "choices": choices}

    def _choice(self, choice: Mapping[str, Any], holder: str) -> dict[str, Any]:
        said, index = mapping(choice.get(holder)), choice.get("index", 0)
        for lost in _LOST:
            if said.get(lost):
                self._losses.drop(lost, "Completions have no place for it")
        words = visible(said.get("content")) or text(said.get("refusal"))
        finish = choice.get("finish_reason")
        echo = "" if index in self._echoed or not (words or finish) else self._echo
        if echo:
            self._echoed.add(index)
        return {
            "text": echo + words,
            "index": index,
            "logprobs": self._logprobs(choice.get("logprobs"), index),
            "finish_reason": finish if finish is None or finish in _FINISHES else "stop",
        }

    def _logprobs(self, given: object, index: int) -> dict[str, Any] | None:
        tokens = [mapping(token) for token in items(mapping(given).get("content"))]
        if not tokens:
            return None
        at = self._offsets.get(index, len(self._echo))
        offsets = []
        for token in tokens:
            offsets.append(at)
            at += len(text(token.get("token")))
        self._offsets[index] = at
        tops = [[mapping(top) for top in items(token.get("top_logprobs"))] for token in tokens]
        return {
            "tokens": [text(token.get("token")) for token in tokens],
            "token_logprobs": [token.get("logprob") for token in tokens],
            "top_logprobs": [{text(top.get("token")): top.get("logprob") for top in one} for one in tops],
            "text_offset": offsets,
        }
