"""The admission of a request that passes through: the targets its caller lets serve, the waits, and the refusals."""

from __future__ import annotations

from dataclasses import dataclass, field

from smart_model_router.core.fallback import least_retry_after
from smart_model_router.core.final_error import UNPRICED
from smart_model_router.core.gate import Gate
from smart_model_router.core.lease import Lease
from smart_model_router.core.passthrough_rules import Route, RouteTarget
from smart_model_router.domain.errors import AllTargetsFailed, InvalidRequest, NotFound, Overloaded, UnsupportedFeature
from smart_model_router.domain.events import RequestShed, TargetRefused
from smart_model_router.domain.outcome import FailureClass, Refusal
from smart_model_router.domain.ports import PassedCall
from smart_model_router.domain.report import ReportedRefusal, RouteReport
from smart_model_router.domain.request import RequestOptions
from smart_model_router.flow.clock import Watchdog
from smart_model_router.flow.guard import admit_one
from smart_model_router.flow.state import RouterState

_LACKS = frozenset({FailureClass.MISCONFIGURED, FailureClass.MODEL_GONE})


@dataclass(slots=True)
class PassageAdmission:
    """Admits one request on a route, and tells its report of each refusal once. `deadline` is monotonic."""

    state: RouterState
    route: Route
    call: PassedCall
    options: RequestOptions
    report: RouteReport
    deadline: float
    watchdog: Watchdog
    _refused: set[tuple[str, str]] = field(default_factory=set)

    def asked(self) -> list[RouteTarget]:
        """The targets that the caller lets serve. Raises InvalidRequest, UnsupportedFeature."""
        options, named, targets = self.options, self.options.get("target"), self.route.targets
        ids = ", ".join(target.id for target in targets)
        spends = options.get("priced") or options.get("max_cost") is not None
        if spends and self.state.routing.unpriced != "allow":
            raise UnsupportedFeature(f"no target of {self.route.name!r} can serve this request: {ids}{UNPRICED}")
        asked = [target for target in targets if named in (None, target.id)]
        if not asked:
            raise InvalidRequest(f"target: {str(named)[:100]!r} is no target of {self.route.name!r}; there are {ids}")
        return asked

    def check_shed(self) -> None:
        """Raise Overloaded for a request that is shed now."""
        state, now = self.state, self.state.clock.now()
        criticality = self.options.get("criticality", "critical")
        if not state.shedding.active:
            return
        state.update_shedding(now)
        if state.shedding.sheds(criticality):
            after = (state.fleet.least_remaining(now) or 0.0) + state.shedding.calm
            request_id = self.report.request_id
            state.emit(RequestShed(at=now, request_id=request_id, criticality=criticality, retry_after=after))
            told = f"shedding: more than half of the providers are open and the request is {criticality}"
            raise Overloaded(told, retry_after=after)

    async def admitted(self, left: list[RouteTarget]) -> tuple[RouteTarget, Gate, Lease]:
        """The first of these targets that admits the call; they are waited for. Raises RouterUnavailable, NotFound."""
        state = self.state
        most = state.timeouts.total if state.routing.max_wait is None else state.routing.max_wait
        until = min(self.deadline, state.clock.now() + most)
        while True:
            now = state.clock.now()
            waits = {target.id: wait for target in left if (wait := self._wait_beside(target, now)) is not None}
            free = {target.id: target for target in left if target.id not in waits}
            for target, wait in waits.items():
                self._tell(target, wait, now)
            if free:
                try:
                    gates = [state.fleet.gates[target] for target in free]
                    gate, lease = await admit_one(state, gates, until, lambda gate, no, at: self._tell(gate.id, no, at))
                except AllTargetsFailed as error:
                    raise self._lacking() or error from None
                finally:
                    self.report.waited_seconds += state.clock.now() - now
                return free[gate.id], gate, lease
            due = min(wait.retry_at or now for wait in waits.values())
            if due > until or state.closed:
                after = least_retry_after(waits.values(), now)
                raise AllTargetsFailed(f"{', '.join(waits)}: refused, wait", retry_after=after)
            await self.watchdog.sleep(due)
            self.report.waited_seconds += state.clock.now() - now

    def _wait_beside(self, target: RouteTarget, now: float) -> Refusal | None:
        """The wait that the target of this name was told on another path: it is this path's as well."""
        gate = self.state.fleet.gates.get(target.beside)
        if gate is None or gate.cooldown.cause(now) is not FailureClass.RATE_LIMITED:
            return None
        return gate.cooldown.law(now)

    def _tell(self, target: str, refusal: Refusal, now: float) -> None:
        """Report a refusal, once per target and reason."""
        if (target, refusal.reason) in self._refused:
            return
        self._refused.add((target, refusal.reason))
        after = None if refusal.retry_at is None else max(0.0, refusal.retry_at - now)
        self.report.refusals.append(ReportedRefusal(target, refusal.reason, after))
        request_id = self.report.request_id
        event = TargetRefused(at=now, request_id=request_id, target=target, reason=refusal.reason, retry_after=after)
        self.state.emit(event)

    def _lacking(self) -> NotFound | None:
        """The 404 where each target of the route is off because it lacks the path; None where another reason is."""
        state, now = self.state, self.state.clock.now()
        told = []
        for target in self.route.targets:
            gate = state.fleet.gates[target.id]
            law = gate.cooldown.law(now)
            if law is None or law.reason != "off" or gate.cooldown.cause(now) not in _LACKS:
                return None
            told.append(f"{target.id} (asked again in {(law.retry_at or now) - now:.0f} s)")
        if self.report.attempts:
            return None
        wanted = "name a provider that has it in gateway.passthrough.routes"
        return NotFound(f"{self.call.path} was not found at {', '.join(told)}; {wanted}")
