"""Keeping the score of a match over HTTP."""

from __future__ import annotations

from typing import Any

import pytest
from flask.testing import FlaskClient

from serve import limits
from tests.serve.test_suggest import assert_problem


def begin(client: FlaskClient, **body: Any) -> Any:
    response = client.post("/v1/matches", json=body)
    assert response.status_code == 201, response.text
    match = response.get_json()
    assert response.headers["Location"] == f"/v1/matches/{match['id']}"
    return match


def test_a_match_to_its_end(client: FlaskClient) -> None:
    match = begin(client, sides=3, target=120)
    assert (match["scores"], match["wins"], match["games"]) == ([0, 0, 0], [0, 0, 0], [])
    path = f"/v1/matches/{match['id']}"
    told = client.post(f"{path}/games", json={"winner": 1, "left": [6, 0, 3]}).get_json()
    assert told["scores"] == [0, 70, 0]
    assert told["games"] == [{"winner": 1, "left": [6, 0, 3], "scores": [0, 70, 0]}]
    told = client.post(f"{path}/games", json={"winner": None}).get_json()
    assert (told["scores"], told["status"], told["winner"]) == ([0, 70, 0], "running", None)
    told = client.post(f"{path}/games", json={"winner": 1, "left": [4, 0, 1], "index": 2}).json
    assert (told["scores"], told["status"], told["winner"]) == ([0, 120, 0], "over", 1)
    assert client.get(path).get_json() == told
    refused = client.post(f"{path}/games", json={"winner": 1, "left": [4, 0, 1]})
    assert assert_problem(refused, 409, "game-over")["current"] == told
    back = client.post(f"{path}/undo").get_json()
    assert (back["scores"], back["status"], len(back["games"])) == ([0, 70, 0], "running", 2)
    for left in (1, 0):
        assert len(client.post(f"{path}/undo", json={}).get_json()["games"]) == left
    assert assert_problem(client.post(f"{path}/undo"), 409, "cannot-undo")["current"]["games"] == []


def test_an_entry_is_made_once_where_the_index_is_sent(client: FlaskClient) -> None:
    path = f"/v1/matches/{begin(client)['id']}"
    body = {"winner": 0, "left": [0, 5], "index": 0}
    after = client.post(f"{path}/games", json=body).get_json()
    assert after["scores"] == [50, 0]
    again = client.post(f"{path}/games", json=body)
    assert assert_problem(again, 409, "stale")["current"] == after
    assert_problem(client.post(f"{path}/undo", json={"index": 0}), 409, "stale")
    assert client.post(f"{path}/undo", json={"index": 1}).get_json()["games"] == []


@pytest.mark.parametrize(
    ("body", "kind", "pointer"),
    [
        ({}, "invalid-body", "/winner"),
        ({"winner": 2, "left": [0, 5]}, "impossible-entry", "/winner"),
        ({"winner": 6, "left": [0, 5]}, "invalid-body", "/winner"),
        ({"winner": "0", "left": [0, 5]}, "invalid-body", "/winner"),
        ({"winner": 0}, "impossible-entry", "/left"),
        ({"winner": 0, "left": [0]}, "impossible-entry", "/left"),
        ({"winner": 0, "left": [0, 0]}, "impossible-entry", "/left/1"),
        ({"winner": 0, "left": [5, 5]}, "impossible-entry", "/left/1"),
        ({"winner": 0, "left": [0, 31]}, "impossible-entry", "/left/1"),
        ({"winner": 0, "left": [0, -1]}, "invalid-body", "/left/1"),
        ({"winner": 0, "left": [0, 5], "points": 5}, "invalid-body", "/points"),
    ],
)
def test_entries_that_cannot_be(
    client: FlaskClient, body: dict[str, Any], kind: str, pointer: str
) -> None:
    match = begin(client, stock=30)
    response = client.post(f"/v1/matches/{match['id']}/games", json=body)
    assert_problem(response, 422, kind, pointer)
    assert client.get(f"/v1/matches/{match['id']}").get_json() == match


@pytest.mark.parametrize(
    ("body", "pointer"),
    [({"sides": 1}, "/sides"), ({"target": 0}, "/target"), ({"sides": 7}, "/sides")],
)
def test_matches_that_cannot_be(client: FlaskClient, body: dict[str, Any], pointer: str) -> None:
    assert_problem(client.post("/v1/matches", json=body), 422, "invalid-body", pointer)
    refused = client.post("/v1/matches", json={"sides": 6, "stock": 80})
    assert_problem(refused, 422, "impossible-entry", "/stock")


def test_a_match_has_an_end(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_MATCH_GAMES", 2)
    path = f"/v1/matches/{begin(client, target=10_000)['id']}"
    answers = [client.post(f"{path}/games", json={"winner": None}) for _ in range(3)]
    assert [response.status_code for response in answers] == [200, 200, 409]


def test_there_is_nothing_under_other_ids(client: FlaskClient) -> None:
    game = client.post("/v1/games", json={}).get_json()["id"]
    for key in ("x", game, "%00"):
        for response in (
            client.get(f"/v1/matches/{key}"),
            client.post(f"/v1/matches/{key}/games", json={"winner": None}),
            client.post(f"/v1/matches/{key}/undo"),
        ):
            assert_problem(response, 404, "not-found")
