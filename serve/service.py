"""What all endpoints share: the agents that clients may name, the gate, and whether all is warm."""

from __future__ import annotations

import logging
import os
import re
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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

LOG = logging.getLogger("serve")
OPTIONS: dict[str, tuple[int, int]] = {
    "level": (1, 10),
    "samples": (1, limits.MAX_SAMPLES),
    "budget_ms": (1, limits.MAX_BUDGET_MS),
}
_NAME = re.compile(r"[a-z0-9][a-z0-9._:-]{0,99}")
_OPTION = re.compile(r"([a-z_]{1,20})=([0-9]{1,9})")
# Methods in which nothing is random, so that an agent keeps nothing.
_REUSED = ("turn", "planner", "best")


@dataclass(frozen=True)
class Choice:
    """An agent that was asked for.

    Attributes:
        base: its text without options.
        options: what was asked of it.
        listed: its entry in the list of agents, or what is known of one that is not listed.
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
        return self.method == "search"

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
        for entry in agents.list_agents(models_dir):
            if "error" in entry:  # the text names files of this machine
                LOG.warning("model %s is left out: %s", entry["name"], entry["error"])
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
        options = dict(_option(part, pointer) for part in query.split("&")) if mark else {}
        return Choice(name, options, self.listed[name])

    @contextmanager
    def lend(self, choice: Choice, seed: int, **options: int) -> Iterator[Any]:
        """An agent for the time of one answer; equal seeds give equal answers.

        Kept for the next are those in which nothing is random, but for clients' own options, of
        which there are too many, and after errors.

        Raises:
            Problem: "unknown-agent" where it does not take the options, or cannot be loaded.
        """
        text = choice.text(**options)
        agent = self._take(text)
        if agent is None:
            try:
                agent = skipbo_env.make_agent(text, seed=seed, models_dir=self.models_dir)
            except agents.AgentError as error:
                raise _unknown(str(error).removeprefix("agent: ")) from None
            except agents.ModelError:
                LOG.exception("agent %s cannot be loaded", text)
                raise _unknown(f"{choice.name} cannot be loaded") from None
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

    def to_warm(self) -> list[Choice]:
        """The operator's own agent, and one of each method."""
        by_method = {choice.method: choice for choice in map(self.choose, self.listed)}
        return [self.default, *by_method.values()]


def _unknown(detail: str, pointer: str = "/agent") -> Problem:
    return field_problem("unknown-agent", pointer, detail)


def _option(part: str, pointer: str) -> tuple[str, int]:
    """An option of a client's, within its bounds."""
    match = _OPTION.fullmatch(part)
    if match is None or match[1] not in OPTIONS:
        raise _unknown(f"no option {part[:40]!r}; the options are {', '.join(OPTIONS)}", pointer)
    low, high = OPTIONS[match[1]]
    if not low <= int(match[2]) <= high:
        raise _unknown(f"{match[1]} must be {low} to {high}", pointer)
    return match[1], int(match[2])


@dataclass
class Service:
    """What all endpoints share."""

    agents: Agents
    store: Store
    metrics: Metrics
    gate: Gate = field(default_factory=Gate)
    ready: threading.Event = field(default_factory=threading.Event)
    rate_limit: RateLimit | None = None


def service() -> Service:
    """The current app's."""
    return cast(Service, current_app.extensions["skipbo"])
