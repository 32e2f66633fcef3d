"""The gateway: an HTTP server that routes requests in every dialect. `smr serve` runs it.

asgi_app.py has the routes, endpoint.py walks one request, client_keys.py checks the caller's key, bind.py binds the
address, uvicorn_server.py runs uvicorn with the protocol of uvicorn_protocol.py, and workers.py runs several processes
of it.
"""

from __future__ import annotations

from smart_model_router.gateway.asgi_app import Gateway

__all__ = ["Gateway"]
