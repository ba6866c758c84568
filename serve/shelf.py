"""What games and matches have in common: read from the database, changed, put back, or refused.

Whatever changes one says what it was made from, a ply or a number of games; where that is over by
now the answer is 409 with the present state, so that a request that is sent twice is done once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import sqlalchemy as sa

from serve.problems import Problem
from serve.service import service

PROBLEMS = ("not-found", "unreadable-game", "storage")
"""Kinds of problems that every access may raise."""

_Thing = TypeVar("_Thing")


@dataclass(frozen=True)
class Shelf(Generic[_Thing]):
    """One kind of thing that is kept.

    Attributes:
        table: where.
        read: makes one of the JSON data that `write` gave; raises ValueError where it cannot.
        write: all of it as JSON data.
        answer: what a client is told of it, by its id.
        is_open: whether it goes on.
        count: how far it has come.
        told: how far it has come, in words.
    """

    table: sa.Table
    read: Callable[[Any], _Thing]
    write: Callable[[_Thing], Any]
    answer: Callable[[str, _Thing], dict[str, Any]]
    is_open: Callable[[_Thing], bool]
    count: Callable[[_Thing], int]
    told: str

    def add(self, thing: _Thing) -> dict[str, Any]:
        """Keep something new, and answer it.

        Raises:
            Problem: "too-many-games", "storage".
        """
        key = service().store.add(self.table, self.write(thing), is_open=self.is_open(thing))
        return self.answer(key, thing)

    def load(self, key: str) -> tuple[_Thing, int]:
        """What is kept under an id, and its revision.

        Raises:
            Problem: one of `PROBLEMS`.
        """
        try:
            data, revision = service().store.get(self.table, key)
            return self.read(data), revision
        except (ValueError, KeyError, TypeError) as error:
            detail = f"one of the {self.table.name} that this version cannot read any more"
            raise Problem("unreadable-game", detail) from error

    def keep(self, key: str, thing: _Thing, revision: int) -> dict[str, Any]:
        """Keep what has changed since a revision, and answer it.

        Raises:
            Problem: "stale" where another request was faster, or one of `PROBLEMS`.
        """
        is_open = self.is_open(thing)
        if not service().store.put(self.table, key, self.write(thing), revision, is_open=is_open):
            raise self._stale(key, self.load(key)[0])
        return self.answer(key, thing)

    def check(self, key: str, thing: _Thing, count: int | None) -> None:
        """Refuse a change that was made from another state; None is not compared.

        Raises:
            Problem: "stale".
        """
        if count is not None and count != self.count(thing):
            raise self._stale(key, thing)

    def refuse(self, kind: str, detail: str, key: str, thing: _Thing) -> Problem:
        """A problem that shows the present state."""
        return Problem(kind, detail, current=self.answer(key, thing))

    def _stale(self, key: str, thing: _Thing) -> Problem:
        return self.refuse("stale", self.told.format(self.count(thing)), key, thing)
