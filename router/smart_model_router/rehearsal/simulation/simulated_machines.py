"""Plays machines that share their state on a server, and checks at every step what is promised of them."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from random import Random
from typing import Any, ClassVar

from smart_model_router.coordination import Coordinator, SharedKeys
from smart_model_router.domain.errors import SmartRouterError
from smart_model_router.domain.events import BreakerChanged, Event, StoreChanged
from smart_model_router.domain.outcome import (
    BucketReading,
    Failure,
    FailureClass,
    LimitReading,
    Outcome,
    Success,
)
from smart_model_router.domain.ports import Provider, ProviderCall, ProviderStream
from smart_model_router.domain.shared_state import chunk_of
from smart_model_router.rehearsal.simulation.provider_behaviour import Failing, Healthy, SimulatedProvider, Spell
from smart_model_router.rehearsal.simulation.scenario import MOST_VIOLATIONS, Violation
from smart_model_router.rehearsal.simulation.scenarios.machines import SUDDEN, Front, MachinesSetting, draw_machines
from smart_model_router.rehearsal.simulation.simulated_server import (
    RUNS_ON,
    SNAPSHOT_SECONDS,
    Machine,
    MachinesLoop,
    SimulatedLocks,
    SimulatedServer,
    SimulatedState,
)
from smart_model_router.rehearsal.simulation.workload import BODY
from smart_model_router.router import SmartModelRouter
from smart_model_router.testing import LoopClock

_DEMAND = 8.0
"""Requests for the limited provider, for each that it takes."""
_HEARD = (1.0, 3.25)
"""Seconds after the end of the last front within which all agree.

A question that was lost just before is given up after a second, the next one is asked a second later; what it brings
is told to all within half a second, and a lease that is not used any more is given back after half a second.
"""
_SAME_UNTIL = 0.5
_PROMPT = 2.0
"""Seconds that a request may take: two failing calls, an answer, and the waits for the shared state."""
_OPEN_CAP = 8.0
_ILL_RATE = 2.0
_LOOK = 0.1
_LAST = 15.0
_USED = 0.4
"""The least share of the limit that is used in the last seconds: each process asks, and few tokens are there."""


@dataclass(kw_only=True)
class MachinesReport:
    """The result of a run. `digest` is of every event: the same seed gives the same one."""

    seed: int
    setting: MachinesSetting
    requests: int = 0
    served: int = 0
    probes: int = 0
    limited_calls: int = 0
    violations: list[Violation] = field(default_factory=list)
    log: list[str] = field(default_factory=list)

    @property
    def digest(self) -> str:
        """The first 16 hexadecimal digits of the log's SHA-256."""
        return hashlib.sha256("\n".join(self.log).encode()).hexdigest()[:16]

    def to_dict(self) -> dict[str, Any]:
        """By name, for people and programs."""
        return {
            "seed": self.seed,
            "machines": self.setting.machines,
            "processes": self.setting.processes,
            "requests": self.requests,
            "served": self.served,
            "probes": self.probes,
            "calls at the limited provider": self.limited_calls,
            "log": self.digest,
            "violations": [str(violation) for violation in self.violations],
        }

    def lines(self) -> Iterator[str]:
        """The history for people: the weather, then the log of breakers and of the state's reach, then the verdict."""
        for front in self.setting.fronts:
            where = "every machine" if front.machine is None else f"m{front.machine}"
            until = "" if front.kind in SUDDEN else f" until {front.end:.1f}"
            yield f"{front.start:6.1f} {front.kind} at {where}{until}"
        yield from self.log
        yield from (f"VIOLATED {violation}" for violation in self.violations)
        word = f"{len(self.violations)} violations" if self.violations else "every promise kept"
        yield f"machines --seed {self.seed}: {word}; {self.requests} requests, {self.served} served, log {self.digest}"


def simulate_machines(seed: int, setting: MachinesSetting | None = None) -> MachinesReport:
    """Run machines in the weather that the seed draws, or in this one. The same seed gives the same report."""
    chosen = draw_machines(seed) if setting is None else setting
    with asyncio.Runner(loop_factory=lambda: MachinesLoop(limit=chosen.seconds * 3)) as runner:
        return runner.run(_Run(seed, chosen).play())


@dataclass(eq=False)
class _Process:
    """A process; as a sink it hears its router's events."""

    name: str
    machine: Machine
    run: _Run
    inline: ClassVar[bool] = True
    alone: bool = False
    last_alone: float = -1e9
    last_stopped: float = -1e9
    probes: list[float] = field(default_factory=list)
    """When its probes under way began."""
    reopened: tuple[float, float] = (0.0, 0.0)
    """When its last probe failed, and until when its breaker is open by that."""
    left_open: float | None = None
    """Seconds until the breaker of the ill provider is due, when this process ends; None when it is closed."""
    router: SmartModelRouter = field(init=False)
    coordinator: Coordinator = field(init=False)

    def emit(self, event: Event) -> None:
        """Keep what is of interest."""
        if isinstance(event, StoreChanged):
            self.alone, self.last_alone = event.degraded, event.at
            self.run.note(f"{self.name} {'decides alone: ' + event.reason if event.degraded else 'shares again'}")
        elif isinstance(event, BreakerChanged):
            if event.reason == "probe_failed":
                self.reopened = event.at, event.open_until or event.at
            self.run.note(f"{self.name} {event.owner} {event.from_state} -> {event.to_state} ({event.reason})")

    @property
    def open_until(self) -> float | None:
        """When the breaker of the ill provider is due; None while it is closed."""
        breaker = self.router._state.fleet.gates["ill/m"].breakers["whole"]
        return None if breaker.is_closed else breaker.open_until or 0.0

    def decides_with(self, other: _Process, instant: float) -> bool:
        """True when both are of one machine, and have decided alone since before that instant."""
        alone = self.alone and other.alone and max(self.last_alone, other.last_alone) < instant
        return alone and self.machine is other.machine

    def undisturbed_since(self, instant: float, now: float) -> bool:
        """True when it could ask the others, and ran, all the time."""
        if self.alone or self.machine.stopped:
            return False
        return max(self.last_alone, self.last_stopped) < instant <= now


class _Watched:
    """A provider as one process calls it."""

    def __init__(self, inner: SimulatedProvider, process: _Process) -> None:
        self._inner = inner
        self._process = process

    async def call(self, call: ProviderCall) -> Outcome:
        """Note a probe, and call."""
        process, probing = self._process, self._process.open_until is not None
        began = asyncio.get_running_loop().time()
        if probing:
            process.run.probe_begins(process, began)
        try:
            return await self._inner.call(call)
        finally:
            if probing:
                process.probes.remove(began)

    async def open_stream(self, call: ProviderCall) -> ProviderStream | Failure:
        """As the provider itself."""
        return await self._inner.open_stream(call)

    async def aclose(self) -> None:
        """Nothing to let go of."""


class _Limited:
    """The provider with a limit: it takes every call, and counts those that are too many."""

    def __init__(self, run: _Run, rpm: int, *, headers: bool, processes: int) -> None:
        self._run = run
        self._headers = headers
        self.rpm = rpm
        self.rate = rpm / 60.0
        self.slack = processes * chunk_of(rpm) + self.rate
        self._level = float(rpm)
        self._at = asyncio.get_running_loop().time()
        self.calls: list[float] = []

    async def call(self, call: ProviderCall) -> Outcome:
        """Answer soon, and say what is left if it says that at all."""
        del call
        now = asyncio.get_running_loop().time()
        self._level = min(float(self.rpm), self._level + (now - self._at) * self.rate) - 1.0
        self._at = now
        self.calls.append(now)
        if self._level < -self.slack:
            self._run.violate("limit", f"{-self._level:.0f} calls more than the limit, {self.slack:.0f} may be")
        left = max(0, int(self._level))
        await asyncio.sleep(0.05)
        reset = (self.rpm - left) / self.rate
        reading = (
            LimitReading((BucketReading("requests", self.rpm, left, reset),)) if self._headers else LimitReading(())
        )
        return Success({"choices": [{"message": {"role": "assistant", "content": "4"}}]}, b"{}", reading=reading)

    async def open_stream(self, call: ProviderCall) -> ProviderStream | Failure:
        """Nothing streams here."""
        raise NotImplementedError

    async def aclose(self) -> None:
        """Nothing to let go of."""


class _Run:
    """One run."""

    def __init__(self, seed: int, setting: MachinesSetting) -> None:
        self.report = MachinesReport(seed=seed, setting=setting)
        self._setting = setting
        self._seed = seed

    async def play(self) -> MachinesReport:
        """Play it to its end."""
        setting, loop = self._setting, asyncio.get_running_loop()
        self._began = loop.time()
        self._machines = [Machine(f"m{number}", offset) for number, offset in enumerate(setting.offsets)]
        self._server = SimulatedServer(self._dice("server"))
        spell = Spell("ill", setting.ill_from, setting.ill_until, Failing(FailureClass.SERVER_ERROR, seconds=0.3))
        self._ill = SimulatedProvider(Healthy(0.3), [spell], self._began, self._dice("ill"))
        self._spare = SimulatedProvider(Healthy(0.1), [], self._began, self._dice("spare"))
        count = setting.machines * setting.processes
        self._limited = _Limited(self, setting.rpm, headers=setting.headers, processes=count)
        self._processes = [
            _Process(f"{machine.name}.{number}", machine, self)
            for machine in self._machines
            for number in range(setting.processes)
        ]
        for front in setting.fronts:
            for at in {front.start, front.end}:
                loop.call_at(self._began + at, self._turn, front, context=Context())
        checks = [loop.create_task(check) for check in (self._replicate(), self._allow(), *self._agreements())]
        await asyncio.gather(*(self._task_of(process) for process in self._processes))
        for check in checks:
            check.cancel()
        await asyncio.gather(*checks, return_exceptions=True)
        self._finish()
        return self.report

    def note(self, text: str) -> None:
        """Write a line of the log."""
        self.report.log.append(f"{self._now:10.3f} {text}")

    def violate(self, promise: str, text: str) -> None:
        """Write down that a promise was broken now."""
        if len(self.report.violations) < MOST_VIOLATIONS:
            self.report.violations.append(Violation(promise, self._now, text))

    def probe_begins(self, process: _Process, now: float) -> None:
        """Check that no other probe is under way that this process had to know of, and none of its own."""
        self.report.probes += 1
        for other in self._processes:
            for began in other.probes:
                undisturbed = process.undisturbed_since(began, now) and other.undisturbed_since(began, now)
                lost = self._server.changed_at > began - 3.0
                if other is process or (undisturbed and not lost) or process.decides_with(other, began):
                    self.violate("one probe", f"{process.name} probes beside {other.name}")
            failed_at, open_until = other.reopened
            if other is not process and now < open_until and process.decides_with(other, failed_at):
                self.violate("one probe", f"{process.name} probes, which {other.name} did {now - failed_at:.2f} s ago")
        process.probes.append(now)

    @property
    def _now(self) -> float:
        return asyncio.get_running_loop().time() - self._began

    def _dice(self, name: str) -> Random:
        return Random(f"machines/{self._seed}/{name}")  # noqa: S311 - chance to be repeated, not a secret

    def _task_of(self, process: _Process) -> asyncio.Task[None]:
        context = copy_context()
        context.run(RUNS_ON.set, process.machine)
        return asyncio.get_running_loop().create_task(self._live(process), context=context)

    # A process ----------------------------------------------------------------------------------------------

    async def _live(self, process: _Process) -> None:
        dice = self._dice(process.name)
        await asyncio.sleep(dice.random())
        limited = {} if self._setting.headers else {"rpm": self._setting.rpm}
        tree = {
            "version": 1,
            "providers": {
                name: {"kind": "openai_compatible", "base_url": "http://simulated.invalid/v1", "bulkhead": 1000, **more}
                for name, more in (("limited", limited), ("ill", {}), ("spare", {}))
            },
            "models": {
                name: {"tiers": [{"targets": [f"{name}/m"]}, {"targets": ["spare/m"]}], "last_resort": []}
                for name in ("limited", "ill")
            },
            "routing": {"degrade_after": "1ms", "max_wait": "1s"},
            "resilience": {
                "breaker": {"open": 3, "open_minimum": 1, "open_cap": _OPEN_CAP},
                "cooldown": {"failure": 1, "timeout": 1, "cap": 4},
            },
        }
        providers: dict[str, Provider] = {
            "limited": self._limited,
            "ill": _Watched(self._ill, process),
            "spare": self._spare,
        }
        process.router = router = SmartModelRouter.from_config(
            tree, clock=LoopClock(), seed=dice.randrange(1 << 30), providers=providers, sinks=[process]
        )
        state, shared = router._state, SimulatedState(self._server, process.machine)
        state.here = shared.here
        owners = {name: SharedKeys(name, name, name) for name in state.fleet.gates}
        process.coordinator = state.coordinator = Coordinator(
            state,
            shared,
            owners,
            holder=process.name.strip,
            machine=process.machine.name,
            version="0",
            locks=SimulatedLocks(process.machine),
        )
        rate = _DEMAND * self._limited.rate / len(self._processes)
        await asyncio.gather(
            self._work(process, "limited", rate, self._dice(f"{process.name}/limited")),
            self._work(process, "ill", _ILL_RATE, self._dice(f"{process.name}/ill")),
        )
        if process.open_until is not None:
            process.left_open = process.open_until - asyncio.get_running_loop().time()
        await router.aclose()

    async def _work(self, process: _Process, model: str, rate: float, dice: Random) -> None:
        """Ask at this rate; at the beginning the limit is used up."""
        if model == "limited":
            await asyncio.gather(*(self._ask(process, model) for _ in range(self._limited.rpm // len(self._processes))))
        while self._now < self._setting.seconds:
            await asyncio.sleep(dice.expovariate(rate))
            await self._ask(process, model)

    async def _ask(self, process: _Process, model: str) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        self.report.requests += 1
        try:
            await process.router.chat({**BODY, "model": model})
        except SmartRouterError as error:
            self.violate("served", f"{process.name}: {model}: {error}")
            return
        self.report.served += 1
        if loop.time() - began > _PROMPT and process.last_stopped < began:
            self.violate("prompt", f"{process.name}: {model} took {loop.time() - began:.2f} s")

    # Weather ------------------------------------------------------------------------------------------------

    def _turn(self, front: Front) -> None:
        """Begin or end a front."""
        if front.kind == "flush":
            self._server.flush()
        elif front.kind == "fail over":
            self._server.fail_over(front.figure, front.shift)
        if front.kind in SUDDEN:
            if not self._setting.headers:  # nothing but the rows knew what was used
                self._limited.slack += self._limited.rpm
            return
        for number, machine in enumerate(self._machines):
            fronts = {each.kind: each for each in self._over(number)}
            machine.mute = not fronts.keys().isdisjoint({"away", "cut", "mute"})
            machine.deaf = not fronts.keys().isdisjoint({"away", "cut", "deaf"})
            machine.delay = max((each.figure for each in self._over(number) if each.kind == "slow"), default=0.0)
            machine.loss = max((each.figure for each in self._over(number) if each.kind == "lossy"), default=0.0)
            stops = "stopped" in fronts
            if stops or machine.stopped:
                for process in self._processes:
                    if process.machine is machine:
                        process.last_stopped = asyncio.get_running_loop().time()
            if stops:
                machine.stopped = True
            elif machine.stopped:
                machine.go_on()

    def _over(self, machine: int) -> Iterator[Front]:
        for front in self._setting.fronts:
            lasts = front.kind not in SUDDEN and front.start <= self._now + 1e-6 < front.end
            if lasts and front.machine in (None, machine):
                yield front

    async def _replicate(self) -> None:
        while True:
            await asyncio.sleep(SNAPSHOT_SECONDS)
            self._server.keep_snapshot()

    # Checks -------------------------------------------------------------------------------------------------

    async def _allow(self) -> None:
        """Allow what processes that are cut off take beside those that share the whole limit."""
        while True:
            await asyncio.sleep(_LOOK)
            running = [p for p in self._processes if not p.machine.stopped and hasattr(p, "coordinator")]
            parts = sum(1 / p.coordinator.members.count for p in running if p.alone)
            whole = 1.0 if any(not p.alone for p in running) else 0.0
            self._limited.slack += max(0.0, parts + whole - 1.0) * self._limited.rate * _LOOK

    def _agreements(self) -> Iterator[Any]:
        """A check after the end of each front that no other follows at once."""
        for front in self._setting.fronts:
            calm = front.end, front.end + _HEARD[1]
            if all(other.end <= calm[0] or other.start > calm[1] for other in self._setting.fronts):
                yield self._agree(front)

    async def _agree(self, front: Front) -> None:
        await asyncio.sleep(self._began + front.end + _HEARD[0] - asyncio.get_running_loop().time())
        while not self._agreed:
            if self._now > front.end + _HEARD[1]:
                told = {process.name: process.open_until for process in self._processes}
                self.violate("agree", f"after {front.kind}: {told}")
                return
            await asyncio.sleep(_LOOK / 2)

    @property
    def _agreed(self) -> bool:
        """True when all know the same of the ill provider."""
        untils = [process.open_until for process in self._processes]
        known = [until for until in untils if until is not None]
        if not known:
            return True
        return len(known) == len(untils) and max(known) - min(known) <= _SAME_UNTIL

    def _finish(self) -> None:
        report = self.report
        report.limited_calls = len(self._limited.calls)
        for text in self._server.stale:
            self.violate("fence", text)
        for process in self._processes:
            if process.left_open is not None and not -_PROMPT < process.left_open <= _OPEN_CAP:
                self.violate("returns", f"{process.name} does not use the provider again that has long been well")
            if process.alone:
                self.violate("returns", f"{process.name} still decides alone")
        end = self._began + self._setting.seconds
        late = sum(end - _LAST <= at < end for at in self._limited.calls)
        if self._setting.calm > _LAST and late < _USED * _LAST * self._limited.rate:
            self.violate("used", f"{late} calls in the last {_LAST:g} s, {_LAST * self._limited.rate:.0f} may be")
