"""Make a model's win probabilities those of games against itself.

    python -m training.calibrate runs/four/model --games 2000 --out models/mine

A network that learned against others says how games against those go. Here it plays itself, and
two numbers are fitted by logistic regression: a factor and a shift of its logits, put into the
weights of its last layer (Platt scaling). Which of two endings it likes better stays as it was;
what is weighed over the cards behind a flip moves a little.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from skipbo_env.agents import TurnAgent, load_model
from skipbo_env.agents.models import ModelError
from skipbo_env.agents.network import Network
from skipbo_env.rules import Rules
from training.arena import unit_seeds
from training.config import settings_from
from training.export import export_model
from training.report import self_play

SEED = 51_102_026  # of games that neither a run nor a report has played
STEPS = 50


def fit(said: NDArray[np.float64], won: NDArray[np.float64]) -> tuple[float, float]:
    """Factor and shift of the logits under which the results are likeliest.

    Args:
        said: probabilities, shape (n,).
        won: results from 0 to 1, shape (n,).

    Returns:
        (factor, shift).

    Raises:
        ValueError: the results do not tell them: too few, all alike, or falling where the
            probabilities rise.
    """
    inside = np.clip(said, 1e-6, 1 - 1e-6)
    logits = np.column_stack([np.log(inside / (1 - inside)), np.ones(len(said))])
    found = np.array([1.0, 0.0])
    for _ in range(STEPS):  # Newton's method on a convex sum of two unknowns
        now = 1 / (1 + np.exp(-np.clip(logits @ found, -50, 50)))
        curved = logits.T @ (logits * (now * (1 - now))[:, None])
        if not np.linalg.cond(curved) < 1e12:
            break
        step = np.linalg.solve(curved, logits.T @ (won - now))
        found += step
        if np.abs(step).max() < 1e-9 and found[0] > 0:
            return float(found[0]), float(found[1])
    raise ValueError("the games do not tell how the probabilities should be; play more")


def moved(network: Network, factor: float, shift: float) -> Network:
    """The network with every logit times a factor and a shift more."""
    return network._replace(
        w3=(network.w3 * factor).astype(np.float32),
        b3=(network.b3 * factor + shift).astype(np.float32),
    )


def main(argv: list[str] | None = None) -> int:
    """Play, fit, and write the model."""
    parser = argparse.ArgumentParser(prog="python -m training.calibrate", description=__doc__)
    parser.add_argument("model", type=Path, help="the model's folder")
    parser.add_argument("--games", type=int, default=2000, help="games against itself")
    parser.add_argument("--out", type=Path, required=True, help="the new model's folder")
    options = parser.parse_args(argv)
    if options.games < 1:
        parser.error("--games: must be 1 or more")
    model = load_model(options.model)
    if model.value is None:
        raise ModelError(f"{options.model}: has no value network")
    if (options.out / "config.json").exists():
        raise ModelError(f"{options.out}: holds a model already")
    rules = Rules(model.players, model.teams, stock_size=model.config.get("stock_size"))
    seeds = unit_seeds(SEED, range(options.games)).tolist()
    said, won, _ = self_play(TurnAgent(model), rules, seeds)
    factor, shift = fit(said, won)
    trained = dict(model.config["trained"])
    told = {"games": options.games, "seed": SEED, "factor": factor, "shift": shift}
    trained["calibrated"] = told
    trained["notes"] = (
        f"{trained.get('notes', '')} Its logits were then moved to those of games against itself: "
        f"times {factor:.3f}, {shift:+.3f}, by `python -m training.calibrate --games "
        f"{options.games}`."
    ).strip()
    settings = settings_from(model.config["training"])
    export_model(options.out, moved(model.value, factor, shift), settings, trained)
    print(f"{options.out}: logits times {factor:.3f}, {shift:+.3f}, from {len(said):,} values")
    return 0


if __name__ == "__main__":
    sys.exit(main())
