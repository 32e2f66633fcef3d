"""Fetching over real sockets: from public addresses alone, once resolved, within limits, by the rules of hosts."""

from __future__ import annotations

import asyncio
import gzip
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from smart_model_router_research.web.fetch_rules import FetchedPage, FetchRefusal, FetchRefused
from smart_model_router_research.web.fetcher import SafeFetcher, system_addresses
from tests.certificates import serving_loopback
from tests.web_pages import PUBLIC, Reply, Request, SmallWeb, SteppingClock, hang

pytestmark = pytest.mark.loopback
HELLO = Reply.page("<p>Hello</p>")


def fetched(web: SmallWeb, url: str, fetcher: SafeFetcher | None = None) -> FetchedPage:
    """Return a page of the web."""

    async def main() -> FetchedPage:
        async with web.serving():
            return await (fetcher or web.fetcher()).fetch(url)

    return asyncio.run(main())


def refused(web: SmallWeb, url: str, fetcher: SafeFetcher | None = None) -> FetchRefusal:
    """Return why a page of the web is refused."""
    with pytest.raises(FetchRefused) as caught:
        fetched(web, url, fetcher)
    return caught.value.refusal


def test_a_page_is_fetched_from_the_address_that_was_checked() -> None:
    """Resolved once for the rules of its host and once for it; the host's name goes along, and nothing else does."""
    web = SmallWeb({"example.org/a?b=c": HELLO})
    found = fetched(web, "http://example.org/a?b=c#d")

    assert (found.url, found.content) == ("http://example.org/a?b=c", b"<p>Hello</p>")
    assert web.resolved == ["example.org", "example.org"]
    assert set(web.dialled) == {(PUBLIC, 80)}
    [robots, page] = web.requests
    assert robots.path == "/robots.txt"
    assert set(page.headers) == {"host", "user-agent", "accept", "accept-encoding", "connection"}


def test_a_second_answer_of_the_resolver_is_never_used() -> None:
    """A name that turns private is refused when it is resolved again; what is connected to is what was checked."""
    answers = [[PUBLIC], [PUBLIC], ["127.0.0.1"], ["127.0.0.1"]]
    web = SmallWeb({"turning.example/": HELLO}, {"turning.example": lambda: answers.pop(0)})

    async def main() -> list[str]:
        told: list[str] = []
        async with web.serving():
            fetcher = web.fetcher()
            for _ in range(2):
                try:
                    told.append((await fetcher.fetch("http://turning.example/")).url)
                except FetchRefused as error:
                    told.append(error.refusal)
        return told

    assert asyncio.run(main()) == ["http://turning.example/", FetchRefusal.ADDRESS]
    assert {address for address, _ in web.dialled} == {PUBLIC}


@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"],
        ["10.0.0.1"],
        ["169.254.169.254"],
        ["::1"],
        ["fd00:ec2::254"],
        [PUBLIC, "127.0.0.1"],
        ["fe80::1%1"],
    ],
    ids=",".join,
)
def test_a_name_with_any_address_inside_is_refused(addresses: list[str]) -> None:
    """Each address that it resolves to is checked, and nothing is connected to."""
    web = SmallWeb({"example.org/": HELLO}, {"example.org": addresses})

    assert refused(web, "http://example.org/") is FetchRefusal.ADDRESS
    assert (web.requests, web.dialled) == ([], [])


@pytest.mark.parametrize(
    "host",
    (
        "127.0.0.1 2130706433 0x7f000001 0x7f.1 0177.0.0.1 127.1 0 localhost LOCALHOST "
        "[::1] [::ffff:127.0.0.1] [::ffff:7f00:1] [0:0:0:0:0:0:0:1]"
    ).split(),
)
def test_another_spelling_of_this_machine_falls_by_what_it_resolves_to(host: str) -> None:
    """By the system's own resolver: whatever it makes of the text is refused, and nothing is sent."""
    web = SmallWeb()

    async def main() -> FetchRefusal:
        async with web.serving():
            fetcher = SafeFetcher(SteppingClock(), dial=lambda address, _: (address, web.port))
            with pytest.raises(FetchRefused) as caught:
                await fetcher.fetch(f"http://{host}/")
            return caught.value.refusal

    assert asyncio.run(main()) in (FetchRefusal.ADDRESS, FetchRefusal.MALFORMED)
    assert web.requests == []


def test_the_resolver_of_the_system_gives_addresses() -> None:
    """The name of this machine has its loopback addresses, which the rules then refuse."""
    assert set(asyncio.run(system_addresses("localhost", 80))) <= {"127.0.0.1", "::1"}


def test_the_client_connects_to_nothing_that_was_not_checked() -> None:
    """Not even where it reads a host as an address by itself: here the resolver says otherwise than the text."""
    web = SmallWeb({"127.0.0.1/": HELLO}, {"127.0.0.1": [PUBLIC]})

    async def main() -> FetchRefusal:
        async with web.serving():
            fetcher = SafeFetcher(SteppingClock(), resolve=web.resolve, dial=lambda address, _: (address, web.port))
            with pytest.raises(FetchRefused) as caught:
                await fetcher.fetch("http://127.0.0.1/")
            return caught.value.refusal

    assert asyncio.run(main()) is FetchRefusal.ADDRESS
    assert web.requests == []


def test_a_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor a `.netrc`: a proxy would resolve the name again."""
    web = SmallWeb({"example.org/": HELLO})
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/")

    assert fetched(web, "http://example.org/").content == b"<p>Hello</p>"


def test_no_cookie_and_no_referrer_is_sent_on() -> None:
    """Across redirects and later pages of a host."""
    set_cookie = {"Set-Cookie": "id=1; Path=/"}
    web = SmallWeb(
        {
            "example.org/a": Reply(status=302, headers={"Location": "/b", **set_cookie}),
            "example.org/b": Reply("<p>b", headers=set_cookie),
        }
    )

    async def main() -> None:
        async with web.serving():
            fetcher = web.fetcher()
            await fetcher.fetch("http://example.org/a")
            await fetcher.fetch("http://example.org/b")

    asyncio.run(main())
    assert not any({"cookie", "referer", "authorization"} & set(each.headers) for each in web.requests)
    assert web.urls == ["example.org/a", "example.org/b", "example.org/b"]


def test_tls_is_asked_for_by_name(tmp_path: Path) -> None:
    """The name of the host is in SNI and in Host, although its address is connected to."""
    web = SmallWeb({"example.org/": HELLO})
    client = ssl.create_default_context()
    client.check_hostname = False
    client.verify_mode = ssl.CERT_NONE

    async def main() -> FetchedPage:
        async with web.serving(serving_loopback(tmp_path)):
            return await web.fetcher(tls=client).fetch("https://example.org/")

    assert asyncio.run(main()).content == b"<p>Hello</p>"
    assert set(web.server_names) == {"example.org"}
    assert {each.host for each in web.requests} == {"example.org"}


def test_a_certificate_of_another_host_is_refused(tmp_path: Path) -> None:
    """As browsers do. Nothing is asked for."""
    web = SmallWeb({"example.org/": HELLO})

    async def main() -> None:
        async with web.serving(serving_loopback(tmp_path)):
            await web.fetcher().fetch("https://example.org/")

    with pytest.raises(FetchRefused) as caught:
        asyncio.run(main())
    assert caught.value.refusal is FetchRefusal.CONNECTION
    assert web.requests == []


@pytest.mark.parametrize(
    ("location", "refusal"),
    [
        ("http://inside.example/", FetchRefusal.ADDRESS),
        ("http://127.0.0.1/", FetchRefusal.ADDRESS),
        ("http://example.org:8080/", FetchRefusal.PORT),
        ("http://user:secret@example.org/", FetchRefusal.CREDENTIALS),
        ("ftp://example.org/", FetchRefusal.SCHEME),
        ("file:///etc/passwd", FetchRefusal.SCHEME),
        ("http://[", FetchRefusal.MALFORMED),
        ("//inside.example/x", FetchRefusal.ADDRESS),
    ],
)
def test_each_redirect_is_checked_again(location: str, refusal: FetchRefusal) -> None:
    """Its address, port and scheme, and what its host resolves to."""
    inside = {"inside.example": ["10.0.0.1"], "127.0.0.1": ["127.0.0.1"]}
    web = SmallWeb({"example.org/": Reply.moved(location)}, dict(inside))

    assert refused(web, "http://example.org/") is refusal
    assert web.urls == ["example.org/"]


def test_five_redirects_are_followed_and_no_sixth() -> None:
    """The page's address is the last one."""
    pages: dict[str, Reply | Callable[[Request], Reply]] = {
        f"example.org/{n}": Reply.moved(f"/{n + 1}") for n in range(6)
    }
    web = SmallWeb({**pages, "example.org/6": HELLO})

    assert fetched(web, "http://example.org/1").url == "http://example.org/6"
    assert refused(web, "http://example.org/0") is FetchRefusal.REDIRECTS


def test_the_operators_word_holds_for_redirects() -> None:
    """A blocked address is not asked for, whichever way it is reached."""
    web = SmallWeb({"example.org/": Reply.moved("http://blocked.example/"), "blocked.example/": HELLO})

    async def main() -> None:
        async with web.serving():
            await web.fetcher().fetch("http://example.org/", lambda url: "blocked" if "blocked.example" in url else "")

    with pytest.raises(FetchRefused) as caught:
        asyncio.run(main())
    assert caught.value.refusal is FetchRefusal.POLICY
    assert web.urls == ["example.org/"]


async def endless(writer: asyncio.StreamWriter) -> None:
    """Send a page without an end."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")
    while not writer.is_closing():
        writer.write(b"<p>more</p>" * 10_000)
        await writer.drain()


async def slow(writer: asyncio.StreamWriter) -> None:
    """Send the beginning of a page, and then nothing."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>")
    await hang(writer)


async def cut(writer: asyncio.StreamWriter) -> None:
    """Send less than was promised."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 100\r\n\r\n<p>")


async def nonsense(writer: asyncio.StreamWriter) -> None:
    """Send what is no HTTP."""
    writer.write(b"220 mail.example ESMTP\r\n\r\n")


async def long_header(writer: asyncio.StreamWriter) -> None:
    """Send a header of a megabyte."""
    writer.write(b"HTTP/1.1 200 OK\r\nX: " + b"a" * 1_000_000 + b"\r\n\r\n")


ZIP_BOMB = Reply(gzip.compress(bytes(30_000_000)), headers={"Content-Encoding": "gzip", "Content-Type": "text/html"})


@pytest.mark.parametrize(
    ("reply", "refusal"),
    [
        (Reply(raw=endless), FetchRefusal.SIZE),
        (Reply(bytes(6_000_000), headers={"Content-Type": "text/plain"}), FetchRefusal.SIZE),
        (ZIP_BOMB, FetchRefusal.UNPACKED),
        (Reply(b"x", headers={"Content-Encoding": "br", "Content-Type": "text/html"}), FetchRefusal.ENCODING),
        (Reply(b"x", headers={"Content-Encoding": "gzip", "Content-Type": "text/html"}), FetchRefusal.ENCODING),
        (Reply(b"x", headers={"Content-Type": "application/zip"}), FetchRefusal.TYPE),
        (Reply(b"x", headers={"Content-Type": "image/png"}), FetchRefusal.TYPE),
        (Reply(b"x", status=404), FetchRefusal.STATUS),
        (Reply(b"x", status=500), FetchRefusal.STATUS),
        (Reply(b"x", status=206), FetchRefusal.STATUS),
        (Reply(status=302), FetchRefusal.STATUS),
        (Reply(raw=cut), FetchRefusal.CONNECTION),
        (Reply(raw=nonsense), FetchRefusal.CONNECTION),
        (Reply(raw=long_header), FetchRefusal.CONNECTION),
    ],
)
def test_an_answer_beyond_its_limits_is_refused(reply: Reply, refusal: FetchRefusal) -> None:
    """By a reason that is typed, whatever the server does."""
    assert refused(SmallWeb({"example.org/": reply}), "http://example.org/") is refusal


@pytest.mark.parametrize("raw", [hang, slow])
def test_a_server_that_hangs_is_given_up(raw: Callable[[asyncio.StreamWriter], object]) -> None:
    """At the limit, here of a tenth of a second."""
    web = SmallWeb({"example.org/": Reply(raw=raw)})  # type: ignore[arg-type]

    assert refused(web, "http://example.org/", web.fetcher(seconds=0.1)) is FetchRefusal.TIME


def test_a_packed_page_is_unpacked() -> None:
    """Bytes are counted both ways."""
    packed = gzip.compress(b"<p>Hello</p>" * 100)
    web = SmallWeb({"example.org/": Reply(packed, headers={"Content-Encoding": "gzip", "Content-Type": "text/html"})})

    assert fetched(web, "http://example.org/").content == b"<p>Hello</p>" * 100


@pytest.mark.parametrize(
    ("robots", "path", "is_allowed"),
    [
        (Reply("User-agent: *\nDisallow: /private"), "/private/a", False),
        (Reply("User-agent: *\nDisallow: /private"), "/open", True),
        (Reply("User-agent: smart-model-router\nDisallow: /\n\nUser-agent: *\nAllow: /"), "/a", False),
        (Reply("User-agent: *\nDisallow: /\n\nUser-agent: smart-model-router\nAllow: /"), "/a", True),
        (Reply("User-agent: *\nDisallow: /*.pdf$"), "/a.pdf", False),
        (Reply("User-agent: *\nDisallow: /*.pdf$"), "/a.pdf.html", True),
        (Reply("User-agent: *\nDisallow: /a\nAllow: /a/b"), "/a/b", True),
        (Reply(status=404), "/a", True),
        (Reply(status=403), "/a", True),
        (Reply(status=503), "/a", False),
        (Reply(raw=nonsense), "/a", False),
        (Reply(b"\xff\xfe\x00 nonsense"), "/a", True),
        (Reply("# " + "a" * 600_000 + "\nUser-agent: *\nDisallow: /"), "/a", True),
        (Reply.moved("/other.txt"), "/a", False),
        (Reply.moved("/robots.txt"), "/a", True),
    ],
)
def test_robots_are_honoured(robots: Reply, path: str, is_allowed: bool) -> None:
    """As RFC 9309 has it: rules of our name first, the longest rule counts, no file allows all, one unread nothing."""
    other = Reply("User-agent: *\nDisallow: /")
    web = SmallWeb({f"example.org{path}": HELLO, "example.org/robots.txt": robots, "example.org/other.txt": other})

    if is_allowed:
        assert fetched(web, f"http://example.org{path}").content
    else:
        no_answer = FetchRefusal.CONNECTION if robots.raw else FetchRefusal.ROBOTS
        assert refused(web, f"http://example.org{path}") is no_answer
        assert f"example.org{path}" not in web.urls


def test_a_robots_file_that_leads_inside_is_refused() -> None:
    """It is fetched by the same rules as a page."""
    web = SmallWeb({"example.org/robots.txt": Reply.moved("http://inside.example/")}, {"inside.example": ["10.0.0.1"]})

    assert refused(web, "http://example.org/a") is FetchRefusal.ADDRESS
    assert web.urls == []


def test_the_rules_of_a_host_are_asked_for_once() -> None:
    """And again after a day."""
    web, clock = SmallWeb({"example.org/a": HELLO, "example.org/b": HELLO}), SteppingClock()

    async def main() -> None:
        async with web.serving():
            fetcher = web.fetcher(clock)
            for path in "ab":
                await fetcher.fetch(f"http://example.org/{path}")
            clock.instant += 90_000
            await fetcher.fetch("http://example.org/a")

    asyncio.run(main())
    assert [each.path for each in web.requests] == ["/robots.txt", "/a", "/b", "/robots.txt", "/a"]


def test_a_host_is_called_once_a_second_and_never_twice_at_once() -> None:
    """Other hosts do not wait for it."""
    hosts = ("one.example", "two.example")
    web, clock = SmallWeb({f"{host}/{n}": HELLO for host in hosts for n in range(3)}), SteppingClock()

    async def main() -> None:
        async with web.serving():
            fetcher = web.fetcher(clock)
            await asyncio.gather(*(fetcher.fetch(f"http://{host}/{n}") for host in hosts for n in range(3)))

    asyncio.run(main())
    assert len(web.urls) == 6
    assert len(clock.waits) >= 6  # before each but the first call of a host
    assert max(clock.waits) <= 1.0


def test_a_delay_that_a_host_asks_for_is_kept() -> None:
    """Up to a minute."""
    robots = Reply("User-agent: *\nCrawl-delay: 15")
    web, clock = SmallWeb({"example.org/a": HELLO, "example.org/robots.txt": robots}), SteppingClock()

    async def main() -> None:
        async with web.serving():
            fetcher = web.fetcher(clock)
            await fetcher.fetch("http://example.org/a")
            await fetcher.fetch("http://example.org/a")

    asyncio.run(main())
    assert clock.waits == [1.0, 15.0]
