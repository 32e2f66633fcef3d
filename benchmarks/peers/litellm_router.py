"""LiteLLM's Router, asked as its documentation says.

The row's options are passed on to it, but for `deployment`, which each deployment gets, and `question`.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from typing import Any

from benchmarks.peers.driving import QUESTION, Ask, Job, drive


def make(job: Job) -> Ask:
    """One model group. `order` is its way to say primary and backup; without it load is spread."""
    litellm: Any = importlib.import_module("litellm")
    litellm.telemetry = False
    litellm.suppress_debug_info = True
    known = inspect.signature(litellm.Router.__init__).parameters
    given = dict(job.options)
    deployment, question = given.pop("deployment", {}), given.pop("question", QUESTION)
    options = {name: value for name, value in given.items() if name in known}
    for name in given.keys() - options.keys():
        sys.stderr.write(f"litellm: this release has no option {name}\n")
    deployments = [
        {
            "model_name": "smart",
            "litellm_params": {
                "model": "openai/m",
                "api_base": endpoint.base_url,
                "api_key": endpoint.key,
                **({"order": number} if job.ranked else {}),
                **deployment,
            },
        }
        for number, endpoint in enumerate(job.endpoints, 1)
    ]
    router = litellm.Router(model_list=deployments, timeout=job.timeout, **options)

    async def ask() -> object:
        reply = await router.acompletion(model="smart", messages=[{"role": "user", "content": question}])
        return reply.choices[0].message.content

    return ask


if __name__ == "__main__":
    drive("litellm", make)
