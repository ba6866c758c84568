"""What all endpoints share: the agents that clients may name, the gate, and whether all is warm."""

from __future__ import annotations

import dataclasses
import logging
import os
import re
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, cast

from flask import current_app

import skipbo_env
from serve import limits
from serve.limits import Gate, RateLimit
from serve.metrics import Metrics
from serve.problems import Problem, field_problem
from serve.store import Store
from skipbo_env import agents
from skipbo_env.rules import Rules

LOG = logging.getLogger("serve")
# What clients may set, where the agent takes it, and how much of it at most.
OPTIONS: dict[str, int] = {
    "level": 10,
    "samples": limits.MAX_SAMPLES,
    "budget_ms": limits.MAX_BUDGET_MS,
}
_NAME = re.compile(r"[a-z0-9][a-z0-9._:-]{0,99}")
_OPTION = re.compile(r"([a-z_]{1,20})=([0-9]{1,9})")
# Methods in which nothing is random, so that an agent keeps nothing.
_REUSED = ("turn", "policy", "planner", "best")


@dataclass(frozen=True)
class Choice:
    """An agent that was asked for.

    Attributes:
        base: its text without options.
        options: what was asked of it.
        listed: its entry in the list of agents, or what is known of one that is not listed. In it
            "options" has the bounds of what the agent takes, "costly" whether it takes a core for
            long; searches do unless told otherwise.
    """

    base: str
    options: Mapping[str, object]
    listed: Mapping[str, Any]

    @property
    def name(self) -> str:
        """What clients are told: of a folder its name alone."""
        return re.split(r"[/\\]", self.base)[-1]

    @property
    def method(self) -> str:
        """How it chooses: "rules", "turn", "search" and so on."""
        return str(self.listed.get("method"))

    @property
    def costly(self) -> bool:
        """Whether it may take a core for long, so that the gate has to limit it."""
        return bool(self.listed.get("costly", self.method == "search"))

    @property
    def takes(self) -> dict[str, tuple[int, int]]:
        """The options that clients may set, with their bounds."""
        declared = self.listed.get("options") or {}
        return {
            name: (int(low), min(int(high), OPTIONS[name]))
            for name, (low, high) in declared.items()
            if name in OPTIONS
        }

    def budget(self, asked_ms: int | None = None) -> dict[str, int]:
        """The time that the agent is to take for one move, as an option; {} where it takes none.

        One that is told neither a time nor a number of samples gets a time of the service's own,
        since its own idea may be too long for a request; with samples alone, the longest time.
        """
        if "budget_ms" not in self.takes:
            return {}
        if asked_ms is not None:
            return {"budget_ms": asked_ms}
        if "budget_ms" in self.options:
            return {}
        longest = limits.MAX_BUDGET_MS if self.samples_only else limits.DEFAULT_BUDGET_MS
        return {"budget_ms": longest}

    @property
    def samples_only(self) -> bool:
        """Whether it was told a number of samples and no time, where it takes a time."""
        return "budget_ms" in self.takes and set(self.options) & {"samples", "budget_ms"} == {
            "samples"
        }

    def told(self, agent: Any, name: str) -> str:
        """An answer's name of its agent: as asked for, or whom "best" has chosen."""
        if hasattr(agent, "chosen"):
            return name
        return self.text().replace(self.base, self.name, 1)

    def text(self, **options: int) -> str:
        """The agent's text with its options and those given here."""
        every = {**self.options, **options}
        return self.base + ("?" if every else "") + "&".join(f"{k}={v}" for k, v in every.items())


class Agents:
    """The agents that may be named over HTTP: listed at the start, so that no client steers a path.

    Args:
        models_dir: where models lie beside those that ship.
        default: who answers where no agent is named; None for "best".
        metrics: where the agents' time is counted.

    Raises:
        ValueError: no such default agent.
    """

    def __init__(
        self,
        models_dir: str | os.PathLike[str] | None = None,
        default: str | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self._metrics = metrics or Metrics()
        self.models_dir = models_dir
        self.listed: dict[str, dict[str, Any]] = {}
        self.damaged: list[str] = []
        for entry in agents.list_agents(models_dir):
            if "error" in entry:  # the text names files of this machine
                LOG.warning("model %s is left out: %s", entry["name"], entry["error"])
                self.damaged.append(str(entry["name"]))
            else:
                self.listed[str(entry["name"])] = dict(entry)
        self._idle: dict[str, list[Any]] = defaultdict(list)
        self._lock = threading.Lock()
        self.default = self._own_choice(default or "best")
        skipbo_env.make_agent(self.default.text(), seed=0, models_dir=models_dir)

    def _own_choice(self, text: str) -> Choice:
        """The operator's choice, which may be what no client may ask for, such as a folder."""
        base, _, query = text.partition("?")
        options = dict(part.split("=", 1) for part in query.split("&") if "=" in part)
        method = base.partition(":")[0] if ":" in base else "turn"
        return Choice(base, options, self.listed.get(base, {"method": method}))

    def choose(self, text: str | None, pointer: str = "/agent") -> Choice:
        """The agent that a client's text names, None for the operator's choice.

        Raises:
            Problem: "unknown-agent", with the pointer to the field.
        """
        if text is None:
            return self.default
        name, mark, query = text.partition("?")
        if not _NAME.fullmatch(name) or name not in self.listed:
            raise _unknown(f"no agent {text[:60]!r} here; GET /v1/agents lists them", pointer)
        choice = Choice(name, {}, self.listed[name])
        if not mark:
            return choice
        given = [_option(part, choice, pointer) for part in query.split("&")]
        options = dict(given)
        if len(options) < len(given):
            raise _unknown(f"an option of {text[:60]!r} is given twice", pointer)
        return dataclasses.replace(choice, options=options)

    @contextmanager
    def lend(
        self,
        choice: Choice,
        seed: int,
        options: Mapping[str, int] | None = None,
        *,
        pointer: str = "/agent",
    ) -> Iterator[Any]:
        """An agent for the time of one answer; equal seeds give equal answers.

        Kept for the next are those in which nothing is random, but for clients' own options, of
        which there are too many, and after errors.

        Raises:
            Problem: "unknown-agent" where it does not take the options, or cannot be loaded, with
                the pointer to the field.
        """
        text = choice.text(**(options or {}))
        agent = self._take(text)
        if agent is None:
            try:
                agent = skipbo_env.make_agent(text, seed=seed, models_dir=self.models_dir)
            except agents.AgentError as error:
                raise _unknown(str(error).removeprefix("agent: "), pointer) from None
            except agents.ModelError:
                LOG.exception("agent %s cannot be loaded", text)
                raise _unknown(f"{choice.name} cannot be loaded", pointer) from None
        started = time.perf_counter()
        yield agent
        self._metrics.agent(choice.method, time.perf_counter() - started)
        if choice.method in _REUSED and (choice is self.default or not choice.options):
            with self._lock:
                self._idle[text].append(agent)

    def _take(self, text: str) -> Any:
        with self._lock:
            idle = self._idle.get(text)
            return idle.pop() if idle else None

    @property
    def models(self) -> list[str]:
        """The models that listed agents play with, sorted."""
        return sorted({str(e["model"]) for e in self.listed.values() if e.get("model")})

    def to_warm(self) -> list[Choice]:
        """The operator's own agent, and one of each method."""
        by_method = {choice.method: choice for choice in map(self.choose, self.listed)}
        return [self.default, *by_method.values()]


def _unknown(detail: str, pointer: str = "/agent") -> Problem:
    return field_problem("unknown-agent", pointer, detail)


def _option(part: str, choice: Choice, pointer: str) -> tuple[str, int]:
    """An option of a client's, within its bounds."""
    match = _OPTION.fullmatch(part)
    if match is None or match[1] not in choice.takes:
        known = ", ".join(choice.takes) or "none"
        raise _unknown(
            f"{choice.name} takes no option {part[:40]!r}; its options are: {known}", pointer
        )
    low, high = choice.takes[match[1]]
    if not low <= int(match[2]) <= high:
        raise _unknown(f"{match[1]} must be {low} to {high}", pointer)
    return match[1], int(match[2])


def check_plays(choice: Choice, agent: Any, rules: Rules, pointer: str = "/agent") -> None:
    """Refuse an agent that does not play these rules.

    Raises:
        Problem: "unknown-agent", with the pointer to the field.
    """
    if not getattr(agent, "plays", lambda rules: True)(rules):
        table = f"{rules.players} players" + (" in teams" if rules.teams else "")
        raise _unknown(f"{choice.name} does not play {table}", pointer)


@dataclass
class Service:
    """What all endpoints share."""

    agents: Agents
    store: Store
    metrics: Metrics
    gate: Gate
    ready: threading.Event = field(default_factory=threading.Event)
    rate_limit: RateLimit | None = None
    # Reviews in the background: how many more may be asked for, and whose turn it is.
    reviews: threading.BoundedSemaphore = field(
        default_factory=lambda: threading.BoundedSemaphore(limits.MAX_REVIEWS)
    )
    reviewing: threading.Lock = field(default_factory=threading.Lock)

    def room_for(self, *choices: Choice) -> AbstractContextManager[None]:
        """A place at the gate for the time of a block, where one of these agents is costly.

        Raises:
            Problem: "busy".
        """
        costly = any(choice.costly for choice in choices)
        return self.gate.enter() if costly else nullcontext()


def service() -> Service:
    """The current app's."""
    return cast(Service, current_app.extensions["skipbo"])
