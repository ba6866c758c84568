"""Deal anew what a seat cannot see: the kernel behind determinising a game and dealing a position.

It reads what is public, the observer's own hand, and how many cards lie in each hidden zone; never
which.
"""

from __future__ import annotations

import numpy as np

from skipbo_env.engine.jit import kernel
from skipbo_env.engine.layout import (
    AT_DRAW,
    AT_SEEN,
    AT_STOCKS,
    BOARD,
    BOARD_CELLS,
    BOARDS,
    DECK,
    DRAW_HI,
    DRAW_LO,
    HAND_CELLS,
    HEADER,
    PLAYERS,
    RESHUFFLED,
    RESHUFFLES,
    STOCK_N,
    STOCK_SIZE,
    WILD,
)
from skipbo_env.engine.observe import unseen_counts
from skipbo_env.engine.rng import set_seed, shuffle


@kernel
def newer_cards(state, player):
    """How many cards of the other seats' hands were drawn since the last reshuffle for sure."""
    newer = 0
    for p in range(state[PLAYERS]):
        if p != player:
            newer += state[HEADER + HAND_CELLS * p] - state[state[AT_SEEN] + HAND_CELLS * p]
    return newer


@kernel(allocates=True, brief=True)
def deal_hidden(state, player, seed):
    """Deal other hands, the draw pile and the stocks below their tops from a seat's unseen cards.

    Before the first reshuffle all these zones are alike. After one, the draw pile holds reshuffled
    cards only, so it comes from those that the seat has not seen since, and so do as many cards of
    each hand as must have been drawn since. The stocks and the rest of the hands share what
    remains: the cards that were not reshuffled, and as many of the others as plays from hands of
    mixed age leave in doubt. What such a hand plays may be reshuffled or not, so a card of the same
    kind that is still unseen may be either, and may lie in a stock.

    The array keeps no trace of what was hidden before: its generator starts from the seed, unused
    cells of the draw zone are zero, and the SEEN zone is that of a reshuffle just done with the
    cards of the observer's pool, from which the others have drawn what they must have.

    Args:
        state: the game. The hidden zones need their sizes only: hand sizes, stock sizes, DRAW_LO
            and DRAW_HI. They must add up to the unseen cards.
        player: the observer.
        seed: 64 bits.
    """
    set_seed(state, seed)
    players = state[PLAYERS]
    seen = state[AT_SEEN] + HAND_CELLS * player
    if state[RESHUFFLES]:
        for card in range(1, WILD + 1):
            state[RESHUFFLED + card] = max(0, state[RESHUFFLED + card] - state[seen + card])
        state[seen] = state[HEADER + HAND_CELLS * player]
        for p in range(players):
            at = state[AT_SEEN] + HAND_CELLS * p
            for card in range(1, WILD + 1):
                state[at + card] = 0

    # All unseen cards in the draw zone: first those that may lie in the draw pile, then the others.
    counts = np.zeros(WILD + 1, dtype=np.int32)
    unseen_counts(state, player, counts)
    draw = state[AT_DRAW]
    drawn = state[DRAW_HI] - state[DRAW_LO]
    unseen = 0
    for card in range(1, WILD + 1):
        unseen += counts[card]
    for i in range(unseen, state[DECK]):
        state[draw + i] = 0
    front = 0
    back = unseen
    for card in range(1, WILD + 1):
        drawable = counts[card]
        if state[RESHUFFLES]:
            drawable = min(drawable, state[RESHUFFLED + card])
        for _ in range(drawable):
            state[draw + front] = card
            front += 1
        for _ in range(counts[card] - drawable):
            back -= 1
            state[draw + back] = card
    shuffle(state, draw, front)
    shuffle(state, draw + front, unseen - front)

    # The draw pile is the front part; then come the hands, newer cards first, and the stocks.
    stocks = 0
    for b in range(state[BOARDS]):
        stocks += max(0, state[BOARD + BOARD_CELLS * b + STOCK_N] - 1)
    at = unseen - stocks
    newer = 0
    if state[RESHUFFLES]:
        newer = max(0, min(newer_cards(state, player), front - drawn))
    if front < unseen:
        if drawn > front:  # told so by a position: the others fill the gap
            shuffle(state, draw, drawn)
        shuffle(state, draw + drawn + newer, unseen - drawn - newer)
    for b in range(state[BOARDS]):
        stock = state[AT_STOCKS] + b * state[STOCK_SIZE]
        for i in range(state[BOARD + BOARD_CELLS * b + STOCK_N] - 1):
            state[stock + i] = state[draw + at]
            at += 1
    new_at = drawn
    at = drawn + newer
    for p in range(players):
        if p != player:
            hand = HEADER + HAND_CELLS * p
            own = state[AT_SEEN] + HAND_CELLS * p
            for card in range(1, WILD + 1):
                state[hand + card] = 0
            older = state[own] if state[RESHUFFLES] else state[hand]
            for i in range(state[hand]):
                if i >= older and new_at < drawn + newer:
                    card = state[draw + new_at]
                    new_at += 1
                    state[own + card] += 1
                else:
                    card = state[draw + at]
                    at += 1
                state[hand + card] += 1
    for i in range(drawn, unseen):
        state[draw + i] = 0
    state[DRAW_LO] = 0
    state[DRAW_HI] = drawn
