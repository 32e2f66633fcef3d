"""State at providers: who made it is known in every worker and after a restart, and to the key it was made for only."""

from __future__ import annotations

import json
import signal
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import httpx2
import openai
import pytest

from smart_model_router.clients import OpenAI
from smart_model_router_providers.fault import FaultServer
from tests.e2e.gateways import Served, becomes, fleet, served
from tests.e2e.stateful import Stateful, stateful

KEYS: dict[str, dict[str, Any]] = {
    "one": {"key": "key-of-the-first-client"},
    "two": {"key": "key-of-the-second-client"},
    "boss": {"key": "key-of-the-operator", "admin": True},
}
ALLOWED = {"one": "first", "two": "second/*"}
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


def translated(folder: Path, server: FaultServer, **store: Any) -> dict[str, Any]:
    """A configuration over a provider that speaks Chat, and one that speaks Messages; no one speaks Responses."""
    path = str(folder / "stats.db")
    return {**fleet(server), "store": {"path": path, **store}, "gateway": {"keys": KEYS}}


def heard(server: FaultServer) -> list[tuple[str, Any]]:
    """The conversation that the provider was sent last: roles and texts."""
    return [(message["role"], _text(message["content"])) for message in server.requests[-1].body["messages"]]


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


@pytest.fixture
def chatty() -> Iterator[FaultServer]:
    """A provider of Chat and Messages that says the same to everything."""
    with FaultServer(text="fine") as server:
        yield server


@pytest.mark.parametrize("model", ["smart", "claude"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_translated_answer_is_gone_on_from_in_another_worker_and_after_a_restart(
    chatty: FaultServer, tmp_path: Path, model: str, stream: bool
) -> None:
    """By its id, with all that it goes on from; by an item's; and what is told of it is what was said."""
    config = translated(tmp_path, chatty)

    def turn(asking: openai.OpenAI, asked: Any, **given: Any) -> tuple[Any, Any]:
        raw: Any = asking.responses.with_raw_response.create(model=model, input=asked, stream=stream, **given)
        answer = raw.parse()
        made = next(event.response for event in answer if event.type == "response.completed") if stream else answer
        return raw, made

    with served(config, tmp_path, arguments=["--workers", "2"]) as gateway, client(gateway) as asking:
        raw, first = turn(asking, "one")
        assert (first.store, first.previous_response_id) == (True, None)
        found: list[Any] = []

        def go_on(asking: openai.OpenAI) -> Any:
            raw, second = turn(asking, "two", previous_response_id=first.id)
            found.append(second)
            return raw

        in_another(gateway, worker(raw), go_on)
        assert heard(chatty) == [("user", "one"), ("assistant", "fine"), ("user", "two")]
    second = found[-1]
    assert second.previous_response_id == first.id
    with served(config, tmp_path) as gateway, client(gateway) as asking:
        turn(asking, "three", previous_response_id=second.id)
        assert [text for _, text in heard(chatty)] == ["one", "fine", "two", "fine", "three"]
        items = [
            {"role": "user", "content": "one"},
            {"type": "item_reference", "id": first.output[0].id},
            {"role": "user", "content": "again"},
        ]
        turn(asking, items)
        assert heard(chatty) == [("user", "one"), ("assistant", "fine"), ("user", "again")]
    assert (tmp_path / "responses.db").stat().st_mode & 0o777 == 0o600


def test_a_translated_answer_is_there_for_its_key_only(chatty: FaultServer, tmp_path: Path) -> None:
    """Another key gets a 404 in the dialect's shape, and so does a made-up id; nothing is sent."""
    with (
        served(translated(tmp_path, chatty), tmp_path) as gateway,
        client(gateway) as one,
        client(gateway, "two") as two,
    ):
        made = one.responses.create(model="smart", input="1")
        calls = chatty.calls()
        item: Any = {"type": "item_reference", "id": made.output[0].id}
        forged = made.id[:-1] + ("A" if made.id[-1] != "A" else "B")
        beyond: Any = {**item, "id": item["id"] + "7"}
        cases: list[tuple[openai.OpenAI, Any, Any]] = [
            (two, "2", made.id),
            (two, [item], openai.omit),
            (one, "2", forged),
            (one, [beyond], openai.omit),
        ]
        for asking, asked, thing in cases:
            with pytest.raises(openai.NotFoundError) as told:
                asking.responses.create(model="smart", input=asked, previous_response_id=thing)
            assert (told.value.type, told.value.code) == ("invalid_request_error", "not_found")
        assert chatty.calls() == calls


def test_unstored_and_chat_answers_leave_nothing_behind(chatty: FaultServer, tmp_path: Path) -> None:
    """`store: false` is echoed and obeyed, Chat keeps nothing, and the error says why."""
    with served(translated(tmp_path, chatty), tmp_path) as gateway, client(gateway) as asking:
        made = asking.responses.create(model="smart", input="my secret", store=False)
        assert made.to_dict()["store"] is False
        with pytest.raises(openai.NotFoundError, match="store=false"):
            asking.responses.create(model="smart", input="2", previous_response_id=made.id)
        asking.chat.completions.create(model="smart", messages=[{"role": "user", "content": "my secret"}], store=True)
        kept = asking.responses.create(model="smart", input="no secret")
        assert asking.responses.create(model="smart", input="2", previous_response_id=kept.id).output_text == "fine"
    texts = [zlib.decompress(row[0]) for row in rows(tmp_path)]
    assert [b"my secret" in text for text in texts] == [False, False]


def rows(folder: Path) -> list[tuple[Any, ...]]:
    """What is kept in the file."""
    with closing(sqlite3.connect(folder / "responses.db")) as connection:
        return connection.execute("SELECT input FROM response").fetchall()


def test_without_a_store_answers_are_kept_in_memory(chatty: FaultServer, tmp_path: Path) -> None:
    """One process needs no file; a reload forgets nothing. `response_ttl: 0` keeps nothing and says so."""
    config = translated(tmp_path, chatty)
    del config["store"]
    with served(config, tmp_path) as gateway, client(gateway) as asking:
        made = asking.responses.create(model="smart", input="1")
        gateway.process.send_signal(signal.SIGHUP)
        assert becomes(lambda: "new configuration is in use" in (tmp_path / "gateway.log").read_text())
        assert asking.responses.create(model="smart", input="2", previous_response_id=made.id).output_text == "fine"
    config["store"] = {"response_ttl": 0}
    with served(config, tmp_path) as gateway, client(gateway) as asking:
        made = asking.responses.create(model="smart", input="1")
        assert made.to_dict()["store"] is False
        with pytest.raises(openai.APIStatusError):
            asking.responses.create(model="smart", input="2", previous_response_id=made.id)


def _lock(folder: Path) -> Any:
    holder = sqlite3.connect(folder / "responses.db", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    return holder


def test_a_locked_file_costs_no_answer_and_is_said(chatty: FaultServer, tmp_path: Path) -> None:
    """Answers go on, what this process made it still knows, /health says why; once free the file has everything."""
    with served(translated(tmp_path, chatty), tmp_path) as gateway, client(gateway) as asking:
        first = asking.responses.create(model="smart", input="1")
        assert becomes(lambda: len(rows(tmp_path)) == 1)
        holder = _lock(tmp_path)
        second = asking.responses.create(model="smart", input="2")
        assert becomes(lambda: health(gateway)["kept_responses"] != "ok")
        third = asking.responses.create(model="smart", input="3", previous_response_id=second.id)
        assert third.output_text == "fine"
        holder.execute("ROLLBACK")
        holder.close()
        assert becomes(lambda: health(gateway)["kept_responses"] == "ok")
        assert becomes(lambda: len(rows(tmp_path)) == 3)
        assert asking.responses.create(model="smart", input="4", previous_response_id=first.id).output_text == "fine"


def health(gateway: Served) -> dict[str, Any]:
    """What /health says to an admin's key."""
    request = Request(gateway.base_url + "/health", headers={"authorization": f"Bearer {KEYS['boss']['key']}"})
    with urlopen(request, timeout=30) as response:
        told: dict[str, Any] = json.loads(response.read())
    return told


def test_a_file_of_a_newer_release_is_left_alone_and_said(chatty: FaultServer, tmp_path: Path) -> None:
    """Requests go on, in memory; the file stays as it is."""
    file = tmp_path / "responses.db"
    with closing(sqlite3.connect(file)) as newer:
        newer.execute("CREATE TABLE migration (number INTEGER, name TEXT, applied_at REAL, needs TEXT)")
        newer.execute("INSERT INTO migration VALUES (99, 'tomorrow', 0, '9.8.7')")
        newer.execute("PRAGMA user_version = 99")
        newer.commit()
    with served(translated(tmp_path, chatty), tmp_path) as gateway, client(gateway) as asking:
        made = asking.responses.create(model="smart", input="1")
        assert asking.responses.create(model="smart", input="2", previous_response_id=made.id).output_text == "fine"
        assert "install smart-model-router 9.8.7" in health(gateway)["kept_responses"]
    with closing(sqlite3.connect(file)) as newer:
        assert newer.execute("SELECT name FROM sqlite_schema").fetchall() == [("migration",)]
        assert newer.execute("PRAGMA user_version").fetchone() == (99,)


def test_kept_answers_are_got_counted_compacted_and_deleted_at_their_provider(
    upstreams: tuple[Stateful, Stateful], tmp_path: Path
) -> None:
    """Through the gateway as without it, at the account that made the answer; another key finds nothing."""
    with (
        served(native(tmp_path, *upstreams), tmp_path) as gateway,
        client(gateway) as one,
        client(gateway, "two") as two,
    ):
        made = one.responses.create(model="smart", input="1", extra_headers=TO_B)
        assert one.responses.retrieve(made.id).output_text == "from b"
        counted = one.responses.input_tokens.count(model="smart", input="2", previous_response_id=made.id)
        assert counted.input_tokens == 41
        compacted = one.responses.compact(model="smart", input="2", previous_response_id=made.id)
        assert compacted.output[-1].type == "compaction"
        for ask in (two.responses.retrieve, two.responses.delete):
            with pytest.raises(openai.NotFoundError) as told:
                ask(made.id)
            assert told.value.code == "not_found"
        one.responses.delete(made.id)
        with pytest.raises(openai.NotFoundError, match=f"Response with id '{made.id}' not found"):
            one.responses.retrieve(made.id, extra_headers=TO_B)
        at = f"/v1/responses/{made.id}"
        wanted = ["POST /v1/responses", f"GET {at}", "POST /v1/responses/input_tokens", "POST /v1/responses/compact"]
        assert upstreams[1].heard == [*wanted, f"DELETE {at}", f"GET {at}"]
        assert upstreams[0].heard == []
        told_health = {target["id"]: target["state"] for target in health(gateway)["targets"]}
        assert set(told_health.values()) == {"closed"}
        assert one.responses.create(model="smart", input="3", extra_headers=TO_B).output_text == "from b"


def test_kept_answers_of_ours_are_got_and_deleted(chatty: FaultServer, tmp_path: Path) -> None:
    """As they were delivered, under the name that was asked for; a prompt is estimated; nobody can compact."""
    with (
        served(translated(tmp_path, chatty), tmp_path) as gateway,
        client(gateway) as one,
        client(gateway, "two") as two,
    ):
        made = one.responses.create(model="smart", input="1")
        calls = chatty.calls()
        assert one.responses.retrieve(made.id) == made
        head = httpx2.head(f"{gateway.base_url}/responses/{made.id}", headers={"x-api-key": KEYS["one"]["key"]})
        assert (head.status_code, head.content) == (200, b"")
        short = one.responses.input_tokens.count(model="smart", input="2").input_tokens
        assert (
            one.responses.input_tokens.count(model="smart", input="2", previous_response_id=made.id).input_tokens
            > short
        )
        with pytest.raises(openai.NotFoundError, match="no target of 'smart' speaks Responses natively"):
            one.responses.compact(model="smart", input="2")
        with pytest.raises(openai.BadRequestError, match="a kept answer is given whole"):
            one.get(f"/responses/{made.id}", cast_to=object, options={"params": {"stream": "true"}})
        for ask in (two.responses.retrieve, two.responses.delete):
            with pytest.raises(openai.NotFoundError):
                ask(made.id)
        one.responses.delete(made.id)
        for ask in (one.responses.retrieve, one.responses.delete):
            with pytest.raises(openai.NotFoundError, match="was deleted"):
                ask(made.id)
        with pytest.raises(openai.NotFoundError):
            one.responses.create(model="smart", input="2", previous_response_id=made.id)
        assert chatty.calls() == calls


def test_an_answer_of_unknown_making_is_asked_for_by_its_owners_name(
    upstreams: tuple[Stateful, Stateful], tmp_path: Path
) -> None:
    """Two accounts could have it: the 404 names them, another target is a 400, and an isolated one is not asked."""
    upstreams[1].kept["resp_before"] = {"id": "resp_before", "object": "response", "output": []}
    config = native(tmp_path, *upstreams)
    config["gateway"] = {"keys": {"one": {**KEYS["one"], "admin": True}}}
    with served(config, tmp_path) as gateway, client(gateway) as asking:
        with pytest.raises(openai.NotFoundError, match="x-router-target may name it, there are a/m, b/m"):
            asking.responses.retrieve("resp_before")
        with pytest.raises(openai.BadRequestError, match="there are a/m, b/m"):
            asking.responses.retrieve("resp_before", extra_headers={"x-router-target": "c/m"})
        assert asking.responses.retrieve("resp_before", extra_headers=TO_B).id == "resp_before"
        gateway.post("/api/targets/isolate", b'{"name": "b/m"}', f"authorization: Bearer {KEYS['one']['key']}")
        with pytest.raises(openai.InternalServerError, match="b was isolated by the operator"):
            asking.responses.retrieve("resp_before", extra_headers=TO_B)
        assert upstreams[1].heard == ["GET /v1/responses/resp_before"]


def test_the_drop_in_client_does_the_same(
    upstreams: tuple[Stateful, Stateful], chatty: FaultServer, tmp_path: Path
) -> None:
    """Native and translated: go on, get, count, compact, delete."""
    config = native(tmp_path, *upstreams)
    config["providers"]["chat"] = {"kind": "openai_compatible", "base_url": chatty.base_url}
    config["models"]["other"] = {"tiers": [{"targets": ["chat/big"]}], "last_resort": []}
    with OpenAI(config) as asking:
        for model, said in (("smart", "from b"), ("other", "fine")):
            named = TO_B if model == "smart" else {}
            made = asking.responses.create(model=model, input="1", extra_headers=named)
            again = asking.responses.create(model=model, input="2", previous_response_id=made.id)
            assert (again.output_text, asking.responses.retrieve(made.id).output_text) == (said, said)
            assert asking.responses.input_tokens.count(model=model, input="2").input_tokens > 0
            asking.responses.delete(made.id)
            with pytest.raises(openai.NotFoundError):
                asking.responses.retrieve(made.id, extra_headers=named)
        assert asking.responses.compact(model="smart", input="2").object == "response.compaction"


def test_what_was_written_survives_a_kill(
    upstreams: tuple[Stateful, Stateful], chatty: FaultServer, tmp_path: Path
) -> None:
    """Who made a native answer, and a translated one: both are gone on from in the next process."""
    config = native(tmp_path, *upstreams)
    config["providers"]["chat"] = {"kind": "openai_compatible", "base_url": chatty.base_url}
    config["models"]["other"] = {"tiers": [{"targets": ["chat/big"]}], "last_resort": []}
    with served(config, tmp_path) as gateway, client(gateway) as asking:
        first = asking.responses.create(model="smart", input="1", extra_headers=TO_B)
        other = asking.responses.create(model="other", input="1")
        assert becomes(lambda: len(rows(tmp_path)) == 1 and makers(tmp_path) >= 2)
        gateway.stop(signal.SIGKILL)
    with served(config, tmp_path) as gateway, client(gateway) as asking:
        assert asking.responses.create(model="smart", input="2", previous_response_id=first.id).output_text == "from b"
        asking.responses.create(model="other", input="2", previous_response_id=other.id)
        assert heard(chatty) == [("user", "1"), ("assistant", "fine"), ("user", "2")]


def makers(folder: Path) -> int:
    """How many things have a maker in the shared state."""
    with closing(sqlite3.connect(folder / "state.db")) as connection:
        return int(connection.execute("SELECT count(*) FROM maker").fetchone()[0])


def test_a_key_reaches_the_answers_of_its_own_models_only(upstreams: tuple[Stateful, Stateful], tmp_path: Path) -> None:
    """Whichever target it names; a wildcard's targets are named as they are asked."""
    for upstream in upstreams:
        upstream.kept["resp_before"] = {"id": "resp_before", "object": "response", "output": []}
    config = native(tmp_path, *upstreams)
    config["models"] = {
        "first": {"tiers": [{"targets": ["a/m"]}], "last_resort": []},
        "second/*": {"tiers": [{"targets": ["b/*"]}], "last_resort": []},
    }
    config["gateway"] = {"keys": {name: {**KEYS[name], "models": [model]} for name, model in ALLOWED.items()}}
    with served(config, tmp_path) as gateway, client(gateway) as one, client(gateway, "two") as two:
        named = {"x-router-target": "b/big"}
        assert two.responses.retrieve("resp_before", extra_headers=named).id == "resp_before"
        with pytest.raises(openai.BadRequestError, match="keeps no answers for this key; there are a/m"):
            one.responses.retrieve("resp_before", extra_headers=named)
        with pytest.raises(openai.BadRequestError, match="there are b/big"):
            two.responses.retrieve("resp_before", extra_headers={"x-router-target": "a/m"})
        assert one.responses.retrieve("resp_before").id == "resp_before"
        with pytest.raises(openai.PermissionDeniedError):
            one.responses.create(model="second/big", input="1", extra_headers=named)
    assert [upstream.heard for upstream in upstreams] == [["GET /v1/responses/resp_before"]] * 2
