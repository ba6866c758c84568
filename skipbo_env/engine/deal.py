"""Shuffle and deal: a fresh game in an array that has its rules. The first turn draws a hand."""

from __future__ import annotations

import numpy as np

from skipbo_env.engine.jit import kernel
from skipbo_env.engine.layout import (
    AT_DRAW,
    AT_HANDS,
    AT_STOCKS,
    BOARD,
    BOARD_CELLS,
    BOARDS,
    COMPLETED_SIZE,
    COPIES,
    DECK,
    DRAW_HI,
    DRAW_LO,
    FIRST_PLAYER,
    HEADER,
    HEIGHT,
    PASSES,
    PLAYER,
    PLAYERS,
    REASON,
    RESHUFFLES,
    SCRIPT_FAULT,
    STOCK_N,
    STOCK_SIZE,
    STOCK_TOP,
    TURNS,
    WILD,
    WINNER,
)
from skipbo_env.engine.moves import begin_turn
from skipbo_env.engine.rng import below, set_seed, shuffle


@kernel
def clear(state):
    """Take every card off the table; the rules, the first player and the generator stay."""
    state[SCRIPT_FAULT] = 0
    state[PASSES] = state[TURNS] = state[REASON] = 0
    state[WINNER] = -1
    state[DRAW_LO] = state[DRAW_HI] = state[COMPLETED_SIZE] = state[RESHUFFLES] = 0
    for i in range(HEIGHT, HEADER):
        state[i] = 0
    for i in range(state[AT_HANDS], state[AT_STOCKS]):
        state[i] = 0


@kernel
def lay_out(state, first_player):
    """Deal the deck that lies in the draw zone: stocks board by board, bottom first, then the rest.

    Then the first player's turn begins with its draw.
    """
    size = state[STOCK_SIZE]
    boards = state[BOARDS]
    draw = state[AT_DRAW]
    used = boards * size
    for i in range(used):
        state[state[AT_STOCKS] + i] = state[draw + i]
    for b in range(boards):
        at = BOARD + BOARD_CELLS * b
        state[at + STOCK_N] = size
        state[at + STOCK_TOP] = state[state[AT_STOCKS] + (b + 1) * size - 1]
    left = state[DECK] - used
    for i in range(left):
        state[draw + i] = state[draw + used + i]
    state[DRAW_LO] = 0
    state[DRAW_HI] = left
    state[FIRST_PLAYER] = first_player
    state[PLAYER] = first_player
    begin_turn(state)


@kernel(brief=True)
def deal(state, seed, first_player):
    """Deal a new game from a 64-bit seed.

    Args:
        state: an array with its rules; whatever was on the table is cleared.
        seed: the game's seed; equal seeds are equal games for equal choices.
        first_player: a seat, or -1 to draw it from the seed.
    """
    clear(state)
    set_seed(state, seed)
    at = state[AT_DRAW]
    for card in range(1, WILD):
        for _ in range(state[COPIES]):
            state[at] = card
            at += 1
    for i in range(at, state[AT_DRAW] + state[DECK]):
        state[i] = WILD
    shuffle(state, state[AT_DRAW], state[DECK])
    # Drawn always, so that the deal does not depend on the setting.
    chosen = below(state, np.int64(state[PLAYERS]))
    lay_out(state, first_player if first_player >= 0 else chosen)


@kernel(brief=True)
def deal_cards(state, cards, first_player, seed):
    """Deal the given deck: stocks board by board, bottom first, then the draw pile in its order.

    Args:
        state: an array with its rules.
        cards: all cards of the deck, shape (DECK,); the caller has checked that they are the deck.
        first_player: the seat that begins.
        seed: what later reshuffles come from.
    """
    clear(state)
    set_seed(state, seed)
    for i in range(state[DECK]):
        state[state[AT_DRAW] + i] = cards[i]
    lay_out(state, first_player)
