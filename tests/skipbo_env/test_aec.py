"""The PettingZoo environment: PettingZoo's own tests, and the faults of others of its kind."""

from __future__ import annotations

import copy
import doctest
import pickle
import random
from typing import Any

import numpy as np
import pettingzoo
import pytest
from pettingzoo.test import api_test, render_test, seed_test

from skipbo_env import IllegalAction, skipbo_v0
from skipbo_env.engine import layout
from skipbo_env.engine.observe import cards_slices, features_slices
from skipbo_env.game import Game
from skipbo_env.rules import Rules

TABLES: list[dict[str, Any]] = [
    *({"players": players} for players in range(2, 7)),
    {"rules": "partners"},
    {"rules": {"players": 6, "teams": 3, "team_discard": "team"}},
]
SHORT = Rules(stock_size=3)


def first_legal(observation: dict[str, Any]) -> int:
    """Stock plays come first in the table, discards last: a policy that ends games."""
    return int(observation["action_mask"].argmax())


def pickled(env: Any) -> Any:
    return pickle.loads(pickle.dumps(env))  # noqa: S301 - our own


def play(env: Any, choose: Any = first_legal, most: int = 10_000) -> dict[str, float]:
    """Play to the end; what each agent was told by last() in all."""
    totals = dict.fromkeys(env.possible_agents, 0.0)
    for agent in env.agent_iter(most):
        observation, reward, termination, truncation, _ = env.last()
        totals[agent] += reward
        env.step(None if termination or truncation else choose(observation))
    return totals


def some_steps(env: Any, count: int, seed: int = 0) -> None:
    """Random legal steps, plays rather than discards."""
    rng = random.Random(seed)
    for _ in range(count):
        if not env.agents or env.terminations[env.agent_selection]:
            return
        legal = env.legal_actions()
        env.step(legal[0] if rng.random() < 0.7 else rng.choice(legal))


def raw(seed: int | None = 0, **kwargs: Any) -> Any:
    env = skipbo_v0.raw_env(**kwargs)
    env.reset(seed=seed)
    return env


# Once a game is over, api_test asks each agent that is done for its last observation, whose mask is
# zero by our contract; PettingZoo spares only one environment, by name, the warning. A mask of an
# agent that is to act is held against the legal actions in test_masks_only_for_the_seat_to_move.
zero_masks_at_the_end = pytest.mark.filterwarnings(
    "ignore:Action mask numpy array is all zeros:UserWarning:pettingzoo.test.api_test"
)


@zero_masks_at_the_end
@pytest.mark.parametrize("kwargs", TABLES, ids=str)
@pytest.mark.parametrize("make", [skipbo_v0.env, skipbo_v0.raw_env], ids=["env", "raw_env"])
def test_api(make: Any, kwargs: dict[str, Any]) -> None:
    api_test(make(**kwargs), num_cycles=1000)


@zero_masks_at_the_end
@pytest.mark.parametrize("observation", ["features", "cards"])
def test_api_of_whole_games(observation: str) -> None:
    api_test(skipbo_v0.env(rules=SHORT, observation=observation, reward="shaped"), num_cycles=1000)


@pytest.mark.parametrize("kwargs", TABLES, ids=str)
def test_seeds(kwargs: dict[str, Any]) -> None:
    seed_test(lambda: skipbo_v0.env(**kwargs), num_cycles=500)


def test_examples_in_the_docstrings_run() -> None:
    for module in (skipbo_v0,):
        result = doctest.testmod(module)
        assert result.attempted
        assert not result.failed


def test_rendering(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("PIL")
    render_test(lambda render_mode=None: skipbo_v0.env(render_mode=render_mode))
    assert "player 0" in capsys.readouterr().out


def test_rendering_without_a_mode_warns() -> None:
    env = raw(seed=1)
    with pytest.warns(UserWarning, match="render_mode"):
        assert env.render() is None


def test_metadata_and_names() -> None:
    env = skipbo_v0.env(players=3)
    assert env.metadata["name"] == "skipbo_v0"
    assert not env.metadata["is_parallelizable"]
    assert env.possible_agents == ["player_0", "player_1", "player_2"]
    assert env.action_space("player_0") is env.action_space("player_0")
    assert env.observation_space("player_1") is env.observation_space("player_1")
    assert not hasattr(skipbo_v0, "parallel_env")
    for observation, numbers in (("features", 592), ("cards", 56)):  # as the manual says
        space = skipbo_v0.env(observation=observation).observation_space("player_0")
        assert space["observation"].shape == (numbers,)
        assert space["action_mask"].shape == (125,)


@pytest.mark.skipif(
    not hasattr(pettingzoo, "make"), reason="PettingZoo before 1.27 has no registry"
)
def test_registry() -> None:
    env = pettingzoo.make("aec", "skipbo/skipbo-v0", players=3)
    env.reset(seed=1)
    assert env.num_agents == 3


@pytest.mark.parametrize("kwargs", TABLES, ids=str)
def test_masks_only_for_the_seat_to_move(kwargs: dict[str, Any]) -> None:
    env = raw(**kwargs)
    rng = random.Random(1)
    for _ in range(60):
        for agent in env.possible_agents:
            mask = env.observe(agent)["action_mask"]
            assert mask.dtype == np.int8
            assert set(np.unique(mask)) <= {0, 1}
            if agent == env.agent_selection:
                assert np.flatnonzero(mask).tolist() == env.legal_actions()
            else:
                assert not mask.any()
        if env.game.over:
            break
        env.step(rng.choice(env.legal_actions()))


@pytest.mark.parametrize("observation", ["features", "cards"])
@pytest.mark.parametrize("kwargs", TABLES, ids=str)
def test_nothing_hidden_is_observed(kwargs: dict[str, Any], observation: str) -> None:
    """A game dealt anew from what a seat sees gives that seat the same bytes."""
    env = raw(seed=3, observation=observation, **kwargs)
    for step in range(25):
        some_steps(env, 6, seed=step)
        for seat, agent in enumerate(env.possible_agents):
            other = copy.deepcopy(env)
            other._game = env.game.determinize(seat, seed=step)
            assert not np.array_equal(other._game.state, env._game.state)
            before, after = env.observe(agent), other.observe(agent)
            assert before["observation"].tobytes() == after["observation"].tobytes()
            assert before["action_mask"].tobytes() == after["action_mask"].tobytes()
            assert env.position(agent) == other.position(agent)


@pytest.mark.parametrize("kwargs", TABLES, ids=str)
def test_observations_say_what_the_position_says(kwargs: dict[str, Any]) -> None:
    """The named slices hold what their table says."""
    cards_env = raw(seed=5, observation="cards", **kwargs)
    features_env = raw(seed=5, observation="features", **kwargs)
    rules = cards_env.rules
    cards_at, features_at = cards_slices(rules), features_slices(rules)
    numbers = {str(rank): rank for rank in range(1, 13)} | {"S": 13}
    for step in range(12):
        some_steps(cards_env, 8, seed=step)
        some_steps(features_env, 8, seed=step)
        for seat, agent in enumerate(cards_env.possible_agents):
            position = cards_env.position(agent)
            cards = cards_env.observe(agent)["observation"]
            features = features_env.observe(agent)["observation"]
            assert cards[cards_at["height"]].tolist() == position["building"]
            heights = features[features_at["height"]].reshape(4, 12)
            assert heights.argmax(axis=1).tolist() == position["building"]
            hand = [0] * 13
            for card in position["hand"]:
                hand[numbers[card] - 1] += 1
            assert cards[cards_at["hand"]].tolist() == hand
            levels = features[features_at["hand"]].reshape(13, 4).sum(axis=1)
            assert levels.tolist() == [min(count, 4) for count in hand]
            boards = position["boards"] if rules.teams else position["players"]
            board, seen = boards[rules.board_of(seat)], cards[cards_at["board_0"]]
            top = numbers[board["stock_top"]] if board["stock_top"] else 0
            tops = [numbers[pile[-1]] if pile else 0 for pile in board["discards"]]
            depths = [len(pile) for pile in board["discards"]]
            assert seen.tolist() == [top, board["stock_size"], *tops, *depths]
            sizes = [
                position["players"][(seat + k) % rules.players]["hand_size"]
                for k in range(rules.players)
            ]
            assert cards[cards_at["hand_size"]].tolist() == sizes
            assert cards[cards_at["draw_size"]].astype(int).sum() == position["draw_size"]
            unseen = features[features_at["unseen"]] * ([rules.copies] * 12 + [rules.wilds])
            hidden = (
                sum(b["stock_size"] - 1 for b in boards if b["stock_size"]) + position["draw_size"]
            )
            assert round(float(unseen.sum())) == hidden + sum(sizes[1:])
            mover = (int(cards_env.game.player) - seat) % rules.players
            assert cards[cards_at["mover"]].tolist() == [mover]
            assert features[features_at["mover"]].argmax() == mover


@pytest.mark.parametrize("make", [skipbo_v0.env, skipbo_v0.raw_env], ids=["env", "raw_env"])
@pytest.mark.parametrize("observation", ["features", "cards"])
def test_stored_observations_stay_as_they_are(observation: str, make: Any) -> None:
    env = make(observation=observation)
    env.reset(seed=2)
    stored = []
    for _ in range(40):
        for agent in env.possible_agents:
            seen = env.observe(agent)
            stored.append((seen, copy.deepcopy(seen)))
        some_steps(env, 1)
    for seen, kept in stored:
        assert np.array_equal(seen["observation"], kept["observation"])
        assert np.array_equal(seen["action_mask"], kept["action_mask"])


@pytest.mark.parametrize("make", [skipbo_v0.env, skipbo_v0.raw_env], ids=["env", "raw_env"])
@pytest.mark.parametrize("reward", ["win", "shaped", "score"])
@pytest.mark.parametrize(
    "rules",
    [SHORT, Rules(players=3, stock_size=3), Rules(players=4, teams=2, stock_size=2)],
    ids=str,
)
def test_final_rewards_reach_winner_and_losers(rules: Rules, reward: str, make: Any) -> None:
    seen_sides = set()
    for seed in range(12):
        env = make(rules=rules, reward=reward, shaped_weight=0.5)
        env.reset(seed=seed)
        totals = play(env)
        result = env.game.result
        winner = result["winner"]
        assert result["reason"] == "stock_empty"
        seen_sides.add(winner)
        gain = result["scores"][winner] / 100 if reward == "score" else 1.0
        left = [0] * rules.sides
        for board in range(rules.boards):
            side = board % rules.sides
            left[side] += int(env.game.state[layout.board_at(board) + layout.STOCK_N])
        stocks = rules.stocks * rules.boards // rules.sides
        played = [0.5 * (stocks - n) / rules.stocks if reward == "shaped" else 0.0 for n in left]
        for seat, agent in enumerate(env.possible_agents):
            side = rules.side_of(seat)
            share = 1 if side == winner else -1 / (rules.sides - 1)
            others = sum(played) - played[side]
            expected = gain * share + played[side] - others / (rules.sides - 1)
            assert totals[agent] == pytest.approx(expected)
        assert sum(totals.values()) == pytest.approx(0)
    assert len(seen_sides) == rules.sides


def test_shaped_pays_whoever_played_the_stock_card() -> None:
    """Also on the action after which another seat is to move."""
    env = raw(seed=4, players=3, rules=Rules(stock_size=10), reward="shaped")
    paid = 0
    for step in range(300):
        if env.terminations[env.agent_selection]:
            break
        agent, before = env.agent_selection, env.game
        action = env.legal_actions()[0] if step % 3 else env.legal_actions()[-1]
        env.step(action)
        if action < 4 and not env.game.over:
            assert env.rewards[agent] == pytest.approx(1 / 10)
            assert sum(env.rewards.values()) == pytest.approx(0)
            paid += 1
        elif not env.game.over:
            assert set(env.rewards.values()) == {0.0}
        assert before.rules == env.rules
    assert paid > 5


def test_rewards_since_the_own_last_action() -> None:
    env = raw(seed=4, rules=Rules(stock_size=10), reward="shaped")
    owed = dict.fromkeys(env.possible_agents, 0.0)
    for _ in range(200):
        agent = env.agent_selection
        _, reward, termination, _, _ = env.last(observe=False)
        assert reward == pytest.approx(owed[agent])
        if termination:
            break
        env.step(env.legal_actions()[0])
        owed[agent] = 0.0
        for other, paid in env.rewards.items():
            owed[other] += paid


def check_ends(env: Any, name: str) -> None:
    ends = getattr(env, name)
    assert ends == dict.fromkeys(env.possible_agents, True)
    assert all(type(end) is bool for end in ends.values())
    other = env.truncations if name == "terminations" else env.terminations
    assert other == dict.fromkeys(env.possible_agents, False)
    assert all(type(end) is bool for end in other.values())


def test_a_stalemate_terminates_all_without_reward() -> None:
    env = raw(seed=1, rules=Rules(copies=1, wilds=0, stock_size=3, hand_size=1))
    while not env.terminations[env.agent_selection]:
        env.step(env.legal_actions()[-1])
    assert env.game.result["reason"] == "stalemate"
    check_ends(env, "terminations")
    assert set(env.rewards.values()) == {0.0}


def test_the_turn_limit_truncates_all_without_reward() -> None:
    env = raw(seed=1, rules=Rules(max_turns=7), reward="score")
    while not env.truncations[env.agent_selection]:
        env.step(env.legal_actions()[-1])
    check_ends(env, "truncations")
    assert set(env.rewards.values()) == {0.0}
    assert env.game.result["reason"] == "turn_limit"


def test_after_the_end_everything_can_still_be_asked_for() -> None:
    env = raw(seed=1, rules=SHORT, render_mode="ansi")
    while not env.terminations[env.agent_selection]:
        env.step(env.legal_actions()[0])
    check_ends(env, "terminations")
    assert env.legal_actions() == []
    assert isinstance(env.render(), str)
    for agent in env.possible_agents:
        seen = env.observe(agent)
        assert env.observation_space(agent).contains(seen)
        assert not seen["action_mask"].any()
        assert env.position(agent)["over"]["reason"] == "stock_empty"
    for agent in list(env.agents):
        assert env.agent_selection == agent
        env.step(None)
        env.observe(agent)
    assert env.agents == []


@pytest.mark.parametrize(
    "action",
    [-1, 125, 10_000, 124, 3.0, True, None, "0", 2**31, 2**63, 2**64, -(2**64), 10**4000],
    ids=lambda action: f"{action!r:.12}",
)
def test_an_illegal_action_raises_and_changes_nothing(action: Any) -> None:
    env = raw(seed=6)
    some_steps(env, 5)
    before, agent = env.game, env.agent_selection
    with pytest.raises(IllegalAction):
        env.step(action)
    assert np.array_equal(env.game.state, before.state)
    assert env.agent_selection == agent
    assert env.game.actions == before.actions
    env.step(env.legal_actions()[0])


@pytest.mark.filterwarnings("ignore:.*Illegal move.*")
def test_the_wrapped_environment_ends_on_an_illegal_action() -> None:
    env = skipbo_v0.env(players=3)
    env.reset(seed=6)
    agent = env.agent_selection
    observation = env.last()[0]
    env.step(int(np.flatnonzero(observation["action_mask"] == 0)[0]))
    assert env.rewards == {name: -1.0 if name == agent else 0 for name in env.possible_agents}
    assert all(env.terminations.values())
    assert env.legal_actions() == []
    while env.agents:
        assert not env.last()[0]["action_mask"].any()
        env.step(None)
    assert env.legal_actions() == []
    assert not any(env.observe(name)["action_mask"].any() for name in env.possible_agents)
    env.reset()
    assert not any(env.terminations.values())


def test_numpy_actions() -> None:
    env = raw(seed=6)
    for kind in (np.int8, np.int32, np.int64, np.uint8):
        env.step(kind(env.legal_actions()[0]))
    env.step(np.array(env.legal_actions()[0]))
    assert all(type(action) is int for action in env.game.actions)


@pytest.mark.parametrize("make", [skipbo_v0.env, skipbo_v0.raw_env], ids=["env", "raw_env"])
@pytest.mark.parametrize("how", [copy.deepcopy, pickled])
def test_copies_keep_the_game_in_progress(make: Any, how: Any) -> None:
    env = make(players=3, rules="short", reward="shaped")
    env.reset(seed=9)
    for _ in range(30):
        env.step(first_legal(env.last()[0]))
    twin = how(env)
    assert twin.game.actions == env.game.actions
    totals = play(env), play(twin)
    assert totals[0] == totals[1]
    assert np.array_equal(env.game.state, twin.game.state)
    env.reset()
    twin.reset()
    assert np.array_equal(env.game.state, twin.game.state)


def test_seeds_decide_every_later_game() -> None:
    env, twin = raw(seed=5), raw(seed=None)
    twin.reset(seed=5)
    states = []
    for _ in range(4):
        some_steps(env, 30, seed=1)
        some_steps(twin, 30, seed=1)
        assert np.array_equal(env.game.state, twin.game.state)
        states.append(env.game.state)
        env.reset()
        twin.reset()
    assert len({state.tobytes() for state in states}) == 4
    assert np.array_equal(raw(seed=5).game.state, Game(seed=5).state)
    assert not np.array_equal(raw(seed=5).game.state, raw(seed=6).game.state)
    assert not np.array_equal(raw(seed=None).game.state, raw(seed=None).game.state)


@pytest.mark.parametrize("make", [skipbo_v0.env, skipbo_v0.raw_env], ids=["env", "raw_env"])
def test_a_seeded_game_replays_across_reshuffles(make: Any) -> None:
    env, twin = make(), make()
    twin.reset(seed=1)
    reshuffles = 0
    for seed in range(4):
        env.reset(seed=seed)
        twin.reset(seed=seed)
        while not env.terminations[env.agent_selection]:
            action = first_legal(env.observe(env.agent_selection))
            env.step(action)
            twin.step(action)
            assert env.agent_selection == twin.agent_selection
            assert np.array_equal(
                env.observe(env.agent_selection)["observation"],
                twin.observe(twin.agent_selection)["observation"],
            )
        assert env.rewards == twin.rewards
        reshuffles += int(env.game.state[layout.RESHUFFLES])
    assert reshuffles > 3


def test_no_global_generator_is_used_or_needed() -> None:
    np.random.seed(1)  # noqa: NPY002 - the global one is what must not matter
    random.seed(1)
    numpy_before, python_before = np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
    env = raw(seed=None)
    env.reset()
    env.step(env.legal_actions()[0])
    assert np.array_equal(np.random.get_state()[1], numpy_before)  # noqa: NPY002
    assert random.getstate() == python_before


@pytest.mark.parametrize("bad", [-1, 1.5, "7"])
def test_bad_seeds(bad: Any) -> None:
    with pytest.raises(ValueError, match="seed"):
        skipbo_v0.raw_env().reset(seed=bad)


@pytest.mark.parametrize("make", [skipbo_v0.env, skipbo_v0.raw_env], ids=["env", "raw_env"])
def test_settings_hold_after_every_reset(make: Any) -> None:
    rules = Rules(players=4, teams=2, stock_size=7, must_play_stock=True, team_discard="team")
    env = make(rules=rules, reward="score")
    for seed in (1, None, 2, None):
        env.reset(seed=seed, options={"unknown": 1})
        assert env.rules == rules
        assert env.game.rules == rules
        assert env.num_agents == 4
        assert env.action_space("player_0").n == 197
        assert int(env.game.state[layout.STOCK_SIZE]) == 7
        assert int(env.game.state[layout.MUST_PLAY_STOCK]) == 1


def test_the_mapping_and_preset_forms_of_rules() -> None:
    assert raw(rules="short", players=5).rules == Rules(stock_size=10, players=5)
    assert raw(rules={"stock_size": 4}, players=np.int64(3)).rules == Rules(stock_size=4, players=3)
    for kwargs in (
        {"rules": "no such"},
        {"rules": "partners", "players": 3},
        {"players": 7},
        {"observation": "pixels"},
        {"reward": "points"},
        {"render_mode": "svg"},
    ):
        with pytest.raises(ValueError, match=next(iter(kwargs)) if len(kwargs) == 1 else "players"):
            skipbo_v0.raw_env(**kwargs)


def test_the_record_through_the_wrappers_replays() -> None:
    env = skipbo_v0.env(rules="short")
    env.reset(seed=12)
    play(env)
    game, again = env.game, Game.from_record(env.record())
    assert again.result == game.result
    assert [again.position(seat) for seat in (0, 1)] == [game.position(seat) for seat in (0, 1)]


def test_the_game_is_a_copy() -> None:
    env = skipbo_v0.env()
    env.reset(seed=12)
    game = env.game
    game.apply(game.legal_actions()[0])
    assert env.game.actions == []
    assert env.legal_actions() == env.game.legal_actions()


def test_before_the_first_reset() -> None:
    env = skipbo_v0.raw_env()
    with pytest.raises(ValueError, match="reset"):
        env.observe("player_0")
