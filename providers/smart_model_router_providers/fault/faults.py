"""The vocabulary of faults: what goes wrong, how often and when. script.py decides, steps.py acts."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypedDict, get_args

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router_providers.fault.effects import (
    BadJson,
    Body,
    Concurrency,
    Cut,
    Delay,
    Effect,
    Empty,
    ErrorEvent,
    Headers,
    Latency,
    Limit,
    LimitKind,
    LimitStyle,
    Nothing,
    Plain,
    Seconds,
    Stall,
    Status,
)
from smart_model_router_providers.fault.parsed_request import Reply, ToolCall

if TYPE_CHECKING:
    from typing import Unpack


class When(TypedDict, total=False):
    """The number and the times of a fault; every kind of fault but `down` takes these.

    `times`: how many calls it takes (None: every one from then on). `start`, `stop`: only between these
    seconds since the script was given. `probability`: only for this share of the calls, by the seed.
    """

    times: int | None
    start: float
    stop: float | None
    probability: float


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that goes wrong. Build it with the methods below; a script is a list of them.

    A list is read from the top for every call. A fault that is used up (`times`), not due (`start`, `stop`),
    spared by chance (`probability`) or not exceeded (`limit`, `concurrency`) is passed over. A delay without
    `times` slows the call, a `reply` says what it is answered, and reading goes on. Any other fault decides the
    call and reading ends; a call that no fault decides is answered well. `after` counts pieces of content (text,
    calls of functions), whatever opens the stream in that dialect; an answer with fewer pieces is hit after its
    last one.
    """

    effect: Effect
    times: int | None = None
    start: float = 0.0
    stop: float | None = None
    probability: float = 1.0

    @staticmethod
    def status(
        code: int, headers: Mapping[str, str] | None = None, body: Body | None = None, **when: Unpack[When]
    ) -> Fault:
        """Answer with `code` (200-599), these headers and this body (default: the dialect's own error)."""
        effect = Status(_status("status.code", code), _headers("status.headers", headers), _body("status.body", body))
        return _fault("status", effect, when)

    @staticmethod
    def error_body(body: Body | None = None, **when: Unpack[When]) -> Fault:
        """Answer 200 with an error (default: the dialect's own) as the JSON body."""
        return _fault("error_body", Status(200, (), _body("error_body.body", body)), when)

    @staticmethod
    def html(**when: Unpack[When]) -> Fault:
        """Answer 200 with a web page, as captive portals and misconfigured proxies do."""
        page = b"<!doctype html><html><body><h1>Welcome</h1></body></html>"
        return _fault("html", Status(200, (("content-type", "text/html; charset=utf-8"),), page), when)

    @staticmethod
    def wrong_json(**when: Unpack[When]) -> Fault:
        """Answer 200 with JSON of no dialect."""
        return _fault("wrong_json", Status(200, (), b'{"hello":"world"}'), when)

    @staticmethod
    def delay(first: Seconds | None = None, each: Seconds | None = None, **when: Unpack[When]) -> Fault:
        """Wait `first` seconds before the head, and `each` between the events of a stream."""
        if first is None and each is None:
            raise ConfigurationError("delay", None, "first or each is needed, in seconds")
        effect = Delay(first=_latency("delay.first", first), each=_latency("delay.each", each))
        return _fault("delay", effect, when)

    @staticmethod
    def slow_first_token(seconds: Seconds, **when: Unpack[When]) -> Fault:
        """Send the head at once and the first content after `seconds`."""
        return _fault("slow_first_token", Delay(token=_latency("slow_first_token.seconds", seconds)), when)

    @staticmethod
    def stall(
        after: int = 0,
        comments: bool | Literal["pings"] = False,
        every: float = 1.0,
        seconds: float | None = None,
        **when: Unpack[When],
    ) -> Fault:
        """Fall silent after `after` pieces of content, for `seconds` (None: until the client leaves).

        With `comments` an SSE comment comes `every` so many seconds; with "pings" the dialect's own ping
        where it has one. A whole answer stalls half-way through its body, silently.
        """
        if comments is not True and comments is not False and comments != "pings":
            raise ConfigurationError("stall.comments", comments, 'true, false or "pings"')
        effect = Stall(
            _count("stall.after", after),
            comments,
            _number("stall.every", every, above=0.0),
            None if seconds is None else _number("stall.seconds", seconds),
        )
        return _fault("stall", effect, when)

    @staticmethod
    def cut(
        after: int = 0,
        at_byte: int | None = None,
        reset: bool = False,
        **when: Unpack[When],
    ) -> Fault:
        """Close the connection after `after` pieces of content, or after `at_byte` bytes of the body.

        What was sent before arrives, but neither the terminating chunk nor the promised length does. With
        `reset` it is a TCP reset, which may also destroy what was on its way.
        """
        if reset is not True and reset is not False:
            raise ConfigurationError("cut.reset", reset, "true or false")
        byte = None if at_byte is None else _count("cut.at_byte", at_byte)
        return _fault("cut", Cut(_count("cut.after", after), byte, reset), when)

    @staticmethod
    def bad_json(after: int = 0, **when: Unpack[When]) -> Fault:
        """Spoil the piece of content that follows `after` good ones; a whole answer is spoilt half-way."""
        return _fault("bad_json", BadJson(_count("bad_json.after", after)), when)

    @staticmethod
    def error_event(after: int | None = None, body: Body | None = None, **when: Unpack[When]) -> Fault:
        """End a 200 stream with the dialect's error event: at once (None), or after so much content.

        A whole answer has the error as its body.
        """
        count = None if after is None else _count("error_event.after", after)
        return _fault("error_event", ErrorEvent(count, _body("error_event.body", body)), when)

    @staticmethod
    def empty(what: Nothing = "content", **when: Unpack[When]) -> Fault:
        """Answer 200 with no content but every bracket, with no choices at all, or with no body."""
        if what not in get_args(Nothing):
            raise ConfigurationError("empty.what", what, "one of " + ", ".join(get_args(Nothing)))
        return _fault("empty", Empty(what), when)

    @staticmethod
    def no_terminator(**when: Unpack[When]) -> Fault:
        """End a stream cleanly after its content, without finish reason or terminator."""
        return _fault("no_terminator", Plain.NO_TERMINATOR, when)

    @staticmethod
    def json_instead_of_stream(**when: Unpack[When]) -> Fault:
        """Answer a request for a stream with the whole answer as JSON."""
        return _fault("json_instead_of_stream", Plain.JSON_INSTEAD_OF_STREAM, when)

    @staticmethod
    def reset(**when: Unpack[When]) -> Fault:
        """Take the request, then reset the connection before any head."""
        return _fault("reset", Plain.RESET, when)

    @staticmethod
    def hang(**when: Unpack[When]) -> Fault:
        """Take the request and never answer."""
        return _fault("hang", Plain.HANG, when)

    @staticmethod
    def headers_only(**when: Unpack[When]) -> Fault:
        """Send the head of a good answer and then nothing."""
        return _fault("headers_only", Plain.HEADERS_ONLY, when)

    @staticmethod
    def down(start: float = 0.0, stop: float | None = None) -> Fault:
        """Refuse connections from `start` to `stop` seconds (None: for ever) since the script was given.

        Open connections are reset at `start`. In a script for one key the call is reset instead: a
        connection has no key yet.
        """
        return _fault("down", Plain.DOWN, {"start": start, "stop": stop})

    @staticmethod
    def brownout(
        probability: float,
        status: int = 503,
        latency: Seconds | None = None,
        start: float = 0.0,
        stop: float | None = None,
    ) -> Fault:
        """Fail this share (0 to 1) of the calls with `status`, or only slow them by `latency` seconds."""
        effect = (
            Status(_status("brownout.status", status))
            if latency is None
            else Delay(first=_latency("brownout.latency", latency))
        )
        return _fault("brownout", effect, {"probability": probability, "start": start, "stop": stop})

    @staticmethod
    def limit(
        rpm: float | None = None,
        tpm: float | None = None,
        kind: LimitKind = "continuous",
        window: float = 60.0,
        headers: LimitStyle = "openai",
        burst: float | None = None,
        **when: Unpack[When],
    ) -> Fault:
        """Admit `rpm` requests and `tpm` tokens a `window` (seconds) for each API key; answer 429 beyond.

        continuous: a token bucket, full at first; it holds `burst` requests and tokens (None: all of `rpm` and
        `tpm`). window: counts that start again every `window` seconds since the script was given (mistral: when
        the minute of the wall clock does). `headers` says whose rate-limit headers are sent; plain: only
        Retry-After on a 429; none: not even that. A refused call costs nothing.
        """
        if rpm is None and tpm is None:
            raise ConfigurationError("limit", None, "rpm or tpm is needed")
        if kind not in get_args(LimitKind):
            raise ConfigurationError("limit.kind", kind, "one of " + ", ".join(get_args(LimitKind)))
        if headers not in get_args(LimitStyle):
            raise ConfigurationError("limit.headers", headers, "one of " + ", ".join(get_args(LimitStyle)))
        effect = Limit(
            None if rpm is None else _number("limit.rpm", rpm, least=1.0),
            None if tpm is None else _number("limit.tpm", tpm, least=1.0),
            kind,
            _number("limit.window", window, above=0.0),
            headers,
            None if burst is None else _number("limit.burst", burst, least=1.0),
        )
        return _fault("limit", effect, when)

    @staticmethod
    def reply(text: str | None = None, tool_calls: Sequence[Mapping[str, Any]] = (), **when: Unpack[When]) -> Fault:
        """Answer well with `text`, with calls of functions, or with both; reading goes on below it.

        A call is `{"name": ..., "arguments": ...}`; arguments are an object, or text that goes out as it is. Several
        calls are parallel ones. Faults below it hit these answers: `cut(after=2)` cuts them after two pieces.
        """
        if text is None and not tool_calls:
            raise ConfigurationError("reply", None, "text or tool_calls is needed")
        if text is not None and not isinstance(text, str):
            raise ConfigurationError("reply.text", text, "text is needed")
        if isinstance(tool_calls, (str, bytes, Mapping)) or not isinstance(tool_calls, Sequence):
            raise ConfigurationError("reply.tool_calls", tool_calls, "a list of calls is needed")
        calls = tuple(_tool_call(f"reply.tool_calls[{number}]", call) for number, call in enumerate(tool_calls))
        return _fault("reply", Reply(text, calls), when)

    @staticmethod
    def concurrency(calls: int, headers: Mapping[str, str] | None = None, **when: Unpack[When]) -> Fault:
        """Answer 429 while `calls` (>= 1) calls of the same API key are in flight; default Retry-After: 0."""
        said = _headers("concurrency.headers", {"retry-after": "0"} if headers is None else headers)
        return _fault("concurrency", Concurrency(_count("concurrency.calls", calls, least=1), said), when)

    @property
    def standing(self) -> bool:
        """True when the entries below it are read although it applies."""
        return isinstance(self.effect, (Limit, Concurrency, Reply)) or (
            isinstance(self.effect, Delay) and self.times is None
        )

    @property
    def decides_every_call(self) -> bool:
        """True when no call can ever get past it."""
        sure = self.times is None and self.start <= 0 and self.stop is None and self.probability >= 1
        return sure and not self.standing

    def due(self, elapsed: float) -> bool:
        """True when it is in force `elapsed` seconds into the script."""
        return self.start <= elapsed and (self.stop is None or elapsed < self.stop)


def uniform(low: float, high: float) -> Latency:
    """Anything from `low` to `high` seconds (0 <= low <= high) is equally likely."""
    _number("uniform.low", low)
    return Latency("uniform", low, _number("uniform.high", high, least=low))


def lognormal(median: float, sigma: float) -> Latency:
    """Half the draws are below `median` seconds (>= 0); `sigma` (>= 0) is the spread of the logarithm."""
    return Latency("lognormal", _number("lognormal.median", median), _number("lognormal.sigma", sigma))


def _fault(name: str, effect: Effect, when: When) -> Fault:
    for key, value in when.items():
        if key not in When.__annotations__:
            raise ConfigurationError(f"{name}.{key}", value, "no option of this fault")
    times, start, stop = when.get("times"), when.get("start", 0.0), when.get("stop")
    return Fault(
        effect,
        times=None if times is None else _count(f"{name}.times", times, least=1),
        start=_number(f"{name}.start", start),
        stop=None if stop is None else _number(f"{name}.stop", stop, above=start),
        probability=_number(f"{name}.probability", when.get("probability", 1.0), most=1.0),
    )


def _number(
    key: str, value: object, *, least: float = 0.0, above: float | None = None, most: float = math.inf
) -> float:
    low = f"above {above:g}" if above is not None else f"of at least {least:g}"
    expected = f"a number {low}" + (f" and at most {most:g}" if most < math.inf else "")
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ConfigurationError(key, value, expected)
    if (value <= above if above is not None else value < least) or value > most:
        raise ConfigurationError(key, value, expected)
    return value


def _count(key: str, value: object, *, least: int = 0) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigurationError(key, value, f"a whole number of at least {least}")
    return value


def _status(key: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 200 <= value <= 599:
        raise ConfigurationError(key, value, "an HTTP status from 200 to 599")
    return value


def _latency(key: str, value: object) -> Latency | None:
    if value is None or isinstance(value, Latency):
        return value
    return Latency("fixed", _number(key, value))


def _headers(key: str, value: object) -> Headers:
    if value is None:
        return ()
    if not isinstance(value, Mapping):
        raise ConfigurationError(key, value, "a mapping of header names to values")
    found: list[tuple[str, str]] = []
    for name, text in value.items():
        said = str(text) if isinstance(text, (int, float)) and not isinstance(text, bool) else text
        if not isinstance(name, str) or not isinstance(said, str) or any(c in name + said for c in "\r\n\0"):
            raise ConfigurationError(f"{key}.{name}", text, "a header name and value on one line of text")
        found.append((name.lower(), said))
    return tuple(found)


def _tool_call(key: str, call: object) -> ToolCall:
    given = call if isinstance(call, Mapping) else {}
    name, arguments = given.get("name"), given.get("arguments", {})
    if not isinstance(name, str) or not name or given.keys() - {"name", "arguments"}:
        raise ConfigurationError(key, call, 'a mapping of "name" and "arguments" is needed')
    if isinstance(arguments, Mapping):
        return ToolCall(name, json.dumps(arguments, separators=(",", ":")))
    if not isinstance(arguments, str):
        raise ConfigurationError(f"{key}.arguments", arguments, "an object, or text that goes out as it is")
    return ToolCall(name, arguments)


def _body(key: str, value: object) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, Mapping):
        return json.dumps(value, separators=(",", ":")).encode()
    raise ConfigurationError(key, value, "text, bytes or a mapping")
