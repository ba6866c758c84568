"""`Rules`: every setting of the game, checked when it is made, with the named presets.

What the settings mean stands in docs/rules.md; the engine that follows them is in
`skipbo_env.engine`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from skipbo_env.checks import is_whole, shown

RANKS = 12
MAX_HAND = 20
MAX_STOCK = 40
MAX_TURNS_LIMIT = 1_000_000_000
INDIVIDUALS = range(2, 7)
TEAM_TABLES = {2: (4, 6, 8), 3: (6, 9, 12)}


class RulesError(ValueError):
    """A setting that the game does not have, or that cannot be played. `.field` names it."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.field, self.message)


def _whole(name: str, value: Any, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise RulesError(name, f"needs a whole number, got {shown(value)}")
    if not low <= value <= high:
        raise RulesError(name, f"must be {low} to {high}, got {shown(value)}")


def _is_one(value: Any, *known: str) -> bool:
    return isinstance(value, str) and value in known


@dataclass(frozen=True)
class Rules:
    """One way to play Skip-Bo. Equal settings are equal objects; all checks run when it is made.

    Attributes:
        players: seats at the table, 2 to 6, or 4 to 12 in teams.
        teams: 0 for individuals, or 2 or 3 teams of two to four members.
        stock_size: cards in each stock, 1 to 40; None means 30, or 20 with five or six stocks.
        hand_size: cards a hand is filled to, 1 to 20.
        draw_per_turn: None to fill the hand at each turn's start, or n cards to draw instead.
        copies: cards of each rank in the deck, 1 to 20.
        wilds: wilds in the deck, 0 to 60.
        first_player: a seat, or "random".
        must_play_stock: while a stock top fits, only stock plays are legal.
        wild_discard: whether wilds may be discarded.
        ordered_discards: a card goes only on an empty discard pile or on a top that is not lower.
        team_discard: "own", or "team" to discard on the team's other board too.
        stalemate: "draw", or "fewest_stock" to let the side with the fewest stock cards win.
        max_turns: turns after which the game is cut off.
        target_score: points that win a match.

    Raises:
        RulesError: (a ValueError) naming the field and what is wrong with it.
    """

    players: int = 2
    teams: int = 0
    stock_size: int | None = None
    hand_size: int = 5
    draw_per_turn: int | None = None
    copies: int = 12
    wilds: int = 18
    first_player: int | str = "random"
    must_play_stock: bool = False
    wild_discard: bool = True
    ordered_discards: bool = False
    team_discard: str = "own"
    stalemate: str = "draw"
    max_turns: int = 2000
    target_score: int = 500

    def __post_init__(self) -> None:
        if type(self.teams) is not int or self.teams not in (0, 2, 3):
            raise RulesError("teams", f"must be 0 (individuals), 2 or 3, got {shown(self.teams)}")
        _whole("players", self.players, 2, 12)
        if self.teams == 0 and self.players not in INDIVIDUALS:
            raise RulesError("players", f"must be 2 to 6 without teams, got {shown(self.players)}")
        if self.teams and self.players not in TEAM_TABLES[self.teams]:
            allowed = ", ".join(map(str, TEAM_TABLES[self.teams]))
            raise RulesError(
                "players", f"must be {allowed} with {self.teams} teams, got {self.players}"
            )
        if self.stock_size is not None:
            _whole("stock_size", self.stock_size, 1, MAX_STOCK)
        _whole("hand_size", self.hand_size, 1, MAX_HAND)
        if self.draw_per_turn is not None:
            _whole("draw_per_turn", self.draw_per_turn, 1, MAX_HAND)
        _whole("copies", self.copies, 1, 20)
        _whole("wilds", self.wilds, 0, 60)
        if not isinstance(self.first_player, str) or self.first_player != "random":
            if isinstance(self.first_player, str):
                raise RulesError(
                    "first_player", f"needs a seat or 'random', got {shown(self.first_player)}"
                )
            _whole("first_player", self.first_player, 0, self.players - 1)
        for name in ("must_play_stock", "wild_discard", "ordered_discards"):
            if not isinstance(getattr(self, name), bool):
                raise RulesError(name, f"must be true or false, got {shown(getattr(self, name))}")
        if not _is_one(self.team_discard, "own", "team"):
            raise RulesError(
                "team_discard", f"must be 'own' or 'team', got {shown(self.team_discard)}"
            )
        if not _is_one(self.stalemate, "draw", "fewest_stock"):
            raise RulesError(
                "stalemate", f"must be 'draw' or 'fewest_stock', got {shown(self.stalemate)}"
            )
        _whole("max_turns", self.max_turns, 1, MAX_TURNS_LIMIT)
        _whole("target_score", self.target_score, 1, MAX_TURNS_LIMIT)
        left = self.deck_size - self.boards * self.stocks
        if left < self.hand_size:
            raise RulesError(
                "stock_size",
                f"the deck of {self.deck_size} cards cannot deal {self.boards} stocks of "
                f"{self.stocks} and a hand of {self.hand_size}: {self.deck_size} - {self.boards} x "
                f"{self.stocks} = {left}",
            )

    @property
    def boards(self) -> int:
        """Stocks (and sets of four discard piles) on the table: one a player, or two a team."""
        return 2 * self.teams if self.teams else self.players

    @property
    def sides(self) -> int:
        """Who can win: the players, or the teams."""
        return self.teams or self.players

    @property
    def stocks(self) -> int:
        """Cards in each stock at the start, the default resolved."""
        if self.stock_size is not None:
            return self.stock_size
        return 30 if self.boards <= 4 else 20

    @property
    def deck_size(self) -> int:
        """Cards in the whole deck."""
        return RANKS * self.copies + self.wilds

    @property
    def members(self) -> int:
        """Players on each side."""
        return self.players // self.sides

    @property
    def open_boards(self) -> bool:
        """Whether a player may discard on the team's other board."""
        return bool(self.teams) and (self.team_discard == "team" or self.members > 2)

    @property
    def num_actions(self) -> int:
        """Size of the action table: 125 for individuals, 145 for teams, 197 with team discards."""
        if not self.teams:
            return 125
        return 197 if self.open_boards else 145

    def side_of(self, player: int) -> int:
        """The side that a seat plays for."""
        return player % self.sides

    def board_of(self, player: int) -> int:
        """The board that is a seat's own."""
        if not self.teams:
            return player
        return (player // self.teams) % 2 * self.teams + player % self.teams

    def to_dict(self) -> dict[str, Any]:
        """Every field as given, ready for JSON."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Rules:
        """The rules that a mapping of field names describes; a missing field takes its default.

        Raises:
            RulesError: an unknown field, or a value that a field cannot take.
        """
        if not isinstance(data, Mapping):
            raise RulesError("rules", f"needs an object of settings, got {shown(data)}")
        known = [field.name for field in fields(cls)]
        for name in data:
            if name not in known:
                raise RulesError(
                    shown(name).strip("'\""), f"is no rule; the rules are {', '.join(known)}"
                )
        return cls(**data)

    @classmethod
    def of(
        cls, rules: Rules | str | Mapping[str, Any] = "standard", players: int | None = None
    ) -> Rules:
        """Rules from a Rules, a preset's name or a mapping, with `players` set beside it if given.

        Raises:
            RulesError: no such preset, a bad setting, or `players` beside rules that fix teams and
                another number.
        """
        if players is not None:
            if not is_whole(players):
                raise RulesError("players", f"needs a whole number, got {shown(players)}")
            players = int(players)
        if isinstance(rules, cls):
            found = rules
        elif isinstance(rules, str):
            if rules not in PRESETS:
                raise RulesError(
                    "rules", f"no preset {shown(rules)}; the presets are {', '.join(PRESETS)}"
                )
            found = PRESETS[rules]
        elif isinstance(rules, Mapping):
            if players is not None and "players" not in rules:
                rules = {**rules, "players": players}
            found = cls.from_dict(rules)
        else:
            raise RulesError(
                "rules", f"needs Rules, a preset's name or a mapping, got {shown(rules)}"
            )
        if players is None or players == found.players:
            return found
        if found.teams:
            raise RulesError(
                "players",
                f"these rules seat {found.players} players in teams, got {shown(players)}",
            )
        return replace(found, players=players)


PRESETS: dict[str, Rules] = {
    "standard": Rules(),
    "short": Rules(stock_size=10),
    "medium": Rules(stock_size=20),
    "partners": Rules(players=4, teams=2),
    "partners6": Rules(players=6, teams=3),
    "family": Rules(stock_size=15, must_play_stock=True),
    "strict": Rules(must_play_stock=True, wild_discard=False, ordered_discards=True),
}
