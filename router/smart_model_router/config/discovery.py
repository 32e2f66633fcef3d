"""A configuration without a file: from the keys in the environment, else the embedded model."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from http.client import HTTPConnection
from socket import SHUT_RDWR, socket
from threading import Timer
from types import MappingProxyType
from urllib.parse import urlsplit

from smart_model_router.config import (
    ModelConfig,
    PriceConfig,
    ProviderConfig,
    RouterConfig,
    Secret,
    TargetConfig,
    TierConfig,
)
from smart_model_router.config.files import FILE_NAME, VARIABLE, default_file
from smart_model_router.config.rules import mentions_of
from smart_model_router.core.flow_config import RoutingConfig
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router_providers.catalog import KINDS, found_in
from smart_model_router_providers.local import is_ready

MODEL = "auto"
"""The one model of a discovered configuration; it answers for every name a caller may use."""
EMBEDDED_MODEL = "smollm2"
LOOPBACK_SERVERS: Mapping[str, str] = MappingProxyType(
    {kind: url for kind in ("ollama", "foundry_local") if (url := KINDS[kind].base_url) is not None}
)
"""Model servers that may run on this machine, asked in this order when the embedded model is not installed."""
_LOOPBACK_SECONDS = 0.25
_LOOPBACK_BYTES = 1_000_000
# No `#`: a number behind it would be that of a credential.
_PLAIN = re.compile(r"[\w./:@+-]{1,200}", re.ASCII)
_TIERS = ("frontier", "standard", "economy")

# Kind -> its models for frontier, standard and economy, as SDKs and price lists named them in November 2026. They age:
# to choose the model that answers, write a file.
DEFAULT_MODELS: Mapping[str, tuple[str, str, str]] = MappingProxyType(
    {
        "openai": ("gpt-6.1-sol", "gpt-6.1-terra", "gpt-6-luna"),
        "anthropic": ("claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5"),
        "gemini": ("gemini-4-argon", "gemini-3.8-flash", "gemini-3.5-flash-lite"),
        "groq": ("openai/gpt-oss-120b", "openai/gpt-oss-120b", "openai/gpt-oss-20b"),
        "mistral": ("mistral-large-latest", "mistral-medium-latest", "mistral-small-latest"),
        "deepseek": ("deepseek-v4-pro", "deepseek-v4-pro", "deepseek-v4-flash"),
        "xai": ("grok-4.7", "grok-4.3", "grok-4-1-fast-non-reasoning"),
        "cerebras": ("gpt-oss-120b", "gpt-oss-120b", "gpt-oss-120b"),
        "together": ("moonshotai/Kimi-K3.1-Pro", "zai-org/GLM-5.3", "zai-org/GLM-5.3-Flash"),
        "openrouter": ("anthropic/claude-opus-5.5", "openai/gpt-6.1-terra", "openai/gpt-6-luna"),
        "github": ("openai/gpt-5", "openai/gpt-5-mini", "openai/gpt-5-nano"),
    }
)


def default_config(environ: Mapping[str, str], *, embedded: bool | None = None) -> RouterConfig:
    """The configuration when none is named: a file in the default places, the environment's keys, the embedded model.

    `embedded` says whether the embedded model can answer; None looks. Raises ConfigurationError that names the ways
    out when there is nothing at all.
    """
    if default_file(environ) is not None:
        return with_last_resort(RouterConfig.load(environ=environ), embedded=embedded)
    keys = found_in(environ)
    if keys:
        return with_last_resort(_from_keys(keys, environ), embedded=embedded)
    if embedded if embedded is not None else is_ready().ready:
        return _only_embedded()
    raise ConfigurationError(
        "configuration",
        None,
        f"one of these is needed: ./{FILE_NAME} (smr init) or a file named by ${VARIABLE}; "
        "a provider's key in the environment "
        f"({', '.join(_key_variables())}); or the embedded model: pip install 'smart-model-router[local]' and "
        "smr local install",
    )


def with_last_resort(config: RouterConfig, *, embedded: bool | None = None) -> RouterConfig:
    """Return `config` in which models that leave `last_resort` open have the embedded model, when it can answer.

    `embedded` says whether it can; None looks. Else they get the first model of an Ollama or a Foundry Local found
    on this machine.
    """
    open_models = [model for model in config.models.values() if model.last_resort is None]
    if not open_models:
        return config
    if embedded if embedded is not None else is_ready().ready:
        found: tuple[str, str, str | None] | None = ("local", EMBEDDED_MODEL, None)
    else:
        found = found_on_loopback(LOOPBACK_SERVERS)
    if found is None:
        return config
    kind, model, base_url = found
    provider = next((name for name, given in config.providers.items() if given.kind == kind), None)
    providers = dict(config.providers)
    if provider is None:
        provider = next(name for name in (kind, "embedded", "last-resort") if name not in providers)
        providers[provider] = ProviderConfig(kind=kind, base_url=base_url)
    target = f"{provider}/{model}"
    named = any(mention.target == target for _, mention in mentions_of(config.models))
    # A server on this machine sends no bill; a server that the configuration names has its price there, if any.
    resort = (TargetConfig(target=target, price=None if named or kind == "local" else PriceConfig(input=0, output=0)),)
    completed = {model.name: replace(model, last_resort=resort) for model in open_models}
    return replace(config, providers=providers, models={**config.models, **completed})


def found_on_loopback(servers: Mapping[str, str]) -> tuple[str, str, str] | None:
    """The first model that writes text at a server of `servers` (kind -> base URL): (kind, model, base URL).

    One short question each (see `listed_at`); a port without a listener refuses at once.
    """
    for kind, base_url in servers.items():
        model = next((model for model, _ in listed_at(base_url) if writes_text(model)), None)
        if model is not None:
            return kind, model, base_url
    return None


def writes_text(model: str) -> bool:
    """Return whether a model's name can stand in a target and is not that of a model of vectors."""
    return _PLAIN.fullmatch(model) is not None and "embed" not in model.lower()


def listed_at(base_url: str) -> list[tuple[str, str]]:
    """The models of a server on this machine, each with its owner ("" for none); none where no model server answers.

    One short question: less than a second, also where a foreign server sends without an end.
    """
    url = urlsplit(base_url)
    connection = HTTPConnection(url.hostname or "127.0.0.1", url.port, timeout=_LOOPBACK_SECONDS)
    try:
        connection.connect()
        end = Timer(2 * _LOOPBACK_SECONDS, _cut, [connection.sock])
        end.start()
        try:
            connection.request("GET", f"{url.path}/models")
            answer = json.loads(connection.getresponse().read(_LOOPBACK_BYTES))
        finally:
            end.cancel()
        models = [model for model in answer["data"] if isinstance(model["id"], str)]
        return [(model["id"], str(model.get("owned_by", ""))) for model in models]
    except Exception:  # noqa: BLE001 - no server, a foreign server, or a sandbox in between: nothing is there
        return []
    finally:
        connection.close()


def _cut(connected: socket) -> None:
    """End a connection that another thread reads from."""
    with suppress(OSError):  # it has ended
        connected.shutdown(SHUT_RDWR)


def _from_keys(keys: list[tuple[str, str]], environ: Mapping[str, str]) -> RouterConfig:
    providers = {
        kind: ProviderConfig(kind=kind, api_key=(Secret(environ[variable].strip()),)) for kind, variable in keys
    }
    ladder = tuple(
        TierConfig(name=name, targets=tuple(TargetConfig(target=target) for target in targets))
        for name, targets in default_ladder(providers).items()
    )
    return _one_model(providers, ModelConfig(name=MODEL, tiers=ladder))


def default_ladder(kinds: Collection[str]) -> dict[str, list[str]]:
    """The targets of each tier for providers named after their kinds; a tier without a target is left out."""
    ladder: dict[str, list[str]] = {}
    for index, name in enumerate(_TIERS):
        # A provider whose best model is also its standard one is asked once, in the higher tier.
        for kind in kinds:
            models = DEFAULT_MODELS[kind]
            if models[index] not in models[:index]:
                ladder.setdefault(name, []).append(f"{kind}/{models[index]}")
    return ladder


def _only_embedded() -> RouterConfig:
    tier = TierConfig(name="local", targets=(TargetConfig(target=f"local/{EMBEDDED_MODEL}"),))
    return _one_model({"local": ProviderConfig(kind="local")}, ModelConfig(name=MODEL, tiers=(tier,), last_resort=()))


def _one_model(providers: Mapping[str, ProviderConfig], model: ModelConfig) -> RouterConfig:
    routing = RoutingConfig(default_model=model.name)
    return RouterConfig(version=1, providers=providers, models={model.name: model}, routing=routing)


def _key_variables() -> list[str]:
    return [kind.key_variables[0] for kind in KINDS.values() if kind.key_variables and kind.base_url is not None]
