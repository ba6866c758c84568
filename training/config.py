"""Every setting of a training run, one sentence each, and the named presets.

`Settings` holds what all learners share, `Config` is TD(lambda)'s and `PpoConfig` PPO's.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from skipbo_env.agents.heuristics import HEURISTICS
from skipbo_env.agents.turn import MOST_NODES
from skipbo_env.rules import Rules

_Settings = TypeVar("_Settings", bound="Settings")


class ConfigError(ValueError):
    """A setting out of range; the message names it."""


_TYPES: dict[str, tuple[str, type | tuple[type, ...]]] = {
    "int": ("a whole number", int),
    "float": ("a number", (int, float)),
    "str": ("a text", str),
    "tuple[str, ...]": ("a list of texts", tuple),
}


@dataclass(frozen=True)
class Settings:
    """What every learner needs to know."""

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
    """Games played in an iteration; with PPO, games that are played side by side."""
    batch_size: int = 512
    """Endings, with PPO decisions, in a gradient step."""
    lr: float = 4e-4
    """Adam's learning rate at the start."""
    lr_final: float = 2e-5
    """Learning rate at the end, reached along a cosine."""
    lam: float = 0.9
    """Lambda of the returns at the start; with PPO, of the advantages, throughout."""
    start_from: str | None = None
    """A run's folder or a model that this run starts from, for another schedule or table."""
    max_turns: int = 400
    """Turns after which a self-play game is cut off."""
    threads: int = 2
    """Threads that play games."""
    eval_every: int = 40
    """Iterations between evaluations against the panel; the best network by these is kept."""
    eval_pairs: int = 500
    """Pairs of games (same deal, seats swapped) in an evaluation."""
    opponents: tuple[str, ...] = ("play-first", "greedy")
    """The panel, any agents; the last one decides which network is best."""
    checkpoint_every: int = 5
    """Iterations between checkpoints."""
    device: str = "cpu"
    """Where the network learns."""
    precision: str = "float32"
    """float32, or bfloat16 by autocast (with TD in the layers above the first one), or with PPO
    auto: the faster one, measured at the start.
    """

    algo: ClassVar[str]
    precisions: ClassVar[tuple[str, ...]] = ("float32", "bfloat16")
    bounds: ClassVar[dict[str, tuple[float, float]]] = {
        "hidden": (16, 4096),
        "hidden2": (32, 1024),
        "seed": (0, 2**63),
        "iterations": (1, 10**9),
        "games": (1, 10**6),
        "batch_size": (1, 10**6),
        "lr": (1e-9, 1.0),
        "lr_final": (0.0, 1.0),
        "lam": (0.0, 1.0),
        "max_turns": (2, 2000),
        "threads": (1, 256),
        "eval_every": (1, 10**9),
        "eval_pairs": (1, 10**6),
        "checkpoint_every": (1, 10**9),
    }

    def __post_init__(self) -> None:
        self._check_types()
        rules = self.rules  # raises for what cannot be played
        del rules
        for name, (low, high) in self.bounds.items():
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
        if self.precision not in self.precisions:
            raise ConfigError(
                f"precision: {self.precision!r:.40} is none of {', '.join(self.precisions)}"
            )
        if not self.opponents:
            raise ConfigError("opponents: needs at least one agent")

    def _check_types(self) -> None:
        """A setting has its annotation's type; whole numbers do as floats."""
        for item in fields(self):
            value = getattr(self, item.name)
            kind = str(item.type).removesuffix(" | None")
            if value is None and kind != item.type:
                continue
            word, types = _TYPES[kind]
            good = isinstance(value, types) and not isinstance(value, bool)
            if kind == "tuple[str, ...]":
                good = good and all(isinstance(part, str) for part in value)
            if not good:
                raise ConfigError(f"{item.name}: needs {word}, got {value!r:.40}")

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
        return {"algo": self.algo, **asdict(self)}

    @classmethod
    def from_dict(cls: type[_Settings], data: dict[str, Any]) -> _Settings:
        """The settings that `to_dict` wrote.

        Raises:
            ConfigError: an unknown setting or a value out of range.
        """
        given = {name: value for name, value in data.items() if name != "algo"}
        known = {field.name for field in fields(cls)}
        for name in given:
            if name not in known:
                raise ConfigError(f"{name!s:.40}: is no setting of {cls.algo}")
        try:
            lists: dict[str, Any] = {
                name: tuple(given[name]) for name in ("opponents", "rivals") if name in given
            }
            return cls(**{**given, **lists})
        except TypeError as error:
            raise ConfigError(str(error)) from None

    @classmethod
    def load(cls: type[_Settings], path: Path) -> _Settings:
        """The settings in a JSON file."""
        return cls.from_dict(json.loads(path.read_text(encoding="utf-8")))


@dataclass(frozen=True)
class Config(Settings):
    """Settings of TD(lambda) self-play. The defaults train a two-player model on two cores."""

    average: float = 0.999
    """Decay, a gradient step, of the running mean of the weights; the mean is what plays."""
    lam_final: float = 0.5
    """Lambda at the end."""
    explore: float = 0.01
    """Share of endings chosen at random at the start; it falls to 0 by the end."""
    blur: float = 0.15
    """Half-width of the noise on the logits by which endings are chosen; it falls to 0."""
    warm_start: int = 3
    """First iterations whose games a rule-based teacher plays; 0 learns from nothing but
    self-play.
    """
    warm_start_games: int = 4000
    """Games in each of those iterations."""
    teacher: str = "greedy"
    """Who plays them; with PPO an agent (also a model's name) whose choices are imitated first."""
    noise: float = 0.1
    """Share of the teacher's actions that play-first chooses instead."""
    max_nodes: int = 128
    """Positions within a turn that the search looks at, at most: in self-play, with PPO the
    teacher's.
    """
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

    algo: ClassVar[str] = "td"
    bounds: ClassVar[dict[str, tuple[float, float]]] = {
        **Settings.bounds,
        "average": (0.0, 0.999999),
        "lam_final": (0.0, 1.0),
        "explore": (0.0, 1.0),
        "blur": (0.0, 10.0),
        "warm_start": (0, 10**6),
        "warm_start_games": (1, 10**6),
        "noise": (0.0, 1.0),
        "max_nodes": (1, MOST_NODES),
        "rival_share": (0.0, 1.0),
        "past_every": (1, 10**9),
        "past_kept": (1, 1000),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        draw = self.draw
        if draw is not None and (
            isinstance(draw, bool) or not isinstance(draw, (int, float)) or not 0.0 <= draw <= 1.0
        ):
            raise ConfigError(f"draw: must be a number from 0 to 1, got {draw!r:.40}")
        if self.teacher not in HEURISTICS:
            raise ConfigError(f"teacher: {self.teacher!r:.40} is none of {', '.join(HEURISTICS)}")


@dataclass(frozen=True)
class PpoConfig(Settings):
    """Settings of PPO self-play. The defaults learn a two-player policy from nothing."""

    hidden: int = 512
    hidden2: int = 256
    iterations: int = 2000
    games: int = 2048
    batch_size: int = 8192
    lr: float = 1e-3
    lr_final: float = 1e-5
    lam: float = 0.95
    eval_every: int = 50
    checkpoint_every: int = 25

    steps: int = 32
    """Decisions in each game in an iteration."""
    epochs: int = 2
    """Passes over an iteration's decisions."""
    clip: float = 0.2
    """How far the ratio of new to old probability may go from 1."""
    gamma: float = 1.0
    """Discount, a decision of the same seat."""
    entropy: float = 0.01
    """Weight of the entropy at the start; it falls to 0 by the end."""
    value_weight: float = 0.5
    """Weight of the value's squared error."""
    max_grad_norm: float = 0.5
    """Length that a gradient is cut to."""
    shaping: float = 1.0
    """What a whole stock pays at the start, a card at a time, beside the win's 1."""
    shaping_share: float = 0.6
    """Share of the run after which the stock cards pay nothing any more."""
    teacher: str | None = None
    teach: int = 0
    """First iterations, in which a teacher's choices are imitated, or its judgement followed."""
    teach_by: str = "imitation"
    """How: in games that the teacher plays, by doing the same; or (judgement) in games that the
    learner plays, by losing little of what the teacher finds each action worth.
    """
    teach_lr: float = 1e-3
    """Learning rate at their start; it goes along a cosine to lr."""
    teach_epochs: int = 3
    """Passes over the decisions of each of them."""
    teach_temperature: float = 0.0
    """How much less good than the teacher's an action may be and still be imitated: the temperature
    of a softmax over the logits of what each leads to; 0 for the teacher's alone. By imitation.
    """
    max_nodes: int = 256
    precision: str = "auto"

    algo: ClassVar[str] = "ppo"
    precisions: ClassVar[tuple[str, ...]] = ("auto", "float32", "bfloat16")
    ways: ClassVar[tuple[str, ...]] = ("imitation", "judgement")
    bounds: ClassVar[dict[str, tuple[float, float]]] = {
        **Settings.bounds,
        "steps": (1, 10**5),
        "epochs": (1, 1000),
        "clip": (1e-6, 10.0),
        "gamma": (0.0, 1.0),
        "entropy": (0.0, 10.0),
        "value_weight": (0.0, 100.0),
        "max_grad_norm": (1e-6, 1e6),
        "shaping": (0.0, 1000.0),
        "shaping_share": (0.0, 1.0),
        "teach": (0, 10**9),
        "teach_lr": (1e-9, 1.0),
        "teach_epochs": (1, 1000),
        "teach_temperature": (0.0, 100.0),
        "max_nodes": (1, MOST_NODES),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.teach and self.teacher is None:
            raise ConfigError("teacher: needs an agent to imitate for the first iterations (teach)")
        if self.teach_by not in self.ways:
            raise ConfigError(f"teach_by: {self.teach_by!r:.40} is none of {', '.join(self.ways)}")


KINDS: dict[str, type[Settings]] = {kind.algo: kind for kind in (Config, PpoConfig)}


def settings_from(data: dict[str, Any]) -> Settings:
    """The settings of whichever learner `to_dict` wrote; without "algo" they are TD's.

    Raises:
        ConfigError: no such learner, an unknown setting or a value out of range.
    """
    if not isinstance(data, dict):
        raise ConfigError(f"needs an object of settings, got {data!r:.40}")
    algo = data.get("algo", Config.algo)
    if not isinstance(algo, str) or algo not in KINDS:
        raise ConfigError(f"algo: {algo!r:.40} is none of {', '.join(KINDS)}")
    return KINDS[algo].from_dict(data)


def load_settings(path: Path) -> Settings:
    """The settings in a run's config.json; errors as of `settings_from`."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except RecursionError:
        raise ConfigError("is nested too deeply") from None
    return settings_from(data)


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
        precision="bfloat16",
    ),
}
PPO_DEFAULT = PpoConfig()
PPO_PRESETS: dict[str, PpoConfig] = {
    "smoke": replace(
        PPO_DEFAULT,
        hidden=256,
        hidden2=128,
        iterations=150,
        games=1024,
        batch_size=4096,
        eval_every=50,
        eval_pairs=200,
    ),
    "default": PPO_DEFAULT,
    "distilled": replace(
        PPO_DEFAULT,
        hidden=384,
        hidden2=192,
        iterations=320,
        steps=64,
        batch_size=4096,
        lr=3e-4,
        entropy=0.003,
        shaping=0.5,
        shaping_share=0.5,
        teacher="two-player",
        teach=20,
        teach_lr=2e-3,
        teach_epochs=4,
        max_nodes=128,
        eval_every=20,
        checkpoint_every=10,
    ),
    "gpu": replace(PPO_DEFAULT, games=16384, batch_size=65536, threads=16, device="cuda"),
}
ALL_PRESETS: dict[str, dict[str, Any]] = {Config.algo: PRESETS, PpoConfig.algo: PPO_PRESETS}
