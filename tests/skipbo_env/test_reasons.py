"""Reasons in words: each phrase is true of the table, and each is said where it is due."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from skipbo_env import make_agent
from skipbo_env.game import Game
from skipbo_env.reasons import cards_short, reasons
from skipbo_env.rules import Rules
from skipbo_env.suggestion import ask
from tests.skipbo_env.test_agents import IDS, TABLES, states
from tests.skipbo_env.test_position import WORKED_TURN


def table(**changes: Any) -> Game:
    data = copy.deepcopy(WORKED_TURN)
    for name in ("completed", "draw_size"):
        data.pop(name)
    own = changes.pop("own", None)
    other = changes.pop("other", None)
    data["players"][0].update(own or {})
    data["players"][1].update(other or {})
    return Game.from_position({**data, **changes}, 0)


def said(game: Game, *texts: str, ends: str | None = "discard") -> list[str]:
    """The reasons for a line of moves given as texts."""
    after = game.clone()
    line = []
    for text in texts:
        line.append(after.parse_action(text))
        after.apply(line[-1])
    return reasons(game, line, ends)


def test_stock_cards() -> None:
    game = table()
    assert said(game, "hand 6>1", "stock>1", ends="stock_flip") == [
        "makes way for your stock 7 in the next play"
    ]
    direct = table(building=[6, 11, 2, 0])
    assert said(direct, "stock>1", ends="stock_flip") == ["plays your stock 7"]
    assert said(direct, "hand 3>3", "stock>1", ends="stock_flip") == [
        "comes before your stock 7, which fits already"
    ]
    wild = table(own={"stock_top": "S"})
    assert said(wild, "stock>1", ends="stock_flip") == ["plays your stock wild as a 6"]
    last = table(building=[6, 11, 2, 0], own={"stock_size": 1})
    assert said(last, "stock>1", ends="win") == ["plays your stock 7", "wins the game"]


def test_piles_and_wilds() -> None:
    game = table()
    assert said(game, "hand 12>2", ends=None) == ["completes building pile 2"]
    assert said(game, "hand S>1", ends=None) == ["spends a wild as a 6"]
    assert said(game, "hand S>4", ends=None) == ["spends a wild as a 1"]
    assert said(game, "hand 3>3", ends=None) == ["brings building pile 3 to 3"]
    deep = table(own={"discards": [["9", "6"], ["6"], [], []]})
    assert said(deep, "discard1>1", ends=None) == ["uncovers the 9 on discard pile 1"]
    assert said(deep, "discard2>1", ends=None) == ["clears discard pile 2"]


def test_discards() -> None:
    game = table(own={"discards": [["4"], ["9"], ["8"], []], "stock_top": "10"})
    assert said(game, "hand 8=>2")[0] == "goes on down from the 9 on discard pile 2"
    assert said(game, "hand 8=>3")[0] == "lies on an equal 8 on discard pile 3"
    assert said(game, "hand 8=>1")[0] == "covers the 4 on discard pile 1"
    assert said(game, "hand 3=>2")[0] == "lies on the higher 9 on discard pile 2"
    assert said(game, "hand 3=>4")[0] == "starts discard pile 4"
    assert said(game, "hand S=>4")[0] == "gives up a wild"


def test_how_the_turn_leaves_the_table() -> None:
    game = table(building=[4, 11, 2, 0], hand=["3", "6", "8", "12", "1"])
    # The 7 needs a 5 and a 6, or 3 to 6; with the 6 in hand, one card.
    assert "one card short of your stock card 7" in said(game, "hand 8=>3")
    fewer = table(building=[4, 11, 2, 0], hand=["3", "9", "8", "12", "1"])
    assert "two cards short of your stock card 7" in said(fewer, "hand 8=>3")
    kept = table(hand=["3", "6", "8", "12", "S"])
    told = said(kept, "hand 8=>3")
    assert "holds all that your stock card 7 needs" in told
    assert "keeps a wild" in told
    opened = table(other={"stock_top": "6"}, building=[4, 11, 2, 0], hand=["5", "1", "8", "12"])
    assert "opens a 6 for the next player's stock" in said(opened, "hand 5>1", "hand 8=>3")
    eight = table(
        other={"stock_top": "8"},
        building=[6, 11, 2, 0],
        hand=["7", "1", "9", "12"],
        own={"stock_top": "3"},
    )
    assert "opens an 8 for the next player's stock" in said(eight, "hand 7>1", "hand 9=>3")
    closed = table(other={"stock_top": "6"}, hand=["6", "1", "8", "12"])
    assert "closes the way of the 6 on the next player's stock" in said(
        closed, "hand 6>1", "hand 8=>3"
    )
    assert "leaves a way for the 6 on the next player's stock" in said(closed, "hand 8=>3")


def test_an_emptied_hand_draws_anew() -> None:
    game = table(hand=["6"], own={"stock_top": "10"})
    assert said(game, "hand 6>1", ends="refill") == ["empties your hand: you draw anew and play on"]
    two = table(hand=["6", "7"], own={"stock_top": "10"})
    assert "goes on to empty your hand: you draw anew and play on" in said(
        two, "hand 6>1", "hand 7>1", ends="refill"
    )


@pytest.mark.parametrize("rules", TABLES, ids=IDS)
def test_every_suggestion_has_true_reasons(rules: Rules) -> None:
    """Some reason for every move; none depends on hidden cards; counts hold on the table."""
    agent = make_agent("planner")
    for game in states(rules, 1, 17)[:6]:
        moves = ask(agent, game)["moves"]
        other = ask(agent, game.determinize(game.player, 1))["moves"]
        assert [m["reasons"] for m in moves] == [m["reasons"] for m in other]
        for move in moves:
            assert move["reasons"]
            stock = move["move"].get("from") == "stock"
            told = any(r.startswith("plays your") for r in move["reasons"])
            assert told == stock
            assert (move["line_ends"] == "win") == any("wins" in r for r in move["reasons"])


def test_cards_short_counts_each_source() -> None:
    game = table(
        building=[0, 0, 0, 0],
        hand=["1", "S", "9", "12"],
        own={"stock_top": "6", "discards": [["4", "2"], ["12"], [], []]},
    )
    # 1 in hand, 2 and 4 on a discard pile, one wild: of 1 to 5 the 3 or the 5 is missing.
    assert cards_short(game.state, 0, 0) == 1
