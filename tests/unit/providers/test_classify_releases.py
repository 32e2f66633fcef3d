"""Every supported SDK release raises what the classifier knows, also the releases that are not installed here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from smart_model_router.domain.outcome import FailureClass
from smart_model_router_providers.classify import class_of_exception

FIXTURE = Path(__file__).parents[2] / "fixtures" / "sdk_exceptions.json"
RELEASES: list[dict[str, Any]] = json.loads(FIXTURE.read_text())["releases"]
CLASSES = [(release, name) for release in RELEASES for name in release["classes"]]


def raised(release: dict[str, Any], name: str) -> BaseException:
    """An exception of the release's class, by its name and its bases' names; nothing of the SDK is imported."""
    base: type[BaseException] = Exception
    for dotted in reversed(release["classes"][name]):
        package, _, own = dotted.partition(".")
        if package != "builtins":
            base = type(own, (base,), {"__module__": f"{package}._exceptions"})
    return base()


@pytest.mark.parametrize(("release", "name"), CLASSES, ids=lambda v: v if isinstance(v, str) else v["version"])
def test_every_class_of_every_release_is_classified(release: dict[str, Any], name: str) -> None:
    """A class nobody knows would pass for a bug of ours."""
    assert class_of_exception(raised(release, name)) is not None


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: f"{release['package']} {release['version']}")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("APITimeoutError", FailureClass.TIMEOUT),
        ("APIConnectionError", FailureClass.TRANSPORT),
        ("APIResponseValidationError", FailureClass.MALFORMED),
        ("APIError", FailureClass.SERVER_ERROR),
    ],
)
def test_the_classes_without_an_answer_mean_the_same_in_every_release(
    release: dict[str, Any], name: str, expected: FailureClass
) -> None:
    """What has no status is known by its name alone."""
    assert class_of_exception(raised(release, name)) is expected


def test_all_supported_major_releases_are_there() -> None:
    """openai 2 and anthropic 0 and 1; openai 3 and anthropic 2 are installed and walked (test_classify.py)."""
    majors = {(release["package"], release["version"].partition(".")[0]) for release in RELEASES}
    assert majors == {("openai", "2"), ("anthropic", "0"), ("anthropic", "1")}
