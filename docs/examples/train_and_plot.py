"""Train a small agent, draw its learning curves, and measure it on fresh deals.

    python train_and_plot.py                       a few minutes on two cores
    python train_and_plot.py FOLDER --iterations 3 --games 32 --pairs 10

Needs the extras `train` and `plot`. The folder must not hold a run yet; `skipbo train --run FOLDER
--resume` goes on with it.
"""

import argparse
from dataclasses import replace
from pathlib import Path

from training.arena import evaluate
from training.config import PRESETS
from training.plots import draw_runs, read_log
from training.run import train


def main() -> None:
    """Train, draw, measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=Path("runs/example"))
    parser.add_argument("--iterations", type=int, default=30, help="how often it plays and learns")
    parser.add_argument("--games", type=int, default=128, help="games in each iteration")
    parser.add_argument("--pairs", type=int, default=200, help="pairs of games in an evaluation")
    given = parser.parse_args()

    config = replace(
        PRESETS["smoke"],
        iterations=given.iterations,
        games=given.games,
        warm_start_games=10 * given.games,
        eval_every=max(1, given.iterations // 3),
        eval_pairs=given.pairs,
    )

    def show(numbers: dict) -> None:
        if numbers["kind"] == "evaluation":
            rate = numbers["win_rate_greedy"]
            print(f"iteration {numbers['iteration']}: wins {rate:.1%} against greedy")

    model = train(config, given.folder, progress=show)
    assert model is not None, "stopped before the first evaluation"
    picture = given.folder / "curves.png"
    log = read_log(given.folder)
    done = log[-1]["iteration"]
    if done < given.iterations:  # by Ctrl-C or a signal
        print(f"stopped after iteration {done} of {given.iterations}; what follows is of that")
    draw_runs(picture, [(given.folder.name, log)])
    print(f"learning curves: {picture}")

    # The run chose its best network by its own evaluation games: measure on deals of another seed.
    result = evaluate(str(model), "greedy", games=2 * given.pairs, seed=1_000_003)
    low, high = result["interval"]
    print(f"{model}: {result['win_rate']:.1%} against greedy ({low:.1%} to {high:.1%})")


if __name__ == "__main__":
    main()
