"""The scripts of docs/examples run, with smaller sizes, and leave what they say they leave."""

from __future__ import annotations

import json
import re
import runpy
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "docs" / "examples"
SMALLER = {
    "train_and_plot.py": "run --iterations 2 --games 8 --pairs 4",
    "best_response.py": "run --iterations 1 --games 4 --pairs 5",
    "analyse_record.py": "--rules short --worst 3 --plot game.png",
}


def run(name: str, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", [name, *SMALLER[name].split()])
    runpy.run_path(str(FOLDER / name), run_name="__main__")


def test_every_script_is_run_here() -> None:
    assert {path.name for path in FOLDER.glob("*.py")} == set(SMALLER)


def test_train_and_plot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    run("train_and_plot.py", monkeypatch, tmp_path)
    told = capsys.readouterr().out
    assert (tmp_path / "run" / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((tmp_path / "run" / "model" / "config.json").read_text())["players"] == 2
    assert re.search(r"run.model: \d+\.\d% against greedy \(", told), told


def test_best_response(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    run("best_response.py", monkeypatch, tmp_path)
    told = capsys.readouterr().out
    assert re.search(r"iteration 1: \d+\.\d% of its games against two-player", told), told
    assert re.search(r"run.model: \d+\.\d% against two-player \(", told), told
    settings = json.loads((tmp_path / "run" / "config.json").read_text())
    assert settings["rivals"] == ["two-player"]


def test_analyse_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    run("analyse_record.py", monkeypatch, tmp_path)
    told = capsys.readouterr().out
    assert "player 0, greedy:" in told
    assert "player 1, simple:" in told
    assert (tmp_path / "game.png").read_bytes().startswith(b"\x89PNG")
