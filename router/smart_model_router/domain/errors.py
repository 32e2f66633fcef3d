"""The exceptions that the router raises. Each says whose fault it was and carries its facts as attributes.

SmartRouterError
- ConfigurationError
- RequestRejected
  - InvalidRequest
    - ModelNotFound
  - NotFound
  - ContextTooLong
  - ContentBlocked
  - UnsupportedFeature
  - TranslationRefused
- RouterUnavailable
  - DeadlineExceeded
  - Overloaded
  - AllTargetsFailed
- StreamInterrupted
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from smart_model_router.domain.outcome import Failure
    from smart_model_router.domain.report import RouteReport


class SmartRouterError(Exception):
    """Base of everything the router raises on purpose. `report` has the attempts, when there were any."""

    def __init__(self, message: str, *, report: RouteReport | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.report = report

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.args, dict(self.__dict__))


def _rebuild(kind: type[SmartRouterError], args: tuple[Any, ...], state: dict[str, Any]) -> SmartRouterError:
    error = kind.__new__(kind, *args)
    Exception.__init__(error, *args)
    error.__dict__.update(state)
    return error


class ConfigurationError(SmartRouterError):
    """The owner's mistake, found at construction: which key, which value, what would be right.

    `shown` is the value as the message has it, at most 120 characters: "missing" for None, the value that is not there.
    `others` are the further mistakes that were found at the same look.
    """

    def __init__(self, key: str, value: object, expected: str) -> None:
        shown = "missing" if value is None else repr(value)
        self.shown = shown if len(shown) <= 120 else shown[:117] + "..."
        super().__init__(f"{key}: {self.shown} - {expected}")
        self.key = key
        self.value = value
        self.expected = expected
        self.others: tuple[ConfigurationError, ...] = ()

    def with_others(self, others: Iterable[ConfigurationError]) -> ConfigurationError:
        """The same error, with these in `others`."""
        self.others = tuple(others)
        return self


class RequestRejected(SmartRouterError):
    """The request's own fault: never retried, never held against a target.

    `status` and `body` are the provider's own answer when the fault was found there.
    """

    def __init__(
        self,
        message: str,
        *,
        report: RouteReport | None = None,
        status: int | None = None,
        body: bytes = b"",
    ) -> None:
        super().__init__(message, report=report)
        self.status = status
        self.body = body


class InvalidRequest(RequestRejected):
    """The body is not a request of its dialect, or the provider said so."""


class ModelNotFound(InvalidRequest):
    """No model, alias or wildcard of the configuration has the name that was asked for: `model`."""

    def __init__(
        self,
        message: str,
        *,
        model: str = "",
        report: RouteReport | None = None,
        status: int | None = None,
        body: bytes = b"",
    ) -> None:
        super().__init__(message, report=report, status=status, body=body)
        self.model = model


class NotFound(RequestRejected):
    """The request refers to an answer, or a part of one, that is not kept, or that another owner's request made."""


class ContextTooLong(RequestRejected):
    """The prompt fits no target that could have served it."""


class ContentBlocked(RequestRejected):
    """A provider's content filter refused the prompt or the answer."""


class UnsupportedFeature(RequestRejected):
    """No configured target can do what the request needs (tools, images, a schema)."""


class TranslationRefused(RequestRejected):
    """Translating to another dialect would have changed the meaning."""


class RouterUnavailable(SmartRouterError):
    """No target could serve the request. `retry_after` is in seconds, None when no target is known to come due."""

    def __init__(self, message: str, *, report: RouteReport | None = None, retry_after: float | None = None) -> None:
        super().__init__(message, report=report)
        self.retry_after = retry_after

    @property
    def attempts(self) -> tuple[Any, ...]:
        """Every attempt (target, class, seconds) of the request."""
        return tuple(self.report.attempts) if self.report is not None else ()

    @property
    def refusals(self) -> tuple[Any, ...]:
        """Every refusal (target, reason, retry_after) of the request."""
        return tuple(self.report.refusals) if self.report is not None else ()


class DeadlineExceeded(RouterUnavailable):
    """The request's time ran out first."""


class Overloaded(RouterUnavailable):
    """The request was shed: many providers are OPEN, and its criticality is a sheddable one."""


class AllTargetsFailed(RouterUnavailable):
    """Every target that could have served was asked or refused, and none did."""


Interruption = Literal["cut", "stream_max", "reader_idle", "closed"]
"""The reason why a stream ended early: its provider cut it or fell silent, it reached the longest duration, its reader
did not read, the router was closed."""


class StreamInterrupted(SmartRouterError):
    """The stream ended after content was delivered. `text` is what had arrived (text parts only), `reason` why.

    `failure` is what the provider's stream came to, when that ended it.
    """

    def __init__(
        self,
        message: str,
        *,
        report: RouteReport | None = None,
        text: str = "",
        reason: Interruption = "cut",
        failure: Failure | None = None,
    ) -> None:
        super().__init__(message, report=report)
        self.text = text
        self.failure = failure
        self.reason: Interruption = reason
