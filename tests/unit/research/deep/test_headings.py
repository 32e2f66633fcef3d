"""Headings say what a sentence below them is about."""

from __future__ import annotations

import pytest

from smart_model_router_research.deep.headings import HeadingPaths, context_of

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
    """The path begins with the title; " > " within a heading is no border."""
    assert context_of("Guide", ("Guide", "Options")) == "Guide > Options"
    assert context_of("Guide", ("A > B",)) == "Guide > A B"
    assert context_of("", ()) == ""
