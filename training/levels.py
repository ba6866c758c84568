"""Measure the ten levels of play against greedy: the table of docs/agents.md.

    python -m training.levels --games 2000 --slow-games 400

Writes docs/levels.json, from which `python -m tests.make_docs` makes the table. Every level plays
the same deals, so that their differences are those of play.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from pathlib import Path
from typing import Any

from skipbo_env.agents.agent import LevelAgent, SearchAgent
from skipbo_env.agents.levels import LEVELS
from skipbo_env.rules import Rules
from training.arena import evaluate

SEED = 20_261_130
OUT = Path(__file__).resolve().parents[1] / "docs" / "levels.json"


def measure(levels: list[int], games: int, slow_games: int, workers: int) -> dict[str, Any]:
    """Each level's win rate against greedy in two-player games.

    Args:
        levels: which.
        games: for each of them.
        slow_games: for levels that search.
        workers: threads.
    """
    found = []
    for level in levels:
        agent = LevelAgent(level)
        played_by = agent.player(Rules())
        number = slow_games if isinstance(played_by, SearchAgent) else games
        result = evaluate(f"level:{level}", "greedy", games=number, seed=SEED, workers=workers)
        model = played_by.model
        found.append(
            {
                "level": level,
                **LEVELS[level]._asdict(),
                "model": model.name if model else "planner",
                "sha256": model.sha256 if model else None,
                "win_rate": result["win_rate"],
                "interval": result["interval"],
                "games": result["games"],
                "seconds": round(result["seconds"], 1),
            }
        )
        low, high = result["interval"]
        print(f"level {level}: {result['win_rate']:.1%} ({low:.1%} to {high:.1%})", file=sys.stderr)
    command = f"python -m training.levels --games {games}"
    if levels == list(LEVELS):
        command += f" --slow-games {slow_games}"
    else:
        command += f" --levels {' '.join(map(str, levels))}"
    return {
        "command": command,
        "against": "greedy",
        "seed": SEED,
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "levels": found,
    }


def main(argv: list[str] | None = None) -> int:
    """Measure and write the file."""
    parser = argparse.ArgumentParser(prog="python -m training.levels", description=__doc__)
    parser.add_argument("--games", type=int, default=2000, help="games of each level")
    parser.add_argument("--slow-games", type=int, default=400, help="games of levels that search")
    parser.add_argument("--levels", type=int, nargs="*", default=list(LEVELS), help="which")
    parser.add_argument("--workers", type=int, default=2, help="threads")
    parser.add_argument("--out", type=Path, default=OUT, help="the file to write")
    options = parser.parse_args(argv)
    measured = measure(options.levels, options.games, options.slow_games, options.workers)
    options.out.write_text(json.dumps(measured, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
