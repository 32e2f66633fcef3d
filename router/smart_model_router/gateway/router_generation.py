"""A router, its client keys and the part of the fleet each key may see, made from one configuration."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from smart_model_router.config import RouterConfig
from smart_model_router.config.aliases import resolve, text_of
from smart_model_router.config.rules import mentions_of
from smart_model_router.core.passthrough_rules import by_path
from smart_model_router.gateway.client_keys import KeyRing
from smart_model_router.observability.registry import Sample
from smart_model_router.router import SmartModelRouter

_CREDENTIAL = re.compile(r"#\d+$")
_WORSE = "not ok; a key with `admin: true` is told why"


class Visible:
    """The part of the fleet that a key may see whose models are `may_use`; `everything` is an admin's."""

    def __init__(self, config: RouterConfig, may_use: Callable[[str], bool], *, everything: bool = False) -> None:
        self.everything = everything
        self._may_use = may_use
        allowed = {
            model
            for name in config.names
            if may_use(name) and (model := resolve(name, config.models, config.aliases)) is not None
        }
        self._models = allowed | {name for name in config.models if may_use(name)}
        self._mentions = [(path[1], mention) for path, mention in mentions_of(config.models)]
        told = [(model in self._models, mention.provider, mention.target) for model, mention in self._mentions]
        for path, (route, providers) in by_path(config.gateway.passthrough.routes).items():
            told += [(may_use(route), name.partition("/")[0], f"{name}{path}") for name in providers]
        self._targets = {target for may, _, target in told if may}
        self._providers = {provider for may, provider, _ in told if may} - {one for may, one, _ in told if not may}

    def model(self, name: str) -> bool:
        """Return whether a model of the configuration, or one that a wildcard has made, may be seen."""
        return self.everything or name in self._models or self._may_use(name)

    def target(self, name: str) -> bool:
        """Return whether a target may be seen, of whichever credential."""
        if self.everything:
            return True
        plain = _CREDENTIAL.sub("", name)
        return plain in self._targets or any(
            self._may_use(str(model).replace("*", text))
            for model, mention in self._mentions
            if "*" in mention.target and (text := text_of(mention.target, plain)) is not None
        )

    def provider(self, name: str) -> bool:
        """Return whether the figures of a provider may be seen: none of its targets is hidden."""
        return self.everything or name in self._providers

    def state(self, problem: str | None) -> str:
        """A part of the gateway itself: that it has a problem, and to an admin which."""
        return "ok" if not problem else problem if self.everything else _WORSE

    def samples(self, samples: Iterable[Sample]) -> list[Sample]:
        """The samples whose labels may all be seen, and that have one."""
        return [sample for sample in samples if self._sample(dict(sample.labels))]

    def figures(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """The statistics of what may be seen; an admin's are whole."""
        if self.everything:
            return dict(told)
        seen = {"targets": self.target, "models": self.model, "providers": self.provider}
        parts = {level: {name: one for name, one in told[level].items() if may(name)} for level, may in seen.items()}
        return {"scope": told["scope"], **parts}

    def _sample(self, labels: Mapping[str, str]) -> bool:
        if self.everything:
            return True
        seen = {"target": self._target_or_provider, "model": self.model, "provider": self.provider}
        known = [may(labels[label]) for label, may in seen.items() if label in labels]
        return bool(known) and all(known)

    def _target_or_provider(self, name: str) -> bool:
        return self.target(name) if "/" in name else self.provider(name)


class RouterGeneration:
    """A router with its keys, and how many requests are inside."""

    def __init__(self, config: RouterConfig, router: SmartModelRouter) -> None:
        self.config = config
        self.router = router
        self.ring = KeyRing(config.gateway.keys, origins=config.gateway.cors)
        self.ring.share(router.client_leases)
        self.everything = Visible(config, bool, everything=True)
        self.in_flight = 0
        self._retired = False
        self._traces = config.telemetry.traces.enabled

    def continue_from(self, before: RouterGeneration) -> None:
        """Take the place of another one, before the first request enters."""
        self.router.continue_from(before.router)
        self.ring.continue_from(before.ring)
        self.ring.share(self.router.client_leases)

    def visible(self, headers: Mapping[str, str]) -> Visible:
        """The part of the fleet that the key in the headers may see. Raises ProblemError."""
        api_client = self.ring.api_client(headers)
        return Visible(self.config, api_client.may_use, everything=api_client.admin)

    def traced(self, headers: Mapping[str, str]) -> AbstractContextManager[object]:
        """Continue the trace of a client that sent one, as long as what is returned is open."""
        if not self._traces:
            return _UNTRACED
        from smart_model_router.observability.spans import continued  # noqa: PLC0415 - an extra

        return continued(headers)

    def enter(self) -> None:
        """A request begins."""
        self.in_flight += 1

    def leave(self) -> bool:
        """A request ended, however it did. True for the last one out of a retired generation: it closes it."""
        self.in_flight -= 1
        return self._retired and self.in_flight == 0

    async def close(self) -> None:
        """True when no request is inside and none will come."""
        await self.router.aclose()

    async def retire(self) -> None:
        """Admit no new request; close as soon as none is inside."""
        self._retired = True
        if self.in_flight == 0:
            await self.close()


_UNTRACED = nullcontext()
