"""The names of OpenTelemetry's GenAI conventions, in one table: those most backends read now, and the next ones.

Next is the conventions after 1.36, where `gen_ai.system` became `gen_ai.provider.name` (and some of its values were
renamed): opentelemetry.io, "Semantic conventions for generative AI". `both` sends what differs under both names.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

Names = Literal["current", "next", "both"]

OPERATION = "operation"
PROVIDER = "provider"
REQUEST_MODEL = "request_model"
RESPONSE_MODEL = "response_model"
INPUT_TOKENS = "input_tokens"
OUTPUT_TOKENS = "output_tokens"
CACHED_TOKENS = "cached_tokens"
ERROR = "error"

_TABLE: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        OPERATION: ("gen_ai.operation.name", "gen_ai.operation.name"),
        PROVIDER: ("gen_ai.system", "gen_ai.provider.name"),
        REQUEST_MODEL: ("gen_ai.request.model", "gen_ai.request.model"),
        RESPONSE_MODEL: ("gen_ai.response.model", "gen_ai.response.model"),
        INPUT_TOKENS: ("gen_ai.usage.input_tokens", "gen_ai.usage.input_tokens"),
        OUTPUT_TOKENS: ("gen_ai.usage.output_tokens", "gen_ai.usage.output_tokens"),
        CACHED_TOKENS: ("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read.input_tokens"),
        ERROR: ("error.type", "error.type"),
    }
)
"""Our word -> (current name, next name)."""

_PROVIDERS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "anthropic": ("anthropic", "anthropic"),
        "azure": ("az.ai.openai", "azure.ai.openai"),
        "deepseek": ("deepseek", "deepseek"),
        "gemini": ("gemini", "gcp.gemini"),
        "groq": ("groq", "groq"),
        "mistral": ("mistral_ai", "mistral_ai"),
        "openai": ("openai", "openai"),
        "xai": ("xai", "x_ai"),
    }
)
"""The well-known values, by the catalog's kind; any other kind goes by its own name."""


class Vocabulary:
    """Attributes by the names that were chosen."""

    def __init__(self, names: Names) -> None:
        self._versions = {"current": (0,), "next": (1,), "both": (0, 1)}[names]

    def attributes(self, values: Mapping[str, str | int | None]) -> dict[str, str | int]:
        """The values (by the words above) under their conventional names; None is left out."""
        return {
            _TABLE[what][version]: value
            for what, value in values.items()
            if value is not None
            for version in self._versions
        }

    def provider(self, kind: str) -> dict[str, str | int]:
        """The attribute that names a provider of a kind of the catalog."""
        known = _PROVIDERS.get(kind, (kind, kind))
        return {_TABLE[PROVIDER][version]: known[version] for version in self._versions}
