"""TorchRL: the batch is the vector environment, resets are partial, the actor keeps to masks."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchrl")

from torchrl.envs import check_env_specs

from skipbo_env import IllegalAction, SkipBoVectorEnv
from skipbo_env.adapters.torchrl import SkipBoTorchRLEnv, masked_actor
from skipbo_env.rules import Rules
from tests.pages import run_page

SHORT = Rules(stock_size=2)


class First(torch.nn.Module):
    """Logits that fall with the action's id: plays before discards, so games end."""

    def forward(self, seen: torch.Tensor) -> torch.Tensor:
        return (-1e4 * torch.arange(125.0)).expand(*seen.shape[:-1], 125)


@pytest.mark.parametrize("observation", ["features", "cards"])
def test_specs(observation: str) -> None:
    check_env_specs(SkipBoTorchRLEnv(4, observation=observation))


def test_rollouts_are_the_vector_environment_s() -> None:
    kwargs: dict[str, Any] = {
        "rules": SHORT,
        "players": 3,
        "reward": "shaped",
        "opponents": "simple",
    }
    env, native = SkipBoTorchRLEnv(4, **kwargs), SkipBoVectorEnv(4, **kwargs)
    env.set_seed(7)
    actor = masked_actor(First())
    steps = env.rollout(60, actor, break_when_any_done=False)
    expected, infos = native.reset(seed=7)
    ended = 0
    for t in range(60):
        now, then = steps[:, t], steps[:, t]["next"]
        assert np.array_equal(now["observation"], expected)
        assert np.array_equal(now["action_mask"], infos["action_mask"] > 0)
        actions = now["action"].numpy()
        assert np.array_equal(actions, infos["action_mask"].argmax(axis=1))
        expected, rewards, terminated, truncated, infos = native.step(actions)
        assert np.array_equal(then["reward"].squeeze(-1), rewards.astype(np.float32))
        assert np.array_equal(then["terminated"].squeeze(-1), terminated)
        assert np.array_equal(then["done"].squeeze(-1), terminated | truncated)
        for row in range(4):
            last = infos["final_obs"][row] if then["done"][row] else expected[row]
            assert np.array_equal(then["observation"][row], last)
            if then["done"][row]:
                ended += 1
                assert then["action_mask"][row].all()
    assert ended > 3


def test_the_learner_is_paid_for_wins_and_for_losses() -> None:
    env = SkipBoTorchRLEnv(16, rules=SHORT, opponents="greedy", seat=0)
    env.set_seed(1)
    steps = env.rollout(80, masked_actor(First()), break_when_any_done=False)["next"]
    over = steps["done"].squeeze(-1)
    assert set(steps["reward"].squeeze(-1)[over].tolist()) == {1.0, -1.0}
    assert not steps["reward"].squeeze(-1)[~over].any()


def test_random_actions_are_legal() -> None:
    env = SkipBoTorchRLEnv(8, rules=SHORT)
    steps = env.rollout(50, break_when_any_done=False)
    assert steps["action_mask"].gather(-1, steps["action"].unsqueeze(-1)).all()


def test_stored_entries_stay_as_they_are() -> None:
    env = SkipBoTorchRLEnv(4, rules=SHORT)
    kept = []
    entries = env.reset()
    for _ in range(20):
        entries = env.rand_action(entries)
        both, entries = env.step_and_maybe_reset(entries)
        kept.append((both, copy.deepcopy(both)))
    for now, then in kept:
        assert (now == then).all()


def test_seeds() -> None:
    env, twin = SkipBoTorchRLEnv(3, rules=SHORT), SkipBoTorchRLEnv(2, rules=SHORT)
    env.set_seed(5)
    twin.set_seed(5)
    actor = masked_actor(First())
    first = env.rollout(30, actor, break_when_any_done=False)
    assert (first[:2] == twin.rollout(30, actor, break_when_any_done=False)).all()
    env.set_seed(5)
    assert (first == env.rollout(30, actor, break_when_any_done=False)).all()


@pytest.mark.parametrize("scale", [0.0, 1e4])
def test_the_actor_s_odds(scale: float) -> None:
    torch.manual_seed(0)
    mask = torch.rand(5, 125) < 0.1
    mask[0], mask[1] = False, True
    mask[0, 9] = True
    mask[2:, 4] = True
    actor = masked_actor(torch.nn.Identity())
    from tensordict import TensorDict

    entries = TensorDict({"observation": scale * torch.randn(5, 125), "action_mask": mask}, [5])
    odds = actor.get_dist(entries)
    assert (odds.probs[~mask] == 0).all()
    assert torch.isfinite(odds.entropy()).all()
    for _ in range(20):
        assert mask.gather(-1, actor(entries.clone())["action"].unsqueeze(-1)).all()


def test_settings_and_actions_are_checked() -> None:
    for name, value in {"opponents": None, "copy": False, "autoreset_mode": "Disabled"}.items():
        with pytest.raises(ValueError, match=name):
            SkipBoTorchRLEnv(2, **{name: value})
    env = SkipBoTorchRLEnv(2)
    entries = env.reset()
    entries["action"] = torch.tensor([124, 124])
    with pytest.raises(IllegalAction, match="row 0"):
        env.step(entries)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the collector's, of its own parts
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = run_page("docs/libraries/torchrl.md", tmp_path, monkeypatch)
    assert np.isfinite(names["losses"]).all()
    assert len(names["losses"]) == 16
    # The table of three, played at random: at its end each agent is told, and they sum to zero.
    last = names["game"][-1]["next"]
    paid = [float(last[f"player_{seat}", "reward"]) for seat in range(3)]
    if last["done"].all() and any(paid):
        assert sorted(paid) == [-0.5, -0.5, 1.0]


def test_every_seat_of_a_wrapped_table_is_told_the_end() -> None:
    import warnings

    from tensordict import TensorDictBase
    from torchrl.envs import PettingZooWrapper

    from skipbo_env import skipbo_v0

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        env = PettingZooWrapper(
            skipbo_v0.env(players=3, rules=SHORT), use_mask=True, group_map=None, seed=3
        )

    def first(tensordict: TensorDictBase) -> TensorDictBase:
        for seat in range(3):
            mask = tensordict[f"player_{seat}", "action_mask"]
            chosen = mask.int().argmax(-1)
            spec = env.full_action_spec[f"player_{seat}", "action"]
            if chosen.shape != spec.shape:  # one-hot
                chosen = torch.nn.functional.one_hot(chosen, mask.shape[-1]).to(spec.dtype)
            tensordict[f"player_{seat}", "action"] = chosen
        return tensordict

    winners = set()
    for _ in range(4):
        game = env.rollout(600, first)["next"]
        paid = [float(game[f"player_{seat}", "reward"].sum()) for seat in range(3)]
        assert sorted(paid) == [-0.5, -0.5, 1.0]
        winners.add(paid.index(1.0))
    assert len(winners) > 1
