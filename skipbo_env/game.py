"""`Game`: one game as an object over the compiled engine; it only delegates.

    >>> from skipbo_env import Game
    >>> game = Game(seed=7)
    >>> game.player in (0, 1), game.over, len(game.legal_actions()) > 0
    (True, False, True)

Exactness: a game is its array (`state`), which holds the random generator too, so that a copy
replays the same cards. The choices made so far are kept beside it, which is what records are
written from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skipbo_env import actions, position, record, state_check
from skipbo_env.actions import IllegalAction
from skipbo_env.checks import is_whole, shown
from skipbo_env.engine import layout, moves, observe
from skipbo_env.engine.deal import deal, deal_cards
from skipbo_env.engine.layout import State
from skipbo_env.position import Position
from skipbo_env.rules import Rules


def seed_to_u64(seed: int | None) -> int:
    """A game's seed as 64 bits; None draws one from the operating system.

    Raises:
        ValueError: not an integer of 0 to 2**64 - 1.
    """
    if seed is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    if not is_whole(seed) or not 0 <= seed < 1 << 64:
        raise ValueError(f"seed: needs a whole number from 0 to 2**64 - 1, got {shown(seed)}")
    return int(seed)


class Game:
    """One game of Skip-Bo.

    Args:
        rules: a `Rules`, a preset's name or a mapping of settings.
        players: overrides the number of players, unless the rules fix teams.
        seed: 0 to 2**64 - 1; equal seeds and choices are equal games. None: a fresh one.

    Raises:
        RulesError: (a ValueError) rules that cannot be played; it names the field.
        ValueError: a bad seed.
    """

    def __init__(
        self,
        rules: Rules | str | Mapping[str, Any] = "standard",
        *,
        players: int | None = None,
        seed: int | None = None,
    ) -> None:
        self.rules = Rules.of(rules, players)
        self.seed: int | None = seed_to_u64(seed)
        self.state: State = layout.new_state(self.rules)
        deal(self.state, np.uint64(self.seed), int(self.state[layout.FIRST_PLAYER]))
        self.start: State | None = self.state.copy()
        self.actions: list[int] = []
        self.scripts: dict[int, list[int]] = {}
        self.agents: list[str] | None = None

    @classmethod
    def _of(cls, rules: Rules, state: State, seed: int | None) -> Game:
        game = cls.__new__(cls)
        game.rules, game.state, game.seed = rules, state, seed
        game.start, game.actions, game.scripts = None, [], {}
        game.agents = None
        return game

    @classmethod
    def from_state(cls, rules: Rules, state: State) -> Game:
        """A game that stands as in an engine's array, which is copied. It has no record."""
        return cls._of(rules, state.copy(), None)

    @classmethod
    def from_deal(
        cls,
        rules: Rules | str | Mapping[str, Any],
        stocks: Sequence[Sequence[int]],
        draw: Sequence[int],
        first_player: int,
        seed: int | None = None,
    ) -> Game:
        """A game from known cards.

        Args:
            rules: a `Rules`, a preset's name or a mapping of settings.
            stocks: each board's stock from bottom to top.
            draw: the draw pile in the order in which it will be drawn.
            first_player: the seat that begins.
            seed: where the order of later reshuffles comes from.

        Raises:
            ValueError: the cards are not the deck, a stock has the wrong size, or there is no such
                seat.
        """
        rules = Rules.of(rules)
        record.check_deal(rules, stocks, draw, first_player)
        cards = np.array([*(card for stock in stocks for card in stock), *draw], dtype=np.int32)
        state = layout.new_state(rules)
        deal_cards(state, cards, first_player, np.uint64(seed_to_u64(seed or 0)))
        return cls.dealt(rules, state, seed)

    @classmethod
    def dealt(cls, rules: Rules, state: State, seed: int | None) -> Game:
        """A game that begins as an engine's array stands, which is copied: just dealt."""
        game = cls._of(rules, state.copy(), seed)
        game.start = state.copy()
        return game

    @property
    def player(self) -> int:
        """The seat to move; after the end, the seat that moved last."""
        return int(self.state[layout.PLAYER])

    @property
    def over(self) -> bool:
        """Whether the game has ended."""
        return bool(self.state[layout.REASON])

    @property
    def truncated(self) -> bool:
        """Whether the turn limit cut the game off."""
        return int(self.state[layout.REASON]) == layout.TURN_LIMIT

    @property
    def scores(self) -> list[int]:
        """Points of each side: zeros while the game runs and where nobody won."""
        out = np.zeros(self.rules.sides, dtype=np.int64)
        moves.scores(self.state, out)
        return [int(points) for points in out]

    @property
    def result(self) -> dict[str, Any] | None:
        """None while the game runs, then {"winner": side or None, "reason", "scores": one entry a
        side}.
        """
        if not self.over:
            return None
        winner = int(self.state[layout.WINNER])
        return {
            "winner": winner if winner >= 0 else None,
            "reason": layout.REASONS[int(self.state[layout.REASON])],
            "scores": self.scores,
        }

    def mask(self) -> NDArray[np.int8]:
        """Legal actions of the seat to move: int8 of shape (num_actions,), zeros at the end."""
        out = np.zeros(self.rules.num_actions, dtype=np.int8)
        moves.legal_mask(self.state, out)
        return out

    def legal_actions(self) -> list[int]:
        """Ids of the legal actions, ascending; empty at the end."""
        ids = np.zeros(actions.MAX_ACTIONS, dtype=np.int64)
        n = moves.legal_actions(self.state, ids)
        return [int(action) for action in ids[:n]]

    def check_action(self, action: Any) -> int:
        """The action as an int.

        Raises:
            IllegalAction: not an integer, not in the table, or not legal now; the message says why.
        """
        if not is_whole(action):
            raise IllegalAction(f"action: needs an action id, got {shown(action)}")
        action = int(action)
        if self.over:
            raise IllegalAction("action: the game is over")
        if not 0 <= action < self.rules.num_actions:
            raise IllegalAction(
                f"action: {shown(action)} is outside 0 to {self.rules.num_actions - 1}"
            )
        if not moves.is_legal(self.state, action):
            raise IllegalAction(
                f"action: {actions.action_text(action)!r} ({action}) is not legal for player "
                f"{self.player} now"
            )
        return action

    def apply(self, action: int, *, reshuffle: Sequence[int] | None = None) -> None:
        """Do an action of the seat to move.

        Args:
            action: an id of the action table.
            reshuffle: the order of a reshuffle that happens in it, next card first; None for a
                random one.

        Raises:
            IllegalAction: not legal; nothing has changed.
            ValueError: the reshuffle is not the completed cards, or none happens; nothing has
                changed.
        """
        action = self.check_action(action)
        if reshuffle is None:
            moves.apply(self.state, action)
        else:
            script = _script(reshuffle)
            after = self.state.copy()
            moves.apply_scripted(after, action, np.array(script, dtype=np.int32))
            if after[layout.RESHUFFLES] == self.state[layout.RESHUFFLES]:
                raise ValueError("reshuffle: the action causes none")
            if after[layout.SCRIPT_FAULT] or not script:
                raise ValueError("reshuffle: the cards are not those of the completed piles")
            self.state[:] = after
            self.scripts[len(self.actions)] = script
        self.actions.append(action)

    def states_along(self, line: Sequence[int]) -> list[State]:
        """The engine's arrays before each action of a line and after the last; the game stays as it
        is.

        Raises:
            IllegalAction: an action that is not legal where it stands.
        """
        states = [self.state]
        for action in line:
            state = states[-1].copy()
            if type(action) is not int or not moves.is_legal(state, action):
                action = Game._of(self.rules, state, self.seed).check_action(action)
            moves.apply(state, action)
            states.append(state)
        return states

    def clone(self) -> Game:
        """An independent copy, random generator included: the same choices meet the same cards."""
        copy = Game._of(self.rules, self.state.copy(), self.seed)
        copy.start = self.start
        copy.actions = list(self.actions)
        copy.scripts = dict(self.scripts)
        copy.agents = self.agents
        return copy

    def observation(self, player: int | None = None, kind: str = "features") -> NDArray[Any]:
        """What a seat (default: the one to move) sees, as numbers; see `skipbo_env.engine.observe`.

        Returns:
            float32 for "features", int8 for "cards", shape (observation_size,).

        Raises:
            ValueError: no such seat or kind.
        """
        if not isinstance(kind, str) or kind not in ("features", "cards"):
            raise ValueError(f"kind: needs 'features' or 'cards', got {shown(kind)}")
        seat = self.player if player is None else self._seat(player)
        return observe.observe(self.state, self.rules, seat, kind)

    def _seat(self, player: int) -> int:
        if not is_whole(player) or not 0 <= player < self.rules.players:
            raise ValueError(
                f"player: needs a seat of 0 to {self.rules.players - 1}, got {shown(player)}"
            )
        return int(player)

    def action_text(self, action: int) -> str:
        """The action's text, such as "hand 7>1"."""
        return actions.action_text(action)

    def parse_action(self, text: str) -> int:
        """The id of an action's text; raises IllegalAction where it names none."""
        return actions.parse_action(text)

    def move(self, action: int) -> dict[str, Any]:
        """A legal action as a record's event without "player"."""
        return actions.move_json(self.state, self.rules, self.check_action(action))

    def position(self, player: int | None = None) -> dict[str, Any]:
        """What a seat (default: the one to move) sees, as the JSON of docs/formats.md."""
        seat = self.player if player is None else self._seat(player)
        return position.position_of(self.state, self.rules, seat)

    @classmethod
    def from_position(cls, data: Mapping[str, Any] | Position, seed: int | None = None) -> Game:
        """A game that looks like the position, its hidden cards dealt from the unseen ones by the
        seed.

        Args:
            data: the position as JSON data, or as it was parsed.
            seed: decides the hidden cards and all later shuffles.

        Raises:
            PositionError: (a ValueError) an impossible position; it names the field.
        """
        parsed = data if isinstance(data, Position) else Position.parse(data)
        return cls._of(parsed.rules, parsed.deal(seed_to_u64(seed)), seed)

    def determinize(self, player: int, seed: int | None = None) -> Game:
        """A game that the seat could be in: what it sees is kept, the rest is dealt anew and the
        generator reseeded.
        """
        state = position.determinize(self.state, self.rules, self._seat(player), seed_to_u64(seed))
        return Game._of(self.rules, state, None)

    def events(self) -> list[dict[str, Any]]:
        """All events of the game so far, hidden cards included, as in a record.

        Raises:
            ValueError: the game did not start from a deal.
        """
        if self.start is None:
            raise ValueError("game: has no record, as it did not start from a deal here")
        return record.events_of(self.rules, self.start, self.actions, self.scripts)

    def record(self, agents: Sequence[str] | None = None) -> dict[str, Any]:
        """The game as a record (docs/formats.md): deal, events, and the end if it is over.

        Raises:
            ValueError: the game did not start from a deal, or the agents are not a name a seat.
        """
        if self.start is None:
            raise ValueError("game: has no record, as it did not start from a deal here")
        return record.record_of(
            self.rules,
            self.start,
            self.actions,
            self.scripts,
            seed=self.seed,
            agents=self.agents if agents is None else _agents_of(agents, self.rules),
        )

    @classmethod
    def from_record(cls, data: Mapping[str, Any], ply: int | None = None) -> Game:
        """The game that a record tells, up to `ply` choices (default: all).

        Where the record's seed deals its cards, the random generator stands where it stood in the
        game recorded, and later reshuffles are the same; else it starts from the seed, or from 0.

        Raises:
            RecordError: (a ValueError) an event that cannot follow from the deal and the events
                before it.
        """
        told = record.replay(data, ply)
        game = cls._of(told.rules, told.state, told.seed)
        game.start, game.actions, game.scripts = told.start, told.actions, told.scripts
        game.agents = told.agents
        return game

    def to_dict(self) -> dict[str, Any]:
        """The whole game as plain JSON data, hidden cards and generator included; `from_dict` reads
        it back.
        """
        return {
            "format": "skipbo-game",
            "version": 1,
            "rules": self.rules.to_dict(),
            "seed": self.seed,
            "agents": None if self.agents is None else list(self.agents),
            "state": self.state.tolist(),
            "start": None if self.start is None else self.start.tolist(),
            "actions": list(self.actions),
            "scripts": {str(ply): cards for ply, cards in self.scripts.items()},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Game:
        """The game that `to_dict` wrote.

        Every cell is checked, so that data from elsewhere is refused or is a game.

        Raises:
            ValueError: not such a dict, or its parts contradict each other.
        """
        if not isinstance(data, Mapping):
            raise ValueError(f"no game: needs an object, got {type(data).__name__}")
        missing = [
            name
            for name in (
                "format",
                "version",
                "rules",
                "seed",
                "state",
                "start",
                "actions",
                "scripts",
            )
            if name not in data
        ]
        if missing:
            raise ValueError(f"{missing[0]}: is missing")
        kind, version = data["format"], data["version"]
        if (
            type(kind) is not str
            or kind != "skipbo-game"
            or type(version) is not int
            or version != 1
        ):
            raise ValueError("format: only 'skipbo-game' of version 1 is readable")
        rules = Rules.from_dict(data["rules"])
        seed = None if data["seed"] is None else seed_to_u64(data["seed"])
        state = state_check.state_of("state", data["state"], rules)
        done = _actions_of(data["actions"], rules)
        scripts = _scripts_of(data["scripts"], len(done))
        game = cls._of(rules, state, seed)
        game.actions, game.scripts = done, scripts
        game.agents = _agents_of(data.get("agents"), rules)
        if data["start"] is not None:
            start = state_check.state_of("start", data["start"], rules)
            state_check.check_start(start, rules)
            again = cls._of(rules, start.copy(), seed)
            for ply, action in enumerate(done):
                again.apply(action, reshuffle=scripts.get(ply))
            if not np.array_equal(again.state, state):
                raise ValueError("state: does not follow from start and actions")
            game.start = start
        return game

    def __repr__(self) -> str:
        status = f"over: {self.result}" if self.over else f"player {self.player} to move"
        return f"<Game {self.rules.players} players, {len(self.actions)} actions, {status}>"


def _script(cards: Any) -> list[int]:
    """The order of a reshuffle as a list of cards, 1 to 13."""
    if isinstance(cards, np.ndarray):
        cards = cards.tolist()
    if isinstance(cards, (str, bytes, Mapping)) or not isinstance(cards, Sequence):
        raise ValueError(f"reshuffle: needs a list of cards, got {type(cards).__name__}")
    for card in cards:
        if not is_whole(card):
            raise ValueError(f"reshuffle: {shown(card)} is no card (1 to {layout.WILD})")
        if not 1 <= card <= layout.WILD:
            raise ValueError(f"reshuffle: there are cards outside 1 to {layout.WILD}")
    return [int(card) for card in cards]


def _actions_of(data: Any, rules: Rules) -> list[int]:
    if not isinstance(data, (list, tuple)):
        raise ValueError("actions: needs a list of action ids")
    for ply, action in enumerate(data):
        if type(action) is not int or not 0 <= action < rules.num_actions:
            raise ValueError(f"actions: entry {ply} is no id of 0 to {rules.num_actions - 1}")
    return list(data)


def _scripts_of(data: Any, plies: int) -> dict[int, list[int]]:
    """The orders of the reshuffles by ply; JSON has the plies as texts."""
    if not isinstance(data, Mapping):
        raise ValueError("scripts: needs an object of cards by ply")
    scripts = {}
    for key, cards in data.items():
        text = key if isinstance(key, str) else ""
        ply = int(text) if len(text) < 12 and text.isascii() and text.isdecimal() else -1
        if not 0 <= ply < plies:
            raise ValueError(f"scripts: {shown(key)} is no ply of 0 to {plies - 1}")
        scripts[ply] = _script(cards)
    return scripts


def _agents_of(data: Any, rules: Rules) -> list[str] | None:
    if data is None:
        return None
    if not isinstance(data, (list, tuple)) or not all(isinstance(name, str) for name in data):
        raise ValueError("agents: needs a list of names, or null")
    if len(data) != rules.players:
        raise ValueError(f"agents: {len(data)} names for {rules.players} players")
    return list(data)
