"""AgileRL: the vector environment as it is; masks reach the learner, and so do wins and losses."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("agilerl")

import torch

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it deprecates parts of its own on import
    from agilerl.algorithms import DQN, PPO
    from agilerl.rollouts import collect_rollouts

from skipbo_env import SkipBoVectorEnv
from skipbo_env.rules import Rules
from tests.pages import run_page

SHORT = Rules(stock_size=2)

pytestmark = pytest.mark.filterwarnings("ignore")  # AgileRL's own, of many kinds


def learner(env: SkipBoVectorEnv, **kwargs: Any) -> PPO:
    return PPO(
        env.single_observation_space,
        env.single_action_space,
        num_envs=env.num_envs,
        learn_step=64 * env.num_envs,
        **kwargs,
    )


class Watched(SkipBoVectorEnv):
    """Remembers what it answered; its games are the same in every run."""

    def reset(self, *, seed: int | None = None, **kwargs: Any) -> Any:
        answer = super().reset(seed=1 if seed is None else seed, **kwargs)
        self.told = [answer]
        return answer

    def step(self, actions: Any) -> Any:
        answer = super().step(actions)
        self.told.append(answer)
        return answer


@pytest.mark.parametrize("observation", ["features", "cards"])
def test_rollouts_hold_what_the_environment_said(observation: str) -> None:
    torch.manual_seed(0)
    env = Watched(16, rules=SHORT, opponents="play-first", players=3, observation=observation)
    agent = learner(env)
    collect_rollouts(agent, env)
    kept = agent.rollout_buffer.buffer
    paid = set()
    for t, (before, after) in enumerate(zip(env.told, env.told[1:], strict=False)):
        observations, infos = before[0], before[-1]
        _, rewards, terminated, truncated, _ = after
        now = kept[t]
        assert np.array_equal(now["observations"].numpy(), observations)
        assert np.array_equal(now["action_masks"].numpy() > 0, infos["action_mask"] > 0)
        actions = now["actions"].numpy().astype(int).reshape(-1)
        assert infos["action_mask"][np.arange(16), actions].all()
        assert np.allclose(now["rewards"].numpy().reshape(-1), rewards)
        assert np.array_equal(now["dones"].numpy().reshape(-1) > 0, terminated | truncated)
        ended = terminated | truncated
        assert not rewards[~ended].any()
        paid |= set(rewards[ended].tolist())
    assert t == 63
    assert {1.0, -0.5} <= paid <= {1.0, -0.5, 0.0}
    assert np.isfinite(agent.learn())


# Up to logits of some 10,000. AgileRL takes a finite number off what is illegal, so that a network
# that has diverged beyond that number could choose it all the same.
@pytest.mark.parametrize("scale", [0.0, 1.0, 1e2])
def test_illegal_actions_are_never_drawn(scale: float) -> None:
    env = SkipBoVectorEnv(8, rules=SHORT, opponents="play-first")
    seen, infos = env.reset(seed=1)
    mask = infos["action_mask"].copy()
    mask[0] = 0
    mask[0, 9] = 1  # one legal action
    mask[1] = 1  # all of them, as in a finished row
    agent = learner(env)
    with torch.no_grad():
        for weight in agent.actor.head_net.parameters():
            weight *= 100 * scale
    for _ in range(20):
        actions, log_odds, entropy, values = agent.get_action(seen, action_mask=mask)
        assert mask[np.arange(8), actions].all()
        for numbers in (log_odds, entropy, values):
            assert np.isfinite(np.asarray(numbers)).all()
        assert log_odds[0] == pytest.approx(0.0, abs=1e-6)


def test_dqn_explores_and_chooses_within_the_mask() -> None:
    env = SkipBoVectorEnv(8, rules=SHORT, opponents="play-first")
    agent = DQN(env.single_observation_space, env.single_action_space)
    seen, infos = env.reset(seed=1)
    for step in range(40):
        actions = agent.get_action(seen, epsilon=step % 2, action_mask=infos["action_mask"])
        assert infos["action_mask"][np.arange(8), actions].all()
        seen, _, _, _, infos = env.step(actions)


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = run_page("docs/libraries/agilerl.md", tmp_path, monkeypatch)
    assert len(names["losses"]) == 3
    assert np.isfinite(names["losses"]).all()
    assert len(names["fitnesses"]) == 2
    assert np.isfinite(names["fitnesses"]).all()
    assert len(names["population"]) == 2
    for agent in names["population"]:
        assert agent.steps >= 2048
        for weights in agent.actor.parameters():
            assert torch.isfinite(weights).all()
