"""What media cost: as their providers document it, within a factor of two, and bounded whatever a header says."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import pytest

from smart_model_router.core.media_tokens import FAMILIES, UNKNOWN_TOKENS, media_tokens
from smart_model_router.domain.media_parts import Medium

GOLDEN = json.loads((Path(__file__).parents[2] / "fixtures" / "media_golden.json").read_text())["rows"]
LOW = Medium("image", 10, 10, 1024, 1024, low=True)


def picture(width: int, height: int) -> Medium:
    """Make a picture of these pixels."""
    return Medium("image", 100, 75, width, height)


@pytest.mark.parametrize(
    ("family", "medium", "tokens"),
    [
        ("gpt-4o", picture(1024, 1024), 765),
        ("gpt-4o", picture(2048, 4096), 1105),
        ("gpt-4o", picture(512, 512), 255),
        ("gpt-4o", picture(1025, 512), 595),
        ("gpt-4o", picture(512, 1025), 595),
        ("gpt-4o", picture(4096, 1000), 765),
        ("gpt-4o", LOW, 85),
        ("gpt-4o-mini", picture(1024, 1024), 25_501),
        ("patches-mini", picture(1024, 1024), 1_659),
        ("patches-mini", LOW, 415),
        ("patches", picture(10, 10), 1),
        ("pixtral", LOW, 4_096),
        ("claude", picture(1000, 1000), 1_334),
        ("claude", picture(8000, 8000), 1_568),
        ("claude-wide", picture(2576, 1000), 3_435),
        ("claude-wide", picture(5152, 1000), 1_718),
        ("gemini", picture(384, 384), 258),
        ("gemini", picture(960, 540), 6 * 258),
        ("gemini", picture(1000, 1000), 4 * 258),
        ("gemini", picture(1025, 300), 10 * 258),
        ("gemini", picture(2305, 1200), 8 * 258),
        ("gemini", picture(3000, 2000), 12 * 258),
        ("gemini", picture(6144, 1200), 16 * 258),
        ("gemini", LOW, 258),
        ("gemini-3", picture(10, 10), 1_120),
        ("gemini-3", LOW, 280),
        ("gemini", Medium("pdf", 9, 9, pages=50), 12_900),
        ("gemini", Medium("audio", 9, 9, seconds=600.0), 19_200),
        ("gemini", Medium("video", 9, 9, seconds=10.0), 3_000),
        ("gemini", Medium("text", 9, 4_001), 1_001),
    ],
)
def test_a_medium_costs_what_its_family_counts(family: str, medium: Medium, tokens: int) -> None:
    """Pictures by pixels as they are scaled, documents by pages, recordings by seconds, written files by their text."""
    assert media_tokens([medium], family) == tokens


@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_not_known_costs_the_default(family: str) -> None:
    """A link, a file at a provider, a header that nobody can read: 1,500 each."""
    unknown = [Medium("image"), Medium("pdf"), Medium("audio"), Medium("video"), Medium("file"), Medium("text")]
    unknown += [Medium("image", 9, 9, 100, None), Medium("image", 9, 9, None, 100)]
    assert media_tokens(unknown, family) == 8 * UNKNOWN_TOKENS
    assert media_tokens([], family) == 0


@pytest.mark.parametrize("family", FAMILIES)
def test_no_header_makes_an_estimate_absurd(family: str) -> None:
    """A picture of a billion pixels a side, or of one line: as many tokens as its provider makes of any; never none."""
    for width, height in product((1, 2, 500, 2**30), repeat=2):
        assert 1 <= media_tokens([picture(width, height)], family) <= 100_000
    assert media_tokens([Medium("pdf", 9, 9, pages=10**9)], family) <= 26_000_000
    assert media_tokens([Medium("video", 9, 9, seconds=1e300)], family) <= 36_000 * 300


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_a_rule_has_a_source(family: object) -> None:
    """Figures without one could not be mended."""
    assert getattr(family, "source", "")
