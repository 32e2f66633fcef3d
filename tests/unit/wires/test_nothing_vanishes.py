"""The judge of translation: nothing that a request says vanishes without a loss in the report.

Every field of the request types of OpenAI's and Anthropic's SDKs (and Anthropic's betas) is taken in turn, in the
smallest request that has it. With it and without it, and with one value and another, what is sent differs, or the
losses do, or a loss names it, or the target is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from anthropic.types.beta.message_create_params import MessageCreateParamsNonStreaming as BetaMessages
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming as Messages
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming as Chat
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming as Responses

from smart_model_router.domain.request import Dialect
from smart_model_router.wires.translate import ROUTES, Losses, Terms, Translation, translate
from tests.unit.wires.request_fields import Change, Path, changes

TERMS = [
    Terms(family="f", reasoning=True, newest_chat=True, created=7),
    Terms(family="f", created=7),
    Terms(family="f", reasoning=True, hosted_tools="drop", created=7),
]
REQUESTS: list[tuple[Dialect, Any]] = [
    ("chat", Chat),
    ("responses", Responses),
    ("messages", Messages),
    ("messages", BetaMessages),
]
TOOLS: dict[Dialect, list[dict[str, Any]]] = {
    "chat": [
        {"type": "function", "function": {"name": "text-1"}},
        {"type": "function", "function": {"name": "text-2"}},
    ],
    "responses": [{"type": "function", "name": "text-1"}, {"type": "function", "name": "text-2"}],
    "messages": [{"name": name, "input_schema": {"type": "object"}} for name in ("text-1", "text-2")],
}
"""What a choice of tools chooses from: it says nothing without them."""
CALLED_OTHERWISE = {
    "stop_sequences": {"stop"},
    "generate_summary": {"summary"},
    "output_config": {"thinking"},
    "thinking": {"reasoning"},
    "redacted_thinking": {"reasoning"},
    "web_search_call": {"web_search"},
    "server_tool_use": {"web_search"},
    "web_search_tool_result": {"web_search"},
}
"""A field, or the type of a block -> further names that a loss has for it."""
CHOOSING = ("tool_choice", "parallel_tool_calls")
VAGUE = {"messages", "input", "content", "system"}
"""A loss of these names no field."""

SAYS_NOTHING: list[tuple[str, Any, str]] = [
    (r"model|stream|stream_options\.include_usage", ..., "the router's own"),
    (r"input\.\[\]\.(id|status|type)", ..., "an address at the provider that made the item, which is here, whole"),
    (r"(input|messages)\.\[\]\.(content\.\[\]\.)*caller", {"type": "direct"}, "the usual"),
    (r"tools\.\[\](\.tools\.\[\])?\.allowed_callers", ["direct"], "the usual"),
    (r"tools\.\[\](\.tools\.\[\])?\.format", {"type": "text"}, "the usual"),
    (r"tools\.\[\]\.type", "custom", "the usual"),
    (r"tools\.\[\](\.tools\.\[\])?\.parameters", ..., "a schema of any object is no schema"),
    (r".*\.user_location", ..., "a place without a name is none"),
    (r".*\.detail", "auto", "the usual"),
    (r"modalities", ["text"], "the usual"),
    (r"parallel_tool_calls", True, "the usual"),
    (r"response_format|text\.format", {"type": "text"}, "the usual"),
    (r"reasoning_effort|reasoning\.effort", "none", "the usual of models that do not think unless they are told"),
    (r"thinking", {"type": "disabled"}, "the usual of models that do not think unless they are told"),
    (r"thinking", {"type": "adaptive"}, "the usual of models that think"),
    (r"thinking\.display", "summarized", "the usual"),
    (r"service_tier", "auto", "the usual"),
    (r"service_tier", "default", "the usual of a provider without tiers"),
]
"""(path, value, why): what a client may say without saying anything. `...` is any value."""


def of_one_text(one: Any, other: Any) -> bool:
    """Text, and the same text as the only part of a content."""
    if isinstance(one, dict) and isinstance(other, dict) and "content" in one:
        return of_one_text(one["content"], other.get("content"))
    part = other[0] if isinstance(other, list) and len(other) == 1 and isinstance(other[0], dict) else {}
    return isinstance(one, str) and one == part.get("text", part.get("content"))


def at(body: Any, path: Path) -> Any:
    """The value at a path of a smallest request; None where there is none."""
    for key in path:
        if key == "[]":
            body = body[0] if isinstance(body, list) and body else None
        else:
            body = body.get("key" if key == "{}" else key) if isinstance(body, dict) else None
    return body


def says_nothing(path: Path, before: Any, after: Any) -> bool:
    """Whether two values at a path ask the same."""
    if after in (None, [], {}) or of_one_text(before, after):
        return True
    named = ".".join(path)
    return any(re.fullmatch(form, named) and value in (..., after, before) for form, value, _ in SAYS_NOTHING)


def silent(asked: Dialect, goal: Dialect, kind: Any, terms: Terms) -> Iterator[Change]:
    """Every change of a request without an effect on what is sent, and without a loss that names it: (path, values)."""
    for path, *pair in changes(kind):
        one, other = ({"tools": TOOLS[asked], **body} if path[0] in CHOOSING else body for body in pair)
        before, after = (translate(asked, goal, body, terms) for body in (one, other))
        if not isinstance(before, Translation) or not isinstance(after, Translation):
            continue
        if before.body != after.body or set(before.losses) != set(after.losses):
            continue
        named = {re.sub(r"\[\]", "", loss.partition(":")[0]).rpartition(".")[2] for loss in after.losses} - VAGUE
        if named.isdisjoint(names_on(path, other)):
            yield path, at(one, path), at(other, path)


def vanished(asked: Dialect, goal: Dialect, kind: Any, terms: Terms) -> Iterator[str]:
    """Every field that says something and has neither an effect nor a loss."""
    for path, before, after in silent(asked, goal, kind, terms):
        if not says_nothing(path, before, after):
            yield f"{asked} by {goal}: {'.'.join(path)}: {before!r} and {after!r}"[:300]


def names_on(path: Path, body: Any) -> set[str]:
    """What a loss of this field, or of what it is in, may be called."""
    inside = [at(body, path[:depth]) for depth in range(len(path))]
    kinds = [str(value["type"]) for value in inside if isinstance(value, dict) and "type" in value]
    names = {*path, *kinds}
    return names.union(*(CALLED_OTHERWISE.get(name, set()) for name in names))


@pytest.mark.parametrize("terms", TERMS, ids=["newest", "plain", "dropping"])
@pytest.mark.parametrize(
    ("asked", "kind", "goal"),
    [
        pytest.param(asked, kind, goal, id=f"{kind.__module__.split('.')[-2]} by {goal}")
        for asked, kind in REQUESTS
        for source, goal in ROUTES
        if source == asked
    ],
)
def test_nothing_vanishes(asked: Dialect, kind: Any, goal: Dialect, terms: Terms) -> None:
    """Whatever a client can say is sent, or refused, or named in the report."""
    assert list(vanished(asked, goal, kind, terms)) == []


@pytest.mark.parametrize(("asked", "goal"), sorted(ROUTES))
def test_the_judge_sees_what_is_not_told(asked: Dialect, goal: Dialect, monkeypatch: pytest.MonkeyPatch) -> None:
    """Translation that drops without a word is found out, in every direction."""
    monkeypatch.setattr(Losses, "drop", lambda *_: None)
    kind = dict(REQUESTS)[asked]
    assert len(list(vanished(asked, goal, kind, TERMS[1]))) > 10


def test_every_excuse_is_needed() -> None:
    """What is said to say nothing is what translation leaves out without a word; no rule is there in vain."""
    used = {
        form
        for asked, kind in REQUESTS
        for source, goal in ROUTES
        if source == asked
        for terms in TERMS
        for path, before, after in silent(asked, goal, kind, terms)
        for form, value, _ in SAYS_NOTHING
        if re.fullmatch(form, ".".join(path)) and value in (..., after, before)
    }
    assert {form for form, *_ in SAYS_NOTHING} - used == set()
