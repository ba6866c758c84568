"""What a run starts from: another run or a model, at the same table or at another one.

Weights for more or fewer seats, or for teams: what a row means is known by its name and by whose
board it counts. The own board stays the own board; where there are more opponents' boards than
before, each has its share of the weight that the opponents had, so that a table whose boards are
alike is judged as it was. Such a network is a start: it does not know yet who sits where.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from skipbo_env.agents.models import ModelError, find_model, load_model
from skipbo_env.agents.network import Network, row_groups
from skipbo_env.rules import Rules
from training.checkpoint import CheckpointError, load
from training.config import Config, load_settings
from training.network import ValueNetwork

TOTALS = ("games", "decisions", "seconds", "cpu_seconds")


class Table(NamedTuple):
    """Who plays: the part of the rules that a network's input depends on."""

    players: int
    teams: int

    @property
    def boards(self) -> int:
        """Boards on the table."""
        return Rules(players=self.players, teams=self.teams).boards

    def role(self, group: str) -> tuple[str, str]:
        """Of a group of rows: what it holds, and whose it is ("own", "partner", "other")."""
        part = group.split(".")[0]
        if part.startswith("board_"):
            k = int(part.removeprefix("board_"))
            whose = "own" if k == 0 else "partner" if k == 1 and self.teams else "other"
            return group.split(".")[1], whose
        if part.startswith("seat_"):
            k = int(part.removeprefix("seat_"))
            return "seat", "partner" if self.teams and k % self.teams == 0 else "other"
        return group, "own"


def carry_over(network: Network, source: Table, target: Table) -> Network:
    """The network of one table as a start for another.

    A partner's rows come from the own ones where the source has no partner: both stocks must be
    emptied. Rows that the source knows nothing of are zero.

    Args:
        network: learned at the source.
        source: where it was learned.
        target: where it is to learn on.

    Returns:
        The same upper layers, and a first layer with the target's rows.
    """
    known: dict[tuple[str, str], list[np.ndarray]] = defaultdict(list)
    for name, first, values in row_groups(source.players, source.boards):
        known[source.role(name)].append(network.w1[first : first + values])
    wanted = [
        (target.role(name), values) for name, _, values in row_groups(target.players, target.boards)
    ]
    shares: dict[tuple[str, str], int] = defaultdict(int)
    for role, _ in wanted:
        shares[role] += 1
    rows = []
    for (what, whose), values in wanted:
        found = known.get((what, whose))
        if found is None and whose == "partner":
            found = known.get((what, "own"))
        if found is None:
            rows.append(np.zeros((values, network.b1.size), np.float32))
            continue
        rows.append(sum(found[1:], found[0].copy()) / np.float32(shares[what, whose]))
    return network._replace(w1=np.ascontiguousarray(np.concatenate(rows)))


class Start(NamedTuple):
    """What a run starts from.

    Attributes:
        path: its folder.
        table: where it was learned.
        network: the weights that play.
        state: a run's last checkpoint; None for a model.
        totals: games, decisions and seconds that it has behind it.
        earlier: the settings of the runs that led to it, the first one first.
    """

    path: Path
    table: Table
    network: Network
    state: dict[str, Any] | None
    totals: dict[str, float]
    earlier: list[dict[str, Any]]


def earlier_runs(folder: Path) -> list[dict[str, Any]]:
    """The settings of the runs that a folder's run started from, the first one first.

    Raises:
        CheckpointError: the file is damaged.
    """
    file = folder / "earlier.json"
    if not file.exists():
        return []
    try:
        runs = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{file}: is damaged ({str(error)[:80]})") from None
    if not isinstance(runs, list) or not all(isinstance(run, dict) for run in runs):
        raise CheckpointError(f"{file}: is damaged (needs a list of settings)")
    return runs


def runs_up_to(folder: Path, algo: str) -> list[dict[str, Any]]:
    """The same and the folder's own run: what a run that starts from it has behind it.

    Raises:
        CheckpointError: the folder holds no settings, or none that can be read, or another
            learner's.
    """
    file = folder / "config.json"
    try:
        settings = load_settings(file)
    except (OSError, ValueError) as error:
        raise CheckpointError(f"start_from: {file}: {error}") from None
    if settings.algo != algo:
        raise CheckpointError(
            f"start_from: {folder}: is a run of --algo {settings.algo}, not {algo}"
        )
    return [*earlier_runs(folder), settings.to_dict()]


def find_start(name: str) -> Start:
    """A run's folder, a model's folder, or the name of a model that ships.

    Raises:
        CheckpointError: it is none of them or cannot be read; the message says `start_from`.
    """
    folder = Path(name)
    try:
        if not folder.is_dir():
            found = find_model(name)
            if found is None:
                raise ValueError(f"{folder}: is no run, and no model")
            folder = found
        if (folder / "value.safetensors").exists():
            return _model(folder)
        return _run(folder)
    except (OSError, ValueError) as error:
        text = str(error).removeprefix("start_from: ")
        raise CheckpointError(f"start_from: {text}") from None


def _run(folder: Path) -> Start:
    earlier = runs_up_to(folder, Config.algo)
    config = Config.from_dict(earlier[-1])
    state = load(folder / "checkpoint.pt")
    table = Table(config.players, config.teams)
    mean = ValueNetwork(table.players, table.boards, config.hidden, config.hidden2)
    try:
        mean.load_state_dict(state["average"])
        totals = dict(state["totals"])
    except (KeyError, RuntimeError) as error:
        text = str(error).splitlines()[0][:80]
        raise CheckpointError(f"checkpoint.pt: does not fit config.json ({text})") from None
    return Start(folder, table, mean.compiled(), state, totals, earlier)


def _model(folder: Path) -> Start:
    model = load_model(folder)
    trained = model.config.get("trained", {})
    try:
        totals = {name: float(trained[name]) for name in TOTALS}
        config = Config.from_dict(model.config["training"])
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(f"config.json: does not tell its training ({error})") from None
    if model.value is None:
        raise ModelError("has no value network")
    earlier = [*trained.get("earlier", []), config.to_dict()]
    return Start(folder, Table(model.players, model.teams), model.value, None, totals, earlier)
