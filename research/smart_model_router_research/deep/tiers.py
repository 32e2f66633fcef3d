"""The trust in a source: a rule for its address, the operator's word, its corpus; each with a reason (ADR 0011)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from smart_model_router.domain.hosts import as_domain
from smart_model_router_research.deep.claims import SourceTier
from smart_model_router_research.deep.domains import host_of, is_address, parents_of, public_suffix
from smart_model_router_research.deep.sources import StoredDocument
from smart_model_router_scoring.options import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePolicy:
    """The operator's word on sources; a domain stands for all below it. Raises ConfigError.

    `block` is never cited. With an `allow`, every other web source is as if blocked. `tiers` replace the rules; of two
    that match, the longer domain counts. A domain in `block` can have no tier.
    """

    allow: tuple[str, ...] = ()
    block: tuple[str, ...] = ()
    tiers: Mapping[str, SourceTier] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("allow", "block"):
            listed = getattr(self, name)
            if isinstance(listed, str):
                raise ConfigError(name, listed, "a list of domains")
            object.__setattr__(self, name, tuple(_domain(f"{name}[{at}]", one) for at, one in enumerate(listed)))
        tiers = {_domain(f"tiers.{name}", name): _tier(f"tiers.{name}", tier) for name, tier in self.tiers.items()}
        for domain, tier in tiers.items():
            if self.blocks(domain):
                raise ConfigError(f"tiers.{domain}", tier.value, "a domain that is not in block")
        object.__setattr__(self, "tiers", MappingProxyType(tiers))

    def blocks(self, host: str) -> str:
        """Return the blocked domain that a host is under; "" for none."""
        return next((domain for domain in parents_of(host) if domain in self.block), "")

    def allows(self, host: str) -> bool:
        """Return whether a host is under an allowed domain, or everything is allowed."""
        return not self.allow or any(domain in self.allow for domain in parents_of(host))


@dataclass(frozen=True, slots=True)
class TierVerdict:
    """The tier of a document, and the rule that gave it, in words."""

    tier: SourceTier
    reason: str


def tier_of_source(document: StoredDocument, policy: SourcePolicy) -> TierVerdict:
    """Return the tier of a document, by the first of these that says something.

    The operator's `block`, `allow` and `tiers`; the tier that its corpus declares, which is the one it is stored with;
    the rules for its domain, its kind of page and its suffix; B. Without an address, a corpus or a publisher it is C.
    """
    host = host_of(_original(document.url))
    for verdict in _verdicts(document, host, policy):
        return verdict
    return TierVerdict(SourceTier.B, "no rule says more")


def lowered_tier(verdict: TierVerdict, proposed: object, reason: str) -> TierVerdict:
    """Return the verdict with the tier that a model proposes, if that is a lower one; else the verdict itself."""
    try:
        tier = SourceTier(str(proposed))
    except ValueError:
        return verdict
    if tier.is_at_least(verdict.tier):
        return verdict
    told = " ".join(reason.split())[:200]
    return TierVerdict(tier, f"lowered by a model ({told}); by rule {verdict.tier}: {verdict.reason}")


def operator_tier(document: StoredDocument, policy: SourcePolicy) -> TierVerdict | None:
    """Return the tier that the operator gives a document; None where the policy says nothing of it."""
    return next(_ordered(document, host_of(_original(document.url)), policy), None)


def _ordered(document: StoredDocument, host: str, policy: SourcePolicy) -> Iterator[TierVerdict]:
    if blocked := policy.blocks(host):
        yield TierVerdict(SourceTier.C, f"the operator blocks {blocked}")
    if not document.corpus and document.url and not policy.allows(host):
        yield TierVerdict(SourceTier.C, f"{host or 'its address'} is not on the operator's list")
    yield from (
        TierVerdict(policy.tiers[domain], f"the operator puts {domain} in tier {policy.tiers[domain]}")
        for domain in parents_of(host)
        if domain in policy.tiers
    )


def _verdicts(document: StoredDocument, host: str, policy: SourcePolicy) -> Iterator[TierVerdict]:
    yield from _ordered(document, host, policy)
    if document.corpus:
        yield TierVerdict(document.tier, document.tier_reason or f"corpus {document.corpus}")
    if not host and not document.publisher:
        yield TierVerdict(SourceTier.C, "it names no publisher")
    yield from _rules(host, _original(document.url))


def _rules(host: str, url: str) -> Iterator[TierVerdict]:
    by_domain = next((domain for domain in parents_of(host) if domain in DOMAINS), "")
    suffix = public_suffix(host)
    is_institution = not is_address(host) and INSTITUTIONS.fullmatch(suffix) is not None
    tier = DOMAINS.get(by_domain, (SourceTier.A if is_institution else SourceTier.B, ""))[0]
    if tier is SourceTier.A:
        yield from (
            TierVerdict(SourceTier.B, f"{what}, on {host}")
            for what, pattern in DOCUMENT_TYPES.items()
            if pattern.search(url)
        )
    if by_domain:
        yield TierVerdict(tier, f"{by_domain}: {DOMAINS[by_domain][1]}")
    if is_institution:
        yield TierVerdict(tier, f"the suffix {suffix} is given to institutions alone")


def _original(url: str) -> str:
    """Return the address of which an archive has a copy, or the address itself."""
    found = _ARCHIVED.match(url)
    return found[1] if found is not None else url


_ARCHIVED = re.compile(r"https?://(?:web\.)?archive\.org/web/[0-9]+[a-z_]*/(https?://.+)", re.IGNORECASE)
INSTITUTIONS = re.compile(
    r"(?:.+\.)?(?:gov|mil|int|edu)|(?:.+\.)?(?:gov|mil|edu|ac|gob|gouv|govt|gub|gv|nhs|police)\.[a-z]{2}|"
    r"(?:.+\.)?go\.(?:jp|kr|id|th|ke|tz|ug)"
)
"""Suffixes that a registry gives to governments, armed forces, treaty organisations and universities alone."""

DOCUMENT_TYPES: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        "a personal page": re.compile(r"^[^?#]*/(?:~|users?/|homes?/|personal/)", re.IGNORECASE),
        "a forum or comments": re.compile(
            r"^[a-z]+://(?:forums?|community|discuss|answers|lists?|bugs?)\.|"
            r"^[^?#]*/(?:forums?|threads?|comments?|discussions?)/",
            re.IGNORECASE,
        ),
        "a blog": re.compile(r"^[a-z]+://blogs?\.|^[^?#]*/blogs?/", re.IGNORECASE),
        "a wiki": re.compile(r"^[a-z]+://wiki\.|^[^?#]*/wiki/", re.IGNORECASE),
        "a paper of students": re.compile(r"^[^?#]*/(?:student|coursework|assignments?|homework)s?/", re.IGNORECASE),
    }
)
"""Kinds of page for which the institution they stand at does not vouch: B at most, by their addresses."""

_TABLE = """
A | a treaty organisation or its statistics | europa.eu un.org oecd.org worldbank.org imf.org bis.org iea.org cern.ch
A | a government or its agency | gc.ca canada.ca admin.ch bund.de destatis.de bundesbank.de insee.fr istat.it scb.se
A | a government or its agency | ssb.no dst.dk stat.fi cbs.nl
A | a body of standards | iso.org iec.ch ietf.org rfc-editor.org w3.org whatwg.org unicode.org ieee.org iana.org
A | a body of standards | oasis-open.org ecma-international.org opengroup.org
A | peer-reviewed, or the register of such papers | nature.com science.org sciencedirect.com springer.com wiley.com
A | peer-reviewed, or the register of such papers | cell.com thelancet.com nejm.org bmj.com jamanetwork.com plos.org
A | peer-reviewed, or the register of such papers | pnas.org oup.com cambridge.org acm.org usenix.org aps.org jmlr.org
A | peer-reviewed, or the register of such papers | royalsocietypublishing.org aclanthology.org proceedings.mlr.press
A | peer-reviewed, or the register of such papers | neurips.cc doi.org cochranelibrary.com
A | papers, as the founding references rate it | arxiv.org
A | the documentation of the thing itself | docs.python.org peps.python.org kernel.org postgresql.org sqlite.org
A | the documentation of the thing itself | docs.docker.com kubernetes.io developer.mozilla.org learn.microsoft.com
A | the documentation of the thing itself | docs.aws.amazon.com docs.cloud.google.com docs.oracle.com debian.org gnu.org
A | the documentation of the thing itself | platform.openai.com developers.openai.com platform.claude.com go.dev docs.rs
A | the documentation of the thing itself | rust-lang.org nodejs.org
B | edited by its readers | wikipedia.org wikimedia.org wikidata.org stackoverflow.com stackexchange.com github.com
B | edited by its readers | gitlab.com github.io readthedocs.io medium.com substack.com
B | news or an encyclopedia | reuters.com apnews.com bbc.co.uk bbc.com britannica.com economist.com ft.com nytimes.com
B | news or an encyclopedia | theguardian.com lemonde.fr spiegel.de
B | papers before review | biorxiv.org medrxiv.org ssrn.com researchgate.net preprints.org
C | a content farm | ehow.com answers.com ask.com buzzle.com hubpages.com ezinearticles.com articlesbase.com
C | a content farm | wisegeek.com suite101.com examiner.com
C | copies without their authors | wikiwand.com infogalactic.com everybodywiki.com alchetron.com wiki2.org dbpedia.org
C | copies without their authors | academickids.com coursehero.com scribd.com slideshare.net studocu.com pdfcoffee.com
C | copies without their authors | docplayer.net gitmemory.com codegrepper.com stackoom.com
C | posts without a check | pinterest.com quora.com tiktok.com facebook.com instagram.com x.com twitter.com
"""
_ROWS = [line.split(" | ") for line in _TABLE.strip().split("\n")]
DOMAINS: Mapping[str, tuple[SourceTier, str]] = MappingProxyType(
    {domain: (SourceTier(tier), reason) for tier, reason, domains in _ROWS for domain in domains.split()}
)
"""The tier of a domain and of all below it, and why; the longer domain counts."""


def _domain(key: str, value: object) -> str:
    host = as_domain(value) if isinstance(value, str) else None
    if host is None:
        raise ConfigError(key, value, "a domain, such as example.org, without a scheme or a path,")
    return host


def _tier(key: str, value: object) -> SourceTier:
    try:
        return SourceTier(str(value))
    except ValueError:
        raise ConfigError(key, value, "one of A, B, C") from None
