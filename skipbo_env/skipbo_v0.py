"""The PettingZoo environment: `env(**kwargs)` with the usual wrappers, `raw_env` without.

A thin layer on the engine. The manual is the docstring of `raw_env`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from pettingzoo import AECEnv
from pettingzoo.utils import wrappers

from skipbo_env import env_parts
from skipbo_env.actions import MAX_ACTIONS, IllegalAction
from skipbo_env.batch import DEALS
from skipbo_env.engine.layout import PLAYER, REASON, TURN_LIMIT
from skipbo_env.engine.moves import legal_mask
from skipbo_env.engine.observe import observe
from skipbo_env.engine.rewards import act_checked
from skipbo_env.engine.rng import mix64, stream_u64
from skipbo_env.game import Game, seed_to_u64
from skipbo_env.rules import Rules

__all__ = ["IllegalAction", "env", "raw_env"]

_SEAT_BITS = 255
_OVER = 256
_PAID = 512


def env(**kwargs: Any) -> AECEnv:
    """The environment in PettingZoo's usual wrappers; takes what `raw_env` takes.

    An illegal action ends the game: -1 to the player who did it, 0 to the others, and both
    `terminations` and `truncations` become True, which is what `TerminateIllegalWrapper` does.
    """
    wrapped: AECEnv = raw_env(**kwargs)
    wrapped = wrappers.TerminateIllegalWrapper(wrapped, illegal_reward=-1)
    wrapped = wrappers.AssertOutOfBoundsWrapper(wrapped)
    return wrappers.OrderEnforcingWrapper(wrapped)


class raw_env(AECEnv):
    """Skip-Bo for two to six players, or in teams: get rid of your stock first.

        >>> from skipbo_env import skipbo_v0
        >>> env = skipbo_v0.env(players=2, rules="short")
        >>> env.reset(seed=7)
        >>> for agent in env.agent_iter():
        ...     observation, reward, termination, truncation, info = env.last()
        ...     if termination or truncation:
        ...         action = None
        ...     else:  # a policy goes here; this one takes the first legal action
        ...         action = int(observation["action_mask"].argmax())
        ...     env.step(action)
        >>> env.close()

    | | |
    |---|---|
    | import | `from skipbo_env import skipbo_v0` |
    | registry | `pettingzoo.make("aec", "skipbo/skipbo-v0")`, from PettingZoo 1.27 on |
    | agents | `player_0` to `player_{n-1}`; seat i is `player_i` |
    | actions | `Discrete(125)`, 145 in teams, 197 with discards on the team's other board |
    | observation | `{"observation": Box, "action_mask": Box(0, 1, int8)}` |
    | order | the same agent acts until its turn ends, then the next seat |
    | parallel API | none: one player moves several times in a row |

    Args:
        players: overrides the rules' number of players.
        rules: a `Rules`, a preset's name ("standard", "short", "partners", "family", ...) or a
            mapping of settings.
        observation: "features" or "cards".
        reward: "win", "shaped" or "score".
        shaped_weight: what a whole stock pays under "shaped"; `raw_env.shaped_weight` may be set at
            any time.
        render_mode: "human" prints the table after each step, "ansi" returns it as text,
            "rgb_array" as a picture (height x width x 3, uint8; needs the extra `render`). Each
            shows what the agent to move sees.

    Observation: of one dimension, from the seat of the agent asked about, whose board comes first.

    - "features": float32 in [0, 1], 592 numbers for two players.
    - "cards": int8 in [0, 127], 56 numbers for two players, one for each public zone.

    The tables are at the head of `skipbo_env.engine.observe`, which has them as named slices too.
    Nothing hidden reaches an observation. The mask is zero for agents that are not to move, and for
    all at the end.

    Actions: with building pile b, discard pile d, and card r of 1 to 13 (the wild). The whole table
    is at the head of `skipbo_env.actions`, which turns ids into text and back.

    | ids | action |
    |---|---|
    | b | the stock's top to a building pile |
    | 4 + 4(r-1) + b | a hand card to a building pile |
    | 56 + 4d + b | a discard pile's top to a building pile |
    | 72 + 4(r-1) + d | discard a hand card, which ends the turn |
    | 124 | pass, where the hand is empty and nothing can be drawn |
    | 125 to 196 | teams only: the same from and to the team's other board |

    Rewards:
        "win": at the end +1 to each agent of the winning side, -1 / (sides - 1) to every other
            agent, 0 for a draw.
        "shaped": "win", and shaped_weight / stock size to the side that plays a stock card, minus
            its share to the others.
        "score": at the end the winner's match points / 100, minus its share to the others.

    End: a side without stock cards wins, and all terminate; so do they in a stalemate, when every
    player has passed in turn. The rules' `max_turns` truncates all. Infos are empty.

    Beyond PettingZoo, and through its wrappers too: `game` (a copy), `legal_actions()`,
    `position(agent)`, `record()`.

    Seeds: `reset(seed=s)` deals `Game(seed=s)`; later resets without a seed follow from s. No
    global generator is used. Copies and pickles carry on with the game in progress.

    Raises:
        IllegalAction: (a ValueError) from `step`, for an action that is not legal; nothing has
            changed.
        ValueError: from the constructor, naming the setting.

    Version history: v0, the first.
    """

    metadata: ClassVar[dict[str, Any]] = {
        "render_modes": ["human", "ansi", "rgb_array"],
        "name": "skipbo_v0",
        "is_parallelizable": False,
        "render_fps": 2,
    }

    def __init__(
        self,
        *,
        players: int | None = None,
        rules: Rules | str | Mapping[str, Any] = "standard",
        observation: str = "features",
        reward: str = "win",
        shaped_weight: float = 1.0,
        render_mode: str | None = None,
    ) -> None:
        super().__init__()
        self.rules = Rules.of(rules, players)
        self.reward = reward
        self.shaped_weight = env_parts.weight_float(shaped_weight)
        self._reward = env_parts.reward_code(reward)
        self.observation = env_parts.choice("observation", observation, env_parts.OBSERVATIONS)
        if render_mode is not None:
            env_parts.choice("render_mode", render_mode, self.metadata["render_modes"])
        self.render_mode = render_mode

        self.possible_agents = [f"player_{seat}" for seat in range(self.rules.players)]
        self.agents: list[str] = []
        self.observation_spaces = {
            agent: env_parts.dict_space(self.rules, self.observation)
            for agent in self.possible_agents
        }
        self.action_spaces = {
            agent: spaces.Discrete(self.rules.num_actions) for agent in self.possible_agents
        }
        self.rewards: dict[str, float] = {}
        self.terminations: dict[str, bool] = {}
        self.truncations: dict[str, bool] = {}
        self.infos: dict[str, dict[str, Any]] = {}
        self._cumulative_rewards: dict[str, float] = {}

        self._seats = {agent: seat for seat, agent in enumerate(self.possible_agents)}
        self._seeds = np.zeros(1, dtype=np.uint64)
        self._paid = np.zeros(self.rules.players, dtype=np.float64)
        self._game: Game | None = None

    def observation_space(self, agent: str) -> spaces.Dict:
        """The agent's observation space; the same object each time."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Discrete:
        """The agent's action space; the same object each time."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Deal a new game.

        Args:
            seed: 0 or more; None goes on from the last seed, or takes a fresh one at the first
                reset.
            options: nothing is read from it.

        Raises:
            ValueError: a bad seed.
        """
        if seed is None and self._game is None:
            seed = seed_to_u64(None)
        if seed is None:
            deal_seed = int(stream_u64(self._seeds, 0))
        else:
            deal_seed = env_parts.seed_int(seed)
            self._seeds[0] = mix64(np.uint64(deal_seed) ^ DEALS)
        self._game = Game(self.rules, seed=deal_seed)

        self.agents = self.possible_agents[:]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = {agent: {} for agent in self.agents}
        self._skip_agent_selection = None
        self.agent_selection = self.possible_agents[self._game.player]
        if self.render_mode == "human":
            self.render()

    def step(self, action: int | None) -> None:
        """Do an action of the agent to move; None for an agent that is done.

        Raises:
            IllegalAction: not legal; nothing has changed.
        """
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        game = self._playing()
        chosen = action if type(action) is int else env_parts.action_int(action)
        known = chosen if 0 <= chosen < MAX_ACTIONS else -1  # kernels take no number of any size
        answer = act_checked(game.state, known, self._reward, self.shaped_weight, self._paid)
        if answer < 0:
            game.check_action(chosen)  # raises what says why
        game.actions.append(chosen)

        self._cumulative_rewards[agent] = 0.0
        if answer & _PAID:
            self.rewards = dict(zip(self.possible_agents, self._paid.tolist(), strict=True))
            self._accumulate_rewards()
        else:
            self.rewards = dict.fromkeys(self.agents, 0.0)
        if answer & _OVER:
            ends = dict.fromkeys(self.agents, True)
            if game.state[REASON] == TURN_LIMIT:
                self.truncations = ends
            else:
                self.terminations = ends
            self._deads_step_first()
        else:
            self.agent_selection = self.possible_agents[answer & _SEAT_BITS]
        if self.render_mode == "human":
            self.render()

    def observe(self, agent: str) -> dict[str, NDArray[Any]]:
        """What an agent sees, at any time after the first reset, in arrays that stay as they are.

        Returns:
            {"observation": float32 or int8 of one dimension, "action_mask": int8}.
        """
        state = self._playing().state
        seat = self._seats[agent]
        mask = np.zeros(self.rules.num_actions, dtype=np.int8)
        if (
            seat == state[PLAYER]
            and not self.terminations.get(agent, True)
            and not self.truncations.get(agent, True)
        ):
            legal_mask(state, mask)
        seen = observe(state, self.rules, seat, self.observation)
        return {"observation": seen, "action_mask": mask}

    def render(self) -> str | NDArray[np.uint8] | None:
        """The table as the agent to move sees it: text, a picture, or None after printing it."""
        if self.render_mode is None:
            env_parts.warn_no_render_mode()
            return None
        game = self._playing()
        return env_parts.draw(game.state, self.rules, game.player, self.render_mode)

    def close(self) -> None:
        """Nothing is held open."""

    @property
    def game(self) -> Game:
        """A copy of the game in progress; it goes on apart from the environment."""
        return self._playing().clone()

    def legal_actions(self) -> list[int]:
        """Ids of the legal actions of the agent to move, ascending; empty at the end."""
        if not self.agents or self.terminations[self.agents[0]] or self.truncations[self.agents[0]]:
            return []
        return self._playing().legal_actions()

    def position(self, agent: str | None = None) -> dict[str, Any]:
        """What an agent (default: the one to move) sees, as JSON data; see `Game.position`."""
        return self._playing().position(None if agent is None else self._seats[agent])

    def record(self) -> dict[str, Any]:
        """The game so far as a record, hidden cards included; see `Game.record`."""
        return self._playing().record()

    def _playing(self) -> Game:
        if self._game is None:
            raise ValueError("there is no game before the first reset()")
        return self._game
