"""The embedded model's provider when there is no model to speak of: every trouble is a value, in time."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.outcome import Failure, FailureClass, Outcome, Wait
from smart_model_router.domain.ports import Provider, ProviderCall
from smart_model_router_providers.local import process as process_module
from smart_model_router_providers.local.provider import LocalProvider, rest_seconds

NO_MODEL = Path("there-is-no-such-model.gguf")


def chat(text: str = "hello") -> ProviderCall:
    """A call that asks `text`."""
    body = {"model": "smollm2", "messages": [{"role": "user", "content": text}]}
    return ProviderCall(dialect="chat", model="smollm2", payload=json.dumps(body).encode(), body=body)


def failure(outcome: Outcome | object) -> Failure:
    """The outcome, which must be a failure."""
    assert isinstance(outcome, Failure)
    return outcome


class Hands:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_it_is_a_provider() -> None:
    """It has what the port asks for."""
    assert isinstance(LocalProvider(), Provider)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("context_tokens", 100),
        ("context_tokens", 100_000),
        ("prompt_cap_tokens", 0),
        ("prompt_cap_tokens", 4096),
        ("max_tokens", 0),
        ("default_max_tokens", 2000),
        ("threads", 0),
        ("start_timeout", 0),
        ("start_timeout", float("nan")),
    ],
)
def test_senseless_values_are_refused_by_name(key: str, value: float) -> None:
    """A value out of its range is refused at construction, with its key."""
    options: dict[str, Any] = {key: value}
    with pytest.raises(ConfigurationError) as caught:
        LocalProvider(**options)
    assert caught.value.key == key


@pytest.mark.parametrize(
    ("deaths", "seconds"), [(1, 0.0), (2, 1.0), (3, 2.0), (4, 4.0), (7, 32.0), (8, 60.0), (5000, 60.0)]
)
def test_the_rest_before_a_restart_doubles_up_to_a_minute(deaths: int, seconds: float) -> None:
    """The first death costs no time, a row of them never a busy loop."""
    assert rest_seconds(deaths) == seconds


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a process may use every processor")
@pytest.mark.parametrize(("processors", "threads"), [(1, 1), (2, 1), (3, 2), (64, 2)])
def test_a_processor_is_left_to_the_others(processors: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads compute only where a third processor is free: they wait for each other by spinning."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(processors)))
    assert LocalProvider()._threads == threads


@pytest.mark.asyncio
async def test_a_model_that_cannot_be_loaded_is_a_failure_with_the_reason() -> None:
    """The child's last words reach whoever called."""
    provider = LocalProvider(model=NO_MODEL)
    got = failure(await provider.call(chat()))
    await provider.aclose()
    assert got.failure_class is FailureClass.WARMING
    assert "failed to load model, 'there-is-no-such-model.gguf'" in got.message


@pytest.mark.asyncio
async def test_a_child_that_keeps_dying_is_started_less_and_less_often() -> None:
    """After two deaths in a row nothing is started for a second, and the caller is told for how long."""
    clock = Hands()
    provider = LocalProvider(model=NO_MODEL, clock=clock)
    await provider.prepare()
    await provider.prepare()
    resting = failure(await provider.call(chat()))
    clock.now += 1.0
    again = failure(await provider.call(chat()))
    still_longer = failure(await provider.call(chat()))
    await provider.aclose()
    assert resting.wait == Wait(1.0, "overload")
    assert again.message.startswith("the model's process ended")
    assert still_longer.wait == Wait(2.0, "overload")


@pytest.mark.asyncio
async def test_a_child_that_lived_for_a_minute_is_restarted_at_once() -> None:
    """A rare death is no series: the row starts again."""
    clock = Hands()
    provider = LocalProvider(model=NO_MODEL, clock=clock)
    await provider.prepare()
    long_lived = asyncio.create_task(provider.prepare())
    await asyncio.sleep(0)
    clock.now += 60.0
    await long_lived
    got = failure(await provider.call(chat()))
    await provider.aclose()
    assert got.wait is None


@pytest.mark.asyncio
async def test_a_stream_is_refused_as_a_call_is() -> None:
    """A stream that cannot be opened is the same Failure value."""
    provider = LocalProvider(model=NO_MODEL)
    got = failure(await provider.open_stream(chat()))
    await provider.aclose()
    assert got.failure_class is FailureClass.WARMING


@pytest.mark.asyncio
async def test_a_child_that_hangs_while_loading_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child that says nothing within start_timeout is killed, and the call comes back."""
    program = tmp_path / "hangs.py"
    program.write_text("import time\ntime.sleep(600)\n")
    monkeypatch.setattr(process_module, "_PROGRAM", program)
    provider = LocalProvider(model=NO_MODEL, start_timeout=0.2)
    got = failure(await provider.call(chat()))
    child = provider._process
    assert child is not None
    ended = await asyncio.wrap_future(child.ended)
    await provider.aclose()
    assert got.message == "the model was not loaded within 0.2 s"
    assert ended.reason == "killed by signal 9"


@pytest.mark.asyncio
async def test_a_child_that_dies_before_it_is_told_anything_says_how_it_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pipe to it is broken then; it was started, and its last words are what counts."""
    program = tmp_path / "dies.py"
    program.write_text("print('no room')\nraise SystemExit(3)\n")
    monkeypatch.setattr(process_module, "_PROGRAM", program)

    class Dead(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self.wait()

    monkeypatch.setattr(subprocess, "Popen", Dead)
    provider = LocalProvider(model=NO_MODEL)
    got = failure(await provider.call(chat()))
    await provider.aclose()
    assert got.message == "the model's process ended: exit code 3: no room"


@pytest.mark.asyncio
async def test_a_caller_that_gives_up_does_not_give_up_for_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two calls wait for one child; cancelling one leaves the other waiting for its own answer."""
    program = tmp_path / "waits.py"
    program.write_text("import sys\nsys.stdin.readline()\nsys.stdin.read(1)\n")
    monkeypatch.setattr(process_module, "_PROGRAM", program)
    provider = LocalProvider(model=NO_MODEL)
    impatient, patient = (asyncio.create_task(provider.call(chat())) for _ in range(2))
    await asyncio.sleep(0)
    impatient.cancel()
    with pytest.raises(asyncio.CancelledError):
        await impatient
    child = provider._process
    assert child is not None
    child.kill()
    got = failure(await patient)
    await provider.aclose()
    assert got.message == "the model's process ended: killed by signal 9"


@pytest.mark.asyncio
async def test_a_model_that_is_not_installed_is_a_misconfiguration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message has the command that mends it."""
    monkeypatch.setenv("SMART_ROUTER_DATA_DIR", str(tmp_path))
    got = failure(await LocalProvider().call(chat()))
    assert got.failure_class is FailureClass.MISCONFIGURED
    assert "smr local install" in got.message


@pytest.mark.asyncio
async def test_a_prompt_beyond_all_measure_starts_nothing() -> None:
    """Ten megabytes are refused by their size: no child is started to count them."""
    provider = LocalProvider(model=NO_MODEL)
    got = failure(await provider.call(chat("x" * 10_000_000)))
    assert got.failure_class is FailureClass.CONTEXT_LENGTH
    assert provider.pid is None


@pytest.mark.asyncio
async def test_a_closed_provider_stays_closed() -> None:
    """After aclose (twice, even) a call is a failure and starts nothing."""
    provider = LocalProvider(model=NO_MODEL)
    await provider.prepare()
    await provider.aclose()
    await provider.aclose()
    got = failure(await provider.call(chat()))
    assert got.failure_class is FailureClass.TRANSPORT
    assert provider.pid is None
