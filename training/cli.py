"""The subcommands `skipbo train` and `skipbo evaluate`: options in, progress bars and tables out.

Only `train` imports torch, and only when it runs.
"""

from __future__ import annotations

import ast
import inspect
import json as jsonlib
import sys
import typing
from dataclasses import fields, make_dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from training.config import PRESETS, Config


def _sentences() -> dict[str, str]:
    """The sentence under each setting in the source of `Config`."""
    body = ast.parse(inspect.getsource(Config)).body[0]
    if not isinstance(body, ast.ClassDef):
        return {}
    found = {}
    for item, after in zip(body.body, body.body[1:], strict=False):
        if (
            isinstance(item, ast.AnnAssign)
            and isinstance(item.target, ast.Name)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
        ):
            found[item.target.id] = str(after.value.value)
    return found


def _overrides() -> type:
    """A dataclass with every setting of `Config`, None where the preset's value stands."""
    sentences = _sentences()
    hints = typing.get_type_hints(Config)
    return make_dataclass(
        "Overrides",
        [
            (
                field.name,
                Annotated[
                    hints[field.name] | None,
                    tyro.conf.arg(help=sentences.get(field.name, "")),
                ],
                None,
            )
            for field in fields(Config)
        ],
    )


Overrides = _overrides()


def train(
    *,
    preset: Literal["smoke", "default", "long", "gpu"] = "default",
    algo: Literal["td"] = "td",
    run: Path | None = None,
    resume: bool = False,
    settings: Overrides = Overrides(),  # type: ignore[valid-type]  # noqa: B008
) -> int:
    """Train an agent by self-play and leave a model folder.

    Every setting of the preset can be overridden. Ctrl-C stops after the iteration and loses
    nothing. For example:

        skipbo train --preset smoke
        skipbo train --preset default --run runs/big --hidden 256
        skipbo train --run runs/big --resume

    Args:
        preset: the settings to start from: smoke is three minutes on two cores.
        algo: how to learn: td is TD(lambda) of afterstate values with turn search.
        run: the run's folder; runs/PRESET if not given.
        resume: go on from the folder's last checkpoint, with its settings.
        settings: overrides.
    """
    del algo
    from training.run import train as train_run

    given = {name: value for name, value in vars(settings).items() if value is not None}
    if resume and given:
        raise ValueError(
            f"--{next(iter(given)).replace('_', '-')}: cannot change when a run is resumed"
        )
    config = replace(PRESETS[preset], **given)
    folder = run or Path("runs") / preset
    if resume and (folder / "config.json").is_file():
        config = Config.load(folder / "config.json")
    console = Console(stderr=True)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[line]}"),
        console=console,
        disable=not console.is_terminal,
    ) as bar:
        task = bar.add_task("iterations", total=config.iterations, line="compiling")
        rates: dict[str, str] = {"win": ""}

        def show(numbers: dict[str, Any]) -> None:
            if numbers["kind"] == "evaluation":
                parts = [
                    f"{opponent} {numbers[f'win_rate_{opponent}']:.1%}"
                    for opponent in config.opponents
                ]
                rates["win"] = "wins against " + ", ".join(parts)
                console.print(f"iteration {numbers['iteration']}: {rates['win']}", highlight=False)
                return
            line = (
                f"{numbers['decisions_per_s']:,.0f} decisions/s  "
                f"{numbers['games_per_s']:,.0f} games/s  playing {numbers['play_share']:.0%}  "
                f"no winner {numbers['no_winner_rate']:.1%}  {rates['win']}"
            )
            bar.update(task, completed=numbers["iteration"], line=line)
            if not console.is_terminal and numbers["iteration"] % 10 == 0:
                console.print(
                    f"iteration {numbers['iteration']}/{config.iterations}: {line}", highlight=False
                )

        model = train_run(config, folder, resume=resume, progress=show)
    if model is None:
        console.print(
            f"stopped before the first evaluation; go on with skipbo train --run {folder} --resume"
        )
    else:
        print(model)
    return 0


def evaluate(
    agent: tyro.conf.Positional[str],
    *,
    against: str = "greedy",
    games: int = 4000,
    players: int | None = None,
    rules: str = "standard",
    seed: int = 1,
    workers: int = 2,
    two_ended: bool = False,
    record: Path | None = None,
    json: bool = False,
) -> int:
    """Measure an agent against another in paired games, with a 95% interval.

    Both meet the same deals from every side; a set of games on one deal is one observation. For
    example:

        skipbo evaluate two-player --against greedy --games 4000

    Args:
        agent: the challenger: a name, a model or its folder.
        against: who holds all other sides.
        games: how many, rounded up to whole sets.
        players: overrides the rules' number of players.
        rules: a preset's name, a JSON object of settings, or a .json file with one.
        seed: where all randomness comes from.
        workers: threads.
        two_ended: two players draw from opposite ends of the draw pile, which leaves less to luck.
        record: write the records of all games to this .jsonl file.
        json: print one JSON object.
    """
    from skipbo_env.commands import rules_of
    from training.arena import evaluate as rate

    console = Console(stderr=True)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f} deals"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[line]}"),
        console=console,
        disable=json or not console.is_terminal,
        transient=True,
    ) as bar:
        chosen = rules_of(rules, players)
        task = bar.add_task(agent, total=-(-games // chosen.sides), line="")

        def show(units: int, rate_so_far: float) -> None:
            bar.update(task, completed=units, line=f"wins {rate_so_far:.1%}")

        result = rate(
            agent,
            against,
            games=games,
            rules=chosen,
            seed=seed,
            workers=workers,
            two_ended=two_ended,
            record=record,
            progress=show,
        )
    if json:
        print(jsonlib.dumps(result))
        return 0
    low, high = result["interval"]
    table = Table(
        title=f"{agent} against {against}, {result['players']} players", title_justify="left"
    )
    table.add_column("")
    table.add_column("", justify="right")
    table.add_row("games", f"{result['games']:,} ({result['units']:,} deals)")
    table.add_row("[bold]win rate[/bold]", f"[bold]{result['win_rate']:.2%}[/bold]")
    table.add_row("95% interval", f"{low:.2%} to {high:.2%}")
    table.add_row("losses", f"{result['loss_rate']:.2%}")
    table.add_row("stalemates", f"{result['stalemate_rate']:.2%}")
    table.add_row("cut off", f"{result['truncated_rate']:.2%}")
    table.add_row("by seat", "  ".join(f"{rate_:.1%}" for rate_ in result["seat_win_rates"]))
    table.add_row("decisions a game", f"{result['mean_decisions']:.1f}")
    table.add_row("seconds", f"{result['seconds']:.1f}")
    Console(file=sys.stdout).print(table)
    return 0
