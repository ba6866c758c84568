"""Search: which ending of the turn is best, by rollouts of the best few that turn search finds.

The work goes by sequential halving: all endings are sampled, then the better half to twice as many
samples, and so on down to two; then the same from the start with twice as many for each. So the
work is one sequence that a budget only cuts off: how many samples there were says all, not how long
they took or how many threads did them. The turn search's own choice is in every half.

The network's difference between two endings counts as evidence beside the rollouts': it is taken to
be off by `trust` in the root mean square, and the two are weighted by their certainty (a normal
prior). With few samples the order is the network's, with many the rollouts'.
"""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skipbo_env.agents.flips import MARGIN, behind, below_stocks, new_inner
from skipbo_env.agents.network import (
    FLIP,
    FLIP_REFILL,
    S_END,
    Network,
    evaluate_slots,
    num_slots,
)
from skipbo_env.agents.rollout import LUCKS, luck_weights, moments, roll_out
from skipbo_env.agents.turn import MAX_NODES, Work, best_endings, fill_ending, new_work
from skipbo_env.agents.turn import search as turn_search
from skipbo_env.engine.layout import BOARDS, PLAYER, PLAYERS, SIDES, State
from skipbo_env.engine.moves import apply as apply_action
from skipbo_env.engine.moves import side_stock

MAX_SAMPLES = 1_000_000
BASE = 4  # samples of each ending before the first halving
SLICE = 8  # rollouts of a thread between two looks at the clock
_SPARE = 4  # noted for each ending asked for, since orders of plays may come to the same


@dataclass(frozen=True)
class Settings:
    """How a search works.

    Attributes:
        samples: rollouts to stop after; None for no such limit.
        budget_ms: milliseconds to stop after; None for no such limit.
        candidates: endings to compare, at most.
        turns: whole turns of a rollout after the one that asks.
        nodes: limit of the turn search within rollouts.
        trust: how far off the network's differences between endings are taken to be, in
            probability.
        threads: rollouts done at a time.
    """

    samples: int | None = None
    budget_ms: int | None = None
    candidates: int = 5
    turns: int = 1
    nodes: int = 64
    trust: float = 0.015
    threads: int = 1


@dataclass(frozen=True)
class Ending:
    """A way in which this part of the turn can end.

    Attributes:
        plan: the actions that lead to it.
        value: the network's win probability; 1 where it wins the game.
        kind: TURN_OVER, FLIP, REFILL or FLIP_REFILL; -1 where the search was cut off before.
        slots: its features; equal for endings that the network cannot tell apart.
    """

    plan: list[int]
    value: float
    kind: int
    slots: bytes


@dataclass(frozen=True)
class Estimate:
    """What is known of an ending after the rollouts.

    Attributes:
        win: the mover's probability to win; the best ending's is the mean of its rollouts.
        win_se: its standard error.
        delta: its difference to the best ending, 0 or below.
        delta_se: the standard error of that.
        samples: its rollouts.
    """

    win: float
    win_se: float | None
    delta: float
    delta_se: float | None
    samples: int


class TurnEnder:
    """Lists the best endings of positions alike: turn search that keeps more than the best one."""

    def __init__(self, state: State, net: Network, most: int) -> None:
        self.net = net
        self.work = new_work(state, net, MAX_NODES, _SPARE * most)
        self._scratch = np.zeros_like(state)
        self._after = np.zeros_like(state)
        self._values = np.zeros(most)
        self._plans = np.zeros((most, len(self.work.path)), np.int64)
        self._lengths = np.zeros(most, np.int64)
        slots = num_slots(int(state[PLAYERS]), int(state[BOARDS]))
        self._slots = np.zeros((most, slots), np.int32)
        self._inner = new_inner(state, net)
        self._weights = np.zeros(14)
        self._counts = np.zeros(14, np.int32)

    def endings(self, state: State) -> tuple[list[Ending], float]:
        """The best endings of a position, the best first, and the turn search's value.

        Where the search finds none within its nodes, there is one that is cut off.
        """
        value, length = turn_search(state, self.net, self.work, MAX_NODES, _NO_STREAM, 0, 0.0)
        found = best_endings(
            state, self.work, self._scratch, self._values, self._plans, self._lengths, self._slots
        )
        if not found:
            plan = self.work.path[:length].tolist()
            return [Ending(plan, float(value), -1, self.work.best.tobytes())], float(value)
        listed = [
            Ending(
                self._plans[i, : self._lengths[i]].tolist(),
                float(self._values[i]),
                int(self._slots[i, S_END]),
                self._slots[i].tobytes(),
            )
            for i in range(found)
        ]
        return listed, float(value)

    def look_behind(self, state: State, endings: list[Ending]) -> list[Ending]:
        """The same endings, those by a flip near the best with the value of what lies behind it
        (see `flips`); the best first.
        """
        best = endings[0].value
        near = [ending for ending in endings if ending.value >= best - MARGIN]
        if best == 1.0 or len(near) < 2 or all(ending.kind != FLIP for ending in near):
            return endings
        below_stocks(state, state[PLAYER], self._counts, self._weights)
        told = []
        for ending in endings:
            value = -1.0
            if ending.kind == FLIP and ending.value >= best - MARGIN:
                plan = np.array(ending.plan)
                value = float(
                    behind(
                        state,
                        self.net,
                        self._inner,
                        self._after,
                        self._scratch,
                        self._weights,
                        plan,
                        len(plan),
                    )
                )
            told.append(ending if value < 0.0 else replace(ending, value=value))
        return sorted(told, key=lambda ending: -ending.value)

    def endings_after(self, state: State, action: int) -> list[Ending]:
        """The best endings that begin with an action, the best first."""
        work = self.work
        kind = int(fill_ending(state, action, work))
        if kind < 0:
            self._after[:] = state
            apply_action(self._after, action)
            return [
                replace(ending, plan=[action, *ending.plan])
                for ending in self.endings(self._after)[0]
            ]
        value = float(evaluate_slots(self.net, work.ending, work.acc, work.hidden))
        if kind in (FLIP, FLIP_REFILL) and side_stock(state, state[PLAYER] % state[SIDES]) == 1:
            value = 1.0
        return [Ending([action], value, kind, work.ending.tobytes())]

    def public_key(self) -> int:
        """32 bits of what the mover saw in the last position searched."""
        return zlib.crc32(self.work.slots[0].tobytes())


_NO_STREAM = np.zeros(1, np.uint64)


class Workers:
    """Scratch space for the rollouts of positions alike, one for each thread."""

    def __init__(self, state: State, net: Network, settings: Settings) -> None:
        self.net = net
        self.settings = settings
        self._each: list[tuple[Work, State, NDArray[np.int32]]] = [
            (
                new_work(state, net, settings.nodes),
                np.zeros_like(state),
                np.zeros(14, np.int32),
            )
            for _ in range(settings.threads)
        ]
        self._pool = ThreadPoolExecutor(settings.threads) if settings.threads > 1 else None

    def do(self, first: int, last: int, *job: Any) -> None:
        """Do the jobs from first to last on all threads."""
        bounds = np.linspace(first, last, len(self._each) + 1).astype(int).tolist()
        parts = [
            (low, high, *each)
            for low, high, each in zip(bounds, bounds[1:], self._each, strict=False)
            if low < high
        ]
        if self._pool is None or len(parts) < 2:
            for part in parts:
                self._one(job, *part)
        else:
            list(self._pool.map(lambda part: self._one(job, *part), parts))

    def _one(
        self, job: Any, first: int, last: int, work: Work, sim: State, counts: NDArray[np.int32]
    ) -> None:
        start, plans, lengths, jobs, seed, values, lucks = job
        roll_out(
            start,
            plans,
            lengths,
            jobs,
            first,
            last,
            seed,
            self.settings.turns,
            self.net,
            work,
            self.settings.nodes,
            sim,
            counts,
            _NO_STREAM,
            values,
            lucks,
        )


class Sampler:
    """The rollouts of one position's endings, and what they say.

    Args:
        state: the position; nothing hidden in it matters.
        endings: what to compare, the turn search's choice first.
        workers: who does the rollouts.
        seed: decides what is dealt.
    """

    def __init__(self, state: State, endings: list[Ending], workers: Workers, seed: int) -> None:
        self.endings = endings
        self.settings = workers.settings
        self._state = state
        self._workers = workers
        self._seed = np.uint64(seed & (2**64 - 1))
        k = len(endings)
        self._lengths = np.array([len(ending.plan) for ending in endings], np.int64)
        self._plans = np.zeros((k, int(self._lengths.max())), np.int64)
        for row, ending in zip(self._plans, endings, strict=True):
            row[: len(ending.plan)] = ending.plan
        self._gaps = np.array([ending.value - endings[0].value for ending in endings])
        self._counts = np.zeros(k, np.int64)
        self._values = np.zeros((k, 64), np.float32)
        self._lucks = np.zeros((k, 64, LUCKS), np.float32)
        self._weights = np.zeros(LUCKS)
        self._moments = np.zeros((k, 6))

    @property
    def samples(self) -> int:
        """Rollouts done."""
        return int(self._counts.sum())

    def run(self, deadline: float | None) -> str:
        """Sample until the settings' number of samples is done or time.perf_counter() passes the
        deadline.

        Returns:
            "samples" or "time".
        """
        limit = min(self.settings.samples or MAX_SAMPLES, MAX_SAMPLES)
        step = SLICE * self.settings.threads
        for chosen, target in self._levels():
            jobs = self._jobs(chosen, target)
            at = 0
            while at < len(jobs):
                until = min(at + step, len(jobs), at + limit - self.samples)
                if until == at:
                    return "samples"
                if self.samples and deadline is not None and time.perf_counter() > deadline:
                    return "time"
                self._do(jobs, at, until)
                at = until
        raise AssertionError("the levels have no end")

    def sample_evenly(self, samples: int) -> dict[str, list[tuple[float, float]]]:
        """Sample every ending so many times, and say what the rollouts alone say: the measure of
        `training.coverage`.

        Returns:
            {"win": [(mean, standard error) of each ending], "difference": [the same of each
            ending's difference to the first, but for the first itself]}.
        """
        jobs = self._jobs(list(range(len(self.endings))), samples)
        self._do(jobs, 0, len(jobs))
        found = self._measure_honestly(0)
        return {
            "win": [(m, math.sqrt(v / samples)) for m, v in found[:, :2].tolist()],
            "difference": [(m, math.sqrt(v / samples)) for m, v in found[1:, 3:5].tolist()],
        }

    def _do(self, jobs: NDArray[np.int64], first: int, last: int) -> None:
        """Do the jobs from first to last, each ending's in the order of its samples."""
        self._workers.do(
            first,
            last,
            self._state,
            self._plans,
            self._lengths,
            jobs,
            self._seed,
            self._values,
            self._lucks,
        )
        np.maximum.at(self._counts, jobs[first:last, 0], jobs[first:last, 1] + 1)

    def _levels(self) -> Iterator[tuple[list[int], int]]:
        """Endings to sample and the number of samples to bring each of them to, without end."""
        base = BASE
        while True:
            chosen = list(range(len(self.endings)))
            target = base
            while True:
                yield chosen, target
                if len(chosen) <= 2:
                    break
                scores, _ = self._scores()
                others = sorted(chosen[1:], key=lambda e: (-scores[e], e))
                chosen = [0, *sorted(others[: (len(chosen) + 1) // 2 - 1])]
                target *= 2
            base *= 2

    def _jobs(self, chosen: list[int], target: int) -> NDArray[np.int64]:
        """The missing samples of a level in the order in which they are done."""
        if target > self._values.shape[1]:
            more = max(target, 2 * self._values.shape[1]) - self._values.shape[1]
            self._values = np.pad(self._values, ((0, 0), (0, more)))
            self._lucks = np.pad(self._lucks, ((0, 0), (0, more), (0, 0)))
        first = int(self._counts[chosen].min())
        samples, which = np.meshgrid(np.arange(first, target), chosen, indexing="ij")
        jobs = np.stack([which.ravel(), samples.ravel()], axis=1).astype(np.int64)
        return np.ascontiguousarray(jobs[jobs[:, 1] >= self._counts[jobs[:, 0]]])

    def _measure(self, reference: int) -> NDArray[np.float64]:
        luck_weights(self._values, self._lucks, self._counts, self._weights)
        moments(self._values, self._lucks, self._counts, self._weights, reference, self._moments)
        return self._moments

    def _measure_honestly(self, reference: int) -> NDArray[np.float64]:
        """As `_measure`, the variances made larger by what few samples hide."""
        found = self._measure(reference)
        values = [
            self._values[e, :n] - self._lucks[e, :n] @ self._weights
            for e, n in enumerate(self._counts.tolist())
        ]
        fitted = LUCKS if self._weights.any() else 0
        for e, own in enumerate(values):
            pairs = int(found[e, 2])
            found[e, 1] = _honest(found[e, 1], own, fitted)
            if e != reference:
                difference = own[:pairs] - values[reference][:pairs]
                found[e, 4] = _honest(found[e, 4], difference, fitted)
        return found

    def _scores(
        self, reference: int = 0, *, honest: bool = False
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Each ending's difference to the reference, by rollouts and network together, and its
        standard error (infinite without samples).
        """
        found = self._measure_honestly(reference) if honest else self._measure(reference)
        pairs, mean, spread = found[:, 2], found[:, 3], found[:, 4]
        known = pairs >= 2
        known[reference] = False
        usual = float(spread[known].mean()) if known.any() else 0.0
        # Few samples know little of their own spread: two more of the usual one.
        freedom = np.maximum(pairs - 1, 0)
        spread = (freedom * spread + 2 * usual) / (freedom + 2)
        prior = self.settings.trust**2
        noise = np.where(known, spread / np.maximum(pairs, 1), np.inf)
        weight = np.where(known, prior / (prior + np.where(known, noise, 1.0)), 0.0)
        gaps = self._gaps - self._gaps[reference]
        scores = gaps + weight * (np.where(known, mean, 0.0) - gaps)
        errors = np.where(known, np.sqrt(weight * np.where(known, noise, 0.0)), np.inf)
        scores[reference] = errors[reference] = 0.0
        return scores, errors

    def best(self) -> int:
        """The ending to play: the highest score among those with at least half of the most
        samples.
        """
        scores, _ = self._scores()
        sampled = self._counts * 2 >= self._counts.max()
        sampled[0] = True
        return int(np.argmax(np.where(sampled, scores, -np.inf)))

    def estimates(self) -> list[Estimate]:
        """What is known of each ending; some sample must have been made."""
        best = self.best()
        scores, errors = self._scores(best, honest=True)
        found = self._moments
        win, spread, n = found[best, 0], found[best, 1], int(self._counts[best])
        win_variance = spread / n
        told = []
        for e in range(len(self.endings)):
            delta = min(0.0, float(scores[e]))
            if e == best or not math.isfinite(errors[e]):
                variance = win_variance if e == best else None
            else:
                # Both share the best one's samples: their errors are not independent.
                pull = errors[e] ** 2 / max(found[e, 4] / found[e, 2], 1e-12)
                shared = 2 * min(1.0, pull) * found[e, 5] / n
                variance = max(win_variance + errors[e] ** 2 + shared, 0.0)
            told.append(
                Estimate(
                    min(1.0, max(0.0, float(win + delta))),
                    None if variance is None or n < 2 else math.sqrt(variance),
                    delta,
                    float(errors[e]) if math.isfinite(errors[e]) else None,
                    int(self._counts[e]),
                )
            )
        return told


def _honest(variance: float, values: NDArray[np.floating[Any]], fitted: int) -> float:
    """A sample's variance, enlarged for what a small sample does not show.

    The weights of the luck are fitted to the same samples, which costs their number of degrees of
    freedom twice (Lavenberg and Welch, Management Science 1981). And most differences between
    endings are near zero with a few large ones, so that a small sample often lacks the large ones:
    it is taken as if its most extreme value had come twice more.

    Args:
        variance: of one sample, with n - 1.
        values: the n samples.
        fitted: how many weights were fitted.
    """
    n = len(values)
    if n < 2:
        return variance
    if fitted:
        free = max(n - fitted - 2, 1)
        variance *= (n - 1) * (n - 2) / (max(n - fitted - 1, 1) * free) if n > 2 else 1.0
    return variance + 2.0 * float(np.max((values - values.mean()) ** 2)) / n
