"""The gateway: an HTTP server that speaks the dialects and routes what it is asked. `smr serve` runs it.

app.py has the routes, exchange.py walks one request, keys.py says who may ask, listening.py
where; server.py (uvicorn, speaking protocol.py) and granian_server.py are servers with our manners, workers.py is
several of one.
"""

from __future__ import annotations

from smart_model_router.gateway.app import Gateway
from smart_model_router.gateway.listening import run

__all__ = ["Gateway", "run"]
