"""One training run from start or checkpoint to model folder: iterations, evaluation, logs,
checkpoints, signals.
"""

from __future__ import annotations

import json
import math
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import torch
from torch.utils.tensorboard import SummaryWriter

from skipbo_env.agents.agent import Agent
from skipbo_env.rules import Rules
from training import checkpoint, ppo, ranks, td
from training.arena import Match, run_match, summary
from training.config import Config, ConfigError, PpoConfig, Settings
from training.start import earlier_runs

EVALUATION_SEED = 90_000_000  # far from the seeds of training and of published matches


class Learner(Protocol):
    """What a run needs of `td.Learner` and `ppo.Learner`; see there."""

    iteration: int
    totals: dict[str, float]

    def iterate(self) -> dict[str, float]:
        """One round of playing and learning; numbers for the log."""

    def agent(self) -> Agent:
        """What has been learned so far, to play with."""

    def weights(self) -> dict[str, torch.Tensor]:
        """What `best.pt` keeps of it."""

    def export(self, folder: Path, trained: dict[str, Any]) -> None:
        """Write it as a model folder."""

    def state(self) -> dict[str, Any]:
        """What a checkpoint needs; a call that all ranks make."""

    def load(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint's state."""

    def start_from(self, name: str) -> list[dict[str, Any]]:
        """Take over what a run or model has learned; the settings of the runs behind it."""


def learner_of(config: Settings) -> Learner:
    """The learner that the settings are of, as it stands before the first iteration."""
    if isinstance(config, PpoConfig):
        if config.device == "cpu":
            torch.set_num_threads(config.threads)
        return ppo.Learner(config)
    if isinstance(config, Config):
        if config.device == "cpu":
            torch.set_num_threads(1)  # its threads play games
        return td.Learner(config)
    raise TypeError(f"no learner has settings of {type(config).__name__}")


def check_panel(config: Settings) -> None:
    """Raise what an evaluation would, before hours have gone into the run.

    Raises:
        ConfigError: an opponent that is no agent or does not play this table.
    """
    for opponent in config.opponents:
        try:
            Match("play-first", opponent, config.rules)
        except ValueError as error:
            raise ConfigError(f"opponents: {error}") from None


def check_finite(learner: Learner, numbers: Mapping[str, Any]) -> None:
    """Stop a run that has diverged, before anything of it is kept.

    Raises:
        CheckpointError: a weight, or a number of the log, is infinite or none.
    """
    broken = [name for name, value in numbers.items() if not math.isfinite(value)]
    broken += [name for name, part in learner.weights().items() if not part.isfinite().all()]
    if broken:
        raise checkpoint.CheckpointError(
            f"iteration {numbers['iteration']}: {broken[0]} is not finite, the run has diverged; "
            "its last checkpoint and best network stand. Try a lower lr"
        )


def panel(agent: Agent, config: Settings) -> dict[str, dict[str, Any]]:
    """The agent's paired matches against each opponent of the panel, at the real turn limit."""
    rules = Rules(players=config.players, teams=config.teams, stock_size=config.stock_size)
    results = {}
    for opponent in config.opponents:
        match = Match(agent, opponent, rules, seed=EVALUATION_SEED)
        # Weak opponents are told apart by a fifth of the games.
        units = (
            config.eval_pairs
            if opponent == config.opponents[-1]
            else max(config.eval_pairs // 5, 1)
        )
        results[opponent] = summary(match, run_match(match, units, workers=config.threads), 0.0)
    return results


@contextmanager
def _stop_on_signals(told: Callable[[], None]) -> Iterator[list[int]]:
    """Turn the first SIGINT or SIGTERM into a request to stop after the iteration, and tell it."""
    received: list[int] = []
    before = {}

    def handle(number: int, frame: Any) -> None:
        del frame
        received.append(number)
        if len(received) > 1:
            raise KeyboardInterrupt
        told()

    for number in (signal.SIGINT, signal.SIGTERM):
        before[number] = signal.signal(number, handle)
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _revision() -> str:
    try:
        found = subprocess.run(
            ["git", "describe", "--always", "--dirty"],  # noqa: S607
            capture_output=True,
            text=True,
            cwd=Path(__file__).parent,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        from skipbo_env import __version__

        return __version__
    return found.stdout.strip()


def train(
    config: Settings,
    folder: Path,
    *,
    resume: bool = False,
    progress: Callable[[dict[str, Any]], None] | None = None,
) -> Path | None:
    """Run to the last iteration, or until a signal; always leaves a checkpoint and, once evaluated,
    a model.

    Args:
        config: the settings; with `resume` those of the run are used.
        folder: the run's folder.
        resume: go on from the folder's checkpoint.
        progress: called with the numbers of every iteration and evaluation, with "resumed" as
            "kind" before the first ones of a resumed run, and with "stopping" when a signal has
            come.

    Returns:
        The model folder, or None where a signal came before the first evaluation.

    Raises:
        CheckpointError: the folder cannot be used, a file cannot be written or read, or the run to
            resume was begun by another number of ranks.
    """
    ranks.join(config.device)
    config = checkpoint.settings_of(folder, config, resume=resume)
    check_panel(config)
    learner = learner_of(config)
    best: dict[str, Any] = {"score": -1.0}
    file = folder / "checkpoint.pt"

    def save() -> None:
        state = {**learner.state(), "ranks": ranks.size()}  # all ranks' together
        if ranks.is_first():
            checkpoint.save(file, state)

    if resume:
        state = checkpoint.load(file)
        of = state.get("ranks", 1)
        if of != ranks.size():
            raise checkpoint.CheckpointError(
                f"{file}: is of a run by {of} ranks, here are {ranks.size()}; resume it by as "
                f"many, or begin another run with --start-from {folder}"
            )
        try:
            learner.load(state)
        except checkpoint.CheckpointError as error:
            raise checkpoint.CheckpointError(f"{file}: {error}") from None
        if (folder / "best.pt").exists():
            best = checkpoint.load_best(folder / "best.pt")
        earlier_runs(folder)  # to be told of a damaged file now
        if ranks.is_first():
            checkpoint.cut_log(folder / "log.jsonl", learner.iteration)
            if progress:
                progress({"kind": "resumed", "iteration": learner.iteration})
    else:
        earlier: list[dict[str, Any]] = []
        if config.start_from:
            earlier = learner.start_from(config.start_from)
        ranks.gather(None)  # all have looked whether the folder is free before the first writes
        if ranks.is_first():
            folder.mkdir(parents=True, exist_ok=True)
            if earlier:  # kept here, so that the run needs the other's folder no more
                checkpoint.write_json(folder / "earlier.json", earlier)
        save()
        if ranks.is_first():
            # Last, so that a folder with settings always has something to resume from.
            checkpoint.write_json(folder / "config.json", config.to_dict())
    writer = None
    if ranks.is_first():
        writer = SummaryWriter(str(folder / "tensorboard"), purge_step=learner.iteration + 1)
    revision = _revision()

    def log(kind: str, numbers: dict[str, Any]) -> None:
        if writer is None:
            return
        with open(folder / "log.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps({"kind": kind, **numbers}) + "\n")
        for name, value in numbers.items():
            if isinstance(value, (int, float)) and name != "iteration":
                writer.add_scalar(f"{kind}/{name}", value, learner.iteration)
        if progress:
            progress({"kind": kind, **numbers})

    def stopping() -> None:
        if progress and ranks.is_first():
            progress({"kind": "stopping", "iteration": learner.iteration})

    with _stop_on_signals(stopping) as stopped:
        stop = False
        while learner.iteration < config.iterations and not stop:
            numbers = learner.iterate()
            check_finite(learner, numbers)
            log("train", numbers)
            last = learner.iteration == config.iterations
            if last or learner.iteration % config.eval_every == 0:
                results = panel(learner.agent(), config)
                score = results[config.opponents[-1]]["win_rate"]
                numbers = {"iteration": learner.iteration, **learner.totals}
                for opponent, result in results.items():
                    numbers[f"win_rate_{opponent}"] = result["win_rate"]
                    numbers[f"low_{opponent}"], numbers[f"high_{opponent}"] = result["interval"]
                    numbers[f"stalemate_rate_{opponent}"] = result["stalemate_rate"]
                log("evaluation", numbers)
                if score >= best["score"]:
                    trained = {
                        "iteration": learner.iteration,
                        **learner.totals,
                        "revision": revision,
                        "earlier": earlier_runs(folder),
                    }
                    best = {
                        "score": score,
                        "network": learner.weights(),
                        "trained": {**trained, "evaluation": results},
                    }
                    if ranks.is_first():
                        checkpoint.save(folder / "best.pt", best)
                        learner.export(folder / "model", best["trained"])
            stop = any(ranks.gather(bool(stopped)))
            due = last or stop or learner.iteration % config.checkpoint_every == 0
            if due:
                save()
    ranks.gather(None)  # whoever reads the files next finds them whole
    if writer is not None:
        writer.close()
    return folder / "model" if best["score"] >= 0 else None
