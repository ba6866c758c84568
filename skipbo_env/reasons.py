"""Why a move, in words: what it does at this table and where the turn that it begins leaves off.

Every phrase is read off the position and the planned line of plays, never off what is hidden: a
stock card that a play would show, or cards that would be drawn, are left unsaid.
"""

from __future__ import annotations

from collections.abc import Sequence

from skipbo_env.actions import MOVES, Cells, acting_board, played_card
from skipbo_env.agents.network import chain, hand_bits
from skipbo_env.cards import card_text
from skipbo_env.engine import layout
from skipbo_env.engine.layout import HEIGHT, PILES, STOCK_TOP, TOP, WILD, State
from skipbo_env.game import Game
from skipbo_env.rules import Rules

_FEW = {1: "one card", 2: "two cards", 3: "three cards"}


def reasons(game: Game, line: Sequence[int], line_ends: str | None) -> list[str]:
    """What a move does, most telling first.

    Args:
        game: the position; the seat to move is advised.
        line: the move and the rest of the turn as planned, to its end or the next hidden card.
        line_ends: "discard", "stock_flip", "refill", "win" or "pass"; None where it is cut off.

    Returns:
        Phrases such as "plays your stock 7"; at least one.
    """
    only = len(game.legal_actions()) == 1
    states = game.states_along(line)
    return reasons_along(game.rules, public_cells(game.state), states, line, line_ends, only=only)


def public_cells(state: State) -> list[int]:
    """The cells of a game's array up to its hands, which are looked at one by one."""
    cells: list[int] = state[: int(state[layout.AT_SEEN])].tolist()
    return cells


def reasons_along(
    rules: Rules,
    before: Cells,
    states: Sequence[State],
    line: Sequence[int],
    line_ends: str | None,
    *,
    only: bool,
) -> list[str]:
    """`reasons`, for a caller that has followed the line.

    Args:
        rules: what is played.
        before: `public_cells` of the position.
        states: the game before each action of the line, and after the last.
        line: the move and the rest of the turn as planned.
        line_ends: what ends it.
        only: whether there is no other legal move.
    """
    told = ["is the only legal move"] if only else []
    action = int(line[0])
    told += _of_move(before, rules, action)
    player, end = int(before[layout.PLAYER]), states[-1]
    if line_ends == "win":
        told.append("wins the game" if len(line) == 1 else "wins the game this turn")
    else:
        for step in range(1, len(line)):
            if MOVES[line[step]].source == "stock":
                told.append(_later(before, states[step], rules, line[step], step))
                break
    hand = layout.hand_at(player)
    held = int(states[-2][hand]) - (MOVES[line[-1]].source == "hand")
    if held == 0 and end[layout.PLAYER] == player and end[hand]:
        when = "empties your hand" if len(line) == 1 else "goes on to empty your hand"
        told.append(f"{when}: you draw anew and play on")
    if line_ends in ("discard", "pass"):
        told += _turn_over(before, end, rules, player)
    return told or [_plain(before, action)]


def _later(before: Cells, state: State, rules: Rules, action: int, step: int) -> str:
    """What a move has to do with a stock card that is played some steps later."""
    what = f"{_whose(action)} {_named(state, rules, action)}"
    card = played_card(state, rules, action)
    if card == WILD or _fits(before, card):
        return f"comes before {what}, which fits already"
    return f"makes way for {what} in {'the next play' if step == 1 else f'{step} plays'}"


def _named(state: Cells, rules: Rules, action: int) -> str:
    """The card that an action moves; a wild with the rank that it stands for."""
    card = played_card(state, rules, action)
    if card != WILD:
        return card_text(card)
    move = MOVES[action]
    return f"wild as {_a(int(state[HEIGHT + move.pile]) + 1)}" if move.kind == "play" else "wild"


def _whose(action: int) -> str:
    """Whose stock a play is from."""
    return "your partner's stock" if MOVES[action].other else "your stock"


def _a(rank: int) -> str:
    """A rank with its article."""
    return f"{'an' if rank in (8, 11) else 'a'} {rank}"


def _of_move(state: Cells, rules: Rules, action: int) -> list[str]:
    """What the move itself does."""
    move = MOVES[action]
    if move.kind == "pass":
        return ["has no card to play or to draw"]
    if move.kind == "discard":
        return [_of_discard(state, rules, action)]
    told = []
    if move.source == "stock":
        told.append(f"plays {_whose(action)} {_named(state, rules, action)}")
    elif played_card(state, rules, action) == WILD:
        told.append(f"spends a {_named(state, rules, action)}")
    if move.source == "discard":
        board = layout.board_at(acting_board(state, rules, action))
        if under := layout.second_card(state, board, move.source_pile):
            name = "wild" if under == WILD else under
            told.append(f"uncovers the {name} on discard pile {move.source_pile + 1}")
        else:
            told.append(f"clears discard pile {move.source_pile + 1}")
    if int(state[HEIGHT + move.pile]) == 11:
        told.append(f"completes building pile {move.pile + 1}")
    return told


def _of_discard(state: Cells, rules: Rules, action: int) -> str:
    """How a discard lies on its pile."""
    move = MOVES[action]
    board = layout.board_at(acting_board(state, rules, action))
    top = int(state[board + TOP + move.pile])
    pile = f"{'partner ' if move.other else ''}discard pile {move.pile + 1}"
    if move.card == WILD:
        return "gives up a wild"
    if top == 0:
        return f"starts {pile}"
    if top == WILD:
        return f"covers a wild on {pile}"
    if top == move.card + 1:
        return f"goes on down from the {top} on {pile}"
    if top == move.card:
        return f"lies on an equal {top} on {pile}"
    if top < move.card:
        return f"covers the {top} on {pile}"
    return f"lies on the higher {top} on {pile}"


def _turn_over(before: Cells, end: State, rules: Rules, player: int) -> list[str]:
    """How the turn leaves the table: the own stock card, wilds kept, the next side's stocks."""
    told = []
    after = public_cells(end)
    board = rules.board_of(player)
    top = int(after[layout.board_at(board) + STOCK_TOP])
    if top and top != WILD:
        short = cards_short(end, player, board)
        if short in _FEW:
            told.append(f"{_FEW[short]} short of your stock card {top}")
        elif short == 0:
            told.append(f"holds all that your stock card {top} needs")
    wilds = int(after[layout.hand_at(player) + WILD])
    if wilds:
        told.append("keeps a wild" if wilds == 1 else f"keeps {wilds} wilds")
    following = (player + 1) % rules.players
    boards = [rules.board_of(following)]
    if rules.teams:
        boards.append((boards[0] + rules.teams) % rules.boards)
    for place, theirs in enumerate(boards):
        top = int(after[layout.board_at(theirs) + STOCK_TOP])
        if top in (0, WILD):
            continue
        owner = "next player's stock" if place == 0 else "next player's partner's stock"
        fitted, fits = _fits(before, top), _fits(after, top)
        if fits and not fitted:
            told.append(f"opens {_a(top)} for the {owner}")
        elif fitted and not fits:
            told.append(f"closes the way of the {top} on the {owner}")
        elif fits:
            told.append(f"leaves a way for the {top} on the {owner}")
    return told


def _fits(state: Cells, card: int) -> bool:
    """Whether some building pile wants a natural card."""
    return card - 1 in state[HEIGHT : HEIGHT + PILES]


def cards_short(state: State, player: int, board: int) -> int:
    """The fewest cards that a seat lacks to play a stock's top: each rank in between comes from its
    hand, its own board's discard piles from the top down, or a wild in its hand.

    Args:
        state: the game.
        player: the seat.
        board: whose stock and discard piles; its top is a natural card.
    """
    missing, _ = chain(state, layout.board_at(board), hand_bits(state, player))
    return max(0, missing // 13 - int(state[layout.hand_at(player) + WILD]))


def _plain(state: Cells, action: int) -> str:
    """What is left to say of a play that does nothing else."""
    move = MOVES[action]
    return f"brings building pile {move.pile + 1} to {int(state[HEIGHT + move.pile]) + 1}"
