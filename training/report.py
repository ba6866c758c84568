"""Measure a model and write what was measured into its folder: results.json and the table of its
card.

    python -m training.report models/two-player --games 20000

Everything comes from the seed, so anyone can repeat a line; `tests/training/test_models.py` repeats
a part of each.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from skipbo_env.agents import TurnAgent, load_model, make_agent
from skipbo_env.agents.turn import MAX_NODES, new_work, search
from skipbo_env.game import Game
from skipbo_env.rules import Rules
from training.arena import evaluate

SEED = 20_261_130  # of every published match; training and its evaluations use others
BEGIN, END = "<!-- results -->", "<!-- /results -->"


def lines(rules: Rules) -> list[tuple[str, Rules, float]]:
    """What is measured: opponent, rules, and the share of the games that it gets."""
    found = [(opponent, rules, 0.2) for opponent in ("play-first", "simple")]
    found.append(("greedy", rules, 1.0))
    if rules.players == 2:
        found += [
            ("greedy", Rules(players=2, stock_size=size), 0.25)
            for size in (10, 15, 20)
            if size != rules.stocks
        ]
    return found


def think_times(agent: TurnAgent, rules: Rules, games: int = 60) -> dict[str, float]:
    """Milliseconds of a turn search over the positions of its own games: mean, 99th percentile,
    longest.
    """
    times = []
    streams = np.zeros(1, np.uint64)
    for seed in range(games):
        game = Game(rules, seed=seed)
        work = new_work(game.state, agent.network(rules))
        while not game.over:
            start = time.thread_time_ns()
            _, length = search(game.state, agent.network(rules), work, MAX_NODES, streams, 0, 0.0)
            times.append((time.thread_time_ns() - start) / 1e6)
            for action in work.path[:length].tolist():
                game.apply(action)
    return {
        "searches": len(times),
        "mean_ms": float(np.mean(times)),
        "p99_ms": float(np.percentile(times, 99)),
        "max_ms": float(np.max(times)),
    }


def measure(folder: Path, games: int, workers: int) -> dict[str, Any]:
    """All lines of the table, and how long the agent thinks."""
    model = load_model(folder)
    size = model.config.get("stock_size")
    rules = Rules(players=model.players, teams=model.teams, stock_size=size)
    results = []
    for opponent, table, share in lines(rules):
        result = evaluate(
            str(folder), opponent, games=int(games * share), rules=table, seed=SEED, workers=workers
        )
        result.pop("rules")
        result["agent"] = folder.name
        result["stock_size"] = table.stocks
        results.append(result)
        print(
            f"{opponent}, {table.stocks} cards: {result['win_rate']:.2%} "
            f"({result['interval'][0]:.2%} to {result['interval'][1]:.2%})",
            file=sys.stderr,
        )
    agent = make_agent(str(folder))
    return {
        "model": folder.name,
        "sha256": model.sha256,
        "seed": SEED,
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "results": results,
        "thinking": think_times(agent, rules),
    }


def table_of(measured: dict[str, Any]) -> str:
    """The card's table."""
    rows = "\n".join(
        f"| {r['against']} | {r['stock_size']} | {r['win_rate']:.2%} "
        f"| {r['interval'][0]:.2%} to {r['interval'][1]:.2%} "
        f"| {r['stalemate_rate'] + r['truncated_rate']:.2%} | {r['games']:,} |"
        for r in measured["results"]
    )
    thinking = measured["thinking"]
    return f"""{BEGIN}
Paired games (one deal, seats swapped; the pair is the unit), seed {measured["seed"]}, turn search,
by `python -m training.report models/{measured["model"]}`:

| against | stock cards | win rate | 95% interval | no winner | games |
|---|---|---|---|---|---|
{rows}

A turn search took {thinking["mean_ms"]:.2f} ms of CPU in the mean, {thinking["p99_ms"]:.1f} ms at
the 99th percentile and {thinking["max_ms"]:.0f} ms at most, over {thinking["searches"]:,} searches
of its own games ({measured["machine"]}).
{END}"""


def write_card(folder: Path, measured: dict[str, Any]) -> None:
    """Put the table between its markers in the card, or at its end."""
    card = folder / "README.md"
    text = card.read_text(encoding="utf-8")
    table = table_of(measured)
    if BEGIN in text:
        text = text[: text.index(BEGIN)] + table + text[text.index(END) + len(END) :]
    else:
        text = text.rstrip() + "\n\n## Results\n\n" + table + "\n"
    card.write_text(text, encoding="utf-8")


def main(argv: list[str] | None = None) -> int:
    """Measure the model of a folder and write its results."""
    parser = argparse.ArgumentParser(prog="python -m training.report", description=__doc__)
    parser.add_argument("folder", type=Path, help="the model's folder")
    parser.add_argument("--games", type=int, default=20_000, help="games of the longest line")
    parser.add_argument("--workers", type=int, default=2, help="threads")
    options = parser.parse_args(argv)
    measured = measure(options.folder, options.games, options.workers)
    (options.folder / "results.json").write_text(
        json.dumps(measured, indent=2) + "\n", encoding="utf-8"
    )
    write_card(options.folder, measured)
    return 0


if __name__ == "__main__":
    sys.exit(main())
