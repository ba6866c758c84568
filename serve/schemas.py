"""The JSON of the service as pydantic models: what requests must be, what answers are.

Requests are strict: no unknown field, no text for a number; 5.0 counts as 5, as JSON Schema has it.
A position in a request is documented by `Position` here and checked by `skipbo_env.position`, the
one place that knows what is possible. Fields may be added to answers within /v1, never changed.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    ModelWrapValidatorHandler,
    PrivateAttr,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError
from typing_extensions import Self

from serve import limits
from skipbo_env.actions import MAX_ACTIONS, IllegalAction, parse_action
from skipbo_env.cards import MOST_COPIES, MOST_WILDS, RANKS
from skipbo_env.rules import (
    INDIVIDUALS,
    MAX_HAND,
    MAX_STOCK,
    MAX_TURNS_LIMIT,
    PRESETS,
    TEAM_TABLES,
)

MAX_SEATS = max(seats for tables in TEAM_TABLES.values() for seats in tables)
MAX_SIDES = INDIVIDUALS.stop - 1
MAX_DECK = RANKS * MOST_COPIES + MOST_WILDS


def integral(value: Any) -> Any:
    """5.0 as 5: the number is the same in JSON."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _action(value: Any) -> Any:
    """An action's id from its id or its text."""
    value = integral(value)
    if isinstance(value, str):
        try:
            return parse_action(value)
        except IllegalAction as error:
            message = str(error).removeprefix("action: ")
            raise PydanticCustomError("illegal_action", "{why}", {"why": message}) from None
    return value


class Documented:
    """Marks a field whose schema is another model's, while its value is checked elsewhere."""

    def __init__(self, model: str) -> None:
        self.model = model

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """A reference that `serve.operations` resolves."""
        return {"$component": self.model}


class PositionSchema:
    """Marks a position of a request: its JSON form, or its one-line notation."""

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """A position or a string."""
        return {
            "anyOf": [{"$component": "Position"}, {"type": "string"}],
            "description": "The JSON form, or the one-line notation.",
        }


class ActionSchema:
    """Marks an action: an id, or its text."""

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """An integer or a string."""
        return {
            "anyOf": [
                {"type": "integer", "minimum": 0, "maximum": MAX_ACTIONS - 1},
                {"type": "string", "maxLength": 40},
            ],
            "description": "An action's id, or its text such as 'hand 7>1' (piles from 1).",
        }


# Whole numbers. The bound stands before the validator: the other way round pydantic writes "ge"
# into the schema.
Integral = BeforeValidator(integral)
ActionId = Annotated[int, Field(ge=0, le=MAX_ACTIONS - 1), BeforeValidator(_action), ActionSchema()]
Seat = Annotated[int, Field(ge=0, le=MAX_SEATS - 1), Integral]
Side = Annotated[int, Field(ge=0, le=MAX_SIDES - 1), Integral]
Size = Annotated[int, Field(ge=0, le=MAX_DECK), Integral]
Stock = Annotated[int, Field(ge=0, le=MAX_STOCK), Integral]
Stocks = Annotated[int, Field(ge=0, le=2 * MAX_STOCK), Integral]  # a team has two
HandSize = Annotated[int, Field(ge=0, le=MAX_HAND), Integral]
Height = Annotated[int, Field(ge=0, le=RANKS - 1), Integral]
Ply = Annotated[int, Field(ge=0, le=1_000_000), Integral]
Seed = Annotated[int, Field(ge=0, le=limits.MAX_SEED), Integral]
Many = Annotated[int, Field(ge=1, le=MAX_TURNS_LIMIT), Integral]


class Request(BaseModel):
    """A body: strict, without unknown fields."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class Answer(BaseModel):
    """An answer: further fields may come."""

    model_config = ConfigDict(allow_inf_nan=False)


class CardSchema:
    """Marks a card."""

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """An integer or a string."""
        return {
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": RANKS},
                {"type": "string", "minLength": 1, "maxLength": 16},
            ],
            "description": "1 to 12, or a name in any case: '1' to '12', 'S' for a wild (also W, "
            "wild, skip-bo, K, joker), A, J, Q.",
        }


Card = Annotated[Any, CardSchema()]
Counts = Annotated[
    dict[str, Size],
    Field(description="How many of each card: names as keys, a missing one is 0."),
]


class Rules(Request):
    """The settings of a game; a missing one takes its default."""

    players: Annotated[
        int,
        Field(ge=2, le=MAX_SEATS, description="Seats: 2 to 6, or 4, 6, 8, 9 or 12 in teams."),
        Integral,
    ] = 2
    teams: Annotated[
        int,
        Field(ge=0, le=3, description="0 for individuals, or 2 or 3."),
        Integral,
    ] = 0
    stock_size: Annotated[
        Annotated[int, Field(ge=1, le=MAX_STOCK), Integral] | None,
        Field(description="Cards in each stock; null means 30, or 20 with five or six stocks."),
    ] = None
    hand_size: Annotated[
        int, Field(ge=1, le=MAX_HAND, description="A hand is filled to it."), Integral
    ] = 5
    draw_per_turn: Annotated[
        Annotated[int, Field(ge=1, le=MAX_HAND), Integral] | None,
        Field(description="Cards to draw each turn instead of filling the hand, or null."),
    ] = None
    copies: Annotated[
        int, Field(ge=1, le=MOST_COPIES, description="Cards of each rank."), Integral
    ] = 12
    wilds: Annotated[
        int, Field(ge=0, le=MOST_WILDS, description="Wilds in the deck."), Integral
    ] = 18
    first_player: Annotated[
        Seat | Literal["random"], Field(description="The seat that begins, or 'random'.")
    ] = "random"
    must_play_stock: Annotated[
        bool, Field(description="While a stock top fits, only stock plays are legal.")
    ] = False
    wild_discard: Annotated[bool, Field(description="Whether wilds may be discarded.")] = True
    ordered_discards: Annotated[
        bool,
        Field(description="A card goes only on an empty discard pile or a top that is not lower."),
    ] = False
    team_discard: Annotated[
        Literal["own", "team"],
        Field(description="Whether a member may discard on the team's other board."),
    ] = "own"
    stalemate: Annotated[
        Literal["draw", "fewest_stock"],
        Field(
            description="Who wins where nobody can move: nobody, or the side with the fewest cards."
        ),
    ] = "draw"
    max_turns: Annotated[Many, Field(description="The game is cut off after so many turns.")] = 2000
    target_score: Annotated[Many, Field(description="Points that win a match.")] = 500


class RulesSchema:
    """Marks rules that are checked by `skipbo_env.rules`, which names the failing setting."""

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """A preset's name, settings, or null."""
        return {
            "anyOf": [{"enum": list(PRESETS)}, {"$component": "Rules"}, {"type": "null"}],
            "description": "A preset's name or settings.",
        }


class TeamPlayer(Request):
    """What everybody sees of a player in a team game, whose stocks stand in boards."""

    hand_size: Annotated[
        HandSize | None, Field(description="Cards in the hand; assumed where it is left out.")
    ] = None


class Board(Request):
    """A stock with its four discard piles."""

    stock_top: Annotated[Card | None, Field(description="Null exactly when stock_size is 0.")]
    stock_size: Annotated[Stock, Field(description="Cards in the stock, the top included.")]
    discards: Annotated[
        list[list[Card]],
        Field(min_length=4, max_length=4, description="Four discard piles, from bottom to top."),
    ]


class Player(TeamPlayer, Board):
    """What everybody sees of a player in a game without teams."""


class Position(Request):
    """What one player sees. The seat to move has already drawn."""

    rules: Annotated[
        Literal[tuple(PRESETS)] | Rules | None,  # type: ignore[valid-type]
        Field(description="A preset's name or settings; 'standard' where left out."),
    ] = None
    hand: Annotated[list[Card], Field(max_length=MAX_HAND, description="Your cards.")]
    building: Annotated[
        list[Height] | None,
        Field(
            min_length=4,
            max_length=4,
            description="Heights of the building piles; needed unless building_cards is given.",
        ),
    ] = None
    building_cards: Annotated[
        list[list[Card]] | None,
        Field(min_length=4, max_length=4, description="The building piles' true cards."),
    ] = None
    you: Annotated[Seat | None, Field(description="Your seat, 0 where left out.")] = None
    to_move: Annotated[Seat | None, Field(description="The seat to move, you where left out.")] = (
        None
    )
    players: Annotated[
        list[Player | TeamPlayer],
        Field(min_length=2, max_length=MAX_SEATS, description="By seat."),
    ]
    boards: Annotated[
        list[Board] | None,
        Field(description="Team games only: two for each team."),
    ] = None
    draw_size: Annotated[Size | None, Field(description="Cards in the draw pile.")] = None
    completed: Annotated[
        Counts | None, Field(description="The cards set aside since the last reshuffle.")
    ] = None
    reshuffled: Annotated[
        Counts | None,
        Field(description="What went into the last reshuffle, less what you saw of it since."),
    ] = None
    passes: Annotated[
        Annotated[int, Field(ge=0, le=MAX_SEATS), Integral] | None,
        Field(description="Passes in a row; as many as seats at a stalemate."),
    ] = None
    turns: Annotated[
        Annotated[int, Field(ge=0, le=MAX_TURNS_LIMIT), Integral] | None,
        Field(description="Turns ended so far."),
    ] = None
    over: Annotated[
        None, Field(description="Stands in the positions of ended games, which are refused here.")
    ] = None


class Asked(Request):
    """Who is asked, and for how much."""

    agent: Annotated[
        str | None,
        Field(
            max_length=200, description="A name from /v1/agents; the service's own where left out."
        ),
    ] = None
    top: Annotated[
        Annotated[int, Field(ge=1, le=MAX_ACTIONS), Integral] | None,
        Field(description="How many moves to return; all where left out."),
    ] = None


class Options(Asked):
    """What a suggestion is to be like."""

    budget_ms: Annotated[
        Annotated[int, Field(ge=1, le=limits.MAX_BUDGET_MS), Integral] | None,
        Field(description="Time for an agent that searches by time, for each position."),
    ] = None
    seed: Annotated[Seed, Field(description="Decides all that is random in the answer.")] = 0
    allow: Annotated[
        list[ActionId] | None,
        Field(max_length=MAX_ACTIONS, description="Rank these actions alone."),
    ] = None
    avoid: Annotated[
        list[ActionId] | None, Field(max_length=MAX_ACTIONS, description="Leave these actions out.")
    ] = None


class SuggestRequest(Options):
    """A position, and what is asked about it."""

    position: Annotated[Any, PositionSchema()]


class BatchRequest(Options):
    """Many positions, and what is asked about each."""

    positions: Annotated[
        list[Annotated[Any, PositionSchema()]],
        Field(min_length=1, max_length=limits.BATCH_POSITIONS),
    ]


class PlyRequest(Request):
    """What a change of a game is made from."""

    ply: Annotated[
        Ply | None,
        Field(
            description="The game's ply as last answered; 409 where it is another by now. "
            "Not compared where left out."
        ),
    ] = None


class GameRequest(Request):
    """A game to be dealt. Seats that are nobody's are played by agents."""

    rules: Annotated[
        str | dict[str, Any] | None,
        RulesSchema(),
        Field(description="A preset's name or settings; 'standard' where left out."),
    ] = None
    players: Annotated[
        Annotated[int, Field(ge=2, le=MAX_SEATS), Integral] | None,
        Field(description="Seats, where the rules do not say: 2 to 6."),
    ] = None
    seat: Annotated[Seat | None, Field(description="Yours, 0 where left out.")] = None
    seats: Annotated[
        list[Seat] | None,
        Field(
            min_length=1,
            max_length=MAX_SEATS,
            description="Instead of seat: those of several people at one screen. Answers show what "
            "the one to move may see.",
        ),
    ] = None
    agents: Annotated[
        list[Annotated[str, Field(max_length=200)]] | None,
        Field(
            max_length=MAX_SEATS - 1,
            description="Names from /v1/agents: one for all other seats, or one for each in their "
            "order; the service's own where left out.",
        ),
    ] = None
    seed: Annotated[
        Seed | None,
        Field(description="Decides the shuffles; an unknown one where left out."),
    ] = None


class MoveRequest(Request):
    """A move of the seat to move."""

    ply: Annotated[
        Ply,
        Field(
            description="The game's ply as last answered; 409 where it is another by now, so that "
            "a move that is sent twice is made once.",
        ),
    ]
    action: ActionId


class HintRequest(Asked):
    """Who is to give a hint."""


class MatchRequest(Request):
    """A match to keep the score of."""

    sides: Annotated[int, Field(ge=2, le=MAX_SIDES, description="Players, or teams."), Integral] = 2
    target: Annotated[Many, Field(description="Points that win the match.")] = 500
    stock: Annotated[
        Annotated[int, Field(ge=1, le=2 * MAX_STOCK), Integral] | None,
        Field(description="Cards that a side has at a game's start, to check entries against."),
    ] = None


class IndexRequest(Request):
    """What a change of a match is made from."""

    index: Annotated[
        Annotated[int, Field(ge=0, le=limits.MAX_MATCH_GAMES), Integral] | None,
        Field(
            description="How many games are entered as you know it; 409 where it is another number "
            "by now. Not compared where left out."
        ),
    ] = None


class EntryRequest(IndexRequest):
    """How a game of a match ended."""

    winner: Annotated[
        Side | None,
        Field(description="The side that won, null where nobody did."),
    ]
    left: Annotated[
        list[Stocks] | None,
        Field(
            max_length=MAX_SIDES,
            description="Stock cards left with each side; may be left out where nobody won.",
        ),
    ] = None


class AnalysisRequest(Request):
    """A game to review. A record may also stand alone, without this object around it."""

    record: Annotated[
        dict[str, Any],
        Documented("Record"),
    ]
    agent: Annotated[
        str | None,
        Field(
            max_length=200,
            description="Who judges, a name from /v1/agents; the service's own where left out.",
        ),
    ] = None
    _alone: bool = PrivateAttr(False)

    @model_validator(mode="wrap")
    @classmethod
    def _wrap(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Take a record that stands alone."""
        alone = isinstance(data, dict) and "format" in data and "record" not in data
        request = handler({"record": data} if alone else data)
        request._alone = alone
        return request

    @property
    def pointer(self) -> str:
        """Where the record stands in the body."""
        return "" if self._alone else "/record"


class Move(Answer):
    """An action as a record's event without its player."""

    type: Literal["play", "discard", "pass"]
    card: Annotated[str | None, Field(description="'1' to '12' or 'S'.")] = None
    source: Annotated[
        str | None,
        Field(
            alias="from", description="Of a play: 'stock', 'hand' or 'discard:2' (piles from 0)."
        ),
    ] = None
    to: Annotated[
        int | None,
        Field(description="The building pile, or of a discard the discard pile, from 0."),
    ] = None
    rank: Annotated[
        int | None, Field(alias="as", description="Of a play: the rank it counts as.")
    ] = None
    board: Annotated[
        int | None, Field(description="Team games: the board of the stock or discard pile.")
    ] = None


class Action(Answer):
    """An action in its three forms."""

    action: Annotated[int, Field(description="Its id, see docs/formats.md.")]
    text: Annotated[str, Field(description="Such as 'hand 7>1'; piles from 1.")]
    move: Move


Probability = Annotated[float, Field(ge=0, le=1)]


class RankedMove(Action):
    """One move of a suggestion, probabilities always the mover's."""

    order: Annotated[int, Field(ge=0, description="0 for the best.")]
    prior: Annotated[
        Probability | None, Field(description="What the policy gives it, if there is one.")
    ]
    win: Annotated[
        Probability | None,
        Field(description="Probability that the mover's side wins; null without an estimate."),
    ]
    win_se: Annotated[
        float | None, Field(description="Standard error; null where nothing was sampled.")
    ]
    delta: Annotated[float | None, Field(description="win less the best move's; 0 or below.")]
    delta_se: Annotated[float | None, Field(description="Error of the paired difference.")]
    n: Annotated[int | None, Field(description="Samples spent on it.")]
    line: Annotated[
        list[Action],
        Field(
            description="The turn as planned, this move first, to its end or the next hidden card."
        ),
    ]
    line_ends: Annotated[
        Literal["discard", "stock_flip", "refill", "win", "pass"] | None,
        Field(description="What ends the line."),
    ]
    reasons: Annotated[
        list[str],
        Field(description="What the move does, in words, such as 'plays your stock 7'."),
    ] = []
    same_as: Annotated[
        int | None, Field(description="The action of an earlier move that comes to the same.")
    ]
    verdict: Annotated[
        Literal["best", "tie", "inaccuracy", "mistake", "blunder"] | None,
        Field(
            description="By the win probability lost: less than 0.005 tie, 0.02 inaccuracy, "
            "0.05 mistake, else blunder; the first is best; null for others without an estimate."
        ),
    ]


class AgentUsed(Answer):
    """What made an answer."""

    name: str
    method: Annotated[
        str | None,
        Field(
            description="'turn' (turn search by a network), 'search', 'policy', 'planner' or "
            "'rules'; null for an agent that does not tell."
        ),
    ] = None
    model: str | None = None
    sha256: Annotated[str | None, Field(description="Of the model's weights.")] = None


class PositionRead(Answer):
    """How the position was understood."""

    hash: Annotated[str, Field(description="Equal for equal positions.")]
    to_move: int
    inferred: Annotated[
        list[str], Field(description="Fields that were left out and worked out or assumed.")
    ]


class Root(Answer):
    """The position's value."""

    win: Annotated[
        list[Probability | None] | None,
        Field(
            description="Each side's probability to win, by seat or team; null without an estimate."
        ),
    ]
    expected_stock_left: Annotated[
        list[float] | None,
        Field(
            description="Cards that each side is expected to have left in the end; null from the "
            "agents that there are, which do not estimate it."
        ),
    ] = None
    raw_win: Annotated[
        Probability | None, Field(description="The mover's, by the network alone, without search.")
    ] = None


class Search(Answer):
    """What the search did."""

    samples: Annotated[int | None, Field(description="Rollouts; null without any.")]
    seed: int
    stopped_by: Annotated[
        str | None,
        Field(description="'samples', 'time' or 'win' (at once); null without rollouts."),
    ]
    elapsed_ms: float


class Suggestion(Answer):
    """The ranked moves of a position. Probabilities are the mover's."""

    request_id: str
    agent: AgentUsed
    position: PositionRead
    root: Root
    moves: Annotated[list[RankedMove], Field(description="Best first.")]
    search: Search
    warnings: list[str]


class Event(Answer):
    """Something that happened, as a seat may see it (docs/formats.md)."""

    model_config = ConfigDict(extra="allow")

    type: Literal["draw", "play", "complete", "reshuffle", "discard", "pass", "end"]
    player: int | None = None
    card: str | None = None
    cards: Annotated[list[str] | None, Field(description="Of one's own draw.")] = None
    count: Annotated[
        int | None, Field(description="Of others' draws and of a reshuffle, instead of cards.")
    ] = None


class Result(Answer):
    """How a game ended."""

    winner: Annotated[int | None, Field(description="The seat or team; null where nobody won.")]
    reason: Literal["stock_empty", "stalemate", "turn_limit"]
    scores: Annotated[list[int], Field(description="Points of each side.")]


class Ended(Answer):
    """How a game ended, in a position."""

    winner: int | None
    reason: str


class PositionSeen(Position):
    """What a seat sees; it can be sent to /v1/suggest as it is while the seat is to move."""

    over: Annotated[Ended | None, Field(description="Once the game has ended.")] = None  # type: ignore[assignment]


class Game(Answer):
    """A game as a seat sees it. Nothing in it is hidden from that seat."""

    id: Annotated[str, Field(description="Whoever knows it can play; nobody can guess it.")]
    ply: Annotated[int, Field(description="Plays, discards and passes so far, of all seats.")]
    status: Literal["running", "over"]
    seat: Annotated[int, Field(description="Whose view this is.")]
    to_move: Annotated[int | None, Field(description="The seat to move; null once it is over.")]
    position: PositionSeen
    legal: Annotated[list[Action], Field(description="What the seat to move may do.")]
    can_undo: Annotated[bool, Field(description="Whether the last move can be taken back.")]
    events: Annotated[
        list[Event],
        Field(
            description="From the seat's last move on, that move first; before its first move, all."
        ),
    ]
    result: Result | None
    rules: Rules
    seats: Annotated[list[int], Field(description="Seats that people play.")]
    agents: Annotated[
        list[str | None], Field(description="Who plays each seat; null for a person.")
    ]


class Record(Answer):
    """A finished game with all that was hidden (docs/formats.md)."""

    format: Literal["skipbo-record"]
    version: int
    rules: Rules
    seed: int | None
    agents: list[str] | None
    first_player: int
    deal: dict[str, Any]
    events: list[dict[str, Any]]


class Entry(Answer):
    """A game of a match."""

    winner: int | None
    left: list[int] | None
    scores: Annotated[list[int], Field(description="Points of each side in this game.")]


class Match(Answer):
    """A match's score."""

    id: Annotated[str, Field(description="Whoever knows it can add games; nobody can guess it.")]
    sides: int
    target: int
    stock: int | None
    games: list[Entry]
    scores: Annotated[list[int], Field(description="Points of each side.")]
    wins: Annotated[list[int], Field(description="Games won by each side.")]
    winner: Annotated[int | None, Field(description="The side that reached the target.")]
    status: Literal["running", "over"]


class Judged(Action):
    """A move with what it is worth."""

    win: Annotated[
        Probability | None, Field(description="The mover's probability to win after it.")
    ]


class Decision(Answer):
    """A play, discard or pass beside the best one."""

    ply: int
    turn: Annotated[int, Field(description="Turns ended before it.")]
    player: int
    played: Judged
    best: Judged
    lost: Annotated[
        float | None, Field(ge=0, description="The best move's win less the played one's.")
    ]
    verdict: Annotated[
        Literal["best", "tie", "inaccuracy", "mistake", "blunder"] | None,
        Field(description="As in suggestions."),
    ]
    choices: Annotated[int, Field(description="Legal moves there were.")]
    win: Annotated[
        list[Probability | None] | None,
        Field(description="Each side's probability to win before it; null without an estimate."),
    ]
    luck: Annotated[
        list[float] | None,
        Field(
            description="What the cards that it brought to light changed for each side, from the "
            "played move's win to the next decision or the end; with two sides only."
        ),
    ]
    line: Annotated[list[Action], Field(description="The turn that the best move begins.")]
    line_ends: str | None
    reasons: Annotated[list[str], Field(description="What the best move does, in words.")] = []
    shown: Annotated[
        list[dict[str, Any]],
        Field(
            description="What the played move brought to light: stock cards as {'type': 'flip', "
            "'player', 'board', 'card'}, draws as a record's events."
        ),
    ] = []


class PlayerReview(Answer):
    """A player's decisions together."""

    player: int
    side: int
    agent: Annotated[str | None, Field(description="The player's name in the record.")]
    decisions: int
    judged: Annotated[int, Field(description="Decisions with more than one legal move.")]
    lost: Annotated[float | None, Field(description="Win probability lost, all together.")]
    mean_lost: float | None
    agreement: Annotated[
        Probability | None, Field(description="Share of the judged that are best or tied.")
    ]
    verdicts: dict[str, int]


class SideReview(Answer):
    """A side's luck. result = first win - lost + what the other side lost + luck."""

    side: int
    lost: float | None
    luck: Annotated[float | None, Field(description="What the draws were worth; zero-sum.")]
    result: Annotated[
        float | None, Field(description="1 for a win, 0 for none, shared where nobody won.")
    ]
    adjusted: Annotated[float | None, Field(description="The result less the luck.")]


class Analysis(Answer):
    """A game reviewed."""

    request_id: str
    agent: Annotated[AgentUsed | None, Field(description="Who judged; null without decisions.")]
    rules: Rules
    result: Result | None
    complete: Annotated[
        bool,
        Field(description="False where the time was up; what is told is of the decisions told."),
    ]
    decisions_total: int
    decisions: list[Decision]
    players: list[PlayerReview]
    sides: list[SideReview]
    warnings: list[str]


class Review(Answer):
    """A review that is made in the background."""

    id: Annotated[str, Field(description="Whoever knows it can read it; nobody can guess it.")]
    status: Literal["running", "done", "failed"]
    done: Annotated[int, Field(description="Decisions judged so far.")]
    total: Annotated[int, Field(description="Decisions in all.")]
    detail: Annotated[str | None, Field(description="Why it failed.")]
    analysis: Annotated[Analysis | None, Field(description="Once it is done.")]


class FieldError(Answer):
    """One fault of a body."""

    pointer: Annotated[
        str, Field(description="The failing field, an RFC 6901 pointer into the body.")
    ]
    code: str
    detail: str


class Problem(Answer):
    """An error as RFC 9457 has it."""

    type: Annotated[str, Field(description="/problems/ and the kind's name.")]
    title: str
    status: int
    detail: str
    instance: str
    request_id: str
    pointer: Annotated[str | None, Field(description="The first failing field's pointer.")] = None
    errors: list[FieldError] = []
    current: Annotated[
        Game | Match | None,
        Field(description="With 409: the game or match as it stands."),
    ] = None


class BatchAnswer(Answer):
    """A suggestion or a problem for each position, in their order; a problem has a status."""

    request_id: str
    results: list[Suggestion | Problem]


class AgentListed(Answer):
    """An agent that may be asked for."""

    model_config = ConfigDict(extra="allow")

    name: str
    method: str | None = None
    model: str | None = None
    sha256: str | None = None
    description: str | None = None
    options: Annotated[
        dict[str, tuple[int, int]],
        Field(
            description="What may follow its name after a question mark ('?budget_ms=200'), each "
            "with its least and greatest value."
        ),
    ]
    costly: Annotated[
        bool, Field(description="Whether it searches for long; such calls may get 503.")
    ]


class AgentsAnswer(Answer):
    """The agents of this service."""

    default: Annotated[str, Field(description="Who answers where no agent is named.")]
    agents: list[AgentListed]


class RulesAnswer(Answer):
    """The settings, their defaults and the presets."""

    fields: Annotated[dict[str, dict[str, Any]], Field(description="JSON Schema of each setting.")]
    presets: dict[str, Rules]


class Health(Answer):
    """The process answers."""

    status: Literal["ok"]


class Ready(Answer):
    """Agents answer."""

    status: Literal["ready"]
    models: Annotated[list[str], Field(description="Models that can be asked for.")]
    warnings: Annotated[list[str], Field(description="What is missing, in words.")]
