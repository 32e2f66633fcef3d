"""Pages made by hand after kinds that the web is full of, with the days on which they were published and modified.

Every page was retrieved on AS_OF. Pages and days were written by the author of the rules, before the rules met them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

AS_OF = datetime(2026, 11, 27, 12, tzinfo=UTC)
NOW = {"Last-Modified": "Fri, 27 Nov 2026 11:59:58 GMT"}
"""The headers of a server that makes each page when it is asked."""


@dataclass(frozen=True, slots=True)
class DatedPage:
    """A page. `published` and `modified` are true days, "" where a reader of the page cannot know them."""

    name: str
    html: str
    published: str = ""
    modified: str = ""
    url: str = "https://site.example/a-page"
    headers: Mapping[str, str] = field(default_factory=lambda: NOW)

    @property
    def dated(self) -> str:
        """The later true day."""
        return max(self.published, self.modified)


def _page(body: str, head: str = "", title: str = "A page about tides") -> str:
    return f"<!doctype html><html><head><title>{title}</title>{head}</head><body>{body}</body></html>"


def _ld(json: str) -> str:
    return f'<script type="application/ld+json">{json}</script>'


def _meta(name: str, content: str) -> str:
    return f'<meta property="{name}" content="{content}">'


_TEXT = "<p>High water comes twice a day at most coasts, and twelve hours and twenty-five minutes lie between.</p>"
_FOOTER = "<footer>Copyright \N{COPYRIGHT SIGN} 2026 The Site. All rights reserved.</footer>"
_ARTICLE = f"<article><h1>Tides</h1>{_TEXT}{_TEXT}</article>{_FOOTER}"

PAGES = (
    DatedPage(
        "blog software with a graph",
        _page(
            _ARTICLE,
            _ld(
                '{"@context":"https://schema.org","@graph":[{"@type":"WebSite","name":"S"},{"@type":"WebPage",'
                '"datePublished":"2023-02-03T08:00:00+00:00","dateModified":"2024-05-06T08:00:00+00:00"}]}'
            )
            + _meta("article:published_time", "2023-02-03T08:00:00+00:00"),
        ),
        "2023-02-03",
        "2024-05-06",
    ),
    DatedPage(
        "news with related articles",
        _page(
            _ARTICLE,
            _ld(
                '[{"@type":"NewsArticle","url":"https://site.example/a-page","datePublished":"2022-04-05T23:30:00-05:00"},'
                '{"@type":"NewsArticle","url":"https://site.example/other","datePublished":"2026-11-20"}]'
            ),
        ),
        "2022-04-06",
    ),
    DatedPage(
        "related articles before the page's own",
        _page(
            _ARTICLE,
            _ld('{"@type":"NewsArticle","url":"https://site.example/other","datePublished":"2026-11-20"}')
            + _ld('{"@type":"NewsArticle","url":"https://site.example/a-page","datePublished":"2021-06-07"}'),
        ),
        "2021-06-07",
    ),
    DatedPage(
        "comments younger than the article",
        _page(
            f'<article><time datetime="2020-01-09">9 January</time>{_TEXT}</article><section class="comments">'
            '<p>First!</p><time datetime="2026-11-01">1 November</time></section>'
        ),
        "2020-01-09",
    ),
    DatedPage(
        "latest posts beside the article",
        _page(
            '<aside><a href="/x">New</a><time datetime="2026-11-26">yesterday</time></aside>'
            f'<main><time class="entry-date" datetime="2019-08-07T10:00:00Z">7 Aug</time>{_TEXT}</main>{_FOOTER}'
        ),
        "2019-08-07",
    ),
    DatedPage(
        "static page that says when", _page(f"{_TEXT}<p>Last updated: March 5, 2024</p>{_FOOTER}"), "", "2024-03-05"
    ),
    DatedPage(
        "government page",
        _page(f'{_TEXT}<dl><dt>Date modified:</dt><dd><time property="dateModified">2023-05-16</time></dd></dl>'),
        "",
        "2023-05-16",
    ),
    DatedPage("only a copyright", _page(_ARTICLE)),
    DatedPage("only a copyright of many years", _page(f"{_TEXT}<p>\N{COPYRIGHT SIGN} 2009-2026 The Site</p>")),
    DatedPage("path of a blog", _page(_ARTICLE), "2018-03-04", url="https://site.example/2018/03/04/tides"),
    DatedPage("path with a month", _page(_ARTICLE), "2018-03-15", url="https://site.example/2018/03/tides"),
    DatedPage(
        "path with a month, and a day in the page",
        _page(_ARTICLE, _meta("article:published_time", "2018-03-27T07:00:00Z")),
        "2018-03-27",
        url="https://site.example/2018/03/tides",
    ),
    DatedPage(
        "path with the day of an event",
        _page(_ARTICLE, _ld('{"@type":"Article","datePublished":"2025-11-03"}')),
        "2025-11-03",
        url="https://site.example/events/2026-11-20/talk-on-tides",
    ),
    DatedPage("edition in the path", _page(_ARTICLE), url="https://docs.example/2024/tides"),
    DatedPage("number in the path", _page(_ARTICLE), url="https://site.example/item/20493107/tides"),
    DatedPage(
        "plan for the day after next",
        _page(_ARTICLE, _ld('{"@type":"Article","datePublished":"2026-12-24"}') + _meta("date", "2025-09-09")),
        "2025-09-09",
    ),
    DatedPage(
        "first second of Unix",
        _page(
            f"{_TEXT}<p>Published on 3 May 2021</p>", _ld('{"@type":"Article","datePublished":"1970-01-01T00:00:00Z"}')
        ),
        "2021-05-03",
    ),
    DatedPage(
        "year one",
        _page(_ARTICLE, _ld('{"@type":"Article","datePublished":"0001-01-01T00:00:00"}')),
        "2017-02-02",
        url="https://site.example/2017-02-02-tides",
    ),
    DatedPage(
        "broken JSON-LD",
        _page(
            _ARTICLE,
            _ld('{"@type":"Article","datePublished":"2026-11-') + _meta("article:published_time", "2020-02-29"),
        ),
        "2020-02-29",
    ),
    DatedPage(
        "encyclopedia",
        _page(
            f"{_TEXT}<ul><li>This page was last edited on 20 October 2025, at 10:22 (UTC).</li></ul>",
            _ld('{"@type":"Article","datePublished":"2003-04-05T10:00:00Z","dateModified":"2025-10-20T10:22:51Z"}'),
        ),
        "2003-04-05",
        "2025-10-20",
    ),
    DatedPage(
        "paper",
        _page(
            _ARTICLE,
            '<meta name="citation_title" content="Tides"><meta name="citation_date" content="2023/05/02">'
            '<meta name="citation_online_date" content="2023/05/04">',
        ),
        "2023-05-04",
    ),
    DatedPage("old page, server says now", _page(f"<p>Posted on May 4, 2012 by A</p>{_TEXT}{_FOOTER}"), "2012-05-04"),
    DatedPage(
        "old server tells the truth",
        _page(_TEXT),
        "",
        "2011-09-10",
        headers={"last-modified": "Sat, 10 Sep 2011 08:00:00 GMT"},
    ),
    DatedPage("file moved to a new server", _page(_TEXT), headers={"Last-Modified": "Mon, 02 Mar 2026 08:00:00 GMT"}),
    DatedPage("relative time", _page(f"<time>3 days ago</time>{_TEXT}")),
    DatedPage("two countries, two days", _page(f"<p>Published: 03/04/2024</p>{_TEXT}")),
    DatedPage("German", _page(f"{_TEXT}<p>Stand: 05.03.2024</p>"), "", "2024-03-05"),
    DatedPage("French", _page(f"{_TEXT}<p>Mis à jour le 7 février 2025</p>"), "", "2025-02-07"),
    DatedPage("month in words", _page(f"<p>Published March 2023</p>{_TEXT}"), "2023-03-15"),
    DatedPage(
        "event to come",
        _page(
            f'{_TEXT}<p>Join us on <time datetime="2027-01-10">10 January 2027</time>.</p>', _meta("date", "2026-08-01")
        ),
        "2026-08-01",
    ),
    DatedPage(
        "younger comment in JSON-LD",
        _page(
            _ARTICLE,
            _ld(
                '{"@type":"BlogPosting","datePublished":"2019-05-06","comment":[{"@type":"Comment",'
                '"dateCreated":"2026-10-10"}]}'
            ),
        ),
        "2019-05-06",
    ),
    DatedPage(
        "today in the header of the site",
        _page(f"<header>Friday, November 27, 2026</header><p>Published 3 May 2020</p>{_TEXT}"),
        "2020-05-03",
    ),
    DatedPage(
        "microdata",
        _page(f'<span itemprop="datePublished" content="2016-06-17">17/06/16</span>{_TEXT}{_FOOTER}'),
        "2016-06-17",
    ),
    DatedPage(
        "hidden claim of freshness",
        _page(f'<p style="display:none">Last updated: 2026-11-20</p>{_TEXT}<p>Last updated: 2015-07-08</p>'),
        "",
        "2015-07-08",
    ),
    DatedPage(
        "hidden by a style sheet",
        _page(f'<p class="x">Last updated: 2026-11-20</p>{_TEXT}', "<style>.x{display:none}</style>"),
    ),
    DatedPage(
        "articles moved to a new system",
        _page(_ARTICLE, _ld('{"@type":"Article","datePublished":"2020-08-15"}')),
        "2011-05-06",
        url="https://site.example/2011/05/06/tides",
    ),
    DatedPage("dateline", _page(f"<p>BRUSSELS, 12 June 2024. {_TEXT}</p>"), "2024-06-12"),
    DatedPage("month on the title page", _page(f"<h1>A request</h1><p>September 2021</p>{_TEXT}"), "2021-09-15"),
    DatedPage(
        "rewritten post",
        _page(
            f'<article><time class="published" datetime="2014-01-02">2014</time>'
            f'<time class="updated" datetime="2022-10-11">2022</time>{_TEXT}</article>'
        ),
        "2014-01-02",
        "2022-10-11",
    ),
    DatedPage(
        "year only, and a day elsewhere",
        _page(_ARTICLE, _ld('{"@type":"Book","datePublished":"2013"}') + _meta("dcterms.issued", "2013-11-12")),
        "2013-11-12",
    ),
    DatedPage("page of a script", _page('<div id="root"></div>', '<script src="/app.js"></script>')),
)
