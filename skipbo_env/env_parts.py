"""What the environments share: spaces, checks of keyword arguments, players of other seats."""

from __future__ import annotations

import contextlib
import math
import operator
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from skipbo_env.actions import MAX_ACTIONS, IllegalAction
from skipbo_env.agents.heuristics import HEURISTICS
from skipbo_env.batch import EXTERNAL
from skipbo_env.checks import is_whole, shown
from skipbo_env.engine.layout import PLAYER, TURNS, State
from skipbo_env.engine.moves import is_legal
from skipbo_env.engine.observe import observation_size, observe
from skipbo_env.engine.rewards import REWARDS
from skipbo_env.game import Game
from skipbo_env.rules import Rules

OBSERVATIONS = ("features", "cards")
_MASK = (1 << 64) - 1


def choice(name: str, value: Any, known: Sequence[str]) -> str:
    """The value if it is one of the known ones.

    Raises:
        ValueError: it is not; the message lists them.
    """
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{name}: {shown(value)} is none of {', '.join(known)}")
    return value


def check_seat(seat: int | None, rules: Rules) -> int:
    """The learner's seat as a number, -1 for a random one.

    Raises:
        ValueError: no such seat, or one that the turn limit keeps from ever acting.
    """
    if seat is None:
        return -1
    if not is_whole(seat):
        raise ValueError(f"seat: needs a seat or None for a random one, got {shown(seat)}")
    if not 0 <= seat < rules.players:
        raise ValueError(f"seat: must be 0 to {rules.players - 1}, got {shown(seat)}")
    if rules.first_player != "random":
        wait = (int(seat) - int(rules.first_player)) % rules.players
        if rules.max_turns <= wait:
            raise ValueError(
                f"seat: seat {seat} never acts, the game ends after {rules.max_turns} turns"
            )
    return int(seat)


def reward_code(reward: str) -> int:
    """The reward as the kernels take it.

    Raises:
        ValueError: no such reward.
    """
    return REWARDS.index(choice("reward", reward, REWARDS))


def seed_int(seed: Any) -> int:
    """A seed as a whole number of 64 bits.

    Raises:
        ValueError: negative, or not an integer.
    """
    try:
        number = operator.index(seed)
    except Exception:  # somebody's own class may raise anything
        raise ValueError(f"seed: needs a whole number or None, got {shown(seed)}") from None
    if number < 0:
        raise ValueError(f"seed: must be 0 or more, got {shown(number)}")
    return number & _MASK


def count_int(name: str, value: Any) -> int:
    """A number of rows or threads as an int.

    Raises:
        ValueError: not a whole number of 1 or more.
    """
    if not is_whole(value) or value < 1:
        raise ValueError(f"{name}: must be a whole number, 1 or more, got {shown(value)}")
    return int(value)


def weight_float(value: Any) -> float:
    """What a whole stock pays, as a float.

    Raises:
        ValueError: not a finite number.
    """
    if not isinstance(value, bool) and isinstance(value, Real):
        with contextlib.suppress(OverflowError):
            if math.isfinite(weight := float(value)):
                return weight
    raise ValueError(f"shaped_weight: needs a finite number, got {shown(value)}")


def observation_box(rules: Rules, observation: str) -> spaces.Box:
    """The space of one observation: float32 in [0, 1] for "features", int8 in [0, 127] for "cards".

    Raises:
        ValueError: no such observation.
    """
    size = observation_size(rules, choice("observation", observation, OBSERVATIONS))
    if observation == "cards":
        return spaces.Box(0, 127, (size,), np.int8)
    return spaces.Box(0.0, 1.0, (size,), np.float32)


def dict_space(rules: Rules, observation: str) -> spaces.Dict:
    """The space of {"observation", "action_mask"}."""
    mask = spaces.Box(0, 1, (rules.num_actions,), np.int8)
    return spaces.Dict({"observation": observation_box(rules, observation), "action_mask": mask})


def action_int(action: Any) -> int:
    """An action id as an int.

    Raises:
        IllegalAction: not an integer.
    """
    if type(action) is int:
        return action
    if isinstance(action, np.ndarray) and action.ndim == 0:
        action = action[()]
    if not is_whole(action):
        raise IllegalAction(f"action: needs an action id, got {shown(action)}")
    return int(action)


def kernel_action(action: int) -> int:
    """An action id as kernels take it: -1 for a number that no table has, of any size."""
    return action if 0 <= action < MAX_ACTIONS else -1


class _Player(NamedTuple):
    """An opponent that plays through Python: an object with act(game), or else a callable."""

    act: Callable[[Game], int] | None
    call: Callable[[NDArray[Any], NDArray[np.int8], dict[str, Any]], int] | None


class Opponents:
    """Who plays the seats after the learner's: agents in the kernel, the rest through Python.

    An object with act() is given a `Game` that looks the same from its seat, its hidden cards dealt
    anew; a callable is given the seat's observation, mask and position (JSON data).

    Args:
        opponents: one AGENT or callable for every other seat, or a list in seat order after the
            learner.
        rules: what is played.
        observation: the form that callables get.

    Attributes:
        kinds: what `skipbo_env.batch` takes for each seat after the learner's.
        any_external: whether some of them play through Python.

    Raises:
        ValueError: the wrong number of them, or something that cannot play.
    """

    def __init__(self, opponents: Any, rules: Rules, observation: str) -> None:
        others = rules.players - 1
        chosen = list(opponents) if isinstance(opponents, (list, tuple)) else [opponents] * others
        if len(chosen) != others:
            raise ValueError(
                f"opponents: needs one, or a list for {others} other seats, got {len(chosen)}"
            )
        self.rules = rules
        self.observation = observation
        self.kinds: list[int] = []
        self._players: list[_Player | None] = []
        made: dict[str, _Player] = {}
        for opponent in chosen:
            if isinstance(opponent, str) and opponent in HEURISTICS:
                self.kinds.append(HEURISTICS.index(opponent))
                self._players.append(None)
                continue
            self.kinds.append(EXTERNAL)
            if isinstance(opponent, str):
                if opponent not in made:
                    made[opponent] = _named_player(opponent)
                self._players.append(made[opponent])
            else:
                self._players.append(_player_of(opponent))
        self.any_external = EXTERNAL in self.kinds

    def act(self, state: State, learner: int) -> int:
        """The legal action of the external opponent whose turn it is.

        Raises:
            IllegalAction: its choice is not legal.
        """
        seat = int(state[PLAYER])
        player = self._players[(seat - learner - 1) % self.rules.players]
        assert player is not None
        game = Game.from_state(self.rules, state)
        if player.act is not None:
            chosen = player.act(game.determinize(seat, seed=int(state[TURNS])))
        else:
            assert player.call is not None
            seen = observe(state, self.rules, seat, self.observation)
            chosen = player.call(seen, game.mask(), game.position(seat))
        action = action_int(chosen)
        if not is_legal(state, kernel_action(action)):
            raise IllegalAction(
                f"action: the opponent in seat {seat} chose {shown(action)}, which is not legal"
            )
        return action


def _player_of(opponent: Any) -> _Player:
    if callable(getattr(opponent, "act", None)):
        return _Player(opponent.act, None)
    if callable(opponent):
        return _Player(None, opponent)
    raise ValueError(
        f"opponents: {shown(opponent)} cannot play: give an agent's name, an object with act(), "
        "or a callable"
    )


def _named_player(text: str) -> _Player:
    from skipbo_env import make_agent

    return _player_of(make_agent(text))


def warn_no_render_mode() -> None:
    """Say that render() needs a render_mode."""
    gymnasium.logger.warn("render() was called without a render_mode; give one to the constructor.")


def draw(state: State, rules: Rules, seat: int, mode: str) -> Any:
    """What a seat sees, drawn as a render mode wants it; "human" prints it and returns None."""
    from skipbo_env import render

    if mode == "rgb_array":
        return render.rgb_array(state, rules, seat)
    if mode == "ansi":
        return render.ansi(state, rules, seat, color=False)
    print(render.ansi(state, rules, seat, color=render.in_color()), flush=True)
    return None
