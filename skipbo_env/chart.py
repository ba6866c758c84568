"""Pictures: the course of a reviewed game (each side's probability to win before every decision,
also as a line of text), and the benchmark's rates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_BARS = "▁▂▃▄▅▆▇█"
_MARKED = {"mistake": ("o", "tab:orange"), "blunder": ("X", "tab:red")}


def side_wins(found: Mapping[str, Any]) -> list[list[float]]:
    """Each side's probabilities over a review's decisions, its result last where the game is over;
    an empty list for a side of which no decision tells.

    Where only the mover's probability is known (more than two sides), a side's last one stands.

    Args:
        found: what `skipbo_env.analysis.analyse` gives.
    """
    wins: list[list[float]] = []
    for side in found["sides"]:
        course: list[float] = []
        for decision in found["decisions"]:
            told = None if decision["win"] is None else decision["win"][side["side"]]
            if told is None and course:
                told = course[-1]
            if told is not None:
                course.append(told)
        if course and side["result"] is not None:
            course.append(side["result"])
        wins.append(course)
    return wins


def sparkline(shares: Sequence[float], width: int) -> str:
    """Numbers in [0, 1] as bars of text, each the mean of a stretch of them.

    Args:
        shares: at least one.
        width: characters at most.
    """
    columns = min(width, len(shares))
    bars = []
    for column in range(columns):
        low = column * len(shares) // columns
        stretch = shares[low : (column + 1) * len(shares) // columns]
        mean = sum(stretch) / len(stretch)
        bars.append(_BARS[min(int(mean * len(_BARS)), len(_BARS) - 1)])
    return "".join(bars)


def check_plot(path: Path) -> None:
    """Refuse a picture that could not be written, before the work for it is done.

    Raises:
        ValueError: no .png file, no such folder, or matplotlib is not installed.
    """
    if path.suffix.lower() != ".png":
        raise ValueError(f"--plot: must end in .png, got {str(path)!r:.80}")
    if not path.absolute().parent.is_dir():
        raise ValueError(f"--plot: there is no folder {path.parent}")
    if find_spec("matplotlib") is None:
        raise ValueError("--plot: needs matplotlib: pip install 'skipbo-env[plot]'")


def plot_wins(found: Mapping[str, Any], path: Path) -> None:
    """Draw each side's probability to win over the game, its mistakes and blunders marked.

    Args:
        found: what `skipbo_env.analysis.analyse` gives.
        path: the .png file to write.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4.2), layout="constrained")
    axes = figure.subplots()
    sides = {player["player"]: player["side"] for player in found["players"]}
    colors = [f"C{place}" for place in (0, 2, 4, 5, 6, 9)]
    for side, wins in enumerate(side_wins(found)):
        names = [
            player["agent"] or f"player {player['player']}"
            for player in found["players"]
            if player["side"] == side
        ]
        label = f"side {side}: {', '.join(names)}"
        axes.plot(range(len(wins)), wins, color=colors[side % len(colors)], lw=1.6, label=label)
    for verdict, (marker, color) in _MARKED.items():
        marked = [d for d in found["decisions"] if d["verdict"] == verdict and d["win"] is not None]
        heights = [d["win"][sides[d["player"]]] for d in marked]
        if marked:
            axes.scatter(
                [d["ply"] for d in marked],
                heights,
                marker=marker,
                color=color,
                s=42,
                zorder=3,
                label=f"{verdict} ({len(marked)})",
            )
    axes.set_ylim(-0.02, 1.02)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1.0], ["0%", "25%", "50%", "75%", "100%"])
    axes.set_xlabel("decisions")
    axes.set_ylabel("probability to win")
    axes.grid(visible=True, alpha=0.3)
    axes.margins(x=0.01)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="best", fontsize="small", framealpha=0.9)
    figure.savefig(path, dpi=120)


def plot_rates(answer: Mapping[str, Any], path: Path) -> None:
    """Draw the decisions per second of every loop, ours in one colour, with what each includes.

    Args:
        answer: what `skipbo_env.benchmark.measure` gives.
        path: the .png file to write.
    """
    from matplotlib.figure import Figure

    rates = {name: answer[name] for name in answer["includes"] if name not in answer["peers"]}
    ours = len(rates)
    rates |= dict(sorted(answer["peers"].items(), key=lambda item: -item[1]))
    figure = Figure(figsize=(11, 1.3 + 0.5 * len(rates)), layout="constrained")
    axes = figure.subplots()
    places = range(len(rates))
    colors = ["tab:blue" if place < ours else "tab:gray" for place in places]
    axes.barh(places, list(rates.values()), color=colors, height=0.36)
    axes.set_xscale("log")
    low = 10 ** math.floor(math.log10(min(rates.values())))
    axes.set_xlim(low, max(rates.values()) * 4)
    for place, (name, rate) in enumerate(rates.items()):
        times, includes = answer["ratios"].get(name), answer["includes"][name]
        shown = f" {rate:,.0f}" + ("" if times is None else f"  (x{times:,.1f})")
        axes.text(rate, place, shown, va="center", fontsize=9)
        axes.text(low * 1.06, place - 0.36, includes, va="center", fontsize=8, color="0.35")
    axes.set_yticks(places, list(rates))
    axes.set_ylim(len(rates) - 0.5, -0.75)
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel(
        "decisions per second of CPU time, one core, uniformly random legal play (logarithmic)"
    )
    axes.set_title(
        "Skip-Bo (blue) and others (grey; xN: vector_cards_random makes N times as many)",
        loc="left",
        fontsize=11,
    )
    figure.savefig(path, dpi=120)
