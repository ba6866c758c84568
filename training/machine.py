"""What machine this is, for cards and results."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import llvmlite.binding
import numba


def cpu() -> str:
    """The CPU's name and how many cores it has."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        models = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        if models:
            name = models[0].split(":", 1)[1].strip()
    return f"{name}, {os.cpu_count()} cores"


def compiled_for() -> str:
    """What compiled code hangs on: kernels made for the same give the same floats to the last bit,
    others can round a sum otherwise, and a search then choose otherwise among near-equals.
    """
    return f"{llvmlite.binding.get_host_cpu_name()}, numba {numba.__version__}"
