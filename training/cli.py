"""The subcommands `skipbo train`, `evaluate`, `tournament`, `plot` and `export`: options in,
progress bars and tables out.

Only `train` imports torch, and only when it runs.
"""

from __future__ import annotations

import ast
import inspect
import json as jsonlib
import os
import sys
import time
import typing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, make_dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from training import ranks
from training.config import ALL_PRESETS, KINDS, Config, PpoConfig, Settings

SILENT_S = 20.0  # without a terminal a run says at least so often how far it is


def _sentences() -> dict[str, str]:
    """The sentence under each setting in the source of the settings' classes."""
    found: dict[str, str] = {}
    kinds: list[type[Settings]] = [Settings, *KINDS.values()]
    for kind in kinds:
        body = ast.parse(inspect.getsource(kind)).body[0]
        if not isinstance(body, ast.ClassDef):
            continue
        for item, after in zip(body.body, body.body[1:], strict=False):
            if (
                isinstance(item, ast.AnnAssign)
                and isinstance(item.target, ast.Name)
                and isinstance(after, ast.Expr)
                and isinstance(after.value, ast.Constant)
            ):
                found.setdefault(item.target.id, str(after.value.value))
    return found


def _overrides() -> type:
    """A dataclass with every setting of every learner, None where the preset's value stands."""
    sentences = _sentences()
    hints = {**typing.get_type_hints(PpoConfig), **typing.get_type_hints(Config)}
    names = dict.fromkeys(field.name for kind in KINDS.values() for field in fields(kind))

    def told(name: str) -> str:
        learners = [algo for algo, kind in KINDS.items() if hasattr(kind, name)]
        only = "" if len(learners) == len(KINDS) else f"({learners[0]} only) "
        return only + sentences.get(name, "")

    return make_dataclass(
        "Overrides",
        [
            (name, Annotated[hints[name] | None, tyro.conf.arg(help=told(name))], None)
            for name in names
        ],
    )


Overrides = _overrides()


def train(
    *,
    preset: Literal["smoke", "default", "long", "distilled", "gpu"] = "default",
    algo: Literal["td", "ppo"] = "td",
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
        skipbo train --algo ppo --preset distilled

    Args:
        preset: the settings to start from: smoke is three minutes on two cores. td has long, ppo
            has distilled, which imitates the shipped model first.
        algo: how to learn: td is TD(lambda) of afterstate values with turn search, ppo a policy
            that decides in one forward pass.
        run: the run's folder; runs/PRESET if not given, with ppo runs/ppo-PRESET.
        resume: go on from the folder's last checkpoint, with its settings.
        settings: overrides.
    """
    from training.checkpoint import settings_of
    from training.run import train as train_run

    given = {name: value for name, value in vars(settings).items() if value is not None}
    if resume and given:
        raise ValueError(
            f"--{next(iter(given)).replace('_', '-')}: cannot change when a run is resumed"
        )
    presets = ALL_PRESETS[algo]
    if preset not in presets:
        raise ValueError(f"--preset: {algo} has {', '.join(presets)}, not {preset}")
    for name in given:
        if not hasattr(KINDS[algo], name):
            raise ValueError(f"--{name.replace('_', '-')}: is no setting of --algo {algo}")
    config: Settings = replace(presets[preset], **given)
    folder = run or Path("runs") / (preset if algo == "td" else f"{algo}-{preset}")
    if resume and (folder / "config.json").is_file():
        config = settings_of(folder, config, resume=True)
    console = Console(stderr=True, quiet=not ranks.is_first())
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
        done, stopped, told = 0, False, time.monotonic()

        def show(numbers: dict[str, Any]) -> None:
            nonlocal done, stopped, told
            done = numbers["iteration"]
            if numbers["kind"] == "resumed":  # the bar begins where the run stands
                bar.update(task, completed=done)
                return
            if numbers["kind"] == "stopping":
                # From a signal handler, perhaps in the midst of a print: the console would print
                # again what it holds. The bar only keeps the text, its own thread draws it.
                stopped = True
                text = "stopping after this iteration; once more to stop at once"
                if console.is_terminal:
                    bar.update(task, line=text)
                else:
                    os.write(2, f"{text}\n".encode())
                return
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
                f"no winner {numbers['no_winner_rate']:.1%}"
            )
            if not stopped:
                bar.update(task, completed=done, line=f"{line}  {rates['win']}")
            silent = time.monotonic() - told
            if not console.is_terminal and (done % 10 == 0 or done == 1 or silent > SILENT_S):
                told = time.monotonic()
                console.print(f"iteration {done}/{config.iterations}: {line}", highlight=False)

        model = train_run(config, folder, resume=resume, progress=show)
    if stopped and done < config.iterations:
        console.print(
            f"stopped after iteration {done} of {config.iterations}; "
            f"go on with skipbo train --run {folder} --resume",
            soft_wrap=True,
        )
    if model is not None and ranks.is_first():
        print(model)
    return 0


@contextmanager
def _bar(what: str, unit: str, *, hidden: bool) -> Iterator[Callable[[int, int, str], None]]:
    """A progress bar on a terminal: call it with what is done, what there is in all, and a text."""
    console = Console(stderr=True)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn(f"{{task.completed:,.0f}}/{{task.total:,.0f}} {unit}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[line]}"),
        console=console,
        disable=hidden or not console.is_terminal,
        transient=True,
    ) as bar:
        task = bar.add_task(what, total=1, line="compiling")
        yield lambda done, total, line: bar.update(task, completed=done, total=total, line=line)


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
    sprt: tuple[float, float] | None = None,
    alpha: float = 0.05,
    beta: float = 0.05,
    record: Path | None = None,
    plot: Path | None = None,
    json: bool = False,
) -> int:
    """Measure an agent against another in paired games, with a 95% interval.

    Both meet the same deals from every side; a set of games on one deal is one observation. For
    example:

        skipbo evaluate two-player --against greedy --games 4000
        skipbo evaluate runs/new/model --against two-player --games 40000 --sprt 0.50 0.53

    Args:
        agent: the challenger: a name, a model or its folder.
        against: who holds all other sides.
        games: how many, rounded up to whole sets; with --sprt, at most.
        players: overrides the rules' number of players.
        rules: a preset's name, a JSON object of settings, or a .json file with one.
        seed: where all randomness comes from.
        workers: threads.
        two_ended: two players draw from opposite ends of the draw pile, which leaves less to luck.
        sprt: stop as soon as one of two scores is accepted: the lower (H0) or the higher one (H1).
        alpha: with --sprt, the chance to accept H1 where H0 is true.
        beta: with --sprt, the chance to accept H0 where H1 is true.
        record: write the records of all games to this .jsonl file.
        plot: draw the result into this .png, .svg or .pdf file.
        json: print one JSON object.
    """
    from skipbo_env.commands import rules_of
    from training.arena import evaluate as rate
    from training.stats import Sprt

    chosen = rules_of(rules, players)
    test = None if sprt is None else Sprt(*sprt, alpha, beta)
    units = -(-games // chosen.sides)
    with _bar(agent, "deals", hidden=json or not ranks.is_first()) as show:
        result = rate(
            agent,
            against,
            games=games,
            rules=chosen,
            seed=seed,
            workers=workers,
            two_ended=two_ended,
            sprt=test,
            record=record,
            plot=plot if ranks.is_first() else None,
            progress=lambda done, won: show(done, units, f"wins {won:.1%}"),
        )
    if not ranks.is_first():
        return 0
    if json:
        print(jsonlib.dumps(result))
    else:
        Console(file=sys.stdout).print(_match_table(result))
    return 0


def _between(interval: list[float], decimals: int = 2) -> str:
    return f"{interval[0]:.{decimals}%} to {interval[1]:.{decimals}%}"


def _match_table(result: dict[str, Any]) -> Table:
    title = f"{result['agent']} against {result['against']}, {result['players']} players"
    table = Table(title=title, title_justify="left", show_header=False)
    table.add_column()
    table.add_column(justify="right")
    table.add_row("games", f"{result['games']:,} ({result['units']:,} deals)")
    table.add_row("[bold]win rate[/bold]", f"[bold]{result['win_rate']:.2%}[/bold]")
    table.add_row("95% interval", _between(result["interval"]))
    if result["adjusted"]:
        adjusted = result["adjusted"]
        table.add_row("less the luck of the wilds", f"{adjusted['win_rate']:.2%}")
        table.add_row("  95% interval", _between(adjusted["interval"]))
        ratio = adjusted["variance_ratio"]
        gain = f"{ratio:.0%} of the plain rate's" if ratio < 1 else "no less than the plain rate's"
        table.add_row("  its variance", gain)
    if "sprt" in result:
        test = result["sprt"]
        told = f"score {test['h0']:g} (H0) or {test['h1']:g} (H1)"
        accepted = test["accepted"]
        table.add_row("test", told)
        low, high = test["bounds"]
        ratio = f"{test['llr']:+.2f} of {low:+.2f} to {high:+.2f}"
        table.add_row("  log likelihood ratio", ratio)
        table.add_row("  [bold]accepted[/bold]", f"[bold]{accepted or 'neither: undecided'}[/bold]")
    table.add_row("losses", f"{result['loss_rate']:.2%}")
    table.add_row("stalemates", f"{result['stalemate_rate']:.2%}")
    table.add_row("cut off", f"{result['truncated_rate']:.2%}")
    table.add_row("by seat", "  ".join(f"{rate:.1%}" for rate in result["seat_win_rates"]))
    table.add_row("decisions a game", f"{result['mean_decisions']:.1f}")
    table.add_row("seconds", f"{result['seconds']:.1f}")
    return table


def tournament(
    agents: tyro.conf.Positional[tuple[str, ...]],
    *,
    games: int = 1000,
    players: int | None = None,
    rules: str = "standard",
    seed: int = 1,
    workers: int = 2,
    two_ended: bool = False,
    record: Path | None = None,
    plot: Path | None = None,
    json: bool = False,
) -> int:
    """Let agents play each other on the same deals, and rate them, with 95% intervals.

    In games of two every pair meets; with more players every set of so many agents, each in every
    seat. Ratings are Plackett-Luce's. For example:

        skipbo tournament two-player greedy simple play-first --games 2000 --plot ratings.png

    Args:
        agents: names, models or their folders; two or more.
        games: how many each pair or set plays, rounded up to whole sets of one deal.
        players: overrides the rules' number of players.
        rules: a preset's name, a JSON object of settings, or a .json file with one.
        seed: where all randomness comes from.
        workers: threads.
        two_ended: two players draw from opposite ends of the draw pile, which leaves less to luck.
        record: write the records of all games to this .jsonl file.
        plot: draw ratings and cross table into this .png, .svg or .pdf file.
        json: print one JSON object.
    """
    from skipbo_env.commands import rules_of
    from training.tournament import tournament as play

    with _bar("tournament", "games", hidden=json or not ranks.is_first()) as show:
        result = play(
            agents,
            games=games,
            rules=rules_of(rules, players),
            seed=seed,
            workers=workers,
            two_ended=two_ended,
            record=record,
            plot=plot if ranks.is_first() else None,
            progress=lambda done, total: show(done, total, ""),
        )
    if not ranks.is_first():
        return 0
    if json:
        print(jsonlib.dumps(result))
        return 0
    console = Console(file=sys.stdout)
    console.print(_standings_table(result))
    console.print(_cross_table(result))
    return 0


def _standings_table(result: dict[str, Any]) -> Table:
    title = f"{result['games']:,} games on {result['deals']:,} deals, {result['players']} players"
    table = Table(title=title, title_justify="left")
    table.add_column("agent", no_wrap=True)
    for column in ("rating", "95% interval", "won", "95% interval", "by seat"):
        table.add_column(column, justify="right")
    for entry in result["standings"]:
        low, high = entry["rating_interval"]
        seats = ("" if rate is None else f"{rate:.1%}" for rate in entry["seat_win_rates"])
        table.add_row(
            entry["agent"],
            f"{entry['rating']:+.0f}",
            f"{low:+.0f} to {high:+.0f}",
            f"{entry['win_rate']:.1%}",
            _between(entry["interval"], 1),
            "  ".join(seats),
        )
    return table


def _cross_table(result: dict[str, Any]) -> Table:
    names = [entry["agent"] for entry in result["standings"]]
    table = Table(title="games won by the row against the column", title_justify="left")
    table.add_column("")
    for name in names:
        table.add_column(name, justify="right")
    for name in names:
        cells = []
        for other in names:
            met = result["cross_table"][name].get(other)
            half = (met["interval"][1] - met["interval"][0]) / 2 if met else 0.0
            cells.append(f"{met['win_rate']:.1%} ±{100 * half:.1f}" if met else "")
        table.add_row(name, *cells)
    return table


def plot(
    runs: tyro.conf.Positional[tuple[Path, ...]],
    *,
    out: Path = Path("curves.png"),
    x: Literal["games", "iterations", "hours"] = "games",
    against: str | None = None,
) -> int:
    """Draw the learning curves of training runs: win rate, TD error and calibration (with PPO
    entropy and explained variance), speed.

    For example:

        skipbo plot runs/default runs/big --out curves.png

    Args:
        runs: folders of runs.
        out: the picture, a .png, .svg or .pdf file.
        x: the horizontal axis: games learned from, iterations, or hours of CPU.
        against: whose win rates; the opponent that chose the best network if not given.
    """
    from training.plots import check_target, draw_runs, read_log

    if not runs:
        raise ValueError("runs: name one folder or more")
    check_target(out)
    names = [folder.name if folder.name else folder.resolve().name for folder in runs]
    if len(set(names)) < len(names):
        names = [str(folder) for folder in runs]
    logs = [read_log(folder) for folder in runs]
    draw_runs(out, list(zip(names, logs, strict=True)), x=x, against=against)
    print(out)
    return 0


def export(
    model: tyro.conf.Positional[str],
    *,
    to: Literal["safetensors", "onnx"] = "safetensors",
    out: Path | None = None,
) -> int:
    """Write a model's networks for other programs, or into another model's folder.

    For example:

        skipbo export two-player --to onnx
        skipbo export runs/ppo-distilled/model --out models/mine

    Args:
        model: a model's name or folder.
        to: onnx writes value.onnx and policy.onnx (see docs/formats.md), safetensors a model
            folder as it is, or what a model's folder lacks into it.
        out: the folder; exported/NAME if not given.
    """
    from skipbo_env.agents.agent import named_model

    found = named_model(model)
    folder = out or Path("exported") / found.name
    if to == "onnx":
        from training.onnx_export import write_onnx

        written = write_onnx(found, folder)
    else:
        from training.export import add_networks

        written = add_networks(found, folder)
    for file in written:
        print(file)
    return 0
