"""The comparison of learners runs, counts what each learned from, and compares round by round."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("sb3_contrib")

from benchmarks import learners


def test_each_learner_learns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(learners, "GAMES", {"ours": 64, "vec": 64, "gymnasium": 2})
    words = ["--rounds", "2", "--seconds", "0", "--threads", "1", "--hidden", "16"]
    assert learners.main([*words, "--hidden2", "32", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["network"] == [16, 32]
    found = told["contestants"]
    assert set(found) == {"ours", "vec", "gymnasium"}
    assert all(len(one["rounds"]) == 2 for one in found.values())
    for name, times in told["ratios"].items():
        first, second = (
            ours[0] / theirs[0]
            for ours, theirs in zip(found["ours"]["rounds"], found[name]["rounds"], strict=True)
        )
        assert times == pytest.approx((first + second) / 2)


def test_a_round_is_counted_in_decisions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A round of MaskablePPO is a multiple of its games; ours leaves out what has no successor."""
    monkeypatch.setattr(learners, "GAMES", {"ours": 64, "vec": 64, "gymnasium": 2})
    assert learners.theirs("vec", 16, 32)() == 64 * learners.STEPS * 2
    decisions = learners.ours(16, 32, 1)()
    assert 0.8 * 64 * learners.STEPS < decisions < 64 * learners.STEPS
