"""Hand-played cases for the settled rules, as data that any engine can be run against.

A Case is a deal, lists of action ids and what must be seen after them; its sentence names the
line of rules.md or the number in faults.md that it shows. Every deal is a real deal of its rules'
deck, so that an engine which checks deals accepts it. `run_case` plays a case on any object with
the attributes of tests.reference.ReferenceGame (player, over, reason, winner, scores, passes,
turns, hands, stocks, discards, building, completed, draw, events, legal_actions, apply,
all_cards); an engine needs only an adapter with those names. This file starts no engine and draws
no random number.

Cards are ints, W the wild. The helpers below only spell action ids.
"""

# Draw piles are written hand by hand, `[1, 2] + [9, 9]`, so that a reader sees who draws what.
# ruff: noqa: RUF005

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.reference import WILD, board_count, check_deal, deck, full_rules

W = WILD
PASS = 124
PILES = range(4)


def stock(pile: int) -> int:
    """Own stock's top to a building pile."""
    return pile


def hand(card: int, pile: int) -> int:
    """A hand card to a building pile."""
    return 4 + 4 * (card - 1) + pile


def discard(d: int, pile: int) -> int:
    """The top of own discard pile d to a building pile."""
    return 56 + 4 * d + pile


def end(card: int, d: int) -> int:
    """End the turn: a hand card to own discard pile d."""
    return 72 + 4 * (card - 1) + d


def other_stock(pile: int) -> int:
    """The team's other stock to a building pile."""
    return 125 + pile


def other_discard(d: int, pile: int) -> int:
    """The top of the other board's discard pile d to a building pile."""
    return 129 + 4 * d + pile


def other_end(card: int, d: int) -> int:
    """End the turn: a hand card to the other board's discard pile d."""
    return 145 + 4 * (card - 1) + d


def ends(*cards: int) -> list[int]:
    """The discards of these hand cards on all four own piles."""
    return [end(card, d) for card in cards for d in PILES]


def other_ends(*cards: int) -> list[int]:
    """The discards of these hand cards on all four piles of the other board."""
    return [other_end(card, d) for card in cards for d in PILES]


def play_all(cards: list[int], pile: int) -> list[int]:
    """Hand cards one after another to one building pile."""
    return [hand(card, pile) for card in cards]


@dataclass(frozen=True)
class Step:
    """Actions to apply in turn, then the facts that must hold.

    Facts (keys of `expect`):
        player, over, reason, winner, scores, passes, turns: the value.
        legal: all legal actions, sorted. has, lacks: some that are, some that are not.
        illegal: ids that must raise ValueError and change nothing.
        hand: {seat: cards in any order}. hand_sizes: one a seat.
        stock_tops (None where empty), stock_sizes: one a board.
        discards: {board: four piles, bottom to top}.
        heights: of the building piles. building: {pile: true cards, bottom to top}.
        completed: the true cards in any order. draw_size: of the draw pile.
        events: the record's events of exactly this step (the first step's start with the draw that
            opens the game).
        event_types: only their types.
    """

    actions: list[int]
    expect: dict[str, Any]


@dataclass(frozen=True)
class Case:
    """One hand-played case; `says` is the sentence or fault number that it shows."""

    name: str
    says: str
    rules: dict[str, Any]
    stocks: list[list[int]]
    draw: list[int]
    steps: list[Step]
    first_player: int = 0
    reshuffles: list[list[int]] = field(default_factory=list)


CASES: list[Case] = []


def _case(
    name: str,
    says: str,
    rules: dict[str, Any],
    tops: list[list[int]],
    draw: list[int],
    steps: list[tuple[list[int], dict[str, Any]]],
    first_player: int = 0,
    reshuffles: list[list[int]] | None = None,
) -> None:
    """Add a case. Stocks are given by their `tops` in the order in which they are revealed, the
    draw pile by its first cards; the unnamed cards of the deck fill the rest, lowest first."""
    full = full_rules(rules)
    left = Counter(deck(full))
    for cards in [*tops, draw]:
        left -= Counter(cards)  # drops what would be negative: check_deal sees that
    rest = sorted(left.elements())
    stocks = []
    for board in range(board_count(full)):
        shown = tops[board] if board < len(tops) else []
        missing = full["stock_size"] - len(shown)
        stocks.append(rest[:missing] + shown[::-1])
        rest = rest[missing:]
    whole_draw = draw + rest
    check_deal(full, stocks, whole_draw)
    made = [Step(actions, expect) for actions, expect in steps]
    CASES.append(Case(name, says, rules, stocks, whole_draw, made, first_player, reshuffles or []))


# ---------------------------------------------------------------------------------------------
# The turn
# ---------------------------------------------------------------------------------------------

_case(
    "worked_turn",
    "rules.md, A worked turn, as a test",
    {"players": 2, "stock_size": 12},
    [[7, 1, 9, 5, 10], [12]],
    # player 1 builds 5, 11 and 2 ...
    [1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 1, 2, 12, 12]
    # ... and player 0 gets 4 and 10 on discard piles, 3 6 8 12 wild in hand, five more to come
    + [4, 10, 3, 6, 8]
    + [7, 7, 8, 8, 12, 9, W]
    + [1, 2, 3, 4, 4],
    [
        (
            play_all([1, 2, 3, 4, 5], 0)
            + play_all([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], 1)
            + play_all([1, 2], 2)
            + [end(12, 0), end(4, 0), end(12, 1), end(10, 1), end(9, 2)],
            {
                "player": 0,
                "heights": [5, 11, 2, 0],
                "hand": {0: [3, 6, 8, 12, W]},
                "discards": {0: [[4], [10], [], []]},
                "stock_tops": [7, 12],
                "stock_sizes": [12, 12],
                "turns": 5,
            },
        ),
        ([hand(6, 0), stock(0)], {"heights": [7, 11, 2, 0], "stock_tops": [1, 12]}),
        ([stock(3)], {"heights": [7, 11, 2, 1], "stock_tops": [9, 12]}),
        ([hand(8, 0), stock(0), discard(1, 0)], {"heights": [10, 11, 2, 1]}),
        (
            [hand(12, 1)],
            {"heights": [10, 0, 2, 1], "completed": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]},
        ),
        ([hand(3, 2), discard(0, 2), stock(2)], {"heights": [10, 0, 5, 1], "hand": {0: [W]}}),
        (
            [hand(W, 3)],
            {
                "player": 0,
                "turns": 5,
                "heights": [10, 0, 5, 2],
                "building": {3: [1, W]},
                "hand": {0: [1, 2, 3, 4, 4]},
                "discards": {0: [[], [], [], []]},
                "stock_sizes": [8, 12],
                "stock_tops": [10, 12],
                "events": [
                    {"type": "play", "player": 0, "card": "S", "from": "hand", "to": 3, "as": 2},
                    {"type": "draw", "player": 0, "cards": ["1", "2", "3", "4", "4"]},
                ],
            },
        ),
    ],
    first_player=1,
)

_case(
    "first_hand_at_first_turn",
    "No hands are dealt: a player's hand is drawn when their first turn begins; after seat p comes "
    "seat (p + 1) mod players",
    {"players": 3},
    [[5], [5], [5]],
    [1, 1, 7, 12, W] + [2, 3, 4, 6, 7] + [8, 9, 10, 11, 12],
    [
        (
            [],
            {
                "player": 1,
                "hand_sizes": [0, 5, 0],
                "draw_size": 67,
                "stock_sizes": [30, 30, 30],
                "passes": 0,
                "turns": 0,
                "events": [{"type": "draw", "player": 1, "cards": ["1", "1", "7", "12", "S"]}],
            },
        ),
        (
            [end(12, 3)],
            {
                "player": 2,
                "hand_sizes": [0, 4, 5],
                "turns": 1,
                "events": [
                    {"type": "discard", "player": 1, "card": "12", "to": 3},
                    {"type": "draw", "player": 2, "cards": ["2", "3", "4", "6", "7"]},
                ],
            },
        ),
        ([end(7, 0)], {"player": 0, "hand": {0: [8, 9, 10, 11, 12]}, "turns": 2}),
    ],
    first_player=1,
)

_case(
    "opening_legal_actions",
    "The card must be the rank that the building pile wants (1 on an empty pile) or a wild; no "
    "duty to play: discarding is legal while plays exist",
    {"players": 2},
    [[5], [5]],
    [1, 1, 7, 12, W],
    [
        (
            [],
            {
                "legal": [hand(1, b) for b in PILES]
                + [hand(W, b) for b in PILES]
                + ends(1, 7, 12, W)
            },
        )
    ],
)

_case(
    "illegal_actions_change_nothing",
    "faults.md 10: an illegal action is a clear error, state as it was",
    {"players": 2},
    [[5], [1]],
    [1, 1, 7, 12, W],
    [
        (
            [],
            {
                "illegal": [stock(0), hand(2, 0), hand(7, 0), discard(0, 0), end(2, 0), PASS]
                + [other_stock(0), other_discard(0, 0), other_end(7, 0), 197, 1000, -1]
            },
        ),
        ([hand(1, 2)], {"illegal": [hand(1, 2)], "has": [hand(1, 0), hand(W, 2)]}),
    ],
)

_case(
    "only_own_piles",
    "No moves between discard piles, none from stock to a discard pile, none from another side's "
    "piles",
    {"players": 2, "hand_size": 1},
    [[9], [2]],
    [1, 7],
    [([end(1, 0)], {"player": 0, "legal": ends(7), "illegal": [discard(0, 0), stock(0), PASS]})],
    first_player=1,
)

_case(
    "stock_reveals_in_deal_order",
    "A stock card played reveals the next at once; faults.md 8: the revealed sequence is the "
    "deal's",
    {"players": 2},
    [[1, 2, W, 4, 11], [12]],
    [8, 8, 8, 9, 9],
    [
        ([], {"stock_tops": [1, 12], "has": [stock(b) for b in PILES]}),
        ([stock(1)], {"stock_tops": [2, 12], "stock_sizes": [29, 30], "hand_sizes": [5, 0]}),
        ([stock(1)], {"stock_tops": [W, 12], "has": [stock(b) for b in PILES]}),
        ([stock(1)], {"stock_tops": [4, 12], "building": {1: [1, 2, W]}}),
        ([stock(1)], {"stock_tops": [11, 12], "stock_sizes": [26, 30], "lacks": [stock(1)]}),
    ],
)

_case(
    "discard_top_frees_the_card_below",
    "The top of any own discard pile; a discard top played frees the card below",
    {"players": 2},
    [[12], [12]],
    [3, 2, 9, 9, 8] + [10, 10, 11, 11, 12] + [1] + [10] + [8],
    [
        (
            [end(3, 0), end(10, 0), end(2, 0), end(10, 0)],
            {"player": 0, "discards": {0: [[3, 2], [], [], []], 1: [[10, 10], [], [], []]}},
        ),
        ([hand(1, 3)], {"has": [discard(0, 3)], "lacks": [discard(0, 0)]}),
        ([discard(0, 3)], {"discards": {0: [[3], [], [], []]}, "has": [discard(0, 3)]}),
        (
            [discard(0, 3)],
            {
                "discards": {0: [[], [], [], []]},
                "building": {3: [1, 2, 3]},
                "events": [
                    {
                        "type": "play",
                        "player": 0,
                        "card": "3",
                        "from": "discard:0",
                        "to": 3,
                        "as": 3,
                    }
                ],
            },
        ),
    ],
)

_case(
    "full_pile_is_set_aside_at_once",
    "A pile that reaches 12 is set aside at once and its place is free",
    {"players": 2},
    [[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 1, 6], [12]],
    [8, 8, 8, 9, 9],
    [
        ([stock(2)] * 11, {"heights": [0, 0, 11, 0], "completed": [], "stock_tops": [12, 12]}),
        (
            [stock(2)],
            {
                "heights": [0, 0, 0, 0],
                "completed": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12],
                "events": [
                    {"type": "play", "player": 0, "card": "12", "from": "stock", "to": 2, "as": 12},
                    {"type": "complete", "pile": 2},
                ],
                "has": [stock(2)],
            },
        ),
        ([stock(2)], {"heights": [0, 0, 1, 0], "stock_tops": [6, 12]}),
    ],
)

_case(
    "short_hand_is_not_topped_up",
    "A hand that is short but not empty is never topped up within the turn",
    {"players": 2},
    [[3, 12], [12]],
    [1, 2, 9, 9, 9] + [8, 8, 8, 8, 8] + [10, 10, 10],
    [
        ([], {"hand": {0: [1, 2, 9, 9, 9]}}),
        ([hand(1, 0), hand(2, 0)], {"hand": {0: [9, 9, 9]}, "event_types": ["play", "play"]}),
        ([stock(0)], {"hand": {0: [9, 9, 9]}, "event_types": ["play"]}),
        ([end(9, 0)], {"hand": {0: [9, 9]}, "player": 1}),
        ([end(8, 0)], {"player": 0, "hand": {0: [9, 9, 10, 10, 10]}}),
    ],
)

_case(
    "empty_hand_is_refilled_at_once",
    "After every play an empty hand is refilled to hand_size at once and the turn goes on",
    {"players": 2},
    [[12], [12]],
    [1, 2, 3, 4, 5] + [9, 9, 9, 9, 9],
    [
        (play_all([1, 2, 3, 4], 0), {"hand": {0: [5]}}),
        (
            [hand(5, 0)],
            {
                "player": 0,
                "turns": 0,
                "hand": {0: [9, 9, 9, 9, 9]},
                "event_types": ["play", "draw"],
            },
        ),
    ],
)

_case(
    "hand_emptied_by_discard",
    "faults.md 9: a hand emptied by the discard is not refilled until that player's next turn",
    {"players": 2},
    [[12], [12]],
    [1, 2, 3, 4, 9] + [8, 8, 8, 8, 8] + [10, 10, 11, 11, W],
    [
        (play_all([1, 2, 3, 4], 0) + [end(9, 0)], {"player": 1, "hand_sizes": [0, 5]}),
        ([end(8, 0)], {"player": 0, "hand": {0: [10, 10, 11, 11, W]}}),
    ],
)

# ---------------------------------------------------------------------------------------------
# Wilds
# ---------------------------------------------------------------------------------------------

_case(
    "twelve_wilds_make_a_pile",
    "A wild may be played as any rank 1 to 12, on another wild too; it stays a wild",
    {"players": 2},
    [[W] * 12 + [9], [12]],
    [8, 8, 8, 9, 9],
    [
        ([stock(0)] * 11, {"heights": [11, 0, 0, 0], "building": {0: [W] * 11}}),
        (
            [stock(0)],
            {
                "completed": [W] * 12,
                "events": [
                    {"type": "play", "player": 0, "card": "S", "from": "stock", "to": 0, "as": 12},
                    {"type": "complete", "pile": 0},
                ],
            },
        ),
    ],
)

_case(
    "wild_stays_wild_on_a_discard_pile",
    "In hand, on a stock and on a discard pile it stays wild",
    {"players": 2, "hand_size": 1},
    [[9], [9]],
    [W, 12, 8],
    [
        (
            [end(W, 0), end(12, 0)],
            {
                "player": 0,
                "discards": {0: [[W], [], [], []]},
                "legal": [discard(0, b) for b in PILES] + ends(8),
            },
        ),
        ([discard(0, 1)], {"building": {1: [W]}, "heights": [0, 1, 0, 0]}),
    ],
)

_case(
    "wild_comes_back_as_a_wild",
    "faults.md 1: once its building pile is completed and reshuffled it is a wild again",
    {"players": 2, "copies": 1, "wilds": 3, "stock_size": 1},
    [[W], [W]],
    [W, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 1],
    [
        (
            play_all([W, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], 0),
            {"completed": [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, W], "hand": {0: [1]}},
        ),
        (
            [hand(1, 1)],
            {
                "completed": [],
                "hand": {0: [2, 3, 4, 5, W]},
                "has": [hand(W, b) for b in PILES] + ends(W),
                "events": [
                    {"type": "play", "player": 0, "card": "1", "from": "hand", "to": 1, "as": 1},
                    {
                        "type": "reshuffle",
                        "cards": ["S", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12"],
                    },
                    {"type": "draw", "player": 0, "cards": ["S", "2", "3", "4", "5"]},
                ],
            },
        ),
        ([end(W, 2)], {"discards": {0: [[], [], [W], []]}}),
    ],
    reshuffles=[[W, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]],
)

_CYCLE = [1, 2, 3, 4, 5, 6, W, 8, 9, 10, 11, 12]

_case(
    "three_reshuffles_in_one_turn",
    "faults.md 1 and 2: the multiset of all zones is the deck after every step, through many "
    "reshuffles",
    {"players": 2, "copies": 1, "wilds": 2, "stock_size": 1},
    [[7], [W]],
    _CYCLE,
    [
        (
            play_all(_CYCLE * 3, 3),
            {
                "player": 0,
                "turns": 0,
                "heights": [0, 0, 0, 0],
                "completed": [],
                "draw_size": 7,
                "hand": {0: [1, 2, 3, 4, 5]},
            },
        )
    ],
    reshuffles=[_CYCLE, _CYCLE, _CYCLE],
)

# ---------------------------------------------------------------------------------------------
# The draw pile
# ---------------------------------------------------------------------------------------------

_ONE_TO_12 = list(range(1, 13))
_12_TO_ONE = list(range(12, 0, -1))

_case(
    "completed_pile_serves_its_own_refill",
    "faults.md 3: hand [12] on a pile at 11, draw pile empty: five of those twelve are drawn",
    {"players": 2, "copies": 1, "wilds": 2, "stock_size": 1},
    [[W], [W]],
    _ONE_TO_12,
    [
        (
            play_all(_ONE_TO_12[:11], 0),
            {"hand": {0: [12]}, "draw_size": 0, "completed": [], "heights": [11, 0, 0, 0]},
        ),
        (
            [hand(12, 0)],
            {
                "hand": {0: [8, 9, 10, 11, 12]},
                "draw_size": 7,
                "completed": [],
                "heights": [0, 0, 0, 0],
                "event_types": ["play", "complete", "reshuffle", "draw"],
            },
        ),
    ],
    reshuffles=[_12_TO_ONE],
)

_case(
    "old_cards_first_then_the_reshuffle",
    "faults.md 4: draw 2, completed 12, hand 1 at turn start: both old cards are in hand, two more "
    "come from the reshuffle, 10 remain",
    {"players": 2, "copies": 2, "wilds": 0, "stock_size": 1},
    [[11], [12]],
    _ONE_TO_12 + [1, 5, 6] + [2, 3, 4, 7, 8] + [9, 10],
    [
        (
            play_all(_ONE_TO_12, 0) + [hand(1, 1), end(6, 0)],
            {"hand_sizes": [1, 5], "draw_size": 2, "completed": _ONE_TO_12},
        ),
        (
            [end(8, 0)],
            {
                "player": 0,
                "hand": {0: [5, 9, 10, 11, 12]},
                "draw_size": 10,
                "completed": [],
                "events": [
                    {"type": "discard", "player": 1, "card": "8", "to": 0},
                    {"type": "draw", "player": 0, "cards": ["9", "10"]},
                    {"type": "reshuffle", "cards": [str(card) for card in _12_TO_ONE]},
                    {"type": "draw", "player": 0, "cards": ["12", "11"]},
                ],
            },
        ),
    ],
    reshuffles=[_12_TO_ONE],
)

_case(
    "at_exactly_zero_nothing_happens",
    "Never reshuffled before a card is needed: at exactly zero nothing happens until the next draw",
    {"players": 2, "copies": 2, "wilds": 1, "stock_size": 1},
    [[11], [12]],
    _ONE_TO_12 + [1, 5, 6] + [2, 3, 4, 7, 8] + [9, 10, W],
    [
        (
            play_all(_ONE_TO_12, 0) + [end(6, 0), end(8, 0)],
            {
                "player": 0,
                "hand": {0: [1, 5, 9, 10, W]},
                "draw_size": 0,
                "completed": _ONE_TO_12,
            },
        ),
        ([hand(1, 0)], {"draw_size": 0, "event_types": ["play"]}),
        (
            [end(10, 1)],
            {
                "player": 1,
                "draw_size": 11,
                "completed": [],
                "hand": {1: [2, 3, 4, 7, 12]},
                "event_types": ["discard", "reshuffle", "draw"],
            },
        ),
    ],
    reshuffles=[_12_TO_ONE],
)

_case(
    "all_completed_piles_are_reshuffled",
    "Only when a card is needed and the draw pile is empty are the completed piles shuffled to a "
    "new draw pile; faults.md 2",
    {"players": 2, "copies": 2, "wilds": 2, "stock_size": 1, "hand_size": 4},
    [[W], [W]],
    _ONE_TO_12 + _ONE_TO_12,
    [
        (
            play_all(_ONE_TO_12, 0) + play_all(_ONE_TO_12[:11], 1),
            {"completed": _ONE_TO_12, "draw_size": 0, "hand": {0: [12]}},
        ),
        (
            [hand(12, 1)],
            {"completed": [], "draw_size": 20, "hand": {0: [11, 11, 12, 12]}},
        ),
    ],
    reshuffles=[[12, 12, 11, 11] + sorted(_ONE_TO_12 * 2)[:20]],
)

_case(
    "empty_hand_plays_on_and_is_refilled_by_a_stock_play",
    "Also when it was empty before that play; PASS stands beside plays from the stock",
    {"players": 2, "copies": 1, "wilds": 3, "stock_size": 2},
    [[12, W], [W, W]],
    _ONE_TO_12[:11],
    [
        (
            play_all(_ONE_TO_12[:11], 0),
            {"player": 0, "hand_sizes": [0, 0], "draw_size": 0, "legal": [stock(0), PASS]},
        ),
        (
            [stock(0)],
            {
                "player": 0,
                "hand": {0: [8, 9, 10, 11, 12]},
                "event_types": ["play", "complete", "reshuffle", "draw"],
            },
        ),
    ],
    reshuffles=[_12_TO_ONE],
)

_case(
    "later_first_hands_may_be_short",
    "Later players' first hands may be short; a player with a card in hand can never PASS",
    {"players": 2, "copies": 1, "wilds": 0, "stock_size": 1, "hand_size": 7},
    [[11], [12]],
    [4, 5, 6, 7, 8, 9, 10] + [1, 2, 3],
    [
        (
            [end(10, 0)],
            {
                "player": 1,
                "hand": {1: [1, 2, 3]},
                "draw_size": 0,
                "legal": [hand(1, b) for b in PILES] + ends(1, 2, 3),
            },
        ),
        # Nothing is there to draw, so there is no draw event either.
        ([end(3, 0)], {"player": 0, "hand_sizes": [6, 2], "event_types": ["discard"]}),
    ],
)

# ---------------------------------------------------------------------------------------------
# PASS, stalemate, turn limit
# ---------------------------------------------------------------------------------------------

# Two stocks of six and a single card to draw: the second player has nothing from the start.
_ONE_CARD = {"players": 2, "copies": 1, "wilds": 1, "stock_size": 6, "hand_size": 1}

_case(
    "stalemate_even_if_plays_exist",
    "faults.md 5: PASS is legal with no card in hand and none to draw; the game ends the moment "
    "the count equals players, even if plays exist",
    _ONE_CARD,
    [[W, 5], [1, 7]],
    [9],
    [
        (
            [end(9, 0)],
            {
                "player": 1,
                "hand_sizes": [0, 0],
                "legal": [stock(b) for b in PILES] + [PASS],
                "passes": 0,
                "turns": 1,
                "event_types": ["draw", "discard"],
            },
        ),
        ([PASS], {"player": 0, "passes": 1, "turns": 2, "over": False}),
        ([], {"legal": [stock(b) for b in PILES] + [PASS]}),
        (
            [PASS],
            {
                "over": True,
                "reason": "stalemate",
                "winner": None,
                "scores": [0, 0],
                "passes": 2,
                "turns": 3,
                "legal": [],
                "illegal": [PASS, stock(0)],
                "events": [
                    {"type": "pass", "player": 0},
                    {"type": "end", "winner": None, "reason": "stalemate", "scores": [0, 0]},
                ],
            },
        ),
    ],
)

_case(
    "play_resets_the_count_and_pass_after_plays_counts",
    "Every play sets it to 0, a PASS adds 1 (also a PASS after plays in the same turn)",
    _ONE_CARD,
    [[1, 5], [7]],
    [9],
    [
        ([end(9, 0), PASS], {"player": 0, "passes": 1}),
        ([stock(2)], {"player": 0, "passes": 0, "legal": [PASS], "turns": 2}),
        ([PASS], {"player": 1, "passes": 1, "over": False, "turns": 3}),
        # stalemate="draw": the shorter stock of player 0 wins nothing.
        ([PASS], {"over": True, "reason": "stalemate", "passes": 2, "turns": 4}),
        ([], {"stock_sizes": [5, 6], "winner": None, "scores": [0, 0]}),
    ],
)

_case(
    "discard_resets_the_count",
    "Every play or discard sets it to 0",
    {"players": 2, "copies": 1, "wilds": 0, "stock_size": 5, "hand_size": 2},
    [[5], [6]],
    [8, 9],
    [
        ([end(8, 0), PASS], {"player": 0, "passes": 1, "legal": ends(9), "illegal": [PASS]}),
        ([end(9, 1)], {"player": 1, "passes": 0, "legal": [PASS]}),
        ([PASS], {"player": 0, "passes": 1, "over": False}),
        ([PASS], {"over": True, "reason": "stalemate", "winner": None}),
    ],
)

_case(
    "empty_hand_may_play_discard_tops",
    "Plays from stock or discard piles stay legal beside PASS (no duty to play)",
    _ONE_CARD,
    [[5], [7]],
    [1],
    [
        ([end(1, 0), PASS], {"player": 0, "legal": [discard(0, b) for b in PILES] + [PASS]}),
        ([discard(0, 2)], {"player": 0, "passes": 0, "legal": [PASS], "heights": [0, 0, 1, 0]}),
    ],
)

_case(
    "fewest_stock_wins_a_stalemate",
    "The side with strictly the fewest wins and scores 25 plus 5 per card in every opposing stock",
    {**_ONE_CARD, "stalemate": "fewest_stock"},
    [[5], [1, 7]],
    [9],
    [
        (
            [end(9, 0), stock(0), PASS, PASS],
            {
                "over": True,
                "reason": "stalemate",
                "winner": 1,
                "scores": [0, 55],
                "stock_sizes": [6, 5],
            },
        )
    ],
)

_case(
    "fewest_stock_tie_of_two",
    "faults.md 7: ties at a stalemate go to nobody",
    {**_ONE_CARD, "stalemate": "fewest_stock"},
    [[5], [7]],
    [9],
    [
        (
            [end(9, 0), PASS, PASS],
            {"over": True, "reason": "stalemate", "winner": None, "scores": [0, 0]},
        )
    ],
)

_THREE_PLAYERS_ONE_CARD = {
    "players": 3,
    "copies": 1,
    "wilds": 1,
    "stock_size": 4,
    "hand_size": 1,
    "stalemate": "fewest_stock",
}

_case(
    "fewest_stock_lowest_shared_among_three",
    "If the lowest count is shared there is no winner",
    _THREE_PLAYERS_ONE_CARD,
    [[1, 9], [2, 10], [7]],
    [5],
    [
        ([stock(0), end(5, 0), stock(0), PASS, PASS], {"over": False, "passes": 2, "player": 0}),
        (
            [PASS],
            {
                "over": True,
                "stock_sizes": [3, 3, 4],
                "winner": None,
                "scores": [0, 0, 0],
                "reason": "stalemate",
            },
        ),
    ],
)

_case(
    "fewest_stock_ties_above_the_lowest_do_not_matter",
    "The side with strictly the fewest wins, 25 plus 5 per card in every opposing stock",
    _THREE_PLAYERS_ONE_CARD,
    [[7], [1, 10], [8]],
    [5],
    [
        (
            [end(5, 0), stock(0), PASS, PASS, PASS],
            {"over": True, "stock_sizes": [4, 3, 4], "winner": 1, "scores": [0, 65, 0]},
        )
    ],
)

_case(
    "turn_limit_before_the_next_draw",
    "When max_turns is reached the game is truncated before the next player draws: no winner, all "
    "scores 0, whatever stalemate is",
    {"players": 2, "max_turns": 1, "stalemate": "fewest_stock"},
    [[1], [12]],
    [8, 8, 9, 9, 9],
    [
        (
            [stock(0), end(8, 0)],
            {
                "over": True,
                "reason": "turn_limit",
                "winner": None,
                "scores": [0, 0],
                "turns": 1,
                "hand_sizes": [4, 0],
                "draw_size": 97,
                "legal": [],
                "event_types": ["draw", "play", "discard", "end"],
            },
        )
    ],
)

_case(
    "turn_limit_counts_passes_over_all_seats",
    "max_turns counts turns ended by discard or PASS, over all seats together",
    {**_ONE_CARD, "max_turns": 2},
    [[5], [1]],
    [9],
    [
        ([end(9, 0)], {"over": False, "turns": 1}),
        ([PASS], {"over": True, "reason": "turn_limit", "passes": 1, "turns": 2}),
    ],
)

_case(
    "stalemate_beats_the_turn_limit",
    "If the same PASS also makes a stalemate, it is a stalemate",
    {**_ONE_CARD, "max_turns": 3, "stalemate": "fewest_stock"},
    [[5], [1, 7]],
    [9],
    [
        (
            [end(9, 0), stock(0), PASS, PASS],
            {
                "over": True,
                "reason": "stalemate",
                "turns": 3,
                "passes": 2,
                "winner": 1,
                "scores": [0, 55],
            },
        )
    ],
)

# ---------------------------------------------------------------------------------------------
# Winning and scoring
# ---------------------------------------------------------------------------------------------

_case(
    "seventy_points",
    "Opponents left with 6 and 3: 25 + 9 x 5 = 70; playing the last card of the own stock wins at "
    "once, whatever is held; no discard",
    {"players": 3, "copies": 1, "wilds": 18, "stock_size": 6},
    [[4, 5, 6, 7, 8, 9], [W] * 6, [1, 2, 3, W, W, W]],
    [10, 11, 12, W, W] + [W] * 5,
    [
        ([stock(0)] * 3 + [end(10, 0)], {"player": 0, "stock_sizes": [6, 6, 3]}),
        ([stock(0)] * 5, {"over": False, "stock_sizes": [1, 6, 3]}),
        (
            [stock(0)],
            {
                "over": True,
                "reason": "stock_empty",
                "winner": 0,
                "scores": [70, 0, 0],
                "stock_tops": [None, W, W],
                "hand_sizes": [5, 0, 4],
                "turns": 1,
                "legal": [],
                "event_types": ["play", "end"],
            },
        ),
    ],
    first_player=2,
)

_case(
    "win_before_the_refill_with_an_empty_draw_pile",
    "faults.md 6; if the stock is empty and that wins, the game ends here; then refill: the pile "
    "is set aside, nothing is reshuffled or drawn",
    {"players": 2, "copies": 1, "wilds": 2, "stock_size": 1},
    [[12], [W]],
    _ONE_TO_12[:11] + [W],
    [
        (
            play_all(_ONE_TO_12[:11], 0) + [hand(W, 1)],
            {"hand_sizes": [0, 0], "draw_size": 0, "legal": [stock(0), PASS]},
        ),
        (
            [stock(0)],
            {
                "over": True,
                "winner": 0,
                "scores": [30, 0],
                "completed": _ONE_TO_12,
                "hand_sizes": [0, 0],
                "legal": [],
                "events": [
                    {"type": "play", "player": 0, "card": "12", "from": "stock", "to": 0, "as": 12},
                    {"type": "complete", "pile": 0},
                    {"type": "end", "winner": 0, "reason": "stock_empty", "scores": [30, 0]},
                ],
            },
        ),
    ],
)

for _players, _score in ((2, 175), (4, 475), (6, 525)):
    _size = 30 if _players < 5 else 20
    _case(
        f"largest_score_of_{_players}_players",
        "Largest single score with default stocks: 175 with two players, 475 with four, 525 with "
        "six",
        {"players": _players},
        [(_ONE_TO_12 * 3)[:_size]],
        [],
        [
            ([stock(0)] * (_size - 1), {"over": False, "player": 0}),
            (
                [stock(0)],
                {"over": True, "winner": 0, "scores": [_score] + [0] * (_players - 1)},
            ),
        ],
    )

for _teams, _score in ((2, 325), (3, 425)):
    _size = 30 if _teams == 2 else 20
    _run = (_ONE_TO_12 * 3)[:_size]
    _case(
        f"largest_score_of_{_teams}_pairs",
        "Largest single score with default stocks: 325 for two pairs, 425 for three; the team wins "
        "when both its stocks are empty",
        {"players": 2 * _teams, "teams": _teams},
        [_run if _board % _teams == 0 else [] for _board in range(2 * _teams)],
        [],
        [
            ([stock(0)] * _size, {"over": False, "player": 0}),
            ([other_stock(1)] * (_size - 1), {"over": False, "player": 0}),
            (
                [other_stock(1)],
                {
                    "over": True,
                    "winner": 0,
                    "reason": "stock_empty",
                    "scores": [_score] + [0] * (_teams - 1),
                },
            ),
        ],
    )

# ---------------------------------------------------------------------------------------------
# Partnerships
# ---------------------------------------------------------------------------------------------

_PAIRS = {"players": 4, "teams": 2}

_case(
    "team_uses_both_of_its_boards",
    "Own stock's top, the top of any own discard pile (partners: also the team's other board)",
    {**_PAIRS, "hand_size": 1},
    [[7], [1, 7], [1, 5], [1, 7]],
    [8, 9],
    [
        ([], {"legal": ends(8) + [other_stock(b) for b in PILES]}),
        (
            [other_stock(2)],
            {
                "heights": [0, 0, 1, 0],
                "stock_sizes": [30, 30, 29, 30],
                "stock_tops": [7, 1, 5, 1],
                "events": [
                    {
                        "type": "play",
                        "player": 0,
                        "card": "1",
                        "from": "stock",
                        "to": 2,
                        "as": 1,
                        "board": 2,
                    }
                ],
            },
        ),
        (
            [end(8, 3)],
            {
                "player": 1,
                "discards": {0: [[], [], [], [8]], 2: [[], [], [], []]},
                "events": [
                    {"type": "discard", "player": 0, "card": "8", "to": 3, "board": 0},
                    {"type": "draw", "player": 1, "cards": ["9"]},
                ],
                "legal": [stock(0), stock(1), stock(3)]
                + ends(9)
                + [other_stock(0), other_stock(1), other_stock(3)],
            },
        ),
    ],
)

_case(
    "team_uses_the_other_boards_discards",
    "The top of any own discard pile (partners: also the team's other board); none from another "
    "side's piles",
    {**_PAIRS, "hand_size": 1},
    [[7], [7], [7], [7]],
    [1, 9, 8],
    [
        ([end(1, 2)], {"player": 1, "legal": ends(9)}),
        ([end(9, 0)], {"player": 2, "legal": ends(8) + [other_discard(2, b) for b in PILES]}),
        (
            [other_discard(2, 1)],
            {
                "heights": [0, 1, 0, 0],
                "discards": {0: [[], [], [], []]},
                "hand": {2: [8]},
                "events": [
                    {
                        "type": "play",
                        "player": 2,
                        "card": "1",
                        "from": "discard:2",
                        "to": 1,
                        "as": 1,
                        "board": 0,
                    }
                ],
            },
        ),
    ],
)

_case(
    "partner_finishes_the_second_stock",
    "The team wins when both its stocks are empty, whoever played the last card; scores have one "
    "entry a side",
    {**_PAIRS, "copies": 1, "wilds": 0, "stock_size": 1, "hand_size": 2},
    [[1], [9], [2], [10]],
    [5, 6] + [7, 8] + [3, 4],
    [
        (
            [stock(0)],
            {
                "over": False,
                "player": 0,
                "stock_tops": [None, 9, 2, 10],
                "legal": ends(5, 6) + [other_stock(0)],
            },
        ),
        ([end(5, 0), end(7, 0)], {"player": 2, "has": [stock(0)], "lacks": [other_stock(0)]}),
        (
            [stock(0)],
            {
                "over": True,
                "winner": 0,
                "reason": "stock_empty",
                "scores": [35, 0],
                "hand": {2: [3, 4]},
            },
        ),
    ],
)

_case(
    "partner_empties_both_stocks_from_the_other_seat",
    "The team wins when both its stocks are empty, whoever played the last card, from either board",
    {**_PAIRS, "copies": 1, "wilds": 0, "stock_size": 1, "hand_size": 2},
    [[9], [2], [10], [1]],
    [5, 6],
    [
        ([other_stock(0)], {"over": False, "player": 1, "stock_tops": [9, 2, 10, None]}),
        ([stock(0)], {"over": True, "winner": 1, "scores": [0, 35]}),
    ],
    first_player=1,
)

_case(
    "empty_stock_in_a_team",
    "An empty stock has no top; its discard piles stay usable and its seats still take turns",
    {**_PAIRS, "copies": 1, "wilds": 2, "stock_size": 2, "hand_size": 2},
    [[1, 2], [10, W], [9, 12], [11, W]],
    [3, 6] + [7, 8] + [4, 5],
    [
        (
            [stock(0), stock(0), end(3, 0), end(7, 0), end(5, 0)],
            {"player": 3, "hand_sizes": [1, 1, 1, 0], "legal": [PASS]},
        ),
        (
            [PASS],
            {
                "player": 0,
                "stock_sizes": [0, 2, 2, 2],
                "stock_tops": [None, 10, 9, 11],
                "legal": [discard(0, 0)] + ends(6),
                "illegal": [stock(0), stock(2)],
            },
        ),
        ([discard(0, 0), end(6, 1)], {"player": 1, "discards": {0: [[], [6], [], []]}}),
    ],
)

_case(
    "first_empty_stock_of_a_team_still_refills_the_hand",
    "If the stock is empty and that wins, the game ends here; then refill an empty hand: the first "
    "of two stocks wins nothing, so the turn goes on",
    {**_PAIRS, "copies": 1, "wilds": 3, "stock_size": 1},
    [[12], [W], [W], [W]],
    _ONE_TO_12[:11],
    [
        (play_all(_ONE_TO_12[:11], 0), {"hand_sizes": [0, 0, 0, 0], "has": [stock(0), PASS]}),
        (
            [stock(0)],
            {
                "over": False,
                "player": 0,
                "stock_tops": [None, W, W, W],
                "hand": {0: [8, 9, 10, 11, 12]},
                "event_types": ["play", "complete", "reshuffle", "draw"],
            },
        ),
    ],
    reshuffles=[_12_TO_ONE],
)

_case(
    "stalemate_counts_seats_not_sides",
    "The game ends the moment it equals players (seats, not sides)",
    {**_PAIRS, "copies": 1, "wilds": 1, "stock_size": 3, "hand_size": 1},
    [[5], [6], [7], [8]],
    [9],
    [
        ([end(9, 0), PASS, PASS, PASS], {"over": False, "passes": 3, "player": 0}),
        (
            [PASS],
            {"over": True, "reason": "stalemate", "winner": None, "scores": [0, 0], "passes": 4},
        ),
    ],
)

_PAIRS_ONE_CARD = {
    **_PAIRS,
    "copies": 1,
    "wilds": 9,
    "stock_size": 5,
    "hand_size": 1,
    "stalemate": "fewest_stock",
}

_case(
    "fewest_stock_adds_up_both_stocks_of_a_team",
    "A side's count is the sum over its stocks (both, in a team)",
    _PAIRS_ONE_CARD,
    # Team 0 keeps 2 and 5, team 1 keeps 3 and 3: the shortest single stock does not win.
    [[1, 2, 3, 12], [4, 5], [10], [6, 7]],
    [11],
    [
        (
            [stock(0)] * 3 + [end(11, 0)] + [stock(0)] * 2 + [other_stock(0)] * 2 + [PASS] * 4,
            {
                "over": True,
                "reason": "stalemate",
                "stock_sizes": [2, 3, 5, 3],
                "winner": 1,
                "scores": [0, 60],
            },
        )
    ],
)

_case(
    "fewest_stock_tie_of_teams",
    "faults.md 7: a lowest sum that is shared has no winner",
    _PAIRS_ONE_CARD,
    [[1, 2, 12], [3], [10], [4]],
    [11],
    [
        (
            [stock(0), stock(0), end(11, 0), stock(0), other_stock(0)] + [PASS] * 4,
            {
                "over": True,
                "reason": "stalemate",
                "stock_sizes": [3, 4, 5, 4],
                "winner": None,
                "scores": [0, 0],
            },
        )
    ],
)

_case(
    "team_discard_own",
    'team_discard="own" (default): a member may not discard on the team\'s other board',
    {**_PAIRS, "hand_size": 1, "team_discard": "own"},
    [[7], [7], [7], [7]],
    [8],
    [([], {"legal": ends(8), "illegal": other_ends(8)})],
)

_case(
    "team_discard_team",
    'team_discard="team": a member may discard on the team\'s other board too',
    {**_PAIRS, "hand_size": 1, "team_discard": "team"},
    [[7], [7], [7], [7]],
    [8, 9],
    [
        ([], {"legal": ends(8) + other_ends(8)}),
        (
            [other_end(8, 1)],
            {
                "player": 1,
                "discards": {0: [[], [], [], []], 2: [[], [8], [], []]},
                "events": [
                    {"type": "discard", "player": 0, "card": "8", "to": 1, "board": 2},
                    {"type": "draw", "player": 1, "cards": ["9"]},
                ],
            },
        ),
    ],
)

_case(
    "teams_of_three_share_two_boards",
    "Player p's own board is (p // teams) mod 2 x teams + p mod teams; with three or more members "
    "both boards are open for discards, whatever team_discard says",
    {"players": 6, "teams": 2, "hand_size": 1, "team_discard": "own"},
    [[7], [7], [7], [7]],
    [6, 8, 9, 10, 11, 12, 6],
    [
        ([], {"legal": ends(6) + other_ends(6), "stock_sizes": [30, 30, 30, 30]}),
        (
            [end(card, 0) for card in (6, 8, 9, 10, 11, 12)],
            {
                "player": 0,
                "discards": {
                    0: [[6, 11], [], [], []],
                    1: [[8, 12], [], [], []],
                    2: [[9], [], [], []],
                    3: [[10], [], [], []],
                },
            },
        ),
        ([other_end(6, 0)], {"discards": {2: [[9, 6], [], [], []]}}),
    ],
)

_case(
    "three_teams_of_three",
    "Board b belongs to team b mod teams; there are 2 x teams boards, 20 cards each for 6 stocks",
    {"players": 9, "teams": 3, "hand_size": 1},
    [[7]] * 6,
    [4, 5, 6, 8, 9, 10, 11, 12, 12],
    [
        (
            [end(card, 3) for card in (4, 5, 6, 8, 9, 10, 11, 12, 12)],
            {
                "player": 0,
                "stock_sizes": [20] * 6,
                "discards": {
                    0: [[], [], [], [4, 11]],
                    1: [[], [], [], [5, 12]],
                    2: [[], [], [], [6, 12]],
                    3: [[], [], [], [8]],
                    4: [[], [], [], [9]],
                    5: [[], [], [], [10]],
                },
            },
        )
    ],
)

# ---------------------------------------------------------------------------------------------
# House rules
# ---------------------------------------------------------------------------------------------

_case(
    "must_play_stock",
    "must_play_stock: while a stock top that the player may use fits a building pile, only such "
    "stock plays are legal",
    {"players": 2, "must_play_stock": True},
    [[1, 3, 12], [1]],
    [1, 2, 9, 9, W],
    [
        ([], {"legal": [stock(b) for b in PILES]}),
        # A 3 does not fit: everything is open again, the opponent's 1 plays no part.
        (
            [stock(0)],
            {
                "legal": [hand(1, 1), hand(1, 2), hand(1, 3), hand(2, 0)]
                + [hand(W, b) for b in PILES]
                + ends(1, 2, 9, W)
            },
        ),
        ([hand(2, 0)], {"legal": [stock(0)], "illegal": [hand(W, 0), end(9, 0), PASS]}),
        ([stock(0)], {"has": [hand(W, 0), end(9, 0)], "lacks": [stock(0)]}),
    ],
)

_case(
    "must_play_stock_with_a_wild_on_top",
    "Only such stock plays are legal; the player chooses which pile",
    {"players": 2, "must_play_stock": True},
    [[W, 12], [1]],
    [1, 2, 9, 9, W],
    [([], {"legal": [stock(b) for b in PILES]}), ([stock(3)], {"heights": [0, 0, 0, 1]})],
)

_case(
    "must_play_stock_in_a_team",
    "In a team either of its two stock tops counts, whoever's turn it is; the player chooses which "
    "stock and which pile",
    {**_PAIRS, "must_play_stock": True},
    [[1, 9], [1], [1, 12], [1]],
    [1, 2, 8, 8, W],
    [
        ([], {"legal": [stock(b) for b in PILES] + [other_stock(b) for b in PILES]}),
        ([stock(0)], {"legal": [other_stock(1), other_stock(2), other_stock(3)]}),
        ([other_stock(1)], {"has": [hand(1, 2), hand(2, 0), hand(2, 1), end(8, 0)]}),
    ],
)

_case(
    "must_play_stock_forbids_pass",
    "PASS: legal exactly when no card in hand, none can be drawn, and must_play_stock does not "
    "force a stock play",
    {**_ONE_CARD, "must_play_stock": True},
    [[5], [1, 7]],
    [9],
    [
        ([end(9, 0)], {"player": 1, "legal": [stock(b) for b in PILES], "illegal": [PASS]}),
        ([stock(0)], {"player": 1, "legal": [PASS]}),
    ],
)

_case(
    "wilds_may_not_be_discarded",
    "wild_discard=False: wilds may not be discarded",
    {"players": 2, "wild_discard": False},
    [[9], [9]],
    [3, 3, 8, W, W],
    [([], {"legal": [hand(W, b) for b in PILES] + ends(3, 8), "illegal": ends(W)})],
)

_case(
    "only_wilds_have_to_be_played",
    "A wild can always be played, so a legal action always exists; a player holding only wilds has "
    "to play them",
    {"players": 2, "hand_size": 1, "wild_discard": False},
    [[9], [9]],
    [W, W, 8],
    [
        ([], {"legal": [hand(W, b) for b in PILES], "illegal": [end(W, 0), PASS]}),
        ([hand(W, 0)], {"player": 0, "hand": {0: [W]}, "legal": [hand(W, b) for b in PILES]}),
        ([hand(W, 0)], {"hand": {0: [8]}, "legal": ends(8), "building": {0: [W, W]}}),
    ],
)

_case(
    "ordered_discards",
    "Only on an empty discard pile or on a top that is not lower; only the present top counts (5, "
    "wild, 9 is legal); equal is allowed; a wild may go on anything, and anything on a wild",
    {"players": 2, "hand_size": 1, "ordered_discards": True},
    [[7], [7]],
    [9, 12, 10, 12, 9, 12, 5, 12, W, 12, 11, 12, 10],
    [
        ([], {"legal": ends(9)}),
        (
            [end(9, 0), end(12, 0)],
            {"legal": [end(10, 1), end(10, 2), end(10, 3)], "illegal": [end(10, 0)]},
        ),
        ([end(10, 1)], {"player": 1, "legal": ends(12)}),
        ([end(12, 0)], {"player": 0, "legal": ends(9)}),
        ([end(9, 0), end(12, 0)], {"legal": ends(5)}),
        ([end(5, 0), end(12, 0)], {"legal": [hand(W, b) for b in PILES] + ends(W)}),
        (
            [end(W, 0), end(12, 0)],
            {
                "legal": [discard(0, b) for b in PILES] + [end(11, 0), end(11, 2), end(11, 3)],
            },
        ),
        ([end(11, 0)], {"discards": {0: [[9, 9, 5, W, 11], [10], [], []]}}),
        ([end(12, 0)], {"player": 0, "hand": {0: [10]}, "legal": ends(10)}),
    ],
)

_LOW_TOPS = [2, 12, 3, 12, 4, 12, 5, 12]

_case(
    "ordered_discards_fallback",
    "If no discard keeps the order and no play is legal, every discard is allowed",
    {"players": 2, "hand_size": 1, "ordered_discards": True},
    [[7], [7]],
    [*_LOW_TOPS, 9],
    [
        (
            [end(2, 0), end(12, 0), end(3, 1), end(12, 0)]
            + [end(4, 2), end(12, 0), end(5, 3), end(12, 0)],
            {"player": 0, "hand": {0: [9]}, "legal": ends(9)},
        ),
        ([end(9, 2)], {"discards": {0: [[2], [3], [4, 9], [5]]}}),
    ],
)

_case(
    "ordered_discards_no_fallback_while_a_play_is_legal",
    "ordered_discards may leave plays as the only legal actions",
    {"players": 2, "hand_size": 1, "ordered_discards": True},
    [[7], [7]],
    [*_LOW_TOPS[:-1], 1, 12, 9],
    [
        (
            [end(2, 0), end(12, 0), end(3, 1), end(12, 0)]
            + [end(4, 2), end(12, 0), end(5, 3), hand(1, 0), end(12, 0)],
            {"player": 0, "hand": {0: [9]}, "legal": [discard(0, 0)], "illegal": ends(9)},
        ),
        ([discard(0, 0)], {"legal": [discard(1, 0), end(9, 0)]}),
    ],
)

_case(
    "ordered_discards_with_the_wild_ban",
    "wild_discard=False and ordered_discards may leave plays as the only legal actions",
    {"players": 2, "hand_size": 2, "ordered_discards": True, "wild_discard": False},
    [[7], [7]],
    [2, 3] + [12, 12] + [4, 12, 5, 12, 9, 12, W],
    [
        (
            [end(2, 0), end(12, 0), end(3, 1), end(12, 0)]
            + [end(4, 2), end(12, 0), end(5, 3), end(12, 0)],
            {"player": 0, "hand": {0: [9, W]}, "legal": [hand(W, b) for b in PILES]},
        ),
        ([hand(W, 0)], {"hand": {0: [9]}, "legal": [discard(0, 0)]}),
        ([discard(0, 0)], {"legal": [discard(1, 0), end(9, 0)]}),
    ],
)

_TEAM_LOW_TOPS = [2, 11, 12, 10, 3, 11, 12, 10, 4, 11, 12, 10, 5, 11, 12, 10, 9]
_TEAM_LOW_ENDS = [
    end(card, d)
    for d, own in enumerate((2, 3, 4, 5))
    for card, d in ((own, d), (11, 0), (12, 0), (10, 0))
]

_case(
    "ordered_discards_fallback_in_a_team_own",
    '"Anywhere" means the piles this player may discard on: the own board\'s',
    {**_PAIRS, "hand_size": 1, "ordered_discards": True, "team_discard": "own"},
    [[7], [7], [7], [7]],
    _TEAM_LOW_TOPS,
    [(_TEAM_LOW_ENDS, {"player": 0, "hand": {0: [9]}, "legal": ends(9)})],
)

_case(
    "ordered_discards_fallback_in_a_team_team",
    '"Anywhere" means the piles this player may discard on: a pile of the other board that keeps '
    "the order leaves no fallback",
    {**_PAIRS, "hand_size": 1, "ordered_discards": True, "team_discard": "team"},
    [[7], [7], [7], [7]],
    _TEAM_LOW_TOPS,
    [(_TEAM_LOW_ENDS, {"player": 0, "hand": {0: [9]}, "legal": other_ends(9)})],
)

_case(
    "draw_per_turn",
    "draw_per_turn=n replaces this step on every turn, the first included: draw n cards, whatever "
    "is held; the refill of step 5 stays up to hand_size",
    {"players": 2, "draw_per_turn": 2},
    [[12], [12]],
    [9, 9] + [1, 2] + [8, 8, 8, 8, 8] + [10, 10] + [11, 11],
    [
        ([], {"hand": {0: [9, 9]}}),
        ([end(9, 0)], {"player": 1, "hand": {1: [1, 2]}}),
        ([hand(1, 0), hand(2, 0)], {"player": 1, "hand": {1: [8, 8, 8, 8, 8]}}),
        ([end(8, 0)], {"player": 0, "hand": {0: [9, 10, 10]}}),
        ([end(9, 0)], {"player": 1, "hand": {1: [8, 8, 8, 8, 11, 11]}}),
    ],
)

_case(
    "draw_per_turn_never_beyond_20",
    "Draw n cards, whatever is held, but never beyond 20 in hand",
    {"players": 2, "draw_per_turn": 12},
    [[7], [7]],
    [8] * 6 + [9] * 6 + [10] * 6 + [11] * 6,
    [
        ([end(8, 0), end(10, 0)], {"player": 0, "hand_sizes": [20, 11], "draw_size": 69}),
        ([end(8, 0)], {"player": 1, "hand_sizes": [19, 20], "draw_size": 60}),
        ([end(10, 0)], {"player": 0, "hand_sizes": [20, 19], "draw_size": 59}),
    ],
)

_case(
    "draw_per_turn_as_many_as_exist",
    "Draw n cards, or as many as exist",
    {"players": 2, "copies": 1, "wilds": 1, "stock_size": 4, "draw_per_turn": 4},
    [[7], [8]],
    [2, 3, 4, 5, 6],
    [
        ([end(2, 0)], {"player": 1, "hand": {1: [6]}, "draw_size": 0}),
        ([end(6, 0)], {"player": 0, "hand": {0: [3, 4, 5]}, "event_types": ["discard"]}),
        ([end(3, 0)], {"player": 1, "hand_sizes": [2, 0], "legal": [PASS]}),
    ],
)

_case(
    "draw_per_turn_of_20_replaces_the_discarded_card",
    "draw_per_turn=20 on hands of 20: one card in the place of the one discarded",
    {"players": 2, "draw_per_turn": 20, "hand_size": 3},
    [[7], [7]],
    [8] * 10 + [9] * 10 + [10] * 10 + [11] * 10 + [12],
    [
        ([], {"hand_sizes": [20, 0]}),
        (
            [end(8, 0), end(10, 0)],
            {
                "hand_sizes": [20, 19],
                "events": [
                    {"type": "discard", "player": 0, "card": "8", "to": 0},
                    {"type": "draw", "player": 1, "cards": ["10"] * 10 + ["11"] * 10},
                    {"type": "discard", "player": 1, "card": "10", "to": 0},
                    {"type": "draw", "player": 0, "cards": ["12"]},
                ],
            },
        ),
    ],
)

_case(
    "refill_follows_hand_size_not_draw_per_turn",
    "The refill of step 5 stays up to hand_size",
    {"players": 2, "draw_per_turn": 4, "hand_size": 2},
    [[12], [12]],
    [1, 2, 3, 4] + [9, 9],
    [(play_all([1, 2, 3, 4], 0), {"player": 0, "hand": {0: [9, 9]}})],
)


# ---------------------------------------------------------------------------------------------
# Rules that resolve, and rules that are errors
# ---------------------------------------------------------------------------------------------

# (rules, number of boards, cards in a stock): "30 each for 2 to 4 stocks, 20 each for 5 or 6"
RESOLVED: list[tuple[dict[str, Any], int, int]] = [
    ({}, 2, 30),
    ({"players": 3}, 3, 30),
    ({"players": 4}, 4, 30),
    ({"players": 5}, 5, 20),
    ({"players": 6}, 6, 20),
    ({"players": 4, "teams": 2}, 4, 30),
    ({"players": 6, "teams": 2}, 4, 30),
    ({"players": 8, "teams": 2}, 4, 30),
    ({"players": 6, "teams": 3}, 6, 20),
    ({"players": 9, "teams": 3}, 6, 20),
    ({"players": 12, "teams": 3}, 6, 20),
    ({"players": 2, "stock_size": 40}, 2, 40),
    ({"players": 4, "stock_size": 40, "hand_size": 2}, 4, 40),
    ({"players": 6, "stock_size": None, "copies": 20, "wilds": 60}, 6, 20),
    ({"players": 2, "copies": 1, "wilds": 0, "stock_size": 1, "hand_size": 10}, 2, 1),
]

# (rules that must be a ValueError, why)
BAD_RULES: list[tuple[dict[str, Any], str]] = [
    ({"players": 1}, "players 2 to 6 as individuals"),
    ({"players": 7}, "players 2 to 6 as individuals"),
    ({"players": 4, "teams": 1}, "teams 2 or 3"),
    ({"players": 8, "teams": 4}, "never more than three teams"),
    ({"players": 5, "teams": 2}, "players a multiple of it"),
    ({"players": 2, "teams": 2}, "2 to 4 members a team"),
    ({"players": 10, "teams": 2}, "2 to 4 members a team"),
    ({"players": 15, "teams": 3}, "2 to 4 members a team"),
    ({"stock_size": 0}, "any 1 to 40"),
    ({"stock_size": 41}, "any 1 to 40"),
    ({"players": 6, "stock_size": 30}, "a setting that the deck cannot deal"),
    ({"players": 4, "stock_size": 40}, "the draw pile must hold hand_size or more: 2 of 5"),
    ({"players": 3, "copies": 1, "wilds": 0}, "a setting that the deck cannot deal"),
    ({"copies": 0}, "copies 1 to 20"),
    ({"copies": 21}, "copies 1 to 20"),
    ({"wilds": -1}, "wilds 0 to 60"),
    ({"wilds": 61}, "wilds 0 to 60"),
    ({"hand_size": 0}, "hand_size 1 to 20"),
    ({"hand_size": 21}, "hand_size 1 to 20"),
    ({"draw_per_turn": 0}, "draw_per_turn 1 to 20"),
    ({"draw_per_turn": 21}, "draw_per_turn 1 to 20"),
    ({"max_turns": 0}, "max_turns at least 1"),
    ({"target_score": 0}, "target_score at least 1"),
    ({"first_player": 2}, "first_player: a seat"),
    ({"first_player": "dealer"}, 'first_player: a seat, or "random"'),
    ({"stalemate": "split"}, 'stalemate "draw" or "fewest_stock"'),
    ({"team_discard": "both"}, 'team_discard "own" or "team"'),
    ({"stock": 30}, "an unknown field is an error"),
]


# ---------------------------------------------------------------------------------------------
# Playing a case
# ---------------------------------------------------------------------------------------------


def scripted_reshuffle(case: Case) -> Callable[[list[int]], list[int]]:
    """A reshuffle that gives the case's orders one after another."""
    orders = iter(case.reshuffles)

    def reshuffle(completed: list[int]) -> list[int]:
        order = next(orders, None)
        assert order is not None, f"{case.name}: more reshuffles than the case has"
        assert sorted(order) == sorted(completed), f"{case.name}: reshuffles {completed}"
        return list(order)

    return reshuffle


def facts(game: Any) -> dict[str, Any]:
    """All the facts of a game that a case can ask for, as plain values."""
    return {
        "player": game.player,
        "over": game.over,
        "reason": game.reason,
        "winner": game.winner,
        "scores": list(game.scores),
        "passes": game.passes,
        "turns": game.turns,
        "legal": list(game.legal_actions()),
        "hand": {seat: sorted(cards) for seat, cards in enumerate(game.hands)},
        "hand_sizes": [len(cards) for cards in game.hands],
        "stock_tops": [one[-1] if one else None for one in game.stocks],
        "stock_sizes": [len(one) for one in game.stocks],
        "discards": {
            board: [list(pile) for pile in piles] for board, piles in enumerate(game.discards)
        },
        "heights": [len(pile) for pile in game.building],
        "building": {b: list(pile) for b, pile in enumerate(game.building)},
        "completed": sorted(game.completed),
        "draw_size": len(game.draw),
        "events": list(game.events),
    }


def run_case(case: Case, game: Any) -> None:
    """Play a case on a game that stands at its deal; AssertionError for the first fact not met.

    `game` has the case's rules, stocks, draw pile and first player, the first draw already made,
    and reshuffles with `scripted_reshuffle(case)`. After every action the cards of all zones must
    be the deck.
    """
    whole_deck = Counter(deck(full_rules(case.rules)))
    events_before = 0
    for number, step in enumerate(case.steps):
        where = f"{case.name}, step {number} ({case.says})"
        assert Counter(game.all_cards()) == whole_deck, f"{where}: cards lost or added"
        for action in step.actions:
            legal = list(game.legal_actions())
            assert action in legal, f"{where}: {action} must be legal, is not in {legal}"
            game.apply(action)
            assert Counter(game.all_cards()) == whole_deck, f"{where}: {action} changed the deck"
        now = facts(game)
        now["events"] = now["events"][events_before:]
        events_before += len(now["events"])
        for fact, wanted in step.expect.items():
            _check_fact(where, game, now, fact, wanted)
    reshuffles = [event for event in game.events if event["type"] == "reshuffle"]
    assert len(reshuffles) == len(case.reshuffles), f"{case.name}: {len(reshuffles)} reshuffles"


def _check_fact(where: str, game: Any, now: dict[str, Any], fact: str, wanted: Any) -> None:
    """One entry of a step's `expect`."""
    if fact == "illegal":
        for action in wanted:
            before = facts(game)
            assert action not in before["legal"], f"{where}: {action} must not be legal"
            try:
                game.apply(action)
            except ValueError:
                pass
            else:
                raise AssertionError(f"{where}: {action} must raise ValueError")
            assert facts(game) == before, f"{where}: the refused {action} changed the game"
    elif fact == "has":
        missing = sorted(set(wanted) - set(now["legal"]))
        assert not missing, f"{where}: {missing} must be legal"
    elif fact == "lacks":
        extra = sorted(set(wanted) & set(now["legal"]))
        assert not extra, f"{where}: {extra} must not be legal"
    elif fact == "legal":
        assert now["legal"] == sorted(wanted), f"{where}: legal {now['legal']}, not {wanted}"
    elif fact == "event_types":
        types = [event["type"] for event in now["events"]]
        assert types == wanted, f"{where}: events {types}, not {wanted}"
    elif fact in ("hand", "discards", "building"):
        for key, value in wanted.items():
            value = sorted(value) if fact == "hand" else value
            assert now[fact][key] == value, f"{where}: {fact} {key} {now[fact][key]}, not {value}"
    else:
        value = sorted(wanted) if fact == "completed" else wanted
        assert now[fact] == value, f"{where}: {fact} is {now[fact]!r}, not {value!r}"
