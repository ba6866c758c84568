"""Odd values thrown at everything public: the documented error or an answer, and nothing changed.

Wrong types, numbers of any size, arrays, NaN, lists without end, objects whose own methods fail.
An error is a ValueError of the package that names what is wrong, not one that Python or NumPy
raised half way through.
"""

from __future__ import annotations

import copy
import math
import pickle
import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

from skipbo_env import SkipBoEnv, SkipBoVectorEnv, make_agent, skipbo_v0
from skipbo_env.actions import IllegalAction, action_text, parse_action
from skipbo_env.game import Game
from skipbo_env.match import Match, Scorekeeper
from skipbo_env.position import Position
from skipbo_env.rules import Rules, RulesError


class Evil:
    """An object whose own methods fail."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    def __index__(self) -> int:
        raise RuntimeError("no index")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no comparison")

    __hash__ = object.__hash__


class Text(str):
    """A text of a class of its own."""


def deep() -> list[Any]:
    """A list of lists, deeper than Python prints."""
    inner: list[Any] = []
    for _ in range(100_000):
        inner = [inner]
    return inner


ODD: list[Any] = [
    *(None, True, False, np.True_, 0, 1, -1, 2, 3, 10**30, -(10**30), 10**5000, -(10**5000)),
    *(1.0, 2.0, 0.5, math.nan, math.inf, -math.inf, 1e300, 1j, Decimal(2), Fraction(1, 2)),
    *("", "0", "2", "x", "standard", "greedy", "x" * 100_000, " " * 100_000, "\ud800", "\0"),
    *(Text("standard"), b"x", memoryview(b"ab"), [], [1], [None], [[1]], deep(), (), set(), {}),
    *({"a": 1}, {1: 2}, {None: 1}, {"players": 10**5000}, range(3), slice(1), Ellipsis, len),
    *(np.int64(1), np.int8(2), np.uint64(2**64 - 1), np.float32(2), np.array(2), np.array("x")),
    *(np.array([]), np.array([1, 2]), np.array([True, False]), np.datetime64("2020")),
    *(object(), Evil(), Evil, NotImplemented),
]

# What Python and NumPy say where nobody has looked at the value.
FOREIGN = ("integer string conversion", "ambiguous", "surrogates", "invalid literal", "unsized")


def throw(call: Callable[[Any], Any], error: type[Exception] = ValueError) -> None:
    """Every odd value is taken, or is an error of the right kind with a message of ours."""
    for number, value in enumerate(ODD):
        try:
            call(value)
        except error as caught:
            text = str(caught)
            assert text, number
            assert not any(words in text for words in FOREIGN), (number, text)
            assert len(text) < 1000, number
        except Exception as caught:
            raise AssertionError(f"value {number}, {type(value).__name__}: {caught!r}") from caught


@cache
def game() -> Game:
    """The game that values are thrown at; none of them may change it."""
    return Game(seed=1)


def first() -> int:
    return game().legal_actions()[0]


STOCKS = [[1] * 30, [1] * 30]
READERS: dict[str, tuple[Callable[[], dict[str, Any]], Callable[[Any], Any], str]] = {
    "dict": (
        lambda: game().to_dict(),
        Game.from_dict,
        "format version rules seed agents state start actions scripts",
    ),
    "record": (
        lambda: game().record(),
        Game.from_record,
        "format version rules seed agents first_player deal events",
    ),
    "position": (
        lambda: game().position(),
        Game.from_position,
        "rules hand building you players draw_size completed building_cards passes turns "
        "reshuffled boards zzz",
    ),
}


def calls() -> Iterator[Any]:
    """Every public entrance, by name."""

    def add(name: str, call: Callable[[Any], Any], error: type[Exception] = ValueError) -> Any:
        return pytest.param(call, error, id=name)

    for field in Rules().to_dict():
        yield add(f"Rules {field}", lambda v, name=field: Rules(**{name: v}), RulesError)
    yield add("Rules.from_dict", Rules.from_dict, RulesError)
    yield add("Rules.of", Rules.of, RulesError)
    yield add("Rules.of players", lambda v: Rules.of("standard", v), RulesError)
    yield add("Rules.of mapping and players", lambda v: Rules.of({}, v), RulesError)
    yield add("Game rules", Game)
    yield add("Game players", lambda v: Game(players=v))
    yield add("Game seed", lambda v: Game(seed=v))
    yield add("Game.from_deal rules", lambda v: Game.from_deal(v, STOCKS, [], 0))
    yield add("Game.from_deal stocks", lambda v: Game.from_deal(Rules(), v, [], 0))
    yield add("Game.from_deal stock", lambda v: Game.from_deal(Rules(), [[1] * 30, v], [], 0))
    yield add("Game.from_deal card", lambda v: Game.from_deal(Rules(), STOCKS, [v], 0))
    yield add("Game.from_deal draw", lambda v: Game.from_deal(Rules(), STOCKS, v, 0))
    yield add("Game.from_deal first", lambda v: Game.from_deal(Rules(), STOCKS, [], v))
    yield add("Game.apply", lambda v: game().clone().apply(v))
    yield add("Game.apply reshuffle", lambda v: game().clone().apply(first(), reshuffle=v))
    yield add("Game.move", lambda v: game().move(v))
    yield add("Game.observation", lambda v: game().observation(v))
    yield add("Game.observation kind", lambda v: game().observation(0, v))
    yield add("Game.position", lambda v: game().position(v))
    yield add("Game.determinize", lambda v: game().determinize(v, 1))
    yield add("Game.determinize seed", lambda v: game().determinize(0, v))
    yield add("Game.record agents", lambda v: game().record(v))
    for name, (source, read, keys) in READERS.items():
        yield add(f"Game.from_{name}", read)
        for key in keys.split():
            yield add(
                f"Game.from_{name} {key}",
                lambda v, source=source, read=read, key=key: read({**source(), key: v}),
            )
    yield add("Game.from_position seed", lambda v: Game.from_position(game().position(), v))
    yield add("Game.from_record ply", lambda v: Game.from_record(game().record(), v))
    yield add("Position.parse", Position.parse)
    yield add("action_text", action_text, IllegalAction)
    yield add("parse_action", parse_action, IllegalAction)
    yield add("Match", Match)
    yield add("Match players", lambda v: Match(players=v))
    yield add("Match seed", lambda v: Match(seed=v))
    yield add("Match.add", lambda v: Match().add(v))
    for key in ("sides", "target", "stock"):
        yield add(f"Scorekeeper {key}", lambda v, name=key: Scorekeeper(**{name: v}))
    yield add("Scorekeeper.add winner", lambda v: Scorekeeper().add(v, [0, 1]))
    yield add("Scorekeeper.add left", lambda v: Scorekeeper().add(0, v))
    yield add("Scorekeeper.from_dict", Scorekeeper.from_dict)
    for key in ("sides", "target", "stock", "games"):
        yield add(
            f"Scorekeeper.from_dict {key}", lambda v, key=key: Scorekeeper.from_dict({key: v})
        )
    yield add("make_agent", make_agent)
    yield add("make_agent seed", lambda v: make_agent("random", seed=v))

    common = ("players", "rules", "observation", "reward", "shaped_weight", "render_mode")
    for key in common:
        yield add(f"raw_env {key}", lambda v, name=key: skipbo_v0.raw_env(**{name: v}))
    for key in (*common, "opponents", "seat", "illegal"):
        yield add(f"SkipBoEnv {key}", lambda v, name=key: SkipBoEnv(**{name: v}))
    for key in (*common, "opponents", "seat", "autoreset_mode"):
        yield add(f"SkipBoVectorEnv {key}", lambda v, name=key: SkipBoVectorEnv(**{name: v}))


@pytest.mark.parametrize(("call", "error"), list(calls()))
def test_odd_values(call: Callable[[Any], Any], error: type[Exception]) -> None:
    throw(call, error)


def test_numbers_of_rows_and_threads() -> None:
    for value in ODD:
        if isinstance(value, (int, np.integer)) and value > 0:
            continue  # these are numbers of rows
        for name in ("num_envs", "num_threads"):
            with pytest.raises(ValueError, match=f"^{name}: "):
                SkipBoVectorEnv(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("form", ["aec", "gymnasium", "vector", "vector with threads"])
def test_odd_seeds_options_and_actions_change_nothing(form: str) -> None:
    """After each refusal the environment goes on as its copy does that nothing was thrown at."""
    env: Any = {
        "aec": lambda: skipbo_v0.raw_env(rules="short"),
        "gymnasium": lambda: SkipBoEnv(rules="short", opponents="simple", illegal="raise"),
        "vector": lambda: SkipBoVectorEnv(3, rules="short"),
        "vector with threads": lambda: SkipBoVectorEnv(3, rules="short", num_threads=2),
    }[form]()
    env.reset(seed=1)
    for _ in range(7):
        advance(env)
    for value in ODD:
        before = pickle.dumps(env)
        for call in (
            partial(env.step, value),
            partial(env.reset, seed=value),
            partial(env.reset, options={"reset_mask": value}),
            partial(env.reset, options=value),
        ):
            twin = copy.deepcopy(env)
            text = refusal(call)
            if text is not None:
                assert not any(words in text for words in FOREIGN), text
                assert [advance(env) for _ in range(5)] == [advance(twin) for _ in range(5)]
            vars(env).update(vars(pickle.loads(before)))  # noqa: S301 - our own


def refusal(call: Callable[[], Any]) -> str | None:
    """What the error says, None where the value was taken."""
    try:
        call()
    except ValueError as caught:
        return str(caught)
    return None


def advance(env: Any) -> Any:
    """One legal action; what came of it as plain data."""
    if isinstance(env, SkipBoVectorEnv):
        seen, pay, over, cut, infos = env.step(env.sample_actions())
        return [part.tolist() for part in (seen, pay, over, cut, infos["action_mask"])]
    action = random.Random(len(env.legal_actions())).choice(env.legal_actions())
    if isinstance(env, SkipBoEnv):
        seen, pay, over, cut, info = env.step(action)
        return [seen.tolist(), pay, over, cut, info["action_mask"].tolist()]
    env.step(action)
    return [part.tolist() for part in env.observe(env.agent_selection).values()]
