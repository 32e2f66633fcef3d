"""A secret in the configuration, which no log, dump or error shows by accident."""

from __future__ import annotations

from typing import Any, NoReturn

from smart_model_router.domain.redaction import MASK, masked, masked_urls

__all__ = ["MASK", "Secret", "masked", "masked_urls"]


class Secret:
    """Text that shows itself as `***` everywhere but in `reveal`.

    It is neither JSON nor can it be pickled, so a configuration that is dumped, logged or sent away leaves it out
    or fails.
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The secret itself, for the one place that needs it."""
        return self._value

    def __repr__(self) -> str:
        return f"Secret({MASK!r})"

    def __str__(self) -> str:
        return MASK

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: object) -> Secret:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not pickled: read the configuration anew on the other side")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: object) -> Any:
        """The schema by which pydantic makes one out of text."""
        from pydantic_core import core_schema  # noqa: PLC0415 - only validation pays for pydantic

        return core_schema.no_info_after_validator_function(cls, core_schema.str_schema())
