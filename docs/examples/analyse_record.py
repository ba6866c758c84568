"""Read a recorded game, find its costliest mistakes and its luckiest cards, draw how it went.

    python analyse_record.py games.jsonl --game 3 --plot game3.png
    python analyse_record.py                       plays a game of its own first

The judge is a model that ships. Drawing needs the extra `plot`.
"""

import argparse
from pathlib import Path

from skipbo_env import Game, make_agent
from skipbo_env.analysis import analyse
from skipbo_env.chart import plot_wins
from skipbo_env.record import append_record, read_records


def play(path: Path, rules: str) -> None:
    """A game of two rule-based agents, as a record in a file."""
    game = Game(rules, seed=7)
    names = ["greedy", "simple"]
    agents = [make_agent(name, seed=seat) for seat, name in enumerate(names)]
    while not game.over:
        game.apply(agents[game.player].act(game))
    append_record(path, game.record(names))


def main() -> None:
    """Read, judge, tell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, nargs="?", help="a .jsonl file, one record a line")
    parser.add_argument("--game", type=int, default=1, help="which record of the file, from 1")
    parser.add_argument("--rules", default="standard", help="of the game that it plays itself")
    parser.add_argument("--agent", default="best", help="who judges")
    parser.add_argument("--worst", type=int, default=5, help="how many mistakes and cards to tell")
    parser.add_argument("--plot", type=Path, help="a .png file")
    given = parser.parse_args()
    if given.file is None:
        given.file = Path("game.jsonl")
        play(given.file, given.rules)

    records = [record for _, record in read_records(given.file)]
    found = analyse(records[given.game - 1], make_agent(given.agent))
    if found["sides"][0]["luck"] is None:
        raise SystemExit(f"{given.agent} gives no probabilities: ask a model")
    for player in found["players"]:
        print(
            f"player {player['player']}, {player['agent']}: {player['decisions']} decisions, "
            f"{player['lost']:.2f} games lost by them, {player['verdicts']['blunder']} blunders"
        )
    for side in found["sides"]:
        print(f"side {side['side']}: the cards were worth {side['luck']:+.2f} games")

    judged = [decision for decision in found["decisions"] if decision["lost"]]
    for decision in sorted(judged, key=lambda decision: -decision["lost"])[: given.worst]:
        better = ", ".join(step["text"] for step in decision["line"])
        print(
            f"choice {decision['ply']}, player {decision['player']}: {decision['played']['text']} "
            f"lost {decision['lost']:.1%}; better: {better}"
        )
    shown = [decision for decision in found["decisions"] if decision["shown"] and decision["luck"]]
    for decision in sorted(shown, key=lambda d: -abs(d["luck"][0]))[: given.worst]:
        print(f"choice {decision['ply']}: {decision['shown']} {decision['luck'][0]:+.1%}")
    if given.plot is not None:
        plot_wins(found, given.plot)


if __name__ == "__main__":
    main()
