"""RLlib: `SkipBoMultiAgentEnv` with the names that its masked module asks for, and a PPO config."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from pettingzoo.utils.wrappers import BaseWrapper
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module import MultiRLModuleSpec, RLModuleSpec
from ray.rllib.env.wrappers.pettingzoo_env import PettingZooEnv
from ray.rllib.examples.rl_modules.classes.action_masking_rlm import ActionMaskingTorchRLModule

from skipbo_env import skipbo_v0

MODULE = "learner"


class _Renamed(BaseWrapper):
    """Observations {"observations", "action_mask"}, float32, as `ActionMaskingRLModule` asks."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self._spaces: dict[str, spaces.Dict] = {}

    def observation_space(self, agent: str) -> spaces.Dict:
        if agent not in self._spaces:
            inner = self.env.observation_space(agent)
            box, mask = inner["observation"], inner["action_mask"]
            self._spaces[agent] = spaces.Dict(
                {
                    "observations": spaces.Box(
                        float(box.low.min()), float(box.high.max()), box.shape, np.float32
                    ),
                    "action_mask": spaces.Box(0.0, 1.0, mask.shape, np.float32),
                }
            )
        return self._spaces[agent]

    def observe(self, agent: str) -> dict[str, NDArray[np.float32]]:
        seen = self.env.observe(agent)
        return {
            "observations": seen["observation"].astype(np.float32),
            "action_mask": seen["action_mask"].astype(np.float32),
        }


class SkipBoMultiAgentEnv(PettingZooEnv):
    """All seats of one table, as RLlib's `MultiAgentEnv`; only the seat to move is observed.

    Args:
        config: what `skipbo_v0.env` takes, as RLlib's `env_config`.

    Every agent is told its own reward since it last acted, also at the end. The mask of an agent
    whose game is over is all zeros, which RLlib's module turns into equal odds.
    """

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        super().__init__(_Renamed(skipbo_v0.env(**(config or {}))))


def masked_ppo_config(**kwargs: Any) -> PPOConfig:
    """PPO in self-play: one network, `MODULE`, plays all seats, and illegal actions get no odds.

    The config can be changed further as any other.

    Args:
        **kwargs: what `skipbo_v0.env` takes.
    """
    module = RLModuleSpec(
        module_class=ActionMaskingTorchRLModule,
        model_config={"head_fcnet_hiddens": [128, 128], "head_fcnet_activation": "tanh"},
    )
    return (
        PPOConfig()
        .environment(SkipBoMultiAgentEnv, env_config=kwargs)
        .multi_agent(policies={MODULE}, policy_mapping_fn=lambda *args, **kwargs: MODULE)
        .rl_module(rl_module_spec=MultiRLModuleSpec(rl_module_specs={MODULE: module}))
        .training(gamma=1.0, lambda_=0.95, entropy_coeff=0.01)
    )
