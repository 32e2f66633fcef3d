"""Documented facts of models by name: one table, most specific rows first. A fact without a row is unknown.

The catalog says what a kind of provider can do in general; a row here says more of some models. Prices and context
windows are not here: genai-prices keeps them up.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from smart_model_router_providers.catalog import kind_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from smart_model_router.domain.request import Need, Prefill

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
