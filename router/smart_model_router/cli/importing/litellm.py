"""A configuration of LiteLLM's proxy as ours, with the account of every value in it. Reads no file and no variable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from smart_model_router.cli.importing.import_report import Entry, ImportReport
from smart_model_router.cli.importing.litellm_deployments import Deployments
from smart_model_router.cli.importing.litellm_models import Groups, aliases_of, by_tags, models_of
from smart_model_router.cli.importing.litellm_settings import Settings
from smart_model_router.config.document import Document
from smart_model_router.domain.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Imported:
    """The configuration as plain data, and what became of each value of the source."""

    config: dict[str, Any]
    entries: list[Entry]


def convert(document: Document) -> Imported:
    """Convert. Raises ConfigurationError when there is no deployment to convert."""
    data = document.data
    if not isinstance(data, dict):
        raise ConfigurationError("model_list", None, "a configuration of LiteLLM's proxy is needed")
    account = ImportReport(document)
    reader = Deployments(account, data.get("credential_list"))
    deployments = reader.read(data.get("model_list"))
    groups: Groups = {}
    for deployment in deployments:
        groups.setdefault(deployment.group, []).append(deployment)
    groups = by_tags(groups, data, account)
    models = models_of(groups, data, account)
    filters = any(
        _names(data, section, "content_policy_fallbacks") for section in ("router_settings", "litellm_settings")
    )
    weighted = any(deployment.weighted for deployment in deployments)
    sections = Settings(data, account).read(models, weighted=weighted, filters=filters)
    aliases = aliases_of(models, data, account)
    entries = account.entries()
    if not models:
        why = entries[0].note if entries else "model_list is empty"
        raise ConfigurationError("model_list", None, f"at least one deployment that can be imported is needed ({why})")
    named = {"aliases": aliases} if aliases else {}
    return Imported({"version": 1, "providers": reader.providers, "models": models, **named, **sections}, entries)


def _names(data: dict[str, Any], section: str, key: str) -> bool:
    given = data.get(section)
    return isinstance(given, dict) and bool(given.get(key))
