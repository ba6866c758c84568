"""Games over HTTP: play to the end, what is refused, and that nothing hidden is ever told."""

from __future__ import annotations

import copy
import json
import re
import threading
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flask import Flask
from flask.testing import FlaskClient

from serve import create_app, limits
from serve.service import Service
from serve.store import GAMES
from skipbo_env import make_agent, record, saved
from skipbo_env.cards import parse_card
from skipbo_env.game import Game
from skipbo_env.rules import PRESETS, Rules
from tests.serve.test_suggest import assert_problem

SEED = 8_646_911_284_551


@pytest.fixture(scope="module")
def real_app() -> Flask:
    """The service with the project's own rule-based agents."""
    return create_app(agent="greedy", testing=True)


@pytest.fixture
def real(real_app: Flask) -> FlaskClient:
    return real_app.test_client()


def start(client: FlaskClient, **body: Any) -> Any:
    response = client.post("/v1/games", json=body)
    assert response.status_code == 201, response.text
    game = response.get_json()
    assert response.headers["Location"] == f"/v1/games/{game['id']}"
    return game


def move(client: FlaskClient, game: Any, action: int | str) -> Any:
    response = client.post(
        f"/v1/games/{game['id']}/moves", json={"ply": game["ply"], "action": action}
    )
    assert response.status_code == 200, response.text
    return response.get_json()


def undo(client: FlaskClient, game: Any) -> Any:
    return client.post(f"/v1/games/{game['id']}/undo", json={"ply": game["ply"]})


def play_on(client: FlaskClient, game: Any, rng: np.random.Generator) -> Iterator[Any]:
    """Every answer of a game in which people play sensibly, mostly."""
    adviser = make_agent("greedy")
    yield game
    while game["status"] == "running":
        action = adviser.act(game["position"])
        if rng.random() < 0.1:
            action = int(rng.choice([legal["action"] for legal in game["legal"]]))
        game = move(client, game, action)
        yield game


TABLES: list[dict[str, Any]] = [
    {"rules": "short"},
    {"players": 3, "rules": "short", "seat": 2, "agents": ["greedy", "simple"]},
    {"rules": {"players": 4, "teams": 2, "stock_size": 5}, "seat": 1, "agents": ["greedy"]},
    {"rules": {"players": 6, "stock_size": 4}, "seat": 5, "agents": ["greedy"]},
    {"rules": {"players": 6, "teams": 3, "stock_size": 3, "team_discard": "team"}, "seat": 3},
    {
        "rules": {
            "stock_size": 5,
            "must_play_stock": True,
            "wild_discard": False,
            "ordered_discards": True,
            "draw_per_turn": 3,
            "stalemate": "fewest_stock",
            "first_player": 0,
        },
        "agents": ["play-first"],
    },
    {"rules": {"players": 3, "stock_size": 5}, "seats": [2, 0], "agents": ["greedy"]},
    {"rules": {"stock_size": 4}, "seats": [0, 1]},
    {"rules": {"stock_size": 30, "max_turns": 9}, "agents": ["random"]},
]


@pytest.mark.parametrize("body", TABLES, ids=range(len(TABLES)))
def test_a_game_from_deal_to_record(real: FlaskClient, body: dict[str, Any]) -> None:
    rng = np.random.default_rng(1)
    rules = Rules.of(body.get("rules", "standard"), body.get("players"))
    people = sorted(body.get("seats", [body.get("seat", 0)]))
    told: list[Any] = []
    for game in play_on(real, start(real, seed=SEED, **body), rng):
        if game["ply"] % 5 == 0:
            assert real.get(f"/v1/games/{game['id']}").get_json() == game
        assert game["seats"] == people
        assert [seat for seat, name in enumerate(game["agents"]) if name is None] == people
        assert Rules.from_dict(game["rules"]) == rules
        assert game["seat"] in people
        if game["status"] == "running":
            assert game["to_move"] == game["seat"] == game["position"]["you"]
            position = Game.from_position(game["position"], 1)
            assert position.legal_actions() == [legal["action"] for legal in game["legal"]]
            assert game["result"] is None
            if game["ply"] % 5 == 0:  # it can be asked about as it stands
                body = {"position": game["position"], "top": 1}
                assert real.post("/v1/suggest", json=body).status_code == 200
        told.append(game)
    last = told[-1]
    assert (last["to_move"], last["legal"], last["can_undo"]) == (None, [], False)
    response = real.get(f"/v1/games/{last['id']}/record")
    assert response.status_code == 200
    whole = response.get_json()
    replayed = record.check(whole)
    assert len(replayed.actions) == last["ply"]
    assert whole["seed"] == SEED
    assert whole["agents"] == ["human" if name is None else name for name in last["agents"]]
    again = Game(rules, seed=SEED)
    for action in replayed.actions:
        again.apply(action)
    assert again.record(whole["agents"]) == whole  # restarts between moves changed no card
    assert last["result"] == again.result
    for seat in people:
        check_events(seat, [game for game in told if game["seat"] == seat], whole)


def check_events(seat: int, told: list[Any], whole: Any) -> None:
    """The events that a seat was told are the record's, each of them once, but for others' cards.

    At the end of a game with several people the answer is one seat's alone.
    """
    events: list[Any] = []
    for game in told:
        own = [place for place, event in enumerate(game["events"]) if moved_by(event, seat)]
        # A seat's own last move comes first; it was told before only if the seat moved on.
        assert own in ([], [0])
        events += game["events"]
    seen = [record.seen_event(event, seat) for event in whole["events"]]
    assert events == seen[: len(events)]
    assert len(events) == len(seen) or told[-1]["status"] == "running"


def moved_by(event: Any, seat: int) -> bool:
    return event["type"] in ("play", "discard", "pass") and event["player"] == seat


def test_equal_seeds_are_equal_games(real: FlaskClient) -> None:
    first, second = (
        list(islice(play_on(real, start(real, seed=3, agents=["random"]), rng), 12))
        for rng in (np.random.default_rng(2), np.random.default_rng(2))
    )
    for one, other in zip(first, second, strict=True):
        assert {**one, "id": ""} == {**other, "id": ""}
    fresh = {json.dumps(start(real)["position"]["hand"]) for _ in range(5)}
    assert len(fresh) > 1


def test_a_move_is_made_once(client: FlaskClient) -> None:
    """A retry, a second window or an old page gets 409 and the game as it stands."""
    game = start(client, seed=1)
    body = {"ply": game["ply"], "action": game["legal"][-1]["text"]}
    path = f"/v1/games/{game['id']}"
    after = client.post(f"{path}/moves", json=body).get_json()
    assert after["ply"] > game["ply"]
    problem = assert_problem(client.post(f"{path}/moves", json=body), 409, "stale")
    assert problem["current"] == after == client.get(path).get_json()
    for ply in (after["ply"] + 1, 1_000_000):
        response = client.post(f"{path}/moves", json={**body, "ply": ply})
        assert assert_problem(response, 409, "stale")["current"] == after
    assert_problem(client.post(f"{path}/undo", json={"ply": game["ply"]}), 409, "stale")


def test_of_many_equal_moves_one_is_made(fakes: None, tmp_path: Path) -> None:
    app = create_app(testing=True, database_url=f"sqlite:///{tmp_path}/games.db")
    game = start(app.test_client(), seed=1)
    body = {"ply": game["ply"], "action": game["legal"][-1]["action"]}
    ready = threading.Barrier(8)
    answers: list[Any] = []

    def post() -> None:
        client = app.test_client()
        ready.wait()
        answers.append(client.post(f"/v1/games/{game['id']}/moves", json=body))

    threads = [threading.Thread(target=post) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Counter(answer.status_code for answer in answers) == {200: 1, 409: 7}
    after = next(answer.get_json() for answer in answers if answer.status_code == 200)
    for answer in answers:
        if answer.status_code == 409:
            assert answer.get_json()["current"] == after
    app.extensions["skipbo"].store.close()


def test_undo_until_a_hidden_card_was_shown(real: FlaskClient) -> None:
    rng = np.random.default_rng(5)
    undone = refused = 0
    for game in play_on(real, start(real, rules="short", seed=11), rng):
        if game["status"] == "over":
            break
        for legal in game["legal"]:
            after = move(real, game, legal["action"])
            kinds = {event["type"] for event in after["events"]}
            shown = (
                after["status"] == "over"
                or legal["move"]["type"] != "play"
                or legal["move"]["from"] == "stock"
                or bool(kinds & {"draw", "reshuffle"})
            )
            assert after["can_undo"] != shown
            response = undo(real, after)
            if shown:
                problem = assert_problem(response, 409, "cannot-undo")
                assert problem["current"] == after
                refused += 1
                break
            back = response.get_json()
            assert back["position"] == game["position"]
            assert back["legal"] == game["legal"]
            assert back["ply"] == game["ply"]
            undone += 1
        else:
            continue
        if refused > 12:
            break
        # The game has moved on: another one, brought to the same point, is not needed.
        game.clear()
        game.update(after)
    assert undone > 20
    assert refused > 3


def test_undo_goes_back_through_a_turn(real: FlaskClient) -> None:
    """All plays of a turn that showed nothing can be taken back one by one, and no further."""
    for seed in range(40):
        game = start(real, seed=seed, rules={"first_player": 0, "hand_size": 12})
        trail = [game]
        while True:
            plays = [
                a for a in trail[-1]["legal"] if a["text"].startswith("hand") and ">" in a["text"]
            ]
            plays = [a for a in plays if "=>" not in a["text"]]
            if not plays or len(trail) == 4:
                break
            trail.append(move(real, trail[-1], plays[0]["action"]))
        if len(trail) == 4:
            break
    assert len(trail) == 4
    for earlier in reversed(trail[:-1]):
        response = real.post(f"/v1/games/{game['id']}/undo")  # the body may be left out
        assert response.get_json() == earlier
    assert_problem(real.post(f"/v1/games/{game['id']}/undo", json={}), 409, "cannot-undo")


def test_a_partner_may_empty_a_stock_and_take_it_back(real: FlaskClient) -> None:
    """In a team the last card of one of two stocks shows nothing."""
    for seed in range(300):
        rules = {"players": 4, "teams": 2, "stock_size": 1, "first_player": 0}
        game = start(real, seed=seed, rules=rules)
        stock = [a for a in game["legal"] if a["move"].get("from") == "stock"]
        if stock:
            break
    after = move(real, game, stock[0]["action"])
    assert after["status"] == "running"
    assert after["can_undo"]
    assert undo(real, after).get_json() == game


def test_hints_are_suggestions(client: FlaskClient) -> None:
    game = start(client, seed=4)
    path = f"/v1/games/{game['id']}/hint"
    asked = client.post("/v1/suggest", json={"position": game["position"]}).get_json()
    for response in (client.get(path), client.post(path), client.post(path, json={})):
        assert response.status_code == 200
        assert response.get_json()["moves"] == asked["moves"]
    told = client.post(path, json={"agent": "greedy", "top": 1}).get_json()
    assert (told["agent"]["name"], len(told["moves"])) == ("greedy", 1)
    assert_problem(client.post(path, json={"agent": "../x"}), 422, "unknown-agent", "/agent")
    assert client.get(f"/v1/games/{game['id']}").get_json() == game


BAD: list[tuple[dict[str, Any], str, str]] = [
    ({"players": 7}, "impossible-rules", "/players"),
    ({"players": 1}, "invalid-body", "/players"),
    ({"players": 3, "rules": "partners"}, "impossible-rules", "/players"),
    ({"players": 3, "rules": {"players": 4}}, "impossible-rules", "/players"),
    ({"rules": "nonsense"}, "impossible-rules", "/rules"),
    ({"rules": {"players": 6, "stock_size": 40}}, "impossible-rules", "/rules/stock_size"),
    ({"rules": {"players": 5, "teams": 2}}, "impossible-rules", "/rules/players"),
    ({"rules": {"max_turns": limits.MAX_TURNS + 1}}, "impossible-rules", "/rules/max_turns"),
    ({"rules": {"colour": 1}}, "impossible-rules", "/rules/colour"),
    ({"rules": {"a/b~" * 20: 1}}, "impossible-rules", "/rules"),
    ({"rules": {"players": "2"}}, "impossible-rules", "/rules/players"),
    ({"rules": {"players": 2.5}}, "impossible-rules", "/rules/players"),
    ({"rules": {"first_player": 2}}, "impossible-rules", "/rules/first_player"),
    ({"rules": {"stalemate": {}}}, "impossible-rules", "/rules/stalemate"),
    ({"rules": {"must_play_stock": 1}}, "impossible-rules", "/rules/must_play_stock"),
    ({"rules": 5}, "invalid-body", "/rules"),
    ({"rules": []}, "invalid-body", "/rules"),
    ({"seat": 2}, "invalid-body", "/seat"),
    ({"seats": []}, "invalid-body", "/seats"),
    ({"seats": [0, 2]}, "invalid-body", "/seats/1"),
    ({"seats": [1, 1]}, "invalid-body", "/seats/1"),
    ({"seats": [0], "seat": 0}, "invalid-body", "/seats"),
    ({"agents": ["greedy", "greedy"]}, "invalid-body", "/agents"),
    ({"seats": [0, 1], "agents": ["greedy"]}, "invalid-body", "/agents"),
    ({"agents": ["nobody"]}, "unknown-agent", "/agents/0"),
    ({"players": 3, "agents": ["greedy", "/etc/passwd"]}, "unknown-agent", "/agents/1"),
    ({"agents": ["py:os:getcwd"]}, "unknown-agent", "/agents/0"),
    ({"agents": ["greedy?level=11"]}, "unknown-agent", "/agents/0"),
    ({"agents": [None]}, "invalid-body", "/agents/0"),
    ({"seed": -1}, "invalid-body", "/seed"),
    ({"seed": 2**53}, "invalid-body", "/seed"),
    ({"seed": "1"}, "invalid-body", "/seed"),
]


@pytest.mark.parametrize(("body", "kind", "pointer"), BAD, ids=range(len(BAD)))
def test_games_that_cannot_be(
    client: FlaskClient, body: dict[str, Any], kind: str, pointer: str
) -> None:
    problem = assert_problem(client.post("/v1/games", json=body), 422, kind)
    assert problem["pointer"].startswith(pointer), problem


def test_moves_that_cannot_be(client: FlaskClient) -> None:
    game = start(client, seed=1)
    path = f"/v1/games/{game['id']}/moves"
    legal = {action["action"] for action in game["legal"]}
    for action, kind, status in (
        (next(a for a in range(125) if a not in legal), "illegal-action", 422),
        (196, "illegal-action", 422),
        ("hand 77>1", "illegal-action", 422),
        (-1, "invalid-body", 422),
        (None, "invalid-body", 422),
        (True, "invalid-body", 422),
    ):
        response = client.post(path, json={"ply": game["ply"], "action": action})
        assert_problem(response, status, kind, "/action")
    assert_problem(client.post(path, json={"action": 1}), 422, "invalid-body", "/ply")
    assert client.get(f"/v1/games/{game['id']}").get_json() == game


def test_there_is_nothing_under_other_ids(client: FlaskClient) -> None:
    game = start(client)
    for key in ("x", game["id"][:-1], game["id"] + "x", "%00", "%2e%2e", "ä", "A" * 5000):
        for response in (
            client.get(f"/v1/games/{key}"),
            client.get(f"/v1/games/{key}/record"),
            client.get(f"/v1/games/{key}/hint"),
            client.post(f"/v1/games/{key}/moves", json={"ply": 0, "action": 0}),
            client.post(f"/v1/games/{key}/undo"),
            client.post(f"/v1/games/{key}/hint"),
        ):
            assert_problem(response, 404, "not-found")


def test_a_game_that_is_over_stays_so(real: FlaskClient) -> None:
    rules = {"stock_size": 1, "max_turns": 1, "first_player": 0}
    for seed in range(20):
        game = start(real, seed=seed, rules=rules)
        while game["status"] == "running":
            game = move(real, game, game["legal"][-1]["action"])
        assert game["result"]["reason"] in ("turn_limit", "stock_empty")
        path = f"/v1/games/{game['id']}"
        body = {"ply": game["ply"], "action": 0}
        for response, kind in (
            (real.post(f"{path}/moves", json=body), "game-over"),
            (real.post(f"{path}/hint"), "game-over"),
            (real.post(f"{path}/undo"), "cannot-undo"),
        ):
            assert assert_problem(response, 409, kind)["current"] == game
    running = start(real)
    problem = real.get(f"/v1/games/{running['id']}/record")
    assert assert_problem(problem, 409, "not-over")["current"] == running


def test_an_agent_that_is_gone_leaves_the_game_as_it_was(real_app: Flask) -> None:
    client = real_app.test_client()
    game = start(client, agents=["simple"], rules={"first_player": 0})
    state: Service = real_app.extensions["skipbo"]
    entry = state.agents.listed.pop("simple")
    try:
        body = {"ply": game["ply"], "action": game["legal"][-1]["action"]}
        response = client.post(f"/v1/games/{game['id']}/moves", json=body)
        assert_problem(response, 503, "agent-gone")
        assert client.get(f"/v1/games/{game['id']}").get_json() == game
    finally:
        state.agents.listed["simple"] = entry


# Nothing hidden --------------------------------------------------------------------------------


def hidden_places(game: Game, seat: int, deal: dict[str, Any]) -> list[tuple[list[str], int]]:
    """Places of the deal whose cards a seat has not seen, as (list of cards, index).

    Before any reshuffle: stocks below their tops, the draw pile, and what others drew and hold.
    """
    places: list[tuple[list[str], int]] = []
    boards = game.position(seat).get("boards") or game.position(seat)["players"]
    for stock, board in zip(deal["stocks"], boards, strict=True):
        places += [(stock, place) for place in range(max(0, board["stock_size"] - 1))]
    drawn = 0
    held: dict[int, list[int]] = {}
    for event in game.events():
        hand = held.setdefault(event.get("player", -1), [])
        if event["type"] == "draw":
            hand += range(drawn, drawn + len(event["cards"]))
            drawn += len(event["cards"])
        elif event["type"] in ("play", "discard") and event.get("from", "hand") == "hand":
            hand.remove(next(i for i in hand if deal["draw"][i] == event["card"]))
    for other, hand in held.items():
        if other != seat:
            places += [(deal["draw"], place) for place in hand]
    return places + [(deal["draw"], place) for place in range(drawn, len(deal["draw"]))]


def swap_hidden(kept: dict[str, Any], seat: int, rng: np.random.Generator) -> dict[str, Any] | None:
    """The same game with what a seat cannot see dealt anew; None after a reshuffle."""
    if kept["game"]["reshuffles"]:
        return None
    game = saved.load(kept["game"])
    deal = game.record()["deal"]
    places = hidden_places(game, seat, deal)
    cards = [cards[place] for cards, place in places]
    for (into, place), k in zip(places, rng.permutation(len(cards)), strict=True):
        into[place] = cards[k]
    other = copy.deepcopy(kept)
    other["game"]["stocks"] = [[parse_card(card) for card in stock] for stock in deal["stocks"]]
    other["game"]["draw"] = [parse_card(card) for card in deal["draw"]]
    other["game"]["seed"] = int(rng.integers(2**53))
    other["game"]["rng"] = [int(n) for n in rng.integers(2**31, size=2)]
    return other


def answers(client: FlaskClient, key: str, ply: int) -> list[str]:
    """All that a running game can be made to say, but for the new cards that a move draws."""
    path = f"/v1/games/{key}"
    illegal = {"ply": ply, "action": 124}
    told = [
        client.get(path),
        client.get(f"{path}/hint"),
        client.post(f"{path}/hint", json={"agent": "simple"}),
        client.get(f"{path}/record"),
        client.post(f"{path}/moves", json={"ply": ply + 1, "action": 0}),
        client.post(f"{path}/moves", json=illegal),
        client.post(f"{path}/undo", json={"ply": ply + 1}),
    ]
    texts = []
    for response in told:
        headers = {k: v for k, v in response.headers if k not in ("X-Request-ID", "Content-Length")}
        text = re.sub(r'"(request_id|elapsed_ms)":("[^"]*"|[\d.]+)', "", response.text)
        texts.append((text + json.dumps(headers)).replace(key, "ID"))
    return texts


@pytest.mark.parametrize("body", TABLES[:-1], ids=range(len(TABLES) - 1))
def test_nothing_hidden_is_told(real_app: Flask, real: FlaskClient, body: dict[str, Any]) -> None:
    """Games that differ only in what the seat cannot see have byte-identical answers."""
    rng = np.random.default_rng(3)
    kept_games = real_app.extensions["skipbo"].store
    compared = 0
    for seed in range(SEED, SEED + 3):
        for game in play_on(real, start(real, seed=seed, **body), rng):
            if game["status"] == "over" or compared >= 8:
                break
            for event in game["events"]:
                if event["type"] == "draw" and event["player"] != game["seat"]:
                    assert "cards" not in event
                    assert event["count"] > 0
                assert event["type"] != "reshuffle" or "cards" not in event
            data, _ = kept_games.get(GAMES, game["id"])
            other = swap_hidden(data, game["seat"], rng)
            if other is None or rng.random() < 0.6:
                continue
            assert other["game"] != data["game"]
            told = answers(real, game["id"], game["ply"])
            assert str(seed) not in "".join(told)
            assert answers(real, kept_games.add(GAMES, other), game["ply"]) == told
            compared += 1
    assert compared >= 4


def test_other_seats_hands_are_not_in_the_answer(real: FlaskClient) -> None:
    """The answer's own fields, one by one: no list of cards but those that everybody sees."""
    game = start(real, players=4, seed=SEED)
    assert set(game) == {
        *("id", "ply", "status", "seat", "to_move", "position", "legal", "can_undo"),
        *("events", "result", "rules", "seats", "agents"),
    }
    position = game["position"]
    for other in position["players"]:
        assert set(other) == {"stock_top", "stock_size", "discards", "hand_size"}
    assert set(position) == {
        *("rules", "you", "hand", "building", "building_cards", "players", "draw_size"),
        *("completed", "passes", "turns"),
    }


def test_every_preset_can_be_played(real: FlaskClient) -> None:
    for name in PRESETS:
        game = start(real, rules=name)
        move(real, game, game["legal"][0]["action"])


def test_a_stalemate_of_twelve_is_told(app: Flask) -> None:
    """As many passes as seats: the largest number that the field ever holds."""
    client = app.test_client()
    rules = {"players": 12, "teams": 3, "copies": 1, "wilds": 0, "stock_size": 1, "hand_size": 1}
    body = {"rules": rules, "seats": list(range(12)), "seed": 0}
    told = client.post("/v1/games", json=body).get_json()
    for _ in range(300):
        if told["status"] != "running":
            break
        ids = [move["action"] for move in told["legal"]]
        action = max([i for i in ids if 72 <= i <= 124 or i >= 145] or ids)
        answer = client.post(
            f"/v1/games/{told['id']}/moves", json={"ply": told["ply"], "action": action}
        )
        assert answer.status_code == 200, answer.text
        told = answer.get_json()
    assert told["result"]["reason"] == "stalemate"
    assert told["position"]["passes"] == 12
