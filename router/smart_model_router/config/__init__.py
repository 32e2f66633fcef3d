"""Configuration: a frozen tree, read once from a mapping or a YAML file, that refuses nonsense by name."""

from __future__ import annotations

from smart_model_router.config.research_sections import DeepResearchConfig, EvaluationConfig, ResearchConfig
from smart_model_router.config.retired import ConfigurationWarning
from smart_model_router.config.rules import DEFAULT_LADDER
from smart_model_router.config.secret import Secret
from smart_model_router.config.sections import GatewayConfig, GatewayKeyConfig, SearchConfig
from smart_model_router.config.tree import (
    DefaultsConfig,
    LastResortConfig,
    LocalConfig,
    ModelConfig,
    PriceConfig,
    ProviderConfig,
    ResilienceConfig,
    RouterConfig,
    StoreConfig,
    TargetConfig,
    TierConfig,
    expanded,
)

__all__ = [
    "DEFAULT_LADDER",
    "ConfigurationWarning",
    "DeepResearchConfig",
    "DefaultsConfig",
    "EvaluationConfig",
    "GatewayConfig",
    "GatewayKeyConfig",
    "LastResortConfig",
    "LocalConfig",
    "ModelConfig",
    "PriceConfig",
    "ProviderConfig",
    "ResearchConfig",
    "ResilienceConfig",
    "RouterConfig",
    "SearchConfig",
    "Secret",
    "StoreConfig",
    "TargetConfig",
    "TierConfig",
    "expanded",
]
