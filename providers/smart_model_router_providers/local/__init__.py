"""The embedded last-resort model: a small language model in a child process, for when no other target answers."""

from smart_model_router_providers.local.model_file import (
    LocalInstallError,
    Readiness,
    install,
    is_ready,
    model_path,
)

__all__ = ["LocalInstallError", "Readiness", "install", "is_ready", "model_path"]
