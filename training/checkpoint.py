"""A run's folder on disk: what is in it, written so that a crash at any moment leaves something to
resume from.

config.json        the resolved settings
earlier.json       those of the runs that it started from, if any
checkpoint.pt      network, optimiser and counters of the last checkpoint; with PPO the games too
best.pt            the network that did best in evaluation, with its result
log.jsonl          one line an iteration and evaluation
tensorboard/       the same for TensorBoard
model/             the model folder that the run makes of its best network
"""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import torch

from training.config import Settings, load_settings
from training.files import CheckpointError as CheckpointError
from training.files import write_atomically
from training.files import write_json as write_json

# What parts of a checkpoint raise that are of the wrong kind.
UNFIT = (AttributeError, IndexError, KeyError, RuntimeError, TypeError, ValueError)


def whole(number: Any) -> int:
    """A count of a checkpoint.

    Raises:
        ValueError: it is none.
    """
    if type(number) is not int or number < 0:
        raise ValueError(f"{number!r:.40} is no count")
    return number


def save(path: Path, state: dict[str, Any]) -> None:
    """Save tensors and numbers atomically."""
    whole = io.BytesIO()  # a full disk is no OSError of torch's
    torch.save(state, whole)
    write_atomically(path, lambda file: file.write(whole.getbuffer()))


def load(path: Path) -> dict[str, Any]:
    """Load what `save` wrote; tensors and plain numbers only.

    Raises:
        CheckpointError: missing, cut off, or no checkpoint.
    """
    try:
        with zipfile.ZipFile(path) as parts:  # whose sums torch does not compare
            if (broken := parts.testzip()) is not None:
                raise ValueError(f"{broken} has changed")
        state = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise CheckpointError(f"{path}: there is no checkpoint to resume from") from None
    except Exception as error:  # torch raises half a dozen kinds for a damaged file
        raise CheckpointError(f"{path}: is damaged ({str(error)[:80]})") from None
    if not isinstance(state, dict):
        raise CheckpointError(f"{path}: holds no checkpoint")
    return state


def load_best(path: Path) -> dict[str, Any]:
    """What a run keeps of its best network: "score", "network" and "trained".

    Raises:
        CheckpointError: missing, damaged, or something else.
    """
    best = load(path)
    if not isinstance(best.get("score"), float) or not {"network", "trained"} <= best.keys():
        raise CheckpointError(f"{path}: is damaged (holds no best network)")
    return best


def settings_of(folder: Path, config: Settings, *, resume: bool) -> Settings:
    """The settings to run with: the given ones, or those of the run to resume. Writes nothing.

    Raises:
        CheckpointError: the folder holds a run and resume was not asked for, or the reverse.
    """
    file = folder / "config.json"
    if resume:
        if not file.is_file():
            raise CheckpointError(f"{folder}: holds no run to resume")
        try:
            return load_settings(file)
        except ValueError as error:
            raise CheckpointError(f"{file}: {error}") from None
    if file.exists():
        raise CheckpointError(f"{folder}: holds a run already; use --resume or another folder")
    return config


def cut_log(file: Path, iteration: int) -> None:
    """Drop the lines of a log that a run from this iteration on writes again, and broken ones."""
    if not file.exists():
        return
    kept = []
    for line in file.read_text(encoding="utf-8").splitlines():
        try:
            if json.loads(line)["iteration"] <= iteration:
                kept.append(line + "\n")
        except (ValueError, KeyError, TypeError):
            continue
    write_atomically(file, lambda out: out.write("".join(kept).encode()))
