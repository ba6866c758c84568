"""Whole games as text, one a preset: `python -m tests.make_playthroughs` writes them anew.

A playthrough shows every public quantity after every action, and of the seat to move its hand and
the ids of its legal actions. tests/test_playthroughs.py plays the games again and compares line by
line, so that a change in the rules' behaviour shows as a readable difference. Where a change is
meant, write the files anew and look at what changed with `git diff`.
"""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path
from typing import Any

from skipbo_env import make_agent
from skipbo_env.cards import card_text
from skipbo_env.engine import layout
from skipbo_env.game import Game
from skipbo_env.record import event_text, seen_event, step_events
from skipbo_env.rules import PRESETS
from tests.compare import building_of, completed_of, discards_of, draw_of, hands_of, stocks_of

FOLDER = Path(__file__).parent / "playthroughs"
SEED = 2024
AGENT = "greedy"


def playthrough(preset: str) -> list[str]:
    """The lines of the preset's game between greedy agents."""
    game, agent = Game(preset, seed=SEED), make_agent(AGENT)
    lines = [f"preset: {preset}", f"seed: {SEED}", f"agents: {AGENT}"]
    lines += [f"{name}: {value}" for name, value in game.rules.to_dict().items()]
    lines += [
        "",
        "Cards are 1 to 12 and S. Stocks: top card (cards). Discard piles: bottom to top. Piles",
        "count from 1 in texts, seats and boards from 0. What only others see is left out.",
        "",
        "deal",
        *table_of(game, game.events()),
    ]
    while not game.over:
        before, action = game.clone(), agent.act(game)
        lines += [
            "",
            f"action {len(game.actions) + 1}, player {game.player}: "
            f"{game.action_text(action)} (id {action})",
        ]
        game.apply(action)
        lines += table_of(game, step_events(game.rules, before.state, game.state, action))
    return lines


def table_of(game: Game, events: list[dict[str, Any]]) -> list[str]:
    """What has happened, and what everybody sees now."""
    names = [f"player {seat}" for seat in range(game.rules.players)]
    lines = [f"  {event_text(seen_event(event, None), names)}" for event in events]
    state, hands = game.state, hands_of(game)
    completed = completed_of(game)
    lines.append(
        f"  turns {state[layout.TURNS]}, passes {state[layout.PASSES]}, "
        f"draw pile {len(draw_of(game))}, completed {len(completed)}: {counted(completed)}"
    )
    lines.append("  building: " + " | ".join(map(shown, building_of(game))))
    for board, stock in enumerate(stocks_of(game)):
        top = card_text(stock[-1]) if stock else "-"
        piles = " | ".join(map(shown, discards_of(game)[board]))
        lines.append(f"  board {board}: stock {top} ({len(stock)}), discards {piles}")
    lines.append("  hand sizes: " + " ".join(str(len(hand)) for hand in hands))
    if game.over:
        lines.append(f"  over: {game.result}")
    else:
        lines.append(f"  to move: player {game.player}, hand {shown(hands[game.player])}")
        lines.append(f"  legal: {ranges(game.legal_actions())}")
    return lines


def shown(cards: list[int]) -> str:
    """Cards in order; "-" for none."""
    return " ".join(map(card_text, cards)) or "-"


def counted(cards: list[int]) -> str:
    """Sorted cards as counts: "2x1 1xS"; "-" for none."""
    groups = ((card, len(list(same))) for card, same in groupby(cards))
    return " ".join(f"{count}x{card_text(card)}" for card, count in groups) or "-"


def ranges(ids: list[int]) -> str:
    """Ascending ids with runs of three and more shortened: "0 4-7 72"."""
    parts: list[str] = []
    for _, run in groupby(enumerate(ids), lambda pair: pair[1] - pair[0]):
        found = [number for _, number in run]
        if len(found) > 2:
            parts.append(f"{found[0]}-{found[-1]}")
        else:
            parts += map(str, found)
    return " ".join(parts)


def main() -> int:
    """Write every file, and remove those of presets that are no more."""
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.txt"):
        if path.stem not in PRESETS:
            path.unlink()
    for preset in PRESETS:
        lines = playthrough(preset)
        path = FOLDER / f"{preset}.txt"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
        print(f"{path}: {len(lines)} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
