"""The documentation as a site in a real browser (`make browser` builds it first): its search needs no network."""

from __future__ import annotations

from tests.browser.fleet import Watched, browsing, playwright
from tools.docs_site import SITE

expect = playwright.expect


def test_an_error_is_read_to_its_end_at_the_width_of_a_telephone() -> None:
    """The remedy stands at the end of the line: no block of output is wider than the page."""
    with browsing() as browser:
        page = browser.new_context(viewport={"width": 390, "height": 800}).new_page()
        page.goto((SITE / "error-words.html").as_uri())
        blocks = page.locator(".language-text pre > code").evaluate_all(
            "all => all.map(e => e.scrollWidth - e.clientWidth)"
        )
    assert len(blocks) >= 12
    assert set(blocks) == {0}


def test_the_reference_leads_to_the_router_first() -> None:
    """The first link of the first module's text leads to SmartModelRouter, which the alphabet puts far below."""
    with browsing() as browser:
        page = browser.new_context().new_page()
        page.goto((SITE / "reference" / "smart_model_router.html").as_uri())
        first = page.locator("article p a").first
        expect(first).to_have_text("SmartModelRouter")
        first.click()
        expect(page.locator("[id='smart_model_router.SmartModelRouter']")).to_be_in_viewport()


def test_search_finds_a_page_of_a_site_that_was_opened_as_files() -> None:
    """Nothing but files of the site is asked for; the first result of a key's name is the page that explains it."""
    start = (SITE / "index.html").as_uri()
    with browsing() as browser:
        watched = Watched(browser.new_context(viewport={"width": 1300, "height": 900}), start)
        watched.page.goto(start)
        watched.page.get_by_role("textbox", name="Search").fill("malformed_events")
        first = watched.page.locator(".md-search-result__link").first
        expect(first).to_contain_text("Configuration")
        first.click()
        expect(watched.page.locator("h1")).to_contain_text("Configuration")
        asked = {address for address in watched.asked if not address.startswith(SITE.as_uri())}
    assert {address for address in asked if not address.startswith(("about:", "data:", "blob:"))} == set()
    assert watched.complaints == []
