"""What a match says with which certainty: intervals of means, the luck taken out, sequential tests.

An observation is the mean over one *unit*: all games on one deal, in which the challenger sits once
on every side. Units are independent of each other, the games in one are not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Z95 = 1.959963984540054
MIN_UNITS = 40  # fewer cannot tell what a wild is worth


def mean_interval(units: NDArray[np.float64]) -> tuple[float, float, float]:
    """Mean of independent observations in [0, 1] and its 95% interval, kept within [0, 1]."""
    mean = float(units.mean())
    if len(units) < 2:
        return mean, 0.0, 1.0
    spread = float(units.std(ddof=1))
    if spread == 0.0:  # all alike: Wilson's interval, which does not collapse
        n = len(units)
        centre = (mean + Z95**2 / (2 * n)) / (1 + Z95**2 / n)
        reach = Z95 / (1 + Z95**2 / n) * math.sqrt(mean * (1 - mean) / n + Z95**2 / (4 * n * n))
        return mean, max(0.0, centre - reach), min(1.0, centre + reach)
    half = Z95 * spread / math.sqrt(len(units))
    return mean, max(0.0, mean - half), min(1.0, mean + half)


def adjusted(units: NDArray[np.float64], luck: NDArray[np.float64]) -> dict[str, Any] | None:
    """The mean of observations with the luck taken out, by regression on it (control variates).

    What luck is worth in each half of the units is taken from the other half, so that the result
    has no bias at all, and the variance is that of the values themselves.

    Args:
        units: observations in [0, 1], shape (n,).
        luck: variables with mean zero, shape (n, k).

    Returns:
        {"win_rate", "interval", "variance_ratio", "coefficients", "mean_luck", "luck_error"}:
        variance_ratio is the variance that is left, as a share of the plain mean's; coefficients
        are the mean of the two halves'; mean_luck should be zero within a few luck_error. None
        where there are too few units, or they or their luck are all alike.
    """
    n = len(units)
    if n < MIN_UNITS or units.std() == 0.0 or (luck.std(axis=0) < 1e-9).any():
        return None
    values = np.empty(n)
    slopes = []
    for half in (0, 1):
        x, y = luck[1 - half :: 2], units[1 - half :: 2]
        slope = np.linalg.lstsq(x - x.mean(axis=0), y - y.mean(), rcond=None)[0]
        slopes.append(slope)
        values[half::2] = units[half::2] - luck[half::2] @ slope
    mean, half_width = float(values.mean()), Z95 * float(values.std(ddof=1)) / math.sqrt(n)
    return {
        "win_rate": mean,
        "interval": [max(0.0, mean - half_width), min(1.0, mean + half_width)],
        "variance_ratio": float(values.var(ddof=1) / units.var(ddof=1)),
        "coefficients": [float(slope) for slope in np.mean(slopes, axis=0)],
        "mean_luck": [float(x) for x in luck.mean(axis=0)],
        "luck_error": [float(x) for x in luck.std(axis=0, ddof=1) / math.sqrt(n)],
    }


@dataclass(frozen=True)
class Sprt:
    """A sequential test of two hypotheses about the mean of units (generalised SPRT).

    The log likelihood ratio of the two means is that of normal observations with the variance seen
    so far, as chess engines are tested in pairs of games (Fishtest; Van den Bergh, "A practical
    introduction to the GSPRT"). One may look after every unit: the bounds keep both error rates.

    Attributes:
        low: the mean under H0.
        high: the mean under H1.
        alpha: the chance to accept H1 where H0 is true, at most (about).
        beta: the chance to accept H0 where H1 is true.
    """

    low: float
    high: float
    alpha: float = 0.05
    beta: float = 0.05

    def __post_init__(self) -> None:
        """Refuse hypotheses and error rates that make no test."""
        if not 0.0 < self.low < self.high < 1.0:
            raise ValueError(
                f"sprt: needs two rates with 0 < low < high < 1, got {self.low:g} and {self.high:g}"
            )
        for name in ("alpha", "beta"):
            if not 0.0 < getattr(self, name) < 0.5:
                raise ValueError(f"{name}: must be above 0 and below 0.5")

    @property
    def bounds(self) -> tuple[float, float]:
        """The log likelihood ratios at which H0 and H1 are accepted (Wald's)."""
        return (
            math.log(self.beta / (1.0 - self.alpha)),
            math.log((1.0 - self.beta) / self.alpha),
        )

    def llr(self, n: Any, total: Any, squares: Any) -> Any:
        """The log likelihood ratio of H1 to H0.

        Args:
            n: units, 1 or more; a number or an array, as the others.
            total: their sum.
            squares: the sum of their squares.
        """
        mean = total / n
        # A quarter is added to the sum of squares, so that the first few units, which may be all
        # alike, do not decide.
        variance = (squares - n * mean * mean + 0.25) / n
        return n * (self.high - self.low) * (2 * mean - self.low - self.high) / (2 * variance)

    def decision(self, llr: float) -> str | None:
        """Which hypothesis is accepted, "H0" or "H1"; None while it is open."""
        low, high = self.bounds
        return "H1" if llr >= high else "H0" if llr <= low else None


def running(units: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """(n, sum, sum of squares) after each unit."""
    return np.arange(1, len(units) + 1), np.cumsum(units), np.cumsum(units * units)
