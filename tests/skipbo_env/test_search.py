"""Search: legal plans under every rule, the same answer for the same samples, nothing hidden read,
honest errors; and the agents built on it: planner and levels."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from skipbo_env.agents import (
    AgentError,
    LevelAgent,
    SearchAgent,
    TurnAgent,
    list_agents,
    make_agent,
)
from skipbo_env.agents.agent import SEARCH_OPTIONS
from skipbo_env.agents.levels import LEVELS, Level
from skipbo_env.agents.network import evaluate_slots
from skipbo_env.agents.rollout import LUCKS, roll_out
from skipbo_env.agents.search import MAX_SAMPLES, Sampler, Settings, TurnEnder, Workers
from skipbo_env.agents.turn import MAX_NODES, fill_ending, new_work, search
from skipbo_env.engine import layout
from skipbo_env.game import Game
from skipbo_env.rules import Rules
from tests.skipbo_env.test_agents import (
    IDS,
    STREAM,
    TABLES,
    model_of,
    random_network,
    states,
    swap_hidden,
)
from training.arena import evaluate
from training.coverage import covered


def searcher(rules: Rules, seed: int = 0, **settings: Any) -> SearchAgent:
    chosen = Settings(**{"samples": 60, "nodes": 16, **settings})
    return SearchAgent(model_of(rules, random_network(rules)), settings=chosen, seed=seed)


@pytest.mark.parametrize("rules", TABLES, ids=IDS)
def test_plans_are_legal_and_hidden_cards_change_nothing(rules: Rules) -> None:
    """Whatever lies hidden, the answer is the same to the last digit."""
    agent = searcher(rules)
    for game in states(rules, 1, 29)[:5]:
        said = agent.suggest(game)
        plan = agent.plan(game)
        assert sorted(m["action"] for m in said["moves"]) == game.legal_actions()
        for line in [plan, *(move["line"] for move in said["moves"])]:
            after = game.clone()
            for action in line:
                after.apply(action)
        for seed in range(2):
            other = swap_hidden(game, seed)
            assert not np.array_equal(other.state, game.state)
            assert agent.suggest(other) == said
            assert agent.plan(other) == plan


@pytest.mark.parametrize("rules", [TABLES[0], TABLES[1], TABLES[5]], ids=["2", "3", "pairs"])
def test_threads_and_clocks_change_nothing(rules: Rules) -> None:
    """Seed and number of samples say all."""
    games = states(rules, 1, 31)[1:4]
    for game in games:
        said = searcher(rules).suggest(game)
        assert searcher(rules, threads=3).suggest(game)["moves"] == said["moves"]
        assert searcher(rules).suggest(game) == said
        timed = searcher(rules, samples=None, budget_ms=20).suggest(game)
        assert timed["search"]["stopped_by"] in ("time", "win")
        if timed["search"]["samples"]:
            again = searcher(rules, samples=timed["search"]["samples"]).suggest(game)
            assert again["moves"] == timed["moves"]
    different = [searcher(rules, seed=1).suggest(game)["moves"] for game in games]
    assert different != [searcher(rules).suggest(game)["moves"] for game in games]


def test_what_a_suggestion_holds() -> None:
    rules = Rules()
    agent = searcher(rules, samples=150)
    for game in states(rules, 2, 37)[:8]:
        said = agent.suggest(game)
        moves = said["moves"]
        assert moves[0]["delta"] == 0.0
        deltas = [move["delta"] for move in moves]
        assert deltas == sorted(deltas, reverse=True)
        if said["search"]["stopped_by"] == "win":
            assert moves[0]["win"] == 1.0
            continue
        assert said["search"] == {"samples": 150, "seed": 0, "stopped_by": "samples"}
        assert said["root"]["win"][game.player] == moves[0]["win"]
        assert 0 < moves[0]["win_se"] < 0.5
        for move in moves:
            assert 0 <= move["win"] <= 1
            assert (move["n"] == 0) == (move["win_se"] is None)
            assert (move["n"] == 0) == (move["delta_se"] is None)
        only = moves[-1]["action"]
        alone = agent.suggest(game, allow=[only])["moves"]
        assert [m["action"] for m in alone] == [only]
        assert alone[0]["n"] == 150
        assert only not in [m["action"] for m in agent.suggest(game, avoid=[only])["moves"]]
        with pytest.raises(AgentError, match="allow"):
            agent.suggest(game, allow=[])


@pytest.mark.parametrize("rules", TABLES, ids=IDS)
def test_noted_endings_are_the_best_of_all(rules: Rules) -> None:
    """The table of endings holds the highest values, each with its slots, none twice."""
    network = random_network(rules)
    work = new_work(Game(rules, seed=0).state, network)
    for game in states(rules, 1, 19)[:8]:
        ender = TurnEnder(game.state, network, 5)
        endings, value = ender.endings(game.state)
        best, _ = search(game.state, network, work, MAX_NODES, STREAM, 0, 0.0)
        assert value == best
        if not work.info[1]:
            continue
        assert endings[0].value == pytest.approx(best, abs=1e-6)
        assert len({ending.slots for ending in endings}) == len(endings)
        values = [ending.value for ending in endings]
        assert values == sorted(values, reverse=True)
        for ending in endings:
            after = game.clone()
            for action in ending.plan[:-1]:
                after.apply(action)
            assert fill_ending(after.state, ending.plan[-1], work) == ending.kind
            assert work.ending.tobytes() == ending.slots
            if ending.value < 1.0:
                own = evaluate_slots(network, work.ending, work.acc, work.hidden)
                assert ending.value == pytest.approx(own, abs=1e-4)


@pytest.mark.parametrize("rules", [TABLES[i] for i in (0, 2, 3, 6, 8)], ids=list("02368"))
def test_luck_has_mean_zero_and_long_rollouts_end(rules: Rules) -> None:
    """The control variate takes nothing but noise out; games played to their end have results."""
    network = random_network(rules)
    game = states(rules, 1, 5)[2]
    endings, _ = TurnEnder(game.state, network, 2).endings(game.state)
    n = 1500
    jobs = np.array([(0, sample) for sample in range(n)])
    plans = np.array([endings[0].plan])
    values = np.zeros((1, n), np.float32)
    lucks = np.zeros((1, n, LUCKS), np.float32)
    work = new_work(game.state, network, 8)
    sim, counts = np.zeros_like(game.state), np.zeros(14, np.int32)

    def play(last: int, turns: int) -> None:
        roll_out(
            game.state,
            plans,
            np.array([len(endings[0].plan)]),
            jobs,
            0,
            last,
            np.uint64(5),
            turns,
            network,
            work,
            8,
            sim,
            counts,
            STREAM,
            values,
            lucks,
        )

    play(n, 2)
    for kind in range(LUCKS):
        luck = lucks[0, :, kind].astype(float)
        assert abs(luck.mean()) < 4 * luck.std() / np.sqrt(n) + 1e-9
    assert lucks[0, :, 0].std() > 0
    play(20, 5000)
    assert set(values[0, :20].tolist()) <= {0.0, 1.0, np.float32(1 / rules.sides)}


def test_a_win_and_an_only_move_need_no_samples() -> None:
    rules = Rules(stock_size=2, must_play_stock=True)
    agent = searcher(rules, samples=16)
    won = alone = 0
    for seed in range(60):
        game = Game(rules, seed=seed)
        while not game.over and len(game.actions) < 40:
            said = agent.suggest(game)
            if said["search"]["stopped_by"] == "win":
                won += 1
                assert said["search"]["samples"] == 0
                assert said["moves"][0]["line_ends"] == "win"
                assert said["root"]["win"][game.player] == 1.0
                assert ranked_moves(game, said)[0]["verdict"] == "best"
            legal = game.legal_actions()
            if len(legal) == 1:
                alone += 1
                assert agent.plan(game) == legal
                assert said["moves"][0]["win"] is not None
            game.apply(make_agent("random", seed=seed).act(game))
            if won > 3 and alone > 3:
                return
    raise AssertionError((won, alone))


def ranked_moves(game: Game, said: dict[str, Any]) -> list[dict[str, Any]]:
    from skipbo_env.suggestion import ranked

    return ranked(game, said["moves"], None)


def test_standard_errors_cover() -> None:
    """A small share of `python -m training.coverage`; errors half as large would hold 67%. The
    bound is three standard deviations of 120 positions below 95%.
    """
    agent = make_agent("planner")
    found = covered(agent, Rules(), 120, 40, times=10, candidates=2, turns=0, every=17)
    for name in ("win", "difference"):
        assert 0.89 <= found[name]["covered"] <= 1.0, found
        assert found[name]["mean_se"] > 0


def test_more_samples_than_are_kept_are_refused() -> None:
    """However long it may take, a search keeps at most a million samples of few endings."""
    rules = Rules()
    game = Game(rules, seed=1)
    network = random_network(rules)
    settings = Settings(samples=None, budget_ms=SEARCH_OPTIONS["budget_ms"][1])
    endings, _ = TurnEnder(game.state, network, 6).endings(game.state)
    sampler = Sampler(game.state, endings, Workers(game.state, network, settings), 0)
    most = 0
    for chosen, target in sampler._levels():
        sampler._counts[chosen] = np.maximum(sampler._counts[chosen], target)
        if sampler.samples >= MAX_SAMPLES:
            most = target
            break
    size = len(endings) * 2 * most * (1 + LUCKS) * 4
    assert size < 150e6


@pytest.mark.slow
def test_ten_seconds_stay_under_300_mb() -> None:
    code = """
import resource
from skipbo_env import Game, make_agent
agent = make_agent("search:planner?budget_ms=10000")
game = Game(seed=3)
make_agent("search:planner?samples=20").suggest(game)  # the compiler's own memory
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(agent.suggest(game)["search"]["samples"])
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    samples, grown = map(int, done.stdout.split())
    assert samples > 100
    assert grown < 300


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("search:two-player?samples=0", "samples"),
        ("search:two-player?samples=1000001", "samples"),
        ("search:two-player?budget_ms=0", "budget_ms"),
        ("search:two-player?budget_ms=3600001", "budget_ms"),
        ("search:two-player?budget_ms=1e3", "budget_ms"),
        ("search:two-player?budget_ms=-5", "budget_ms"),
        ("search:two-player?samples=" + "9" * 5000, "samples"),
        ("search:two-player?turns=x", "turns"),
        ("search:two-player?what=1", "what"),
        ("search:nobody", "nobody"),
        ("planner?samples=3", "samples"),
        ("level:0", "level"),
        ("level:11", "level"),
        ("level:", "level"),
        ("level:x", "level"),
        ("best?level=12", "level"),
        ("two-player?level=0", "level"),
    ],
)
def test_bad_options_are_named(text: str, word: str) -> None:
    with pytest.raises(AgentError, match=word):
        make_agent(text)


def test_finished_games_have_nothing_to_choose() -> None:
    game = Game({"stock_size": 1}, seed=1)
    agent = make_agent("greedy")
    while not game.over:
        game.apply(agent.act(game))
    for name in ("planner", "search:planner?samples=10", "level:3", "level:10"):
        chosen = make_agent(name)
        with pytest.raises(AgentError, match="over"):
            chosen.act(game)
    with pytest.raises(AgentError, match="over"):
        make_agent("search:planner?samples=10").suggest(game)


def test_nothing_to_draw() -> None:
    """With the draw pile and the completed piles empty there are still answers."""
    rules = Rules(copies=2, wilds=3, stock_size=5, hand_size=4, max_turns=200)
    agent = searcher(rules, samples=20)
    met = 0
    for game in states(rules, 6, 1, "play-first"):
        state = game.state
        empty = state[layout.DRAW_LO] == state[layout.DRAW_HI]
        if empty and state[layout.COMPLETED_SIZE] == 0 and met < 25:
            met += 1
            assert agent.act(game) in game.legal_actions()
            assert agent.suggest(game)["moves"][0]["win"] is not None
    assert met >= 10


@pytest.mark.parametrize("rules", TABLES, ids=IDS)
def test_planner_plays_everything(rules: Rules) -> None:
    game = Game(rules, seed=3)
    agent = make_agent("planner")
    said = agent.suggest(game)
    assert said["method"] == "planner"
    assert said["model"] is None
    assert {move["win"] for move in said["moves"]} == {None}
    assert said["moves"][0]["action"] == agent.act(game)
    while not game.over and len(game.actions) < 200:
        for action in agent.plan(game):
            game.apply(action)


def test_planner_beats_greedy() -> None:
    """A share of what docs/agents.md tells: 60% and more in 20,000 games."""
    result = evaluate("planner", "greedy", games=1200, seed=4)
    assert result["interval"][1] >= 0.60


def test_levels_play_and_repeat() -> None:
    for level in LEVELS:
        for rules in (Rules(stock_size=5), Rules(players=3, stock_size=5)):
            games = []
            for _ in range(2):
                agent = make_agent(f"level:{level}", seed=6)
                game = Game(rules, seed=2)
                while not game.over and len(game.actions) < 15:
                    game.apply(agent.act(game))
                games.append(game.actions)
            assert games[0] == games[1]
    assert isinstance(make_agent("best?level=4"), LevelAgent)
    own = make_agent("two-player?level=8")
    assert own.player(Rules()).model.name == "two-player"
    with pytest.raises(AgentError, match="2 players"):
        own.act(Game(players=3, seed=1))


def test_listed_agents_can_be_made() -> None:
    names = [entry["name"] for entry in list_agents()]
    for name in ("planner", "level:1", "level:10", "search:two-player"):
        assert name in names
    for name in names:
        assert callable(make_agent(name).act)
    assert isinstance(make_agent("turn:planner"), TurnAgent)


def test_a_win_is_played_whatever_the_seed() -> None:
    """The rollouts of other endings must not talk it out of a move that wins at once."""
    mine = {"stock_top": "7", "stock_size": 1, "discards": [["4"], ["10"], [], []]}
    theirs = {"stock_top": "2", "stock_size": 30, "discards": [[], [], [], []], "hand_size": 5}
    position = {
        "hand": ["3", "6", "8", "12", "S"],
        "building": [5, 11, 6, 0],
        "players": [mine, theirs],
    }
    game = Game.from_position(position, seed=0)
    for seed in range(40):
        assert make_agent("level:10", seed=seed).act(game) == 2


@pytest.mark.parametrize(
    "text",
    [
        "search:planner?threads=000000000199",
        "search:planner?turns=0000000000999999",
        "planner?max_nodes=00000000020000",
        "planner?max_nodes=" + "1" * 5000,
        "planner?level=10",
        "turn:planner?level=10",
        "level:3?level=9",
        "level:11",
    ],
)
def test_options_out_of_bounds_are_refused(text: str) -> None:
    with pytest.raises(AgentError):
        make_agent(text)


def test_published_levels_are_those_of_today() -> None:
    told = json.loads((Path(__file__).parents[2] / "docs" / "levels.json").read_text())["levels"]
    assert told
    for line in told:
        level = LEVELS[line["level"]]
        assert Level(line["planner"], line["noise"], line["samples"]) == level
        model = LevelAgent(line["level"]).player(Rules()).model
        assert line["sha256"] == (model.sha256 if model else None)
