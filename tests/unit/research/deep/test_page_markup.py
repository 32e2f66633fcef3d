"""A page is taken apart without what cannot be seen, in time that grows with its length."""

from __future__ import annotations

import pytest

from smart_model_router_research.deep.page_markup import MOST_CHARACTERS, take_apart

HIDDEN = (
    "<p hidden>SECRET</p>",
    "<p style='display : none'>SECRET</p>",
    "<div style=visibility:hidden><b>SECRET</b></div>",
    '<p style="position:absolute; left:-9999px">SECRET</p>',
    "<p style='font-size:0px'>SECRET</p>",
    "<p style='opacity: 0'>SECRET</p>",
    "<p aria-hidden=true>SECRET</p>",
    "<p class='a gone'>SECRET</p>",
    "<p id=away>SECRET</p>",
    "<template>SECRET</template>",
    "<noscript>SECRET</noscript>",
    "<script>SECRET</script>",
    "<style>SECRET</style>",
    "<textarea>SECRET</textarea>",
    "<!-- SECRET -->",
    "<!-- > SECRET -->",
    "<ul><li hidden>SECRET<li>seen</ul>",
    "<p hidden>SECRET<p>seen",
    "<table><tr hidden><td>SECRET<tr><td>seen</table>",
    "<div hidden><p>SECRET</section></p></div>",
    "".join(chr(0xE0000 + ord(letter)) for letter in "SECRET"),
)


@pytest.mark.parametrize("hidden", HIDDEN)
def test_what_a_reader_cannot_see_is_gone(hidden: str) -> None:
    """Hidden elements, scripts, comments and invisible letters are in neither text nor markup; the rest stays."""
    page = take_apart(
        f"<html><head><style>.gone, #away {{ display: none }}</style></head><body>before{hidden}<p>after</p></html>"
    )

    assert "SECRET" not in page.text + page.html
    assert not any(letter > "\U000e0000" for letter in page.html)
    assert page.text.startswith("before")
    assert page.text.endswith("after")


def test_metadata_are_kept() -> None:
    """Title, metas, JSON-LD and times are found wherever they stand; times of comments are not."""
    page = take_apart(
        "<title>A &amp; B</title><META Name=Date content='2024-01-01'><script type='application/ld+json'>{}</script>"
        "<time datetime=2024-02-02 class=Updated>Feb</time><div id=comments><time datetime=2025-01-01>x</time></div>"
    )

    assert page.title == "A & B"
    assert page.metas == (("date", "2024-01-01"),)
    assert page.json_ld == ("{}",)
    assert [(tag.datetime, tag.text, tag.about.strip()) for tag in page.times] == [("2024-02-02", "Feb", "updated")]


def test_markup_comes_back_well_formed() -> None:
    """Tags are closed in order, attributes quoted, and letters that look like tags escaped."""
    page = take_apart('<p>1 < 2 <b class=x title="&quot;">bold<p>next</b><br>')

    assert page.html == '<p>1 &lt; 2 <b class="x" title="&quot;">bold<p>next</p></b><br></p>'
    assert page.text == "1 < 2 bold\nnext"


def test_a_text_that_is_no_page_is_a_text() -> None:
    """Plain text, control characters in it, comes back as text."""
    assert take_apart("a\0b < c").text == "a b < c"


@pytest.mark.parametrize(
    "piece",
    ["<", "<a ", '<a b="', "<a b='\">", "<!--", "<!", "</", "&", "<p>", "<time>", "<p hidden>", "<script>", "<li>"],
)
def test_no_page_takes_time_that_grows_with_its_square(piece: str) -> None:
    """Every piece of a page is looked at a bounded number of times, also where nothing is closed."""
    page = piece * 30_000

    assert len(take_apart(page).html) < 20 * len(page)


def test_what_is_behind_the_limit_is_not_read() -> None:
    """A page is cut at MOST_CHARACTERS."""
    assert len(take_apart("x" * (MOST_CHARACTERS + 10)).text) == MOST_CHARACTERS
