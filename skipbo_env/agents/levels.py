"""Ten levels of play, from a beginner's to the strongest that there is.

The lower ones are the planner's turn search with noise on what it thinks of each ending, the middle
ones a model's with less and less of it, the highest one is search. Where no model is made for the
numbers of players and teams, the planner takes its place. `python -m training.levels` measures
them; docs/agents.md has the table.
"""

from __future__ import annotations

from typing import NamedTuple


class Level(NamedTuple):
    """How a level plays.

    Attributes:
        planner: whether the planner's evaluation judges, though there may be a model.
        noise: half-width of the noise on an ending's logit. Endings differ by little, so that 0.7
            is a beginner's judgement.
        samples: rollouts of a search; 0 for turn search alone.
    """

    planner: bool
    noise: float
    samples: int


LEVELS = {
    1: Level(planner=True, noise=0.7, samples=0),
    2: Level(planner=True, noise=0.5, samples=0),
    3: Level(planner=True, noise=0.4, samples=0),
    4: Level(planner=True, noise=0.3, samples=0),
    5: Level(planner=True, noise=0.2, samples=0),
    6: Level(planner=True, noise=0.1, samples=0),
    7: Level(planner=True, noise=0.0, samples=0),
    8: Level(planner=False, noise=0.06, samples=0),
    9: Level(planner=False, noise=0.0, samples=0),
    10: Level(planner=False, noise=0.0, samples=200),
}
