"""Headings say what a sentence below them is about."""

from __future__ import annotations

import pytest

from smart_model_router_research.deep.folding import FoldedText
from smart_model_router_research.deep.headings import HeadingPaths

MARKDOWN = """---
title: Front
---
Before.

# Guide

Intro.

```
# no heading
```

## Options ##

Text.

Limits
------

Deep.

# End

Last.
"""
UNDERLINED = """Chapter
*******

Words.

Section
=======

More.

a | b
-----

Chapter 2
*********

End.
"""


@pytest.mark.parametrize(
    ("text", "word", "path"),
    [
        (MARKDOWN, "Before", ()),
        (MARKDOWN, "Intro", ("Guide",)),
        (MARKDOWN, "Text", ("Guide", "Options")),
        (MARKDOWN, "Deep", ("Guide", "Limits")),
        (MARKDOWN, "Last", ("End",)),
        (UNDERLINED, "Words", ("Chapter",)),
        (UNDERLINED, "More", ("Chapter", "Section")),
        (UNDERLINED, "End", ("Chapter 2",)),
        ("", "", ()),
    ],
)
def test_a_place_is_under_the_headings_above_it(text: str, word: str, path: tuple[str, ...]) -> None:
    """Front matter, code and tables hold no headings; a heading ends those of its level and below."""
    assert HeadingPaths(text).at(text.index(word)) == path


def test_a_title_that_is_the_first_heading_counts_once() -> None:
    """The path begins with the context; " > " within a heading is no border."""
    guide = FoldedText("# Guide\n\n## Options\n\nText.\n\n# A > B\n\nMore.\n")
    assert guide.path_at(guide.text.index("Text")) == ("Guide", "Options")
    assert guide.path_at(guide.text.index("Text"), "Manual > Guide") == ("Manual", "Guide", "Options")
    assert guide.path_at(guide.text.index("Text"), "Manual") == ("Manual", "Guide", "Options")
    assert guide.path_at(guide.text.index("More"), "Guide") == ("Guide", "A B")
    assert guide.path_at(0) == ("Guide",)


def test_a_heading_without_words_is_none() -> None:
    """A line of "#" alone stands over nothing."""
    assert HeadingPaths("# Guide\n\n##\n\nText.\n").at(15) == ("Guide",)
