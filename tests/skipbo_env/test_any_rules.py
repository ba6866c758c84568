"""Properties under any rules, number of players and choices: all forms of a game agree.

Random rule sets and choices drive `Game`, the PettingZoo and the vector environment side by side.
At any moment, in the middle of a turn too, a copy by any road is the same game, and what a seat
sees leads to games that look the same to it.
"""

from __future__ import annotations

import copy
import json
import pickle
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skipbo_env import SkipBoVectorEnv, skipbo_v0
from skipbo_env.actions import MOVES, IllegalAction
from skipbo_env.engine import layout
from skipbo_env.game import Game
from skipbo_env.position import Position
from skipbo_env.record import RecordError
from skipbo_env.render import ansi
from skipbo_env.rules import Rules
from tests.compare import any_rules

SEEDS = st.integers(0, 2**64 - 1)


@st.composite
def rule_sets(draw: st.DrawFn) -> Rules:
    return any_rules(lambda low, high: draw(st.integers(low, high)))


def choose(game: Game, rng: random.Random) -> int:
    """A legal action that likes to play, so that games get somewhere."""
    legal = game.legal_actions()
    plays = [action for action in legal if MOVES[action].kind == "play"]
    return rng.choice(plays if plays and rng.random() < 0.8 else legal)


def played(rules: Rules, seed: int, plies: int) -> Game:
    """A game after so many choices, or at its end."""
    rng = random.Random(seed)
    game = Game(rules, seed=seed)
    while not game.over and len(game.actions) < plies:
        game.apply(choose(game, rng))
    return game


@settings(derandomize=True, deadline=None, max_examples=40)
@given(rules=rule_sets(), seed=SEEDS, kind=st.sampled_from(("cards", "features")))
def test_the_forms_of_a_game_agree(rules: Rules, seed: int, kind: str) -> None:
    """Same seed, same choices: same array, observations, masks, pay and end in every form."""
    rng = random.Random(seed)
    game = Game(rules, seed=seed)
    aec = skipbo_v0.raw_env(rules=rules, observation=kind)
    rows = SkipBoVectorEnv(2, rules=rules, observation=kind, autoreset_mode="Disabled")
    aec.reset(seed=seed)
    seen, infos = rows.reset(seed=[seed, seed])
    for _ in range(60):
        seat = game.player
        assert aec.game.state.tobytes() == game.state.tobytes() == rows.game(1).state.tobytes()
        assert aec.agent_selection == f"player_{seat}"
        assert infos["player"].tolist() == [seat, seat]
        for agent in range(rules.players):
            there = aec.observe(f"player_{agent}")
            assert there["observation"].tobytes() == game.observation(agent, kind).tobytes()
            assert there["action_mask"].any() == (agent == seat)
        assert seen[0].tobytes() == seen[1].tobytes() == game.observation(seat, kind).tobytes()
        mask = aec.observe(f"player_{seat}")["action_mask"]
        assert mask.tobytes() == game.mask().tobytes() == infos["action_mask"][1].tobytes()
        action = choose(game, rng)
        game.apply(action)
        aec.step(action)
        seen, _, terminated, truncated, infos = rows.step(np.array([action, action]))
        assert list(aec.rewards.values()) == infos["rewards"][0].tolist()
        assert abs(sum(aec.rewards.values())) < 1e-9
        if game.over:
            break
    assert terminated.tolist() == [game.over and not game.truncated] * 2
    assert truncated.tolist() == [game.truncated] * 2
    assert set(aec.terminations.values()) == {game.over and not game.truncated}
    assert set(aec.truncations.values()) == {game.truncated}
    if game.over:
        side = int(infos["winner"][0])
        assert game.result is not None
        assert game.result["winner"] == (side if side >= 0 else None)
        assert layout.REASONS[int(infos["reason"][0])] == game.result["reason"]


@settings(derandomize=True, deadline=None, max_examples=60)
@given(rules=rule_sets(), seed=SEEDS, plies=st.integers(0, 150))
def test_any_moment_can_be_copied_told_and_shown(rules: Rules, seed: int, plies: int) -> None:
    game = played(rules, seed, plies)
    record = json.loads(json.dumps(game.record()))
    copies = [
        game.clone(),
        copy.deepcopy(game),
        pickle.loads(pickle.dumps(game)),  # noqa: S301
        Game.from_dict(json.loads(json.dumps(game.to_dict()))),
        Game.from_record(record),
    ]
    rng_state = random.Random(seed ^ 1).getstate()
    ways = []
    for other in [game, *copies]:
        assert other.record() == record
        rng = random.Random()
        rng.setstate(rng_state)
        for _ in range(40):
            if other.over:
                break
            other.apply(choose(other, rng))
        ways.append((other.state.tobytes(), other.actions, other.result))
    assert all(way == ways[0] for way in ways)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(rules=rule_sets(), seed=SEEDS, plies=st.integers(0, 150))
def test_what_a_seat_sees_is_all_that_counts(rules: Rules, seed: int, plies: int) -> None:
    """A position read back, and hidden cards dealt anew, look the same to the seat."""
    game = played(rules, seed, plies)
    before = game.state.tobytes()
    for seat in {game.player, rules.players - 1}:
        position = json.loads(json.dumps(game.position(seat)))
        look = [game.observation(seat, kind).tobytes() for kind in ("cards", "features")]
        text = ansi(game.state, rules, seat)
        dealt = game.determinize(seat, seed=seed ^ 5)
        assert json.loads(json.dumps(dealt.position(seat))) == position
        assert [dealt.observation(seat, kind).tobytes() for kind in ("cards", "features")] == look
        assert ansi(dealt.state, rules, seat) == text
        if seat == game.player and not game.over:
            assert dealt.legal_actions() == game.legal_actions()
            again = Game.from_position(position, seed=3)
            assert again.position(seat) == position
            assert again.legal_actions() == game.legal_actions()
            line = Position.parse(position).to_notation()
            assert Position.from_notation(line).to_json() == Position.parse(position).to_json()
    assert game.state.tobytes() == before


@settings(derandomize=True, deadline=None, max_examples=40)
@given(rules=rule_sets(), seed=SEEDS, plies=st.integers(0, 150), data=st.data())
def test_what_is_refused_changes_nothing(
    rules: Rules, seed: int, plies: int, data: st.DataObject
) -> None:
    """Actions out of turn and orders of reshuffles that cannot be, one after another."""
    game = played(rules, seed, plies)
    before = (game.state.tobytes(), list(game.actions), dict(game.scripts))
    legal = set(game.legal_actions())
    for action in data.draw(st.lists(st.integers(-3, 250), max_size=20)):
        if action not in legal:
            with pytest.raises(IllegalAction):
                game.apply(action)
    for action in sorted(legal)[:5]:
        for cards in ([], [1], [13] * 12, list(range(1, 13)) * 20, [0], [14], [True]):
            trial = game.clone()
            try:
                trial.apply(action, reshuffle=cards)
            except ValueError:
                assert trial.state.tobytes() == before[0]
                assert (trial.actions, trial.scripts) == before[1:]
            else:  # it was the order of the cards completed
                assert trial.state[layout.RESHUFFLES] == game.state[layout.RESHUFFLES] + 1
    assert (game.state.tobytes(), game.actions, game.scripts) == before


@settings(derandomize=True, deadline=None, max_examples=40)
@given(rules=rule_sets(), seed=SEEDS, plies=st.integers(1, 80), data=st.data())
def test_one_card_told_wrongly_is_refused_or_another_game(
    rules: Rules, seed: int, plies: int, data: st.DataObject
) -> None:
    """A record with one card changed never follows: the deck or an event contradicts it."""
    record = json.loads(json.dumps(played(rules, seed, plies).record()))
    lists = [*record["deal"]["stocks"], record["deal"]["draw"]]
    lists += [event["cards"] for event in record["events"] if "cards" in event]
    cards = data.draw(st.sampled_from([cards for cards in lists if cards]))
    place = data.draw(st.integers(0, len(cards) - 1))
    other = data.draw(st.sampled_from([str(rank) for rank in range(1, 13)] + ["S"]))
    if cards[place] != other:
        cards[place] = other
        with pytest.raises(RecordError):
            Game.from_record(record)
