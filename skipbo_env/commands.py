"""The subcommands of `skipbo` that need neither training nor serve; `skipbo_env.cli` runs them.

Each is a plain function: its parameters are the options, its docstring is the help, what it returns
is the exit code. They read options and files and print; the work is done in other modules, imported
when a command runs. What is wrong with a request is a ValueError or OSError, which the command line
tells in one line.
"""

from __future__ import annotations

import json as jsonlib
import sys
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import Positional, subcommand

if TYPE_CHECKING:
    from rich.console import Console

    from skipbo_env.rules import Rules


def rules_of(text: str, players: int | None = None) -> Rules:
    """The rules that an option names: a preset, a JSON object, or a file with one.

    Args:
        text: such as "short", '{"stock_size": 20, "must_play_stock": true}' or "rules.json".
        players: overrides the number of players, unless the rules fix teams.

    Raises:
        RulesError: (a ValueError) no such preset, or rules that cannot be played.
        ValueError: no JSON.
        OSError: the file cannot be read.
    """
    from skipbo_env.rules import Rules

    if text.endswith(".json"):
        text = Path(text).read_text(encoding="utf-8")
    if not text.lstrip().startswith("{"):
        return Rules.of(text, players)
    try:
        data = jsonlib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"rules: no JSON: {error}") from None
    return Rules.of(data, players)


# play ------------------------------------------------------------------------------------------


def play(
    *,
    agent: tuple[str, ...] = ("best",),
    players: int | None = None,
    rules: str = "standard",
    seat: int = 0,
    seed: int | None = None,
    hints: str | None = None,
    playing_cards: bool = False,
    record: Path | None = None,
) -> int:
    """Play a game in the terminal against agents.

    Type a move's number in the list or its text, h for a hint, q to quit. For example, with three
    players, 10-card stocks and the greedy agent in both other seats:

        skipbo play --players 3 --rules short --agent greedy

    Args:
        agent: who plays the other seats: one agent for all of them, or one for each.
        players: how many play, you among them; the rules' own number if not given.
        rules: a preset's name, a JSON object of settings, or a .json file with one.
        seat: yours, from 0.
        seed: makes the deal and the agents' choices the same every time.
        hints: the agent that gives hints; the first of the others if not given.
        playing_cards: name the cards as playing cards: A, 2 to 10, J, Q, and K for a wild.
        record: add the game's record to this .jsonl file, also where you quit.
    """
    from skipbo_env.game import Game
    from skipbo_env.record import append_record
    from skipbo_env.terminal import TerminalGame

    game = Game(rules_of(rules, players), seed=seed)
    count = game.rules.players
    if not 0 <= seat < count:
        raise ValueError(f"--seat: must be 0 to {count - 1}, got {seat}")
    others = [other for other in range(count) if other != seat]
    names = list(agent) * (len(others) if len(agent) == 1 else 1)
    if len(names) != len(others):
        raise ValueError(f"--agent: name one agent, or {len(others)}; got {len(agent)}")
    if record is not None and not record.parent.is_dir():
        raise ValueError(f"--record: there is no folder {record.parent}")
    # Every agent has its own random stream, so that a hint does not change what the others play.
    chosen = dict(zip(others, names, strict=True))
    agents = {
        other: _player("--agent", name, game.rules, _stream(game.seed, other))
        for other, name in chosen.items()
    }
    adviser = _player(
        "--agent" if hints is None else "--hints",
        names[0] if hints is None else hints,
        game.rules,
        _stream(game.seed, seat),
    )
    table = TerminalGame(
        game,
        seat,
        agents,
        names={other: f"player {other} ({name})" for other, name in chosen.items()},
        adviser=adviser,
        playing=playing_cards,
    )
    finished = False
    try:
        finished = table.play()
    finally:  # whatever ends the game, an error or Ctrl-C too
        if record is not None:
            seats = ["human" if other == seat else chosen[other] for other in range(count)]
            append_record(record, game.record(seats))
            table.console.print(f"recorded in {record}" + ("" if finished else " (unfinished)"))
    return 0


def _player(option: str, name: str, rules: Rules, seed: int) -> Any:
    """The agent that an option names, which must play these rules."""
    from skipbo_env.agents import make_agent

    agent = make_agent(name, seed=seed)
    if hasattr(agent, "plays") and not agent.plays(rules):
        table = f"{rules.players} players" + (f" in {rules.teams} teams" if rules.teams else "")
        raise ValueError(f"{option}: {name!r:.80} does not play games of {table}")
    return agent


def _stream(seed: int | None, seat: int) -> int:
    """A seed for the agent in a seat, from the game's."""
    import numpy as np

    sequence = np.random.SeedSequence(seed or 0, spawn_key=(seat,))
    return int(sequence.generate_state(1, np.uint64)[0] >> np.uint64(1))


# record ----------------------------------------------------------------------------------------


@dataclass
class CheckRecords:
    """Replay every record of a file and name the first event that cannot be.

    The exit code is 0 where all follow, 1 where one does not. For example:

        skipbo record check games.jsonl --json
    """

    file: Positional[Path]
    """A .jsonl file: one record a line."""

    json: bool = False
    """Print one JSON object."""

    def run(self) -> int:
        """Check the file; 0 if every record follows, else 1."""
        from skipbo_env.record import check_file

        found = check_file(self.file)
        if self.json:
            print(jsonlib.dumps(found))
        elif found["valid"]:
            count = found["records"]
            print(f"{self.file}: {count} record{'s' if count != 1 else ''}, all of them follow")
        else:
            print(f"{self.file}:{found['line']}: {found['error']}")
        return 0 if found["valid"] else 1


@dataclass
class ShowRecord:
    """Print a record as text, or the table after so many choices of it.

    For example, the third game of a file, and the table after its first ten choices:

        skipbo record show games.jsonl --game 3
        skipbo record show games.jsonl --game 3 --ply 10
    """

    file: Positional[Path]
    """A .jsonl file: one record a line."""

    game: int = 1
    """Which record of the file, from 1."""

    ply: int | None = None
    """Show the table after so many plays, discards and passes."""

    seat: int | None = None
    """Whose hand the table shows; nobody's if not given."""

    def run(self) -> int:
        """Print the record."""
        from skipbo_env import record, render

        records = record.read_records(self.file)
        line = None
        try:
            line, data = next(islice(records, max(0, self.game - 1), None), (0, None))
            if data is None or self.game < 1:
                raise ValueError(f"--game: {self.file} has no record {self.game}")
            if self.ply is None:
                print(record.as_text(data))
            else:
                told = record.replay(data, self.ply)
                print(render.ansi(told.state, told.rules, self.seat, color=render.in_color()))
        except record.RecordError as error:
            raise ValueError(f"{self.file}:{line or error.line}: {error}") from error
        return 0


@dataclass
class ExportRecords:
    """Write finished games as arrays for offline learning: what was seen, done, and paid.

    For example:

        skipbo record export games.jsonl --out games.npz --observation features
    """

    files: Positional[tuple[Path, ...]]
    """.jsonl files of games of the same rules."""

    out: Path
    """The .npz file."""

    observation: Literal["cards", "features"] = "cards"
    """What a player saw: int8 cards, or float32 features, ten times as large."""

    reward: Literal["win", "shaped", "score"] = "win"
    """What the environments pay."""

    def run(self) -> int:
        """Write the file and say what is in it."""
        from skipbo_env.dataset import export

        if not self.files:
            raise ValueError("files: name one .jsonl file or more")
        found = export(self.files, self.out, observation=self.observation, reward=self.reward)
        print(f"{self.out}: {found['choices']:,} choices of {found['games']:,} games")
        return 0


def record(
    action: Annotated[CheckRecords, subcommand("check")]
    | Annotated[ShowRecord, subcommand("show")]
    | Annotated[ExportRecords, subcommand("export")],
) -> int:
    """Check, show and export game records.

    For example:

        skipbo record check games.jsonl
        skipbo record show games.jsonl --game 3
        skipbo record export games.jsonl --out games.npz
    """
    return action.run()


# suggest ---------------------------------------------------------------------------------------


def suggest(
    position: Positional[str],
    *,
    agent: str = "best",
    top: int | None = None,
    seed: int = 0,
    json: bool = False,
) -> int:
    """Rank the legal moves of a position, with each move's win probability and the turn it begins.

    The position is a JSON file, a line of notation, or - for either on standard input. For example:

        skipbo suggest position.json --agent best --top 5

    Args:
        position: a file, a line of notation, or -.
        agent: who is asked.
        top: how many moves to tell; all if not given.
        seed: deals the hidden cards, for agents that look at them.
        json: print one JSON object.
    """
    from skipbo_env.agents import make_agent
    from skipbo_env.game import Game
    from skipbo_env.position import Position, PositionError
    from skipbo_env.suggestion import ask

    if top is not None and top < 1:
        raise ValueError(f"--top: must be at least 1, got {top}")
    if position == "-":
        text = sys.stdin.read().removeprefix("\ufeff")
    elif _is_file(position):
        text = Path(position).read_text(encoding="utf-8-sig")
    elif " " in position.strip():
        text = position
    else:
        raise ValueError(f"position: there is no file {position!r:.80}")
    if text.lstrip().startswith("{"):
        try:
            data = jsonlib.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"position: no JSON: {error}") from None
        parsed = Position.parse(data)
    else:
        parsed = Position.from_notation(text.strip())
    if parsed.to_move != parsed.you:
        raise PositionError("/to_move", "the seat whose hand is known is not to move")
    game = Game.from_position(parsed.to_json(), seed)
    answer = ask(make_agent(agent, seed=seed), game, top=top)
    answer["position"] = {
        "hash": parsed.hash,
        "to_move": parsed.to_move,
        "inferred": list(parsed.inferred),
    }
    if json:
        print(jsonlib.dumps(answer))
    else:
        _show_suggestion(answer)
    return 0


def _is_file(text: str) -> bool:
    """Whether a text names a file; a line of notation may be too long for a path."""
    try:
        return Path(text).is_file()
    except (OSError, ValueError):
        return False


def _show_suggestion(answer: dict[str, Any]) -> None:
    from rich.console import Console

    from skipbo_env.terminal import suggestion_table

    who = answer["agent"]
    table = suggestion_table(answer["moves"], title=f"{who['name']} ({who['method']})")
    console = Console()
    console.print(table)
    for warning in answer["warnings"]:
        console.print(f"note: {warning}", highlight=False)
    if answer["position"]["inferred"]:
        told = ", ".join(answer["position"]["inferred"])
        console.print(f"left out, so inferred or assumed: {told}", highlight=False)


# analyse ---------------------------------------------------------------------------------------


def analyse(
    file: Positional[Path],
    *,
    game: int = 1,
    agent: str = "best",
    worst: int = 10,
    plot: Path | None = None,
    json: bool = False,
) -> int:
    """Find the mistakes in a game record, and say what the draws were worth.

    Every decision of every player is judged from what that player saw. For example:

        skipbo analyse games.jsonl --game 3 --plot game3.png

    Args:
        file: a .jsonl file: one record a line.
        game: which record of the file, from 1.
        agent: who judges.
        worst: how many of the costliest decisions, and of the luckiest cards, to show.
        plot: draw each side's probability to win over the game into this .png file.
        json: print one JSON object with every decision.
    """
    from rich.console import Console
    from rich.progress import Progress

    from skipbo_env import record
    from skipbo_env.agents import make_agent
    from skipbo_env.analysis import analyse as review
    from skipbo_env.chart import check_plot, plot_wins

    if plot is not None:
        check_plot(plot)
    records = record.read_records(file)
    line, data = next(islice(records, max(0, game - 1), None), (0, None))
    if data is None or game < 1:
        raise ValueError(f"--game: {file} has no record {game}")
    try:
        with Progress(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("decisions", total=None)
            found = review(
                data,
                make_agent(agent),
                progress=lambda done, total: bar.update(task, completed=done, total=total),
            )
    except record.RecordError as error:
        raise ValueError(f"{file}:{line}: {error}") from error
    if plot is not None:
        plot_wins(found, plot)
    if json:
        print(jsonlib.dumps(found))
    else:
        _show_analysis(found, max(0, worst))
    return 0


def _show_analysis(found: dict[str, Any], worst: int) -> None:
    from rich.console import Console

    from skipbo_env.chart import side_wins, sparkline
    from skipbo_env.terminal import narrow_table

    def percent(share: float | None) -> str:
        return "" if share is None else f"{100 * share:.1f}%"

    console = Console()
    who = found["agent"]
    judge = "nobody decided anything" if who is None else f"judged by {who['name']}"
    verdicts = ("best", "tie", "inaccuracy", "mistake", "blunder")
    counted = (f">{column}" for column in ("decisions", *verdicts, "agree", "lost"))
    named = (f"{p['player']} is {p['agent']}" for p in found["players"] if p["agent"])
    table = narrow_table("; ".join((judge, *named)), (">player", *counted))
    for player in found["players"]:
        counts = [str(player["verdicts"][name]) for name in verdicts]
        table.add_row(
            str(player["player"]),
            str(player["decisions"]),
            *counts,
            percent(player["agreement"]),
            percent(player["mean_lost"]),
        )
    console.print(table)
    for side in found["sides"]:
        if side["luck"] is not None:
            told = f"side {side['side']}: luck {side['luck']:+.2f}, lost {side['lost']:.2f}"
            if side["adjusted"] is not None:
                told += f", result {side['result']:g}, less luck {side['adjusted']:.2f}"
            console.print(f"{told} (in games won)", highlight=False)
    for side, wins in enumerate(side_wins(found)):
        if wins:
            console.print(f"side {side}: {sparkline(wins, max(10, min(60, console.width - 10)))}")
    _show_lucky(console, found, worst)
    costly = [d for d in found["decisions"] if d["lost"] and d["played"] != d["best"]]
    costly = sorted(costly, key=lambda decision: -decision["lost"])[:worst]
    if costly:
        table = narrow_table(
            "the costliest decisions",
            (">ply", ">player", "played", ">win", ">lost", "verdict"),
            "better, and why",
        )
        for decision in costly:
            better = ", ".join(step["text"] for step in decision["line"])
            why = "; ".join(decision["reasons"])
            table.add_row(
                str(decision["ply"]),
                str(decision["player"]),
                decision["played"]["text"],
                percent(decision["played"]["win"]),
                percent(decision["lost"]),
                decision["verdict"],
                "\n".join(line for line in (better, why) if line),
            )
        console.print(table)


def _show_lucky(console: Console, found: dict[str, Any], most: int) -> None:
    """The cards that changed the game most."""
    from skipbo_env.terminal import narrow_table

    lucky = [decision for decision in found["decisions"] if decision["luck"] and decision["shown"]]
    lucky = sorted(lucky, key=lambda decision: -abs(decision["luck"][0]))[:most]
    if not lucky:
        return
    sides = (f">side {side}" for side in range(len(found["sides"])))
    table = narrow_table("the cards that mattered most", (">ply", "cards", *sides))
    for decision in lucky:
        cards = [
            f"player {event['player']} "
            + (
                f"turns up {event['card']}"
                if event["type"] == "flip"
                else f"draws {' '.join(event['cards'])}"
            )
            for event in decision["shown"]
        ]
        lucks = [f"{100 * luck:+.1f}%" for luck in decision["luck"]]
        table.add_row(str(decision["ply"]), ", ".join(cards), *lucks)
    console.print(table)
