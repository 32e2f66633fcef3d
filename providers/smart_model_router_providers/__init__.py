"""The providers: how each is reached, what its answers mean, and scripted ones for tests."""

from __future__ import annotations

from smart_model_router_scoring._moved import install

MOVED = {
    "smart_model_router_providers.pool": "smart_model_router_providers.httpx2_transport",
    "smart_model_router_providers.resending": "smart_model_router_providers.httpx2_transport",
}
"""The module paths of version 0.1 that the documents named: those of ResendingTransport."""
install(MOVED)
