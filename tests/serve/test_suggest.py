"""Suggestions over HTTP: what is answered, and how wrong input is refused."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np
import pytest
from flask import Flask
from flask.testing import FlaskClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import skipbo_env
from serve import create_app, limits, schemas
from serve.service import Choice
from skipbo_env.game import Game
from skipbo_env.position import Position
from skipbo_env.rules import PRESETS, Rules
from tests.serve.conftest import fake_agent


def suggest(client: FlaskClient, position: Any, **options: Any) -> Any:
    return client.post("/v1/suggest", json={"position": position, **options})


def assert_problem(response: Any, status: int, kind: str, pointer: str | None = None) -> Any:
    assert response.status_code == status, response.text
    assert response.mimetype == "application/problem+json"
    problem = response.get_json()
    assert problem["type"] == f"/problems/{kind}"
    assert problem["status"] == status
    assert problem["title"]
    assert problem["detail"]
    assert problem["request_id"] == response.headers["X-Request-ID"]
    if pointer is not None:
        assert problem["pointer"] == pointer
        assert problem["errors"][0]["pointer"] == pointer
    return problem


def legal_of(position: dict[str, Any]) -> set[int]:
    return set(Game.from_position(position, 1).legal_actions())


def test_the_worked_turn_is_answered(client: FlaskClient, position: dict[str, Any]) -> None:
    response = suggest(client, position)
    assert response.status_code == 200
    answer = response.get_json()
    assert answer["request_id"] == response.headers["X-Request-ID"]
    assert answer["position"]["to_move"] == 0
    assert {move["action"] for move in answer["moves"]} == legal_of(position)
    assert [move["order"] for move in answer["moves"]] == list(range(len(answer["moves"])))
    wins = [move["win"] for move in answer["moves"]]
    assert wins == sorted(wins, reverse=True)
    first = answer["moves"][0]
    assert first["verdict"] == "best"
    assert first["delta"] == 0
    assert first["text"] == "hand 3>3"
    assert first["move"] == {"type": "play", "card": "3", "from": "hand", "to": 2, "as": 3}
    assert first["line"][0]["action"] == first["action"]
    assert answer["root"]["win"] == [0.6, 0.4]


def test_a_line_of_notation_is_a_position(client: FlaskClient, position: dict[str, Any]) -> None:
    line = Position.parse(position).to_notation()
    by_line, by_json = suggest(client, line, seed=1).json, suggest(client, position, seed=1).json
    assert by_line["moves"] == by_json["moves"]
    batch = client.post("/v1/suggest/batch", json={"positions": [line, position]}).json["results"]
    assert batch[0]["moves"] == batch[1]["moves"]
    assert_problem(suggest(client, "no such line"), 422, "impossible-position", "/position")


def test_verdicts_go_by_what_is_lost(client: FlaskClient, position: dict[str, Any]) -> None:
    """The fake agent's moves lose 0, 0.003, 0.012, 0.027, 0.048, 0.075 and so on."""
    moves = suggest(client, position).get_json()["moves"]
    told = [move["verdict"] for move in moves[:7]]
    assert told == ["best", "tie", "inaccuracy", "mistake", "mistake", "blunder", "blunder"]
    assert moves[2]["delta"] == pytest.approx(-0.012, abs=1e-6)


def test_numbers_are_plain_and_nan_is_null(client: FlaskClient, position: dict[str, Any]) -> None:
    response = suggest(client, position)
    answer = json.loads(response.text, parse_constant=lambda name: pytest.fail(name))
    assert answer["moves"][0]["win_se"] is None
    assert answer["moves"][0]["n"] == 5
    assert isinstance(answer["search"]["samples"], int)


def test_a_rule_based_agent_has_its_choice_first(
    client: FlaskClient, position: dict[str, Any]
) -> None:
    answer = suggest(client, position, agent="greedy").get_json()
    assert answer["agent"]["name"] == "greedy"
    assert answer["moves"][0]["action"] == min(legal_of(position))
    assert {move["win"] for move in answer["moves"]} == {None}
    assert [move["verdict"] for move in answer["moves"]][:2] == ["best", None]
    assert answer["root"]["win"] is None
    assert {move["action"] for move in answer["moves"]} == legal_of(position)


@pytest.mark.parametrize("agent", ["turn:fake", "greedy"])
def test_top_allow_and_avoid(client: FlaskClient, position: dict[str, Any], agent: str) -> None:
    answer = suggest(client, position, agent=agent, top=2).get_json()
    assert len(answer["moves"]) == 2
    allow = ["hand 6>1", "stock>1"]
    refused = suggest(client, position, agent=agent, allow=allow)
    assert_problem(refused, 422, "illegal-action", "/allow/1")
    answer = suggest(client, position, agent=agent, allow=["hand 6>1", 49.0]).get_json()
    assert {move["action"] for move in answer["moves"]} == {24, 49}
    answer = suggest(client, position, agent=agent, avoid=[14, "stock>1"]).get_json()
    assert {move["action"] for move in answer["moves"]} == legal_of(position) - {14}
    none = suggest(client, position, agent=agent, avoid=sorted(legal_of(position)))
    assert_problem(none, 422, "illegal-action", "/avoid")
    assert_problem(
        suggest(client, position, agent=agent, allow=[]), 422, "illegal-action", "/allow"
    )
    bad = suggest(client, position, agent=agent, avoid=["stock>1", "hand 77>1"])
    assert_problem(bad, 422, "illegal-action", "/avoid/1")


def test_what_was_left_out_is_told(client: FlaskClient, position: dict[str, Any]) -> None:
    del position["draw_size"]
    del position["players"][1]["hand_size"]
    answer = suggest(client, position).get_json()
    assert set(answer["position"]["inferred"]) >= {"draw_size", "hand_size"}
    assert any("draw_size" in warning for warning in answer["warnings"])


def test_equal_requests_have_equal_answers(client: FlaskClient, position: dict[str, Any]) -> None:
    answers = [suggest(client, position, seed=5).get_json() for _ in range(2)]
    for answer in answers:
        del answer["request_id"], answer["search"]["elapsed_ms"]
    assert answers[0] == answers[1]


def test_the_answer_knows_nothing_hidden(client: FlaskClient) -> None:
    """Two games that look alike to the mover give the same answer."""
    game = Game(seed=5)
    other = game.determinize(game.player, 9)
    assert not np.array_equal(game.state, other.state)
    answers = [suggest(client, g.position()).get_json() for g in (game, other)]
    for answer in answers:
        del answer["request_id"], answer["search"]["elapsed_ms"]
    assert answers[0] == answers[1]


@pytest.mark.parametrize("rules", [*PRESETS, {"players": 6}, {"players": 9, "teams": 3}])
def test_positions_of_real_games_are_answered(app: Flask, rules: Any) -> None:
    client = app.test_client()
    game = Game(rules, seed=3)
    rng = np.random.default_rng(4)
    for ply in range(120):
        if game.over:
            break
        if ply % 12 == 0:
            response = suggest(client, json.loads(json.dumps(game.position())))
            assert response.status_code == 200, response.text
            actions = [move["action"] for move in response.get_json()["moves"]]
            assert sorted(actions) == game.legal_actions()
        legal = game.legal_actions()
        game.apply(int(rng.choice(legal)))


def test_a_seat_that_is_not_to_move_gets_no_suggestion(client: FlaskClient) -> None:
    game = Game(seed=5)
    position = game.position(1 - game.player)
    assert_problem(suggest(client, position), 422, "impossible-position", "/position/to_move")


def put(position: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(position)
    *parents, last = path.strip("/").split("/")
    at: Any = changed
    for name in parents:
        at = at[int(name)] if isinstance(at, list) else at[name]
    at[int(last) if isinstance(at, list) else last] = value
    return changed


@pytest.mark.parametrize(
    ("path", "value", "pointer"),
    [
        ("/players/1/discards/0", ["5"] * 13, "/players/1/discards/0/11"),
        ("/hand", ["3", "6", "8", "12", "S", "S"], "/hand"),
        ("/players/0/discards", [[]] * 7, "/players/0/discards"),
        ("/building/1", 12, "/building/1"),
        ("/building/1", "5", "/building/1"),
        ("/players/0/stock_top", None, "/players/0/stock_top"),
        ("/draw_size", 87, "/draw_size"),
        ("/rules", {"plaiers": 2}, "/rules/plaiers"),
        ("/nonsense", 1, "/nonsense"),
    ],
)
def test_impossible_positions_name_the_field(
    client: FlaskClient, position: dict[str, Any], path: str, value: Any, pointer: str
) -> None:
    response = suggest(client, put(position, path, value))
    assert_problem(response, 422, "impossible-position", f"/position{pointer}")


@pytest.mark.parametrize("name", ["hand", "players", "building"])
def test_missing_fields_of_a_position_are_named(
    client: FlaskClient, position: dict[str, Any], name: str
) -> None:
    del position[name]
    assert_problem(suggest(client, position), 422, "impossible-position", f"/position/{name}")


@pytest.mark.parametrize(
    ("options", "pointer"),
    [
        ({"top": 0}, "/top"),
        ({"top": "5"}, "/top"),
        ({"top": True}, "/top"),
        ({"top": 5.5}, "/top"),
        ({"seed": -1}, "/seed"),
        ({"seed": 2**53}, "/seed"),
        ({"budget_ms": 10**9}, "/budget_ms"),
        ({"agent": 5}, "/agent"),
        ({"allow": "stock>1"}, "/allow"),
        ({"allow": [None]}, "/allow/0"),
        ({"allow": [500]}, "/allow/0"),
        ({"unknown/field": 1}, "/unknown~1field"),
    ],
)
def test_wrong_options_name_the_field(
    client: FlaskClient, position: dict[str, Any], options: dict[str, Any], pointer: str
) -> None:
    assert_problem(suggest(client, position, **options), 422, "invalid-body", pointer)


def test_a_missing_position_is_named(client: FlaskClient) -> None:
    response = client.post("/v1/suggest", json={"top": 3})
    assert_problem(response, 422, "invalid-body", "/position")


def test_whole_floats_are_integers(client: FlaskClient, position: dict[str, Any]) -> None:
    body = json.dumps({"position": position, "top": 3}).replace('"top": 3', '"top": 3.0')
    body = body.replace("11, 2, 0", "11.0, 2.0, 0.0")
    response = client.post("/v1/suggest", data=body, content_type="application/json")
    assert len(response.get_json()["moves"]) == 3


@pytest.mark.parametrize(
    "agent",
    [
        "nobody",
        "../../etc/passwd",
        "/etc/passwd",
        "models/two-player",
        "..\\..\\x",
        "a\x00b",
        "%2e%2e%2f",
        "py:os:getcwd",
        "GREEDY",
        "greedy?path=/etc",
        "greedy?samples=99999999",
        "greedy?samples=",
        "greedy?",
        "greedy?samples=0",
        "",
        "greedy?samples=\u0661",
    ],
)
def test_agents_come_from_the_list_alone(
    client: FlaskClient, position: dict[str, Any], agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_file(*arguments: Any, **keywords: Any) -> Any:
        pytest.fail("a file was opened")

    monkeypatch.setattr("builtins.open", no_file)
    monkeypatch.setattr("pathlib.Path.open", no_file)
    response = suggest(client, position, agent=agent)
    assert_problem(response, 422, "unknown-agent", "/agent")


def test_options_are_those_that_the_agent_declares(
    client: FlaskClient, position: dict[str, Any]
) -> None:
    """Of these only what clients may set, and no more than the service allows."""
    listed = {a["name"]: a for a in client.get("/v1/agents").get_json()["agents"]}
    assert listed["greedy"]["options"] == listed["turn:fake"]["options"] == {}
    most = {"samples": limits.MAX_SAMPLES, "budget_ms": limits.MAX_BUDGET_MS}
    assert listed["search:fake"]["options"] == {name: [1, high] for name, high in most.items()}
    assert [name for name, agent in listed.items() if agent["costly"]] == ["search:fake"]
    for name, high in most.items():
        text = f"search:fake?{name}={high}"
        assert suggest(client, position, agent=text).get_json()["agent"]["name"] == text
        for bad in (f"search:fake?{name}={high + 1}", f"search:fake?{name}=0"):
            assert_problem(suggest(client, position, agent=bad), 422, "unknown-agent", "/agent")
    for bad in (
        "search:fake?nodes=5",
        "search:fake?level=3",
        "turn:fake?samples=10",
        "search:fake?samples=5&samples=9",
    ):
        assert_problem(suggest(client, position, agent=bad), 422, "unknown-agent", "/agent")


def test_a_search_without_a_limit_gets_the_services_own(
    client: FlaskClient, position: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def watched(text: str, **keywords: Any) -> Any:
        made.append(text)
        return fake_agent(text, **keywords)

    monkeypatch.setattr(skipbo_env, "make_agent", watched)
    for agent, extra, wanted in (
        ("search:fake", {}, f"search:fake?budget_ms={limits.DEFAULT_BUDGET_MS}"),
        ("search:fake", {"budget_ms": 70}, "search:fake?budget_ms=70"),
        ("search:fake?budget_ms=60", {}, "search:fake?budget_ms=60"),
        ("search:fake?samples=50", {}, "search:fake?samples=50&budget_ms=2000"),
        ("search:fake?samples=50", {"budget_ms": 70}, "search:fake?samples=50&budget_ms=70"),
        ("greedy", {"budget_ms": 70}, "greedy"),
    ):
        assert suggest(client, position, agent=agent, **extra).status_code == 200
        assert made[-1] == wanted
    # In a batch, samples alone have a share of the time that all positions may take.
    body = {"positions": [position] * 8, "agent": "search:fake?samples=50"}
    assert client.post("/v1/suggest/batch", json=body).status_code == 200
    assert made[-1] == f"search:fake?samples=50&budget_ms={limits.MAX_BATCH_BUDGET_MS // 8}"


def test_a_budget_for_an_agent_without_search_is_told(
    client: FlaskClient, position: dict[str, Any]
) -> None:
    warnings = suggest(client, position, agent="greedy", budget_ms=50).get_json()["warnings"]
    assert any("budget_ms" in warning for warning in warnings)


def test_an_unknown_own_agent_is_an_error_at_the_start(fakes: None) -> None:
    with pytest.raises(ValueError, match="nobody"):
        create_app(agent="nobody", testing=True)


def test_a_batch_answers_each_position(client: FlaskClient, position: dict[str, Any]) -> None:
    bad = put(position, "/building/1", 12)
    response = client.post(
        "/v1/suggest/batch", json={"positions": [position, bad, 5, position], "top": 1, "seed": 3}
    )
    assert response.status_code == 200
    first, second, third, fourth = response.get_json()["results"]
    assert first["moves"][0]["verdict"] == fourth["moves"][0]["verdict"] == "best"
    assert (second["status"], second["pointer"]) == (422, "/positions/1/building/1")
    assert (third["status"], third["pointer"]) == (422, "/positions/2")
    single = suggest(client, position, top=1, seed=3).get_json()
    assert single["moves"] == first["moves"]


def test_a_batch_has_1_to_64_positions(client: FlaskClient, position: dict[str, Any]) -> None:
    for number, status in ((0, 422), (1, 200), (64, 200), (65, 422)):
        response = client.post(
            "/v1/suggest/batch", json={"positions": [position] * number, "top": 1}
        )
        assert response.status_code == status
        if status == 422:
            assert_problem(response, 422, "invalid-body", "/positions")


def test_a_batch_cannot_ask_for_minutes(client: FlaskClient, position: dict[str, Any]) -> None:
    body = {"positions": [position] * 20, "budget_ms": 2000, "agent": "search:fake"}
    response = client.post("/v1/suggest/batch", json=body)
    assert_problem(response, 422, "invalid-body", "/budget_ms")


def test_a_batch_for_a_costly_agent_without_a_time_is_short(
    client: FlaskClient, position: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Choice, "costly", True)
    for number, status in ((16, 200), (17, 422)):
        body = {"positions": [position] * number, "agent": "greedy", "top": 1}
        assert client.post("/v1/suggest/batch", json=body).status_code == status
    assert_problem(client.post("/v1/suggest/batch", json=body), 422, "invalid-body", "/positions")


def test_agents_and_rules_are_listed(client: FlaskClient) -> None:
    listed = client.get("/v1/agents").get_json()
    assert listed["default"] == "best"
    assert "greedy" in [agent["name"] for agent in listed["agents"]]
    rules = client.get("/v1/rules").get_json()
    assert set(rules["presets"]) == set(PRESETS)
    assert {name: field["default"] for name, field in rules["fields"].items()} == Rules().to_dict()


def test_the_bounds_of_the_rules_are_those_of_the_game() -> None:
    fields = schemas.Rules.model_json_schema()["properties"]
    roomy: dict[str, Any] = {"copies": 20, "wilds": 60, "stock_size": 5}
    for name, field in fields.items():
        field = next((part for part in field.get("anyOf", ()) if "minimum" in part), field)
        if "minimum" not in field or name in ("players", "teams", "first_player"):
            continue
        for bound, step in ((field["minimum"], -1), (field["maximum"], 1)):
            fixed = {**roomy, "copies": 20}
            assert getattr(Rules.from_dict({**fixed, name: bound}), name) == bound
            with pytest.raises(ValueError, match=name):
                Rules.from_dict({**fixed, name: bound + step})


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=10,
)
BODIES = VALUES | st.fixed_dictionaries(
    {},
    optional={
        "position": VALUES,
        "positions": st.lists(VALUES, max_size=3),
        "agent": VALUES | st.sampled_from(["greedy", "turn:fake"]),
        "top": VALUES,
        "allow": VALUES | st.lists(st.integers(-5, 200), max_size=4),
    },
)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(body=BODIES, path=st.sampled_from(["/v1/suggest", "/v1/suggest/batch"]))
def test_random_json_is_no_fault_of_the_service(client: FlaskClient, body: Any, path: str) -> None:
    response = client.post(path, data=json.dumps(body), content_type="application/json")
    assert response.status_code in (200, 400, 422)
    json.loads(response.text, parse_constant=lambda name: pytest.fail(name))
    if response.status_code != 200:
        assert response.mimetype == "application/problem+json"


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.binary(max_size=40) | st.text(max_size=40).map(str.encode))
def test_random_bytes_are_no_fault_of_the_service(client: FlaskClient, data: bytes) -> None:
    response = client.post("/v1/suggest", data=data, content_type="application/json")
    assert response.status_code in (400, 422)


def test_limits_are_what_the_documents_say() -> None:
    assert (limits.BODY, limits.BATCH_BODY, limits.BATCH_POSITIONS) == (65536, 262144, 64)
