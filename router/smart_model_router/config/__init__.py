"""Configuration: a frozen tree, read once from a mapping or a YAML file, that refuses nonsense by name."""

from __future__ import annotations

from smart_model_router.config.gateway import GatewayConfig, GatewayKeyConfig
from smart_model_router.config.rules import DEFAULT_LADDER
from smart_model_router.config.secret import Secret
from smart_model_router.config.tree import (
    LocalConfig,
    ModelConfig,
    ProviderConfig,
    ResilienceConfig,
    RouterConfig,
    StoreConfig,
    TargetConfig,
    TierConfig,
)

__all__ = [
    "DEFAULT_LADDER",
    "GatewayConfig",
    "GatewayKeyConfig",
    "LocalConfig",
    "ModelConfig",
    "ProviderConfig",
    "ResilienceConfig",
    "RouterConfig",
    "Secret",
    "StoreConfig",
    "TargetConfig",
    "TierConfig",
]
