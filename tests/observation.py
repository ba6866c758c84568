"""Slow, plain-Python observations, to compare the compiled ones with.

Written from the tables at the head of `skipbo_env.engine.observe` and from rules.md, not from the
kernels. What goes in is `ReferenceGame.public_view(player)`: the public zones and the observer's
own hand. So nothing that a seat may not see can come out.
"""

from __future__ import annotations

from typing import Any

from tests.reference import WILD

KINDS = ("cards", "features")
_MOST = 127  # "numbers saturate at 127"

# One-hot rows of 13 cells by card; no card (0) is zeros.
_ONE_HOT = [[float(card == kind) for kind in range(1, WILD + 1)] for card in range(WILD + 1)]


def observation(view: dict[str, Any], kind: str) -> list[Any]:
    """The observation of the seat whose view it is, "cards" or "features"."""
    return cards_observation(view) if kind == "cards" else features_observation(view)


def cards_observation(view: dict[str, Any]) -> list[int]:
    """The "cards" observation: one whole number a public zone."""
    players = view["rules"]["players"]
    numbers = [len(pile) for pile in view["building"]]
    numbers += _by_kind(view["hand"])
    for board in boards_in_order(view):
        piles = view["discards"][board]
        numbers += [view["stock_tops"][board] or 0, view["stock_sizes"][board]]
        numbers += [pile[-1] if pile else 0 for pile in piles]
        numbers += [len(pile) for pile in piles]
    numbers += [view["hand_sizes"][seat] for seat in seats_in_order(view)]
    # "cards in the draw pile up to 127, and those beyond"
    numbers += [min(view["draw_size"], _MOST), max(0, view["draw_size"] - _MOST)]
    numbers += _by_kind(view["completed"])
    numbers += [(view["player"] - view["you"]) % players, view["passes"]]
    return [min(number, _MOST) for number in numbers]


def features_observation(view: dict[str, Any]) -> list[float]:
    """The "features" observation: numbers from 0 to 1, before they are rounded to float32."""
    rules = view["rules"]
    heights = [len(pile) for pile in view["building"]]
    numbers: list[float] = []
    for height in heights:  # "height of each building pile, one-hot", 0 to 11
        numbers += [float(height == level) for level in range(12)]
    for count in _by_kind(view["hand"]):  # "at least 1, 2, 3, 4"
        numbers += [float(count >= level) for level in (1, 2, 3, 4)]
    for board in boards_in_order(view):
        top = view["stock_tops"][board] or 0
        piles = view["discards"][board]
        numbers += _ONE_HOT[top]
        numbers.append(view["stock_sizes"][board] / 40)
        for pile in piles:  # "top four cards one-hot, top first"
            for place in range(1, 5):
                numbers += _ONE_HOT[pile[-place] if len(pile) >= place else 0]
        numbers += [min(len(pile), 20) / 20 for pile in piles]
        numbers += [lacking(height, top) / 12 for height in heights]
    numbers += [view["hand_sizes"][seat] / 20 for seat in seats_in_order(view)]
    totals = [rules["copies"]] * 12 + [rules["wilds"]]
    numbers.append(view["draw_size"] / sum(totals))
    for counts in (_by_kind(view["completed"]), unseen(view)):
        # A kind that the deck has none of has no share: 0.
        numbers += [count / max(total, 1) for count, total in zip(counts, totals, strict=True)]
    numbers += [float(seat == view["player"]) for seat in seats_in_order(view)]
    numbers.append(view["passes"] / rules["players"])
    return numbers


def seats_in_order(view: dict[str, Any]) -> list[int]:
    """Every seat, the observer first, then in the order of turns."""
    players = view["rules"]["players"]
    return [(view["you"] + k) % players for k in range(players)]


def boards_in_order(view: dict[str, Any]) -> list[int]:
    """Every board as the observer counts them.

    "Its own board comes first, then in a team the partner's board, then the boards of the seats
    that follow (in teams each with its partner's board)."
    """
    teams = view["rules"]["teams"]
    seats = seats_in_order(view)
    if not teams:
        return seats
    boards = []
    # The seats that follow are of the other teams in turn, until the observer's comes again.
    for seat in seats[:teams]:
        # "Player p's own board is (p // teams) mod 2 x teams + p mod teams"; a team has two boards,
        # and "board b belongs to team b mod teams".
        own = (seat // teams) % 2 * teams + seat % teams
        boards += [own, next(b for b in range(2 * teams) if b != own and b % teams == own % teams)]
    return boards


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


def unseen(view: dict[str, Any]) -> list[int]:
    """The cards by kind that are in other hands, in the draw pile or in a stock below its top."""
    rules = view["rules"]
    seen = view["hand"] + view["completed"] + [top for top in view["stock_tops"] if top]
    for piles in (view["building"], *view["discards"]):
        for pile in piles:
            seen += pile
    totals = [rules["copies"]] * 12 + [rules["wilds"]]
    return [total - count for total, count in zip(totals, _by_kind(seen), strict=True)]


def _by_kind(cards: list[int]) -> list[int]:
    """Counts of the cards 1 to 12 and of the wild."""
    return [cards.count(card) for card in range(1, WILD + 1)]
