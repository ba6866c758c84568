"""OpenSpiel: the registered game is the engine's, its chance is the deck's, its search runs."""

from __future__ import annotations

import copy
import pickle
import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pyspiel = pytest.importorskip("pyspiel")

from open_spiel.python import rl_environment
from open_spiel.python.algorithms import ismcts, mcts
from open_spiel.python.observation import make_observation

from skipbo_env.adapters import openspiel
from skipbo_env.engine import layout
from skipbo_env.engine.observe import features_slices
from skipbo_env.game import Game
from skipbo_env.rules import PRESETS, Rules, RulesError
from tests.pages import run_page

TABLES = [
    Rules(stock_size=3),
    Rules(players=3, stock_size=2, hand_size=3, copies=2, wilds=6),
    Rules(players=4, teams=2, stock_size=3),
    Rules(players=6, teams=3, team_discard="team", stock_size=2),
    Rules(draw_per_turn=3, stock_size=3, must_play_stock=True, wild_discard=False),
    Rules(stock_size=2, copies=2, wilds=4, first_player=1, ordered_discards=True),
]


def chance(state: Any, rng: random.Random) -> None:
    """Apply a chance outcome; their odds are a distribution."""
    outcomes = state.chance_outcomes()
    odds = [odd for _, odd in outcomes]
    assert sum(odds) == pytest.approx(1)
    assert min(odds) > 0
    state.apply_action(rng.choices([outcome for outcome, _ in outcomes], odds)[0])


def plays(state: Any, rng: random.Random) -> int:
    """A legal action, rather a play than a discard, so that games end."""
    legal = state.legal_actions()
    return legal[0] if rng.random() < 0.8 else rng.choice(legal)


def some_states(game: Any, seed: int, every: int = 7, most: int = 400) -> list[Any]:
    """States of one game, at decisions."""
    rng = random.Random(seed)
    state, states = game.new_initial_state(), []
    for step in range(most):
        if state.is_terminal():
            break
        if state.is_chance_node():
            chance(state, rng)
            continue
        if step % every == 0:
            states.append(state.clone())
        state.apply_action(plays(state, rng))
    return states


@pytest.mark.parametrize("rules", TABLES, ids=str)
def test_every_game_is_one_of_the_engines(rules: Rules) -> None:
    """The cards that chance told, dealt by `Game.from_deal`, give the same game step by step."""
    rules = Rules.from_dict({**rules.to_dict(), "max_turns": 300})
    game, rng = openspiel.load(rules), random.Random(3)
    reasons = set()
    for _ in range(4):
        state = game.new_initial_state()
        seen: list[tuple[str, int]] = []  # cards in the order told: of a board, or drawn
        chosen: list[int] = []
        while not state.is_terminal():
            table = state._table
            if state.is_chance_node():
                first = table.first < 0
                place = -2 if first else table.reveals[0][0]
                epoch = 0 if first else table.reveals[0][1]
                chance(state, rng)
                card = state.history()[-1]
                if not first:
                    seen.append((f"board {place}" if place >= 0 else f"draw {epoch}", card))
            else:
                chosen.append(plays(state, rng))
                state.apply_action(chosen[-1])
        replayed = replay(rules, table.first, seen, chosen)
        result = replayed.result
        assert result is not None
        reasons.add(result["reason"])
        winner = result["winner"]
        for player, paid in enumerate(state.returns()):
            if winner is None:
                assert paid == 0
            else:
                won = rules.side_of(player) == winner
                assert paid == (1.0 if won else -1.0 / (rules.sides - 1))
            expected = replayed.observation(player)
            assert np.array_equal(state.observation_tensor(player), expected.astype(np.float64))
    assert "stock_empty" in reasons or rules.copies == 2


def replay(rules: Rules, first: int, seen: list[tuple[str, int]], chosen: list[int]) -> Game:
    """The engine's own game with these cards, by its public constructor and reshuffle orders."""
    left = Counter(dict.fromkeys(range(1, 13), rules.copies)) + Counter({13: rules.wilds})
    tops: dict[int, list[int]] = {board: [] for board in range(rules.boards)}
    drawn: dict[int, list[int]] = {}
    for kind, card in seen:
        where, index = kind.split()
        if where == "board":
            tops[int(index)].append(card)
        else:
            drawn.setdefault(int(index), []).append(card)
    for card in [*drawn.get(0, []), *(card for cards in tops.values() for card in cards)]:
        left[card] -= 1
    hidden = sorted(left.elements())
    stocks = []
    for cards in tops.values():
        below = [hidden.pop() for _ in range(rules.stocks - len(cards))]
        stocks.append([*below, *reversed(cards)])
    game = Game.from_deal(rules, stocks, [*drawn.get(0, []), *hidden], first)
    epoch = 0
    for action in chosen:
        twin = game.clone()
        twin.apply(action)
        if twin.state[layout.RESHUFFLES] > game.state[layout.RESHUFFLES]:
            epoch += 1
            at = layout.RESHUFFLED
            pool = Counter(dict(enumerate(twin.state[at : at + 14].tolist())))
            order = drawn.get(epoch, [])
            game.apply(action, reshuffle=[*order, *(pool - Counter(order)).elements()])
        else:
            game.apply(action)
    return game


@pytest.mark.parametrize("rules", TABLES, ids=str)
def test_the_library_s_own_random_simulation(rules: Rules) -> None:
    short = Rules.from_dict({**rules.to_dict(), "max_turns": 12})
    pyspiel.random_sim_test(openspiel.load(short), num_sims=1, serialize=True, verbose=False)


def test_first_cards_come_with_the_deck_s_odds() -> None:
    state = openspiel.load(Rules(first_player=0)).new_initial_state()
    assert dict(state.chance_outcomes()) == pytest.approx(
        {card: (12 if card < 13 else 18) / 162 for card in range(1, 14)}
    )
    state.apply_action(13)
    assert dict(state.chance_outcomes())[13] == pytest.approx(17 / 161)
    seats = openspiel.load(players=3).new_initial_state().chance_outcomes()
    assert dict(seats) == pytest.approx({0: 1 / 3, 1: 1 / 3, 2: 1 / 3})


@pytest.mark.parametrize("rules", TABLES, ids=str)
def test_resampling_keeps_the_information_state_and_nothing_else(rules: Rules) -> None:
    rng = random.Random(1)
    changed = tried = 0
    for state in some_states(openspiel.load(rules), 5):
        for player in range(rules.players):
            other = state.resample_from_infostate(player, rng.random)
            tried += 1
            changed += other.history() != state.history()
            assert other.information_state_string(player) == state.information_state_string(player)
            assert other.observation_string(player) == state.observation_string(player)
            assert other.observation_tensor(player) == state.observation_tensor(player)
            assert other.current_player() == state.current_player()
            if player == state.current_player():
                assert other.legal_actions() == state.legal_actions()
            again = pyspiel.deserialize_game_and_state(
                pyspiel.serialize_game_and_state(other.get_game(), other)
            )[1]
            assert again.history() == other.history()
    assert changed > tried / 2


def test_resampled_cards_have_the_odds_of_the_unseen_ones() -> None:
    """One card in the other hand: each kind as often as it is among the unseen cards."""
    rules = Rules(hand_size=1, stock_size=1, copies=1, wilds=3, first_player=0)
    state = openspiel.load(rules).new_initial_state()
    for card in (1, 2, 3):  # both stocks and the first player's hand
        state.apply_action(card)
    state.apply_action(state.legal_actions()[-1])  # a discard
    state.apply_action(4)  # which player 1 draws
    rng = random.Random(2)
    counts: Counter[int] = Counter()
    for _ in range(1200):
        counts[state.resample_from_infostate(0, rng.random).history()[-1]] += 1
    assert set(counts) == set(range(4, 14))  # nine ranks left, and three wilds: 12 cards
    for card, count in counts.items():
        expected = 300 if card == 13 else 100
        assert abs(count - expected) < 5 * expected**0.5
    # To player 1 nothing is hidden that was dealt.
    assert state.resample_from_infostate(1, rng.random).history()[-1] == 4


def test_information_states_recall_everything() -> None:
    game = openspiel.load(Rules(stock_size=3, first_player=0))
    state = game.new_initial_state()
    for card in (7, 5, 3, 6, 8, 12, 13):
        state.apply_action(card)
    assert state.information_state_string(0) == "F0 T0=7 T1=5 +3 +6 +8 +12 +13"
    assert state.information_state_string(1) == "F0 T0=7 T1=5 + + + + +"
    state.apply_action(52)  # the wild to the first pile
    assert state.information_state_string(1).endswith(" + + 52")
    assert state.action_to_string(0, 52) == "hand S>1"


def test_stored_observations_stay_as_they_are() -> None:
    game, rng = openspiel.load(Rules(stock_size=2)), random.Random(4)
    state = game.new_initial_state()
    stored = []
    while not state.is_terminal():
        if state.is_chance_node():
            chance(state, rng)
            continue
        for player in range(game.num_players()):
            given = (state.observation_tensor(player), state.information_state_tensor(player))
            stored.append((given, copy.deepcopy(given)))
        state.apply_action(plays(state, rng))
    assert len(stored) > 20
    for now, then in stored:
        assert all(np.array_equal(a, b) for a, b in zip(now, then, strict=True))


def test_others_have_no_legal_actions() -> None:
    for state in some_states(openspiel.load(players=3), 2)[:4]:
        for player in range(3):
            legal = state.legal_actions(player)
            assert bool(legal) == (player == state.current_player())
            assert state.legal_actions_mask(player) == [
                int(action in legal) for action in range(125)
            ]


@pytest.mark.parametrize("how", ["clone", "deepcopy", "pickle", "serialize"])
def test_copies_carry_on_apart(how: str) -> None:
    game = openspiel.load("short", players=3)
    state = some_states(game, 4)[5]
    if how == "clone":
        twin = state.clone()
    elif how == "deepcopy":
        twin = copy.deepcopy(state)
    elif how == "pickle":
        twin = pickle.loads(pickle.dumps(state))  # noqa: S301 - our own
    else:
        twin = game.deserialize_state(state.serialize())
    before = str(state)
    for steps in (state, twin):
        rng = random.Random(8)
        for _ in range(30):
            if steps.is_chance_node():
                chance(steps, rng)
            else:
                steps.apply_action(plays(steps, rng))
        if steps is state:
            assert str(twin) == before
    assert state.history() == twin.history()
    assert str(state) == str(twin)


def test_parameters_and_names() -> None:
    game = pyspiel.load_game("python_skipbo(players=3,stock_size=4)")
    assert game.num_players() == 3
    assert game.rules == Rules(players=3, stock_size=4)
    for name, rules in PRESETS.items():
        assert openspiel.load(name).rules == rules, name
        assert pyspiel.load_game(str(openspiel.load(name))).rules == rules
    assert openspiel.load(Rules(first_player=1)).rules.first_player == 1
    assert openspiel.load("partners").num_distinct_actions() == 145
    with pytest.raises(RulesError, match="players"):
        openspiel.load(players=7)


def test_observers() -> None:
    game = openspiel.load(Rules(stock_size=3))
    observer = make_observation(game)
    slices = features_slices(game.rules)
    for state in some_states(game, 6)[:5]:
        for player in (0, 1):
            observer.set_from(state, player)
            expected = state.game().observation(player)
            assert np.array_equal(observer.tensor, expected)
            assert set(observer.dict) == set(slices)
            assert np.array_equal(observer.dict["hand"], expected[slices["hand"]])
    with pytest.raises(Exception, match="params"):
        make_observation(game, params={"colour": 1})


def test_is_mcts_finds_the_winning_card() -> None:
    """One stock card each; the mover's fits the empty piles and wins at once."""
    game = openspiel.load(Rules(stock_size=1, first_player=0))
    state = game.new_initial_state()
    for card in (1, 9, 5, 6, 7, 8, 12):
        state.apply_action(card)
    bot = ismcts.ISMCTSBot(
        game=game,
        uct_c=2.0,
        max_simulations=120,
        evaluator=Shallow(),
        random_state=np.random.RandomState(1),
    )
    assert bot.step(state) < 4


class Shallow(mcts.Evaluator):
    """Ends of games are known, all else is even."""

    def evaluate(self, state: Any) -> np.ndarray:
        return np.array(state.returns())

    def prior(self, state: Any) -> list[tuple[int, float]]:
        legal = state.legal_actions()
        return [(action, 1 / len(legal)) for action in legal]


def test_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = run_page("docs/libraries/openspiel.md", tmp_path, monkeypatch)
    assert np.isfinite(names["losses"]).all()
    assert len(names["losses"]) > 5
    assert isinstance(names["environment"], rl_environment.Environment)
