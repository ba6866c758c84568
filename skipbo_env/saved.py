"""A game kept for later: what was dealt and done as JSON, for a later program to go on with.

`Game.to_dict` holds the engine's array, whose layout belongs to one version. Here stand the deal,
the actions (whose ids never change), the order of each reshuffle and the state of the random
generator: following them gives the same game in any version, to the cards still to come.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from skipbo_env import record
from skipbo_env.cards import parse_card
from skipbo_env.checks import shown
from skipbo_env.engine import layout
from skipbo_env.game import Game
from skipbo_env.rules import Rules

FORMAT = "skipbo-saved"
VERSION = 1


class SavedError(ValueError):
    """No saved game, one of an unknown version, or one that the rules do not allow."""


def reshuffles(game: Game) -> dict[int, list[int]]:
    """The order of every reshuffle so far, next card first, by the index of its action.

    Raises:
        ValueError: the game did not start from a deal.
    """
    if game.start is None:
        raise ValueError("a game that starts from a position cannot be saved")
    if len(game.scripts) == int(game.state[layout.RESHUFFLES]):
        return dict(game.scripts)
    found = {}
    state, before = game.start.copy(), game.start.copy()
    for ply, action in enumerate(game.actions):
        np.copyto(before, state)
        record.apply_with(state, action, game.scripts.get(ply))
        if state[layout.RESHUFFLES] != before[layout.RESHUFFLES]:
            events = record.step_events(game.rules, before, state, action)
            cards = next(event["cards"] for event in events if event["type"] == "reshuffle")
            found[ply] = [parse_card(card) for card in cards]
    return found


def save(game: Game) -> dict[str, Any]:
    """The game as JSON data; it holds all hidden cards.

    Raises:
        ValueError: the game did not start from a deal.
    """
    orders = reshuffles(game)
    assert game.start is not None  # reshuffles has refused it
    deal = record.deal_of(game.start)
    return {
        "format": FORMAT,
        "version": VERSION,
        "rules": game.rules.to_dict(),
        "seed": game.seed,
        "first_player": int(game.start[layout.FIRST_PLAYER]),
        "stocks": [[parse_card(card) for card in stock] for stock in deal["stocks"]],
        "draw": [parse_card(card) for card in deal["draw"]],
        "actions": list(game.actions),
        "reshuffles": {str(ply): order for ply, order in orders.items()},
        "rng": [int(game.state[layout.RNG_LO]), int(game.state[layout.RNG_HI])],
    }


def load(data: Mapping[str, Any]) -> Game:
    """The game that `save` wrote.

    Raises:
        SavedError: (a ValueError) it cannot be read, or does not follow.
    """
    try:
        if (data["format"], data["version"]) != (FORMAT, VERSION):
            raise SavedError(f"version {shown(data['version'], 20)} of {shown(data['format'])}")
        game = Game.from_deal(
            Rules.from_dict(data["rules"]),
            data["stocks"],
            data["draw"],
            data["first_player"],
            data["seed"],
        )
        # The known reshuffles use no random number, so the generator stands at the end where it
        # stood when the game was saved, and reshuffles to come follow from the start as well.
        assert game.start is not None
        for state in (game.start, game.state):
            state[layout.RNG_LO], state[layout.RNG_HI] = data["rng"]
        orders = {int(ply): order for ply, order in data["reshuffles"].items()}
        for ply, action in enumerate(data["actions"]):
            game.apply(action, reshuffle=orders.get(ply))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise SavedError(f"no saved game: {str(error)[:200]}") from error
    if int(game.state[layout.RESHUFFLES]) != len(orders):
        raise SavedError("no saved game: a reshuffle is not told")
    return game
