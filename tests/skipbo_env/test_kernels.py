"""The kernels on bits and on rows of cells: equal to the plain loops that they stand for."""

from __future__ import annotations

import random

import numpy as np
import pytest

from skipbo_env.engine import layout, moves, rewards
from skipbo_env.engine.observe import cards_slices, unseen_counts
from skipbo_env.game import Game
from skipbo_env.rules import Rules

TABLES = [
    Rules(players=3, stock_size=5),
    Rules(players=4, teams=2, stock_size=4),
    Rules(players=6, teams=3, team_discard="team", ordered_discards=True, stock_size=3),
    Rules(copies=20, wilds=60, hand_size=20, wild_discard=False),
]


def positions(rules: Rules, seed: int = 1) -> list[Game]:
    """A game at every tenth choice, over after the last."""
    rng = random.Random(seed)
    game = Game(rules, seed=seed)
    seen = [game.clone()]
    while not game.over:
        legal = game.legal_actions()
        game.apply(legal[0] if rng.random() < 0.6 else rng.choice(legal))
        if len(game.actions) % 10 == 0 or game.over:
            seen.append(game.clone())
    return seen


def words_of(state: np.ndarray) -> tuple[np.uint64, ...]:
    return tuple(np.uint64(word) for word in moves.legal_words(state))


@pytest.mark.parametrize("rules", TABLES, ids=str)
def test_words_masks_lists_and_choices_agree(rules: Rules) -> None:
    for game in positions(rules):
        words = words_of(game.state)
        ids = [64 * w + i for w, word in enumerate(words) for i in range(64) if int(word) >> i & 1]
        guarded = np.full(rules.num_actions + 128, 7, dtype=np.int8)
        mask = guarded[64 : 64 + rules.num_actions]
        moves.write_mask(words, mask)
        assert set(guarded[:64]) == set(guarded[-64:]) == {7}
        assert np.flatnonzero(mask).tolist() == ids == game.legal_actions()
        assert set(mask.tolist()) <= {0, 1}
        assert moves.count_words(words) == len(ids)
        assert [moves.nth_action(words, k) for k in range(len(ids))] == ids
        assert [a for a in range(rules.num_actions) if moves.is_legal(game.state, a)] == ids


@pytest.mark.parametrize("rules", TABLES, ids=str)
def test_discarded_cards_are_counted_in_games_positions_and_copies(rules: Rules) -> None:
    for game in positions(rules):
        seat = game.player
        games = [game, game.determinize(seat, seed=3)]
        if not game.over:
            games.append(Game.from_position(game.position(seat), seed=3))
        for other in games:
            counts = np.zeros(14, dtype=int)
            for board in range(rules.boards):
                for pile in range(4):
                    for card in layout.discard_cards(other.state, board, pile):
                        counts[card] += 1
            at = layout.DISCARDED
            assert other.state[at : at + 14].tolist() == counts.tolist()


@pytest.mark.parametrize("rules", TABLES, ids=str)
def test_unseen_counts_are_the_hidden_cards(rules: Rules) -> None:
    for game in positions(rules):
        state, seat = game.state, game.player
        hidden = np.zeros(14, dtype=int)
        for card in layout.draw_cards(state):
            hidden[card] += 1
        for board in range(rules.boards):
            for card in layout.stock_cards(state, board)[:-1]:
                hidden[card] += 1
        for other in range(rules.players):
            if other != seat:
                hidden[1:] += state[layout.hand_at(other) + 1 : layout.hand_at(other) + 14]
        counts = np.zeros(14, dtype=np.int32)
        unseen_counts(state, seat, counts)
        assert counts[1:].tolist() == hidden[1:].tolist()


def test_cards_beyond_127_saturate() -> None:
    game = Game(Rules(copies=20, wilds=60), seed=1)
    at = cards_slices(game.rules)
    assert game.observation(kind="cards")[at["draw_size"]].tolist() == [
        127,
        240 + 60 - 60 - 5 - 127,
    ]
    game.state[layout.board_at(game.player) + layout.DEPTH] = 200
    assert game.observation(kind="cards")[at["board_0"]][6] == 127


def test_an_illegal_action_pays_nothing_and_changes_nothing() -> None:
    game = Game(seed=1)
    before, row = game.state.copy(), np.array([5.0, 6.0])
    for action in (-1, 124, 125, 10_000):
        assert rewards.act_checked(game.state, action, rewards.WIN, 1.0, row) == -1
    assert np.array_equal(game.state, before)
    assert row.tolist() == [5.0, 6.0]
