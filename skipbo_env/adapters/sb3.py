"""Stable-Baselines3: `SkipBoVecEnv`, many games in one compiled call, with masks for MaskablePPO.

sb3-contrib's MaskablePPO asks a `VecEnv` for `action_masks` row by row; this one has them at hand.
A single `SkipBo-v0` needs no adapter, since it has `action_masks()` too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvStepReturn

from skipbo_env.vector_env import SkipBoVectorEnv


class SkipBoVecEnv(VecEnv):
    """One learner's seat in each of `num_envs` games, as Stable-Baselines3 steps them.

    Args:
        num_envs: games, one a row.
        opponents: who plays the other seats, see `SkipBoVectorEnv`.
        **kwargs: what `SkipBoVectorEnv` takes, but for `autoreset_mode` and `copy`.

    Attributes:
        env: the `SkipBoVectorEnv` beneath.

    Observations are arrays (num_envs, numbers) of the environment's own dtype, rewards float32
    (num_envs,). A finished game is dealt anew in the same step, and its row's info has
    "terminal_observation", "TimeLimit.truncated" (the rules' turn limit, which MaskablePPO
    bootstraps from), and "rewards", "winner" and "reason" as the vector environment gives them.

    `env_method` knows "action_masks" (bool (actions,) a row) and "game" (a copy of the row's game).
    `get_attr` and `set_attr` reach the vector environment's attributes, such as `shaped_weight`,
    which all rows share.

    Raises:
        ValueError: from the constructor, naming the setting; from `set_attr` for some rows.
        IllegalAction: (a ValueError) from `step`, naming the row; no row has changed.
    """

    def __init__(self, num_envs: int, *, opponents: Any = "greedy", **kwargs: Any) -> None:
        if opponents is None:
            raise ValueError("opponents: needed, a VecEnv has one learner a row")
        for name in ("autoreset_mode", "copy"):
            if name in kwargs:
                raise ValueError(f"{name}: is settled by Stable-Baselines3")
        self.env = SkipBoVectorEnv(
            num_envs, opponents=opponents, autoreset_mode=AutoresetMode.SAME_STEP, **kwargs
        )
        self._masks = np.zeros((num_envs, self.env.rules.num_actions), dtype=np.bool_)
        super().__init__(num_envs, self.env.single_observation_space, self.env.single_action_space)

    def reset(self) -> NDArray[Any]:
        """Deal new games, by the seeds of `seed()` if it was called since the last reset."""
        seeds = None if all(seed is None for seed in self._seeds) else list(self._seeds)
        observations, infos = self.env.reset(seed=seeds)
        self._reset_seeds()
        self._reset_options()
        self._masks = infos["action_mask"].astype(np.bool_)
        return observations

    def step_async(self, actions: NDArray[Any]) -> None:
        """Keep the actions for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> VecEnvStepReturn:
        """Do them: observations, rewards, dones and a list of infos."""
        observations, rewards, terminated, truncated, infos = self.env.step(self._actions)
        self._masks = infos["action_mask"].astype(np.bool_)
        dones = terminated | truncated
        rows: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for i in np.flatnonzero(dones).tolist():
            end = infos["final_info"]
            rows[i] = {
                "terminal_observation": infos["final_obs"][i],
                "TimeLimit.truncated": bool(truncated[i]),
                "rewards": end["rewards"][i],
                "winner": int(end["winner"][i]),
                "reason": int(end["reason"][i]),
            }
        return observations, rewards.astype(np.float32), dones, rows

    def close(self) -> None:
        """Close the vector environment."""
        self.env.close()

    def action_masks(self) -> NDArray[np.bool_]:
        """The legal actions of every row, bool (num_envs, actions)."""
        return self._masks.copy()

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """An attribute of the vector environment, or of this one, once a row."""
        value = getattr(self.env if hasattr(self.env, attr_name) else self, attr_name)
        return [value for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Set an attribute of the vector environment, for all rows."""
        if len(set(self._get_indices(indices))) != self.num_envs:
            raise ValueError(f"indices: all rows share {attr_name}, it cannot differ between them")
        getattr(self.env, attr_name)  # a name that is unknown would otherwise be lost in silence
        setattr(self.env, attr_name, value)

    def env_method(
        self,
        method_name: str,
        *method_args: Any,
        indices: VecEnvIndices = None,
        **method_kwargs: Any,
    ) -> list[Any]:
        """Call "action_masks" or "game" for each row."""
        rows = list(self._get_indices(indices))
        if method_name == "action_masks":
            return list(self._masks[rows])
        if method_name == "game":
            return [self.env.game(row) for row in rows]
        raise AttributeError(f"env_method: {method_name!r:.40} is none of action_masks, game")

    def env_is_wrapped(self, wrapper_class: Any, indices: VecEnvIndices = None) -> list[bool]:
        """False for each row: there are no environments of one game beneath."""
        return [False for _ in self._get_indices(indices)]

    def get_images(self) -> Sequence[NDArray[np.uint8] | None]:
        """A picture of every row; needs render_mode="rgb_array"."""
        return list(self.env.render() or [None] * self.num_envs)
