"""Agents as objects, and the texts that name them.

    random, play-first, simple, greedy      rule-based, see `heuristics`
    planner                                 turn search on an evaluation written by hand
    two-player, PATH/TO/FOLDER              a model, played by turn search on its network
    turn:two-player                         the same, said outright
    policy:two-player                       one forward pass of its policy network
    search:two-player                       rollouts of the endings that turn search finds best
    level:1 to level:10                     a beginner's play to the strongest, see `levels`
    best                                    the shipped model made for the game's rules, else greedy
    py:module:factory                       factory() gives an object with act(game_or_position)

Options follow a question mark: `turn:two-player?max_nodes=256`, `turn:two-player?flips=0` (do not
look behind flips), `search:two-player?budget_ms=200`.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable
from urllib.parse import parse_qsl

import numpy as np

from skipbo_env.actions import MOVES
from skipbo_env.agents import heuristics
from skipbo_env.agents.flips import Flips, judge_firsts_flips, new_flips, search_flips
from skipbo_env.agents.levels import LEVELS
from skipbo_env.agents.models import Model, ModelError, find_model, list_models, load_model
from skipbo_env.agents.network import (
    FLIP,
    FLIP_REFILL,
    REFILL,
    S_END,
    TURN_OVER,
    Network,
    evaluate_slots,
)
from skipbo_env.agents.planner import planner_network
from skipbo_env.agents.policy import (
    PolicyWork,
    choose_by_policy,
    judge_actions,
    new_policy_work,
)
from skipbo_env.agents.search import (
    MAX_SAMPLES,
    Ending,
    Estimate,
    Sampler,
    Settings,
    TurnEnder,
    Workers,
)
from skipbo_env.agents.turn import MAX_NODES, MOST_NODES, best_endings, fill_ending, search
from skipbo_env.checks import is_whole, shown
from skipbo_env.engine import layout, moves
from skipbo_env.game import Game
from skipbo_env.rules import Rules

METHODS = ("turn", "search", "policy")
MAX_BUDGET_MS = 3_600_000
SAMPLES = 1000  # of a search that is given neither samples nor time
# An ending that the network puts so much win probability behind the best is not looked at in play:
# over 130 positions the two differed from deep rollouts by 0.024 in the root mean square.
CLEAR = 0.08
SEARCH_OPTIONS = {
    "samples": (1, MAX_SAMPLES),
    "budget_ms": (1, MAX_BUDGET_MS),
    "candidates": (1, 32),
    "turns": (0, 1000),
    "nodes": (1, MOST_NODES),
    "threads": (1, 64),
}
NAMED = (*heuristics.HEURISTICS, "planner", "best", *(f"level:{level}" for level in LEVELS))
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

    Without noise nothing in it is random; nothing hidden is read.

    Args:
        model: the model; None for the planner's evaluation, which plays everything.
        name: how it is shown.
        max_nodes: positions within a turn that a search looks at, at most.
        flips: whether it looks behind flips (see `skipbo_env.agents.flips`); a model does so unless
            told otherwise, the planner and noisy play never do.
        noise: what is added to each ending's logit is triangular, of this half-width; below 0 any
            ending is as good as another.
        seed: where the noise comes from.
    """

    def __init__(
        self,
        model: Model | None,
        *,
        name: str | None = None,
        max_nodes: int = MAX_NODES,
        flips: bool = True,
        noise: float = 0.0,
        seed: int = 0,
    ) -> None:
        _check_value(model)
        self.model = model
        self.method = "turn" if model else "planner"
        self.name = name or (model.name if model else "planner")
        self.max_nodes = max_nodes
        self.flips = flips and model is not None and noise == 0.0
        self.noise = noise
        self._works: dict[tuple[int, int, int], Flips] = {}
        self._judging: dict[tuple[int, int, int], Flips] = {}
        self._streams = np.random.SeedSequence(seed).generate_state(1, np.uint64)

    def plays(self, rules: Rules) -> bool:
        """Whether the model is made for these numbers of players and teams."""
        return self.model is None or self.model.plays(rules)

    def network(self, rules: Rules) -> Network:
        """What judges endings under these rules."""
        if self.model is None or self.model.value is None:
            return planner_network(rules.players, rules.teams)
        return self.model.value

    def _prepare(self, game: Game) -> Flips:
        check_plays(self, game.rules)
        key = (game.rules.players, game.rules.teams, len(game.state))
        if key not in self._works:
            self._works = {key: new_flips(game.state, self.network(game.rules), self.max_nodes)}
        return self._works[key]

    def plan(self, game_or_position: Game | Mapping[str, Any]) -> list[int]:
        """The actions up to the next hidden card or the turn's end."""
        game = _game(game_or_position)
        work = self._prepare(game)
        _, length = search_flips(
            game.state,
            self.network(game.rules),
            work,
            self.max_nodes,
            self.flips,
            self._streams,
            0,
            self.noise,
        )
        return [int(action) for action in work.outer.path[:length]]

    def act(self, game_or_position: Game | Mapping[str, Any]) -> int:
        """The id of the first action of the best plan for the rest of the turn."""
        return self.plan(game_or_position)[0]

    def _judge_all(
        self, game: Game, actions: list[int]
    ) -> dict[int, tuple[float, list[int], str | None]]:
        """`_judge` for many actions, in one search where that can look at everything."""
        plain = self._prepare(game)
        key = next(iter(self._works))
        net = self.network(game.rules)
        if key not in self._judging:
            self._judging = {key: new_flips(game.state, net, self.max_nodes, firsts=True)}
        work = self._judging[key]
        values = np.empty(len(actions))
        lengths = np.empty(len(actions), np.int64)
        lines = np.empty((len(actions), len(work.outer.path)), np.int64)
        whole = judge_firsts_flips(
            game.state,
            net,
            work,
            self.max_nodes,
            self.flips,
            self._streams,
            np.array(actions),
            values,
            lines,
            lengths,
        )
        behind = {work.slots[k].tobytes(): float(work.values[k]) for k in range(work.found[0])}
        judged = {}
        for i, action in enumerate(actions):
            value, line = float(values[i]), lines[i, : lengths[i]].tolist()
            if value < 0 or not (whole or len(line) == 1):
                judged[action] = self._judge(game, plain, action, behind)
                continue
            kind = REFILL if MOVES[line[-1]].kind == "play" else TURN_OVER
            if MOVES[line[-1]].source == "stock":
                kind = FLIP
            judged[action] = value, line, _line_ends(line, kind, wins=value == 1.0)
        return judged

    def _judge(
        self, game: Game, work: Flips, action: int, behind: dict[bytes, float]
    ) -> tuple[float, list[int], str | None]:
        """The win probability of an action with the best that can follow, the line, its end.

        Args:
            game: the game.
            work: scratch space.
            action: a legal action.
            behind: by the slots of endings what lies behind them, where that is known.
        """
        net = self.network(game.rules)
        outer = work.outer
        kind = int(fill_ending(game.state, action, outer))
        if kind >= 0:
            move = MOVES[action]
            if move.source == "stock" and self._wins(game):
                return 1.0, [action], "win"
            value = behind.get(outer.ending.tobytes())
            if value is None:
                value = float(evaluate_slots(net, outer.ending, outer.acc, outer.hidden))
            return value, [action], _line_ends([action], kind, wins=False)
        after = game.state.copy()
        moves.apply(after, action)
        value, length = search(after, net, outer, self.max_nodes, self._streams, 0, 0.0)
        rest, kind = outer.path[:length], int(outer.info[2])
        if behind and value < 1.0:
            found = best_endings(
                after, outer, work.after, work.values, work.plans, work.lengths, work.slots
            )
            known = [behind.get(work.slots[k].tobytes(), work.values[k]) for k in range(found)]
            if known:  # else the search was cut off before the first ending
                best = int(np.argmax(known))
                value, kind = min(known[best], max(behind.values())), int(work.slots[best, S_END])
                rest = work.plans[best, : work.lengths[best]]
        line = [action, *(int(a) for a in rest)]
        return float(value), line, _line_ends(line, kind, wins=value == 1.0)

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
            "prior", "win", "delta", "line", "line_ends", "same_as"}]}; win is the mover's
            probability, delta its difference to the best, prior what the model's policy thinks of
            the move, None without one. The planner's evaluation is no probability: it only ranks.

        Raises:
            AgentError: nothing is left to consider, or the model does not play these rules.
        """
        game = _game(game_or_position)
        chosen = _chosen(game, allow, avoid)
        twins = _twins(game, chosen)
        judged = self._judge_all(game, [action for action in chosen if action not in twins])
        for action, original in twins.items():
            value, line, ends = judged[original]
            judged[action] = (value, _mirrored(line, action), ends)
        ranked = sorted(judged, key=lambda a: (-judged[a][0], a))
        best = judged[ranked[0]][0]
        model = self.model
        priors = _priors(game, model)
        return {
            "method": self.method,
            "model": model.name if model else None,
            "sha256": model.sha256 if model else None,
            "root": {"win": _each_side(game, best) if model else None},
            "moves": [
                {
                    "action": action,
                    "prior": priors.get(action),
                    "win": judged[action][0] if model else None,
                    "delta": judged[action][0] - best if model else None,
                    "line": judged[action][1],
                    "line_ends": judged[action][2],
                    "same_as": twins.get(action),
                }
                for action in ranked[:top]
            ],
        }


def check_plays(agent: Any, rules: Rules) -> None:
    """Refuse rules that an agent's model is not made for.

    Raises:
        AgentError: it says which it plays.
    """
    if not agent.plays(rules):
        model = agent.model
        table = f"{model.players} players" + (f" in {model.teams} teams" if model.teams else "")
        raise AgentError(f"agent: {agent.name} plays games of {table} only")


def _chosen(game: Game, allow: Iterable[int] | None, avoid: Iterable[int] | None) -> list[int]:
    """The legal actions that are allowed and not avoided, ascending."""
    allowed = None if allow is None else set(allow)
    avoided = set(avoid or ())
    chosen = [
        action
        for action in game.legal_actions()
        if (allowed is None or action in allowed) and action not in avoided
    ]
    if not chosen:
        raise AgentError("allow, avoid: no legal action is left to consider")
    return chosen


def _each_side(game: Game, win: float) -> list[float | None]:
    """Each side's probability to win, where it follows from the mover's."""
    each: list[float | None] = [None] * game.rules.sides
    if game.rules.sides == 2:
        each = [1.0 - win] * 2
    each[game.rules.side_of(game.player)] = win
    return each


def _line_ends(line: list[int], kind: int, *, wins: bool) -> str | None:
    """What ends a line, in the words of the answers; None where the search was cut off."""
    last = MOVES[line[-1]]
    if wins and last.source == "stock":
        return "win"
    if last.kind == "pass":
        return "pass"
    if kind < 0 or (last.kind == "play" and kind == TURN_OVER):
        return None
    return LINE_ENDS[kind]


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


class SearchAgent:
    """Rollouts of the endings that turn search finds best (see `skipbo_env.agents.search`).

    The same seed and number of samples give the same answer, however many threads there are.

    Args:
        model: the model; None for the planner's evaluation.
        name: how it is shown.
        settings: how it searches; without samples and time, SAMPLES samples.
        seed: decides which cards the rollouts deal.
    """

    method = "search"

    def __init__(
        self,
        model: Model | None,
        *,
        name: str | None = None,
        settings: Settings | None = None,
        seed: int = 0,
    ) -> None:
        settings = settings or Settings()
        if settings.samples is None and settings.budget_ms is None:
            settings = replace(settings, samples=SAMPLES)
        self.model = model
        self.settings = settings
        self.seed = seed
        self._turn = TurnAgent(model)
        self.name = name or f"search:{self._turn.name}"
        self._tools: dict[tuple[int, int, int], tuple[TurnEnder, Workers]] = {}

    def plays(self, rules: Rules) -> bool:
        """Whether the model is made for these numbers of players and teams."""
        return self._turn.plays(rules)

    def _prepare(self, game: Game) -> tuple[TurnEnder, Workers]:
        check_plays(self, game.rules)
        key = (game.rules.players, game.rules.teams, len(game.state))
        if key not in self._tools:
            net = self._turn.network(game.rules)
            self._tools = {
                key: (
                    TurnEnder(game.state, net, self.settings.candidates),
                    Workers(game.state, net, self.settings),
                )
            }
        return self._tools[key]

    def _deadline(self) -> float | None:
        budget = self.settings.budget_ms
        return None if budget is None else time.perf_counter() + budget / 1000

    def plan(self, game_or_position: Game | Mapping[str, Any]) -> list[int]:
        """The actions up to the next hidden card or the turn's end."""
        game = _game(game_or_position)
        deadline = self._deadline()
        ender, workers = self._prepare(game)
        legal = game.legal_actions()
        if len(legal) == 1:
            return legal
        endings, _ = ender.endings(game.state)
        if endings[0].value == 1.0:  # it wins
            return endings[0].plan
        if self.model:
            endings = ender.look_behind(game.state, endings)
        endings = [e for e in endings if endings[0].value - e.value <= CLEAR]
        if len(endings) == 1:
            return endings[0].plan
        sampler = Sampler(game.state, endings, workers, self.seed ^ ender.public_key())
        sampler.run(deadline)
        return endings[sampler.best()].plan

    def act(self, game_or_position: Game | Mapping[str, Any]) -> int:
        """The id of the first action of the best plan for the rest of the turn."""
        return self.plan(game_or_position)[0]

    def suggest(
        self,
        game_or_position: Game | Mapping[str, Any],
        *,
        top: int | None = None,
        allow: Iterable[int] | None = None,
        avoid: Iterable[int] | None = None,
    ) -> dict[str, Any]:
        """Every legal move with its win probability, best first.

        A move is as good as the best of the sampled endings that can be reached after it. One that
        reaches none keeps the network's difference to the best, without an error.

        Args:
            game_or_position: whose seat to move is advised.
            top: how many moves to give; None for all.
            allow: consider these actions only.
            avoid: leave these actions out.

        Returns:
            As `TurnAgent.suggest`, with "win_se", "delta_se" and "n" for each move, "raw_win" in
            the root (the network's own value), "search": {"samples", "seed", "stopped_by"} and
            "warnings".

        Raises:
            AgentError: nothing is left to consider, or the model does not play these rules.
        """
        game = _game(game_or_position)
        deadline = self._deadline()
        ender, workers = self._prepare(game)
        chosen = _chosen(game, allow, avoid)
        twins = _twins(game, chosen)
        after = {a: ender.endings_after(game.state, a) for a in chosen if a not in twins}
        distinct: dict[bytes, Ending] = {}
        for action in after:
            for ending in after[action]:
                distinct.setdefault(ending.slots, ending)
        endings = sorted(distinct.values(), key=lambda ending: -ending.value)
        endings = endings[: self.settings.candidates]
        if self.model:
            endings = ender.look_behind(game.state, endings)
        _, raw = ender.endings(game.state)
        estimates, done = self._estimate(game, endings, workers, ender.public_key(), deadline)
        known = dict(zip((ending.slots for ending in endings), estimates, strict=True))
        judged: dict[int, tuple[Estimate, Ending]] = {}
        best = max(range(len(endings)), key=lambda e: estimates[e].delta)
        priors = _priors(game, self.model)
        for action in chosen:  # ascending, so that a twin comes after its original
            if action in twins:
                estimate, ending = judged[twins[action]]
                judged[action] = estimate, replace(ending, plan=_mirrored(ending.plan, action))
                continue
            reached = [ending for ending in after[action] if ending.slots in known]
            if reached:
                ending = max(reached, key=lambda ending: known[ending.slots].delta)
                judged[action] = known[ending.slots], ending
            else:
                # The best may be one that the network ranks lower: it is not to fall behind.
                delta = estimates[0].delta + after[action][0].value - endings[0].value
                delta = min(0.0, delta)
                win = max(0.0, estimates[best].win + delta)
                judged[action] = Estimate(win, None, delta, None, 0), after[action][0]
        ranked = sorted(judged, key=lambda a: (-judged[a][0].delta, -judged[a][0].samples, a))
        moves_told = []
        for action in ranked[:top]:
            estimate, ending = judged[action]
            moves_told.append(
                {
                    "action": action,
                    "prior": priors.get(action),
                    "win": estimate.win,
                    "win_se": estimate.win_se,
                    "delta": estimate.delta,
                    "delta_se": estimate.delta_se,
                    "n": estimate.samples,
                    "line": ending.plan,
                    "line_ends": _line_ends(ending.plan, ending.kind, wins=ending.value == 1.0),
                    "same_as": twins.get(action),
                }
            )
        model = self.model
        return {
            "method": self.method,
            "model": model.name if model else None,
            "sha256": model.sha256 if model else None,
            "root": {"win": _each_side(game, estimates[best].win), "raw_win": raw},
            "moves": moves_told,
            "search": {"samples": done[0], "seed": self.seed, "stopped_by": done[1]},
            "warnings": [] if model else ["win: by the planner's evaluation, no probability"],
        }

    def _estimate(
        self,
        game: Game,
        endings: list[Ending],
        workers: Workers,
        key: int,
        deadline: float | None,
    ) -> tuple[list[Estimate], tuple[int, str]]:
        """What rollouts say of each ending; how many they were and what stopped them."""
        if endings[0].value == 1.0:  # the game is won at once: there is nothing to sample
            known = [
                Estimate(ending.value, 0.0 if i == 0 else None, ending.value - 1.0, None, 0)
                for i, ending in enumerate(endings)
            ]
            return known, (0, "win")
        sampler = Sampler(game.state, endings, workers, self.seed ^ key)
        stopped = sampler.run(deadline)
        return sampler.estimates(), (sampler.samples, stopped)


class PolicyAgent:
    """The legal action that a model's policy network finds likeliest: one forward pass a decision.

    Nothing in it is random; nothing hidden is read.

    Args:
        model: the model.
        name: how it is shown.

    Raises:
        AgentError: the model has no policy.
    """

    method = "policy"

    def __init__(self, model: Model, *, name: str | None = None) -> None:
        if model.policy is None:
            raise AgentError(
                f"agent: {model.name} has no policy network (policy.safetensors); it plays by turn "
                f"search, as {model.name}"
            )
        self.model = model
        self.network = model.policy
        self.name = name or f"policy:{model.name}"
        self._works: dict[int, PolicyWork] = {}

    def plays(self, rules: Rules) -> bool:
        """Whether the model is made for these numbers of players and teams."""
        return self.model.plays(rules)

    def act(self, game_or_position: Game | Mapping[str, Any]) -> int:
        """The id of the chosen action for the seat to move."""
        game = _game(game_or_position)
        check_plays(self, game.rules)
        actions = game.rules.num_actions
        if actions not in self._works:
            self._works[actions] = new_policy_work(self.network, actions)
        return int(choose_by_policy(game.state, self.network, self._works[actions]))

    def suggest(
        self,
        game_or_position: Game | Mapping[str, Any],
        *,
        top: int | None = None,
        allow: Iterable[int] | None = None,
        avoid: Iterable[int] | None = None,
    ) -> dict[str, Any]:
        """Every legal move with the policy's probability to play it, likeliest first.

        Args:
            game_or_position: whose seat to move is advised.
            top: how many moves to give; None for all.
            allow: consider these actions only.
            avoid: leave these actions out.

        Returns:
            {"method", "model", "sha256", "root": {}, "moves": [{"action", "prior", "same_as"}]}:
            priors of all legal moves add up to 1. A policy has no win probability.

        Raises:
            AgentError: nothing is left to consider, or the model does not play these rules.
        """
        game = _game(game_or_position)
        check_plays(self, game.rules)
        chosen = _chosen(game, allow, avoid)
        priors = _priors(game, self.model)
        twins = _twins(game, chosen)
        first = self.act(game)  # of twins the one that it plays
        ranked = sorted(chosen, key=lambda a: (-priors[a], a != first, a))
        return {
            "method": self.method,
            "model": self.model.name,
            "sha256": self.model.policy_sha256,
            "root": {},
            "moves": [
                {"action": action, "prior": priors[action], "same_as": twins.get(action)}
                for action in ranked[:top]
            ],
        }


def _priors(game: Game, model: Model | None) -> dict[int, float]:
    """The probability of each legal action under the model's policy; empty without one.

    Twins are the same move: they share alike.
    """
    if model is None or model.policy is None:
        return {}
    work = new_policy_work(model.policy, game.rules.num_actions)
    judge_actions(game.state, model.policy, work)
    legal = game.legal_actions()
    logits = work.logits[legal].astype(np.float64)
    weights = np.exp(logits - logits.max())
    priors = dict(zip(legal, (weights / weights.sum()).tolist(), strict=True))
    groups: dict[int, list[int]] = {}
    for twin, action in _twins(game, legal).items():
        groups.setdefault(action, [action]).append(twin)
    for group in groups.values():
        priors.update(dict.fromkeys(group, sum(priors[a] for a in group) / len(group)))
    return priors


def _check_value(model: Model | None) -> None:
    """Refuse to search with a model that has nothing to judge endings by."""
    if model is not None and model.value is None:
        raise AgentError(
            f"agent: {model.name} has no value network (value.safetensors); it plays by its policy "
            f"alone, as policy:{model.name}"
        )


class LevelAgent:
    """Play of one of ten strengths: see `skipbo_env.agents.levels`.

    Args:
        level: 1 to 10.
        seed: where its slips come from.
        model: the model that it plays by; None for the shipped one made for the rules.
        models_dir: where models are looked for first.
    """

    method = "level"

    def __init__(
        self,
        level: int,
        *,
        seed: int = 0,
        model: Model | None = None,
        models_dir: str | os.PathLike[str] | None = None,
    ) -> None:
        _check_value(model)
        self.level = level
        self.model = model
        self.name = f"level:{level}" if model is None else f"{model.name}?level={level}"
        self._seed = seed
        self._models_dir = models_dir
        self._agents: dict[tuple[int, int], TurnAgent | SearchAgent] = {}

    def plays(self, rules: Rules) -> bool:
        """Without a model of its own it plays everything."""
        return self.model is None or self.model.plays(rules)

    def player(self, rules: Rules) -> TurnAgent | SearchAgent:
        """Who plays these rules."""
        check_plays(self, rules)
        key = (rules.players, rules.teams)
        if key not in self._agents:
            level = LEVELS[self.level]
            model = None if level.planner else self.model or model_for(rules, self._models_dir)
            agent: TurnAgent | SearchAgent
            if level.samples:
                settings = Settings(samples=level.samples)
                agent = SearchAgent(model, name=self.name, settings=settings, seed=self._seed)
            else:
                agent = TurnAgent(
                    model, name=self.name, flips=False, noise=level.noise, seed=self._seed
                )
            self._agents[key] = agent
        return self._agents[key]

    def plan(self, game_or_position: Game | Mapping[str, Any]) -> list[int]:
        """The actions up to the next hidden card or the turn's end."""
        game = _game(game_or_position)
        return self.player(game.rules).plan(game)

    def act(self, game_or_position: Game | Mapping[str, Any]) -> int:
        """The id of the chosen action for the seat to move."""
        return self.plan(game_or_position)[0]


def model_for(rules: Rules, models_dir: str | os.PathLike[str] | None = None) -> Model | None:
    """The first model, by name, with a value network for these numbers of players and teams."""
    for name in list_models(models_dir):
        folder = find_model(name, models_dir)
        try:
            model = load_model(folder) if folder else None
        except ModelError:  # another may do; `list_agents` names the damaged one
            continue
        if model and model.value is not None and model.plays(rules):
            return model
    return None


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
            model = model_for(rules, self._models_dir)
            self._agents[key] = TurnAgent(model) if model else RuleAgent("greedy", seed=self._seed)
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
        An object with `name` and `act(game_or_position) -> int`; agents with a model have `suggest`
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
    if base == "planner":
        max_nodes = _option(text, options, "max_nodes", MOST_NODES)
        _no_options(text, options)
        return TurnAgent(None, name=text, max_nodes=max_nodes or MAX_NODES)
    method, colon, name = base.partition(":")
    if base == "best" or method == "level":
        given_level = {"level": name} if method == "level" else options
        level = _option(text, given_level, "level", len(LEVELS))
        _no_options(text, options)
        if level is None:
            return BestAgent(seed=seed, models_dir=models_dir)
        return LevelAgent(level, seed=seed, models_dir=models_dir)
    bare = not colon or os.sep in method
    if bare:
        method, name = "turn", base
    if method not in METHODS:
        raise AgentError(
            f"agent: no method {method!r:.40} in {text!r:.80}; the methods are "
            f"{', '.join(METHODS)}, level, and for code of your own py:MODULE:FACTORY"
        )
    model = None if name == "planner" and method != "policy" else named_model(name, models_dir)
    if model and (method == "policy" or (bare and not options and model.value is None)):
        _no_options(text, options)
        return PolicyAgent(model, name=text)
    if method == "turn":
        level = None if model is None else _option(text, options, "level", len(LEVELS))
        max_nodes = _option(text, options, "max_nodes", MOST_NODES)
        flips = None if model is None else _option(text, options, "flips", 1, 0)
        _no_options(text, options)
        if level is not None:
            return LevelAgent(level, seed=seed, model=model)
        return TurnAgent(model, name=text, max_nodes=max_nodes or MAX_NODES, flips=flips != 0)
    given = {
        option: _option(text, options, option, most, least)
        for option, (least, most) in SEARCH_OPTIONS.items()
    }
    _no_options(text, options)
    settings = Settings(**{option: value for option, value in given.items() if value is not None})
    return SearchAgent(model, name=text, settings=settings, seed=seed)


def named_model(name: str, models_dir: str | os.PathLike[str] | None = None) -> Model:
    """The model of a name or folder.

    Raises:
        AgentError: there is none.
        ModelError: its files are damaged.
    """
    folder = None
    with contextlib.suppress(OSError):  # a name that is too long for a file
        folder = find_model(name, models_dir)
        if folder is None and (Path(name) / "config.json").is_file():
            folder = Path(name)
    if folder is None:
        known = ", ".join((*NAMED, *list_models(models_dir)))
        raise AgentError(
            f"agent: there is no agent or model {name!r:.80}; there are {known}, and model folders"
        )
    return load_model(folder)


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


def _option(text: str, options: dict[str, str], name: str, most: int, least: int = 1) -> int | None:
    """An option taken out of those given; None where it is not."""
    value = options.pop(name, None)
    if value is None:
        return None
    whole = value.isascii() and value.isdecimal() and len(value) <= 10
    if not whole or not least <= int(value) <= most:
        raise AgentError(f"agent: {name} in {text!r:.80} must be {least} to {most}")
    return int(value)


def list_agents(models_dir: str | os.PathLike[str] | None = None) -> list[dict[str, Any]]:
    """The agents that have names, for a menu: rule-based ones, the planner, "best", levels, and
    models with turn search, with search and by their policy.

    A damaged model is listed with its "error". "options" has the bounds of what an agent's text may
    set, "costly" tells of a level that searches.
    """
    methods = {
        **dict.fromkeys(heuristics.HEURISTICS, "rules"),
        "planner": "planner",
        "best": "best",
        **{f"level:{level}": "level" for level in LEVELS},
    }
    found: list[dict[str, Any]] = [
        {"name": name, "method": methods[name], **dict.fromkeys(_OF_A_MODEL)} for name in NAMED
    ]
    for number, level in LEVELS.items():
        if level.samples:
            found[NAMED.index(f"level:{number}")]["costly"] = True
    for name in list_models(models_dir):
        entry: dict[str, Any] = {"name": name, "method": "turn", "model": name}
        folder = find_model(name, models_dir)
        try:
            model = load_model(folder or name)
        except ValueError as error:
            entry.update(sha256=None, players=None, teams=None, error=str(error))
            found.append(entry)
        else:
            entry.update(sha256=model.sha256, players=model.players, teams=model.teams)
            takes = {option: list(SEARCH_OPTIONS[option]) for option in ("samples", "budget_ms")}
            if model.value is not None:
                searching = {"name": f"search:{name}", "method": "search", "options": takes}
                found += [entry, {**entry, **searching}]
            if model.policy is not None:
                by_policy = {"name": f"policy:{name}", "method": "policy"}
                found.append({**entry, **by_policy, "sha256": model.policy_sha256})
    return found


_OF_A_MODEL = ("model", "sha256", "players", "teams")
