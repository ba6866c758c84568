"""Whether an engine's array is a game: for arrays that come from outside, as kernels check nothing.

Every cell that a kernel reads is held against the rules, and the cards in all zones together must
be the deck. The layout stands in `skipbo_env.engine.layout`.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from skipbo_env import record
from skipbo_env.engine import layout
from skipbo_env.engine.deal import deal_cards
from skipbo_env.engine.layout import State
from skipbo_env.engine.moves import MAX_HAND
from skipbo_env.rules import Rules

_INT32 = np.iinfo(np.int32)


def state_of(name: str, value: Any, rules: Rules) -> State:
    """A list of integers as the array of a game by these rules, checked with `check_state`.

    Args:
        name: what to call it in an error.
        value: the list.
        rules: what is played.

    Raises:
        ValueError: it is no such list, or no game; the message begins with the name.
    """
    size = len(layout.new_state(rules))
    if not isinstance(value, (list, tuple)) or len(value) != size:
        raise ValueError(f"{name}: needs a list of {size} numbers by these rules")
    for at, cell in enumerate(value):
        if type(cell) is not int or not _INT32.min <= cell <= _INT32.max:
            raise ValueError(f"{name}: cell {at} is no 32-bit integer")
    state = np.array(value, dtype=np.int32)
    check_state(state, rules, name)
    return state


def check_state(state: State, rules: Rules, name: str = "state") -> None:
    """Refuse an array that is no game by these rules.

    Args:
        state: int32, of the size that `layout.new_state` gives.
        rules: what is played.
        name: what to call it in an error.

    Raises:
        ValueError: the first contradiction found; the message begins with the name.
    """
    _Check(state, rules, name).run()


def check_start(start: State, rules: Rules, name: str = "start") -> None:
    """Refuse an array, already checked as a game, that is not as it stands after a deal.

    Raises:
        ValueError: it is not; the message begins with the name.
    """
    draw, size = int(start[layout.AT_DRAW]), rules.stocks
    stocks = int(start[layout.AT_STOCKS])
    undealt = rules.deck_size - rules.boards * size
    dealt = [
        start[stocks + size * board : stocks + size * (board + 1)].tolist()
        for board in range(rules.boards)
    ]
    rest = start[draw : draw + undealt].tolist()
    first = int(start[layout.FIRST_PLAYER])
    try:
        record.check_deal(rules, dealt, rest, first)
    except record.RecordError as error:
        raise ValueError(f"{name}: {error}") from None
    again = layout.new_state(rules, two_ended=bool(start[layout.TWO_ENDED]))
    cards = np.array([*(card for stock in dealt for card in stock), *rest], dtype=np.int32)
    deal_cards(again, cards, first, np.uint64(0))
    generator = [layout.RNG_LO, layout.RNG_HI]
    again[generator] = start[generator]
    differ = np.flatnonzero(again != start)
    if len(differ):
        raise ValueError(f"{name}: cell {differ[0]} is not as a deal leaves it")


class _Check:
    """Looks through one array; cards are counted as their zones are met."""

    def __init__(self, state: State, rules: Rules, name: str) -> None:
        self.state, self.rules, self.name = state, rules, name
        self.totals = np.array([0, *[rules.copies] * 12, rules.wilds])
        self.met = np.zeros(layout.WILD + 1, dtype=np.int64)

    def run(self) -> None:
        self._rules()
        self._numbers()
        self._boards()
        self._hands()
        self._middle()
        differ = np.flatnonzero(self.met != self.totals)
        if len(differ):
            card = int(differ[0])
            self._fail(
                f"{self.met[card]} cards of kind {card} where the deck has {self.totals[card]}"
            )
        self._course()

    def _fail(self, message: str) -> NoReturn:
        raise ValueError(f"{self.name}: {message}")

    def _bound(self, cell: int, what: str, low: int, high: int) -> int:
        value = int(self.state[cell])
        if not low <= value <= high:
            self._fail(f"cell {cell} ({what}) must be {low} to {high}, got {value}")
        return value

    def _same(self, cell: int, what: str, value: int) -> None:
        if int(self.state[cell]) != value:
            self._fail(f"cell {cell} ({what}) must be {value}, got {int(self.state[cell])}")

    def _counts(self, at: int, what: str) -> NDArray[np.int32]:
        """Fourteen cells, the counts of each kind behind the first."""
        counts = self.state[at + 1 : at + layout.HAND_CELLS]
        wrong = np.flatnonzero((counts < 0) | (counts > self.totals[1:]))
        if len(wrong):
            cell = at + 1 + int(wrong[0])
            self._bound(cell, what, 0, int(self.totals[cell - at]))
        return counts

    def _zone(self, first: int, size: int, what: str) -> None:
        """Cells that hold cards or have held some."""
        cells = self.state[first : first + size]
        wrong = np.flatnonzero((cells < 0) | (cells > layout.WILD))
        if len(wrong):
            self._bound(first + int(wrong[0]), what, 0, layout.WILD)

    def _meet(self, cards: NDArray[np.int32]) -> None:
        self.met += np.bincount(cards, minlength=layout.WILD + 1)

    def _rules(self) -> None:
        two_ended = self._bound(layout.TWO_ENDED, "two-ended", 0, 1)
        empty = layout.new_state(self.rules, two_ended=bool(two_ended))
        if self.state.shape != empty.shape or self.state.dtype != empty.dtype:
            self._fail(f"needs {len(empty)} cells of 32 bits by these rules")
        differ = np.flatnonzero(self.state[: layout.PLAYER] != empty[: layout.PLAYER])
        if len(differ):
            self._fail(f"does not belong to these rules (cell {differ[0]})")

    def _numbers(self) -> None:
        rules = self.rules
        self._bound(layout.PLAYER, "seat to move", 0, rules.players - 1)
        self._bound(layout.FIRST_PLAYER, "first seat", 0, rules.players - 1)
        self._bound(layout.PASSES, "passes", 0, rules.players)
        self._bound(layout.TURNS, "turns", 0, rules.max_turns)
        self._bound(layout.REASON, "reason", 0, len(layout.REASONS) - 1)
        self._bound(layout.WINNER, "winner", -1, rules.sides - 1)
        self._bound(layout.RESHUFFLES, "reshuffles", 0, 1 << 30)

    def _boards(self) -> None:
        state, rules = self.state, self.rules
        discarded = np.zeros(layout.WILD + 1, dtype=np.int64)
        stocks, discards = int(state[layout.AT_STOCKS]), int(state[layout.AT_DISCARDS])
        self._zone(stocks, rules.boards * rules.stocks, "stock")
        self._zone(discards, layout.PILES * rules.boards * rules.deck_size, "discard pile")
        for board in range(rules.boards):
            at = layout.board_at(board)
            size = self._bound(at + layout.STOCK_N, "stock size", 0, rules.stocks)
            start = stocks + board * rules.stocks
            self._meet(state[start : start + size])
            top = int(state[start + size - 1]) if size else 0
            self._same(at + layout.STOCK_TOP, "stock top", top)
            piles = []
            for pile in range(layout.PILES):
                depth = self._bound(at + layout.DEPTH + pile, "depth", 0, rules.deck_size)
                start = discards + (layout.PILES * board + pile) * rules.deck_size
                cards = state[start : start + depth]
                top = int(cards[-1]) if depth else 0
                if not rules.wild_discard and layout.WILD in cards:
                    self._fail(f"a wild lies on a discard pile of board {board}, against the rules")
                self._same(at + layout.TOP + pile, "discard top", top)
                discarded += np.bincount(cards, minlength=layout.WILD + 1)
                piles.append(cards.tolist())
            for place, packed in enumerate(layout.under_cells(piles)):
                self._same(at + layout.UNDER + place, "cards under discard tops", packed)
        self.met += discarded
        for card in range(layout.WILD + 1):
            self._same(layout.DISCARDED + card, "cards on discard piles", int(discarded[card]))
        for cell in range(layout.board_at(rules.boards), layout.HEADER):
            self._same(cell, "unused", 0)

    def _hands(self) -> None:
        state, rules = self.state, self.rules
        most = MAX_HAND if rules.draw_per_turn else rules.hand_size
        for player in range(rules.players):
            at = layout.hand_at(player)
            size = self._bound(at, "hand size", 0, most)
            counts = self._counts(at, "hand")
            self._same(at, "hand size", int(counts.sum()))
            self.met[1:] += counts
            at = int(state[layout.AT_SEEN]) + layout.HAND_CELLS * player
            reshuffled = bool(state[layout.RESHUFFLES])
            self._bound(at, "older cards", 0, size if reshuffled else 0)
            if self._counts(at, "seen since the reshuffle").any() and not reshuffled:
                self._fail("cards were seen since a reshuffle, but there was none")

    def _middle(self) -> None:
        state, rules = self.state, self.rules
        draw = int(state[layout.AT_DRAW])
        high = self._bound(layout.DRAW_HI, "end of the draw pile", 0, rules.deck_size)
        low = self._bound(layout.DRAW_LO, "start of the draw pile", 0, high)
        self._zone(draw, rules.deck_size, "draw pile")
        self._meet(state[draw + low : draw + high])
        for pile in range(layout.PILES):
            height = self._bound(layout.HEIGHT + pile, "height", 0, 11)
            wilds = self._bound(layout.WILD_BITS + pile, "wilds", 0, (1 << height) - 1)
            for h in range(height):
                self.met[layout.WILD if wilds >> h & 1 else h + 1] += 1
        self._same(layout.COMPLETED, "unused", 0)
        completed = self._counts(layout.COMPLETED, "completed")
        self.met[1:] += completed
        self._same(layout.COMPLETED_SIZE, "completed cards", int(completed.sum()))
        if int(completed.sum()) % 12:
            self._fail("completed piles have 12 cards each")
        self._same(layout.RESHUFFLED, "unused", 0)
        reshuffled = self._counts(layout.RESHUFFLED, "reshuffled")
        if not state[layout.RESHUFFLES]:
            if reshuffled.any():
                self._fail("cards were reshuffled, but there was no reshuffle")
            return
        left = np.bincount(state[draw + low : draw + high], minlength=layout.WILD + 1)[1:]
        for player in range(rules.players):
            at = int(state[layout.AT_SEEN]) + layout.HAND_CELLS * player
            if (left > reshuffled - state[at + 1 : at + layout.HAND_CELLS]).any():
                self._fail(f"the draw pile holds reshuffled cards that player {player} has seen")

    def _course(self) -> None:
        """Whether the game can have come here, and can go on where it is not over."""
        state, rules = self.state, self.rules
        reason, winner = int(state[layout.REASON]), int(state[layout.WINNER])
        passes, turns = int(state[layout.PASSES]), int(state[layout.TURNS])
        left = [0] * rules.sides
        for board in range(rules.boards):
            left[board % rules.sides] += int(state[layout.board_at(board) + layout.STOCK_N])
        drawable = bool(
            state[layout.DRAW_LO] < state[layout.DRAW_HI] or state[layout.COMPLETED_SIZE]
        )
        empty = [side for side, cards in enumerate(left) if cards == 0]
        if empty != ([winner] if reason == layout.STOCK_EMPTY else []):
            self._fail(f"sides {empty} have no stock card, but the winner is {winner}")
        if passes and drawable:
            self._fail("passes happen only where nothing can be drawn")
        if (passes == rules.players) != (reason == layout.STALEMATE):
            self._fail("a stalemate is when every player has passed in a row")
        if reason == layout.STALEMATE:
            fewest = [side for side, cards in enumerate(left) if cards == min(left)]
            best = fewest[0] if len(fewest) == 1 and rules.stalemate == "fewest_stock" else -1
            if winner != best:
                self._fail(f"the stalemate's winner must be {best}, got {winner}")
        elif reason != layout.STOCK_EMPTY and winner != -1:
            self._fail(f"nobody has won, but the winner is {winner}")
        if reason == layout.TURN_LIMIT and turns != rules.max_turns:
            self._fail(f"the turn limit is {rules.max_turns}, not {turns}")
        if reason in (layout.RUNNING, layout.STOCK_EMPTY) and turns >= rules.max_turns:
            self._fail(f"after {turns} turns the game is over")
        in_hand = int(state[layout.hand_at(int(state[layout.PLAYER]))])
        if reason == layout.RUNNING and drawable and not in_hand:
            self._fail("the hand of the seat to move is empty although cards can be drawn")
