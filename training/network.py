"""The networks as PyTorch modules: what is learned, and what of it the compiled forward passes
need.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from skipbo_env.agents.network import Network, num_rows, row_groups
from skipbo_env.agents.policy import Policy, num_inputs, num_outputs
from skipbo_env.rules import Rules
from training.config import ConfigError


def check_device(device: str) -> None:
    """Refuse a device that torch cannot use here.

    Raises:
        ConfigError: with what torch says.
    """
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        text = str(error).splitlines()[0][:80]
        raise ConfigError(f"device: {device!r} cannot be used here ({text})") from None


def factor_matrix(players: int, boards: int) -> torch.Tensor:
    """What rows share: float32 of shape (num_rows, factors).

    A row of the first layer is learned as its own weights plus those of its factors, so that rare
    rows (ten cards left, a 12 on a 3) learn from common ones. Counts share steps ("at least 2"),
    sizes a slope, pairs of cards each card and their difference. The compiled network sees only the
    sums. Factorised inputs of this kind come from Stockfish's NNUE.
    """
    columns: list[dict[int, float]] = []

    def steps(first: int, values: int) -> None:
        columns.extend({first + v: 1.0 for v in range(low, values)} for low in range(1, values))

    def slope(first: int, values: int) -> None:
        columns.append({first + v: v / (values - 1) for v in range(values)})

    def pairs(first: int, side: int) -> None:
        places = [(a, b) for a in range(side) for b in range(side)]
        for value in range(side):
            columns.append({first + side * a + b: 1.0 for a, b in places if a == value})
            columns.append({first + side * a + b: 1.0 for a, b in places if b == value})

    for name, first, values in row_groups(players, boards):
        part = name.rsplit(".", 1)[-1].split("_")[0]
        if part in ("hand", "height", "kind"):
            steps(first, values)
        elif part in ("unseen", "draw", "seat", "size", "depth"):
            slope(first, values)
        elif part == "near":
            pairs(first, 13)
        elif part == "chain":
            pairs(first, 13)
            pairs(first + 169, 13)
        elif part == "pile":
            pairs(first, 14)
            for gap in range(-11, 12):
                columns.append(
                    {
                        first + 14 * a + b: 1.0
                        for a in range(1, 13)
                        for b in range(1, 13)
                        if a - b == gap
                    }
                )
    matrix = torch.zeros(num_rows(players, boards), len(columns))
    for j, column in enumerate(columns):
        for row, weight in column.items():
            matrix[row, j] = weight
    return matrix


class ValueNetwork(nn.Module):
    """Sum of weight rows -> ReLU -> linear -> ReLU -> linear: the logit of the mover's side's win.

    Args:
        players: seats.
        boards: boards on the table.
        hidden: width of the first layer, a multiple of 16.
        hidden2: width of the second, a multiple of 32.
    """

    factors_of: torch.Tensor

    def __init__(self, players: int, boards: int, hidden: int, hidden2: int) -> None:
        super().__init__()
        matrix = factor_matrix(players, boards)
        self.rows = nn.Parameter(torch.randn(matrix.shape[0], hidden) * 0.05)
        self.factors = nn.Parameter(torch.randn(matrix.shape[1], hidden) * 0.05)
        self.b1 = nn.Parameter(torch.zeros(hidden))
        self.w2 = nn.Parameter(torch.randn(hidden, hidden2) * math.sqrt(2.0 / hidden))
        self.b2 = nn.Parameter(torch.zeros(hidden2))
        self.w3 = nn.Parameter(torch.randn(hidden2) * math.sqrt(1.0 / hidden2))
        self.b3 = nn.Parameter(torch.zeros(1))
        self.register_buffer("factors_of", matrix.to_sparse_coo().coalesce(), persistent=False)

    def first_layer_rows(self) -> torch.Tensor:
        """The rows as the compiled network has them: own weights plus factors, shape (num_rows,
        hidden).
        """
        return self.rows + torch.sparse.mm(self.factors_of, self.factors)

    @torch.no_grad()
    def take(self, network: Network) -> None:
        """Take over a compiled network's weights. Its rows hold the sums of own weights and
        factors, so the factors start at 0.

        Raises:
            RuntimeError: its shapes are others.
        """
        arrays = network._asdict()
        state = {name: torch.from_numpy(arrays[name]) for name in ("b1", "w2", "b2", "w3", "b3")}
        state["rows"] = torch.from_numpy(network.w1)
        state["factors"] = torch.zeros_like(self.factors)
        self.load_state_dict(state)

    def forward(self, slots: torch.Tensor) -> torch.Tensor:
        """Logits, shape (batch,), of int32 or int64 slots, shape (batch, slots); float32 under
        autocast too, and so is the first layer, whose sums of weights need it.
        """
        with torch.autocast(slots.device.type, enabled=False):
            x = functional.embedding_bag(slots, self.first_layer_rows(), mode="sum") + self.b1
            x = functional.relu(x)
        x = functional.relu(x @ self.w2 + self.b2)
        return (x @ self.w3 + self.b3).float()

    def compiled(self) -> Network:
        """The weights for `skipbo_env.agents.network`, as float32 copies."""
        return Network(
            _array(self.first_layer_rows()),
            _array(self.b1),
            _array(self.w2),
            _array(self.b2),
            _array(self.w3),
            _array(self.b3),
        )


class PolicyNetwork(nn.Module):
    """Policy and value of the seat to move, from an arranged observation (see
    `skipbo_env.agents.policy`): linear -> ReLU -> linear -> ReLU, then one linear layer for each.

    Args:
        rules: the table's players and teams.
        hidden: width of the first layer.
        hidden2: width of the second.
    """

    def __init__(self, rules: Rules, hidden: int, hidden2: int) -> None:
        super().__init__()
        self.layer1 = nn.Linear(num_inputs(rules), hidden)
        self.layer2 = nn.Linear(hidden, hidden2)
        self.policy = nn.Linear(hidden2, num_outputs(rules))
        self.value = nn.Linear(hidden2, 1)
        for layer, gain in (
            (self.layer1, math.sqrt(2)),
            (self.layer2, math.sqrt(2)),
            (self.policy, 0.01),  # so that the first policy is close to uniform
            (self.value, 1.0),
        ):
            nn.init.orthogonal_(layer.weight, gain)
            nn.init.zeros_(layer.bias)

    def forward(self, inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits, shape (batch, actions), and values, shape (batch,); float32 under autocast
        too.
        """
        x = functional.relu(self.layer1(inputs))
        x = functional.relu(self.layer2(x))
        return self.policy(x).float(), self.value(x).float().squeeze(-1)

    def compiled(self) -> Policy:
        """The policy's weights for `skipbo_env.agents.policy`, as float32 copies."""
        return Policy(
            _array(self.layer1.weight.T),
            _array(self.layer1.bias),
            _array(self.layer2.weight.T),
            _array(self.layer2.bias),
            _array(self.policy.weight.T),
            _array(self.policy.bias),
        )


def _array(tensor: torch.Tensor) -> np.ndarray:
    """A float32 copy, row by row."""
    return np.ascontiguousarray(tensor.detach().cpu().float().numpy()).copy()
