"""From a learned network to a model folder that plays without torch: config.json, value.safetensors
and a card.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from safetensors.numpy import save as save_tensors

from skipbo_env import __version__
from skipbo_env.agents.network import VERSION, Network
from training.checkpoint import write_atomically, write_json
from training.config import DEFAULT, Config
from training.machine import cpu


def export_model(folder: Path, network: Network, config: Config, trained: dict[str, Any]) -> None:
    """Write a model folder.

    Args:
        folder: where; made if it is not there.
        network: the weights.
        config: the settings of the run.
        trained: what the card tells of the training: games, decisions, seconds, evaluation.
    """
    folder.mkdir(parents=True, exist_ok=True)
    weights = save_tensors(
        network._asdict(), metadata={"format": "skipbo-model", "features": str(VERSION)}
    )
    write_atomically(folder / "value.safetensors", lambda file: file.write(weights))
    write_json(
        folder / "config.json",
        {
            "format": "skipbo-model",
            "version": 1,
            "features": VERSION,
            "players": config.players,
            "teams": config.teams,
            "stock_size": config.rules.stocks,
            "hidden": [config.hidden, config.hidden2],
            "code": __version__,
            "training": config.to_dict(),
            "trained": trained,
        },
    )
    write_atomically(
        folder / "README.md", lambda file: file.write(card(folder.name, config, trained).encode())
    )


def command_of(config: Config) -> str:
    """The `skipbo train` command with these settings: what differs from the default preset."""
    words = ["skipbo train"]
    for name, value in config.to_dict().items():
        if value == getattr(DEFAULT, name):
            continue
        shown = " ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
        words.append(f"--{name.replace('_', '-')} {shown}")
    return " ".join(words)


def card(name: str, config: Config, trained: dict[str, Any]) -> str:
    """A model card: what it is, how it was made, what it reached in the run's own evaluation."""
    table = f"{config.players} players" + (f", {config.teams} teams" if config.teams else "")
    panel = "\n".join(
        f"| {opponent} | {result['win_rate']:.1%} "
        f"| {result['interval'][0]:.1%} to {result['interval'][1]:.1%} | {result['games']:,} |"
        for opponent, result in trained.get("evaluation", {}).items()
    )
    earlier = [Config.from_dict(settings) for settings in trained.get("earlier", [])]
    commands = "\n".join(f"| command | `{command_of(run)}` |" for run in (*earlier, config))
    own = ""
    if panel:
        own = f"""In the run's own evaluation (games that chose this network among the run's, so a
little flattering):

| opponent | win rate | 95% interval | games |
|---|---|---|---|
{panel}
"""
    hours, cpu_hours = (trained.get(name, 0) / 3600 for name in ("seconds", "cpu_seconds"))
    return f"""---
license: apache-2.0
library_name: skipbo-env
tags: [reinforcement-learning, skip-bo, self-play, temporal-difference]
---

# {name}

A value network for Skip-Bo ({table}, {config.rules.stocks}-card stocks), played by turn search: it
judges how the turn can end, just before a hidden card is seen, and gives the mover's side's
probability to win. TD(lambda) self-play by `skipbo train`; the settings are in config.json.

| | |
|---|---|
{commands}
| machine | {cpu()} |
| games learned from | {trained.get("games", 0):,.0f} |
| decisions | {trained.get("decisions", 0):,.0f} |
| hours | {hours:.2f}, of CPU {cpu_hours:.2f} |
| iterations | {trained.get("iteration", 0):,} of {config.iterations:,} |
| seed | {config.seed} |
| code version | {trained.get("revision", __version__)} |

{trained.get("notes", "")}

{own}"""
