"""The single file in CleanRL's way: its parts by hand-worked numbers, and that it learns."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from types import ModuleType

import pytest

torch = pytest.importorskip("torch")

from tests.pages import ROOT

FILE = ROOT / "docs/libraries/cleanrl_ppo.py"


@pytest.fixture(scope="module")
def ppo() -> ModuleType:
    spec = importlib.util.spec_from_file_location("cleanrl_ppo", FILE)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["cleanrl_ppo"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_advantages_of_two_own_decisions_in_a_row_and_the_loss_that_follows(
    ppo: ModuleType,
) -> None:
    """Game 0: a stock card played (+0.1), a discard after which the other wins (-1). Game 1: goes
    on after both. Worked out by hand with lambda 0.5.
    """
    rewards = torch.tensor([[0.1, 0.0], [-1.0, 0.2]])
    values = torch.tensor([[0.3, 0.4], [0.2, -0.1]])
    ends = torch.tensor([[0.0, 0.0], [1.0, 0.0]])
    after = torch.tensor([0.9, 0.5])  # of game 0's next game: must not count
    last = [-1.0 - 0.2, 0.2 + 0.5 - (-0.1)]
    first = [0.1 + 0.2 - 0.3 + 0.5 * last[0], 0.0 - 0.1 - 0.4 + 0.5 * last[1]]
    got = ppo.advantages_of(rewards, values, ends, after, 0.5)
    assert torch.allclose(got, torch.tensor([first, last]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("scale", [0.0, 1.0, 1e4])
def test_illegal_actions_have_odds_of_exactly_zero(
    ppo: ModuleType, scale: float, dtype: torch.dtype
) -> None:
    torch.manual_seed(0)
    logits = (scale * torch.randn(6, 125)).to(dtype)
    mask = torch.rand(6, 125) < 0.1
    mask[0] = False
    mask[0, 7] = True  # one legal action
    mask[1] = True  # all, as in a finished row
    mask[2:, 3] = True
    log_odds = ppo.masked_log_odds(logits, mask)
    odds = log_odds.exp()
    assert (odds[~mask] == 0).all()
    assert torch.allclose(odds.sum(-1), torch.ones(6))
    entropy = ppo.entropy(log_odds)
    assert torch.isfinite(entropy).all()
    assert entropy[0] == 0
    if scale == 0:
        assert torch.allclose(entropy, mask.sum(-1).float().log(), atol=1e-5)
    drawn = torch.multinomial(odds, 50, replacement=True)
    assert mask.gather(-1, drawn).all()
    logits.requires_grad_()
    spread = ppo.entropy(ppo.masked_log_odds(logits, mask)).sum()
    (gradient,) = torch.autograd.grad(spread, logits)
    assert torch.isfinite(gradient).all()
    assert (gradient[~mask] == 0).all()


@pytest.mark.slow
def test_a_short_run_beats_play_first() -> None:
    """By the file's own command, in a process of its own as a user starts it."""
    done = subprocess.run(
        [sys.executable, FILE],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    lines = done.stdout.splitlines()
    result = json.loads(lines[-1])
    assert result["games"] >= 1000
    assert result["low"] > 0.5, result
    assert result["win_rate"] <= 1
    assert all("nan" not in line for line in lines)
