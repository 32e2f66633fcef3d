"""The page of a research run in a real browser (`make browser`): it opens quotes in place, and no source acts in it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from smart_model_router_research.deep import as_html, page_of_run
from tests.browser.fleet import Watched, browsing
from tests.property.test_report_pages import ATTACKS, TEXTS, run_with
from tests.research_runs import EXAMPLE

PAGE = EXAMPLE / "final_report.html"
PHONE = {"width": 375, "height": 700}
SCREEN = {"width": 900, "height": 900}
BACKGROUND = "getComputedStyle(document.body).color"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser."""
    with browsing() as found:
        yield found


def opened(browser: Any, file: Path, **options: Any) -> Watched:
    """Open a file."""
    watched = Watched(browser.new_context(**options), file.as_uri())
    watched.page.goto(file.as_uri())
    return watched


def test_a_citation_opens_its_quote_in_place(browser: Any) -> None:
    """Without a script, and without asking for anything but the file."""
    watched = opened(browser, PAGE)
    citation = watched.page.locator("details", has=watched.page.get_by_text("[S1]", exact=True)).first
    quote = citation.locator("blockquote").first
    assert not quote.is_visible()

    citation.locator("summary").click()

    assert quote.is_visible()
    assert quote.inner_text() == "Capital: Arville"
    assert watched.asked == [PAGE.as_uri()]
    assert watched.complaints == []


def test_a_page_is_dark_where_the_reader_wants_it_dark(browser: Any) -> None:
    """Its text is light then, and dark else."""
    found = {
        scheme: opened(browser, PAGE, color_scheme=scheme).page.evaluate(BACKGROUND) for scheme in ("dark", "light")
    }
    assert found == {"dark": "rgb(255, 255, 255)", "light": "rgb(0, 0, 0)"}


def test_a_page_fits_a_phone(browser: Any) -> None:
    """Tables scroll by themselves, the page does not; of hostile texts, too, however long."""
    page = opened(browser, PAGE, viewport=PHONE).page
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_no_hostile_text_acts(browser: Any, tmp_path: Path) -> None:
    """No script runs, nothing is loaded, and no link leads anywhere but to the stored address."""
    for number, attack in enumerate(ATTACKS):
        run = run_with(dict.fromkeys(TEXTS, attack * 3), "https://a.example/x")
        file = tmp_path / f"{number}.html"
        file.write_text(as_html(page_of_run(run), attack), "utf-8")
        watched = opened(browser, file)

        assert watched.asked == [file.as_uri()]
        assert watched.complaints == []
        assert set(watched.page.eval_on_selector_all("a", "all => all.map(one => one.href)")) == {"https://a.example/x"}
        assert watched.page.locator("script, img, iframe, form").count() == 0
        watched.page.context.close()


def test_a_script_would_not_run(browser: Any, tmp_path: Path) -> None:
    """The policy of the page refuses one that slipped in, and the picture of another host with it."""
    hostile = "<script>document.title='ran'</script><img src='https://evil.example/x.png'>"
    file = tmp_path / "page.html"
    file.write_text(PAGE.read_text("utf-8").replace("<main>", f"<main>{hostile}"), "utf-8")

    watched = opened(browser, file)

    assert watched.page.title() == "The borders of Arland"
    assert len(watched.complaints) == 2
    assert all("Content Security Policy" in each for each in watched.complaints)


@pytest.mark.skipif("SMR_SCREENSHOTS" not in os.environ, reason="make screenshots takes them")
def test_screenshots_of_reports(tmp_path: Path, browser: Any) -> None:
    """The pictures of the documents: an answer with a quote that is open, and a contradiction, dark and on a phone."""
    folder = Path(os.environ["SMR_SCREENSHOTS"])
    subprocess.run([os.environ["SMR_PROGRAM"], "research", "demo", "--out", tmp_path], check=True)
    page = opened(browser, tmp_path / "borders" / "borders" / "final_report.html", viewport=SCREEN).page
    page.locator("details", has=page.get_by_text("[S2]", exact=True)).first.locator("summary").click()
    page.screenshot(path=folder / "research-report.png")
    dark = opened(
        browser, tmp_path / "disputed" / "disputed" / "final_report.html", viewport=PHONE, color_scheme="dark"
    )
    dark.page.screenshot(path=folder / "research-disputed-phone.png")
