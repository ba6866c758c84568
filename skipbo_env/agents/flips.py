"""Turn search that looks behind a flip: an ending by which a stock card flips is judged by what the
turn search makes of every card that it may show, weighted by how likely each is.

The network judges such an ending without knowing the card, and is off by several times as much as
where the turn is over. How likely a card is follows from what is public and the own hand: before
the first reshuffle any unseen card may lie in a stock; after it the reshuffled cards lie in the
draw pile and in hands, and the stocks hold the others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skipbo_env.agents.network import FLIP, S_END, Network, evaluate_slots
from skipbo_env.agents.turn import (
    MAX_NODES,
    Work,
    best_endings,
    fill_ending,
    judge_firsts,
    new_work,
    search,
    write_first,
    write_path,
)
from skipbo_env.engine.bits import lowest_bit
from skipbo_env.engine.hidden import newer_cards
from skipbo_env.engine.jit import kernel
from skipbo_env.engine.layout import (
    AT_SEEN,
    AT_STOCKS,
    BOARD,
    BOARD_CELLS,
    DRAW_HI,
    DRAW_LO,
    HAND_CELLS,
    HEIGHT,
    MUST_PLAY_STOCK,
    PLAYER,
    RESHUFFLED,
    RESHUFFLES,
    SIDES,
    STOCK_N,
    STOCK_SIZE,
    WILD,
    State,
)
from skipbo_env.engine.moves import A_HAND, A_STOCK2, apply, other_board, own_board, side_stock
from skipbo_env.engine.observe import unseen_counts

# What `docs/agents.md` has figures of: how far behind the best an ending may be to be compared with
# it, in win probability; how many are compared at most; and positions of a search behind a flip.
MARGIN = 0.08
COMPARED = 8
BEHIND_NODES = 96
LATER = 0.006  # what a flip that could have come sooner loses at least, in the mean
NOTED = 12  # endings that the search of the turn notes; some are one reached in two orders
ALMOST = 1.0 - 2.0**-53  # 1 itself is for a play that wins; sums of the weights may pass it
NOTED_BEHIND = 4  # endings that a search behind a flip notes, for other cards that may show


class Flips(NamedTuple):
    """Scratch space of a search that looks behind flips; one a thread.

    Attributes:
        outer: of the search of the turn.
        inner: of the searches behind a flip.
        after: a whole game, behind a flip.
        scratch: another one.
        weights: how likely each kind is to lie below a stock's top, float64 of shape (14,).
        counts: int32 of shape (14,).
        values: the best endings' win probabilities, float64 of shape (n,).
        guesses: what the network makes of them, float64 of shape (n,).
        plans: what leads to them, int64 of shape (n, actions).
        lengths: how many actions those are, int64 of shape (n,).
        slots: the endings, int32 of shape (n, slots).
        found: how many of them the last search compared, int64 of shape (1,); 0 where it had
            nothing to compare.
        better: the best compared value by first action, float64 of shape (256,), or (0,) where
            nobody asks for first actions.
    """

    outer: Work
    inner: Work
    after: State
    scratch: State
    weights: NDArray[np.float64]
    counts: NDArray[np.int32]
    values: NDArray[np.float64]
    guesses: NDArray[np.float64]
    plans: NDArray[np.int64]
    lengths: NDArray[np.int64]
    slots: NDArray[np.int32]
    found: NDArray[np.int64]
    better: NDArray[np.float64]


def new_inner(state: State, net: Network) -> Work:
    """Scratch space of the searches behind a flip, for `behind`."""
    return new_work(state, net, BEHIND_NODES, NOTED_BEHIND)


def new_flips(
    state: State, net: Network, max_nodes: int = MAX_NODES, *, firsts: bool = False
) -> Flips:
    """Scratch space for games like this one with networks like this one.

    Args:
        state: a game.
        net: a network.
        max_nodes: positions of the search of the turn, at most.
        firsts: whether first actions are judged, by `judge_firsts_flips`.
    """
    outer = new_work(state, net, max_nodes, NOTED, firsts=firsts)
    return Flips(
        outer=outer,
        inner=new_inner(state, net),
        after=np.zeros_like(state),
        scratch=np.zeros_like(state),
        weights=np.zeros(WILD + 1),
        counts=np.zeros(WILD + 1, np.int32),
        values=np.zeros(COMPARED),
        guesses=np.zeros(COMPARED),
        plans=np.zeros((COMPARED, len(outer.path)), np.int64),
        lengths=np.zeros(COMPARED, np.int64),
        slots=np.zeros((COMPARED, len(outer.ending)), np.int32),
        found=np.zeros(1, np.int64),
        better=np.zeros(256 * firsts),
    )


@kernel
def below_stocks(state, player, counts, weights):
    """How likely each kind is to lie under a stock's top, for what a seat has seen.

    As `engine.hidden.deal_hidden` deals: after a reshuffle the draw pile and the newer cards of
    other hands are reshuffled ones, and the stocks and the rest of the hands share what remains.

    Args:
        state: the game; some stock has a card under its top.
        player: the seat.
        counts: int32 scratch space of shape (14,).
        weights: float64 of shape (14,), filled; they add up to 1.
    """
    unseen_counts(state, player, counts)
    unseen = 0
    for card in range(1, WILD + 1):
        counts[card] = max(0, counts[card])
        unseen += counts[card]
    if not state[RESHUFFLES]:
        for card in range(1, WILD + 1):
            weights[card] = counts[card] / unseen
        return
    seen = state[AT_SEEN] + HAND_CELLS * player
    drawable = 0  # unseen cards that may lie in the draw pile
    for card in range(1, WILD + 1):
        weights[card] = min(counts[card], max(0, state[RESHUFFLED + card] - state[seen + card]))
        drawable += np.int64(weights[card])
    drawn = state[DRAW_HI] - state[DRAW_LO] + newer_cards(state, player)
    left = max(0, drawable - drawn)  # of the drawable ones, beside the others
    share = left / max(1, drawable)
    for card in range(1, WILD + 1):
        others = counts[card] - weights[card]
        weights[card] = (others + weights[card] * share) / (unseen - drawable + left)


@kernel
def _show(state, card, place, plan, length, after):
    """Carry out a plan in another game's array, where its flip shows a card."""
    for i in range(len(state)):
        after[i] = state[i]
    after[place] = card
    for i in range(length):
        apply(after, plan[i])


@kernel
def _cards_taken(work):
    """The cards that building piles take at the positions of the last search, as bits."""
    taken = np.int64(1) << WILD
    for node in range(work.info[0]):
        for b in range(4):
            taken |= np.int64(1) << np.int64(work.snaps[node, HEIGHT + b] + 1)
    return taken


@kernel
def _judge_after(state, net, work, node, action, scratch):
    """The value of an ending at a node of the last search, in a game that differs from the one
    searched in a stock top.
    """
    length = write_path(work, node, action, work.path)
    for i in range(len(state)):
        scratch[i] = state[i]
    for i in range(length - 1):
        apply(scratch, work.path[i])
    fill_ending(scratch, action, work)
    return evaluate_slots(net, work.ending, work.acc, work.hidden)


@kernel
def _judge_again(state, net, work, card, own, scratch):
    """What a search would find in a game that differs from the one searched last in a stock top,
    which no building pile took there.

    Args:
        state: the game; it is not changed.
        net: the network.
        work: the search's scratch space.
        card: its stock top.
        own: whether the stock is the mover's own, else it is the other one of its side that the
            mover may play from.
        scratch: another game's array, used up.
    """
    side = state[PLAYER] % state[SIDES]
    last = side_stock(state, side) == 1
    best = 0.0
    for node in range(work.info[0]):
        for b in range(4):
            if work.snaps[node, HEIGHT + b] == card - 1:
                if last:
                    return 1.0
                action = b if own else A_STOCK2 + b
                best = max(best, _judge_after(state, net, work, node, action, scratch))
                break
    for k in range(len(work.top_values)):
        if work.top_values[k] == -np.inf:
            break
        node, action = work.top[k, 0], work.top[k, 1]
        best = max(best, _judge_after(state, net, work, node, action, scratch))
    return best


@kernel
def behind(state, net, inner, after, scratch, weights, plan, length):
    """What an ending by a flip is worth: the turn search's values over the cards that may show.

    The positions within the turn are the same whatever shows, and so are the ways to end it, but
    for plays of that card. So there is a search for a wild and one for a card that no building pile
    takes; the others are judged by where piles take them and by the best endings of the latter.
    Where a rule lets the card forbid other plays, or piles take all of them, each has its search.

    Args:
        state: the game; it is not changed.
        net: the network.
        inner: scratch space of the searches behind the flip, from `new_inner`.
        after: another game's array, used up.
        scratch: another one.
        weights: how likely each kind is, from `below_stocks`.
        plan: the actions that lead to the ending; the last one plays a stock card.
        length: how many they are.

    Returns:
        The mover's side's probability to win, below 1; -1 where no card lies below the stock's top.
    """
    player = state[PLAYER]
    own = plan[length - 1] < A_HAND
    board = own_board(state, player) if own else other_board(state, player)
    if state[board + STOCK_N] < 2:
        return -1.0
    place = state[AT_STOCKS] + ((board - BOARD) // BOARD_CELLS) * state[STOCK_SIZE]
    place += state[board + STOCK_N] - 2
    nodes = len(inner.parents)
    value = 0.0
    must = state[MUST_PLAY_STOCK] != 0
    taken = np.int64(0)  # unknown until a search has seen all positions
    done = np.int64(0)
    shared = False  # whether the last search was for a card that no pile takes
    found = 0.0
    for card in range(WILD, 0, -1):
        if weights[card] == 0.0 or taken >> card & 1:
            continue
        _show(state, card, place, plan, length, after)
        # The random generators are for exploring alone: any array of 64 bits does.
        found, _ = search(after, net, inner, nodes, inner.sums, 0, 0.0)
        value += weights[card] * found
        done |= np.int64(1) << card
        if not taken and found < 1.0:  # the search stops where it finds a win
            taken = _cards_taken(inner)
            if must and taken >> card & 1:
                taken = np.int64(0)
        if taken and not taken >> card & 1:
            shared = inner.top_values[0] != -np.inf
            break
    # A win that it found is another stock's, whatever shows on this one.
    won = shared and found == 1.0
    for again in range(2):  # what the shared search answers comes first
        for card in range(1, WILD):
            if weights[card] == 0.0 or done >> card & 1:
                continue
            answered = shared and not (must and taken >> card & 1)
            if answered == (again == 1):
                continue
            if answered and won:
                value += weights[card]
                continue
            _show(state, card, place, plan, length, after)
            if answered:
                found = _judge_again(after, net, inner, card, own, scratch)
            else:
                found, _ = search(after, net, inner, nodes, inner.sums, 0, 0.0)
            value += weights[card] * found
    return min(value, ALMOST)


@kernel
def _pile(play):
    """The building pile that a play goes to."""
    return (play - A_STOCK2) & 3 if play >= A_STOCK2 else play & 3


@kernel
def _earlier(sooner, length, later, later_length):
    """Whether a plan flips the same card sooner than another: what else that one plays first can
    still be played after the flip.

    Args:
        sooner: the actions of the one, int64 (actions,); the last one plays a stock card.
        length: how many they are.
        later: those of the other.
        later_length: how many they are.
    """
    if length >= later_length or sooner[length - 1] != later[later_length - 1]:
        return False
    flip_pile = _pile(sooner[length - 1])
    for b in range(4):
        k = 0  # what the sooner plan plays on a pile has to be what the other begins with there
        for i in range(length):
            if _pile(sooner[i]) != b:
                continue
            while k < later_length and _pile(later[k]) != b:
                k += 1
            if k == later_length or later[k] != sooner[i]:
                return False
            k += 1
        if b == flip_pile and k < later_length:
            return False
    return True


@kernel
def _compare(state, net, flips, value):
    """Look behind the flips among the endings that the last search of the turn found best.

    An ending by a flip that could have come sooner is worth no more than the sooner one, behind
    which all is still possible. It is not looked behind: it falls short of that one by as much as
    the network says, and by LATER at least.

    Args:
        state: the game that was searched.
        net: the network.
        flips: scratch space; afterwards flips.found[0] tells how many endings were compared.
        value: the best ending's value.

    Returns:
        Which of them is best; -1 where there was nothing to compare.
    """
    flips.found[0] = 0
    found = best_endings(
        state, flips.outer, flips.after, flips.values, flips.plans, flips.lengths, flips.slots
    )
    near = 0
    flip = False
    for k in range(found):
        if flips.values[k] < value - MARGIN:
            break
        near += 1
        flip = flip or flips.slots[k, S_END] == FLIP
    if near < 2 or not flip:
        return -1
    below_stocks(state, state[PLAYER], flips.counts, flips.weights)
    later = np.int64(0)  # endings by a flip that could have come sooner, as bits
    for k in range(near):
        flips.guesses[k] = flips.values[k]
        for j in range(near):
            if (
                state[MUST_PLAY_STOCK] == 0  # else the card that shows may forbid the other plays
                and flips.slots[k, S_END] == FLIP
                and flips.slots[j, S_END] == FLIP
                and _earlier(flips.plans[j], flips.lengths[j], flips.plans[k], flips.lengths[k])
            ):
                later |= np.int64(1) << k
                break
    for k in range(near):
        if flips.slots[k, S_END] == FLIP and not later >> k & 1:
            there = behind(
                state,
                net,
                flips.inner,
                flips.after,
                flips.scratch,
                flips.weights,
                flips.plans[k],
                flips.lengths[k],
            )
            if there >= 0.0:
                flips.values[k] = there
    best = 0
    for k in range(near):
        if later >> k & 1:
            least = 1.0
            for j in range(near):
                if (
                    flips.slots[j, S_END] == FLIP
                    and not later >> j & 1
                    and _earlier(flips.plans[j], flips.lengths[j], flips.plans[k], flips.lengths[k])
                ):
                    short = max(LATER, flips.guesses[j] - flips.guesses[k])
                    least = min(least, flips.values[j] - short)
            flips.values[k] = max(0.0, least)
        if flips.values[k] > flips.values[best]:
            best = k
    flips.found[0] = near
    return best


@kernel
def search_flips(state, net, flips, max_nodes, look, streams, stream, explore):
    """Find the best way to end the turn, flips looked behind.

    Endings whose value is within a margin of the best one's are compared: those by a flip by what
    lies behind, the others by their value. Where there is one such ending, or no flip among them,
    this is `turn.search`.

    Args:
        state: the game, not over; it is not changed.
        net: the network.
        flips: scratch space; afterwards flips.outer.path holds the actions of the chosen ending,
            flips.outer.info its numbers as after `turn.search`, and the first flips.found[0]
            entries of flips.values and flips.slots the endings that were compared.
        max_nodes: positions of the search of the turn, at most.
        look: whether to look behind flips; where not, this is `turn.search`.
        streams: uint64 states of random generators (for `explore`).
        stream: which of them to use.
        explore: as for `turn.search`; flips are looked behind at 0.0 only.

    Returns:
        (value, actions): as `turn.search`.
    """
    work = flips.outer
    flips.found[0] = 0
    value, length = search(state, net, work, max_nodes, streams, stream, explore)
    if not look or explore != 0.0 or work.info[1] < 2 or value == 1.0:
        return value, length
    best = _compare(state, net, flips, value)
    if best < 0:
        return value, length
    length = flips.lengths[best]
    for i in range(length):
        work.path[i] = flips.plans[best, i]
    for i in range(len(work.best)):
        work.best[i] = flips.slots[best, i]
    work.info[2] = flips.slots[best, S_END]
    work.peak[0] = flips.values[best]
    return flips.values[best], length


@kernel
def _take_firsts(flips, place, value, better):
    """Let the first actions that lead to a noted ending have its value, if it is their best one."""
    work = flips.outer
    node = work.top[place, 0]
    for word in range(4):
        if node:
            bits = work.leads[node, word] if word < 3 else np.uint64(0)
        else:
            bits = np.uint64(0)
            if work.top[place, 1] >> 6 == word:
                bits = np.uint64(1) << np.uint64(work.top[place, 1] & 63)
        while bits:
            first = 64 * word + np.int64(lowest_bit(bits))
            bits &= bits - np.uint64(1)
            if value > better[first]:
                better[first] = value
                work.first_ends[first, 0] = node
                work.first_ends[first, 1] = work.top[place, 1]


@kernel
def judge_firsts_flips(state, net, flips, max_nodes, look, streams, firsts, values, lines, lengths):
    """`turn.judge_firsts`, flips looked behind: the best action is that of `search_flips`, and none
    is worth more. An action that leads to an ending that was compared has the best such value.

    Args:
        state: the game, not over; it is not changed.
        net: the network.
        flips: scratch space made for `firsts`.
        max_nodes: positions within the turn to look at, at most.
        look: whether to look behind flips.
        streams: uint64 states of random generators, unused.
        firsts: int64 (n,), legal actions.
        values: float64 (n,), filled as by `turn.judge_firsts`, like the next two.
        lines: int64 (n, len(flips.outer.path)).
        lengths: int64 (n,).

    Returns:
        Whether the search looked at everything; else its values are not the best there are.
    """
    work = flips.outer
    flips.found[0] = 0
    whole = judge_firsts(state, net, work, max_nodes, streams, firsts, values, lines, lengths)
    if not look or work.info[1] < 2 or work.peak[0] == 1.0:
        return whole
    best = _compare(state, net, flips, work.peak[0])
    if best < 0:
        return whole
    flips.better[:] = -1.0
    for place in range(len(work.top_values)):
        k = work.top[place, 2]
        if 0 <= k < flips.found[0]:
            _take_firsts(flips, place, flips.values[k], flips.better)
    for i in range(len(firsts)):
        if flips.better[firsts[i]] >= 0.0:
            values[i] = flips.better[firsts[i]]
            lengths[i] = write_first(state, work, firsts[i], lines[i])
        elif values[i] > flips.values[best]:
            values[i] = flips.values[best]
    return whole
