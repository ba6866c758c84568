"""Training learns to play: the first agents of a learner often only discard, and never find out.

A short run, and the whole smoke preset, must beat play-first random clearly and their own untrained
network as well, and must win by emptying the stock.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from skipbo_env.agents.agent import TurnAgent
from skipbo_env.agents.models import Model, load_model
from training.arena import Match, run_match, summary
from training.config import PRESETS, Config
from training.run import train
from training.td import Learner

# Ten-card stocks: games are a third as long, and so is the road from a card to the win.
SHORT = replace(
    PRESETS["smoke"],
    stock_size=10,
    hidden=32,
    iterations=12,
    games=64,
    warm_start=1,
    warm_start_games=400,
    eval_every=12,
    eval_pairs=50,
    max_nodes=64,
    threads=1,
)


def check_that_it_learns(config: Config, folder: Path, pairs: int, lowest: float) -> None:
    """Train, then play pairs of games against play-first and the untrained network.

    Args:
        config: the run.
        folder: where it goes.
        pairs: pairs of games (same deal, seats swapped) against each.
        lowest: what the lower end of the 95% interval against play-first has to reach.
    """
    trained = train(config, folder)
    assert trained is not None
    # Turn search alone: what a network that has hardly learned says behind flips is noise.
    agent = TurnAgent(load_model(trained), flips=False)
    network = Learner(config).network.compiled()
    boards = config.rules.boards
    model = Model("untrained", Path(), {}, config.players, config.teams, boards, network, "")
    untrained = TurnAgent(model, flips=False)
    rules = replace(config.rules, max_turns=2000)
    results = {}
    for name, opponent in (("play-first", "play-first"), ("untrained", untrained)):
        match = Match(agent, opponent, rules, seed=77)
        results[name] = summary(match, run_match(match, pairs, workers=1), 0.0)
    assert results["play-first"]["interval"][0] > lowest, results
    assert results["untrained"]["interval"][0] > 0.5, results
    # Wins are stocks played to their end.
    assert results["play-first"]["win_rate"] + results["play-first"]["loss_rate"] > 0.9, results


def test_a_short_run_learns_to_play(tmp_path: Path) -> None:
    check_that_it_learns(SHORT, tmp_path / "run", pairs=150, lowest=0.75)


@pytest.mark.slow
def test_the_smoke_preset_learns_to_play(tmp_path: Path) -> None:
    check_that_it_learns(PRESETS["smoke"], tmp_path / "run", pairs=500, lowest=0.9)
