"""What one seat may see, as numbers: the OBSERVATION tables.

Two forms, both from the observer's side: its own board comes first, then in a team the partner's
board, then the boards of the seats that follow (in teams each with its partner's board). Seats
count from the observer, who is 0.

"cards" (int8; one number a public zone; numbers saturate at 127):

    name          numbers            holds
    height        4                  height of each building pile
    hand          13                 own cards by kind: 1 to 12, wild
    board_k       10 a board         stock top, stock size, four discard tops (0: no card), depths
    hand_size     1 each seat        cards in each hand
    draw_size     2                  cards in the draw pile up to 127, and those beyond
    completed     13                 cards in the completed piles by kind
    mover         1                  seat to move
    passes        1                  passes in a row

"features" (float32 in [0, 1]; for networks):

    name          numbers            holds
    height        4 x 12             height of each building pile, one-hot
    hand          13 x 4             own cards by kind: at least 1, 2, 3, 4
    board_k       230 a board        stock top one-hot (13; zeros for none), stock size / 40, four
                                     discard piles x top four cards one-hot (4 x 4 x 13, top
                                     first), four depths / 20 (at most 1), and how many cards each
                                     building pile lacks until the stock top fits (4, / 12)
    hand_size     1 each seat        cards in each hand / 20
    draw_size     1                  cards in the draw pile / deck
    completed     13                 cards in the completed piles by kind / those in the deck
    unseen        13                 cards not seen by the observer, by kind / those in the deck
    mover         1 each seat        seat to move, one-hot
    passes        1                  passes in a row / players

Nothing hidden is read: neither another hand, nor a stock below its top, nor the draw pile's order,
nor the generator.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skipbo_env.engine.bits import (
    divide_cells,
    narrow_cells,
    popcount,
    spread_levels,
    spread_ones,
    subtract_bits,
    subtract_kinds,
)
from skipbo_env.engine.jit import inlined, kernel
from skipbo_env.engine.layout import (
    BOARD,
    BOARD_CELLS,
    BOARDS,
    COMPLETED,
    COPIES,
    DECK,
    DEPTH,
    DISCARDED,
    DRAW_HI,
    DRAW_LO,
    HAND_CELLS,
    HEADER,
    HEIGHT,
    PASSES,
    PLAYER,
    PLAYERS,
    SIDES,
    STOCK_N,
    STOCK_TOP,
    TOP,
    WILD,
    WILD_BITS,
    WILDS,
    State,
)
from skipbo_env.engine.moves import other_board, own_board, under_top
from skipbo_env.rules import Rules

BOARD_CARDS = 10
BOARD_FEATURES = 13 + 1 + 4 * 4 * 13 + 4 + 4


def _slices(parts: list[tuple[str, int]]) -> dict[str, slice]:
    table, at = {}, 0
    for name, size in parts:
        table[name] = slice(at, at + size)
        at += size
    return table


def cards_slices(rules: Rules) -> dict[str, slice]:
    """Named places in the "cards" observation."""
    boards = [(f"board_{k}", BOARD_CARDS) for k in range(rules.boards)]
    return _slices(
        [
            ("height", 4),
            ("hand", 13),
            *boards,
            ("hand_size", rules.players),
            ("draw_size", 2),
            ("completed", 13),
            ("mover", 1),
            ("passes", 1),
        ]
    )


def features_slices(rules: Rules) -> dict[str, slice]:
    """Named places in the "features" observation."""
    boards = [(f"board_{k}", BOARD_FEATURES) for k in range(rules.boards)]
    return _slices(
        [
            ("height", 48),
            ("hand", 52),
            *boards,
            ("hand_size", rules.players),
            ("draw_size", 1),
            ("completed", 13),
            ("unseen", 13),
            ("mover", rules.players),
            ("passes", 1),
        ]
    )


@lru_cache(maxsize=64)
def observation_size(rules: Rules, kind: str) -> int:
    """How many numbers an observation of the kind ("cards" or "features") has."""
    return (cards_slices if kind == "cards" else features_slices)(rules)["passes"].stop


def observe(state: State, rules: Rules, seat: int, kind: str) -> NDArray[Any]:
    """A fresh observation of a seat: int8 for "cards", float32 for "features"."""
    out: NDArray[Any]
    if kind == "cards":
        out = np.empty(observation_size(rules, kind), dtype=np.int8)
        observe_cards(state, seat, out)
    else:
        out = np.empty(observation_size(rules, kind), dtype=np.float32)
        observe_features(state, seat, np.empty(14, dtype=np.int32), out)
    return out


@inlined
def seen_board(state, player, k):
    """First header cell of the k-th board as the player counts them, the own one first."""
    if state[BOARDS] == state[PLAYERS] and state[SIDES] == state[PLAYERS]:
        seat = player + k
        if seat >= state[PLAYERS]:
            seat -= state[PLAYERS]
        return BOARD + BOARD_CELLS * seat
    seat = player + (k >> 1)
    if seat >= state[PLAYERS]:
        seat -= state[PLAYERS]
    return other_board(state, seat) if k & 1 else own_board(state, seat)


@inlined
def observe_cards(state, player, out):
    """Write the "cards" observation of a seat; out is int8 of shape (observation_size,)."""
    narrow_cells(state, HEIGHT, out, 0, 4)
    narrow_cells(state, HEADER + HAND_CELLS * player + 1, out, 4, 13)
    at = 17
    for k in range(state[BOARDS]):
        board = seen_board(state, player, k)
        out[at] = state[board + STOCK_TOP]
        out[at + 1] = state[board + STOCK_N]
        narrow_cells(state, board + TOP, out, at + 2, 4)
        narrow_cells(state, board + DEPTH, out, at + 6, 4)
        at += BOARD_CARDS
    players = state[PLAYERS]
    seat = player
    for _ in range(players):
        out[at] = state[HEADER + HAND_CELLS * seat]
        at += 1
        seat = seat + 1 if seat + 1 < players else 0
    draw = state[DRAW_HI] - state[DRAW_LO]
    out[at] = min(draw, 127)
    out[at + 1] = min(max(draw - 127, 0), 127)
    at += 2
    narrow_cells(state, COMPLETED + 1, out, at, 13)
    mover = state[PLAYER] - player
    out[at + 13] = mover if mover >= 0 else mover + players
    out[at + 14] = state[PASSES]


@inlined
def unseen_counts(state, player, out):
    """Count by kind (index 1 to 13) the cards that a seat has not seen.

    They lie in the other hands, in the draw pile and in the stocks below their tops.
    """
    hand = HEADER + HAND_CELLS * player + 1
    copies, wilds = state[COPIES], state[WILDS]
    subtract_kinds(state, COMPLETED + 1, DISCARDED + 1, hand, copies, wilds, out, 1)
    laid = np.uint64(0)
    for b in range(4):
        standing_for = np.uint64(state[WILD_BITS + b])
        naturals = (np.uint64(1) << np.uint64(state[HEIGHT + b])) - np.uint64(1)
        subtract_bits(naturals & ~standing_for, out, 1)
        laid += popcount(standing_for)
    out[WILD] -= np.int64(laid)
    for k in range(state[BOARDS]):
        top = state[BOARD + BOARD_CELLS * k + STOCK_TOP]
        if top:
            out[top] -= 1


@inlined
def lacking(height, card):
    """How many cards a building pile lacks until the card fits; 0 for a wild, 12 for no card."""
    if card == WILD:
        return 0
    if card == 0:
        return 12
    short = card - 1 - height
    return short if short >= 0 else short + 12


@inlined
def _one_hot(card):
    """A uint64 whose bit card - 1 is set; none for no card."""
    return np.uint64(1) << np.uint64(card) >> np.uint64(1)


@inlined
def _top_four(state, board, d):
    """52 bits: bit 13i + card - 1 is set for the card i places below a discard pile's top."""
    under = under_top(state, board, d)
    bits = _one_hot(under >> 8)
    bits = bits << np.uint64(13) | _one_hot(under >> 4 & 15)
    bits = bits << np.uint64(13) | _one_hot(under & 15)
    return bits << np.uint64(13) | _one_hot(state[board + TOP + d])


@kernel(brief=True)
def observe_features(state, player, counts, out):
    """Write the "features" observation of a seat.

    Args:
        state: the game.
        player: the observer.
        counts: int32 scratch space of shape (14,).
        out: float32 of shape (observation_size,).
    """
    # First, as reading the counts waits for their writes, and those for all the writes before them.
    unseen_counts(state, player, counts)
    # In ascending order: the wide writes go a little too far, into what is written after them.
    bits = np.uint64(0)
    for b in range(4):
        bits |= np.uint64(1) << np.uint64(12 * b + state[HEIGHT + b])
    spread_ones(bits, out, 0, 64)
    spread_levels(state, HEADER + HAND_CELLS * player + 1, out, 48)
    at = 100
    for k in range(state[BOARDS]):
        board = seen_board(state, player, k)
        top = state[board + STOCK_TOP]
        spread_ones(_one_hot(top), out, at, 16)
        out[at + 13] = np.float32(state[board + STOCK_N]) / np.float32(40.0)
        for d in range(4):
            spread_ones(_top_four(state, board, d), out, at + 14 + 52 * d, 64)
        divide_cells(state, board + DEPTH, 20, np.float32(20.0), out, at + 222, 4)
        for d in range(4):
            out[at + 226 + d] = np.float32(lacking(state[HEIGHT + d], top)) / np.float32(12.0)
        at += BOARD_FEATURES
    players = state[PLAYERS]
    seat = player
    for k in range(players):
        out[at + k] = np.float32(state[HEADER + HAND_CELLS * seat]) / np.float32(20.0)
        seat = seat + 1 if seat + 1 < players else 0
    at += players
    out[at] = np.float32(state[DRAW_HI] - state[DRAW_LO]) / np.float32(state[DECK])
    copies = np.float32(max(state[COPIES], 1))
    wilds = np.float32(max(state[WILDS], 1))
    divide_cells(state, COMPLETED + 1, state[DECK], copies, out, at + 1, 12)
    out[at + 13] = np.float32(state[COMPLETED + WILD]) / wilds
    divide_cells(counts, 1, state[DECK], copies, out, at + 14, 12)
    out[at + 26] = np.float32(counts[WILD]) / wilds
    at += 27
    mover = state[PLAYER] - player
    mover = mover if mover >= 0 else mover + players
    for k in range(players):
        out[at + k] = np.float32(k == mover)
    out[at + players] = np.float32(state[PASSES]) / np.float32(players)
