"""Positions: read, checked, completed, dealt, and blind to whatever the observer cannot see."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skipbo_env import position as position_module
from skipbo_env.engine import layout, moves, observe
from skipbo_env.engine.deal import deal
from skipbo_env.position import Position, PositionError, determinize, position_of
from skipbo_env.rules import Rules
from skipbo_env.state_check import check_state

RULE_SETS = {
    "two": Rules(),
    "two-short": Rules(stock_size=10),
    "three-strict": Rules(
        players=3, must_play_stock=True, wild_discard=False, ordered_discards=True
    ),
    "four-draw-two": Rules(players=4, draw_per_turn=2, stock_size=15),
    "five": Rules(players=5, hand_size=3, stalemate="fewest_stock"),
    "six": Rules(players=6),
    "tiny-deck": Rules(copies=2, wilds=3, stock_size=5, hand_size=4, max_turns=60),
    "no-wilds": Rules(players=3, copies=5, wilds=0, stock_size=8),
    "one-card-hand": Rules(hand_size=1, copies=3, stock_size=6),
    "draw-twenty": Rules(draw_per_turn=20, hand_size=20, copies=6),
    "partners": Rules(players=4, teams=2),
    "partners-open": Rules(players=4, teams=2, team_discard="team", stock_size=8, copies=6),
    "six-in-two": Rules(players=6, teams=2, must_play_stock=True),
    "nine": Rules(players=9, teams=3, stock_size=12, copies=10),
    "twelve": Rules(players=12, teams=3),
}

WORKED_TURN: dict[str, Any] = {
    "rules": "standard",
    "hand": ["3", "6", "8", "12", "S"],
    "building": [5, 11, 2, 0],
    "you": 0,
    "players": [
        {"stock_top": "7", "stock_size": 12, "discards": [["4"], ["10"], [], []]},
        {"stock_top": "5", "stock_size": 20, "discards": [[], [], [], []], "hand_size": 5},
    ],
    "draw_size": 88,
    "completed": {**{str(rank): 1 for rank in range(1, 11)}, "S": 2},
}


def play(rules: Rules, seed: int, games: int = 2) -> Iterator[layout.State]:
    """States of whole games that prefer plays, so that stocks fall and piles are reshuffled."""
    rng = np.random.default_rng(seed)
    ids = np.zeros(197, dtype=np.int64)
    for game in range(games):
        state = layout.new_state(rules)
        deal(state, np.uint64(1000 * seed + game), int(state[layout.FIRST_PLAYER]))
        while not state[layout.REASON]:
            yield state
            legal = ids[: moves.legal_actions(state, ids)]
            plays = legal[(legal < moves.A_END) | ((legal > moves.A_PASS) & (legal < moves.A_END2))]
            chosen = plays if len(plays) and rng.random() < 0.9 else legal
            moves.apply(state, int(rng.choice(chosen)))
        yield state


def sample(rules: Rules, seed: int, count: int = 60) -> list[layout.State]:
    """States spread over two games with their ends, about half of them after a reshuffle."""
    states = [state.copy() for state in play(rules, seed)]
    late = [state for state in states if state[layout.RESHUFFLES]]
    picks = [*states[:: max(1, 2 * len(states) // count)], *late[:: max(1, 2 * len(late) // count)]]
    return [*picks, *(state for state in states if state[layout.REASON])]


def whole_deck(state: layout.State, rules: Rules) -> list[int]:
    """How many cards of each kind lie anywhere, index 0 to 13."""
    cards = layout.draw_cards(state)
    for board in range(rules.boards):
        cards += layout.stock_cards(state, board)
        for pile in range(4):
            cards += layout.discard_cards(state, board, pile)
    for seat in range(rules.players):
        cards += layout.hand_cards(state, seat)
    for pile in range(4):
        cards += layout.building_cards(state, pile)
    counts = np.bincount(cards, minlength=14)
    counts[1:] += state[layout.COMPLETED + 1 : layout.COMPLETED + 14]
    return [int(count) for count in counts]


def assert_sound(state: layout.State, rules: Rules) -> None:
    """The whole deck is there, and what is kept twice agrees."""
    assert whole_deck(state, rules) == [0, *[rules.copies] * 12, rules.wilds]
    for board in range(rules.boards):
        stock = layout.stock_cards(state, board)
        at = layout.board_at(board)
        assert state[at + layout.STOCK_TOP] == (stock[-1] if stock else 0)
        for pile in range(4):
            cards = layout.discard_cards(state, board, pile)
            assert state[at + layout.TOP + pile] == (cards[-1] if cards else 0)
    for seat in range(rules.players):
        assert state[layout.hand_at(seat)] == len(layout.hand_cards(state, seat))
    assert state[layout.COMPLETED_SIZE] == state[layout.COMPLETED : layout.COMPLETED + 14].sum()


def mask(state: layout.State) -> bytes:
    out = np.zeros(int(state[layout.ACTIONS]), dtype=np.int8)
    moves.legal_mask(state, out)
    return out.tobytes()


def sight(state: layout.State, rules: Rules, seat: int) -> tuple[Any, ...]:
    """All that a seat is shown, as bytes and text; the mask if it is to move."""
    cards = np.zeros(observe.observation_size(rules, "cards"), dtype=np.int8)
    features = np.zeros(observe.observation_size(rules, "features"), dtype=np.float32)
    observe.observe_cards(state, seat, cards)
    observe.observe_features(state, seat, np.zeros(14, dtype=np.int32), features)
    shown = json.dumps(position_of(state, rules, seat))
    legal = mask(state) if int(state[layout.PLAYER]) == seat else b""
    return cards.tobytes(), features.tobytes(), shown, legal


@pytest.mark.parametrize("name", RULE_SETS)
def test_a_position_from_a_game_reads_back_and_deals_exactly(name: str) -> None:
    rules = RULE_SETS[name]
    for k, state in enumerate(sample(rules, 1)):
        for seat in {int(state[layout.PLAYER]), k % rules.players}:
            data = json.loads(json.dumps(position_of(state, rules, seat)))
            if state[layout.REASON]:
                with pytest.raises(PositionError) as caught:
                    Position.parse(data)
                assert caught.value.pointer == "/over"
                continue
            read = Position.parse(data)
            assert read == Position.of(state, rules, seat)
            assert read.to_json() == data
            assert read.inferred == ()
            dealt = read.deal(k)
            assert_sound(dealt, rules)
            assert sight(dealt, rules, seat) == sight(state, rules, seat)
            assert np.array_equal(dealt, read.deal(k))
            assert Position.from_notation(read.to_notation()) == read


@pytest.mark.parametrize("name", RULE_SETS)
def test_determinizing_keeps_what_the_seat_sees(name: str) -> None:
    rules = RULE_SETS[name]
    for k, state in enumerate(sample(rules, 2)):
        for seat in {int(state[layout.PLAYER]), k % rules.players}:
            before = state.copy()
            dealt = determinize(state, rules, seat, 5 + k)
            assert np.array_equal(state, before)
            assert_sound(dealt, rules)
            assert sight(dealt, rules, seat) == sight(state, rules, seat)


@pytest.mark.parametrize("name", RULE_SETS)
def test_hidden_cards_change_nothing(name: str) -> None:
    """Hidden cards dealt at random, ages ignored: what the seat sees and may imagine stays."""
    rules = RULE_SETS[name]
    rng = np.random.default_rng(3)
    for k, state in enumerate(sample(rules, 3)):
        seat = k % rules.players
        other = state.copy()
        draw = int(state[layout.AT_DRAW])
        cells = [draw + i for i in range(int(state[layout.DRAW_LO]), int(state[layout.DRAW_HI]))]
        for board in range(rules.boards):
            stock = int(state[layout.AT_STOCKS]) + board * rules.stocks
            size = int(state[layout.board_at(board) + layout.STOCK_N])
            cells += [stock + i for i in range(size - 1)]
        seats = [q for q in range(rules.players) if q != seat]
        cards = [int(state[cell]) for cell in cells]
        cards += [card for q in seats for card in layout.hand_cards(state, q)]
        rng.shuffle(cards)
        for cell in cells:
            other[cell] = cards.pop()
        for q in seats:
            at = layout.hand_at(q)
            other[at + 1 : at + 14] = np.bincount(
                [cards.pop() for _ in range(int(state[at]))], minlength=14
            )[1:]
            seen = int(state[layout.AT_SEEN]) + 14 * q
            if state[layout.RESHUFFLES]:
                other[seen + 1 : seen + 14] = rng.integers(0, 3, 13)
        other[layout.RNG_LO : layout.RNG_HI + 1] = rng.integers(0, 1 << 31, 2)
        assert sight(other, rules, seat) == sight(state, rules, seat)
        first, second = determinize(state, rules, seat, k), determinize(other, rules, seat, k)
        assert np.array_equal(first, second)


@pytest.mark.parametrize("name", ["two-short", "three-strict", "four-draw-two", "partners-open"])
def test_pools_stay_apart_after_a_reshuffle(name: str) -> None:
    """The true draw pile fits the pool that the position tells; dealt draw piles come from it."""
    rules = RULE_SETS[name]
    states = [state for state in sample(rules, 4, 120) if state[layout.RESHUFFLES]]
    assert states
    told = 0
    for k, state in enumerate(states):
        for seat in range(rules.players):
            reshuffled = Position.of(state, rules, seat).reshuffled
            assert reshuffled is not None
            pool = np.array([0, *reshuffled])
            unseen = np.zeros(14, dtype=np.int32)
            observe.unseen_counts(state, seat, unseen)
            drawable = np.minimum(pool, unseen)
            truth = np.bincount(layout.draw_cards(state), minlength=14)
            assert (truth <= drawable).all()
            dealt = determinize(state, rules, seat, k)
            assert (np.bincount(layout.draw_cards(dealt), minlength=14) <= drawable).all()
            stocks = [c for b in range(rules.boards) for c in layout.stock_cards(dealt, b)[:-1]]
            newer = sum(
                int(state[layout.hand_at(q)] - state[int(state[layout.AT_SEEN]) + 14 * q])
                for q in range(rules.players)
                if q != seat
            )
            if drawable.sum() == truth.sum() + newer:  # where all reshuffled cards are is known
                told += 1
                assert (np.bincount(stocks, minlength=14) <= unseen - drawable).all()
    assert told


@pytest.mark.parametrize("name", ["two-short", "tiny-deck", "partners-open", "three small"])
def test_the_truth_is_among_the_deals(name: str) -> None:
    """What lies in the stocks and what lies in the hands is dealt now and then, as it is: counting
    rules out nothing that can be, though plays from hands of mixed age leave much in doubt.
    """
    rules = RULE_SETS.get(name, Rules(players=3, copies=4, wilds=6, stock_size=5))

    def facts(game: layout.State, seat: int) -> set[tuple[str, int, object]]:
        """The cards of all stocks together, and how many of each kind each other hand holds."""
        stocks = (c for b in range(rules.boards) for c in layout.stock_cards(game, b)[:-1])
        hands = (layout.hand_at(q) for q in range(rules.players) if q != seat)
        held = {("hand", at + card, int(game[at + card])) for at in hands for card in range(1, 14)}
        return {*held, ("stocks", 0, tuple(sorted(stocks)))}

    looked = 0
    for state in (state for seed in range(30) for state in sample(rules, seed, 100)):
        hidden = sum(max(0, len(layout.stock_cards(state, b)) - 1) for b in range(rules.boards))
        if not state[layout.RESHUFFLES] or state[layout.REASON] or not 1 <= hidden <= 4:
            continue
        seat = looked % rules.players
        left = facts(state, seat)
        for seed in range(20_000):
            left -= facts(determinize(state, rules, seat, seed), seat)
            if not left:
                break
        assert not left
        looked += 1
        if looked == 25:
            break
    assert looked > 5


def test_a_dealt_game_can_be_played_on_and_seen_by_all() -> None:
    rules = RULE_SETS["two-short"]
    rng = np.random.default_rng(8)
    ids = np.zeros(197, dtype=np.int64)
    for state in sample(rules, 5, 30):
        if state[layout.REASON]:
            continue
        dealt = determinize(state, rules, 0, 9)
        for _ in range(60):
            n = moves.legal_actions(dealt, ids)
            if n == 0:
                break
            moves.apply(dealt, int(rng.choice(ids[:n])))
            for seat in range(2):
                if not dealt[layout.REASON]:
                    read = Position.parse(position_of(dealt, rules, seat))
                    assert sight(read.deal(1), rules, seat) == sight(dealt, rules, seat)
                    if read.reshuffled is not None:
                        truth = np.bincount(layout.draw_cards(dealt), minlength=14)[1:]
                        assert (truth <= np.array(read.reshuffled)).all()


def test_hidden_cards_are_dealt_evenly() -> None:
    """Every unseen card is as likely as any other in the opponent's hand (4 standard errors)."""
    read = Position.parse(WORKED_TURN)
    unseen = np.zeros(14, dtype=np.int32)
    observe.unseen_counts(read.deal(0), 0, unseen)
    n = 2000
    hand = (
        sum(read.deal(seed)[layout.hand_at(1) + 1 : layout.hand_at(1) + 14] for seed in range(n))
        / n
    )
    expected = 5 * unseen[1:] / unseen.sum()
    assert np.all(np.abs(hand - expected) < 4 * np.sqrt(expected / n))


def test_the_worked_turn_reads() -> None:
    read = Position.parse(WORKED_TURN)
    assert read.inferred == ("building_cards", "passes", "turns")
    assert read.rules == Rules()
    assert read.hand_sizes == (5, 5)
    assert read.building[1] == tuple(range(1, 12))
    assert_sound(read.deal(1), read.rules)


@pytest.mark.parametrize(
    ("left_out", "inferred", "draw_size", "completed"),
    [
        (["draw_size"], {"draw_size"}, 88, 12),
        (["completed"], {"completed"}, 88, 12),
        (["rules"], {"rules"}, 88, 12),
        (["draw_size", "completed"], {"draw_size", "completed"}, 100, 0),
        (["hand_size"], {"hand_size"}, 88, 12),
        (["hand_size", "draw_size"], {"hand_size", "draw_size"}, 89, 12),
        (["hand_size", "completed"], {"hand_size", "completed"}, 88, 12),
    ],
)
def test_what_is_left_out_is_inferred(
    left_out: list[str], inferred: set[str], draw_size: int, completed: int
) -> None:
    data = copy.deepcopy(WORKED_TURN)
    for name in left_out:
        del (data["players"][1] if name == "hand_size" else data)[name]
    read = Position.parse(data)
    assert set(read.inferred) == inferred | {"building_cards", "passes", "turns"}
    assert (read.draw_size, sum(read.completed)) == (draw_size, completed)
    assert_sound(read.deal(3), read.rules)
    assert Position.parse(read.to_json()) == read


def test_null_means_left_out() -> None:
    data = {**WORKED_TURN, "rules": None, "draw_size": None, "reshuffled": None, "turns": None}
    assert Position.parse(data).inferred == (
        "rules",
        "draw_size",
        "building_cards",
        "passes",
        "turns",
    )


def test_forced_wilds_are_assumed() -> None:
    data = copy.deepcopy(WORKED_TURN)
    data["players"][1]["discards"] = [["2"] * 11, [], [], []]
    data["draw_size"] -= 11
    read = Position.parse(data)
    assert [pile[1] for pile in read.building if len(pile) > 1].count(2) == 0
    assert_sound(read.deal(3), read.rules)


def test_every_name_of_a_card_is_read() -> None:
    data = copy.deepcopy(WORKED_TURN)
    data["hand"] = [3, "6", 8.0, "q", "Skip-Bo"]
    assert Position.parse(data) == Position.parse(WORKED_TURN)


def test_a_team_position_without_rules_reads() -> None:
    board = {"stock_top": 5, "stock_size": 20, "discards": [[], [], [], []]}
    data = {
        "hand": ["1", "2"],
        "building": [0, 0, 0, 0],
        "players": [{}] * 4,
        "boards": [board] * 4,
    }
    read = Position.parse(data)
    assert (read.rules.players, read.rules.teams) == (4, 2)
    assert read.hand_sizes == (2, 4, 4, 4)
    assert_sound(read.deal(3), read.rules)


def test_a_position_with_nothing_to_draw_needs_no_draw_size() -> None:
    """An empty hand says that nothing can be drawn; the sizes must then say so too."""
    rules = {"players": 2, "copies": 1, "wilds": 0, "stock_size": 2, "hand_size": 4}
    data: dict[str, Any] = {
        "rules": rules,
        "hand": [],
        "building": [0, 0, 0, 0],
        "players": [
            {"stock_top": 2, "stock_size": 2, "discards": [[3, 4, 5], [6, 7], [], []]},
            {"stock_top": 8, "stock_size": 2, "discards": [[9], [], [], []], "hand_size": 2},
        ],
    }
    read = Position.parse(data)
    assert read.draw_size == 0
    ids = np.zeros(197, dtype=np.int64)
    assert moves.legal_actions(read.deal(1), ids) == 1
    assert ids[0] == moves.A_PASS
    data["players"][1]["hand_size"] = 1
    with pytest.raises(PositionError) as caught:
        Position.parse(data)
    assert caught.value.pointer == "/hand"


def changed(path: str, value: Any) -> dict[str, Any]:
    """The worked turn with the field at a pointer set, or removed where the value is KeyError."""
    data = copy.deepcopy(WORKED_TURN)
    *parents, last = path.strip("/").split("/")
    at: Any = data
    for name in parents:
        at = at[int(name)] if isinstance(at, list) else at[name]
    if value is KeyError:
        del at[last]
    elif isinstance(at, list):
        at[int(last)] = value
    else:
        at[last] = value
    return data


@pytest.mark.parametrize(
    ("path", "value", "pointer"),
    [
        ("/hand", ["5", "5", "5", "5", "5"], None),
        ("/players/1/discards/0", ["5"] * 13, "/players/1/discards/0/11"),
        ("/players/1/discards/3", ["S"] * 19, "/players/1/discards/3/18"),
        ("/hand", ["3", "6", "8", "12", "S", "S"], "/hand"),
        ("/hand", ["3", "6", "8", "12", "13"], "/hand/4"),
        ("/hand", ["3", "6", "8", "12", None], "/hand/4"),
        ("/hand", ["3", "6", "8", "12", True], "/hand/4"),
        ("/hand", "3", "/hand"),
        ("/hand", KeyError, "/hand"),
        ("/hand", [], "/hand"),
        ("/hand", ["3"], "/draw_size"),
        ("/building/1", 12, "/building/1"),
        ("/building/1", -1, "/building/1"),
        ("/building/1", 5.5, "/building/1"),
        ("/building/1", "5", "/building/1"),
        ("/building", [1, 2, 3], "/building"),
        ("/building", KeyError, "/building"),
        ("/building_cards", [[], [], [], []], "/building_cards/0"),
        ("/building_cards", [[1, 2, 4, 4, 5], [], [], []], "/building_cards/0/2"),
        ("/players", [], "/players"),
        ("/players", KeyError, "/players"),
        ("/players/0", None, "/players/0"),
        ("/players/0/discards", [[]] * 7, "/players/0/discards"),
        ("/players/0/discards", [[]] * 3, "/players/0/discards"),
        ("/players/0/discards/1", 4, "/players/0/discards/1"),
        ("/players/0/stock_top", None, "/players/0/stock_top"),
        ("/players/0/stock_top", "14", "/players/0/stock_top"),
        ("/players/0/stock_top", KeyError, "/players/0/stock_top"),
        ("/players/0/stock_size", 0, "/players/0/stock_top"),
        ("/players/0/stock_size", 31, "/players/0/stock_size"),
        ("/players/0/stock_size", 13, "/draw_size"),
        ("/players/0/hand_size", 4, "/players/0/hand_size"),
        ("/players/1/hand_size", 6, "/players/1/hand_size"),
        ("/players/1/hand_size", 4, "/draw_size"),
        ("/players/1/hand_sise", 4, "/players/1/hand_sise"),
        ("/draw_size", 87, "/draw_size"),
        ("/draw_size", "88", "/draw_size"),
        pytest.param("/draw_size", 10**5000, "/draw_size", id="huge draw_size"),
        ("/completed/5", 2, "/completed"),
        ("/completed/5", 13, "/completed/5"),
        ("/completed/x~y", 1, "/completed/x~0y"),
        ("/completed", {"5": 2, "S": 10}, "/completed/5"),
        ("/completed", [], "/completed"),
        ("/completed", {1.0: 1}, "/completed"),
        ("/completed", {1.5: 1}, "/completed/1.5"),
        ("/reshuffled", {"5": 13}, "/reshuffled/5"),
        ("/reshuffled", {}, "/reshuffled"),
        ("/reshuffled", {str(rank): 7 for rank in range(1, 13)}, "/reshuffled"),
        ("/you", 2, "/you"),
        ("/you", True, "/you"),
        ("/to_move", 2, "/to_move"),
        ("/passes", 2, "/passes"),
        ("/passes", 1, "/passes"),
        ("/turns", 2000, "/turns"),
        ("/rules", "nonsense", "/rules"),
        ("/rules", 5, "/rules"),
        ("/rules", {"players": 3}, "/players"),
        ("/rules", {"plaiers": 3}, "/rules/plaiers"),
        ("/rules", {"hand_size": 0}, "/rules/hand_size"),
        pytest.param("/rules", {"hand_size": 10**5000}, "/rules/hand_size", id="huge hand_size"),
        ("/rules", "partners", "/players"),
        ("/boards", [], "/boards"),
        ("/a~b~1c", 1, "/a~0b~01c"),
        ("/over", {"winner": 0}, "/over"),
    ],
)
def test_an_impossible_position_names_the_field(path: str, value: Any, pointer: str | None) -> None:
    if pointer is None:  # five fives are fine where the deck has them
        assert Position.parse(changed(path, value)).hand == (5,) * 5
        return
    with pytest.raises(PositionError) as caught:
        Position.parse(changed(path, value))
    assert caught.value.pointer == pointer
    assert caught.value.message
    assert str(caught.value).startswith(pointer)


def test_keys_of_counts_may_be_numbers() -> None:
    numbers = {1.0: 1, **dict.fromkeys(range(2, 11), 1), "S": 2}
    assert Position.parse(changed("/completed", numbers)) == Position.parse(WORKED_TURN)
    with pytest.raises(PositionError) as caught:
        Position.parse(changed("/completed", {1.0: 9, 2: 1, "S": 2}))
    assert caught.value.pointer == "/completed/1.0"


def test_the_draw_pile_comes_from_the_reshuffle() -> None:
    """Its size is at most what of the reshuffled cards is unseen; so it is in every real game."""
    rules = RULE_SETS["tiny-deck"]
    late = [s for seed in range(8) for s in sample(rules, seed) if s[layout.RESHUFFLES]]
    tight = 0
    for state in late:
        if state[layout.REASON]:
            continue
        data = position_of(state, rules, int(state[layout.PLAYER]))
        unseen = np.array(whole_deck(state, rules))
        unseen -= np.array(seen_by(state, rules, int(state[layout.PLAYER])))
        read = Position.parse(data)
        assert read.reshuffled is not None
        most = sum(map(min, unseen[1:].tolist(), read.reshuffled))
        assert most >= read.draw_size
        while most >= read.draw_size > 0:  # take away one card after the other
            left = [card for card, n in data["reshuffled"].items() if n]
            card = left[0]
            data["reshuffled"][card] -= 1
            kind = _kind(card)
            most -= data["reshuffled"][card] < unseen[kind]
            if most >= read.draw_size:
                Position.parse(data)
        if read.draw_size:
            tight += 1
            with pytest.raises(PositionError) as caught:
                Position.parse(data)
            assert caught.value.pointer == "/reshuffled"
            assert str(read.draw_size) in caught.value.message
    assert tight >= 5


def _kind(card: str) -> int:
    return 13 if card == "S" else int(card)


def seen_by(state: layout.State, rules: Rules, seat: int) -> list[int]:
    """Cards that a seat sees, by kind."""
    cards = layout.hand_cards(state, seat)
    for board in range(rules.boards):
        cards += layout.stock_cards(state, board)[-1:]
        for pile in range(4):
            cards += layout.discard_cards(state, board, pile)
    for pile in range(4):
        cards += layout.building_cards(state, pile)
    counts = np.bincount(cards, minlength=14)
    counts[1:] += state[layout.COMPLETED + 1 : layout.COMPLETED + 14]
    return [int(count) for count in counts]


def dry(**changes: Any) -> dict[str, Any]:
    """Nothing can be drawn, and seat 1 of three has passed."""
    data: dict[str, Any] = {
        "rules": {"players": 3, "copies": 1, "wilds": 0, "stock_size": 2, "hand_size": 4},
        "you": 2,
        "hand": [1, 10],
        "building": [0, 0, 0, 0],
        "players": [
            {"stock_top": 2, "stock_size": 1, "discards": [[3, 4], [], [], []], "hand_size": 0},
            {"stock_top": 8, "stock_size": 1, "discards": [[9], [5], [], []], "hand_size": 0},
            {"stock_top": 7, "stock_size": 2, "discards": [[6], [12], [], []]},
        ],
        "draw_size": 0,
        "completed": {},
        "passes": 2,
    }
    return {**data, **changes}


def test_who_passed_holds_no_card() -> None:
    assert Position.parse(dry()).hand_sizes == (0, 0, 2)
    for seat in (0, 1):
        data = dry()
        data["players"][seat]["hand_size"] = 1
        data["players"][2]["stock_size"] = 1
        with pytest.raises(PositionError) as caught:
            Position.parse(data)
        assert caught.value.pointer == "/passes"
        assert f"seat {seat} has passed" in caught.value.message
    # Only the seat just before the mover has passed: the other may hold a card.
    data = dry(passes=1)
    data["players"][0]["hand_size"] = 1
    data["players"][2]["stock_size"] = 1
    assert Position.parse(data).hand_sizes == (1, 0, 2)
    # The observer may be the one who has passed.
    data = dry(to_move=0, passes=1)
    data["players"][0]["hand_size"] = 1
    data["players"][2]["stock_size"] = 1
    with pytest.raises(PositionError) as caught:
        Position.parse(data)
    assert caught.value.pointer == "/passes"
    # What is left out is worked out.
    data = dry()
    for seat in (0, 1):
        del data["players"][seat]["hand_size"]
    read = Position.parse(data)
    assert read.hand_sizes == (0, 0, 2)
    assert "hand_size" in read.inferred


def test_a_stock_that_is_empty_ends_the_game() -> None:
    data = changed("/players/0/stock_size", 0)
    data["players"][0]["stock_top"] = None
    with pytest.raises(PositionError, match="over") as caught:
        Position.parse(data)
    assert caught.value.pointer == "/players/0/stock_size"


def test_the_thirteenth_five_of_all_zones_together() -> None:
    data = copy.deepcopy(WORKED_TURN)
    data["completed"]["5"] = 0
    data["completed"]["S"] = 3
    data["players"][1]["discards"] = [["5"] * 11, [], [], []]  # with the stock top: all twelve
    data["hand"] = ["3", "5", "8", "12", "S"]
    with pytest.raises(PositionError) as caught:
        Position.parse(data)
    assert caught.value.pointer == "/hand/1"
    assert "12" in caught.value.message


def test_the_notation_in_the_docstring_is_one() -> None:
    text = position_module.__doc__ or ""
    line = next(line.strip() for line in text.splitlines() if line.startswith("    - "))
    assert Position.from_notation(line).to_notation() == line


@pytest.mark.parametrize(
    "line",
    [
        "",
        "x",
        "- 0",
        " ".join("-" * 11),
        "- 0 3 -/-/-/- x 1,1 5 - - 0 0",
        "teams=x 0 3 - - - - - - - -",
    ],
)
def test_a_bad_line_of_notation_is_refused(line: str) -> None:
    with pytest.raises(PositionError):
        Position.from_notation(line)


def test_errors_survive_pickling() -> None:
    error = copy.copy(PositionError("/hand", "is missing"))
    assert (error.pointer, error.message, str(error)) == (
        "/hand",
        "is missing",
        "/hand: is missing",
    )


def test_equal_positions_have_equal_hashes() -> None:
    read = Position.parse(WORKED_TURN)
    assert (
        read.hash
        == Position.parse(read.to_json()).hash
        == Position.parse(changed("/rules", None)).hash
    )
    assert read.hash != Position.parse(changed("/turns", 7)).hash


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=8,
)
SCRAPS = st.one_of(
    JSON_VALUES,
    st.integers(-2, 100),
    st.sampled_from(
        ["5", "S", "standard", "partners", [], {}, [[]] * 4, [0] * 4, ["5"] * 5, 1.0, 1e999]
    ),
    st.dictionaries(
        st.sampled_from(["5", "S", "1", "players", "teams"]), st.integers(-1, 20), max_size=3
    ),
)


def paths(data: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in JSON data."""
    inner = (
        data.items()
        if isinstance(data, dict)
        else enumerate(data)
        if isinstance(data, list)
        else ()
    )
    return [at, *(path for key, value in inner for path in paths(value, (*at, key)))]


@settings(max_examples=300, deadline=None)
@given(data=JSON_VALUES)
def test_random_json_is_refused_with_a_pointer(data: Any) -> None:
    with pytest.raises(PositionError):
        Position.parse(data)


BASES = [
    WORKED_TURN,
    *(
        json.loads(json.dumps(position_of(state, rules, int(state[layout.PLAYER]))))
        for rules in (RULE_SETS["two-short"], RULE_SETS["partners"])
        for state in sample(rules, 6, 6)
        if not state[layout.REASON]
    ),
]


@settings(max_examples=600, deadline=None)
@given(data=st.data())
def test_mutated_positions_are_refused_or_sound(data: st.DataObject) -> None:
    """One or two changes: a PositionError whose pointer can be followed, or a sound game."""
    mutated = copy.deepcopy(data.draw(st.sampled_from(BASES)))
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from(paths(mutated)[1:] or [()]))
        if not path:
            return
        at = mutated
        for key in path[:-1]:
            at = at[key]
        if data.draw(st.booleans()):
            at[path[-1]] = copy.deepcopy(data.draw(SCRAPS))
        elif isinstance(at, dict):
            del at[path[-1]]
        else:
            at.insert(path[-1], copy.deepcopy(at[path[-1]]))
    try:
        read = Position.parse(mutated)
    except PositionError as error:
        at = mutated
        parts = error.pointer.split("/")[1:]
        for part in parts[:-1]:  # the last part may be missing
            at = at[int(part)] if isinstance(at, list) else at[part]
        return
    state = read.deal(4)
    assert_sound(state, read.rules)
    assert any(mask(state))
    assert Position.parse(read.to_json()) == read
    assert Position.from_notation(read.to_notation()) == read
    assert Position.of(state, read.rules, read.you) == read


LINES = [
    Position.of(state, rules, int(state[layout.PLAYER])).to_notation()
    for rules in (RULE_SETS["two-short"], RULE_SETS["partners"], RULE_SETS["tiny-deck"])
    for state in sample(rules, 6, 6)
    if not state[layout.REASON]
]
PIECES = st.one_of(
    st.text(max_size=5),
    st.integers().map(str),
    st.sampled_from(
        ["", "-", " ", "/", ":", ",", "=", "0", "12", "S", "T", "players=3", "teams=2", "1" * 5000]
    ),
    st.text("0123456789TJQS-/:,= ", max_size=12),
)


@settings(max_examples=600, deadline=None)
@given(data=st.data())
def test_any_line_of_notation_is_refused_or_sound(data: st.DataObject) -> None:
    """Changed fields and changed characters: nothing but a PositionError comes out."""
    line = data.draw(st.sampled_from(LINES))
    for _ in range(data.draw(st.integers(1, 2))):
        if data.draw(st.booleans()):
            fields = line.split(" ")
            fields[data.draw(st.integers(0, len(fields) - 1))] = data.draw(PIECES)
            line = " ".join(fields)
        else:
            at = data.draw(st.integers(0, len(line)))
            line = line[:at] + data.draw(PIECES) + line[at + data.draw(st.integers(0, 2)) :]
    try:
        read = Position.from_notation(line)
    except PositionError:
        return
    assert_sound(read.deal(4), read.rules)
    assert Position.from_notation(read.to_notation()) == read


@settings(max_examples=300, deadline=None)
@given(text=st.text() | st.lists(PIECES, min_size=11, max_size=11).map(" ".join))
def test_any_text_as_notation(text: str) -> None:
    with pytest.raises(PositionError):
        Position.from_notation(text)


@pytest.mark.parametrize("text", [None, 3, b"- 0", ["-"]])
def test_notation_is_text(text: Any) -> None:
    with pytest.raises(PositionError):
        Position.from_notation(text)


@pytest.mark.parametrize(
    ("field", "text"),
    [
        (0, "stock_size=5,stock_size=30"),
        (1, "0/"),
        (2, ""),
        (3, "-//-/-"),
        (4, "J2SSS:30:-/-/-/-,4:30:-/-/-/-"),
        (4, "J:030:-/-/-/-,4:30:-/-/-/-"),
        (4, "J:30:-//-/-,4:30:-/-/-/-"),
        *((6, text) for text in ("9_2", "+92", "092", "-0", "٩٢", "92\t", "9.2")),
        (5, "5,05"),
        (10, "0\n"),
    ],
)
def test_what_the_notation_does_not_know_is_refused(field: int, text: str) -> None:
    line = [
        "-",
        "0",
        "238TS",
        "-/-/-/-",
        "J:30:-/-/-/-,4:30:-/-/-/-",
        "5,5",
        "92",
        "-",
        "-",
        "0",
        "0",
    ]
    assert Position.from_notation(" ".join(line)).to_notation().split(" ")[2] == "238TS"
    line[field] = text
    with pytest.raises(PositionError):
        Position.from_notation(" ".join(line))


def test_a_pass_ends_a_turn() -> None:
    data: dict[str, Any] = {
        "rules": {"copies": 1, "wilds": 0, "stock_size": 3, "hand_size": 2},
        "you": 1,
        "hand": [],
        "building": [0, 0, 0, 0],
        "players": [
            {"stock_top": "10", "stock_size": 3, "discards": [["2", "7", "12"], [], [], []]},
            {"stock_top": "5", "stock_size": 3, "discards": [["4", "6", "8"], [], [], []]},
        ],
        "draw_size": 0,
        "completed": {},
        "passes": 1,
    }
    assert Position.parse(data).turns == 1
    with pytest.raises(PositionError, match="passes"):
        Position.parse({**data, "turns": 0})


OPTIONAL = (
    "draw_size",
    "completed",
    "building_cards",
    "reshuffled",
    "turns",
    "passes",
    "rules",
    "hand_size",
)


@pytest.mark.parametrize("name", RULE_SETS)
def test_a_real_position_is_read_with_less_told(name: str) -> None:
    """What may be left out of a position from a game never makes it impossible: an assumption gives
    way to what is told. And what comes out is read again.
    """
    rules = RULE_SETS[name]
    rng = np.random.default_rng(7)
    read = 0
    for state in sample(rules, 3, 11):
        if state[layout.REASON]:
            continue
        data = position_of(state, rules, int(state[layout.PLAYER]))
        for _ in range(6):
            less = copy.deepcopy(data)
            for field in rng.permutation(OPTIONAL)[: rng.integers(1, 4)]:
                if field == "rules":
                    if name in ("two", "six"):
                        del less["rules"]
                elif field == "hand_size":
                    for seat in less["players"]:
                        if rng.random() < 0.6:
                            seat.pop("hand_size", None)
                elif field != "turns" or not less.get("passes"):
                    less.pop(field, None)
            if less.get("passes") is None and data.get("passes"):
                continue  # what happened then is another story
            found = Position.parse(less)
            assert Position.parse(found.to_json()) == found
            assert Position.from_notation(found.to_notation()) == found
            assert_sound(found.deal(1), found.rules)
            read += 1
    assert read > 20


@pytest.mark.parametrize("name", RULE_SETS)
def test_assumed_piles_leave_the_draw_pile_its_cards(name: str) -> None:
    """Which cards lie in building and completed piles may be left out though it is told which ones
    the draw pile may hold: wilds are assumed where the others must lie there.
    """
    rules = RULE_SETS[name]
    pairs = itertools.product(("building_cards", None), ("completed", None), ("draw_size", None))
    left_out = [[field for field in fields if field] for fields in pairs]
    swapped = 0
    for seed in range(3):
        for state in sample(rules, seed, 60):
            if not state[layout.RESHUFFLES] or state[layout.REASON]:
                continue
            data = position_of(state, rules, int(state[layout.PLAYER]))
            for fields in left_out:
                less = {key: value for key, value in data.items() if key not in fields}
                found = Position.parse(less)
                assert_sound(found.deal(1), found.rules)
                assert Position.parse(found.to_json()) == found
                plain = Position.parse({**less, "reshuffled": None})
                swapped += found.building != plain.building or found.completed != plain.completed
    assert swapped or name not in ("two", "two-short", "partners")


def board(top: str, size: int, piles: list[list[str]] | None = None) -> dict[str, Any]:
    return {"stock_top": top, "stock_size": size, "discards": piles or [[], [], [], []]}


def test_assumptions_give_way() -> None:
    """Positions that are possible in one way only, which is not the usual one."""
    reshuffled = {str(card): 1 for card in range(1, 13)}
    found = Position.parse(
        {
            "hand": ["1"],
            "building": [0] * 4,
            "players": [board("3", 10), {**board("4", 10), "hand_size": 4}],
            "reshuffled": reshuffled,
        }
    )
    assert found.draw_size <= 12
    assert sum(found.completed) % 12 == 0
    found = Position.parse(
        {
            "rules": {"draw_per_turn": 5},
            "to_move": 1,
            "hand": ["1", "2", "3", "4"],
            "building": [0] * 4,
            "players": [board("3", 30), board("4", 30)],
            "draw_size": 86,
        }
    )
    assert found.hand_sizes[1] == 12
    found = Position.parse(
        {
            "rules": {"draw_per_turn": 20, "copies": 2, "wilds": 0, "stock_size": 1},
            "hand": ["3", "4"],
            "building": [0] * 4,
            "draw_size": 2,
            "players": [board("1", 1, [["12"], ["12"], [], []]), board("2", 1)],
        }
    )
    assert found.hand_sizes[1] == 16


def test_passes_end_turns_that_the_limit_allows() -> None:
    data = {
        "rules": {"max_turns": 1, "copies": 1, "wilds": 0, "stock_size": 5, "hand_size": 2},
        "hand": ["1", "2"],
        "building": [0] * 4,
        "passes": 1,
        "players": [board("3", 5), board("4", 5)],
    }
    with pytest.raises(PositionError) as caught:
        Position.parse(data)
    assert caught.value.pointer == "/passes"


def test_a_wild_that_may_not_be_discarded_lies_on_no_discard_pile() -> None:
    data = {
        "rules": {"wild_discard": False},
        "hand": ["3"],
        "building": [0] * 4,
        "players": [board("7", 12, [["5"], ["S"], [], []]), board("5", 20)],
    }
    with pytest.raises(PositionError) as caught:
        Position.parse(data)
    assert caught.value.pointer == "/players/0/discards/1/0"
    data["rules"] = {}
    state = Position.parse(data).deal(1)
    with pytest.raises(ValueError, match="a wild lies on a discard pile"):
        check_state(with_rules(state, Rules(wild_discard=False)), Rules(wild_discard=False))


def with_rules(state: layout.State, rules: Rules) -> layout.State:
    """The array under other rules, whose cells stand at its beginning."""
    other = state.copy()
    other[: layout.PLAYER] = layout.new_state(rules)[: layout.PLAYER]
    return other


def test_null_counts_as_left_out() -> None:
    data = copy.deepcopy(WORKED_TURN)
    expected = Position.parse(data)
    data["completed"]["11"] = None
    data["rules"] = {"players": None}
    found = Position.parse(data)
    assert found.completed == expected.completed
    assert found.rules == expected.rules


def test_hands_hold_what_must_have_been_drawn_since_the_reshuffle() -> None:
    """A hand that was emptied and filled again after the reshuffle holds only reshuffled cards that
    the observer has not seen since, in the game and in every deal of what the observer knows.
    """
    rules = RULE_SETS["four-draw-two"]
    looked = 0
    for seed in range(6):
        for state in sample(rules, seed, 7):
            if not state[layout.RESHUFFLES]:
                continue
            seen = int(state[layout.AT_SEEN])
            for observer in range(rules.players):
                at = seen + layout.HAND_CELLS * observer
                pool = state[layout.RESHUFFLED : layout.RESHUFFLED + 14] - state[at : at + 14]
                for deal_seed in range(3):
                    dealt = determinize(state, rules, observer, deal_seed)
                    for game in (state, dealt):
                        for seat in range(rules.players):
                            size = int(state[layout.hand_at(seat)])
                            older = int(state[seen + layout.HAND_CELLS * seat])
                            if seat == observer:
                                continue
                            cards = np.bincount(layout.hand_cards(game, seat), minlength=14)
                            new = np.minimum(cards[1:], np.maximum(pool[1:], 0)).sum()
                            assert new >= size - older
                            looked += size > older
    assert looked > 100
