"""A Responses request as a Chat Completions request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smart_model_router.wires.translate import hosted, reasoning
from smart_model_router.wires.translate.hosted import is_search
from smart_model_router.wires.translate.tools import (
    SEARCH,
    chat_choice,
    chat_tools,
    flat_name,
    found_tools,
    wrapped_input,
)
from smart_model_router.wires.values import count, dumps, given, items, mapping, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_model_router.wires.translate.translation import Losses, Terms

SAME_IN_CHAT = ("temperature", "top_p", "user")
"""Fields that both dialects have, with the same meaning."""
SAME_IN_NEWEST_CHAT = (
    *("metadata", "safety_identifier", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention"),
    *("service_tier", "moderation"),
)
"""Those that only OpenAI's own Chat has: compatible ones reject them (Groq, Mistral)."""

LOGPROBS = "message.output_text.logprobs"
"""The value of `include` that stands for Chat's `logprobs`."""

_HANDLED = frozenset(
    "model stream stream_options input instructions max_output_tokens tools tool_choice text include top_logprobs "
    "reasoning parallel_tool_calls".split()
)
_NO_PARAMETER = "dropped, Chat has no such parameter"
_BREAKPOINT = "prompt_cache_breakpoint"
_ADDRESS = ("type", "id", "status")
"""Fields of an item that say where it is kept, and how far it was when it was made: it is here, whole."""
_MESSAGE = frozenset((*_ADDRESS, "role", "content"))
_CALL = frozenset((*_ADDRESS, "call_id", "name", "namespace", "arguments", "input"))
_RESULT = frozenset((*_ADDRESS, "call_id", "output"))
_DIRECT = ({"type": "direct"},)
_REASONING = frozenset((*_ADDRESS, "summary", "content", "encrypted_content"))
_MEANINGFUL = ("previous_response_id", "conversation", "prompt", "background", "context_management", "image")
"""The fields that refer to things kept at a provider, or ask for another kind of answer."""
_HARMLESS: dict[str, tuple[Any, ...]] = {
    "store": (False,),
    "background": (False,),
    "truncation": ("disabled",),
    "top_logprobs": (0,),
    "service_tier": ("auto",),
}
_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
_TEXTS = ("input_text", "output_text", "text")


def request(body: Mapping[str, Any], terms: Terms, losses: Losses) -> dict[str, Any]:
    """The Chat body that asks the same. `model` is not in it."""
    said = {key: value for key, value in given(body).items() if value not in _HARMLESS.get(key, ())}
    if terms.kept:
        said.pop("store", None)  # the router keeps the answer
    for key in _MEANINGFUL:
        if key in said:
            losses.refuse(key, "Chat has no such thing")
    same = (*SAME_IN_CHAT, *SAME_IN_NEWEST_CHAT) if terms.newest_chat else SAME_IN_CHAT
    tools, search = chat_tools(said, terms, losses)
    handled = (*_HANDLED, *_MEANINGFUL, *same, *(("max_tool_calls",) if search else ()))
    losses.drop_keys(said, handled, _NO_PARAMETER)
    losses.drop_keys(mapping(said.get("stream_options")), ("include_usage",), _NO_PARAMETER, inside="stream_options")
    out: dict[str, Any] = {"messages": _conversation(said, terms, losses)}
    out.update((key, said[key]) for key in same if key in said)
    if count(said.get("max_output_tokens")):
        out[terms.output_cap] = said["max_output_tokens"]
    if search is not None:
        out[hosted.OPTIONS] = search
    if tools:
        out["tools"] = tools
    _choice(said, out, search, losses)
    _include(said, out, terms, search, losses)
    _text(said, out, terms, losses)
    _effort(said, out, terms, losses)
    return out


def _choice(said: dict[str, Any], out: dict[str, Any], search: object, losses: Losses) -> None:
    choice = said.get("tool_choice")
    if "tools" not in out and search is None:
        if choice not in (None, "auto", "none") and said.get("tools"):
            losses.refuse("tool_choice", "none of its tools are left")
        elif choice not in (None, "auto", "none"):
            losses.drop("tool_choice", "dropped, there are no tools to choose from")
        return
    found = chat_choice(choice, losses, searches=search is not None)
    if found is not None:
        out["tool_choice"] = found
    if said.get("parallel_tool_calls") is False:
        out["parallel_tool_calls"] = False


def _include(said: dict[str, Any], out: dict[str, Any], terms: Terms, search: object, losses: Losses) -> None:
    """Parts of the answer that are not there unless they are asked for."""
    for part in items(said.get("include")):
        if part == LOGPROBS and terms.newest_chat:
            out["logprobs"] = True
        elif part == LOGPROBS:
            losses.drop("include", f"{LOGPROBS} dropped, few Chat providers have logprobs")
        elif part == hosted.SOURCES and search is not None:
            continue  # the way back gives them
        elif part != "reasoning.encrypted_content":  # asked for in any case
            losses.drop("include", f"{text(part)[:80]} dropped, Chat has no such part")
    if "top_logprobs" in said:
        if out.get("logprobs"):
            out["top_logprobs"] = said["top_logprobs"]
        else:
            losses.drop("top_logprobs", _NO_PARAMETER)


def _text(said: dict[str, Any], out: dict[str, Any], terms: Terms, losses: Losses) -> None:
    settings = mapping(said.get("text"))
    losses.drop_keys(settings, ("format", "verbosity"), _NO_PARAMETER, inside="text")
    if settings.get("verbosity") not in (None, "medium"):
        if terms.newest_chat:
            out["verbosity"] = settings["verbosity"]
        else:
            losses.drop("text.verbosity", "dropped, Chat has no such parameter")
    form = mapping(settings.get("format"))
    kind = form.get("type", "text")
    if kind == "json_schema":
        rest = {key: value for key, value in form.items() if key != "type" and value is not None}
        out["response_format"] = {"type": "json_schema", "json_schema": rest}
    elif kind == "json_object":
        out["response_format"] = {"type": "json_object"}
    elif kind != "text":
        losses.refuse("text.format", f"{text(kind)!r} has no equal in Chat")


def _effort(said: dict[str, Any], out: dict[str, Any], terms: Terms, losses: Losses) -> None:
    settings = mapping(said.get("reasoning"))
    effort = settings.get("effort")
    shown = ("summary", "generate_summary")
    losses.drop_keys(settings, ("effort", *shown), _NO_PARAMETER, inside="reasoning")
    if any(settings.get(key) is not None for key in shown):
        losses.drop("reasoning.summary", "not asked for: there is one where the target shows its reasoning")
    if effort is None or (effort == "none" and not terms.reasoning):
        return
    if terms.reasoning and (effort != "none" or terms.newest_chat or terms.between):
        out["reasoning_effort"] = effort
    elif effort == "none":
        losses.drop("reasoning.effort", "'none' dropped, few Chat providers have it")
    else:
        losses.drop("reasoning", "dropped, the target is not marked as a reasoning one")


# ------------------------------------------------------------------------------------------- input items


def _conversation(said: dict[str, Any], terms: Terms, losses: Losses) -> list[dict[str, Any]]:
    turns = _Turns(terms, losses)
    if text(said.get("instructions")):
        turns.say("system", said["instructions"])
    asked = said.get("input")
    if isinstance(asked, str):
        turns.say("user", asked)
    for item in items(asked):
        turns.take(mapping(item))
    return turns.end()


class _Turns:
    """Puts items together into messages: what an assistant thought, said and called is one message of Chat."""

    def __init__(self, terms: Terms, losses: Losses) -> None:
        self._terms = terms
        self._losses = losses
        self._out: list[dict[str, Any]] = []
        self._answer: dict[str, Any] | None = None
        self._thoughts: list[tuple[str, object]] = []
        self._shown: list[dict[str, Any]] = []

    def take(self, item: Mapping[str, Any]) -> None:
        """One input item."""
        kind = item.get("type", "message")
        if kind == "message":
            self._message(item)
        elif kind in ("function_call", "custom_tool_call"):
            self._call(item, str(kind))
        elif kind in ("function_call_output", "custom_tool_call_output"):
            self._result(item)
        elif kind == "tool_search_call" and text(item.get("call_id")):  # without one the provider itself searched
            called = {**item, "name": SEARCH, "arguments": dumps(mapping(item.get("arguments")))}
            self._call(called, str(kind))
        elif kind == "tool_search_output" and text(item.get("call_id")):
            self._result({**item, "output": found_tools(item)})
        elif is_search(kind):
            self._losses.drop(hosted.NAME, hosted.LEFT_OUT)
        elif kind == "reasoning":
            self._check(item, _REASONING)
            self._flush()
            summary = "\n\n".join(text(mapping(part).get("text")) for part in items(item.get("summary")))
            self._thoughts.append((summary, item.get("encrypted_content")))
        else:
            self._losses.refuse("input", f"an item of type {text(kind)!r} has no equal in Chat")

    def _check(self, item: Mapping[str, Any], known: frozenset[str]) -> None:
        if item.keys() <= known:
            return
        said = {key: value for key, value in item.items() if value is not False and value not in _DIRECT}
        self._losses.drop_keys(said, known, _NO_PARAMETER, inside="input[]")

    def say(self, role: str, content: str | list[dict[str, Any]]) -> None:
        """A message as it is."""
        self._flush()
        self._show()
        self._end_thoughts()
        self._out.append({"role": role, "content": content})

    def end(self) -> list[dict[str, Any]]:
        """Every message."""
        self._flush()
        self._show()
        self._end_thoughts()
        return self._out

    def _message(self, item: Mapping[str, Any]) -> None:
        role = _ROLES.get(text(item.get("role")))
        if role is None:
            self._losses.refuse("input[].role", f"{text(item.get('role'))!r} is no role in Chat")
            return
        self._check(item, _MESSAGE)
        content = _content(item.get("content"), self._terms, self._losses)
        if role != "assistant":
            self.say(role, content)
            return
        words = content if isinstance(content, str) else "".join(text(part.get("text")) for part in content)
        answer = self._open(fresh=self._answer is not None)
        answer["content"] = words

    def _call(self, item: Mapping[str, Any], kind: str) -> None:
        if kind != "tool_search_call":
            self._check(item, _CALL)
        name = flat_name(text(item.get("namespace")), text(item.get("name")))
        arguments = wrapped_input(item.get("input")) if kind == "custom_tool_call" else text(item.get("arguments"))
        if not text(item.get("name")):
            self._losses.refuse("input", "a tool call without a name")
        function = {"name": name, "arguments": arguments or "{}"}
        call = {"id": text(item.get("call_id")), "type": "function", "function": function}
        self._open().setdefault("tool_calls", []).append(call)

    def _open(self, *, fresh: bool = False) -> dict[str, Any]:
        """The assistant's message that is being put together."""
        if fresh:
            self._flush()
        if self._answer is None:
            self._show()
            self._answer = {"role": "assistant", "content": None}
            self._answer.update(reasoning.unsealed_fields(self._thoughts, self._terms.family, self._losses))
            self._thoughts = []
        return self._answer

    def _result(self, item: Mapping[str, Any]) -> None:
        self._flush()
        if item.get("type") != "tool_search_output":
            self._check(item, _RESULT)
        output = item.get("output")
        content = _content(output, self._terms, self._losses) if not isinstance(output, str) else output
        if isinstance(content, list):
            self._shown += [part for part in content if part["type"] != "text"]
            texts = [part for part in content if part["type"] == "text"]
            content = texts if len(texts) == len(content) else "\n".join(part["text"] for part in texts)
        content = content or ("(see the next message)" if self._shown else "")
        self._out.append({"role": "tool", "tool_call_id": text(item.get("call_id")), "content": content})

    def _flush(self) -> None:
        if self._answer is not None:
            self._out.append(self._answer)
            self._answer = None

    def _end_thoughts(self) -> None:
        """Reasoning that no answer followed: in Chat it belongs to a message of the assistant."""
        if self._thoughts:
            self._losses.drop("reasoning", "dropped, no answer follows it")
            self._thoughts = []

    def _show(self) -> None:
        """Images and files of tool results: Chat's tool messages hold text only."""
        if self._shown:
            self._losses.drop("function_call_output", "its images and files follow in a message of the user")
            self._out.append({"role": "user", "content": self._shown})
            self._shown = []


def _content(content: object, terms: Terms, losses: Losses) -> str | list[dict[str, Any]]:
    if isinstance(content, str):
        return content
    found = (_part(mapping(part), terms, losses) for part in items(content))
    parts = [part for part in found if part is not None]
    if not parts:
        return ""
    return text(parts[0]["text"]) if len(parts) == 1 and parts[0].keys() == {"type", "text"} else parts


def _part(part: Mapping[str, Any], terms: Terms, losses: Losses) -> dict[str, Any] | None:
    kind = text(part.get("type"))
    known: tuple[str, ...] = ("text",)
    made: dict[str, Any] | None = None
    if kind in _TEXTS:
        made = {"type": "text", "text": text(part.get("text"))}
    elif kind == "refusal":
        known, made = ("refusal",), {"type": "text", "text": text(part.get("refusal"))}
        losses.drop("input[].content[].refusal", "said as text")
    elif kind == "input_image" and text(part.get("image_url")) and not part.get("file_id"):
        detail = {"detail": part["detail"]} if part.get("detail") not in (None, "auto") else {}
        known = ("image_url", "detail")
        made = {"type": "image_url", "image_url": {"url": part["image_url"], **detail}}
    elif kind == "input_file" and text(part.get("file_data")) and not (part.get("file_id") or part.get("file_url")):
        named = {"filename": part["filename"]} if text(part.get("filename")) else {}
        known = ("file_data", "filename")
        made = {"type": "file", "file": {"file_data": part["file_data"], **named}}
    if made is None:
        losses.refuse("input[].content", f"a part of type {kind!r} (of this source) has no equal in Chat")
        return None
    rest = {key: value for key, value in part.items() if key not in known and key != "type"}
    if rest:
        if terms.newest_chat and rest.get(_BREAKPOINT) is not None:
            made[_BREAKPOINT] = rest.pop(_BREAKPOINT)
        losses.drop_keys(rest, (), _NO_PARAMETER, inside="input[].content[]")
    return made
