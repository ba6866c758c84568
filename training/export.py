"""From a learned network to a model folder that plays without torch: config.json, value.safetensors
or policy.safetensors, and a card.
"""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from safetensors.numpy import save as save_tensors

from skipbo_env import __version__
from skipbo_env.agents.network import VERSION, Network
from skipbo_env.agents.policy import POLICY_VERSION, Policy
from training.checkpoint import write_atomically, write_json
from training.config import Config, PpoConfig, Settings, settings_from
from training.machine import cpu


def export_model(
    folder: Path, network: Network | Policy, config: Settings, trained: dict[str, Any]
) -> None:
    """Write a model folder with one network.

    Args:
        folder: where; made if it is not there.
        network: the weights: a value network's or a policy's.
        config: the settings of the run.
        trained: what the card tells of the training: games, decisions, seconds, evaluation.
    """
    folder.mkdir(parents=True, exist_ok=True)
    told: dict[str, Any] = {
        "hidden": [config.hidden, config.hidden2],
        "code": __version__,
        "training": config.to_dict(),
        "trained": trained,
    }
    if isinstance(network, Policy):
        file, version = "policy.safetensors", POLICY_VERSION
        told = {"policy": {"features": version, **told}}
    else:
        file, version = "value.safetensors", VERSION
        told = {"features": version, **told}
    weights = save_tensors(
        network._asdict(), metadata={"format": "skipbo-model", "features": str(version)}
    )
    write_atomically(folder / file, lambda out: out.write(weights))
    write_json(
        folder / "config.json",
        {
            "format": "skipbo-model",
            "version": 1,
            "players": config.players,
            "teams": config.teams,
            "stock_size": config.rules.stocks,
            **told,
        },
    )
    write_atomically(
        folder / "README.md", lambda out: out.write(card(folder.name, config, trained).encode())
    )


def command_of(config: Settings) -> str:
    """The `skipbo train` command with these settings: what differs from the default preset."""
    default = type(config)()
    words = ["skipbo train"]
    if not isinstance(config, Config):
        words.append(f"--algo {config.algo}")
    for item in fields(config):
        value = getattr(config, item.name)
        if value == getattr(default, item.name):
            continue
        shown = " ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
        words.append(f"--{item.name.replace('_', '-')} {shown}")
    return " ".join(words)


def _about(config: Settings) -> tuple[str, str]:
    """What the network is, and a tag."""
    if isinstance(config, PpoConfig):
        taught = f", after imitating {config.teacher}," if config.teach else ""
        return (
            f"picks an action in one forward pass. PPO self-play{taught} by `skipbo train --algo "
            "ppo`; the settings are in config.json.",
            "ppo",
        )
    return (
        "played by turn search: it\njudges how the turn can end, just before a hidden card is "
        "seen, and gives the mover's side's\nprobability to win. TD(lambda) self-play by "
        "`skipbo train`; the settings are in config.json.",
        "temporal-difference",
    )


def card(name: str, config: Settings, trained: dict[str, Any]) -> str:
    """A model card: what it is, how it was made, what it reached in the run's own evaluation."""
    table = f"{config.players} players" + (f", {config.teams} teams" if config.teams else "")
    panel = "\n".join(
        f"| {opponent} | {result['win_rate']:.1%} "
        f"| {result['interval'][0]:.1%} to {result['interval'][1]:.1%} | {result['games']:,} |"
        for opponent, result in trained.get("evaluation", {}).items()
    )
    earlier = [settings_from(settings) for settings in trained.get("earlier", [])]
    commands = "\n".join(f"| command | `{command_of(run)}` |" for run in (*earlier, config))
    own = ""
    if panel:
        own = f"""In the run's own evaluation (games that chose this network among the run's, so a
little flattering):

| opponent | win rate | 95% interval | games |
|---|---|---|---|
{panel}
"""
    kind = "policy" if isinstance(config, PpoConfig) else "value"
    what, tag = _about(config)
    hours, cpu_hours = (trained.get(name, 0) / 3600 for name in ("seconds", "cpu_seconds"))
    return f"""---
license: apache-2.0
library_name: skipbo-env
tags: [reinforcement-learning, skip-bo, self-play, {tag}]
---

# {name}

A {kind} network for Skip-Bo ({table}, {config.rules.stocks}-card stocks), {what}

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
