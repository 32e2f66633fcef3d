"""The targets of a model that are not on this machine, for what may not leave it."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from smart_model_router_providers.catalog import kind_of

if TYPE_CHECKING:
    from smart_model_router.config.tree import ProviderConfig, RouterConfig


def targets_elsewhere(config: RouterConfig, model: str) -> list[str]:
    """Return the targets of a model, by its name, that another machine serves, each once. Raises ModelNotFound.

    On this machine are the embedded model, scripted providers, and addresses of loopback; a provider of a user's own
    without an address counts as elsewhere.
    """
    found = config.models[config.locate(model)[0]]
    mentions = [mention for tier in found.tiers for mention in tier.targets] + list(found.last_resort or ())
    return list(dict.fromkeys(each.target for each in mentions if not _is_here(config.providers.get(each.provider))))


def elsewhere_text(targets: Sequence[str]) -> str:
    """Return what is needed in the place of a model with such targets, in words."""
    more = ", ..." if len(targets) > 1 else ""
    return (
        f"a model of this machine alone is needed, as research.egress is local_only ({targets[0]}{more} is elsewhere)"
    )


def _is_here(provider: ProviderConfig | None) -> bool:
    if provider is None:
        return False
    kind = kind_of(provider.kind)
    if not kind.remote and provider.base_url is None and kind.base_url is None:
        return True
    host = urlsplit(provider.base_url or kind.base_url or "").hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
