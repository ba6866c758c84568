"""How fast the environments are here, in decisions per second of CPU time on one core.

Beside it stand the cost of team games and house rules, the memory of a game, the cost of importing
the package and of compiling its kernels, and other environments under the same loops.

Every rate is the median of several rounds of uniformly random legal play, kernels warm. The rounds
of all loops take turns, and a ratio is the median of the rounds' ratios, so that a machine that
slows down in between slows all of them. CPU time is the process's own, so that other programs
disturb it less than they would wall time.
"""

from __future__ import annotations

import json as json_module
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROWS = 1024
ROUNDS = 5
STANDARD = "standard"
_START_CODE = """
import time
from skipbo_env import SkipBoVectorEnv
env = SkipBoVectorEnv(2)
env.reset(seed=1)
env.step(env.sample_actions())
print(time.process_time())
"""
_IMPORT_CODE = "import time; import {module}; print(time.process_time())"

_Play = Callable[[], int]


def _rounds(plays: Mapping[str, _Play], seconds: float) -> dict[str, list[float]]:
    """Decisions per CPU-second of each loop in each of ROUNDS rounds; the loops take turns.

    Args:
        plays: loops; each says how many decisions it made.
        seconds: of CPU time for each loop, all rounds together.
    """
    rates: dict[str, list[float]] = {name: [] for name in plays}
    for play in plays.values():
        play()
    for _ in range(ROUNDS):
        for name, play in plays.items():
            decisions, began = 0, time.process_time()
            while (spent := time.process_time() - began) < seconds / ROUNDS or not decisions:
                decisions += play()
            rates[name].append(decisions / spent)
    return rates


def _medians(rounds: Mapping[str, list[float]]) -> dict[str, float]:
    return {name: statistics.median(rates) for name, rates in rounds.items()}


def _vector(observation: str, rules: Any = STANDARD) -> _Play:
    from skipbo_env import SkipBoVectorEnv

    env = SkipBoVectorEnv(ROWS, rules=rules, observation=observation)
    env.reset(seed=1)
    for _ in range(100):  # spread the rows over all stages of the game
        env.step(env.sample_actions())

    def play() -> int:
        for _ in range(10):
            env.step(env.sample_actions())
        return 10 * ROWS

    return play


def _any_of(mask: NDArray[np.int8], rng: np.random.Generator) -> int:
    legal = np.flatnonzero(mask)
    return int(legal[int(rng.random() * len(legal))])


def _aec(env: Any) -> _Play:
    """last(), a random legal action and step(), game after game."""
    rng = np.random.default_rng(1)
    env.reset(seed=1)

    def play() -> int:
        decisions = 0
        while decisions < 200:
            observation, _, termination, truncation, _ = env.last()
            if termination or truncation:
                env.reset()
                continue
            env.step(_any_of(observation["action_mask"], rng))
            decisions += 1
        return decisions

    return play


def _gymnasium() -> _Play:
    import gymnasium

    env = gymnasium.make("skipbo_env:SkipBo-v0", opponents="random")
    rng = np.random.default_rng(1)
    info = env.reset(seed=1)[1]

    def play() -> int:
        nonlocal info
        for _ in range(200):
            _, _, terminated, truncated, info = env.step(_any_of(info["action_mask"], rng))
            if terminated or truncated:
                info = env.reset()[1]
        return 200

    return play


def _rule_sets() -> dict[str, Any]:
    """The presets, and the largest tables of individuals and of teams."""
    from skipbo_env.rules import PRESETS, Rules

    return {
        **PRESETS,
        "six players": Rules(players=6),
        "twelve in teams": Rules(players=12, teams=3),
    }


def _per_rules(seconds: float) -> dict[str, dict[str, float]]:
    """Vector play under each set of rules, beside the standard two-player game."""
    from skipbo_env.engine.layout import new_state

    sets = _rule_sets()
    found: dict[str, dict[str, float]] = {
        name: {"bytes": new_state(rules).nbytes} for name, rules in sets.items()
    }
    for observation in ("cards", "features"):
        plays = {name: _vector(observation, rules) for name, rules in sets.items()}
        rounds = _rounds(plays, seconds)
        for name, rates in rounds.items():
            pairs = zip(rounds[STANDARD], rates, strict=True)
            found[name][observation] = statistics.median(rates)
            found[name][f"{observation}_cost"] = statistics.median(a / b for a, b in pairs)
    return found


def _fresh_process(code: str, environment: dict[str, str] | None = None) -> float:
    """The number that a fresh interpreter prints last."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(  # noqa: S603 - our own code, no shell
        command,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **(environment or {})},
    )
    return float(done.stdout.split()[-1])


def _import_seconds(module: str) -> float:
    code = _IMPORT_CODE.format(module=module)
    return statistics.median(_fresh_process(code) for _ in range(3))


def _start_seconds() -> tuple[float, float]:
    """Start of a process to its first step: with nothing compiled, and again with all of it."""
    with tempfile.TemporaryDirectory() as folder:
        cache = {"SKIPBO_CACHE_DIR": folder}
        cold = _fresh_process(_START_CODE, cache)
        return cold, statistics.median(_fresh_process(_START_CODE, cache) for _ in range(3))


def _cartpole() -> _Play:
    """Gymnasium's own vector environment in NumPy, as many rows as ours."""
    import gymnasium

    env = gymnasium.make_vec("CartPole-v1", ROWS, vectorization_mode="vector_entry_point")
    env.reset(seed=1)

    def play() -> int:
        for _ in range(10):
            env.step(env.action_space.sample())
        return 10 * ROWS

    return play


def _tictactoe() -> dict[str, _Play]:
    """PettingZoo's own smallest game, bare and wrapped; nothing where its pygame is missing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer versions would have it made by name
        try:
            from pettingzoo.classic import tictactoe_v3
        except ImportError:
            return {}
        return {
            "tictactoe_raw_env": _aec(tictactoe_v3.raw_env()),
            "tictactoe_env": _aec(tictactoe_v3.env()),
        }


def measure(*, seconds: float = 2.0, fresh: bool = True) -> dict[str, Any]:
    """All figures.

    Args:
        seconds: CPU-seconds for each rate.
        fresh: whether to start fresh interpreters, for the import and compile times, and to measure
            the peers; else there are None and nothing.

    Returns:
        A dict of these keys.

        - "vector_cards_random", "vector_features_random": decisions per CPU-second of 1,024
          two-player games, sampling and step.
        - "raw_env", "env", "gymnasium": the same of one game, through last() or the info, and step.
        - "rules": by set of rules {"bytes": memory of a game, "cards", "features": decisions per
          CPU-second of 1,024 games, "cards_cost", "features_cost": CPU time of a decision as a
          multiple of the standard game's}.
        - "import_s", "compile_s", "start_s": CPU-seconds to import the package; from the start of a
          process to the first step of the vector environment with nothing compiled; and the same
          with all of it compiled.
        - "peers": the same loops on other environments, and the import of Numba.
    """
    from skipbo_env import skipbo_v0

    plays = {
        "vector_cards_random": _vector("cards"),
        "vector_features_random": _vector("features"),
        "raw_env": _aec(skipbo_v0.raw_env()),
        "env": _aec(skipbo_v0.env()),
        "gymnasium": _gymnasium(),
    }
    peers = {"cartpole_vector": _cartpole(), **_tictactoe()} if fresh else {}
    rates = _medians(_rounds({**plays, **peers}, seconds))
    answer: dict[str, Any] = {name: rates[name] for name in plays}
    answer["rules"] = _per_rules(seconds / 4)
    answer.update(import_s=None, compile_s=None, start_s=None, peers={})
    if fresh:
        answer["import_s"] = _import_seconds("skipbo_env")
        answer["compile_s"], answer["start_s"] = _start_seconds()
        answer["peers"] = {name: rates[name] for name in peers}
        answer["peers"]["import_numba_s"] = _import_seconds("numba")
    return answer


def benchmark(json: bool = False, seconds: float = 2.0, fresh: bool = True) -> int:
    """Measure decisions per second of CPU time on one core, and import and compile time.

    For example:

        skipbo benchmark
        skipbo benchmark --json --seconds 10

    Args:
        json: one JSON object on stdout, nothing else.
        seconds: CPU-seconds for each rate, a quarter of it for each set of rules.
        fresh: whether to measure import and compile times, which takes about a minute.

    Returns:
        The exit code.
    """
    answer = measure(seconds=seconds, fresh=fresh)
    if json:
        print(json_module.dumps(answer))
        return 0
    per_rules, peers = answer.pop("rules"), answer.pop("peers")
    for name, value in {**answer, **peers}.items():
        if value is not None:
            shown = f"{value:14,.2f} s" if name.endswith("_s") else f"{value:14,.0f} decisions/s"
            print(f"{name:<24}{shown}")
    print()
    for name, row in per_rules.items():
        print(
            f"{name:<24}{row['cards']:14,.0f} cards/s x{row['cards_cost']:.2f}"
            f"{row['features']:14,.0f} features/s x{row['features_cost']:.2f}"
            f"{row['bytes'] / 1024:8.1f} KiB a game"
        )
    return 0
