"""The compiled engine against the hand-played cases and, step by step, the plain reference.

Also what holds in every game whatever the rules: no card is lost, the mask is what trying shows,
copies go on alike, nothing hidden can be seen. Each fault of a game program that people have
reported (the numbers 1 to 12) has a test of its name. `python -m tests.verify_long` compares many
more games.
"""

from __future__ import annotations

import copy
import json
import pickle
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skipbo_env import make_agent, skipbo_v0
from skipbo_env.actions import MAX_ACTIONS, MOVES, IllegalAction
from skipbo_env.agents import Model, TurnAgent
from skipbo_env.agents.network import Network, num_rows
from skipbo_env.engine import layout, rewards
from skipbo_env.game import Game
from skipbo_env.render import ansi, rgb_array
from skipbo_env.rules import PRESETS, Rules, RulesError
from skipbo_env.vector_env import SkipBoVectorEnv
from tests.compare import (
    Difference,
    EngineGame,
    any_rules,
    building_of,
    cards_of,
    compare_game,
    completed_of,
    draw_of,
    hands_of,
    stocks_of,
)
from tests.observation import KINDS
from tests.reference import PASS, WILD, deck
from tests.rule_cases import BAD_RULES, CASES, RESOLVED, Case, run_case, scripted_reshuffle

BY_NAME = {case.name: case for case in CASES}

# Tables on which every rule is at work somewhere, with decks that run low and out.
TABLES = [
    Rules(stock_size=8),
    Rules(players=3, copies=2, wilds=4, stock_size=4, hand_size=4, stalemate="fewest_stock"),
    Rules(players=6, stock_size=5, must_play_stock=True),
    Rules(copies=2, wilds=6, stock_size=5, ordered_discards=True, wild_discard=False),
    Rules(copies=1, wilds=60, stock_size=8, draw_per_turn=9, hand_size=3),
    Rules(stock_size=1, hand_size=20, max_turns=40),
    Rules(players=4, teams=2, copies=3, stock_size=6, hand_size=3),
    Rules(players=4, teams=2, stock_size=4, team_discard="team", ordered_discards=True),
    Rules(players=9, teams=3, copies=5, stock_size=3, must_play_stock=True, wild_discard=False),
    Rules(players=12, teams=3, copies=2, wilds=4, stock_size=1, draw_per_turn=1),
]
TABLE_IDS = [str(index) for index in range(len(TABLES))]


def lively(game: Game, rng: random.Random) -> int:
    """A random legal action that likes to play, so that games get somewhere."""
    legal = game.legal_actions()
    plays = [action for action in legal if MOVES[action].kind == "play"]
    return rng.choice(plays if plays and rng.random() < 0.8 else legal)


def game_of(case: Case) -> EngineGame:
    """The compiled game at the case's deal."""
    rules = Rules.from_dict(case.rules)
    game = Game.from_deal(rules, case.stocks, case.draw, case.first_player)
    return EngineGame(game, scripted_reshuffle(case))


def steps_of(rules: Rules, seed: int, most: int) -> Iterator[tuple[Game, Game, int]]:
    """A lively game: (the game before an action, the same object after it, the action)."""
    rng = random.Random(seed)
    game = Game(rules, seed=seed)
    while not game.over and len(game.actions) < most:
        before, action = game.clone(), lively(game, rng)
        game.apply(action)
        yield before, game, action


# -- hand-played cases ---------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_rule_case(case: Case) -> None:
    run_case(case, game_of(case))


@pytest.mark.parametrize(("rules", "boards", "stock_size"), RESOLVED)
def test_rules_resolve(rules: dict[str, Any], boards: int, stock_size: int) -> None:
    found = Rules.from_dict(rules)
    assert (found.boards, found.stocks) == (boards, stock_size)
    assert found.stock_size == rules.get("stock_size")
    assert Rules.from_dict(json.loads(json.dumps(found.to_dict()))) == found


@pytest.mark.parametrize(("rules", "why"), BAD_RULES)
def test_bad_rules_are_an_error(rules: dict[str, Any], why: str) -> None:
    with pytest.raises(RulesError) as caught:
        Rules.from_dict(rules)
    assert caught.value.field, why


def test_a_setting_that_cannot_be_dealt_names_the_numbers() -> None:
    with pytest.raises(RulesError, match=r"162 .* 6 .* 30 .* 5\b"):
        Rules(players=6, stock_size=30)


# -- engine and reference ------------------------------------------------------------------------


@pytest.mark.parametrize("agent", ["random", "play-first", "greedy"])
@pytest.mark.parametrize("players", range(2, 7))
def test_forty_games_step_by_step(players: int, agent: str) -> None:
    for index in range(40):
        compare_game(Rules(players=players), 1000 * players + index, agent)


@pytest.mark.parametrize("name", PRESETS)
def test_presets_step_by_step(name: str) -> None:
    for seed, agent in enumerate(("random", "play-first", "simple", "greedy")):
        compare_game(PRESETS[name], seed, agent)


@st.composite
def rule_sets(draw: st.DrawFn) -> Rules:
    return any_rules(lambda low, high: draw(st.integers(low, high)))


@settings(derandomize=True, deadline=None, max_examples=100)
@given(
    rules=rule_sets(),
    seed=st.integers(0, 2**64 - 1),
    choices=st.lists(st.integers(0, MAX_ACTIONS - 1), max_size=40),
    then=st.sampled_from(("random", "play-first", "simple", "greedy")),
)
def test_any_rules_and_any_choices(rules: Rules, seed: int, choices: list[int], then: str) -> None:
    """Some free choices, then an agent's, up to 200 in all."""
    agent = make_agent(then, seed=seed)

    def choose(game: Game) -> int:
        legal, made = game.legal_actions(), len(game.actions)
        return legal[choices[made] % len(legal)] if made < len(choices) else agent.act(game)

    compare_game(rules, seed, choose, 200)


@pytest.mark.parametrize("zone", ["draw pile", "stock", "hand", "discards", "turns", "top"])
def test_the_comparison_sees_one_wrong_card(zone: str) -> None:
    """The comparison itself: a cell of the engine's array changed in mid-game is a difference."""

    def choose(game: Game) -> int:
        if len(game.actions) == 30:
            state = game.state
            at = {
                "draw pile": int(state[layout.AT_DRAW] + state[layout.DRAW_LO]),
                "stock": int(state[layout.AT_STOCKS]),
                "hand": layout.hand_at(1 - game.player) + WILD,
                "discards": int(state[layout.AT_DISCARDS]),
                "turns": layout.TURNS,
                "top": layout.board_at(1 - game.player) + layout.TOP + 3,
            }[zone]
            state[at] = state[at] % 12 + 1
        return greedy.act(game)

    greedy = make_agent("greedy")
    with pytest.raises(Difference, match=r"after step 31: .*the engine has"):
        compare_game(Rules(), 3, choose)


# -- what holds after every step -----------------------------------------------------------------


@pytest.mark.parametrize("rules", TABLES, ids=TABLE_IDS)
def test_every_step_keeps_the_deck_the_bounds_and_the_order_of_turns(rules: Rules) -> None:
    whole_deck = Counter(deck(rules.to_dict()))
    for seed in range(4):
        assert cards_of(Game(rules, seed=seed)) == whole_deck
        for before, game, action in steps_of(rules, seed, 400):
            assert cards_of(game) == whole_deck
            check_bounds(game)
            ends_turn = MOVES[action].kind != "play"
            assert game.state[layout.TURNS] == before.state[layout.TURNS] + ends_turn
            moved_on = (before.player + 1) % rules.players if ends_turn else before.player
            assert game.player == (before.player if game.over else moved_on)
            # "A player with a card in hand can never PASS."
            assert PASS not in game.legal_actions() or not hands_of(game)[game.player]
            for left, were in zip(stocks_of(game), stocks_of(before), strict=True):
                assert left in (were, were[:-1])


def check_bounds(game: Game) -> None:
    """Every zone holds what it may hold."""
    rules = game.rules
    for pile in building_of(game):
        assert len(pile) < 12
        assert all(card in (place, WILD) for place, card in enumerate(pile, 1))
    assert all(len(hand) <= 20 for hand in hands_of(game))
    assert all(len(stock) <= rules.stocks for stock in stocks_of(game))
    completed = completed_of(game)
    assert len(completed) % 12 == 0
    assert all(completed.count(rank) <= len(completed) // 12 for rank in range(1, 13))
    assert len(draw_of(game)) <= rules.deck_size
    assert 0 <= game.state[layout.TURNS] <= rules.max_turns
    assert game.over or 0 <= game.state[layout.PASSES] < rules.players
    assert game.mask().any() == (not game.over)


@pytest.mark.parametrize("rules", TABLES, ids=TABLE_IDS)
def test_the_mask_is_what_trying_every_action_shows(rules: Rules) -> None:
    """An illegal action is refused and changes nothing, whatever its id."""
    for game, _, _ in steps_of(rules, 7, 60):
        mask = game.mask()
        assert (mask.dtype, mask.shape) == (np.int8, (rules.num_actions,))
        before = (game.state.tobytes(), list(game.actions), dict(game.scripts))
        legal = []
        for action in range(-2, MAX_ACTIONS + 3):
            other = game.clone()
            try:
                other.apply(action)
            except IllegalAction:
                assert (other.state.tobytes(), other.actions, other.scripts) == before
            else:
                assert other.state.tobytes() != before[0]
                legal.append(action)
        assert legal == game.legal_actions() == np.flatnonzero(mask).tolist()
        for action in (None, True, 1.5, "1", "pass"):
            with pytest.raises(IllegalAction):
                game.apply(action)  # type: ignore[arg-type]
        assert (game.state.tobytes(), game.actions, game.scripts) == before


def test_after_the_end_no_action_is_legal() -> None:
    game = Game(Rules(max_turns=3), seed=1)
    agent = make_agent("greedy")
    while not game.over:
        game.apply(agent.act(game))
    before = game.state.tobytes()
    assert not game.mask().any()
    for action in range(MAX_ACTIONS):
        with pytest.raises(IllegalAction, match="over"):
            game.apply(action)
    assert game.state.tobytes() == before


# -- copies --------------------------------------------------------------------------------------


def mid_game(rules: Rules, seed: int, plies: int) -> Game:
    """A lively game after so many actions, or a little earlier if it ends by then."""
    game = Game(rules, seed=seed)
    for before, _, _ in steps_of(rules, seed, plies):
        game = before
    return game


def finish(game: Game, seed: int) -> list[bytes]:
    """Play on with random choices; the array after every step."""
    rng, states = random.Random(seed), [game.state.tobytes()]
    while not game.over and len(states) < 400:
        game.apply(lively(game, rng))
        states.append(game.state.tobytes())
    return states


@pytest.mark.parametrize("rules", TABLES, ids=TABLE_IDS)
def test_copies_are_equal_and_go_on_alike(rules: Rules) -> None:
    for plies in (0, 25, 120):
        game = mid_game(rules, 11, plies)
        copies = [
            game.clone(),
            copy.deepcopy(game),
            pickle.loads(pickle.dumps(game)),  # noqa: S301
            Game.from_dict(json.loads(json.dumps(game.to_dict()))),
        ]
        record = game.record()
        assert all(other.record() == record for other in copies)
        states = finish(game, plies)
        assert [finish(other, plies) for other in copies] == [states] * len(copies)
        assert [other.record() for other in copies] == [game.record()] * len(copies)


@pytest.mark.parametrize("rules", TABLES, ids=TABLE_IDS)
def test_a_record_gives_every_state_back_and_goes_on_alike(rules: Rules) -> None:
    """To the generator: what comes after is shuffled as it was in the game recorded."""
    game = Game(rules, seed=5)
    states, records = [game.state.tobytes()], [game.record()]
    rng = random.Random(5)
    while not game.over and len(game.actions) < 300:
        game.apply(lively(game, rng))
        states.append(game.state.tobytes())
        if len(game.actions) % 25 == 0:
            records.append(game.record())
    record = json.loads(json.dumps(game.record()))
    turned_back = [
        Game.from_record(record, n) for n in range(0, len(states), 1 + len(states) // 12)
    ]
    for again in turned_back + [Game.from_record(unfinished) for unfinished in records]:
        ply = len(again.actions)
        assert again.state.tobytes() == states[ply]
        assert again.actions == game.actions[:ply]
        for index in range(ply, len(game.actions)):
            again.apply(game.actions[index])
            assert again.state.tobytes() == states[index + 1]
        assert again.record() == record


def test_a_record_of_given_reshuffles_keeps_them_and_then_follows_the_seed() -> None:
    """The order that somebody gave is no work of the seed's generator, which goes on after it."""
    rules = Rules(players=3, copies=2, wilds=4, stock_size=4, hand_size=4)
    rng, given = random.Random(2), 0
    game = Game(rules, seed=17)
    while not game.over and len(game.actions) < 400:
        action, trial = lively(game, rng), game.clone()
        trial.apply(action)
        script = None
        if trial.state[layout.RESHUFFLES] != game.state[layout.RESHUFFLES] and not given:
            script = last_reshuffle(trial)
            given += 1
        game.apply(action, reshuffle=script)
        again = Game.from_record(game.record())
        assert again.state.tobytes() == game.state.tobytes()
        assert again.scripts == game.scripts
    assert given
    assert game.state[layout.RESHUFFLES] > given
    # Without the seed, or with another, the cards told are the same and later ones are not known.
    for seed in (None, 18):
        again = Game.from_record({**game.record(), "seed": seed})
        assert len(again.scripts) == game.state[layout.RESHUFFLES]
        assert again.events() == game.events()


def last_reshuffle(game: Game) -> list[int]:
    """The cards of the last reshuffle, sorted."""
    counts = game.state[layout.RESHUFFLED + 1 : layout.RESHUFFLED + 14].tolist()
    return [card for card, count in enumerate(counts, 1) for _ in range(count)]


# -- who sees what -------------------------------------------------------------------------------


def swap_hidden(game: Game, seat: int, rng: random.Random) -> Game:
    """The game with all cards that a seat cannot see swapped among themselves, cell by cell.

    Plain Python on the array: other hands, stocks below their tops, the draw pile.
    """
    other = game.clone()
    state, rules = other.state, game.rules
    low, high = int(state[layout.DRAW_LO]), int(state[layout.DRAW_HI])
    cells = [int(state[layout.AT_DRAW]) + i for i in range(low, high)]
    for board, stock in enumerate(stocks_of(game)):
        at = int(state[layout.AT_STOCKS]) + board * rules.stocks
        cells += range(at, at + max(0, len(stock) - 1))
    hands = hands_of(game)
    hidden = [int(state[cell]) for cell in cells]
    hidden += [card for p, hand in enumerate(hands) if p != seat for card in hand]
    rng.shuffle(hidden)
    for cell in cells:
        state[cell] = hidden.pop()
    for p, hand in enumerate(hands):
        if p != seat:
            at = layout.hand_at(p)
            state[at + 1 : at + layout.HAND_CELLS] = 0
            for _ in hand:
                state[at + hidden.pop()] += 1
    state[layout.RNG_LO] ^= rng.randrange(1 << 31)
    return other


def seen_by(game: Game, seat: int) -> dict[str, Any]:
    """All that the package shows to a seat."""
    shown: dict[str, Any] = {kind: game.observation(seat, kind).tobytes() for kind in KINDS}
    shown["position"] = json.dumps(game.position(seat))
    shown["ansi"] = ansi(game.state, game.rules, seat)
    shown["public ansi"] = ansi(game.state, game.rules, None)
    shown["result"] = game.result
    if seat == game.player:
        legal = game.legal_actions()
        shown["mask"] = game.mask().tobytes()
        shown["legal"] = [(game.action_text(action), game.move(action)) for action in legal]
    return shown


@pytest.mark.parametrize("rules", TABLES, ids=TABLE_IDS)
def test_swaps_of_hidden_cards_cannot_be_seen(rules: Rules) -> None:
    rng = random.Random(3)
    whole_deck = Counter(deck(rules.to_dict()))
    moved = 0
    for index, (game, _, _) in enumerate(steps_of(rules, 21, 150)):
        if index % 5:
            continue
        before = game.state.tobytes()
        for seat in range(rules.players):
            shown = seen_by(game, seat)
            dealt = game.determinize(seat, index)
            for other in (dealt, swap_hidden(game, seat, rng)):
                assert seen_by(other, seat) == shown
                assert cards_of(other) == whole_deck
                moved += hidden_of(other) != hidden_of(game)
            # Nothing of the hidden truth gets into a game dealt anew.
            assert dealt.state.tobytes() == swap_hidden_then_deal(game, seat, index, rng)
        assert game.state.tobytes() == before
    assert moved > 10


def hidden_of(game: Game) -> list[Any]:
    return [hands_of(game), stocks_of(game), draw_of(game)]


def swap_hidden_then_deal(game: Game, seat: int, seed: int, rng: random.Random) -> bytes:
    return swap_hidden(game, seat, rng).determinize(seat, seed).state.tobytes()


# -- faults that people met in programs of this kind ----------------------------------------------

# The hand-played cases that show the right value, by the number of the fault.
FAULT_CASES = {
    1: ["wild_comes_back_as_a_wild", "wild_stays_wild_on_a_discard_pile"],
    2: ["three_reshuffles_in_one_turn", "all_completed_piles_are_reshuffled"],
    3: ["completed_pile_serves_its_own_refill"],
    4: ["old_cards_first_then_the_reshuffle", "at_exactly_zero_nothing_happens"],
    5: ["stalemate_even_if_plays_exist", "later_first_hands_may_be_short"],
    6: ["win_before_the_refill_with_an_empty_draw_pile"],
    7: [
        "fewest_stock_tie_of_two",
        "fewest_stock_lowest_shared_among_three",
        "fewest_stock_tie_of_teams",
    ],
    8: ["stock_reveals_in_deal_order"],
    9: ["hand_emptied_by_discard"],
    10: ["illegal_actions_change_nothing"],
    11: ["empty_hand_may_play_discard_tops"],
    12: ["first_hand_at_first_turn", "largest_score_of_6_players"],
}


def play_fault_cases(number: int) -> None:
    for name in FAULT_CASES[number]:
        run_case(BY_NAME[name], game_of(BY_NAME[name]))


def test_fault_1_the_wild_keeps_its_identity() -> None:
    play_fault_cases(1)
    reshuffles = 0
    for seed in range(8):
        # A small deck in which the wilds go round and round.
        for _, game, _ in steps_of(Rules(copies=4, stock_size=15), seed, 600):
            assert cards_of(game)[WILD] == 18
        reshuffles += int(game.state[layout.RESHUFFLES])
    assert reshuffles > 20


def test_fault_2_no_card_is_lost_doubled_or_added() -> None:
    play_fault_cases(2)
    rules = Rules(players=3, stock_size=5)
    whole_deck = Counter(deck(rules.to_dict()))
    env = skipbo_v0.raw_env(rules=rules)
    vector = SkipBoVectorEnv(3, rules=rules)
    vector.reset(seed=1)
    for seed in (1, None, 1):  # the second and third deals come from a used deck
        env.reset(seed=seed)
        assert cards_of(env.game) == whole_deck
        for _ in range(30):
            env.step(env.legal_actions()[0])
            assert cards_of(env.game) == whole_deck
    for _ in range(400):
        vector.step(vector.sample_actions())
        assert all(cards_of(vector.game(row)) == whole_deck for row in range(3))


def test_fault_3_the_pile_just_completed_serves_the_refill() -> None:
    play_fault_cases(3)
    game = game_of(BY_NAME["completed_pile_serves_its_own_refill"])
    for step in BY_NAME["completed_pile_serves_its_own_refill"].steps:
        for action in step.actions:
            game.apply(action)
    # Five of those twelve were drawn, seven are left.
    assert (len(game.hands[game.player]), len(game.draw), game.completed) == (5, 7, [])


def test_fault_4_reshuffled_neither_too_early_nor_too_late() -> None:
    play_fault_cases(4)
    seen = empty = 0
    for seed in range(8):
        for before, game, _ in steps_of(Rules(copies=4, stock_size=15), seed, 500):
            hand = hands_of(game)[game.player]
            if game.state[layout.RESHUFFLES] > before.state[layout.RESHUFFLES]:
                # All that was left of the old draw pile is in the hand, and more was needed.
                seen += 1
                assert not Counter(draw_of(before)) - Counter(hand)
                assert len(hand) > len(draw_of(before))
            elif not draw_of(game) and completed_of(game):
                empty += 1  # "a draw pile of 0 beside completed piles is a normal state"
            if game.player != before.player and len(hand) < 5:
                # A hand stays short at a turn's start only where nothing is left to draw.
                assert not draw_of(game)
                assert not completed_of(game)
    assert seen > 10
    assert empty > 10


def test_fault_5_exhaustion_has_an_answer() -> None:
    play_fault_cases(5)
    reasons: Counter[str] = Counter()
    for players in range(2, 7):
        for seed in range(10):
            game, agent = Game(players=players, seed=seed), make_agent("random", seed=seed)
            while not game.over:
                assert game.mask().any()
                game.apply(agent.act(game))
            reasons[game.result["reason"]] += 1
            assert game.result["winner"] is not None or not any(game.scores)
    assert reasons["stalemate"] > 25


def test_fault_6_a_win_with_an_empty_draw_pile_is_a_win_and_can_be_looked_at() -> None:
    play_fault_cases(6)
    case = BY_NAME["win_before_the_refill_with_an_empty_draw_pile"]
    game = game_of(case)
    actions = [action for step in case.steps for action in step.actions]
    for action in actions[:-1]:
        game.apply(action)
    winner = game.player
    row = np.zeros(2)
    rewards.act(game.game.state.copy(), actions[-1], rewards.WIN, 1.0, row)
    game.apply(actions[-1])
    assert (game.reason, game.winner, game.draw) == ("stock_empty", winner, [])
    assert row.tolist() == [1.0 if seat == winner else -1.0 for seat in range(2)]
    ended = game.game
    assert not ended.mask().any()
    for seat in (0, 1):
        assert ended.position(seat)["over"]["winner"] == winner
        assert all(np.isfinite(ended.observation(seat, kind)).all() for kind in KINDS)
        assert f"player {winner} wins" in ansi(ended.state, ended.rules, seat)
        assert rgb_array(ended.state, ended.rules, seat).dtype == np.uint8
    assert ended.record()["events"][-1]["winner"] == winner


def test_fault_7_ties_at_a_stalemate_go_to_nobody() -> None:
    play_fault_cases(7)
    tied = 0
    for seed in range(60):
        rules = Rules(players=3, stock_size=2, copies=1, wilds=0, stalemate="fewest_stock")
        game = Game(rules, seed=seed)
        while not game.over:
            # Nobody plays a card: all have their two stock cards to the end.
            game.apply(game.legal_actions()[-1])
        left = sorted(len(stock) for stock in stocks_of(game))
        if game.result["reason"] == "stalemate" and left[0] == left[1]:
            tied += 1
            assert game.result == {"winner": None, "reason": "stalemate", "scores": [0, 0, 0]}
    assert tied > 10


def test_fault_8_the_stock_is_revealed_in_the_deals_order() -> None:
    play_fault_cases(8)
    for players in (2, 5):
        game, agent = Game(players=players, seed=2), make_agent("greedy")
        deal = stocks_of(game)
        revealed: list[list[int]] = [[] for _ in deal]
        while not game.over:
            board, sizes = game.player, [len(stock) for stock in stocks_of(game)]
            top = int(game.state[layout.board_at(board) + layout.STOCK_TOP])
            game.apply(agent.act(game))
            if len(stocks_of(game)[board]) < sizes[board]:
                revealed[board].append(top)
        for stock, shown in zip(deal, revealed, strict=True):
            assert shown == stock[::-1][: len(shown)]
        assert any(len(shown) == len(stock) for stock, shown in zip(deal, revealed, strict=True))


def test_fault_9_a_hand_emptied_by_the_discard_stays_empty() -> None:
    play_fault_cases(9)
    emptied = 0
    for seed in range(5):
        last: dict[int, int] = {}
        for before, game, action in steps_of(Rules(players=3, hand_size=2), seed, 300):
            if MOVES[action].kind == "discard":
                last[before.player] = len(hands_of(before)[before.player]) - 1
            for seat, cards in last.items():
                if seat != game.player:
                    assert len(hands_of(game)[seat]) == cards
            emptied += last.get(before.player) == 0 and before.player != game.player
    assert emptied > 50


def test_fault_10_an_illegal_action_is_an_error_and_nothing_else() -> None:
    play_fault_cases(10)
    env = skipbo_v0.raw_env(rules=TABLES[7])
    env.reset(seed=4)
    for _ in range(20):
        legal, before = env.legal_actions(), env.game
        for action in set(range(-1, MAX_ACTIONS + 1)) - set(legal):
            with pytest.raises(IllegalAction):
                env.step(action)
            assert env.agent_selection == f"player_{before.player}"
        assert env.game.state.tobytes() == before.state.tobytes()
        assert env.game.actions == before.actions
        env.step(legal[len(legal) // 2])


def test_fault_11_look_ahead_knows_when_nothing_can_be_drawn() -> None:
    play_fault_cases(11)
    rules = Rules(copies=1, wilds=2, stock_size=5, hand_size=2)
    shape = (num_rows(2, 2), 16)
    rng = np.random.default_rng(0)
    layers = (shape, (16,), (16, 32), (32,), (32,), (1,))
    network = Network(*(rng.normal(0, 0.3, size).astype(np.float32) for size in layers))
    agent = TurnAgent(Model("test", Path(), {}, 2, 0, 2, network, "0"))
    emptied = 0
    for seed in range(40):
        for game, _, _ in steps_of(rules, seed, 60):
            if draw_of(game) or completed_of(game):
                continue
            for move in agent.suggest(game)["moves"]:
                # Followed through: every action of the line is legal, all of them the mover's.
                after = game.clone()
                for action in move["line"]:
                    assert after.player == game.player
                    after.apply(action)
                if not building_completes(game, move["line"]):
                    assert move["line_ends"] != "refill"
                    emptied += not hands_of(after)[game.player]
    assert emptied > 50


def building_completes(game: Game, line: list[int]) -> bool:
    """Whether a pile is completed by the line, which makes its cards ones that can be drawn."""
    after, completed = game.clone(), False
    for action in line:
        move = MOVES[action]
        completed |= move.kind == "play" and len(building_of(after)[move.pile]) == 11
        after.apply(action)
    return completed


HOUSE = {
    "stock_size": 7,
    "hand_size": 6,
    "copies": 9,
    "wilds": 20,
    "draw_per_turn": 3,
    "must_play_stock": True,
    "wild_discard": False,
    "ordered_discards": True,
    "stalemate": "fewest_stock",
    "max_turns": 25,
}


@pytest.mark.parametrize("players", [2, 3, 6])
def test_fault_12_players_and_rules_are_honoured_after_every_reset(players: int) -> None:
    play_fault_cases(12)
    wanted = Rules(players=players, **HOUSE)  # type: ignore[arg-type]
    header = layout.new_state(wanted)[: layout.AT_HANDS]
    setting = {"players": players, "rules": HOUSE}
    raw, wrapped = skipbo_v0.raw_env(**setting), skipbo_v0.env(**setting)
    single = gymnasium.make("skipbo_env:SkipBo-v0", **setting)
    vector = SkipBoVectorEnv(4, **setting)
    for seed in (1, 2, None, 1):
        for env in (raw, wrapped, single, vector):
            env.reset(seed=seed)
        games = [raw.game, wrapped.unwrapped.game, single.unwrapped.game]
        games += [vector.game(row) for row in range(4)]
        for game in games:
            assert game.rules == wanted
            assert np.array_equal(game.state[: layout.AT_HANDS], header)
            # The single-seat environment has let the others play first.
            assert [len(stock) <= 7 for stock in stocks_of(game)] == [True] * players
            assert sum(cards_of(game).values()) == 12 * 9 + 20
        for game in games[:2] + games[3:]:
            assert [len(stock) for stock in stocks_of(game)] == [7] * players
            assert sorted(len(hand) for hand in hands_of(game)) == [0] * (players - 1) + [3]
    # The games that follow by themselves have them as well.
    for _ in range(300):
        vector.step(vector.sample_actions())
        for row in range(4):
            assert np.array_equal(vector.game(row).state[: layout.AT_HANDS], header)
