"""Each source has a tier with a reason: the operator's word, its corpus, or a rule for its address."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from benchmarks.sources.addresses import ADDRESSES

from smart_model_router_research.deep import domains
from smart_model_router_research.deep.claims import SourceTier
from smart_model_router_research.deep.domains import registrable_domain
from smart_model_router_research.deep.sources import StoredDocument
from smart_model_router_research.deep.tiers import DOMAINS, SourcePolicy, TierVerdict, lowered_tier, tier_of_source
from smart_model_router_scoring.options import ConfigError

A, B, C = SourceTier
NONE = SourcePolicy()


def at(url: str, **rest: Any) -> StoredDocument:
    """Return a document of this address."""
    return StoredDocument(id="d", text="", sha256="", url=url, **rest)


@pytest.mark.parametrize(("url", "tier"), ADDRESSES.items())
def test_an_address_has_the_tier_that_a_person_gave_it(url: str, tier: str) -> None:
    """The tiers of the hand-judged addresses, each with a reason."""
    verdict = tier_of_source(at(url), NONE)

    assert verdict.tier == tier
    assert verdict.reason


@pytest.mark.parametrize(
    "url",
    [
        "https://whitehouse.gov.evil.example/",
        "https://notnature.com/",
        "https://nature.com.cn.example/",
        "https://evil.example/?u=https://www.nature.com/",
        "https://evil.example/https://www.nature.com/",
        "https://www.nature.com@evil.example/",
        "https://evil.example/#.gov",
        "http://192.0.2.7/",
        "http://[::ffff:1.2.3.4]/",
        "https://nature\N{CYRILLIC SMALL LETTER ES}om/",
        "https://edu.example.xyz/",
    ],
)
def test_no_address_borrows_the_name_of_another(url: str) -> None:
    """A name before, behind or inside of another host is not that host."""
    assert tier_of_source(at(url), NONE).tier is not A


def test_the_word_of_the_operator_comes_first() -> None:
    """`block`, `allow` and `tiers` win over corpora and rules; of two domains the longer one counts."""
    policy = SourcePolicy(
        allow=("who.int", "EXAMPLE.org."), block=("bad.who.int",), tiers={"example.org": A, "old.example.org": B}
    )

    assert tier_of_source(at("https://bad.who.int/x", corpus="c", tier=A), policy).tier is C
    assert tier_of_source(at("https://www.who.int/x"), policy).tier is A
    assert tier_of_source(at("https://www.example.org/x"), policy).tier is A
    assert tier_of_source(at("https://a.old.example.org/x"), policy).tier is B
    assert tier_of_source(at("https://nature.com/x"), policy) == TierVerdict(
        C, "nature.com is not on the operator's list"
    )


def test_a_corpus_has_the_tier_that_it_declares() -> None:
    """A document of a corpus keeps its tier and reason, with an address or without, and outside of `allow`."""
    policy = SourcePolicy(allow=("who.int",))

    for url in ("", "https://any.example/x"):
        document = at(url, corpus="mine", tier=A, tier_reason="corpus.yaml")
        assert tier_of_source(document, policy) == TierVerdict(A, "corpus.yaml")
    assert tier_of_source(at("", corpus="mine"), policy) == TierVerdict(B, "corpus mine")


def test_what_nothing_vouches_for_is_not_cited() -> None:
    """Without an address, a corpus and a publisher a document is C; with a publisher B."""
    assert tier_of_source(at(""), NONE).tier is C
    assert tier_of_source(at("file:///x"), NONE).tier is C
    assert tier_of_source(at("", publisher="P"), NONE).tier is B


def test_a_copy_in_an_archive_has_the_tier_of_its_original() -> None:
    """The archive only keeps what another host published."""
    archived = "https://web.archive.org/web/20200101000000/https://www.nature.com/articles/x"

    assert tier_of_source(at(archived), NONE).tier is A
    assert tier_of_source(at(archived), SourcePolicy(block=("nature.com",))).tier is C


@pytest.mark.parametrize(
    ("proposed", "tier"), [("A", B), ("B", B), ("C", C), ("", B), (None, B), ("a", B), (7, B), ("CC", B)]
)
def test_a_model_may_lower_and_not_raise(proposed: object, tier: SourceTier) -> None:
    """Of what a model proposes only a lower tier counts, and its reason stands beside the rule's."""
    before = TierVerdict(B, "a rule")
    after = lowered_tier(before, proposed, "it\nsells this")

    assert after.tier is tier
    assert (after == before) == (tier is B)
    assert "a rule" in after.reason


@pytest.mark.parametrize(
    ("key", "policy"),
    [
        ("block[1]", {"block": ("ok.example", "https://x.example/")}),
        ("allow[0]", {"allow": ("a b",)}),
        ("allow[0]", {"allow": (7,)}),
        ("allow[0]", {"allow": ("",)}),
        ("block", {"block": "example.org"}),
        ("tiers.x.example", {"tiers": {"x.example": "D"}}),
        ("tiers.-", {"tiers": {"-": "A"}}),
        ("tiers.a.example.org", {"block": ("example.org",), "tiers": {"a.example.org": "A"}}),
    ],
)
def test_a_policy_refuses_nonsense(key: str, policy: dict[str, Any]) -> None:
    """Each fault names its key: no domain, no list, no tier, a tier for what is blocked."""
    with pytest.raises(ConfigError) as error:
        SourcePolicy(**policy)

    assert error.value.field == key


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("www.example.co.uk", "example.co.uk"),
        ("a.b.example.org", "example.org"),
        ("one.github.io", "one.github.io"),
        ("co.uk", "co.uk"),
        ("localhost", "localhost"),
        ("192.0.2.7", "192.0.2.7"),
        ("::1", "::1"),
        ("", ""),
    ],
)
def test_the_registrable_domain_is_what_somebody_registered(host: str, domain: str) -> None:
    """One label more than the public suffix; addresses and suffixes are themselves."""
    assert registrable_domain(host) == domain


def test_without_the_list_sites_are_joined_and_never_split(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra two hosts of one site are still one source, and country suffixes vouch for nothing."""
    monkeypatch.setitem(sys.modules, "publicsuffixlist", None)
    domains.known_suffixes.cache_clear()
    try:
        assert registrable_domain("a.example.org") == registrable_domain("b.example.org")
        assert tier_of_source(at("https://www.service.gov.uk/"), NONE).tier is B
        assert tier_of_source(at("https://www.nasa.gov/"), NONE).tier is A
    finally:
        domains.known_suffixes.cache_clear()


@pytest.mark.parametrize(
    "url", ["http://[", "http://a:b:c", "\0", "//", "http://" + "a" * 300 + ".example/", "http://\ud800/"]
)
def test_an_address_that_is_none_is_no_error(url: str) -> None:
    """Broken addresses have a tier and a reason, too."""
    assert tier_of_source(at(url), NONE).reason


def test_the_table_is_a_policy() -> None:
    """Every domain of the table is one that an operator could write."""
    assert SourcePolicy(tiers={domain: tier for domain, (tier, _) in DOMAINS.items()}).tiers
