"""The models that requests made of wildcards: a bounded number, the least recently used are dropped."""

from __future__ import annotations

from collections import Counter, OrderedDict
from weakref import finalize

from smart_model_router.core.tiers import ModelRoute

MOST = 1000
"""Models kept at once."""


class LiveModels:
    """By name. A dropped model stays usable for the requests that hold it; its targets are free when all have ended.

    Not thread-safe: it belongs to the router's loop.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._model_routes: OrderedDict[str, ModelRoute] = OrderedDict()
        self._users: Counter[str] = Counter()
        """By target, how many models that still exist have it."""
        self._released: list[tuple[str, ...]] = []
        """Targets of models that no longer exist. Collected later: a model may end in the middle of anything."""

    @property
    def names(self) -> tuple[str, ...]:
        """The models kept, the least recently used first."""
        return tuple(self._model_routes)

    def get(self, name: str) -> ModelRoute | None:
        """The model of this name, which counts as used now."""
        model_route = self._model_routes.get(name)
        if model_route is not None:
            self._model_routes.move_to_end(name)
        return model_route

    def add(self, name: str, model_route: ModelRoute, made: tuple[str, ...]) -> None:
        """Keep a new model. `made` are the ids of the targets that it has by its wildcard."""
        self._model_routes[name] = model_route
        self._users.update(made)
        finalize(model_route, self._released.append, made).atexit = False
        while len(self._model_routes) > self._most:
            self._model_routes.popitem(last=False)

    def uses(self, target: str) -> bool:
        """True while a model that still exists has the target."""
        return target in self._users

    def free_targets(self) -> list[str]:
        """The targets that no model has any more, each told once."""
        free: list[str] = []
        while self._released:
            for target in self._released.pop():
                self._users[target] -= 1
                if self._users[target] == 0:
                    del self._users[target]
                    free.append(target)
        return free
