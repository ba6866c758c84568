"""The arena: pairs are fair, results do not depend on workers or on being recorded, luck is counted
right and has mean zero, agents of users count like any other.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from skipbo_env.agents import load_model, make_agent
from skipbo_env.agents.agent import PolicyAgent, TurnAgent
from skipbo_env.agents.models import find_model
from skipbo_env.agents.play import DRAWN, FLIPPED, add_luck, new_tally, start_luck
from skipbo_env.cards import WILD
from skipbo_env.game import Game
from skipbo_env.record import check_file, read_records
from skipbo_env.rules import Rules
from tests.skipbo_env.test_policy import model_of, random_policy
from training.arena import Match, Table, evaluate, run_match, unit_luck, unit_seeds
from training.stats import Sprt, adjusted

SHORT = Rules(stock_size=10)


class First:
    """A user's own agent: the first legal action."""

    name = "first"

    def act(self, game_or_position: Game) -> int:
        return game_or_position.legal_actions()[0]


def first() -> First:
    return First()


class Dice:
    """A user's own agent whose randomness comes from the arena."""

    name = "dice"

    def new_game(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.greedy = make_agent("greedy")

    def act(self, game_or_position: Game) -> int:
        if self.random.random() < 0.5:
            return int(self.random.choice(game_or_position.legal_actions()))
        return self.greedy.act(game_or_position)


def dice() -> Dice:
    return Dice()


def test_an_agent_against_itself_wins_exactly_half() -> None:
    """Greedy has no randomness: with seats swapped on one deal, one game of the pair mirrors the
    other.
    """
    result = evaluate("greedy", "greedy", games=400, seed=3)
    assert result["win_rate"] + result["stalemate_rate"] / 2 == pytest.approx(0.5)
    assert result["interval"][0] <= 0.5 <= result["interval"][1]


def test_rates_sum_to_one_and_greedy_beats_simple() -> None:
    result = evaluate("greedy", "simple", games=1000, seed=4)
    rates = [result[name] for name in ("win_rate", "loss_rate", "stalemate_rate", "truncated_rate")]
    assert sum(rates) == pytest.approx(1.0)
    assert result["win_rate"] > 0.76
    assert result["games"] == 1000
    assert np.mean(result["seat_win_rates"]) == pytest.approx(result["win_rate"])
    json.dumps(result)


def test_workers_make_no_difference() -> None:
    a, b = (
        evaluate("simple", "play-first", games=210, rules=SHORT, workers=workers, seed=5)
        for workers in (1, 3)
    )
    for result in (a, b):
        result.pop("seconds")
    assert a == b


@pytest.mark.parametrize(
    "rules", [SHORT, Rules(players=3, stock_size=10), Rules(players=4, teams=2, stock_size=10)]
)
def test_recorded_games_are_the_same_games(rules: Rules, tmp_path: Path) -> None:
    file = tmp_path / "games.jsonl"
    plain = evaluate("simple", "greedy", games=12, rules=rules, seed=6)
    recorded = evaluate("simple", "greedy", games=12, rules=rules, seed=6, record=file)
    plain.pop("seconds"), recorded.pop("seconds")
    assert plain == recorded
    assert check_file(file) == {"valid": True, "records": plain["games"]}


@pytest.mark.parametrize("rules", [SHORT, Rules(players=4, teams=2, stock_size=10)])
def test_policies_play_the_same_games_compiled_and_move_by_move(
    rules: Rules, tmp_path: Path
) -> None:
    one, two, three = (
        PolicyAgent(model_of(rules, random_policy(rules, seed)), name=f"policy:{seed}")
        for seed in range(3)
    )
    file = tmp_path / "games.jsonl"
    for against in (two, "greedy"):
        plain = evaluate(one, against, games=12, rules=rules, seed=6)
        recorded = evaluate(one, against, games=12, rules=rules, seed=6, record=file)
        plain.pop("seconds"), recorded.pop("seconds")
        assert plain == recorded
        assert check_file(file) == {"valid": True, "records": plain["games"]}
    assert Table([one, two], rules).compiled(np.array([[0, 1]]))
    assert not Table([one, two, three], rules).compiled(np.array([[0, 1], [1, 2]]))


def test_games_with_a_two_ended_pile_are_recorded(tmp_path: Path) -> None:
    file = tmp_path / "games.jsonl"
    options = {"games": 12, "rules": SHORT, "seed": 6, "two_ended": True}
    plain = evaluate("simple", "greedy", **options)
    recorded = evaluate("simple", "greedy", record=file, **options)
    plain.pop("seconds"), recorded.pop("seconds")
    assert plain == recorded
    assert check_file(file) == {"valid": True, "records": 12}
    assert '"end":"bottom"' in file.read_text()


def test_units_hold_every_side_once() -> None:
    match = Match("simple", "greedy", Rules(players=4), seed=1)
    games = run_match(match, 5)
    assert (games.seats == 0).argmax(axis=1).tolist() == [0, 1, 2, 3] * 5
    assert games.seats.sum() == 3 * 20
    assert len(set(unit_seeds(1, range(50)).tolist())) == 50


# Luck ------------------------------------------------------------------------------------------


def luck_of(data: dict[str, object], rules: Rules) -> np.ndarray:
    """Each side's luck, drawn and flipped, from a record alone, card by card.

    What the counter knows are the cards of the pools: draw pile and stocks together until the first
    reshuffle, then the draw pile from the reshuffled cards and the stocks for themselves.
    """
    luck = np.zeros((rules.sides, 2))
    stocks = [list(stock) for stock in data["deal"]["stocks"]]
    pile = list(data["deal"]["draw"])
    below = [card for stock in stocks for card in stock[:-1]]
    pools = [pile + below, []]  # unknown cards: before the first reshuffle all in the first
    tops = [stock[-1] for stock in stocks]

    def come(card: str, pool: list[str], side: int, kind: int) -> None:
        luck[side, kind] += (card == "S") - pool.count("S") / len(pool)
        pool.remove(card)

    pools[0] += tops
    for board, card in enumerate(tops):
        come(card, pools[0], board % rules.sides, FLIPPED)
        stocks[board].pop()
    shuffled = False
    for event in data["events"]:
        side = event.get("player", 0) % rules.sides
        if event["type"] == "draw":
            pool = pools[1] if shuffled else pools[0]
            # The mean of several cards drawn at once; card by card it is the same in expectation,
            # and exactly the same where the pool is.
            share = pool.count("S") / len(pool)
            luck[side, DRAWN] += event["cards"].count("S") - len(event["cards"]) * share
            for card in event["cards"]:
                pool.remove(card)
        elif event["type"] == "reshuffle":
            shuffled, pools[1] = True, list(event["cards"])
        elif event["type"] == "play" and event["from"] == "stock":
            board = event.get("board", event["player"])
            if stocks[board]:
                card = stocks[board].pop()
                come(card, pools[0], side, FLIPPED)
    return luck


@pytest.mark.parametrize(
    "rules",
    [
        Rules(players=3, stock_size=8, copies=4, wilds=6, hand_size=4),
        Rules(players=4, teams=2, stock_size=10, copies=6, wilds=9),
        Rules(stock_size=20, draw_per_turn=7),
    ],
)
@pytest.mark.parametrize("two_ended", [False, True])
def test_luck_is_that_of_the_record(rules: Rules, two_ended: bool, tmp_path: Path) -> None:
    """Worked out anew from the records, in other words than the kernel's."""
    if two_ended and rules.players != 2:
        return
    match = Match("greedy", "simple", rules, seed=9, two_ended=two_ended)
    games = run_match(match, 5)
    run_match(match, 5, record=tmp_path / "games.jsonl")
    records = [data for _, data in read_records(tmp_path / "games.jsonl")]
    assert len(records) == len(games.luck)
    for data, luck in zip(records, games.luck, strict=True):
        assert luck == pytest.approx(luck_of(data, rules))
    assert any(e["type"] == "reshuffle" for data in records for e in data["events"])
    assert np.abs(games.luck).max() > 1


def test_luck_of_a_deal_by_hand() -> None:
    """Six wilds in 18 cards; stocks show a wild and a 2, the first hand has one wild of five."""
    rules = Rules(copies=1, wilds=6, stock_size=1)
    draw = [1, 3, WILD, 4, 5, 6, 7, 8, 9, 10, 11, 12, WILD, WILD, WILD, WILD]
    game = Game.from_deal(rules, [[WILD], [2]], draw, 0)
    tally, luck = new_tally(), np.ones((2, 2))
    start_luck(game.state, tally, luck)
    assert luck[:, FLIPPED] == pytest.approx([1 - 6 / 18, 0 - 5 / 17])
    assert luck[:, DRAWN] == pytest.approx([1 - 5 * 5 / 16, 0])
    game.apply(game.parse_action("hand 5=>1"))  # then player 1 draws 6 7 8 9 10
    add_luck(game.state, tally, luck)
    assert luck[:, DRAWN] == pytest.approx([1 - 5 * 5 / 16, 0 - 5 * 4 / 11])


@pytest.mark.parametrize(
    ("agents", "rules"),
    [
        (("greedy", "simple"), SHORT),
        (("simple", "play-first"), Rules(players=3, stock_size=8)),
        (("greedy", "simple"), Rules(players=4, teams=2, stock_size=10, draw_per_turn=3)),
    ],
)
def test_luck_has_mean_zero_and_says_something(agents: tuple[str, str], rules: Rules) -> None:
    """Every side's luck of either kind, over 3,000 games: within four errors of zero. And whoever
    draws more wilds wins more often, so the adjusted rate has less variance but the same mean.
    """
    match = Match(*agents, rules, seed=12)
    games = run_match(match, 3000 // rules.sides, workers=2)
    flat = games.luck.reshape(len(games.luck), -1)
    errors = flat.std(axis=0, ddof=1) / math.sqrt(len(flat))
    assert (np.abs(flat.mean(axis=0)) < 4 * errors).all()
    assert (errors > 0).all()
    mine = games.luck.sum(axis=2)[np.arange(len(flat)), np.argmin(games.seats, axis=1)]
    won = games.winners == np.argmin(games.seats, axis=1)
    assert mine[won].mean() > mine[~won].mean()
    assert unit_luck(match, games).shape == (3000 // rules.sides, 2)


def test_the_adjusted_rate_agrees_and_has_less_variance() -> None:
    """Greedy against itself, 3,000 games with one seat held: a fifth of the variance is luck of the
    wilds. In pairs of a match the two rates agree within the error.
    """
    match = Match("greedy", "greedy", SHORT, seed=13)
    games = run_match(match, 3000)
    own = games.luck[::2, 0] - games.luck[::2, 1]
    single = adjusted((games.winners[::2] == 0).astype(np.float64), own)
    assert single is not None
    assert 0.7 < single["variance_ratio"] < 0.9
    assert all(slope > 0.01 for slope in single["coefficients"])
    low, high = single["interval"]
    assert low < 0.5 < high
    result = evaluate("simple", "play-first", games=6000, rules=SHORT, seed=13, two_ended=True)
    told = result["adjusted"]
    half = (result["interval"][1] - result["interval"][0]) / 2
    assert abs(told["win_rate"] - result["win_rate"]) < half
    assert told["variance_ratio"] < 1.0
    low, high = told["interval"]
    assert (high - low) / 2 == pytest.approx(half * math.sqrt(told["variance_ratio"]), rel=0.01)


# Sequential test -------------------------------------------------------------------------------


def test_a_sequential_test_ends_the_match() -> None:
    """Greedy is far above 55% against simple: H1 at once; against itself it is at 50%: H0."""
    options = {"games": 4000, "rules": SHORT, "seed": 3, "sprt": Sprt(0.5, 0.55)}
    better = evaluate("greedy", "simple", **options)
    assert better["sprt"]["accepted"] == "H1"
    assert better["games"] < 1000
    assert better["sprt"]["llr"] >= better["sprt"]["bounds"][1]
    same = evaluate("greedy", "greedy", **options)
    assert same["sprt"]["accepted"] == "H0"
    for workers in (1, 3):
        again = evaluate("greedy", "simple", workers=workers, **options)
        assert again["games"] == better["games"]
        assert again["sprt"] == better["sprt"]
    options["games"] = 40
    open_still = evaluate("greedy", "simple", **{**options, "sprt": Sprt(0.78, 0.79)})
    assert open_still["sprt"]["accepted"] is None
    assert open_still["games"] == 40


def test_own_agents_are_rated_like_any_other() -> None:
    result = evaluate(f"py:{__name__}:first", "play-first", games=10, rules=SHORT, seed=7)
    assert result["games"] == 10
    assert result["agent"] == f"py:{__name__}:first"


def test_own_agents_see_nothing_hidden() -> None:
    """What a user's agent is given has its own view right and the rest dealt anew."""
    seen: list[tuple[Game, Game]] = []

    class Spy:
        name = "spy"
        real: Game

        def act(self, game_or_position: Game) -> int:
            seen.append((game_or_position, self.real.clone()))
            return game_or_position.legal_actions()[0]

    spy = Spy()
    match = Match(spy, "greedy", SHORT, seed=1)
    original = Game.determinize

    def watch(game: Game, player: int, seed: int | None = None) -> Game:
        spy.real = game
        return original(game, player, seed)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Game, "determinize", watch)
        match.table.play_game(np.array([0, 1]), 5)
    assert len(seen) > 5
    assert all(given.position() == real.position() for given, real in seen)
    assert any(not np.array_equal(given.state, real.state) for given, real in seen)


@pytest.mark.parametrize(
    ("agents", "games"),
    [
        (("greedy", "simple"), 6000),
        (("simple", "play-first"), 6000),
        (("random", "play-first"), 1000),
        (("two-player?max_nodes=64", "greedy"), 1000),
    ],
)
def test_two_ended_pile_changes_no_win_rate(agents: tuple[str, str], games: int) -> None:
    """Drawing from opposite ends is the same game in distribution: the rates on fresh deals differ
    by less than 3.5 errors, and so do stalemates.
    """
    results = [
        evaluate(*agents, games=games, rules=SHORT, seed=seed, two_ended=ends, workers=2)
        for ends, seed in ((False, 8), (True, 9))
    ]
    for rate in ("win_rate", "stalemate_rate"):
        errors = [math.sqrt(max(r[rate] * (1 - r[rate]), 1e-4) / r["games"]) for r in results]
        assert abs(results[0][rate] - results[1][rate]) < 3.5 * math.hypot(*errors), rate


def test_limits_of_nodes_differ_by_agent() -> None:
    """Two limits on one model play in one kernel, each with its own."""
    short = Rules(stock_size=5)
    folder = find_model("two-player")
    assert folder is not None
    texts = ["two-player?max_nodes=1", "two-player"]
    table = Table(texts, short, seed=2)
    seats = np.array([[0, 1], [1, 0]] * 5)
    seeds = np.repeat(unit_seeds(2, range(5)), 2)
    assert table.compiled(seats)
    games = table.play(seats, seeds)
    for g in range(10):
        game, luck = table.play_game(seats[g], int(seeds[g]))
        assert len(game.actions) == games.decisions[g]
        assert luck == pytest.approx(games.luck[g])
    model = load_model(folder)
    three = Table([TurnAgent(model, name=str(n), max_nodes=n) for n in (1, 2, 4096)], short)
    assert not three.compiled(np.array([[0, 1, 2]]))


def test_an_agent_that_is_told_its_seed_plays_on_any_number_of_workers() -> None:
    rates = []
    for workers in (1, 2):
        result = evaluate(
            f"py:{__name__}:dice", "play-first", games=90, rules=SHORT, seed=7, workers=workers
        )
        result.pop("seconds")
        rates.append(result)
    assert rates[0] == rates[1]
    assert not Match(f"py:{__name__}:first", "greedy", SHORT).table.parallel
    assert Match(f"py:{__name__}:dice", "greedy", SHORT).table.parallel


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"games": 0}, "games"),
        ({"workers": 0}, "workers"),
        ({"seed": -1}, "seed"),
        ({"agent": "nobody"}, "nobody"),
        ({"rules": "nothing"}, "nothing"),
        ({"players": 3, "two_ended": True}, "two_ended"),
        ({"plot": "nowhere/picture.png"}, "nowhere"),
        ({"plot": "picture.gif"}, "picture.gif"),
    ],
)
def test_bad_requests(changes: dict[str, object], word: str) -> None:
    request = {"agent": "greedy", "against": "simple", "games": 2, **changes}
    with pytest.raises(ValueError, match=word):
        evaluate(**request)
