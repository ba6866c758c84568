"""README.md and docs/: generated tables are current, examples are valid, blocks run, links lead
somewhere, commands exist. How blocks are marked stands in tests/pages.py; the pages about libraries
run in tests/adapters/.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import json
import operator
import re
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import save_file

from serve import create_app
from skipbo_env.actions import TEXTS, parse_action
from skipbo_env.agents import load_model
from skipbo_env.agents.heuristics import discard_merit
from skipbo_env.agents.models import empty_network
from skipbo_env.position import Position
from skipbo_env.record import check
from tests import make_diagrams
from tests.make_docs import REGION, TABLES, with_tables
from tests.pages import ALL, BLOCK, PAGES, ROOT, Block, commands, number, run_page, subcommands

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")  # pictures too


EXAMPLES = [block for block in ALL if block.mark.startswith("example: ")]


@pytest.mark.parametrize("page", PAGES)
def test_generated_tables_are_current(page: str) -> None:
    assert with_tables(PAGES[page]) == PAGES[page], "run `python -m tests.make_docs`"


def test_every_table_has_a_place() -> None:
    used = {found[2] for text in PAGES.values() for found in REGION.finditer(text)}
    assert used == set(TABLES)


def test_every_mark_is_a_known_one() -> None:
    known = re.compile(r"runnable|file: [\w.]+|example: (record|position|notation|model)|")
    assert [block.mark for block in ALL if not known.fullmatch(block.mark)] == []
    unmarked = [block.page for block in ALL if block.kind == "python" and not block.mark]
    assert unmarked == [], "a python block that nothing runs"


# Links -----------------------------------------------------------------------------------------


def anchors(text: str) -> set[str]:
    """The headings of a page as GitHub and MkDocs name them."""
    plain = BLOCK.sub("", text)
    titles = re.findall(r"^#+ (.+)$", plain, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    for target in LINK.findall(BLOCK.sub("", PAGES[page])):
        if re.match(r"https?:", target):
            continue
        name, _, anchor = target.partition("#")
        found = (ROOT / page).parent / name if name else ROOT / page
        assert found.exists(), f"{page}: {target}"
        if anchor:
            assert anchor in anchors(found.read_text(encoding="utf-8")), f"{page}: {target}"


# Drawings --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", make_diagrams.DRAWINGS)
def test_drawings_are_current(name: str) -> None:
    drawn = (make_diagrams.IMAGES / name).read_text(encoding="utf-8")
    assert drawn == make_diagrams.DRAWINGS[name](), "run `python -m tests.make_diagrams`"


def test_no_module_imports_upwards() -> None:
    known = make_diagrams.modules()
    for name, path in known.items():
        row, box = make_diagrams.box_of(name)
        for other in make_diagrams.imports(path, known):
            other_row, other_box = make_diagrams.box_of(other)
            assert other_row > row or other_box == box, f"{name} imports {other}"


def test_the_stations_of_a_decision_are_there() -> None:
    for where, _ in make_diagrams.WAY:
        file, _, name = where.partition(":")
        module = importlib.import_module(file.removesuffix(".py").replace("/", "."))
        assert callable(operator.attrgetter(name)(module)), where


# Examples --------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", EXAMPLES, ids=number)
def test_example_is_valid(block: Block, tmp_path: Path) -> None:
    what = block.mark.removeprefix("example: ")
    if what == "record":
        assert check(json.loads(block.text)).actions
    elif what == "position":
        Position.parse(json.loads(block.text)).deal(0)
    elif what == "notation":
        position = Position.from_notation(block.text.strip())
        assert position.to_notation() == block.text.strip()
    else:
        folder = tmp_path / "two-player"
        folder.mkdir()
        (folder / "config.json").write_text(block.text, encoding="utf-8")
        data = json.loads(block.text)
        weights = empty_network(data["players"], 2, *data["hidden"])
        save_file(weights._asdict(), folder / "value.safetensors")
        assert load_model(folder).name == "two-player"


def test_the_full_position_and_the_notation_are_the_same() -> None:
    texts = [b.text for b in EXAMPLES if b.page == "docs/formats.md" and "turns" in b.text]
    line = next(b.text for b in EXAMPLES if b.mark == "example: notation")
    full = Position.parse(json.loads(texts[0]))
    assert full == Position.from_notation(line.strip())
    assert full.inferred == ()


@pytest.mark.parametrize("block", [b for b in ALL if b.kind == "json"], ids=number)
def test_json_is_json(block: Block) -> None:
    json.loads(block.text)


def test_action_texts_of_the_pages_are_read() -> None:
    assert parse_action("HAND joker > 3") == parse_action("hand S>3")
    for action, text in enumerate(TEXTS):
        assert parse_action(text.upper().replace(" ", "")) == action
        spaced = re.sub(r"(=?>)", r" \1 ", re.sub(r"(\d+)", r" \1 ", text))
        assert parse_action(f" {spaced}\t") == action, spaced


# Code ------------------------------------------------------------------------------------------


RUNNABLE = [page for page in PAGES if "<!-- runnable -->" in PAGES[page]]


@pytest.mark.parametrize("page", [page for page in RUNNABLE if "/libraries/" not in page])
def test_code_runs(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = run_page(page, tmp_path, monkeypatch)
    capsys.readouterr()
    if page == "docs/agents.md":
        merit = getattr(discard_merit, "py_func", discard_merit)
        for card in range(1, 14):
            for top in range(14):
                for depth in (0,) if top == 0 else (1, 7):
                    assert names["merit"](card, top, depth) == merit(card, top, depth)


# Commands --------------------------------------------------------------------------------------


def test_commands_take_these_words(monkeypatch: pytest.MonkeyPatch) -> None:
    from skipbo_env import cli

    known = subcommands()
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    seen = set()
    for page, given in commands():
        words = given
        while re.fullmatch(r"[A-Z_]+=\S*", words[0]):
            words = words[1:]
        program, *args = words
        program = program.removeprefix(".venv/bin/")
        seen.add(program)
        if program == "make":
            assert args[0] in targets, (page, given)
        elif program == "skipbo":
            function = known[args[0]]

            @functools.wraps(function)
            def stand_in(*args: Any, **options: Any) -> int:
                return 0

            assert cli.run(stand_in, args[0], args[1:]) == 0, (page, given)
        elif program == "python" and args[:1] == ["-m"] and args[1] != "venv":
            assert importlib.util.find_spec(args[1]), (page, given)
        else:
            known_programs = ("curl", "docker", "gunicorn", "pip", "python", "tensorboard")
            known_programs += ("pre-commit", "torchrun")
            assert program in known_programs, (page, given)
    assert {"make", "skipbo", "curl"} <= seen


def test_the_requests_of_the_readme_are_answered() -> None:
    client = create_app(agent="greedy", testing=True).test_client()
    sent = 0
    for page, words in commands():
        if words[0] == "curl":
            path = re.sub(r"^http://127\.0\.0\.1:8000", "", words[2])
            answer = client.post(path, json=json.loads(words[words.index("-d") + 1]))
            assert answer.status_code == 200, (page, answer.text)
            assert [move["order"] for move in answer.json["moves"]] == [0, 1, 2]
            sent += 1
    assert sent
    for path in re.findall(r"`(?:GET )?(/[\w./]+)`", "".join(PAGES.values())):
        assert client.get(path).status_code == 200, path
