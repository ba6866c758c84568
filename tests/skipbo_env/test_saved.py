"""A saved game goes on as if it had never been put away."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from skipbo_env import make_agent, saved
from skipbo_env.game import Game

TABLES: list[Any] = [
    {},
    {"players": 4, "teams": 2},
    {"players": 6, "copies": 6, "wilds": 9, "stock_size": 8},
    {"copies": 2, "wilds": 12, "stock_size": 8, "stalemate": "fewest_stock"},
]


@pytest.mark.parametrize("rules", TABLES, ids=range(len(TABLES)))
def test_a_game_goes_on_with_the_same_cards(rules: Any) -> None:
    agent = make_agent("greedy")
    reshuffles = 0
    for seed in range(8):
        straight = Game(rules, seed=seed)
        put_away = Game(rules, seed=seed)
        while not straight.over:
            action = agent.act(straight)
            straight.apply(action)
            put_away.apply(action)
            if len(straight.actions) % 3 == 0:
                put_away = saved.load(json.loads(json.dumps(saved.save(put_away))))
                assert (put_away.state == straight.state).all()
        assert put_away.record() == straight.record()
        assert saved.reshuffles(put_away) == saved.reshuffles(straight)
        assert put_away.result == straight.result
        reshuffles += len(saved.reshuffles(straight))
    assert reshuffles > 3


def test_the_last_move_can_be_left_out() -> None:
    """What drew no card can be taken out of the saved form."""
    for seed in range(50):
        game = Game(seed=seed)
        plays = [a for a in game.legal_actions() if a < 56 and a >= 4]
        if plays:
            break
    before = game.state.copy()
    game.apply(plays[0])
    data = saved.save(game)
    data["actions"].pop()
    assert (saved.load(data).state == before).all()


def test_what_is_no_saved_game_is_refused() -> None:
    game = Game("short", seed=1)
    agent = make_agent("greedy")
    while not saved.reshuffles(game) and not game.over:
        game.apply(agent.act(game))
    good = saved.save(game)
    assert saved.load(good).record() == game.record()

    def changed(**parts: Any) -> Any:
        return {**copy.deepcopy(good), **parts}

    missing = changed()
    del missing["draw"]
    for bad in (
        None,
        [],
        {},
        missing,
        changed(version=2),
        changed(format="x"),
        changed(rules={"players": 99}),
        changed(actions=[124, *good["actions"]]),
        changed(actions=["0"]),
        changed(draw=good["draw"][1:]),
        changed(stocks=[]),
        changed(rng=[1]),
        changed(rng=[2**40, 0]),
        changed(first_player=7),
        changed(seed="x"),
        changed(reshuffles={}) if good["reshuffles"] else {},
        changed(reshuffles={"0": [1]}),
        changed(reshuffles=5),
    ):
        with pytest.raises(saved.SavedError):
            saved.load(bad)
    with pytest.raises(ValueError, match="position"):
        saved.save(Game.from_position(Game(seed=1).position(), 1))
