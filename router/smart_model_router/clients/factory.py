"""Makes the parts of the drop-in classes: a router from the given source, and an HTTP client over it."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import Any

from smart_model_router.clients.transport import RouterTransport
from smart_model_router.config import RouterConfig
from smart_model_router.router import SmartModelRouter
from smart_model_router_providers.sdk import SDKS, httpx_of

Source = SmartModelRouter | RouterConfig | Mapping[str, Any] | str | os.PathLike[str] | None
"""A router, or a configuration to make one from; None is the process's own, as `SmartModelRouter.from_config()`."""

HOST = "http://smart-model-router.invalid"
"""The base of the SDKs' URLs. No connection is made to it."""
NO_KEY = "unused"
"""The SDKs insist on a key; the router has its own."""

_default: SmartModelRouter | None = None
_default_lock = threading.Lock()


def transport_for(source: Source, sdk: str) -> tuple[Any, RouterTransport]:
    """Return the httpx module that the installed major of an SDK is built on, and a transport for its clients.

    Closing the transport closes a router that was made here, but not a given one or the process's own. Raises
    ConfigurationError.
    """
    router, owns = _router(source)
    return httpx_of(SDKS[sdk]), RouterTransport(router, owns=owns)


def _router(source: Source) -> tuple[SmartModelRouter, bool]:
    if isinstance(source, SmartModelRouter):
        return source, False
    if source is not None:
        return SmartModelRouter.from_config(source), True
    global _default  # noqa: PLW0603 - all clients of a process share one state of the targets
    with _default_lock:
        if _default is None:
            _default = SmartModelRouter.from_config()
        return _default, False
