"""A game in the terminal: one seat types its moves, agents play the others.

It draws the table with `skipbo_env.render`, tells what the others do as far as the seat may see it,
and knows neither command-line options nor files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from skipbo_env import record, render
from skipbo_env.actions import MOVES, IllegalAction, acting_board, played_card
from skipbo_env.agents import BestAgent, RuleAgent, TurnAgent
from skipbo_env.cards import card_text
from skipbo_env.game import Game
from skipbo_env.suggestion import ask as ask_agent

PROMPT = "your move (number or text; h hint, t table, ? help, q quit): "
HELP = """\
Type the number of a move in the list, or its text:
  stock>2      play the top of your stock on building pile 2
  hand 7>1     play a 7 from your hand on building pile 1; S is a wild
  discard1>4   play the top of your discard pile 1 on building pile 4
  hand 7=>3    discard a 7 on your discard pile 3, which ends your turn
  other ...    in teams: the stock or a discard pile of your team's other board
  pass         when you hold no card and none can be drawn
h asks an agent for its move, t shows the table again, q ends the game here."""
_MOST_SUGGESTIONS = 8
# What a planned turn waits for; a discard, a pass or a win stands in its last move.
_ENDS = {"stock_flip": ("stock flip",), "refill": ("refill",)}
_BLIND = (RuleAgent, TurnAgent, BestAgent)  # they read nothing hidden


class Player(Protocol):
    """Whatever picks moves; it may have `suggest(game)` too, which ranks them."""

    name: str

    def act(self, game: Game) -> int:
        """The id of a legal action."""


def narrow_table(title: str | None, columns: Sequence[str], last: str | None = None) -> Table:
    """An empty table without side lines, so that it can be read at 80 columns.

    Args:
        title: what stands above.
        columns: names of columns whose cells stay whole, with a ">" before those of numbers.
        last: the name of one more column, which is wrapped.
    """
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in columns:
        justify: Any = "right" if name.startswith(">") else "left"
        table.add_column(name.removeprefix(">"), justify=justify, no_wrap=True)
    if last is not None:
        table.add_column(last)
    return table


def suggestion_table(
    moves: Sequence[Mapping[str, Any]],
    *,
    title: str | None = None,
    most: int | None = None,
    text: Callable[[int], str] | None = None,
) -> Table:
    """The moves of a suggestion as a table, those that mirror another left out.

    Args:
        moves: as `skipbo_env.suggestion.ask` gives them.
        title: what stands above.
        most: how many rows.
        text: names an action; its text in the suggestion if not given.
    """
    table = narrow_table(
        title, (">", "move", ">win", ">delta", "verdict"), "the turn it begins, and why"
    )
    distinct = [move for move in moves if move["same_as"] is None]
    for place, move in enumerate(distinct[:most]):
        win, delta = (_with_error(move, name) for name in ("win", "delta"))
        named = [text(step["action"]) if text else step["text"] for step in move["line"]]
        turn = [*named[1:], *_ENDS.get(move["line_ends"] or "", ())]
        table.add_row(
            str(move["order"] + 1),
            named[0],
            win,
            delta,
            move["verdict"] or "",
            "\n".join(line for line in (", ".join(turn), "; ".join(move["reasons"])) if line),
            style="green" if place == 0 else "",
        )
    return table


def _with_error(move: Mapping[str, Any], name: str) -> str:
    """A probability of a suggestion in percent, with its standard error where there is one."""
    if move[name] is None:
        return ""
    error = move[f"{name}_se"]
    text = f"{100 * move[name]:.1f}%"
    return f"{text} ±{100 * error:.1f}" if error else text


class _Quit(Exception):
    """The player wants no more, or there is no more input."""


class TerminalGame:
    """One game between a person and agents.

    Args:
        game: where to start from; it is played on.
        seat: the person's.
        agents: who plays each other seat. Whoever might look at hidden cards is given a game
            that looks the same from its seat, its hidden cards dealt anew.
        names: what to call each seat.
        adviser: the agent that gives hints.
        playing: whether cards have the names of playing cards.
        console: where to write.
        ask: reads a line after showing a prompt; EOFError at the end of input.
    """

    def __init__(
        self,
        game: Game,
        seat: int,
        agents: Mapping[int, Player],
        *,
        names: Mapping[int, str] | None = None,
        adviser: Player | None = None,
        playing: bool = False,
        console: Console | None = None,
        ask: Callable[[str], str] | None = None,
    ) -> None:
        self.game = game
        self.seat = seat
        self.agents = agents
        self.names = [
            "you" if other == seat else (names or {}).get(other, f"player {other}")
            for other in range(game.rules.players)
        ]
        self.adviser = adviser
        self.playing = playing
        self.console = console or Console(highlight=False)
        self.ask = ask or self._ask

    def _ask(self, prompt: str) -> str:
        return self.console.input(Text(prompt, style="bold"))

    def _say(self, text: str, style: str = "") -> None:
        self.console.print(Text(text, style=style), soft_wrap=True)

    def play(self) -> bool:
        """Play to the end; returns whether the game got there."""
        for event in record.first_events(self.game.state):
            self._tell(event)
        if self.game.player == self.seat:
            self.show_table()
        try:
            while not self.game.over:
                mine = self.game.player == self.seat
                action = self._choose() if mine else self._others_choice(self.game.player)
                self._apply(action)
                if self.game.player == self.seat and not self.game.over:
                    self.show_table()
        except _Quit:
            self._say("The game stops here, unfinished.", "dim")
            return False
        self.show_table()
        return True

    def _others_choice(self, seat: int) -> int:
        agent = self.agents[seat]
        return agent.act(self.game if isinstance(agent, _BLIND) else self._seen_by(seat))

    def _seen_by(self, seat: int) -> Game:
        """A game that the seat could be in; it depends on nothing that is hidden from it."""
        return self.game.determinize(seat, seed=len(self.game.actions))

    def _text(self, action: int) -> str:
        """An action's text, which can be typed back."""
        move = MOVES[action]
        text = self.game.action_text(action)
        if self.playing and move.source == "hand":
            return text.replace(card_text(move.card), card_text(move.card, playing=True), 1)
        return text

    def _apply(self, action: int) -> None:
        """Do an action and tell what can be seen of it."""
        before = self.game.state.copy()
        self.game.apply(action)
        for event in record.step_events(self.game.rules, before, self.game.state, action):
            self._tell(event)

    def _tell(self, event: Mapping[str, Any]) -> None:
        seen = record.seen_event(event, self.seat)
        text = record.event_text(seen, self.names, playing=self.playing)
        mine = event.get("player") == self.seat
        self._say(text, "bold" if event["type"] == "end" else "" if mine else "cyan")

    def show_table(self) -> None:
        """Draw the table as the seat sees it."""
        color = render.in_color(self.console)
        text = render.ansi(
            self.game.state, self.game.rules, self.seat, color=color, playing=self.playing
        )
        self.console.print()
        self.console.print(Text.from_ansi(text), soft_wrap=True)
        self.console.print()

    def _choose(self) -> int:
        """Ask until there is a legal action."""
        legal = self.game.legal_actions()
        self._list_moves(legal)
        while True:
            try:
                answer = self.ask(PROMPT).strip()
            except EOFError:
                self.console.print()
                raise _Quit from None
            command = answer.lower()
            if command in ("q", "quit", "exit"):
                raise _Quit
            if command in ("h", "hint"):
                self.hint(legal)
            elif command in ("?", "help"):
                self._say(HELP)
            elif command in ("t", "table"):
                self.show_table()
                self._list_moves(legal)
            elif command:
                try:
                    return self._read(answer, legal)
                except IllegalAction as error:
                    self._say(str(error).removeprefix("action: "), "red")

    def _read(self, answer: str, legal: list[int]) -> int:
        """The legal action that a number of the list or a move's text names."""
        if answer.isdecimal():
            place = int(answer) if len(answer) < 9 else 0
            if not 1 <= place <= len(legal):
                raise IllegalAction(f"the list goes from 1 to {len(legal)}")
            return legal[place - 1]
        return self.game.check_action(self.game.parse_action(answer))

    def _list_moves(self, legal: list[int]) -> None:
        """Every legal action with its number: a line a play, then a line for a card's discards."""
        number = {action: place for place, action in enumerate(legal, 1)}
        plays = [action for action in legal if MOVES[action].kind != "discard"]
        for action in plays:
            text = f"{number[action]:>3}  {self._text(action):<20}"
            self._say(f"{text} {self._meaning(action)}")
        rows: dict[tuple[int, bool], list[int]] = {}
        for action in legal:
            if action not in plays:
                rows.setdefault((MOVES[action].card, MOVES[action].other), []).append(action)
        for row in rows.values():
            cells = (f"{number[action]:>3}  {self._text(action):<20}" for action in row)
            self._say("".join(cells).rstrip())

    def _meaning(self, action: int) -> str:
        """What a play or a pass does, in words."""
        move = MOVES[action]
        if move.kind == "pass":
            return "end your turn"
        card = card_text(
            played_card(self.game.state, self.game.rules, action), playing=self.playing
        )
        if move.source == "stock":
            board = acting_board(self.game.state, self.game.rules, action)
            _, left = render.stock_of(self.game.state, board)
            return f"the {card} of {left}"
        return f"the {card}" if move.source == "discard" else ""

    def hint(self, legal: list[int]) -> None:
        """Say what an agent would do here, with its ranking where it has one."""
        if self.adviser is None:
            self._say("There is nobody to ask.", "red")
            return
        moves = ask_agent(self.adviser, self._seen_by(self.seat))["moves"]
        if moves[0]["win"] is None:
            action = moves[0]["action"]
            self._say(f"hint: {legal.index(action) + 1}  {self._text(action)}", "green")
        else:
            table = suggestion_table(moves, title="hint", most=_MOST_SUGGESTIONS, text=self._text)
            self.console.print(table)
