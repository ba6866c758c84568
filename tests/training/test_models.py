"""The models that ship: their folders are whole, their cards say what results.json says, and a part
of each line repeats.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from skipbo_env.agents import list_models, load_model
from skipbo_env.agents.models import find_model
from skipbo_env.rules import Rules
from training.arena import Z95, evaluate
from training.report import SEED, table_of

NAMES = list_models()


def folder_of(name: str) -> Path:
    folder = find_model(name)
    assert folder is not None
    return folder


def test_a_two_player_model_ships() -> None:
    assert "two-player" in NAMES


@pytest.mark.parametrize("name", NAMES)
def test_card_and_results_belong_to_the_weights(name: str) -> None:
    folder = folder_of(name)
    results = json.loads((folder / "results.json").read_text())
    assert results["sha256"] == load_model(folder).sha256
    assert table_of(results) in (folder / "README.md").read_text()
    assert (folder / "value.safetensors").stat().st_size < 5_000_000


@pytest.mark.parametrize("name", NAMES)
def test_published_results_repeat(name: str) -> None:
    """300 games of each line, on its seed: within four errors of the published rate."""
    folder = folder_of(name)
    for line in json.loads((folder / "results.json").read_text())["results"]:
        rules = Rules(players=line["players"], stock_size=line["stock_size"])
        games = 300
        again = evaluate(str(folder), line["against"], games=games, rules=rules, seed=SEED)
        rate = line["win_rate"]
        spread = (line["interval"][1] - line["interval"][0]) / 2 / Z95 * math.sqrt(line["games"])
        assert abs(again["win_rate"] - rate) < 4 * max(spread, 0.1) / math.sqrt(games) + 0.01


def test_the_two_player_model_beats_greedy() -> None:
    """The bar of its release, by its own published match: 75% over 20,000 paired games."""
    results = json.loads((folder_of("two-player") / "results.json").read_text())
    line = next(r for r in results["results"] if r["against"] == "greedy" and r["stock_size"] == 30)
    assert line["games"] >= 20_000
    assert line["win_rate"] >= 0.75
