"""PPO: advantages by seat, masked distributions, the compiled policy, runs that resume bit for bit,
learning, and bad input.
"""

from __future__ import annotations

import io
import json
import math
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from skipbo_env.actions import MOVES
from skipbo_env.agents import PolicyAgent, TurnAgent, load_model, make_agent
from skipbo_env.agents.agent import _twins
from skipbo_env.agents.network import evaluate_slots
from skipbo_env.agents.policy import (
    ORDER,
    arrange_rows,
    choose_by_policy,
    judge_actions,
    new_policy_work,
    num_inputs,
    num_outputs,
    real_action,
)
from skipbo_env.agents.turn import fill_ending, search
from skipbo_env.engine import layout
from skipbo_env.rules import Rules
from training.arena import Match, run_match, summary
from training.checkpoint import CheckpointError
from training.cli import train as train_command
from training.config import (
    PPO_DEFAULT,
    PPO_PRESETS,
    Config,
    ConfigError,
    PpoConfig,
    load_settings,
    settings_from,
)
from training.ppo import Learner, advantages, distribution, draw, schedule
from training.run import train
from training.td import Learner as TdLearner

TINY = replace(
    PPO_DEFAULT,
    hidden=32,
    hidden2=32,
    iterations=4,
    games=24,
    steps=16,
    batch_size=100,
    max_turns=40,
    threads=1,
    eval_every=2,
    eval_pairs=2,
    checkpoint_every=1,
    precision="float32",
)
TAUGHT = replace(TINY, teacher="greedy", teach=2)


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


# Advantages ------------------------------------------------------------------------------------


def gae(
    players: list[int],
    rewards: list[list[float]],
    values: list[float],
    ended: list[bool],
    then: tuple[int, float],
    gamma: float = 1.0,
    lam: float = 0.5,
) -> tuple[list[float], list[bool]]:
    """The advantages of one game's decisions."""
    steps, seats = len(players), len(rewards[0])
    out, known = np.zeros((steps, 1), np.float32), np.zeros((steps, 1), np.bool_)
    advantages(
        np.array(rewards, np.float32)[:, None],
        np.array(players, np.int8)[:, None],
        np.array(ended)[:, None],
        np.array(values, np.float32)[:, None],
        np.array([then[0]]),
        np.array([then[1]], np.float32),
        gamma,
        lam,
        np.full((4, seats), np.nan),
        out,
        known,
    )
    return out[:, 0].tolist(), known[:, 0].tolist()


def test_advantages_of_two_own_moves_and_the_opponents() -> None:
    """Seat 0 moves twice, seat 1 once, seat 0 wins. Worked out by hand for lambda 0.5:

    Seat 0's last move: paid 1, nothing follows: 1 - 0.6 = 0.4. Its second: what follows is its own
    last move, worth 0.6, and in between seat 1 played a stock card, which costs it 0.1:
    -0.1 + 0.6 - 0.3 = 0.2, and half of 0.4: 0.4. Its first: paid 0.1 for a stock card of its own:
    0.1 + 0.3 - 0.2 = 0.2, and half of 0.4: 0.4.
    Seat 1's only move: paid 0.1 and then -1: -0.9 - (-0.5) = -0.4; what the first action paid it
    was before its move.
    """
    players = [0, 0, 1, 0]
    rewards = [[0.1, -0.1], [0.0, 0.0], [-0.1, 0.1], [1.0, -1.0]]
    values = [0.2, 0.3, -0.5, 0.6]
    found, known = gae(players, rewards, values, [False, False, False, True], (0, 9.0))
    assert found == pytest.approx([0.4, 0.4, -0.4, 0.4])
    assert known == [True] * 4
    # The next game's position (worth 9) is nobody's future here; without discount and lambda 1 the
    # advantage is what is paid from there on, less the value.
    found, _ = gae(players, rewards, values, [False, False, False, True], (1, 9.0), lam=1.0)
    assert found == pytest.approx([0.1 - 0.1 + 1 - 0.2, -0.1 + 1 - 0.3, 0.1 - 1 + 0.5, 1 - 0.6])
    found, _ = gae(players, rewards, values, [False, False, False, True], (1, 9.0), 0.5, 1.0)
    # Seat 0: 0.4; -0.1 + 0.5 * 0.6 - 0.3 + 0.5 * 0.4 = 0.1; 0.1 + 0.5 * 0.3 - 0.2 + 0.05 = 0.1.
    assert found == pytest.approx([0.1, 0.1, -0.4, 0.4])


def test_advantages_at_the_end_of_the_batch() -> None:
    """The game goes on after the batch, with seat 0 to move, worth 0.7 to it. What becomes of seat
    1's last move is not known: nothing is learned from it, and its first one takes its value.
    """
    players = [1, 1, 0]
    rewards = [[-0.2, 0.2], [0.0, 0.0], [0.3, -0.3]]
    values = [0.1, 0.4, 0.2]
    found, known = gae(players, rewards, values, [False] * 3, (0, 0.7))
    # Seat 0: 0.3 + 0.7 - 0.2 = 0.8. Seat 1's first: 0.2 + 0.4 - 0.1 = 0.5.
    assert found == pytest.approx([0.5, 0.0, 0.8])
    assert known == [True, False, True]


def test_advantages_of_three_seats_and_of_partners() -> None:
    """Every seat has its own trajectory. Three seats, lambda 0.5; seat 2 wins, then a new game:

    Seat 2: 1 - 0.2 = 0.8. Seat 1: -0.5 - 0.3 = -0.8. Seat 0's second: -0.5 - (-0.1) = -0.4, its
    first: -0.1 - 0.0 - 0.4 / 2 = -0.3. In the new game seat 1 moves, then the batch ends with seat
    2 to move: unknown.
    """
    players = [0, 0, 1, 2, 1]
    rewards = [[0.0] * 3, [0.0] * 3, [0.0] * 3, [-0.5, -0.5, 1.0], [0.0] * 3]
    ended = [False, False, False, True, False]
    found, known = gae(players, rewards, [0.0, -0.1, 0.3, 0.2, 0.6], ended, (2, 5.0))
    assert found == pytest.approx([-0.3, -0.4, -0.8, 0.8, 0.0])
    assert known == [True, True, True, True, False]
    # Four players in two teams: seat 2's stock play pays its partner, seat 0, too.
    players = [0, 1, 2, 0]
    rewards = [[0.0] * 4, [0.0] * 4, [0.5, -0.5, 0.5, -0.5], [1.0, -1.0, 1.0, -1.0]]
    found, known = gae(players, rewards, [0.0] * 4, [False, False, False, True], (3, 0.0), lam=1.0)
    assert found == pytest.approx([1.5, -1.5, 1.5, 1.0])
    assert known == [True] * 4


@pytest.mark.parametrize("table", [{}, {"players": 3}, {"players": 4, "teams": 2}])
def test_advantages_are_what_each_seat_was_paid(table: dict[str, int]) -> None:
    """Real games, lambda 1: from every decision on, all that its seat is paid to the game's end."""
    learner = Learner(replace(TINY, **table, stock_size=2, steps=150, teacher="greedy", teach=9))
    batch = learner.play()
    steps, games = batch.players.shape
    out, known = np.zeros((steps, games), np.float32), np.zeros((steps, games), np.bool_)
    arguments = (batch.next_players, batch.next_values, 1.0, 1.0)
    scratch = np.zeros((4, learner.config.players))
    parts = (batch.rewards, batch.players, batch.ended, batch.values)
    advantages(*parts, *arguments, scratch, out, known)
    checked = 0
    for game in range(games):
        ends = np.flatnonzero(batch.ended[:, game])
        for first, last in zip([0, *(ends[:-1] + 1)], ends, strict=True):
            for t in range(first, last + 1):
                seat = batch.players[t, game]
                paid = batch.rewards[t : last + 1, game, seat].sum()
                assert known[t, game]
                assert out[t, game] + batch.values[t, game] == pytest.approx(paid, abs=1e-5)
                checked += 1
    assert checked > 500
    # The winner's last action paid it, and its side, at least 1; nobody else is paid above 0 then.
    for t, game in zip(*np.nonzero(batch.ended), strict=True):
        winners = np.flatnonzero(batch.rewards[t, game] >= 1)
        if len(winners):
            assert batch.players[t, game] in winners
            assert len(winners) == (2 if table.get("teams") else 1)
            assert batch.rewards[t, game].sum() == pytest.approx(0.0, abs=1e-5)


# Masked distributions --------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_illegal_actions_have_probability_zero_and_sums_are_finite(dtype: torch.dtype) -> None:
    logits = torch.tensor(
        [[1.0, 2.0, 3.0, 4.0], [5.0, 5.0, 5.0, 5.0], [1e4, -1e4, 1e4, 0.0], [0.0, 9.0, 0.0, 0.0]],
        dtype=dtype,
        requires_grad=True,
    )
    masks = torch.tensor([[1, 0, 1, 0], [1, 1, 1, 1], [1, 1, 0, 1], [1, 0, 0, 0]], dtype=torch.bool)
    probs, logs = distribution(logits, masks)
    assert probs.dtype == logs.dtype == torch.float32
    assert (probs[~masks] == 0).all()
    assert torch.allclose(probs.sum(-1), torch.ones(4))
    entropy = -(probs * logs).sum(-1)
    p = 1 / (1 + math.exp(-2))
    assert entropy[0].item() == pytest.approx(-p * math.log(p) - (1 - p) * math.log(1 - p))
    assert entropy[1].item() == pytest.approx(math.log(4))
    assert entropy[2:].tolist() == pytest.approx([0.0, 0.0])
    (entropy.sum() + logs[:, 0].sum()).backward()
    assert logits.grad is not None
    assert torch.isfinite(logits.grad).all()
    assert (logits.grad[~masks] == 0).all()


def test_drawn_actions_are_legal_and_as_likely_as_they_should_be() -> None:
    rows, n = 20_000, num_outputs(Rules())
    logits = np.tile(np.random.default_rng(1).normal(0, 1, n), (rows, 1)).astype(np.float32)
    inputs = np.zeros((rows, num_inputs(Rules())), np.float32)
    legal = [0, 5, 60, 100, 124]
    inputs[:, [len(inputs[0]) - n + action for action in legal]] = 1.0
    inputs[:, :50] = 1.0  # the mask stands at the end
    orders = np.tile(np.array([1, 2, 3, 0] * 4), (rows, 1))
    arranged, actions = np.zeros((2, rows), np.int64)
    logs = np.zeros(rows, np.float32)
    draw(logits, inputs, orders, np.random.default_rng(2).random(rows), arranged, actions, logs)
    assert set(arranged.tolist()) == set(legal)
    masks = torch.from_numpy(inputs[:1, -n:] > 0)
    probs, theirs = distribution(torch.from_numpy(logits[:1]), masks)
    for action in legal:
        drawn = arranged == action
        expected = float(probs[0, action])
        assert drawn.mean() == pytest.approx(
            expected, abs=4 * math.sqrt(expected * (1 - expected) / rows)
        )
        assert set(actions[drawn].tolist()) == {int(real_action(action, orders[0]))}
        assert logs[drawn] == pytest.approx(float(theirs[0, action]), abs=1e-5)
    # The ends of what a generator gives, and logits far apart.
    logits[:2] = -1e4
    logits[:2, 5] = 1e4
    edge = np.array([0.0, np.nextafter(1.0, 0.0)])
    draw(logits[:2], inputs, orders, edge, arranged[:2], actions[:2], logs[:2])
    assert arranged[:2].tolist() == [5, 5]
    assert logs[:2].tolist() == [0.0, 0.0]


# The network -----------------------------------------------------------------------------------


@pytest.mark.parametrize("table", [{}, {"players": 3}, {"players": 4, "teams": 2}])
def test_compiled_policy_agrees_with_torch(table: dict[str, int]) -> None:
    """On 1,000 positions of real games, within 1e-4, and in what it chooses."""
    learner = Learner(replace(TAUGHT, **table, games=125, hidden=64))
    torch.nn.init.normal_(learner.network.policy.weight, std=0.3)
    net = learner.network.compiled()
    rules = learner.rules
    work = new_policy_work(net, rules.num_actions)
    orders = np.zeros((125, ORDER), np.int64)
    inputs = np.zeros((125, num_inputs(rules)), np.float32)
    furthest, spread = 0.0, []
    for _ in range(8):
        masks = learner.infos["action_mask"]
        arrange_rows(learner.env.states, learner.observations, masks, orders, inputs)
        with torch.no_grad():
            logits, _ = learner.network(torch.from_numpy(inputs))
        actions = np.zeros(125, np.int64)
        for row, state in enumerate(learner.env.states):
            judge_actions(state, net, work)
            furthest = max(furthest, float(np.abs(work.arranged - logits[row].numpy()).max()))
            legal = logits[row].masked_fill(
                torch.from_numpy(inputs[row, -len(net.b3) :]) == 0, -9e9
            )
            actions[row] = choose_by_policy(state, net, work)
            assert actions[row] == real_action(int(legal.argmax()), orders[row])
            spread.append(float(legal.max()))
        for _ in range(7):
            learner.observations, *_, learner.infos = learner.env.step(learner.env.sample_actions())
    assert furthest < 1e-4
    assert np.std(spread) > 0.05


# Teaching --------------------------------------------------------------------------------------


def test_a_teacher_plays_like_the_agent_and_weighs_the_other_actions() -> None:
    """The planner's turn search: its plans are kept to, and where it searches the targets are the
    softmax of the best that each action leads to.
    """
    changes = {"teach": 1, "teach_temperature": 0.05, "max_nodes": 4096, "games": 20, "steps": 60}
    config = replace(TINY, teacher="planner", **changes)
    learner = Learner(config)
    teacher = learner.teacher
    assert teacher is not None
    rules, env = learner.rules, learner.env
    agent = make_agent("planner")
    net = agent.network(rules)
    orders = np.zeros((20, ORDER), np.int64)
    inputs = np.zeros((20, num_inputs(rules)), np.float32)
    arranged = np.zeros(20, np.int64)
    plans: list[list[int]] = [[]] * 20
    searches = soft = 0
    for _ in range(60):
        masks = learner.infos["action_mask"]
        arrange_rows(learner.env.states, learner.observations, masks, orders, inputs)
        games = [env.game(row) for row in range(20)]
        actions = teacher.act(masks, orders, arranged)
        targets = teacher.targets
        assert targets.sum(axis=1) == pytest.approx(1.0)
        assert (targets[inputs[:, -targets.shape[1] :] == 0] == 0).all()
        for row, game in enumerate(games):
            target = targets[row]
            assert actions[row] == real_action(int(arranged[row]), orders[row])
            assert target[arranged[row]] == target.max()
            if plans[row]:  # in the midst of a plan
                assert actions[row] == plans[row].pop(0)
                assert target.max() == 1.0
                continue
            plans[row] = agent.plan(game)
            assert actions[row] == plans[row].pop(0)
            searches += 1
            if searches % 10 or target.max() == 1.0:
                continue
            # What the targets say of turn-ending actions, whose one ending is their value.
            work = agent._prepare(game).outer
            best = search(game.state, net, work, 4096, np.zeros(1, np.uint64), 0, 0.0)[0]
            for a in np.flatnonzero(target):
                real = int(real_action(int(a), orders[row]))
                if MOVES[real].kind == "discard" and best < 1.0:
                    assert fill_ending(game.state, real, work) >= 0
                    value = evaluate_slots(net, work.ending, work.acc, work.hidden)
                    behind = math.log(value / (1 - value)) - math.log(best / (1 - best))
                    expected = math.exp(behind / config.teach_temperature)
                    assert target[a] / target.max() == pytest.approx(expected, rel=0.01)
                    soft += 1
        learner.observations, _, won, cut, learner.infos = env.step(actions)
        for row in np.flatnonzero(won | cut):
            assert not plans[row]
    assert searches > 300
    assert soft > 30
    alone = Learner(replace(config, teach_temperature=0.0))
    batch = alone.play()
    assert ((batch.targets == 0) | (batch.targets == 1)).all()
    assert batch.targets.argmax(-1).numpy().tolist() == batch.actions.tolist()


@pytest.mark.parametrize(
    ("teacher", "table"),
    [("two-player", {}), ("planner", {"players": 3}), ("planner", {"players": 4, "teams": 2})],
)
def test_a_teacher_judges_every_legal_action(teacher: str, table: dict[str, int]) -> None:
    """As the agent does that plays by this search, mirror images included; the games are the
    learner's own, which draws its actions.
    """
    changes = {"teach": 1, "teach_by": "judgement", "max_nodes": 4096, "games": 20, "steps": 60}
    config = replace(TINY, teacher=teacher, **table, **changes)
    learner = Learner(config)
    judging, rules, env = learner.teacher, learner.rules, learner.env
    assert judging is not None
    agent = make_agent(teacher)
    assert isinstance(agent, TurnAgent)
    agent.flips = False
    agent.max_nodes = 4096
    n = num_outputs(rules)
    orders = np.zeros((20, ORDER), np.int64)
    inputs = np.zeros((20, num_inputs(rules)), np.float32)
    twins = worse = 0
    for _ in range(12):
        masks = learner.infos["action_mask"]
        arrange_rows(env.states, learner.observations, masks, orders, inputs)
        judging.judge(masks, orders)
        targets = judging.targets
        assert (targets[inputs[:, -n:] == 0] == 0).all()
        assert (targets.max(axis=1) == 0).all()
        for row in range(20):
            game = env.game(row)
            legal = game.legal_actions()
            values = {a: v for a, (v, *_) in agent._judge_all(game, legal).items()}
            # The same turn, though a tie between equal tops may be counted the other way.
            values.update({a: values[first] for a, first in _twins(game, legal).items()})
            best = max(values.values())
            for a in np.flatnonzero(inputs[row, -n:]).tolist():
                value = values[int(real_action(a, orders[row]))]
                assert targets[row, a] == pytest.approx(value - best, abs=1e-5)
                worse += value < best - 1e-3
            twins += len(set(values.values())) < len(values)
        for _ in range(5):
            learner.observations, *_, learner.infos = env.step(env.sample_actions())
    assert worse > 200
    assert twins > 20
    batch = learner.play()
    assert (batch.logs < 0).any()
    assert batch.targets.shape == (60, 20, n)
    assert (batch.targets.amax(-1) == 0).all()


def test_following_a_teachers_judgement_loses_less_by_it() -> None:
    config = replace(
        TINY,
        teacher="planner",
        teach=12,
        teach_by="judgement",
        teach_lr=3e-3,
        lr=1e-3,
        games=64,
        steps=32,
        batch_size=256,
        iterations=12,
        stock_size=5,
    )
    learner = Learner(config)
    batch = learner.play()
    lost = [learner.learn(batch)["policy_loss"] for _ in range(30)]
    assert min(lost) > 0
    assert lost[-1] < 0.5 * lost[0]


# Runs ------------------------------------------------------------------------------------------


def test_schedule_runs_from_start_to_end() -> None:
    config = replace(PPO_DEFAULT, iterations=12, teach=2, teacher="greedy", shaping_share=0.5)
    judged = replace(config, teach_by="judgement")
    assert [schedule(judged, k)["entropy_weight"] for k in (0, 1)] == [
        config.entropy,
        config.entropy / 2,
    ]
    taught = schedule(config, 0)
    assert taught == {"lr": config.teach_lr, "entropy_weight": 0.0, "shaping": config.shaping}
    first, half, last = (schedule(config, iteration) for iteration in (2, 7, 11))
    names = ("lr", "entropy_weight", "shaping")
    assert first == dict(zip(names, (config.lr, config.entropy, config.shaping), strict=True))
    assert half["shaping"] == 0.0
    assert last == pytest.approx({"lr": config.lr_final, "entropy_weight": 0.0, "shaping": 0.0})


def test_a_resumed_run_is_the_run_that_was_never_stopped(tmp_path: Path) -> None:
    """Two and two iterations, across the end of the teaching, are four: weights, optimiser, games
    and log.
    """
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    config = replace(TAUGHT, iterations=5, teach=2)
    model = train(config, whole)
    assert model == whole / "model"

    class Stop(Exception):
        pass

    def stop(numbers: dict[str, Any]) -> None:
        if numbers["iteration"] == 3:
            raise Stop

    for iteration in (1, 2):
        del iteration
        with pytest.raises(Stop):
            train(config, parts, resume=(parts / "config.json").exists(), progress=stop)
    train(config, parts, resume=True)
    states = [torch.load(folder / "checkpoint.pt", weights_only=True) for folder in (whole, parts)]
    for state in states:
        for name in ("seconds", "cpu_seconds"):
            del state["totals"][name]

    def same(a: Any, b: Any) -> bool:
        if isinstance(a, dict):
            return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
        if isinstance(a, (list, tuple)):
            return len(a) == len(b) and all(map(same, a, b))
        return bool(torch.equal(a, b)) if isinstance(a, torch.Tensor) else bool(a == b)

    assert same(*states)
    assert states[0]["iteration"] == 5
    logs = []
    for folder in (whole, parts):
        lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
        logs.append(
            [
                {
                    name: number
                    for name, number in line.items()
                    if "seconds" not in name and "per_s" not in name and "share" not in name
                }
                for line in lines
            ]
        )
    assert logs[0] == logs[1]
    trained = [line for line in logs[0] if line["kind"] == "train"]
    assert [line["iteration"] for line in trained] == [1, 2, 3, 4, 5]
    for name in ("entropy", "kl", "explained_variance", "policy_loss", "value_loss", "lr"):
        assert all(math.isfinite(line[name]) for line in trained)
    assert trained[0]["kl"] == 0.0 < trained[4]["kl"]
    evaluations = [line for line in logs[0] if line["kind"] == "evaluation"]
    assert [line["iteration"] for line in evaluations] == [2, 4, 5]
    assert {"win_rate_greedy", "low_greedy", "high_greedy"} <= set(evaluations[0])
    line = json.loads((whole / "log.jsonl").read_text().splitlines()[0])
    assert {"clip_share", "left_out_share", "play_share", "decisions_per_s"} <= set(line)
    assert any((whole / "tensorboard").iterdir())
    # The model plays, and its card tells how it came to be.
    loaded = load_model(model)
    assert loaded.policy is not None
    assert loaded.value is None
    assert isinstance(make_agent(str(model)), PolicyAgent)
    card = (model / "README.md").read_text()
    assert "skipbo train --algo ppo" in card
    assert "--teacher greedy" in card
    told = json.loads((model / "config.json").read_text())["policy"]
    assert settings_from(told["training"]) == config
    with pytest.raises(CheckpointError, match="holds a run already"):
        train(config, whole)


@pytest.mark.parametrize("teacher", ["play-first", "planner"])
def test_threads_make_no_difference_to_the_games(teacher: str) -> None:
    config = replace(TAUGHT, teacher=teacher)
    one, three = (Learner(replace(config, threads=threads)) for threads in (1, 3))
    for _ in range(2):
        a, b = one.play(), three.play()
        assert torch.equal(a.targets, b.targets)
        assert np.array_equal(a.actions, b.actions)
        assert np.array_equal(a.rewards, b.rewards)


def test_batches_of_hardly_anything_do_no_harm() -> None:
    """One decision, and one game: a single row has no spread, and perhaps no successor."""
    for changes in ({"games": 1, "steps": 1}, {"games": 1, "steps": 3, "batch_size": 1}):
        learner = Learner(replace(TINY, **changes))
        for _ in range(12):
            assert all(math.isfinite(number) for number in learner.iterate().values())
        assert all(torch.isfinite(part).all() for part in learner.network.parameters())


def test_precision_is_measured_once_and_kept(tmp_path: Path) -> None:
    learner = Learner(replace(TINY, precision="auto"))
    assert learner.precision in ("float32", "bfloat16")
    other = "bfloat16" if learner.precision == "float32" else "float32"
    learner.precision = other
    again = Learner(replace(TINY, precision="auto"))
    again.load(learner.state())
    assert again.precision == other
    low = Learner(replace(TINY, precision="bfloat16"))
    assert low.play().inputs.dtype == torch.bfloat16
    assert all(math.isfinite(number) for number in low.iterate().values())


def test_a_run_starts_from_another(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    train(replace(TINY, iterations=2), first)
    config = replace(TINY, iterations=1, start_from=str(first), eval_every=1)
    model = train(config, second)
    assert model is not None
    state = torch.load(first / "checkpoint.pt", weights_only=True)
    told = json.loads((model / "config.json").read_text())["policy"]["trained"]
    assert told["decisions"] == state["totals"]["decisions"] + TINY.games * TINY.steps
    assert len(told["earlier"]) == 1
    assert (model / "README.md").read_text().count("| command |") == 2
    with pytest.raises(CheckpointError, match=r"start_from: .*a run of --algo ppo, not td"):
        train(Config(start_from=str(first)), tmp_path / "third")
    with pytest.raises(CheckpointError, match=r"start_from: .*does not fit"):
        train(replace(config, hidden=48), tmp_path / "third")
    assert not (tmp_path / "third").exists()


# Learning --------------------------------------------------------------------------------------


def rate(agent: Any, against: Any, rules: Rules, pairs: int) -> dict[str, Any]:
    match = Match(agent, against, rules, seed=77)
    return summary(match, run_match(match, pairs), 0.0)


def test_it_imitates_a_teacher() -> None:
    """A few seconds of imitating greedy beat play-first, and its own untrained network."""
    config = replace(
        TINY,
        hidden=128,
        hidden2=64,
        stock_size=10,
        games=256,
        steps=32,
        batch_size=1024,
        teacher="greedy",
        teach=24,
        iterations=24,
        lr=1e-3,
        teach_lr=3e-3,
        teach_epochs=4,
        max_turns=400,
    )
    learner = Learner(config)
    untrained = learner.agent()
    told = [learner.iterate() for _ in range(24)]
    assert told[-1]["policy_loss"] < 0.6 * told[0]["policy_loss"]
    rules = Rules(stock_size=10)
    assert rate(learner.agent(), "play-first", rules, 100)["interval"][0] > 0.7
    assert rate(learner.agent(), untrained, rules, 50)["interval"][0] > 0.7


@pytest.mark.slow
def test_it_learns_from_nothing_to_play_stock_cards(tmp_path: Path) -> None:
    """The first PPO agents only discard. The smoke preset must beat play-first by emptying its
    stocks.
    """
    model = train(PPO_PRESETS["smoke"], tmp_path / "run")
    assert model is not None
    result = rate(make_agent(str(model)), "play-first", Rules(), 300)
    assert result["interval"][0] > 0.8
    assert result["win_rate"] + result["loss_rate"] > 0.9
    lines = [json.loads(line) for line in (tmp_path / "run/log.jsonl").read_text().splitlines()]
    cards = [line["stock_cards_per_decision"] for line in lines if line["kind"] == "train"]
    assert np.mean(cards[-5:]) > 2 * np.mean(cards[:5])


@pytest.mark.parametrize(("players", "teams"), [(2, 0), (4, 2)])
def test_stock_cards_are_counted_whatever_they_pay(players: int, teams: int) -> None:
    """Late in a run they pay nothing any more, and are played all the same."""
    found = []
    for shaping in (1.0, 0.0):
        learner = Learner(
            replace(TINY, shaping=shaping, players=players, teams=teams, games=60, steps=40)
        )
        batch = learner.play()
        found.append(batch.stock_cards)
        if shaping:
            assert batch.stock_cards == (batch.rewards > 0).any(-1).sum()
    assert found[0] == found[1] > 10


# Bad input -------------------------------------------------------------------------------------


def test_presets_and_settings_round_trip(tmp_path: Path) -> None:
    for config in PPO_PRESETS.values():
        assert settings_from(json.loads(json.dumps(config.to_dict()))) == config
    old = {name: value for name, value in Config().to_dict().items() if name != "algo"}
    assert settings_from(old) == Config()  # runs of before there was a choice
    file = tmp_path / "config.json"
    file.write_text(json.dumps(TAUGHT.to_dict()))
    assert load_settings(file) == TAUGHT


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"clip": 0}, "clip"),
        ({"gamma": 1.5}, "gamma"),
        ({"steps": 0}, "steps"),
        ({"epochs": "two"}, "epochs"),
        ({"precision": "float8"}, "precision"),
        ({"teach": 3}, "teacher"),
        ({"teach": -1, "teacher": "greedy"}, "teach"),
        ({"shaping_share": 2}, "shaping_share"),
        ({"opponents": ()}, "opponents"),
        ({"hidden": 20}, "hidden"),
        ({"players": 1}, "players"),
        ({"teach_by": "hope"}, "teach_by: 'hope' is none of imitation, judgement"),
    ],
)
def test_settings_out_of_range_are_refused(changes: dict[str, Any], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        replace(PPO_DEFAULT, **changes)


def test_unknown_settings_are_refused() -> None:
    with pytest.raises(ConfigError, match="blur: is no setting of ppo"):
        settings_from({"algo": "ppo", "blur": 0.1})
    with pytest.raises(ConfigError, match="algo"):
        settings_from({"algo": "dqn"})


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"teacher": "nobody"}, "teacher: .*nobody"),
        ({"teacher": "search:two-player"}, "teacher: .*only rule-based agents and turn search"),
        ({"teacher": "two-player", "players": 3}, "teacher: .*2 players"),
        ({"teach_by": "judgement"}, "teacher: .*only turn search can judge"),
        ({"device": "nowhere"}, "device"),
    ],
)
def test_what_cannot_teach_or_learn_is_refused(changes: dict[str, Any], word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        Learner(replace(TINY, teach=1, **{"teacher": "greedy", **changes}))


def test_a_checkpoint_of_other_settings_is_refused() -> None:
    state = Learner(TINY).state()
    for changes in ({"hidden": 48}, {"games": 12}, {"players": 3}):
        with pytest.raises(CheckpointError, match="does not fit"):
            Learner(replace(TINY, **changes)).load(state)
    for name in ("network", "optimiser", "rows", "totals", "iteration", "precision"):
        with pytest.raises(CheckpointError, match="does not fit"):
            Learner(TINY).load({key: part for key, part in state.items() if key != name})
    with pytest.raises(CheckpointError, match="does not fit"):
        TdLearner(replace(Config(), hidden=16, threads=1)).load(state)


def test_the_command_refuses_the_other_learners_settings(tmp_path: Path) -> None:
    from training.cli import Overrides

    known = {field.name for field in fields(PpoConfig)} | {field.name for field in fields(Config)}
    assert {field.name for field in fields(Overrides)} == known
    with pytest.raises(ValueError, match="--blur: is no setting of --algo ppo"):
        train_command(algo="ppo", run=tmp_path / "a", settings=Overrides(blur=0.1))
    with pytest.raises(ValueError, match="--clip: is no setting of --algo td"):
        train_command(run=tmp_path / "a", settings=Overrides(clip=0.1))
    with pytest.raises(ValueError, match="--preset: td has smoke, default, long, gpu"):
        train_command(preset="distilled", run=tmp_path / "a")
    assert not (tmp_path / "a").exists()


def test_every_seat_of_every_table_can_learn() -> None:
    for table in ({"players": 5}, {"players": 6, "teams": 3}):
        learner = Learner(replace(TINY, **table))
        numbers = learner.iterate()
        assert all(math.isfinite(number) for number in numbers.values())
        agent = learner.agent()
        assert rate(agent, "play-first", learner.rules, 1)["games"] == learner.rules.sides
        assert learner.env.states[0, layout.PLAYERS] == table["players"]


def test_damaged_parts_of_a_run_are_refused_before_it_plays(tmp_path: Path) -> None:
    """A changed block, games that are none, parts of another kind: an error that names the file,
    no crash, and the run's files stand.
    """
    folder = tmp_path / "run"
    train(replace(TINY, iterations=2, eval_every=2), folder)
    file = folder / "checkpoint.pt"
    good = file.read_bytes()

    def refused(name: str) -> None:
        before = {path.name: path.read_bytes() for path in folder.glob("*.pt")}
        with pytest.raises(CheckpointError, match=name):
            train(TINY, folder, resume=True)
        assert {path.name: path.read_bytes() for path in folder.glob("*.pt")} == before

    for part in (0.1, 0.5, 0.9):
        at = int(part * len(good))
        file.write_bytes(good[:at] + bytes(b ^ 255 for b in good[at : at + 999]) + good[at + 999 :])
        refused("checkpoint.pt: is damaged")
    state = torch.load(io.BytesIO(good), weights_only=True)
    zeros = {name: torch.zeros_like(rows) for name, rows in state["rows"].items()}
    for changes in (
        {"rows": zeros},
        {"rows": {**state["rows"], "states": zeros["states"] + 77}},
        {"totals": None},
        {"totals": {}},
        {"totals": {**state["totals"], "games": "x"}},
        {"iteration": -5},
        {"iteration": None},
        {"network": None},
        {"optimiser": None},
        {"precision": "x"},
    ):
        torch.save({**state, **changes}, file)
        refused("checkpoint.pt: does not fit")
    file.write_bytes(good)
    best = (folder / "best.pt").read_bytes()
    (folder / "best.pt").write_bytes(good)
    refused("best.pt: is damaged")
    (folder / "best.pt").write_bytes(best)
    for text in ("", "{", "[1]", "5"):
        (folder / "earlier.json").write_text(text)
        refused("earlier.json: is damaged")
    (folder / "earlier.json").unlink()
    settings = json.loads((folder / "config.json").read_text())
    for text in (
        *(
            json.dumps({**settings, name: 8.5})
            for name in ("games", "iterations", "threads", "seed")
        ),
        json.dumps({**settings, "opponents": [1]}),
        json.dumps({**settings, "device": None}),
        json.dumps({**settings, "algo": []}),
        "[]",
        "null",
        "[" * 100_000,
        "{",
    ):
        (folder / "config.json").write_text(text)
        refused("config.json: ")


@pytest.mark.parametrize("learner", [Learner, TdLearner])
def test_a_run_that_diverges_stops_and_keeps_nothing_of_it(
    learner: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny = Config(
        hidden=16, games=8, warm_start=0, iterations=4, eval_every=1, eval_pairs=1, threads=1
    )
    config = TINY if learner is Learner else replace(tiny, checkpoint_every=1)
    config = replace(config, eval_every=1)
    iterate = learner.iterate

    def broken(self: Any) -> dict[str, float]:
        numbers = dict(iterate(self))
        if self.iteration == 2:
            with torch.no_grad():
                for part in self.weights().values():
                    part.mul_(math.nan)
        return numbers

    monkeypatch.setattr(learner, "iterate", broken)
    with pytest.raises(CheckpointError, match=r"iteration 2: .* is not finite"):
        train(config, tmp_path / "run")
    assert load_model(tmp_path / "run" / "model")
    assert torch.load(tmp_path / "run" / "checkpoint.pt", weights_only=True)["iteration"] == 1
