"""Playing cards in place of Skip-Bo's: counts of a deck both ways, and what makes none."""

from __future__ import annotations

from typing import Any

import pytest

from skipbo_env.cards import CardError, card_text, from_playing_deck, parse_card, to_playing_deck


def test_every_deck_comes_back() -> None:
    for copies in range(1, 21):
        for wilds in range(61):
            counts = to_playing_deck(copies, wilds)
            assert sum(counts.values()) == 12 * copies + wilds
            assert counts["K"] <= copies
            assert from_playing_deck(counts) == (copies, wilds)


def test_the_standard_deck_is_three_packs() -> None:
    ranks = dict.fromkeys(("A", *map(str, range(2, 11)), "J", "Q", "K"), 12)
    assert to_playing_deck() == {**ranks, "Joker": 6}
    assert from_playing_deck({**ranks, "Joker": 6}) == (12, 18)
    assert from_playing_deck({**ranks, "Joker": 2, "joker": 4}) == (12, 18)


@pytest.mark.parametrize(
    ("copies", "wilds", "named"),
    [
        (0, 18, "copies"),
        (21, 18, "copies"),
        (-1, 18, "copies"),
        (True, 18, "copies"),
        ("12", 18, "copies"),
        (12.0, 18, "copies"),
        (10**5000, 18, "copies"),
        (12, -1, "wilds"),
        (12, 61, "wilds"),
        (12, False, "wilds"),
        (12, None, "wilds"),
    ],
    ids=lambda value: str(value)[:9] if not isinstance(value, int) or value < 99 else "huge",
)
def test_no_such_deck(copies: Any, wilds: Any, named: str) -> None:
    with pytest.raises(CardError, match=f"^{named}: "):
        to_playing_deck(copies, wilds)


@pytest.mark.parametrize(
    "change",
    [
        {"A": 11},
        {"Q": -1},
        {"Q": "12"},
        {"Q": True},
        {"Q": 12.0},
        {"Q": None},
        {"Joker": 49},
        {"Joker": 10**5000},
        {"knave": 1},
        {"": 1},
        {None: 1},
    ],
    ids=lambda change: str(next(iter(change))),
)
def test_no_deck_of_playing_cards(change: dict[Any, Any]) -> None:
    with pytest.raises(CardError):
        from_playing_deck({**to_playing_deck(), **change})


@pytest.mark.parametrize("counts", [{}, None, [], 12, {"K": 3}, to_playing_deck(1).keys()])
def test_no_counts(counts: Any) -> None:
    with pytest.raises(CardError):
        from_playing_deck(counts)


def test_names_come_back() -> None:
    for playing in (False, True):
        names = [card_text(card, playing=playing) for card in range(1, 14)]
        assert list(map(parse_card, names)) == list(range(1, 14))
    assert names == ["A", *map(str, range(2, 11)), "J", "Q", "K"]
