"""The log: one line a request and one a transition, errors always, secrets never."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from smart_model_router import SmartModelRouter
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.events import (
    AttemptFinished,
    BreakerChanged,
    OperatorSpoke,
    ProbeStarted,
    RequestFinished,
    RequestOutcome,
    TargetRefused,
)
from smart_model_router.domain.outcome import Failure, FailureClass
from smart_model_router.domain.redaction import Scrubber, redacted
from smart_model_router.observability.log import LogFile, LogSink, Redaction, opened
from tests.unit.observability.test_sinks import CONFIG

WALL = 1_700_000_000.0


def finished(number: int, outcome: RequestOutcome = "ok", **given: Any) -> RequestFinished:
    """A request that ended."""
    told: dict[str, Any] = {
        "at": 100.0,
        "request_id": f"req-{number}",
        "dialect": "chat",
        "model": "smart",
        "outcome": outcome,
        "target": "a/big",
        "requested_tier": "frontier",
        "actual_tier": "frontier",
        "degraded": False,
        "last_resort": False,
        "attempts": 1,
        "refusals": 0,
        "seconds": 0.5,
        "waited_seconds": 0.0,
        **given,
    }
    return RequestFinished(**{"configured_model": told["model"], **told})


def failed(number: int) -> AttemptFinished:
    """A call of a request that failed."""
    return AttemptFinished(
        at=99.0,
        admitted_at=98.0,
        target="a/big",
        provider="a",
        model="big",
        stream=False,
        seconds=1.0,
        failure_class=FailureClass.OVERLOADED,
        status=529,
        request_id=f"req-{number}",
    )


def lines_of(*events: Any, **options: Any) -> list[dict[str, Any]]:
    """What is written about these events."""
    stream = io.StringIO()
    sink = LogSink(stream, clock=lambda: 100.0, wall=lambda: WALL, **options)
    for event in events:
        sink.emit(event)
    sink.caught_up()
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_request_is_one_line_with_its_trouble() -> None:
    """Who failed how and who was not asked why stand in the line of their request, and nowhere else."""
    refused = TargetRefused(at=99.0, request_id="req-1", target="b/big", reason="wait", retry_after=3.0)
    [line] = lines_of(failed(1), refused, finished(1, "fallback"))
    assert line["event"] == "request"
    assert line["level"] == "warning"
    assert line["at"] == "2023-11-14T22:13:20.000+00:00"
    assert line["trouble"] == ["a/big OVERLOADED 529", "b/big refused wait"]


def test_a_transition_is_one_line() -> None:
    """With what moved, from where to where, and why."""
    moved = BreakerChanged(
        at=100.0, owner="a/big", kind="whole", from_state="closed", to_state="open", reason="failure_ratio"
    )
    [line] = lines_of(moved)
    said = tuple(line[key] for key in ("event", "owner", "to_state", "reason"))
    assert said == ("breaker", "a/big", "open", "failure_ratio")


def test_the_operators_word_is_one_line() -> None:
    """With by whom, since when and why, and whether this process was told."""
    said = OperatorSpoke(at=100.0, target="a/big", word="isolate", by="ada", why="it lies", since=1.7e9, heard=True)
    [line] = lines_of(said)
    told = {key: line[key] for key in ("event", "target", "word", "by", "why", "since", "heard")}
    assert told == {"event": "operator", **{key: value for key, value in asdict(said).items() if key != "at"}}


def test_lines_are_written_together() -> None:
    """Those that wait at once are one write, at most 64 lines; a full disk is said, and later lines are written."""

    class Disk(io.StringIO):
        full = False

        def write(self, text: str) -> int:
            if self.full:
                raise OSError("full")
            writes.append(text.count("\n"))
            return len(text)

    writes = list[int]()
    disk = Disk()
    sink = LogSink(disk)
    for number in range(70):
        sink.emit(finished(number))
    sink.caught_up()
    disk.full = True
    sink.emit(finished(71))
    with pytest.raises(OSError, match="full"):
        sink.caught_up()
    disk.full = False
    sink.emit(finished(72))
    sink.caught_up()
    sink.caught_up()
    assert writes == [64, 6, 1]


def test_a_request_like_one_before_has_a_line_like_it() -> None:
    """Its own id and times, and what both have in common; the next one, which differs, has what is its own."""
    one, like, other = lines_of(finished(1), finished(2, seconds=0.25, ttft_seconds=0.125), finished(3, model="fast"))
    assert like == {**one, "request_id": "req-2", "seconds": 0.25, "ttft_seconds": 0.125}
    assert other == {**one, "request_id": "req-3", "model": "fast"}
    assert one["trouble"] == []
    assert one["ttft_seconds"] is None


def test_what_lines_have_in_common_is_clean_and_bounded() -> None:
    """A secret in a name is masked in every line; names as their callers like them are not remembered for ever."""
    told = lines_of(*(finished(number, model="use sk-" + "abcdefghijklmnop0123") for number in range(3)))
    assert {line["model"] for line in told} == {"use ***"}
    sink = LogSink(io.StringIO())
    for number in range(5_000):
        sink.emit(finished(number, model=f"m{number}"))
    assert len(sink._rests) <= 2_000


@pytest.mark.parametrize("name", ['a"quoted\\ name', "line\nbreak", "h\ud800lf"])
def test_any_name_is_json(name: str) -> None:
    """Quotes, line breaks and halves of characters, in names and in ids: one line, which can be read."""
    [line] = lines_of(finished(1, model=name, request_id=name))
    assert line["request_id"] == name
    assert line["model"]


def test_calls_without_trouble_are_not_handed_over() -> None:
    """The log has no use for them, and they would wait in its queue."""
    sink = LogSink(io.StringIO())
    assert not sink.wants(replace(failed(1), failure_class=None))
    assert sink.wants(failed(1))
    assert sink.wants(finished(1))
    assert not sink.wants(ProbeStarted(at=1.0, target="a/big", kind="whole"))


def test_good_news_is_sampled_and_trouble_never() -> None:
    """A tenth of the requests that were fine, the same ones each time; every one that was not."""
    events = [finished(number) for number in range(1_000)]
    bad = [finished(number, "failed") for number in range(1_000, 1_100)]
    told = lines_of(*events, *bad, fine_share=0.1)
    fine = [line["request_id"] for line in told if line["outcome"] == "ok"]
    assert 60 <= len(fine) <= 140
    assert fine == [line["request_id"] for line in lines_of(*events, fine_share=0.1)]
    assert sum(line["outcome"] == "failed" for line in told) == 100


FORKED = """
import io, os
from smart_model_router.observability.log import LogSink
from tests.unit.observability.test_log import failed, finished
told = io.StringIO()
sink = LogSink(told)
sink.emit(finished(1))
sink.emit(failed(2))
child = os.fork()
if child:
    os.waitpid(child, 0)
sink.emit(finished(2))
sink.caught_up()
print(told.getvalue().count("req-1"), told.getvalue().count("OVERLOADED"), flush=True)
os._exit(0)
"""


def test_what_was_gathered_before_a_fork_is_written_once() -> None:
    """By the process that gathered it; its child begins with nothing."""
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == ["0 0", "1 1"]


def test_a_write_that_is_cut_short_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system may take a part of what it is given: the rest follows."""
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, text: write(descriptor, text[:10]))
    lines = LogFile(tmp_path / "log")
    lines.write("a line that is longer than what is taken at once\n")
    lines.close()
    assert (tmp_path / "log").read_text() == "a line that is longer than what is taken at once\n"


@pytest.mark.parametrize("stream", ["stderr", "stdout"])
def test_a_process_without_a_console_writes_nowhere(
    stream: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its `sys.stderr` is None: a log to stderr is no file of that name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, stream, None)
    log = opened(stream)
    log.write("lost\n")
    log.close()
    assert list(tmp_path.iterdir()) == []


SECRETS = {
    "a key": "gsk_abcdefghijkl0123",
    "a header": "Authorization: Bearer abcdef0123456789",
    "a key header": "x-api-key: 0123456789abcdef",
    "a query": "https://host/v1?key=0123456789abcdef&x=1",
    "a URL": "https://user:hunter2pass@host/v1",
    "JSON": '{"api_key": "0123456789abcdef"}',
    "JSON in JSON": r'"{\"api_key\": \"0123456789abcdef\"}"',
    "a longer name": "client_secret=0123456789abcdef",
}


@pytest.mark.parametrize("text", SECRETS.values(), ids=SECRETS.keys())
def test_what_looks_like_a_secret_is_masked(text: str) -> None:
    """Wherever it stands; what is around it stays."""
    shown = redacted(f"before {text} after")
    assert "***" in shown
    assert shown.startswith("before ")
    assert shown.endswith(" after")
    assert not any(secret in shown for secret in ("abcdef0123456789", "0123456789abcdef", "hunter2", "abcdefghijkl"))


PLAIN = [
    "a/gpt-5.2-mini",
    "skywork-o1-open",
    "skillfully",
    "hf-inference/mixtral",
    "token bucket of 5",
    "tokens left: 12345",
    "max_tokens=4096",
    "monkey: banana",
    "keyboard",
    "a basic model",
    "basic questions",
]


@pytest.mark.parametrize("text", PLAIN)
def test_plain_words_stay(text: str) -> None:
    """Names and sentences are not secrets."""
    assert redacted(text) == text


def test_secrets_of_the_configuration_are_masked_whatever_they_look_like() -> None:
    """Also in keys of nested values, and where nothing about them looks like a key."""
    clean = Redaction(("correct horse",))
    assert clean(None, "", {"a": ["say correct horse now"], "b": {"c": "correct horse"}}) == {
        "a": ["say *** now"],
        "b": {"c": "***"},
    }


def test_a_secret_that_begins_with_another_leaves_nothing() -> None:
    """Keys with a common beginning are masked whole, whichever the configuration names first."""
    assert Scrubber(["team-a", "team-a-0123"]).text("with team-a-0123 and team-a") == "with *** and ***"


def test_a_secret_is_found_as_a_url_or_json_spells_it() -> None:
    """A failure has it in neither its words nor its body: escaped, it is as good to whoever reads it."""
    failure = Failure(FailureClass.OVERLOADED, "GET /v1?who=a%2Fb%20c%22d", raw=b'{"who": "a/b c\\"d"}')
    clean = Scrubber(['a/b c"d']).failure(failure)
    assert (clean.message, clean.raw) == ("GET /v1?who=***", b'{"who": "***"}')


def test_a_file_is_for_its_owner_alone_and_added_to(tmp_path: Path) -> None:
    """Mode 600; what was there stays there."""
    path = tmp_path / "log.jsonl"
    path.write_text("before\n")
    path.chmod(0o600)
    stream = opened(str(path))
    assert isinstance(stream, LogFile)
    stream.write("after\n")
    stream.close()
    assert path.read_text() == "before\nafter\n"
    opened_new = opened(str(tmp_path / "new"))
    assert isinstance(opened_new, LogFile)
    opened_new.close()
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o600


def test_a_file_that_cannot_be_is_a_configuration_error(tmp_path: Path) -> None:
    """It is said at once, by its key."""
    config = {**CONFIG, "telemetry": {"log": {"to": str(tmp_path / "no" / "log")}}}
    with pytest.raises(ConfigurationError, match=r"telemetry\.log\.to"):
        SmartModelRouter.from_config(config)
