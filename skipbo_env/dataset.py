"""Game records as arrays for offline learning: what each player saw, might do, did and got for it.

The arrays are what stepping the environments through the same games gives; docs/formats.md has
their shapes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skipbo_env import env_parts
from skipbo_env.engine import layout, moves, observe
from skipbo_env.engine.rewards import act_checked
from skipbo_env.record import RecordError, Replay, apply_with, check, read_records
from skipbo_env.rules import Rules

FORMAT, VERSION = "skipbo-dataset", 1


class DatasetError(ValueError):
    """Records that do not make one dataset; the message names file and line."""


def export(
    files: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    observation: str = "cards",
    reward: str = "win",
    reward_weight: float = 1.0,
) -> dict[str, int]:
    """Write the choices of all records into one .npz file (see docs/formats.md).

    The file is there whole or not at all.

    Args:
        files: .jsonl files of finished games of the same rules.
        out: the .npz file.
        observation: "cards" (int8) or "features" (float32).
        reward: "win", "shaped" or "score", as the environments pay.
        reward_weight: what a whole stock pays under "shaped".

    Returns:
        {"games", "choices"}: how many.

    Raises:
        DatasetError: no record, a record that does not follow or is not finished, or one of other
            rules than the first.
        ValueError: no such observation or reward, or a name that does not end in .npz.
        OSError: a file that cannot be read or written.
    """
    target = Path(out)
    if target.suffix != ".npz":
        raise ValueError(f"out: the name must end in .npz, got {target.name!r:.80}")
    env_parts.choice("observation", observation, env_parts.OBSERVATIONS)
    code = env_parts.reward_code(reward)
    games: list[dict[str, NDArray[Any]]] = []
    rules: Rules | None = None
    for place, told in _replays(files):
        if rules is not None and told.rules != rules:
            raise DatasetError(f"{place}: its rules are not those of the first record")
        rules = told.rules
        games.append(arrays_of(told, observation, code, reward_weight))
    if rules is None:
        raise DatasetError(f"{', '.join(map(str, files)) or 'files'}: hold no record")
    lengths = [len(game["actions"]) for game in games]
    columns = {
        name: np.concatenate([game[name] for game in games])
        for name in ("observations", "masks", "actions", "players", "rewards", "returns", "ends")
    }
    columns["games"] = np.repeat(np.arange(len(games), dtype=np.int32), lengths)
    columns["plies"] = np.concatenate([np.arange(n, dtype=np.int32) for n in lengths])
    columns["winners"] = np.array([game["winner"] for game in games], np.int8)
    columns["truncated"] = np.array([game["truncated"] for game in games], np.bool_)
    told_of = {
        "format": FORMAT,
        "version": VERSION,
        "rules": rules.to_dict(),
        "observation": observation,
        "reward": reward,
    }
    columns["about"] = np.array(json.dumps(told_of))
    partial = target.with_name(target.name + ".partial")
    try:
        with open(partial, "wb") as file:
            np.savez_compressed(file, **columns)  # type: ignore[arg-type]
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)
    return {"games": len(games), "choices": int(sum(lengths))}


def _replays(files: Sequence[str | os.PathLike[str]]) -> Iterable[tuple[str, Replay]]:
    """Every record of the files, followed to its end, with where it stands."""
    for file in files:
        try:
            for line, data in read_records(file):
                try:
                    yield f"{os.fspath(file)}:{line}", check(data)
                except RecordError as error:
                    raise DatasetError(f"{os.fspath(file)}:{line}: {error}") from error
        except RecordError as error:  # a line that is no JSON
            raise DatasetError(f"{os.fspath(file)}:{error.line}: {error}") from error


def arrays_of(
    told: Replay, observation: str, reward: int, weight: float
) -> dict[str, NDArray[Any]]:
    """The choices of one finished game.

    Args:
        told: the game.
        observation: "cards" or "features".
        reward: a code of `engine.rewards`.
        weight: what a whole stock pays under SHAPED.

    Returns:
        The columns of the dataset for this game, and "winner" and "truncated" as 0-d arrays.
    """
    rules, n = told.rules, len(told.actions)
    state = told.start.copy()
    observations = []
    masks = np.zeros((n, rules.num_actions), np.int8)
    players = np.zeros(n, np.int8)
    rewards = np.zeros((n, rules.players))
    for ply, action in enumerate(told.actions):
        players[ply] = state[layout.PLAYER]
        observations.append(observe.observe(state, rules, int(players[ply]), observation))
        moves.legal_mask(state, masks[ply])
        # What an action pays does not hang on the order of a reshuffle, what follows does.
        script = told.scripts.get(ply)
        act_checked(state.copy() if script else state, action, reward, weight, rewards[ply])
        if script:
            apply_with(state, action, script)
    to_come = np.cumsum(rewards[::-1], axis=0)[::-1]
    ends = np.zeros(n, np.bool_)
    ends[-1:] = True
    return {
        "observations": np.stack(observations),
        "masks": masks,
        "actions": np.array(told.actions, np.int16),
        "players": players,
        "rewards": rewards.astype(np.float32),
        "returns": to_come[np.arange(n), players].astype(np.float32),
        "ends": ends,
        "winner": np.array(state[layout.WINNER]),
        "truncated": np.array(state[layout.REASON] == layout.TURN_LIMIT),
    }
