"""The pages of one run: fetched once each, only where something that may be believed named their address."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from yarl import URL

from smart_model_router_research.deep.claims import SourceTier
from smart_model_router_research.deep.domains import host_of, registrable_domain
from smart_model_router_research.deep.found_answers import ReadDocument
from smart_model_router_research.deep.readers import ReadingContext, SourceReading, read_response
from smart_model_router_research.deep.sources import StoredDocument
from smart_model_router_research.deep.tiers import SourcePolicy, tier_of_source
from smart_model_router_research.web.diary import WebDiary
from smart_model_router_research.web.fetch_rules import SECURITY, FetchRefusal, FetchRefused, canonical, shown

if TYPE_CHECKING:
    from smart_model_router_research.web.fetcher import SafeFetcher

MOST_REFUSALS = 50
"""Refusals for the sake of security after which a run fetches nothing more."""
_MOST_VOUCHED = 20_000


@dataclass(frozen=True, slots=True)
class _Failed:
    error: FetchRefused


class WebPages:
    """The pages of a run, of which it may fetch `most`. `context` has its day and its policy on sources.

    `moment` gives the present, ISO 8601, which is written into each document.

    An address has provenance when it was a hit of a search, a seed, or a visible link of a page that was fetched.
    """

    def __init__(
        self, fetcher: SafeFetcher, context: ReadingContext, *, most: int, moment: Callable[[], str] = lambda: ""
    ) -> None:
        self._fetcher = fetcher
        self._context = context
        self._left = most
        self._moment = moment
        self._vouched: dict[str, str] = {}
        self._read: dict[str, ReadDocument | _Failed] = {}
        self._security_refusals = 0
        self._diary = WebDiary()

    def vouch(self, url: str, origin: str) -> None:
        """Let an address be fetched. `origin` is the name of the back-end that gave it, or `seed`."""
        if len(self._vouched) < _MOST_VOUCHED:
            self._vouched.setdefault(canonical(url), origin)

    def diary(self) -> WebDiary:
        """Return what happened since this was called last."""
        told, self._diary = self._diary, WebDiary()
        return told

    async def document(self, url: str) -> ReadDocument | None:
        """Return the page at an address as a run stores it, from the second time on as it was read; None for a refusal.

        The diary has the reason. Raises ExtraMissing without the extra `research`.
        """
        key = canonical(url)
        known = self._read.get(key)
        if known is None:
            known = await self._known_now(url, key)
        return None if isinstance(known, _Failed) else known

    async def _known_now(self, url: str, key: str) -> ReadDocument | _Failed:
        try:
            document = await self._fetched(key)
        except FetchRefused as error:
            if error.refusal is FetchRefusal.BUDGET:
                self._diary.unfetched.add(shown(url))
                return _Failed(error)
            self._security_refusals += error.refusal in SECURITY
            there = f" ({error.url})" if error.url != shown(key) else ""
            self._diary.refused[shown(key)] = f"{error.refusal.value.replace('_', ' ')}: {error.detail}{there}"
            self._diary.kinds[error.refusal.value] += 1
            self._read[key] = _Failed(error)
        else:
            self._read[key] = document
        return self._read[key]

    async def _fetched(self, key: str) -> ReadDocument:
        if self._security_refusals >= MOST_REFUSALS:
            told = f"{MOST_REFUSALS} addresses of this run were refused for the sake of security"
            raise FetchRefused(key, FetchRefusal.OFF, told)
        origin = self._vouched.get(key)
        if origin is None:
            raise FetchRefused(key, FetchRefusal.PROVENANCE, "no search, seed or fetched page named it")
        if self._left <= 0:
            raise FetchRefused(key, FetchRefusal.BUDGET, "the fetches of the run are used up")
        self._left -= 1
        page = await self._fetcher.fetch(key, self._judge)
        context = replace(self._context, backend=origin, retrieved_at=self._moment())
        reading = await asyncio.to_thread(read_response, page.content, page.url, page.headers, context)
        if reading.document is None:
            raise FetchRefused(page.url, FetchRefusal.UNREADABLE, "; ".join(reading.reasons) or "it has no text")
        self._keep_links(page.url, reading)
        if reading.reasons:
            self._diary.notes[reading.document.id] = reading.reasons
        return ReadDocument(reading.document, _path_of(page.url))

    def _judge(self, url: str) -> str:
        return blocked_by(self._context.policy, url)

    def _keep_links(self, base: str, reading: SourceReading) -> None:
        for link in reading.links:
            try:
                self.vouch(str(URL(base).join(URL(link))), f"link of {host_of(base)}")
            except ValueError:
                continue


def blocked_by(policy: SourcePolicy, url: str) -> str:
    """Return why a page at an address would never be cited, by policy and the rules of tiers; "" where it may be."""
    stub = StoredDocument(id=url, text="", sha256="", url=url, publisher=registrable_domain(host_of(url)))
    verdict = tier_of_source(stub, policy)
    return f"tier C: {verdict.reason}" if verdict.tier is SourceTier.C else ""


def _path_of(url: str) -> str:
    """Return the last part of an address, by which a page may be named; "" where it has none."""
    return URL(url).path.strip("/").rpartition("/")[2]
