"""What kernels need to run as plain Python, under NUMBA_DISABLE_JIT=1 (`make coverage-kernels`).

Machine instructions of `engine.bits` and `engine.simd` have no body in Python; these stand in for
them. tests/conftest.py puts them in before anything imports the kernels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skipbo_env.engine import bits, simd


def popcount(word: Any) -> np.uint64:
    return np.uint64(int(word).bit_count())


def lowest_bit(word: Any) -> np.uint64:
    return np.uint64((int(word) & -int(word)).bit_length() - 1)


def prefetch(array: NDArray[Any], index: int) -> None:
    pass


def positive_cells(array: NDArray[np.int32], first: int) -> np.uint64:
    return np.uint64(sum(1 << i for i in range(16) if array[first + i] > 0))


def spread_bits(word: Any, array: NDArray[np.int8], first: int) -> None:
    array[first : first + 64] = [int(word) >> i & 1 for i in range(64)]


def narrow_cells(
    source: NDArray[np.int32], first: int, target: NDArray[np.int8], at: int, n: int
) -> None:
    target[at : at + n] = np.minimum(source[first : first + n], 127)


def dense_head(
    acc: NDArray[np.float32],
    hidden: NDArray[np.float32],
    w2: NDArray[np.float32],
    b2: NDArray[np.float32],
    w3: NDArray[np.float32],
) -> np.float32:
    hidden[:] = np.maximum(acc, 0)
    return np.float32(np.maximum(hidden @ w2 + b2, 0) @ w3)


def install() -> None:
    """Put them in the place of the machine instructions."""
    for function in (popcount, lowest_bit, prefetch, positive_cells, spread_bits, narrow_cells):
        setattr(bits, function.__name__, function)
    simd.dense_head = dense_head
