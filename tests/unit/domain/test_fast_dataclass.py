"""quick: frozen dataclasses that are quick to make, and dataclasses in every other respect."""

from __future__ import annotations

import copy
import inspect
import pickle
from dataclasses import FrozenInstanceError, dataclass, field, replace

import pytest

from smart_model_router.domain.fast_dataclass import quick


@quick
@dataclass(frozen=True, slots=True)
class Point:
    """By place, with defaults."""

    x: int
    y: int = 2
    tags: list[str] = field(default_factory=list)


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """By name alone."""

    name: str
    size: float | None = None


def test_it_is_what_dataclasses_make() -> None:
    """Fields, defaults, equality, hash, repr, replace, copies: as without it."""
    point = Point(1)
    assert type(point) is Point
    assert (point.x, point.y, point.tags) == (1, 2, [])
    assert repr(point) == "Point(x=1, y=2, tags=[])"
    assert point == Point(1, y=2) != Point(1, 3)
    assert replace(point, y=5) == Point(1, 5)
    assert copy.deepcopy(point) == pickle.loads(pickle.dumps(point)) == point
    assert hash(Named(name="a")) == hash(Named(name="a", size=None))
    assert str(inspect.signature(Named)) != str(inspect.signature(Point))


def test_every_one_has_its_own_default() -> None:
    """What a factory makes is shared by nobody."""
    assert Point(1).tags is not Point(1).tags


def test_it_is_frozen() -> None:
    """Nothing can be set, also nothing new, and nothing deleted."""
    point = Point(1)
    for name in ("x", "other", "__class__"):
        with pytest.raises((FrozenInstanceError, TypeError)):
            setattr(point, name, Named)
        with pytest.raises((FrozenInstanceError, TypeError)):
            delattr(point, name)
    assert point == Point(1)


@pytest.mark.parametrize("wrong", [(), (1, 2, [], 4)])
def test_wrong_arguments_are_errors(wrong: tuple[object, ...]) -> None:
    """Too few and too many, with the class's name in the error."""
    with pytest.raises(TypeError, match=r"Point\.__init__"):
        Point(*wrong)  # type: ignore[arg-type]  # what an unchecked caller does


def test_by_name_alone_means_that() -> None:
    """kw_only is kept."""
    with pytest.raises(TypeError, match="positional"):
        Named("a")  # type: ignore[call-arg]  # what an unchecked caller does


def test_what_it_cannot_do_is_refused() -> None:
    """A class that does something after its fields are set, is derived from another, or is not frozen.

    And one with a field that nobody gives.
    """

    @dataclass(frozen=True, slots=True)
    class Later:
        x: int

        def __post_init__(self) -> None:
            """Something."""

    @dataclass(frozen=True, slots=True)
    class Derived(Later):
        y: int = 0

    @dataclass(slots=True)
    class Open:
        x: int

    @dataclass(frozen=True, slots=True)
    class Made:
        x: int = field(default=1, init=False)

    for cls in (Later, Derived, Open, Made):
        with pytest.raises(TypeError, match=cls.__name__):
            quick(cls)
