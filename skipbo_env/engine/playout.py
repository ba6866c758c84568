"""Random play with nobody looking on: the rules alone, in one compiled loop. The benchmark's
measure of the engine; environments add masks, observations and rewards to it.
"""

from __future__ import annotations

from skipbo_env.engine.deal import deal
from skipbo_env.engine.jit import kernel
from skipbo_env.engine.layout import REASON
from skipbo_env.engine.moves import apply, count_words, legal_words, nth_action
from skipbo_env.engine.rng import stream_below, stream_u64


@kernel
def play_random(state, decisions, first_player, streams):
    """Do uniformly random legal actions, one game after another.

    Args:
        state: a dealt game, running or over; it is left wherever the last action leads.
        decisions: how many actions.
        first_player: of each new deal: a seat, or -1 to draw it.
        streams: uint64 (1,), the random generator of actions and deals.

    Returns:
        How many games were dealt.
    """
    deals = 0
    for _ in range(decisions):
        if state[REASON]:
            deal(state, stream_u64(streams, 0), first_player)
            deals += 1
        words = legal_words(state)
        apply(state, nth_action(words, stream_below(streams, 0, count_words(words))))
    return deals
