"""How strong a player could be at most: an oracle that sees every hidden card, measured against
agents. A measuring device: no name leads to it, and `make_agent` cannot make it.

    python -m training.oracle --games 400 --against greedy --sees turn

It plans its whole turn with the true cards, through every flip of its stock and every new hand, and
looks at a few hundred positions of it, those with the fewest stock cards first. The ways to end the
turn from the best of them are judged by how much it is allowed to see beyond:

    turn     the cards up to its own discard: a model's value network judges what then stands there
    reply    also the opponent's hand and next draws: the opponent's turn is played out, and the
             value is that of the oracle's next turn search
    game     everything, the order of later reshuffles included: both sides play the game out by the
             opponent's own way of playing, and the ending that wins, with the most to spare, is
             taken

Against an agent without randomness the opponent's moves are known exactly, so `game` is close to
the best that any player could do, with the whole future open before it. None of this can be reached
without the hidden cards; the distance says how much of the game is luck.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skipbo_env.agents import RuleAgent, TurnAgent, make_agent
from skipbo_env.agents.agent import AgentError
from skipbo_env.agents.heuristics import GREEDY
from skipbo_env.agents.network import evaluate_slots
from skipbo_env.agents.play import NETWORK, play_plainly
from skipbo_env.agents.turn import Work, fill_ending, new_work, search
from skipbo_env.engine import layout
from skipbo_env.engine.bits import lowest_bit
from skipbo_env.engine.deal import deal
from skipbo_env.engine.jit import kernel
from skipbo_env.engine.layout import (
    BOARD,
    BOARD_CELLS,
    DEPTH,
    DRAW_LO,
    HAND_CELLS,
    HEADER,
    HEIGHT,
    PLAYER,
    REASON,
    RESHUFFLES,
    STOCK_N,
    TURNS,
    WINNER,
    State,
)
from skipbo_env.engine.moves import A_END, apply, legal_words
from skipbo_env.engine.rng import mix64
from skipbo_env.rules import Rules
from training.arena import unit_seeds
from training.stats import mean_interval

SEES = {"turn": 0, "reply": 1, "game": 1 << 20}  # turns that are played out after the own one
NODES = 400  # positions of a turn
KEPT = 24  # ways to end it that are played out
TABLE = 4096


class Plans(NamedTuple):
    """Scratch space of a plan.

    Attributes:
        states: int32 (NODES, cells): every position of the turn, whole.
        parents, via, stock: int32 (NODES,): where it came from, by which action, stock cards left.
        queued: int32 (NODES,): whether it is still to be looked at.
        keys: uint64 (TABLE,): positions seen.
        values: float64 (KEPT,): the best endings, best first.
        nodes, actions: int64 (KEPT,): the position and the action of each.
        trial: a whole game.
        path: int64: the actions of the turn.
        streams: uint64 (1,).
    """

    states: NDArray[np.int32]
    parents: NDArray[np.int32]
    via: NDArray[np.int32]
    stock: NDArray[np.int32]
    queued: NDArray[np.int32]
    keys: NDArray[np.uint64]
    values: NDArray[np.float64]
    nodes: NDArray[np.int64]
    actions: NDArray[np.int64]
    trial: State
    path: NDArray[np.int64]
    streams: NDArray[np.uint64]


def new_plans(state: State) -> Plans:
    """Scratch space for games like this one."""

    def ints(size: int) -> NDArray[np.int32]:
        return np.zeros(size, np.int32)

    return Plans(
        states=np.zeros((NODES, len(state)), np.int32),
        parents=ints(NODES),
        via=ints(NODES),
        stock=ints(NODES),
        queued=ints(NODES),
        keys=np.zeros(TABLE, np.uint64),
        values=np.zeros(KEPT),
        nodes=np.zeros(KEPT, np.int64),
        actions=np.zeros(KEPT, np.int64),
        trial=np.zeros_like(state),
        path=np.zeros(NODES + 1, np.int64),
        streams=np.zeros(1, np.uint64),
    )


@kernel
def _copy(source, target):
    for i in range(len(source)):
        target[i] = source[i]


@kernel
def _key(state, player):
    """64 bits that tell the positions of one turn apart, the cards that came to light included."""
    heights = np.uint64(0)
    for b in range(4):
        heights += np.uint64(1) << np.uint64(4 * state[HEIGHT + b])
    key = mix64(heights + np.uint64(0x51ED270B))
    board = BOARD + BOARD_CELLS * player
    for d in range(4):
        key = key * np.uint64(0x100000001B3) + np.uint64(state[board + DEPTH + d])
    key = key * np.uint64(0x100000001B3) + np.uint64(state[board + STOCK_N])
    hand = HEADER + HAND_CELLS * player + 1
    for c in range(13):
        key = key * np.uint64(0x100000001B3) + np.uint64(state[hand + c])
    drawn = 1000 * state[RESHUFFLES] + state[DRAW_LO]
    return mix64(key * np.uint64(0x100000001B3) + np.uint64(drawn)) | np.uint64(1)


@kernel
def _is_new(keys, key):
    place = np.int64(key >> np.uint64(20)) & (TABLE - 1)
    while keys[place] != 0:
        if keys[place] == key:
            return False
        place = (place + 1) & (TABLE - 1)
    keys[place] = key
    return True


@kernel
def _trace(plans, node, action):
    """Write the turn that leads to a position and ends by an action into plans.path; its length."""
    length = 1
    at = node
    while at > 0:
        at = plans.parents[at]
        length += 1
    plans.path[length - 1] = action
    for i in range(length - 2, -1, -1):
        plans.path[i] = plans.via[node]
        node = plans.parents[node]
    return length


@kernel
def _expand(state, plans):
    """Look at positions of the turn, those with the fewest stock cards first, the newest first
    among equals.

    Returns:
        (positions, position, action): the last two where a play wins the game, else -1.
    """
    player = state[PLAYER]
    board = BOARD + BOARD_CELLS * player
    for i in range(TABLE):
        plans.keys[i] = np.uint64(0)
    _copy(state, plans.states[0])
    plans.parents[0] = plans.via[0] = -1
    plans.stock[0] = state[board + STOCK_N]
    plans.queued[0] = 1
    _is_new(plans.keys, _key(state, player))
    n = 1
    while n < NODES:
        node = -1
        for i in range(n - 1, -1, -1):
            if plans.queued[i] and (node < 0 or plans.stock[i] < plans.stock[node]):
                node = i
        if node < 0:
            break
        plans.queued[node] = 0
        w0, w1, _, _ = legal_words(plans.states[node])
        for part in range(2):
            plays = w0 if part == 0 else w1 & np.uint64(0xFF)
            while plays and n < NODES:
                action = 64 * part + np.int64(lowest_bit(plays))
                plays &= plays - np.uint64(1)
                after = plans.states[n]
                _copy(plans.states[node], after)
                apply(after, action)
                if after[REASON]:
                    return n, node, action
                if _is_new(plans.keys, _key(after, player)):
                    plans.parents[n] = node
                    plans.via[n] = action
                    plans.stock[n] = after[board + STOCK_N]
                    plans.queued[n] = 1
                    n += 1
    return n, -1, -1


@kernel
def _keep(plans, kept, value, node, action):
    """Put an ending in its place among the best; how many are kept now."""
    at = kept
    while at > 0 and plans.values[at - 1] < value:
        at -= 1
    if at == KEPT:
        return kept
    for i in range(min(kept, KEPT - 1), at, -1):
        plans.values[i] = plans.values[i - 1]
        plans.nodes[i] = plans.nodes[i - 1]
        plans.actions[i] = plans.actions[i - 1]
    plans.values[at] = value
    plans.nodes[at] = node
    plans.actions[at] = action
    return min(kept + 1, KEPT)


@kernel
def _outcome(plans, which, player, turns, policy, net, work, max_nodes):
    """What comes of a kept ending when the true game goes on for some turns.

    Both sides play by the policy. A won game is worth 1 and a little for each card left with the
    opponent; one cut off, what the network says of the best ending of the next player's turn.
    """
    trial = plans.trial
    _copy(plans.states[plans.nodes[which]], trial)
    apply(trial, plans.actions[which])
    plans.streams[0] = np.uint64(1)
    last = trial[TURNS] + turns
    while trial[REASON] == 0 and trial[TURNS] < last:
        play_plainly(trial, policy, net, work, max_nodes[0], plans.streams, 0)
    if trial[REASON]:
        if trial[WINNER] < 0:
            return 0.5
        mine = trial[BOARD + BOARD_CELLS * player + STOCK_N]
        theirs = trial[BOARD + BOARD_CELLS * (1 - player) + STOCK_N]
        return 1.0 + 0.001 * theirs if trial[WINNER] == player else -0.001 * mine
    value, _ = search(trial, net, work, max_nodes[0], plans.streams, 0, 0.0)
    return value if trial[PLAYER] == player else 1.0 - value


@kernel
def plan_turn(state, plans, turns, policy, net, work, max_nodes):
    """Plan the turn of the seat to move with the true cards.

    Args:
        state: a game of two players, not over; it is not changed.
        plans: scratch space; afterwards plans.path holds the whole turn.
        turns: turns that are played out after it (0: the network judges its end).
        policy: the agent that plays them, a rule-based kind, or NETWORK for turn search alone.
        net: the network.
        work: its scratch space.
        max_nodes: int64 (2,), for turn searches.

    Returns:
        The length of the turn.
    """
    player = state[PLAYER]
    n, node, action = _expand(state, plans)
    if node >= 0:
        return _trace(plans, node, action)
    fewest = plans.stock[0]
    for node in range(n):
        fewest = min(fewest, plans.stock[node])
    kept = 0
    for node in range(n):
        if plans.stock[node] > fewest + 1:
            continue
        _, w1, _, _ = legal_words(plans.states[node])
        ends = w1 >> np.uint64(A_END - 64) & np.uint64((1 << 53) - 1)  # discards, and PASS
        while ends:
            action = A_END + np.int64(lowest_bit(ends))
            ends &= ends - np.uint64(1)
            fill_ending(plans.states[node], action, work)
            value = evaluate_slots(net, work.ending, work.acc, work.hidden)
            kept = _keep(plans, kept, value, node, action)
    if kept == 0:  # only plays are legal in all of them, which house rules can bring about
        return _trace(plans, 1, plans.via[1]) - 1
    best = 0
    if turns:
        highest = -1.0e30
        for which in range(kept):
            value = _outcome(plans, which, player, turns, policy, net, work, max_nodes)
            if value > highest:
                highest = value
                best = which
    return _trace(plans, plans.nodes[best], plans.actions[best])


@kernel
def play_pair(state, seed, opponent, turns, plans, net, work, max_nodes, streams, wins):
    """Both games of a deal: the oracle once in each seat against the opponent.

    Args:
        state: an array with the rules; it is used up.
        seed: the deal's.
        opponent: the agent, a rule-based kind, or NETWORK for turn search alone.
        turns: see `plan_turn`.
        plans: scratch space.
        net: the network.
        work: its scratch space.
        max_nodes: int64 (2,), for turn searches.
        streams: uint64 (1,), scratch.
        wins: float64 (2,), filled: 1 where the oracle won, by its seat.
    """
    for seat in range(2):
        deal(state, seed, -1)
        streams[0] = mix64(seed ^ np.uint64(0xA5A5A5A5A5A5A5A5))
        while state[REASON] == 0:
            if state[PLAYER] == seat:
                length = plan_turn(state, plans, turns, opponent, net, work, max_nodes)
                for i in range(length):
                    apply(state, plans.path[i])
            else:
                play_plainly(state, opponent, net, work, max_nodes[0], streams, 0)
        wins[seat] = state[WINNER] == seat


def measure(
    against: str,
    *,
    games: int,
    sees: str = "turn",
    model: str = "two-player",
    rules: Rules | None = None,
    seed: int = 1,
    workers: int = 1,
    progress: Any = None,
) -> dict[str, Any]:
    """The oracle's win rate against an agent in paired games.

    Args:
        against: greedy, or a model's name or folder (then that model judges, too).
        games: how many, rounded up to whole pairs.
        sees: what it sees and judges by; see the head of this module.
        model: whose network judges.
        rules: of two players; the standard ones if not given.
        seed: where the deals come from.
        workers: threads.
        progress: called with pairs done and the win rate so far.

    Raises:
        AgentError: an agent that chooses at random, or no such agent.
        ValueError: a number out of range, or no game of two players.
    """
    rules = rules or Rules()
    if (rules.players, rules.teams) != (2, 0):
        raise ValueError(f"rules: the oracle plays games of two, not of {rules.players}")
    if sees not in SEES:
        raise ValueError(f"sees: must be one of {', '.join(SEES)}, got {sees!r:.40}")
    if games < 1 or workers < 1:
        raise ValueError("games, workers: must be 1 or more")
    opponent: Any = make_agent(against)
    code = GREEDY
    if isinstance(opponent, TurnAgent):
        code, judge = NETWORK, opponent
    elif isinstance(opponent, RuleAgent) and opponent.kind == GREEDY:
        judge = make_agent(model)
    else:
        raise AgentError(f"against: greedy or a model, whose moves can be foreseen; got {against}")
    if not isinstance(judge, TurnAgent) or not judge.plays(rules):
        raise AgentError(f"model: {model!r:.80} is no value network for two players")
    template, net = layout.new_state(rules), judge.network(rules)
    free: list[tuple[State, Plans, Work]] = []
    seeds = unit_seeds(seed, range(-(-games // 2)))

    def pair(deal_seed: np.uint64) -> NDArray[np.float64]:
        space = (
            free.pop() if free else (template.copy(), new_plans(template), new_work(template, net))
        )
        wins = np.zeros(2)
        state, plans, work = space
        nodes = np.full(2, judge.max_nodes)
        streams = np.zeros(1, np.uint64)
        play_pair(state, deal_seed, code, SEES[sees], plans, net, work, nodes, streams, wins)
        free.append(space)
        return wins

    start = time.perf_counter()
    done: list[NDArray[np.float64]] = []
    with ThreadPoolExecutor(workers) as pool:
        for wins in pool.map(pair, seeds):
            done.append(wins)
            if progress:
                progress(len(done), float(np.mean(done)))
    seats = np.array(done)
    mean, low, high = mean_interval(seats.mean(axis=1))
    return {
        "against": against,
        "sees": sees,
        "model": judge.name,
        "games": seats.size,
        "win_rate": mean,
        "interval": [low, high],
        "seat_win_rates": [float(rate) for rate in seats.mean(axis=0)],
        "seed": seed,
        "seconds": time.perf_counter() - start,
    }


def main(argv: list[str] | None = None) -> int:
    """Measure and print one JSON object."""
    parser = argparse.ArgumentParser(prog="python -m training.oracle", description=__doc__)
    parser.add_argument("--games", type=int, default=400, help="rounded up to pairs")
    parser.add_argument("--against", default="greedy", help="greedy, or a model")
    parser.add_argument("--sees", choices=list(SEES), default="turn", help="how far it sees")
    parser.add_argument("--model", default="two-player", help="whose network judges")
    parser.add_argument("--seed", type=int, default=1, help="where the deals come from")
    parser.add_argument("--workers", type=int, default=1, help="threads")
    options = parser.parse_args(argv)

    def show(pairs: int, rate: float) -> None:
        if sys.stderr.isatty():
            print(f"\r{pairs} pairs, wins {rate:.1%}", end="", file=sys.stderr, flush=True)

    try:
        result = measure(
            options.against,
            games=options.games,
            sees=options.sees,
            model=options.model,
            seed=options.seed,
            workers=options.workers,
            progress=show,
        )
    except ValueError as error:
        parser.error(str(error))
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
