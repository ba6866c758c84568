"""A game as plain data: what comes from outside is refused or is a game, never a crash."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skipbo_env import record
from skipbo_env.actions import IllegalAction
from skipbo_env.engine import layout, moves
from skipbo_env.engine.deal import deal
from skipbo_env.game import Game
from skipbo_env.rules import Rules
from skipbo_env.state_check import check_state

TINY = Rules(copies=2, wilds=6, stock_size=3, hand_size=3)
SMALL = Rules(copies=2, wilds=8, stock_size=8, hand_size=3)
TABLES = [
    Rules(stock_size=6),
    TINY,
    Rules(players=5, stock_size=4, draw_per_turn=3),
    Rules(players=4, teams=2, stock_size=3, team_discard="team"),
    Rules(players=9, teams=3, stock_size=3, copies=8, stalemate="fewest_stock"),
    Rules(stock_size=3, copies=1, wilds=0, hand_size=2, max_turns=40, stalemate="fewest_stock"),
    Rules(must_play_stock=True, wild_discard=False, ordered_discards=True, stock_size=5, copies=4),
]
VALUES = (-(2**31), -1, 0, 1, 2, 13, 14, 99, 500, 1000, 2**31 - 1)


def step(game: Game, rng: random.Random) -> None:
    legal = game.legal_actions()
    plays = [a for a in legal if a < moves.A_END or moves.A_STOCK2 <= a < moves.A_END2]
    game.apply(rng.choice(plays if plays and rng.random() < 0.85 else legal))


def played(rules: Rules, seed: int, plies: int) -> Game:
    game, rng = Game(rules, seed=seed), random.Random(seed)
    while not game.over and len(game.actions) < plies:
        step(game, rng)
    return game


def reshuffled(rules: Rules = SMALL) -> Game:
    """A game that goes on after a reshuffle."""
    for seed in range(1000):
        game, rng = Game(rules, seed=seed), random.Random(seed)
        while not game.over and not game.state[layout.RESHUFFLES]:
            step(game, rng)
        if not game.over:
            return game
    raise AssertionError("no seed does")


def data_of(game: Game) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(json.dumps(game.to_dict()))
    return data


def use(game: Game, most: int = 12) -> None:
    """Play on and look at everything; the array stays a game."""
    rng = random.Random(1)
    while not game.over and most:
        assert game.legal_actions()
        for seat in range(game.rules.players):
            game.observation(seat)
            game.observation(seat, "cards")
            game.position(seat)
        step(game, rng)
        state = game.state.copy()  # but for what was seen: it steers how hidden cards are dealt
        state[state[layout.AT_SEEN] : state[layout.AT_STOCKS]] = 0
        check_state(state, game.rules)
        most -= 1


def read_or_refuse(data: dict[str, Any]) -> Game | None:
    """The game, which can be played; None where the data is refused."""
    try:
        game = Game.from_dict(data)
    except ValueError:
        return None
    use(game)
    return game


@pytest.mark.parametrize("rules", TABLES, ids=str)
def test_every_state_of_a_game_reads_back(rules: Rules) -> None:
    """With and without its start, and dealt anew from what a seat sees."""
    for seed in range(3):
        game, rng = Game(rules, seed=seed), random.Random(seed)
        while True:
            check_state(game.state, rules)
            for seat in range(rules.players):
                check_state(game.determinize(seat, seed=seed).state, rules)
            if len(game.actions) % 20 == 0 or game.over:
                again = Game.from_dict(data_of(game))
                assert again.to_dict() == game.to_dict()
                bare = Game.from_state(rules, game.state)
                assert Game.from_dict(data_of(bare)).to_dict() == bare.to_dict()
            if game.over or len(game.actions) > 500:
                break
            step(game, rng)


def test_agents_and_scripts_are_kept() -> None:
    game = reshuffled()
    game.agents = ["greedy", "human"]
    again = Game.from_dict(data_of(game))
    assert again.agents == ["greedy", "human"]
    assert again.record() == game.record()
    told = Game.from_record({**game.record(), "seed": None})  # so that no seed makes its reshuffles
    assert told.scripts
    assert Game.from_dict(data_of(told)).to_dict() == told.to_dict()
    data = data_of(game)
    del data["agents"]  # written before there were any
    assert Game.from_dict(data).agents is None
    position = Game.from_position(game.position(), seed=1)
    position.apply(position.legal_actions()[0])
    assert Game.from_dict(data_of(position)).actions == position.actions


def test_a_two_ended_game_reads_back() -> None:
    rules = Rules(stock_size=5)
    state = layout.new_state(rules, two_ended=True)
    deal(state, np.uint64(3), 0)
    game = Game.from_state(rules, state)
    game.start = state.copy()
    rng = random.Random(2)
    for _ in range(25):
        step(game, rng)
    again = Game.from_dict(data_of(game))
    assert again.state[layout.TWO_ENDED] == 1
    assert again.to_dict() == game.to_dict()
    assert record.replay(again.record()).actions == game.actions


@pytest.mark.parametrize("with_start", [True, False])
def test_any_cell_may_be_wrong(with_start: bool) -> None:
    """Every cell of the array with every kind of wrong value."""
    game = reshuffled()
    data = data_of(game)
    if not with_start:
        data["start"] = None
    refused = 0
    for zone in ("state", "start") if with_start else ("state",):
        cells = data[zone]
        every = 11 if with_start else 1
        hands = range(0, layout.hand_at(2), every)
        for at in (*hands, *range(layout.hand_at(2), len(cells), 21 * every)):
            kept = cells[at]
            for value in VALUES:
                cells[at] = value
                other = read_or_refuse(data)
                refused += other is None
                # What follows from a start can be read in one way only, generator apart.
                generator = (layout.RNG_LO, layout.RNG_HI)
                assert not with_start or other is None or value == kept or at in generator
            cells[at] = kept
    assert refused > 50
    assert read_or_refuse(data) is not None


@settings(max_examples=250, deadline=None)
@given(data=st.data())
def test_several_wrong_cells_and_fields(data: st.DataObject) -> None:
    rules = data.draw(st.sampled_from(TABLES))
    found = data_of(played(rules, data.draw(st.integers(0, 3)), data.draw(st.integers(0, 150))))
    if data.draw(st.booleans()):
        found["start"] = None
    for _ in range(data.draw(st.integers(1, 3))):
        cell = data.draw(st.integers(0, len(found["state"]) - 1))
        near = data.draw(st.booleans())
        value = found["state"][cell] + data.draw(st.integers(-2, 2)) if near else None
        found["state"][cell] = data.draw(st.sampled_from(VALUES)) if value is None else value
    read_or_refuse(found)


JUNK: list[Any] = [
    None, [], {}, "", "x", 0, -1, 1.5, True, 2**31, 2**64, 10**5000, [[]], [None], ["1"], [1.0],
    {"0": [1]}, {"x": []}, {"0": None}, [True], float("nan"), {"0": ["1"]}, {"²": [1]},
]  # fmt: skip


@pytest.mark.parametrize(
    "field",
    ["format", "version", "rules", "seed", "agents", "state", "start", "actions", "scripts"],
)
def test_any_field_may_be_wrong(field: str) -> None:
    data = data_of(played(TINY, 4, 30))
    for junk in JUNK:
        read_or_refuse({**data, field: junk})
    del data[field]
    assert (read_or_refuse(data) is None) == (field != "agents")


@pytest.mark.parametrize("junk", JUNK, ids=lambda value: type(value).__name__)
def test_no_game_at_all(junk: Any) -> None:
    with pytest.raises(ValueError, match=r"no game|is missing"):
        Game.from_dict(junk)


def test_a_start_that_is_no_deal_is_refused() -> None:
    game = played(Rules(stock_size=5), 1, 40)
    data = {**data_of(game), "start": game.state.tolist(), "actions": [], "scripts": {}}
    with pytest.raises(ValueError, match="start"):
        Game.from_dict(data)


@pytest.mark.parametrize("order", [["x"], [None], [1.5], ["3"], "3", 3, {}, [True], [0], [2**70]])
def test_an_order_of_no_cards_names_the_argument(order: Any) -> None:
    game = Game(seed=1)
    before = copy.deepcopy(game.to_dict())
    with pytest.raises(ValueError, match=r"^reshuffle: "):
        game.apply(game.legal_actions()[0], reshuffle=order)
    assert game.to_dict() == before


@pytest.mark.parametrize("kind", ["card", "", None, 3, ["cards"]])
def test_an_unknown_kind_of_observation_is_named(kind: Any) -> None:
    with pytest.raises(ValueError, match=r"^kind: "):
        Game(seed=1).observation(kind=kind)


@pytest.mark.parametrize("action", [2**63, 2**64, -(2**64), 10**5000], ids=int.bit_length)
def test_a_huge_action_is_illegal(action: int) -> None:
    with pytest.raises(IllegalAction):
        Game(seed=1).apply(action)
