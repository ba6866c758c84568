"""The value network that judges how a part of a turn ends: its feature slots, its forward pass, and
its file.

A part of a turn is deterministic until a stock card flips, the hand refills, or a discard (or pass)
hands the turn on. What stands just before that hidden card is seen is an *ending*; the network
gives the mover's side's probability to win from it.

The input is a list of slots, each holding exactly one of that slot's values. Slot by slot, from the
mover's side:

    slots             values     holds
    1                 4          ENDING: turn over, stock flip, refill, flip and refill
    13                5 each     own hand: how many of each kind (0 to 4; zeros after a refill)
    12                5 each     how many building piles stand at each height 0 to 11
    13                20 each    cards of each kind that the mover has not seen (saturating at 19)
    1                 20         draw pile / 8, rounded up (saturating)
    1 each other seat 8 each     hand size (saturating at 7), in turn order
    for each board, the own one first, as `observe.seen_board` counts:
    1                 15         stock top: 0 none, 1 to 13, 14 not yet seen
    1                 41         stock size
    1                 169        cards that the two nearest building piles lack until the top fits:
                                 13 x nearest + second
    1                 338        cards missing on the two nearest building piles to free the stock
                                 top with its discard piles' help, on the own board also the hand's:
                                 13 x fewest + second fewest; for an own top not yet seen, how many
                                 of the twelve ranks could be played at once, without wilds and with
                                 the hand's: 169 + 13 x without + with
    4                 196 each   each discard pile's top two cards: 14 x top + second (shared rows)
    4                 12 each    each discard pile's depth, saturating at 11 (shared rows)
    13                5 each     cards of each kind in the four discard piles (saturating at 4)

The first layer is a sum of weight rows, one a slot, so that two endings that differ in few slots
differ by few rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skipbo_env.engine.bits import popcount
from skipbo_env.engine.jit import inlined, kernel
from skipbo_env.engine.layout import (
    AT_DISCARDS,
    BOARD,
    BOARD_CELLS,
    BOARDS,
    DECK,
    DEPTH,
    DRAW_HI,
    DRAW_LO,
    HAND_CELLS,
    HEADER,
    HEIGHT,
    PLAYERS,
    STOCK_N,
    STOCK_TOP,
    TOP,
    WILD,
)
from skipbo_env.engine.observe import lacking, seen_board, unseen_counts
from skipbo_env.engine.simd import dense_head

VERSION = 2  # of the feature table; a network of another version is refused

TURN_OVER, FLIP, REFILL, FLIP_REFILL = range(4)
UNKNOWN = 14

S_END = 0
S_HAND = 1
S_HEIGHT = 14
S_UNSEEN = 26
S_DRAW = 39
S_SEATS = 40
BOARD_SLOTS = 25
B_TOP, B_SIZE, B_NEAR, B_CHAIN, B_PILE, B_DEPTH, B_KIND = 0, 1, 2, 3, 4, 8, 12

_HAND_ROWS = 4
_HEIGHT_ROWS = _HAND_ROWS + 13 * 5
_UNSEEN_ROWS = _HEIGHT_ROWS + 12 * 5
_DRAW_ROWS = _UNSEEN_ROWS + 13 * 20
_SEAT_ROWS = _DRAW_ROWS + 20
BOARD_ROWS = 15 + 41 + 169 + 338 + 196 + 12 + 13 * 5
_R_SIZE, _R_NEAR, _R_CHAIN, _R_PILE, _R_DEPTH, _R_KIND = 15, 56, 225, 563, 759, 771
NO_CHAIN = 13 * 12 + 12  # no top, or another board's that is not yet seen
UNSEEN_CHAIN = 169  # the first value for the own top when it is not yet seen


def num_slots(players: int, boards: int) -> int:
    """How many slots an ending has."""
    return S_SEATS + players - 1 + BOARD_SLOTS * boards


def num_rows(players: int, boards: int) -> int:
    """How many weight rows the first layer has."""
    return _SEAT_ROWS + 8 * (players - 1) + BOARD_ROWS * boards


def row_groups(players: int, boards: int) -> list[tuple[str, int, int]]:
    """The rows as (name, first row, values) in the order of the table; slots that share weights
    stand once.
    """
    groups = [("end", 0, 4)]
    groups += [(f"hand_{c}", _HAND_ROWS + 5 * (c - 1), 5) for c in range(1, 14)]
    groups += [(f"height_{h}", _HEIGHT_ROWS + 5 * h, 5) for h in range(12)]
    groups += [(f"unseen_{c}", _UNSEEN_ROWS + 20 * (c - 1), 20) for c in range(1, 14)]
    groups += [("draw", _DRAW_ROWS, 20)]
    groups += [(f"seat_{k}", _SEAT_ROWS + 8 * (k - 1), 8) for k in range(1, players)]
    for k in range(boards):
        at = _SEAT_ROWS + 8 * (players - 1) + BOARD_ROWS * k
        groups += [
            (f"board_{k}.top", at, 15),
            (f"board_{k}.size", at + _R_SIZE, 41),
            (f"board_{k}.near", at + _R_NEAR, 169),
            (f"board_{k}.chain", at + _R_CHAIN, 338),
            (f"board_{k}.pile", at + _R_PILE, 196),
            (f"board_{k}.depth", at + _R_DEPTH, 12),
        ]
        groups += [(f"board_{k}.kind_{c}", at + _R_KIND + 5 * (c - 1), 5) for c in range(1, 14)]
    return groups


class Network(NamedTuple):
    """Weights of a value network: rows -> hidden -> hidden2 -> one logit, ReLU between. All
    float32.

    Attributes:
        w1: first layer's rows, shape (num_rows, hidden).
        b1: shape (hidden,).
        w2: second layer, one row an input, shape (hidden, hidden2).
        b2: shape (hidden2,).
        w3: shape (hidden2,).
        b3: shape (1,).
    """

    w1: NDArray[np.float32]
    b1: NDArray[np.float32]
    w2: NDArray[np.float32]
    b2: NDArray[np.float32]
    w3: NDArray[np.float32]
    b3: NDArray[np.float32]


def network_of(tensors: Mapping[str, NDArray[Any]], players: int, boards: int) -> Network:
    """A network from named arrays, checked.

    Raises:
        ValueError: an array is missing, has the wrong shape, or holds a number that is not finite;
            it names the array.
    """
    parts = {}
    for name in Network._fields:
        if name not in tensors:
            raise ValueError(f"{name}: missing from the weights")
        part = np.ascontiguousarray(tensors[name], dtype=np.float32)
        if not np.isfinite(part).all():
            raise ValueError(f"{name}: holds numbers that are not finite")
        parts[name] = part
    hidden, hidden2 = parts["b1"].size, parts["b2"].size
    shapes = {
        "w1": (num_rows(players, boards), hidden),
        "b1": (hidden,),
        "w2": (hidden, hidden2),
        "b2": (hidden2,),
        "w3": (hidden2,),
        "b3": (1,),
    }
    for name, shape in shapes.items():
        if parts[name].shape != shape:
            raise ValueError(f"{name}: has shape {parts[name].shape}, needs {shape}")
    if hidden % 16 or hidden2 % 32 or not hidden or not hidden2:
        raise ValueError(f"b1, b2: sizes {hidden} and {hidden2} must be multiples of 16 and 32")
    return Network(**parts)


@kernel
def board_rows(state, k):
    """First weight row of the k-th board."""
    return _SEAT_ROWS + 8 * (state[PLAYERS] - 1) + BOARD_ROWS * k


@kernel
def board_slots(state, k):
    """First slot of the k-th board."""
    return S_SEATS + state[PLAYERS] - 1 + BOARD_SLOTS * k


@inlined
def missing_from(state, rank, target, limit, hand, cells, depths, tops):
    """Cards that discard piles and a hand lack for all ranks from one up to the one before the
    target, counted up to the limit; and as bits the discard piles that it used.

    Args:
        state: the game.
        rank: the first rank, 1 to 12.
        target: where to stop, 1 to 12.
        limit: the count that is enough.
        hand: kinds that may be played beside the discard piles, as `hand_bits`.
        cells: four cells of the state, where each discard pile's cards begin.
        depths: how many cards it has.
        tops: its top; not read from its cell, so that it may be one that is not laid yet.
    """
    c0, c1, c2, c3 = cells
    d0, d1, d2, d3 = depths
    t0, t1, t2, t3 = tops
    missing = 0
    used = 0
    while rank != target and missing < limit:
        if t0 == rank:
            d0 -= 1
            used |= 1
            t0 = state[c0 + d0 - 1] if d0 > 0 else 0
        elif t1 == rank:
            d1 -= 1
            used |= 2
            t1 = state[c1 + d1 - 1] if d1 > 0 else 0
        elif t2 == rank:
            d2 -= 1
            used |= 4
            t2 = state[c2 + d2 - 1] if d2 > 0 else 0
        elif t3 == rank:
            d3 -= 1
            used |= 8
            t3 = state[c3 + d3 - 1] if d3 > 0 else 0
        elif not hand >> rank & 1:
            missing += 1
        rank = rank + 1 if rank < 12 else 1
    return missing, used


@inlined
def pile_cells(state, board):
    """Four cells: where the cards of each of a board's discard piles begin."""
    deck = state[DECK]
    first = state[AT_DISCARDS] + 4 * ((board - BOARD) // BOARD_CELLS) * deck
    return first, first + deck, first + 2 * deck, first + 3 * deck


@kernel
def _missing(state, board, b, target, limit, hand):
    """`missing_from` for a building pile as it stands and the board's discard piles."""
    depths = (
        state[board + DEPTH],
        state[board + DEPTH + 1],
        state[board + DEPTH + 2],
        state[board + DEPTH + 3],
    )
    tops = (
        state[board + TOP],
        state[board + TOP + 1],
        state[board + TOP + 2],
        state[board + TOP + 3],
    )
    rank = state[HEIGHT + b] + 1
    return missing_from(state, rank, target, limit, hand, pile_cells(state, board), depths, tops)


@kernel(brief=True)
def hand_bits(state, player):
    """The kinds of a hand as bits: bit c for kind c."""
    hand = HEADER + HAND_CELLS * player
    bits = 0
    for c in range(1, 14):
        if state[hand + c] > 0:
            bits |= 1 << c
    return bits


@kernel(brief=True)
def chain(state, board, hand):
    """13 x the fewest cards missing to free a board's stock top + the second fewest, over the
    building piles; 0 for a wild, NO_CHAIN for no top. And as bits the discard piles that it used.

    Args:
        state: the game.
        board: the board's cell.
        hand: kinds that may be played beside the board's discard piles, as `hand_bits`; 0 for none.
    """
    top = state[board + STOCK_TOP]
    if top == 0:
        return NO_CHAIN, 0
    if top == WILD:
        return 0, 0
    first = second = 12
    used = 0
    for b in range(4):
        missing, piles = _missing(state, board, b, top, second, hand)
        used |= piles
        if missing < first:
            second = first
            first = missing
        elif missing < second:
            second = missing
    return 13 * first + second, used


@kernel
def reach_row(state, player, board):
    """169 + 13 x how many ranks a seat could play at once, were they its stock top, without wilds +
    how many with the wilds in its hand.
    """
    hand = hand_bits(state, player)
    wilds = state[HEADER + HAND_CELLS * player + WILD]
    without = 0
    reached = 0
    for b in range(4):
        rank = state[HEIGHT + b] + 1
        for _ in range(12):
            missing, _ = _missing(state, board, b, rank, wilds + 1, hand)
            if missing > wilds:
                break
            reached |= 1 << rank
            if missing == 0:
                without |= 1 << rank
            rank = rank + 1 if rank < 12 else 1
    few = np.int64(popcount(np.uint64(without)))
    return UNSEEN_CHAIN + 13 * few + np.int64(popcount(np.uint64(reached)))


@kernel
def near_row(state, top):
    """13 x the fewest cards that a building pile lacks until the top fits + the second fewest."""
    first = second = 12
    for b in range(4):
        short = lacking(state[HEIGHT + b], top)
        if short < first:
            second = first
            first = short
        elif short < second:
            second = short
    return 13 * first + second


@kernel
def _pile_slots(state, board, rows, at, slots):
    """Fill a board's slots for its discard piles."""
    for c in range(13):
        slots[at + B_KIND + c] = rows + _R_KIND + 5 * c
    first_pile = state[AT_DISCARDS] + 4 * ((board - BOARD) // BOARD_CELLS) * state[DECK]
    for d in range(4):
        depth = state[board + DEPTH + d]
        pile = first_pile + d * state[DECK]
        second = state[pile + depth - 2] if depth > 1 else 0
        slots[at + B_PILE + d] = rows + _R_PILE + 14 * state[board + TOP + d] + second
        slots[at + B_DEPTH + d] = rows + _R_DEPTH + min(depth, 11)
        for i in range(depth):
            kind = at + B_KIND + state[pile + i] - 1
            if slots[kind] - (rows + _R_KIND + 5 * (state[pile + i] - 1)) < 4:
                slots[kind] += 1


@kernel
def fill_slots(state, player, counts, slots):
    """Fill all slots of the mover for a table as it stands, ENDING as turn over.

    Args:
        state: the game.
        player: whose ending it is.
        counts: int32 scratch space of shape (14,).
        slots: int32 of shape (num_slots,): the weight row that each slot holds.
    """
    unseen_counts(state, player, counts)
    for c in range(13):
        slots[S_UNSEEN + c] = _UNSEEN_ROWS + 20 * c + min(max(counts[c + 1], 0), 19)
    slots[S_DRAW] = _DRAW_ROWS + min((state[DRAW_HI] - state[DRAW_LO] + 7) // 8, 19)
    players = state[PLAYERS]
    for k in range(1, players):
        size = state[HEADER + HAND_CELLS * ((player + k) % players)]
        slots[S_SEATS + k - 1] = _SEAT_ROWS + 8 * (k - 1) + min(size, 7)
    for k in range(state[BOARDS]):
        board = seen_board(state, player, k)
        at = board_slots(state, k)
        rows = board_rows(state, k)
        slots[at + B_TOP] = rows + state[board + STOCK_TOP]
        slots[at + B_SIZE] = rows + _R_SIZE + min(state[board + STOCK_N], 40)
        _pile_slots(state, board, rows, at, slots)
    fill_moving_slots(state, player, slots)


@kernel
def fill_moving_slots(state, player, slots):
    """Fill the slots that plays within a turn change, but for the own discard piles."""
    slots[S_END] = TURN_OVER
    hand = HEADER + HAND_CELLS * player
    for c in range(13):
        slots[S_HAND + c] = _HAND_ROWS + 5 * c + min(state[hand + 1 + c], 4)
    for h in range(12):
        slots[S_HEIGHT + h] = _HEIGHT_ROWS + 5 * h
    for b in range(4):
        slots[S_HEIGHT + state[HEIGHT + b]] += 1
    for k in range(state[BOARDS]):
        board = seen_board(state, player, k)
        at = board_slots(state, k)
        rows = board_rows(state, k)
        slots[at + B_NEAR] = rows + _R_NEAR + near_row(state, state[board + STOCK_TOP])
        usable = 0 if k else hand_bits(state, player)
        slots[at + B_CHAIN] = rows + _R_CHAIN + chain(state, board, usable)[0]


@kernel
def fill_own_piles(state, player, slots):
    """Fill the slots of the own board's discard piles."""
    _pile_slots(
        state, seen_board(state, player, 0), board_rows(state, 0), board_slots(state, 0), slots
    )


@kernel(fastmath=True)
def first_layer(net, slots, acc):
    """Sum the bias and the rows of all slots into acc, shape (hidden,)."""
    n = len(acc)
    for j in range(n):
        acc[j] = net.b1[j]
    for slot in slots:
        row = net.w1[slot]
        for j in range(n):
            acc[j] += row[j]


@kernel(fastmath=True)
def swap_row(net, old, new, acc):
    """Take one row out of a first layer's sum and add another."""
    a = net.w1[old]
    b = net.w1[new]
    for j in range(len(acc)):
        acc[j] += b[j] - a[j]


@kernel(fastmath=True)
def swap_rows(net, source, old, new, old2, new2, acc):
    """Write into acc a first layer's sum with two rows swapped for two others; the source stays."""
    a = net.w1[old]
    b = net.w1[new]
    c = net.w1[old2]
    d = net.w1[new2]
    for j in range(len(acc)):
        acc[j] = source[j] + ((b[j] - a[j]) + (d[j] - c[j]))


@kernel
def upper_layers(net, acc, hidden):
    """The logit of a first layer's sum; hidden is scratch space of its shape."""
    return dense_head(acc, hidden, net.w2, net.b2, net.w3) + net.b3[0]


@kernel(brief=True)
def evaluate_slots(net, slots, acc, hidden):
    """The mover's probability to win from an ending's slots; acc and hidden are scratch space of
    shape (hidden,).
    """
    first_layer(net, slots, acc)
    return sigmoid(upper_layers(net, acc, hidden))


@kernel
def sigmoid(x):
    """1 / (1 + exp(-x)) as float64."""
    return 1.0 / (1.0 + np.exp(-np.float64(x)))
