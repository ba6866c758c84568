"""Suggestions: ranked moves for one position or many, and the lists of agents and rules."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from flask import g, request

from serve import limits, schemas
from serve.openapi import tidy
from serve.operations import operation
from serve.problems import Problem, field_problem
from serve.service import Choice, Service, check_plays, service
from skipbo_env.actions import IllegalAction
from skipbo_env.game import Game
from skipbo_env.position import Position, PositionError
from skipbo_env.rules import PRESETS, Rules
from skipbo_env.suggestion import ask, finite

_SUGGESTING = ("impossible-position", "illegal-action", "unknown-agent", "busy")


@operation(
    "POST",
    "/v1/suggest",
    body=schemas.SuggestRequest,
    returns=schemas.Suggestion,
    problems=_SUGGESTING,
    plain=True,
)
def suggest(body: schemas.SuggestRequest) -> dict[str, Any]:
    """Rank the moves of a position.

    Hidden cards are never asked for; agents that search deal them from the unseen ones. The same
    request with the same seed has the same answer, unless a time budget stops the search.
    """
    choice = service().agents.choose(body.agent)
    with service().room_for(choice):
        return {"request_id": g.request_id, **suggestion(body.position, "/position", body, choice)}


@operation(
    "POST",
    "/v1/suggest/batch",
    body=schemas.BatchRequest,
    returns=schemas.BatchAnswer,
    problems=("illegal-action", "unknown-agent", "busy"),
    limit=limits.BATCH_BODY,
    plain=True,
)
def suggest_batch(body: schemas.BatchRequest) -> dict[str, Any]:
    """Rank the moves of 1 to 64 positions.

    Each has its own result: a suggestion, or the problem that the position alone would have had.
    Costly agents whose time cannot be set take 16 positions.
    """
    choice = service().agents.choose(body.agent)
    if body.budget_ms is None and choice.samples_only:  # a share of the time each, at most
        share = min(limits.MAX_BUDGET_MS, limits.MAX_BATCH_BUDGET_MS // len(body.positions))
        choice = replace(choice, options={**choice.options, "budget_ms": share})
    each = {**choice.options, **choice.budget(body.budget_ms)}.get("budget_ms", 0)
    if choice.costly and "budget_ms" not in choice.takes:
        most = limits.MAX_UNTIMED_BATCH
        if len(body.positions) > most:
            raise field_problem(
                "invalid-body", "/positions", f"{choice.name} takes {most} positions at most"
            )
    total = len(body.positions) * int(str(each))
    if total > limits.MAX_BATCH_BUDGET_MS:
        raise field_problem(
            "invalid-body",
            "/budget_ms",
            f"{total} ms for all positions together are more than {limits.MAX_BATCH_BUDGET_MS}",
        )
    results = []
    with service().room_for(choice):
        for index, data in enumerate(body.positions):
            try:
                result = suggestion(data, f"/positions/{index}", body, choice)
            except Problem as problem:
                results.append(problem.to_json(request.path, g.request_id))
            else:
                results.append({"request_id": g.request_id, **result})
    return {"request_id": g.request_id, "results": results}


@operation("GET", "/v1/agents", returns=schemas.AgentsAnswer)
def list_agents() -> dict[str, Any]:
    """List the agents that may be asked for."""
    register = service().agents
    return {
        "default": register.default.name,
        "agents": [
            {**choice.listed, "options": choice.takes, "costly": choice.costly}
            for choice in map(register.choose, register.listed)
        ],
    }


@operation("GET", "/v1/rules", returns=schemas.RulesAnswer)
def list_rules() -> dict[str, Any]:
    """List the settings with their defaults, and the presets."""
    return {
        "fields": tidy(schemas.Rules.model_json_schema()["properties"]),
        "presets": {name: rules.to_dict() for name, rules in PRESETS.items()},
    }


def suggestion(data: Any, pointer: str, options: schemas.Options, choice: Choice) -> dict[str, Any]:
    """The answer for one position, but for the request's id.

    Raises:
        Problem: an impossible position, one in which somebody else is to move, or actions that
            leave nothing to rank.
    """
    started = time.perf_counter()
    try:
        position = Position.from_notation(data) if isinstance(data, str) else Position.parse(data)
    except PositionError as error:
        raise field_problem("impossible-position", pointer + error.pointer, error.message) from None
    if position.to_move != position.you:
        raise field_problem(
            "impossible-position",
            f"{pointer}/to_move",
            f"seat {position.to_move} is to move, and its hand is not known to seat {position.you}",
        )
    game = Game.from_position(position, options.seed)
    allowed = _allowed(game, options)
    result = _ask(service(), game, allowed, options, choice)
    found = result["search"]
    return {
        "agent": result["agent"],
        "position": {
            "hash": position.hash,
            "to_move": position.to_move,
            "inferred": list(position.inferred),
        },
        "root": _root(result.get("root") or {}),
        "moves": result["moves"],
        "search": {
            "samples": found.get("samples"),
            "seed": options.seed,
            "stopped_by": found.get("stopped_by"),
            "elapsed_ms": round(1000 * (time.perf_counter() - started), 3),
        },
        "warnings": _warnings(position, options, choice, result),
    }


def _allowed(game: Game, options: schemas.Options) -> list[int]:
    """The legal actions that the client wants ranked, ascending.

    Raises:
        Problem: an action to allow that is not legal, or none is left.
    """
    legal = game.legal_actions()
    for place, action in enumerate(options.allow or ()):
        try:
            game.check_action(action)
        except IllegalAction as error:
            message = str(error).removeprefix("action: ")
            raise field_problem("illegal-action", f"/allow/{place}", message) from None
    allow = legal if options.allow is None else options.allow
    left = [action for action in legal if action in allow and action not in (options.avoid or ())]
    if not left:
        pointer = "/allow" if options.avoid is None else "/avoid"
        raise field_problem("illegal-action", pointer, "no legal action is left to rank")
    return left


def _ask(
    served: Service, game: Game, allowed: list[int], options: schemas.Options, choice: Choice
) -> dict[str, Any]:
    """The agent's answer, under the name that the client asked for."""
    budget = choice.budget(options.budget_ms)
    with served.agents.lend(choice, options.seed, budget) as agent:
        check_plays(choice, agent, game.rules)
        limited = allowed if options.allow is not None or options.avoid is not None else None
        found = ask(agent, game, top=options.top, allow=limited)
        found["agent"]["name"] = choice.told(agent, found["agent"]["name"])
    return found


def _root(root: Mapping[str, Any]) -> dict[str, Any]:
    win = root.get("win")
    stock = root.get("expected_stock_left")
    return {
        "win": None if win is None else [finite(p) for p in win],
        "expected_stock_left": None if stock is None else [finite(n) for n in stock],
        "raw_win": finite(root.get("raw_win")),
    }


def warm(choice: Choice) -> None:
    """Have an agent answer once, so that its kernels are compiled."""
    rules = Rules()
    with service().agents.lend(choice, 0) as agent:
        if model := getattr(agent, "model", None):
            rules = Rules(players=model.players, teams=model.teams)
    suggestion(Game(rules, seed=0).position(), "", schemas.Options(), choice)


def _warnings(
    position: Position, options: schemas.Options, choice: Choice, result: Mapping[str, Any]
) -> list[str]:
    warnings = [str(warning) for warning in result.get("warnings", ())]
    if options.budget_ms and "budget_ms" not in choice.takes:
        warnings.append("budget_ms has no effect: this agent does not search by time")
    values = {
        "draw_size": position.draw_size,
        "hand_size": list(position.hand_sizes),
        "completed": f"{sum(position.completed)} cards",
        "rules": "standard",
    }
    for name in position.inferred:
        if name in values:
            warnings.append(f"{name} was left out; {values[name]} assumed")
    return warnings
