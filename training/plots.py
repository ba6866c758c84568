"""The pictures: learning curves, a match, a tournament, a model's calibration.

They need matplotlib, and nothing else of the project but the numbers that are drawn.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FORMATS = (".png", ".svg", ".pdf")
COLOURS = ("#1f6fb4", "#d1541b", "#2c8c4a", "#8a4fb0", "#b8860b", "#c2356f", "#4c5a67")
INK, FAINT = "#22262b", "#d9dde2"
# What learners tell of an iteration beside their speed: TD(lambda) the first two, PPO the others.
CURVES = {
    "td_error": "TD error (root mean square)",
    "calibration_gap": "Calibration gap (mean over ten bins)",
    "entropy": "Entropy of the policy (nats)",
    "explained_variance": "Explained variance of the values",
}
X_AXES = {"games": "games learned from", "iterations": "iterations", "hours": "CPU hours"}


class PlotError(ValueError):
    """A picture that cannot be drawn: its file, or what it should show; the message says which."""


def check_target(path: str | os.PathLike[str]) -> Path:
    """The picture's file, before the work that ends in it.

    Raises:
        PlotError: a file type that is none of FORMATS, or no such folder.
        ImportError: matplotlib is not installed.
    """
    import matplotlib.figure  # noqa: F401 - what is missing is told before the work, not after it

    target = Path(path)
    if target.suffix.lower() not in FORMATS:
        raise PlotError(f"{target}: the name must end in {', '.join(FORMATS)}")
    if not target.parent.is_dir():
        raise PlotError(f"{target}: there is no folder {target.parent}")
    return target


def _figure(width: float, height: float) -> Any:
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    rcParams["svg.hashsalt"] = "skipbo"  # equal pictures are equal files
    return Figure(figsize=(width, height), layout="constrained")


def _plain(axes: Any, title: str, x: str = "", y: str = "") -> None:
    """The look of every panel: a title at the left, a faint grid, no box."""
    axes.set_title(title, loc="left", fontsize=10, fontweight="bold", color=INK)
    axes.set_xlabel(x, fontsize=9, color=INK)
    axes.set_ylabel(y, fontsize=9, color=INK)
    axes.tick_params(labelsize=8, colors=INK, length=0)
    axes.grid(color=FAINT, linewidth=0.7)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(FAINT)


def _percent(axes: Any, which: str = "y", decimals: int | None = None) -> None:
    from matplotlib.ticker import PercentFormatter

    getattr(axes, f"{which}axis").set_major_formatter(PercentFormatter(1.0, decimals=decimals))


def _large(axes: Any, which: str) -> None:
    """Ticks such as 20k and 1.5M."""
    from matplotlib.ticker import EngFormatter

    getattr(axes, f"{which}axis").set_major_formatter(EngFormatter(sep=""))


def _save(figure: Any, path: str | os.PathLike[str]) -> None:
    target = Path(path)
    date = {".svg": "Date", ".pdf": "CreationDate"}.get(target.suffix.lower())
    figure.savefig(target, dpi=160, metadata={date: None} if date else None)


# Learning curves -------------------------------------------------------------------------------


def read_log(folder: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The lines of a run's log.jsonl.

    Raises:
        PlotError: no run, a line that is no JSON object, or nothing in it yet.
    """
    file = Path(folder) / "log.jsonl"
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise PlotError(f"{folder}: holds no run (there is no log.jsonl)") from None
    lines = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            data = json.loads(line)
            kind, iteration = data["kind"], data["iteration"]
        except (ValueError, TypeError, KeyError):
            if number == text.count("\n") + 1:
                continue  # the run is writing it
            raise PlotError(f"{file}:{number}: is no line of a training log") from None
        if isinstance(kind, str) and isinstance(iteration, int):
            lines.append(data)
    if not any(line["kind"] == "train" for line in lines):
        raise PlotError(f"{file}: holds no iteration yet")
    return lines


def _columns(
    lines: Sequence[Mapping[str, Any]], kind: str, names: Sequence[str]
) -> list[NDArray[np.float64]]:
    rows = [
        [line[n] for n in names] for line in lines if line["kind"] == kind and _has(line, names)
    ]
    return list(np.array(rows, np.float64).reshape(-1, len(names)).T)


def _has(line: Mapping[str, Any], names: Sequence[str]) -> bool:
    return all(isinstance(line.get(name), (int, float)) for name in names)


def _smooth(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """A running median over a thirtieth of the curve, so that jumps stay, and a mean over it."""
    for reduce, half in ((np.median, len(values) // 60), (np.mean, len(values) // 120)):
        ends = np.pad(values, half, mode="edge")
        windows = np.lib.stride_tricks.sliding_window_view(ends, 2 * half + 1)
        values = np.asarray(reduce(windows, axis=1))
    return values


def _from_zero(axes: Any) -> None:
    """An axis from 0 to a little above most of the curves; a few first points may lie outside."""
    drawn = np.concatenate([line.get_ydata() for line in axes.get_lines()])
    axes.set_ylim(0, 1.25 * float(np.percentile(drawn, 95)))


def opponents_of(lines: Sequence[Mapping[str, Any]]) -> list[str]:
    """Whom a run is evaluated against, in the order of its panel."""
    found = dict.fromkeys(
        name.removeprefix("win_rate_")
        for line in lines
        for name in line
        if line["kind"] == "evaluation" and name.startswith("win_rate_")
    )
    return list(found)


def _line(axes: Any, x: Any, values: Any, colour: str, name: str) -> None:
    """A noisy curve faint, a smooth one over it; a single value is a dot."""
    single = "o" if len(values) == 1 else None
    axes.plot(x, values, color=colour, alpha=0.22, linewidth=0.7)
    axes.plot(x, _smooth(values), color=colour, linewidth=1.6, label=name, marker=single)


def draw_runs(
    path: str | os.PathLike[str],
    runs: Sequence[tuple[str, Sequence[Mapping[str, Any]]]],
    *,
    x: str = "games",
    against: str | None = None,
) -> None:
    """Learning curves: win rate with intervals, what CURVES has of the runs, speed.

    Args:
        path: the picture.
        runs: (name, lines of its log) of each run.
        x: the horizontal axis, one of X_AXES.
        against: the opponent of the win rates; the last one of each run's panel if not given.

    Raises:
        PlotError: no such axis, or a run that is not evaluated against that opponent.
    """
    if x not in X_AXES:
        raise PlotError(f"x: must be one of {', '.join(X_AXES)}, got {x!r:.40}")
    key, scale = {
        "games": ("games", 1.0),
        "iterations": ("iteration", 1.0),
        "hours": ("cpu_seconds", 1 / 3600),
    }[x]
    told = [
        number
        for number in CURVES
        if any(line["kind"] == "train" and _has(line, (number,)) for _, log in runs for line in log)
    ]
    rows = 1 + (len(told) + 1) // 2
    figure = _figure(9.6, 3.1 * rows)
    win, *curves, speed = figure.subplots(rows, 2).flat
    for spare in curves[len(told) :]:
        spare.remove()
    del curves[len(told) :]
    shown = set()
    for place, (name, lines) in enumerate(runs):
        colour = COLOURS[place % len(COLOURS)]
        panel = opponents_of(lines)
        if against is not None and panel and against not in panel:
            raise PlotError(f"against: {name} is evaluated against {', '.join(panel)}")
        if panel:
            other = against or panel[-1]
            shown.add(other)
            wanted = [key, *(f"{part}_{other}" for part in ("win_rate", "low", "high"))]
            at, rate, low, high = _columns(lines, "evaluation", wanted)
            win.fill_between(at * scale, low, high, color=colour, alpha=0.16, linewidth=0)
            win.plot(at * scale, rate, color=colour, marker="o", markersize=3, label=name)
        for axes, number in zip(curves, told, strict=True):
            at, values = _columns(lines, "train", [key, number])
            if not len(at):  # another learner's number
                continue
            _line(axes, at * scale, values, colour, name)
        at, values = _columns(lines, "train", [key, "decisions_per_s"])
        _line(speed, at * scale, values, colour, name)
    label = X_AXES[x]
    _plain(win, f"Win rate against {', '.join(sorted(shown)) or '(not evaluated yet)'}", label)
    for axes, number in zip(curves, told, strict=True):
        _plain(axes, CURVES[number], label)
    _plain(speed, "Decisions learned per second", label)
    _percent(win)
    for axes in (*curves, speed):
        _from_zero(axes)
    _large(speed, "y")
    for axes in (win, *curves, speed):
        axes.set_xlim(left=0)
        if x == "games":
            _large(axes, "x")
    (win if shown else speed).legend(fontsize=8, frameon=False, loc="lower right")
    _save(figure, path)


# Matches and tournaments -----------------------------------------------------------------------


def draw_match(
    path: str | os.PathLike[str],
    result: Mapping[str, Any],
    units: NDArray[np.float64],
    luck: NDArray[np.float64],
) -> None:
    """A match: the win rate as it settled, plain and adjusted, and by seat.

    Args:
        path: the picture.
        result: what `arena.evaluate` says.
        units: the challenger's win rate in each unit, shape (n,).
        luck: its luck in each unit, shape (n, 2).
    """
    n = np.arange(1, len(units) + 1)
    mean = np.cumsum(units) / n
    spread = np.sqrt(np.maximum(np.cumsum(units**2) / n - mean**2, 0.0) / np.maximum(n - 1, 1))
    figure = _figure(9.6, 3.9)
    left, right = figure.subplots(1, 2, width_ratios=(2.6, 1))
    games = n * (result["games"] / len(units))
    shown = slice(min(9, len(n) - 1), None)
    left.fill_between(
        games[shown],
        np.clip(mean - 1.96 * spread, 0, 1)[shown],
        np.clip(mean + 1.96 * spread, 0, 1)[shown],
        color=COLOURS[0],
        alpha=0.16,
        linewidth=0,
    )
    left.plot(games[shown], mean[shown], color=COLOURS[0], linewidth=1.6, label="win rate")
    if result["adjusted"]:
        less = np.cumsum(units - luck @ np.array(result["adjusted"]["coefficients"])) / n
        left.plot(
            games[shown],
            less[shown],
            color=COLOURS[1],
            linewidth=1.2,
            linestyle="--",
            label="less the luck of the wilds",
        )
    even = 1 / len(result["seat_win_rates"])
    left.axhline(even, color=INK, linewidth=0.8, linestyle=":")
    low, high = result["interval"]
    _plain(left, f"{result['agent']} against {result['against']}", "games")
    left.text(
        1.0,
        1.02,
        f"{result['win_rate']:.2%}  (95%: {low:.2%} to {high:.2%})",
        transform=left.transAxes,
        ha="right",
        fontsize=9,
        color=INK,
    )
    _percent(left)
    _large(left, "x")
    left.legend(fontsize=8, frameon=False, loc="best")
    rates = result["seat_win_rates"]
    right.bar(range(len(rates)), rates, color=COLOURS[0], width=0.6)
    for seat, rate in enumerate(rates):
        right.text(seat, rate, f"{rate:.1%}", ha="center", va="bottom", fontsize=8, color=INK)
    right.axhline(even, color=INK, linewidth=0.8, linestyle=":")
    right.set_xticks(range(len(rates)))
    right.set_ylim(0, 1)
    _plain(right, "by seat", "seat")
    right.grid(axis="x", visible=False)
    _percent(right)
    _save(figure, path)


def draw_tournament(path: str | os.PathLike[str], result: Mapping[str, Any]) -> None:
    """A tournament: ratings with their intervals, and who beats whom how often."""
    standings = result["standings"]
    names = [entry["agent"] for entry in standings]
    places = np.arange(len(names))
    figure = _figure(9.6, 1.9 + 0.42 * len(names))
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.15))
    ratings = np.array([entry["rating"] for entry in standings])
    bounds = np.array([entry["rating_interval"] for entry in standings]).T
    left.errorbar(
        ratings,
        places,
        xerr=np.abs(bounds - ratings),
        fmt="o",
        color=COLOURS[0],
        markersize=5,
        capsize=3,
    )
    for place, rating in enumerate(ratings):
        left.text(rating, place - 0.22, f"{rating:+.0f}", ha="center", fontsize=8, color=INK)
    left.set_yticks(places, names)
    left.set_ylim(len(names) - 0.5, -0.6)
    _plain(left, "Rating (points, 95% interval)", "100 points more: 64% of games of two")
    cross = np.full((len(names), len(names)), np.nan)
    for i, a in enumerate(names):
        for j, b in enumerate(names):
            if i != j and result["cross_table"][a][b]:
                cross[i, j] = result["cross_table"][a][b]["win_rate"]
    even = 1 / len(result["seat_win_rates"])
    reach = max(float(np.nanmax(np.abs(cross - even))), 0.05)
    right.imshow(cross, cmap="RdBu", vmin=even - 1.4 * reach, vmax=even + 1.4 * reach)
    for i, j in zip(*np.nonzero(~np.isnan(cross)), strict=True):
        dark = abs(cross[i, j] - even) > 0.85 * reach
        ink = "white" if dark else INK
        right.text(j, i, f"{cross[i, j]:.1%}", ha="center", va="center", fontsize=8, color=ink)
    right.set_xticks(places, names, rotation=30, ha="right")
    right.set_yticks(places, names)
    _plain(right, "Games won by the row against the column")
    right.grid(visible=False)
    right.set_aspect("auto")
    _save(figure, path)


# Calibration -----------------------------------------------------------------------------------


def draw_calibration(path: str | os.PathLike[str], measured: Mapping[str, Any]) -> None:
    """A reliability diagram: what a network says, and how often that side wins then.

    Args:
        path: the picture.
        measured: {"bins": [{"value", "won", "interval", "endings"}, ...], "brier", "games",
            "endings"}.
    """
    bins = measured["bins"]
    value = np.array([b["value"] for b in bins])
    won = np.array([b["won"] for b in bins])
    bounds = np.array([b["interval"] for b in bins]).T
    figure = _figure(4.8, 5.4)
    top, bottom = figure.subplots(2, 1, height_ratios=(3.4, 1), sharex=True)
    top.plot([0, 1], [0, 1], color=INK, linewidth=0.8, linestyle=":")
    top.errorbar(
        value, won, yerr=np.abs(bounds - won), fmt="o", color=COLOURS[0], markersize=4, capsize=2
    )
    _plain(top, "Said and won", "", "games won by the mover's side")
    top.text(
        0.03,
        0.95,
        f"Brier score {measured['brier']:.3f}\n{measured['games']:,} games of self-play,\n"
        f"{measured['endings']:,} values",
        transform=top.transAxes,
        va="top",
        fontsize=8,
        color=INK,
    )
    shares = np.array([b["endings"] for b in bins]) / measured["endings"]
    bottom.bar(value, shares, width=0.03, color=COLOURS[0])
    _plain(bottom, "", "the network's win probability", "share")
    for axes, which in ((top, "y"), (bottom, "x"), (bottom, "y")):
        _percent(axes, which, 0)
    top.set_ylim(0, 1)
    top.set_xlim(0, 1)
    _save(figure, path)
