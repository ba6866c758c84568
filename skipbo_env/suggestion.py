"""What an agent says of a position, in the form that the service, the command line and the terminal
share.

An agent's own answer holds action ids and numbers; here they get their order, text, move and
verdict.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from skipbo_env.actions import TEXTS, Cells, move_json
from skipbo_env.game import Game
from skipbo_env.reasons import public_cells, reasons_along
from skipbo_env.rules import Rules

# Lost win probability below which a move that is not the best is no more than this.
VERDICTS = ((0.005, "tie"), (0.02, "inaccuracy"), (0.05, "mistake"))


def finite(value: Any) -> float | None:
    """A number rounded to six places; None for None, NaN and infinities."""
    if value is None:
        return None
    number = float(value)
    return round(number, 6) if math.isfinite(number) else None


def verdict(order: int, delta: float | None) -> str | None:
    """What a move is worth beside the best: best, tie, inaccuracy, mistake or blunder.

    Args:
        order: its place, the best is 0.
        delta: its win probability less the best's; None where nothing is estimated.
    """
    if order == 0:
        return "best"
    if delta is None:
        return None
    return next((name for lost, name in VERDICTS if -delta < lost), "blunder")


def described(state: Cells, rules: Rules, action: int) -> dict[str, Any]:
    """A legal action of a game's array as {"action": id, "text", "move"}."""
    return {"action": action, "text": TEXTS[action], "move": move_json(state, rules, action)}


def ranked(game: Game, moves: Sequence[Mapping[str, Any]], top: int | None) -> list[dict[str, Any]]:
    """An agent's moves, best first, with all that is told of each.

    Args:
        game: the game whose seat to move is advised.
        moves: {"action"} and, where the agent has them, "win", "win_se", "delta_se", "prior", "n",
            "line", "line_ends" and "same_as".
        top: how many to tell; None for all.
    """
    best = finite(moves[0].get("win"))
    before = public_cells(game.state)
    only = len(game.legal_actions()) == 1
    told = []
    for order, found in enumerate(moves[:top]):
        action = int(found["action"])
        win = finite(found.get("win"))
        delta = None if win is None or best is None else min(0.0, round(win - best, 6))
        same = found.get("same_as")
        line = [int(step) for step in found.get("line") or ()]
        if line[:1] != [action]:
            line.insert(0, action)
        states = game.states_along(line)
        steps = [
            described(state, game.rules, each) for state, each in zip(states, line, strict=False)
        ]
        ends = found.get("line_ends")
        told.append(
            {
                "order": order,
                **steps[0],
                "prior": finite(found.get("prior")),
                "win": win,
                "win_se": finite(found.get("win_se")),
                "delta": delta,
                "delta_se": finite(found.get("delta_se")),
                "n": None if found.get("n") is None else int(found["n"]),
                "line": steps,
                "line_ends": ends,
                "reasons": reasons_along(game.rules, before, states, line, ends, only=only),
                "same_as": None if same is None else int(same),
                "verdict": verdict(order, delta),
            }
        )
    return told


def ask(
    agent: Any, game: Game, *, top: int | None = None, allow: Sequence[int] | None = None
) -> dict[str, Any]:
    """An agent's answer; one that only acts has its choice first and estimates nothing.

    Args:
        agent: has `act`, and perhaps `suggest`; "best" goes by the rules and says who it is.
        game: the seat to move is advised.
        top: how many moves.
        allow: the only actions to rank; None for all legal ones.

    Returns:
        {"agent": {"name", "method", "model", "sha256"}, "root", "moves", "search", "warnings"}.
    """
    if hasattr(agent, "chosen"):
        agent = agent.chosen(game.rules)
    found: dict[str, Any] = {
        "method": getattr(agent, "method", None),
        "search": {},
        "root": {},
        "warnings": [],
    }
    if hasattr(agent, "suggest"):
        found.update(agent.suggest(game, top=top, allow=allow))
    else:
        allowed = list(allow) if allow is not None else game.legal_actions()
        chosen = int(agent.act(game))
        order = sorted(allowed, key=lambda action: (action != chosen, action))
        found["moves"] = [{"action": action} for action in order]
        if chosen not in allowed:
            text = game.action_text(chosen)
            found["warnings"] = [f"the agent's own choice, {text!r}, is left out"]
    return {
        "agent": {
            "name": agent.name,
            "method": found["method"],
            "model": found.get("model"),
            "sha256": found.get("sha256"),
        },
        "root": found["root"],
        "moves": ranked(game, found["moves"], top),
        "search": found["search"],
        "warnings": list(found["warnings"]),
    }
