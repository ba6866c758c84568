"""Where everything lies in a game's array: the BOARD table.

One game is one C-contiguous int32 array. Its first HEADER cells have fixed places; the zones behind
them start where the AT_ cells say, because their sizes go by the rules.

    cell          name             holds
    0..17         PLAYERS..        the rules as numbers (draw_per_turn 0: fill it; flags 0 or 1)
    18            SCRIPT_FAULT     1 after a scripted reshuffle that was none of the completed cards
    20..24        AT_..            first cell of the zones below
    28            PLAYER           seat to move
    29            FIRST_PLAYER     seat that moved first
    30            PASSES           passes in a row
    31            TURNS            turns ended by a discard or a pass
    32            REASON           0 running, 1 stock_empty, 2 stalemate, 3 turn_limit
    33            WINNER           side that won, -1 for none
    34, 35        DRAW_LO, DRAW_HI the draw pile is AT_DRAW + [DRAW_LO, DRAW_HI), next card first
    36            COMPLETED_SIZE   cards in the completed piles
    37            RESHUFFLES       reshuffles so far
    38, 39        RNG_LO, RNG_HI   the random generator's 64 bits
    40..43        HEIGHT           height of each building pile, 0 to 11
    44..47        WILD_BITS        bit h is set where the card at height h + 1 is a wild
    48..61        COMPLETED        cards in the completed piles by kind (index 1 to 13)
    62..75        RESHUFFLED       what went into the last reshuffle, by kind
    76..89        DISCARDED        cards on all discard piles by kind
    90..161       BOARD            twelve cells a board: stock size, stock top, the depths of the
                                   four discard piles, their tops (0: no card), and in two cells
                                   the three cards under each top, see `UNDER_BITS`
    AT_HANDS      14 a player      hand size, then cards by kind 1 to 13
    AT_SEEN       14 a player      bookkeeping since the last reshuffle, see `moves.reshuffle`
    AT_STOCKS     STOCK_SIZE each  each board's stock, bottom to top
    AT_DRAW       DECK             the draw pile
    AT_DISCARDS   DECK each        each board's four discard piles, bottom to top

Cards are 1 to 12 and 13 for a wild. A board is a stock with its four discard piles: one a player,
two a team.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from skipbo_env.rules import Rules

State = NDArray[np.int32]

PLAYERS, TEAMS, BOARDS, SIDES, STOCK_SIZE, HAND_SIZE, DRAW_PER_TURN, COPIES, WILDS = range(9)
MUST_PLAY_STOCK, WILD_DISCARD, ORDERED_DISCARDS, TEAM_DISCARD, FEWEST_STOCK = range(9, 14)
MAX_TURNS, TWO_ENDED, DECK, ACTIONS, SCRIPT_FAULT = range(14, 19)
AT_HANDS, AT_SEEN, AT_STOCKS, AT_DRAW, AT_DISCARDS = range(20, 25)
PLAYER, FIRST_PLAYER, PASSES, TURNS, REASON, WINNER, DRAW_LO, DRAW_HI = range(28, 36)
COMPLETED_SIZE, RESHUFFLES, RNG_LO, RNG_HI = range(36, 40)
HEIGHT = 40
WILD_BITS = 44
COMPLETED = 48
RESHUFFLED = 62
DISCARDED = 76
BOARD = 90
BOARD_CELLS = 12
STOCK_N, STOCK_TOP, DEPTH, TOP, UNDER = 0, 1, 2, 6, 10
HAND_CELLS = 14
HEADER = BOARD + 6 * BOARD_CELLS

PILES = 4
WILD = 13
# The cards under a discard pile's top stand twice, so that whoever looks at a board need not go to
# its piles: four bits a card (0: no card), the next one lowest, twelve bits a pile, two piles a
# cell.
UNDER_BITS = 12
UNDER_MASK = (1 << UNDER_BITS) - 1
RUNNING, STOCK_EMPTY, STALEMATE, TURN_LIMIT = range(4)
REASONS = ("", "stock_empty", "stalemate", "turn_limit")


def new_state(rules: Rules, *, two_ended: bool = False) -> State:
    """An array with the rules written in and no card dealt (see `skipbo_env.engine.deal`).

    Args:
        rules: what is played.
        two_ended: evaluation only: odd seats draw from the far end of the draw pile (two players).
    """
    hands = HEADER
    seen = hands + HAND_CELLS * rules.players
    stocks = seen + HAND_CELLS * rules.players
    draw = stocks + rules.boards * rules.stocks
    discards = draw + rules.deck_size
    state = np.zeros(discards + PILES * rules.boards * rules.deck_size, dtype=np.int32)
    state[PLAYERS : TWO_ENDED + 1] = (
        rules.players,
        rules.teams,
        rules.boards,
        rules.sides,
        rules.stocks,
        rules.hand_size,
        rules.draw_per_turn or 0,
        rules.copies,
        rules.wilds,
        rules.must_play_stock,
        rules.wild_discard,
        rules.ordered_discards,
        rules.open_boards,
        rules.stalemate == "fewest_stock",
        rules.max_turns,
        two_ended,
    )
    state[DECK] = rules.deck_size
    state[ACTIONS] = rules.num_actions
    state[AT_HANDS : AT_DISCARDS + 1] = (hands, seen, stocks, draw, discards)
    state[FIRST_PLAYER] = first_player_code(rules)
    state[WINNER] = -1
    return state


def first_player_code(rules: Rules) -> int:
    """The first player as the kernels take it: a seat, or -1 for a random one."""
    return -1 if rules.first_player == "random" else int(rules.first_player)


def hand_at(player: int) -> int:
    """First cell of a player's hand: its size; cell + card is the count of that card."""
    return HEADER + HAND_CELLS * player


def board_at(board: int) -> int:
    """First cell of a board's twelve header cells."""
    return BOARD + BOARD_CELLS * board


def stock_cards(state: State, board: int) -> list[int]:
    """A board's stock from bottom to top."""
    start = int(state[AT_STOCKS]) + board * int(state[STOCK_SIZE])
    return [int(card) for card in state[start : start + int(state[board_at(board) + STOCK_N])]]


def discard_cards(state: State, board: int, pile: int) -> list[int]:
    """A discard pile from bottom to top."""
    start = int(state[AT_DISCARDS]) + (PILES * board + pile) * int(state[DECK])
    return [int(card) for card in state[start : start + int(state[board_at(board) + DEPTH + pile])]]


def under_cells(piles: Sequence[Sequence[int]]) -> list[int]:
    """The two UNDER cells of a board whose four discard piles are these, bottom to top."""
    packed = [
        sum(int(card) << 4 * place for place, card in enumerate(pile[-2:-5:-1])) for pile in piles
    ]
    return [low | high << UNDER_BITS for low, high in (packed[:2], packed[2:])]


def second_card(state: State | Sequence[int], board: int, pile: int) -> int:
    """The card under a discard pile's top, 0 for none; board is the board's first cell."""
    packed = int(state[board + UNDER + (pile >> 1)])
    return packed >> UNDER_BITS * (pile & 1) & 15


def hand_cards(state: State, player: int) -> list[int]:
    """A hand as sorted cards, wilds last."""
    counts = state[hand_at(player) + 1 : hand_at(player) + HAND_CELLS]
    return [card for card, count in enumerate(counts.tolist(), 1) for _ in range(count)]


def draw_cards(state: State) -> list[int]:
    """The draw pile in the order in which it will be drawn."""
    start = int(state[AT_DRAW])
    return [int(c) for c in state[start + int(state[DRAW_LO]) : start + int(state[DRAW_HI])]]


def building_cards(state: State, pile: int) -> list[int]:
    """A building pile's true cards from bottom to top."""
    bits = int(state[WILD_BITS + pile])
    return [WILD if bits >> h & 1 else h + 1 for h in range(int(state[HEIGHT + pile]))]
