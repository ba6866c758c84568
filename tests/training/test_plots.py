"""Pictures: what is drawn is what was measured, and what cannot be drawn is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from skipbo_env.cli import run
from skipbo_env.rules import Rules
from training import plots
from training.arena import evaluate
from training.cli import plot as command
from training.plots import PlotError, draw_runs, opponents_of, read_log
from training.tournament import tournament


def log_of(iterations: int) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    for i in range(1, iterations + 1):
        lines.append(
            {
                "kind": "train",
                "iteration": i,
                "games": 100.0 * i,
                "cpu_seconds": 36.0 * i,
                "td_error": 0.2 - 0.001 * i,
                "calibration_gap": 0.01,
                "decisions_per_s": 20_000.0,
            }
        )
        if i % 10 == 0:
            rates = {"win_rate_simple": 0.9, "low_simple": 0.8, "high_simple": 0.95}
            rates |= {"win_rate_greedy": 0.5, "low_greedy": 0.4, "high_greedy": 0.6}
            lines.append({"kind": "evaluation", "iteration": i, "games": 100.0 * i, **rates})
            lines[-1]["cpu_seconds"] = 36.0 * i
    return lines


def write_run(folder: Path, lines: list[dict[str, Any]]) -> Path:
    folder.mkdir()
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The figures that are saved meanwhile."""
    figures: list[Any] = []
    save = plots._save

    def keep(figure: Any, path: Any) -> None:
        figures.append(figure)
        save(figure, path)

    monkeypatch.setattr(plots, "_save", keep)
    return figures


def test_curves_show_the_log(tmp_path: Path, drawn: list[Any]) -> None:
    runs = [write_run(tmp_path / name, log_of(n)) for name, n in (("one", 60), ("two", 90))]
    for suffix, head in ((".png", b"\x89PNG"), (".svg", b"<?xml")):
        out = tmp_path / f"curves{suffix}"
        assert run(command, "plot", [*map(str, runs), "--out", str(out)]) == 0
        assert out.read_bytes().startswith(head)
    win, error = drawn[0].axes[:2]
    assert win.get_title(loc="left") == "Win rate against greedy"
    assert [line.get_label() for line in win.get_lines()] == ["one", "two"]
    assert win.get_lines()[1].get_xdata().tolist() == [1000.0 * k for k in range(1, 10)]
    assert win.get_lines()[0].get_ydata().tolist() == [0.5] * 6
    smooth = error.get_lines()[1].get_ydata()
    assert smooth == pytest.approx([0.2 - 0.001 * i for i in range(1, 61)], abs=0.003)


def test_each_learner_has_its_own_curves(tmp_path: Path, drawn: list[Any]) -> None:
    td = log_of(30)
    ppo = [
        {name: part for name, part in line.items() if name not in ("td_error", "calibration_gap")}
        | {"entropy": 1.0, "explained_variance": 0.5 + 0.001 * line["iteration"]}
        for line in td
    ]
    out = tmp_path / "curves.png"
    draw_runs(out, [("ppo", ppo)])
    draw_runs(out, [("td", td), ("ppo", ppo)])
    draw_runs(out, [("td", [{k: v for k, v in line.items() if k != "td_error"} for line in td])])
    titles = [[axes.get_title(loc="left").split(" ")[0] for axes in f.axes] for f in drawn]
    assert titles == [
        ["Win", "Entropy", "Explained", "Decisions"],
        ["Win", "TD", "Calibration", "Entropy", "Explained", "Decisions"],
        ["Win", "Calibration", "Decisions"],
    ]
    explained = drawn[1].axes[4].get_lines()
    assert [line.get_label() for line in explained[1:]] == ["ppo"]
    assert explained[0].get_ydata()[-1] == pytest.approx(0.53)


def test_axes_and_opponents(tmp_path: Path, drawn: list[Any]) -> None:
    lines = log_of(50)
    assert opponents_of(lines) == ["simple", "greedy"]
    out = tmp_path / "curves.png"
    draw_runs(out, [("one", lines)], x="hours", against="simple")
    win = drawn[0].axes[0]
    assert win.get_lines()[0].get_ydata().tolist() == [0.9] * 5
    assert win.get_lines()[0].get_xdata() == pytest.approx([0.1 * k for k in range(1, 6)])
    draw_runs(out, [("young", log_of(5))], x="iterations")
    with pytest.raises(PlotError, match="greedy"):
        draw_runs(out, [("one", lines)], against="nobody")
    with pytest.raises(PlotError, match="games, iterations, hours"):
        draw_runs(out, [("one", lines)], x="years")


def test_logs_that_cannot_be_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_run(tmp_path / "run", log_of(3))
    log = folder / "log.jsonl"
    log.write_text(log.read_text() + '{"kind": "tra')  # a run that is writing
    assert len(read_log(folder)) == 3
    log.write_text("nonsense\n" + log.read_text())
    with pytest.raises(PlotError, match=r"log\.jsonl:1"):
        read_log(folder)
    log.write_text("")
    with pytest.raises(PlotError, match="no iteration"):
        read_log(folder)
    for words, said in (
        ([str(tmp_path)], "holds no run"),
        ([str(folder), "--out", "x.gif"], "x.gif"),
        ([str(folder), "--out", str(tmp_path / "no" / "x.png")], "folder"),
    ):
        assert run(command, "plot", words) == 2
        assert said in capsys.readouterr().err


def test_matches_and_tournaments_are_drawn(tmp_path: Path, drawn: list[Any]) -> None:
    rules = Rules(stock_size=8)
    result = evaluate(
        "simple", "play-first", games=200, rules=rules, plot=tmp_path / "match.png", workers=2
    )
    left, right = drawn[0].axes
    assert left.get_lines()[0].get_ydata()[-1] == pytest.approx(result["win_rate"])
    assert [bar.get_height() for bar in right.patches] == result["seat_win_rates"]
    agents = ["play-first", "simple", "greedy"]
    played = tournament(agents, games=60, rules=rules, plot=tmp_path / "field.png")
    left, right = drawn[1].axes
    order = [entry["agent"] for entry in played["standings"]]
    assert [label.get_text() for label in left.get_yticklabels()] == order
    shown = np.array(right.images[0].get_array().filled(np.nan))
    first, last = order[0], order[-1]
    assert shown[0, -1] == played["cross_table"][first][last]["win_rate"]
    assert np.isnan(np.diag(shown)).all()
    assert all((tmp_path / name).stat().st_size > 10_000 for name in ("match.png", "field.png"))
