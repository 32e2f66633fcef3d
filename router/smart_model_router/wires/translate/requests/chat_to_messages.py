"""A Chat Completions request as a Messages request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smart_model_router.wires.translate import hosted, media, reasoning
from smart_model_router.wires.translate.words import FORMAT_NAME, JSON_TOOL, TOOL_ERROR, arguments_of, tool_use_id
from smart_model_router.wires.values import count, given, is_object, items, mapping, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_model_router.wires.translate.translation import Losses, Terms

MAX_TOKENS = 8192
"""The cap of an answer when the caller named none: Messages demands one."""

_HANDLED = frozenset(
    "model stream stream_options messages max_tokens max_completion_tokens stop temperature top_p user "
    "safety_identifier tools tool_choice parallel_tool_calls response_format reasoning_effort thinking cache_control "
    "web_search_options".split()
)
_MESSAGE = frozenset("role content name cache_control".split())
_ANSWER = _MESSAGE | frozenset(
    "refusal tool_calls function_call audio reasoning_content reasoning reasoning_details".split()
)
_RESULT = _MESSAGE | {"tool_call_id"}
_SAID_IN = {"text": "text", "refusal": "refusal", "image_url": "image_url", "file": "file"}
"""Kind of a part -> the field that holds it."""
_NO_PARAMETER = "dropped, Messages has no such parameter"
_HARMLESS: dict[str, tuple[Any, ...]] = {
    "n": (1,),
    "store": (False,),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "modalities": (["text"],),
    "service_tier": ("auto", "default"),
    "functions": ([],),
}
"""Fields that say nothing when they say this."""
_MEANINGFUL = ("n", "functions", "function_call", "audio", "modalities")
_CHOICES = {"auto": "auto", "none": "none", "required": "any"}
_EFFORTS = {"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "xhigh", "max": "max"}
_HEAD_ROLES = ("system", "developer")


def request(body: Mapping[str, Any], terms: Terms, losses: Losses) -> dict[str, Any]:
    """The Messages body that asks the same. `model` is not in it."""
    said = given(body)
    said = {key: value for key, value in said.items() if value not in _HARMLESS.get(key, ())}
    for key in _MEANINGFUL:
        if key in said:
            losses.refuse(key, "Messages has no such thing")
    losses.drop_keys(said, (*_HANDLED, *_MEANINGFUL), _NO_PARAMETER)
    losses.drop_keys(mapping(said.get("stream_options")), ("include_usage",), _NO_PARAMETER, inside="stream_options")
    messages = [mapping(message) for message in items(said.get("messages"))]
    head = next((at for at, one in enumerate(messages) if one.get("role") not in _HEAD_ROLES), len(messages))
    out: dict[str, Any] = {}
    if head:
        out["system"] = _system(messages[:head], losses)
    out["messages"] = _conversation(messages[head:], losses)
    if not out["messages"]:
        losses.refuse("messages", "Messages needs one that is not the system's")
    _settings(said, out, losses)
    _tools(said, out, losses)
    _format(said, out, losses)
    _effort(said, out, terms, losses)
    _thinking(said, out)
    return media.marked(out, losses, said)


def _settings(said: dict[str, Any], out: dict[str, Any], losses: Losses) -> None:
    cap = count(said.get("max_completion_tokens")) or count(said.get("max_tokens"))
    if not cap:
        cap = MAX_TOKENS + (count(mapping(said.get("thinking")).get("budget_tokens")) or 0)  # thoughts count, too
        losses.drop("max_tokens", f"{cap}, Messages needs a cap and none was asked")
    out["max_tokens"] = cap
    stop = said.get("stop")
    if stop:
        out["stop_sequences"] = [stop] if isinstance(stop, str) else items(stop)
    if "top_p" in said:
        out["top_p"] = said["top_p"]
    if "temperature" in said:
        heat = said["temperature"]
        if isinstance(heat, (int, float)) and heat > 1:
            losses.drop("temperature", "lowered to 1, the most that Messages takes")
            heat = 1
        out["temperature"] = heat
    user = text(said.get("safety_identifier")) or text(said.get("user"))
    if user:
        out["metadata"] = {"user_id": user}
        if text(said.get("user")) not in ("", user):
            losses.drop("user", "dropped, Messages has one name for a user: that of safety_identifier")


# ------------------------------------------------------------------------------------------- messages


def _system(messages: list[Mapping[str, Any]], losses: Losses) -> str | list[dict[str, Any]]:
    contents = [_content(one, losses) for one in messages]
    if len(contents) == 1:
        return contents[0]
    return [block for content in contents for block in _as_blocks(content)]


def _conversation(messages: list[Mapping[str, Any]], losses: Losses) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    for message in messages:
        role = message.get("role")
        if role == "tool":
            if not results:
                out.append({"role": "user", "content": results})
            results.append(_result(message, losses))
            continue
        results = []
        if role == "assistant":
            content = _answer(message, losses)
            if content:  # Messages rejects a turn that says nothing
                out.append({"role": "assistant", "content": content})
        elif role == "user":
            out.append({"role": "user", "content": _content(message, losses)})
        elif role in _HEAD_ROLES:
            out.append({"role": "system", "content": _content(message, losses)})
        else:
            losses.refuse("messages[].role", f"{text(role)!r} is no role in Messages")
    return out


def _content(
    message: Mapping[str, Any], losses: Losses, known: frozenset[str] = _MESSAGE
) -> str | list[dict[str, Any]]:
    """Return the content of a message: text as it is, unless it is marked for the cache."""
    if message.get("name"):
        losses.drop("messages[].name", "dropped, Messages has no names")
    losses.drop_keys(message, known, _NO_PARAMETER, inside="messages[]")
    content = message.get("content")
    if isinstance(content, str) and message.get(media.KEY) is None:
        return content
    blocks = _blocks(content, losses)
    if not blocks:
        if message.get(media.KEY) is not None:
            losses.drop(media.KEY, "dropped, its message says nothing")
        return blocks
    return [*blocks[:-1], media.marked(blocks[-1], losses, message)]


def _as_blocks(content: str | list[dict[str, Any]]) -> list[dict[str, Any]]:
    if not isinstance(content, str):
        return content
    return [{"type": "text", "text": content}] if content else []


def _blocks(content: object, losses: Losses) -> list[dict[str, Any]]:
    """The content as blocks. Messages rejects empty text, which says nothing anyway."""
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else items(content)
    found = (_block(mapping(part), losses) for part in parts)
    return [block for block in found if block is not None]


def _block(part: Mapping[str, Any], losses: Losses) -> dict[str, Any] | None:
    kind = text(part.get("type"))
    block: dict[str, Any] | None = None
    losses.drop_keys(part, ("type", _SAID_IN.get(kind, ""), media.KEY), _NO_PARAMETER, inside="messages[].content[]")
    if kind in ("text", "refusal"):
        said = text(part.get(kind))
        block = {"type": "text", "text": said} if said else None
        if kind == "refusal":
            losses.drop("messages[].content[].refusal", "said as text, Messages has no refusals")
        if block is None and part.get(media.KEY) is not None:
            losses.drop(media.KEY, "dropped, its text is empty")
    elif kind == "image_url":
        image = mapping(part.get("image_url"))
        losses.drop_keys(
            {key: value for key, value in image.items() if value != "auto"},
            ("url",),
            _NO_PARAMETER,
            inside="image_url",
        )
        block = media.image_block(image.get("url"), losses)
    elif kind == "file":
        file = mapping(part.get("file"))
        losses.drop_keys(file, ("file_data", "filename", "file_id"), _NO_PARAMETER, inside="file")
        if file.get("file_id"):
            losses.refuse("file", "it is kept at another provider")
        block = media.document_block(file, losses)
    else:
        losses.refuse("messages[].content", f"a part of type {kind!r} has no equal in Messages")
    return None if block is None else media.marked(block, losses, part)


def _result(message: Mapping[str, Any], losses: Losses) -> dict[str, Any]:
    """A tool's result. It bears the mark of its message or, as Messages takes none inside, of its last marked part."""
    blocks: str | list[dict[str, Any]] = _content(message, losses, _RESULT)
    marks: dict[str, Any] = {}
    if not isinstance(blocks, str):
        blocks, marks = media.lifted(blocks)
        if isinstance(message.get("content"), str):
            blocks = text(message["content"])
    result = {
        "type": "tool_result",
        "tool_use_id": tool_use_id(message.get("tool_call_id")),
        "content": blocks,
        **marks,
    }
    if isinstance(blocks, str) and blocks.startswith(TOOL_ERROR):
        return {**result, "content": blocks.removeprefix(TOOL_ERROR), "is_error": True}
    if isinstance(blocks, list) and blocks and text(blocks[0].get("text")).startswith(TOOL_ERROR):
        said = blocks[0]["text"].removeprefix(TOOL_ERROR)
        first = [{**blocks[0], "text": said}] if said else []
        return {**result, "content": [*first, *blocks[1:]], "is_error": True}
    return result


def _answer(message: Mapping[str, Any], losses: Losses) -> str | list[dict[str, Any]]:
    """An assistant's turn: what it thought, what it said, then the tools it called."""
    if message.get("function_call") or message.get("audio"):
        losses.refuse("messages[]", "a function_call or audio has no equal in Messages")
    thoughts = reasoning.thinking_blocks(message, losses)
    calls = [_call(mapping(call), losses) for call in items(message.get("tool_calls"))]
    content = _content({**message, "content": message.get("content") or message.get("refusal")}, losses, _ANSWER)
    if message.get("refusal"):
        why = "dropped beside the content" if message.get("content") else "said as text, Messages has no refusals"
        losses.drop("messages[].refusal", why)
    if isinstance(content, str) and not thoughts and not calls:
        return content
    return [*thoughts, *_as_blocks(content), *calls]


def _call(call: Mapping[str, Any], losses: Losses) -> dict[str, Any]:
    function = mapping(call.get("function"))
    arguments = arguments_of(function.get("arguments"))
    if call.get("type") not in (None, "function") or not text(function.get("name")) or arguments is None:
        losses.refuse("messages[].tool_calls", "a call that is no function's, or whose arguments are no object")
    known = ("id", "type", "function", "index", media.KEY)
    losses.drop_keys(call, known, _NO_PARAMETER, inside="messages[].tool_calls[]")
    of_function = ("name", "arguments", media.KEY)
    losses.drop_keys(function, of_function, _NO_PARAMETER, inside="messages[].tool_calls[].function")
    block = {
        "type": "tool_use",
        "id": tool_use_id(call.get("id")),
        "name": text(function.get("name")),
        "input": arguments or {},
    }
    return media.marked(block, losses, call, function)


# ------------------------------------------------------------------------------------------- tools and form


def _tools(said: dict[str, Any], out: dict[str, Any], losses: Losses) -> None:
    tools = [_tool(mapping(tool), losses) for tool in items(said.get("tools"))]
    if is_object(said.get(hosted.OPTIONS)):
        tools.append(hosted.messages_tool(said[hosted.OPTIONS], losses))
    choice = said.get("tool_choice")
    if not tools:
        if choice not in (None, "auto", "none"):
            losses.drop("tool_choice", "dropped, there are no tools to choose from")
        return
    chosen: dict[str, Any] = {}
    if isinstance(choice, str):
        chosen = {"type": _CHOICES.get(choice, choice)}
    elif is_object(choice) and choice.get("type") == "allowed_tools":
        allowed = mapping(choice.get("allowed_tools"))
        names = {text(mapping(mapping(one).get("function")).get("name")) for one in items(allowed.get("tools"))}
        tools = [tool for tool in tools if tool["name"] in names]
        chosen = {"type": "any" if allowed.get("mode") == "required" else "auto"}
    elif is_object(choice):
        name = text(mapping(choice.get("function")).get("name"))
        chosen = {"type": "tool", "name": name}
        losses.drop_keys(choice, ("type", "function"), _NO_PARAMETER, inside="tool_choice")
        if not name:
            losses.refuse("tool_choice", "it names no function")
    if said.get("parallel_tool_calls") is False and chosen.get("type") != "none":
        chosen = {"type": "auto", **chosen, "disable_parallel_tool_use": True}
    out["tools"] = tools
    if chosen:
        out["tool_choice"] = chosen


def _tool(tool: Mapping[str, Any], losses: Losses) -> dict[str, Any]:
    function = mapping(tool.get("function"))
    schema = function.get("parameters", {"type": "object", "properties": {}})
    if tool.get("type") != "function" or not text(function.get("name")) or not is_object(schema):
        losses.refuse("tools", f"a tool of type {text(tool.get('type'))!r} has no equal in Messages")
    losses.drop_keys(tool, ("type", "function", media.KEY), _NO_PARAMETER, inside="tools[]")
    known = ("name", "description", "parameters", "strict", media.KEY)
    losses.drop_keys(function, known, _NO_PARAMETER, inside="tools[].function")
    out: dict[str, Any] = {"name": text(function.get("name"))}
    if text(function.get("description")):
        out["description"] = function["description"]
    out["input_schema"] = schema
    if function.get("strict") is True:
        out["strict"] = True
    return media.marked(out, losses, tool, function)


def _format(said: dict[str, Any], out: dict[str, Any], losses: Losses) -> None:
    form = mapping(said.get("response_format"))
    kind = form.get("type", "text")
    if kind == "text":
        return
    schema = mapping(form.get("json_schema")).get("schema")
    rest = {key: value for key, value in mapping(form.get("json_schema")).items() if value not in (FORMAT_NAME, True)}
    losses.drop_keys(rest, ("schema",), "dropped, Messages has no such field", inside="response_format.json_schema")
    if kind == "json_schema" and is_object(schema):
        out["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
    elif kind == "json_object" and "tools" not in out:
        out["tools"] = [
            {
                "name": JSON_TOOL,
                "description": "Gives the answer. The input is the answer: any JSON object.",
                "input_schema": {"type": "object", "additionalProperties": True},
            }
        ]
        out["tool_choice"] = {"type": "tool", "name": JSON_TOOL}
    else:
        losses.refuse("response_format", f"{text(kind)!r} (with these tools) has no equal in Messages")


def _effort(said: dict[str, Any], out: dict[str, Any], terms: Terms, losses: Losses) -> None:
    effort = said.get("reasoning_effort")
    if effort in (None, "none"):
        return
    if not terms.reasoning:
        losses.drop("reasoning_effort", "dropped, the target is not marked as a reasoning one")
    elif text(effort) in _EFFORTS:
        out.setdefault("output_config", {})["effort"] = _EFFORTS[text(effort)]


def _thinking(said: dict[str, Any], out: dict[str, Any]) -> None:
    """Chat has no such word: a client that says it means Messages' own, whatever is known of the target."""
    if is_object(said.get("thinking")):
        out["thinking"] = said["thinking"]
