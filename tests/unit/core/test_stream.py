"""StreamGuard: nothing is delivered before the first content, and nothing unfinished passes for complete."""

from __future__ import annotations

import pytest

from smart_model_router.core.stream import StreamGuard, StreamState
from smart_model_router.domain.outcome import EventKind, Failure, FailureClass, StreamEvent, Usage
from smart_model_router.wires.dialects import FINISH_CHECKS

HEAD = StreamEvent(EventKind.META, b"head")
TEXT = StreamEvent(EventKind.CONTENT, b"text")
PING = StreamEvent(EventKind.PING, b": ping")
BAD = StreamEvent(EventKind.MALFORMED, b"data: {")
STOP = StreamEvent(EventKind.FINISH, b"stop", finish="stop")
END = StreamEvent(EventKind.END, b"[DONE]")
TEXT_OF_ANOTHER = StreamEvent(EventKind.CONTENT, b"", {"choices": [{"index": 1, "delta": {"content": "x"}}]})
STOP_OF_ANOTHER = StreamEvent(EventKind.FINISH, b"", {"choices": [{"index": 1, "finish_reason": "stop"}]}, "stop")


def fed(
    *events: StreamEvent, skipping: bool = False, exact: bool = False, choices: int = 1
) -> tuple[StreamGuard, list[StreamEvent]]:
    """Make a guard that saw `events`, and what it delivered of them."""
    guard = StreamGuard(FINISH_CHECKS["chat"](choices), exact=exact)
    guard.skipping = skipping or guard.skipping
    delivered = [out for event in events for out in guard.feed(event)]
    return guard, delivered


def failed_as(guard: StreamGuard) -> FailureClass:
    """How a guard that must have failed did."""
    assert guard.state is StreamState.FAILED
    assert guard.failure is not None
    return guard.failure.failure_class


def test_the_head_is_held_until_the_first_content() -> None:
    """Two head events are delivered with the text, in order; before that nothing is."""
    guard, delivered = fed(HEAD, HEAD)
    assert delivered == []
    assert (guard.state, guard.delivered, guard.ended) == (StreamState.HELD, False, False)
    assert guard.feed(TEXT) == (HEAD, HEAD, TEXT)
    assert (guard.state, guard.delivered, guard.ended) == (StreamState.COMMITTED, True, False)
    assert guard.feed(TEXT) == (TEXT,)


def test_a_committed_stream_passes_everything_on() -> None:
    """Content, pings, usage and the finish, as they come."""
    _, delivered = fed(TEXT, PING, HEAD, STOP, END)
    assert delivered == [TEXT, PING, HEAD, STOP, END]


def test_a_ping_is_no_progress() -> None:
    """Before the first content pings are dropped and commit nothing."""
    guard, delivered = fed(PING, PING)
    assert delivered == []
    assert guard.state is StreamState.HELD
    assert guard.feed(TEXT) == (TEXT,)


def test_a_stream_with_finish_and_terminator_is_complete() -> None:
    """Its reason and usage are kept."""
    usage = Usage(3, 4)
    guard, _ = fed(HEAD, TEXT, STOP, StreamEvent(EventKind.META, b"u", usage=usage), END)
    assert (guard.state, guard.ended, guard.failure) == (StreamState.COMPLETE, True, None)
    assert (guard.finish, guard.usage) == ("stop", usage)


def test_the_last_usage_counts() -> None:
    """Messages streams tell it twice, growing; an event without usage does not forget it."""
    one, two = (StreamEvent(EventKind.META, b"", usage=Usage(1, n)) for n in (1, 2))
    assert fed(one, two, TEXT)[0].usage == Usage(1, 2)


def test_a_terminator_without_a_finish_reason_is_truncated() -> None:
    """It proves nothing: what ends a stream is not what ends an answer."""
    assert failed_as(fed(TEXT, END)[0]) is FailureClass.TRUNCATED


@pytest.mark.parametrize("events", [(), (HEAD,), (TEXT,), (HEAD, PING)], ids=["none", "head", "content", "ping"])
def test_a_transport_that_ends_without_a_finish_is_truncated(events: tuple[StreamEvent, ...]) -> None:
    """However much had come."""
    guard, _ = fed(*events)
    assert guard.end() == ()
    assert failed_as(guard) is FailureClass.TRUNCATED


def test_the_message_says_whether_content_had_come() -> None:
    """A failed head and a cut answer read differently."""
    head, cut = fed(HEAD)[0], fed(TEXT)[0]
    for guard in (head, cut):
        guard.end()
    assert head.failure == Failure(FailureClass.TRUNCATED, "the stream ended before any content without its terminator")
    assert cut.failure == Failure(FailureClass.TRUNCATED, "the stream ended after content without its terminator")


@pytest.mark.parametrize(
    ("events", "told"),
    [
        ([TEXT, END], "the stream was closed without a finish reason"),
        ([TEXT, BAD], "an event that cannot be read"),
        ([TEXT, STOP, TEXT], "content after the finish reason"),
        ([HEAD, STOP, END], "the stream is complete and has no content"),
        ([HEAD, StreamEvent(EventKind.ERROR, b"e")], "error event"),
    ],
)
def test_a_failed_stream_says_what_was_wrong_with_it(events: list[StreamEvent], told: str) -> None:
    """In words for the account of the attempts."""
    guard, _ = fed(*events)
    assert guard.failure is not None
    assert guard.failure.message == told


def test_a_finish_reason_without_the_terminator_is_finalised() -> None:
    """Everything of the answer had come: complete, and nothing more to deliver."""
    guard, _ = fed(TEXT, STOP)
    assert guard.end() == ()
    assert guard.state is StreamState.COMPLETE
    assert guard.notes == ["the transport ended before the terminator"]
    left, _ = fed(TEXT, STOP)
    left.end("")
    assert (left.state, left.notes) == (StreamState.COMPLETE, [])


@pytest.mark.parametrize(
    "reason", ["length", "max_tokens", "content_filter", "refusal", "model_context_window_exceeded"]
)
def test_an_empty_answer_with_a_reason_for_it_is_complete(reason: str) -> None:
    """What was held is delivered, by the terminator or by the end of the transport."""
    finish = StreamEvent(EventKind.FINISH, b"f", finish=reason)
    guard, delivered = fed(HEAD, finish, END)
    assert guard.state is StreamState.COMPLETE
    assert delivered == [HEAD, finish, END]
    lingering, _ = fed(HEAD, finish)
    assert lingering.end() == (HEAD, finish)
    assert lingering.state is StreamState.COMPLETE


def test_an_empty_answer_without_a_reason_is_empty() -> None:
    """A stop and nothing said: not an answer, whatever the dialect."""
    assert failed_as(fed(HEAD, STOP, END)[0]) is FailureClass.EMPTY
    assert fed(HEAD, STOP, END)[1] == []


@pytest.mark.parametrize("before", [(), (HEAD,), (TEXT,)], ids=["first", "head", "content"])
def test_an_event_that_cannot_be_read_is_a_failure(before: tuple[StreamEvent, ...]) -> None:
    """It may have carried content, wherever it stands; nothing after it counts."""
    guard, _ = fed(*before, BAD, TEXT, STOP, END)
    assert failed_as(guard) is FailureClass.MALFORMED
    assert (guard.malformed, guard.unreadable) == (1, True)
    assert not fed(*before)[0].unreadable


def test_an_event_that_cannot_be_read_may_say_why() -> None:
    """It contradicts what came before it: that is no replaced byte, even where none may be replaced."""
    why = Failure(FailureClass.MALFORMED, "the text contradicts the deltas before it")
    for exact in (False, True):
        guard, _ = fed(TEXT, BAD._replace(failure=why), exact=exact)
        assert (guard.failure, guard.mended, guard.malformed) == (why, 0, 1)


def test_skipped_events_fail_at_the_end() -> None:
    """The rest is delivered, but not what would make it look whole: the terminator."""
    guard, delivered = fed(TEXT, BAD, TEXT, BAD, STOP, END, skipping=True)
    assert delivered == [TEXT, TEXT, STOP]
    assert failed_as(guard) is FailureClass.MALFORMED
    assert guard.failure is not None
    assert guard.failure.message == "2 events that could not be read were skipped"
    assert (guard.skipped, guard.malformed) == (2, 2)


@pytest.mark.parametrize(
    ("fault", "note"),
    [
        (BAD, "an event after the finish reason could not be read"),
        (
            StreamEvent(EventKind.ERROR, b"e", {}, failure=Failure(FailureClass.OVERLOADED)),
            "OVERLOADED after the finish reason",
        ),
    ],
)
def test_a_fault_after_the_finish_is_noted(fault: StreamEvent, note: str) -> None:
    """Once, however often it comes; the usage behind it is still read."""
    usage = Usage(3, 4)
    guard, _ = fed(TEXT, STOP, fault, fault, StreamEvent(EventKind.META, b"u", usage=usage), END)
    assert (guard.state, guard.usage, guard.notes) == (StreamState.COMPLETE, usage, [note])


def test_a_transport_that_breaks_after_the_finish_ends_a_complete_answer() -> None:
    """At once: nothing more can come."""
    cut = StreamEvent(EventKind.ERROR, b"", failure=Failure(FailureClass.TRUNCATED))
    guard, _ = fed(TEXT, STOP, cut)
    assert (guard.state, guard.notes) == (StreamState.COMPLETE, ["TRUNCATED after the finish reason"])


def test_nobody_goes_on_with_what_is_finished_or_has_holes() -> None:
    """Nor with an answer one of whose finish reasons the caller has."""
    assert all(fed(*events)[0].can_be_continued for events in ((), (HEAD,), (TEXT,)))
    assert not fed(TEXT, STOP)[0].can_be_continued
    assert not fed(TEXT, BAD, skipping=True)[0].can_be_continued
    assert not fed(TEXT, STOP, TEXT_OF_ANOTHER, choices=2)[0].can_be_continued


def test_a_finish_reason_waits_for_the_other_choices() -> None:
    """It is delivered with what comes next of them, or when all have one."""
    guard, delivered = fed(TEXT, STOP, choices=2)
    assert delivered == [TEXT]
    assert guard.feed(TEXT_OF_ANOTHER) == (STOP, TEXT_OF_ANOTHER)
    assert guard.feed(STOP_OF_ANOTHER) == (STOP_OF_ANOTHER,)
    assert guard.feed(END) == (END,)
    assert guard.state is StreamState.COMPLETE


def test_replaced_bytes_are_noted_and_no_schema_has_any() -> None:
    """Prose is delivered with them, once noted; where the caller's schema is answered they are a failure."""
    mended = TEXT._replace(failure=Failure(FailureClass.MALFORMED, "replaced"))
    guard, delivered = fed(mended, mended, STOP, END)
    assert delivered == [mended, mended, STOP, END]
    assert (guard.state, guard.mended, guard.notes) == (StreamState.COMPLETE, 2, ["replaced"])
    assert StreamGuard(FINISH_CHECKS["chat"](1)).feed(mended) == (mended,)
    assert failed_as(fed(mended, exact=True)[0]) is FailureClass.MALFORMED


def test_replaced_bytes_in_what_repeats_the_text_count_as_well() -> None:
    """Responses say the whole text again at the end, and some clients take it from there."""
    told = Failure(FailureClass.MALFORMED, "replaced")
    again = StreamEvent(EventKind.META, b"again", {}, failure=told)
    last = END._replace(finish="completed", failure=told)
    for events in ((TEXT, again, STOP, END), (TEXT, STOP, last)):
        guard, delivered = fed(*events)
        assert delivered == list(events)
        assert (guard.state, guard.mended, guard.notes) == (StreamState.COMPLETE, 1, ["replaced"])
        assert failed_as(fed(*events, exact=True)[0]) is FailureClass.MALFORMED


def test_what_begins_after_the_finish_is_content_too_late() -> None:
    """A block of Messages that opens when all was said."""
    guard = StreamGuard(FINISH_CHECKS["messages"](1))
    for event in (TEXT, StreamEvent(EventKind.FINISH, b"", finish="end_turn")):
        guard.feed(event)
    assert guard.feed(StreamEvent(EventKind.META, b"", {"type": "content_block_start", "index": 1})) == ()
    assert failed_as(guard) is FailureClass.MALFORMED


def test_arguments_without_a_call_are_a_failure() -> None:
    """They would be lost on the way to another dialect."""
    guard = StreamGuard(FINISH_CHECKS["messages"](1))
    delta = {"type": "input_json_delta", "partial_json": "{}"}
    event = StreamEvent(EventKind.CONTENT, b"", {"type": "content_block_delta", "index": 0, "delta": delta})
    assert guard.feed(event) == ()
    assert failed_as(guard) is FailureClass.MALFORMED
    assert guard.failure is not None
    assert guard.failure.message == "arguments of a call that is not open"


def test_an_answer_that_cannot_be_handed_on_is_spoilt() -> None:
    """Even when its end has come; before that the end is here, and nothing more is delivered."""
    for events in ((TEXT, STOP, END), (TEXT,)):
        guard, _ = fed(*events)
        guard.spoil("too deep")
        assert failed_as(guard) is FailureClass.MALFORMED
        assert guard.failure == Failure(FailureClass.MALFORMED, "too deep")
        assert (guard.ended, guard.unreadable, guard.feed(TEXT)) == (True, True, ())


def test_an_error_event_fails_with_what_it_says() -> None:
    """First or after content; one that says nothing is a server error."""
    told = Failure(FailureClass.OVERLOADED, "busy")
    guard, delivered = fed(HEAD, StreamEvent(EventKind.ERROR, b"e", failure=told))
    assert (guard.failure, delivered) == (told, [])
    assert failed_as(fed(TEXT, StreamEvent(EventKind.ERROR, b"e"))[0]) is FailureClass.SERVER_ERROR


def test_something_outside_can_end_it() -> None:
    """A timeout or a caller who left; the first word stands."""
    guard, _ = fed(TEXT)
    timeout = Failure(FailureClass.TIMEOUT, "idle")
    guard.fail(timeout)
    guard.fail(Failure(FailureClass.CANCELLED))
    assert guard.failure == timeout
    assert failed_as(guard) is FailureClass.TIMEOUT


def test_after_a_failure_nothing_changes_any_more() -> None:
    """Neither content nor a finish nor the end turns a failed stream into a good one."""
    guard, _ = fed(TEXT, StreamEvent(EventKind.ERROR, b"e"))
    late = StreamEvent(EventKind.META, b"u", usage=Usage(1, 1))
    assert [guard.feed(event) for event in (late, TEXT, STOP, BAD, END)] == [()] * 5
    assert guard.end() == ()
    assert failed_as(guard) is FailureClass.SERVER_ERROR
    assert guard.usage is None
    assert guard.malformed == 0


def test_after_completion_nothing_changes_any_more() -> None:
    """A late cut, a late event: the answer was whole."""
    guard, _ = fed(TEXT, STOP, END)
    guard.fail(Failure(FailureClass.TRUNCATED))
    assert guard.feed(TEXT) == ()
    assert guard.end() == ()
    assert (guard.state, guard.failure) == (StreamState.COMPLETE, None)
