"""The refusals of the real providers that other test servers leave out: betas, and references to stored items. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Refusal:
    """The answer to a request that the provider does not take."""

    status: int
    message: str
    code: str | None = None


KNOWN_BETAS = frozenset(
    {
        "advanced-tool-use-2025-11-20",
        "advisor-tool-2026-03-01",
        "claude-code-20250219",
        "code-execution-2025-05-22",
        "compact-2026-01-12",
        "context-1m-2025-08-07",
        "context-management-2025-06-27",
        "effort-2025-11-24",
        "extended-cache-ttl-2025-04-11",
        "fast-mode-2026-02-01",
        "files-api-2025-04-14",
        "fine-grained-tool-streaming-2025-05-14",
        "interleaved-thinking-2025-05-14",
        "mcp-client-2025-11-20",
        "mid-conversation-system-2026-04-07",
        "mid-conversation-tool-changes-2026-07-01",
        "model-context-window-exceeded-2025-08-26",
        "prompt-caching-2024-07-31",
        "prompt-caching-scope-2026-01-05",
        "redact-thinking-2026-02-12",
        "structured-outputs-2025-11-13",
        "thinking-token-count-2026-05-13",
        "token-counting-2024-11-01",
    }
)
"""Values of `anthropic-beta`; any other is a 400. Those that the clients of the lane send are among them."""

GATED_FIELDS = {
    "messages": {
        "context_management": "context-management-2025-06-27",
        "mcp_servers": "mcp-client-2025-11-20",
        "output_format": "structured-outputs-2025-11-13",
        "speed": "fast-mode-2026-02-01",
    },
    "responses": {"multi_agent": "responses_multi_agent=v1"},
}
"""Fields of a body that only a request with the beta may have; without it the provider knows no such field."""
_HEADERS = {"messages": "anthropic-beta", "responses": "openai-beta"}
_KNOWN = {"messages": KNOWN_BETAS, "responses": frozenset({"responses_multi_agent=v1"})}


def beta_refusal(dialect: str, headers: Mapping[str, str], body: Mapping[str, Any]) -> Refusal | None:
    """Return the refusal of a request whose betas are unknown or missing, as Anthropic and OpenAI word it."""
    if dialect not in _HEADERS:
        return None
    header = _HEADERS[dialect]
    betas = [beta.strip() for beta in headers.get(header, "").split(",") if beta.strip()]
    for beta in betas:
        if beta not in _KNOWN[dialect]:
            return Refusal(400, f"Unexpected value(s) `{beta}` for the `{header}` header")
    for field, beta in GATED_FIELDS[dialect].items():
        if body.get(field) is not None and beta not in betas:
            return Refusal(400, f"{field}: Extra inputs are not permitted")
    return None


def reference_refusal(body: Mapping[str, Any], is_stored: Callable[[str], bool]) -> Refusal | None:
    """Return OpenAI's refusal of a Responses request that refers to a response or an item that is not stored."""
    previous = body.get("previous_response_id")
    if previous is not None and not is_stored(previous):
        return Refusal(400, f"Previous response with id '{previous}' not found.", "previous_response_not_found")
    for item in references(body):
        if not is_stored(item):
            return Refusal(404, f"Item with id '{item}' not found.")
    return None


def references(body: Mapping[str, Any]) -> Iterator[str]:
    """Yield the ids of the items that a Responses request names in place of their content."""
    given = body.get("input")
    for item in given if isinstance(given, list) else ():
        if isinstance(item, Mapping) and item.get("type") == "item_reference":
            yield str(item.get("id"))
