"""RLlib: the names its masked module asks for, every agent told its own end, and PPO trains."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ray.rllib")

from skipbo_env import skipbo_v0
from skipbo_env.adapters.rllib import SkipBoMultiAgentEnv
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
