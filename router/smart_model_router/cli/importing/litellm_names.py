"""LiteLLM's names (1.9x, its documentation and types/router.py), and ours or why there is none: tables, no code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

Why = tuple[str, str]
"""The reason why a setting has no counterpart, and the advice what to do instead."""


@dataclass(frozen=True, slots=True)
class Prefix:
    """The meaning of `prefix/model`: our kind, the address where we have no row for it, and the variable LiteLLM reads.

    `own_variable`: our kind looks for its key under another name, so the variable has to be written down.
    """

    kind: str
    base_url: str | None = None
    variable: str = ""
    own_variable: bool = False
    suffix: str = ""  # of the address: LiteLLM adds it itself


def _compatible(base_url: str, variable: str) -> Prefix:
    return Prefix("openai_compatible", base_url, variable, own_variable=True)


PREFIXES: Mapping[str, Prefix] = MappingProxyType(
    {
        "openai": Prefix("openai", variable="OPENAI_API_KEY"),
        "anthropic": Prefix("anthropic", variable="ANTHROPIC_API_KEY", suffix="/v1"),
        "gemini": Prefix("gemini", variable="GEMINI_API_KEY"),
        "azure": Prefix("azure", variable="AZURE_API_KEY", own_variable=True),
        "groq": Prefix("groq", variable="GROQ_API_KEY"),
        "mistral": Prefix("mistral", variable="MISTRAL_API_KEY"),
        "deepseek": Prefix("deepseek", variable="DEEPSEEK_API_KEY"),
        "xai": Prefix("xai", variable="XAI_API_KEY"),
        "cerebras": Prefix("cerebras", variable="CEREBRAS_API_KEY"),
        "together_ai": Prefix("together", variable="TOGETHERAI_API_KEY", own_variable=True),
        "openrouter": Prefix("openrouter", variable="OPENROUTER_API_KEY"),
        "github": Prefix("github", variable="GITHUB_API_KEY", own_variable=True),
        "ollama": Prefix("ollama", suffix="/v1"),
        "ollama_chat": Prefix("ollama", suffix="/v1"),
        "hosted_vllm": Prefix("vllm"),
        "lm_studio": Prefix("openai_compatible"),
        "llamafile": Prefix("openai_compatible"),
        "custom_openai": Prefix("openai_compatible"),
        "litellm_proxy": Prefix("openai_compatible"),
        "perplexity": _compatible("https://api.perplexity.ai", "PERPLEXITYAI_API_KEY"),
        "fireworks_ai": _compatible("https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
        "deepinfra": _compatible("https://api.deepinfra.com/v1/openai", "DEEPINFRA_API_KEY"),
        "nvidia_nim": _compatible("https://integrate.api.nvidia.com/v1", "NVIDIA_NIM_API_KEY"),
        "sambanova": _compatible("https://api.sambanova.ai/v1", "SAMBANOVA_API_KEY"),
    }
)

BARE: Mapping[str, str] = MappingProxyType(
    {"gpt-": "openai", "chatgpt-": "openai", "o1": "openai", "o3": "openai", "o4": "openai", "claude-": "anthropic"}
    | {"text-embedding-": "openai"}
)
"""The beginnings of names without a prefix, with the prefix that LiteLLM assumes for them."""

STRATEGIES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "simple-shuffle": ("weighted", "by `weight` alone; rpm and tpm are limits and no weights"),
        "least-busy": ("power_of_two", "the less busy of two drawn ones"),
        "latency-based-routing": ("fastest", ""),
        "cost-based-routing": ("cheapest", ""),
        "usage-based-routing": ("health", "a target near its limit is passed over; usage alone orders nothing"),
        "usage-based-routing-v2": ("health", "a target near its limit is passed over; usage alone orders nothing"),
    }
)

TARGET_KEYS: Mapping[str, str] = MappingProxyType({key: key for key in ("rpm", "tpm", "timeout", "weight")})
"""litellm_params -> TargetConfig."""
INFO_KEYS: Mapping[str, str] = MappingProxyType(
    {
        "max_input_tokens": "context_tokens",
        "supports_function_calling": "tools",
        "supports_vision": "images",
        "supports_pdf_input": "pdf",
        "supports_audio_input": "audio",
        "supports_response_schema": "schema",
        "supports_reasoning": "reasoning",
    }
)
"""model_info -> TargetConfig."""
PRICE_KEYS: Mapping[str, str] = MappingProxyType(
    {
        "input_cost_per_token": "input",
        "cache_read_input_token_cost": "cached",
        "output_cost_per_token": "output",
    }
)
"""litellm_params and model_info -> PriceConfig, there per million tokens."""
PROVIDER_KEYS: Mapping[str, str] = MappingProxyType(
    {"api_version": "api_version", "region_name": "region", "max_parallel_requests": "bulkhead"}
)
"""litellm_params -> ProviderConfig."""

ALWAYS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "litellm_params": {"use_in_pass_through": "every endpoint of the gateway is routed"},
        "litellm_settings": {
            "drop_params": "what a dialect cannot say is dropped and reported; what changes the meaning is refused",
            "modify_params": "what a dialect needs is added",
            "turn_off_message_logging": "prompts are never logged",
            "redact_user_api_key_info": "keys are never logged",
        },
        "router_settings": {
            "enable_pre_call_checks": "a prompt longer than a target's context_tokens is not sent there",
            "enable_weighted_failover": "the other targets of a tier are asked before the next tier",
        },
        "general_settings": {"cancel_on_disconnect": "a client that hangs up stops the provider's call"},
    }
)
"""Behaviour that the router always has; `false` is left out instead."""

_SDK = "register an SDK client in Python (docs/how-to/own-provider.md)"
_PRICES = ("prices come from the price list", "nothing to do for known models; else see `price`")
_HALF_A_PRICE = ("a price is one of prompts and one of answers", "give the target its `price`")
_BODY = ("requests get no such parameter", "let the caller send it")
_SPEND = ("spend per user, team and provider is not kept", "give each key of `gateway.keys` its usd_per_day")
_REDIS = (
    "the address of Redis is not known",
    "name the server in `store.shared_url` (docs/how-to/machines.md)",
)
_CACHE = ("answers are not cached", "put a cache in front of the gateway")
_DATABASE = (
    "keys, teams and models do not live in a database",
    "write keys into `gateway.keys`; statistics may go to `store.stats_url`",
)
_LOGS = ("log levels are no configuration", "see `telemetry.log` for a line for each request")
_ALERTS = ("the router sends no alerts", "let Prometheus alert on /metrics (docs/observability.md)")
_HEALTH = ("health is learned from requests, none are made up", "see /health and `resilience.breaker`")
_AFFINITY = ("requests of one session stay together by x-router-session", "send it, or a session header of the client")
_RETRIES = ("retries are decided by the class of a failure (docs/departures.md)", "see `routing.attempts`")
_KEYS = ("there is no service that hands out keys", "write each key into `gateway.keys`")
_BULKHEAD = ("calls in flight are limited per provider", "see `providers.<name>.bulkhead`")
_ROUTE = "see `gateway.passthrough.routes` (docs/how-to/passthrough.md)"
_GUARDS = ("there are no guardrails", "filter before the gateway, or in the agent")

LEFT_OUT: Mapping[str, Mapping[str, Why]] = MappingProxyType(
    {
        "litellm_params": {
            "max_retries": _RETRIES,
            "num_retries": _RETRIES,
            "stream_timeout": ("the first words have one timeout for all", "see `resilience.timeouts.first_content`"),
            "max_budget": _SPEND,
            "budget_duration": _SPEND,
            **dict.fromkeys(PRICE_KEYS, _HALF_A_PRICE),
            "tag_regex": ("there are no tags", "give the deployment a name of its own, and ask for it"),
            "litellm_credential_name": ("no credential of `credential_list` has this name", "write it there"),
            "configurable_clientside_auth_params": ("a client's key is never sent on", "name the key in the provider"),
            "mock_response": ("nothing is mocked", "take a provider of kind `scripted`, or smr fault-server"),
            **dict.fromkeys(("top_p", "seed", "extra_body", "reasoning_effort"), _BODY),
        },
        "model_info": {
            **dict.fromkeys(PRICE_KEYS, _HALF_A_PRICE),
            "mode": ("a target serves what its provider's dialects can say", "nothing to do"),
            "id": ("a target is called provider/model", "nothing to do"),
            "base_model": _PRICES,
            "max_tokens": _BODY,
            "max_output_tokens": _BODY,
            "access_groups": ("there are no access groups", "name models in `gateway.keys.<name>.models`"),
            "team_id": _KEYS,
        },
        "router_settings": {
            "retry_after": ("waits are the provider's, else a growing pause", "see `resilience.backoff`"),
            "retry_policy": _RETRIES,
            "model_group_retry_policy": _RETRIES,
            "allowed_fails_policy": _RETRIES,
            "max_fallbacks": ("attempts are counted, not fallbacks", "see `routing.attempts`"),
            "routing_strategy_args": ("strategies have no arguments", "nothing to do"),
            "routing_groups": ("a strategy is chosen for each model", "see `models.<name>.strategy`"),
            "provider_budget_config": _SPEND,
            "disable_cooldowns": ("rests are the point of this router", "see `resilience.cooldown` for how long"),
            "default_max_parallel_requests": (
                "calls in flight are limited per provider",
                "see `providers.<name>.bulkhead`",
            ),
            "optional_pre_call_checks": _AFFINITY,
            "model_group_affinity_config": _AFFINITY,
            "deployment_affinity_ttl_seconds": _AFFINITY,
            "tag_filtering_match_any": ("a tag became a name, and a request asks for one name", "nothing to do"),
            "alerting_config": _ALERTS,
            "set_verbose": _LOGS,
            "debug_level": _LOGS,
            "client_ttl": ("connections are kept while they are good", "nothing to do"),
            **dict.fromkeys(("redis_url", "redis_host", "redis_port", "redis_password", "redis_db"), _REDIS),
            **dict.fromkeys(("cache_responses", "cache_kwargs", "caching_groups"), _CACHE),
        },
        "litellm_settings": {
            **dict.fromkeys(("cache", "cache_params"), _CACHE),
            **dict.fromkeys(("set_verbose", "json_logs", "store_audit_logs"), _LOGS),
            **dict.fromkeys(
                (
                    "max_budget",
                    "budget_duration",
                    "max_end_user_budget",
                    "max_internal_user_budget",
                    "internal_user_budget_duration",
                    "extra_spend_tag_headers",
                    "tag_budget_config",
                ),
                _SPEND,
            ),
            **dict.fromkeys(
                (
                    "default_team_settings",
                    "default_internal_user_params",
                    "default_team_params",
                    "default_key_generate_params",
                    "upperbound_key_generate_params",
                    "key_generation_settings",
                ),
                _KEYS,
            ),
            "force_ipv4": ("addresses are chosen by the system", "nothing to do"),
            "ssl_verify": ("certificates are always verified", "add yours to the system's store"),
            "guardrails": _GUARDS,
        },
        "general_settings": {
            **dict.fromkeys(("alerting", "alerting_threshold", "alerting_args", "alert_types"), _ALERTS),
            **dict.fromkeys(
                (
                    "background_health_checks",
                    "health_check_interval",
                    "health_check_details",
                    "enable_health_check_routing",
                ),
                _HEALTH,
            ),
            **dict.fromkeys(
                (
                    "database_connection_pool_limit",
                    "database_connection_timeout",
                    "store_model_in_db",
                    "store_prompts_in_spend_logs",
                    "disable_spend_logs",
                    "proxy_batch_write_at",
                    "allow_requests_on_db_unavailable",
                    "use_redis_transaction_buffer",
                ),
                _DATABASE,
            ),
            **dict.fromkeys(
                ("custom_auth", "enable_jwt_auth", "litellm_jwtauth", "user_header_name", "custom_key_generate"), _KEYS
            ),
            "max_parallel_requests": _BULKHEAD,
            "global_max_parallel_requests": _BULKHEAD,
            "pass_through_endpoints": (
                "moderations, audio, images and rerank pass through, no other paths",
                f"{_ROUTE}; call others directly",
            ),
            "key_management_system": ("keys come from variables and files", "see `file:` in docs/configuration.md"),
            "ui_access_mode": ("the dashboard only shows", "see /dashboard"),
            "coordination_redis": _REDIS,
            "disable_prisma_schema_update": _DATABASE,
        },
    }
)

SECTIONS: Mapping[str, Why] = MappingProxyType(
    {
        "environment_variables": ("a configuration sets no variables", "set them where the router is started"),
        "credential_list": ("no deployment that was imported names it", "nothing to do"),
        "guardrails": _GUARDS,
        "mcp_servers": ("tools are the agent's affair", "connect them there"),
        "sandbox_tools": ("tools are the agent's affair", "connect them there"),
        "policies": _GUARDS,
        "policy_attachments": _GUARDS,
        "include": ("other files are not read", "import each, and join the results"),
        "callback_settings": ("there are no callbacks", "see docs/observability.md"),
        "files_settings": ("files and batches are not routed", "call the provider directly"),
        "finetune_settings": ("fine-tuning is not routed", "call the provider directly"),
        "search_tools": ("tools are the agent's affair", "connect them there"),
        "vector_store_registry": ("there are no vector stores", "see docs/how-to/search.md for indexed folders"),
    }
)

PASSED: Why = ("its requests pass through, with the model's name as the provider has it", _ROUTE)
PASSED_MODES = frozenset(
    {"audio_speech", "audio_transcription", "image_edit", "image_generation", "moderation", "rerank"}
)
"""Values of model_info.mode: models that no dialect of the gateway asks."""
NO_PROVIDER: Why = ("the provider of this model is not known", "write it before the name (openai/whisper-1)")
OWN_SDK: Why = ("this provider is reached through its own SDK", _SDK)
NO_CALLBACK: Why = ("there is no such callback", "see docs/observability.md for metrics, logs and traces")
NO_WILDCARD: Why = (
    "a wildcard has one `*` in `model_name`, and at most one in the model, after its provider",
    "write a wildcard for each provider (docs/how-to/model-names.md)",
)
DEFAULT_KEYS = ("temperature", "max_tokens")
"""litellm_params -> DefaultsConfig."""
CALLBACKS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"prometheus": ("telemetry", "metrics"), "otel": ("telemetry", "traces", "enabled")}
)
