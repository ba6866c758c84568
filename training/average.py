"""Make a model of the mean of several checkpoints' weights.

    python -m training.average runs/default early.pt late.pt --out models/mine

Turn search picks out the noise that single networks have; the mean of networks along one run has
less of it (stochastic weight averaging, Izmailov et al., UAI 2018). The files are copies of a run's
checkpoint.pt or best.pt, taken while it ran.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import torch

from training.checkpoint import CheckpointError, load
from training.config import Config
from training.export import export_model
from training.network import ValueNetwork
from training.start import earlier_runs


def mean_of(files: list[Path]) -> dict[str, torch.Tensor]:
    """The mean of the running means in checkpoints (or of the networks in best.pt files).

    Raises:
        CheckpointError: a file is damaged, or its shapes differ from the first one's.
    """
    states: list[dict[str, torch.Tensor]] = []
    for file in files:
        state = load(file)
        weights = state.get("average", state.get("network"))
        if not isinstance(weights, dict):
            raise CheckpointError(f"{file}: holds no network")
        if states and any(states[0][name].shape != weights[name].shape for name in states[0]):
            raise CheckpointError(f"{file}: its shapes are not those of {files[0]}")
        states.append(weights)
    return {name: torch.stack([s[name] for s in states]).mean(dim=0) for name in states[0]}


def main(argv: list[str] | None = None) -> int:
    """Average the files and write the model."""
    parser = argparse.ArgumentParser(prog="python -m training.average", description=__doc__)
    parser.add_argument("run", type=Path, help="the run's folder, for its settings")
    parser.add_argument("files", type=Path, nargs="+", help="checkpoints")
    parser.add_argument("--out", type=Path, required=True, help="the model's folder")
    parser.add_argument("--notes", default="", help="a sentence for the card")
    options = parser.parse_args(argv)
    config = Config.load(options.run / "config.json")
    network = ValueNetwork(config.players, config.rules.boards, config.hidden, config.hidden2)
    network.load_state_dict(mean_of(options.files), strict=False)
    last: dict[str, Any] = load(options.run / "checkpoint.pt")
    trained = {
        "iteration": last["iteration"],
        **last["totals"],
        "earlier": earlier_runs(options.run),
        "notes": options.notes,
    }
    export_model(options.out, network.compiled(), config, trained)
    return 0


if __name__ == "__main__":
    sys.exit(main())
