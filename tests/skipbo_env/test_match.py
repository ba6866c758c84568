"""Matches: who begins, what adds up, when it ends; the scorekeeper's entries, good and bad."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest

from skipbo_env import record
from skipbo_env.engine import layout, moves
from skipbo_env.game import Game
from skipbo_env.match import EntryError, Match, Scorekeeper
from skipbo_env.rules import Rules


def play_out(game: Game, seed: int = 0) -> Game:
    """Play a game to its end, mostly by plays."""
    rng = random.Random(seed)
    while not game.over:
        legal = game.legal_actions()
        plays = [a for a in legal if a < moves.A_END or moves.A_STOCK2 <= a < moves.A_END2]
        game.apply(rng.choice(plays if plays and rng.random() < 0.9 else legal))
    return game


# Match -----------------------------------------------------------------------------------------


def test_a_game_counts_once() -> None:
    """Also where the seat that began it begins again, and as its record tells it."""
    match = Match({"stock_size": 2, "target_score": 1000}, seed=1)
    games = []
    for index in range(4):
        games.append(play_out(match.new_game(), index))
        match.add(games[-1])
        scores = list(match.scores)
        for game in games:
            with pytest.raises(ValueError, match="counted already"):
                match.add(game)
            with pytest.raises(ValueError, match="counted already"):
                match.add(Game.from_record(game.record()))
        assert match.scores == scores


@pytest.mark.parametrize(
    "rules",
    [
        Rules(stock_size=3, first_player=1, target_score=150),
        Rules(players=3, stock_size=3, first_player=2, target_score=100),
        Rules(players=4, teams=2, stock_size=2, first_player=3, target_score=120),
        Rules(players=9, teams=3, stock_size=2, target_score=120),
        Rules(stock_size=3, max_turns=12, target_score=60),
    ],
    ids=str,
)
def test_match_to_its_end(rules: Rules) -> None:
    match = Match(rules, seed=4)
    scores, wins, count = [0] * rules.sides, [0] * rules.sides, 0
    while not match.over:
        assert match.first_player == (match.first + count) % rules.players
        game = match.new_game()
        assert game.player == match.first_player
        assert game.state[layout.FIRST_PLAYER] == match.first_player
        match.add(play_out(game, count))
        result = game.result
        assert result is not None
        scores = [a + b for a, b in zip(scores, result["scores"], strict=True)]
        if result["winner"] is not None:
            wins[result["winner"]] += 1
        count += 1
        assert (match.scores, match.wins, len(match.results)) == (scores, wins, count)
        assert match.without_winner == count - sum(wins)
    if rules.first_player != "random":
        assert match.first == rules.first_player
    assert match.winner is not None
    assert scores[match.winner] >= rules.target_score
    assert all(s < rules.target_score for side, s in enumerate(scores) if side != match.winner)
    with pytest.raises(ValueError, match="has won it"):
        match.new_game()
    with pytest.raises(ValueError, match="has won it"):
        match.add(play_out(Game(rules, seed=1)))


def test_game_without_winner_scores_nothing_and_moves_the_start_on() -> None:
    match = Match(Rules(max_turns=1, first_player=0), seed=1)
    for seat in (0, 1, 0, 1):
        game = match.new_game()
        assert game.player == seat
        match.add(play_out(game))
    assert (match.scores, match.wins, match.without_winner) == ([0, 0], [0, 0], 4)
    assert match.winner is None


def test_random_start_is_drawn_once_and_from_the_seed() -> None:
    firsts = [Match(players=5, seed=seed).first for seed in range(200)]
    assert set(firsts) == set(range(5))
    assert firsts == [Match(players=5, seed=seed).first for seed in range(200)]


def test_equal_seeds_are_equal_matches() -> None:
    one, other = Match("short", seed=9), Match("short", seed=9)
    for index in range(3):
        game, same = one.new_game(), other.new_game()
        assert (game.state == same.state).all()
        one.add(play_out(game, index))
        other.add(play_out(same, index))
    assert len({bytes(Match("short", seed=seed).new_game().state) for seed in range(20)}) == 20


def test_games_of_a_match_differ_and_are_recorded() -> None:
    match = Match(Rules(stock_size=3, target_score=10**6), seed=9)
    deals = set()
    for index in range(5):
        game = play_out(match.new_game(), index)
        match.add(game)
        data = json.loads(json.dumps(game.record()))
        assert data["first_player"] == (match.first + index) % 2
        record.check(data)
        deals.add(json.dumps(data["deal"]))
    assert len(deals) == 5


def test_running_and_foreign_games_are_not_counted() -> None:
    match = Match("short", seed=1)
    with pytest.raises(ValueError, match="not over"):
        match.add(match.new_game())
    with pytest.raises(ValueError, match="3 sides, the match 2"):
        match.add(play_out(Game(Rules(players=3, stock_size=2), seed=1)))
    assert match.results == []


def test_a_game_counts_once_and_by_the_rules_of_the_match() -> None:
    """A second add of one game, which a double click may send, leaves the score as it is."""
    match = Match("short", seed=1)
    game = play_out(match.new_game())
    match.add(game)
    counted = (list(match.scores), list(match.wins), list(match.results))
    with pytest.raises(ValueError, match="game: it is counted already"):
        match.add(game)
    elsewhere = Game(Rules.of("short").to_dict() | {"first_player": 1 - match.first_player}, seed=1)
    with pytest.raises(ValueError, match=r"game: seat \d began, but seat \d begins game 1"):
        match.add(play_out(elsewhere))
    other = Rules(stock_size=1, first_player=match.first_player)
    with pytest.raises(ValueError, match="game: it was played by other rules"):
        match.add(play_out(Game(other, seed=1)))
    assert (match.scores, match.wins, match.results) == counted


# Scorekeeper -----------------------------------------------------------------------------------


def test_points_and_totals() -> None:
    keeper = Scorekeeper(sides=3, target=150)
    assert keeper.add(1, [6, 0, 3]) == [0, 70, 0]
    assert keeper.add(None) == [0, 0, 0]
    assert keeper.add(None, [4, 4, 9]) == [0, 0, 0]
    assert keeper.add(0, [0, 10, 1]) == [80, 0, 0]
    assert (keeper.scores, keeper.wins, keeper.winner) == ([80, 70, 0], [1, 1, 0], None)
    assert keeper.add(1, (1 + 10, 0, 1)) == [0, 85, 0]
    assert (keeper.scores, keeper.winner, keeper.over) == ([80, 155, 0], 1, True)
    with pytest.raises(EntryError, match="the match is over"):
        keeper.add(1, [1, 0, 1])
    assert keeper.undo()["scores"] == [0, 85, 0]
    assert (keeper.scores, keeper.winner) == ([80, 70, 0], None)


def test_largest_single_scores() -> None:
    assert Scorekeeper(2).add(0, [0, 30]) == [175, 0]
    assert Scorekeeper(4).add(0, [0, 30, 30, 30])[0] == 475
    assert Scorekeeper(6).add(0, [0, *[20] * 5])[0] == 525
    assert Scorekeeper(2).add(0, [0, 60])[0] == 325
    assert Scorekeeper(3).add(0, [0, 40, 40])[0] == 425


def test_stalemate_that_the_fewest_win() -> None:
    keeper = Scorekeeper(3)
    assert keeper.add(2, [9, 7, 5]) == [0, 0, 25 + 5 * 16]
    with pytest.raises(EntryError, match=r"left\[1\]"):
        keeper.add(2, [9, 5, 5])


def test_undo_of_nothing() -> None:
    with pytest.raises(EntryError, match="no game to take back"):
        Scorekeeper().undo()


@pytest.mark.parametrize(
    ("winner", "left", "path"),
    [
        (2, [0, 1], ("winner",)),
        (-1, [0, 1], ("winner",)),
        ("0", [0, 1], ("winner",)),
        (True, [0, 1], ("winner",)),
        (0.0, [0, 1], ("winner",)),
        (0, None, ("left",)),
        (0, [0], ("left",)),
        (0, [0, 1, 2], ("left",)),
        (0, "01", ("left",)),
        (0, 5, ("left",)),
        (0, {"0": 0}, ("left",)),
        (0, [0, 0], ("left", 1)),
        (0, [0, -1], ("left", 1)),
        (0, [0, 81], ("left", 1)),
        (0, [0, 1.5], ("left", 1)),
        (0, [0, None], ("left", 1)),
        (0, [0, False], ("left", 1)),
        (0, [3, 2], ("left", 1)),
        (1, [0, 0], ("left", 0)),
        (None, [0, 4], ("left", 0)),
        (None, [4, 200], ("left", 1)),
    ],
)
def test_impossible_entry_names_the_field(winner: Any, left: Any, path: tuple[Any, ...]) -> None:
    keeper = Scorekeeper(2)
    keeper.add(1, [7, 0])
    with pytest.raises(ValueError, match=str(path[0])) as caught:
        keeper.add(winner, left)
    assert isinstance(caught.value, EntryError)
    assert caught.value.path == path
    assert keeper.scores == [0, 60]


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"sides": 1}, "sides"),
        ({"sides": 7}, "sides"),
        ({"sides": "2"}, "sides"),
        ({"target": 0}, "target"),
        ({"target": None}, "target"),
        ({"stock": 0}, "stock"),
        ({"sides": 4, "stock": 41}, "stock"),
    ],
)
def test_impossible_match_names_the_field(options: dict[str, Any], field: str) -> None:
    with pytest.raises(EntryError, match=field):
        Scorekeeper(**options)


def test_known_stock_bounds_what_is_left() -> None:
    keeper = Scorekeeper(2, stock=30)
    keeper.add(0, [0, 30])
    with pytest.raises(EntryError, match=r"left\[1\]: must be 0 to 30"):
        keeper.add(0, [0, 31])


def test_scorekeeper_through_json() -> None:
    keeper = Scorekeeper(3, 300, stock=20)
    keeper.add(0, [0, 4, 20])
    keeper.add(None, [1, 1, 1])
    keeper.add(None)
    data = json.loads(json.dumps(keeper.to_dict()))
    again = Scorekeeper.from_dict(data)
    assert again.to_dict() == keeper.to_dict()
    assert data["scores"] == [145, 0, 0]
    data["games"][1]["left"][2] = 77
    with pytest.raises(EntryError) as caught:
        Scorekeeper.from_dict(data)
    assert caught.value.path == ("games", 1, "left", 2)
    for junk in ([], {"games": 3}, {"games": [3]}, {"games": [{}]}):
        with pytest.raises(EntryError, match="games"):
            Scorekeeper.from_dict(junk)  # type: ignore[arg-type]


def test_scorekeeper_agrees_with_the_engine() -> None:
    for seed in range(20):
        game = play_out(Game(Rules(players=4, stock_size=4), seed=seed), seed)
        left = [int(moves.side_stock(game.state, side)) for side in range(4)]
        assert game.result is not None
        winner = game.result["winner"]
        assert Scorekeeper(4).add(winner, left) == game.result["scores"]


def test_what_a_keeper_hands_out_is_not_its_own() -> None:
    keeper = Scorekeeper(2)
    keeper.add(0, [0, 3])
    before = copy.deepcopy(keeper.to_dict())
    told = keeper.to_dict()
    told["scores"].append(1)
    told["wins"].append(1)
    told["games"][0]["left"][1] = 99
    for value in told["games"][0].values():
        if isinstance(value, list):
            value.append(999)
    assert keeper.to_dict() == before
