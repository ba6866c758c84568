"""The commands `skipbo train`, `evaluate` and `suggest`, as a user calls them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from skipbo_env.cli import main, run
from training.cli import evaluate, tournament, train

TINY = [
    *("--hidden", "16", "--iterations", "2", "--games", "4", "--warm-start", "1"),
    *("--warm-start-games", "6", "--max-nodes", "8", "--max-turns", "30", "--threads", "1"),
    *("--eval-every", "1", "--eval-pairs", "2"),
]

WORKED_TURN = {
    "hand": ["3", "6", "8", "12", "S"],
    "building": [5, 11, 2, 0],
    "players": [
        {"stock_top": "7", "stock_size": 12, "discards": [["4"], ["10"], [], []]},
        {"stock_top": "5", "stock_size": 20, "discards": [[], [], [], []], "hand_size": 5},
    ],
}


def test_evaluate_prints_one_json_object(capsys: pytest.CaptureFixture[str]) -> None:
    code = run(evaluate, "evaluate", ["greedy", "--against", "simple", "--games", "20", "--json"])
    assert code == 0
    result = json.loads(capsys.readouterr().out)
    keys = {"agent", "against", "games", "win_rate", "interval", "loss_rate", "stalemate_rate"}
    keys |= {"truncated_rate", "score_rate", "mean_decisions", "seat_win_rates", "seconds"}
    keys |= {"adjusted"}
    assert keys <= set(result)


def test_evaluate_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(evaluate, "evaluate", ["greedy", "--games", "4", "--rules", "short"]) == 0
    assert "win rate" in capsys.readouterr().out


def test_evaluate_tells_a_sequential_test(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["greedy", "--against", "simple", "--rules", "short", "--games", "2000"]
    words += ["--sprt", "0.5", "0.6", "--plot", str(tmp_path / "match.svg")]
    assert run(evaluate, "evaluate", words) == 0
    told = capsys.readouterr().out
    assert "H1" in told
    assert "log likelihood ratio" in told
    assert (tmp_path / "match.svg").is_file()
    words[words.index("2000")] = "20"
    assert run(evaluate, "evaluate", [*words, "--alpha", "0.001"]) == 0
    assert "undecided" in capsys.readouterr().out


def test_tournament_prints_standings(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["greedy", "simple", "play-first", "--games", "40", "--rules", "short"]
    assert run(tournament, "tournament", words) == 0
    told = capsys.readouterr().out
    assert told.index("greedy") < told.index("simple") < told.index("play-first")
    assert "games won by the row" in told
    assert run(tournament, "tournament", [*words, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert [entry["agent"] for entry in result["standings"]] == ["greedy", "simple", "play-first"]
    assert run(tournament, "tournament", ["greedy"]) == 2
    assert "two or more" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nobody"], "nobody"),
        (["greedy", "--games", "0"], "games"),
        (["greedy", "--sprt", "0.6", "0.5"], "sprt"),
        (["greedy", "--sprt", "0.5", "0.6", "--beta", "0.7"], "beta"),
        (["greedy", "--rules", "{"], "rules"),
        (["greedy", "--players", "7"], "players"),
    ],
)
def test_evaluate_says_what_is_wrong(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(evaluate, "evaluate", words) == 2
    assert said in capsys.readouterr().err


def test_train_and_resume(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path / "run")
    assert run(train, "train", ["--run", folder, *TINY]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "run" / "model")
    assert run(train, "train", ["--run", folder, *TINY]) == 2
    assert "holds a run already" in capsys.readouterr().err
    assert run(train, "train", ["--run", folder, "--resume", "--games", "9"]) == 2
    assert "--games" in capsys.readouterr().err
    assert run(train, "train", ["--run", folder, "--resume"]) == 0
    assert run(train, "train", ["--run", folder, "--lam", "2"]) == 2
    assert "lam" in capsys.readouterr().err


# A train command that gets SIGINT the moment that its first line is on stderr, before the call that
# wrote it has returned.
INTERRUPTED = """
import os, signal, sys
from skipbo_env.cli import main

class Stderr:
    encoding, sent = "utf-8", False
    def isatty(self):
        return False
    def write(self, text):
        os.write(2, text.encode())
        if "iteration 1/2000" in text and not self.sent:
            self.sent = True
            os.kill(os.getpid(), signal.SIGINT)
        return len(text)
    def flush(self):
        pass

sys.stderr = Stderr()
sys.exit(main(sys.argv[1:]))
"""


def test_ctrl_c_says_how_to_go_on(tmp_path: Path) -> None:
    """On a real process: SIGINT is answered at once, and the last line is the way on."""
    long = [*TINY[:3], "2000", *TINY[4:]]
    words = ["train", "--run", str(tmp_path / "run"), *long]
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, *words], capture_output=True, text=True, check=False
    )
    told = done.stderr
    assert done.returncode == 0, told
    assert told.count("iteration 1/2000") == 1
    assert told.count("stopping after this iteration") == 1
    assert f"go on with skipbo train --run {tmp_path / 'run'} --resume" in told.splitlines()[-1]


def test_suggest_tells_the_worked_turn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "position.json"
    file.write_text(json.dumps(WORKED_TURN))
    assert main(["suggest", str(file), "--agent", "greedy", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["moves"][0]["verdict"] == "best"
    assert {"order", "action", "text", "move", "win", "line"} <= set(answer["moves"][0])
    assert main(["suggest", str(file), "--agent", "greedy"]) == 0
    assert "hand 6>1" in capsys.readouterr().out
    file.write_text(json.dumps({**WORKED_TURN, "hand": ["5"] * 13}))
    assert main(["suggest", str(file)]) == 2
    assert "hand" in capsys.readouterr().err
    assert main(["suggest", "nowhere.json"]) == 2


def test_evaluating_needs_no_torch() -> None:
    code = (
        "import sys; import training.arena, training.cli, training.tournament, training.oracle;"
        "import training.report;"
        "assert not any(name.split('.')[0] == 'torch' for name in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
