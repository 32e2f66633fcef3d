"""The verdict of a scenario: findings, each with the verdict of a broken promise, and the worst of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """From best to worst.

    pass: every promise was kept. partial: every request was served as promised, but a figure missed its bound. safe:
    a request was not served, and its caller was told in time, with the reasons. fail: a promise was broken.
    """

    PASS = "pass"  # noqa: S105 - a verdict
    PARTIAL = "partial"
    SAFE = "safe"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """One promise, whether it was kept, and what was measured. `otherwise` is the verdict when it was not."""

    promise: str
    kept: bool
    measured: str
    otherwise: Verdict


def worst(findings: Iterable[Finding]) -> Verdict:
    """The verdict over all findings."""
    order = list(Verdict)
    missed = (order.index(finding.otherwise) for finding in findings if not finding.kept)
    return order[max(missed, default=0)]
