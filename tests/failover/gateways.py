"""The gateways that the rows are played on: `smr serve` on defaults or tuned, LiteLLM's proxy, Portkey's gateway."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.gateway_peers.servers import litellm_proxy, portkey_gateway

from tests.e2e.gateways import served
from tests.failover.client import Target, ask
from tests.failover.rows import Reply

Send = Callable[[str, float], Awaitable[Reply]]
"""(model, deadline in seconds) -> the reply."""
Plan = Mapping[str, Sequence[Target]]
"""Model -> its targets, best first."""

TUNED: Mapping[str, Any] = {
    "routing": {"recovery": "buffered"},
    "resilience": {"timeouts": {"first_content": "10s"}},
}


@contextmanager
def _ours(plan: Plan, sections: Mapping[str, Any]) -> Generator[Send]:
    """`smr serve` with nothing but providers, one for each base URL, and models with one target a tier."""
    urls = sorted({target.base_url for targets in plan.values() for target in targets})
    names = {url: f"p{number}" for number, url in enumerate(urls)}
    tree: dict[str, Any] = {
        "version": 1,
        "providers": {
            name: {"kind": "openai_compatible", "base_url": url, "api_key": "unused"} for url, name in names.items()
        },
        "models": {
            model: {
                "tiers": [{"targets": [f"{names[target.base_url]}/{target.model}"]} for target in targets],
                "last_resort": [],
            }
            for model, targets in plan.items()
        },
        **sections,
    }
    with tempfile.TemporaryDirectory(prefix="smr-failover-") as folder, served(tree, Path(folder)) as gateway:
        yield _sender(f"{gateway.base_url}/v1")


@contextmanager
def _litellm(plan: Plan) -> Generator[Send]:
    """LiteLLM's proxy on its defaults: the fallback is a model group of its own, as its documentation has it."""
    models, fallbacks = [], []
    for model, (first, *others) in plan.items():
        groups = [(model, first), *((f"{model}-fallback-{number}", other) for number, other in enumerate(others))]
        for name, target in groups:
            deployment = {"model": f"openai/{target.model}", "api_base": target.base_url, "api_key": "unused"}
            models.append({"model_name": name, "litellm_params": deployment})
        if others:
            fallbacks.append({model: [name for name, _ in groups[1:]]})
    with litellm_proxy({"model_list": models, "litellm_settings": {"fallbacks": fallbacks}}) as server:
        yield _sender(f"{server.url}/v1")


@contextmanager
def _portkey(plan: Plan) -> Generator[Send]:
    """Portkey's gateway with a fallback strategy, which it takes with each request."""
    headers = {}
    for model, targets in plan.items():
        providers = [
            {
                "provider": "openai",
                "custom_host": target.base_url,
                "api_key": "unused",
                "override_params": {"model": target.model},
            }
            for target in targets
        ]
        config = {"strategy": {"mode": "fallback"}, "targets": providers}
        headers[model] = {"x-portkey-config": json.dumps(config)}
    with portkey_gateway() as server:
        url = f"{server.url}/v1"
        yield lambda model, seconds: ask(Target(url, model), seconds, headers=headers[model])


def _sender(url: str) -> Send:
    return lambda model, seconds: ask(Target(url, model), seconds)


OURS = ("defaults", "tuned")
GATEWAYS: Mapping[str, Callable[[Plan], AbstractContextManager[Send]]] = {
    "defaults": lambda plan: _ours(plan, {}),
    "tuned": lambda plan: _ours(plan, TUNED),
    "litellm": _litellm,
    "portkey": _portkey,
}
