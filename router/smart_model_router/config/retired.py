"""Keys of earlier versions: they are read without effect, and a warning names the replacement."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from smart_model_router.config.sections import GatewayConfig
from smart_model_router.core.breaker import BreakerConfig
from smart_model_router.core.capacity import AdaptiveConfig
from smart_model_router.domain.tree_path import Path, spelled

if TYPE_CHECKING:
    from smart_model_router.domain.yaml_document import Document

_BREAKER = "a sequential test opens the breaker: see `failing_share`, `odds`, `odds_per_call` of `resilience.breaker`"
_ADAPTIVE = "the in-flight limit is learned by a likelihood ratio: of `resilience.adaptive` only `enabled` is left"

RETIRED: Mapping[Any, Mapping[str, str]] = {
    BreakerConfig: dict.fromkeys(("window", "window_buckets", "failure_ratio", "minimum_calls"), _BREAKER),
    GatewayConfig: {"real_model": "`routing.model_name: served` names the model of the target that served"},
    AdaptiveConfig: dict.fromkeys(("minimum", "tolerance", "decrease"), _ADAPTIVE),
}
"""By section: each key that is gone, with its replacement."""


class ConfigurationWarning(FutureWarning):
    """The configuration has a key without effect. `key` is its path, `text` names the replacement."""

    def __init__(self, key: str, text: str) -> None:
        super().__init__(f"{key}: {text}")
        self.key = key
        self.text = text


def warn(retired: Mapping[Path, str], document: Document | None = None, name: str = "", *, stacklevel: int = 3) -> None:
    """Warn of each key in `retired`; with a `document`, of its line in the file called `name`.

    `stacklevel` is that of `warnings.warn`: 3 is the caller of the caller.
    """
    for path, replacement in retired.items():
        key = spelled(path)
        line = None if document is None else document.line_of(key)
        place = "" if document is None else f" ({name}:{line})" if line else f" ({name})"
        warnings.warn(ConfigurationWarning(key, f"no longer used; {replacement}{place}"), stacklevel=stacklevel)
