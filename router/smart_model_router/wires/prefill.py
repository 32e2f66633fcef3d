"""A request whose answer has begun: the same conversation, with the beginning as a message of the assistant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smart_model_router.wires.values import is_list, is_object, mapping, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_model_router.domain.request import Prefill

ASKED_BYTES = 48
"""At least so much of the delivered end (UTF-8, from the beginning of a word) is quoted to a target that is asked."""
_REQUEST = """\
The connection broke while you were answering, and your last message is incomplete. Continue it: your next message is \
appended to it. Begin by repeating, exactly and without quotes, the last words of your incomplete message:
{tail}
Then go on from there as if nothing had happened. No greeting, no apology, no comment on the interruption, no summary. \
If a tool call was to follow, make that call."""
_CAPS = ("max_completion_tokens", "max_tokens")
_BYTES_PER_TOKEN = 4


def begun(body: Mapping[str, Any], text_so_far: str) -> dict[str, Any]:
    """A body of Chat or Messages with the beginning of its answer; the cap on the answer shrinks with it.

    A beginning of the caller's own is gone on with: Messages takes only one last message of the assistant.
    """
    messages = list(body["messages"])
    last = messages[-1]
    if is_object(last) and last.get("role") == "assistant" and not last.get("tool_calls"):
        messages[-1] = {**last, "content": _longer(last.get("content"), text_so_far)}
    else:
        messages.append({"role": "assistant", "content": text_so_far})
    said = len(text_so_far.encode(errors="surrogatepass")) // _BYTES_PER_TOKEN
    caps = {key: max(1, body[key] - said) for key in _CAPS if isinstance(body.get(key), int)}
    return {**body, "messages": messages, **caps}


def is_asked(body: Mapping[str, Any], how: Prefill) -> bool:
    """Return whether a target is asked by a message: it has no prefill, or has none while it thinks (Anthropic's)."""
    return how == "asked" or (how == "plain" and mapping(body.get("thinking")).get("type") not in (None, "disabled"))


def marked(body: Mapping[str, Any], how: Prefill) -> dict[str, Any]:
    """The body with the sign by which a target knows that it is to continue the last message of the assistant."""
    if is_asked(body, how):
        said = _text(body["messages"][-1].get("content"))
        asked = _REQUEST.format(tail=said[_start_of_tail(said) :])
        return {**body, "messages": [*body["messages"], {"role": "user", "content": asked}]}
    if how == "prefix":
        *before, last = body["messages"]
        return {**body, "messages": [*before, {**last, "prefix": True}]}
    if how == "continue_final_message":
        return {**body, "continue_final_message": True, "add_generation_prompt": False}
    return dict(body)


def asked_before(messages: list[Any]) -> list[Any]:
    """Return the conversation that was asked in words to continue; the messages themselves where they do not ask."""
    if len(messages) < 3 or not _text(mapping(messages[-1]).get("content")).startswith(_REQUEST.partition("{")[0]):
        return messages
    return messages[:-2]


def _start_of_tail(said: str) -> int:
    """Return where the last words begin that weigh enough; 0 when all of it weighs less."""
    at, weight = len(said), 0
    while at and weight < ASKED_BYTES:
        at -= 1
        weight += len(said[at].encode(errors="surrogatepass"))
    while at and not said[at - 1].isspace() and said[at - 1].isascii():
        at -= 1
    return at


def _text(content: object) -> str:
    if is_list(content):
        return "".join(text(mapping(part).get("text")) for part in content)
    return text(content)


def _longer(content: object, more: str) -> Any:
    if is_list(content):
        return [*content, {"type": "text", "text": more}]
    return f"{content}{more}" if isinstance(content, str) else more
