"""Stable-Baselines3: the VecEnv is the vector environment, and MaskablePPO learns on it."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sb3_contrib")

from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3.common.vec_env import VecMonitor

from skipbo_env import IllegalAction, SkipBoVectorEnv
from skipbo_env.adapters.sb3 import SkipBoVecEnv
from skipbo_env.rules import Rules
from tests.pages import run_page

SHORT = Rules(stock_size=2)


def first(masks: np.ndarray) -> np.ndarray:
    return masks.argmax(axis=1)


@pytest.mark.parametrize("observation", ["features", "cards"])
def test_it_is_the_vector_environment_of_the_same_seeds(observation: str) -> None:
    kwargs: dict[str, Any] = {
        "rules": SHORT,
        "players": 3,
        "reward": "shaped",
        "opponents": "simple",
        "observation": observation,
    }
    env, native = SkipBoVecEnv(5, **kwargs), SkipBoVectorEnv(5, **kwargs)
    assert env.seed(7) == [7, 8, 9, 10, 11]
    seen, (expected, infos) = env.reset(), native.reset(seed=7)
    ended = 0
    for _ in range(80):
        assert np.array_equal(seen, expected)
        assert seen.dtype == env.observation_space.dtype
        assert np.array_equal(env.action_masks(), infos["action_mask"] > 0)
        actions = first(env.action_masks())
        expected, rewards, terminated, truncated, infos = native.step(actions)
        seen, paid, dones, rows = env.step(actions)
        assert paid.dtype == np.float32
        assert np.array_equal(paid, rewards.astype(np.float32))
        assert np.array_equal(dones, terminated | truncated)
        for row in range(5):
            if not dones[row]:
                assert rows[row] == {}
                continue
            ended += 1
            end = infos["final_info"]
            assert np.array_equal(rows[row]["terminal_observation"], infos["final_obs"][row])
            assert np.array_equal(rows[row]["rewards"], end["rewards"][row])
            assert rows[row]["winner"] == end["winner"][row]
            assert rows[row]["TimeLimit.truncated"] is bool(truncated[row])
    assert ended > 5


def test_the_learner_is_paid_for_wins_and_for_losses() -> None:
    env = SkipBoVecEnv(16, rules=SHORT, players=3, opponents="greedy", seat=1)
    env.seed(1)
    env.reset()
    paid = set()
    for _ in range(60):
        _, rewards, dones, infos = env.step(first(env.action_masks()))
        assert not rewards[~dones].any()
        for row in np.flatnonzero(dones):
            expected = 1.0 if infos[row]["winner"] == 1 else -0.5
            assert rewards[row] == expected == infos[row]["rewards"][1]
            paid.add(expected)
    assert paid == {1.0, -0.5}


def test_the_turn_limit_is_a_truncation() -> None:
    env = SkipBoVecEnv(4, rules=Rules(max_turns=4), opponents="random")
    env.reset()
    ends = []
    for _ in range(40):
        _, _, _, infos = env.step(env.action_masks()[:, ::-1].argmax(axis=1) * -1 + 124)
        ends += [info["TimeLimit.truncated"] for info in infos if info]
    assert ends
    assert all(ends)


def test_what_was_given_stays_as_it_was() -> None:
    env = SkipBoVecEnv(4, rules=SHORT)
    given: list[Any] = [env.reset(), env.action_masks()]
    kept = copy.deepcopy(given)
    for _ in range(30):
        answer = (*env.step(first(env.action_masks())), env.action_masks())
        given.append(answer)
        kept.append(copy.deepcopy(answer))
    for now, then in zip(given, kept, strict=True):
        assert str(now) == str(then)
        if isinstance(now, np.ndarray):
            assert np.array_equal(now, then)
        else:
            assert all(np.array_equal(now[k], then[k]) for k in (0, 1, 2, 4))


def test_masks_reach_maskable_ppo_through_wrappers() -> None:
    env = VecMonitor(SkipBoVecEnv(3))
    env.reset()
    assert is_masking_supported(env)
    masks = get_action_masks(env)
    assert masks.shape == (3, 125)
    assert masks.dtype == np.bool_
    for row in (0, 2):
        assert (
            np.flatnonzero(masks[row]).tolist()
            == env.env_method("game", indices=[row])[0].legal_actions()
        )
    assert np.array_equal(env.env_method("action_masks", indices=1)[0], masks[1])


@pytest.mark.parametrize("scale", [0.0, 1.0, 1e4])
def test_maskable_ppo_gives_illegal_actions_odds_of_zero(scale: float) -> None:
    import torch

    env = SkipBoVecEnv(6, rules=SHORT)
    model = MaskablePPO("MlpPolicy", env, n_steps=8, batch_size=16, seed=1, device="cpu")
    seen = env.reset()
    masks = env.action_masks()
    masks[0] = False
    masks[0, 7] = True  # one legal action
    masks[1] = True  # all of them, as in a finished row
    with torch.no_grad():
        model.policy.action_net.weight *= 100 * scale
        dist = model.policy.get_distribution(model.policy.obs_to_tensor(seen)[0], masks)
        odds = dist.distribution.probs
        assert (odds[~torch.from_numpy(masks)] == 0).all()
        assert torch.allclose(odds.sum(-1), torch.ones(6))
        entropy = dist.entropy()
    assert torch.isfinite(entropy).all()
    assert entropy[0] == 0
    if scale == 0:
        assert entropy[1] == pytest.approx(np.log(125), abs=1e-4)
    for _ in range(20):
        actions, _ = model.predict(seen, action_masks=masks)
        assert masks[np.arange(6), actions].all()


def test_attributes() -> None:
    env = SkipBoVecEnv(3, reward="shaped")
    env.set_attr("shaped_weight", 0.25)
    assert env.get_attr("shaped_weight") == [0.25] * 3
    assert env.env.shaped_weight == 0.25
    with pytest.raises(ValueError, match="indices"):
        env.set_attr("shaped_weight", 1.0, indices=[1])
    with pytest.raises(AttributeError):
        env.set_attr("shaped_wait", 1.0)
    assert not env.has_attr("shaped_wait")
    with pytest.raises(AttributeError, match="env_method"):
        env.env_method("shuffle")
    assert env.env_is_wrapped(object) == [False] * 3
    env.close()


def test_settings_and_actions_are_checked() -> None:
    for name, value in {"opponents": None, "copy": False, "autoreset_mode": "Disabled"}.items():
        with pytest.raises(ValueError, match=name):
            SkipBoVecEnv(2, **{name: value})
    env = SkipBoVecEnv(2)
    env.reset()
    with pytest.raises(IllegalAction, match="row 0"):
        env.step(np.array([124, 124]))


def test_pictures() -> None:
    pytest.importorskip("PIL")
    env = SkipBoVecEnv(2, render_mode="rgb_array")
    env.reset()
    picture = env.render()
    assert picture is not None
    assert picture.ndim == 3


def test_a_single_environment_trains_without_an_adapter() -> None:
    import gymnasium

    env = gymnasium.make("skipbo_env:SkipBo-v0", rules=SHORT, opponents="random")
    model = MaskablePPO("MlpPolicy", env, n_steps=128, batch_size=64, seed=1, device="cpu")
    model.learn(256)
    assert model.num_timesteps == 256


@pytest.mark.slow
def test_the_page_beats_play_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = run_page("docs/libraries/sb3.md", tmp_path, monkeypatch)
    losses = names["model"].logger.name_to_value
    assert all(np.isfinite(value) for value in losses.values())
    # 500 games: 95% of them lie within 4.4 points of the true rate.
    assert names["win_rate"] > 0.5 + 0.044
