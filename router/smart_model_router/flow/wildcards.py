"""Models of wildcards: made when a request first names one, forgotten when a thousand others were used since."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from smart_model_router.config import ModelConfig, RouterConfig, expanded
from smart_model_router.config.aliases import text_of
from smart_model_router.core.gate import Gate
from smart_model_router.core.live_models import LiveModels
from smart_model_router.core.tiers import ModelRoute
from smart_model_router.domain.errors import ModelNotFound
from smart_model_router.domain.events import TargetsEvicted
from smart_model_router.flow.state import RouterState

_MARK = re.compile(r"@[0-9a-f]{8}$")


class Workshop(Protocol):
    """Makes the parts of a model (assembly.py)."""

    @property
    def model_routes(self) -> Mapping[str, ModelRoute]:
        """The models that are written without a `*`."""
        ...

    def extend(self, configured: str, model: ModelConfig) -> tuple[ModelRoute, tuple[Gate, ...]]:
        """The route of `model`, which the wildcard `configured` stands for, and the gates that are new."""
        ...

    def drop(self, target: str) -> None:
        """Forget how a target that `extend` made is configured."""
        ...

    def is_written(self, target: str) -> bool:
        """True for a target that the configuration names without a `*`."""
        ...


class WildcardRoutes(dict[str, ModelRoute]):
    """Every model by the names callers use; those of wildcards are made when they are asked for.

    `routes[name]` raises ModelNotFound. Not thread-safe: it belongs to the router's loop.
    """

    def __init__(self, config: RouterConfig, workshop: Workshop, state: RouterState) -> None:
        super().__init__(workshop.model_routes)
        self._config = config
        self._workshop = workshop
        self._state = state
        self._live = LiveModels()
        self._busy: set[str] = set()
        """Targets to forget as soon as their calls have ended."""

    def __missing__(self, name: str) -> ModelRoute:
        live = self._live.get(name)
        if live is not None:
            return live
        configured, known_by = self._config.locate(name)
        if "*" not in configured:
            return self._workshop.model_routes[configured]
        return self._live.get(known_by) or self._begin(configured, known_by)

    @property
    def names(self) -> tuple[str, ...]:
        """The models that were made of wildcards, the least recently used first."""
        return self._live.names

    def continue_from(self, names: Iterable[str]) -> None:
        """Make the models that a router of before had made of its wildcards, as far as they are known here."""
        for name in names:
            self._revive(name)

    def revive(self, targets: Iterable[str], may_use: Callable[[str], bool] = lambda _: True) -> None:
        """Make the models of targets that were used before this process, of wildcards whose names a caller may use.

        A store writes the mark of the key behind the target: `openai/gpt-x@0a1b2c3d`.
        """
        for target in targets:
            for pattern, mention in self._config.wildcard_mentions:
                text = text_of(mention.target, _MARK.sub("", target))
                if text is not None and may_use(name := pattern.replace("*", text)):
                    self._revive(name)

    def _revive(self, name: str) -> None:
        try:
            self[name]
        except ModelNotFound:
            return

    def _begin(self, configured: str, name: str) -> ModelRoute:
        self._sweep()
        model_route, gates = self._workshop.extend(configured, expanded(self._config.models[configured], name))
        everyone = {facts.id: facts.target for tier in model_route.tiers for facts in tier.targets}
        for gate in gates:
            self._state.book.add(everyone[gate.id])
            self._state.fleet.add(gate)
            self._state.words.bind(gate)
            if self._state.coordinator is not None:
                self._state.coordinator.join(gate.id)
        self._live.add(name, model_route, tuple(one for one in everyone if not self._workshop.is_written(one)))
        return model_route

    def _sweep(self) -> None:
        """Forget the targets that no model has any more. One with calls under way, or isolated, is kept for now."""
        state, gone = self._state, set[str]()
        self._busy.update(self._live.free_targets())
        for target in tuple(self._busy):
            gate = state.fleet.gates.get(target)
            if self._live.uses(target) or (gate is not None and (gate.in_flight or gate.isolated)):
                continue
            self._busy.discard(target)
            state.fleet.remove(target)
            state.book.forget(target)
            if state.coordinator is not None:
                state.coordinator.leave(target)
            self._workshop.drop(target)
            gone.add(target)
        if gone:
            state.emit(TargetsEvicted(at=state.clock.now(), names=frozenset(gone)))
