"""From a learned network to a model folder that plays without torch: config.json, value.safetensors
or policy.safetensors, and a card.
"""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

from safetensors.numpy import save as save_tensors

from skipbo_env import __version__
from skipbo_env.agents.models import Model, ModelError, load_model
from skipbo_env.agents.network import VERSION, Network
from skipbo_env.agents.policy import POLICY_VERSION, Policy
from training.config import Config, PpoConfig, Settings, settings_from
from training.files import write_atomically, write_json
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
    """Which network it is, and how it plays and learned."""
    if isinstance(config, PpoConfig):
        how = "imitating" if config.teach_by == "imitation" else "the judgement of"
        taught = f", first by {how} {config.teacher}" if config.teach else ""
        return "policy", (
            f"which picks an action\nin one forward pass. PPO self-play by `skipbo train --algo "
            f"ppo`{taught}; the settings are in config.json."
        )
    return "value", (
        "played by turn search: it\njudges how the turn can end, just before a hidden card is "
        "seen, and gives the mover's side's\nprobability to win. TD(lambda) self-play by "
        "`skipbo train`; the settings are in config.json."
    )


def section(config: Settings, trained: dict[str, Any]) -> str:
    """What a card tells of one network: what it is, how it was made, what it reached in the run's
    own evaluation.
    """
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
    kind, what = _about(config)
    hours, cpu_hours = (trained.get(name, 0) / 3600 for name in ("seconds", "cpu_seconds"))
    return f"""A {kind} network for Skip-Bo ({table}, {config.rules.stocks}-card stocks), {what}

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


def card(name: str, config: Settings, trained: dict[str, Any]) -> str:
    """A model card."""
    tag = "proximal-policy-optimization" if config.algo == "ppo" else "temporal-difference"
    return f"""---
license: apache-2.0
library_name: skipbo-env
tags: [reinforcement-learning, skip-bo, self-play, {tag}]
---

# {name}

{section(config, trained)}"""


def add_networks(model: Model, folder: Path) -> list[Path]:
    """Copy a model's networks into a model folder, with what its config.json tells of them.

    Args:
        model: whose networks.
        folder: a new folder, or a model's that plays the same table and lacks them; its card gets a
            section.

    Returns:
        The weights' files that were written.

    Raises:
        ModelError: the folder has such a network already, is for another table, or is damaged.
    """
    files = {
        "value.safetensors": ("features", "hidden", "code", "training", "trained"),
        "policy.safetensors": ("policy",),
    }
    networks = (model.value, model.policy)
    files = {
        file: names
        for (file, names), network in zip(files.items(), networks, strict=True)
        if network is not None
    }
    card_text = (model.path / "README.md").read_text(encoding="utf-8")
    if not (folder / "config.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        config = dict(model.config)
    else:
        there = load_model(folder)
        if (there.players, there.teams) != (model.players, model.teams):
            raise ModelError(f"{folder}: plays another table than {model.name}")
        for file in files:
            if (folder / file).exists():
                raise ModelError(f"{folder / file}: is there already")
        told = {name: model.config[name] for names in files.values() for name in names}
        config = {**there.config, **told}
        card_text = _with_section(folder / "README.md", model)
    written = []
    for file in files:
        weights = (model.path / file).read_bytes()
        write_atomically(folder / file, partial(_write, weights))
        written.append(folder / file)
    write_json(folder / "config.json", config)
    write_atomically(folder / "README.md", lambda out: out.write(card_text.encode()))
    return written


def _write(data: bytes, out: Any) -> None:
    out.write(data)


def _with_section(file: Path, model: Model) -> str:
    """A card with a section on another model's policy, before the results."""
    text = file.read_text(encoding="utf-8")
    told = model.config.get("policy") or model.config
    about = section(settings_from(told["training"]), told["trained"]).strip()
    place = text.find("## Results")
    place = len(text) if place < 0 else place
    title = "## Policy" if model.policy is not None else "## Value network"
    return f"{text[:place].rstrip()}\n\n{title}\n\n{about}\n\n{text[place:]}".rstrip() + "\n"
