"""Cards as numbers and as text: ranks 1 to 12 and the wild, with the playing-card names that stand
for them.

A card is an int: 1 to 12 for the ranks, `WILD` (13) for a wild. 0 means "no card" in the engine's
arrays.
"""

from __future__ import annotations

from collections.abc import Mapping

from skipbo_env.checks import shown

RANKS = 12
WILD = 13
CARD_KINDS = 13
MOST_COPIES = 20
MOST_WILDS = 60

_NAMES = {
    **{str(rank): rank for rank in range(1, RANKS + 1)},
    **dict.fromkeys(("s", "w", "wild", "skip-bo", "skipbo", "skip_bo", "joker", "k", "king"), WILD),
    "a": 1,
    "ace": 1,
    "j": 11,
    "jack": 11,
    "q": 12,
    "queen": 12,
}
_PLAYING = {1: "A", 11: "J", 12: "Q", WILD: "K"}


class CardError(ValueError):
    """A text or number that names no card."""


def parse_card(value: object) -> int:
    """The card that a number or a text names, in any case.

    Args:
        value: 1 to 12, or "1" to "12", "S", "W", "wild", "skip-bo", or a playing-card name
            (A, J, Q; K and Joker are wilds).

    Raises:
        CardError: the value names no card.
    """
    if isinstance(value, bool):
        raise CardError(f"{value!r} is no card: use 1 to 12 or 'S'")
    if isinstance(value, int):
        if 1 <= value <= RANKS:
            return value
        raise CardError(f"{min(max(value, -1), 99)} is no card: ranks are 1 to 12, a wild is 'S'")
    if isinstance(value, str):
        card = _NAMES.get(value.strip().lower())
        if card is not None:
            return card
    raise CardError(f"{shown(value)} is no card: use '1' to '12' or 'S'")


def card_text(card: int, *, playing: bool = False) -> str:
    """The card's name: "1" to "12" and "S", or with `playing` A, 2 to 10, J, Q and K (a wild)."""
    if not 1 <= card <= WILD:
        raise CardError(f"{card} is no card")
    if playing and card in _PLAYING:
        return _PLAYING[card]
    return "S" if card == WILD else str(card)


def to_playing_deck(copies: int = 12, wilds: int = 18) -> dict[str, int]:
    """How many playing cards of each name make this deck, kings before jokers among the wilds.

    Three 54-card decks make the standard deck: twelve of each rank from A to Q, twelve kings and
    six jokers.

    Args:
        copies: cards of each rank, 1 to 20.
        wilds: 0 to 60.

    Returns:
        Counts by name: "A", "2" to "10", "J", "Q", "K", "Joker".

    Raises:
        CardError: a number that no deck has.
    """
    _within("copies", copies, 1, MOST_COPIES)
    _within("wilds", wilds, 0, MOST_WILDS)
    counts = {card_text(rank, playing=True): copies for rank in range(1, RANKS + 1)}
    kings = min(wilds, copies)
    return {**counts, "K": kings, "Joker": wilds - kings}


def _within(name: str, value: object, low: int, high: int) -> int:
    """A whole number within bounds."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise CardError(f"{name}: needs a whole number, got {shown(value)}")
    if not low <= value <= high:
        raise CardError(f"{name}: must be {low} to {high}, got {min(max(value, -1), 10**9)}")
    return value


def from_playing_deck(counts: Mapping[str, int]) -> tuple[int, int]:
    """The (copies, wilds) of a pile of playing cards; the inverse of `to_playing_deck`.

    Raises:
        CardError: an unknown name, a count that is none, ranks with different counts, or more or
            fewer cards than a deck can have.
    """
    if not isinstance(counts, Mapping):
        raise CardError(f"counts: needs an object of counts by name, got {type(counts).__name__}")
    by_card: dict[int, int] = dict.fromkeys(range(1, WILD + 1), 0)
    for name, count in counts.items():
        by_card[parse_card(name)] += _within(str(name), count, 0, 10**9)
    copies = {by_card[rank] for rank in range(1, RANKS + 1)}
    if len(copies) != 1:
        raise CardError(f"every rank from A to Q needs the same number of cards, got {by_card}")
    return (
        _within("each rank", copies.pop(), 1, MOST_COPIES),
        _within("wilds", by_card[WILD], 0, MOST_WILDS),
    )
