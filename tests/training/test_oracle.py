"""The oracle: its plans are legal turns that change nothing, it profits from what it sees, and it
is out of reach of whoever plays.
"""

from __future__ import annotations

import numpy as np
import pytest

from skipbo_env.actions import MOVES
from skipbo_env.agents import AgentError, make_agent
from skipbo_env.agents.heuristics import GREEDY
from skipbo_env.agents.turn import new_work
from skipbo_env.engine import layout
from skipbo_env.game import Game
from skipbo_env.rules import Rules
from training.oracle import SEES, measure, new_plans, plan_turn

SHORT = Rules(stock_size=8)


@pytest.mark.parametrize("sees", SEES)
def test_plans_are_whole_legal_turns(sees: str) -> None:
    """Every action of a plan is legal when its time comes; it ends the turn or wins; the game that
    it is made for stays as it was.
    """
    net = make_agent("two-player").model.value
    game = Game(SHORT, seed=5)
    plans, work = new_plans(game.state), new_work(game.state, net)
    through = 0
    for turn in range(100):
        if game.over:
            break
        before, player = game.state.copy(), game.player
        nodes = np.full(2, 256)
        n = plan_turn(game.state, plans, SEES[sees], GREEDY, net, work, nodes)
        assert np.array_equal(game.state, before)
        hidden = game.state[layout.DRAW_LO] + game.state[layout.board_at(player)]
        for k in range(n):
            assert game.player == player, turn
            action = int(plans.path[k])
            last = k == n - 1
            if last:
                moved = game.state[layout.DRAW_LO] + game.state[layout.board_at(player)]
                through += int(moved != hidden)
            game.apply(action)  # raises where it is not legal
            assert last or MOVES[action].kind == "play"
        assert game.over or game.player != player
    assert through > 3  # turns that go on behind a hidden card


def test_it_wins_more_the_more_it_sees() -> None:
    """Eight-card stocks, where luck is largest: seeing all of it wins nearly all games."""
    rates = {
        sees: measure("greedy", games=40, sees=sees, rules=SHORT, seed=3, workers=2)["win_rate"]
        for sees in SEES
    }
    assert rates["game"] >= 0.9
    assert rates["reply"] > 0.6
    assert rates["turn"] > 0.5
    again = measure("greedy", games=40, sees="game", rules=SHORT, seed=3)
    assert again["win_rate"] == rates["game"]


def test_no_name_leads_to_it() -> None:
    for text in ("oracle", "oracle:two-player", "turn?sees=game", "py:training.oracle:measure"):
        with pytest.raises(AgentError):
            make_agent(text)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"against": "simple"}, "against"),
        ({"against": "nobody"}, "nobody"),
        ({"sees": "nothing"}, "sees"),
        ({"games": 0}, "games"),
        ({"model": "greedy"}, "model"),
        ({"rules": Rules(players=3)}, "two"),
    ],
)
def test_bad_requests(changes: dict[str, object], word: str) -> None:
    request = {"against": "greedy", "games": 2, **changes}
    with pytest.raises(ValueError, match=word):
        measure(**request)
