"""Several ranks of torchrun: together they play the games of one process, keep one network, go on
after one was killed, and rate agents with the same result.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from training import ppo, ranks
from training.checkpoint import CheckpointError
from training.config import Config, ConfigError, PpoConfig, Settings
from training.run import learner_of, train

CONFIG = Config(
    hidden=16,
    iterations=4,
    games=96,
    batch_size=64,
    warm_start=1,
    warm_start_games=96,
    max_nodes=8,
    max_turns=30,
    threads=1,
    eval_every=4,
    eval_pairs=4,
    checkpoint_every=1,
)


PPO = PpoConfig(
    hidden=32,
    hidden2=32,
    iterations=4,
    games=10,
    steps=40,
    batch_size=10**5,  # one batch a pass, so a gradient of two ranks is that of one
    max_turns=30,
    threads=1,
    eval_every=4,
    eval_pairs=4,
    checkpoint_every=1,
    precision="float32",
    teacher="greedy",
    teach=1,
)
CONFIGS: dict[str, Settings] = {"td": CONFIG, "ppo": PPO}
# What an iteration counts before anything is learned, so it does not depend on the ranks.
PLAYED = {
    "td": ("games", "decisions", "endings_per_game", "no_winner_rate", "td_error"),
    "ppo": ("games", "decisions", "no_winner_rate", "stock_cards_per_decision", "left_out_share"),
}


def options(config: Settings) -> list[str]:
    words = ["--algo", config.algo]
    for name, value in config.to_dict().items():
        if name in ("algo", "opponents", "rivals") or value is None:
            continue
        words += [f"--{name.replace('_', '-')}", str(value)]
    return words


def torchrun(words: Sequence[str], count: int = 2) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node", str(count), "-m", "--", "training", *words]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        start_new_session=True,
    )


def done(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out


def log(folder: Path, kind: str = "train") -> list[dict[str, Any]]:
    lines = (folder / "log.jsonl").read_text().splitlines()
    return [entry for entry in map(json.loads, lines) if entry["kind"] == kind]


@pytest.fixture(scope="module", params=CONFIGS)
def by_two(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path]:
    """A run of two ranks that nothing disturbed."""
    folder = tmp_path_factory.mktemp("ranks") / "whole"
    out = done(torchrun(["--run", str(folder), *options(CONFIGS[request.param])]))
    assert out.splitlines() == [str(folder / "model")]  # one rank speaks
    return request.param, folder


def test_two_ranks_play_the_games_of_one(by_two: tuple[str, Path], tmp_path: Path) -> None:
    """The first iterations' games depend on no gradient: all counts are equal. Then TD's batches
    differ, and so do the networks. PPO has one batch here: what it learns is the same, from the
    teacher and, in the second iteration, from its own games.
    """
    algo, folder = by_two
    train(replace(CONFIGS[algo], iterations=2), tmp_path / "alone")
    alone, two = log(tmp_path / "alone")[0], log(folder)
    for name in PLAYED[algo]:
        assert two[0][name] == pytest.approx(alone[name]), name
    close = {"calibration_gap": 1e-6} if algo == "td" else {"explained_variance": 1e-4}
    for name, most in close.items():
        assert two[0][name] == pytest.approx(alone[name], abs=most)
    assert [entry["iteration"] for entry in two] == [1, 2, 3, 4]
    if algo == "td":
        assert two[0]["loss"] == pytest.approx(alone["loss"], rel=0.1)
        assert two[-1]["loss"] < two[0]["loss"]
    else:
        for ours, theirs in zip(log(tmp_path / "alone"), two[:2], strict=True):
            for name in ("policy_loss", "value_loss", "entropy", "kl", "clip_share"):
                assert theirs[name] == pytest.approx(ours[name], rel=1e-3, abs=1e-6), name
    assert len(log(folder, "evaluation")) == 1


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="finds ranks in /proc")
def test_a_killed_rank_is_told_and_the_run_goes_on(
    by_two: tuple[str, Path], tmp_path: Path
) -> None:
    """SIGKILL of one rank ends the other; resumed, the weights are those of the whole run."""
    algo, whole_run = by_two
    config = CONFIGS[algo]
    folder = tmp_path / "run"
    process = torchrun(["--run", str(folder), *options(config)])
    deadline = time.monotonic() + 240
    while not (folder / "log.jsonl").exists() or len(log(folder)) < 2:
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.02)
    listed = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    children = [
        int(pid) for pid in listed if b"training" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]
    assert len(children) == 2
    os.kill(children[1], signal.SIGKILL)
    process.communicate(timeout=120)
    assert process.returncode != 0
    with pytest.raises(CheckpointError, match="2 ranks, here are 1"):
        train(config, folder, resume=True)
    done(torchrun(["--run", str(folder), "--resume"]))
    assert [entry["iteration"] for entry in log(folder)] == [1, 2, 3, 4]
    whole, resumed = (
        torch.load(path / "checkpoint.pt", weights_only=True) for path in (whole_run, folder)
    )
    for part in ("network", "average") if algo == "td" else ("network", "rows"):
        for name, tensor in whole[part].items():
            assert torch.equal(tensor, resumed[part][name]), (part, name)


def test_ratings_do_not_depend_on_the_ranks() -> None:
    words = ["greedy", "--against", "simple", "--games", "200", "--rules", "short", "--json"]
    one = json.loads(
        subprocess.run(
            [sys.executable, "-m", "training", "evaluate", *words],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    )
    two = json.loads(done(torchrun(["evaluate", *words])))
    for result in (one, two):
        del result["seconds"]
    assert one == two


@pytest.mark.parametrize("name", ["games", "warm_start_games"])
def test_more_ranks_than_games_are_refused_at_the_start(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "4")
    with pytest.raises(ConfigError, match=f"{name}: 96 are too few for 4 ranks"):
        learner_of(replace(CONFIG, **{"games": 128, "warm_start_games": 128, name: 96}))
    with pytest.raises(ConfigError, match="games: 3 are too few for 4 ranks"):
        learner_of(replace(PPO, games=3))


def test_advantages_are_normalised_over_all_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    """By hand: 1 and 3 here, 5 and 7 there: the mean is 4, the deviation the root of 5."""
    monkeypatch.setenv("WORLD_SIZE", "2")

    def all_reduce(whole: Any) -> None:
        assert whole.tolist() == [2.0, 4.0, 10.0]
        whole += torch.tensor([2.0, 12.0, 74.0])

    monkeypatch.setattr("torch.distributed.all_reduce", all_reduce)
    found = ppo.normalised(torch.tensor([1.0, 3.0]))
    assert np.allclose(found, np.array([-3.0, -1.0]) / np.sqrt(5.0))


def test_every_game_has_one_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "3")
    found: list[range] = []
    for rank in range(3):
        monkeypatch.setenv("RANK", str(rank))
        found.append(range(10)[ranks.share(10)])
    assert found == [range(3), range(3, 6), range(6, 10)]


def test_gradients_are_the_mean_over_all_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """By hand: this rank's two samples sum to 3, another's one to 9; the mean of three is 4."""
    parameter = torch.nn.Parameter(torch.zeros(1))
    idle = torch.nn.Parameter(torch.zeros(2))
    parameter.grad = torch.tensor([3.0])

    def all_reduce(whole: Any) -> None:
        assert whole.tolist() == [3.0, 0.0, 0.0, 2.0]
        whole += torch.tensor([9.0, 0.0, 6.0, 1.0])

    monkeypatch.setattr("torch.distributed.all_reduce", all_reduce)
    ranks.average_gradients([parameter, idle], 2)
    assert parameter.grad is not None
    assert idle.grad is not None
    assert np.allclose(parameter.grad, [4.0])
    assert np.allclose(idle.grad, [0.0, 2.0])
