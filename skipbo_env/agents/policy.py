"""The policy network that picks an action in one forward pass: its input, its forward pass, and its
file.

The input is the "features" observation of `engine.observe`, behind it two numbers for each action,
and last the mask of legal actions, all *arranged*: what is interchangeable stands in one order, so
that the network need not learn the same thing 24 times over. Building piles stand by height, a
board's discard piles by their top two cards and depth, the smallest first. The two numbers say how
near the own stock card and the next opponent's would be to being played after the action: to count
that out is a search, which a network of two layers does badly and a few comparisons do at once. The
output is a logit for each action of the arranged table; `real_action` says which action that is.

    inputs -> hidden -> hidden2 -> actions, ReLU between

Input and hidden units that are zero are skipped, which is most of the input.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skipbo_env.actions import MAX_ACTIONS
from skipbo_env.agents.network import hand_bits, missing_from, pile_cells
from skipbo_env.engine.jit import inlined, kernel
from skipbo_env.engine.layout import (
    ACTIONS,
    BOARDS,
    DEPTH,
    HAND_CELLS,
    HEADER,
    HEIGHT,
    PLAYER,
    STOCK_TOP,
    TEAMS,
    TOP,
    WILD,
)
from skipbo_env.engine.moves import (
    A_DISCARD,
    A_DISCARD2,
    A_END,
    A_END2,
    A_HAND,
    A_PASS,
    A_STOCK2,
    legal_mask,
    under_top,
)
from skipbo_env.engine.observe import (
    BOARD_FEATURES,
    observation_size,
    observe_features,
    seen_board,
)
from skipbo_env.rules import Rules

POLICY_VERSION = 2  # of the input and its arrangement; a network of another version is refused

# An order: which building pile, own discard pile, discard pile of the second and of the third board
# stands at each place; four numbers more are scratch space. In a team the second board is the
# team's other one and the third the next opponent's; else the second is the next opponent's.
ORDER = 20
_OWN, _OTHER, _THIRD, _SPARE = 4, 8, 12, 16
_RANKS, _PILE = 12, 52  # numbers of a building and of a discard pile in the observation
_BOARDS = 100  # the first board's first number
_PILES, _DEPTHS, _LACKING = 14, 222, 226  # within a board


def num_outputs(rules: Rules) -> int:
    """Actions with a logit: all that any rules of so many players and teams have."""
    return MAX_ACTIONS if rules.teams else rules.num_actions


def num_inputs(rules: Rules) -> int:
    """Numbers in the input at a table with so many players and teams."""
    return observation_size(rules, "features") + 3 * num_outputs(rules)


class Policy(NamedTuple):
    """Weights of a policy network. All float32, one row an input.

    Attributes:
        w1: shape (inputs, hidden).
        b1: shape (hidden,).
        w2: shape (hidden, hidden2).
        b2: shape (hidden2,).
        w3: shape (hidden2, actions).
        b3: shape (actions,).
    """

    w1: NDArray[np.float32]
    b1: NDArray[np.float32]
    w2: NDArray[np.float32]
    b2: NDArray[np.float32]
    w3: NDArray[np.float32]
    b3: NDArray[np.float32]


def policy_of(tensors: Mapping[str, NDArray[Any]], rules: Rules) -> Policy:
    """A policy from named arrays, checked.

    Raises:
        ValueError: an array is missing, has the wrong shape, or holds a number that is not finite;
            it names the array.
    """
    parts = {}
    for name in Policy._fields:
        if name not in tensors:
            raise ValueError(f"{name}: missing from the weights")
        part = np.ascontiguousarray(tensors[name], dtype=np.float32)
        if not np.isfinite(part).all():
            raise ValueError(f"{name}: holds numbers that are not finite")
        parts[name] = part
    hidden, hidden2 = parts["b1"].size, parts["b2"].size
    shapes = {
        "w1": (num_inputs(rules), hidden),
        "b1": (hidden,),
        "w2": (hidden, hidden2),
        "b2": (hidden2,),
        "w3": (hidden2, num_outputs(rules)),
        "b3": (num_outputs(rules),),
    }
    for name, shape in shapes.items():
        if parts[name].shape != shape:
            raise ValueError(f"{name}: has shape {parts[name].shape}, needs {shape}")
    return Policy(**parts)


def empty_policy() -> Policy:
    """A policy without a number, for kernels that take one and do not use it."""
    row, flat = np.zeros((0, 0), np.float32), np.zeros(0, np.float32)
    return Policy(row, flat, row, flat, row, flat)


class PolicyWork(NamedTuple):
    """Scratch space of a forward pass; one a thread.

    Attributes:
        counts: int32 (14,).
        features: the observation, float32.
        inputs: float32 (inputs,): what the network sees, see `arrange`.
        order: int64 (ORDER,), see `arrange`.
        hidden, hidden2: float32, the sums of the layers.
        arranged: float32 (actions,): logits of the arranged table's actions.
        logits: float32 (actions,): the same by action id.
        mask: int8 (the rules' actions,).
    """

    counts: NDArray[np.int32]
    features: NDArray[np.float32]
    inputs: NDArray[np.float32]
    order: NDArray[np.int64]
    hidden: NDArray[np.float32]
    hidden2: NDArray[np.float32]
    arranged: NDArray[np.float32]
    logits: NDArray[np.float32]
    mask: NDArray[np.int8]


def new_policy_work(net: Policy, num_actions: int) -> PolicyWork:
    """Scratch space for a policy, in games with so many actions."""

    def zeros(size: int) -> NDArray[np.float32]:
        return np.zeros(size, np.float32)

    inputs, actions = net.w1.shape[0], net.b3.size
    return PolicyWork(
        counts=np.zeros(14, np.int32),
        features=zeros(max(inputs - 3 * actions, 0)),
        inputs=zeros(inputs),
        order=np.zeros(ORDER, np.int64),
        hidden=zeros(net.b1.size),
        hidden2=zeros(net.b2.size),
        arranged=zeros(actions),
        logits=zeros(actions),
        mask=np.zeros(num_actions, np.int8),
    )


@inlined
def _sort_four(order, at):
    """Sort four keys, of which the lowest two bits are a pile, and leave the piles."""
    for i in range(at + 1, at + 4):
        key = order[i]
        k = i
        while k > at and order[k - 1] > key:
            order[k] = order[k - 1]
            k -= 1
        order[k] = key
    for i in range(at, at + 4):
        order[i] &= 3


@inlined
def _which(features, at, n):
    """1 + the place of the one in a one-hot stretch of n numbers; 0 where there is none."""
    for k in range(n):
        if features[at + k] > 0.5:
            return k + 1
    return 0


@inlined
def real_action(action, order):
    """The action that one of the arranged table is."""
    pile = action & 3
    if action < A_DISCARD:
        return action - pile + order[pile]
    if action < A_END:
        return A_DISCARD + 4 * order[_OWN + ((action - A_DISCARD) >> 2)] + order[pile]
    if action < A_PASS:
        return action - pile + order[_OWN + pile]
    if action < A_STOCK2:
        return action
    pile = (action - A_STOCK2) & 3
    if action < A_DISCARD2:
        return A_STOCK2 + order[pile]
    if action < A_END2:
        return A_DISCARD2 + 4 * order[_OTHER + ((action - A_DISCARD2) >> 2)] + order[pile]
    return action - pile + order[_OTHER + pile]


@inlined
def _piles(state, board, order, at):
    """A board's discard piles in the order that stands at `at`, as `missing_from` takes them."""
    cells = pile_cells(state, board)
    deck = cells[1] - cells[0]
    p0, p1, p2, p3 = order[at], order[at + 1], order[at + 2], order[at + 3]
    return (
        (cells[0] + deck * p0, cells[0] + deck * p1, cells[0] + deck * p2, cells[0] + deck * p3),
        (
            np.int64(state[board + DEPTH + p0]),
            np.int64(state[board + DEPTH + p1]),
            np.int64(state[board + DEPTH + p2]),
            np.int64(state[board + DEPTH + p3]),
        ),
        (
            np.int64(state[board + TOP + p0]),
            np.int64(state[board + TOP + p1]),
            np.int64(state[board + TOP + p2]),
            np.int64(state[board + TOP + p3]),
        ),
    )


@inlined
def _with(four, place, number):
    """Four numbers with another one at a place, or as they are if that is none of 0 to 3."""
    return (
        number if place == 0 else four[0],
        number if place == 1 else four[1],
        number if place == 2 else four[2],
        number if place == 3 else four[3],
    )


@inlined
def _fewest_missing(state, target, built, hand, piles):
    """Fewest cards missing on a building pile to bring it to the target, where one, or none (-1),
    stands a card higher than it does.
    """
    cells, depths, tops = piles
    fewest = 12
    for b in range(4):
        rank = np.int64(state[HEIGHT + b]) + 1
        if b == built:
            rank = rank + 1 if rank < 12 else 1
        missing, _ = missing_from(state, rank, target, fewest, hand, cells, depths, tops)
        fewest = min(fewest, missing)
    return fewest


@kernel
def _write_nearness(state, order, out, first):
    """Write for each legal action how near the own and the next opponent's stock top would be.

    Args:
        state: the game.
        order: int64 (ORDER,), filled.
        out: float32 (inputs,), with the mask at its end.
        first: where the numbers begin, those for the own stock card and then the opponent's.
    """
    actions = (len(out) - first) // 3
    player = state[PLAYER]
    hand = HEADER + HAND_CELLS * player
    own = seen_board(state, player, 0)
    next_board = seen_board(state, player, 2 if state[TEAMS] else 1)
    piles = _piles(state, own, order, _OWN)
    next_piles = _piles(state, next_board, order, _THIRD if state[TEAMS] else _OTHER)
    top = np.int64(state[own + STOCK_TOP])
    next_top = np.int64(state[next_board + STOCK_TOP])
    held = hand_bits(state, player)
    for action in range(actions):
        out[first + action] = out[first + actions + action] = np.float32(0.0)
        if out[first + 2 * actions + action] == 0.0:
            continue
        real = real_action(action, order)
        cells, depths, tops = piles
        bits = held
        wilds = np.int64(state[hand + WILD])
        card = 0
        built = -1
        if A_HAND <= real < A_DISCARD:
            card = (real - A_HAND) // 4 + 1
        elif A_END <= real < A_PASS:
            card = (real - A_END) // 4 + 1
        elif real >= A_END2:
            card = (real - A_END2) // 4 + 1
        if card:  # it leaves the hand
            if state[hand + card] == 1:
                bits &= ~(1 << card)
            if card == WILD:
                wilds -= 1
        if real < A_END:
            built = real & 3
        elif A_STOCK2 <= real < A_END2:
            built = (real - A_STOCK2) & 3
        if A_DISCARD <= real < A_END:  # the card below comes up
            place = (action - A_DISCARD) >> 2
            pile = (real - A_DISCARD) >> 2
            depths = _with(depths, place, depths[place] - 1)
            tops = _with(tops, place, np.int64(under_top(state, own, pile) & 15))
        elif A_END <= real < A_PASS:
            place = action & 3
            depths = _with(depths, place, depths[place] + 1)
            tops = _with(tops, place, card)
        if real < A_HAND or top == WILD:
            out[first + action] = np.float32(1.0)
        elif top:
            missing = _fewest_missing(state, top, built, bits, (cells, depths, tops))
            if missing <= wilds:
                out[first + action] = max(np.float32(1.0 - missing / 16.0), np.float32(0.5))
            else:
                out[first + action] = np.float32(1.0) / np.float32(1 << missing - wilds)
        if next_top == WILD:
            out[first + actions + action] = np.float32(1.0)
        elif next_top:
            missing = _fewest_missing(state, next_top, built, 0, next_piles)
            out[first + actions + action] = np.float32(1.0) / np.float32(1 << missing)


@kernel
def arrange(state, features, mask, order, out):
    """Write what the network sees of a game, with its piles in the fixed order, and what that order
    is.

    Args:
        state: the game.
        features: the mover's "features" observation of it, float32.
        mask: int8, its legal actions.
        order: int64 (ORDER,), filled.
        out: float32 (inputs,), filled; an action that the rules do not have is not legal.
    """
    for i in range(len(features)):
        out[i] = features[i]
    for b in range(4):
        order[b] = 4 * _which(features, _RANKS * b, _RANKS) + b
    _sort_four(order, 0)
    for b in range(4):
        for k in range(_RANKS):
            out[_RANKS * b + k] = features[_RANKS * order[b] + k]
    for board in range(state[BOARDS]):
        at = _BOARDS + BOARD_FEATURES * board
        piles = min(_OWN + 4 * board, _SPARE)
        for d in range(4):
            first = at + _PILES + _PILE * d
            top = 14 * _which(features, first, 13) + _which(features, first + 13, 13)
            depth = np.int64(20.0 * features[at + _DEPTHS + d] + 0.5)
            order[piles + d] = 4 * (32 * top + depth) + d
        _sort_four(order, piles)
        for d in range(4):
            source = order[piles + d]
            for k in range(_PILE):
                out[at + _PILES + _PILE * d + k] = features[at + _PILES + _PILE * source + k]
            out[at + _DEPTHS + d] = features[at + _DEPTHS + source]
            out[at + _LACKING + d] = features[at + _LACKING + order[d]]
    first = len(features)
    actions = (len(out) - first) // 3
    for action in range(actions):
        legal = action < len(mask) and mask[real_action(action, order)] != 0
        out[first + 2 * actions + action] = np.float32(1.0) if legal else np.float32(0.0)
    _write_nearness(state, order, out, first)


@kernel
def arrange_rows(states, features, masks, orders, out):
    """`arrange` for many rows.

    Args:
        states: int32 (rows, cells).
        features: float32 (rows, numbers).
        masks: int8 (rows, actions).
        orders: int64 (rows, ORDER), filled.
        out: float32 (rows, inputs), filled.
    """
    for i in range(len(features)):
        arrange(states[i], features[i], masks[i], orders[i], out[i])


@kernel(fastmath=True)
def _layer(x, w, b, out):
    """Write b + x @ w into out, without the inputs that are zero or, after a ReLU, below."""
    for j in range(len(out)):
        out[j] = b[j]
    for i in range(len(x)):
        value = x[i]
        if value > 0.0:
            row = w[i]
            for j in range(len(out)):
                out[j] += value * row[j]


@kernel
def judge_actions(state, net, work):
    """Write the logit of every action of the seat to move into work.logits, legal or not, and which
    are legal into work.mask.
    """
    observe_features(state, state[PLAYER], work.counts, work.features)
    legal_mask(state, work.mask)
    arrange(state, work.features, work.mask, work.order, work.inputs)
    _layer(work.inputs, net.w1, net.b1, work.hidden)
    _layer(work.hidden, net.w2, net.b2, work.hidden2)
    _layer(work.hidden2, net.w3, net.b3, work.arranged)
    for action in range(len(work.arranged)):
        work.logits[real_action(action, work.order)] = work.arranged[action]


@kernel
def choose_by_policy(state, net, work):
    """The legal action with the highest logit, the lowest id of equals; the game is not over."""
    judge_actions(state, net, work)
    best = -1
    for action in range(state[ACTIONS]):
        if work.mask[action] and (best < 0 or work.logits[action] > work.logits[best]):
            best = action
    return best
