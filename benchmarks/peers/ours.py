"""This router with its defaults; what a request may take is the one thing it is told."""

from __future__ import annotations

from benchmarks.peers.driving import QUESTION, Ask, Job, drive

from smart_model_router import SmartModelRouter


def make(job: Job) -> Ask:
    """Endpoints that are alike are credentials of one provider; ranked ones are providers in their order."""
    if job.ranked:
        listed = {endpoint.name: (endpoint.base_url, [endpoint.key]) for endpoint in job.endpoints}
    else:
        listed = {"p": (job.endpoints[0].base_url, [endpoint.key for endpoint in job.endpoints])}
    providers = {
        name: {"kind": "openai_compatible", "base_url": url, "api_key": keys} for name, (url, keys) in listed.items()
    }
    model = {"tiers": [{"targets": [f"{name}/m" for name in providers]}], "last_resort": []}
    router = SmartModelRouter.from_config({"version": 1, "providers": providers, "models": {"smart": model}}, seed=1)

    async def ask() -> object:
        body = {"model": "smart", "messages": [{"role": "user", "content": QUESTION}]}
        reply = await router.chat(body, timeout=job.timeout)
        return reply.body["choices"][0]["message"]["content"]

    return ask


if __name__ == "__main__":
    drive("smart-model-router", make)
