"""Matches: games played one after another until a side has the target score.

`Match` deals the games, with the start moving on by one seat each time. `Scorekeeper` needs no
engine: it adds up a match that is played elsewhere, from who emptied the stock and what the others
had left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np

from skipbo_env.checks import is_whole, shown
from skipbo_env.engine import layout
from skipbo_env.game import Game, seed_to_u64
from skipbo_env.record import deal_of
from skipbo_env.rules import MAX_STOCK, MAX_TURNS_LIMIT, Rules

WIN_POINTS = 25
CARD_POINTS = 5


class Match:
    """A match to `rules.target_score`: game k begins at seat (first + k) mod players.

    Games without a winner score nothing and move the start on all the same. Sides are seats, or
    teams.

        >>> match = Match("short", seed=3)
        >>> game = match.new_game()  # play it to its end, then
        >>> match.over
        False

    Args:
        rules: a `Rules`, a preset's name or a mapping of settings.
        players: overrides the number of players, unless the rules fix teams.
        seed: 0 to 2**64 - 1; equal seeds give equal deals. None: a fresh one.

    Attributes:
        rules: what is played; each game has them with its own `first_player`.
        seed: the seed that the games' seeds come from.
        first: the seat that begins game 0; where the rules say "random" it is drawn once, here.
        scores: points of each side.
        wins: games won by each side.
        results: the `Game.result` of every game that counts, in order.

    Raises:
        RulesError: (a ValueError) rules that cannot be played; it names the field.
        ValueError: a bad seed.
    """

    def __init__(
        self,
        rules: Rules | str | Mapping[str, Any] = "standard",
        *,
        players: int | None = None,
        seed: int | None = None,
    ) -> None:
        self.rules = Rules.of(rules, players)
        self.seed = seed_to_u64(seed)
        self.first = (
            int(np.random.SeedSequence(self.seed).generate_state(1, np.uint64)[0])
            % self.rules.players
            if self.rules.first_player == "random"
            else int(self.rules.first_player)
        )
        self.scores = [0] * self.rules.sides
        self.wins = [0] * self.rules.sides
        self.results: list[dict[str, Any]] = []
        self._counted: set[tuple[str, tuple[int, ...]]] = set()

    @property
    def winner(self) -> int | None:
        """The side that has reached the target, or None."""
        return _winner(self.scores, self.rules.target_score)

    @property
    def over(self) -> bool:
        """Whether a side has reached the target."""
        return self.winner is not None

    @property
    def first_player(self) -> int:
        """The seat that begins the next game."""
        return (self.first + len(self.results)) % self.rules.players

    @property
    def without_winner(self) -> int:
        """Games that nobody won: stalemates, and those cut off at the turn limit."""
        return len(self.results) - sum(self.wins)

    def new_game(self) -> Game:
        """The next game, dealt. It is the same one until `add` has counted it.

        Raises:
            ValueError: the match is over.
        """
        if self.over:
            raise ValueError(f"match: side {self.winner} has won it, no game follows")
        index = len(self.results)
        sequence = np.random.SeedSequence(self.seed, spawn_key=(index,))
        seed = int(sequence.generate_state(1, np.uint64)[0])
        return Game(replace(self.rules, first_player=self.first_player), seed=seed)

    def add(self, game: Game) -> None:
        """Count a finished game.

        Raises:
            ValueError: the game is not over, is counted already, is by other rules, was begun by
                another seat than the match's next game, or the match is over.
        """
        if not isinstance(game, Game):
            raise ValueError(f"game: needs a Game, got {shown(game)}")
        result = game.result
        if result is None:
            raise ValueError("game: it is not over")
        if len(result["scores"]) != self.rules.sides:
            raise ValueError(
                f"game: it has {len(result['scores'])} sides, the match {self.rules.sides}"
            )
        if self.over:
            raise ValueError(f"match: side {self.winner} has won it, no game follows")
        dealt = game.state.tobytes().hex() if game.start is None else str(deal_of(game.start))
        played = dealt, tuple(game.actions)
        if played in self._counted:
            raise ValueError("game: it is counted already")
        begun = int(game.state[layout.FIRST_PLAYER])
        if replace(game.rules, first_player=0) != replace(self.rules, first_player=0):
            raise ValueError("game: it was played by other rules than the match's")
        if begun != self.first_player:
            raise ValueError(
                f"game: seat {begun} began, but seat {self.first_player} begins game "
                f"{len(self.results)} of the match"
            )
        self._counted.add(played)
        self.results.append(result)
        self.scores = [sum(pair) for pair in zip(self.scores, result["scores"], strict=True)]
        if result["winner"] is not None:
            self.wins[result["winner"]] += 1

    def __repr__(self) -> str:
        status = f"side {self.winner} has won" if self.over else f"to {self.rules.target_score}"
        return f"<Match {len(self.results)} games, scores {self.scores}, {status}>"


class EntryError(ValueError):
    """A scorekeeper's entry that cannot be. `.path` leads to the field, such as ("left", 1)."""

    def __init__(self, path: tuple[str | int, ...], message: str) -> None:
        name = str(path[0]) + "".join(f"[{part}]" for part in path[1:])
        super().__init__(f"{name}: {message}")
        self.path = path
        self.message = message

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path, self.message)


class Scorekeeper:
    """The score of a match played anywhere, with real cards too; no engine behind it.

        >>> keeper = Scorekeeper(sides=3, target=500)
        >>> keeper.add(winner=1, left=[6, 0, 3])
        [0, 70, 0]
        >>> keeper.scores, keeper.winner
        ([0, 70, 0], None)

    Args:
        sides: players, or teams; 2 to 6.
        target: points that win the match.
        stock: cards that a side has at a game's start, all its stocks together; None where nobody
            says, and then up to 40 are accepted, or 80 with two or three sides, who may be teams.

    Attributes:
        sides: how many there are.
        target: points that win.
        stock: as given.
        entries: the games as entered: {"winner", "left", "scores"}.

    Raises:
        EntryError: (a ValueError) a number that cannot be; it names the field.
    """

    def __init__(self, sides: int = 2, target: int = 500, *, stock: int | None = None) -> None:
        self.sides = _whole(("sides",), sides, 2, 6)
        self.target = _whole(("target",), target, 1, MAX_TURNS_LIMIT)
        most = MAX_STOCK if self.sides > 3 else 2 * MAX_STOCK
        self.stock = None if stock is None else _whole(("stock",), stock, 1, most)
        self._most = most if self.stock is None else self.stock
        self.entries: list[dict[str, Any]] = []

    @property
    def scores(self) -> list[int]:
        """Points of each side."""
        return [sum(entry["scores"][side] for entry in self.entries) for side in range(self.sides)]

    @property
    def wins(self) -> list[int]:
        """Games won by each side."""
        winners = [entry["winner"] for entry in self.entries]
        return [winners.count(side) for side in range(self.sides)]

    @property
    def winner(self) -> int | None:
        """The side that has reached the target, or None."""
        return _winner(self.scores, self.target)

    @property
    def over(self) -> bool:
        """Whether a side has reached the target."""
        return self.winner is not None

    def add(self, winner: int | None, left: Sequence[int] | None = None) -> list[int]:
        """Enter a game.

        Args:
            winner: the side that emptied its stock, or had the fewest cards in a stalemate that
                counts so; None where nobody won, which scores nothing.
            left: stock cards left with each side. The winner has 0 left, or after a stalemate fewer
                than any other side. May be left out where nobody won.

        Returns:
            Points of each side in this game.

        Raises:
            EntryError: (a ValueError) the entry cannot be; it names the field. Nothing has changed.
        """
        if self.over:
            raise EntryError(("winner",), f"the match is over, side {self.winner} has won it")
        if winner is not None:
            winner = _whole(("winner",), winner, 0, self.sides - 1)
        counts = self._counts(left, winner)
        scores = [0] * self.sides
        if winner is not None and counts is not None:
            opposing = sum(counts) - counts[winner]
            scores[winner] = WIN_POINTS + CARD_POINTS * opposing
        self.entries.append({"winner": winner, "left": counts, "scores": scores})
        return list(scores)

    def _counts(self, left: Sequence[int] | None, winner: int | None) -> list[int] | None:
        if left is None:
            if winner is not None:
                raise EntryError(("left",), "needs the cards left with each side")
            return None
        if isinstance(left, (str, bytes)) or not isinstance(left, Sequence):
            raise EntryError(("left",), f"needs a list of numbers, got {shown(left)}")
        if len(left) != self.sides:
            raise EntryError(("left",), f"needs {self.sides} numbers, one a side, got {len(left)}")
        counts = [_whole(("left", side), count, 0, self._most) for side, count in enumerate(left)]
        for side, count in enumerate(counts):
            if side != winner and count == 0:
                raise EntryError(("left", side), "only the winner can have no card left")
            if winner is not None and side != winner and count <= counts[winner]:
                raise EntryError(
                    ("left", side),
                    f"{count} cards are no more than the {counts[winner]} of the winner, {winner}",
                )
        return counts

    def undo(self) -> dict[str, Any]:
        """Take back the last entry and return it.

        Raises:
            EntryError: (a ValueError) there is none.
        """
        if not self.entries:
            raise EntryError(("games",), "there is no game to take back")
        return self.entries.pop()

    def to_dict(self) -> dict[str, Any]:
        """The match as JSON data; `from_dict` reads it back."""
        return {
            "sides": self.sides,
            "target": self.target,
            "stock": self.stock,
            "games": deepcopy(self.entries),
            "scores": list(self.scores),
            "wins": list(self.wins),
            "winner": self.winner,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Scorekeeper:
        """The match that `to_dict` wrote; points and totals are worked out anew.

        Raises:
            EntryError: (a ValueError) an entry that cannot be; it names the field.
        """
        if not isinstance(data, Mapping) or not isinstance(data.get("games", []), list):
            raise EntryError(("games",), "needs an object with a list of games")
        keeper = cls(data.get("sides", 2), data.get("target", 500), stock=data.get("stock"))
        for index, entry in enumerate(data.get("games", [])):
            if not isinstance(entry, Mapping) or "winner" not in entry:
                raise EntryError(("games", index), "needs an object with a winner")
            try:
                keeper.add(entry["winner"], entry.get("left"))
            except EntryError as error:
                raise EntryError(("games", index, *error.path), error.message) from None
        return keeper

    def __repr__(self) -> str:
        return f"<Scorekeeper {len(self.entries)} games, scores {self.scores}, to {self.target}>"


def _winner(scores: Sequence[int], target: int) -> int | None:
    """The side at or above the target. Only one side scores in a game, so there is one at most."""
    return next((side for side, points in enumerate(scores) if points >= target), None)


def _whole(path: tuple[str | int, ...], value: Any, low: int, high: int) -> int:
    if not is_whole(value):
        raise EntryError(path, f"needs a whole number, got {shown(value)}")
    if not low <= value <= high:
        raise EntryError(path, f"must be {low} to {high}, got {shown(value)}")
    return int(value)
