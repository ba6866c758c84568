"""The service with the project's own agents: rule-based ones, and a model with random weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flask.testing import FlaskClient
from safetensors.numpy import save_file

from serve import create_app
from skipbo_env.agents.network import VERSION, num_rows
from skipbo_env.agents.policy import POLICY_VERSION, num_inputs, num_outputs
from skipbo_env.game import Game
from skipbo_env.rules import Rules


def write_model(folder: Path, rules: Rules) -> None:
    rng = np.random.default_rng(1)

    def weights(*shape: int) -> Any:
        return (0.2 * rng.standard_normal(shape)).astype(np.float32)

    folder.mkdir(parents=True)
    config = {"players": rules.players, "teams": rules.teams, "features": VERSION}
    (folder / "config.json").write_text(json.dumps({"format": "skipbo-model", **config}))
    tensors = {
        "w1": weights(num_rows(rules.players, rules.boards), 32),
        "b1": weights(32),
        "w2": weights(32, 32),
        "b2": weights(32),
        "w3": weights(32),
        "b3": weights(1),
    }
    save_file(tensors, folder / "value.safetensors")


def write_policy(folder: Path, rules: Rules) -> None:
    rng = np.random.default_rng(1)
    inputs, actions = num_inputs(rules), num_outputs(rules)
    sizes = {"w1": (inputs, 32), "b1": (32,), "w2": (32, 32), "b2": (32,)}
    sizes |= {"w3": (32, actions), "b3": (actions,)}
    folder.mkdir(parents=True)
    config = {"players": rules.players, "teams": rules.teams}
    config["policy"] = {"features": POLICY_VERSION}
    (folder / "config.json").write_text(json.dumps({"format": "skipbo-model", **config}))
    tensors = {name: (0.2 * rng.standard_normal(size)) for name, size in sizes.items()}
    tensors = {name: part.astype(np.float32) for name, part in tensors.items()}
    save_file(tensors, folder / "policy.safetensors")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    write_model(folder / "test-two", Rules())
    write_model(folder / "test-pairs", Rules(players=4, teams=2))
    return folder


@pytest.fixture(scope="module")
def client(models: Path) -> FlaskClient:
    return create_app(agent="test-two", models_dir=models, testing=True).test_client()


def ask(client: FlaskClient, game: Game, **options: Any) -> Any:
    position = json.loads(json.dumps(game.position()))
    return client.post("/v1/suggest", json={"position": position, **options})


def states(rules: Any, seed: int, every: int = 7) -> list[Game]:
    game, rng, found = Game(rules, seed=seed), np.random.default_rng(seed), []
    for ply in range(150):
        if game.over:
            break
        if ply % every == 0:
            found.append(game.clone())
        game.apply(int(rng.choice(game.legal_actions())))
    return found


def test_the_model_is_listed_and_a_damaged_one_is_not(tmp_path: Path) -> None:
    write_model(tmp_path / "sound", Rules())
    write_model(tmp_path / "damaged", Rules())
    (tmp_path / "damaged" / "value.safetensors").write_bytes(b"\x00" * 40)
    client = create_app(agent="sound", models_dir=tmp_path, testing=True).test_client()
    text = client.get("/v1/agents").text
    listed = {agent["name"]: agent for agent in json.loads(text)["agents"]}
    assert listed["sound"]["sha256"]
    assert "damaged" not in listed
    assert str(tmp_path) not in text
    response = ask(client, Game(seed=1), agent="damaged")
    assert response.get_json()["pointer"] == "/agent"
    with pytest.raises(ValueError, match="damaged"):
        create_app(agent="damaged", models_dir=tmp_path, testing=True)


def test_a_model_ranks_every_legal_move(client: FlaskClient) -> None:
    for game in states("standard", 1):
        response = ask(client, game)
        assert response.status_code == 200, response.text
        answer = response.get_json()
        assert answer["agent"]["method"] == "turn"
        assert (answer["agent"]["name"], answer["agent"]["model"]) == ("test-two", "test-two")
        moves = answer["moves"]
        assert sorted(move["action"] for move in moves) == game.legal_actions()
        assert [m["win"] for m in moves] == sorted((m["win"] for m in moves), reverse=True)
        win = answer["root"]["win"]
        assert win[game.player] == moves[0]["win"]
        assert sum(win) == pytest.approx(1, abs=1e-5)
        for move in moves:
            assert move["line"][0]["action"] == move["action"]
            assert move["line_ends"] in ("discard", "stock_flip", "refill", "win", "pass")
            if move["line_ends"] == "discard":
                assert move["line"][-1]["move"]["type"] == "discard"


def test_a_policy_ranks_every_legal_move_by_its_prior(tmp_path: Path) -> None:
    """Of a model that has nothing else: it is listed by its policy alone, and plays."""
    write_policy(tmp_path / "quick", Rules())
    client = create_app(models_dir=tmp_path, testing=True).test_client()
    listed = {agent["name"]: agent for agent in client.get("/v1/agents").get_json()["agents"]}
    assert listed["policy:quick"]["method"] == "policy"
    assert listed["policy:quick"]["players"] == 2
    assert "quick" not in listed
    assert "search:quick" not in listed
    for game in states("standard", 1, 31):
        response = ask(client, game, agent="policy:quick")
        assert response.status_code == 200, response.text
        answer = response.get_json()
        assert answer["agent"] == {
            "name": "policy:quick",
            "method": "policy",
            "model": "quick",
            "sha256": listed["policy:quick"]["sha256"],
        }
        priors = [move["prior"] for move in answer["moves"]]
        assert sum(priors) == pytest.approx(1, abs=1e-4)
        assert priors == sorted(priors, reverse=True)
        assert {move["win"] for move in answer["moves"]} == {None}
        assert answer["moves"][0]["verdict"] == "best"
    assert ask(client, Game(players=3, seed=1), agent="policy:quick").status_code == 422
    assert ask(client, Game(seed=1), agent="turn:quick").status_code == 422
    started = client.post("/v1/games", json={"seat": 0, "agents": ["policy:quick"], "seed": 3})
    assert started.status_code == 201, started.text
    # A turn of the person's: the policy answers with its own.
    answer = started.get_json()
    while answer["position"]["you"] == 0 and answer["status"] != "over":
        action = answer["legal"][-1]["action"]
        body = {"ply": answer["ply"], "action": action}
        response = client.post(f"/v1/games/{answer['id']}/moves", json=body)
        assert response.status_code == 200, response.text
        answer = response.get_json()
        if any(event.get("player") == 1 for event in answer["events"]):
            break
    else:
        pytest.fail("the policy never moved")


def test_hidden_cards_cannot_matter(client: FlaskClient) -> None:
    for k, game in enumerate(states("short", 2)):
        answers = [ask(client, g).get_json() for g in (game, game.determinize(game.player, k))]
        other_deal = ask(client, game, seed=99).get_json()
        for answer in (*answers, other_deal):
            del answer["request_id"], answer["search"]
        assert answers[0] == answers[1] == other_deal


def test_best_says_who_it_is(client: FlaskClient) -> None:
    for rules, name in (({"players": 4, "teams": 2}, "test-pairs"), ({"players": 3}, "greedy")):
        answer = ask(client, Game(rules, seed=1), agent="best").get_json()
        assert answer["agent"]["name"] == name
        assert answer["moves"][0]["verdict"] == "best"


def test_a_model_for_other_tables_is_refused(client: FlaskClient) -> None:
    response = ask(client, Game({"players": 3}, seed=1))
    assert response.status_code == 422
    assert response.get_json()["type"] == "/problems/unknown-agent"
    assert response.get_json()["pointer"] == "/agent"


@pytest.mark.parametrize("agent", ["random", "play-first", "simple", "greedy"])
def test_rule_based_agents_answer(client: FlaskClient, agent: str) -> None:
    for rules in ("standard", "partners", "strict"):
        for game in states(rules, 3, 31):
            answer = ask(client, game, agent=agent, seed=4).get_json()
            assert answer["agent"]["name"] == agent
            actions = [move["action"] for move in answer["moves"]]
            assert sorted(actions) == game.legal_actions()
            assert ask(client, game, agent=agent, seed=4).get_json()["moves"] == answer["moves"]


@pytest.mark.parametrize("agent", ["greedy?samples=5", "test-two?level=3"])
def test_options_that_an_agent_does_not_take_are_refused(client: FlaskClient, agent: str) -> None:
    response = ask(client, Game(seed=1), agent=agent)
    assert response.status_code == 422
    assert response.get_json()["pointer"] == "/agent"


def test_a_folder_as_own_agent_is_told_by_its_name_alone(models: Path) -> None:
    own = create_app(agent=str(models / "test-two"), testing=True).test_client()
    response = ask(own, Game(seed=1), top=1)
    assert response.get_json()["agent"]["name"] == "test-two"
    assert str(models) not in response.text + own.get("/v1/agents").text
    assert own.get("/readyz").status_code == 200


def test_avoid_and_allow_reach_the_model(client: FlaskClient) -> None:
    game = states("standard", 5)[3]
    first = ask(client, game).get_json()["moves"]
    rest = ask(client, game, avoid=[first[0]["action"]]).get_json()["moves"]
    assert [m["action"] for m in rest] == [m["action"] for m in first[1:]]
    assert rest[0]["delta"] == 0
    only = ask(client, game, allow=[first[-1]["text"]]).get_json()["moves"]
    assert [m["action"] for m in only] == [first[-1]["action"]]
