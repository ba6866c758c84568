"""The hand-written C loop plays the very same games, so that it is a yardstick."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from benchmarks.c_loop import build, compiler, same_games

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C compiler")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder: Path = tmp_path_factory.mktemp("c")
    return build(folder)


def test_random_games_are_the_same(library: ctypes.CDLL) -> None:
    assert same_games(library, 64, 1500)["stalemate"] > 100


def test_games_that_somebody_wins_are_the_same(library: ctypes.CDLL) -> None:
    ends = same_games(library, 64, 1500, random=False, seed=2**63)
    assert ends["stock_empty"] > 20
