"""`smr top --fleet`: the processes that share state, and what they share."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from smart_model_router.cli.commands import Top
from smart_model_router.cli.output import ExitCode
from smart_model_router.cli.statistics import run_top
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.outcome import FailureClass
from smart_model_router.domain.shared_state import (
    BreakerRow,
    Changes,
    ClockReading,
    Deadline,
    MemberRow,
    OperatorRow,
    RestRow,
)
from smart_model_router.flow.clock import here
from smart_model_router_stats.shared_sqlite import SqliteSharedState


def ago(seconds: float) -> ClockReading:
    """So many seconds before now."""
    now = here()
    return ClockReading(now.boot, now.boottime - seconds, now.wall - seconds)


def shared(folder: Path) -> Path:
    """A statistics file beside which processes share state; that file."""
    stats, now = folder / "stats.db", here()
    state = SqliteSharedState(folder / "state.db", here)
    member = MemberRow(holder="p1", machine="m1", version="0.1.0", pid=7, at=ago(2.0))
    state.publish_now(
        Changes(
            breakers=(
                BreakerRow(
                    owner="a/m",
                    kind="whole",
                    provider="a",
                    state="open",
                    until=Deadline.after(600, now),
                    reason="failures",
                ),
                BreakerRow(owner="b/m", kind="whole", provider="b", state="closed", until=Deadline.after(0, now)),
            ),
            rests=(
                RestRow(owner="c/m", reason="wait", until=Deadline.after(900, now), cause=FailureClass.RATE_LIMITED),
                RestRow(owner="d/m", reason="cooldown", until=Deadline.after(0, now)),
            ),
            words=(OperatorRow(target="e/m", word="isolate", by="ada", why="it lies", at=now),),
            members=(member, MemberRow(holder="dead", machine="m2", version="0.1.0", pid=8, at=ago(60.0))),
        )
    )
    return stats


def test_it_tells_which_processes_share_and_what(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Those that wrote lately; open breakers, rests that last, isolated targets."""
    stats = shared(tmp_path)
    assert run_top(Top(db=str(stats), fleet=True, times=1, as_json=True)) == ExitCode.OK
    told = json.loads(capsys.readouterr().out)
    ((member),) = told["members"]
    assert (member["machine"], member["version"], member["pid"]) == ("m1", "0.1.0", 7)
    assert 2.0 <= member["heard_seconds"] < 15.0
    assert [(row["name"], row["state"], row["why"]) for row in told["shared"]] == [
        ("a/m (whole)", "open", "failures"),
        ("c/m", "wait", "RATE_LIMITED"),
        ("e/m", "isolated", "it lies"),
    ]
    assert run_top(Top(db=str(stats), fleet=True, times=1)) == ExitCode.OK
    screen = capsys.readouterr().out
    assert "1 processes of 1 machines share their state" in screen
    assert "a/m (whole)" in screen


def test_without_shared_state_it_says_what_is_needed(tmp_path: Path) -> None:
    """In the configuration, or that the file cannot be read."""
    config = tmp_path / "smart-router.yaml"
    config.write_text(
        "version: 1\nproviders: {a: {kind: openai_compatible, base_url: 'http://a.invalid'}}\n"
        "models: {m: {tiers: [{targets: [a/m]}]}}\n"
    )
    with pytest.raises(ConfigurationError, match=r"store.path, or store.shared_url"):
        run_top(Top(config=config, fleet=True, times=1))
    with pytest.raises(ConfigurationError, match=r"state\.db"):
        run_top(Top(db=str(tmp_path / "stats.db"), fleet=True, times=1))
    with pytest.raises(ConfigurationError, match=r"valkey://") as refused:
        run_top(Top(db="http://user:secret@h/0", fleet=True, times=1))
    assert "secret" not in str(refused.value)
