"""Model folders: config.json, value.safetensors and/or policy.safetensors, and a card. They are
found by name, and checked when they are read.

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
from skipbo_env.agents.policy import POLICY_VERSION, Policy, policy_of
from skipbo_env.agents.turn import fill_ending, new_work
from skipbo_env.game import Game
from skipbo_env.rules import Rules

# The weights' files, and the fields of config.json that tell of them.
FILES = {"value.safetensors": "features", "policy.safetensors": "policy"}
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
        value: its value network, which turn search and search play by; None where it has none.
        sha256: of the value network's file; "" without one.
        policy: its policy network; None where it has none.
        policy_sha256: of the policy's file; "" without one.
    """

    name: str
    path: Path
    config: dict[str, Any]
    players: int
    teams: int
    boards: int
    value: Network | None
    sha256: str
    policy: Policy | None = None
    policy_sha256: str = ""

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


def ending_slots(game: Game, action: int) -> NDArray[np.int32] | None:
    """What a value network sees of an ending: the weight row that each slot holds (see "Model
    folder" in docs/formats.md). The network's own inputs for other runtimes; the search reaches
    the same ones in small steps.

    Args:
        game: the position; its seat to move judges.
        action: a legal action.

    Returns:
        int32 (slots,); None where the turn goes on after the action and nothing hidden is seen.

    Raises:
        IllegalAction: not legal.
    """
    action = game.check_action(action)
    rules = game.rules
    work = new_work(game.state, empty_network(rules.players, rules.boards, 16, 32), 1)
    return work.ending.copy() if fill_ending(game.state, action, work) >= 0 else None


def load_model(path: str | os.PathLike[str]) -> Model:
    """Read and check a model folder.

    Raises:
        ModelError: a file is missing, cut off, not what it should be, or of another feature
            version.
    """
    folder = Path(path)
    config_file = folder / "config.json"
    try:
        config = json.loads(_read(config_file, folder).decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{config_file}: is not JSON ({str(error)[:80]})") from None
    if not isinstance(config, dict) or config.get("format") != "skipbo-model":
        raise ModelError(f"{config_file}: format: is no Skip-Bo model")
    for name, field in FILES.items():
        if field not in config and (folder / name).exists():
            raise ModelError(f"{config_file}: {field}: is missing, but there is a {name}")
    if not any(field in config for field in FILES.values()):
        raise ModelError(f"{config_file}: features, policy: the model has no network")
    try:
        rules = Rules.from_dict({"players": config["players"], "teams": config["teams"]})
    except KeyError as error:
        raise ModelError(f"{config_file}: {error.args[0]}: is missing") from None
    except ValueError as error:
        raise ModelError(f"{config_file}: {error}") from None
    value, policy, digest, policy_digest = None, None, "", ""
    if "features" in config:
        _check_version(config_file, "features", config["features"], VERSION)
        file = folder / "value.safetensors"
        tensors, digest = _weights(file, folder)
        value = _network(file, network_of, tensors, rules.players, rules.boards)
    if "policy" in config:
        told = config["policy"]
        version = told.get("features") if isinstance(told, dict) else None
        _check_version(config_file, "policy.features", version, POLICY_VERSION)
        file = folder / "policy.safetensors"
        tensors, policy_digest = _weights(file, folder)
        policy = _network(file, policy_of, tensors, rules)
    return Model(
        folder.resolve().name,
        folder,
        config,
        rules.players,
        rules.teams,
        rules.boards,
        value,
        digest,
        policy,
        policy_digest,
    )


def _read(file: Path, folder: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        run = folder / "model" / "config.json"
        hint = f"; {folder} is a run, its model is {run.parent}" if run.is_file() else ""
        text = f"{error.filename or folder}: cannot be read ({error.strerror}){hint}"
        raise ModelError(text) from None


def _check_version(file: Path, field: str, version: Any, known: int) -> None:
    if version != known:
        raise ModelError(
            f"{file}: {field}: version {version!r:.20} cannot be played by this program "
            f"(version {known})"
        )


def _weights(file: Path, folder: Path) -> tuple[Mapping[str, NDArray[Any]], str]:
    """The arrays of a safetensors file, and the file's hash."""
    data = _read(file, folder)
    try:
        tensors = load_tensors(data)
    except SafetensorError as error:
        raise ModelError(f"{file}: is damaged or cut off ({str(error)[:200]})") from None
    except (ValueError, KeyError) as error:
        raise ModelError(f"{file}: {str(error)[:200]}") from None
    return tensors, hashlib.sha256(data).hexdigest()


def _network(file: Path, make: Any, *args: Any) -> Any:
    try:
        return make(*args)
    except ValueError as error:
        raise ModelError(f"{file}: {str(error)[:200]}") from None


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
