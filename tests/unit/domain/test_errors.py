"""The exceptions: whose fault it was, with the facts as attributes, through pickle and back."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import pytest

from smart_model_router.domain.errors import (
    AllTargetsFailed,
    ConfigurationError,
    ContentBlocked,
    ContextTooLong,
    DeadlineExceeded,
    InvalidRequest,
    Overloaded,
    RequestRejected,
    RouterUnavailable,
    SmartRouterError,
    StreamInterrupted,
    TranslationRefused,
    UnsupportedFeature,
)
from smart_model_router.domain.outcome import FailureClass
from smart_model_router.domain.report import Attempt, ReportedRefusal, RouteReport

TREE = [
    (ConfigurationError, SmartRouterError),
    (RequestRejected, SmartRouterError),
    (InvalidRequest, RequestRejected),
    (ContextTooLong, RequestRejected),
    (ContentBlocked, RequestRejected),
    (UnsupportedFeature, RequestRejected),
    (TranslationRefused, RequestRejected),
    (RouterUnavailable, SmartRouterError),
    (DeadlineExceeded, RouterUnavailable),
    (Overloaded, RouterUnavailable),
    (AllTargetsFailed, RouterUnavailable),
    (StreamInterrupted, SmartRouterError),
]


def make_report() -> RouteReport:
    """Make the account of a request that failed at one target and was refused by another."""
    return RouteReport(
        "id",
        "smart",
        "frontier",
        attempts=[Attempt("a/big", 1.5, FailureClass.SERVER_ERROR)],
        refusals=[ReportedRefusal("b/big", "open", 30.0)],
    )


def samples() -> list[SmartRouterError]:
    """Make one error of each kind, with every fact it can carry."""
    report = make_report()
    rejected = [
        kind("told", report=report, status=400, body=b"{}")
        for kind in (InvalidRequest, ContextTooLong, ContentBlocked, UnsupportedFeature, TranslationRefused)
    ]
    unavailable = [
        kind("told", report=report, retry_after=2.5) for kind in (DeadlineExceeded, Overloaded, AllTargetsFailed)
    ]
    return [
        *rejected,
        *unavailable,
        ConfigurationError("models.smart", 0, "at least 1"),
        StreamInterrupted("told", report=report, text="so far"),
        SmartRouterError("told", report=report),
    ]


@pytest.mark.parametrize(("kind", "parent"), TREE, ids=[kind.__name__ for kind, _ in TREE])
def test_the_tree_says_whose_fault_it_was(kind: type[Exception], parent: type[Exception]) -> None:
    """Each exception has the parent that architecture.md gives it."""
    assert kind.__bases__ == (parent,)


@pytest.mark.parametrize(
    "again", [lambda e: pickle.loads(pickle.dumps(e)), copy.copy, copy.deepcopy], ids=["pickle", "copy", "deepcopy"]
)
@pytest.mark.parametrize("error", samples(), ids=lambda error: type(error).__name__)
def test_an_error_survives_the_way_to_another_process(
    error: SmartRouterError, again: Callable[[SmartRouterError], SmartRouterError]
) -> None:
    """Its type, its message and every attribute are the same afterwards."""
    twin = again(error)
    assert type(twin) is type(error)
    assert str(twin) == str(error)
    assert twin.args == error.args
    assert twin.__dict__ == error.__dict__


def test_a_configuration_error_names_key_value_and_remedy() -> None:
    """One line an owner can act on."""
    error = ConfigurationError("models.smart.tiers[0]", [], "at least one target is needed")
    assert str(error) == "models.smart.tiers[0]: [] - at least one target is needed"
    assert (error.key, error.value, error.expected) == ("models.smart.tiers[0]", [], "at least one target is needed")


def test_a_long_value_is_cut_in_the_message() -> None:
    """120 characters of a value are shown whole, more are cut to 117 and dots; the attribute keeps all."""
    whole, long = "x" * 118, "x" * 119
    assert str(ConfigurationError("k", whole, "short")) == f"k: {whole!r} - short"
    assert str(ConfigurationError("k", long, "short")) == f"k: '{'x' * 116}... - short"
    assert ConfigurationError("k", long, "short").value == long


def test_an_unavailable_router_names_every_attempt_and_refusal() -> None:
    """Both come from the report; without one there are none."""
    error = AllTargetsFailed("told", report=make_report())
    assert [(a.target, a.failure_class) for a in error.attempts] == [("a/big", FailureClass.SERVER_ERROR)]
    assert [(r.target, r.reason, r.retry_after) for r in error.refusals] == [("b/big", "open", 30.0)]
    assert Overloaded("told").attempts == Overloaded("told").refusals == ()
    assert Overloaded("told").retry_after is None


def test_facts_nobody_gave_are_absent() -> None:
    """No report, no status, no body, no text."""
    error = InvalidRequest("told")
    assert (error.message, error.report, error.status, error.body) == ("told", None, None, b"")
    assert StreamInterrupted("told").text == ""
