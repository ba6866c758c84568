"""The generated tables of docs/: `python -m tests.make_docs` writes them anew from the code.

A table stands between `<!-- generated: NAME -->` and `<!-- /generated -->`; what else is in a file
stays. Numbers come from the code's own constants and functions, words from the tables at the heads
of its modules and from docstrings. tests/test_docs.py says whether the files are current.
"""

from __future__ import annotations

import json
import math
import operator
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from itertools import groupby
from types import ModuleType
from typing import Any

from serve.settings import Settings
from skipbo_env import actions
from skipbo_env.agents import make_agent, network
from skipbo_env.benchmark import RULE_SET_LOOPS
from skipbo_env.engine import layout, observe
from skipbo_env.game import Game
from skipbo_env.peers import PEERS
from skipbo_env.position import Position
from skipbo_env.rules import INDIVIDUALS, PRESETS, TEAM_TABLES, Rules, RulesError
from skipbo_env.suggestion import ask
from skipbo_env.terminal import suggestion_table
from tests.pages import ROOT, files
from training import cli, config
from training.report import table_name

REGION = re.compile(r"(<!-- generated: ([a-z-]+) -->\n).*?(<!-- /generated -->)", re.DOTALL)


def with_tables(text: str) -> str:
    """A page's text with its generated tables as the code has them now."""
    return REGION.sub(lambda found: f"{found[1]}{TABLES[found[2]]()}\n{found[3]}", text)


def table(header: str, rows: list[tuple[Any, ...]]) -> str:
    """A Markdown table."""
    lines = [header, re.sub(r"[^|]+", "---", header)]
    lines += [
        "| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows
    ]
    return "\n".join(line.rstrip() for line in lines)


def head_table(module: ModuleType, header: str, which: int = 0) -> list[list[str]]:
    """The rows of a table in a module's docstring whose columns begin where its header's do.

    Args:
        module: whose docstring.
        header: its column names.
        which: the tables of this header before it.
    """
    lines = (module.__doc__ or "").splitlines()
    at = [i for i, line in enumerate(lines) if line.split() == header.split()][which]
    starts = [lines[at].index(name) for name in header.split()]
    bounds = list(zip(starts, [*starts[1:], None], strict=True))
    rows: list[list[str]] = []
    for line in lines[at + 1 :]:
        if not line.strip():
            break
        cells = [line[low:high].strip() for low, high in bounds]
        if cells[0] or not rows:
            rows.append(cells)
        else:
            rows[-1] = [f"{old} {more}".strip() for old, more in zip(rows[-1], cells, strict=True)]
    return rows


def attributes(described: type) -> dict[str, str]:
    """The "Attributes:" of a class's docstring."""
    part = re.split(r"\n\s*\n", (described.__doc__ or "").split("Attributes:\n")[1])[0]
    found = re.findall(r"^ {8}(\w+): (.*(?:\n {9,}.*)*)", part, re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in found}


# Rules -----------------------------------------------------------------------------------------


def bounds_of(name: str) -> str:
    """What a setting may be: what `Rules` says when it refuses a value."""
    if name == "players":
        shown = f"{INDIVIDUALS.start} to {INDIVIDUALS.stop - 1}"
        return shown + "".join(
            f"; {', '.join(map(str, seats))} with {teams} teams"
            for teams, seats in TEAM_TABLES.items()
        )
    default = getattr(Rules(), name)
    wrong: Any = "?" if isinstance(default, (bool, str)) else -1
    try:
        Rules(**{name: wrong})
    except RulesError as error:
        text = error.message.split(", got")[0]
        text = re.sub(r"^(must be|needs) ", "", text).replace("'", "`")
        return f"{text}; `null`" if default is None else text
    raise AssertionError(f"{name} takes {wrong!r}")


def rules_settings() -> str:
    """Name, default, range and meaning of every setting."""
    meanings = attributes(Rules)
    rows = [
        (
            f"`{item.name}`",
            f"`{json.dumps(item.default)}`",
            bounds_of(item.name),
            meanings[item.name],
        )
        for item in fields(Rules)
    ]
    return table("| setting | default | values | meaning |", rows)


def rules_presets() -> str:
    """What each preset plays."""
    default = Rules().to_dict()
    rows = []
    for name, rules in PRESETS.items():
        changed = ", ".join(
            f"`{key}` = {json.dumps(value)}"
            for key, value in rules.to_dict().items()
            if value != default[key]
        )
        teams = f"{rules.teams} teams" if rules.teams else "each alone"
        rows.append((f"`{name}`", f"{rules.players}, {teams}", rules.stocks, changed or "none"))
    return table("| preset | players | cards in a stock | settings that differ |", rows)


# Actions ---------------------------------------------------------------------------------------


def action_table() -> str:
    """Ids, formula and meaning, first and last text of each stretch of the action table."""
    told = head_table(actions, "ids action")
    stretches = [
        list(ids)
        for _, ids in groupby(
            range(actions.MAX_ACTIONS),
            lambda action: operator.attrgetter("kind", "source", "other")(actions.MOVES[action]),
        )
    ]
    assert len(told) == len(stretches)
    rows: list[tuple[Any, ...]] = []
    for (formula, meaning), ids in zip(told, stretches, strict=True):
        assert re.match(rf"{ids[0]}\b", formula), (formula, ids[0])
        formula = re.sub(r"\s*\+\s*", " + ", formula)
        ends = [ids[0], ids[-1]] if len(ids) > 1 else ids
        texts = " to ".join(f"`{actions.TEXTS[action]}`" for action in ends)
        rows.append((" to ".join(map(str, ends)), formula, meaning, texts))
    return table("| ids | id | action | texts |", rows)


# Observations ----------------------------------------------------------------------------------


def observation_table(kind: str) -> str:
    """Offsets of the named parts of a two-player observation, with what they hold."""
    rules = Rules()
    find = observe.cards_slices if kind == "cards" else observe.features_slices
    told = {
        name: (numbers, holds)
        for name, numbers, holds in head_table(
            observe, "name numbers holds", 0 if kind == "cards" else 1
        )
    }
    rows, used = [], set()
    for name, part in find(rules).items():
        key = re.sub(r"_\d+$", "_k", name)
        numbers, holds = told[key]
        used.add(key)
        size = part.stop - part.start
        shape = numbers.replace(" each seat", f" x {rules.players}").replace(" a board", "")
        assert math.prod(map(int, shape.split(" x "))) == size, (name, shape, size)
        rows.append((f"`{name}`", f"{part.start}:{part.stop}", shape, holds))
    assert used == set(told)
    total = observe.observation_size(rules, kind)
    return table("| name | slice | numbers | holds |", rows) + f"\n\n{total} numbers in all."


# The engine's array ----------------------------------------------------------------------------


def board_table() -> str:
    """The cells of a game's array, the numbers compared with the constants."""
    rows = head_table(layout, "cell name holds")
    for cell, name, _ in rows:
        cells = [int(number) for number in re.findall(r"\d+", cell)] if cell[0].isdigit() else []
        for constant, at in zip(re.findall(r"[A-Z_]{4,}", name), cells, strict=False):
            if hasattr(layout, constant):
                assert getattr(layout, constant) == at, constant
    assert any(cell.endswith(f"..{layout.HEADER - 1}") for cell, _, _ in rows)
    shown = [(cell, f"`{name}`" if name.isupper() else name, holds) for cell, name, holds in rows]
    return table("| cell | name, or cells | holds |", shown)


# The network's input ---------------------------------------------------------------------------


def network_rows() -> str:
    """The weight rows of a two-player value network."""
    told = [row for row in head_table(network, "slots values holds") if row[1][:1].isdigit()]
    boards = Rules().boards
    shown = []
    for part, rows in _stretches(network.row_groups(2, boards)):
        first, values = rows[0][1], rows[0][2]
        step = rows[1][1] - first if len(rows) > 1 else 0
        where = f"{first} + {step}k, k = 0 to {len(rows) - 1}" if step else str(first)
        shown.append((part, where, values))
    assert shown[-1][0] == f"board_{boards - 1}.kind"
    slots = 0
    table_rows: list[tuple[Any, ...]] = []
    for i, (part, where, values) in enumerate(shown):
        per_board = (len(shown) - len(told)) // (boards - 1)
        count, size, holds = told[i if i < len(told) else i - per_board]
        assert int(size.split()[0]) == values, (part, size, values)
        number = 1 if "seat" in count else int(count)
        slots += number
        table_rows.append((f"`{part}`", number, where, values, holds))
    assert slots == network.num_slots(2, boards)
    text = table("| part | slots | row | values | holds |", table_rows)
    return f"{text}\n\n{slots} slots, {network.num_rows(2, boards)} rows."


def _stretches(groups: list[tuple[str, int, int]]) -> Iterator[tuple[str, list[Any]]]:
    for part, rows in groupby(groups, lambda group: re.sub(r"(?<!board)_\d+$", "", group[0])):
        yield part, list(rows)


# Training --------------------------------------------------------------------------------------


def training_presets(algo: str) -> str:
    """Every setting of a learner's run: its default, what presets change, what it means."""
    meanings, presets = cli._sentences(), config.ALL_PRESETS[algo]
    rows = []
    for item in fields(config.KINDS[algo]):
        values = [_plain(getattr(preset, item.name)) for preset in presets.values()]
        meaning = " ".join(meanings[item.name].split())
        rows.append((f"`{item.name}`", *values, meaning))
    return table(f"| setting | {' | '.join(presets)} | meaning |", rows)


def _plain(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def results(house: bool = True) -> str:
    """What the shipped models' results.json say; `python -m training.report` writes those.

    Args:
        house: whether the lines by house rules are among them.
    """
    rows = []
    for file in sorted((ROOT / "models").glob("*/results.json")):
        measured = json.loads(file.read_text(encoding="utf-8"))
        for line in [*measured["results"], *(measured.get("policy") or {"results": []})["results"]]:
            if line.get("house_rules") and not house:
                continue
            low, high = line["interval"]
            rows.append(
                (
                    line["agent"],
                    line["against"],
                    line["players"],
                    table_name(line),
                    f"{line['win_rate']:.2%}",
                    f"{low:.2%} to {high:.2%}",
                    f"{line['games']:,}",
                )
            )
    return table("| model | against | players | table | win rate | 95% interval | games |", rows)


# What was measured -----------------------------------------------------------------------------


def _measured(name: str) -> dict[str, Any]:
    return dict(json.loads((ROOT / "docs" / f"{name}.json").read_text(encoding="utf-8")))


def speed() -> str:
    """What docs/benchmark.json says of every loop of `skipbo benchmark`."""
    whole = _measured("benchmark")
    measured = whole["skipbo"]
    rows = []
    for name, includes in measured["includes"].items():
        rate = measured["peers"].get(name) or measured[name]
        times = measured["ratios"].get(name)
        rows.append(
            (f"`{name}`", f"{rate:,.0f}", "" if times is None else f"{times:,.1f}", includes)
        )
    text = table("| loop | decisions/s | ours are N times as many | a decision includes |", rows)
    by = ", ".join(f"{name} {version}" for name, version in measured["versions"].items())
    goals = [
        f"{PEERS[name].goal:g} times `{name}` ({times:,.1f} measured)"
        for name, times in measured["ratios"].items()
        if PEERS[name].goal is not None
    ]
    return (
        f"{text}\n\nN compares `vector_cards_random`. Its goals: {', '.join(goals)}. With {by}; "
        f"{whole['machine']}, by `{whole['command']}`.\n\n"
        f"A game takes {measured['rules']['standard']['bytes'] / 1024:.1f} KiB. In CPU time, "
        f"importing the package costs {measured['import_s']:.2f} s (Numba alone "
        f"{measured['import_numba_s']:.2f} s), and from the start of a process to the first step "
        f"of the vector environment it takes {measured['compile_s']:.1f} s with nothing compiled, "
        f"{measured['start_s']:.2f} s with all of it compiled."
    )


def speed_by_rules() -> str:
    """What docs/benchmark.json says of each set of rules beside the standard game."""
    measured = _measured("benchmark")["skipbo"]["rules"]
    rows = []
    for name, row in measured.items():
        loops = (f"{row[loop]:,.0f} (x{row[f'{loop}_cost']:.2f})" for loop in RULE_SET_LOOPS)
        rows.append((name, *loops, f"{row['bytes'] / 1024:.1f}"))
    return table(
        "| rules | the rules alone | 1,024 games, cards seen | 1,024 games, features seen "
        "| KiB a game |",
        rows,
    )


# Agents ----------------------------------------------------------------------------------------


def levels() -> str:
    """What docs/levels.json says; `python -m training.levels` writes it."""
    measured = _measured("levels")
    rows = []
    for line in measured["levels"]:
        low, high = line["interval"]
        how = f"turn search, noise {line['noise']:g}" if line["noise"] else "turn search"
        how = f"search, {line['samples']} samples" if line["samples"] else how
        rows.append(
            (
                line["level"],
                line["model"],
                how,
                f"{line['win_rate']:.1%}",
                f"{low:.1%} to {high:.1%}",
                f"{line['games']:,}",
            )
        )
    text = table("| level | judged by | plays by | against greedy | 95% interval | games |", rows)
    return f"{text}\n\nTwo players, 30-card stocks, paired games, by `{measured['command']}`."


def planner_results() -> str:
    """What docs/planner.json says; `skipbo evaluate --json` writes it."""
    measured = _measured("planner")
    low, high = measured["interval"]
    command = (
        f"skipbo evaluate planner --against greedy --games {measured['games']} "
        f"--seed {measured['seed']} --json"
    )
    return (
        f"Against greedy it wins {measured['win_rate']:.1%} of {measured['games']:,} paired "
        f"games of two players (95% interval {low:.1%} to {high:.1%}), by `{command}`."
    )


def flips() -> str:
    """What looking behind flips is worth, from the two-player model's results.json."""
    file = ROOT / "models" / "two-player" / "results.json"
    measured = json.loads(file.read_text(encoding="utf-8"))
    match, thinking = measured["previous"], measured["thinking"]
    low, high = match["interval"]
    return (
        f"With it `two-player` wins {match['win_rate']:.1%} of {match['games']:,} paired games "
        f"against itself without, `{match['against']}` (95% interval {low:.1%} to {high:.1%}). A "
        f"search, which is up to the next hidden card or the turn's end, takes "
        f"{thinking['mean_ms']:.2f} ms of CPU in the mean and {thinking['p99_ms']:.1f} ms at the "
        f"99th percentile; by `python -m training.report models/two-player "
        f"--previous {match['against']}`."
    )


# Speed -----------------------------------------------------------------------------------------


def benchmark_rows() -> list[tuple[str, float, bool]]:
    """What docs/benchmark.json says of one core, the fastest first, and whether it is ours; the
    chart shows the same.
    """
    measured = _measured("benchmark")["skipbo"]
    ours = {
        'Skip-Bo, 1,024 games at once, "cards"': "vector_cards_random",
        'Skip-Bo, 1,024 games at once, "features"': "vector_features_random",
        "Skip-Bo, one game, PettingZoo raw_env": "raw_env",
        "Skip-Bo, one game, PettingZoo env": "env",
        "Skip-Bo, one game, Gymnasium": "gymnasium",
    }
    others = {
        "Gymnasium's CartPole, 1,024 at once": "cartpole_vector",
        "Pgx's Leduc hold'em, 8,192 games at once": "pgx_leduc_8192",
        "OpenSpiel's crazy eights": "openspiel_crazy_eights",
        "RLCard's Uno": "rlcard_uno",
        "PettingZoo's tic-tac-toe, raw_env": "tictactoe_raw_env",
        "PettingZoo's tic-tac-toe, env": "tictactoe_env",
    }
    rows = [(text, measured[name], True) for text, name in ours.items()]
    rows += [(text, measured["peers"][name], False) for text, name in others.items()]
    return sorted(rows, key=lambda row: -row[1])


def benchmark() -> str:
    """The same as a table, with what starting costs."""
    measured = _measured("benchmark")
    ours = measured["skipbo"]
    text = table(
        "| environment, random legal actions | decisions per CPU-second of one core |",
        [(name, f"{rate:,.0f}") for name, rate, _ in benchmark_rows()],
    )
    return (
        f"{text}\n\nThe first of ours makes {measured['c']['ratio']:.2f} times as many as the same "
        f"work written by hand in C, playing the same games.\n\n"
        f"`import skipbo_env` takes {ours['import_s']:.2f} s of CPU (`import numba` "
        f"{ours['import_numba_s']:.2f} s), a process with everything compiled takes "
        f"{ours['start_s']:.1f} s up to its first step, and {ours['compile_s']:.0f} s where "
        f"nothing is. {measured['machine']}, by `{measured['command']}`."
    )


# Suggestions -----------------------------------------------------------------------------------


def suggestion() -> str:
    """What `skipbo suggest` tells of the position in README.md, without its frame."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    notation = re.findall(r"skipbo suggest '([^']+)'", readme)[0]
    position = Position.from_notation(notation).to_json()
    answer = ask(make_agent("two-player"), Game.from_position(position, 0), top=3)
    shown = suggestion_table(answer["moves"])
    columns = [list(column.cells) for column in shown.columns]
    rows = [
        (rank, move, win, delta, str(why).replace("\n", "<br>"))
        for rank, move, win, delta, _, why in zip(*columns, strict=True)
    ]
    return table("| | move | win | against the best | the turn it begins, and why |", rows)


# The service -----------------------------------------------------------------------------------


def service_settings() -> str:
    """Flag, variable, default and meaning of every setting of the service."""
    rows = []
    for item in fields(Settings):
        default = item.metadata["default"]
        shown = "" if default in (None, ()) else f"`{default}`"
        if default is False:
            shown = "off"
        rows.append(
            (
                f"`--{item.name.replace('_', '-')}`",
                f"`{item.metadata['variable']}`",
                shown,
                item.metadata["meaning"],
            )
        )
    return table("| flag | variable | default | meaning |", rows)


def service_calls() -> str:
    """What openapi.json, which is made from the code, lists."""
    told = json.loads((ROOT / "docs" / "openapi.json").read_text(encoding="utf-8"))
    rows = [
        (f"`{method.upper()} {path}`", operation["summary"])
        for path, operations in told["paths"].items()
        for method, operation in operations.items()
    ]
    return table("| call | does |", rows)


TABLES: dict[str, Callable[[], str]] = {
    "actions": action_table,
    "benchmark": benchmark,
    "board": board_table,
    "levels": levels,
    "speed": speed,
    "suggestion": suggestion,
    "speed-by-rules": speed_by_rules,
    "network-rows": network_rows,
    "observation-cards": lambda: observation_table("cards"),
    "observation-features": lambda: observation_table("features"),
    "flips": flips,
    "planner": planner_results,
    "results": results,
    "results-of-the-game": lambda: results(house=False),
    "rules-presets": rules_presets,
    "rules-settings": rules_settings,
    "service-calls": service_calls,
    "service-settings": service_settings,
    "training-presets": lambda: training_presets("td"),
    "training-presets-ppo": lambda: training_presets("ppo"),
}


def main() -> int:
    """Write every page whose tables have changed."""
    for path in files():
        old = path.read_text(encoding="utf-8")
        new = with_tables(old)
        if new != old:
            path.write_text(new, encoding="utf-8", newline="\n")
            print(f"{path.relative_to(ROOT)}: written anew")
    return 0


if __name__ == "__main__":
    sys.exit(main())
