"""A provider of Responses that lacks compact, GET, DELETE or input_tokens, or fails there, answers as before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import openai
import pytest

from smart_model_router.clients import OpenAI
from tests.e2e.gateways import Served, served
from tests.e2e.stateful import Stateful, stateful
from tests.e2e.test_kept_at_providers import client, health, native

BRIEF = {"x-router-timeout": "1s"}
"""For calls that are never answered."""
OPERATIONS: Mapping[str, Callable[[Any, str, Mapping[str, str]], object]] = {
    "compact": lambda one, _, told: one.responses.compact(model="smart", input="2", extra_headers=told),
    "count": lambda one, _, told: one.responses.input_tokens.count(model="smart", input="2", extra_headers=told),
    "retrieve": lambda one, made, told: one.responses.retrieve(made, extra_headers=told),
    "delete": lambda one, made, told: one.responses.delete(made, extra_headers=told),
}
TIMES = 6
"""Failures of one operation: more than a breaker that counts in a row bears."""


def speaking(folder: Path, upstream: Stateful) -> dict[str, Any]:
    """A configuration by which it speaks Responses only: Chat is translated."""
    config = native(folder, upstream)
    config["providers"][upstream.name]["wires"] = ["responses"]
    return {**config, "routing": {"attempts": 1}}


@pytest.fixture(scope="module")
def lone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Stateful, Served]]:
    """An account and the gateway before it, for every status: a failing operation changes nothing."""
    folder = tmp_path_factory.mktemp("lone")
    with stateful("a") as upstream, served(speaking(folder, upstream), folder) as gateway:
        yield upstream, gateway


@pytest.mark.parametrize("status", [404, 405, 501, 401, 403, 500, 503, 0])
def test_a_failing_operation_changes_nothing_for_answers(status: int, lone: tuple[Stateful, Served]) -> None:
    """An absent operation is a 404, another failure a 4xx or 5xx; the target stays closed and answers at once."""
    upstream, gateway = lone
    upstream.lacks = None
    with client(gateway) as one:
        made = one.responses.create(model="smart", input="1")
        upstream.lacks = status
        before = health(gateway)["targets"]
        for ask in OPERATIONS.values():
            for _ in range(TIMES if status else 1):
                with pytest.raises(openai.APIStatusError) as told:
                    ask(one, made.id, {} if status else BRIEF)
                assert told.value.status_code == 404 if status in (404, 405, 501) else told.value.status_code != 404
        assert [_lasting(target) for target in health(gateway)["targets"]] == [_lasting(target) for target in before]
        answer = one.responses.with_raw_response.create(model="smart", input="3")
        assert (answer.status_code, answer.headers["x-router-attempts"]) == (200, "1")
        chat = one.chat.completions.create(model="smart", messages=[{"role": "user", "content": "4"}])
        assert chat.choices[0].message.content == "from a"


@pytest.mark.parametrize("operation", ["compact", "count"])
def test_another_target_has_the_operation(operation: str, tmp_path: Path) -> None:
    """One that lacks it is passed over."""
    with stateful("a") as lacking, stateful("b") as able:
        lacking.lacks = 404
        with served(native(tmp_path, lacking, able), tmp_path) as gateway, client(gateway) as one:
            for _ in range(TIMES):
                assert OPERATIONS[operation](one, "", {})
            assert one.responses.create(model="smart", input="1").output_text == "from a"


def test_the_drop_in_client_is_told_the_same(tmp_path: Path) -> None:
    """A 404 for each, and answers go on."""
    with stateful("a") as upstream, OpenAI(native(tmp_path, upstream)) as one:
        made = one.responses.create(model="smart", input="1")
        upstream.lacks = 405
        for ask in OPERATIONS.values():
            with pytest.raises(openai.NotFoundError):
                ask(one, made.id, {})
        assert one.responses.create(model="smart", input="2").output_text == "from a"


_LASTING = ("id", "state", "refusal", "because", "in_flight", "slots", "latency_seconds")


def _lasting(target: Mapping[str, Any]) -> Mapping[str, Any]:
    """The state of a target that a failed call could have changed."""
    return {key: value for key, value in target.items() if key in _LASTING}
