"""Game records: writing a game as JSON, following a record through the engine, checking files.

The format stands in docs/formats.md. Events are derived from the game's array before and after
each action, and a record is followed through the same kernels with its own deal and its own
reshuffles, so no rule stands here. This module knows no `Game`, no agent and no environment.
Piles, players and boards count from 0 here and in its messages, as in the record.

    rules, start, actions, scripts  -- record_of -->  record (JSON)
    record (JSON)  -- replay -->  rules, start, state, actions, scripts
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, NoReturn, TextIO

import numpy as np

from skipbo_env.actions import MOVES, acting_board, move_json
from skipbo_env.cards import RANKS, WILD, card_text
from skipbo_env.checks import is_whole, shown
from skipbo_env.engine import layout, moves
from skipbo_env.engine.deal import deal as deal_seed
from skipbo_env.engine.deal import deal_cards
from skipbo_env.engine.layout import State
from skipbo_env.rules import Rules, RulesError

FORMAT = "skipbo-record"
VERSION = 1

_CARDS = {card_text(card): card for card in range(1, WILD + 1)}
_SOURCES = {"stock": -1, "hand": -1, **{f"discard:{pile}": pile for pile in range(layout.PILES)}}
_FIELDS = {
    "draw": ("player", "cards"),
    "play": ("player", "card", "from", "to", "as"),
    "complete": ("pile",),
    "reshuffle": ("cards",),
    "discard": ("player", "card", "to"),
    "pass": ("player",),
    "end": ("winner", "reason", "scores"),
}
_CHOICES = ("play", "discard", "pass")
_NO_SCRIPT = np.zeros(0, dtype=np.int32)


class RecordError(ValueError):
    """A record that is none, or an event that cannot follow from the deal and the events before it.

    Attributes:
        event: index of the first event that cannot follow; None where no event is to blame.
        path: keys and indices from the record to what is wrong, such as ("events", 3, "to").
        line: line of the file it stands in, from 1; None where no file was read.
        reason: the message without the place.
    """

    def __init__(
        self,
        reason: str,
        *,
        event: int | None = None,
        path: tuple[str | int, ...] = (),
        line: int | None = None,
    ) -> None:
        self.reason = reason
        self.event = event
        self.path = ("events", event, *path) if event is not None else path
        self.line = line
        place = f"event {event}" if event is not None else str(path[0]) if path else "record"
        super().__init__(f"{place}: {reason}")

    def __reduce__(self) -> tuple[Any, ...]:
        path = self.path if self.event is None else self.path[2:]
        make = partial(type(self), event=self.event, path=path, line=self.line)
        return make, (self.reason,)


class Replay(NamedTuple):
    """A record followed to one of its moments.

    Attributes:
        rules: what is played.
        seed: the record's own, or None.
        start: the array after the deal and the first draw.
        state: the array after `actions`.
        actions: the action ids of the choices made so far.
        scripts: the order of each reshuffle that is not the seed's own, next card first, by the
            index of its action.
        agents: who played, by seat, or None.
    """

    rules: Rules
    seed: int | None
    start: State
    state: State
    actions: list[int]
    scripts: dict[int, list[int]]
    agents: list[str] | None

    def states(self) -> Iterator[tuple[State, int]]:
        """Every decision in order: a copy of the array before it, and the action chosen."""
        state = self.start.copy()
        for ply, action in enumerate(self.actions):
            yield state.copy(), action
            apply_with(state, action, self.scripts.get(ply))


# Writing ---------------------------------------------------------------------------------------


def apply_with(state: State, action: int, script: Sequence[int] | None) -> None:
    """Do a legal action, with the order of a reshuffle in it if known; the array is changed."""
    if script:
        moves.apply_scripted(state, action, np.array(script, dtype=np.int32))
    else:
        moves.apply(state, action)


def deal_of(start: State) -> dict[str, Any]:
    """A record's "deal", from the array after the deal."""
    size, boards = int(start[layout.STOCK_SIZE]), int(start[layout.BOARDS])
    stocks, draw = int(start[layout.AT_STOCKS]), int(start[layout.AT_DRAW])
    undealt = int(start[layout.DECK]) - boards * size
    return {
        "stocks": [
            _texts(start[stocks + size * b : stocks + size * (b + 1)]) for b in range(boards)
        ],
        "draw": _texts(start[draw : draw + undealt]),
    }


def first_events(start: State) -> list[dict[str, Any]]:
    """The events of the first draw, from the array after the deal."""
    undealt = int(start[layout.DECK]) - int(start[layout.BOARDS]) * int(start[layout.STOCK_SIZE])
    return _draw_events(start, 0, undealt, start)


def step_events(rules: Rules, before: State, after: State, action: int) -> list[dict[str, Any]]:
    """The events of one action, from the arrays before and after it: the choice, what it caused.

    Hidden cards are told; `seen_event` makes them what one seat may see.
    """
    move = MOVES[action]
    told = move_json(before, rules, action)
    kind = told.pop("type")
    events = [{"type": kind, "player": int(before[layout.PLAYER]), **told}]
    if kind == "play" and int(before[layout.HEIGHT + move.pile]) == RANKS - 1:
        events.append({"type": "complete", "pile": move.pile})
    events += _draw_events(before, int(before[layout.DRAW_LO]), int(before[layout.DRAW_HI]), after)
    if after[layout.REASON]:
        events.append(_end_event(after))
    return events


def events_of(
    rules: Rules, start: State, actions: Sequence[int], scripts: Mapping[int, Sequence[int]]
) -> list[dict[str, Any]]:
    """All events of a game so far.

    Args:
        rules: what is played.
        start: the array after the deal and the first draw.
        actions: the action ids chosen since.
        scripts: by index of an action, the order of a reshuffle in it that was not random.
    """
    events = first_events(start)
    after, before = start.copy(), start.copy()
    for ply, action in enumerate(actions):
        np.copyto(before, after)
        apply_with(after, action, scripts.get(ply))
        events += step_events(rules, before, after, action)
    return events


def record_of(
    rules: Rules,
    start: State,
    actions: Sequence[int],
    scripts: Mapping[int, Sequence[int]],
    *,
    seed: int | None = None,
    agents: Sequence[str] | None = None,
) -> dict[str, Any]:
    """A game as a record; see `events_of` for the arguments. A running game's has no end event."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "rules": rules.to_dict(),
        "seed": seed,
        "agents": None if agents is None else [str(agent) for agent in agents],
        "first_player": int(start[layout.FIRST_PLAYER]),
        "deal": deal_of(start),
        "events": events_of(rules, start, actions, scripts),
    }


def seen_event(event: Mapping[str, Any], player: int | None) -> dict[str, Any]:
    """An event as a seat may see it: others' draws and a reshuffle have a "count", no "cards".

    Args:
        event: an event of a record.
        player: the seat that looks; None for somebody who sees no hand.
    """
    hidden = event["type"] == "reshuffle" or (event["type"] == "draw" and event["player"] != player)
    if not hidden:
        return dict(event)
    seen = {key: value for key, value in event.items() if key != "cards"}
    return {**seen, "count": len(event["cards"])}


def _texts(cards: Any) -> list[str]:
    return [card_text(int(card)) for card in cards]


def _draw_events(before: State, low: int, high: int, after: State) -> list[dict[str, Any]]:
    """What was drawn since the draw pile was cells [low, high) of `before`."""
    player = int(after[layout.PLAYER])  # whoever moved on plays draws, whoever's turn began as well
    bottom = bool(after[layout.TWO_ENDED]) and player % 2 == 1
    at = int(after[layout.AT_DRAW])
    now_low, now_high = int(after[layout.DRAW_LO]), int(after[layout.DRAW_HI])
    events: list[dict[str, Any]] = []

    def draw(cards: Any) -> None:
        if len(cards):
            texts = _texts(cards[::-1] if bottom else cards)
            event = {"type": "draw", "player": player, "cards": texts}
            events.append({**event, "end": "bottom"} if bottom else event)

    if after[layout.RESHUFFLES] == before[layout.RESHUFFLES]:
        draw(after[at + now_high : at + high] if bottom else after[at + low : at + now_low])
        return events
    # One reshuffle at most: the old cards are drawn first, and the new pile's end is the draw's.
    draw(before[at + low : at + high])
    size = int(after[layout.RESHUFFLED + 1 : layout.RESHUFFLED + WILD + 1].sum())
    events.append({"type": "reshuffle", "cards": _texts(after[at : at + size])})
    draw(after[at + now_high : at + size] if bottom else after[at : at + now_low])
    return events


def _end_event(state: State) -> dict[str, Any]:
    points = np.zeros(int(state[layout.SIDES]), dtype=np.int64)
    moves.scores(state, points)
    winner = int(state[layout.WINNER])
    return {
        "type": "end",
        "winner": winner if winner >= 0 else None,
        "reason": layout.REASONS[int(state[layout.REASON])],
        "scores": [int(n) for n in points],
    }


# Reading ---------------------------------------------------------------------------------------


def check_deal(
    rules: Rules, stocks: Sequence[Sequence[int]], draw: Sequence[int], first_player: int
) -> None:
    """Check that cards (1 to 13) are a deal of the rules' deck and that the seat exists.

    Args:
        rules: what is played.
        stocks: each board's stock from bottom to top.
        draw: the draw pile, next card first.
        first_player: the seat that begins.

    Raises:
        RecordError: (a ValueError) stocks of a wrong number or size, cards that are not the deck,
            or no such seat.
    """
    if not is_whole(first_player) or not 0 <= first_player < rules.players:
        raise RecordError(
            f"needs a seat of 0 to {rules.players - 1}, got {shown(first_player)}",
            path=("first_player",),
        )
    if not _is_cards(stocks):
        raise RecordError(f"needs a list of stocks, got {shown(stocks)}", path=("deal", "stocks"))
    if len(stocks) != rules.boards:
        raise RecordError(
            f"{len(stocks)} stocks where these rules have {rules.boards}", path=("deal", "stocks")
        )
    for board, stock in enumerate(stocks):
        if not _is_cards(stock):
            raise RecordError(
                f"needs a list of cards, got {shown(stock)}", path=("deal", "stocks", board)
            )
        if len(stock) != rules.stocks:
            raise RecordError(
                f"stock {board} has {len(stock)} cards instead of {rules.stocks}",
                path=("deal", "stocks", board),
            )
    if not _is_cards(draw):
        raise RecordError(f"needs a list of cards, got {shown(draw)}", path=("deal", "draw"))
    dealt: Counter[int] = Counter()
    for cards in (*stocks, draw):
        for card in cards:
            if not is_whole(card) or not 1 <= card <= WILD:
                raise RecordError(f"{shown(card)} is no card (1 to {WILD})", path=("deal",))
            dealt[int(card)] += 1
    for card in range(1, WILD + 1):
        right = rules.wilds if card == WILD else rules.copies
        if dealt[card] != right:
            raise RecordError(
                f"not the deck: {dealt[card]} cards of {card_text(card)} instead of {right}",
                path=("deal",),
            )


def replay(data: Mapping[str, Any], ply: int | None = None, *, finished: bool = False) -> Replay:
    """Follow a record event by event through the engine.

    All of it is followed and checked, whatever `ply` is. A record without an end event is a game
    still running and may stop after any choice and what that caused; once over, it has to say so.

    Args:
        data: the record.
        ply: choices (plays, discards, passes) made before the state returned; None for all.
        finished: refuse a game that is still running.

    Raises:
        RecordError: (a ValueError) no record, or an event that cannot follow from the deal and the
            events before it.
    """
    rules, seed, agents, events, start = _opening(data)
    state, before = start.copy(), start.copy()
    actions: list[int] = []
    scripts: dict[int, list[int]] = {}
    stop = int(ply) if is_whole(ply) else -1
    wanted = start.copy() if stop == 0 else None
    at = _follow(events, 0, first_events(start))
    while at < len(events):
        if state[layout.REASON]:
            raise RecordError("an event after the end", event=at)
        action = _action_of(state, rules, events[at], at)
        script = _next_reshuffle(events, at + 1)
        np.copyto(before, state)
        if not _shuffles_alike(state, action, script):
            moves.apply_scripted(state, action, script)
            if state[layout.RESHUFFLES] != before[layout.RESHUFFLES]:
                scripts[len(actions)] = [int(card) for card in script]
        at = _follow(events, at, step_events(rules, before, state, action))
        actions.append(action)
        if len(actions) == stop:
            wanted = state.copy()
    if finished and not state[layout.REASON]:
        raise RecordError("no end event, and the game is not over", path=("events",))
    if ply is None:
        return Replay(rules, seed, start, state, actions, scripts, agents)
    if wanted is None:
        raise RecordError(
            f"needs a whole number from 0 to {len(actions)}, got {shown(ply)}", path=("ply",)
        )
    del actions[stop:]
    scripts = {index: cards for index, cards in scripts.items() if index < stop}
    return Replay(rules, seed, start, wanted, actions, scripts, agents)


def check(data: Mapping[str, Any]) -> Replay:
    """Follow the record of a finished game to its end.

    Raises:
        RecordError: (a ValueError) as `replay`, and for a game that is not over.
    """
    return replay(data, finished=True)


def _opening(
    data: Mapping[str, Any],
) -> tuple[Rules, int | None, list[str] | None, list[Any], State]:
    """What a record opens with, checked: rules, seed, agents, raw events, array after the deal."""
    if not isinstance(data, Mapping):
        raise RecordError(f"needs an object, got {shown(data)}")
    if not _same(FORMAT, data.get("format")):
        raise RecordError(f"needs {FORMAT!r}, got {shown(data.get('format'))}", path=("format",))
    if not _same(VERSION, data.get("version")):
        raise RecordError(
            f"only version {VERSION} is readable, got {shown(data.get('version'))}",
            path=("version",),
        )
    for key in ("rules", "first_player", "deal", "events"):
        if key not in data:
            raise RecordError("is missing", path=(key,))
    rules = _rules_of(data["rules"])
    seed, agents = data.get("seed"), data.get("agents")
    if seed is not None and (not is_whole(seed) or not 0 <= seed < 1 << 64):
        raise RecordError(
            f"needs a whole number from 0 to 2**64 - 1 or null, got {shown(seed)}", path=("seed",)
        )
    if agents is not None:
        if not _is_list(agents) or not all(isinstance(agent, str) for agent in agents):
            raise RecordError(f"needs a list of names, got {shown(agents)}", path=("agents",))
        if len(agents) != rules.players:
            raise RecordError(f"{len(agents)} names for {rules.players} players", path=("agents",))
        agents = list(agents)
    deal = data["deal"]
    if not isinstance(deal, Mapping):
        raise RecordError(f"needs an object, got {shown(deal)}", path=("deal",))
    if not _is_list(deal.get("stocks")):
        raise RecordError("needs a list of stocks, one a board", path=("deal", "stocks"))
    stocks = [
        _cards_of(stock, ("deal", "stocks", board)) for board, stock in enumerate(deal["stocks"])
    ]
    draw = _cards_of(deal.get("draw"), ("deal", "draw"))
    check_deal(rules, stocks, draw, data["first_player"])
    events = data["events"]
    if not _is_list(events):
        raise RecordError(f"needs a list, got {shown(events)}", path=("events",))
    far = next((at for at, event in enumerate(events) if _is_far_draw(event)), None)
    if far is not None and rules.players != 2:
        raise RecordError(
            "two players may draw from opposite ends, not more", event=far, path=("end",)
        )
    start = layout.new_state(rules, two_ended=far is not None)
    cards = np.array([*(card for stock in stocks for card in stock), *draw], dtype=np.int32)
    deal_cards(start, cards, int(data["first_player"]), np.uint64(seed or 0))
    if seed is not None:
        dealt = layout.new_state(rules, two_ended=bool(start[layout.TWO_ENDED]))
        deal_seed(dealt, np.uint64(seed), int(data["first_player"]))
        if deal_of(dealt) == deal_of(start):  # then the generator stands where this deal left it
            start = dealt
    return rules, seed, agents, list(events), start


def _rules_of(data: Any) -> Rules:
    try:
        return Rules.from_dict(data)
    except RulesError as error:
        inside = isinstance(data, Mapping)
        raise RecordError(
            str(error), path=("rules", error.field) if inside else ("rules",)
        ) from error
    except (ValueError, TypeError, RecursionError) as error:
        raise RecordError(f"cannot be read ({type(error).__name__})", path=("rules",)) from error


def _cards_of(data: Any, path: tuple[str | int, ...]) -> list[int]:
    if not _is_list(data):
        raise RecordError(f"needs a list of cards, got {shown(data)}", path=path)
    for place, text in enumerate(data):
        if not isinstance(text, str) or text not in _CARDS:
            raise RecordError(
                f"{shown(text)} is no card of a record ('1' to '12' or 'S')", path=(*path, place)
            )
    return [_CARDS[text] for text in data]


def _is_far_draw(event: Any) -> bool:
    return (
        isinstance(event, Mapping)
        and _same("draw", event.get("type"))
        and _same("bottom", event.get("end"))
    )


def _next_reshuffle(events: list[Any], at: int) -> Any:
    """The order of the reshuffle among the consequences from `at`; empty where none is told."""
    for event in events[at : at + 4]:
        kind = event.get("type") if isinstance(event, Mapping) else None
        if kind == "reshuffle":
            cards = event.get("cards")
            if _is_list(cards) and all(isinstance(c, str) and c in _CARDS for c in cards):
                return np.array([_CARDS[c] for c in cards], dtype=np.int32)
        if kind not in ("complete", "draw"):
            break
    return _NO_SCRIPT


def _shuffles_alike(state: State, action: int, script: Any) -> bool:
    """Do the action if the game's own generator makes the reshuffle that the record tells.

    So the generator goes on as it did in the game recorded. Where it does not make it (the seed is
    unknown, or somebody gave the order), nothing is done.
    """
    if not len(script):
        return False
    trial = state.copy()
    moves.apply(trial, action)
    at = int(trial[layout.AT_DRAW])
    alike = trial[layout.RESHUFFLES] != state[layout.RESHUFFLES] and np.array_equal(
        trial[at : at + len(script)], script
    )
    if alike:
        np.copyto(state, trial)
    return bool(alike)


def _action_of(state: State, rules: Rules, event: Any, at: int) -> int:
    """The action id of a choice; RecordError where the event is none or not legal now."""
    kind = _kind_of(event, at)
    player = int(state[layout.PLAYER])
    if kind not in _CHOICES:
        _refuse_consequence(state, event, kind, at)
    if is_whole(event.get("player")) and event["player"] != player:
        raise RecordError(
            f"player {event['player']} acts in the turn of {player}", event=at, path=("player",)
        )
    names_board = bool(rules.teams) and kind != "pass" and event.get("from") != "hand"
    _check_fields(event, kind, at, ("board",) if names_board else ())
    _whole_field(event, "player", "player", rules.players, at)
    other = names_board and _on_other_board(rules, player, event, at)
    if kind == "play":
        action = _play_action(state, rules, event, at, other)
    elif kind == "discard":
        action = _discard_action(state, rules, event, at, other)
    else:
        action = moves.A_PASS
    if not moves.is_legal(state, action):
        raise RecordError(_why_illegal(state, rules, action), event=at)
    return action


def _play_action(state: State, rules: Rules, event: Any, at: int, other: bool) -> int:
    """The id of a play whose card is where the event says and fits the pile as it says."""
    pile = _whole_field(event, "to", "building pile", layout.PILES, at)
    card = _card_field(event, at)
    source = event["from"]
    if not isinstance(source, str) or source not in _SOURCES:
        reason = f"no source {shown(source)}: 'stock', 'hand' or 'discard:0' to 'discard:3'"
        raise RecordError(reason, event=at, path=("from",))
    if source == "hand":
        action = moves.A_HAND + 4 * (card - 1) + pile
        _check_in_hand(state, event, card, at)
    else:
        if source == "stock":
            action = (moves.A_STOCK2 if other else moves.A_STOCK) + pile
            cell = layout.STOCK_TOP
        else:
            action = (moves.A_DISCARD2 if other else moves.A_DISCARD) + 4 * _SOURCES[source] + pile
            cell = layout.TOP + _SOURCES[source]
        top = int(state[layout.board_at(acting_board(state, rules, action)) + cell])
        if top != card:
            there = f"{card_text(top)} is" if top else "it is empty"
            reason = f"{event['card']} is not on top of {source}, {there}"
            raise RecordError(reason, event=at, path=("card",))
    wanted = int(state[layout.HEIGHT + pile]) + 1
    if card not in (WILD, wanted):
        reason = f"{event['card']} does not fit building pile {pile}, which wants {wanted}"
        raise RecordError(reason, event=at, path=("to",))
    if not _same(wanted, event["as"]):
        reason = f"counted as {shown(event['as'])}, building pile {pile} wants {wanted}"
        raise RecordError(reason, event=at, path=("as",))
    return action


def _discard_action(state: State, rules: Rules, event: Any, at: int, other: bool) -> int:
    """The id of a discard whose card is in hand."""
    pile = _whole_field(event, "to", "discard pile", layout.PILES, at)
    card = _card_field(event, at)
    if other and not rules.open_boards:
        reason = f"player {event['player']} may not discard on board {event['board']}"
        raise RecordError(reason, event=at, path=("board",))
    _check_in_hand(state, event, card, at)
    return (moves.A_END2 if other else moves.A_END) + 4 * (card - 1) + pile


def _check_in_hand(state: State, event: Mapping[str, Any], card: int, at: int) -> None:
    if not state[layout.hand_at(int(state[layout.PLAYER])) + card]:
        raise RecordError(f"{event['card']} is not in hand", event=at, path=("card",))


def _on_other_board(rules: Rules, player: int, event: Mapping[str, Any], at: int) -> bool:
    """Whether the event's board is the team's other one rather than the player's own."""
    own = rules.board_of(player)
    board = _whole_field(event, "board", "board", rules.boards, at)
    if board == own:
        return False
    if board != (own + rules.teams) % rules.boards:
        raise RecordError(f"player {player} may not touch board {board}", event=at, path=("board",))
    return True


def _refuse_consequence(state: State, event: Mapping[str, Any], kind: str, at: int) -> NoReturn:
    """Say why a draw, reshuffle, completed pile or end cannot stand where a choice is due."""
    player = int(state[layout.PLAYER])
    if kind == "end":
        reason = "ended although the game is not over"
    elif kind == "complete":
        reason = f"pile {shown(event.get('pile'))} is not complete"
    elif kind == "reshuffle":
        left = int(state[layout.DRAW_HI]) - int(state[layout.DRAW_LO])
        reason = "reshuffled although no card is due"
        if left:
            reason = f"reshuffled while the draw pile still has cards ({left}) and none is due"
    elif event.get("player") != player:
        reason = f"player {shown(event.get('player'))} draws in the turn of {player}"
    else:
        cards: Any = event.get("cards")
        reason = f"drew {len(cards) if _is_list(cards) else '?'} cards, 0 are due"
    raise RecordError(reason, event=at)


def _why_illegal(state: State, rules: Rules, action: int) -> str:
    """Which rule forbids an action although its card is in place."""
    move = MOVES[action]
    player = int(state[layout.PLAYER])
    in_hand = int(state[layout.hand_at(player)])
    if move.kind == "pass" and in_hand:
        return f"passed with cards in hand ({in_hand})"
    if move.kind == "pass" and (
        state[layout.DRAW_LO] != state[layout.DRAW_HI] or state[layout.COMPLETED_SIZE]
    ):
        return "passed although a card can be drawn"
    stock_plays = [*range(moves.A_STOCK, moves.A_HAND), *range(moves.A_STOCK2, moves.A_DISCARD2)]
    if rules.must_play_stock and any(moves.is_legal(state, play) for play in stock_plays):
        return f"player {player} has to play a stock card (must_play_stock)"
    if move.kind == "discard" and move.card == WILD and not rules.wild_discard:
        return "a wild may not be discarded (wild_discard is false)"
    if move.kind == "discard":
        return f"{card_text(move.card)} may not go on that discard pile (ordered_discards)"
    return f"not legal for player {player}"


def _follow(events: list[Any], at: int, due: list[dict[str, Any]]) -> int:
    """Compare what is due with the events from `at`; returns the index behind them."""
    for place, right in enumerate(due, at):
        if place >= len(events):
            raise RecordError(_missing(right), path=("events",))
        if not _same(right, events[place]):
            _refuse_difference(right, events[place], place)
    return at + len(due)


def _missing(right: Mapping[str, Any]) -> str:
    """Say what must stand at a place of the record and does not."""
    kind = right["type"]
    if kind == "end":
        return f"no end event, although the game is over ({right['reason']})"
    if kind == "complete":
        return f"pile {right['pile']} is full and was not set aside"
    if kind == "reshuffle":
        return "a card is due, the draw pile is empty, and the completed piles were not reshuffled"
    if kind == "draw":
        return f"player {right['player']} has to draw {len(right['cards'])} cards here and did not"
    return f"player {right['player']} moves here"


def _refuse_difference(right: Mapping[str, Any], event: Any, at: int) -> NoReturn:
    """Say how an event differs from what must stand there."""
    kind = _kind_of(event, at)
    player = event.get("player", right.get("player"))
    if kind == "reshuffle" and right["type"] == "draw":
        reason = f"reshuffled while the draw pile still has cards: {_missing(right)}"
    elif kind != right["type"] and right["type"] == "draw" and player != right["player"]:
        reason = f"it is the turn of player {right['player']}, who has to draw"
    elif kind != right["type"] and right["type"] == "end":
        reason = f"the game is over ({right['reason']}), its end must stand here"
    elif kind != right["type"]:
        reason = _missing(right)
    else:
        _check_fields(event, kind, at, ("end",) if "end" in right else ())
        field = next(key for key in right if not _same(right[key], event[key]))
        reason, path = _difference(right, event, kind, field, at)
        raise RecordError(reason, event=at, path=path)
    raise RecordError(reason, event=at)


def _difference(
    right: Mapping[str, Any], event: Mapping[str, Any], kind: str, field: str, at: int
) -> tuple[str, tuple[str | int, ...]]:
    """How a field of an event of the right type differs, and the path to it."""
    value, due = event[field], right[field]
    if field == "player":
        return f"player {shown(value)} draws in the turn of {due}", (field,)
    if field == "pile":
        return f"pile {due} is complete, not {shown(value)}", (field,)
    if field != "cards":
        return f"{field} {shown(value)}, right is {shown(due)}", (field,)
    try:
        cards = [card_text(card) for card in _cards_of(value, ("cards",))]
    except RecordError as error:
        raise RecordError(error.reason, event=at, path=error.path) from None
    if kind == "reshuffle":
        return "the reshuffled cards are not those of the completed piles", (field,)
    for place, (card, next_card) in enumerate(zip(cards, due, strict=False)):
        if card != next_card:
            return f"drew {card}, the pile's next card is {next_card}", (field, place)
    return f"drew {len(cards)} cards, {len(due)} are due", (field,)


def _kind_of(event: Any, at: int) -> str:
    if not isinstance(event, Mapping):
        raise RecordError(f"needs an object, got {shown(event)}", event=at)
    kind = event.get("type")
    if not isinstance(kind, str) or kind not in _FIELDS:
        raise RecordError(
            f"no type of event {shown(kind)}: {', '.join(_FIELDS)}", event=at, path=("type",)
        )
    return kind


def _check_fields(event: Mapping[str, Any], kind: str, at: int, optional: tuple[str, ...]) -> None:
    """Refuse missing and unknown fields; those of `optional` are due as well."""
    fields = ("type", *_FIELDS[kind], *optional)
    for key in fields:
        if key not in event:
            raise RecordError(f"the {kind} has no {key!r}", event=at, path=(key,))
    for key in event:
        if key not in fields:
            raise RecordError(f"the {kind} has an unknown field {shown(key)}", event=at)


def _whole_field(event: Mapping[str, Any], key: str, name: str, count: int, at: int) -> int:
    value = event[key]
    if not is_whole(value) or not 0 <= value < count:
        raise RecordError(
            f"no {name} {shown(value)}: they are 0 to {count - 1}", event=at, path=(key,)
        )
    return int(value)


def _card_field(event: Mapping[str, Any], at: int) -> int:
    text = event["card"]
    if not isinstance(text, str) or text not in _CARDS:
        raise RecordError(
            f"{shown(text)} is no card of a record ('1' to '12' or 'S')", event=at, path=("card",)
        )
    return _CARDS[text]


def _is_cards(value: Any) -> bool:
    """Whether it can be a list of cards given by a program: any sequence or row of an array."""
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def _same(right: Any, value: Any) -> bool:
    """Equality as JSON has it: 1 is neither true nor 1.0, the order of keys does not matter."""
    if isinstance(right, Mapping):
        return (
            isinstance(value, Mapping)
            and len(right) == len(value)
            and all(key in value and _same(item, value[key]) for key, item in right.items())
        )
    if isinstance(right, list):
        return (
            _is_list(value)
            and len(right) == len(value)
            and all(_same(a, b) for a, b in zip(right, value, strict=True))
        )
    if isinstance(right, int):
        return is_whole(value) and bool(value == right)
    return type(right) is type(value) and bool(right == value)


# Files -----------------------------------------------------------------------------------------


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def parse_line(text: str, line: int | None = None) -> dict[str, Any]:
    """The JSON object in one line of a file; whether it is a record is for `replay` to say.

    Raises:
        RecordError: no JSON, or no object.
    """
    try:
        data = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        if isinstance(error, json.JSONDecodeError):  # which counts lines within this one
            reason = f"{error.msg} at column {error.colno}"
        raise RecordError(f"no JSON: {reason}", line=line) from None
    if not isinstance(data, dict):
        raise RecordError(f"needs an object, got {shown(data)}", line=line)
    return data


def read_records(path: str | os.PathLike[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The records of a .jsonl file one by one, unchecked, each with its line number from 1.

    Blank lines are skipped.

    Raises:
        RecordError: a line that is no JSON object; `.line` says which.
        OSError: the file cannot be read.
    """
    with open(path, "rb") as file:
        for line, raw in enumerate(file, 1):
            try:
                text = raw.decode("utf-8-sig" if line == 1 else "utf-8")
            except UnicodeDecodeError:
                raise RecordError("not UTF-8 text", line=line) from None
            if text.strip():
                yield line, parse_line(text, line)


def write_record(file: TextIO, data: Mapping[str, Any]) -> None:
    """Write a record as one line to an open text file."""
    file.write(json.dumps(data, separators=(",", ":"), allow_nan=False) + "\n")


def append_record(path: str | os.PathLike[str], data: Mapping[str, Any]) -> None:
    """Add a record as one line to a .jsonl file, which is made if there is none.

    Raises:
        OSError: the file cannot be written.
    """
    whole = True
    if os.path.isfile(path) and os.path.getsize(path):  # not a pipe, which knows no end
        with open(path, "rb") as written:
            written.seek(-1, os.SEEK_END)
            whole = written.read() == b"\n"
    with open(path, "a", encoding="utf-8", newline="\n") as file:
        if not whole:  # the last line of a file from elsewhere may lack its end
            file.write("\n")
        write_record(file, data)


def check_file(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Check every record of a .jsonl file; the games must be finished.

    Returns:
        {"valid": True, "records": n}, or for the first event that cannot follow
        {"valid": False, "line": l, "event": i or None, "error": text}.

    Raises:
        OSError: the file cannot be read.
    """
    records = 0
    try:
        for line, data in read_records(path):
            try:
                check(data)
            except RecordError as error:
                error.line = line
                raise
            records += 1
    except RecordError as error:
        return {"valid": False, "line": error.line, "event": error.event, "error": str(error)}
    return {"valid": True, "records": records}


# Text ------------------------------------------------------------------------------------------


def event_text(event: Mapping[str, Any], names: Sequence[str], *, playing: bool = False) -> str:
    """One event as a sentence for people, piles numbered from 1.

    Args:
        event: an event of a record, or what `seen_event` left of it.
        names: what to call each seat; "you" takes its own verbs.
        playing: whether cards have the names of playing cards.
    """
    kind = event["type"]

    def named(card: str) -> str:
        return card_text(_CARDS[card], playing=playing)

    board = f" of board {event['board']}" if "board" in event else ""
    if kind == "draw":
        drawn = map(named, event.get("cards", ()))
        cards = " ".join(drawn) if "cards" in event else _cards(event["count"])
        far = " from the far end" if "end" in event else ""
        return f"{_who(event, names, 'draws')} {cards}{far}"
    if kind == "reshuffle":
        count = event["count"] if "count" in event else len(event["cards"])
        return f"the completed piles are shuffled into a new draw pile of {_cards(count)}"
    if kind == "complete":
        return f"building pile {event['pile'] + 1} is complete"
    if kind == "play":
        card = named(event["card"])
        if event["card"] == "S":
            card += f" as {card_text(event['as'], playing=playing)}"
        source = event["from"]
        place = "hand" if source == "hand" else "the stock"
        if source.startswith("discard:"):
            place = f"discard pile {int(source[-1]) + 1}"
        to = f"on building pile {event['to'] + 1}"
        return f"{_who(event, names, 'plays')} {card} from {place}{board} {to}"
    if kind == "discard":
        to = f"on discard pile {event['to'] + 1}{board}"
        return f"{_who(event, names, 'discards')} {named(event['card'])} {to}"
    if kind == "pass":
        return _who(event, names, "passes")
    scores = event["scores"]
    reason = event["reason"].replace("_", " ")
    if event["winner"] is None:
        return f"the game is over ({reason}): nobody wins"
    winner = f"team {event['winner']}"
    if len(scores) == len(names):
        winner = names[event["winner"]]
    won = "win" if winner == "you" else "wins"
    return f"the game is over ({reason}): {winner} {won} {scores[event['winner']]} points"


def _who(event: Mapping[str, Any], names: Sequence[str], verb: str) -> str:
    name = names[event["player"]]
    if name == "you":
        verb = verb.removesuffix("es" if verb == "passes" else "s")
    return f"{name} {verb}"


def _cards(count: int) -> str:
    return "1 card" if count == 1 else f"{count} cards"


def as_text(data: Mapping[str, Any]) -> str:
    """A record as readable text: what is played, the deal, and every turn with its events.

    Raises:
        RecordError: (a ValueError) as `replay`.
    """
    told = replay(data)
    rules = told.rules
    defaults = Rules(players=rules.players, teams=rules.teams).to_dict()
    changed = [f"{key}={value}" for key, value in rules.to_dict().items() if value != defaults[key]]
    lines = [
        f"Skip-Bo, {rules.players} players"
        + (f" in {rules.teams} teams" if rules.teams else "")
        + f", {rules.boards} stocks of {rules.stocks}"
    ]
    if changed:
        lines.append("rules: " + ", ".join(changed))
    if told.seed is not None:
        lines.append(f"seed: {told.seed}")
    for seat, agent in enumerate(told.agents or ()):
        shown_name = "".join(c if c.isprintable() else "\ufffd" for c in agent)
        lines.append(f"player {seat}: {shown_name}")
    for board, stock in enumerate(data["deal"]["stocks"]):
        lines.append(f"stock {board}, top first: {' '.join(reversed(stock))}")
    names = [f"player {seat}" for seat in range(rules.players)]
    turn, begins = 0, True
    events = data["events"]
    for at, event in enumerate(events):
        # Piles that are shuffled as a turn begins belong to it: its draw comes next.
        first = events[at + 1] if event["type"] == "reshuffle" and at + 1 < len(events) else event
        if begins and "player" in first:
            turn += 1
            lines += ["", f"turn {turn}, player {first['player']}"]
            begins = False
        text = event_text(event, names).removeprefix(f"player {event.get('player')} ")
        lines.append(text if event["type"] == "end" else f"  {text}")
        begins = begins or event["type"] in ("discard", "pass")
    return "\n".join(lines)
