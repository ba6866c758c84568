"""PPO with masks for one seat of Skip-Bo, in one file: CleanRL's way, over `SkipBoVectorEnv`.

    python docs/libraries/cleanrl_ppo.py --opponent play-first --steps 250000

Reads from top to bottom: settings, network, rollout, advantages, update, evaluation. The learner
sits in a random seat of every game, so a step leads from one of its decisions to its next one, and
the advantages need no thought about whose value comes next. Needs the extra `train`.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass

import numpy as np
import torch
import tyro
from torch import nn

from skipbo_env import SkipBoVectorEnv


@dataclass
class Args:
    """Settings, each an option of the command line."""

    rules: str = "short"
    """a preset's name; "short" has stocks of 10 cards"""
    players: int = 2
    """seats at the table"""
    opponent: str = "play-first"
    """who plays the other seats"""
    seed: int = 1
    """of the games, the network and the sampling"""
    steps: int = 250_000
    """decisions of the learner in all"""
    games: int = 32
    """games at once"""
    horizon: int = 64
    """decisions in each game between two updates"""
    minibatch: int = 256
    """decisions in a gradient step"""
    epochs: int = 4
    """passes over each rollout"""
    learning_rate: float = 1e-3
    """Adam's, falling to 0 in a line"""
    gae_lambda: float = 0.9
    """weight of longer returns in the advantages"""
    clip: float = 0.2
    """how far the ratio of new and old odds may move"""
    entropy: float = 0.01
    """weight of the entropy bonus, falling to 0 in a line"""
    value: float = 0.5
    """weight of the value's loss"""
    max_grad_norm: float = 0.5
    """bound of the gradient's length"""
    hidden: int = 128
    """units in each of the two hidden layers"""
    evaluation_games: int = 1000
    """games of the evaluation at the end"""
    save: str = ""
    """a file for the network's weights; none if empty"""


class Agent(nn.Module):
    """Policy and value on one body."""

    def __init__(self, inputs: int, actions: int, hidden: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh()
        )
        self.policy = nn.Linear(hidden, actions)
        self.critic = nn.Linear(hidden, 1)
        nn.init.orthogonal_(self.policy.weight, 0.01)  # all legal actions alike at first

    def forward(self, seen: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Log-odds of the actions (rows, actions) and values of the decisions (rows,)."""
        body = self.body(seen)
        return masked_log_odds(self.policy(body), mask), self.critic(body).squeeze(-1)


def masked_log_odds(logits: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Logarithms of the odds; illegal actions, where the mask is False, have odds of exactly 0."""
    # The lowest number, not infinity: in the entropy 0 times infinity would be no number.
    logits = logits.float()  # half precision would overflow below
    return logits.masked_fill(~mask, torch.finfo(logits.dtype).min).log_softmax(-1)


def entropy(log_odds: torch.Tensor) -> torch.Tensor:
    """Of each row; illegal actions have odds of exactly 0 and add nothing."""
    return -(log_odds.exp() * log_odds).sum(-1)


def advantages_of(
    rewards: torch.Tensor,
    values: torch.Tensor,
    ends: torch.Tensor,
    after: torch.Tensor,
    gae_lambda: float,
) -> torch.Tensor:
    """Generalised advantage estimation, without discount: games end.

    Args:
        rewards: of each decision (horizon, games).
        values: of each decision, by the policy that made it.
        ends: 1 where the game ended with the decision, else 0.
        after: values of the decisions that come next (games,).
        gae_lambda: weight of longer returns.
    """
    advantages = torch.zeros_like(rewards)
    running = torch.zeros_like(after)
    for t in reversed(range(len(rewards))):
        goes_on = 1.0 - ends[t]
        running = rewards[t] + goes_on * (after + gae_lambda * running) - values[t]
        advantages[t], after = running, values[t]
    return advantages


def evaluate(agent: Agent, args: Args, seed: int) -> dict[str, float]:
    """Win rate of the most likely actions over fresh games, with its 95% interval."""
    env = SkipBoVectorEnv(
        min(args.evaluation_games, 256),
        rules=args.rules,
        players=args.players,
        opponents=args.opponent,
    )
    seen, infos = env.reset(seed=seed)
    # The first games of each row, as many in every row: quick games must not count more often.
    quota = -(-args.evaluation_games // env.num_envs)
    played = np.zeros(env.num_envs, dtype=np.int64)
    won = drawn = 0
    while (played < quota).any():
        with torch.no_grad():
            log_odds, _ = agent(torch.from_numpy(seen), torch.from_numpy(infos["action_mask"]) > 0)
        seen, rewards, terminated, truncated, infos = env.step(log_odds.argmax(-1).numpy())
        counted = (terminated | truncated) & (played < quota)
        played += counted
        won += int((rewards[counted] > 0).sum())
        drawn += int((rewards[counted] == 0).sum())
    games = int(played.sum())
    rate = won / games
    error = 1.96 * (rate * (1 - rate) / games) ** 0.5
    return {
        "games": games,
        "win_rate": rate,
        "low": rate - error,
        "high": rate + error,
        "draw_rate": drawn / games,
    }


def train(args: Args) -> Agent:
    """Train by the settings; prints a line now and then."""
    torch.manual_seed(args.seed)
    env = SkipBoVectorEnv(
        args.games,
        rules=args.rules,
        players=args.players,
        opponents=args.opponent,
        reward="shaped",  # stock cards pay; the end alone would never be reached by first policies
    )
    inputs = env.single_observation_space.shape[0]
    actions = int(env.single_action_space.n)
    agent = Agent(inputs, actions, args.hidden)
    optimizer = torch.optim.Adam(agent.parameters(), lr=args.learning_rate, eps=1e-5)

    shape = (args.horizon, args.games)
    seen = torch.zeros(*shape, inputs)
    mask = torch.zeros(*shape, actions, dtype=torch.bool)
    chosen = torch.zeros(shape, dtype=torch.int64)
    old_log_odds, values, rewards, ends = (torch.zeros(shape) for _ in range(4))
    bonus = torch.zeros(shape)

    first, infos = env.reset(seed=args.seed)
    next_seen, next_mask = torch.from_numpy(first), torch.from_numpy(infos["action_mask"]) > 0
    updates = max(args.steps // (args.horizon * args.games), 1)
    began, finished, won = time.perf_counter(), 0, 0
    for update in range(updates):
        left = 1 - update / updates
        optimizer.param_groups[0]["lr"] = left * args.learning_rate

        # Rollout.
        for t in range(args.horizon):
            seen[t], mask[t] = next_seen, next_mask
            with torch.no_grad():
                log_odds, values[t] = agent(next_seen, next_mask)
            chosen[t] = torch.multinomial(log_odds.exp(), 1).squeeze(-1)
            old_log_odds[t] = log_odds.gather(-1, chosen[t][:, None]).squeeze(-1)
            answer = env.step(chosen[t].numpy())
            arrived, paid, terminated, truncated, infos = answer
            next_seen, next_mask = (
                torch.from_numpy(arrived),
                torch.from_numpy(infos["action_mask"]) > 0,
            )
            rewards[t], ends[t] = torch.from_numpy(paid), torch.from_numpy(terminated | truncated)
            bonus[t] = 0.0
            if truncated.any():  # cut off, not lost: the value goes on from the last observation
                last = torch.from_numpy(np.stack(list(infos["final_obs"][truncated])))
                with torch.no_grad():
                    every = torch.ones(len(last), actions, dtype=torch.bool)
                    bonus[t, torch.from_numpy(truncated)] = agent(last, every)[1]
            finished += int((terminated | truncated).sum())
            won += int((paid[terminated] > 0).sum())  # a stock card pays far less than a loss costs

        with torch.no_grad():
            after = agent(next_seen, next_mask)[1]
        advantages = advantages_of(rewards + bonus, values, ends, after, args.gae_lambda)
        returns = advantages + values

        # Update.
        flat = [x.flatten(0, 1) for x in (seen, mask, chosen, old_log_odds, advantages, returns)]
        size = args.horizon * args.games
        for _ in range(args.epochs):
            for batch in torch.randperm(size).split(args.minibatch):
                b_seen, b_mask, b_chosen, b_old, b_adv, b_return = (x[batch] for x in flat)
                log_odds, value = agent(b_seen, b_mask)
                ratio = (log_odds.gather(-1, b_chosen[:, None]).squeeze(-1) - b_old).exp()
                b_adv = (b_adv - b_adv.mean()) / (b_adv.std() + 1e-8)
                clipped = ratio.clamp(1 - args.clip, 1 + args.clip)
                policy_loss = -torch.min(b_adv * ratio, b_adv * clipped).mean()
                value_loss = 0.5 * (value - b_return).square().mean()
                spread = entropy(log_odds).mean()
                loss = policy_loss + args.value * value_loss - left * args.entropy * spread
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), args.max_grad_norm)
                optimizer.step()

        if update % max(updates // 10, 1) == 0 or update == updates - 1:
            steps = (update + 1) * size
            print(
                f"decisions {steps:>9,}  games {finished:>6,}  won {won / max(finished, 1):6.1%}  "
                f"loss {loss.item():8.4f}  value {value_loss.item():7.4f}  "
                f"entropy {spread.item():6.3f}  {steps / (time.perf_counter() - began):8,.0f}/s",
                flush=True,
            )
            finished = won = 0
    return agent


def main(args: Args) -> dict[str, float]:
    """Train, save and evaluate; the last line printed is the evaluation as JSON."""
    agent = train(args)
    if args.save:
        torch.save(agent.state_dict(), args.save)
    result = evaluate(agent, args, seed=args.seed + 1_000_000)
    print(json.dumps(result))
    return result


if __name__ == "__main__":
    main(tyro.cli(Args, description=__doc__))
