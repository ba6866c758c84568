"""Agents: rule-based choices are legal under every rule, turn search is what an exhaustive search
says and sees nothing hidden, damaged models are refused.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from skipbo_env.actions import IllegalAction
from skipbo_env.agents import AgentError, ModelError, TurnAgent, ending_slots, make_agent
from skipbo_env.agents.heuristics import HEURISTICS
from skipbo_env.agents.models import Model, load_model
from skipbo_env.agents.network import (
    FLIP,
    S_END,
    TURN_OVER,
    VERSION,
    Network,
    evaluate_slots,
    num_rows,
    num_slots,
    row_groups,
)
from skipbo_env.agents.turn import MAX_NODES, fill_ending, new_work, search
from skipbo_env.engine import layout, moves
from skipbo_env.game import Game
from skipbo_env.rules import Rules

TABLES = [
    Rules(),
    Rules(players=3),
    Rules(players=6),
    Rules(stock_size=5, draw_per_turn=3),
    Rules(must_play_stock=True, wild_discard=False, ordered_discards=True),
    Rules(players=4, teams=2),
    Rules(players=6, teams=2, must_play_stock=True),
    Rules(players=9, teams=3, wild_discard=False, ordered_discards=True),
    Rules(players=4, teams=2, team_discard="team", draw_per_turn=2),
    Rules(copies=2, wilds=6, stock_size=5, hand_size=3),
]
IDS = [str(index) for index in range(len(TABLES))]
STREAM = np.zeros(1, np.uint64)


def random_network(rules: Rules, seed: int = 0, hidden: int = 16) -> Network:
    rng = np.random.default_rng(seed)

    def some(*shape: int) -> Any:
        return rng.normal(0, 0.3, shape).astype(np.float32)

    rows = num_rows(rules.players, rules.boards)
    return Network(some(rows, hidden), some(hidden), some(hidden, 32), some(32), some(32), some(1))


def model_of(rules: Rules, network: Network) -> Model:
    return Model("test", Path(), {}, rules.players, rules.teams, rules.boards, network, "0")


def states(rules: Rules, games: int, every: int, agent: str = "greedy") -> list[Game]:
    """Positions from games of a rule-based agent."""
    found = []
    for seed in range(games):
        game = Game(rules, seed=seed)
        player = make_agent(agent, seed=seed)
        while not game.over and len(game.actions) < 400:
            if len(game.actions) % every == 0:
                found.append(game.clone())
            game.apply(player.act(game))
    return found


@pytest.mark.parametrize("rules", TABLES, ids=IDS)
@pytest.mark.parametrize("name", HEURISTICS)
def test_rule_agents_choose_legal_actions(name: str, rules: Rules) -> None:
    game = Game(rules, seed=3)
    agent = make_agent(name, seed=5)
    while not game.over and len(game.actions) < 600:
        game.apply(agent.act(game))
    assert game.actions


def exhaustive(
    game: Game, network: Network, work: Any, seen: set[bytes]
) -> list[tuple[float, int]]:
    """(value, kind) of every ending, found by trying every order of plays on real games."""
    found = []
    cells = int(game.state[layout.AT_STOCKS])
    for action in game.legal_actions():
        kind = fill_ending(game.state, action, work)
        if kind >= 0:
            value = float(evaluate_slots(network, work.ending, work.acc, work.hidden))
            if moves.side_stock(game.state, game.rules.side_of(game.player)) == 1 and kind in (
                1,
                3,
            ):
                value = 1.0
            found.append((value, kind))
        else:
            after = game.clone()
            after.apply(action)
            key = after.state[:cells].tobytes()
            if key not in seen:
                seen.add(key)
                found += exhaustive(after, network, work, seen)
    return found


@pytest.mark.parametrize("rules", TABLES, ids=IDS)
def test_turn_search_finds_the_best_of_all_endings(rules: Rules) -> None:
    """Merged orders, equal building piles and the step-by-step first layer change nothing in what
    is found.
    """
    network = random_network(rules)
    work, other = (new_work(Game(rules, seed=0).state, network) for _ in range(2))
    checked = 0
    for game in states(rules, 4, 9):
        value, length = search(game.state, network, work, MAX_NODES, STREAM, 0, 0.0)
        plan = work.path[:length].tolist()
        if work.info[0] > 60:
            continue
        checked += 1
        endings = exhaustive(game, network, other, set())
        assert value == pytest.approx(max(value for value, _ in endings), abs=1e-5)
        # The plan leads to an ending of that value, with the slots that the definition gives.
        after = game.clone()
        for action in plan[:-1]:
            assert fill_ending(after.state, action, other) == -1
            after.apply(action)
        assert after.player == game.player
        after.check_action(plan[-1])
        assert fill_ending(after.state, plan[-1], other) >= 0
        if value < 1.0:
            assert np.array_equal(work.best, other.ending)
    assert checked >= 10


def test_random_endings_are_legal_and_all_reached() -> None:
    """Exploration picks any ending, each as likely as another, and its plan is legal."""
    rules = Rules()
    network = random_network(rules)
    game = Game(rules, seed=5)
    work = new_work(game.state, network)
    streams = np.ones(1, np.uint64)
    counts: dict[tuple[int, ...], int] = {}
    for _ in range(3000):
        _, length = search(game.state, network, work, MAX_NODES, streams, 0, -1.0)
        plan = tuple(work.path[:length].tolist())
        counts[plan] = counts.get(plan, 0) + 1
    for plan in counts:
        after = game.clone()
        for action in plan:
            after.apply(action)
    assert len(counts) == work.info[1]
    expected = 3000 / len(counts)
    assert sum((n - expected) ** 2 / expected for n in counts.values()) < 3 * len(counts)


def test_turn_search_is_bounded() -> None:
    """A cap on the nodes holds, and still gives a legal plan."""
    rules = Rules(hand_size=20, stock_size=10)
    network = random_network(rules)
    game = Game(rules, seed=1)
    work = new_work(game.state, network)
    for cap in (1, 7, MAX_NODES):
        _, length = search(game.state, network, work, cap, STREAM, 0, 0.0)
        assert 1 <= work.info[0] <= cap
        after = game.clone()
        for action in work.path[:length].tolist():
            after.apply(action)


def swap_hidden(game: Game, seed: int) -> Game:
    return game.determinize(game.player, seed)


@pytest.mark.parametrize("rules", TABLES, ids=IDS)
def test_suggestions_do_not_depend_on_hidden_cards(rules: Rules) -> None:
    agent = TurnAgent(model_of(rules, random_network(rules)))
    for game in states(rules, 2, 23):
        said = agent.suggest(game)
        for seed in range(3):
            assert agent.suggest(swap_hidden(game, seed)) == said


def test_suggestion_ranks_every_legal_move() -> None:
    rules = Rules()
    agent = TurnAgent(model_of(rules, random_network(rules)))
    for game in states(rules, 2, 17):
        said = agent.suggest(game)
        ranked = said["moves"]
        assert sorted(move["action"] for move in ranked) == game.legal_actions()
        wins = [move["win"] for move in ranked]
        assert wins == sorted(wins, reverse=True)
        assert said["root"]["win"][game.player] == wins[0]
        assert sum(said["root"]["win"]) == pytest.approx(1.0)
        for move in ranked:
            assert move["line"][0] == move["action"]
            after = game.clone()
            for action in move["line"]:
                after.apply(action)
        # The act of the agent is a move of the highest value.
        best = {
            move["action"] for move in ranked if move["win"] == pytest.approx(wins[0], abs=1e-6)
        }
        assert agent.act(game) in best
        only = ranked[-1]["action"]
        assert [m["action"] for m in agent.suggest(game, allow=[only])["moves"]] == [only]
        assert only not in [m["action"] for m in agent.suggest(game, avoid=[only])["moves"]]
        with pytest.raises(AgentError, match="allow"):
            agent.suggest(game, allow=[])


def test_twins_are_mirror_images() -> None:
    """A move onto a pile of equal height has its twin's value, and its line can be played."""
    rules = Rules()
    agent = TurnAgent(model_of(rules, random_network(rules)))
    twins = 0
    for game in states(rules, 3, 11):
        said = agent.suggest(game)
        values = {move["action"]: move["win"] for move in said["moves"]}
        for move in said["moves"]:
            if move["same_as"] is None:
                continue
            twins += 1
            assert move["win"] == values[move["same_as"]]
            after = game.clone()
            for action in move["line"]:
                after.apply(action)
            # Alone it stands for itself: it points to nothing that is not there.
            only = agent.suggest(game, allow=[move["action"]])["moves"]
            assert [(m["action"], m["same_as"]) for m in only] == [(move["action"], None)]
    assert twins > 20


@pytest.mark.parametrize("rules", TABLES, ids=IDS)
def test_one_search_judges_every_first_move_as_a_search_of_its_own_does(rules: Rules) -> None:
    """Shared continuations, won games and a cut-off search included; lines lead to their values."""
    network = random_network(rules)
    agent = TurnAgent(model_of(rules, network), flips=False)
    few = TurnAgent(model_of(rules, network), max_nodes=3, flips=False)
    work = new_work(Game(rules, seed=0).state, network)
    lines = shared = 0
    for game in states(rules, 3, 9):
        actions = game.legal_actions()
        said = {move["action"]: move for move in agent.suggest(game)["moves"]}
        cut = {move["action"]: move for move in few.suggest(game)["moves"]}
        reached: dict[bytes, int] = {}
        for action in actions:
            value, line, ends = agent._judge(game, agent._prepare(game), action, {})
            move = said[action]
            assert move["win"] == pytest.approx(value, abs=1e-5)
            assert (move["line_ends"] == "win") == (ends == "win")
            if move["same_as"] is None:
                alone = few._judge(game, few._prepare(game), action, {})[0]
                assert cut[action]["win"] == pytest.approx(alone, abs=1e-5)
            after = game.clone()
            for step in move["line"][:-1]:
                assert fill_ending(after.state, step, work) == -1
                after.apply(step)
            kind = fill_ending(after.state, move["line"][-1], work)
            assert kind >= 0
            assert after.player == game.player
            if value < 1.0:
                found = evaluate_slots(network, work.ending, work.acc, work.hidden)
                assert move["win"] == pytest.approx(found, abs=1e-5)
            if len(line) > 2:
                lines += 1
                shared += reached.setdefault(work.ending.tobytes(), action) != action
    if rules.hand_size == 5:
        assert lines > 10
        assert shared


def test_a_search_without_an_ending_judges_the_table() -> None:
    """One node, only wilds in hand and no wild discards: still a probability and a legal move."""
    rules = Rules(wild_discard=False, copies=1, wilds=60, stock_size=5)
    agent = TurnAgent(model_of(rules, random_network(rules)), max_nodes=1)
    met = 0
    for seed in range(30):
        game = Game(rules, seed=seed)
        while not game.over and len(game.actions) < 30:
            if set(layout.hand_cards(game.state, game.player)) == {13}:
                met += 1
                for move in agent.suggest(game)["moves"]:
                    assert 0.0 <= move["win"] <= 1.0
            game.apply(agent.act(game))
    assert met > 5


def test_every_row_has_one_meaning() -> None:
    for players, boards in ((2, 2), (6, 6), (12, 6)):
        at = 0
        for _, first, values in row_groups(players, boards):
            assert first == at
            at += values
        assert at == num_rows(players, boards)
        assert num_slots(players, boards) < num_rows(players, boards)


def write_model(folder: Path, **changes: Any) -> Path:
    folder.mkdir()
    config = {"format": "skipbo-model", "version": 1, "features": VERSION, "players": 2, "teams": 0}
    (folder / "config.json").write_text(json.dumps({**config, **changes}))
    save_file(random_network(Rules())._asdict(), folder / "value.safetensors")
    return folder


def test_models_load_and_play(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "mine")
    agent = make_agent(str(folder))
    game = Game(seed=1)
    assert agent.act(game) in game.legal_actions()
    assert agent.act(game.position()) == agent.act(game)
    named = make_agent("turn:mine?max_nodes=64", models_dir=tmp_path)
    assert named.act(game) in game.legal_actions()
    with pytest.raises(AgentError, match="2 players"):
        agent.act(Game(players=3, seed=1))


def test_damaged_models_are_refused(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "a")
    weights = (folder / "value.safetensors").read_bytes()
    for damage in (b"", weights[:7], weights[:-5], b"\xff" * 64, b"\x80" * len(weights)):
        (folder / "value.safetensors").write_bytes(damage)
        with pytest.raises(ModelError, match=r"value\.safetensors"):
            load_model(folder)
    (folder / "value.safetensors").unlink()
    with pytest.raises(ModelError, match=r"value\.safetensors"):
        load_model(folder)
    for index, (changes, word) in enumerate(
        [
            ({"features": VERSION + 1}, "features"),
            ({"format": "x"}, "format"),
            ({"players": 3}, "w1"),
            ({"teams": 5}, r"config\.json: teams"),
            ({"players": 7}, "players"),
        ]
    ):
        with pytest.raises(ModelError, match=word):
            load_model(write_model(tmp_path / f"b{index}", **changes))
    broken = write_model(tmp_path / "c")
    (broken / "config.json").write_text("{")
    with pytest.raises(ModelError, match=r"config\.json"):
        load_model(broken)
    network = random_network(Rules())
    network.w2[0, 0] = np.nan
    save_file(network._asdict(), broken / "value.safetensors")
    (broken / "config.json").write_text(
        json.dumps({"format": "skipbo-model", "features": VERSION, "players": 2, "teams": 0})
    )
    with pytest.raises(ModelError, match="w2"):
        load_model(broken)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "gready",
        "turn:nothing",
        "policy:nothing",
        "policy:planner",
        "greedy?x=1",
        "best?x=1",
        "py:nothing",
        "py:no.module:f",
        "py:json:loads",
    ],
)
def test_texts_that_name_no_agent(text: str) -> None:
    with pytest.raises(AgentError, match="agent"):
        make_agent(text)


def test_ending_slots_are_what_the_search_judges_an_ending_by() -> None:
    agent = make_agent("two-player")
    assert isinstance(agent, TurnAgent)
    agent.flips = False
    assert agent.model is not None
    net = agent.model.value
    assert net is not None
    kinds = set()
    for game in states(Rules(), 2, 17):
        said = {move["action"]: move for move in agent.suggest(game)["moves"]}
        for action in game.legal_actions():
            rows = ending_slots(game, action)
            kinds.add(None if rows is None else int(rows[S_END]))
            if rows is None or len(said[action]["line"]) > 1 or said[action]["win"] == 1.0:
                assert rows is not None or len(said[action]["line"]) > 1
                continue
            hidden = np.maximum(net.w1[rows].sum(axis=0) + net.b1, 0)
            logit = np.maximum(hidden @ net.w2 + net.b2, 0) @ net.w3 + net.b3[0]
            assert 1 / (1 + np.exp(-logit)) == pytest.approx(said[action]["win"], abs=1e-3)
    assert {None, TURN_OVER, FLIP} <= kinds
    with pytest.raises(IllegalAction):
        ending_slots(Game(seed=1), 124)
