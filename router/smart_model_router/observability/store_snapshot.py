"""The dashboard's snapshot of a store: the figures of every process that writes to it, by its views."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from smart_model_router.observability.dashboard_history import STEP_SECONDS, STEPS, UNSERVED, move_of
from smart_model_router.observability.dashboard_snapshot import (
    OTHERS,
    SHOWN_REQUESTS,
    SHOWN_SERIES,
    SHOWN_TRANSITIONS,
    VERSION,
    errors_of,
)
from smart_model_router_stats.figures import ModelStats
from smart_model_router_stats.reading import StoreReader

Row = dict[str, Any]

_SPAN = STEP_SECONDS * STEPS
_NEWEST_OF_A_MODEL = 20
_GOOD = frozenset({"ok", "fallback", "degraded"})


class StoreSnapshot:
    """Makes snapshots of what `reader` reads. Blocks: to be used on a thread."""

    def __init__(self, reader: StoreReader) -> None:
        self._reader = reader

    def picture(self, now: float) -> dict[str, Any]:
        """Return the content of the store at `now` (seconds since the epoch). Raises StoreUnavailableError."""
        view = self._reader.view()
        with self._reader.looking() as rows:
            # A file of an older release has fewer columns.
            minutes = rows("SELECT * FROM v_target_minute WHERE minute > ?", int(now // 60) - _SPAN // 60)
            events = rows("SELECT id, at, kind, subject, detail FROM v_events LIMIT 2000")
            requests = rows("SELECT * FROM v_requests WHERE at > ?", now - _SPAN)
        stands = _stands(events, now)
        for one in view.isolated or ():
            stands[one.target] = {"state": "isolated", "run": one.told}
        return {
            "version": VERSION,
            "scope": "store",
            "at": now,
            "system": {
                "open_ratio": _open_ratio(view.figures.targets, stands),
                "offline": False,
                "shedding": False,
                "alone": None,
            },
            "models": list(_models(requests, stands)),
            "targets": [_target(name, stats, stands, minutes, now) for name, stats in view.figures.targets.items()],
            "served": _served(requests, now),
            "errors": errors_of(
                (failure, row["target"], count)
                for row in minutes
                for failure, count in json.loads(row["failures"]).items()
            ),
            "transitions": [_transition(row) for row in events[:SHOWN_TRANSITIONS]],
            "requests": [_request(row) for row in requests[:SHOWN_REQUESTS]],
            "sinks": [],
        }

    def trace(self, request_id: str) -> Mapping[str, Any] | None:
        """Return the store's row of one request, with counts of calls and refusals. Raises StoreUnavailableError."""
        with self._reader.looking() as rows:
            row = next(iter(rows("SELECT * FROM v_requests WHERE request_id = ?", request_id)), None)
        if row is None:
            return None
        note = f"The store has counts alone: {row['attempts']} calls, {row['refusals']} refusals."
        return {**_request(row), "waited_seconds": row["waited_seconds"], "steps": [], "note": note}


def _stands(events: list[Row], now: float) -> dict[str, dict[str, Any]]:
    """The state of each target by its newest events: its breaker's, and a rest that is not over."""
    stands: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    for row in events:  # newest first
        detail = json.loads(row["detail"])
        stand = stands[row["subject"]]
        if row["kind"] == "BreakerChanged" and "state" not in stand:
            due = row["at"] + (detail.get("open_seconds") or 0.0) - now
            state = detail["to_state"]
            stand["state"] = "half_open" if state == "open" and due <= 0 else state
            stand["due"] = due if stand["state"] == "open" else None
            stand["run"] = detail["reason"] if state != "closed" else ""
        if row["kind"] == "RestStarted" and "refusal" not in stand:
            left = row["at"] + detail["seconds"] - now
            stand["refusal"] = detail["reason"] if left > 0 else None
            stand["rest"] = left if left > 0 else None
            stand["because"] = detail["failure_class"] if left > 0 else None
    return stands


def _open_ratio(targets: Mapping[str, ModelStats], stands: Mapping[str, Mapping[str, Any]]) -> float:
    providers: defaultdict[str, list[bool]] = defaultdict(list)
    for name in targets:
        providers[name.partition("/")[0]].append(stands.get(name, {}).get("state") == "open")
    return sum(all(each) for each in providers.values()) / len(providers) if providers else 0.0


def _target(
    name: str, stats: ModelStats, stands: Mapping[str, Mapping[str, Any]], minutes: list[Row], now: float
) -> dict[str, Any]:
    stand = stands.get(name, {})
    own = [row for row in minutes if row["target"] == name]
    last = sum(row["calls"] for row in own if row["minute"] == int(now // 60) - 1)
    recent = stats.recent_outcomes
    prompt = sum(row["prompt_tokens"] for row in own)
    kept = [row["cached_prompt_tokens"] for row in own if "cached_prompt_tokens" in row]
    return {
        "id": name,
        "provider": name.partition("/")[0],
        "state": stand.get("state", "closed"),
        "refusal": stand.get("refusal"),
        "because": stand.get("because"),
        "due": stand.get("due") or stand.get("rest"),
        "rate": last / 60,
        "errors": 1 - stats.recent_successes / recent if recent else None,
        "p50": stats.latency_15_min.p50,
        "p95": stats.latency_15_min.p95,
        "p99": stats.latency_15_min.p99,
        "ttft": stats.ttft_15_min.p50,
        "in_flight": None,
        "slots": None,
        "tokens": None,
        "tokens_limit": None,
        "cost_hour": sum(row["cost_usd"] for row in own) * 3600 / _SPAN,
        "prompt_hour": prompt * 3600 / _SPAN,
        "cached": sum(kept) / prompt if prompt and kept else None,
        "run": stand.get("run", ""),
    }


def _models(requests: list[Row], stands: Mapping[str, Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    by_model: defaultdict[str, list[Row]] = defaultdict(list)
    for row in requests:  # newest first
        by_model[row["model"]].append(row)
    resting = [
        {"target": name, "why": why, "run": stand.get("run", ""), "due": stand.get("due") or stand.get("rest")}
        for name, stand in stands.items()
        if (why := stand.get("state", "closed")) != "closed" or (why := stand.get("refusal")) is not None
    ]
    for name, rows in sorted(by_model.items()):
        target = Counter(_server(row) for row in rows[:_NEWEST_OF_A_MODEL]).most_common(1)[0][0]
        since = rows[0]["at"]
        for row in rows:
            if _server(row) != target and since != rows[0]["at"]:
                break
            since = row["at"] if _server(row) == target else since
        served_here = {_server(row) for row in rows}
        yield {
            "name": name,
            "target": target or None,
            "choice": None,
            "tier": rows[0]["actual_tier"],
            "degraded": bool(rows[0]["degraded"]),
            "since": since,
            "missing": [one for one in resting if one["target"] in served_here and one["target"] != target],
        }


def _server(row: Row) -> str:
    return (row["target"] or UNSERVED) if row["outcome"] in _GOOD else UNSERVED


def _served(requests: list[Row], now: float) -> dict[str, Any]:
    rows = [row for row in requests if row["outcome"] != "cancelled"]
    named = [name for name, _ in Counter(map(_server, rows)).most_common() if name != UNSERVED][:SHOWN_SERIES]
    series: dict[str, list[int]] = {name: [0] * STEPS for name in (*named, OTHERS, UNSERVED)}
    for row in rows:
        place = STEPS - 1 - int((now - row["at"]) // STEP_SECONDS)
        if 0 <= place < STEPS:
            series[name if (name := _server(row)) in series else OTHERS][place] += 1
    if not any(series[OTHERS]):
        del series[OTHERS]
    return {"step": STEP_SECONDS, "end": now, "series": [[name, counts] for name, counts in series.items()]}


def _transition(row: Row) -> dict[str, Any]:
    return {"number": row["id"], "at": row["at"], **move_of(row["kind"], json.loads(row["detail"]))._asdict()}


def _request(row: Row) -> dict[str, Any]:
    names = ("at", "request_id", "dialect", "model", "outcome", "target", "attempts", "refusals", "seconds")
    return {name: row[name] for name in names}
