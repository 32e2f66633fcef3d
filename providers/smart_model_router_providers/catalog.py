"""The catalog: one row a provider kind, pure data: what is known of a kind before it is ever asked."""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, cast

from smart_model_router.domain.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_model_router.domain.ports import Provider
    from smart_model_router.domain.request import Dialect, Need, Prefill

AuthStyle = Literal["bearer", "x-api-key", "api-key", "none"]
HeaderFamily = Literal[
    "openai", "azure", "github", "groq", "anthropic", "mistral", "cerebras", "openrouter", "ietf", "any", "none"
]

_HTTP = "smart_model_router_providers.http:HttpProvider"
_OPENAI_WIRES: tuple[Dialect, ...] = ("chat", "embeddings")
_ALL_NEEDS: tuple[Need, ...] = ("tools", "images", "schema", "pdf", "audio")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One provider kind.

    `path` names the provider class as `module:Class`. `wires` are the dialects spoken natively. `base_url` is None
    where every owner has their own. `key_variables` are tried in order. `rpm` and `tpm` (a minute) are None where the
    account decides. `counts_max_tokens`: the token bucket is charged with max_tokens already at admission.
    `header_family` is how its answers speak of limits (signals/; "any" believes whatever looks like one). `limit_pool`
    is the part of a model's name that all models with one common limit share, as a pattern; "" where each model has its
    own. `capabilities` are what the kind can do in general; a model may do less. `newest_chat`: its Chat takes OpenAI's
    newest parameters; others reject what they do not know. `remote` is False on this machine. `failure_domain` is what
    fails together with it; "" means the kind alone. `prefill` is how it continues an answer that has begun, as its
    documentation has it; a model that refuses is passed over (a 400 of a fallback is the next one's turn). `media` is
    the family of token rules for media of models that models.py does not name.
    """

    path: str = _HTTP
    wires: tuple[Dialect, ...] = _OPENAI_WIRES
    base_url: str | None = None
    auth: AuthStyle = "bearer"
    key_variables: tuple[str, ...] = ()
    rpm: int | None = None
    tpm: int | None = None
    bulkhead: int = 20
    failure_domain: str = ""
    header_family: HeaderFamily = "any"
    limit_pool: str = ""
    counts_max_tokens: bool = False
    newest_chat: bool = False
    capabilities: tuple[Need, ...] = _ALL_NEEDS
    prefill: Prefill = "asked"
    media: str = ""
    remote: bool = True


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "openai": Kind(
            wires=("chat", "responses", "embeddings"),
            newest_chat=True,
            media="patches",
            base_url="https://api.openai.com/v1",
            key_variables=("OPENAI_API_KEY",),
            bulkhead=50,
            header_family="openai",
            counts_max_tokens=True,
        ),
        "anthropic": Kind(
            wires=("messages",),
            base_url="https://api.anthropic.com/v1",
            auth="x-api-key",
            key_variables=("ANTHROPIC_API_KEY",),
            bulkhead=50,
            header_family="anthropic",
            media="claude",
            capabilities=("tools", "images", "schema", "pdf"),
            limit_pool=r"claude-(?:opus|sonnet|haiku)-\d+",  # docs, "Rate limits": Opus 4.x counts as one model
            prefill="plain",  # docs, "Prefill Claude's response"; models.py names those that refuse it
        ),
        "gemini": Kind(
            base_url="https://generativelanguage.googleapis.com/v1beta/openai",
            key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
            media="gemini-3",
            bulkhead=50,
        ),
        "azure": Kind(  # base_url: https://RESOURCE.openai.azure.com; the model is the deployment
            auth="api-key",
            key_variables=("AZURE_OPENAI_API_KEY",),
            newest_chat=True,
            media="gpt-4o",
            bulkhead=50,
            failure_domain="azure",
            header_family="azure",
            counts_max_tokens=True,
        ),
        "groq": Kind(
            wires=("chat",),
            base_url="https://api.groq.com/openai/v1",
            key_variables=("GROQ_API_KEY",),
            header_family="groq",
            counts_max_tokens=True,
            prefill="plain",  # docs, "Assistant message prefilling"
        ),
        "mistral": Kind(
            base_url="https://api.mistral.ai/v1",
            key_variables=("MISTRAL_API_KEY",),
            header_family="mistral",
            media="mistral",
            prefill="prefix",  # API reference, AssistantMessage.prefix
        ),
        "deepseek": Kind(  # continues by `prefix` at https://api.deepseek.com/beta only: the configuration says so
            wires=("chat",),
            base_url="https://api.deepseek.com/v1",
            key_variables=("DEEPSEEK_API_KEY",),
            capabilities=("tools",),
        ),
        "xai": Kind(wires=("chat",), base_url="https://api.x.ai/v1", key_variables=("XAI_API_KEY",), media="grok"),
        "cerebras": Kind(
            wires=("chat",),
            base_url="https://api.cerebras.ai/v1",
            key_variables=("CEREBRAS_API_KEY",),
            header_family="cerebras",
            capabilities=("tools", "schema"),
        ),
        "together": Kind(base_url="https://api.together.xyz/v1", key_variables=("TOGETHER_API_KEY",)),
        "openrouter": Kind(
            base_url="https://openrouter.ai/api/v1",
            key_variables=("OPENROUTER_API_KEY",),
            header_family="openrouter",
            prefill="plain",  # docs, "Assistant Prefill"
        ),
        # GitHub Models runs on Azure. GITHUB_TOKEN is not asked for: every CI job has one, for other things.
        "github": Kind(
            base_url="https://models.github.ai/inference",
            key_variables=("GITHUB_MODELS_TOKEN",),
            bulkhead=30,
            failure_domain="azure",
            header_family="github",
        ),
        "ollama": Kind(
            wires=("chat", "messages", "embeddings"),
            base_url="http://127.0.0.1:11434/v1",
            bulkhead=10,
            prefill="plain",  # its templates leave a last message of the assistant open
            remote=False,
        ),
        "vllm": Kind(
            wires=("chat", "messages", "embeddings"),
            base_url="http://127.0.0.1:8000/v1",
            prefill="continue_final_message",
            remote=False,
        ),
        "llamacpp": Kind(
            wires=("chat", "messages", "embeddings"),
            base_url="http://127.0.0.1:8080/v1",
            prefill="plain",  # server README; refused with 400 while it thinks
            remote=False,
        ),
        "foundry_local": Kind(
            wires=("chat",), base_url="http://127.0.0.1:5273/v1", capabilities=("tools",), remote=False
        ),
        "openai_compatible": Kind(),  # few such servers have more than Chat: the configuration says so (`wires`)
        "local": Kind(
            path="smart_model_router_providers.local:LocalProvider",
            wires=("chat", "messages"),
            auth="none",
            bulkhead=1,
            capabilities=(),
            remote=False,
        ),
        "scripted": Kind(
            path="smart_model_router_providers.fault:ScriptedProvider",
            wires=("chat", "messages", "responses", "embeddings"),
            auth="none",
            prefill="plain",
            remote=False,
        ),
    }
)
"""Kind -> row, in the order in which keys found in the environment become providers (see `found_in`)."""


def kind_of(name: str) -> Kind:
    """The row of a kind. Raises ConfigurationError that lists the kinds."""
    if name not in KINDS:
        raise ConfigurationError("kind", name, f"one of {', '.join(KINDS)}")
    return KINDS[name]


def failure_domain(name: str) -> str:
    """The failure domain of this kind; the kind itself unless its row names another."""
    return kind_of(name).failure_domain or name


def limit_pool(name: str, model: str) -> str:
    """The name of a model's rate limit; the model itself unless its provider counts several together."""
    pattern = kind_of(name).limit_pool
    found = re.match(pattern, model) if pattern else None
    return found[0] if found is not None else model


def found_in(environment: Mapping[str, str]) -> list[tuple[str, str]]:
    """(kind, key variable) of every remote provider whose key is set, in the catalog's order.

    The order: first parties by what they offer, then aggregators, then the free tier. Azure needs an endpoint
    as well, so a key alone does not make it available.
    """
    found: list[tuple[str, str]] = []
    for name, kind in KINDS.items():
        variable = next((v for v in kind.key_variables if environment.get(v, "").strip()), None)
        if variable is not None and kind.base_url is not None:
            found.append((name, variable))
    return found


def resolve(name: str) -> type[Provider]:
    """The provider class of a kind, imported now. Raises ConfigurationError for an unknown kind."""
    module, _, attribute = kind_of(name).path.partition(":")
    found: Any = getattr(importlib.import_module(module), attribute)
    return cast("type[Provider]", found)
