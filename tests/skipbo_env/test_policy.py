"""Policies: the arranged table, the forward pass, the agent policy:NAME, and model folders with a
policy.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from skipbo_env import Game, Rules, SkipBoVectorEnv, make_agent
from skipbo_env.agents import (
    AgentError,
    Model,
    ModelError,
    PolicyAgent,
    SearchAgent,
    TurnAgent,
    list_agents,
    load_model,
)
from skipbo_env.agents.agent import model_for
from skipbo_env.agents.models import empty_network
from skipbo_env.agents.network import VERSION, chain, hand_bits
from skipbo_env.agents.policy import (
    ORDER,
    POLICY_VERSION,
    Policy,
    arrange,
    judge_actions,
    new_policy_work,
    num_inputs,
    num_outputs,
    real_action,
)
from skipbo_env.engine import layout
from skipbo_env.engine.moves import A_END, A_END2, A_PASS
from skipbo_env.engine.observe import seen_board
from skipbo_env.suggestion import ask
from tests.skipbo_env.test_agents import IDS, TABLES, states


def random_policy(rules: Rules, seed: int = 0, hidden: int = 32, hidden2: int = 16) -> Policy:
    rng = np.random.default_rng(seed)

    def some(*shape: int) -> Any:
        return rng.normal(0, 0.3, shape).astype(np.float32)

    inputs, outputs = num_inputs(rules), num_outputs(rules)
    return Policy(
        some(inputs, hidden),
        some(hidden),
        some(hidden, hidden2),
        some(hidden2),
        some(hidden2, outputs),
        some(outputs),
    )


def model_of(rules: Rules, policy: Policy | None = None) -> Model:
    table = (rules.players, rules.teams, rules.boards)
    return Model("test", Path(), {}, *table, None, "", policy or random_policy(rules), "0")


def arranged(game: Game) -> tuple[np.ndarray, np.ndarray]:
    """A game's input and its order."""
    order = np.zeros(ORDER, np.int64)
    out = np.zeros(num_inputs(game.rules), np.float32)
    features = game.observation(game.player)
    arrange(game.state, features, game.mask(), order, out)
    return out, order


def with_piles_moved(game: Game, building: Any, discard: list[Any]) -> Game:
    """The same game with building piles, and each board's discard piles, in another order."""
    other = game.clone()
    state, before = other.state, game.state
    for first in (layout.HEIGHT, layout.WILD_BITS):
        state[first : first + 4] = before[first : first + 4][building]
    deck = int(state[layout.DECK])
    for board, piles in enumerate(discard):
        for part in (layout.DEPTH, layout.TOP):
            first = layout.board_at(board) + part
            state[first : first + 4] = before[first : first + 4][piles]
        at = int(state[layout.AT_DISCARDS]) + 4 * board * deck
        block = before[at : at + 4 * deck].reshape(4, deck)
        state[at : at + 4 * deck] = block[piles].ravel()
        under = layout.board_at(board) + layout.UNDER
        held = [layout.discard_cards(state, board, pile) for pile in range(4)]
        state[under : under + 2] = layout.under_cells(held)
    return other


@pytest.mark.parametrize("rules", TABLES, ids=IDS)
def test_the_arranged_table_is_the_same_for_every_order_of_the_piles(rules: Rules) -> None:
    rng = np.random.default_rng(1)
    moved = 0
    for game in states(rules, 2, 29):
        orders = [rng.permutation(4) for _ in range(1 + game.rules.boards)]
        other = with_piles_moved(game, orders[0], orders[1:])
        ours, order = arranged(game)
        theirs, other_order = arranged(other)
        assert np.array_equal(ours, theirs)
        moved += not np.array_equal(game.observation(game.player), other.observation(other.player))
        # A legal arranged action is a legal action of both tables, and each is reached once.
        legal = np.flatnonzero(ours[-num_outputs(rules) :]).tolist()
        for table, placed in ((game, order), (other, other_order)):
            real = [int(real_action(action, placed)) for action in legal]
            assert sorted(real) == table.legal_actions()
    assert moved


def share(missing: int, wilds: int) -> float:
    """What the network sees of so many missing cards, with so many wilds in hand."""
    if missing <= wilds:
        return max(1 - missing / 16, 0.5)
    return 0.5 ** (missing - wilds)


@pytest.mark.parametrize("rules", TABLES, ids=IDS)
def test_nearness_is_that_of_the_table_after_each_action(rules: Rules) -> None:
    """How many cards the own stock top lacks, and the next opponent's, is counted again on a game
    in which the action was done, by what the value network counts with.
    """
    seen = dict.fromkeys(("play", "discard"), 0)
    n = num_outputs(rules)
    for game in states(rules, 2, 7):
        state, player = game.state, game.player
        boards = [
            (seen_board(state, player, k) - layout.BOARD) // layout.BOARD_CELLS
            for k in range(rules.boards)
        ]
        # With the piles where the network sees them: of equal tops the first one is taken.
        _, order = arranged(game)
        by_board: list[Any] = [np.arange(4)] * rules.boards
        following = 2 if rules.teams else 1
        for k in (0, following):
            by_board[boards[k]] = order[4 + 4 * k : 8 + 4 * k]
        game = with_piles_moved(game, order[:4], by_board)
        out, order = arranged(game)
        assert order[:8].tolist() == [0, 1, 2, 3] * 2
        own, other, legal = out[-3 * n : -2 * n], out[-2 * n : -n], out[-n:]
        assert not own[legal == 0].any()
        assert not other[legal == 0].any()
        for action in np.flatnonzero(legal).tolist():
            real = int(real_action(action, order))
            after = game.clone()
            after.apply(real)
            hand = layout.HEADER + layout.HAND_CELLS * player
            if real < 4:  # the card below is not known
                assert own[action] == 1.0
                continue
            if after.state[hand] > game.state[hand]:  # refilled
                continue
            for k, found in ((0, own[action]), (following, other[action])):
                board = layout.board_at(boards[k])
                top = int(game.state[board + layout.STOCK_TOP])
                bits = hand_bits(after.state, player) if k == 0 else 0
                wilds = int(after.state[hand + layout.WILD]) if k == 0 else 0
                missing = chain(after.state, board, bits)[0] // 13
                if top == layout.WILD:
                    expected = 1.0
                elif top == 0:
                    expected = 0.0
                else:
                    expected = share(missing, wilds)
                assert found == pytest.approx(expected)
            seen["discard" if A_END <= real < A_PASS or real >= A_END2 else "play"] += 1
    assert min(seen.values()) > 0


@pytest.mark.parametrize("rules", TABLES, ids=IDS)
def test_the_forward_pass_is_that_of_numpy(rules: Rules) -> None:
    net = random_policy(rules)
    work = new_policy_work(net, rules.num_actions)
    agent = PolicyAgent(model_of(rules, net))
    for game in states(rules, 1, 31):
        x, order = arranged(game)
        hidden = np.maximum(x @ net.w1 + net.b1, 0)
        hidden = np.maximum(hidden @ net.w2 + net.b2, 0)
        logits = hidden @ net.w3 + net.b3
        judge_actions(game.state, net, work)
        real = [int(real_action(action, order)) for action in range(len(logits))]
        assert np.abs(work.logits[real] - logits).max() < 1e-4
        best = max(game.legal_actions(), key=lambda action: work.logits[action])
        assert agent.act(game) == best


@pytest.mark.parametrize("rules", TABLES, ids=IDS)
def test_suggestions_have_priors_and_see_nothing_hidden(rules: Rules) -> None:
    agent = PolicyAgent(model_of(rules))
    for game in states(rules, 1, 31):
        said = agent.suggest(game)
        moves = said["moves"]
        assert sorted(move["action"] for move in moves) == game.legal_actions()
        priors = [move["prior"] for move in moves]
        assert sum(priors) == pytest.approx(1.0)
        assert priors == sorted(priors, reverse=True)
        by_action = {move["action"]: move["prior"] for move in moves}
        for move in moves:
            if move["same_as"] is not None:
                assert move["prior"] == by_action[move["same_as"]]
        for seed in range(3):
            assert agent.suggest(game.determinize(game.player, seed)) == said
        assert agent.act(game.position()) == agent.act(game)
        told = ask(agent, game, top=2)
        assert told["agent"]["method"] == "policy"
        assert [move["win"] for move in told["moves"]] == [None] * len(told["moves"])
        assert told["moves"][0]["prior"] == round(priors[0], 6)
        only = moves[-1]["action"]
        assert agent.suggest(game, allow=[only])["moves"][0]["prior"] == priors[-1]


def test_turn_search_and_search_tell_the_policys_prior() -> None:
    rules = Rules()
    value = empty_network()
    both = model_of(rules)._replace(value=value)
    for agent in (TurnAgent(both), SearchAgent(both)):
        game = states(rules, 1, 40)[2]
        priors = [move["prior"] for move in agent.suggest(game)["moves"]]
        assert sum(priors) == pytest.approx(1.0)
        alone = type(agent)(both._replace(policy=None))
        assert {move["prior"] for move in alone.suggest(game)["moves"]} == {None}


def write_model(folder: Path, rules: Rules, *, value: bool = False, **changes: Any) -> Path:
    folder.mkdir()
    config: dict[str, Any] = {
        "format": "skipbo-model",
        "version": 1,
        "players": rules.players,
        "teams": rules.teams,
        "policy": {"features": POLICY_VERSION},
    }
    if value:
        config["features"] = VERSION
        save_file(empty_network()._asdict(), folder / "value.safetensors")
    save_file(random_policy(rules)._asdict(), folder / "policy.safetensors")
    (folder / "config.json").write_text(json.dumps({**config, **changes}))
    return folder


def test_a_model_with_a_policy_alone_plays_by_it(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "mine", Rules())
    game = Game(seed=1)
    by_name, by_path = make_agent("policy:mine", models_dir=tmp_path), make_agent(str(folder))
    assert isinstance(by_name, PolicyAgent)
    assert isinstance(by_path, PolicyAgent)
    assert by_name.act(game) == by_path.act(game) in game.legal_actions()
    for text in (
        "turn:mine",
        "search:mine",
        "turn:mine?max_nodes=9",
        "mine?max_nodes=9",
        "mine?level=3",
    ):
        with pytest.raises(AgentError, match=r"mine has no value network.*policy:mine"):
            make_agent(text, models_dir=tmp_path)
    with pytest.raises(AgentError, match="takes no option 'samples'"):
        make_agent("policy:mine?samples=9", models_dir=tmp_path)
    with pytest.raises(AgentError, match="2 players"):
        by_name.act(Game(players=3, seed=1))
    with pytest.raises(AgentError, match="no agent or model 'planner'"):
        make_agent("policy:planner", models_dir=tmp_path)
    listed = [agent for agent in list_agents(tmp_path) if agent["model"] == "mine"]
    assert [(agent["name"], agent["method"]) for agent in listed] == [("policy:mine", "policy")]
    assert listed[0]["sha256"] == load_model(folder).policy_sha256
    # It is no model for "best" and the levels, which search.
    found = model_for(Rules(), tmp_path)
    assert found is None or found.value is not None


def test_a_model_with_both_is_listed_by_all_methods(tmp_path: Path) -> None:
    model = load_model(write_model(tmp_path / "both", Rules(), value=True))
    assert model.value is not None
    assert model.policy is not None
    assert model.sha256 != model.policy_sha256
    listed = {agent["name"]: agent for agent in list_agents(tmp_path) if agent["model"] == "both"}
    assert list(listed) == ["both", "search:both", "policy:both"]
    assert listed["both"]["sha256"] == model.sha256
    assert listed["policy:both"]["sha256"] == model.policy_sha256
    assert isinstance(make_agent("both", models_dir=tmp_path), TurnAgent)


def test_a_model_without_a_policy_says_so(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "value", Rules(), value=True)
    (folder / "policy.safetensors").unlink()
    with pytest.raises(ModelError, match=r"policy\.safetensors: cannot be read"):
        load_model(folder)
    config = json.loads((folder / "config.json").read_text())
    del config["policy"]
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(AgentError, match=r"no policy network \(policy\.safetensors\)"):
        make_agent("policy:value", models_dir=tmp_path)


def test_damaged_policies_are_refused(tmp_path: Path) -> None:
    rules = Rules()
    folder = write_model(tmp_path / "a", rules)
    weights = (folder / "policy.safetensors").read_bytes()
    for damage in (b"", weights[:-5], b"\xff" * 64):
        (folder / "policy.safetensors").write_bytes(damage)
        with pytest.raises(ModelError, match=r"policy\.safetensors"):
            load_model(folder)
    policy = random_policy(rules)
    policy.w2[0, 0] = np.inf
    save_file(policy._asdict(), folder / "policy.safetensors")
    with pytest.raises(ModelError, match=r"policy\.safetensors: w2"):
        load_model(folder)
    for index, (changes, word) in enumerate(
        [
            ({"policy": {"features": POLICY_VERSION + 1}}, r"policy\.features"),
            ({"policy": None}, r"policy\.features"),
            ({"players": 3}, r"policy\.safetensors: w1"),
            ({"players": 4, "teams": 2}, r"policy\.safetensors: w1"),
        ]
    ):
        with pytest.raises(ModelError, match=word):
            load_model(write_model(tmp_path / f"b{index}", rules, **changes))
    untold = write_model(tmp_path / "c", rules, value=True)
    config = json.loads((untold / "config.json").read_text())
    without = {name: part for name, part in config.items() if name != "policy"}
    (untold / "config.json").write_text(json.dumps(without))
    with pytest.raises(ModelError, match=r"policy: is missing, but there is a policy\.safetensors"):
        load_model(untold)
    del without["features"]
    (untold / "policy.safetensors").unlink()
    (untold / "value.safetensors").unlink()
    (untold / "config.json").write_text(json.dumps(without))
    with pytest.raises(ModelError, match="features, policy: the model has no network"):
        load_model(untold)


def test_a_policy_is_an_opponent_in_the_vector_environment(tmp_path: Path) -> None:
    agent = PolicyAgent(model_of(Rules()))
    env = SkipBoVectorEnv(3, rules="short", opponents=agent)
    env.reset(seed=4)
    for _ in range(60):
        env.step(env.sample_actions())
    turns = env.states[:, layout.TURNS]
    assert turns.min() > 2
