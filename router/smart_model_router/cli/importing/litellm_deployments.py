"""LiteLLM's `model_list`: each deployment becomes a target, and what it is reached by a provider."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from smart_model_router.cli.importing import import_report as values
from smart_model_router.cli.importing import litellm_names as names
from smart_model_router.cli.importing.import_report import ImportReport
from smart_model_router.cli.importing.litellm_names import Prefix
from smart_model_router.config.hints import fields_of
from smart_model_router.config.tree import DefaultsConfig, PriceConfig, ProviderConfig, TargetConfig, ThinkingConfig
from smart_model_router.core.checked_options import within
from smart_model_router.domain.tree_path import Path

_OWN_SERVERS = frozenset({"openai_compatible", "ollama", "vllm"})
"""Kinds whose servers fail each for itself."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """One entry of `model_list` that can be asked. `order`: lower ones first. `target` is a TargetConfig as data."""

    group: str
    path: Path
    target: dict[str, Any]
    order: float
    tags: tuple[str, ...]
    weighted: bool


class Deployments:
    """Reads `model_list`; collects the providers its entries are reached by."""

    def __init__(self, report: ImportReport, credentials: object = None) -> None:
        self._report = report
        self._credentials = dict(_credentials(credentials))
        self.providers: dict[str, dict[str, Any]] = {}
        self._facts: dict[str, dict[str, Any]] = {}
        self._placements: set[tuple[str, str]] = set()

    def read(self, listed: object) -> list[Deployment]:
        """The deployments that have a counterpart; what has none is in the report."""
        found = []
        for number, entry in enumerate(listed if isinstance(listed, list) else []):
            path: Path = ("model_list", number)
            deployment = self._deployment(entry, path) if isinstance(entry, dict) else None
            if deployment is not None:
                found.append(deployment)
        return found

    def _deployment(self, entry: dict[str, Any], path: Path) -> Deployment | None:
        group, params = entry.get("model_name"), entry.get("litellm_params")
        model = params.get("model") if isinstance(params, dict) else None
        if not isinstance(params, dict) or not isinstance(group, str) or not isinstance(model, str):
            self._report.left_out(path, "model_name and litellm_params.model are needed", "complete it")
            return None
        params = self._with_credential(params, (*path, "litellm_params"))
        name, prefix = _prefix(model, params)
        if group.count("*") > 1 or name.count("*") > group.count("*") or "*" in model.removesuffix(name):
            self._report.left_out(path, *names.NO_WILDCARD)
            return None
        if prefix is None or not name.strip() or not group.strip():
            is_named = "/" in model or "custom_llm_provider" in params
            self._report.left_out(path, *(names.OWN_SDK if is_named else names.NO_PROVIDER))
            return None
        here = (*path, "litellm_params")
        provider = self._provider(params, here, prefix)
        if "base_url" not in provider and prefix.kind == "openai_compatible":
            self._report.left_out(path, "its address is not known", "give it an `api_base`")
            return None
        target = self._target(entry, params, path)
        written = self._placed(group, provider, name, target)
        self._report.mapped((*path, "model_name"), f"models.{group}")
        self._report.mapped((*here, "model"), f"the target {written}")
        self._report.mapped((*here, "custom_llm_provider"), f"providers.{written.partition('/')[0]}.kind")
        order = values.figure(params.get("order"))
        if order is not None:
            self._report.mapped((*here, "order"), f"models.{group}.tiers", "a tier for each order")
        self._rest(entry, path)
        tags = params.get("tags")
        return Deployment(
            group,
            path,
            {"target": written, **target},
            float("inf") if order is None else order,
            tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else (),
            "weight" in target,
        )

    def _with_credential(self, params: dict[str, Any], path: Path) -> dict[str, Any]:
        """The parameters with those of the credential that they name; their own go first."""
        credential = self._credentials.get(params.get("litellm_credential_name"))
        if credential is None:
            return params
        number, given = credential
        for key in given:
            if key not in params:
                self._report.mapped(("credential_list", number, "credential_values", key), "providers.*")
        self._report.mapped(("credential_list", number, "credential_name"), "providers.*")
        info = ("credential_list", number, "credential_info")
        self._report.left_out(info, "it only describes the credential", "nothing to do")
        self._report.mapped((*path, "litellm_credential_name"), "providers.*")
        return {**given, **params}

    def _provider(self, params: dict[str, Any], path: Path, prefix: Prefix) -> dict[str, Any]:
        """The ProviderConfig of a deployment, as data."""
        made: dict[str, Any] = {"kind": prefix.kind}
        base = next((key for key in ("api_base", "base_url") if isinstance(params.get(key), str)), None)
        base_url = values.text(params[base]).rstrip("/") if base is not None else prefix.base_url
        if base_url is None and prefix.kind == "azure":
            base_url = "${AZURE_API_BASE}"  # where LiteLLM looks
        if base_url is not None:
            ours = base_url if base_url.endswith(prefix.suffix) else base_url + prefix.suffix
            if prefix.kind == "openai" and _host(ours) != "api.openai.com":
                made["kind"] = "openai_compatible"
            made["base_url"] = ours
            if base is not None:
                self._report.mapped((*path, base), "providers.*.base_url")
        if isinstance(params.get("api_key"), str):
            made["api_key"] = values.text(params["api_key"])
            self._report.mapped((*path, "api_key"), "providers.*.api_key")
        elif prefix.own_variable or (prefix.variable and made["kind"] != prefix.kind):
            made["api_key"] = f"${{{prefix.variable}}}"
        for key, ours in names.PROVIDER_KEYS.items():
            self._take(params, key, path, made, ours, fields_of(ProviderConfig))
        self._headers(params, path, made)
        dropped = params.get("additional_drop_params")
        if isinstance(dropped, list) and all(isinstance(name, str) and name.isidentifier() for name in dropped):
            made["drop_params"] = dropped
            self._report.mapped((*path, "additional_drop_params"), "providers.*.drop_params")
        if made["kind"] in _OWN_SERVERS and made.get("base_url"):
            made["failure_domain"] = _host(made["base_url"])
        return made

    def _headers(self, params: dict[str, Any], path: Path, made: dict[str, Any]) -> None:
        headers = {}
        if isinstance(params.get("organization"), str):
            headers["OpenAI-Organization"] = values.text(params["organization"])
            self._report.mapped((*path, "organization"), "providers.*.headers.OpenAI-Organization")
        extra = params.get("extra_headers")
        for name, value in extra.items() if isinstance(extra, dict) else ():
            if isinstance(value, str) and name.isascii():
                headers[name] = values.text(value)
                self._report.mapped((*path, "extra_headers", name), f"providers.*.headers.{name}")
        if headers:
            made["headers"] = headers

    def _target(self, entry: dict[str, Any], params: dict[str, Any], path: Path) -> dict[str, Any]:
        """The facts of a deployment. LiteLLM reads rpm and tpm beside litellm_params, too."""
        made: dict[str, Any] = {}
        takes = fields_of(TargetConfig)
        for key, ours in names.TARGET_KEYS.items():
            self._take(params, key, (*path, "litellm_params"), made, ours, takes)
        for key in ("rpm", "tpm"):
            if key not in made:
                self._take(entry, key, path, made, key, takes)
        info = entry.get("model_info")
        for key, ours in names.INFO_KEYS.items() if isinstance(info, dict) else ():
            self._take(info, key, (*path, "model_info"), made, ours, takes)
        self._price(entry, path, made)
        self._defaults(params, (*path, "litellm_params"), made)
        return made

    def _defaults(self, params: dict[str, Any], path: Path, made: dict[str, Any]) -> None:
        """Parameters that LiteLLM adds to requests that come without them."""
        defaults: dict[str, Any] = {}
        for key in names.DEFAULT_KEYS:
            self._take(params, key, path, defaults, key, fields_of(DefaultsConfig))
        thinking = params.get("thinking")
        if isinstance(thinking, dict):
            found: dict[str, Any] = {}
            for key in ("type", "budget_tokens"):
                self._take(thinking, key, (*path, "thinking"), found, key, fields_of(ThinkingConfig))
            if "type" in found:
                defaults["thinking"] = found
        if defaults:
            made["defaults"] = defaults

    def _price(self, entry: dict[str, Any], path: Path, made: dict[str, Any]) -> None:
        """The price of a deployment, when prompts and answers have theirs in one place."""
        takes = fields_of(PriceConfig)
        for section in ("litellm_params", "model_info"):
            given = entry.get(section)
            if not isinstance(given, dict):
                continue
            price: dict[str, float] = {}
            for key, ours in names.PRICE_KEYS.items():
                cost, interval = values.figure(given.get(key)), takes[ours].interval
                usd = None if cost is None else round(cost * 1e6, 6)
                if usd is not None and interval is not None and within(usd, interval):
                    price[ours] = usd
            if "price" not in made and {"input", "output"} <= price.keys():
                made["price"] = price
                for key, ours in names.PRICE_KEYS.items():
                    if ours in price:
                        self._report.mapped((*path, section, key), "`price`", "for a million tokens")

    def _take(self, given: Any, key: str, path: Path, made: dict[str, Any], ours: str, takes: Any) -> None:
        if key not in given or ours in made:
            return
        value = values.fitting(given[key], takes[ours])
        if value is None:
            self._report.left_out((*path, key), f"{takes[ours].describe()} is needed", f"see `{ours}`")
            return
        made[ours] = value
        self._report.mapped((*path, key), f"`{ours}`")

    def _placed(self, group: str, provider: dict[str, Any], model: str, target: dict[str, Any]) -> str:
        """`provider/model` that is new in its group, the provider one that is known alike and says nothing else."""
        facts = {key: value for key, value in target.items() if key not in ("weight", "timeout", "defaults")}
        number = 1
        while True:
            name = provider["kind"] if number == 1 else f"{provider['kind']}-{number}"
            written = f"{name}/{model}"
            alike = self.providers.get(name, provider) == provider and self._facts.get(written, facts) == facts
            if alike and (group, written) not in self._placements:
                self.providers[name], self._facts[written] = provider, facts
                self._placements.add((group, written))
                return written
            number += 1

    def _rest(self, entry: dict[str, Any], path: Path) -> None:
        for section in ("litellm_params", "model_info"):
            given = entry.get(section)
            for key, value in given.items() if isinstance(given, dict) else ():
                here = (*path, section, key)
                always = names.ALWAYS.get(section, {}).get(key)
                if key == "tags" and section == "litellm_params":
                    continue  # whether they count, router_settings says
                if key == "drop_params" and values.switch(value):
                    self._report.mapped(here, "(always so)", names.ALWAYS["litellm_settings"]["drop_params"])
                elif always is not None and values.switch(value):
                    self._report.mapped(here, "(always so)", always)
                elif key == "mode" and value in names.PASSED_MODES:
                    self._report.left_out(here, *names.PASSED)
                elif key in names.LEFT_OUT[section]:
                    self._report.left_out(here, *names.LEFT_OUT[section][key])


def _credentials(listed: object) -> Iterator[tuple[Any, tuple[int, dict[str, Any]]]]:
    """The values of each credential of `credential_list` and where it stands, by its name."""
    for number, entry in enumerate(listed if isinstance(listed, list) else []):
        if isinstance(entry, dict) and isinstance(entry.get("credential_name"), str):
            given = entry.get("credential_values")
            yield entry["credential_name"], (number, given if isinstance(given, dict) else {})


def _prefix(model: str, params: dict[str, Any]) -> tuple[str, Prefix | None]:
    """The provider's own name for the model, and what LiteLLM's prefix means; None for a provider we cannot reach."""
    named = params.get("custom_llm_provider")
    before, slash, rest = model.partition("/")
    if isinstance(named, str):
        return (rest if before == named else model), names.PREFIXES.get(named)
    if slash:
        return rest, names.PREFIXES.get(before)
    taken_for = next((prefix for start, prefix in names.BARE.items() if model.startswith(start)), "")
    if not taken_for and ("api_base" in params or "base_url" in params):
        taken_for = "custom_openai"
    return model, names.PREFIXES.get(taken_for)


def _host(url: str) -> str:
    """The host and port; the text itself where it is no address, but a variable."""
    try:
        return urlsplit(url).netloc or url
    except ValueError:
        return url
