"""Cards as numbers and as text: ranks 1 to 12 and the wild, with the playing-card names that stand
for them.

A card is an int: 1 to 12 for the ranks, `WILD` (13) for a wild. 0 means "no card" in the engine's
arrays.
"""

from __future__ import annotations

RANKS = 12
WILD = 13
CARD_KINDS = 13

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
    shown = repr(value)
    raise CardError(f"{shown[:40]} is no card: use '1' to '12' or 'S'")


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

    Returns:
        Counts by name: "A", "2" to "10", "J", "Q", "K", "Joker".
    """
    counts = {card_text(rank, playing=True): copies for rank in range(1, RANKS + 1)}
    kings = min(wilds, copies)
    return {**counts, "K": kings, "Joker": wilds - kings}


def from_playing_deck(counts: dict[str, int]) -> tuple[int, int]:
    """The (copies, wilds) of a pile of playing cards; the inverse of `to_playing_deck`.

    Raises:
        CardError: an unknown name, a negative count, or ranks with different counts.
    """
    by_card: dict[int, int] = dict.fromkeys(range(1, WILD + 1), 0)
    for name, count in counts.items():
        if count < 0:
            raise CardError(f"{name}: a count cannot be negative, got {count}")
        by_card[parse_card(name)] += count
    copies = {by_card[rank] for rank in range(1, RANKS + 1)}
    if len(copies) != 1:
        raise CardError(f"every rank from A to Q needs the same number of cards, got {by_card}")
    return copies.pop(), by_card[WILD]
