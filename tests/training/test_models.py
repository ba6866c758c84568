"""The models that ship: their folders are whole, their cards say what results.json says, and the
first games of each line repeat.
"""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest

from skipbo_env.agents import list_models, load_model, make_agent
from skipbo_env.agents.models import find_model
from skipbo_env.agents.policy import POLICY_VERSION
from skipbo_env.rules import Rules
from tests.skipbo_env.test_policy import write_model
from training import report
from training.arena import evaluate
from training.machine import compiled_for
from training.report import SEED, calibration, main, table_of

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
    model = load_model(folder)
    assert results["sha256"] == model.sha256
    assert (results.get("policy") or {"sha256": ""})["sha256"] == model.policy_sha256
    assert table_of(results) in (folder / "README.md").read_text()
    for weights in folder.glob("*.safetensors"):
        assert weights.stat().st_size < 5_000_000


@pytest.mark.parametrize("name", NAMES)
def test_published_results_repeat(name: str) -> None:
    """The first deals of each line, on its seed, are won by whom results.json says: exactly, where
    kernels are compiled for the same machine; elsewhere sums may be rounded otherwise, which turns
    a game of a hundred. And they agree with the published rate within four errors.
    """
    folder = folder_of(name)
    model = load_model(folder)
    results = json.loads((folder / "results.json").read_text())
    by_policy = (results.get("policy") or {"results": []})["results"]
    for line in [*results["results"], *by_policy]:
        rules = Rules(
            players=line["players"],
            teams=model.teams,
            stock_size=line["stock_size"],
            **line.get("house_rules", {}),
        )
        units, wins = line["first"]["units"], line["first"]["wins"]
        games = units * rules.sides
        agent = f"policy:{folder}" if line in by_policy else str(folder)
        again = evaluate(agent, line["against"], games=games, rules=rules, seed=SEED)
        slack = 0 if results["compiled_for"] == compiled_for() else 0.06 * games
        assert abs(round(again["win_rate"] * games) - wins) <= slack, line["against"]
        rate = line["win_rate"]
        assert abs(wins / games - rate) < 4 * math.sqrt(max(rate * (1 - rate), 0.01) / games) + 0.01


@pytest.mark.parametrize("name", NAMES)
def test_published_calibration(name: str) -> None:
    """It belongs to the picture beside it, adds up, and says something: a coin has 0.25."""
    folder = folder_of(name)
    told = json.loads((folder / "results.json").read_text())["calibration"]
    if load_model(folder).value is None:
        assert told is None
        return
    assert (folder / "calibration.png").read_bytes().startswith(b"\x89PNG")
    assert "(calibration.png)" in (folder / "README.md").read_text()
    assert sum(b["endings"] for b in told["bins"]) <= told["endings"]
    assert told["brier"] < 0.22
    assert told["gap"] < 0.05
    assert told["games"] >= 1000


def test_calibration_counts_right() -> None:
    """A network that plays as before but says 82.5% all but always: its Brier score and gap follow
    from the share of its endings that were won.
    """
    agent = make_agent("two-player?max_nodes=64&flips=0")  # behind a flip it sees wins
    value = agent.model.value
    flat = value._replace(w3=value.w3 * 1e-3, b3=np.full(1, math.log(0.825 / 0.175), np.float32))
    agent.model = agent.model._replace(value=flat)
    told = calibration(agent, Rules(stock_size=3), 40)
    (only,) = told["bins"]
    assert only["value"] == pytest.approx(0.825, abs=0.002)
    assert only["endings"] == told["endings"] > 500
    assert 0.3 < only["won"] < 0.7
    expected = only["won"] * 0.175**2 + (1 - only["won"]) * 0.825**2
    assert told["brier"] == pytest.approx(expected, abs=0.003)
    assert told["gap"] == pytest.approx(0.825 - only["won"], abs=0.002)
    low, high = only["interval"]
    assert low < only["won"] < high


def test_the_report_writes_results_card_and_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a copy with few games, against the model itself as the release before: exactly half."""
    folder = tmp_path / "mine"
    shutil.copytree(folder_of("two-player"), folder)
    short = Rules(stock_size=5)
    monkeypatch.setattr(report, "lines", lambda rules: [("greedy", short, 1.0)])
    monkeypatch.setattr(report, "FIRST_UNITS", 2)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "stock_size": 5}))
    previous = str(folder_of("two-player"))
    words = [str(folder), "--games", "20", "--workers", "1", "--previous", previous]
    monkeypatch.setattr(report, "think_times", lambda agent, rules: THOUGHT)
    assert main(words) == 0
    results = json.loads((folder / "results.json").read_text())
    assert results["previous"]["win_rate"] == 0.5
    assert results["previous"]["against"].startswith("two-player ")
    assert results["results"][0]["first"] == {"units": 2, "wins": wins_of(results, short)}
    assert table_of(results) in (folder / "README.md").read_text()
    assert (folder / "calibration.png").stat().st_size > 10_000
    # What was measured of these weights is kept where that is asked for, the rest is measured.
    results["results"][0]["win_rate"] = 0.123
    results["calibration"]["brier"] = results["thinking"]["mean_ms"] = 0.456
    (folder / "results.json").write_text(json.dumps(results))
    assert main([*words, "--keep"]) == 0
    kept = json.loads((folder / "results.json").read_text())
    assert kept["results"][0]["win_rate"] == 0.123
    assert kept["calibration"]["brier"] == kept["thinking"]["mean_ms"] == 0.456
    # So are those of a report that was ended.
    (folder / "results.partial.json").write_text(
        json.dumps(
            {
                "of": {
                    "seed": SEED,
                    "sha256": results["sha256"],
                    "policy_sha256": load_model(folder).policy_sha256,
                    "flips": report.FLIPS,
                },
                "lines": [{**results["results"][0], "win_rate": 0.321}],
            }
        )
    )
    assert main(words) == 0
    assert json.loads((folder / "results.json").read_text())["results"][0]["win_rate"] == 0.321
    assert not (folder / "results.partial.json").exists()
    results["sha256"] = "another"
    (folder / "results.json").write_text(json.dumps(results))
    assert main([*words, "--keep"]) == 0
    again = json.loads((folder / "results.json").read_text())
    assert again["results"][0]["win_rate"] != 0.123
    assert again["calibration"]["brier"] != 0.456
    assert again["thinking"] == THOUGHT


def test_the_report_measures_a_policy_beside_the_value_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a folder with a policy alone, which has no calibration and no picture of it."""
    rules = Rules(stock_size=5)
    monkeypatch.setattr(
        report, "lines", lambda rules: [("greedy", rules, 1.0), ("simple", Rules(stock_size=4), 1)]
    )
    monkeypatch.setattr(report, "FIRST_UNITS", 2)
    monkeypatch.setattr(report, "think_times", lambda agent, rules: THOUGHT)
    both = tmp_path / "both"
    shutil.copytree(folder_of("two-player"), both)
    alone = write_model(tmp_path / "alone", Rules(), stock_size=5)
    config = json.loads((both / "config.json").read_text())
    policy = {"policy": {"features": POLICY_VERSION}, "stock_size": 5}
    (both / "config.json").write_text(json.dumps({**config, **policy}))
    shutil.copy(alone / "policy.safetensors", both)
    (alone / "README.md").write_text("# alone\n")
    for folder in (both, alone):
        assert main([str(folder), "--games", "20", "--workers", "1"]) == 0
        results = json.loads((folder / "results.json").read_text())
        (line,) = results["policy"]["results"]  # of the model's own rules
        assert line["agent"] == f"policy:{folder.name}"
        again = evaluate(f"policy:{folder}", "greedy", games=20, rules=rules, seed=SEED)
        assert line["win_rate"] == again["win_rate"]
        card = (folder / "README.md").read_text()
        assert table_of(results) in card
        assert card.count("| greedy | 5 cards |") == (2 if folder == both else 1)
    assert results["calibration"] is None
    assert not (alone / "calibration.png").exists()
    line["win_rate"] = 0.123  # of these weights: kept where that is asked for
    (alone / "results.json").write_text(json.dumps(results))
    assert main([str(alone), "--games", "20", "--workers", "1", "--keep"]) == 0
    kept = json.loads((alone / "results.json").read_text())["policy"]["results"]
    assert kept[0]["win_rate"] == 0.123


THOUGHT = {"searches": 1, "mean_ms": 0.1, "p99_ms": 0.1, "max_ms": 0.1}


def wins_of(results: dict[str, object], rules: Rules) -> int:
    """Games won of the first two deals, played anew."""
    again = evaluate("two-player", "greedy", games=4, rules=rules, seed=SEED)
    return round(again["win_rate"] * 4)


def test_the_two_player_model_beats_greedy() -> None:
    """The bar of its release, by its own published match: 75% over 20,000 paired games."""
    results = json.loads((folder_of("two-player") / "results.json").read_text())
    line = next(r for r in results["results"] if r["against"] == "greedy" and r["stock_size"] == 30)
    assert line["games"] >= 20_000
    assert line["win_rate"] >= 0.75
