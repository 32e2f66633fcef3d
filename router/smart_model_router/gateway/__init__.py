"""The gateway: an HTTP server that routes requests in every dialect. `smr serve` runs it.

app.py has the routes, exchange.py walks one request, keys.py checks the caller's key, listening.py binds the address,
server.py runs uvicorn with the protocol of protocol.py, and workers.py runs several processes of it.
"""

from __future__ import annotations

from smart_model_router.gateway.app import Gateway

__all__ = ["Gateway"]
