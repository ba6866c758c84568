"""Game records: golden ones replayed beside the reference, corrupted and malformed ones refused."""

from __future__ import annotations

import copy
import json
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skipbo_env import record
from skipbo_env.cards import WILD, card_text
from skipbo_env.engine import layout, moves
from skipbo_env.engine.deal import deal
from skipbo_env.game import Game
from skipbo_env.record import RecordError
from skipbo_env.rules import PRESETS, Rules, RulesError
from tests.reference import ReferenceGame, check_record

GOLDEN = Path(__file__).parents[1] / "fixtures" / "golden"
RECORDS: list[dict[str, Any]] = [
    json.loads(line) for line in (GOLDEN / "records.jsonl").read_text().splitlines()
]
CORRUPTED: list[dict[str, Any]] = [
    json.loads(line) for line in (GOLDEN / "corrupted.jsonl").read_text().splitlines()
]

# The shortest one with a reshuffle.
SHORT = min(
    (data for data in RECORDS if any(event["type"] == "reshuffle" for event in data["events"])),
    key=lambda data: len(data["events"]),
)

# What the message must say for each kind of fault.
SAID = {
    "card": "the pile's next card is",
    "dropped": ("not on top of", "draws in the turn of"),
    "doubled": "it is the turn of player",
    "wrong_pile": "does not fit building pile",
    "negative_pile": ("no building pile -1", "no discard pile -1"),
    "wrong_player": "acts in the turn of",
    "deal": "not the deck",
    "extra_stock": "stocks where these rules have",
    "first_player": "draws in the turn of",
    "scores": "scores",
    "winner": "winner",
    "reason": "reason",
    "early_end": "ended although the game is not over",
    "no_end": "no end event",
    "after_end": "an event after the end",
    "missing_complete": "is full and was not set aside",
    "invented_complete": "is not complete",
    "topped_up": ("is full and was not set aside", "0 are due"),
    "eager_reshuffle": "reshuffled while the draw pile still has cards",
    "reshuffle_order": "not those of the completed piles",
    "passed": "passed with cards in hand",
    "stock_from_below": ("not in hand", "not on top of stock"),
    "wild_value": "counted as",
    "foreign_board": "may not touch board",
}


def as_json(data: Any) -> Any:
    """Through JSON and back, as a file would."""
    return json.loads(json.dumps(data, allow_nan=False))


def play_on(game: Game, rng: random.Random, most: int = 10**9) -> Game:
    """Play a game on, mostly by plays, so that piles are completed and reshuffled."""
    while not game.over and most:
        legal = game.legal_actions()
        plays = [a for a in legal if a < moves.A_END or moves.A_STOCK2 <= a < moves.A_END2]
        game.apply(rng.choice(plays if plays and rng.random() < 0.9 else legal))
        most -= 1
    return game


def outcome(follow: Any, data: Any) -> tuple[Any, Any]:
    """The RecordError that following a record raises, or None and what it returns."""
    try:
        return None, follow(data)
    except RecordError as error:
        return error, None


def table_of(state: layout.State) -> Any:
    """Everything that lies on the table and all counts, without the generator and unused cells."""
    boards = range(state[layout.BOARDS])
    return (
        state[layout.PLAYER : layout.DRAW_LO].tolist(),
        state[layout.COMPLETED_SIZE : layout.RNG_LO].tolist(),
        state[layout.HEIGHT : layout.BOARD].tolist(),
        [layout.stock_cards(state, board) for board in boards],
        [layout.discard_cards(state, board, pile) for board in boards for pile in range(4)],
        [layout.hand_cards(state, player) for player in range(state[layout.PLAYERS])],
        layout.draw_cards(state),
    )


@st.composite
def any_rules(draw: st.DrawFn) -> Rules:
    """Rules of every kind, with decks small enough for short games and many reshuffles."""
    teams = draw(st.sampled_from([0, 0, 2, 3]))
    seats = {0: [2, 3, 4, 5, 6], 2: [4, 6, 8], 3: [6, 9, 12]}[teams]
    options: dict[str, Any] = {
        "players": draw(st.sampled_from(seats)),
        "teams": teams,
        "stock_size": draw(st.integers(1, 12)),
        "hand_size": draw(st.integers(1, 8)),
        "draw_per_turn": draw(st.none() | st.integers(1, 20)),
        "copies": draw(st.integers(2, 12)),
        "wilds": draw(st.integers(0, 20)),
        "must_play_stock": draw(st.booleans()),
        "wild_discard": draw(st.booleans()),
        "ordered_discards": draw(st.booleans()),
        "team_discard": draw(st.sampled_from(["own", "team"])),
        "stalemate": draw(st.sampled_from(["draw", "fewest_stock"])),
        "max_turns": draw(st.sampled_from([2000, 60])),
    }
    try:
        return Rules(**options)
    except RulesError:
        return Rules(**{**options, "stock_size": 1, "copies": 12})


# The golden records ----------------------------------------------------------------------------


@pytest.mark.parametrize("data", RECORDS, ids=lambda data: str(data["seed"]))
def test_golden_record_comes_back_as_it_was(data: dict[str, Any]) -> None:
    game = Game.from_record(data)
    again = as_json(game.record())
    assert again["deal"] == data["deal"]
    assert again["first_player"] == data["first_player"]
    assert again["events"] == data["events"]
    assert Rules.from_dict(again["rules"]) == Rules.from_dict(data["rules"])
    assert again["seed"] == data["seed"]
    assert again["agents"] == data["agents"]
    assert game.over
    assert game.result == {key: data["events"][-1][key] for key in ("winner", "reason", "scores")}


@pytest.mark.parametrize("data", RECORDS, ids=lambda data: str(data["seed"]))
def test_golden_record_played_choice_by_choice_beside_the_reference(data: dict[str, Any]) -> None:
    cards = {card_text(card): card for card in range(1, WILD + 1)}
    stocks = [[cards[c] for c in stock] for stock in data["deal"]["stocks"]]
    draw = [cards[c] for c in data["deal"]["draw"]]
    orders = [[cards[c] for c in e["cards"]] for e in data["events"] if e["type"] == "reshuffle"]
    game = Game.from_deal(Rules.from_dict(data["rules"]), stocks, draw, data["first_player"])
    given = iter(orders)
    other = ReferenceGame(
        data["rules"], stocks, draw, data["first_player"], reshuffle=lambda _: next(given)
    )
    reshuffles = iter(orders)
    for event in data["events"]:
        if event["type"] not in ("play", "discard", "pass"):
            continue
        legal = game.legal_actions()
        assert legal == other.legal_actions()
        assert legal == np.flatnonzero(game.mask()).tolist()
        assert game.player == other.player == event["player"]
        told = {key: value for key, value in event.items() if key != "player"}
        action = next(a for a in legal if game.move(a) == told)
        before = len(other.events)
        other.apply(action)
        shuffled = any(e["type"] == "reshuffle" for e in other.events[before:])
        game.apply(action, reshuffle=next(reshuffles) if shuffled else None)
    assert game.events() == data["events"] == other.events
    assert game.legal_actions() == []


def test_whole_golden_file_is_valid() -> None:
    path = GOLDEN / "records.jsonl"
    assert record.check_file(path) == {"valid": True, "records": len(RECORDS)}


@pytest.mark.parametrize("case", CORRUPTED, ids=lambda case: case["fault"])
def test_corrupted_record_is_refused_where_the_referee_says(case: dict[str, Any]) -> None:
    place = case["referee"].split(":")[0]
    index = int(place.split()[1]) if place.startswith("event") else None
    for follow in (record.check, record.replay, Game.from_record):
        with pytest.raises(RecordError) as caught:
            follow(case["record"])
        assert caught.value.event == index
        said = SAID[case["fault"]]
        assert any(words in str(caught.value) for words in ([said] if type(said) is str else said))
        if index is not None:
            assert str(caught.value).startswith(f"event {index}: ")
            assert caught.value.path[:2] == ("events", index)


def test_every_kind_of_corruption_has_its_words() -> None:
    assert set(SAID) == {case["fault"] for case in CORRUPTED}


# Round trips -----------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(any_rules(), st.integers(0, 2**64 - 1), st.data())
def test_random_games_round_trip(rules: Rules, seed: int, data: st.DataObject) -> None:
    game = play_on(Game(rules, seed=seed), random.Random(seed), 4000)
    told = as_json(game.record(["x"] * rules.players))
    if game.over:
        check_record(told)
    followed = record.replay(told)
    assert (followed.rules, followed.seed, followed.actions) == (rules, seed, game.actions)
    assert table_of(followed.state) == table_of(game.state)
    assert as_json(Game.from_record(told).record()) == told
    ply = data.draw(st.integers(0, len(game.actions)))
    back = Game.from_record(told, ply)
    assert back.actions == game.actions[:ply]
    assert all(place < ply for place in back.scripts)
    assert as_json(back.record())["events"] == told["events"][: len(back.events())]


def test_turning_back_to_any_choice() -> None:
    data = SHORT
    told = record.replay(data)
    assert told.scripts
    seen = list(told.states())
    assert [action for _, action in seen] == told.actions
    for ply, (state, action) in enumerate(seen):
        back = record.replay(data, ply)
        assert np.array_equal(back.state, state)
        assert moves.is_legal(back.state, action)
        assert back.actions == told.actions[:ply]
    assert np.array_equal(record.replay(data, len(seen)).state, told.state)


def test_turned_back_game_plays_on() -> None:
    data = RECORDS[0]
    game = Game.from_record(data, 20)
    play_on(game, random.Random(1))
    assert game.over
    record.check(as_json(game.record()))


@pytest.mark.parametrize("ply", [-1, 10**6, "3", 1.0, True, math.nan])
def test_no_such_choice(ply: Any) -> None:
    with pytest.raises(RecordError, match="ply"):
        record.replay(RECORDS[0], ply)


def test_first_player_of_a_match_may_differ_from_the_rules() -> None:
    data = copy.deepcopy(RECORDS[0])
    data["rules"]["first_player"] = 1 - data["first_player"]
    assert record.check(data).rules.first_player == 1 - data["first_player"]


def test_seed_and_agents_may_be_missing() -> None:
    data = copy.deepcopy(RECORDS[0])
    del data["seed"], data["agents"]
    told = record.check(data)
    assert (told.seed, told.agents) == (None, None)
    assert Game.from_record(data).record()["agents"] is None


# Running games ---------------------------------------------------------------------------------


def test_running_game_is_no_finished_record() -> None:
    game = play_on(Game("short", seed=5), random.Random(5), 10)
    told = as_json(game.record())
    assert told["events"][-1]["type"] != "end"
    assert Game.from_record(told).legal_actions() == game.legal_actions()
    with pytest.raises(RecordError, match="no end event") as caught:
        record.check(told)
    assert caught.value.event is None


def test_record_cut_anywhere_is_a_running_game_or_refused() -> None:
    data = SHORT
    accepted = 0
    for length in range(len(data["events"])):
        cut = {**data, "events": data["events"][:length]}
        with pytest.raises(RecordError):
            record.check(cut)
        error, told = outcome(record.replay, cut)
        if told is None:
            assert error.event is None
            continue
        accepted += 1
        assert record.events_of(told.rules, told.start, told.actions, told.scripts) == cut["events"]
    assert accepted == len(record.replay(data).actions)


# Refusing what is malformed --------------------------------------------------------------------

JUNK: list[Any] = [
    *(None, True, False, 0, 1, 2, -1, 13, 1.0, 0.5, 10**30, math.inf, math.nan),
    *(
        "",
        "0",
        "13",
        "s",
        "S",
        "1",
        " 1",
        "stock",
        "discard:4",
        "discard:-1",
        "discard:٣",
        "random",
    ),
    *([], [[]], {}, {"type": "draw"}, ["S"], [None], {"a": 1}),
]


def nodes(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value inside JSON data."""
    found = [path] if path else []
    if isinstance(data, (dict, list)):
        items = data.items() if isinstance(data, dict) else enumerate(data)
        for key, value in items:
            found += nodes(value, (*path, key))
    return found


def changed(data: Any, path: tuple[Any, ...], change: str, value: Any) -> Any:
    """A copy with the value at a path replaced, deleted, doubled or named otherwise."""
    out = copy.deepcopy(data)
    inside = out
    for key in path[:-1]:
        inside = inside[key]
    if change == "replace":
        inside[path[-1]] = value
    elif change == "delete":
        del inside[path[-1]]
    elif isinstance(inside, list):
        inside.insert(path[-1], copy.deepcopy(inside[path[-1]]))
    else:
        inside[f"{path[-1]}x"] = inside.pop(path[-1])
    return out


@pytest.fixture(scope="module")
def small() -> dict[str, Any]:
    """A short finished team game with a reshuffle, every kind of play and discards."""
    rules = Rules(players=4, teams=2, stock_size=3, copies=2, wilds=12, team_discard="team")
    for seed in range(1000):
        game = play_on(Game(rules, seed=seed), random.Random(seed))
        data: dict[str, Any] = as_json(game.record(["a", "b", "c", "d"]))
        if game.scripts or any(event["type"] == "reshuffle" for event in data["events"]):
            return data
    raise AssertionError("no game has a reshuffle")


def test_every_single_change_is_told_or_harmless(small: dict[str, Any]) -> None:
    rng = random.Random(7)
    paths = nodes(small)
    for _ in range(4000):
        path = rng.choice(paths)
        change = rng.choice(["replace", "replace", "delete", "other"])
        broken = changed(small, path, change, copy.deepcopy(rng.choice(JUNK)))
        error, told = outcome(record.check, broken)
        if told is None:
            assert "\n" not in str(error)
            continue
        # What is accepted is the record of another game, or differs where no event depends on it.
        events = record.events_of(told.rules, told.start, told.actions, told.scripts)
        assert events == broken["events"]


@settings(max_examples=150, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(st.sampled_from(["type", "player", "cards", "x"]), inner, max_size=4)
        ),
        max_leaves=12,
    ),
    st.sampled_from(["", "rules", "deal", "events", "event", "first_player", "agents", "seed"]),
)
def test_any_json_gives_a_record_error(junk: Any, place: str) -> None:
    data = copy.deepcopy(RECORDS[0])
    if place == "":
        data = junk
    elif place == "event":
        data["events"][3] = junk
    else:
        data[place] = junk
    try:
        record.check(data)
    except RecordError:
        pass
    else:
        assert place in ("agents", "seed", "first_player") or (place, junk) == ("rules", {})


def test_deep_and_huge_values_are_refused() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    for junk in (deep, 10**5000, {"players": 10**5000}, {"copies": deep}):
        for key in ("rules", "deal", "seed", "agents", "first_player", "format", "version"):
            with pytest.raises(RecordError):
                record.check({**RECORDS[0], key: junk})
        with pytest.raises(RecordError):
            record.check({**RECORDS[0], "events": [junk]})


def choice(data: dict[str, Any], **wanted: Any) -> int:
    """The index of the first event that has these fields."""
    return next(
        index
        for index, event in enumerate(data["events"])
        if all(event.get(key) == value for key, value in wanted.items())
    )


@pytest.mark.parametrize(
    ("wanted", "change", "said"),
    [
        ({"type": "play"}, {"as": None}, "counted as None"),
        ({"type": "play"}, {"as": True}, "counted as True"),
        ({"type": "play"}, {"from": "discard:7"}, "no source 'discard:7'"),
        ({"type": "play"}, {"card": "13"}, "'13' is no card"),
        ({"type": "play"}, {"card": 3}, "3 is no card"),
        ({"type": "play"}, {"to": 4}, "no building pile 4"),
        ({"type": "play"}, {"to": 0.0}, "no building pile 0.0"),
        ({"type": "play"}, {"note": "!"}, "unknown field 'note'"),
        ({"type": "play"}, {"player": "0"}, "no player '0'"),
        ({"type": "play"}, {"type": "plays"}, "no type of event 'plays'"),
        ({"type": "play", "from": "hand"}, {"board": 0}, "unknown field 'board'"),
        ({"type": "play", "from": "stock"}, {"board": 7}, "no board 7"),
        ({"type": "discard"}, {"to": "1"}, "no discard pile '1'"),
        ({"type": "discard"}, {"type": "pass"}, "unknown field 'card'"),
        ({"type": "draw"}, {"cards": "12"}, "needs a list of cards"),
        ({"type": "draw"}, {"end": "bottom"}, "has to draw|draws|end|next card"),
        ({"type": "draw"}, {"end": "top"}, "unknown field 'end'"),
        ({"type": "complete"}, {"pile": 9}, "is complete, not 9"),
        ({"type": "end"}, {"scores": []}, "right is"),
    ],
)
def test_what_is_wrong_is_named(
    small: dict[str, Any], wanted: dict[str, Any], change: dict[str, Any], said: str
) -> None:
    data = copy.deepcopy(small)
    index = choice(data, **wanted)
    data["events"][index].update(change)
    with pytest.raises(RecordError, match=said):
        record.check(data)


@pytest.mark.parametrize("field", ["type", "player", "card", "from", "to", "as"])
def test_missing_field_is_named(small: dict[str, Any], field: str) -> None:
    data = copy.deepcopy(small)
    index = choice(data, type="play")
    del data["events"][index][field]
    with pytest.raises(RecordError, match=field) as caught:
        record.check(data)
    assert caught.value.event == index


def hand_made(rules: Rules, draw: list[str], stocks: list[list[str]], *events: Any) -> Any:
    """A record of events that follow the first draw."""
    first = {"type": "draw", "player": 0, "cards": draw[: rules.hand_size]}
    return {
        "format": "skipbo-record",
        "version": 1,
        "rules": rules.to_dict(),
        "first_player": 0,
        "deal": {"stocks": stocks, "draw": draw},
        "events": [first, *events],
    }


@pytest.mark.parametrize(
    ("options", "event", "said"),
    [
        ({"must_play_stock": True}, {"type": "discard", "card": "5", "to": 0}, "must_play_stock"),
        ({"wild_discard": False}, {"type": "discard", "card": "S", "to": 0}, "wild_discard"),
        ({}, {"type": "pass"}, "passed with cards in hand"),
        ({}, {"type": "discard", "card": "9", "to": 0}, "9 is not in hand"),
    ],
)
def test_house_rule_that_forbids_is_named(
    options: dict[str, Any], event: dict[str, Any], said: str
) -> None:
    rules = Rules(stock_size=1, copies=1, wilds=2, hand_size=2, **options)
    stocks = [["1"], ["12"]]
    draw = ["5", "S", "2", "3", "4", "6", "7", "8", "9", "10", "11", "S"]
    record.replay(hand_made(rules, draw, stocks))
    with pytest.raises(RecordError, match=said) as caught:
        record.replay(hand_made(rules, draw, stocks, {**event, "player": 0}))
    assert caught.value.event == 1


def test_order_of_discards_is_named() -> None:
    rules = Rules(stock_size=1, copies=1, wilds=1, hand_size=2, ordered_discards=True)
    draw = ["5", "6", "2", "3", "1", "9", "8", "7", "10", "11", "S"]
    discards = [("5", 0, 0), ("2", 1, 0), ("1", 0, 0)]
    draws = [["2", "3"], ["1"], ["9"]]
    events: list[Any] = []
    for (card, player, pile), cards in zip(discards, draws, strict=True):
        events.append({"type": "discard", "player": player, "card": card, "to": pile})
        events.append({"type": "draw", "player": 1 - player, "cards": cards})
    record.replay(hand_made(rules, draw, [["12"], ["4"]], *events))
    worse = {"type": "discard", "player": 1, "card": "9", "to": 0}
    with pytest.raises(RecordError, match="ordered_discards") as caught:
        record.replay(hand_made(rules, draw, [["12"], ["4"]], *events, worse))
    assert caught.value.event == 7


# Deals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda deal: deal["draw"].pop(), "not the deck"),
        (lambda deal: deal["draw"].append("S"), "not the deck"),
        (lambda deal: deal["stocks"][0].pop(), "stock 0 has 29 cards instead of 30"),
        (lambda deal: deal["stocks"].pop(), "1 stocks where these rules have 2"),
        (lambda deal: deal.pop("draw"), "needs a list of cards"),
        (lambda deal: deal.pop("stocks"), "needs a list of stocks"),
        (lambda deal: deal["stocks"].__setitem__(1, "12"), "needs a list of cards"),
        (lambda deal: deal["draw"].__setitem__(0, 7), "7 is no card"),
    ],
)
def test_bad_deal(change: Any, said: str) -> None:
    data = copy.deepcopy(RECORDS[0])
    change(data["deal"])
    with pytest.raises(RecordError, match=said) as caught:
        record.check(data)
    assert caught.value.path[0] == "deal"
    assert caught.value.event is None


@pytest.mark.parametrize("first_player", [-1, 2, "0", None, 1.0, False])
def test_bad_first_player(first_player: Any) -> None:
    with pytest.raises(RecordError, match="first_player"):
        record.check({**RECORDS[0], "first_player": first_player})


@pytest.mark.parametrize(
    ("key", "value"),
    [("format", "skipbo"), ("format", None), ("version", 2), ("version", True), ("version", 1.0)],
)
def test_other_formats_and_versions(key: str, value: Any) -> None:
    with pytest.raises(RecordError, match=key):
        record.check({**RECORDS[0], key: value})


@pytest.mark.parametrize("key", ["format", "version", "rules", "first_player", "deal", "events"])
def test_missing_part_is_named(key: str) -> None:
    data = copy.deepcopy(RECORDS[0])
    del data[key]
    with pytest.raises(RecordError, match=key) as caught:
        record.check(data)
    assert caught.value.path == (key,)


def test_bad_rules_are_named() -> None:
    data = copy.deepcopy(RECORDS[0])
    data["rules"]["players"] = 7
    with pytest.raises(RecordError, match="players: must be 2 to 6") as caught:
        record.check(data)
    assert caught.value.path == ("rules", "players")


@pytest.mark.parametrize("seed", [-1, 2**64, "7", 7.0, True])
def test_bad_seed(seed: Any) -> None:
    with pytest.raises(RecordError, match="seed"):
        record.check({**RECORDS[0], "seed": seed})


@pytest.mark.parametrize("agents", ["greedy", ["greedy"], ["a", "b", "c"], [1, 2], {"0": "a"}])
def test_bad_agents(agents: Any) -> None:
    with pytest.raises(RecordError, match="agents"):
        record.check({**RECORDS[0], "agents": agents})


def test_deal_of_numbers_is_checked_too() -> None:
    game = Game("short", seed=1)
    assert game.start is not None
    stocks = [layout.stock_cards(game.start, board) for board in range(2)]
    draw = [WILD] * 142
    with pytest.raises(RecordError, match="not the deck"):
        Game.from_deal(game.rules, stocks, draw, 0)
    with pytest.raises(RecordError, match="is no card"):
        Game.from_deal(game.rules, stocks, [0, *draw[1:]], 0)
    with pytest.raises(RecordError, match="seat"):
        Game.from_deal(game.rules, stocks, draw, 2)


# The two-ended pile ----------------------------------------------------------------------------


def two_ended_record(seed: int) -> dict[str, Any]:
    rules = Rules(stock_size=8)
    state = layout.new_state(rules, two_ended=True)
    deal(state, np.uint64(seed), 0)
    start, rng, done = state.copy(), random.Random(seed), []
    ids = np.zeros(197, dtype=np.int64)
    while not state[layout.REASON]:
        legal = ids[: moves.legal_actions(state, ids)].tolist()
        plays = [action for action in legal if action < moves.A_END]
        done.append(rng.choice(plays or legal))
        moves.apply(state, done[-1])
    return as_json(record.record_of(rules, start, done, {}, seed=seed))


def test_more_than_two_draw_from_one_end() -> None:
    rules = Rules(players=3, stock_size=5)
    data = as_json(play_on(Game(rules, seed=1), random.Random(1), 40).record())
    far = next(i for i, e in enumerate(data["events"]) if e["type"] == "draw" and e["player"] == 1)
    data["events"][far]["end"] = "bottom"
    with pytest.raises(RecordError, match="two players may draw") as caught:
        record.replay(data)
    assert caught.value.event == far


def test_two_ended_pile_is_told_and_followed() -> None:
    data = next(
        data
        for data in map(two_ended_record, range(100))
        if any(event["type"] == "reshuffle" for event in data["events"])
    )
    draws = [event for event in data["events"] if event["type"] == "draw"]
    assert all(event.get("end") == ("bottom" if event["player"] else None) for event in draws)
    assert draws[0]["cards"] == data["deal"]["draw"][:5]
    second = next(event for event in draws if event["player"])
    assert second["cards"] == data["deal"]["draw"][:-6:-1]
    told = record.check(data)
    assert told.state[layout.TWO_ENDED] == 1
    again = record.record_of(told.rules, told.start, told.actions, told.scripts, seed=told.seed)
    assert as_json(again) == data
    broken = copy.deepcopy(data)
    del broken["events"][choice(broken, type="draw", player=1)]["end"]
    with pytest.raises(RecordError, match="end"):
        record.check(broken)


# What a seat sees, and text --------------------------------------------------------------------


def test_seen_events_hide_others_cards(small: dict[str, Any]) -> None:
    for event in small["events"]:
        for player in (None, 0, 1, 2, 3):
            seen = record.seen_event(event, player)
            if event["type"] == "reshuffle" or (
                event["type"] == "draw" and event["player"] != player
            ):
                assert "cards" not in seen
                assert seen["count"] == len(event["cards"])
            else:
                assert seen == event
            assert record.event_text(seen, ["A", "B", "C", "D"])


def test_event_texts() -> None:
    names = ["you", "Ann"]
    play = {"type": "play", "player": 0, "card": "S", "from": "discard:2", "to": 1, "as": 7}
    texts = [
        (play, "you play S as 7 from discard pile 3 on building pile 2"),
        ({"type": "draw", "player": 1, "count": 1}, "Ann draws 1 card"),
        ({"type": "draw", "player": 0, "cards": ["3", "S"]}, "you draw 3 S"),
        (
            {"type": "discard", "player": 1, "card": "9", "to": 3},
            "Ann discards 9 on discard pile 4",
        ),
        ({"type": "pass", "player": 0}, "you pass"),
        ({"type": "pass", "player": 1}, "Ann passes"),
        ({"type": "complete", "pile": 0}, "building pile 1 is complete"),
        (
            {"type": "end", "winner": 0, "reason": "stock_empty", "scores": [40, 0]},
            "the game is over (stock empty): you win 40 points",
        ),
        (
            {"type": "end", "winner": None, "reason": "stalemate", "scores": [0, 0]},
            "the game is over (stalemate): nobody wins",
        ),
    ]
    for event, text in texts:
        assert record.event_text(event, names) == text


def test_piles_that_are_shuffled_for_a_turns_draw_belong_to_that_turn() -> None:
    """A card is needed then, so the draw pile is made in the turn that draws."""
    found = 0
    for seed in range(200):
        game = play_on(Game(Rules(copies=2, wilds=3, stock_size=5), seed=seed), random.Random(seed))
        told = as_json(game.record())
        kinds = [event["type"] for event in told["events"]]
        begins = [
            i for i in range(1, len(kinds)) if kinds[i - 1 : i + 1] == ["discard", "reshuffle"]
        ]
        if not begins:
            continue
        lines = record.as_text(told).splitlines()
        shuffles = [i for i, line in enumerate(lines) if "are shuffled into" in line]
        found += sum(lines[i - 1].startswith("turn ") for i in shuffles) == len(begins)
        assert not any(lines[i + 1].startswith("turn ") or not lines[i + 1] for i in shuffles)
    assert found


@pytest.mark.parametrize("data", RECORDS[::7], ids=lambda data: str(data["seed"]))
def test_record_as_text_is_safe_to_print(data: dict[str, Any]) -> None:
    """A name cannot forge a line, move the cursor, or stop the printing."""
    names = ["a\nturn 9, player 9", "\x1b[2Jb\ud800"]
    data = {**data, "agents": [names[seat % 2] for seat in range(data["rules"]["players"])]}
    text = record.as_text(data)
    assert "\x1b" not in text
    assert "\nturn 9, player 9\n" not in text
    text.encode()


@pytest.mark.parametrize("data", RECORDS[::7], ids=lambda data: str(data["seed"]))
def test_record_as_text(data: dict[str, Any]) -> None:
    text = record.as_text(data)
    ends = [event for event in data["events"] if event["type"] in ("discard", "pass")]
    turns = len(ends) + (data["events"][-1]["reason"] == "stock_empty")
    assert f"turn {turns}, " in text
    assert f"turn {turns + 1}, " not in text
    assert "the game is over" in text.splitlines()[-1]


# Files -----------------------------------------------------------------------------------------


def test_files_are_written_and_read(tmp_path: Path) -> None:
    path = tmp_path / "games.jsonl"
    for data in RECORDS[:3]:
        record.append_record(path, data)
    assert [data for _, data in record.read_records(path)] == RECORDS[:3]
    assert record.check_file(path) == {"valid": True, "records": 3}


def test_a_file_without_its_last_line_end_is_added_to(tmp_path: Path) -> None:
    path = tmp_path / "games.jsonl"
    path.write_text(json.dumps(RECORDS[0]), encoding="utf-8")
    record.append_record(path, RECORDS[1])
    assert [data for _, data in record.read_records(path)] == RECORDS[:2]


def test_first_bad_line_is_told(tmp_path: Path) -> None:
    good = json.dumps(RECORDS[0])
    bad = CORRUPTED[4]
    path = tmp_path / "games.jsonl"
    path.write_text(f"\ufeff{good}\n\n{json.dumps(bad['record'])}\n{good}\n", encoding="utf-8")
    found = record.check_file(path)
    assert (found["valid"], found["line"], found["event"]) == (False, 3, 95)
    assert "it is the turn of player 0" in found["error"]
    assert as_json(found) == found


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b'{"format": ', "no JSON"),
        (b"[1, 2]", "needs an object"),
        (b'{"seed": NaN}', "NaN is no JSON"),
        (b'{"seed": "\xff"}', "not UTF-8"),
        (b"[" * 200_000, "no JSON"),
        (b'{"seed": ' + b"9" * 5000 + b"}", "no JSON"),
        (b"{}", "format"),
    ],
)
def test_line_that_is_no_record(tmp_path: Path, line: bytes, said: str) -> None:
    path = tmp_path / "games.jsonl"
    path.write_bytes(json.dumps(RECORDS[0]).encode() + b"\n" + line + b"\n")
    found = record.check_file(path)
    assert (found["valid"], found["line"], found["event"]) == (False, 2, None)
    assert said in found["error"]


def test_empty_file_has_no_records(tmp_path: Path) -> None:
    path = tmp_path / "none.jsonl"
    path.touch()
    assert record.check_file(path) == {"valid": True, "records": 0}


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_presets_are_recorded(name: str) -> None:
    game = play_on(Game(name, seed=11), random.Random(11))
    record.check(as_json(game.record()))
