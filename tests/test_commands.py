"""Every `skipbo` command of the manual is run, as written but for the sizes of SMALLER.

A page's commands run one after the other in an empty folder, as a reader would type them. What is
not `skipbo` stands in ELSEWHERE with the place that runs it.
"""

from __future__ import annotations

import io
import shutil
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from skipbo_env import cli
from tests.pages import ALL, PAGES, ROOT, commands, subcommands

# What is long is done with smaller sizes: the value of an option, or words put after a command.
SMALLER = {"--games": "12"}
SMALL_PPO = (
    "--iterations 2 --games 16 --steps 8 --batch-size 64 --hidden 32 --hidden2 32 --eval-every 1 "
    "--eval-pairs 4 --checkpoint-every 1"
)
SMALLER_COMMANDS = {
    ("train", "--algo", "ppo", "--preset", "smoke"): SMALL_PPO,
    ("train", "--algo", "ppo", "--preset", "distilled"): f"{SMALL_PPO} --teach 1",
    ("train", "--preset", "smoke"): (
        "--iterations 2 --games 8 --warm-start 1 --warm-start-games 40 --eval-every 1 "
        "--eval-pairs 4 --checkpoint-every 1"
    ),
    ("benchmark",): "--seconds 0.01 --no-fresh",
    ("benchmark", "--json", "--plot", "speed.png"): "--seconds 0.01 --no-fresh --no-peers",
}

# The manual's stand-ins for files of the reader's own, and what they are here.
OWN_FILES = {
    "more.jsonl": Path("games.jsonl"),
    "runs/big": Path("runs/smoke"),
    "runs/default": Path("runs/smoke"),
    "runs/new/model": ROOT / "models" / "two-player",
}

# How other commands begin, and where they are run.
ELSEWHERE = {
    "curl": "tests/test_docs.py",
    "docker": "nowhere: it needs a container engine; `make lint` reads what they are made from",
    "gunicorn": "tests/serve/test_load.py",
    "make": ".ci/run runs install, lint, docs, test and test-dist; the Makefile has the others",
    ".venv/bin/pip": "the Makefile",
    "pip install": "tests/test_dist.py installs skipbo-env; the Makefile its extras",
    ".venv/bin/pre-commit": "its hooks are commands of `make lint` and `make test`",
    "python -m serve.load": "tests/serve/test_load.py",
    "python -m training.report": "tests/training/test_models.py",
    "python -m venv": "the Makefile",
    "python docs/examples/": "tests/test_examples.py",
    "python docs/libraries/": "tests/adapters/test_cleanrl.py",
    "skipbo serve": "tests/test_dist.py",
    ".venv/bin/skipbo serve": "tests/test_dist.py",
    "torchrun": "tests/training/test_ranks.py",
    "tensorboard": "a program of its own, on files that tests/training/test_td.py looks at",
}


def bare(words: list[str]) -> list[str]:
    """A command without the variables before it."""
    first = next(i for i, word in enumerate(words) if "=" not in word)
    return words[first:]


def is_elsewhere(words: list[str]) -> bool:
    return any(" ".join(bare(words)).startswith(start) for start in ELSEWHERE)


def smaller(words: list[str]) -> list[str]:
    sized = [
        SMALLER.get(before, word) for before, word in zip(["", *words[:-1]], words, strict=True)
    ]
    return [*sized, *SMALLER_COMMANDS.get(tuple(words), "").split()]


COMMANDS = {
    page: [bare(words) for where, words in commands() if where == page and not is_elsewhere(words)]
    for page in PAGES
}


def test_only_skipbo_is_left_to_run_here() -> None:
    for page, found in COMMANDS.items():
        for words in found:
            assert words[0] == "skipbo", f"{page}: {words}"
    texts = [" ".join(bare(words)) for _, words in commands()]
    used = {start for start in ELSEWHERE if any(text.startswith(start) for text in texts)}
    assert used == set(ELSEWHERE)
    for where in ELSEWHERE.values():
        for word in where.replace(",", "").split():
            assert not word.startswith("tests/") or (ROOT / word).exists(), where


@pytest.mark.parametrize("page", [page for page in COMMANDS if COMMANDS[page]])
def test_commands_run(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # PYTHONPATH=.
    monkeypatch.setenv("COLUMNS", "80")
    saved = [block for block in ALL if block.page == page and block.mark.startswith("file: ")]
    for block in saved:
        Path(block.mark.removeprefix("file: ")).write_text(block.text, encoding="utf-8")
    known = subcommands()
    try:
        for words in COMMANDS[page]:
            for own in set(OWN_FILES) & set(words):
                copy = shutil.copytree if OWN_FILES[own].is_dir() else shutil.copy
                if not Path(own).exists():
                    Path(own).parent.mkdir(parents=True, exist_ok=True)
                    copy(OWN_FILES[own], own)
            monkeypatch.setattr(sys, "stdin", io.StringIO("q\n"))
            name, *args = smaller(words[1:])
            code = cli.run(known[name], name, args)
            told = capsys.readouterr()
            assert code == 0, f"{words}\n{told.out}\n{told.err}"
            for before, word in pairwise(words):
                if before in ("--out", "--plot", "--record"):
                    assert Path(word).stat().st_size > 0, words
    finally:
        for block in saved:
            sys.modules.pop(Path(block.mark.removeprefix("file: ")).stem, None)
