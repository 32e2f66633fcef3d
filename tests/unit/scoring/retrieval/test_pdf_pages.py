"""The pages of a PDF become text: contents and running heads go, headings and the ends of paragraphs are marked."""

from __future__ import annotations

import pytest

from smart_model_router_scoring.retrieval.pdf_pages import outlined_pages

WIDE = "A line of prose that goes on to the right margin of the page, as most lines do, and"


def lines(text: str) -> list[str]:
    """Return the lines of the only page."""
    return outlined_pages([text])[0].split("\n")


@pytest.mark.parametrize(
    ("line", "is_kept"),
    [
        ("3.1 The package name . . . . . . . . . . . . . . 12", False),
        ("Introduction ............ iv", False),
        ("Depends, Recommends . . . . 59", False),
        ("A row without its number . . . . . . . .", False),
        ("The rest is left to the reader . . .", True),
        ("It ends here...", True),
        ("The version is 1.2.3.4", True),
        ("Wait ... 5 minutes", True),
        ("The answer is ... 5", True),
    ],
)
def test_lines_of_contents_are_left_out(line: str, is_kept: bool) -> None:
    """They name each heading once more, with the number of a page that looks like a value."""
    assert (line in lines(f"Above.\n{line}\nBelow.")) is is_kept


def test_a_line_that_heads_or_ends_three_pages_is_left_out() -> None:
    """But for its numbers; what stands in the middle stays, and so does a line of two pages."""
    pages = [f"Manual, Release 4\nText {n}.\nManual, Release 4\nMore {n}.\n{n} Chapter 3. Names" for n in range(3)]
    assert outlined_pages(pages) == [f"Text {n}.\nManual, Release 4\nMore {n}." for n in range(3)]
    assert all(page.startswith("Manual, Release 4\n") for page in outlined_pages(pages[:2]))


@pytest.mark.parametrize(
    ("text", "heading"),
    [
        ("It ends.\n3.1 The package name\nEvery package has one.", "## 3.1 The package name"),
        ("It ends.\n3.1.2. Dates\nThey count.", "### 3.1.2 Dates"),
        ("It ends.\n1.2.3.4.5 Deep\nText.", "##### 1.2.3.4.5 Deep"),
        ("3.1 First on its page\nText.", "## 3.1 First on its page"),
        ("It ends.\n14.3 The main file: control\nText.", "## 14.3 The main file: control"),
        ("It ends.\n3.1 Last on its page", "## 3.1 Last on its page"),
        ("3 Chapters\n3.1 Below another\n3.2 And another\nText.", "## 3.2 And another"),
        ("It is described in section\n3.1 The package name\nand elsewhere.", None),
        ("It ends.\n3.1 Percent of them stayed.\nText.", None),
        ("It ends.\n3.1 Grams of salt\nare added.", None),
        ("It ends.\n3 Eggs\nBreak them.", None),
        ("It ends.\n2.3 Copyright considerations 9\nText.", None),
        ("It ends.\n3.1 metres\nText.", None),
    ],
)
def test_a_numbered_line_between_two_paragraphs_is_a_heading(text: str, heading: str | None) -> None:
    """Else it is the middle of a sentence, an item, or a value."""
    found = [line for line in lines(text) if line.startswith("#")]
    assert (heading in found) if heading else not found


def test_a_short_line_with_the_end_of_a_sentence_ends_its_paragraph() -> None:
    """A line that leads to a list leads to nothing behind it; a full line may end a sentence by chance."""
    wide = f"{WIDE} ends."
    text = f"{WIDE}\n{WIDE}\n{WIDE}\nthe file has:\none\nShort end.\nAnother begins.\ncontinues. \nbelow\n{wide}\nNext."
    assert lines(text) == [*text.replace("end.\nA", "end.\n\nA").replace(". \n", ".\n").split("\n")]


def test_a_comment_in_a_program_heads_nothing() -> None:
    """`# only when unset` is no heading of what stands below it."""
    assert lines("# only when unset\nfi") == ["    # only when unset", "fi"]


def test_nothing_is_lost_of_pages_without_a_shape() -> None:
    """Empty pages, pages of one line and of numbers alone stay as they are, and as many."""
    assert outlined_pages([]) == []
    assert outlined_pages(["", "one", "1\n2", "1\n2", "1\n2"]) == ["", "one", "1\n2", "1\n2", "1\n2"]
