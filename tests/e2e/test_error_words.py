"""The page that compares the words of errors shows those of this router as they are now."""

from __future__ import annotations

import asyncio
import re
from contextlib import ExitStack

import pytest

from smart_model_router import SmartRouterError
from tools.error_words import CASES, KEY, PAGE, ask_this_router, told_by

WAY_OUT = r"\$OPENAI_API_KEY|providers\.openai|shorten it|allow more time|Worth another try"


async def said_of(url: str) -> str:
    """Return the error of a router whose provider fails, as the page shows it."""
    try:
        await ask_this_router(url)
    except SmartRouterError as error:
        return told_by(error)
    return ""


def without_figures(text: str) -> str:
    """Leave out figures and the resolver's own words, which another machine may have others of, and the end it made.

    Whether the last try ends before the deadline or at it is the machine's affair.
    """
    text = re.sub(r"not resolved: [^(]+", "not resolved ", re.sub(r"\d[\d.:]*", "#", text))
    return re.sub(r"^\w+: (?:no answer within # s: )?", "", text)


def test_the_page_says_what_this_router_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cause and the way out, word by word, for each failure."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    shown = dict(re.findall(r"^### (.+?)\n\n```text\n.+?:\n  (.+?)\n", PAGE.read_text("utf-8"), re.MULTILINE))

    async def ask() -> list[str]:
        with ExitStack() as providers:
            return await asyncio.gather(*(said_of(providers.enter_context(case.provider())) for case in CASES))

    said = dict(zip((case.title for case in CASES), asyncio.run(ask()), strict=True))
    assert {name: without_figures(told) for name, told in said.items()} == {
        name: without_figures(told) for name, told in shown.items()
    }
    assert all(re.search(WAY_OUT, told) for told in said.values())
    assert KEY not in "".join(said.values())
