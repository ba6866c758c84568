"""Records as arrays: equal to stepping the environment, read back, and refused where they should
be.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from skipbo_env import skipbo_v0
from skipbo_env.agents import make_agent
from skipbo_env.cli import run
from skipbo_env.commands import record as command
from skipbo_env.dataset import DatasetError, export
from skipbo_env.game import Game
from skipbo_env.record import append_record
from skipbo_env.rules import Rules

# Few cards and no duty to discard well: reshuffles and stalemates come up.
TIGHT = Rules(players=3, stock_size=8, copies=4, wilds=6, hand_size=4)


def stepped(rules: Rules, seed: int, observation: str, reward: str) -> dict[str, list[Any]]:
    """A game of greedy through the environment, and its record."""
    env = skipbo_v0.raw_env(rules=rules, observation=observation, reward=reward)
    env.reset(seed=seed)
    agent = make_agent("greedy")
    game = Game(rules, seed=seed)
    told: dict[str, list[Any]] = {
        name: [] for name in ("observations", "masks", "actions", "players", "rewards")
    }
    while not game.over:
        seen = env.observe(env.agent_selection)
        action = agent.act(game)
        told["observations"].append(seen["observation"])
        told["masks"].append(seen["action_mask"])
        told["players"].append(game.player)
        told["actions"].append(action)
        env.step(action)
        game.apply(action)
        told["rewards"].append([env.rewards[name] for name in env.possible_agents])
    told["record"] = [game.record()]
    return told


@pytest.mark.parametrize(
    ("rules", "observation", "reward"),
    [
        (Rules(stock_size=10), "cards", "win"),
        (TIGHT, "features", "shaped"),
        (Rules(players=4, teams=2, stock_size=6), "cards", "score"),
    ],
)
def test_arrays_are_what_the_environment_gives(
    rules: Rules, observation: str, reward: str, tmp_path: Path
) -> None:
    games = [stepped(rules, seed, observation, reward) for seed in (3, 4)]
    files = []
    for place, game in enumerate(games):
        files.append(tmp_path / f"{place}.jsonl")
        append_record(files[-1], game["record"][0])
    out = tmp_path / "games.npz"
    found = export(files, out, observation=observation, reward=reward)
    with np.load(out, allow_pickle=False) as data:
        columns = {name: data[name] for name in data.files}
    n = sum(len(game["actions"]) for game in games)
    assert found == {"games": 2, "choices": n}
    for name in ("observations", "masks", "actions", "players"):
        expected = np.array([row for game in games for row in game[name]])
        assert np.array_equal(columns[name], expected), name
    rewards = np.array([row for game in games for row in game["rewards"]])
    assert columns["rewards"] == pytest.approx(rewards, abs=1e-6)
    assert columns["observations"].dtype == (np.int8 if observation == "cards" else np.float32)
    assert (columns["masks"].dtype, columns["actions"].dtype) == (np.int8, np.int16)
    first = len(games[0]["actions"])
    assert columns["games"].tolist() == [0] * first + [1] * (n - first)
    assert columns["plies"].tolist() == [*range(first), *range(n - first)]
    assert np.flatnonzero(columns["ends"]).tolist() == [first - 1, n - 1]
    for row in (0, first // 2, first - 1):
        seat = columns["players"][row]
        assert columns["returns"][row] == pytest.approx(rewards[row:first, seat].sum(), abs=1e-4)
    told = json.loads(str(columns["about"]))
    assert (told["observation"], told["reward"]) == (observation, reward)
    assert Rules.from_dict(told["rules"]) == rules
    for place, game in enumerate(games):
        end = game["record"][0]["events"][-1]
        winner = -1 if end["winner"] is None else end["winner"]
        assert columns["winners"][place] == winner
        assert columns["truncated"][place] == (end["reason"] == "turn_limit")


def test_reshuffles_follow_the_record(tmp_path: Path) -> None:
    """Greedy's games with so few cards are reshuffled; a record without a seed is followed, too."""
    game = stepped(TIGHT, 3, "cards", "win")
    data = {**game["record"][0], "seed": None}
    assert any(event["type"] == "reshuffle" for event in data["events"])
    append_record(tmp_path / "one.jsonl", data)
    export([tmp_path / "one.jsonl"], tmp_path / "one.npz")
    with np.load(tmp_path / "one.npz") as columns:
        assert np.array_equal(columns["observations"], np.array(game["observations"]))


def test_what_makes_no_dataset(tmp_path: Path) -> None:
    file, out = tmp_path / "games.jsonl", tmp_path / "games.npz"
    record = stepped(TIGHT, 3, "cards", "win")["record"][0]
    file.write_text("")
    with pytest.raises(DatasetError, match="no record"):
        export([file], out)
    append_record(file, record)
    with pytest.raises(ValueError, match=r"\.npz"):
        export([file], tmp_path / "games.zip")
    with pytest.raises(ValueError, match="observation"):
        export([file], out, observation="pictures")
    append_record(file, Game("short", seed=1).record())
    with pytest.raises(DatasetError, match=r"games\.jsonl:2: .*not over"):
        export([file], out)
    file.write_text("")
    append_record(file, record)
    append_record(file, stepped(Rules(stock_size=2), 1, "cards", "win")["record"][0])
    with pytest.raises(DatasetError, match=r"games\.jsonl:2: its rules"):
        export([file], out)
    file.write_text("{")
    with pytest.raises(DatasetError, match=r"games\.jsonl:1: .*JSON"):
        export([file], out)
    assert not list(tmp_path.glob("*.npz*"))


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = tmp_path / "games.jsonl", tmp_path / "games.npz"
    append_record(file, stepped(Rules(stock_size=2), 1, "cards", "win")["record"][0])
    assert run(command, "record", ["export", str(file), "--out", str(out)]) == 0
    assert "of 1 games" in capsys.readouterr().out
    assert out.is_file()
    assert run(command, "record", ["export", "nowhere.jsonl", "--out", str(out)]) == 2
    assert "nowhere.jsonl" in capsys.readouterr().err
