"""The documentation as a site in a real browser (`make browser` builds it first): its search needs no network."""

from __future__ import annotations

from tests.browser.fleet import Watched, browsing, playwright
from tools.docs_site import SITE

expect = playwright.expect


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
