"""A service whose agents are small fakes, so that these tests need no model and time nothing."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from flask import Flask
from flask.testing import FlaskClient

import skipbo_env
from serve import create_app
from skipbo_env import agents
from skipbo_env.game import Game

LISTED = [
    {"name": "greedy", "method": "rules", "model": None, "sha256": None},
    {"name": "broken", "method": "rules", "model": None, "sha256": None},
    {"name": "turn:fake", "method": "turn", "model": "fake", "sha256": "0" * 64},
    {
        "name": "search:fake",
        "method": "search",
        "model": "fake",
        "sha256": "0" * 64,
        "options": {"samples": (1, 10**9), "budget_ms": (1, 10**9), "nodes": (1, 64)},
    },
]


# The worked turn of the rules.
EXAMPLE: dict[str, Any] = {
    "rules": "standard",
    "hand": ["3", "6", "8", "12", "S"],
    "building": [5, 11, 2, 0],
    "you": 0,
    "players": [
        {"stock_top": "7", "stock_size": 12, "discards": [["4"], ["10"], [], []], "hand_size": 5},
        {"stock_top": "5", "stock_size": 20, "discards": [[], [], [], []], "hand_size": 5},
    ],
    "draw_size": 88,
    "completed": {**{str(rank): 1 for rank in range(1, 11)}, "S": 2},
}


class Ranker:
    """Ranks actions by id, with numpy's numbers and a NaN where there is no error."""

    method = "turn"

    def __init__(self, text: str, seed: int) -> None:
        self.name = text
        self.seed = seed

    def act(self, game: Game) -> int:
        return game.legal_actions()[0]

    def suggest(self, game: Game, *, top: Any = None, allow: Any = None, avoid: Any = None) -> Any:
        ids = allow or game.legal_actions()
        moves = [
            {
                "action": np.int64(action),
                "win": np.float32(max(0.0, 0.6 - 0.003 * place**2)),
                "win_se": np.float64("nan"),
                "n": np.int32(5),
                "line": np.array([action]),
                "line_ends": "discard" if action >= 72 else None,
            }
            for place, action in enumerate(ids)
        ]
        return {
            "model": "fake",
            "sha256": "0" * 64,
            "root": {"win": np.array([0.6, 0.4]), "expected_stock_left": None},
            "moves": moves[:top],
            "search": {"samples": np.int64(len(ids)), "stopped_by": "end"},
        }


class Chooser:
    """Takes the first legal action, with no estimate of anything."""

    method = "rules"

    def __init__(self, text: str, seed: int) -> None:
        self.name = text

    def act(self, game: Game) -> int:
        return np.int64(game.legal_actions()[0])  # type: ignore[return-value]


class Slow(Ranker):
    """A search that holds its place until it is let go."""

    method = "search"
    started = threading.Semaphore(0)
    go = threading.Event()
    go.set()

    def suggest(self, game: Game, **keywords: Any) -> Any:
        Slow.started.release()
        assert Slow.go.wait(20)
        return super().suggest(game, **keywords)


class Broken(Ranker):
    """An agent with a fault."""

    def suggest(self, game: Game, **keywords: Any) -> Any:
        raise RuntimeError("secret text")


CLASSES: dict[str, Callable[[str, int], Any]] = {
    "greedy": Chooser,
    "broken": Broken,
    "turn:fake": Ranker,
    "best": Ranker,
    "search:fake": Slow,
}


def fake_agent(text: str, *, seed: int = 0, models_dir: Any = None) -> Any:
    name = text.partition("?")[0]
    if name not in CLASSES:
        raise ValueError(f"no agent {text!r}")
    return CLASSES[name](text, seed)


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents, "list_agents", lambda models_dir=None: LISTED, raising=False)
    monkeypatch.setattr(skipbo_env, "make_agent", fake_agent, raising=False)


@pytest.fixture
def app(fakes: None) -> Flask:
    return create_app(testing=True)


@pytest.fixture
def client(app: Flask) -> Iterator[FlaskClient]:
    with app.test_client() as client:
        yield client


@pytest.fixture
def position() -> dict[str, Any]:
    """The worked turn of the rules."""
    return copy.deepcopy(EXAMPLE)
