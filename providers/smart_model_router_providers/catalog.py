"""The catalog: a row for each provider kind and each model family; a fact without a row is unknown. Pure data.

The catalog says what a kind of provider can do in general; a row here says more of some models. Prices and context
windows are not here: genai-prices keeps them up.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeVar

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.import_path import imported, reference_of
from smart_model_router.domain.suggest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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
            path="smart_model_router_providers.local.provider:LocalProvider",
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


GROUP = "smart_model_router.providers"
"""The group of entry points for providers of other packages."""


def kind_of(name: str) -> Kind:
    """The row of a kind; of a class (`package.module:Class`, or an entry point) that of `openai_compatible`.

    Raises ConfigurationError that lists the kinds.
    """
    return KINDS[name] if name in KINDS else _own(name)


def is_kind(name: str) -> bool:
    """Return whether this is a kind of the catalog, or names a class (which may not be there)."""
    return name in KINDS or reference_of(name, GROUP) is not None


@lru_cache(maxsize=256)
def _own(name: str) -> Kind:
    reference = reference_of(name, GROUP)
    if reference is None:
        raise ConfigurationError("kind", name, did_you_mean(name, KINDS))
    return replace(KINDS["openai_compatible"], path=reference)


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
    """The provider class of a kind, imported now.

    Raises ConfigurationError for an unknown kind, and for an import path that leads to no provider class.
    """
    from smart_model_router.domain.ports import Provider as Needed  # noqa: PLC0415 - a type is no reason to import it

    reference = kind_of(name).path
    try:
        found = imported(reference)
    except Exception as error:  # foreign code: whatever it raises is the reason
        reason = f"a provider class that can be imported is needed ({type(error).__name__}: {error})"
        raise ConfigurationError("kind", name, reason) from error
    if not (isinstance(found, type) and issubclass(found, Needed)):
        raise ConfigurationError("kind", name, "a class with the methods call, open_stream and aclose is needed")
    return found


T = TypeVar("T")
CATALOG = "catalog"
"""The source of facts that hold for all models of a kind."""
_OWN_NAMES = frozenset(
    {"azure", "openai_compatible", "ollama", "vllm", "llamacpp", "foundry_local", "local", "scripted"}
)
"""Kinds whose owner chooses the names of models: a name says nothing certain of what they can do."""
_TEXT_ONLY: tuple[Need, ...] = ("images", "pdf", "audio")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRow:
    """Facts of the models whose lower-case name contains `pattern` (a regular expression), and their source.

    `media` names the family of token rules (core/media_tokens.py). `can` and `cannot` are abilities; an ability in
    neither is unknown. `reasoning`: the model thinks first unless told not to. `prefill` is as in the catalog.
    """

    pattern: str
    source: str
    media: str | None = None
    can: tuple[Need, ...] = ()
    cannot: tuple[Need, ...] = ()
    reasoning: bool | None = None
    prefill: Prefill | None = None
    found_in: Callable[[str], re.Match[str] | None] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "found_in", re.compile(self.pattern).search)


_GPT = "OpenAI, Models"
_O = "OpenAI, Reasoning"
_CLAUDE = "Anthropic, Models overview"
_GEMINI = "Google, Gemini models"

MODELS: tuple[ModelRow, ...] = (
    ModelRow(pattern=r"gpt-4o(-mini)?-audio|gpt-audio|gpt-realtime", source=_GPT, media="gpt-4o",
             can=("tools", "audio"), cannot=("images", "pdf", "schema")),
    ModelRow(pattern=r"gpt-4o-mini", source=_GPT, media="gpt-4o-mini",
             can=("tools", "images", "schema", "pdf"), cannot=("audio",)),
    ModelRow(pattern=r"gpt-4-turbo|gpt-4-vision", source=_GPT, media="gpt-4o",
             can=("tools", "images"), cannot=("schema", "pdf", "audio")),
    ModelRow(pattern=r"gpt-4\.1-mini|gpt-5(\.\d)?-mini", source=_GPT, media="patches-mini",
             can=("tools", "images", "schema", "pdf"), cannot=("audio",)),
    ModelRow(pattern=r"gpt-4\.1-nano|gpt-5(\.\d)?-nano", source=_GPT, media="patches-nano",
             can=("tools", "images", "schema", "pdf"), cannot=("audio",)),
    ModelRow(pattern=r"gpt-5(\.\d)?-chat", source=_GPT, reasoning=False),
    ModelRow(pattern=r"gpt-5\.[4-9]", source=_GPT, media="patches",
             can=("tools", "images", "schema", "pdf"), cannot=("audio",)),
    ModelRow(pattern=r"gpt-5", source=_GPT, media="gpt-5", can=("tools", "images", "schema", "pdf"), cannot=("audio",),
             reasoning=True),
    ModelRow(pattern=r"gpt-4o|gpt-4\.[15]", source=_GPT, media="gpt-4o",
             can=("tools", "images", "schema", "pdf"), cannot=("audio",)),
    ModelRow(pattern=r"gpt-3\.5|(^|/)gpt-4(-32k|-0613|-0314)?$", source=_GPT, cannot=(*_TEXT_ONLY, "schema")),
    ModelRow(pattern=r"(^|/)o(1-mini|3-mini)", source=_O, cannot=_TEXT_ONLY, reasoning=True),
    ModelRow(pattern=r"(^|/)o4-mini", source=_O, media="patches-o4-mini", can=("tools", "images", "schema", "pdf"),
             cannot=("audio",), reasoning=True),
    ModelRow(pattern=r"(^|/)o[134](-|$)", source=_O, media="o-series", can=("tools", "images", "schema", "pdf"),
             cannot=("audio",), reasoning=True),
    ModelRow(pattern=r"gpt-oss", source="OpenAI, gpt-oss model card", cannot=_TEXT_ONLY, reasoning=True),
    ModelRow(pattern=r"claude-(instant|v?[12]\b)", source=_CLAUDE, media="claude",
             cannot=("tools", "schema", *_TEXT_ONLY)),
    ModelRow(pattern=r"claude-(3-(opus|sonnet|haiku)|3-5-haiku)", source=_CLAUDE, media="claude",
             can=("tools", "images"), cannot=("audio",), prefill="plain"),
    ModelRow(pattern=r"claude-opus-4[-.][789]|claude-[a-z]+-[5-9]", source="Anthropic, Vision (high resolution)",
             media="claude-wide", can=("tools", "images", "pdf", "schema"), cannot=("audio",), prefill="asked"),
    ModelRow(pattern=r"claude-[a-z]+-4[-.]6", source="Anthropic, Prefill Claude's response", media="claude",
             can=("tools", "images", "pdf", "schema"), cannot=("audio",), prefill="asked"),
    ModelRow(pattern=r"claude", source=_CLAUDE, media="claude", can=("tools", "images", "pdf"), cannot=("audio",)),
    ModelRow(pattern=r"gemini-[3-9]", source=_GEMINI, media="gemini-3",
             can=("tools", "images", "schema", "pdf", "audio")),
    ModelRow(pattern=r"gemini", source=_GEMINI, media="gemini", can=("tools", "images", "schema", "pdf", "audio")),
    ModelRow(pattern=r"pixtral", source="Mistral, Vision", media="pixtral", can=("tools", "images", "schema")),
    ModelRow(pattern=r"voxtral", source="Mistral, Audio", media="mistral", can=("audio",), cannot=("images",)),
    ModelRow(pattern=r"codestral|mixtral|mistral-nemo|open-mistral", source="Mistral, Models", cannot=_TEXT_ONLY),
    ModelRow(pattern=r"mistral|magistral|ministral", source="Mistral, Models", media="mistral"),
    ModelRow(pattern=r"deepseek-(reasoner|r1)", source="DeepSeek, Models", cannot=_TEXT_ONLY, reasoning=True),
    ModelRow(pattern=r"deepseek-(chat|v[123])", source="DeepSeek, Models", cannot=_TEXT_ONLY),
    ModelRow(pattern=r"llama-?3([.-]1|[.-]3)?-\d+b", source="Meta, Llama 3 model cards", cannot=_TEXT_ONLY),
    ModelRow(pattern=r"grok-.*(vision|4)", source="xAI, Image understanding", media="grok", can=("tools", "images")),
)  # fmt: skip


def ability(kind: str, model: str, need: Need) -> tuple[bool | None, str]:
    """An ability of a model and its source; None when no source says: such a model may be asked."""
    if need not in kind_of(kind).capabilities:
        return False, CATALOG
    if kind not in _OWN_NAMES:
        for row in _rows(model):
            if need in row.can or need in row.cannot:
                return need in row.can, row.source
    return None, ""


def media_family(kind: str, model: str) -> str:
    """The family of token rules for media of this model."""
    return _first(model, lambda row: row.media)[0] or kind_of(kind).media


def reasoning(model: str) -> tuple[bool | None, str]:
    """True when a model thinks first unless told not to, and the source; None when no source says."""
    return _first(model, lambda row: row.reasoning)


def prefill(kind: str, model: str) -> tuple[Prefill, str]:
    """The way a model goes on with an answer that has begun, and the source."""
    for row in _rows(model):
        if row.prefill is not None:
            return row.prefill, row.source
    return kind_of(kind).prefill, CATALOG


def _first(model: str, fact: Callable[[ModelRow], T | None]) -> tuple[T | None, str]:
    return next(((said, row.source) for row in _rows(model) if (said := fact(row)) is not None), (None, ""))


@lru_cache(maxsize=4096)
def _rows(model: str) -> tuple[ModelRow, ...]:
    """Every row of a model, the most specific first."""
    name = model.lower()
    return tuple(row for row in MODELS if row.found_in(name))
