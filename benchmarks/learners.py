"""`python -m benchmarks.learners`: PPO of this project beside MaskablePPO of sb3-contrib.

Decisions learned per second on the same game with networks of one size, in turn, in one run: our
own learner; MaskablePPO fed by `SkipBoVecEnv`, many games in one compiled call; and MaskablePPO fed
by ordinary Gymnasium environments, as `make_vec_env` makes them. Needs the extra `compat`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import nn

from training.config import PPO_PRESETS
from training.ppo import Learner

SUMMARY = "PPO of this project beside MaskablePPO of sb3-contrib."
STEPS, BATCH, EPOCHS = 32, 4096, 2
GAMES = {"ours": 2048, "vec": 1024, "gymnasium": 16}
NAMES = {
    "ours": "skipbo train --algo ppo",
    "vec": "MaskablePPO, SkipBoVecEnv",
    "gymnasium": "MaskablePPO, Gymnasium environments",
}


def ours(hidden: int, hidden2: int, threads: int) -> Callable[[], int]:
    """Our learner: a call is one iteration, and tells how many decisions it learned from."""
    config = replace(
        PPO_PRESETS["default"],
        hidden=hidden,
        hidden2=hidden2,
        threads=threads,
        games=GAMES["ours"],
        steps=STEPS,
        batch_size=BATCH,
        epochs=EPOCHS,
    )
    learner = Learner(config)

    def work() -> int:
        before = learner.totals["decisions"]
        left = learner.iterate()["left_out_share"]
        return int((learner.totals["decisions"] - before) * (1.0 - left))

    return work


def theirs(kind: str, hidden: int, hidden2: int) -> Callable[[], int]:
    """MaskablePPO: a call is one round of playing and learning."""
    import gymnasium
    from sb3_contrib import MaskablePPO
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

    from skipbo_env.adapters.sb3 import SkipBoVecEnv

    class Trunk(BaseFeaturesExtractor):
        """Two layers that policy and value share, as in our network."""

        def __init__(self, space: gymnasium.spaces.Box) -> None:
            super().__init__(space, hidden2)
            self.layers = nn.Sequential(
                nn.Linear(space.shape[0], hidden),
                nn.ReLU(),
                nn.Linear(hidden, hidden2),
                nn.ReLU(),
            )

        def forward(self, observations: torch.Tensor) -> torch.Tensor:
            """What both heads are computed from."""
            told: torch.Tensor = self.layers(observations)
            return told

    games = GAMES[kind]
    env: Any = SkipBoVecEnv(games, opponents="greedy", reward="shaped")
    if kind == "gymnasium":
        options = {"opponents": "greedy", "reward": "shaped"}
        env = make_vec_env("skipbo_env:SkipBo-v0", games, env_kwargs=options)
    steps = STEPS * max(1, 4096 // (games * STEPS))
    model = MaskablePPO(
        "MlpPolicy",
        env,
        n_steps=steps,
        batch_size=min(BATCH, games * steps),
        n_epochs=EPOCHS,
        gamma=1.0,
        policy_kwargs={"features_extractor_class": Trunk, "net_arch": []},
        seed=1,
        device="cpu",
    )

    def work() -> int:
        before = int(model.num_timesteps)
        model.learn(games * steps, reset_num_timesteps=False)
        return int(model.num_timesteps) - before

    return work


def compare(
    *, rounds: int, seconds: float, threads: int, hidden: int, hidden2: int
) -> dict[str, Any]:
    """Time each in turn.

    Args:
        rounds: of each.
        seconds: of a round, at least.
        threads: of torch and of our games.
        hidden: width of the first layer.
        hidden2: width of the second one.

    Returns:
        {"threads", "network", "contestants": {name: {"decisions_per_s", "decisions_per_cpu_s",
        "rounds"}}, "ratios", "cpu_ratios"}: medians of the rounds, and the rounds as decisions per
        second and per second of CPU; and how many times MaskablePPO's ours is, the median of the
        ratios round by round. On a machine that does other work CPU time tells more.
    """
    torch.set_num_threads(threads)
    works = {"ours": ours(hidden, hidden2, threads)}
    works |= {kind: theirs(kind, hidden, hidden2) for kind in ("vec", "gymnasium")}
    rates: dict[str, list[tuple[float, float]]] = {name: [] for name in works}
    for work in works.values():
        work()  # compiled, and its memory at hand
    for _ in range(rounds):
        for name, work in works.items():
            start, cpu, decisions = time.perf_counter(), time.process_time(), 0
            while not decisions or time.perf_counter() - start < seconds:
                decisions += work()
            spent = time.perf_counter() - start, time.process_time() - cpu
            rates[name].append((decisions / spent[0], decisions / spent[1]))

    def ratios(by: int) -> dict[str, float]:
        return {
            name: statistics.median(
                a[by] / b[by] for a, b in zip(rates["ours"], rates[name], strict=True)
            )
            for name in ("vec", "gymnasium")
        }

    return {
        "threads": threads,
        "network": [hidden, hidden2],
        "contestants": {
            name: {
                "decisions_per_s": statistics.median(rate for rate, _ in told),
                "decisions_per_cpu_s": statistics.median(rate for _, rate in told),
                "rounds": told,
            }
            for name, told in rates.items()
        },
        "ratios": ratios(0),
        "cpu_ratios": ratios(1),
    }


def main(argv: list[str] | None = None) -> int:
    """Compare and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.learners", description=SUMMARY)
    parser.add_argument("--rounds", type=int, default=5, help="of each, taking turns (5)")
    parser.add_argument("--seconds", type=float, default=10.0, help="of a round, at least (10)")
    parser.add_argument("--threads", type=int, default=2, help="of torch and our games (2)")
    parser.add_argument("--hidden", type=int, default=256, help="width of the first layer (256)")
    parser.add_argument("--hidden2", type=int, default=128, help="width of the second (128)")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    chosen = vars(parser.parse_args(argv))
    for name in ("rounds", "threads"):
        if chosen[name] < 1:
            parser.error(f"--{name}: must be 1 or more")
    as_json = chosen.pop("json")
    told = compare(**chosen)
    if as_json:
        print(json.dumps(told))
        return 0
    table = Table("learner", "decisions/s", "ours is", "decisions/s of CPU", "ours is")
    for name, found in told["contestants"].items():
        cells = [NAMES[name]]
        for rate, ratio in (("decisions_per_s", "ratios"), ("decisions_per_cpu_s", "cpu_ratios")):
            times = told[ratio].get(name)
            cells += [f"{found[rate]:,.0f}", f"{times:.1f}x" if times else ""]
        table.add_row(*cells)
    Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
