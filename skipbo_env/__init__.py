"""Skip-Bo as a reinforcement learning environment.

    skipbo_v0           the PettingZoo environment: `skipbo_v0.env()`
    SkipBo-v0           the Gymnasium one: `gymnasium.make("skipbo_env:SkipBo-v0")`, `SkipBoEnv`
    SkipBoVectorEnv     many games in one compiled call
    Game                one game as an object
    Rules, PRESETS      every setting of the game
    make_agent          agents by name

Importing this registers the environments and nothing more: the compiled engine is imported with the
first name that needs it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import gymnasium as _gymnasium
import pettingzoo as _pettingzoo

if TYPE_CHECKING:
    import skipbo_env.skipbo_v0 as skipbo_v0
    from skipbo_env.actions import IllegalAction as IllegalAction
    from skipbo_env.agents import make_agent as make_agent
    from skipbo_env.game import Game as Game
    from skipbo_env.gym_env import SkipBoEnv as SkipBoEnv
    from skipbo_env.rules import PRESETS as PRESETS
    from skipbo_env.rules import Rules as Rules
    from skipbo_env.rules import RulesError as RulesError
    from skipbo_env.vector_env import SkipBoVectorEnv as SkipBoVectorEnv

__version__ = "0.1.0"

_HOMES = {
    "Game": "game",
    "IllegalAction": "actions",
    "PRESETS": "rules",
    "Rules": "rules",
    "RulesError": "rules",
    "SkipBoEnv": "gym_env",
    "SkipBoVectorEnv": "vector_env",
    "make_agent": "agents",
}
__all__ = [*_HOMES, "skipbo_v0"]


def __getattr__(name: str) -> Any:
    if name == "skipbo_v0":
        return import_module("skipbo_env.skipbo_v0")
    if name in _HOMES:
        return getattr(import_module(f"skipbo_env.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'skipbo_env' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


def _register() -> None:
    if "SkipBo-v0" not in _gymnasium.registry:
        _gymnasium.register(
            "SkipBo-v0",
            entry_point="skipbo_env.gym_env:SkipBoEnv",
            vector_entry_point="skipbo_env.vector_env:SkipBoVectorEnv",
        )
    if hasattr(_pettingzoo, "register"):  # 1.27 and later
        from pettingzoo.env_registry.registration import aec_registry

        if "skipbo/skipbo-v0" not in aec_registry:
            _pettingzoo.register("aec", "skipbo/skipbo-v0", entry_point="skipbo_env.skipbo_v0:env")


_register()
