"""The review of a game: what it says of decisions and luck, and the command that prints it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skipbo_env import make_agent
from skipbo_env.analysis import analyse
from skipbo_env.chart import side_wins, sparkline
from skipbo_env.cli import run
from skipbo_env.commands import analyse as command
from skipbo_env.game import Game
from skipbo_env.record import append_record
from skipbo_env.rules import Rules
from tests.serve.test_agents import write_model


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    write_model(folder / "test-two", Rules())
    return folder


def record_of(rules: Any, seed: int, agents: tuple[str, ...] = ("greedy", "play-first")) -> Any:
    game = Game(rules, seed=seed)
    players = [make_agent(name, seed=seed) for name in agents]
    while not game.over:
        game.apply(players[game.player % len(players)].act(game))
    return game.record([agents[p % len(agents)] for p in range(game.rules.players)])


@pytest.mark.parametrize("name", ["turn:test-two?flips=0", "test-two"])
def test_the_best_player_loses_nothing(models: Path, name: str) -> None:
    agent = make_agent(name, models_dir=models)
    game = Game({"stock_size": 3}, seed=2)
    for _ in range(60):
        if not game.over:
            game.apply(agent.act(game))
    found = analyse(game.record(), agent)
    assert {d["verdict"] for d in found["decisions"]} == {"best"}
    assert [side["lost"] for side in found["sides"]] == [0, 0]
    # Cards come to light in flips, refills and the next turn's draw, and in nothing else. But what
    # is compared behind flips is limited: in the midst of a line a flip may be looked behind that
    # was not among the endings compared before.
    for decision in found["decisions"]:
        if decision["line_ends"] == "discard" and len(decision["line"]) > 1:
            assert abs(decision["luck"][0]) < (0.001 if agent.flips else 2e-5)


def test_hidden_cards_change_no_verdict(models: Path) -> None:
    """The same decisions over another draw pile's end are judged the same."""
    agent = make_agent("test-two", models_dir=models)
    record = record_of("short", 6)
    record["events"] = record["events"][:30]
    while record["events"][-1]["type"] != "discard":
        record["events"].pop()
    player = record["events"][-1]["player"]
    other = json.loads(json.dumps(record))
    record["events"].append(draw_due(record))
    other["deal"]["draw"][60:] = reversed(other["deal"]["draw"][60:])
    other["deal"]["stocks"][player][:5] = reversed(other["deal"]["stocks"][player][:5])
    other["events"].append(draw_due(other))
    assert record["deal"] != other["deal"]
    found = [analyse(data, agent)["decisions"] for data in (record, other)]
    assert found[0][:-1] == found[1][:-1]


def draw_due(record: Any) -> Any:
    """The draw that must follow, which the replay names in its message for a record without it."""
    game = Game.from_deal(
        Rules.from_dict(record["rules"]),
        [[13 if c == "S" else int(c) for c in stock] for stock in record["deal"]["stocks"]],
        [13 if c == "S" else int(c) for c in record["deal"]["draw"]],
        record["first_player"],
    )
    told = [e for e in record["events"] if e["type"] in ("play", "discard", "pass")]
    for event in told:
        move = {key: value for key, value in event.items() if key != "player"}
        game.apply(next(a for a in game.legal_actions() if game.move(a) == move))
    return game.events()[len(record["events"])]


def test_what_came_to_light_is_told(models: Path) -> None:
    """Each draw and each stock card turned up stands once, with the decision that showed it."""
    record = record_of("short", 4)
    found = analyse(record, make_agent("test-two", models_dir=models))
    shown = [event for decision in found["decisions"] for event in decision["shown"]]
    draws = [event for event in record["events"] if event["type"] == "draw"]
    assert [event for event in shown if event["type"] == "draw"] == draws[1:]
    flips = [event for event in shown if event["type"] == "flip"]
    for board in (0, 1):
        stock = record["deal"]["stocks"][board]
        turned = [event["card"] for event in flips if event["board"] == board]
        assert turned == stock[::-1][1 : len(turned) + 1]
    assert flips
    assert all(decision["reasons"] for decision in found["decisions"])


def test_the_course_of_a_game(models: Path) -> None:
    """A side's probabilities and its result, two sides' summing to one; bars of all heights."""
    found = analyse(record_of("short", 4), make_agent("test-two", models_dir=models))
    wins = side_wins(found)
    assert [len(course) for course in wins] == [found["decisions_total"] + 1] * 2
    for first, second in zip(*wins, strict=True):
        assert first + second == pytest.approx(1.0, abs=2e-6)
    assert {course[-1] for course in wins} == {0.0, 1.0}
    assert sparkline([0.0, 0.25, 0.5, 0.75, 1.0], 60) == "▁▃▅▇█"
    assert len(sparkline([0.5] * 200, 60)) == 60
    blind = analyse(record_of("short", 4), make_agent("greedy"))
    assert side_wins(blind) == [[], []]
    three = analyse(record_of({"players": 3, "stock_size": 3}, 4), make_agent("greedy"))
    assert side_wins(three) == [[], [], []]


def test_the_time_is_kept(models: Path) -> None:
    record = record_of("short", 4)
    agent = make_agent("test-two", models_dir=models)
    told: list[tuple[int, int]] = []
    found = analyse(record, agent, progress=lambda done, total: told.append((done, total)))
    total = found["decisions_total"]
    assert told == [(ply + 1, total) for ply in range(total)]
    stopped = analyse(record, agent, time_limit_s=0.0)
    assert stopped["decisions"] == []
    assert not stopped["complete"]


def test_the_command(
    models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    monkeypatch.setenv("SKIPBO_MODELS", str(models))
    monkeypatch.setenv("COLUMNS", "200")
    games = tmp_path / "games.jsonl"
    for seed in (1, 2):
        append_record(games, record_of("short", seed))
    words = [str(games), "--game", "2", "--agent", "test-two"]
    assert run(command, "analyse", [*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["decisions_total"] == len(found["decisions"])
    assert run(command, "analyse", [*words, "--worst", "3"]) == 0
    text = capsys.readouterr().out
    assert "judged by test-two" in text
    assert "blunder" in text
    assert "luck" in text
    assert "the cards that mattered most" in text
    assert any(bar in text for bar in "▁▂▃▄▅▆▇█")
    picture = tmp_path / "game.png"
    assert run(command, "analyse", [*words, "--plot", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    capsys.readouterr()
    for bad, told in (
        ([*words, "--plot", "game.svg"], "--plot: must end in .png"),
        ([*words, "--plot", str(tmp_path / "none" / "a.png")], "--plot: there is no folder"),
        ([str(games), "--game", "3"], "no record 3"),
        ([str(games), "--agent", "nobody"], "nobody"),
        ([str(tmp_path / "none.jsonl")], "No such file"),
    ):
        assert run(command, "analyse", bad) == 2
        assert told in capsys.readouterr().err
    games.write_text("{}\n")
    assert run(command, "analyse", [str(games)]) == 2
    assert "games.jsonl:1" in capsys.readouterr().err
