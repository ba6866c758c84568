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

from skipbo_env.engine.bits import narrow_cells, popcount
from skipbo_env.engine.jit import inlined, kernel
from skipbo_env.engine.layout import (
    AT_DISCARDS,
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
from skipbo_env.engine.moves import other_board, own_board
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
    hand = HEADER + HAND_CELLS * player
    for card in range(1, WILD + 1):
        total = state[COPIES] if card < WILD else state[WILDS]
        seen = state[COMPLETED + card] + state[DISCARDED + card] + state[hand + card]
        out[card] = total - seen
    for b in range(4):
        wilds = state[WILD_BITS + b]
        naturals = ((1 << state[HEIGHT + b]) - 1) & ~wilds
        for h in range(12):
            out[1 + h] -= naturals >> h & 1
        out[WILD] -= np.int64(popcount(np.uint64(wilds)))
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


@kernel
def observe_features(state, player, counts, out):
    """Write the "features" observation of a seat.

    Args:
        state: the game.
        player: the observer.
        counts: int32 scratch space of shape (14,).
        out: float32 of shape (observation_size,).
    """
    one, zero = np.float32(1.0), np.float32(0.0)
    for i in range(len(out)):
        out[i] = zero
    for b in range(4):
        out[12 * b + state[HEIGHT + b]] = one
    hand = HEADER + HAND_CELLS * player
    for i in range(13):
        for level in range(4):
            out[48 + 4 * i + level] = one if state[hand + 1 + i] > level else zero
    at = 100
    for k in range(state[BOARDS]):
        board = seen_board(state, player, k)
        top = state[board + STOCK_TOP]
        index = (board - BOARD) // BOARD_CELLS
        for d in range(4):
            depth = state[board + DEPTH + d]
            pile = state[AT_DISCARDS] + (4 * index + d) * state[DECK] + depth - 1
            for i in range(4):
                # Without a branch: where there is no card, a cell written over below is hit.
                cell = at + 13 + 52 * d + 13 * i + state[pile - i]
                out[cell if i < depth else at + 13] = one
            out[at + 222 + d] = min(depth, 20) / np.float32(20.0)
            out[at + 226 + d] = lacking(state[HEIGHT + d], top) / np.float32(12.0)
        out[at + 13] = state[board + STOCK_N] / np.float32(40.0)
        if top:
            out[at + top - 1] = one
        at += BOARD_FEATURES
    players = state[PLAYERS]
    seat = player
    for k in range(players):
        out[at + k] = state[HEADER + HAND_CELLS * seat] / np.float32(20.0)
        seat = seat + 1 if seat + 1 < players else 0
    at += players
    out[at] = (state[DRAW_HI] - state[DRAW_LO]) / np.float32(state[DECK])
    unseen_counts(state, player, counts)
    for i in range(13):
        total = np.float32(max(state[WILDS] if i == 12 else state[COPIES], 1))
        out[at + 1 + i] = state[COMPLETED + 1 + i] / total
        out[at + 14 + i] = counts[1 + i] / total
    at += 27
    out[at + (state[PLAYER] - player + players) % players] = one
    out[at + players] = state[PASSES] / np.float32(players)
