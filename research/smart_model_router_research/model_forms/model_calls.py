"""The model calls of a run: one budget for all, replies against a schema, and what is told about each step."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar, Unpack

from smart_model_router.domain.errors import InvalidRequest, RequestRejected, SmartRouterError, UnsupportedFeature
from smart_model_router_research.deep.canonical_json import ArtefactError
from smart_model_router_research.deep.records import decode, schema_of
from smart_model_router_research.workflow import Costs
from smart_model_router_research.workflow.model_step import costs_of

if TYPE_CHECKING:
    from smart_model_router import RequestOptions, RouteReport, RouterReply

R = TypeVar("R")
AT_ONCE = 4
"""Model calls of one run that are under way at the same time."""
TRIES = 3
"""A reply and two repairs."""
MOST_REPLY = 100_000
"""Characters of a reply that are read."""
ANSWER_TOKENS = 2_000
"""Tokens that a reply may have."""
PROSE_TOKENS = 160
"""Tokens that a summary may have of a model that writes prose alone: the embedded one takes its time."""
GRACE_SECONDS = 2.0
"""Seconds behind its timeout after which a call that has not ended is broken off."""
UNPRICED, AVOIDED, DEAR = "filtered:unpriced", "filtered:avoided", "filtered:max_cost"
"""The reasons for which a router asks no target of unknown price, that the caller avoids, or that costs too much."""
Criticality = Literal["critical_plus", "critical", "sheddable_plus", "sheddable"]
_PER_TOKEN = 4
"""Characters of a token, as estimates have it."""


class ChatRouter(Protocol):
    """A router as its users have it, or one that charges an account of its own."""

    async def chat(self, body: Mapping[str, Any], **options: Unpack[RequestOptions]) -> RouterReply:
        """Send a Chat Completions request and return the whole answer. Raises SmartRouterError."""
        ...


class SecondsLeft(Protocol):
    """The seconds that a call may take."""

    def __call__(self, *, is_last: bool) -> float:
        """Return them; those of the last call of a run where `is_last` says so."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedModel:
    """The model of a run: its public name, the tiers of its ladder by the wish for one, and the rank of its calls.

    One that does not write JSON is asked for prose alone.
    """

    model: str
    tiers: Mapping[str, str] = field(default_factory=dict)
    criticality: Criticality = "critical"
    writes_json: bool = True


@dataclass(frozen=True, slots=True)
class ModelForm(Generic[R]):
    """A form: the name of its prompt, the kind of its reply, and the tier it is asked of ("" for any)."""

    prompt: str
    reply: type[R]
    tier: str = "standard"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCalls:
    """The model calls of a step: `targets` that answered, `stood_in` a sentence for each that stood in for another.

    `degraded` says why the offline form stands alone, "" where the model form did its part. `refused` counts the parts
    of replies that checks by code did not let pass, `unpriced` are targets whose price is not known.
    `remark` says how the model's part ended.
    """

    step: str = ""
    calls: int = 0
    targets: tuple[str, ...] = ()
    stood_in: tuple[str, ...] = ()
    prompts: tuple[str, ...] = ()
    degraded: str = ""
    is_cut: bool = False
    refused: int = 0
    unpriced: tuple[str, ...] = ()
    remark: str = ""


class FormFailed(Exception):
    """A model form gave nothing: the reason in a few words. `is_cut` says that a limit of the run was reached."""

    def __init__(self, reason: str, *, is_cut: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.is_cut = is_cut


@dataclass
class ModelAccount:
    """The calls, tokens and US dollars that models of one run may have, and have had: reserved first, then spent.

    Of each the share `reserve` is kept for the step that writes. `spent` is that of earlier processes too.
    """

    calls: float
    tokens: float
    usd: float
    reserve: float
    spent: Costs = field(default_factory=Costs)
    is_last_resort: bool = False
    """Nothing but the last resort answers: it writes prose, and no more."""
    is_unpriced: bool = False
    """No target has a known price: calls are not held to a budget in US dollars."""
    _held: Costs = field(default_factory=Costs)
    _gate: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))

    def cap_reached(self, wanted: Costs, *, is_last: bool) -> str:
        """Return the cap that a call would go beyond, in words; "" where it fits."""
        share = 1.0 if is_last else 1.0 - self.reserve
        for name, key, cap in (
            ("calls", "model_calls", self.calls),
            ("tokens", "tokens", self.tokens),
            ("usd", "usd", self.usd),
        ):
            used = getattr(self.spent, name) + getattr(self._held, name)
            if used + getattr(wanted, name) > cap * share or (key == "usd" and 0 < cap * share <= used):
                return f"budget.{key} is {cap:g}"
        return ""

    def usd_left(self, *, is_last: bool) -> float:
        """Return the US dollars that one more call may cost, others under way counted at what they may cost."""
        share = 1.0 if is_last else 1.0 - self.reserve
        return max(0.0, self.usd * share - self.spent.usd - self._held.usd)

    @asynccontextmanager
    async def held(self, tokens: float, *, is_last: bool) -> AsyncGenerator[float]:
        """Hold a place among the calls, and what the call may cost; gives the most that it may, in US dollars.

        Raises FormFailed where a cap is reached.
        """
        async with self._gate:
            wanted = Costs(tokens=tokens, calls=1)
            if cap := self.cap_reached(wanted, is_last=is_last):
                raise FormFailed(f"{cap}: no further model call", is_cut=True)
            most = self.usd_left(is_last=is_last)
            wanted = replace(wanted, usd=most / AT_ONCE)
            self._held += wanted
            try:
                yield wanted.usd
            finally:
                self._held = Costs(
                    self._held.tokens - wanted.tokens, self._held.usd - wanted.usd, 0.0, self._held.calls - 1
                )


@dataclass
class ModelCaller:
    """The model calls of one step. `seconds_left` are those that a call may take; `charge` is the step's own."""

    router: ChatRouter
    settings: AskedModel
    account: ModelAccount
    charge: Callable[[Costs], None]
    seconds_left: SecondsLeft
    session: str = ""
    told: StepCalls = field(default_factory=StepCalls)
    answered_by: str = ""
    """The target that gave the latest answer."""

    async def ask(
        self, form: ModelForm[R], data: Mapping[str, Any], *, avoid: Sequence[str] = (), is_last: bool = False
    ) -> R:
        """Return a reply that fits its schema, of the third try at the latest. Raises FormFailed."""
        definitions: dict[str, Any] = {}
        schema = {**schema_of(form.reply, definitions), "$defs": definitions}
        said = json.dumps(schema, ensure_ascii=False, sort_keys=True)
        messages = [
            {"role": "system", "content": f"{prompt_of(form.prompt)}\nAnswer with JSON of this schema alone:\n{said}"},
            {"role": "user", "content": json.dumps(data, ensure_ascii=False)},
        ]
        problem = ""
        for _ in range(TRIES):
            text = await self._text(form, schema, messages, avoid, is_last=is_last)
            try:
                return decode(form.reply, _json_of(text), "reply")
            except ArtefactError as error:
                problem = error.problem
                wanted = f"That reply cannot be used: {error.place}: {problem}. Answer again, with the JSON alone."
                messages += [
                    {"role": "assistant", "content": text[:2_000]},
                    {"role": "user", "content": wanted},
                ]
        raise FormFailed(f"{TRIES} replies did not fit their schema: {problem}")

    async def prose(self, prompt: str, text: str, tier: str) -> str:
        """Return what a model writes to a prompt and a text, for the end of a run. Raises FormFailed."""
        messages = [{"role": "system", "content": prompt_of(prompt)}, {"role": "user", "content": text}]
        return await self._text(ModelForm(prompt, str, tier), None, messages, (), is_last=True)

    async def _text(
        self,
        form: ModelForm[Any],
        schema: Mapping[str, Any] | None,
        messages: Sequence[Mapping[str, Any]],
        avoid: Sequence[str],
        *,
        is_last: bool,
    ) -> str:
        """Return the text of one answer, charged. Raises FormFailed for a failed call, and one without a text.

        Without a schema any text is one, also of the last resort.
        """
        most = ANSWER_TOKENS if schema else PROSE_TOKENS
        tokens = sum(len(each["content"]) for each in messages) / _PER_TOKEN + most
        if schema and self.account.is_last_resort:
            raise FormFailed("only the last resort answers, which is not asked for more than prose")
        async with self.account.held(tokens, is_last=is_last) as usd:
            seconds = self.seconds_left(is_last=is_last)
            if seconds <= 0:
                raise FormFailed("the time for model calls was over", is_cut=True)
            body: dict[str, Any] = {
                "model": self.settings.model,
                "messages": list(messages),
                "max_tokens": most,
                "temperature": 0,
            }
            if schema:
                named = {"name": form.prompt, "schema": schema, "strict": True}
                body["response_format"] = {"type": "json_schema", "json_schema": named}
            reply = await self._sent(body, form.tier, seconds, usd, avoid)
        self._note(form, reply.report)
        if schema and reply.report.last_resort:
            self.account.is_last_resort = True
            raise FormFailed("only the last resort answered, which is not asked for more than prose")
        return _answer_in(reply.body)

    async def _sent(
        self, body: dict[str, Any], tier: str, seconds: float, usd: float, avoid: Sequence[str]
    ) -> RouterReply:
        """Send a request with its wishes; one that cannot be met is left out, and the request sent once more."""
        options: RequestOptions = {
            "session": self.session,
            "timeout": seconds,
            "criticality": self.settings.criticality,
        }
        if not self.account.is_unpriced:
            options["max_cost"] = usd
        if tier in self.settings.tiers:
            options["tier"] = self.settings.tiers[tier]
        if avoid:
            options["avoid"] = tuple(avoid)
        while True:
            try:
                async with asyncio.timeout(seconds + GRACE_SECONDS):
                    reply = await self.router.chat(body, **options)
            except SmartRouterError as error:
                self._charged(error.report)
                if not _leaves_out(error, body, options, has_usd=self.account.usd > 0):
                    raise FormFailed(_reason(error), is_cut=DEAR in _refused_for(error)) from error
                self.account.is_unpriced = "max_cost" not in options
            except Exception as error:  # a router of a program raises what it likes: no run is lost by it
                raise FormFailed(f"{type(error).__name__}: {_reason(error)}") from error
            else:
                self._charged(reply.report)
                return reply

    def refuse(self, count: int = 1) -> None:
        """Count parts of a reply that a check by code did not let pass."""
        self.told = replace(self.told, refused=self.told.refused + count)

    def remark(self, sentence: str) -> None:
        """Note how the model's part ended."""
        self.told = replace(self.told, remark=sentence)

    def degrade(self, error: FormFailed) -> None:
        """Note that the offline form stands alone, or from here on, and why."""
        self.told = replace(self.told, degraded=error.reason, is_cut=self.told.is_cut or error.is_cut)

    def _charged(self, report: RouteReport | None) -> None:
        if report is None or not (report.attempts or report.target):
            return  # nothing was asked
        costs = replace(costs_of(report), calls=1.0)
        self.told = replace(self.told, calls=self.told.calls + 1)
        self.account.spent += costs
        self.charge(costs)

    def _note(self, form: ModelForm[Any], report: RouteReport) -> None:
        told, target = self.told, report.target or ""
        self.answered_by = target
        stood_in = told.stood_in
        if report.fallback and report.ruled_out:
            first, why = next(iter(report.ruled_out.items()))
            stood_in = (*stood_in, f"{target} stood in for {first}: {why}")
        self.told = replace(
            told,
            targets=_with(told.targets, target),
            stood_in=tuple(dict.fromkeys(stood_in)),
            unpriced=_with(told.unpriced, target if report.cost_usd is None else ""),
            prompts=_with(told.prompts, form.prompt),
        )


def notes_on(calls: Iterable[StepCalls]) -> Iterator[str]:
    """Yield a sentence for each step that went without its model, and for each target that stood in for another."""
    calls = tuple(calls)
    if unpriced := dict.fromkeys(target for each in calls for target in each.unpriced):
        yield f"The price of {', '.join(unpriced)} is not known: budget.usd does not hold for it."
    for each in calls:
        if each.degraded:
            yield f"{each.step} went on without its model: {each.degraded}."
        yield from (f"{each.step}: {sentence}." for sentence in each.stood_in)
        if each.remark:
            yield f"{each.step}: {each.remark}."
        if each.refused:
            yield f"{each.step}: {each.refused} of what the model wrote did not pass the checks, and is not used."


def _with(names: tuple[str, ...], name: str) -> tuple[str, ...]:
    return names if not name or name in names else (*names, name)


@cache
def prompt_of(name: str) -> str:
    """Return a prompt by its name, which has its version."""
    return files("smart_model_router_research.model_forms").joinpath("prompts", f"{name}.md").read_text("utf-8")


def prompt_hash(name: str) -> str:
    """Return the SHA-256 of a prompt."""
    return hashlib.sha256(prompt_of(name).encode()).hexdigest()


def _leaves_out(error: SmartRouterError, body: dict[str, Any], options: RequestOptions, *, has_usd: bool) -> bool:
    """Take out the wish by which a request failed; False where no wish is the reason.

    A schema that no target knows, a tier that the model has not, a provider to avoid that is the only one left. What
    has no known price cannot be held to a budget in US dollars, and is none where nothing may be spent.
    """
    reasons = _refused_for(error)
    if has_usd and "max_cost" in options and UNPRICED in reasons:
        del options["max_cost"]
    elif "avoid" in options and AVOIDED in reasons:
        del options["avoid"]
    elif isinstance(error, UnsupportedFeature) and "response_format" in body:
        del body["response_format"]
    elif isinstance(error, InvalidRequest) and "tier" in options:
        del options["tier"]
    elif "avoid" in options and not isinstance(error, RequestRejected):
        del options["avoid"]
    else:
        return False
    return True


def _refused_for(error: SmartRouterError) -> frozenset[str]:
    """Return the reasons for which targets were not asked, where none was."""
    report = error.report
    return frozenset() if report is None or report.attempts else frozenset(each.reason for each in report.refusals)


def _reason(error: Exception) -> str:
    """Return why a call failed in one line."""
    return " ".join(str(error).split())[:300] or type(error).__name__


def _answer_in(body: Mapping[str, Any]) -> str:
    """Return the text of an answer. Raises FormFailed for a refusal, an answer that was cut, and none."""
    try:
        choice = body["choices"][0]
        message = choice["message"]
        text, finish = message.get("content"), choice.get("finish_reason")
    except (LookupError, TypeError, AttributeError):
        raise FormFailed("the answer had no text") from None
    if message.get("refusal") or finish == "content_filter":
        raise FormFailed("the model refused to answer")
    if not isinstance(text, str) or not text.strip():
        raise FormFailed("the answer had no text")
    return text[:MOST_REPLY]


def _json_of(text: str) -> Any:
    """Return the JSON of a text, which may stand in a fence or between sentences. Raises ArtefactError."""
    start, end = text.find("{"), text.rfind("}")
    try:
        return json.loads(text[start : end + 1])
    except (ValueError, RecursionError):
        raise ArtefactError("reply", "it has no JSON object that can be read") from None
