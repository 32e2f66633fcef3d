"""The days on which a document was published and modified, each from the best signal that it has (ADR 0013)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.yaml_document import parse
from smart_model_router_research.deep.days import WRITTEN_DATE, Grain, WrittenDay, day_of_match, written_day, year_of
from smart_model_router_research.deep.domains import host_of, registrable_domain
from smart_model_router_research.deep.page_markup import PageMarkup, take_apart
from smart_model_router_research.deep.sources import DateConfidence, SourceDate

SIGNALS: Mapping[str, DateConfidence] = MappingProxyType(
    {
        "json_ld": DateConfidence.HIGH,
        "meta": DateConfidence.HIGH,
        "front_matter": DateConfidence.HIGH,
        "time": DateConfidence.HIGH,
        "corpus": DateConfidence.HIGH,
        "value": DateConfidence.HIGH,
        "url": DateConfidence.MEDIUM,
        "text": DateConfidence.MEDIUM,
        "htmldate": DateConfidence.LOW,
        "last_modified": DateConfidence.LOW,
    }
)
"""The signals in the order in which they count, and the most that each is trusted. A year or a month is `medium`."""
PUBLISHED = "published"
MODIFIED = "modified"
_ORDER = list(SIGNALS)
_TRUST = list(DateConfidence)
_LEEWAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class DocumentDates:
    """The days of a document, None where unknown; `reasons` say which signals were set aside, and why."""

    published: SourceDate | None = None
    modified: SourceDate | None = None
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DateSignal:
    """A date that a document, or what came with it, gives: one of SIGNALS, `published` or `modified`, as written."""

    signal: str
    role: str
    written: object


def date_of(
    html: str, headers: Mapping[str, str], url: str, as_of: datetime, *, more: Iterable[DateSignal] = ()
) -> DocumentDates:
    """Return the days of a web page. `headers` are those of its response; `as_of` is the present, UTC if naive.

    `more` are signals from elsewhere, such as the page's corpus. Nothing in a page is an error.
    """
    return dates_of_markup(take_apart(html), headers, url, as_of, more=more)


def dates_of_markup(
    page: PageMarkup, headers: Mapping[str, str], url: str, as_of: datetime, *, more: Iterable[DateSignal] = ()
) -> DocumentDates:
    """Return the days of a page that is taken apart already, see `date_of`."""
    reasons: list[str] = []
    found = [
        *_json_ld_signals(page.json_ld, url, reasons),
        *_meta_signals(page.metas),
        *_time_signals(page),
        *more,
        *_url_signals(url),
        *_text_signals(page.text),
        *_header_signals(headers, as_of, reasons),
    ]
    return _settled(found, as_of, reasons)


def date_of_text(text: str, path: str, as_of: datetime, *, more: Iterable[DateSignal] = ()) -> DocumentDates:
    """Return the days of a plain text or a Markdown file: by its front matter, its path, and what it says of itself."""
    reasons: list[str] = []
    found = [*_front_matter_signals(text, reasons), *more, *_url_signals(path), *_text_signals(text)]
    return _settled(found, as_of, reasons)


def date_of_value(text: str, as_of: datetime) -> SourceDate | None:
    """Return the day of the first value in a text that has one beside it: `84,012,284 (2024 est.)`; None for none.

    A year counts as its 1 July, with `medium` confidence; `(1 July 2024 est.)` is a day, with `high`. The first 10,000
    characters are looked at.
    """
    found = _VALUE_DATE.search(text, 0, _MOST_BESIDE_A_VALUE)
    if found is None:
        return None
    day = year_of(int(found["plain_year"])) if found["plain_year"] else day_of_match(found)
    return _dated("value", day, as_of) if day is not None else None


_MOST_BESIDE_A_VALUE = 10_000
_VALUE_DATE = re.compile(
    rf"\((?:[^()]{{0,80}}[,;]\s)?(?:(?:est|as\sof|in|since|FY)\.?\s?)?"
    rf"(?:{WRITTEN_DATE}|(?P<plain_year>[12][0-9]{{3}})(?:[/-][0-9]{{2,4}})?)(?:\s(?:est|proj)\b\.?)?\s?\)",
    re.IGNORECASE,
)


def _settled(found: Iterable[DateSignal], as_of: datetime, reasons: list[str]) -> DocumentDates:
    """Return the best trusted day of each role, and of equals the one of the better signal, or the first."""
    best: dict[str, SourceDate] = {}
    for each in found:
        day = written_day(each.written) if not isinstance(each.written, WrittenDay) else each.written
        dated = _dated(each.signal, day, as_of) if day is not None else None
        if dated is None:
            problem = "is no day" if day is None else f"is after {as_of.date()}"
            reasons.append(f"{each.signal}: {str(each.written if day is None else day.day)[:60]!r} {problem}")
        elif each.role not in best or _rank(dated) < _rank(best[each.role]):
            best[each.role] = dated
    return DocumentDates(best.get(PUBLISHED), best.get(MODIFIED), tuple(reasons[:_MOST_REASONS]))


_MOST_REASONS = 20


def _rank(dated: SourceDate) -> tuple[int, int]:
    return _TRUST.index(dated.confidence), _ORDER.index(dated.signal)


def _dated(signal: str, day: WrittenDay, as_of: datetime) -> SourceDate | None:
    """Return the day as a signal gives it; None for one that is later than a day after `as_of`."""
    if day.day > (_in_utc(as_of) + _LEEWAY).date():
        return None
    confidence = SIGNALS[signal]
    if day.grain is not Grain.DAY:
        confidence = max(confidence, DateConfidence.MEDIUM, key=_TRUST.index)
    return SourceDate(day=day.day.isoformat(), signal=signal, confidence=confidence)


def _in_utc(time: datetime) -> datetime:
    return time.astimezone(UTC) if time.tzinfo is not None else time.replace(tzinfo=UTC)


_ARTICLE = re.compile(r"(?:article|posting|report|dataset|book|thesis|legislation|recipe|review)$", re.IGNORECASE)
_PAGE = re.compile(r"page$", re.IGNORECASE)
_NOT_THE_PAGE = re.compile(
    r"(?:comment|person|organization|object|event|offer|product|rating|answer|question)$", re.IGNORECASE
)
_PARTS = ("@graph", "mainEntity", "mainEntityOfPage")
_MOST_NODES = 1_000
_JSON_DATES = (("datePublished", PUBLISHED), ("dateModified", MODIFIED), ("dateCreated", PUBLISHED))
_NO_JSON = re.compile(r"^\s*(?:<!--|//\s*<!\[CDATA\[|<!\[CDATA\[)|(?:-->|//\s*\]\]>|\]\]>)\s*$")


def _json_ld_signals(scripts: Iterable[str], url: str, reasons: list[str]) -> Iterator[DateSignal]:
    """Yield the dates of the node that the page is about: its article, else its page, else another one."""
    nodes = [node for script in scripts for node in _nodes(script, reasons)]
    dated = [node for node in nodes if any(key in node for key, _ in _JSON_DATES) and _standing(node) is not None]
    own = [node for node in dated if not _is_of_another_page(node, url)]
    others = [node for node in dated if not _is_of_another_site(node, url)]
    for node in sorted(own or others[:1], key=lambda node: _standing(node) or 0)[:1]:
        for key, role in _JSON_DATES:
            for value in _first(node.get(key)):
                yield DateSignal("json_ld", role, value)


def _nodes(script: str, reasons: list[str]) -> Iterator[dict[str, Any]]:
    try:
        waiting: list[Any] = [json.loads(_NO_JSON.sub("", script).strip().rstrip(";"), strict=False)]
    except (ValueError, RecursionError):
        reasons.append("json_ld: it is no JSON")
        return
    for _ in range(_MOST_NODES):
        if not waiting:
            return
        node = waiting.pop()
        if isinstance(node, list):
            waiting += reversed(node[:_MOST_NODES])
        elif isinstance(node, dict):
            yield node
            waiting += [node[part] for part in _PARTS if isinstance(node.get(part), dict | list)]


def _standing(node: Mapping[str, Any]) -> int | None:
    """Return 0 for an article, 1 for a page, 2 for another thing; None for what is only a part of a page."""
    kinds = [kind for kind in _listed(node.get("@type")) if isinstance(kind, str)]
    if any(_NOT_THE_PAGE.search(kind) for kind in kinds):
        return None
    return 0 if any(map(_ARTICLE.search, kinds)) else 1 if any(map(_PAGE.search, kinds)) else 2


def _is_of_another_page(node: Mapping[str, Any], url: str) -> bool:
    about = _address_of(node)
    return bool(url and about) and _path_of(about) != _path_of(url)


def _is_of_another_site(node: Mapping[str, Any], url: str) -> bool:
    theirs, ours = (registrable_domain(host_of(address)) for address in (_address_of(node), url))
    return bool(theirs and ours) and theirs != ours


def _address_of(node: Mapping[str, Any]) -> str:
    about = node.get("url") or node.get("mainEntityOfPage")
    about = about.get("@id") if isinstance(about, dict) else about
    return about if isinstance(about, str) else ""


def _path_of(url: str) -> str:
    try:
        return urlsplit(url).path.rstrip("/").lower().removesuffix(".html")
    except ValueError:
        return url


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _first(value: object) -> list[Any]:
    """Return the value of a key, or the first of several; a JSON-LD value may be a node with `@value`."""
    found = [one.get("@value") if isinstance(one, dict) else one for one in _listed(value)[:1]]
    return [one for one in found if one not in (None, "")]


_PUBLISHED_METAS = (
    "article:published_time og:published_time datepublished citation_publication_date citation_online_date "
    "citation_date dcterms.issued dc.date.issued dcterms.available dcterms.created dc.date.created parsely-pub-date "
    "sailthru.date pubdate publish_date publish-date publication_date publishdate date.published "
    "dcterms.date dc.date date"
)
_MODIFIED_METAS = (
    "article:modified_time og:updated_time og:modified_time datemodified dcterms.modified dc.date.modified "
    "date.updated last-updated lastmod last_modified revised updated_time"
)
_METAS: dict[str, str] = {
    **dict.fromkeys(_PUBLISHED_METAS.split(), PUBLISHED),
    **dict.fromkeys(_MODIFIED_METAS.split(), MODIFIED),
}
"""The roles of names of `<meta>`, the more specific first; `datepublished` is an `itemprop`, too."""
_META_ORDER: dict[str, int] = {name: place for place, name in enumerate(_METAS)}


def _meta_signals(metas: Iterable[tuple[str, str]]) -> Iterator[DateSignal]:
    named = [(name, content) for name, content in metas if name in _METAS and content.strip()]
    for name, content in sorted(named, key=lambda meta: _META_ORDER[meta[0]]):
        yield DateSignal("meta", _METAS[name], content)


def _time_signals(page: PageMarkup) -> Iterator[DateSignal]:
    """Yield the `<time>` of the page that say what they are, else the first that is a day and in no sentence."""
    times = [(tag, tag.datetime or tag.text) for tag in page.times]
    times = [(tag, written) for tag, written in times if written_day(written) is not None]
    for tag, written in times:
        if re.search(r"modif|updat", tag.about):
            yield DateSignal("time", MODIFIED, written)
        elif re.search(r"publi|pubdate|posted|entry-date|created", tag.about):
            yield DateSignal("time", PUBLISHED, written)
    plain = [w for tag, w in times if not re.search(r"modif|updat", tag.about) and _OF_A_STAMP.fullmatch(tag.before)]
    yield from (DateSignal("time", PUBLISHED, written) for written in plain[:1])


_OF_A_STAMP = re.compile(
    r"|(?:by|von|par|por|di|door|posted|published|written|submitted|created|date|on|am|le|el|il)\b.*|.*[|·•\u2013\u2014:,(-]",
    re.IGNORECASE,
)
"""The text before the time of a page in its block: none, a label, an author, or any with a separator at its end."""


_URL_DAY = re.compile(r"(?<![0-9])((?:19|20)[0-9]{2})([/_.-]?)([01][0-9])\2([0-3][0-9])(?![0-9])")
_URL_MONTH = re.compile(r"(?:^|/)((?:19|20)[0-9]{2})[/-]([01]?[0-9])(?=/|$)")


def _url_signals(url: str) -> Iterator[DateSignal]:
    """Yield the day or the month of a path. A year alone may be an edition, and says nothing."""
    try:
        path = urlsplit(url).path[:2_000]
    except ValueError:
        return
    found = _URL_DAY.search(path)
    written = f"{found[1]}-{found[3]}-{found[4]}" if found else ""
    if not written and (month := _URL_MONTH.search(path)):
        written = f"{month[1]}-{month[2]:0>2}"
    if written and written_day(written) is not None:
        yield DateSignal("url", PUBLISHED, written)


_SAYS_MODIFIED = (
    r"(?:(?:(?:this|the)\s)?(?:page|article|document|content|site)\s(?:was\s)?)?"
    r"(?:last|most\srecently)\s(?:updated?|modified|edited|revised|changed|reviewed|modification|revision|change)"
    r"|updated?|modified|revised|revision\sdate"
    r"|zuletzt\s(?:aktualisiert|geändert)|letzte\s(?:aktualisierung|änderung)|stand"
    r"|(?:dernière\s)?mise?\sà\sjour|dernière\smodification|última\s(?:actualización|modificación)|ultimo\saggiornamento"
)
_SAYS_PUBLISHED = (
    r"(?:first\s)?(?:published|posted)|(?:publication|release|issue)\sdate|date\s(?:published|posted|of\spublication)"
    r"|date|released|dated|veröffentlicht|publié|publicado|pubblicato"
)
_LEADS_TO = r"[*_]{0,2}\s?(?:online\s)?(?:on|am|the|le|el|il|at|date)?\s?[:\u2013\u2014-]?[*_]{0,2}\s{0,3}(?:the\s)?"
_STANDS = r"(?:^|[\n|\u00b7\u2022\u2013\u2014;(]|[.!?]\s)[\s*_#>-]{0,8}"
"""A stamp begins a line or a sentence, or follows a separator: within a sentence the words speak of something else."""
_SAID = {
    role: re.compile(rf"{_STANDS}(?:{words}){_LEADS_TO}(?:{WRITTEN_DATE})", re.IGNORECASE)
    for role, words in ((PUBLISHED, _SAYS_PUBLISHED), (MODIFIED, _SAYS_MODIFIED))
}
_MOST_TEXT = 200_000
"""A page says when it was updated at its beginning or at its end: so many characters of each are looked at."""


def _text_signals(text: str) -> Iterator[DateSignal]:
    looked_at = text if len(text) <= 2 * _MOST_TEXT else f"{text[:_MOST_TEXT]}\n{text[-_MOST_TEXT:]}"
    for role, pattern in _SAID.items():
        found = pattern.search(looked_at)
        if found is not None and (day := day_of_match(found)) is not None:
            yield DateSignal("text", role, day)


def _header_signals(headers: Mapping[str, str], as_of: datetime, reasons: list[str]) -> Iterator[DateSignal]:
    """Yield Last-Modified, unless it is the day of the answer: such servers say now."""
    named = {name.lower(): value for name, value in headers.items()}
    modified = written_day(named.get("last-modified"))
    if modified is None:
        return
    if modified in (written_day(named.get("date")), written_day(_in_utc(as_of).date().isoformat())):
        reasons.append("last_modified: the server says now")
    else:
        yield DateSignal("last_modified", MODIFIED, modified)


_FRONT_MATTER = re.compile(r"\A\ufeff?---[ \t]*\n(.{0,65536}?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_KEYS = {
    **dict.fromkeys("date published pubdate publishdate publish_date date_published created".split(), PUBLISHED),
    **dict.fromkeys("updated modified lastmod last_modified last_updated date_modified dateupdated".split(), MODIFIED),
}


def _front_matter_signals(text: str, reasons: list[str]) -> Iterator[DateSignal]:
    found = _FRONT_MATTER.match(text)
    if found is None:
        return
    try:
        told = parse(found[1].encode("utf-8", "replace"), "front matter").data
    except ConfigurationError as error:
        reasons.append(f"front_matter: {error}"[:200])
        return
    for key, value in told.items() if isinstance(told, dict) else ():
        role = _KEYS.get(str(key).lower().replace("-", "_"))
        if role is not None and value not in (None, ""):
            yield DateSignal("front_matter", role, value)
