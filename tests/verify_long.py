"""The long comparison of engine and reference: `python -m tests.verify_long [--decisions N]`.

Without arguments: 1,000 games of every number of players and every rule-based agent under the
standard rules and as many games under random rules, 8.6 million decisions in all. With
--decisions N it goes on until so many have been compared. Every decision is followed by the full
comparison of `tests.compare.compare_game`, the observations of every seat included. Games are
numbered and each follows from its number alone, so what is compared does not depend on how many
processes share the work.

Exit code 1 on a difference, with the rules, the seed, the step and the call that plays it again.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import random
import sys
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from typing import NamedTuple

from skipbo_env.rules import Rules
from tests.compare import AGENTS, Difference, any_rules, compare_game

PLAYERS = range(2, 7)
TABLES = len(PLAYERS) * len(AGENTS)
FIRST_SEED = 10_000_000  # apart from the seeds of tests/test_engine.py
MOST_STEPS = 3000  # random rules may let a game go on for all of 2,000 turns


class Task(NamedTuple):
    """One game to compare."""

    number: int
    rules: Rules
    seed: int
    agent: str


class Done(NamedTuple):
    """What a batch of games came to; `difference` is a text where one was found."""

    games: int
    decisions: int
    observations: int
    cpu: float
    difference: str | None


def standard_task(number: int) -> Task:
    """A game under the standard rules: every agent at every number of players in turn."""
    index, table = divmod(number, TABLES)
    players, agent = divmod(table, len(AGENTS))
    return Task(number, Rules(players=PLAYERS[players]), FIRST_SEED + index, AGENTS[agent])


def random_task(number: int) -> Task:
    """A game under random rules, which follow from its number."""
    rng = random.Random(number)
    return Task(number, any_rules(rng.randint), rng.getrandbits(64), rng.choice(AGENTS))


def compare_batch(batch: int) -> Done:
    """Compare the games of a batch, one of every table and agent and as many under random rules.

    It ends at the first difference.
    """
    started = time.process_time()
    games = decisions = observations = 0
    difference = None
    numbers = range(TABLES * batch, TABLES * (batch + 1))
    for task in [make(number) for number in numbers for make in (standard_task, random_task)]:
        try:
            played = compare_game(task.rules, task.seed, task.agent, MOST_STEPS)
        except Difference as error:
            difference = f"game {task.number} ({task.agent}, seed {task.seed}), {error}"
            break
        games += 1
        decisions += played.decisions
        observations += played.observations
    return Done(games, decisions, observations, time.process_time() - started, difference)


def verify(batches: int | None, decisions: int | None, processes: int, first: int = 0) -> int:
    """Run the comparison and print how it goes; returns the exit code.

    Args:
        batches: how many, unless the number of decisions ends it.
        decisions: as many batches as make so many.
        processes: how many share the work.
        first: the number of the batch to begin with, to go on from a run that was stopped.
    """
    total = Done(0, 0, 0, 0.0, None)
    started = last = time.monotonic()
    left: Iterator[int] = itertools.count(first)
    if decisions is None:
        left = iter(range(first, batches or 0))
    waiting: deque[Future[Done]] = deque()
    # Spawned, not forked: compiled code may run threads.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        while decisions is None or total.decisions < decisions:
            for batch in itertools.islice(left, 2 * processes - len(waiting)):
                waiting.append(pool.submit(compare_batch, batch))
            if not waiting:
                break
            done = waiting.popleft().result()
            total = Done(*(a + b for a, b in zip(total[:4], done[:4], strict=True)), None)
            if done.difference:
                pool.shutdown(wait=False, cancel_futures=True)
                print(f"\nDIFFERENCE in {done.difference}", flush=True)
                return 1
            if time.monotonic() - last > 2:
                last = time.monotonic()
                print(f"\r{progress(total, last - started)}", end="", flush=True)
        pool.shutdown(wait=False, cancel_futures=True)
    print(f"\r{progress(total, time.monotonic() - started)}: no difference", flush=True)
    return 0


def progress(total: Done, seconds: float) -> str:
    """One line of figures."""
    rate = total.decisions / total.cpu if total.cpu else 0.0
    return (
        f"{total.games:,} games, {total.decisions:,} decisions, {total.observations:,} "
        f"observations, {seconds:,.0f} s, {total.cpu:,.0f} CPU s, {rate:,.0f} decisions per CPU s"
    )


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.verify_long",
        description="Compare the compiled engine with the plain reference over many games.",
    )
    parser.add_argument("--decisions", type=int, help="go on until so many have been compared")
    parser.add_argument("--games", type=int, default=1000, help="of every table and agent (1000)")
    parser.add_argument(
        "--first",
        type=int,
        default=0,
        help="begin with this batch: the games that a stopped run printed, divided by "
        f"{2 * TABLES} (0)",
    )
    parser.add_argument("--processes", type=int, default=2, help="2 unless given")
    chosen = parser.parse_args(arguments)
    return verify(chosen.games, chosen.decisions, chosen.processes, chosen.first)


if __name__ == "__main__":
    sys.exit(main())
