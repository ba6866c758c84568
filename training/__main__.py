"""`python -m training` is `skipbo train`."""

import sys

from skipbo_env.cli import run
from training.cli import train

if __name__ == "__main__":
    sys.exit(run(train, "train", sys.argv[1:]))
