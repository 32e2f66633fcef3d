"""This router with its defaults, and what a request may take.

A row's options are `store`, a section of the configuration that the warm-up goes without; `provider`, which every
provider gets; and `question`.
"""

from __future__ import annotations

from typing import Any

from benchmarks.peers.driving import QUESTION, Ask, Job, drive

from smart_model_router import SmartModelRouter


def make(job: Job) -> Ask:
    """Endpoints that are alike are credentials of one provider; ranked ones are providers in their order."""
    if job.ranked:
        listed = {endpoint.name: (endpoint.base_url, [endpoint.key]) for endpoint in job.endpoints}
    else:
        listed = {"p": (job.endpoints[0].base_url, [endpoint.key for endpoint in job.endpoints])}
    common = job.options.get("provider", {})
    providers = {
        name: {"kind": "openai_compatible", "base_url": url, "api_key": keys, **common}
        for name, (url, keys) in listed.items()
    }
    config = {
        "version": 1,
        "providers": providers,
        "models": {"smart": {"tiers": [{"targets": [f"{name}/m" for name in providers]}], "last_resort": []}},
        "store": job.options.get("store", {}) if job.warm_up not in job.endpoints else {},
    }
    router = SmartModelRouter.from_config(config, seed=1)
    question = job.options.get("question", QUESTION)
    body: dict[str, Any] = {"model": "smart", "messages": [{"role": "user", "content": question}]}

    async def ask() -> object:
        reply = await router.chat(body, timeout=job.timeout)
        return reply.body["choices"][0]["message"]["content"]

    return ask


if __name__ == "__main__":
    drive("smart-model-router", make)
