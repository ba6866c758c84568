"""How fast the environments are here, in decisions per second of CPU time on one core.

Beside it stand the cost of team games and house rules, the memory of a game, the cost of importing
the package and of compiling its kernels, and other environments under the same loops (`peers`).

Every rate is the median of several rounds of uniformly random legal play, kernels warm. The rounds
of all loops take turns, and a ratio is the median of the rounds' ratios, so that a machine that
slows down in between slows all of them. CPU time is the process's own, of all its threads, so that
other programs disturb it less than they would wall time. The process is kept to one core meanwhile
where the system allows it, so that no library is slowed by threads of its own that wait.
"""

from __future__ import annotations

import json as json_module
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from skipbo_env.chart import check_plot, plot_rates
from skipbo_env.peers import PEERS, ROWS, Play, aec, any_of, build, versions

ROUNDS = 5
STANDARD = "standard"
_ENGINE_DECISIONS = 10_000
_START_CODE = """
import time
from skipbo_env import SkipBoVectorEnv
env = SkipBoVectorEnv(2)
env.reset(seed=1)
env.step(env.sample_actions())
print(time.process_time())
"""
_IMPORT_CODE = "import time; import {module}; print(time.process_time())"
OURS = {
    "engine": "the rules alone: legal actions, drawing one, doing it, new deals, in compiled code",
    "vector_cards_random": f"{ROWS:,} games: sampling, masks, 56 numbers seen, rewards, new deals",
    "vector_features_random": (
        f"{ROWS:,} games: sampling, masks, 592 numbers seen, rewards, new deals"
    ),
    "raw_env": "1 game through PettingZoo: last() with mask and 592 numbers, step()",
    "env": "1 game in PettingZoo's wrappers: last() with mask and 592 numbers, step()",
    "gymnasium": "1 seat: mask and 592 numbers; the opponent's decisions are made, not counted",
}
"""What a decision of each of our loops includes."""


@contextmanager
def _one_core() -> Iterator[None]:
    """Keep this thread and those that it starts to one core, where the system allows it."""
    if not hasattr(os, "sched_setaffinity"):  # macOS, Windows
        yield
        return
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def _rounds(plays: Mapping[str, Play], seconds: float) -> dict[str, list[float]]:
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


def _vector(observation: str, rules: Any = STANDARD) -> Play:
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


def _engine(rules: Any = STANDARD) -> Play:
    """One game after another in compiled code, nobody looking on."""
    from skipbo_env.engine.deal import deal
    from skipbo_env.engine.layout import first_player_code, new_state
    from skipbo_env.engine.playout import play_random
    from skipbo_env.rules import Rules

    rules = Rules.of(rules)
    state, streams = new_state(rules), np.array([1], np.uint64)
    first = first_player_code(rules)
    deal(state, np.uint64(1), first)

    def play() -> int:
        play_random(state, _ENGINE_DECISIONS, first, streams)
        return _ENGINE_DECISIONS

    return play


RULE_SET_LOOPS: dict[str, Callable[[Any], Play]] = {
    "engine": _engine,
    "cards": partial(_vector, "cards"),
    "features": partial(_vector, "features"),
}
"""What is measured under each set of rules."""


def _gymnasium() -> Play:
    import gymnasium

    env = gymnasium.make("skipbo_env:SkipBo-v0", opponents="random")
    rng = np.random.default_rng(1)
    info = env.reset(seed=1)[1]

    def play() -> int:
        nonlocal info
        for _ in range(200):
            _, _, terminated, truncated, info = env.step(any_of(info["action_mask"], rng))
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
    """The engine and vector play under each set of rules, beside the standard two-player game."""
    from skipbo_env.engine.layout import new_state

    sets = _rule_sets()
    found: dict[str, dict[str, float]] = {
        name: {"bytes": new_state(rules).nbytes} for name, rules in sets.items()
    }
    for loop, make in RULE_SET_LOOPS.items():
        rounds = _rounds({name: make(rules) for name, rules in sets.items()}, seconds)
        for name, rates in rounds.items():
            pairs = zip(rounds[STANDARD], rates, strict=True)
            found[name][loop] = statistics.median(rates)
            found[name][f"{loop}_cost"] = statistics.median(a / b for a, b in pairs)
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


def measure(*, seconds: float = 2.0, fresh: bool = True, peers: bool = True) -> dict[str, Any]:
    """All figures.

    Args:
        seconds: CPU-seconds for each rate.
        fresh: whether to start fresh interpreters, for the import and compile times; else they are
            None.
        peers: whether to measure the other environments that are installed; else there are none.

    Returns:
        A dict of these keys.

        - "engine": decisions per CPU-second of one two-player game, nobody looking on.
        - "vector_cards_random", "vector_features_random": the same of 1,024 games, sampling and
          step.
        - "raw_env", "env", "gymnasium": the same of one game, through last() or the info, and step.
        - "rules": by set of rules {"bytes": memory of a game, "engine": decisions per CPU-second of
          one game, nobody looking on, "cards", "features": the same of 1,024 games, "engine_cost",
          "cards_cost", "features_cost": CPU time of a decision as a multiple of the standard
          game's}.
        - "import_s", "compile_s", "start_s", "import_numba_s": CPU-seconds to import the package;
          from the start of a process to the first step of the vector environment with nothing
          compiled; the same with all of it compiled; and to import Numba.
        - "peers": decisions per CPU-second of other environments, by the names in `peers.PEERS`.
        - "ratios": "vector_cards_random" divided by each of them.
        - "missing": why each of the others was not measured.
        - "includes": what a decision of each loop includes.
        - "versions": of the peers' packages.
    """
    from skipbo_env import skipbo_v0

    plays = {
        "engine": _engine(),
        "vector_cards_random": _vector("cards"),
        "vector_features_random": _vector("features"),
        "raw_env": aec(skipbo_v0.raw_env()),
        "env": aec(skipbo_v0.env()),
        "gymnasium": _gymnasium(),
    }
    with _one_core():
        others, missing = build() if peers else ({}, {})
        rounds = _rounds({**plays, **others}, seconds)
        per_rules = _per_rules(seconds / 4)
    rates = {name: statistics.median(found) for name, found in rounds.items()}
    answer: dict[str, Any] = {name: rates[name] for name in plays}
    answer["rules"] = per_rules
    answer.update(import_s=None, compile_s=None, start_s=None, import_numba_s=None)
    if fresh:
        answer["import_s"] = _import_seconds("skipbo_env")
        answer["compile_s"], answer["start_s"] = _start_seconds()
        answer["import_numba_s"] = _import_seconds("numba")
    ours = rounds["vector_cards_random"]
    answer["peers"] = {name: rates[name] for name in others}
    answer["ratios"] = {
        name: statistics.median(a / b for a, b in zip(ours, rounds[name], strict=True))
        for name in others
    }
    answer["missing"] = missing
    answer["includes"] = {**OURS, **{name: PEERS[name].includes for name in others}}
    answer["versions"] = versions(list(others))
    return answer


def _print_table(answer: Mapping[str, Any]) -> None:
    """The figures as text, in the order of the JSON."""
    vector = answer["vector_cards_random"]
    rates = {name: answer[name] for name in OURS} | answer["peers"]
    width = max(map(len, rates))
    print(f"{'':<{width}}  decisions/s      x  a decision includes")
    for name, rate in rates.items():
        times = answer["ratios"].get(name, vector / rate)
        print(f"{name:<{width}}{rate:13,.0f}{times:7,.1f}  {answer['includes'][name]}")
    print("x: how many times as many decisions vector_cards_random makes")
    for name, times in answer["ratios"].items():
        if (goal := PEERS[name].goal) is not None:
            verdict = "reached" if times >= goal else "missed"
            print(f"goal: {goal:g} x {name}: {verdict} with {times:,.1f}")
    for name, why in answer["missing"].items():
        print(f"{name}: not measured, {why}")
    print()
    for name, row in answer["rules"].items():
        print(
            f"{name:<15}"
            + "".join(
                f"{row[loop]:12,.0f} {loop} x{row[f'{loop}_cost']:.2f}" for loop in RULE_SET_LOOPS
            )
            + f"{row['bytes'] / 1024:6.1f} KiB"
        )
    if answer["import_s"] is not None:
        print()
        for name in ("import_s", "import_numba_s", "compile_s", "start_s"):
            print(f"{name:<24}{answer[name]:14,.2f} s of CPU time")


def benchmark(
    json: bool = False,
    seconds: float = 2.0,
    fresh: bool = True,
    peers: bool = True,
    plot: Path | None = None,
) -> int:
    """Measure decisions per second of CPU time on one core, and import and compile time.

    Other environments are measured in the same run where they are installed: OpenSpiel, RLCard, Pgx
    and PettingZoo's classic games. For example:

        skipbo benchmark
        skipbo benchmark --json --seconds 10
        skipbo benchmark --plot speed.png

    Args:
        json: one JSON object on stdout, nothing else.
        seconds: CPU-seconds for each rate, a quarter of it for each set of rules.
        fresh: import and compile times too, which take about a minute.
        peers: other environments too.
        plot: a .png file to draw the rates in.

    Returns:
        The exit code.
    """
    if not (math.isfinite(seconds) and seconds > 0):
        raise ValueError(f"--seconds: must be more than 0, got {seconds}")
    if plot is not None:
        check_plot(plot)
    answer = measure(seconds=seconds, fresh=fresh, peers=peers)
    if plot is not None:
        plot_rates(answer, plot)
    if json:
        print(json_module.dumps(answer))
    else:
        _print_table(answer)
    return 0
