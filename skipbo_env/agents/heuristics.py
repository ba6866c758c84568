"""Rule-based agents as kernels: random, play-first, simple and greedy. They read what the mover may
see, nothing else.

    random       uniform over the legal actions
    play-first   uniform over the legal plays if there are any, else over the rest
    simple       the own stock's top if it fits (in a team either stock's); else the first legal
                 play of a natural card; else a wild, from hand or an own discard top, on a pile of
                 a height two below the own stock's top; else a random discard of a natural card;
                 else a random legal action
    greedy       see `greedy`; fixed for good, since every published figure is measured against it

"First" and all ties go by the lowest action id.
"""

from __future__ import annotations

import numpy as np

from skipbo_env.engine.bits import lowest_bit
from skipbo_env.engine.jit import kernel
from skipbo_env.engine.layout import (
    AT_DISCARDS,
    BOARD,
    BOARD_CELLS,
    DECK,
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
    A_STOCK2,
    count_words,
    legal_words,
    nth_action,
    other_board,
    own_board,
)
from skipbo_env.engine.rng import stream_below

RANDOM, PLAY_FIRST, SIMPLE, GREEDY = range(4)
HEURISTICS = ("random", "play-first", "simple", "greedy")

_OWN_STOCK = np.uint64(15)
_OTHER_STOCK_LOW = np.uint64(7 << (A_STOCK2 - 64))
_PLAYS_1 = np.uint64(0xFF) | np.uint64(
    7 << (A_STOCK2 - 64)
)  # of word 1: own discard tops, other stock
_PLAYS_2 = np.uint64(0x1FFFF)  # of word 2: other stock on pile 3, the other board's discard tops
_NATURAL_ENDS_1 = np.uint64(((1 << 48) - 1) << (A_END - 64))
_NATURAL_ENDS_2 = np.uint64((1 << 64) - (1 << (A_END2 - 128)))
_NATURAL_HAND = np.uint64((1 << 52) - (1 << A_HAND))


@kernel
def has_action(words, action):
    """Whether the bits of `legal_words` hold the action."""
    w0, w1, w2, w3 = words
    word = w0 if action < 64 else w1 if action < 128 else w2 if action < 192 else w3
    return (word >> np.uint64(action & 63)) & np.uint64(1) == np.uint64(1)


@kernel
def _plays(words):
    w0, w1, w2, _ = words
    return w0, w1 & _PLAYS_1, w2 & _PLAYS_2, np.uint64(0)


@kernel
def _stock_play(words):
    """The first legal stock play, or -1."""
    w0, w1, w2, _ = words
    if w0 & _OWN_STOCK:
        return np.int64(lowest_bit(w0 & _OWN_STOCK))
    if w1 & _OTHER_STOCK_LOW:
        return 64 + np.int64(lowest_bit(w1 & _OTHER_STOCK_LOW))
    if w2 & np.uint64(1):
        return 128
    return -1


@kernel
def _natural_discard_play(state, words, board, first):
    """The first legal play of a natural discard top of the board, or -1."""
    for d in range(4):
        if state[board + TOP + d] != WILD:
            for b in range(4):
                if has_action(words, first + 4 * d + b):
                    return first + 4 * d + b
    return -1


@kernel
def simple(state, words, streams, i):
    """The choice of "simple"; randomness from generator i of the streams."""
    action = _stock_play(words)
    if action >= 0:
        return action
    naturals = words[0] & _NATURAL_HAND
    if naturals:
        return np.int64(lowest_bit(naturals))
    player = state[PLAYER]
    own = own_board(state, player)
    hand = HEADER + HAND_CELLS * player
    action = _natural_discard_play(state, words, own, A_DISCARD)
    if action < 0 and state[TEAMS]:
        action = _natural_discard_play(state, words, other_board(state, player), A_DISCARD2)
    if action >= 0:
        return action
    top = state[own + STOCK_TOP]
    if top:
        for b in range(4):
            if state[HEIGHT + b] == top - 2:
                if has_action(words, A_HAND + 48 + b):
                    return A_HAND + 48 + b
                for d in range(4):
                    if state[own + TOP + d] == WILD:
                        return A_DISCARD + 4 * d + b
    natural_ends = (
        np.uint64(0),
        words[1] & _NATURAL_ENDS_1,
        words[2] & _NATURAL_ENDS_2,
        words[3] & np.uint64(1),
    )
    n = count_words(natural_ends)
    if n and state[hand]:
        return nth_action(natural_ends, stream_below(streams, i, n))
    return nth_action(words, stream_below(streams, i, count_words(words)))


@kernel
def _chain(state, hand, board, b, target):
    """The cards that would bring building pile b to where the target fits, each from the best
    place.

    Naturals come from the hand, then from discard tops (cards that the chain itself frees
    included); missing ranks take a wild from the hand, then a wild discard top.

    Returns:
        (wilds used, cards laid, id of the first play); (99, 99, -1) where the chain cannot be laid.
    """
    first_pile = state[AT_DISCARDS] + 4 * ((board - BOARD) // BOARD_CELLS) * state[DECK]
    hand_wilds = state[hand + WILD]
    taken = 0  # 16 bits a discard pile: how many of its cards the chain has used
    wilds = length = 0
    first = -1
    rank = state[HEIGHT + b] + 1
    while rank != target:
        action = -1
        if state[hand + rank] > 0:
            action = A_HAND + 4 * (rank - 1) + b
        else:
            wild_pile = -1
            for d in range(4):
                left = state[board + DEPTH + d] - (taken >> (16 * d) & 0xFFFF)
                if left > 0:
                    card = state[first_pile + d * state[DECK] + left - 1]
                    if card == rank:
                        action = A_DISCARD + 4 * d + b
                        taken += 1 << (16 * d)
                        break
                    if card == WILD and wild_pile < 0:
                        wild_pile = d
            if action < 0:
                wilds += 1
                if hand_wilds > 0:
                    hand_wilds -= 1
                    action = A_HAND + 48 + b
                elif wild_pile >= 0:
                    action = A_DISCARD + 4 * wild_pile + b
                    taken += 1 << (16 * wild_pile)
                else:
                    return 99, 99, -1
        if first < 0:
            first = action
        length += 1
        rank = rank + 1 if rank < 12 else 1
    return wilds, length, first


@kernel
def _best_chain(state, hand, board, target):
    """First play of the chain with the fewest wilds, then cards, then the lowest pile, that frees
    the target; -1 for none.
    """
    fewest, shortest, best = 99, 99, -1
    for b in range(4):
        wilds, length, first = _chain(state, hand, board, b, target)
        if first >= 0 and (wilds < fewest or (wilds == fewest and length < shortest)):
            fewest, shortest, best = wilds, length, first
    return best


@kernel
def discard_merit(card, top, depth):
    """How well a card lies on a discard pile: runs that descend by one first, then equals, then an
    empty pile.

    100 on a top one higher; 60 on an equal; 40 + card on an empty pile; 30 - 3 x gap on a higher
    top; -60 on a wild; -20 - 2 x gap - depth on a lower top, which buries it. A wild costs 1,000
    wherever it goes.
    """
    merit = -1000 if card == WILD else 0
    if top == 0:
        return merit + 40 + card
    if top == WILD:
        return merit - 60
    if top == card:
        return merit + 60
    if top == card + 1:
        return merit + 100
    if top > card:
        return merit + 30 - 3 * (top - card)
    return merit - 20 - 2 * (card - top) - depth


@kernel
def greedy(state, words):
    """The choice of "greedy", an exact decision list; ties go to the lowest action id.

    1. A stock top that fits (the own one first) is played.
    2. The chain of plays that frees the own stock's top with the fewest wilds (then the fewest
       cards) is begun, from hand and own discard piles, however many wilds it takes; in a team,
       failing that, one that frees the partner's top.
    3. A natural hand card that fits is played. Discard tops and wilds are held for chains.
    4. The discard of the highest `discard_merit` ends the turn.
    5. Where nothing of this is legal: the lowest legal action.

    Measured when this was written (10,000 pairs of games each): holding the discard tops in step 3
    gains 0.9 points against playing them; a limit of one or two wilds in step 2, playing hand cards
    from high to low, and laying a last wild to refill the hand gain nothing.
    """
    action = _stock_play(words)
    if action >= 0:
        return action
    player = state[PLAYER]
    own = own_board(state, player)
    hand = HEADER + HAND_CELLS * player
    if state[own + STOCK_TOP]:
        action = _best_chain(state, hand, own, state[own + STOCK_TOP])
        if action >= 0:
            return action
    if state[TEAMS]:
        partner_top = state[other_board(state, player) + STOCK_TOP]
        if partner_top:
            action = _best_chain(state, hand, own, partner_top)
            if action >= 0:
                return action
    naturals = words[0] & _NATURAL_HAND
    if naturals:
        return np.int64(lowest_bit(naturals))
    best, choice = -1_000_000, -1
    for card in range(1, WILD + 1):
        if state[hand + card]:
            for d in range(4):
                end = A_END + 4 * (card - 1) + d
                if has_action(words, end):
                    merit = discard_merit(card, state[own + TOP + d], state[own + DEPTH + d])
                    if merit > best:
                        best, choice = merit, end
    if words[2] | words[3]:
        other = other_board(state, player)
        for card in range(1, WILD + 1):
            for d in range(4):
                end = A_END2 + 4 * (card - 1) + d
                if has_action(words, end):
                    merit = discard_merit(card, state[other + TOP + d], state[other + DEPTH + d])
                    if merit > best:
                        best, choice = merit, end
    return choice if choice >= 0 else nth_action(words, 0)


@kernel
def choose(kind, state, words, streams, i):
    """The action of a rule-based agent for the seat to move.

    Args:
        kind: RANDOM, PLAY_FIRST, SIMPLE or GREEDY.
        state: the game, not over.
        words: its `legal_words`.
        streams: uint64 states of random generators.
        i: the generator to use.
    """
    if kind == GREEDY:
        return greedy(state, words)
    if kind == SIMPLE:
        return simple(state, words, streams, i)
    if kind == PLAY_FIRST:
        plays = _plays(words)
        n = count_words(plays)
        if n:
            return nth_action(plays, stream_below(streams, i, n))
    return nth_action(words, stream_below(streams, i, count_words(words)))


@kernel(brief=True)
def choose_now(kind, state, streams):
    """`choose` for a game whose legal actions are not at hand, with the first generator."""
    return choose(kind, state, legal_words(state), streams, 0)
