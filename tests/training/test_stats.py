"""Intervals, control variates and sequential tests, against simulations and values worked out by
hand.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from training.stats import Sprt, adjusted, mean_interval, running


def test_interval_of_a_mean() -> None:
    mean, low, high = mean_interval(np.array([0.0, 1.0, 0.5, 0.5]))
    half = 1.959964 * np.std([0, 1, 0.5, 0.5], ddof=1) / 2
    assert (mean, low, high) == pytest.approx((0.5, 0.5 - half, 0.5 + half))
    # Wilson's interval of 0 of 4, worked out by hand: 0 to z^2 / (n + z^2).
    assert mean_interval(np.zeros(4)) == pytest.approx((0.0, 0.0, 3.8415 / 7.8415), abs=1e-4)
    assert mean_interval(np.ones(4)) == pytest.approx((1.0, 4 / 7.8415, 1.0), abs=1e-4)


def test_luck_taken_out_leaves_the_mean_and_less_variance() -> None:
    """Outcomes that are luck to nine tenths: intervals of 2,000 simulated matches hold the true
    mean in 95% of them, plain and adjusted, and the adjusted mean has no bias.
    """
    draw = np.random.default_rng(5)
    matches, units = 2000, 100
    luck = draw.normal(size=(matches, units, 2))
    values = 0.5 + luck @ np.array([0.09, 0.03]) + draw.normal(0, 0.03, size=(matches, units))
    results = [adjusted(v, x) for v, x in zip(values, luck, strict=True)]
    assert all(result is not None for result in results)
    means = np.array([result["win_rate"] for result in results])
    error = means.std() / math.sqrt(matches)
    assert abs(means.mean() - 0.5) < 4 * error
    inside = np.mean([r["interval"][0] < 0.5 < r["interval"][1] for r in results])
    assert 0.93 < inside < 0.97
    ratios = [r["variance_ratio"] for r in results]
    assert np.mean(ratios) == pytest.approx(0.1, abs=0.01)
    assert np.mean([r["coefficients"] for r in results], axis=0) == pytest.approx(
        [0.09, 0.03], abs=0.001
    )


def test_luck_that_says_nothing_costs_nothing_much() -> None:
    draw = np.random.default_rng(6)
    values = draw.choice([0.0, 0.5, 1.0], size=1000)
    result = adjusted(values, draw.normal(size=(1000, 2)))
    assert result is not None
    assert result["variance_ratio"] == pytest.approx(1.0, abs=0.02)
    assert adjusted(values[:10], np.ones((10, 2))) is None
    assert adjusted(np.full(1000, 0.5), draw.normal(size=(1000, 2))) is None
    assert adjusted(values, np.zeros((1000, 2))) is None


def decisions(sprt: Sprt, mean: float, runs: int, units: int, seed: int) -> list[str | None]:
    """How the test ends in simulated matches of pairs: both games won, one each, none."""
    draw = np.random.default_rng(seed)
    both = mean - 0.25
    found = []
    for _ in range(runs):
        pairs = draw.choice([1.0, 0.5, 0.0], p=[both, 0.5, 0.5 - both], size=units)
        ratios = sprt.llr(*running(pairs))
        low, high = sprt.bounds
        crossed = np.flatnonzero((ratios <= low) | (ratios >= high))
        found.append(sprt.decision(float(ratios[crossed[0]])) if len(crossed) else None)
    return found


@pytest.mark.parametrize(("alpha", "beta"), [(0.05, 0.05), (0.02, 0.1)])
def test_error_rates_of_the_sequential_test(alpha: float, beta: float) -> None:
    """Looking after every unit, each hypothesis is wrongly refused no more often than asked for
    (2,000 matches each, three errors of slack), and matches end.
    """
    sprt, runs = Sprt(0.5, 0.56, alpha, beta), 2000
    wrong = [
        decisions(sprt, mean, runs, 4000, seed).count(refused) / runs
        for mean, refused, seed in ((0.5, "H1", 1), (0.56, "H0", 2))
    ]
    for rate, bound in zip(wrong, (alpha, beta), strict=True):
        assert bound / 3 < rate < bound + 3 * math.sqrt(bound * (1 - bound) / runs)
    assert decisions(sprt, 0.53, 200, 20_000, 3).count(None) == 0
    assert decisions(sprt, 0.53, 200, 20, 4).count(None) > 150


def test_the_ratio_by_hand() -> None:
    """Four pairs with mean 0.625: n (h1 - h0) (2 mean - h0 - h1) / (2 variance)."""
    sprt = Sprt(0.5, 0.6)
    pairs = np.array([1.0, 0.5, 0.5, 0.5])
    variance = (pairs.var() * 4 + 0.25) / 4
    assert sprt.llr(4, pairs.sum(), (pairs**2).sum()) == pytest.approx(
        4 * 0.1 * (1.25 - 1.1) / (2 * variance)
    )
    assert sprt.bounds == pytest.approx((-math.log(19), math.log(19)))
    assert [sprt.decision(x) for x in (-3.0, 0.0, 3.0)] == ["H0", None, "H1"]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ((0.5, 0.5), "sprt"),
        ((0.6, 0.5), "sprt"),
        ((0.0, 0.5), "sprt"),
        ((0.5, 1.0), "sprt"),
        ((0.5, 0.6, 0.0), "alpha"),
        ((0.5, 0.6, 0.05, 0.5), "beta"),
    ],
)
def test_tests_that_cannot_be(arguments: tuple[float, ...], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        Sprt(*arguments)
