"""Looking behind flips: what an ending by a flip is worth, how likely each card is, what is
compared and chosen; nothing hidden is read, and suggestions say what is played.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from skipbo_env.agents import TurnAgent, make_agent
from skipbo_env.agents.flips import (
    BEHIND_NODES,
    COMPARED,
    LATER,
    MARGIN,
    NOTED_BEHIND,
    behind,
    below_stocks,
    new_flips,
    new_inner,
    search_flips,
)
from skipbo_env.agents.network import FLIP, Network
from skipbo_env.agents.search import TurnEnder
from skipbo_env.agents.turn import MAX_NODES, fill_ending, new_work, search
from skipbo_env.engine import layout, moves
from skipbo_env.game import Game
from skipbo_env.rules import Rules
from tests.skipbo_env.test_agents import model_of, random_network, states, swap_hidden

TABLES = [
    Rules(),
    Rules(players=3),
    Rules(players=4, teams=2),
    Rules(players=6, teams=3),
    Rules(must_play_stock=True),
    Rules(players=4, teams=2, must_play_stock=True, stock_size=4),
]
IDS = ["two", "three", "pairs", "three pairs", "must play", "pairs must play few"]
STREAM = np.zeros(1, np.uint64)


def close_network(rules: Rules) -> Network:
    """A network whose values lie close together, so that there is much to compare."""
    network = random_network(rules, 3)
    return network._replace(w3=network.w3 * np.float32(0.1))


def next_card(game: Game, board: int) -> int:
    """Where the card below a board's stock top lies in the array; -1 where there is none."""
    left = int(game.state[layout.board_at(board) + layout.STOCK_N])
    stock = int(game.state[layout.AT_STOCKS]) + board * int(game.state[layout.STOCK_SIZE])
    return stock + left - 2 if left > 1 else -1


def weights_of(game: Game) -> np.ndarray:
    weights = np.zeros(14)
    below_stocks(game.state, game.player, np.zeros(14, np.int32), weights)
    return weights


def played(rules: Rules) -> list[Game]:
    """Positions before and after reshuffles."""
    games = states(rules, 12, 5)
    late = [game for game in games if game.state[layout.RESHUFFLES]]
    assert late or rules.stock_size < 10, "long games reshuffle"
    return games[::9] + late[::9]


@pytest.mark.parametrize("rules", TABLES, ids=IDS)
def test_weights_are_those_of_determinised_games(rules: Rules) -> None:
    draws = 400
    for game in played(rules)[:12]:
        board = max(range(rules.boards), key=lambda b: next_card(game, b) >= 0)
        weights = weights_of(game)
        assert weights.sum() == pytest.approx(1.0)
        seen: Counter[int] = Counter()
        for seed in range(draws):
            guess = game.determinize(game.player, seed)
            seen[int(guess.state[next_card(guess, board)])] += 1
        for card in range(1, 14):
            error = np.sqrt(weights[card] * (1 - weights[card]) / draws)
            assert abs(seen[card] / draws - weights[card]) <= 5 * error + 1e-9, (card, weights)


def leads_to(sooner: Game, plays: list[int], goal: Game) -> bool:
    """Whether these plays, in some order, lead from one game to another."""
    if not plays:
        return np.array_equal(sooner.state, goal.state)
    for k, play in enumerate(plays):
        if play in sooner.legal_actions():
            trial = sooner.clone()
            trial.apply(play)
            if leads_to(trial, plays[:k] + plays[k + 1 :], goal):
                return True
    return False


def sooner_of(game: Game, plan: list[int], others: list[list[int]]) -> list[int]:
    """Which of these plans play a part of what a plan does before the same flip, so that the rest
    of it can still be played after the flip.
    """
    after = game.clone()
    for action in plan:
        after.apply(action)
    found = []
    for k, other in enumerate(others):
        rest = Counter(plan)
        rest.subtract(other)
        if len(other) < len(plan) and other[-1] == plan[-1] and min(rest.values()) >= 0:
            trial = game.clone()
            for action in other:
                trial.apply(action)
            if leads_to(trial, sorted(rest.elements()), after):
                found.append(k)
    return found


def by_hand(game: Game, network: Any, nodes: int = MAX_NODES) -> list[tuple[float, bytes]]:
    """The value and the slots of each ending that is near the best, found on whole games."""
    work = new_work(game.state, network, BEHIND_NODES)
    ender = TurnEnder(game.state, network, COMPARED)
    endings, _ = ender.endings(game.state)
    near = [ending for ending in endings if ending.value >= endings[0].value - MARGIN]
    told = []
    for ending in near:
        value = ending.value
        if ending.kind == FLIP:
            own = ending.plan[-1] < moves.A_HAND
            board = (moves.own_board if own else moves.other_board)(game.state, game.player)
            board = (int(board) - layout.BOARD) // layout.BOARD_CELLS
            place = next_card(game, board)
            if place >= 0:
                value = 0.0
                for card, weight in enumerate(weights_of(game)):
                    if weight:
                        trial = game.clone()
                        trial.state[place] = card
                        for action in ending.plan:
                            trial.apply(action)
                        top = layout.board_at(board) + layout.STOCK_TOP
                        assert trial.state[top] == card
                        value += (
                            weight
                            * search(trial.state, network, work, BEHIND_NODES, STREAM, 0, 0.0)[0]
                        )
        told.append((value, ending.slots))
    if game.rules.must_play_stock:
        return told
    flips = [k for k, ending in enumerate(near) if ending.kind == FLIP]
    plans = [list(near[k].plan) for k in flips]
    sooner = {k: [flips[j] for j in sooner_of(game, list(near[k].plan), plans)] for k in flips}
    for k in flips:
        first = [j for j in sooner[k] if not sooner[j]]
        if first:
            least = min(told[j][0] - max(LATER, near[j].value - near[k].value) for j in first)
            told[k] = max(0.0, least), told[k][1]
    return told


def test_a_sooner_flip_is_worth_no_less() -> None:
    """What can be played before a flip can be played after it: with room for all positions, what
    lies behind the sooner flip is worth no less, so the later one need not be looked behind.
    """
    rules = Rules()
    network = random_network(rules, 3)
    state = layout.new_state(rules)
    inner = new_work(state, network, MAX_NODES, MAX_NODES)
    after, scratch = np.zeros_like(state), np.zeros_like(state)
    ender = TurnEnder(state, network, 40)
    pairs = 0
    for game in played(rules):
        if next_card(game, game.player) < 0:
            continue
        plans = [list(e.plan) for e in ender.endings(game.state)[0] if e.kind == FLIP]
        worth = []
        for plan in plans:
            of = (np.array(plan), len(plan))
            value = behind(game.state, network, inner, after, scratch, weights_of(game), *of)
            worth.append(value)
        for k, plan in enumerate(plans):
            for j in sooner_of(game, plan, plans):
                pairs += 1
                assert worth[j] >= worth[k] - 1e-6
    assert pairs > 20


@pytest.mark.parametrize("rules", TABLES, ids=IDS)
def test_the_best_of_what_lies_behind_is_chosen(rules: Rules) -> None:
    network = close_network(rules)
    flips = new_flips(layout.new_state(rules), network)
    # With all endings noted, what lies behind is what a search for each card finds.
    flips = flips._replace(inner=new_work(layout.new_state(rules), network, BEHIND_NODES, 4000))
    compared = changed = 0
    for game in played(rules)[:40]:
        before = game.state.copy()
        plain = new_work(game.state, network)
        told, length = search(game.state, network, plain, MAX_NODES, STREAM, 0, 0.0)
        value, n = search_flips(game.state, network, flips, MAX_NODES, True, STREAM, 0, 0.0)
        assert np.array_equal(game.state, before)
        expected = by_hand(game, network)
        found = int(flips.found[0])
        if found:
            compared += 1
            for k, (worth, slots) in enumerate(expected):
                assert flips.values[k] == pytest.approx(worth, abs=1e-6)
                assert flips.slots[k].tobytes() == slots
            best = max(range(found), key=lambda k: expected[k][0])
            assert value == pytest.approx(expected[best][0], abs=1e-6)
            chosen = {slots: worth for worth, slots in expected}
            assert chosen[flips.outer.best.tobytes()] == pytest.approx(value, abs=1e-6)
            changed += best > 0
            trial = game.clone()
            for action in flips.outer.path[:n].tolist():
                trial.apply(action)
        else:  # nothing to compare: the turn search's own answer
            assert (value, n) == (told, length)
            assert flips.outer.path[:n].tolist() == plain.path[:length].tolist()
        value, n = search_flips(game.state, network, flips, MAX_NODES, False, STREAM, 0, 0.0)
        assert (value, n, flips.found[0]) == (told, length, 0)
    assert compared > (1 if rules.must_play_stock else 3)
    assert changed or rules.must_play_stock, "who must flip has little to choose from"


@pytest.mark.parametrize("rules", TABLES, ids=IDS)
def test_few_noted_endings_answer_for_all(rules: Rules) -> None:
    """The endings noted for one card leave out next to nothing for the others."""
    network = close_network(rules)
    state = layout.new_state(rules)
    few, every = new_inner(state, network), new_work(state, network, BEHIND_NODES, 4000)
    assert len(few.top_values) == NOTED_BEHIND
    after, scratch = np.zeros_like(state), np.zeros_like(state)
    ender = TurnEnder(state, network, COMPARED)
    gaps = []
    for game in played(rules)[:60]:
        for ending in ender.endings(game.state)[0]:
            if ending.kind == FLIP:
                plan = np.array(ending.plan)
                told, whole = (
                    behind(
                        game.state,
                        network,
                        inner,
                        after,
                        scratch,
                        weights_of(game),
                        plan,
                        len(plan),
                    )
                    for inner in (few, every)
                )
                gaps.append(whole - told)
    assert len(gaps) > 5
    assert min(gaps) >= -1e-6
    assert np.mean(gaps) < 0.001


@pytest.mark.parametrize("rules", TABLES, ids=IDS)
def test_nothing_hidden_is_read(rules: Rules) -> None:
    agent = TurnAgent(model_of(rules, close_network(rules)))
    for game in played(rules)[:20]:
        for seed in range(2):
            other = swap_hidden(game, seed)
            assert agent.plan(other) == agent.plan(game)
            assert agent.suggest(other) == agent.suggest(game)


@pytest.mark.parametrize("rules", TABLES, ids=IDS)
def test_what_is_suggested_is_what_is_played(rules: Rules) -> None:
    """The best move has the value of the search, and the search's line or one worth as much."""
    network = close_network(rules)
    agent = TurnAgent(model_of(rules, network))
    flips = new_flips(layout.new_state(rules), network)
    work = new_work(layout.new_state(rules), network)
    looked = followed = 0
    for game in played(rules)[:60]:
        value, _ = search_flips(game.state, network, flips, MAX_NODES, True, STREAM, 0, 0.0)
        if flips.outer.info[0] == MAX_NODES:  # cut off; a move's own search may find more
            continue
        looked += int(flips.found[0]) > 0
        suggested = agent.suggest(game)["moves"]
        assert suggested[0]["win"] == pytest.approx(value, abs=1e-6)
        compared = {flips.slots[k].tobytes(): flips.values[k] for k in range(flips.found[0])}
        for move in suggested:  # a line to an ending that was compared has its value
            after = game.clone()
            for step in move["line"][:-1]:
                after.apply(step)
            fill_ending(after.state, move["line"][-1], work)
            worth = compared.get(work.ending.tobytes())
            if worth is not None and move["line_ends"] != "win":
                followed += 1
                assert move["win"] == pytest.approx(worth, abs=1e-6)
        chosen = agent.plan(game)
        of_chosen = agent.suggest(game, allow=[chosen[0]])["moves"][0]
        assert of_chosen["win"] == pytest.approx(value, abs=1e-6)
    assert looked > (1 if rules.must_play_stock else 2)
    assert followed > looked


def test_who_looks() -> None:
    assert make_agent("two-player").flips
    assert make_agent("turn:two-player?flips=1").flips
    assert not make_agent("turn:two-player?flips=0").flips
    assert not make_agent("planner").flips
    assert not TurnAgent(make_agent("two-player").model, noise=0.1).flips
    level = make_agent("level:9").player(Rules())
    assert isinstance(level, TurnAgent)
    assert not level.flips


def test_what_wins_whatever_shows_is_below_a_win() -> None:
    """Sums of likelihoods may be rounded above 1; a probability never is, and 1 is for a play that
    wins: a line that still needs a card says so.
    """
    rules = Rules(stock_size=5)
    network = close_network(rules)
    sure = network._replace(w3=network.w3 * 0, b3=np.full(1, 35.0, np.float32))
    agent = TurnAgent(model_of(rules, sure))
    flipped = 0
    for game in states(rules, 20, 3):
        wins = int(moves.side_stock(game.state, rules.side_of(game.player))) == 1
        for move in agent.suggest(game)["moves"]:
            assert 0.0 <= move["win"] <= 1.0
            assert (move["line_ends"] == "win") <= wins
            flipped += move["line_ends"] == "stock_flip"
    assert flipped
