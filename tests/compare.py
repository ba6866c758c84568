"""The compiled engine and the plain reference, side by side.

`compare_game` plays one game on `skipbo_env.Game` and on `tests.reference.ReferenceGame` with the
same deal and the same reshuffles and compares all there is after every step. `EngineGame` gives a
`Game` the reference's attribute names, which is what the hand-played cases need. Zones are read
from the engine's array by the BOARD table at the head of `skipbo_env.engine.layout`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, NamedTuple

from skipbo_env import make_agent
from skipbo_env.engine import layout, observe
from skipbo_env.game import Game
from skipbo_env.record import deal_of
from skipbo_env.rules import INDIVIDUALS, TEAM_TABLES, Rules
from tests.observation import KINDS, Observations
from tests.reference import WILD, ReferenceGame, card_from_text, check_deal, deck

AGENTS = ("random", "play-first", "simple", "greedy")
Chooser = Callable[[Game], int]


class Difference(AssertionError):
    """Engine and reference disagree; the message says where, and how to see it again."""


class Played(NamedTuple):
    """What a comparison went through.

    Attributes:
        decisions: actions done on both games, each followed by a full comparison.
        observations: observations compared.
        reason: how the game ended; None where it was left at the step limit.
    """

    decisions: int
    observations: int
    reason: str | None


# -- reading the engine's array ------------------------------------------------------------------


def hands_of(game: Game) -> list[list[int]]:
    """Every hand, sorted."""
    state, hands = game.state, []
    for seat in range(game.rules.players):
        at = layout.HEADER + layout.HAND_CELLS * seat
        hands.append(_cards(state[at + 1 : at + layout.HAND_CELLS].tolist()))
    return hands


def stocks_of(game: Game) -> list[list[int]]:
    """Every stock, bottom to top."""
    state, size = game.state, game.rules.stocks
    stocks = []
    for board in range(game.rules.boards):
        at = int(state[layout.AT_STOCKS]) + board * size
        left = int(state[layout.BOARD + layout.BOARD_CELLS * board + layout.STOCK_N])
        stocks.append(state[at : at + left].tolist())
    return stocks


def discards_of(game: Game) -> list[list[list[int]]]:
    """Every board's four discard piles, bottom to top."""
    state, cards = game.state, game.rules.deck_size
    at = int(state[layout.AT_DISCARDS])
    boards = []
    for board in range(game.rules.boards):
        depths = layout.BOARD + layout.BOARD_CELLS * board + layout.DEPTH
        piles = []
        for depth in state[depths : depths + 4].tolist():
            piles.append(state[at : at + depth].tolist())
            at += cards
        boards.append(piles)
    return boards


def building_of(game: Game) -> list[list[int]]:
    """The true cards of the building piles."""
    cells = game.state[layout.HEIGHT : layout.HEIGHT + 8].tolist()
    return [
        [WILD if bits >> place & 1 else place + 1 for place in range(height)]
        for height, bits in zip(cells[:4], cells[4:], strict=True)
    ]


def completed_of(game: Game) -> list[int]:
    """The true cards of the piles set aside, sorted."""
    return _cards(game.state[layout.COMPLETED + 1 : layout.COMPLETED + 14].tolist())


def draw_of(game: Game) -> list[int]:
    """The draw pile in the order in which it will be drawn."""
    at = int(game.state[layout.AT_DRAW])
    low, high = game.state[layout.DRAW_LO], game.state[layout.DRAW_HI]
    return game.state[at + int(low) : at + int(high)].tolist()


def cards_of(game: Game) -> Counter[int]:
    """The multiset of the cards in all zones of the engine's array."""
    zones = [*hands_of(game), *stocks_of(game), *building_of(game), completed_of(game)]
    zones += [draw_of(game), *chain.from_iterable(discards_of(game))]
    return Counter(chain.from_iterable(zones))


def header_of(game: Game) -> list[Any]:
    """What the kernels keep beside the zones and read instead of them; see `_header_due`."""
    state, header = game.state, []
    for board in range(game.rules.boards):
        at = layout.BOARD + layout.BOARD_CELLS * board
        header.append(state[at : at + layout.BOARD_CELLS].tolist())
    at = layout.HEADER
    header.append(state[at : at + layout.HAND_CELLS * game.rules.players : 14].tolist())
    header.append(state[layout.DISCARDED + 1 : layout.DISCARDED + 14].tolist())
    header.append(int(state[layout.COMPLETED_SIZE]))
    return header


def _cards(counts: list[int]) -> list[int]:
    """Sorted cards from counts by kind."""
    return [card for card, count in enumerate(counts, 1) if count for _ in range(count)]


class EngineGame:
    """A `Game` with the attribute names of `ReferenceGame`.

    Args:
        game: the game; it is played on.
        reshuffle: as the reference's: gives the completed cards in the order in which they will be
            drawn. None lets the engine shuffle.
    """

    def __init__(
        self, game: Game, reshuffle: Callable[[list[int]], list[int]] | None = None
    ) -> None:
        self.game = game
        self.reshuffle = reshuffle

    player = property(lambda self: self.game.player)
    over = property(lambda self: self.game.over)
    reason = property(lambda self: self.game.result["reason"] if self.game.over else None)
    winner = property(lambda self: self.game.result["winner"] if self.game.over else None)
    scores = property(lambda self: self.game.scores)
    passes = property(lambda self: int(self.game.state[layout.PASSES]))
    turns = property(lambda self: int(self.game.state[layout.TURNS]))
    hands = property(lambda self: hands_of(self.game))
    stocks = property(lambda self: stocks_of(self.game))
    discards = property(lambda self: discards_of(self.game))
    building = property(lambda self: building_of(self.game))
    completed = property(lambda self: completed_of(self.game))
    draw = property(lambda self: draw_of(self.game))
    events = property(lambda self: self.game.events())

    def legal_actions(self) -> list[int]:
        """The ids of all legal actions."""
        return self.game.legal_actions()

    def all_cards(self) -> Counter[int]:
        """The multiset of the cards in all zones."""
        return cards_of(self.game)

    def apply(self, action: int) -> None:
        """Do an action; where it causes a reshuffle, in the order that `reshuffle` gives."""
        if self.reshuffle is None:
            self.game.apply(action)
            return
        trial = self.game.clone()
        trial.apply(action)
        if trial.state[layout.RESHUFFLES] == self.game.state[layout.RESHUFFLES]:
            self.game.apply(action)
            return
        counts = trial.state[layout.RESHUFFLED + 1 : layout.RESHUFFLED + 14].tolist()
        self.game.apply(action, reshuffle=self.reshuffle(_cards(counts)))


# -- rule sets -----------------------------------------------------------------------------------


def any_rules(pick: Callable[[int, int], int]) -> Rules:
    """Some rules that can be dealt; every setting varies, and a pick of 0 is the plain choice.

    Args:
        pick: gives a whole number from its first to its last argument.
    """
    teams = (0, 0, 0, 2, 3)[pick(0, 4)]
    tables = TEAM_TABLES[teams] if teams else tuple(INDIVIDUALS)
    players = tables[pick(0, len(tables) - 1)]
    boards = 2 * teams if teams else players
    small = pick(0, 2) > 0  # small decks reshuffle often and run out
    copies, wilds = (pick(1, 4), pick(0, 6)) if small else (pick(1, 20), pick(0, 60))
    cards = 12 * copies + wilds
    hand_size = pick(1, min(20, cards - boards)) if pick(0, 1) else min(5, cards - boards)
    most = min(40, (cards - hand_size) // boards)
    usual = 30 if boards <= 4 else 20
    stock_size = None if usual <= most and pick(0, 1) else pick(1, most)
    return Rules(
        players=players,
        teams=teams,
        stock_size=stock_size,
        hand_size=hand_size,
        draw_per_turn=pick(1, 20) if pick(0, 3) == 3 else None,
        copies=copies,
        wilds=wilds,
        first_player=pick(0, players - 1) if pick(0, 1) else "random",
        must_play_stock=pick(0, 3) == 3,
        wild_discard=pick(0, 2) < 2,
        ordered_discards=pick(0, 2) == 2,
        team_discard=("own", "team")[pick(0, 1)],
        stalemate=("draw", "fewest_stock")[pick(0, 1)],
        max_turns=pick(1, 60) if pick(0, 4) == 4 else 2000,
    )


# -- comparing -----------------------------------------------------------------------------------


def compare_game(
    rules: Rules,
    seed: int,
    chooser: str | Chooser,
    max_steps: int | None = None,
) -> Played:
    """Play one game on both and compare them after every step.

    Compared each time: the seat to move, the result, scores, passes, turns, every zone with its
    true cards in order (hands and completed piles as multisets), the cells that the kernels keep
    beside the zones, legal actions, the mask, that all zones together are the deck, and the
    observations of every seat in both forms. At the end of the game, or at the step limit: the
    record's events.

    Args:
        rules: what is played.
        seed: of the deal, and of a named chooser.
        chooser: the name of an agent, or a function that picks a legal action.
        max_steps: leave the game after so many actions.

    Raises:
        Difference: the first one; it says how to play the game again.
    """
    choose = make_agent(chooser, seed=seed).act if isinstance(chooser, str) else chooser
    game = Game(rules, seed=seed)
    step, observations = 0, 0
    try:
        reference = reference_of(game)
        whole_deck = Counter(deck(reference.rules))
        compare_state(game, reference, whole_deck)
        observations += compare_observations(game, reference)
        while not game.over and step != max_steps:
            action = choose(game)
            step += 1
            game.apply(action)
            reference.apply(action)
            compare_state(game, reference, whole_deck)
            observations += compare_observations(game, reference)
        compare_values("events", game.events(), reference.events)
    except Exception as error:
        name = repr(chooser) if isinstance(chooser, str) else "chooser"
        raise Difference(
            f"after step {step}: {error}\n"
            f"  actions: {game.actions}\n"
            f"  again: tests.compare.compare_game({rules!r}, {seed}, {name}, {step})"
        ) from error
    return Played(step, observations, reference.reason)


def reference_of(game: Game) -> ReferenceGame:
    """The reference at the same deal; a reshuffle takes the order that the engine made.

    The engine moves first, so its draw zone holds the whole order when the reference asks for it:
    drawing moves the pile's ends and leaves the cards where they are.
    """
    assert game.start is not None
    deal = deal_of(game.start)
    stocks = [[card_from_text(text) for text in stock] for stock in deal["stocks"]]
    draw = [card_from_text(text) for text in deal["draw"]]
    rules = game.rules.to_dict()
    check_deal(rules, stocks, draw)

    def engines_order(completed: list[int]) -> list[int]:
        at = int(game.state[layout.AT_DRAW])
        return game.state[at : at + len(completed)].tolist()

    return ReferenceGame(rules, stocks, draw, int(game.start[layout.FIRST_PLAYER]), engines_order)


def compare_state(game: Game, reference: ReferenceGame, whole_deck: Counter[int]) -> None:
    """Compare all but observations and events; Difference for the first that is not equal."""
    result = game.result or {"reason": None, "winner": None}
    numbers = (
        game.player,
        game.over,
        result["reason"],
        result["winner"],
        game.scores,
        int(game.state[layout.PASSES]),
        int(game.state[layout.TURNS]),
    )
    due = (
        reference.player,
        reference.over,
        reference.reason,
        reference.winner,
        reference.scores,
        reference.passes,
        reference.turns,
    )
    compare_values("player, over, reason, winner, scores, passes, turns", numbers, due)
    hands, stocks, discards = hands_of(game), stocks_of(game), discards_of(game)
    building, completed, draw = building_of(game), completed_of(game), draw_of(game)
    compare_values("hands", hands, [sorted(hand) for hand in reference.hands])
    compare_values("stocks", stocks, reference.stocks)
    compare_values("discards", discards, reference.discards)
    compare_values("building piles", building, reference.building)
    compare_values("completed", completed, sorted(reference.completed))
    compare_values("draw pile", draw, reference.draw)
    zones = chain(hands, stocks, building, (completed, draw), *discards)
    compare_values("all cards", Counter(chain.from_iterable(zones)), whole_deck)
    compare_values("cells beside the zones", header_of(game), _header_due(reference))
    legal = reference.legal_actions()
    compare_values("legal actions", game.legal_actions(), legal)
    mask = [0] * game.rules.num_actions
    for action in legal:
        mask[action] = 1
    compare_values("mask", game.mask().tolist(), mask)


def compare_observations(game: Game, reference: ReferenceGame) -> int:
    """Compare the observations of every seat in both forms; returns how many there were."""
    due_of_all = Observations(reference.public_table(), reference.hands)
    for kind in KINDS:
        for seat, due in enumerate(due_of_all.of_kind(kind)):
            seen = game.observation(seat, kind)
            if seen.dtype != due.dtype or seen.shape != due.shape:
                compare_values(f"{kind}: dtype", seen.dtype, due.dtype)
                compare_values(f"{kind}: shape", seen.shape, due.shape)
            if seen.tobytes() != due.tobytes():
                _blame_slice(game.rules, kind, seat, seen, due)
    return game.rules.players * len(KINDS)


def compare_values(what: str, engine: Any, reference: Any) -> None:
    """Raise Difference, showing the first place that is not equal, where two values differ."""
    if engine == reference:
        return
    place = ""
    while _both_lists(engine, reference):
        index = next(i for i, (a, b) in enumerate(zip(engine, reference, strict=True)) if a != b)
        place += f"[{index}]"
        engine, reference = engine[index], reference[index]
    raise Difference(f"{what}{place}: the engine has {engine!r}, the reference {reference!r}")


def _both_lists(one: Any, other: Any) -> bool:
    lists = isinstance(one, (list, tuple)) and isinstance(other, (list, tuple))
    return lists and len(one) == len(other)


def _header_due(reference: ReferenceGame) -> list[Any]:
    """By board: stock size, top card (0: none), depths and tops of the discard piles, the three
    cards under each top, four bits each, two piles a cell; hand sizes; counts by kind of the cards
    on all discard piles; number of completed cards."""
    header: list[Any] = []
    discarded = [0] * (WILD + 1)
    for stock, piles in zip(reference.stocks, reference.discards, strict=True):
        depths, tops = [len(pile) for pile in piles], [pile[-1] if pile else 0 for pile in piles]
        under = [
            sum(card << 4 * place for place, card in enumerate(reversed(pile[-4:-1])))
            for pile in piles
        ]
        packed = [under[0] + (under[1] << 12), under[2] + (under[3] << 12)]
        header.append([len(stock), stock[-1] if stock else 0, *depths, *tops, *packed])
        for pile in piles:
            for card in pile:
                discarded[card] += 1
    header.append([len(hand) for hand in reference.hands])
    header.append(discarded[1:])
    header.append(len(reference.completed))
    return header


def _blame_slice(
    rules: Rules, kind: str, seat: int, seen: Sequence[Any], due: Sequence[Any]
) -> None:
    """Raise Difference with the name and place of the first number that differs."""
    slices = (observe.cards_slices if kind == "cards" else observe.features_slices)(rules)
    for name, where in slices.items():
        for place, (a, b) in enumerate(zip(seen[where], due[where], strict=True)):
            if a != b:
                raise Difference(
                    f"{kind} of seat {seat}, {name}[{place}]: the engine has {a}, the reference {b}"
                )
    raise Difference(f"{kind} of seat {seat}: beyond the named slices")
