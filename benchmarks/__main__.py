"""`python -m benchmarks`: the vector environment beside the same work written by hand in C.

With --write the figures, and those of `skipbo benchmark`, go into docs/benchmark.json, from which
`python -m tests.make_docs` and `python -m tests.make_diagrams` make the manual's tables and chart;
--plot draws the other chart.
"""

from __future__ import annotations

import argparse
import json
import shlex
import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks.c_loop import build, compiler, rates, same_games

SUMMARY = "The vector environment beside the same work written by hand in C."


def main() -> int:
    """Build, compare, time, print. Exit code 0, also without a C compiler; then it says so."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=SUMMARY)
    parser.add_argument("--rounds", type=int, default=15, help="of each, taking turns (15)")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument("--write", type=Path, help="a file for these figures and all others")
    parser.add_argument("--plot", type=Path, help="with --write, a .png of what it measured")
    parser.add_argument("--seconds", type=float, default=4.0, help="for each of the others (4)")
    chosen = parser.parse_args()
    if compiler() is None:
        print("skipped: no C compiler (set CC, or install gcc or clang)", file=sys.stderr)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        library = build(Path(folder))
        ends = same_games(library, 256, 500)
        ours, by_hand = rates(library, rounds=chosen.rounds)
    answer = {
        "vector_cards_random": statistics.median(ours),
        "slowest_round": min(ours),
        "c_loop": statistics.median(by_hand),
        "ratio": statistics.median(a / b for a, b in zip(ours, by_hand, strict=True)),
    }
    if chosen.write is not None:
        from skipbo_env.benchmark import measure
        from skipbo_env.chart import plot_rates
        from training.machine import cpu

        told = {
            "command": f"python -m benchmarks {shlex.join(sys.argv[1:])}",
            "machine": cpu(),
            "c": answer,
            "skipbo": (measured := measure(seconds=chosen.seconds)),
        }
        if chosen.plot is not None:
            plot_rates(measured, chosen.plot)
        chosen.write.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    if chosen.json:
        print(json.dumps(answer))
        return 0
    print(f"the same numbers in {256 * 500:,} decisions and {sum(ends.values())} ends of games")
    print(f"SkipBoVectorEnv  {answer['vector_cards_random']:12,.0f} decisions per CPU-second")
    print(f"slowest round    {answer['slowest_round']:12,.0f}")
    print(f"skipbo.c         {answer['c_loop']:12,.0f}")
    print(f"ratio            {answer['ratio']:12.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
