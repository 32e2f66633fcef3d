"""The export of spans as OTEL_* variables say, for `smr serve`: in an application the SDK is the application's own.

The SDK reads the variables itself (endpoint, headers, resource, sampler, batches); exporters are found by their entry
points, so each that is installed can be named.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from smart_model_router.config import RouterConfig
from smart_model_router.config.lint import LintEnvironment
from smart_model_router.config.secret import MASK

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

log = logging.getLogger("smart_model_router.observability")
_GROUP = "opentelemetry_traces_exporter"
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_OTLP: Mapping[str, str] = {"http/protobuf": "otlp_proto_http", "grpc": "otlp_proto_grpc"}
_EXTRA = "pip install 'smart-model-router[otel]'"


def lint_environment(config: RouterConfig, environ: Mapping[str, str]) -> LintEnvironment:
    """The facts of this process that findings about a configuration need."""
    return LintEnvironment(spans_lost=why_lost(environ) if config.telemetry.traces.enabled else "")


def why_lost(environ: Mapping[str, str]) -> str:
    """The reason why this process exports no spans; "" where it does, or can be set up to."""
    if find_spec("opentelemetry") is None:
        return f"OpenTelemetry is not installed: {_EXTRA}"
    return "" if _has_sdk() else _fault(environ)


def set_up(environ: Mapping[str, str]) -> bool:
    """Export spans from now on, as OTEL_* variables say; False where they say nothing, or there is an SDK already.

    Variables that the SDK does not take are a warning in the log, and no reason not to serve: nothing is exported then.
    The spans that wait are sent when the process ends.
    """
    if _has_sdk() or _fault(environ):
        return False
    from opentelemetry import trace  # noqa: PLC0415 - an extra

    logging.getLogger("opentelemetry.util.re").addFilter(_masked)
    try:
        provider = _provider(_named(environ))
    except Exception as error:  # noqa: BLE001 - of the SDK or of an exporter, which read the variables themselves
        log.warning("spans go nowhere: the OTEL_* variables are not taken: %s: %s", type(error).__name__, error)
        return False
    trace.set_tracer_provider(provider)
    return True


def _masked(record: logging.LogRecord) -> bool:
    """Mask a malformed header of the collector, which the API would log with the key that it has."""
    record.args = tuple(MASK for _ in record.args or ())
    return True


def _provider(exporters: Iterable[str]) -> TracerProvider:
    """An SDK with these exporters. Raises whatever the SDK and they raise for bad variables."""
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 - an extra
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415 - as above

    made = [_exporter(name)() for name in exporters]
    provider = TracerProvider()
    for exporter in made:
        provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


def _has_sdk() -> bool:
    from opentelemetry import trace  # noqa: PLC0415 - an extra

    return not isinstance(trace.get_tracer_provider(), (trace.ProxyTracerProvider, trace.NoOpTracerProvider))


def _fault(environ: Mapping[str, str]) -> str:
    """The reason why the variables set up no export; "" where they do."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return "OTEL_SDK_DISABLED is true"
    named = _written(environ)
    if named == ["none"]:
        return "OTEL_TRACES_EXPORTER is none"
    if not named and not any(environ.get(name) for name in _ENDPOINTS):
        return "there is no OTEL_EXPORTER_OTLP_ENDPOINT, and no SDK in this process"
    if find_spec("opentelemetry.sdk") is None:
        return f"the OpenTelemetry SDK is not installed: {_EXTRA}"
    missing = next((name for name in _named(environ) if not entry_points(group=_GROUP, name=name)), None)
    return "" if missing is None else f"the exporter {missing} is not installed"


def _written(environ: Mapping[str, str]) -> list[str]:
    """The exporters that the variable lists."""
    return [name for part in environ.get("OTEL_TRACES_EXPORTER", "").split(",") if (name := part.strip())]


def _named(environ: Mapping[str, str]) -> list[str]:
    """The entry points of the exporters that the variables name."""
    return [_otlp(environ) if name == "otlp" else name for name in dict.fromkeys(_written(environ) or ["otlp"])]


def _otlp(environ: Mapping[str, str]) -> str:
    """The entry point of OTLP over the protocol that the variables name."""
    protocol = next((environ[name].strip() for name in _PROTOCOLS if environ.get(name)), "http/protobuf")
    return _OTLP.get(protocol, protocol)


def _exporter(name: str) -> Callable[[], Any]:
    (found, *_) = entry_points(group=_GROUP, name=name)
    made: Callable[[], Any] = found.load()
    return made
