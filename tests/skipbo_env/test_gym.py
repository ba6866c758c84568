"""The Gymnasium environment: its checker, opponents, seats, rewards, illegal actions, copies."""

from __future__ import annotations

import copy
import doctest
import json
import pickle
import random
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env

from skipbo_env import IllegalAction, SkipBoEnv, gym_env, record
from skipbo_env.engine import layout
from skipbo_env.game import Game
from skipbo_env.rules import Rules

FORMS: list[dict[str, Any]] = [
    {},
    {"observation": "cards", "dict_obs": True, "reward": "shaped", "players": 4},
    {
        "rules": "partners",
        "opponents": ["simple", "greedy", "random"],
        "seat": 2,
        "reward": "score",
    },
    {"opponents": lambda observation, mask, position: int(mask.argmax()), "observation": "cards"},
]


def pickled(env: Any) -> Any:
    return pickle.loads(pickle.dumps(env))  # noqa: S301 - our own


def play(env: Any, seed: int | None = None, most: int = 5000) -> tuple[float, dict[str, Any]]:
    """Play a game by the first legal action; the sum of rewards and the last info."""
    _, info = env.reset(seed=seed)
    total = 0.0
    for _ in range(most):
        _, reward, terminated, truncated, info = env.step(int(info["action_mask"].argmax()))
        total += reward
        if terminated or truncated:
            return total, info
    raise AssertionError("the game does not end")


@pytest.mark.parametrize("kwargs", FORMS, ids=lambda kwargs: ",".join(kwargs))
def test_gymnasiums_checker(kwargs: dict[str, Any]) -> None:
    env = gymnasium.make("skipbo_env:SkipBo-v0", **kwargs)
    check_env(env.unwrapped, skip_render_check="rules" in kwargs)


def test_examples_in_the_docstrings_run() -> None:
    result = doctest.testmod(gym_env)
    assert result.attempted
    assert not result.failed


@pytest.mark.parametrize("kwargs", FORMS, ids=lambda kwargs: ",".join(kwargs))
def test_observations_are_of_the_space_and_masks_are_usable(kwargs: dict[str, Any]) -> None:
    env = SkipBoEnv(**kwargs)
    rng = np.random.default_rng(0)
    for _ in range(3):
        observation, info = env.reset()
        for _ in range(40):
            assert env.observation_space.contains(observation)
            mask = info["action_mask"]
            assert mask.dtype == np.int8
            assert mask.shape == (env.action_space.n,)
            assert mask.any()
            assert np.array_equal(env.action_masks(), mask.astype(bool))
            assert env.action_masks().dtype == np.bool_
            assert np.flatnonzero(mask).tolist() == env.legal_actions() == env.game.legal_actions()
            assert env.player == info["player"] == env.game.player
            if kwargs.get("dict_obs"):
                assert np.array_equal(observation["action_mask"], mask)
            action = rng.choice(np.flatnonzero(mask))
            observation, reward, terminated, truncated, info = env.step(action)
            assert type(reward) is float
            assert type(terminated) is bool
            assert type(truncated) is bool
            if terminated or truncated:
                assert info["action_mask"].all()
                assert env.observation_space.contains(observation)
                break


def test_the_observation_is_the_learners() -> None:
    env = SkipBoEnv(players=3, seat=1)
    observation, _ = env.reset(seed=3)
    assert np.array_equal(observation, env.game.observation(1))
    observation = env.step(env.legal_actions()[-1])[0]
    assert np.array_equal(observation, env.game.observation(1))


def test_nothing_hidden_is_observed() -> None:
    env = SkipBoEnv(players=3)
    env.reset(seed=3)
    for step in range(20):
        other = copy.deepcopy(env)
        other._table.states[0] = env.game.determinize(env.player, seed=step).state
        assert not np.array_equal(other._table.states, env._table.states)
        assert other.position() == env.position()
        assert (
            other.game.observation(env.player).tobytes()
            == env.game.observation(env.player).tobytes()
        )
        env.step(env.legal_actions()[0])
        if env.game.over:
            break


def test_stored_arrays_stay_as_they_are() -> None:
    env = SkipBoEnv(dict_obs=True)
    observation, info = env.reset(seed=1)
    stored = []
    for _ in range(20):
        stored.append(((observation, info), copy.deepcopy((observation, info))))
        observation, _, _, _, info = env.step(env.legal_actions()[0])
    for (observation, info), (kept_observation, kept_info) in stored:
        assert np.array_equal(observation["observation"], kept_observation["observation"])
        assert np.array_equal(observation["action_mask"], kept_observation["action_mask"])
        assert np.array_equal(info["action_mask"], kept_info["action_mask"])


def test_the_seat_is_random_unless_given() -> None:
    env = SkipBoEnv(players=4, opponents="random")
    assert {env.reset(seed=seed)[1]["player"] for seed in range(60)} == {0, 1, 2, 3}
    env.reset(seed=1)
    assert {env.reset()[1]["player"] for _ in range(60)} == {0, 1, 2, 3}
    fixed = SkipBoEnv(players=4, seat=2, opponents="random")
    assert {fixed.reset(seed=seed)[1]["player"] for seed in range(20)} == {2}


@pytest.mark.parametrize("opponents", ["greedy", [lambda o, mask, p: int(mask.argmax())] * 2])
@pytest.mark.parametrize("reward", ["win", "score", "shaped"])
def test_the_learner_is_paid_for_wins_and_for_losses(reward: str, opponents: Any) -> None:
    # The learner moves first, so that no stock card is played before it can be paid for it.
    rules = Rules(stock_size=3, players=3, first_player=0)
    env = SkipBoEnv(rules=rules, reward=reward, opponents=opponents, seat=0)
    won = set()
    for seed in range(25):
        total, info = play(env, seed)
        result = env.game.result
        assert result is not None
        assert info["winner"] == result["winner"]
        assert info["reason"] == layout.STOCK_EMPTY
        learner_won = result["winner"] == env.player
        won.add(learner_won)
        if reward == "win":
            assert total == pytest.approx(1.0 if learner_won else -0.5)
        elif reward == "score":
            gain = max(result["scores"]) / 100
            assert total == pytest.approx(gain if learner_won else -gain / 2)
        else:
            state = env.game.state
            played = [(3 - int(state[layout.board_at(board)])) / 3 for board in range(3)]
            shaped = played[0] - (played[1] + played[2]) / 2
            assert total == pytest.approx((1.0 if learner_won else -0.5) + shaped)
        assert info["rewards"].sum() == pytest.approx(0)
    assert won == {True, False}


def test_opponents_come_in_seat_order_and_see_public_data_only() -> None:
    seen: list[tuple[int, int]] = []

    def opponent(name: int) -> Any:
        def choose(observation: Any, mask: Any, position: Any) -> int:
            assert observation.dtype == np.float32
            assert set(position["players"][0]) == {
                "stock_top",
                "stock_size",
                "discards",
                "hand_size",
            }
            seen.append((name, position["you"]))
            return int(mask.argmax())

        return choose

    env = SkipBoEnv(players=4, seat=3, opponents=[opponent(0), opponent(1), opponent(2)])
    play(env, seed=1)
    assert set(seen) == {(0, 0), (1, 1), (2, 2)}


def test_an_opponent_with_act_gets_a_game_dealt_anew() -> None:
    class Spy:
        def __init__(self) -> None:
            self.games: list[Game] = []

        def act(self, game: Game) -> int:
            self.games.append(game)
            return game.legal_actions()[0]

    spy = Spy()
    env = SkipBoEnv(opponents=spy, seat=0)
    play(env, seed=1)
    true, shown = Game(seed=1), spy.games[0]
    assert true.state[layout.AT_DRAW] == shown.state[layout.AT_DRAW]
    assert layout.draw_cards(true.state)[-20:] != layout.draw_cards(shown.state)[-20:]


@pytest.mark.parametrize("opponents", [["greedy"], ["greedy"] * 3, 7, "no such agent"])
def test_bad_opponents(opponents: Any) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the agents' own messages
        SkipBoEnv(players=3, opponents=opponents)


def test_an_opponents_illegal_choice_is_named() -> None:
    env = SkipBoEnv(
        opponents=lambda observation, mask, position: 124, seat=0, rules=Rules(first_player=1)
    )
    with pytest.raises(IllegalAction, match="opponent in seat 1"):
        env.reset(seed=1)


def test_an_illegal_action_ends_the_game_or_raises() -> None:
    env = SkipBoEnv()
    env.reset(seed=1)
    observation, reward, terminated, truncated, info = env.step(124)
    assert (reward, terminated, truncated) == (-1.0, True, False)
    assert env.observation_space.contains(observation)
    assert info["action_mask"].all()
    assert info["winner"] == -1
    with pytest.raises(ResetNeeded):
        env.step(0)
    env.reset()
    assert env.step(2**64)[1:4] == (-1.0, True, False)

    strict = SkipBoEnv(illegal="raise")
    strict.reset(seed=1)
    before = strict.game.state
    for action in (124, -1, 125, 1.5, 2**63, 2**64, -(2**64), 10**5000):
        with pytest.raises(IllegalAction):
            strict.step(action)
    assert np.array_equal(strict.game.state, before)
    strict.step(strict.legal_actions()[0])


def test_the_turn_limit_truncates() -> None:
    env = SkipBoEnv(rules=Rules(max_turns=4), opponents="random")
    _, info = env.reset(seed=1)
    while True:
        _, reward, terminated, truncated, info = env.step(
            int(np.flatnonzero(info["action_mask"])[-1])
        )
        if terminated or truncated:
            break
    assert (terminated, truncated, reward, info["reason"]) == (False, True, 0.0, layout.TURN_LIMIT)


def test_a_seat_that_could_never_act_is_refused() -> None:
    with pytest.raises(ValueError, match="never acts"):
        SkipBoEnv(rules=Rules(max_turns=1, first_player=0), seat=1)
    env = SkipBoEnv(rules=Rules(max_turns=1, first_player=0), opponents="random")
    assert {env.reset(seed=seed)[1]["player"] for seed in range(10)} == {0}


def test_seeds_decide_every_later_game() -> None:
    first, second = SkipBoEnv(opponents="random"), SkipBoEnv(opponents="random")
    second.reset(seed=99)
    totals = [[play(env, seed)[0] for seed in (4, None, None)] for env in (first, second)]
    assert totals[0] == totals[1]
    assert np.array_equal(first.game.state, second.game.state)
    assert np.array_equal(SkipBoEnv().reset(seed=4)[0], SkipBoEnv().reset(seed=4)[0])
    starts = [SkipBoEnv(rules=Rules(first_player=0), seat=0) for _ in range(2)]
    for env in starts:
        env.reset(seed=11)
    assert np.array_equal(starts[0].game.state, Game(Rules(first_player=0), seed=11).state)


def test_no_global_generator_is_used_or_changed() -> None:
    totals = []
    for seed in (1, 2):
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002 - the global one, on purpose
        before = random.getstate(), np.random.get_state()[1].tobytes()  # noqa: NPY002
        env = SkipBoEnv(opponents=["random", "greedy"], players=3, rules="short")
        totals.append([play(env, 4)[0] for _ in range(3)])
        assert before == (random.getstate(), np.random.get_state()[1].tobytes())  # noqa: NPY002
    assert totals[0] == totals[1]


def test_a_seeded_game_replays_across_reshuffles() -> None:
    env, twin = (SkipBoEnv(opponents="play-first") for _ in range(2))
    twin.reset(seed=1)
    reshuffles = 0
    for seed in range(4):
        info = env.reset(seed=seed)[1]
        twin.reset(seed=seed)
        over = False
        while not over:
            action = int(info["action_mask"].argmax())
            step, other = env.step(action), twin.step(action)
            assert np.array_equal(step[0], other[0])
            assert step[1:4] == other[1:4]
            over, info = step[2] or step[3], step[-1]
        reshuffles += int(env.game.state[layout.RESHUFFLES])
    assert reshuffles > 3


@pytest.mark.parametrize("observation", ["features", "cards"])
def test_the_last_observation_is_the_learners_view_of_the_finished_game(observation: str) -> None:
    env = SkipBoEnv(rules=Rules(stock_size=2), players=3, observation=observation)
    winners = set()
    for seed in range(12):
        info = env.reset(seed=seed)[1]
        over = False
        while not over:
            action = int(info["action_mask"].argmax())
            seen, _, terminated, truncated, info = env.step(action)
            over = terminated or truncated
        game = env.game
        assert game.over
        assert np.array_equal(seen, game.observation(env.player, observation))
        winners.add(game.result["winner"] == env.player)  # type: ignore[index]
    assert winners == {True, False}


def test_sampling_with_the_mask_stays_legal() -> None:
    env = SkipBoEnv(illegal="raise", rules="short", opponents="random")
    info = env.reset(seed=1)[1]
    env.action_space.seed(1)
    for _ in range(300):
        mask = info["action_mask"]
        action = env.action_space.sample(mask)
        assert mask[action]
        *_, terminated, truncated, info = env.step(action)
        if terminated or truncated:
            info = env.reset()[1]


@pytest.mark.parametrize("how", [copy.deepcopy, pickled])
def test_copies_keep_the_game_in_progress(how: Any) -> None:
    env = gymnasium.make("skipbo_env:SkipBo-v0", opponents="simple", rules="short")
    _, info = env.reset(seed=3)
    for _ in range(10):
        info = env.step(int(info["action_mask"].argmax()))[-1]
    twin = how(env)
    for _ in range(10):
        action = int(info["action_mask"].argmax())
        step, other = env.step(action), twin.step(action)
        assert np.array_equal(step[0], other[0])
        assert step[1:4] == other[1:4]
        info = step[-1]
    assert np.array_equal(env.unwrapped.game.state, twin.unwrapped.game.state)


def test_wrappers() -> None:
    env = gymnasium.make("skipbo_env:SkipBo-v0", dict_obs=True, max_episode_steps=30)
    env = gymnasium.wrappers.RecordEpisodeStatistics(gymnasium.wrappers.FlattenObservation(env))
    observation, info = env.reset(seed=1)
    assert observation.shape == (592 + 125,)
    masks = env.get_wrapper_attr("action_masks")
    assert np.array_equal(masks(), info["action_mask"].astype(bool))
    for _ in range(30):
        _, _, terminated, truncated, info = env.step(int(np.flatnonzero(masks())[-1]))
        if terminated or truncated:
            break
    assert "episode" in info


def test_settings_are_checked() -> None:
    for name, value in {
        "observation": "pixels",
        "reward": "points",
        "illegal": "ignore",
        "render_mode": "svg",
        "seat": 2,
        "rules": "no such",
    }.items():
        with pytest.raises(ValueError, match=name):
            SkipBoEnv(**{name: value})


def test_after_an_opponents_error_only_a_reset_goes_on() -> None:
    """The learner must not get the hand of the seat that failed."""
    calls = []

    def failing(observation: Any, mask: Any, player: int) -> int:
        calls.append(player)
        if len(calls) == 2:
            raise RuntimeError("bot")
        return int(np.flatnonzero(mask)[0])

    env = SkipBoEnv(opponents=failing, seat=0, rules=Rules(first_player=0, stock_size=10))
    _, info = env.reset(seed=1)
    masks = [info["action_mask"]]

    def step() -> None:
        masks[0] = env.step(int(np.flatnonzero(masks[0])[-1]))[-1]["action_mask"]

    with pytest.raises(RuntimeError, match="bot"):  # noqa: PT012 - which step it is does not matter
        for _ in range(200):
            step()
    with pytest.raises(ResetNeeded):
        step()
    _, info = env.reset()
    env.step(int(np.flatnonzero(info["action_mask"])[-1]))


def last_of(observation: Any, mask: Any, position: Any) -> int:
    """An opponent in Python."""
    return int(np.flatnonzero(mask)[-1])


def everything(game: Game) -> tuple[Any, ...]:
    """All zones, hidden ones too, and what shuffles next; not cells that no pile uses."""
    state, rules = game.state, game.rules
    return (
        [game.position(seat) for seat in range(rules.players)],
        [layout.stock_cards(state, board) for board in range(rules.boards)],
        layout.draw_cards(state),
        [int(state[cell]) for cell in (layout.PLAYER, layout.RNG_LO, layout.RNG_HI)],
    )


@pytest.mark.parametrize(
    ("rules", "opponents", "seat"),
    [
        (Rules(stock_size=5), "greedy", None),
        (Rules(stock_size=5), "random", 1),
        (Rules(stock_size=5), last_of, None),
        (Rules(players=4, stock_size=4), ["simple", last_of, "random"], None),
        (Rules(players=4, teams=2, stock_size=4, must_play_stock=True), "greedy", 3),
        (Rules(stock_size=1, first_player=0), "greedy", 1),  # some end before the learner's turn
    ],
)
def test_the_record_is_that_of_the_game(rules: Rules, opponents: Any, seat: int | None) -> None:
    """Replayed it stands as the environment does, in the midst and at the end, after seeded and
    unseeded resets; who plays in compiled code has its moves in it too.
    """
    env = SkipBoEnv(rules=rules, opponents=opponents, seat=seat)
    with pytest.raises(ResetNeeded):
        env.record()
    rng = np.random.default_rng(3)
    for game in range(30):
        _, info = env.reset(seed=100 + game if game % 3 == 0 else None)
        done = False
        while True:
            told = json.loads(json.dumps(env.record()))
            again = Game.from_record(told)
            assert everything(again) == everything(env.game)
            if game % 3 == 0 and rules.stocks != 1:
                assert told["seed"] == 100 + game
            if done:
                break
            for _ in range(int(rng.integers(1, 30))):
                legal = np.flatnonzero(info["action_mask"])
                _, _, terminated, truncated, info = env.step(int(rng.choice(legal[:3])))
                done = terminated or truncated
                if done:
                    break
        record.check(told)
        assert env.record(["a"] * rules.players)["agents"] == ["a"] * rules.players
    env.reset(seed=5)
    env.step(int(np.flatnonzero(env.action_masks())[0]))
    assert copy.deepcopy(env).record() == env.record() == pickled(env).record()
