"""TD(lambda) self-play of afterstate values with turn search: the learner, from top to bottom.

An iteration plays games with a running mean of the network's weights (compiled,
`selfplay.self_play`) and learns once from every ending in them. The mean plays, is evaluated and
ships, because turn search takes the highest of some hundred values and so picks out whatever noise
the last gradient steps left in them.

What is learned is V: the
probability that the mover's side wins, judged at an ending, just before a hidden card is seen. Its
target is the lambda-return over the same seat's later endings: the value of the ending that the
search chose next, mixed with what came after, up to the game's result (1, 0, or 1 / sides for a
draw).

Everything random comes from (seed, iteration, game), so a run can be stopped and resumed without a
trace, and how many threads play makes no difference.
"""

from __future__ import annotations

import copy
import math
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from skipbo_env.agents.agent import Agent, TurnAgent, make_agent
from skipbo_env.agents.heuristics import HEURISTICS
from skipbo_env.agents.models import Model
from skipbo_env.agents.network import Network, num_slots
from skipbo_env.agents.play import NETWORK
from skipbo_env.agents.turn import Work, new_work
from skipbo_env.engine.layout import State, new_state
from training import ranks, selfplay
from training.checkpoint import UNFIT, CheckpointError, whole
from training.config import Config, ConfigError
from training.export import export_model
from training.network import ValueNetwork, check_device
from training.start import TOTALS, Table, carry_over, find_start

CHUNK = 32  # games that a thread plays in one go; part of the seeds, so a constant
ENDINGS_PER_GAME = 1200


@dataclass
class Batch:
    """The endings of one iteration.

    Attributes:
        slots: int16 (n, slots), the rows of each ending.
        targets: float32 (n,), lambda-returns.
        values: float32 (n,), what the network said when it chose them.
        stats: float64 (STATS,), see `selfplay`.
    """

    slots: NDArray[np.int16]
    targets: NDArray[np.float32]
    values: NDArray[np.float32]
    stats: NDArray[np.float64]


PAST = "past"


def _rival(name: str, config: Config) -> int | Network:
    """A rival by its name: a rule-based kind or a network.

    Raises:
        ConfigError: there is no such agent, or it can't play these games in compiled code.
    """
    if name in HEURISTICS:
        return HEURISTICS.index(name)
    try:
        agent = make_agent(name)
    except ValueError as error:
        raise ConfigError(f"rivals: {error}") from None
    if not isinstance(agent, TurnAgent) or agent.noise:
        raise ConfigError(f"rivals: {name!r:.60} is no rule-based agent and no model")
    if not agent.plays(config.rules):
        raise ConfigError(f"rivals: {name!r:.60} does not play this table")
    return agent.network(config.rules)


class Player:
    """Plays self-play games on threads; each has its own scratch space.

    Attributes:
        past: earlier networks of the run, the latest last.
    """

    def __init__(self, config: Config, network: Network) -> None:
        for name in ("games", "warm_start_games"):
            if -(-getattr(config, name) // CHUNK) < ranks.size():
                raise ConfigError(
                    f"{name}: {getattr(config, name)} are too few for {ranks.size()} ranks, which "
                    f"play {CHUNK} at a time"
                )
        self.config = config
        self.template: State = new_state(config.rules)
        rivals = {name: _rival(name, config) for name in config.rivals if name != PAST}
        self.kinds = {name: kind for name, kind in rivals.items() if isinstance(kind, int)}
        self.nets = {name: net for name, net in rivals.items() if isinstance(net, Network)}
        self.past: list[Network] = []

        def works(networks: list[Network]) -> list[tuple[Work, ...]]:
            """Scratch space for each thread."""
            return [
                tuple(new_work(self.template, net, config.max_nodes) for net in networks)
                for _ in range(config.threads)
            ]

        self.works = [work for (work,) in works([network])]
        # A rival's width may be another: one more scratch space for each.
        self.rival_works = [
            dict(zip(self.nets, of_thread, strict=True))
            for of_thread in works(list(self.nets.values()))
        ]
        self.past_works = [work for (work,) in works([network])]
        self.free = list(range(config.threads))

    def _rival_of(self, iteration: int, chunk: int) -> str | None:
        """Who has the other sides in a chunk's games; None where all seats learn."""
        config = self.config
        if not config.rivals:
            return None
        before, after = (math.floor(k * config.rival_share + 1e-9) for k in (chunk, chunk + 1))
        if before == after:
            return None
        name = config.rivals[(iteration + before) % len(config.rivals)]
        return None if name == PAST and not self.past else name

    def _chunk(
        self, network: Network, iteration: int, chunk: int, games: int, teacher: int
    ) -> Batch:
        config = self.config
        seeds = np.random.SeedSequence([config.seed, iteration, chunk]).generate_state(
            games, np.uint64
        )
        capacity = ENDINGS_PER_GAME * games
        slots = np.empty((capacity, num_slots(config.players, config.rules.boards)), np.int16)
        seats = np.empty(capacity, np.int8)
        values, tops, targets = (np.empty(capacity, np.float32) for _ in range(3))
        stats = np.zeros(selfplay.STATS)
        done = schedule(config, iteration)
        worker = self.free.pop()
        rival, rival_net, rival_work = -1, network, self.past_works[worker]
        name = None if teacher >= 0 else self._rival_of(iteration, chunk)
        if name == PAST:
            rng = np.random.default_rng([config.seed, iteration, chunk])
            rival, rival_net = NETWORK, self.past[rng.integers(len(self.past))]
        elif name in self.nets:
            rival, rival_net = NETWORK, self.nets[name]
            rival_work = self.rival_works[worker][name]
        elif name is not None:
            rival = self.kinds[name]
        n = selfplay.self_play(
            self.template.copy(),
            network,
            self.works[worker],
            seeds,
            1.0 if teacher >= 0 else done["lam"],
            0.0 if teacher >= 0 else done["explore"],
            0.0 if teacher >= 0 else done["blur"],
            1.0 / config.rules.sides if config.draw is None else config.draw,
            teacher,
            config.noise,
            rival,
            rival_net,
            rival_work,
            config.max_nodes,
            np.zeros(1, np.uint64),
            slots,
            seats,
            values,
            tops,
            targets,
            stats,
        )
        self.free.append(worker)
        return Batch(slots[:n].copy(), targets[:n].copy(), values[:n].copy(), stats)

    def play(self, network: Network, iteration: int) -> Batch:
        """This rank's games of one iteration, the same for any number of threads. All ranks
        together play the same games as one alone.
        """
        config = self.config
        warm = iteration < config.warm_start
        teacher = HEURISTICS.index(config.teacher) if warm else -1
        games = config.warm_start_games if warm else config.games
        chunks = [(k, min(CHUNK, games - at)) for k, at in enumerate(range(0, games, CHUNK))]
        with ThreadPoolExecutor(config.threads) as pool:
            parts = list(
                pool.map(
                    lambda job: self._chunk(network, iteration, job[0], job[1], teacher),
                    chunks[ranks.rank() :: ranks.size()],
                )
            )
        return Batch(
            np.concatenate([part.slots for part in parts]),
            np.concatenate([part.targets for part in parts]),
            np.concatenate([part.values for part in parts]),
            sum((part.stats for part in parts), np.zeros(selfplay.STATS)),
        )


def schedule(config: Config, iteration: int) -> dict[str, float]:
    """Learning rate, lambda and exploration of an iteration."""
    done = min(iteration / max(config.iterations - 1, 1), 1.0)
    cosine = 0.5 * (1.0 + math.cos(math.pi * done))
    return {
        "lr": config.lr_final + (config.lr - config.lr_final) * cosine,
        "lam": config.lam + (config.lam_final - config.lam) * done,
        "explore": config.explore * (1.0 - done),
        "blur": config.blur * (1.0 - done),
    }


class Learner:
    """Network, optimiser and what has been counted; `iterate` is one round of playing and
    learning.
    """

    def __init__(self, config: Config) -> None:
        check_device(config.device)
        torch.manual_seed(config.seed)
        self.config = config
        self.network = ValueNetwork(
            config.players, config.rules.boards, config.hidden, config.hidden2
        )
        self.network.to(config.device)
        self.average = copy.deepcopy(self.network).requires_grad_(False)
        self.optimiser = torch.optim.Adam(self.network.parameters(), lr=config.lr)
        self.iteration = 0
        self.totals = dict.fromkeys(TOTALS, 0.0)
        self.player = Player(config, self.average.compiled())

    def start_from(self, name: str) -> list[dict[str, Any]]:
        """Take over weights and totals of a run or a model, and of a run at the same table the
        optimiser too; the schedule begins anew.

        Returns:
            The settings of the runs behind it, the first one first.

        Raises:
            CheckpointError: there is no such run or model, or its widths are not those of the
                settings.
        """
        source = find_start(name)
        table = Table(self.config.players, self.config.teams)
        try:
            if source.state is not None and source.table == table:
                self.load({**source.state, "iteration": 0})
                return source.earlier
            self.network.take(carry_over(source.network, source.table, table))
        except (CheckpointError, RuntimeError) as error:
            text = str(error).splitlines()[0][:80]
            raise CheckpointError(f"start_from: {source.path}: {text}") from None
        self.average.load_state_dict(self.network.state_dict())
        self.totals = dict(source.totals)
        return source.earlier

    def iterate(self) -> dict[str, float]:
        """Play, learn, and say how it went; numbers for the log."""
        start, cpu = time.perf_counter(), time.process_time()
        config = self.config
        if PAST in config.rivals and self.iteration and self.iteration % config.past_every == 0:
            self.player.past = [*self.player.past, self.average.compiled()][-config.past_kept :]
        batch = self.player.play(self.average.compiled(), self.iteration)
        played = time.perf_counter()
        loss = self.learn(batch)
        seconds = time.perf_counter() - start
        used = ranks.gather(time.process_time() - cpu)
        stats = sum(ranks.gather(batch.stats), np.zeros(selfplay.STATS))
        games, decisions = stats[selfplay.GAMES], stats[selfplay.DECISIONS]
        self.iteration += 1
        self.totals["games"] += float(games)
        self.totals["decisions"] += float(decisions)
        self.totals["seconds"] += seconds
        self.totals["cpu_seconds"] += sum(used)
        n = max(sum(ranks.gather(len(batch.targets))), 1)
        numbers = {
            "iteration": self.iteration,
            **self.totals,
            **schedule(self.config, self.iteration - 1),
            "loss": loss,
            "td_error": math.sqrt(stats[selfplay.SQUARED] / n),
            "no_winner_rate": stats[selfplay.NO_WINNER] / games,
            **_win_rates(stats, self.config.rules.sides),
            "decisions_per_game": decisions / games,
            "endings_per_game": n / games,
            "endings_judged_per_game": stats[selfplay.ENDINGS] / games,
            "nodes_per_game": stats[selfplay.NODES] / games,
            "cut_games": stats[selfplay.CUT],
            "games_per_s": games / seconds,
            "decisions_per_s": decisions / seconds,
            "play_share": (played - start) / seconds,
            "learn_share": 1.0 - (played - start) / seconds,
            **calibration(batch),
        }
        return {
            name: int(value) if name == "iteration" else float(value)
            for name, value in numbers.items()
        }

    def learn(self, batch: Batch) -> float:
        """One pass over the endings in random order; returns the mean loss."""
        config = self.config
        device = config.device
        rate = schedule(config, self.iteration)["lr"]
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        n = len(batch.targets)
        order = np.random.default_rng([config.seed, self.iteration]).permutation(n)
        slots = torch.from_numpy(batch.slots[order]).to(device)
        targets = torch.from_numpy(batch.targets[order]).to(device)
        losses = [torch.zeros((), device=device)]
        parameters = list(self.network.parameters())
        weights: list[torch.Tensor] = list(parameters)
        mean: list[torch.Tensor] = list(self.average.parameters())
        low = config.precision == "bfloat16"
        share = max(config.batch_size // ranks.size(), 1)  # of each rank in a step
        for step in range(max(ranks.gather(-(-n // share)))):
            part = slice(step * share, (step + 1) * share)
            with torch.autocast(slots.device.type, torch.bfloat16, enabled=low):
                logits = self.network(slots[part].int())
            loss = functional.binary_cross_entropy_with_logits(
                logits, targets[part], reduction="mean" if ranks.size() == 1 else "sum"
            )
            self.optimiser.zero_grad(set_to_none=True)
            loss.backward()
            if ranks.size() > 1:
                ranks.average_gradients(parameters, len(logits))
            self.optimiser.step()
            with torch.no_grad():  # else the mean would keep the graph of every step
                torch._foreach_lerp_(mean, weights, 1.0 - config.average)
            losses.append(loss.detach() * (len(logits) if ranks.size() == 1 else 1))
        told = ranks.gather((float(torch.stack(losses).sum()), n))
        return sum(loss for loss, _ in told) / max(sum(n for _, n in told), 1)

    def agent(self) -> Agent:
        """The mean of the weights, to play with: by turn search alone, since looking behind flips
        takes three times as long.
        """
        config, network = self.config, self.average.compiled()
        boards = config.rules.boards
        model = Model("candidate", Path(), {}, config.players, config.teams, boards, network, "")
        return TurnAgent(model, flips=False)

    def weights(self) -> dict[str, torch.Tensor]:
        """What `best.pt` keeps: the mean of the weights."""
        return self.average.state_dict()

    def export(self, folder: Path, trained: dict[str, Any]) -> None:
        """Write the mean of the weights as a model folder."""
        export_model(folder, self.average.compiled(), self.config, trained)

    def state(self) -> dict[str, Any]:
        """Everything that a checkpoint needs to go on as if nothing had happened."""
        return {
            "network": self.network.state_dict(),
            "average": self.average.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "iteration": self.iteration,
            "totals": dict(self.totals),
            "past": [_tensors(network) for network in self.player.past],
        }

    def load(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint's state.

        Raises:
            CheckpointError: a part is missing or has the shape of other settings.
        """
        try:
            self.network.load_state_dict(state["network"])
            self.average.load_state_dict(state["average"])
            self.optimiser.load_state_dict(state["optimiser"])
            self.iteration = whole(state["iteration"])
            self.totals = {name: float(state["totals"][name]) for name in TOTALS}
            past = state.get("past", [])  # older runs have none
            self.player.past = [
                Network(*(net[name].numpy() for name in Network._fields)) for net in past
            ]
        except UNFIT as error:
            text = " ".join(str(error).split())[:80]
            raise CheckpointError(f"does not fit these settings ({text})") from None


def _tensors(network: Network) -> dict[str, torch.Tensor]:
    """A compiled network as a checkpoint keeps it."""
    return {name: torch.from_numpy(array) for name, array in network._asdict().items()}


def _win_rates(stats: NDArray[np.float64], sides: int) -> dict[str, float]:
    """Shares of games that each side won where all seats learn, and that the learner won against
    rivals, in all and by its side.
    """
    with_rival = stats[selfplay.WITH_RIVAL]
    alone = stats[selfplay.GAMES] - with_rival
    rates = {}
    for side in range(sides):
        if alone:
            rates[f"seat{side}_rate"] = stats[selfplay.WON + side] / alone
        if learned := stats[selfplay.LEARNED + side]:
            rates[f"rival_seat{side}_rate"] = stats[selfplay.LEARNED_WON + side] / learned
    if with_rival:
        won = stats[selfplay.LEARNED_WON : selfplay.LEARNED_WON + sides].sum()
        rates["rival_rate"] = won / with_rival
    return rates


def calibration(batch: Batch, bins: int = 10) -> dict[str, float]:
    """How far the values were from what came of them: the mean gap over ten bins, weighted by their
    endings, over all ranks.
    """
    which = np.minimum((batch.values * bins).astype(int), bins - 1)
    sums = np.stack(
        [
            np.bincount(which, weights=part, minlength=bins)
            for part in (np.ones(len(which)), batch.values, batch.targets)
        ]
    )
    count, values, targets = sum(ranks.gather(sums), np.zeros((3, bins)))
    return {"calibration_gap": float(np.abs(values - targets).sum() / max(count.sum(), 1))}
