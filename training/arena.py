"""The arena: games between agents on shared deals, and what they say. It needs no torch.

The unit of a match is a set of games on one deal in which the challenger sits once on every side (a
pair, for two sides); the mean of a set is one observation (see `stats`). A game's deal and the
agents' randomness come from (seed, unit) alone, so the result does not depend on the number of
workers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, fields
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from skipbo_env.agents.agent import (
    Agent,
    AgentError,
    BestAgent,
    LevelAgent,
    PolicyAgent,
    RuleAgent,
    TurnAgent,
    make_agent,
)
from skipbo_env.agents.flips import Flips, new_flips, search_flips
from skipbo_env.agents.heuristics import choose_now
from skipbo_env.agents.models import empty_network
from skipbo_env.agents.network import Network
from skipbo_env.agents.play import (
    NETWORK,
    POLICY,
    add_luck,
    new_tally,
    play_games,
    start_luck,
)
from skipbo_env.agents.policy import PolicyWork, empty_policy, new_policy_work
from skipbo_env.engine import layout
from skipbo_env.engine.deal import deal
from skipbo_env.engine.rng import mix64
from skipbo_env.game import Game
from skipbo_env.record import write_record
from skipbo_env.rules import Rules
from training import ranks
from training.stats import Sprt, adjusted, mean_interval

CHUNK = 20  # units that a worker plays in one go


@dataclass
class Games:
    """Results of a stretch of games, one entry a game.

    Attributes:
        seats: the agent on each side: its place in the table's list; shape (games, sides).
        winners: the winning side, or -1.
        reasons: how it ended (see `engine.layout`).
        decisions: actions in the game, of all seats.
        luck: wilds less those expected, drawn and flipped by each side (see `agents.play`);
            float64, shape (games, sides, 2).
    """

    seats: NDArray[np.int64]
    winners: NDArray[np.int64]
    reasons: NDArray[np.int64]
    decisions: NDArray[np.int64]
    luck: NDArray[np.float64]

    @staticmethod
    def empty(seats: NDArray[np.int64]) -> Games:
        """Entries to fill, for games with these agents."""
        n, sides = seats.shape
        winners, reasons, decisions = np.zeros((3, n), np.int64)
        return Games(seats, winners, reasons, decisions, np.zeros((n, sides, 2)))

    @staticmethod
    def join(parts: Sequence[Games]) -> Games:
        """The games of all parts, in order."""
        return Games(
            *(np.concatenate([getattr(part, field.name) for part in parts]) for field in _FIELDS)
        )


_FIELDS = fields(Games)


def unit_seeds(seed: int, units: range) -> NDArray[np.uint64]:
    """The deals' seeds of a stretch of units."""
    return np.array(
        [
            np.random.SeedSequence(seed, spawn_key=(unit,)).generate_state(1, np.uint64)[0]
            for unit in units
        ],
        np.uint64,
    )


def mix_stream(seed: int) -> int:
    """The agents' random generator in a game of this seed, as `play.play_games` starts it."""
    return int(mix64(np.uint64(seed ^ 0xA5A5A5A5A5A5A5A5)))


def _compiled(agent: Any) -> bool:
    return isinstance(agent, (RuleAgent, TurnAgent, PolicyAgent))


class Table:
    """Agents that play games of one kind with each other, one agent a side.

    Args:
        agents: AGENT texts, or objects with `act`. One with `new_game(seed)` is told before each
            game where its randomness is to come from.
        rules: what is played.
        seed: where all randomness comes from.
        two_ended: evaluation only: two players draw from opposite ends of the draw pile.

    Raises:
        AgentError: no such agent, or one that does not play these rules.
        ValueError: two_ended with more than two players.
    """

    def __init__(
        self,
        agents: Sequence[str | Agent],
        rules: Rules,
        *,
        seed: int = 1,
        two_ended: bool = False,
    ) -> None:
        if two_ended and rules.players != 2:
            raise ValueError(f"two_ended: is for two players, not {rules.players}")
        self.rules, self.seed, self.two_ended = rules, seed, two_ended
        self.given = list(agents)
        self.names = [a if isinstance(a, str) else a.name for a in agents]
        self.agents = [self._agent(agent) for agent in agents]
        self._free_agents: list[list[Any]] = []
        self._free_works: dict[int, list[Flips]] = {}
        self._free_policy_works: dict[int, list[PolicyWork]] = {}

    def _agent(self, given: str | Agent) -> Any:
        agent: Any = make_agent(given, seed=self.seed) if isinstance(given, str) else given
        if isinstance(agent, BestAgent):
            agent = agent.chosen(self.rules)
        elif isinstance(agent, LevelAgent):
            agent = agent.player(self.rules)
        if hasattr(agent, "plays") and not agent.plays(self.rules):
            raise AgentError(
                f"agent: {agent.name} does not play {self.rules.players} players, "
                f"{self.rules.teams} teams"
            )
        return agent

    @property
    def parallel(self) -> bool:
        """Whether several workers can play: agents without state that lasts from game to game."""
        return all(
            _compiled(agent) or (isinstance(given, str) and hasattr(agent, "new_game"))
            for given, agent in zip(self.given, self.agents, strict=True)
        )

    def compiled(self, seats: NDArray[np.int64]) -> bool:
        """Whether one kernel can play these games: known agents, with two models at most by turn
        search and two by their policy.
        """
        used = [self.agents[a] for a in np.unique(seats)]
        by_search = sum(isinstance(agent, TurnAgent) for agent in used)
        by_policy = sum(isinstance(agent, PolicyAgent) for agent in used)
        return by_search <= 2 and by_policy <= 2 and all(map(_compiled, used))

    def play(self, seats: NDArray[np.int64], seeds: NDArray[np.uint64]) -> Games:
        """One game for each row of agents, shape (games, sides), on its seed's deal."""
        games = Games.empty(seats)
        if self.compiled(seats):
            self._play_compiled(seeds, games)
        else:
            for g in range(len(seeds)):
                self.tell(games, g, *self.play_game(seats[g], int(seeds[g])))
        return games

    @staticmethod
    def tell(games: Games, g: int, game: Game, luck: NDArray[np.float64]) -> None:
        """Write a finished game into entry g."""
        games.winners[g] = game.state[layout.WINNER]
        games.reasons[g] = game.state[layout.REASON]
        games.decisions[g] = len(game.actions)
        games.luck[g] = luck

    def _network(self, agent: int) -> Network:
        """The network of an agent; a small one of zeros where it has none (agent -1)."""
        if agent < 0:
            return empty_network(self.rules.players, self.rules.boards, 16, 32)
        network: Network = self.agents[agent].network(self.rules)
        return network

    def _take_work(self, agent: int, net: Network) -> Flips:
        try:
            return self._free_works.setdefault(agent, []).pop()
        except IndexError:  # a thread's first chunk
            return new_flips(self._new_state(), net)

    def _take_policy_work(self, agent: int) -> PolicyWork:
        try:
            return self._free_policy_works.setdefault(agent, []).pop()
        except IndexError:  # a thread's first chunk
            policy = empty_policy() if agent < 0 else self.agents[agent].network
            return new_policy_work(policy, self.rules.num_actions)

    def _new_state(self) -> layout.State:
        return layout.new_state(self.rules, two_ended=self.two_ended)

    def _play_compiled(self, seeds: NDArray[np.uint64], games: Games) -> None:
        rules = self.rules
        codes = np.zeros(len(self.agents), np.int64)
        models: list[int] = []
        policies: list[int] = []
        for a in np.unique(games.seats).tolist():
            agent = self.agents[a]
            if isinstance(agent, TurnAgent):
                codes[a] = NETWORK + len(models)
                models.append(a)
            elif isinstance(agent, PolicyAgent):
                codes[a] = POLICY + len(policies)
                policies.append(a)
            else:
                codes[a] = agent.kind
        slots = [*models, -1, -1][:2]
        nets = [self._network(a) for a in slots]
        works = [self._take_work(a, net) for a, net in zip(slots, nets, strict=True)]
        nodes = [self.agents[a].max_nodes if a >= 0 else 1 for a in slots]
        look = [self.agents[a].flips if a >= 0 else False for a in slots]
        noise = [self.agents[a].noise if a >= 0 else 0.0 for a in slots]
        pair = [*policies, -1, -1][:2]
        policy, other_policy = (empty_policy() if a < 0 else self.agents[a].network for a in pair)
        policy_work, other_policy_work = (self._take_policy_work(a) for a in pair)
        seats = codes[games.seats][:, np.arange(rules.players) % rules.sides]
        first = layout.first_player_code(rules)
        play_games(
            self._new_state(),
            np.ascontiguousarray(seats),
            seeds,
            np.full(len(seeds), first),
            nets[0],
            works[0],
            nets[1],
            works[1],
            np.array(nodes),
            np.array(look),
            np.array(noise),
            policy,
            policy_work,
            other_policy,
            other_policy_work,
            np.zeros(1, np.uint64),
            new_tally(),
            games.winners,
            games.reasons,
            games.decisions,
            games.luck,
        )
        for a, work in zip(slots, works, strict=True):
            self._free_works[a].append(work)
        for a, scratch in zip(pair, (policy_work, other_policy_work), strict=True):
            self._free_policy_works[a].append(scratch)

    def deal(self, seed: int) -> Game:
        """A game just dealt, that can be recorded."""
        state = self._new_state()
        deal(state, np.uint64(seed), int(state[layout.FIRST_PLAYER]))
        game = Game.from_state(self.rules, state)
        game.seed, game.start = seed, state
        return game

    def play_game(self, seats: NDArray[np.int64], seed: int) -> tuple[Game, NDArray[np.float64]]:
        """One game as an object, move by move: the same game as in `play`, with its record, and the
        luck of each side.
        """
        if self._free_agents:
            agents = self._free_agents.pop()
        else:  # the first set of agents plays wherever one thread does
            agents = self.agents if not self.parallel else [self._agent(g) for g in self.given]
        game = self.deal(seed)
        streams = np.array([mix_stream(seed)], np.uint64)
        guesses = np.random.default_rng(seed)
        tally, luck = new_tally(), np.zeros((self.rules.sides, 2))
        start_luck(game.state, tally, luck)
        works: dict[int, Flips] = {}
        for a in dict.fromkeys(seats.tolist()):
            if hasattr(agents[a], "new_game"):
                agents[a].new_game(int(guesses.integers(1 << 63)))
        while not game.over:
            a = int(seats[self.rules.side_of(game.player)])
            agent = agents[a]
            if isinstance(agent, RuleAgent):
                plan = [int(choose_now(agent.kind, game.state, streams))]
            elif isinstance(agent, TurnAgent):
                net = agent.network(self.rules)
                if a not in works:
                    works[a] = self._take_work(a, net)
                work = works[a]
                _, length = search_flips(
                    game.state, net, work, agent.max_nodes, agent.flips, streams, 0, agent.noise
                )
                plan = work.outer.path[:length].tolist()
            elif isinstance(agent, PolicyAgent):
                plan = [agent.act(game)]
            else:  # it gets a game that its seat could be in, not this one
                guess = game.determinize(game.player, int(guesses.integers(1 << 63)))
                plan = agent.plan(guess) if hasattr(agent, "plan") else [int(agent.act(guess))]
            for action in plan:
                game.apply(action)
                add_luck(game.state, tally, luck)
        for a, work in works.items():
            self._free_works[a].append(work)
        self._free_agents.append(agents)
        return game, luck


@dataclass
class Job:
    """A stretch of games that a worker plays in one go.

    Attributes:
        seats: as in `Games`.
        seeds: uint64 (games,).
    """

    seats: NDArray[np.int64]
    seeds: NDArray[np.uint64]


def run_jobs(
    table: Table,
    jobs: Iterable[Job],
    *,
    workers: int = 1,
    record: str | Path | None = None,
) -> Iterator[Games]:
    """Play jobs on threads, and on all ranks of torchrun, and give their games, in order.

    Args:
        table: who plays what. Where `Table.parallel` is False, one thread plays, and every rank
            all games.
        jobs: the games; those after the last that is asked for may be played for nothing.
        workers: threads of each rank.
        record: a .jsonl file for the records of all games, which are then played one by one.

    Raises:
        ValueError: records are asked for of several ranks.
    """
    if ranks.size() > 1:
        if record is not None:
            raise ValueError("record: games are recorded by one process, not under torchrun")
        if table.parallel:
            yield from _play_shared(table, iter(jobs), workers)
            return
    if record is None and workers > 1 and table.parallel:
        with ThreadPoolExecutor(workers) as pool:
            yield from pool.map(lambda job: table.play(job.seats, job.seeds), jobs)
        return
    file: Any = nullcontext() if record is None else open(record, "w", encoding="utf-8")  # noqa: SIM115
    with file:
        for job in jobs:
            if record is None:
                yield table.play(job.seats, job.seeds)
            else:
                yield _play_recorded(table, job, file)


def _play_shared(table: Table, jobs: Iterator[Job], workers: int) -> Iterator[Games]:
    """A stretch of jobs at a time, shared out among the ranks; each then knows all the games."""
    size = ranks.size()
    with ThreadPoolExecutor(workers) as pool:
        while stretch := list(islice(jobs, size * workers)):
            mine = stretch[ranks.rank() :: size]
            played = ranks.gather(
                list(pool.map(lambda job: table.play(job.seats, job.seeds), mine))
            )
            for k in range(len(stretch)):
                yield played[k % size][k // size]


def _play_recorded(table: Table, job: Job, file: TextIO) -> Games:
    games = Games.empty(job.seats)
    for g in range(len(job.seeds)):
        game, luck = table.play_game(job.seats[g], int(job.seeds[g]))
        Table.tell(games, g, game, luck)
        names = [
            table.names[job.seats[g][table.rules.side_of(seat)]]
            for seat in range(table.rules.players)
        ]
        write_record(file, game.record(names))
    return games


class Match:
    """Games of a challenger against another agent on all other sides; arguments as of `Table`."""

    def __init__(
        self,
        agent: str | Agent,
        against: str | Agent,
        rules: Rules,
        *,
        seed: int = 1,
        two_ended: bool = False,
    ) -> None:
        self.table = Table([agent, against], rules, seed=seed, two_ended=two_ended)
        self.rules, self.seed, self.names = rules, seed, self.table.names
        self.two_ended = two_ended

    @property
    def unit_size(self) -> int:
        """Games in a unit: the challenger sits once on every side."""
        return self.rules.sides

    def job(self, units: range) -> Job:
        """The games of a stretch of units."""
        size = self.unit_size
        seats = np.tile(1 - np.eye(size, dtype=np.int64), (len(units), 1))
        return Job(seats, np.repeat(unit_seeds(self.seed, units), size))


def run_match(
    match: Match,
    units: int,
    *,
    workers: int = 1,
    sprt: Sprt | None = None,
    record: str | Path | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> Games:
    """Play all units, or as many as a sequential test needs.

    Args:
        match: who plays what.
        units: how many sets of games, at most.
        workers: threads.
        sprt: a test of the challenger's score that may end the match after any stretch of CHUNK
            units.
        record: a .jsonl file for the records of all games.
        progress: called with units done and the win rate so far.
    """
    jobs = (match.job(range(at, min(at + CHUNK, units))) for at in range(0, units, CHUNK))
    parts: list[Games] = []
    won = done = 0
    total = squares = 0.0
    for part in run_jobs(match.table, jobs, workers=workers, record=record):
        parts.append(part)
        won += int(challenger_won(part).sum())
        done += len(part.winners)
        if progress:
            progress(done // match.unit_size, won / done)
        if sprt:
            scores = unit_scores(match, part)
            total += float(scores.sum())
            squares += float((scores * scores).sum())
            if sprt.decision(sprt.llr(done // match.unit_size, total, squares)):
                break
    return Games.join(parts)


def challenger_won(games: Games) -> NDArray[np.bool_]:
    """Whether agent 0 won, game by game."""
    return games.winners == np.argmin(games.seats, axis=1)


def unit_scores(match: Match, games: Games) -> NDArray[np.float64]:
    """The challenger's score in each unit: a game that nobody won counts 1 / sides."""
    draws = (games.winners < 0) / match.rules.sides
    scores = (challenger_won(games) + draws).reshape(-1, match.unit_size).mean(axis=1)
    return np.asarray(scores, np.float64)


def unit_luck(match: Match, games: Games) -> NDArray[np.float64]:
    """The challenger's luck in each unit, drawn and flipped, less the mean of the other sides'."""
    size = match.unit_size
    own = np.argmin(games.seats, axis=1)
    mine = games.luck[np.arange(len(own)), own]
    others = (games.luck.sum(axis=1) - mine) / (size - 1)
    return np.asarray((mine - others).reshape(-1, size, 2).mean(axis=1))


def summary(match: Match, games: Games, seconds: float, sprt: Sprt | None = None) -> dict[str, Any]:
    """What a match says: the challenger's win rate with its interval, and how games ended."""
    size = match.unit_size
    won = challenger_won(games)
    sides = np.argmin(games.seats, axis=1)
    none = games.winners < 0
    truncated = games.reasons == layout.TURN_LIMIT
    stalemate = none & ~truncated
    units = won.reshape(-1, size).mean(axis=1).astype(np.float64)
    mean, low, high = mean_interval(units)
    result: dict[str, Any] = {
        "agent": match.names[0],
        "against": match.names[1],
        "players": match.rules.players,
        "rules": match.rules.to_dict(),
        "seed": match.seed,
        "games": len(won),
        "units": len(won) // size,
        "win_rate": mean,
        "interval": [low, high],
        "adjusted": adjusted(units, unit_luck(match, games)),
        "loss_rate": float((~won & ~none).mean()),
        "stalemate_rate": float(stalemate.mean()),
        "truncated_rate": float(truncated.mean()),
        "score_rate": float((won + none / match.rules.sides).mean()),
        "mean_decisions": float(games.decisions.mean()),
        "seat_win_rates": [float(won[sides == side].mean()) for side in range(size)],
        "two_ended": match.two_ended,
        "seconds": seconds,
    }
    if sprt:
        scores = unit_scores(match, games)
        llr = float(sprt.llr(len(scores), scores.sum(), (scores * scores).sum()))
        result["sprt"] = {
            "h0": sprt.low,
            "h1": sprt.high,
            "alpha": sprt.alpha,
            "beta": sprt.beta,
            "llr": llr,
            "bounds": list(sprt.bounds),
            "accepted": sprt.decision(llr),
        }
    return result


def check_numbers(games: int, workers: int, seed: int) -> None:
    """Refuse numbers out of range; the message names the argument."""
    if isinstance(games, bool) or not 1 <= games <= 100_000_000:
        raise ValueError(f"games: must be 1 to 100,000,000, got {games}")
    if not 1 <= workers <= 1024:
        raise ValueError(f"workers: must be 1 to 1024, got {workers}")
    if seed < 0:
        raise ValueError(f"seed: cannot be negative, got {seed}")


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
    sprt: Sprt | None = None,
    record: str | Path | None = None,
    plot: str | Path | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> dict[str, Any]:
    """Rate an agent against another; see `skipbo evaluate`.

    Args:
        agent: the challenger, an AGENT text or an object.
        against: who holds all other sides.
        games: how many games, rounded up to whole units; with a sequential test, at most.
        rules: what is played.
        players: overrides the rules' number of players.
        seed: where all randomness comes from.
        workers: threads.
        two_ended: evaluation only: two players draw from opposite ends of the draw pile.
        sprt: stop as soon as this test of the challenger's score is decided.
        record: a .jsonl file for the records of all games (they are then played one by one).
        plot: a .png, .svg or .pdf file for a picture of the result (needs matplotlib).
        progress: called with units done and the win rate so far.

    Raises:
        AgentError: no such agent.
        ValueError: a number out of range.
    """
    check_numbers(games, workers, seed)
    match = Match(agent, against, Rules.of(rules, players), seed=seed, two_ended=two_ended)
    if plot is not None:
        from training.plots import check_target, draw_match

        check_target(plot)
    units = -(-games // match.unit_size)
    start = time.perf_counter()
    played = run_match(match, units, workers=workers, sprt=sprt, record=record, progress=progress)
    result = summary(match, played, time.perf_counter() - start, sprt)
    if plot is not None:
        won = challenger_won(played).reshape(-1, match.unit_size).mean(axis=1)
        draw_match(plot, result, won, unit_luck(match, played))
    return result
