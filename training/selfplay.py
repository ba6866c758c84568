"""Compiled self-play: games whose endings, with their TD(lambda) targets, are what the value
network learns from. All seats are the learner's, or those of one side, and a rival has the others.
"""

from __future__ import annotations

import numpy as np

from skipbo_env.agents.heuristics import PLAY_FIRST, choose
from skipbo_env.agents.play import play_plainly
from skipbo_env.agents.turn import fill_ending, search
from skipbo_env.engine.deal import deal
from skipbo_env.engine.jit import kernel
from skipbo_env.engine.layout import PLAYER, PLAYERS, REASON, SIDES, STOCK_EMPTY, WINNER
from skipbo_env.engine.moves import apply, legal_words
from skipbo_env.engine.rng import mix64, stream_unit

# What `self_play` counts: games, decisions, games without a winner, squared TD error, nodes,
# endings judged, games cut off because the arrays were full, games with a rival; then games won by
# each side where all seats learn; then for each side games with a rival in which it learned, and
# those that it won.
GAMES, DECISIONS, NO_WINNER, SQUARED, NODES, ENDINGS, CUT, WITH_RIVAL = range(8)
WON, LEARNED, LEARNED_WON, STATS = 8, 20, 32, 44


@kernel
def _targets(state, start, end, lam, draw, seats, values, tops, targets):
    """Lambda-returns of one game's endings, each seat over its own. A game that nobody won counts
    for `draw`.

    Where the ending that was played is not the best one, what it gave away is put back: the seat's
    own return goes on from the best value, `top + lam * (return - value)`, and with two sides the
    other's gift is taken off again. So games may be played with much exploration, and the targets
    are still those of play without it, as far as the values are right.
    """
    for seat in range(state[PLAYERS]):
        side = seat % state[SIDES]
        if state[WINNER] < 0:
            after = draw
        else:
            after = 1.0 if side == state[WINNER] else 0.0
        target = after
        for k in range(end - 1, start - 1, -1):
            if seats[k] == seat:
                targets[k] = min(max(target, 0.0), 1.0)
                target = tops[k] + lam * (target - values[k])
            elif state[SIDES] == 2:
                given = tops[k] - values[k]
                target += given if seats[k] % 2 == side else -given


@kernel
def self_play(
    state,
    net,
    work,
    seeds,
    lam,
    explore,
    blur,
    draw,
    teacher,
    noise,
    rival,
    rival_net,
    rival_work,
    max_nodes,
    streams,
    slots,
    seats,
    values,
    tops,
    targets,
    stats,
):
    """Play one game for each seed and write down every ending that was played.

    Args:
        state: an array with the rules; it is used up.
        net: the network.
        work: its scratch space.
        seeds: uint64 (games,).
        lam: the lambda of the returns.
        explore: the share of endings that are chosen at random.
        blur: noise on the values that the others are chosen by, see `turn.search`.
        draw: what a game that nobody won counts for.
        teacher: -1: turn search chooses; else a rule-based agent does (a warm start), whose values
            are not used.
        noise: the share of a teacher's actions that play-first chooses.
        rival: -1: all seats learn. Else the learner has one side, game after game another, and this
            rule-based agent has the others, or NETWORK: turn search with the next network.
        rival_net: a rival's network.
        rival_work: its scratch space.
        max_nodes: for the turn search.
        streams: uint64 (1,), scratch.
        slots: int16 (capacity, slots), filled.
        seats: int8 (capacity,), filled: whose ending it is.
        values: float32 (capacity,), filled: what the network said.
        tops: float32 (capacity,), filled: what it said of the best ending.
        targets: float32 (capacity,), filled.
        stats: float64 (STATS,), added to: see the constants above.

    Returns:
        How many endings were written.
    """
    n = 0
    capacity = len(values)
    for g in range(len(seeds)):
        deal(state, seeds[g], -1)
        streams[0] = mix64(seeds[g] ^ np.uint64(0x5A5A5A5A5A5A5A5A))
        start = n
        learner = -1 if rival < 0 else g % state[SIDES]
        while state[REASON] == 0:
            if n == capacity:
                stats[CUT] += 1
                return start  # the game is not over: nothing is known of its endings
            player = state[PLAYER]
            if learner >= 0 and player % state[SIDES] != learner:
                stats[DECISIONS] += play_plainly(
                    state, rival, rival_net, rival_work, max_nodes, streams, 0
                )
                continue
            if teacher >= 0:
                kind = PLAY_FIRST if stream_unit(streams, 0) < noise else teacher
                action = choose(kind, state, legal_words(state), streams, 0)
                if fill_ending(state, action, work) >= 0:
                    for i in range(slots.shape[1]):
                        slots[n, i] = work.ending[i]
                    seats[n] = player
                    values[n] = tops[n] = 0.5
                    n += 1
                apply(state, action)
                n -= state[REASON] == STOCK_EMPTY  # a win is no estimate
                stats[DECISIONS] += 1
                continue
            wander = -1.0 if explore > 0.0 and stream_unit(streams, 0) < explore else blur
            value, length = search(state, net, work, max_nodes, streams, 0, wander)
            for i in range(slots.shape[1]):
                slots[n, i] = work.best[i]
            seats[n] = player
            values[n] = value
            tops[n] = work.peak[0]
            n += 1
            for i in range(length):
                apply(state, work.path[i])
            n -= state[REASON] == STOCK_EMPTY
            stats[DECISIONS] += length
            stats[NODES] += work.info[0]
            stats[ENDINGS] += work.info[1]
        _targets(state, start, n, lam, draw, seats, values, tops, targets)
        for k in range(start, n):
            stats[SQUARED] += (targets[k] - values[k]) ** 2
        stats[GAMES] += 1
        stats[NO_WINNER] += state[WINNER] < 0
        if learner >= 0:
            stats[WITH_RIVAL] += 1
            stats[LEARNED + learner] += 1
            stats[LEARNED_WON + learner] += state[WINNER] == learner
        elif state[WINNER] >= 0:
            stats[WON + state[WINNER]] += 1
    return n
