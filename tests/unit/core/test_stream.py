"""StreamGuard: nothing is delivered before the first content, and nothing unfinished passes for complete."""

from __future__ import annotations

import pytest

from smart_model_router.core.stream import StreamGuard, StreamState
from smart_model_router.outcome import EventKind, Failure, FailureClass, StreamEvent, Usage

HEAD = StreamEvent(EventKind.META, b"head")
TEXT = StreamEvent(EventKind.CONTENT, b"text")
PING = StreamEvent(EventKind.PING, b": ping")
BAD = StreamEvent(EventKind.MALFORMED, b"data: {")
STOP = StreamEvent(EventKind.FINISH, b"stop", finish="stop")
END = StreamEvent(EventKind.END, b"[DONE]")


def fed(*events: StreamEvent, finish_required: bool = True) -> tuple[StreamGuard, list[StreamEvent]]:
    """Make a guard that saw `events`, and what it delivered of them."""
    guard = StreamGuard(finish_required=finish_required)
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


def test_a_terminator_without_a_finish_reason_is_truncated_where_one_is_needed() -> None:
    """[DONE] alone proves nothing in Chat; message_stop does in Messages."""
    assert failed_as(fed(TEXT, END)[0]) is FailureClass.TRUNCATED
    guard, delivered = fed(TEXT, END, finish_required=False)
    assert guard.state is StreamState.COMPLETE
    assert delivered == [TEXT, END]


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
    assert failed_as(fed(HEAD, END, finish_required=False)[0]) is FailureClass.EMPTY
    assert fed(HEAD, STOP, END)[1] == []


def test_three_malformed_events_are_skipped_and_the_fourth_fails() -> None:
    """They are counted over the whole stream and never delivered."""
    guard, delivered = fed(BAD, TEXT, BAD, BAD)
    assert guard.malformed == 3
    assert guard.state is StreamState.COMMITTED
    assert delivered == [TEXT]
    assert guard.feed(BAD) == ()
    assert failed_as(guard) is FailureClass.MALFORMED
    assert guard.failure is not None
    assert guard.failure.message == "4 malformed events"


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
    guard, _ = fed(TEXT, STOP, StreamEvent(EventKind.ERROR, b"e"))
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
