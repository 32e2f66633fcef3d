"""Sources under whatever bytes, pages, dates and addresses: a document with reasons or none, and never an error."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from random import Random

from benchmarks.sources.pages import AS_OF, PAGES, DatedPage
from hypothesis import example, given
from hypothesis import strategies as st

from smart_model_router_research.deep.claims import SourceTier
from smart_model_router_research.deep.corpus_file import CorpusError, parse_corpus, undeclared_corpus
from smart_model_router_research.deep.dates import (
    SIGNALS,
    DateSignal,
    DocumentDates,
    date_of,
    date_of_text,
    date_of_value,
)
from smart_model_router_research.deep.days import MONTHS, Grain, WrittenDay, written_day
from smart_model_router_research.deep.origins import similarity, with_origins
from smart_model_router_research.deep.page_markup import take_apart, without_comments
from smart_model_router_research.deep.readers import ReadingContext, read_file, read_response
from smart_model_router_research.deep.sources import DateConfidence, StoredDocument
from smart_model_router_research.deep.tiers import SourcePolicy, TierVerdict, lowered_tier, tier_of_source

TEXTS = st.text(max_size=60)
DAYS = st.sampled_from("2024|2024-02|2024-02-29|2024-02-30|0000-01-01|99999|2026-11-29|3 May 2019".split("|"))
PIECES = (
    "<p>|</p>|<p hidden>|<time datetime=|>|</time>|<!--|-->|<script type=application/ld+json>|</script>|[|\"}|'|"
    '{"@type":"Article","datePublished":"|<meta name=date content=\'|Last updated: |.a{display:none}|</style>|'
    "<style>|<div class=a>|\0|\ud800|\u202e|\n|---\n|date: | "
)
WORDS = st.sampled_from(PIECES.split("|"))
PAGE_TEXTS = st.lists(WORDS | DAYS | TEXTS, max_size=25).map("".join)
URLS = st.sampled_from(["", "https://who.int/2024/05/06/x", "http://[", "//", "https://a.example:99999/", "\0"]) | TEXTS
HEADERS = st.dictionaries(st.sampled_from(["Last-Modified", "date", "CONTENT-TYPE"]) | TEXTS, DAYS | TEXTS, max_size=3)
PRESENTS = st.sampled_from([AS_OF, datetime(1, 1, 3, tzinfo=UTC), datetime(2024, 2, 29, tzinfo=UTC)])
NOTES = undeclared_corpus("notes")


def check(dates: DocumentDates, as_of: datetime) -> None:
    """No day is later than one after the present, and none is trusted more than its signal."""
    order = list(DateConfidence)
    for known in (dates.published, dates.modified):
        if known is not None:
            assert known.day <= (as_of + timedelta(days=1)).date().isoformat()
            assert order.index(known.confidence) >= order.index(SIGNALS[known.signal])


@given(page=PAGE_TEXTS, headers=HEADERS, url=URLS, as_of=PRESENTS)
@example(page="[" * 50_000, headers={}, url="", as_of=AS_OF)
def test_any_page_has_days_that_have_been(page: str, headers: dict[str, str], url: str, as_of: datetime) -> None:
    """Whatever a page, its headers and its address are, its days are not to come."""
    check(date_of(page, headers, url, as_of), as_of)
    check(date_of_text(page, url, as_of), as_of)
    value = date_of_value(page, as_of)
    check(DocumentDates(published=value), as_of)


@given(signals=st.permutations([DateSignal(signal, "published", "2024-01-02") for signal in SIGNALS]))
def test_the_order_of_signals_is_not_that_of_the_page(signals: list[DateSignal]) -> None:
    """The best signal counts wherever it stands."""
    found = date_of("", {}, "", AS_OF, more=signals).published

    assert found is not None
    assert found.signal == next(iter(SIGNALS))


@given(day=st.dates(min_value=date(1971, 1, 1), max_value=date(2999, 12, 31)))
def test_a_day_is_read_as_it_was_written(day: date) -> None:
    """ISO 8601 in days and months, and words, give the day, or the middle of what they name."""
    name = next(name for name, number in MONTHS.items() if number == day.month)
    forms = (day.isoformat(), day.isoformat().replace("-", "/"), f"{day.day} {name} {day.year}")

    assert [written_day(form) for form in forms] == [WrittenDay(day, Grain.DAY)] * 3
    month = written_day(f"{day.year:04}-{day.month:02}")
    assert month is not None
    assert (month.day.day, month.day.month, month.grain) == (15, day.month, Grain.MONTH)


@given(page=PAGE_TEXTS)
def test_markup_is_stable(page: str) -> None:
    """Taking apart what came out changes nothing more: all that is hidden was gone at once."""
    once = take_apart(page)

    assert take_apart(once.html).text == once.text
    assert without_comments(page).count("\n") == page.count("\n")


@given(raw=st.binary(max_size=200) | PAGE_TEXTS.map(lambda text: text.encode("utf-8", "replace")), kind=TEXTS, url=URLS)
@example(raw=b"<p>x", kind="text/html; charset=utf-7", url="")
def test_any_bytes_become_a_document_or_a_reason(raw: bytes, kind: str, url: str) -> None:
    """A document that is read has its hash, a tier and a reason; any other has the reason why not."""
    context = ReadingContext(as_of=AS_OF)
    for reading in (
        *(read_response(raw, url, {"content-type": each}, context) for each in ("text/html", "text/markdown", kind)),
        *(read_file(path, raw, NOTES, context) for path in ("a.md", "a.txt", "a.html", kind)),
    ):
        if reading.document is None:
            assert reading.reasons
        else:
            assert reading.document.is_unchanged
            assert reading.document.tier_reason
            assert reading.document.text.strip()


@given(content=st.binary(max_size=100) | PAGE_TEXTS.map(lambda text: f"name: {text}".encode("utf-8", "replace")))
def test_any_corpus_file_is_a_corpus_or_a_corpus_error(content: bytes) -> None:
    """No declaration raises anything else."""
    try:
        told = parse_corpus(content).name
    except CorpusError as error:
        told = error.key

    assert told


@given(url=URLS, publisher=TEXTS, proposed=st.sampled_from(SourceTier) | TEXTS)
def test_a_model_never_raises_a_tier(url: str, publisher: str, proposed: str) -> None:
    """Whatever is proposed for whatever source, its tier is as good as by rule, or worse."""
    document = StoredDocument(id="d", text="", sha256="", url=url, publisher=publisher)
    verdict = tier_of_source(document, SourcePolicy())

    assert verdict.tier.is_at_least(lowered_tier(verdict, proposed, "x").tier)
    assert lowered_tier(TierVerdict(SourceTier.C, "x"), proposed, "y").tier is SourceTier.C


@given(texts=st.lists(st.lists(st.sampled_from("abc"), max_size=12).map(" ".join), max_size=6), order=st.randoms())
def test_origins_do_not_depend_on_order(texts: list[str], order: Random) -> None:
    """Near-duplicates have one origin, in whatever order they come; each origin is the id of one of them."""
    documents = [StoredDocument(id=f"d{at}", text=text, sha256="") for at, text in enumerate(texts)]
    shuffled = list(documents)
    order.shuffle(shuffled)
    found = {document.id: document.origin for document in with_origins(documents)}

    assert found == {document.id: document.origin for document in with_origins(shuffled)}
    for one in documents:
        assert found[found[one.id]] == found[one.id]
        for other in documents:
            if similarity(one.text, other.text) >= 0.8:
                assert found[one.id] == found[other.id]


@given(page=st.sampled_from(PAGES), later=st.integers(min_value=0, max_value=2_000))
def test_time_alone_makes_no_page_younger(page: DatedPage, later: int) -> None:
    """The trusted days of a page do not depend on when it is read, once they have been."""
    now, then = (date_of(page.html, {}, page.url, AS_OF + timedelta(days=days)) for days in (60, 60 + later))

    assert (now.published, now.modified) == (then.published, then.modified)
