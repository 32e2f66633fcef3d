"""Search back-ends against their documented answers, and against servers that refuse, hang and lie."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router_research.web.arxiv import ArxivBackend
from smart_model_router_research.web.backend_http import BackendHttp, seconds_of
from smart_model_router_research.web.backend_kinds import GROUP, KINDS, backend_of
from smart_model_router_research.web.backends import (
    BackendCaps,
    SearchBackend,
    SearchFailed,
    SearchHit,
    SearchQuery,
    merged,
    shortened,
)
from smart_model_router_research.web.guarded_backend import GuardedBackend
from smart_model_router_research.web.recorded import RecordedBackend
from smart_model_router_research.web.searxng import SearxngBackend
from smart_model_router_research.web.tavily import TavilyBackend
from tests.own_modules import install
from tests.web_pages import Reply, Request, SmallWeb, SteppingClock, hang

FIXTURES = Path(__file__).parents[3] / "fixtures" / "research" / "search"
KEY = "tvly-canary-0123456789"
JSON = {"Content-Type": "application/json"}
MAKERS: dict[str, Callable[[str], SearchBackend]] = {
    "searxng": lambda url: SearxngBackend(url=url),
    "tavily": lambda url: TavilyBackend(api_key=KEY, url=url),
    "arxiv": lambda url: ArxivBackend(url=f"{url}/search"),
}
loopback = pytest.mark.loopback


def fixture(name: str) -> Reply:
    """Return an answer as it is documented."""
    return Reply((FIXTURES / name).read_bytes(), headers=JSON)


def asked(
    kind: str, reply: Reply | Callable[[Request], Reply], query: SearchQuery
) -> tuple[list[SearchHit], list[Request]]:
    """Return the hits of a back-end whose server answers so, and the requests that it got."""
    web = SmallWeb({"engine/search": reply})

    async def main() -> list[SearchHit]:
        async with web.serving():
            return await MAKERS[kind](web.engine).search(query)

    return asyncio.run(main()), web.requests


@loopback
def test_searxng_is_asked_for_json() -> None:
    """By its search address; hits have what it says of them."""
    found, [request] = asked("searxng", fixture("searxng.json"), SearchQuery(text="capital of Arland", language="en"))

    assert parse_qs(urlsplit(request.path).query) == {
        "q": ["capital of Arland"],
        "format": ["json"],
        "language": ["en"],
    }
    assert [hit.url for hit in found] == ["https://arland.example/facts", "https://borland.example/"]
    assert found[0] == SearchHit(
        url="https://arland.example/facts",
        title="Facts about Arland",
        snippet="The capital is Arville.",
        score=2.5,
        published="2026-05-01T00:00:00",
    )


@loopback
def test_tavily_is_asked_within_its_limits() -> None:
    """400 characters, whole words, no `site:`; domains and days in fields of their own; the key in a header alone."""
    text = "site:example.org capital of Arland " + "word " * 200
    query = SearchQuery(
        text=text, k=50, allow=("a.example",), deny=("b.example",), since="2026-01-01", until="2026-06-01"
    )
    found, [request] = asked("tavily", fixture("tavily.json"), query)
    body = json.loads(request.body)

    assert (request.method, request.path, request.headers["authorization"]) == ("POST", "/search", f"Bearer {KEY}")
    assert len(body["query"]) <= 400
    assert body["query"].startswith("capital of Arland word")
    assert body["query"].endswith("word")
    assert (body["include_domains"], body["exclude_domains"]) == (["a.example"], ["b.example"])
    assert (body["start_date"], body["end_date"], body["max_results"]) == ("2026-01-01", "2026-06-01", 20)
    assert KEY not in request.path + request.body.decode()
    assert found[0].url == "https://arland.example/facts"


@loopback
def test_arxiv_is_asked_for_the_words_that_tell() -> None:
    """Its feed becomes hits, with titles on one line and the day of the latest version."""
    query = SearchQuery(text="When does a breaker rest, and why?")
    found, [request] = asked("arxiv", fixture("arxiv.xml"), query)

    assert parse_qs(urlsplit(request.path).query)["search_query"] == ["all:breaker OR all:rest"]
    [hit] = found
    assert (hit.url, hit.title, hit.published) == (
        "https://arxiv.org/abs/0000.00001v2",
        "On breakers and their rest",
        "2026-04-02",
    )


@loopback
def test_a_query_without_a_telling_word_is_not_sent_to_arxiv() -> None:
    """It would match nothing, or everything."""
    assert asked("arxiv", fixture("arxiv.xml"), SearchQuery(text="what is it?")) == ([], [])


async def large(writer: asyncio.StreamWriter) -> None:
    """Answer with 10 MB."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
    for _ in range(100):
        writer.write(b"[" * 100_000)
        await writer.drain()


LIES = {
    "web page": Reply.page("<html><p>Sign in</p></html>"),
    "empty": Reply(""),
    "no list": Reply('{"results": {"url": "https://a.example/"}}'),
    "null": Reply("null"),
    "a number": Reply("17"),
    "deep": Reply("[" * 100_000),
    "entities": Reply('<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><feed>&b;</feed>'),
    "another feed": Reply("<rss></rss>"),
    "10 MB": Reply(raw=large),
    "error": Reply(status=500),
    "moved": Reply.moved("http://127.0.0.1:9/"),
}


@loopback
@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("kind", MAKERS)
def test_another_answer_than_hits_is_a_failure_in_words(kind: str, lie: str) -> None:
    """Typed, short, and without the key or the query."""
    with pytest.raises(SearchFailed) as caught:
        asked(kind, LIES[lie], SearchQuery(text="canary words"))

    assert caught.value.backend == kind
    assert len(str(caught.value)) < 300
    assert KEY not in str(caught.value)
    assert "canary" not in str(caught.value)


@loopback
@pytest.mark.parametrize("kind", ["searxng", "tavily"])
def test_rows_of_wrong_types_are_left_out(kind: str) -> None:
    """And a value that is none of its kind is as if it were not there."""
    rows: list[Any] = [
        17,
        None,
        {"title": "no address"},
        {"url": 17},
        {"url": ""},
        {"url": "https://a.example/", "title": ["x"], "content": {"a": 1}, "score": "high", "publishedDate": 2026},
        {"url": "http://10.0.0.1/", "score": True},
        {"url": "https://b.example/", "title": "b" * 10_000, "score": float("inf")},
    ]
    found, _ = asked(kind, Reply(json.dumps({"results": rows})), SearchQuery(text="a"))

    assert [hit.url for hit in found] == ["https://a.example/", "http://10.0.0.1/", "https://b.example/"]
    assert found[0] == SearchHit(url="https://a.example/")
    assert (len(found[2].title), found[2].score) == (300, 0.0)


@loopback
@pytest.mark.parametrize(
    ("status", "header", "retry_after", "is_lasting"),
    [
        (429, "7", 7.0, False),
        (429, "", None, False),
        (429, "soon", None, False),
        (503, "3", 3.0, False),
        (500, "3", None, False),
        (401, "", None, True),
        (432, "", None, True),
    ],
)
def test_a_refusal_says_when_to_come_again(
    status: int, header: str, retry_after: float | None, is_lasting: bool
) -> None:
    """By Retry-After, where it is a number or a date; a wrong key and a used-up plan are lasting."""
    with pytest.raises(SearchFailed) as caught:
        asked("tavily", Reply(status=status, headers={"Retry-After": header}), SearchQuery(text="a"))

    assert (caught.value.retry_after, caught.value.is_lasting) == (retry_after, is_lasting)


def test_a_date_says_when_to_come_again_too() -> None:
    """One that has been is now."""
    assert seconds_of(format_datetime(datetime(2000, 1, 1, tzinfo=UTC))) == 0.0
    assert (seconds_of(format_datetime(datetime(2999, 1, 1, tzinfo=UTC))) or 0.0) > 1e9
    assert [seconds_of(text) for text in ("nan", "inf", "", "-5")] == [None, None, None, 0.0]


@loopback
def test_searxng_without_json_says_which_setting_is_missing() -> None:
    """Instances refuse formats that are not switched on with a 403."""
    with pytest.raises(SearchFailed, match=r"search\.formats"):
        asked("searxng", Reply(status=403), SearchQuery(text="a"))


@loopback
def test_arxivs_own_error_is_told() -> None:
    """It is a feed with one entry."""
    feed = (
        '<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>http://arxiv.org/api/errors#x</id>'
        "<title>Error</title><summary>malformed query</summary></entry></feed>"
    )
    with pytest.raises(SearchFailed, match="malformed query"):
        asked("arxiv", Reply(feed), SearchQuery(text="breaker"))


@loopback
def test_a_server_that_hangs_is_given_up() -> None:
    """At the limit, here of a tenth of a second."""
    web = SmallWeb({"engine/search": Reply(raw=hang)})

    async def main() -> None:
        async with web.serving():
            await BackendHttp("slow", seconds=0.1).json("GET", f"{web.engine}/search")

    with pytest.raises(SearchFailed, match="no answer within"):
        asyncio.run(main())


@loopback
def test_no_log_and_no_text_of_an_object_has_the_key(caplog: pytest.LogCaptureFixture) -> None:
    """At any level, whatever comes of the call."""
    with caplog.at_level(logging.DEBUG):
        asked("tavily", fixture("tavily.json"), SearchQuery(text="a"))
        with pytest.raises(SearchFailed):
            asked("tavily", Reply(status=500), SearchQuery(text="a"))

    assert KEY not in caplog.text
    assert KEY not in repr(TavilyBackend(api_key=KEY))


@pytest.mark.parametrize(
    ("kind", "options", "key"),
    [
        ("searxng", {}, "backends"),
        ("searxng", {"url": "localhost:8080"}, "backends.url"),
        ("searxng", {"url": "http://user:secret@localhost/"}, "backends.url"),
        ("searxng", {"url": "http://localhost/?token=secret"}, "backends.url"),
        ("searxng", {"url": "http://localhost/", "depth": 2}, "backends"),
        ("tavily", {"api_key": ""}, "backends.api_key"),
        ("tavily", {"api_key": "a\nb"}, "backends.api_key"),
        ("serxng", {}, "backends.kind"),
        ("no.such.module:Class", {}, "backends.kind"),
        ("builtins:dict", {}, "backends.kind"),
    ],
)
def test_a_back_end_that_cannot_be_made_is_refused_by_name(kind: str, options: dict[str, str], key: str) -> None:
    """With the key that is wrong, and no secret."""
    with pytest.raises(ConfigurationError) as caught:
        backend_of(kind, options)

    assert caught.value.key == key
    assert "secret" not in str(caught.value)


def test_a_misspelt_kind_is_told_the_right_one() -> None:
    """As everywhere."""
    with pytest.raises(ConfigurationError, match="did you mean 'searxng'"):
        backend_of("serxng", {})


OWN = """
from smart_model_router_research.web.backends import BackendCaps, SearchHit

class Own:
    name = "own"
    caps = BackendCaps(exposure="local")
    def __init__(self, depth=1):
        self.depth = depth
    async def search(self, query):
        return [SearchHit(url="https://a.example/")]
"""


def test_a_back_end_of_ones_own_is_found_by_its_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or by its import path; one that cannot be imported is refused."""
    entries = {"own": "own_web:Own", "broken": "broken_web:Own"}
    install(tmp_path, monkeypatch, name="web", source=OWN, group=GROUP, entries=entries)

    assert asyncio.run(backend_of("own", {"depth": 2}).search(SearchQuery(text="a"))) == [
        SearchHit(url="https://a.example/")
    ]
    assert backend_of("own_web:Own", {}).name == "own"
    with pytest.raises(ConfigurationError, match="RuntimeError"):
        backend_of("broken", {})


def test_every_shipped_kind_can_be_made() -> None:
    """Under the name that is given."""
    options = {"searxng": {"url": "http://localhost/"}, "tavily": {"api_key": "k"}, "arxiv": {}, "recorded": {}}
    assert {kind: backend_of(kind, {**options[kind], "name": "mine"}).name for kind in KINDS} == dict.fromkeys(
        KINDS, "mine"
    )


def test_recorded_searches_are_replayed(tmp_path: Path) -> None:
    """From a file, whatever the case and white space of the text; a file that is none is refused."""
    file = tmp_path / "searches.json"
    file.write_text('{"Capital of  Arland": [{"url": "https://a.example/", "title": "A"}]}')

    async def main(file: Path, text: str) -> list[SearchHit]:
        return await RecordedBackend(file=str(file)).search(SearchQuery(text=text))

    assert asyncio.run(main(file, "capital of arland")) == [SearchHit(url="https://a.example/", title="A")]
    assert asyncio.run(main(file, "another text")) == []
    for text in ("[]", '{"a": 1}', "{"):
        file.write_text(text)
        with pytest.raises(ConfigurationError):
            asyncio.run(main(file, "a"))


class Scripted:
    """A back-end that does one thing after another."""

    name = "scripted"
    caps = BackendCaps(max_query_chars=20)

    def __init__(self, *script: Exception | list[SearchHit]) -> None:
        self.script = list(script)
        self.asked: list[str] = []

    async def search(self, query: SearchQuery) -> list[SearchHit]:
        """Return or raise what comes next."""
        self.asked.append(query.text)
        now = self.script.pop(0)
        if isinstance(now, Exception):
            raise now
        return now


def outcomes(backend: Scripted, clock: SteppingClock, count: int, between: float = 0.0) -> list[str]:
    """Return what so many searches come to, with some seconds between them."""

    async def main() -> list[str]:
        guarded, found = GuardedBackend(backend, clock), list[str]()
        for _ in range(count):
            try:
                found.append(str(len(await guarded.search(SearchQuery(text="one two three four five six")))))
            except SearchFailed as error:
                found.append(error.reason)
            clock.instant += between
        return found

    return asyncio.run(main())


def failure(**facts: Any) -> SearchFailed:
    """Return a failure of the back-end."""
    return SearchFailed("scripted", "down", **facts)


def test_after_three_failures_a_back_end_rests() -> None:
    """For half a minute, in which it is not asked; then one call shows how it stands."""
    backend = Scripted(failure(), RuntimeError("?"), failure(), [], [])

    assert outcomes(backend, SteppingClock(), 6, between=10.0)[3:] == [
        "rests for 20 s more (down)",
        "rests for 10 s more (down)",
        "0",
    ]
    assert len(backend.asked) == 4


def test_a_short_wait_that_is_asked_for_is_waited_out() -> None:
    """And the query is asked once more; a longer wait is a rest."""
    clock = SteppingClock()
    assert outcomes(Scripted(failure(retry_after=7.0), []), clock, 1) == ["0"]
    assert clock.waits == [7.0]
    assert outcomes(Scripted(failure(retry_after=60.0)), SteppingClock(), 2) == ["down", "rests for 60 s more (down)"]


def test_a_wrong_key_is_not_tried_again() -> None:
    """For an hour."""
    assert outcomes(Scripted(failure(is_lasting=True)), SteppingClock(), 2) == ["down", "rests for 3600 s more (down)"]


def test_a_query_is_cut_to_what_a_back_end_takes() -> None:
    """In whole words."""
    backend = Scripted([])
    outcomes(backend, SteppingClock(), 1)

    assert backend.asked == ["one two three four"]
    assert [shortened(text, 5) for text in ("a  b", "abcdefg", "ab cdef", "abcde f")] == ["a b", "abcde", "ab", "abcde"]


def test_what_a_plug_in_gives_beside_hits_is_left_out() -> None:
    """And more hits than were asked for."""
    rows: Any = ["https://a.example/", None, *[SearchHit(url=f"https://a.example/{n}") for n in range(20)]]
    assert outcomes(Scripted(rows), SteppingClock(), 1) == ["10"]


def test_calls_of_arxiv_are_three_seconds_apart() -> None:
    """As its terms ask, also where two searches come at once."""
    clock = SteppingClock()
    backend = Scripted([], [], [])
    backend.caps = ArxivBackend.caps

    async def main() -> None:
        guarded = GuardedBackend(backend, clock)
        await asyncio.gather(*(guarded.search(SearchQuery(text="a")) for _ in range(3)))

    asyncio.run(main())
    assert clock.waits == [3.0, 3.0]


def test_hits_of_several_back_ends_take_turns() -> None:
    """The first of each comes before the second of any."""
    one, other = (
        [SearchHit(url=f"https://{name}.example/{n}") for n in range(count)] for name, count in (("a", 3), ("b", 1))
    )
    assert [hit.url[8:9] + hit.url[-1] for hit in merged([one, other])] == ["a0", "b0", "a1", "a2"]
    assert merged([]) == []
