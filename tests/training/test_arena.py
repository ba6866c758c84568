"""The arena: pairs are fair, results do not depend on workers or on being recorded, agents of users
count like any other.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from skipbo_env.game import Game
from skipbo_env.record import check_file
from skipbo_env.rules import Rules
from training.arena import Match, evaluate, mean_interval, run_match, unit_seeds

SHORT = Rules(stock_size=10)


class First:
    """A user's own agent: the first legal action."""

    name = "first"

    def act(self, game_or_position: Game) -> int:
        return game_or_position.legal_actions()[0]


def first() -> First:
    return First()


def test_an_agent_against_itself_wins_exactly_half() -> None:
    """Greedy has no randomness: with seats swapped on one deal, one game of the pair mirrors the
    other.
    """
    result = evaluate("greedy", "greedy", games=400, seed=3)
    assert result["win_rate"] + result["stalemate_rate"] / 2 == pytest.approx(0.5)
    assert result["interval"][0] <= 0.5 <= result["interval"][1]


def test_rates_sum_to_one_and_greedy_beats_simple() -> None:
    result = evaluate("greedy", "simple", games=1000, seed=4)
    rates = [result[name] for name in ("win_rate", "loss_rate", "stalemate_rate", "truncated_rate")]
    assert sum(rates) == pytest.approx(1.0)
    assert result["win_rate"] > 0.76
    assert result["games"] == 1000
    assert np.mean(result["seat_win_rates"]) == pytest.approx(result["win_rate"])
    json.dumps(result)


def test_workers_make_no_difference() -> None:
    a, b = (
        evaluate("simple", "play-first", games=210, rules=SHORT, workers=workers, seed=5)
        for workers in (1, 3)
    )
    for result in (a, b):
        result.pop("seconds")
    assert a == b


@pytest.mark.parametrize(
    "rules", [SHORT, Rules(players=3, stock_size=10), Rules(players=4, teams=2, stock_size=10)]
)
def test_recorded_games_are_the_same_games(rules: Rules, tmp_path: Path) -> None:
    file = tmp_path / "games.jsonl"
    plain = evaluate("simple", "greedy", games=12, rules=rules, seed=6)
    recorded = evaluate("simple", "greedy", games=12, rules=rules, seed=6, record=file)
    plain.pop("seconds"), recorded.pop("seconds")
    assert plain == recorded
    assert check_file(file) == {"valid": True, "records": plain["games"]}


def test_units_hold_every_side_once() -> None:
    match = Match("simple", "greedy", Rules(players=4), seed=1)
    games = run_match(match, 5)
    assert games.sides.tolist() == [0, 1, 2, 3] * 5
    assert len(set(unit_seeds(1, range(50)).tolist())) == 50


def test_own_agents_are_rated_like_any_other() -> None:
    result = evaluate(f"py:{__name__}:first", "play-first", games=10, rules=SHORT, seed=7)
    assert result["games"] == 10
    assert result["agent"] == f"py:{__name__}:first"


def test_own_agents_see_nothing_hidden() -> None:
    """What a user's agent is given has its own view right and the rest dealt anew."""
    seen: list[tuple[Game, Game]] = []

    class Spy:
        name = "spy"
        real: Game

        def act(self, game_or_position: Game) -> int:
            seen.append((game_or_position, self.real.clone()))
            return game_or_position.legal_actions()[0]

    spy = Spy()
    match = Match(spy, "greedy", SHORT, seed=1)
    original = Game.determinize

    def watch(game: Game, player: int, seed: int | None = None) -> Game:
        spy.real = game
        return original(game, player, seed)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Game, "determinize", watch)
        match.play_game(5, 0)
    assert len(seen) > 5
    assert all(given.position() == real.position() for given, real in seen)
    assert any(not np.array_equal(given.state, real.state) for given, real in seen)


def test_two_ended_pile_changes_no_win_rate() -> None:
    """Drawing from opposite ends is the same game in distribution: the rates of 3,000 pairs differ
    by less than 3.5 errors.
    """
    results = [
        evaluate("greedy", "simple", games=6000, rules=SHORT, seed=8, two_ended=ends)
        for ends in (False, True)
    ]
    errors = [(r["interval"][1] - r["interval"][0]) / 2 / 1.96 for r in results]
    assert abs(results[0]["win_rate"] - results[1]["win_rate"]) < 3.5 * math.hypot(*errors)


def test_interval_of_a_mean() -> None:
    mean, low, high = mean_interval(np.array([0.0, 1.0, 0.5, 0.5]))
    half = 1.959964 * np.std([0, 1, 0.5, 0.5], ddof=1) / 2
    assert (mean, low, high) == pytest.approx((0.5, 0.5 - half, 0.5 + half))
    # Wilson's interval of 0 of 4, worked out by hand: 0 to z^2 / (n + z^2).
    assert mean_interval(np.zeros(4)) == pytest.approx((0.0, 0.0, 3.8415 / 7.8415), abs=1e-4)
    assert mean_interval(np.ones(4)) == pytest.approx((1.0, 4 / 7.8415, 1.0), abs=1e-4)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"games": 0}, "games"),
        ({"workers": 0}, "workers"),
        ({"seed": -1}, "seed"),
        ({"agent": "nobody"}, "nobody"),
        ({"rules": "nothing"}, "nothing"),
        ({"players": 3, "two_ended": True}, "two_ended"),
    ],
)
def test_bad_requests(changes: dict[str, object], word: str) -> None:
    request = {"agent": "greedy", "against": "simple", "games": 2, **changes}
    with pytest.raises(ValueError, match=word):
        evaluate(**request)
