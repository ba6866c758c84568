"""The arena: paired games between two agents, and what they say with which certainty. It needs no
torch.

The unit of a match is a set of games on one deal in which the challenger sits once on every side (a
pair, for two sides); the mean of a set is one observation, which is what the interval is made from.
A game's deal and the agents' randomness come from (seed, unit) alone, so the result does not depend
on the number of workers.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skipbo_env.agents.agent import (
    Agent,
    AgentError,
    BestAgent,
    LevelAgent,
    RuleAgent,
    TurnAgent,
    make_agent,
)
from skipbo_env.agents.heuristics import choose_now
from skipbo_env.agents.models import empty_network
from skipbo_env.agents.network import Network
from skipbo_env.agents.play import NETWORK, play_games
from skipbo_env.agents.turn import MAX_NODES, Work, new_work, search
from skipbo_env.engine import layout
from skipbo_env.engine.rng import mix64
from skipbo_env.game import Game
from skipbo_env.record import write_record
from skipbo_env.rules import Rules

CHUNK = 20  # units that a worker plays in one go
Z95 = 1.959963984540054


@dataclass
class Games:
    """Results of a stretch of games, one entry a game.

    Attributes:
        sides: the side that the challenger held.
        winners: the winning side, or -1.
        reasons: how it ended (see `engine.layout`).
        decisions: actions in the game, of all seats.
    """

    sides: NDArray[np.int64]
    winners: NDArray[np.int64]
    reasons: NDArray[np.int64]
    decisions: NDArray[np.int64]


def unit_seeds(seed: int, units: range) -> NDArray[np.uint64]:
    """The deals' seeds of a stretch of units."""
    return np.array(
        [
            np.random.SeedSequence(seed, spawn_key=(unit,)).generate_state(1, np.uint64)[0]
            for unit in units
        ],
        np.uint64,
    )


def _compiled(agent: Any) -> bool:
    return isinstance(agent, (RuleAgent, TurnAgent))


def _code(agent: Any, slot: int) -> int:
    return int(agent.kind) if isinstance(agent, RuleAgent) else NETWORK + slot


def _network(agent: Any, rules: Rules) -> Network:
    if isinstance(agent, TurnAgent):
        return agent.network(rules)
    return empty_network(rules.players, rules.boards, 16, 32)


class Match:
    """Games of a challenger against another agent on all other sides.

    Args:
        agent: the challenger: an AGENT text or an object with `act`.
        against: who holds the other sides.
        rules: what is played.
        seed: where all randomness comes from.
        two_ended: evaluation only: two players draw from opposite ends of the draw pile.

    Raises:
        AgentError: no such agent, or one that does not play these rules.
    """

    def __init__(
        self,
        agent: str | Agent,
        against: str | Agent,
        rules: Rules,
        *,
        seed: int = 1,
        two_ended: bool = False,
    ) -> None:
        if two_ended and rules.players != 2:
            raise ValueError(f"two_ended: is for two players, not {rules.players}")
        self.rules, self.seed, self.two_ended = rules, seed, two_ended
        self.agents = [self._agent(agent), self._agent(against)]
        self.names = [
            agent if isinstance(agent, str) else agent.name,
            against if isinstance(against, str) else against.name,
        ]
        self._free: list[tuple[Work, Work]] = []

    def _agent(self, given: str | Agent) -> Any:
        agent: Any = make_agent(given, seed=self.seed) if isinstance(given, str) else given
        if isinstance(agent, BestAgent):
            agent = agent.chosen(self.rules)
        elif isinstance(agent, LevelAgent):
            agent = agent.player(self.rules)
        if _compiled(agent) and not agent.plays(self.rules):
            raise AgentError(
                f"agent: {agent.name} does not play {self.rules.players} players, "
                f"{self.rules.teams} teams"
            )
        return agent

    @property
    def unit_size(self) -> int:
        """Games in a unit: the challenger sits once on every side."""
        return self.rules.sides

    @property
    def compiled(self) -> bool:
        """Whether the games can be played by one kernel: rules and turn search."""
        return all(_compiled(agent) for agent in self.agents)

    def play(self, units: range) -> Games:
        """The games of a stretch of units, in order."""
        size = self.unit_size
        seeds = np.repeat(unit_seeds(self.seed, units), size)
        sides = np.tile(np.arange(size), len(units))
        games = Games(sides, *(np.zeros(len(sides), np.int64) for _ in range(3)))
        if self.compiled:
            self._play_compiled(seeds, games)
        else:
            for g in range(len(sides)):
                game = self.play_game(int(seeds[g]), int(sides[g]))
                games.winners[g] = game.state[layout.WINNER]
                games.reasons[g] = game.state[layout.REASON]
                games.decisions[g] = len(game.actions)
        return games

    def _play_compiled(self, seeds: NDArray[np.uint64], games: Games) -> None:
        rules = self.rules
        state = layout.new_state(rules, two_ended=self.two_ended)
        nets = [_network(agent, rules) for agent in self.agents]
        nodes = [getattr(agent, "max_nodes", 1) for agent in self.agents]
        noise = [getattr(agent, "noise", 0.0) for agent in self.agents]
        try:
            works = self._free.pop()
        except IndexError:  # a thread's first chunk
            works = (
                new_work(state, nets[0], MAX_NODES),
                new_work(state, nets[1], MAX_NODES),
            )
        codes = np.array([_code(agent, slot) for slot, agent in enumerate(self.agents)])
        seat_sides = np.arange(rules.players) % rules.sides
        seats = np.where(seat_sides[None, :] == games.sides[:, None], codes[0], codes[1])
        first = -1 if rules.first_player == "random" else int(rules.first_player)
        play_games(
            state,
            seats.astype(np.int64),
            seeds,
            np.full(len(seeds), first),
            nets[0],
            works[0],
            nets[1],
            works[1],
            np.array(nodes),
            np.array(noise),
            np.zeros(1, np.uint64),
            games.winners,
            games.reasons,
            games.decisions,
        )
        self._free.append(works)

    def play_game(self, seed: int, side: int) -> Game:
        """One game as an object, move by move: the same game as in `play`, with its record."""
        game = Game(self.rules, seed=seed)
        if self.two_ended:
            raise ValueError("two_ended: records are of the game as it is played")
        streams = np.array([mix_stream(seed)], np.uint64)
        guesses = np.random.default_rng(seed)
        works: dict[int, Work] = {}
        while not game.over:
            slot = 0 if self.rules.side_of(game.player) == side else 1
            agent = self.agents[slot]
            if isinstance(agent, RuleAgent):
                game.apply(int(choose_now(agent.kind, game.state, streams)))
            elif isinstance(agent, TurnAgent):
                net = agent.network(self.rules)
                if slot not in works:
                    works[slot] = new_work(game.state, net, MAX_NODES)
                work = works[slot]
                _, length = search(game.state, net, work, agent.max_nodes, streams, 0, agent.noise)
                for action in work.path[:length].tolist():
                    game.apply(action)
            else:  # a user's own agent: it gets a game that its seat could be in, not this one
                guess = game.determinize(game.player, int(guesses.integers(1 << 63)))
                plan = agent.plan(guess) if hasattr(agent, "plan") else [agent.act(guess)]
                for action in plan:
                    game.apply(int(action))
        return game


def mix_stream(seed: int) -> int:
    """The agents' random generator in a game of this seed, as `play.play_games` starts it."""
    return int(mix64(np.uint64(seed ^ 0xA5A5A5A5A5A5A5A5)))


def mean_interval(units: NDArray[np.float64]) -> tuple[float, float, float]:
    """Mean of independent observations in [0, 1] and its 95% interval, kept within [0, 1]."""
    mean = float(units.mean())
    if len(units) < 2:
        return mean, 0.0, 1.0
    spread = float(units.std(ddof=1))
    if spread == 0.0:  # all alike: Wilson's interval, which does not collapse
        n = len(units)
        centre = (mean + Z95**2 / (2 * n)) / (1 + Z95**2 / n)
        reach = Z95 / (1 + Z95**2 / n) * math.sqrt(mean * (1 - mean) / n + Z95**2 / (4 * n * n))
        return mean, max(0.0, centre - reach), min(1.0, centre + reach)
    half = Z95 * spread / math.sqrt(len(units))
    return mean, max(0.0, mean - half), min(1.0, mean + half)


def run_match(
    match: Match,
    units: int,
    *,
    workers: int = 1,
    progress: Callable[[int, float], None] | None = None,
) -> Games:
    """Play all units on threads.

    Args:
        match: who plays what.
        units: how many sets of games.
        workers: threads; agents that are not compiled play on one.
        progress: called with units done and the win rate so far.
    """
    chunks = [range(at, min(at + CHUNK, units)) for at in range(0, units, CHUNK)]
    parts: list[Games] = []

    def results() -> Iterator[Games]:
        if workers > 1 and match.compiled:
            with ThreadPoolExecutor(workers) as pool:
                yield from pool.map(match.play, chunks)
        else:
            yield from map(match.play, chunks)

    won = done = 0
    for part in results():
        parts.append(part)
        won += int((part.winners == part.sides).sum())
        done += len(part.sides)
        if progress:
            progress(done // match.unit_size, won / done)
    return Games(
        *(
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("sides", "winners", "reasons", "decisions")
        )
    )


def summary(match: Match, games: Games, seconds: float) -> dict[str, Any]:
    """What a match says: the challenger's win rate with its interval, and how games ended."""
    size = match.unit_size
    won = games.winners == games.sides
    none = games.winners < 0
    truncated = games.reasons == layout.TURN_LIMIT
    stalemate = none & ~truncated
    mean, low, high = mean_interval(won.reshape(-1, size).mean(axis=1).astype(np.float64))
    return {
        "agent": match.names[0],
        "against": match.names[1],
        "players": match.rules.players,
        "rules": match.rules.to_dict(),
        "seed": match.seed,
        "games": len(won),
        "units": len(won) // size,
        "win_rate": mean,
        "interval": [low, high],
        "loss_rate": float((~won & ~none).mean()),
        "stalemate_rate": float(stalemate.mean()),
        "truncated_rate": float(truncated.mean()),
        "score_rate": float((won + none / match.rules.sides).mean()),
        "mean_decisions": float(games.decisions.mean()),
        "seat_win_rates": [float(won[games.sides == side].mean()) for side in range(size)],
        "two_ended": match.two_ended,
        "seconds": seconds,
    }


def evaluate(
    agent: str | Agent,
    against: str | Agent,
    *,
    games: int,
    rules: Rules | str = "standard",
    players: int | None = None,
    seed: int = 1,
    workers: int = 1,
    two_ended: bool = False,
    record: str | Path | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> dict[str, Any]:
    """Rate an agent against another; see `skipbo evaluate`.

    Args:
        agent: the challenger, an AGENT text or an object.
        against: who holds all other sides.
        games: how many games, rounded up to whole units.
        rules: what is played.
        players: overrides the rules' number of players.
        seed: where all randomness comes from.
        workers: threads.
        two_ended: evaluation only: two players draw from opposite ends of the draw pile.
        record: a .jsonl file for the records of all games (they are then played one by one).
        progress: called with units done and the win rate so far.

    Raises:
        AgentError: no such agent.
        ValueError: a number out of range.
    """
    if isinstance(games, bool) or not 1 <= games <= 100_000_000:
        raise ValueError(f"games: must be 1 to 100,000,000, got {games}")
    if not 1 <= workers <= 1024:
        raise ValueError(f"workers: must be 1 to 1024, got {workers}")
    if seed < 0:
        raise ValueError(f"seed: cannot be negative, got {seed}")
    if record is not None and two_ended:
        raise ValueError("record: games with a two-ended draw pile are not recorded")
    match = Match(agent, against, Rules.of(rules, players), seed=seed, two_ended=two_ended)
    units = -(-games // match.unit_size)
    start = time.perf_counter()
    if record is None:
        played = run_match(match, units, workers=workers, progress=progress)
    else:
        played = _recorded(match, units, Path(record), progress)
    return summary(match, played, time.perf_counter() - start)


def _recorded(
    match: Match, units: int, path: Path, progress: Callable[[int, float], None] | None
) -> Games:
    seeds = unit_seeds(match.seed, range(units))
    rows: list[tuple[int, int, int, int]] = []

    def records() -> Iterator[dict[str, Any]]:
        for unit, seed in enumerate(seeds.tolist()):
            for side in range(match.unit_size):
                game = match.play_game(seed, side)
                state = game.state
                rows.append(
                    (side, int(state[layout.WINNER]), int(state[layout.REASON]), len(game.actions))
                )
                names = [
                    match.names[0 if match.rules.side_of(seat) == side else 1]
                    for seat in range(match.rules.players)
                ]
                yield game.record(names)
            if progress:
                progress(unit + 1, sum(won == held for held, won, _, _ in rows) / len(rows))

    with open(path, "w", encoding="utf-8") as file:
        for record in records():
            write_record(file, record)
    columns: Sequence[NDArray[np.int64]] = [
        np.array(column, np.int64) for column in zip(*rows, strict=True)
    ]
    return Games(*columns)
