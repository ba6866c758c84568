"""Tournaments: who meets whom, ratings that recover known strengths, results that do not depend on
workers or on being recorded.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from skipbo_env.record import check_file
from skipbo_env.rules import Rules
from training.arena import Games, evaluate
from training.tournament import beaten, fit, line_ups, ratings, tournament, unit_seats

SHORT = Rules(stock_size=10)
PANEL = ["greedy", "simple", "play-first"]


def test_line_ups() -> None:
    assert line_ups(3, 2) == [(0, 1), (0, 2), (1, 2)]
    assert line_ups(4, 3) == [(0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)]
    assert line_ups(2, 4) == [(0, 1, 1, 1), (1, 0, 0, 0)]


def test_every_agent_sits_once_on_every_side() -> None:
    for unit in range(20):
        seats = unit_seats((4, 1, 7), 1, unit)
        assert sorted(seats[0].tolist()) == [1, 4, 7]
        for column in seats.T:
            assert sorted(column.tolist()) == [1, 4, 7]
    orders = {tuple(unit_seats((4, 1, 7), 1, unit)[0]) for unit in range(20)}
    assert len(orders) == 2  # the two orders around the table
    assert unit_seats((0, 1), 1, 5).tolist() == [[0, 1], [1, 0]]


def simulated(strengths: np.ndarray, sides: int, games: int, seed: int) -> Games:
    """Games in which each agent at the table wins in proportion to its strength."""
    draw = np.random.default_rng(seed)
    seats = np.array([draw.permutation(len(strengths))[:sides] for _ in range(games)])
    chances = strengths[seats] / strengths[seats].sum(axis=1, keepdims=True)
    winners = (chances.cumsum(axis=1) > draw.random((games, 1))).argmax(axis=1)
    return Games(seats, winners, winners, winners, np.zeros((games, sides, 2)))


@pytest.mark.parametrize("sides", [2, 3, 4])
def test_ratings_recover_known_strengths(sides: int) -> None:
    true = np.array([250.0, 100.0, 0.0, -100.0, -250.0])
    games = simulated(10 ** (true / 400), sides, 12_000, seed=sides)
    point, bounds = ratings(beaten(5, games, np.arange(12_000)))
    width = bounds[:, 1] - bounds[:, 0]
    assert (np.abs(point - true) < 2 * width).all()
    assert (width < 40).all()
    assert point.sum() == pytest.approx(0.0)
    assert ((bounds[:, 0] < point) & (point < bounds[:, 1])).all()


def test_intervals_of_ratings_cover() -> None:
    """Of 50 small tournaments, the 95% intervals hold nine tenths or more of the true ratings."""
    true = np.array([80.0, 0.0, -80.0])
    inside = []
    for seed in range(50):
        games = simulated(10 ** (true / 400), 2, 600, seed=100 + seed)
        _, bounds = ratings(beaten(3, games, np.arange(600)), seed=seed, bootstraps=100)
        inside.append((bounds[:, 0] < true) & (true < bounds[:, 1]))
    assert np.mean(inside) > 0.90


def test_two_agents_have_the_rating_of_their_win_rate() -> None:
    """300 wins to 100: a lead of 400 log10(3) points, but for half a virtual win each way."""
    counts = np.array([[0.0, 300.0], [100.0, 0.0]])
    points = fit(counts)
    assert points[0] - points[1] == pytest.approx(400 * np.log10(3), abs=2)
    never = fit(np.array([[0.0, 50.0], [0.0, 0.0]]))
    assert np.isfinite(never).all()
    assert never[0] > 300


def test_a_round_robin_is_matches_on_the_same_deals() -> None:
    result = tournament(PANEL, games=300, rules=SHORT, seed=5)
    assert result["games"] == 900
    for name, other in (("greedy", "simple"), ("simple", "play-first")):
        match = evaluate(name, other, games=300, rules=SHORT, seed=5)
        met = result["cross_table"][name][other]
        assert met["win_rate"] == match["win_rate"]
        assert met["interval"] == match["interval"]
        assert met["games"] == 300
    assert [entry["agent"] for entry in result["standings"]] == PANEL
    won = sum(entry["win_rate"] * entry["games"] for entry in result["standings"])
    none = result["stalemate_rate"] + result["truncated_rate"]
    assert won == pytest.approx(900 * (1 - none))
    assert sum(result["seat_win_rates"]) == pytest.approx(1 - none)
    for entry in result["standings"]:
        assert np.mean(entry["seat_win_rates"]) == pytest.approx(entry["win_rate"])
        low, high = entry["rating_interval"]
        assert low < entry["rating"] < high
    json.dumps(result)


@pytest.mark.parametrize(
    "rules", [SHORT, Rules(players=3, stock_size=8), Rules(players=4, teams=2, stock_size=6)]
)
def test_neither_workers_nor_records_make_a_difference(rules: Rules, tmp_path: Path) -> None:
    file = tmp_path / "games.jsonl"
    results = []
    for options in ({"workers": 1}, {"workers": 3}, {"record": file}):
        result = tournament(PANEL, games=24, rules=rules, seed=5, **options)
        result.pop("seconds")
        results.append(result)
    assert results[0] == results[1] == results[2]
    assert check_file(file) == {"valid": True, "records": results[0]["games"]}


def test_more_seats_than_agents() -> None:
    result = tournament(["greedy", "simple"], games=40, rules=Rules(players=4, stock_size=6))
    assert result["games"] == 80
    assert result["standings"][0]["agent"] == "greedy"


@pytest.mark.parametrize(
    ("agents", "options", "word"),
    [
        (["greedy"], {}, "two or more"),
        (["greedy", "simple", "greedy"], {}, "greedy"),
        (["greedy", "nobody"], {}, "nobody"),
        (["greedy", "two-player"], {"players": 3}, "two-player"),
        (["greedy", "simple"], {"games": 0}, "games"),
        (["greedy", "simple"], {"plot": "x.gif"}, "x.gif"),
    ],
)
def test_bad_requests(agents: list[str], options: dict[str, object], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        tournament(agents, **{"games": 2, **options})
