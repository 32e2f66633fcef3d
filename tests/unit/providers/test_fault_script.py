"""The script: which call meets which fault, limits that count, and YAML that explains its mistakes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router_providers.fault import Fault, Script, load_script, lognormal, uniform
from smart_model_router_providers.fault.effects import Fate, Plain, Status
from smart_model_router_providers.fault.limits import go_duration
from smart_model_router_providers.fault.script import FAULTS, RunningScript, ScriptDecision

EPOCH = 1_763_683_200.0  # 2025-11-21T00:00:00Z


class World:
    """A running script with the clock in hand."""

    def __init__(self, script: Script, *, seed: int = 0) -> None:
        self.now = 100.0
        self.in_flight = 1
        self.script = RunningScript(script, seed=seed, now=self.now, wall=lambda: EPOCH + self.now - 100.0)

    def decide(self, key: str = "k", model: str = "m", *, after: float = 0.0, tokens: int = 10) -> ScriptDecision:
        self.now += after
        return self.script.decide(key, model, tokens, lambda _: self.in_flight, self.now)

    def effect(self, key: str = "k", model: str = "m", *, after: float = 0.0) -> Fate | None:
        return self.decide(key, model, after=after).effect

    def status(self, *, after: float = 0.0, key: str = "k", tokens: int = 10) -> int | None:
        effect = self.decide(key, after=after, tokens=tokens).effect
        return effect.code if isinstance(effect, Status) else None

    def headers(self, *, after: float = 0.0, tokens: int = 10) -> dict[str, str]:
        decision = self.decide(after=after, tokens=tokens)
        refused = decision.effect.headers if isinstance(decision.effect, Status) else ()
        return dict(decision.headers + refused)


def test_no_script_means_a_healthy_provider() -> None:
    """Without a script nothing ever goes wrong."""
    world = World(None)
    assert [world.effect() for _ in range(3)] == [None, None, None]


def test_faults_take_their_calls_in_order_of_arrival() -> None:
    """Each fault takes as many calls as its `times` says; then the next one; then all is well."""
    world = World([Fault.status(500, times=2), Fault.status(429, times=1)])
    assert [world.status() for _ in range(5)] == [500, 500, 429, None, None]


def test_without_times_a_fault_takes_every_call_from_then_on() -> None:
    """`times` left out means for ever."""
    world = World([Fault.status(429, times=1), Fault.status(500)])
    assert [world.status() for _ in range(4)] == [429, 500, 500, 500]


def test_a_window_of_time_bounds_a_fault() -> None:
    """Between `start` (inclusive) and `stop` (exclusive), counted from when the script was given."""
    world = World([Fault.status(503, start=10, stop=20)])
    assert [world.status(), world.status(after=10), world.status(after=9), world.status(after=1)] == [
        None,
        503,
        503,
        None,
    ]


def test_a_standing_delay_goes_with_what_follows() -> None:
    """A delay without `times` slows a call and lets the next fault decide it."""
    decision = World([Fault.delay(first=2), Fault.delay(each=0.1), Fault.status(500)]).decide()
    assert len(decision.delays) == 2
    assert isinstance(decision.effect, Status)


def test_a_counted_delay_is_the_fate_of_its_call() -> None:
    """A delay with `times` takes its calls alone; the call answers well, and the next call meets the next fault."""
    world = World([Fault.delay(first=2, times=1), Fault.status(500, times=1)])
    first, second = world.decide(), world.decide()
    assert (first.effect, len(first.delays)) == (None, 1)
    assert (second.effect, second.delays) == (Status(500), ())


def test_a_mapping_is_read_by_key_then_model_then_star() -> None:
    """A call follows the list of its API key, else of its model, else `*`; each list counts for itself."""
    world = World({"k1": [Fault.status(401)], "big": [Fault.reset()], "*": [Fault.hang()]})
    assert isinstance(world.effect("k1", "big"), Status)
    assert world.effect("k2", "big") is Plain.RESET
    assert world.effect("k2", "small") is Plain.HANG


def test_a_mapping_leaves_everybody_else_alone() -> None:
    """Without `*` a call that no list names is answered well."""
    assert World({"k1": [Fault.status(500)]}).effect("k2") is None


def test_a_brownout_fails_its_share_and_repeats_with_the_seed() -> None:
    """About 30 % fail; the same seed fails the same calls, another seed others."""
    one, same, other = (World([Fault.brownout(0.3)], seed=seed) for seed in (1, 1, 2))
    fates = [one.status() for _ in range(1000)]
    assert 250 < fates.count(503) < 350
    assert [same.status() for _ in range(1000)] == fates
    assert [other.status() for _ in range(1000)] != fates


def test_a_brownout_may_be_of_latency() -> None:
    """With `latency` the share is slow instead of failing."""
    world = World([Fault.brownout(0.5, latency=3)])
    decisions = [world.decide() for _ in range(200)]
    assert {decision.effect for decision in decisions} == {None}
    assert 70 < sum(bool(decision.delays) for decision in decisions) < 130


def test_latencies_follow_their_distribution() -> None:
    """Uniform stays within its bounds and reaches both ends; half of lognormal is below its median."""
    chance = Random(7)
    even = [uniform(1, 2).draw(chance) for _ in range(2000)]
    skewed = [lognormal(2, 0.5).draw(chance) for _ in range(2000)]
    assert 1 <= min(even) < 1.05
    assert 1.95 < max(even) <= 2
    assert 900 < sum(draw < 2 for draw in skewed) < 1100
    assert max(skewed) > 5


def test_a_continuous_limit_refills_all_the_time() -> None:
    """30 a minute: 30 at once, the 31st is told 2 s, and exactly then one more is admitted."""
    world = World([Fault.limit(rpm=30)])
    assert [world.status() for _ in range(31)] == [None] * 30 + [429]
    assert world.headers()["retry-after"] == "2"
    assert [world.status(after=2), world.status()] == [None, 429]


def test_a_refused_call_costs_nothing() -> None:
    """Knocking while refused does not postpone the admission."""
    world = World([Fault.limit(rpm=60)])
    [world.status() for _ in range(60)]
    knocks = [world.status(after=0.25) for _ in range(4)]
    assert knocks == [429, 429, 429, None]


def test_a_window_limit_starts_again_at_its_edge() -> None:
    """2 in every 60 s since the script was given, however late in the window they come."""
    world = World([Fault.limit(rpm=2, kind="window")])
    assert [world.status(after=50), world.status(), world.status()] == [None, None, 429]
    assert world.headers()["retry-after"] == "10"
    assert [world.status(after=10), world.status(), world.status()] == [None, None, 429]


def test_limits_count_for_each_api_key() -> None:
    """One key's calls leave another key's limit alone."""
    world = World([Fault.limit(rpm=1)])
    assert [world.status(key="a"), world.status(key="a"), world.status(key="b")] == [None, 429, None]


def test_tokens_are_limited_too() -> None:
    """100 tokens a minute admit one call of 80, and the next after the 36 s that 60 tokens need."""
    world = World([Fault.limit(tpm=100)])
    assert [world.status(tokens=80), world.status(tokens=80)] == [None, 429]
    assert world.headers(tokens=80)["retry-after"] == "36"
    assert world.status(tokens=80, after=36) is None


def test_a_call_above_the_whole_limit_passes_when_the_bucket_is_full() -> None:
    """A call larger than the limit takes all there is, rather than being refused for ever."""
    world = World([Fault.limit(tpm=100)])
    assert [world.status(tokens=500), world.status(tokens=1)] == [None, 429]


def test_openai_headers_come_with_every_answer() -> None:
    """Limit, remaining and time until full, as ints and Go durations, on good answers as on a 429."""
    world = World([Fault.limit(rpm=2)])
    good, _, refused = world.headers(), world.headers(), world.headers()
    assert good == {
        "x-ratelimit-limit-requests": "2",
        "x-ratelimit-remaining-requests": "1",
        "x-ratelimit-reset-requests": "30s",
    }
    assert refused == {
        "retry-after": "30",
        "retry-after-ms": "30000",
        "x-ratelimit-limit-requests": "2",
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": "1m0s",
    }


def test_anthropic_headers_tell_the_date() -> None:
    """The reset is an RFC 3339 instant of the wall clock."""
    world = World([Fault.limit(rpm=2, headers="anthropic")])
    assert world.headers() == {
        "anthropic-ratelimit-requests-limit": "2",
        "anthropic-ratelimit-requests-remaining": "1",
        "anthropic-ratelimit-requests-reset": "2025-11-21T00:00:30Z",
    }


@pytest.mark.parametrize(("style", "said"), [("plain", {"retry-after": "60"}), ("none", {})])
def test_terse_providers_say_little(style: Any, said: dict[str, str]) -> None:
    """Plain says Retry-After and nothing else; none says nothing at all."""
    world = World([Fault.limit(rpm=1, headers=style)])
    assert [world.headers(), world.headers()] == [{}, said]


def test_a_concurrency_limit_counts_the_calls_in_flight() -> None:
    """The call that makes it more than the limit is refused, with Retry-After: 0."""
    world = World([Fault.concurrency(2)])
    world.in_flight = 2
    assert world.headers() == {}
    world.in_flight = 3
    assert world.headers() == {"retry-after": "0"}


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.0, "0ms"), (0.12, "120ms"), (8.64, "8.64s"), (60, "1m0s"), (86.4, "1m26.4s"), (3723, "1h2m3s")],
)
def test_durations_are_written_as_go_writes_them(seconds: float, said: str) -> None:
    """The forms that OpenAI's reset headers take."""
    assert go_duration(seconds) == said


NONSENSE: list[tuple[Callable[..., object], dict[str, object], str]] = [
    (Fault.status, {"code": 99}, "status.code"),
    (Fault.status, {"code": 600}, "status.code"),
    (Fault.status, {"code": True}, "status.code"),
    (Fault.status, {"code": 429, "headers": {"retry-after": "3\r\nx: y"}}, "status.headers.retry-after"),
    (Fault.status, {"code": 429, "headers": "retry-after: 3"}, "status.headers"),
    (Fault.status, {"code": 429, "body": 7}, "status.body"),
    (Fault.status, {"code": 429, "times": 0}, "status.times"),
    (Fault.status, {"code": 429, "start": 5, "stop": 5}, "status.stop"),
    (Fault.status, {"code": 500, "tiems": 1}, "status.tiems"),
    (Fault.delay, {"first": -1}, "delay.first"),
    (Fault.delay, {"first": float("nan")}, "delay.first"),
    (Fault.delay, {}, "delay"),
    (Fault.stall, {"after": -1}, "stall.after"),
    (Fault.stall, {"comments": "loud"}, "stall.comments"),
    (Fault.cut, {"at_byte": -1}, "cut.at_byte"),
    (Fault.cut, {"reset": "yes"}, "cut.reset"),
    (Fault.empty, {"what": "soul"}, "empty.what"),
    (Fault.limit, {}, "limit"),
    (Fault.limit, {"rpm": 0}, "limit.rpm"),
    (Fault.limit, {"rpm": 1, "kind": "daily"}, "limit.kind"),
    (Fault.limit, {"rpm": 1, "headers": "acme"}, "limit.headers"),
    (Fault.brownout, {"probability": 1.5}, "brownout.probability"),
    (Fault.concurrency, {"calls": 0}, "concurrency.calls"),
    (Fault.down, {"start": 10, "stop": 5}, "down.stop"),
    (uniform, {"low": 2, "high": 1}, "uniform.high"),
]


@pytest.mark.parametrize(("make", "figures", "key"), NONSENSE, ids=[f"{key}-{said}" for _, said, key in NONSENSE])
def test_nonsense_is_refused_by_name(make: Callable[..., object], figures: dict[str, object], key: str) -> None:
    """A figure that makes no sense is refused when the fault is made, with its name."""
    with pytest.raises(ConfigurationError) as caught:
        make(**figures)
    assert caught.value.key == key


def test_a_fault_that_can_never_happen_is_refused() -> None:
    """What stands below a fault that takes every call is a mistake, and said to be one."""
    with pytest.raises(ConfigurationError, match=r"script\[1\].*can never happen.*`times`"):
        World([Fault.status(500), Fault.status(429)])


def test_yaml_and_code_give_the_same_script() -> None:
    """Every way to write a fault means what the same words mean in code."""
    text = """
    - status: {code: 429, headers: {retry-after: 3}, times: 1}
    - status: 500
      # the next one has its figures in order
    - down: [10, 20]
    - delay: {first: {uniform: [1, 2]}, each: {lognormal: [0.1, 0.5]}}
    - limit: {rpm: 30, kind: window}
    - html
    """
    with pytest.raises(ConfigurationError, match=r"script\[2\].*can never happen"):
        load_script(text)
    assert load_script(text.replace("status: 500", "status: {code: 500, times: 2}")) == [
        Fault.status(429, headers={"retry-after": "3"}, times=1),
        Fault.status(500, times=2),
        Fault.down(10, 20),
        Fault.delay(first=uniform(1, 2), each=lognormal(0.1, 0.5)),
        Fault.limit(rpm=30, kind="window"),
        Fault.html(),
    ]


def test_yaml_maps_keys_to_lists(tmp_path: Path) -> None:
    """A file may have a list for each API key or model."""
    file = tmp_path / "faults.yaml"
    file.write_text("big:\n  - cut: {after: 5}\n'*': [reset]\n", encoding="utf-8")
    assert load_script(file) == {"big": [Fault.cut(after=5)], "*": [Fault.reset()]}
    assert load_script(str(file)) == load_script(file)


def test_an_empty_script_is_healthy() -> None:
    """A file with nothing in it is no mistake."""
    assert load_script("# nothing\n") is None


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_can_be_written_in_yaml(name: str) -> None:
    """The loader knows every constructor; one without its needed figures says so by name."""
    figures: dict[str, Any] = {"status": 500, "delay": 1, "slow_first_token": 1, "brownout": 0.5}
    figures |= {"limit": 30, "concurrency": 1, "reply": "hello"}
    written = f"- {name}: {figures[name]}" if name in figures else f"- {name}"
    script = load_script(written)
    assert isinstance(script, list)
    assert script == [FAULTS[name](*([figures[name]] if name in figures else []))]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("- reply", r"reply: missing - text or tool_calls is needed"),
        ("- reply: 5", r"reply.text: 5 - text is needed"),
        ("- reply: {tool_calls: f}", r"reply.tool_calls: 'f' - a list of calls is needed"),
        ("- reply: {tool_calls: [f]}", r"reply.tool_calls\[0\]: 'f' - a mapping of"),
        ("- reply: {tool_calls: [{name: f, args: 1}]}", r"reply.tool_calls\[0\]: .* - a mapping of"),
        ("- reply: {tool_calls: [{name: f, arguments: 1}]}", r"tool_calls\[0\].arguments: 1 - an object, or text"),
        ("- statsu: 500", r"script\[0\].statsu: 500 - no such fault; did you mean status\?"),
        ("- status: {cod: 500}", r"script\[0\].status.cod: 500 - no such figure; did you mean code\?"),
        ("- status: {code: 500, tims: 1}", r"script\[0\].status.tims: 1 - no such figure; did you mean times\?"),
        ("- status: {code: 5000}", r"script\[0\].status.code: 5000 - an HTTP status from 200 to 599"),
        ("- status", r"script\[0\].status: missing - not all figures are there: code"),
        ("- down: [1, 2, 3]", r"script\[0\].down: \[1, 2, 3\] - at most 2 figures: start, stop"),
        ("- {status: 500, times: 1}", r"script\[0\]: .* one fault is needed"),
        ("- 7", r"script\[0\]: 7 - one fault is needed"),
        ("big: {status: 500}", r"big: .* a list of faults is needed"),
        ("big:\n- delay: {first: 2s}", r"big\[0\].delay.first: '2s' - a number of at least 0"),
        ("- delay: {first: {uniform: 3}}", r"script\[0\].delay.first.uniform: 3 - a list of two numbers"),
        ("- delay: {first: {uniform: [a, b]}}", r"script\[0\].delay.first.uniform.low: 'a' - a number"),
        ("- [", r"script: .* no YAML"),
        ("no-such-file.yaml", r"script: 'no-such-file.yaml' - a readable file or YAML text is needed"),
    ],
)
def test_a_mistake_in_yaml_is_explained(text: str, complaint: str) -> None:
    """The place, the value and what would be right, with a guess where a word was nearly right."""
    with pytest.raises(ConfigurationError, match=complaint):
        load_script(text)
