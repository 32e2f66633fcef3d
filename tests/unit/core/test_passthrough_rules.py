"""Paths that pass through: which there are, which route has one, and what answers say of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_model_router.core.passthrough_rules import (
    KNOWN,
    Route,
    RouteTarget,
    by_path,
    is_passed_on,
    is_path,
    is_route,
    judged,
    paths_of,
    route_of,
)
from smart_model_router.domain.outcome import Failure, FailureClass

TARGET = RouteTarget("one/v1/audio/speech", "one", 0)
NAMED = RouteTarget("one/tts/v1/audio/speech", "one", 0, "tts", "one/tts")


def route(name: str) -> Route:
    """A route of this name."""
    return Route(name, known=not name.endswith("*"), targets=(TARGET,))


@pytest.mark.parametrize("path", [*KNOWN, "/v1/audio/voices", "/v1/images/a/b.c", "/v1/audio/a..b"])
def test_a_path_of_plain_segments_may_pass(path: str) -> None:
    """Known or not."""
    assert is_path(path)
    assert is_route(path)


@pytest.mark.parametrize(
    "path",
    [
        "/v1/audio", "/v1/audio/", "/v1/audio//speech", "/v1/audio/../chat", "/v1/audio/.", "/v1/audio/.hidden",
        "/v1/audio/a%2fb", "/v1/audio/a b", "/v1/moderations/x", "/v1/chat/completions", "/v1/files", "/audio/speech",
        "/v1/audio/speech\n", "/v1/audio/a/b/c/d/e", "/v1/images/" + "x" * 101,
    ],
)  # fmt: skip
def test_a_path_that_could_be_another_one_does_not(path: str) -> None:
    """Dots, escapes, empty segments, and paths of other APIs."""
    assert not is_path(path)
    assert not is_route(path)


@given(st.text(alphabet="/.v1audio%2e*\\ \x00moderations", max_size=40))
def test_no_path_that_passes_climbs(text: str) -> None:
    """Whatever is sent: what passes has no segment that a server could take for another directory, and no escape."""
    path = f"/v1/audio/{text}"
    if is_path(path):
        segments = path.split("/")[1:]
        assert all(segments)
        assert not {".", ".."} & set(segments)
        assert not set("%*\\ \x00") & set(path)


def test_a_pattern_is_a_route_and_no_path() -> None:
    """Only as the last segment, and not for everything."""
    assert is_route("/v1/audio/*")
    assert not is_path("/v1/audio/*")
    assert not any(map(is_route, ("/v1/*", "*", "/v1/audio/*/x", "/v1/audio/x*", "/v1/moderations/*")))


def test_known_paths_of_a_pattern_have_a_state_of_their_own() -> None:
    """So a 404 for a client's guess is none for a path that providers have."""
    assert paths_of("/v1/rerank") == ("/v1/rerank",)
    assert paths_of("/v1/audio/*") == (
        "/v1/audio/speech",
        "/v1/audio/transcriptions",
        "/v1/audio/translations",
        "/v1/audio/*",
    )


def test_the_longest_route_has_a_path() -> None:
    """A plain path goes before a pattern, and a longer pattern before a shorter one."""
    names = ["/v1/audio/*", "/v1/images/*", "/v1/images/x/*", "/v1/audio/speech"]
    found = by_path({name: name.upper() for name in names})
    assert found["/v1/audio/speech"] == ("/v1/audio/speech", "/V1/AUDIO/SPEECH")
    assert found["/v1/audio/translations"] == ("/v1/audio/*", "/V1/AUDIO/*")
    assert found["/v1/images/x/*"] == ("/v1/images/x/*", "/V1/IMAGES/X/*")
    routes = {name: route(name) for name in names}
    for path, name in {
        "/v1/audio/speech": "/v1/audio/speech",
        "/v1/audio/voices": "/v1/audio/*",
        "/v1/audio/voices/new": "/v1/audio/*",
        "/v1/images/x/y": "/v1/images/x/*",
        "/v1/images/y": "/v1/images/*",
    }.items():
        assert route_of(path, routes) is routes[name]
    assert route_of("/v1/rerank", routes) is None


@pytest.mark.parametrize(
    ("failure", "on", "target", "found"),
    [
        (Failure(FailureClass.MISCONFIGURED, status=404), "/v1/rerank", TARGET, FailureClass.MISCONFIGURED),
        (Failure(FailureClass.MISCONFIGURED, status=405), "/v1/audio/*", TARGET, FailureClass.INVALID_REQUEST),
        (Failure(FailureClass.MISCONFIGURED, status=301), "/v1/audio/*", TARGET, FailureClass.MISCONFIGURED),
        (Failure(FailureClass.MODEL_GONE, status=404), "/v1/rerank", TARGET, FailureClass.INVALID_REQUEST),
        (Failure(FailureClass.MODEL_GONE, status=404), "/v1/rerank", NAMED, FailureClass.MODEL_GONE),
        (Failure(FailureClass.SERVER_ERROR, status=500), "/v1/audio/*", TARGET, FailureClass.SERVER_ERROR),
        (Failure(FailureClass.TRANSPORT, unsent=True), "/v1/rerank", TARGET, FailureClass.TRANSPORT),
        (Failure(FailureClass.TRANSPORT), "/v1/rerank", TARGET, FailureClass.TRUNCATED),
    ],
)
def test_what_the_client_chose_is_the_clients(
    failure: Failure, on: str, target: RouteTarget, found: FailureClass
) -> None:
    """A model in the body, a path below a `*`: an answer about them says nothing of the route."""
    assert judged(failure, route(on), target).failure_class is found


@pytest.mark.parametrize(("status", "found"), [(404, FailureClass.INVALID_REQUEST), (405, FailureClass.MISCONFIGURED)])
def test_a_path_that_answers_lacks_what_the_body_names(status: int, found: FailureClass) -> None:
    """A 404 is about a voice or a file then; a 405 is about the path in any case."""
    said = Failure(FailureClass.MISCONFIGURED, status=status)
    assert judged(said, route("/v1/rerank"), TARGET, answered=True).failure_class is found


@pytest.mark.parametrize(
    ("found", "theirs"),
    [(FailureClass.AUTH, True), (FailureClass.QUOTA, True), (FailureClass.SERVER_ERROR, False)],
)
def test_an_account_that_the_client_names_is_the_clients(found: FailureClass, theirs: bool) -> None:
    """What a provider says of it is nothing about the gateway's key; without one it is."""
    said = Failure(found, status=401, credential_wide=True)
    judgement = FailureClass.INVALID_REQUEST if theirs else found
    assert judged(said, route("/v1/rerank"), TARGET, clients_account=True).failure_class is judgement
    assert judged(said, route("/v1/rerank"), TARGET).failure_class is found


def test_only_words_on_the_request_are_passed_on() -> None:
    """An answer about our key, our account or the provider's state is not the client's."""
    passed_on = {
        found
        for found in FailureClass
        if is_passed_on(Failure(found, status=400)) and not is_passed_on(Failure(found, status=500))
    }
    assert passed_on == {
        FailureClass.INVALID_REQUEST,
        FailureClass.CONTEXT_LENGTH,
        FailureClass.TOO_LARGE,
        FailureClass.CONTENT_FILTERED,
        FailureClass.MODEL_GONE,
        FailureClass.MISCONFIGURED,
    }
    assert not is_passed_on(Failure(FailureClass.INVALID_REQUEST))
