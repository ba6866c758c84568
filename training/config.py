"""`Config`: every setting of a training run, one sentence each, and the named presets."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from skipbo_env.agents.heuristics import HEURISTICS
from skipbo_env.rules import Rules


class ConfigError(ValueError):
    """A setting out of range; the message names it."""


@dataclass(frozen=True)
class Config:
    """Settings of TD(lambda) self-play. The defaults train a two-player model on two cores."""

    players: int = 2
    """Seats at the table."""
    teams: int = 0
    """0 for individuals, or 2 or 3 teams."""
    stock_size: int | None = None
    """Cards in each stock; None for the game's default."""
    hidden: int = 128
    """Width of the network's first layer, a multiple of 16."""
    hidden2: int = 32
    """Width of its second layer, a multiple of 32."""
    seed: int = 1
    """Seed of weights, games and batches."""
    iterations: int = 480
    """How often games are played and learned from."""
    games: int = 256
    """Games played in an iteration."""
    batch_size: int = 512
    """Endings in a gradient step."""
    lr: float = 4e-4
    """Adam's learning rate at the start."""
    lr_final: float = 2e-5
    """Learning rate at the end, reached along a cosine."""
    average: float = 0.999
    """Decay, a gradient step, of the running mean of the weights; the mean is what plays."""
    lam: float = 0.9
    """Lambda of the returns at the start."""
    lam_final: float = 0.5
    """Lambda at the end."""
    explore: float = 0.01
    """Share of endings chosen at random at the start; it falls to 0 by the end."""
    blur: float = 0.15
    """Half-width of the noise on the logits by which endings are chosen; it falls to 0."""
    start_from: str | None = None
    """A run's folder or a model that this run starts from, for another schedule or table."""
    warm_start: int = 3
    """First iterations whose games a rule-based teacher plays; 0 learns from nothing but
    self-play.
    """
    warm_start_games: int = 4000
    """Games in each of those iterations."""
    teacher: str = "greedy"
    """Who plays them."""
    noise: float = 0.1
    """Share of the teacher's actions that play-first chooses instead."""
    max_nodes: int = 128
    """Positions within a turn that the search looks at in self-play, at most."""
    draw: float | None = None
    """What a game that nobody won counts for in the targets; None for 1 / sides."""
    rivals: tuple[str, ...] = ()
    """Who holds the other sides in some of the games, one at a time: rule-based agents, models, or
    "past" for earlier networks of the run.
    """
    rival_share: float = 0.5
    """Share of self-play games in which one side learns against one of the rivals."""
    past_every: int = 20
    """Iterations between the networks that "past" stands for."""
    past_kept: int = 8
    """How many of them are kept, the latest ones."""
    max_turns: int = 400
    """Turns after which a self-play game is cut off."""
    threads: int = 2
    """Threads that play games."""
    eval_every: int = 40
    """Iterations between evaluations against the panel; the best network by these is kept."""
    eval_pairs: int = 500
    """Pairs of games (same deal, seats swapped) in an evaluation."""
    opponents: tuple[str, ...] = ("play-first", "greedy")
    """The panel; the last one decides which network is best."""
    checkpoint_every: int = 5
    """Iterations between checkpoints."""
    device: str = "cpu"
    """Where the network learns."""

    def __post_init__(self) -> None:
        rules = self.rules  # raises for what cannot be played
        del rules
        bounds: dict[str, tuple[float, float]] = {
            "hidden": (16, 4096),
            "hidden2": (32, 1024),
            "seed": (0, 2**63),
            "iterations": (1, 10**9),
            "games": (1, 10**6),
            "batch_size": (1, 10**6),
            "lr": (1e-9, 1.0),
            "lr_final": (0.0, 1.0),
            "average": (0.0, 0.999999),
            "lam": (0.0, 1.0),
            "lam_final": (0.0, 1.0),
            "explore": (0.0, 1.0),
            "blur": (0.0, 10.0),
            "warm_start": (0, 10**6),
            "warm_start_games": (1, 10**6),
            "noise": (0.0, 1.0),
            "max_nodes": (1, 4096),
            "rival_share": (0.0, 1.0),
            "past_every": (1, 10**9),
            "past_kept": (1, 1000),
            "max_turns": (2, 2000),
            "threads": (1, 256),
            "eval_every": (1, 10**9),
            "eval_pairs": (1, 10**6),
            "checkpoint_every": (1, 10**9),
        }
        if self.draw is not None:
            bounds["draw"] = (0.0, 1.0)
        for name, (low, high) in bounds.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise ConfigError(f"{name}: needs a number, got {value!r:.40}")
            if not low <= value <= high:
                raise ConfigError(f"{name}: must be {low:g} to {high:g}, got {value!r}")
        for name, step in (("hidden", 16), ("hidden2", 32)):
            if getattr(self, name) % step:
                raise ConfigError(
                    f"{name}: must be a multiple of {step}, got {getattr(self, name)}"
                )
        for agent in (self.teacher, *self.opponents):
            if agent not in HEURISTICS:
                raise ConfigError(
                    f"teacher, opponents: {agent!r:.40} is none of {', '.join(HEURISTICS)}"
                )
        if not self.opponents:
            raise ConfigError("opponents: needs at least one agent")

    @property
    def rules(self) -> Rules:
        """What is played."""
        return Rules(
            players=self.players,
            teams=self.teams,
            stock_size=self.stock_size,
            max_turns=self.max_turns,
        )

    def to_dict(self) -> dict[str, Any]:
        """Every setting, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Config:
        """The settings that `to_dict` wrote.

        Raises:
            ConfigError: an unknown setting or a value out of range.
        """
        known = {field.name for field in fields(cls)}
        for name in data:
            if name not in known:
                raise ConfigError(f"{name!s:.40}: is no setting")
        try:
            lists: dict[str, Any] = {
                name: tuple(data[name]) for name in ("opponents", "rivals") if name in data
            }
            return cls(**{**data, **lists})
        except TypeError as error:
            raise ConfigError(str(error)) from None

    @classmethod
    def load(cls, path: Path) -> Config:
        """The settings in a JSON file."""
        return cls.from_dict(json.loads(path.read_text(encoding="utf-8")))


DEFAULT = Config()
PRESETS: dict[str, Config] = {
    "smoke": replace(
        DEFAULT,
        hidden=64,
        iterations=30,
        games=128,
        warm_start=2,
        warm_start_games=1500,
        eval_every=10,
        eval_pairs=200,
        lr=1e-3,
        lr_final=1e-4,
        average=0.98,
    ),
    "default": DEFAULT,
    "long": replace(
        DEFAULT, hidden=256, iterations=4000, games=1024, eval_every=50, eval_pairs=2000
    ),
    "gpu": replace(
        DEFAULT,
        hidden=512,
        hidden2=64,
        iterations=4000,
        games=4096,
        batch_size=8192,
        lr=2e-3,
        threads=16,
        device="cuda",
    ),
}
