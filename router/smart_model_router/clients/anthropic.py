"""The Anthropic SDK's clients with a router in the place of the network."""

from __future__ import annotations

from typing import Any

import anthropic

from smart_model_router.clients.factory import HOST, NO_KEY, Source, transport_for

_CREDENTIALS = ("api_key", "auth_token", "credentials", "config", "profile")


class Anthropic(anthropic.Anthropic):
    """`anthropic.Anthropic` over a router; works in threads and inside a running loop.

    `router` is a SmartModelRouter or a configuration to make one from (closed with the client). Every other argument
    is the SDK's own; `base_url` and credentials mean nothing here, and `max_retries` is 0 unless set: the router has
    retries of its own. Raises ConfigurationError.
    """

    def __init__(self, router: Source = None, *, http_client: Any = None, **options: Any) -> None:
        if http_client is None:
            http, transport = transport_for(router, "anthropic")
            http_client = http.Client(transport=transport)
            options = _placeless(options)
        super().__init__(http_client=http_client, **options)


class AsyncAnthropic(anthropic.AsyncAnthropic):
    """`anthropic.AsyncAnthropic` over a router. Arguments as for Anthropic."""

    def __init__(self, router: Source = None, *, http_client: Any = None, **options: Any) -> None:
        if http_client is None:
            http, transport = transport_for(router, "anthropic")
            http_client = http.AsyncClient(transport=transport)
            options = _placeless(options)
        super().__init__(http_client=http_client, **options)


def _placeless(options: dict[str, Any]) -> dict[str, Any]:
    """The options with credentials and an address that mean nothing: the SDK would look for real ones.

    No retries but those asked for: the router has its own.
    """
    kept = {name: value for name, value in options.items() if name not in _CREDENTIALS}
    return {"max_retries": 0, **kept, "base_url": HOST, "api_key": NO_KEY}
