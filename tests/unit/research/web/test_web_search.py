"""The web as a source: hits become documents, each address is fetched once, and only where something named it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import TypeVar

import pytest

from smart_model_router_research.deep.found_answers import ReadDocument
from smart_model_router_research.deep.readers import ReadingContext
from smart_model_router_research.deep.tiers import SourcePolicy
from smart_model_router_research.web.backends import BackendCaps, SearchFailed, SearchHit, SearchQuery
from smart_model_router_research.web.fetch_rules import FetchRefusal
from smart_model_router_research.web.guarded_backend import GuardedBackend
from smart_model_router_research.web.pages import MOST_REFUSALS, WebPages
from smart_model_router_research.web.recorded import RecordedBackend
from smart_model_router_research.web.web_search import SeedSearch, WebSearch
from tests.pdf_files import pdf
from tests.web_pages import Reply, SmallWeb, SteppingClock

pytestmark = pytest.mark.loopback
T = TypeVar("T")
AS_OF = datetime(2026, 7, 1, tzinfo=UTC)
TEXT = "capital of Arland"
META = '<meta property="article:published_time" content="2026-05-01">'
ARLAND = Reply.page(
    f"<html><head><title>Arland</title>{META}</head><body><p>The capital of Arland is Arville.</p></body>"
)


class Failing:
    """A back-end that is down."""

    name = "down"
    caps = BackendCaps()

    async def search(self, query: SearchQuery) -> list[SearchHit]:
        """Raise."""
        del query
        raise SearchFailed("down", "it answers 500")


def hits(*urls: str) -> list[SearchHit]:
    """Return hits with these addresses."""
    return [SearchHit(url=url) for url in urls]


def pages_of(web: SmallWeb, policy: SourcePolicy | None = None, most: int = 100) -> WebPages:
    """Return the pages of a run over a web."""
    return WebPages(web.fetcher(), ReadingContext(as_of=AS_OF, policy=policy or SourcePolicy()), most=most)


def searching(pages: WebPages, *backends: RecordedBackend | Failing) -> WebSearch:
    """Return a search with these back-ends."""
    clock = SteppingClock()
    return WebSearch([GuardedBackend(each, clock) for each in backends], pages, SearchQuery(text=""))


def recorded(*urls: str, text: str = TEXT, name: str = "recorded") -> RecordedBackend:
    """Return a back-end with hits for one text."""
    return RecordedBackend(searches={text: hits(*urls)}, name=name)


def within(web: SmallWeb, work: Callable[[], Awaitable[T]]) -> T:
    """Do something while a web is served."""

    async def main() -> T:
        async with web.serving():
            return await work()

    return asyncio.run(main())


def urls_of(documents: Sequence[ReadDocument]) -> list[str]:
    """Return the addresses of documents."""
    return [each.stored.url for each in documents]


def test_a_hit_becomes_a_document_with_what_its_page_says() -> None:
    """Text, title, day, publisher and tier are those of the page and the rules, nothing is the back-end's."""
    web = SmallWeb({"www.arland.gov/facts": ARLAND})
    backend = RecordedBackend(
        searches={TEXT: [SearchHit(url="http://www.arland.gov/facts#x", title="Click here", published="2030-01-01")]}
    )
    search = searching(pages_of(web), backend)
    [found] = within(web, lambda: search.search(TEXT))
    stored, diary = found.stored, search.diary()

    assert (stored.id, stored.url, stored.title) == (
        "http://www.arland.gov/facts",
        "http://www.arland.gov/facts",
        "Arland",
    )
    assert stored.text.strip() == "The capital of Arland is Arville."
    assert (stored.publisher, stored.domain, stored.tier.value, stored.backend) == (
        "arland.gov",
        "arland.gov",
        "A",
        "recorded",
    )
    assert stored.published is not None
    assert stored.published.day == "2026-05-01"
    assert stored.is_unchanged
    assert [(each.backend, each.query, each.url) for each in diary.hits] == [
        ("recorded", TEXT, "http://www.arland.gov/facts#x")
    ]


def test_the_first_pages_are_read_and_the_next_takes_the_place_of_one_that_is_refused() -> None:
    """Four of ten hits, in their order; the diary has the reason of each that is not there."""
    web = SmallWeb({f"a.example/{n}": ARLAND for n in (1, 2, 4, 5, 6)})
    search = searching(pages_of(web), recorded(*(f"http://a.example/{n}" for n in range(1, 8))))
    found = within(web, lambda: search.search(TEXT))

    assert urls_of(found) == [f"http://a.example/{n}" for n in (1, 2, 4, 5)]
    assert search.diary().refused == {"http://a.example/3": "status: it answers 404"}


def test_an_identical_search_and_address_comes_from_what_is_known() -> None:
    """Also one that was refused, or that another text found."""
    web = SmallWeb({"a.example/1": ARLAND})
    backend = RecordedBackend(searches={each: hits("http://a.example/1", "http://a.example/2") for each in (TEXT, "b")})
    search = searching(pages_of(web), backend)

    async def main() -> None:
        for text in (TEXT, f"  {TEXT}", "b"):
            await search.search(text)
            await search.search(text, 40)

    within(web, main)
    assert backend.asked == [TEXT, "b"]
    assert web.urls == ["a.example/1", "a.example/2"]


def test_one_address_that_several_back_ends_find_is_fetched_once() -> None:
    """However it is spelled."""
    web = SmallWeb({"a.example/1": ARLAND})
    search = searching(
        pages_of(web), recorded("http://a.example/1", name="one"), recorded("http://A.example:80/1#x", name="two")
    )

    assert urls_of(within(web, lambda: search.search(TEXT))) == ["http://a.example/1"]
    assert web.urls == ["a.example/1"]


def test_a_back_end_that_fails_costs_only_its_own_hits() -> None:
    """And is named; where none answers the search fails with all their reasons."""
    web = SmallWeb({"a.example/1": ARLAND})
    search = searching(pages_of(web), Failing(), recorded("http://a.example/1"))

    assert len(within(web, lambda: search.search(TEXT))) == 1
    assert dict(search.diary().failures) == {"down: it answers 500": 1}
    with pytest.raises(SearchFailed, match=r"no back-end answers: down: it answers 500"):
        asyncio.run(searching(pages_of(web), Failing()).search(TEXT))


def test_an_address_without_provenance_is_not_fetched() -> None:
    """X8: only a hit, a seed, or a visible link of a page that was fetched."""
    shown, hidden = "http://linked.example/", "http://hidden.example/"
    page = (
        f'<p>The capital of Arland is Arville. <a class="x" href="{shown}">More</a> http://written.example/</p>'
        f'<div style="display:none"><a href="{hidden}">secret</a></div><!-- <a href="http://comment.example/">x</a> -->'
        '<a href="/relative?a=1&amp;b=2">there</a>'
    )
    web = SmallWeb({"a.example/1": Reply.page(page), "linked.example/": ARLAND, "a.example/relative": ARLAND})
    pages = pages_of(web)
    search = searching(pages, recorded("http://a.example/1"))

    async def main() -> dict[str, bool]:
        asked = [
            shown,
            hidden,
            "http://written.example/",
            "http://comment.example/",
            "http://a.example/relative?a=1&b=2",
        ]
        assert await pages.document(shown) is None
        await search.search(TEXT)
        return {url: await pages.document(url) is not None for url in asked[1:]}

    assert within(web, main) == {
        hidden: False,
        "http://written.example/": False,
        "http://comment.example/": False,
        "http://a.example/relative?a=1&b=2": True,
    }
    assert web.urls == ["a.example/1", "a.example/relative?a=1&b=2"]
    assert search.diary().kinds[FetchRefusal.PROVENANCE] == 4


def test_a_page_that_could_not_be_cited_is_not_fetched() -> None:
    """Tier C by the rules or the operator: its reason is in the diary."""
    web = SmallWeb({"a.example/1": ARLAND})
    policy = SourcePolicy(block=("blocked.example",))
    search = searching(
        pages_of(web, policy), recorded("http://www.quora.com/1", "http://x.blocked.example/", "http://a.example/1")
    )

    assert urls_of(within(web, lambda: search.search(TEXT))) == ["http://a.example/1"]
    assert {url: reason.partition(":")[0] for url, reason in search.diary().refused.items()} == {
        "http://www.quora.com/1": "blocked",
        "http://x.blocked.example/": "blocked",
    }
    assert web.urls == ["a.example/1"]


def test_hits_that_lead_inside_are_refused_and_counted() -> None:
    """Whatever a back-end answers: after fifty of them the run fetches nothing more."""
    inside = [f"http://10.0.0.{n}/" for n in range(1, MOST_REFUSALS + 1)]
    searches = {str(at): hits(*inside[at : at + 10]) for at in range(0, MOST_REFUSALS, 10)}
    web = SmallWeb({"a.example/1": ARLAND}, {f"10.0.0.{n}": [f"10.0.0.{n}"] for n in range(1, MOST_REFUSALS + 1)})
    search = searching(pages_of(web), RecordedBackend(searches={**searches, TEXT: hits("http://a.example/1")}))

    async def main() -> list[ReadDocument]:
        for text in searches:
            assert await search.search(text) == []
        return await search.search(TEXT)

    assert within(web, main) == []
    kinds = search.diary().kinds
    assert (kinds[FetchRefusal.ADDRESS], kinds[FetchRefusal.OFF]) == (MOST_REFUSALS, 1)
    assert web.requests == []


def test_forty_nine_refusals_do_not_turn_fetching_off() -> None:
    """Nor do pages that are not there."""
    web = SmallWeb({"a.example/1": ARLAND}, {"inside.example": ["10.0.0.1"]})
    pages = pages_of(web, most=1_000)
    gone = [f"http://a.example/gone{n}" for n in range(10)]
    inside = [f"http://inside.example/{n}" for n in range(MOST_REFUSALS - 1)]
    for url in (*gone, *inside, "http://a.example/1"):
        pages.vouch(url, "recorded")

    async def main() -> ReadDocument | None:
        for url in (*gone, *inside):
            await pages.document(url)
        return await pages.document("http://a.example/1")

    assert within(web, main) is not None


def test_the_limit_of_fetches_holds_on_the_network() -> None:
    """The pages that it kept away are named, and count as no security refusal."""
    web = SmallWeb({f"a.example/{n}": ARLAND for n in range(4)})
    search = searching(pages_of(web, most=2), recorded(*(f"http://a.example/{n}" for n in range(4))))

    assert urls_of(within(web, lambda: search.search(TEXT))) == ["http://a.example/0", "http://a.example/1"]
    assert search.diary().unfetched == {"http://a.example/2", "http://a.example/3"}
    assert len(web.urls) == 2


LATIN = Reply("caf\xe9 in Arville".encode("latin-1"), headers={"Content-Type": "text/plain; charset=utf-8"})


@pytest.mark.parametrize(
    ("reply", "text", "note"),
    [
        (LATIN, "in Arville", "charset"),
        (Reply("# Arville\n\nplain", headers={"Content-Type": "text/markdown"}), "plain", ""),
        (Reply('{"capital": "Arville"}', headers={"Content-Type": "application/json"}), "Arville", ""),
        (Reply(pdf("The capital: Arville."), headers={"Content-Type": "application/pdf"}), "The capital: Arville.", ""),
    ],
    ids=["lying charset", "Markdown", "JSON", "PDF"],
)
def test_every_kind_of_content_is_read(reply: Reply, text: str, note: str) -> None:
    """A charset that lies is read all the same, and noted."""
    web = SmallWeb({"a.example/1": reply})
    search = searching(pages_of(web), recorded("http://a.example/1"))
    [found] = within(web, lambda: search.search(TEXT))

    assert text in found.stored.text
    assert note in " ".join(search.diary().notes.get(found.stored.id, ()))


@pytest.mark.parametrize(
    "reply",
    [
        Reply.page(""),
        Reply.page("<script>alert(1)</script>"),
        Reply(b"%PDF-1.4 broken", headers={"Content-Type": "application/pdf"}),
    ],
    ids=["empty", "script", "broken PDF"],
)
def test_a_page_without_text_is_refused_as_such(reply: Reply) -> None:
    """It is no document, and no error."""
    web = SmallWeb({"a.example/1": reply})
    search = searching(pages_of(web), recorded("http://a.example/1"))

    assert within(web, lambda: search.search(TEXT)) == []
    assert search.diary().kinds == {"unreadable": 1}


def test_seeds_are_fetched_once_and_searched_by_their_words() -> None:
    """They have provenance by themselves; those that cannot be read are named."""
    web = SmallWeb(
        {
            "a.example/1": ARLAND,
            "b.example/2": Reply.page("<p>The tide of Borland is high. Its water is cold in any winter.</p>"),
        }
    )
    seeds = SeedSearch(
        ["http://a.example/1", "http://A.example/1#x", "http://b.example/2", "http://b.example/3"], pages_of(web)
    )

    async def main() -> list[list[str]]:
        return [urls_of(await seeds.search(text)) for text in (TEXT, "tide of Borland", "nothing else")]

    assert within(web, main) == [["http://a.example/1"], ["http://b.example/2"], []]
    assert sorted(web.urls) == ["a.example/1", "b.example/2", "b.example/3"]
    assert seeds.diary().refused == {"http://b.example/3": "status: it answers 404"}


def test_seeds_of_which_none_can_be_read_are_a_failure() -> None:
    """And not an empty answer."""
    web = SmallWeb()
    with pytest.raises(SearchFailed, match="none of 1 addresses"):
        within(web, lambda: SeedSearch(["http://a.example/1"], pages_of(web)).search(TEXT))
