"""Suggestions: ranked moves for one position or many, and the lists of agents and rules."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from flask import g, request

from serve import limits, schemas
from serve.openapi import tidy
from serve.operations import finite, operation
from serve.problems import Problem, field_problem
from serve.service import OPTIONS, Choice, Service, service
from skipbo_env.actions import IllegalAction
from skipbo_env.game import Game
from skipbo_env.position import Position, PositionError
from skipbo_env.rules import PRESETS, Rules

_VERDICTS = ((0.005, "tie"), (0.02, "inaccuracy"), (0.05, "mistake"))
_SUGGESTING = ("impossible-position", "illegal-action", "unknown-agent", "busy")


@operation(
    "POST",
    "/v1/suggest",
    body=schemas.SuggestRequest,
    returns=schemas.Suggestion,
    problems=_SUGGESTING,
)
def suggest(body: schemas.SuggestRequest) -> dict[str, Any]:
    """Rank the moves of a position.

    Hidden cards are never asked for; agents that search deal them from the unseen ones. The same
    request with the same seed has the same answer, unless a time budget stops the search.
    """
    choice = service().agents.choose(body.agent)
    with _gate(choice):
        return {"request_id": g.request_id, **suggestion(body.position, "/position", body, choice)}


@operation(
    "POST",
    "/v1/suggest/batch",
    body=schemas.BatchRequest,
    returns=schemas.BatchAnswer,
    problems=("illegal-action", "unknown-agent", "busy"),
    limit=limits.BATCH_BODY,
)
def suggest_batch(body: schemas.BatchRequest) -> dict[str, Any]:
    """Rank the moves of 1 to 64 positions.

    Each has its own result: a suggestion, or the problem that the position alone would have had.
    """
    choice = service().agents.choose(body.agent)
    each = body.budget_ms or int(str(choice.options.get("budget_ms", 0)))
    total = len(body.positions) * each
    if total > limits.MAX_BATCH_BUDGET_MS:
        raise field_problem(
            "invalid-body",
            "/budget_ms",
            f"{total} ms for all positions together are more than {limits.MAX_BATCH_BUDGET_MS}",
        )
    results = []
    with _gate(choice):
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
        "options": {name: list(bounds) for name, bounds in OPTIONS.items()},
        "agents": list(register.listed.values()),
    }


@operation("GET", "/v1/rules", returns=schemas.RulesAnswer)
def list_rules() -> dict[str, Any]:
    """List the settings with their defaults, and the presets."""
    return {
        "fields": tidy(schemas.Rules.model_json_schema()["properties"]),
        "presets": {name: rules.to_dict() for name, rules in PRESETS.items()},
    }


def _gate(choice: Choice) -> AbstractContextManager[None]:
    return service().gate.enter() if choice.costly else nullcontext()


def suggestion(data: Any, pointer: str, options: schemas.Options, choice: Choice) -> dict[str, Any]:
    """The answer for one position, but for the request's id.

    Raises:
        Problem: an impossible position, one in which somebody else is to move, or actions that
            leave nothing to rank.
    """
    started = time.perf_counter()
    try:
        position = Position.parse(data)
    except PositionError as error:
        raise field_problem("impossible-position", pointer + error.pointer, error.message) from None
    if position.to_move != position.you:
        raise field_problem(
            "impossible-position",
            f"{pointer}/to_move",
            f"seat {position.to_move} is to move, and its hand is not known to seat {position.you}",
        )
    game = Game.from_position(position.to_json(), options.seed)
    allowed = _allowed(game, options)
    result = _ask(service(), game, allowed, options, choice)
    found = result["search"]
    return {
        "agent": {name: result.get(name) for name in ("name", "method", "model", "sha256")},
        "position": {
            "hash": position.hash,
            "to_move": position.to_move,
            "inferred": list(position.inferred),
        },
        "root": _root(result.get("root") or {}),
        "moves": _ranked(game, result["moves"], options.top),
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
    """The agent's own answer; one that only acts has its choice first and no estimates."""
    budget = {"budget_ms": options.budget_ms} if options.budget_ms and choice.costly else {}
    with served.agents.lend(choice, options.seed, **budget) as agent:
        name = choice.text().replace(choice.base, choice.name, 1)
        if hasattr(agent, "chosen"):  # "best" goes by the rules and says who it is
            agent = agent.chosen(game.rules)
            name = agent.name
        if not getattr(agent, "plays", lambda rules: True)(game.rules):
            table = f"{game.rules.players} players" + (" in teams" if game.rules.teams else "")
            raise field_problem("unknown-agent", "/agent", f"{choice.name} does not play {table}")
        found: dict[str, Any] = {
            "name": name,
            "method": getattr(agent, "method", None),
            "search": {},
        }
        if hasattr(agent, "suggest"):
            limited = allowed if options.allow is not None or options.avoid is not None else None
            return {**found, **agent.suggest(game, top=options.top, allow=limited)}
        chosen = int(agent.act(game))
    order = sorted(allowed, key=lambda action: (action != chosen, action))
    text = game.action_text(chosen)
    return {
        **found,
        "moves": [{"action": action} for action in order],
        "warnings": [] if chosen in allowed else [f"the agent's own choice, {text!r}, is left out"],
    }


def _root(root: Mapping[str, Any]) -> dict[str, Any]:
    win = root.get("win")
    stock = root.get("expected_stock_left")
    return {
        "win": None if win is None else [finite(p) for p in win],
        "expected_stock_left": None if stock is None else [finite(n) for n in stock],
        "raw_win": finite(root.get("raw_win")),
    }


def _ranked(
    game: Game, moves: Sequence[Mapping[str, Any]], top: int | None
) -> list[dict[str, Any]]:
    """The agent's moves as the service tells them."""
    best = finite(moves[0].get("win"))
    ranked = []
    for order, found in enumerate(moves[:top]):
        action = int(found["action"])
        win = finite(found.get("win"))
        delta = None if win is None or best is None else min(0.0, win - best)
        same = found.get("same_as")
        ranked.append(
            {
                "order": order,
                **_action(game, action),
                "prior": finite(found.get("prior")),
                "win": win,
                "win_se": finite(found.get("win_se")),
                "delta": delta,
                "delta_se": finite(found.get("delta_se")),
                "n": None if found.get("n") is None else int(found["n"]),
                "line": _line(game, action, found.get("line") or ()),
                "line_ends": found.get("line_ends"),
                "same_as": None if same is None else int(same),
                "verdict": _verdict(order, delta),
            }
        )
    return ranked


def _verdict(order: int, delta: float | None) -> str | None:
    """What a move is worth beside the best."""
    if order == 0:
        return "best"
    if delta is None:
        return None
    return next((verdict for lost, verdict in _VERDICTS if -delta < lost), "blunder")


def warm(choice: Choice) -> None:
    """Have an agent answer once, so that its kernels are compiled."""
    rules = Rules()
    with service().agents.lend(choice, 0) as agent:
        if model := getattr(agent, "model", None):
            rules = Rules(players=model.players, teams=model.teams)
    suggestion(Game(rules, seed=0).position(), "", schemas.Options(), choice)


def _action(game: Game, action: int) -> dict[str, Any]:
    return {"action": action, "text": game.action_text(action), "move": game.move(action)}


def _line(game: Game, action: int, line: Sequence[int]) -> list[dict[str, Any]]:
    """The planned turn in words, beginning with the move itself."""
    plan = [int(step) for step in line]
    if plan[:1] != [action]:
        plan.insert(0, action)
    copy = game.clone()
    told = []
    for step in plan:
        told.append(_action(copy, step))
        copy.apply(step)
    return told


def _warnings(
    position: Position, options: schemas.Options, choice: Choice, result: Mapping[str, Any]
) -> list[str]:
    warnings = [str(warning) for warning in result.get("warnings", ())]
    if options.budget_ms and not choice.costly:
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
