"""Tools that run at a provider: web search is translated; of all others the configuration says what becomes of them.

Chat's own word for a web search is `web_search_options`, which few models take. Between two other dialects it holds
whatever they say of a search; a Chat target is not sent it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smart_model_router.wires.values import count, is_object, items, mapping, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_model_router.wires.translate.losses import Losses
    from smart_model_router.wires.translate.terms import Terms

OPTIONS = "web_search_options"
NAME = "web_search"
LEFT_OUT = "a search that was made is left out of the conversation, its results are kept by the provider that made it"
SOURCES = "web_search_call.action.sources"
"""What a request of Responses includes to be told what a search found."""
SEARCHES = "web_searches"
"""Where a Chat answer between two dialects holds the searches that were made for it."""

_HOSTED = (
    "web_search web_fetch file_search code_interpreter code_execution image_generation mcp tool_search advisor".split()
)
"""How the types of tools begin that their provider runs; those that a client runs itself are always refused."""
_MESSAGES_TYPE = "web_search_20250305"
"""Of the versions of Messages' search the one that every model takes."""
_PLACE = ("city", "country", "region", "timezone")
_USUAL: Mapping[str, tuple[Any, ...]] = {
    "search_context_size": ("medium",),
    "external_web_access": (True,),
    "allowed_callers": (["direct"],),
    "defer_loading": (False,),
    "strict": (False,),
}
"""Fields of a search that say nothing when they say this."""


def is_hosted(kind: object) -> bool:
    """Whether a tool of this type runs at the provider."""
    return isinstance(kind, str) and kind.startswith(tuple(_HOSTED))


def is_search(kind: object) -> bool:
    """Whether a tool of this type, in Responses or Messages, is a web search."""
    return isinstance(kind, str) and kind.startswith(NAME)


def dropped(kind: object, terms: Terms, losses: Losses) -> None:
    """A hosted tool that the target does not have: left out or refused, as the configuration says."""
    name = text(kind)[:40]
    if is_hosted(kind) and terms.hosted_tools == "drop":
        losses.drop("tools", f"a tool of type {name!r} is dropped, it runs at a provider (hosted_tools)")
    else:
        hint = "; hosted_tools: drop of the provider leaves it out" if is_hosted(kind) else ""
        losses.refuse("tools", f"a tool of type {name!r} has no equal at the target{hint}")


def options_of_responses(tool: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """Responses' search as Chat's, with what Chat has no word for. `asked` has the cap on calls of hosted tools."""
    out = {key: value for key, value in tool.items() if key not in ("type", "filters", "user_location")}
    filters = mapping(tool.get("filters"))
    out |= {key if key == "allowed_domains" else f"filters.{key}": value for key, value in filters.items()}
    return _placed(out, tool) | ({"max_uses": asked["max_tool_calls"]} if count(asked.get("max_tool_calls")) else {})


def options_of_messages(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Messages' search as Chat's, with what Chat has no word for."""
    return _placed({key: tool[key] for key in tool if key not in ("type", "name", "user_location")}, tool)


def messages_tool(options: Mapping[str, Any], losses: Losses) -> dict[str, Any]:
    """The search as a tool of Messages."""
    known = ("allowed_domains", "blocked_domains", "max_uses")
    _lost(options, known, "dropped, a search of Messages has no such field", losses)
    kept = {key: options[key] for key in known if options.get(key) not in (None, [])}
    return {"type": _MESSAGES_TYPE, "name": NAME, **kept, **_place_of(options)}


def responses_tool(options: Mapping[str, Any], losses: Losses) -> dict[str, Any]:
    """The search as a tool of Responses. Its cap on calls is a field of the request."""
    if items(options.get("blocked_domains")):
        losses.refuse("tools", "blocked_domains of a search have no equal in Responses")
    known = ("allowed_domains", "blocked_domains", "max_uses", "search_context_size", "external_web_access")
    _lost(options, known, "dropped, a search of Responses has no such field", losses)
    kept = {key: options[key] for key in known[3:] if options.get(key) is not None}
    domains = items(options.get("allowed_domains"))
    return {
        "type": NAME,
        **kept,
        **({"filters": {"allowed_domains": domains}} if domains else {}),
        **_place_of(options),
    }


def _lost(options: Mapping[str, Any], known: tuple[str, ...], why: str, losses: Losses) -> None:
    said = {key: value for key, value in options.items() if value not in _USUAL.get(key, ())}
    losses.drop_keys(said, (*known, "user_location"), why, inside=NAME)
    place = mapping(said.get("user_location"))
    losses.drop_keys(place, ("type", "approximate"), why, inside=f"{NAME}.user_location")
    losses.drop_keys(mapping(place.get("approximate")), _PLACE, why, inside=f"{NAME}.user_location")


def _placed(options: dict[str, Any], tool: Mapping[str, Any]) -> dict[str, Any]:
    place = tool.get("user_location")
    if not is_object(place):
        return options
    within = {key: value for key, value in place.items() if key != "type"}
    return {**options, "user_location": {"type": "approximate", "approximate": within}}


def _place_of(options: Mapping[str, Any]) -> dict[str, Any]:
    place = mapping(mapping(options.get("user_location")).get("approximate"))
    found = {key: place[key] for key in _PLACE if place.get(key) is not None}
    return {"user_location": {"type": "approximate", **found}} if found else {}
