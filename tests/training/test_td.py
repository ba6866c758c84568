"""The learner: its targets, that runs resume bit for bit and do not depend on threads, and that bad
input is refused.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from skipbo_env.agents import make_agent
from skipbo_env.agents.network import Network, evaluate_slots, num_rows, row_groups
from skipbo_env.engine import layout
from skipbo_env.rules import Rules, RulesError
from training.checkpoint import CheckpointError
from training.config import DEFAULT, PRESETS, Config, ConfigError
from training.network import ValueNetwork, factor_matrix
from training.run import train
from training.selfplay import _targets
from training.start import Table, carry_over, find_start
from training.td import Learner, schedule

TINY = replace(
    DEFAULT,
    hidden=16,
    iterations=4,
    games=6,
    warm_start=1,
    warm_start_games=10,
    max_nodes=8,
    max_turns=40,
    threads=1,
    eval_every=2,
    eval_pairs=2,
    checkpoint_every=1,
    batch_size=64,
)


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def test_targets_are_lambda_returns_of_the_same_seat() -> None:
    """Two own endings in a row, one of the opponent's, one more own; seat 0 wins. Worked out by
    hand for lambda 0.5.
    """
    state = layout.new_state(Rules())
    state[layout.WINNER] = 0
    seats = np.array([0, 0, 1, 0], np.int8)
    values = np.array([0.5, 0.6, 0.3, 0.8], np.float32)
    targets = np.zeros(4, np.float32)
    _targets(state, 0, 4, 0.5, 0.5, seats, values, values, targets)
    # Seat 0 from the end: 1; then 0.5 * 0.8 + 0.5 * 1 = 0.9; then 0.5 * 0.6 + 0.5 * 0.9 = 0.75.
    # Seat 1 lost: 0.
    assert targets.tolist() == pytest.approx([0.75, 0.9, 0.0, 1.0])
    state[layout.WINNER] = -1
    _targets(state, 0, 4, 1.0, 0.25, seats, values, values, targets)
    assert targets.tolist() == [0.25] * 4


def test_targets_put_back_what_exploration_gave_away() -> None:
    """The same game; the opponent's ending gave away 0.1 and seat 0's second one 0.2."""
    state = layout.new_state(Rules())
    state[layout.WINNER] = 0
    seats = np.array([0, 0, 1, 0], np.int8)
    values = np.array([0.5, 0.6, 0.3, 0.8], np.float32)
    tops = np.array([0.5, 0.8, 0.4, 0.8], np.float32)
    targets = np.zeros(4, np.float32)
    _targets(state, 0, 4, 0.5, 0.5, seats, values, tops, targets)
    # Seat 0: 1; then 0.8 + 0.5 * (1 - 0.8) - 0.1 = 0.8; then 0.8 + 0.5 * (0.8 - 0.6) = 0.9.
    # Seat 1: a loss, and 0 is the least a target can be.
    assert targets.tolist() == pytest.approx([0.9, 0.8, 0.0, 1.0])
    three = layout.new_state(Rules(players=3))
    three[layout.WINNER] = 0
    _targets(three, 0, 4, 0.5, 0.0, seats, values, tops, targets)
    # Who gained by another's gift is not known at a table of three.
    assert targets.tolist() == pytest.approx([0.95, 0.9, 0.0, 1.0])


def test_schedule_runs_from_start_to_end() -> None:
    first, last = schedule(DEFAULT, 0), schedule(DEFAULT, DEFAULT.iterations - 1)
    names = ("lr", "lam", "explore", "blur")
    assert first == {name: getattr(DEFAULT, name) for name in names}
    ends = {"lr": DEFAULT.lr_final, "lam": DEFAULT.lam_final, "explore": 0.0, "blur": 0.0}
    assert last == pytest.approx(ends)


def test_compiled_network_agrees_with_torch() -> None:
    """On 1,000 endings of real games, within 1e-4."""
    learner = Learner(replace(TINY, hidden=32, warm_start_games=30))
    torch.nn.init.normal_(learner.network.rows, std=0.3)
    torch.nn.init.normal_(learner.network.factors, std=0.3)
    network = learner.network.compiled()
    slots = learner.player.play(network, 0).slots[:1000]
    assert len(slots) == 1000
    with torch.no_grad():
        theirs = torch.sigmoid(learner.network(torch.from_numpy(slots).int())).numpy()
    acc, hidden = np.zeros(32, np.float32), np.zeros(32, np.float32)
    ours = [evaluate_slots(network, row.astype(np.int32), acc, hidden) for row in slots]
    assert np.abs(np.array(ours) - theirs).max() < 1e-4
    assert theirs.std() > 0.05


def test_every_row_of_a_shared_kind_has_factors() -> None:
    matrix = factor_matrix(3, 3)
    assert matrix.shape[0] == num_rows(3, 3)
    for name, first, values in row_groups(3, 3):
        if name.endswith(("pile", "near")):
            assert (matrix[first : first + values].sum(1) >= 2).all()


def run(config: Config, folder: Path, iterations: int | None = None) -> Learner:
    learner = Learner(config)
    for _ in range(iterations or config.iterations):
        learner.iterate()
    return learner


def weights(learner: Learner) -> list[np.ndarray]:
    return [p.detach().numpy().copy() for p in learner.network.parameters()]


def test_n_and_n_iterations_are_2n_bit_for_bit() -> None:
    whole = run(TINY, Path())
    half = run(TINY, Path(), 2)
    again = Learner(TINY)
    again.load(half.state())
    for _ in range(2):
        again.iterate()
    for a, b in zip(weights(whole), weights(again), strict=True):
        assert np.array_equal(a, b)
    # The mean keeps no graph of the steps that made it.
    assert all(p.grad_fn is None and p.is_leaf for p in whole.average.parameters())


def test_bfloat16_learns_what_float32_does() -> None:
    """From the same games, nearly; the weights stay in float32."""
    config = replace(TINY, warm_start_games=64)
    losses = {}
    for precision in ("float32", "bfloat16"):
        learner = Learner(replace(config, precision=precision))
        batch = learner.player.play(learner.average.compiled(), 0)
        losses[precision] = [learner.learn(batch) for _ in range(4)]
        assert {p.dtype for p in learner.network.parameters()} == {torch.float32}
        assert learner.network(torch.from_numpy(batch.slots[:5]).int()).dtype == torch.float32
    assert losses["bfloat16"] != losses["float32"]
    assert losses["bfloat16"] == pytest.approx(losses["float32"], rel=0.01)
    assert losses["bfloat16"][-1] < 0.97 * losses["bfloat16"][0]
    with pytest.raises(ConfigError, match="precision: 'auto' is none of float32, bfloat16"):
        replace(config, precision="auto")


def test_threads_make_no_difference() -> None:
    config = replace(TINY, games=70, iterations=2)
    one, two = (Learner(replace(config, threads=threads)) for threads in (1, 3))
    for iteration in (0, 1):
        a, b = (side.player.play(side.network.compiled(), iteration) for side in (one, two))
        assert np.array_equal(a.slots, b.slots)
        assert np.array_equal(a.targets, b.targets)


def test_a_run_leaves_a_model_that_plays(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    model = train(TINY, folder)
    assert model == folder / "model"
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    assert [line["iteration"] for line in lines if line["kind"] == "train"] == [1, 2, 3, 4]
    evaluations = [line for line in lines if line["kind"] == "evaluation"]
    assert len(evaluations) == 2
    assert {"win_rate_greedy", "low_greedy", "high_greedy", "win_rate_play-first"} <= set(
        evaluations[0]
    )
    for name in (
        "td_error",
        "calibration_gap",
        "no_winner_rate",
        "games_per_s",
        "decisions_per_s",
        "play_share",
    ):
        assert name in lines[0]
    assert any((folder / "tensorboard").iterdir())
    agent = make_agent(str(model))
    assert agent.name
    with pytest.raises(CheckpointError, match="holds a run already"):
        train(TINY, folder)


def test_killed_at_any_moment_it_resumes(tmp_path: Path) -> None:
    """kill -9 while it runs; the resumed run ends in the weights of one that was never stopped."""
    folder, whole = tmp_path / "killed", tmp_path / "whole"
    config = replace(TINY, iterations=60, games=20, eval_every=1000)
    (tmp_path / "config.json").write_text(json.dumps(config.to_dict()))
    program = (
        "import sys; from pathlib import Path;"
        "from training.config import Config; from training.run import train;"
        "train(Config.load(Path(sys.argv[1])), Path(sys.argv[2]))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "config.json"), str(folder)]
    )
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        log = folder / "log.jsonl"
        if log.exists() and len(log.read_text().splitlines()) >= 3:
            break
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    train(config, folder, resume=True)
    train(config, whole)
    logs = [(path / "log.jsonl").read_text().splitlines() for path in (folder, whole)]
    told = [
        [entry["iteration"] for entry in map(json.loads, lines) if entry["kind"] == "train"]
        for lines in logs
    ]
    assert told[0] == told[1] == list(range(1, 61))
    a, b = (torch.load(path / "checkpoint.pt", weights_only=True) for path in (folder, whole))
    assert a["iteration"] == b["iteration"] == 60
    for name, tensor in a["network"].items():
        assert torch.equal(tensor, b["network"][name]), name


def test_a_run_starts_from_another(tmp_path: Path) -> None:
    """Weights, optimiser and totals go over, the schedule begins anew, and the card tells both."""
    first, second = tmp_path / "first", tmp_path / "second"
    train(replace(TINY, iterations=2), first)
    config = replace(TINY, iterations=1, warm_start=0, start_from=str(first), eval_every=1)
    learner = Learner(config)
    learner.start_from(str(first))
    state = torch.load(first / "checkpoint.pt", weights_only=True)
    for name, tensor in learner.network.state_dict().items():
        assert torch.equal(tensor, state["network"][name])
    assert learner.iteration == 0
    assert learner.totals["games"] == state["totals"]["games"]
    model = train(config, second)
    assert model is not None
    told = json.loads((model / "config.json").read_text())["trained"]
    assert told["games"] == state["totals"]["games"] + TINY.games
    assert len(told["earlier"]) == 1
    assert (model / "README.md").read_text().count("| command |") == 2
    third = tmp_path / "third"
    (first / "config.json").rename(tmp_path / "aside.json")
    with pytest.raises(CheckpointError, match=r"start_from.*config\.json"):
        train(config, third)
    assert not third.exists()  # told at once, not at the first evaluation
    again = train(replace(config, start_from=str(second), iterations=2), third)  # three runs on
    assert again is not None
    told = json.loads((again / "config.json").read_text())["trained"]
    assert [run["start_from"] for run in told["earlier"]] == [None, str(first)]
    shutil.rmtree(third)
    with pytest.raises(CheckpointError, match="start_from"):
        train(replace(config, hidden=32), third)
    with pytest.raises(CheckpointError, match=r"start_from.*no run"):
        train(replace(config, start_from=str(tmp_path / "nowhere")), third)
    assert not third.exists()


@pytest.mark.parametrize(("players", "teams"), [(4, 0), (6, 0), (4, 2), (6, 3), (6, 2)])
def test_a_run_starts_from_a_model_of_another_table(
    players: int, teams: int, tmp_path: Path
) -> None:
    """A table whose boards and hands are alike is judged as the model judges its own."""
    rng = np.random.default_rng(players + teams)
    model = find_start("two-player")
    target = Table(players, teams)
    carried = carry_over(model.network, model.table, target)

    def total(net: Network, table: Table, picked: dict[str, int]) -> np.ndarray:
        acc = net.b1.astype(np.float64)
        for name, first, _ in row_groups(table.players, table.boards):
            acc += net.w1[first + picked[":".join(table.role(name))]]
        return acc

    groups = [(model.table.role(name), values) for name, _, values in row_groups(2, 2)]
    for _ in range(20):
        picked = {":".join(role): int(rng.integers(values)) for role, values in groups}
        for what, _ in groups:  # a partner's board like the own one
            if what[1] == "own":
                picked.setdefault(f"{what[0]}:partner", picked[":".join(what)])
        picked.setdefault("seat:partner", picked["seat:other"])
        found = total(carried, target, picked)
        if not teams:
            assert np.allclose(found, total(model.network, model.table, picked), atol=1e-4)
        assert np.isfinite(found).all()
    config = Config(
        players=players,
        teams=teams,
        start_from="two-player",
        iterations=1,
        games=2,
        warm_start=0,
        max_nodes=8,
        max_turns=20,
        threads=1,
        eval_pairs=1,
    )
    learner = Learner(config)
    assert learner.start_from("two-player") == model.earlier
    assert np.array_equal(learner.average.compiled().w1, carried.w1)
    trained = train(config, tmp_path / "run")
    assert trained is not None
    told = json.loads((trained / "config.json").read_text())
    assert (told["players"], told["teams"]) == (players, teams)
    assert told["trained"]["games"] == model.totals["games"] + 2
    assert told["trained"]["earlier"] == json.loads(json.dumps(model.earlier))
    with pytest.raises(CheckpointError, match=r"start_from: .*two-player"):
        Learner(replace(config, hidden=64)).start_from("two-player")


def test_what_cannot_be_started_from_is_said(tmp_path: Path) -> None:
    shutil.copytree(find_start("two-player").path, tmp_path / "model")
    file = tmp_path / "model" / "config.json"
    told = json.loads(file.read_text())
    del told["training"]
    file.write_text(json.dumps(told))
    with pytest.raises(CheckpointError, match=r"start_from.*training"):
        find_start(str(tmp_path / "model"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(CheckpointError, match=r"start_from.*config\.json"):
        find_start(str(tmp_path / "empty"))


def test_a_signal_stops_it_with_a_checkpoint(tmp_path: Path) -> None:
    seen = []

    def stop(numbers: dict[str, object]) -> None:
        seen.append(numbers["iteration"])
        if len(seen) == 2:
            os.kill(os.getpid(), signal.SIGTERM)

    config = replace(TINY, eval_every=100, checkpoint_every=100)
    assert train(config, tmp_path / "run", progress=stop) is None
    assert torch.load(tmp_path / "run" / "checkpoint.pt", weights_only=True)["iteration"] == 2
    assert train(config, tmp_path / "run", resume=True) == tmp_path / "run" / "model"


def test_damaged_checkpoints_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with pytest.raises(CheckpointError, match="holds no run"):
        train(TINY, folder, resume=True)
    train(replace(TINY, iterations=1), folder)
    file = folder / "checkpoint.pt"
    whole = file.read_bytes()
    for damage in (b"", whole[:100], whole[:-200], b"\x00" * 500):
        file.write_bytes(damage)
        with pytest.raises(CheckpointError, match=r"checkpoint\.pt"):
            train(TINY, folder, resume=True)
    file.unlink()
    with pytest.raises(CheckpointError, match=r"checkpoint\.pt"):
        train(TINY, folder, resume=True)


def test_a_full_disk_leaves_the_earlier_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    train(replace(TINY, iterations=1), folder)
    before = (folder / "checkpoint.pt").read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    from training import checkpoint

    with pytest.raises(CheckpointError, match="No space left"):
        checkpoint.save(folder / "checkpoint.pt", {"x": 1})
    assert (folder / "checkpoint.pt").read_bytes() == before
    assert not list(folder.glob("*.partial"))


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"lam": 1.5}, "lam"),
        ({"hidden": 100}, "hidden"),
        ({"hidden2": 16}, "hidden2"),
        ({"games": 0}, "games"),
        ({"teacher": "nobody"}, "teacher"),
        ({"opponents": ()}, "opponents"),
        ({"lr": -1.0}, "lr"),
        ({"max_nodes": 0}, "max_nodes"),
    ],
)
def test_settings_out_of_range(changes: dict[str, object], word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        replace(DEFAULT, **changes)


def test_a_start_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    """A device that is not there is named, and the folder can be used afterwards."""
    config = replace(TINY, iterations=1)
    with pytest.raises(ConfigError, match="device"):
        train(replace(config, device="cuda:99"), tmp_path / "run")
    for panel, word in (("nobody", "nobody"), ("two-player", "players")):
        with pytest.raises(ConfigError, match=f"opponents: .*{word}"):
            train(replace(config, players=3, opponents=(panel,)), tmp_path / "run")
    with pytest.raises(ConfigError, match="games"):
        Config.from_dict({"games": "5"})
    assert train(config, tmp_path / "run") is not None


def test_any_agent_may_be_the_panel(tmp_path: Path) -> None:
    """A run may be judged by a model instead of by a rule-based agent."""
    judge = "turn:two-player?flips=0"
    train(replace(TINY, iterations=1, eval_every=1, opponents=(judge,)), tmp_path / "run")
    lines = [json.loads(line) for line in (tmp_path / "run/log.jsonl").read_text().splitlines()]
    assert 0.0 <= lines[-1][f"win_rate_{judge}"] <= 1.0


def test_settings_that_cannot_be_played() -> None:
    with pytest.raises(RulesError, match="players"):
        replace(DEFAULT, players=7)
    with pytest.raises(ConfigError, match="nonsense"):
        Config.from_dict({"nonsense": 1})
    for config in PRESETS.values():
        assert Config.from_dict(json.loads(json.dumps(config.to_dict()))) == config


def test_network_sizes() -> None:
    network = ValueNetwork(4, 4, 32, 64).compiled()
    assert network.w1.shape == (num_rows(4, 4), 32)
    assert network.w2.shape == (32, 64)
