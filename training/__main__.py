"""`python -m training` is `skipbo train`, also under torchrun; `python -m training evaluate` and
`tournament` are the commands of these names.
"""

import sys
from collections.abc import Callable

from skipbo_env.cli import run
from training.cli import evaluate, tournament, train

COMMANDS: dict[str, Callable[..., int]] = {
    "train": train,
    "evaluate": evaluate,
    "tournament": tournament,
}

if __name__ == "__main__":
    words = sys.argv[1:]
    name = words.pop(0) if words and words[0] in COMMANDS else "train"
    sys.exit(run(COMMANDS[name], name, words))
