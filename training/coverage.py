"""Whether a search's standard errors are honest: do its 95% intervals hold what the same estimator
says with a hundred times the samples?

    python -m training.coverage two-player --positions 500

Positions are taken from games of the turn search, spread over the game. In each, every candidate
ending gets the same number of rollouts, and again a hundred times as many from another seed.
Counted are the intervals of each ending's win probability and of each difference to the turn
search's choice. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

import numpy as np

from skipbo_env.agents.agent import TurnAgent, make_agent
from skipbo_env.agents.search import Ending, Sampler, Settings, TurnEnder, Workers
from skipbo_env.engine.layout import State
from skipbo_env.game import Game
from skipbo_env.rules import Rules

SEED = 20_261_130
Z95 = 1.959963984540054


def positions(
    agent: TurnAgent, rules: Rules, count: int, candidates: int, every: int
) -> list[tuple[State, list[Ending]]]:
    """Positions from the agent's own games that have a choice between endings."""
    found: list[tuple[State, list[Ending]]] = []
    seed = SEED
    while len(found) < count:
        game = Game(rules, seed=seed)
        ender = TurnEnder(game.state, agent.network(rules), candidates)
        step = seed % every
        while not game.over and len(found) < count:
            endings, _ = ender.endings(game.state)
            if step % every == 0 and len(endings) > 1 and endings[0].value < 1.0:
                found.append((game.state.copy(), endings))
            step += 1
            for action in endings[0].plan:
                game.apply(action)
        seed += 1
    return found


def covered(
    agent: TurnAgent,
    rules: Rules,
    count: int,
    samples: int,
    *,
    times: int = 100,
    candidates: int = 2,
    turns: int = 1,
    every: int = 37,
) -> dict[str, Any]:
    """How often the intervals of searches hold the value with `times` the samples.

    Args:
        agent: whose network and turn search.
        rules: what is played.
        count: positions.
        samples: rollouts of each ending.
        times: how many more the value to hold is made from.
        candidates: endings of each position.
        turns: whole turns of a rollout.
        every: decisions from one position to the next.
    """
    settings = Settings(candidates=candidates, turns=turns)
    hits: dict[str, list[bool]] = {"win": [], "difference": []}
    errors: dict[str, list[float]] = {"win": [], "difference": []}
    workers: Workers | None = None
    for place, (state, endings) in enumerate(positions(agent, rules, count, candidates, every)):
        workers = workers or Workers(state, agent.network(rules), settings)
        few = Sampler(state, endings, workers, 2 * place)
        many = Sampler(state, endings, workers, 2 * place + 1)
        known, truth = few.sample_evenly(samples), many.sample_evenly(times * samples)
        for name in hits:
            for (value, error), (right, _) in zip(known[name], truth[name], strict=True):
                hits[name].append(abs(value - right) <= Z95 * error)
                errors[name].append(error)
    return {
        "positions": count,
        "samples": samples,
        "times": times,
        "turns": turns,
        **{
            name: {
                "intervals": len(hits[name]),
                "covered": float(np.mean(hits[name])),
                "mean_se": float(np.mean(errors[name])),
            }
            for name in hits
        },
    }


def main(argv: list[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m training.coverage", description=__doc__)
    parser.add_argument("agent", nargs="?", default="two-player", help="a model's name or folder")
    parser.add_argument("--positions", type=int, default=500)
    parser.add_argument("--samples", type=int, default=40, help="rollouts of each ending")
    parser.add_argument("--times", type=int, default=100, help="how many more to compare with")
    parser.add_argument("--turns", type=int, default=1, help="whole turns of a rollout")
    options = parser.parse_args(argv)
    agent = make_agent(options.agent)
    if not isinstance(agent, TurnAgent) or agent.model is None:
        parser.error(f"{options.agent} is no model")
    rules = Rules(players=agent.model.players, teams=agent.model.teams)
    found = covered(
        agent,
        rules,
        options.positions,
        options.samples,
        times=options.times,
        turns=options.turns,
    )
    command = (
        f"python -m training.coverage {options.agent} --positions {options.positions} "
        f"--samples {options.samples} --times {options.times} --turns {options.turns}"
    )
    found = {"command": command, "sha256": agent.model.sha256, **found}
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
