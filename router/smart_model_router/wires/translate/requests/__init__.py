"""Requests translated: plain dict in, plain dict out, one module a pair."""

from __future__ import annotations

from smart_model_router.wires.translate.requests import (
    chat_to_messages,
    chat_to_responses,
    messages_to_chat,
    responses_to_chat,
)

__all__ = ["chat_to_messages", "chat_to_responses", "messages_to_chat", "responses_to_chat"]
