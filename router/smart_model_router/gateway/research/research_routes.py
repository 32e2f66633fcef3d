"""The routes of research: `POST /research`, its runs, their events and reports."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Mapping
from datetime import UTC, datetime
from typing import Any, NoReturn, TypeVar
from urllib.parse import parse_qs

from smart_model_router.domain.errors import ModelNotFound
from smart_model_router.domain.suggest import unknown_model
from smart_model_router.flow.clock import WallClock
from smart_model_router.gateway.client_keys import ApiClient
from smart_model_router.gateway.endpoint import ORDER_BYTES, GatewayRequest
from smart_model_router.gateway.request_body import Client
from smart_model_router.gateway.research.hosted_research import GatewayResearch, HostedResearch
from smart_model_router.gateway.research.research_request import read_run
from smart_model_router.http_api import EVENT_STREAM, HttpReply, ProblemError
from smart_model_router.http_api.api_errors import (
    BAD_REQUEST,
    FORBIDDEN,
    LIMITED,
    NO_MODEL,
    NOT_FOUND,
    ErrorKind,
)
from smart_model_router.http_api.http_reply import JSON_TYPE, encoded, id_headers, json_reply, unrouted_headers
from smart_model_router.wires.values import decode_object
from smart_model_router_research.deep.corpus_file import CorpusError
from smart_model_router_research.deep.rounds import Delivery
from smart_model_router_research.engine import RunNotFound, StoredRun, StoreUnavailable, TooManyRuns
from smart_model_router_research.pipeline.deep_research import OWNER, ResearchResult
from smart_model_router_research.pipeline.research_events import ResearchEvent
from smart_model_router_research.pipeline.research_host import NextEvents
from smart_model_router_research.pipeline.run_inputs import RunInputs
from smart_model_router_research.pipeline.told_runs import (
    event_as_json,
    result_as_json,
    standing_of_run,
    state_of,
)

T = TypeVar("T")
log = logging.getLogger("smart_model_router.gateway")
_MOST_BYTES = 1_048_576
"""Of a question with its limits."""
_MOST_LISTED = 100
_LISTED = 20
_PING_SECONDS = 15.0
_PATIENCE_SECONDS = 30.0
"""A client that has taken nothing for so long is let go; it comes again with its last event."""
_PING = b": ping\n\n"
_RETRY = b"retry: 1000\n\n"
_NO_REPORT = ErrorKind(409, "invalid_request_error", "no_report_yet", "invalid_request_error")
_UNREADABLE = ErrorKind(503, "server_error", "research_unavailable", "api_error")
_ALONE = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}
"""A report is a page of texts from elsewhere: it loads nothing and runs nothing."""
_FORMS = {"md": "text/markdown; charset=utf-8", "html": "text/html; charset=utf-8", "json": "application/json"}


class ResearchRoutes:
    """The walks of the routes; each knows its key, and a run that is another key's is not there."""

    def __init__(self, research: GatewayResearch) -> None:
        self._research = research

    async def begin(self, incoming: GatewayRequest) -> None:
        """Begin a run: 202 with its place, once it is durable."""
        generation = incoming.generation
        api_client = generation.ring.api_client(incoming.headers)
        body = await incoming.body(_MOST_BYTES)
        hosted = self._research.of(generation)
        visit = await api_client.admit(0, 0.0)
        now = asyncio.get_running_loop().time
        visit.settle((), now())
        config = generation.config
        inputs = read_run(
            body,
            research=config.research,
            evaluation=config.evaluation,
            corpora=hosted.corpora,
            usd_left=api_client.usd_left(now()),
            now=datetime.fromtimestamp(WallClock.now(), UTC),
        )
        run_id = await begun_run(hosted, inputs, api_client)
        run = await told(hosted.call(hosted.host.load(run_id)))
        await incoming.reply(
            HttpReply(
                202, {**JSON_TYPE, "location": f"/research/{run_id}"}, encoded(standing_of(hosted, run, api_client))
            )
        )

    async def runs(self, incoming: GatewayRequest) -> None:
        """List the runs of the key, the latest first; an admin's are all."""
        hosted, api_client = self._asked(incoming)
        limit = _limit(_query(incoming).get("limit", str(_LISTED)))
        owner = None if api_client.admin else api_client.owner
        found = await told(hosted.call(hosted.host.runs(limit + 1, owner)))
        rows = [standing_of(hosted, run, api_client) for run in found[:limit]]
        await incoming.reply(json_reply({"runs": rows, "more": len(found) > limit}))

    async def run(self, incoming: GatewayRequest) -> None:
        """Tell how a run stands, and its result so far."""
        hosted, api_client, run = await self._run(incoming)
        result = await told(hosted.call(hosted.host.result(run.run_id)))
        await incoming.reply(json_reply({**_result(result, without="report"), **standing_of(hosted, run, api_client)}))

    async def report(self, incoming: GatewayRequest) -> None:
        """Reply with the report as Markdown, HTML or JSON: `?format=`, else as `Accept` says."""
        hosted, _, run = await self._run(incoming)
        form = _form(incoming)
        result = await told(hosted.call(hosted.host.result(run.run_id)))
        if not result.report:
            raise ProblemError(_NO_REPORT, f"the run has no report: it is {state_of(run)}")
        if form == "json":
            await incoming.reply(json_reply(_result(result)))
            return
        text = result.report if form == "md" else await _page(hosted, run.run_id)
        await incoming.reply(HttpReply(200, {"content-type": _FORMS[form], **_ALONE}, text.encode()))

    async def cancel(self, incoming: GatewayRequest) -> None:
        """Cancel a run for good; where another worker has it, it ends within seconds."""
        hosted, _, run = await self._run(incoming)
        state = await told(hosted.call(hosted.host.cancel(run.run_id)))
        await incoming.reply(json_reply({"run": run.run_id, "state": state.value}, 202 if state == "running" else 200))

    async def accept(self, incoming: GatewayRequest) -> None:
        """Note that a person accepts a withheld report (`by`, beside the name of the key), and show it."""
        hosted, api_client, run = await self._run(incoming)
        body = await incoming.body(ORDER_BYTES)
        by: Any = (decode_object(body) or {}).get("by", "")
        if not isinstance(by, str) or len(by) > 100 or not by.isprintable():
            raise ProblemError(BAD_REQUEST, "by: a name of at most 100 characters is needed")
        result = await told(hosted.call(hosted.host.result(run.run_id)))
        if not result.report:
            raise ProblemError(_NO_REPORT, f"the run has no report: it is {state_of(run)}")
        if result.delivery == Delivery.WITHHELD:
            person = f"{by} ({api_client.name})" if by else api_client.name
            result = await told(hosted.call(hosted.host.accept(run.run_id, person)))
        await incoming.reply(json_reply(_result(result)))

    async def events(self, incoming: GatewayRequest) -> None:
        """Stream the events of a run, whichever worker performs it, after the one that `Last-Event-ID` names."""
        after = _after(incoming)
        hosted, _, run = await self._run(incoming)
        found = await told(hosted.call(hosted.host.next_events(run.run_id, after, 0.0)))
        if found.is_over and not found.events:  # an EventSource asks again and again unless it is told that it is over
            await incoming.reply(HttpReply(204, unrouted_headers()))
            return
        responder = incoming.responder
        incoming.client = Client(incoming.receive)  # from here on a client that hangs up ends the walk
        try:
            await responder.head("chat", {**EVENT_STREAM, **id_headers(unrouted_headers()["x-request-id"])})
            await responder.frame(_RETRY)
            while True:
                frames = b"".join(_frame(event) for event in found.events) or _PING
                async with asyncio.timeout(_PATIENCE_SECONDS):
                    await responder.frame(frames)
                if found.events:
                    after = found.events[-1].seq
                if found.is_over or self._research.stopping.is_set():
                    break
                found = await self._following(hosted, run.run_id, after)
            await responder.end()
        except TimeoutError:
            pass  # it does not read: the connection is cut

    async def _following(self, hosted: HostedResearch, run_id: str, after: int) -> NextEvents:
        """Return the next events, without any when the server stops first."""
        asked = asyncio.ensure_future(told(hosted.call(hosted.host.next_events(run_id, after, _PING_SECONDS))))
        stops = asyncio.ensure_future(self._research.stopping.wait())
        try:
            await asyncio.wait({asked, stops}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stops.cancel()
            if not asked.done():
                asked.cancel()
        return await asked if asked.done() else NextEvents((), is_over=False)

    def _asked(self, incoming: GatewayRequest) -> tuple[HostedResearch, ApiClient]:
        api_client = incoming.generation.ring.api_client(incoming.headers)
        return self._research.of(incoming.generation), api_client

    async def _run(self, incoming: GatewayRequest) -> tuple[HostedResearch, ApiClient, StoredRun]:
        hosted, api_client = self._asked(incoming)
        return hosted, api_client, await run_of(hosted, incoming.scope["path_params"]["id"], api_client)


async def begun_run(hosted: HostedResearch, inputs: RunInputs, api_client: ApiClient) -> str:
    """Begin a run of a key; returns its id.

    Raises ProblemError: 429 while as many go on as may, 403 for a model that the key may not use, 404 for one that is
    not there.
    """
    if inputs.model:
        _check_model(hosted, inputs.model, api_client)
    try:
        return await told(hosted.begin(inputs, api_client))
    except TooManyRuns as error:
        said = f"the key {api_client.name!r} has {error.most} runs already, and no more may go on at once"
        raise ProblemError(LIMITED, f"{said} (research.runs_per_key)", retry_after=None) from None


def _check_model(hosted: HostedResearch, model: str, api_client: ApiClient) -> None:
    config = hosted.generation.config
    if not api_client.may_use(model):
        way_out = '; with `model` "" a run asks none' if model == config.research.model else ""
        raise ProblemError(FORBIDDEN, f"model: the key {api_client.name!r} may not use {model[:100]!r}{way_out}")
    try:
        config.locate(model)
    except ModelNotFound as error:
        raise ProblemError(NO_MODEL, unknown_model(error.model, filter(api_client.may_use, config.names))) from None


async def run_of(hosted: HostedResearch, run_id: str, api_client: ApiClient) -> StoredRun:
    """Return a run that the key may see. Raises ProblemError (404) for all others."""
    try:
        run = await told(hosted.call(hosted.host.load(run_id)))
    except RunNotFound:
        _unknown(run_id)
    if not (api_client.admin or run.origin.get(OWNER) == api_client.owner):
        _unknown(run_id)
    return run


async def told(answer: Awaitable[T]) -> T:
    """Return an answer of the host. Raises ProblemError for what its client can do nothing about, RunNotFound."""
    try:
        return await answer
    except (CorpusError, StoreUnavailable) as error:
        log.error("research is not possible: %s", error.message)
        what = "a corpus of the configuration" if isinstance(error, CorpusError) else "the store of runs"
        raise ProblemError(_UNREADABLE, f"{what} cannot be read; the log of the gateway says why") from None


def _unknown(run_id: str) -> NoReturn:
    raise ProblemError(NOT_FOUND, f"run {run_id[:200]!r} is not known")


def standing_of(hosted: HostedResearch, run: StoredRun, api_client: ApiClient) -> dict[str, Any]:
    """Return how a run stands, with the names of its corpora; an admin is told its key, too."""
    told_of = {**standing_of_run(run), "corpora": hosted.names_of(run.inputs.get("corpora", ()))}
    if api_client.admin:
        owner = run.origin.get(OWNER)
        known = hosted.generation.ring.owners.get(str(owner))
        told_of["key"] = known.name if known is not None and owner is not None else None
    return told_of


def _result(result: ResearchResult, *, without: str = "") -> dict[str, Any]:
    """Return a result without paths of this machine."""
    hidden = ("artefacts", "skipped", without)
    return {key: value for key, value in result_as_json(result).items() if key not in hidden}


async def _page(hosted: HostedResearch, run_id: str) -> str:
    try:
        found: str = await hosted.call(hosted.host.page(run_id))
    except OSError:
        raise ProblemError(NOT_FOUND, "the report of the run is not, or no longer, there") from None
    return found


def _query(incoming: GatewayRequest) -> Mapping[str, str]:
    found = parse_qs(incoming.scope["query_string"].decode("latin-1"), keep_blank_values=True)
    return {name: values[-1] for name, values in found.items()}


def _limit(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= _MOST_LISTED and len(text) < 9):
        raise ProblemError(BAD_REQUEST, f"limit: {text[:40]!r} - a number from 1 to {_MOST_LISTED} is needed")
    return int(text)


def _form(incoming: GatewayRequest) -> str:
    asked = _query(incoming).get("format")
    if asked is None:
        accepted = incoming.headers.get("accept", "")
        return next((form for form in ("html", "json") if _FORMS[form].partition(";")[0] in accepted), "md")
    if asked not in _FORMS:
        raise ProblemError(BAD_REQUEST, f"format: {asked[:40]!r} is none of {', '.join(_FORMS)}")
    return asked


def _after(incoming: GatewayRequest) -> int:
    text = incoming.headers.get("last-event-id", "").strip() or _query(incoming).get("after", "0")
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise ProblemError(BAD_REQUEST, f"Last-Event-ID: {text[:40]!r} - the id of an event of this run is needed")
    return int(text)


def _frame(event: ResearchEvent) -> bytes:
    data = json.dumps(event_as_json(event), separators=(",", ":"))
    return f"id: {event.seq}\nevent: {event.kind.value}\ndata: {data}\n\n".encode()
