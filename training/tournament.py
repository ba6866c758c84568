"""Tournaments: every agent meets every other on the same deals, and all are rated together.

A *line-up* is one agent for each side: every pair in games of two sides; with more sides every set
of so many agents, or, where there are fewer agents than sides, every agent alone against another on
all other sides. A line-up plays each deal once in each rotation around the table, so that every
agent of it sits once on every side; with three sides or more the order of the others around the
table is drawn for each deal. That set of games is a unit, and all line-ups play the same deals.

Ratings are of the Plackett-Luce model (Bradley-Terry's for two sides): of the agents at a table
each wins with a probability in proportion to its strength. They are fitted to the winners by the
library choix and told in points, 400 times the decimal logarithm of the strength, the mean agent at
0: 100 points more win 64% of games of two. Their intervals come from a bootstrap over deals.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skipbo_env.agents.agent import Agent
from skipbo_env.engine import layout
from skipbo_env.rules import Rules
from training.arena import CHUNK, Games, Job, Table, check_numbers, run_jobs, unit_seeds
from training.stats import mean_interval

POINTS = 400 / np.log(10)
PRIOR = 0.5  # choix's regularisation, about half a win each way: the winless have a rating, too
BOOTSTRAPS = 200


def line_ups(agents: int, sides: int) -> list[tuple[int, ...]]:
    """Who meets whom, by the agents' places in the list; see the head of this module."""
    if agents >= sides:
        return list(itertools.combinations(range(agents), sides))
    return [(a, *[b] * (sides - 1)) for a, b in itertools.permutations(range(agents), 2)]


def unit_seats(line_up: Sequence[int], seed: int, unit: int) -> NDArray[np.int64]:
    """The agent on each side in the games of a unit, shape (sides, sides): its rotations."""
    order = np.array(line_up, np.int64)
    if len(order) > 2:
        shuffle = np.random.default_rng([seed, unit, 1])
        order[1:] = shuffle.permutation(order[1:])
    return np.stack([np.roll(order, turn) for turn in range(len(order))])


def _jobs(ups: list[tuple[int, ...]], units: int, seed: int) -> Iterator[Job]:
    for line_up in ups:
        for at in range(0, units, CHUNK):
            part = range(at, min(at + CHUNK, units))
            seats = np.concatenate([unit_seats(line_up, seed, unit) for unit in part])
            yield Job(seats, np.repeat(unit_seeds(seed, part), len(line_up)))


def beaten(agents: int, games: Games, deals: NDArray[np.int64]) -> NDArray[np.float64]:
    """Who won where who else sat, deal by deal: float64 of shape (deals, agents, agents).

    A winner has beaten every other seat at its table. In the model it is for any two of them as if
    they had met alone: one wins before the other in proportion to their strengths. So these counts
    say the same of games of many sides as of games of two. Games that nobody won tell nothing.
    """
    counts = np.zeros((int(deals.max(initial=-1)) + 1, agents, agents))
    won = np.nonzero(games.winners >= 0)[0]
    winners = games.seats[won, games.winners[won]]
    for side in range(games.seats.shape[1]):
        np.add.at(counts, (deals[won], winners, games.seats[won, side]), 1.0)
    counts[:, np.arange(agents), np.arange(agents)] = 0.0
    return counts


def fit(counts: NDArray[np.float64], initial: NDArray[np.float64] | None = None) -> Any:
    """Ratings in points, the mean 0, from how often row beat column; float64 of shape (agents,)."""
    import choix

    start = None if initial is None else initial / POINTS
    params = choix.ilsr_pairwise_dense(counts, alpha=PRIOR, initial_params=start, tol=1e-6)
    return (params - params.mean()) * POINTS


def ratings(
    counts: NDArray[np.float64], *, seed: int = 1, bootstraps: int = BOOTSTRAPS
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Ratings and their 95% intervals from a bootstrap over deals.

    Args:
        counts: from `beaten`, shape (deals, agents, agents).
        seed: of the bootstrap.
        bootstraps: how often the deals are drawn anew.

    Returns:
        (ratings, intervals) in points, of shapes (agents,) and (agents, 2).
    """
    point = fit(counts.sum(axis=0))
    draw = np.random.default_rng(seed)
    weights = draw.multinomial(len(counts), np.full(len(counts), 1 / len(counts)), size=bootstraps)
    found = [fit(again, point) for again in np.tensordot(weights.astype(np.float64), counts, 1)]
    return point, np.percentile(found, [2.5, 97.5], axis=0).T


def _share(
    won: NDArray[np.bool_], sat: NDArray[np.bool_], deals: NDArray[np.int64]
) -> dict[str, Any] | None:
    """Games won of those sat in, with the interval from the deals' means; None for no game."""
    games = np.bincount(deals[sat])
    if not sat.any():
        return None
    wins = np.bincount(deals[won & sat], minlength=len(games))
    mean, low, high = mean_interval(wins[games > 0] / games[games > 0])
    return {"win_rate": mean, "interval": [low, high], "games": int(sat.sum())}


def summarise(table: Table, games: Games, deals: NDArray[np.int64]) -> dict[str, Any]:
    """Standings, cross table and seats of a finished tournament."""
    count, sides = len(table.names), table.rules.sides
    sat = np.stack([(games.seats == a).any(axis=1) for a in range(count)])
    safe = np.maximum(games.winners, 0)
    winners = np.where(games.winners < 0, -1, games.seats[np.arange(len(safe)), safe])
    points, intervals = ratings(beaten(count, games, deals), seed=table.seed)
    standings = []
    for a in np.argsort(-points, kind="stable").tolist():
        standings.append(
            {
                "agent": table.names[a],
                "rating": float(points[a]),
                "rating_interval": [float(x) for x in intervals[a]],
                **(_share(winners == a, sat[a], deals) or {}),
                "seat_win_rates": [
                    float((games.winners[there] == side).mean()) if there.any() else None
                    for side in range(sides)
                    for there in [games.seats[:, side] == a]
                ],
            }
        )
    cross = {
        table.names[a]: {
            table.names[b]: _share(winners == a, sat[a] & sat[b], deals)
            for b in range(count)
            if a != b
        }
        for a in range(count)
    }
    truncated = games.reasons == layout.TURN_LIMIT
    return {
        "agents": table.names,
        "players": table.rules.players,
        "rules": table.rules.to_dict(),
        "seed": table.seed,
        "games": len(games.winners),
        "deals": int(deals.max()) + 1,
        "two_ended": table.two_ended,
        "standings": standings,
        "cross_table": cross,
        "seat_win_rates": [float((games.winners == side).mean()) for side in range(sides)],
        "stalemate_rate": float(((games.winners < 0) & ~truncated).mean()),
        "truncated_rate": float(truncated.mean()),
        "mean_decisions": float(games.decisions.mean()),
    }


def tournament(
    agents: Sequence[str | Agent],
    *,
    games: int,
    rules: Rules | str = "standard",
    players: int | None = None,
    seed: int = 1,
    workers: int = 1,
    two_ended: bool = False,
    record: str | Path | None = None,
    plot: str | Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Let agents play each other and rate them; see `skipbo tournament`.

    Args:
        agents: two or more, AGENT texts or objects, all different.
        games: games of each line-up, rounded up to whole units.
        rules: what is played.
        players: overrides the rules' number of players.
        seed: where all randomness comes from.
        workers: threads.
        two_ended: evaluation only: two players draw from opposite ends of the draw pile.
        record: a .jsonl file for the records of all games (they are then played one by one).
        plot: a .png, .svg or .pdf file for a picture of the result (needs matplotlib).
        progress: called with (games done, games in all).

    Raises:
        AgentError: no such agent, or one that does not play these rules.
        ValueError: a number out of range, or agents that are not two or more different ones.
    """
    check_numbers(games, workers, seed)
    if len(agents) < 2:
        raise ValueError(f"agents: needs two or more, got {len(agents)}")
    table = Table(agents, Rules.of(rules, players), seed=seed, two_ended=two_ended)
    if len(set(table.names)) < len(table.names):
        twice = next(name for name in table.names if table.names.count(name) > 1)
        raise ValueError(f"agents: {twice!r:.80} is there twice")
    if plot is not None:
        from training.plots import check_target, draw_tournament

        check_target(plot)
    import choix  # noqa: F401 - what is missing is told before the games, not after them

    sides = table.rules.sides
    ups = line_ups(len(agents), sides)
    units = -(-games // sides)
    total = len(ups) * units * sides
    start = time.perf_counter()
    parts: list[Games] = []
    done = 0
    for part in run_jobs(table, _jobs(ups, units, seed), workers=workers, record=record):
        parts.append(part)
        done += len(part.winners)
        if progress:
            progress(done, total)
    played = Games.join(parts)
    deals = np.tile(np.repeat(np.arange(units), sides), len(ups))
    result = summarise(table, played, deals)
    result["seconds"] = time.perf_counter() - start
    if plot is not None:
        draw_tournament(plot, result)
    return result
