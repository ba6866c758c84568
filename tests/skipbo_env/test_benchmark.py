"""The benchmark's keys, and what importing the package costs."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

import skipbo_env
from skipbo_env import benchmark
from skipbo_env.rules import PRESETS

RATES = ("vector_cards_random", "vector_features_random", "raw_env", "env", "gymnasium")


def test_keys_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert benchmark.benchmark(json=True, seconds=0.02, fresh=False) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert set(answer) == {*RATES, "rules", "import_s", "compile_s", "start_s", "peers"}
    assert all(answer[name] > 0 for name in RATES)
    assert set(PRESETS) < set(answer["rules"])
    assert answer["rules"]["standard"]["cards_cost"] == 1.0
    for row in answer["rules"].values():
        assert set(row) == {"bytes", "cards", "features", "cards_cost", "features_cost"}
        assert all(value > 0 for value in row.values())


def test_plain_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert benchmark.benchmark(seconds=0.02, fresh=False) == 0
    rates, per_rules = capsys.readouterr().out.split("\n\n")
    assert [line.split()[0] for line in rates.splitlines()] == list(RATES)
    assert per_rules.startswith("standard ")
    assert " x1.00" in per_rules


@pytest.mark.slow
def test_fresh_interpreters() -> None:
    answer = benchmark.measure(seconds=0.1)
    assert answer["compile_s"] > answer["start_s"] > answer["import_s"] > 0
    assert answer["import_s"] < 2.5 * answer["peers"]["import_numba_s"]


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
