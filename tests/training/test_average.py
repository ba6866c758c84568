"""The mean of checkpoints: number by number, and only of networks that fit together."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from training.average import mean_of
from training.checkpoint import CheckpointError, save


def test_the_mean_of_weights(tmp_path: Path) -> None:
    a, b, c = (tmp_path / name for name in ("a.pt", "b.pt", "c.pt"))
    save(a, {"average": {"w": torch.tensor([0.0, 2.0])}})
    save(b, {"network": {"w": torch.tensor([4.0, 0.0])}})  # as in best.pt
    save(c, {"average": {"w": torch.zeros(3)}})
    assert mean_of([a, b])["w"].tolist() == [2.0, 1.0]
    with pytest.raises(CheckpointError, match=r"c\.pt"):
        mean_of([a, c])
    save(c, {"iteration": 1})
    with pytest.raises(CheckpointError, match="holds no network"):
        mean_of([c])
