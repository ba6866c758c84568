"""RLlib: the names its masked module asks for, every agent told its own end, and PPO trains."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ray.rllib")

from skipbo_env import skipbo_v0
from skipbo_env.adapters.rllib import MODULE, SkipBoMultiAgentEnv, masked_ppo_config
from skipbo_env.rules import Rules
from tests.pages import run_page

SHORT = Rules(stock_size=2)


@pytest.mark.parametrize("observation", ["features", "cards"])
def test_games_are_the_pettingzoo_environment_s(observation: str) -> None:
    kwargs = {"players": 3, "rules": SHORT, "observation": observation}
    env, plain = SkipBoMultiAgentEnv(kwargs), skipbo_v0.env(**kwargs)
    winners = set()
    stored = []
    for seed in range(6):
        seen, _ = env.reset(seed=seed)
        plain.reset(seed=seed)
        totals = dict.fromkeys(plain.possible_agents, 0.0)
        over = False
        while not over:
            (agent,) = seen
            assert agent == plain.agent_selection
            expected = plain.last()[0]
            assert env.observation_spaces[agent].contains(seen[agent])
            assert np.array_equal(seen[agent]["observations"], expected["observation"])
            assert np.array_equal(seen[agent]["action_mask"], expected["action_mask"])
            assert seen[agent]["observations"].dtype == np.float32
            stored.append((seen, copy.deepcopy(seen)))
            action = int(expected["action_mask"].argmax())
            plain.step(action)
            seen, rewards, terminated, truncated, _ = env.step({agent: action})
            for name, paid in rewards.items():
                totals[name] += paid
            over = terminated["__all__"] or truncated["__all__"]
        winner = f"player_{plain.game.result['winner']}"
        winners.add(winner)
        assert totals == {name: 1.0 if name == winner else -0.5 for name in totals}
        assert set(seen) == set(totals)  # each sees the end, with no action left
        assert not any(last["action_mask"].any() for last in seen.values())
    assert len(winners) > 1
    for now, then in stored:
        for agent in now:
            assert all(np.array_equal(now[agent][key], then[agent][key]) for key in now[agent])


@pytest.mark.parametrize("reward", ["win", "shaped", "score"])
def test_agents_are_paid_for_their_own_side_since_they_last_acted(reward: str) -> None:
    kwargs = {"players": 3, "rules": SHORT, "reward": reward}
    env, plain = SkipBoMultiAgentEnv(kwargs), skipbo_v0.raw_env(**kwargs)
    (agent,) = env.reset(seed=3)[0]
    plain.reset(seed=3)
    over = False
    while not over:
        action = plain.legal_actions()[0]
        plain.step(action)
        seen, rewards, terminated, truncated, _ = env.step({agent: action})
        over = terminated["__all__"] or truncated["__all__"]
        for name in plain.possible_agents if over else seen:
            assert rewards[name] == pytest.approx(plain._cumulative_rewards[name])
        assert set(rewards) == set(seen)
        (agent,) = seen if not over else (agent,)
    assert min(rewards.values()) < 0 < max(rewards.values())


@pytest.mark.filterwarnings("ignore")  # Ray's own, of many kinds
@pytest.mark.parametrize("scale", [0.0, 1.0, 1e4])
def test_the_module_gives_illegal_actions_odds_of_zero(scale: float) -> None:
    """Also where one action is legal; and a seat at the end, which has none, breaks nothing."""
    import torch
    from ray.rllib.core.columns import Columns

    env = SkipBoMultiAgentEnv({"rules": SHORT})
    (seen,) = env.reset(seed=1)[0].values()
    spec = masked_ppo_config(rules=SHORT).rl_module_spec.rl_module_specs[MODULE]
    spec.observation_space = env.observation_spaces["player_0"]
    spec.action_space = env.action_spaces["player_0"]
    module = spec.build()
    masks = torch.from_numpy(np.tile(seen["action_mask"], (4, 1)))
    masks[1] = 0
    masks[1, 9] = 1
    masks[2] = 1
    masks[3] = 0
    with torch.no_grad():
        for weight in module.pi.parameters():
            weight *= 100 * scale
        seats = torch.from_numpy(np.tile(seen["observations"], (4, 1)))
        entries = {Columns.OBS: {"observations": seats, "action_mask": masks}}
        logits = module.forward_exploration(entries)[Columns.ACTION_DIST_INPUTS]
        dist = module.get_exploration_action_dist_cls().from_logits(logits)
        odds, entropy = logits.softmax(-1), dist.entropy()
    assert (odds[:3][masks[:3] == 0] == 0).all()
    assert torch.isfinite(odds).all()
    assert torch.isfinite(entropy).all()
    assert entropy[1] == pytest.approx(0.0, abs=1e-6)
    for _ in range(20):
        drawn = dist.sample()[:3]
        assert masks[:3].gather(-1, drawn.unsqueeze(-1)).bool().all()


@pytest.mark.filterwarnings("ignore")  # Ray's own, of many kinds
def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import ray

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    try:
        names = run_page("docs/libraries/rllib.md", tmp_path, monkeypatch)
    finally:
        ray.shutdown()
    assert len(names["losses"]) == 3
    assert np.isfinite(names["losses"]).all()
    result = names["result"]
    assert result["num_env_steps_sampled_lifetime"] >= 3000
