"""Tools that run at a provider: web search and its citations are translated, all others as the configuration says.

Chat's own word for a web search is `web_search_options`, which few models take. Between two other dialects it holds
whatever they say of a search; a Chat target is not sent it.

Chat counts the characters of a whole answer, Responses those of one part, Messages cites a block of text as a whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smart_model_router.wires.translate.reasoning import SEAL
from smart_model_router.wires.values import count, is_object, items, mapping, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_model_router.wires.translate.translation import Losses, Terms

OPTIONS = "web_search_options"
NAME = "web_search"
LEFT_OUT = "a search that was made is left out of the conversation, its results are kept by the provider that made it"
SOURCES = "web_search_call.action.sources"
"""The value of `include` with which a request of Responses asks for the results of a search."""
SEARCHES = "web_searches"
"""Where a Chat answer between two dialects holds the searches that were made for it."""

_HOSTED = (
    "web_search web_fetch file_search code_interpreter code_execution image_generation mcp tool_search advisor".split()
)
"""The beginnings of the types of tools that their provider runs; those that a client runs itself are always refused."""
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
    """Return whether a tool of this type runs at the provider."""
    return isinstance(kind, str) and kind.startswith(tuple(_HOSTED))


def is_search(kind: object) -> bool:
    """Return whether a tool of this type, in Responses or Messages, is a web search."""
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


SEARCH_ID = "srvtoolu_smr_"
"""The beginning of the id of a search that Messages itself did not make; outgoing.py takes it out again."""
LATE = "dropped from the answer: it came when its text was complete"
_KIND = "url_citation"
_WEB = "web_search_result_location"
_DROPPED = "dropped from the answer, Chat has no place for them"


def chat_citation(start: int, end: int, url: str, title: str) -> dict[str, Any]:
    """A citation as Chat has it; places are characters of the whole answer."""
    place = {"start_index": start, "end_index": end, "url": url, "title": title}
    return {"type": _KIND, _KIND: place}


def from_messages(citation: Mapping[str, Any], start: int, end: int, losses: Losses) -> list[dict[str, Any]]:
    """A citation of a block of text that stands from `start` to `end`; none, and lost, when it is not of the web."""
    if citation.get("type") != _WEB or not text(citation.get("url")):
        losses.drop("citations", _DROPPED)
        return []
    return [chat_citation(start, end, citation["url"], text(citation.get("title")))]


def from_responses(annotation: Mapping[str, Any], before: int, losses: Losses) -> list[dict[str, Any]]:
    """An annotation of a part that `before` characters precede; none, and lost, when it is not of the web."""
    if annotation.get("type") != _KIND or not text(annotation.get("url")):
        losses.drop("annotations", _DROPPED)
        return []
    start, end = (before + (count(annotation.get(key)) or 0) for key in ("start_index", "end_index"))
    return [chat_citation(start, end, annotation["url"], text(annotation.get("title")))]


def to_responses(annotations: object, before: int = 0) -> list[dict[str, Any]]:
    """Chat's citations as annotations of a part that `before` characters precede."""
    found = []
    for held in _held(annotations):
        places = {key: max(0, (count(held.get(key)) or 0) - before) for key in ("start_index", "end_index")}
        found.append({"type": _KIND, **places, "url": text(held.get("url")), "title": text(held.get("title"))})
    return found


def to_messages(annotation: object, said: str, before: int = 0) -> list[dict[str, Any]]:
    """Chat's citation as one of a Messages block that says `said`. Only Messages itself can sign its place."""
    found = []
    for held in _held([annotation]):
        start, end = ((count(held.get(key)) or 0) - before for key in ("start_index", "end_index"))
        cited = said[max(0, start) : max(0, end)][:150]
        named = {"url": text(held.get("url")), "title": text(held.get("title"))}
        found.append({"type": _WEB, "cited_text": cited, "encrypted_index": SEAL, **named})
    return found


def place_of(annotation: object) -> int:
    """Where Chat's citation begins."""
    return next((count(held.get("start_index")) or 0 for held in _held([annotation])), 0)


def search_of_messages(block: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """A search that Messages made, as Chat holds it between two dialects."""
    return {"id": text(block.get("id")), "query": text(given.get("query")), "sources": [], "failed": False}


def add_results(search: dict[str, Any], content: object) -> None:
    """Add the results of a search of Messages."""
    if mapping(content):
        search["failed"] = True
    search["sources"] = [text(mapping(result).get("url")) for result in items(content)]


def search_of_responses(item: Mapping[str, Any]) -> dict[str, Any]:
    """A search that Responses made, as Chat holds it between two dialects."""
    action = mapping(item.get("action"))
    queries = [text(query) for query in items(action.get("queries"))]
    sources = [text(mapping(source).get("url")) for source in items(action.get("sources"))]
    query = text(action.get("query")) or "; ".join(queries) or text(action.get("url"))
    return {"id": text(item.get("id")), "query": query, "sources": sources, "failed": item.get("status") == "failed"}


def search_item(made: str, search: Mapping[str, Any], *, sources: bool) -> dict[str, Any]:
    """The search as an item of Responses. `sources`: the client asked to be told what it found."""
    action: dict[str, Any] = {
        "type": "search",
        "query": text(search.get("query")),
        "queries": [text(search.get("query"))],
    }
    if sources:
        action["sources"] = [{"type": "url", "url": url} for url in items(search.get("sources"))]
    status = "failed" if search.get("failed") is True else "completed"
    return {"id": made, "type": "web_search_call", "status": status, "action": action}


def search_blocks(search: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The search as two blocks of Messages: that it was made, and what it found, as far as that is known."""
    made = f"{SEARCH_ID}{_bare(search)}"
    found: Any = [
        {"type": "web_search_result", "url": url, "title": url, "encrypted_content": SEAL, "page_age": None}
        for url in items(search.get("sources"))
    ]
    if search.get("failed") is True:
        found = {"type": "web_search_tool_result_error", "error_code": "unavailable"}
    caller = {"type": "direct"}
    asked = {"query": text(search.get("query"))}
    return [
        {"type": "server_tool_use", "id": made, "name": "web_search", "input": asked, "caller": caller},
        {"type": "web_search_tool_result", "tool_use_id": made, "content": found, "caller": caller},
    ]


def _bare(search: Mapping[str, Any]) -> str:
    found = text(search.get("id"))
    return found.removeprefix("ws_").removeprefix(SEARCH_ID).removeprefix("srvtoolu_")


def _held(annotations: object) -> list[Mapping[str, Any]]:
    found = (mapping(one) for one in items(annotations))
    return [mapping(one.get(_KIND)) for one in found if one.get("type") == _KIND]
