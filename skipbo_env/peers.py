"""Other environments under the benchmark's loops: uniformly random legal play of what is installed.

Each loop drives its library the way its own documentation does from Python, one decision or one
batch a call, and builds the observation that a learner would read. Nothing here is needed by, or
imported with, the environments.
"""

from __future__ import annotations

import contextlib
import random
import warnings
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Play = Callable[[], int]
"""A loop: each call makes some decisions and says how many."""

ROWS = 1024
"""Games at once, in our vector environment and in those of others that take a number."""
_DECISIONS = 200


class Peer(NamedTuple):
    """Another environment.

    Attributes:
        includes: what a decision includes, for tables and charts.
        packages: the distributions that it needs, by their names on PyPI, its own first.
        make: builds its loop.
        goal: how many times as many decisions our vector environment is to make, or None.
    """

    includes: str
    packages: tuple[str, ...]
    make: Callable[[], Play]
    goal: float | None = None


def any_of(mask: NDArray[np.int8], rng: np.random.Generator) -> int:
    """A random action among those whose mask is not zero."""
    legal = np.flatnonzero(mask)
    return int(legal[int(rng.random() * len(legal))])


def aec(env: Any) -> Play:
    """PettingZoo's loop: last(), a random legal action and step(), game after game."""
    rng = np.random.default_rng(1)
    env.reset(seed=1)

    def play() -> int:
        decisions = 0
        while decisions < _DECISIONS:
            observation, _, termination, truncation, info = env.last()
            if termination or truncation:
                env.reset()
                continue
            mask = observation.get("action_mask") if isinstance(observation, dict) else None
            env.step(any_of(info["action_mask"] if mask is None else mask, rng))
            decisions += 1
        return decisions

    return play


def _classic(name: str, kind: str) -> Callable[[], Play]:
    """One of PettingZoo's own games, `kind` "raw_env" or "env"."""

    def make() -> Play:
        from importlib import import_module

        module = import_module(f"pettingzoo.classic.{name}")
        return aec(getattr(module, kind)())

    return make


def _cartpole() -> Play:
    """Gymnasium's own vector environment in NumPy, as many rows as ours."""
    import gymnasium

    env = gymnasium.make_vec("CartPole-v1", ROWS, vectorization_mode="vector_entry_point")
    env.reset(seed=1)

    def play() -> int:
        for _ in range(10):
            env.step(env.action_space.sample())
        return 10 * ROWS

    return play


def _openspiel(text: str) -> Callable[[], Play]:
    """A game in C++ through its Python binding, with the mover's observation tensor."""

    def make() -> Play:
        import pyspiel

        game = pyspiel.load_game(text)
        rng = random.Random(1)  # noqa: S311 - random play, no secrets
        state = game.new_initial_state()

        def play() -> int:
            nonlocal state
            decisions = 0
            while decisions < _DECISIONS:
                if state.is_terminal():
                    state = game.new_initial_state()
                elif state.is_chance_node():
                    drawn, _ = pyspiel.sample_action(state.chance_outcomes(), rng.random())
                    state.apply_action(drawn)
                else:
                    state.observation_tensor()
                    legal = state.legal_actions()
                    state.apply_action(legal[int(rng.random() * len(legal))])
                    decisions += 1
            return decisions

        return play

    return make


def _rlcard(name: str) -> Callable[[], Play]:
    """A game of RLCard, whose step() answers with the next state and its legal actions."""

    def make() -> Play:
        import rlcard

        env = rlcard.make(name, config={"seed": 1})
        rng = random.Random(1)  # noqa: S311 - random play, no secrets
        state, _ = env.reset()

        def play() -> int:
            nonlocal state
            for _ in range(_DECISIONS):
                legal = list(state["legal_actions"])
                state, _ = env.step(legal[int(rng.random() * len(legal))])
                if env.is_over():
                    state, _ = env.reset()
            return _DECISIONS

        return play

    return make


def _pgx(name: str, rows: int, steps: int) -> Callable[[], Play]:
    """A game of Pgx on the CPU: `steps` times drawing, step and new deals in one compiled call."""

    def make() -> Play:
        import jax
        import pgx
        from pgx.experimental import auto_reset

        env = pgx.make(name)
        step, deal = auto_reset(env.step, env.init), env.init
        shape: tuple[int, ...] = ()
        if rows > 1:  # a batch of one is faster without, as its branches stay branches
            step, deal, shape = jax.vmap(step), jax.vmap(deal), (rows,)

        def advance(carried: tuple[Any, Any], _: None) -> tuple[tuple[Any, Any], None]:
            state, key = carried
            key, drawing, dealing = jax.random.split(key, 3)
            log_odds = jax.numpy.where(state.legal_action_mask, 0.0, -jax.numpy.inf)
            actions = jax.random.categorical(drawing, log_odds, axis=-1)
            dealing = jax.random.split(dealing, shape) if shape else dealing
            return (step(state, actions, dealing), key), None

        @jax.jit
        def run(carried: tuple[Any, Any]) -> tuple[Any, Any]:
            return jax.lax.scan(advance, carried, length=steps)[0]

        cpu = jax.devices("cpu")[0]
        with jax.default_device(cpu):
            key = jax.random.PRNGKey(1)
            start = jax.jit(deal)(jax.random.split(key, shape) if shape else key)
        carried = jax.device_put((start, key), cpu)

        def play() -> int:
            nonlocal carried
            carried = jax.block_until_ready(run(carried))
            return rows * steps

        return play

    return make


_CLASSIC = ("pettingzoo", "pygame-ce")
_CLASSIC_CARDS = (*_CLASSIC, "rlcard")
PEERS: dict[str, Peer] = {
    "cartpole_vector": Peer(
        f"{ROWS:,} carts in NumPy: sampling, step, 4 numbers seen", ("gymnasium",), _cartpole
    ),
    "pgx_leduc_8192": Peer(
        "8,192 games: sampling, masks, 34 numbers seen, rewards, new deals; 10 steps a call",
        ("pgx", "jax"),
        _pgx("leduc_holdem", 8192, 10),
        goal=2,
    ),
    "pgx_leduc_1": Peer(
        "1 game: sampling, mask, 34 numbers seen, rewards, new deals; 1,000 steps a call",
        ("pgx", "jax"),
        _pgx("leduc_holdem", 1, 1000),
    ),
    "openspiel_crazy_eights": Peer(
        "1 game, 5 seats, C++ from Python: legal actions, tensor seen, chance nodes (not counted)",
        ("open_spiel",),
        _openspiel("crazy_eights"),
        goal=20,
    ),
    "openspiel_gin_rummy": Peer(
        "1 game, 2 seats, C++ from Python: legal actions, tensor seen, chance nodes (not counted)",
        ("open_spiel",),
        _openspiel("gin_rummy"),
    ),
    "rlcard_uno": Peer(
        "1 game in Python: legal actions, 240 numbers seen", ("rlcard",), _rlcard("uno"), goal=100
    ),
    "tictactoe_raw_env": Peer(
        "tic-tac-toe of PettingZoo: last() with mask, step()",
        _CLASSIC,
        _classic("tictactoe_v3", "raw_env"),
    ),
    "tictactoe_env": Peer(
        "tic-tac-toe in PettingZoo's wrappers: last() with mask, step()",
        _CLASSIC,
        _classic("tictactoe_v3", "env"),
    ),
    "connect_four_raw_env": Peer(
        "connect four of PettingZoo: last() with mask, step()",
        _CLASSIC,
        _classic("connect_four_v3", "raw_env"),
    ),
    "leduc_holdem_raw_env": Peer(
        "Leduc hold'em of PettingZoo over RLCard: last() with mask, step()",
        _CLASSIC_CARDS,
        _classic("leduc_holdem_v4", "raw_env"),
    ),
    "texas_holdem_raw_env": Peer(
        "Texas hold'em of PettingZoo over RLCard: last() with mask, step()",
        _CLASSIC_CARDS,
        _classic("texas_holdem_v4", "raw_env"),
    ),
}


def build(names: list[str] | None = None) -> tuple[dict[str, Play], dict[str, str]]:
    """The loops of what is installed, each run once, and why the others are missing.

    A library that is there but cannot play is missing too, with its error: another library's fault
    must not end the benchmark.

    Args:
        names: of `PEERS`; None for all.
    """
    plays: dict[str, Play] = {}
    missing: dict[str, str] = {}
    for name in PEERS if names is None else names:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # theirs: newer versions deprecate much
            try:
                play = PEERS[name].make()
                play()
            except ImportError as error:
                missing[name] = f"needs {error.name or error}"
            except Exception as error:
                missing[name] = f"{type(error).__name__}: {error}"[:200]
            else:
                plays[name] = play
    return plays, missing


def versions(names: list[str]) -> dict[str, str]:
    """The versions of the distributions that these peers come from."""
    found: dict[str, str] = {}
    for package in sorted({package for name in names for package in PEERS[name].packages}):
        with contextlib.suppress(PackageNotFoundError):
            found[package] = version(package)
    return found
