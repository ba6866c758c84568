"""Agents as objects, and the texts that name them.

    random, play-first, simple, greedy      rule-based, see `heuristics`
    two-player, PATH/TO/FOLDER              a model, played by turn search on its network
    turn:two-player                         the same, said outright
    best                                    the shipped model made for the game's rules, else greedy
    py:module:factory                       factory() gives an object with act(game_or_position)

Options follow a question mark: `turn:two-player?max_nodes=256`.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable
from urllib.parse import parse_qsl

import numpy as np

from skipbo_env.actions import MOVES
from skipbo_env.agents import heuristics
from skipbo_env.agents.models import Model, ModelError, find_model, list_models, load_model
from skipbo_env.agents.network import FLIP, FLIP_REFILL, REFILL, TURN_OVER, evaluate_slots
from skipbo_env.agents.turn import MAX_NODES, Work, fill_ending, new_work, search
from skipbo_env.checks import is_whole, shown
from skipbo_env.engine import layout, moves
from skipbo_env.game import Game
from skipbo_env.rules import Rules

METHODS = ("turn",)
LINE_ENDS = {TURN_OVER: "discard", FLIP: "stock_flip", REFILL: "refill", FLIP_REFILL: "stock_flip"}


class AgentError(ValueError):
    """A text that names no agent, a bad option, or an agent that does not play these rules."""


@runtime_checkable
class Agent(Protocol):
    """What picks moves. A user's own agent needs `act` alone.

    The game that it is given looks to the seat to move as the real one does; the arena and the
    environments deal what is hidden from it anew.
    """

    name: str

    def act(self, game_or_position: Game | Mapping[str, Any]) -> int:
        """The id of the chosen action for the seat to move."""


def _game(game_or_position: Game | Mapping[str, Any]) -> Game:
    game = (
        game_or_position
        if isinstance(game_or_position, Game)
        else Game.from_position(game_or_position, seed=0)
    )
    if game.over:
        raise AgentError("the game is over: there is nothing to choose")
    return game


class RuleAgent:
    """A rule-based agent, with a random stream of its own."""

    model: Model | None = None
    method = "rules"

    def __init__(self, name: str, *, seed: int = 0) -> None:
        self.name = name
        self.kind = heuristics.HEURISTICS.index(name)
        self._streams = np.random.SeedSequence(seed).generate_state(1, np.uint64)

    def plays(self, rules: Rules) -> bool:
        """Rule-based agents play everything."""
        del rules
        return True

    def act(self, game_or_position: Game | Mapping[str, Any]) -> int:
        """The id of the chosen action for the seat to move."""
        return int(heuristics.choose_now(self.kind, _game(game_or_position).state, self._streams))


class TurnAgent:
    """Turn search on a model's value network (see `skipbo_env.agents.turn`).

    Nothing in it is random, and nothing hidden is read.

    Args:
        model: the model.
        name: how it is shown.
        max_nodes: positions within a turn that a search looks at, at most.
    """

    method = "turn"

    def __init__(
        self, model: Model, *, name: str | None = None, max_nodes: int = MAX_NODES
    ) -> None:
        self.model = model
        self.name = name or model.name
        self.max_nodes = max_nodes
        self._work: Work | None = None
        self._streams = np.zeros(1, np.uint64)

    def plays(self, rules: Rules) -> bool:
        """Whether the model is made for these numbers of players and teams."""
        return self.model.plays(rules)

    def _prepare(self, game: Game) -> Work:
        if not self.plays(game.rules):
            table = f"{self.model.players} players" + (
                f" in {self.model.teams} teams" if self.model.teams else ""
            )
            raise AgentError(f"agent: {self.name} plays games of {table} only")
        if self._work is None or self._work.state.shape != game.state.shape:
            self._work = new_work(game.state, self.model.value, self.max_nodes)
        return self._work

    def act(self, game_or_position: Game | Mapping[str, Any]) -> int:
        """The id of the first action of the best plan for the rest of the turn."""
        game = _game(game_or_position)
        work = self._prepare(game)
        search(game.state, self.model.value, work, self.max_nodes, self._streams, 0, 0.0)
        return int(work.path[0])

    def _judge(self, game: Game, work: Work, action: int) -> tuple[float, list[int], str | None]:
        """The win probability of an action with the best that can follow, the line, its end."""
        net = self.model.value
        kind = int(fill_ending(game.state, action, work))
        if kind >= 0:
            move = MOVES[action]
            if move.source == "stock" and self._wins(game):
                return 1.0, [action], "win"
            value = float(evaluate_slots(net, work.ending, work.acc, work.hidden))
            return value, [action], "pass" if move.kind == "pass" else LINE_ENDS[kind]
        after = game.state.copy()
        moves.apply(after, action)
        value, length = search(after, net, work, self.max_nodes, self._streams, 0, 0.0)
        line = [action, *(int(a) for a in work.path[:length])]
        last = MOVES[line[-1]]
        ends: str | None = LINE_ENDS[int(work.info[2])]
        if last.kind == "pass":
            ends = "pass"
        elif last.kind == "play" and ends == "discard":
            ends = None  # the search was cut off before an ending
        return float(value), line, "win" if value == 1.0 and last.source == "stock" else ends

    @staticmethod
    def _wins(game: Game) -> bool:
        """Whether the side's next stock play is its last: seen from the sizes, which are public."""
        side = game.rules.side_of(game.player)
        return int(moves.side_stock(game.state, side)) == 1

    def suggest(
        self,
        game_or_position: Game | Mapping[str, Any],
        *,
        top: int | None = None,
        allow: Iterable[int] | None = None,
        avoid: Iterable[int] | None = None,
    ) -> dict[str, Any]:
        """Every legal move with its win probability, best first.

        Args:
            game_or_position: whose seat to move is advised.
            top: how many moves to give; None for all.
            allow: consider these actions only.
            avoid: leave these actions out.

        Returns:
            {"method", "model", "sha256", "root": {"win": one number a side}, "moves": [{"action",
            "win", "delta", "line", "line_ends", "same_as"}]}; win is the mover's probability, delta
            its difference to the best.

        Raises:
            AgentError: nothing is left to consider, or the model does not play these rules.
        """
        game = _game(game_or_position)
        work = self._prepare(game)
        legal = game.legal_actions()
        chosen = [a for a in legal if allow is None or a in set(allow)]
        chosen = [a for a in chosen if a not in set(avoid or ())]
        if not chosen:
            raise AgentError("allow, avoid: no legal action is left to consider")
        twins = _twins(game, chosen)
        judged: dict[int, tuple[float, list[int], str | None]] = {}
        for action in chosen:  # ascending, so that a twin comes after its original
            if action in twins:
                value, line, ends = judged[twins[action]]
                judged[action] = (value, _mirrored(line, action), ends)
            else:
                judged[action] = self._judge(game, work, action)
        ranked = sorted(judged, key=lambda a: (-judged[a][0], a))
        best = judged[ranked[0]][0]
        others: list[float | None] = [None] * game.rules.sides
        if game.rules.sides == 2:
            others = [1.0 - best] * 2
        others[game.rules.side_of(game.player)] = best
        return {
            "method": self.method,
            "model": self.model.name,
            "sha256": self.model.sha256,
            "root": {"win": others},
            "moves": [
                {
                    "action": action,
                    "win": judged[action][0],
                    "delta": judged[action][0] - best,
                    "line": judged[action][1],
                    "line_ends": judged[action][2],
                    "same_as": twins.get(action),
                }
                for action in ranked[:top]
            ],
        }


def _mirrored(line: list[int], action: int) -> list[int]:
    """The line of a move's twin: the same turn with the two piles in each other's place."""
    here, there = MOVES[line[0]].pile, MOVES[action].pile
    swap = {here: there, there: here}
    rest = []
    for step in line[1:]:
        move = MOVES[step]
        pile = swap.get(move.pile, move.pile) if move.kind == "play" else move.pile
        rest.append(step + pile - move.pile)
    return [action, *rest]


def _twins(game: Game, legal: list[int]) -> dict[int, int]:
    """Actions that are another's mirror image: onto a building pile of equal height, or onto
    another empty discard pile.
    """
    heights = [int(h) for h in game.state[layout.HEIGHT : layout.HEIGHT + 4]]
    board = layout.board_at(game.rules.board_of(game.player))
    seen: dict[tuple[Any, ...], int] = {}
    twins = {}
    for action in legal:
        move = MOVES[action]
        if move.kind == "play":
            key: tuple[Any, ...] = (
                move.source,
                move.card,
                move.source_pile,
                move.other,
                heights[move.pile],
            )
        elif (
            move.kind == "discard"
            and not move.other
            and int(game.state[board + layout.DEPTH + move.pile]) == 0
        ):
            key = ("discard", move.card)
        else:
            continue
        if key in seen:
            twins[action] = seen[key]
        else:
            seen[key] = action
    return twins


class BestAgent:
    """The shipped model made for the rules at hand; greedy where there is none. `.chosen(rules)`
    says which.
    """

    model: Model | None = None
    method = "best"
    name = "best"

    def __init__(self, *, seed: int = 0, models_dir: str | os.PathLike[str] | None = None) -> None:
        self._models_dir = models_dir
        self._seed = seed
        self._agents: dict[tuple[int, int], RuleAgent | TurnAgent] = {}

    def plays(self, rules: Rules) -> bool:
        """It plays everything."""
        del rules
        return True

    def chosen(self, rules: Rules) -> RuleAgent | TurnAgent:
        """Who plays these rules."""
        key = (rules.players, rules.teams)
        if key not in self._agents:
            agent: RuleAgent | TurnAgent = RuleAgent("greedy", seed=self._seed)
            for name in list_models(self._models_dir):
                folder = find_model(name, self._models_dir)
                try:
                    model = load_model(folder) if folder else None
                except ModelError:  # another may do; `list_agents` names the damaged one
                    continue
                if model and model.plays(rules):
                    agent = TurnAgent(model)
                    break
            self._agents[key] = agent
        return self._agents[key]

    def act(self, game_or_position: Game | Mapping[str, Any]) -> int:
        """The id of the chosen action for the seat to move."""
        game = _game(game_or_position)
        return self.chosen(game.rules).act(game)


def make_agent(
    text: str, *, seed: int = 0, models_dir: str | os.PathLike[str] | None = None
) -> Any:
    """The agent that a text names.

    Args:
        text: see the head of this module.
        seed: where a random agent's choices come from.
        models_dir: where models are looked for first.

    Returns:
        An object with `name` and `act(game_or_position) -> int`; turn-search agents have `suggest`
        too.

    Raises:
        AgentError: no such agent, model or option; the message lists what there is.
        ModelError: the model's files are damaged.
    """
    if not isinstance(text, str) or not text:
        raise AgentError(f"agent: needs a name, got {shown(text)}")
    if not is_whole(seed) or seed < 0:
        raise AgentError(f"seed: needs a whole number, 0 or more, got {shown(seed)}")
    if text.startswith("py:"):
        return _own_agent(text)
    base, _, query = text.partition("?")
    options = dict(parse_qsl(query, keep_blank_values=True))
    if base in heuristics.HEURISTICS:
        _no_options(text, options)
        return RuleAgent(base, seed=seed)
    if base == "best":
        _no_options(text, options)
        return BestAgent(seed=seed, models_dir=models_dir)
    method, colon, name = base.partition(":")
    if not colon or os.sep in method:
        method, name = "turn", base
    if method not in METHODS:
        raise AgentError(
            f"agent: no method {method!r:.40} in {text!r:.80}; the methods are {', '.join(METHODS)}"
        )
    folder = None
    with contextlib.suppress(OSError):  # a name that is too long for a file
        folder = find_model(name, models_dir)
        if folder is None and (Path(name) / "config.json").is_file():
            folder = Path(name)
    if folder is None:
        known = ", ".join((*heuristics.HEURISTICS, "best", *list_models(models_dir)))
        raise AgentError(
            f"agent: there is no agent or model {name!r:.80}; there are {known}, and model folders"
        )
    max_nodes = _whole(text, options.pop("max_nodes", str(MAX_NODES)), 1, MAX_NODES)
    _no_options(text, options)
    return TurnAgent(load_model(folder), name=text, max_nodes=max_nodes)


def _own_agent(text: str) -> Any:
    parts = text.split(":", 2)
    if len(parts) != 3 or not all(parts):
        raise AgentError(f"agent: write py:module:factory, got {text!r:.80}")
    if os.getcwd() not in sys.path:  # a script's own folder stands there, not the user's
        sys.path.append(os.getcwd())
    try:
        factory = getattr(importlib.import_module(parts[1]), parts[2])
    except (ImportError, AttributeError) as error:
        raise AgentError(f"agent: {text!r:.80} cannot be imported: {error}") from None
    try:
        agent = factory()
    except Exception as error:  # whatever a user's code raises is its own
        raise AgentError(f"agent: {text!r:.80} fails: {type(error).__name__}: {error}") from error
    if not callable(getattr(agent, "act", None)):
        raise AgentError(f"agent: {text!r:.80} has no act(game_or_position)")
    if not hasattr(agent, "name"):
        agent.name = text
    return agent


def _no_options(text: str, options: Mapping[str, str]) -> None:
    if options:
        raise AgentError(f"agent: {text!r:.80} takes no option {next(iter(options))!r:.40}")


def _whole(text: str, value: str, low: int, high: int) -> int:
    if not value.isdecimal() or not low <= int(value) <= high:
        raise AgentError(f"agent: max_nodes in {text!r:.80} must be {low} to {high}")
    return int(value)


def list_agents(models_dir: str | os.PathLike[str] | None = None) -> list[dict[str, Any]]:
    """The agents that have names, for a menu: rule-based ones, "best", and models.

    A damaged model is listed with its "error".
    """
    found: list[dict[str, Any]] = [
        {
            "name": name,
            "method": "rules",
            "model": None,
            "sha256": None,
            "players": None,
            "teams": None,
        }
        for name in heuristics.HEURISTICS
    ]
    found.append(
        {
            "name": "best",
            "method": "best",
            "model": None,
            "sha256": None,
            "players": None,
            "teams": None,
        }
    )
    for name in list_models(models_dir):
        entry: dict[str, Any] = {"name": name, "method": "turn", "model": name}
        folder = find_model(name, models_dir)
        try:
            model = load_model(folder or name)
        except ValueError as error:
            entry.update(sha256=None, players=None, teams=None, error=str(error))
        else:
            entry.update(sha256=model.sha256, players=model.players, teams=model.teams)
        found.append(entry)
    return found
