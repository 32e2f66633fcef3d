"""LiteLLM's router_settings, litellm_settings and general_settings: numbers that have a counterpart."""

from __future__ import annotations

from typing import Any

from smart_model_router.cli.importing import litellm_names as names
from smart_model_router.cli.importing import litellm_values as values
from smart_model_router.cli.importing.import_report import ImportReport
from smart_model_router.config import hints
from smart_model_router.config.tree import RouterConfig
from smart_model_router.config.tree_path import Path, spelled

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
_CALLBACKS = ("callbacks", "success_callback", "failure_callback", "service_callback")


class Settings:
    """Puts together the sections beside providers and models."""

    def __init__(self, data: dict[str, Any], account: ImportReport) -> None:
        self._data = data
        self._account = account
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
            self._account.mapped(("general_settings", "completion_model"), "routing.default_model", "for unknown names")
        for key in _CALLBACKS:
            self._callbacks(("litellm_settings", key))
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
            self._account.left_out(theirs, f"another setting is {spelled(ours)} already", "nothing to do")
            return
        hint = hints.at(RouterConfig, ours)
        found = values.figure(raw)
        value = None if found is None else values.fitting(str(found * times + more), hint)
        if value is None:
            self._account.left_out(theirs, f"{hint.describe()} is needed", f"see `{spelled(ours)}`")
            return
        self._set(ours, value)
        self._account.mapped(theirs, spelled(ours), changed)
        if ours[-1] == "attempt" and value > 600:  # the default of the whole request
            self._set(("resilience", "timeouts", "total"), value)

    def _strategy(self, weighted: bool) -> None:
        path: Path = ("router_settings", "routing_strategy")
        raw = self._given(path)
        if isinstance(raw, str) and raw in names.STRATEGIES:
            strategy, changed = names.STRATEGIES[raw]
            self._set(("routing", "strategy"), strategy)
            self._account.mapped(path, "routing.strategy", changed)
            return
        if raw is not None:
            self._account.left_out(path, "there is no such strategy", "see `routing.strategy`")
        if weighted:  # LiteLLM's own default goes by weight
            self._set(("routing", "strategy"), "weighted")

    def _master_key(self) -> None:
        path: Path = ("general_settings", "master_key")
        raw = self._given(path)
        if isinstance(raw, str) and raw.strip():
            self._set(("gateway", "keys", "master"), {"key": values.text(raw), "admin": True})
            self._account.mapped(path, "gateway.keys.master")

    def _callbacks(self, path: Path) -> None:
        raw = self._given(path)
        several = isinstance(raw, list)
        for number, name in enumerate(raw if isinstance(raw, list) else [raw]):
            here = (*path, number) if several else path
            if isinstance(name, str) and name in names.CALLBACKS:
                self._set(names.CALLBACKS[name], True)
                self._account.mapped(here, ".".join(names.CALLBACKS[name]))
            elif name is not None:
                self._account.left_out(here, *names.NO_CALLBACK)

    def _rest(self) -> None:
        for section in ("litellm_settings", "router_settings", "general_settings"):
            given = self._given((section,))
            for key, value in given.items() if isinstance(given, dict) else ():
                always = names.ALWAYS[section].get(key)
                if always is not None and values.switch(value):
                    self._account.mapped((section, key), "(always so)", always)
                elif always is not None:
                    self._account.left_out((section, key), f"it is always so: {always}", "nothing to do")
                elif key in names.LEFT_OUT[section]:
                    self._account.left_out((section, key), *names.LEFT_OUT[section][key])
        for section, why in names.SECTIONS.items():
            self._account.left_out((section,), *why)
