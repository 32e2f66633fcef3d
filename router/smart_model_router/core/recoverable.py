"""The streams that may be recovered after delivered content, and the failures after which (routing.md section 8)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from smart_model_router.domain.outcome import Category, Failure
from smart_model_router.domain.recovery_policy import NO_RECOVERY, Recovery
from smart_model_router.domain.request import Dialect, RouteRequest

_TEXT_DIALECTS: frozenset[Dialect] = frozenset({"chat", "messages"})
_THEIR_FAULT = frozenset({Category.TRANSIENT, Category.TIMEOUT, Category.RATE_LIMIT})
"""Cuts, stalls and errors in the stream. Not recovered: a caller that left, a content filter, a limit of our own."""


HOLD_SECONDS = 30.0
"""The longest time for which a part that only makes sense whole is held: clients wait in silence for longer."""
Held = Literal["nothing", "calls", "all"]
_EAGER_BETA = "fine-grained-tool-streaming"
_GRAMMARS = ("output_format", "guided_json", "guided_grammar", "guided_regex", "structured_outputs", "grammar")
"""Fields of single servers (Anthropic's beta, vLLM, llama.cpp) that a whole answer has to fit."""


def effective(request: RouteRequest, default: Recovery) -> Recovery:
    """The policy of one request: its own, else its model's, where its answer can be recovered at all.

    `buffered` delivers nothing before all is there, so any answer can be made anew. The others are for one answer of
    Chat or Messages; a client cannot be told to forget half a schema.
    """
    policy = request.recovery if request.recovery is not None else default
    if policy.mode == "buffered":
        return policy
    if request.dialect not in _TEXT_DIALECTS or request.body.get("n") not in (None, 1):
        return NO_RECOVERY
    if policy.mode == "restart" and (_is_constrained(request) or not request.accept_restart):
        return NO_RECOVERY
    return policy


def held(request: RouteRequest, policy: Recovery) -> Held:
    """The part of the answer that is delivered once it is whole, for no other model can continue half of it.

    A caller who asks for the arguments of calls as they are written gets them so, and an error when they are cut.
    """
    if policy.mode not in ("continue", "hold_back"):
        return "nothing"
    if _is_constrained(request):
        return "all"
    return "nothing" if _wants_arguments_early(request) else "calls"


def _is_constrained(request: RouteRequest) -> bool:
    """Return whether the answer follows a schema or a grammar, or is JSON: a model begins it anew, or not at all."""
    if "schema" in request.needs or any(request.body.get(key) for key in _GRAMMARS):
        return True
    form = request.body.get("response_format")
    return isinstance(form, Mapping) and form.get("type", "text") != "text"


def _wants_arguments_early(request: RouteRequest) -> bool:
    """Return whether a Messages request asks for unfinished arguments."""
    if request.dialect != "messages":
        return False
    if any(_EAGER_BETA in value for name, value in request.headers.items() if name.lower() == "anthropic-beta"):
        return True
    tools = request.body.get("tools")
    listed = tools if isinstance(tools, (list, tuple)) else ()
    return any(isinstance(tool, Mapping) and tool.get("eager_input_streaming") is True for tool in listed)


def recoverable(failure: Failure) -> bool:
    """True when another target should continue a stream that ended like this."""
    return failure.failure_class.category in _THEIR_FAULT
