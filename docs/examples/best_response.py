"""How much can an opponent that learns against a frozen agent take from it? Train one, and measure.

    python best_response.py                        an hour of two cores
    python best_response.py FOLDER --iterations 3 --games 32 --pairs 10

The learner starts from the agent's own network and plays games against that very agent, which does
not learn. What it wins above one half in the end is what this much learning finds; a best response
might find more, so the figure is a lower bound of how exploitable the agent is. Needs the extra
`train`.
"""

import argparse
from dataclasses import replace
from pathlib import Path

from training.arena import evaluate
from training.config import PRESETS
from training.run import train

MODEL = "two-player"
PANEL = f"turn:{MODEL}?flips=0"  # as the learner plays in its own evaluations


def main() -> None:
    """Train against the frozen agent, measure on fresh deals."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=Path("runs/best-response"))
    parser.add_argument("--iterations", type=int, default=240, help="how often it plays and learns")
    parser.add_argument("--games", type=int, default=256, help="games in each iteration")
    parser.add_argument("--pairs", type=int, default=1000, help="pairs of games in the match")
    given = parser.parse_args()

    config = replace(
        PRESETS["default"],
        start_from=MODEL,
        rivals=(MODEL,),
        rival_share=1.0,
        opponents=(PANEL,),  # so the best response is kept, not what is best against greedy
        warm_start=0,
        iterations=given.iterations,
        games=given.games,
        eval_every=max(1, given.iterations // 4),
        eval_pairs=given.pairs // 5,
        lr=2e-4,
        lam=0.7,
        explore=0.003,
    )

    def show(numbers: dict) -> None:
        if numbers["kind"] == "train" and numbers["iteration"] % 10 == 1:
            rate = numbers["rival_rate"]
            print(f"iteration {numbers['iteration']}: {rate:.1%} of its games against {MODEL}")

    model = train(config, given.folder, progress=show)
    assert model is not None, "stopped before the first evaluation"
    result = evaluate(str(model), MODEL, games=2 * given.pairs, seed=1_000_003)
    low, high = result["interval"]
    print(f"{model}: {result['win_rate']:.1%} against {MODEL} ({low:.1%} to {high:.1%})")


if __name__ == "__main__":
    main()
