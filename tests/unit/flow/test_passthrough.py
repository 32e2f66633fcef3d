"""A request that passes through, in virtual time: who is asked, what ends it, and that nothing stays held."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from smart_model_router import (
    AllTargetsFailed,
    DeadlineExceeded,
    FailureClass,
    NotFound,
    Overloaded,
    RouterUnavailable,
    StreamInterrupted,
)
from smart_model_router.domain.events import AttemptFinished, RequestFinished, RequestShed, TargetRefused
from smart_model_router.domain.outcome import NO_READING, BucketReading, Failure, LimitReading, Wait
from smart_model_router.domain.ports import PassedCall
from smart_model_router.domain.request import RequestOptions
from smart_model_router.flow.passthrough import RoutePassage
from smart_model_router.testing import FakeProvider
from tests.world import BODY, World, now, swallow, virtual, world

SILENCE = 300.0


@dataclass
class Reply:
    """An answer: `pieces`, each after `each` seconds, then `ending`: b"" when it is whole, a number for silence."""

    pieces: Sequence[bytes] = (b"spoken",)
    each: float = 0.0
    ending: bytes | Failure | float | Exception = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "audio/mpeg"})
    reading: LimitReading = NO_READING
    closed: int = 0

    def __post_init__(self) -> None:
        self._left = list(self.pieces)

    async def next_piece(self) -> bytes | Failure:
        """The next one."""
        await asyncio.sleep(self.each)
        if self._left:
            return self._left.pop(0)
        if isinstance(self.ending, (bytes, Failure)):
            return self.ending
        if isinstance(self.ending, Exception):
            raise self.ending
        await asyncio.sleep(self.ending)
        return b""

    async def aclose(self) -> None:
        """Count."""
        self.closed += 1


class Passing(FakeProvider):
    """A provider with other paths: it takes the body, a piece each `takes` seconds, waits, and answers as told."""

    def __init__(
        self, *answers: Reply | Failure | Exception, reads: bool = True, takes: float = 0.0, waits: float = 0.0
    ) -> None:
        super().__init__()
        self.answers = list(answers)
        self.passed: list[PassedCall] = []
        self.bodies: list[bytes] = []
        self._reads, self._takes, self.waits = reads, takes, waits

    async def pass_through(self, call: PassedCall) -> Reply | Failure:
        """As told; the last answer is for all further calls."""
        self.passed.append(call)
        if self._reads:
            body = b""
            async for piece in call.body:
                await asyncio.sleep(self._takes)
                body += piece
            self.bodies.append(body)
        await asyncio.sleep(self.waits)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


async def body_of(*pieces: bytes | float | Exception) -> AsyncIterator[bytes]:
    """A client's body: a number is a pause, an exception what becomes of the client."""
    for piece in pieces:
        if isinstance(piece, bytes):
            yield piece
        elif isinstance(piece, Exception):
            raise piece
        else:
            await asyncio.sleep(piece)


def passing_world(**providers: Passing) -> World:
    """A router with the model `smart` at the first of them, and a route to them all in order."""
    first = next(iter(providers))
    routes = {"/v1/audio/speech": [*providers], "/v1/moderations": [f"{first}/big"]}
    gateway = {"passthrough": {"routes": routes, "silence": SILENCE}}
    return world([f"{first}/big"], replies=providers, config={"gateway": gateway})


def passage(
    w: World, *pieces: bytes | float | Exception, path: str = "/v1/audio/speech", **options: Any
) -> RoutePassage:
    """A request with this body."""
    given: RequestOptions = {**options}  # type: ignore[typeddict-item]  # as tests write them
    body = body_of(*(pieces or (b"one", b"two")))
    return w.router.passage(PassedCall(path, "", {"content-type": "text/plain"}, body, None), given)


async def read(one: RoutePassage) -> bytes:
    """The whole answer; closed in any case."""
    said = b""
    try:
        await one.open()
        while (piece := await one.next_piece()) is not None:
            said += piece
    finally:
        await one.aclose()
    return said


def outcomes(w: World) -> list[str]:
    """How requests ended, for the sinks."""
    return [event.outcome for event in w.sink.of(RequestFinished)]


def classes(w: World) -> list[FailureClass | None]:
    """How calls ended."""
    return [event.failure_class for event in w.sink.of(AttemptFinished)]


@virtual
async def test_an_answer_passes_through_and_is_counted_under_its_path() -> None:
    """Body and answer whole, one attempt, one event each; the call goes to the provider with its credential."""
    reply = Reply([b"a", b"b"], headers={"content-type": "x/y", "content-length": "2", "set-cookie": "no"})
    w = passing_world(a=Passing(reply))
    one = passage(w)
    assert await read(one) == b"ab"
    assert (one.status, one.headers) == (200, {"content-type": "x/y", "content-length": "2"})
    assert (one.report.target, one.report.complete, len(one.report.attempts)) == ("a/v1/audio/speech", True, 1)
    [attempt] = w.sink.of(AttemptFinished)
    assert (attempt.target, attempt.provider, attempt.model) == ("a/v1/audio/speech", "a", "v1/audio/speech")
    [finished] = w.sink.of(RequestFinished)
    told = finished.dialect, finished.configured_model, finished.model, finished.outcome
    assert told == ("passthrough", "/v1/audio/speech", "/v1/audio/speech", "ok")
    assert w.router.stats().targets["a/v1/audio/speech"].successes == 1
    assert w.router.stats().targets["a/big"].successes == 0
    assert reply.closed == 1
    w.assert_idle()


@virtual
async def test_a_slow_body_and_a_slow_answer_are_no_silence() -> None:
    """An hour of sending, ten minutes of waiting for the client, an hour of answering: something moves."""
    reply = Reply([b"x"] * 15, each=SILENCE - 1)
    w = passing_world(a=Passing(reply, takes=SILENCE - 1))
    assert await read(passage(w, *[b"piece"] * 12, 2 * SILENCE, b"last")) == b"x" * 15
    assert classes(w) == [None]
    w.assert_idle()


@virtual
async def test_a_slow_reader_is_no_silence_of_the_provider() -> None:
    """Whoever reads the answer may take its time."""
    w = passing_world(a=Passing(Reply([b"x", b"y"])))
    one = passage(w)
    await one.open()
    for _ in range(2):
        await asyncio.sleep(3 * SILENCE)
        assert await one.next_piece()
    assert await one.next_piece() is None
    await one.aclose()
    w.assert_idle()


@virtual
@pytest.mark.parametrize(("takes", "waits"), [(2 * SILENCE, 0.0), (0.0, 2 * SILENCE)])
async def test_silence_before_the_head_is_a_timeout(takes: float, waits: float) -> None:
    """Of a provider that does not take the body, or says nothing after it: to the second, and told to try again."""
    w = passing_world(a=Passing(Reply(), takes=takes, waits=waits))
    began = now()
    with pytest.raises(AllTargetsFailed, match="neither took nor sent anything for 300 s") as caught:
        await read(passage(w, b"one"))
    assert now() - began == pytest.approx(SILENCE, abs=0.01)
    assert caught.value.retry_after is not None
    assert classes(w) == [FailureClass.TIMEOUT]
    w.assert_idle()


@virtual
async def test_each_target_has_its_own_silence() -> None:
    """The first one never takes the body; the next is asked, and given up after the same time."""
    w = passing_world(a=Passing(Reply(), reads=False, waits=2 * SILENCE), b=Passing(Reply(), waits=2 * SILENCE))
    began = now()
    with pytest.raises(AllTargetsFailed, match="b/v1/audio/speech TIMEOUT"):
        await read(passage(w))
    assert now() - began == pytest.approx(2 * SILENCE, abs=0.01)
    assert classes(w) == [FailureClass.TIMEOUT] * 2
    w.assert_idle()


@virtual
async def test_silence_in_the_middle_of_an_answer_interrupts_it() -> None:
    """What had come is handed on; then the client is told, and the provider's connection ends."""
    reply = Reply(ending=2 * SILENCE)
    w = passing_world(a=Passing(reply))
    one = passage(w)
    with pytest.raises(StreamInterrupted, match="neither took nor sent"):
        await read(one)
    assert (classes(w), outcomes(w), reply.closed) == ([FailureClass.TIMEOUT], ["failed"], 1)
    assert one.report.complete is False
    w.assert_idle()


@virtual
@pytest.mark.parametrize(
    ("ending", "found"),
    [
        (Failure(FailureClass.TRUNCATED, "cut", status=200), FailureClass.TRUNCATED),
        (RuntimeError("a bug"), FailureClass.SERVER_ERROR),
    ],
)
async def test_an_answer_that_breaks_off_counts(ending: Failure | Exception, found: FailureClass) -> None:
    """A cut, and a provider object that raises."""
    w = passing_world(a=Passing(Reply(ending=ending)))
    with pytest.raises(StreamInterrupted) as caught:
        await read(passage(w))
    assert caught.value.report is not None
    assert classes(w) == [found]
    w.assert_idle()


@virtual
@pytest.mark.parametrize("pieces", [(ConnectionResetError("the client left"),), (b"one", ValueError("too long"))])
async def test_what_becomes_of_the_client_is_no_failure_of_the_provider(pieces: tuple[Any, ...]) -> None:
    """The body's own exception comes back as it is; the call was given up."""
    w = passing_world(a=Passing(Reply()), b=Passing(Reply()))
    with pytest.raises(type(pieces[-1])):
        await read(passage(w, *pieces))
    assert (classes(w), outcomes(w)) == ([FailureClass.CANCELLED], ["cancelled"])
    assert w.providers["b"].passed == []  # type: ignore[attr-defined]  # it is a Passing
    w.assert_idle()


@virtual
async def test_a_caller_that_leaves_gives_everything_back() -> None:
    """While it waits for a head, and in the middle of an answer."""
    w = passing_world(a=Passing(Reply(ending=SILENCE), waits=10.0))
    leaving = asyncio.ensure_future(read(passage(w)))
    await asyncio.sleep(1.0)
    await swallow(leaving)
    w.assert_idle()
    leaving = asyncio.ensure_future(read(passage(w)))
    await asyncio.sleep(11.0)
    await swallow(leaving)
    assert classes(w) == [FailureClass.CANCELLED] * 2
    assert outcomes(w) == ["cancelled"] * 2
    w.assert_idle()


@virtual
async def test_the_callers_own_time_ends_the_call() -> None:
    """`x-router-timeout`: nobody's fault."""
    w = passing_world(a=Passing(Reply(), waits=60.0))
    began = now()
    with pytest.raises(DeadlineExceeded):
        await read(passage(w, timeout=5.0))
    assert now() - began == pytest.approx(5.0, abs=0.01)
    assert classes(w) == [FailureClass.CANCELLED]
    w.assert_idle()


@virtual
async def test_a_closing_router_ends_what_is_under_way() -> None:
    """Before the head as RouterUnavailable, after it as an interruption of a closed router."""
    w = passing_world(a=Passing(Reply(), Reply(ending=60.0), waits=0.0))
    w.providers["a"].waits = 60.0  # type: ignore[attr-defined]  # the first one waits
    first = asyncio.ensure_future(read(passage(w)))
    await asyncio.sleep(1.0)
    w.providers["a"].waits = 0.0  # type: ignore[attr-defined]
    w.providers["a"].answers = [Reply(ending=60.0)]  # type: ignore[attr-defined]
    second = asyncio.ensure_future(read(passage(w)))
    await asyncio.sleep(1.0)
    await w.router.aclose()
    told = await asyncio.gather(first, second, return_exceptions=True)
    assert isinstance(told[0], RouterUnavailable)
    assert isinstance(told[1], StreamInterrupted)
    assert told[1].reason == "closed"
    assert [gate.in_flight for gate in w.state.fleet.gates.values()] == [0] * 3
    with pytest.raises(RouterUnavailable):
        passage(w)


@virtual
async def test_a_closing_router_ends_an_answer_that_waits_for_its_reader() -> None:
    """No timer is set then: the reader is told when it asks for more."""
    w = passing_world(a=Passing(Reply([b"x"] * 60, each=1.0)))
    one = passage(w)
    await one.open()
    assert await one.next_piece() == b"x"
    closed_at = now()
    await w.router.aclose()
    with pytest.raises(StreamInterrupted) as told:
        await one.next_piece()
    await one.aclose()
    assert (told.value.reason, now()) == ("closed", closed_at)
    assert classes(w) == [FailureClass.CANCELLED]
    w.assert_idle()


@virtual
async def test_another_target_takes_over_only_before_the_body_was_taken() -> None:
    """A refused connection costs a try; a provider that took the body ends the request."""
    refused = Failure(FailureClass.TRANSPORT, "refused", unsent=True)
    w = passing_world(a=Passing(refused, reads=False), b=Passing(Reply()))
    one = passage(w)
    assert await read(one) == b"spoken"
    assert w.providers["b"].bodies == [b"onetwo"]  # type: ignore[attr-defined]
    assert (one.report.fallback, outcomes(w)) == (True, ["fallback"])
    w = passing_world(a=Passing(Failure(FailureClass.SERVER_ERROR, "500", status=500)), b=Passing(Reply()))
    with pytest.raises(AllTargetsFailed, match="the body was sent already"):
        await read(passage(w))
    assert w.providers["b"].passed == []  # type: ignore[attr-defined]
    w.assert_idle()


@virtual
async def test_a_request_waits_for_a_slot_of_the_provider() -> None:
    """Slots are the provider's, whatever is asked of it; they are waited for, in turn, and told as refusals."""
    gateway = {"passthrough": {"routes": {"/v1/audio/speech": ["a"]}}}
    w = world(["a/big"], replies={"a": Passing(Reply(), waits=5.0)}, config={"gateway": gateway})
    w.gate("a/big").provider.bulkhead.resize(1)
    began = now()
    held, waiting = passage(w), passage(w)
    await asyncio.gather(read(held), read(waiting))
    assert now() - began == pytest.approx(10.0, abs=0.1)
    assert waiting.report.waited_seconds == pytest.approx(5.0, abs=0.1)
    assert [event.reason for event in w.sink.of(TargetRefused)] == ["bulkhead"]
    w.assert_idle()


@virtual
async def test_a_refusal_of_the_path_is_a_404_for_a_while() -> None:
    """The provider is asked once; after a quarter of an hour once more."""
    missing = Failure(FailureClass.MISCONFIGURED, "HTTP 404", status=404, raw=b"{}")
    w = passing_world(a=Passing(missing, Reply()))
    assert await read(passage(w)) == b"{}"
    with pytest.raises(NotFound, match=r"a/v1/audio/speech \(asked again in 900 s\)"):
        await read(passage(w))
    await asyncio.sleep(901.0)
    assert await read(passage(w)) == b"spoken"
    assert w.gate("a/big").cooldown.law(now()) is None


NO_VOICE = Failure(FailureClass.MISCONFIGURED, "HTTP 404", status=404, raw=b"{}")


@virtual
async def test_a_path_that_has_answered_is_not_missing() -> None:
    """A 404 for a thing that the body names, such as a voice, is the client's own: the next one is served."""
    w = passing_world(a=Passing(Reply(), NO_VOICE, Reply()))
    assert [await read(passage(w)) for _ in range(3)] == [b"spoken", b"{}", b"spoken"]
    w.assert_idle()


@virtual
async def test_a_path_that_answers_now_is_not_missing() -> None:
    """Its first answer is under way when another client names a voice that is not there."""
    w = passing_world(a=Passing(Reply(pieces=[b"x"] * 60, each=1.0), NO_VOICE, Reply()))
    first = asyncio.create_task(read(passage(w)))
    await asyncio.sleep(30.0)
    assert [await read(passage(w)) for _ in range(2)] == [b"{}", b"spoken"]
    await first
    w.assert_idle()


@virtual
async def test_a_path_that_has_answered_is_not_missing_after_a_reload() -> None:
    """The router that takes the place of another knows it, and counts on."""
    a = Passing(Reply(), NO_VOICE)
    before, w = passing_world(a=a), passing_world(a=a)
    assert [await read(passage(before)) for _ in range(2)] == [b"spoken", b"{}"]
    w.router.continue_from(before.router)
    assert [await read(passage(w)) for _ in range(2)] == [b"{}"] * 2
    with pytest.raises(NotFound):
        await read(passage(w))


@virtual
async def test_a_path_that_was_taken_away_is_missing_after_three_refusals() -> None:
    """It answered once, then it is gone: the next target of the route takes over."""
    passing = {"a": Passing(Reply(), NO_VOICE), "b": Passing(Reply(), Reply())}
    w = passing_world(**passing)
    answers = [await read(passage(w)) for _ in range(6)]
    assert answers == [b"spoken", b"{}", b"{}", b"{}", b"spoken", b"spoken"]
    assert len(passing["b"].passed) == 2


@virtual
async def test_an_empty_word_of_the_provider_is_told_in_ours() -> None:
    """A 404 without a body."""
    w = passing_world(a=Passing(Failure(FailureClass.MISCONFIGURED, "HTTP 404: an empty body", status=404)))
    with pytest.raises(NotFound, match="a/v1/audio/speech: HTTP 404"):
        await read(passage(w))


@virtual
async def test_a_long_call_that_probes_the_provider_holds_up_no_model() -> None:
    """Once its body is taken the provider was reached: what the answer comes to may take minutes."""
    unreachable = Failure(FailureClass.TRANSPORT, "refused", unsent=True)
    provider = Passing(*[unreachable] * 5, Reply())
    w = passing_world(a=provider)
    for _ in range(5):
        with pytest.raises(AllTargetsFailed):
            await read(passage(w, timeout=1))
    assert not w.gate("a/big").provider.transport.is_closed
    provider.waits = 200.0
    long = asyncio.create_task(read(passage(w)))
    await asyncio.sleep(60.0)
    assert not long.done()
    assert (await w.router.chat(BODY, timeout=5)).report.target == "a/big"
    assert await long == b"spoken"
    w.assert_idle()


@virtual
async def test_a_rate_limit_is_the_models_too() -> None:
    """`a/big` waits on both of its paths; once it is over both go on. The path without a model's name waits alone."""
    limited = Failure(FailureClass.RATE_LIMITED, "429", status=429, wait=Wait(30.0))
    w = passing_world(a=Passing(limited, Reply()))
    with pytest.raises(AllTargetsFailed) as caught:
        await read(passage(w, path="/v1/moderations"))
    assert caught.value.retry_after == pytest.approx(30.0)
    law = w.gate("a/big").cooldown.law(now())
    assert law is not None
    assert law.reason == "wait"
    assert law.retry_at == pytest.approx(now() + 30.0)
    assert await read(passage(w)) == b"spoken"
    began = now()
    assert (await w.router.chat({"model": "smart", "messages": [{"role": "user", "content": "x"}]})).body
    assert now() - began == pytest.approx(30.0, abs=1.0)


@virtual
async def test_a_wait_of_the_model_is_the_paths_too() -> None:
    """It is waited for where there is time, and refused with its end where there is none."""
    w = passing_world(a=Passing(Reply()))
    limited = Failure(FailureClass.RATE_LIMITED, "429", status=429, wait=Wait(30.0))
    lease = w.gate("a/big").cooldown
    lease.failed(limited, admitted_at=now(), sent_seq=1, now=now(), roll=0.0, paced=False, advise=False)
    with pytest.raises(AllTargetsFailed) as caught:
        await read(passage(w, path="/v1/moderations", timeout=5.0))
    assert caught.value.retry_after == pytest.approx(30.0, abs=0.1)
    began, one = now(), passage(w, path="/v1/moderations")
    assert await read(one) == b"spoken"
    assert now() - began == pytest.approx(30.0, abs=0.1)
    assert [refusal.reason for refusal in one.report.refusals] == ["wait"]


@virtual
async def test_limits_that_an_answer_tells_count() -> None:
    """The headers of a success, for the target beside, whose tracker it is; nonsense in them is counted."""
    told = LimitReading((BucketReading("requests", 60, 0, 60.0),), rejected=2)
    w = passing_world(a=Passing(Reply(reading=told)))
    await read(passage(w, path="/v1/moderations"))
    assert w.gate("a/big").limits is w.gate("a/big/v1/moderations").limits
    assert w.gate("a/big").limits.seen
    assert w.state.rejected_fields["a"] == 2


@virtual
async def test_sheddable_requests_are_shed() -> None:
    """While more than half of the providers are open, as any call of that criticality."""
    w = passing_world(a=Passing(Failure(FailureClass.TRANSPORT, "refused", unsent=True), reads=False))
    for _ in range(30):
        with pytest.raises(AllTargetsFailed):
            await read(passage(w, timeout=0.5))
    assert w.router.system_health().shedding
    with pytest.raises(Overloaded):
        await read(passage(w, criticality="sheddable"))
    assert len(w.sink.of(RequestShed)) == 1
    assert outcomes(w)[-1] == "rejected_local"


@virtual
async def test_an_isolated_path_is_asked_nothing() -> None:
    """The operator takes one path of a provider out, by its name; its models go on."""
    w = passing_world(a=Passing(Reply(), Reply()))
    w.router.isolate("a/v1/audio/speech")
    with pytest.raises(AllTargetsFailed, match="isolated"):
        await read(passage(w))
    assert await read(passage(w, path="/v1/moderations")) == b"spoken"
    w.router.close("a/v1/audio/speech")
    assert await read(passage(w)) == b"spoken"


def test_a_provider_that_cannot_is_a_configuration_error() -> None:
    """One without other paths, an SDK's client or the embedded model, is named before anything is sent."""
    gateway = {"passthrough": {"routes": {"/v1/rerank": ["b"]}}}
    with pytest.raises(Exception, match=r"gateway\.passthrough\.routes\['/v1/rerank'\]"):
        world(["a/big"], replies={"b": FakeProvider()}, config={"gateway": gateway})


@virtual
async def test_a_provider_of_paths_alone_takes_no_part_in_the_health_of_models() -> None:
    """It counts neither as a provider that may be open nor as one whose silence means that we are offline."""
    gateway = {"passthrough": {"routes": {"/v1/rerank": ["b"]}}}
    refused = Failure(FailureClass.TRANSPORT, "refused", unsent=True)
    replies: dict[str, FakeProvider] = {"b": Passing(refused, reads=False)}
    w = world(["a/big"], replies=replies, config={"gateway": gateway})
    for _ in range(30):
        with pytest.raises(AllTargetsFailed):
            await read(passage(w, path="/v1/rerank", timeout=0.5))
    health = w.router.system_health()
    assert (health.open_ratio, health.offline) == (0.0, False)
    assert w.router.stats().targets["b/v1/rerank"].successes == 0
