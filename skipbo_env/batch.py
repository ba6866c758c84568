"""Kernels that move a whole table of games with one call, for `SkipBoVectorEnv` and `SkipBoEnv`.

Every row is a game of its own, with its own generators, and nothing passes between rows: results
depend neither on how many rows there are nor on how they are split among threads. A row with a
learner's seat lets the rule-based agents of `skipbo_env.agents.heuristics` play the other seats
inside the kernel; a row without one (seat -1) is self-play.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skipbo_env.agents.heuristics import choose
from skipbo_env.engine.bits import prefetch
from skipbo_env.engine.deal import deal
from skipbo_env.engine.jit import inlined, kernel
from skipbo_env.engine.layout import (
    ACTIONS,
    AT_DISCARDS,
    AT_DRAW,
    BOARD,
    BOARD_CELLS,
    BOARDS,
    DECK,
    DEPTH,
    DRAW_LO,
    HAND_CELLS,
    HEADER,
    PLAYER,
    PLAYERS,
    REASON,
    TURN_LIMIT,
    WINNER,
    new_state,
)
from skipbo_env.engine.moves import (
    A_END,
    count_words,
    legal_words,
    nth_action,
    own_board,
    write_mask,
)
from skipbo_env.engine.observe import observation_size, observe_cards, observe_features
from skipbo_env.engine.rewards import act
from skipbo_env.engine.rng import mix64, stream_below, stream_u64
from skipbo_env.rules import Rules

# Told apart in the high bits, so that no generator of one row is another row's of a near seed.
DEALS = np.uint64(0xD1B54A32D192ED03)
_BOTS = np.uint64(0xABC98388FB8FAC03)
_SAMPLES = np.uint64(0x8CB92BA72F3D8DD7)
EXTERNAL = -1
ACT, FOLLOW, SHOW, TRY = range(4)
# For `step`: cells in a line of the CPU's cache, and rows from asking for a line to its use.
_LINE = 16
_AHEAD, _NEAR = 6, 2


class Table(NamedTuple):
    """What the rows remember between calls.

    Attributes:
        states: the games, int32 (rows, cells).
        words: `legal_words` of each game, uint64 (rows, 4); zeros where it is over.
        seats: the learner's seat, int64 (rows,); -1 in self-play.
        begun: whether the learner has acted in this game, bool (rows,).
        deals, bots, samples: generators of new games, of the agents in the kernel and of `sample`,
            uint64 (rows,).
        kinds: who plays the seats after the learner's, int64 (players - 1,): a kind of
            `heuristics`, or EXTERNAL.
        counts, unpaid: scratch space, int32 (rows, 14) and float64 (rows, players).
    """

    states: NDArray[np.int32]
    words: NDArray[np.uint64]
    seats: NDArray[np.int64]
    begun: NDArray[np.bool_]
    deals: NDArray[np.uint64]
    bots: NDArray[np.uint64]
    samples: NDArray[np.uint64]
    kinds: NDArray[np.int64]
    counts: NDArray[np.int32]
    unpaid: NDArray[np.float64]


class Options(NamedTuple):
    """Settings of a table.

    Attributes:
        first_player: a seat, or -1 to draw it each game.
        seat: the learner's, -1 to draw it each game.
        alone: whether a row has one learner's seat; else it is self-play.
        reward: WIN, SHAPED or SCORE of `engine.rewards`.
        weight: what a whole stock pays under SHAPED.
        same_step: whether a row that ends deals its next game in the same step; else the finished
            game stays.
    """

    first_player: int
    seat: int
    alone: bool
    reward: int
    weight: float
    same_step: bool


class Out(NamedTuple):
    """What a call writes.

    Of `cards` and `features`, and of their finals, one is in use; the other has no columns.

    Attributes:
        cards, features: observations, int8 and float32 (rows, numbers).
        masks: legal actions, int8 (rows, actions); ones where the game is over.
        players: the seat that the observation and the mask belong to, int64 (rows,).
        rewards: of the seat that acted, float64 (rows,).
        all_rewards: of every seat, float64 (rows, players).
        terminated, truncated: bool (rows,).
        winners, reasons: how the game ended in this call, int64 (rows,); -1 and 0 where it did not.
        final_cards, final_features: last observations of the games that ended in this call, where
            same_step deals anew; other rows hold anything.
    """

    cards: NDArray[np.int8]
    features: NDArray[np.float32]
    masks: NDArray[np.int8]
    players: NDArray[np.int64]
    rewards: NDArray[np.float64]
    all_rewards: NDArray[np.float64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    winners: NDArray[np.int64]
    reasons: NDArray[np.int64]
    final_cards: NDArray[np.int8]
    final_features: NDArray[np.float32]


def new_table(rules: Rules, rows: int, kinds: list[int] | None) -> Table:
    """A table without a game; `reset` deals."""
    return Table(
        states=np.tile(new_state(rules), (rows, 1)),
        words=np.zeros((rows, 4), dtype=np.uint64),
        seats=np.full(rows, -1, dtype=np.int64),
        begun=np.zeros(rows, dtype=np.bool_),
        deals=np.zeros(rows, dtype=np.uint64),
        bots=np.zeros(rows, dtype=np.uint64),
        samples=np.zeros(rows, dtype=np.uint64),
        kinds=np.array(kinds or [], dtype=np.int64),
        counts=np.zeros((rows, 14), dtype=np.int32),
        unpaid=np.zeros((rows, rules.players), dtype=np.float64),
    )


def new_out(rules: Rules, rows: int, observation: str) -> Out:
    """Arrays to write to, for an observation of "cards" or "features"."""
    cards = observation_size(rules, "cards") if observation == "cards" else 0
    features = observation_size(rules, "features") if observation == "features" else 0
    return Out(
        cards=np.zeros((rows, cards), dtype=np.int8),
        features=np.zeros((rows, features), dtype=np.float32),
        masks=np.zeros((rows, rules.num_actions), dtype=np.int8),
        players=np.zeros(rows, dtype=np.int64),
        rewards=np.zeros(rows, dtype=np.float64),
        all_rewards=np.zeros((rows, rules.players), dtype=np.float64),
        terminated=np.zeros(rows, dtype=np.bool_),
        truncated=np.zeros(rows, dtype=np.bool_),
        winners=np.zeros(rows, dtype=np.int64),
        reasons=np.zeros(rows, dtype=np.int64),
        final_cards=np.zeros((rows, cards), dtype=np.int8),
        final_features=np.zeros((rows, features), dtype=np.float32),
    )


def fresh_out(like: Out) -> Out:
    """The same with new arrays, but for the finals, which no caller is given."""
    given = {
        name: np.empty_like(array) for name, array in zip(like._fields[:-2], like[:-2], strict=True)
    }
    return like._replace(**given)


@kernel
def _play_bots(state, seat, kinds, bots, i, reward, weight, row):
    """Let the agents in the kernel move until the learner or an external agent has to."""
    while state[REASON] == 0 and state[PLAYER] != seat:
        place = state[PLAYER] - seat - 1
        kind = kinds[place if place >= 0 else place + state[PLAYERS]]
        if kind == EXTERNAL:
            return
        act(state, choose(kind, state, legal_words(state), bots, i), reward, weight, row)


@kernel(inline="always")
def _new_game(table, options, i, seed):
    """Deal row i its next game."""
    deal(table.states[i], seed, options.first_player)
    if options.alone:
        seat = options.seat
        if seat < 0:
            seat = stream_below(table.deals, i, table.states[i, PLAYERS])
        table.seats[i] = seat
    table.begun[i] = False


@kernel(inline="always")
def _settle(table, options, out, i):
    """Go on in row i until the learner or an external agent has to act; then show the row.

    A game that is over before the learner has acted in it is dealt anew without a word.
    """
    state = table.states[i]
    while True:
        if options.alone:
            row = out.all_rewards[i] if table.begun[i] else table.unpaid[i]
            _play_bots(
                state,
                table.seats[i],
                table.kinds,
                table.bots,
                i,
                options.reward,
                options.weight,
                row,
            )
            if table.begun[i]:
                out.rewards[i] = row[table.seats[i]]
        if state[REASON] == 0:
            break
        if table.begun[i]:
            seat = table.seats[i] if options.alone else state[PLAYER]
            out.winners[i] = state[WINNER]
            out.reasons[i] = state[REASON]
            out.terminated[i] = state[REASON] != TURN_LIMIT
            out.truncated[i] = state[REASON] == TURN_LIMIT
            if not options.same_step:
                break
            if out.cards.shape[1]:
                observe_cards(state, seat, out.final_cards[i])
            else:
                observe_features(state, seat, table.counts[i], out.final_features[i])
        _new_game(table, options, i, stream_u64(table.deals, i))
    seat = table.seats[i] if options.alone else state[PLAYER]
    words = legal_words(state)
    for k in range(4):
        table.words[i, k] = words[k]
    if state[REASON]:
        out.masks[i, :] = 1
    else:
        write_mask(words, out.masks[i])
    out.players[i] = seat
    if out.cards.shape[1]:
        observe_cards(state, seat, out.cards[i])
    else:
        observe_features(state, seat, table.counts[i], out.features[i])


@kernel
def deal_rows(table, options, seeds, seeded, chosen, start, stop):
    """Deal new games; `step` in the mode SHOW then shows them.

    Args:
        table: the games.
        options: its settings.
        seeds: uint64 (rows,). The first game of a seeded row has this very seed, its later ones
            follow from it.
        seeded: bool (rows,); other rows go on with their generators.
        chosen: bool (rows,); other rows keep their games.
        start: first row of this call.
        stop: row after its last.
    """
    for i in range(start, stop):
        if chosen[i]:
            seed = seeds[i]
            if seeded[i]:
                table.deals[i] = mix64(seed ^ DEALS)
                table.bots[i] = mix64(seed ^ _BOTS)
                table.samples[i] = mix64(seed ^ _SAMPLES)
            else:
                seed = stream_u64(table.deals, i)
            _new_game(table, options, i, seed)


@kernel
def find_illegal(table, actions):
    """The first row whose game goes on and whose action is not legal, or -1."""
    known = table.states[0, ACTIONS]
    for i in range(len(actions)):
        action = actions[i]
        legal = 0 <= action < known
        if legal:
            legal = (table.words[i, action >> 6] >> np.uint64(action & 63)) & np.uint64(1) != 0
        if not legal and table.states[i, REASON] == 0:
            return i
    return -1


@inlined
def _fetch_table(state, boards, players):
    """Have the CPU bring the header and the hands of a game, which every step reads."""
    for cell in range(0, BOARD + BOARD_CELLS * boards, _LINE):
        prefetch(state, cell)
    for cell in range(HEADER, HEADER + HAND_CELLS * players + _LINE - 1, _LINE):
        prefetch(state, cell)


@inlined
def _fetch_cards(state, action):
    """Have the CPU bring the next card to draw and the top of the discard pile of the action."""
    prefetch(state, state[AT_DRAW] + state[DRAW_LO])
    board = own_board(state, state[PLAYER])
    d = (action if action >= A_END else action >> 2) & 3
    pile = 4 * ((board - BOARD) // BOARD_CELLS) + d
    prefetch(state, state[AT_DISCARDS] + pile * state[DECK] + state[board + DEPTH + d])


@inlined
def _fetch_row(row):
    """Have the CPU bring a long observation's lines; "cards" are too few to wait for."""
    for cell in range(0, len(row), _LINE):
        prefetch(row, cell)


@kernel
def step(table, options, out, mode, actions, start, stop):
    """Do one action a row and show what comes of it.

    Args:
        table: the games.
        options: its settings.
        out: what is to be seen and what was paid.
        mode: ACT for the learner's actions (a row whose game is over ignores its own and deals its
            next game), FOLLOW for an external agent's, whose pay is added to that of the step
            before, SHOW for none; TRY is ACT after a look at the actions of all rows.
        actions: int64 (rows,); `find_illegal` has found none, but for TRY.
        start: first row of this call.
        stop: row after its last.

    Returns:
        What `find_illegal` has found, where nothing is done; else -1.
    """
    if mode == TRY:
        row = find_illegal(table, actions)
        if row >= 0:
            return row
        mode = ACT
    boards = table.states[start, BOARDS]
    players = table.states[start, PLAYERS]
    for i in range(start, stop):
        # A table of games is larger than the CPU's nearest cache, and to wait for its lines is most
        # of a step: ask for them some rows ahead.
        if i + _AHEAD < stop:
            _fetch_table(table.states[i + _AHEAD], boards, players)
        if i + _NEAR < stop:
            _fetch_cards(table.states[i + _NEAR], actions[i + _NEAR])
        if i + 1 < stop:
            _fetch_row(out.features[i + 1])
        state = table.states[i]
        if mode != FOLLOW:
            out.rewards[i] = 0.0
            out.all_rewards[i, :] = 0.0
            out.terminated[i] = False
            out.truncated[i] = False
            out.winners[i] = -1
            out.reasons[i] = 0
        if mode == ACT and state[REASON]:
            _new_game(table, options, i, stream_u64(table.deals, i))
        elif mode != SHOW:
            seat = state[PLAYER]
            table.begun[i] |= mode == ACT
            row = out.all_rewards[i] if table.begun[i] else table.unpaid[i]
            act(state, actions[i], options.reward, options.weight, row)
            if mode == ACT:
                out.rewards[i] = row[seat]
        _settle(table, options, out, i)
    return -1


@kernel
def sample(table, actions):
    """Write a uniformly random legal action a row, 0 where the game is over; int64 (rows,)."""
    for i in range(len(actions)):
        words = (table.words[i, 0], table.words[i, 1], table.words[i, 2], table.words[i, 3])
        n = count_words(words)
        actions[i] = nth_action(words, stream_below(table.samples, i, n)) if n else 0
