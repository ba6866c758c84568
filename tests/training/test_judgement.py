"""What `training.judgement` says a network gets wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from skipbo_env.agents.agent import TurnAgent, make_agent
from skipbo_env.rules import Rules
from training import judgement


def test_a_known_error_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values that are 0.2 too high show in the level and not in the differences; values whose best
    and others are 0.2 apart show in the differences, and nothing else is blamed for it.
    """
    agent = make_agent("two-player")
    assert isinstance(agent, TurnAgent)
    found = judgement.positions(agent, Rules(), 16, 3, 17)

    def with_error(best: float, others: float) -> dict[str, Any]:
        wrong = [
            (
                state,
                [
                    replace(ending, value=ending.value + (others if i else best))
                    for i, ending in enumerate(endings)
                ],
            )
            for state, endings in found
        ]
        monkeypatch.setattr(judgement, "positions", lambda *_: wrong)
        return judgement.judged(agent, Rules(), 16, 32, candidates=3)

    right = with_error(0.0, 0.0)
    assert right["level_error"] < 0.1
    assert right["difference_error"] < 0.05
    high = with_error(0.2, 0.2)
    assert high["level_error"] == pytest.approx(0.2, abs=0.05)
    assert high["difference_error"] == pytest.approx(right["difference_error"])
    assert high["gain"] == pytest.approx(right["gain"])
    apart = with_error(0.2, 0.0)
    assert apart["difference_error"] == pytest.approx(0.2, abs=0.05)
    parts = [part for part in apart["difference_error_by_kind"].values() if part is not None]
    assert min(parts) > 0.1


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    small = ["two-player", "--positions", "3", "--samples", "4", "--candidates", "2"]
    assert judgement.main(small) == 0
    assert json.loads(capsys.readouterr().out)["positions"] == 3
    for wrong in (["planner"], ["two-player", "--positions", "1"]):
        with pytest.raises(SystemExit):
            judgement.main(wrong)
