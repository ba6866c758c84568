"""The review of a finished or running game: every decision beside the best one, and the luck.

An agent judges each decision from what its player saw at that moment: the hidden cards are dealt
anew from the unseen ones before it is asked. Probabilities are those of winning, by the agent.

    lost    what a decision cost its player: the best move's probability less the played one's
    luck    what the cards that came to light did: the change from the move as played to the next
            decision or the end, in the eyes of each side. Two sides only; it sums to zero. Where
            an agent sees a line otherwise in its midst than at its start, by rollouts or as it
            compares other endings behind flips, that change is in it too.

With two sides a game's result is the first decision's probability, less what the side lost, plus
what the other side lost, plus the side's luck. `adjusted` is the result less the luck: what the
same decisions would bring with neither lucky nor unlucky cards. (GNU Backgammon has the same two
figures.) A side that wins has the result 1, one that does not 0, and 0.5 where nobody does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from skipbo_env.actions import MOVES, acting_board
from skipbo_env.cards import card_text
from skipbo_env.engine import layout
from skipbo_env.engine.layout import State
from skipbo_env.game import Game
from skipbo_env.record import replay, step_events
from skipbo_env.rules import Rules
from skipbo_env.suggestion import ask, finite

VERDICTS = ("best", "tie", "inaccuracy", "mistake", "blunder")
_TOLD = ("action", "text", "move", "win")


def analyse(
    record: Mapping[str, Any],
    agent: Any,
    *,
    time_limit_s: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Judge every decision of a record.

    Args:
        record: the game (docs/formats.md), finished or not.
        agent: who judges; one with `suggest` gives probabilities, one with `act` alone only says
            what it would have played.
        time_limit_s: stop before the first decision that begins after so many seconds.
        progress: called with (decisions judged, decisions in all).

    Returns:
        {"agent": {"name", "method", "model", "sha256"}, "rules", "result", "complete",
        "decisions_total", "decisions": [...], "players": [...], "sides": [...]}.
        A decision is {"ply", "turn", "player", "played", "best", "lost", "verdict", "choices",
        "win", "luck", "shown", "line", "line_ends", "reasons"}: "win" has each side's probability
        before it, "luck" each side's after it, "shown" the cards that came to light then, "line"
        the rest of the turn that "best" begins and "reasons" what is to be said for it; None where
        the agent cannot say. A player is {"player", "side", "agent", "decisions", "judged", "lost",
        "mean_lost", "agreement", "verdicts"}, a side {"side", "lost", "luck", "result",
        "adjusted"}.

    Raises:
        RecordError: (a ValueError) no record, or an event that cannot follow.
        AgentError: (a ValueError) the agent does not play these rules.
    """
    started = time.monotonic()
    told = replay(record)
    rules = told.rules
    total = len(told.actions)
    decisions: list[dict[str, Any]] = []
    who: dict[str, Any] | None = None
    turn = 0
    before: State | None = None
    for ply, (state, action) in enumerate(told.states()):
        if before is not None:
            decisions[-1]["shown"] = _shown(rules, before, state, told.actions[ply - 1])
        before = state
        if time_limit_s is not None and time.monotonic() - started > time_limit_s:
            break
        game = Game.from_state(rules, state)
        decision, who = _judge(game, action, agent)
        decisions.append({"ply": ply, "turn": turn, **decision})
        turn += decision["played"]["move"]["type"] != "play"
        if progress is not None:
            progress(ply + 1, total)
    complete = len(decisions) == total
    if complete and before is not None:
        decisions[-1]["shown"] = _shown(rules, before, told.state, told.actions[-1])
    end = Game.from_state(rules, told.state)
    results = _results(end)
    for place, decision in enumerate(decisions):
        after = decisions[place + 1]["win"] if place + 1 < len(decisions) else None
        if complete and place + 1 == total:
            after = results
        decision["luck"] = _luck(rules, decision, after)
    return {
        "agent": who,
        "rules": rules.to_dict(),
        "result": end.result,
        "complete": complete,
        "decisions_total": total,
        "decisions": decisions,
        "players": [_player(rules, told.agents, decisions, p) for p in range(rules.players)],
        "sides": [_side(rules, decisions, side, results, complete) for side in range(rules.sides)],
    }


def _judge(game: Game, action: int, agent: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """A decision beside the best, and who says so."""
    seen = game.determinize(game.player, 0)
    legal = seen.legal_actions()
    best = int(agent.act(seen)) if len(legal) > 1 else legal[0]
    answer = ask(agent, seen, allow=sorted({best, action}))
    moves = answer["moves"]
    played = next(move for move in moves if move["action"] == action)
    # An agent that estimates nothing has its own choice first, also in a list without it.
    chosen = moves[0] if moves[0]["win"] is not None or moves[0]["action"] == best else played
    if played["win"] is None:
        verdict = "best" if action == best else None
    else:
        verdict = played["verdict"]
    root = (answer["root"] or {}).get("win")
    decision = {
        "player": game.player,
        "played": {name: played[name] for name in _TOLD},
        "best": {name: chosen[name] for name in _TOLD},
        "lost": None if played["delta"] is None else max(0.0, -played["delta"]),
        "verdict": verdict,
        "choices": len(legal),
        "win": None if root is None else [finite(p) for p in root],
        "luck": None,
        "shown": [],
        "line": chosen["line"],
        "line_ends": chosen["line_ends"],
        "reasons": chosen["reasons"],
    }
    return decision, answer["agent"]


def _shown(rules: Rules, before: State, after: State, action: int) -> list[dict[str, Any]]:
    """The stock card and the draws that an action brought to light."""
    told = []
    if MOVES[action].source == "stock":
        board = acting_board(before, rules, action)
        top = int(after[layout.board_at(board) + layout.STOCK_TOP])
        if top:
            player = int(before[layout.PLAYER])
            told.append({"type": "flip", "player": player, "board": board, "card": card_text(top)})
    events = step_events(rules, before, after, action)
    return told + [event for event in events if event["type"] == "draw"]


def _results(end: Game) -> list[float] | None:
    """What each side has of a finished game: 1, 0, or 0.5 of one that nobody won (two sides)."""
    result = end.result
    if result is None:
        return None
    if result["winner"] is None:
        return [1 / end.rules.sides] * end.rules.sides
    return [float(side == result["winner"]) for side in range(end.rules.sides)]


def _luck(
    rules: Rules, decision: Mapping[str, Any], after: list[float | None] | list[float] | None
) -> list[float] | None:
    """Each side's change from the move as played to what came next; None without estimates."""
    played = decision["played"]["win"]
    if rules.sides != 2 or after is None or played is None:
        return None
    side = rules.side_of(decision["player"])
    then = after[side]
    if then is None:
        return None
    luck = round(then - played, 6)
    return [luck if each == side else -luck for each in range(2)]


def _player(
    rules: Rules, agents: list[str] | None, decisions: list[dict[str, Any]], player: int
) -> dict[str, Any]:
    own = [decision for decision in decisions if decision["player"] == player]
    free = [decision for decision in own if decision["choices"] > 1]
    lost = [decision["lost"] for decision in free if decision["lost"] is not None]
    verdicts = [decision["verdict"] for decision in free]
    agreed = verdicts.count("best") + verdicts.count("tie")
    return {
        "player": player,
        "side": rules.side_of(player),
        "agent": None if agents is None else agents[player],
        "decisions": len(own),
        "judged": len(free),
        "lost": round(sum(lost), 6) if lost else None,
        "mean_lost": round(sum(lost) / len(lost), 6) if lost else None,
        "agreement": round(agreed / len(free), 6) if free else None,
        "verdicts": {name: verdicts.count(name) for name in VERDICTS},
    }


def _side(
    rules: Rules,
    decisions: list[dict[str, Any]],
    side: int,
    results: list[float] | None,
    complete: bool,
) -> dict[str, Any]:
    own = [decision["lost"] for decision in decisions if rules.side_of(decision["player"]) == side]
    lucks = [decision["luck"][side] for decision in decisions if decision["luck"] is not None]
    estimated = rules.sides == 2 and bool(decisions) and None not in own
    luck = round(sum(lucks), 6) if estimated and lucks else None
    result = results[side] if results is not None and complete else None
    known = [lost for lost in own if lost is not None]
    return {
        "side": side,
        "lost": round(sum(known), 6) if known else None,
        "luck": luck,
        "result": result,
        "adjusted": None if luck is None or result is None else round(result - luck, 6),
    }
