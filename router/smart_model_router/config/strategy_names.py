"""Routing strategies by name: built in, `package.module:attribute`, or an entry point of an installed package."""

from __future__ import annotations

from smart_model_router.core.selection import STRATEGIES, Selector
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.names import did_you_mean, imported, reference_of

GROUP = "smart_model_router.strategies"
"""The group of entry points."""


def strategy_named(name: str, key: str) -> Selector:
    """Return the strategy that a configuration names at `key`.

    An attribute is a Selector, or a class that makes one without arguments. Raises ConfigurationError with the key,
    the name and the reason.
    """
    if name in STRATEGIES:
        return STRATEGIES[name]
    reference = reference_of(name, GROUP)
    if reference is None:
        raise ConfigurationError(key, name, f"a strategy is needed; {did_you_mean(name, STRATEGIES)}")
    try:
        found = imported(reference)
        made = found() if isinstance(found, type) else found
    except Exception as error:  # foreign code: whatever it raises is the reason
        reason = f"a strategy that can be imported is needed ({type(error).__name__}: {error})"
        raise ConfigurationError(key, name, reason) from error
    if not isinstance(made, Selector) or not callable(made.order):
        raise ConfigurationError(key, name, "a Selector is needed: an object with `order` and `redistributes`")
    return made
