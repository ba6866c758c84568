"""OpenSpiel: importing this registers the game "python_skipbo"; `load` makes it from `Rules`.

Cards are dealt as late as they can be: a chance node stands before each card that somebody gets to
see (a stock's next top, each card of a draw), and its outcome is that card, 1 to 13, with the odds
of the cards that can lie there. So outcomes are few, a history holds no card that nobody has seen,
and OpenSpiel's own serialisation works. Where the rules draw the first player, the first chance
node does, and its outcomes are seats.

A player's information state is all it has seen so far, one word each:

    F1          seat 1 moves first
    T0=7        the stock of board 0 shows a 7
    +3, +       a card is drawn: a 3 to the own hand, or any to another's
    56          an action, by its id in the table of `skipbo_env.actions`

OpenSpiel's search bots in C++ crash on every game written in Python; those in Python run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyspiel

from skipbo_env.actions import MAX_ACTIONS, MOVES, action_text
from skipbo_env.engine import layout, moves
from skipbo_env.engine.observe import features_slices, observation_size
from skipbo_env.game import Game
from skipbo_env.position import Position
from skipbo_env.rules import Rules

_DEAL = -1  # what stands for an action until the first hand is drawn
_DRAWN = -1  # where a card goes that no stock shows

# OpenSpiel knows no None and one type a parameter: -1 stands for these.
_UNSET = {"stock_size": None, "draw_per_turn": None, "first_player": "random"}


def parameters(rules: Rules) -> dict[str, Any]:
    """Rules as the parameters of "python_skipbo", which have their fields' names.

    -1 is None, and a random first player.
    """
    told = rules.to_dict()
    return told | {name: -1 for name, unset in _UNSET.items() if told[name] == unset}


_GAME_TYPE = pyspiel.GameType(
    short_name="python_skipbo",
    long_name="Skip-Bo",
    dynamics=pyspiel.GameType.Dynamics.SEQUENTIAL,
    chance_mode=pyspiel.GameType.ChanceMode.EXPLICIT_STOCHASTIC,
    information=pyspiel.GameType.Information.IMPERFECT_INFORMATION,
    utility=pyspiel.GameType.Utility.ZERO_SUM,
    reward_model=pyspiel.GameType.RewardModel.TERMINAL,
    max_num_players=12,
    min_num_players=2,
    provides_information_state_string=True,
    provides_information_state_tensor=False,
    provides_observation_string=True,
    provides_observation_tensor=True,
    parameter_specification=parameters(Rules()),
)


def load(
    rules: Rules | str | Mapping[str, Any] = "standard", *, players: int | None = None
) -> SkipBoGame:
    """The game, from a `Rules`, a preset's name or a mapping of settings.

    `pyspiel.load_game("python_skipbo(players=3,stock_size=10)")` does the same for single settings.

    Raises:
        RulesError: (a ValueError) rules that cannot be played; it names the field.
    """
    return pyspiel.load_game(_GAME_TYPE.short_name, parameters(Rules.of(rules, players)))


class SkipBoGame(pyspiel.Game):
    """Skip-Bo; its utilities are the reward "win" of the environments.

    `max_game_length` is an estimate from above, since a turn may in principle go on for ever.

    Attributes:
        rules: what is played.
    """

    def __init__(self, params: Mapping[str, Any] | None = None) -> None:
        given = {**parameters(Rules()), **(params or {})}
        given |= {name: unset for name, unset in _UNSET.items() if given[name] == -1}
        self.rules = Rules.from_dict(given)
        info = pyspiel.GameInfo(
            num_distinct_actions=self.rules.num_actions,
            max_chance_outcomes=layout.WILD + 1,
            num_players=self.rules.players,
            min_utility=-1.0,
            max_utility=1.0,
            utility_sum=0.0,
            max_game_length=self.rules.max_turns * self.rules.deck_size,
        )
        super().__init__(_GAME_TYPE, info, dict(params or {}))

    def new_initial_state(self) -> SkipBoState:
        """The state before the first chance node."""
        return SkipBoState(self)

    def make_py_observer(self, iig_obs_type: Any = None, params: Any = None) -> SkipBoObserver:
        """What a player sees: "features" and a line of notation, or its information state."""
        return SkipBoObserver(
            self.rules, iig_obs_type or pyspiel.IIGObservationType(perfect_recall=False), params
        )


class _Table:
    """The game between chance nodes, and the cards that chance has told of the next action.

    Attributes:
        rules: what is played.
        cells: the engine's array, whose unseen cards are in no particular order; None before the
            first hand is drawn.
        over: whether the game has ended.
        first: the seat that moves first, -1 until it is known.
        pending: the action that waits for its cards, `_DEAL` or None.
        reveals: (board or `_DRAWN`, epoch) of each card still to be told.
        told: the cards told so far.
        drawer: who draws them.
        unseen: by epoch, the cards that nobody has seen, by kind. The first epoch's lie in stocks
            and draw pile, each reshuffle begins one whose cards lie in the draw pile alone.
        seen: each player's information state.
        log: (index in the history, player, card, epoch) of each draw, and (-1, player, card, 0) of
            each card that left a hand.
        steps: length of the history.
    """

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.cells: Any = None
        self.over = False
        self.first = -1 if rules.first_player == "random" else int(rules.first_player)
        self.pending: int | None = _DEAL
        self.reveals: tuple[tuple[int, int], ...] = ()
        self.told: list[int] = []
        self.drawer = -1
        self.unseen = [[0, *[rules.copies] * 12, rules.wilds]]
        self.seen = [""] * rules.players
        self.log: list[tuple[int, int, int, int]] = []
        self.steps = 0
        if self.first >= 0:
            self._begin()

    def __deepcopy__(self, memo: Any) -> _Table:
        twin = _Table.__new__(_Table)
        twin.__dict__.update(self.__dict__)
        twin.cells = None if self.cells is None else self.cells.copy()
        twin.told, twin.seen, twin.log = list(self.told), list(self.seen), list(self.log)
        twin.unseen = [list(counts) for counts in self.unseen]
        return twin

    def tell(self, text: str, own: int = -1, own_text: str = "") -> None:
        """Add a word to what everybody has seen; one player may see another word."""
        for player, before in enumerate(self.seen):
            word = own_text if player == own else text
            self.seen[player] = f"{before} {word}" if before else word

    def _begin(self) -> None:
        rules = self.rules
        self.tell(f"F{self.first}")
        drawn = min(
            rules.draw_per_turn or rules.hand_size, rules.deck_size - rules.boards * rules.stocks
        )
        self.drawer = self.first
        self.reveals = tuple((board, 0) for board in range(rules.boards)) + ((_DRAWN, 0),) * drawn

    def outcomes(self) -> list[tuple[int, float]]:
        """The chance node's outcomes and their odds."""
        if self.first < 0:
            return [(seat, 1 / self.rules.players) for seat in range(self.rules.players)]
        counts = self.unseen[self.reveals[0][1]]
        total = sum(counts)
        return [(card, count / total) for card, count in enumerate(counts) if count]

    def chance(self, outcome: int) -> None:
        """Take a chance node's outcome."""
        if self.first < 0:
            self.first = outcome
            self._begin()
            return
        (place, epoch), *rest = self.reveals
        self.unseen[epoch][outcome] -= 1
        self.told.append(outcome)
        if place == _DRAWN:
            self.tell("+", self.drawer, f"+{outcome}")
            self.log.append((self.steps, self.drawer, outcome, epoch))
        else:
            self.tell(f"T{place}={outcome}")
        self.reveals = tuple(rest)
        if not rest:
            self._deal() if self.pending == _DEAL else self._finish()

    def _deal(self) -> None:
        """Lay out the deck so that the cards told so far lie where they were seen."""
        rules = self.rules
        hidden = [card for card, count in enumerate(self.unseen[0]) for _ in range(count)]
        below = rules.stocks - 1
        stocks = [
            [*hidden[below * board : below * (board + 1)], self.told[board]]
            for board in range(rules.boards)
        ]
        draw = self.told[rules.boards :] + hidden[below * rules.boards :]
        self.cells = Game.from_deal(rules, stocks, draw, self.first).state
        self.pending, self.told = None, []

    def act(self, action: int) -> None:
        """Do a player's action at once, or keep it until chance has told its cards."""
        before = self.cells
        player = int(before[layout.PLAYER])
        self.tell(str(action))
        if MOVES[action].source == "hand":
            self.log.append((-1, player, MOVES[action].card, 0))
        after = before.copy()
        moves.apply(after, action)  # tells how many cards are seen, not which
        reveals = []
        for board in range(self.rules.boards):
            at = layout.board_at(board) + layout.STOCK_N
            if 0 < after[at] < before[at]:
                reveals.append((board, 0))
        old = int(before[layout.DRAW_HI] - before[layout.DRAW_LO])
        left = int(after[layout.DRAW_HI] - after[layout.DRAW_LO])
        epoch = len(self.unseen) - 1
        if after[layout.RESHUFFLES] == before[layout.RESHUFFLES]:
            reveals += [(_DRAWN, epoch)] * (old - left)
        else:
            at = layout.RESHUFFLED
            self.unseen.append(after[at : at + layout.HAND_CELLS].tolist())
            reveals += [(_DRAWN, epoch)] * old
            reveals += [(_DRAWN, epoch + 1)] * (sum(self.unseen[-1]) - left)
        self.pending, self.reveals = action, tuple(reveals)
        self.drawer = int(after[layout.PLAYER])
        if not reveals:
            self.cells, self.pending = after, None
            self.over = bool(after[layout.REASON])

    def _finish(self) -> None:
        """Do the pending action, its cards put where it takes them from."""
        cells, action = self.cells, self.pending
        assert action is not None
        told, self.told, self.pending = self.told, [], None
        size, draw = int(cells[layout.STOCK_SIZE]), int(cells[layout.AT_DRAW])
        low, high = (draw + int(cells[at]) for at in (layout.DRAW_LO, layout.DRAW_HI))
        fresh = int(cells[layout.RESHUFFLES]) == 0  # stocks and draw pile are still one pool
        stocks = []
        for board in range(self.rules.boards):
            start = int(cells[layout.AT_STOCKS]) + board * size
            stocks.append((start, start + int(cells[layout.board_at(board) + layout.STOCK_N]) - 1))
        if MOVES[action].source == "stock":
            board = self._played_board(action)
            start, top = stocks[board]
            if top > start:
                stocks[board] = start, top - 1
                _put(cells, top - 1, told.pop(0), [*stocks, (low, high)] if fresh else stocks)
        script: list[int] = []
        for at, card in enumerate(told, low):
            if at < high:
                _put(cells, at, card, [(at + 1, high), *stocks] if fresh else [(at + 1, high)])
            else:
                script.append(card)
        if script:
            script += [card for card, count in enumerate(self.unseen[-1]) for _ in range(count)]
        moves.apply_scripted(cells, action, np.array(script, dtype=np.int32))
        self.over = bool(cells[layout.REASON])

    def _played_board(self, action: int) -> int:
        own = self.rules.board_of(int(self.cells[layout.PLAYER]))
        return (own + self.rules.teams) % self.rules.boards if MOVES[action].other else own


def _put(cells: Any, target: int, card: int, places: list[tuple[int, int]]) -> None:
    """Bring a card to a cell, in exchange with an unseen one of its pool."""
    if cells[target] == card:
        return
    for start, stop in places:
        found = np.flatnonzero(cells[start:stop] == card)
        if found.size:
            at = start + int(found[-1])
            cells[at], cells[target] = cells[target], card
            return
    raise AssertionError(f"no {card} is left unseen")


class SkipBoState(pyspiel.State):
    """A state of "python_skipbo"."""

    def __init__(self, game: SkipBoGame) -> None:
        super().__init__(game)
        self._table = _Table(game.rules)

    def current_player(self) -> int:
        """The seat to move, or CHANCE, or TERMINAL."""
        if self._table.over:
            return pyspiel.PlayerId.TERMINAL
        if self._table.pending is not None:
            return pyspiel.PlayerId.CHANCE
        return int(self._table.cells[layout.PLAYER])

    def _legal_actions(self, player: int) -> list[int]:
        table = self._table
        if table.over or table.pending is not None or player != table.cells[layout.PLAYER]:
            return []
        ids = np.empty(MAX_ACTIONS, dtype=np.int64)
        return ids[: moves.legal_actions(table.cells, ids)].tolist()

    def chance_outcomes(self) -> list[tuple[int, float]]:
        """The outcomes of a chance node and their probabilities."""
        return self._table.outcomes()

    def _apply_action(self, action: int) -> None:
        if self._table.pending is not None:
            self._table.chance(int(action))
        else:
            self._table.act(int(action))
        self._table.steps += 1

    def _action_to_string(self, player: int, action: int) -> str:
        if player == pyspiel.PlayerId.CHANCE:
            return f"seat {action} moves first" if self._table.first < 0 else f"card {action}"
        return action_text(action)

    def is_terminal(self) -> bool:
        """Whether the game is over."""
        return self._table.over

    def returns(self) -> list[float]:
        """+1 to each seat of the winning side, -1 / (sides - 1) to the others, 0 in a draw."""
        rules = self._table.rules
        winner = int(self._table.cells[layout.WINNER]) if self._table.over else -1
        if winner < 0:
            return [0.0] * rules.players
        loss = -1.0 / (rules.sides - 1)
        return [1.0 if rules.side_of(p) == winner else loss for p in range(rules.players)]

    def game(self) -> Game | None:
        """The game as it stood at the last choice, None before the first; its unseen cards mean
        nothing, chance deals them later.
        """
        table = self._table
        return None if table.cells is None else Game.from_state(table.rules, table.cells)

    def resample_from_infostate(
        self, player_id: int, probability_sampler: Callable[[], float]
    ) -> SkipBoState:
        """A state that the player cannot tell from this one: the others drew other cards.

        Each card that another player was seen to play is put back to one of the draws it can stem
        from, by the odds of that draw; the rest of the other draws comes from the unseen cards.

        Args:
            player_id: whose information state is kept.
            probability_sampler: gives random numbers in [0, 1).
        """
        history = self.history()
        new = _redraw(self._table, player_id, history, probability_sampler)
        state = self.get_game().new_initial_state()
        for action in new:
            state.apply_action(action)
        return state

    def __str__(self) -> str:
        table = self._table
        waits = "" if table.pending in (None, _DEAL) else f" {action_text(table.pending)}"
        told = f"{waits}:{' '.join(map(str, table.told))}" if table.pending is not None else ""
        return _shown(self.game(), None) + told


def _redraw(
    table: _Table, observer: int, history: list[int], random: Callable[[], float]
) -> list[int]:
    """The history with other cards in the draws that the observer has not seen."""
    while True:
        new = list(history)
        hidden = [list(counts) for counts in table.unseen]
        for index, player, card, epoch in table.log:
            if index >= 0 and player != observer:
                hidden[epoch][card] += 1
        unknown: list[list[tuple[int, int]]] = [[] for _ in range(table.rules.players)]
        for index, player, card, epoch in table.log:
            if player == observer:
                continue
            if index >= 0:
                unknown[player].append((index, epoch))
                continue
            odds = [hidden[e][card] / max(sum(hidden[e]), 1) for _, e in unknown[player]]
            if not any(odds):
                break
            where, e = unknown[player].pop(_weighted(odds, random))
            new[where] = card
            hidden[e][card] -= 1
        else:
            for where, e in (draw for draws in unknown for draw in draws):
                new[where] = _weighted(hidden[e], random)
                hidden[e][new[where]] -= 1
            return new
        # A card was put back to a draw after which a later one has none left: try again.


def _weighted(weights: list[Any], random: Callable[[], float]) -> int:
    """An index, with odds in proportion to the weights."""
    left = random() * sum(weights)
    last = 0
    for index, weight in enumerate(weights):
        if weight:
            last = index
            left -= weight
            if left < 0:
                break
    return last


def _shown(game: Game | None, player: int | None) -> str:
    """The position in one line, as a player (None: the one to move) sees it."""
    if game is None:
        return "dealing"
    if game.over:
        assert game.result is not None
        return f"over: {game.result['reason']}, winner {game.result['winner']}"
    return Position.parse(game.position(player)).to_notation()


class SkipBoObserver:
    """What a player sees, as OpenSpiel's observers have it.

    Attributes:
        tensor: "features" (float32), zeros before the first choice; None for information states,
            which have no fixed size. At a chance node it is that of the last choice.
        dict: its named slices.
    """

    def __init__(self, rules: Rules, iig_obs_type: Any, params: Any) -> None:
        if params:
            raise ValueError(f"params: there are none, got {params!r:.60}")
        self._recall = iig_obs_type.perfect_recall
        self.tensor = None
        self.dict: dict[str, Any] = {}
        if not self._recall:
            self.tensor = np.zeros(observation_size(rules, "features"), np.float32)
            self.dict = {name: self.tensor[at] for name, at in features_slices(rules).items()}

    def set_from(self, state: SkipBoState, player: int) -> None:
        """Write what the player sees in the state."""
        if self.tensor is None:
            return
        game = state.game()
        self.tensor[:] = 0.0 if game is None else game.observation(player)

    def string_from(self, state: SkipBoState, player: int) -> str:
        """The information state, or the position in the notation of docs/formats.md."""
        if self._recall:
            return state._table.seen[player]
        return f"player {player}: {_shown(state.game(), player)}"


if _GAME_TYPE.short_name not in pyspiel.registered_names():
    pyspiel.register_game(_GAME_TYPE, SkipBoGame)
