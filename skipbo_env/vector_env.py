"""`SkipBoVectorEnv`: many games at once behind Gymnasium's vector interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from skipbo_env import batch, env_parts
from skipbo_env.actions import IllegalAction, action_text
from skipbo_env.checks import shown
from skipbo_env.engine.layout import PLAYER, REASON, first_player_code
from skipbo_env.game import Game, seed_to_u64
from skipbo_env.rules import Rules
from skipbo_env.state_check import check_state

_KINDS_OF_INTEGER = "iu"
_KEPT = ("states", "seats", "begun", "deals", "bots", "samples", "unpaid")  # parts of a snapshot


class SkipBoVectorEnv(VectorEnv):
    """`num_envs` games of Skip-Bo, stepped together.

        >>> from skipbo_env import SkipBoVectorEnv
        >>> env = SkipBoVectorEnv(4, observation="cards")
        >>> observations, infos = env.reset(seed=7)
        >>> observations.shape, infos["action_mask"].shape, infos["player"].shape
        ((4, 56), (4, 125), (4,))
        >>> observations, rewards, terminations, truncations, infos = env.step(env.sample_actions())
        >>> rewards.shape, infos["rewards"].shape
        ((4,), (4, 2))

    Two ways to play:

    - Self-play (`opponents=None`): all seats are the learner's. Each row shows what its seat to
      move sees, and `infos["player"]` says which seat that is; the same seat is shown again while
      its turn lasts. `rewards[i]` is what the action paid the seat that did it,
      `infos["rewards"][i]` what it paid every seat: the loser's -1 stands there only.
    - One seat (`opponents` given): the others are played by agents, "random", "play-first",
      "simple" and "greedy" in the compiled step, all else through Python, far slower. `rewards[i]`
      is what the learner's seat was paid until it acts again. A game that ends before the learner
      has acted is dealt anew.

    Also `gymnasium.make_vec("skipbo_env:SkipBo-v0", num_envs=1024,
    vectorization_mode="vector_entry_point")`.

    Args:
        num_envs: rows.
        players: overrides the rules' number of players (2 in the standard rules).
        rules: a `Rules`, a preset's name or a mapping of settings.
        observation: "features" (float32) or "cards" (int8), see `skipbo_env.engine.observe`.
        reward: "win", "shaped" or "score", see `skipbo_env.engine.rewards`.
        shaped_weight: what a whole stock pays under "shaped"; `env.shaped_weight` may be set at any
            time.
        opponents: None, or one agent for every other seat, or a list in seat order after the
            learner. An agent is a text ("greedy", a model's name), an object with act(game), or a
            callable (observation, mask, position) -> action; both get public data only, the game's
            hidden cards are dealt anew.
        seat: the learner's seat with opponents; None draws it for each game.
        autoreset_mode: what happens at the end of a game; an `AutoresetMode` or its value.
            SAME_STEP: the next game is dealt in the same step; observation, mask and player are the
            new game's, the end stands in `infos["final_obs"]` and `infos["final_info"]`.
            NEXT_STEP: the next step of the row ignores its action, deals, and pays 0.
            DISABLED: `reset(options={"reset_mask": bool array})` deals.
            In the last two the finished row shows the last observation of the seat that acted, and
            its mask is all ones.
        copy: whether arrays are new in each step. With False they are the same ones, written over
            by the next step.
        num_threads: rows are split among so many threads; worth it from some thousand rows on.
            Results do not change.
        render_mode: "ansi" or "rgb_array": `render()` gives a picture of every row.

    Infos, each with its mask "_name" as Gymnasium has it:
        action_mask: int8 (num_envs, actions).
        player: int64 (num_envs,), the seat that the observation and the mask belong to.
        rewards: float64 (num_envs, players), after a step.
        final_obs: object (num_envs,): the last observation of the seat that acted, or of the
            learner; None elsewhere.
        final_info: {"rewards", "winner", "reason"}: of every seat; side or -1; 1 stock_empty,
            2 stalemate, 3 turn_limit.
        winner, reason: the same where the mode is not SAME_STEP.

    Seeds: `reset(seed=s)` gives row i the seed s + i. Its first game is `Game(seed=s + i)`, the
    later ones follow from it, and so do its opponents in the kernel and `sample_actions`: no row's
    results depend on the others. `reset()` goes on.

    Raises:
        IllegalAction: (a ValueError) from `step`, naming the row; no row has changed.
        ResetNeeded: a step before the first reset, or of a finished row under DISABLED, or after an
            opponent's error, which goes through and leaves the rows where they were by then.

    Version history: v0, the first.
    """

    # Here, not in __init__: Gymnasium closes what a failing constructor leaves behind.
    _pool: ThreadPoolExecutor | None = None

    def __init__(
        self,
        num_envs: int = 1,
        *,
        players: int | None = None,
        rules: Rules | str | Mapping[str, Any] = "standard",
        observation: str = "features",
        reward: str = "win",
        shaped_weight: float = 1.0,
        opponents: Any = None,
        seat: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.SAME_STEP,
        copy: bool = True,
        num_threads: int = 1,
        render_mode: str | None = None,
    ) -> None:
        self.num_envs = env_parts.count_int("num_envs", num_envs)
        self.num_threads = env_parts.count_int("num_threads", num_threads)
        self.rules = Rules.of(rules, players)
        self.observation = env_parts.choice("observation", observation, env_parts.OBSERVATIONS)
        self._reward = env_parts.reward_code(reward)
        self.reward = reward
        self.shaped_weight = env_parts.weight_float(shaped_weight)
        modes = [mode.value for mode in AutoresetMode]
        if not isinstance(autoreset_mode, AutoresetMode):
            env_parts.choice("autoreset_mode", autoreset_mode, modes)
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.copy = bool(copy)
        if render_mode is not None:
            env_parts.choice("render_mode", render_mode, ("ansi", "rgb_array"))
        self.render_mode = render_mode
        self.metadata = {
            "name": "SkipBo-v0",
            "render_modes": ["ansi", "rgb_array"],
            "autoreset_mode": self.autoreset_mode,
        }

        self.opponents = opponents
        self._others = None
        if opponents is not None:
            self._others = env_parts.Opponents(opponents, self.rules, self.observation)
        elif seat is not None:
            raise ValueError("seat: goes with opponents; in self-play every seat is the learner's")
        self._seat = env_parts.check_seat(seat, self.rules)

        self.single_observation_space = env_parts.observation_box(self.rules, self.observation)
        self.single_action_space = Discrete(self.rules.num_actions)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

        kinds = None if self._others is None else self._others.kinds
        self._table = batch.new_table(self.rules, self.num_envs, kinds)
        self._out = batch.new_out(self.rules, self.num_envs, self.observation)
        self._settings = batch.Options(
            first_player=first_player_code(self.rules),
            seat=self._seat,
            alone=self._others is not None,
            reward=self._reward,
            weight=self.shaped_weight,
            same_step=self.autoreset_mode == AutoresetMode.SAME_STEP,
        )
        self._all = np.ones(self.num_envs, dtype=np.bool_)
        self._all.setflags(write=False)
        self._no_actions = np.zeros(self.num_envs, dtype=np.int64)
        self._dealt = False
        self._broken = False  # an opponent failed halfway through a step

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """Deal new games.

        Args:
            seed: one for row 0, row i takes seed + i; or a sequence with one, or None, a row; None
                goes on.
            options: "reset_mask", bool (num_envs,): only these rows are dealt, the others are shown
                as they stand. Other keys mean nothing here.

        Returns:
            (observations, infos), see the class.

        Raises:
            ValueError: a bad seed or mask.
            ResetNeeded: a mask at the first reset that leaves rows out.
        """
        seeds = np.zeros(self.num_envs, dtype=np.uint64)
        seeded = np.zeros(self.num_envs, dtype=np.bool_)
        if seed is None and not self._dealt:
            seed = seed_to_u64(None)
        given: Any = seed
        if isinstance(given, (list, tuple)) or (isinstance(given, np.ndarray) and given.ndim):
            if len(given) != self.num_envs:
                raise ValueError(f"seed: needs {self.num_envs}, one a row, got {len(given)}")
            for i, row_seed in enumerate(given):
                if row_seed is not None or not self._dealt:
                    fixed = seed_to_u64(None) if row_seed is None else row_seed
                    seeds[i] = env_parts.seed_int(fixed)
                    seeded[i] = True
        elif seed is not None:
            first = np.uint64(env_parts.seed_int(seed))
            seeds[:] = first + np.arange(self.num_envs, dtype=np.uint64)
            seeded[:] = True
            super().reset(seed=int(first))

        chosen = self._reset_mask(options)
        out = self._fresh()
        options_now = self._options()
        self._run(batch.deal_rows, self._table, options_now, seeds, seeded, chosen)
        self._run(batch.step, self._table, options_now, out, batch.SHOW, self._no_actions)
        self._dealt, self._broken = True, False
        self._follow(options_now, out)
        return self._observations(out), self._infos(out)

    def step(
        self, actions: Any
    ) -> tuple[
        NDArray[Any],
        NDArray[np.float64],
        NDArray[np.bool_],
        NDArray[np.bool_],
        dict[str, Any],
    ]:
        """Do one action a row.

        Args:
            actions: integers, (num_envs,).

        Returns:
            (observations, rewards float64, terminations bool, truncations bool, infos), see the
            class.

        Raises:
            IllegalAction: an action that is not legal; it names the row, and no row has changed.
            ResetNeeded: see the class.
        """
        actions = self._checked(actions)
        out = self._fresh()
        options = self._options()
        if self.num_threads == 1:
            row = batch.step(self._table, options, out, batch.TRY, actions, 0, self.num_envs)
        else:  # a row may move only when all have been looked at
            row = batch.find_illegal(self._table, actions)
            if row < 0:
                self._run(batch.step, self._table, options, out, batch.ACT, actions)
        if row >= 0:
            raise self._illegal(row, int(actions[row]))
        self._follow(options, out)
        infos = self._infos(out)
        infos["rewards"], infos["_rewards"] = out.all_rewards, self._all
        ended = out.terminated | out.truncated
        if ended.any():
            self._add_ends(infos, out, ended)
        return self._observations(out), out.rewards, out.terminated, out.truncated, infos

    def sample_actions(self) -> NDArray[np.int64]:
        """A random legal action a row, from the rows' own generators; 0 if it is finished."""
        if not self._dealt:
            raise ResetNeeded("sample_actions() before the first reset()")
        if self._broken:
            raise ResetNeeded("an opponent failed in the last step: call reset() first")
        actions = np.empty(self.num_envs, dtype=np.int64)
        batch.sample(self._table, actions)
        return actions

    @property
    def states(self) -> NDArray[np.int32]:
        """The rows' games (see `engine.layout`), hidden cards and all, (num_envs, cells): to look
        at, not to write to.
        """
        return self._table.states

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """The games and generators of all rows, copied; `restore` goes on from them."""
        return {name: getattr(self._table, name).copy() for name in _KEPT}

    def restore(self, snapshot: Mapping[str, NDArray[Any]]) -> tuple[NDArray[Any], dict[str, Any]]:
        """Go on as the environment did that the snapshot is of, made with the same arguments.

        Returns:
            (observations, infos), as from `reset`.

        Raises:
            ValueError: a part is missing or of another shape, or a row holds no game of these
                rules; nothing has changed.
        """
        for name in _KEPT:
            part, given = getattr(self._table, name), snapshot.get(name)
            if given is None or (given.shape, given.dtype) != (part.shape, part.dtype):
                raise ValueError(f"snapshot: {name}: needs {part.dtype} of shape {part.shape}")
        for row, state in enumerate(snapshot["states"]):  # the compiled engine would crash on them
            check_state(state, self.rules, f"snapshot: states: row {row}")
        for name in _KEPT:
            getattr(self._table, name)[...] = snapshot[name]
        out = self._fresh()
        self._run(batch.step, self._table, self._options(), out, batch.SHOW, self._no_actions)
        self._dealt, self._broken = True, False
        return self._observations(out), self._infos(out)

    def game(self, row: int) -> Game:
        """A copy of a row's game; it has no record, as rows keep no list of their actions."""
        return Game.from_state(self.rules, self._table.states[row])

    def render(self) -> tuple[Any, ...] | None:
        """A picture of every row as its player sees it."""
        if self.render_mode is None:
            env_parts.warn_no_render_mode()
            return None
        return tuple(
            env_parts.draw(state, self.rules, int(seat), self.render_mode)
            for state, seat in zip(self._table.states, self._out.players, strict=True)
        )

    def close_extras(self, **kwargs: Any) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pool": None}

    def _options(self) -> batch.Options:
        if self._settings.weight != self.shaped_weight:
            self._settings = self._settings._replace(weight=float(self.shaped_weight))
        return self._settings

    def _fresh(self) -> batch.Out:
        if self.copy:
            self._out = batch.fresh_out(self._out)
        return self._out

    def _observations(self, out: batch.Out) -> NDArray[Any]:
        return out.cards if self.observation == "cards" else out.features

    def _finals(self, out: batch.Out) -> NDArray[Any]:
        return out.final_cards if self.observation == "cards" else out.final_features

    def _run(self, kernel: Any, *args: Any) -> None:
        """Run a kernel over all rows, in several threads if asked for."""
        if self.num_threads == 1:
            kernel(*args, 0, self.num_envs)
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.num_threads, "skipbo-rows")
        bounds = np.linspace(0, self.num_envs, self.num_threads + 1).astype(int).tolist()
        calls = [
            self._pool.submit(partial(kernel, *args, start, stop))
            for start, stop in pairwise(bounds)
        ]
        for call in calls:
            call.result()

    def _follow(self, options: batch.Options, out: batch.Out) -> None:
        """Let opponents that play through Python act until it is the learner's turn everywhere."""
        if self._others is None or not self._others.any_external:
            return
        table, actions = self._table, np.zeros(self.num_envs, dtype=np.int64)
        for i, state in enumerate(table.states):
            while not state[REASON] and state[PLAYER] != table.seats[i]:
                try:
                    actions[i] = self._others.act(state, int(table.seats[i]))
                except BaseException:
                    self._broken = True  # else the learner would go on with this seat's hand
                    raise
                batch.step(table, options, out, batch.FOLLOW, actions, i, i + 1)

    def _reset_mask(self, options: dict[str, Any] | None) -> NDArray[np.bool_]:
        if options is None:
            return self._all
        if not isinstance(options, Mapping):
            raise ValueError(f"options: needs a mapping, got {shown(options)}")
        mask = options.get("reset_mask")
        if mask is None:
            return self._all
        if (
            not isinstance(mask, np.ndarray)
            or mask.shape != (self.num_envs,)
            or mask.dtype != np.bool_
        ):
            raise ValueError(
                f"reset_mask: needs a bool array of shape ({self.num_envs},), got {shown(mask, 60)}"
            )
        if not self._dealt and not mask.all():
            raise ResetNeeded("the first reset() has to deal every row")
        if self._broken and not mask.all():
            raise ResetNeeded("an opponent failed: reset() has to deal every row")
        return mask

    def _checked(self, actions: Any) -> NDArray[np.int64]:
        if not self._dealt:
            raise ResetNeeded("step() before the first reset()")
        if self._broken:
            raise ResetNeeded("an opponent failed in the last step: call reset() first")
        given = np.asarray(actions)
        if given.dtype.kind not in _KINDS_OF_INTEGER or given.shape != (self.num_envs,):
            raise IllegalAction(
                f"actions: need integers of shape ({self.num_envs},), "
                f"got {given.dtype} of {given.shape}"
            )
        given = np.ascontiguousarray(given, dtype=np.int64)
        if self.autoreset_mode == AutoresetMode.DISABLED:
            over = np.flatnonzero(self._table.states[:, REASON])
            if over.size:
                raise ResetNeeded(
                    f"row {over[0]} has ended: reset it with options={{'reset_mask': ...}}"
                )
        return given

    def _illegal(self, row: int, action: int) -> IllegalAction:
        text = f" ({action_text(action)})" if 0 <= action < self.rules.num_actions else ""
        return IllegalAction(f"actions: {action}{text} in row {row} is not legal")

    def _infos(self, out: batch.Out) -> dict[str, Any]:
        return {
            "action_mask": out.masks,
            "_action_mask": self._all,
            "player": out.players,
            "_player": self._all,
        }

    def _add_ends(self, infos: dict[str, Any], out: batch.Out, ended: NDArray[np.bool_]) -> None:
        end = {"winner": out.winners, "_winner": ended, "reason": out.reasons, "_reason": ended}
        if self.autoreset_mode != AutoresetMode.SAME_STEP:
            infos.update(end)
            return
        rows = np.flatnonzero(ended)
        observations = np.empty(self.num_envs, dtype=object)  # of None
        for i, final in zip(rows.tolist(), self._finals(out)[rows], strict=True):
            observations[i] = final
        infos["final_obs"], infos["_final_obs"] = observations, ended
        infos["final_info"] = {"rewards": out.all_rewards, "_rewards": ended, **end}
        infos["_final_info"] = ended
