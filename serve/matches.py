"""Scorekeeper: the score of a match that is played anywhere, at a real table too."""

from __future__ import annotations

from typing import Any

from serve import limits, schemas
from serve.operations import operation
from serve.problems import Problem, field_problem, pointer_to
from serve.shelf import PROBLEMS, Shelf
from serve.store import MATCHES
from skipbo_env.match import EntryError, Scorekeeper


def _answer(key: str, keeper: Scorekeeper) -> dict[str, Any]:
    return {"id": key, **keeper.to_dict(), "status": "over" if keeper.over else "running"}


_MATCHES: Shelf[Scorekeeper] = Shelf(
    table=MATCHES,
    read=Scorekeeper.from_dict,
    write=Scorekeeper.to_dict,
    answer=_answer,
    is_open=lambda keeper: not keeper.over,
    count=lambda keeper: len(keeper.entries),
    told="{} games are entered",
)


@operation(
    "POST",
    "/v1/matches",
    body=schemas.MatchRequest,
    returns=schemas.Match,
    problems=("impossible-entry", "storage", "too-many-games"),
    status=201,
    optional=True,
)
def create_match(body: schemas.MatchRequest) -> dict[str, Any]:
    """Begin a match's score sheet."""
    try:
        keeper = Scorekeeper(body.sides, body.target, stock=body.stock)
    except EntryError as error:
        raise _entry_problem(error) from None
    return _MATCHES.add(keeper)


@operation("GET", "/v1/matches/<match_id>", returns=schemas.Match, problems=PROBLEMS)
def get_match(match_id: str) -> dict[str, Any]:
    """Tell a match's games, points and winner."""
    return _answer(match_id, _MATCHES.load(match_id)[0])


@operation(
    "POST",
    "/v1/matches/<match_id>/games",
    body=schemas.EntryRequest,
    returns=schemas.Match,
    problems=(*PROBLEMS, "impossible-entry", "stale", "game-over"),
)
def add_entry(match_id: str, body: schemas.EntryRequest) -> dict[str, Any]:
    """Enter a game: who won, and the stock cards left with each side.

    The winner gets 25 points and 5 for each stock card left with the others.
    """
    keeper, revision = _MATCHES.load(match_id)
    _MATCHES.check(match_id, keeper, body.index)
    if keeper.over or len(keeper.entries) >= limits.MAX_MATCH_GAMES:
        raise _MATCHES.refuse("game-over", "no game follows", match_id, keeper)
    try:
        keeper.add(body.winner, body.left)
    except EntryError as error:
        raise _entry_problem(error) from None
    return _MATCHES.keep(match_id, keeper, revision)


@operation(
    "POST",
    "/v1/matches/<match_id>/undo",
    body=schemas.IndexRequest,
    returns=schemas.Match,
    problems=(*PROBLEMS, "stale", "cannot-undo"),
    optional=True,
)
def undo_entry(match_id: str, body: schemas.IndexRequest) -> dict[str, Any]:
    """Take back the last game that was entered."""
    keeper, revision = _MATCHES.load(match_id)
    _MATCHES.check(match_id, keeper, body.index)
    try:
        keeper.undo()
    except EntryError as error:
        raise _MATCHES.refuse("cannot-undo", error.message, match_id, keeper) from None
    return _MATCHES.keep(match_id, keeper, revision)


def _entry_problem(error: EntryError) -> Problem:
    return field_problem("impossible-entry", pointer_to(*error.path), error.message)
