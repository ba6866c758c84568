"""Yardsticks that need more than the package: `python -m benchmarks`."""
