"""A configuration of LiteLLM's proxy as ours, with a report of every value in it. Reads no file and no variable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any
from urllib.parse import quote

from smart_model_router.cli.importing import import_report as values
from smart_model_router.cli.importing import litellm_names as names
from smart_model_router.cli.importing.import_report import Entry, ImportReport
from smart_model_router.cli.importing.litellm_deployments import Deployment, Deployments
from smart_model_router.config import hints
from smart_model_router.config.aliases import text_of
from smart_model_router.config.tree import RouterConfig
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.tree_path import Path, spelled
from smart_model_router.domain.yaml_document import Document

# LiteLLM's router_settings, litellm_settings and general_settings: numbers that have a counterpart.
_WINDOW = "a breaker opens after so many failures in a row, once a sequential test calls the target down"
_COOLDOWN = "the longest first open time, after a slow failure; each reopening lasts longer, and Retry-After goes first"
_RETRIES = "attempts within a tier, on different targets first"
_WHOLE = "of one attempt; `resilience.timeouts.total` is that of the request"

# Where it stands in theirs -> where in ours, what is added to the figure, what it is multiplied by, what differs. The
# first of two that become the same stands: LiteLLM's router_settings go before its litellm_settings.
_FIGURES: tuple[tuple[Path, Path, int, int, str], ...] = (
    (("router_settings", "timeout"), ("resilience", "timeouts", "attempt"), 0, 1, _WHOLE),
    (("litellm_settings", "request_timeout"), ("resilience", "timeouts", "attempt"), 0, 1, _WHOLE),
    (("router_settings", "stream_timeout"), ("resilience", "timeouts", "first_content"), 0, 1, "to the first content"),
    (("router_settings", "cooldown_time"), ("resilience", "breaker", "open"), 0, 1, _COOLDOWN),
    (("litellm_settings", "cooldown_time"), ("resilience", "breaker", "open"), 0, 1, _COOLDOWN),
    (("router_settings", "allowed_fails"), ("resilience", "breaker", "consecutive_failures"), 1, 1, _WINDOW),
    (("litellm_settings", "allowed_fails"), ("resilience", "breaker", "consecutive_failures"), 1, 1, _WINDOW),
    (("router_settings", "num_retries"), ("routing", "attempts_per_tier"), 1, 1, _RETRIES),
    (("litellm_settings", "num_retries"), ("routing", "attempts_per_tier"), 1, 1, _RETRIES),
    (("general_settings", "max_request_size_mb"), ("gateway", "body_bytes"), 0, 1_048_576, ""),
)
_REDIS_CHANGED = "limits, breakers and the operator's word; needs the extra `valkey`"
_DATABASE_CHANGED = "statistics alone, in a schema of its own; needs the extra `postgres`"
_CALLBACKS = ("callbacks", "success_callback", "failure_callback", "service_callback")


def _redis_url(given: dict[str, str]) -> str:
    """The URL of the parts; a reference in it is written out when it is read. "" without a host."""
    if "redis_host" not in given:
        return ""
    parts = {key: raw if raw.startswith("os.environ/") else quote(raw, safe="") for key, raw in given.items()}
    texts = {key: values.text(part) for key, part in parts.items()}
    password = f":{texts['redis_password']}@" if "redis_password" in texts else ""
    return f"redis://{password}{texts['redis_host']}:{texts.get('redis_port', '6379')}/{texts.get('redis_db', '0')}"


class Settings:
    """Puts together the sections beside providers and models."""

    def __init__(self, data: dict[str, Any], report: ImportReport) -> None:
        self._data = data
        self._report = report
        self.made: dict[str, Any] = {}

    def read(self, models: dict[str, Any], *, weighted: bool, filters: bool) -> dict[str, Any]:
        """The sections. `weighted`: a deployment has a weight; `filters`: there are content_policy_fallbacks."""
        for theirs, ours, more, times, changed in _FIGURES:
            self._figure(theirs, ours, more, times, changed)
        self._strategy(weighted)
        if filters:
            self._set(("routing", "content_filter_fallback"), True)
        self._master_key()
        model = self._given(("general_settings", "completion_model"))
        if isinstance(model, str) and model in models:
            self._set(("routing", "default_model"), model)
            self._report.mapped(("general_settings", "completion_model"), "routing.default_model", "for unknown names")
        for key in _CALLBACKS:
            self._callbacks(("litellm_settings", key))
        self._servers()
        self._rest()
        return self.made

    def _given(self, path: Path) -> Any:
        found: Any = self._data
        for step in path:
            found = found.get(step) if isinstance(found, dict) else None
        return found

    def _set(self, path: Path, value: object) -> None:
        section = self.made
        for step in path[:-1]:
            section = section.setdefault(str(step), {})
        section[str(path[-1])] = value

    def _is_set(self, path: Path) -> bool:
        found: Any = self.made
        for step in path:
            found = found.get(step) if isinstance(found, dict) else None
        return found is not None

    def _figure(self, theirs: Path, ours: Path, more: int, times: int, changed: str) -> None:
        raw = self._given(theirs)
        if raw is None:
            return
        if self._is_set(ours):
            self._report.left_out(theirs, f"another setting is {spelled(ours)} already", "nothing to do")
            return
        hint = hints.at(RouterConfig, ours)
        found = values.figure(raw)
        value = None if found is None else values.fitting(str(found * times + more), hint)
        if value is None:
            self._report.left_out(theirs, f"{hint.describe()} is needed", f"see `{spelled(ours)}`")
            return
        self._set(ours, value)
        self._report.mapped(theirs, spelled(ours), changed)
        if ours[-1] == "attempt" and value > 600:  # the default of the whole request
            self._set(("resilience", "timeouts", "total"), value)

    def _strategy(self, weighted: bool) -> None:
        path: Path = ("router_settings", "routing_strategy")
        raw = self._given(path)
        if isinstance(raw, str) and raw in names.STRATEGIES:
            strategy, changed = names.STRATEGIES[raw]
            self._set(("routing", "strategy"), strategy)
            self._report.mapped(path, "routing.strategy", changed)
            return
        if raw is not None:
            self._report.left_out(path, "there is no such strategy", "see `routing.strategy`")
        if weighted:  # LiteLLM's own default goes by weight
            self._set(("routing", "strategy"), "weighted")

    def _master_key(self) -> None:
        path: Path = ("general_settings", "master_key")
        raw = self._given(path)
        if isinstance(raw, str) and raw.strip():
            self._set(("gateway", "keys", "master"), {"key": values.text(raw), "admin": True})
            self._report.mapped(path, "gateway.keys.master")

    def _servers(self) -> None:
        """Redis, over which LiteLLM's processes share their figures, and its database."""
        keys = ("redis_url", "redis_host", "redis_port", "redis_password", "redis_db")
        given = {key: raw for key in keys if isinstance(raw := self._given(("router_settings", key)), str)}
        url = values.text(given["redis_url"]) if "redis_url" in given else _redis_url(given)
        if url:
            self._set(("store", "shared_url"), url)
            used = ("redis_url",) if "redis_url" in given else keys
            for key in given.keys() & set(used):
                self._report.mapped(("router_settings", key), "store.shared_url", _REDIS_CHANGED)
        path: Path = ("general_settings", "database_url")
        raw = self._given(path)
        if isinstance(raw, str) and raw.strip():
            self._set(("store", "stats_url"), values.text(raw))
            self._report.mapped(path, "store.stats_url", _DATABASE_CHANGED)

    def _callbacks(self, path: Path) -> None:
        raw = self._given(path)
        several = isinstance(raw, list)
        for number, name in enumerate(raw if isinstance(raw, list) else [raw]):
            here = (*path, number) if several else path
            if isinstance(name, str) and name in names.CALLBACKS:
                self._set(names.CALLBACKS[name], True)
                self._report.mapped(here, ".".join(names.CALLBACKS[name]))
            elif name is not None:
                self._report.left_out(here, *names.NO_CALLBACK)

    def _rest(self) -> None:
        for section in ("litellm_settings", "router_settings", "general_settings"):
            given = self._given((section,))
            for key, value in given.items() if isinstance(given, dict) else ():
                always = names.ALWAYS[section].get(key)
                if always is not None and values.switch(value):
                    self._report.mapped((section, key), "(always so)", always)
                elif always is not None:
                    self._report.left_out((section, key), f"it is always so: {always}", "nothing to do")
                elif key in names.LEFT_OUT[section]:
                    self._report.left_out((section, key), *names.LEFT_OUT[section][key])
        for section, why in names.SECTIONS.items():
            self._report.left_out((section,), *why)


# LiteLLM's model groups, fallbacks, tags and aliases: public names, and tiers in the order in which they are asked.
_CHANGED = {
    "fallbacks": "",
    "context_window_fallbacks": "asked after any failure; after too long a prompt, a target with a larger context",
    "content_policy_fallbacks": "asked after any failure; after a content filter, too",
}
_OVERRIDES = ("a fallback is sent the request as it came", "give the target its `defaults`")
_ALIKE = "targets that were asked before are not asked again"
_SECTIONS = ("router_settings", "litellm_settings")

Groups = dict[str, list[Deployment]]


def models_of(groups: Groups, data: dict[str, Any], report: ImportReport) -> dict[str, dict[str, Any]]:
    """The section `models`: each group with its tiers, then those of its fallbacks."""
    made = {name: _Ladder(name, deployments) for name, deployments in groups.items()}
    settings = {section: given for section in _SECTIONS if isinstance(given := data.get(section), dict)}
    for section, given in settings.items():
        for kind, changed in _CHANGED.items():
            for group, fallback, path in _pairs(given.get(kind), (section, kind), report):
                _add(made, [group], fallback, path, report, groups, changed)
    for section, given in settings.items():
        listed = given.get("default_fallbacks")
        for number, fallback in enumerate(listed if isinstance(listed, list) else []):
            path = (section, "default_fallbacks", number)
            _add(made, list(made), fallback, path, report, groups, "also after the fallbacks a model has of its own")
    return {name: {"tiers": ladder.tiers, "last_resort": []} for name, ladder in made.items()}


def by_tags(groups: Groups, data: dict[str, Any], report: ImportReport) -> Groups:
    """The groups, those with tags split where tags decide: `name` for requests without any, `name:tag` for the rest."""
    settings = data.get("router_settings")
    decide = isinstance(settings, dict) and values.switch(settings.get("enable_tag_filtering"))
    if decide:
        report.mapped(("router_settings", "enable_tag_filtering"), "models.<name>:<tag>", "ask for `name:tag`")
    split: Groups = {}
    for name, deployments in groups.items():
        plain = [one for one in deployments if "default" in one.tags] or [one for one in deployments if not one.tags]
        split[name] = (plain if decide else []) or deployments
        for one in deployments:
            path = (*one.path, "litellm_params", "tags")
            for number, tag in enumerate(one.tags):
                if not decide:
                    why = "tags decide nothing without enable_tag_filtering, and spend is not kept by tag"
                    report.left_out((*path, number), why, "give each key of `gateway.keys` its usd_per_day")
                elif tag == "default" or "*" in tag:
                    report.mapped((*path, number), f"models.{name}", "requests without tags")
                else:
                    split.setdefault(f"{name}:{tag}", []).append(one)
                    report.mapped((*path, number), f"models.{name}:{tag}", f"ask for {name}:{tag}")
    return split


def aliases_of(models: dict[str, Any], data: dict[str, Any], report: ImportReport) -> dict[str, str]:
    """The section `aliases`, from router_settings.model_group_alias."""
    settings = data.get("router_settings")
    given = settings.get("model_group_alias") if isinstance(settings, dict) else None
    made: dict[str, str] = {}
    for alias, goal in given.items() if isinstance(given, dict) else ():
        path: Path = ("router_settings", "model_group_alias", alias)
        named = goal.get("model") if isinstance(goal, dict) else goal
        if isinstance(named, str) and _is_served(named, models) and alias not in models and alias.strip():
            made[alias] = named
            report.mapped((*path, "model") if isinstance(goal, dict) else path, f"aliases.{alias}")
            if isinstance(goal, dict):
                report.left_out(
                    path, "no name is hidden", "see `gateway.keys.<name>.models` for the keys that may ask for it"
                )
        else:
            report.left_out(path, "it needs a name of its own, and a model that was imported", "write it by hand")
    return made


def _is_served(name: str, models: Iterable[str]) -> bool:
    """True for the name of a model, and for a name that a wildcard takes."""
    return any(name == model or ("*" in model and text_of(model, name) is not None) for model in models)


class _Ladder:
    """The tiers of one model while they are put together."""

    def __init__(self, name: str, deployments: Iterable[Deployment]) -> None:
        self.tiers: list[dict[str, Any]] = []
        self._asked: set[str] = set()
        self.added: set[str] = {name}
        for number, (_, same) in enumerate(
            groupby(sorted(deployments, key=lambda one: one.order), lambda one: one.order)
        ):
            self.add(name if number == 0 else f"{name} order {number + 1}", same)

    def add(self, name: str, deployments: Iterable[Deployment]) -> bool:
        """Add a tier of those not yet in another; whether there were any."""
        new = [one.target for one in deployments if one.target["target"] not in self._asked]
        new = list({target["target"]: target for target in new}.values())
        self._asked |= {target["target"] for target in new}
        if new:
            self.tiers.append({"name": name, "targets": new})
        return bool(new)


def _add(
    made: dict[str, _Ladder],
    wanted: list[str],
    fallback: object,
    path: Path,
    report: ImportReport,
    groups: Groups,
    changed: str,
) -> None:
    """Add the tier of a fallback to the ladders of `wanted` (their tagged variants, too)."""
    known = fallback if isinstance(fallback, str) and fallback in groups else None
    ladders = {name: made[name] for name in made for group in wanted if name == group or name.startswith(f"{group}:")}
    if known is None or not ladders:
        report.left_out(path, "one of the two models was not imported", "add a tier to the model by hand")
        return
    added = False
    for ladder in ladders.values():
        if known not in ladder.added:
            ladder.added.add(known)
            added = ladder.add(known, groups[known]) or added
    report.mapped(
        path, f"models.{'*' if len(ladders) > 1 else next(iter(ladders))}.tiers", changed if added else _ALIKE
    )


def _pairs(listed: object, path: Path, report: ImportReport) -> Iterator[tuple[str, object, Path]]:
    """Each fallback of `[{group: [fallback, ...]}, ...]`, or of one mapping; a fallback may be `{model: name}`."""
    members = [((*path, number), member) for number, member in enumerate(listed if isinstance(listed, list) else [])]
    for here, member in members or [(path, listed)]:
        for group, fallbacks in member.items() if isinstance(member, dict) else ():
            if not isinstance(fallbacks, list):
                report.left_out((*here, group), "a list of model names is needed", "write it as a list")
                continue
            for place, fallback in enumerate(fallbacks):
                where = (*here, group, place)
                if isinstance(fallback, dict) and "model" in fallback:
                    yield group, fallback["model"], (*where, "model")
                    report.left_out(where, *_OVERRIDES)
                else:
                    yield group, fallback, where


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
    report = ImportReport(document)
    reader = Deployments(report, data.get("credential_list"))
    deployments = reader.read(data.get("model_list"))
    groups: Groups = {}
    for deployment in deployments:
        groups.setdefault(deployment.group, []).append(deployment)
    groups = by_tags(groups, data, report)
    models = models_of(groups, data, report)
    filters = any(
        _names(data, section, "content_policy_fallbacks") for section in ("router_settings", "litellm_settings")
    )
    weighted = any(deployment.weighted for deployment in deployments)
    sections = Settings(data, report).read(models, weighted=weighted, filters=filters)
    aliases = aliases_of(models, data, report)
    entries = report.entries()
    if not models:
        why = entries[0].note if entries else "model_list is empty"
        raise ConfigurationError("model_list", None, f"at least one deployment that can be imported is needed ({why})")
    named = {"aliases": aliases} if aliases else {}
    return Imported({"version": 1, "providers": reader.providers, "models": models, **named, **sections}, entries)


def _names(data: dict[str, Any], section: str, key: str) -> bool:
    given = data.get(section)
    return isinstance(given, dict) and bool(given.get(key))
