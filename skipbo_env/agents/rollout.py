"""Rollouts of a turn's endings: the kernels under `search`.

A rollout deals the hidden cards anew from what the mover has not seen, plays the turn to one of its
endings, lets the turn search play every seat for some turns, and takes the value of the search that
comes next. Rollouts of the same sample number are dealt the same cards, whichever ending they are
for, so that differences between endings are those of the endings.

What luck the sample had with wilds is kept beside its value: each wild drawn, dealt or shown less
the share of wilds in the pile that it came from. Its mean is zero whatever is played, so that a
regression on it takes noise out and nothing else.
"""

from __future__ import annotations

import numpy as np

from skipbo_env.agents.turn import search
from skipbo_env.engine.hidden import deal_hidden
from skipbo_env.engine.jit import inlined, kernel
from skipbo_env.engine.layout import (
    AT_DRAW,
    AT_STOCKS,
    BOARD,
    BOARD_CELLS,
    DRAW_HI,
    DRAW_LO,
    HAND_CELLS,
    HEADER,
    PLAYER,
    PLAYERS,
    REASON,
    RESHUFFLES,
    SIDES,
    STOCK_N,
    STOCK_SIZE,
    STOCK_TOP,
    TURNS,
    WILD,
    WINNER,
)
from skipbo_env.engine.moves import (
    A_DISCARD,
    A_DISCARD2,
    A_END2,
    A_HAND,
    A_PASS,
    A_STOCK2,
    apply,
    other_board,
    own_board,
)
from skipbo_env.engine.observe import unseen_counts
from skipbo_env.engine.rng import mix64

LUCKS = 2  # kinds of luck that are told apart: cards drawn or dealt, stock cards shown


@kernel
def _share(state, seat, side):
    """What a seat's gain is to a side: 1 for its own seats, minus an equal share for others."""
    sides = state[SIDES]
    return 1.0 if seat % sides == side else -1.0 / (sides - 1)


@kernel
def _dealt_luck(state, player, side, counts):
    """Wilds in the other hands as dealt, less those to expect; 0 after a reshuffle, when not every
    unseen card may lie anywhere.
    """
    if state[RESHUFFLES]:
        return 0.0
    unseen_counts(state, player, counts)
    total = 0
    for card in range(1, WILD + 1):
        total += counts[card]
    luck = 0.0
    for seat in range(state[PLAYERS]):
        if seat != player and total > 0:
            hand = HEADER + HAND_CELLS * seat
            surplus = state[hand + WILD] - state[hand] * counts[WILD] / total
            luck += _share(state, seat, side) * surplus
    return luck


@kernel
def _wilds_held(state):
    """Wilds in all hands together."""
    wilds = 0
    for seat in range(state[PLAYERS]):
        wilds += state[HEADER + HAND_CELLS * seat + WILD]
    return wilds


@kernel
def _takes_wild(action):
    """1 where an action takes a wild out of the hand, else 0."""
    played = A_DISCARD - 4 <= action < A_DISCARD
    discarded = A_PASS - 4 <= action < A_PASS or action >= A_END2 + 48
    return 1 if played or discarded else 0


@kernel
def _step(state, action, side, luck):
    """Do an action and add the luck of the cards that it brings to light.

    Args:
        state: the game.
        action: a legal action.
        side: whose luck.
        luck: float32 (LUCKS,), added to.
    """
    player = state[PLAYER]
    low = state[DRAW_LO]
    high = state[DRAW_HI]
    reshuffles = state[RESHUFFLES]
    wilds = _wilds_held(state) - _takes_wild(action)
    board = 0
    if action < A_HAND:
        board = own_board(state, player)
    elif A_STOCK2 <= action < A_DISCARD2:
        board = other_board(state, player)
    apply(state, action)
    if board and state[board + STOCK_N] > 0:
        left = state[board + STOCK_N]
        at = state[AT_STOCKS] + (board - BOARD) // BOARD_CELLS * state[STOCK_SIZE]
        hidden = 0
        for i in range(left):
            hidden += state[at + i] == WILD
        surplus = (state[board + STOCK_TOP] == WILD) - hidden / left
        luck[1] += _share(state, player, side) * surplus
    drawn = state[DRAW_LO] - low + high - state[DRAW_HI]
    if state[RESHUFFLES] == reshuffles and drawn > 0:
        pile = 0
        for i in range(low, high):
            pile += state[state[AT_DRAW] + i] == WILD
        surplus = _wilds_held(state) - wilds - drawn * pile / (high - low)
        luck[0] += _share(state, state[PLAYER], side) * surplus


@kernel
def _result(state, side):
    """What a finished game is worth to a side: 1, 0, or an equal share where nobody won."""
    if state[WINNER] < 0:
        return 1.0 / state[SIDES]
    return 1.0 if state[WINNER] == side else 0.0


@kernel(allocates=True)
def roll_out(
    start,
    plans,
    lengths,
    jobs,
    first,
    last,
    seed,
    turns,
    net,
    work,
    max_nodes,
    sim,
    counts,
    streams,
    values,
    lucks,
):
    """Play rollouts and write what they came to.

    Args:
        start: the game whose seat to move asks; nothing hidden in it matters.
        plans: int64 (endings, actions): the actions that lead to each ending.
        lengths: int64 (endings,): how many they are.
        jobs: int64 (jobs, 2): an ending and a sample number each.
        first: the first job to do.
        last: the job to stop before.
        seed: uint64; with the sample number it decides what is dealt.
        turns: whole turns to play after the one that asks. With more than two sides it goes on to
            the next turn of the side that asks, the only one whose value the network tells.
        net: the network.
        work: scratch space of the turn search.
        max_nodes: its limit.
        sim: another game's array, used up.
        counts: int32 (14,), used up.
        streams: uint64 (1,), not read: nothing in the turn search is random.
        values: float32 (endings, samples): written with the asking side's probability to win.
        lucks: float32 (endings, samples, LUCKS): written with its luck.
    """
    player = start[PLAYER]
    side = player % start[SIDES]
    for job in range(first, last):
        which = jobs[job, 0]
        sample = jobs[job, 1]
        for i in range(len(start)):
            sim[i] = start[i]
        deal_hidden(sim, player, mix64(seed + np.uint64(sample) * np.uint64(0x9E3779B97F4A7C15)))
        luck = lucks[which, sample]
        luck[0] = _dealt_luck(sim, player, side, counts)
        luck[1] = 0.0
        until = sim[TURNS] + turns
        for i in range(lengths[which]):
            _step(sim, plans[which, i], side, luck)
        while True:
            if sim[REASON]:
                value = _result(sim, side)
                break
            value, n = search(sim, net, work, max_nodes, streams, 0, 0.0)
            own = sim[PLAYER] % sim[SIDES] == side
            if sim[TURNS] > until and (own or sim[SIDES] == 2):
                if not own:
                    value = 1.0 - value
                break
            for i in range(n):
                _step(sim, work.path[i], side, luck)
        values[which, sample] = value


@kernel
def luck_weights(values, lucks, counts, weights):
    """Regress the values on the luck, within each ending: what a unit of luck is worth.

    Args:
        values: float32 (endings, samples).
        lucks: float32 (endings, samples, LUCKS).
        counts: int64 (endings,): how many samples each has.
        weights: float64 (LUCKS,), written; zeros where there are too few samples.
    """
    a = b = c = x = y = 0.0
    total = 0
    for e in range(len(counts)):
        n = counts[e]
        if n < 2:
            continue
        total += n - 1
        mean = first = second = 0.0
        for s in range(n):
            mean += values[e, s]
            first += lucks[e, s, 0]
            second += lucks[e, s, 1]
        mean /= n
        first /= n
        second /= n
        for s in range(n):
            d0 = lucks[e, s, 0] - first
            d1 = lucks[e, s, 1] - second
            v = values[e, s] - mean
            a += d0 * d0
            b += d0 * d1
            c += d1 * d1
            x += d0 * v
            y += d1 * v
    weights[0] = weights[1] = 0.0
    if total < 24:
        return
    # Ridge: without stock cards shown the second column is all zeros.
    a += 1.0e-3 * total
    c += 1.0e-3 * total
    det = a * c - b * b
    weights[0] = (c * x - b * y) / det
    weights[1] = (a * y - b * x) / det


@inlined
def _without_luck(values, lucks, weights, e, s):
    """A sample's value, what its luck was worth taken out."""
    return values[e, s] - weights[0] * lucks[e, s, 0] - weights[1] * lucks[e, s, 1]


@kernel
def moments(values, lucks, counts, weights, reference, out):
    """Means and spreads of the endings' values, their luck taken out, and of their differences to
    the reference over the samples that both have.

    Args:
        values: float32 (endings, samples).
        lucks: float32 (endings, samples, LUCKS).
        counts: int64 (endings,).
        weights: float64 (LUCKS,).
        reference: the ending that the differences are to.
        out: float64 (endings, 6), written: mean, variance; pairs, mean difference, its variance,
            covariance of the reference with it. Variances are those of one sample, with n - 1.
    """
    for e in range(len(counts)):
        n = counts[e]
        mean = 0.0
        for s in range(n):
            mean += _without_luck(values, lucks, weights, e, s)
        mean = mean / n if n else 0.0
        square = 0.0
        for s in range(n):
            v = _without_luck(values, lucks, weights, e, s) - mean
            square += v * v
        out[e, 0] = mean
        out[e, 1] = square / (n - 1) if n > 1 else 0.0
        pairs = min(n, counts[reference])
        difference = level = 0.0
        for s in range(pairs):
            v = _without_luck(values, lucks, weights, e, s)
            r = _without_luck(values, lucks, weights, reference, s)
            difference += v - r
            level += r
        if pairs:
            difference /= pairs
            level /= pairs
        square = product = 0.0
        for s in range(pairs):
            v = _without_luck(values, lucks, weights, e, s)
            r = _without_luck(values, lucks, weights, reference, s)
            square += (v - r - difference) ** 2
            product += (v - r - difference) * (r - level)
        out[e, 2] = pairs
        out[e, 3] = difference
        out[e, 4] = square / (pairs - 1) if pairs > 1 else 0.0
        out[e, 5] = product / (pairs - 1) if pairs > 1 else 0.0
