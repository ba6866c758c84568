"""Whole games between compiled agents, and the luck of their cards: the kernel under the arena and
the learner's evaluation.

A seat's agent is a number: a rule-based kind (see `heuristics`), NETWORK + k for turn search on the
k-th of two networks, or POLICY + k for the choice of the k-th of two policies.

Luck is counted in wilds, by far the best cards: for every hidden card that comes to a side (drawn,
or flipped on its stock) one if it is a wild, less the probability of that. The probability is that
of somebody who has seen every hand and every card laid so far, and to whom the hidden cards are in
random order: before the first reshuffle draw pile and stocks are one lot of unknown cards, after it
two. So the sum has mean zero whatever the players do, as long as none of them sees a hidden card,
and can be taken out of a result without bias (a control variate).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skipbo_env.agents.flips import search_flips
from skipbo_env.agents.heuristics import choose
from skipbo_env.agents.policy import choose_by_policy
from skipbo_env.agents.turn import search
from skipbo_env.engine.deal import deal
from skipbo_env.engine.jit import kernel
from skipbo_env.engine.layout import (
    AT_DRAW,
    AT_STOCKS,
    BOARD,
    BOARD_CELLS,
    BOARDS,
    DRAW_HI,
    DRAW_LO,
    HAND_CELLS,
    HEADER,
    PLAYER,
    PLAYERS,
    REASON,
    RESHUFFLED,
    RESHUFFLES,
    SIDES,
    STOCK_N,
    STOCK_SIZE,
    STOCK_TOP,
    WILD,
    WILDS,
    WINNER,
)
from skipbo_env.engine.moves import apply, legal_words
from skipbo_env.engine.rng import mix64

NETWORK = 16
POLICY = 32
DRAWN, FLIPPED = range(2)  # the two kinds of luck
# What `add_luck` remembers from call to call: cards and wilds in the draw pile, cards and wilds
# below the stocks' tops, reshuffles, the mover; then each board's stock size, each seat's wilds.
_PILE, _PILE_WILDS, _BELOW, _BELOW_WILDS, _RESHUFFLES, _MOVER = range(6)
_STOCKS, _HANDS = 6, 12


def new_tally() -> NDArray[np.int64]:
    """Scratch space of the luck kernels: what they remember of a game from call to call."""
    return np.zeros(_HANDS + 12, np.int64)


@kernel
def _pile_wilds(state):
    """Wilds in the draw pile."""
    wilds = 0
    for i in range(state[DRAW_LO], state[DRAW_HI]):
        wilds += state[state[AT_DRAW] + i] == WILD
    return wilds


@kernel
def start_luck(state, tally, luck):
    """Begin to count: a game just dealt, whose first player has drawn.

    Args:
        state: the game.
        tally: from `new_tally`; filled.
        luck: float64 (sides, 2), set to what the deal's open cards and the first hand were worth:
            DRAWN from the draw pile, FLIPPED on the stocks.
    """
    for side in range(luck.shape[0]):
        luck[side, DRAWN] = luck[side, FLIPPED] = 0.0
    pile, below = state[DRAW_HI] - state[DRAW_LO], 0
    pile_wilds, below_wilds = _pile_wilds(state), 0
    for b in range(state[BOARDS]):
        board = BOARD + BOARD_CELLS * b
        stock = state[AT_STOCKS] + b * state[STOCK_SIZE]
        tally[_STOCKS + b] = state[board + STOCK_N]
        for i in range(state[board + STOCK_N] - 1):
            below += 1
            below_wilds += state[stock + i] == WILD
    first = state[PLAYER]
    hand = HEADER + HAND_CELLS * first
    cards = pile + below + state[hand] + state[BOARDS]
    wilds = np.int64(state[WILDS])
    for b in range(state[BOARDS]):
        is_wild = state[BOARD + BOARD_CELLS * b + STOCK_TOP] == WILD
        luck[b % state[SIDES], FLIPPED] += is_wild - wilds / cards
        wilds -= is_wild
        cards -= 1
    if state[hand]:
        luck[first % state[SIDES], DRAWN] += state[hand + WILD] - state[hand] * wilds / cards
    tally[_PILE], tally[_PILE_WILDS] = pile, pile_wilds
    tally[_BELOW], tally[_BELOW_WILDS] = below, below_wilds
    tally[_RESHUFFLES], tally[_MOVER] = state[RESHUFFLES], first
    for p in range(state[PLAYERS]):
        tally[_HANDS + p] = state[HEADER + HAND_CELLS * p + WILD]


@kernel
def add_luck(state, tally, luck):
    """Add what the hidden cards were worth that came to light since the last call.

    Args:
        state: the game after one action, or after several of which only the last one showed a
            hidden card.
        tally: as the last call left it.
        luck: float64 (sides, 2), added to.
    """
    sides = state[SIDES]
    mover = tally[_MOVER]
    # A stock card of the mover's side was played: the next one shows.
    for b in range(state[BOARDS]):
        board = BOARD + BOARD_CELLS * b
        if state[board + STOCK_N] < tally[_STOCKS + b]:
            tally[_STOCKS + b] = state[board + STOCK_N]
            if state[board + STOCK_N] > 0:
                cards, wilds = tally[_BELOW], tally[_BELOW_WILDS]
                if tally[_RESHUFFLES] == 0:
                    cards += tally[_PILE]
                    wilds += tally[_PILE_WILDS]
                is_wild = state[board + STOCK_TOP] == WILD
                luck[b % sides, FLIPPED] += is_wild - wilds / cards
                tally[_BELOW] -= 1
                tally[_BELOW_WILDS] -= is_wild
    # Whoever is to move has drawn: the mover a new hand, or the next player at the turn's start.
    player = state[PLAYER]
    again = state[RESHUFFLES] != tally[_RESHUFFLES]
    pile = state[DRAW_HI] - state[DRAW_LO]
    if again or pile != tally[_PILE]:
        drawn = np.int64(state[HEADER + HAND_CELLS * player + WILD])
        if player != mover:
            drawn -= tally[_HANDS + player]
        first = tally[_PILE] if again else tally[_PILE] - pile
        if first:  # of the pile as it was
            cards, wilds = tally[_PILE], tally[_PILE_WILDS]
            if tally[_RESHUFFLES] == 0:
                cards += tally[_BELOW]
                wilds += tally[_BELOW_WILDS]
            found = tally[_PILE_WILDS] if again else drawn
            luck[player % sides, DRAWN] += found - first * wilds / cards
            tally[_PILE_WILDS] -= found
            drawn -= found
        if again:  # then of the reshuffled cards, which are known
            cards = 0
            for card in range(1, WILD + 1):
                cards += state[RESHUFFLED + card]
            wilds = np.int64(state[RESHUFFLED + WILD])
            luck[player % sides, DRAWN] += drawn - (cards - pile) * wilds / cards
            tally[_PILE_WILDS] = wilds - drawn
            tally[_RESHUFFLES] = state[RESHUFFLES]
        tally[_PILE] = pile
    tally[_MOVER] = player
    tally[_HANDS + mover] = state[HEADER + HAND_CELLS * mover + WILD]
    tally[_HANDS + player] = state[HEADER + HAND_CELLS * player + WILD]


@kernel
def play_plainly(state, agent, net, work, max_nodes, streams, stream):
    """`play_part` with one network, whose turn search does not look behind flips.

    Returns:
        How many actions were done.
    """
    if agent < NETWORK:
        apply(state, choose(agent, state, legal_words(state), streams, stream))
        return 1
    _, n = search(state, net, work, max_nodes, streams, stream, 0.0)
    for i in range(n):
        apply(state, work.path[i])
    return n


@kernel
def play_part(
    state, agent, net, flips, other_net, other_flips, max_nodes, look, noise, streams, stream
):
    """Let the seat to move play up to the next hidden card at most: one action of a rule-based
    agent, or a network's plan.

    Returns:
        How many actions were done.
    """
    if agent < NETWORK:
        apply(state, choose(agent, state, legal_words(state), streams, stream))
        return 1
    if agent == NETWORK:
        _, n = search_flips(state, net, flips, max_nodes[0], look[0], streams, stream, noise[0])
        for i in range(n):
            apply(state, flips.outer.path[i])
        return n
    _, n = search_flips(
        state, other_net, other_flips, max_nodes[1], look[1], streams, stream, noise[1]
    )
    for i in range(n):
        apply(state, other_flips.outer.path[i])
    return n


@kernel
def play_games(
    state,
    seats,
    seeds,
    firsts,
    net,
    flips,
    other_net,
    other_flips,
    max_nodes,
    look,
    noise,
    policy,
    policy_work,
    other_policy,
    other_policy_work,
    streams,
    tally,
    winners,
    reasons,
    decisions,
    luck,
):
    """Play one game for each seed.

    Args:
        state: an array with the rules; it is used up.
        seats: int64 (games, players): each seat's agent.
        seeds: uint64 (games,): each deal's seed; the agents' randomness comes from it too.
        firsts: int64 (games,): the first player, or -1 for the deal's own.
        net: the first network.
        flips: its scratch space.
        other_net: the second network.
        other_flips: its scratch space.
        max_nodes: int64 (2,): for the turn search of each network.
        look: bool (2,): whether each network's search looks behind flips.
        noise: float64 (2,): each network's `explore` (see `turn.search`).
        policy: the first policy.
        policy_work: its scratch space.
        other_policy: the second policy.
        other_policy_work: its scratch space.
        streams: uint64 (1,), scratch.
        tally: scratch, from `new_tally`.
        winners: int64 (games,), filled with the winning side or -1.
        reasons: int64 (games,), filled.
        decisions: int64 (games,), filled.
        luck: float64 (games, sides, 2), filled: wilds drawn and flipped, less those expected.
    """
    for g in range(len(seeds)):
        deal(state, seeds[g], firsts[g])
        start_luck(state, tally, luck[g])
        streams[0] = mix64(seeds[g] ^ np.uint64(0xA5A5A5A5A5A5A5A5))
        n = 0
        while state[REASON] == 0:
            agent = seats[g, state[PLAYER]]
            if agent >= POLICY:
                if agent == POLICY:
                    action = choose_by_policy(state, policy, policy_work)
                else:
                    action = choose_by_policy(state, other_policy, other_policy_work)
                apply(state, action)
                n += 1
            else:
                n += play_part(
                    state,
                    agent,
                    net,
                    flips,
                    other_net,
                    other_flips,
                    max_nodes,
                    look,
                    noise,
                    streams,
                    0,
                )
            add_luck(state, tally, luck[g])
        winners[g] = state[WINNER]
        reasons[g] = state[REASON]
        decisions[g] = n
