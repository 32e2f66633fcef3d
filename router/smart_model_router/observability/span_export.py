"""The export of spans as OTEL_* variables say, for `smr serve`: in an application the SDK is the application's own.

The SDK reads the variables itself (endpoint, headers, resource, sampler, batches); exporters are found by their entry
points, so each that is installed can be named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import Any

from smart_model_router.config import RouterConfig
from smart_model_router.config.lint import LintEnvironment

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

    The spans that wait are sent when the process ends.
    """
    if _has_sdk() or _fault(environ):
        return False
    from opentelemetry import trace  # noqa: PLC0415 - an extra
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 - as above
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415 - as above

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(_exporter(_named(environ))()))
    trace.set_tracer_provider(provider)
    return True


def _has_sdk() -> bool:
    from opentelemetry import trace  # noqa: PLC0415 - an extra

    return not isinstance(trace.get_tracer_provider(), (trace.ProxyTracerProvider, trace.NoOpTracerProvider))


def _fault(environ: Mapping[str, str]) -> str:
    """The reason why the variables set up no export; "" where they do."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return "OTEL_SDK_DISABLED is true"
    named = environ.get("OTEL_TRACES_EXPORTER", "").strip()
    if named == "none":
        return "OTEL_TRACES_EXPORTER is none"
    if not named and not any(environ.get(name) for name in _ENDPOINTS):
        return "there is no OTEL_EXPORTER_OTLP_ENDPOINT, and no SDK in this process"
    if find_spec("opentelemetry.sdk") is None:
        return f"the OpenTelemetry SDK is not installed: {_EXTRA}"
    if not entry_points(group=_GROUP, name=_named(environ)):
        return f"the exporter {_named(environ)} is not installed"
    return ""


def _named(environ: Mapping[str, str]) -> str:
    """The entry point of the exporter that the variables name."""
    named = environ.get("OTEL_TRACES_EXPORTER", "").partition(",")[0].strip() or "otlp"
    if named != "otlp":
        return named
    protocol = next((environ[name].strip() for name in _PROTOCOLS if environ.get(name)), "http/protobuf")
    return _OTLP.get(protocol, protocol)


def _exporter(name: str) -> Callable[[], Any]:
    (found, *_) = entry_points(group=_GROUP, name=name)
    made: Callable[[], Any] = found.load()
    return made
