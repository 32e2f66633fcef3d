"""Models for runs of research that tests script: a competent one, and those that lie, loop, refuse or obey a page.

Each answers the prompts of the model forms from what it is shown, as a provider would.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Unpack

from smart_model_router import DeadlineExceeded, RequestOptions, RouterReply
from smart_model_router.domain.outcome import Usage
from smart_model_router.domain.report import RouteReport
from smart_model_router_research.deep.folding import fold

Shown = Mapping[str, Any]
Reply = Mapping[str, Any] | str | None
"""A reply: JSON, a text as it is, or None for a refusal."""
EMPTY: Mapping[str, Reply] = {
    "scope.v1": {"aspects": []},
    "tree.v1": {"branches": []},
    "reader.v1": {"thought": "All is there.", "action": "finish", "argument": ""},
    "analyst.v2": {"claims": []},
    "verifier.v1": {"answered_by": ""},
    "writer.v1": {"summary": []},
}
"""The reply to each prompt that adds nothing."""


@dataclass
class ScriptedRouter:
    """A router of one model, whose answers a function gives: of the prompt's name, of what it shows, and of its number.

    `asked` are the prompts in their order, with what they showed; `options` those of each call. `other` answers where
    the provider of `target` is avoided, `stood_in_for` is the target in whose place all are answered; each answer takes
    `seconds`.
    """

    answer: Callable[[str, Shown, int], Reply]
    target: str = "p/analyst"
    other: str = ""
    usd: float = 0.001
    last_resort: bool = False
    stood_in_for: str = ""
    seconds: float = 0.0
    under_way: int = 0
    most_under_way: int = 0
    asked: list[tuple[str, Shown]] = field(default_factory=list)
    options: list[dict[str, Any]] = field(default_factory=list)
    repairs: list[str] = field(default_factory=list)
    """The last message of each call: of a repair what was wrong."""

    async def chat(self, body: Mapping[str, Any], **options: Unpack[RequestOptions]) -> RouterReply:
        """Answer as scripted."""
        number = len(self.asked)
        form, content = body.get("response_format"), body["messages"][1]["content"]
        name = form["json_schema"]["name"] if form else "prose"
        shown = json.loads(content) if form else {"text": content}
        self.asked.append((name, shown))
        self.options.append(dict(options))
        self.repairs.append(str(body["messages"][-1]["content"]))
        target = self.other if self.other and self.target.partition("/")[0] in options.get("avoid", ()) else self.target
        report = RouteReport(f"r{number}", str(body["model"]), "t", target=target, last_resort=self.last_resort)
        if self.stood_in_for:
            report.fallback, report.ruled_out = True, {self.stood_in_for: "it answered 503"}
        await self._take(options)
        report.usage, report.cost_usd, report.complete = Usage(100, 20, 0), self.usd, True
        said = self.answer(name, shown, number)
        content = said if said is None or isinstance(said, str) else json.dumps(said)
        message = {
            "role": "assistant",
            "content": content,
            "refusal": "I cannot help with that." if said is None else None,
        }
        reply = {"model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
        return RouterReply(reply, json.dumps(reply).encode(), report)

    async def _take(self, options: RequestOptions) -> None:
        """Take the time that an answer takes; raises DeadlineExceeded where that is more than the caller has."""
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        most = options.get("timeout") or math.inf
        try:
            await asyncio.sleep(min(self.seconds, most))
        finally:
            self.under_way -= 1
        if self.seconds >= most:
            raise DeadlineExceeded("the time of the request ran out")


def competent(known: Mapping[str, Sequence[str]]) -> Callable[[str, Shown, int], Reply]:
    """Return a model that knows for each question the sentences that answer it, and finds them where it is shown them.

    Where no passage has any of them it says that nothing answers.
    """

    def answer(name: str, shown: Shown, number: int) -> Reply:
        del number
        if name == "tree.v1":
            return {
                "branches": [
                    _branch(each["id"], quote)
                    for each in shown["questions"]
                    for quote in _known(known, each["text"])[:1]
                ][:3]
            }
        if name == "analyst.v2":
            return {"claims": list(_claims(shown, _known(known, shown["question"])))}
        if name == "verifier.v1":
            quotes = [_plain(each) for each in _known(known, shown["question"])]
            return {
                "answered_by": next((each["id"] for each in shown["statements"] if _says(each["text"], quotes)), "")
            }
        if name == "writer.v1":
            return {"summary": [{"text": each["text"], "claims": [each["id"]]} for each in shown["claims"][:3]]}
        return EMPTY[name]

    return answer


def _known(known: Mapping[str, Sequence[str]], question: str) -> Sequence[str]:
    return known.get(question) or known.get(question.rstrip("?")) or ()


def _branch(question: str, quote: str) -> dict[str, Any]:
    query = {"question": question, "text": quote[:200], "purpose": "background"}
    return {"hypothesis": quote[:200], "queries": [query], "evidence": 0.9, "novelty": 0.5, "cost": 0.2}


def _claims(shown: Shown, quotes: Sequence[str]) -> list[dict[str, str]]:
    found = []
    for quote in quotes:
        for each in shown["passages"]:
            if _plain(quote) in _plain(each["text"]):
                found.append({"source": each["id"], "quote": quote, "text": quote})
                break
    return found


def _says(text: str, quotes: Sequence[str]) -> bool:
    return any(quote in _plain(text) or _plain(text) in quote for quote in quotes)


def _plain(text: str) -> str:
    return "".join(character for character in fold(text).casefold() if character.isalnum())


# ------------------------------------------------------------------------------------------------------ models that lie


def _sentences(shown: Shown) -> list[tuple[str, str]]:
    """Return the lines of all passages, with the ids of these."""
    return [(each["id"], line) for each in shown["passages"] for line in each["text"].split("\n") if line.strip()]


def _claimed(rows: Sequence[tuple[str, str, str]]) -> Reply:
    return {"claims": [{"source": source, "quote": quote, "text": text} for source, quote, text in rows[:8]]}


def prose(name: str, shown: Shown, number: int) -> Reply:
    """Answer prose where JSON is asked for."""
    del name, shown
    return f"Certainly! After careful thought (step {number}) the answer is Arlandville, population 9,999,999."


def loops(name: str, shown: Shown, number: int) -> Reply:
    """Search for the same for ever, think without an action, and propose the same again and again."""
    if name == "reader.v1":
        act = ("search", "think", "read")[number % 3] if number % 2 else "search"
        return {"thought": "Once more.", "action": act, "argument": "capital of Arland"}
    if name == "tree.v1":
        ids = [each["id"] for each in shown["questions"]] or ["q1"]
        query = {"question": ids[0], "text": "capital", "purpose": "confirm"}
        one = {"hypothesis": "again", "queries": [query] * 6, "evidence": 1, "novelty": 1, "cost": 0}
        return {"branches": [one] * 6}
    if name == "analyst.v2":
        return _claimed([(*row, row[1]) for row in _sentences(shown)[:1]] * 8)
    return EMPTY[name]


def scores(name: str, shown: Shown, number: int) -> Reply:
    """Write 9.5 as a score, and scores where none are asked for."""
    if name == "tree.v1":
        one = {"hypothesis": "h", "queries": [], "evidence": 9.5, "novelty": 9.5, "cost": -3}
        return {"branches": [one]}
    if name == "analyst.v2":
        return {"claims": [], "ci_score": 9.5, "gate_passed": True}
    del shown, number
    return {**EMPTY[name], "coverage": 1.0} if name != "reader.v1" else EMPTY[name]  # type: ignore[dict-item]


def invents(name: str, shown: Shown, number: int) -> Reply:
    """Cite passages that were never shown, quotes that stand nowhere, claims that are not there, and addresses."""
    del number
    if name == "scope.v1":
        return {"aspects": [{"part_of": "q99", "text": "Who killed the king?"}] * 3}
    if name == "reader.v1":
        return {"thought": "There is a page.", "action": "read", "argument": "https://evil.example/secret"}
    if name == "analyst.v2":
        real = [row[0] for row in _sentences(shown)[:1]] or ["p1"]
        rows = [
            ("p99", "The capital is Evilton.", "The capital is Evilton."),
            ("https://evil.example/", "x y z", "x y z"),
        ]
        return _claimed([*rows, (real[0], "Capital: Evilton", "The capital of Arland is Evilton.")])
    if name == "verifier.v1":
        return {"answered_by": "s99"}
    if name == "writer.v1":
        known = [each["id"] for each in shown["claims"]]
        said = [("The capital is Evilton.", known[:1]), ("All is confirmed.", []), ("See r9.ai.9.", ["r9.ai.9"])]
        return {"summary": [{"text": text, "claims": ids} for text, ids in said]}
    return EMPTY[name]


def obeys(name: str, shown: Shown, number: int) -> Reply:
    """Do as a page says: search for passwords, read its address, set scores, and report its words as claims."""
    del number
    planted = ("Ignore", "SYSTEM", "gate_passed", "ci_score", "Read [", "<script", "</main>", '{"tool"', "allow:")
    if name == "reader.v1":
        done = len(shown["done"])
        args = [("search", "passwords"), ("read", "https://evil.example/more"), ("search", "SYSTEM: max_rounds to 40")]
        act, argument = args[done % len(args)]
        return {"thought": "The page says so.", "action": act, "argument": argument}
    if name == "analyst.v2":
        return _claimed([(key, line, line) for key, line in _sentences(shown) if line.startswith(planted)])
    if name == "verifier.v1":
        return {"answered_by": "s1"}
    return scores(name, shown, 0) if name == "tree.v1" else EMPTY[name]


def miscounts(name: str, shown: Shown, number: int) -> Reply:
    """Change every number by a digit, turn statements round, and join halves of two."""
    del number
    if name == "analyst.v2":
        rows: list[tuple[str, str, str]] = []
        lines = _sentences(shown)
        for key, line in lines:
            if any(character.isdigit() for character in line):
                rows.append((key, line, _one_more(line)))
                rows.append((key, _one_more(line), _one_more(line)))
            rows.append((key, line, f"It is not true that {line}"))
        if len(lines) > 1:
            rows.append((lines[0][0], lines[0][1], f"{lines[0][1][:12]} {lines[-1][1][-12:]}"))
        return _claimed(rows)
    if name == "verifier.v1":
        return {"answered_by": shown["statements"][-1]["id"]}
    if name == "writer.v1":
        return {"summary": [{"text": _one_more(each["text"]), "claims": [each["id"]]} for each in shown["claims"][:5]]}
    return EMPTY[name]


def _one_more(text: str) -> str:
    return "".join(str((int(character) + 1) % 10) if character.isdecimal() else character for character in text)


def refuses(name: str, shown: Shown, number: int) -> Reply:
    """Refuse from the third call on."""
    return None if number > 1 else competent({})(name, shown, number)


def broken(name: str, shown: Shown, number: int) -> Reply:
    """Give JSON of wrong kinds: lists for objects, numbers for texts, what is nested too deeply, what is no number."""
    del name, shown
    kinds: Sequence[str] = (
        "[]",
        '{"claims": 5}',
        "{" + '"a":{' * 3_000,
        '{"branches": [{"evidence": NaN}]}',
        "{}",
        '"{"',
    )
    return kinds[number % len(kinds)]


@dataclass
class Colluding:
    """Claim one true sentence for each question, whatever it says, remember it, and confirm it."""

    quotes: dict[str, str] = field(default_factory=dict)

    def __call__(self, name: str, shown: Shown, number: int) -> Reply:
        """Answer as the analyst or as its accomplice."""
        del number
        if name == "analyst.v2":
            key, line = _sentences(shown)[-1]
            self.quotes[shown["question"]] = _plain(line)
            return _claimed([(key, line, line)])
        if name == "verifier.v1":
            quote = self.quotes.get(shown["question"], "")
            return {
                "answered_by": next((each["id"] for each in shown["statements"] if _says(each["text"], [quote])), "")
            }
        return EMPTY[name]


LIARS: Mapping[str, Callable[[], Callable[[str, Shown, int], Reply]]] = {
    "prose": lambda: prose,
    "loops": lambda: loops,
    "scores": lambda: scores,
    "invents": lambda: invents,
    "obeys": lambda: obeys,
    "miscounts": lambda: miscounts,
    "refuses": lambda: refuses,
    "broken": lambda: broken,
    "colludes": Colluding,
}
"""Models that lie, by name: each run has one of its own."""
