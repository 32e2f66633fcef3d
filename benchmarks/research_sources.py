"""The studies behind two sources for a critical claim: what a second page finds, and when a copy is told.

`python -m benchmarks.research_sources` prints what docs/adr/0018 decides from. Every run prints the same.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from itertools import combinations
from pathlib import Path

from smart_model_router_research.deep import ResearchClaim, compare_claims
from smart_model_router_research.deep.origins import SAME_ORIGIN, similarity

CLAIMS = Path(__file__).parents[1] / "tests" / "fixtures" / "claims"
CHANGED = (0.005, 0.01, 0.02, 0.03, 0.05, 0.1)
LEAST_WORDS = 200
COPIES = 40
ERRORS = (0.01, 0.05)
COPIED = (0.0, 0.3, 0.6)


def second_pages() -> None:
    """Print how the two pages of each border of the Factbook stand to each other."""
    found: Counter[str] = Counter()
    for one, other, first, second in json.loads((CLAIMS / "borders.json").read_text("utf-8")):
        mine, its = (
            ResearchClaim(id=page, text="", entity=page, other=neighbour, attribute="borders", value=value)
            for page, neighbour, value in ((one, other, first), (other, one, second))
        )
        found[compare_claims(mine, its).relation] += 1
    print(f"borders, each on the pages of both countries: {dict(found)}")
    print(f"numbers that a single page would have stated unopposed: {1 - found['agrees'] / found.total():.2%}\n")


def wrong_claims() -> None:
    """Print how often a wrong statement passes, by the rule: the chance of an error times that of its repetition."""
    print(
        "a statement is wrong on a page with the chance e, alike on a copy of it, and alike by chance one time in ten"
    )
    print(f"{'e':>6}{'copies':>8}{'one source':>12}{'any two':>10}{'two of two origins':>20}")
    for error in ERRORS:
        for copied in COPIED:
            alike = error / 10
            any_two = error * (copied + (1 - copied) * alike)
            print(f"{error:6.0%}{copied:8.0%}{error:12.4%}{any_two:10.4%}{error * alike:20.4%}")
    print()


def copies() -> None:
    """Print how alike copies are of which some words were changed, and how alike different pages are."""
    pages = list(json.loads((CLAIMS / "sources.json").read_text("utf-8")).values())
    long = [text for text in pages if len(text.split()) >= LEAST_WORDS]
    dice = random.Random(18)  # noqa: S311 - a study, not a secret
    print(f"{COPIES} pages of {LEAST_WORDS} words and more, copied; one origin from {float(SAME_ORIGIN)} on")
    print(f"{'words changed':>14}{'similarity, median':>20}{'least':>8}{'told as copies':>16}")
    for share in CHANGED:
        found = sorted(similarity(text, _changed(text, share, dice)) for text in long[:COPIES])
        told = sum(each >= SAME_ORIGIN for each in found) / len(found)
        print(f"{share:14.1%}{found[len(found) // 2]:20.2f}{found[0]:8.2f}{told:16.0%}")
    others = sorted((similarity(one, other) for one, other in combinations(long[:COPIES], 2)), reverse=True)
    print(f"most alike of {len(others)} pairs of different pages: {others[0]:.3f}, then {others[1]:.3f}")


def _changed(text: str, share: float, dice: random.Random) -> str:
    words = text.split()
    for at in dice.sample(range(len(words)), max(1, round(share * len(words)))):
        words[at] = f"changed{at}"
    return " ".join(words)


if __name__ == "__main__":
    second_pages()
    wrong_claims()
    copies()
