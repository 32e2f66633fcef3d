"""The metrics are those of the table and no others, and say what happened."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from smart_model_router.core.cooldown import RestRecord
from smart_model_router.domain.events import Event, RequestFinished
from smart_model_router.domain.outcome import FailureClass
from smart_model_router.observability.metrics import Metrics
from smart_model_router.observability.registry import METRICS, TABLE, Registry, Sample, rendered
from smart_model_router.testing import FakeProvider, FakeReply
from smart_model_router_stats.memory import MemoryStore
from tests.store_files import attempt
from tests.unit.observability.test_log import finished
from tests.world import BODY, DOWN, World, failing, limited, now, served_by, virtual, world

PROMISED: dict[str, tuple[str, ...]] = {
    "smr_requests_total": ("model", "outcome"),
    "smr_attempts_total": ("target", "class"),
    "smr_request_duration_seconds": ("model",),
    "smr_time_to_first_token_seconds": ("target",),
    "smr_overhead_seconds": (),
    "smr_inflight": ("target",),
    "smr_breaker_state": ("target", "state"),
    "smr_breaker_transitions_total": ("target", "from", "to", "reason"),
    "smr_cooldown_seconds": ("target",),
    "smr_throttle_probability": ("provider",),
    "smr_bucket_level": ("target", "kind"),
    "smr_retry_budget": (),
    "smr_tokens_total": ("target", "kind"),
    "smr_cost_usd_total": ("target",),
    "smr_upkeep_calls_total": ("target",),
    "smr_upkeep_cost_usd_total": ("target",),
    "smr_usage_missing_total": ("target",),
    "smr_stats_dropped_total": (),
    "smr_header_rejected_total": (),
    "smr_system_health_open_ratio": (),
    "smr_load_shedding": (),
    "smr_shed_total": ("criticality",),
    "smr_degraded_total": ("model", "requested_tier", "actual_tier"),
    "smr_last_resort_total": (),
    "smr_shared_reachable": (),
    "smr_shared_round_trip_seconds": (),
    "smr_shared_conflicts_total": (),
    "smr_fleet_members": (),
}
"""Names and labels people have in their dashboards and alerts: a change here is a change of a contract."""
BUSY = failing(FailureClass.OVERLOADED, 529)
SOURCES = Path(__file__).resolve().parents[3] / "router" / "smart_model_router"


def figures(w: World) -> dict[str, dict[tuple[str, ...], float]]:
    """The page as Prometheus' own parser reads it: by sample name and label values."""
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(w.router.monitor.metrics().decode()):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return found


def test_names_and_labels_are_those_that_were_promised() -> None:
    """The table is the contract."""
    assert {metric.name: metric.labels for metric in TABLE} == PROMISED


@pytest.mark.parametrize("metric", TABLE, ids=lambda metric: metric.name)
def test_a_metric_is_named_as_prometheus_names_them(metric: Any) -> None:
    """What `promtool check metrics` asks for: counters end in _total, units are base units, everything has a help."""
    assert re.fullmatch(r"smr_[a-z_]+", metric.name)
    assert (metric.kind == "counter") == metric.name.endswith("_total")
    assert not re.search(r"_(ms|milliseconds|minutes|kb|percent)(_|$)", metric.name)
    assert metric.kind != "histogram" or metric.name.endswith("_seconds")
    assert metric.help.endswith(".")
    assert not {"le", "quantile", "key", "user", "prompt", "request_id"} & set(metric.labels)
    assert list(metric.buckets) == sorted(set(metric.buckets))


def test_the_code_counts_nothing_else() -> None:
    """Each name in the code is a row of the table, and each row is used."""
    text = "".join(path.read_text("utf-8") for path in (SOURCES / "observability").glob("*.py"))
    named = re.findall(r'"(smr_\w+)"', text)
    assert set(named) == set(METRICS)
    assert all(named.count(name) >= 2 for name in METRICS)


def test_wrong_labels_are_refused() -> None:
    """A sample with a label too many or too few cannot be exposed."""
    registry = Registry()
    registry.count("smr_requests_total", "smart")
    with pytest.raises(ValueError, match="shorter"):
        registry.samples()


@virtual
async def test_a_fallback_is_never_hidden() -> None:
    """Outcome, both attempts, tokens and duration are there; a request that fell back is not an `ok`."""
    w = world(["a/big", "b/big"], replies={"a": FakeProvider([FakeReply(), BUSY])})
    await served_by(w)
    await served_by(w)
    got = figures(w)
    assert got["smr_requests_total"] == {("smart", "ok"): 1, ("smart", "fallback"): 1}
    assert got["smr_attempts_total"] == {("a/big", "OK"): 1, ("a/big", "OVERLOADED"): 1, ("b/big", "OK"): 1}
    assert got["smr_tokens_total"]["b/big", "completion"] == 20
    assert got["smr_request_duration_seconds_count"] == {("smart",): 2}


@virtual
async def test_our_own_refusals_are_charged_to_nobody() -> None:
    """A target that was told to wait is refused, and has no further attempt."""
    w = world(["a/big", "b/big"], replies={"a": FakeProvider([limited(60.0)])})
    for _ in range(5):
        await served_by(w)
    got = figures(w)
    assert sum(value for (target, _), value in got["smr_attempts_total"].items() if target == "a/big") == 1
    assert got["smr_requests_total"]["smart", "fallback"] == 5
    assert got["smr_cooldown_seconds"]["a/big",] == pytest.approx(60.0)


@virtual
async def test_a_last_resort_is_degraded_and_counted() -> None:
    """From where to where a request was degraded, and that it was the last resort."""
    w = world(["a/big"], last_resort=["l/small"], replies={"a": FakeProvider(DOWN)})
    await served_by(w)
    got = figures(w)
    assert got["smr_degraded_total"] == {("smart", "frontier", "last_resort"): 1}
    assert got["smr_last_resort_total"] == {(): 1}


@virtual
async def test_an_isolated_target_is_in_one_state() -> None:
    """The state of a breaker is one-hot."""
    w = world(["a/big", "b/big"])
    w.router.isolate("a/big")
    got = figures(w)["smr_breaker_state"]
    assert {state: value for (target, state), value in got.items() if target == "a/big"} == {
        "isolated": 1,
        "open": 0,
        "half_open": 0,
        "closed": 0,
    }
    assert (
        figures(w)["smr_breaker_transitions_total"]["a/big", "closed", "isolated", "operator"] == 2
    )  # of both kinds of calls


@virtual
async def test_overhead_is_what_calls_and_waits_do_not_explain() -> None:
    """In virtual time the router takes none: a call of 3 s is no overhead."""
    w = world(["a/big"], replies={"a": FakeProvider(FakeReply(seconds=3.0))})
    await served_by(w)
    got = figures(w)
    assert got["smr_overhead_seconds_sum"] == {(): pytest.approx(0.0)}
    assert got["smr_request_duration_seconds_sum"] == {("smart",): pytest.approx(3.0)}


@virtual
async def test_a_call_that_runs_on_is_no_overhead_of_the_request_that_left_it() -> None:
    """Its seconds are not known when the request ends: of that one no overhead is told."""
    w = world(["a/big"], replies={"a": FakeProvider(FakeReply(seconds=3.0))})
    await served_by(w, timeout=1.0)
    await w.verdicts()
    await served_by(w)
    got = figures(w)
    assert got["smr_overhead_seconds_sum"] == {(): pytest.approx(0.0)}
    assert got["smr_overhead_seconds_count"] == {(): 1}
    assert got["smr_upkeep_calls_total"] == {("a/big",): 1}


@virtual
async def test_names_that_callers_choose_are_no_labels() -> None:
    """Any number of names that an alias takes are counted as the model they stand for."""
    w = world(["a/big"], config={"aliases": {"gpt-*": "smart"}})
    for number in range(50):
        await w.router.chat({**BODY, "model": f"gpt-{number}"})
    assert figures(w)["smr_requests_total"] == {("smart", "ok"): 50}


class Hearing:
    """A sink that keeps the names it is told."""

    inline = True

    def __init__(self) -> None:
        self.names: list[tuple[str, str]] = []

    def emit(self, event: Event) -> None:
        if isinstance(event, RequestFinished):
            self.names.append((event.model, event.configured_model))


@virtual
async def test_no_event_has_a_name_as_long_as_its_caller_likes() -> None:
    """Sinks keep thousands of names: of a megabyte they are told 200 characters, and the model it stands for."""
    w, sink = world(["a/big"], config={"aliases": {"gpt-*": "smart"}}), Hearing()
    w.router.monitor.watch(sink)
    await w.router.chat({**BODY, "model": "gpt-" + "x" * 1_000_000})
    assert sink.names == [("gpt-" + "x" * 196, "smart")]
    assert figures(w)["smr_requests_total"] == {("smart", "ok"): 1}


@pytest.mark.parametrize(
    ("calls", "overhead"),
    [
        ([(7.0, 9.5, False), (8.0, 9.5, True)], 0.5),
        ([(8.0, 8.5, True), (7.0, 9.5, False)], 0.5),
        ([(7.0, 8.0, False), (8.5, 9.5, False)], 1.0),
    ],
    ids=["a hedge that won", "a hedge that failed first", "one after another"],
)
def test_calls_side_by_side_are_counted_once(calls: list[tuple[float, float, bool]], overhead: float) -> None:
    """Of 3 s, what no call explains is overhead: a hedge beside a call hides nothing."""
    metrics = Metrics()
    for began, ended, hedge in calls:
        call = attempt(at=ended, seconds=ended - began)
        metrics.emit(replace(call, request_id="req-1", hedge=hedge))
    metrics.emit(finished(1, at=10.0, seconds=3.0))
    [found] = [sample.value for sample in metrics.samples() if sample.name == "smr_overhead_seconds_sum"]
    assert found == pytest.approx(overhead)


@virtual
async def test_a_stream_has_a_time_to_its_first_token() -> None:
    """It is counted by target."""
    w = world(["a/big"], replies={"a": FakeProvider(FakeReply(seconds=0.5, gap=0.1))})
    await served_by(w, stream=True)
    assert figures(w)["smr_time_to_first_token_seconds_sum"] == {("a/big",): pytest.approx(0.6)}


@virtual
async def test_without_metrics_nothing_is_counted() -> None:
    """`telemetry.metrics: false` leaves the gauges alone."""
    w = world(["a/big"], config={"telemetry": {"metrics": False}})
    await served_by(w)
    got = figures(w)
    assert "smr_requests_total" not in got
    assert got["smr_retry_budget"]


def test_any_text_can_be_a_label() -> None:
    """Quotes, backslashes, newlines and lone surrogates are escaped: the page stays one that can be parsed."""
    evil = 'a"b\\c\nd'
    page = rendered([Sample("smr_requests_total", (("model", evil), ("outcome", "\ud800")), 1.0)])
    [family] = [one for one in text_string_to_metric_families(page.decode()) if one.samples]
    assert family.samples[0].labels == {"model": evil, "outcome": "?"}


def test_a_reload_goes_on_counting() -> None:
    """The counters of the router before this one are its own, too."""
    before, after = Metrics(), Metrics()
    after.continue_from(before)
    before._registry.count("smr_last_resort_total")
    assert after.samples() == [Sample("smr_last_resort_total", (), 1.0)]


@virtual
async def test_a_reload_takes_no_counter_back() -> None:
    """What is read off the parts of a router goes on as well, over two reloads, with metrics or without."""
    first, second, third = (world(["a/big"], config={"telemetry": {"metrics": on}}) for on in (True, False, True))
    first.router._state.rejected_fields["a"] += 2
    second.router._state.rejected_fields["a"] += 3
    first.router._state.store = Dropping()
    second.router.monitor.continue_from(first.router.monitor)
    third.router.monitor.continue_from(second.router.monitor)
    got = figures(third)
    assert got["smr_header_rejected_total"] == {(): 5}
    assert got["smr_stats_dropped_total"] == {(): 7}


class Dropping(MemoryStore):
    """A store that gave up seven observations."""

    stats_dropped = 7


@virtual
async def test_a_rest_lasts_as_long_as_it_lasts() -> None:
    """Also where a breaker is OPEN for longer, and is what a call would meet."""
    w = world(["a/big"], replies={"a": FakeProvider(DOWN)})
    for _ in range(10):
        await served_by(w)
        await asyncio.sleep(0.1)
    gate = w.router._state.fleet.gates["a/big"]
    gate.credential.adopt(RestRecord("wait", now() + 2.0, True, FailureClass.RATE_LIMITED, 1), now())
    got = figures(w)
    assert got["smr_breaker_state"]["a/big", "open"] == 1
    assert got["smr_cooldown_seconds"]["a/big",] == pytest.approx(2.0)


def test_the_grafana_dashboard_asks_for_what_there_is() -> None:
    """Every metric it names is one of the table, or a part of a histogram, and every metric has its place in it."""
    board = (SOURCES.parents[1] / "docs" / "grafana-dashboard.json").read_text(encoding="utf-8")
    named = set(re.findall(r"smr_[a-z_]+", board))
    assert {name.removesuffix("_bucket") for name in named} == set(METRICS)
