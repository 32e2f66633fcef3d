"""Samples as Prometheus reads them: the text format 0.0.4, in the order of the table."""

from __future__ import annotations

from collections.abc import Iterable

from smart_model_router.observability.metric_definitions import METRICS, TABLE, Metric
from smart_model_router.observability.registry import Sample

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PARTS = ("_bucket", "_sum", "_count")


def rendered(samples: Iterable[Sample]) -> bytes:
    """The page. Every metric of the table has its HELP and TYPE, also while it has no sample."""
    lines: dict[str, list[str]] = {metric.name: [] for metric in TABLE}
    for sample in samples:
        labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in sample.labels)
        metric = metric_of(sample.name)
        if metric is not None:
            told = f"{sample.name}{{{labels}}}" if labels else sample.name
            lines[metric.name].append(f"{told} {_number(sample.value)}")
    page = []
    for metric in TABLE:
        page += [f"# HELP {metric.name} {metric.help}", f"# TYPE {metric.name} {metric.kind}", *lines[metric.name]]
    return ("\n".join(page) + "\n").encode("utf-8", "replace")


def metric_of(sample: str) -> Metric | None:
    """The row of the table that a sample belongs to; None for one of another version, whose table has more."""
    whole = (sample.removesuffix(part) for part in _PARTS if sample.endswith(part))
    return METRICS.get(sample) or next((METRICS[name] for name in whole if name in METRICS), None)


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)
