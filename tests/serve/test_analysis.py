"""The review of a game over HTTP."""

from __future__ import annotations

import io
import json
import time
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from serve import create_app, limits, review
from serve.service import Service
from serve.store import REVIEWS
from skipbo_env.analysis import VERDICTS
from skipbo_env.game import Game
from skipbo_env.rules import Rules
from tests.serve.conftest import CLASSES, Slow
from tests.serve.test_agents import write_model
from tests.serve.test_suggest import assert_problem
from tests.skipbo_env.test_analysis import record_of


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    write_model(folder / "test-two", Rules())
    write_model(folder / "test-pairs", Rules(players=4, teams=2))
    write_model(folder / "test-three", Rules(players=3))
    return folder


@pytest.fixture(scope="module")
def client(models: Path) -> FlaskClient:
    return create_app(agent="best", models_dir=models, testing=True).test_client()


@pytest.mark.parametrize("rules", ["short", {"players": 4, "teams": 2, "stock_size": 4}])
def test_a_review_adds_up(client: FlaskClient, rules: Any) -> None:
    record = record_of(rules, 4)
    response = client.post("/v1/analysis", json={"record": record})
    assert response.status_code == 200, response.text
    found = response.get_json()
    played = [e for e in record["events"] if e["type"] in ("play", "discard", "pass")]
    assert found["complete"]
    assert found["warnings"] == []
    assert found["agent"]["method"] == "turn"
    assert found["decisions_total"] == len(found["decisions"]) == len(played)
    for ply, (decision, event) in enumerate(zip(found["decisions"], played, strict=True)):
        assert (decision["ply"], decision["player"]) == (ply, event["player"])
        assert {**decision["played"]["move"], "player": event["player"]} == event
        assert decision["lost"] == pytest.approx(
            decision["best"]["win"] - decision["played"]["win"], abs=2e-6
        )
        assert decision["lost"] >= 0
        assert decision["win"][decision["player"] % 2] == decision["best"]["win"]
        assert sum(decision["win"]) == pytest.approx(1, abs=1e-5)
        assert (decision["verdict"] == "best") == (decision["played"] == decision["best"])
        assert decision["line"][0]["action"] == decision["best"]["action"]
        assert sum(decision["luck"]) == 0
    first, sides = found["decisions"][0]["win"], found["sides"]
    for side, other in ((0, 1), (1, 0)):
        lost = sum(d["lost"] for d in found["decisions"] if d["player"] % 2 == side)
        assert sides[side]["lost"] == pytest.approx(lost, abs=1e-4)
        whole = first[side] - sides[side]["lost"] + sides[other]["lost"] + sides[side]["luck"]
        assert whole == pytest.approx(sides[side]["result"], abs=1e-3)
        adjusted = sides[side]["result"] - sides[side]["luck"]
        assert sides[side]["adjusted"] == pytest.approx(adjusted, abs=1e-5)
    winner = found["result"]["winner"]
    assert [side["result"] for side in sides] == [float(side == winner) for side in (0, 1)]
    for told in found["players"]:
        own = [d for d in found["decisions"] if d["player"] == told["player"]]
        free = [d for d in own if d["choices"] > 1]
        assert (told["decisions"], told["judged"]) == (len(own), len(free))
        assert set(told["verdicts"]) == set(VERDICTS)
        assert sum(told["verdicts"].values()) == len(free)
        assert told["agent"] == record["agents"][told["player"]]


def test_a_record_may_stand_alone(client: FlaskClient) -> None:
    record = record_of("short", 5)
    alone = client.post("/v1/analysis", json=record).get_json()
    inside = client.post("/v1/analysis", json={"record": record}).get_json()
    del alone["request_id"], inside["request_id"]
    assert alone == inside


def test_agents_that_estimate_nothing_only_say_what_they_would_play(client: FlaskClient) -> None:
    record = record_of({"players": 5, "stock_size": 3}, 3)
    for body in ({"record": record}, {"record": record, "agent": "greedy"}):
        found = client.post("/v1/analysis", json=body).get_json()
        assert found["agent"]["name"] == "greedy"
        for decision in found["decisions"]:
            assert decision["lost"] is decision["win"] is decision["luck"] is None
            assert decision["verdict"] in ("best", None)
        greedy = [p for p in found["players"] if p["agent"] == "greedy"]
        assert {player["agreement"] for player in greedy} <= {1.0, None}
        assert {side["adjusted"] for side in found["sides"]} == {None}


def test_three_sides_have_no_luck_yet(client: FlaskClient) -> None:
    found = client.post("/v1/analysis", json=record_of({"players": 3, "stock_size": 2}, 3)).json
    assert found["agent"]["name"] == "test-three"
    assert {decision["luck"] is None for decision in found["decisions"]} == {True}
    assert all(player["lost"] >= 0 for player in found["players"])
    assert {side["luck"] for side in found["sides"]} == {None}


def test_a_game_that_runs_can_be_reviewed(client: FlaskClient) -> None:
    game = Game(seed=1)
    found = client.post("/v1/analysis", json=game.record()).get_json()
    assert (found["decisions"], found["agent"], found["complete"]) == ([], None, True)
    game.apply(game.legal_actions()[-1])
    found = client.post("/v1/analysis", json=game.record()).get_json()
    assert len(found["decisions"]) == 1
    assert found["result"] is None
    assert {side["result"] for side in found["sides"]} == {None}


def test_after_the_time_it_stops_and_says_so(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = record_of("short", 4)
    monkeypatch.setattr(limits, "MAX_ANALYSIS_S", 0.0)
    found = client.post("/v1/analysis", json=record).get_json()
    assert not found["complete"]
    assert len(found["decisions"]) < found["decisions_total"]
    assert "stopped after 0 s" in found["warnings"][0]
    assert {side["adjusted"] for side in found["sides"]} == {None}


def test_records_that_cannot_be(client: FlaskClient) -> None:
    good = record_of("short", 4)

    def broken(**changes: Any) -> Any:
        return {**json.loads(json.dumps(good)), **changes}

    wrong_card = broken()
    place = next(i for i, e in enumerate(wrong_card["events"]) if e["type"] == "play")
    wrong_card["events"][place]["card"] = "13"
    many = broken(deal={**good["deal"], "draw": ["5"] * 142})
    for record, pointer in (
        (wrong_card, f"/events/{place}/card"),
        (broken(events=[*good["events"], {"type": "pass", "player": 0}]), None),
        (broken(events=5), "/events"),
        (broken(rules={"players": 99}), "/rules/players"),
        (broken(rules=None), "/rules"),
        (broken(rules="short"), "/rules"),
        (broken(version=2), "/version"),
        (broken(format="pgn"), "/format"),
        (broken(deal=[]), "/deal"),
        (many, "/deal"),
        (broken(seed=10**30), "/seed"),
        (broken(agents=[1, 2]), "/agents"),
    ):
        for body, prefix in (({"record": record}, "/record"), (record, "")):
            response = client.post("/v1/analysis", json=body)
            expected = None if pointer is None else prefix + pointer
            assert_problem(response, 422, "impossible-record", expected)
    for body, pointer in (
        ({}, "/record"),
        ({"record": []}, "/record"),
        ({"record": good, "x": 1}, "/x"),
        ({"record": good, "agent": 5}, "/agent"),
        ([], None),
    ):
        response = client.post("/v1/analysis", json=body)
        assert_problem(response, 422, "invalid-body", pointer)
    assert_problem(
        client.post("/v1/analysis", json={"record": {}}), 422, "impossible-record", "/record/format"
    )


def test_agents_that_cannot_judge(client: FlaskClient) -> None:
    record = record_of("short", 4)
    for agent in ("nobody", "test-pairs", "../test-two", "py:os:getcwd"):
        response = client.post("/v1/analysis", json={"record": record, "agent": agent})
        assert_problem(response, 422, "unknown-agent", "/agent")


@pytest.mark.parametrize("chunked", [False, True])
def test_the_limit_of_the_body(client: FlaskClient, chunked: bool) -> None:
    for size, status in ((limits.ANALYSIS_BODY, 400), (limits.ANALYSIS_BODY + 1, 413)):
        data = b"[" * 500 + b" " * (size - 500)
        options: dict[str, Any] = {"data": data}
        if chunked:
            options = {
                "input_stream": io.BytesIO(data),
                "headers": {"Transfer-Encoding": "chunked"},
                "environ_overrides": {"wsgi.input_terminated": True},
            }
        response = client.post("/v1/analysis", content_type="application/json", **options)
        assert response.status_code == status
        assert response.mimetype == "application/problem+json"


# By agents that search: in the background ------------------------------------------------------


def wait_for(client: FlaskClient, location: str, status: str) -> Any:
    for _ in range(600):
        told = client.get(location).get_json()
        if told["status"] == status:
            return told
        time.sleep(0.05)
    raise AssertionError(told)


def test_a_search_reviews_in_the_background(app: Flask, monkeypatch: pytest.MonkeyPatch) -> None:
    """202 and where to ask; the progress; then the review that an answer at once would be."""
    monkeypatch.setattr(review, "_TELL_EVERY_S", 0.0)
    client = app.test_client()
    record = record_of("short", 4)
    total = sum(event["type"] in ("play", "discard", "pass") for event in record["events"])
    Slow.go.clear()
    try:
        response = client.post("/v1/analysis", json={"record": record, "agent": "search:fake"})
        assert response.status_code == 202
        begun = response.get_json()
        location = response.headers["Location"]
        assert location == f"/v1/analysis/{begun['id']}"
        assert (begun["status"], begun["done"], begun["total"]) == ("running", 0, total)
        told = client.get(location).get_json()
        assert (told["status"], told["analysis"]) == ("running", None)
    finally:
        Slow.go.set()
    done = wait_for(client, location, "done")
    assert (done["done"], done["total"], done["detail"]) == (total, total, None)
    found = done["analysis"]
    assert found["complete"]
    assert found["agent"]["name"] == "search:fake"
    at_once = client.post("/v1/analysis", json={"record": record, "agent": "turn:fake"}).get_json()
    for decision, other in zip(found["decisions"], at_once["decisions"], strict=True):
        assert decision == other
    assert app.extensions["skipbo"].store.count_open(REVIEWS) == 0


def test_one_that_only_chooses_reviews_in_the_background_too(
    app: Flask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the highest level does, which takes long and has no `suggest`."""
    monkeypatch.setitem(CLASSES, "search:fake", CLASSES["greedy"])
    client = app.test_client()
    body = {"record": record_of("short", 4), "agent": "search:fake"}
    response = client.post("/v1/analysis", json=body)
    assert response.status_code == 202
    done = wait_for(client, response.headers["Location"], "done")
    assert done["analysis"]["complete"]


def test_bad_requests_for_a_background_review_are_refused_at_once(client_of_fakes: Any) -> None:
    record = record_of("short", 4)
    bad = {**record, "events": record["events"][1:]}
    response = client_of_fakes.post("/v1/analysis", json={"record": bad, "agent": "search:fake"})
    assert response.status_code == 422
    assert response.get_json()["type"] == "/problems/impossible-record"
    assert client_of_fakes.get("/v1/analysis/nothing").status_code == 404


@pytest.fixture
def client_of_fakes(app: Flask) -> FlaskClient:
    return app.test_client()


def test_only_so_many_reviews_wait(app: Flask) -> None:
    client = app.test_client()
    state: Service = app.extensions["skipbo"]
    for _ in range(limits.MAX_REVIEWS):
        assert state.reviews.acquire(blocking=False)
    body = {"record": record_of("short", 4), "agent": "search:fake"}
    response = client.post("/v1/analysis", json=body)
    assert_problem(response, 503, "busy")
    assert response.headers["Retry-After"]
    assert state.store.count_open(REVIEWS) == 0


def test_a_review_that_fails_or_whose_process_is_gone_says_so(
    app: Flask, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = app.test_client()

    def broken(*args: Any, **keywords: Any) -> Any:
        raise RuntimeError("secret text")

    monkeypatch.setattr(review, "analyse", broken)
    body = {"record": record_of("short", 4), "agent": "search:fake"}
    response = client.post("/v1/analysis", json=body)
    failed = wait_for(client, response.headers["Location"], "failed")
    assert "secret" not in json.dumps(failed)
    kept = {"status": "running", "done": 3, "total": 9, "detail": None, "analysis": None}
    key = app.extensions["skipbo"].store.add(REVIEWS, {**kept, "seen": time.time() - 3600})
    gone = client.get(f"/v1/analysis/{key}").get_json()
    assert (gone["status"], gone["done"]) == ("failed", 3)
