"""What a network gets wrong: its values of a turn's endings beside what rollouts make of them.

    python -m training.judgement two-player --positions 600

Positions are taken from games of the turn search. In each, its best endings are rolled out with
common cards, in two halves of other cards. Errors are root mean squares with the rollouts' own
noise taken off. The gain is what the ending that one half likes best makes in the other half, over
the network's choice: what is left to win by a better judgement, a choice. The same is told of the
values that look behind flips, their gain being what their choice makes over the network's. Prints
one JSON object.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import defaultdict
from typing import Any

import numpy as np

from skipbo_env.agents.agent import TurnAgent, make_agent
from skipbo_env.agents.network import TURN_OVER
from skipbo_env.agents.search import Sampler, Settings, TurnEnder, Workers
from skipbo_env.engine.layout import RESHUFFLES
from skipbo_env.rules import Rules
from training.coverage import SEED, positions

_Pairs = list[tuple[float, float]]  # an error and the variance of what it is measured against


def judged(
    agent: TurnAgent,
    rules: Rules,
    count: int,
    samples: int,
    *,
    candidates: int = 5,
    turns: int = 1,
    every: int = 37,
) -> dict[str, Any]:
    """Compare a network with rollouts of its own turn search.

    Args:
        agent: whose network and turn search.
        rules: what is played.
        count: positions.
        samples: rollouts of each ending, an even number.
        candidates: endings of each position, at most.
        turns: whole turns of a rollout.
        every: decisions from one position to the next.

    Returns:
        {"positions", "samples", "level_error", "level_error_by_reshuffles": {"0", "1", "2+"},
        "difference_error", "difference_error_by_kind": {"turn over", "goes on", "either"},
        "gain", "gain_se", "behind_flips": {"difference_error", "difference_error_by_kind", "gain",
        "gain_se"}}, all in win probability.
    """
    settings = Settings(candidates=candidates, turns=turns)
    workers: Workers | None = None
    ender: TurnEnder | None = None
    levels: dict[str, _Pairs] = defaultdict(list)
    differences: dict[str, _Pairs] = defaultdict(list)
    looked: dict[str, _Pairs] = defaultdict(list)
    gains, flip_gains = [], []
    for place, (state, endings) in enumerate(positions(agent, rules, count, candidates, every)):
        workers = workers or Workers(state, agent.network(rules), settings)
        halves = [
            Sampler(state, endings, workers, SEED + 2 * place + half).sample_evenly(samples // 2)
            for half in range(2)
        ]
        wins, pairs = (_mean_of(halves, what) for what in ("win", "difference"))
        reshuffles = ("0", "1", "2+")[min(int(state[RESHUFFLES]), 2)]
        best = endings[0]
        for ending, (win, variance) in zip(endings, wins, strict=True):
            levels[reshuffles].append((win - ending.value, variance))
        ender = ender or TurnEnder(state, agent.network(rules), candidates)
        behind = {e.slots: e.value for e in ender.look_behind(state, endings)}
        for ending, (gap, variance) in zip(endings[1:], pairs, strict=True):
            ends = {best.kind == TURN_OVER, ending.kind == TURN_OVER}
            kind = "either" if len(ends) > 1 else "turn over" if True in ends else "goes on"
            differences[kind].append((gap - (ending.value - best.value), variance))
            looked[kind].append((gap - (behind[ending.slots] - behind[best.slots]), variance))
        told = [[0.0, *(mean for mean, _ in half["difference"])] for half in halves]
        gains.append((told[1][int(np.argmax(told[0]))] + told[0][int(np.argmax(told[1]))]) / 2)
        choice = int(np.argmax([behind[ending.slots] for ending in endings]))
        flip_gains.append((told[0][choice] + told[1][choice]) / 2)
    return {
        "positions": count,
        "samples": samples,
        "level_error": _error([pair for part in levels.values() for pair in part]),
        "level_error_by_reshuffles": {name: _error(levels[name]) for name in ("0", "1", "2+")},
        **_differences(differences, gains),
        "behind_flips": _differences(looked, flip_gains),
    }


def _differences(errors: dict[str, _Pairs], gains: list[float]) -> dict[str, Any]:
    """What is told of the differences between endings."""
    return {
        "difference_error": _error([pair for part in errors.values() for pair in part]),
        "difference_error_by_kind": {
            name: _error(errors[name]) for name in ("turn over", "goes on", "either")
        },
        "gain": float(np.mean(gains)),
        "gain_se": float(np.std(gains, ddof=1) / math.sqrt(len(gains))),
    }


def _mean_of(halves: list[dict[str, _Pairs]], what: str) -> _Pairs:
    """Mean and variance of both halves together."""
    return [
        ((one + two) / 2, (error_one**2 + error_two**2) / 4)
        for (one, error_one), (two, error_two) in zip(halves[0][what], halves[1][what], strict=True)
    ]


def _error(pairs: _Pairs) -> float | None:
    """The root mean square of errors without their noise; None where there are none."""
    if not pairs:
        return None
    return math.sqrt(max(0.0, float(np.mean([error**2 - noise for error, noise in pairs]))))


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m training.judgement", description=str(__doc__).split("\n\n")[0]
    )
    parser.add_argument("agent", help="a model's name or folder")
    parser.add_argument("--positions", type=int, default=600)
    parser.add_argument("--samples", type=int, default=128, help="rollouts of each ending")
    parser.add_argument("--candidates", type=int, default=5, help="endings of a position, at most")
    chosen = parser.parse_args(arguments)
    if chosen.positions < 2 or chosen.samples < 4 or chosen.candidates < 2:
        parser.error("positions and candidates must be 2 or more, samples 4 or more")
    agent = make_agent(chosen.agent)
    if not isinstance(agent, TurnAgent) or agent.model is None:
        parser.error(f"agent: {chosen.agent!r} is no model")
    rules = Rules(players=agent.model.players, teams=agent.model.teams)
    told = judged(agent, rules, chosen.positions, chosen.samples, candidates=chosen.candidates)
    print(json.dumps(told, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
