"""Rules from any data: rules that can be dealt, or a RulesError that names the field."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from skipbo_env.game import Game
from skipbo_env.rules import PRESETS, Rules, RulesError

FIELDS = list(Rules().to_dict())
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 61),
    st.integers(),
    st.floats(),
    st.text(max_size=6),
    st.sampled_from(["random", "own", "team", "draw", "fewest_stock", 10**4000, [], {}, b"own"]),
    st.lists(st.integers(), max_size=2),
)
ANYTHING = st.recursive(
    VALUES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


def check(data: Any) -> None:
    error = None
    try:
        rules = Rules.from_dict(data)
    except RulesError as caught:
        error = caught
    if error is not None:
        assert str(error) == f"{error.field}: {error.message}"
        return
    assert Rules.from_dict(json.loads(json.dumps(rules.to_dict()))) == rules
    game = Game(rules, seed=1)
    assert game.over or game.legal_actions()


@settings(max_examples=500, deadline=None)
@given(data=st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=6))
def test_any_settings(data: dict[str, Any]) -> None:
    check(data)


@settings(max_examples=300, deadline=None)
@given(
    name=st.sampled_from(sorted(PRESETS)),
    changes=st.dictionaries(st.sampled_from(FIELDS), VALUES, min_size=1, max_size=2),
)
def test_any_change_of_a_preset(name: str, changes: dict[str, Any]) -> None:
    check({**PRESETS[name].to_dict(), **changes})


@settings(max_examples=200, deadline=None)
@given(data=ANYTHING | st.dictionaries(st.integers() | st.text(max_size=5) | st.none(), VALUES))
def test_anything_at_all(data: Any) -> None:
    check(data)


@settings(max_examples=200, deadline=None)
@given(rules=ANYTHING, players=VALUES)
def test_anything_with_players(rules: Any, players: Any) -> None:
    try:
        found = Rules.of(rules, players)
    except RulesError:
        return
    assert isinstance(found, Rules)
