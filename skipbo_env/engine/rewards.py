"""What an action pays every seat, for the environments.

    win      at the end +1 to each seat of the winning side, -1 / (sides - 1) to every other seat
    shaped   "win", and for each stock card played weight / stock size to each seat of the side
             that played it and minus its share, / (sides - 1), to every other seat
    score    at the end the winner's match points / 100, and minus its share to every other seat

With equal sides every payment sums to zero over the table. Stalemates without a winner and games
cut off pay nothing.
"""

from __future__ import annotations

from skipbo_env.engine.jit import inlined, kernel
from skipbo_env.engine.layout import PLAYER, PLAYERS, REASON, SIDES, STOCK_SIZE, WINNER
from skipbo_env.engine.moves import (
    A_DISCARD2,
    A_HAND,
    A_STOCK2,
    apply,
    is_legal,
    winning_points,
)

WIN, SHAPED, SCORE = range(3)
REWARDS = ("win", "shaped", "score")


@inlined
def pay(state, side, gain, row):
    """Add the gain to each seat of the side, and minus its share to every other seat."""
    sides = state[SIDES]
    loss = gain / (sides - 1)
    for seat in range(state[PLAYERS]):
        row[seat] += gain if seat % sides == side else -loss


@inlined
def act(state, action, reward, weight, row):
    """Do a legal action and add what it pays.

    Args:
        state: the game.
        action: a legal action.
        reward: WIN, SHAPED or SCORE.
        weight: what a whole stock pays under SHAPED.
        row: float64 of shape (PLAYERS,), added to.
    """
    player = state[PLAYER]
    apply(state, action)
    if reward == SHAPED and (action < A_HAND or A_STOCK2 <= action < A_DISCARD2):
        pay(state, player % state[SIDES], weight / state[STOCK_SIZE], row)
    winner = state[WINNER]
    if winner >= 0:
        pay(state, winner, winning_points(state) / 100.0 if reward == SCORE else 1.0, row)


@kernel(brief=True)
def act_checked(state, action, reward, weight, row):
    """Do an action if it is legal; the row is set to what it pays.

    Returns:
        The seat to move, with 256 added when the game is over and 512 when the row is not all zero;
        -1 for an illegal action, which changes nothing.
    """
    if not is_legal(state, action):
        return -1
    for seat in range(len(row)):
        row[seat] = 0.0
    act(state, action, reward, weight, row)
    answer = state[PLAYER]
    if state[REASON]:
        answer += 256
    for seat in range(len(row)):
        if row[seat] != 0.0:
            return answer + 512
    return answer
