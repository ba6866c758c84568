"""The table as text (`ansi`) and as a picture (`rgb_array`), both showing only what one seat sees.

A seat sees its own hand and everything public. None as the seat sees no hand at all: the view of
somebody who watches. Both can be made at any moment, after the end too. Piles are numbered from 1,
as people count. The picture needs Pillow (`pip install 'skipbo-env[render]'`), which is imported
when the first one is made.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from skipbo_env.cards import WILD, card_text
from skipbo_env.checks import shown
from skipbo_env.engine import layout
from skipbo_env.engine.layout import State, board_at, discard_cards, hand_at, hand_cards
from skipbo_env.engine.moves import scores
from skipbo_env.rules import Rules

if TYPE_CHECKING:
    from PIL import Image, ImageDraw, ImageFont


# What the table shows --------------------------------------------------------------------------


def _seats_of(rules: Rules, board: int) -> list[int]:
    """The seats whose own board it is."""
    return [seat for seat in range(rules.players) if rules.board_of(seat) == board]


def _seen_boards(rules: Rules, player: int | None) -> list[int]:
    """All boards, the observer's own first, then in the order in which the seats follow."""
    seats = [((player or 0) + k) % rules.players for k in range(rules.players)]
    return list(dict.fromkeys(rules.board_of(seat) for seat in seats))


def _piles(state: State, board: int) -> list[list[int]]:
    return [discard_cards(state, board, pile) for pile in range(layout.PILES)]


def stock_of(state: State, board: int) -> tuple[int, int]:
    """A stock's top card (0: none) and its size."""
    cells = state[board_at(board) + layout.STOCK_N :]
    return int(cells[layout.STOCK_TOP]), int(cells[layout.STOCK_N])


def _building(state: State) -> list[tuple[int, int]]:
    """Height and top card (0: none) of each building pile."""
    tops = []
    for pile in range(layout.PILES):
        height = int(state[layout.HEIGHT + pile])
        bits = int(state[layout.WILD_BITS + pile])
        tops.append((height, WILD if height and bits >> (height - 1) & 1 else height))
    return tops


def _draw_size(state: State) -> int:
    return int(state[layout.DRAW_HI]) - int(state[layout.DRAW_LO])


def _name(player: int, observer: int | None) -> str:
    return f"player {player}" + (" (you)" if player == observer else "")


def _status(state: State, rules: Rules) -> tuple[str, str]:
    """What is going on, in a few words, and what else there is to say about it."""
    reason = int(state[layout.REASON])
    turn = int(state[layout.TURNS]) + 1
    if not reason:
        return f"player {int(state[layout.PLAYER])} to move", f"turn {turn}"
    winner = int(state[layout.WINNER])
    why = {
        layout.STOCK_EMPTY: "stock empty",
        layout.STALEMATE: "stalemate",
        layout.TURN_LIMIT: "turn limit",
    }[reason]
    if winner < 0:
        return "nobody wins", why
    points = np.zeros(rules.sides, dtype=np.int64)
    scores(state, points)
    side = f"team {winner}" if rules.teams else f"player {winner}"
    return f"{side} wins", f"{why}, {points[winner]} points"


def _check_seat(rules: Rules, player: int | None) -> None:
    if player is not None and not 0 <= player < rules.players:
        raise ValueError(f"player: needs a seat of 0 to {rules.players - 1}, got {shown(player)}")


# Text ------------------------------------------------------------------------------------------

_ANSI = {"low": "97;44", "middle": "97;42", "high": "97;41", "wild": "30;43", "none": "2"}
_SHOWN_DISCARDS = 5


def in_color(console: Console | None = None) -> bool:
    """Whether a console, standard output's unless given, shows colours: a terminal that knows them,
    and no NO_COLOR in the environment.
    """
    console = console or Console()
    return console.is_terminal and console.color_system is not None and not console.no_color


def _group(card: int) -> str:
    """The colour group of a card."""
    if card == WILD:
        return "wild"
    return ("low", "middle", "high")[(card - 1) // 4] if card else "none"


def _chip(card: int, color: bool, playing: bool) -> str:
    """A card as four characters; 0 is an empty place."""
    text = f"{card_text(card, playing=playing):>2}" if card else "--"
    return f"\033[1;{_ANSI[_group(card)]}m {text} \033[0m" if color and card else f"[{text}]"


def _strong(text: str, color: bool) -> str:
    return f"\033[1m{text}\033[0m" if color else text


def _pile_text(cards: list[int], color: bool, playing: bool) -> str:
    """A discard pile's last cards, the top as a card; before them how many more there are."""
    if not cards:
        return _chip(0, color, playing)
    below = [card_text(card, playing=playing) for card in cards[-_SHOWN_DISCARDS:-1]]
    if len(cards) > _SHOWN_DISCARDS:
        below.insert(0, f"(+{len(cards) - _SHOWN_DISCARDS})")
    return " ".join([*below, _chip(cards[-1], color, playing)])


def ansi(
    state: State,
    rules: Rules,
    player: int | None = None,
    color: bool = False,
    playing: bool = False,
) -> str:
    """The table as text, some 120 characters wide at most, but for very large hands.

    Args:
        state: the game.
        rules: what is played.
        player: the seat whose view it is; None for a view without hands.
        color: whether to colour the cards with ANSI escape codes.
        playing: whether cards have the names of playing cards: A, 2 to 10, J, Q, and K for a wild.

    Raises:
        ValueError: no such seat.
    """
    _check_seat(rules, player)
    mover = -1 if state[layout.REASON] else int(state[layout.PLAYER])
    lines = [_strong(" - ".join(_status(state, rules)), color)]
    completed = int(state[layout.COMPLETED_SIZE])
    passes = int(state[layout.PASSES])
    lines.append(
        f"draw pile {_draw_size(state)}, completed piles {completed}"
        + (f", {passes} passes in a row" if passes > 1 else ", 1 pass" if passes else "")
    )
    piles = []
    for pile, (height, top) in enumerate(_building(state), 1):
        worth = f" as {card_text(height, playing=playing)}" if top == WILD else ""
        wanted = card_text(height + 1, playing=playing)
        piles.append(f"{pile}: {_chip(top, color, playing)}{worth} wants {wanted}")
    lines += ["", "building  " + "   ".join(piles)]
    for board in _seen_boards(rules, player):
        seats = _seats_of(rules, board)
        title = f"board {board}, team {board % rules.teams}" if rules.teams else ""
        lines += ["", _strong(title, color)] if title else [""]
        for seat in seats:
            mark = ">" if seat == mover else " "
            count = int(state[hand_at(seat)])
            held = f"{count} in hand" + (":" if seat == player and count else "")
            cards = [_chip(card, color, playing) for card in hand_cards(state, seat)]
            hand = " " + " ".join(cards) if seat == player and cards else ""
            lines.append(f"{mark} {_strong(_name(seat, player), color)}, {held}{hand}")
        top, size = stock_of(state, board)
        lines.append(f"  stock     {_chip(top, color, playing)} {size} left")
        texts = [
            f"{pile}: {_pile_text(cards, color, playing)}"
            for pile, cards in enumerate(_piles(state, board), 1)
        ]
        lines.append("  discards  " + "   ".join(texts))
    return "\n".join(lines)


# Picture ---------------------------------------------------------------------------------------

WIDTH, HEIGHT = 1280, 800
_SCALE = 2  # drawn so much larger and then reduced, which smooths every edge
_RATIO = 1.4  # a card's height by its width
_BACK, _EDGE = -1, 14  # pictures that are no card's face: the back, and a card under another

_FELT = (24, 84, 62)
_FELT_DARK = (13, 54, 40)
_PANEL = (10, 44, 33)
_LINE = (58, 122, 97)
_GOLD = (247, 201, 72)
_WHITE = (250, 247, 240)
_PALE = (176, 208, 193)
_INK = {
    "low": (27, 94, 170),
    "middle": (30, 128, 70),
    "high": (196, 48, 43),
    "wild": (74, 38, 110),
}
_TEAMS = ((94, 176, 232), (240, 140, 98), (190, 150, 230))


class _Pen:
    """Draws on one picture in picture coordinates, whatever it is scaled by."""

    def __init__(self, image: Image.Image) -> None:
        from PIL import ImageDraw

        self.image = image
        self.draw: ImageDraw.ImageDraw = ImageDraw.Draw(image, "RGBA")

    def box(self, x: float, y: float, w: float, h: float, radius: float, **style: Any) -> None:
        """A rounded rectangle; `width` of its outline in picture pixels."""
        style["width"] = round(style.get("width", 1) * _SCALE)
        corners = [round(v * _SCALE) for v in (x, y, x + w, y + h)]
        self.draw.rounded_rectangle(corners, round(radius * _SCALE), **style)

    def text(
        self,
        x: float,
        y: float,
        text: str,
        size: float,
        fill: tuple[int, ...] = _WHITE,
        anchor: str = "lm",
    ) -> float:
        """Text at an anchor point; returns its width."""
        font = _font(round(size * _SCALE))
        self.draw.text((x * _SCALE, y * _SCALE), text, fill=fill, font=font, anchor=anchor)
        return font.getlength(text) / _SCALE

    def card(self, x: float, y: float, width: float, card: int) -> None:
        """A card's face, 0 for an empty place, `_BACK` or `_EDGE`."""
        picture = _card_image(round(width * _SCALE), card)
        self.image.paste(picture, (round(x * _SCALE), round(y * _SCALE)), picture)


def _pillow() -> Any:
    try:
        import PIL
    except ImportError:
        raise ImportError(
            "a picture of the table needs Pillow: pip install 'skipbo-env[render]'"
        ) from None
    return PIL


@lru_cache(maxsize=64)
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    from PIL import ImageFont

    return ImageFont.load_default(size)


@lru_cache(maxsize=256)
def _card_image(width: int, card: int) -> Image.Image:
    """A card `width` real pixels wide: its face, 0 for an empty place, or its back or edge."""
    from PIL import Image, ImageDraw

    height = round(width * _RATIO)
    image = Image.new("RGBA", (width + 1, height + 1))
    draw = ImageDraw.Draw(image)
    frame = (0, 0, width, height)
    radius = width // 9
    if card == 0:
        draw.rounded_rectangle(frame, radius, fill=(0, 0, 0, 40), outline=(*_LINE, 255), width=3)
        return image
    if card == _BACK:
        draw.rounded_rectangle(frame, radius, fill=(32, 48, 92), outline=(14, 22, 46), width=2)
        inset = width // 9
        inner = (inset, inset, width - inset, height - inset)
        draw.rounded_rectangle(
            inner, radius // 2, outline=(150, 170, 220), width=max(1, width // 40)
        )
        cx, cy, r = width / 2, height / 2, width / 4
        diamond = [(cx, cy - 1.4 * r), (cx + r, cy), (cx, cy + 1.4 * r), (cx - r, cy)]
        draw.polygon(diamond, fill=(96, 120, 186))
        return image
    paper = (250, 205, 84) if card == WILD else _WHITE
    draw.rounded_rectangle(frame, radius, fill=paper, outline=(60, 60, 60), width=2)
    if card == _EDGE:
        return image
    ink = _INK[_group(card)]
    text = card_text(card)
    small, large = _font(max(8, round(width * 0.25))), _font(round(width * 0.6))
    x, y = width * 0.07, width * 0.06
    draw.text((x, y), text, fill=ink, font=small, anchor="lt")
    draw.text((width - x, height - y), text, fill=ink, font=small, anchor="rb")
    draw.text((width / 2, height * 0.47), text, fill=ink, font=large, anchor="mm", stroke_width=1)
    bar, y = width * 0.15, height * 0.69
    draw.line((width / 2 - bar, y, width / 2 + bar, y), fill=ink, width=max(2, width // 24))
    return image


@lru_cache(maxsize=1)
def _background() -> Image.Image:
    from PIL import Image

    y, x = np.mgrid[0 : HEIGHT * _SCALE, 0 : WIDTH * _SCALE]
    far = np.hypot(x / (WIDTH * _SCALE) - 0.5, y / (HEIGHT * _SCALE) - 0.45)[..., None]
    near = np.clip(1 - 1.5 * far, 0, 1)
    pixels = near * np.array(_FELT) + (1 - near) * np.array(_FELT_DARK)
    return Image.fromarray(pixels.astype(np.uint8))


def rgb_array(state: State, rules: Rules, player: int | None = None) -> NDArray[np.uint8]:
    """The table as a picture, the observer's board (in the public view board 0) at the bottom.

    Args:
        state: the game.
        rules: what is played.
        player: the seat whose view it is; None for a view without hands.

    Returns:
        uint8 of shape (HEIGHT, WIDTH, 3).

    Raises:
        ValueError: no such seat.
        ImportError: Pillow is missing.
    """
    _check_seat(rules, player)
    _pillow()
    from PIL import Image

    pen = _Pen(_background().copy())
    view = _View(pen, state, rules, player)
    own, *others = _seen_boards(rules, player)
    margin, gap = 16.0, 12.0
    width = min(560.0, (WIDTH - 2 * margin - gap * (len(others) - 1)) / len(others))
    left = (WIDTH - len(others) * width - gap * (len(others) - 1)) / 2
    for k, board in enumerate(others):
        _draw_panel(view, board, left + k * (width + gap), 14, width, 282)
    _draw_middle(view, 306)
    _draw_own(view, own, margin, 520, WIDTH - 2 * margin, 266)
    picture = pen.image.resize((WIDTH, HEIGHT), Image.Resampling.BOX)
    return np.array(picture, dtype=np.uint8)


class _View(NamedTuple):
    """What is drawn, on what, and for whom."""

    pen: _Pen
    state: State
    rules: Rules
    observer: int | None


def _frame(view: _View, board: int, x: float, y: float, w: float, h: float) -> None:
    """A board's panel, in gold where its player is to move or has won."""
    state, rules = view.state, view.rules
    over = bool(state[layout.REASON])
    winner = int(state[layout.WINNER])
    seat = int(state[layout.PLAYER])
    lit = board % rules.sides == winner if over else board == rules.board_of(seat)
    style = {"outline": _GOLD, "width": 3} if lit else {"outline": (*_LINE, 160), "width": 1}
    view.pen.box(x, y, w, h, 12, fill=(*_PANEL, 190), **style)


def _seat_line(view: _View, seat: int, x: float, y: float, right: float, size: float) -> None:
    """A seat's name at the left and its hand at the right, as small backs where there is room."""
    pen, state, observer = view.pen, view.state, view.observer
    mover = not state[layout.REASON] and seat == int(state[layout.PLAYER])
    x += pen.text(x, y, _name(seat, observer), size, _GOLD if mover else _WHITE) + 10
    if mover:
        cx, cy, r = x * _SCALE, y * _SCALE, size * 0.3 * _SCALE
        pen.draw.polygon([(cx, cy - r), (cx + 1.5 * r, cy), (cx, cy + r)], fill=_GOLD)
        x += size * 0.45 + 8
    count = int(state[hand_at(seat)])
    back = size * 0.72
    step = min(back + 2, (right - x - 60 - back) / max(1, count - 1))
    if seat != observer and count and step >= 3:
        right -= back + step * (count - 1)
        for k in range(count):
            pen.card(right + step * k, y - back * _RATIO / 2, back, _BACK)
        right -= 8
    pen.text(right, y, f"hand {count}", size * 0.85, _PALE, "rm")


def _draw_panel(view: _View, board: int, x: float, y: float, w: float, h: float) -> None:
    """Another seat's board: names and hand sizes, stock, four discard piles."""
    _frame(view, board, x, y, w, h)
    pad = 12.0
    narrow = w < 380
    size = 15.0 if narrow else 18.0
    top = y + 20
    if view.rules.teams:
        _team_tag(view, board, x + pad, top)
        top += 23
    for seat in _seats_of(view.rules, board):
        _seat_line(view, seat, x + pad, top, x + w - pad, size)
        top += size + 6
    if narrow:  # the stock above the discard piles, which then fill the width
        card = (w - 2 * pad - 3 * 6) / 4
        _draw_stock(view, board, x + pad, top, card, beside=True)
        left, top = x + pad, top + card * _RATIO + 10
    else:
        card = min(84.0, (w - 2 * pad - 30 - 3 * 8) / 5)
        left = x + (w - 5 * card - 30 - 3 * 8) / 2
        _draw_stock(view, board, left, top + 4, card)
        left, top = left + card + 30, top + 4
    _draw_discards(view, board, left, top, card, 6 if narrow else 8, y + h - 8)


def _draw_own(view: _View, board: int, x: float, y: float, w: float, h: float) -> None:
    """The board at the bottom, large, with the observer's hand."""
    _frame(view, board, x, y, w, h)
    seats = _seats_of(view.rules, board)
    card, pad = 84.0, 18.0
    top, row = y + 24, y + 48
    left = x + pad
    if view.rules.teams:
        _team_tag(view, board, left, top)
        left += 170
    for seat in seats:
        _seat_line(view, seat, left, top, left + 260, 19)
        left += 300
    _draw_stock(view, board, x + pad, row, card)
    left = x + pad + card + 30
    _draw_discards(view, board, left, row, card, 12, y + h - 8)
    left += 4 * (card + 12) + 24
    rule = [round(v * _SCALE) for v in (left - 18, row, left - 18, y + h - 16)]
    view.pen.draw.line(rule, fill=(*_LINE, 200), width=2 * _SCALE)
    if view.observer is None:
        hand = [_BACK] * int(view.state[hand_at(seats[0])])
    else:
        hand = hand_cards(view.state, view.observer)
    _draw_hand(view.pen, hand, left, row + 22, x + w - pad)


def _draw_hand(pen: _Pen, hand: list[int], x: float, y: float, right: float) -> None:
    """A hand in the middle between x and right, overlapping where it is large."""
    width = 104.0
    if not hand:
        pen.text((x + right) / 2, y + width * _RATIO / 2, "no card in hand", 20, _PALE, "mm")
        return
    step = min(width + 8, (right - x - width) / max(1, len(hand) - 1))
    start = (x + right - width - step * (len(hand) - 1)) / 2
    for k, card in enumerate(hand):
        pen.card(start + step * k, y, width, card)


def _team_tag(view: _View, board: int, x: float, y: float) -> None:
    pen, team = view.pen, board % view.rules.teams
    pen.box(x, y - 10, 66, 20, 10, fill=_TEAMS[team])
    pen.text(x + 33, y, f"team {team}", 14, (16, 30, 26), "mm")
    pen.text(x + 76, y, f"board {board}", 14, _PALE)


def _draw_stock(
    view: _View, board: int, x: float, y: float, card: float, beside: bool = False
) -> None:
    """A stock with its number of cards, below or beside it."""
    pen = view.pen
    top, size = stock_of(view.state, board)
    for k in range(min(3, max(0, size - 1)), 0, -1):
        pen.card(x - 2 * k, y + 2 * k, card, _BACK)
    pen.card(x, y, card, top)
    if beside:
        middle = y + card * _RATIO / 2
        pen.text(x + card + 12, middle - 8, str(size), 24, _GOLD)
        pen.text(x + card + 12, middle + 14, "stock", 13, _PALE)
    else:
        below = y + card * _RATIO
        pen.text(x + card / 2, below + 20, str(size), 24, _GOLD, "mm")
        pen.text(x + card / 2, below + 41, "stock", 13, _PALE, "mm")


def _draw_discards(
    view: _View, board: int, x: float, y: float, card: float, gap: float, bottom: float
) -> None:
    """A board's four discard piles, side by side."""
    for pile, cards in enumerate(_piles(view.state, board)):
        _draw_pile(view.pen, cards, pile, x + pile * (card + gap), y, card, bottom)


def _draw_pile(
    pen: _Pen, cards: list[int], pile: int, x: float, y: float, card: float, bottom: float
) -> None:
    """A discard pile, fanned downwards so that the cards below its top can be read."""
    room = bottom - y - card * _RATIO - 18
    strip = min(card * 0.31, max(card * 0.24, room / max(1, len(cards) - 1)))
    seen = cards[-(int(room / strip) + 1) :]
    if not seen:
        pen.card(x, y, card, 0)
    for k, face in enumerate(seen):
        pen.card(x, y + k * strip, card, face)
    below = y + card * _RATIO + max(0, len(seen) - 1) * strip
    hidden = len(cards) - len(seen)
    label = f"{pile + 1} (+{hidden})" if hidden else str(pile + 1)
    pen.text(x + card / 2, below + 9, label, 13, _PALE, "mm")


def _draw_middle(view: _View, y: float) -> None:
    """Draw pile, building piles and completed piles between the status and the house rules."""
    pen, state, rules, _ = view
    card, gap = 96.0, 26.0
    top = y + 14
    left = WIDTH / 2 - 2 * card - 1.5 * gap
    for pile, (count, face) in enumerate(_building(state)):
        x = left + pile * (card + gap)
        for k in range(min(3, max(0, count - 1)), 0, -1):
            pen.card(x - 2 * k, top + 2 * k, card, _EDGE)
        pen.card(x, top, card, face)
        if face == WILD:
            pen.box(x + card - 40, top - 10, 48, 24, 12, fill=_INK["wild"], outline=_GOLD)
            pen.text(x + card - 16, top + 2, f"as {count}", 14, _WHITE, "mm")
        under = top + card * _RATIO
        pen.text(x + card / 2, under + 18, f"wants {count + 1}", 17, _GOLD, "mm")
        pen.text(x + card / 2, under + 37, f"pile {pile + 1}", 13, _PALE, "mm")
    small = 74.0
    for x, count, label in (
        (left - 60 - small, _draw_size(state), "draw pile"),
        (left + 4 * (card + gap) + 34, int(state[layout.COMPLETED_SIZE]), "completed"),
    ):
        for k in range(min(4, max(0, count - 1)), 0, -1):
            pen.card(x - 2 * k, top + 14 + 2 * k, small, _BACK)
        pen.card(x, top + 14, small, _BACK if count else 0)
        under = top + 14 + small * _RATIO
        pen.text(x + small / 2, under + 24, str(count), 24, _WHITE, "mm")
        pen.text(x + small / 2, under + 45, label, 14, _PALE, "mm")
    status, detail = _status(state, rules)
    pen.text(34, top + 44, status, 26, _GOLD if state[layout.REASON] else _WHITE)
    pen.text(34, top + 76, detail, 18, _PALE)
    passes = int(state[layout.PASSES])
    if passes:
        pen.text(34, top + 104, f"{passes} of {rules.players} passes", 16, _PALE)
    for k, rule in enumerate(_house_rules(rules)):
        pen.text(WIDTH - 34, top + 20 + 22 * k, rule, 15, _PALE, "rm")


def _house_rules(rules: Rules) -> list[str]:
    """The settings that change how a turn goes, in a few words each."""
    said = {
        f"hand of {rules.hand_size}": rules.hand_size != 5,
        f"draw {rules.draw_per_turn} a turn": rules.draw_per_turn is not None,
        "must play stock": rules.must_play_stock,
        "no wild discards": not rules.wild_discard,
        "ordered discards": rules.ordered_discards,
        "discards on either board": rules.open_boards,
        "fewest stock wins": rules.stalemate == "fewest_stock",
    }
    return [text for text, holds in said.items() if holds]
