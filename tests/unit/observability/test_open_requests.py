"""What is remembered of requests that go on."""

from __future__ import annotations

from smart_model_router.observability.worker import NOTES, REQUESTS, OpenRequests


def test_notes_are_those_of_their_request_and_taken_once() -> None:
    """In their order; what belongs to no request (a probe) is not kept."""
    open_requests = OpenRequests[int]()
    for number, request_id in enumerate(("one", "two", "", "one")):
        open_requests.note(request_id, number)
    assert [open_requests.take(name) for name in ("one", "two", "", "one")] == [[0, 3], [1], [], []]


def test_requests_that_never_end_are_forgotten() -> None:
    """The oldest of them, and of one that goes on for ever all but its beginning."""
    open_requests = OpenRequests[int]()
    for number in range(REQUESTS + 1):
        open_requests.note(f"r{number}", number)
    for number in range(NOTES + 50):
        open_requests.note("r1", number)
    assert open_requests.take("r0") == []
    assert open_requests.take("r1") == [1, *range(NOTES - 1)]
