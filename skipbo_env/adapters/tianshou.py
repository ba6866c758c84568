"""Tianshou: `SkipBoTianshouEnv`, one learner's seat with masks where its DQN family reads them.

For all seats as agents of their own, wrap the PettingZoo environment instead:
`PettingZooEnv(skipbo_v0.env())` of `tianshou.env.pettingzoo_env`.

Of Tianshou's algorithms only the DQN family and the random policies read masks, and targets keep to
them with `is_double=True` alone, which is the default of `DQN`. Its PPO ignores masks.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from skipbo_env import env_parts
from skipbo_env.gym_env import SkipBoEnv


class SkipBoTianshouEnv(gymnasium.ObservationWrapper[Any, Any, Any]):
    """`SkipBoEnv` with observations {"obs", "mask"}; an illegal action raises.

    Args:
        **kwargs: what `SkipBoEnv` takes, but for `dict_obs` and `illegal`.

    Observation: "obs" is the environment's array, "mask" bool (actions,), all True once the game is
    over, so that the targets of finished games stay finite.

    Raises:
        ValueError: from the constructor, naming the setting.
        IllegalAction: (a ValueError) from `step`.
    """

    def __init__(self, **kwargs: Any) -> None:
        for name in ("dict_obs", "illegal"):
            if name in kwargs:
                raise ValueError(f"{name}: is settled by this adapter")
        env = SkipBoEnv(dict_obs=True, illegal="raise", **kwargs)
        super().__init__(env)
        self.observation_space = spaces.Dict(
            {
                "obs": env_parts.observation_box(env.rules, env.observation),
                "mask": spaces.Box(0, 1, (env.rules.num_actions,), np.bool_),
            }
        )

    def observation(self, observation: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """The same under Tianshou's names."""
        return {
            "obs": observation["observation"],
            "mask": observation["action_mask"].astype(np.bool_),
        }
