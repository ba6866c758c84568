"""The benchmark: its keys, table and chart, its loops; and what importing the package costs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import skipbo_env
from skipbo_env import benchmark, peers
from skipbo_env.engine import layout
from skipbo_env.engine.deal import deal
from skipbo_env.engine.playout import play_random
from skipbo_env.game import Game
from skipbo_env.peers import Peer, Play
from skipbo_env.rules import PRESETS, Rules

RATES = ("engine", "vector_cards_random", "vector_features_random", "raw_env", "env", "gymnasium")
PARTS = ("rules", "peers", "ratios", "missing", "includes", "versions")
SECONDS = ("import_s", "compile_s", "start_s", "import_numba_s")


def test_keys_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert benchmark.benchmark(json=True, seconds=0.02, fresh=False, peers=False) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert set(answer) == {*RATES, *PARTS, *SECONDS}
    assert all(answer[name] > 0 for name in RATES)
    assert all(answer[name] is None for name in SECONDS)
    assert set(answer["includes"]) == set(RATES)
    assert answer["peers"] == answer["ratios"] == answer["missing"] == {}
    assert set(PRESETS) < set(answer["rules"])
    assert answer["rules"]["standard"]["cards_cost"] == 1.0
    for row in answer["rules"].values():
        loops = benchmark.RULE_SET_LOOPS
        assert set(row) == {"bytes", *loops, *(f"{loop}_cost" for loop in loops)}
        assert all(value > 0 for value in row.values())


def test_table_chart_and_peers(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a peer that plays, one that is not installed and one that fails."""

    def not_there() -> Play:
        from no_such_library import game

        return game

    def broken() -> Play:
        raise RuntimeError("no deal")

    def slow() -> Play:
        return lambda: sum(range(100)) and 1

    known = {
        "slow": Peer("a sum", ("numpy", "no-such-library"), slow, goal=0.5),
        "fast": Peer("nothing", ("numpy",), lambda: lambda: 10**9, goal=2),
        "absent": Peer("?", ("no-such-library",), not_there),
        "broken": Peer("?", ("numpy",), broken),
    }
    monkeypatch.setattr(peers, "PEERS", known)
    monkeypatch.setattr(benchmark, "PEERS", known)
    answer = benchmark.measure(seconds=0.02, fresh=False)
    assert set(answer["peers"]) == set(answer["ratios"]) == {"slow", "fast"}
    assert answer["ratios"]["slow"] == pytest.approx(
        answer["vector_cards_random"] / answer["peers"]["slow"], rel=0.5
    )
    assert answer["ratios"]["fast"] < 1 < answer["ratios"]["slow"]
    assert answer["missing"] == {
        "absent": "needs no_such_library",
        "broken": "RuntimeError: no deal",
    }
    assert answer["versions"] == {"numpy": np.__version__}
    assert answer["includes"]["slow"] == "a sum"

    monkeypatch.setattr(benchmark, "measure", lambda **kwargs: answer)
    path = tmp_path / "speed.png"
    assert benchmark.benchmark(plot=path) == 0
    rates, per_rules = capsys.readouterr().out.split("\n\n")
    lines = rates.splitlines()
    assert [line.split()[0] for line in lines[1:9]] == [*RATES, "slow", "fast"]
    assert f"{answer['peers']['slow']:,.0f}" in lines[7]
    assert lines[7].endswith("a sum")
    assert lines[10].startswith("goal: 0.5 x slow: reached with ")
    assert lines[11].startswith("goal: 2 x fast: missed with 0.0")
    assert "absent: not measured, needs no_such_library" in lines
    assert per_rules.startswith("standard ")
    assert " x1.00" in per_rules
    with Image.open(path) as picture:
        assert picture.format == "PNG"
        assert picture.width > 1000


def test_arguments_are_checked_before_anything_is_measured(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="--plot"):
        benchmark.benchmark(plot=tmp_path / "speed.pdf")
    for seconds in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="--seconds"):
            benchmark.benchmark(seconds=seconds)


def test_every_peer_plays_or_is_said_to_be_missing() -> None:
    """Those that share this environment; CartPole comes with Gymnasium and is always there."""
    plays, missing = peers.build()
    assert {*plays, *missing} == set(peers.PEERS)
    assert "cartpole_vector" in plays
    assert all(why.startswith("needs ") for why in missing.values()), missing
    for play in plays.values():
        assert play() > 0
    assert "gymnasium" in peers.versions(list(plays))


def test_the_engine_s_random_play_is_the_game_s() -> None:
    """Decision by decision the legal actions are those of `Game`, and so are the deals."""
    rules = Rules(stock_size=3, max_turns=60)
    state, streams = layout.new_state(rules), np.array([9], np.uint64)
    deal(state, np.uint64(4), -1)
    game, deals = Game(rules, seed=4), 0
    for _ in range(400):
        before = int(streams[0])
        dealt = play_random(state, 1, -1, streams)
        deals += dealt
        mixed = before
        if dealt:
            assert game.over
            mixed, seed = _next(mixed)
            game = Game(rules, seed=seed)
        _, drawn = _next(mixed)
        legal = game.legal_actions()
        game.apply(legal[(drawn >> 32) * len(legal) >> 32])
        same = slice(0, state[layout.AT_STOCKS])  # beyond it old cards stay in cells of no zone
        assert np.array_equal(state[same], game.state[same])
        assert layout.draw_cards(state) == layout.draw_cards(game.state)
    assert deals > 3


def _next(stream: int) -> tuple[int, int]:
    """SplitMix64 in Python: the generator's next state, and its number."""
    low = (1 << 64) - 1
    stream = (stream + 0x9E3779B97F4A7C15) & low
    z = ((stream ^ (stream >> 30)) * 0xBF58476D1CE4E5B9) & low
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & low
    return stream, z ^ (z >> 31)


@pytest.mark.slow
def test_fresh_interpreters() -> None:
    answer = benchmark.measure(seconds=0.1, peers=False)
    assert answer["compile_s"] > answer["start_s"] > answer["import_s"] > 0
    assert answer["import_s"] < 2.5 * answer["import_numba_s"]


def test_importing_the_package_imports_no_engine() -> None:
    code = (
        "import sys, skipbo_env; heavy = ('numba', 'torch', 'flask', 'PIL'); "
        "print([name for name in heavy if name in sys.modules]); "
        "import gymnasium; print('SkipBo-v0' in gymnasium.registry)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "True"]


def test_public_names() -> None:
    for name in skipbo_env.__all__:
        assert getattr(skipbo_env, name) is not None
    assert set(skipbo_env.__all__) <= set(dir(skipbo_env))
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = skipbo_env.no_such_name
