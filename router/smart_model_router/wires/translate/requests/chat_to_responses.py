"""A Chat Completions request as a Responses request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smart_model_router.wires.translate import hosted, reasoning
from smart_model_router.wires.translate.requests.responses_to_chat import (
    LOGPROBS,
    SAME_IN_CHAT,
    SAME_IN_NEWEST_CHAT,
)
from smart_model_router.wires.values import count, given, is_object, items, mapping, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_model_router.wires.translate.translation import Losses, Terms

_HANDLED = frozenset(
    "model stream stream_options messages max_tokens max_completion_tokens tools tool_choice parallel_tool_calls "
    "response_format reasoning_effort verbosity store logprobs top_logprobs web_search_options".split()
)
_MESSAGE = frozenset("role content name".split())
_ANSWER = _MESSAGE | frozenset(
    "refusal tool_calls function_call audio reasoning_content reasoning reasoning_details".split()
)
_RESULT = _MESSAGE | {"tool_call_id"}
_BREAKPOINT = "prompt_cache_breakpoint"
"""A mark of prompt caching that both of OpenAI's dialects have."""
_NO_PARAMETER = "dropped, Responses has no such parameter"
_HARMLESS: dict[str, tuple[Any, ...]] = {
    "n": (1,),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "modalities": (["text"],),
    "functions": ([],),
}
_MEANINGFUL = ("n", "functions", "function_call", "audio", "modalities")
_ROLES = ("system", "developer", "user")


def request(body: Mapping[str, Any], terms: Terms, losses: Losses) -> dict[str, Any]:
    """The Responses body that asks the same. `model` is not in it."""
    said = {key: value for key, value in given(body).items() if value not in _HARMLESS.get(key, ())}
    for key in _MEANINGFUL:
        if key in said:
            losses.refuse(key, "Responses has no such thing")
    same = (*SAME_IN_CHAT, *SAME_IN_NEWEST_CHAT)
    losses.drop_keys(said, (*_HANDLED, *_MEANINGFUL, *same), _NO_PARAMETER)
    losses.drop_keys(mapping(said.get("stream_options")), ("include_usage",), _NO_PARAMETER, inside="stream_options")
    # Chat keeps nothing unless it is told to, Responses keeps everything.
    out: dict[str, Any] = {"input": _items(said, losses), "store": said.get("store") is True}
    out.update((key, said[key]) for key in same if key in said)
    cap = count(said.get("max_completion_tokens")) or count(said.get("max_tokens"))
    if cap:
        out["max_output_tokens"] = cap
    _tools(said, out, losses)
    _text(said, out, losses)
    include = ["reasoning.encrypted_content"] if terms.reasoning else []
    if said.get("logprobs") is True:
        include.append(LOGPROBS)
        if "top_logprobs" in said:
            out["top_logprobs"] = said["top_logprobs"]
    elif "top_logprobs" in said:
        losses.drop("top_logprobs", "dropped, logprobs are not asked for")
    if include:
        out["include"] = include
    effort = said.get("reasoning_effort")
    if effort is not None:
        if terms.reasoning:
            out["reasoning"] = {"effort": effort}
        elif effort != "none":
            losses.drop("reasoning_effort", "dropped, the target is not marked as a reasoning one")
    return out


def _items(said: dict[str, Any], losses: Losses) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    custom: set[str] = set()  # ids of calls of custom tools: their results have a type of their own
    for message in map(mapping, items(said.get("messages"))):
        role = message.get("role")
        if role in _ROLES:
            _check(message, _MESSAGE, losses)
            out.append({"type": "message", "role": role, "content": _content(message.get("content"), losses)})
        elif role == "assistant":
            _check(message, _ANSWER, losses)
            made = _answer(message, losses)
            custom |= {item["call_id"] for item in made if item["type"] == "custom_tool_call"}
            out += made
        elif role == "tool":
            _check(message, _RESULT, losses)
            call = text(message.get("tool_call_id"))
            output = _content(message.get("content"), losses)
            kind = "custom_tool_call_output" if call in custom else "function_call_output"
            out.append({"type": kind, "call_id": call, "output": output})
        else:
            losses.refuse("messages[].role", f"{text(role)!r} is no role in Responses")
    return out


def _check(message: Mapping[str, Any], known: frozenset[str], losses: Losses) -> None:
    if message.get("name"):
        losses.drop("messages[].name", "dropped, Responses has no names")
    losses.drop_keys(message, known, _NO_PARAMETER, inside="messages[]")


def _answer(message: Mapping[str, Any], losses: Losses) -> list[dict[str, Any]]:
    if message.get("function_call") or message.get("audio"):
        losses.refuse("messages[]", "a function_call or audio has no equal in Responses")
    out = reasoning.reasoning_items(message, losses)
    content, refusal = message.get("content"), text(message.get("refusal"))
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else [*map(mapping, items(content))]
    parts += [{"type": "refusal", "refusal": refusal}] if refusal else []
    words = "".join(_said(part, losses) for part in parts)
    if words:
        out.append({"type": "message", "role": "assistant", "content": words})
    out += [_call(mapping(call), losses) for call in items(message.get("tool_calls"))]
    return out


def _said(part: Mapping[str, Any], losses: Losses) -> str:
    kind = text(part.get("type"))
    losses.drop_keys(part, ("type", kind), _NO_PARAMETER, inside="messages[].content[]")
    if kind == "refusal":
        losses.drop("messages[].refusal", "said as text, an answer that is given back has no refusals")
    elif kind != "text":
        losses.refuse("messages[].content", f"a part of type {kind!r} in an answer has no equal in Responses")
    return text(part.get(kind))


def _call(call: Mapping[str, Any], losses: Losses) -> dict[str, Any]:
    kind = text(call.get("type")) or "function"
    called = mapping(call.get(kind))
    losses.drop_keys(call, ("id", "type", "index", kind), _NO_PARAMETER, inside="messages[].tool_calls[]")
    said = "input" if kind == "custom" else "arguments"
    losses.drop_keys(called, ("name", said), _NO_PARAMETER, inside=f"messages[].tool_calls[].{kind}")
    if kind not in ("function", "custom") or not text(called.get("name")):
        losses.refuse("messages[].tool_calls", f"a call of type {kind!r}, or without a name, has no equal in Responses")
    named = {"call_id": text(call.get("id")), "name": text(called.get("name"))}
    if kind == "custom":
        return {"type": "custom_tool_call", **named, "input": text(called.get("input"))}
    return {"type": "function_call", **named, "arguments": text(called.get("arguments")) or "{}"}


def _content(content: object, losses: Losses) -> str | list[dict[str, Any]]:
    if isinstance(content, str):
        return content
    found = (_part(mapping(part), losses) for part in items(content))
    return [part for part in found if part is not None]


def _part(part: Mapping[str, Any], losses: Losses) -> dict[str, Any] | None:
    kind = text(part.get("type"))
    losses.drop_keys(part, ("type", kind, _BREAKPOINT), _NO_PARAMETER, inside="messages[].content[]")
    mark = {} if part.get(_BREAKPOINT) is None else {_BREAKPOINT: part[_BREAKPOINT]}
    if kind == "text":
        return {"type": "input_text", "text": text(part.get("text")), **mark}
    image, file = mapping(part.get("image_url")), mapping(part.get("file"))
    losses.drop_keys(image, ("url", "detail"), _NO_PARAMETER, inside="image_url")
    losses.drop_keys(file, ("file_data", "filename", "file_id"), _NO_PARAMETER, inside="file")
    if kind == "image_url" and text(image.get("url")):
        return {"type": "input_image", "image_url": image["url"], "detail": image.get("detail") or "auto", **mark}
    named = {key: file[key] for key in ("filename", "file_id") if text(file.get(key))}
    if kind == "file" and text(file.get("file_data")) and "file_id" not in named:
        return {"type": "input_file", "file_data": file["file_data"], **named, **mark}
    losses.refuse("messages[].content", f"a part of type {kind!r} (of this source) has no equal in Responses")
    return None


def _tools(said: dict[str, Any], out: dict[str, Any], losses: Losses) -> None:
    tools = [_tool(mapping(tool), losses) for tool in items(said.get("tools"))]
    if is_object(said.get(hosted.OPTIONS)):
        options = said[hosted.OPTIONS]
        tools.append(hosted.responses_tool(options, losses))
        if options.get("max_uses") is not None:
            out["max_tool_calls"] = options["max_uses"]
    choice = said.get("tool_choice")
    if not tools:
        if choice not in (None, "auto", "none"):
            losses.drop("tool_choice", "dropped, there are no tools to choose from")
        return
    out["tools"] = tools
    if isinstance(choice, str):
        out["tool_choice"] = choice
    elif is_object(choice):
        names = {text(tool.get("name")) for tool in tools}
        out["tool_choice"] = _choice(choice, names, losses)
    if said.get("parallel_tool_calls") is False:
        out["parallel_tool_calls"] = False


def _tool(tool: Mapping[str, Any], losses: Losses) -> dict[str, Any]:
    kind = text(tool.get("type"))
    inside = mapping(tool.get(kind))
    losses.drop_keys(tool, ("type", kind), _NO_PARAMETER, inside="tools[]")
    if kind not in ("function", "custom") or not text(inside.get("name")):
        losses.refuse("tools", f"a tool of type {kind!r} has no equal in Responses")
    if kind == "custom":
        losses.drop_keys(inside, ("name", "description", "format"), _NO_PARAMETER, inside="tools[].custom")
        form = mapping(inside.get("format"))
        within = {"format": {"type": form.get("type"), **mapping(form.get(text(form.get("type"))))}} if form else {}
        return {"type": "custom", **given(inside), **within}
    known = ("name", "description", "parameters", "strict")
    losses.drop_keys(inside, known, _NO_PARAMETER, inside="tools[].function")
    kept = {key: inside[key] for key in known if inside.get(key) is not None}
    # Responses is strict unless told otherwise, Chat is not; it wants parameters, which may be left out in Chat.
    return {"type": "function", "parameters": None, **kept, "strict": inside.get("strict") is True}


def _choice(choice: dict[str, Any], names: set[str], losses: Losses) -> dict[str, Any]:
    if choice.get("type") == "allowed_tools":
        allowed = mapping(choice.get("allowed_tools"))
        tools = [_named(mapping(tool), names, losses) for tool in items(allowed.get("tools"))]
        return {"type": "allowed_tools", "mode": allowed.get("mode", "auto"), "tools": tools}
    return _named(choice, names, losses)


def _named(tool: Mapping[str, Any], names: set[str], losses: Losses) -> dict[str, Any]:
    kind = text(tool.get("type"))
    name = text(mapping(tool.get(kind)).get("name"))
    if kind not in ("function", "custom"):
        losses.refuse("tool_choice", f"{kind!r} has no equal in Responses")
    if name == hosted.NAME and name not in names:
        return {"type": hosted.NAME}
    return {"type": kind, "name": name}


def _text(said: dict[str, Any], out: dict[str, Any], losses: Losses) -> None:
    form = mapping(said.get("response_format"))
    kind = form.get("type", "text")
    settings: dict[str, Any] = {}
    losses.drop_keys(form, ("type", "json_schema"), _NO_PARAMETER, inside="response_format")
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
