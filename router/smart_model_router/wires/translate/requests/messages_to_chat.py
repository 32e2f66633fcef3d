"""A Messages request as a Chat Completions request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smart_model_router.wires.translate import hosted, media, reasoning
from smart_model_router.wires.translate.words import FORMAT_NAME, TOOL_ERROR
from smart_model_router.wires.values import count, dumps, given, is_object, items, mapping, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_model_router.wires.translate.translation import Losses, Terms

_HANDLED = frozenset(
    "model stream messages system max_tokens stop_sequences temperature top_p metadata tools tool_choice "
    "output_config thinking".split()
)
_NO_PARAMETER = "dropped, Chat has no such parameter"
_MESSAGE = frozenset(("role", "content"))
_BLOCKS: dict[str, frozenset[str]] = {
    "text": frozenset(("type", "text")),
    "image": frozenset(("type", "source")),
    "document": frozenset(("type", "source", "title", "context", "citations")),
    "tool_use": frozenset(("type", "id", "name", "input", "toolset_name")),
    "tool_result": frozenset(("type", "tool_use_id", "content", "is_error")),
    "thinking": frozenset(("type", "thinking", "signature")),
    "redacted_thinking": frozenset(("type", "data")),
}
"""Type of a block -> the fields that are translated."""
_TOOL = ("type", "name", "description", "input_schema", "strict")
_USUAL: dict[str, tuple[Any, ...]] = {
    "caller": ({"type": "direct"},),
    "allowed_callers": (["direct"],),
    "defer_loading": (False,),
    "display": ("summarized",),
}
"""Fields that say nothing when they say this."""
_SEARCHES = ("server_tool_use", "web_search_tool_result")
_MEANINGFUL = ("container", "mcp_servers")
_CHOICES = {"auto": "auto", "none": "none", "any": "required"}
_MAX_STOPS = 4  # OpenAI's limit
_MAX_USER = 64  # OpenAI's limit, in characters
_BUDGETS = ((4096, "low"), (16384, "medium"))
"""Thinking budgets up to so many tokens -> effort; above them it is high."""


def request(body: Mapping[str, Any], terms: Terms, losses: Losses) -> dict[str, Any]:
    """The Chat body that asks the same. `model` is not in it."""
    said = given(body)
    for key in _MEANINGFUL:
        if said.get(key):
            losses.refuse(key, "Chat has no such thing")
    if not said.keys() <= _HANDLED:
        losses.drop_keys(said, (*_HANDLED, *_MEANINGFUL), _NO_PARAMETER)
    out: dict[str, Any] = {"messages": _conversation(said, terms, losses)}
    _settings(said, out, terms, losses)
    if "tools" in said or "tool_choice" in said:
        _tools(said, out, terms, losses)
    if "output_config" in said:
        _format(said, out, losses)
    if "output_config" in said or "thinking" in said:
        _effort(said, out, terms, losses)
    return out


def _settings(said: dict[str, Any], out: dict[str, Any], terms: Terms, losses: Losses) -> None:
    if count(said.get("max_tokens")):
        out[terms.output_cap] = said["max_tokens"]
    if "stop_sequences" in said and (stops := items(said["stop_sequences"])):
        if len(stops) > _MAX_STOPS:
            losses.drop("stop_sequences", f"only the first {_MAX_STOPS} are kept")
        out["stop"] = stops[:_MAX_STOPS]
    for key in ("temperature", "top_p"):
        if key in said:
            out[key] = said[key]
    if "metadata" in said:
        _user(mapping(said["metadata"]), out, losses)


def _user(metadata: Mapping[str, Any], out: dict[str, Any], losses: Losses) -> None:
    losses.drop_keys(metadata, ("user_id",), _NO_PARAMETER, inside="metadata")
    user = text(metadata.get("user_id"))
    if user and len(user) <= _MAX_USER:
        out["user"] = user
    elif user:
        losses.drop("metadata.user_id", f"dropped, longer than {_MAX_USER} characters")


# ------------------------------------------------------------------------------------------- messages


def _conversation(said: dict[str, Any], terms: Terms, losses: Losses) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    if said.get("system"):
        out.append({"role": "system", "content": _content(said["system"], losses)})
    messages = list(map(mapping, items(said.get("messages"))))
    for message in messages:
        role, content = message.get("role"), message.get("content")
        if not message.keys() <= _MESSAGE:
            losses.drop_keys(message, _MESSAGE, _NO_PARAMETER, inside="messages[]")
        if role == "user":
            out += _turn(content, losses)
        elif role == "assistant":
            out.append(_answer(content, terms, losses))
        elif role == "system":
            out.append({"role": "system", "content": _content(content, losses)})
        else:
            losses.refuse("messages[].role", f"{text(role)!r} is no role in Chat")
    if messages and messages[-1].get("role") == "assistant":
        losses.drop("messages", "the answer may not go on where the last message ends, as it would in Messages")
    return out


def _turn(content: object, losses: Losses) -> list[dict[str, Any]]:
    """A user's turn: the results of tools each as a message, images in them after all of them, then the rest."""
    if isinstance(content, str):
        return [{"role": "user", "content": content}]
    blocks = [mapping(block) for block in items(content)]
    results = [block for block in blocks if block.get("type") == "tool_result"]
    rest = [block for block in blocks if block.get("type") != "tool_result"]
    out: list[dict[str, Any]] = []
    shown: list[dict[str, Any]] = []
    for result in results:
        out.append({"role": "tool", "tool_call_id": text(result.get("tool_use_id")), "content": ""})
        out[-1]["content"], pictures = _result(result, losses)
        shown += pictures
    if shown:
        losses.drop("tool_result", "its images follow in a message of the user")
        out.append({"role": "user", "content": shown})
    if rest or not results:
        out.append({"role": "user", "content": _content(rest if blocks else content, losses)})
    return out


def _content(content: object, losses: Losses) -> str | list[dict[str, Any]]:
    """Blocks as Chat's content; a single text as a string, which every Chat provider takes."""
    if isinstance(content, str):
        return content
    found = (_part(mapping(block), losses) for block in items(content))
    parts = [part for part in found if part is not None]
    if not parts:
        return ""
    return text(parts[0]["text"]) if len(parts) == 1 and parts[0]["type"] == "text" else parts


def _part(block: Mapping[str, Any], losses: Losses) -> dict[str, Any] | None:
    _check(block, losses)
    kind = block.get("type")
    if kind == "text":
        return {"type": "text", "text": text(block.get("text"))}
    if kind == "image":
        url = media.image_url(block, losses)
        return None if url is None else {"type": "image_url", "image_url": {"url": url}}
    if kind == "document":
        return media.chat_file(block, losses)
    losses.refuse("messages[].content", f"a block of type {text(kind)!r} has no equal in Chat")
    return None


def _check(block: Mapping[str, Any], losses: Losses) -> None:
    known = _BLOCKS.get(text(block.get("type")))
    if known is None or block.keys() <= known:
        return
    said = {key: value for key, value in block.items() if value not in _USUAL.get(key, ())}
    if said.pop("cache_control", None) is not None:
        losses.drop("cache_control", _NO_PARAMETER)
    losses.drop_keys(said, known, _NO_PARAMETER, inside="messages[].content[]")


def _result(result: Mapping[str, Any], losses: Losses) -> tuple[str | list[dict[str, Any]], list[dict[str, Any]]]:
    """A tool's result as (content, what a tool message cannot hold)."""
    _check(result, losses)
    content = _content(result.get("content"), losses)
    parts = [] if isinstance(content, str) else content
    pictures = [part for part in parts if part["type"] != "text"]
    if pictures:
        texts = [part for part in parts if part["type"] == "text"]
        content = "\n".join(part["text"] for part in texts) or "(see the next message)"
    if result.get("is_error") is not True:
        return content, pictures
    if isinstance(content, str):
        return TOOL_ERROR + content, pictures
    return [{"type": "text", "text": TOOL_ERROR}, *content], pictures


def _answer(content: object, terms: Terms, losses: Losses) -> dict[str, Any]:
    if isinstance(content, str):
        return {"role": "assistant", "content": content}
    said: list[str] = []
    thoughts: list[tuple[str, object]] = []
    calls: list[dict[str, Any]] = []
    for block in map(mapping, items(content)):
        kind = block.get("type")
        _check(block, losses)
        if kind == "text":
            said.append(text(block.get("text")))
            if calls:
                losses.drop("messages[].content", "text after a tool call stands before it")
        elif kind == "tool_use":
            calls.append(_call(block, losses))
        elif kind == "thinking":
            thoughts.append((text(block.get("thinking")), block.get("signature")))
        elif kind == "redacted_thinking":
            thoughts.append(("", block.get("data")))
        elif kind in _SEARCHES and block.get("name", hosted.NAME) == hosted.NAME:
            losses.drop(hosted.NAME, hosted.LEFT_OUT)
        else:
            losses.refuse("messages[].content", f"a block of type {text(kind)!r} has no equal in Chat")
    out: dict[str, Any] = {"role": "assistant", "content": "".join(said) or None}
    out.update(reasoning.unsealed_fields(thoughts, terms.family, losses))
    if calls:
        out["tool_calls"] = calls
    elif out["content"] is None:
        out["content"] = ""
    return out


def _call(block: Mapping[str, Any], losses: Losses) -> dict[str, Any]:
    if not text(block.get("name")) or block.get("toolset_name"):
        losses.refuse("messages[].content", "a tool call without a name, or of a toolset, has no equal in Chat")
    function = {"name": text(block.get("name")), "arguments": dumps(mapping(block.get("input")))}
    return {"id": text(block.get("id")), "type": "function", "function": function}


# ------------------------------------------------------------------------------------------- tools and form


def _tools(said: dict[str, Any], out: dict[str, Any], terms: Terms, losses: Losses) -> None:
    asked = [mapping(tool) for tool in items(said.get("tools"))]
    left: list[Mapping[str, Any]] = []
    for tool in asked:
        if hosted.is_search(tool.get("type")) and terms.between:
            out[hosted.OPTIONS] = hosted.options_of_messages(tool)
        elif hosted.is_hosted(tool.get("type")):
            hosted.dropped(tool.get("type"), terms, losses)
        else:
            left.append(tool)
    if left:
        out["tools"] = [_tool(tool, losses) for tool in left]
    choice = mapping(said.get("tool_choice"))
    if left or hosted.OPTIONS in out:
        _choose(choice, out, losses)
    elif choice.get("type") in ("any", "tool") and asked:
        losses.refuse("tool_choice", "none of its tools are left")
    elif choice and choice.get("type") not in ("auto", "none"):
        losses.drop("tool_choice", "dropped, there are no tools to choose from")


def _choose(choice: Mapping[str, Any], out: dict[str, Any], losses: Losses) -> None:
    kind = text(choice.get("type"))
    if kind == "tool":
        out["tool_choice"] = {"type": "function", "function": {"name": text(choice.get("name"))}}
        if choice.get("name") == hosted.NAME and not _has_search(out):
            losses.refuse("tool_choice", "a search of the web is not among the tools that are left")
    elif kind in _CHOICES:
        out["tool_choice"] = _CHOICES[kind]
    elif choice:
        losses.refuse("tool_choice", f"{kind!r} has no equal in Chat")
    losses.drop_keys(choice, ("type", "name", "disable_parallel_tool_use"), _NO_PARAMETER, inside="tool_choice")
    if choice.get("disable_parallel_tool_use") is True:
        out["parallel_tool_calls"] = False


def _has_search(out: Mapping[str, Any]) -> bool:
    names = [mapping(tool.get("function")).get("name") for tool in items(out.get("tools"))]
    return hosted.OPTIONS in out or hosted.NAME in names


def _tool(tool: Mapping[str, Any], losses: Losses) -> dict[str, Any]:
    schema = tool.get("input_schema")
    if tool.get("type") not in (None, "custom") or not text(tool.get("name")) or not is_object(schema):
        losses.refuse("tools", f"a tool of type {text(tool.get('type'))!r} has no equal in Chat")
    said = {key: value for key, value in tool.items() if value not in _USUAL.get(key, ())}
    losses.drop_keys(said, _TOOL, _NO_PARAMETER, inside="tools[]")
    function: dict[str, Any] = {"name": text(tool.get("name"))}
    if text(tool.get("description")):
        function["description"] = tool["description"]
    function["parameters"] = schema
    if tool.get("strict") is True:
        function["strict"] = True
    return {"type": "function", "function": function}


def _format(said: dict[str, Any], out: dict[str, Any], losses: Losses) -> None:
    config = mapping(said.get("output_config"))
    losses.drop_keys(config, ("format", "effort"), _NO_PARAMETER, inside="output_config")
    form = mapping(config.get("format"))
    if not form:
        return
    losses.drop_keys(form, ("type", "schema"), _NO_PARAMETER, inside="output_config.format")
    if form.get("type") != "json_schema" or not is_object(form.get("schema")):
        losses.refuse("output_config.format", f"{text(form.get('type'))!r} has no equal in Chat")
    schema = {"name": FORMAT_NAME, "strict": True, "schema": form.get("schema")}
    out["response_format"] = {"type": "json_schema", "json_schema": schema}


def _effort(said: dict[str, Any], out: dict[str, Any], terms: Terms, losses: Losses) -> None:
    effort = text(mapping(said.get("output_config")).get("effort"))
    thinking = {k: v for k, v in mapping(said.get("thinking")).items() if v not in _USUAL.get(k, ())}
    losses.drop_keys(thinking, ("type", "budget_tokens"), _NO_PARAMETER, inside="thinking")
    if thinking.get("type") not in (None, "enabled", "disabled", "adaptive"):
        losses.drop("thinking.type", f"{text(thinking.get('type'))[:40]!r} dropped, Chat has no such word")
    budget = count(thinking.get("budget_tokens"))
    if not effort and budget is not None:
        effort = next((word for most, word in _BUDGETS if budget <= most), "high")
        losses.drop("thinking", f"a budget of {budget} tokens is asked for as effort {effort!r}")
    if not effort and thinking.get("type") in (None, "disabled"):
        return
    if not terms.reasoning:
        losses.drop("thinking", "dropped, the target is not marked as a reasoning one")
    elif effort:
        out["reasoning_effort"] = effort
