"""A slow, plain-Python Skip-Bo that the tests compare the compiled engine with.

It is written from the settled rules alone (rules.md, whose sentences stand in the comments) and
shares no code with the package. It plays, lists legal actions, keeps the record's events and
checks records. It does not shuffle, hold a random generator, choose moves, play matches, encode
observations, or know the two-ended draw pile of the evaluation.

Cards are ints: 1 to 12, and 13 for the wild. A board is one stock with its four discard piles:
one board a player, and 2 x teams boards in a team game. A side is a player, or a team.

    id            action (d = discard pile, b = building pile, both 0..3; r = rank, 13 the wild)
    0 + b               own stock's top to building pile b
    4 + 4(r-1) + b      hand card of rank r to building pile b
    56 + 4d + b         top of own discard pile d to building pile b
    72 + 4(r-1) + d     end the turn: discard hand card of rank r on own discard pile d
    124                 PASS
    125 + b             team only: the other board's stock top to building pile b
    129 + 4d + b        team only: top of the other board's discard pile d to building pile b
    145 + 4(r-1) + d    team discards only: discard hand card of rank r on the other board's pile d
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

WILD = 13
PASS = 124
MOST_IN_HAND = 20  # "never beyond 20 in hand"

DEFAULTS: dict[str, Any] = {
    "players": 2,
    "teams": 0,
    "stock_size": None,
    "hand_size": 5,
    "draw_per_turn": None,
    "copies": 12,
    "wilds": 18,
    "first_player": "random",
    "must_play_stock": False,
    "wild_discard": True,
    "ordered_discards": False,
    "team_discard": "own",
    "stalemate": "draw",
    "max_turns": 2000,
    "target_score": 500,
}


class ReshuffleError(ValueError):
    """The caller's reshuffle is missing or is no permutation of the completed cards.

    Not an illegal action: the game stops in the middle of a draw and is of no further use.
    """


# ---------------------------------------------------------------------------------------------
# Rules and decks
# ---------------------------------------------------------------------------------------------


def full_rules(rules: dict[str, Any]) -> dict[str, Any]:
    """Fill in the defaults and resolve `stock_size`; ValueError for what cannot be."""
    unknown = sorted(set(rules) - set(DEFAULTS))
    if unknown:
        raise ValueError(f"rules: unknown fields {unknown}, known are {sorted(DEFAULTS)}")
    full = {**DEFAULTS, **rules}

    def whole(name: str, low: int, high: int | None) -> None:
        value = full[name]
        if type(value) is not int or value < low or (high is not None and value > high):
            raise ValueError(f"rules: {name}={value!r} is not a whole number {low} to {high}")

    # "12 x copies": "`copies` (1 to 20) and `wilds` (0 to 60) express any such deck"
    whole("copies", 1, 20)
    whole("wilds", 0, 60)
    # "`hand_size` 1 to 20 (default 5), `target_score` and `max_turns` at least 1"
    whole("hand_size", 1, 20)
    whole("max_turns", 1, None)
    whole("target_score", 1, None)
    # "House rule `draw_per_turn=n` (1 to 20; default None)"
    if full["draw_per_turn"] is not None:
        whole("draw_per_turn", 1, 20)
    for name in ("must_play_stock", "wild_discard", "ordered_discards"):
        if type(full[name]) is not bool:
            raise ValueError(f"rules: {name}={full[name]!r} is neither true nor false")
    if full["team_discard"] not in ("own", "team"):
        raise ValueError(f"rules: team_discard={full['team_discard']!r} is neither own nor team")
    if full["stalemate"] not in ("draw", "fewest_stock"):
        raise ValueError(f"rules: stalemate={full['stalemate']!r} is unknown")

    if type(full["teams"]) is not int or full["teams"] not in (0, 2, 3):
        raise ValueError(f"rules: teams={full['teams']!r} is not 0, 2 or 3")
    if full["teams"] == 0:
        # "`players` 2 to 6 as individuals"
        whole("players", 2, 6)
    else:
        # "`teams` 2 or 3, players a multiple of it, 2 to 4 members a team"
        whole("players", 2 * full["teams"], 4 * full["teams"])
        if full["players"] % full["teams"] != 0:
            raise ValueError(f"rules: {full['players']} players do not make {full['teams']} teams")
    boards = board_count(full)
    if full["first_player"] != "random":
        whole("first_player", 0, full["players"] - 1)

    # "30 each for 2 to 4 stocks, 20 each for 5 or 6"; "None means the default size, which goes by
    # the number of stocks"; "any 1 to 40 that the deck can deal"
    if full["stock_size"] is None:
        full["stock_size"] = 30 if boards <= 4 else 20
    whole("stock_size", 1, 40)

    # "12 x copies + wilds - boards x stock_size must be `hand_size` or more"
    cards = 12 * full["copies"] + full["wilds"]
    if cards - boards * full["stock_size"] < full["hand_size"]:
        raise ValueError(
            f"rules: {cards} cards less {boards} stocks of {full['stock_size']} leave "
            f"{cards - boards * full['stock_size']}, fewer than a hand of {full['hand_size']}"
        )
    return full


def board_count(rules: dict[str, Any]) -> int:
    """The number of boards, each a stock with four discard piles."""
    full = {**DEFAULTS, **rules}
    # "Each has a face-down stock [...], four discard piles"; "Each team has two stocks and two sets
    # of four discard piles however many members it has"; "there are 2 x teams boards"
    return int(2 * full["teams"] if full["teams"] else full["players"])


def deck(rules: dict[str, Any]) -> list[int]:
    """Every card of the deck, in order: `copies` of each rank and the `wilds`."""
    full = {**DEFAULTS, **rules}
    cards = [rank for rank in range(1, 13) for _ in range(full["copies"])]
    return cards + [WILD] * full["wilds"]


def card_text(card: int) -> str:
    """The record's string for a card: "1" to "12", "S" for the wild."""
    return "S" if card == WILD else str(card)


def card_from_text(text: Any) -> int:
    """The card of a record's string; ValueError for anything else."""
    for card in range(1, WILD + 1):
        if type(text) is str and text == card_text(card):
            return card
    raise ValueError(f"{text!r} is no card")


# ---------------------------------------------------------------------------------------------
# The game
# ---------------------------------------------------------------------------------------------


class ReferenceGame:
    """One game of Skip-Bo from a given deal, the first player's first draw already made.

    Args:
        rules: field names and values as in design.md; what is missing takes its default.
        stocks: one list a board, bottom to top, so that the last card is the visible one.
        draw: the draw pile in the order in which it will be drawn.
        first_player: the seat that starts.
        reshuffle: takes the completed cards and gives them in the order in which they will be
            drawn. With None a reshuffle that comes due raises ReshuffleError.

    Attributes:
        rules: the full rules, with `stock_size` resolved.
        player: the seat to move (after the end, the seat that moved last).
        over, reason, winner, scores: the result; `winner` is a side or None, `scores` has one
            entry a side, `reason` is None, "stock_empty", "stalemate" or "turn_limit".
        passes, turns: the count towards a stalemate, and that towards `max_turns`.
        hands: one list a seat. stocks, discards[board][d]: bottom to top.
        building: four lists of true cards. completed: true cards of the piles set aside.
        draw: the draw pile in the order in which it will be drawn.
        events: the record's events so far.

    Raises:
        ValueError: for rules that cannot be, or stocks that are not one a board.
    """

    def __init__(
        self,
        rules: dict[str, Any],
        stocks: list[list[int]],
        draw: list[int],
        first_player: int,
        reshuffle: Callable[[list[int]], list[int]] | None = None,
    ) -> None:
        self.rules = full_rules(rules)
        self.players: int = self.rules["players"]
        self.teams: int = self.rules["teams"]
        if len(stocks) != board_count(self.rules):
            raise ValueError(f"{len(stocks)} stocks for {board_count(self.rules)} boards")
        if not 0 <= first_player < self.players:
            raise ValueError(f"no seat {first_player} among {self.players} players")
        self.reshuffle = reshuffle

        self.stocks = [list(stock) for stock in stocks]
        self.draw = list(draw)
        self.discards: list[list[list[int]]] = [[[], [], [], []] for _ in stocks]
        self.building: list[list[int]] = [[], [], [], []]
        self.completed: list[int] = []
        # "No hands are dealt: a player's hand is drawn when their first turn begins"
        self.hands: list[list[int]] = [[] for _ in range(self.players)]

        self.player = first_player
        self.passes = 0
        self.turns = 0
        self.over = False
        self.reason: str | None = None
        self.winner: int | None = None
        self.scores = [0] * self.sides()
        self.events: list[dict[str, Any]] = []
        self._begin_turn()

    # -- who owns what -------------------------------------------------------------------------

    def sides(self) -> int:
        """The number of sides: the teams, or the players where there are none."""
        return self.teams if self.teams else self.players

    def side_of_player(self, player: int) -> int:
        """The side of a seat."""
        # "player p is of team p mod teams"
        return player % self.teams if self.teams else player

    def side_of_board(self, board: int) -> int:
        """The side that a board belongs to."""
        # "board b belongs to team b mod teams"
        return board % self.teams if self.teams else board

    def own_board(self, player: int) -> int:
        """The board that the seat's "own" actions mean."""
        # "Player p's own board is (p // teams) mod 2 x teams + p mod teams"
        if not self.teams:
            return player
        return (player // self.teams) % 2 * self.teams + player % self.teams

    def other_board(self, player: int) -> int | None:
        """The team's other board; None where there are no teams."""
        if not self.teams:
            return None
        for board in range(2 * self.teams):
            same_team = self.side_of_board(board) == self.side_of_player(player)
            if same_team and board != self.own_board(player):
                return board
        raise AssertionError("a team has two boards")

    def may_discard_on_other_board(self) -> bool:
        """Whether the mover may end the turn on the team's other board too."""
        # "With three or more members a team the field [team_discard] is kept as given and has no
        # effect: both boards are open"
        if not self.teams:
            return False
        return self.rules["team_discard"] == "team" or self.players // self.teams >= 3

    # -- what is legal -------------------------------------------------------------------------

    def fits(self, card: int, pile: int) -> bool:
        """Whether the card may be put on the building pile now."""
        # "The card must be the rank that the building pile wants (one more than its height, 1 on an
        # empty pile) or a wild."
        return card == WILD or card == len(self.building[pile]) + 1

    def legal_actions(self) -> list[int]:
        """The sorted ids of all legal actions; empty when the game is over."""
        if self.over:
            return []
        stock_plays = self._stock_plays()
        # "while a stock top that the player may use fits a building pile, only such stock plays
        # are legal"; it comes before PASS, which is legal only when it "does not force a play"
        if self.rules["must_play_stock"] and stock_plays:
            return sorted(stock_plays)
        plays = stock_plays + self._hand_plays() + self._discard_plays()
        ends = self._discards(any_play_legal=bool(plays))
        # "PASS: legal exactly when the player to move has no card in hand, none can be drawn"
        if not self.hands[self.player] and not self._a_card_can_be_drawn():
            ends.append(PASS)
        return sorted(plays + ends)

    def _stock_plays(self) -> list[int]:
        """Plays of "the own stock's top" and, for partners, of the team's other stock."""
        plays = []
        for board, first_id in self._boards_with_first_id(own=0, other=125):
            if self.stocks[board]:  # "an empty stock has no top"
                for pile in range(4):
                    if self.fits(self.stocks[board][-1], pile):
                        plays.append(first_id + pile)
        return plays

    def _hand_plays(self) -> list[int]:
        plays = []
        for card in sorted(set(self.hands[self.player])):
            for pile in range(4):
                if self.fits(card, pile):
                    plays.append(4 + 4 * (card - 1) + pile)
        return plays

    def _discard_plays(self) -> list[int]:
        """Plays of "the top of any own discard pile (partners: also the team's other board)"."""
        plays = []
        for board, first_id in self._boards_with_first_id(own=56, other=129):
            for d in range(4):
                if self.discards[board][d]:
                    for pile in range(4):
                        if self.fits(self.discards[board][d][-1], pile):
                            plays.append(first_id + 4 * d + pile)
        return plays

    def _discards(self, any_play_legal: bool) -> list[int]:
        """The discards that end the turn, under the wild ban and the order."""
        in_order = []
        in_any_order = []
        for board, first_id in self._boards_with_first_id(own=72, other=145):
            if board != self.own_board(self.player) and not self.may_discard_on_other_board():
                continue
            for card in sorted(set(self.hands[self.player])):
                # "`wild_discard=False`: wilds may not be discarded"
                if card == WILD and not self.rules["wild_discard"]:
                    continue
                for d in range(4):
                    action = first_id + 4 * (card - 1) + d
                    in_any_order.append(action)
                    if self._keeps_order(card, self.discards[board][d]):
                        in_order.append(action)
        if not self.rules["ordered_discards"]:
            return in_any_order
        # "If no discard permitted by the wild ban keeps the order and no play is legal, every
        # discard but that of a banned wild is allowed"
        if not in_order and not any_play_legal:
            return in_any_order
        return in_order

    def _keeps_order(self, card: int, pile: list[int]) -> bool:
        """Whether `ordered_discards` lets the card go on that discard pile."""
        # "A card may be put only on an empty discard pile or on a top that is not lower. Only the
        # present top counts (5, wild, 9 is legal); equal is allowed; a wild may go on anything, and
        # anything on a wild"
        return not pile or card == WILD or pile[-1] == WILD or pile[-1] >= card

    def _boards_with_first_id(self, own: int, other: int) -> list[tuple[int, int]]:
        """The mover's own board, and the team's other one, each with the first of its ids."""
        boards = [(self.own_board(self.player), own)]
        other_board = self.other_board(self.player)
        if other_board is not None:
            boards.append((other_board, other))
        return boards

    def _a_card_can_be_drawn(self) -> bool:
        return bool(self.draw) or bool(self.completed)

    # -- what an action does -------------------------------------------------------------------

    def apply(self, action: int) -> None:
        """Carry out one action of the player to move; ValueError if illegal, changing nothing."""
        if type(action) is bool or action not in self.legal_actions():
            raise ValueError(f"action {action!r} is not legal for player {self.player}")
        action = int(action)
        own = self.own_board(self.player)
        other = self.other_board(self.player)
        if action < 4:
            self._play("stock", own, None, action)
        elif action < 56:
            self._play_from_hand((action - 4) // 4 + 1, (action - 4) % 4)
        elif action < 72:
            self._play("discard", own, (action - 56) // 4, (action - 56) % 4)
        elif action < 124:
            self._discard((action - 72) // 4 + 1, own, (action - 72) % 4)
        elif action == PASS:
            self._pass()
        elif action < 129:
            self._play("stock", other, None, action - 125)
        elif action < 145:
            self._play("discard", other, (action - 129) // 4, (action - 129) % 4)
        else:
            self._discard((action - 145) // 4 + 1, other, (action - 145) % 4)

    def _play_from_hand(self, card: int, pile: int) -> None:
        self.hands[self.player].remove(card)
        self._place(card, "hand", None, pile)

    def _play(self, source: str, board: int | None, d: int | None, pile: int) -> None:
        assert board is not None
        if source == "stock":
            # "A stock card played reveals the next at once."
            self._place(self.stocks[board].pop(), "stock", board, pile)
        else:
            # "A discard top played frees the card below."
            assert d is not None
            self._place(self.discards[board][d].pop(), f"discard:{d}", board, pile)

    def _place(self, card: int, source: str, board: int | None, pile: int) -> None:
        """Put a card that was just taken from its place on a building pile, and what follows."""
        # "Order inside one play: place the card; if the pile is full set it aside; if the stock is
        # empty and that wins, the game ends here; then refill an empty hand"

        # "A wild is a card of its own for ever: on a building pile it counts as the rank that the
        # pile wants" - the pile keeps the wild itself.
        self.building[pile].append(card)
        event = {
            "type": "play",
            "player": self.player,
            "card": card_text(card),
            "from": source,
            "to": pile,
            "as": len(self.building[pile]),
        }
        if self.teams and board is not None:
            event["board"] = board
        self.events.append(event)
        # "every play or discard sets it to 0"
        self.passes = 0

        # "A pile that reaches 12 is set aside at once and its place is free."
        if len(self.building[pile]) == 12:
            self.completed += self.building[pile]
            self.building[pile] = []
            self.events.append({"type": "complete", "pile": pile})

        # "playing the last card of the own stock wins at once"; "the team wins when both its
        # stocks are empty, whoever played the last card, from either board"
        side = self.side_of_player(self.player)
        if source == "stock" and self._stock_left(side) == 0:
            self._end(winner=side, reason="stock_empty")
            return

        # "After every play, from whatever source, an empty hand is refilled to `hand_size` at
        # once if any card can be drawn [...]; also when it was empty before that play"
        if not self.hands[self.player]:
            self._draw_cards(self.rules["hand_size"])

    def _discard(self, card: int, board: int | None, d: int) -> None:
        """End the turn with a discard."""
        # "The turn ends by discarding one card from hand on one own discard pile."
        assert board is not None
        self.hands[self.player].remove(card)
        self.discards[board][d].append(card)
        event = {"type": "discard", "player": self.player, "card": card_text(card), "to": d}
        if self.teams:
            event["board"] = board
        self.events.append(event)
        self.passes = 0  # "every play or discard sets it to 0"
        # "A hand emptied by the discard is not refilled until that player's next turn."
        self._end_turn()

    def _pass(self) -> None:
        """End the turn without a card."""
        # "a PASS adds 1 (also a PASS after plays in the same turn)"
        self.events.append({"type": "pass", "player": self.player})
        self.passes += 1
        self._end_turn()

    def _end_turn(self) -> None:
        # "`max_turns` counts turns ended by discard or PASS, over all seats together."
        self.turns += 1
        # "The game ends the moment it equals `players` (seats, not sides), even if plays exist."
        # "If the same PASS also makes a stalemate, it is a stalemate": so this comes first.
        if self.passes == self.players:
            self._end(winner=self._stalemate_winner(), reason="stalemate")
            return
        # "When it is reached the game is truncated before the next player draws: no winner"
        if self.turns >= self.rules["max_turns"]:
            self._end(winner=None, reason="turn_limit")
            return
        # "After a turn of seat p comes seat (p + 1) mod players, in teams too."
        self.player = (self.player + 1) % self.players
        self._begin_turn()

    def _begin_turn(self) -> None:
        held = len(self.hands[self.player])
        if self.rules["draw_per_turn"] is None:
            # "Draw up to five (`hand_size`)."
            self._draw_cards(self.rules["hand_size"] - held)
        else:
            # "draw n cards, whatever is held, but never beyond 20 in hand, or as many as exist"
            self._draw_cards(min(self.rules["draw_per_turn"], MOST_IN_HAND - held))

    # -- drawing -------------------------------------------------------------------------------

    def _draw_cards(self, wanted: int) -> None:
        """Draw so many cards one by one, with a reshuffle where one is needed and can be had."""
        drawn: list[int] = []
        for _ in range(wanted):
            # "Only when a card is needed and the draw pile is empty are the completed piles (with
            # their true identities) shuffled to a new draw pile; drawing then goes on."
            if not self.draw and self.completed:
                # "cards drawn before it are kept": draw, reshuffle, draw
                self._draw_event(drawn)
                drawn = []
                self._reshuffle()
            # "Draw and completed piles both empty: the hand stays short, down to zero"
            if not self.draw:
                break
            card = self.draw.pop(0)
            self.hands[self.player].append(card)
            drawn.append(card)
        self._draw_event(drawn)

    def _draw_event(self, cards: list[int]) -> None:
        # "A player who has nothing to draw has no draw event."
        if cards:
            texts = [card_text(card) for card in cards]
            self.events.append({"type": "draw", "player": self.player, "cards": texts})

    def _reshuffle(self) -> None:
        if self.reshuffle is None:
            raise ReshuffleError("a reshuffle is due and none was given")
        order = list(self.reshuffle(list(self.completed)))
        if Counter(order) != Counter(self.completed):
            raise ReshuffleError("the reshuffled cards are not those of the completed piles")
        self.completed = []
        self.draw = order
        self.events.append({"type": "reshuffle", "cards": [card_text(card) for card in order]})

    # -- the end -------------------------------------------------------------------------------

    def _stock_left(self, side: int) -> int:
        """The cards in the stocks of a side ("both, in a team")."""
        own = [s for board, s in enumerate(self.stocks) if self.side_of_board(board) == side]
        return sum(len(stock) for stock in own)

    def _stalemate_winner(self) -> int | None:
        # "`stalemate="draw"` (default): no winner"
        if self.rules["stalemate"] == "draw":
            return None
        # "the side with strictly the fewest wins [...]; if the lowest count is shared there is no
        # winner"
        left = [self._stock_left(side) for side in range(self.sides())]
        fewest = [side for side in range(self.sides()) if left[side] == min(left)]
        return fewest[0] if len(fewest) == 1 else None

    def _end(self, winner: int | None, reason: str) -> None:
        self.over = True
        self.reason = reason
        self.winner = winner
        # "25 to the winning side plus 5 per card left in every opposing stock; others 0"
        if winner is not None:
            opposing = [side for side in range(self.sides()) if side != winner]
            self.scores[winner] = 25 + 5 * sum(self._stock_left(side) for side in opposing)
        self.events.append(
            {"type": "end", "winner": winner, "reason": reason, "scores": list(self.scores)}
        )

    # -- looking at it -------------------------------------------------------------------------

    def all_cards(self) -> Counter[int]:
        """The multiset of the cards in all zones; it must always be the deck."""
        zones = [*self.hands, *self.stocks, *self.building, self.completed, self.draw]
        for board in self.discards:
            zones += board
        return Counter(card for zone in zones for card in zone)

    def public_table(self) -> dict[str, Any]:
        """All that every seat may see, and nothing else.

        "Public: building piles, every discard pile from bottom to top, every stock's top card and
        size, every hand's size, the draw pile's size, the completed piles' cards". "Hidden from
        all: the stocks below their top, and the draw pile's order." Beside the cards stand whose
        turn it is, the counts and the result.
        """
        return {
            "rules": dict(self.rules),
            "player": self.player,
            "hand_sizes": [len(hand) for hand in self.hands],
            "building": [list(pile) for pile in self.building],
            "discards": [[list(pile) for pile in board] for board in self.discards],
            "stock_tops": [stock[-1] if stock else None for stock in self.stocks],
            "stock_sizes": [len(stock) for stock in self.stocks],
            "draw_size": len(self.draw),
            "completed": sorted(self.completed),
            "passes": self.passes,
            "turns": self.turns,
            "over": self.over,
            "reason": self.reason,
            "winner": self.winner,
            "scores": list(self.scores),
        }

    def public_view(self, player: int) -> dict[str, Any]:
        """All that `player` may see: the table and the own hand.

        "Private: a hand, to its owner alone".
        """
        return {**self.public_table(), "you": player, "hand": sorted(self.hands[player])}


# ---------------------------------------------------------------------------------------------
# Records
# ---------------------------------------------------------------------------------------------


def replay_record(record: dict[str, Any]) -> ReferenceGame:
    """Play a record from its deal and return the finished game.

    The record's own reshuffle orders are used. Raises ValueError, with "event i: ..." for the
    first event that cannot follow from the deal and the events before it, or "record: ...",
    "rules: ...", "deal: ..." where the fault lies before the events. `seed` and `agents` are not
    looked at, since a record follows from its deal; nor is `rules["first_player"]` compared with
    `first_player`, since in a match a later game starts elsewhere.
    """
    events = _events_of(record)
    own_events: list[dict[str, Any]] = []  # becomes the game's list once the game is there
    compared = 0

    def compare() -> None:
        """Compare what the game has recorded since the last time with the record's events."""
        nonlocal compared
        while compared < len(own_events):
            if compared >= len(events):
                raise ValueError(f"event {compared}: missing, must be {own_events[compared]}")
            if not _same_json(own_events[compared], events[compared]):
                raise ValueError(
                    f"event {compared}: is {events[compared]}, must be {own_events[compared]}"
                )
            compared += 1

    def reshuffle(completed: list[int]) -> list[int]:
        """Give the order of the record's next event, which must be a reshuffle of these cards."""
        compare()
        if compared >= len(events):
            raise ValueError(f"event {compared}: missing, a reshuffle is due")
        event = events[compared]
        if event.get("type") != "reshuffle" or type(event.get("cards")) is not list:
            raise ValueError(f"event {compared}: is {event}, a reshuffle is due")
        try:
            order = [card_from_text(text) for text in event["cards"]]
        except ValueError as error:
            raise ValueError(f"event {compared}: {error}") from None
        if Counter(order) != Counter(completed):
            raise ValueError(
                f"event {compared}: the reshuffled cards are not those of the completed piles"
            )
        return order

    # Nothing is completed at the first draw, so no reshuffle is asked for before own_events is
    # the game's own list.
    game = _game_from_deal(record, reshuffle)
    own_events = game.events
    compare()
    while not game.over:
        if compared >= len(events):
            raise ValueError(f"event {compared}: missing, the game is not over (no end event)")
        try:
            action = _action_of_event(game, events[compared])
        except ValueError as error:
            raise ValueError(f"event {compared}: {error} ({events[compared]})") from None
        game.apply(action)
        compare()
    if compared < len(events):
        raise ValueError(f"event {compared}: an event after the end")
    return game


def check_record(record: dict[str, Any]) -> None:
    """Raise ValueError, naming the event, for a record that cannot be; see replay_record."""
    replay_record(record)


def _events_of(record: Any) -> list[dict[str, Any]]:
    """The events of a record that has the record's outer form."""
    if type(record) is not dict:
        raise ValueError("record: is not an object")
    if record.get("format") != "skipbo-record" or not _same_json(record.get("version"), 1):
        raise ValueError("record: is not a skipbo-record of version 1")
    events = record.get("events")
    if type(events) is not list:
        raise ValueError("record: has no list of events")
    for index, event in enumerate(events):
        if type(event) is not dict:
            raise ValueError(f"event {index}: is not an object")
    return events


def _game_from_deal(
    record: dict[str, Any], reshuffle: Callable[[list[int]], list[int]]
) -> ReferenceGame:
    """The game at its start, after checking that the deal is a deal of the rules' deck."""
    if type(record.get("rules")) is not dict:
        raise ValueError("rules: missing")
    rules = full_rules(record["rules"])
    deal = record.get("deal")
    if type(deal) is not dict or type(deal.get("draw")) is not list:
        raise ValueError("deal: missing")
    if type(deal.get("stocks")) is not list or any(type(s) is not list for s in deal["stocks"]):
        raise ValueError("deal: the stocks are not lists")
    try:
        stocks = [[card_from_text(text) for text in stock] for stock in deal["stocks"]]
        draw = [card_from_text(text) for text in deal["draw"]]
    except ValueError as error:
        raise ValueError(f"deal: {error}") from None
    check_deal(rules, stocks, draw)
    first_player = record.get("first_player")
    if type(first_player) is not int or not 0 <= first_player < rules["players"]:
        raise ValueError(f"record: first_player is {first_player!r}, no seat of the game")
    return ReferenceGame(record["rules"], stocks, draw, first_player, reshuffle)


def check_deal(rules: dict[str, Any], stocks: list[list[int]], draw: list[int]) -> None:
    """Raise ValueError for stocks and a draw pile that are no deal of the rules' deck."""
    full = full_rules(rules)
    if len(stocks) != board_count(full):
        raise ValueError(f"deal: {len(stocks)} stocks for {board_count(full)} boards")
    for board, stock in enumerate(stocks):
        if len(stock) != full["stock_size"]:
            raise ValueError(f"deal: stock {board} has {len(stock)} of {full['stock_size']} cards")
    dealt = Counter(draw)
    for stock in stocks:
        dealt += Counter(stock)
    if dealt != Counter(deck(full)):
        raise ValueError("deal: the dealt cards are not the deck")


def _action_of_event(game: ReferenceGame, event: dict[str, Any]) -> int:
    """The legal action of the player to move that the event tells of; ValueError if there is none.

    Only what chooses the action is read; the rest of the event is compared after the action.
    """
    kind = event.get("type")
    if kind not in ("play", "discard", "pass"):
        raise ValueError(f"player {game.player} has to play, discard or pass here")
    if not _same_json(event.get("player"), game.player):
        raise ValueError(f"it is the turn of player {game.player}")
    if kind == "pass":
        action = PASS
    else:
        to = event.get("to")
        if type(to) is not int or not 0 <= to < 4:
            raise ValueError(f"no pile {to!r}")
        card = card_from_text(event.get("card"))
        source = event.get("from")
        if kind == "discard":
            action = (145 if _on_other_board(game, event) else 72) + 4 * (card - 1) + to
        elif source == "hand":
            action = 4 + 4 * (card - 1) + to
        elif source == "stock":
            action = (125 if _on_other_board(game, event) else 0) + to
        elif source in ("discard:0", "discard:1", "discard:2", "discard:3"):
            first_id = 129 if _on_other_board(game, event) else 56
            action = first_id + 4 * int(source[-1]) + to
        else:
            raise ValueError(f"no source {source!r}")
    if action not in game.legal_actions():
        raise ValueError(f"action {action} is not legal for player {game.player}")
    return action


def _on_other_board(game: ReferenceGame, event: dict[str, Any]) -> bool:
    """Whether an event with a board is about the team's other board."""
    if not game.teams:
        return False
    board = event.get("board")
    if _same_json(board, game.own_board(game.player)):
        return False
    if _same_json(board, game.other_board(game.player)):
        return True
    raise ValueError(f"player {game.player} may not touch board {board!r}")


def _same_json(one: Any, other: Any) -> bool:
    """Equality as JSON: 1 is neither true nor 1.0; the order of keys does not matter."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
