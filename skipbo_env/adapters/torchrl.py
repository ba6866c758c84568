"""TorchRL: `SkipBoTorchRLEnv`, a batch of games in one compiled call, and an actor with masks.

For the seats of one table as agents of their own, wrap the PettingZoo environment instead:
`PettingZooWrapper(skipbo_v0.env(), use_mask=True)`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from tensordict import TensorDict, TensorDictBase
from tensordict.nn import TensorDictModule
from torchrl.data import Binary, Bounded, Categorical, Composite, Unbounded
from torchrl.envs import EnvBase
from torchrl.modules import MaskedCategorical, ProbabilisticActor

from skipbo_env import env_parts
from skipbo_env.vector_env import SkipBoVectorEnv


class SkipBoTorchRLEnv(EnvBase):
    """One learner's seat in each of `num_envs` games; batch size (num_envs,).

    Args:
        num_envs: games, one a row.
        opponents: who plays the other seats, see `SkipBoVectorEnv`.
        **kwargs: what `SkipBoVectorEnv` takes, but for `autoreset_mode` and `copy`.

    Attributes:
        env: the `SkipBoVectorEnv` beneath.

    Entries:
        observation: float32 in [0, 1] or int8, (num_envs, numbers).
        action_mask: bool (num_envs, actions); all True where the game is over.
        action: int64 (num_envs,). `rand_action` and the action spec keep to the mask.
        reward: float32 (num_envs, 1), of the learner's seat until it acts again.
        done, terminated, truncated: bool (num_envs, 1); TorchRL deals finished rows anew by its
            partial resets.

    Raises:
        ValueError: from the constructor, naming the setting.
        IllegalAction: (a ValueError) from `step`, naming the row; no row has changed.
    """

    def __init__(self, num_envs: int, *, opponents: Any = "greedy", **kwargs: Any) -> None:
        if opponents is None:
            raise ValueError("opponents: needed, each row has one learner")
        for name in ("autoreset_mode", "copy"):
            if name in kwargs:
                raise ValueError(f"{name}: is settled by TorchRL")
        self.env = SkipBoVectorEnv(
            num_envs, opponents=opponents, autoreset_mode=AutoresetMode.DISABLED, **kwargs
        )
        super().__init__(batch_size=[num_envs])
        actions = self.env.rules.num_actions
        box = env_parts.observation_box(self.env.rules, self.env.observation)
        dtype = torch.float32 if self.env.observation == "features" else torch.int8
        self.observation_spec = Composite(
            observation=Bounded(
                low=float(box.low.min()),
                high=float(box.high.max()),
                shape=(num_envs, *box.shape),
                dtype=dtype,
            ),
            action_mask=Binary(actions, shape=(num_envs, actions), dtype=torch.bool),
            shape=(num_envs,),
        )
        self.action_spec = Categorical(actions, shape=(num_envs,), dtype=torch.int64)
        self.reward_spec = Unbounded(shape=(num_envs, 1), dtype=torch.float32)
        self.done_spec = Composite(
            {
                name: Binary(1, shape=(num_envs, 1), dtype=torch.bool)
                for name in ("done", "terminated", "truncated")
            },
            shape=(num_envs,),
        )
        self._seed_next: int | None = None

    def _seen(self, observations: Any, infos: dict[str, Any]) -> dict[str, torch.Tensor]:
        mask = torch.from_numpy(infos["action_mask"]) > 0
        self.action_spec.update_mask(mask)
        return {"observation": torch.from_numpy(observations), "action_mask": mask}

    def _reset(self, tensordict: TensorDictBase | None = None, **kwargs: Any) -> TensorDictBase:
        rows = None if tensordict is None else tensordict.get("_reset", None)
        options = None if rows is None else {"reset_mask": rows.reshape(-1).numpy()}
        observations, infos = self.env.reset(seed=self._seed_next, options=options)
        self._seed_next = None
        over = torch.zeros(*self.batch_size, 1, dtype=torch.bool)
        ends = {name: over.clone() for name in ("done", "terminated", "truncated")}
        return TensorDict({**self._seen(observations, infos), **ends}, self.batch_size)

    def _step(self, tensordict: TensorDictBase) -> TensorDictBase:
        observations, rewards, terminated, truncated, infos = self.env.step(
            tensordict["action"].numpy()
        )
        ends = {"done": terminated | truncated, "terminated": terminated, "truncated": truncated}
        entries = self._seen(observations, infos)
        entries["reward"] = torch.from_numpy(rewards.astype(np.float32))[:, None]
        entries |= {name: torch.from_numpy(end)[:, None] for name, end in ends.items()}
        return TensorDict(entries, self.batch_size)

    def _set_seed(self, seed: int | None) -> None:
        """Row i of the next reset takes seed + i."""
        self._seed_next = seed


def masked_actor(network: torch.nn.Module) -> ProbabilisticActor:
    """An actor over the legal actions: illegal ones have probability 0.

    Args:
        network: from observations (..., numbers) to logits (..., actions).

    Returns:
        A module that reads "observation" and "action_mask" and writes "logits", "action" and its
        log-probability, as TorchRL's losses ask for them.
    """
    return ProbabilisticActor(
        TensorDictModule(network, in_keys=["observation"], out_keys=["logits"]),
        in_keys={"logits": "logits", "mask": "action_mask"},
        distribution_class=MaskedCategorical,
        return_log_prob=True,
    )
