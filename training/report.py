"""Measure a model and write what was measured into its folder: results.json, calibration.png and
the results of its card.

    python -m training.report models/two-player --games 20000 --previous old/two-player

Everything comes from seeds, so anyone can repeat a line; `tests/training/test_models.py` repeats
the first deals of each.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skipbo_env.agents import TurnAgent, load_model
from skipbo_env.agents.flips import (
    BEHIND_NODES,
    COMPARED,
    LATER,
    MARGIN,
    NOTED_BEHIND,
    new_flips,
    search_flips,
)
from skipbo_env.agents.turn import MAX_NODES
from skipbo_env.engine import layout
from skipbo_env.game import Game
from skipbo_env.rules import Rules
from training.arena import evaluate, unit_seeds
from training.files import write_json
from training.machine import compiled_for
from training.stats import Z95

SEED = 20_261_130  # of every published match; training and its evaluations use others
CALIBRATION_SEED = 31_102_026  # of the self-play that no network has learned from
GAMES = 20_000  # of the longest line, unless told otherwise
FIRST_UNITS = 25  # deals of each line whose wins are told, for tests to repeat
BINS = 20
FLIPS = [MARGIN, COMPARED, BEHIND_NODES, NOTED_BEHIND, LATER]  # other figures, other play
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
    found += [("greedy", replace(rules, **house), 0.1) for house in house_rules(rules)]
    return found


def house_rules(rules: Rules) -> list[dict[str, Any]]:
    """House rules that a model may meet though it has not learned by them, one at a time."""
    found: list[dict[str, Any]] = [
        {"must_play_stock": True},
        {"wild_discard": False},
        {"ordered_discards": True},
        {"draw_per_turn": 3},
        {"hand_size": 7},
        {"wilds": 8},
    ]
    return found + [{"team_discard": "team"}] * bool(rules.teams)


def changes(rules: Rules, table: Rules) -> dict[str, Any]:
    """The house rules of a line: what it does not share with the model's table, but for stocks."""
    known = rules.to_dict()
    return {
        name: value
        for name, value in table.to_dict().items()
        if name not in ("stock_size", "players") and value != known[name]
    }


def think_times(agent: TurnAgent, rules: Rules, games: int = 60) -> dict[str, float]:
    """Milliseconds of a turn search over the positions of its own games: mean, 99th percentile,
    longest.
    """
    times = []
    net = agent.network(rules)
    streams = np.zeros(1, np.uint64)
    for seed in range(games):
        game = Game(rules, seed=seed)
        work = new_flips(game.state, net)
        while not game.over:
            start = time.thread_time_ns()
            _, length = search_flips(game.state, net, work, MAX_NODES, agent.flips, streams, 0, 0.0)
            times.append((time.thread_time_ns() - start) / 1e6)
            for action in work.outer.path[:length].tolist():
                game.apply(action)
    return {
        "searches": len(times),
        "mean_ms": float(np.mean(times)),
        "p99_ms": float(np.percentile(times, 99)),
        "max_ms": float(np.max(times)),
    }


def self_play(
    agent: TurnAgent, rules: Rules, seeds: list[int]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """What the network says in games against itself, beside who wins them.

    Args:
        agent: a model, played by turn search.
        rules: what is played.
        seeds: a game each.

    Returns:
        (said, won, game): for each ending that was played, but for plays that win, its value, what
        the mover's side got in the end (1 for a win, 1 / sides of a game that nobody won) and which
        game it is of.
    """
    values: list[float] = []
    movers: list[int] = []
    played: list[int] = []
    results = np.zeros((len(seeds), rules.sides))
    streams = np.zeros(1, np.uint64)
    net = agent.network(rules)
    work = new_flips(layout.new_state(rules), net)
    for g, seed in enumerate(seeds):
        game = Game(rules, seed=seed)
        while not game.over:
            value, length = search_flips(
                game.state, net, work, MAX_NODES, agent.flips, streams, 0, 0.0
            )
            mover = rules.side_of(game.player)
            for action in work.outer.path[:length].tolist():
                game.apply(action)
            if game.state[layout.REASON] != layout.STOCK_EMPTY:  # a win is no estimate
                values.append(float(value))
                movers.append(mover)
                played.append(g)
        winner = int(game.state[layout.WINNER])
        results[g] = 1 / rules.sides if winner < 0 else np.arange(rules.sides) == winner
    which = np.array(played)
    return np.array(values), results[which, movers], which


def calibration(agent: TurnAgent, rules: Rules, games: int) -> dict[str, Any]:
    """What the network says in games against itself, beside who wins them.

    Args:
        agent: the model, played by turn search.
        rules: what is played.
        games: how many; no network has learned from them.

    Returns:
        {"games", "endings", "brier", "gap", "bins": [{"value", "won", "interval", "endings"}]}: by
        twentieths of the value its mean and the share of games that the mover's side won (1 / sides
        of one that nobody won), with a 95% interval that takes the values of a game as dependent;
        the mean squared difference of value and result; the mean distance of "value" and "won".
    """
    seeds = unit_seeds(CALIBRATION_SEED, range(games)).tolist()
    said, won, which = self_play(agent, rules, seeds)
    place = np.minimum((said * BINS).astype(int), BINS - 1)
    bins: list[dict[str, Any]] = []
    for b in range(BINS):
        inside = place == b
        n = int(inside.sum())
        if n < 50:
            continue
        rate = float(won[inside].mean())
        # The squared sum of a game's deviations, not the sum of their squares: they go together.
        apart = np.bincount(which[inside], won[inside] - rate, minlength=games)
        half = Z95 * float(np.sqrt((apart**2).sum())) / n
        bins.append(
            {
                "value": float(said[inside].mean()),
                "won": rate,
                "interval": [max(0.0, rate - half), min(1.0, rate + half)],
                "endings": n,
            }
        )
    told = sum(b["endings"] for b in bins)
    return {
        "games": games,
        "endings": len(said),
        "seed": CALIBRATION_SEED,
        "brier": float(np.mean((said - won) ** 2)),
        "gap": float(sum(b["endings"] * abs(b["value"] - b["won"]) for b in bins) / told),
        "bins": bins,
    }


def measure(
    folder: Path,
    games: int,
    workers: int,
    *,
    previous: str | None = None,
    kept: dict[str, Any] | None = None,
    done: list[dict[str, Any]] | None = None,
    save: Callable[[list[dict[str, Any]]], None] = lambda told: None,
) -> dict[str, Any]:
    """All lines of the table, calibration, and how long the agent thinks.

    Args:
        folder: the model's.
        games: of the longest line.
        workers: threads.
        previous: the release before, for a match against it in half as many games: its folder, or
            an agent where only the way of playing has changed.
        kept: an earlier measurement: what was measured on the same weights, with the same seed and
            number of games, stands.
        done: lines that a measurement of these weights which was ended had come to.
        save: called after each line with all there are.
    """
    lines_done = list(done or [])
    model = load_model(folder)
    size = model.config.get("stock_size")
    rules = Rules(players=model.players, teams=model.teams, stock_size=size)
    kept = kept if kept and kept.get("seed") == SEED else {}
    old = kept if (kept.get("sha256"), kept.get("flips")) == (model.sha256, FLIPS) else {}
    old_policy = kept.get("policy") or {}
    if old_policy.get("sha256") != model.policy_sha256:
        old_policy = {}

    def line(against: str, name: str, table: Rules, count: int, method: str = "") -> dict[str, Any]:
        options: dict[str, Any] = {"rules": table, "seed": SEED, "workers": workers}
        result: dict[str, Any] | None = None
        house = changes(rules, table)
        mine = f"{method}{folder.name}"
        known = [*old.get("results", []), old.get("previous") or {}]
        if method:
            known = old_policy.get("results", [])
        wanted = (name, table.stocks, house, -(-count // table.sides) * table.sides)
        for there in [*known, *(one for one in lines_done if one["agent"] == mine)]:
            told = (there.get("against"), there.get("stock_size"), there.get("house_rules", {}))
            if (*told, there.get("games")) == wanted:
                result = dict(there)
        if result is None:
            result = evaluate(f"{method}{folder}", against, games=count, **options)
            result.pop("rules")
        result.update(
            agent=mine,
            against=name,
            stock_size=table.stocks,
            house_rules=house,
        )
        first = evaluate(f"{method}{folder}", against, games=FIRST_UNITS * table.sides, **options)
        wins = round(first["win_rate"] * first["games"])
        result["first"] = {"units": FIRST_UNITS, "wins": wins}
        if result not in lines_done:
            lines_done.append(result)
            save(lines_done)
        low, high = result["interval"]
        print(
            f"{result['agent']} against {name}, {table_name(result)}: {result['win_rate']:.2%} "
            f"({low:.2%} to {high:.2%})",
            file=sys.stderr,
        )
        return result

    policy = None
    if model.policy is not None:
        panel = [
            (against, table, share) for against, table, share in lines(rules) if table == rules
        ]
        policy = {
            "sha256": model.policy_sha256,
            "results": [
                line(against, against, table, int(games * share), "policy:")
                for against, table, share in panel
            ],
        }
    measured: dict[str, Any] = {
        "model": folder.name,
        "sha256": model.sha256,
        "seed": SEED,
        "flips": FLIPS,
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "compiled_for": compiled_for(),
        "results": [],
        "previous": None,
        "calibration": None,
        "thinking": None,
    }
    if model.value is not None:
        measured["results"] = [
            line(opponent, opponent, table, int(games * share))
            for opponent, table, share in lines(rules)
        ]
        if previous is not None:
            name = previous
            if Path(previous).is_dir():
                before = load_model(previous)
                name = f"{before.name} {before.sha256[:8]}"
            measured["previous"] = line(previous, name, rules, games // 2)
        agent = TurnAgent(model)
        told, thinking = old.get("calibration") or {}, old.get("thinking")
        count = max(games // 20, min(games, 1000))
        if (told.get("games"), told.get("seed")) != (count, CALIBRATION_SEED):
            told = calibration(agent, rules, count)
        measured["calibration"] = told
        measured["thinking"] = thinking or think_times(agent, rules)
    if policy:
        measured["policy"] = policy
    return measured


def table_name(line: dict[str, Any]) -> str:
    """The rules of a line in words."""
    house = [f"{name} {value}" for name, value in line.get("house_rules", {}).items()]
    return ", ".join([f"{line['stock_size']} cards", *house])


def _rows(told: list[tuple[str, dict[str, Any]]]) -> str:
    rows = "\n".join(
        f"| {name} | {table_name(r)} | {r['win_rate']:.2%} "
        f"| {r['interval'][0]:.2%} to {r['interval'][1]:.2%} "
        f"| {r['stalemate_rate'] + r['truncated_rate']:.2%} | {r['games']:,} |"
        for name, r in told
    )
    return f"""| against | table | win rate | 95% interval | no winner | games |
|---|---|---|---|---|---|
{rows}"""


def table_of(measured: dict[str, Any]) -> str:
    """The card's results: by turn search, where it has a value network, and by its policy."""
    policy = measured.get("policy") or {"results": []}
    most = max(line["games"] for line in [*measured["results"], *policy["results"]])
    games = "" if most == GAMES else f" --games {most}"
    parts = [
        f"""Every deal is played from every side, and is one observation of the intervals
([evaluation](../../docs/training.md#evaluation)); seed {measured["seed"]}, by
`python -m training.report models/{measured["model"]}{games}`."""
    ]
    if measured["results"]:
        parts.append(_by_turn_search(measured))
    if policy["results"]:
        rows = _rows([(line["against"], line) for line in policy["results"]])
        parts.append(f"By its policy, one forward pass a decision:\n\n{rows}")
    text = "\n\n".join(parts)
    return f"{BEGIN}\n{text}\n{END}"


def _by_turn_search(measured: dict[str, Any]) -> str:
    previous = measured["previous"]
    told = [(r["against"], r) for r in measured["results"]]
    if previous:
        told.append((f"the release before ({previous['against']})", previous))
    thinking, said = measured["thinking"], measured["calibration"]
    return f"""By turn search:

{_rows(told)}

A turn search took {thinking["mean_ms"]:.2f} ms of CPU in the mean, {thinking["p99_ms"]:.1f} ms at
the 99th percentile and {thinking["max_ms"]:.0f} ms at most, over {thinking["searches"]:,} searches
of its own games ({measured["machine"]}).

![What the network says, and how often that side wins](calibration.png)

In {said["games"]:,} games against itself that it has not learned from (seed {said["seed"]},
{said["endings"]:,} values) the Brier score is {said["brier"]:.4f}, and a value is
{said["gap"]:.2%} from the share of games won in the mean over {len(said["bins"])} bins."""


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
    from training.plots import check_target, draw_calibration

    parser = argparse.ArgumentParser(prog="python -m training.report", description=__doc__)
    parser.add_argument("folder", type=Path, help="the model's folder")
    parser.add_argument("--games", type=int, default=GAMES, help="games of the longest line")
    parser.add_argument("--workers", type=int, default=2, help="threads")
    parser.add_argument("--previous", help="the release before: its folder, or an agent")
    parser.add_argument(
        "--keep", action="store_true", help="keep what results.json has of these weights"
    )
    options = parser.parse_args(argv)
    results, picture = options.folder / "results.json", options.folder / "calibration.png"
    check_target(picture)
    kept = json.loads(results.read_text(encoding="utf-8")) if options.keep else None
    model = load_model(options.folder)
    of = {
        "seed": SEED,
        "sha256": model.sha256,
        "policy_sha256": model.policy_sha256,
        "flips": FLIPS,
    }
    partial = options.folder / "results.partial.json"
    done: list[dict[str, Any]] = []
    if partial.exists():  # hours may have gone into a measurement that was ended
        told = json.loads(partial.read_text(encoding="utf-8"))
        done = told["lines"] if told["of"] == of else []
    measured = measure(
        options.folder,
        options.games,
        options.workers,
        previous=options.previous,
        kept=kept,
        done=done,
        save=lambda told: write_json(partial, {"of": of, "lines": told}),
    )
    write_json(results, measured)
    partial.unlink(missing_ok=True)
    if measured["calibration"]:
        draw_calibration(picture, measured["calibration"])
    write_card(options.folder, measured)
    return 0


if __name__ == "__main__":
    sys.exit(main())
