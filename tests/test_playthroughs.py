"""Whole games, compared line by line with the text files of tests/playthroughs.

`python -m tests.make_playthroughs` writes them anew where a change is meant.
"""

from __future__ import annotations

from itertools import zip_longest

import pytest

from skipbo_env.rules import PRESETS
from tests.make_playthroughs import FOLDER, playthrough


def test_every_preset_has_a_playthrough() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(PRESETS)


@pytest.mark.parametrize("preset", PRESETS)
def test_playthrough(preset: str) -> None:
    written = (FOLDER / f"{preset}.txt").read_text(encoding="utf-8").splitlines()
    action = ""
    for number, (old, new) in enumerate(zip_longest(written, playthrough(preset)), 1):
        action = new if new is not None and new.startswith("action ") else action
        assert old == new, f"{preset}.txt, line {number}, after {action or 'the deal'}"
