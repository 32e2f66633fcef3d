"""The days of a document come from the best signal that it has."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from benchmarks.sources.pages import AS_OF, PAGES, DatedPage

from smart_model_router_research.deep.dates import DateSignal, date_of, date_of_text, date_of_value
from smart_model_router_research.deep.sources import DateConfidence, SourceDate

JSON_LD = '<script type="application/ld+json">{"@type": "Article", "datePublished": "2024-01-01"}</script>'
META = '<meta property="article:published_time" content="2024-01-02">'
TIME = '<time datetime="2024-01-03" pubdate>3 January</time>'
TEXT = "<p>Published on 5 January 2024</p>"
CORPUS = DateSignal("corpus", "published", "2024-01-04")
URL = "https://site.example/2024/01/06/page"
MODIFIED = {"LAST-modified": "Tue, 09 Jan 2024 10:00:00 GMT"}
PRESENT = datetime(2024, 1, 1, tzinfo=UTC)
KNOWN_TO_FAIL = {"articles moved to a new system", "dateline", "month on the title page", "old server tells the truth"}


def found(html: str, headers: dict[str, str] | None = None, url: str = "", *more: DateSignal) -> SourceDate | None:
    """Return the day of publication."""
    return date_of(html, headers or {}, url, AS_OF, more=more).published


def test_signals_count_in_their_order() -> None:
    """Each signal gives way to the one before it: JSON-LD, meta, time, corpus, path, text."""
    seen = []
    for page in (TEXT + TIME + META + JSON_LD, TEXT + TIME + META, TEXT + TIME, TEXT):
        dated = found(page, MODIFIED, URL, CORPUS)
        seen.append(dated and (dated.signal, dated.day, dated.confidence))
    for url, more in ((URL, [CORPUS]), (URL, []), ("", [])):
        dated = found(TEXT, MODIFIED, url, *more)
        seen.append(dated and (dated.signal, dated.day, dated.confidence))

    high, medium = DateConfidence.HIGH, DateConfidence.MEDIUM
    assert seen == [
        ("json_ld", "2024-01-01", high),
        ("meta", "2024-01-02", high),
        ("time", "2024-01-03", high),
        ("corpus", "2024-01-04", high),
        ("corpus", "2024-01-04", high),
        ("url", "2024-01-06", medium),
        ("text", "2024-01-05", medium),
    ]


def test_last_modified_is_low_and_the_last() -> None:
    """The header of a server counts only where the page says nothing, and is never trusted."""
    alone = date_of("<p>x</p>", MODIFIED, "", AS_OF).modified
    beside = date_of("<p>Last updated: 2020-02-02</p>", MODIFIED, "", AS_OF).modified

    assert alone == SourceDate(day="2024-01-09", signal="last_modified", confidence=DateConfidence.LOW)
    assert beside == SourceDate(day="2020-02-02", signal="text", confidence=DateConfidence.MEDIUM)


@pytest.mark.parametrize(
    ("headers", "known"),
    [
        ({"last-modified": "Tue, 09 Jan 2024 10:00:00 GMT", "DATE": "Tue, 09 Jan 2024 10:00:05 GMT"}, False),
        ({"last-modified": "Tue, 09 Jan 2024 10:00:00 GMT", "date": "Wed, 10 Jan 2024 10:00:00 GMT"}, True),
        ({"last-modified": "Fri, 27 Nov 2026 09:00:00 GMT"}, False),
        ({"last-modified": "Sun, 29 Nov 2026 09:00:00 GMT"}, False),
        ({"last-modified": "yesterday"}, False),
    ],
)
def test_a_server_that_says_now_says_nothing(headers: dict[str, str], known: bool) -> None:
    """`Last-Modified` on the day of the answer, in the future or in other words is no date."""
    assert (date_of("<p>x</p>", headers, "", AS_OF).modified is not None) is known


@pytest.mark.parametrize("page", [page for page in PAGES if page.name not in KNOWN_TO_FAIL], ids=lambda page: page.name)
def test_pages_of_many_kinds_have_their_days(page: DatedPage) -> None:
    """Of the hand-made pages the days are those that were written down before, at medium confidence or better."""
    dates = date_of(page.html, page.headers, page.url, AS_OF)
    trusted = [
        date.day if date is not None and date.confidence in (DateConfidence.HIGH, DateConfidence.MEDIUM) else ""
        for date in (dates.published, dates.modified)
    ]

    assert trusted == [page.published, page.modified]


def test_a_vague_date_gives_way_to_a_day() -> None:
    """A year is medium, whatever says it, so a day of a later signal counts."""
    year = '<script type="application/ld+json">{"@type": "Book", "datePublished": "2013"}</script>'

    assert found(year) == SourceDate(day="2013-07-01", signal="json_ld", confidence=DateConfidence.MEDIUM)
    assert found(year + META) == SourceDate(day="2024-01-02", signal="meta", confidence=DateConfidence.HIGH)


@pytest.mark.parametrize(
    ("day", "known"), [("2026-11-27", True), ("2026-11-28", True), ("2026-11-29", False), ("9999-12-31", False)]
)
def test_a_day_to_come_is_unknown(day: str, known: bool) -> None:
    """A day later than `as_of` and one more is set aside with its reason, and the next signal counts."""
    dates = date_of(f'<meta name="date" content="{day}">', {}, URL, AS_OF)

    assert dates.published is not None
    assert (dates.published.signal == "meta") is known
    assert bool(dates.reasons) is not known


def test_a_naive_present_is_in_utc() -> None:
    """`as_of` without a zone is UTC."""
    assert date_of(META, {}, "", PRESENT.replace(tzinfo=None)) == date_of(META, {}, "", PRESENT)


@pytest.mark.parametrize(
    "json",
    [
        "",
        "{",
        "[]",
        "null",
        "7",
        '"text"',
        "[[[[{}]]]]",
        "[" * 100_000,
        '{"@type": 7, "datePublished": {"@value": null}}',
        '{"@type": ["Article", 7, null], "datePublished": [[]]}',
        '{"@graph": {"@graph": []}, "datePublished": true}',
        '{"@type": "Article", "datePublished": 1e999, "url": {"@id": 7}}',
        '{"@type": "Article", "datePublished": "2024-01-01", "url": "http://[", "mainEntityOfPage": []}',
        '{"datePublished": ' + "9" * 6_000 + "}",
    ],
)
def test_no_json_ld_is_an_error(json: str) -> None:
    """Whatever a page calls JSON-LD, its meta counts where it gives no day."""
    dates = date_of(f'<script type="application/ld+json">{json}</script>{META}', {}, "", AS_OF)

    assert dates.published is not None
    assert dates.published.day in ("2024-01-01", "2024-01-02")


@pytest.mark.parametrize(
    "json",
    [
        '[{"@type": "Organization"}, {"@type": "NewsArticle", "datePublished": "2024-05-05"}]',
        (
            '{"@graph": [{"@type": "WebPage", "datePublished": "2020-01-01"}, {"@type": ["X", "BlogPosting"], '
            '"datePublished": ["2024-05-05", "2021-01-01"]}]}'
        ),
        '{"@type": "WebPage", "mainEntity": {"@type": "Report", "dateCreated": {"@value": "2024-05-05"}}}',
        '<!-- {"@type": "Article", "datePublished": "2024-05-05"}; -->',
        '{"@type": "Article", "datePublished": 1714906800000}',
    ],
)
def test_the_article_is_found_in_any_shape_of_json_ld(json: str) -> None:
    """A list, a graph, a nested entity, a comment around it and an epoch are read."""
    dated = found(f'<script type="application/ld+json">{json}</script>')

    assert dated is not None
    assert (dated.day, dated.signal) == ("2024-05-05", "json_ld")


@pytest.mark.parametrize("kind", ["Comment", "Person", "ImageObject", "Event", "Product", "Question"])
def test_parts_of_a_page_do_not_date_it(kind: str) -> None:
    """The dates of comments, pictures, events and the like are not those of the page."""
    assert (
        found(f'<script type="application/ld+json">{{"@type": "{kind}", "dateCreated": "2024-05-05"}}</script>') is None
    )


@pytest.mark.parametrize("element", ["nav", "aside", "footer", "div class=comments", "ul id=related-posts"])
def test_times_beside_the_text_do_not_date_it(element: str) -> None:
    """Of several `<time>` only those of the main part count."""
    beside = f"<{element}><time datetime=2026-01-01>x</time></{element.partition(' ')[0]}>"

    assert found(beside) is None
    assert found(f"{beside}<time datetime=2024-05-05>x</time>{beside}") == SourceDate(
        day="2024-05-05", signal="time", confidence=DateConfidence.HIGH
    )


@pytest.mark.parametrize(
    ("text", "day", "confidence"),
    [
        ("84,012,284 (2024 est.)", "2024-07-01", DateConfidence.MEDIUM),
        ("84,012,284 (July 2024 est.)", "2024-07-15", DateConfidence.MEDIUM),
        ("84,012,284 (1 July 2024 est.)", "2024-07-01", DateConfidence.HIGH),
        ("5.1% (est. 2021)", "2021-07-01", DateConfidence.MEDIUM),
        ("5.1% (FY 2022/23)", "2022-07-01", DateConfidence.MEDIUM),
        ("12 (male 7, female 5; 2020 est.) (2019)", "2020-07-01", DateConfidence.MEDIUM),
        ("5.1% (as of 1 January 2025)", "2025-01-01", DateConfidence.HIGH),
    ],
)
def test_a_value_has_the_date_beside_it(text: str, day: str, confidence: DateConfidence) -> None:
    """The date in parentheses is that of the value."""
    assert date_of_value(text, AS_OF) == SourceDate(day=day, signal="value", confidence=confidence)


@pytest.mark.parametrize(
    "text", ["", "in 2024", "(2031 est.)", "(0000 est.)", "(12)", "(1,999 km)", "(20245 est.)", "("]
)
def test_a_value_without_a_date_has_none(text: str) -> None:
    """Other parentheses, and years to come, are no date of a value."""
    assert date_of_value(text, AS_OF) is None


def test_front_matter_path_and_text_date_a_file() -> None:
    """A Markdown file has the days of its front matter, then of its path, then those that it says of itself."""
    front = "---\ntitle: x\ndate: 2024-03-05\nLast-Updated: 2025\n---\n"
    says = "# X\n\nPublished: 2021-01-01\n\nUpdated 2022-02-02\n"

    first = date_of_text(front + says, "posts/2023-02-03-x.md", AS_OF)
    second = date_of_text(says, "posts/2023-02-03-x.md", AS_OF)
    third = date_of_text(says, "posts/x.md", AS_OF)

    assert first.published == SourceDate(day="2024-03-05", signal="front_matter", confidence=DateConfidence.HIGH)
    assert first.modified == SourceDate(day="2025-07-01", signal="front_matter", confidence=DateConfidence.MEDIUM)
    assert second.published == SourceDate(day="2023-02-03", signal="url", confidence=DateConfidence.MEDIUM)
    assert second.modified == SourceDate(day="2022-02-02", signal="text", confidence=DateConfidence.MEDIUM)
    assert third.published == SourceDate(day="2021-01-01", signal="text", confidence=DateConfidence.MEDIUM)


@pytest.mark.parametrize(
    "text",
    ["---\n: [\n---\n", "---\n- a\n---\n", "---\ndate: [1, 2]\n---\n", "---\ndate: &a 2024-02-30\n---\n", "---\n"],
)
def test_front_matter_that_is_none_dates_nothing(text: str) -> None:
    """Broken front matter leaves the days unknown."""
    dates = date_of_text(text, "", AS_OF)

    assert dates.published is None
    assert dates.modified is None


@pytest.mark.parametrize("url", ["http://[", "//", "/2024/13/45/", "/99999999/", "/1999-99-99/", "\0", "/2024/02/30/x"])
def test_an_address_that_names_no_day_dates_nothing(url: str) -> None:
    """Numbers in an address that are no day, and addresses that are none, are no date."""
    assert date_of("", {}, url, AS_OF).published is None
