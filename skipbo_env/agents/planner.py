"""The planner's evaluation of endings: written by hand, in the form of a value network, so that the
turn search plays by it as by any other.

What an ending is worth is a sum of terms, one for each slot (see `network`), in about the unit of a
logit. Some terms go by what ends this part of the turn: cards left in hand are a burden when the
turn is over, since each is one fewer to draw, and a help when it goes on. So there is a hidden unit
for each kind of ending, and all but the one of this ending are switched off.
"""

from __future__ import annotations

import re
from functools import cache

import numpy as np

from skipbo_env.agents.network import (
    FLIP,
    FLIP_REFILL,
    REFILL,
    TURN_OVER,
    UNSEEN_CHAIN,
    Network,
    num_rows,
    row_groups,
)
from skipbo_env.engine.layout import WILD
from skipbo_env.rules import Rules

KINDS = (TURN_OVER, FLIP, REFILL, FLIP_REFILL)
_HIDDEN, _HIDDEN2 = 16, 32  # the smallest that the kernels take
# A hidden unit holds _LEVEL + the terms' sum, at least 0; one that is off is _OFF lower.
_LEVEL, _OFF = 40.0, 120.0

CARD = 0.14  # a card of a stock
GOES_ON = {TURN_OVER: 0.0, FLIP: 0.3, REFILL: 0.35, FLIP_REFILL: 0.65}
WILD_KEPT = 0.25
NATURAL_KEPT = {TURN_OVER: -0.03, FLIP: 0.03, REFILL: 0.0, FLIP_REFILL: 0.0}
SECOND_OF_A_KIND = -0.04
# How likely a stock card is to be played next turn, by the cards that hand and luck must supply.
REACH = (1.0, 0.62, 0.4, 0.26, 0.17, 0.11, 0.07, 0.05, 0.03, 0.02, 0.01, 0.0, 0.0)
OWN_REACH = 0.4  # what that is worth to its owner
OTHER_REACH = 0.3  # and costs the others


def _hand(kind: int, card: int, count: int) -> float:
    """Cards of one kind left in hand."""
    if card == WILD:
        return WILD_KEPT * count
    second = SECOND_OF_A_KIND * max(0, count - 1) if kind == TURN_OVER else 0.0
    return NATURAL_KEPT[kind] * count + second


def _pile(top: int, second: int) -> float:
    """The top two cards of an own discard pile: a run that descends by one is best."""
    if top == 0:
        return 0.05
    if top == WILD:
        return -0.5
    if second == 0:
        return 0.04 + 0.002 * top
    if second == WILD:
        return -0.3
    if second == top + 1:
        return 0.13
    if second == top:
        return 0.08
    if second > top:
        return 0.04 - 0.004 * (second - top)
    return -0.03 - 0.004 * (top - second)


def _chain(value: int) -> float:
    """The own stock's top: how many cards are missing, or how many ranks would fit if it is not
    seen yet.
    """
    if value < UNSEEN_CHAIN:
        return OWN_REACH * REACH[min(value // 13, 12)]
    return OWN_REACH * ((value - UNSEEN_CHAIN) % 13) / 12


def _of_board(name: str, value: int, own: bool, share: float, turn: float) -> float:
    """A term of a board.

    Args:
        name: the slot within the board.
        value: what it holds.
        own: whether the board is of the mover's side.
        share: how much another side's board counts.
        turn: how much it counts that its owner is soon to move; 0 for the mover's own board.
    """
    if name == "size":
        return -CARD * value if own else CARD * share * value
    if name == "chain" and turn == 0.0:
        return _chain(value)
    if name == "chain":
        return REACH[min(value // 13, 12)] * turn * (OTHER_REACH if own else -OTHER_REACH)
    if name == "pile" and own and turn == 0.0:
        return _pile(value // 14, value % 14)
    if name == "depth" and own and turn == 0.0:
        return -0.005 * value
    return 0.0


@cache
def planner_network(players: int, teams: int) -> Network:
    """The hand-written evaluation for games of so many players and teams."""
    rules = Rules(players=players, teams=teams)
    w1 = np.zeros((num_rows(players, rules.boards), _HIDDEN), np.float32)
    for group, first, values in row_groups(players, rules.boards):
        board = re.fullmatch(r"board_(\d+)\.(\w+)", group)
        hand = re.fullmatch(r"hand_(\d+)", group)
        for value in range(values):
            for kind in KINDS:
                term = 0.0
                if group == "end":
                    term = _LEVEL + GOES_ON[kind] if value == kind else _LEVEL - _OFF
                elif hand:
                    term = _hand(kind, int(hand[1]), value)
                elif board:
                    k = int(board[1])
                    own = k == 0 or (teams > 0 and k == 1)
                    after = k // 2 if teams else k  # sides from the mover's on
                    turn = 0.0 if k == 0 else 0.5 if own else 0.5 ** (after - 1)
                    term = _of_board(board[2], value, own, 1 / (rules.sides - 1), turn)
                w1[first + value, kind] = term
    w2 = np.zeros((_HIDDEN, _HIDDEN2), np.float32)
    w2[: len(KINDS), 0] = 1.0
    w3 = np.zeros(_HIDDEN2, np.float32)
    w3[0] = 1.0
    return Network(
        w1=w1,
        b1=np.zeros(_HIDDEN, np.float32),
        w2=w2,
        b2=np.zeros(_HIDDEN2, np.float32),
        w3=w3,
        b3=np.full(1, -_LEVEL, np.float32),
    )
