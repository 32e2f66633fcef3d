"""LiteLLM's model groups, fallbacks, tags and aliases: public names, and tiers in the order in which they are asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from smart_model_router.cli.importing import litellm_values as values
from smart_model_router.cli.importing.import_report import ImportReport
from smart_model_router.cli.importing.litellm_deployments import Deployment
from smart_model_router.config.aliases import text_of
from smart_model_router.config.tree_path import Path

_CHANGED = {
    "fallbacks": "",
    "context_window_fallbacks": "asked after any failure; after too long a prompt, a target with a larger context",
    "content_policy_fallbacks": "asked after any failure; after a content filter, too",
}
_OVERRIDES = ("a fallback is sent the request as it came", "give the target its `defaults`")
_ALIKE = "targets that were asked before are not asked again"
_SECTIONS = ("router_settings", "litellm_settings")

Groups = dict[str, list[Deployment]]


def models_of(groups: Groups, data: dict[str, Any], account: ImportReport) -> dict[str, dict[str, Any]]:
    """The section `models`: each group with its tiers, then those of its fallbacks."""
    made = {name: _Ladder(name, deployments) for name, deployments in groups.items()}
    settings = {section: given for section in _SECTIONS if isinstance(given := data.get(section), dict)}
    for section, given in settings.items():
        for kind, changed in _CHANGED.items():
            for group, fallback, path in _pairs(given.get(kind), (section, kind), account):
                _add(made, [group], fallback, path, account, groups, changed)
    for section, given in settings.items():
        listed = given.get("default_fallbacks")
        for number, fallback in enumerate(listed if isinstance(listed, list) else []):
            path = (section, "default_fallbacks", number)
            _add(made, list(made), fallback, path, account, groups, "also after the fallbacks a model has of its own")
    return {name: {"tiers": ladder.tiers, "last_resort": []} for name, ladder in made.items()}


def by_tags(groups: Groups, data: dict[str, Any], account: ImportReport) -> Groups:
    """The groups, those with tags split where tags decide: `name` for requests without any, `name:tag` for the rest."""
    settings = data.get("router_settings")
    decide = isinstance(settings, dict) and values.switch(settings.get("enable_tag_filtering"))
    if decide:
        account.mapped(("router_settings", "enable_tag_filtering"), "models.<name>:<tag>", "ask for `name:tag`")
    split: Groups = {}
    for name, deployments in groups.items():
        plain = [one for one in deployments if "default" in one.tags] or [one for one in deployments if not one.tags]
        split[name] = (plain if decide else []) or deployments
        for one in deployments:
            path = (*one.path, "litellm_params", "tags")
            for number, tag in enumerate(one.tags):
                if not decide:
                    why = "tags decide nothing without enable_tag_filtering, and spend is not kept by tag"
                    account.left_out((*path, number), why, "give each key of `gateway.keys` its usd_per_day")
                elif tag == "default" or "*" in tag:
                    account.mapped((*path, number), f"models.{name}", "requests without tags")
                else:
                    split.setdefault(f"{name}:{tag}", []).append(one)
                    account.mapped((*path, number), f"models.{name}:{tag}", f"ask for {name}:{tag}")
    return split


def aliases_of(models: dict[str, Any], data: dict[str, Any], account: ImportReport) -> dict[str, str]:
    """The section `aliases`, from router_settings.model_group_alias."""
    settings = data.get("router_settings")
    given = settings.get("model_group_alias") if isinstance(settings, dict) else None
    made: dict[str, str] = {}
    for alias, goal in given.items() if isinstance(given, dict) else ():
        path: Path = ("router_settings", "model_group_alias", alias)
        named = goal.get("model") if isinstance(goal, dict) else goal
        if isinstance(named, str) and _is_served(named, models) and alias not in models and alias.strip():
            made[alias] = named
            account.mapped((*path, "model") if isinstance(goal, dict) else path, f"aliases.{alias}")
            if isinstance(goal, dict):
                account.left_out(
                    path, "no name is hidden", "see `gateway.keys.<name>.models` for the keys that may ask for it"
                )
        else:
            account.left_out(path, "it needs a name of its own, and a model that was imported", "write it by hand")
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
    account: ImportReport,
    groups: Groups,
    changed: str,
) -> None:
    """Add the tier of a fallback to the ladders of `wanted` (their tagged variants, too)."""
    known = fallback if isinstance(fallback, str) and fallback in groups else None
    ladders = {name: made[name] for name in made for group in wanted if name == group or name.startswith(f"{group}:")}
    if known is None or not ladders:
        account.left_out(path, "one of the two models was not imported", "add a tier to the model by hand")
        return
    added = False
    for ladder in ladders.values():
        if known not in ladder.added:
            ladder.added.add(known)
            added = ladder.add(known, groups[known]) or added
    account.mapped(
        path, f"models.{'*' if len(ladders) > 1 else next(iter(ladders))}.tiers", changed if added else _ALIKE
    )


def _pairs(listed: object, path: Path, account: ImportReport) -> Iterator[tuple[str, object, Path]]:
    """Each fallback of `[{group: [fallback, ...]}, ...]`, or of one mapping; a fallback may be `{model: name}`."""
    members = [((*path, number), member) for number, member in enumerate(listed if isinstance(listed, list) else [])]
    for here, member in members or [(path, listed)]:
        for group, fallbacks in member.items() if isinstance(member, dict) else ():
            if not isinstance(fallbacks, list):
                account.left_out((*here, group), "a list of model names is needed", "write it as a list")
                continue
            for place, fallback in enumerate(fallbacks):
                where = (*here, group, place)
                if isinstance(fallback, dict) and "model" in fallback:
                    yield group, fallback["model"], (*where, "model")
                    account.left_out(where, *_OVERRIDES)
                else:
                    yield group, fallback, where
