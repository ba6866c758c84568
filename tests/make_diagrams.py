"""The drawings of docs/: `python -m tests.make_diagrams` writes them anew. Packages and the way of
a decision for docs/architecture.md, and the chart of docs/benchmark.json.

Which module stands in which box, and what lies below what, is said here; tests/test_docs.py holds
the drawings and the code to it.
"""

from __future__ import annotations

import ast
import math
import sys
from collections.abc import Iterable
from html import escape
from pathlib import Path

from tests.make_docs import benchmark_rows

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"

# From the top down: a module imports from its own box and from rows below. Boxes beside each other
# do not know each other. Name, what it does, its modules ("x.*": and all below it).
ROWS: list[list[tuple[str, str, tuple[str, ...]]]] = [
    [
        ("training/", "learns with PyTorch, measures agents", ("training.*",)),
        ("serve/", "the Flask service and its page", ("serve.*",)),
    ],
    [
        (
            "command line",
            "skipbo play, suggest, analyse, record, benchmark",
            (
                *(f"skipbo_env.{name}" for name in ("cli", "commands", "terminal")),
                *(f"skipbo_env.{name}" for name in ("benchmark", "peers")),
            ),
        )
    ],
    [
        (
            "environments",
            "PettingZoo, Gymnasium, vector, adapters",
            (
                "skipbo_env",
                "skipbo_env.adapters.*",
                *(f"skipbo_env.{name}" for name in ("skipbo_v0", "gym_env", "vector_env")),
                *(f"skipbo_env.{name}" for name in ("env_parts", "batch", "dataset")),
            ),
        ),
        (
            "advice",
            "ranked moves in words, reviews of games",
            tuple(f"skipbo_env.{name}" for name in ("suggestion", "reasons", "analysis", "chart")),
        ),
    ],
    [
        (
            "skipbo_env/agents/",
            "rules, value network, turn search, rollouts",
            ("skipbo_env.agents.*",),
        )
    ],
    [
        (
            "the game as an object",
            "Game, actions, positions, records, matches, pictures",
            (
                *(f"skipbo_env.{name}" for name in ("game", "actions", "position", "record")),
                *(f"skipbo_env.{name}" for name in ("match", "saved", "render", "state_check")),
            ),
        )
    ],
    [
        (
            "skipbo_env/engine/, rules.py, cards.py",
            "one array a game, compiled by Numba: deal, moves, observations, rewards",
            ("skipbo_env.engine.*", "skipbo_env.rules", "skipbo_env.cards", "skipbo_env.checks"),
        )
    ],
]

# The way of a decision: where (file:name), and what happens there.
WAY: list[tuple[str, str]] = [
    ("serve/suggest.py:suggest", "POST /v1/suggest with a position; or `skipbo suggest`, or act()"),
    ("skipbo_env/position.py:Position.parse", "checks every field, works out what was left out"),
    ("skipbo_env/game.py:Game.from_position", "the hidden cards are dealt from what nobody sees"),
    ("skipbo_env/agents/agent.py:make_agent", "the agent that the text names: best, level:3, ..."),
    (
        "skipbo_env/agents/turn.py:search",
        "every way in which this turn can end, by the engine's moves",
    ),
    ("skipbo_env/agents/network.py:upper_layers", "the probability to win for each such ending"),
    (
        "skipbo_env/agents/rollout.py:roll_out",
        "for search:MODEL alone: rollouts of the best few endings",
    ),
    ("skipbo_env/suggestion.py:ask", "order, texts, verdicts, the rest of the turn, reasons"),
    ("serve/schemas.py:Suggestion", "the answer as JSON, as docs/openapi.json describes it"),
]

_STYLE = """
text { font: 15px system-ui, sans-serif; fill: #1c2b2a; }
.name { font-weight: 600; }
.what { font-size: 13px; fill: #41524f; }
.code { font: 13px ui-monospace, monospace; }
.box { fill: #e3f1ee; stroke: #2a7d70; }
.base { fill: #fbf3e4; stroke: #a3702a; }
.bar { fill: #2a7d70; }
.peer { fill: #9aa8a5; }
.arrow { stroke: #41524f; stroke-width: 1.5; fill: none; marker-end: url(#head); }
"""


def _drawing(width: int, height: int, title: str, parts: Iterable[str]) -> str:
    body = "\n".join(parts)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" \
width="{width}" height="{height}" role="img" aria-label="{escape(title)}">
<title>{escape(title)}</title>
<style>{_STYLE}</style>
<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" \
orient="auto"><path d="M0 0L8 4L0 8z" fill="#41524f"/></marker></defs>
<rect width="{width}" height="{height}" rx="8" fill="#fff"/>
{body}
</svg>
"""


def packages() -> str:
    """The boxes of ROWS, each row with an arrow to the next."""
    width, high, gap = 720, 58, 30
    parts = []
    for row, boxes in enumerate(ROWS):
        top = 16 + row * (high + gap)
        each = (width - 32 - 16 * (len(boxes) - 1)) / len(boxes)
        for place, (name, what, _) in enumerate(boxes):
            left = 16 + place * (each + 16)
            middle = left + each / 2
            kind = "base" if row == len(ROWS) - 1 else "box"
            parts += [
                f'<rect class="{kind}" x="{left:g}" y="{top}" width="{each:g}" '
                f'height="{high}" rx="6"/>',
                f'<text class="name" x="{middle:g}" y="{top + 24}" text-anchor="middle">'
                f"{escape(name)}</text>",
                f'<text class="what" x="{middle:g}" y="{top + 44}" text-anchor="middle">'
                f"{escape(what)}</text>",
            ]
            if row < len(ROWS) - 1:
                parts.append(f'<path class="arrow" d="M{middle:g} {top + high}v{gap - 2}"/>')
    height = 32 + len(ROWS) * (high + gap) - gap
    title = "The packages in rows; each imports only from rows below it"
    return _drawing(width, height, title, parts)


def decision() -> str:
    """The stations of WAY from top to bottom."""
    width, high, gap = 720, 54, 22
    parts = []
    for row, (where, what) in enumerate(WAY):
        top = 16 + row * (high + gap)
        parts += [
            f'<rect class="box" x="16" y="{top}" width="{width - 32}" height="{high}" rx="6"/>',
            f'<text class="name" x="34" y="{top + 33}">{row + 1}</text>',
            f'<text class="code" x="64" y="{top + 22}">{escape(where.replace(":", "  "))}</text>',
            f'<text class="what" x="64" y="{top + 42}">{escape(what)}</text>',
        ]
        if row < len(WAY) - 1:
            parts.append(f'<path class="arrow" d="M{width / 2:g} {top + high}v{gap - 2}"/>')
    height = 32 + len(WAY) * (high + gap) - gap
    return _drawing(width, height, "The way of one decision, from request to answer", parts)


def benchmark() -> str:
    """The rows of the benchmark table as bars over a logarithmic scale."""
    rows = benchmark_rows()
    left, width, high = 310, 720, 26
    low, top = math.floor(math.log10(rows[-1][1])), math.ceil(math.log10(rows[0][1]))
    scale = (width - left - 100) / (top - low)
    bottom = 20 + len(rows) * high
    parts = []
    for power in range(low, top + 1):
        x = left + (power - low) * scale
        parts += [
            f'<path d="M{x:.1f} 12V{bottom}" stroke="#d5dedc"/>',
            f'<text class="what" x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">'
            f"{f'{10 ** (power - 6)} M' if power >= 6 else f'{10**power:,}'}</text>",
        ]
    for row, (name, rate, ours) in enumerate(rows):
        y = 16 + row * high
        length = (math.log10(rate) - low) * scale
        kind = "bar" if ours else "peer"
        parts += [
            f'<text class="what" x="{left - 10}" y="{y + 15}" text-anchor="end">'
            f"{escape(name, quote=False)}</text>",
            f'<rect class="{kind}" x="{left}" y="{y}" width="{length:.1f}" height="{high - 6}"/>',
            f'<text class="what" x="{left + length + 6:.1f}" y="{y + 15}">{rate:,.0f}</text>',
        ]
    title = "Decisions per CPU-second of one core, logarithmic; others' in grey"
    return _drawing(width, bottom + 34, title, parts)


DRAWINGS = {"packages.svg": packages, "decision.svg": decision, "benchmark.svg": benchmark}


def modules() -> dict[str, Path]:
    """Every module of the three packages by its name."""
    found = {}
    for package in ("skipbo_env", "training", "serve"):
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def box_of(module: str) -> tuple[int, str]:
    """The row and the name of a module's box.

    Raises:
        KeyError: it stands in none, or in two.
    """
    found = [
        (row, name)
        for row, boxes in enumerate(ROWS)
        for name, _, members in boxes
        if any(
            module == member or (member.endswith(".*") and f"{module}.".startswith(member[:-1]))
            for member in members
        )
    ]
    if len(found) != 1:
        raise KeyError(f"{module}: {len(found)} boxes of tests/make_diagrams.py")
    return found[0]


def imports(path: Path, known: Iterable[str]) -> set[str]:
    """The modules among `known` that a file imports when it runs, within functions too."""
    tree, names = ast.parse(path.read_text(encoding="utf-8")), set(known)
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            full = {f"{node.module}.{name.name}" for name in node.names}
            found |= (full & names) or ({node.module} & names)
        elif isinstance(node, ast.Import):
            found |= {name.name for name in node.names} & names
    return found


def main() -> int:
    """Write the drawings."""
    for name, draw in DRAWINGS.items():
        (IMAGES / name).write_text(draw(), encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
