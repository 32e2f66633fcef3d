"""Every field that the SDKs' request types know: pairs of requests that differ in one field, or in one value of it."""

from __future__ import annotations

import os
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import IO, Any, Literal, get_args, get_origin, get_type_hints

import typing_extensions as te
from anthropic.types.cache_control_ephemeral_param import CacheControlEphemeralParam
from anthropic.types.thinking_config_param import ThinkingConfigParam
from pydantic import BaseModel

_UNIONS = (types.UnionType, typing.Union)  # pyright: ignore[reportDeprecated] - the SDKs write it
Path = tuple[str, ...]
Change = tuple[Path, Any, Any]

OTHER: Mapping[Any, Any] = {str: "text-2", bool: False, int: 1002, float: 0.5, object: "text-2", Any: "text-2"}
LEAST: Mapping[Any, Any] = {str: "text-1", bool: True, int: 1001, float: 0.25, object: "text-1", Any: "text-1"}
_PDF = "data:application/pdf;base64,"
TEXTS: Mapping[str, tuple[str, str]] = {
    "url": ("https://host.invalid/1", "https://host.invalid/2"),
    "image_url": ("https://host.invalid/1", "https://host.invalid/2"),
    "file_data": (f"{_PDF}AAAA", f"{_PDF}aGk="),
    "data": ("AAAA", "aGk="),
    "arguments": ('{"a":1}', '{"a":2}'),
}
"""Fields of text whose values have a form."""
SOURCES: Mapping[str, str] = {
    "FileFile": "file_data",
    "ResponseInputFileParam": "file_data",
    "ResponseInputFileContentParam": "file_data",
    "ResponseInputImageParam": "image_url",
    "ResponseInputImageContentParam": "image_url",
}
"""Objects that have one of several sources, and which of them."""
OF_CLIENTS: Mapping[str, Mapping[str, Any]] = {
    name: {"cache_control": CacheControlEphemeralParam}
    for name in (
        *("ChatCompletionDeveloperMessageParam", "ChatCompletionSystemMessageParam", "ChatCompletionUserMessageParam"),
        *(
            "ChatCompletionAssistantMessageParam",
            "ChatCompletionToolMessageParam",
            "ChatCompletionContentPartTextParam",
        ),
        *("ChatCompletionContentPartImageParam", "File", "ChatCompletionFunctionToolParam", "FunctionDefinition"),
        "ChatCompletionMessageFunctionToolCallParam",
    )
} | {
    "CompletionCreateParamsNonStreaming": {"cache_control": CacheControlEphemeralParam, "thinking": ThinkingConfigParam}
}
"""Fields that LiteLLM, OpenRouter, aider and opencode have in Chat, and OpenAI's SDK does not."""


def changes(kind: Any, seen: tuple[Any, ...] = ()) -> Iterator[Change]:
    """(path, a value of this type, another one that differs from it at the path alone)."""
    kinds = variants(kind)
    first = least(kinds[0], seen)
    for variant in kinds:
        other = least(variant, seen)
        if other != first:
            yield (), first, other
        if te.is_typeddict(variant):
            if variant not in seen:
                yield from _of_object(variant, (*seen, variant))
        elif get_origin(variant) is Literal:
            values = get_args(variant)
            yield from (((), values[0], value) for value in values[1:])
        elif _holds(variant, Iterable):
            for path, one, other in changes(get_args(variant)[0], seen):
                yield ("[]", *path), [one], [other]
        elif _holds(variant, Mapping):
            for path, one, other in changes(get_args(variant)[1], seen):
                yield ("{}", *path), {"key": one}, {"key": other}
        elif variant in OTHER:
            yield (), LEAST[variant], OTHER[variant]


def _of_object(kind: Any, seen: tuple[Any, ...]) -> Iterator[Change]:
    base = _least_object(kind, seen)
    for key, of in sorted(fields(kind).items()):
        if key not in base:
            for variant in variants(of):
                yield (key,), base, {**base, key: _least_of(key, variant, seen)}
        inside = [((), *TEXTS[key])] if key in TEXTS and str in variants(of) else changes(of, seen)
        for path, one, other in inside:
            yield (key, *path), {**base, key: one}, {**base, key: other}


def _least_object(kind: Any, seen: tuple[Any, ...]) -> dict[str, Any]:
    return {key: _least_of(key, fields(kind)[key], seen) for key in required(kind)}


def _least_of(key: str, kind: Any, seen: tuple[Any, ...]) -> Any:
    return TEXTS[key][0] if key in TEXTS and variants(kind)[0] is str else least(kind, seen)


def least(kind: Any, seen: tuple[Any, ...] = ()) -> Any:
    """The smallest value of a type that says something."""
    kind = variants(kind)[0]
    if te.is_typeddict(kind):
        return {} if kind in seen else _least_object(kind, (*seen, kind))
    if get_origin(kind) is Literal:
        return get_args(kind)[0]
    if _holds(kind, Iterable):
        return [least(get_args(kind)[0], seen)]
    if _holds(kind, Mapping):
        return {"key": least(get_args(kind)[1], seen)}
    return LEAST[kind]


def variants(kind: Any) -> list[Any]:
    """The members of a union, without None, open files and objects of answers; a type that is no union by itself."""
    if get_origin(kind) in _UNIONS:
        return [one for member in get_args(kind) if not _is_no_json(member) for one in variants(member)]
    return [kind]


@cache
def fields(kind: Any) -> Mapping[str, Any]:
    """The fields of an object, with those of `OF_CLIENTS`."""
    own = OF_CLIENTS.get(kind.__name__, {}) if kind.__module__.startswith("openai.") else {}
    return {**get_type_hints(kind), **own}


@cache
def required(kind: Any) -> list[str]:
    """The fields that it has in any case: `__required_keys__` is empty where annotations are strings."""
    hints = get_type_hints(kind, include_extras=True)
    found = {key for key, hint in hints.items() if get_origin(hint) is te.Required or kind.__total__}
    return sorted({*found, *([SOURCES[kind.__name__]] if kind.__name__ in SOURCES else [])})


def _is_no_json(kind: Any) -> bool:
    of_answers = isinstance(kind, type) and issubclass(kind, BaseModel)  # each has its TypedDict beside it
    return of_answers or kind in (type(None), os.PathLike) or get_origin(kind) in (IO, os.PathLike)


def _holds(kind: Any, what: type) -> bool:
    origin = get_origin(kind)
    return (
        isinstance(origin, type) and issubclass(origin, what) and not (what is Iterable and issubclass(origin, Mapping))
    )
