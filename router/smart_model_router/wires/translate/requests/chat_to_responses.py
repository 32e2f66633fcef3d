"""A Chat Completions request as a Responses request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smart_model_router.wires.translate import reasoning
from smart_model_router.wires.translate.requests.responses_to_chat import SAME_IN_CHAT, SAME_IN_NEWEST_CHAT
from smart_model_router.wires.translate.words import given
from smart_model_router.wires.values import count, is_object, items, mapping, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_model_router.wires.translate.losses import Losses
    from smart_model_router.wires.translate.terms import Terms

_HANDLED = frozenset(
    "model stream stream_options messages max_tokens max_completion_tokens tools tool_choice parallel_tool_calls "
    "response_format reasoning_effort verbosity store".split()
)
_HARMLESS: dict[str, tuple[Any, ...]] = {
    "n": (1,),
    "logprobs": (False,),
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "modalities": (["text"],),
    "logit_bias": ({},),
    "functions": ([],),
}
_MEANINGFUL = ("n", "functions", "function_call", "audio", "modalities", "web_search_options")
_ROLES = ("system", "developer", "user")


def request(body: Mapping[str, Any], terms: Terms, losses: Losses) -> dict[str, Any]:
    """The Responses body that asks the same. `model` is not in it."""
    said = {key: value for key, value in given(body).items() if value not in _HARMLESS.get(key, ())}
    for key in _MEANINGFUL:
        if key in said:
            losses.refuse(key, "Responses has no such thing")
    same = (*SAME_IN_CHAT, *SAME_IN_NEWEST_CHAT)
    losses.drop_keys(said, (*_HANDLED, *_MEANINGFUL, *same), "dropped, Responses has no such parameter")
    # Chat keeps nothing unless it is told to, Responses keeps everything.
    out: dict[str, Any] = {"input": _items(said, losses), "store": said.get("store") is True}
    out.update((key, said[key]) for key in same if key in said)
    cap = count(said.get("max_completion_tokens")) or count(said.get("max_tokens"))
    if cap:
        out["max_output_tokens"] = cap
    _tools(said, out, losses)
    _text(said, out, losses)
    if terms.reasoning:
        out["include"] = ["reasoning.encrypted_content"]
    effort = said.get("reasoning_effort")
    if effort not in (None, "none"):
        if terms.reasoning:
            out["reasoning"] = {"effort": effort}
        else:
            losses.drop("reasoning_effort", "dropped, the target is not marked as a reasoning one")
    return out


def _items(said: dict[str, Any], losses: Losses) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    for message in map(mapping, items(said.get("messages"))):
        role = message.get("role")
        if role in _ROLES:
            if message.get("name"):
                losses.drop("messages[].name", "dropped, Responses has no names")
            out.append({"type": "message", "role": role, "content": _content(message.get("content"), losses)})
        elif role == "assistant":
            out += _answer(message, losses)
        elif role == "tool":
            call = text(message.get("tool_call_id"))
            output = _content(message.get("content"), losses)
            out.append({"type": "function_call_output", "call_id": call, "output": output})
        else:
            losses.refuse("messages[].role", f"{text(role)!r} is no role in Responses")
    return out


def _answer(message: Mapping[str, Any], losses: Losses) -> list[dict[str, Any]]:
    if message.get("function_call") or message.get("audio"):
        losses.refuse("messages[]", "a function_call or audio has no equal in Responses")
    out = reasoning.reasoning_items(message, losses)
    content = message.get("content")
    if content or message.get("refusal"):
        said = (
            content
            if isinstance(content, str)
            else "".join(
                text(mapping(part).get("text")) or text(mapping(part).get("refusal")) for part in items(content)
            )
        )
        words = said or text(message.get("refusal"))
        out.append({"type": "message", "role": "assistant", "content": words})
    for call in map(mapping, items(message.get("tool_calls"))):
        function = mapping(call.get("function"))
        if call.get("type") not in (None, "function") or not text(function.get("name")):
            losses.refuse("messages[].tool_calls", "a call that is no function's has no equal in Responses")
        out.append(
            {
                "type": "function_call",
                "call_id": text(call.get("id")),
                "name": text(function.get("name")),
                "arguments": text(function.get("arguments")) or "{}",
            }
        )
    return out


def _content(content: object, losses: Losses) -> str | list[dict[str, Any]]:
    if isinstance(content, str):
        return content
    found = (_part(mapping(part), losses) for part in items(content))
    return [part for part in found if part is not None]


def _part(part: Mapping[str, Any], losses: Losses) -> dict[str, Any] | None:
    kind = part.get("type")
    if kind == "text":
        return {"type": "input_text", "text": text(part.get("text"))}
    image, file = mapping(part.get("image_url")), mapping(part.get("file"))
    if kind == "image_url" and text(image.get("url")):
        return {"type": "input_image", "image_url": image["url"], "detail": image.get("detail") or "auto"}
    if kind == "file" and text(file.get("file_data")):
        named = {"filename": file["filename"]} if text(file.get("filename")) else {}
        return {"type": "input_file", "file_data": file["file_data"], **named}
    losses.refuse("messages[].content", f"a part of type {text(kind)!r} (of this source) has no equal in Responses")
    return None


def _tools(said: dict[str, Any], out: dict[str, Any], losses: Losses) -> None:
    tools: list[dict[str, Any]] = []
    for tool in map(mapping, items(said.get("tools"))):
        function = mapping(tool.get("function"))
        if tool.get("type") != "function" or not text(function.get("name")):
            losses.refuse("tools", f"a tool of type {text(tool.get('type'))!r} has no equal in Responses")
        # Responses is strict unless told otherwise, Chat is not.
        tools.append({"type": "function", **given(function), "strict": function.get("strict") is True})
    if not tools:
        return
    out["tools"] = tools
    choice = said.get("tool_choice")
    if isinstance(choice, str):
        out["tool_choice"] = choice
    elif is_object(choice):
        out["tool_choice"] = _choice(choice, losses)
    if said.get("parallel_tool_calls") is False:
        out["parallel_tool_calls"] = False


def _choice(choice: dict[str, Any], losses: Losses) -> dict[str, Any]:
    if choice.get("type") == "allowed_tools":
        allowed = mapping(choice.get("allowed_tools"))
        tools = [_named(mapping(tool)) for tool in items(allowed.get("tools"))]
        return {"type": "allowed_tools", "mode": allowed.get("mode", "auto"), "tools": tools}
    if choice.get("type") != "function":
        losses.refuse("tool_choice", f"{text(choice.get('type'))!r} has no equal in Responses")
    return _named(choice)


def _named(tool: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "function", "name": text(mapping(tool.get("function")).get("name"))}


def _text(said: dict[str, Any], out: dict[str, Any], losses: Losses) -> None:
    form = mapping(said.get("response_format"))
    kind = form.get("type", "text")
    settings: dict[str, Any] = {}
    if kind == "json_schema":
        settings["format"] = {"type": "json_schema", **given(mapping(form.get("json_schema")))}
    elif kind == "json_object":
        settings["format"] = {"type": "json_object"}
    elif kind != "text":
        losses.refuse("response_format", f"{text(kind)!r} has no equal in Responses")
    if said.get("verbosity") is not None:
        settings["verbosity"] = said["verbosity"]
    if settings:
        out["text"] = settings
