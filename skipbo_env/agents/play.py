"""Whole games between compiled agents: the kernel under self-play's evaluation, the arena and
in-kernel opponents.

A seat's agent is a number: a rule-based kind (see `heuristics`), or NETWORK + k for turn search on
the k-th of two networks.
"""

from __future__ import annotations

import numpy as np

from skipbo_env.agents.heuristics import choose
from skipbo_env.agents.turn import search
from skipbo_env.engine.deal import deal
from skipbo_env.engine.jit import kernel
from skipbo_env.engine.layout import PLAYER, REASON, WINNER
from skipbo_env.engine.moves import apply, legal_words
from skipbo_env.engine.rng import mix64

NETWORK = 16


@kernel
def play_part(state, agent, net, work, other_net, other_work, max_nodes, noise, streams, stream):
    """Let the seat to move play: one action of a rule-based agent, or a network's plan up to the
    next hidden card.

    Returns:
        How many actions were done.
    """
    if agent < NETWORK:
        apply(state, choose(agent, state, legal_words(state), streams, stream))
        return 1
    if agent == NETWORK:
        _, n = search(state, net, work, max_nodes[0], streams, stream, noise[0])
        for i in range(n):
            apply(state, work.path[i])
        return n
    _, n = search(state, other_net, other_work, max_nodes[1], streams, stream, noise[1])
    for i in range(n):
        apply(state, other_work.path[i])
    return n


@kernel
def play_games(
    state,
    seats,
    seeds,
    firsts,
    net,
    work,
    other_net,
    other_work,
    max_nodes,
    noise,
    streams,
    winners,
    reasons,
    decisions,
):
    """Play one game for each seed.

    Args:
        state: an array with the rules; it is used up.
        seats: int64 (games, players): each seat's agent.
        seeds: uint64 (games,): each deal's seed; the agents' randomness comes from it too.
        firsts: int64 (games,): the first player, or -1 for the deal's own.
        net: the first network.
        work: its scratch space.
        other_net: the second network.
        other_work: its scratch space.
        max_nodes: int64 (2,): for each network's turn search.
        noise: float64 (2,): each network's `explore` (see `turn.search`).
        streams: uint64 (1,), scratch.
        winners: int64 (games,), filled with the winning side or -1.
        reasons: int64 (games,), filled.
        decisions: int64 (games,), filled.
    """
    for g in range(len(seeds)):
        deal(state, seeds[g], firsts[g])
        streams[0] = mix64(seeds[g] ^ np.uint64(0xA5A5A5A5A5A5A5A5))
        n = 0
        while state[REASON] == 0:
            n += play_part(
                state,
                seats[g, state[PLAYER]],
                net,
                work,
                other_net,
                other_work,
                max_nodes,
                noise,
                streams,
                0,
            )
        winners[g] = state[WINNER]
        reasons[g] = state[REASON]
        decisions[g] = n
