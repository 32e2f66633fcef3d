"""State at providers: who made it is known in every worker and after a restart, and to the key it was made for only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.e2e.gateways import Served, served
from tests.e2e.stateful import Stateful, stateful

KEYS = {"one": {"key": "key-of-the-first-client"}, "two": {"key": "key-of-the-second-client"}}
TO_B = {"x-router-target": "b/m"}


@pytest.fixture
def upstreams() -> Iterator[tuple[Stateful, Stateful]]:
    """Two accounts of a provider that keeps what it answers."""
    with stateful("a") as first, stateful("b") as second:
        yield first, second


def native(folder: Path, *servers: Stateful) -> dict[str, Any]:
    """A configuration over these accounts, the first preferred, shared by all processes."""
    providers = {one.name: {"kind": "openai", "base_url": one.base_url, "api_key": f"k-{one.name}"} for one in servers}
    targets = [f"{one.name}/m" for one in servers]
    return {
        "version": 1,
        "providers": providers,
        "models": {"smart": {"strategy": "ordered", "tiers": [{"targets": targets}], "last_resort": []}},
        "store": {"path": str(folder / "stats.db")},
        "gateway": {"keys": KEYS},
    }


def client(gateway: Served, key: str = "one") -> openai.OpenAI:
    """OpenAI's SDK, with a connection of its own."""
    return openai.OpenAI(base_url=gateway.base_url + "/v1", api_key=KEYS[key]["key"], max_retries=0)


def worker(raw: Any) -> str:
    """The worker that answered."""
    return str(raw.headers["x-request-id"]).split("-")[1]


def in_another(gateway: Served, first: str, ask: Callable[[openai.OpenAI], Any]) -> Any:
    """Ask on new connections until another worker than the first answers."""
    for _ in range(200):
        with client(gateway) as asking:
            raw = ask(asking)
        if worker(raw) != first:
            return raw
    raise AssertionError("no other worker answered")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_another_worker_and_a_later_process_know_who_made_an_answer(
    upstreams: tuple[Stateful, Stateful], tmp_path: Path, stream: bool
) -> None:
    """`previous_response_id` and `item_reference` go to the account that made them, which is not the preferred one."""
    config = native(tmp_path, *upstreams)
    with served(config, tmp_path, arguments=["--workers", "2"]) as gateway, client(gateway) as asking:
        raw: Any = asking.responses.with_raw_response.create(
            model="smart", input="1", stream=stream, extra_headers=TO_B
        )
        answer = raw.parse()
        made = next(event.response for event in answer if event.type == "response.completed") if stream else answer
        assert made.output_text == "from b"

        def go_on(asking: openai.OpenAI) -> Any:
            return asking.responses.with_raw_response.create(model="smart", input="2", previous_response_id=made.id)

        assert in_another(gateway, worker(raw), go_on).parse().output_text == "from b"
    with served(config, tmp_path) as gateway, client(gateway) as asking:
        referring: Any = [{"type": "item_reference", "id": made.output[0].id}, {"role": "user", "content": "3"}]
        assert asking.responses.create(model="smart", input=referring).output_text == "from b"
        assert asking.responses.create(model="smart", input="4").output_text == "from a"


def test_another_key_is_told_that_there_is_no_such_thing(upstreams: tuple[Stateful, Stateful], tmp_path: Path) -> None:
    """A 404 in the dialect's shape, before anybody is asked: by the answer's id, and by that of one of its items."""
    with (
        served(native(tmp_path, *upstreams), tmp_path) as gateway,
        client(gateway) as one,
        client(gateway, "two") as two,
    ):
        made = one.responses.create(model="smart", input="1")
        before = len(upstreams[0].heard)
        item: Any = {"type": "item_reference", "id": made.output[0].id}
        for asked, thing in (("2", made.id), ([item], openai.omit)):
            with pytest.raises(openai.NotFoundError) as told:
                two.responses.create(model="smart", input=asked, previous_response_id=thing)
            assert (told.value.type, told.value.code) == ("invalid_request_error", "not_found")
        assert len(upstreams[0].heard) == before


def test_an_unstored_answer_leaves_nothing_behind(upstreams: tuple[Stateful, Stateful], tmp_path: Path) -> None:
    """With `store: false` nobody is known to have made it: two accounts could have, and the error says what to do."""
    with served(native(tmp_path, *upstreams), tmp_path) as gateway, client(gateway) as asking:
        made = asking.responses.create(model="smart", input="1", store=False)
        with pytest.raises(openai.BadRequestError, match="x-router-target"):
            asking.responses.create(model="smart", input="2", previous_response_id=made.id)


@pytest.mark.parametrize("named", ["nobody/m", "", "b", "b/m#2"])
def test_a_target_that_is_none_of_the_models_is_a_400_that_names_those_there_are(
    upstreams: tuple[Stateful, Stateful], tmp_path: Path, named: str
) -> None:
    """`x-router-target` is one of the model's targets, by its whole name."""
    with (
        served(native(tmp_path, *upstreams), tmp_path) as gateway,
        client(gateway) as asking,
        pytest.raises(openai.BadRequestError, match="there are a/m, b/m"),
    ):
        asking.responses.create(model="smart", input="1", extra_headers={"x-router-target": named})


def test_an_isolated_target_is_asked_by_nobody(upstreams: tuple[Stateful, Stateful], tmp_path: Path) -> None:
    """Not by its name either: the operator's word binds."""
    config = native(tmp_path, *upstreams)
    config["gateway"] = {"keys": {"one": {**KEYS["one"], "admin": True}}}
    with served(config, tmp_path) as gateway, client(gateway) as asking:
        gateway.post("/api/targets/isolate", b'{"name": "b/m"}', f"authorization: Bearer {KEYS['one']['key']}")
        with pytest.raises(openai.InternalServerError, match="isolated"):
            asking.responses.create(model="smart", input="1", extra_headers=TO_B, timeout=2)
        assert upstreams[1].heard == []
