"""Providers that a configuration names: each made from its kind, which is the catalog's or a class of one's own."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from inspect import signature
from typing import Any
from urllib.parse import urlsplit
from urllib.request import proxy_bypass

from smart_model_router.config.conversion import is_quoted, literal_variable
from smart_model_router.config.tree import ProviderConfig, RouterConfig
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.ports import Provider
from smart_model_router.domain.report_text import ProviderAdvice
from smart_model_router_providers.catalog import KINDS, kind_of, resolve

_KEYS = re.compile(r"api_keys\[(\d+)\]")
"""An adapter's argument for credentials, which the configuration calls `api_key`."""


def check_kind(config: RouterConfig, name: str) -> None:
    """Raise ConfigurationError when the kind of a provider is none, and when it names no class that can be imported."""
    kind = config.providers[name].kind
    if kind not in KINDS:
        try:
            resolve(kind)
        except ConfigurationError as error:
            raise ConfigurationError(f"providers.{name}.kind", kind, error.expected) from error


def make_provider(config: RouterConfig, name: str) -> Provider:
    """The adapter of one configured provider, made from its catalog row, or of a class of one's own.

    Raises ConfigurationError with the key, the value and the reason.
    """
    try:
        return _made(config, name)
    except ConfigurationError as error:
        key = _KEYS.sub("api_key" if len(config.providers[name].api_key) < 2 else r"api_key[\1]", error.key)
        place = _placed_key(config, name, error.key)
        raise ConfigurationError(f"providers.{name}.{key}", error.value, f"{error.expected}{place}") from None


def _placed_key(config: RouterConfig, name: str, key: str) -> str:
    """Where the credential that an adapter's error names comes from, in parentheses; "" for other errors."""
    found = _KEYS.fullmatch(key)
    places = _advice(name, config.providers[name]).keys
    return f" ({places[int(found[1])]})" if found and int(found[1]) < len(places) else ""


def _made(config: RouterConfig, name: str) -> Provider:
    provider = config.providers[name]
    made: Any = resolve(provider.kind)  # each class has its own arguments
    if provider.kind == "local":
        local = config.local
        local_provider: Provider = made(
            context_tokens=local.context_tokens,
            prompt_cap_tokens=local.prompt_cap_tokens,
            default_max_tokens=local.default_max_tokens,
            max_tokens=local.max_tokens,
            threads=local.threads,
            start_timeout=local.start_timeout,
        )
        return local_provider
    if provider.kind == "scripted":
        scripted: Provider = made()
        return scripted
    settings = {
        "kind": provider.kind,
        "base_url": provider.base_url,
        "api_keys": keys_of(provider),
        "api_version": provider.api_version,
        "headers": {key: value.reveal() for key, value in provider.headers.items()},
        "drop_params": provider.drop_params,
    }
    if provider.kind not in KINDS:
        return _own(made, provider.kind, settings)
    http: Provider = made(**settings)
    return http


def _own(made: Any, kind: str, settings: dict[str, Any]) -> Provider:
    """Make a provider of a class of one's own, with those of the settings that its constructor names."""
    try:
        takes = signature(made).parameters
        anything = any(parameter.kind is parameter.VAR_KEYWORD for parameter in takes.values())
        own: Provider = made(**{name: value for name, value in settings.items() if anything or name in takes})
    except ConfigurationError:
        raise
    except Exception as error:  # foreign code: whatever it raises is the reason
        reason = f"a provider class is needed that can be made of {', '.join(settings)}"
        raise ConfigurationError("kind", kind, f"{reason} ({type(error).__name__}: {error})") from error
    return own


def secrets_of(config: RouterConfig) -> tuple[str, ...]:
    """Everything in a configuration that no log may show."""
    upstream = [key for provider in config.providers.values() for key in keys_of(provider)]
    headers = [value.reveal() for provider in config.providers.values() for value in provider.headers.values()]
    clients = [key.key.reveal() for key in config.gateway.keys.values() if key.key is not None]
    return tuple(dict.fromkeys([*upstream, *headers, *clients]))


def keys_of(provider: ProviderConfig) -> tuple[str, ...]:
    """The provider's credentials: those configured, else the first of its kind's key variables that is set."""
    if provider.api_key:
        return tuple(secret.reveal() for secret in provider.api_key)
    found = (os.environ.get(variable) for variable in kind_of(provider.kind).key_variables)
    return tuple(key for key in found if key)[:1]


def advice_of(config: RouterConfig) -> dict[str, ProviderAdvice]:
    """The places where each provider's keys and address stand, by provider name, for people who have to mend them."""
    return {name: _advice(name, provider) for name, provider in config.providers.items()}


def _advice(name: str, provider: ProviderConfig) -> ProviderAdvice:
    several = len(provider.api_key) > 1
    written = [f"providers.{name}.api_key{f'[{number}]' if several else ''}" for number in range(len(provider.api_key))]
    kind, keys = kind_of(provider.kind), keys_of(provider)
    by_value = _variables_by_value(kind.key_variables) if keys else {}
    places = [_place(key, place, by_value) for key, place in zip(keys, written or kind.key_variables, strict=False)]
    address = "" if provider.base_url is None else f"providers.{name}.base_url"
    missing = f"${kind.key_variables[0]} or providers.{name}.api_key" if kind.key_variables and not keys else ""
    return ProviderAdvice(tuple(places), address, missing, _proxy_variable(provider.base_url or kind.base_url or ""))


def _variables_by_value(first: Sequence[str]) -> dict[str, str]:
    """The name of the variable that has a value; the `first` ones come before all others, which go by the alphabet."""
    values = {name: text.strip() for name, text in os.environ.items()}
    names = [*first, *sorted(values.keys() - set(first))]
    return {values[name]: f"${name}" for name in reversed(names) if values.get(name)}


def _place(key: str, written: str, by_value: Mapping[str, str]) -> str:
    """The variable that has the key, else its place in the configuration and what is wrong with it there."""
    if name := literal_variable(key):
        return f'{written}: it is the text {key.strip()}, not the value of the variable ("${{{name}}}" is)'
    place = by_value.get(key.strip(), written)
    return f"{place}: quotation marks are part of its value" if is_quoted(key) else place


def _proxy_variable(url: str) -> str:
    """The variable by which a URL is asked through a proxy; "" where it is not."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    names = (f"{parts.scheme}_proxy", f"{parts.scheme}_proxy".upper())
    found = next((f"${name}" for name in names if os.environ.get(name)), "")
    if not found or host == "localhost" or host.startswith("127.") or host == "::1" or proxy_bypass(parts.netloc):
        return ""
    return found
