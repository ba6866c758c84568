"""Scorekeeper: the score of a match that is played anywhere, at a real table too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from serve import limits, schemas
from serve.operations import operation
from serve.problems import Problem, field_problem
from serve.service import service
from serve.store import MATCHES
from skipbo_env.match import EntryError, Scorekeeper

_ALWAYS = ("not-found", "unreadable-game", "storage")


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
    return _answer(service().store.add(MATCHES, keeper.to_dict()), keeper)


@operation("GET", "/v1/matches/<match_id>", returns=schemas.Match, problems=_ALWAYS)
def get_match(match_id: str) -> dict[str, Any]:
    """Tell a match's games, points and winner."""
    return _answer(match_id, _load(match_id)[0])


@operation(
    "POST",
    "/v1/matches/<match_id>/games",
    body=schemas.EntryRequest,
    returns=schemas.Match,
    problems=(*_ALWAYS, "impossible-entry", "stale", "game-over"),
)
def add_entry(match_id: str, body: schemas.EntryRequest) -> dict[str, Any]:
    """Enter a game: who won, and the stock cards left with each side.

    The winner gets 25 points and 5 for each stock card left with the others.
    """
    keeper, revision = _load(match_id)
    _check_index(match_id, keeper, body.index)
    if keeper.over or len(keeper.entries) >= limits.MAX_MATCH_GAMES:
        raise Problem("game-over", "no game follows", current=_answer(match_id, keeper))
    try:
        keeper.add(body.winner, body.left)
    except EntryError as error:
        raise _entry_problem(error) from None
    return _keep(match_id, keeper, revision)


@operation(
    "POST",
    "/v1/matches/<match_id>/undo",
    body=schemas.IndexRequest,
    returns=schemas.Match,
    problems=(*_ALWAYS, "stale", "cannot-undo"),
    optional=True,
)
def undo_entry(match_id: str, body: schemas.IndexRequest) -> dict[str, Any]:
    """Take back the last game that was entered."""
    keeper, revision = _load(match_id)
    _check_index(match_id, keeper, body.index)
    try:
        keeper.undo()
    except EntryError as error:
        current = _answer(match_id, keeper)
        raise Problem("cannot-undo", error.message, current=current) from None
    return _keep(match_id, keeper, revision)


def _answer(key: str, keeper: Scorekeeper) -> dict[str, Any]:
    return {"id": key, **keeper.to_dict(), "status": "over" if keeper.over else "running"}


def _load(key: str) -> tuple[Scorekeeper, int]:
    data, revision = service().store.get(MATCHES, key)
    return _read(data), revision


def _read(data: Mapping[str, Any]) -> Scorekeeper:
    try:
        return Scorekeeper.from_dict(data)
    except EntryError as error:
        raise Problem("unreadable-game", "this match cannot be read any more") from error


def _keep(key: str, keeper: Scorekeeper, revision: int) -> dict[str, Any]:
    """Keep a changed match and answer it; 409 where another request was faster."""
    if not service().store.put(MATCHES, key, keeper.to_dict(), revision, is_open=not keeper.over):
        raise _stale(key, _load(key)[0])
    return _answer(key, keeper)


def _stale(key: str, keeper: Scorekeeper) -> Problem:
    detail = f"{len(keeper.entries)} games are entered"
    return Problem("stale", detail, current=_answer(key, keeper))


def _check_index(key: str, keeper: Scorekeeper, index: int | None) -> None:
    if index is not None and index != len(keeper.entries):
        raise _stale(key, keeper)


def _entry_problem(error: EntryError) -> Problem:
    pointer = "".join(f"/{part}" for part in error.path)
    return field_problem("impossible-entry", pointer, error.message)
