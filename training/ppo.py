"""PPO self-play with masked logits: the learner, from top to bottom.

Proximal policy optimisation (Schulman et al., 2017, arXiv:1707.06347) of one network that plays all
seats. `games` games run side by side; an iteration plays `steps` decisions in each with the latest
policy and then learns from all of them `epochs` times. An action that is not legal has probability
exactly 0. What a seat is paid counts for its own decisions only: advantages are GAE (Schulman et
al., 2015, arXiv:1506.02438) along each seat's own trajectory, whoever moves in between, so they are
right for any number of players and teams.

On the win alone the first policies never start: nearly all their games deadlock. So each stock card
played pays a share of `shaping` at first, which falls to nothing. Or a teacher plays the first
iterations and is imitated: what it does, and where it searches also the actions that it finds
nearly as good. Or the policy plays them, and a teacher's search says of each legal action what it
is worth: what is made smaller then is how much the policy loses by that judgement in the mean, with
all actions weighed at once (as in AggreVaTe; Ross and Bagnell, 2014, arXiv:1406.5979) where PPO has
one noisy sample.

Everything random comes from (seed, iteration), and a checkpoint holds the games, so a run on one
thread can be stopped and resumed without a trace. Under torchrun every rank plays a stretch of the
games, and a gradient is the mean over all ranks' decisions.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from skipbo_env import SkipBoVectorEnv
from skipbo_env.agents.agent import (
    Agent,
    AgentError,
    PolicyAgent,
    RuleAgent,
    TurnAgent,
    check_plays,
    make_agent,
)
from skipbo_env.agents.heuristics import choose
from skipbo_env.agents.models import Model, empty_network
from skipbo_env.agents.policy import (
    ORDER,
    arrange_rows,
    num_inputs,
    num_outputs,
    real_action,
)
from skipbo_env.agents.turn import new_work, search, write_path
from skipbo_env.engine.jit import kernel
from skipbo_env.engine.layout import HEIGHT, PLAYER, TOP
from skipbo_env.engine.moves import (
    A_DISCARD2,
    A_END,
    A_END2,
    A_HAND,
    A_PASS,
    A_STOCK2,
    legal_words,
    other_board,
    own_board,
)
from training import ranks
from training.checkpoint import UNFIT, CheckpointError, load, whole
from training.config import ConfigError, PpoConfig
from training.export import export_model
from training.network import PolicyNetwork, check_device
from training.start import runs_up_to

ENDINGS = 48  # that a teacher's search tells apart
JUDGED = 20.0  # weight of a lost win probability, as long a gradient as PPO's with its deviation 1


def distribution(logits: torch.Tensor, masks: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Probabilities and log-probabilities of the legal actions, in float32 whatever the logits.

    Of an action that is not legal the probability is exactly 0, and the logarithm is 0 too, so that
    sums of their product are finite.

    Args:
        logits: (batch, actions).
        masks: bool, the same shape; at least one legal action a row.
    """
    legal = logits.float().masked_fill(~masks, -math.inf)
    logs = functional.log_softmax(legal, dim=-1).masked_fill(~masks, 0.0)
    return functional.softmax(legal, dim=-1), logs


@kernel
def draw(logits, inputs, orders, random, arranged, actions, logs):
    """Draw an action in every game from the softmax over the legal ones.

    Args:
        logits: float32 (games, actions), of the arranged table.
        inputs: float32 (games, inputs), which end with the mask.
        orders: int64 (games, ORDER), see `policy.arrange`.
        random: float64 (games,) in [0, 1).
        arranged: int64 (games,), filled: the action, as the arranged table has it.
        actions: int64 (games,), filled: the action.
        logs: float32 (games,), filled: its log-probability.
    """
    for i in range(len(actions)):
        row = logits[i]
        mask = inputs[i, inputs.shape[1] - len(row) :]
        highest = -np.inf
        for a in range(len(row)):
            if mask[a] > 0.0:
                highest = max(highest, row[a])
        total = 0.0
        for a in range(len(row)):
            if mask[a] > 0.0:
                total += np.exp(np.float64(row[a]) - highest)
        left = random[i] * total
        chosen = -1
        for a in range(len(row)):
            if mask[a] > 0.0 and (chosen < 0 or left >= 0.0):
                chosen = a
                left -= np.exp(np.float64(row[a]) - highest)
        arranged[i] = chosen
        actions[i] = real_action(chosen, orders[i])
        logs[i] = row[chosen] - highest - np.log(total)


@kernel
def advantages(
    rewards, players, ended, values, next_players, next_values, gamma, lam, seats, out, known
):
    """Generalised advantages, each along the trajectory of one seat.

    From a seat's decision to its next one in the same game it is paid for everybody's actions in
    between. The last decision of a seat before the batch ends has no successor unless the game ends
    or the seat is to move next; nothing is learned from it, and the one before takes its value.

    Args:
        rewards: float32 (steps, games, players): what each action paid every seat.
        players: int8 (steps, games): who acted.
        ended: bool (steps, games): whether the action ended the game.
        values: float32 (steps, games): of the position, for who acted.
        next_players: int64 (games,): who is to move after the last step.
        next_values: float32 (games,): the value for that seat.
        gamma: discount, a decision of the same seat.
        lam: lambda.
        seats: float64 (4, players), scratch space.
        out: float32 (steps, games), filled.
        known: bool (steps, games), filled: where there was a successor.
    """
    steps, games, players_n = rewards.shape
    paid, value, advantage, has_next = seats[0], seats[1], seats[2], seats[3]
    for g in range(games):
        for seat in range(players_n):
            paid[seat] = value[seat] = advantage[seat] = has_next[seat] = 0.0
        value[next_players[g]] = next_values[g]
        has_next[next_players[g]] = 1.0
        for t in range(steps - 1, -1, -1):
            if ended[t, g]:  # nobody is paid, or to move, after the end
                for seat in range(players_n):
                    paid[seat] = value[seat] = advantage[seat] = 0.0
                    has_next[seat] = 1.0
            for seat in range(players_n):
                paid[seat] += rewards[t, g, seat]
            seat = players[t, g]
            known[t, g] = has_next[seat] > 0.0
            if known[t, g]:
                delta = paid[seat] + gamma * value[seat] - values[t, g]
                advantage[seat] = delta + gamma * lam * advantage[seat]
            else:
                advantage[seat] = 0.0
            out[t, g] = advantage[seat]
            value[seat] = values[t, g]
            paid[seat] = 0.0
            has_next[seat] = 1.0


@kernel
def _weigh(work, inverse, temperature, target):
    """Turn 1 for the action that is done into the softmax over those of all endings noted."""
    best = work.top_values[0]
    total = 1.0
    for e in range(1, len(work.top_values)):
        value = work.top_values[e]
        if value == -np.inf:
            break
        write_path(work, work.top[e, 0], work.top[e, 1], work.path)
        a = inverse[work.path[0]]
        if target[a] == 0.0:  # the endings come best first
            target[a] = np.exp((value - best) / temperature)
            total += target[a]
    for a in range(len(target)):
        target[a] /= total


@kernel
def teach(
    states,
    masks,
    orders,
    kind,
    net,
    work,
    max_nodes,
    temperature,
    plans,
    at,
    lengths,
    inverse,
    streams,
    targets,
    arranged,
    actions,
    start,
    stop,
):
    """What the teacher does in some of the games, and how good it finds the other actions.

    Args:
        states: int32 (games, cells), none over.
        masks: int8 (games, actions).
        orders: int64 (games, ORDER), see `policy.arrange`.
        kind: a rule-based agent, or -1 for turn search.
        net: the network of the turn search.
        work: its scratch space, which notes the best endings.
        max_nodes: for the turn search.
        temperature: see targets.
        plans: int64 (games, n): the actions up to the next hidden card; kept from call to call.
        at: int64 (games,): how many of them are done.
        lengths: int64 (games,): how many there are.
        inverse: int64 (actions,), scratch space.
        streams: uint64 (games,), for rule-based agents.
        targets: float32 (games, arranged actions), filled with probabilities: the softmax of the
            best ending's logit that each action leads to, divided by the temperature. 1 for what is
            done in the midst of a plan, by rule-based agents, and where the temperature is 0.
        arranged: int64 (games,), filled with what is done, as the arranged table has it.
        actions: int64 (games,), filled with what is done.
        start: the first game of this call.
        stop: the game after its last.
    """
    for i in range(start, stop):
        target = targets[i]
        for a in range(masks.shape[1]):
            inverse[real_action(a, orders[i])] = a
        target[:] = 0.0
        searched = kind < 0 and at[i] >= lengths[i]
        if searched:
            _, lengths[i] = search(states[i], net, work, max_nodes, streams, i, 0.0)
            for k in range(lengths[i]):
                plans[i, k] = work.path[k]
            at[i] = 0
        if kind >= 0:
            actions[i] = choose(kind, states[i], legal_words(states[i]), streams, i)
        else:
            actions[i] = plans[i, at[i]]
            at[i] += 1
        arranged[i] = inverse[actions[i]]
        target[arranged[i]] = 1.0
        if searched and temperature > 0.0:
            _weigh(work, inverse, temperature, target)


@kernel
def _twin_value(state, work, action):
    """The logit of an action that a search did not look at, as its mirror image's is the same: the
    play on another building pile as high, or the discard on another empty pile.
    """
    pile = action & 3 if action < A_PASS else (action - A_STOCK2) & 3
    found = -np.inf
    for k in range(4):
        if A_END <= action < A_PASS or action >= A_END2:
            board = own_board(state, state[PLAYER])
            if action >= A_END2:
                board = other_board(state, state[PLAYER])
            same = state[board + TOP + pile] == 0 and state[board + TOP + k] == 0
        else:
            same = state[HEIGHT + pile] == state[HEIGHT + k]
        if same:
            found = max(found, work.first_values[action - pile + k])
    return found


@kernel
def judge(states, masks, orders, net, work, max_nodes, streams, targets, start, stop):
    """What a teacher's search finds each legal action worth, beside the best, in some of the games.

    Args:
        states: int32 (games, cells), none over.
        masks: int8 (games, actions).
        orders: int64 (games, ORDER), see `policy.arrange`.
        net: the network of the turn search.
        work: its scratch space, which notes the best ending after each first action.
        max_nodes: for the turn search.
        streams: uint64 (games,), unused.
        targets: float32 (games, arranged actions), filled: the win probability that an action
            gives away, below 0; 0 for the best and for those that are not legal. What the search
            did not come to counts as the worst that it found.
        start: the first game of this call.
        stop: the game after its last.
    """
    for i in range(start, stop):
        target = targets[i]
        search(states[i], net, work, max_nodes, streams, i, 0.0)
        best, worst = 0.0, 1.0
        for a in range(len(target)):
            real = real_action(a, orders[i])
            target[a] = -1.0
            if real >= masks.shape[1] or not masks[i, real]:
                continue
            logit = np.float64(work.first_values[real])
            if logit == -np.inf and real != A_PASS:
                logit = _twin_value(states[i], work, real)
            if logit != -np.inf:
                target[a] = 1.0 / (1.0 + np.exp(-logit))
                best = max(best, np.float64(target[a]))
                worst = min(worst, np.float64(target[a]))
        worst = min(worst, best)
        for a in range(len(target)):
            real = real_action(a, orders[i])
            if real >= masks.shape[1] or not masks[i, real]:
                target[a] = 0.0
            else:
                target[a] = (target[a] if target[a] >= 0.0 else worst) - best


class Teacher:
    """Whoever is imitated, or judges: a rule-based agent, the planner, or a model's turn search.

    Raises:
        ConfigError: no such agent, or one that does not play these rules.
    """

    def __init__(self, config: PpoConfig, states: NDArray[np.int32]) -> None:
        try:
            agent = make_agent(str(config.teacher))
            if not isinstance(agent, (RuleAgent, TurnAgent)):
                raise AgentError("agent: only rule-based agents and turn search can teach")
            check_plays(agent, config.rules)
            if config.teach_by == "judgement" and not isinstance(agent, TurnAgent):
                raise AgentError("agent: only turn search can judge; the others have no values")
        except AgentError as error:
            raise ConfigError(f"teacher: {error}") from None
        if isinstance(agent, TurnAgent):
            self.kind, self.network = -1, agent.network(config.rules)
        else:
            self.kind = agent.kind
            self.network = empty_network(config.players, config.rules.boards, 16, 32)
        self.config = config
        self.states = states
        # A share of the games for each thread, with its own scratch space.
        bounds = np.linspace(0, len(states), min(config.threads, len(states)) + 1).astype(int)
        self.shares = list(pairwise(bounds.tolist()))
        firsts = config.teach_by == "judgement"
        self.works = [
            new_work(states[0], self.network, config.max_nodes, ENDINGS, firsts=firsts)
            for _ in self.shares
        ]
        outputs = num_outputs(config.rules)
        self.inverse = np.zeros((len(self.shares), outputs), np.int64)
        self.plans = np.zeros((len(states), len(self.works[0].path)), np.int64)
        self.at, self.lengths = np.zeros((2, len(states)), np.int64)
        self.targets = np.zeros((len(states), outputs), np.float32)
        self.streams = np.zeros(len(states), np.uint64)

    def begin(self, streams: NDArray[np.int64]) -> None:
        """Forget the plans, and take new random streams, one a game: an iteration must not depend
        on the one before.
        """
        self.at[:] = self.lengths[:] = 0
        self.streams[:] = streams

    def act(
        self, masks: NDArray[np.int8], orders: NDArray[np.int64], arranged: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """What it does in every game, `arranged` filled with the same; sets `targets`."""
        actions = np.empty(len(self.states), np.int64)

        def share(k: int) -> None:
            teach(
                self.states,
                masks,
                orders,
                self.kind,
                self.network,
                self.works[k],
                self.config.max_nodes,
                self.config.teach_temperature,
                self.plans,
                self.at,
                self.lengths,
                self.inverse[k],
                self.streams,
                self.targets,
                arranged,
                actions,
                *self.shares[k],
            )

        self._share_out(share)
        return actions

    def judge(self, masks: NDArray[np.int8], orders: NDArray[np.int64]) -> None:
        """Set `targets` to what each action gives away in every game."""

        def share(k: int) -> None:
            judge(
                self.states,
                masks,
                orders,
                self.network,
                self.works[k],
                self.config.max_nodes,
                self.streams,
                self.targets,
                *self.shares[k],
            )

        self._share_out(share)

    def _share_out(self, work: Callable[[int], None]) -> None:
        if len(self.shares) == 1:
            work(0)
        else:
            with ThreadPoolExecutor(len(self.shares)) as pool:
                list(pool.map(work, range(len(self.shares))))


@dataclass
class Batch:
    """The decisions of one iteration, (steps, games).

    Attributes:
        inputs: arranged observations and masks, (steps, games, inputs), in the precision that is
            learned in.
        targets: of the arranged table's actions, (steps, games, actions): what the teacher finds
            good, or what each gives away (see `teach` and `judge`); without one (0,).
        actions: of the arranged table.
        logs: log-probability of the action when it was chosen; 0 with a teacher.
        values: what the network said.
        rewards: what the action paid every seat, (steps, games, players).
        players: who acted.
        ended: whether the action ended the game.
        next_values, next_players: of the positions after the last step, (games,).
        winners: the side of each game that ended, -1 for none.
        stock_cards: how many of the actions played one.
    """

    inputs: torch.Tensor
    targets: torch.Tensor
    actions: NDArray[np.int64]
    logs: NDArray[np.float32]
    values: NDArray[np.float32]
    rewards: NDArray[np.float32]
    players: NDArray[np.int8]
    ended: NDArray[np.bool_]
    next_values: NDArray[np.float32]
    next_players: NDArray[np.int64]
    winners: list[int]
    stock_cards: int


def normalised(gains: torch.Tensor) -> torch.Tensor:
    """A batch's advantages with mean 0 and deviation 1 over all ranks."""
    wide = gains.double()
    sums = torch.stack([wide.new_tensor(len(wide)), wide.sum(), wide.square().sum()])
    n, first, second = ranks.total(sums)
    mean = first / n
    deviation = (second / n - mean.square()).clamp_min(0.0).sqrt()
    return ((wide - mean) / (deviation + 1e-8)).float()


def variance(values: NDArray[np.float32]) -> float:
    """Of what all ranks bring; 0 of nothing."""
    wide = values.astype(np.float64)
    found = np.array([len(wide), wide.sum(), np.square(wide).sum()])
    n, first, second = sum(ranks.gather(found), np.zeros(3))
    return max(0.0, float(second / n - (first / n) ** 2)) if n else 0.0


def schedule(config: PpoConfig, iteration: int) -> dict[str, float]:
    """Learning rate, entropy weight and shaping of an iteration."""
    if iteration < config.teach:
        cosine = 0.5 * (1.0 + math.cos(math.pi * iteration / config.teach))
        rate = config.lr + (config.teach_lr - config.lr) * cosine
        weight = config.entropy * (1.0 - iteration / config.teach)
        if config.teach_by == "imitation":
            weight = 0.0
        return {"lr": rate, "entropy_weight": weight, "shaping": config.shaping}
    own = config.iterations - config.teach
    done = min((iteration - config.teach) / max(own - 1, 1), 1.0)
    cosine = 0.5 * (1.0 + math.cos(math.pi * done))
    left = 1.0 - done / config.shaping_share if config.shaping_share > 0 else 0.0
    return {
        "lr": config.lr_final + (config.lr - config.lr_final) * cosine,
        "entropy_weight": config.entropy * (1.0 - done),
        "shaping": config.shaping * max(left, 0.0),
    }


class Learner:
    """Network, optimiser, games and what has been counted; `iterate` is one round of playing and
    learning.
    """

    def __init__(self, config: PpoConfig) -> None:
        check_device(config.device)
        if config.games < ranks.size():
            raise ConfigError(f"games: {config.games} are too few for {ranks.size()} ranks")
        torch.manual_seed(config.seed)
        self.config, self.rules = config, config.rules
        self.mine = ranks.share(config.games)
        self.games = len(range(config.games)[self.mine])
        self.device = torch.device(config.device)
        self.network = PolicyNetwork(self.rules, config.hidden, config.hidden2).to(self.device)
        self.optimiser = torch.optim.Adam(self.network.parameters(), lr=config.lr, eps=1e-5)
        self.iteration = 0
        self.totals = {"games": 0.0, "decisions": 0.0, "seconds": 0.0, "cpu_seconds": 0.0}
        self.env = SkipBoVectorEnv(
            self.games,
            rules=self.rules,
            reward="shaped",
            copy=False,
            num_threads=min(config.threads, self.games),
        )
        seeds = np.random.SeedSequence(config.seed).generate_state(config.games, np.uint64)
        self.observations, self.infos = self.env.reset(seed=seeds[self.mine].tolist())
        self.teacher = Teacher(config, self.env.states) if config.teach else None
        self.precision = config.precision
        if config.precision == "auto":
            self.precision = str(ranks.gather(self.faster_precision())[0])

    # Playing ------------------------------------------------------------------------------------

    def autocast(self, precision: str | None = None) -> torch.autocast:
        """The context in which the network runs."""
        enabled = (precision or self.precision) == "bfloat16"
        return torch.autocast(self.device.type, torch.bfloat16, enabled=enabled)

    def faster_precision(self, trials: int = 3) -> str:
        """float32, or bfloat16 where this machine learns faster in it."""
        rows = min(self.config.batch_size, 4096)
        inputs = torch.rand((rows, num_inputs(self.rules)), device=self.device)
        seconds = {"float32": math.inf, "bfloat16": math.inf}
        for _ in range(trials):
            for precision in seconds:
                start = time.perf_counter()
                with self.autocast(precision):
                    logits, values = self.network(inputs)
                loss = logits.mean() + values.mean()
                loss.backward()
                loss.item()  # waits for a GPU
                seconds[precision] = min(seconds[precision], time.perf_counter() - start)
        self.optimiser.zero_grad(set_to_none=True)
        return min(seconds, key=lambda precision: seconds[precision])

    def play(self) -> Batch:
        """`steps` decisions in every game, by the latest policy on all seats or by the teacher."""
        config, env, device = self.config, self.env, self.device
        steps, games = config.steps, self.games
        teacher = self.teacher if self.iteration < config.teach else None
        random = np.random.default_rng([config.seed, self.iteration, 1])
        if teacher:
            teacher.begin(random.integers(1 << 63, size=config.games)[self.mine])
        env.shaped_weight = schedule(config, self.iteration)["shaping"]
        low = torch.bfloat16 if self.precision == "bfloat16" else torch.float32
        batch = Batch(
            inputs=torch.empty((steps, games, num_inputs(self.rules)), dtype=low, device=device),
            targets=torch.empty(
                (steps, games, num_outputs(self.rules)) if teacher else 0, device=device
            ),
            actions=np.empty((steps, games), np.int64),
            logs=np.zeros((steps, games), np.float32),
            values=np.empty((steps, games), np.float32),
            rewards=np.empty((steps, games, config.players), np.float32),
            players=np.empty((steps, games), np.int8),
            ended=np.empty((steps, games), np.bool_),
            next_values=np.empty(games, np.float32),
            next_players=np.empty(games, np.int64),
            winners=[],
            stock_cards=0,
        )
        orders = np.empty((games, ORDER), np.int64)
        arranged = np.empty((games, num_inputs(self.rules)), np.float32)
        actions = np.empty(games, np.int64)
        for t in range(steps + 1):
            masks = self.infos["action_mask"]
            arrange_rows(env.states, self.observations, masks, orders, arranged)
            inputs = torch.from_numpy(arranged).to(device, low, copy=True)
            with torch.no_grad(), self.autocast():
                logits, values = self.network(inputs)
            if t == steps:
                batch.next_values[:] = values.cpu().numpy()
                batch.next_players[:] = self.infos["player"]
                break
            if teacher and config.teach_by == "imitation":
                actions = teacher.act(masks, orders, batch.actions[t])
            else:
                if teacher:
                    teacher.judge(masks, orders)
                draw(
                    logits.cpu().numpy(),
                    arranged,
                    orders,
                    random.random(config.games)[self.mine],
                    batch.actions[t],
                    actions,
                    batch.logs[t],
                )
            if teacher:
                batch.targets[t] = torch.from_numpy(teacher.targets).to(device)
            of_own = actions < A_HAND
            of_partner = (actions >= A_STOCK2) & (actions < A_DISCARD2)
            batch.stock_cards += int(np.count_nonzero(of_own | of_partner))
            batch.inputs[t] = inputs
            batch.values[t] = values.cpu().numpy()
            batch.players[t] = self.infos["player"]
            self.observations, _, terminated, truncated, self.infos = env.step(actions)
            batch.rewards[t] = self.infos["rewards"]
            batch.ended[t] = terminated | truncated
            if "final_info" in self.infos:
                finals = self.infos["final_info"]
                batch.winners += finals["winner"][finals["_winner"]].tolist()
        return batch

    # Learning -----------------------------------------------------------------------------------

    def learn(self, batch: Batch) -> dict[str, float]:
        """Several passes over the decisions in random order; returns means over the last one."""
        config, device = self.config, self.device
        taught = self.iteration < config.teach
        imitated = taught and config.teach_by == "imitation"
        now = schedule(config, self.iteration)
        for group in self.optimiser.param_groups:
            group["lr"] = now["lr"]
        steps, games = batch.players.shape
        gains, known = np.empty((steps, games), np.float32), np.empty((steps, games), np.bool_)
        advantages(
            batch.rewards,
            batch.players,
            batch.ended,
            batch.values,
            batch.next_players,
            batch.next_values,
            config.gamma,
            config.lam,
            np.empty((4, config.players)),
            gains,
            known,
        )
        all_returns = gains + batch.values
        returns, gained, actions, old = (
            torch.from_numpy(part.ravel()).to(device)
            for part in (all_returns, gains, batch.actions, batch.logs)
        )
        inputs = batch.inputs.flatten(0, 1)
        targets = batch.targets.flatten(0, 1) if taught else None
        usable = np.flatnonzero(known.ravel())
        counts = ranks.gather(len(usable))
        # Batches of one size or a little less, none of them a small rest; some rank has a part in
        # each.
        batches = min(max(1, round(sum(counts) / config.batch_size)), max(counts))
        parameters = list(self.network.parameters())
        random = np.random.default_rng([config.seed, self.iteration, 2])
        told: list[torch.Tensor] = []
        for _ in range(config.teach_epochs if taught else config.epochs):
            told.clear()
            order = torch.from_numpy(random.permutation(usable)).to(device)
            # A few decisions may have no successor yet, none of them: then there is no batch.
            for rows in order.tensor_split(batches) if batches else ():
                part = inputs.index_select(0, rows)  # several times faster than indexing
                with self.autocast():
                    logits, value = self.network(part)
                probs, logs = distribution(logits, part[:, -logits.shape[1] :] > 0.0)
                log = logs.gather(-1, actions[rows][:, None])[:, 0]
                entropy = -(probs * logs).sum(-1)
                value_loss = (value - returns[rows]).square()
                ratio = (log - old[rows]).exp()
                if targets is not None and imitated:
                    policy_loss = -(targets[rows] * logs).sum(-1)
                elif targets is not None:
                    policy_loss = -JUDGED * (targets[rows] * probs).sum(-1)
                else:
                    gain = normalised(gained[rows])
                    cut = ratio.clamp(1.0 - config.clip, 1.0 + config.clip)
                    policy_loss = -torch.minimum(ratio * gain, cut * gain)
                loss = (
                    policy_loss - now["entropy_weight"] * entropy + config.value_weight * value_loss
                )
                self.optimiser.zero_grad(set_to_none=True)
                if ranks.size() == 1:
                    loss.mean().backward()
                else:
                    loss.sum().backward()
                    ranks.average_gradients(parameters, len(rows))
                torch.nn.utils.clip_grad_norm_(parameters, config.max_grad_norm)
                self.optimiser.step()
                with torch.no_grad():
                    # How far the policy moved, by Schulman's low-variance estimate of the KL.
                    moved = ratio - 1.0 - (log - old[rows])
                    clipped = (ratio - 1.0).abs() > config.clip
                    numbers = (policy_loss, value_loss, entropy, moved, clipped)
                    told.append(torch.stack([number.double().sum() for number in numbers]))
        names = ("policy_loss", "value_loss", "entropy", "kl", "clip_share")
        sums = ranks.total(torch.stack(told).sum(0)).tolist() if told else [0.0] * len(names)
        result = {name: s / max(sum(counts), 1) for name, s in zip(names, sums, strict=True)}
        if imitated:  # there is no old policy
            result["kl"] = result["clip_share"] = 0.0
        spread, left = (variance(part[known]) for part in (all_returns, gains))
        result["explained_variance"] = 1.0 - left / spread if spread > 0 else 0.0
        result["left_out_share"] = 1.0 - sum(counts) / (steps * config.games)
        return result

    def iterate(self) -> dict[str, float]:
        """Play, learn, and say how it went; numbers for the log."""
        start, cpu = time.perf_counter(), time.process_time()
        batch = self.play()
        played = time.perf_counter()
        learned = self.learn(batch)
        seconds = time.perf_counter() - start
        now = schedule(self.config, self.iteration)
        of_ranks = ranks.gather((batch.winners, batch.stock_cards, time.process_time() - cpu))
        winners = [winner for won, _, _ in of_ranks for winner in won]
        games, decisions = len(winners), len(batch.players) * self.config.games
        self.iteration += 1
        self.totals["games"] += games
        self.totals["decisions"] += decisions
        self.totals["seconds"] += seconds
        self.totals["cpu_seconds"] += sum(used for _, _, used in of_ranks)
        numbers = {
            **self.totals,
            **now,
            **learned,
            "no_winner_rate": winners.count(-1) / max(games, 1),
            "seat0_rate": winners.count(0) / max(games, 1),
            "stock_cards_per_decision": sum(cards for _, cards, _ in of_ranks) / decisions,
            "games_per_s": games / seconds,
            "decisions_per_s": decisions / seconds,
            "play_share": (played - start) / seconds,
            "learn_share": 1.0 - (played - start) / seconds,
        }
        return {
            "iteration": self.iteration,
            **{name: float(value) for name, value in numbers.items()},
        }

    # Keeping ------------------------------------------------------------------------------------

    def agent(self) -> Agent:
        """What has been learned so far, to play with."""
        players, teams, boards = self.config.players, self.config.teams, self.rules.boards
        policy = self.network.compiled()
        return PolicyAgent(Model("candidate", Path(), {}, players, teams, boards, None, "", policy))

    def weights(self) -> dict[str, torch.Tensor]:
        """What `best.pt` keeps of it."""
        return self.network.state_dict()

    def export(self, folder: Path, trained: dict[str, Any]) -> None:
        """Write it as a model folder."""
        export_model(folder, self.network.compiled(), self.config, trained)

    def start_from(self, name: str) -> list[dict[str, Any]]:
        """Take over a run's network, optimiser and totals; schedule and games begin anew.

        Returns:
            The settings of the runs behind it, the first one first.

        Raises:
            CheckpointError: there is no such run of this learner, or it does not fit the settings.
        """
        folder = Path(name)
        earlier = runs_up_to(folder, self.config.algo)
        state = load(folder / "checkpoint.pt")
        try:
            self._load(state)
        except CheckpointError as error:
            raise CheckpointError(f"start_from: {folder}: {error}") from None
        return earlier

    def state(self) -> dict[str, Any]:
        """Everything that a checkpoint needs to go on as if nothing had happened, with the games of
        all ranks.
        """
        parts = ranks.gather(self.env.snapshot())
        return {
            "network": self.network.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "iteration": self.iteration,
            "totals": dict(self.totals),
            "precision": self.precision,
            "rows": {
                name: torch.from_numpy(np.concatenate([part[name] for part in parts]))
                for name in parts[0]
            },
        }

    def load(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint's state.

        Raises:
            CheckpointError: a part is missing or has the shape of other settings.
        """
        self._load(state)
        try:
            rows = {name: part.numpy() for name, part in state["rows"].items()}
            if any(len(part) != self.config.games for part in rows.values()):
                raise ValueError(f"rows: needs {self.config.games} games")
            rows = {name: part[self.mine] for name, part in rows.items()}
            self.observations, self.infos = self.env.restore(rows)
            if state["precision"] not in ("float32", "bfloat16"):
                raise ValueError(f"precision: {state['precision']!r:.40}")
            self.precision = str(state["precision"])
            self.iteration = whole(state["iteration"])
        except UNFIT as error:
            raise CheckpointError(f"does not fit these settings ({str(error)[:80]})") from None

    def _load(self, state: dict[str, Any]) -> None:
        try:
            self.network.load_state_dict(state["network"])
            self.optimiser.load_state_dict(state["optimiser"])
            self.totals = {name: float(state["totals"][name]) for name in self.totals}
        except UNFIT as error:
            text = " ".join(str(error).split())[:80]
            raise CheckpointError(f"does not fit these settings ({text})") from None
