"""A body in its own dialect made ready to send: defaults added, an answer begun, seals of ours taken out."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from smart_model_router.domain.request import Dialect
from smart_model_router.wires.translate.hosted import SEARCH_ID
from smart_model_router.wires.translate.reasoning import SEAL, is_sealed
from smart_model_router.wires.values import count, is_list, is_object, items, mapping, text

if TYPE_CHECKING:
    from smart_model_router.domain.request import Prefill

_LENGTHS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
"""Every name that the cap on an answer has: a caller that gave one needs no default."""
_LENGTH_IN: Mapping[Dialect, str] = MappingProxyType(
    {"chat": "max_tokens", "messages": "max_tokens", "responses": "max_output_tokens"}
)


def with_defaults(
    dialect: Dialect, body: Mapping[str, Any], defaults: Mapping[str, Any], *, newest_chat: bool
) -> Mapping[str, Any]:
    """The body with the defaults that it does not have, in the words of `dialect`; the same when it has all of them.

    `newest_chat`: a Chat target that takes `max_completion_tokens` and refuses `max_tokens`. Embeddings take none, and
    Responses no `thinking`.
    """
    if dialect not in _LENGTH_IN:
        return body
    added: dict[str, Any] = {}
    for name, value in defaults.items():
        if name == "max_tokens":
            if all(body.get(length) is None for length in _LENGTHS):
                added["max_completion_tokens" if dialect == "chat" and newest_chat else _LENGTH_IN[dialect]] = value
        elif body.get(name) is None and (name != "thinking" or dialect != "responses"):
            added[name] = value
    return {**body, **added} if added else body


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

    Not by the words that a target may be asked to repeat, nor to what is left for thoughts alone: Anthropic refuses a
    `max_tokens` that is not above `thinking.budget_tokens`, and Claude Code's is by one.
    A beginning of the caller's own is gone on with: Messages takes only one last message of the assistant.
    """
    messages = list(body["messages"])
    last = messages[-1]
    if is_object(last) and last.get("role") == "assistant" and not last.get("tool_calls"):
        messages[-1] = {**last, "content": _longer(last.get("content"), text_so_far)}
    else:
        messages.append({"role": "assistant", "content": text_so_far})
    said = max(0, len(text_so_far.encode(errors="surrogatepass")) - ASKED_BYTES) // _BYTES_PER_TOKEN
    least = 1 + (count(mapping(body.get("thinking")).get("budget_tokens")) or 0)
    caps = {key: max(min(least, cap), cap - said) for key in _CAPS if (cap := count(body.get(key))) is not None}
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


_MARKS = (b'"' + SEAL.encode(), b'"' + SEARCH_ID.encode())
SEALING_DIALECTS: frozenset[Dialect] = frozenset({"messages", "responses"})
SEALED = "reasoning: dropped, it is signed or encrypted for another provider"


def holds_seals(*written: bytes) -> bool:
    """Return whether a body (in pieces, as JSON) may hold one: a search of bytes, for every request."""
    return any(mark in piece for piece in written for mark in _MARKS)


def without_seals(dialect: Dialect, body: Mapping[str, Any]) -> dict[str, Any]:
    """The body without the reasoning that other providers did."""
    if dialect == "responses":
        kept = [item for item in items(body.get("input")) if not is_sealed(mapping(item).get("encrypted_content"))]
        return {**body, "input": kept}
    return {**body, "messages": [one for message in items(body.get("messages")) for one in _cleaned(message)]}


def _cleaned(message: Any) -> list[Any]:
    """The message without seals; nothing when there was nothing else in it, which Messages would reject."""
    content = mapping(message).get("content")
    if not is_object(message) or not is_list(content):
        return [message]
    kept = [_uncited(block) for block in content if not _is_ours(mapping(block))]
    return [{**message, "content": kept}] if kept or not content else []


def _is_ours(block: Mapping[str, Any]) -> bool:
    """Return whether a block was made by us: a thought of another provider, or a search that it made."""
    made = text(block.get("id")) or text(block.get("tool_use_id"))
    return is_sealed(block.get("signature")) or made.startswith(SEARCH_ID)


def _uncited(block: Any) -> Any:
    """The block without citations of another provider: Messages signs the places of its own."""
    citations = items(mapping(block).get("citations"))
    kept = [one for one in citations if not is_sealed(mapping(one).get("encrypted_index"))]
    if len(kept) == len(citations):
        return block
    return {
        **{key: value for key, value in block.items() if key != "citations"},
        **({"citations": kept} if kept else {}),
    }
