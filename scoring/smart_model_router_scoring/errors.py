"""The one exception of this package: a setting that cannot be, refused where it is made."""

from __future__ import annotations


class ConfigError(ValueError):
    """The owner's mistake: which field, its value, and what is allowed. Faults in data never raise; see `notes`."""

    def __init__(self, field: str, value: object, allowed: str) -> None:
        super().__init__(field, value, allowed)
        self.field = field
        self.value = value
        self.allowed = allowed

    def __str__(self) -> str:
        return f"{self.field}: {self.value!r} - {self.allowed} is needed"
