"""The dashboard in a real browser (`make browser`): what a person sees in an incident, and how soon."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from smart_model_router_providers.fault import Fault
from tests.browser.fleet import OPEN_SECONDS, RESILIENCE, Stage, Watched, browsing, playwright, stage
from tests.e2e.research_gateway import ADMIN, LONG, OTHER, SILENT, TEAM, TOPIC, research_gateway

pytestmark = pytest.mark.loopback
PRIMARY = "ao/big"
Look = Callable[..., Watched]
expect = playwright.expect


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One browser for all."""
    with browsing() as running:
        yield running


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Stage]:
    """A gateway that is well."""
    with stage(tmp_path) as running:
        yield running


@pytest.fixture
def look(browser: Any) -> Iterator[Look]:
    """Open pages; at the end none asked another host for anything, and none complained."""
    opened: list[tuple[Any, Watched]] = []

    def look(base_url: str, **options: Any) -> Watched:
        context = browser.new_context(**options)
        watched = Watched(context, base_url)
        opened.append((context, watched))
        return watched

    yield look
    for context, watched in opened:
        context.close()
        watched.assert_clean()


def trip(scene: Stage) -> None:
    """Five failures at once open the primary's breaker; each request is answered elsewhere."""
    scene.primary.set([Fault.delay(3.0), Fault.status(529)])  # all eight are there before the first fails
    assert set(scene.ask(8, at_once=8)) == {200}


def test_an_open_breaker_is_red_with_its_reason(scene: Stage, look: Look) -> None:
    """The page turns it red by itself; the sentence names the status and the target that serves."""
    scene.ask(5)
    watched = look(scene.gateway.base_url)
    page = watched.open()
    expect(watched.pill(PRIMARY)).to_have_text("ok")
    trip(scene)
    expect(watched.pill(PRIMARY)).to_have_class("pill bad")
    expect(watched.pill(PRIMARY)).to_have_text("open")
    expect(page.locator("#moves li.bad", has_text="closed -> open: consecutive_failures").first).to_be_visible()
    sentence = page.locator("#models li", has_text=re.compile(r"^smart: served by bo/big \(2nd choice\) since"))
    expect(sentence).to_contain_text(re.compile(r"ao/big open: 529 x \d+, asked again in \d+ s"))
    expect(page.locator("#errors")).to_contain_text("OVERLOADED")


def test_recovery_is_seen(scene: Stage, look: Look) -> None:
    """A provider that is well again turns green, and the sentence names it as the first choice."""
    watched = look(scene.gateway.base_url)
    page = watched.open()
    trip(scene)
    expect(watched.pill(PRIMARY)).to_have_text("open")
    scene.primary.set(None)
    end = time.monotonic() + OPEN_SECONDS + 30
    while watched.pill(PRIMARY).inner_text() != "ok" and time.monotonic() < end:
        scene.ask()
        page.wait_for_timeout(250)
    expect(watched.pill(PRIMARY)).to_have_class("pill good")
    expect(page.locator("#moves li.fine", has_text="-> closed").first).to_be_visible()


def test_the_way_of_a_request_shows_attempts_and_refusals(scene: Stage, look: Look) -> None:
    """Choosing a request with the keyboard draws its calls, with their failures, and whom it did not ask, with why."""
    watched = look(scene.gateway.base_url)
    page = watched.open()
    trip(scene)
    scene.ask(1)
    page.wait_for_timeout(1500)
    failed = page.locator("#requests tr", has_text="fallback").last.locator("button")
    failed.focus()
    page.keyboard.press("Enter")
    way = page.locator("#waterfall")
    expect(way.locator('li[data-kind="attempt"]', has_text="asked ao/big: OVERLOADED (HTTP 529)")).to_be_visible()
    expect(way.locator('li[data-kind="attempt"]', has_text="asked bo/big: answered")).to_be_visible()
    page.locator("#requests tr", has_text="1 refused").first.locator("button").click()
    expect(way.locator('li[data-kind="refusal"]', has_text="not asked ao/big").first).to_be_visible()


def test_everything_has_a_name_for_a_screen_reader(scene: Stage, look: Look) -> None:
    """Buttons, tables and the chart have names; what changes by itself is announced; Tab reaches the actions."""
    scene.ask(3)
    page = look(scene.gateway.base_url).open()
    expect(page.get_by_role("button", name=f"Isolate {PRIMARY}")).to_be_visible()
    for name in ("Models", "Targets", "Errors, last 15 minutes", "Transitions", "Requests"):
        expect(page.get_by_role("heading", name=name)).to_be_visible()
    expect(page.get_by_role("img", name="Served by target, last 15 minutes")).to_be_visible()
    assert page.locator("button").evaluate_all("all => all.filter((one) => !one.textContent.trim()).length") == 0
    assert page.locator("th:not([scope])").count() == 0
    assert page.locator('[aria-live="polite"]').count() >= 3
    assert page.evaluate("document.documentElement.lang") == "en"
    reached = set()
    for _ in range(12):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.getAttribute('aria-label') || document.activeElement.id"))
    assert f"Isolate {PRIMARY}" in reached


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark_can_be_read(scene: Stage, look: Look, scheme: str) -> None:
    """The page follows the system's scheme, and text and pills have a contrast of at least 4.5 to 1 in both."""
    watched = look(scene.gateway.base_url, color_scheme=scheme)
    page = watched.open()
    trip(scene)
    expect(watched.pill(PRIMARY)).to_have_text("open")
    page.wait_for_timeout(400)
    ratios = page.evaluate(CONTRAST, ["body", ".pill.bad", ".pill.good", "#link", "tbody th"])
    assert {name: ratio for name, ratio in ratios.items() if ratio < 4.5} == {}
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 27)"
    assert dark == (scheme == "dark")


def test_a_phone_shows_it_without_scrolling_sideways(scene: Stage, look: Look) -> None:
    """At 390 pixels the page is as wide as the screen; the tables scroll in themselves."""
    scene.ask(3)
    page = look(scene.gateway.base_url, viewport={"width": 390, "height": 844}).open()
    page.wait_for_timeout(500)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    expect(page.locator("#models li").first).to_be_in_viewport()
    expect(page.locator("#targets .pill").first).to_be_in_viewport()


def test_names_are_text_and_never_markup(tmp_path: Path, look: Look) -> None:
    """A model and a tier named as a script, and a header as well, are shown as they are and run nowhere."""
    evil = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"
    targets = [f"ao/{evil}"]
    models = {
        evil: {"tiers": [{"name": evil, "targets": targets}], "last_resort": []},
        "smart": {"tiers": [{"targets": targets}]},
    }
    with stage(tmp_path, models=models) as scene:
        scene.primary.set([Fault.status(500, body=f'{{"error": {{"message": "{evil[:20]}"}}}}')])
        scene.ask(
            3, headers={"x-router-timeout": "2s", "x-router-session": evil, "user-agent": "<script>alert(3)</script>"}
        )
        page = look(scene.gateway.base_url).open()
        expect(page.locator("#models")).to_contain_text(evil)
        expect(page.locator("#targets tbody th").first).to_have_text(f"ao/{evil}")
        page.locator("#requests button").first.click()
        expect(page.locator("#waterfall")).to_contain_text(evil)
        page.wait_for_timeout(1500)
        assert page.locator("#main img, #main script, header script").count() == 0
        page.close()  # before the gateway: that it is gone is a complaint


def test_only_an_administrators_key_operates(tmp_path: Path, look: Look) -> None:
    """The page asks for a key; a plain one is refused with the reason, an administrator's isolates and closes."""
    keys = {"team": {"key": "plain-key-0123456789"}, "boss": {"key": "admin-key-0123456789", "admin": True}}
    with stage(tmp_path, gateway={"keys": keys}) as scene:
        watched = look(scene.gateway.base_url)
        page = watched.page
        page.goto(scene.gateway.base_url + "/dashboard")
        page.get_by_label("Key of this gateway").fill("plain-key-0123456789")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_have_text("a key with `admin: true` is needed")
        page.get_by_label("Key of this gateway").fill("admin-key-0123456789")
        page.keyboard.press("Enter")
        page.get_by_role("button", name=f"Isolate {PRIMARY}").click()
        expect(watched.pill(PRIMARY)).to_have_text("isolated")
        page.get_by_role("button", name=f"Close {PRIMARY}").click()
        expect(watched.pill(PRIMARY)).to_have_text("ok")
        page.get_by_role("button", name="Drain this server").click()
        expect(page.get_by_role("button", name="Take requests again")).to_be_visible()
        page.reload()  # whoever looks is told, whoever pressed the button
        expect(page.locator("#system")).to_contain_text("draining")
        expect(page.get_by_role("button", name="Take requests again")).to_be_visible()
        assert not any("key-0123456789" in url for url in watched.asked)
        # The browser itself reports a 401 and a 403 on its console; they are no errors of the page.
        watched.complaints[:] = [told for told in watched.complaints if "status of 40" not in told]
        page.close()


def test_a_gateway_that_began_anew_shows_its_own_transitions(scene: Stage, look: Look) -> None:
    """Its numbers begin at one again: what the page drew of the one before does not stay in their place."""
    scene.ask(1)
    page = look(scene.gateway.base_url).open()
    assert page.evaluate(MOVED, ["before", 1000]).endswith("before")
    assert page.evaluate(MOVED, ["after", 2000]).endswith("after")


def test_figures_of_a_target_are_whole(scene: Stage, look: Look) -> None:
    """At 1180 pixels no figure of a slow, busy target is cut, and none is written as a power of ten."""
    scene.ask(1)
    page = look(scene.gateway.base_url, viewport={"width": 1180, "height": 900}).open()
    texts, cut, tokens = page.evaluate(SLOW)  # in one go: the next picture comes within a second
    assert texts[2:6] == ["0.25 s", "12.3 s", "120 s", "1200 s"]
    assert cut == []
    assert tokens == "9,876,543 prompt tokens an hour, 96 % of them cached"


@pytest.mark.timeout(400)
def test_an_hour_of_pictures_of_200_targets_is_light(scene: Stage, look: Look) -> None:
    """Drawing and laying out 200 targets takes 0.1 s of CPU at most; after 3,600 pictures the heap is below 10 MB."""
    scene.ask(3)
    page = look(scene.gateway.base_url).open()
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})  # CPU time: the machine has other work, too

    def figure(name: str) -> float:
        told = session.send("Performance.getMetrics")["metrics"]
        return float(next(one["value"] for one in told if one["name"] == name))

    page.evaluate(PICTURES, [0, 20, True])
    spent = {}
    for drawn in (False, True):
        before = figure("TaskDuration")
        page.evaluate(PICTURES, [100, 60, drawn])
        spent[drawn] = figure("TaskDuration") - before
    milliseconds = (spent[True] - spent[False]) / 60 * 1000
    for minute in range(60):
        page.evaluate(PICTURES, [1000 + 60 * minute, 60, minute % 10 == 0])
    session.send("HeapProfiler.collectGarbage")
    heap = figure("JSHeapUsedSize")
    print(f"200 targets: {milliseconds:.1f} ms a picture, {heap / 1e6:.1f} MB after an hour")  # noqa: T201 - the figures
    assert milliseconds < 100.0  # a picture comes once a second
    assert heap < 10e6


def left_open(folder: Path) -> str:
    """Leave a run of a key that the gateway will not have any more; returns its id."""
    with research_gateway(folder, keys={"gone": {"key": "gone-key"}}) as gateway:
        gateway.model.set(SILENT)
        run = gateway.begin(LONG, {"authorization": "Bearer gone-key"}, model="smart")
        gateway.served.stop()
    return run


def test_research_has_a_card(tmp_path: Path, look: Look) -> None:
    """Runs of every key with round, index and spend; a topic is text."""
    evil = "What is the capital of Land 1? <img src=x onerror=alert(1)>"
    left_open(tmp_path)
    with research_gateway(tmp_path, keys={}) as gateway:
        gateway.ended(gateway.begin(evil, {}), {})
        watched = look(gateway.served.base_url)
        page = watched.open()
        card = page.get_by_role("region", name="Research")
        expect(page.locator("#research-told")).to_have_text("1 run is open.")
        expect(card.locator("tbody tr").nth(1).locator(".pill")).to_have_text("interrupted")
        row = card.locator("tbody tr").first
        expect(row.locator("th")).to_have_text(evil)
        expect(row.locator(".pill")).to_have_text("completed")
        expect(row.locator("td.n").nth(0)).to_have_text(re.compile(r"^[1-4] / 4$"))
        expect(row.locator("td.n").nth(1)).to_have_text(re.compile(r"^\d\.\d\d$"))
        expect(row.locator("td.n").nth(2)).to_have_text("0.00 / 2.00")
        assert page.locator("#main img").count() == 0
        page.close()


def test_without_research_there_is_no_card(scene: Stage, look: Look) -> None:
    """Not even its heading."""
    page = look(scene.gateway.base_url).open()
    expect(page.locator("#research")).to_be_hidden()


@pytest.mark.skipif("SMR_SCREENSHOTS" not in os.environ, reason="make screenshots takes them")
def test_screenshots(tmp_path: Path, look: Look) -> None:
    """The pictures of the documents: an incident, light, dark and on a phone."""
    folder = Path(os.environ["SMR_SCREENSHOTS"])
    with stage(tmp_path, resilience={**RESILIENCE, "breaker": {"open": "90s"}}) as scene:
        for _ in range(30):
            scene.ask()
            time.sleep(0.5)  # noqa: TID251 - a picture of real time
        trip(scene)
        scene.ask(6)
        views: dict[str, dict[str, Any]] = {
            "dashboard": {"viewport": {"width": 1180, "height": 900}},
            "dashboard-dark": {"viewport": {"width": 1180, "height": 900}, "color_scheme": "dark"},
            "dashboard-phone": {"viewport": {"width": 390, "height": 844}},
        }
        for name, options in views.items():
            page = look(scene.gateway.base_url, **options).open()
            page.locator("#requests tr", has_text="fallback").last.locator("button").click()
            page.wait_for_timeout(1200)
            page.evaluate("scrollTo(0, 0)")  # rows far from the screen are not drawn
            page.wait_for_timeout(500)
            page.screenshot(path=folder / f"{name}.png", full_page=name != "dashboard-phone")
            page.close()


@pytest.mark.skipif("SMR_SCREENSHOTS" not in os.environ, reason="make screenshots takes them")
def test_screenshots_of_research(tmp_path: Path, look: Look) -> None:
    """The card of research: two keys, a run that was interrupted, one that was cancelled."""
    left_open(tmp_path)
    with research_gateway(tmp_path) as gateway:
        gateway.model.set(SILENT)
        cancelled = gateway.begin(LONG, OTHER, model="smart")
        gateway.ask("POST", f"/research/{cancelled}/cancel", OTHER)
        topics = {TOPIC: TEAM, "When was Port Alder founded?": OTHER, "Which land has the largest area?": TEAM}
        for topic, key in topics.items():
            gateway.ended(gateway.begin(topic, key), key)
        watched = look(gateway.served.base_url, viewport={"width": 1180, "height": 900})
        page = watched.page
        page.goto(gateway.served.base_url + "/dashboard")
        page.get_by_label("Key of this gateway").fill(ADMIN["authorization"].removeprefix("Bearer "))
        page.keyboard.press("Enter")
        expect(page.locator("#research-told")).to_have_text("1 run is open.")
        page.locator("#research").screenshot(path=Path(os.environ["SMR_SCREENSHOTS"]) / "dashboard-research.png")
        watched.complaints[:] = [told for told in watched.complaints if "status of 40" not in told]
        page.close()


CONTRAST = """(names) => {
  const parts = (text) => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
  const light = (text) => {
    const linear = (c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    const [r, g, b] = parts(text).map((one) => linear(one / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    const colour = getComputedStyle(element).backgroundColor;
    return colour.endsWith(", 0)") ? behind(element.parentElement) : colour;
  };
  return Object.fromEntries(names.map((name) => {
    const element = document.querySelector(name);
    const pair = [light(getComputedStyle(element).color), light(behind(element))].sort((a, b) => b - a);
    return [name, (pair[0] + 0.05) / (pair[1] + 0.05)];
  }));
}"""
MOVED = """([text, at]) => {
  const move = { number: 1, at, kind: 'rest', subject: 'a/big', state: 'wait', text, bad: true };
  picture = { ...picture, transitions: [move] };
  drawMoves();
  return document.querySelector('#moves li').innerText;
}"""
SLOW = """() => {
  const slow = {
    rate: 12.34, errors: 0.034, p50: 0.253, p95: 12.34, p99: 120.4, ttft: 1200, cost_hour: 12.34,
    prompt_hour: 9876543, cached: 0.96,
  };
  picture.targets = [{ ...picture.targets[0], ...slow, tokens: 450000 }];
  drawTargets();
  const cells = [...document.querySelectorAll('#targets tbody tr:first-child td')];
  const texts = cells.filter((one) => one.classList.contains('n')).map((one) => one.innerText);
  const cut = cells.filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.textContent);
  return [texts, cut, cells.find((one) => one.title.includes('tokens')).title];
}"""
PICTURES = """([from, count, drawn]) => {
  const [one] = picture.targets, [line] = picture.requests;
  for (let second = from; second < from + count; second += 1) {
    const targets = Array.from({ length: 200 }, (_, n) => ({
      ...one, id: `p${n % 20}/model-${n}`, rate: second % 7 + n / 100, p50: (second + n) % 90 / 100,
      state: (second + n) % 50 === 0 ? 'open' : 'closed', due: (second + n) % 50 === 0 ? 12 : null,
    }));
    const at = Date.now() / 1000 + second;
    const transitions = Array.from({ length: 60 }, (_, n) => ({
      number: second + 60 - n, at: second + 60 - n, kind: 'breaker', subject: `p${n}/x`, state: 'open',
      text: 'whole breaker', bad: true,
    }));
    const requests = Array.from({ length: 40 }, (_, n) => ({ ...line, request_id: `req-${second + 40 - n}` }));
    picture = JSON.parse(JSON.stringify({ ...picture, at, targets, transitions, requests }));
    if (drawn) { draw(); document.body.offsetHeight; }
  }
  if (!drawn) draw();
}"""
