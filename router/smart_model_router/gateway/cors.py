"""Answers that web pages of other origins may read in a browser (`gateway.cors`)."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from smart_model_router.gateway.response import WHOLE

_METHODS = ("GET", "HEAD", "POST", "DELETE", "OPTIONS")


def with_cors(app: ASGIApp, origins: Sequence[str]) -> ASGIApp:
    """The application with the headers that browsers ask for; the same without origins.

    No credentials: pages show a key as any client does, and cookies are none. So every header may be sent and read.
    """
    if not origins:
        return app

    async def through_send(scope: Scope, receive: Receive, send: Send) -> None:
        """Have every reply sent where the middleware adds its headers, not past it."""
        scope["extensions"] = {name: part for name, part in scope.get("extensions", {}).items() if name != WHOLE}
        await app(scope, receive, send)

    for_pages = CORSMiddleware(
        through_send, allow_origins=origins, allow_methods=_METHODS, allow_headers="*", expose_headers="*"
    )

    async def door(scope: Scope, receive: Receive, send: Send) -> None:
        of_a_page = scope["type"] == "http" and any(name == b"origin" for name, _ in scope["headers"])
        await (for_pages if of_a_page else app)(scope, receive, send)

    return door
