"""A first configuration: the text of a commented file for the keys and the model servers that are there."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import MappingProxyType

from smart_model_router.config.discovery import (
    DEFAULT_MODELS,
    EMBEDDED_MODEL,
    default_ladder,
    listed_at,
    writes_text,
)
from smart_model_router_providers.catalog import KINDS


@dataclass(frozen=True, slots=True)
class KnownServer:
    """A model server as it runs on this machine by default.

    `owner` is what it says of its models (`owned_by`) where another program may well listen at the same port; "" takes
    whatever answers. `label` is its name for people.
    """

    label: str
    kind: str
    base_url: str
    owner: str = ""


@dataclass(frozen=True, slots=True)
class FoundServer:
    """A model server that answers, and one of its models that writes text."""

    server: KnownServer
    name: str
    model: str


SERVERS: tuple[KnownServer, ...] = (
    KnownServer("Ollama", "ollama", "http://127.0.0.1:11434/v1"),
    KnownServer("LM Studio", "openai_compatible", "http://127.0.0.1:1234/v1"),
    KnownServer("vLLM", "vllm", "http://127.0.0.1:8000/v1", "vllm"),  # also the port of `smr serve`
    KnownServer("llama.cpp", "llamacpp", "http://127.0.0.1:8080/v1", "llamacpp"),
)
_NAMES: Mapping[str, str] = MappingProxyType({"openai_compatible": "lmstudio"})
_OFFERED = ("openai", "anthropic", "gemini")
"""Kinds that stand in the file as comments when their key is not there."""


def servers_that_answer(servers: Iterable[KnownServer] = SERVERS) -> list[FoundServer]:
    """The servers of the list that answer on this machine with a model, asked at once: less than a second."""
    known = list(servers)
    with ThreadPoolExecutor(max_workers=max(1, len(known))) as pool:
        listed = list(pool.map(lambda server: listed_at(server.base_url), known))
    found = []
    for server, models in zip(known, listed, strict=True):
        usable = [model for model, owner in models if server.owner in ("", owner) and writes_text(model)]
        if usable:
            found.append(FoundServer(server, _NAMES.get(server.kind, server.kind), usable[0]))
    return found


def starter_text(keys: Sequence[tuple[str, str]], servers: Sequence[FoundServer], *, embedded: bool) -> str:
    """The file for these keys (kind, variable), servers, and the embedded model where it can answer.

    At least one of the three is needed.
    """
    return "\n".join([*_head(), *_providers(keys, servers, embedded), *_models(keys, servers, embedded), ""])


def _head() -> Iterator[str]:
    yield "# Written by `smr init`. `smr config check` judges it, `smr doctor --online` asks the providers."
    yield "version: 1"
    yield ""


def _providers(keys: Sequence[tuple[str, str]], servers: Sequence[FoundServer], embedded: bool) -> Iterator[str]:
    yield "# Where models are served. Keys stay in the environment: a ${VARIABLE} is read when the router starts."
    yield "providers:"
    for kind, variable in keys:
        yield f'  {kind}: {{kind: {kind}, api_key: "${{{variable}}}"}}'
    for found in servers:
        kind, url = found.server.kind, found.server.base_url
        address = "" if KINDS[kind].base_url == url else f", base_url: {json.dumps(url)}"
        yield f"  {found.name}: {{kind: {kind}{address}}}  # {found.server.label}, found on this machine"
    if embedded and not keys and not servers:
        yield "  local: {kind: local}  # the embedded model"
    missing = [kind for kind in _OFFERED if kind not in {kind for kind, _ in keys}]
    for kind in missing:
        variable = KINDS[kind].key_variables[0]
        yield f'  # {kind}: {{kind: {kind}, api_key: "${{{variable}}}"}}  # set {variable} and take the first # away'
    yield ""


def _models(keys: Sequence[tuple[str, str]], servers: Sequence[FoundServer], embedded: bool) -> Iterator[str]:
    yield "# The names that callers ask for. Tiers are tried in order: a lower one answers when no target above it can."
    yield "models:"
    yield "  smart:"
    yield "    tiers:"
    for name, targets in default_ladder([kind for kind, _ in keys]).items():
        yield f"      - name: {name}"
        yield "        targets:"
        for target in targets:
            yield f"          - {json.dumps(target)}"
    if servers:
        yield "      - name: local"
        yield "        targets:  # no bill is sent for these; `smr models` lists what is known of each"
        for found in servers:
            target = json.dumps(f"{found.name}/{found.model}")
            yield f"          - {{target: {target}, price: {{input: 0, output: 0}}}}"
    if embedded and not keys and not servers:
        yield f"      - {{name: local, targets: [local/{EMBEDDED_MODEL}]}}"
        yield "    last_resort: []"
    missing = [kind for kind in _OFFERED if kind not in {kind for kind, _ in keys}]
    if missing:
        example = f"{missing[0]}/{DEFAULT_MODELS[missing[0]][0]}"
        yield f"      # - {{name: another, targets: [{example}]}}  # with its provider above"
    yield ""
    yield "routing: {default_model: smart}  # whatever other name a client asks for means this one"
    if embedded and (keys or servers):
        yield ""
        yield "# The embedded model answers when all else fails. Requests with tools, as agents send them, it refuses;"
        yield "# `answer_without` lets it answer those in words."
        yield "last_resort: {tools: refuse}"
