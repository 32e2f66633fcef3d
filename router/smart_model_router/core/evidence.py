"""Evidence about one target: is it down, is it ill, what share of its calls does it answer.

Failures and answers take different times, so the order of completion lies after every start, burst and recovery. What
counts is the order of sending: a call that was sent no later than a failing one and is still in flight has outlived the
failure, and so has one that was sent in the same run and answered before the run's first failure came. Pure: instants
are monotonic seconds. Not thread-safe.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator

_NEWEST = 20
"""Outcomes in the success share by which a target is paced (routing.md section 0a, D4)."""
_CELL = 15.0
_CELLS = 60
"""15 minutes of history in cells of 15 s: a target's own share of failures."""
_MINUTE_CELLS = 5
"""The cells that hold the last minute: four whole ones and the one being filled."""
_ANSWERED = 512
"""Answers remembered: as many as a busy target gives while a slow failure is on its way."""
_LEAST_OUTCOMES = 20
"""A share of fewer outcomes counts the missing ones as answered."""
_LEAST_SHARE = 0.05
_TURNED_AWAY_TOGETHER = 120.0
"""Seconds without a refusal after which the next one begins a new run: overload that is held off comes back sooner."""
_STORM = 75
"""So many refusals in a row with nothing served: not even a target that refuses nine of ten comes to that."""
_LONGEST_PAUSE = 5.0
PATIENCE = 30.0
"""Seconds after which a silent call has outlived nothing, unless its owner knows better."""


class SequentialTest:
    """A CUSUM of ln likelihood ratios: "`failing` of all calls fail" against the target's own share of failures.

    The own share is taken to be at least 5 % and at most `most`. The test says yes from
    ln(max(`odds`, `odds_per_call` x calls of the last minute)) on: a busy target is not called down more often.
    """

    __slots__ = ("_failing", "_most", "_odds", "_odds_per_call", "score")

    def __init__(self, *, failing: float, most: float, odds: float, odds_per_call: float) -> None:
        self._failing = failing
        self._most = min(most, failing)
        self._odds = odds
        self._odds_per_call = odds_per_call
        self.score = 0.0

    def add(self, *, failed: bool, share: float) -> None:
        """Take in an outcome; `share` is the target's own share of failures before it."""
        if not failed and self.score <= 0.0:
            return
        self.score = max(0.0, self.score + self._step(failed=failed, share=share))

    def says_yes(self, *, share: float, calls: int, outlived: int) -> bool:
        """The verdict now; each of `outlived` calls counts as a success."""
        score = self.score + (outlived * self._step(failed=False, share=share) if outlived else 0.0)
        return score >= math.log(max(self._odds, self._odds_per_call * calls))

    def _step(self, *, failed: bool, share: float) -> float:
        usual = min(max(share, _LEAST_SHARE), self._most)
        if failed:
            return math.log(self._failing / usual)
        return math.log((1.0 - self._failing) / (1.0 - usual)) if self._failing < 1.0 else -math.inf


class Evidence:
    """The newest outcomes of a target, its calls in flight, and what both say about it."""

    __slots__ = (
        "_answered",
        "_answered_before",
        "_begun",
        "_calls",
        "_cells",
        "_down",
        "_failures",
        "_flying",
        "_lost",
        "_newest",
        "_patience",
        "_rest",
        "_run",
        "_served_beside",
        "_turned_away",
        "_turned_away_from",
        "_turned_away_in",
        "_turned_away_last",
        "stormy",
    )

    def __init__(self, *, rest: SequentialTest, whole: SequentialTest, stream: SequentialTest) -> None:
        self._rest = rest
        self._down = {False: whole, True: stream}
        self._newest: deque[bool] = deque(maxlen=_NEWEST)
        self._answered: deque[tuple[float, float, bool]] = deque(maxlen=_ANSWERED)
        """The newest answered calls in the order of their answers: when sent, when answered, whether a stream."""
        self._answered_before: tuple[bool, ...] = ()
        """Those of the present run of failures that were answered before its first failure came: their kinds."""
        self._cells: deque[list[int]] = deque()
        """[number of the cell, outcomes, failures], oldest first."""
        self._calls = self._failures = 0
        self._flying: dict[int, tuple[float, bool, int]] = {}
        """By key, in the order of sending: when a call was sent, whether it is a stream, its number in flight."""
        self._begun: set[int] = set()
        """Streams in flight that have brought content: they are not silent, however old they are."""
        self._run = 0.0
        """When the first failure of the present run was sent: calls from before it prove nothing about it."""
        self._lost = 0.0
        self._patience = PATIENCE
        self._turned_away = 0
        """Refusals for lack of capacity in a row, beside which no call was served."""
        self.stormy = False
        """True when every call is turned away: 75 in a row, and none is served."""
        self._turned_away_from = self._turned_away_last = -math.inf
        """When the first and the newest of the present run of refusals came."""
        self._turned_away_in = 0.0
        """The seconds that the longest refusal of that run took."""
        self._served_beside = False
        """True when a call that was sent during that run has been served."""

    def sent(self, key: int, now: float, *, stream: bool, number: int) -> None:
        """A call goes out as the `number`-th in flight."""
        self._flying[key] = (now, stream, number)

    def begun(self, key: int) -> None:
        """A stream in flight has brought content."""
        if key in self._flying:
            self._begun.add(key)
            self._served(self._flying[key][0])

    def ended(self, key: int) -> None:
        """The call is over, whatever came of it."""
        self._flying.pop(key, None)
        self._begun.discard(key)

    def succeeded(self, sent_at: float, now: float, *, stream: bool) -> None:
        """A call was answered. One from before the present run of failures says nothing about that."""
        if self._turned_away_last > -math.inf:
            self._served(sent_at)
        self._newest.append(True)
        self._answered.append((sent_at, now, stream))
        if sent_at >= self._run and (self._rest.score or self._down[stream].score):
            share = self.share_of_failures(now)
            self._rest.add(failed=False, share=share)
            self._down[stream].add(failed=False, share=share)
        self._count(now, failed=False)

    def failed(self, sent_at: float, now: float, *, stream: bool, patience: float) -> tuple[bool, bool]:
        """A call failed. Returns (the rest test says ill, the breaker's test for this kind of call says down).

        One from before the present run of failures says nothing about that: others were answered in between.
        """
        self._lost, self._patience = now - sent_at, patience
        rest, down = self._rest, self._down[stream]
        if not (rest.score or any(test.score for test in self._down.values())):
            self._run = sent_at
            self._answered_before = tuple(self._answered_since(sent_at))
        share = self.share_of_failures(now)
        self._newest.append(False)
        self._count(now, failed=True)
        if sent_at < self._run:
            return False, False
        rest.add(failed=True, share=share)
        down.add(failed=True, share=share)
        calls = self._of_last_minute(now)
        same = self._outlived(self._run, sent_at, now, stream)
        everyone = same + self._outlived(self._run, sent_at, now, not stream)
        return (
            rest.says_yes(share=share, calls=calls, outlived=everyone),
            down.says_yes(share=share, calls=calls, outlived=same),
        )

    def turned_away(self, sent_at: float, now: float, patience: float) -> bool:
        """Take in a refusal for lack of capacity; True when the number in flight can be the reason.

        It can when a call that was sent since the first of these refusals is served, that is, was answered or is in
        flight for more than twice as long as any of them took. Else all calls are refused, however many there are.
        """
        if now - self._turned_away_last > _TURNED_AWAY_TOGETHER:
            self._turned_away_from, self._turned_away_in, self._served_beside = now, 0.0, False
        self._turned_away_last = now
        self._turned_away_in = max(self._turned_away_in, now - sent_at)
        flying = self._flying.items()
        least = 2 * self._turned_away_in
        served = [at for key, (at, _, _) in flying if least < now - at < patience or key in self._begun]
        self._turned_away = 0 if served else self._turned_away + 1
        self.stormy = self._turned_away >= _STORM
        return self._served_beside or any(at >= self._turned_away_from for at in served)

    @property
    def storm_pause(self) -> float:
        """Until when the next call of a storm has to wait: 1, 2, 4 and then 5 s after the newest refusal."""
        return self._turned_away_last + min(_LONGEST_PAUSE, 2.0 ** min(self._turned_away - _STORM, 9))

    def serves_others(self, sent_at: float, now: float, patience: float) -> bool:
        """True when other calls, sent no later than a refused one, were served beside it: then the refusal is load."""
        flying = self._flying.items()
        if any(at <= sent_at and (now - at < patience or key in self._begun) for key, (at, _, _) in flying):
            return True
        for at, answered_at, _ in reversed(self._answered):
            if answered_at < sent_at:
                return False
            if at <= sent_at:
                return True
        return False

    def outlived_numbers(self, sent_at: float, now: float, patience: float) -> tuple[int, ...]:
        """The numbers in flight of the calls that are served while one sent at `sent_at` was refused.

        They are in flight for more than twice as long as the refusal took: the rest of a burst is not served yet.
        """
        least = 2 * (now - sent_at)
        flying = self._flying.items()
        return tuple(n for key, (at, _, n) in flying if least < now - at < patience or key in self._begun)

    def success_share(self, now: float) -> float:
        """The share of successes among the newest 20 outcomes and the calls in flight that outlived a failure.

        1 when nothing is known. Calls in flight count once they are older than the last failure took to arrive.
        """
        flying = self._flying.items()
        alive = sum(self._lost <= now - at < self._patience or key in self._begun for key, (at, _, _) in flying)
        known = len(self._newest) + alive
        return (sum(self._newest) + alive) / known if known else 1.0

    def share_of_failures(self, now: float) -> float:
        """The target's own share of failures over the last 15 minutes, of 20 outcomes at least."""
        self._forget(int(now / _CELL))
        return self._failures / max(_LEAST_OUTCOMES, self._calls)

    def rest_began(self) -> None:
        """Forget the evidence for a rest: the next one needs evidence of its own."""
        self._rest.score = 0.0

    def tripped(self) -> None:
        """Reset the tests, as a breaker opened and decides from now on."""
        self._rest.score = 0.0
        for test in self._down.values():
            test.score = 0.0

    def clear(self) -> None:
        """Forget every outcome, as the operator asks. Calls in flight stay known."""
        self.tripped()
        self._newest.clear()
        self._answered.clear()
        self._cells.clear()
        self._calls = self._failures = self._turned_away = 0
        self.stormy = False

    def _served(self, sent_at: float) -> None:
        self._turned_away, self.stormy = 0, False
        if sent_at >= self._turned_away_from:
            self._served_beside = True

    def _answered_since(self, instant: float) -> Iterator[bool]:
        """Yield the kind (True for a stream) of each call that was sent since then and was answered."""
        for sent_at, answered_at, stream in reversed(self._answered):
            if answered_at < instant:
                return
            if sent_at >= instant:
                yield stream

    def _outlived(self, since: float, sent_at: float, now: float, stream: bool) -> int:
        """Calls of one kind, sent since `since`, that were answered, or were sent by `sent_at` and are not silent.

        Where failures take longer than answers, calls are answered that were sent after the failing one. They show that
        the target was not down when it failed.
        """
        alive = sum(
            kind is stream and since <= at <= sent_at and (key in self._begun or now - at < self._patience)
            for key, (at, kind, _) in self._flying.items()
        )
        return alive + self._answered_before.count(stream)

    def _count(self, now: float, *, failed: bool) -> None:
        number, cells = int(now / _CELL), self._cells
        if not cells or cells[-1][0] != number:
            self._forget(number)
            cells.append([number, 0, 0])
        newest = cells[-1]
        newest[1] += 1
        self._calls += 1
        if failed:
            newest[2] += 1
            self._failures += 1

    def _forget(self, number: int) -> None:
        cells = self._cells
        while cells and cells[0][0] <= number - _CELLS:
            _, calls, failures = cells.popleft()
            self._calls -= calls
            self._failures -= failures

    def _of_last_minute(self, now: float) -> int:
        newest = int(now / _CELL) - _MINUTE_CELLS
        return sum(calls for number, calls, _ in self._cells if number > newest)
