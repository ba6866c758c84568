"""Model folders: config.json, value.safetensors and a card, found by name and checked when they are
read.

A folder is looked for in the directory of the setting SKIPBO_MODELS, then among the models that
ship with the package.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors

from skipbo_env.agents.network import VERSION, Network, network_of, num_rows
from skipbo_env.rules import Rules

NAME = re.compile(r"^[a-z0-9][a-z0-9._-]{0,63}$")


class ModelError(ValueError):
    """A model that is not there, or whose files are damaged or of another version; the message
    names the file and field.
    """


class Model(NamedTuple):
    """A model that is ready to play.

    Attributes:
        name: the folder's name.
        path: the folder.
        config: what config.json says.
        players, teams, boards: the tables that it plays.
        value: its value network.
        sha256: of the weights' file.
    """

    name: str
    path: Path
    config: dict[str, Any]
    players: int
    teams: int
    boards: int
    value: Network
    sha256: str

    def plays(self, rules: Rules) -> bool:
        """Whether the model is made for these numbers of players and teams."""
        return (self.players, self.teams) == (rules.players, rules.teams)


def model_directories(models_dir: str | os.PathLike[str] | None = None) -> list[Path]:
    """Where models are looked for: the given directory (or SKIPBO_MODELS), then those that ship."""
    setting = models_dir or os.environ.get("SKIPBO_MODELS")
    found = [Path(setting)] if setting else []
    packaged = Path(str(resources.files("skipbo_env"))) / "models"
    checkout = Path(__file__).resolve().parents[2] / "models"
    return found + [folder for folder in (packaged, checkout) if folder.is_dir()][:1]


def list_models(models_dir: str | os.PathLike[str] | None = None) -> list[str]:
    """Names of the models that can be found, sorted; a name in two places counts once."""
    names: set[str] = set()
    for directory in model_directories(models_dir):
        if directory.is_dir():
            names.update(path.parent.name for path in directory.glob("*/config.json"))
    return sorted(name for name in names if NAME.match(name))


def find_model(name: str, models_dir: str | os.PathLike[str] | None = None) -> Path | None:
    """The folder of a model's name, or None."""
    if not NAME.match(name):
        return None
    for directory in model_directories(models_dir):
        if (directory / name / "config.json").is_file():
            return directory / name
    return None


def load_model(path: str | os.PathLike[str]) -> Model:
    """Read and check a model folder.

    Raises:
        ModelError: a file is missing, cut off, not what it should be, or of another feature
            version.
    """
    folder = Path(path)
    config_file = folder / "config.json"
    weights_file = folder / "value.safetensors"
    try:
        config = json.loads(config_file.read_text(encoding="utf-8"))
        weights = weights_file.read_bytes()
    except OSError as error:
        run = folder / "model" / "config.json"
        hint = f"; {folder} is a run, its model is {run.parent}" if run.is_file() else ""
        text = f"{error.filename or folder}: cannot be read ({error.strerror}){hint}"
        raise ModelError(text) from None
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{config_file}: is not JSON ({str(error)[:80]})") from None
    if not isinstance(config, dict) or config.get("format") != "skipbo-model":
        raise ModelError(f"{config_file}: format: is no Skip-Bo model")
    if config.get("features") != VERSION:
        raise ModelError(
            f"{config_file}: features: version {config.get('features')!r:.20} cannot be played by "
            f"this program (version {VERSION})"
        )
    try:
        rules = Rules.from_dict({"players": config["players"], "teams": config["teams"]})
    except KeyError as error:
        raise ModelError(f"{config_file}: {error.args[0]}: is missing") from None
    except ValueError as error:
        raise ModelError(f"{config_file}: {error}") from None
    try:
        tensors: Mapping[str, NDArray[Any]] = load_tensors(weights)
        value = network_of(tensors, rules.players, rules.boards)
    except SafetensorError as error:
        raise ModelError(f"{weights_file}: is damaged or cut off ({str(error)[:200]})") from None
    except (ValueError, KeyError) as error:
        raise ModelError(f"{weights_file}: {str(error)[:200]}") from None
    digest = hashlib.sha256(weights).hexdigest()
    name = folder.resolve().name
    return Model(name, folder, config, rules.players, rules.teams, rules.boards, value, digest)


def empty_network(
    players: int = 2, boards: int = 2, hidden: int = 128, hidden2: int = 32
) -> Network:
    """A network of zeros, for kernels that take one and do not use it."""

    def zeros(*shape: int) -> NDArray[np.float32]:
        return np.zeros(shape, np.float32)

    return Network(
        zeros(num_rows(players, boards), hidden),
        zeros(hidden),
        zeros(hidden, hidden2),
        zeros(hidden2),
        zeros(hidden2),
        zeros(1),
    )
