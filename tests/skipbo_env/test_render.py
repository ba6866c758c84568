"""The table as text and picture: what it shows, what it hides, every number of players, the end."""

from __future__ import annotations

import builtins
import io
import random
import re
import sys
from typing import Any

import numpy as np
import pytest

from skipbo_env import render
from skipbo_env.engine import layout, moves
from skipbo_env.game import Game
from skipbo_env.rules import Rules

TABLES = [
    *(Rules(players=players, stock_size=4) for players in range(2, 7)),
    *(Rules(players=players, teams=2, stock_size=3) for players in (4, 6, 8)),
    *(Rules(players=players, teams=3, stock_size=3) for players in (6, 9, 12)),
    Rules(hand_size=20, draw_per_turn=20, stock_size=2),
    Rules(players=6, stock_size=2, must_play_stock=True, wild_discard=False, ordered_discards=True),
    Rules(players=4, teams=2, stock_size=2, team_discard="team", stalemate="fewest_stock"),
]


def play_on(game: Game, seed: int, most: int = 10**9, *, plays_first: float = 0.9) -> Game:
    rng = random.Random(seed)
    while not game.over and most:
        legal = game.legal_actions()
        plays = [a for a in legal if a < moves.A_END or moves.A_STOCK2 <= a < moves.A_END2]
        game.apply(rng.choice(plays if plays and rng.random() < plays_first else legal))
        most -= 1
    return game


def plain(text: str) -> str:
    """Text without its colours."""
    return re.sub(r"\033\[[0-9;]*m", "", text)


def views(rules: Rules) -> list[int | None]:
    return [None, *range(rules.players)]


# Text ------------------------------------------------------------------------------------------


def test_worked_position_as_text() -> None:
    position = {
        "hand": ["3", "6", "8", "12", "S"],
        "building": [5, 11, 2, 0],
        "players": [
            {"stock_top": "7", "stock_size": 12, "discards": [["4"], ["2", "10"], [], []]},
            {"stock_top": "5", "stock_size": 20, "discards": [[], [], [], []], "hand_size": 5},
        ],
    }
    game = Game.from_position(position, seed=1)
    lines = render.ansi(game.state, game.rules, 0).splitlines()
    assert lines[0].startswith("player 0 to move")
    building = next(line for line in lines if line.startswith("building"))
    assert [int(rank) for rank in re.findall(r"wants (\d+)", building)] == [6, 12, 3, 1]
    own, other = lines.index("> player 0 (you), 5 in hand: [ 3] [ 6] [ 8] [12] [ S]"), 0
    assert lines[own + 1].split() == ["stock", "[", "7]", "12", "left"]
    assert lines[own + 2].split("   ") == ["  discards  1: [ 4]", "2: 2 [10]", "3: [--]", "4: [--]"]
    other = lines.index("  player 1, 5 in hand")
    assert lines[other + 1].split() == ["stock", "[", "5]", "20", "left"]


@pytest.mark.parametrize("rules", TABLES, ids=str)
def test_text_of_every_table(rules: Rules) -> None:
    for most in (0, 40, 10**9):
        game = play_on(Game(rules, seed=3), 3, most)
        for player in views(rules):
            text = render.ansi(game.state, rules, player)
            assert "\033" not in text
            assert all(f"player {seat}" in text for seat in range(rules.players))
            assert (f"player {player} (you)" in text) == (player is not None)
            colored = render.ansi(game.state, rules, player, color=True)
            assert "\033[" in colored
            assert colored.count("\033[0m") * 2 == colored.count("\033[")
            assert max(map(len, plain(colored).splitlines())) < 135
    assert game.over
    assert "to move" not in text
    assert ("wins" in text) == (game.result is not None)


def test_deep_discard_piles_are_cut() -> None:
    rules = Rules(stock_size=2)
    game = Game(rules, seed=2)
    while game.state[layout.board_at(0) + layout.DEPTH] < 12:
        game.apply(next(a for a in game.legal_actions() if a >= moves.A_END and a % 4 == 0))
    text = render.ansi(game.state, rules, 0)
    assert "(+7)" in text


# Pictures --------------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", TABLES, ids=str)
def test_picture_of_every_table(rules: Rules) -> None:
    game = Game(rules, seed=3)
    shapes = set()
    for most in (0, 60, 10**9):
        play_on(game, 3, most)
        for player in {None, 0, rules.players - 1}:
            picture = render.rgb_array(game.state, rules, player)
            assert picture.dtype == np.uint8
            shapes.add(picture.shape)
            assert len({tuple(pixel) for pixel in picture[::8, ::8].reshape(-1, 3)}) > 200
    assert game.over
    assert shapes == {(render.HEIGHT, render.WIDTH, 3)}


def test_pictures_differ_where_the_table_does() -> None:
    game = Game("standard", seed=5)
    before = render.rgb_array(game.state, game.rules, 0)
    assert np.array_equal(before, render.rgb_array(game.state, game.rules, 0))
    assert not np.array_equal(before, render.rgb_array(game.state, game.rules, 1))
    assert not np.array_equal(before, render.rgb_array(game.state, game.rules, None))
    game.apply(game.legal_actions()[-1])
    after = render.rgb_array(game.state, game.rules, 0)
    assert not np.array_equal(before, after)
    after[:] = 0  # a copy: the next picture is not touched
    assert render.rgb_array(game.state, game.rules, 0).any()


def test_deep_discards_and_full_hands_fit() -> None:
    rules = Rules(players=6, stock_size=4, hand_size=20, copies=20)
    game = play_on(Game(rules, seed=1), 1, 500, plays_first=0.1)
    for player in (None, 0, 3):
        assert render.rgb_array(game.state, rules, player).shape == (800, 1280, 3)


def test_missing_pillow_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    imported = builtins.__import__

    def refuse(name: str, *rest: Any, **more: Any) -> Any:
        if name.split(".")[0] == "PIL":
            raise ImportError("No module named 'PIL'")
        return imported(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", refuse)
    game = Game("short", seed=1)
    with pytest.raises(ImportError, match=r"skipbo-env\[render\]"):
        render.rgb_array(game.state, game.rules, 0)


# Both ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", [TABLES[0], TABLES[2], TABLES[5], TABLES[9]], ids=str)
def test_hidden_cards_reach_neither_text_nor_picture(rules: Rules) -> None:
    game = play_on(Game(rules, seed=8), 8, 30)
    for player in range(rules.players):
        other = game.determinize(player, seed=99)
        assert not np.array_equal(game.state, other.state)
        for color in (False, True):
            shown = render.ansi(game.state, rules, player, color)
            assert shown == render.ansi(other.state, rules, player, color)
        picture = render.rgb_array(game.state, rules, player)
        assert np.array_equal(picture, render.rgb_array(other.state, rules, player))
        # Nobody's hand is seen by those who watch, the determinizing player's own included.
        assert render.ansi(game.state, rules) == render.ansi(other.state, rules)
        watched = render.rgb_array(game.state, rules, None)
        assert np.array_equal(watched, render.rgb_array(other.state, rules, None))


@pytest.mark.parametrize("player", [-1, 2, 12])
def test_no_such_seat(player: int) -> None:
    game = Game("short", seed=1)
    for draw in (render.ansi, render.rgb_array):
        with pytest.raises(ValueError, match="player: needs a seat of 0 to 1"):
            draw(game.state, game.rules, player)  # type: ignore[operator]


def test_rendering_changes_nothing() -> None:
    game = play_on(Game("partners", seed=8), 8, 50)
    before = game.state.copy()
    for player in views(game.rules):
        render.ansi(game.state, game.rules, player, color=True)
        render.rgb_array(game.state, game.rules, player)
    assert np.array_equal(before, game.state)


@pytest.mark.parametrize(
    ("variables", "terminal", "colours"),
    [
        ({"TERM": "xterm-256color"}, True, True),
        ({"TERM": "xterm-256color"}, False, False),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, True, False),
        ({"TERM": "dumb"}, True, False),
    ],
)
def test_colours_are_shown_where_they_are_supported(
    variables: dict[str, str], terminal: bool, colours: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One answer for the terminal game, `record show` and the environments' "human"."""
    for name in ("TERM", "NO_COLOR", "FORCE_COLOR", "COLORTERM", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: terminal, raising=False)
    monkeypatch.setattr(sys, "stdout", stream)
    assert render.in_color() is colours
