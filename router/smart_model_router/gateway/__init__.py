"""The gateway: an HTTP server that speaks the dialects and routes what it is asked. `smr serve` runs it.

app.py has the routes, exchange.py walks one request, keys.py says who may ask, server.py is uvicorn with our manners.
"""

from __future__ import annotations

from smart_model_router.gateway.app import Gateway
from smart_model_router.gateway.server import run

__all__ = ["Gateway", "run"]
