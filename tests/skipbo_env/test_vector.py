"""The vector environment: equal to games stepped one by one, in every mode and number of rows."""

from __future__ import annotations

import copy
import doctest
import pickle
import random
from collections import Counter
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from skipbo_env import IllegalAction, SkipBoEnv, SkipBoVectorEnv, skipbo_v0, vector_env
from skipbo_env.engine import layout
from skipbo_env.game import Game
from skipbo_env.rules import Rules

TABLES: list[dict[str, Any]] = [
    *({"players": players, "rules": Rules(stock_size=4)} for players in range(2, 7)),
    {"rules": Rules(players=4, teams=2, stock_size=4), "reward": "shaped"},
    {"rules": Rules(players=6, teams=3, team_discard="team", stock_size=2), "reward": "score"},
    {"rules": Rules(stock_size=2, copies=2, wilds=6, hand_size=3)},
    {"rules": Rules(max_turns=9, players=3), "reward": "shaped"},
]
SHORT = Rules(stock_size=2)
MODES = list(AutoresetMode)


def pickled(env: Any) -> Any:
    return pickle.loads(pickle.dumps(env))  # noqa: S301 - our own


def plays_first(infos: dict[str, Any]) -> np.ndarray:
    """The first legal action of each row: a policy that ends games."""
    return infos["action_mask"].argmax(axis=1)


def run(env: SkipBoVectorEnv, steps: int, seed: int = 7, choose: Any = None) -> list[Any]:
    """The answers of a reset and some steps, by sampled actions unless told otherwise."""
    answers: list[Any] = [env.reset(seed=seed)]
    for _ in range(steps):
        actions = env.sample_actions() if choose is None else choose(answers[-1][-1])
        answers.append((*env.step(actions), actions))
        answers[-1] = (*answers[-1][:4], answers[-1][5], answers[-1][4])  # infos last
    return answers


def same(a: Any, b: Any) -> bool:
    """Whether two answers are equal, arrays, dicts and object arrays included."""
    if isinstance(a, dict):
        return set(a) == set(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.ndarray) and a.dtype == object:
        return len(a) == len(b) and all(map(same, a, b))
    return a is b or np.array_equal(a, b)


def live(game: Game) -> list[Any]:
    """All of a game that matters: an array keeps old cards in cells that no zone reaches."""
    state = game.state
    stocks = [layout.stock_cards(state, board) for board in range(game.rules.boards)]
    return [state[: state[layout.AT_STOCKS]].tolist(), stocks, layout.draw_cards(state)]


def rows(answer: Any, wanted: slice) -> Any:
    """Some rows of an answer."""
    if isinstance(answer, dict):
        return {key: rows(value, wanted) for key, value in answer.items()}
    if isinstance(answer, tuple):
        return tuple(rows(value, wanted) for value in answer)
    return answer[wanted]


@pytest.mark.parametrize("observation", ["features", "cards"])
@pytest.mark.parametrize("kwargs", TABLES, ids=str)
def test_self_play_is_equal_to_games_stepped_one_by_one(
    kwargs: dict[str, Any], observation: str
) -> None:
    env = SkipBoVectorEnv(5, observation=observation, **kwargs)
    rules = env.rules
    observations, infos = env.reset(seed=3)
    games = [Game(rules, seed=3 + row) for row in range(5)]
    ended = 0
    for step in range(250):
        for row, game in enumerate(games):
            assert infos["player"][row] == game.player
            assert np.array_equal(infos["action_mask"][row], game.mask())
            assert np.array_equal(observations[row], game.observation(kind=observation))
        actions = env.sample_actions() if step % 3 == 0 else plays_first(infos)
        seats = infos["player"]
        observations, rewards, terminations, truncations, infos = env.step(actions)
        for row, game in enumerate(games):
            seat = game.player
            assert seats[row] == seat
            assert rewards[row] == infos["rewards"][row, seat]
            stock = actions[row] < 4 or 125 <= actions[row] < 129
            game.apply(int(actions[row]))
            paid = expected_rewards(game, rules.side_of(seat) if stock else None, env.reward)
            assert infos["rewards"][row] == pytest.approx(paid)
            assert (terminations[row] or truncations[row]) == game.over
            assert truncations[row] == game.truncated
            if game.over:
                ended += 1
                result = game.result
                assert result is not None
                final = infos["final_info"]
                assert infos["_final_info"][row]
                assert infos["_final_obs"][row]
                assert np.array_equal(infos["final_obs"][row], game.observation(seat, observation))
                assert np.array_equal(final["rewards"][row], infos["rewards"][row])
                assert final["winner"][row] == (
                    -1 if result["winner"] is None else result["winner"]
                )
                assert layout.REASONS[final["reason"][row]] == result["reason"]
                games[row] = env.game(row)
                assert games[row].state[layout.TURNS] == 0
            elif "final_obs" in infos:
                assert infos["final_obs"][row] is None
                assert not infos["_final_obs"][row]
            assert np.array_equal(env.game(row).state, games[row].state)
    assert ended


def expected_rewards(game: Game, stock_side: int | None, reward: str) -> list[float]:
    """What the last action paid every seat, worked out from design's sentences."""
    rules = game.rules
    gains = [0.0] * rules.sides
    if reward == "shaped" and stock_side is not None:
        gains[stock_side] += 1 / rules.stocks
    if game.over and game.result and game.result["winner"] is not None:
        winner = game.result["winner"]
        gains[winner] += game.scores[winner] / 100 if reward == "score" else 1.0
    others = [(sum(gains) - gain) / (rules.sides - 1) for gain in gains]
    return [gains[rules.side_of(p)] - others[rules.side_of(p)] for p in range(rules.players)]


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("opponents", [None, "greedy", "random"])
def test_results_depend_neither_on_the_number_of_rows_nor_on_threads(
    opponents: Any, mode: Any
) -> None:
    kwargs = {"rules": SHORT, "players": 3, "opponents": opponents, "reward": "shaped"}
    steps = 25
    if mode == AutoresetMode.DISABLED:
        kwargs["rules"], steps = Rules(), 8  # no game ends in these few steps
    kwargs["autoreset_mode"] = mode
    many = run(SkipBoVectorEnv(7, **kwargs), steps)
    few = run(SkipBoVectorEnv(3, **kwargs), steps)
    threads = run(SkipBoVectorEnv(7, num_threads=3, **kwargs), steps)
    last = run(SkipBoVectorEnv(2, **kwargs), steps, seed=12)
    for step in range(steps + 1):
        assert same(many[step], threads[step])
        assert same(rows(many[step][0], slice(3)), few[step][0])
        assert same(rows(many[step][0], slice(5, 7)), last[step][0])
        if step:
            assert same(rows(many[step][1:4], slice(3)), few[step][1:4])
            assert same(rows(many[step][1:4], slice(5, 7)), last[step][1:4])


def test_more_threads_than_rows() -> None:
    assert same(run(SkipBoVectorEnv(2, num_threads=5), 5), run(SkipBoVectorEnv(2), 5))


@pytest.mark.parametrize("reward", ["win", "shaped"])
@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP], ids=str)
@pytest.mark.parametrize(
    "opponents",
    [
        "greedy",
        ["random", "simple"],
        ["play-first", lambda observation, mask, position: int(mask.argmax())],
    ],
    ids=["greedy", "two", "callable"],
)
def test_one_seat_is_equal_to_single_environments(opponents: Any, mode: Any, reward: str) -> None:
    kwargs = {"players": 3, "rules": SHORT, "opponents": opponents, "reward": reward}
    single = SyncVectorEnv([lambda: SkipBoEnv(**kwargs)] * 4, autoreset_mode=mode)
    vector = SkipBoVectorEnv(4, autoreset_mode=mode, **kwargs)
    expected, got = single.reset(seed=5), vector.reset(seed=5)
    ended = 0
    for _ in range(60):
        assert np.array_equal(expected[0], got[0])
        assert np.array_equal(expected[-1]["action_mask"], got[-1]["action_mask"])
        assert np.array_equal(expected[-1]["player"], got[-1]["player"])
        if len(expected) == 5:
            for left, right in zip(expected[1:4], got[1:4], strict=True):
                assert np.array_equal(left, right)
            over = got[2] | got[3]
            ended += int(over.sum())
            if mode == AutoresetMode.SAME_STEP and over.any():
                assert np.array_equal(over, got[-1]["_final_obs"])
                for row in np.flatnonzero(over):
                    left, right = expected[-1], got[-1]
                    assert np.array_equal(left["final_obs"][row], right["final_obs"][row])
                    for key in ("winner", "reason", "rewards"):
                        assert np.array_equal(
                            left["final_info"][key][row], right["final_info"][key][row]
                        )
        actions = plays_first(got[-1])
        expected, got = single.step(actions), vector.step(actions)
    assert ended > 5


def test_the_loser_is_paid_too() -> None:
    env = SkipBoVectorEnv(8, rules=SHORT, opponents="greedy")
    _, infos = env.reset(seed=1)
    paid: Counter[float] = Counter()
    for _ in range(200):
        _, rewards, terminations, _, infos = env.step(plays_first(infos))
        paid.update(rewards[terminations].tolist())
        assert not rewards[~terminations].any()
    assert paid[1.0] > 5
    assert paid[-1.0] > 5


def finish(env: SkipBoVectorEnv, infos: dict[str, Any]) -> tuple[Any, np.ndarray]:
    """Step until some row ends: the answer and the rows."""
    for _ in range(500):
        answer = env.step(plays_first(infos))
        infos = answer[-1]
        over = answer[2] | answer[3]
        if over.any():
            return answer, over
    raise AssertionError("no game ends")


@pytest.mark.parametrize("opponents", [None, "simple"])
def test_next_step_shows_the_end_and_then_deals(opponents: Any) -> None:
    env = SkipBoVectorEnv(6, rules=SHORT, autoreset_mode="NextStep", opponents=opponents)
    _, infos = env.reset(seed=2)
    (observations, _, _, _, infos), over = finish(env, infos)
    row = int(np.flatnonzero(over)[0])
    game = env.game(row)
    assert game.over
    assert np.array_equal(observations[row], game.observation(int(infos["player"][row])))
    assert infos["action_mask"][over].all()
    assert infos["winner"][row] == game.result["winner"]  # type: ignore[index]
    assert (infos["winner"][~over] == -1).all()
    assert np.array_equal(infos["_winner"], over)
    assert "final_obs" not in infos
    actions = plays_first(infos)
    actions[row] = 124  # ignored
    assert env.sample_actions()[row] == 0
    observations, rewards, terminations, truncations, infos = env.step(actions)
    assert not env.game(row).over
    assert rewards[row] == 0
    assert not terminations[row]
    assert not truncations[row]
    assert not infos["rewards"][row].any()
    assert np.array_equal(infos["action_mask"][row], env.game(row).mask())


@pytest.mark.parametrize("opponents", [None, "simple"])
def test_disabled_waits_for_a_reset_of_the_finished_rows(opponents: Any) -> None:
    env = SkipBoVectorEnv(
        6, rules=SHORT, autoreset_mode=AutoresetMode.DISABLED, opponents=opponents
    )
    _, infos = env.reset(seed=2)
    (observations, _, _, _, infos), over = finish(env, infos)
    assert infos["action_mask"][over].all()
    with pytest.raises(ResetNeeded, match=f"row {np.flatnonzero(over)[0]}"):
        env.step(plays_first(infos))
    before = [env.game(row).state for row in range(6)]
    options = {"reset_mask": over, "unknown": 1}
    again, infos = env.reset(options=options)
    assert options["reset_mask"] is over
    for row in range(6):
        assert np.array_equal(env.game(row).state, before[row]) == (not over[row])
        assert np.array_equal(again[row], observations[row]) == (not over[row])
    assert np.array_equal(infos["action_mask"][0], env.game(0).mask())
    env.step(plays_first(infos))
    seeded = SkipBoVectorEnv(6, rules=SHORT, opponents=opponents)
    expected, _ = seeded.reset(seed=40)
    got, _ = env.reset(seed=40, options={"reset_mask": over})
    assert np.array_equal(got[over], expected[over])


def test_finished_rows_give_no_nan_in_a_masked_softmax() -> None:
    env = SkipBoVectorEnv(6, rules=SHORT, autoreset_mode=AutoresetMode.NEXT_STEP)
    _, infos = env.reset(seed=2)
    (_, _, _, _, infos), _ = finish(env, infos)
    logits = np.where(infos["action_mask"] > 0, 0.0, -np.inf)
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    assert np.isfinite(odds / odds.sum(axis=1, keepdims=True)).all()


def test_arrays_are_new_unless_copy_is_false() -> None:
    env = SkipBoVectorEnv(4, rules=SHORT)
    answers = run(env, 60, choose=plays_first)
    kept = copy.deepcopy(answers)
    run(env, 60, seed=8, choose=plays_first)
    assert same(answers, kept)

    shared = SkipBoVectorEnv(4, rules=SHORT, copy=False)
    results = run(shared, 60, choose=plays_first)
    assert results[1][0] is results[2][0]
    assert results[1][-1]["action_mask"] is results[2][-1]["action_mask"]
    assert same(results[-1], answers[-1])


def test_illegal_actions_name_their_row_and_change_nothing() -> None:
    env = SkipBoVectorEnv(4)
    _, infos = env.reset(seed=1)
    before = [env.game(row).state for row in range(4)]
    good = plays_first(infos)
    for bad in (124, -1, 125, 9999):
        actions = good.copy()
        actions[2] = bad
        with pytest.raises(IllegalAction, match="row 2"):
            env.step(actions)
    for wrong in (good[:3], good.astype(np.float64), good[:, None], None):
        with pytest.raises(IllegalAction, match="actions"):
            env.step(wrong)
    assert all(np.array_equal(env.game(row).state, before[row]) for row in range(4))
    for kind in (np.int32, np.uint8, list):
        env.reset(seed=1)
        env.step(good.tolist() if kind is list else good.astype(kind))


def test_sampled_actions_are_legal_uniform_and_of_the_rows_own() -> None:
    env = SkipBoVectorEnv(1)
    _, infos = env.reset(seed=1)
    legal = np.flatnonzero(infos["action_mask"][0])
    counts = Counter(int(env.sample_actions()[0]) for _ in range(6000))
    assert sorted(counts) == legal.tolist()
    expected = 6000 / len(legal)
    chi2 = sum((count - expected) ** 2 / expected for count in counts.values())
    assert chi2 < 3 * len(legal)


def test_seeds() -> None:
    env = SkipBoVectorEnv(3)
    first, _ = env.reset(seed=5)
    for row in range(3):
        assert live(env.game(row)) == live(Game(seed=5 + row))
    env.step(env.sample_actions())
    second, _ = env.reset()
    assert np.array_equal(env.reset(seed=5)[0], first)
    env.step(env.sample_actions())
    assert np.array_equal(env.reset()[0], second)
    listed, _ = env.reset(seed=[7, None, 5])
    assert np.array_equal(listed[2], first[0])
    assert not np.array_equal(SkipBoVectorEnv(3).reset()[0], SkipBoVectorEnv(3).reset()[0])
    env.reset(seed=(1 << 64) - 1)
    assert live(env.game(1)) == live(Game(seed=0))
    for bad in (-1, 1.5, [1, 2]):
        with pytest.raises(ValueError, match="seed"):
            env.reset(seed=bad)  # type: ignore[arg-type]


def test_the_pettingzoo_environment_plays_the_same_games() -> None:
    vector, aec = SkipBoVectorEnv(1, rules=SHORT), skipbo_v0.raw_env(rules=SHORT)
    _, infos = vector.reset(seed=5)
    aec.reset(seed=5)
    for _ in range(200):
        actions = plays_first(infos)
        observations, _, terminations, _, infos = vector.step(actions)
        aec.step(int(actions[0]))
        if terminations[0]:
            aec.reset()
        assert np.array_equal(observations[0], aec.observe(aec.agent_selection)["observation"])


def test_seats() -> None:
    env = SkipBoVectorEnv(200, players=4, opponents="random")
    _, infos = env.reset(seed=1)
    assert set(infos["player"].tolist()) == {0, 1, 2, 3}
    fixed = SkipBoVectorEnv(20, players=4, opponents="random", seat=2)
    assert set(fixed.reset(seed=1)[1]["player"].tolist()) == {2}
    with pytest.raises(ValueError, match="seat"):
        SkipBoVectorEnv(2, seat=1)
    with pytest.raises(ValueError, match="seat"):
        SkipBoVectorEnv(2, seat=2, opponents="greedy")


def test_nothing_hidden_is_observed() -> None:
    """Rows dealt anew from what their seats see give the same bytes."""
    for observation in ("features", "cards"):
        env = SkipBoVectorEnv(6, players=3, observation=observation)
        _, infos = env.reset(seed=1)
        for _ in range(30):
            env.step(env.sample_actions())
        none = np.zeros(6, dtype=bool)
        none[0] = True
        seen, infos = env.reset(options={"reset_mask": none})
        for row in range(1, 6):
            game = env.game(row).determinize(int(infos["player"][row]), seed=row)
            assert not np.array_equal(game.state, env._table.states[row])
            env._table.states[row] = game.state
        again, more = env.reset(options={"reset_mask": none})
        assert np.array_equal(seen[1:], again[1:])
        assert np.array_equal(infos["action_mask"][1:], more["action_mask"][1:])


def test_the_shaped_weight_can_be_annealed() -> None:
    env = SkipBoVectorEnv(16, rules=Rules(stock_size=10), reward="shaped", shaped_weight=2.0)
    _, infos = env.reset(seed=1)
    paid = []
    for _ in range(15):
        actions = plays_first(infos)
        _, rewards, _, _, infos = env.step(actions)
        paid.append(set(rewards[actions < 4].tolist()))
        env.shaped_weight /= 2
    assert sum(map(bool, paid)) > 3
    for step, values in enumerate(paid):
        assert values <= {0.2 / 2**step}


@pytest.mark.parametrize("opponents", [None, "random"])
def test_no_global_generator_is_used_or_changed(opponents: Any) -> None:
    answers = []
    for seed in (1, 2):
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002 - the global one, on purpose
        before = random.getstate(), np.random.get_state()[1].tobytes()  # noqa: NPY002
        answers.append(run(SkipBoVectorEnv(3, rules=SHORT, opponents=opponents), 60))
        assert before == (random.getstate(), np.random.get_state()[1].tobytes())  # noqa: NPY002
    assert same(*answers)


@pytest.mark.parametrize("opponents", [None, "play-first"])
def test_seeded_rows_replay_across_reshuffles(opponents: Any) -> None:
    env, twin = (
        SkipBoVectorEnv(rows, opponents=opponents, autoreset_mode="NextStep") for rows in (4, 2)
    )
    infos, other = env.reset(seed=3)[1], twin.reset(seed=3)[1]
    most = 0
    for _ in range(400):
        infos, other = env.step(plays_first(infos))[-1], twin.step(plays_first(other))[-1]
        for row in range(2):
            game = env.game(row)
            assert live(game) == live(twin.game(row))
            most = max(most, int(game.state[layout.RESHUFFLES]))
    assert most > 1


@pytest.mark.parametrize("how", [copy.deepcopy, pickled])
@pytest.mark.parametrize("threads", [1, 2])
def test_copies_keep_the_games_in_progress(how: Any, threads: int) -> None:
    env = SkipBoVectorEnv(3, rules=SHORT, num_threads=threads)
    run(env, 20)
    twin = how(env)
    for _ in range(40):
        actions = env.sample_actions()
        assert np.array_equal(actions, twin.sample_actions())
        assert same(env.step(actions), twin.step(actions))
    env.close()
    twin.close()


@pytest.mark.parametrize("opponents", [None, "play-first"])
def test_a_restored_snapshot_goes_on_like_the_environment(opponents: Any) -> None:
    def played(env: SkipBoVectorEnv, steps: int) -> list[Any]:
        told = []
        for _ in range(steps):
            observations, rewards, *_, infos = env.step(env.sample_actions())
            told.append((observations, rewards, infos["action_mask"], infos["player"]))
        return told

    first, other = (SkipBoVectorEnv(5, rules="short", opponents=opponents) for _ in range(2))
    first.reset(seed=3)
    played(first, 150)
    snapshot = first.snapshot()
    expected = played(first, 200)
    observations, infos = other.restore(snapshot)
    assert observations.shape == (5, other.single_observation_space.shape[0])
    assert infos["action_mask"].any(axis=1).all()
    for ours, theirs in zip(played(other, 200), expected, strict=True):
        for a, b in zip(ours, theirs, strict=True):
            assert np.array_equal(a, b)
    before = other.snapshot()
    for name in snapshot:
        with pytest.raises(ValueError, match=f"snapshot: {name}"):
            other.restore({**snapshot, name: snapshot[name][:4]})
        with pytest.raises(ValueError, match=f"snapshot: {name}"):
            other.restore({key: part for key, part in snapshot.items() if key != name})
    after = other.snapshot()
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_make_vec() -> None:
    env = gymnasium.make_vec(
        "skipbo_env:SkipBo-v0",
        num_envs=3,
        vectorization_mode="vector_entry_point",
        players=4,
        observation="cards",
        opponents="greedy",
        autoreset_mode=AutoresetMode.NEXT_STEP,
    )
    assert isinstance(env.unwrapped, SkipBoVectorEnv)
    assert env.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    observations, infos = env.reset(seed=1)
    assert env.observation_space.contains(observations)
    assert env.action_space.contains(plays_first(infos))
    wrapped = gymnasium.wrappers.vector.RecordEpisodeStatistics(env)
    wrapped.reset(seed=1)
    default = gymnasium.make_vec("SkipBo-v0", num_envs=2)
    assert default.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_infos_can_be_taken_apart_by_row(mode: AutoresetMode) -> None:
    env = gymnasium.wrappers.vector.DictInfoToList(
        SkipBoVectorEnv(4, rules=SHORT, autoreset_mode=mode, opponents="greedy")
    )
    _, infos = env.reset(seed=1)
    assert infos[2]["action_mask"].shape == (125,)
    assert isinstance(int(infos[2]["player"]), int)


@pytest.mark.parametrize("observation", ["features", "cards"])
def test_spaces(observation: str) -> None:
    env = SkipBoVectorEnv(4, observation=observation, rules=SHORT)
    _, infos = env.reset(seed=1)
    for _ in range(80):
        observations, rewards, terminations, truncations, infos = env.step(plays_first(infos))
        assert env.observation_space.contains(observations)
        assert rewards.dtype == np.float64
        assert terminations.dtype == truncations.dtype == np.bool_
        assert infos["action_mask"].dtype == np.int8
        assert infos["action_mask"].any(axis=1).all()


def test_settings_and_order_are_checked() -> None:
    env = SkipBoVectorEnv(2)
    for call in (env.sample_actions, lambda: env.step([0, 0])):
        with pytest.raises(ResetNeeded):
            call()
    with pytest.raises(ResetNeeded):
        env.reset(options={"reset_mask": np.array([True, False])})
    env.reset()
    with pytest.raises(ValueError, match="reset_mask"):
        env.reset(options={"reset_mask": np.array([1, 0])})
    for name, value in {
        "num_envs": 0,
        "num_threads": 0,
        "observation": "pixels",
        "reward": "points",
        "render_mode": "human",
        "autoreset_mode": "Sometimes",
    }.items():
        match = "Sometimes" if name == "autoreset_mode" else name
        with pytest.raises(ValueError, match=match):
            SkipBoVectorEnv(**{name: value})


def test_render() -> None:
    env = SkipBoVectorEnv(2, render_mode="ansi")
    env.reset(seed=1)
    pictures = env.render()
    assert pictures is not None
    assert [type(picture) for picture in pictures] == [str, str]


def test_examples_in_the_docstrings_run() -> None:
    result = doctest.testmod(vector_env)
    assert result.attempted
    assert not result.failed


def test_after_an_opponents_error_only_a_reset_of_all_goes_on() -> None:
    """A learner must not get the hand of the seat that failed."""
    calls = []

    def failing(observation: Any, mask: Any, player: int) -> int:
        calls.append(player)
        if len(calls) == 5:
            raise RuntimeError("bot")
        return int(np.flatnonzero(mask)[0])

    env = SkipBoVectorEnv(3, opponents=failing, rules=Rules(first_player=0), seat=0)
    env.reset(seed=1)
    with pytest.raises(RuntimeError, match="bot"):  # noqa: PT012 - which step it is does not matter
        for _ in range(200):
            env.step(env.sample_actions())
    with pytest.raises(ResetNeeded, match="opponent"):
        env.sample_actions()
    with pytest.raises(ResetNeeded, match="opponent"):
        env.step(np.zeros(3, np.int64))
    with pytest.raises(ResetNeeded, match="opponent"):
        env.reset(options={"reset_mask": np.array([True, False, False])})
    env.reset()
    env.step(env.sample_actions())
