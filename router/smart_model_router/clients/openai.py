"""The OpenAI SDK's clients with a router in the place of the network."""

from __future__ import annotations

from typing import Any

import openai

from smart_model_router.clients.factory import HOST, NO_KEY, Source, transport_for


class OpenAI(openai.OpenAI):
    """`openai.OpenAI` over a router; works in threads and inside a running loop.

    `router` is a SmartModelRouter or a configuration to make one from (closed with the client). Every other argument
    is the SDK's own; `base_url` and `api_key` mean nothing here, and `max_retries` is 0 unless set: the router has
    retries of its own. Raises ConfigurationError.
    """

    def __init__(self, router: Source = None, *, http_client: Any = None, **options: Any) -> None:
        if http_client is None:
            http, transport = transport_for(router, "openai")
            http_client = http.Client(transport=transport)
            options = _placeless(options)
        super().__init__(http_client=http_client, **options)


class AsyncOpenAI(openai.AsyncOpenAI):
    """`openai.AsyncOpenAI` over a router. Arguments as for OpenAI."""

    def __init__(self, router: Source = None, *, http_client: Any = None, **options: Any) -> None:
        if http_client is None:
            http, transport = transport_for(router, "openai")
            http_client = http.AsyncClient(transport=transport)
            options = _placeless(options)
        super().__init__(http_client=http_client, **options)


def _placeless(options: dict[str, Any]) -> dict[str, Any]:
    """The options with an address that means nothing, and no retries but those asked for: the router has its own."""
    key = options.get("api_key") or NO_KEY
    return {"max_retries": 0, **options, "base_url": f"{HOST}/v1", "api_key": key}
