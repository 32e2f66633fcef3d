"""A request whose answer has begun: the same conversation, with the beginning as its last message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smart_model_router.wires.values import is_list, is_object

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_model_router.request import Prefill

_CAPS = ("max_completion_tokens", "max_tokens")
_BYTES_PER_TOKEN = 4


def begun(body: Mapping[str, Any], text: str) -> dict[str, Any]:
    """A body of Chat or Messages with `text` as the beginning of its answer; the cap on the answer shrinks with it.

    A beginning of the caller's own is gone on with: Messages takes only one last message of the assistant.
    """
    messages = list(body["messages"])
    last = messages[-1]
    if is_object(last) and last.get("role") == "assistant" and not last.get("tool_calls"):
        messages[-1] = {**last, "content": _longer(last.get("content"), text)}
    else:
        messages.append({"role": "assistant", "content": text})
    said = len(text.encode(errors="surrogatepass")) // _BYTES_PER_TOKEN
    caps = {key: max(1, body[key] - said) for key in _CAPS if isinstance(body.get(key), int)}
    return {**body, "messages": messages, **caps}


def marked(body: Mapping[str, Any], how: Prefill) -> dict[str, Any]:
    """The body with the sign by which a target knows that its last message is to be gone on with."""
    if how == "prefix":
        *before, last = body["messages"]
        return {**body, "messages": [*before, {**last, "prefix": True}]}
    if how == "continue_final_message":
        return {**body, "continue_final_message": True, "add_generation_prompt": False}
    return dict(body)


def _longer(content: object, text: str) -> Any:
    if is_list(content):
        return [*content, {"type": "text", "text": text}]
    return f"{content}{text}" if isinstance(content, str) else text
