"""The router's own log: a line where something changes, at the level that it deserves, and none for the healthy."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import pytest

from smart_model_router.domain.events import (
    BreakerChanged,
    OfflineChanged,
    ProbeStarted,
    RequestOutcome,
    RestStarted,
    SheddingChanged,
    StoreChanged,
)
from smart_model_router.domain.outcome import FailureClass
from smart_model_router.domain.report import Attempt, RouteReport
from smart_model_router.flow import plain_log
from smart_model_router.flow.plain_log import QUIET_SECONDS, PlainLog

NAME = "smart_model_router.router"


@dataclass
class Time:
    """A clock that a test moves."""

    now: float = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time() -> Time:
    """The clock of the log."""
    return Time()


@pytest.fixture
def log(time: Time) -> PlainLog:
    """A log on that clock."""
    return PlainLog(time, lambda: 1_700_000_000.0)


def report(
    model: str = "smart", target: str | None = "b/x", *, said: str = "HTTP 500: my secret prompt"
) -> RouteReport:
    """A request whose first choice failed."""
    failed = Attempt("a/x", 1.0, FailureClass.SERVER_ERROR, said, 500)
    return RouteReport("id", model, "t", "t", target, complete=True, attempts=[failed], choice=2)


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    """Level and text of each line so far; forgets them."""
    lines = [(record.levelname, record.getMessage()) for record in caplog.records if record.name == NAME]
    caplog.clear()
    return lines


def test_a_failover_is_a_warning_with_its_cause(log: PlainLog, caplog: pytest.LogCaptureFixture) -> None:
    """Without the provider's own words: they may echo a prompt."""
    log.finished(report(), "fallback")
    assert told(caplog) == [("WARNING", "id smart: served by b/x (2nd choice) in 0.0 s: a failed (500)")]


@pytest.mark.parametrize("error", ["AllTargetsFailed", "DeadlineExceeded", "Overloaded", "StreamInterrupted"])
def test_a_total_failure_is_a_warning(log: PlainLog, caplog: pytest.LogCaptureFixture, error: str) -> None:
    """Whatever it is called."""
    log.finished(report(target=None), "failed", error)
    assert told(caplog) == [("WARNING", "id smart: a failed (500)")]


@pytest.mark.parametrize(
    ("outcome", "error"), [("ok", ""), ("cancelled", ""), ("failed", "InvalidRequest"), ("failed", "ContextTooLong")]
)
def test_health_and_the_callers_own_mistakes_are_no_news(
    log: PlainLog, caplog: pytest.LogCaptureFixture, outcome: RequestOutcome, error: str
) -> None:
    """They are told at DEBUG alone, with every attempt."""
    caplog.set_level(logging.INFO, NAME)
    log.finished(report(), outcome, error)
    assert told(caplog) == []
    caplog.set_level(logging.DEBUG, NAME)
    log.finished(report(), outcome, error)
    levels, texts = zip(*told(caplog), strict=True)
    assert (set(levels), texts[0]) == ({"DEBUG"}, f"smart {error or outcome}")
    assert any("asked    a/x: SERVER_ERROR" in text for text in texts)


def test_the_same_trouble_is_told_once_a_minute_with_its_count(
    log: PlainLog, time: Time, caplog: pytest.LogCaptureFixture
) -> None:
    """An outage at 20 requests a second is not 1,200 lines a minute; another model's trouble is another's."""
    for _ in range(100):
        log.finished(report(), "fallback")
    log.finished(report("other"), "fallback")
    assert [text.split(":")[0] for _, text in told(caplog)] == ["id smart", "id other"]
    time.now += QUIET_SECONDS
    log.finished(report(), "fallback")
    assert told(caplog)[0][1].endswith("a failed (500) (99 more such requests in 60 s)")


def test_a_recovery_is_told_when_it_lasts(log: PlainLog, time: Time, caplog: pytest.LogCaptureFixture) -> None:
    """One request that the first choice served amid the trouble is none."""
    caplog.set_level(logging.INFO, NAME)
    log.finished(report(), "fallback")
    log.finished(report(), "degraded")
    told(caplog)
    log.finished(report("other"), "ok")
    log.finished(report(), "ok")
    time.now += QUIET_SECONDS
    log.finished(report("other"), "ok")
    assert told(caplog) == []
    log.finished(report(), "ok")
    log.finished(report(), "ok")
    again = "smart: served by its first choice again; 2 requests were not in 60 s"
    assert told(caplog) == [("INFO", again)]


def test_the_log_of_a_replaced_router_goes_on(log: PlainLog, time: Time, caplog: pytest.LogCaptureFixture) -> None:
    """A reload amid an outage tells no trouble anew."""
    log.finished(report(), "fallback")
    told(caplog)
    fresh = PlainLog(time, lambda: 0.0)
    fresh.continue_from(log)
    fresh.finished(report(), "fallback")
    assert told(caplog) == []


def test_names_that_callers_choose_fill_no_memory(
    log: PlainLog, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wildcard's models may be any number."""
    monkeypatch.setattr(plain_log, "_MODELS", 3)
    for number in range(10):
        log.finished(report(f"m{number}"), "fallback")
    log.finished(report("m0"), "fallback")
    assert len(told(caplog)) == 11


def test_transitions_have_the_level_that_they_deserve(log: PlainLog, caplog: pytest.LogCaptureFixture) -> None:
    """Down is a warning, up an information; a failed probe and an ordinary rest are no news."""
    caplog.set_level(logging.INFO, NAME)

    def moved(came_from: str, to: str) -> BreakerChanged:
        return BreakerChanged(
            at=1.0, owner="a/x", kind="whole", from_state=came_from, to_state=to, reason="r", open_until=3.0
        )

    off = RestStarted(at=1.0, target="a/x", reason="off", seconds=900.0, failure_class=FailureClass.AUTH, hinted=False)
    rest = RestStarted(
        at=1.0, target="a/x", reason="cooldown", seconds=1.0, failure_class=FailureClass.TIMEOUT, hinted=False
    )
    log.emit(moved("closed", "open"))
    log.emit(moved("half_open", "open"))
    log.emit(moved("half_open", "closed"))
    log.emit(off)
    log.emit(rest)
    log.emit(OfflineChanged(at=1.0, offline=True))
    log.emit(OfflineChanged(at=1.0, offline=False))
    log.emit(SheddingChanged(at=1.0, shedding=True, open_ratio=0.6))
    log.emit(SheddingChanged(at=1.0, shedding=False, open_ratio=0.0))
    log.emit(StoreChanged(at=1.0, store="stats", degraded=True, reason="disk full"))
    log.emit(StoreChanged(at=1.0, store="stats", degraded=False, reason=""))
    log.emit(ProbeStarted(at=1.0, target="a/x", kind="whole"))
    lines = told(caplog)
    assert [level for level, _ in lines] == [
        "WARNING", "INFO", "WARNING", "WARNING", "INFO", "WARNING", "INFO", "WARNING", "INFO",
    ]  # fmt: skip
    assert lines[0][1] == "a/x is left alone for 2 s: its breaker opened (r)"
    assert lines[5][1] == "shedding requests of low criticality: 60 % of the providers are open"


def test_the_operators_word_is_told_once(log: PlainLog, caplog: pytest.LogCaptureFixture) -> None:
    """It moves two breakers of a target, for whole answers and for streams."""
    caplog.set_level(logging.INFO, NAME)
    for before, after in (("closed", "isolated"), ("isolated", "closed")):
        for kind in ("whole", "stream"):
            log.emit(
                BreakerChanged(at=1.0, owner="a/x", kind=kind, from_state=before, to_state=after, reason="operator")
            )
    assert [level for level, _ in told(caplog)] == ["WARNING", "INFO"]
