"""Errors with fields of their own go through pickle and copy, as between processes."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from skipbo_env.actions import IllegalAction
from skipbo_env.agents import AgentError, ModelError
from skipbo_env.cards import CardError
from skipbo_env.match import EntryError
from skipbo_env.position import PositionError
from skipbo_env.record import RecordError
from skipbo_env.rules import Rules, RulesError
from skipbo_env.saved import SavedError

ERRORS = [
    RulesError("stock_size", "must be 1 to 40, got 99"),
    EntryError(("left", 1), "needs a whole number"),
    EntryError(("games", 3, "left", 0), "only the winner can have no card left"),
    RecordError("is missing", path=("deal", "stocks")),
    RecordError("needs an object"),
    RecordError("drew 6", event=65, path=("cards", 0), line=2),
    RecordError("drew 6", event=0),
    PositionError("/hand", "is missing"),
    *(kind("why") for kind in (AgentError, CardError, IllegalAction, ModelError, SavedError)),
]


@pytest.mark.parametrize("error", ERRORS, ids=repr)
@pytest.mark.parametrize(
    "again",
    [
        copy.copy,
        copy.deepcopy,
        *(
            lambda error, protocol=protocol: pickle.loads(  # noqa: S301
                pickle.dumps(error, protocol)
            )
            for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
        ),
    ],
)
def test_errors_come_back_as_they_were(error: Exception, again: Callable[[Any], Any]) -> None:
    found = again(error)
    assert type(found) is type(error)
    assert str(found) == str(error)
    assert vars(found) == vars(error)


def test_a_line_that_is_told_later_is_kept() -> None:
    error = RecordError("drew 6", event=65)
    error.line = 7
    assert copy.copy(error).line == 7


def test_a_real_one() -> None:
    with pytest.raises(RulesError) as caught:
        Rules(stock_size=99)
    assert pickle.loads(pickle.dumps(caught.value)).field == "stock_size"  # noqa: S301
