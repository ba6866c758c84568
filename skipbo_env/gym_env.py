"""`SkipBo-v0` for Gymnasium: one seat learns, agents play the others; a table of one row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from numpy.typing import NDArray

from skipbo_env import batch, env_parts
from skipbo_env.actions import IllegalAction, action_text
from skipbo_env.agents.heuristics import choose_now
from skipbo_env.checks import shown
from skipbo_env.engine.deal import deal
from skipbo_env.engine.layout import PLAYER, REASON, first_player_code
from skipbo_env.engine.rng import stream_below, stream_u64
from skipbo_env.game import Game
from skipbo_env.rules import Rules


class SkipBoEnv(gymnasium.Env[Any, Any]):
    """Skip-Bo for one learner, the other seats played by agents.

        >>> import gymnasium
        >>> env = gymnasium.make("skipbo_env:SkipBo-v0", opponents="simple", rules="short")
        >>> observation, info = env.reset(seed=7)
        >>> terminated = truncated = False
        >>> while not (terminated or truncated):
        ...     action = int(info["action_mask"].argmax())  # a policy goes here
        ...     observation, reward, terminated, truncated, info = env.step(action)
        >>> sorted(info)
        ['action_mask', 'player', 'reason', 'rewards', 'winner']
        >>> env.close()

    Args:
        players: overrides the rules' number of players.
        rules: a `Rules`, a preset's name or a mapping of settings.
        observation: "features" (float32) or "cards" (int8), see `skipbo_env.engine.observe`.
        reward: "win", "shaped" or "score", see `skipbo_env.engine.rewards`.
        shaped_weight: what a whole stock pays under "shaped"; `env.unwrapped.shaped_weight` may be
            set at any time.
        opponents: one agent for every other seat, or a list in seat order after the learner. An
            agent is a text ("greedy", a model's name), an object with act(game), or a callable
            (observation, mask, position) -> action; both get public data only, the game's hidden
            cards are dealt anew. "random", "play-first", "simple" and "greedy" play in compiled
            code.
        seat: the learner's seat; None draws it for each game.
        dict_obs: whether an observation is {"observation", "action_mask"} instead of the array
            alone.
        illegal: "end": an illegal action ends the game with a reward of -1, and `terminated`
            (Gymnasium's checker plays unmasked actions); "raise" raises IllegalAction and leaves
            the game as it was.
        render_mode: "human", "ansi" or "rgb_array".

    Observation, action and reward are those of the learner's seat; their tables stand at the head
    of `skipbo_env.engine.observe`, `skipbo_env.actions` and `skipbo_env.engine.rewards`. A step
    lasts until the learner has to act again, so a reward covers what the others did meanwhile. A
    game that ends before the learner has acted is dealt anew.

    Infos:
        action_mask: int8 (actions,); all ones once the game is over, so that no masked softmax
            meets an empty row.
        player: the learner's seat.
        rewards, winner, reason: at the end: of every seat, side or -1, 1 stock_empty, 2 stalemate,
            3 turn_limit.

    `action_masks()` gives the mask as bool, as sb3-contrib's MaskablePPO asks for it.

    Episode end: terminated when a side wins, in a stalemate and after an illegal action; truncated
    by the rules' max_turns.

    Seeds: `reset(seed=s)` deals `Game(seed=s)`; the learner's seat, the agents in compiled code and
    later games follow from s. Copies and pickles carry on with the game in progress.

    Version history: v0, the first.
    """

    metadata = {  # noqa: RUF012 - typed by gymnasium.Env as it is
        "render_modes": ["human", "ansi", "rgb_array"],
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
        opponents: Any = "greedy",
        seat: int | None = None,
        dict_obs: bool = False,
        illegal: str = "end",
        render_mode: str | None = None,
    ) -> None:
        self.rules = Rules.of(rules, players)
        self.observation = env_parts.choice("observation", observation, env_parts.OBSERVATIONS)
        self.reward = reward
        self._reward = env_parts.reward_code(reward)
        self.shaped_weight = env_parts.weight_float(shaped_weight)
        self.illegal = env_parts.choice("illegal", illegal, ("end", "raise"))
        if render_mode is not None:
            env_parts.choice("render_mode", render_mode, self.metadata["render_modes"])
        self.render_mode = render_mode
        self.dict_obs = bool(dict_obs)
        self.opponents = opponents
        self._others = env_parts.Opponents(opponents, self.rules, self.observation)
        self._seat = env_parts.check_seat(seat, self.rules)

        self.observation_space = (
            env_parts.dict_space(self.rules, self.observation)
            if dict_obs
            else env_parts.observation_box(self.rules, self.observation)
        )
        self.action_space = spaces.Discrete(self.rules.num_actions)
        self._table = batch.new_table(self.rules, 1, self._others.kinds)
        self._out = batch.new_out(self.rules, 1, self.observation)
        self._actions = np.zeros(1, dtype=np.int64)
        self._dealt = False
        self._ended = True
        # What `record` replays: the row as it was dealt, and the moves that came from outside.
        self._begun: tuple[NDArray[Any], ...] = ()
        self._moves: list[int] = []

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Deal a new game, and let the others play until it is the learner's turn.

        Args:
            seed: 0 or more; None goes on from the last seed, or takes a fresh one at the first
                reset.
            options: nothing is read from it.
        """
        if seed is not None:
            seed = env_parts.seed_int(seed)
        super().reset(seed=seed)
        if seed is None and not self._dealt:
            seed = int(self.np_random.integers(1 << 63))
        seeds = np.array([seed or 0], dtype=np.uint64)
        seeded = np.array([seed is not None])
        table = self._table
        if seed is None:  # what deal_rows will draw
            seeds[0] = stream_u64(table.deals.copy(), 0)
        batch.deal_rows(table, self._options(), seeds, seeded, np.ones(1, dtype=np.bool_), 0, 1)
        row = (table.states[0], seeds, table.seats, table.bots, table.deals)
        self._begun, self._moves = tuple(part.copy() for part in row), []
        self._dealt, self._ended = True, False
        self._move(batch.SHOW, 0)
        if self.render_mode == "human":
            self.render()
        return self._observation(), self._info()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Do an action of the learner, and let the others play until its next turn.

        Raises:
            IllegalAction: with illegal="raise"; nothing has changed.
            ResetNeeded: the game is over, or an opponent failed in it, whose error goes through.
        """
        if self._ended:
            raise ResetNeeded("the game is over or an opponent failed in it: call reset() first")
        action = env_parts.action_int(action)
        self._actions[0] = env_parts.kernel_action(action)
        if batch.find_illegal(self._table, self._actions) >= 0:
            if self.illegal == "raise":
                text = f" ({action_text(action)})" if 0 <= action < self.rules.num_actions else ""
                raise IllegalAction(f"action: {shown(action)}{text} is not legal")
            self._ended = True
            self._out.masks[:] = 1
            rewards = np.zeros(self.rules.players)
            rewards[self.player] = -1.0
            return self._observation(), -1.0, True, False, self._info(rewards, -1, 0)
        self._move(batch.ACT, action)
        if self.render_mode == "human":
            self.render()
        out = self._out
        terminated, truncated = bool(out.terminated[0]), bool(out.truncated[0])
        self._ended = terminated or truncated
        info = self._info()
        if self._ended:
            info = self._info(out.all_rewards[0].copy(), int(out.winners[0]), int(out.reasons[0]))
        return self._observation(), float(out.rewards[0]), terminated, truncated, info

    def action_masks(self) -> NDArray[np.bool_]:
        """The legal actions as bool (actions,)."""
        return self._out.masks[0].astype(np.bool_)

    def legal_actions(self) -> list[int]:
        """Ids of the legal actions, ascending; empty once the game is over."""
        return [] if self._ended else np.flatnonzero(self._out.masks[0]).tolist()

    @property
    def player(self) -> int:
        """The learner's seat in this game."""
        return int(self._out.players[0])

    @property
    def game(self) -> Game:
        """A copy of the game in progress, without its history; `record` has that."""
        return Game.from_state(self.rules, self._table.states[0])

    def record(self, agents: Sequence[str] | None = None) -> dict[str, Any]:
        """The game so far as a record (docs/formats.md), hidden cards included.

        The moves of agents in compiled code are found by playing the game again.

        Args:
            agents: a name for each seat.

        Raises:
            ResetNeeded: no game has been dealt yet.
            ValueError: the agents are not a name a seat.
        """
        if not self._begun:
            raise ResetNeeded("no game has been dealt yet: call reset() first")
        state, seed, seats, bots, deals = (part.copy() for part in self._begun)
        table, options = self._table, self._options()
        game = Game.dealt(self.rules, state, int(seed[0]))
        outside, seat, acted = iter(self._moves), int(seats[0]), False
        while True:
            if game.over and acted:
                break
            if game.over:  # before the learner had a turn: another one was dealt
                seed = np.uint64(stream_u64(deals, 0))
                deal(state, seed, options.first_player)
                if options.seat < 0:
                    seat = int(stream_below(deals, 0, self.rules.players))
                game = Game.dealt(self.rules, state, int(seed))
                continue
            kind = batch.EXTERNAL
            if game.player != seat:
                kind = int(table.kinds[(game.player - seat - 1) % self.rules.players])
            if kind == batch.EXTERNAL:
                action = next(outside, None)
                if action is None:
                    break
                acted = acted or game.player == seat
            else:
                action = int(choose_now(kind, game.state, bots))
            game.apply(action)
        return game.record(agents)

    def position(self) -> dict[str, Any]:
        """What the learner sees, as JSON data; see `Game.position`."""
        return self.game.position(self.player)

    def render(self) -> Any:
        """The table as the learner sees it: text, a picture, or None after printing ("human")."""
        if self.render_mode is None:
            env_parts.warn_no_render_mode()
            return None
        return env_parts.draw(self._table.states[0], self.rules, self.player, self.render_mode)

    def _options(self) -> batch.Options:
        return batch.Options(
            first_player=first_player_code(self.rules),
            seat=self._seat,
            alone=True,
            reward=self._reward,
            weight=float(self.shaped_weight),
            same_step=False,
        )

    def _move(self, mode: int, action: int) -> None:
        """One step of the row, and the moves of opponents that play through Python."""
        table, options = self._table, self._options()
        state = table.states[0]
        self._actions[0] = action
        if mode == batch.ACT:
            self._moves.append(action)
        batch.step(table, options, self._out, mode, self._actions, 0, 1)
        while not state[REASON] and state[PLAYER] != table.seats[0]:
            try:
                self._actions[0] = self._others.act(state, int(table.seats[0]))
            except BaseException:
                self._ended = True  # else the learner would go on with this seat's hand
                raise
            self._moves.append(int(self._actions[0]))
            batch.step(table, options, self._out, batch.FOLLOW, self._actions, 0, 1)

    def _observation(self) -> Any:
        seen = (self._out.cards if self.observation == "cards" else self._out.features)[0].copy()
        if self.dict_obs:
            return {"observation": seen, "action_mask": self._out.masks[0].copy()}
        return seen

    def _info(
        self, rewards: NDArray[np.float64] | None = None, winner: int = -1, reason: int = 0
    ) -> dict[str, Any]:
        info: dict[str, Any] = {"action_mask": self._out.masks[0].copy(), "player": self.player}
        if rewards is not None:
            info.update(rewards=rewards, winner=winner, reason=reason)
        return info
