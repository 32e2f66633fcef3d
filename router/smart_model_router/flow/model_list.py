"""The models that callers may name, with their context windows: those configured, and what providers list."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_model_router.config import RouterConfig
from smart_model_router.config.aliases import text_of
from smart_model_router.core.tiers import ModelRoute
from smart_model_router.domain.errors import ModelNotFound
from smart_model_router.domain.outcome import Failure
from smart_model_router.domain.ports import ListedModel, SupportsModels

if TYPE_CHECKING:
    from smart_model_router.flow.state import RouterState

FRESH_SECONDS = 300.0
"""A listing by a provider is reused for so long."""
_MOST_NAMES = 10_000


@dataclass(frozen=True, slots=True)
class NamedModel:
    """A name that callers may use. `context_tokens` is the longest prompt it takes, None where that is unknown."""

    name: str
    context_tokens: int | None


class ModelList:
    """Lists the model names of a router, and caches the listings of its providers.

    Not thread-safe: it belongs to the router's loop.
    """

    def __init__(self, config: RouterConfig, state: RouterState, model_routes: Mapping[str, ModelRoute]) -> None:
        self._config = config
        self._state = state
        self._model_routes = model_routes
        self._listed: dict[str, tuple[float, Sequence[ListedModel]]] = {}
        self._asking: dict[str, asyncio.Task[Sequence[ListedModel]]] = {}

    async def names(self) -> tuple[NamedModel, ...]:
        """Return every plain name and alias, then the models that the providers of wildcards list: at most 10,000.

        For a provider that does not answer, its last listing counts.
        """
        plain = [name for name in self._config.names if "*" not in name]
        # The price list has the windows: importing it takes a tenth of a second.
        windows = await asyncio.to_thread(lambda: [self._window(name) for name in plain])
        found = dict(zip(plain, windows, strict=True))
        mentions = self._config.wildcard_mentions
        providers = tuple(dict.fromkeys(mention.provider for _, mention in mentions))
        lists = dict(zip(providers, await asyncio.gather(*map(self._list_of, providers)), strict=True))
        for wildcard, mention in mentions:
            for listed in lists[mention.provider]:
                text = text_of(mention.model, listed.id)
                name = None if text is None else wildcard.replace("*", text)
                if name is not None and self._leads_to(name, wildcard) and len(found) < _MOST_NAMES:
                    found.setdefault(name, listed.context_tokens)
        return tuple(NamedModel(name, window) for name, window in found.items())

    async def named(self, name: str) -> NamedModel:
        """Return one model by its name. Raises ModelNotFound."""
        self._config.locate(name)
        known = {model.name: model for model in await self.names()}
        return known.get(name) or NamedModel(name, None)

    def _window(self, name: str) -> int | None:
        """The least known window of the targets in the first tier: each of them takes a prompt of this size."""
        try:
            configured, _ = self._config.locate(name)
        except ModelNotFound:
            return None
        model_route = self._model_routes.get(configured)  # an alias may lead to a wildcard
        if model_route is None:
            return None
        windows = [facts.context for facts in model_route.tiers[0].targets if facts.context]
        return min(windows, default=None)

    def _leads_to(self, name: str, wildcard: str) -> bool:
        """True unless the name is taken: by a model, an alias or a longer pattern."""
        try:
            return self._config.locate(name)[0] == wildcard
        except ModelNotFound:
            return False

    async def _list_of(self, name: str) -> Sequence[ListedModel]:
        at, listed = self._listed.get(name, (-FRESH_SECONDS, ()))
        if self._state.clock.now() - at < FRESH_SECONDS:
            return listed
        if name not in self._asking:
            task = self._asking[name] = asyncio.get_running_loop().create_task(self._ask(name))
            task.add_done_callback(lambda _: self._asking.pop(name, None))
        return await asyncio.shield(self._asking[name])

    async def _ask(self, name: str) -> Sequence[ListedModel]:
        provider = self._state.providers[name]
        told = await provider.models() if isinstance(provider, SupportsModels) else ()
        listed = self._listed.get(name, (0.0, ()))[1] if isinstance(told, Failure) else told
        self._listed[name] = (self._state.clock.now(), listed)
        return listed
