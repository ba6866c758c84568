"""`python -m serve`: the same as `skipbo serve`."""

from __future__ import annotations

from serve.cli import main

if __name__ == "__main__":
    main()
