"""Tianshou: masks where its DQN family reads them, and what each seat of a table is told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tianshou")

from skipbo_env import IllegalAction, SkipBoEnv, skipbo_v0
from skipbo_env.adapters.tianshou import SkipBoTianshouEnv
from skipbo_env.rules import Rules
from tests.pages import run_page

SHORT = Rules(stock_size=2)


def test_it_is_the_gymnasium_environment_under_other_names() -> None:
    env = SkipBoTianshouEnv(rules=SHORT, opponents="greedy", reward="shaped")
    plain = SkipBoEnv(rules=SHORT, opponents="greedy", reward="shaped")
    stored = []
    ends = set()
    for seed in range(12):
        seen, (expected, info) = env.reset(seed=seed)[0], plain.reset(seed=seed)
        over = False
        while not over:
            assert env.observation_space.contains(seen)
            assert np.array_equal(seen["obs"], expected)
            assert np.array_equal(seen["mask"], info["action_mask"] > 0)
            stored.append((seen, {key: value.copy() for key, value in seen.items()}))
            action = int(seen["mask"].argmax())
            seen, reward, terminated, truncated, _ = env.step(action)
            expected, paid, *_, info = plain.step(action)
            assert reward == paid
            over = terminated or truncated
        assert seen["mask"].all()
        assert info["winner"] >= 0
        ends.add(info["winner"] == plain.player)
    assert ends == {True, False}
    for now, then in stored:
        assert all(np.array_equal(now[key], then[key]) for key in now)


def test_settings_and_actions_are_checked() -> None:
    for name in ("dict_obs", "illegal"):
        with pytest.raises(ValueError, match=name):
            SkipBoTianshouEnv(**{name: True})
    env = SkipBoTianshouEnv()
    env.reset()
    with pytest.raises(IllegalAction):
        env.step(124)


def test_exploration_and_choice_keep_to_the_mask() -> None:
    import torch
    from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
    from tianshou.data import Batch
    from tianshou.utils.net.common import Net
    from tianshou.utils.torch_utils import policy_within_training_step

    env = SkipBoTianshouEnv()
    space = env.observation_space["obs"]
    net = Net(state_shape=space.shape, action_shape=125, hidden_sizes=[16])
    policy = DiscreteQLearningPolicy(model=net, action_space=env.action_space, eps_training=0.5)
    games = [env.reset(seed=seed)[0] for seed in range(32)]
    batch = Batch(obs=Batch(games), info=Batch())
    with torch.no_grad(), policy_within_training_step(policy):
        for _ in range(10):
            actions = policy.add_exploration_noise(policy(batch).act, batch)
            assert all(game["mask"][action] for game, action in zip(games, actions, strict=True))


def test_targets_keep_to_the_mask() -> None:
    """Illegal actions are worth 1e4 to this network, legal ones what their numbers say."""
    import torch
    from tianshou.algorithm.modelfree.dqn import DQN, DiscreteQLearningPolicy
    from tianshou.algorithm.optim import AdamOptimizerFactory
    from tianshou.data import Batch, ReplayBuffer
    from tianshou.utils.torch_utils import policy_within_training_step

    env = SkipBoTianshouEnv(rules=SHORT, opponents="play-first")
    buffer = ReplayBuffer(40)
    seen, _ = env.reset(seed=1)
    for _ in range(40):
        action = int(seen["mask"].argmax())
        after, reward, terminated, truncated, _ = env.step(action)
        buffer.add(
            Batch(
                obs=seen,
                act=action,
                rew=reward,
                terminated=terminated,
                truncated=truncated,
                obs_next=after,
                info={},
            )
        )
        seen = env.reset()[0] if terminated or truncated else after
    masks = torch.from_numpy(np.stack([buffer.obs_next[i]["mask"] for i in range(40)]))
    worth = torch.where(masks, torch.arange(125) / 125, 1e4)

    class Known(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.unused = torch.nn.Parameter(torch.zeros(1))

        def forward(self, obs, state=None, info=None):  # type: ignore[no-untyped-def]
            return worth, state

    policy = DiscreteQLearningPolicy(model=Known(), action_space=env.action_space)
    algorithm = DQN(policy=policy, optim=AdamOptimizerFactory(lr=1e-3), target_update_freq=5)
    with policy_within_training_step(policy):
        targets = algorithm._target_q(buffer, np.arange(40))
    last = torch.where(masks, torch.arange(125), -1).max(dim=1).values
    assert not masks.all(dim=1).all()
    assert torch.allclose(targets, last / 125)


def test_every_seat_of_a_wrapped_table_is_told_the_end() -> None:
    from tianshou.env.pettingzoo_env import PettingZooEnv

    env = PettingZooEnv(skipbo_v0.env(players=3, rules=SHORT))
    winners = set()
    for seed in range(6):
        seen, _ = env.reset(seed=seed)
        over = False
        while not over:
            seen, rewards, terminated, truncated, _ = env.step(int(np.argmax(seen["mask"])))
            over = terminated or truncated
        assert sorted(rewards) == [-0.5, -0.5, 1.0]
        winners.add(rewards.index(1.0))
    assert len(winners) > 1


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = run_page("docs/libraries/tianshou.md", tmp_path, monkeypatch)
    assert len(names["losses"]) == 100
    assert np.isfinite(names["losses"]).all()
    assert names["collector"].collect_step >= 3200
