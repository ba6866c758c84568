"""How fast the environments are here, in decisions per second of CPU time on one core.

Beside it stand the cost of importing the package and of compiling its kernels.

Every figure is the median of several rounds of uniformly random legal play, kernels warm. CPU time
is the process's own, so that other programs on the machine disturb it less than they would wall
time.
"""

from __future__ import annotations

import json as json_module
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROWS = 1024
ROUNDS = 5
_WARM_CODE = """
import time
began = time.perf_counter()
from skipbo_env import SkipBoVectorEnv
env = SkipBoVectorEnv(2)
env.reset(seed=1)
env.step(env.sample_actions())
print(time.perf_counter() - began)
"""
_IMPORT_CODE = (
    "import time; began = time.perf_counter(); import {module}; print(time.perf_counter() - began)"
)


def _rate(play: Callable[[], int], seconds: float) -> float:
    """Decisions per CPU-second: the median of ROUNDS rounds; `play` says how many it made."""
    play()
    rates = []
    for _ in range(ROUNDS):
        decisions, began = 0, time.process_time()
        while (spent := time.process_time() - began) < seconds / ROUNDS or not decisions:
            decisions += play()
        rates.append(decisions / spent)
    return statistics.median(rates)


def _vector(observation: str) -> Callable[[], int]:
    from skipbo_env import SkipBoVectorEnv

    env = SkipBoVectorEnv(ROWS, observation=observation)
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


def _aec(env: Any) -> Callable[[], int]:
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


def _gymnasium() -> Callable[[], int]:
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


def _fresh_process(code: str, environment: dict[str, str] | None = None) -> float:
    """The number of seconds that a fresh interpreter prints."""
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


def _cartpole() -> Callable[[], int]:
    """Gymnasium's own vector environment in NumPy, as many rows as ours."""
    import gymnasium

    env = gymnasium.make_vec("CartPole-v1", ROWS, vectorization_mode="vector_entry_point")
    env.reset(seed=1)

    def play() -> int:
        for _ in range(10):
            env.step(env.action_space.sample())
        return 10 * ROWS

    return play


def _peers(seconds: float) -> dict[str, float]:
    """Other environments under the same loops; PettingZoo's tic-tac-toe only where pygame is."""
    peers = {
        "import_numba_s": _import_seconds("numba"),
        "cartpole_vector": _rate(_cartpole(), seconds),
    }
    try:
        from pettingzoo.classic import tictactoe_v3
    except ImportError:
        return peers
    peers["tictactoe_raw_env"] = _rate(_aec(tictactoe_v3.raw_env()), seconds)
    peers["tictactoe_env"] = _rate(_aec(tictactoe_v3.env()), seconds)
    return peers


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
        - "import_s", "compile_s": seconds to import the package, and from nothing compiled to the
          first step of the vector environment.
        - "peers": the same loops on other environments, and the import of Numba.
    """
    from skipbo_env import skipbo_v0

    answer: dict[str, Any] = {
        "vector_cards_random": _rate(_vector("cards"), seconds),
        "vector_features_random": _rate(_vector("features"), seconds),
        "raw_env": _rate(_aec(skipbo_v0.raw_env()), seconds),
        "env": _rate(_aec(skipbo_v0.env()), seconds),
        "gymnasium": _rate(_gymnasium(), seconds),
        "import_s": None,
        "compile_s": None,
        "peers": {},
    }
    if fresh:
        answer["import_s"] = _import_seconds("skipbo_env")
        with tempfile.TemporaryDirectory() as folder:
            answer["compile_s"] = _fresh_process(_WARM_CODE, {"SKIPBO_CACHE_DIR": folder})
        answer["peers"] = _peers(seconds)
    return answer


def benchmark(json: bool = False, seconds: float = 2.0, fresh: bool = True) -> int:
    """Measure decisions per second of CPU time on one core, and import and compile time.

    For example:

        skipbo benchmark
        skipbo benchmark --json --seconds 10

    Args:
        json: one JSON object on stdout, nothing else.
        seconds: CPU-seconds for each rate.
        fresh: whether to measure import and compile times, which takes about a minute.

    Returns:
        The exit code.
    """
    answer = measure(seconds=seconds, fresh=fresh)
    if json:
        print(json_module.dumps(answer))
        return 0
    peers = answer.pop("peers")
    for name, value in {**answer, **peers}.items():
        if value is not None:
            shown = f"{value:14,.2f} s" if name.endswith("_s") else f"{value:14,.0f} decisions/s"
            print(f"{name:<24}{shown}")
    return 0
