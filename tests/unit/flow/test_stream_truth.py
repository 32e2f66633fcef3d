"""Never called whole: what a client is told of upstreams that lie, over thousands of seeds.

`complete` is true only if every content byte of the stream that finished was delivered, in order, once (less the
repetition that the report names), and nothing of a broken one but the prefix in `recoveries`.
"""

from __future__ import annotations

import json
import random
from itertools import product

import pytest

from smart_model_router.core.overlap import Overlap
from smart_model_router.core.stream import StreamGuard, StreamState
from smart_model_router.domain.outcome import EventKind, StreamEvent
from smart_model_router.domain.request import Dialect
from smart_model_router.wires import StreamReader, chat, dialects, messages, responses_snapshots
from smart_model_router.wires.dialects import FINISH_CHECKS
from smart_model_router.wires.stream_join import Told
from smart_model_router.wires.values import missing_text
from tests.lies.answers import Block, content_of, frames_of
from tests.lies.judging import DIALECTS, POLICIES, Case, violations, violations_of
from tests.lies.lying import LIES

SEEDS = 2_000
"""`make nightly` judges 100,000."""
BATCH = 250
ANSWER = (Block("thinking", ("hm", " so")), Block("text", ("one ", "twö ", "three")), Block("call", ("{}",), "wipe"))


@pytest.mark.parametrize("first", range(0, SEEDS, BATCH))
def test_nothing_is_called_complete_that_is_not(first: int) -> None:
    """Any lie of one upstream or two, any policy, any dialects, in pieces of any size; report, log and client agree."""
    assert [one for seed in range(first, first + BATCH) for one in violations(seed)] == []


PAIRS = list(product(DIALECTS, DIALECTS))


@pytest.mark.parametrize("lie", LIES)
def test_each_lie_is_told_under_every_policy(lie: str) -> None:
    """In every pair of dialects, some with tools, some with `skip`."""
    found = []
    for number, ((asked, spoken), policy) in enumerate(product(PAIRS, POLICIES)):
        case = Case(asked, spoken, policy, skip=number % 2 == 0, tools=number % 4 < 2)
        found += violations_of(case, lie, "none", random.Random(f"{lie}/{number}"))
    assert found == []


@pytest.mark.parametrize("lie", ["control character", "tab", "bad escape", "bad utf-8", "line break"])
@pytest.mark.parametrize(("asked", "spoken"), PAIRS)
def test_no_argument_of_a_call_is_shortened(asked: Dialect, spoken: Dialect, lie: str) -> None:
    """Found: an event with a raw control character was dropped, and "/data/only-this" arrived as "/data/", complete."""
    for seed in range(12):
        case = Case(asked, spoken, "none", skip=seed % 2 == 0, tools=True)
        assert violations_of(case, lie, "none", random.Random(seed)) == []


@pytest.mark.parametrize("lie", ["undelivered", "contradicted", "other input", "interleaved", "unplaced"])
@pytest.mark.parametrize(("asked", "spoken"), PAIRS)
def test_what_is_told_twice_is_delivered_once(asked: Dialect, spoken: Dialect, lie: str) -> None:
    """Found: text that a Responses upstream sent in a `done` or the terminal event alone was lost in translation."""
    for seed in range(12):
        case = Case(asked, spoken, "none", skip=False, tools=seed % 2 == 0)
        assert violations_of(case, lie, "none", random.Random(seed)) == []


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("asked", "spoken"), PAIRS)
def test_nothing_is_glued_to_a_finished_answer(asked: Dialect, spoken: Dialect, policy: str) -> None:
    """Found: an answer whose stream broke after its finish reason was continued by another target."""
    for seed in range(6):
        for lie in ("unterminated", "late fault", "finished twice"):
            case = Case(asked, spoken, policy, skip=False, tools=seed % 2 == 0)
            assert violations_of(case, lie, "none", random.Random(seed)) == []


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_cut_at_any_byte_is_seen(dialect: Dialect) -> None:
    """Until the last byte of the finish has come the answer is cut; what came before is what was said, in order."""
    frames = frames_of(dialect, ANSWER, "a")
    raw = b"".join(frame.raw for frame in frames)
    finish = next(at for at, frame in enumerate(frames) if frame.role == "finish")
    finished = len(b"".join(frame.raw for frame in frames[: finish + 1]).rstrip(b"\n"))
    for size in range(len(raw) + 1):
        reader, guard = StreamReader(dialect), StreamGuard(FINISH_CHECKS[dialect](1))
        got = [out for event in (*reader.feed(raw[:size]), *reader.end()) for out in guard.feed(event)]
        guard.end()
        assert (guard.state is StreamState.COMPLETE) == (size >= finished), size
        whole = [frame for frame in frames if frame.is_content]
        came = [frame.raw for frame in whole if raw.index(frame.raw) + len(frame.raw.rstrip(b"\n")) <= size]
        assert [event.raw for event in got if event.kind is EventKind.CONTENT and b'"wipe"' not in event.raw] == [
            one for one in came if b'"wipe"' not in one
        ], size


def test_an_event_over_the_size_cap_is_a_fault() -> None:
    """Eight megabytes of one event may be text like any other."""
    frames = frames_of("chat", (Block("text", ("a", "x" * dialects.MAX_FRAME_BYTES, "b")),), "a")
    reader, guard = StreamReader("chat"), StreamGuard(FINISH_CHECKS["chat"](1))
    got = [out for frame in frames for event in reader.feed(frame.raw) for out in guard.feed(event)]
    assert guard.state is StreamState.FAILED
    assert [event.data["choices"][0]["delta"]["content"] for event in got if event.data is not None] == ["", "a"]


# The judge is judged --------------------------------------------------------------------------------------


def unreadable_is_dropped(patch: pytest.MonkeyPatch) -> None:
    """As it was: an event that cannot be read is passed over."""
    patch.setattr(StreamGuard, "_unreadable", lambda _, event: ())


def finished_is_continued(patch: pytest.MonkeyPatch) -> None:
    """As it was: an error after the finish reason is a failure like any other, and another target goes on."""
    patch.setattr(StreamGuard, "finished", property(lambda _: False))
    patch.setattr(StreamGuard, "can_be_continued", property(lambda _: True))


def any_end_is_one(patch: pytest.MonkeyPatch) -> None:
    """As it was: the terminator of Messages needs no stop reason, and no end of a block."""
    patch.setattr(messages.MessagesFinishing, "missing", lambda _: "")


def lines_are_ignored(patch: pytest.MonkeyPatch) -> None:
    """A line of JSON outside of any field is no data."""
    patch.setattr(dialects, "_NO_FIELD", None)


def mended_is_complete(patch: pytest.MonkeyPatch) -> None:
    """A replaced byte is nothing."""
    patch.setattr(dialects, "NOT_UTF8", None)


def too_much_is_trimmed(patch: pytest.MonkeyPatch) -> None:
    """What is new of a continuation loses its first character."""
    feed = Overlap.feed
    patch.setattr(Overlap, "feed", lambda self, piece: feed(self, piece)[1:])


def snapshots_are_passed_over(patch: pytest.MonkeyPatch) -> None:
    """As it was: what no delta carried is nothing, and nothing contradicts the deltas."""
    for reader in (
        chat.ChatSnapshots,
        messages.MessagesSnapshots,
        responses_snapshots.ResponsesSnapshots,
    ):
        patch.setattr(reader, "read", lambda _, events: events)


def contradictions_are_passed_over(patch: pytest.MonkeyPatch) -> None:
    """A snapshot that is no continuation of the deltas says nothing."""
    for module in (chat, responses_snapshots):
        patch.setattr(module, "missing_text", lambda told, whole: missing_text(told, whole) or "")


def text_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    """What the caller has is known without its last event."""
    take = Told.take
    held: list[StreamEvent] = []

    def late(self: Told, event: StreamEvent) -> None:
        held.append(event)
        if len(held) > 1:
            take(self, held.pop(0))

    patch.setattr(Told, "take", late)


def words_are_trusted(patch: pytest.MonkeyPatch) -> None:
    """A target that is only asked in words to continue is believed whatever it says."""
    begin = Overlap.__init__

    def trusting(self: Overlap, delivered: str, prefill: str, *, trusted: bool = True) -> None:
        del trusted
        begin(self, delivered, prefill)

    patch.setattr(Overlap, "__init__", trusting)


@pytest.mark.parametrize(
    "broken",
    [
        unreadable_is_dropped,
        finished_is_continued,
        any_end_is_one,
        lines_are_ignored,
        mended_is_complete,
        too_much_is_trimmed,
        text_is_forgotten,
        snapshots_are_passed_over,
        contradictions_are_passed_over,
        words_are_trusted,
    ],
)
def test_the_judge_notices_a_router_that_lies(broken: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each way to break the router is found within 400 seeds."""
    assert callable(broken)
    broken(monkeypatch)
    assert any(violations(seed) for seed in range(400))


def test_the_content_of_frames_is_counted_as_a_client_counts_it() -> None:
    """Thoughts, text, calls with their names."""
    said = content_of(ANSWER, frames_of("chat", ANSWER, "a"))
    assert (said.thinking, said.text, said.calls) == ("hm so", "one twö three", "wipe({})")
    assert json.loads(said.calls[5:-1]) == {}
