"""Plain observations in NumPy, to compare the compiled ones with.

Written from the tables at the head of `skipbo_env.engine.observe` and from rules.md, not from the
kernels. What goes in is `ReferenceGame.public_table()`, which all seats see, and each observer's
own hand, so nothing that a seat may not see can come out. The observations of a whole table are
made at once, a row a seat: what all see is counted once, and a row only puts it in its own order.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.reference import WILD

KINDS = ("cards", "features")
_MOST = 127  # "numbers saturate at 127"
_TOPS = 4  # "four discard piles x top four cards"

# One-hot rows of 13 cells by card; no card (0) is zeros.
_ONE_HOT = np.eye(WILD + 1)[:, 1:]


def lacking(height: int, card: int) -> int:
    """How many cards a building pile of this height takes before the card fits; 12 for no card."""
    if card == 0:
        return 12
    cards = 0
    # A pile that reaches 12 is set aside, and the next one begins in its place.
    while card not in (WILD, height % 12 + 1):
        height += 1
        cards += 1
    return cards


_LACKING = np.array([[lacking(height, card) for height in range(12)] for card in range(WILD + 1)])


class Observations:
    """The observations of every seat at one moment.

    Args:
        table: `ReferenceGame.public_table()`.
        hands: each seat's cards; row i of an observation reads hands[i] alone.
    """

    def __init__(self, table: dict[str, Any], hands: Sequence[Sequence[int]]) -> None:
        rules = table["rules"]
        self.players = rules["players"]
        self.seats = seats_in_order(self.players)
        self.boards = boards_in_order(self.players, rules["teams"])
        self.heights = np.array([len(pile) for pile in table["building"]])
        self.stock_tops = np.array([top or 0 for top in table["stock_tops"]])
        self.stock_sizes = np.array(table["stock_sizes"])
        self.depths = np.array([[len(pile) for pile in piles] for piles in table["discards"]])
        # By board and discard pile the top four cards, top first; 0 where there is none.
        self.tops = np.array(
            [
                [(pile[: -_TOPS - 1 : -1] + [0] * _TOPS)[:_TOPS] for pile in piles]
                for piles in table["discards"]
            ]
        )
        self.hands = np.array([_by_kind(hand) for hand in hands])
        self.hand_sizes = np.array(table["hand_sizes"])
        self.completed = _by_kind(table["completed"])
        self.draw_size = table["draw_size"]
        self.mover = table["player"]
        self.passes = table["passes"]
        # "cards not seen by the observer": the deck less what lies open and the own hand.
        self.deck = np.array([rules["copies"]] * 12 + [rules["wilds"]])
        piles = chain(table["building"], *table["discards"])
        laid = [*chain.from_iterable(piles), *(top for top in table["stock_tops"] if top)]
        self.unseen = self.deck - _by_kind(laid) - self.completed - self.hands

    def of_kind(self, kind: str) -> NDArray[Any]:
        """ "cards" (int8) or "features" (float32), a row a seat."""
        return self.cards() if kind == "cards" else self.features()

    def cards(self) -> NDArray[np.int8]:
        """The "cards" observations: one whole number a public zone."""
        count = len(self.stock_tops)
        boards = np.empty((count, 10), dtype=np.int64)
        boards[:, 0], boards[:, 1] = self.stock_tops, self.stock_sizes
        boards[:, 2:6], boards[:, 6:] = self.tops[:, :, 0], self.depths
        numbers = self._rows(
            self.heights,
            self.hands,
            boards[self.boards].reshape(self.players, -1),
            self.hand_sizes[self.seats],
            # "cards in the draw pile up to 127, and those beyond"
            [min(self.draw_size, _MOST), max(0, self.draw_size - _MOST)],
            self.completed,
            (self.mover - self.seats[:, :1]) % self.players,
            [self.passes],
        )
        return np.minimum(numbers, _MOST).astype(np.int8)

    def features(self) -> NDArray[np.float32]:
        """The "features" observations: numbers from 0 to 1."""
        count = len(self.stock_tops)
        boards = np.empty((count, 230))
        boards[:, :13] = _ONE_HOT[self.stock_tops]
        boards[:, 13] = self.stock_sizes / 40
        boards[:, 14:222] = _ONE_HOT[self.tops].reshape(count, -1)
        boards[:, 222:226] = np.minimum(self.depths, 20) / 20
        boards[:, 226:] = _LACKING[self.stock_tops][:, self.heights] / 12
        # A kind that the deck has none of has no share: 0.
        shares = np.maximum(self.deck, 1)
        return self._rows(
            (self.heights[:, None] == np.arange(12)).ravel(),  # one-hot
            # "at least 1, 2, 3, 4"
            (self.hands[:, :, None] >= [1, 2, 3, 4]).reshape(self.players, -1),
            boards[self.boards].reshape(self.players, -1),
            self.hand_sizes[self.seats] / 20,
            [self.draw_size / self.deck.sum()],
            self.completed / shares,
            self.unseen / shares,
            self.seats == self.mover,
            [self.passes / self.players],
        ).astype(np.float32)

    def _rows(self, *blocks: Any) -> NDArray[np.float64]:
        """The blocks side by side, a row a seat; a block of one dimension is the same for all."""
        arrays = [np.asarray(block) for block in blocks]
        rows = np.empty((self.players, sum(array.shape[-1] for array in arrays)))
        at = 0
        for array in arrays:
            rows[:, at : at + array.shape[-1]] = array
            at += array.shape[-1]
        return rows


@cache
def seats_in_order(players: int) -> NDArray[np.int64]:
    """A row a seat: the observer first, then the others in the order of turns."""
    return np.array([[(seat + k) % players for k in range(players)] for seat in range(players)])


@cache
def boards_in_order(players: int, teams: int) -> NDArray[np.int64]:
    """A row a seat: every board as the observer counts them.

    "Its own board comes first, then in a team the partner's board, then the boards of the seats
    that follow (in teams each with its partner's board)."
    """
    seats = seats_in_order(players)
    if not teams:
        return seats
    rows = []
    # The seats that follow are of the other teams in turn, until the observer's comes again.
    for observer in seats[:, :teams].tolist():
        row = []
        for seat in observer:
            # "Player p's own board is (p // teams) mod 2 x teams + p mod teams"; a team has two
            # boards, and "board b belongs to team b mod teams".
            own = (seat // teams) % 2 * teams + seat % teams
            row += [own, next(b for b in range(2 * teams) if b != own and b % teams == own % teams)]
        rows.append(row)
    return np.array(rows)


def _by_kind(cards: Sequence[int]) -> NDArray[np.int64]:
    """Counts of the cards 1 to 12 and of the wild."""
    return np.bincount(np.array(cards, dtype=np.int64), minlength=WILD + 1)[1:]
