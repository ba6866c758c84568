"""`Position`: what one player sees, read from JSON and written to it, and dealt into a full game.

A position is checked as it is read: what is given must fit one deck, and an error names the failing
field by an RFC 6901 pointer. What may be left out is worked out or assumed, and `Position.inferred`
says which fields that were:

    rules           "standard" for so many players; with "boards", two boards make a team
    hand_size       of other seats: what the other sizes leave, else one card less than a full hand
                    (they have discarded), a full hand for the seat to move
    draw_size       whatever the other sizes leave
    completed       nothing, or as many piles as the other sizes leave; cards as for building_cards
    building_cards  the card of each rank while the deck has one left for it, else a wild
    passes, turns   0

Two fields stand in JSON only where they say something: "to_move", the seat to move where that is
not "you", and "over": {"winner", "reason"} at the end (such a position is refused when it is read:
there is nothing to play).

The same in one line is the notation: eleven fields with one space between them.

    - 0 68QS 12345/1S345678STJ/12/- 7:12:4/T/-/-,5:20:-/-/-/- 4,5 89 1,1,1,1,1,1,1,1,1,1,0,0,2 - 0 6

    rules           the settings that are not the default's, "players=4,teams=2", or "-"
    you             the observer's seat; "1/0" where seat 0 is to move
    hand            one character a card: 1 to 9, T, J, Q (10 to 12), S; "-" for none
    building        the four building piles, bottom to top
    boards          top:size:four discard piles, bottom to top; the top is "-" on an empty stock
    hand sizes      of every seat
    draw size
    completed       how many of each kind, 1 to 12 and the wild; "-" for none
    reshuffled      the same for the last reshuffle, less what was seen of it; "-" where none was
    passes
    turns
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NoReturn

import numpy as np

from skipbo_env.cards import RANKS, WILD, CardError, card_text, parse_card
from skipbo_env.checks import shown
from skipbo_env.engine import layout
from skipbo_env.engine.hidden import deal_hidden
from skipbo_env.engine.layout import State
from skipbo_env.engine.moves import MAX_HAND
from skipbo_env.rules import PRESETS, Rules, RulesError

PILES = 4
_CHARS = "123456789TJQS"
_FIELDS = (
    "rules",
    "you",
    "to_move",
    "hand",
    "building",
    "building_cards",
    "players",
    "boards",
    "draw_size",
    "completed",
    "passes",
    "turns",
    "reshuffled",
    "over",
)
_BOARD_FIELDS = ("stock_top", "stock_size", "discards")


class PositionError(ValueError):
    """An impossible or unreadable position.

    Attributes:
        pointer: the failing field (RFC 6901), "" for the position as a whole.
        message: what is wrong with it.
    """

    def __init__(self, pointer: str, message: str) -> None:
        super().__init__(f"{pointer or 'position'}: {message}")
        self.pointer = pointer
        self.message = message

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.pointer, self.message)


@dataclass(frozen=True)
class Board:
    """One stock with its four discard piles, as everybody sees it.

    Attributes:
        stock_top: the card on top of the stock, 0 for an empty stock.
        stock_size: cards in the stock.
        discards: four discard piles, each from bottom to top.
    """

    stock_top: int
    stock_size: int
    discards: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Position:
    """What one seat sees of a game.

    Cards are 1 to 12 and 13 for a wild; counts have one entry for each of these kinds.

    Attributes:
        rules: what is played.
        you: the observer's seat.
        to_move: the seat to move.
        hand: the observer's cards, ascending.
        building: the true cards of the four building piles, bottom to top.
        boards: one a player, or two a team.
        hand_sizes: cards in every seat's hand.
        draw_size: cards in the draw pile.
        completed: the cards set aside since the last reshuffle, 13 counts.
        passes: passes in a row.
        turns: turns ended.
        reshuffled: what went into the last reshuffle less what the observer saw of it since, 13
            counts; None before one.
        over: (winning side or -1, reason) at the end, else None.
        inferred: names of the fields that were left out and worked out or assumed.
    """

    rules: Rules
    you: int
    to_move: int
    hand: tuple[int, ...]
    building: tuple[tuple[int, ...], ...]
    boards: tuple[Board, ...]
    hand_sizes: tuple[int, ...]
    draw_size: int
    completed: tuple[int, ...]
    passes: int = 0
    turns: int = 0
    reshuffled: tuple[int, ...] | None = None
    over: tuple[int, str] | None = None
    inferred: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def parse(cls, data: Any) -> Position:
        """The position that JSON data describes (docs/formats.md), checked and completed.

        Raises:
            PositionError: data that is no position, or one that cannot occur; it names the field.
        """
        return _Reader(data).read()

    @classmethod
    def of(cls, state: State, rules: Rules, player: int) -> Position:
        """What a seat sees of a game, at any time and after the end too."""
        completed = tuple(state[layout.COMPLETED + 1 : layout.COMPLETED + 14].tolist())
        reshuffled = None
        if state[layout.RESHUFFLES]:
            seen = int(state[layout.AT_SEEN]) + layout.HAND_CELLS * player
            left = (
                state[layout.RESHUFFLED + 1 : layout.RESHUFFLED + 14] - state[seen + 1 : seen + 14]
            )
            reshuffled = tuple(np.maximum(left, 0).tolist())
        over = None
        if reason := int(state[layout.REASON]):
            over = (int(state[layout.WINNER]), layout.REASONS[reason])
        return cls(
            rules=rules,
            you=int(player),
            to_move=int(state[layout.PLAYER]),
            hand=tuple(layout.hand_cards(state, player)),
            building=tuple(tuple(layout.building_cards(state, pile)) for pile in range(PILES)),
            boards=tuple(
                Board(
                    stock_top=int(state[layout.board_at(board) + layout.STOCK_TOP]),
                    stock_size=int(state[layout.board_at(board) + layout.STOCK_N]),
                    discards=tuple(
                        tuple(layout.discard_cards(state, board, pile)) for pile in range(PILES)
                    ),
                )
                for board in range(rules.boards)
            ),
            hand_sizes=tuple(int(state[layout.hand_at(seat)]) for seat in range(rules.players)),
            draw_size=int(state[layout.DRAW_HI] - state[layout.DRAW_LO]),
            completed=completed,
            passes=int(state[layout.PASSES]),
            turns=int(state[layout.TURNS]),
            reshuffled=reshuffled,
            over=over,
        )

    def to_json(self) -> dict[str, Any]:
        """The position as JSON data with every field, so that `parse` gives it back exactly."""
        boards = [
            {
                "stock_top": card_text(board.stock_top) if board.stock_size else None,
                "stock_size": board.stock_size,
                "discards": [_texts(pile) for pile in board.discards],
            }
            for board in self.boards
        ]
        sizes = [{"hand_size": size} for size in self.hand_sizes]
        data: dict[str, Any] = {"rules": self.rules.to_dict(), "you": self.you}
        if self.to_move != self.you and self.over is None:
            data["to_move"] = self.to_move
        data["hand"] = _texts(self.hand)
        data["building"] = [len(pile) for pile in self.building]
        data["building_cards"] = [_texts(pile) for pile in self.building]
        if self.rules.teams:
            data["players"] = sizes
            data["boards"] = boards
        else:
            data["players"] = [{**board, **size} for board, size in zip(boards, sizes, strict=True)]
        data["draw_size"] = self.draw_size
        data["completed"] = _counts_json(self.completed)
        data["passes"] = self.passes
        data["turns"] = self.turns
        if self.reshuffled is not None:
            data["reshuffled"] = _counts_json(self.reshuffled)
        if self.over is not None:
            winner, reason = self.over
            data["over"] = {"winner": winner if winner >= 0 else None, "reason": reason}
        return data

    @property
    def hash(self) -> str:
        """16 hex digits that equal positions share, however they were written."""
        text = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def deal(self, seed: int) -> State:
        """A full game that looks like this to the observer, hidden cards dealt from the unseen.

        Args:
            seed: 64 bits that decide the hidden cards and all later shuffles.

        Returns:
            The game's array; the seat to move has already drawn.
        """
        rules = self.rules
        state = layout.new_state(rules)
        state[layout.PLAYER] = self.to_move
        state[layout.FIRST_PLAYER] = (self.to_move - self.turns) % rules.players
        state[layout.PASSES] = self.passes
        state[layout.TURNS] = self.turns
        state[layout.DRAW_HI] = self.draw_size
        state[layout.COMPLETED_SIZE] = sum(self.completed)
        state[layout.COMPLETED + 1 : layout.COMPLETED + 14] = self.completed
        if self.reshuffled is not None:
            state[layout.RESHUFFLES] = 1
            state[layout.RESHUFFLED + 1 : layout.RESHUFFLED + 14] = self.reshuffled
        if self.over is not None:
            state[layout.WINNER] = self.over[0]
            state[layout.REASON] = layout.REASONS.index(self.over[1])
        for pile, cards in enumerate(self.building):
            state[layout.HEIGHT + pile] = len(cards)
            state[layout.WILD_BITS + pile] = sum(
                (card == WILD) << h for h, card in enumerate(cards)
            )
        for index, board in enumerate(self.boards):
            at = layout.board_at(index)
            state[at + layout.STOCK_N] = board.stock_size
            state[at + layout.STOCK_TOP] = board.stock_top
            if board.stock_size:
                top = int(state[layout.AT_STOCKS]) + index * rules.stocks + board.stock_size - 1
                state[top] = board.stock_top
            for pile, cards in enumerate(board.discards):
                start = int(state[layout.AT_DISCARDS]) + (PILES * index + pile) * rules.deck_size
                state[start : start + len(cards)] = cards
                state[at + layout.DEPTH + pile] = len(cards)
                state[at + layout.TOP + pile] = cards[-1] if cards else 0
                for card in cards:
                    state[layout.DISCARDED + card] += 1
            under = at + layout.UNDER
            state[under : under + 2] = layout.under_cells(board.discards)
        for seat, size in enumerate(self.hand_sizes):
            state[layout.hand_at(seat)] = size
            if self.reshuffled is not None:  # how old its cards are is not known
                state[int(state[layout.AT_SEEN]) + layout.HAND_CELLS * seat] = size
        for card in self.hand:
            state[layout.hand_at(self.you) + card] += 1
        deal_hidden(state, self.you, np.uint64(seed))
        return state

    def to_notation(self) -> str:
        """The position in one line; see the module's docstring."""
        default = Rules().to_dict()
        changed = [
            f"{name}={json.dumps(value) if not isinstance(value, str) else value}"
            for name, value in self.rules.to_dict().items()
            if value != default[name]
        ]
        boards = [
            f"{_line((board.stock_top,)) if board.stock_size else '-'}:{board.stock_size}:"
            + "/".join(map(_line, board.discards))
            for board in self.boards
        ]
        return " ".join(
            (
                ",".join(changed) or "-",
                str(self.you) if self.you == self.to_move else f"{self.you}/{self.to_move}",
                _line(self.hand),
                "/".join(map(_line, self.building)),
                ",".join(boards),
                ",".join(map(str, self.hand_sizes)),
                str(self.draw_size),
                ",".join(map(str, self.completed)) if any(self.completed) else "-",
                "-" if self.reshuffled is None else ",".join(map(str, self.reshuffled)),
                str(self.passes),
                str(self.turns),
            )
        )

    @classmethod
    def from_notation(cls, text: str) -> Position:
        """The position that a line of notation describes.

        Raises:
            PositionError: no such line, or an impossible position; the pointer is that of the
                field in JSON.
        """
        return cls.parse(_notation_data(text))


def position_of(state: State, rules: Rules, player: int) -> dict[str, Any]:
    """What a seat sees of a game as JSON data (docs/formats.md), at any time, also at the end."""
    return Position.of(state, rules, player).to_json()


def determinize(state: State, rules: Rules, player: int, seed: int) -> State:
    """A game that the seat could be in: what it sees is kept, the rest is dealt anew by the seed.

    The result depends on what the seat sees and on the seed alone.
    """
    copy = state.copy()
    deal_hidden(copy, player, np.uint64(seed))
    return copy


_TEXTS = {card_text(card): card for card in range(1, WILD + 1)}


def _texts(cards: Sequence[int]) -> list[str]:
    return [card_text(card) for card in cards]


def _counts_json(counts: Sequence[int]) -> dict[str, int]:
    return {card_text(card): count for card, count in enumerate(counts, 1) if count}


def _line(cards: Sequence[int]) -> str:
    return "".join(_CHARS[card - 1] for card in cards) or "-"


def _fail(pointer: str, message: str) -> NoReturn:
    raise PositionError(pointer, message)


def _below(pointer: str, key: object) -> str:
    """The pointer to a member: `~` and `/` are escaped as RFC 6901 wants."""
    if type(key) is int and 0 <= key < 10_000:  # most are
        return f"{pointer}/{key}"
    text = key if isinstance(key, str) else shown(key)
    return f"{pointer}/{text[:60].replace('~', '~0').replace('/', '~1')}"


def _whole(value: Any, pointer: str, low: int, high: int) -> int:
    """An integer, also one written as 5.0, within bounds."""
    if type(value) is not int:  # most are
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, np.integer):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            _fail(pointer, f"needs a whole number, got {shown(value)}")
    if not low <= value <= high:
        _fail(pointer, f"must be {low} to {high}, got {shown(value)}")
    return value


def _list(value: Any, pointer: str, length: int | None = None, what: str = "entries") -> list[Any]:
    if not isinstance(value, (list, tuple)):
        _fail(pointer, f"needs a list, got {shown(value)}")
    if length is not None and len(value) != length:
        _fail(pointer, f"needs {length} {what}, got {len(value)}")
    return list(value)


def _object(value: Any, pointer: str, known: Sequence[str]) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        _fail(pointer, f"needs an object, got {shown(value)}")
    for name in value:
        if name not in known:
            _fail(_below(pointer, name), f"is no field here; the fields are {', '.join(known)}")
    return value


def _card(value: Any, pointer: str) -> int:
    if isinstance(value, (float, np.integer)) and float(value).is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and not 1 <= value <= RANKS:
        _fail(pointer, f"{shown(value)} is no card: ranks are 1 to 12, a wild is 'S'")
    try:
        return parse_card(value)
    except CardError as error:
        _fail(pointer, str(error))


def _cards(value: Any, pointer: str) -> list[int]:
    """A list of cards. Pointers are made only where one is wrong: most of a position is cards."""
    return [
        _TEXTS[card] if type(card) is str and card in _TEXTS else _card(card, _below(pointer, i))
        for i, card in enumerate(_list(value, pointer))
    ]


class _Reader:
    """Reads one position: first the fields one by one, then the count of cards, then the sizes."""

    def __init__(self, data: Any) -> None:
        self.data = _object(data, "", _FIELDS)
        self.inferred: list[str] = []
        if self.data.get("over") is not None:
            _fail("/over", "the game is over: there is nothing to play")
        for name in ("hand", "players"):
            if name not in self.data:
                _fail(_below("", name), "is missing")
        self.players = _list(self.data["players"], "/players")
        if not 2 <= len(self.players) <= 12:
            _fail("/players", f"needs 2 to 12 entries, got {len(self.players)}")
        self.rules = self._rules()
        rules = self.rules
        self.left = [0, *[rules.copies] * RANKS, rules.wilds]
        self.hand_limit = MAX_HAND if rules.draw_per_turn else rules.hand_size
        seats = rules.players - 1
        self.you = self._number("you", 0, 0, seats)
        self.to_move = self._number("to_move", self.you, 0, seats)
        self.passes = self._number("passes", 0, 0, seats, note=True)
        self.turns = self._number("turns", self.passes, 0, rules.max_turns - 1, note=True)
        if self.passes > self.turns:
            _fail("/passes", f"each ends a turn, so {self.turns} turns had no {self.passes}")
        if self.turns >= rules.max_turns:
            _fail("/passes", f"each ends a turn, and turn {rules.max_turns} ends the game")

    def read(self) -> Position:
        """The position, all checks done."""
        hand = _cards(self.data["hand"], "/hand")
        if len(hand) > self.hand_limit:
            _fail("/hand", f"holds at most {self.hand_limit} cards by these rules, got {len(hand)}")
        boards = self._boards()
        sizes = self._hand_sizes(len(hand))
        heights, known = self._building()
        completed = self._completed()
        reshuffled = self._reshuffled()
        for i, card in enumerate(hand):
            self._take(card, _below("/hand", i))
        building = self._assume_building(heights, known)
        self._passed(sizes)
        draw_size, completed, building, hand_sizes = self._sizes(
            boards, sizes, completed, building, reshuffled
        )
        return Position(
            rules=self.rules,
            you=self.you,
            to_move=self.to_move,
            hand=tuple(sorted(hand)),
            building=building,
            boards=boards,
            hand_sizes=tuple(hand_sizes),
            draw_size=draw_size,
            completed=tuple(completed[1:]),
            passes=self.passes,
            turns=self.turns,
            reshuffled=reshuffled,
            inferred=tuple(name for name in _INFERRED if name in self.inferred),
        )

    def _number(self, name: str, default: int, low: int, high: int, *, note: bool = False) -> int:
        value = self.data.get(name)
        if value is None:
            if note:
                self.inferred.append(name)
            return default
        return _whole(value, f"/{name}", low, high)

    def _rules(self) -> Rules:
        given = self.data.get("rules")
        seats = len(self.players)
        try:
            if given is None:
                self.inferred.append("rules")
                boards = self.data.get("boards")
                if boards is None:
                    return Rules(players=seats)
                return Rules(players=seats, teams=len(_list(boards, "/boards")) // 2)
            if isinstance(given, Rules):
                rules = given
            elif isinstance(given, str):
                if given not in PRESETS:
                    _fail(
                        "/rules", f"no preset {shown(given)}; the presets are {', '.join(PRESETS)}"
                    )
                rules = PRESETS[given]
                if not rules.teams:
                    rules = replace(rules, players=seats)
            elif isinstance(given, Mapping):
                values = {name: _rule_value(value) for name, value in given.items()}
                if values.get("players", seats) is None:
                    del values["players"]
                rules = _rules_of({"players": seats, **values})
            else:
                _fail(
                    "/rules", f"needs a preset's name or an object of settings, got {shown(given)}"
                )
        except RulesError as error:
            named = isinstance(given, Mapping) and error.field in given
            if error.field == "players" and not named:
                _fail("/players", error.message)
            if given is None:
                _fail("/boards" if error.field == "teams" else "/players", error.message)
            _fail(
                _below("/rules", error.field) if isinstance(given, Mapping) else "/rules",
                error.message,
            )
        if rules.players != seats:
            _fail("/players", f"needs {rules.players} entries by these rules, got {seats}")
        return rules

    def _total(self, card: int) -> int:
        return self.rules.wilds if card == WILD else self.rules.copies

    def _take(self, card: int, pointer: str, count: int = 1) -> None:
        """Count cards that are seen; the deck must have them."""
        self.left[card] -= count
        if self.left[card] < 0:
            total = self._total(card)
            name = "wilds" if card == WILD else f"cards of rank {card}"
            _fail(pointer, f"the deck has {total} {name}, here are {total - self.left[card]}")

    def _board_pointer(self, board: int) -> str:
        return _below("/boards" if self.rules.teams else "/players", board)

    def _boards(self) -> tuple[Board, ...]:
        rules = self.rules
        if rules.teams:
            if self.data.get("boards") is None:
                _fail("/boards", "is missing; a team game has two stocks a team")
            entries = _list(self.data["boards"], "/boards", rules.boards, "boards by these rules")
            known: tuple[str, ...] = _BOARD_FIELDS
        else:
            if self.data.get("boards") is not None:
                _fail("/boards", "belongs to team games; without teams every player has a stock")
            entries, known = self.players, (*_BOARD_FIELDS, "hand_size")
        boards = tuple(
            self._board(entry, self._board_pointer(i), known) for i, entry in enumerate(entries)
        )
        for side in range(rules.sides):
            if not any(board.stock_size for board in boards[side :: rules.sides]):
                where = _below(self._board_pointer(side), "stock_size")
                _fail(where, "the game is over: this side's stock is empty")
        return boards

    def _board(self, entry: Any, pointer: str, known: Sequence[str]) -> Board:
        entry = _object(entry, pointer, known)
        for name in _BOARD_FIELDS:
            if name not in entry:
                _fail(f"{pointer}/{name}", "is missing")
        size = _whole(entry["stock_size"], f"{pointer}/stock_size", 0, self.rules.stocks)
        where = f"{pointer}/stock_top"
        if size == 0 and entry["stock_top"] is not None:
            _fail(where, "must be null where stock_size is 0")
        if size and entry["stock_top"] is None:
            _fail(where, f"is null, but stock_size is {size}")
        top = 0
        if size:
            top = _card(entry["stock_top"], where)
            self._take(top, where)
        piles = _list(entry["discards"], f"{pointer}/discards", PILES, "discard piles")
        return Board(
            stock_top=top,
            stock_size=size,
            discards=tuple(
                self._pile(pile, _below(f"{pointer}/discards", i), discards=True)
                for i, pile in enumerate(piles)
            ),
        )

    def _pile(self, value: Any, pointer: str, *, discards: bool = False) -> tuple[int, ...]:
        cards = _cards(value, pointer)
        for i, card in enumerate(cards):
            if card == WILD and discards and not self.rules.wild_discard:
                _fail(_below(pointer, i), "is a wild, which is never discarded by these rules")
            self.left[card] -= 1
            if self.left[card] < 0:
                self._take(card, _below(pointer, i), 0)
        return tuple(cards)

    def _hand_sizes(self, own: int) -> list[int | None]:
        """Each seat's hand size, None where it was left out."""
        sizes: list[int | None] = []
        known = ("hand_size",) if self.rules.teams else (*_BOARD_FIELDS, "hand_size")
        for seat, entry in enumerate(self.players):
            where = _below("/players", seat)
            value = _object(entry, where, known).get("hand_size")
            where = f"{where}/hand_size"
            size = None if value is None else _whole(value, where, 0, self.hand_limit)
            if seat == self.you:
                if size is not None and size != own:
                    _fail(where, f"is {size}, but hand has {own} cards")
                size = own
            sizes.append(size)
        return sizes

    def _building(self) -> tuple[list[int], list[tuple[int, ...]] | None]:
        """The building piles' heights, and their cards where they are given."""
        given = self.data.get("building")
        cards = self.data.get("building_cards")
        if given is None and cards is None:
            _fail("/building", "is missing")
        heights = None
        if given is not None:
            given = _list(given, "/building", PILES, "heights")
            heights = [_whole(h, _below("/building", i), 0, RANKS - 1) for i, h in enumerate(given)]
        if cards is None:
            return heights or [], None
        known = []
        for i, pile in enumerate(_list(cards, "/building_cards", PILES, "building piles")):
            where = _below("/building_cards", i)
            pile = _list(pile, where)
            if heights is not None and len(pile) != heights[i]:
                _fail(where, f"has {len(pile)} cards, but building says {heights[i]}")
            if len(pile) >= RANKS:
                _fail(where, f"has at most 11 cards, got {len(pile)}")
            for h, card in enumerate(_cards(pile, where)):
                if card not in (h + 1, WILD):
                    _fail(_below(where, h), f"must be {h + 1} or a wild, got {card_text(card)}")
            known.append(self._pile(pile, where))
        return [len(pile) for pile in known], known

    def _assume_building(
        self, heights: list[int], known: list[tuple[int, ...]] | None
    ) -> tuple[tuple[int, ...], ...]:
        if known is not None:
            return tuple(known)
        if any(heights):
            self.inferred.append("building_cards")
        piles = []
        for b, height in enumerate(heights):
            pile = [rank if self._has(rank) else WILD for rank in range(1, height + 1)]
            wilds = pile.count(WILD)
            if self.left[WILD] < wilds:
                _fail(
                    _below("/building", b), "the deck has no cards left that could lie on this pile"
                )
            self.left[WILD] -= wilds
            piles.append(tuple(pile))
        return tuple(piles)

    def _has(self, rank: int) -> bool:
        """Take a card of the rank if the deck has one left."""
        if self.left[rank] == 0:
            return False
        self.left[rank] -= 1
        return True

    def _counts(self, name: str, take: bool) -> list[int] | None:
        value = self.data.get(name)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            _fail(_below("", name), f"needs an object of counts by card, got {shown(value)}")
        counts = [0] * (WILD + 1)
        for key, count in value.items():
            where = f"/{name}/{key}" if key in _TEXTS else _below(f"/{name}", key)
            card = _TEXTS.get(key) or _card(key, where)
            if count is None:
                continue
            total = self._total(card)
            count = _whole(count, where, 0, total)
            counts[card] += count
            if take:
                self._take(card, where, count)
            elif counts[card] > total:
                _fail(where, f"the deck has {total} of them, here are {counts[card]}")
        return counts

    def _completed(self) -> list[int] | None:
        counts = self._counts("completed", take=True)
        if counts is None:
            self.inferred.append("completed")
            return None
        piles, rest = divmod(sum(counts), RANKS)
        if rest:
            _fail("/completed", f"completed piles have 12 cards each, got {sum(counts)} in all")
        for key in self.data["completed"]:
            card = _TEXTS.get(key) or _card(key, _below("/completed", key))
            if card != WILD and counts[card] > piles:
                _fail(
                    _below("/completed", key),
                    f"{sum(counts)} cards are {piles} piles, which hold at most {piles} of a rank",
                )
        return counts

    def _reshuffled(self) -> tuple[int, ...] | None:
        counts = self._counts("reshuffled", take=False)
        return None if counts is None else tuple(counts[1:])

    def _passed(self, sizes: list[int | None]) -> None:
        """Who passed holds no card, and can have drawn none since."""
        for back in range(1, self.passes + 1):
            seat = (self.to_move - back) % self.rules.players
            if sizes[seat]:
                _fail(
                    "/passes",
                    f"seat {seat} has passed, so it holds no card, but its hand has {sizes[seat]}",
                )
            if sizes[seat] is None:
                sizes[seat] = 0
                if "hand_size" not in self.inferred:
                    self.inferred.append("hand_size")

    def _sizes(
        self,
        boards: tuple[Board, ...],
        sizes: list[int | None],
        completed: list[int] | None,
        building: tuple[tuple[int, ...], ...],
        reshuffled: tuple[int, ...] | None,
    ) -> tuple[int, list[int], tuple[tuple[int, ...], ...], list[int]]:
        """Draw size, completed cards, building piles and hand sizes: hidden sizes add up to the
        unseen cards.
        """
        draw = self.data.get("draw_size")
        if draw is not None:
            draw = _whole(draw, "/draw_size", 0, self.rules.deck_size)
        else:
            self.inferred.append("draw_size")
        stocks = sum(board.stock_size - 1 for board in boards if board.stock_size)
        hands = sum(
            size for seat, size in enumerate(sizes) if size is not None and seat != self.you
        )
        room = sum(self.left) - stocks - hands
        missing = [seat for seat, size in enumerate(sizes) if size is None]
        missing.sort(key=lambda seat: seat != self.to_move)
        if missing:
            self.inferred.append("hand_size")
        sums = (
            f"{sum(self.left)} unseen cards are not {stocks} in stocks below their tops, "
            f"{hands} in known other hands"
        )
        dry = self._dry(sizes)
        if dry is not None:
            where, why = dry
            if draw or (completed is not None and any(completed)):
                _fail(where, f"{why}, but the draw pile and the completed piles are not empty")
            if draw is None and room > self.hand_limit * len(missing):
                _fail(where, f"{why}, but {room} unseen cards are neither in stocks nor in hands")
            draw = 0
            completed = completed or [0] * (WILD + 1)
        if room < (draw or 0):
            self._refuse_sizes(sums, draw)
        splits = self._splits(room, draw, missing, completed)
        if not splits:
            self._refuse_sizes(sums, draw)
        first: tuple[str, str] | None = None
        for total, piles, to_draw in splits:
            counts = completed or self._assumed_completed(piles)
            left = self.left
            if completed is None:
                left = [n - count for n, count in zip(left, counts, strict=True)]
            laid = building
            if reshuffled is not None:
                assumed = counts if completed is None else None
                laid = self._spared(left, assumed, building, to_draw, (0, *reshuffled))
            told = [size or 0 for size in sizes]
            for k, seat in enumerate(missing):
                told[seat] = total // len(missing) + (k < total % len(missing))
            wrong = self._wrong(told, left, counts, piles, to_draw, reshuffled)
            if wrong is None:
                break
            first = first or wrong
        else:
            assert first is not None
            _fail(*first)
        self.left = left
        return to_draw, counts, laid, told

    def _refuse_sizes(self, sums: str, draw: int | None) -> NoReturn:
        told = sums if draw is None else f"{sums}, {draw} to draw"
        _fail(self._blamed, f"the sizes do not add up: {told}")

    @property
    def _blamed(self) -> str:
        """The field to name where the sizes do not add up."""
        if self.data.get("draw_size") is not None:
            return "/draw_size"
        return "/boards" if self.rules.teams else "/players"

    def _dry(self, sizes: list[int | None]) -> tuple[str, str] | None:
        """The field that says that nothing can be drawn, and why; None where none says so."""
        if self.passes:
            return "/passes", "passes happen only where nothing can be drawn"
        if sizes[self.to_move] == 0:
            where = "/hand" if self.to_move == self.you else f"/players/{self.to_move}/hand_size"
            return (
                where,
                "the seat to move has drawn and its hand is empty, so nothing can be drawn",
            )
        return None

    def _usual(self, seats: list[int]) -> int:
        """Cards that hands of unknown size are assumed to hold together."""
        full = self.rules.hand_size
        return sum(full if seat == self.to_move else full - 1 for seat in seats)

    def _splits(
        self, room: int, draw: int | None, missing: list[int], completed: list[int] | None
    ) -> list[tuple[int, int, int]]:
        """Ways to split what other zones leave, the likeliest first: cards in unknown hands,
        completed piles, cards to draw. Hands near their usual size come first, then few piles.
        """
        most = min(self.hand_limit * len(missing), room)
        usual = self._usual(missing)
        found = []
        for total in range(most + 1):
            rest = room - total
            if completed is not None:
                if draw is None or rest == draw:
                    found.append((total, 0, rest))
            elif draw is None:
                found += [(total, p, rest - RANKS * p) for p in range(rest // RANKS + 1)]
            elif rest >= draw and (rest - draw) % RANKS == 0:
                found.append((total, (rest - draw) // RANKS, draw))
        return sorted(found, key=lambda split: (abs(split[0] - usual), split[1]))

    def _spared(
        self,
        left: list[int],
        completed: list[int] | None,
        building: tuple[tuple[int, ...], ...],
        draw: int,
        reshuffled: tuple[int, ...],
    ) -> tuple[tuple[int, ...], ...]:
        """Take wilds in place of other cards in piles that are assumed, as far as it needs to leave
        enough reshuffled cards for the draw pile.

        Args:
            left: unseen cards by kind, changed.
            completed: assumed completed cards by kind, changed; None where they are told.
            building: the building piles.
            draw: cards in the draw pile.
            reshuffled: cards that it may hold by kind.

        Returns:
            The building piles.
        """
        lacking = draw - sum(map(min, left, reshuffled))
        piles = [list(pile) for pile in building]
        assumed = piles if "building_cards" in self.inferred else []
        for rank in range(1, WILD):
            while lacking > 0 and left[rank] < reshuffled[rank] and left[WILD] > reshuffled[WILD]:
                pile = next((p for p in assumed if p[rank - 1 : rank] == [rank]), None)
                if completed is not None and completed[rank]:
                    completed[rank] -= 1
                    completed[WILD] += 1
                elif pile is not None:
                    pile[rank - 1] = WILD
                else:
                    break
                left[rank] += 1
                left[WILD] -= 1
                lacking -= 1
        return tuple(map(tuple, piles))

    def _wrong(
        self,
        sizes: list[int],
        left: list[int],
        completed: list[int],
        piles: int,
        draw: int,
        reshuffled: tuple[int, ...] | None,
    ) -> tuple[str, str] | None:
        """What a split contradicts: the field and why; None where it may stand."""
        if left[WILD] < 0:
            return (
                self._blamed,
                f"leaves {piles} completed piles, for which the unseen cards do not suffice",
            )
        if not sizes[self.to_move] and (draw or any(completed)):
            where = "/hand" if self.to_move == self.you else f"/players/{self.to_move}/hand_size"
            return (
                where,
                "the seat to move has drawn: its hand is empty only where nothing can be drawn",
            )
        if reshuffled is not None:
            # The draw pile holds only cards of the last reshuffle that the observer has not seen.
            most = sum(map(min, left[1:], reshuffled))
            if most < draw:
                names = [name for name in ("building_cards", "completed") if name in self.inferred]
                return (
                    "/reshuffled",
                    f"leaves {most} unseen cards for the draw pile, which has {draw}"
                    + (f"; {' and '.join(names)} left out, so assumed" if names else ""),
                )
        return None

    def _assumed_completed(self, piles: int) -> list[int]:
        """So many completed piles, with as few wilds as the unseen cards allow."""
        counts = [0, *(min(piles, left) for left in self.left[1:WILD]), 0]
        counts[WILD] = RANKS * piles - sum(counts)
        return counts


_INFERRED = ("rules", "hand_size", "draw_size", "completed", "building_cards", "passes", "turns")


_PLAIN = (int, bool, str, type(None))


def _rules_of(settings: Mapping[str, Any]) -> Rules:
    """`Rules.from_dict`, remembered: most positions that a program reads have the same rules."""
    if all(type(value) in _PLAIN for value in settings.values()):  # so they can be hashed
        return _remembered(tuple((name, type(value), value) for name, value in settings.items()))
    return Rules.from_dict(settings)


@lru_cache(maxsize=256)
def _remembered(settings: tuple[tuple[str, type, Any], ...]) -> Rules:
    return Rules.from_dict({name: value for name, _, value in settings})


def _rule_value(value: Any) -> Any:
    """A setting with 5.0 as 5, and without integers that have no text."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return max(-(10**12), min(value, 10**12))
    return value


def _notation_data(text: str) -> dict[str, Any]:
    """The JSON data that a line of notation stands for."""
    parts = text.split(" ") if isinstance(text, str) else []
    if len(parts) != 11:
        _fail("", f"a line of notation has 11 fields, got {len(parts)}")
    try:
        settings = [] if parts[0] == "-" else [part.split("=", 1) for part in parts[0].split(",")]
        rules = {name: _setting(value) for name, value in settings}
        if len(rules) < len(settings):
            raise ValueError("a setting stands twice")
        you, *to_move = parts[1].split("/", 1)
        boards = [_board_data(board) for board in parts[4].split(",")]
        sizes = [{"hand_size": _number(size)} for size in parts[5].split(",")]
        data: dict[str, Any] = {
            "rules": rules,
            "you": _number(you),
            "to_move": _number(to_move[0] if to_move else you),
            "hand": _cards_data(parts[2]),
            "building_cards": [_cards_data(pile) for pile in parts[3].split("/")],
            "players": sizes,
            "draw_size": _number(parts[6]),
            "completed": _counts_data(parts[7]) if parts[7] != "-" else {},
            "reshuffled": _counts_data(parts[8]) if parts[8] != "-" else None,
            "passes": _number(parts[9]),
            "turns": _number(parts[10]),
        }
        if rules.get("teams"):
            data["boards"] = boards
        else:
            data["players"] = [{**board, **size} for board, size in zip(boards, sizes, strict=True)]
    except PositionError:
        raise
    except ValueError as error:
        _fail("", f"no line of notation: {str(error)[:60]}")
    return data


def _setting(text: str) -> Any:
    words: dict[str, Any] = {"true": True, "false": False, "null": None}
    if text in words:
        return words[text]
    return int(text) if text.isascii() and text.isdecimal() else text


def _number(text: str) -> int:
    """A number as the notation writes it: digits alone, no zeros in front."""
    if not (text.isascii() and text.isdecimal()) or (text[0] == "0" and len(text) > 1):
        raise ValueError(f"{text!r:.20} is no number")
    return int(text)


def _cards_data(text: str) -> list[str]:
    if text == "-":
        return []
    if not text:
        raise ValueError("no cards are written as -")
    return [card_text(_CHARS.index(char) + 1) for char in text]


def _counts_data(text: str) -> dict[str, int]:
    counts = [_number(count) for count in text.split(",")]
    return {card_text(card): count for card, count in zip(range(1, WILD + 1), counts, strict=True)}


def _board_data(text: str) -> dict[str, Any]:
    top, size, piles = text.split(":")
    cards = _cards_data(top)
    if len(cards) > 1:
        raise ValueError(f"a stock shows one card, got {top!r:.20}")
    return {
        "stock_top": cards[0] if cards else None,
        "stock_size": _number(size),
        "discards": [_cards_data(pile) for pile in piles.split("/")],
    }
