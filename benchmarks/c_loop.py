"""skipbo.c, the vector environment's work written by hand in C, built and called from Python.

The C program plays the standard two-player game on any number of rows, with the random generator,
the action ids and the "cards" observation of skipbo_env. So the two can be compared number by
number (`same_games`), and then timed side by side (`rates`).
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skipbo_env import SkipBoVectorEnv

SOURCE = Path(__file__).with_name("skipbo.c")
FLAGS = ("-O3", "-march=native", "-std=c99", "-Wall", "-Wextra", "-shared", "-fPIC")
NUMBERS, ACTIONS, SEATS = 56, 125, 2


def compiler() -> str | None:
    """A C compiler: CC where it is set, else the first of cc, gcc and clang; None without one."""
    named = os.environ.get("CC")
    names = [named] if named else ["cc", "gcc", "clang"]
    return next((path for name in names if (path := shutil.which(name))), None)


def build(folder: Path) -> ctypes.CDLL:
    """Compile the C program into the folder and load it.

    Raises:
        FileNotFoundError: there is no C compiler.
        subprocess.CalledProcessError: it does not compile.
    """
    found = compiler()
    if found is None:
        raise FileNotFoundError("no C compiler: set CC, or install gcc or clang")
    library = folder / "skipbo.so"
    subprocess.run([found, *FLAGS, "-o", library, SOURCE], check=True)  # noqa: S603 - our source
    loaded = ctypes.CDLL(str(library))
    loaded.skipbo_new.restype = ctypes.c_void_p
    return loaded


class CTable:
    """Games in C, with the arrays that `SkipBoVectorEnv` has.

    Args:
        library: from `build`.
        rows: games.
    """

    def __init__(self, library: ctypes.CDLL, rows: int) -> None:
        self._library = library
        self._table = ctypes.c_void_p(library.skipbo_new(rows))
        self.actions = np.zeros(rows, dtype=np.int64)
        self.cards = np.zeros((rows, NUMBERS), dtype=np.int8)
        self.masks = np.zeros((rows, ACTIONS), dtype=np.int8)
        self.players = np.zeros(rows, dtype=np.int64)
        self.rewards = np.zeros(rows, dtype=np.float64)
        self.all_rewards = np.zeros((rows, SEATS), dtype=np.float64)
        self.terminated = np.zeros(rows, dtype=np.bool_)
        self.truncated = np.zeros(rows, dtype=np.bool_)
        self.winners = np.zeros(rows, dtype=np.int64)
        self.reasons = np.zeros(rows, dtype=np.int64)
        self.final = np.zeros((rows, NUMBERS), dtype=np.int8)
        arrays = (
            *(self.actions, self.cards, self.masks, self.players, self.rewards, self.all_rewards),
            *(self.terminated, self.truncated, self.winners, self.reasons, self.final),
        )
        self._out = [array.ctypes.data_as(ctypes.c_void_p) for array in arrays]

    def reset(self, seed: int) -> None:
        """Deal row i the game of seed + i."""
        self._library.skipbo_reset(self._table, ctypes.c_uint64(seed), *self._out[1:4])

    def step(self, actions: NDArray[np.int64] | None = None) -> None:
        """One action a row: those given, which must be legal, or uniformly random ones."""
        given = None if actions is None else actions.ctypes.data_as(ctypes.c_void_p)
        self._library.skipbo_step(self._table, given, *self._out)

    def close(self) -> None:
        """Give the memory back; no call may follow."""
        self._library.skipbo_free(self._table)


def same_games(
    library: ctypes.CDLL, rows: int, steps: int, *, random: bool = True, seed: int = 1
) -> dict[str, int]:
    """Play the same games in both and compare every number after every step.

    Args:
        library: from `build`.
        rows: games at once.
        steps: actions a row.
        random: uniformly random choices, drawn by each for itself; else the lowest legal id, which
            plays whatever it can and so ends games by an empty stock.
        seed: of row 0.

    Returns:
        How many games ended by "stock_empty", "stalemate" and "turn_limit".

    Raises:
        AssertionError: the first number that differs.
    """
    ours, table = SkipBoVectorEnv(rows, observation="cards"), CTable(library, rows)
    seen, infos = ours.reset(seed=seed)
    table.reset(seed)
    ends = np.zeros(4, dtype=np.int64)

    def compare(name: str, engine: Any, other: Any, step: int) -> None:
        np.testing.assert_array_equal(engine, other, f"{name} after step {step}")

    for step in range(steps + 1):
        compare("cards", seen, table.cards, step)
        compare("masks", infos["action_mask"], table.masks, step)
        compare("players", infos["player"], table.players, step)
        if step == steps:
            break
        if random:
            actions = ours.sample_actions()
            table.step()
            compare("actions", actions, table.actions, step)
        else:
            actions = infos["action_mask"].argmax(axis=1)
            table.step(actions)
        seen, rewards, terminated, truncated, infos = ours.step(actions)
        compare("rewards", rewards, table.rewards, step)
        compare("every seat's rewards", infos["rewards"], table.all_rewards, step)
        compare("terminated", terminated, table.terminated, step)
        compare("truncated", truncated, table.truncated, step)
        ended = terminated | truncated
        if ended.any():
            last = infos["final_info"]
            compare("winners", last["winner"][ended], table.winners[ended], step)
            compare("reasons", last["reason"][ended], table.reasons[ended], step)
            compare("finals", np.stack(infos["final_obs"][ended]), table.final[ended], step)
            ends += np.bincount(last["reason"][ended], minlength=4)
    table.close()
    return dict(zip(("stock_empty", "stalemate", "turn_limit"), ends[1:].tolist(), strict=True))


def rates(
    library: ctypes.CDLL, *, rows: int = 1024, rounds: int = 15, steps: int = 100
) -> tuple[list[float], list[float]]:
    """Decisions per CPU-second of SkipBoVectorEnv and of the C program, taking turns.

    Both draw uniformly random legal actions, play on restart, and write mask and observation.
    """
    ours, table = SkipBoVectorEnv(rows, observation="cards"), CTable(library, rows)
    ours.reset(seed=1)
    table.reset(1)

    def engine() -> None:
        for _ in range(steps):
            ours.step(ours.sample_actions())

    def by_hand() -> None:
        for _ in range(steps):
            table.step()

    measured: tuple[list[float], list[float]] = ([], [])
    for round_number in range(rounds + 2):
        for play, found in zip((engine, by_hand), measured, strict=True):
            began = time.process_time()
            play()
            if round_number >= 2:  # the first ones spread the rows over all stages of the game
                found.append(rows * steps / (time.process_time() - began))
    table.close()
    return measured
