"""Tests of the slow reference itself: the golden records, the hand-played cases, random games.

The compiled engine is compared with the reference elsewhere; nothing here imports it.
"""

from __future__ import annotations

import copy
import json
import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.reference import (
    PASS,
    ReferenceGame,
    ReshuffleError,
    board_count,
    card_text,
    check_deal,
    check_record,
    deck,
    full_rules,
    replay_record,
)
from tests.rule_cases import BAD_RULES, CASES, RESOLVED, Case, run_case, scripted_reshuffle

GOLDEN = Path(__file__).parent / "fixtures" / "golden"


def _lines(name: str) -> list[dict[str, Any]]:
    with (GOLDEN / name).open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


RECORDS = _lines("records.jsonl")
CORRUPTED = _lines("corrupted.jsonl")

# Every rule at work somewhere, alone and together.
RULE_SETS: list[dict[str, Any]] = [
    {"players": 2, "stock_size": 5},
    {"players": 3, "stock_size": 4, "stalemate": "fewest_stock"},
    {"players": 4, "stock_size": 3, "must_play_stock": True},
    {"players": 5},
    {"players": 6, "stock_size": 2, "wild_discard": False},
    {"players": 2, "stock_size": 3, "ordered_discards": True},
    {"players": 2, "stock_size": 3, "ordered_discards": True, "wild_discard": False},
    {"players": 2, "stock_size": 4, "draw_per_turn": 2},
    {"players": 3, "stock_size": 4, "draw_per_turn": 9, "hand_size": 3},
    {"players": 2, "copies": 1, "wilds": 2, "stock_size": 2, "hand_size": 4},
    {"players": 3, "copies": 1, "wilds": 0, "stock_size": 2, "stalemate": "fewest_stock"},
    {"players": 2, "stock_size": 10, "max_turns": 9},
    {"players": 2, "hand_size": 20, "stock_size": 1},
    {"players": 2, "copies": 1, "wilds": 60, "stock_size": 8},
    {"players": 4, "teams": 2, "stock_size": 3},
    {"players": 4, "teams": 2, "stock_size": 3, "team_discard": "team", "ordered_discards": True},
    {"players": 6, "teams": 2, "stock_size": 2, "stalemate": "fewest_stock"},
    {"players": 8, "teams": 2, "stock_size": 2, "draw_per_turn": 1},
    {"players": 9, "teams": 3, "stock_size": 2, "must_play_stock": True, "wild_discard": False},
    {"players": 12, "teams": 3, "stock_size": 1, "copies": 2, "wilds": 4},
]


def _random_game(rules: dict[str, Any], seed: int) -> tuple[ReferenceGame, dict[str, Any]]:
    """A game at its start from a shuffled deal, and its record without events."""
    rng = random.Random(seed)
    full = full_rules(rules)
    cards = deck(full)
    rng.shuffle(cards)
    stocks = []
    for _ in range(board_count(full)):
        stocks.append(cards[: full["stock_size"]])
        cards = cards[full["stock_size"] :]
    first_player = rng.randrange(full["players"])
    game = ReferenceGame(
        rules, stocks, cards, first_player, lambda completed: rng.sample(completed, len(completed))
    )
    record = {
        "format": "skipbo-record",
        "version": 1,
        "rules": rules,
        "first_player": first_player,
        "deal": {
            "stocks": [[card_text(card) for card in stock] for stock in stocks],
            "draw": [card_text(card) for card in cards],
        },
    }
    return game, record


def _choose(game: ReferenceGame, rng: random.Random) -> int:
    """A random legal action that likes to play, so that games get somewhere."""
    legal = game.legal_actions()
    stock_plays = [action for action in legal if action < 4 or 125 <= action < 129]
    plays = [action for action in legal if action < 72 or 125 <= action < 145]
    if stock_plays and rng.random() < 0.8:
        return rng.choice(stock_plays)
    if plays and rng.random() < 0.8:
        return rng.choice(plays)
    return rng.choice(legal)


# -- golden records --------------------------------------------------------------------------------


@pytest.mark.parametrize("index", range(len(RECORDS)))
def test_golden_record_is_replayed(index: int) -> None:
    record = RECORDS[index]
    game = replay_record(record)
    assert game.events == record["events"]
    last = record["events"][-1]
    assert (game.winner, game.reason, game.scores) == (
        last["winner"],
        last["reason"],
        last["scores"],
    )
    assert game.all_cards() == Counter(deck(record["rules"]))


@pytest.mark.parametrize("index", range(len(CORRUPTED)))
def test_corrupted_record_is_refused_where_the_referee_saw_it(index: int) -> None:
    corrupted = CORRUPTED[index]
    place = corrupted["referee"].split(":")[0]
    if place == "end":  # the referee's word for a missing end event
        place = f"event {len(corrupted['record']['events'])}"
    with pytest.raises(ValueError, match=rf"^{place}: "):
        check_record(corrupted["record"])


def test_a_record_cannot_stop_early_or_lose_or_double_an_event() -> None:
    record = min(RECORDS, key=lambda one: len(one["events"]))
    events = record["events"]
    for index, event in enumerate(events):
        wrong = [events[:index], [*events[:index], event, *events[index:]]]
        # A play that nothing later depends on could be missing from a game that is possible too.
        if event["type"] != "play":
            wrong.append(events[:index] + events[index + 1 :])
        for changed in wrong:
            with pytest.raises(ValueError, match=r"^event \d+: "):
                check_record({**record, "events": changed})


@pytest.mark.parametrize(
    ("event", "change"),
    [
        ("play", {"as": True}),
        ("play", {"to": True}),
        ("play", {"to": 0.0}),
        ("play", {"card": 1}),
        ("play", {"card": "W"}),
        ("play", {"from": "discard:4"}),
        ("play", {"from": None}),
        ("play", {"extra": 1}),
        ("play", {"board": 0}),
        ("discard", {"to": 4}),
        ("discard", {"player": None}),
        ("discard", {"type": "throw"}),
        ("discard", {"type": ["discard"]}),
        ("reshuffle", {"cards": None}),
        ("reshuffle", {"cards": ["0"]}),
        ("end", {"scores": [0]}),
        ("end", {"winner": False}),
    ],
)
def test_a_wrongly_formed_event_is_named(event: str, change: dict[str, Any]) -> None:
    record = next(
        one for one in RECORDS if any(own["type"] == "reshuffle" for own in one["events"])
    )
    index = next(i for i, own in enumerate(record["events"]) if own["type"] == event)
    events = list(record["events"])
    events[index] = {**events[index], **change}
    with pytest.raises(ValueError, match=rf"^event {index}: "):
        check_record({**record, "events": events})


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"format": "other"}, "record"),
        ({"version": 2}, "record"),
        ({"events": None}, "record"),
        ({"first_player": 9}, "record"),
        ({"first_player": True}, "record"),
        ({"events": [None]}, "event 0"),
        ({"events": []}, "event 0"),
        ({"rules": None}, "rules"),
        ({"rules": {"players": 1}}, "rules"),
        ({"deal": None}, "deal"),
        ({"deal": {"stocks": [], "draw": []}}, "deal"),
        ({"deal": {"stocks": [["13"]], "draw": []}}, "deal"),
    ],
)
def test_a_wrongly_formed_record_is_refused(change: dict[str, Any], place: str) -> None:
    with pytest.raises(ValueError, match=rf"^{place}: "):
        check_record({**RECORDS[0], **change})


def test_seed_and_agents_do_not_matter_to_a_check() -> None:
    record = {key: value for key, value in RECORDS[0].items() if key not in ("seed", "agents")}
    check_record(record)


# -- hand-played cases -----------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_rule_case(case: Case) -> None:
    check_deal(case.rules, case.stocks, case.draw)
    game = ReferenceGame(
        case.rules, case.stocks, case.draw, case.first_player, scripted_reshuffle(case)
    )
    run_case(case, game)


def test_case_names_are_unique() -> None:
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize(("rules", "boards", "stock_size"), RESOLVED)
def test_rules_resolve(rules: dict[str, Any], boards: int, stock_size: int) -> None:
    full = full_rules(rules)
    assert (board_count(full), full["stock_size"]) == (boards, stock_size)


@pytest.mark.parametrize(("rules", "why"), BAD_RULES)
def test_bad_rules_are_an_error(rules: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=r"^rules: "):
        full_rules(rules)


def test_a_setting_that_cannot_be_dealt_names_the_numbers() -> None:
    with pytest.raises(ValueError, match=r"162 .* 6 .* 30 ") as caught:
        full_rules({"players": 6, "stock_size": 30})
    assert re.search(r"\b5\b", str(caught.value))


# -- random games ----------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(len(RULE_SETS)))
def test_random_games_keep_every_card_and_check(number: int) -> None:
    rules = RULE_SETS[number]
    rng = random.Random(number)
    for seed in range(3):
        game, record = _random_game(rules, seed)
        whole_deck = Counter(deck(rules))
        while not game.over:
            assert game.all_cards() == whole_deck
            assert max(len(hand) for hand in game.hands) <= 20
            legal = game.legal_actions()
            assert legal
            assert legal == sorted(set(legal))
            # "A player with a card in hand can never PASS."
            assert PASS not in legal or not game.hands[game.player]
            game.apply(_choose(game, rng))
        assert game.all_cards() == whole_deck
        assert game.legal_actions() == []
        # Through JSON, as a file would hold it.
        record = json.loads(json.dumps({**record, "events": game.events}))
        assert replay_record(record).events == game.events


def test_every_illegal_id_is_refused_and_changes_nothing() -> None:
    rules = {"players": 4, "teams": 2, "stock_size": 6, "team_discard": "team"}
    rng = random.Random(0)
    game, _ = _random_game(rules, 0)
    for _ in range(40):
        legal = game.legal_actions()
        before = copy.deepcopy({**vars(game), "reshuffle": None})
        for action in [*range(-3, 203), True, None, "1", 1.5]:
            if type(action) is int and action in legal:
                continue
            with pytest.raises(ValueError, match="not legal"):
                game.apply(action)
        assert {**vars(game), "reshuffle": None} == before
        game.apply(_choose(game, rng))


def test_a_reshuffle_must_be_given_and_be_a_permutation() -> None:
    case = next(case for case in CASES if case.name == "completed_pile_serves_its_own_refill")
    actions = [action for step in case.steps for action in step.actions]
    for reshuffle in (None, lambda cards: cards[1:], lambda cards: [*cards[1:], 13]):
        game = ReferenceGame(case.rules, case.stocks, case.draw, case.first_player, reshuffle)
        for action in actions[:-1]:
            game.apply(action)
        with pytest.raises(ReshuffleError):
            game.apply(actions[-1])


# -- who sees what ---------------------------------------------------------------------------------


def test_public_view_shows_nothing_hidden() -> None:
    """Any swap of cards that the player cannot see leaves the view as it is."""
    for rules in ({"players": 3, "stock_size": 6}, {"players": 4, "teams": 2, "stock_size": 6}):
        rng = random.Random(5)
        game, _ = _random_game(rules, 5)
        for _ in range(60):
            for seat in range(game.players):
                other = copy.deepcopy({**vars(game), "reshuffle": None})
                swapped = object.__new__(ReferenceGame)
                vars(swapped).update(other)
                _deal_hidden_cards_anew(swapped, seat, rng)
                assert swapped.all_cards() == game.all_cards()
                assert swapped.public_view(seat) == game.public_view(seat)
            if game.over:
                break
            game.apply(_choose(game, rng))


def _deal_hidden_cards_anew(game: ReferenceGame, seat: int, rng: random.Random) -> None:
    """Shuffle among themselves: other hands, stocks below their top, the draw pile."""
    hidden = list(game.draw)
    for other, hand in enumerate(game.hands):
        hidden += hand if other != seat else []
    for stock in game.stocks:
        hidden += stock[:-1]
    rng.shuffle(hidden)
    for other, hand in enumerate(game.hands):
        if other != seat:
            hand[:] = [hidden.pop() for _ in hand]
    for stock in game.stocks:
        stock[:-1] = [hidden.pop() for _ in stock[:-1]]
    game.draw = hidden


def test_public_view_shows_what_is_public() -> None:
    case = next(case for case in CASES if case.name == "worked_turn")
    game = ReferenceGame(case.rules, case.stocks, case.draw, case.first_player)
    for action in case.steps[0].actions:
        game.apply(action)
    view = game.public_view(0)
    assert view["hand"] == [3, 6, 8, 12, 13]
    assert view["hand_sizes"] == [5, 4]
    assert view["building"] == [[1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], [1, 2], []]
    assert view["discards"] == [[[4], [10], [], []], [[12], [12], [9], []]]
    assert view["stock_tops"] == [7, 12]
    assert view["stock_sizes"] == [12, 12]
    assert view["draw_size"] == 162 - 24 - 18 - 5 - 9
    assert view["completed"] == []
    assert game.public_view(1)["hand"] == sorted(game.hands[1])
