"""Calls about answers of Responses that are no requests to a model: to get one, to delete one, to count a prompt.

They take no slot and leave no statistics: a client that polls an answer says nothing of how long answers take. The
operator's word binds them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from smart_model_router.core.final_error import is_absent, not_there
from smart_model_router.domain.body_encoding import encode
from smart_model_router.domain.errors import AllTargetsFailed, InvalidRequest, NotFound
from smart_model_router.domain.forwarded_headers import sent_to
from smart_model_router.domain.outcome import Failure, FailureClass, Success, Usage
from smart_model_router.domain.ports import ProviderCall
from smart_model_router.domain.report import Attempt, ReportedRefusal, RouteReport, failure_facts
from smart_model_router.domain.report_text import failure_text, rejection_text
from smart_model_router.domain.request import Operation, RouteRequest, Target
from smart_model_router.flow.reference_resolution import not_found, resolve
from smart_model_router.flow.request_context import plan_of, weigh
from smart_model_router.wires.own_ids import response_of
from smart_model_router.wires.values import decode_any, mapping

if TYPE_CHECKING:
    from smart_model_router.core.tiers import ModelRoute
    from smart_model_router.flow.state import RouterState

SECONDS = 30.0
"""The seconds that one call may take, unless its caller wants less."""
_AGAIN = 1.0
_NO_USAGE = Usage(0, 0)


async def kept_response(
    state: RouterState, request: RouteRequest, thing: str, operation: Operation, model_routes: Iterable[ModelRoute]
) -> tuple[Success, RouteReport]:
    """Get or delete the answer `thing`. For one of unknown making targets of `model_routes` may be asked.

    Raises NotFound, InvalidRequest, RouterUnavailable.
    """
    report = RouteReport(next(state.request_ids), "", "", advice=state.advice)
    if response_of(thing) is not None:
        if state.kept is None:
            raise not_found(thing)
        if operation == "delete":
            await state.kept.remove(thing, request.owner)
            return _answer({"id": thing, "object": "response", "deleted": True}), report
        row = await state.kept.answer(thing, request.owner)
        return Success(mapping(decode_any(row.answer)), row.answer, _NO_USAGE), report
    if thing in (".", ".."):  # of a path they would make another one
        raise not_found(thing)
    await state.makers.look_up(request)
    target = _keeper(state, request, thing, model_routes)
    made = await _call(state, request, (target,), report, operation=operation, thing=thing)
    if operation == "delete":
        state.makers.forget(thing)
    return made, report


async def count_input(state: RouterState, request: RouteRequest) -> tuple[Success, RouteReport]:
    """Count the tokens of a prompt: by a target that speaks Responses natively, else by the router's estimate.

    Raises NotFound, InvalidRequest, RouterUnavailable.
    """
    model_route = state.model_routes[request.model]
    asked = (await resolve(state, request)).request
    plan = plan_of(state, asked, model_route)
    report = RouteReport(next(state.request_ids), request.model, plan.asked, advice=state.advice)
    everyone = [facts for tier in plan.tiers for facts in tier.targets]
    native = [facts.target for facts in everyone if "count" in facts.operations and "responses" in facts.dialects]
    if native:
        return await _call(state, asked, native, report, operation="count"), report
    if not everyone:
        raise InvalidRequest(
            f"no target of {request.model!r} can count this prompt: it refers to what none of them has"
        )
    tokens = weigh(state, everyone[0], asked)
    return _answer({"object": "response.input_tokens", "input_tokens": tokens}), report


def _keeper(state: RouterState, request: RouteRequest, thing: str, model_routes: Iterable[ModelRoute]) -> Target:
    """The target to be asked about an answer that a provider keeps."""
    able = {
        f.id: f.target for one in model_routes for tier in one.tiers for f in tier.targets if "retrieve" in f.operations
    }
    named = ", ".join(able) or "none that speaks Responses"
    if request.target is not None:
        if request.target not in able:
            raise InvalidRequest(f"target: {request.target[:100]!r} keeps no answers for this key; there are {named}")
        return able[request.target]
    maker = state.makers.of(thing)
    if maker is not None:
        return maker
    accounts = {(target.provider, target.credential): target for target in able.values()}
    if len(accounts) != 1:
        raise NotFound(f"{thing[:100]!r}: its maker is not known here; x-router-target may name it, there are {named}")
    return next(iter(accounts.values()))


async def _call(
    state: RouterState,
    request: RouteRequest,
    targets: Sequence[Target],
    report: RouteReport,
    *,
    operation: Operation,
    thing: str = "",
) -> Success:
    """The first answer of these targets. Raises NotFound where each that was asked lacks the operation or the thing."""
    deadline = state.clock.now() + min(SECONDS, request.timeout or SECONDS)
    in_vain = False
    absent: NotFound | None = None
    for target in targets:
        gate, provider = state.fleet.gates.get(target.id), state.providers.get(target.provider)
        if gate is None or provider is None or gate.isolated:
            reason = "isolated" if gate is not None and gate.isolated else "gone"
            report.refusals.append(ReportedRefusal(target.id, reason))
            in_vain = True
            continue
        started = state.clock.now()
        call = ProviderCall(
            dialect="responses",
            model=target.model,
            payload=request.payload(target.model) if operation == "count" else b"",
            body=request.body,
            credential=target.credential,
            connect_timeout=state.timeouts.connect,
            headers=sent_to(state.destination(target), "responses", "responses", request.headers),
            operation=operation,
            thing=thing,
        )
        try:
            async with asyncio.timeout(max(0.001, deadline - started)):
                outcome = await provider.call(call)
        except TimeoutError:
            outcome = Failure(FailureClass.TIMEOUT, f"nothing for {state.clock.now() - started:.1f} s")
        except Exception as bug:  # noqa: BLE001 - providers return failures: whatever they raise is their bug
            outcome = Failure(FailureClass.SERVER_ERROR, f"the provider raised {type(bug).__name__}")
        seconds = state.clock.now() - started
        if isinstance(outcome, Success):
            report.attempts.append(Attempt(target=target.id, seconds=seconds))
            report.target, report.complete = target.id, True
            return outcome
        failure = state.scrub(outcome)
        attempt = Attempt(target=target.id, seconds=seconds, **failure_facts(failure, state.wall))
        report.attempts.append(attempt)
        if is_absent(failure):
            absent = absent or not_there(target.id, failure)
            continue
        if failure.failure_class is FailureClass.INVALID_REQUEST:
            told = rejection_text(target.id, failure)
            raise InvalidRequest(told, report=report, status=failure.status, body=failure.raw)
        in_vain = True
    if absent is not None and not in_vain:
        absent.report = report
        raise absent
    raise AllTargetsFailed(failure_text(report, retry_after=_AGAIN), report=report, retry_after=_AGAIN)


def _answer(body: Mapping[str, Any]) -> Success:
    return Success(body, encode(body), _NO_USAGE)
