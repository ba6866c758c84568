"""Calibration finds the factor and shift that probabilities were made with, and a calibrated model
is a model that plays as before.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from skipbo_env.agents import load_model, make_agent
from skipbo_env.agents.models import ModelError
from skipbo_env.game import Game
from skipbo_env.rules import Rules
from training.calibrate import fit, main, moved


def test_factor_and_shift_are_found() -> None:
    rng = np.random.default_rng(1)
    logits = rng.normal(0.0, 2.0, 200_000)
    won = (rng.random(len(logits)) < 1 / (1 + np.exp(-(0.6 * logits - 0.5)))).astype(float)
    factor, shift = fit(1 / (1 + np.exp(-logits)), won)
    assert factor == pytest.approx(0.6, abs=0.02)
    assert shift == pytest.approx(-0.5, abs=0.03)


@pytest.mark.parametrize("won", [np.ones(50), np.zeros(50), np.linspace(1, 0, 50) > 0.5])
def test_results_that_tell_nothing_are_refused(won: np.ndarray) -> None:
    with pytest.raises(ValueError, match="play more"):
        fit(np.linspace(0.1, 0.9, 50), won.astype(float))


def test_a_calibrated_model_plays_as_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A model that is moved away comes back to where it was, but for the noise of few games."""
    before = make_agent("turn:two-player?flips=0")
    folder, out = tmp_path / "far", tmp_path / "out"
    shutil.copytree(before.model.path, folder)
    config = json.loads((folder / "config.json").read_text())
    config["stock_size"] = 5
    (folder / "config.json").write_text(json.dumps(config))
    assert main([str(folder), "--games", "60", "--out", str(out)]) == 0
    assert "logits times" in capsys.readouterr().out
    model = load_model(out)
    told = model.config["trained"]["calibrated"]
    assert told["games"] == 60
    assert f"times {told['factor']:.3f}" in (out / "README.md").read_text()
    expected = moved(before.model.value, told["factor"], told["shift"])
    assert all(np.array_equal(a, b) for a, b in zip(model.value, expected, strict=True))
    after = make_agent(f"turn:{out}?flips=0")
    for seed in range(4):
        game = Game(Rules(), seed=seed)
        for _ in range(20):
            other = game.clone()
            for agent, played in ((before, game), (after, other)):
                for action in agent.plan(played):
                    played.apply(action)
            # Plays may come in another order where rounding decides between equals.
            assert np.array_equal(game.state, other.state)
    with pytest.raises(ModelError, match="already"):
        main([str(folder), "--games", "60", "--out", str(out)])
