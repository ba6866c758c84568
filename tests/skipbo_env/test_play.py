"""The command line's front, `skipbo play` and `skipbo record`: what they say, save and return."""

from __future__ import annotations

import io
import json
import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import skipbo_env.agents
from skipbo_env import cli, commands, make_agent, record
from skipbo_env.agents import TurnAgent
from skipbo_env.engine import layout, moves
from skipbo_env.game import Game
from skipbo_env.rules import Rules
from skipbo_env.suggestion import ask
from skipbo_env.terminal import PROMPT, TerminalGame
from tests.skipbo_env.test_agents import model_of, random_network

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "fixtures" / "golden"


class Stub:
    """An agent that plays whatever it can, and a random discard else."""

    name = "stub"

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def act(self, game: Game) -> int:
        legal = game.legal_actions()
        plays = [a for a in legal if a < moves.A_END or moves.A_STOCK2 <= a < moves.A_END2]
        return self.rng.choice(plays or legal)


class Ranking(Stub):
    """An agent that has a ranking too."""

    def suggest(self, game: Game, *, top: int | None, allow: Any) -> dict[str, Any]:
        assert game.player == 0
        first, second, third, *_ = game.legal_actions()
        return {
            "moves": [
                {"action": first, "win": 0.613},
                {"action": second, "win": 0.5},
                {"action": third, "win": 0.5, "same_as": second},
            ]
        }


def answers(lines: Iterable[str]) -> Callable[[str], str]:
    """Something to ask that gives these lines, then the end of input."""
    given = iter(lines)

    def ask(prompt: str) -> str:
        assert prompt == PROMPT
        for line in given:
            return line
        raise EOFError

    return ask


def sit(game: Game, lines: Iterable[str], seat: int = 0, **options: Any) -> tuple[bool, str]:
    """Play a game with these answers; whether it was finished, and what was written."""
    out = io.StringIO()
    console = Console(file=out, width=100, highlight=False)
    others = {other: Stub(other) for other in range(game.rules.players) if other != seat}
    options = {"adviser": Stub(9), **options}
    table = TerminalGame(game, seat, others, console=console, ask=answers(lines), **options)
    return table.play(), out.getvalue()


def forever(line: str) -> Iterable[str]:
    while True:
        yield line


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The subcommands as they are when the package is installed, with stub agents."""
    entries = [
        *(
            EntryPoint(name, f"skipbo_env.commands:{name}", cli.GROUP)
            for name in ("record", "play")
        ),
        EntryPoint("train", "no_such_module_at_all.cli:train", cli.GROUP),
        EntryPoint("benchmark", "skipbo_env.commands:no_such_function", cli.GROUP),
        EntryPoint("extra", "somebody.else:extra", cli.GROUP),
    ]
    monkeypatch.setattr(cli, "entry_points", lambda group: entries)
    monkeypatch.setattr(
        skipbo_env.agents, "make_agent", lambda name, *, seed=0: Stub(seed), raising=False
    )


def typed(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Standard input that is no terminal."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


# The game in the terminal ----------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "rules",
    [
        Rules(stock_size=3),
        Rules(players=5, stock_size=2),
        Rules(players=6, teams=3, stock_size=2),
        Rules(players=8, teams=2, stock_size=1),
        Rules(stock_size=2, copies=2, wilds=4, must_play_stock=True),
        Rules(max_turns=9),
    ],
    ids=str,
)
def test_first_move_of_the_list_plays_a_game_to_its_end(rules: Rules, seed: int) -> None:
    game = Game(rules, seed=seed)
    finished, text = sit(game, forever("1"))
    assert finished
    assert game.over
    assert "the game is over" in text
    record.check(json.loads(json.dumps(game.record())))


@pytest.mark.parametrize("by_number", [True, False])
def test_every_move_is_listed_and_can_be_typed(by_number: bool) -> None:
    game = Game(Rules(stock_size=6, wilds=40), seed=2)
    rng = random.Random(3)
    out = io.StringIO()

    def ask(prompt: str) -> str:
        legal = game.legal_actions()
        listed = out.getvalue().split("discards")[-1]
        out.truncate(0)
        for number, action in enumerate(legal, 1):
            entry = rf"^.*\b{number}  {re.escape(game.action_text(action))}\b"
            assert re.search(entry, listed, re.M)
        place = rng.randrange(len(legal))
        return str(place + 1) if by_number else game.action_text(legal[place]).upper()

    console = Console(file=out, width=60, highlight=False)
    assert TerminalGame(game, 1, {0: Stub(4)}, console=console, ask=ask).play()


def test_wrong_answers_are_told_and_asked_again() -> None:
    game = Game("standard", seed=3)
    before = game.state.copy()
    wrong = [
        "",
        "0",
        "99",
        "9" * 30,
        "-1",
        "hello",
        "hand 13>1",
        "pass",
        "hand 1>9",
        "²",
        "stock>4",
    ]
    finished, text = sit(game, [*wrong, "q"])
    assert not finished
    assert "the list goes from 1 to" in text
    assert "'hello' is no action" in text
    assert "is not legal" in text
    if game.state[layout.FIRST_PLAYER] == 0:
        assert (before == game.state).all()


def test_end_of_input_ends_the_game_there() -> None:
    game = Game("standard", seed=3)
    assert not sit(game, [])[0]
    assert not game.over


def test_hint_help_and_table_on_request() -> None:
    finished, text = sit(Game(Rules(first_player=0), seed=3), ["h", "?", "t", "q"])
    assert not finished
    assert re.search(r"hint: \d+  hand", text)
    assert "ends your turn" in text
    assert text.count("to move") == 2
    # An agent with a ranking shows it.
    game = Game(Rules(first_player=0), seed=3)
    first, second, third = map(game.action_text, game.legal_actions()[:3])
    text = sit(game, ["hint"], adviser=Ranking(1))[1]
    assert re.search(rf"1 +{re.escape(first)}  +61\.3% +0\.0% +best ", text)
    assert re.search(rf"2 +{re.escape(second)}  +50\.0% +-11\.3% +blunder ", text)
    assert not re.search(rf"{re.escape(third)} +50", text)
    assert "nobody to ask" in sit(Game(Rules(first_player=0)), ["h"], adviser=None)[1]


def test_a_turn_search_gives_verdicts() -> None:
    rules = Rules(first_player=0)
    adviser = TurnAgent(model_of(rules, random_network(rules)))
    game = Game(rules, seed=3)
    answer = ask(adviser, game)
    text = sit(game, ["h", "q"], adviser=adviser)[1]
    verdicts = [move["verdict"] for move in answer["moves"] if move["same_as"] is None][:8]
    assert re.findall(r"best|tie|inaccuracy|mistake|blunder", text) == verdicts
    assert len(verdicts) >= 3


class Reader(Stub):
    """Reads whatever its game holds, and keeps it."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)
        self.seen: list[tuple[Game, list[int]]] = []

    def act(self, game: Game) -> int:
        self.seen.append((game, layout.draw_cards(game.state)))
        return super().act(game)


@pytest.mark.parametrize("rules", [Rules(stock_size=3), Rules(players=4, teams=2, stock_size=2)])
def test_nobody_is_given_the_true_game(rules: Rules) -> None:
    game = Game(rules, seed=3)
    true: list[list[int]] = []
    readers = {seat: Reader(seat) for seat in range(1, rules.players)}
    adviser = Reader(9)
    lines = iter(line for _ in range(10**6) for line in ("h", "1"))

    def listen(prompt: str) -> str:
        line = next(lines)
        if line == "h":
            true.append(layout.draw_cards(game.state))
        return line

    console = Console(file=io.StringIO(), width=100)
    table = TerminalGame(game, 0, readers, adviser=adviser, console=console, ask=listen)
    assert table.play()
    for seat, reader in readers.items():
        assert reader.seen
        for given, _ in reader.seen:
            assert given is not game
            assert given.player == seat
            assert given.start is None
    hinted = [cards for _, cards in adviser.seen]
    assert [len(cards) for cards in hinted] == [len(cards) for cards in true]
    assert all(a != b for a, b in zip(hinted, true, strict=True) if len(b) > 10)


def test_a_choice_does_not_depend_on_hidden_cards() -> None:
    """Two games that look the same to seat 1 give its agent the same game."""
    game = Game(Rules(first_player=1), seed=3)
    given = []
    for seed in (1, 2):
        reader = Reader()
        twin = game.determinize(1, seed)
        table = TerminalGame(twin, 0, {1: reader}, console=Console(file=io.StringIO()))
        table._others_choice(1)
        given.append(reader.seen[0][0].state.tobytes())
    assert given[0] == given[1]


def test_agents_that_see_nothing_hidden_are_given_the_game_itself() -> None:
    rules = Rules(stock_size=2, first_player=1)
    for agent in (make_agent("greedy"), TurnAgent(model_of(rules, random_network(rules)))):
        game, other = Game(rules, seed=3), Game(rules, seed=3)
        table = TerminalGame(game, 0, {1: agent}, console=Console(file=io.StringIO()))
        assert table._others_choice(1) == agent.act(other)


def test_playing_cards_have_their_names_everywhere() -> None:
    names = {"1": "A", "11": "J", "12": "Q", "S": "K"}
    rules = Rules(stock_size=4, first_player=0, wilds=40)
    for seed in range(3):
        games = [Game(rules, seed=seed) for _ in range(2)]
        plain, cards = (
            sit(game, [*["1"] * 40, "h"], playing=playing)[1]
            for game, playing in zip(games, (False, True), strict=True)
        )
        assert games[0].actions == games[1].actions
        # Neither has the other's names, where a name stands for a card.
        assert not re.search(
            r"\[ ?[AJQK]\]|hand [AJQK]=?>|(plays|draws?|discards?) [AJQK]\b", plain
        )
        named = r"\[( S|11|12| 1)\]|hand (S|11|12|1)=?>|(plays?|discards?) (S|11|12|1)\b|as 1[12]"
        assert not re.search(named, cards)
        for name in names.values():
            assert re.search(rf"\[ {name}\]", cards)
        # Every text of the list can be typed.
        game = Game(rules, seed=seed)
        table = TerminalGame(game, 0, {1: Stub(1)}, playing=True)
        legal = game.legal_actions()
        assert [table._read(table._text(action), legal) for action in legal] == legal


def test_hints_change_nothing() -> None:
    games = [Game(Rules(stock_size=4, first_player=0), seed=6) for _ in range(2)]
    sit(games[0], forever("1"))
    lines = iter(line for _ in range(10**6) for line in ("h", "1"))
    sit(games[1], lines)
    assert games[0].actions == games[1].actions


def test_nothing_hidden_is_written() -> None:
    for seed in range(5):
        game = Game(Rules(players=3, stock_size=5), seed=seed)
        text = sit(game, forever("1"), seat=1, names={0: "Ann", 2: "Bob"})[1]
        assert not re.search(r"(Ann|Bob) draws? (?!\d+ cards?$)", text, re.M)
        assert re.search(r"^you draw( \d+| S)+$", text, re.M)
        assert len(re.findall(r"player \d.* in hand:", text)) == text.count("(you), ") - len(
            re.findall(r"\(you\), 0 in hand", text)
        )


# skipbo ----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("installed")
def test_help_lists_the_commands_without_importing_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    text = capsys.readouterr().out
    lines = [line for line in text.splitlines() if re.match(r"  [a-z]", line)]
    assert [line.split()[0] for line in lines] == ["play", "record", "train", "benchmark", "extra"]
    assert lines[0].endswith(cli.SUMMARIES["play"])
    assert lines[-1].endswith("from somebody.else:extra")
    assert cli.main([]) == 2


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["nonsense"], "no command 'nonsense'; the commands are: play, record"),
        (["train"], r"skipbo train: No module named .*pip install 'skipbo-env\[train\]'"),
        (["benchmark"], "skipbo_env.commands:no_such_function is not there"),
        (["record", "check", "no-such-file.jsonl"], "no-such-file.jsonl: No such file"),
        (["record", "show", "no-such-file.jsonl"], "no-such-file.jsonl: No such file"),
        (["play", "--rules", "chess"], "no preset 'chess'"),
        (["play", "--rules", "{"], "rules: no JSON"),
        (["play", "--rules", '{"stock_size": 99}'], "stock_size: must be 1 to 40, got 99"),
        (["play", "--rules", "none.json"], "none.json: No such file"),
        (["play", "--players", "7"], "players: must be 2 to 6"),
        (["play", "--seat", "2"], "--seat: must be 0 to 1, got 2"),
        (["play", "--seed", "-1"], "seed: needs a whole number"),
        (["play", "--agent", "a", "b"], "--agent: name one agent, or 1; got 2"),
        (["play", "--record", "no/such/folder/x.jsonl"], "--record: there is no folder"),
    ],
)
def test_errors_are_one_line_and_exit_2(
    args: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(args) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert re.search(said, captured.err)
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("skipbo")


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    "args", [["play", "--no-such-option"], ["record"], ["play", "--players", "x"]]
)
def test_unreadable_options_exit_2(args: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(args)
    assert caught.value.code == 2


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("args", [["play"], ["record"], ["record", "check"], ["record", "show"]])
def test_help_of_a_command_has_an_example(
    args: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main([*args, "--help"])
    assert caught.value.code == 0
    text = capsys.readouterr().out
    assert f"usage: skipbo {' '.join(args)}" in text
    assert f"\n    skipbo {' '.join(args)}" in text


def test_interrupt_exits_130() -> None:
    def interrupted() -> None:
        """Stop."""
        raise KeyboardInterrupt

    assert cli.run(interrupted, "play", []) == 130


def test_traceback_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong() -> None:
        """Fail."""
        raise ValueError("this")

    assert cli.run(wrong, "play", []) == 2
    monkeypatch.setenv("SKIPBO_TRACEBACK", "1")
    with pytest.raises(ValueError, match="this"):
        cli.run(wrong, "play", [])


def test_summaries_name_every_own_command() -> None:
    for name in ("play", "record"):
        assert callable(getattr(commands, name))
        assert name in cli.SUMMARIES


# skipbo play -----------------------------------------------------------------------------------


@pytest.mark.usefixtures("installed")
def test_play_from_a_pipe_saves_a_record(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "games.jsonl"
    options = ["--players", "3", "--rules", '{"stock_size": 2}', "--seed", "5", "--seat", "1"]
    options += ["--agent", "greedy", "planner", "--record", str(path)]
    for _ in range(2):
        typed(monkeypatch, "1\n" * 2000)
        assert cli.main(["play", *options]) == 0
    text = capsys.readouterr().out
    assert "player 2 (planner)" in text
    first, second = (data for _, data in record.read_records(path))
    assert first == second
    assert first["agents"] == ["greedy", "human", "planner"]
    assert first["seed"] == 5
    assert record.check_file(path) == {"valid": True, "records": 2}


@pytest.mark.usefixtures("installed")
def test_play_saves_an_unfinished_game_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "games.jsonl"
    typed(monkeypatch, "1\nq\n")
    assert cli.main(["play", "--seed", "5", "--record", str(path)]) == 0
    assert "(unfinished)" in capsys.readouterr().out
    (_, data) = next(record.read_records(path))
    assert not Game.from_record(data).over
    assert not record.check_file(path)["valid"]


@pytest.mark.usefixtures("installed")
def test_play_with_empty_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed(monkeypatch, "")
    assert cli.main(["play", "--seed", "5"]) == 0
    assert "unfinished" in capsys.readouterr().out


class Fixed(Stub):
    """An agent for two players."""

    def plays(self, rules: Rules) -> bool:
        return rules.players == 2 and not rules.teams


class Breaks(Stub):
    """An agent that fails at its third choice."""

    left = 2

    def act(self, game: Game) -> int:
        if not self.left:
            raise ValueError("out of order")
        self.left -= 1
        return super().act(game)


def stubs(name: str, *, seed: int = 0) -> Stub:
    kinds = {"stub": Stub, "two-player": Fixed, "breaks": Breaks}
    if name not in kinds:
        raise ValueError(f"agent: there is no agent or model {name!r}")
    return kinds[name](seed)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--players", "3", "--agent", "two-player"], "--agent: 'two-player' does not play games"),
        (["--rules", "partners", "--agent", "stub", "two-player", "stub"], "4 players in 2 teams"),
        (["--players", "3", "--agent", "stub", "--hints", "two-player"], "--hints: 'two-player'"),
        (["--agent", "stub", "--hints", "typo"], "no agent or model 'typo'"),
    ],
)
def test_agents_are_checked_before_play(
    options: list[str],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(skipbo_env.agents, "make_agent", stubs)
    typed(monkeypatch, "1\n" * 100)
    path = tmp_path / "games.jsonl"
    assert cli.main(["play", *options, "--record", str(path)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err
    assert not path.exists()
    typed(monkeypatch, "q\n")
    assert cli.main(["play", "--agent", "two-player", "--hints", "stub"]) == 0


@pytest.mark.usefixtures("installed")
def test_the_record_outlives_an_agent_that_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(skipbo_env.agents, "make_agent", stubs)
    path = tmp_path / "games.jsonl"
    options = ["--agent", "breaks", "--hints", "stub", "--seed", "5", "--record", str(path)]
    typed(monkeypatch, "1\n" * 500)
    assert cli.main(["play", *options]) == 2
    captured = capsys.readouterr()
    assert "out of order" in captured.err
    assert "(unfinished)" in captured.out
    (_, data) = next(record.read_records(path))
    assert Game.from_record(data).actions

    def interrupted(prompt: str) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(TerminalGame, "_ask", lambda self, prompt: interrupted(prompt))
    assert cli.main(["play", *options, "--agent", "stub"]) == 130
    assert len(list(record.read_records(path))) == 2


@pytest.mark.usefixtures("installed")
def test_play_with_playing_cards(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for options, card in (([], "S"), (["--playing-cards"], "K")):
        typed(monkeypatch, "1\n" * 30)
        assert cli.main(["play", "--seed", "5", "--agent", "greedy", *options]) == 0
        text = capsys.readouterr().out
        assert f"[ {card}]" in text
        assert f"[ {'SK'.replace(card, '')}]" not in text


NOTATION = "- 0 368QS 12345/123456789TJ/12/- 7:12:4/T/-/-,5:20:-/-/-/- 5,5 88 {} - 0 41"
COMPLETED = "1,1,1,1,1,1,1,1,1,1,0,0,2"


def test_suggest_reads_a_line_a_file_and_standard_input(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = NOTATION.format(COMPLETED)
    file = tmp_path / "a file with blanks.txt"
    file.write_text(line)
    answers = []
    for position in (line, str(file), "-"):
        typed(monkeypatch, line)
        options = ["--agent", "greedy", "--json"]
        assert cli.run(commands.suggest, "suggest", [position, *options]) == 0
        answers.append(json.loads(capsys.readouterr().out))
    assert answers[0] == answers[1] == answers[2]
    assert cli.run(commands.suggest, "suggest", [line, "--agent", "greedy"]) == 0
    assert answers[0]["moves"][0]["text"] in capsys.readouterr().out


def test_a_suggestion_can_be_read_at_80_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.run(commands.suggest, "suggest", [NOTATION.format(COMPLETED)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 for line in lines)
    rows = [line for line in lines if re.match(r" *\d+ ", line)]
    assert len(rows) > 5
    # Whole words: every row has its move, win, delta and verdict, nothing cut off by an ellipsis.
    for row in rows:
        assert re.match(r" *\d+ +\S.*? +\d+\.\d% +-?\d+\.\d% +[a-z]+", row), row
    assert not any("…" in line for line in lines)
    # A move takes two lines, three where the reasons are many.
    assert len(lines) < 4 * len(rows)


@pytest.mark.parametrize(
    ("position", "said"),
    [
        (NOTATION.format("1," * 2000 + "1"), "no line of notation"),  # too long for a file name
        (NOTATION.format("-").replace("4/T", "4" * 5000 + "/T"), "the deck has 12"),
        ("no-such-file.json", "there is no file 'no-such-file.json'"),
        ("x" * 5000, "there is no file"),
        ("a\0b", "there is no file"),
        ("one two", "11 fields, got 2"),
    ],
    ids=range(6),
)
def test_suggest_says_what_is_wrong_with_a_position(
    position: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(commands.suggest, "suggest", [position, "--agent", "greedy"]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "too long" not in error


def test_rules_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    path.write_text('{"stock_size": 7}', encoding="utf-8")
    assert commands.rules_of(str(path), 3) == Rules(players=3, stock_size=7)
    assert commands.rules_of("short") == Rules(stock_size=10)
    assert commands.rules_of(' {"players": 4, "teams": 2}') == Rules(players=4, teams=2)


# skipbo record ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("installed")
def test_record_check(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = GOLDEN / "records.jsonl"
    assert cli.main(["record", "check", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"valid": True, "records": 56}
    assert cli.main(["record", "check", str(path)]) == 0
    assert "56 records" in capsys.readouterr().out
    bad = tmp_path / "bad.jsonl"
    case = json.loads((GOLDEN / "corrupted.jsonl").read_text().splitlines()[0])
    good = path.read_text().splitlines()[0]
    bad.write_text(f"{good}\n{json.dumps(case['record'])}\n")
    assert cli.main(["record", "check", str(bad), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found == {
        "valid": False,
        "line": 2,
        "event": 65,
        "error": "event 65: drew 6, the pile's next card is 5",
    }
    assert cli.main(["record", "check", str(bad)]) == 1
    assert capsys.readouterr().out == f"{bad}:2: {found['error']}\n"


@pytest.mark.usefixtures("installed")
def test_record_show_names_the_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = (GOLDEN / "records.jsonl").read_text(encoding="utf-8").splitlines()[0]
    path = tmp_path / "games.jsonl"
    path.write_text(f"{good}\n\n{good[:-40]}\n", encoding="utf-8")
    assert cli.main(["record", "show", str(path), "--game", "2"]) == 2
    assert f"{path}:3: record: no JSON: " in capsys.readouterr().err


def test_output_that_lacks_a_character(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that the output cannot write is written in another way; the rest is there."""
    data = Game({"stock_size": 2}, seed=1).record(agents=["Ольга", "b"])
    path = tmp_path / "games.jsonl"
    path.write_text(json.dumps(data), encoding="utf-8")
    written = io.BytesIO()
    with io.TextIOWrapper(written, encoding="cp1252") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        assert cli.main(["record", "show", str(path)]) == 0
        stdout.flush()
        text = written.getvalue().decode("cp1252")
        monkeypatch.undo()
    assert r"\u041e" in text
    assert len(text.splitlines()) > 5


@pytest.mark.usefixtures("installed")
def test_record_show(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(GOLDEN / "records.jsonl")
    assert cli.main(["record", "show", path, "--game", "3"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("Skip-Bo, ")
    assert cli.main(["record", "show", path, "--game", "3", "--ply", "12", "--seat", "1"]) == 0
    assert "player 1 (you)" in capsys.readouterr().out
    for wrong in (
        ["--game", "0"],
        ["--game", "57"],
        ["--ply", "99999"],
        ["--ply", "1", "--seat", "9"],
    ):
        assert cli.main(["record", "show", path, *wrong]) == 2
        assert capsys.readouterr().err.startswith("skipbo record: ")


def test_reader_that_goes_away(tmp_path: Path) -> None:
    code = (
        "import sys; from skipbo_env import cli, commands; "
        f"sys.exit(cli.run(commands.record, 'record', ['show', {str(GOLDEN / 'records.jsonl')!r}]))"
    )
    # Closed before anything is written, as by `| head`.
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    told = process.stderr.read().splitlines()
    assert [line for line in told if not line.startswith(b"skipbo: compiling")] == []
    process.stderr.close()
    assert process.wait() == 1
