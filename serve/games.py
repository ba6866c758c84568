"""Games against agents: dealt, kept and played here; each answer shows what one seat may see.

A game is kept as `skipbo_env.saved` writes it. To answer, it is followed from its deal, which takes
a few milliseconds, so that no process remembers anything and any number of them can serve. Agents
move as soon as a person's turn is over, before the move is answered; both are kept in one step.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from flask import g

from serve import limits, schemas
from serve.operations import operation
from serve.problems import Problem, field_problem
from serve.service import check_plays, service
from serve.shelf import PROBLEMS, Shelf
from serve.store import GAMES
from serve.suggest import suggestion
from skipbo_env import record, saved
from skipbo_env.actions import IllegalAction, acting_board
from skipbo_env.engine import layout
from skipbo_env.engine.layout import State
from skipbo_env.game import Game
from skipbo_env.rules import Rules, RulesError
from skipbo_env.suggestion import described

_PLAYING = (*PROBLEMS, "agent-gone", "busy")
_KEPT_VERSION = 1


@dataclass
class Table:
    """A game and who plays it.

    Attributes:
        game: the game.
        seats: those of people, ascending.
        agents: by seat: an agent's text, "" for the service's own, None for a person.
    """

    game: Game
    seats: list[int]
    agents: list[str | None]

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Table:
        """What `to_json` wrote.

        Raises:
            SavedError: (a ValueError) another version wrote it.
            KeyError, TypeError: nobody wrote it.
        """
        if data["version"] != _KEPT_VERSION:
            raise saved.SavedError(f"version {data['version']!r:.20}")
        return cls(saved.load(data["game"]), list(data["seats"]), list(data["agents"]))

    def to_json(self) -> dict[str, Any]:
        """All that has to be kept; it holds hidden cards."""
        return {
            "version": _KEPT_VERSION,
            "game": saved.save(self.game),
            "seats": self.seats,
            "agents": self.agents,
        }

    @property
    def viewer(self) -> int:
        """The seat that answers are for: the person to move."""
        return self.game.player if self.game.player in self.seats else self.seats[0]

    def last_look(self) -> tuple[int, State | None]:
        """The ply of the viewer's last move and the state before it; -1 and None before any."""
        game, seat = self.game, self.viewer
        assert game.start is not None  # all games here begin with a deal
        state, before = game.start.copy(), game.start.copy()
        ply = -1
        for index, (action, script) in enumerate(self._done()):
            if int(state[layout.PLAYER]) == seat:
                np.copyto(before, state)
                ply = index
            record.apply_with(state, action, script)
        return ply, None if ply < 0 else before

    def _done(self, since: int = 0) -> Iterator[tuple[int, list[int] | None]]:
        orders = saved.reshuffles(self.game)
        for ply in range(since, len(self.game.actions)):
            yield self.game.actions[ply], orders.get(ply)

    def events(self, since: int, before: State | None) -> list[dict[str, Any]]:
        """What happened from a ply on as the viewer may see it; from the deal on without one."""
        game, events = self.game, []
        assert game.start is not None
        if before is None:
            events = record.first_events(game.start)
        state = (game.start if before is None else before).copy()
        earlier = state.copy()
        for action, script in self._done(max(0, since)):
            np.copyto(earlier, state)
            record.apply_with(state, action, script)
            events += record.step_events(game.rules, earlier, state, action)
        return [record.seen_event(event, self.viewer) for event in events]

    def can_undo(self, since: int, before: State | None) -> bool:
        """Whether the last action is the viewer's, in a turn that goes on, and showed no card."""
        game = self.game
        if before is None or since != len(game.actions) - 1:
            return False
        if game.over or game.player != int(before[layout.PLAYER]):
            return False
        action = game.actions[-1]
        told = record.step_events(game.rules, before, game.state, action)
        if any(event["type"] in ("draw", "reshuffle") for event in told):
            return False
        if told[0].get("from") != "stock":
            return True
        at = layout.board_at(acting_board(before, game.rules, action))
        return int(game.state[at + layout.STOCK_N]) == 0

    def without_last(self) -> Table:
        """The same before its last action, which must have drawn no card."""
        data = self.to_json()
        data["game"]["actions"].pop()
        return Table.from_json(data)


def _answer(key: str, table: Table) -> dict[str, Any]:
    """A game as the viewer may see it."""
    game, look = table.game, table.last_look()
    return {
        "id": key,
        "ply": len(game.actions),
        "status": "over" if game.over else "running",
        "seat": table.viewer,
        "to_move": None if game.over else game.player,
        "position": game.position(table.viewer),
        "legal": [described(game.state, game.rules, action) for action in game.legal_actions()],
        "can_undo": table.can_undo(*look),
        "events": table.events(*look),
        "result": game.result,
        "rules": game.rules.to_dict(),
        "seats": table.seats,
        "agents": _names(table),
    }


def _names(table: Table) -> list[str | None]:
    default = service().agents.default.name
    return [default if text == "" else text for text in table.agents]


_GAMES: Shelf[Table] = Shelf(
    table=GAMES,
    read=Table.from_json,
    write=Table.to_json,
    answer=_answer,
    is_open=lambda table: not table.game.over,
    count=lambda table: len(table.game.actions),
    told="the game stands at ply {}",
)


# Requests --------------------------------------------------------------------------------------


@operation(
    "POST",
    "/v1/games",
    body=schemas.GameRequest,
    returns=schemas.Game,
    problems=("impossible-rules", "unknown-agent", "storage", "too-many-games", "busy"),
    status=201,
)
def create_game(body: schemas.GameRequest) -> dict[str, Any]:
    """Deal a game against agents.

    Agents that sit before you move first. Whoever knows the id can see and play your seat.
    """
    rules = _rules(body)
    seats = _seats(body, rules)
    texts = _agents(body, rules, seats)
    seed = secrets.randbelow(limits.MAX_SEED + 1) if body.seed is None else body.seed
    table = Table(Game(rules, seed=seed), seats, texts)
    _play_agents(table)
    return _GAMES.add(table)


@operation("GET", "/v1/games/<game_id>", returns=schemas.Game, problems=PROBLEMS)
def get_game(game_id: str) -> dict[str, Any]:
    """Tell how a game stands."""
    return _answer(game_id, _GAMES.load(game_id)[0])


@operation(
    "POST",
    "/v1/games/<game_id>/moves",
    body=schemas.MoveRequest,
    returns=schemas.Game,
    problems=(*_PLAYING, "illegal-action", "stale", "game-over"),
)
def make_move(game_id: str, body: schemas.MoveRequest) -> dict[str, Any]:
    """Make a move; where it ends the turn, the agents' turns follow before the answer."""
    table, revision = _GAMES.load(game_id)
    _GAMES.check(game_id, table, body.ply)
    _check_running(game_id, table)
    try:
        table.game.apply(body.action)
    except IllegalAction as error:
        message = str(error).removeprefix("action: ")
        raise field_problem("illegal-action", "/action", message) from None
    _play_agents(table)
    return _GAMES.keep(game_id, table, revision)


@operation(
    "POST",
    "/v1/games/<game_id>/undo",
    body=schemas.PlyRequest,
    returns=schemas.Game,
    problems=(*PROBLEMS, "stale", "cannot-undo"),
    optional=True,
)
def undo_move(game_id: str, body: schemas.PlyRequest) -> dict[str, Any]:
    """Take back the last move of a turn, as long as it has shown no hidden card."""
    table, revision = _GAMES.load(game_id)
    _GAMES.check(game_id, table, body.ply)
    if not table.can_undo(*table.last_look()):
        why = "the last move is another's, or has ended the turn or shown a hidden card"
        raise _GAMES.refuse("cannot-undo", why, game_id, table)
    return _GAMES.keep(game_id, table.without_last(), revision)


@operation(
    "POST",
    "/v1/games/<game_id>/hint",
    body=schemas.HintRequest,
    returns=schemas.Suggestion,
    problems=(*_PLAYING, "unknown-agent", "game-over"),
    optional=True,
)
def hint(game_id: str, body: schemas.HintRequest) -> dict[str, Any]:
    """Rank the moves of the seat to move, from what it may see."""
    table, _ = _GAMES.load(game_id)
    _check_running(game_id, table)
    choice = service().agents.choose(body.agent)
    options = schemas.Options(top=body.top)
    with service().room_for(choice):
        found = suggestion(table.game.position(), "", options, choice)
    return {"request_id": g.request_id, **found}


@operation(
    "GET",
    "/v1/games/<game_id>/hint",
    returns=schemas.Suggestion,
    problems=(*_PLAYING, "game-over"),
)
def get_hint(game_id: str) -> dict[str, Any]:
    """Rank the moves of the seat to move, by the service's own agent."""
    return hint(game_id, schemas.HintRequest())


@operation(
    "GET",
    "/v1/games/<game_id>/record",
    returns=schemas.Record,
    problems=(*PROBLEMS, "not-over"),
)
def get_record(game_id: str) -> dict[str, Any]:
    """Tell all of a finished game: the deal, every event and the seed."""
    table, _ = _GAMES.load(game_id)
    if not table.game.over:
        raise _GAMES.refuse("not-over", "the game is running", game_id, table)
    return table.game.record(["human" if name is None else name for name in _names(table)])


# Parts -----------------------------------------------------------------------------------------


def _check_running(key: str, table: Table) -> None:
    if table.game.over:
        raise _GAMES.refuse("game-over", "the game has ended", key, table)


def _rules(body: schemas.GameRequest) -> Rules:
    """The rules that are asked for.

    Raises:
        Problem: "impossible-rules".
    """
    given = "standard" if body.rules is None else body.rules
    if isinstance(given, dict):
        given = {name: schemas.integral(value) for name, value in given.items()}
    told = given.get("players") if isinstance(given, dict) else None
    if body.players is not None and told not in (None, body.players):
        raise field_problem("impossible-rules", "/players", f"the rules seat {told!r:.40} players")
    try:
        rules = Rules.of(given, body.players)
    except RulesError as error:
        inside = isinstance(given, dict) and error.field in given
        beside = error.field == "players" and body.players is not None
        pointer = f"/rules/{error.field}" if inside else "/players" if beside else "/rules"
        raise field_problem("impossible-rules", pointer, error.message) from None
    if rules.max_turns > limits.MAX_TURNS:
        raise field_problem(
            "impossible-rules",
            "/rules/max_turns",
            f"games here end after {limits.MAX_TURNS} turns at most",
        )
    return rules


def _seats(body: schemas.GameRequest, rules: Rules) -> list[int]:
    """The seats of people, ascending."""
    if body.seats is not None and body.seat is not None:
        raise field_problem("invalid-body", "/seats", "seat is given as well; one of them is due")
    given = [body.seat or 0] if body.seats is None else body.seats
    for place, seat in enumerate(given):
        pointer = "/seat" if body.seats is None else f"/seats/{place}"
        if seat >= rules.players:
            raise field_problem(
                "invalid-body", pointer, f"the seats are 0 to {rules.players - 1}, got {seat}"
            )
        if seat in given[:place]:
            raise field_problem("invalid-body", pointer, f"seat {seat} is named twice")
    return sorted(given)


def _agents(body: schemas.GameRequest, rules: Rules, seats: Sequence[int]) -> list[str | None]:
    """Who plays each seat, see `Table.agents`; every agent is tried."""
    others = [seat for seat in range(rules.players) if seat not in seats]
    given = body.agents or []
    if len(given) not in (0, 1, len(others)) or (given and not others):
        raise field_problem(
            "invalid-body",
            "/agents",
            f"{len(given)} agents for {len(others)} seats; name one for all of them or for each",
        )
    register = service().agents
    kept: list[str] = []
    for place, text in enumerate(given or [None] if others else []):
        pointer = f"/agents/{place}" if given else "/agents"
        choice = register.choose(text, pointer)
        with register.lend(choice, 0, pointer=pointer) as agent:
            check_plays(choice, agent, rules, pointer)
        kept.append(choice.text() if choice.base in register.listed else "")
    by_seat: list[str | None] = [None] * rules.players
    for place, seat in enumerate(others):
        by_seat[seat] = kept[place if len(kept) > 1 else 0]
    return by_seat


def _play_agents(table: Table) -> None:
    """Let the agents move until a person is to move or the game is over.

    Raises:
        Problem: "agent-gone", "busy".
    """
    game = table.game
    with _gone_as_problem():
        choices = {
            seat: service().agents.choose(text or None)
            for seat, text in enumerate(table.agents)
            if text is not None
        }
    if game.over or game.player not in choices:
        return
    with service().room_for(*choices.values()):
        while not game.over and game.player in choices:
            seat, seed = game.player, _stream(game, game.player)
            choice = choices[seat]
            lent = service().agents.lend(choice, seed, choice.budget())
            with _gone_as_problem(), lent as agent:
                while not game.over and game.player == seat:
                    game.apply(int(agent.act(game)))


@contextmanager
def _gone_as_problem() -> Iterator[None]:
    try:
        yield
    except Problem as problem:
        if problem.kind != "unknown-agent":
            raise
        raise Problem("agent-gone", problem.errors[0][2]) from None


def _stream(game: Game, seat: int) -> int:
    """A seed for an agent's turn, from the game's own."""
    sequence = np.random.SeedSequence(game.seed, spawn_key=(seat, len(game.actions)))
    return int(sequence.generate_state(1, np.uint64)[0] >> np.uint64(1))


def warm() -> None:
    """Have all that a game needs compiled: a short one is played, kept, read again and told."""
    game = Game(Rules(stock_size=2, max_turns=20), seed=0)
    while not game.over:
        game.apply(game.legal_actions()[-1])
    # A reshuffle in a given order. It is none of this game's; the copy is thrown away.
    record.apply_with(game.state.copy(), 72, [1])
    table = Table.from_json(Table(game, [0], [None, ""]).to_json())
    table.events(*table.last_look())
