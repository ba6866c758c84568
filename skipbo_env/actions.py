"""The ACTION table: what each action id means, as text and as a record's move. Ids never change
their meaning.

    ids             action
    0 + b           own stock top to building pile b (b 0..3)
    4 + 4(r-1) + b  hand card of rank r to building pile b; r 1..12, r = 13 the wild
    56 + 4d + b     top of own discard pile d to building pile b
    72 + 4(r-1) + d end the turn: discard hand card of rank r on own discard pile d
    124             pass
    125 + b         team only: the team's other stock to building pile b
    129 + 4d + b    team only: top of the other board's discard pile d to building pile b
    145 + 4(r-1)+ d open boards only: end the turn by discarding on the other board's pile d

125 actions for individuals, 145 for teams, 197 where a player may discard on the team's other
board. In text, piles are numbered from 1: `stock>2`, `hand 7>1`, `discard1>4`, `hand S=>2` (a
discard that ends the turn), `pass`, and on the other board `other stock>2`, `other discard1>4`,
`hand 7=>other 2`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from skipbo_env.cards import CardError, card_text, parse_card
from skipbo_env.checks import is_whole, shown
from skipbo_env.engine.layout import HEIGHT, PLAYER, STOCK_TOP, TOP, State, board_at
from skipbo_env.engine.moves import (
    A_DISCARD,
    A_DISCARD2,
    A_END,
    A_END2,
    A_HAND,
    A_PASS,
    A_STOCK2,
)
from skipbo_env.rules import Rules

MAX_ACTIONS = 197
# A game's array, or its public cells as a list where many of them are looked at one by one.
Cells = State | Sequence[int]


class IllegalAction(ValueError):
    """An action that the rules do not allow now; nothing has changed."""


class Move(NamedTuple):
    """An action id taken apart.

    Attributes:
        kind: "play", "discard" (it ends the turn) or "pass".
        source: "stock", "hand" or "discard", where a played card comes from; "" for a pass.
        card: 1 to 13 where the id says it (hand cards), else 0.
        source_pile: the discard pile that a card is played from, else -1.
        pile: the building pile of a play or the discard pile of a discard, -1 for a pass.
        other: whether the stock or discard pile belongs to the team's other board.
    """

    kind: str
    source: str
    card: int
    source_pile: int
    pile: int
    other: bool


def _decode(action: int) -> Move:
    if action < A_HAND:
        return Move("play", "stock", 0, -1, action, False)
    if action < A_DISCARD:
        card, pile = divmod(action - A_HAND, 4)
        return Move("play", "hand", card + 1, -1, pile, False)
    if action < A_END:
        source, pile = divmod(action - A_DISCARD, 4)
        return Move("play", "discard", 0, source, pile, False)
    if action < A_PASS:
        card, pile = divmod(action - A_END, 4)
        return Move("discard", "hand", card + 1, -1, pile, False)
    if action == A_PASS:
        return Move("pass", "", 0, -1, -1, False)
    if action < A_DISCARD2:
        return Move("play", "stock", 0, -1, action - A_STOCK2, True)
    if action < A_END2:
        source, pile = divmod(action - A_DISCARD2, 4)
        return Move("play", "discard", 0, source, pile, True)
    card, pile = divmod(action - A_END2, 4)
    return Move("discard", "hand", card + 1, -1, pile, True)


def _text(move: Move) -> str:
    other = "other " if move.other else ""
    if move.kind == "pass":
        return "pass"
    if move.kind == "discard":
        return f"hand {card_text(move.card)}=>{other}{move.pile + 1}"
    if move.source == "hand":
        return f"hand {card_text(move.card)}>{move.pile + 1}"
    if move.source == "stock":
        return f"{other}stock>{move.pile + 1}"
    return f"{other}discard{move.source_pile + 1}>{move.pile + 1}"


MOVES: tuple[Move, ...] = tuple(_decode(action) for action in range(MAX_ACTIONS))
TEXTS: tuple[str, ...] = tuple(_text(move) for move in MOVES)
_IDS = {text.lower().replace(" ", ""): action for action, text in enumerate(TEXTS)}
_HAND_CARD = re.compile(r"^hand([a-z0-9-]{1,8})(=?>)")


def action_text(action: int) -> str:
    """The action's text; `parse_action` reads it back.

    Raises:
        IllegalAction: no such id.
    """
    if not is_whole(action) or not 0 <= action < MAX_ACTIONS:
        raise IllegalAction(f"action: {shown(action)} is no action id (0 to {MAX_ACTIONS - 1})")
    return TEXTS[int(action)]


def parse_action(text: str) -> int:
    """The id of an action's text, in any case and spacing and with any name of a card.

    Raises:
        IllegalAction: the text names no action.
    """
    if not isinstance(text, str) or len(text) > 200:
        raise IllegalAction(f"action: {shown(text)} is no action's text")
    plain = re.sub(r"\s+", "", text.lower())
    if match := _HAND_CARD.match(plain):
        try:
            card = card_text(parse_card(match[1])).lower()
        except CardError as error:
            raise IllegalAction(f"action: {error}") from None
        plain = f"hand{card}{match[2]}{plain[match.end() :]}"
    action = _IDS.get(plain)
    if action is None:
        raise IllegalAction(
            f"action: {shown(text)} is no action; write 'stock>2', 'hand 7>1', "
            "'discard1>4', 'hand S=>2' or 'pass'"
        )
    return action


def played_card(state: Cells, rules: Rules, action: int) -> int:
    """The card that a legal action moves: 1 to 13, or 0 for a pass."""
    move = MOVES[action]
    if move.kind == "pass" or move.source == "hand":
        return move.card
    at = board_at(acting_board(state, rules, action))
    return int(
        state[at + STOCK_TOP] if move.source == "stock" else state[at + TOP + move.source_pile]
    )


def acting_board(state: Cells, rules: Rules, action: int) -> int:
    """The board whose stock or discard pile a legal action of the seat to move touches."""
    own = rules.board_of(int(state[PLAYER]))
    if MOVES[action].other:
        return (own + rules.teams) % rules.boards
    return own


def move_json(state: Cells, rules: Rules, action: int) -> dict[str, Any]:
    """A legal action as a record's event without "player" (docs/formats.md)."""
    move = MOVES[action]
    card = played_card(state, rules, action)
    rank = int(state[HEIGHT + move.pile]) + 1 if move.kind == "play" else 0
    touches_board = move.source != "hand" or move.kind == "discard"
    board = acting_board(state, rules, action) if rules.teams and touches_board else -1
    return dict(_event(action, card, rank, board))


@lru_cache(maxsize=4096)
def _event(action: int, card: int, rank: int, board: int) -> dict[str, Any]:
    """A move as an event; to be copied before it is given away."""
    move = MOVES[action]
    if move.kind == "pass":
        return {"type": "pass"}
    result: dict[str, Any]
    if move.kind == "discard":
        result = {"type": "discard", "card": card_text(card), "to": move.pile}
    else:
        source = f"discard:{move.source_pile}" if move.source == "discard" else move.source
        result = {
            "type": "play",
            "card": card_text(card),
            "from": source,
            "to": move.pile,
            "as": rank,
        }
    if board >= 0:
        result["board"] = board
    return result
