"""The section `gateway`: the address of `smr serve`, the keys of its callers, and its limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from smart_model_router.config.secret import Secret
from smart_model_router.core.checked_options import Count, Interval, Options, Seconds, SecondsOrZero, Unit
from smart_model_router.domain.request import Criticality


@dataclass(frozen=True, kw_only=True)
class GatewayKeyConfig(Options):
    """One virtual key that a client of the gateway shows, with its permissions and limits.

    Either `key` or `sha256` (64 hexadecimal digits of the key's hash) is needed. `models` are public names, `*`
    standing for any text; none is all. `rpm` and `tpm` are a minute's, `usd_per_day` is of 24 hours from its first use;
    with shared state (`store`) they are those of all processes of the host together. `criticality` is the most a client
    may ask for; a request that names none has `critical`, or this if it is less. An `admin` may also enable and
    isolate targets.
    """

    key: Secret | None = None
    sha256: str | None = None
    models: tuple[str, ...] = ()
    rpm: Count | None = None
    tpm: Count | None = None
    usd_per_day: Annotated[float, Interval(gt=0, le=1_000_000)] | None = None
    criticality: Criticality = "critical"
    admin: bool = False


@dataclass(frozen=True, kw_only=True)
class PassthroughConfig(Options):
    """Paths beside the dialects, whose requests and answers pass through as they come. Durations are seconds.

    `routes` are paths (`/v1/moderations`, `/v1/rerank`, those below `/v1/audio/` and `/v1/images/`, `*` as the last
    segment standing for any), each with its servers, in order: providers, or `provider/model`, which shares its rate
    limits with the target of that name and names Azure's deployment. A body has at most `max_body` bytes. A call ends
    when its provider neither takes nor sends anything for `silence`.
    """

    routes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    max_body: Annotated[int, Unit("count"), Interval(ge=1024, le=1_099_511_627_776)] = 1_073_741_824
    silence: Seconds = 300.0


@dataclass(frozen=True, kw_only=True)
class GatewayConfig(Options):
    """The HTTP gateway. Without `keys` it listens on this machine's own addresses only. Durations are seconds.

    A stream's head is held for `hold_head` at most; a silent stream is pinged every `ping`. A request's head must
    be there within `head_timeout`, its body within `body_timeout` more; they have at most so many bytes, and the body
    at most `max_elements` JSON values (counted before it is decoded: commas and opening brackets outside of strings).
    `drain` is how long requests under way may go on after SIGTERM. With `stream_report` streams have a `router` object
    beside their finish reason. Web pages of the origins in `cors` may read answers in a browser; `*` is every page, for
    a gateway with keys. `passthrough` are paths beside the dialects.
    """

    host: str = "127.0.0.1"
    port: Annotated[int, Interval(ge=0, le=65_535)] = 8000
    keys: Mapping[str, GatewayKeyConfig] = field(default_factory=dict)
    hold_head: Seconds = 15.0
    ping: Seconds = 15.0
    head_timeout: Seconds = 10.0
    body_timeout: Seconds = 60.0
    head_bytes: Annotated[int, Unit("count"), Interval(ge=1024, le=16_777_216)] = 65_536
    body_bytes: Annotated[int, Unit("count"), Interval(ge=1024, le=1_073_741_824)] = 33_554_432
    max_elements: Annotated[int, Unit("count"), Interval(ge=1000, le=100_000_000)] = 200_000
    drain: SecondsOrZero = 30.0
    cors: tuple[str, ...] = ()
    stream_report: bool = True
    passthrough: PassthroughConfig = field(default_factory=PassthroughConfig)
