"""Citations of the web and the searches behind them, in answers: all three dialects share Chat's `url_citation`.

Chat counts the characters of a whole answer, Responses those of one part, Messages cites a block of text as a whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smart_model_router.wires.translate.reasoning import SEAL
from smart_model_router.wires.values import count, items, mapping, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_model_router.wires.translate.losses import Losses

SEARCH_ID = "srvtoolu_smr_"
"""How the id of a search begins that Messages itself did not make; own.py takes it out again."""
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
    """What a search of Messages found."""
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
