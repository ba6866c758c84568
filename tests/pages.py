"""The pages of the manual and their code blocks, for tests that read or run them.

A comment before a code block says what it is: `<!-- runnable -->` (the runnable blocks of a page
run one after the other), `<!-- file: NAME -->` (saved for them), `<!-- example: KIND -->` (read as
what it shows).
"""

from __future__ import annotations

import importlib
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>[^\n]*) -->\n)?^```(?P<kind>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


def files() -> list[Path]:
    """Every page of the manual: those at the root, such as the README, and those in docs/."""
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


PAGES = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in files()}


class Block(NamedTuple):
    """A fenced block of a page, with the comment before it."""

    page: str
    mark: str
    kind: str
    text: str


def blocks(page: str) -> Iterator[Block]:
    for found in BLOCK.finditer(PAGES[page]):
        yield Block(page, found["mark"] or "", found["kind"], found["text"])


ALL = [block for page in PAGES for block in blocks(page)]


def number(block: Block) -> str:
    return f"{block.page}-{ALL.index(block)}"


def run_page(page: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Run a page's runnable blocks in a folder, its files saved there; the names they leave."""
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    names: dict[str, Any] = {"__name__": "example"}
    saved = []
    for block in blocks(page):
        if block.mark.startswith("file: "):
            saved.append(block.mark.removeprefix("file: "))
            (folder / saved[-1]).write_text(block.text, encoding="utf-8")
        elif block.mark == "runnable":
            exec(compile(block.text, f"{page} ({number(block)})", "exec"), names)  # noqa: S102 - our own pages
    for name in saved:
        sys.modules.pop(Path(name).stem, None)
    return names


def commands() -> Iterator[tuple[str, list[str]]]:
    """Every command of the shell blocks, as words."""
    for block in ALL:
        if block.kind == "sh":
            for line in shlex_lines(block.text):
                yield block.page, line


def shlex_lines(text: str) -> Iterator[list[str]]:
    """The words of each command, comments left out; quotes may span lines."""
    part = ""
    for line in text.splitlines():
        part += line + "\n"
        try:
            words = shlex.split(part, comments=True)
        except ValueError:  # an open quote
            continue
        part = ""
        if words:
            yield words
    assert not part, text


def subcommands() -> dict[str, Any]:
    """The functions behind `skipbo NAME`, as pyproject.toml has them."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    part = text.split('[project.entry-points."skipbo.commands"]\n')[1].split("\n[")[0]
    found = re.findall(r'^(\w+) = "([\w.]+):(\w+)"$', part, re.MULTILINE)
    return {name: getattr(importlib.import_module(module), attr) for name, module, attr in found}
